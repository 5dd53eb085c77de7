"""Poses in which a robot is extended by a share of what it can, as seen from one of its axes.

Says which poses are wanted; how they are searched is in `posesearch`, nothing is stopped here.

**Extension** is the distance of a point (the payload's centre) from the line of an axis, as a share
of the largest distance that the limits of the joints allow. Joints that carry the axis do not
change it: they stay as in the fully extended pose of the axis nearest to the ground among them that
moves the point downwards (arms: the second axis, the whole arm stretched out and level).

**Which pose.** Many poses have the same extension. Of those the one is taken in which the axis
moves the point downwards most steeply while all other axes stand (arms: the point is as high as
the axis), among these the one nearest to the fully extended pose, joint coordinates in shares of
their ranges, and among those the one with the highest centre of mass (elbow up). A vertical axis
moves nothing downwards: then steepness does not count.

**Room.** A stop needs room: where one is asked for, the axis can still move so far within all
limits (those of passive joints by their rates at the pose).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...assembly.assemble import assemble
from ...errors import BadValue
from ...model.mechanism import Mechanism
from ...tables.number_format import joint_value
from .places import Place, Places
from .posesearch import Search
from .posture import Driven

__all__ = ["Extension", "Finder", "Point", "Pose"]

Array = NDArray[np.float64]

_FLAT = 1e-3
"""An axis that moves the point no more steeply than this moves it horizontally."""


@dataclass(frozen=True, eq=False)
class Point:
    """The point whose distance from an axis is the extension.

    Args:
        frame: body or frame that carries it.
        place: its place in this frame [m], shape (3,).
        down: direction of gravity in the world, shape (3,); zero without gravity.
    """

    frame: str
    place: Array
    down: Array


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
        axis: name of the axis.
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
    """Finds poses; remembers the fully extended ones.

    Args:
        robot: the robot.
        driven: its driven joints.
        point: the point that is moved.
    """

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

        Args:
            axis: the axis, one of the driven joints.
            shares: shares of the largest extension, above 0 and up to 1.
            given: poses to be used instead, by share: configurations, or values by joint.
            room: how far the axis must still be able to move [rad, m].

        Raises:
            BadValue: a given pose is impossible, or no pose was found.
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

    # -- poses ------------------------------------------------------------------------------

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
        robot, point, q = self.robot, self.point, self.home
        for carrier in reversed(self._carriers(axis)):
            q = self._extended(carrier)[1].q
            if abs(self._extended(carrier)[1].lever.fall) > _FLAT:
                break
        frame = robot.frame_id(point.frame)
        driven = Driven(robot, self.driven, axis, frame, point.place, point.down, q)
        varied = self._varied(axis)
        if axis not in varied:
            raise BadValue(f"joint '{axis}' of robot '{robot.name}' cannot move: its limits meet")
        low, high = np.array([self._range(name) for name in varied]).T
        search = Search(Places(driven, varied, low, high, direction, room), direction)
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

    # -- joints -----------------------------------------------------------------------------

    def _varied(self, axis: str) -> tuple[str, ...]:
        """Driven joints that may vary: they do not carry the axis, and have somewhere to go."""
        carriers = self._carriers(axis)
        found = []
        for name in self.driven:
            low, high = self._range(name)
            if name not in carriers and low < high:
                found.append(name)
        return tuple(found)

    def _range(self, joint: str) -> tuple[float, float]:
        """Limits of a driven joint; a turn for one that turns without limits, none for a slider."""
        at, model = self.robot.coordinates(joint), self.robot.model
        here = joint_value(self.robot, joint, self.home)
        low, high = -np.inf, np.inf
        if at.nq == 1:
            low = float(model.lowerPositionLimit[at.q.start])
            high = float(model.upperPositionLimit[at.q.start])
        if np.isfinite(low) and np.isfinite(high):
            return low, high
        if self.robot.is_translation[at.v.start]:
            return here, here
        if np.isfinite(low):
            return low, low + 2 * np.pi
        return (high - 2 * np.pi, high) if np.isfinite(high) else (here - np.pi, here + np.pi)

    def _carriers(self, joint: str) -> list[str]:
        """Driven joints of the tree that carry a joint, the nearest first."""
        model, found = self.robot.model, []
        index = int(model.parents[self.robot.coordinates(joint).index])
        while index:
            if model.names[index] in self.driven:
                found.append(str(model.names[index]))
            index = int(model.parents[index])
        return found
