"""Lines across a singular pose on which a branch is interpolated: their nodes and weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..boundary.marks import Array

NODES, _HOLE = 12, 0.2
"""Nodes of a line, and the part of the line around the singular pose that they leave out."""
_FORESEEN = 5
"""Poses from which the next one is foreseen."""


class Nodes(NamedTuple):
    """Configurations of the branch, one after another.

    Args:
        t: times, shape (k,).
        psi: configurations as seen from the base, of free coordinates, in units, shape (k, n).
        slope: their change per coordinate of the branch, shape (k, n, d), or (k, n, d + 1) with
            time as rows move.
        solver: takes what folded rows and speeds ask for to rates, in units, shape (k, n, n).
        basis: ``N``, shape (k, nv, d).
        drift: ``c``, shape (k, nv).
        regularity: of rows and speeds together, one over their condition, shape (k,).
    """

    t: Array
    psi: Array
    slope: Array
    solver: Array
    basis: Array
    drift: Array
    regularity: Array


class Line(NamedTuple):
    """A line through the base, on which a branch is interpolated.

    Args:
        along: unit vector, of the coordinates of the branch.
        middle: place of the singular pose on it.
        reach: how far from there nodes are.
        places: of these, shape (k,).
        nodes: the nodes.
    """

    along: Array
    middle: float
    reach: float
    places: Array
    nodes: Nodes


def foresee(known: dict[int, Nodes], place: float, stride: Array) -> Array:
    """``psi`` at a place of a line by values and slopes at others: Hermite's interpolation."""
    near = sorted(known, key=lambda k: abs(k - place))[:_FORESEEN]
    n, at = len(near), np.array(near) - place
    powers = np.vander(at, 2 * n, increasing=True).T
    slopes = np.arange(2 * n)[:, None] * np.vstack([np.zeros(n), powers[:-1]])
    weights = np.linalg.solve(np.hstack([powers, slopes]), np.eye(2 * n)[0])
    psi = [known[k].psi[0] for k in near] + [known[k].slope[0] @ stride for k in near]
    return np.asarray(weights @ np.array(psi))


def nearest_loss(regularity: dict[int, float]) -> int:
    """Place where rows lose their rank; of several the one that is nearest to the base.

    There regularity falls and rises like a distance: to half of what is beside it, at least.
    """
    inside = [k for k in regularity if k - 1 in regularity and k + 1 in regularity]
    beside = [(k, regularity[k - 1], regularity[k + 1]) for k in inside]
    turns = [k for k, a, b in beside if min(a, b, 0.5 * max(a, b)) >= regularity[k]]
    return min(turns, key=abs, default=min(regularity, key=regularity.__getitem__))


def node_places() -> Array:
    """Places of nodes between -1 and 1, but not around 0: their squares are Chebyshev's."""
    half = NODES // 2
    odd = np.cos(np.pi * (np.arange(half) + 0.5) / half)
    places = np.sqrt(0.5 * (1.0 + _HOLE**2) + 0.5 * (1.0 - _HOLE**2) * odd)
    return np.concatenate([-places, places[::-1]])


def line_weights(places: Array, at: float) -> tuple[Array, Array]:
    """Weights of Lagrange's interpolation for the value and for the slope at a place."""
    apart = places[:, None] - places
    np.fill_diagonal(apart, 1.0)
    factors = np.tile(at - places, (len(places), 1))
    np.fill_diagonal(factors, 1.0)
    # Without one factor each: the product rule.
    without = np.tile(factors[:, None], (1, len(places), 1))
    without[:, np.arange(len(places)), np.arange(len(places))] = 1.0
    slopes = without.prod(axis=2)
    np.fill_diagonal(slopes, 0.0)
    scale = apart.prod(axis=1)
    return factors.prod(axis=1) / scale, slopes.sum(axis=1) / scale
