"""Poses in which a robot is extended by a share of what it can, as seen from one of its axes.

Says which poses are wanted; how they are searched is in `posesearch`, nothing is stopped here.

**Extension** is the distance of a point (the payload's centre) from the line of an axis, as a share
of the largest distance that the limits of the joints allow. Joints that carry the axis do not
change it: they stay as in the fully extended pose of the axis nearest to the ground among them that
moves the point downwards (arms: the second axis, the whole arm stretched out and level).

**Which pose.** Many poses have the same extension. Of those the one is taken in which the axis
moves the point downwards most steeply while all other axes stand (arms: the point is as high as
the axis), and among these the one nearest to the fully extended pose, joint coordinates in shares
of their ranges. A vertical axis moves nothing downwards: then only nearness counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..assembly import assemble
from ..errors import BadValue
from ..mechanism import Mechanism
from ..stopping.figures import joint_value
from .posesearch import Search
from .posture import Driven

__all__ = ["Extension", "GivenPoses", "Point", "Pose", "extensions"]

Array = NDArray[np.float64]
GivenPoses = Mapping[str, Mapping[float, Any]]
"""Per axis and share a configuration, shape (nq,), or values by joint."""

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
        fall: part of the point's speed that goes downwards when the axis moves in the direction
            of `Extension`.
        q: configuration, shape (nq,).
        joints: values of the driven joints [rad, m].
        given: whether the user gave it.
    """

    share: float
    reached: float
    distance: float
    fall: float
    q: Array
    joints: Mapping[str, float]
    given: bool = False


@dataclass(frozen=True, eq=False)
class Extension:
    """What an axis can reach, and the poses with some shares of that.

    Args:
        axis: name of the axis.
        least: least distance of the point from the axis [m].
        largest: largest distance [m].
        motion: how the axis moves the point in its fully extended pose.
        direction: sign of the motion that is stopped.
        poses: by share; shares that no pose has are missing.
        joints: driven joints that were varied.
    """

    axis: str
    least: float
    largest: float
    motion: Literal["horizontally", "downwards"]
    direction: float
    poses: Mapping[float, Pose] = field(repr=False)
    joints: tuple[str, ...] = ()


def extensions(
    robot: Mechanism,
    driven: Sequence[str],
    axes: Sequence[str],
    shares: Sequence[float],
    point: Point,
    given: GivenPoses | None = None,
) -> dict[str, Extension]:
    """Find the poses of all shares for some axes.

    Args:
        robot: the robot.
        driven: its driven joints.
        axes: the axes, some of the driven joints.
        shares: shares of the largest extension, above 0 and up to 1.
        point: the point that is moved.
        given: poses to be used instead.

    Raises:
        BadValue: a joint has no limits, a given pose is impossible, or no pose was found.
    """
    finder = _Finder(robot, tuple(driven), point)
    return {axis: finder.extension(axis, shares, (given or {}).get(axis, {})) for axis in axes}


