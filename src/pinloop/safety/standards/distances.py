"""Protective distances in general: their terms, the stops that count, the cases of a study.

A distance is a function of one stop: terms of different cases are not added up. The distances are
in `separation` (ISO/TS 15066) and `iso13855`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from joblib import Parallel, delayed, effective_n_jobs

from ...boundary.arguments import flat_numbers
from ...boundary.csv import write_rows
from ...errors import BadValue, printable
from ...tables.number_format import number
from ...tables.report import Cell, Column, KeyValues, Mark, Report, Table
from ..stopping import StopResult
from ..studies.study import Study

__all__ = [
    "Distance",
    "Row",
    "Standing",
    "Term",
    "at_least_zero",
    "checked_stops",
    "measure_cases",
    "standing_cases",
]

# -- terms -----------------------------------------------------------------------------------

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


class Distance(ABC):
    """A distance that is the sum of its terms."""

    terms: tuple[Term, ...]
    has_simple_form: ClassVar[bool]
    """Whether the standard has a simple form of it, with other values."""

    @property
    @abstractmethod
    def total(self) -> Term:
        """The sum as a term: its symbol, its meaning, its standard."""

    @abstractmethod
    def table(self) -> Report:
        """Every term with its value, its formula and where it comes from."""

    def __str__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def __getitem__(self, symbol: str) -> Term:
        """A term by its symbol, e.g. ``"S_s"``."""
        for term in self.terms:
            if term.symbol == symbol:
                return term
        known = ", ".join(term.symbol for term in self.terms)
        raise BadValue(f"there is no term '{symbol}'; there are: {known}")

    @property
    def distance(self) -> float:
        """The sum of the terms [m]."""
        return sum(term.value for term in self.terms)

    @property
    def simple(self) -> float:
        """The same by its simple form [m]."""
        return sum(term.simple for term in self.terms)

    def rows(self) -> list[Row]:
        """The terms and their sum, a row each, units in the names."""
        rows: list[Row] = []
        for term in (*self.terms, self.total):
            row: Row = {"term": term.symbol, "meaning": term.meaning, "value_m": term.value + 0.0}
            if self.has_simple_form:
                row["simple_value_m"] = term.simple + 0.0
            rows.append(row | {"formula": term.formula, "source": term.source})
        return rows

    def to_csv(self, path: str | Path) -> Path:
        """Write the terms and their sum as CSV, units in the column names."""
        rows = self.rows()
        return write_rows(path, rows[0], (row.values() for row in rows))

    def blocks(self) -> tuple[Table, KeyValues]:
        """The terms for reading: their values and meanings, and how each was computed."""
        both, terms = self.has_simple_form, (*self.terms, self.total)
        columns = [Column("term", right=False)]
        columns += [Column(name, "mm") for name in (("integral", "simple") if both else ("value",))]
        columns.append(Column("what it is", right=False))
        rows = []
        for term in terms:
            mark: Mark = "title" if term is terms[-1] else ""
            values = (term.value, term.simple) if both else (term.value,)
            cells = [Cell(term.symbol, mark), *(Cell(number(1e3 * x, 1), mark) for x in values)]
            rows.append((*cells, Cell(term.meaning, mark)))
        origins = tuple(
            (term.symbol, Cell(printable(f"{term.formula} [{term.source}]"))) for term in terms
        )
        return Table("Terms", tuple(columns), tuple(rows)), KeyValues("Formulas", origins)


# -- stops and numbers -----------------------------------------------------------------------


def checked_stops(stop: StopResult | Iterable[StopResult]) -> list[StopResult]:
    """Return one stop or several as a list after checking that the robots are at rest and held."""
    stops: list[Any] = [stop]
    if not isinstance(stop, StopResult):
        stops = list(stop) if isinstance(stop, Iterable) else []
    if not stops or not all(isinstance(result, StopResult) for result in stops):
        raise BadValue(f"{stop!r} is no stop; give the result of pl.stop, several, or a study")
    for result in stops:
        if not result.holds:
            raise BadValue(
                f"the stop of robot '{result.robot.name}' ends as '{result.outcome}': no distance "
                "protects from a robot that does not come to rest and hold"
            )
    return stops


def at_least_zero(what: str, value: Any, wanted: str = "a length >= 0 in metres") -> float:
    """Return a number after checking that it is one and not negative.

    Args:
        what: its name, for messages.
        value: what was given.
        wanted: what it must be, for messages.
    """
    number = flat_numbers(value, what, 1)[0]
    if number < 0:
        raise BadValue(f"{what} is {value!r}; it must be {wanted}")
    return float(number)


# -- cases of a study ------------------------------------------------------------------------


D = TypeVar("D", bound=Distance)

_TASKS = 4
"""Tasks per worker: cases take different times."""


@dataclass(frozen=True)
class Standing:
    """The cases of a study in which the robot stands at the end and is held.

    Args:
        times: stopping time [s] by number of the case, in rising order of the numbers.
        notes: what was left out, one sentence each.
    """

    times: Mapping[int, float]
    notes: tuple[str, ...]

    @property
    def cases(self) -> tuple[int, ...]:
        """Numbers of the cases."""
        return tuple(self.times)


def standing_cases(study: Study) -> Standing:
    """Return the cases that count for a distance.

    Args:
        study: the study; cases that could not be computed are left out, and a note says so.

    Raises:
        BadValue: in some case the robot does not come to rest and hold, or no case was computed.
    """
    times: dict[int, float] = {}
    failed: dict[int, str] = {}
    loose: dict[int, str] = {}
    for row in study.rows():
        case, outcome = int(row["case"]), str(row["outcome"])
        if outcome == "stopped":
            times[case] = float(row["stopping_time_s"])
        elif outcome == "failed":
            failed[case] = str(row["reason"])
        else:
            loose[case] = outcome
    name = study.setup.robot.name
    if loose:
        case, outcome = next(iter(loose.items()))
        others = f" (and {len(loose) - 1} others do not stop either)" if len(loose) > 1 else ""
        raise BadValue(
            f"case {case} of the study of robot '{name}' ends as '{outcome}'{others}: no distance "
            "protects from a robot that does not come to rest and hold; give it stronger brakes, "
            "or make a study of states from which it stops"
        )
    if not times:
        raise BadValue(
            f"no case of the study of robot '{name}' could be computed: there is no distance"
        )
    notes = [
        f"sampled, not guaranteed: the largest of {len(times)} cases; one that was not looked at "
        "may ask for more"
    ]
    if not study.complete:
        notes.append(f"the study is not finished: {study.done} of {study.size} cases are done")
    if failed:
        case, reason = next(iter(failed.items()))
        notes.append(
            f"{len(failed)} of {study.done} cases could not be computed and are left out, first "
            f"case {case}: {reason}"
        )
    return Standing(times, tuple(notes))


def measure_cases(
    study: Study, cases: Sequence[int], measure: Callable[[StopResult], D], jobs: int
) -> tuple[list[tuple[float, float]], D]:
    """What each of some cases asks for, in parallel.

    Args:
        study: the study.
        cases: numbers of the cases.
        measure: what a stop asks for.
        jobs: number of processes; -1 for all cores.

    Returns:
        Each distance and its simple form [m], in the order of the cases; and the first of those
        with the largest distance, with everything.

    Raises:
        BadValue: ``jobs`` is no number of processes, or a stop cannot be measured.
    """
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs == 0:
        raise BadValue(f"jobs is {jobs!r}; give a number of processes, or -1 for all cores")
    size = -(-len(cases) // (_TASKS * max(1, effective_n_jobs(jobs))))
    batches = Parallel(n_jobs=jobs)(
        delayed(_batch)(study, cases[k : k + size], measure) for k in range(0, len(cases), size)
    )
    pairs = [pair for pairs, _ in batches for pair in pairs]
    return pairs, max((largest for _, largest in batches), key=lambda each: each.distance)


def _batch(
    study: Study, cases: Sequence[int], measure: Callable[[StopResult], D]
) -> tuple[list[tuple[float, float]], D]:
    """What a worker computes; a mistake is told with its case."""
    pairs, largest = [], None
    for case in cases:
        try:
            distance = measure(study.replay(case))
        except BadValue as error:
            raise BadValue(f"case {case} of the study: {error}") from None
        pairs.append((distance.distance, distance.simple))
        if largest is None or distance.distance > largest.distance:
            largest = distance
    assert largest is not None, "a batch has at least one case"
    return pairs, largest
