"""The report of a stop: one HTML file with numbers, charts, assumptions and a replay.

Everything in it comes from the result; nothing is fetched when it is opened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...boundary.files import write_text
from ...errors import PinloopError
from ...safety.brakes.brakes import Assumption, Brakes
from ...safety.brakes.joint_brake import CHAIN_PARAMETERS, JOINT_PARAMETERS, quantity
from ...safety.space.swept import SweptVolume, swept_volume
from ...safety.stopping.export import brakes_record, robot_record, versions
from ...safety.stopping.intervals import Guesses
from ...safety.stopping.result import StopResult
from ...safety.stopping.result_document import PLANNING_AID
from ...safety.stopping.stop_table import band_of, stop_table
from ...safety.stopping.travel import JointStop
from ...tables.number_format import decimals, listed, milliseconds, number, units_of
from ...tables.report import KeyValues, Markup, Section, Table, join_units, render, section_blocks
from ..plots.svg import figure
from ..scene.commands import viewer_script
from ..scene.motion import frame_times
from ..scene.replay import MESH_BYTES, Additions, Layer, Trace, make_replay
from .stop_curves import StopCurves, energy_flow, happenings, heat_by_joint, shown_until, stacked

__all__ = ["page_of", "write_report"]

_REACTION, _BRAKING = (0.45, 0.49, 0.55, 1.0), (0.80, 0.12, 0.45, 1.0)
_VOLUME = (0.10, 0.55, 0.45, 0.20)
_TRIANGLES = 40_000
"""What a picture of a volume needs; more are not worth the bytes."""
_MOST = 12
"""Inputs that a stop depends on most."""
_ABREAST = 6
"""So many joints stand beside each other in a table of parameters."""


def write_report(result: StopResult, path: str | Path, **options: Any) -> Path:
    """Write the report of a stop as one HTML file that any browser shows without a network.

    The same stop gives the same bytes; ``options`` are those of `page_of`.
    """
    return write_text(path, page_of(result, **options))


def page_of(
    result: StopResult,
    *,
    swept: bool = False,
    facts: Iterable[tuple[str, str]] = (),
    sections: Iterable[Section] = (),
) -> str:
    """The text of a report; its tables are those of the table of the stop.

    ``swept``: whether the replay shows the volume that the robot sweeps; ``facts``: further lines
    about what was stopped: a name and what it is; ``sections``: further parts of one's own.
    """
    own = section_blocks(result, sections)
    blocks = stop_table(result, facts).blocks
    curves = StopCurves(result)
    lanes, phases = curves.lanes()
    energies = (
        stacked("Where the energy came from, and where it went", energy_flow(result)),
        stacked("Heat, joint by joint", heat_by_joint(result)),
    )
    return render(
        "show/stop_report/templates/stop.html",
        result=result,
        planning_aid=PLANNING_AID,
        badge=_badge(result),
        cards=list(_cards(result)),
        motion=make_motion(result, swept=swept),
        depends=_dependence(result),
        facts=[block for block in blocks if isinstance(block, KeyValues)],
        tables=[block for block in blocks if isinstance(block, Table)],
        curves=curves,
        figure=figure,
        lanes=figure(lanes, phases) if lanes.rows else "",
        energies=[figure(chart, parts) for chart, parts in energies if parts],
        events=happenings(result),
        own=own,
        provenance=provenance_of(result.assumptions, result.brakes),
        versions=versions(),
        records=[
            ("robot", robot_record(result.history.train.robot)),
            ("brakes", brakes_record(result.brakes, result.assumptions)),
        ],
        viewer=viewer_script(),
    )


def _dependence(result: StopResult) -> tuple[Table | None, tuple[str, ...]]:
    """What the stop depends on, and what to keep in mind of it."""
    try:
        sensitivity = result.sensitivity(["path", "stopping_time"])
    except PinloopError as error:
        return None, (str(error),)
    return sensitivity.block("path", "stopping_time", most=_MOST), sensitivity.warnings


def _badge(result: StopResult) -> Badge:
    beyond = (passed.joint for passed in result.joint_limits() if passed.kind == "position")
    badges = {
        "stopped": Badge("good", "STOPPED", " and holds"),
        "does not hold": Badge("bad", "DOES NOT HOLD", ""),
        "time-out": Badge("bad", "NOT STOPPED", " within the time computed"),
    }
    badge = badges[result.outcome].beyond(beyond, "")
    if band := band_of(result, "stopping_time"):
        badge = badge._replace(more=f" ({band}){badge.more}")
    return badge.guessed(result.guesses)


def _cards(result: StopResult) -> Iterator[Card]:
    reaction = min(result.reaction_time, result.stopping_time)
    braking = result.stopping_time - reaction
    moving = any(joint.state == "moving" for joint in result.joints.values())
    name = "time computed" if moving else "time to standstill"
    value, unit = milliseconds(result.stopping_time).split(" ")
    yield Card(
        "stopping time" if result.outcome == "stopped" else name,
        value,
        unit,
        f"{milliseconds(reaction)} reaction + {milliseconds(braking)} braking"
        + _likely(result, "stopping_time"),
    )
    yield _tool(result)
    joints = list(result.joints.values())
    if joints:
        yield _worst(result, joints)
    known = [joint for joint in joints if joint.gear_use is not None]
    if known:
        gear = max(known, key=lambda joint: joint.gear_use or 0.0)
        use, unit = gear.gear_use or 0.0, units_of(result.robot, gear.name).torque
        more = f"{gear.name}: {_four(gear.peak_gear_torque)} of {_four(gear.gear_limit)} {unit}"
        mark = "bad" if use > 1 else ""
        yield Card("highest gear utilisation", number(100 * use, 0), "%", more, mark)
    loaded = [joint for joint in joints if joint.load]
    if loaded and result.outcome != "time-out":
        yield _holding(result, min(loaded, key=lambda joint: joint.margin))


def _likely(result: StopResult, output: str) -> str:
    """The interval of an outcome, after what is said of it."""
    band = band_of(result, output)
    return f"; {100.0 * result.intervals.level:g} % interval: {band}" if band else ""


def _tool(result: StopResult) -> Card:
    point = result.point()
    paths = [1e3 * path for path in (point.length, point.reaction_length, point.braking_length)]
    places = decimals(paths, most=3)
    length, reaction, braking = (number(path, places) for path in paths)
    speed = 1e3 * point.peak_speed
    peak = number(speed, decimals([speed], most=3))
    more = f"{reaction} mm reaction + {braking} mm braking; peak speed {peak} mm/s"
    more += _likely(result, "path")
    return Card(f"tool path ({point.frame})", length, "mm", more)


def _worst(result: StopResult, joints: list[JointStop]) -> Card:
    """The joint that moves farthest, and the one that comes to rest last."""
    turning = [j for j in joints if units_of(result.robot, j.name).shown == "deg"]
    worst = max(turning or joints, key=lambda joint: abs(joint.angle))
    last = max(joints, key=lambda joint: joint.time)
    units = units_of(result.robot, worst.name)
    value = units.factor * worst.angle
    text = f"{worst.name} moves farthest"
    moving = [joint.name for joint in joints if joint.state == "moving"]
    if moving:
        text += f"; still in motion: {listed(moving)}"
    else:
        text += " and" if last is worst else f"; {last.name}"
        text += f" comes to rest last, after {milliseconds(last.time)}"
    return Card("worst joint", number(value, decimals([value], most=3)), units.shown, text)


def _holding(result: StopResult, joint: JointStop) -> Card:
    """The joint with the least reserve against gravity."""
    unit = units_of(result.robot, joint.name).torque
    hold = "a tooth" if joint.hold == float("inf") else f"{_four(joint.hold)} {unit}"
    return Card(
        "smallest holding margin",
        ">1000" if joint.margin > 1000.0 else number(joint.margin, 2),
        "\N{MULTIPLICATION SIGN} load",
        f"{joint.name}: held by {hold}, load {_four(abs(joint.load))} {unit}",
        "bad" if joint.margin < 1 else "",
    )


def _four(value: float | None) -> str:
    return "-" if value is None else number(value, decimals([value]))


# -- what pages of stops and of studies share ------------------------------------------------------


class Badge(NamedTuple):
    """What became of a stop or a study: a mark for colours, a word, and the rest."""

    mark: str
    word: str
    more: str

    @property
    def icon(self) -> str:
        """A sign for those who do not see the colour."""
        if self.mark == "good":
            return "\N{CHECK MARK}"
        return "\N{WARNING SIGN}\N{VARIATION SELECTOR-15}"

    def beyond(self, joints: Iterable[str], who: str) -> Badge:
        """The same with joints that get beyond their limits."""
        names = list(dict.fromkeys(joints))
        if self.mark != "good" or not names:
            return self
        return Badge(
            "warn", self.word, f"{self.more}, but {who}beyond the limits of {listed(names)}"
        )

    def guessed(self, guesses: Guesses) -> Badge:
        """The same with guesses among the brake data."""
        if not guesses:
            return self
        mark = "warn" if self.mark == "good" else self.mark
        return Badge(mark, self.word, f"{self.more}; {guesses.headline}")


@dataclass(frozen=True)
class Card:
    """A number that counts, with a line below it, and a mark for colours ("bad" or nothing).

    The line may begin with words and with the case of a study in which the number was.
    """

    name: str
    value: str
    unit: str
    more: str
    mark: str = ""
    case: int | None = None
    before: str = ""

    @property
    def together(self) -> str:
        """The line, whose numbers stay with their units where it is broken."""
        return join_units(self.more)


# -- the replay of a stop -------------------------------------------------------------------------


@dataclass(frozen=True)
class Motion:
    """The replay of a stop, the tool whose path it shows, and sentences below it."""

    player: Markup
    tool: str
    remarks: tuple[str, ...]


def make_motion(
    result: StopResult,
    *,
    swept: bool = False,
    shared: dict[str, int] | None = None,
    layers: Sequence[Layer] = (),
    frames: int | None = None,
    mesh_bytes: int = MESH_BYTES,
) -> Motion:
    """Make the replay of a stop: start pose, tool path, who is at rest, and the volume swept.

    ``shared`` are the commands that several replays of one page have in common, ``layers`` further
    surfaces that stand still, ``frames`` and ``mesh_bytes`` what the page may take.
    """
    remarks, layers = [], list(layers)
    t = frame_times(result.run, shown_until(result))
    if frames is not None and len(t) > frames:
        t = t[np.linspace(0, len(t) - 1, frames).round().astype(int)]
    volume = swept_volume(result.run, max_triangles=_TRIANGLES) if swept else None
    if volume is not None:
        mesh = volume.mesh()
        layers.append(Layer("volume swept", mesh.vertices, mesh.faces, _VOLUME))
    reaction = min(result.reaction_time, float(result.run.t[-1]))
    traces = (
        Trace(result.tool, _REACTION, end=reaction),
        Trace(result.tool, _BRAKING, start=reaction),
    )
    replay = make_replay(
        result.run,
        times=t,
        marked=result.joints,
        additions=Additions(traces=traces, layers=layers),
        mesh_bytes=mesh_bytes,
    )
    if replay.cell > 0:
        size = f"{1e3 * replay.cell:.2g} mm"
        remarks.append(f"Meshes are simplified to {size} to keep this file small.")
    if volume is not None:
        remarks.append(_volume_remark(volume))
    player = replay.player(trace_label="tool path", ghost_label="pose at the signal", shared=shared)
    return Motion(player, result.tool, tuple(remarks))


def _volume_remark(volume: SweptVolume) -> str:
    ends = (
        f"{axis} = {number(low, 3)} to {number(high, 3)} m"
        for axis, low, high in zip("xyz", *volume.bounds, strict=True)
    )
    text = (
        f"The volume swept holds the robot at every instant and is nowhere more than "
        f"{1e3 * volume.excess:.1f} mm too large, meshes counting as their convex hulls. "
        f"It reaches from {', '.join(ends)} in the world."
    )
    if volume.bare:
        text += f" Bodies without shapes are not in it: {', '.join(volume.bare)}."
    return text


# -- provenance -----------------------------------------------------------------------------------


class Source(NamedTuple):
    """Where a number comes from: its name for colours, a letter, words."""

    name: str
    letter: str
    words: str


_SOURCES = {
    source.name: source
    for source in (
        Source("measured", "M", "measured"),
        Source("published", "P", "published"),
        Source("fitted", "F", "fitted to stops"),
        Source("guess", "G", "guessed"),
        Source("default", "\N{EN DASH}", "not given: default taken"),
    )
}


class Row(NamedTuple):
    """A parameter, its unit, and its values with their sources; None where it has no value."""

    name: str
    unit: str
    cells: Sequence[tuple[str, Source | None]]


@dataclass(frozen=True)
class Provenance:
    """Every number that a result rests on, with where it comes from.

    Tables are those of brakes, gears, friction and drives: title, joints, and rows. Notes are
    remarks in the brakes file.
    """

    counts: Sequence[tuple[Source, int]]
    chain: Sequence[Row]
    tables: Sequence[tuple[str, Sequence[str], Sequence[Row]]]
    notes: Sequence[str]


def provenance_of(assumptions: Sequence[Assumption], brakes: Brakes) -> Provenance:
    """Sort numbers by what they belong to; the remarks are those of the brakes."""
    counts = Counter(_source(row) for row in assumptions)
    table = {(row.parameter, row.joint): row for row in assumptions if row.joint}
    joints = list(dict.fromkeys(joint for _, joint in table))
    tables = []
    for first in range(0, len(joints), _ABREAST):
        some = joints[first : first + _ABREAST]
        title = "Brakes, gears, friction and drives"
        title += "" if len(joints) <= _ABREAST else f": {some[0]} to {some[-1]}"
        tables.append((title, some, list(_parameters(some, table))))
    notes = [f"{name}: {note}" for name, note in brakes.chain.notes.items()]
    for joint, brake in brakes.joints.items():
        notes += [f"{joint}, {name}: {note}" for name, note in brake.notes.items()]
    return Provenance(
        [(source, counts[source]) for source in _SOURCES.values()],
        [_row([row], CHAIN_PARAMETERS) for row in assumptions if not row.joint],
        tables,
        notes,
    )


def _parameters(joints: Sequence[str], table: dict[tuple[str, str], Assumption]) -> Iterator[Row]:
    for parameter in JOINT_PARAMETERS:
        rows = [table.get((parameter, joint)) for joint in joints]
        if any(rows):
            yield _row(rows, JOINT_PARAMETERS)


def _row(rows: Sequence[Assumption | None], parameters: Any) -> Row:
    """Values of one parameter beside each other; their unit, if it is one, stands ahead."""
    (parameter,) = {row.parameter for row in rows if row is not None}
    values = [
        None if row is None else quantity(row.value, row.unit, parameters[parameter])
        for row in rows
    ]
    units = {value[1] for value in values if value} - {""}
    common = units.pop() if len(units) == 1 else ""
    cells: list[tuple[str, Source | None]] = []
    for row, value in zip(rows, values, strict=True):
        if row is None or value is None:
            cells.append(("", None))
        else:
            text, unit = value
            cells.append((text if unit in (common, "") else f"{text} {unit}", _source(row)))
    return Row(parameter.replace("_", " "), common, cells)


def _source(row: Assumption) -> Source:
    return _SOURCES[row.source if row.given or row.source != "guess" else "default"]
