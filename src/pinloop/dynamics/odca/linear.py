"""What SciPy does to single matrices, loaded when first needed: importing SciPy takes long."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["cholesky", "forward", "inverse", "solve"]

Array = NDArray[np.float64]


@cache
def _lapack() -> Any:
    from scipy.linalg import lapack

    return lapack


@cache
def _triangular() -> Any:
    """BLAS' triangular solve; LAPACK's wakes all threads of OpenBLAS for the smallest matrices."""
    from scipy.linalg.blas import dtrsm

    return dtrsm


def cholesky(M: Array) -> tuple[Array, bool]:
    """``R`` with ``R'R = M`` in its upper triangle, from that of ``M``, and whether it exists."""
    factor, failed = _lapack().dpotrf(M, lower=0)
    return factor, failed == 0


def forward(R: Array, B: Array) -> Array:
    """``R'^-1 B`` for an upper triangle."""
    return np.asarray(_triangular()(1.0, R, B, lower=0, trans_a=1)) if B.size else np.zeros(B.shape)


def solve(R: Array, b: Array) -> Array:
    """``(R'R)^-1 b`` for an upper triangle."""
    return np.asarray(_lapack().dpotrs(R, b, lower=0)[0]) if b.size else np.zeros(b.shape)


def inverse(R: Array) -> Array:
    """Inverse of an upper triangle."""
    return np.asarray(_lapack().dtrtri(R, lower=0)[0])
