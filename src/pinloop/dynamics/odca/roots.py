"""Square roots of the inverses of stacks of symmetric matrices, singular ones too.

Matrices only. With ``Z zeta_io`` for the root ``Z`` of ``X^-1`` the Schur complement is exactly
symmetric and as accurate as it can be, however differently a long chain answers bending and
stretching.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .linear import cholesky, inverse

__all__ = ["pseudoroot", "root"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

_ZERO = 1e-12
"""Eigenvalues of ``X`` that count as zero; the two bodies at a joint alone give one."""
_SMALLER = 1e-14
"""The same where the rank is known, so that rounding in redundant rows is cut off anyway."""
_SUSPECT = 1e-8
"""Pivots below which eigenvalues are looked at."""
_NOISE = 1e-13
"""Diagonal entries that may be rounding only."""


def root(X: Array) -> tuple[Array, Array]:
    """``Z`` with ``Z'Z = X^-1`` for symmetric positive definite matrices, and how singular each is.

    The second result are the smallest pivots, of matrices scaled to a unit diagonal.
    """
    unit = 1.0 / np.sqrt(X.diagonal(axis1=1, axis2=2))
    scaled = X * unit[:, :, None] * unit[:, None, :]
    if len(X) == 1 and X.size:
        factor, exists = cholesky(scaled[0])
        if not exists:
            raise np.linalg.LinAlgError
        # With ``X = R'R`` it is the transpose of the inverse of ``R``.
        found, pivots = inverse(factor).T[None], factor.diagonal()[None]
    else:
        stack: Array = np.asarray(np.linalg.cholesky(scaled), dtype=float)
        found, pivots = (
            np.asarray(np.linalg.inv(stack), dtype=float),
            stack.diagonal(axis1=1, axis2=2),
        )
    return found * unit[:, None, :], pivots.min(axis=1, initial=1.0) ** 2


def pseudoroot(X: Array, caps: Indices | None) -> tuple[Array, Indices, float]:
    """``Z`` with ``Z'Z`` the pseudoinverse of symmetric matrices, their ranks, and the margin.

    Args:
        X: shape (n, k, k).
        caps: ranks that must not be exceeded, shape (n,), where they are known.
    """
    size = X.shape[1]
    bad = X.diagonal(axis1=1, axis2=2).min(axis=1, initial=1.0) < _NOISE
    if caps is not None:
        bad |= caps < size
    if not bad.any():
        try:
            found, pivots = root(X)
        except np.linalg.LinAlgError:
            bad[:] = True
        else:
            least = float(pivots.min(initial=1.0))
            if least >= _SUSPECT:
                return found, np.full(len(X), size, dtype=np.intp), least
    return _singular(X, caps, bad)


def _singular(
    X: Array, caps: Indices | None, bad: NDArray[np.bool_]
) -> tuple[Array, Indices, float]:
    """The same where at least one matrix is singular or may be."""
    size, margin = X.shape[1], 1.0
    found, ranks = np.empty_like(X), np.full(len(X), size, dtype=np.intp)
    good = np.flatnonzero(~bad)
    if len(good):
        try:
            found[good], pivots = root(X[good])
        except np.linalg.LinAlgError:
            bad[:] = True
        else:
            bad[good] = pivots < _SUSPECT
            margin = float(pivots[pivots >= _SUSPECT].min(initial=margin))
    at = np.flatnonzero(bad)
    values, V = np.linalg.eigh(0.5 * (X[at] + X[at].transpose(0, 2, 1)))
    kept = values > (_ZERO if caps is None else _SMALLER)
    if caps is not None:
        kept &= np.arange(size) >= size - caps[at, None]
    scale = np.where(kept, 1.0 / np.sqrt(np.where(kept, values, 1.0)), 0.0)
    found[at] = (V * scale[:, None, :]).transpose(0, 2, 1)
    ranks[at] = kept.sum(axis=1)
    return found, ranks, min(margin, float(values[kept].min(initial=margin)))
