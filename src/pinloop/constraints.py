"""Constraint rows of a mechanism: closures of loop joints, couplings, each row with a label.

At a state they give the residual, the Jacobian and the velocity-dependent part of the
acceleration (DESIGN: ``J a + gamma = 0``). Nothing here decides what to do about them.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from .description import Coupling
from .mechanism import LoopJoint, Mechanism

__all__ = ["Constraints"]

Array = NDArray[np.float64]


class Constraints:
    """All rows that the loops and couplings of a robot impose.

    Args:
        robot: the mechanism.

    Attributes:
        labels: one label per row, ``"<loop>: v_x"`` or ``"<coupling>"``.
        rows_of: rows of each loop joint and coupling, by name.
    """

    def __init__(self, robot: Mechanism) -> None:
        self.robot = robot
        self.labels: tuple[str, ...] = ()
        self.rows_of: dict[str, slice] = {}
        for loop in robot.loops:
            self._append(loop.name, [f"{loop.name}: {label}" for label in loop.pair.labels])
        for coupling in robot.couplings:
            self._append(coupling.name, [coupling.name])
        self._data = robot.model.createData()
        self._columns = {
            coupling.name: [robot.coordinates(joint) for joint in coupling.joints]
            for coupling in robot.couplings
        }

    def _append(self, name: str, labels: list[str]) -> None:
        start = len(self.labels)
        self.labels += tuple(labels)
        self.rows_of[name] = slice(start, start + len(labels))

    def __len__(self) -> int:
        return len(self.labels)

    def residual(self, q: ArrayLike) -> Array:
        """Closure residual, shape (rows,), m and rad; zero where every loop is closed."""
        q = self.robot.checked_configuration(q)
        self._place(q)
        residual = np.empty(len(self))
        for loop in self.robot.loops:
            residual[self.rows_of[loop.name]] = loop.pair.residual(self._relative(loop))
        for coupling in self.robot.couplings:
            residual[self.rows_of[coupling.name]] = sum(self._terms(coupling, q, 0))
        return residual

    def jacobian(self, q: ArrayLike) -> Array:
        """Constraint Jacobian ``J``, shape (rows, nv), with ``d residual/dt = J v`` if closed."""
        q = self.robot.checked_configuration(q)
        model, data = self.robot.model, self._data
        pin.computeJointJacobians(model, data, q)
        pin.updateFramePlacements(model, data)
        jacobian = np.zeros((len(self), self.robot.nv))
        for loop in self.robot.loops:
            selector = loop.pair.selector(self._relative(loop))
            jacobian[self.rows_of[loop.name]] = selector @ self._twist_jacobian(loop)
        for coupling in self.robot.couplings:
            row = self.rows_of[coupling.name].start
            slopes = self._terms(coupling, q, 1)
            for at, slope in zip(self._columns[coupling.name], slopes, strict=True):
                jacobian[row, at.v.start] = slope
        return jacobian

    def gamma(self, q: ArrayLike, v: ArrayLike) -> Array:
        """Velocity-dependent part of the constraint acceleration ``J a + gamma``, shape (rows,)."""
        q, v = self.robot.checked_configuration(q), self.robot.checked_velocity(v)
        model, data = self.robot.model, self._data
        pin.forwardKinematics(model, data, q, v, np.zeros(self.robot.nv))
        pin.updateFramePlacements(model, data)
        gamma = np.empty(len(self))
        for loop in self.robot.loops:
            gamma[self.rows_of[loop.name]] = self._loop_gamma(loop)
        for coupling in self.robot.couplings:
            curvature = self._terms(coupling, q, 2)
            rates = [v[at.v.start] for at in self._columns[coupling.name]]
            gamma[self.rows_of[coupling.name]] = sum(
                c * rate**2 for c, rate in zip(curvature, rates, strict=True)
            )
        return gamma

    def twist_jacobian(self, q: ArrayLike, loop: LoopJoint) -> Array:
        """Jacobian of the twist of B relative to A of a loop joint, expressed in B: (6, nv)."""
        q = self.robot.checked_configuration(q)
        pin.computeJointJacobians(self.robot.model, self._data, q)
        pin.updateFramePlacements(self.robot.model, self._data)
        return self._twist_jacobian(loop)

    def by_name(self, residual: Array) -> dict[str, float]:
        """Norm of the residual of each loop and coupling."""
        return {name: float(np.linalg.norm(residual[rows])) for name, rows in self.rows_of.items()}

    def _place(self, q: Array) -> None:
        pin.forwardKinematics(self.robot.model, self._data, q)
        pin.updateFramePlacements(self.robot.model, self._data)

    def _relative(self, loop: LoopJoint) -> pin.SE3:
        """Placement of B in A at the state that the data holds."""
        placements = self._data.oMf
        return placements[loop.frame_a].actInv(placements[loop.frame_b])

    def _twist_jacobian(self, loop: LoopJoint) -> Array:
        """``J_B - Ad(T^-1) J_A`` at the state that the data holds."""
        model, data = self.robot.model, self._data
        J_a = pin.getFrameJacobian(model, data, loop.frame_a, pin.LOCAL)
        J_b = pin.getFrameJacobian(model, data, loop.frame_b, pin.LOCAL)
        return np.asarray(J_b - self._relative(loop).toActionMatrixInverse() @ J_a)

    def _loop_gamma(self, loop: LoopJoint) -> Array:
        """``S (A_B - X A_A + V_rel x X V_A) + dS/dt V_rel`` with ``X = Ad(T^-1)``.

        The derivative of ``V_rel = V_B - X V_A``: the last bracket is ``-dX/dt V_A``. Spatial
        accelerations, not classical ones.
        """
        model, data = self.robot.model, self._data
        T = self._relative(loop)
        V_a = T.actInv(pin.getFrameVelocity(model, data, loop.frame_a, pin.LOCAL))
        V_b = pin.getFrameVelocity(model, data, loop.frame_b, pin.LOCAL)
        A_a = T.actInv(pin.getFrameAcceleration(model, data, loop.frame_a, pin.LOCAL))
        A_b = pin.getFrameAcceleration(model, data, loop.frame_b, pin.LOCAL)
        V = V_b - V_a
        drift = (A_b - A_a + V.cross(V_a)).vector
        pair = loop.pair
        return np.asarray(pair.selector(T) @ drift + pair.bias(T, V.vector))

    def _terms(self, coupling: Coupling, q: Array, derivative: int) -> list[float]:
        """``derivative``-th derivatives of the polynomials of a coupling at ``q``."""
        values = []
        for polynomial, at in zip(coupling.polynomials, self._columns[coupling.name], strict=True):
            function = np.polynomial.Polynomial(polynomial)
            if derivative:
                function = function.deriv(derivative)
            values.append(float(function(q[at.q.start])))
        return values
