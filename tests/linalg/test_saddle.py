"""Tests of `pinloop.linalg.saddle`: against one dense least-squares solution, whatever the rank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pinloop as pl
from pinloop.linalg.dense import count_independent
from pinloop.linalg.saddle import Saddle

from ..screw_tables import Array
from ..states import close, dense, rank

often = settings(max_examples=150, deadline=None, derandomize=True)
seeds = st.integers(0, 10**6)


@dataclass
class Problem:
    """A saddle problem with rows of a certain rank."""

    M: Array
    J: Array
    f: Array
    b: Array
    """Reachable by ``J x``."""
    scale: Array
    rank: int


def orthogonal(rng: np.random.Generator, n: int) -> Array:
    return np.asarray(np.linalg.qr(rng.normal(size=(n, n)))[0])


def problem(seed: int, n: int, m: int, r: int, least: float = 0.3) -> Problem:
    """A random problem; the non-zero singular values of J lie between ``least`` and 3."""
    rng = np.random.default_rng(seed)
    r = min(n, m, r)
    Q = orthogonal(rng, n)
    M = Q @ np.diag(10 ** rng.uniform(-1.5, 1.5, n)) @ Q.T
    values = np.zeros((m, n))
    if r:
        spread = np.geomspace(3.0, least, r) if r > 1 else np.array([least])
        np.fill_diagonal(values[:r, :r], spread)
    J = orthogonal(rng, m) @ values @ orthogonal(rng, n) if m else values
    scale = 10 ** rng.uniform(-1, 1, m)
    return Problem(M, J, rng.normal(size=n), J @ rng.normal(size=n), scale, r)


def entangled(seed: int) -> Problem:
    """Rows of which some depend on each other and others do not, some of them zero."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    basis = rng.normal(size=(int(rng.integers(1, n + 1)), n))
    rows = [row for row in basis]
    for _ in range(rng.integers(0, 4)):
        some = rng.choice(len(basis), size=min(2, len(basis)), replace=False)
        weights = rng.uniform(0.5, 2.0, len(some)) * rng.choice([-1, 1], len(some))
        rows.append(weights @ basis[some] * (rng.random() < 0.8))
    J = np.array(rows)[rng.permutation(len(rows))]
    given = problem(seed, n, len(J), 0)
    return Problem(given.M, J, given.f, J @ rng.normal(size=n), given.scale, len(basis))


def assert_solved(case: Problem, x: Array, lam: Array, tolerance: float) -> None:
    """The two equations themselves."""
    size = max(1.0, np.abs(case.f).max(), np.abs(case.J.T @ lam).max(initial=0.0))
    close(case.M @ x, case.f + case.J.T @ lam, tolerance, size)
    close(case.J @ x, case.b, tolerance, max(1.0, np.abs(x).max()))


@often
@given(seeds, st.integers(1, 7), st.integers(0, 9), st.integers(0, 7))
def test_solution_is_that_of_the_dense_system(seed: int, n: int, m: int, r: int) -> None:
    case = problem(seed, n, m, r)
    saddle = Saddle(case.M, case.J, case.scale)
    x, lam = saddle.solve(case.f, case.b)
    x_dense, lam_dense = dense(case.M, case.J, case.f, case.b, case.scale)
    close(x, x_dense, 1e-9)
    close(lam, lam_dense, 1e-9)
    assert_solved(case, x, lam, 1e-10)
    assert saddle.rank == case.rank
    assert saddle.rank == (rank(case.J) if m else 0)


@often
@given(seeds)
def test_determined_are_the_rows_without_which_the_rank_drops(seed: int) -> None:
    case = entangled(seed)
    saddle = Saddle(case.M, case.J, case.scale)
    whole = rank(case.J)
    alone = [rank(np.delete(case.J, i, axis=0)) < whole for i in range(len(case.J))]
    assert saddle.rank == whole
    assert list(saddle.determined) == alone


@often
@given(seeds)
def test_of_all_multipliers_the_smallest_in_the_scaled_norm(seed: int) -> None:
    case = entangled(seed)
    saddle = Saddle(case.M, case.J, case.scale)
    x, lam = saddle.solve(case.f, case.b)
    assert_solved(case, x, lam, 1e-9)
    # What may be added without changing the forces: left null vectors of J.
    U, values, _ = np.linalg.svd(case.J)
    idle = U[:, int(np.sum(values > 1e-9 * values[0])) :]
    assert np.abs(idle.T @ (lam / case.scale**2)).max(initial=0.0) < 1e-9 * max(
        1.0, np.abs(lam / case.scale**2).max()
    )
    # ... and where the multipliers are unique, none of these reaches.
    assert np.all(np.abs(idle[saddle.determined]) < 1e-9)


