"""Polynomials through Chebyshev's points of a unit interval: extrema and integrals; knows no robot.

Of an analytic function the coefficients fall geometrically: the last ones tell what is missed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["COARSE", "FINE", "Interpolation"]

Array = NDArray[np.float64]

_SEARCHED = np.linspace(-1.0, 1.0, 33)
"""Where extrema are looked for before they are refined."""


@dataclass(frozen=True, eq=False)
class Interpolation:
    """Interpolation in Chebyshev's points of the second kind, ends included, and its quadrature.

    Args:
        points: the points, from 0 to 1, shape (n,).
        coefficients: what makes of values their Chebyshev coefficients, shape (n, n).
        weights: weights of Clenshaw and Curtis, shape (n,).
        difference: these less those of every second point, shape (n,): what makes of values the
            error of the coarser rule, which is far more than that of this one.
        between: what makes of values those at even points close to each other, shape (k, n).
    """

    points: Array
    coefficients: Array
    weights: Array
    difference: Array
    between: Array

    @classmethod
    def of(cls, points: Array) -> Interpolation:
        """The interpolation in given points of this kind, an odd number of them."""
        weights = _weights(points)
        coarser = np.zeros(len(points))
        coarser[::2] = _weights(points[::2])
        coefficients = _coefficients(points)
        between = _vandermonde(_SEARCHED, len(points)) @ coefficients
        return cls(points, coefficients, weights, weights - coarser, between)

    def missed(self, values: Array) -> Array:
        """Size of the last two coefficients, a bound of what is missed: (..., n, m) to (..., m)."""
        return np.asarray(np.abs(self.coefficients[-2:] @ values).sum(axis=-2))

    def largest(self, values: Array) -> Array:
        """Largest sizes in the interval, between the points too: (..., n, m) to (..., m)."""
        sizes = np.abs(self.between @ values)
        at = np.argmax(sizes, axis=-2)[..., None, :]
        before, top, behind = (
            np.take_along_axis(sizes, np.clip(at + side, 0, len(_SEARCHED) - 1), axis=-2)
            for side in (-1, 0, 1)
        )
        inner = (at > 0) & (at < len(_SEARCHED) - 1)
        # The top of the parabola through the largest value and its neighbours.
        bend, slope = 2.0 * top - before - behind, behind - before
        more = np.divide(slope**2, 8.0 * bend, out=np.zeros_like(top), where=inner & (bend > 0.0))
        return np.asarray((top + more)[..., 0, :])


def _vandermonde(x: Array, count: int) -> Array:
    return np.asarray(np.polynomial.chebyshev.chebvander(x, count - 1))


def _coefficients(points: Array) -> Array:
    return np.asarray(np.linalg.inv(_vandermonde(2.0 * points - 1.0, len(points))))


def _weights(points: Array) -> Array:
    """Weights that integrate the polynomial through values at the points from 0 to 1."""
    order = np.arange(len(points))
    even = order % 2 == 0
    integrals = np.divide(1.0, 1.0 - order**2, out=np.zeros(len(points)), where=even)
    return np.asarray(integrals @ _coefficients(points))


_POINTS = 0.5 - 0.5 * np.cos(np.pi * np.arange(9) / 8.0)
FINE = Interpolation.of(_POINTS)
"""Interpolation of the eighth order."""
COARSE = Interpolation.of(_POINTS[::2])
"""Interpolation of the fourth order, in every second point of the fine one."""
