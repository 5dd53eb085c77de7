r"""Lower pairs and point contacts: what a joint between two frames A and B leaves free.

This room knows relative placements only, no robot. With ``T = oMA^-1 oMB`` and ``V`` the twist of
B relative to A expressed in B (linear first), every pair gives

* ``residual(T)``: zero exactly where the pair is assembled (paper 1, eq. 12, table 1),
* ``selector(T)``: the rows ``S`` with ``d residual/dt = S V`` on the manifold (table 2),
* ``bias(T, V)``: ``dS/dt V``, which vanishes for pairs whose motions form a group.

The pair axis is z of both frames (tables 1 and 2 of paper 1); a universal joint turns about z of A
and x of B.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ...errors import BadValue

__all__ = [
    "PAIR_NAMES",
    "MotionGroup",
    "Pair",
    "PointOnLine",
    "PointOnPlane",
    "Rod",
    "Universal",
    "align_z",
    "make_pair",
    "pair_name",
]

Array = NDArray[np.float64]

_NO_PITCH = 1e-12
"""A thread finer than this [m/rad] is none: turns cannot be counted by the advance."""

_AXIS = {"x": 0, "y": 1, "z": 2}
_TWIST_LABELS = ("v_x", "v_y", "v_z", "w_x", "w_y", "w_z")


class Pair(ABC):
    """What two frames A and B may do relative to each other."""

    name: str
    """Name under which robot files ask for the pair."""
    free: Array
    """Free twists of the pair in its assembled reference position, shape (6, dof), columns."""
    labels: tuple[str, ...]
    """One label per constraint row."""

    @property
    def rows(self) -> int:
        """Number of constraint rows."""
        return len(self.labels)

    @property
    def dof(self) -> int:
        """Number of degrees of freedom that the pair leaves."""
        return 6 - self.rows

    @abstractmethod
    def residual(self, T: pin.SE3) -> Array:
        """Closure residual of the placement ``T`` of B in A, shape (rows,), m and rad."""

    @abstractmethod
    def selector(self, T: pin.SE3) -> Array:
        """Rows ``S`` that take the relative twist (of B, in B) to the residual rate: (rows, 6)."""

    @abstractmethod
    def bias(self, T: pin.SE3, V: Array) -> Array:
        """``dS/dt V`` for the relative twist ``V`` (of B, in B), shape (rows,)."""

    @property
    def parameters(self) -> dict[str, float]:
        """Numbers besides the name that define the pair, e.g. ``{"pitch": 0.01}``."""
        return {}


@dataclass(frozen=True)
class MotionGroup(Pair):
    """A pair whose free motions form a subgroup of SE(3).

    Args:
        name: name of the pair.
        rotation: 0 no rotation, 1 about z, 3 all rotations.
        slides: axes of free translation, a subset of ``"xyz"``.
        pitch: advance along z per radian about z [m/rad] (helical pair only).
    """

    name: str
    rotation: int
    slides: str = ""
    pitch: float | None = None

    def __post_init__(self) -> None:
        blocked = np.ones(6, dtype=bool)
        for axis in self.slides:
            blocked[_AXIS[axis]] = False
        if self.rotation == 1:
            blocked[5] = False
        elif self.rotation == 3:
            blocked[3:] = False
        rows = np.flatnonzero(blocked)
        selector = np.eye(6)[rows]
        free = np.eye(6)[:, ~blocked]
        if self.pitch is not None:
            free[2, 0] = self.pitch
            selector[2, 5] = -self.pitch
        selector.setflags(write=False)
        free.setflags(write=False)
        object.__setattr__(self, "free", free)
        object.__setattr__(self, "labels", tuple(_TWIST_LABELS[i] for i in rows))
        object.__setattr__(self, "_selector", selector)

    @property
    def parameters(self) -> dict[str, float]:
        """The pitch of a helical pair."""
        return {} if self.pitch is None else {"pitch": self.pitch}

    @property
    def is_point(self) -> bool:
        """Whether only the origins are held together: a spherical pair."""
        return self.rotation == 3 and not self.slides

    def closest(self, T: pin.SE3) -> pin.SE3:
        """Member of the group that is closest to ``T``."""
        angle = 0.0
        if self.rotation == 1:
            # The angle about z that maximises trace(Rz' R).
            (xx, xy, _), (yx, yy, _), _ = T.rotation.tolist()
            angle = math.atan2(yx - xy, xx + yy)
            if self.pitch is not None and abs(self.pitch) > _NO_PITCH:
                # A screw may have made whole turns: the one that fits the advance is meant.
                turns = (T.translation[2] / self.pitch - angle) / (2 * math.pi)
                angle += 2 * math.pi * round(turns)
        place = [0.0, 0.0, 0.0, 0.0, 0.0, math.sin(angle / 2), math.cos(angle / 2)]
        for axis in self.slides:
            place[_AXIS[axis]] = float(T.translation[_AXIS[axis]])
        if self.pitch is not None:
            place[2] = self.pitch * angle
        member: pin.SE3 = pin.XYZQUATToSE3(place)
        if self.rotation == 3:
            member.rotation = T.rotation
        return member

    def offset(self, T: pin.SE3) -> Array:
        """``log6(N^-1 T)``: the closest group member ``N`` taken out of ``T``, shape (6,)."""
        return np.asarray(pin.log6(self.closest(T).actInv(T)).vector)

    def residual(self, T: pin.SE3) -> Array:
        """``W log6(N^-1 T)`` with the closest group member ``N`` taken out.

        Zero only if ``T`` is in the group: ``W log6`` vanishes on the group's algebra alone, so a
        revolute pair that is flipped by pi is open by pi (paper 1, remark 4).
        """
        return np.asarray(self.selector(T) @ self.offset(T))

    def selector(self, T: pin.SE3) -> Array:
        """The constant selector of the pair (paper 1, table 2), linear part first."""
        selector: Array = self._selector  # type: ignore[attr-defined]
        return selector

    def bias(self, T: pin.SE3, V: Array) -> Array:
        """Zero, because the selector is constant."""
        return np.zeros(self.rows)


@dataclass(frozen=True)
class Universal(Pair):
    """Rotations about z of A, then x of B: origins coincide and the two axes stay perpendicular.

    The motions are no group, so the last row depends on the placement: with ``n = R' e_z`` (z of A
    seen from B) it is ``(e_x x n) . w``, the rate of ``e_z . R e_x``.
    """

    name: str = "universal"
    labels = ("v_x", "v_y", "v_z", "w_xz")

    @property
    def free(self) -> Array:  # type: ignore[override]
        """Rotation about z of A and x of B where these are parallel to z and x of B."""
        return np.eye(6)[:, [5, 3]]

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

    name: str = "point_on_line"
    labels = ("p_x", "p_y")
    free = np.eye(6)[:, 2:]
    _directions = np.eye(3)[:2]


@dataclass(frozen=True)
class PointOnPlane(_PointPair):
    """B's origin stays in the xy plane of A."""

    name: str = "point_on_plane"
    labels = ("p_z",)
    free = np.eye(6)[:, [0, 1, 3, 4, 5]]
    _directions = np.eye(3)[2:]


