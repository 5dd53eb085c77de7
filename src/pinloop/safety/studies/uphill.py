"""Uphill in the unit cube: a pattern search (Hooke and Jeeves, J. ACM 8, 1961). Knows no robot.

Stops change abruptly where a joint comes loose or another one locks last, and are worst mostly at
ends of ranges: neither has a gradient to follow. A pattern search needs none and reaches faces and
corners of the cube exactly.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["uphill"]

Array = NDArray[np.float64]

_STEP, _SMALLEST = 0.25, 1e-3
"""First and last step, as parts of the ranges."""


def uphill(
    size: Callable[[Array], float], start: Array, evaluations: int
) -> tuple[float, Array, int]:
    """Go uphill from a point: first to both ends of every coordinate, then by smaller steps.

    Args:
        size: what is to become large; minus infinity where it is not allowed.
        start: where to begin, shape (d,).
        evaluations: how often the size may be asked for, at least once.

    Returns:
        The largest size found, where it is, and how often it was asked for.
    """
    climb = _Climb(size, np.clip(start, 0.0, 1.0), evaluations)
    for k in range(len(climb.x)):
        for end in (0.0, 1.0):
            climb.try_coordinate(k, end)
    step = _STEP
    while step >= _SMALLEST and climb.left > 0:
        before, old = climb.best, climb.x
        for k in range(len(climb.x)):
            if not climb.try_coordinate(k, climb.x[k] + step):
                climb.try_coordinate(k, climb.x[k] - step)
        if climb.best > before:
            climb.try_point(2.0 * climb.x - old)  # the same way again
        else:
            step /= 2.0
    return climb.best, climb.x, evaluations - climb.left


class _Climb:
    """The best point so far."""

    def __init__(self, size: Callable[[Array], float], x: Array, evaluations: int) -> None:
        self._size, self.x, self.left = size, x, evaluations - 1
        self.best = size(x)

    def try_coordinate(self, k: int, value: float) -> bool:
        """Change one coordinate if that is better."""
        x = self.x.copy()
        x[k] = value
        return self.try_point(x)

    def try_point(self, x: Array) -> bool:
        """Go to a point if it is better."""
        x = np.clip(x, 0.0, 1.0)
        if self.left < 1 or np.array_equal(x, self.x):
            return False
        self.left -= 1
        size = self._size(x)
        if size > self.best:
            self.best, self.x = size, x
            return True
        return False
