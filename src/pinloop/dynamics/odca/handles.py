"""Joints between blocks, loop joints, and the handle equations of all blocks together.

The complement ``D`` of a joint's motion map ``H`` spans what it can transmit. Between blocks, a
column of ``H`` whose coordinate carries a rotor moves over to ``D`` (paper 3, eq. 9), with the
compliance of the rotor, and without any where it is locked. The complement of a loop joint is
its selector, so that measure numbers are the multipliers of the rows, after regularization if the
robot had one; what concerns rows has one entry for each row of each loop, loop after loop.

``M a = f + sum of U x`` with ``U`` the generalised forces on the block that the complement of each
of its handles exerts (paper 3, eqs. 1-2 and 13, in joint coordinates). A loop that closes inside a
block is one handle: what it does to both its bodies.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pinocchio as pin

from ...boundary.marks import Array, Indices
from ...errors import SingularMass
from ...model.mechanism import Mechanism
from ...spatial.lie import adjoint, apply, apply_transposed, motion_cross
from ...tolerances import RANK, TINY
from .assembly_tree import Shape, assembly_tree
from .block import Block, is_unsteady, joined
from .blocks import Blocks
from .sweeps import Sweeps


class CutJoints:
    """The joints between blocks.

    Args:
        blocks: the blocks.
        armature: reflected rotor inertia per coordinate of the robot, shape (nv,).

    Attributes:
        width: columns of ``D``, padding included.
        D: complement, padded with zeros, and its moved columns, shape (cuts, 6, width).
        scale: unit of each column of ``D``, shape (cuts, width).
        compliance: per column of ``D``, shape (cuts, width); 1 where it is padding.
    """

    def __init__(self, blocks: Blocks, armature: Array) -> None:
        self._blocks, self._armature = blocks, armature
        self._first = [joint.idx_v for joint in blocks.joints]
        self._dofs = [joint.nv for joint in blocks.joints]
        n, most = len(self._dofs), max(self._dofs, default=0)
        coordinates = [
            (k, number, first + number)
            for k, (first, dof) in enumerate(zip(self._first, self._dofs, strict=True))
            for number in range(dof)
        ]
        moved = any(armature[c] > 0 or blocks.still[c] for _, _, c in coordinates)
        coordinates = [at for at in coordinates if not blocks.still[at[2]]]
        self.width = 6 if moved else max(1, 6 - min(self._dofs, default=5))
        self._at = tuple(np.array(coordinates, dtype=np.intp).reshape(-1, 3).T)
        self._unsteady = [k for k, joint in enumerate(blocks.joints) if is_unsteady(joint)]
        self.scale = np.ones((n, self.width))
        self.D = np.zeros((n, 6, self.width))
        self.compliance = np.ones((n, self.width))
        self._duals = np.zeros((n, 6, most))
        self._complements: list[Array] = [np.zeros((6, 0)) for _ in range(n)]
        self._split(range(n))
        self.rescale(self.scale)

    def update(self) -> None:
        """Follow the motion maps that change with the configuration."""
        if self._unsteady:
            self._split(self._unsteady)
            for k in self._unsteady:
                self._fill(k)

    def rescale(self, scale: Array) -> None:
        """Set the unit of each column."""
        self.scale = scale
        for k in range(len(self.D)):
            self._fill(k)

    def wrenches(self, tau: Array) -> Array:
        """Wrenches in the joints that do the same as joint torques, shape (cuts, 6)."""
        k, number, c = self._at
        padded = np.zeros((len(self.D), self._duals.shape[2]))
        padded[k, number] = tau[c]
        return apply(self._duals, padded)

    def rates(self, across: Array, rates: Array) -> None:
        """Coordinates of relative twists or accelerations, written to ``rates``, shape (nv,)."""
        k, number, c = self._at
        rates[c] = apply_transposed(self._duals, across)[k, number]

    def _split(self, joints: range | list[int]) -> None:
        """Orthonormal ``D`` with ``D'H = 0``, and the dual ``H (H'H)^-1``."""
        maps = self._blocks.maps()
        for k in joints:
            U, values, V = np.linalg.svd(maps[k])
            dof = len(values)
            if values[-1] < RANK * values[0]:
                raise SingularMass(
                    "the mass matrix is not positive definite: coordinates of a joint turn about "
                    f"the same axis (condition {values[0] / max(values[-1], TINY):.1e})"
                )
            self._duals[k, :, :dof] = (U[:, :dof] / values) @ V
            self._complements[k] = np.asarray(U[:, dof:])

    def _fill(self, k: int) -> None:
        """Write the padded ``D`` of one joint."""
        D, compliance, dof = self.D[k], self.compliance[k], self._dofs[k]
        D[:], compliance[:] = 0.0, 1.0
        D[:, : 6 - dof] = self._complements[k]
        compliance[: 6 - dof] = 0.0
        for number in range(dof):
            c, place = self._first[k] + number, 6 - dof + number
            rotor, still = float(self._armature[c]), self._blocks.still[c]
            if rotor > 0 or still:
                D[:, place] = self._duals[k, :, number]
                compliance[place] = 0.0 if still else self.scale[k, place] ** 2 / rotor
        D *= self.scale[k]


class LoopJoints:
    """The loop joints of a robot.

    Attributes:
        body_a: body that carries frame A, shape (loops,); -1 for the ground.
        body_b: body that carries frame B.
        rows: number of rows of each loop.
        first: first row of each loop, shape (loops,).
        scale: unit of each row, shape (all rows,).
        D: the complement in frame B, padded with zeros, shape (loops, 6, width).
        on_b: wrenches of a unit of each row in the block of body B, shape (all rows, 6).
        on_a: wrenches in the block of body A.
        gamma: velocity-dependent part of the rows, shape (all rows,).
    """

    def __init__(self, robot: Mechanism, blocks: Blocks) -> None:
        self._robot, self._blocks = robot, blocks
        report = robot.regularization
        loops = robot.loops
        self._select = [
            np.eye(loop.pair.rows) if report is None else report.selection(loop.name)
            for loop in loops
        ]
        self.rows = [len(select) for select in self._select]
        self.first = np.cumsum([0, *self.rows])
        self._moving = [k for k, loop in enumerate(loops) if not loop.pair.is_group]
        frames = robot.model.frames
        ends = [(frames[loop.frame_a], frames[loop.frame_b]) for loop in loops]
        self.body_a = np.array([int(a.parentJoint) - 1 for a, _ in ends], dtype=np.intp)
        self.body_b = np.array([int(b.parentJoint) - 1 for _, b in ends], dtype=np.intp)
        self._bodies_b = self.body_b.tolist()
        n, width = len(loops), max(self.rows, default=0)
        self.seat_a = np.array([a.placement.homogeneous for a, _ in ends]).reshape(n, 4, 4)
        self.seat_b = np.array([b.placement.homogeneous for _, b in ends]).reshape(n, 4, 4)
        self._real = np.arange(width) < np.array(self.rows, dtype=np.intp)[:, None]
        self._full = bool(self._real.all())
        block_a, block_b = blocks.block_of[self.body_a], blocks.block_of[self.body_b]
        self._mixed = np.flatnonzero(block_a != block_b)
        self._pairs = block_a[self._mixed].tolist(), block_b[self._mixed].tolist()
        self._ends = _ends(blocks, self.body_a), _ends(blocks, self.body_b)
        self.scale = np.ones(int(self.first[-1]))
        self.D = np.zeros((n, 6, width))
        self.on_a = self.on_b = np.zeros((len(self.scale), 6))
        self.gamma = np.zeros(len(self.scale))
        self.rescale(self.scale)

    def rescale(self, scale: Array) -> None:
        """Set the unit of each row."""
        self.scale = scale
        for k, loop in enumerate(self._robot.loops):
            if loop.pair.is_group:  # the others have no selector without a placement
                self._fill(k, loop.pair.selector(pin.SE3.Identity()))

    def _fill(self, k: int, selector: Array) -> None:
        scale = self.scale[self.first[k] : self.first[k + 1]]
        self.D[k, :, : self.rows[k]] = (self._select[k] @ selector).T * scale

    def flat(self, padded: Array) -> Array:
        """Entries per loop and row, shape (loops, width, ...), as entries per row."""
        if self._full:
            return padded.reshape(-1, *padded.shape[2:])
        return np.asarray(padded[self._real])

    def update(self) -> None:
        """Follow the placements and twists of the tree."""
        if len(self.D) == 0:
            return
        in_b, in_a = self._placements()
        for k in self._moving:
            self._fill(k, self._robot.loops[k].pair.selector(self._across(in_a, k)))
        to_b = adjoint(in_b)
        to_a, D = to_b, self.D.transpose(0, 2, 1)
        self.on_a = self.on_b = self.flat(D @ to_b)
        if len(self._mixed):
            to_a = adjoint(in_a)
            self.on_a = self.flat(D @ to_a)
        V_a = apply(to_a, self._twists(self._ends[0]))
        V_b = apply(to_b, self._twists(self._ends[1]))
        gamma = apply(D, motion_cross(V_b, V_a))
        self.gamma = self.flat(gamma)
        for k in self._moving:
            T, rows = self._across(in_a, k), slice(self.first[k], self.first[k + 1])
            bias = self._select[k] @ self._robot.loops[k].pair.bias(T, V_b[k] - V_a[k])
            self.gamma[rows] += bias * self.scale[rows]

    def residual(self) -> Array:
        """Closure residual of each row in the units of ``D``, shape (all rows,)."""
        _, in_a = self._placements()
        residual = np.zeros(len(self.scale))
        for k, loop in enumerate(self._robot.loops):
            rows = slice(self.first[k], self.first[k + 1])
            residual[rows] = self._select[k] @ loop.pair.residual(self._across(in_a, k))
        return residual * self.scale

    def _placements(self) -> tuple[Array, Array]:
        """Placements of frames B in the blocks of bodies B and A."""
        in_b = self._blocks.place(self._bodies_b) @ self.seat_b
        if not len(self._mixed):
            return in_b, in_b
        in_a = in_b.copy()
        in_a[self._mixed] = self._blocks.between_blocks(*self._pairs) @ in_b[self._mixed]
        return in_b, in_a

    def _across(self, in_a: Array, k: int) -> pin.SE3:
        """Placement of frame B in frame A of one loop."""
        on_a = self._blocks.place([int(self.body_a[k])])[0] @ self.seat_a[k]
        return pin.SE3(on_a).actInv(pin.SE3(in_a[k]))

    def _twists(self, ends: list[tuple[int, Indices, Array]]) -> Array:
        """Twists of bodies at and in their blocks' frames, shape (loops, 6)."""
        V = np.zeros((len(self.D), 6))
        for number, at, supports in ends:
            V[at] = self._blocks.blocks[number].twists(supports)
        return V