@dataclass(frozen=True)
class Rod(Pair):
    """The origins of A and B stay ``length`` apart: a massless rod with two ball ends.

    Args:
        length: distance of the origins [m], positive.
    """

    length: float
    name: str = "rod"
    labels = ("distance",)
    # In the reference position B lies on z of A, at the end of the rod.
    free = np.eye(6)[:, [0, 1, 3, 4, 5]]

    def __post_init__(self) -> None:
        if not 0 < self.length < np.inf:
            raise BadValue(f"a rod of length {self.length} m does not exist; use a spherical pair")

    @property
    def parameters(self) -> dict[str, float]:
        """The length of the rod."""
        return {"length": self.length}

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


_GROUPS: dict[str, MotionGroup] = {
    group.name: group
    for group in (
        MotionGroup("fixed", 0),
        MotionGroup("revolute", 1),
        MotionGroup("prismatic", 0, "z"),
        MotionGroup("cylindrical", 1, "z"),
        MotionGroup("spherical", 3),
        MotionGroup("planar", 1, "xy"),
        MotionGroup("planar_translation", 0, "xy"),
        MotionGroup("spatial_translation", 0, "xyz"),
        MotionGroup("schoenflies", 1, "xyz"),
        MotionGroup("free", 3, "xyz"),
    )
}

