"""Putting measured tables between the marks of a page; what a page says besides is left alone.

A mark is ``<!-- NAME: begin -->`` and ``<!-- NAME: end -->``, each on a line of its own.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

__all__ = ["DOCS", "ROOT", "between", "number", "print_or_write", "put", "table"]

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def _marks(name: str) -> tuple[str, str]:
    return f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"


def _parts(text: str, name: str) -> tuple[str, str, str]:
    begin, end = _marks(name)
    if text.count(begin) != 1 or text.count(end) != 1:
        raise ValueError(f"the page needs {begin.strip()} and {end} once each")
    before, _, rest = text.partition(begin)
    inside, _, after = rest.partition(end)
    return before, inside, after


def between(text: str, name: str) -> str:
    """What stands between the marks of a name."""
    return _parts(text, name)[1]


def put(page: Path, name: str, inside: str) -> None:
    """Write text between the marks of a name."""
    text = page.read_text(encoding="utf-8")
    before, _, after = _parts(text, name)
    begin, end = _marks(name)
    page.write_text(f"{before}{begin}{inside.rstrip()}\n{end}{after}", encoding="utf-8")


def print_or_write(page: Path, made: Iterable[tuple[str, str]], description: str | None) -> None:
    """Print tables, or write them into a page if the command line says ``--write``.

    Args:
        page: the page.
        made: names of the marks and what stands between them, computed one after the other.
        description: for the help of the command line.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--write", action="store_true", help=f"write {page.relative_to(ROOT)}")
    write = parser.parse_args().write
    for name, inside in made:
        if write:
            put(page, name, inside)
        else:
            print(f"{name}\n{inside}")


def table(head: Sequence[str], rows: Sequence[Sequence[str]], align: str = "") -> str:
    """A table in Markdown.

    Args:
        head: titles of the columns.
        rows: cells.
        align: per column "r" for numbers, anything else for text; text if left out.
    """
    lines = [head, ["--:" if side == "r" else "---" for side in align.ljust(len(head))], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def number(value: float, digits: int = 4) -> str:
    """A number for people: integers as such, others with so many digits."""
    if float(value).is_integer() and abs(value) < 1e6:
        return str(int(value))
    return f"{value:.{digits}g}"
