"""The search for poses of an axis: largest and least distance, steepest and nearest pose.

Numbers without unit: driven joints in shares of their ranges, distances in shares of the largest.
What poses are wanted, and why, is in `extension`; local minima are found in `places`.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ...model.workspace import create_data
from ...tolerances import ALIKE, POSE_SLOPE, SAME, SHARE_MISSED
from .places import Place, Places, Rule
from .posture import Lever

__all__ = ["Search"]

Array = NDArray[np.float64]
Starts = list[tuple[Array, Place | None]]

_STARTS = 6
"""Random poses from which a search begins, beside those that are known."""
_SEED = 0
_STEP = 0.1
"""Share by which a pose is folded at once."""
_ALIKE = 1e-3
"""Poses that differ by less in every joint are the same (shares of ranges)."""
_STEEP, _NEAR = 1e-3, 1e-3
"""Weights: steepness against extension in the extended pose, nearness against steepness."""


class Search:
    """Poses as seen from an axis.

    Args:
        places: the poses of the robot as seen from the axis.
        direction: direction in which the axis moves; 0 where the search is to find out.

    Attributes:
        found: whether any pose was found within all limits.
        least: least distance of the point from the axis [m].
        largest: largest distance [m].
    """

    def __init__(self, places: Places, direction: float = 0.0) -> None:
        self._places, self._direction = places, direction
        self._length = places.driven.robot.length
        self._rng = np.random.default_rng(_SEED)
        starts: Starts = [(places.home, None)]
        starts += [(self._scattered(places.home, 2.0), None) for _ in range(_STARTS)]
        here = [one for one in (places.place(x) for x, _ in starts) if one is not None]
        self.least = self.largest = 0.0
        self.found = bool(here)
        if not here:
            return
        slopes = np.array([np.abs([place.distance / self._length, place.fall]) for place in here])
        # What never matters stays at home.
        self._matters = slopes.max(axis=(0, 1)) > POSE_SLOPE
        falls = [abs(place.lever.fall) for place in here]
        self._falls = max(slopes[:, 1].max(), *falls) > POSE_SLOPE
        self._bound(starts)

    @property
    def point_on_axis(self) -> bool:
        """Whether the point cannot leave the axis."""
        return self.largest <= POSE_SLOPE * self._length

    def lever(self, q: Array) -> Lever:
        """How the point lies to the axis at a configuration."""
        driven = self._places.driven
        driven.q = q.copy()
        return driven.lever()

    def extended(self) -> tuple[Place, float]:
        """The fully extended pose, and the direction in which the axis then moves downwards."""
        places, far = self._places, self._farthest
        size = self._length if self.point_on_axis else self.largest
        starts: Starts = [(far.x, far)]
        for own in np.linspace(places.least[places.own], places.most[places.own], 5):
            start = far.x.copy()
            start[places.own] = own
            starts.append((start, far))
        best, least, towards = far, np.inf, self._direction or 1.0
        rule: Rule = self._farness
        directions = (1.0, -1.0) if self._falls else (1.0,)
        for direction in (self._direction,) if self._direction else directions:

            def worth(here: Place, direction: float = direction) -> tuple[float, Array]:
                value, slope = self._steep_and_near(here, direction, places.home)
                value = _STEEP * value - here.lever.distance / size
                return value, _STEEP * slope - here.distance / size

            for here in self._minima(starts, worth):
                value = worth(here)[0]
                if value < least - SAME:
                    best, least, towards, rule = here, value, direction, worth
        return self._polished(best, rule), towards

    def with_shares(
        self, shares: Iterable[float], direction: float, full: Place
    ) -> dict[float, Place]:
        """Poses with shares of the largest distance; shares that no pose has are missing.

        From the fully extended pose down, little by little, so that the robot folds as one would
        fold it; and from anywhere, so that no steeper pose is missed.

        Args:
            shares: the shares, below 1.
            direction: sign of the motion that is to go downwards.
            full: the fully extended pose, to which all are to be near.
        """

        def worth(here: Place) -> tuple[float, Array]:
            return self._steep_and_near(here, direction, full.x)

        found: dict[float, Place] = {}
        branches: Starts = [(self._scattered(full.x, 0.3), full) for _ in range(_STARTS)]
        last = 1.0
        for share in sorted(set(shares), reverse=True):
            if self.point_on_axis or share * self.largest < self.least:
                break
            count = int(np.ceil((last - share) / _STEP))
            for step in np.linspace(last, share, count + 1)[1:-1]:
                branches = [(here.x, here) for here in self._at_share(float(step), branches, worth)]
            anywhere: Starts = [(self._scattered(full.x, 2.0), full) for _ in range(_STARTS)]
            here = self._at_share(share, [*branches, *anywhere], worth)
            if here:
                found[share] = self._polished(self._best(here, worth), worth, share)
            branches, last = [(one.x, one) for one in here], share
        return found

    def _bound(self, starts: Starts) -> None:
        """Find the largest and the least distance."""

        def close(here: Place) -> tuple[float, Array]:
            distance = here.lever.distance / self._length
            return distance**2, 2 * distance * here.distance / self._length

        farthest = self._minima(starts, self._farness)
        self.found = bool(farthest)
        if not farthest:
            return
        self.largest = max(here.lever.distance for here in farthest)
        # Of several poses that are alike the first one: searches begin at home.
        self._farthest = next(
            here for here in farthest if here.lever.distance >= (1 - ALIKE) * self.largest
        )
        self.least = min(here.lever.distance for here in self._minima(starts, close))

    def _at_share(self, share: float, starts: Starts, worth: Rule) -> list[Place]:
        """Steep and near poses with a share of the largest distance, different ones only."""
        found: list[Place] = []
        for here in self._minima(starts, worth, share):
            if not any(np.abs(here.x - one.x).max() < _ALIKE for one in found):
                found.append(here)
        return found

    def _best(self, poses: list[Place], worth: Rule) -> Place:
        """The best pose; of several that are as good the highest one (elbow up)."""
        driven = self._places.driven
        model, data = driven.robot.model, create_data(driven.robot.model)
        least = min(worth(here)[0] for here in poses)
        best, highest = poses[0], -np.inf
        for here in poses:
            height = -float(pin.centerOfMass(model, data, here.q) @ driven.down)
            good = worth(here)[0] <= least + _ALIKE * _NEAR
            if good and height > highest + POSE_SLOPE * self._length:
                best, highest = here, height
        return best

    def _steep_and_near(self, here: Place, direction: float, near: Array) -> tuple[float, Array]:
        """Steepness, and a little nearness."""
        away = here.x - near
        value, slope = _NEAR * float(away @ away), 2 * _NEAR * away
        if not self._falls:
            return value, slope
        return value - direction * here.lever.fall, slope - direction * here.fall

    def _farness(self, here: Place) -> tuple[float, Array]:
        return -here.lever.distance / self._length, -here.distance / self._length

    def _minima(self, starts: Starts, worth: Rule, share: float | None = None) -> list[Place]:
        """Local minima, with a share of the largest distance; what does not matter stays home."""

        def miss(here: Place) -> tuple[Array, Array]:
            value = here.lever.distance / self.largest - (share or 0.0)
            return np.array([value]), here.distance[None] / self.largest

        moved: Starts = [
            (np.where(self._matters, x, self._places.home), base) for x, base in starts
        ]
        if not self._matters.any():
            moved = moved[:1]
        zero = None if share is None else miss
        found = self._places.minima(moved, self._matters, worth, zero)
        return [here for here in found if zero is None or abs(miss(here)[0][0]) <= SHARE_MISSED]

    def _polished(self, best: Place, worth: Rule, share: float | None = None) -> Place:
        """The same minimum, found once more from where it was found."""
        for here in self._minima([(best.x, best)] * 2, worth, share):
            if worth(here)[0] < worth(best)[0]:
                best = here
        return best

    def _scattered(self, x: Array, spread: float) -> Array:
        """A random pose around another."""
        return self._places.within(x + spread * (self._rng.uniform(size=len(x)) - 0.5))
