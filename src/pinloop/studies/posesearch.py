"""The search for poses of an axis: largest and least distance, steepest and nearest pose.

Numbers without unit: driven joints in shares of their ranges, distances in shares of the largest.
What poses are wanted, and why, is in `extension`; how a pose lies is in `posture`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .posture import Driven, Lever

__all__ = ["Search"]

Array = NDArray[np.float64]

_STARTS = 6
"""Random poses from which a search begins, beside those that are known."""
_SEED = 0
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
        free: mask of the driven joints that may vary.
        low: lower limits of these [rad, m].
        width: widths of their ranges [rad, m], above 0.
        own: number of the axis among these.

    Attributes:
        found: whether any pose was found within all limits.
        least: least distance of the point from the axis [m].
        largest: largest distance [m].
    """

    def __init__(
        self, driven: Driven, free: NDArray[np.bool_], low: Array, width: Array, own: int
    ) -> None:
        self.driven, self._free, self._low, self._width = driven, free, low, width
        self._own, self._start, self._values = own, driven.q.copy(), driven.values
        self._known: dict[bytes, _Here | None] = {}
        self._rng = np.random.default_rng(_SEED)
        self.home = np.clip((self._values[free] - low) / width, 0.0, 1.0)
        poses = [self.home, *self._rng.uniform(size=(_STARTS, len(low)))]
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
            return self.home, 1.0
        starts = [self._extended]
        for place in np.linspace(0.0, 1.0, 5):
            start = self._extended.copy()
            start[self._own] = place
            starts.append(start)
        best: tuple[float, Array, float] = (np.inf, self._extended, 1.0)
        for direction in (1.0, -1.0) if self._falls else (1.0,):

            def worth(here: _Here, direction: float = direction) -> tuple[float, Array]:
                value, slope = self._steep_and_near(here, direction, self.home)
                value = _STEEP * value - here.lever.distance / self.largest
                return value, _STEEP * slope - here.distance / self.largest

            for here in self._minima(starts, worth):
                value = worth(here)[0]
                if value < best[0] - 1e-9:
                    best = value, here.x, direction
        return best[1], best[2]

    def with_share(self, share: float, direction: float, near: Array) -> Array | None:
        """The pose with a share of the largest distance, or None if there is none.

        Args:
            share: the share.
            direction: sign of the motion that is to go downwards.
            near: the pose to which it is to be near.
        """
        if self.point_on_axis or share < self.least / self.largest:
            return None
        spreads = np.linspace(0.2, 2.0, _STARTS)
        starts = [
            np.clip(near + spread * (self._rng.uniform(size=len(near)) - 0.5), 0.0, 1.0)
            for spread in spreads
        ]

        def worth(here: _Here) -> tuple[float, Array]:
            return self._steep_and_near(here, direction, near)

        def miss(here: _Here) -> tuple[Array, Array]:
            value = here.lever.distance / self.largest - share
            return np.array([value]), here.distance[None] / self.largest

        found = [
            here for here in self._minima(starts, worth, miss) if abs(miss(here)[0][0]) <= _FITS
        ]
        return min(found, key=lambda here: worth(here)[0]).x if found else None

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
            full[free] = np.clip(x, 0.0, 1.0)
            here = self._at(full)
            if here is None:
                raise _Open
            return here

        def value(x: Array) -> float:
            return worth(at(x))[0]

        def slope(x: Array) -> Array:
            return worth(at(x))[1][free]

        bounds = [] if zero is None else [_constraint("eq", at, zero, free)]
        if len(begin.room):
            bounds.append(_constraint("ineq", at, _room, free))
        with warnings.catch_warnings():
            # Rounding beyond a limit is cut off above.
            warnings.filterwarnings("ignore", "Values in x were outside bounds")
            made = minimize(
                value,
                begin.x[free],
                jac=slope,
                bounds=[(0.0, 1.0)] * int(free.sum()),
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
        return self.driven.fall_slopes()[self._free] * self._width


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
