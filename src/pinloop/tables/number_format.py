"""Numbers as people read them: degrees and millimetres, milliseconds, as many digits as count.

The package computes in SI units; only tables and sentences use what is here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..boundary.marks import Array
from ..model.mechanism import Mechanism
from ..units import shown_unit


@dataclass(frozen=True)
class Units:
    """Units of a joint with one axis: as shown and the factor to that, of its torque, and in SI."""

    shown: str
    factor: float
    torque: str
    si: str


TURNING = Units(*shown_unit("rad"), "N m", "rad")
SLIDING = Units(*shown_unit("m"), "N", "m")


def units_of(robot: Mechanism, joint: str) -> Units:
    """Units of a joint with one axis."""
    return SLIDING if robot.coordinates(joint).slides else TURNING


def joint_value(robot: Mechanism, joint: str, q: Iterable[float]) -> float:
    """Coordinate of a joint with one axis [rad, m], also if it is stored as cosine and sine."""
    return float(robot.coordinates(joint).value(np.asarray(q)))


def shown_coordinate(robot: Mechanism, joint: str, q: Array) -> tuple[str, str]:
    """Coordinate of a joint as people read it, and its unit."""
    at = robot.coordinates(joint)
    if at.nv == 1:
        units = units_of(robot, joint)
        return number(units.factor * joint_value(robot, joint, q), 3), units.shown
    linear = robot.is_translation[at.v]
    kinds = ["m"] * bool(linear.any()) + ["rad" if at.nq == at.nv else "-"] * bool(not linear.all())
    return ", ".join(number(float(x), 4) for x in q[at.q]), ", ".join(kinds)


def decimals(values: Iterable[float], digits: int = 4, *, least: int = 0, most: int = 6) -> int:
    """Decimals that give the largest of some numbers ``digits`` digits."""
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    if largest == 0.0:
        return max(least, 1)
    return min(most, max(least, digits - 1 - math.floor(math.log10(largest))))


def number(value: float, places: int) -> str:
    """A number with fixed decimals; what is rounded to zero has no sign."""
    text = f"{value:.{places}f}"
    return text.removeprefix("-") if float(text) == 0.0 else text


def numbers(values: Iterable[float | None], *, least: int = 0, most: int = 3) -> list[str]:
    """Numbers with the same decimals, see `decimals`; a dash for what is not known."""
    known = [math.nan if value is None else value for value in values]
    places = decimals(known, least=least, most=most)
    return ["-" if math.isnan(value) else number(value, places) for value in known]


def milliseconds(seconds: float) -> str:
    """A time with four digits, in ms below 10 s."""
    if seconds >= 10.0:
        return f"{seconds:.4g} s"
    return f"{1e3 * seconds:.4g} ms"


def listed(names: Iterable[str], most: int = 6) -> str:
    """Names one after another, or how many there are."""
    names = list(names)
    return ", ".join(names) if len(names) <= most else f"{len(names)} joints"
