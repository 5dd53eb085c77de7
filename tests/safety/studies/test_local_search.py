"""The search in the unit cube by itself: hills whose tops are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pinloop.boundary.marks import Array
from pinloop.safety.studies.local_search import LocalSearch, share_budget

Size = Callable[[Array], float]


def search(size: Size, start: list[float], budget: int, **more: Any) -> tuple[float, Array, int]:
    x = np.array(start)
    own = LocalSearch(size, x, size(x), **more)
    used = own.advance(budget)
    return own.best, own.x, used


def test_it_counts_and_stays_inside() -> None:
    asked: list[Array] = []

    def size(x: Array) -> float:
        asked.append(x.copy())
        return -float(np.sum((x - [0.3, 2.0, -1.0]) ** 2))

    best, x, count = search(size, [0.5, 0.5, 0.5], 500)
    assert count == len(asked) - 1 < 500  # that of the start is known
    assert np.all(np.array(asked) >= 0) and np.all(np.array(asked) <= 1)
    assert x == pytest.approx([0.3, 1.0, 0.0], abs=1e-3) and tuple(x[1:]) == (1.0, 0.0)
    assert best == max(map(size, [x])) == pytest.approx(-2.0, abs=1e-5)


@pytest.mark.parametrize("budget", [0, 1, 2, 3, 7, 20])
@pytest.mark.parametrize("sloping", [True, False])
def test_it_keeps_to_its_budget(budget: int, sloping: bool) -> None:
    asked, slopes = [], []

    def size(x: Array) -> float:
        asked.append(x)
        return float(x[0] * x[1])

    def slope(x: Array) -> Array:
        slopes.append(x)
        return np.array([x[1], x[0]])

    best, x, count = search(size, [0.4, 0.6], budget, slope=slope if sloping else None)
    assert count == len(asked) - 1 + 2 * len(slopes) <= budget
    assert best == float(x[0] * x[1]) >= 0.24


def test_paused_it_goes_the_same_way() -> None:
    def size(x: Array) -> float:
        return -float(np.sum((x - [0.37, 0.61]) ** 2))

    start = np.array([0.9, 0.1])
    whole, parts = (LocalSearch(size, start, size(start)) for _ in range(2))
    assert whole.advance(39) == sum(parts.advance(13) for _ in range(3)) == 39
    assert whole.best == parts.best and np.array_equal(whole.x, parts.x)


@pytest.mark.parametrize(("low", "high", "start"), [(1.0, 0.4, 0.7), (0.4, 1.0, 0.3)])
def test_it_looks_at_both_ends_first(low: float, high: float, start: float) -> None:
    """A valley lies before the higher end; the lower one is near."""

    def size(x: Array) -> float:
        return float(max(low - 3 * x[0], high - 3 * (1 - x[0])))

    best, x, _ = search(size, [start], 40)
    assert best == 1.0 and x[0] == (0.0 if low > high else 1.0)


def test_it_halves_its_steps() -> None:
    """Nine halvings from a quarter to a thousandth: four values and the pattern each, not more."""
    best, x, count = search(lambda x: -float((x[0] - 0.47) ** 2), [0.1], 500)
    assert x[0] == pytest.approx(0.47, abs=1e-3) and best <= 0 and count < 45


def test_it_goes_around_what_is_not_allowed() -> None:
    def size(x: Array) -> float:
        return -np.inf if x[0] > 0.7 else float(x[0] + x[1])

    best, x, _ = search(size, [0.1, 0.1], 200)
    assert best == pytest.approx(1.7, abs=2e-3) and x[0] <= 0.7


def test_without_coordinates_there_is_nothing_to_try() -> None:
    best, _, count = search(lambda x: 3.0, [], 10)
    assert (best, count) == (3.0, 0)


# -- slopes ---------------------------------------------------------------------------------------


def test_coordinates_go_to_their_ends_at_once() -> None:
    asked: list[Any] = []

    def size(x: Array) -> float:
        asked.append(x.tolist())
        return float(3.0 * x[0] + x[1] - 2.0 * x[2])

    best, x, count = search(
        size, [0.5, 0.5, 0.5], 12, slope=lambda x: np.array([3.0, 1.0, -2.0]),
        at_once=np.array([False, True, True]),
    )  # fmt: skip
    assert asked[:2] == [[0.5, 0.5, 0.5], [0.5, 1.0, 0.0]]
    assert best == 4.0 and x.tolist() == [1.0, 1.0, 0.0] and count <= 12


def test_slopes_climb_a_hill_of_many_coordinates() -> None:
    """In twelve coordinates a quarter of what a pattern search takes is enough for more."""
    top = np.linspace(0.1, 0.9, 12)

    def size(x: Array) -> float:
        return -float(np.sum((x - top) ** 2))

    start = [0.5] * 12
    best, _, _ = search(size, start, 60, slope=lambda x: -2.0 * (x - top))
    plain, _, _ = search(size, start, 60)
    much, _, _ = search(size, start, 240)
    assert best > -1e-4 > plain and best > much


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_wrong_slopes_do_no_harm(sign: float) -> None:
    """They may know nothing of what lies behind the next change of the sequence of events."""

    def size(x: Array) -> float:
        return float(1.0 - (x[0] - 0.3) ** 2 - abs(x[1] - 0.7) * (1.0 + x[0]))

    best, x, _ = search(size, [0.5, 0.5], 400, slope=lambda x: sign * np.ones(2))
    plain, at, _ = search(size, [0.5, 0.5], 400)
    assert best == pytest.approx(plain, abs=1e-5)
    np.testing.assert_allclose(x, at, atol=2e-3)


# -- several --------------------------------------------------------------------------------------


def two_hills(x: Array) -> float:
    """The higher one is narrow, at (0.8, 0.8); slopes lead to it from its foot only."""
    low = 1.0 - 2.0 * np.sum((x - 0.3) ** 2)
    return float(max(low, 2.0 - 20.0 * np.sum((x - 0.8) ** 2)))


def test_the_better_of_several_starts_gets_the_budget() -> None:
    searches = [
        LocalSearch(two_hills, np.array(start), two_hills(np.array(start)))
        for start in ([0.1, 0.2], [0.9, 0.7])
    ]
    used = share_budget(searches, 150)
    assert used <= 150 and max(own.best for own in searches) > 2.0 - 1e-4


def test_a_budget_may_be_too_small_for_all() -> None:
    start = np.array([0.5, 0.5])
    searches = [LocalSearch(two_hills, start, two_hills(start)) for _ in range(5)]
    assert share_budget(searches, 3) == 3
    assert share_budget(searches[:1], 10_000) < 10_000  # it ends by itself


def test_the_lowest_of_three_goes_no_further() -> None:
    """What is left after a share for each is for the two that are highest."""
    asked = [0, 0, 0]

    def hill(number: int, top: float) -> Size:
        def size(x: Array) -> float:
            asked[number] += 1
            return top - float(np.sum((x - 0.37) ** 2))

        return size

    start = np.full(4, 0.9)
    searches = [
        LocalSearch(hill(k, top), start, top - 4 * 0.53**2) for k, top in enumerate((9, 1, 5))
    ]
    assert share_budget(searches, 120) == sum(asked) == 120
    assert asked[1] == 20 and min(asked[0], asked[2]) > 40
