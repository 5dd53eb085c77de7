"""The way of a point of the robot in a stop."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ...boundary.arguments import public
from ...model.mechanism import Mechanism
from ...model.workspace import create_data
from ...simulation.trajectory import Trajectory

__all__ = ["PointStop", "point_motion", "point_stop"]

Array = NDArray[np.float64]


@public
@dataclass(frozen=True, eq=False)
class PointStop:
    """The way of a point of the robot.

    Args:
        frame: the frame whose origin it is.
        t: times [s], shape (k,).
        path: places in the world [m], shape (k, 3).
        speed: [m/s], shape (k,).
        reaction: index of the time at which the reaction ends.
    """

    frame: str
    t: Array
    path: Array
    speed: Array
    reaction: int

    @property
    def displacement(self) -> float:
        """Straight distance from where it was at the signal to where it ends [m]."""
        return float(np.linalg.norm(self.path[-1] - self.path[0]))

    @property
    def length(self) -> float:
        """Length of the way [m]."""
        return _length(self.path)

    @property
    def reaction_length(self) -> float:
        """Length of the way in the reaction time [m]."""
        return _length(self.path[: self.reaction + 1])

    @property
    def braking_length(self) -> float:
        """Length of the way after the reaction time [m]."""
        return _length(self.path[self.reaction :])

    @property
    def peak_speed(self) -> float:
        """Largest speed [m/s]."""
        return float(self.speed.max())


def point_stop(run: Trajectory, frame: str, reaction_time: float, every: float) -> PointStop:
    """The way of the origin of a frame or body.

    ``reaction_time``: [s]; its end is one of the times, unless the motion ends before. ``every``:
    interval between its places [s].
    """
    end = float(run.t[-1])
    count = max(2, int(np.ceil(end / every)) + 1)
    reaction = min(reaction_time, end)
    times = np.union1d(np.linspace(0.0, end, count), [*run.t, reaction])
    path, speed = point_motion(run.robot, frame, *run(times)[1:])
    return PointStop(frame, times, path, speed, int(np.searchsorted(times, reaction)))


def point_motion(robot: Mechanism, frame: str, q: Array, v: Array) -> tuple[Array, Array]:
    """Places of the origin of a frame or body in the world [m], and its speeds [m/s].

    ``q``: configurations, shape (k, nq). ``v``: velocities, shape (k, nv).

    Returns:
        Shapes (k, 3) and (k,).
    """
    model, index = robot.model, robot.frame_id(frame)
    data = create_data(model)
    places, speeds = np.zeros((len(q), 3)), np.zeros(len(q))
    for row, state in enumerate(zip(q, v, strict=True)):
        pin.forwardKinematics(model, data, *state)
        places[row] = pin.updateFramePlacement(model, data, index).translation
        speeds[row] = np.linalg.norm(pin.getFrameVelocity(model, data, index, pin.LOCAL).linear)
    return places, speeds


def _length(path: Array) -> float:
    return float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())
