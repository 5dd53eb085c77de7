"""The two dynamic sweeps: assembly and disassembly of handle equations (paper 3, sections 2 and 3).

Knows pieces, joints and arrays, no robot. Handle equations are written in the coordinates of the
joints' orthogonal complements ``D`` from the start: ``alpha = zeta x + beta`` with the measure
numbers ``x`` of the joint forces, ``alpha = +-D' A``, plus on one side of a joint and minus on the
other, so that a joint asks that its two ``alpha`` add up to a given value. ``D`` is padded to equal
width: padded columns are zero, with a one on the diagonal (the compliance).

Eliminating the joints inside a piece then is, with ``i`` for inner and ``o`` for outer handles,

    X = sum of the children's zeta_ii + compliance                      (eqs. 16, 42, 66)
    x_i = X^-1 (y - beta_i) - X^-1 zeta_io x_o                          (eqs. 17, 64)
    zeta = zeta_oo - zeta_oi X^-1 zeta_io                               (eqs. 26-28, 71)
    beta = beta_o + zeta_oi X^-1 (y - beta_i)                           (eqs. 29-30, 72)

for one joint as for many. Where loops close, ``X`` may be singular: then the smallest ``x_i``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .tree import AssemblyTree, Group

__all__ = ["Sweeps"]

Array = NDArray[np.float64]
_ZERO = 1e-12
"""Eigenvalues of ``X`` that count as zero; the two bodies at a joint alone give one."""
_SMALLER = 1e-14
"""The same where the rank is known, so that rounding in redundant rows is cut off anyway."""
_SUSPECT = 1e-8
"""Pivots below which eigenvalues are looked at."""
_NOISE = 1e-13
"""Diagonal entries that may be rounding only."""


class Sweeps:
    """Assembly and disassembly of the pieces of one assembly tree.

    Args:
        tree: the assembly tree.
        joints: number of joints.
        width: columns of ``D`` of every joint, padding included.

    Attributes:
        ranks: per group that closes loops the rank of each ``X``, as last assembled.
        caps: the ranks that must not be exceeded, where they are known.
        margin: smallest eigenvalue or pivot of these ``X`` that did not count as zero.
    """

    def __init__(self, tree: AssemblyTree, joints: int, width: int) -> None:
        self.tree, self.width = tree, width
        self.leaves: dict[int, Array] = {}
        self.ranks: dict[int, NDArray[np.intp]] = {}
        self.caps: dict[int, NDArray[np.intp]] = {}
        self.margin = 1.0
        self._joints = joints
        self._zeta = {
            count: np.zeros((number, count * width, count * width))
            for count, number in tree.pieces.items()
        }
        self._beta = {
            count: np.zeros((number, count * width)) for count, number in tree.pieces.items()
        }
        for count, bodies in tree.leaves.items():
            self.leaves[count] = self._zeta[count][: len(bodies)]
        self._works = [_Work(group, width) for group in tree.groups]

    def assemble(self, compliance: Array) -> None:
        """Eliminate all joints, from the bodies in ``leaves`` upwards.

        Args:
            compliance: per joint the diagonal added to ``X``, shape (joints, width).
        """
        self.margin = 1.0
        for number, work in enumerate(self._works):
            group = work.group
            whole = work.whole
            whole[:] = 0.0
            for slot, at, pieces in zip(group.slots, work.at, work.pieces, strict=True):
                at.add(whole, self._zeta[slot.handles][pieces])
            X = work.inner.block(whole, work.inner)
            diagonal = compliance[group.inner_joints].reshape(group.size, -1)
            X[:, work.diagonal, work.diagonal] += diagonal
            if group.regular:
                work.root = _root(X)[0]
            else:
                found = _pseudoroot(X, self.caps.get(number))
                work.root, self.ranks[number], margin = found
                self.margin = min(self.margin, margin)
            work.across = work.root @ work.inner.block(whole, work.outer)
            if group.outer:
                made = self._zeta[len(group.outer)][group.start : group.start + group.size]
                np.matmul(work.across.transpose(0, 2, 1), work.across, out=made)
                np.subtract(work.outer.block(whole, work.outer), made, out=made)

    def solve(self, y: Array) -> Array:
        """Measure numbers ``x`` of all joint forces.

        Args:
            y: what the two sides of each joint must add up to, shape (joints, width).

        Returns:
            shape (joints, width).
        """
        for work in self._works:
            group = work.group
            beta = np.zeros((group.size, work.whole.shape[1]))
            for slot, at, pieces in zip(group.slots, work.at, work.pieces, strict=True):
                at.add_rows(beta, self._beta[slot.handles][pieces])
            rest = y[group.inner_joints].reshape(group.size, -1) - beta[:, work.inner.columns]
            work.free = _apply(work.root, rest)
            if group.outer:
                made = self._beta[len(group.outer)][group.start : group.start + group.size]
                made[:] = beta[:, work.outer.columns]
                made += _apply(work.across.transpose(0, 2, 1), work.free)
        x = np.zeros((self._joints, self.width))
        for work in reversed(self._works):
            group = work.group
            inner = work.free
            if group.outer:
                inner = inner - _apply(work.across, x[group.outer_joints].reshape(group.size, -1))
            inner = _apply(work.root.transpose(0, 2, 1), inner)
            x[group.inner_joints] = inner.reshape(group.size, -1, self.width)
        return x


class _Work:
    """A group with its index arrays and its results."""

    root: Array
    """``Z`` with ``Z'Z = X^-1``."""
    across: Array
    """``Z zeta_io``."""
    free: Array
    """``Z (y - beta_i)``."""

    def __init__(self, group: Group, width: int) -> None:
        self.group = group
        places = len(group.inner) + len(group.outer)
        self.whole = np.zeros((group.size, places * width, places * width))
        total = places * width
        self.inner = _Columns(group.inner, width, total)
        self.outer = _Columns(group.outer, width, total)
        self.diagonal = np.arange(len(group.inner) * width)
        self.at = [_Columns(slot.places, width, total) for slot in group.slots]
        self.pieces = [_as_slice(slot.pieces) for slot in group.slots]


