"""The shortest vector within bounds that solves linear equations, and what to do where none does.

Solutions of ``A x = b`` with ``low <= x <= high`` are least-distance problems in the null space of
``A``, and these are non-negative least squares. Where nothing fits, the same computation returns a
facet: a direction in which ``b`` lies beyond all that the bounds allow. Facets are all it takes to
stretch the bounds, or to move ``b`` along a path, by just enough. Knows no robot.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from ..boundary.marks import Array
from ..errors import PinloopError
from ..tolerances import LAST_BITS, NO_SOLUTION, RANK, REAL_ROOT
from .dense import lapack

_NOISE = 100 * LAST_BITS
"""Part of the sizes at hand by which bounds may be exceeded."""
_MOST_FACETS = 200
"""More than a search passes."""


def least_distance(G: Array, h: Array) -> tuple[Array | None, Array]:
    """The shortest ``x`` with ``G x >= h`` (Lawson and Hanson, 1974, ch. 23).

    Args:
        G: shape (m, n).
        h: shape (m,), finite.

    Returns:
        ``x``, and multipliers ``u >= 0`` with ``x = G'u``; where there is no such ``x``, None and
        ``u >= 0`` with ``G'u = 0`` and ``h'u > 0``.
    """
    size = float(h.max(initial=0.0))
    if size <= 0.0:
        return np.zeros(G.shape[1]), np.zeros(len(h))
    if G.shape[1] == 0:
        return None, np.eye(len(h))[int(h.argmax())]
    target = np.append(np.zeros(G.shape[1]), 1.0)
    u = scipy.optimize.nnls(np.vstack([G.T, h / size]), target)[0]
    left = 1.0 - float(h @ u) / size
    if left > NO_SOLUTION:
        u *= size / left
        return G.T @ u, u
    return None, u


class Bounds(NamedTuple):
    """``low <= x <= high``, which may be infinite, shape (k,) each."""

    low: Array
    high: Array

    def stretched(self, by: Array) -> Bounds:
        """Bounds that give way by so much."""
        return Bounds(self.low - by, self.high + by)

    @property
    def size(self) -> float:
        """The largest one that is finite."""
        both = np.abs(np.concatenate(self))
        return float(both[np.isfinite(both)].max(initial=0.0))


class Facet(NamedTuple):
    """``normal' x <= most``: what bounds imply, and ``A x = b`` violates.

    Args:
        normal: shape (k,).
        most: the largest value within the bounds.
        weight: of each bound in ``most``, shape (k,).
    """

    normal: Array
    most: float
    weight: Array


class BoundedSolutions:
    """Solutions of ``A x = b`` within bounds, for any number of right-hand sides.

    Of ``b`` only the part counts that is not `outside`.

    Args:
        A: matrix of any rank, shape (n, k).

    Attributes:
        inverse: its pseudo-inverse, shape (k, n).
        out: orthonormal columns orthogonal to all of its columns, shape (n, n - rank).
    """

    def __init__(self, A: Array) -> None:
        (n, k), self._A = A.shape, A
        U, values, V = np.eye(n), np.zeros(0), np.eye(k)
        if A.size:
            U, values, V, _ = lapack().dgesdd(A)
        rank = int(np.sum(values > RANK * values.max(initial=0.0)))
        self.out: Array = U[:, rank:]
        self._null = V[rank:].T
        self.inverse: Array = (V[:rank].T / values[:rank]) @ U[:, :rank].T

    def outside(self, b: Array) -> Array:
        """The part of ``b`` that is ``A x`` of no ``x``."""
        return np.asarray(self.out @ (self.out.T @ b))

    def solve(self, b: Array, bounds: Bounds) -> tuple[Array, Facet | None]:
        """The shortest ``x`` within bounds; where there is none, that without, and a facet."""
        x = self.inverse @ b
        over, under = x - bounds.high, bounds.low - x
        if max(over.max(initial=0.0), under.max(initial=0.0)) <= 0.0:
            return x, None
        noise = _NOISE * max(bounds.size, float(np.abs(x).max()))
        high, low = np.isfinite(over).nonzero()[0], np.isfinite(under).nonzero()[0]
        rows = np.vstack([-self._null[high], self._null[low]])
        step, u = least_distance(rows, np.concatenate([over[high], under[low]]) - noise)
        if step is not None:
            return x + self._null @ step, None
        above, below = np.zeros(len(x)), np.zeros(len(x))
        above[high], below[low] = u[: len(high)], u[len(high) :]
        most = u @ np.concatenate([bounds.high[high], -bounds.low[low]])
        return x, Facet(above - below, float(most), above + below)

    def least_stretch(self, b: Array, bounds: Bounds, unit: Array) -> float:
        """By how many units the bounds have to give way.

        Args:
            b: right-hand side, shape (n,).
            bounds: the bounds.
            unit: how far each gives way per unit, > 0, shape (k,).
        """
        stretch = 0.0
        for _ in range(_MOST_FACETS):
            x, facet = self.solve(b, bounds.stretched(stretch * unit))
            if facet is None:
                return stretch
            stretch += float((facet.normal @ x - facet.most) / (facet.weight @ unit))
        raise PinloopError(f"bounds could not be stretched to a solution in {_MOST_FACETS} steps")

    def last_within(self, path: Array, bounds: Bounds, start: float) -> float | None:
        """The largest ``s`` from ``start`` down to 0 at which there is a solution, if there is one.

        A facet rules out all between ``s`` and its own next root: none that fits is passed.

        Args:
            path: coefficients of ``b(s) = path[:, 0] + path[:, 1] s + ...``, shape (n, degree + 1).
            bounds: the bounds.
            start: where to begin.
        """
        s, values, powers = start, self.inverse @ path, np.arange(path.shape[1])
        for _ in range(_MOST_FACETS):
            facet = self.solve(path @ s**powers, bounds)[1]
            if facet is None:
                return s
            polynomial = facet.normal @ values
            polynomial[0] -= facet.most
            roots = np.roots(polynomial[::-1])
            real = roots.real[np.abs(roots.imag) <= REAL_ROOT * np.abs(roots)]
            below = real[(real >= 0.0) & (real < s)]
            if s == 0.0:
                return None
            s = float(below.max(initial=0.0))  # where rounding decides, it is at 0 that it does
        raise PinloopError(f"no end of what bounds allow was found in {_MOST_FACETS} steps")

    def reach(self, b: Array, along: Array, bounds: Bounds) -> float | None:
        """The largest ``s >= 0`` with a solution for ``b + s along``; None if there is none.

        It is inf if there is no end.
        """
        if np.linalg.norm(self.outside(along)) > RANK * np.linalg.norm(along):
            return self.last_within(b[:, None], bounds, 0.0)
        endless = Bounds(*(np.where(np.isfinite(ends), 0.0, ends) for ends in bounds))
        facet = self.solve(along, endless)[1]
        if facet is None:
            with_s = BoundedSolutions(np.column_stack([self._A, -along]))
            wider = Bounds(np.append(bounds.low, 0.0), np.append(bounds.high, np.inf))
            return np.inf if with_s.solve(b, wider)[1] is None else None
        # What no bound is without end for, ends at this facet at the latest.
        at = facet.normal.nonzero()[0]
        normal = facet.normal[at]
        most = normal @ np.where(normal > 0.0, bounds.high[at], bounds.low[at])
        rate = normal @ (self.inverse @ along)[at]
        end = float((most - normal @ (self.inverse @ b)[at]) / rate)
        return self.last_within(np.column_stack([b, along]), bounds, max(end, 0.0))
