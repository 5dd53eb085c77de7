"""Dense algebra: LAPACK and BLAS on single matrices and stacks, ranks, orthogonal factors.

SciPy is imported when first needed, for linear algebra takes long to import. The factors at the end
are what one elimination of an O-DCA assembly does. For ``W = [W_i, W_o]`` they are orthonormal
``Q_i`` that span the columns of ``W_i``, and ``Q_o`` orthogonal to them, with

    W_i = Q_i Z^-T,    W_o = Q_i across + Q_o rest.

Products ``W'W`` are never formed: they would square the condition, and singular values below 1e-8
of the largest one would be lost in rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy

from ..boundary.marks import Array, Indices
from ..tolerances import LAST_BITS, RANK, ROW_NOISE, SLOPE_STEP, TINY

_SMALL = 150
"""Columns up to which a dense matrix is factorised faster than a sparse one."""


@cache
def lapack() -> Any:
    """The module `scipy.linalg.lapack`."""
    return scipy.linalg.lapack


@cache
def _triangular() -> tuple[Any, Any]:
    """BLAS' triangular solves, of vectors and of matrices.

    LAPACK's wakes all threads of OpenBLAS for the smallest matrices.
    """
    return scipy.linalg.blas.dtrsv, scipy.linalg.blas.dtrsm


def norm(x: Array) -> float:
    """Length of a vector, in a third of the time that NumPy's function takes."""
    return math.sqrt(x.dot(x))


def block_matrix(shape: tuple[int, int], blocks: Iterable[tuple[int, int, Array]]) -> Any:
    """The sum of dense blocks: a dense array if it is small, else a sparse one.

    ``blocks``: row and column of the first entry of each block, and the block.
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
    if M.size == 0:
        return M, True
    factor, failed = lapack().dpotrf(M, lower=0)
    return factor, failed == 0


def solve_triangle(A: Array, b: Array, *, lower: int = 1, transposed: int = 0) -> Array:
    """``A^-1 b`` or ``A'^-1 b`` for a triangle; ``b`` of its own even if there is nothing to do."""
    if b.size == 0:
        return np.zeros(b.shape)
    vector, matrix = _triangular()
    if b.ndim == 1:
        return np.asarray(vector(A, b, lower=lower, trans=transposed))
    return np.asarray(matrix(1.0, A, b, lower=lower, trans_a=transposed))


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


def count_independent(
    values: Sequence[float], most: int, tolerance: float = RANK, floor: float = ROW_NOISE
) -> int:
    """Rank of rows: the one decision which of them are independent, for every formulation.

    Args:
        values: singular values of ``L^-1 J'``, largest first.
        most: number of rows that can be independent at all.
        tolerance: fraction of the largest value below which values count as zero.
        floor: value below which values are rounding noise.
    """
    least = max(tolerance * values[0], floor) if values else 0.0
    return min(sum(value > least for value in values), most)


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


def slope(function: Callable[[float], Array], step: float = SLOPE_STEP) -> Array:
    """Derivative at 0 of a function of one number, by central differences of fourth order."""
    near = function(step) - function(-step)
    return np.asarray((8.0 * near - (function(2.0 * step) - function(-2.0 * step))) / (12.0 * step))


def slopes(function: Callable[[Array], Array], size: int) -> Array:
    """Derivatives at 0 of a function of a vector, one row per entry of the vector."""

    def along(unit: Array) -> Array:
        return slope(lambda s: function(s * unit))

    return np.array([along(unit) for unit in np.eye(size)])