class _Columns:
    """Columns of whole joints in stacks of matrices: as a slice where they are evenly spaced.

    Args:
        places: places of the joints.
        width: columns of a joint.
        total: columns of a matrix.
    """

    def __init__(self, places: tuple[int, ...], width: int, total: int) -> None:
        flat = (np.array(places, dtype=np.intp)[:, None] * width + np.arange(width)).ravel()
        self.columns = _as_slice(flat)
        # A joint from a piece to itself has both its handles in one place.
        self._apart = len(set(places)) == len(places)
        self._flat, self._total = flat, total
        self._square = (flat[:, None] * total + flat).ravel()

    def block(self, stack: Array, across: _Columns) -> Array:
        """Rows of these and columns of other joints of a stack of matrices."""
        rows, columns = self.columns, across.columns
        if isinstance(rows, slice) and isinstance(columns, slice):
            return stack[:, rows, columns]
        flat = (self._flat[:, None] * self._total + across._flat).ravel()
        taken = stack.reshape(len(stack), -1).take(flat, axis=1)
        return taken.reshape(len(stack), len(self._flat), len(across._flat))

    def add(self, stack: Array, more: Array) -> None:
        """Add to rows and columns of a stack of matrices."""
        at = self.columns
        if isinstance(at, slice):
            stack[:, at, at] += more
        elif self._apart:
            stack.reshape(len(stack), -1)[:, self._square] += more.reshape(len(stack), -1)
        else:
            np.add.at(stack.transpose(1, 2, 0), (at[:, None], at), more.transpose(1, 2, 0))

    def add_rows(self, stack: Array, more: Array) -> None:
        """Add to rows of a stack of vectors."""
        if self._apart:
            stack[:, self.columns] += more
        else:
            np.add.at(stack.T, self._flat, more.T)


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


def _root(X: Array) -> tuple[Array, Array]:
    """``Z`` with ``Z'Z = X^-1`` for symmetric positive definite matrices, and how singular each is.

    By Cholesky's factor: with ``Z zeta_io`` the Schur complement is exactly symmetric and as
    accurate as it can be, however differently a long chain answers bending and stretching. The
    second result are the smallest pivots, of matrices scaled to a unit diagonal.
    """
    unit = 1.0 / np.sqrt(np.diagonal(X, axis1=1, axis2=2))
    factor = np.linalg.cholesky(X * unit[:, :, None] * unit[:, None, :])
    pivots = np.diagonal(factor, axis1=1, axis2=2)
    return np.asarray(np.linalg.inv(factor) * unit[:, None, :]), pivots.min(
        axis=1, initial=1.0
    ) ** 2


def _pseudoroot(X: Array, caps: NDArray[np.intp] | None) -> tuple[Array, NDArray[np.intp], float]:
    """``Z`` with ``Z'Z`` the pseudoinverse of symmetric matrices, their ranks, and the margin."""
    size, margin = X.shape[1], 1.0
    ranks = np.full(len(X), size, dtype=np.intp)
    root, bad = np.empty_like(X), np.diagonal(X, axis1=1, axis2=2).min(axis=1) < _NOISE
    good = np.flatnonzero(~bad)
    try:
        root[good], pivots = _root(X[good])
        bad[good] = pivots < _SUSPECT
        margin = float(pivots.min(initial=margin))
    except np.linalg.LinAlgError:
        bad[:] = True
    if caps is not None:
        bad |= caps < size
    for k in np.flatnonzero(bad):
        values, V = np.linalg.eigh(0.5 * (X[k] + X[k].T))
        rank = int(np.sum(values > (_ZERO if caps is None else _SMALLER)))
        rank = rank if caps is None else min(rank, int(caps[k]))
        root[k] = 0.0
        root[k, :rank] = (V[:, size - rank :] / np.sqrt(values[size - rank :])).T
        ranks[k] = rank
        margin = float(values[size - rank :].min(initial=margin))
    return root, ranks, margin
