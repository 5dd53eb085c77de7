r"""The least change of joint frames with which loops close at many configurations at once.

A linkage whose mobility hangs on special geometry (parallel, meeting axes, equal lengths) loses it
when its numbers are rounded: the loops are open by a little wherever it moves. Here the nearest
geometry is found that keeps them closed. With the placement ``X_j`` of every joint frame moved to
``X_j exp(delta_j)``, the residuals ``r_k`` of all loops at configurations ``q_k`` spread over the
motion are brought to zero together,

    r_k(q_k (+) dq_k, delta) = 0   for all k,      |delta| small,

by Levenberg-Marquardt steps damped by the residual itself: they converge quadratically although
neither the configurations nor the frames are determined (Yamashita and Fukushima 2001), and stay
close to the least change. No motion group is asked: the same serves planar and spherical loops and
Bennett's. Whether the change is small enough to be a rounding is for `exact` to say.

Numbers without unit: lengths are divided by the robot's characteristic length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...linalg.dense import least_change
from ...tolerances import BEST_FIT, FITTED, LEAST_DAMPING, RANK, TINY
from .clusters import LoopCluster
from .rules import Rule, equations

__all__ = ["Fit", "fit_frames", "walk"]

Array = NDArray[np.float64]

_CAUTION = 20.0
"""How many times the first residual a singular value must be to be told from rounding at once."""
_GAIN = 0.3
"""A step that leaves more than this part of the residual shows that smaller ones must be seen."""
_ITERATIONS = 30
_SHARE = 0.15
"""Configurations whose rows are less independent than this part of the best are passed over."""
_PATIENCE = 2
"""How many more steps may lead astray than lead on."""
_REACH = 0.5
"""Largest part of a step from one configuration to the next: radians, characteristic lengths."""


def walk(
    cluster: LoopCluster, q: Array, rank: int, allowed: float, rng: np.random.Generator
) -> list[Array] | None:
    """Configurations along the motion that the loops have if their rows have the given rank.

    Each is a random motion away from the one before, closed along the ``rank`` directions in which
    the loops resist most. Those beside singular poses are left out.

    Args:
        cluster: the loops.
        q: a configuration at which they are nearly closed, shape (nq,).
        rank: rank that the rows would have without rounding.
        allowed: what the other directions may be left open by.
        rng: source of the motions.

    Returns:
        The configurations; None if the loops open by more than is allowed wherever they go, so
        that the rank is not theirs.
    """
    unknown, redundant = 6 * len(cluster.frames), len(cluster.problem.constraints) - rank
    wanted = 1 if rank == cluster.robot.nv else max(6, -(-unknown // redundant) + 3)
    visited: list[tuple[float, Array]] = []
    heading, astray = np.zeros(cluster.robot.nv), 0
    for _ in range(2 * wanted if wanted > 1 else 1):
        closed = _close(cluster, q, rank)
        if closed is None or closed[1] > allowed:
            # The step led to a dead end, or past a singular pose to another branch: turn round.
            astray += 1
            if not visited or astray > len(visited) + _PATIENCE:
                return None
            q, heading = visited[-1][1], -heading
        else:
            q, _, independence = closed
            visited.append((independence, q))
        idle = np.linalg.svd(cluster.jacobian(q))[2][rank:]
        if len(idle):
            # Straight on rather than to and fro: the wider the motion, the more it tells.
            motion = (idle @ heading + 0.5 * rng.normal(size=len(idle))) @ idle
            heading = motion / np.linalg.norm(motion)
            motion *= rng.uniform(0.4, 1.0) * _REACH / np.abs(motion).max()
            q = cluster.stepped(q, motion)
    least = _SHARE * max(independence for independence, _ in visited)
    return [place for independence, place in visited if independence >= least][: wanted + 3]


def _close(cluster: LoopCluster, q: Array, rank: int) -> tuple[Array, float, float] | None:
    """Close the loops along their ``rank`` stiffest directions.

    Returns:
        The configuration, what the other directions are open by, and the least singular value of
        the stiff ones; None if they cannot be closed from here.
    """
    for _ in range(_ITERATIONS):
        residual, jacobian = cluster.residual(q), cluster.jacobian(q)
        U, values, V = np.linalg.svd(jacobian)
        seen = U.T @ residual
        error = float(np.linalg.norm(seen[:rank]))
        if error < FITTED:
            least = float(values[rank - 1]) if rank else 1.0
            return q, float(np.linalg.norm(seen[rank:])), least
        stiff = values[:rank]
        damping = min(error**2, 1e-2) * max(1.0, float(values[0]) ** 2)
        step = -V[:rank].T @ (stiff / (stiff**2 + damping) * seen[:rank])
        q = cluster.stepped(q, step * min(1.0, _REACH / np.abs(step).max(initial=TINY)))
    return None


@dataclass(frozen=True, eq=False)
class Fit:
    """A change of frames with which loops close.

    Args:
        cluster: the loops with their frames moved.
        shift: what the frames were moved by, shape (frames, 6).
    """

    cluster: LoopCluster
    shift: Array

    @property
    def size(self) -> float:
        """The largest turn [rad] or shift [characteristic lengths] of a frame."""
        parts = self.shift.reshape(-1, 2, 3)
        return float(np.linalg.norm(parts, axis=2).max(initial=0.0))


def fit_frames(
    cluster: LoopCluster,
    places: list[Array],
    rank: int,
    limit: float,
    rules: Sequence[Rule],
    home: Array | None = None,
) -> Fit | None:
    """Move the frames of a cluster by as little as closes its loops at all places.

    Args:
        cluster: the loops.
        places: configurations at which they are nearly closed, each of shape (nq,).
        rank: rank that the rows would have without rounding.
        limit: the largest change worth looking for.
        rules: what axes on the links are to obey besides.
        home: a configuration that is to be closed as it is, shape (nq,), if any.

    Returns:
        The fit; None if it would have to be larger, or if there is none.
    """
    shift, here, threshold = np.zeros(6 * len(cluster.frames)), cluster, 0.0
    best: tuple[float, Fit] | None = None
    for _ in range(_ITERATIONS):
        obeyed = equations(here.robot, rules, here.frames)
        if home is not None:
            matrix = np.vstack([obeyed[0], here.frame_jacobian(home)])
            obeyed = matrix, np.concatenate([obeyed[1], here.residual(home)])
        terms = [(here.residual(q), here.jacobian(q), here.frame_jacobian(q)) for q in places]
        mean = np.mean([residual @ residual for residual, _, _ in terms])
        error = float(np.sqrt(mean + obeyed[1] @ obeyed[1]))
        fit = Fit(here, shift.reshape(-1, 6))
        if fit.size > 2 * limit:
            break
        threshold = threshold or _CAUTION * error
        if best is not None and error > _GAIN * best[0]:
            if best[0] < FITTED or threshold <= RANK:
                break
            threshold = max(threshold / 10, RANK)
        if best is None or error < best[0]:
            best = error, fit
        if error < BEST_FIT:
            break
        change, steps = _step(terms, obeyed, rank, threshold, max(error, LEAST_DAMPING) ** 2)
        shift = shift + change
        here = cluster.moved(shift)
        places = [here.stepped(q, step) for q, step in zip(places, steps, strict=True)]
    if best is None or best[0] > FITTED or best[1].size > limit:
        return None
    return best[1]


def _step(
    terms: list[tuple[Array, Array, Array]],
    rules: tuple[Array, Array],
    rank: int,
    threshold: float,
    damping: float,
) -> tuple[Array, list[Array]]:
    """One Levenberg-Marquardt step of the frames, and Newton's of all configurations.

    What the ``rank`` stiff directions of ``J_k`` cannot reach is for the frames alone to mend. The
    soft ones could, too, by large motions, but then the geometry would stay as it is.
    """
    factors = [np.linalg.svd(J) for _, J, _ in terms]
    rows, rest = [rules[0]], [rules[1]]
    for (residual, _, G), (U, values, _) in zip(terms, factors, strict=True):
        weights = np.ones(len(U))
        weights[:rank] = np.sqrt(damping / (values[:rank] ** 2 + damping))
        rows.append(weights[:, None] * (U.T @ G))
        rest.append(weights * (U.T @ residual))
    change = least_change(np.vstack(rows), -np.concatenate(rest), threshold)
    steps = []
    for (residual, _, G), (U, values, V) in zip(terms, factors, strict=True):
        left = U[:, :rank].T @ (residual + G @ change)
        stiff = values[:rank]
        steps.append(-V[:rank].T @ (stiff / (stiff**2 + damping) * left))
    return change, steps
