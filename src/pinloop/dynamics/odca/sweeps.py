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

for one joint as for many. No ``zeta`` is ever formed, but its square root: ``zeta = W'W``, where
``W`` of a body takes measure numbers to accelerations in coordinates in which its mass matrix is
the identity. The children's ``W`` stand one below the other, with the roots of the compliances, and

    [W_i, W_o] = Q_i [Z^-T, across] + Q_o [0, rest]                     (see `factors`)
    free = Z (y - beta_i),   x_i = Z' (free - across x_o)
    W = rest,                beta = beta_o + across' free
    [W_i, W_o] [x_i; x_o] = Q_i free + Q_o (W x_o)

The last line is what all forces in and on the piece do to its children: down again it gives the
accelerations of all bodies without the forces, which get large where rows are nearly dependent.
Where loops close, ``W_i`` may be singular: then the smallest ``x_i``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from ...boundary.marks import Array, Indices
from ...linalg.dense import Factors, factorize, factorize_singular
from ...spatial.lie import apply
from .assembly_tree import AssemblyTree, Group, Shape


class Sweeps:
    """Assembly and disassembly of the pieces of one assembly tree.

    Args:
        tree: the assembly tree.
        widths: columns of each joint.
        sizes: rows of ``W`` of each leaf.

    Attributes:
        leaves: per shape the matrices ``W`` of the leaves, to be filled in, shape
            (leaves, rows, columns); with zeros below where a leaf has fewer rows.
        ranks: per group that closes loops the rank of each ``W_i``, as last assembled.
        whole: per group that closes loops the number of columns of its ``W_i``.
        caps: the ranks that must not be exceeded, where they are known.
    """

    def __init__(self, tree: AssemblyTree, widths: Sequence[int], sizes: Sequence[int]) -> None:
        self.ranks: dict[int, Indices] = {}
        self.caps: dict[int, Indices] = {}
        self._roots: dict[Shape, Array] = {}
        self._beta: dict[Shape, Array] = {}
        for shape, number in tree.pieces.items():
            own = [sizes[leaf] for leaf in tree.leaves.get(shape, ())]
            joined = [sum(shape)] if number > len(own) else []
            self._roots[shape] = np.zeros((number, max(own + joined), sum(shape)))
            self._beta[shape] = np.zeros((number, sum(shape)))
        self.leaves: dict[Shape, Array] = {
            shape: self._roots[shape][: len(numbers)] for shape, numbers in tree.leaves.items()
        }
        starts = np.concatenate([[0], np.cumsum(widths)]).astype(np.intp)
        self.columns = int(starts[-1])
        rows = {shape: roots.shape[1] for shape, roots in self._roots.items()}
        self._works = [_Work(group, starts, rows) for group in tree.groups]
        self.whole = {
            number: work.inner for number, work in enumerate(self._works) if not work.group.regular
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
        soft = bool(compliance.any())
        for number, work in enumerate(self._works):
            stack, rows = work.stacked(self._roots, compliance if soft else None)
            if work.group.regular:
                work.factors = factorize(stack, work.inner)
            else:
                work.factors, self.ranks[number] = factorize_singular(
                    stack, work.inner, rows, self.caps.get(number)
                )
            if work.group.outer:
                rest = self._roots[work.shape][work.made]
                rest[:, : work.outer] = work.factors.rest
                rest[:, work.outer :] = 0.0

    def solve(self, y: Array) -> tuple[Array, dict[Shape, Array]]:
        """Measure numbers ``x`` of all joint forces, and what they do to the leaves.

        Args:
            y: what the two sides of each joint must add up to, shape (columns,).

        Returns:
            ``x``, shape (columns,); per shape ``W x`` of the leaves, shape (leaves, rows).
        """
        free = [self._free(work, y) for work in self._works]
        x = np.zeros(self.columns)
        moves = {shape: np.zeros(roots.shape[:2]) for shape, roots in self._roots.items()}
        for work, inner in zip(reversed(self._works), reversed(free), strict=True):
            factors, forces, both = work.factors, inner, inner
            if work.group.outer:
                forces = inner - apply(factors.across, x[work.outer_at])
                both = np.hstack([inner, moves[work.shape][work.made, : work.outer]])
            x[work.inner_at] = apply(factors.root.transpose(0, 2, 1), forces)
            work.hand_down(apply(factors.basis, both), moves)
        return x, moves

    def _free(self, work: _Work, y: Array) -> Array:
        """``Z (y - beta_i)`` of a group; notes what its pieces do without outer forces."""
        rest = y[work.inner_at]
        beta = None
        if not work.lowest:
            beta = np.zeros((work.group.size, work.inner + work.outer))
            for child in work.children:
                beta[:, child.columns] += self._beta[child.shape][child.pieces]
            rest -= beta[:, : work.inner]
        free = apply(work.factors.root, rest)
        if work.group.outer:
            beta_out = self._beta[work.shape][work.made]
            beta_out[:] = apply(work.factors.across.transpose(0, 2, 1), free)
            if beta is not None:
                beta_out += beta[:, work.inner :]
        return free


@dataclass(frozen=True, eq=False)
class _Child:
    """One child of every piece of a group.

    Args:
        shape: columns of each of its handles.
        pieces: which pieces of that shape.
        rows: its rows among those of the stacked matrix.
        columns: its columns there: inner ones stand first.
    """

    shape: Shape
    pieces: slice | Indices
    rows: slice
    columns: slice | Indices


class _Work:
    """A group with its index arrays and its results."""

    factors: Factors

    def __init__(self, group: Group, starts: Indices, rows: dict[Shape, int]) -> None:
        self.group, self.shape = group, group.shape
        self.inner = sum(group.widths[place] for place in group.inner)
        self.outer = sum(group.shape)
        edges = [0, *accumulate(group.widths)]
        order = _flat([*group.inner, *group.outer], edges)
        at = np.empty(len(order), dtype=np.intp)
        at[order] = np.arange(len(order))
        lines = [0, *accumulate(rows[slot.shape] for slot in group.slots)]
        self.children = [
            _Child(
                slot.shape,
                _as_slice(slot.pieces),
                slice(first, last),
                _as_slice(at[_flat(slot.places, edges)]),
            )
            for slot, (first, last) in zip(group.slots, pairwise(lines), strict=True)
        ]
        self._rows = lines[-1]
        self._stack = np.zeros((group.size, max(lines[-1], len(order)), len(order)))
        self._soft: Array | None = None
        self._as_it_is = (
            len(self.children) == 1
            and np.array_equal(at[_flat(group.slots[0].places, edges)], np.arange(len(order)))
            and self._rows >= len(order)
        )
        self.made = slice(group.start, group.start + group.size)
        self.inner_at = _places(group.inner_joints, [group.widths[k] for k in group.inner], starts)
        self.outer_at = _places(group.outer_joints, [group.widths[k] for k in group.outer], starts)
        self.lowest = False

    def stacked(self, roots: dict[Shape, Array], compliance: Array | None) -> tuple[Array, int]:
        """The children's matrices and the roots of compliances, and rows that are not padding."""
        if compliance is None and self._as_it_is:
            child = self.children[0]
            return roots[child.shape][child.pieces], self._rows
        stack = self._stack
        if compliance is not None:
            if self._soft is None:
                rows = max(self._rows + self.inner, stack.shape[2])
                self._soft = np.zeros((len(stack), rows, stack.shape[2]))
            stack = self._soft
        for child in self.children:
            stack[:, child.rows, child.columns] = roots[child.shape][child.pieces]
        if compliance is None:
            return stack, self._rows
        k = np.arange(self.inner)
        stack[:, self._rows + k, k] = np.sqrt(compliance[self.inner_at])
        return stack, self._rows + self.inner

    def hand_down(self, moves: Array, to: dict[Shape, Array]) -> None:
        """Write what happens to each child where it belongs."""
        for child in self.children:
            to[child.shape][child.pieces] = moves[:, child.rows]


def _flat(places: Sequence[int], edges: Sequence[int]) -> Indices:
    """Columns of joints, one after the other."""
    return np.array([k for p in places for k in range(edges[p], edges[p + 1])], dtype=np.intp)


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
