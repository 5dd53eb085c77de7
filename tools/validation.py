"""Every number of the five papers beside ours: runs the examples, writes ``docs/validation.md``.

Run with ``python -m tools.validation --write`` from the root of the repository; without ``--write``
the tables are printed. What is compared is in `validation_motion` and `validation_loops`.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import ModuleType

from .pages import DOCS, ROOT, number, print_or_write, table
from .validation_lines import Line
from .validation_loops import arm, fourbar, palm, pendulum, prrr
from .validation_motion import (
    double_pendulum,
    floating,
    heavy_top,
    loops,
    satellite,
    singular,
    snakeboard,
    three_bars,
)

__all__ = ["CASES", "HEAD", "Case", "blocks", "lines_of", "rows"]

PAGE = DOCS / "validation.md"
HEAD = ("quantity", "paper", "here", "difference", "program")


@dataclass(frozen=True)
class Case:
    """A program and what its result says about a paper.

    Args:
        paper: number of the paper.
        program: name of the program in ``examples/``.
        lines: lines of the table, from the module of the program.
        quick: whether it takes no more than about two seconds.
    """

    paper: int
    program: str
    lines: Callable[[ModuleType], Iterable[Line]]
    quick: bool = True


CASES = (
    Case(1, "satellite_panels", satellite, quick=False),
    Case(1, "snakeboard", snakeboard, quick=False),
    Case(2, "heavy_top", heavy_top),
    Case(2, "spherical_double_pendulum", double_pendulum),
    Case(2, "floating_bodies", floating, quick=False),
    Case(2, "three_bar_loop", three_bars, quick=False),
    Case(3, "odca_loops", loops, quick=False),
    Case(3, "odca_singular", singular, quick=False),
    Case(4, "lock_planar_3r", pendulum),
    Case(4, "lock_six_axis_arm", arm, quick=False),
    Case(4, "lock_spherical_fivebar", palm),
    Case(5, "regularize_spherical_fourbar", fourbar),
    Case(5, "regularize_3prrr", prrr),
)


def lines_of(case: Case) -> list[Line]:
    """Run the program of a case, silently."""
    folder = str(ROOT / "examples")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module = importlib.import_module(case.program)
    with contextlib.redirect_stdout(io.StringIO()):
        return list(case.lines(module))


def rows(case: Case) -> list[list[str]]:
    """Cells of the table of a case."""
    program = f"`{case.program}`"
    return [
        [
            line.quantity,
            line.paper if isinstance(line.paper, str) else number(line.paper),
            number(line.ours) if isinstance(line.ours, float) else str(line.ours),
            line.difference,
            program,
        ]
        for line in lines_of(case)
    ]


def blocks() -> Iterator[tuple[str, str]]:
    """What stands between the marks of the page; runs everything."""
    for paper in range(1, 6):
        made = [row for case in CASES if case.paper == paper for row in rows(case)]
        yield f"paper {paper}", table(HEAD, made, "llrll")


if __name__ == "__main__":
    print_or_write(PAGE, blocks(), __doc__)
