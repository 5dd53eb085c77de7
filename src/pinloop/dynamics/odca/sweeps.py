"""The two dynamic sweeps: assembly and disassembly of handle equations (paper 3, sections 2 and 3).

Knows pieces, joints and arrays, no robot. Handle equations are written in the coordinates of the
joints' orthogonal complements ``D`` from the start: ``alpha = zeta x + beta`` with the measure
numbers ``x`` of the joint forces, ``alpha = +-D' A``, plus on one side of a joint and minus on the
other, so that a joint asks that its two ``alpha`` add up to a given value. The columns of all
joints follow each other in one vector; a column may have a compliance.

Eliminating the joints inside a piece then is, with ``i`` for inner and ``o`` for outer handles,

    X = sum of the children's zeta_ii + compliance                      (eqs. 16, 42, 66)
    x_i = X^-1 (y - beta_i) - X^-1 zeta_io x_o                          (eqs. 17, 64)
    zeta = zeta_oo - zeta_oi X^-1 zeta_io                               (eqs. 26-28, 71)
    beta = beta_o + zeta_oi X^-1 (y - beta_i)                           (eqs. 29-30, 72)

for one joint as for many. Where loops close, ``X`` may be singular: then the smallest ``x_i``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from .roots import pseudoroot, root
from .tree import AssemblyTree, Group, Shape

__all__ = ["Sweeps"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


class Sweeps:
    """Assembly and disassembly of the pieces of one assembly tree.

    Args:
        tree: the assembly tree.
        widths: columns of each joint.

    Attributes:
        leaves: per shape the matrices ``zeta`` of the leaves, to be filled in.
        ranks: per group that closes loops the rank of each ``X``, as last assembled.
        whole: per group that closes loops the number of rows of its ``X``.
        caps: the ranks that must not be exceeded, where they are known.
        margin: smallest eigenvalue or pivot of these ``X`` that did not count as zero.
    """

    def __init__(self, tree: AssemblyTree, widths: Sequence[int]) -> None:
        self.ranks: dict[int, Indices] = {}
        self.caps: dict[int, Indices] = {}
        self.margin = 1.0
        self._zeta, self._beta = {}, {}
        for shape, number in tree.pieces.items():
            size = sum(shape)
            self._zeta[shape] = np.zeros((number, size, size))
            self._beta[shape] = np.zeros((number, size))
        self.leaves: dict[Shape, Array] = {
            shape: self._zeta[shape][: len(numbers)] for shape, numbers in tree.leaves.items()
        }
        starts = np.concatenate([[0], np.cumsum(widths)]).astype(np.intp)
        self.columns = int(starts[-1])
        self._works = [_Work(group, starts) for group in tree.groups]
        self.whole = {
            number: len(work.diagonal)
            for number, work in enumerate(self._works)
            if not work.group.regular
        }
        for work in self._works:
            # Free leaves: what they do without forces in joints is in ``y`` already.
            work.lowest = all(
                np.all(slot.pieces < len(tree.leaves.get(slot.shape, ())))
                for slot in work.group.slots
            )

    def assemble(self, compliance: Array) -> None:
        """Eliminate all joints, from the bodies in ``leaves`` upwards.

        Args:
            compliance: per column, added to the diagonal of ``X``, shape (columns,).
        """
        self.margin = 1.0
        soft = bool(compliance.any())
        for number, work in enumerate(self._works):
            whole = work.joined(self._zeta)
            X = work.inner.block(whole, work.inner)
            if soft:
                X = X.copy()
                X[:, work.diagonal, work.diagonal] += compliance[work.inner_at]
            if work.group.regular:
                work.root = root(X)[0]
            else:
                found = pseudoroot(X, self.caps.get(number))
                work.root, self.ranks[number], margin = found
                self.margin = min(self.margin, margin)
            if work.group.outer:
                work.across = work.root @ work.inner.block(whole, work.outer)
                made = self._zeta[work.shape][work.made]
                np.matmul(work.across.transpose(0, 2, 1), work.across, out=made)
                np.subtract(work.outer.block(whole, work.outer), made, out=made)

    def solve(self, y: Array) -> Array:
        """Measure numbers ``x`` of all joint forces.

        Args:
            y: what the two sides of each joint must add up to, shape (columns,).

        Returns:
            shape (columns,).
        """
        for work in self._works:
            rest = y[work.inner_at]
            if not work.lowest:
                beta = np.zeros((work.group.size, work.total))
                for slot, at, pieces in work.children:
                    beta[:, at.columns] += self._beta[slot.shape][pieces]
                rest -= beta[:, work.inner.columns]
            work.free = _apply(work.root, rest)
            if work.group.outer:
                made = self._beta[work.shape][work.made]
                made[:] = _apply(work.across.transpose(0, 2, 1), work.free)
                if not work.lowest:
                    made += beta[:, work.outer.columns]
        x = np.zeros(self.columns)
        for work in reversed(self._works):
            inner = work.free
            if work.group.outer:
                inner = inner - _apply(work.across, x[work.outer_at])
            x[work.inner_at] = _apply(work.root.transpose(0, 2, 1), inner)
        return x


class _Work:
    """A group with its index arrays and its results.

    Attributes:
        root: ``Z`` with ``Z'Z = X^-1``.
        across: ``Z zeta_io``.
        free: ``Z (y - beta_i)``.
    """

    root: Array
    across: Array
    free: Array

    def __init__(self, group: Group, starts: Indices) -> None:
        self.group, self.shape = group, group.shape
        edges = [0, *accumulate(group.widths)]
        self.total = edges[-1]
        self.whole = np.zeros((group.size, self.total, self.total))
        self.inner = _Columns(group.inner, edges)
        self.outer = _Columns(group.outer, edges)
        self.diagonal = np.arange(sum(group.widths[place] for place in group.inner))
        self.children = [
            (slot, _Columns(slot.places, edges), _as_slice(slot.pieces)) for slot in group.slots
        ]
        self.made = slice(group.start, group.start + group.size)
        self.inner_at = _places(group.inner_joints, [group.widths[k] for k in group.inner], starts)
        self.outer_at = _places(group.outer_joints, [group.widths[k] for k in group.outer], starts)
        self.lowest = False

    def joined(self, zeta: dict[Shape, Array]) -> Array:
        """The children's matrices, added where they meet."""
        slot, at, pieces = self.children[0]
        if len(self.children) == 1 and at.columns == slice(0, self.total, 1):
            return zeta[slot.shape][pieces]
        self.whole[:] = 0.0
        for slot, at, pieces in self.children:
            at.add(self.whole, zeta[slot.shape][pieces])
        return self.whole


