"""Which joints stick and which slide: Gauss' principle with dry friction. Knows no robot.

All contacts are decided together. The accelerations minimise

    0.5 a' M a - f' a + sum_i psi_i(a_i)     subject to     J a + gamma = 0

where each ``psi_i`` is convex with a kink at the contact's target ``w_i``: pinned there, the
contact gives any torque between ``low_i`` and ``high_i``; moved away from it, the torque of that
end, less an inertia that only then has to be accelerated. Dry friction at rest has target 0 and
bounds ``-tau, tau``; a drive of limited torque that follows a reference has the reference's
acceleration as target; a tooth has an infinite bound. ``M`` is positive definite: ``a`` is unique.

Solved in the torques: with ``G`` the response of the contacts' accelerations to unit torques, they
minimise ``0.5 tau' G tau + (a0 - w)' tau`` in a box. An active-set method in the manner of bounded
least squares (Stark and Parker, 1995) does it: the function never rises, and no set of free torques
is left twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import PinloopError
from ..saddle import Saddle

__all__ = ["Contacts", "Decision", "decide"]

Array = NDArray[np.float64]

_TINY = 1e-11
"""Accelerations below this fraction of the largest that the contacts see count as zero."""
_DEPENDENT = 1e-11
"""Eigenvalues of the normalised ``A' A`` below this fraction of the largest one count as zero."""


@dataclass(frozen=True, eq=False)
class Contacts:
    """Contacts between joints and something that they may stick to.

    Args:
        columns: velocity coordinate of each contact, distinct, shape (k,).
        target: acceleration at which the contact sticks, shape (k,).
        low: smallest torque while it sticks; the torque when it moves ahead; may be -inf.
        high: largest torque while it sticks; the torque when it falls behind; may be inf.
        inertia_up: inertia to be accelerated besides M when it moves ahead, >= 0.
        inertia_down: inertia to be accelerated besides M when it falls behind, >= 0.
    """

    columns: NDArray[np.intp]
    target: Array
    low: Array
    high: Array
    inertia_up: Array
    inertia_down: Array


@dataclass(frozen=True, eq=False)
class Decision:
    """What the contacts do.

    Args:
        a: acceleration, shape (n,); unique.
        torque: torque of each contact, shape (k,); one that fits, where it is not unique.
        side: per contact 0 if it sticks, otherwise the sign of ``a_i - w_i``.
        multipliers: reactions of the rows, shape (m,); the smallest ones if not unique.
    """

    a: Array
    torque: Array
    side: NDArray[np.int64]
    multipliers: Array


def decide(M: Array, f: Array, J: Array, gamma: Array, contacts: Contacts) -> Decision:
    """Decide all contacts together.

    Args:
        M: mass matrix, shape (n, n), symmetric positive definite.
        f: forces without those of the contacts, shape (n,).
        J: rows, shape (m, n), of any rank.
        gamma: velocity-dependent part of the rows, shape (m,).
        contacts: the contacts.
    """
    at, k = contacts.columns, len(contacts.columns)
    saddle = Saddle(M, J)
    a0, lam0 = saddle.solve(f, -gamma)
    if k == 0:
        return Decision(a0, np.zeros(0), np.zeros(0, dtype=np.int64), lam0)
    units = np.zeros((k, len(f)))
    units[np.arange(k), at] = 1.0
    answers = [saddle.solve(unit, np.zeros(len(gamma))) for unit in units]
    response = np.array([x for x, _ in answers]).reshape(k, len(f))
    # What the rows hold still whatever the torques are leaves noise here.
    alone = np.linalg.solve(M, units.T)[at, np.arange(k)]
    movable = np.flatnonzero(np.diagonal(response[:, at]) > 1e-12 * alone)
    ahead = a0[at] - contacts.target
    side = np.where(np.abs(ahead) > _TINY * (1.0 + np.abs(a0).max()), np.sign(ahead), 0.0)
    side = side.astype(np.int64)
    torque = np.clip(0.0, contacts.low, contacts.high)
    if len(movable):
        bounds = contacts.low, contacts.high, contacts.inertia_up, contacts.inertia_down
        torque[movable], side[movable] = _in_the_box(
            response[np.ix_(movable, at[movable])],
            ahead[movable],
            *(bound[movable] for bound in bounds),
        )
    a = a0 + torque @ response
    stuck = movable[side[movable] == 0]
    a[at[stuck]] = contacts.target[stuck]
    lam = lam0 + sum((tau * mu for tau, (_, mu) in zip(torque, answers, strict=True)), 0.0 * lam0)
    return Decision(a, torque, side, lam)


