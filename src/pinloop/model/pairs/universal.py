"""The universal pair: two crossing axes, one on each frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from .pair import LINE, Feature, Pair, Symbol, SymbolSolid
from .tree_joints import UNIVERSAL

__all__ = ["Universal"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Universal(Pair):
    """Rotations about z of A, then x of B: origins coincide and the two axes stay perpendicular.

    The motions are no group, so the last row depends on the placement: with ``n = R' e_z`` (z of A
    seen from B) it is ``(e_x x n) . w``, the rate of ``e_z . R e_x``.
    """

    name = "universal"
    labels = ("v_x", "v_y", "v_z", "w_xz")
    features = (LINE, Feature("x", True))
    tree_joints: ClassVar = {"": UNIVERSAL}
    # The symmetric turn that takes z to -x: R_z(a) R_x(b) becomes R_z(b) R_x(a).
    reversal = -np.eye(3)[::-1]
    reverses_coordinates = True
    symbol = Symbol(
        (SymbolSolid("cylinder", (0.3, 2.0)),),
        (SymbolSolid("cylinder", (0.3, 2.0), along="x"),),
        color="turn",
    )

    @property
    def free(self) -> Array:
        """Rotation about z of A and x of B where these are parallel to z and x of B."""
        return np.eye(6)[:, [5, 3]]

    @property
    def algebra(self) -> Array:
        """All turns about the origin: two crossing ones and their brackets."""
        return np.eye(6)[:, 3:]

    @property
    def sample_selectors(self) -> tuple[Array, ...]:
        """Those at three angles about x, whose last rows span all that there are."""
        turns = [pin.SE3(pin.utils.rotate("x", angle), np.zeros(3)) for angle in (0.0, 1.0, 2.0)]
        return tuple(self.selector(turn) for turn in turns)

    def residual(self, T: pin.SE3) -> Array:
        """Offset of the origins in B, and the cosine of the angle between the two axes."""
        return np.append(T.rotation.T @ T.translation, T.rotation[2, 0])

    def selector(self, T: pin.SE3) -> Array:
        """Three rows of the linear twist, and the row of the angle between the axes."""
        rows = np.zeros((4, 6))
        rows[:3, :3] = np.eye(3)
        normal = T.rotation[2]
        rows[3, 3:] = (0.0, -normal[2], normal[1])
        return rows

    def bias(self, T: pin.SE3, V: Array) -> Array:
        """Only the angle row moves: with ``dn/dt = n x w`` it is ``(e_x x (n x w)) . w``."""
        w = V[3:]
        rate = np.cross(T.rotation[2], w)
        return np.array([0.0, 0.0, 0.0, rate[1] * w[2] - rate[2] * w[1]])
