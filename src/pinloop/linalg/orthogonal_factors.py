"""Orthogonal factors of stacks of matrices: what one elimination of the assembly does.

Matrices only. For ``W = [W_i, W_o]`` it finds orthonormal ``Q_i`` that span the columns of ``W_i``,
and ``Q_o`` orthogonal to them, with

    W_i = Q_i Z^-T,    W_o = Q_i across + Q_o rest.

Products ``W'W`` are never formed: they would square the condition, and singular values below 1e-8
of the largest one would be lost in rounding. Which singular values count is decided by
`saddle.count_independent`, as for all other formulations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..tolerances import RANK, ROW_NOISE
from .dense import inverse, orthonormal
from .saddle import count_independent

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

_SURE = 10.0
"""By how much the least singular value must exceed what counts where it is only estimated."""


@dataclass(frozen=True, eq=False)
class Factors:
    """Factors of a stack of n matrices with r rows, k inner and o outer columns.

    Args:
        root: ``Z``, with ``Z'Z`` the (pseudo)inverse of ``W_i' W_i``, shape (n, k, k).
        basis: ``[Q_i, Q_o]``, shape (n, r, k + o).
        across: ``Q_i' W_o``, shape (n, k, o).
        rest: ``Q_o' W_o``, shape (n, o, o).
    """

    root: Array
    basis: Array
    across: Array
    rest: Array


def factorize(W: Array, inner: int) -> Factors:
    """Factors of matrices of which the inner columns are independent.

    Args:
        W: shape (n, r, k + o), with at least as many rows as columns.
        inner: number k of inner columns, which stand first.
    """
    basis, R = orthonormal(W)
    root = inverse(R[:, :inner, :inner]).transpose(0, 2, 1)
    return Factors(root, basis, R[:, :inner, inner:], R[:, inner:, inner:])


def factorize_singular(
    W: Array, inner: int, rows: int, caps: Indices | None
) -> tuple[Factors, Indices]:
    """Factors of any matrices, and how many of their inner columns are independent.

    Args:
        W: shape (n, r, k + o), with at least as many rows as columns.
        inner: number k of inner columns, which stand first.
        rows: number of rows that are not padding.
        caps: ranks that must not be exceeded, shape (n,), where they are known.
    """
    ranks = np.full(len(W), inner, dtype=np.intp)
    if rows < inner or (caps is not None and np.all(caps < inner)):
        return _singular(W, inner, caps)
    try:
        factors = factorize(W, inner)
    except np.linalg.LinAlgError:
        return _singular(W, inner, caps)
    # 1 / |Z| is at most the least singular value, |W_i| at least the largest one.
    largest = np.linalg.norm(W[:, :, :inner], axis=(1, 2))
    limit = _SURE * np.maximum(RANK * largest, ROW_NOISE)
    bad = ~(limit * np.linalg.norm(factors.root, axis=(1, 2)) < 1.0)
    if caps is not None:
        bad |= caps < inner
    at = np.flatnonzero(bad)
    if len(at):
        some, ranks[at] = _singular(W[at], inner, None if caps is None else caps[at])
        factors.root[at], factors.basis[at] = some.root, some.basis
        factors.across[at], factors.rest[at] = some.across, some.rest
    return factors, ranks


def _singular(W: Array, inner: int, caps: Indices | None) -> tuple[Factors, Indices]:
    """The same by singular values: those that do not count are left out."""
    U, values, V = np.linalg.svd(W[:, :, :inner], full_matrices=False)
    limits = [inner] * len(W) if caps is None else caps.tolist()
    ranks = np.array(
        [
            count_independent(sizes, limit)
            for sizes, limit in zip(values.tolist(), limits, strict=True)
        ],
        dtype=np.intp,
    )
    counts = np.arange(inner) < ranks[:, None]
    root = np.where(counts, 1.0 / np.where(counts, values, 1.0), 0.0)[:, :, None] * V
    U = U * counts[:, None, :]
    outer = W[:, :, inner:]
    across = U.transpose(0, 2, 1) @ outer
    beside = outer - U @ across
    # Once more: what is left may be small against what was taken away.
    beside -= U @ (U.transpose(0, 2, 1) @ beside)
    Q, rest = orthonormal(beside)
    return Factors(root, np.concatenate([U, Q], axis=2), across, rest), ranks