class _Columns:
    """Columns of whole joints in stacks of matrices: as a slice where they are evenly spaced.

    Args:
        places: places of the joints.
        edges: first column of each place, and the end.
    """

    def __init__(self, places: Sequence[int], edges: Sequence[int]) -> None:
        flat = [np.arange(edges[place], edges[place + 1]) for place in places]
        self._flat = np.concatenate([np.zeros(0, dtype=np.intp), *flat])
        self._total = edges[-1]
        self.columns = _as_slice(self._flat)
        self._square = (self._flat[:, None] * self._total + self._flat).ravel()

    def block(self, stack: Array, across: _Columns) -> Array:
        """Rows of these and columns of other joints of a stack of matrices."""
        rows, columns = self.columns, across.columns
        if isinstance(rows, slice) and isinstance(columns, slice):
            return stack[:, rows, columns]
        flat = (self._flat[:, None] * self._total + across._flat).ravel()
        taken: Array = stack.reshape(len(stack), -1).take(flat, axis=1)
        return taken.reshape(len(stack), len(self._flat), len(across._flat))

    def add(self, stack: Array, more: Array) -> None:
        """Add to rows and columns of a stack of matrices."""
        at = self.columns
        if isinstance(at, slice):
            stack[:, at, at] += more
        else:
            stack.reshape(len(stack), -1)[:, self._square] += more.reshape(len(stack), -1)


def _places(joints: Indices, widths: Sequence[int], starts: Indices) -> Indices:
    """Columns of the robot that belong to joints of each piece, shape (pieces, columns)."""
    parts = [starts[joints[:, k], None] + np.arange(width) for k, width in enumerate(widths)]
    return np.hstack([np.zeros((len(joints), 0), dtype=np.intp), *parts])


def _as_slice(indices: NDArray[np.intp]) -> slice | NDArray[np.intp]:
    """The same indices as a slice, where they are evenly spaced: views are cheaper than copies."""
    if len(indices) == 0:
        return slice(0, 0)
    steps = np.diff(indices)
    step = int(steps[0]) if len(steps) else 1
    if step > 0 and np.all(steps == step):
        return slice(int(indices[0]), int(indices[-1]) + 1, step)
    return indices


def _apply(A: Array, x: Array) -> Array:
    """Matrix times vector, piece by piece."""
    return np.asarray((A @ x[:, :, None])[:, :, 0])
