"""Searches in the unit cube, on functions whose highest point is known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pinloop.safety.studies.local_search import LocalSearch, share_budget

Array = Any


class Counted:
    """A function, and where it was asked for."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self.points: list[Array] = []

    def __call__(self, x: Array) -> float:
        self.points.append(x)
        return float(self._function(x))


def slanted(x: Array) -> float:
    """Highest in the corner (1, 1), to which an edge leads that steps along one axis cross."""
    return -math.inf if x[0] > 0.5 + 0.5 * x[1] else x[0] - 0.1 * x[1]


@pytest.mark.parametrize("slope", [None, lambda x: np.array([1.0, -0.1]), lambda x: None])
def test_edges_that_run_askew_are_followed(slope: Any) -> None:
    start = np.array([0.2, 0.1])
    search = LocalSearch(slanted, start, slanted(start), slope)
    search.advance(250)
    assert search.best == pytest.approx(0.9, abs=2e-3)


def test_rounding_is_no_gain() -> None:
    """Of a coordinate that matters to the last digit alone few values are asked for."""
    size = Counted(lambda x: 1.0 - (x[0] - 0.3) ** 2 + 1e-12 * math.sin(1e3 * x[1]))
    search = LocalSearch(size, np.array([0.9, 0.5]), size(np.array([0.9, 0.5])))
    search.advance(100)
    assert search.done and search.best == pytest.approx(1.0, abs=1e-6)
    moved = sum(x[1] != 0.5 for x in size.points)
    assert moved < 10 and len(size.points) > 20


def test_slopes_that_are_not_there_cost_nothing() -> None:
    size = Counted(lambda x: -np.abs(x - np.array([0.31, 0.62, 0.17])).sum())
    search = LocalSearch(size, np.full(3, 0.5), size(np.full(3, 0.5)), lambda x: None)
    assert 24 <= search.advance(25) == len(size.points) - 1


def test_two_searches_on_one_hill_do_not_take_the_turn_of_another() -> None:
    """The third one's hill is higher, but its start is not."""
    hills = [LocalSearch(lambda x: -abs(x[0] - 0.5), np.array([0.45]), -0.05) for _ in range(2)]
    far = LocalSearch(lambda x: 1.0 - 1.1 * abs(x[0] - 0.7) ** 0.1, np.array([0.0]), -0.062)
    share_budget([*hills, far], 60)
    assert max(hill.best for hill in hills) == pytest.approx(0.0, abs=1e-3)
    assert far.best > 0.4
