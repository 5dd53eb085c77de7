"""Poses of a robot as places in the box of its joint limits, and local minima among them.

Numbers without unit: driven joints in shares of their ranges. What is to be small is said in
`extension`; how a pose lies to an axis is in `posture`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from ...tolerances import LIMIT_PASSED, PLACES_FIT
from .posture import Driven, Lever

__all__ = ["Place", "Places", "Rule", "Rules"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Place:
    """A pose and its neighbourhood; slopes are by the varied joints, in shares of their ranges.

    Args:
        x: varied joints, in shares of their ranges, shape (m,).
        q: configuration, shape (nq,).
        lever: how the point lies to the axis.
        distance: slopes of its distance [m], shape (m,).
        room: what is left of the ranges of passive joints [rad, m], shape (c,).
        room_slopes: slopes of that, shape (c, m).
        fall_slopes: gives slopes of the fall at a configuration.
    """

    x: Array
    q: Array
    lever: Lever
    distance: Array
    room: Array
    room_slopes: Array
    fall_slopes: Callable[[Array], Array]

    @cached_property
    def fall(self) -> Array:
        """Slopes of the fall of the point, shape (m,)."""
        return self.fall_slopes(self.q)


Rule = Callable[[Place], tuple[float, Array]]
"""A number, and its slopes."""
Rules = Callable[[Place], tuple[Array, Array]]
"""Several numbers, and their slopes."""


class _Open(Exception):  # noqa: N818 (control flow of this file)
    """The loops cannot be closed here."""


class Places:
    """The poses of a robot as seen from an axis.

    Args:
        driven: the robot by its driven joints, with the axis, at an assembled configuration.
        varied: names of the driven joints that may vary, the axis among them.
        low: lower limits of these [rad, m].
        high: upper limits [rad, m].
        direction: direction in which the axis must still have some way; 0 for none.
        length: how long that way is [rad, m].

    Attributes:
        home: the configuration at the start, moved into the limits, in shares of the ranges.
        least: lower end of the box, shape (m,).
        most: upper end, shape (m,).
        own: number of the axis among the varied joints.
    """

    def __init__(
        self,
        driven: Driven,
        varied: Sequence[str],
        low: Array,
        high: Array,
        direction: float,
        length: float,
    ) -> None:
        self.driven, self.own = driven, list(varied).index(driven.axis)
        self._start, self._values = driven.q.copy(), driven.values
        self._varied = np.array([name in varied for name in driven.joints])
        self._low, self._width = low, high - low
        self.least, self.most = np.zeros(len(low)), np.ones(len(low))
        self._way = direction * length
        part = length / self._width[self.own]
        if direction and part < 1.0:  # else no place in its range has so much room
            ends = self.most if direction > 0 else self.least
            ends[self.own] -= direction * part
        self._known: dict[bytes, Place | None] = {}
        self.home = self.within((self._values[self._varied] - low) / self._width)

    def within(self, x: Array) -> Array:
        """The nearest place in the box."""
        return np.clip(x, self.least, self.most)

    def place(self, x: Array, start: Place | None = None) -> Place | None:
        """The pose at a place, loops followed from another one; None if they cannot be closed.

        Args:
            x: the place, shape (m,).
            start: where to begin; at home by default. The result depends on nothing else.
        """
        self.driven.q = (self._start if start is None else start.q).copy()
        self._known.clear()
        return self._at(x)

    def minima(
        self,
        starts: Iterable[tuple[Array, Place | None]],
        free: NDArray[np.bool_],
        worth: Rule,
        zero: Rules | None = None,
    ) -> list[Place]:
        """Local minima within all limits.

        Args:
            starts: where to begin, and from where loops are followed to there.
            free: what may vary, shape (m,).
            worth: what is to be small.
            zero: what is to be zero.
        """
        found = []
        for x, base in starts:
            begin = self.place(x, base)
            if begin is None:
                continue
            try:
                here = self._minimum(begin, free, worth, zero) if free.any() else begin
            except _Open:
                continue
            if np.all(here.room >= -LIMIT_PASSED):
                found.append(here)
        return found

    def _minimum(
        self, begin: Place, free: NDArray[np.bool_], worth: Rule, zero: Rules | None
    ) -> Place:
        """Where sequential quadratic programming ends."""

        def at(x: Array) -> Place:
            full = begin.x.copy()
            full[free] = x
            here = self._at(self.within(full))
            if here is None:
                raise _Open
            return here

        def value(x: Array) -> float:
            return worth(at(x))[0]

        def slope(x: Array) -> Array:
            return np.asarray(worth(at(x))[1][free])

        rules: Any = [] if zero is None else [_constraint("eq", at, zero, free)]
        if len(begin.room):
            rules.append(_constraint("ineq", at, _room, free))
        with warnings.catch_warnings():
            # Rounding beyond a limit is cut off above.
            warnings.filterwarnings("ignore", "Values in x were outside bounds")
            made = scipy.optimize.minimize(
                value,
                begin.x[free],
                jac=slope,
                bounds=list(zip(self.least[free], self.most[free], strict=True)),
                constraints=rules,
                method="SLSQP",
                options={"maxiter": 100, "ftol": PLACES_FIT},
            )
        return at(np.asarray(made.x))

    def _at(self, x: Array) -> Place | None:
        key = x.tobytes()
        if key not in self._known:
            self._known[key] = self._looked_at(x)
        return self._known[key]

    def _looked_at(self, x: Array) -> Place | None:
        values = self._values.copy()
        values[self._varied] = self._low + self._width * x
        if not self.driven.go(values):
            return None
        room, slopes = self.driven.room()
        if self._way:
            # Where the passive joints go while the axis moves on.
            ahead = room + slopes[:, self.driven.column] * self._way
            room, slopes = np.concatenate([room, ahead]), np.vstack([slopes, slopes])
        return Place(
            x.copy(),
            self.driven.q.copy(),
            self.driven.lever(),
            self.driven.distance_slopes()[self._varied] * self._width,
            room,
            slopes[:, self._varied] * self._width,
            self._fall_slopes,
        )

    def _fall_slopes(self, q: Array) -> Array:
        self.driven.q = q.copy()
        return np.asarray(self.driven.fall_slopes()[self._varied] * self._width)


def _room(here: Place) -> tuple[Array, Array]:
    return here.room, here.room_slopes


def _constraint(
    kind: str, at: Callable[[Array], Place], rule: Rules, free: NDArray[np.bool_]
) -> dict[str, Any]:
    """A constraint as SciPy wants it."""
    return {
        "type": kind,
        "fun": lambda x: rule(at(x))[0],
        "jac": lambda x: rule(at(x))[1][:, free],
    }
