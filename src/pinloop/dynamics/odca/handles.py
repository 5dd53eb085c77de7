"""Handle equations of all blocks, and what they do together.

``M a = f + sum of U x`` with ``U`` the generalised forces on the block that the complement of each
of its handles exerts (paper 3, eqs. 1-2 and 13, in joint coordinates). A loop that closes inside a
block is one handle: what it does to both its bodies. Units of the columns of ``D`` are those in
which the two bodies of a joint alone answer with one, so that inner matrices have no unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...model.mechanism import Mechanism
from ...spatial.batched import adjoint, apply_transposed
from ...tolerances import THIN_BODY
from .assembly_tree import Shape, assembly_tree
from .block import Block
from .blocks import Blocks
from .joints import CutJoints, LoopJoints
from .sweeps import Sweeps

__all__ = ["Handles", "units"]

Array = NDArray[np.float64]

Indices = NDArray[np.intp]


@dataclass(eq=False)
class _Leaf:
    """The handles of a block.

    Args:
        joints: numbers of its joints.
        signs: coordinates on which each column acts, and with which sign, one part per joint.
        rows: row among all wrenches of each column, one part per joint.
    """

    joints: list[int]
    signs: list[Array]
    rows: list[Indices]


class Handles:
    """Blocks, handles and the sweeps over them.

    Joints between blocks come first, then loops.

    Args:
        blocks: the blocks.
        cuts: the joints between them.
        loops: the loop joints.

    Attributes:
        sweeps: assembly and disassembly.
        compliance: per column, shape (columns,).
        of_cuts: columns of the joints between blocks; those of loops follow.
    """

    def __init__(self, blocks: Blocks, cuts: CutJoints, loops: LoopJoints) -> None:
        self.blocks, self._cuts, self._loops = blocks, cuts, loops
        widths = [cuts.width] * len(cuts.D) + loops.rows
        self._starts = np.cumsum([0, *widths])
        self.of_cuts = len(cuts.D) * cuts.width
        leaves, ends = self._graph()
        grounded = [k for k, block in enumerate(blocks.blocks) if not block.free]
        tree = assembly_tree([leaf.joints for leaf in leaves], ends, widths, grounded)
        self.sweeps = Sweeps(tree, widths, [block.size for block in blocks.blocks])
        self.compliance = np.zeros(self.sweeps.columns)
        self._columns = [self._columns_of(leaf) for leaf in leaves]
        none = np.zeros(0, dtype=np.intp)
        self._rows = [np.concatenate([none, *leaf.rows]) for leaf in leaves]
        self._signs = [
            np.concatenate([np.zeros((0, block.size)), *leaf.signs]).T
            for block, leaf in zip(blocks.blocks, leaves, strict=True)
        ]
        self._acting: list[Array] = []
        self._leaf_at: list[tuple[int, Shape, int]] = []
        self._roots: list[Array] = [np.zeros((0, 0)) for _ in leaves]
        self._parts: list[tuple[Block, slice, Indices]] = [
            *zip(blocks.blocks, blocks.at, self._columns, strict=True)
        ]
        for shape, numbers in tree.leaves.items():
            for place, number in enumerate(numbers.tolist()):
                size = blocks.blocks[number].size
                self._roots[number] = self.sweeps.leaves[shape][place, :size]
                self._leaf_at.append((number, shape, place))

    def _columns_of(self, leaf: _Leaf) -> Indices:
        parts = [np.arange(self._starts[j], self._starts[j + 1]) for j in leaf.joints]
        return np.concatenate([np.zeros(0, dtype=np.intp), *parts])

    def _graph(self) -> tuple[list[_Leaf], list[tuple[int, int]]]:
        """Handles of each block, and blocks of each joint.

        Wrenches are numbered by side: the further blocks at joints between blocks and bodies B of
        loops, by column; then the nearer blocks and bodies A.
        """
        blocks, loops = self.blocks, self._loops
        leaves = [_Leaf([], [], []) for _ in blocks.blocks]
        ends: list[tuple[int, int]] = []
        total = int(self._starts[-1])

        def support(body: int) -> Array:
            return blocks.blocks[int(blocks.block_of[body])].supports[body]

        def add(block: int, joint: int, signs: Array, first: int) -> None:
            rows = np.arange(self._starts[joint], self._starts[joint + 1])
            if block >= 0 and len(rows):
                leaves[block].joints.append(joint)
                leaves[block].signs.append(np.tile(signs, (len(rows), 1)))
                leaves[block].rows.append(first + rows)

        pairs = [*zip(blocks.below, blocks.cuts, strict=True)]
        pairs += zip(loops.body_a.tolist(), loops.body_b.tolist(), strict=True)
        for joint, (a, b) in enumerate(pairs):
            near, far = int(blocks.block_of[a]), int(blocks.block_of[b])
            ends.append((near, far))
            if near == far and near >= 0:
                add(near, joint, support(b) - support(a), 0)
                continue
            for block, body, sign, first in ((far, b, 1.0, 0), (near, a, -1.0, total)):
                if block >= 0:
                    add(block, joint, sign * support(body), first)
        return leaves, ends

    def update(self) -> None:
        """Assemble the handle equations of the whole robot at the state of the blocks."""
        cuts, loops, blocks = self._cuts, self._loops, self.blocks
        D = cuts.D.transpose(0, 2, 1)
        wrenches = np.concatenate(
            [D.reshape(-1, 6), loops.on_b, (D @ blocks.across).reshape(-1, 6), loops.on_a]
        )
        self.compliance[: self.of_cuts] = cuts.compliance.ravel()
        self._acting = [wrenches[rows] for rows in self._rows]
        parts = zip(blocks.blocks, self._acting, self._signs, self._roots, strict=True)
        for block, acting, signs, root in parts:
            block.assemble(acting, signs, root)
        self.sweeps.assemble(self.compliance)

    @property
    def loans(self) -> list[tuple[slice, Array, float]]:
        """Coordinates, direction and amount of inertia that blocks have on loan."""
        return [
            (at, direction, amount)
            for block, at in zip(self.blocks.blocks, self.blocks.at, strict=True)
            for direction, amount in block.loans
        ]

    # -- forces and motion ------------------------------------------------------------------

    def biases(self) -> Array:
        """What handles measure without accelerations of the coordinates, shape (columns,)."""
        biases = np.zeros(self.sweeps.columns)
        parts = zip(self.blocks.blocks, self._columns, self._acting, self._signs, strict=True)
        for block, columns, acting, signs in parts:
            biases[columns] += block.biases(acting, signs)
        return biases

    def targets(self) -> Array:
        """What accelerations of the coordinates must make handles measure, shape (columns,)."""
        wanted = -self.biases()
        wanted[: self.of_cuts] += apply_transposed(self._cuts.D, self.blocks.bias).ravel()
        wanted[self.of_cuts :] -= self._loops.gamma
        return wanted

    def measure(self, alpha: Array) -> Array:
        """``D'`` times the relative motion at each joint, shape (columns,)."""
        measures = np.zeros(self.sweeps.columns)
        for block, at, columns in self._parts:
            measures[columns] += alpha[at] @ block.U
        return measures

    def solve(self, y: Array) -> tuple[Array, Array]:
        """Measure numbers of joint forces, and the accelerations that these forces give.

        Args:
            y: what each joint must add up to, shape (columns,).

        Returns:
            shape (columns,), and of the coordinates of all blocks, shape (size,).
        """
        x, moves = self.sweeps.solve(y)
        alpha = np.zeros(self.blocks.size)
        for number, shape, place in self._leaf_at:
            block = self.blocks.blocks[number]
            alpha[self.blocks.at[number]] = block.respond_to_root(moves[shape][place, : block.size])
        return x, alpha


