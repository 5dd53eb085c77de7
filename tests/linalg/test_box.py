"""Shortest solutions within bounds, against other solvers, optimality and brute force."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy

from pinloop.linalg.box import BoundedSolutions, Bounds, least_distance

from ..screw_tables import Array

Problem = tuple[Array, Array, Bounds]
linprog: Any = scipy.optimize.linprog
minimize: Any = scipy.optimize.minimize


def problem(seed: int) -> Problem:
    """A random problem; about half have no solution, some bounds are infinite or equal."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 4))
    k = n + int(rng.integers(0, 4))
    A = rng.normal(size=(n, k)) * 10.0 ** rng.uniform(-2, 2)
    low, high = -rng.uniform(0, 2, k), rng.uniform(0, 2, k)
    low[rng.random(k) < 0.1], high[rng.random(k) < 0.1] = -np.inf, np.inf
    if rng.random() < 0.2:
        low[0] = high[0] = rng.normal()
    b = A @ rng.normal(size=k) * rng.uniform(0.3, 2.0)
    return A, b, Bounds(low, high)


def excess(A: Array, b: Array, bounds: Bounds, unit: Array) -> float:
    """The least stretch of the bounds, by a linear program of SciPy's."""
    k = A.shape[1]
    finite = [np.isfinite(end) for end in bounds]
    rows = [np.column_stack([np.eye(k), -unit])[finite[1]]]
    rows += [np.column_stack([-np.eye(k), -unit])[finite[0]]]
    ends = np.concatenate([bounds.high[finite[1]], -bounds.low[finite[0]]])
    ranges = [(None, None)] * k + [(0, None)]
    equal = np.column_stack([A, np.zeros(len(A))])
    goal = np.eye(k + 1)[-1]
    solution = linprog(goal, np.vstack(rows), ends, equal, b, ranges)
    assert solution.status == 0
    return float(solution.x[-1])


@pytest.mark.parametrize("seed", range(80))
def test_conditions_of_optimality_or_a_facet(seed: int) -> None:
    """Karush, Kuhn and Tucker: what is not at a bound is a combination of the rows of A."""
    A, b, bounds = problem(seed)
    x, facet = BoundedSolutions(A).solve(b, bounds)
    np.testing.assert_allclose(A @ x, b, atol=1e-10 * np.abs(A).max() * max(1.0, np.abs(x).max()))
    least = excess(A, b, bounds, np.ones(len(x)))
    if facet is None:
        assert least < 1e-9
        at_low, at_high = x <= bounds.low + 1e-10, x >= bounds.high - 1e-10
        assert (x >= bounds.low - 1e-10).all() and (x <= bounds.high + 1e-10).all()
        inside = ~(at_low | at_high)
        y = np.linalg.lstsq(A[:, inside].T, x[inside], rcond=1e-10)[0]
        if np.linalg.matrix_rank(A[:, inside]) < len(A):  # multipliers are not unique then
            return
        push = x - A.T @ y
        assert np.abs(push[inside]).max(initial=0.0) < 1e-9
        free = at_low & at_high
        assert (push[at_low & ~free] > -1e-9).all() and (push[at_high & ~free] < 1e-9).all()
        return
    assert least > 1e-9
    # A facet is a combination of the equations that the bounds cannot meet.
    y = np.linalg.lstsq(A.T, facet.normal, rcond=None)[0]
    np.testing.assert_allclose(A.T @ y, facet.normal, atol=1e-9 * np.abs(facet.normal).max())
    corners = np.where(facet.normal > 0, bounds.high, bounds.low)
    used = facet.normal != 0
    most = float(facet.normal[used] @ corners[used])
    assert most == pytest.approx(facet.most, rel=1e-9, abs=1e-9)
    assert y @ b > most


