"""Tests of `lipschitz_search`: against dense grids, on functions of slope at most 1."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pinloop.safety.space.clearance import find_contact, find_minimum
from pinloop.tolerances import DISTANCE_ERROR, TOUCH

from ...screw_tables import Array

Function = Callable[[float], float]


def cones(seed: int, floor: float) -> tuple[Function, Array]:
    """Distance on a line from some balls, and the bottoms where it is least."""
    rng = np.random.default_rng(seed)
    centres, heights = rng.uniform(0, 3, 6), floor + rng.uniform(0, 0.5, 6)
    return lambda x: float(np.min(np.hypot(x - centres, heights))), centres


@pytest.mark.parametrize("seed", range(20))
def test_the_least_value(seed: int) -> None:
    f, _ = cones(seed, 0.02)
    grid = min(f(x) for x in np.linspace(0, 3, 30_001))
    found = find_minimum(f, 3.0, 0.001)
    assert f(found.at) == found.value
    assert found.bound <= grid + 1e-6
    assert grid - 1e-6 <= found.value <= grid + 0.001
    assert found.bound >= found.value - 0.001


def test_a_slit_between_coarse_samples() -> None:
    """A touch of no width; sampling 1,000 places would find 0.05 mm at best."""
    calls = []

    def f(x: float) -> float:
        calls.append(x)
        return min(abs(x - 1.234567891), 0.2)

    found = find_minimum(f, 3.0, 0.001)
    assert found.value <= TOUCH
    assert found.bound == 0.0
    assert len(calls) < 100
    touch = find_contact(f, 3.0)
    assert touch == pytest.approx(1.234567891, abs=2 * TOUCH)


def test_a_gap_is_told_from_a_touch() -> None:
    gap = 3 * TOUCH
    found = find_minimum(lambda x: float(np.hypot(x - 1, gap)), 2.0, 0.001)
    assert found.value == pytest.approx(gap, abs=gap / 2)
    assert 0 < found.bound <= gap
    assert find_contact(lambda x: float(np.hypot(x - 1, gap)), 2.0) is None


def test_the_first_of_several_touches() -> None:
    f = lambda x: min(abs(x - 0.7), abs(x - 0.2), abs(x - 0.21))  # noqa: E731
    assert find_contact(f, 1.0) == pytest.approx(0.2, abs=2 * TOUCH)
    assert find_contact(f, 0.15) is None
    assert find_contact(lambda x: -1.0, 1.0) == 0.0


def test_what_is_above_enough_is_of_no_interest() -> None:
    f, _ = cones(3, 0.3)
    calls: list[float] = []

    def counted(x: float) -> float:
        calls.append(x)
        return f(x)

    found = find_minimum(counted, 3.0, 0.001, 0.1)
    assert found.bound >= 0.1 - 0.001
    few = len(calls)
    find_minimum(counted, 3.0, 0.001)
    assert few < (len(calls) - few) / 2


def test_noise_does_not_trap_the_search() -> None:
    rng = np.random.default_rng(0)
    for length in (0.0, 1e-9, 0.1):
        found = find_minimum(
            lambda x: 0.5 + float(rng.uniform(-DISTANCE_ERROR, DISTANCE_ERROR)), length, 0.001
        )
        assert found.value == pytest.approx(0.5, abs=1e-5)
