"""Tests of `pinloop.integrate.rank_loss`: curves with known least values, along lines."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pinloop.integrate import Segment, Step
from pinloop.integrate.rank_loss import first_near, least_regularity

from ..screw_tables import Array
from .groups_by_hand import Space


class Curve:
    """Constraints whose regularity is a curve over time, with the number of looks at it."""

    regularity = 1.0

    def __init__(self, curve: Callable[[float], float], steepest: float = 4.0) -> None:
        self._curve, self.steepest, self.looks = curve, steepest, 0

    def regularity_at(self, t: float, q: Array) -> float:
        self.looks += 1
        return self._curve(t)


def steps(count: int, notes: Array) -> Segment:
    """Steps of 1 s along a line, by 1 in each."""
    t, ones = np.arange(count + 1.0), np.ones((count, 1))
    rates = np.ones((count + 1, 1))
    counts = np.zeros((count, 3), dtype=np.int64)
    return Segment(Space(), t, t[:, None], rates, 0 * rates, ones, ones, notes, counts)


def step() -> Step:
    return steps(1, np.ones((1, 4))).step(0)


@pytest.mark.parametrize("at", [0.05, 0.3, 0.5, 0.62, 0.9, 0.97])
def test_where_the_sign_changes_there_is_nothing_left(at: float) -> None:
    curve = Curve(lambda t: abs(t - at) * (1.0 + t))
    least = least_regularity(curve, step(), (at, 2 - 2 * at), 4.0, 1.0)
    assert 0.0 <= least < 0.02


def test_a_sign_may_change_twice() -> None:
    curve = Curve(lambda t: abs((t - 0.2) * (t - 0.8)))
    assert least_regularity(curve, step(), (0.16, 0.16), 4.0, 1.0) < 0.01


def test_the_least_value_inside_counts_and_that_at_the_end_but_not_at_the_start() -> None:
    dip = Curve(lambda t: 0.2 + (t - 0.4) ** 2)
    assert least_regularity(dip, step(), (0.36, 0.56), 4.0, 1.0) == pytest.approx(0.2, abs=1e-4)
    for rises, slope in ((True, 0.5), (False, -0.5)):
        line = Curve(lambda t, slope=slope: 0.6 + slope * (t - 0.5))  # type: ignore[misc]
        ends = (0.35, 0.85) if rises else (0.85, 0.35)
        assert least_regularity(line, step(), ends, 4.0, 1.0) == ends[1] and line.looks == 3


def test_a_short_step_is_not_looked_at() -> None:
    """It cannot get from one side to the other."""
    curve = Curve(lambda t: 0.0)
    assert least_regularity(curve, step(), (0.4, 0.5), 4.0, 0.22) == 0.5 and curve.looks == 0
    assert least_regularity(curve, step(), (0.4, 0.5), 4.0, 0.23) == 0.0


def test_of_many_steps_the_first_that_comes_near_is_found() -> None:
    """Their regularities are over the best that was known then, and are taken over the last."""
    notes = np.tile([1.0, 0.1, 0.5, 1.0], (4, 1))
    known = 1.0, 4.0, np.ones(4), 0.1
    assert first_near(Curve(lambda t: abs(t - 2.3)), steps(4, notes), *known) == 2
    assert first_near(Curve(lambda t: 0.5), steps(4, notes), *known) is None
    assert first_near(Curve(lambda t: 0.0, steepest=0.0), steps(4, notes), *known) is None
    notes[:, 3] = 0.1, 0.1, 1.0, 1.0  # in the first two what looked regular was not
    assert first_near(Curve(lambda t: 0.05), steps(4, notes), *known) == 0
