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

import math
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin
import scipy
from numpy.typing import NDArray

from ..boundary.marks import Array, Mask
from ..errors import PinloopError
from ..linalg.saddle import Saddle, factor_mass, solve_mass
from ..tolerances import LAST_BITS, RESPONSE_RANK, STICTION_NOISE, TORQUE_NOISE

RELEASE = 2.0
"""What is held comes loose so many times the noise beyond its bound; within one it sticks."""


def giving_in(excess: Array, inside: Array, noise: Array) -> Mask:
    """Which of the contacts that were decided to stick let go nevertheless.

    Near a dead point what a contact holds is many times as heavy as it looks from its own joint:
    beyond its bound it hardly accelerates. Let ``tau`` be the torques that hold all, by the motion
    in which they stick, and ``x`` those of the decision, which minimise ``(x - tau)' G (x - tau)``
    within the bounds. Were all ``i`` with ``tau_i`` beyond its bound inside theirs, every other
    ``x_j`` on its bound would have ``(x_j - tau_j) (G (x - tau))_j <= 0``, the form would be
    none, and ``x = tau`` not within the bounds. So some that is beyond its bound is on it: those
    let go, and take the load off the others. Where rounding hides them, all do.

    Args:
        excess: how far the torques ``tau`` are beyond their bounds, shape (k,).
        inside: distance of the decision's torques from these bounds, shape (k,).
        noise: rounding of torques, shape (k,).
    """
    beyond = excess > noise
    on_bound = beyond & (inside <= RELEASE * noise)
    return on_bound if on_bound.any() else beyond


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


def solve_stick_slip(
    M: Array, f: Array, J: Array, gamma: Array, contacts: Contacts, slack: float = 1.0
) -> Decision:
    """Decide all contacts together.

    Args:
        M: mass matrix, shape (n, n), symmetric; positive definite where the rows hold, with the
            inertias that contacts accelerate whichever way they move.
        f: forces without those of the contacts, shape (n,).
        J: rows, shape (m, n), of any rank.
        gamma: velocity-dependent part of the rows, shape (m,).
        contacts: the contacts.
        slack: accelerations up to so many times their rounding are none.
    """
    at, k = contacts.columns, len(contacts.columns)
    common = np.minimum(contacts.inertia_up, contacts.inertia_down)
    if np.count_nonzero(common):
        return _with_common_inertia(M, f, J, gamma, contacts, common, slack)
    if k and (stuck := _stuck(M, f, J, gamma, contacts)) is not None:
        # Most often everything holds, and what is within its bounds needs no search.
        a, torque, multipliers = stuck
        if np.count_nonzero((contacts.low < torque) & (torque < contacts.high)) == k:
            return Decision(a, torque, np.zeros(k, dtype=np.int64), multipliers)
    units = np.zeros((k, len(f)))
    units[np.arange(k), at] = 1.0
    # Sizes alone; the mass matrix may be singular where the rows hold, see `saddle`.
    mass = factor_mass(M, J)[0]
    inverse = solve_mass(mass, np.column_stack([units.T, f]))
    answers, reactions, fit = _with_rows(M, J, gamma, np.vstack([units, f]), inverse)
    a0, response = answers[k], answers[:k]
    if k == 0:
        return Decision(a0, np.zeros(0), np.zeros(0, dtype=np.int64), reactions[k])
    # What rounding leaves is as large as what there was before the rows took their share, and as
    # their reactions, which may be far larger where rows nearly depend on each other.
    pushes = np.abs(J).T @ np.abs(reactions[k])
    alone = np.sqrt(inverse[at, np.arange(k)])
    size = float(np.sqrt(abs(f @ inverse[:, k])) + fit + np.abs(contacts.target / alone).max())
    size += float(np.sqrt(abs(pushes @ solve_mass(mass, pushes))))
    offset, sizes = a0[at] - contacts.target, (size, slack)
    torque, side = _in_the_box(response[:, at], offset, contacts, alone, sizes)
    a = a0 + torque @ response
    a[at[side == 0]] = contacts.target[side == 0]
    return Decision(a, torque, side, reactions[k] + torque @ reactions[:k])


def _with_common_inertia(
    M: Array, f: Array, J: Array, gamma: Array, contacts: Contacts, common: Array, slack: float
) -> Decision:
    """The decision where some inertia has to be accelerated whichever way a contact moves.

    It belongs to the mass matrix, which need not be definite without it: in ``M + D`` and
    ``f + D w``, what it takes is ``D (a - w)``, nothing while the contact sticks.
    """
    at = contacts.columns
    M, f = M.copy(), f.copy()
    M[at, at] += common
    f[at] += common * contacts.target
    rest = replace(
        contacts,
        inertia_up=contacts.inertia_up - common,
        inertia_down=contacts.inertia_down - common,
    )
    decision = solve_stick_slip(M, f, J, gamma, rest, slack)
    return replace(decision, torque=decision.torque - common * (decision.a[at] - contacts.target))


