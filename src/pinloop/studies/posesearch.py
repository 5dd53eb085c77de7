"""The search for poses of an axis: largest and least distance, steepest and nearest pose.

Numbers without unit: driven joints in shares of their ranges, distances in shares of the largest.
What poses are wanted, and why, is in `extension`; how a pose lies is in `posture`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from .posture import Driven, Lever

__all__ = ["Search"]

Array = NDArray[np.float64]

_STARTS = 6
"""Random poses from which a search begins, beside those that are known."""
_SEED = 0
_STEP = 0.1
"""Share by which a pose is folded at once."""
_ALIKE = 1e-3
"""Poses that differ by less in every joint are the same (shares of ranges)."""
_STEEP, _NEAR = 1e-3, 1e-3
"""Weights: steepness against extension in the extended pose, nearness against steepness."""
_FITS = 1e-6
"""By so much a share may be missed, or a passive joint pass its limit [rad, m]."""
_NOTHING = 1e-6
"""Slopes and distances below this part of the robot's length are none."""


@dataclass(frozen=True, eq=False)
class _Here:
    """A pose and its neighbourhood; slopes by the free joints, in shares of their ranges."""

    x: Array
    q: Array
    lever: Lever
    distance: Array
    room: Array
    room_slopes: Array
    fall_slopes: Callable[[Array], Array]

    @cached_property
    def fall(self) -> Array:
        """Slopes of the fall of the point."""
        return self.fall_slopes(self.q)


Rule = Callable[[_Here], tuple[float, Array]]
Rules = Callable[[_Here], tuple[Array, Array]]


class _Open(Exception):  # noqa: N818 (control flow of this file)
    """The loops cannot be closed here."""


