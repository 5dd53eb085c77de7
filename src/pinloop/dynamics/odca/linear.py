"""What LAPACK and BLAS do to single matrices: factors, solves, inverses."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...lapack import lapack, triangular

__all__ = ["cholesky", "forward", "inverse", "solve"]

Array = NDArray[np.float64]


def cholesky(M: Array) -> tuple[Array, bool]:
    """``R`` with ``R'R = M`` in its upper triangle, from that of ``M``, and whether it exists."""
    factor, failed = lapack().dpotrf(M, lower=0)
    return factor, failed == 0


def forward(R: Array, B: Array) -> Array:
    """``R'^-1 B`` for an upper triangle."""
    return np.asarray(triangular()(1.0, R, B, lower=0, trans_a=1)) if B.size else np.zeros(B.shape)


def solve(R: Array, b: Array) -> Array:
    """``(R'R)^-1 b`` for an upper triangle."""
    return np.asarray(lapack().dpotrs(R, b, lower=0)[0]) if b.size else np.zeros(b.shape)


def inverse(R: Array) -> Array:
    """Inverse of an upper triangle."""
    return np.asarray(lapack().dtrtri(R, lower=0)[0])
