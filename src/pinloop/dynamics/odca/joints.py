"""Motion maps ``H`` and their orthogonal complements ``D`` of all tree joints, as arrays.

A column of ``H`` whose coordinate is held (locked, prescribed) or carries a rotor moves over to
``D``: a locked joint is one whose motion map lost a column; a rotor gives its column a compliance.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...errors import SingularMass
from .kinematics import Kinematics

__all__ = ["TreeJoints"]

Array = NDArray[np.float64]

_LOCKED = 1e-9
"""Singular value of a motion map, over the largest, at which its coordinates are not enough."""


class TreeJoints:
    """The tree joints.

    Args:
        kinematics: the tree.
        armature: reflected rotor inertia per coordinate, shape (nv,).
        width: columns of ``D``, padding included.

    Attributes:
        D: complement, padded with zeros, and its moved columns, shape (n, 6, width).
        scale: unit of each column of ``D``, shape (n, width).
        compliance: per column of ``D``, shape (n, width); 1 where it is padding.
        place: column of ``D`` for a held coordinate, per coordinate; beyond ``width`` if it cannot
            be held.
        body: body whose joint has a coordinate, per coordinate.
    """

    def __init__(self, kinematics: Kinematics, armature: Array, width: int) -> None:
        self._kinematics, self._armature, self._width = kinematics, armature, width
        n, nv = kinematics.n, len(armature)
        self.scale = np.ones((n, width))
        self.D = np.zeros((n, 6, width))
        self.compliance = np.ones((n, width))
        self.body, self.place = np.zeros(nv, dtype=np.intp), np.zeros(nv, dtype=np.intp)
        for k, columns in enumerate(kinematics.columns):
            dof = columns.stop - columns.start
            self.body[columns] = k
            self.place[columns] = 6 - dof + np.arange(dof)
        axes = kinematics.axes
        self._dual = axes / np.sum(axes**2, axis=1, keepdims=True)
        self._duals: dict[int, Array] = {}
        self._complements: dict[int, Array] = {}
        for k, axis in zip(kinematics.single.tolist(), axes, strict=True):
            self._complements[k] = np.asarray(np.linalg.svd(axis[:, None])[0][:, 1:])
        self._split(kinematics.several)
        self.held: tuple[int, ...] = ()
        self.hold((), force=True)

    def update(self) -> None:
        """Follow the motion maps that change with the configuration."""
        if self._kinematics.unsteady:
            self._split(self._kinematics.unsteady)
            for k in self._kinematics.unsteady:
                self._fill(k)

    def hold(self, coordinates: tuple[int, ...], *, force: bool = False) -> None:
        """Take the columns of these coordinates, and no others, from ``H`` to ``D``."""
        if coordinates == self.held and not force:
            return
        changed = {int(self.body[c]) for c in {*coordinates, *self.held}}
        self.held = coordinates
        for k in range(self._kinematics.n) if force else changed:
            self._fill(k)

    def wrenches(self, tau: Array) -> Array:
        """Wrenches in the joints that do the same as joint torques, shape (n, 6)."""
        found = np.zeros((self._kinematics.n, 6))
        found[self._kinematics.single] = self._dual * tau[self._kinematics.single_v, None]
        for k in self._kinematics.several:
            found[k] = self._duals[k] @ tau[self._kinematics.columns[k]]
        return found

    def rates(self, across: Array) -> Array:
        """Coordinates of relative twists or accelerations, shape (nv,)."""
        found = np.empty(len(self._armature))
        found[self._kinematics.single_v] = np.sum(
            self._dual * across[self._kinematics.single], axis=1
        )
        for k in self._kinematics.several:
            found[self._kinematics.columns[k]] = self._duals[k].T @ across[k]
        return found

    def _split(self, bodies: list[int]) -> None:
        """Orthonormal ``D`` with ``D'H = 0`` (paper 3, eq. 9), and the dual ``H (H'H)^-1``."""
        for k in bodies:
            H = self._kinematics.H[k]
            U, values, V = np.linalg.svd(H)
            dof = len(values)
            if dof and values[-1] < _LOCKED * values[0]:
                raise SingularMass(
                    "the mass matrix is not positive definite: coordinates of a joint turn about "
                    f"the same axis (condition {values[0] / max(values[-1], 1e-300):.1e})"
                )
            self._duals[k] = np.asarray((U[:, :dof] / values) @ V)
            self._complements[k] = np.asarray(U[:, dof:])

    def _fill(self, k: int) -> None:
        """Write the padded ``D`` of one joint."""
        columns = self._kinematics.columns[k]
        dof = columns.stop - columns.start
        D, compliance = self.D[k], self.compliance[k]
        D[:], compliance[:] = 0.0, 1.0
        D[:, : 6 - dof] = self._complements[k]
        compliance[: 6 - dof] = 0.0
        for number, c in enumerate(range(columns.start, columns.stop)):
            rotor, place = float(self._armature[c]), 6 - dof + number
            if rotor > 0 or c in self.held:
                D[:, place] = self._dual_of(k, number)
                compliance[place] = 0.0 if c in self.held else self.scale[k, place] ** 2 / rotor
        D *= self.scale[k]

    def _dual_of(self, k: int, number: int) -> Array:
        if k in self._duals:
            return np.asarray(self._duals[k][:, number])
        return np.asarray(self._dual[np.searchsorted(self._kinematics.single, k)])
