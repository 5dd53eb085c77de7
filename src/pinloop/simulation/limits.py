"""Position limits of joints: the ends of their ranges, and which of them a run passes.

Steps are polynomials, so that what lies between two states counts too. What happens at a limit is
not known here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..assembly.search import limit_slack, limited_coordinates
from ..boundary.marks import Array
from ..errors import BadValue
from ..integrate import Coordinate, Guard, Step, hermite, unit_roots
from ..model.mechanism import Mechanism
from ..model.tree import coordinate_names
from ..model.workspace import remembered
from ..tolerances import LIMIT_PASSED, SAME

E = TypeVar("E")

_REACH = 1.0 + SAME
_FARTHER = 1.2
"""The same where a quintic is less accurate than the method; see `event_location`."""


@dataclass(frozen=True)
class LimitPassed:
    """A limit of a joint that a run passes.

    Args:
        joint: name of the joint.
        coordinate: which of the joint's coordinates (or velocities), counted from 0.
        kind: "position" or "velocity".
        side: "lower" or "upper".
        limit: the limit [rad, m, rad/s, m/s].
        t: instant at which it is passed first [s].
        by: how far it is passed at most [rad, m, rad/s, m/s].
        worst_t: instant of that [s].
    """

    joint: str
    coordinate: int
    kind: Literal["position", "velocity"]
    side: Literal["lower", "upper"]
    limit: float
    t: float
    by: float
    worst_t: float


@dataclass(frozen=True)
class JointEnd:
    """An end of the range of a coordinate.

    Args:
        joint: name of the joint.
        coordinate: which of its coordinates, counted from 0.
        axes: name of the coordinate if the joint has several, else nothing; as locks have it.
        cell: its place in q.
        column: its place in v.
        sign: 1 for the upper end, -1 for the lower one.
        limit: where the range ends by the robot's file [rad, m].
        level: where it ends in a run: farther out if it starts there, by what the digits of the
            file do not say.
    """

    joint: str
    coordinate: int
    axes: tuple[str, ...]
    cell: int
    column: int
    sign: int
    limit: float
    level: float

    @property
    def side(self) -> Literal["lower", "upper"]:
        """Which end it is."""
        return "upper" if self.sign > 0 else "lower"

    @property
    def name(self) -> str:
        """Name for messages."""
        return f"{self.side} limit of {'.'.join((self.joint, *self.axes))}"

    @property
    def slack(self) -> float:
        """How far beyond the limit a coordinate may be that is meant to be at it [rad, m]."""
        return limit_slack(self.limit)

    def beyond(self, q: Array) -> float:
        """How far a configuration is beyond the end, negative inside [rad, m]."""
        return float(self.sign * (q[self.cell] - self.level))

    def guard(self, event: E, *, one_sided: bool = False) -> Guard[E]:
        """The coordinate comes to the end from inside; see `Guard`."""
        value = Coordinate(self.column, self.cell, float(self.sign), self.level)
        return Guard(event, value, 1, one_sided)


@remembered
def joint_ends(robot: Mechanism) -> tuple[JointEnd, ...]:
    """All ends of ranges that the coordinates of a robot have, as assembly respects them."""
    owner = {
        cell: (name, cell - robot.coordinates(name).q.start)
        for name in robot.joints
        for cell in range(robot.coordinates(name).q.start, robot.coordinates(name).q.stop)
    }
    ends = []
    for cell, column, low, high in limited_coordinates(robot):
        joint, k = owner[cell]
        several = robot.coordinates(joint).nv > 1
        axes = (coordinate_names(robot.tree, joint)[k],) if several else ()
        ends += [
            JointEnd(joint, k, axes, cell, column, sign, limit, limit)
            for sign, limit in ((-1, low), (1, high))
            if math.isfinite(limit)
        ]
    return tuple(ends)


def ends_seen_from(ends: Sequence[JointEnd], q: Array) -> tuple[JointEnd, ...]:
    """The ends as a run has them that starts at a configuration: what is at them is not beyond."""
    return tuple(
        replace(end, level=float(q[end.cell])) if 0.0 < end.beyond(q) <= end.slack else end
        for end in ends
    )


def limited_ends(
    ends: Sequence[JointEnd], robot: Mechanism, joints: tuple[str, ...] | None
) -> list[JointEnd]:
    """The ends of the ranges of some joints, each of which must have one."""
    for name in joints or ():
        robot.coordinates(name)
        if not any(end.joint == name for end in ends):
            raise BadValue(f"joint '{name}' has no position limits that could be watched")
    return [end for end in ends if joints is None or end.joint in joints]


def require_within(robot: Mechanism, ends: Sequence[JointEnd], q: Array) -> None:
    """Refuse a start beyond the end of a range.

    Raises:
        BadValue: names the joint, where it is, and the limit.
    """
    for end in ends:
        if end.beyond(q) > 0.0:
            unit = "m" if robot.is_translation[end.column] else "rad"
            raise BadValue(
                f"joint '{end.joint}' starts at {q[end.cell]:.9g} {unit}, beyond its {end.side} "
                f"limit of {end.limit:.9g} {unit}; start within it, or give limits='warn'"
            )


class LimitWatch:
    """Finds out which limits a run passes, step by step."""

    def __init__(self, ends: Sequence[JointEnd], t: float, q: Array) -> None:
        self._ends = ends = ends_seen_from(ends, q)
        self._cells = np.array([end.cell for end in ends], dtype=np.intp)
        self._columns = np.array([end.column for end in ends], dtype=np.intp)
        self._signs = np.array([end.sign for end in ends], dtype=float)
        self._levels = np.array([end.level for end in ends], dtype=float)
        self._by = self._signs * (q[self._cells] - self._levels)
        self._worst = np.full(len(ends), t)
        self._first = np.where(self._by > LIMIT_PASSED, t, np.inf)

    def look(self, step: Step) -> None:
        """Take account of a step."""
        if not self._ends:
            return
        start = self._signs * (step.q0[self._cells] - self._levels)
        # The argument of the polynomials is at most 1.
        quintics = self._signs * _polynomials(step, self._columns)
        reach = _REACH if step.follows is None else _FARTHER
        most = start + reach * np.abs(quintics).sum(axis=0)
        for k in ((most > LIMIT_PASSED) & (most > self._by)).nonzero()[0]:
            powers = np.r_[start[k], quintics[:, k]][::-1]
            # The end of a step is known as it is: what lies inside is asked for to find an instant.
            inside = not np.isfinite(self._first[k]) or unit_roots(np.polyder(powers))
            if step.follows is not None and inside:
                way = self._signs[k] * step.polynomial[:, self._columns[k]]
                powers = np.r_[start[k], way][::-1]
            self._look_closer(int(k), powers, step)

    def _look_closer(self, k: int, powers: Array, step: Step) -> None:
        """The extremes of one coordinate in a step, and where it passes its limit."""
        h = step.t1 - step.t0
        for s in (*unit_roots(np.polyder(powers)), 1.0):
            value = float(np.polyval(powers, s))
            if value > self._by[k] + SAME:
                self._by[k], self._worst[k] = value, step.t0 + s * h
        if self._by[k] > LIMIT_PASSED and not np.isfinite(self._first[k]):
            first = first_beyond(powers, LIMIT_PASSED)
            self._first[k] = self._worst[k] if first is None else step.t0 + first * h

    @property
    def passed(self) -> tuple[LimitPassed, ...]:
        """The limits that have been passed, in order of time."""
        limits = [
            LimitPassed(
                end.joint,
                end.coordinate,
                "position",
                end.side,
                end.limit,
                float(first),
                float(by + end.sign * (end.level - end.limit)),
                float(worst),
            )
            for end, first, by, worst in zip(
                self._ends, self._first, self._by, self._worst, strict=True
            )
            if np.isfinite(first)
        ]
        return tuple(sorted(limits, key=lambda limit: limit.t))


def first_beyond(powers: Array, level: float) -> float | None:
    """The part of an interval from which on a polynomial is above a level; highest power first."""
    cuts = [0.0, *unit_roots(np.polysub(powers, [level])), 1.0]
    beyond = (a for a, b in pairwise(cuts) if np.polyval(powers, (a + b) / 2) > level)
    return next(beyond, None)


def _polynomials(step: Step, columns: NDArray[np.intp]) -> Array:
    """Coefficients as `Step.quintic`, of coordinates that are no part of a curved joint."""
    h = step.t1 - step.t0
    v0, v1, a0, a1 = step.v0[columns], step.v1[columns], step.a0[columns], step.a1[columns]
    return hermite(step.psi[columns], h * v0, h * v1, h * h * a0, h * h * a1)


def described(robot: Mechanism, passed: LimitPassed, start: float) -> str:
    """What a run does to a limit, in one sentence."""
    at = robot.coordinates(passed.joint)
    linear = bool(robot.is_translation[at.v.start + passed.coordinate])
    names = coordinate_names(robot.tree, passed.joint) if at.nv > 1 else ("",)
    axis = f" ({names[passed.coordinate]})" if at.nv > 1 else ""
    where = f"{passed.side} limit, {_length(linear, passed.limit)},"
    how = (
        f"is beyond its {where} from the start"
        if passed.t <= start
        else f"passes its {where} at t = {passed.t:.6g} s"
    )
    return (
        f"joint '{passed.joint}'{axis} {how}, by {_length(linear, passed.by)} at most (at t = "
        f"{passed.worst_t:.6g} s)"
    )


def _length(linear: bool, value: float) -> str:
    """An angle in radians and degrees, or a length."""
    return f"{value:.4g} m" if linear else f"{value:.4g} rad ({np.degrees(value):.4g} deg)"
