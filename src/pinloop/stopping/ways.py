"""When one joint stands for good, how far it went, how often it came loose again."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from .course import Course

__all__ = ["Way", "all_stand_since", "slips", "stands_since", "way_of"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Way:
    """How far a joint went [rad, m].

    Args:
        reaction: signed, until the end of its reaction time.
        total: signed, to the end.
        length: to and fro.
        largest: largest distance from the start.
    """

    reaction: float
    total: float
    length: float
    largest: float


def stands_since(course: Course, column: int) -> float | None:
    """Since when a coordinate has been slower than what counts as standing, or None [s]."""
    # What may stick stands once it sticks; what may not, once it is slow.
    slow = 0.0 if course.train.dry[column] else course.standstill.speed
    since: float | None = None
    for state in course.kept:
        phase = course.phases[state.phase]
        speed = abs(state.v[column])
        if speed > slow or (slow == 0.0 and not phase.pinned[column]):
            since = None
        elif since is None:
            since = state.t
    return since


def all_stand_since(course: Course) -> float:
    """Since when all stand, of a course that has come to rest [s]."""
    columns = np.flatnonzero(course.simple)
    times = [stands_since(course, int(column)) for column in columns]
    found = [time for time in times if time is not None]
    if not course.simple.all() and course.stands_since is not None:
        found.append(course.stands_since)  # joints in space count as standing when frames are slow
    return max(found, default=0.0)


def slips(course: Course, column: int) -> int:
    """How often a joint that stood still came loose again."""
    stuck = [bool(phase.stuck[column]) for phase in course.phases]
    return sum(before and not after for before, after in pairwise(stuck))


def way_of(course: Course, column: int, reaction: float) -> Way:
    """How far a coordinate goes until the end of its reaction time, and in all.

    Args:
        course: the stop.
        column: velocity coordinate of a joint with one axis.
        reaction: end of the reaction time [s].
    """
    place = turned = length = largest = 0.0
    for k, rates in enumerate(course.psi):
        one, two = course.kept[k], course.kept[k + 1]
        if one.t < reaction < two.t:
            turned = place + float(course.step(k).along(reaction)[column])
        elif two.t <= reaction:
            turned = place + float(rates[column])
        marks = [place, place + float(rates[column])]
        if (
            two.t > one.t
            and one.v[column] * two.v[column] < 0.0
            and min(abs(one.v[column]), abs(two.v[column])) > course.tiny
        ):
            marks.insert(1, place + _turning(course, k, column))
        length += float(np.abs(np.diff(marks)).sum())
        largest = max(largest, *(abs(mark) for mark in marks))
        place = marks[-1]
    return Way(turned, place, length, largest)


def _turning(course: Course, k: int, column: int) -> float:
    """How far a coordinate has come in step k where it turns round."""
    from scipy.optimize import brentq  # slow to import

    step = course.step(k)
    t = float(brentq(lambda t: float(step(t)[1][column]), step.t0, step.t1))
    return float(step.along(t)[column])