@often
@given(seeds, st.sampled_from([1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7]))
def test_nearly_singular_rows_count_and_are_met(seed: int, least: float) -> None:
    case = problem(seed, 6, 5, 4, least)
    saddle = Saddle(case.M, case.J)
    x, lam = saddle.solve(case.f, case.b)
    assert saddle.rank == 4
    # What can be asked of double precision: errors of the size of the rounding of J.
    noise = 1e-9 + 1e-11 / least
    close(case.J @ x, case.b, 1e-10)
    size = max(np.abs(case.M @ x).max(), np.abs(case.J.T @ lam).max())
    close(case.M @ x, case.f + case.J.T @ lam, noise, size)
    close(x, by_null_space(case), noise)


def by_null_space(case: Problem) -> Array:
    """A particular solution of the rows, and from there the minimum along what they leave free."""
    U, values, V = np.linalg.svd(case.J)
    r = case.rank
    start = V[:r].T @ ((U[:, :r].T @ case.b) / values[:r])
    N = V[r:].T
    return np.asarray(
        start + N @ np.linalg.solve(N.T @ case.M @ N, N.T @ (case.f - case.M @ start))
    )


@often
@given(seeds)
def test_x_does_not_care_for_repeated_and_recombined_rows(seed: int) -> None:
    case = entangled(seed)
    x, lam = Saddle(case.M, case.J, case.scale).solve(case.f, case.b)
    rng = np.random.default_rng(seed + 1)
    mix = np.vstack([orthogonal(rng, len(case.J)), rng.normal(size=(2, len(case.J)))])
    mixed, other = Saddle(case.M, mix @ case.J).solve(case.f, mix @ case.b)
    close(mixed, x, 1e-8)
    close((mix @ case.J).T @ other, case.J.T @ lam, 1e-8)


def test_multipliers_of_redundant_rows_do_not_depend_on_the_unit_of_length() -> None:
    """Rows of two lengths and an angle that depend on each other, in m and in mm."""
    M = np.diag([2.0, 1.0, 3.0])
    J = np.array([[1.0, 0.5, 0.0], [0.3, -0.2, 0.7], [2.3, 0.8, 0.7]])
    J[2] = 2 * J[0] + J[1]
    f, b, length = np.array([3.0, -1.0, 2.0]), np.zeros(3), 0.8
    linear = np.array([True, False, True])
    unit = np.where(linear, 1e3, 1.0)
    metres = Saddle(M, J, np.where(linear, 1 / length, 1.0)).solve(f, b)[1]
    rows = unit[:, None] * J
    millimetres = Saddle(M, rows, np.where(linear, 1e-3 / length, 1.0)).solve(f, b)[1]
    np.testing.assert_allclose(millimetres, metres / unit, rtol=1e-12)
    # Without the scale the choice would be another one: the test would notice.
    blind = Saddle(M, rows).solve(f, b)[1]
    assert np.abs(blind - metres / unit).max() > 1e-4 * np.abs(metres / unit).max()


@often
@given(seeds)
def test_what_cannot_be_met_is_met_in_the_least_squares_sense(seed: int) -> None:
    case = entangled(seed)
    rng = np.random.default_rng(seed + 2)
    b = rng.normal(size=len(case.J))
    x, lam = Saddle(case.M, case.J, case.scale).solve(case.f, b)
    rows = case.scale[:, None] * case.J
    best = np.linalg.lstsq(rows, case.scale * b, rcond=1e-10)[0]
    close(rows @ x, rows @ best, 1e-8)
    # Among these it still is the one that Gauss' principle picks.
    x_dense, lam_dense = dense(case.M, case.J, case.f, b, case.scale)
    close(x, x_dense, 1e-8)
    close(lam, lam_dense, 1e-8)


@often
@given(seeds)
def test_projection_is_the_shortest_way_in_the_metric_of_M(seed: int) -> None:
    case = entangled(seed)
    x = Saddle(case.M, case.J, case.scale).project(case.b)
    close(case.J @ x, case.b, 1e-10)
    free = np.linalg.svd(case.J)[2][case.rank :]
    # Orthogonal to all that the rows leave free, so that every other way is longer.
    assert np.abs(free @ case.M @ x).max(initial=0.0) < 1e-9 * max(1.0, np.abs(case.M @ x).max())


@often
@given(seeds, st.integers(1, 6), st.integers(0, 8), st.integers(0, 6))
def test_constraint_metric(seed: int, n: int, m: int, r: int) -> None:
    case = problem(seed, n, m, r)
    inverse = np.linalg.inv(case.M)
    middle = np.linalg.pinv(case.J @ inverse @ case.J.T, rcond=1e-9) if m else np.zeros((0, 0))
    P = Saddle(case.M, case.J, case.scale).constraint_metric()
    close(P, case.J.T @ middle @ case.J, 1e-8)
    assert np.trace(inverse @ P) == pytest.approx(case.rank, abs=1e-9)
    close(P @ inverse @ P, P, 1e-8)


