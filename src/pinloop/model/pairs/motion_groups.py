"""Pairs whose motions form a subgroup of SE(3), the lower pairs among them: one formula for all."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

import numpy as np
import pinocchio as pin

from ...boundary.marks import Array
from ...tolerances import NO_PITCH
from .pair import DIRECTION, NOTHING, POINT, Component, Pair, Symbol, SymbolSolid
from .tree_joints import CIRCLE, axis_joint, body_joint, composite, product_joint

_AXIS = {"x": 0, "y": 1, "z": 2}
_TWIST_LABELS = ("v_x", "v_y", "v_z", "w_x", "w_y", "w_z")
_HALF_TURN = np.diag([1.0, -1.0, -1.0])
"""About x: a motion along or about z, told from the other end, is the same motion again."""


class MotionGroup(Pair):
    """A pair whose motions form a subgroup of SE(3): slides, and turns about 0, 1 or 3 axes."""

    is_group = True

    @property
    def labels(self) -> tuple[str, ...]:
        """The components of the twist that the pair takes away."""
        return _geometry(self.turns, self.slides, self.advance)[0]

    @property
    def free(self) -> Array:
        """Free twists, alike in A and B, shape (6, dof), columns."""
        return _geometry(self.turns, self.slides, self.advance)[1]

    @property
    def algebra(self) -> Array:
        """The free twists: they are the algebra of the group."""
        return self.free

    @property
    def sample_selectors(self) -> tuple[Array, ...]:
        """The selector, which is the same everywhere."""
        return (_geometry(self.turns, self.slides, self.advance)[2],)

    def rates(self, T: pin.SE3) -> Array:
        """Components of the twist; the rate of a screw is that of its angle."""
        return np.eye(6)[[5] if self.advance else np.abs(self.free).argmax(axis=0)]

    def coordinates(self, T: pin.SE3) -> Array:
        """Shifts along axes that no turn moves, and the angle about z."""
        member, values = self.closest(T), np.full(6, np.nan)
        if self.advance:
            return np.array([member.translation[2] / self.advance])
        for axis in self.slides if self.turns != "z" else set(self.slides) & {"z"}:
            if self.turns != "xyz":
                values[_AXIS[axis]] = member.translation[_AXIS[axis]]
        if self.turns == "z":
            values[5] = math.atan2(member.rotation[1, 0], member.rotation[0, 0])
        return np.asarray(values[np.abs(self.free).argmax(axis=0)])

    def closest(self, T: pin.SE3) -> pin.SE3:
        """Member of the group that is closest to ``T``."""
        angle, pitch = 0.0, self.advance
        if self.turns == "z":
            # The angle about z that maximises trace(Rz' R).
            (xx, xy, _), (yx, yy, _), _ = T.rotation.tolist()
            angle = math.atan2(yx - xy, xx + yy)
            if abs(pitch) > NO_PITCH:
                # A screw may have made whole turns: those that fit the advance are meant.
                turns = (T.translation[2] / pitch - angle) / (2 * math.pi)
                angle += 2 * math.pi * round(turns)
        place = [0.0, 0.0, 0.0, 0.0, 0.0, math.sin(angle / 2), math.cos(angle / 2)]
        for axis in self.slides:
            place[_AXIS[axis]] = float(T.translation[_AXIS[axis]])
        if pitch:
            place[2] = pitch * angle
        member: pin.SE3 = pin.XYZQUATToSE3(place)
        if self.turns == "xyz":
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
        return _geometry(self.turns, self.slides, self.advance)[2]

    @property
    def components(self) -> tuple[tuple[Component, Array], ...]:
        """The rows of the selector."""
        return tuple(("twist", row) for row in self.selector(pin.SE3.Identity()))

    def bias(self, T: pin.SE3, V: Array) -> Array:
        """Zero, because the selector is constant."""
        return np.zeros(self.rows)


@lru_cache
def _geometry(turns: str, slides: str, pitch: float) -> tuple[tuple[str, ...], Array, Array]:
    """Row labels, free twists and selector of a group, which all pairs of it share."""
    blocked = np.ones(6, dtype=bool)
    for axis in slides:
        blocked[_AXIS[axis]] = False
    for axis in turns:
        blocked[3 + _AXIS[axis]] = False
    rows = np.flatnonzero(blocked)
    selector, free = np.eye(6)[rows], np.eye(6)[:, ~blocked]
    if pitch:
        free[2, 0] = pitch
        selector[2, 5] = -pitch
    selector.setflags(write=False)
    free.setflags(write=False)
    return tuple(_TWIST_LABELS[row] for row in rows), free, selector


@dataclass(frozen=True)
class Fixed(MotionGroup):
    """No motion."""

    name = "fixed"
    aliases = ("weld",)
    features = (NOTHING, NOTHING)
    tree_joints: ClassVar = {"": product_joint()}


@dataclass(frozen=True)
class Revolute(MotionGroup):
    """A turn about z."""

    name = "revolute"
    aliases = ("continuous", "hinge")
    turns = "z"
    tree_joints: ClassVar = {"": axis_joint("R"), "circle": CIRCLE}
    reversal = _HALF_TURN
    symbol = Symbol((SymbolSolid("cylinder", (0.4, 2.0)),), color="turn")


@dataclass(frozen=True)
class Prismatic(MotionGroup):
    """A slide along z."""

    name = "prismatic"
    aliases = ("slide", "slider")
    slides = "z"
    features = (DIRECTION, DIRECTION)
    tree_joints: ClassVar = {"": axis_joint("P")}
    reversal = _HALF_TURN
    symbol = Symbol(
        (SymbolSolid("box", (0.45, 0.45, 3.2)),),
        (SymbolSolid("box", (1.0, 1.0, 1.0)),),
        color="slide",
    )


@dataclass(frozen=True)
class Cylindrical(MotionGroup):
    """A slide along z and a turn about it."""

    name = "cylindrical"
    turns, slides = "z", "z"
    tree_joints: ClassVar = {"": product_joint("Pz", "Rz")}
    reversal = _HALF_TURN
    symbol = Symbol((SymbolSolid("cylinder", (0.25, 3.2)),), (SymbolSolid("cylinder", (0.5, 1.0)),))


@dataclass(frozen=True)
class Spherical(MotionGroup):
    """All turns about the common origin."""

    name = "spherical"
    aliases = ("ball",)
    turns = "xyz"
    features = (POINT, POINT)
    tree_joints: ClassVar = {
        "": body_joint("wx wy wz", pin.JointModelSpherical),
        "zyx": product_joint("Rz", "Ry", "Rx", native=pin.JointModelSphericalZYX),
    }
    symbol = Symbol((SymbolSolid("sphere", (0.65,)),), color="ball")


_PLATE = (SymbolSolid("box", (3.2, 3.2, 0.12)),), (SymbolSolid("sphere", (0.4,)),)


@dataclass(frozen=True)
class Planar(MotionGroup):
    """Slides in the plane of x and y, and a turn about z."""

    name = "planar"
    turns, slides = "z", "xy"
    features = (DIRECTION, DIRECTION)
    tree_joints: ClassVar = {"": product_joint("Px", "Py", "Rz", native=pin.JointModelPlanar)}
    symbol = Symbol(*_PLATE)


@dataclass(frozen=True)
class PlanarTranslation(MotionGroup):
    """Slides in the plane of x and y."""

    name = "planar_translation"
    slides = "xy"
    features = (DIRECTION, DIRECTION)
    tree_joints: ClassVar = {"": product_joint("Px", "Py")}
    symbol = Symbol(*_PLATE, color="slide")


@dataclass(frozen=True)
class SpatialTranslation(MotionGroup):
    """Slides in all directions."""

    name = "spatial_translation"
    slides = "xyz"
    features = (NOTHING, NOTHING)
    tree_joints: ClassVar = {"": product_joint("Px", "Py", "Pz", native=pin.JointModelTranslation)}
    symbol = Symbol((SymbolSolid("box", (0.9, 0.9, 0.9)),), color="slide")


def _slides_then_turn() -> object:
    return composite((pin.JointModelTranslation(), pin.JointModelRZ()))


@dataclass(frozen=True)
class Schoenflies(MotionGroup):
    """Slides in all directions, and a turn about z."""

    name = "schoenflies"
    turns, slides = "z", "xyz"
    features = (DIRECTION, DIRECTION)
    tree_joints: ClassVar = {"": product_joint("Px", "Py", "Pz", "Rz", native=_slides_then_turn)}

    def rates(self, T: pin.SE3) -> Array:
        """Slides along the axes of A, which the turn does not move, as in the tree."""
        rows = np.zeros((4, 6))
        rows[:3, :3], rows[3, 5] = T.rotation, 1.0
        return rows

    def rates_bias(self, T: pin.SE3, V: Array) -> Array:
        """``R (w x v)``."""
        return np.append(T.rotation @ np.cross(V[3:], V[:3]), 0.0)

    def coordinates(self, T: pin.SE3) -> Array:
        """The place of B in A, and the angle."""
        return np.append(T.translation, super().coordinates(T)[3])


def _slides_then_ball() -> object:
    return composite((pin.JointModelTranslation(), pin.JointModelSpherical()))


@dataclass(frozen=True)
class Free(MotionGroup):
    """All motions."""

    name = "free"
    aliases = ("floating",)
    turns, slides = "xyz", "xyz"
    features = (NOTHING, NOTHING)
    tree_joints: ClassVar = {
        "": body_joint("vx vy vz wx wy wz", pin.JointModelFreeFlyer),
        "SO3xR3": body_joint("vx vy vz wx wy wz", _slides_then_ball),
    }


@dataclass(frozen=True)
class Helical(MotionGroup):
    """A turn about z with an advance along it.

    Args:
        pitch: advance [m/rad].
    """

    pitch: float = field(metadata={"unit": "m/rad"})
    name = "helical"
    aliases = ("screw",)
    turns = "z"
    tree_joints: ClassVar = {"": axis_joint("H")}
    reversal = _HALF_TURN
    symbol = Symbol((SymbolSolid("cylinder", (0.4, 2.0)),), (SymbolSolid("ring", (0.7, 0.14)),))

    @property
    def advance(self) -> float:
        """The pitch."""
        return self.pitch