_ALIASES = {
    "continuous": "revolute",
    "hinge": "revolute",
    "slide": "prismatic",
    "slider": "prismatic",
    "screw": "helical",
    "ball": "spherical",
    "weld": "fixed",
    "floating": "free",
}


def _helical(pitch: float | None, length: float | None) -> Pair:
    if pitch is None:
        raise BadValue("a helical pair needs its pitch [m/rad]")
    return MotionGroup("helical", 1, "", float(pitch))


def _rod(pitch: float | None, length: float | None) -> Pair:
    if length is None:
        raise BadValue("a rod pair needs its length [m]")
    return Rod(float(length))


_OTHERS: dict[str, Callable[[float | None, float | None], Pair]] = {
    "helical": _helical,
    "universal": lambda pitch, length: Universal(),
    "point_on_line": lambda pitch, length: PointOnLine(),
    "point_on_plane": lambda pitch, length: PointOnPlane(),
    "rod": _rod,
}

PAIR_NAMES: tuple[str, ...] = (*_GROUPS, *_OTHERS)
"""Names of all pairs that `make_pair` knows."""


def make_pair(name: str, *, pitch: float | None = None, length: float | None = None) -> Pair:
    """Return the pair called ``name`` (case and ``-`` or blanks for ``_`` do not matter).

    Args:
        name: one of `PAIR_NAMES`, or an alias such as ``continuous``, ``ball``, ``screw``.
        pitch: advance per radian of a helical pair [m/rad].
        length: length of a rod [m].

    Raises:
        BadValue: unknown name, or a missing or non-finite parameter.
    """
    key = pair_name(name)
    for label, value, owner in (("pitch", pitch, "helical"), ("length", length, "rod")):
        if value is None:
            continue
        if not isinstance(value, (int, float)) or not np.isfinite(value):
            raise BadValue(f"{label} of pair '{name}' is {value!r}; it must be a finite number")
        if key != owner:
            raise BadValue(f"a {key} pair has no {label}; leave it out")
    if key in _GROUPS:
        return _GROUPS[key]
    return _OTHERS[key](pitch, length)


def pair_name(name: str) -> str:
    """Name in `PAIR_NAMES` of the pair that ``name`` or an alias means.

    Raises:
        BadValue: there is no such pair; lists those that there are.
    """
    key = str(name).strip().lower().replace("-", "_").replace(" ", "_")
    key = _ALIASES.get(key, key)
    if key not in PAIR_NAMES:
        raise BadValue(f"unknown pair '{name}'; known pairs: {', '.join(PAIR_NAMES)}")
    return key


def align_z(axis: Array) -> Array:
    """Rotation matrix whose third column is the unit vector along ``axis``, shape (3, 3).

    Axis-aligned inputs give exact (0, 1, -1) entries, z itself the identity.
    """
    length = float(np.linalg.norm(axis))
    if not 0 < length < np.inf:
        raise BadValue(f"axis {axis} has no direction")
    z = np.asarray(axis, dtype=float) / length
    helper = np.eye(3)[(int(np.argmax(np.abs(z))) + 1) % 3]
    y = np.cross(z, helper)
    y /= np.linalg.norm(y)
    return np.column_stack([np.cross(y, z), y, z])
