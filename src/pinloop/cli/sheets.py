"""What `pinloop assemble` and `regularize` report: tables for people, JSON for programs.

The JSON has SI units, but in the keys that begin with ``shown``: these are as the table has them.
Decides nothing and moves nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NotRequired, TypedDict, cast

import numpy as np
import pinocchio as pin

from ..assembly.search import is_outside
from ..boundary.marks import Array
from ..constraints.closure import Constraints
from ..errors import LoopNotClosed, printable
from ..model.mechanism import Mechanism
from ..model.reduction import CutAlternative, LoopReduction, Regularization
from ..regularization.regularize import branch_signs
from ..tables.number_format import SLIDING, joint_value, number, shown_coordinate, units_of
from ..tables.report import Cell, KeyValues, Notes, Report, Table
from ..tolerances import STILL

_SIGNS = {1: "+", -1: "-", 0: "0 (singular)"}


# -- assemble -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Assembled:
    """What a search for closed loops gave."""

    robot: Mechanism
    start: Array
    q: Array
    held: tuple[str, ...]
    error: LoopNotClosed | None

    @property
    def residual(self) -> float:
        """Norm of the closure residual of all rows, m and rad."""
        return float(np.linalg.norm(Constraints(self.robot, full=True).residual(self.q)))

    def moved(self, joint: str) -> float:
        """How far a joint went from where the search began [rad, m]."""
        step = pin.difference(self.robot.model, self.start, self.q)
        away = float(np.linalg.norm(step[self.robot.coordinates(joint).v]))
        return away if away > STILL else 0.0

    @property
    def branch(self) -> dict[str, int] | None:
        """Signs that identify the branch; None where there are none or the loops are open."""
        return None if self.error is not None else branch_signs(self.robot, self.q)


def assembly_document(assembly: Assembled) -> AssemblyDocument:
    """An assembled configuration as JSON has it, SI units."""
    robot, error = assembly.robot, assembly.error
    return {
        "format": "pinloop-assembly-1",
        "robot": robot.name,
        "closed": error is None,
        "residual": assembly.residual,
        "error": None if error is None else str(error),
        "blocked_by": [] if error is None else list(error.blocked_by),
        "branch": assembly.branch,
        "q": [float(x) for x in assembly.q],
        "joints": {joint: _joint_document(assembly, joint) for joint in robot.joints},
    }


def _joint_document(assembly: Assembled, joint: str) -> JointRecord:
    robot = assembly.robot
    at = robot.coordinates(joint)
    record: JointRecord = {
        "q": [float(x) for x in assembly.q[at.q]],
        "held": joint in assembly.held,
        "moved": assembly.moved(joint),
    }
    if at.nv == 1:
        units = units_of(robot, joint)
        record["value"] = joint_value(robot, joint, assembly.q)
        record["unit"] = "m" if units is SLIDING else "rad"
        record["shown"] = units.factor * record["value"]
        record["shown_unit"] = "mm" if units is SLIDING else "deg"
    return record


def assembly_table(assembly: Assembled) -> Report:
    """An assembled configuration as a report."""
    robot = assembly.robot
    closed = assembly.error is None
    headings = ("<joint", "SI", "<unit", "shown", "<unit", "moved by", "<limits")
    rows = (_joint_row(assembly, joint) for joint in robot.joints)
    moved = sum(assembly.moved(joint) > 0 for joint in robot.joints)
    state = Cell("assembled", "title") if closed else Cell("NOT CLOSED", "bad")
    facts: list[tuple[str, str | Cell]] = [
        ("closure", Cell(f"residual {assembly.residual:.1e} m, rad", "good" if closed else "bad")),
        ("moved", f"{moved} of {len(robot.joints)} joints, from the start of the search"),
    ]
    if closed and (robot.loops or robot.couplings):
        facts.append(("branch", _branch(assembly.branch)))
    blocks = (KeyValues.of("Closure", facts), Table.of("Joints", headings, rows))
    return Report.of(Cell(printable(f"{robot.name}: {state.text}"), state.mark), blocks)


def _joint_row(assembly: Assembled, joint: str) -> tuple[str | Cell, ...]:
    robot = assembly.robot
    at = robot.coordinates(joint)
    shown, unit = shown_coordinate(robot, joint, assembly.q)
    moved = assembly.moved(joint)
    if at.nv > 1:
        return joint, "", "", shown, unit, f"{moved:.3g}" if moved else "", ""
    units = units_of(robot, joint)
    value = joint_value(robot, joint, assembly.q)
    away = "held" if joint in assembly.held else number(units.factor * moved, 3) if moved else ""
    low, high = (
        float(limit[at.q.start])
        for limit in (robot.model.lowerPositionLimit, robot.model.upperPositionLimit)
    )
    outside = at.nq == 1 and is_outside(value, low, high)
    limits = ""
    if at.nq == 1 and (math.isfinite(low) or math.isfinite(high)):
        limits = " to ".join(_limit(units.factor * end) for end in (low, high))
    edges = Cell(limits, "bad" if outside else "")
    return joint, number(value, 6), units.si, shown, units.shown, away, edges


def _limit(value: float) -> str:
    return number(value, 1) if math.isfinite(value) else "none"


def _branch(signs: dict[str, int] | None) -> str:
    if signs is None:
        return "undefined: the number of passive joints differs from the rank"
    return ", ".join(f"{name} {_SIGNS[sign]}" for name, sign in signs.items())


# -- regularize -----------------------------------------------------------------------------------


def _report(robot: Mechanism) -> Regularization:
    report = robot.regularization
    assert report is not None, "only regularized robots are reported"
    return report


def reduction_document(robot: Mechanism) -> RegularizationDocument:
    """The report of a regularized robot as JSON has it."""
    document: Any = {
        "format": "pinloop-regularization-1",
        "robot": robot.name,
        "joints": list(robot.joints),
        "nv": robot.nv,
        **_report(robot).as_dict(),
    }
    return cast(RegularizationDocument, document)


def reduction_table(robot: Mechanism) -> Report:
    """The report of a regularized robot as a report."""
    report = _report(robot)
    everywhere = report.by_geometry or report
    title = f"{robot.name}: {report.full_rows} constraint equations, {everywhere.rows} kept"
    if report.held is not None:
        title += f", {report.rows} on this branch"
    mobility = f"at least {report.mobility}: {robot.nv} coordinates less the equations"
    facts: list[tuple[str, str | Cell]] = [
        ("kept", f"{everywhere.rows} of {report.full_rows}"),
        ("mobility", mobility),
    ]
    if report.couplings:
        facts.append(("couplings", f"{', '.join(report.couplings)}: kept"))
    if report.sampled_rows is not None:
        facts.append(("sampled", _sampled(report)))
    facts += [("undecided", Cell(printable(text), "caution")) for text in report.undecided]
    blocks = (
        KeyValues.of("Constraint equations", facts),
        _loops(report),
        Notes.of("Why", map(_why, everywhere.loops)),
        _cuts(report),
    )
    return Report.of(title, blocks)


def _sampled(report: Regularization) -> Cell:
    if not report.sampled_rows:
        return Cell("none dropped" if report.undecided else "none is redundant on this branch")
    text = f"{report.sampled_rows} more redundant on this branch (not proven); closure without "
    text += f"at fresh configurations: {report.residual:.1e}"
    return Cell(text, "caution")


def _loops(report: Regularization) -> Table:
    headings = ("<loop, cut at", "<pair", "equations", "kept", "<root")
    rows = (
        (loop.loop, loop.pair, str(loop.full_rows), str(loop.rows), loop.root)
        for loop in report.loops
    )
    return Table.of("Loops", headings, rows)


def _why(loop: LoopReduction) -> str:
    """Why rows of a loop can go: what its bodies could do without the cut joint."""
    dropped = loop.full_rows - loop.rows
    could = f"{loop.loop}: its chains allow {loop.algebra_a} (to A) and {loop.algebra_b}"
    how = "freely" if loop.twists == "free" else f"only by {loop.twists}"
    could += f" (to B), so without it its bodies can move relative to each other {how}"
    if not dropped:
        return f"{could}; no motion group makes an equation of the pair redundant."
    equations = "1 equation forbids" if dropped == 1 else f"{dropped} equations forbid"
    return f"{could}; {equations} what is impossible anyway."


def _cuts(report: Regularization) -> Table:
    equations = "equations of the loop", "of all loops"
    headings = ("<instead of", "<cut at", *equations, "mobility at least")
    rows = (
        (loop.loop, cut.joint, str(cut.rows), str(cut.total_rows), str(cut.mobility))
        for loop in report.loops
        for cut in loop.alternatives
    )
    return Table.of("Other cuts", headings, rows)


class JointRecord(TypedDict):
    """A joint of an assembled robot; the value and its units only if it has one axis."""

    q: list[float]
    value: NotRequired[float]
    unit: NotRequired[Literal["rad", "m"]]
    shown: NotRequired[float]
    shown_unit: NotRequired[Literal["deg", "mm"]]
    held: bool
    moved: float


class AssemblyDocument(TypedDict):
    """An assembled configuration, or the nearest one and why it is not closed."""

    format: Literal["pinloop-assembly-1"]
    robot: str
    closed: bool
    residual: float
    error: str | None
    blocked_by: list[str]
    branch: dict[str, int] | None
    q: list[float]
    joints: dict[str, JointRecord]


class LoopRecord(TypedDict):
    """The reduction of one loop; rows kept = selection times the rows of the pair."""

    loop: str
    pair: str
    root: str
    algebra_a: str
    algebra_b: str
    tied: str
    twists: str
    full_rows: int
    rows: int
    selection: list[list[float]]
    alternatives: list[CutAlternative]


class RegularizationDocument(TypedDict):
    """The rows that are sufficient everywhere."""

    format: Literal["pinloop-regularization-1"]
    robot: str
    joints: list[str]
    nv: int
    loops: list[LoopRecord]
    couplings: list[str]
    full_rows: int
    rows: int
    mobility: int
    sampled_rows: int | None
    residual: float | None
    undecided: list[str]
    held: list[int] | None