def _stuck(
    M: Array, f: Array, J: Array, gamma: Array, contacts: Contacts
) -> tuple[Array, Array, Array] | None:
    """Accelerations if all contacts stick, the torques that this takes, and reactions of the rows.

    None if rows depend on each other then, for which nothing of it may be unique, or possible. For
    the arguments see `solve_stick_slip`.
    """
    at, multipliers = contacts.columns, np.zeros(len(J))
    a, moves = np.zeros(len(f)), np.ones(len(f), dtype=bool)
    a[at], moves[at] = contacts.target, False
    free = moves.nonzero()[0]
    if len(free) < len(J):
        return None
    if len(free):
        rows = M.take(free, 0)
        inertia, rest = rows.take(free, 1), f[free] - rows @ a
        if len(J) == 0:
            a[free] = solve_mass(inertia, rest)
        else:
            part = Saddle(inertia, J[:, free])
            if part.rank < len(J):
                return None
            a[free], multipliers = part.solve(rest, -gamma - J[:, at] @ a[at])
    return a, (M @ a - f - multipliers @ J)[at], multipliers


def _with_rows(
    M: Array, J: Array, gamma: Array, forces: Array, free: Array
) -> tuple[Array, Array, float]:
    """Accelerations and reactions to forces, ``gamma`` being met with the last of them.

    Args:
        M: mass matrix, shape (n, n).
        J: rows, shape (m, n).
        gamma: velocity-dependent part of the rows, shape (m,).
        forces: shape (p, n).
        free: their accelerations without rows, shape (n, p).

    Returns:
        Accelerations, shape (p, n); reactions, shape (p, m); and the root of twice the energy of
        the smallest acceleration that meets ``gamma``.
    """
    if len(J) == 0:
        return free.T, np.zeros((len(forces), 0)), 0.0
    saddle = Saddle(M, J)
    rates = np.zeros((len(J), len(forces)))
    rates[:, -1] = -gamma
    answers, reactions = saddle.solve(forces.T, rates)
    fit = saddle.project(-gamma)
    return answers.T, reactions.T, float(np.sqrt(abs(fit @ M @ fit)))


def _in_the_box(
    G: Array, offset: Array, contacts: Contacts, alone: Array, sizes: tuple[float, float]
) -> tuple[Array, NDArray[np.int64]]:
    """Torques and sides for ``r = offset + G torque``.

    A contact that moves against an inertia gives the torque of its bound and ``-inertia r``
    besides: one more variable, of one sign, with the cost ``p^2 / (2 inertia)``.

    Args:
        G: accelerations of the contacts per torque, shape (k, k).
        offset: accelerations without their torques, against the targets, shape (k,).
        contacts: the contacts.
        alone: root of the acceleration per torque that each would have without rows, shape (k,).
        sizes: root of twice the energy of acceleration, for what is rounding; and how many times
            that is nothing.
    """
    k, (size, slack) = len(offset), sizes
    light = LAST_BITS / alone**2
    up, down = contacts.inertia_up, contacts.inertia_down
    ahead, behind = (up > light).nonzero()[0], (down > light).nonzero()[0]
    unit, H, of = 1.0 / alone, G, np.arange(k)
    lower, upper = contacts.low, contacts.high
    if len(ahead) or len(behind):
        of = np.concatenate([of, ahead, behind]).astype(np.intp)
        cost = np.concatenate([np.zeros(k), 1.0 / up[ahead], 1.0 / down[behind]])
        unit, H = 1.0 / np.sqrt(alone[of] ** 2 + cost), G[np.ix_(of, of)] + np.diag(cost)
        offset = offset[of]
        lower = np.concatenate([lower, np.full(len(ahead), -np.inf), np.zeros(len(behind))])
        upper = np.concatenate([upper, np.zeros(len(ahead)), np.full(len(behind), np.inf)])
    lower, upper = lower / unit, upper / unit
    x = _box_minimum(unit[:, None] * H * unit, unit * offset, lower, upper, size)
    torque = np.asarray(np.bincount(of, weights=x * unit, minlength=k), dtype=np.float64)
    rate = offset[:k] + G @ torque
    noise = 10 * slack * STICTION_NOISE * alone * (size + float(alone @ np.abs(torque)))
    sticks = ((lower < x) & (x < upper))[:k] | (np.abs(rate) <= noise)
    return torque, np.where(sticks, 0, np.sign(rate)).astype(np.int64)


