"""Tests of `pinloop.linalg.dense`: the factors multiply back, and are orthogonal."""

from __future__ import annotations

import numpy as np
import pytest

from pinloop.linalg.dense import factorize_singular

from ..screw_tables import Array


def stack(size: float, rank: int) -> tuple[Array, Array]:
    """Matrices whose three inner columns have a rank, and whose outer ones nearly lie in those."""
    rng = np.random.default_rng(2)
    inner = rng.normal(size=(4, 8, rank)) @ rng.normal(size=(4, rank, 3))
    outer = inner @ rng.normal(size=(4, 3, 2)) + size * rng.normal(size=(4, 8, 2))
    return inner, outer


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("size", [1.0, 1e-6, 1e-12])
def test_factors_of_what_nearly_lies_in_the_inner_columns(size: float, rank: int) -> None:
    inner, outer = stack(size, rank)
    factors, ranks = factorize_singular(np.concatenate([inner, outer], axis=2), 3, 8, None)
    np.testing.assert_array_equal(ranks, rank)
    Q_i, Q_o = factors.basis[:, :, :3], factors.basis[:, :, 3:]
    # Of what is left of the outer columns, however little it is, nothing is in the inner ones.
    assert np.abs(Q_i.transpose(0, 2, 1) @ Q_o).max() < 1e-14
    np.testing.assert_allclose(Q_i @ factors.across + Q_o @ factors.rest, outer, atol=1e-13)
    gram = inner.transpose(0, 2, 1) @ inner
    inverse = factors.root.transpose(0, 2, 1) @ factors.root
    np.testing.assert_allclose(inverse, np.linalg.pinv(gram, rcond=1e-9), rtol=1e-7, atol=1e-7)


def test_ranks_are_not_exceeded() -> None:
    inner, outer = stack(1.0, 3)
    caps = np.array([3, 2, 1, 3])
    factors, ranks = factorize_singular(np.concatenate([inner, outer], axis=2), 3, 8, caps)
    np.testing.assert_array_equal(ranks, caps)
    for Q, rank in zip(factors.basis[:, :, :3], caps, strict=True):
        assert np.linalg.matrix_rank(Q, tol=1e-9) == rank
