"""Axes of joints that drives turn or that have limits, in the tree or where a loop is closed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import pinocchio as pin

from ..boundary.arguments import require_kind
from ..boundary.marks import Array
from ..constraints.relative_motion import JointMotion
from ..errors import BadValue, UnknownName, shown
from ..linalg.box import Bounds
from ..model.mechanism import Mechanism
from ..tables.number_format import SLIDING, TURNING

Limits = Mapping[str, float | tuple[float, float]]
"""Limits by joint: the same both ways, or the lowest and the highest value; may be infinite."""


class JointAxes:
    """The axes of some joints, one after the other.

    Args:
        robot: the mechanism.
        joints: names of joints, also of ones that close loops.

    Attributes:
        joints: their names.
        names: name of each axis: that of its joint, and of the axis if there are several.
        units: unit of the torque of each axis.
        columns: velocity coordinate of each axis, -1 where its joint closes a loop.
    """

    def __init__(self, robot: Mechanism, joints: Sequence[str]) -> None:
        require_kind(joints, Sequence, "the list of joints", "name them, as in ['elbow']")
        if isinstance(joints, str):
            raise BadValue(f"the joints are {joints!r}; give a list")
        self._robot, self.joints = robot, tuple(joints)
        self._motions = [JointMotion(robot, joint) for joint in joints]
        self.names = tuple(
            motion.joint if len(motion.axes) == 1 else f"{motion.joint}.{axis}"
            for motion in self._motions
            for axis in motion.axes
        )
        linear = [x for motion in self._motions for x in motion.is_translation]
        self.units = tuple((SLIDING if x else TURNING).torque for x in linear)
        self.columns = np.array(
            [
                -1 if motion.closes_loop else robot.coordinates(motion.joint).v.start + k
                for motion in self._motions
                for k in range(len(motion.axes))
            ],
            dtype=np.intp,
        )
        self._constant = np.eye(robot.nv)[self.columns]

    def jacobian(self, data: pin.Data) -> Array:
        """``G``: the axes move at ``G v``; shape (k, nv), at the kinematics in ``data``."""
        if (self.columns >= 0).all():
            return self._constant
        return np.vstack([motion.jacobian(data) for motion in self._motions])

    def numbers(self, given: Mapping[str, float], default: float, what: str) -> Array:
        """Numbers by joint as numbers by axis, shape (k,)."""
        for joint, value in given.items():
            self._know(joint)
            if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
                raise BadValue(f"the {what} of '{joint}' is {shown(value)}; give a number")
        return np.array(
            [given.get(motion.joint, default) for motion in self._motions for _ in motion.axes],
            dtype=float,
        )

    def limits(self, kind: Literal["effort", "velocity"], given: Limits) -> Bounds:
        """Limits of torques or of speeds, per axis.

        Args:
            kind: which.
            given: instead of those of the robot's file, where zero is none.
        """
        for joint in given:
            self._know(joint)
        ends = [
            _limit(motion.joint, given[motion.joint]) if motion.joint in given else (-limit, limit)
            for motion in self._motions
            for limit in self._of_file(motion, kind)
        ]
        low, high = np.array(ends, dtype=float).reshape(-1, 2).T
        return Bounds(low, high)

    def _know(self, joint: str) -> None:
        if joint not in self.joints:
            raise UnknownName("driven joint", joint, self.joints, self._robot.name)

    def _of_file(self, motion: JointMotion, kind: Literal["effort", "velocity"]) -> list[float]:
        """Limits of a joint, one per axis."""
        joints = self._robot.description.joints
        values = getattr(next(x for x in joints if x.name == motion.joint), kind)
        if not motion.closes_loop:
            model, at = self._robot.model, self._robot.coordinates(motion.joint).v
            own = model.upperEffortLimit if kind == "effort" else model.upperVelocityLimit
            values = own[at].tolist()
        return [float(x) or np.inf for x in values or [np.inf] * len(motion.axes)]


def _limit(joint: str, limit: float | tuple[float, float]) -> tuple[float, float]:
    """A limit that is given, as lowest and highest value."""
    try:
        low, high = (-limit, limit) if isinstance(limit, (int, float, np.number)) else limit
        if float(low) <= float(high):
            return float(low), float(high)
    except (TypeError, ValueError):
        pass
    raise BadValue(
        f"the limit of '{joint}' is {shown(limit)}; give a number >= 0, or a pair (low, high)"
    )
