"""The configuration group of a robot, as the integrators want it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from .mechanism import Mechanism

__all__ = ["RobotManifold"]

Array = NDArray[np.float64]


class RobotManifold:
    """Configurations of a robot: joint by joint a vector space, SO(3), SE(3), ...

    Args:
        robot: the mechanism.

    Attributes:
        curved: mask of the velocity coordinates of joints that are no vector space, shape (nv,).
        flat: whether none is.
    """

    def __init__(self, robot: Mechanism) -> None:
        self._model = robot.model
        curved = np.zeros(robot.nv, dtype=bool)
        self._cells: dict[str, slice] = {}
        for name in robot.joints:
            at = robot.coordinates(name)
            self._cells[name] = at.q
            # Joints stored as cosine and sine (nq = 2) commute like a vector space.
            curved[at.v] = at.nq != at.nv and at.nv > 1
        self.curved = curved
        self.flat = not curved.any()
        self._curved = np.flatnonzero(curved)
        self._plain = robot.nq == robot.nv
        self._held = np.zeros(0, dtype=np.intp)

    def hold(self, joints: Iterable[str]) -> None:
        """Keep the coordinates of joints to the last bit: they do not move at all."""
        mask = np.zeros(self._model.nq, dtype=bool)
        for name in joints:
            mask[self._cells[name]] = True
        self._held = np.flatnonzero(mask)

    def integrate(self, q: Array, step: Array) -> Array:
        """Return ``q (+) step``."""
        moved = q + step if self._plain else pin.integrate(self._model, q, step)
        return self._kept(q, np.asarray(moved))

    def normalize(self, q: Array) -> Array:
        """``q`` with quaternions of unit length."""
        return q if self._plain else self._kept(q, np.asarray(pin.normalize(self._model, q)))

    def _kept(self, q: Array, moved: Array) -> Array:
        if len(self._held):
            moved[self._held] = q[self._held]
        return moved

    def dexp_inv(self, q: Array, psi: Array, v: Array) -> Array:
        """``dexpinv(-psi) v``: solve with the right Jacobian of the exponential map."""
        if len(self._curved) == 0:
            return v
        rate = v.copy()
        at = self._curved
        dexp = pin.dIntegrate(self._model, q, psi, pin.ARG1)[np.ix_(at, at)]
        rate[at] = np.linalg.solve(dexp, v[at])
        return rate
