"""Tests of what decisions of stick and slip rest on: rounding of torques, shares, impossible ones.

The decisions themselves are tested against all combinations of sides in `test_gauss`.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from pinloop.dynamics.stick_slip import holding_noise, share_evenly, solve_stick_slip
from pinloop.tolerances import TORQUE_NOISE

from ..safety.stopping.contact_problems import contacts
from ..screw_tables import Array

# -- rounding -----------------------------------------------------------------------------------


def test_rounding_adds_up_from_all_that_acts() -> None:
    """Masses apart from each other: forces and weight as such, bounds and reactions besides."""
    m, f, weight = np.array([4.0, 9.0, 0.25]), np.array([6.0, -3.0, 2.0]), 5.0
    J, reaction = np.array([[0.0, -2.0, 1.0]]), np.array([-7.0])
    bounds = np.array([[-3.0, -np.inf, -1.0], [2.0, 8.0, np.inf]])
    # |f| in the metric of the inverse: sqrt(9 + 1 + 16); and f / sqrt(m), one by one: 3 + 1 + 4.
    acting = np.sqrt(26.0) + 8.0 + weight
    expected = np.array([2.0, 3.0, 0.5]) * acting + [3.0, 8.0 + 14.0, 1.0 + 7.0]
    noise = holding_noise(np.diag(m), f, J, bounds, reaction, weight)
    assert noise == pytest.approx(TORQUE_NOISE * expected, rel=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_what_holds_a_coordinate_is_rounded_by_less_than_its_noise(seed: int) -> None:
    """Against exact fractions, with light coordinates among heavy ones and forces that cancel."""
    rng, n = np.random.default_rng(seed), 4
    size = 10.0 ** rng.uniform(-3, 3, n)
    root = rng.normal(size=(n, n)) * size
    M, f = root.T @ root, size * 10.0 ** rng.uniform(0, 6) * rng.normal(size=n)
    J = size * rng.normal(size=(1, n))
    free = np.arange(1, n)
    inverse = np.linalg.inv(M[np.ix_(free, free)])
    response = J[0, free] @ inverse
    lam = -(response @ f[free]) / (response @ J[0, free])
    a = np.zeros(n)
    a[free] = inverse @ (f + J[0] * lam)[free]
    held = float(M[0] @ a - f[0] - J[0, 0] * lam)
    exact = _held_exactly(M, f, J[0])
    noise = holding_noise(M, f, J, np.zeros((2, n)), np.array([lam]), 0.0)
    assert abs(held - exact) <= noise[0]


def _held_exactly(M: Array, f: Array, row: Array) -> float:
    """Torque that holds the first coordinate while the row holds the others, in fractions."""
    n = len(f)
    system = [[Fraction(x) for x in M[k, 1:]] + [Fraction(-row[k])] for k in range(1, n)]
    system.append([Fraction(x) for x in row[1:]] + [Fraction(0)])
    right = [Fraction(x) for x in f[1:]] + [Fraction(0)]
    for k in range(n):
        best = max(range(k, n), key=lambda i: abs(system[i][k]))
        system[k], system[best] = system[best], system[k]
        right[k], right[best] = right[best], right[k]
        for i in range(n):
            if i != k:
                part = system[i][k] / system[k][k]
                system[i] = [x - part * y for x, y in zip(system[i], system[k], strict=True)]
                right[i] -= part * right[k]
    x = [right[k] / system[k][k] for k in range(n)]
    moving = sum(Fraction(M[0, k + 1]) * x[k] for k in range(n - 1))
    return float(moving - Fraction(f[0]) - Fraction(row[0]) * x[-1])


# -- shares -------------------------------------------------------------------------------------


def least_excess(A: Array, room: Array) -> float:
    """Smallest possible largest excess, by all corners of the feasible set."""
    best, (rows, n) = np.inf, A.shape
    for chosen in combinations(range(rows), n + 1):
        corner = np.column_stack([A[list(chosen)], -np.ones(n + 1)])
        if abs(np.linalg.det(corner)) > 1e-9:
            *x, excess = np.linalg.solve(corner, room[list(chosen)])
            if (A @ np.array(x) - room).max() <= excess + 1e-9:
                best = min(best, float(excess))
    return best


@pytest.mark.parametrize("unknowns", [1, 2, 3])
@pytest.mark.parametrize("seed", range(12))
def test_the_largest_excess_is_the_smallest_possible(unknowns: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(2 * unknowns + 2, unknowns))
    A = np.vstack([A, -rng.uniform(0.2, 1.0) * A])  # bounds on both sides
    room = rng.normal(size=len(A)) + rng.choice([-2.0, 0.0, 2.0])
    x = share_evenly(A, room)
    assert x.shape == (unknowns,)
    assert (A @ x - room).max() == pytest.approx(least_excess(A, room), abs=1e-8)


@pytest.mark.parametrize("way", [1.0, -1.0])
@pytest.mark.parametrize("unknowns", [1, 2])
@pytest.mark.parametrize("asked", [0.0, 1.0])
def test_where_nothing_bounds_it_all_gets_room(asked: float, unknowns: int, way: float) -> None:
    """Teeth take any torque on one side: whatever is asked of it fits, and is finite."""
    A = way * np.array([[1.0, 2.0], [3.0, 0.5], [0.2, 1.0]])[:, :unknowns]
    room = asked * np.array([-5.0, -20.0, 3.0])
    x = share_evenly(A, room)
    assert np.isfinite(x).all()
    assert (A @ x - room).max() <= -1.0


# -- impossible ones ----------------------------------------------------------------------------


def test_targets_that_rows_contradict_are_not_taken() -> None:
    """Two contacts want of a row what it does not allow: the weaker one gives in."""
    J, gamma = np.array([[1.0, 2.0, 0.0]]), np.array([0.0])
    strong, weak = 50.0, 5.0
    bounds = np.array([strong, weak])
    decision = solve_stick_slip(
        np.eye(3), np.array([0.0, 0.0, 1.0]), J, gamma, contacts(-bounds, bounds, 1.0)
    )
    assert J @ decision.a == pytest.approx([0.0], abs=1e-12)
    # The first follows its target, and moves the other by the row; that drags with its bound.
    assert decision.a == pytest.approx([1.0, -0.5, 1.0])
    assert decision.side.tolist() == [0, -1]
    assert decision.torque[1] == weak


@pytest.mark.parametrize(("load", "a"), [(3.0, 1.0), (-5.0, -2.0), (0.5, 0.0)])
def test_a_body_without_mass_moves_with_the_inertia_of_its_contact(load: float, a: float) -> None:
    """``2 a = load -+ 1``, whichever way; at rest the contact takes the load."""
    decision = solve_stick_slip(
        np.zeros((1, 1)), np.array([load]), np.zeros((0, 1)), np.zeros(0),
        contacts(-1.0, 1.0, up=2.0, down=2.0),
    )  # fmt: skip
    assert decision.a == pytest.approx([a])
    assert decision.torque == pytest.approx([-load])
    assert decision.side.tolist() == [np.sign(a)]
