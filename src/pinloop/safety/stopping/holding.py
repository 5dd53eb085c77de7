"""Does what a stop has left at rest stay there? What holds it, what is balanced, what falls.

By statics alone: what sticks and slides in motion is decided in `stick_slip`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin
import scipy
from numpy.typing import NDArray

from ...assembly.search import null_space
from ...boundary.marks import Array, Mask
from ...dynamics.stick_slip import Contacts, Decision, solve_stick_slip
from ...errors import PinloopError
from ...linalg.saddle import Saddle
from ...model.workspace import create_data
from ...tolerances import HELD_ACCELERATION, MOTION_SHARE
from .phase import Phase
from .stop_equations import StopEquations

_STILL = 1e-2
"""Acceleration up to which a joint that nothing holds counts as balanced [rad/s^2, m/s^2]."""
_WAY = 1e-2
"""Way to where a joint that nothing holds hangs, up to which it counts as there [rad, m]."""
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
    # Where branches meet, what all of them may do has to be held: the rows of the loops say that.
    M, f, J, gamma, _ = equations.equations.system(t, q, np.zeros(equations.equations.robot.nv))
    sliding = replace(phase.sliding, direction=0.0 * f, saturated_drive_sign=0.0 * f)
    motor, joint = train.hold(t, sliding, 1, sliding.drives)
    hold = motor / train.efficiency + joint
    low = np.where(blocked & 1, -np.inf, -hold)
    high = np.where(blocked & 2, np.inf, hold)
    wanted = train.dry | sliding.drives | (blocked > 0)
    at = np.flatnonzero(wanted)
    wanted[list(train.columns.values())] = True
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
            inertia = train.with_rotors(M)
            falling, away = _leaving(equations, q, J, inertia, held, decision)
            balanced &= ~(falling | away)
    if not (held | balanced)[wanted].all():
        # What it would take: rigid locks, whose torques are the smallest.
        rows = np.vstack([J, np.eye(len(f))[wanted]])
        _, torques = Saddle(M, rows).solve(f, np.append(-gamma, np.zeros(wanted.sum())))
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


def _leaving(
    equations: StopEquations, q: Array, J: Array, M: Array, held: Mask, decision: Decision
) -> tuple[Mask, Mask]:
    """Masks of what leaves an equilibrium once it is pushed, and of what is in none.

    A free motion with the stiffness ``k`` per inertia and the acceleration ``a`` is ``a / k`` away
    from where it hangs. A heavy rotor that nothing holds begins to move as slowly as a pendulum
    near its lowest point, but goes on. What has no stiffness is in equilibrium without acceleration
    only.
    """
    motions = null_space(np.vstack([J, np.eye(len(M))[held]]))
    falling, away = np.zeros((2, len(M)), dtype=bool)
    if not motions.size:
        return falling, away
    stiffness = gravity_stiffness(equations, q, motions, decision.multipliers)
    rates, shapes = scipy.linalg.eigh(stiffness, motions.T @ M @ motions)
    modes = motions @ shapes
    accelerations = np.abs(modes * (modes.T @ M @ decision.a))
    away |= (accelerations > _WAY * np.maximum(rates, 0.0) + HELD_ACCELERATION).any(axis=1)
    for direction in modes[:, rates < -(_GROWTH**2)].T:
        falling |= np.abs(direction) > MOTION_SHARE * np.abs(direction).max()
    return falling, away