def _in_the_box(
    G: Array, offset: Array, low: Array, high: Array, up: Array, down: Array
) -> tuple[Array, NDArray[np.int64]]:
    """Torques and sides for ``r = offset + G torque``.

    A contact that moves against an inertia gives the torque of its bound and ``-inertia r``
    besides: one more variable, of one sign, with the cost ``p^2 / (2 inertia)``.
    """
    k = len(offset)
    size = 1.0 / np.sqrt(np.diagonal(G))
    behind, ahead = np.flatnonzero(down > 0), np.flatnonzero(up > 0)
    of = np.concatenate([np.arange(k), ahead, behind]).astype(np.intp)
    unit = size[of]
    H = unit[:, None] * G[np.ix_(of, of)] * unit
    cost = np.concatenate([np.zeros(k), 1.0 / up[ahead], 1.0 / down[behind]])
    H[np.arange(len(of)), np.arange(len(of))] += unit * cost * unit
    lower = np.concatenate([low, np.full(len(ahead), -np.inf), np.zeros(len(behind))]) / unit
    upper = np.concatenate([high, np.zeros(len(ahead)), np.full(len(behind), np.inf)]) / unit
    x = unit * _box_minimum(H, unit * offset[of], lower, upper)
    torque = np.bincount(of, weights=x, minlength=k)
    rate = offset + G @ torque
    noise = _TINY * (np.abs(offset) + np.abs(G) @ np.abs(torque))
    return torque, np.where(np.abs(rate) > noise, np.sign(rate), 0.0).astype(np.int64)


def _box_minimum(H: Array, g: Array, lower: Array, upper: Array) -> Array:
    """Minimise ``0.5 x' H x + g' x`` in a box, ``H`` positive semidefinite with unit diagonal."""
    x = np.clip(np.zeros(len(g)), lower, upper)
    free = (lower < x) & (x < upper)
    size = np.abs(g).max(initial=0.0)
    for _ in range(100 + 20 * len(g) ** 2):
        x, free = _minimum_of_free(H, g, lower, upper, x, free)
        slope = H @ x + g
        noise = _TINY * (size + np.abs(H) @ np.abs(x))
        gain = np.where(x <= lower, -slope, slope)  # a bound variable can go one way only
        gain[free | (lower == upper)] = -np.inf
        worst = int(np.argmax(gain - noise))
        if gain[worst] <= noise[worst]:
            return x
        free[worst] = True
    raise PinloopError(
        "stick and slip could not be decided: the bounds of the contacts and the rows contradict "
        "each other"
    )


def _minimum_of_free(
    H: Array, g: Array, lower: Array, upper: Array, x: Array, free: NDArray[np.bool_]
) -> tuple[Array, NDArray[np.bool_]]:
    """Go to the minimum over the free variables; those that meet a bound on the way stay there."""
    x, free = x.copy(), free.copy()
    while free.any():
        at = np.flatnonzero(free)
        slope = (H @ x + g)[at]
        values, vectors = np.linalg.eigh(H[np.ix_(at, at)])
        along = vectors.T @ slope
        solid = values > _DEPENDENT * max(float(values[-1]), 1.0)
        step = -vectors[:, solid] @ (along[solid] / values[solid])
        loose = vectors[:, ~solid] @ along[~solid]
        reach = 1.0
        if np.abs(loose).max(initial=0.0) > 1e-9 * (np.abs(g).max() + np.abs(slope).max()):
            step, reach = -loose, np.inf  # downhill without end, until a bound is met
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(step > 0, (upper[at] - x[at]) / step, (lower[at] - x[at]) / step)
        room[step == 0.0] = np.inf
        first = int(np.argmin(room))
        if room[first] >= reach:
            if not np.isfinite(reach):
                raise PinloopError(
                    "contacts that cannot slip are to move as the rows do not allow; check that "
                    "the joints they hold can move together in this way"
                )
            x[at] += step
            break
        x[at] += max(room[first], 0.0) * step
        met = at[first]
        x[met] = upper[met] if step[first] > 0 else lower[met]
        free[met] = False
    return x, free
