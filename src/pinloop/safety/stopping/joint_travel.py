"""When joints stand for good, how far they went, how often they came loose again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from .simulation import StopSimulation

__all__ = ["JointTravel", "all_stand_since", "measure_joint_travel", "stand_since"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class JointTravel:
    """The ways of all velocity coordinates of a course [rad, m].

    Args:
        course: the stop.
        places: how far each coordinate has come at the stored states, shape (k, nv).
        length: way to and fro, shape (nv,).
        lowest: farthest place below the start, shape (nv,); not above 0.
        highest: farthest place above the start, shape (nv,); not below 0.
        since: since when each stands for good [s], shape (nv,); NaN if it does not.
        slips: how often each came loose again after it had stood, shape (nv,).
    """

    course: StopSimulation
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
        course = self.course
        times = [state.t for state in course.kept]
        k = int(np.searchsorted(times, t, side="right")) - 1
        place = float(self.places[k, column])
        return place if times[k] == t else place + float(course.step(k).along(t)[column])


def measure_joint_travel(course: StopSimulation) -> JointTravel:
    """The ways of all coordinates of joints with one axis; of others they mean little."""
    kept = course.kept
    rates = np.array(course.psi).reshape(len(kept) - 1, course.robot.nv)
    places = np.vstack([np.zeros(course.robot.nv), np.cumsum(rates, axis=0)])
    length = np.abs(rates).sum(axis=0)
    lowest, highest = places.min(axis=0), places.max(axis=0)
    for k, column in _turns(course):
        there = _turning(course, int(k), int(column))
        length[column] += abs(there) + abs(rates[k, column] - there) - abs(rates[k, column])
        lowest[column] = min(lowest[column], places[k, column] + there)
        highest[column] = max(highest[column], places[k, column] + there)
    return JointTravel(course, places, length, lowest, highest, stand_since(course), _slips(course))


def stand_since(course: StopSimulation) -> Array:
    """Since when each coordinate has been slower than what counts as standing [s], shape (nv,).

    NaN where it has not.
    """
    # What may stick stands once it sticks; what may not, once it is slow.
    moves = _moves(course, np.where(course.train.dry, course.tiny, course.standstill.speed))
    times = np.array([state.t for state in course.kept] + [np.nan])
    last = len(moves) - 1 - np.argmax(moves[::-1], axis=0)
    return np.asarray(np.where(moves.any(axis=0), times[last + 1], times[0]))


def _moves(course: StopSimulation, slow: Array | float) -> NDArray[np.bool_]:
    """At which states coordinates are faster than something, or slide though at zero, (k, nv)."""
    phases = [state.phase for state in course.kept]
    still = np.array([one.pinned | (one.sliding.direction == 0.0) for one in course.phases])
    return np.asarray((np.abs([state.v for state in course.kept]) > slow) | ~still[phases])


def _slips(course: StopSimulation) -> NDArray[np.int64]:
    """How often each coordinate moved after it had been stuck, shape (nv,)."""
    stuck = np.array([phase.stuck for phase in course.phases])[[one.phase for one in course.kept]]
    times = np.array([state.t for state in course.kept])
    lasts = np.append(np.diff(times) > 0.0, True)[:, None]  # not what ends as it begins
    moves = _moves(course, course.tiny) & lasts
    # What is neither stuck nor moves is as it was before.
    known = np.maximum.accumulate(np.where(stuck | moves, np.arange(len(times))[:, None], 0))
    stood, moved = (np.take_along_axis(mask, known, axis=0) for mask in (stuck, moves))
    return np.asarray((stood[:-1] & moved[1:]).sum(axis=0))


def all_stand_since(course: StopSimulation) -> float:
    """Since when all stand, of a course that has come to rest [s]."""
    found = stand_since(course)[course.simple]
    times = [float(time) for time in found if not np.isnan(time)]
    if not course.simple.all() and course.stands_since is not None:
        times.append(course.stands_since)  # joints in space count as standing when frames are slow
    return max(times, default=0.0)


def _turns(course: StopSimulation) -> NDArray[np.intp]:
    """Steps and coordinates that turn round in them, shape (m, 2)."""
    v, times = np.array([state.v for state in course.kept]), [state.t for state in course.kept]
    fast = np.minimum(np.abs(v[:-1]), np.abs(v[1:])) > course.tiny
    lasts = np.diff(times) > 0.0
    return np.argwhere((v[:-1] * v[1:] < 0.0) & fast & lasts[:, None])


def _turning(course: StopSimulation, k: int, column: int) -> float:
    """How far a coordinate has come in step k where it turns round."""
    step = course.step(k)
    t = float(scipy.optimize.brentq(lambda t: float(step(t)[1][column]), step.t0, step.t1))
    return float(step.along(t)[column])
