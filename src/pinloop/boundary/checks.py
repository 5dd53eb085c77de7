"""What users hand over, checked: numbers, directions, kinds. Knows no robot."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import BadValue, shown
from ..tolerances import NO_DIRECTION

__all__ = ["flat_numbers", "require_kind", "require_whole", "unit_vector"]

Array = NDArray[np.float64]


def flat_numbers(values: ArrayLike, what: str, count: int | None = None) -> Array:
    """Return ``values`` as a flat array after checking that they are (``count``) finite numbers.

    Args:
        values: what was given.
        what: its name, for messages.
        count: how many numbers it must have; any number by default.
    """
    try:
        array = np.atleast_1d(np.asarray(values, dtype=float))
    except (TypeError, ValueError):
        raise BadValue(f"{what} is {shown(values)}, which is not made of numbers") from None
    if array.ndim != 1:
        raise BadValue(f"{what} has shape {array.shape}; it must be flat")
    if count is not None and array.size != count:
        raise BadValue(f"{what} has {count} numbers, not {array.size}")
    if not np.all(np.isfinite(array)):
        raise BadValue(f"{what} is not finite at index {int(np.argmin(np.isfinite(array)))}")
    return array


def unit_vector(vector: ArrayLike, what: str) -> Array:
    """Return ``vector`` at unit length, shape (3,).

    Args:
        vector: what was given.
        what: its name, for messages.
    """
    try:
        values = np.asarray(vector, dtype=float)
    except (TypeError, ValueError):
        raise BadValue(f"{what} is {shown(vector)}; it must be a direction of 3 numbers") from None
    size = float(np.linalg.norm(values))
    if values.shape != (3,) or not np.isfinite(size) or size < NO_DIRECTION:
        raise BadValue(f"{what} is {shown(vector)}; it must be a direction of 3 numbers")
    return values / size


def require_kind(value: object, kind: type | tuple[type, ...], what: str, way_out: str) -> None:
    """Refuse a value of another kind, before something inside stumbles over it.

    Args:
        value: what was given.
        kind: what it must be.
        what: its name, for messages.
        way_out: what to give instead.
    """
    if not isinstance(value, kind):
        raise BadValue(f"{what} is {shown(value)} ({type(value).__name__}); {way_out}")


def require_whole(value: object, what: str, most: int = 2**63 - 1) -> None:
    """Refuse what is no whole number from zero on.

    Args:
        value: what was given.
        what: its name, for messages.
        most: the largest that is allowed.
    """
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or not 0 <= value <= most:  # type: ignore[operator]
        raise BadValue(f"{what} is {shown(value)}; give a whole number from 0 to {most}")
