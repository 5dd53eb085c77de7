"""Distances and angles between axes on links that are equal but for a little: meant to be equal.

Opposite links of a parallelogram, the rods of a delta robot, the bars of a ring of scissors. Where
three equal cranks carry one coupler, the conditions on its geometry are met to second order only:
closing the loops does not find them, equal lengths do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Literal

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ...model.mechanism import Mechanism
from .alignment import Axis, End, Terms, axes_by_link, gap_of

__all__ = ["Equality", "equalities_of"]

Array = NDArray[np.float64]
Kind = Literal["angle", "gap", "distance"]
Measure = Callable[[Axis, Axis, float], tuple[float, tuple[Array, Array]]]

_ALL_PAIRS = 6
"""On links with more axes each is measured from the first one and from the one before only."""


@dataclass(frozen=True)
class Equality:
    """The same measure of two pairs of axes, each pair on a link of its own.

    Args:
        kind: angle or gap of axes that are not parallel, or distance of parallel ones and centres.
        first: the first pair of axes.
        second: the second pair.
    """

    kind: Kind
    first: tuple[End, End]
    second: tuple[End, End]

    @property
    def ends(self) -> tuple[End, ...]:
        """All four axes."""
        return *self.first, *self.second

    def terms(self, axes: dict[End, Axis], length: float) -> Terms:
        """The difference of the measures, in radians or characteristic lengths."""
        difference, derivatives = 0.0, []
        for sign, (a, b) in ((1.0, self.first), (-1.0, self.second)):
            value, (by_a, by_b) = _MEASURES[self.kind](axes[a], axes[b], length)
            difference += sign * value
            derivatives += [(a, sign * by_a[None]), (b, sign * by_b[None])]
        return np.array([difference]), tuple(derivatives)


def equalities_of(robot: Mechanism, ends: Sequence[End], limit: float) -> list[Equality]:
    """Which distances and angles are equal, but for a little.

    Args:
        robot: the mechanism.
        ends: joint frames to look at.
        limit: largest difference [rad, lengths].
    """
    measured: dict[Kind, list[tuple[float, tuple[End, End]]]] = {}
    for axes in axes_by_link(robot, ends).values():
        for pair in _pairs(list(axes)):
            a, b = axes[pair[0]], axes[pair[1]]
            sine = float(np.linalg.norm(np.cross(a.direction, b.direction)))
            kinds: tuple[Kind, ...] = ("angle", "gap") if sine > 10 * limit else ("distance",)
            for kind in kinds:
                if kind == "angle" or (a.is_placed and b.is_placed):
                    value, _ = _MEASURES[kind](a, b, robot.length)
                    if value > limit:
                        measured.setdefault(kind, []).append((value, pair))
    return [
        Equality(kind, first, second)
        for kind, values in measured.items()
        for (low, first), (high, second) in pairwise(sorted(values))
        if high - low <= limit
    ]


def _pairs(ends: list[End]) -> list[tuple[End, End]]:
    """Pairs of axes of a link to measure."""
    if len(ends) <= _ALL_PAIRS:
        return list(combinations(ends, 2))
    return [(ends[0], end) for end in ends[1:]] + list(pairwise(ends[1:]))


def _angle(a: Axis, b: Axis, length: float) -> tuple[float, tuple[Array, Array]]:
    """Angle between two directions [rad], up to a quarter turn: axes have no sense."""
    normal = np.cross(a.direction, b.direction)
    sine, cosine = float(np.linalg.norm(normal)), float(a.direction @ b.direction)
    sign = -1.0 if cosine < 0 else 1.0
    derivatives = np.zeros((2, 6))
    derivatives[0, 3:] = -sign * normal @ a.frame.rotation / sine
    derivatives[1, 3:] = sign * normal @ b.frame.rotation / sine
    return float(np.arctan2(sine, sign * cosine)), (derivatives[0], derivatives[1])


def _gap(a: Axis, b: Axis, length: float) -> tuple[float, tuple[Array, Array]]:
    """Distance of two lines that are not parallel, in characteristic lengths."""
    gap, (by_a, by_b) = gap_of(a, b, length)
    sign = -1.0 if gap[0] < 0 else 1.0
    return sign * float(gap[0]), (sign * by_a[0], sign * by_b[0])


def _distance(a: Axis, b: Axis, length: float) -> tuple[float, tuple[Array, Array]]:
    """Distance of parallel lines and centres, in characteristic lengths, seen along a line."""
    between = (b.frame.translation - a.frame.translation) / length
    line = 0 if a.direction.any() else 1
    axis = (a, b)[line]
    along = float(between @ axis.direction)
    beside = between - along * axis.direction
    distance = float(np.linalg.norm(beside))
    derivatives = np.zeros((2, 6))
    if distance > 0:
        unit = beside / distance
        derivatives[0, :3] = -unit @ a.frame.rotation
        derivatives[1, :3] = unit @ b.frame.rotation
        derivatives[line, 3:] = along * unit @ pin.skew(axis.direction) @ axis.frame.rotation
    return distance, (derivatives[0], derivatives[1])


_MEASURES: dict[Kind, Measure] = {"angle": _angle, "gap": _gap, "distance": _distance}
