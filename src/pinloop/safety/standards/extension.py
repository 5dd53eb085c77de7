"""Poses in which a robot is extended by a share of its reach, as seen from one of its axes.

**Extension** is the distance of a point (the payload's centre) from the line of an axis, as a share
of the largest distance that the limits of the joints allow. Joints that carry the axis do not
change it: they stay as in the fully extended pose of the axis nearest to the ground among them that
moves the point downwards (arms: the second axis, the whole arm stretched out and level).

**Which pose.** Many poses have the same extension. `Finder` takes the one in which the axis
moves the point downwards most steeply while all other axes are at rest (arms: the point is as high
as the axis), among these the one nearest to the fully extended pose, joint coordinates in shares of
their ranges, and among those the one with the highest centre of mass (elbow up). A vertical axis
moves nothing downwards: then steepness does not count.

**Room.** A stop needs room: if some is required, the axis can still move so far within all
limits (those of passive joints by their rates at the pose).

**Search.** Numbers have no unit: driven joints in shares of their ranges, distances in shares of
the largest. Local minima are found in `posture`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pinocchio as pin

from ...assembly.assemble import assemble
from ...boundary.marks import Array
from ...errors import BadValue
from ...model.mechanism import Mechanism
from ...model.workspace import create_data
from ...tables.number_format import SLIDING, joint_value, units_of
from ...tolerances import ALIKE, POSE_SLOPE, SAME, SHARE_MISSED
from ..brakes.template import position_range
from .posture import Driven, Lever, Place, Places, Point, Rule

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

    ``places``: the poses of the robot as seen from the axis; ``direction``: direction in which the
    axis moves; 0 where the search is to find out.

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
        here = [place for place in (places.place(x) for x, _ in starts) if place is not None]
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
        own = np.arange(len(far.x)) == places.own
        ends = np.linspace(places.least[places.own], places.most[places.own], 5)
        starts: Starts = [(far.x, far), *((np.where(own, end, far.x), far) for end in ends)]
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
        fold it; and from anywhere, so that no steeper pose is missed. ``shares``: the shares, below
        1; ``direction``: sign of the motion that is to go downwards; ``full``: the fully extended
        pose, to which all are to be near.
        """

        def worth(here: Place) -> tuple[float, Array]:
            return self._steep_and_near(here, direction, full.x)

        poses: dict[float, Place] = {}
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
                poses[share] = self._polished(self._best(here, worth), worth, share)
            branches, last = [(place.x, place) for place in here], share
        return poses

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
        distinct: list[Place] = []
        for here in self._minima(starts, worth, share):
            if not any(np.abs(here.x - known.x).max() < _ALIKE for known in distinct):
                distinct.append(here)
        return distinct

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
        minima = self._places.minima(moved, self._matters, worth, zero)
        return [here for here in minima if zero is None or abs(miss(here)[0][0]) <= SHARE_MISSED]

    def _polished(self, best: Place, worth: Rule, share: float | None = None) -> Place:
        """The same minimum, found once more from where it was found."""
        for here in self._minima([(best.x, best)] * 2, worth, share):
            if worth(here)[0] < worth(best)[0]:
                best = here
        return best

    def _scattered(self, x: Array, spread: float) -> Array:
        """A random pose around another."""
        return self._places.within(x + spread * (self._rng.uniform(size=len(x)) - 0.5))


# -- poses of an axis ------------------------------------------------------------------------

_FLAT = 1e-3
"""An axis that moves the point no more steeply than this moves it horizontally."""


@dataclass(frozen=True, eq=False)
class Pose:
    """A pose with some extension.

    Args:
        share: the share that was asked for.
        reached: the share that it has.
        distance: of the point from the axis [m].
        direction: sign of the motion of the axis that moves the point downwards; 1 if it moves it
            horizontally.
        fall: part of the point's speed that then goes downwards, 0 to 1.
        q: configuration, shape (nq,).
        joints: values of the driven joints [rad, m].
        given: whether the user gave it.
    """

    share: float
    reached: float
    distance: float
    direction: float
    fall: float
    q: Array
    joints: Mapping[str, float]
    given: bool = False

    @property
    def motion(self) -> Literal["horizontally", "downwards"]:
        """How the axis moves the point."""
        return "downwards" if self.fall > _FLAT else "horizontally"


@dataclass(frozen=True, eq=False)
class Extension:
    """What an axis can reach, and the poses with some shares of that.

    Args:
        least: least distance of the point from the axis [m].
        largest: largest distance [m].
        poses: by share; shares that no pose has are missing.
        varied: driven joints that were varied.
        room: how far the axis can still move in its poses [rad, m].
    """

    axis: str
    least: float
    largest: float
    poses: Mapping[float, Pose] = field(repr=False)
    varied: tuple[str, ...]
    room: float


