"""When all that a stop has to stop counts as standing: by its speed, and for how long."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from ...boundary.arguments import checked, public
from ...boundary.marks import Array, Mask, NotNegative
from ...integrate import Step
from ...model.mechanism import Mechanism
from ...tolerances import HELD_ACCELERATION


@public
@checked
@dataclass(frozen=True)
class Standstill:
    """When everything that a stop has to stop counts as standing.

    Args:
        speed: residual speed that is irrelevant [rad/s, m/s].
        dwell: how long it must stay below [s], where nothing holds it.
    """

    speed: NotNegative = 1e-3
    dwell: NotNegative = 0.1


class StandstillWatch:
    """Since when a robot stands.

    Args:
        robot: the robot.
        single: mask of the coordinates of joints with one degree of freedom, shape (nv,).
        standstill: what counts as standing.

    Attributes:
        since: since when nothing is faster than that [s]; None if something is.
        tiny: speed that counts as zero [rad/s, m/s].
    """

    def __init__(self, robot: Mechanism, single: Mask, standstill: Standstill) -> None:
        self._robot, self.standstill = robot, standstill
        self._single, self._all_single = single, bool(single.all())
        self.since: float | None = None
        self.tiny = 0.0

    def holds(self, t: float, q: Array, v: Array, a: Array) -> bool:
        """Whether all stand for good as far as a state tells: at rest, or slow for long enough."""
        if not self._slow(q, v):
            self.since = None
            return False
        if self.since is None:
            self.since = t
        return self.rests(v, a) or t - self.since >= self.standstill.dwell

    def rests(self, v: Array, a: Array) -> bool:
        """Whether nothing moves nor begins to; loops leave rounding."""
        # Of a few numbers lists are faster than NumPy.
        still = all([abs(x) <= self.tiny for x in v.tolist()])
        return still and all([abs(x) <= HELD_ACCELERATION for x in a.tolist()])

    def look(self, step: Step) -> None:
        """What moved in a step has not stood since before, though it may stand at both ends."""
        most = self.standstill.speed * (step.t1 - step.t0)
        if any(abs(way) > most for way in step.psi[self._single].tolist()):
            self.since = None

    def _slow(self, q: Array, v: Array) -> bool:
        """Whether no joint with one axis, and no joint or frame in space, moves noticeably."""
        limit = self.standstill.speed
        single = v if self._all_single else v[self._single]
        if any([abs(x) > limit for x in single.tolist()]):
            return False
        if self._all_single:
            return True
        model, kinds = self._robot.model, (pin.FrameType.JOINT, pin.FrameType.OP_FRAME)
        points = [k for k, frame in enumerate(model.frames) if frame.type in kinds]
        with self._robot.workspace() as data:
            pin.forwardKinematics(model, data, q, v)
            pin.updateFramePlacements(model, data)
            speeds = [pin.getFrameVelocity(model, data, k, pin.LOCAL).linear for k in points]
        return all(np.linalg.norm(speed) <= limit for speed in speeds)
