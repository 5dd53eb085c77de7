r"""Screw tables: a mechanism in its assembled reference configuration, without body-fixed frames.

Everything is given in one world frame, as CAD programs export it (paper 1, section 2.3.3): per
joint its bodies, the direction of its axis, a point on it and the pitch, per body mass, centre of
mass and inertia. In the reference configuration all body frames coincide with the world frame
(remark 3), so frames A and B of a joint are one placement there, and the joint's screw is
:math:`Y = (p \times \omega + h \omega, \omega)`, linear part first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pinocchio as pin

from ..boundary.marks import Array, Check, Direction, Name, NotNegative, Vector3, nonempty
from ..boundary.schema import read_data
from ..boundary.yaml import line_of
from ..errors import BadValue, LoadError, UnknownName
from ..model.description import GROUND, Description, Joint, NamedFrame, coordinate_count
from ..model.pairs import Pair, align_z
from ..tolerances import NEGATIVE_MOMENT, TENSOR_DIGITS
from .loopsfile import (
    CouplingEntry,
    LimitsEntry,
    PairEntry,
    known_joints,
    make_couplings,
    need_unique,
)
from .moments import Moments
from .quantities import axes_rotation, square_axes


def physical_inertia(rows: Rows) -> None:
    """Check rows of an inertia tensor; one with a single moment is for motion in a plane."""
    tensor = np.array(rows)
    size = float(np.abs(tensor).max())
    if np.abs(tensor - tensor.T).max() > TENSOR_DIGITS * size:
        raise ValueError("an inertia tensor is symmetric")
    least, middle, largest = (float(m) for m in np.linalg.eigvalsh((tensor + tensor.T) / 2))
    principal = f"principal moments {least:.6g}, {middle:.6g}, {largest:.6g} kg m^2"
    if least < -NEGATIVE_MOMENT * size:
        raise ValueError(f"{principal} must not be negative")
    if middle > TENSOR_DIGITS * size and least + middle < largest * (1 - TENSOR_DIGITS):
        raise ValueError(
            f"{principal} violate the triangle inequality, no body has them; is the tensor "
            "about the centre of mass?"
        )


Rows = tuple[Vector3, Vector3, Vector3]
Tensor = Annotated[Rows, Check(physical_inertia, {})]


@dataclass(frozen=True, kw_only=True)
class PieceEntry:
    """A piece of mass: all values in world axes, in the reference configuration."""

    mass: Annotated[NotNegative, "mass [kg]"]
    com: Annotated[Vector3, "centre of mass [m]"]
    inertia: Annotated[
        Tensor | None, "rows of the inertia about the centre of mass [kg m^2], 0 by default"
    ] = None

    def moments(self) -> Moments:
        """The piece as moments in world axes."""
        tensor = np.zeros((3, 3)) if self.inertia is None else np.array(self.inertia)
        return Moments(self.mass, np.array(self.com), (tensor + tensor.T) / 2)


def _not_ground(name: str) -> None:
    if name == GROUND:
        raise BadValue("the ground is there already and has no mass; leave it out")


@dataclass(frozen=True, kw_only=True)
class ScrewBody:
    """A body: all values in world axes, in the reference configuration.

    Mass, centre and inertia, or several pieces of these; without any the body has no mass.
    """

    name: Annotated[Name, Check(_not_ground, {}), "name of the body, unique, not 'ground'"]
    mass: Annotated[NotNegative | None, "mass [kg]"] = None
    com: Annotated[Vector3 | None, "centre of mass [m]"] = None
    inertia: Annotated[Tensor | None, "as that of a piece; a point mass by default"] = None
    pieces: Annotated[tuple[PieceEntry, ...], "further pieces of mass"] = ()

    def __post_init__(self) -> None:
        given = [key for key in ("com", "inertia") if getattr(self, key) is not None]
        if self.mass is None and given:
            raise ValueError(f"has {' and '.join(given)}, but no mass")
        if self.mass and self.com is None:
            raise ValueError("has a mass; it needs its centre, too: com")

    def moments(self) -> Moments:
        """All of its mass, in world axes."""
        own = PieceEntry(
            mass=self.mass or 0.0, com=self.com or (0.0, 0.0, 0.0), inertia=self.inertia
        )
        return Moments.total(piece.moments() for piece in (own, *self.pieces))


@dataclass(frozen=True, kw_only=True)
class FrameEntry:
    """A named frame on a body, for springs, dampers, forces and loops of a run."""

    name: Annotated[Name, "name of the frame, unique among bodies, joints and frames"]
    body: Annotated[Name, "body that carries it, or 'ground'"]
    point: Annotated[Vector3, "where it is in the reference configuration [m]"]
    axis: Annotated[Direction | None, "direction of its z axis; that of the world"] = None


@dataclass(frozen=True, kw_only=True)
class ScrewJoint(PairEntry):
    """A joint: axis and point in world axes, in the reference configuration."""

    name: Annotated[Name, "name of the joint, unique"]
    parent: Annotated[Name, "body on one side, or 'ground'"]
    child: Annotated[Name, "body on the other side"]
    point: Annotated[Vector3 | None, "point on the axis, of a rod on the parent [m]"] = None
    point2: Annotated[Vector3 | None, "end of a rod on the child [m]"] = None
    cut: Annotated[bool, "true: this joint closes a loop"] = False
    limits: Annotated[LimitsEntry | None, "lower, upper, effort, velocity"] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        pair = self.pair_class
        kind = pair.name
        if self.parent == self.child:
            raise ValueError(f"joins '{self.parent}' with itself")
        if not pair.origins_apart:
            try:
                self.make_pair()
            except BadValue as error:
                raise ValueError(str(error)) from None
        if any(feature.is_placed for feature in pair.features) and self.point is None:
            raise ValueError(f"a {kind} pair needs a point")
        if pair.axis_count() and self.axis is None:
            raise ValueError(f"a {kind} pair needs an axis")
        if pair.origins_apart != (self.point2 is not None):
            needed = "needs point2" if pair.origins_apart else "has no point2; leave it out"
            raise ValueError(f"a {kind} pair {needed}")
        if pair.origins_apart and not pair.axis_count() and self.axis is not None:
            raise ValueError(f"a {kind} has no axis; leave it out")
        if self.axis2 is not None and self.axis is not None:
            try:
                square_axes(np.array(self.axis), np.array(self.axis2))
            except BadValue as error:
                raise ValueError(str(error)) from None


@dataclass(frozen=True, kw_only=True)
class ScrewTable:
    """A mechanism in its assembled reference configuration."""

    name: Annotated[Name, "name of the mechanism"] = "mechanism"
    gravity: Annotated[Vector3, "gravity [m/s^2]"] = (0.0, 0.0, -9.81)
    bodies: Annotated[tuple[ScrewBody, ...], nonempty, "the bodies"]
    joints: Annotated[tuple[ScrewJoint, ...], nonempty, "the joints"]
    actuated: Annotated[tuple[Name, ...] | None, "joints with a motor"] = None
    couplings: Annotated[tuple[CouplingEntry, ...], "gears, racks, cams"] = ()
    frames: Annotated[tuple[FrameEntry, ...], "named frames on bodies"] = ()


def read_screws(data: dict[str, Any], source: str) -> Description:
    """Read a screw table with the keys of `ScrewTable`, from YAML or with NumPy arrays.

    Every body frame is the world frame in the reference configuration, and all joint coordinates
    are zero there. ``source`` is a file or kind of input, for messages.
    """
    table = read_data(ScrewTable, data, source)
    need_unique([body.name for body in table.bodies], "body", source)
    names = [joint.name for joint in table.joints] + [row.name for row in table.couplings]
    need_unique(names, "joint or coupling", source)
    bodies = [body.name for body in table.bodies]
    warnings: list[str] = []
    joints = []

    def need_body(name: str, of: str, line: int | None) -> None:
        if name != GROUND and name not in bodies:
            unknown = UnknownName("body", name, (GROUND, *bodies))
            raise LoadError(f"{of}: {unknown}", source=source, line=line)

    for index, entry in enumerate(table.joints):
        line, where = line_of(data, ("joints", index)), f"joint '{entry.name}'"
        need_body(entry.parent, where, line)
        need_body(entry.child, where, line)
        try:
            joints.append(_joint(entry, source, warnings))
        except BadValue as error:
            raise LoadError(f"{where}: {error}", source=source, line=line) from None
    frames = []
    for index, item in enumerate(table.frames):
        need_body(item.body, f"frame '{item.name}'", line_of(data, ("frames", index)))
        placement = pin.SE3(axes_rotation(item.axis), np.array(item.point))
        frames.append(NamedFrame(item.name, item.body, placement))
    if table.actuated is not None:
        known_joints(table.actuated, joints, "actuated", source)
    return Description(
        name=table.name,
        bodies=tuple(body.moments().body(body.name) for body in table.bodies),
        joints=tuple(joints),
        couplings=make_couplings(table.couplings, joints, source),
        actuated=table.actuated,
        gravity=np.array(table.gravity),
        frames=tuple(frames),
        warnings=tuple(warnings),
        source=source,
    )


def _joint(entry: ScrewJoint, source: str, warnings: list[str]) -> Joint:
    """Joint whose frames A and B coincide in the reference configuration (but for a rod)."""
    point = np.array(entry.point or (0.0, 0.0, 0.0))
    if entry.point2 is not None:
        pair, frame_a, frame_b = _apart(entry, point, np.array(entry.point2), source, warnings)
    else:
        pair = entry.make_pair()
        frame_a = frame_b = pin.SE3(axes_rotation(entry.axis, entry.axis2), point)
    ends = entry.parent, entry.child, frame_a, frame_b
    joint = Joint(entry.name, pair, *ends, cut=True if entry.cut else None)
    return joint if entry.limits is None else _limited(joint, entry.limits)


def _limited(joint: Joint, entry: LimitsEntry) -> Joint:
    """The joint with limits, of position only where each degree of freedom has one coordinate."""
    limited, dof = entry.limit(joint), joint.pair.dof
    given = max(len(entry.lower), len(entry.upper))
    if given and not given == dof == coordinate_count(joint):
        raise BadValue(f"{given} position limits do not fit a {joint.pair.name} pair")
    return limited


def _apart(
    entry: ScrewJoint, start: Array, end: Array, source: str, warnings: list[str]
) -> tuple[Pair, pin.SE3, pin.SE3]:
    """Pair between two points; if it has no axis, like a rod, z of A and B point to the end."""
    distance = float(np.linalg.norm(end - start))
    turn = axes_rotation(entry.axis, entry.axis2)
    if entry.axis is None and distance > 0:
        turn = align_z(end - start)
    frame_a, frame_b = pin.SE3(turn, start), pin.SE3(turn, end)
    measured = entry.pair_class.measured(frame_a.actInv(frame_b))
    pair = entry.make_pair(measured)
    for key, value in measured.items():
        given = pair.parameters[key]
        if isinstance(given, float) and abs(given - value) > TENSOR_DIGITS * abs(given):
            warnings.append(
                f"{source}: {pair.name} '{entry.name}' has {key} {given}{pair.unit(key)}, but its "
                f"points give {value:.9g}{pair.unit(key)}; the mechanism is open there"
            )
    return pair, frame_a, frame_b
