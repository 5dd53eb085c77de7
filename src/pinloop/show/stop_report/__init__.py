"""The report of a stop: one HTML file with numbers, charts, assumptions and a replay.

Everything in it comes from the result; nothing is fetched when it is opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from ...boundary.files import write_text
from ...safety.stopping.assumptions import PLANNING_AID
from ...safety.stopping.export import brakes_record, robot_record, versions
from ...safety.stopping.result import StopResult
from ...safety.stopping.stop_table import stop_table
from ...safety.stopping.travel import JointStop, PointStop
from ...tables.number_format import decimals, listed, milliseconds, number, units_of
from ...tables.page import render
from ...tables.report import KeyValues, Section, Table, section_blocks
from ..plots.svg import figure
from ..scene.commands import viewer_script
from .instants import happenings
from .sections import Badge, Card, make_motion, provenance_of, time_stamp
from .stop_curves import StopCurves, energy_flow, heat_by_joint, stacked

__all__ = ["page_of", "write_report"]


def write_report(
    result: StopResult,
    path: str | Path,
    *,
    swept: bool = False,
    facts: Iterable[tuple[str, str]] = (),
    sections: Iterable[Section] = (),
    stamp: bool = False,
) -> Path:
    """Write the report of a stop as one HTML file that any browser shows without a network.

    The same stop gives the same bytes, unless it is stamped.

    Args:
        result: the stop.
        path: file to write.
        swept: whether the replay shows the volume that the robot sweeps.
        facts: further lines about what was stopped: a name and what it is.
        sections: further parts of one's own.
        stamp: say when it was written.

    Returns:
        The path of the file.

    Raises:
        BadValue: the file cannot be written.
    """
    text = page_of(result, swept=swept, facts=facts, sections=sections, stamp=stamp)
    return write_text(path, text)


def page_of(
    result: StopResult,
    *,
    swept: bool = False,
    facts: Iterable[tuple[str, str]] = (),
    sections: Iterable[Section] = (),
    stamp: bool = False,
) -> str:
    """The text of a report, see `write_report`; its tables are those of the table of the stop."""
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
        stamp=time_stamp(stamp),
        badge=_badge(result),
        cards=list(_cards(result)),
        motion=make_motion(result, swept=swept),
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


_OUTCOMES = {
    "stopped": Badge("good", "STOPPED", " and holds"),
    "does not hold": Badge("bad", "DOES NOT HOLD", ""),
    "time-out": Badge("bad", "NOT STOPPED", " within the time computed"),
}


def _badge(result: StopResult) -> Badge:
    beyond = (passed.joint for passed in result.joint_limits() if passed.kind == "position")
    return _OUTCOMES[result.outcome].beyond(beyond, "")


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
        f"{milliseconds(reaction)} reaction + {milliseconds(braking)} braking",
    )
    yield _tool(result.point())
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


def _tool(point: PointStop) -> Card:
    paths = [1e3 * path for path in (point.length, point.reaction_length, point.braking_length)]
    places = decimals(paths, most=3)
    length, reaction, braking = (number(path, places) for path in paths)
    speed = 1e3 * point.peak_speed
    peak = number(speed, decimals([speed], most=3))
    more = f"{reaction} mm reaction + {braking} mm braking; peak speed {peak} mm/s"
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
    """A number with four digits."""
    return "-" if value is None else number(value, decimals([value]))
