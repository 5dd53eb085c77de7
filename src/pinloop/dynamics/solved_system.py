"""The solution of a saddle problem with locked coordinates, and how it changes with the problem.

What is solved off the manifold, where rows that depend on each other contradict each other or
depend on each other no more, is ``P (J a + gamma) = 0`` with reactions ``P lam``, in scaled rows,
where ``P`` keeps the largest singular values of the rows, in the metric of ``M``; and ``P`` turns,
too.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..boundary.marks import Array
from ..linalg.saddle import Elimination, Saddle
from ..tolerances import RANK, ROUNDED_ROWS
from .equations import EquationsOfMotion


class SolvedSystem:
    """``M x = f + J' lam``, ``J x = b`` with ``x = 0`` where locked; and how that changes.

    Attributes:
        x: the solution, shape (nv,).
        multipliers: of all rows but those of locks.
        reactions: of all rows.
    """

    def __init__(
        self, equations: EquationsOfMotion, M: Array, f: Array, J: Array, b: Array
    ) -> None:
        rows, u = equations.rows, equations.rows.unlocked
        self._M, self._J, self._b, self._locked = M, J[:u], b[:u], rows.lock_columns
        self._scale = rows.scale[:u]
        rank = None if equations.max_rank is None else equations.max_rank - len(rows.locked)
        if not len(self._locked):
            self._saddle = Saddle(M, J, rows.scale, max_rank=rank)
            self.x, self.multipliers = self._saddle.solve(f, b)
            self.reactions = self.multipliers
            self._unique = self._saddle.determined
            return
        self._elimination = Elimination(rows.locked, len(M))
        M_ff, f_f, J_f, b_f = self._elimination.reduce(M, f, self._J, b[:u])
        self._saddle = Saddle(M_ff, J_f, rows.scale[:u], max_rank=rank)
        x, self.multipliers = self._saddle.solve(f_f, b_f)
        self.x = self._elimination.restore(x)
        self._unique = self._saddle.determined
        # What the other rows may share as they like may also press on what is locked.
        shared = self._saddle.dependencies * rows.scale[:u] @ self._J[:, self._locked]
        self._shares = np.abs(shared).max(axis=0, initial=0.0) > RANK
        held = (M @ self.x - f - self._J.T @ self.multipliers)[self._locked]
        self.reactions = np.append(self.multipliers, held)

    def changes(
        self, missing: Array, values: Array, turning: Callable[[Array, Array], tuple[Array, Array]]
    ) -> tuple[Array, Array]:
        """Changes of ``x``, shape (nv, k), and of all reactions, shape (rows, k).

        Args:
            missing: changes of ``M x - f - J' lam`` at fixed ``x`` and ``lam``, shape (nv, k).
            values: changes of ``J x - b``, likewise, shape (rows, k).
            turning: changes of ``J' lam - M x`` and of ``J x`` at other ``lam`` and ``x``.
        """
        turned, values = self._turned(missing, values, turning)
        missing = missing - self._J.T @ turned
        if not len(self._locked):
            changes, lam = self._saddle.solve(-missing, -values)
            lam += turned
            lam[~self._unique] = np.nan
            return changes, lam
        free, changes = self._elimination.free, np.zeros(missing.shape)
        changes[free], lam = self._saddle.solve(-missing[free], -values)
        held = (self._M @ changes + missing - self._J.T @ lam)[self._locked]
        if len(self._locked) > len(self._elimination.known):
            held[:] = np.nan  # two locks share a coordinate
        held[self._shares] = np.nan
        lam += turned
        lam[~self._unique] = np.nan
        return changes, np.vstack([lam, held])

    def _turned(
        self, missing: Array, values: Array, turning: Callable[[Array, Array], tuple[Array, Array]]
    ) -> tuple[Array, Array]:
        """What those rows do that are taken for independent: they turn, and reactions with them.

        Returns:
            changes of ``lam`` at fixed reactions of these rows, and ``values`` with their rates.
        """
        turned, free, saddle = np.zeros(values.shape), np.arange(len(missing)), self._saddle
        if len(self._locked):
            free = self._elimination.free
        combinations, own, pushed = saddle.vanishing()
        if not len(combinations) or not saddle.rank:
            return turned, values
        contradictions = combinations @ (self._scale * (self._J @ self.x - self._b))
        sizes = self._scale * (np.abs(self._J) @ np.abs(self.x) + np.abs(self._b))
        shared = np.abs(combinations[:, self._unique]).max(axis=1, initial=0.0)
        matters = np.abs(contradictions) > ROUNDED_ROWS * np.linalg.norm(sizes)
        matters |= np.maximum(own / saddle.largest, shared) > ROUNDED_ROWS
        for k in matters.nonzero()[0]:
            lam, x = self._scale * combinations[k], np.zeros(len(missing))
            x[free] = pushed[k]
            forces, rates = turning(lam, x)
            gains = saddle.turning(float(own[k]), forces[free], rates)
            values = values + contradictions[k] * (gains.T / self._scale).T
            turned += np.outer(lam, self.multipliers / self._scale @ gains)
        return turned, values