class _Finder:
    """Finds poses; remembers the fully extended ones.

    Args:
        robot: the robot.
        driven: its driven joints.
        point: the point that is moved.
    """

    def __init__(self, robot: Mechanism, driven: tuple[str, ...], point: Point) -> None:
        self.robot, self.driven, self.point = robot, driven, point
        self.home = assemble(robot)
        self._full: dict[str, tuple[Search, Array, float]] = {}

    def extension(
        self, axis: str, shares: Sequence[float], given: Mapping[float, Any]
    ) -> Extension:
        """The poses of one axis."""
        search, full, direction = self._extended(axis)
        poses = {}
        for share in sorted({*shares, *given}):
            if share in given:
                q = self._taken(given[share])
            else:
                place = full if share == 1.0 else search.with_share(share, direction, full)
                if place is None:
                    self._check_gap(search, axis, share)
                    continue
                q = search.configuration(place)
            lever = search.lever(q)
            reached = 1.0 if search.point_on_axis else lever.distance / search.largest
            values = {name: joint_value(self.robot, name, q) for name in self.driven}
            fall = direction * lever.fall
            poses[share] = Pose(share, reached, lever.distance, fall, q, values, share in given)
        steep = abs(search.lever(search.configuration(full)).fall) > _FLAT
        carried = self._carriers(axis)
        return Extension(
            axis,
            search.least,
            search.largest,
            "downwards" if steep else "horizontally",
            direction,
            poses,
            tuple(name for name in self.driven if name not in carried),
        )

    def _extended(self, axis: str) -> tuple[Search, Array, float]:
        """Search from an axis, the fully extended pose, and the direction of the motion there."""
        if axis not in self._full:
            carriers, q = self._carriers(axis), self.home
            for carrier in reversed(carriers):
                before, place, _ = self._extended(carrier)
                q = before.configuration(place)
                if abs(before.lever(q).fall) > _FLAT:
                    break
            search = self._search(axis, carriers, q)
            if not search.found:
                raise BadValue(
                    f"robot '{self.robot.name}': no pose within all limits was found for axis "
                    f"'{axis}'; give poses with extension_poses="
                )
            self._full[axis] = (search, *search.extended())
        return self._full[axis]

    def _search(self, axis: str, carriers: Sequence[str], q: Array) -> Search:
        robot, point = self.robot, self.point
        place, frame = point.place, robot.frame_id(point.frame)
        driven = Driven(robot, self.driven, axis, frame, place, point.down, q)
        ranges = [self._range(name, q) for name in self.driven]
        free = np.array(
            [
                name not in carriers and high > low
                for name, (low, high) in zip(self.driven, ranges, strict=True)
            ]
        )
        low, high = np.array(ranges)[free].reshape(-1, 2).T
        names = [name for name, varies in zip(self.driven, free, strict=True) if varies]
        if axis not in names:
            raise BadValue(f"joint '{axis}' of robot '{robot.name}' cannot move: its limits meet")
        return Search(driven, free, low, high - low, names.index(axis))

    def _range(self, joint: str, q: Array) -> tuple[float, float]:
        """Limits of a driven joint; a turn for one that turns without limits."""
        at, model = self.robot.coordinates(joint), self.robot.model
        here = joint_value(self.robot, joint, q)
        low, high = -np.inf, np.inf
        if at.nq == 1:
            low, high = (
                float(limits[at.q.start])
                for limits in (model.lowerPositionLimit, model.upperPositionLimit)
            )
        if np.isfinite(low) and np.isfinite(high):
            return low, high
        if self.robot.is_translation[at.v.start]:
            raise BadValue(
                f"sliding joint '{joint}' of robot '{self.robot.name}' has no limits: how far it "
                "extends is not known; give it limits, or poses with extension_poses="
            )
        # One side without a limit, or both: a whole turn.
        if np.isfinite(low):
            return low, low + 2 * np.pi
        if np.isfinite(high):
            return high - 2 * np.pi, high
        return here - np.pi, here + np.pi

    def _carriers(self, joint: str) -> list[str]:
        """Driven joints of the tree that carry a joint, the nearest first."""
        model, found = self.robot.model, []
        index = int(model.parents[self.robot.coordinates(joint).index])
        while index:
            if model.names[index] in self.driven:
                found.append(str(model.names[index]))
            index = int(model.parents[index])
        return found

    def _taken(self, pose: Any) -> Array:
        """A pose that the user gave, assembled."""
        if isinstance(pose, Mapping):
            home = {name: joint_value(self.robot, name, self.home) for name in self.driven}
            return assemble(self.robot, fixed={**home, **pose}, limits=False)
        return assemble(self.robot, self.robot.checked_configuration(pose), limits=False)

    def _check_gap(self, search: Search, axis: str, share: float) -> None:
        """A share may be missing below the least one, but not between it and the largest."""
        if not search.point_on_axis and share * search.largest > search.least:
            raise BadValue(
                f"robot '{self.robot.name}': no pose was found in which axis '{axis}' is extended "
                f"by {100 * share:g} %; give it with extension_poses="
            )
