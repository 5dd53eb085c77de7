"""Does the robot stay where it stopped? Static: at rest, brakes with their full torque."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...dynamics.stick_slip import Contacts, solve_stick_slip
from ...errors import PinloopError
from ...linalg.saddle import Saddle
from .phase import Phase
from .stop_equations import StopEquations

__all__ = ["Holding", "check_holding"]

Array = NDArray[np.float64]

_STILL = 1e-2
"""Acceleration up to which a joint that nothing holds counts as balanced [rad/s^2, m/s^2]."""


@dataclass(frozen=True, eq=False)
class Holding:
    """What holds the joints at one configuration, per velocity coordinate, shape (nv,).

    Args:
        load: torque that holding takes [N m]; one that fits where loops leave it open.
        hold: torque up to which brakes, friction and drives hold [N m]; infinite for teeth.
        held: whether it is held.
        balanced: whether it stays although nothing holds it.
    """

    load: Array
    hold: Array
    held: NDArray[np.bool_]
    balanced: NDArray[np.bool_]

    @property
    def all_held(self) -> bool:
        """Whether nothing starts to move."""
        return bool(np.all(self.held | self.balanced))


def check_holding(
    equations: StopEquations, phase: Phase, t: float, q: Array, *, stands: bool = True
) -> Holding:
    """Check statically what holds a robot.

    Args:
        equations: equations of the robot.
        phase: the phase at the end, for power, teeth, and the brakes that have come.
        t: time at the end [s].
        q: configuration, shape (nq,).
        stands: whether the robot stands there; else loops may be too singular to tell what holds
            it, and nothing counts as held.
    """
    train, blocked = equations.train, phase.blocked
    M, f, J, gamma, _ = equations.system(t, q, np.zeros(equations.equations.robot.nv))
    sliding = replace(phase.sliding, direction=0.0 * f, saturated_drive_sign=0.0 * f)
    motor, joint = train.hold(t, sliding, 1, sliding.drives)
    hold = motor / train.efficiency + joint
    low = np.where(blocked & 1, -np.inf, -hold)
    high = np.where(blocked & 2, np.inf, hold)
    at = np.flatnonzero(train.dry | sliding.drives | (blocked > 0))
    none = np.zeros(len(at))
    rotors = (train.lossy / train.efficiency)[at]
    load, held, balanced = np.zeros(len(f)), *np.zeros((2, len(f)), dtype=bool)
    try:
        made = solve_stick_slip(
            M, f, J, gamma, Contacts(at, none, low[at], high[at], rotors, rotors)
        )
    except PinloopError:
        if stands:
            raise
    else:
        held[at] = made.side == 0
        balanced = ~held & (np.abs(made.a) <= _STILL)
        balanced[at] = False
        load[at] = made.torque
    wanted = np.union1d(at, np.array(list(train.columns.values()), dtype=np.intp))
    if not (held | balanced)[wanted].all():
        # What it would take: rigid locks, whose torques are the smallest.
        rows = np.vstack([J, np.eye(len(f))[wanted]])
        _, torques = Saddle(M, rows).solve(f, np.concatenate([-gamma, np.zeros(len(wanted))]))
        load[wanted] = torques[len(J) :]
    return Holding(load, np.where(blocked > 0, np.inf, hold), held, balanced)
