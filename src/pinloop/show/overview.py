"""Robots and runs in short, as notebooks show them; computes nothing that takes time."""

from __future__ import annotations

from itertools import islice

from ..errors import printable
from ..model.mechanism import Mechanism
from ..simulation.trajectory import Trajectory
from ..tables.number_format import number, units_of
from ..tables.report import KeyValues, Notes, Report, Table

_MOST = 12
"""Events of a run that are listed."""


def robot_overview(robot: Mechanism) -> Report:
    """What a robot is made of: its joints and what closes its loops."""
    facts = [
        ("bodies", str(len(robot.bodies))),
        ("coordinates", f"nq = {robot.nq}, nv = {robot.nv}"),
        ("actuated", ", ".join(robot.actuated)),
    ]
    joints = (_joint_row(robot, name) for name in robot.joints)
    loops = (
        (loop.name, loop.pair.name, f"{loop.body_a} - {loop.body_b}", str(loop.pair.rows))
        for loop in robot.loops
    )
    blocks = (
        KeyValues.of("Robot", facts),
        Table.of("Joints", ("<joint", "index in | q", "index in | v", "<unit", "<limits"), joints),
        Table.of("Loop joints", ("<loop joint", "<pair", "<between", "equations"), loops),
        Notes.of("Warnings", robot.warnings, "caution"),
    )
    return Report.of(f"robot '{robot.name}'", blocks)


def _joint_row(robot: Mechanism, joint: str) -> tuple[str, ...]:
    at = robot.coordinates(joint)
    q, v = (
        str(x.start) if x.stop - x.start == 1 else f"{x.start}-{x.stop - 1}" for x in (at.q, at.v)
    )
    if at.nq != 1:
        return joint, q, v, "", ""
    unit, model = units_of(robot, joint), robot.model
    ends = (float(x[at.q.start]) for x in (model.lowerPositionLimit, model.upperPositionLimit))
    low, high = (number(unit.factor * end, 1) for end in ends)
    return joint, q, v, unit.si, f"{low} to {high} {unit.shown}"


def run_overview(run: Trajectory) -> Report:
    """How a run went."""
    facts = [
        ("time", f"{run.t[0]:.6g} to {run.t[-1]:.6g} s, {len(run.t)} states"),
        ("ended by", run.message),
        ("evaluations", f"{run.evaluations}, {run.rejected} steps rejected"),
        ("engine", run.engine or "not known"),
    ]
    events = [(name, f"{t:.6g}") for t, name in islice(run.events, _MOST)]
    if len(run.events) > _MOST:
        events.append((f"and {len(run.events) - _MOST} more", ""))
    blocks = (
        KeyValues.of("Run", facts),
        Table.of("Events", ("<event", "time [s]"), events),
        Notes.of("Warnings", run.warnings, "caution"),
    )
    return Report.of(printable(f"run of '{run.robot.name}'"), blocks)
