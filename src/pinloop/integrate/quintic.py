"""Quintics that start at zero: what dense output is made of, and quadrature over a step.

Coefficients are those of s, s^2, ... s^5 along the first axis, ``s`` the part of a step.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["NODES", "WEIGHTS", "hermite", "slope_powers", "value_powers"]

Array = NDArray[np.float64]

_BELOW, _ORDERS = np.arange(5), np.arange(1, 6)
_HERMITE = np.array(
    [[0, 1, 0, 0, 0], [0, 0, 0, 0.5, 0], [10, -6, -4, -1.5, 0.5], [-15, 8, 7, 1.5, -1],
     [6, -3, -3, -0.5, 0.5]]
)  # fmt: skip

NODES, WEIGHTS = np.polynomial.legendre.leggauss(4)
NODES, WEIGHTS = 0.5 * (NODES + 1.0), 0.5 * WEIGHTS
"""Gauss' points and weights on the interval from 0 to 1: exact up to the seventh order."""


def hermite(end: Array, r0: Array, r1: Array, b0: Array, b1: Array) -> Array:
    """Quintic from 0 to ``end`` with given first and second derivatives; its coefficients."""
    given = np.array([end, r0, r1, b0, b1])
    return np.asarray((_HERMITE @ given.reshape(5, -1)).reshape(given.shape))


def value_powers(s: ArrayLike) -> Array:
    """What makes of coefficients the values at ``s``: ``value_powers(s) @ p``, shape (..., 5)."""
    return np.asarray(np.asarray(s, dtype=float)[..., None] ** _ORDERS)


def slope_powers(s: ArrayLike) -> Array:
    """What makes of coefficients the derivatives at ``s``, shape (..., 5)."""
    return np.asarray(np.asarray(s, dtype=float)[..., None] ** _BELOW * _ORDERS)
