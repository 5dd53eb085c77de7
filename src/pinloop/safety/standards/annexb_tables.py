"""What the tables of `annexb` say: stops, poses, definitions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ...errors import printable
from ...tables.number_format import Units, milliseconds, number, numbers, units_of
from ...tables.report import Block, Cell, Column, KeyValues, Notes, Report, Table, render
from ...units import column_name
from ..brakes.laws import LAWS
from ..brakes.template import driven_joints
from ..stopping.result_document import PLANNING_AID
from .annexb import AnnexB
from .axis_stops import AxisStop

_THIRDS = ("reaction", "braking", "total")
_ALIKE = 1e-4
"""Part by which times and distances of cells may differ and be alike."""


def table_report(annex: AnnexB, category: int, axis: str | None = None) -> Report:
    """The tables of a category, for one axis or all; see `AnnexB.table`."""
    axes = annex.axes if axis is None else (axis,)
    what = f"stops of category {category}" + ("" if axis is None else f", axis {axis}")
    alike = Notes.of("Cells that are alike", _alike(annex, category, axes))
    blocks: list[Block] = [*_tables(annex, category, axes), alike]
    return Report.of(annex.guesses.title(f"{annex.robot.name}: {what}"), blocks, PLANNING_AID)


def whole_report(annex: AnnexB) -> Report:
    """All tables, and below them poses and definitions."""
    blocks: list[Block] = [
        _facts(annex),
        *(table for category in annex.shares for table in _tables(annex, category, annex.axes)),
        _intervals(annex),
        Notes.of(
            "Cells that are alike",
            (text for category in annex.shares for text in _alike(annex, category, annex.axes)),
        ),
        _poses(annex),
        Notes.of("Definitions", _definitions(annex)),
        Notes.of("Remarks", _remarks(annex), "caution"),
    ]
    title = f"{annex.robot.name}: computed stopping times and distances"
    return Report.of(annex.guesses.title(title), blocks, PLANNING_AID)


def csv_rows(annex: AnnexB) -> list[dict[str, str | float]]:
    """The stops, a row each, units in the names; what has another unit, or is unknown, is empty."""
    rows = []
    for stop in annex.stops:
        si = units_of(annex.robot, stop.axis).si
        row: dict[str, str | float] = {"axis": stop.axis, "category": stop.category}
        for share in ("speed_share", "extension_share", "payload_share"):
            row[share] = getattr(stop, share)
        for unit in ("rad", "m"):
            mine = unit == si
            row |= {
                f"speed_{unit}_per_s": stop.speed if mine else "",
                f"reaction_distance_{unit}": _known(stop.reaction_distance) if mine else "",
                f"stopping_distance_{unit}": _known(stop.distance) if mine else "",
            }
        passed = (f"{item.joint} {item.side} by {item.by:.4g}" for item in stop.passed)
        row |= {
            "reaction_time_s": _known(stop.reaction_time),
            "stopping_time_s": _known(stop.time),
            "extension_m": stop.pose.distance,
            "extension_reached": stop.pose.reached,
            "payload_kg": stop.mass,
            "outcome": stop.outcome,
            "problem": stop.problem,
            "limits_passed": "; ".join(passed),
            "last": stop.last,
        }
        for name, value in stop.pose.joints.items():
            row[column_name(name, "pose", unit=units_of(annex.robot, name).si)] = value
        rows.append(row)
    return rows


def _tables(annex: AnnexB, category: int, axes: Sequence[str]) -> Iterator[Table]:
    """One row per axis where there is one stop per axis, else a grid per axis and payload."""
    if len(annex.shares[category]) > 1:
        for axis in axes:
            for share in reversed(annex.shares[category]):
                yield _grid(annex, category, axis, share)
        return
    kinds: dict[Units, list[str]] = {}
    for axis in axes:
        kinds.setdefault(units_of(annex.robot, axis), []).append(axis)
    for units, names in kinds.items():
        yield _summary(annex, category, names, units)


def _summary(annex: AnnexB, category: int, axes: Sequence[str], units: Units) -> Table:
    """One stop per axis, split into reaction and braking."""
    (share,) = annex.shares[category]
    by_axis = {stop.axis: stop for stop in annex.select(category=category)}
    stops = [by_axis.get(axis) for axis in axes]
    travels = _texts([_thirds(s, "reaction_distance", "distance", units.factor) for s in stops])
    times = _texts([_thirds(s, "reaction_time", "time", 1e3) for s in stops])
    fine = not annex.guesses
    rows: list[tuple[str | Cell, ...]] = [
        (
            axis,
            f"{units.factor * share * annex.speeds[axis]:.4g}",
            *travel,
            *time,
            _outcome(stop, fine=fine),
        )
        for axis, stop, travel, time in zip(axes, stops, travels, times, strict=True)
    ]
    headings = ["<axis", f"speed [{units.shown}/s]"]
    headings += [f"stopping distance | {part} [{units.shown}]" for part in _THIRDS]
    headings += [*(f"stopping time | {part} [ms]" for part in _THIRDS), "<outcome"]
    title = f"Category {category}: {_percent(share)} of speed, extension and payload"
    return Table.of(title, headings, rows)


def _grid(annex: AnnexB, category: int, axis: str, share: float) -> Table:
    """Speeds down, extensions across, for one payload."""
    shares, units = annex.shares[category], units_of(annex.robot, axis)
    by_case = {
        (stop.speed_share, stop.extension_share): stop
        for stop in annex.select(category=category, axis=axis, payload_share=share)
    }
    table = [[by_case.get((speed, extension)) for extension in shares] for speed in shares]
    travels = _texts([[_part(stop, "distance", units.factor) for stop in row] for row in table])
    times = _texts([[_part(stop, "time", 1e3) for stop in row] for row in table])
    rows = []
    for speed, row, travel, time in zip(shares, table, travels, times, strict=True):
        rate = f"{units.factor * speed * annex.speeds[axis]:.3g} {units.shown}/s"
        cells: list[str | Cell] = [
            text if stop is None or stop.outcome == "stopped" else _outcome(stop)
            for stop, text in zip(row, travel, strict=True)
        ]
        rows.append((f"{_percent(speed)} ({rate})", *cells, *time))
    heads = [f"ext. {_percent(extension)}" for extension in shares]
    headings = ["<speed", *(f"stopping distance | {head} [{units.shown}]" for head in heads)]
    headings += [f"stopping time | {head} [ms]" for head in heads]
    load = f"payload {_percent(share)} ({share * annex.payload.mass:.4g} kg)"
    return Table.of(f"Category {category}, axis {axis}, {load}", headings, rows)


def _thirds(stop: AxisStop | None, first: str, whole: str, factor: float) -> list[float]:
    """Reaction, braking, total."""
    reaction, total = _part(stop, first, factor), _part(stop, whole, factor)
    return [reaction, total - reaction, total]


def _part(stop: AxisStop | None, name: str, factor: float) -> float:
    return math.nan if stop is None else factor * float(getattr(stop, name))


def _texts(table: list[list[float]]) -> list[list[str]]:
    """Numbers with the same decimals everywhere; what is not known is a dash."""
    texts = numbers((x for row in table for x in row), least=1)
    return np.reshape(texts, np.shape(table)).tolist()


def _outcome(stop: AxisStop | None, *, fine: bool = True) -> Cell:
    if stop is None:
        return Cell("no such pose", "caution")
    if stop.outcome != "stopped":
        return Cell(stop.outcome, "bad")
    last = "" if stop.last == stop.axis else f"; {stop.last} comes to rest last"
    return Cell(printable(f"stopped{last}"), "good" if fine else "")


def _percent(share: float) -> str:
    return f"{100 * share:.4g} %"


def _known(value: float) -> str | float:
    return "" if math.isnan(value) else value


def _facts(annex: AnnexB) -> KeyValues:
    load, settings = annex.payload, annex.settings
    centre = ", ".join(f"{1e3 * x:.4g}" for x in np.asarray(load.com, dtype=float) + 0.0)
    chain = settings.brakes.chain
    entries = [
        ("edition", annex.edition.cited),
        ("payload", f"{load.mass:g} kg, centre at ({centre}) mm in {load.frame}"),
        ("brakes", settings.brakes.source or "given in Python"),
        (
            "signal chain",
            f"sensor {milliseconds(chain.sensor)}, controller {milliseconds(chain.controller)}, "
            f"drives off {milliseconds(chain.drive_off)} after the command",
        ),
        ("gravity", f"({', '.join(f'{x:g}' for x in settings.gravity)}) m/s^2"),
    ]
    faults = [("fault", Cell(printable(fault), "caution")) for fault in settings.brakes.faults]
    return KeyValues.of("Robot", [*entries, *faults])


def _intervals(annex: AnnexB) -> Table:
    """Of the longest stop of each axis, as brake data are uncertain."""
    rows = []
    for stop, result in annex.longest:
        bands = result.bands(of=["stopping_time", f"angle:{stop.axis}"])
        if bands:
            shares = (stop.speed_share, stop.extension_share, stop.payload_share)
            name = f"category {stop.category}, {stop.axis}"
            case = ", ".join(map(_percent, shares))
            time, distance = bands
            rows.append((name, case, time.text, distance.text, time.made_by))
    headings = ("<longest stop", "<speed, extension, payload", "<time", "<distance", "<by")
    return Table.of("95 % intervals, as brake data are uncertain", headings, rows)


def _poses(annex: AnnexB) -> Table:
    """The poses at the signal, a column per driven joint."""
    units = {name: units_of(annex.robot, name) for name in driven_joints(annex.robot)}
    rows = []
    for axis, extension in annex.extensions.items():
        for pose in extension.poses.values():
            sign, given = "+" if pose.direction > 0 else "-", ", given" if pose.given else ""
            case, moves = f"{axis}, {100 * pose.reached:.1f} %", f"{sign}, {pose.motion}{given}"
            joints = (number(units[name].factor * x, 1) for name, x in pose.joints.items())
            rows.append((case, number(1e3 * pose.distance, 1), moves, *joints))
    table = Table.of("Poses at the signal", ("<axis, extension", "distance [mm]", "<moves"), rows)
    group = "pose" if len(set(units.values())) == 1 else ""  # what is under it has one unit
    columns = (Column(printable(name), unit.shown, group) for name, unit in units.items())
    return replace(table, columns=(*table.columns, *columns))


def _definitions(annex: AnnexB) -> list[str]:
    """What the numbers mean."""
    text = render(
        "safety/standards/templates/definitions.txt",
        annex=annex,
        milliseconds=milliseconds,
        number=number,
        units_of=units_of,
    )
    return text.splitlines()


def _alike(annex: AnnexB, category: int, axes: Sequence[str]) -> Iterator[str]:
    """Why payload and extension change nothing, where they do not."""
    for axis in axes:
        by_speed: dict[float, list[AxisStop]] = {}
        for stop in annex.select(category=category, axis=axis):
            by_speed.setdefault(stop.speed_share, []).append(stop)
        cells = [[(stop.time, stop.distance) for stop in stops] for stops in by_speed.values()]
        if min(map(len, cells), default=0) < 2:
            continue
        if not all((np.ptp(some, axis=0) <= _ALIKE * np.max(some, axis=0)).all() for some in cells):
            continue
        brake = annex.settings.brakes.joints[axis]
        (own,) = (each for each in annex.categories if each.number == category)
        law = own.law or LAWS[brake.law]
        why = f"its drive slows down {law.title}, and has the torque for it in each of them"
        if brake.drive_torque is None:
            why = (
                f"its drive slows down {law.title} whatever torque that takes; give its "
                "drive_torque in the brakes file to see whether it can"
            )
        yield f"axis {axis}, category {category}: payload and extension change nothing: {why}"


def _remarks(annex: AnnexB) -> Iterator[str]:
    """What is missing or odd."""
    parts = sorted({share for shares in annex.shares.values() for share in shares})
    for axis, extension in annex.extensions.items():
        absent = [_percent(share) for share in parts if share not in extension.poses]
        if absent:
            least = extension.least / extension.largest if extension.largest > 0 else 1.0
            yield (
                f"axis {axis} has no pose with an extension of {', '.join(absent)}: its least is "
                f"{_percent(round(least, 4))}"
            )
    for stop in annex.stops:
        if stop.outcome != "stopped":
            case = ", ".join(_percent(x) for x in (stop.speed_share, stop.extension_share))
            text = f"{stop.outcome}{': ' if stop.problem else ''}{stop.problem}"
            yield (
                f"category {stop.category}, axis {stop.axis}, speed and extension {case}, payload "
                f"{_percent(stop.payload_share)}: {text}"
            )
    yield from _limits(annex)
    brakes = annex.settings.brakes
    if brakes.robot and brakes.robot != annex.robot.name:
        yield f"the brakes were made for robot '{brakes.robot}', not for '{annex.robot.name}'"
    if bare := brakes.uncovered(annex.robot):
        yield f"no brake, gear or drive is given for {', '.join(bare)}"
    yield from brakes.warnings
    yield from annex.edition.notes


def _limits(annex: AnnexB) -> Iterator[str]:
    """Limits of joints that stops pass, with the worst of each."""
    worst: dict[tuple[str, str, str], tuple[int, float]] = {}
    for stop in annex.stops:
        for passage in stop.passed:
            key = stop.axis, passage.joint, passage.side
            count, by = worst.get(key, (0, 0.0))
            worst[key] = count + 1, max(by, passage.by)
    for (axis, joint, side), (count, by) in worst.items():
        which = "a stop passes" if count == 1 else f"{count} stops pass"
        at, amount = annex.robot.coordinates(joint), f"{by:.3g}"
        if at.nv == 1:
            units = units_of(annex.robot, joint)
            amount = f"{number(units.factor * by, 1)} {units.shown}"
        yield (
            f"axis {axis}: {which} the {side} limit of joint '{joint}' by {amount} at most; end "
            "stops are not part of the computation"
        )
