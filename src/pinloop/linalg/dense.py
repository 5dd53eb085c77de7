"""SciPy's LAPACK and BLAS: factors, solves, inverses of single matrices and of stacks.

They are imported when first needed, for linear algebra takes long to import.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from ..tolerances import LAST_BITS, TINY

Array = NDArray[np.float64]

_SMALL = 150
"""Columns up to which a dense matrix is factorised faster than a sparse one."""


@cache
def lapack() -> Any:
    """The module `scipy.linalg.lapack`."""
    return scipy.linalg.lapack


@cache
def triangular() -> Any:
    """BLAS' triangular solve; LAPACK's wakes all threads of OpenBLAS for the smallest matrices."""
    return scipy.linalg.blas.dtrsm


@cache
def triangular_vector() -> Any:
    """BLAS' triangular solve for one right-hand side."""
    return scipy.linalg.blas.dtrsv


def block_matrix(shape: tuple[int, int], blocks: Iterable[tuple[int, int, Array]]) -> Any:
    """The sum of dense blocks: a dense array if it is small, else a sparse one.

    Args:
        shape: number of rows and columns.
        blocks: row and column of the first entry of each block, and the block.
    """
    if shape[1] <= _SMALL:
        matrix = np.zeros(shape)
        for row, column, block in blocks:
            matrix[row : row + block.shape[0], column : column + block.shape[1]] += block
        return matrix
    entries, rows, columns = [np.zeros(0)], [np.zeros(0, np.intp)], [np.zeros(0, np.intp)]
    for row, column, block in blocks:
        i, j = np.nonzero(block)
        entries.append(block[i, j])
        rows.append(i + row)
        columns.append(j + column)
    places = np.concatenate(rows), np.concatenate(columns)
    return scipy.sparse.csc_array((np.concatenate(entries), places), shape=shape)


def damped_least_squares(A: Any, b: Array, damping: float | Array) -> Array:
    """The ``x`` that minimises ``|A x - b|^2 + x' D x`` with a diagonal ``D``.

    By the normal equations, which are positive definite whatever the rank: the last bits are added
    to what is damped by less. It takes time linear in a matrix whose rows know a few columns each.

    Args:
        A: matrix, shape (m, n), dense or sparse.
        b: right-hand sides, shape (m,) or (m, k).
        damping: the diagonal of ``D``, shape (n,), or all of its entries.
    """
    if A.shape[1] == 0:
        return np.zeros((0, *b.shape[1:]))
    is_dense = A.shape[1] <= _SMALL
    if not is_dense:
        A = scipy.sparse.csc_array(A)
    gram, target = A.T @ A, A.T @ b
    least = max(LAST_BITS * float(gram.diagonal().max()), TINY)
    diagonal = np.zeros(len(target)) + np.maximum(damping, least)
    if is_dense:
        gram[np.diag_indices_from(gram)] += diagonal
        return np.asarray(lapack().dposv(gram, target)[1])
    gram = (gram + scipy.sparse.diags_array(diagonal)).tocsc()
    factor = scipy.sparse.linalg.splu(
        gram, "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
    )
    return np.asarray(factor.solve(target))


def cholesky(M: Array) -> tuple[Array, bool]:
    """``R`` with ``R'R = M`` in its upper triangle, from that of ``M``, and whether it exists."""
    factor, failed = lapack().dpotrf(M, lower=0)
    return factor, failed == 0


def forward(R: Array, B: Array) -> Array:
    """``R'^-1 B`` for an upper triangle."""
    return np.asarray(triangular()(1.0, R, B, lower=0, trans_a=1)) if B.size else np.zeros(B.shape)


def backward(R: Array, b: Array) -> Array:
    """``R^-1 b`` for an upper triangle."""
    return np.asarray(triangular_vector()(R, b, lower=0)) if b.size else np.zeros(b.shape)


def solve(R: Array, b: Array) -> Array:
    """``(R'R)^-1 b`` for an upper triangle."""
    return np.asarray(lapack().dpotrs(R, b, lower=0)[0]) if b.size else np.zeros(b.shape)


def inverse(R: Array) -> Array:
    """Inverses of a stack of upper triangles."""
    if len(R) != 1 or R.size == 0:
        return np.asarray(np.linalg.inv(R))
    inverted, failed = lapack().dtrtri(R[0], lower=0)
    if failed:
        raise np.linalg.LinAlgError
    return np.asarray(inverted)[None]


def orthonormal(W: Array) -> tuple[Array, Array]:
    """``Q`` with orthonormal columns and upper triangles ``R`` with ``Q R = W``, for a stack.

    Args:
        W: shape (n, r, c), with at least as many rows as columns.
    """
    if len(W) != 1 or W.size == 0:
        Q, R = np.linalg.qr(W)
        return np.asarray(Q), np.asarray(R)
    both, reflections, _, _ = lapack().dgeqrf(W[0])
    columns = both.shape[1]
    return (
        np.asarray(lapack().dorgqr(both, reflections)[0])[None],
        np.asarray(np.triu(both[:columns]))[None],
    )