def _box_minimum(H: Array, g: Array, lower: Array, upper: Array, size: float) -> Array:
    """Minimise ``0.5 x' H x + g' x`` in a box, ``H`` positive semidefinite, its diagonal <= 1."""
    x = np.minimum(np.maximum(lower, 0.0), upper)
    free = (lower < x) & (x < upper)
    for _ in range(100 + 20 * len(g) ** 2):
        x, free = _minimum_of_free(H, g, lower, upper, x, free, size)
        slope = H @ x + g
        gain = np.where(x <= lower, -slope, slope)  # a bound variable can go one way only
        gain[free | (lower == upper)] = -np.inf
        worst = int(np.argmax(gain))
        if gain[worst] <= STICTION_NOISE * (size + np.abs(x).sum()):
            return x
        free[worst] = True
    raise PinloopError(
        "stick and slip could not be decided: the bounds of the contacts and the rows contradict "
        "each other"
    )


def _minimum_of_free(
    H: Array, g: Array, lower: Array, upper: Array, x: Array, free: NDArray[np.bool_], size: float
) -> tuple[Array, NDArray[np.bool_]]:
    """Go to the minimum over the free variables; those that meet a bound on the way stay there."""
    x, free = x.copy(), free.copy()
    while len(at := free.nonzero()[0]):
        slope = (H @ x + g)[at]
        values, vectors = np.linalg.eigh(H.take(at, 0).take(at, 1))
        along = vectors.T @ slope
        solid = values > RESPONSE_RANK
        step = -vectors[:, solid] @ (along[solid] / values[solid])
        loose = vectors[:, ~solid] @ along[~solid]
        reach = 1.0
        if np.abs(loose).max(initial=0.0) > 10 * RESPONSE_RANK * (size + np.abs(x).sum()):
            step, reach = -loose, np.inf  # downhill without end, until a bound is met
        ends, room = np.where(step > 0.0, upper[at], lower[at]), np.full(len(at), np.inf)
        np.divide(ends - x[at], step, out=room, where=step != 0.0)
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


def holding_noise(
    M: Array, f: Array, J: Array, bounds: Array, reaction: Array, weight: float
) -> Array:
    """Rounding error of what it takes to hold each coordinate [N m], shape (n,).

    By the backward error: all that acts has the size ``|f|`` in the metric of the inverse of M, and
    that of the weight of all bodies, even where it cancels. `solve_stick_slip` takes accelerations
    below a part of it for none; with all others held, coordinate i then has ``M_ii`` times as much.

    Args:
        M: mass matrix, shape (n, n), positive definite.
        f: forces, shape (n,).
        J: rows, shape (m, n).
        bounds: least and largest torque of what holds a coordinate, shape (2, n).
        reaction: multipliers of the rows, shape (m,).
        weight: see `weight_of`.
    """
    loads = np.zeros((len(f), len(f) + 1))
    loads[:, :-1].flat[:: len(f) + 1], loads[:, -1] = 1.0, f
    inverse = solve_mass(M, loads)
    alone = np.sqrt(inverse.diagonal())
    acting = math.sqrt(abs(f @ inverse[:, -1])) + alone @ np.abs(f) + weight
    low, high = np.where(np.isfinite(bounds), np.abs(bounds), 0.0)
    held = np.maximum(low, high)
    if len(J):
        held += np.abs(J).T @ np.abs(reaction)
    return np.asarray(TORQUE_NOISE * (M.diagonal() * alone * acting + held))


def weight_of(model: pin.Model) -> float:
    """Size of the weight of all bodies in the metric of the inverse of the mass matrix."""
    return float(np.sqrt(pin.computeTotalMass(model)) * np.linalg.norm(model.gravity.linear))


def share_evenly(A: Array, room: Array) -> Array:
    """The ``x`` whose largest excess of ``A x`` over ``room`` is the smallest (Chebyshev)."""
    if A.shape[1] == 1:
        # In one unknown, where the two lines cross that cross the highest; most often it is one.
        slope, up = A[:, 0], A[:, 0] > 0.0
        rising, falling = np.meshgrid(up.nonzero()[0], (slope < 0.0).nonzero()[0])
        apart = slope[rising] - slope[falling]
        if apart.size:
            heights = (slope[falling] * room[rising] - slope[rising] * room[falling]) / apart
            best = np.unravel_index(int(heights.argmax()), heights.shape)
            return np.array([((room[rising] - room[falling]) / apart)[best]])
    # As small as it likes the excess may not get, where teeth take any torque.
    least = -1.0 - float(np.abs(room).max(initial=0.0))
    solution = scipy.optimize.linprog(
        np.eye(A.shape[1] + 1)[-1],
        np.column_stack([A, -np.ones(len(A))]),
        room,
        bounds=[(None, None)] * A.shape[1] + [(least, None)],
        method="highs",
    )
    if solution.x is None:
        raise PinloopError(f"the torques that hold the joints cannot be shared: {solution.message}")
    return np.asarray(solution.x[:-1])
