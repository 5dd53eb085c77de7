"""What is said of a stop: its table; how that looks is in `tables`, what is odd in `oddities`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import NamedTuple

import numpy as np

from ...errors import printable
from ...tables.number_format import Units, joint_value, milliseconds, number, numbers, units_of
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
from ..brakes.brakes import assumption_lines
from ..brakes.laws import LAWS
from .prepared_robot import payload_of
from .result import StopResult
from .result_document import PLANNING_AID
from .travel import JointStop

_AMPLE = 1000.0
"""A holding margin above it is not told more exactly: the load is nothing but rounding."""
_DETOUR = 0.005
"""A path to and fro is told apart from the angle if it is longer by this part."""
_THIRDS = ("reaction", "braking", "total")
_STATES: Mapping[str, Mark] = {"held": "", "free": "caution", "moving": "bad"}


def stop_table(
    result: StopResult, facts: Iterable[tuple[str, str]] = (), sections: Iterable[Section] = ()
) -> Report:
    """The table of a stop."""
    joints = list(result.joints.values())
    blocks: list[Block] = [_headline(result, facts)]
    for sort, units in _sorts(result, joints):
        which = "" if len(sort) == len(joints) else f" that {_KINDS[units.shown]}"
        blocks += [_travels(result, sort, units, which), _loads(result, sort, units, which)]
    blocks += [
        _tool(result),
        *result.intervals.blocks(),
        _energy(result),
        *section_blocks(result, sections),
    ]
    blocks.append(Notes.of("Warnings", result.warnings, "caution"))
    assumed = assumption_lines(result.assumptions, result.category.number)
    blocks.append(Notes("Assumptions and sources", assumed))
    return Report.of(headline_of(result), blocks, PLANNING_AID)


_KINDS = {"deg": "turn", "mm": "slide"}


def _sorts(result: StopResult, joints: Sequence[JointStop]) -> list[tuple[list[JointStop], Units]]:
    """Joints that turn and joints that slide: their numbers have different units."""
    sorts: dict[Units, list[JointStop]] = {}
    for joint in joints:
        sorts.setdefault(units_of(result.robot, joint.name), []).append(joint)
    return [(sort, units) for units, sort in sorts.items()]


# -- headline -----------------------------------------------------------------------------------


def headline_of(result: StopResult) -> Cell:
    """What is to be said of a stop ahead of all else: outcome, time, guesses."""
    name = printable(result.robot.name)
    time = milliseconds(result.stopping_time)
    if result.outcome == "stopped":
        band = band_of(result, "stopping_time")
        likely = f" ({band})" if band else ""
        return result.guesses.title(f"{name}: stopped after {time}{likely}, and holds", "good")
    bad = "DOES NOT HOLD" if result.outcome == "does not hold" else f"NOT STOPPED within {time}"
    return result.guesses.title(f"{name}: {bad}", "bad")


def band_of(result: StopResult, output: str) -> str:
    """The interval of an outcome, if there is one."""
    return result.intervals[output].text if output in result.intervals else ""


def _headline(result: StopResult, facts: Iterable[tuple[str, str]]) -> KeyValues:
    """Category, times, and what was stopped."""
    signal, brakes = result.chain, result.brakes
    reaction = min(result.reaction_time, result.stopping_time)
    braking = result.stopping_time - reaction
    split = f"{milliseconds(reaction)} reaction + {milliseconds(braking)} braking"
    category = result.category
    how = category.title
    if category.on_path:
        how += "; on the path, all joints together"
    if category.function is not None:
        how += f" ({category.function})"
    if category.time_limit is not None:
        when = "in any case" if category.brakes_at_rest or category.function is None else "exactly"
        how += f"; brakes after {milliseconds(category.time_limit)} {when}"
    sensor, controller = milliseconds(signal.sensor), milliseconds(signal.controller)
    command = f"command at {milliseconds(signal.command)}"
    if not category.controlled:
        command += f", drives off at {milliseconds(signal.command + signal.drive_off)}"
    entries: list[tuple[str, str | Cell]] = [
        ("stopping time", f"{milliseconds(result.stopping_time)} = {split}"),
        ("category", how),
        *_slowing(result),
        ("power", _power(result)),
        ("signal chain", f"sensor {sensor} + controller {controller} = {command}"),
        ("payload", _payload(result)),
        ("gravity", f"({', '.join(f'{x:g}' for x in result.robot.gravity)}) m/s^2"),
        ("brakes", _brakes(result)),
        *facts,
    ]
    if result.guesses:
        entries.insert(1, ("guesses", Cell(result.guesses.details, "caution")))
    for interval in result.intervals:
        if interval.output == "stopping_time":
            level = f"{100.0 * result.intervals.level:g} % interval"
            entries.insert(1, (level, f"{interval.text}, by {interval.made_by}"))
    entries += [("fault", Cell(printable(fault), "caution")) for fault in brakes.faults]
    return KeyValues.of("Stop", entries)


def _power(result: StopResult) -> str:
    """When the power goes, and when the brakes are closed."""
    off, closed = result.power_off, result.brakes_closed
    return ("stays on" if off is None else f"off at {milliseconds(off)}") + (
        "" if closed is None else f", brakes closed at {milliseconds(closed)}"
    )


def _slowing(result: StopResult) -> Iterator[tuple[str, str]]:
    """By which laws drives slow down."""
    category, drives = result.category, result.brakes.motorized(result.robot)
    if category.controlled:
        own = (result.brakes.joints[name] for name in drives if name in result.brakes.joints)
        laws = [category.law] if category.law else [LAWS[brake.law] for brake in own]
        yield "drives", " or ".join(dict.fromkeys(law.title for law in laws))


def _payload(result: StopResult) -> str:
    load = payload_of(result.history.train.robot, result.robot)
    if load is None:
        return "none"
    centre = ", ".join(f"{1e3 * x:.4g}" for x in np.round(np.asarray(load.com), 9) + 0.0)
    return f"{load.mass:g} kg, centre of mass at ({centre}) mm in {load.frame}"


def _brakes(result: StopResult) -> str | Cell:
    source = result.brakes.source
    if source == "template":
        guessed = "ALL GUESSED from what the robot's file says: nobody has given a number"
        return Cell(guessed + _band(result), "caution")
    return (source or "given in Python") + _band(result)


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


class _Columns(NamedTuple):
    """Columns with numbers of joints, all with the same number of decimals."""

    headings: tuple[str, ...]
    values: Callable[[JointStop], tuple[float, ...]]


def _rows(joints: Sequence[JointStop], parts: Sequence[_Columns]) -> list[list[str | Cell]]:
    rows: list[list[str | Cell]] = [[joint.name] for joint in joints]
    for part in parts:
        texts = iter(numbers((x for joint in joints for x in part.values(joint)), least=1))
        for row in rows:
            row += islice(texts, len(part.headings))
    return rows


def _travels(result: StopResult, joints: Sequence[JointStop], units: Units, which: str) -> Table:
    """Times and paths of joints, from the signal on."""
    robot, q0, per, shown = result.robot, result.run.q[0], units.factor, units.shown
    path = "angle" if shown == "deg" else "displacement"
    parts = [
        _Columns((f"start [{shown}]",), lambda j: (per * joint_value(robot, j.name, q0),)),
        _Columns(
            tuple(f"time | {part} [ms]" for part in _THIRDS),
            lambda j: (1e3 * j.reaction_time, 1e3 * j.braking_time, 1e3 * j.time),
        ),
        _Columns(
            tuple(f"{path} | {part} [{shown}]" for part in _THIRDS),
            lambda j: (per * j.reaction_angle, per * j.braking_angle, per * j.angle),
        ),
    ]
    longest = max((joint.travel for joint in joints), default=0.0)
    if any(joint.travel - abs(joint.angle) > _DETOUR * longest for joint in joints):
        parts.append(_Columns((f"travel [{shown}]",), lambda j: (per * j.travel,)))
    headings = ("<joint", *chain.from_iterable(part.headings for part in parts))
    title = f"Joints{which}: time and {path} from the signal"
    return Table.of(title, headings, _rows(joints, parts))


def _loads(result: StopResult, joints: Sequence[JointStop], units: Units, which: str) -> Table:
    """Speeds, torques, energies, and what holds at the end."""
    robot, v0, per = result.robot, result.run.v[0], units.factor
    force = "torque" if units.torque == "N m" else "force"

    def speeds(joint: JointStop) -> tuple[float, float]:
        signal = float(v0[robot.coordinates(joint.name).v.start])
        return per * signal, per * joint.peak_speed

    parts = [
        _Columns(tuple(f"speed | {at} [{units.shown}/s]" for at in ("signal", "peak")), speeds),
        _Columns((f"peak {force} [{units.torque}]",), lambda j: (j.peak_torque,)),
        _Columns(("energy [J]",), lambda j: (j.dissipated,)),
    ]
    if any(joint.impulse for joint in joints):
        parts.append(_Columns((f"impulse [{units.torque} s]",), lambda j: (j.impulse,)))
    rows = _rows(joints, parts)
    for row, joint in zip(rows, joints, strict=True):
        state = Cell(joint.state, _STATES[joint.state])
        row += [_gear(joint), str(joint.slips), _margin(joint), state]
    headings = ("<joint", *chain.from_iterable(part.headings for part in parts))
    ends = ("gear | utilisation [%]", "slips", "holding | margin", "<holding | state")
    return Table.of(f"Joints{which}: loads and holding", (*headings, *ends), rows)


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


# -- tool and energy ----------------------------------------------------------------------------


def _tool(result: StopResult) -> Table:
    """The path of the tool."""
    point = result.point()
    lengths = (point.reaction_length, point.braking_length, point.length, point.displacement)
    paths = numbers(1e3 * length for length in lengths)
    headings = ("<frame", *(f"path | {part} [mm]" for part in _THIRDS), "displacement [mm]")
    row = (point.frame, *paths, *numbers([1e3 * point.peak_speed]))
    return Table.of("Tool", (*headings, "peak speed [mm/s]"), [row])


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
    marks: dict[str, Mark] = {"in": "title", "out": "title"}
    texts = numbers((value for _, value in entries), least=1, most=6)
    rows = [
        [Cell(text, marks.get(name, "")) for text in (name, value)]
        for (name, _), value in zip(entries, texts, strict=True)
    ]
    rows.append([Cell("energy balance error"), Cell(f"{ledger.error:.1e}")])
    return Table("Energy", (Column("", right=False), Column("[J]")), tuple(map(tuple, rows)))
