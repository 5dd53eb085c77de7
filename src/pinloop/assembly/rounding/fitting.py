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

If the rows have rank ``m``, then ``m`` coordinates depend on the others. Only these move when loops
are closed: along the motion that the loops are meant to have, they could be closed as well, but far
away, and the geometry would stay as it is. Rows know the joints of their own loop alone, so that
all equations are sparse.

Numbers without unit: lengths are divided by the robot's characteristic length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from ...linalg.dense import block_matrix, damped_least_squares
from ...tolerances import BEST_FIT, FITTED, FITTED_FINEST, LEAST_DAMPING, TINY
from .clusters import LoopCluster
from .rules import Rule, equations

Array = NDArray[np.float64]

_CAUTION = 20.0
"""How many times the first residual a singular value must be to be told from rounding at once."""
_GAIN = 0.3
"""A step that leaves more than this part of the residual shows that smaller ones must be seen."""
_ITERATIONS = 60
_PATIENCE = 2
"""How many more steps may lead astray than lead on."""
_REACH = 0.3
"""Largest part of a step from one configuration to the next: radians, characteristic lengths."""


@dataclass(frozen=True, eq=False)
class Place:
    """A configuration at which loops are nearly closed.

    Args:
        q: the configuration, shape (nq,).
        dependent: velocity coordinates that follow from the others there.
        opening: what is left open.
    """

    q: Array
    dependent: NDArray[np.intp]
    opening: float


def walk(
    cluster: LoopCluster, q: Array, rank: int, allowed: float, count: int
) -> list[Place] | None:
    """Configurations along the motion that the loops have if their rows have the given rank.

    Each is a random motion away from the one before, always the same ones.

    Args:
        cluster: the loops.
        q: a configuration at which they are nearly closed, shape (nq,).
        rank: rank that the rows would have without rounding.
        allowed: what they may be left open by.
        count: number of configurations, if the loops move at all.

    Returns:
        The configurations; None if the loops open by more than is allowed wherever they go, so
        that the rank is not theirs.
    """
    rng, wanted = np.random.default_rng(0), 1 if rank == cluster.robot.nv else count
    heading, reach, places = np.zeros(cluster.robot.nv), _REACH, list[Place]()
    for attempt in range(2 * wanted):
        place = close(cluster, q, rank)
        if place is not None and place.opening <= allowed:
            places.append(place)
            reach = min(2 * reach, _REACH)
            if len(places) == wanted:
                break
        elif attempt > 2 * len(places) + _PATIENCE or not places:
            return None
        else:  # a dead end, or a singular pose with another branch behind it
            reach /= 2
        # Straight on rather than to and fro: a wide motion tells more.
        motions = _motions(cluster.jacobian(places[-1].q), places[-1].dependent)
        heading = heading + 0.5 * rng.normal(size=len(heading))
        heading = motions @ np.linalg.lstsq(motions, heading, rcond=None)[0]
        heading = heading / max(float(np.linalg.norm(heading)), TINY)
        step = rng.uniform(0.4, 1.0) * reach * heading / np.abs(heading).max(initial=TINY)
        q = cluster.stepped(places[-1].q, step)
    return places


def close(cluster: LoopCluster, q: Array, rank: int) -> Place | None:
    """Close the loops by ``rank`` coordinates, those in which they resist most.

    Returns:
        Where they are least open; None if nothing was found from here.
    """
    error = float(np.linalg.norm(cluster.residual(q)))
    _, pivots = scipy.linalg.qr(cluster.jacobian(q), mode="r", pivoting=True)
    dependent = np.sort(pivots[:rank]).astype(np.intp)
    for _ in range(_ITERATIONS):
        residual, jacobian = cluster.residual(q), cluster.jacobian(q)[:, dependent]
        damping = min(error**2, 1e-2) * max(1.0, float(np.square(jacobian).sum(0).max(initial=0)))
        change = damped_least_squares(jacobian, -residual, damping)
        error = float(np.linalg.norm(jacobian @ change))
        if error < FITTED:
            return Place(q, dependent, float(np.linalg.norm(residual)))
        step = np.zeros(cluster.robot.nv)
        step[dependent] = change * min(1.0, _REACH / np.abs(change).max())
        q = cluster.stepped(q, step)
    return None


