"""Polynomials on a unit interval: those of dense output, and Chebyshev's points; knows no robot.

Those of dense output start at zero; their coefficients are those of s, s^2, ... along the first
axis, ``s`` the part of a step. Of an analytic function the coefficients in Chebyshev's polynomials
fall geometrically: the last ones tell what is missed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import comb

import numpy as np
from numpy.polynomial.chebyshev import chebvander
from numpy.typing import ArrayLike

from ..boundary.marks import Array

_SEARCHED = np.linspace(-1.0, 1.0, 33)
"""Where extrema are looked for before they are refined."""


@dataclass(frozen=True, eq=False)
class Interpolation:
    """Interpolation in Chebyshev's points of the second kind, ends included, and its quadrature.

    Args:
        points: the points, from 0 to 1, shape (n,).
        coefficients: what makes of values their Chebyshev coefficients, shape (n, n).
        weights: weights of Clenshaw and Curtis, shape (n,).
        between: what makes of values those at even points close to each other, shape (k, n).
    """

    points: Array
    coefficients: Array
    weights: Array
    between: Array

    @classmethod
    def of(cls, points: Array) -> Interpolation:
        """The interpolation in given points of this kind, an odd number of them."""
        coefficients = np.array(np.linalg.inv(chebvander(2.0 * points - 1.0, len(points) - 1)))
        between = chebvander(_SEARCHED, len(points) - 1).astype(float) @ coefficients
        order = np.arange(len(points))
        integrals = np.divide(1.0, 1.0 - order**2, out=np.zeros(len(points)), where=order % 2 == 0)
        return cls(points, coefficients, integrals @ coefficients, between)

    def missed(self, values: Array) -> Array:
        """Size of the last two coefficients, a bound of what is missed: (..., n, m) to (..., m)."""
        return np.asarray(np.abs(self.coefficients[-2:] @ values).sum(axis=-2))

    def largest(self, values: Array) -> Array:
        """Largest sizes in the interval, between the points too: (..., n, m) to (..., m)."""
        return np.asarray(self.highest(np.stack([values, -values]))[1].max(axis=0))

    def highest(self, values: Array) -> tuple[Array, Array]:
        """Where polynomials are highest, as part of the interval, and how high.

        Of the highest of many even points and the top of the parabola beside it, that which is
        higher; the parabola gives the place, the height is that of the polynomial there.

        Args:
            values: values at the points, shape (..., n, m).

        Returns:
            Shapes (..., m) and (..., m).
        """
        shape = *values.shape[:-2], values.shape[-1]
        values = np.moveaxis(values, -2, -1).reshape(-1, values.shape[-2])
        even, rows = values @ self.between.T, np.arange(len(values))
        last, at = even.shape[1] - 1, even.argmax(axis=1)
        middle = np.clip(at, 1, last - 1)  # between an end and its neighbour there may be one, too
        highest, here = even[rows, at], even[rows, middle]
        before, behind = even[rows, middle - 1], even[rows, middle + 1]
        bend = 2.0 * here - before - behind
        shift = np.divide(behind - before, 2.0 * bend, out=np.zeros_like(here), where=bend > 0.0)
        place = np.where((bend > 0.0) & (np.abs(shift) <= 1.0), middle + shift, at) / last
        turns = np.arccos(np.clip(2.0 * place - 1.0, -1.0, 1.0))
        shapes = np.cos(turns[:, None] * np.arange(len(self.points)))
        there = np.sum(shapes * (values @ self.coefficients.T), axis=1)
        return place.reshape(shape), np.maximum(highest, there).reshape(shape)


_POINTS = 0.5 - 0.5 * np.cos(np.pi * np.arange(9) / 8.0)
FINE = Interpolation.of(_POINTS)
"""Interpolation of the eighth order."""
COARSE = Interpolation.of(_POINTS[::2])
"""Interpolation of the fourth order, in every second point of the fine one."""


_HERMITE = np.array(
    [
        [0, 1, 0, 0, 0],
        [0, 0, 0, 0.5, 0],
        [10, -6, -4, -1.5, 0.5],
        [-15, 8, 7, 1.5, -1],
        [6, -3, -3, -0.5, 0.5],
    ]
)

NODES, WEIGHTS = np.polynomial.legendre.leggauss(4)
NODES, WEIGHTS = 0.5 * (NODES + 1.0), 0.5 * WEIGHTS
"""Gauss' points and weights on the interval from 0 to 1: exact up to the seventh order."""


