"""When joints stand for good, how far they went, how often they came loose again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from .history import StopHistory

__all__ = ["JointTravel", "all_stand_since", "measure_joint_travel", "stand_since"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class JointTravel:
    """The paths of all velocity coordinates in a stop [rad, m].

    Args:
        history: the stop.
        places: how far each coordinate has come at the stored states, shape (k, nv).
        length: way to and fro, shape (nv,).
        lowest: farthest place below the start, shape (nv,); not above 0.
        highest: farthest place above the start, shape (nv,); not below 0.
        since: since when each stands for good [s], shape (nv,); NaN if it does not.
        slips: how often each came loose again after it had stood, shape (nv,).
    """

    history: StopHistory
    places: Array
    length: Array
    lowest: Array
    highest: Array
    since: Array
    slips: NDArray[np.int64]

    @property
    def largest(self) -> Array:
        """Largest distance from the start, shape (nv,)."""
        return np.maximum(self.highest, -self.lowest)

    def until(self, column: int, t: float) -> float:
        """How far a coordinate has come at a time, signed."""
        times = self.history.run.t
        k = int(np.searchsorted(times, t, side="right")) - 1
        place = float(self.places[k, column])
        return place if times[k] == t else place + float(self.history.step(k).along(t)[column])


def measure_joint_travel(history: StopHistory) -> JointTravel:
    """The paths of all coordinates of joints with one axis; of others they mean little."""
    rates = history.run.psi
    places = np.vstack([np.zeros(rates.shape[1]), np.cumsum(rates, axis=0)])
    length = np.abs(rates).sum(axis=0)
    lowest, highest = places.min(axis=0), places.max(axis=0)
    for k, column in _turns(history):
        there = _turning_point(history, int(k), int(column))
        length[column] += abs(there) + abs(rates[k, column] - there) - abs(rates[k, column])
        lowest[column] = min(lowest[column], places[k, column] + there)
        highest[column] = max(highest[column], places[k, column] + there)
    since, slips = stand_since(history), _slips(history)
    return JointTravel(history, places, length, lowest, highest, since, slips)


def stand_since(history: StopHistory) -> Array:
    """Since when each coordinate has been slower than what counts as standing [s], shape (nv,).

    NaN where it has not.
    """
    # What may stick stands once it sticks; what may not, once it is slow.
    moves = _moves(history, np.where(history.train.dry, history.tiny, history.slow))
    times = np.append(history.run.t, np.nan)
    last = len(moves) - 1 - np.argmax(moves[::-1], axis=0)
    return np.asarray(np.where(moves.any(axis=0), times[last + 1], times[0]))


def _moves(history: StopHistory, slow: Array | float) -> NDArray[np.bool_]:
    """At which states coordinates are faster than something, or slide though at zero, (k, nv)."""
    still = [phase.pinned | (phase.sliding.direction == 0.0) for phase in history.phases]
    slides = ~np.array(still)[history.run.mode]
    return np.asarray((np.abs(history.run.v) > slow) | slides)


def _slips(history: StopHistory) -> NDArray[np.int64]:
    """How often each coordinate moved after it had been stuck, shape (nv,)."""
    run = history.run
    stuck = np.array([phase.stuck for phase in history.phases])[run.mode]
    lasts = np.append(np.diff(run.t) > 0.0, True)[:, None]  # not what ends as it begins
    moves = _moves(history, history.tiny) & lasts
    # What is neither stuck nor moves is as it was before.
    known = np.maximum.accumulate(np.where(stuck | moves, np.arange(len(run.t))[:, None], 0))
    stood, moved = (np.take_along_axis(mask, known, axis=0) for mask in (stuck, moves))
    return np.asarray((stood[:-1] & moved[1:]).sum(axis=0))


def all_stand_since(history: StopHistory) -> float:
    """Since when all stand, of a stop that has come to rest [s]."""
    simple = history.train.single
    since = stand_since(history)[simple]
    times = since[~np.isnan(since)].tolist()
    if not simple.all() and history.slow_since is not None:
        times.append(history.slow_since)  # joints in space stand when frames are slow
    return float(max(times, default=0.0))


def _turns(history: StopHistory) -> NDArray[np.intp]:
    """Steps and coordinates that turn round in them, shape (m, 2)."""
    v, lasts = history.run.v, np.diff(history.run.t) > 0.0
    fast = np.minimum(np.abs(v[:-1]), np.abs(v[1:])) > history.tiny
    return np.argwhere((v[:-1] * v[1:] < 0.0) & fast & lasts[:, None])


def _turning_point(history: StopHistory, k: int, column: int) -> float:
    """How far a coordinate has come in step k where it turns round."""
    step = history.step(k)
    t = float(scipy.optimize.brentq(lambda t: float(step(t)[1][column]), step.t0, step.t1))
    return float(step.along(t)[column])