def _motions(jacobian: Array, dependent: NDArray[np.intp]) -> Array:
    """What the independent coordinates move, one by one, shape (nv, independent)."""
    free = np.setdiff1d(np.arange(jacobian.shape[1]), dependent)
    motions = np.zeros((jacobian.shape[1], len(free)))
    motions[free, np.arange(len(free))] = 1.0
    motions[dependent] = damped_least_squares(jacobian[:, dependent], -jacobian[:, free], 0.0)
    return motions


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
    places: Sequence[Place],
    limit: float,
    rules: Sequence[Rule],
    home: Array | None = None,
) -> Fit | None:
    """Move the frames of a cluster by as little as closes its loops at all places.

    Args:
        cluster: the loops.
        places: where they are nearly closed.
        limit: the largest change worth looking for.
        rules: what axes on the links are to obey besides.
        home: a configuration that is to be closed as it is, shape (nq,), if any.

    Returns:
        The fit; None if it would have to be larger, or if there is none.
    """
    shift, here, threshold = np.zeros(6 * len(cluster.frames)), cluster, 0.0
    at = [place.q for place in places]
    best: tuple[float, Fit] | None = None
    for _ in range(_ITERATIONS):
        matrix, missing = _equations(here, at, places, rules, home)
        error = _size(missing, len(at), len(here.problem.constraints))
        fit = Fit(here, shift.reshape(-1, 6))
        if fit.size > 2 * limit:
            break
        threshold = threshold or _CAUTION * error
        if best is not None and error > _GAIN * best[0]:
            if best[0] < FITTED or threshold <= FITTED_FINEST:
                break
            threshold = max(threshold / 10, FITTED_FINEST)
        if best is None or error < best[0]:
            best = error, fit
        if error < BEST_FIT:
            break
        damping = np.full(matrix.shape[1], max(error, LEAST_DAMPING) ** 2)
        damping[: len(shift)] = threshold**2 * max(1, len(at))
        step = damped_least_squares(matrix, -missing, damping)
        shift = shift + step[: len(shift)]
        here = cluster.moved(shift)
        for k, change in enumerate(step[len(shift) :].reshape(len(at), -1) if at else ()):
            whole = np.zeros(cluster.robot.nv)
            whole[places[k].dependent] = change
            motions = _motions(cluster.jacobian(at[k]), places[k].dependent)
            whole -= motions @ np.linalg.lstsq(motions, whole, rcond=None)[0]
            at[k] = here.stepped(at[k], whole)
    if best is None or best[0] > FITTED or best[1].size > limit:
        return None
    return best[1]


def _equations(
    cluster: LoopCluster,
    at: Sequence[Array],
    places: Sequence[Place],
    rules: Sequence[Rule],
    home: Array | None,
) -> tuple[Any, Array]:
    """All that is to vanish, and its derivative by the frames and the dependent coordinates."""
    blocks, missing = equations(cluster.robot, rules, cluster.frames)
    column = 6 * len(cluster.frames)
    for number, q in enumerate(at if home is None else [home, *at], start=home is None):
        blocks += cluster.frame_blocks(q, len(missing))
        if number > 0:
            dependent = places[number - 1].dependent
            blocks.append((len(missing), column, cluster.jacobian(q)[:, dependent]))
            column += len(dependent)
        missing = np.concatenate([missing, cluster.residual(q)])
    return block_matrix((len(missing), column), blocks), missing


def _size(missing: Array, places: int, rows: int) -> float:
    """Root of the sum of squares, where places count by their mean."""
    squares = np.square(missing)
    spread = float(squares[len(missing) - places * rows :].sum())
    return float(np.sqrt(squares.sum() - spread + spread / max(places, 1)))
