"""Pairs whose motions form no group: two crossing axes, and points on a line, a plane and a sphere.

Those that hold a point cannot carry a body.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pinocchio as pin

from ...boundary.marks import Array
from ...errors import BadValue
from .pair import DIRECTION, LINE, POINT, Component, Feature, Pair, Symbol, SymbolSolid
from .tree_joints import UNIVERSAL

_BALL = (SymbolSolid("sphere", (0.4,)),)


@dataclass(frozen=True)
class Universal(Pair):
    """Rotations about z of A, then x of B: origins coincide and the two axes stay perpendicular.

    The motions are no group, so the last row depends on the placement: with ``n = R' e_z`` (z of A
    seen from B) it is ``(e_x x n) . w``, the rate of ``e_z . R e_x``.
    """

    name = "universal"
    labels = ("v_x", "v_y", "v_z", "w_xz")
    features = (LINE, Feature("x", True))
    turns = "xyz"  # as far as its linear rows know
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

    def rates(self, T: pin.SE3) -> Array:
        """Turning about z of A, ``n . w``, and about x of B, which are perpendicular."""
        rows = np.zeros((2, 6))
        rows[0, 3:], rows[1, 3] = T.rotation[2], 1.0
        return rows

    def coordinates(self, T: pin.SE3) -> Array:
        """Both angles, of ``R_z(a) R_x(b)``."""
        R = T.rotation
        return np.array([math.atan2(R[1, 0], R[0, 0]), math.atan2(R[2, 1], R[2, 2])])

    @property
    def components(self) -> tuple[tuple[Component, Array], ...]:
        """The linear twist, and the angle between the axes."""
        *linear, angle = np.eye(6)[:4]
        return *(("twist", row) for row in linear), ("angle", angle)

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

    def selector_slopes(self, T: pin.SE3) -> Array:
        """Those of ``e_x x n``, where ``n`` turns as ``n x w``."""
        slopes = np.zeros((6, 4, 6))
        slopes[3:, 3, 3:] = _across_x(np.cross(T.rotation[2], np.eye(3)))
        return slopes

    def bias_slopes(self, T: pin.SE3, V: Array) -> Array:
        """``(e_x x ((n x e_k) x w)) . w`` for turns about ``e_k``."""
        slopes = np.zeros((6, 4))
        turned = np.cross(T.rotation[2], np.eye(3))
        slopes[3:, 3] = _across_x(np.cross(turned, V[3:])) @ V[3:]
        return slopes


def _across_x(n: Array) -> Array:
    """``e_x x n``, row by row."""
    return np.cross((1.0, 0.0, 0.0), n)


class _PointPair(Pair):
    """Rows ``C R v`` on the velocity of B's origin, resolved in A by the constant ``C``.

    Its coordinates are those of B's origin along the other axes of A, and turns of B.
    """

    _directions: Array

    def rates(self, T: pin.SE3) -> Array:
        """The other axes of A, in B, and turning in B."""
        rows = np.zeros((self.dof, 6))
        rows[:-3, :3] = self._others @ T.rotation
        rows[-3:, 3:] = np.eye(3)
        return rows

    def rates_bias(self, T: pin.SE3, V: Array) -> Array:
        """``D R (w x v)`` along the other axes ``D``."""
        return np.append(self._others @ T.rotation @ np.cross(V[3:], V[:3]), np.zeros(3))

    def coordinates(self, T: pin.SE3) -> Array:
        """Place of B's origin along the other axes; turns in space have none."""
        return np.append(self._others @ T.translation, np.full(3, np.nan))

    @property
    def _others(self) -> Array:
        return np.eye(3)[~self._directions.any(axis=0)]

    @property
    def components(self) -> tuple[tuple[Component, Array], ...]:
        """The directions in A."""
        return tuple(("offset", np.append(row, np.zeros(3))) for row in self._directions)

    def selector(self, T: pin.SE3) -> Array:
        """Rows of the velocity of B's origin in A."""
        rows = np.zeros((self.rows, 6))
        rows[:, :3] = self._directions @ T.rotation
        return rows

    def bias(self, T: pin.SE3, V: Array) -> Array:
        """``C R (w x v)``: the frame in which ``v`` is resolved turns with B."""
        return np.asarray(self._directions @ T.rotation @ np.cross(V[3:], V[:3]))

    def selector_slopes(self, T: pin.SE3) -> Array:
        """``C R (e_k x v)`` for turns about ``e_k``."""
        slopes = np.zeros((6, self.rows, 6))
        turned = np.array([pin.skew(axis) for axis in np.eye(3)])
        slopes[3:, :, :3] = self._directions @ T.rotation @ turned
        return slopes

    def bias_slopes(self, T: pin.SE3, V: Array) -> Array:
        """``C R (e_k x (w x v))``."""
        return self.selector_slopes(T)[:, :, :3] @ np.cross(V[3:], V[:3])

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

    @property
    def components(self) -> tuple[tuple[Component, Array], ...]:
        """The distance."""
        return (("rod", np.array([1.0, self.length, 0.0, 0.0, 0.0, 0.0])),)

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

    def selector_slopes(self, T: pin.SE3) -> Array:
        """Those of the direction."""
        slopes = np.zeros((6, 1, 6))
        slopes[:, 0, :3] = self._turning(T)[2]
        return slopes

    def bias_slopes(self, T: pin.SE3, V: Array) -> Array:
        """Those of ``u.(w x v) + (v.v - (u.v)^2) / d``."""
        distance, u, du = self._turning(T)
        v, along = V[:3], float(u @ V[:3])
        longer = np.append(u, np.zeros(3))
        slopes = du @ np.cross(V[3:], v) - 2.0 * along / distance * (du @ v)
        return np.asarray(slopes - longer * (v @ v - along**2) / distance**2)[:, None]

    def _turning(self, T: pin.SE3) -> tuple[float, Array, Array]:
        """Length and direction in B, and the derivatives of the latter, shape (6, 3).

        B's origin seen from A, in the axes of B, moves by ``v - w x y``.
        """
        y = T.rotation.T @ T.translation
        distance, u = float(np.linalg.norm(y)), _direction(y)
        moved = np.vstack([np.eye(3), np.cross(y, np.eye(3))])
        return distance, u, (moved - np.outer(moved @ u, u)) / distance


def _direction(p: Array) -> Array:
    """Unit vector along ``p``; z where there is none, so that an assembly can start there."""
    length = float(np.linalg.norm(p))
    return p / length if length > 0 else np.array([0.0, 0.0, 1.0])
