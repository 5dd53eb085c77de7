"""Does the robot stay where it stopped? Static: at rest, brakes with their full torque."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin
import scipy
from numpy.typing import NDArray

from ...assembly.search import null_space
from ...dynamics.stick_slip import Contacts, solve_stick_slip
from ...errors import PinloopError
from ...linalg.saddle import Saddle
from ...model.workspace import create_data
from ...tolerances import MOTION_SHARE
from .phase import Phase
from .stop_equations import StopEquations

__all__ = ["Holding", "check_holding", "gravity_stiffness"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_STILL = 1e-2
"""Acceleration up to which a joint that nothing holds counts as balanced [rad/s^2, m/s^2]."""
_GROWTH = 0.1
"""Rate at which what is balanced leaves its place, below which that is no fall [1/s]."""


@dataclass(frozen=True, eq=False)
class Holding:
    """What holds the joints at one configuration, per velocity coordinate, shape (nv,).

    Args:
        load: torque that holding takes [N m]; one that fits where loops leave it open.
        hold: torque up to which brakes, friction and drives hold [N m]; infinite for teeth.
        held: whether it is held.
        balanced: whether it stays although nothing holds it.
        falling: whether it would stay, but leaves its place for good once it is pushed.
    """

    load: Array
    hold: Array
    held: NDArray[np.bool_]
    balanced: NDArray[np.bool_]
    falling: NDArray[np.bool_]

    @property
    def all_held(self) -> bool:
        """Whether nothing starts to move."""
        return bool(np.all(self.held | self.balanced))


def check_holding(
    equations: StopEquations, phase: Phase, t: float, q: Array, *, stands: bool = True
) -> Holding:
    """Check statically what holds a robot.

    ``t``: time at the end [s]. ``stands``: whether the robot stands there; else loops may be too
    singular to tell what holds it, and nothing counts as held.
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
    load, held, balanced, falling = np.zeros(len(f)), *np.zeros((3, len(f)), dtype=bool)
    try:
        decision = solve_stick_slip(
            M, f, J, gamma, Contacts(at, none, low[at], high[at], rotors, rotors)
        )
    except PinloopError:
        if stands:
            raise
    else:
        held[at] = decision.side == 0
        balanced = ~held & (np.abs(decision.a) <= _STILL)
        balanced[at] = False
        load[at] = decision.torque
        if balanced.any():
            falling = _falling(equations, q, M + np.diag(train.lossy), held, decision.multipliers)
            balanced &= ~falling
    wanted = np.union1d(at, np.array(list(train.columns.values()), dtype=np.intp))
    if not (held | balanced)[wanted].all():
        # What it would take: rigid locks, whose torques are the smallest.
        rows = np.vstack([J, np.eye(len(f))[wanted]])
        _, torques = Saddle(M, rows).solve(f, np.concatenate([-gamma, np.zeros(len(wanted))]))
        load[wanted] = torques[len(J) :]
    return Holding(load, np.where(blocked > 0, np.inf, hold), held, balanced, falling)


def gravity_stiffness(equations: StopEquations, q: Array, motions: Array, lam: Array) -> Array:
    """Second derivatives of the potential energy along motions that the rows allow, shape (m, m).

    On a curve on which the rows hold, ``q' = u`` and ``J q'' = -gamma(q, u)``. Where the gravity
    ``g`` is balanced by reactions and by what does not move, ``g' q'' = lam' J q''``, so that

        U'' = u' (dg/dq) u - lam' gamma(q, u).

    ``motions``: velocities that the rows allow, as columns, shape (nv, m). ``lam``: reactions of
    the rows, shape (rows,).
    """
    model = equations.equations.robot.model
    slope = pin.computeGeneralizedGravityDerivatives(model, create_data(model), q)
    stiffness = motions.T @ slope @ motions
    stiffness = 0.5 * (stiffness + stiffness.T)
    if not len(lam):
        return np.asarray(stiffness)

    def bend(u: Array) -> float:
        return float(lam @ equations.equations.terms(0.0, q, u)[2])

    own = [bend(u) for u in motions.T]
    for i, j in np.ndindex(stiffness.shape):
        # gamma is a quadratic form of the velocity.
        stiffness[i, j] -= 0.5 * (bend(motions[:, i] + motions[:, j]) - own[i] - own[j])
    return np.asarray(stiffness)


def _falling(equations: StopEquations, q: Array, M: Array, held: Mask, lam: Array) -> Mask:
    """Mask of the coordinates of an equilibrium that leave it if they are pushed."""
    J = equations.equations.terms(0.0, q, np.zeros(len(M)))[0]
    motions = null_space(np.vstack([J, np.eye(len(M))[held]]))
    falling = np.zeros(len(M), dtype=bool)
    if not motions.size:
        return falling
    stiffness = gravity_stiffness(equations, q, motions, lam)
    rates, shapes = scipy.linalg.eigh(stiffness, motions.T @ M @ motions)
    for direction in (motions @ shapes[:, rates < -(_GROWTH**2)]).T:
        falling |= np.abs(direction) > MOTION_SHARE * np.abs(direction).max()
    return falling
