"""Pairs that hold one point: on a line, on a plane, or at a distance. None can carry a body.

They are small and share their symbols and features, so they live in one file.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ...errors import BadValue
from .pair import DIRECTION, LINE, POINT, Pair, Symbol, SymbolSolid

__all__ = ["PointOnLine", "PointOnPlane", "Rod"]

Array = NDArray[np.float64]

_BALL = (SymbolSolid("sphere", (0.4,)),)


class _PointPair(Pair):
    """Rows ``C R v`` on the velocity of B's origin, resolved in A by the constant ``C``."""

    _directions: Array

    def selector(self, T: pin.SE3) -> Array:
        """Rows of the velocity of B's origin in A."""
        rows = np.zeros((self.rows, 6))
        rows[:, :3] = self._directions @ T.rotation
        return rows

    def bias(self, T: pin.SE3, V: Array) -> Array:
        """``C R (w x v)``: the frame in which ``v`` is resolved turns with B."""
        return np.asarray(self._directions @ T.rotation @ np.cross(V[3:], V[:3]))

    def residual(self, T: pin.SE3) -> Array:
        """Coordinates of B's origin in A that must vanish [m]."""
        return np.asarray(self._directions @ T.translation)


@dataclass(frozen=True)
class PointOnLine(_PointPair):
    """B's origin stays on the z axis of A."""

    name = "point_on_line"
    labels = ("p_x", "p_y")
    features = (LINE, POINT)
    symbol = Symbol((SymbolSolid("cylinder", (0.12, 4.0)),), _BALL)
    _directions = np.eye(3)[:2]


@dataclass(frozen=True)
class PointOnPlane(_PointPair):
    """B's origin stays in the xy plane of A."""

    name = "point_on_plane"
    labels = ("p_z",)
    features = (DIRECTION, POINT)
    symbol = Symbol((SymbolSolid("box", (3.2, 3.2, 0.12)),), _BALL)
    _directions = np.eye(3)[2:]


@dataclass(frozen=True)
class Rod(Pair):
    """The origins of A and B stay ``length`` apart: a massless rod with two ball ends.

    Args:
        length: distance of the origins [m], positive.
    """

    length: float = field(metadata={"unit": "m"})
    name = "rod"
    labels = ("distance",)
    features = (POINT, POINT)
    origins_apart = True
    symbol = Symbol(_BALL, _BALL, stick="length")

    def __post_init__(self) -> None:
        if not 0 < self.length < np.inf:
            raise BadValue(f"a rod of length {self.length} m does not exist; use a spherical pair")

    @classmethod
    def measured(cls, T: pin.SE3) -> dict[str, float]:
        """The distance of the origins."""
        return {"length": float(np.linalg.norm(T.translation))}

    def residual(self, T: pin.SE3) -> Array:
        """How much the origins are too far apart [m]."""
        return np.array([np.linalg.norm(T.translation) - self.length])

    def selector(self, T: pin.SE3) -> Array:
        """The direction of the rod, resolved in B."""
        rows = np.zeros((1, 6))
        rows[0, :3] = T.rotation.T @ _direction(T.translation)
        return rows

    def bias(self, T: pin.SE3, V: Array) -> Array:
        """Turning of the frame of ``v``, and of the rod itself."""
        distance = float(np.linalg.norm(T.translation))
        direction = _direction(T.translation)
        v = T.rotation @ V[:3]
        turning = direction @ T.rotation @ np.cross(V[3:], V[:3])
        along = direction @ v
        swing = (v @ v - along**2) / distance if distance > 0 else 0.0
        return np.array([turning + swing])


def _direction(p: Array) -> Array:
    """Unit vector along ``p``; z where there is none, so that an assembly can start there."""
    length = float(np.linalg.norm(p))
    return p / length if length > 0 else np.array([0.0, 0.0, 1.0])
