"""Words of the command line as values: numbers with units, joints with values, faults.

Every mistake is reported with the word as it was typed, and how it is meant.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..assembly.search import outside_limits
from ..errors import BadValue
from ..model.mechanism import Mechanism
from ..units import LENGTHS, MASSES, PARTS, TIMES, in_units, listed

if TYPE_CHECKING:
    from ..safety.brakes.brakes import Brakes


def _number(word: str, units: Mapping[str, float], before: str, example: str) -> float:
    """A number with one of some units, in the first of them."""
    value = in_units(word, units)
    if value is None:
        raise BadValue(
            f"'{before}{word}' is not a number, with or without a unit ({listed(units)}); write "
            f"for example {before}{example}"
        )
    if not math.isfinite(value):
        raise BadValue(f"'{before}{word}' is too large")
    return value


def time(word: str, option: str) -> float:
    """A time in s or ms, e.g. ``0.8`` or ``800ms`` [s]."""
    return _number(word, TIMES, f"{option} ", "0.8")


def weight(word: str) -> float:
    """A payload in kg, g or t, e.g. ``5kg`` [kg]."""
    mass = _number(word, MASSES, "--payload ", "5kg")
    if mass < 0:
        raise BadValue(f"'--payload {word}' is negative; a payload weighs 0 kg or more")
    return mass


def length(word: str, option: str) -> float:
    """A length in m or mm, e.g. ``0.85`` or ``850mm`` [m]."""
    return _number(word, LENGTHS, f"{option} ", "850mm")


def vector(word: str, option: str, unit: str = "", example: str = "1,0,0") -> tuple[float, ...]:
    """Three numbers, e.g. ``1,0,0``."""
    parts = word.split(",")
    try:
        numbers = tuple(float(part) for part in parts)
    except ValueError:
        numbers = ()
    if len(numbers) != 3 or not all(map(math.isfinite, numbers)):
        raise BadValue(
            f"'{option} {word}' is not three numbers{unit and f' in {unit}'}; write for example "
            f"{option} {example}"
        )
    return numbers


def gravity_vector(word: str) -> tuple[float, ...]:
    """Three numbers, e.g. ``0,0,9.81`` for a robot that hangs [m/s^2]."""
    return vector(word, "--gravity", "m/s^2", "0,0,-9.81")


def joint_values(
    robot: Mechanism, words: Sequence[str], option: str, way_out: str | None = ""
) -> dict[str, list[float]]:
    """Joints and their coordinates, e.g. ``elbow=30deg``, ``lift=0.2`` or ``ball=0,0,0,1``.

    Those outside the limits of their joints are refused with a ``way_out``, unless it is None.
    """
    typed: dict[str, str] = {}
    held: dict[str, list[float]] = {}
    for word in words:
        name, value = _pair(word, option, "elbow=0.3")
        units = robot.coordinates(name).units()
        numbers = [_number(part, units, f"{option} {name}=", "0.3") for part in value.split(",")]
        _once(held, name, option)
        held[name], typed[name] = numbers, value
    q = robot.configuration(held)
    for name, _, least, most, hint in outside_limits(robot, q, () if way_out is None else held):
        if in_units(typed[name], {"": 1.0}) is None:  # the unit was said
            hint = ""
        raise BadValue(
            f"'{option} {name}={typed[name]}' is outside the limits of the joint, "
            f"{_range(robot, name, least, most)}{hint}{way_out}"
        )
    return held


def _range(robot: Mechanism, name: str, least: float, most: float) -> str:
    """Limits of a coordinate, with units."""
    if robot.is_translation[robot.coordinates(name).v.start]:
        return f"{least:.9g} to {most:.9g} m"
    low, high = math.degrees(least), math.degrees(most)
    return f"{least:.9g} to {most:.9g} rad ({low:.1f} to {high:.1f} deg)"


IGNORE = "; add --ignore-limits to let it pass them"
"""Way out of limits for commands that have this option."""


def speeds(robot: Mechanism, words: Sequence[str]) -> tuple[float | None, dict[str, list[float]]]:
    """Part of the speed limits for all joints, and rates of single joints [rad/s, m/s].

    ``50%`` is for all; ``elbow=0.5``, ``elbow=30deg/s`` or ``elbow=-50%`` for one. The part is None
    if only single joints are named.
    """
    if not words:
        return 1.0, {}
    part: float | None = None
    by_joint: dict[str, list[float]] = {}
    for word in words:
        if "=" not in word:
            if part is not None:
                raise BadValue(f"'--speed {word}' is the second speed of all joints; give one")
            part = _part(word)
            continue
        name, value = _pair(word, "--speed", "elbow=0.5")
        _once(by_joint, name, "--speed")
        by_joint[name] = _rates(robot, name, value)
    return part, by_joint


def _part(word: str) -> float:
    """``50%``; a bare number would be taken for rad/s."""
    if not word.rstrip().endswith("%"):
        raise BadValue(
            f"'--speed {word}' is neither a part of the speed limits, such as 100%, nor the speed "
            "of a joint, such as elbow=0.5"
        )
    part = _number(word, {"%": 0.01}, "--speed ", "100%")
    if part < 0:
        raise BadValue(f"'--speed {word}' is negative; name the joint: --speed NAME={word}")
    return part


def _rates(robot: Mechanism, name: str, value: str) -> list[float]:
    """Rates of a joint [rad/s, m/s]."""
    at = robot.coordinates(name)
    option = f"--speed {name}="
    if at.nv > 1:
        return [_number(part, {"": 1.0}, option, "0.5,0,0") for part in value.split(",")]
    if not value.rstrip().endswith("%"):
        return [_number(value, at.units(rate=True), option, "0.5")]
    limit = float(robot.model.upperVelocityLimit[at.v.start])
    if not (math.isfinite(limit) and limit > 0):
        raise BadValue(
            f"joint '{name}' has no speed limit that '--speed {name}={value}' could be a part of; "
            f"write for example --speed {name}=0.5"
        )
    return [limit * _number(value, {"%": 0.01}, option, "50%")]


def with_faults(brakes: Brakes, words: Sequence[str]) -> Brakes:
    """Brakes with faults, e.g. ``elbow=missing``, ``elbow=late:0.1`` or ``elbow=weak:50%``."""
    for word in words:
        name, fault = _pair(word, "--fault", "elbow=missing")
        kind, _, size = fault.partition(":")
        option = f"--fault {name}={kind}:"
        if kind == "missing" and not size:
            brakes = brakes.missing(name)
        elif kind == "late" and size:
            brakes = brakes.late(name, _number(size, TIMES, option, "0.1"))
        elif kind == "weak" and size:
            brakes = brakes.weak(name, _number(size, PARTS, option, "0.5"))
        else:
            raise BadValue(
                f"'--fault {word}' is no fault; write for example {name}=missing, "
                f"{name}=late:0.1 (s) or {name}=weak:0.5 (part of the torque)"
            )
    return brakes


def _pair(word: str, option: str, example: str) -> tuple[str, str]:
    return split_word(word, option, "a joint", f"for example {option} {example}")


def split_word(word: str, option: str, what: str, example: str) -> tuple[str, str]:
    """The two sides of ``name=value``, of which the first is the name of ``what``."""
    name, equals, value = word.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise BadValue(f"'{option} {word}' is not {what} and its value; write {example}")
    return name.strip(), value.strip()


def _once(table: Mapping[str, object], name: str, option: str) -> None:
    if name in table:
        raise BadValue(f"joint '{name}' is given twice with {option}; give it once")
