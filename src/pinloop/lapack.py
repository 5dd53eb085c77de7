"""SciPy's LAPACK and BLAS, imported when they are first needed: SciPy's linear algebra takes long.

Nothing is computed here.
"""

from __future__ import annotations

from functools import cache
from typing import Any

__all__ = ["lapack", "triangular", "triangular_vector"]


@cache
def lapack() -> Any:
    """The module `scipy.linalg.lapack`."""
    from scipy.linalg import lapack

    return lapack


@cache
def triangular() -> Any:
    """BLAS' triangular solve; LAPACK's wakes all threads of OpenBLAS for the smallest matrices."""
    from scipy.linalg.blas import dtrsm

    return dtrsm


@cache
def triangular_vector() -> Any:
    """BLAS' triangular solve for one right-hand side."""
    from scipy.linalg.blas import dtrsv

    return dtrsv
