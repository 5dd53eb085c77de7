"""Complements of the joints between blocks, padded to one width.

The orthogonal complement ``D`` of a joint's motion map ``H`` (paper 3, eq. 9). A column of ``H``
whose coordinate is held (locked, prescribed) or carries a rotor moves over to ``D``: a locked joint
is one whose motion map lost a column; a rotor gives its column a compliance.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...errors import SingularMass
from ...spatial.batched import apply, apply_transposed
from ...tolerances import RANK, TINY
from .block import is_unsteady
from .blocks import Blocks

__all__ = ["CutJoints"]

Array = NDArray[np.float64]


class CutJoints:
    """The joints between blocks.

    Args:
        blocks: the blocks.
        armature: reflected rotor inertia per coordinate of the robot, shape (nv,).
        all_columns: whether coordinates may be held.

    Attributes:
        width: columns of ``D``, padding included.
        D: complement, padded with zeros, and its moved columns, shape (cuts, 6, width).
        scale: unit of each column of ``D``, shape (cuts, width).
        compliance: per column of ``D``, shape (cuts, width); 1 where it is padding.
        place: joint and column of ``D`` for a coordinate that is held.
    """

    def __init__(self, blocks: Blocks, armature: Array, all_columns: bool) -> None:
        self._blocks, self._armature = blocks, armature
        self._first = [joint.idx_v for joint in blocks.joints]
        self._dofs = [joint.nv for joint in blocks.joints]
        n, most = len(self._dofs), max(self._dofs, default=0)
        coordinates = [
            (k, number, first + number)
            for k, (first, dof) in enumerate(zip(self._first, self._dofs, strict=True))
            for number in range(dof)
        ]
        rotors = any(armature[c] > 0 for _, _, c in coordinates)
        self.width = 6 if all_columns or rotors else max(1, 6 - min(self._dofs, default=5))
        self.place = {c: (k, 6 - self._dofs[k] + number) for k, number, c in coordinates}
        self._at = tuple(np.array(coordinates, dtype=np.intp).reshape(-1, 3).T)
        self._unsteady = [k for k, joint in enumerate(blocks.joints) if is_unsteady(joint)]
        self.scale = np.ones((n, self.width))
        self.D = np.zeros((n, 6, self.width))
        self.compliance = np.ones((n, self.width))
        self._duals = np.zeros((n, 6, most))
        self._complements: list[Array] = [np.zeros((6, 0)) for _ in range(n)]
        self.held: tuple[int, ...] = ()
        self._split(range(n))
        self.rescale(self.scale)

    def update(self) -> None:
        """Follow the motion maps that change with the configuration."""
        if self._unsteady:
            self._split(self._unsteady)
            for k in self._unsteady:
                self._fill(k)

    def hold(self, coordinates: tuple[int, ...]) -> None:
        """Take the columns of these coordinates, and no others, from ``H`` to ``D``."""
        changed = {self.place[c][0] for c in {*coordinates, *self.held}}
        if coordinates != self.held:
            self.held = coordinates
            for k in changed:
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

    def rates(self, across: Array, found: Array) -> None:
        """Coordinates of relative twists or accelerations, written to ``found``, shape (nv,)."""
        k, number, c = self._at
        found[c] = apply_transposed(self._duals, across)[k, number]

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
            rotor = float(self._armature[c])
            if rotor > 0 or c in self.held:
                D[:, place] = self._duals[k, :, number]
                compliance[place] = 0.0 if c in self.held else self.scale[k, place] ** 2 / rotor
        D *= self.scale[k]