@pytest.mark.parametrize("m", [0, 2])
def test_no_rows_and_idle_rows_leave_newtons_law(m: int) -> None:
    case = problem(3, 4, 0, 0)
    saddle = Saddle(case.M, np.zeros((m, 4)))
    x, lam = saddle.solve(case.f, np.zeros(m))
    close(case.M @ x, case.f, 1e-12)
    assert lam.shape == saddle.determined.shape == (m,)
    assert not lam.any() and not saddle.determined.any()
    assert saddle.rank == 0
    assert not saddle.constraint_metric().any()


@pytest.mark.parametrize("sick", [0.0, -1.0])
def test_a_mass_matrix_that_is_not_positive_definite_is_refused(sick: float) -> None:
    M = np.diag([1.0, 2.0, sick])
    for rows in (np.zeros((0, 3)), np.array([[1.0, 1.0, 0.0]]), np.zeros((2, 3))):
        with pytest.raises(pl.SingularMass, match=r"not positive definite \(coordinate 2\)"):
            Saddle(M, rows)
    with pytest.raises(pl.SingularMass):
        Saddle(np.zeros((2, 2)), np.eye(2))


@pytest.mark.parametrize("seed", range(20))
def test_rows_may_hold_what_has_no_inertia(seed: int) -> None:
    """A singular mass matrix is enough if every motion without inertia breaks a row."""
    rng = np.random.default_rng(seed)
    n, idle = 6, int(rng.integers(1, 4))
    case = problem(seed, n, 7, int(rng.integers(idle, 6)))
    values = 10 ** rng.uniform(-1.5, 1.5, n)
    values[:idle] = 0.0
    # Zero rows and columns, as of a massless tip, or directions across coordinates.
    Q = np.eye(n) if seed % 2 else orthogonal(rng, n)
    M = Q @ np.diag(values) @ Q.T
    saddle = Saddle(M, case.J, case.scale)
    assert saddle.rank == case.rank
    x, lam = saddle.solve(case.f, case.b)
    exact_x, exact_lam = dense(M, case.J, case.f, case.b, case.scale)
    close(x, exact_x, 1e-9)
    close(lam, exact_lam, 1e-9)
    close(M @ x, case.f + case.J.T @ lam, 1e-9)
    close(case.J @ x, case.b, 1e-9)
    y = saddle.project(case.b)
    close(y, dense(M, case.J, np.zeros(n), case.b, case.scale)[0], 1e-9)


def test_one_factorisation_serves_many_right_hand_sides_and_leaves_them_alone() -> None:
    case = problem(5, 5, 4, 3)
    copies = [np.array(part) for part in (case.M, case.J, case.f, case.b, case.scale)]
    saddle = Saddle(case.M, case.J, case.scale)
    first = saddle.solve(case.f, case.b)
    saddle.solve(-3 * case.f, 2 * case.b)
    saddle.project(case.b)
    again = saddle.solve(case.f, case.b)
    assert [part.tobytes() for part in first] == [part.tobytes() for part in again]
    parts = (case.M, case.J, case.f, case.b, case.scale)
    for part, copy in zip(parts, copies, strict=True):
        assert part.tobytes() == copy.tobytes()


@pytest.mark.parametrize("sick", [np.nan, np.inf])
@pytest.mark.parametrize("cap", [None, 1])
def test_rows_that_are_not_finite_are_refused(sick: float, cap: int | None) -> None:
    J = np.array([[1.0, sick, 0.0], [0.0, 1.0, 0.0]])
    with pytest.raises(pl.BadValue, match="not finite"):
        Saddle(np.eye(3), J, max_rank=cap).solve(np.ones(3), np.zeros(2))


def test_no_more_rows_count_than_can_be_independent() -> None:
    """Three rows that gain rank off the manifold: the best two, as if the third were not there."""
    rng = np.random.default_rng(12)
    root = np.tril(rng.normal(size=(4, 4))) + 3 * np.eye(4)
    U, V = orthogonal(rng, 4), orthogonal(rng, 3)
    f, b = rng.normal(size=4), rng.normal(size=3)
    for least in (1e-3, 1e-6, 1e-9):
        values = np.diag([2.0, 0.7, least])
        J = (root @ U[:, :3] @ values @ V).T
        x, lam = Saddle(root @ root.T, J, max_rank=2).solve(f, b)
        # The two combinations of the rows with the largest singular values.
        two = V[:2] @ J
        expected, weights = dense(root @ root.T, two, f, V[:2] @ b)
        close(x, expected, 1e-11)
        close(lam, V[:2].T @ weights, 1e-11)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_rows_count_against_the_largest_of_them(size: float) -> None:
    values = [size, 1e-4 * size, 2e-9 * size, 5e-10 * size]
    assert count_independent(values, 9, floor=0.0) == 3
    assert count_independent(values, 2, floor=0.0) == 2
    assert count_independent(values, 9, floor=1e-3 * size) == 1