class Finder:
    """Finds poses as seen from driven joints; remembers the fully extended ones."""

    def __init__(self, robot: Mechanism, driven: Sequence[str], point: Point) -> None:
        self.robot, self.driven, self.point = robot, tuple(driven), point
        self.home = assemble(robot)
        self._full: dict[tuple[str, float], tuple[Search, Place, float]] = {}

    def extended(self, axis: str, room: float = 0.0) -> Pose:
        """The fully extended pose of an axis; see `extension`."""
        search, full, direction = self._extended(axis, room)
        return self._pose(search, 1.0, full.q, direction)

    def extension(
        self,
        axis: str,
        shares: Iterable[float],
        given: Mapping[float, Any] | None = None,
        room: float = 0.0,
    ) -> Extension:
        """The poses of an axis.

        ``axis``: the axis, one of the driven joints; ``shares``: shares of the largest extension,
        above 0 and up to 1; ``given``: poses to be used instead, by share: configurations, or
        values by joint; ``room``: how far the axis must still be able to move [rad, m].
        """
        given = given or {}
        search, full, direction = self._extended(axis, room)
        wanted = {share for share in shares if share not in given}
        places = search.with_shares(wanted - {1.0}, direction, full) | {1.0: full}
        poses = {}
        for share in sorted(wanted | set(given)):
            if share in given:
                poses[share] = self._pose(search, share, self._taken(given[share]), None)
            elif share in places:
                poses[share] = self._pose(search, share, places[share].q, direction)
            else:
                self._check_gap(search, axis, share)
        return Extension(axis, search.least, search.largest, poses, self._varied(axis), room)

    def _extended(self, axis: str, room: float = 0.0) -> tuple[Search, Place, float]:
        """Search from an axis, the fully extended pose, and the direction of the motion there."""
        if (axis, room) not in self._full:
            # Where the axis goes is known from the pose that needs no room.
            direction = self._extended(axis)[2] if room > 0 else 0.0
            search = self._search(axis, direction, room)
            self._full[axis, room] = (search, *search.extended())
        return self._full[axis, room]

    def _search(self, axis: str, direction: float, room: float) -> Search:
        """Search from an axis, with room in some direction."""
        robot, q = self.robot, self.home
        for carrier in reversed(self._carriers(axis)):
            q = self._extended(carrier)[1].q
            if abs(self._extended(carrier)[1].lever.fall) > _FLAT:
                break
        driven = Driven(robot, self.driven, axis, self.point, q)
        varied = self._varied(axis)
        if axis not in varied:
            raise BadValue(f"joint '{axis}' of robot '{robot.name}' cannot move: its limits meet")
        limits = np.array([self._range(name) for name in varied])
        search = Search(Places(driven, varied, limits, direction, room), direction)
        if not search.found:
            raise BadValue(
                f"robot '{robot.name}': no pose within all limits was found for axis '{axis}'; "
                "look at the limits of its joints"
            )
        return search

    def _pose(self, search: Search, share: float, q: Array, direction: float | None) -> Pose:
        """A pose as it is reported; of one that the user gave the direction is not known."""
        lever, given = search.lever(q), direction is None
        if direction is None:
            direction = -1.0 if lever.fall < -_FLAT else 1.0
        reached = 1.0 if search.point_on_axis else lever.distance / search.largest
        values = {name: joint_value(self.robot, name, q) for name in self.driven}
        fall = direction * lever.fall
        return Pose(share, reached, lever.distance, direction, fall, q, values, given)

    def _taken(self, pose: Any) -> Array:
        """A pose that the user gave, assembled."""
        if isinstance(pose, Mapping):
            home = {name: joint_value(self.robot, name, self.home) for name in self.driven}
            return assemble(self.robot, fixed={**home, **pose}, limits=False)
        q = self.robot.checked_configuration(pose)
        return assemble(self.robot, q, limits=False)

    def _check_gap(self, search: Search, axis: str, share: float) -> None:
        """A share may be missing below the least one, but not between it and the largest."""
        if not search.point_on_axis and share * search.largest > search.least:
            raise BadValue(
                f"robot '{self.robot.name}': no pose was found in which axis '{axis}' is extended "
                f"by {100 * share:g} %; give it with extension_poses="
            )

    def _varied(self, axis: str) -> tuple[str, ...]:
        """Driven joints that may vary: they do not carry the axis, and have somewhere to go."""
        carriers = self._carriers(axis)
        ranges = {name: self._range(name) for name in self.driven if name not in carriers}
        return tuple(name for name, (low, high) in ranges.items() if low < high)

    def _range(self, joint: str) -> tuple[float, float]:
        """Limits of a driven joint; a turn for one that turns without limits, none for a slider."""
        here = joint_value(self.robot, joint, self.home)
        low, high = position_range(self.robot, joint)
        if np.isfinite(low) and np.isfinite(high):
            return low, high
        if units_of(self.robot, joint) is SLIDING:
            return here, here
        if np.isfinite(low):
            return low, low + 2 * np.pi
        return (high - 2 * np.pi, high) if np.isfinite(high) else (here - np.pi, here + np.pi)

    def _carriers(self, joint: str) -> list[str]:
        """Driven joints of the tree that carry a joint, the nearest first."""
        model, joints = self.robot.model, []
        index = model.parents[self.robot.coordinates(joint).index]
        while index:
            joints.append(str(model.names[index]))
            index = model.parents[index]
        return [name for name in joints if name in self.driven]
