"""The head of a report: what became of the stop, and the numbers that count."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...tables.markup import Markup, element, joined
from ...tables.number_format import decimals, listed, milliseconds, number, units_of

if TYPE_CHECKING:
    from ...safety.stopping.joint_stop import JointStop
    from ...safety.stopping.point_stop import PointStop
    from ...safety.stopping.result import StopResult

__all__ = ["badge", "card", "cards"]

_OUTCOMES = {
    "stopped": ("good", "STOPPED", "and holds"),
    "does not hold": ("bad", "DOES NOT HOLD", ""),
    "time-out": ("bad", "NOT STOPPED", "within the time computed"),
}


def badge(result: StopResult) -> Markup:
    """What became of the stop, for all to see."""
    mark, word, more = _OUTCOMES[result.outcome]
    beyond = {one.joint: None for one in result.joint_limits() if one.kind == "position"}
    if mark == "good" and beyond:
        mark, more = "warn", f"{more}, but beyond the limits of {listed(list(beyond))}"
    icon = "\N{CHECK MARK}" if mark == "good" else "\N{WARNING SIGN}\N{VARIATION SELECTOR-15}"
    return element(
        "p",
        element("span", icon, aria_hidden="true"),
        " ",
        element("strong", word),
        f" {more}" if more else "",
        class_=f"badge {mark}",
    )


def cards(result: StopResult) -> Markup:
    """The numbers that count."""
    return element("div", *_cards(result), class_="cards")


def _cards(result: StopResult) -> Iterator[Markup]:
    reaction = min(result.reaction_time, result.stopping_time)
    braking = result.stopping_time - reaction
    moving = any(joint.state == "moving" for joint in result.joints.values())
    name = "time computed" if moving else "time to standstill"
    yield card(
        "stopping time" if result.outcome == "stopped" else name,
        *_parted(milliseconds(result.stopping_time)),
        f"{milliseconds(reaction)} reaction + {milliseconds(braking)} braking",
    )
    yield _tool(result.point())
    joints = list(result.joints.values())
    if joints:
        yield _worst(result, joints)
    known = [joint for joint in joints if joint.gear_use is not None]
    if known:
        gear = max(known, key=lambda joint: joint.gear_use or 0.0)
        use = number(100 * (gear.gear_use or 0.0), 0)
        unit = units_of(result.robot, gear.name).torque
        yield card(
            "highest gear utilisation", use, "%",
            f"{gear.name}: {_four(gear.peak_gear_torque)} of {_four(gear.gear_limit)} {unit}",
            "bad" if (gear.gear_use or 0.0) > 1 else "",
        )  # fmt: skip
    loaded = [joint for joint in joints if joint.load]
    if loaded and result.outcome != "time-out":
        weakest = min(loaded, key=lambda joint: joint.margin)
        yield _holding(result, weakest)


def _tool(point: PointStop) -> Markup:
    ways = [1e3 * way for way in (point.length, point.reaction_length, point.braking_length)]
    places = decimals(ways, most=3)
    length, reaction, braking = (number(way, places) for way in ways)
    speed = 1e3 * point.peak_speed
    said = number(speed, decimals([speed], most=3))
    return card(
        f"tool path ({point.frame})", length, "mm",
        f"{reaction} mm reaction + {braking} mm braking; peak speed {said} mm/s",
    )  # fmt: skip


def _worst(result: StopResult, joints: list[JointStop]) -> Markup:
    """The joint that moves farthest, and the one that stands last."""
    turning = [j for j in joints if units_of(result.robot, j.name).shown == "deg"]
    sort = turning or joints
    worst = max(sort, key=lambda joint: abs(joint.angle))
    last = max(joints, key=lambda joint: joint.time)
    units = units_of(result.robot, worst.name)
    value = units.factor * worst.angle
    text = f"{worst.name} moves farthest"
    moving = [joint.name for joint in joints if joint.state == "moving"]
    if moving:
        text += f"; still in motion: {listed(moving)}"
    elif last is worst:
        text += f" and comes to rest last, after {milliseconds(last.time)}"
    else:
        text += f"; {last.name} comes to rest last, after {milliseconds(last.time)}"
    return card("worst joint", number(value, decimals([value], most=3)), units.shown, text)


def _holding(result: StopResult, joint: JointStop) -> Markup:
    """The joint with the least reserve against gravity."""
    unit = units_of(result.robot, joint.name).torque
    hold = "a tooth" if joint.hold == float("inf") else f"{_four(joint.hold)} {unit}"
    ample = joint.margin > 1000.0
    return card(
        "smallest holding margin",
        ">1000" if ample else number(joint.margin, 2),
        "\N{MULTIPLICATION SIGN} load",
        f"{joint.name}: held by {hold}, load {_four(abs(joint.load))} {unit}",
        "bad" if joint.margin < 1 else "",
    )


def _four(value: float | None) -> str:
    """A number with four digits."""
    return "-" if value is None else number(value, decimals([value]))


def _parted(text: str) -> tuple[str, str]:
    value, unit = text.split(" ")
    return value, unit


def _kept_together(text: str) -> Markup:
    """A text whose numbers stay with their units at the end of a line."""
    units = r"(?<=\d) (ms|mm/s|mm|N m|N|s)\b"
    return Markup(re.sub(units, lambda found: found[0].replace(" ", "&nbsp;"), joined(text)))


def card(name: str, value: str, unit: str, more: str, mark: str = "") -> Markup:
    """A number that counts.

    Args:
        name: what it is.
        value: the number.
        unit: its unit.
        more: a line below it.
        mark: what it is for colours: "good", "bad", or neither.
    """
    return element(
        "div",
        element("h2", name),
        element("p", element("strong", value), " ", unit, class_=f"value {mark}".strip()),
        element("p", _kept_together(more), class_="more"),
        class_="card",
    )