def units(robot: Mechanism, blocks: Blocks, cuts: CutJoints, loops: LoopJoints) -> None:
    """Set the units of all joints."""
    model = robot.model
    inverse = _inverse_inertias(
        np.array([inertia.matrix() for inertia in model.inertias[1:]]).reshape(-1, 6, 6),
        robot.length,
    )
    seats = np.array([model.jointPlacements[k + 1].homogeneous for k in blocks.cuts])
    seats = seats.reshape(-1, 4, 4)
    here = np.broadcast_to(np.eye(4), seats.shape)
    own = _response(inverse, blocks.cuts, here, cuts.D)
    own += _response(inverse, blocks.below, seats, cuts.D)
    cuts.rescale(_unit(own))
    own = _response(inverse, loops.body_b, loops.seat_b, loops.D)
    own += _response(inverse, loops.body_a, loops.seat_a, loops.D)
    loops.rescale(loops.flat(_unit(own)))


def _response(inverse: Array, bodies: Sequence[int] | Indices, seats: Array, D: Array) -> Array:
    """What single bodies answer to each column of ``D``, shape (n, width)."""
    at = np.asarray(bodies, dtype=np.intp)
    W = adjoint(seats).transpose(0, 2, 1) @ D
    response = np.sum(W * (inverse[at] @ W), axis=1)
    response[at < 0] = 0.0
    return np.asarray(response)


def _unit(own: Array) -> Array:
    return np.asarray(1.0 / np.sqrt(np.where(own > 0, own, 1.0)))


def _inverse_inertias(inertia: Array, length: float) -> Array:
    """Inverse inertias, of bodies that have some in every direction."""
    if len(inertia) == 0:
        return np.zeros((1, 6, 6))
    unit = np.repeat([length, 1.0], 3)
    values, vectors = np.linalg.eigh(unit[:, None] * inertia * unit)
    typical = float(np.mean(values[:, -1]))
    size = np.maximum(values[:, -1:], 1e-3 * typical)
    values = np.where(values < THIN_BODY * size, size, values)
    vectors = vectors * unit[:, None]
    return np.asarray((vectors / values[:, None, :]) @ vectors.transpose(0, 2, 1))