def hermite(end: Array, r0: Array, r1: Array, b0: Array, b1: Array) -> Array:
    """Quintic from 0 to ``end`` with given first and second derivatives; its coefficients."""
    given = np.array([end, r0, r1, b0, b1])
    return np.asarray((_HERMITE @ given.reshape(5, -1)).reshape(given.shape))


def value_powers(s: ArrayLike, degree: int = 5) -> Array:
    """What makes of coefficients the values at ``s``: ``value_powers(s) @ p``, (..., degree)."""
    if isinstance(s, float):  # for few numbers Python is faster
        return np.array([s**k for k in range(1, degree + 1)])
    return np.asarray(np.asarray(s, dtype=float)[..., None] ** np.arange(1, degree + 1))


def slope_powers(s: ArrayLike, degree: int = 5) -> Array:
    """What makes of coefficients the derivatives at ``s``, shape (..., degree)."""
    if isinstance(s, float):
        return np.array([(k + 1) * s**k for k in range(degree)])
    powers = np.arange(degree)
    return np.asarray(np.asarray(s, dtype=float)[..., None] ** powers * (powers + 1))


def bend_powers(s: ArrayLike, degree: int = 5) -> Array:
    """What makes of coefficients the second derivatives at ``s``, shape (..., degree)."""
    k = np.arange(degree)
    slopes = np.asarray(s, dtype=float)[..., None] ** np.maximum(k - 1, 0)
    return np.asarray(slopes * (k + 1) * k)


INNER = 0.5 + np.array([-0.5, 0.0, 0.5]) / np.sqrt(7.0)
"""Parts of a step at which second derivatives are met in the middle: there the slope of a quintic
and of its refinement by the middle one, respectively, is more accurate by one order."""


def refined(quintic: Array, parts: Array, bends: Array) -> Array:
    """A quintic with something added, so that it has given second derivatives inside.

    ``s^3 (1 - s)^3 c(s)`` is added, which leaves it as it is at both ends.

    Args:
        quintic: its coefficients, shape (5, ...).
        parts: up to three parts of a step, shape (k,).
        bends: second derivatives there, shape (k, ...); infinite where it stays as it is.

    Returns:
        Coefficients, shape (5 + k, ...).
    """
    shapes, before = _bumps(tuple(parts.tolist()))
    p = quintic.reshape(5, -1)
    more = bends.reshape(len(parts), -1) - before @ p
    more[np.isinf(more)] = 0.0
    whole = shapes @ more
    whole[:5] += p
    return whole.reshape(len(whole), *quintic.shape[1:])


@cache
def _bumps(parts: tuple[float, ...]) -> tuple[Array, Array]:
    """What is added per second derivative at some parts, and what of a quintic makes these."""
    count = len(parts)
    bumps = np.zeros((5 + count, count))
    for k in range(count):
        bumps[2 + k : 6 + k, k] = 1.0, -3.0, 3.0, -1.0
    second = bend_powers(parts, 5 + count)
    return bumps @ np.linalg.inv(second @ bumps), second[:, :5]


@dataclass(frozen=True, eq=False)
class Bernstein:
    """Polynomials of a degree by control points: each lies between the least and largest of its.

    Args:
        orders: 0, 1, ... and the degree.
        even: as many even parts of the interval.
        control: from values there to control points.
        of_powers: from coefficients of powers, the constant first, to control points.
        powers: from control points to coefficients of powers.
        left: from control points to those of the first half of the interval.
    """

    orders: Array
    even: Array
    control: Array
    of_powers: Array
    powers: Array
    left: Array

    @classmethod
    @cache
    def of(cls, degree: int) -> Bernstein:
        """The basis of a degree."""
        orders = range(degree + 1)
        powers_of, even = np.arange(degree + 1.0), np.linspace(0.0, 1.0, degree + 1)
        choose = np.array([[float(comb(i, j)) for j in orders] for i in orders])
        signs = np.array([[(-1.0) ** (i - j) for j in orders] for i in orders])
        powers = choose[degree][:, None] * choose * signs
        values = even[:, None] ** powers_of @ powers
        left = choose / 2.0 ** powers_of[:, None]
        return cls(powers_of, even, np.linalg.inv(values), choose / choose[degree], powers, left)

    @property
    def right(self) -> Array:
        """From control points to those of the second half of the interval."""
        return self.left[::-1, ::-1]

    def at(self, u: float) -> Array:
        """What makes of control points the value at a part of the interval."""
        return np.asarray(u**self.orders @ self.powers)