@pytest.mark.parametrize("seed", range(40))
def test_shortest_by_all_sets_of_bounds(seed: int) -> None:
    """Brute force: each variable free, at its lower, or at its upper bound."""
    A, b, bounds = problem(seed)
    x, facet = BoundedSolutions(A).solve(b, bounds)
    best = np.inf
    for sides in product((0, 1, 2), repeat=len(x)):
        at = np.array(sides)
        trial = np.where(at == 1, bounds.low, np.where(at == 2, bounds.high, 0.0))
        if not np.isfinite(trial).all():
            continue
        free = at == 0
        trial[free] = np.linalg.lstsq(A[:, free], b - A[:, ~free] @ trial[~free], rcond=1e-12)[0]
        size = max(1.0, float(np.abs(trial).max()))
        if np.abs(A @ trial - b).max() > 1e-10 * np.abs(A).max() * size:
            continue
        if (trial >= bounds.low - 1e-9).all() and (trial <= bounds.high + 1e-9).all():
            best = min(best, float(trial @ trial))
    assert (best == np.inf) == (facet is not None)
    if facet is None:
        assert x @ x == pytest.approx(best, rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_shortest_by_another_solver(seed: int) -> None:
    A, b, bounds = problem(seed)
    rng = np.random.default_rng(seed)
    b = A @ np.clip(rng.normal(size=A.shape[1]), *bounds)  # so that there is a solution
    x, facet = BoundedSolutions(A).solve(b, bounds)
    assert facet is None
    other = minimize(
        lambda x: float(0.5 * x @ x),
        np.clip(np.zeros(len(x)), bounds.low, bounds.high),
        jac=lambda x: np.asarray(x),
        bounds=scipy.optimize.Bounds(*bounds),
        constraints=scipy.optimize.LinearConstraint(A, b, b),
        method="SLSQP",
        options={"ftol": 1e-12},
    )
    assert other.success
    assert x @ x == pytest.approx(other.x @ other.x, abs=1e-7)


@pytest.mark.parametrize("seed", range(60))
def test_bounds_are_stretched_by_no_more_than_it_takes(seed: int) -> None:
    A, b, bounds = problem(seed)
    unit = np.array(np.random.default_rng(seed).uniform(0.1, 3.0, A.shape[1]))
    stretch = BoundedSolutions(A).least_stretch(b, bounds, unit)
    assert stretch == pytest.approx(excess(A, b, bounds, unit), rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("seed", range(60))
def test_reach_is_that_of_a_linear_program(seed: int) -> None:
    """The largest ``s`` with ``A x = b0 + s c``, which HiGHS finds together with ``x``."""
    A, b, bounds = problem(seed)
    rng = np.random.default_rng(seed)
    middle = np.clip(np.zeros(A.shape[1]), bounds.low, bounds.high)
    start = A @ middle if seed % 4 else b  # mostly one that has a solution
    along = A @ rng.normal(size=A.shape[1])
    reach = BoundedSolutions(A).reach(start, along, bounds)
    k = A.shape[1]
    solution = linprog(
        -np.eye(k + 1)[-1],
        A_eq=np.column_stack([A, -along]),
        b_eq=start,
        bounds=[*zip(*bounds, strict=True), (0, None)],
    )
    if reach is None:
        assert solution.status == 2
    elif reach == np.inf:
        assert solution.status == 3
    else:
        assert solution.status == 0
        assert reach == pytest.approx(solution.x[-1], rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_the_last_place_of_a_path_within_bounds(seed: int) -> None:
    """Along a curved path, against places looked at one by one."""
    A, b, bounds = problem(seed)
    rng = np.random.default_rng(seed)
    middle = np.clip(0.3 * rng.normal(size=A.shape[1]), bounds.low, bounds.high)
    path = np.column_stack([A @ middle, 2 * b * rng.normal(), 5 * b * rng.normal()])
    solutions = BoundedSolutions(A)
    last = solutions.last_within(path, bounds, 1.0)
    assert last is not None  # at 0 there is a solution
    places = np.append(np.linspace(1.0, 0.0, 1001), last)
    fits = [solutions.solve(path @ s ** np.arange(3), bounds)[1] is None for s in places]
    assert fits[-1] and not any(fits[k] for k in np.flatnonzero(places > last + 1e-9))


def test_no_solution_anywhere_on_a_path() -> None:
    solutions = BoundedSolutions(np.eye(2))
    bounds = Bounds(np.array([-1.0, -1.0]), np.array([1.0, 1.0]))
    path = np.array([[2.0, 1.0, 0.5], [0.0, 0.0, 0.0]])
    assert solutions.last_within(path, bounds, 1.0) is None
    assert solutions.reach(np.array([2.0, 0.0]), np.array([1.0, 0.0]), bounds) is None


def test_equations_that_contradict_each_other() -> None:
    """What no ``x`` reaches is told apart from what bounds forbid."""
    solutions = BoundedSolutions(np.array([[1.0, 1.0], [2.0, 2.0]]))
    bounds = Bounds(-np.ones(2), np.ones(2))
    np.testing.assert_allclose(solutions.outside(np.array([1.0, 2.0])), 0.0, atol=1e-15)
    np.testing.assert_allclose(solutions.outside(np.array([2.0, -1.0])), [2.0, -1.0], atol=1e-15)
    assert solutions.reach(np.zeros(2), np.array([2.0, -1.0]), bounds) == 0.0
    assert solutions.reach(np.zeros(2), np.array([1.0, 2.0]), bounds) == pytest.approx(2.0)
    assert solutions.reach(np.zeros(2), np.zeros(2), bounds) == np.inf


def test_the_shortest_distance_to_a_corner() -> None:
    corner, weights = least_distance(np.eye(2), np.array([3.0, 4.0]))
    assert corner is not None
    np.testing.assert_allclose(corner, np.array([3.0, 4.0]), rtol=1e-12)
    np.testing.assert_allclose(weights, [3.0, 4.0], rtol=1e-12)
    nothing, proof = least_distance(np.array([[1.0], [-1.0]]), np.array([1.0, 1.0]))
    assert nothing is None and proof[0] == pytest.approx(proof[1]) and proof[0] > 0
