"""SciPy's LAPACK and BLAS: factors, solves, inverses of single matrices and of stacks.

They are imported when first needed, for linear algebra takes long to import.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

__all__ = [
    "backward",
    "cholesky",
    "forward",
    "inverse",
    "lapack",
    "least_change",
    "orthonormal",
    "solve",
    "triangular",
    "triangular_vector",
]

Array = NDArray[np.float64]


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


def least_change(A: Any, b: Any, threshold: float) -> Any:
    """The shortest ``x`` that solves ``A x = b`` in the least-squares sense.

    By pivoted QR, several times faster than singular values.

    Args:
        A: matrix, shape (m, n).
        b: right-hand side, shape (m,).
        threshold: conditions below which, relative to the largest one, rows count as dependent.
    """
    m, n = A.shape
    padded = np.zeros((max(m, n), 1))
    padded[:m, 0] = b
    work, _ = lapack().dgelsy_lwork(m, n, 1, threshold)
    pivots = np.zeros((n, 1), dtype=np.int32)
    _, x, _, _, _ = lapack().dgelsy(A, padded, pivots, threshold, int(work))
    return x[:n, 0]


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
