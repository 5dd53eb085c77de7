"""Tests of `pinloop.dynamics.independence`: explicit formulas and all subsets by brute force."""

from __future__ import annotations

from itertools import combinations
from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pinloop as pl

from ..screw_tables import Array
from ..states import SHIPPED, assembled, close, rank, robot

often = settings(max_examples=100, deadline=None, derandomize=True)
seeds = st.integers(0, 10**6)


def some(seed: int) -> tuple[Array, Array]:
    """A mass matrix and rows of any rank."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    A = rng.normal(size=(n, n))
    r = int(rng.integers(0, n + 1))
    J = rng.normal(size=(r + int(rng.integers(0, 3)), r)) @ rng.normal(size=(r, n))
    return A @ A.T + 0.1 * np.eye(n), J


def explicit(M: Array, J: Array) -> Array:
    """``P = J' (J M^-1 J')^+ J``, normalised to ones for directions that the rows fix."""
    inverse = np.linalg.inv(M)
    P = J.T @ np.linalg.pinv(J @ inverse @ J.T, rcond=1e-10) @ J
    size = np.sqrt(np.diagonal(M))
    return np.asarray(P / np.outer(size, size))


@often
@given(seeds)
def test_relative_projections_are_equation_67(seed: int) -> None:
    M, J = some(seed)
    found = pl.dynamics.relative_projections(M, J)
    close(found, np.diagonal(explicit(M, J)), 1e-8)
    assert np.all(found > -1e-14) and np.all(found < 1 + 1e-13)


@pytest.mark.parametrize("share", [1e-1, 1e-2, 1e-3, 1e-4])
def test_rows_that_nearly_depend_fix_no_more_than_all(share: float) -> None:
    rng = np.random.default_rng(603724)
    J = rng.normal(size=(3, 5))
    J[2] = J[0] - J[1] + share * rng.normal(size=5)
    projections = pl.dynamics.relative_projections(np.diag(rng.uniform(1, 2, 5)), J)
    assert projections.max() < 1 + 1e-13
    # With an identity for mass they are those of an orthogonal projector, whose trace is the rank.
    projections = pl.dynamics.relative_projections(np.eye(5), J)
    assert projections.sum() == pytest.approx(3.0, abs=1e-13)


@often
@given(seeds)
def test_one_minus_it_is_the_projection_on_the_tangent_space(seed: int) -> None:
    """Equation 68: the cosine between a coordinate direction and what the rows leave free."""
    M, J = some(seed)
    free = np.linalg.svd(np.vstack([J, np.zeros((1, len(M)))]))[2][rank(J) if len(J) else 0 :].T
    if free.shape[1] == 0:
        shadow = np.zeros(len(M))
    else:
        G = free.T @ M @ free
        shadow = np.diagonal(M @ free @ np.linalg.solve(G, free.T @ M)) / np.diagonal(M)
    close(pl.dynamics.relative_projections(M, J), 1 - shadow, 1e-8)


def test_a_fixed_coordinate_counts_one_and_a_free_one_zero() -> None:
    M = np.diag([2.0, 3.0, 5.0])
    np.testing.assert_allclose(
        pl.dynamics.relative_projections(M, np.array([[0.0, 7.0, 0.0]])), [0, 1, 0], atol=1e-14
    )
    # A mass of 1 and one of 4 tied to each other, as seen from each: M_i^-1 / (sum of M^-1).
    M, J = np.diag([1.0, 4.0]), np.array([[1.0, 1.0]])
    np.testing.assert_allclose(pl.dynamics.relative_projections(M, J), [0.8, 0.2], rtol=1e-14)


@often
@given(seeds)
def test_dependent_coordinates_against_all_subsets(seed: int) -> None:
    M, J = some(seed)
    r = rank(J) if len(J) else 0
    chosen, pivots = pl.dynamics.dependent_coordinates(M, J)
    assert len(chosen) == len(pivots) == r == len(set(chosen))
    if r == 0:
        return
    assert rank(J[:, chosen]) == r
    P = explicit(M, J)
    # The product of what was left is the squared volume that the chosen directions span.
    volume = float(np.linalg.det(P[np.ix_(chosen, chosen)]))
    assert np.prod(pivots) == pytest.approx(volume, rel=1e-6)
    best = max(
        float(np.linalg.det(P[np.ix_(part, part)]))
        for part in map(list, combinations(range(len(M)), r))
    )
    # Greedy choice of columns by volume is at most r! off (hence (r!)^2 for squared volumes).
    assert volume >= best / factorial(r) ** 2 * (1 - 1e-9)


@often
@given(seeds)
def test_each_choice_is_the_largest_remaining_projection(seed: int) -> None:
    M, J = some(seed)
    chosen, pivots = pl.dynamics.dependent_coordinates(M, J)
    P = explicit(M, J)
    for k, (index, pivot) in enumerate(zip(chosen, pivots, strict=True)):
        before = list(chosen[:k])
        rest = np.diagonal(P).copy()
        if before:
            block = np.linalg.inv(P[np.ix_(before, before)])
            rest = rest - np.einsum("ij,jk,ik->i", P[:, before], block, P[:, before])
            rest[before] = -1.0
        assert pivot == pytest.approx(rest[index], rel=1e-5, abs=1e-9)
        assert rest.max() <= pivot * (1 + 1e-5) + 1e-9


def test_the_largest_ones_one_by_one_would_be_singular() -> None:
    """Two coordinates that do the same are not both taken although both have large projections."""
    J = np.array([[1.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0, 1.0]])
    M = np.eye(5)
    np.testing.assert_allclose(
        pl.dynamics.relative_projections(M, J), [1 / 2, 1 / 2, 1 / 3, 1 / 3, 1 / 3]
    )
    chosen, pivots = pl.dynamics.dependent_coordinates(M, J)
    assert chosen[0] in (0, 1) and chosen[1] in (2, 3, 4)
    np.testing.assert_allclose(pivots, [1 / 2, 1 / 3])


def test_the_choice_does_not_depend_on_units_of_coordinates_and_rows() -> None:
    rng = np.random.default_rng(8)
    A = rng.normal(size=(6, 6))
    M, J = A @ A.T + np.eye(6), rng.normal(size=(3, 6))
    units = 10 ** rng.uniform(-2, 2, 6)
    there = J * units * 10 ** rng.uniform(-1, 1, (3, 1))
    scaled = M * np.outer(units, units)
    np.testing.assert_allclose(
        pl.dynamics.relative_projections(scaled, there),
        pl.dynamics.relative_projections(M, J),
        rtol=1e-9,
    )
    first, second = (
        pl.dynamics.dependent_coordinates(M, J),
        pl.dynamics.dependent_coordinates(scaled, there),
    )
    assert list(first[0]) == list(second[0])
    np.testing.assert_allclose(first[1], second[1], rtol=1e-9)


@pytest.mark.parametrize("name", SHIPPED)
def test_on_robots_the_dependent_columns_span_all_rows(name: str) -> None:
    machine = robot(name)
    q = assembled(machine, 4)
    equations = pl.EquationsOfMotion(machine)
    J = equations.terms(0.0, q, np.zeros(machine.nv))[0]
    chosen, pivots = pl.dynamics.dependent_coordinates(equations.mass(q), J)
    assert len(chosen) == (rank(J) if len(J) else 0)
    if len(chosen):
        assert rank(J[:, chosen]) == len(chosen)
        assert pivots.min() > 1e-6
