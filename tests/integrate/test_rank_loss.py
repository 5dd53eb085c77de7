"""Tests of `pinloop.integrate.rank_loss`: curves with known least values, along lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from pinloop.integrate import Segment, Step
from pinloop.integrate.rank_loss import first_near, leads_to_loss, least_regularity
from pinloop.simulation.modes import RobotManifold

from ..screw_tables import Array
from ..states import one_body
from .groups_by_hand import Space

ONE = np.ones(1)


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


class Distance:
    """Constraints as regular as their distance from a pose is large, which may move."""

    regularity, steepest = 1.0, 4.0

    def __init__(self, slope: float, even: float = 0.0, rate: float = 0.0) -> None:
        self._slope, self._even, self._rate = slope, even, rate

    def regularity_at(self, t: float, q: Array) -> float:
        return self._even + self._slope * abs(float(q[0]) - self._rate * t)


@pytest.mark.parametrize("slope", [0.05, 1.0])
@pytest.mark.parametrize("rate", [2.0, -0.01])
def test_a_pose_is_as_near_as_the_way_there_is_long(slope: float, rate: float) -> None:
    """However fast a state moves, and to or from there; a pose that flees as fast is never met."""
    rows, v = Distance(slope), np.array([rate, 0.0])
    for place in (-0.3, 0.3):
        state = 0.0, np.array([place, 0.0]), v
        assert leads_to_loss(rows, Space(), state, np.ones(2), 0.999 / 0.3)
        assert not leads_to_loss(rows, Space(), state, np.ones(2), 1.001 / 0.3)
        assert leads_to_loss(rows, Space(), state, np.array([0.1, 1.0]), 0.333)
        assert not leads_to_loss(rows, Space(), state, np.array([0.1, 1.0]), 0.334)
        assert not leads_to_loss(Distance(slope, rate=rate), Space(), state, np.ones(2), 1e-3)
        aside = state[0], state[1], np.array([0.0, rate])
        assert not leads_to_loss(rows, Space(), aside, np.ones(2), 1e-3)


def test_without_a_way_or_with_nothing_left_a_pose_is_near() -> None:
    q, v = np.array([0.3, 0.0]), np.array([0.0, 1.0])
    assert leads_to_loss(Distance(1.0), Space(), (0.0, q, 0.0 * v), np.ones(2), 1e3)
    assert leads_to_loss(Distance(0.0, 0.9e-3), Space(), (0.0, q, v), np.ones(2), 1e3)
    assert not leads_to_loss(Distance(0.0, 1.1e-3), Space(), (0.0, q, v), np.ones(2), 1e-3)


@pytest.mark.parametrize("at", [0.05, 0.3, 0.5, 0.62, 0.9, 0.97])
def test_where_the_sign_changes_there_is_nothing_left(at: float) -> None:
    curve = Curve(lambda t: abs(t - at) * (1.0 + t))
    least = least_regularity(curve, step(), (at, 2 - 2 * at), 4.0, ONE)
    assert 0.0 <= least < 0.02


def test_a_sign_may_change_twice() -> None:
    curve = Curve(lambda t: abs((t - 0.2) * (t - 0.8)))
    assert least_regularity(curve, step(), (0.16, 0.16), 4.0, ONE) < 0.01


def test_the_least_value_inside_counts_and_that_at_the_end_but_not_at_the_start() -> None:
    dip = Curve(lambda t: 0.2 + (t - 0.4) ** 2)
    assert least_regularity(dip, step(), (0.36, 0.56), 4.0, ONE) == pytest.approx(0.2, abs=1e-4)
    for rises, slope in ((True, 0.5), (False, -0.5)):
        line = Curve(lambda t, slope=slope: 0.6 + slope * (t - 0.5))  # type: ignore[misc]
        ends = (0.35, 0.85) if rises else (0.85, 0.35)
        assert least_regularity(line, step(), ends, 4.0, ONE) == ends[1] and line.looks == 3


def test_a_short_step_is_not_looked_at() -> None:
    """It cannot get from one side to the other."""
    curve = Curve(lambda t: 0.0)
    assert least_regularity(curve, step(), (0.4, 0.5), 4.0, ONE / 0.22) == 0.5 and curve.looks == 0
    assert least_regularity(curve, step(), (0.4, 0.5), 4.0, ONE / 0.23) == 0.0


def speeding_up() -> Step:
    """A step from rest by 1, with constant acceleration: a quarter of it in the first half."""
    return replace(step(), v0=np.zeros(1), v1=np.full(1, 2.0))


def test_the_middle_is_enough_where_neither_half_gets_from_one_side_to_the_other() -> None:
    level = Curve(lambda t: 0.5)
    for motion, steepest, looks in (
        (step(), 1.2, 1),
        (speeding_up(), 1.2, 1),
        (speeding_up(), 1.5, 3),
    ):
        level.looks, level.steepest = 0, steepest
        assert least_regularity(level, motion, (0.5, 0.5), steepest, ONE) == 0.5
        assert level.looks == looks


def test_one_looks_where_the_motion_is() -> None:
    """At the same time the motion at constant speed is elsewhere."""

    class Place(Curve):
        def regularity_at(self, t: float, q: Array) -> float:
            return abs(float(q[0]) - 0.36) + 0.1 * abs(t - 0.6)

    assert least_regularity(Place(lambda t: 0.0), speeding_up(), (0.42, 0.68), 4.0, ONE) < 0.02


def test_a_turning_body_arrives_with_its_velocity() -> None:
    """What it passes shortly before is on the way that it looks along."""
    group = RobotManifold(one_body("spherical"))
    q0, v1, psi = (
        one_body("spherical").neutral,
        np.array([2.0, -1.0, 0.5]),
        np.array([0.3, 1.2, -0.8]),
    )
    q1 = group.integrate(q0, psi)
    passed = group.integrate(q1, -0.02 * v1)

    class Place(Curve):
        def regularity_at(self, t: float, q: Array) -> float:
            return float(np.linalg.norm(group.difference(passed, q)))

    zero = np.zeros(3)
    turning = Step(group, 0.0, 1.0, q0, zero, zero, psi, q1, v1, zero)
    ends = float(np.linalg.norm(group.difference(passed, q0))), 0.02 * float(np.linalg.norm(v1))
    assert least_regularity(Place(lambda t: 0.0), turning, ends, 4.0, np.ones(3)) < 0.01


def test_of_many_steps_the_first_that_comes_near_is_found() -> None:
    """Their regularities are over the best that was known then, and are taken over the last."""
    notes = np.tile([1.0, 0.1, 0.5, 1.0], (4, 1))
    known = 1.0, 4.0, ONE, 0.1
    assert first_near(Curve(lambda t: abs(t - 2.3)), steps(4, notes), *known) == 2
    assert first_near(Curve(lambda t: 0.5), steps(4, notes), *known) is None
    assert first_near(Curve(lambda t: 0.0, steepest=0.0), steps(4, notes), *known) is None
    notes[:, 3] = 0.1, 0.1, 1.0, 1.0  # in the first two what looked regular was not
    assert first_near(Curve(lambda t: 0.05), steps(4, notes), *known) == 0
