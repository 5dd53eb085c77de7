"""Searches in the unit cube for what is largest: uphill by slopes, and pattern search.

The pattern search (Hooke and Jeeves, J. ACM 8, 1961) needs no derivatives and reaches faces and
corners of the cube exactly. Where there are slopes, the search first climbs along them. They know
nothing of what lies behind the next change of the sequence of events, so that what they speak
against is tried later, too, and where they climb is the top of one hill only. Several searches
therefore share a number of values to be asked for, one of them without slopes; what any of them
found counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence

import numpy as np
from numpy.typing import NDArray

from ...boundary.marks import Array
from ...tolerances import INTEGRATION

_STEP, _SMALLEST = 0.25, 1e-3
"""First and last step, as parts of the ranges."""
_OF_SLOPES = 2
"""What slopes cost, in values."""
_COUNTS = 0.05
"""Part of the largest slope from which a coordinate goes along with the others."""
_LONGER, _SHORTER = 1.5, 1 / 3
"""Next step uphill after one that was better, and after one that was not."""
_ROUNDING = 10.0 * INTEGRATION
"""Part of the largest size that is no gain."""
_SHORT = 0.1
"""Steps below which slopes say on which side it is better."""
_ASIDE = (2.0, -2.0, 0.5, -0.5)
"""Steps aside along an edge, in steps ahead."""
_COARSE, _FINE = 0.05, 0.01
"""Shortest steps uphill before ends are tried, and after that: what is refused there creeps on."""
_PARTS = 8
"""Parts of the number of values that all searches get alike, to see which of them go on."""

Size = Callable[[Array], float]
Slope = Callable[[Array], Array | None]
Steps = Generator[int, None, bool]
"""What the next question costs, each before it is asked; whether they found something better."""


class LocalSearch:
    """A search that goes on from a point as long as it gets better, and can be paused.

    Args:
        size: what is to become large; minus infinity where it is not allowed.
        start: where to begin, shape (d,).
        best: the size there.
        slope: derivatives at a point; None where there are none.
        at_once: mask of coordinates that first go to the ends to which slopes point, all together,
            shape (d,).

    Attributes:
        x: where the largest size is.
        best: that size.
        done: whether there is nothing more to try.
    """

    def __init__(
        self,
        size: Size,
        start: Array,
        best: float,
        slope: Slope | None = None,
        at_once: NDArray[np.bool_] | None = None,
    ) -> None:
        self._size, self._slope, self.x, self.best = size, slope, start, best
        self._at_once = np.zeros(len(start), dtype=bool) if at_once is None else at_once
        self._uphill, self._at = np.zeros(len(start)), start if slope is None else None
        self._secants, self._refused = np.zeros(len(start)), False
        self._steps = self._search()
        self.cost, self.done = next(self._steps, 0), len(start) == 0

    def advance(self, budget: int) -> int:
        """Go on for so many values at most; how many were asked for."""
        used = 0
        while not self.done and used + self.cost <= budget:
            used += self.cost
            try:
                self.cost = next(self._steps)
            except StopIteration:
                self.done = True
        return used

    def _search(self) -> Steps:
        before = self.best
        if self._slope is not None:
            uphill = yield from self._slopes()
            ends = np.where(uphill > 0.0, 1.0, np.where(uphill < 0.0, 0.0, self.x))
            yield from self._go(np.where(self._at_once, ends, self.x))
            yield from self._climb(_COARSE)
        yield from self._try_ends()
        if self._slope is not None:
            yield from self._climb(_FINE)
        step = _STEP
        while step >= _SMALLEST:
            if not (yield from self._poll(step)):
                step /= 2.0
        return self.best > before

    def _slopes(self) -> Generator[int, None, Array]:
        """Slopes at the best point, zero where there are none."""
        if self._slope is not None and self._at is not self.x:
            yield _OF_SLOPES
            self._at, slopes = self.x, self._slope(self.x)
            if slopes is None:
                yield -_OF_SLOPES  # there are none in singular poses
            self._uphill = np.zeros(len(self.x)) if slopes is None else slopes
        return self._uphill

    def _go(self, there: Array) -> Steps:
        """Go to a point if it is better."""
        there, self._refused = np.clip(there, 0.0, 1.0), False
        if np.array_equal(there, self.x):
            return False
        yield 1
        value, step = self._size(there), there - self.x
        self._refused = value == -math.inf
        if np.count_nonzero(step) == 1 and not self._refused:
            k = np.abs(step).argmax()
            self._secants[k] = (value - self.best) / step[k]
        if better := bool(value > self.best + _ROUNDING * abs(self.best)):
            self.best, self.x = value, there
        return better

    def _climb(self, smallest: float) -> Steps:
        """Step uphill in all coordinates that may still go there, longer and longer."""
        before, step = self.best, _STEP
        while step >= smallest:
            uphill = yield from self._slopes()
            at_end = np.where(uphill > 0.0, self.x >= 1.0, self.x <= 0.0)
            free = np.where(at_end, 0.0, uphill)
            if not free.any():
                break
            better = yield from self._go(self.x + step * free / np.abs(free).max())
            step *= _LONGER if better else _SHORTER
        return self.best > before

    def _changed(self, k: int, value: float) -> Array:
        return np.where(np.arange(len(self.x)) == k, value, self.x)

    def _try_ends(self) -> Steps:
        """Try both ends of every coordinate, those that promise most first."""
        before, uphill = self.best, (yield from self._slopes()).copy()
        gains = np.maximum(uphill * (1.0 - self.x), -uphill * self.x)
        for k in np.argsort(-gains, kind="stable").tolist():
            for end in (1.0, 0.0) if uphill[k] > 0.0 else (0.0, 1.0):
                if (yield from self._go(self._changed(k, end))) and uphill[k] != 0.0:
                    break
        return self.best > before

    def _poll(self, step: float) -> Steps:
        """Try a step along every coordinate: a long one to either side, a short one uphill."""
        before, old, slopes = self.best, self.x, (yield from self._slopes()).copy()
        known, short = slopes.any(), step < _SHORT
        if known:
            counts = np.abs(slopes) > _COUNTS * np.abs(slopes).max()
            yield from self._go(self.x + step * np.sign(slopes) * counts)
        uphill = slopes if known else self._secants.copy()
        for k in np.argsort(-np.abs(uphill), kind="stable").tolist():
            if short and abs(uphill[k]) <= _ROUNDING * abs(self.best):
                continue
            own = -step if uphill[k] < 0.0 else step
            if (yield from self._go(self._changed(k, self.x[k] + own))):
                continue
            at_edge = self._refused
            if not (known and short) and (yield from self._go(self._changed(k, self.x[k] - own))):
                continue
            if at_edge:
                yield from self._slide(k, own, slopes if known else self._secants)
        if self.best > before:
            yield from self._go(2.0 * self.x - old)  # on in the same direction
        return self.best > before

    def _slide(self, k: int, own: float, uphill: Array) -> Steps:
        """Go on along an edge of what is allowed that runs askew, where it still leads uphill.

        A step along a coordinate crosses such an edge, and so does the steepest one.
        """
        matters = np.abs(uphill) > _ROUNDING * abs(self.best)
        matters[self._at_once] = matters[k] = False
        for j in np.flatnonzero(matters).tolist():
            for aside in (share * own for share in _ASIDE):
                if uphill[k] * own + uphill[j] * aside > 0.0:
                    there = self._changed(k, self.x[k] + own)
                    there[j] += aside
                    if (yield from self._go(there)):
                        return True
        return False


def share_budget(searches: Sequence[LocalSearch], budget: int) -> int:
    """Let searches go on, those with the largest sizes for longest; how many values they took.

    Half of the budget is for all alike, whatever is left for the best two, again and again.
    """
    left = budget - sum(search.advance(budget // (2 * len(searches))) for search in searches)
    while True:
        alive = [search for search in searches if not search.done]
        # Two that are equally high are on the same hill.
        heights = {search.best: search for search in reversed(alive)}
        best = [heights[height] for height in sorted(heights, reverse=True)[:2]]
        used = 0
        for search in best:
            used += search.advance(min(left - used, max(budget // _PARTS, search.cost)))
        if used == 0:
            return budget - left
        left -= used
