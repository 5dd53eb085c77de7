"""SciPy's LAPACK and BLAS, imported when first needed, for linear algebra takes long to import."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import scipy

__all__ = ["lapack", "least_change", "triangular", "triangular_vector"]


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
