"""Rows of couplings: gears, racks, mimic joints and cams between joints of the tree or of loops.

The coordinate of a joint that closes a loop, and so of every joint in absolute coordinates, follows
from the placements of two bodies, which do not tell whole turns: see `Coupling.turn_period`.
"""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin
from numpy.polynomial.polynomial import polyder

from ..boundary.marks import Array
from ..model.description import Coupling, middle_of_turn
from ..model.mechanism import Mechanism
from ..model.moving_tree import MovingTree
from .relative_motion import JointMotion, Placed
from .row_slopes import RowSlopes


class CouplingRow:
    """The row ``sum_i P_i(x_i) = 0`` of a coupling, with the coordinates ``x_i`` of its joints.

    Attributes:
        name: that of the coupling.
        angular: whether it measures an angle, as the coordinate of its first joint is one.
    """

    def __init__(self, robot: Mechanism, coupling: Coupling) -> None:
        self.name = coupling.name
        self._motions = [JointMotion(robot, joint) for joint in coupling.joints]
        self._derivatives = [
            [polyder(polynomial, order).tolist() for order in range(4)]
            for polynomial in coupling.polynomials
        ]
        joints = {joint.name: joint for joint in robot.description.joints}
        loops = {x.joint: joints[x.joint] for x in self._motions if x.closes_loop}
        self._near = [
            middle_of_turn(loops[x.joint]) or 0.0 if x.closes_loop else 0.0 for x in self._motions
        ]
        self._period = coupling.turn_period(loops) or 0.0
        self.angular = not self._motions[0].is_translation[0]

    def residual(self, data: Placed, q: Array) -> float:
        """``sum P(x)``, nearest to zero after whole turns of joints that close loops."""
        total = float(sum(self._terms(data, q, 0)))
        return math.remainder(total, self._period) if self._period else total

    def jacobian(self, data: Placed, q: Array) -> Array:
        """``sum P' dx/dq``, shape (nv,)."""
        slopes = np.array(self._terms(data, q, 1))
        return np.asarray(slopes @ np.vstack([motion.jacobian(data) for motion in self._motions]))

    def gamma(self, data: pin.Data, q: Array, v: Array) -> float:
        """``sum P'' (dx/dt)^2 + P' gamma_x``."""
        slopes, bends = self._terms(data, q, 1), self._terms(data, q, 2)
        return sum(
            bend * float(motion.speeds(data, v)[0]) ** 2 + slope * float(motion.drift(data)[0])
            for motion, slope, bend in zip(self._motions, slopes, bends, strict=True)
        )

    def slopes(
        self, tree: MovingTree, data: pin.Data, state: tuple[Array, Array, Array], weight: float
    ) -> RowSlopes:
        """Derivatives of ``sum P' x'`` and ``sum P' x'' + P'' x'^2``.

        Args:
            tree: the robot at the state.
            data: kinematics there, without joint accelerations.
            state: configuration, velocity, acceleration.
            weight: multiplier of the row.
        """
        q, v, a = state
        n = len(tree.twists)
        rows, force = np.zeros((4, 1, n)), np.zeros((n, n))
        terms = zip(self._motions, *(self._terms(data, q, k) for k in (1, 2, 3)), strict=True)
        for motion, slope, bend, third in terms:
            x, J = motion.slopes(tree, np.ones(1)), motion.jacobian(data)[0]
            rate, acceleration = float(J @ v), float(J @ a + motion.drift(data)[0])
            along = (bend * acceleration + third * rate**2) * x.J
            rows += (
                slope * x.J,
                slope * x.rate_q + bend * rate * x.J,
                slope * x.acceleration_q + along + 2.0 * bend * rate * x.rate_q,
                slope * x.acceleration_v + 2.0 * bend * rate * x.J,
            )
            force += weight * (slope * x.force_q + bend * np.outer(x.J[0], x.J[0]))
        return RowSlopes(rows[0], rows[1], rows[2], rows[3], force)

    def _terms(self, data: Placed, q: Array, derivative: int) -> list[float]:
        """Derivatives of the polynomials at the coordinates."""
        parts = zip(self._motions, self._near, self._derivatives, strict=True)
        return [
            _horner(derivatives[derivative], motion.position(q, data, near))
            for motion, near, derivatives in parts
        ]


def _horner(coefficients: list[float], x: float) -> float:
    """Value of a polynomial."""
    value = 0.0
    for coefficient in reversed(coefficients):
        value = value * x + coefficient
    return value
