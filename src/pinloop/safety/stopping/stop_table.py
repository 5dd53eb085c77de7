"""The table of a stop: what it says; how it looks is in `tables`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import printable
from ...tables.number_format import Units, decimals, joint_value, milliseconds, number, units_of
from ...tables.report import (
    Block,
    Cell,
    Column,
    KeyValues,
    Mark,
    Notes,
    Report,
    Section,
    Table,
    section_blocks,
)
from .assumptions import PLANNING_AID, assumption_lines
from .prepared_robot import payload_of
from .result import StopResult
from .travel import JointStop

_AMPLE = 1000.0
"""A holding margin above it is not told more exactly: the load is nothing but rounding."""
_DETOUR = 0.005
"""A way to and fro is told apart from the angle if it is longer by this part."""


def stop_table(
    result: StopResult, facts: Iterable[tuple[str, str]] = (), sections: Iterable[Section] = ()
) -> Report:
    """The table of a stop."""
    joints = list(result.joints.values())
    blocks: list[Block] = [_headline(result, facts)]
    for sort, units in _sorts(result, joints):
        which = "" if len(sort) == len(joints) else f" that {_KINDS[units.shown]}"
        blocks += [_ways(result, sort, units, which), _loads(result, sort, units, which)]
    blocks += [_tool(result), _energy(result), *section_blocks(result, sections)]
    if result.warnings:
        blocks.append(Notes("Warnings", tuple(map(printable, result.warnings)), "caution"))
    assumed = assumption_lines(result.assumptions, result.category.number)
    blocks.append(Notes("Assumptions and sources", assumed))
    return Report(_title(result), tuple(blocks), PLANNING_AID)


_KINDS = {"deg": "turn", "mm": "slide"}


def _sorts(result: StopResult, joints: Sequence[JointStop]) -> list[tuple[list[JointStop], Units]]:
    """Joints that turn and joints that slide: their numbers have different units."""
    sorts: dict[Units, list[JointStop]] = {}
    for joint in joints:
        sorts.setdefault(units_of(result.robot, joint.name), []).append(joint)
    return [(sort, units) for units, sort in sorts.items()]


# -- headline -----------------------------------------------------------------------------------


def _title(result: StopResult) -> Cell:
    name = printable(result.robot.name)
    time = milliseconds(result.stopping_time)
    if result.outcome == "stopped":
        return Cell(f"{name}: stopped after {time}, and holds", "good")
    if result.outcome == "does not hold":
        return Cell(f"{name}: DOES NOT HOLD", "bad")
    return Cell(f"{name}: NOT STOPPED within {time}", "bad")


def _headline(result: StopResult, facts: Iterable[tuple[str, str]]) -> KeyValues:
    """Category, times, and what was stopped."""
    chain, brakes = result.chain, result.brakes
    reaction = min(result.reaction_time, result.stopping_time)
    braking = result.stopping_time - reaction
    split = f"{milliseconds(reaction)} reaction + {milliseconds(braking)} braking"
    category = result.category
    how = category.title
    if category.on_path:
        how += "; on the path, all joints together"
    if category.time_limit is not None:
        how += f"; brakes after {milliseconds(category.time_limit)} in any case"
    entries = [
        ("stopping time", Cell(f"{milliseconds(result.stopping_time)} = {split}")),
        ("category", Cell(how)),
        (
            "signal chain",
            Cell(
                f"sensor {milliseconds(chain.sensor)} + controller {milliseconds(chain.controller)}"
                f" = command at {milliseconds(chain.command)}" + _power(result)
            ),
        ),
        ("payload", Cell(_payload(result))),
        ("gravity", Cell(f"({', '.join(f'{x:g}' for x in result.robot.gravity)}) m/s^2")),
        ("brakes", _brakes(result)),
    ]
    entries += [(name, Cell(printable(text))) for name, text in facts]
    entries += [("fault", Cell(printable(fault), "caution")) for fault in brakes.faults]
    return KeyValues("Stop", tuple(entries))


def _power(result: StopResult) -> str:
    """When the motors lose their torque."""
    if result.category.controlled:
        return ""
    return f", drives off at {milliseconds(result.chain.command + result.chain.drive_off)}"


def _payload(result: StopResult) -> str:
    load = payload_of(result.history.train.robot, result.robot)
    if load is None:
        return "none"
    centre = ", ".join(f"{1e3 * x:.4g}" for x in np.round(np.asarray(load.com), 9) + 0.0)
    return f"{load.mass:g} kg, centre of mass at ({centre}) mm in {printable(load.frame or '')}"


def _brakes(result: StopResult) -> Cell:
    source = result.brakes.source
    if source == "template":
        guessed = "ALL GUESSED from what the robot's file says: nobody has given a number"
        return Cell(guessed + _band(result), "caution")
    return Cell(printable(source or "given in Python") + _band(result))


def _band(result: StopResult) -> str:
    """Where in their bands the brakes are, if all are at the same place."""
    bands = {
        brake.band
        for brake in result.brakes.joints.values()
        if brake.kind == "friction" and brake.tolerance > 0
    }
    if bands in (set(), {0.0}):
        return ""
    if len(bands) > 1:
        return "; torques elsewhere in their bands, joint by joint"
    words = {-1.0: "at the low end of their bands", 1.0: "at the high end of their bands"}
    (band,) = bands
    return f"; torques {words.get(band, f'at {band:g} of their bands')}"


# -- joints -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Part:
    """Columns with numbers of joints, all with the same number of decimals."""

    columns: tuple[Column, ...]
    values: tuple[Callable[[JointStop], float], ...]
    factor: float = 1.0


def _rows(joints: Sequence[JointStop], parts: Sequence[_Part]) -> list[list[Cell]]:
    rows = [[Cell(printable(joint.name))] for joint in joints]
    for part in parts:
        table = [[part.factor * value(joint) for value in part.values] for joint in joints]
        places = decimals((x for row in table for x in row), least=1, most=3)
        for row, numbers in zip(rows, table, strict=True):
            row += [Cell(number(x, places)) for x in numbers]
    return rows


def _ways(result: StopResult, joints: Sequence[JointStop], units: Units, which: str) -> Table:
    """Times and ways of joints, from the signal on."""
    robot, q0 = result.robot, result.run.q[0]
    way = "angle" if units.shown == "deg" else "displacement"
    thirds = ("reaction", "braking", "total")
    parts = [
        _Part(
            (Column("start", units.shown),),
            (lambda j: joint_value(robot, j.name, q0),),
            units.factor,
        ),
        _Part(
            tuple(Column(part, "ms", "time") for part in thirds),
            (lambda j: j.reaction_time, lambda j: j.braking_time, lambda j: j.time),
            1e3,
        ),
        _Part(
            tuple(Column(part, units.shown, way) for part in thirds),
            (lambda j: j.reaction_angle, lambda j: j.braking_angle, lambda j: j.angle),
            units.factor,
        ),
    ]
    longest = max((joint.travel for joint in joints), default=0.0)
    if any(joint.travel - abs(joint.angle) > _DETOUR * longest for joint in joints):
        parts.append(_Part((Column("travel", units.shown),), (lambda j: j.travel,), units.factor))
    columns = [Column("joint", right=False), *(column for part in parts for column in part.columns)]
    rows = tuple(tuple(row) for row in _rows(joints, parts))
    return Table(f"Joints{which}: time and {way} from the signal", tuple(columns), rows)


def _loads(result: StopResult, joints: Sequence[JointStop], units: Units, which: str) -> Table:
    """Speeds, torques, energies, and what holds at the end."""
    robot, v0 = result.robot, result.run.v[0]
    speed, force = f"{units.shown}/s", "torque" if units.torque == "N m" else "force"
    parts = [
        _Part(
            (Column("signal", speed, "speed"), Column("peak", speed, "speed")),
            (lambda j: float(v0[robot.coordinates(j.name).v.start]), lambda j: j.peak_speed),
            units.factor,
        ),
        _Part((Column(f"peak {force}", units.torque),), (lambda j: j.peak_torque,)),
        _Part((Column("energy", "J"),), (lambda j: j.dissipated,)),
    ]
    if any(joint.impulse for joint in joints):
        parts.append(_Part((Column("impulse", f"{units.torque} s"),), (lambda j: j.impulse,)))
    columns = [Column("joint", right=False), *(column for part in parts for column in part.columns)]
    columns += [
        Column("utilisation", "%", "gear"),
        Column("slips"),
        Column("margin", "", "holding"),
    ]
    columns.append(Column("state", "", "holding", right=False))
    rows = _rows(joints, parts)
    for row, joint in zip(rows, joints, strict=True):
        row += [_gear(joint), Cell(str(joint.slips)), _margin(joint), _state(joint)]
    return Table(f"Joints{which}: loads and holding", tuple(columns), tuple(map(tuple, rows)))


def _gear(joint: JointStop) -> Cell:
    if joint.gear_use is None:
        return Cell("-")
    return Cell(number(100 * joint.gear_use, 0), "bad" if joint.gear_use > 1 else "")


def _margin(joint: JointStop) -> Cell:
    """Holding torque over load."""
    if joint.hold == 0 and joint.state == "free":
        return Cell("-")
    if joint.margin > _AMPLE:
        return Cell(f">{_AMPLE:g}")
    return Cell(number(joint.margin, 2), "bad" if joint.margin < 1 else "")


def _state(joint: JointStop) -> Cell:
    marks: dict[str, Mark] = {"held": "", "free": "caution", "moving": "bad"}
    return Cell(joint.state, marks[joint.state])


# -- tool and energy ----------------------------------------------------------------------------


def _tool(result: StopResult) -> Table:
    """The path of the tool."""
    point = result.point()
    ways = [point.reaction_length, point.braking_length, point.length, point.displacement]
    lengths = [1e3 * way for way in ways]
    speed = 1e3 * point.peak_speed
    columns = (
        Column("frame", right=False),
        *(Column(part, "mm", "path") for part in ("reaction", "braking", "total")),
        Column("displacement", "mm"),
        Column("peak speed", "mm/s"),
    )
    places = decimals(lengths, most=3)
    cells = [Cell(printable(point.frame)), *(Cell(number(x, places)) for x in lengths)]
    cells.append(Cell(number(speed, decimals([speed], most=3))))
    return Table("Tool", columns, (tuple(cells),))


def _energy(result: StopResult) -> Table:
    """The ledger line by line, with what is missing in it."""
    ledger = result.ledger
    given = [
        ("kinetic energy at the signal", ledger.kinetic_before),
        ("work done by gravity", ledger.potential_drop),
        ("work done by the drives", ledger.drive_work),
    ]
    taken = [(name, float(heat.sum())) for name, heat in ledger.dissipated.items()]
    taken += [("impacts", ledger.impacts), ("kinetic energy left", ledger.kinetic_after)]
    total = sum(value for _, value in given)
    entries = [*given, ("in", total), *taken, ("out", sum(value for _, value in taken))]
    places = decimals((value for _, value in entries), least=1)
    marks: dict[str, Mark] = {"in": "title", "out": "title"}
    rows = [
        (Cell(name, marks.get(name, "")), Cell(number(value, places), marks.get(name, "")))
        for name, value in entries
    ]
    rows.append((Cell("energy balance error"), Cell(f"{ledger.error:.1e}")))
    return Table("Energy", (Column("", right=False), Column("[J]")), tuple(rows))
