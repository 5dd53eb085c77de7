"""The configuration group of a robot, as the integrators want it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ..linalg.lapack import lapack
from ..model.mechanism import Mechanism

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
        places = np.flatnonzero(curved)
        # From the first to the last of them: between them lie columns of the identity.
        self._bent = slice(0) if self.flat else slice(int(places[0]), int(places[-1]) + 1)
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
        moved: Array = q + step if self._plain else pin.integrate(self._model, q, step)
        return self._kept(q, moved) if len(self._held) else moved

    def normalize(self, q: Array) -> Array:
        """``q`` with quaternions of unit length."""
        return q if self._plain else self._kept(q, pin.normalize(self._model, q))

    def _kept(self, q: Array, moved: Array) -> Array:
        if len(self._held):
            moved[self._held] = q[self._held]
        return moved

    def dexp(self, q: Array, psi: Array, rate: Array) -> Array:
        """``dexp(-psi) rate``: the right Jacobian of the exponential map."""
        if self.flat:
            return rate
        at, v = self._bent, rate.copy()
        v[at] = pin.dIntegrate(self._model, q, psi, pin.ARG1)[at, at] @ rate[at]
        return v

    def dexp_inv(self, q: Array, psi: Array, v: Array) -> Array:
        """``dexpinv(-psi) v``: solve with the right Jacobian of the exponential map."""
        if self.flat:
            return v
        # The inverse Jacobian of the logarithm is the same up to half a turn, and wrong behind it.
        dexp = pin.dIntegrate(self._model, q, psi, pin.ARG1)
        at = self._bent
        rate = v.copy()
        rate[at] = lapack().dgesv(dexp[at, at], v[at])[2]
        return rate
