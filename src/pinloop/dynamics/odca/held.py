"""Where coordinates are: in a block or in a joint between blocks; and those that are held."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .blocks import Blocks
from .cuts import CutJoints

__all__ = ["Coordinates"]

Array = NDArray[np.float64]


class Coordinates:
    """Coordinates of the robot in terms of those of its blocks.

    Args:
        blocks: the blocks.
        cuts: the joints between them.
        nv: number of coordinates of the robot.

    Attributes:
        held: coordinates that are held, in order.
    """

    def __init__(self, blocks: Blocks, cuts: CutJoints, nv: int) -> None:
        self._blocks, self._cuts, self.nv = blocks, cuts, nv
        parts = [*zip(blocks.blocks, blocks.at, strict=True)]
        none = np.zeros(0, dtype=np.intp)
        self._at = np.concatenate([none, *(at.start + block.own for block, at in parts)])
        self._v = np.concatenate([none, *(block.own_v for block, _ in parts)])
        self._home = {
            c: (number, place)
            for number, block in enumerate(blocks.blocks)
            for c, place in zip(block.own_v.tolist(), block.own.tolist(), strict=True)
        }
        self.held: tuple[int, ...] = ()
        self._inside: dict[int, list[int]] = {}
        self._between: list[int] = []

    def hold(self, coordinates: tuple[int, ...]) -> None:
        """Hold these coordinates, and no others."""
        if coordinates == self.held:
            return
        self.held, self._inside = coordinates, {}
        self._between = [k for k, c in enumerate(coordinates) if c not in self._home]
        for k, c in enumerate(coordinates):
            if c in self._home:
                self._inside.setdefault(self._home[c][0], []).append(k)
        for number, block in enumerate(self._blocks.blocks):
            mine = [self._home[coordinates[k]][1] for k in self._inside.get(number, ())]
            block.hold(np.array(mine, dtype=np.intp))
        self._cuts.hold(tuple(coordinates[k] for k in self._between))

    def forces(self, torques: Array) -> Array:
        """Torques on the robot's coordinates as forces on those of the blocks, shape (size,)."""
        found = np.zeros(self._blocks.size)
        if not torques.any():
            return found
        if self._blocks.cuts:
            found = self._blocks.press(self._cuts.wrenches(torques))
        found[self._at] += torques[self._v]
        return found

    def rates(self, alpha: Array, apart: Array) -> Array:
        """The robot's coordinates from those of the blocks, shape (nv,).

        Args:
            alpha: shape (size,).
            apart: what does not come from coordinates of joints between blocks, (cuts, 6).
        """
        found = np.empty(self.nv)
        found[self._v] = alpha[self._at]
        if self._blocks.cuts:
            self._cuts.rates(self._blocks.between(alpha) - apart, found)
        return found

    def respond(self, forces: Array, held: Array | None) -> Array:
        """Accelerations of all blocks without joint forces, shape (size,).

        Args:
            forces: shape (size,).
            held: value of each held coordinate; nothing if None.
        """
        found = np.empty(len(forces))
        for number, (block, at) in enumerate(
            zip(self._blocks.blocks, self._blocks.at, strict=True)
        ):
            mine = None if held is None else held[self._inside.get(number, [])]
            found[at] = block.respond(forces[at], mine)
        return found

    def ask(self, target: Array, held: Array) -> None:
        """Add the values of held coordinates to what joints between blocks must measure."""
        width, scale = self._cuts.width, self._cuts.scale
        for k in self._between:
            joint, place = self._cuts.place[self.held[k]]
            target[joint * width + place] += scale[joint, place] * held[k]

    def holding(self, forces: Array, alpha: Array, x: Array, inertial: Array) -> Array:
        """What holds each held coordinate [N m, N].

        Args:
            forces: on the blocks, those of joints included, shape (size,).
            alpha: accelerations, shape (size,).
            x: measure numbers.
            inertial: torque that the rotor of each held coordinate needs.
        """
        found = inertial.copy()
        for number, mine in self._inside.items():
            at = self._blocks.at[number]
            found[mine] = self._blocks.blocks[number].held_forces(forces[at], alpha[at])
        for k in self._between:
            joint, place = self._cuts.place[self.held[k]]
            found[k] += self._cuts.scale[joint, place] * x[joint * self._cuts.width + place]
        return found