def _ends(blocks: Blocks, bodies: Indices) -> list[tuple[int, Indices, Array]]:
    """Per block that carries ends of loops: its number, which ones, and what moves them."""
    ends = []
    numbers = blocks.block_of[bodies]
    for number in np.unique(numbers[numbers >= 0]).tolist():
        at = np.flatnonzero(numbers == number)
        supports = np.array([blocks.blocks[number].supports[int(bodies[k])] for k in at])
        ends.append((number, at, supports))
    return ends


class Handles:
    """Blocks, handles and the sweeps over them.

    Joints between blocks come first, then loops.

    Attributes:
        sweeps: assembly and disassembly.
        compliance: per column, shape (columns,).
        of_cuts: columns of the joints between blocks; those of loops follow.
    """

    def __init__(self, blocks: Blocks, cuts: CutJoints, loops: LoopJoints) -> None:
        self.blocks, self._cuts, self._loops = blocks, cuts, loops
        self._nv = len(blocks.still)
        widths = [cuts.width] * len(cuts.D) + loops.rows
        self._starts = np.cumsum([0, *widths])
        self.of_cuts = len(cuts.D) * cuts.width
        leaves, ends = self._graph()
        grounded = [k for k, block in enumerate(blocks.blocks) if not block.free]
        tree = assembly_tree([[j for j, _, _ in leaf] for leaf in leaves], ends, widths, grounded)
        self.sweeps = Sweeps(tree, widths, [block.size for block in blocks.blocks])
        self.compliance = np.zeros(self.sweeps.columns)
        places = [np.arange(first, last) for first, last in pairwise(self._starts.tolist())]
        self._columns = [joined([places[j] for j, _, _ in leaf]) for leaf in leaves]
        self._rows = [joined([first + places[j] for j, _, first in leaf]) for leaf in leaves]
        self._signs = [
            np.concatenate(
                [np.zeros((0, block.size)), *(np.tile(s, (widths[j], 1)) for j, s, _ in leaf)]
            ).T
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

    def _graph(self) -> tuple[list[list[tuple[int, Array, int]]], list[tuple[int, int]]]:
        """Handles of each block, and blocks of each joint.

        A handle is a joint, the coordinates on which it acts with their signs, shape (size,), and
        where its side begins among all wrenches: first the further blocks at joints between blocks
        and bodies B of loops, by column; then the nearer blocks and bodies A.
        """
        blocks, loops = self.blocks, self._loops
        leaves: list[list[tuple[int, Array, int]]] = [[] for _ in blocks.blocks]
        ends: list[tuple[int, int]] = []
        total = int(self._starts[-1])
        pairs = [*zip(blocks.below, blocks.cuts, strict=True)]
        pairs += zip(loops.body_a.tolist(), loops.body_b.tolist(), strict=True)
        for joint, (a, b) in enumerate(pairs):
            near, far = int(blocks.block_of[a]), int(blocks.block_of[b])
            ends.append((near, far))
            if self._starts[joint] == self._starts[joint + 1]:
                continue
            signs = [
                sign * blocks.blocks[block].supports[body] if block >= 0 else np.zeros(0)
                for block, body, sign in ((far, b, 1.0), (near, a, -1.0))
            ]
            if near == far and near >= 0:
                leaves[near].append((joint, signs[0] + signs[1], 0))
                continue
            for block, acting, first in zip((far, near), signs, (0, total), strict=True):
                if block >= 0:
                    leaves[block].append((joint, acting, first))
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
    def loans(self) -> list[tuple[slice, Array]]:
        """Coordinates and direction of each unit of inertia that blocks have on loan."""
        pairs = zip(self.blocks.blocks, self.blocks.at, strict=True)
        return [(at, direction) for block, at in pairs for direction in block.loans]

    # -- forces and motion ------------------------------------------------------------------

    def forces(self, torques: Array) -> Array:
        """Torques on the robot's coordinates as forces on those of the blocks, shape (size,)."""
        forces = np.zeros(self.blocks.size)
        if not torques.any():
            return forces
        if self.blocks.cuts:
            forces = self.blocks.press(self._cuts.wrenches(torques))
        forces[self.blocks.own] += torques[self.blocks.own_v]
        return forces

    def rates(self, alpha: Array, apart: Array) -> Array:
        """The robot's coordinates from those of the blocks, shape (nv,).

        Args:
            alpha: shape (size,).
            apart: what does not come from coordinates of joints between blocks, (cuts, 6).
        """
        rates = np.zeros(self._nv)  # of locked ones
        rates[self.blocks.own_v] = alpha[self.blocks.own]
        if self.blocks.cuts:
            self._cuts.rates(self.blocks.between(alpha) - apart, rates)
        return rates

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
