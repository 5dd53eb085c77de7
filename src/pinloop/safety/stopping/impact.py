"""A tooth or a stop is hit: the velocities jump, momentum is kept (DESIGN: 5.6).

The velocity after is the nearest to the one before, in the kinetic metric, that rows and teeth
allow; teeth only push. That is Gauss' principle again, with velocities for accelerations, momenta
for forces and impulses for torques. Friction and drives of limited torque, being finite, have no
part in it: joints that stuck may move afterwards.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...dynamics.stick_slip import Contacts, solve_stick_slip
from ...linalg.saddle import Saddle
from ...simulation.modes import Mode
from ...simulation.transitions import Transition
from .drivetrain import Drivetrain
from .stop_equations import StopEquations

__all__ = ["gear_impulse", "impact"]

Array = NDArray[np.float64]


def impact(
    equations: StopEquations,
    t: float,
    q: Array,
    v: Array,
    blocked: NDArray[np.int64],
    driven: NDArray[np.bool_],
    modes: tuple[Mode, Mode],
    events: tuple[str, ...],
) -> Transition:
    """Velocity after an impact.

    Args:
        equations: equations of the robot.
        t: time [s].
        q: configuration, shape (nq,).
        v: velocity before, shape (nv,).
        blocked: per coordinate the directions that are blocked: bit 1 up, bit 2 down.
        driven: mask of the coordinates that drives without limit keep at their speed.
        modes: modes before and after.
        events: what has happened.
    """
    train, rows = equations.train, equations.equations.rows
    M, _, J, _, _ = equations.system(t, q, v)
    M = M + np.diag(train.lossy)  # losses have no time to act
    at = np.flatnonzero((blocked > 0) | driven)
    kept, rest = np.where(driven, v, 0.0)[at], np.zeros(len(at))
    low = np.where((blocked[at] & 1 > 0) | driven[at], -np.inf, 0.0)
    high = np.where((blocked[at] & 2 > 0) | driven[at], np.inf, 0.0)
    made = solve_stick_slip(
        M, M @ v, J, np.zeros(len(J)), Contacts(at, kept, low, high, rest, rest)
    )
    v_plus = made.a
    dv = v_plus - v
    names = tuple(f"{'drive' if driven[column] else 'lock'}:{train.names[column]}" for column in at)
    pinned = Saddle(M, np.vstack([J, np.eye(len(v))[at]]))
    ranks = pinned.rank, pinned.rank
    return Transition(
        t, q.copy(), v.copy(), v_plus, *modes, (*rows.labels, *names),
        np.concatenate([made.multipliers, made.torque]), pinned.determined, {}, {},
        0.5 * float(dv @ M @ dv), float(made.torque @ kept), M @ v, M @ v_plus, ranks, ranks,
        events,
    )  # fmt: skip


def gear_impulse(train: Drivetrain, change: Transition, column: int, *, at_end: bool) -> float:
    """Impulse that the gear of a joint carries in an impact, behind it [N m s].

    With ``P`` the impulse of what blocks or drives a coordinate, its rotor of inertia ``I``
    (reflected) takes ``I dv``. Teeth and drives act at the motor's shaft: the link gets from them
    through the gear what the rotor does not take, ``P - I dv``. An end stop acts at the link, and
    stops the rotor through the gear: ``-I dv``.

    Args:
        train: gears and rotors.
        change: the impact.
        column: velocity coordinate of the joint.
        at_end: whether it is an end stop that it hits, if it hits anything.
    """
    name = train.names[column]
    carried = -float(train.reflected[column] * (change.v_plus - change.v_minus)[column])
    if train.teeth[column] and not at_end and f"lock:{name}" in change.labels:
        carried += float(change.impulse_of(f"lock:{name}").sum())
    if f"drive:{name}" in change.labels:
        carried += float(change.impulse_of(f"drive:{name}").sum())
    return carried
