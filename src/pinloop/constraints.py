"""Constraint rows of a mechanism: closures of loop joints, couplings, each row with a label.

At a state they give the residual, the Jacobian and the velocity-dependent part of the
acceleration (DESIGN: ``J a + gamma = 0``). Nothing here decides what to do about them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from .description import Coupling
from .mechanism import LoopJoint, Mechanism
from .pairs import MotionGroup

__all__ = ["Constraints"]

Array = NDArray[np.float64]


class Constraints:
    """All rows that the loops and couplings of a robot impose.

    Args:
        robot: the mechanism.
        full: take all rows of every pair, also those that regularization has removed.

    Attributes:
        labels: one label per row, ``"<loop>: v_x"`` or ``"<coupling>"``; a row that combines
            several of a pair's rows is numbered.
        rows_of: rows of each loop joint and coupling, by name.
        angular: per row, whether it measures angles only [rad] rather than lengths [m].
    """

    def __init__(self, robot: Mechanism, *, full: bool = False) -> None:
        self.robot = robot
        self.labels: tuple[str, ...] = ()
        self.rows_of: dict[str, slice] = {}
        self.angular: tuple[bool, ...] = ()
        report = None if full else robot.regularization
        self._select = {
            loop.name: np.eye(loop.pair.rows) if report is None else report.selection(loop.name)
            for loop in robot.loops
        }
        for loop in robot.loops:
            selection = self._select[loop.name]
            labels = _row_labels(selection, loop.pair.labels)
            angles = np.array([label.startswith("w") for label in loop.pair.labels], dtype=bool)
            angular = ~np.any(selection[:, ~angles] != 0, axis=1)
            self._append(loop.name, [f"{loop.name}: {label}" for label in labels], angular)
        # The selector of a motion group is the same everywhere.
        self._constant = {
            loop.name: self._select[loop.name] @ loop.pair.selector(pin.SE3.Identity())
            for loop in robot.loops
            if isinstance(loop.pair, MotionGroup)
        }
        self._couplings = tuple(
            coupling
            for coupling in robot.couplings
            if report is None or coupling.name in report.couplings
        )
        for coupling in self._couplings:
            lead = robot.coordinates(coupling.joints[0])
            turning = not robot.is_translation[lead.v.start]
            self._append(coupling.name, [coupling.name], [turning])
        self._columns = {
            coupling.name: [robot.coordinates(joint) for joint in coupling.joints]
            for coupling in self._couplings
        }
        self._polynomials = {
            coupling.name: [_derivatives(polynomial) for polynomial in coupling.polynomials]
            for coupling in self._couplings
        }

    @cached_property
    def _data(self) -> pin.Data:
        """Made when first needed: it is large for robots of hundreds of joints."""
        return self.robot.model.createData()

    def _append(self, name: str, labels: list[str], angular: Iterable[bool]) -> None:
        start = len(self.labels)
        self.labels += tuple(labels)
        self.angular += tuple(map(bool, angular))
        self.rows_of[name] = slice(start, start + len(labels))

    def __len__(self) -> int:
        return len(self.labels)

    def residual(self, q: ArrayLike) -> Array:
        """Closure residual, shape (rows,), m and rad; zero where every loop is closed."""
        q = self.robot.checked_configuration(q)
        pin.framesForwardKinematics(self.robot.model, self._data, q)
        return self.residual_at(self._data, q)

    def jacobian(self, q: ArrayLike) -> Array:
        """Constraint Jacobian ``J``, shape (rows, nv), with ``d residual/dt = J v`` if closed."""
        q = self.robot.checked_configuration(q)
        pin.computeJointJacobians(self.robot.model, self._data, q)
        pin.updateFramePlacements(self.robot.model, self._data)
        return self.jacobian_at(self._data, q)

    def gamma(self, q: ArrayLike, v: ArrayLike) -> Array:
        """Velocity-dependent part of the constraint acceleration ``J a + gamma``, shape (rows,)."""
        q, v = self.robot.checked_configuration(q), self.robot.checked_velocity(v)
        pin.forwardKinematics(self.robot.model, self._data, q, v, np.zeros(self.robot.nv))
        pin.updateFramePlacements(self.robot.model, self._data)
        return self.gamma_at(self._data, q, v)

    def residual_at(self, data: pin.Data, q: Array) -> Array:
        """Residual at the frame placements that ``data`` holds."""
        residual = np.empty(len(self))
        for loop in self.robot.loops:
            rows = loop.pair.residual(_relative(data, loop))
            residual[self.rows_of[loop.name]] = self._select[loop.name] @ rows
        for coupling in self._couplings:
            residual[self.rows_of[coupling.name]] = sum(self._terms(coupling, q, 0))
        return residual

    def jacobian_at(self, data: pin.Data, q: Array) -> Array:
        """Jacobian at the frame placements and joint Jacobians that ``data`` holds."""
        jacobian = np.zeros((len(self), self.robot.nv))
        for loop in self.robot.loops:
            selector = self._selector(loop, data)
            jacobian[self.rows_of[loop.name]] = selector @ self._twist_jacobian(loop, data)
        for coupling in self._couplings:
            row = self.rows_of[coupling.name].start
            slopes = self._terms(coupling, q, 1)
            for at, slope in zip(self._columns[coupling.name], slopes, strict=True):
                jacobian[row, at.v.start] = slope
        return jacobian

    def gamma_at(self, data: pin.Data, q: Array, v: Array) -> Array:
        """``gamma`` at the placements, velocities and zero-acceleration drift in ``data``."""
        gamma = np.empty(len(self))
        for loop in self.robot.loops:
            gamma[self.rows_of[loop.name]] = self._loop_gamma(loop, data)
        for coupling in self._couplings:
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
        return self._twist_jacobian(loop, self._data)

    def wrench(self, data: pin.Data, loop: str, multipliers: Array) -> Array:
        """Wrench on body B of a loop joint, at and in frame B, force first, shape (6,)."""
        joint = next(joint for joint in self.robot.loops if joint.name == loop)
        return np.asarray(self._selector(joint, data).T @ multipliers)

    def by_name(self, residual: Array) -> dict[str, float]:
        """Norm of the residual of each loop and coupling."""
        return {name: float(np.linalg.norm(residual[rows])) for name, rows in self.rows_of.items()}

    def _selector(self, loop: LoopJoint, data: pin.Data) -> Array:
        """Rows that take the relative twist to the residual rate, after regularization."""
        constant = self._constant.get(loop.name)
        if constant is not None:
            return constant
        return self._select[loop.name] @ loop.pair.selector(_relative(data, loop))

    def _twist_jacobian(self, loop: LoopJoint, data: pin.Data) -> Array:
        """``J_B - Ad(T^-1) J_A`` at the state that the data holds."""
        model = self.robot.model
        if self.robot.nv == 0:  # Pinocchio reads past the end of an empty Jacobian
            return np.zeros((6, 0))
        J_a = pin.getFrameJacobian(model, data, loop.frame_a, pin.LOCAL)
        J_b = pin.getFrameJacobian(model, data, loop.frame_b, pin.LOCAL)
        relative = J_b - _relative(data, loop).toActionMatrixInverse() @ J_a
        return np.asarray(relative.reshape(6, -1))  # Pinocchio gives shape (6,) for nv = 1

    def _loop_gamma(self, loop: LoopJoint, data: pin.Data) -> Array:
        """``S (A_B - X A_A + V_rel x X V_A) + dS/dt V_rel`` with ``X = Ad(T^-1)``.

        The derivative of ``V_rel = V_B - X V_A``: the last bracket is ``-dX/dt V_A``. Spatial
        accelerations, not classical ones.
        """
        model = self.robot.model
        T = _relative(data, loop)
        V_a = T.actInv(pin.getFrameVelocity(model, data, loop.frame_a, pin.LOCAL))
        V_b = pin.getFrameVelocity(model, data, loop.frame_b, pin.LOCAL)
        A_a = T.actInv(pin.getFrameAcceleration(model, data, loop.frame_a, pin.LOCAL))
        A_b = pin.getFrameAcceleration(model, data, loop.frame_b, pin.LOCAL)
        V = V_b - V_a
        drift = (A_b - A_a + V.cross(V_a)).vector
        gamma = self._selector(loop, data) @ drift
        if loop.name not in self._constant:
            gamma += self._select[loop.name] @ loop.pair.bias(T, V.vector)
        return np.asarray(gamma)

    def _terms(self, coupling: Coupling, q: Array, derivative: int) -> list[float]:
        """``derivative``-th derivatives of the polynomials of a coupling at ``q``."""
        columns = self._columns[coupling.name]
        return [
            _horner(coefficients[derivative], float(q[at.q.start]))
            for coefficients, at in zip(self._polynomials[coupling.name], columns, strict=True)
        ]


def _derivatives(polynomial: tuple[float, ...]) -> list[tuple[float, ...]]:
    """Coefficients of a polynomial and its first two derivatives, lowest power first."""
    found = [polynomial]
    for _ in range(2):
        found.append(tuple(k * c for k, c in enumerate(found[-1]))[1:])
    return found


def _horner(coefficients: tuple[float, ...], x: float) -> float:
    """Value of a polynomial."""
    value = 0.0
    for coefficient in reversed(coefficients):
        value = value * x + coefficient
    return value


def _relative(data: pin.Data, loop: LoopJoint) -> pin.SE3:
    """Placement of B in A at the state that the data holds."""
    return data.oMf[loop.frame_a].actInv(data.oMf[loop.frame_b])


def _row_labels(selection: Array, labels: tuple[str, ...]) -> list[str]:
    """Label of each selected row: the pair's own where it is one of its rows, else a number."""
    named = []
    for number, row in enumerate(selection, start=1):
        only = np.flatnonzero(row)
        whole = len(only) == 1 and row[only[0]] == 1.0
        named.append(labels[only[0]] if whole else f"row {number} of {len(selection)}")
    return named
