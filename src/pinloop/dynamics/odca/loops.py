"""Loop joints as handles on their two bodies, as arrays.

The complement ``D`` of a loop joint is its selector, so that measure numbers are the multipliers of
the rows, after regularization if the robot had one.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ...mechanism import Mechanism
from ...pairs import MotionGroup
from .kinematics import Kinematics
from .spatial import adjoint, apply, apply_transposed, motion_cross

__all__ = ["LoopJoints"]

Array = NDArray[np.float64]


class LoopJoints:
    """The loop joints of a robot.

    Args:
        robot: the mechanism.
        kinematics: its tree.
        width: columns of ``D``, padding included.

    Attributes:
        body_a: body that carries frame A, shape (loops,); -1 for the ground.
        body_b: body that carries frame B.
        rows: number of rows of each loop.
        scale: unit of each column of ``D``, shape (loops, width).
        D: the complement in frame B, padded with zeros, shape (loops, 6, width).
        compliance: 1 where it is padding, shape (loops, width).
        on_a: wrenches on body A that ``D`` exerts, shape (loops, 6, width).
        on_b: wrenches on body B.
        gamma: velocity-dependent part of the rows, padded, shape (loops, width).
    """

    def __init__(self, robot: Mechanism, kinematics: Kinematics, width: int) -> None:
        self._robot, self._kinematics = robot, kinematics
        report = robot.regularization
        loops = robot.loops
        self._select = [
            np.eye(loop.pair.rows) if report is None else report.selection(loop.name)
            for loop in loops
        ]
        self.rows = [len(select) for select in self._select]
        self._moving = [k for k, loop in enumerate(loops) if not isinstance(loop.pair, MotionGroup)]
        frames = robot.model.frames
        ends = [(frames[loop.frame_a], frames[loop.frame_b]) for loop in loops]
        self.body_a = np.array([int(a.parentJoint) - 1 for a, _ in ends], dtype=np.intp)
        self.body_b = np.array([int(b.parentJoint) - 1 for _, b in ends], dtype=np.intp)
        n = len(loops)
        seats = np.array([[a.placement.homogeneous, b.placement.homogeneous] for a, b in ends])
        seats = seats.reshape(n, 2, 4, 4)
        self._seat_a = seats[:, 0, :3, :3], seats[:, 0, :3, 3]
        self._seat_b = seats[:, 1, :3, :3], seats[:, 1, :3, 3]
        self._to_b = adjoint(*self._seat_b)
        self.scale = np.ones((n, width))
        self.compliance = np.ones((n, width))
        self.D = np.zeros((n, 6, width))
        for k, rows in enumerate(self.rows):
            self.compliance[k, :rows] = 0.0
        self.rescale(self.scale)
        self.gamma = np.zeros((n, width))
        self.on_a, self.on_b = np.zeros((n, 6, width)), np.zeros((n, 6, width))

    def rescale(self, scale: Array) -> None:
        """Set the unit of each column."""
        self.scale = scale
        for k, loop in enumerate(self._robot.loops):
            self._fill(k, loop.pair.selector(pin.SE3.Identity()))

    def _fill(self, k: int, selector: Array) -> None:
        rows = self.rows[k]
        self.D[k, :, :rows] = (self._select[k] @ selector).T * self.scale[k, :rows]

    def update(self) -> None:
        """Follow the placements and twists of the tree."""
        kin = self._kinematics
        across, T = self._across()
        for k in self._moving:
            self._fill(k, self._robot.loops[k].pair.selector(_se3(T, k)))
        to_a = adjoint(*across)
        self.on_b = self._to_b.transpose(0, 2, 1) @ self.D
        self.on_a = -to_a.transpose(0, 2, 1) @ self.D
        V_a = apply(to_a, kin.V[self.body_a])
        V = apply(self._to_b, kin.V[self.body_b]) - V_a
        self.gamma = apply_transposed(self.D, motion_cross(V, V_a))
        for k in self._moving:
            bias = self._select[k] @ self._robot.loops[k].pair.bias(_se3(T, k), V[k])
            self.gamma[k, : self.rows[k]] += bias * self.scale[k, : self.rows[k]]

    def residual(self) -> Array:
        """Closure residual of each row in the units of ``D``, padded, shape (loops, width)."""
        _, T = self._across()
        found = np.zeros(self.gamma.shape)
        for k, loop in enumerate(self._robot.loops):
            rows = self._select[k] @ loop.pair.residual(_se3(T, k))
            found[k, : self.rows[k]] = rows * self.scale[k, : self.rows[k]]
        return found

    def _across(self) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Placement of frame B in body A, and in frame A."""
        kin = self._kinematics
        R_a, p_a = kin.world_R[self.body_a], kin.world_p[self.body_a]
        R_b, p_b = kin.world_R[self.body_b], kin.world_p[self.body_b]
        R = R_a.transpose(0, 2, 1) @ R_b @ self._seat_b[0]
        p = apply_transposed(R_a, p_b + apply(R_b, self._seat_b[1]) - p_a)
        seat_R, seat_p = self._seat_a
        return (R, p), (seat_R.transpose(0, 2, 1) @ R, apply_transposed(seat_R, p - seat_p))


def _se3(T: tuple[Array, Array], k: int) -> pin.SE3:
    return pin.SE3(T[0][k], T[1][k])
