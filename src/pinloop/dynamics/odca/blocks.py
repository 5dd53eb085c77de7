"""All blocks of a robot: where it is cut apart, and the first two sweeps, from the ground outwards.

What a block is, is in `block`; joints between blocks as handles are in `handles`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pinocchio as pin

from ...boundary.marks import Array, Indices
from ...spatial.lie import adjoint, apply, motion_cross
from .assembly_tree import partition
from .block import Block, Shared, joined


class Blocks:
    """The blocks.

    Args:
        model: the tree.
        limit: coordinates of a block.
        locked: coordinates that stand still.

    Attributes:
        blocks: the blocks, those that others hang on first.
        block_of: block of each body, and last that of the ground, -1; shape (n + 1,).
        at: place of each block's coordinates among those of all blocks.
        size: number of coordinates of all blocks.
        still: which coordinates of the robot are locked, shape (nv,).
        own: places among these of the robot's coordinates `own_v`; those of cuts have none.
        cuts: bodies whose joint is between two blocks.
        across: placement of these bodies in the block that they hang on, as matrices that take
            twists from there to the body, shape (cuts, 6, 6).
        bias: relative acceleration at these joints without joint acceleration, at and in the body,
            shape (cuts, 6).
    """

    def __init__(self, model: pin.Model, limit: int, locked: Indices) -> None:
        self._model = model
        n = int(model.njoints) - 1
        parents = [int(model.parents[k + 1]) - 1 for k in range(n)]
        self.still = np.isin(np.arange(model.nv), locked)
        joints = [model.joints[k + 1] for k in range(n)]
        dofs = [int((~self.still[x.idx_v : x.idx_v + x.nv]).sum()) for x in joints]
        parts = partition(parents, dofs, limit)
        shared: dict[object, Shared] = {}
        self.blocks = [
            Block(model, part, parents[part[0]] >= 0, self.still, shared) for part in parts
        ]
        self.block_of = np.full(n + 1, -1, dtype=np.intp)
        for number, part in enumerate(parts):
            self.block_of[part] = number
        edges = np.cumsum([0, *[block.size for block in self.blocks]]).tolist()
        self.at = [slice(a, b) for a, b in pairwise(edges)]
        self.size = edges[-1]
        pairs = [*zip(self.blocks, self.at, strict=True)]
        self.own = joined([at.start + block.own for block, at in pairs])
        self.own_v = joined([block.own_v for block in self.blocks])
        self.cuts = [block.bodies[0] for block in self.blocks if block.free]
        self.below = [parents[k] for k in self.cuts]
        self.joints = [model.joints[k + 1] for k in self.cuts]
        self._moving = [joint.createData() for joint in self.joints]
        self._seats = [model.jointPlacements[k + 1] for k in self.cuts]
        self.worlds = [pin.SE3.Identity() for _ in self.blocks]
        self.across = np.zeros((len(self.cuts), 6, 6))
        self.bias = np.zeros((len(self.cuts), 6))
        self._gravity = np.array(model.gravity.linear)
        self.update(pin.neutral(model), np.zeros(model.nv))

    def update(self, q: Array, v: Array) -> None:
        """First two sweeps."""
        places, twists, across, changes = [], [], [], []
        cut = 0
        for number, block in enumerate(self.blocks):
            if not block.free:
                block.move(q, v, None)
                continue
            joint, moving = self.joints[cut], self._moving[cut]
            joint.calc(moving, q, v)
            other = int(self.block_of[self.below[cut]])
            under, step = self.blocks[other], self._seats[cut] * moving.M
            place = under.placement(self.below[cut]) * step
            relative = moving.v
            twist = (step.actInv(under.body_twist(self.below[cut])) + relative).vector
            block.move(q, v, twist)
            self.worlds[number] = self.worlds[other] * place
            places.append(place.homogeneous)
            twists.append(twist)
            across.append(relative.vector)
            changes.append(moving.c.vector)
            cut += 1
        if cut:
            self.across = adjoint(np.array(places))
            self.bias = motion_cross(np.array(twists), np.array(across)) + np.array(changes)

    def maps(self) -> list[Array]:
        """Motion map of each joint between blocks, shape (6, dof)."""
        return [np.array(moving.S).reshape(6, -1) for moving in self._moving]

    def inertial_forces(self) -> Array:
        """Generalised forces of gravity and of the motion on all blocks, shape (size,)."""
        forces = np.empty(self.size)
        for block, at, world in zip(self.blocks, self.at, self.worlds, strict=True):
            local = world.rotation.T @ self._gravity if block.free else self._gravity
            forces[at] = block.inertial_forces(local)
        return forces

    def below_biases(self) -> Array:
        """Acceleration under each joint between blocks without accelerations, (cuts, 6)."""
        biases = [self._under(k).bias(self._support(k)) for k in range(len(self.cuts))]
        return apply(self.across, np.array(biases).reshape(-1, 6))

    def between(self, alpha: Array) -> Array:
        """Motion of blocks relative to those they hang on, at and in the body, (cuts, 6)."""
        if not self.cuts:
            return np.zeros((0, 6))
        over, under = [], []
        for k, body in enumerate(self.cuts):
            over.append(alpha[self.at[self.block_of[body]]][:6])
            at = self.at[self.block_of[self.below[k]]]
            under.append(self._under(k).twist(self._support(k), alpha[at]))
        return np.array(over) - apply(self.across, np.array(under))

    def press(self, F: Array) -> Array:
        """Generalised forces of wrenches in the joints between blocks, shape (size,)."""
        forces = np.zeros(self.size)
        for k, body in enumerate(self.cuts):
            forces[self.at[self.block_of[body]]][:6] += F[k]
            at = self.at[self.block_of[self.below[k]]]
            forces[at] -= self._under(k).push(self._support(k), F[k] @ self.across[k])
        return forces

    def _under(self, cut: int) -> Block:
        return self.blocks[int(self.block_of[self.below[cut]])]

    def _support(self, cut: int) -> Array:
        return self._under(cut).supports[self.below[cut]]

    def respond(self, forces: Array) -> Array:
        """Accelerations of all blocks to forces on them, without joint forces, shape (size,)."""
        alpha = np.empty(len(forces))
        for block, at in zip(self.blocks, self.at, strict=True):
            alpha[at] = block.respond(forces[at])
        return alpha

    def velocity(self) -> Array:
        """Velocities of the coordinates of all blocks, shape (size,)."""
        return np.concatenate([np.zeros(0), *(block.velocity for block in self.blocks)])

    # -- bodies -------------------------------------------------------------------------------

    def place(self, bodies: Sequence[int]) -> Array:
        """Placements of bodies in their blocks, shape (k, 4, 4)."""
        placements = [
            np.eye(4) if k < 0 else self.blocks[self.block_of[k]].placement(k).homogeneous
            for k in bodies
        ]
        return np.array(placements).reshape(-1, 4, 4)

    def between_blocks(self, a: Sequence[int], b: Sequence[int]) -> Array:
        """Placements of blocks b in blocks a; -1 is the ground; shape (k, 4, 4)."""
        worlds = [*self.worlds, pin.SE3.Identity()]
        placements = [worlds[i].actInv(worlds[j]).homogeneous for i, j in zip(a, b, strict=True)]
        return np.array(placements).reshape(-1, 4, 4)
