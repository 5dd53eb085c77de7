"""What LAPACK and BLAS do to single matrices and to stacks: factors, solves, inverses."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .lapack import lapack, triangular, triangular_vector

__all__ = ["backward", "cholesky", "forward", "inverse", "orthonormal", "solve"]

Array = NDArray[np.float64]


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
    found, failed = lapack().dtrtri(R[0], lower=0)
    if failed:
        raise np.linalg.LinAlgError
    return np.asarray(found)[None]


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
