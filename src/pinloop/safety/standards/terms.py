"""Terms of a distance with their formulas and sources: as a table, as rows, as a CSV file.

Adds and prints; which terms there are, and what they are worth, is in `separation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...boundary.csv import write_rows
from ...errors import printable
from ...tables.number_format import number
from ...tables.report import Cell, Column, KeyValues, Mark, Table

__all__ = ["Row", "Term", "term_grids", "term_rows", "write_terms"]

Row = dict[str, str | float]


@dataclass(frozen=True)
class Term:
    """A term of a distance.

    Args:
        symbol: its symbol in the standard.
        meaning: what it is.
        value: how long it is [m].
        simple: how long it is in the simple form [m].
        formula: how the value was computed, with numbers.
        source: where these numbers come from.
    """

    symbol: str
    meaning: str
    value: float
    simple: float
    formula: str
    source: str


def term_grids(terms: Sequence[Term], total: Term, *, both: bool) -> tuple[Table, KeyValues]:
    """The terms for reading: their values and meanings, and how each was computed from what.

    Args:
        terms: the terms.
        total: their sum.
        both: whether the simple form differs from the other one.
    """
    columns = [Column("term", right=False)]
    columns += [Column(name, "mm") for name in (("integral", "simple") if both else ("value",))]
    columns.append(Column("what it is", right=False))
    rows = []
    for term in (*terms, total):
        mark: Mark = "title" if term is total else ""
        values = (term.value, term.simple) if both else (term.value,)
        cells = [Cell(term.symbol, mark), *(Cell(number(1e3 * x, 1), mark) for x in values)]
        rows.append((*cells, Cell(term.meaning, mark)))
    origins = tuple(
        (term.symbol, Cell(printable(f"{term.formula} [{term.source}]")))
        for term in (*terms, total)
    )
    return Table("Terms", tuple(columns), tuple(rows)), KeyValues("Formulas", origins)


def term_rows(terms: Sequence[Term], total: Term) -> list[Row]:
    """The terms and their sum, a row each, units in the names."""
    return [
        {
            "term": term.symbol,
            "meaning": term.meaning,
            "value_m": term.value + 0.0,
            "simple_value_m": term.simple + 0.0,
            "formula": term.formula,
            "source": term.source,
        }
        for term in (*terms, total)
    ]


def write_terms(path: str | Path, rows: Sequence[Row]) -> Path:
    """Write rows of terms as CSV.

    Args:
        path: file to write.
        rows: the rows, all with the same columns.
    """
    return write_rows(path, rows[0], (row.values() for row in rows))
