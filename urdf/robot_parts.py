"""Parts from which the shipped robots are made: solids with mass, links, joints, loops, drives.

Knows how solid bodies weigh and turn, but no robot and no file format: `robot_text` writes what is
described here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Vector = tuple[float, float, float]

DEGREE = math.pi / 180
X: Vector = (1.0, 0.0, 0.0)
Y: Vector = (0.0, 1.0, 0.0)
Z: Vector = (0.0, 0.0, 1.0)
ORIGIN: Vector = (0.0, 0.0, 0.0)

ALUMINIUM = 2700.0
"""Density [kg/m^3]."""
STEEL = 7850.0
"""Density [kg/m^3]."""

COLORS: dict[str, tuple[float, float, float]] = {
    "graphite": (0.22, 0.24, 0.27),
    "orange": (0.95, 0.45, 0.08),
    "amber": (0.98, 0.68, 0.15),
    "blue": (0.13, 0.38, 0.75),
    "sky": (0.42, 0.70, 0.92),
    "steel": (0.70, 0.72, 0.76),
    "green": (0.20, 0.62, 0.35),
    "red": (0.80, 0.20, 0.20),
    "violet": (0.50, 0.35, 0.70),
    "white": (0.92, 0.92, 0.90),
}


def rotation(rpy: Vector) -> Array:
    """Rotation matrix of fixed-axis roll, pitch, yaw [rad], shape (3, 3)."""
    (cr, sr), (cp, sp), (cy, sy) = ((math.cos(a), math.sin(a)) for a in rpy)
    turn_z = np.array([[cy, -sy, 0.0], [sy, cy, 0.0], [0.0, 0.0, 1.0]])
    turn_y = np.array([[cp, 0.0, sp], [0.0, 1.0, 0.0], [-sp, 0.0, cp]])
    turn_x = np.array([[1.0, 0.0, 0.0], [0.0, cr, -sr], [0.0, sr, cr]])
    return np.asarray(turn_z @ turn_y @ turn_x)


@dataclass(frozen=True)
class Solid:
    """A homogeneous primitive in the frame of its link.

    Args:
        kind: what it is.
        size: box: full lengths x, y, z; cylinder: radius, length along z; sphere: radius [m].
        xyz: centre in the link frame [m].
        rpy: orientation in the link frame [rad].
        color: one of `COLORS`.
        density: [kg/m^3]; 0 for decoration that carries no mass.
    """

    kind: Literal["box", "cylinder", "sphere"]
    size: tuple[float, ...]
    xyz: Vector
    rpy: Vector
    color: str
    density: float

    @property
    def volume(self) -> float:
        """Volume [m^3]."""
        if self.kind == "box":
            return math.prod(self.size)
        if self.kind == "cylinder":
            return math.pi * self.size[0] ** 2 * self.size[1]
        return 4.0 / 3.0 * math.pi * self.size[0] ** 3

    @property
    def gyration(self) -> Array:
        """Principal moments of inertia about the centre per unit of mass [m^2], shape (3,)."""
        if self.kind == "box":
            x, y, z = (side**2 for side in self.size)
            return np.array([y + z, z + x, x + y]) / 12.0
        if self.kind == "cylinder":
            radius, length = self.size
            across = (3.0 * radius**2 + length**2) / 12.0
            return np.array([across, across, radius**2 / 2.0])
        return np.full(3, 0.4 * self.size[0] ** 2)


def box(
    size: Vector, xyz: Vector, color: str, rpy: Vector = (0.0, 0.0, 0.0), density: float = 1.0
) -> Solid:
    """Box with its full side lengths [m]."""
    return Solid("box", size, xyz, rpy, color, density)


def ball(radius: float, xyz: Vector, color: str, density: float = 1.0) -> Solid:
    """Solid sphere."""
    return Solid("sphere", (radius,), xyz, (0.0, 0.0, 0.0), color, density)


def drum(
    radius: float,
    length: float,
    xyz: Vector,
    axis: Literal["x", "y", "z"],
    color: str,
    density: float = 1.0,
) -> Solid:
    """Cylinder about its centre ``xyz`` along a coordinate axis of the link."""
    quarter = math.pi / 2
    rpy = {"x": (0.0, quarter, 0.0), "y": (quarter, 0.0, 0.0), "z": (0.0, 0.0, 0.0)}[axis]
    return Solid("cylinder", (radius, length), xyz, rpy, color, density)


def pipe(start: Vector, end: Vector, radius: float, color: str, density: float = 1.0) -> Solid:
    """Cylinder from ``start`` to ``end``."""
    span = np.subtract(end, start)
    across = math.hypot(span[0], span[1])
    yaw = math.atan2(span[1], span[0]) if across > 0 else 0.0
    rpy = (0.0, math.atan2(across, span[2]), yaw)
    size = (radius, float(np.linalg.norm(span)))
    return Solid("cylinder", size, middle(start, end), rpy, color, density)


def beam(
    start: Vector, end: Vector, section: tuple[float, float], color: str, density: float = 1.0
) -> Solid:
    """Box from ``start`` to ``end``; ``section`` is its horizontal width and its height [m]."""
    span = np.subtract(end, start)
    across = math.hypot(span[0], span[1])
    yaw = math.atan2(span[1], span[0]) if across > 0 else 0.0
    rpy = (0.0, -math.atan2(span[2], across), yaw)
    size = (float(np.linalg.norm(span)), *section)
    return Solid("box", size, middle(start, end), rpy, color, density)


def middle(start: Vector, end: Vector) -> Vector:
    """Point halfway."""
    x, y, z = ((a + b) / 2 for a, b in zip(start, end, strict=True))
    return (x, y, z)


@dataclass(frozen=True, eq=False)
class Link:
    """A body with its frame in its joint.

    Args:
        name: name of the link.
        solids: what it is made of and looks like; the density of each counts relative to the
            others if ``mass`` is given.
        mass: total mass [kg], or None for the sum over the solids.
        com: centre of mass [m], or None for that of the solids.
        inertia: principal moments about the centre of mass [kg m^2], link axes, or None.
    """

    name: str
    solids: tuple[Solid, ...] = ()
    mass: float | None = None
    com: Vector | None = None
    inertia: Vector | None = None

    def mass_properties(self) -> tuple[float, Array, Array] | None:
        """Mass [kg], centre of mass [m] and inertia about it in link axes; None if weightless."""
        if self.inertia is not None and self.mass is not None:
            return self.mass, np.array(self.com or (0.0, 0.0, 0.0)), np.diag(self.inertia)
        weights = [solid.volume * solid.density for solid in self.solids]
        total = sum(weights)
        if total == 0.0:
            return None
        scale = 1.0 if self.mass is None else self.mass / total
        centres = np.array([solid.xyz for solid in self.solids])
        com = np.asarray(np.array(weights) @ centres / total)
        inertia = np.zeros((3, 3))
        for weight, solid in zip(weights, self.solids, strict=True):
            turn = rotation(solid.rpy)
            offset = np.subtract(solid.xyz, com)
            steiner = offset @ offset * np.eye(3) - np.outer(offset, offset)
            inertia += weight * (turn @ np.diag(solid.gyration) @ turn.T + steiner)
        return scale * total, com, scale * inertia


@dataclass(frozen=True)
class Limit:
    """Limits of a joint with one degree of freedom [rad or m, rad/s or m/s, N m or N]."""

    lower: float
    upper: float
    velocity: float
    effort: float = 0.0


@dataclass(frozen=True)
class Joint:
    """A tree joint; its frame is the frame of the child link.

    Args:
        name: name of the joint.
        kind: joint type of URDF, or the name of a pair.
        parent: link that carries the joint.
        child: link that moves.
        xyz: position in the parent link [m].
        rpy: orientation in the parent link [rad].
        axis: axis in the joint frame; first axis of a universal joint.
        axis2: second axis of a universal joint.
        limit: limits, or None.
        damping: [N m s/rad or N s/m].
        friction: [N m or N].
        reduction: turns of the motor per turn of the joint (per m on a slide: rad/m); None for a
            joint without a motor.
    """

    name: str
    kind: str
    parent: str
    child: str
    xyz: Vector = (0.0, 0.0, 0.0)
    rpy: Vector = (0.0, 0.0, 0.0)
    axis: Vector | None = None
    axis2: Vector | None = None
    limit: Limit | None = None
    damping: float = 0.0
    friction: float = 0.0
    reduction: float | None = None

    def driven(self, reduction: float, damping: float = 0.0, friction: float = 0.0) -> Joint:
        """The same joint with a motor."""
        return replace(self, reduction=reduction, damping=damping, friction=friction)


@dataclass(frozen=True)
class LoopJoint:
    """A joint that closes a loop; the axis is that of both frames.

    Args:
        name: name of the joint.
        kind: name of the pair.
        link1: link that carries frame A.
        xyz1: position of A in ``link1`` [m].
        link2: link that carries frame B.
        xyz2: position of B in ``link2`` [m].
        axis: axis of the pair in A and in B, or None where the pair has none.
        rpy1: orientation of A in ``link1`` [rad].
        rpy2: orientation of B in ``link2`` [rad].
    """

    name: str
    kind: str
    link1: str
    xyz1: Vector
    link2: str
    xyz2: Vector
    axis: Vector | None = None
    rpy1: Vector = (0.0, 0.0, 0.0)
    rpy2: Vector = (0.0, 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class Robot:
    """A robot and the words that introduce its file.

    Args:
        name: name of the robot and of its file.
        about: text of the leading comment; lines are kept.
        links: the links, root first.
        joints: the tree.
        loops: the joints that close loops.
    """

    name: str
    about: str
    links: Sequence[Link]
    joints: Sequence[Joint]
    loops: Sequence[LoopJoint] = ()


def hinge(
    name: str,
    parent: str,
    child: str,
    xyz: Vector,
    axis: Vector,
    reach: tuple[float, float] = (-2 * math.pi, 2 * math.pi),
    velocity: float = 20.0,
    effort: float = 0.0,
    rpy: Vector = (0.0, 0.0, 0.0),
) -> Joint:
    """Revolute joint; with the default effort of 0 it is a bearing without a motor."""
    limit = Limit(reach[0], reach[1], velocity, effort)
    return Joint(name, "revolute", parent, child, xyz, rpy, axis, limit=limit)
