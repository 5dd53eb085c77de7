"""Where the energy of a stop went, joint by joint: a sum that has to come out.

Kinetic and potential energy at the signal, and the work of the drives, against what brakes,
friction and gears turned into heat, what impacts destroyed, and what is left. The powers are
integrated over the dense output of the steps (`loads`), not taken from differences of energy: the
energy balance error is a check of everything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...simulation.accuracy import Accuracy, step_worth
from ...simulation.stabilization import Projection
from ...tolerances import SAME, TINY
from .history import StopHistory
from .loads import Loads, small_energy
from .stop_equations import StopEquations

__all__ = ["CLOSURE", "Ledger", "energies_at", "energy_ledger", "explained_error"]

Array = NDArray[np.float64]

CLOSURE = 1e-4
"""Part of the energy turned over that stops may miss, whatever the error of their steps is."""
_NOTHING = 1e3
"""So many small energies are nothing to speak of where hardly anything moves."""


@dataclass(frozen=True, eq=False)
class Ledger:
    """Energies in and out [J].

    Args:
        kinetic_before: at the signal, rotors included.
        kinetic_after: at the end.
        potential_drop: potential energy that was given off; negative if the robot was lifted.
        drive_work: work of the drives.
        dissipated: per sink and velocity coordinate what became heat, shape (nv,); sinks are
            "brake", "dry friction", "viscous friction", "short circuit", "gear losses".
        impacts: what impacts destroyed.
        small: an energy that is nothing for this robot.
    """

    kinetic_before: float
    kinetic_after: float
    potential_drop: float
    drive_work: float
    dissipated: dict[str, Array]
    impacts: float
    small: float = TINY

    @property
    def heat(self) -> float:
        """All that became heat in brakes, friction and gears."""
        return float(sum(values.sum() for values in self.dissipated.values()))

    @property
    def error(self) -> float:
        """What is missing: in minus out."""
        given = self.kinetic_before + self.potential_drop + self.drive_work
        return given - self.heat - self.impacts - self.kinetic_after

    @property
    def turned_over(self) -> float:
        """The largest of the energies."""
        return max(self.kinetic_before, abs(self.potential_drop), self.heat, self.small)

    @property
    def relative_error(self) -> float:
        """Size of the error over the energy at the signal, or over all that was turned over."""
        whole = self.turned_over
        base = self.kinetic_before if self.kinetic_before > SAME * whole else whole
        base = max(base, self.small)
        return abs(self.error) / base


def energy_ledger(history: StopHistory, equations: StopEquations, loads: Loads) -> Ledger:
    """The ledger of a stop and of its loads.

    Args:
        history: the stop.
        equations: its equations.
        loads: its loads.
    """
    run = history.run
    kinetic0, potential0 = energies_at(equations, run.q[0], run.v[0])
    kinetic1, potential1 = energies_at(equations, run.q[-1], run.v[-1])
    return Ledger(
        kinetic0,
        kinetic1,
        potential0 - potential1,
        float(loads.drive.sum()) + sum(change.drive_work for change in run.transitions),
        loads.heat,
        sum(change.energy_loss for change in run.transitions),
        small_energy(history.robot),
    )


def energies_at(equations: StopEquations, q: Array, v: Array) -> tuple[float, float]:
    """Kinetic energy with all rotors, and potential energy [J]."""
    kinetic, potential, _ = equations.equations.energies(0.0, q, v)
    return kinetic + 0.5 * float(v @ (equations.train.lossy * v)), potential


def explained_error(history: StopHistory, ledger: Ledger) -> float:
    """Energy that a healthy stop may miss [J]: what the tolerances of its steps are worth.

    At most a share of the energy turned over: beside singular poses forces have no bound, nor has
    what errors of the state are worth there. Of fixed steps no error is known.
    """
    run, least = history.run, _NOTHING * ledger.small
    if history.method.step is not None:
        return max(CLOSURE * ledger.turned_over, least)
    accuracy = Accuracy(history.method, len(run.t), Projection().tol)
    lossy, system = history.train.lossy, history.equations().equations.system
    worth = 0.0
    for t, q, v, a in zip(run.t[1:], run.q[1:], run.v[1:], run.a[1:], strict=True):
        if not (v.any() or a.any()):
            continue
        M, f, *_ = system(float(t), q, v)
        inertia = M @ a + lossy * a
        # Brakes, drives and loops make the difference between what acts and what accelerates.
        forces = np.abs(f) + np.abs(inertia) + np.abs(inertia - f)
        worth += step_worth(history.robot, accuracy, v, M @ v + lossy * v, forces)
    return max(min(worth, CLOSURE * ledger.turned_over), least)
