"""What users hand over for distances, checked: stops that have ended well, and numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...boundary.checks import flat_numbers
from ...errors import BadValue
from ..stopping import StopResult

__all__ = ["at_least_zero", "checked_stops"]


def checked_stops(stop: StopResult | Iterable[StopResult]) -> list[StopResult]:
    """Return one stop or several as a list after checking that the robots are at rest and held."""
    found: list[Any] = [stop]
    if not isinstance(stop, StopResult):
        found = list(stop) if isinstance(stop, Iterable) else []
    if not found or not all(isinstance(one, StopResult) for one in found):
        raise BadValue(f"{stop!r} is no stop; give the result of pl.stop, several, or a study")
    for one in found:
        if not one.holds:
            raise BadValue(
                f"the stop of robot '{one.robot.name}' ends as '{one.outcome}': no distance "
                "protects from a robot that does not come to rest and hold"
            )
    return found


def at_least_zero(what: str, value: Any, wanted: str = "a length >= 0 in metres") -> float:
    """Return a number after checking that it is one and not negative.

    Args:
        what: its name, for messages.
        value: what was given.
        wanted: what it must be, for messages.
    """
    number = flat_numbers(value, what, 1)[0]
    if number < 0:
        raise BadValue(f"{what} is {value!r}; it must be {wanted}")
    return float(number)
