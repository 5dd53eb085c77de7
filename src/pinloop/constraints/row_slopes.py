"""How rows that select components of relative twists change with the state of a tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from ..boundary.marks import Array
from ..linalg.dense import slopes
from ..model.moving_tree import MovingTree, RelativeSlopes
from ..model.pairs import Pair


class RowSlopes(NamedTuple):
    """Derivatives of k rows at a state, by the n coordinates of a tree.

    Args:
        J: the rows, shape (k, n).
        rate_q: of ``J v`` by positions, shape (k, n).
        acceleration_q: of ``J a + gamma`` by positions, shape (k, n).
        acceleration_v: the same by velocities.
        force_q: of ``J' lam`` by positions, shape (n, n).
    """

    J: Array
    rate_q: Array
    acceleration_q: Array
    acceleration_v: Array
    force_q: Array


def constant_rows(J: Array) -> RowSlopes:
    """Slopes of rows that are the same everywhere, shape (k, n)."""
    none = np.zeros(J.shape)
    return RowSlopes(J, none, none, none, np.zeros((J.shape[1], J.shape[1])))


def stacked(parts: Sequence[RowSlopes], n: int) -> RowSlopes:
    """Slopes of rows one below the other."""
    if len(parts) == 1:
        return parts[0]
    rows = (np.vstack([np.zeros((0, n)), *(part[k] for part in parts)]) for k in range(4))
    J, rate_q, acceleration_q, acceleration_v = rows
    force_q = sum((part.force_q for part in parts), np.zeros((n, n)))
    return RowSlopes(J, rate_q, acceleration_q, acceleration_v, force_q)


class PairRates:
    """Rates of a pair, as rows that turn; their derivatives are taken by differences."""

    def __init__(self, pair: Pair) -> None:
        self._pair = pair

    def selector(self, T: pin.SE3) -> Array:
        """The rates, shape (dof, 6)."""
        rates = self._pair.rates(T)
        assert rates is not None
        return rates

    def selector_slopes(self, T: pin.SE3) -> Array:
        """Their derivatives along each unit twist of B, in B, shape (6, dof, 6)."""
        return slopes(lambda twist: self.selector(T * pin.exp6(twist)), 6)

    def bias_slopes(self, T: pin.SE3, V: Array) -> Array:
        """Derivatives of ``dS/dt V`` at a given ``V``, shape (6, dof)."""
        return slopes(lambda twist: self._pair.rates_bias(T * pin.exp6(twist), V), 6)


Turning = Pair | PairRates
"""What has rows of a twist that turn with the placement."""

Selector = Array | tuple[Turning, Array]
"""Rows that are the same everywhere, shape (k, 6), or those that turn and combinations of them."""


def frame_slopes(
    tree: MovingTree,
    frames: Sequence[tuple[int, int]],
    selectors: Sequence[Selector],
    multipliers: Sequence[Array],
) -> RowSlopes:
    """Slopes of rows that select components of relative twists, for many pairs of frames at once.

    Args:
        tree: the robot at its state.
        frames: frames A and B of each pair.
        selectors: of each pair.
        multipliers: of each pair, shape (k,).
    """
    relative = tree.relative(frames)
    here = [
        selector[1] @ selector[0].selector(T) if isinstance(selector, tuple) else selector
        for selector, T in zip(selectors, relative.T, strict=True)
    ]
    number = [place for place, rows in enumerate(here) for _ in rows]
    S = np.concatenate(here)[:, :, None]
    moving = (relative.motion, relative.V_q, relative.A_q, relative.A_v)
    J, rate_q, by_q, by_v = ((part[number] @ S)[:, :, 0] for part in moving)
    wrenches = [rows.T @ lam for rows, lam in zip(here, multipliers, strict=True)]
    rows_here = RowSlopes(J, rate_q, by_q, by_v, tree.wrench_slope(frames, wrenches))
    for place, selector in enumerate(selectors):
        if isinstance(selector, tuple) and len(here[place]):
            first = number.index(place)
            rows = slice(first, first + len(here[place]))
            _add_turning(rows_here, relative, place, rows, selector, multipliers[place])
    return rows_here


def _add_turning(
    slopes: RowSlopes,
    relative: RelativeSlopes,
    place: int,
    rows: slice,
    turning: tuple[Turning, Array],
    multipliers: Array,
) -> None:
    """Add what it does that a selector ``S(T)`` turns: its ``bias = dS/dt V`` and its own slopes.

    ``bias = sum_i V_i dS/dT_i V``, with the derivatives of ``S`` along the unit twists of B.
    """
    (T, V, A, motion, V_q, *_), (pair, selection) = (part[place] for part in relative), turning
    selector = selection @ pair.selector_slopes(T)  # (6, k, 6)
    turned = np.tensordot(motion, selector, 1)  # by each coordinate, (n, k, 6)
    bias_V = (selector @ V).T + np.tensordot(V, selector, 1)
    bias_T = selection @ pair.bias_slopes(T, V).T
    slopes.rate_q[rows] += (turned @ V).T
    slopes.acceleration_q[rows] += (turned @ A).T + bias_T @ motion.T + bias_V @ V_q.T
    slopes.acceleration_v[rows] += bias_V @ motion.T
    slopes.force_q[:] += motion @ np.tensordot(multipliers, turned, (0, 1)).T
