"""All forces on a robot together: torques, powers, stored energies, damping."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ..errors import BadValue, PinloopError
from ..model.mechanism import Mechanism
from .forces import BoundForce, Force

Array = NDArray[np.float64]


class AppliedForces:
    """The forces on a robot, at the kinematics that a `pin.Data` holds.

    Args:
        robot: the mechanism.
        forces: what acts on it besides gravity.

    Attributes:
        bound: the forces, each with a name of its own.
    """

    def __init__(self, robot: Mechanism, forces: Sequence[Force]) -> None:
        self._nv = robot.nv
        self.bound = _with_unique_names([force.bind(robot) for force in forces])

    def torque(self, t: float, q: Array, v: Array, data: pin.Data) -> Array:
        """Sum of the generalised forces, shape (nv,)."""
        total = np.zeros(self._nv)
        for force in self.bound:
            try:
                tau = force.torque(t, q, v, data)
            except PinloopError:
                raise
            except Exception as error:
                raise BadValue(
                    f"force '{force.name}' raised {type(error).__name__} at t = {t:.6g} s: {error}"
                ) from error
            if not np.all(np.isfinite(tau)):
                raise BadValue(f"force '{force.name}' is not finite at t = {t:.6g} s")
            total += tau
        return total

    def powers(self, t: float, q: Array, v: Array, data: pin.Data) -> dict[str, float]:
        """Power of each force that does not store its work [W]."""
        return {
            force.name: float(force.torque(t, q, v, data) @ v)
            for force in self.bound
            if not force.conservative
        }

    def energies(self, t: float, q: Array, data: pin.Data) -> dict[str, float]:
        """Stored energy of each force that stores its work [J]."""
        return {f.name: f.energy(t, q, data) for f in self.bound if f.conservative}

    def dampings(self, t: float, q: Array, v: Array, data: pin.Data) -> dict[str, Array]:
        """``-d torque / d v`` of each force of which it is known, shape (nv, nv)."""
        by_force = {force.name: force.damping(t, q, v, data) for force in self.bound}
        return {name: D for name, D in by_force.items() if D is not None}


def _with_unique_names(forces: list[BoundForce]) -> tuple[BoundForce, ...]:
    """Number forces of the same name, so that each has its own line in energy balances."""
    seen: dict[str, int] = {}
    for force in forces:
        seen[force.name] = seen.get(force.name, 0) + 1
        if seen[force.name] > 1:
            force.name = f"{force.name} ({seen[force.name]})"
    return tuple(forces)
