"""Which law of controlled stops explains a table best: the one that predicts best.

A row is held out, the others of its axis are fitted, and the row is predicted. More parameters
follow noise; only what they predict tells whether they are right.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...boundary.arguments import public
from ...errors import BadValue, PinloopError
from ...model.mechanism import Mechanism
from ...tables.report import Block, Cell, KeyValues, Notes, Report, Reported, Table
from ..brakes.brakes import Brakes
from ..brakes.laws import LAWS, StopLaw, law_by_name
from ..stopping.result_document import PLANNING_AID
from .fit import Fit, fitted
from .measured import Measured
from .published import StoppingTable


@dataclass(frozen=True)
class LawFit:
    """A law fitted to a table.

    Args:
        law: the law.
        fit: its numbers, fitted to all rows; None if it cannot be.
        held_out: logarithms of predicted over measured numbers, of rows that were held out.
        problem: why there is no fit, or no prediction.
    """

    law: StopLaw
    fit: Fit | None
    held_out: tuple[float, ...] = ()
    problem: str = ""

    @property
    def error(self) -> float:
        """Root mean square of the errors of rows that were held out, relative; infinite if none."""
        size = float(np.sqrt(np.mean(np.square(self.held_out)))) if self.held_out else np.inf
        return size if np.isfinite(size) else np.inf

    @property
    def misfit(self) -> float:
        """The same of all rows with the law fitted to all of them."""
        if self.fit is None:
            return np.inf
        rows = self.fit.comparison.rows
        ratios = [x for row in rows for x in (row.time_ratio, row.angle_ratio) if x is not None]
        return float(np.sqrt(np.mean(np.log(ratios) ** 2)))


@public
@dataclass(frozen=True)
class LawFits(Reported):
    """Laws of controlled stops fitted to a table: print it, or let rich or a notebook show it.

    Args:
        candidates: the laws, that which predicts best first.
        source: where the table comes from.
        robot: name of the robot.
    """

    candidates: tuple[LawFit, ...]
    source: str = ""
    robot: str = ""

    @property
    def best(self) -> LawFit:
        """The law that predicts best; if no row could be held out, that which fits best."""
        return self.candidates[0]

    @property
    def brakes(self) -> Brakes:
        """The brakes with the best law and its numbers."""
        assert self.best.fit is not None, "LawFits has a candidate that is fitted"
        return self.best.fit.brakes

    def __rich__(self) -> Report:
        return self.table()

    def table(self, facts: Iterable[tuple[str, str]] = ()) -> Report:
        """All candidates, and what the best one makes of the table; ``facts`` above: name, text."""
        rows = [
            (
                each.law.name,
                _numbers(each),
                _percent(each.misfit),
                _percent(each.error) if each.held_out else "-",
                Cell(each.problem, "caution"),
            )
            for each in self.candidates
        ]
        headings = ("<law", "<numbers", "misfit [%]", "held-out rows [%]", "<problem")
        blocks: list[Block] = [KeyValues.of("Fit", [("fitted to", self.source), *facts])]
        blocks.append(Table.of("Laws, root mean squares", headings, rows))
        assert self.best.fit is not None
        blocks += self.best.fit.comparison.blocks()
        blocks.append(Notes.of("Warnings", self.best.fit.warnings, "caution"))
        title = f"{self.robot}: the law {self.best.law.name} explains the stops best"
        return Report.of(title, blocks, PLANNING_AID)

    def as_dict(self) -> dict[str, Any]:
        """All candidates, as JSON takes them; what is not known is None."""
        return {
            "best": self.best.law.name,
            "source": self.source,
            "candidates": [
                {
                    "law": each.law.name,
                    "misfit": each.misfit if np.isfinite(each.misfit) else None,
                    "held_out_error": each.error if np.isfinite(each.error) else None,
                    "problem": each.problem,
                    "fit": None if each.fit is None else each.fit.as_dict(),
                }
                for each in self.candidates
            ],
        }


@public
def fit_law(
    robot: Mechanism,
    table: StoppingTable,
    brakes: Brakes,
    laws: Sequence[str] = tuple(LAWS),
    **arguments: Any,
) -> LawFits:
    """Fit laws of controlled stops to a table, and say which predicts best.

    Each row is held out once: the other rows of its axis are fitted, and it is predicted.

    Args:
        robot: the mechanism.
        table: stops of categories 1 and 2.
        brakes: all that is not fitted; the drive_torque from which that of `DriveTorque` starts.
        laws: names of the laws that are tried.
        arguments: all else that `stop` takes.

    Raises:
        BadValue: a stop of the table has no ramp, or no law can be fitted.
        PinloopError: no row of the table is left.
    """
    table = table.possible(robot, brakes)
    if any(row.number == 0 for row in table.rows):
        raise BadValue("the table has stops of category 0, in which no law slows drives down")
    tried = [
        _fitted_law(robot, table, brakes, law_by_name(name), arguments)
        for name in dict.fromkeys([laws] if isinstance(laws, str) else laws)
    ]
    if not any(each.fit for each in tried):
        raise BadValue(f"no law can be fitted: {'; '.join(each.problem for each in tried)}")
    ranked = sorted(tried, key=lambda each: (each.fit is None, each.error, each.misfit))
    return LawFits(tuple(ranked), table.source, robot.name)


def _fitted_law(
    robot: Mechanism, table: StoppingTable, brakes: Brakes, law: StopLaw, arguments: dict[str, Any]
) -> LawFit:
    """One law, fitted to all rows, and to all but one."""
    own = brakes.with_law(law, {row.joint for row in table.rows})
    names = [name for name in law.numbers if name != "torque_share"]

    def fit(rows: Sequence[Measured]) -> Fit:
        return fitted(robot, replace(table, rows=tuple(rows)), own, names, **arguments)

    try:
        whole = fit(table.rows)
    except PinloopError as error:
        return LawFit(law, None, problem=str(error))
    errors: list[float] = []
    rows = [x.measured for x in whole.comparison.rows]
    for number, row in enumerate(rows, 1):
        others = [x for x in rows if x is not row and x.joint == row.joint and x.numbers]
        if not (others and row.numbers):
            continue
        try:
            errors += row.errors(row.stop(robot, fit(others).brakes, **arguments)).tolist()
        except PinloopError as error:
            return LawFit(law, whole, problem=f"without {row.place or f'row {number}'}: {error}")
    return LawFit(law, whole, tuple(errors), "" if errors else "no row can be held out")


def _numbers(each: LawFit) -> str:
    if each.fit is None:
        return "-"
    values = (f"{x.joint} {x.parameter} {x.value:.4g} {x.unit}" for x in each.fit.parameters)
    return ", ".join(values)


def _percent(part: float) -> str:
    return f"{100.0 * part:.1f}" if np.isfinite(part) else "-"
