"""The torques of a stop as a force on its trajectory, so that its energies and reactions are right.

Here is what acts in one phase; how it is computed stands in `equations`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ...dynamics.forces import BoundForce, Force
from ...model.mechanism import Mechanism
from .equations import StopEquations
from .phase import Phase

__all__ = ["StopTorque"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class StopTorque(Force):
    """What brakes, friction, gears and drives exert on the joints in one phase of a stop.

    What holds the joints that stick is left out: on the trajectory these are locked, and the
    reaction of the lock is that torque.

    Args:
        equations: the equations of the stop.
        phase: the phase.
    """

    equations: StopEquations
    phase: Phase

    def bind(self, robot: Mechanism) -> BoundForce:
        """The force on the robot of the trajectory, whose mass matrix has all rotors."""
        return _BoundStopTorque(self)


class _BoundStopTorque(BoundForce):
    def __init__(self, given: StopTorque) -> None:
        self.name, self._given = "brakes, friction, drives", given

    def torque(self, t: float, q: Array, v: Array, data: pin.Data) -> Array:
        equations, phase = self._given.equations, self._given.phase
        equations.enter(phase)
        solved = equations.solve(t, q, v)
        # In the stop, rotors behind gears with losses are torques; in a trajectory they are masses.
        torque = solved.torque + equations.train.lossy * solved.a
        torque[phase.stuck] = 0.0
        return torque
