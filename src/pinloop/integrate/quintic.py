"""Quintics that start at zero: what dense output is made of, and quadrature over a step.

Coefficients are those of s, s^2, ... s^5 along the first axis, ``s`` the part of a step.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["NODES", "WEIGHTS", "hermite", "slope_powers", "value_powers"]

Array = NDArray[np.float64]

_BELOW, _ORDERS = np.arange(5), np.arange(1, 6)

NODES, WEIGHTS = np.polynomial.legendre.leggauss(4)
NODES, WEIGHTS = 0.5 * (NODES + 1.0), 0.5 * WEIGHTS
"""Gauss' points and weights on the interval from 0 to 1: exact up to the seventh order."""


def hermite(end: Array, r0: Array, r1: Array, b0: Array, b1: Array) -> Array:
    """Quintic from 0 to ``end`` with given first and second derivatives; its coefficients."""
    p3 = 10 * end - 6 * r0 - 4 * r1 - 1.5 * b0 + 0.5 * b1
    p4 = -15 * end + 8 * r0 + 7 * r1 + 1.5 * b0 - b1
    p5 = 6 * end - 3 * r0 - 3 * r1 - 0.5 * b0 + 0.5 * b1
    return np.array([r0, 0.5 * b0, p3, p4, p5])


def value_powers(s: ArrayLike) -> Array:
    """What makes of coefficients the values at ``s``: ``value_powers(s) @ p``, shape (..., 5)."""
    return np.asarray(np.asarray(s, dtype=float)[..., None] ** _ORDERS)


def slope_powers(s: ArrayLike) -> Array:
    """What makes of coefficients the derivatives at ``s``, shape (..., 5)."""
    return np.asarray(np.asarray(s, dtype=float)[..., None] ** _BELOW * _ORDERS)