class Search:
    """Poses as seen from an axis.

    Args:
        driven: the robot by its driven joints, with the axis.
        varied: names of the driven joints that may vary, the axis among them.
        low: lower limits of these [rad, m].
        high: upper limits [rad, m].
        room: direction and length of the way that the axis must still have [rad, m]; None for no
            room.

    Attributes:
        found: whether any pose was found within all limits.
        least: least distance of the point from the axis [m].
        largest: largest distance [m].
        home: where all that does not matter stays, in shares of the ranges.
    """

    def __init__(
        self,
        driven: Driven,
        varied: Sequence[str],
        low: Array,
        high: Array,
        room: tuple[float, float] | None = None,
    ) -> None:
        self.driven, self._start, self._values = driven, driven.q.copy(), driven.values
        self._free = np.array([name in varied for name in driven.joints])
        self._own = list(varied).index(driven.axis)
        self._low, self._width = low, high - low
        self._least, self._most = np.zeros(len(low)), np.ones(len(low))
        self._direction, self._length = room or (0.0, 0.0)
        part = self._length / self._width[self._own]
        if self._direction and part < 1.0:  # else no place in its range has so much room
            ends = self._most if self._direction > 0 else self._least
            ends[self._own] -= self._direction * part
        self._known: dict[bytes, _Here | None] = {}
        self._rng = np.random.default_rng(_SEED)
        self.home = self._within((self._values[self._free] - low) / self._width)
        poses = [self.home, *(self._scattered(self.home, 2.0) for _ in range(_STARTS))]
        here = [place for place in map(self._begin, poses) if place is not None]
        self.found = bool(here)
        self.least = self.largest = 0.0
        self._extended = self.home
        if not here:
            return
        self._size = max(place.lever.distance for place in here)
        slopes = np.array([np.abs([place.distance, place.fall]) for place in here])
        # What never matters stays at home.
        self._matters = slopes.max(axis=(0, 1)) > _NOTHING
        self._falls = bool(slopes[:, 1].max() > _NOTHING)
        self._bound(poses)

    @property
    def point_on_axis(self) -> bool:
        """Whether the point cannot leave the axis."""
        return self.largest <= _NOTHING * self.driven.robot.length

    def configuration(self, x: Array) -> Array:
        """Configuration of a pose, shape (nq,)."""
        here = self._begin(x)
        assert here is not None
        return here.q

    def lever(self, q: Array) -> Lever:
        """How the point lies to the axis at a configuration."""
        self.driven.q = q.copy()
        return self.driven.lever()

    def extended(self) -> tuple[Array, float]:
        """The fully extended pose, and the direction in which the axis then moves downwards."""
        if self.point_on_axis:
            return self.home, self._direction or 1.0
        starts = [self._extended]
        for place in np.linspace(self._least[self._own], self._most[self._own], 5):
            start = self._extended.copy()
            start[self._own] = place
            starts.append(start)
        best: tuple[float, Array, float] = (np.inf, self._extended, 1.0)
        directions = (1.0, -1.0) if self._falls else (1.0,)
        for direction in (self._direction,) if self._direction else directions:

            def worth(here: _Here, direction: float = direction) -> tuple[float, Array]:
                value, slope = self._steep_and_near(here, direction, self.home)
                value = _STEEP * value - here.lever.distance / self.largest
                return value, _STEEP * slope - here.distance / self.largest

            for here in self._minima(starts, worth):
                value = worth(here)[0]
                if value < best[0] - 1e-9:
                    best = value, here.x, direction
        return best[1], best[2]

    def with_shares(
        self, shares: Iterable[float], direction: float, full: Array
    ) -> dict[float, Array]:
        """Poses with shares of the largest distance; shares that no pose has are missing.

        From the fully extended pose down, little by little, so that the robot folds as one would
        fold it; and from anywhere, so that no steeper pose is missed.

        Args:
            shares: the shares, below 1.
            direction: sign of the motion that is to go downwards.
            full: the fully extended pose, to which all are to be near.
        """

        def worth(here: _Here) -> tuple[float, Array]:
            return self._steep_and_near(here, direction, full)

        least = 0.0 if self.point_on_axis else self.least / self.largest
        found: dict[float, Array] = {}
        branches = [self._scattered(full, 0.3) for _ in range(_STARTS)]
        last = 1.0
        for share in sorted(set(shares), reverse=True):
            if self.point_on_axis or share < least:
                break
            for step in np.linspace(last, share, int(np.ceil((last - share) / _STEP)) + 1)[1:-1]:
                branches = [here.x for here in self._at_share(float(step), branches, worth)]
            anywhere = [self._scattered(full, 2.0) for _ in range(_STARTS)]
            here = self._at_share(share, [*branches, *anywhere], worth)
            if here:
                found[share] = self._best(here, worth).x
            branches, last = [one.x for one in here], share
        return found

    # -- choosing ---------------------------------------------------------------------------

    def _at_share(self, share: float, starts: Iterable[Array], worth: Rule) -> list[_Here]:
        """Steep and near poses with a share of the largest distance, different ones only."""

        def miss(here: _Here) -> tuple[Array, Array]:
            value = here.lever.distance / self.largest - share
            return np.array([value]), here.distance[None] / self.largest

        found: list[_Here] = []
        for here in self._minima(starts, worth, miss):
            known = any(np.abs(here.x - one.x).max() < _ALIKE for one in found)
            if not known and abs(miss(here)[0][0]) <= _FITS:
                found.append(here)
        return found

    def _best(self, poses: list[_Here], worth: Rule) -> _Here:
        """The best pose; of several that are as good the highest one (elbow up)."""
        least = min(worth(here)[0] for here in poses)
        equal = [here for here in poses if worth(here)[0] <= least + _ALIKE * _NEAR]
        model, data = self.driven.robot.model, self.driven.robot.model.createData()
        return max(
            equal,
            key=lambda here: -float(pin.centerOfMass(model, data, here.q) @ self.driven.down),
        )

    def _scattered(self, x: Array, spread: float) -> Array:
        """A random pose around another."""
        return self._within(x + spread * (self._rng.uniform(size=len(x)) - 0.5))

    def _within(self, x: Array) -> Array:
        return np.clip(x, self._least, self._most)

    # -- searching --------------------------------------------------------------------------

    def _bound(self, starts: list[Array]) -> None:
        """Find the largest and the least distance."""
        size = self._size or 1.0

        def far(here: _Here) -> tuple[float, Array]:
            return -here.lever.distance / size, -here.distance / size

        def close(here: _Here) -> tuple[float, Array]:
            distance = here.lever.distance / size
            return distance**2, 2 * distance * here.distance / size

        farthest = list(self._minima(starts, far))
        self.found = bool(farthest)
        if not farthest:
            return
        self.largest = max(here.lever.distance for here in farthest)
        # Of several poses that are alike the first one: searches begin at home.
        self._extended = next(
            here.x for here in farthest if here.lever.distance >= (1 - 1e-7) * self.largest
        )
        self.least = min(here.lever.distance for here in self._minima(starts, close))

    def _steep_and_near(self, here: _Here, direction: float, near: Array) -> tuple[float, Array]:
        """Steepness, and a little nearness, with its derivative."""
        away = here.x - near
        value, slope = _NEAR * float(away @ away), 2 * _NEAR * away
        if not self._falls:
            return value, slope
        return value - direction * here.lever.fall, slope - direction * here.fall

    def _minima(
        self, starts: Iterable[Array], worth: Rule, zero: Rules | None = None
    ) -> list[_Here]:
        """Local minima within all limits.

        Args:
            starts: where to begin.
            worth: what is to be small, and its derivative.
            zero: what is to be zero, and its derivatives.
        """
        if not self._matters.any():
            starts = [self.home]
        found = []
        for start in starts:
            begin = self._begin(np.where(self._matters, start, self.home))
            if begin is None:
                continue
            try:
                here = self._minimum(begin, worth, zero) if self._matters.any() else begin
            except _Open:
                continue
            if np.all(here.room >= -_FITS):
                found.append(here)
        return found

    def _minimum(self, begin: _Here, worth: Rule, zero: Rules | None) -> _Here:
        """Where sequential quadratic programming ends."""
        from scipy.optimize import minimize  # slow to import

        free = self._matters

        def at(x: Array) -> _Here:
            full = begin.x.copy()
            full[free] = x
            here = self._at(self._within(full))
            if here is None:
                raise _Open
            return here

        def value(x: Array) -> float:
            return worth(at(x))[0]

        def slope(x: Array) -> Array:
            return np.asarray(worth(at(x))[1][free])

        bounds: Any = [] if zero is None else [_constraint("eq", at, zero, free)]
        if len(begin.room):
            bounds.append(_constraint("ineq", at, _room, free))
        with warnings.catch_warnings():
            # Rounding beyond a limit is cut off above.
            warnings.filterwarnings("ignore", "Values in x were outside bounds")
            made = minimize(
                value,
                begin.x[free],
                jac=slope,
                bounds=list(zip(self._least[free], self._most[free], strict=True)),
                constraints=bounds,
                method="SLSQP",
                options={"maxiter": 100, "ftol": 1e-11},
            )
        return at(np.asarray(made.x))

    def _begin(self, x: Array) -> _Here | None:
        """The pose reached from where all searches begin: the same whatever came before."""
        self.driven.q = self._start.copy()
        self._known.clear()
        return self._at(x)

    def _at(self, x: Array) -> _Here | None:
        """The pose at some coordinates; None if the loops cannot be closed there."""
        key = x.tobytes()
        if key not in self._known:
            self._known[key] = self._looked_at(x)
        return self._known[key]

    def _looked_at(self, x: Array) -> _Here | None:
        values = self._values.copy()
        values[self._free] = self._low + self._width * x
        if not self.driven.go(values):
            return None
        room, slopes = self.driven.room()
        if self._direction:
            # Where the passive joints go while the axis moves on.
            way = slopes[:, self.driven.column] * self._direction * self._length
            room, slopes = np.concatenate([room, room + way]), np.vstack([slopes, slopes])
        return _Here(
            x.copy(),
            self.driven.q.copy(),
            self.driven.lever(),
            self.driven.distance_slopes()[self._free] * self._width,
            room,
            slopes[:, self._free] * self._width,
            self._fall_slopes,
        )

    def _fall_slopes(self, q: Array) -> Array:
        self.driven.q = q.copy()
        return np.asarray(self.driven.fall_slopes()[self._free] * self._width)


def _room(here: _Here) -> tuple[Array, Array]:
    return here.room, here.room_slopes


def _constraint(
    kind: str,
    at: Callable[[Array], _Here],
    rule: Rules,
    free: NDArray[np.bool_],
) -> dict[str, Any]:
    """A constraint as SciPy wants it."""
    return {
        "type": kind,
        "fun": lambda x: rule(at(x))[0],
        "jac": lambda x: rule(at(x))[1][:, free],
    }
