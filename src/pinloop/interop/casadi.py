"""Accelerations of looped robots as functions of CasADi; no optimal control problem lives here.

CasADi counts positions by all entries of ``q``. Where these are more than the velocities (the
quaternion of a ball joint, cosine and sine of a joint without ends) the function is that of the
normalised ``q``, also in its derivatives.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

from ..boundary.arguments import public
from ..boundary.marks import Array
from ..dynamics.derivatives import acceleration_at, derivatives_at
from ..dynamics.equations import EquationsOfMotion
from ..errors import BadValue
from ..linalg.dense import slopes

try:
    import casadi
except ImportError:
    raise BadValue("casadi is not installed: pip install 'pinloop[casadi]'") from None


class Acceleration(casadi.Callback):
    """Acceleration of a robot with loops and locks, ``a = f(q, v, tau)``, with its Jacobian.

    Use it as any `casadi.Function`, as long as this object lives. Forces and rows that depend on
    time are taken at time 0. Second derivatives are left to CasADi's differences: for IPOPT set
    ``hessian_approximation`` to "limited-memory".

    Args:
        equations: equations of motion, with what is locked and what acts besides ``tau``, the
            generalised forces, shape (nv,).
        name: name of the function.
        options: options of CasADi.
    """

    @public
    def __init__(
        self,
        equations: EquationsOfMotion,
        name: str = "acceleration",
        options: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.equations, self._sizes = equations, _sizes(equations)
        self._jacobians: list[_Jacobian] = []
        self.construct(name, options or {})

    def get_n_in(self) -> int:
        """``q``, ``v``, ``tau``."""
        return 3

    def get_n_out(self) -> int:
        """``a``."""
        return 1

    def get_name_in(self, i: int) -> str:
        """Names of the arguments."""
        return ("q", "v", "tau")[i]

    def get_name_out(self, i: int) -> str:
        """Name of the result."""
        return "a"

    def get_sparsity_in(self, i: int) -> Any:
        """Shapes of the arguments."""
        return casadi.Sparsity.dense(self._sizes[i])

    def get_sparsity_out(self, i: int) -> Any:
        """Shape of the result."""
        return casadi.Sparsity.dense(self.equations.robot.nv)

    def eval(self, arguments: list[Any]) -> list[Any]:
        """Acceleration."""
        q, v, tau = _state(self.equations, arguments)
        return [acceleration_at(self.equations, 0.0, q, v, tau)]

    def has_jacobian(self) -> bool:
        """It has."""
        return True

    def get_jacobian(self, name: str, inames: Any, onames: Any, options: Any) -> Any:
        """The Jacobian as a function, which lives as long as this one."""
        self._jacobians.append(_Jacobian(self.equations, name, options))
        return self._jacobians[-1]


class _Jacobian(casadi.Callback):
    """Derivatives of `Acceleration` by its arguments, after which CasADi gives its result."""

    def __init__(self, equations: EquationsOfMotion, name: str, options: Any) -> None:
        super().__init__()
        self.equations = equations
        self.construct(name, options)

    def get_n_in(self) -> int:
        return 4

    def get_n_out(self) -> int:
        return 3

    def get_sparsity_in(self, i: int) -> Any:
        return casadi.Sparsity.dense((*_sizes(self.equations), self.equations.robot.nv)[i])

    def get_sparsity_out(self, i: int) -> Any:
        return casadi.Sparsity.dense(self.equations.robot.nv, _sizes(self.equations)[i])

    def eval(self, arguments: list[Any]) -> list[Any]:
        q, v, tau = _state(self.equations, arguments[:3])
        d = derivatives_at(self.equations, 0.0, q, v, tau)
        by_q = d.ddq_dq @ _tangents(self.equations.robot.model, arguments[0])
        return [by_q, d.ddq_dv, d.ddq_dtau]


def _sizes(equations: EquationsOfMotion) -> tuple[int, int, int]:
    robot = equations.robot
    return robot.nq, robot.nv, robot.nv


def _state(equations: EquationsOfMotion, arguments: list[Any]) -> list[Array]:
    """Arguments of CasADi as arrays; ``q`` normalised."""
    q, v, tau = (np.array(argument, dtype=float).ravel() for argument in arguments)
    model = equations.robot.model
    return [q if model.nq == model.nv else pin.normalize(model, q), v, tau]


def _tangents(model: pin.Model, q: Any) -> Array:
    """Tangent coordinates per entry of a ``q`` that need not be normalised, shape (nv, nq)."""
    if model.nq == model.nv:
        return np.eye(model.nv)
    entries = np.array(q, dtype=float).ravel()
    unit = pin.normalize(model, entries)

    def moved(step: Array) -> Array:
        return np.asarray(pin.difference(model, unit, pin.normalize(model, entries + step)))

    return slopes(moved, model.nq).T
