"""The least value of a function that cannot change faster than its argument, and its first zero.

No robot is known here. A distance between two bodies is such a function of the way that the
points of one of them may have gone as seen from the other: both searches use nothing but
``|f(x) - f(y)| <= |x - y|``, so that nothing between their samples can be missed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush

from ...tolerances import DISTANCE_ERROR, TOUCH

__all__ = ["Minimum", "find_contact", "find_minimum"]


@dataclass(frozen=True)
class Minimum:
    """The least value of a function.

    Args:
        at: where it was found.
        value: what was found.
        bound: the function is nowhere below this.
    """

    at: float
    value: float
    bound: float


def find_minimum(
    f: Callable[[float], float], length: float, tolerance: float, enough: float = float("inf")
) -> Minimum:
    """Minimum value of ``f`` on [0, length] (Piyavskii and Shubert).

    Between two samples ``f`` is at least ``(f(a) + f(b) - (b - a)) / 2``, and could be so small
    only at one place, which is where it is sampled next; the lowest such place comes first.

    Args:
        f: the function.
        length: end of its interval.
        tolerance: how far the value found may lie above the least one.
        enough: what lies above this is of no interest, nor is how far.

    Returns:
        What was found; no better than `TOUCH` if it is below that.
    """
    ends = [(x, f(x)) for x in dict.fromkeys((0.0, length))]
    at, value = min(ends, key=lambda sample: sample[1])
    (a, fa), (b, fb) = ends[0], ends[-1]
    waiting = [((fa + fb - (b - a)) / 2, a, fa, b, fb)]
    while value > TOUCH:
        bound, a, fa, b, fb = waiting[0]
        goal = min(value, enough)
        # A value near zero has to be told from zero.
        if bound >= goal - max(min(tolerance, goal / 2), DISTANCE_ERROR):
            return Minimum(at, value, min(bound, value))
        heappop(waiting)
        x = min(max((a + b + fa - fb) / 2, a), b)
        fx = f(x)
        if fx < value:
            at, value = x, fx
        heappush(waiting, ((fa + fx - (x - a)) / 2, a, fa, x, fx))
        heappush(waiting, ((fx + fb - (b - x)) / 2, x, fx, b, fb))
    return Minimum(at, value, 0.0)


def find_contact(f: Callable[[float], float], length: float) -> float | None:
    """First place on [0, length] where ``f`` is no more than `TOUCH`, or None (advancement).

    From a place where ``f`` is ``d`` its next zero is at least ``d`` away.

    Args:
        f: the function.
        length: end of its interval.
    """
    x = 0.0
    while True:
        value = f(x)
        if value <= TOUCH:
            return x
        if x >= length:
            return None
        x = min(x + max(value - DISTANCE_ERROR, DISTANCE_ERROR), length)
