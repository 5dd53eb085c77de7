"""What a robot file says, format by format the same: bodies, joints, couplings, drives, shapes.

Pure data, no algorithm: every reader produces a `Description`, `Mechanism` is built from one, and
`save` writes one. A description is a graph, not a tree: which joints become the spanning tree and
which become loop joints is decided in `graph`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from ..boundary.marks import Array
from ..boundary.values import construct_again
from ..tolerances import SAME
from ..units import length_scale
from .pairs import Pair

Coordinates = Literal["", "circle", "zyx", "SO3xR3"]
"""Variants of the coordinates of a tree joint, see `Joint`."""

Side = Literal["frame_parent", "frame_child"]
"""The two frames of a joint: A on its parent, B on its child."""

COORDINATES: tuple[Coordinates, ...] = get_args(Coordinates)

LIMITS = ("lower", "upper", "velocity", "effort")
LOSSES = ("damping", "friction", "armature")
"""Fields of a `Joint` with values per degree of freedom."""

MOST_TEETH = 1000
"""Largest whole number in the ratio of gears of which some joint closes a loop."""

GROUND = "ground"
"""Name of the world as a body."""
GROUND_NAMES = (GROUND, "world", "universe")
"""What it may be called, unless a body is called so."""


def constant(values: ArrayLike) -> Array:
    """Return ``values`` as a float array that cannot be written to."""
    array = np.array(values, dtype=float)
    array.setflags(write=False)
    return array


@dataclass(frozen=True, eq=False)
class Body:
    """A rigid body with a frame of its own.

    Args:
        name: unique among the bodies; not `GROUND`.
        mass: mass [kg]; 0 for a body that only carries frames.
        com: centre of mass in the body frame [m], shape (3,).
        inertia: rotational inertia about the centre of mass, body axes [kg m^2], shape (3, 3).
        place: file and line where it is described, for messages; None if unknown.
        is_between: it stands between two joints that join the same two bodies of the file, and is
            in no file itself.
    """

    name: str
    mass: float = 0.0
    com: Array = field(default_factory=lambda: constant(np.zeros(3)))
    inertia: Array = field(default_factory=lambda: constant(np.zeros((3, 3))))
    place: tuple[str, int] | None = None
    is_between: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "com", constant(self.com))
        object.__setattr__(self, "inertia", constant(self.inertia))

    __reduce__ = construct_again


@dataclass(frozen=True, eq=False)
class Joint:
    """A pair between frame A on ``parent`` and frame B on ``child``.

    Tree joints and loop joints are described alike. Values per degree of freedom (limits, damping,
    ...) are in the order of the joint's velocity; empty means none given.

    Args:
        name: unique among the joints.
        pair: what the joint leaves free; its axis is z of A and B (universal: z of A, x of B).
        parent: name of the body that carries A, or `GROUND`.
        child: name of the body that carries B.
        frame_parent: placement of A in the parent's frame.
        frame_child: placement of B in the child's frame.
        cut: True: always a loop joint; False: in the tree if possible; None: free choice.
        coordinates: variant of the coordinates of a tree joint, "" for the usual one: "circle"
            (revolute as cosine and sine), "zyx" (spherical as Euler angles), "SO3xR3" (free as
            translation and quaternion with a linear velocity in the parent's axes).
        lower: lower position limits [rad, m].
        upper: upper position limits [rad, m].
        velocity: velocity limits [rad/s, m/s].
        effort: effort limits [N m, N].
        damping: viscous damping [N m s/rad, N s/m].
        friction: dry friction [N m, N].
        armature: reflected rotor inertia [kg m^2, kg].
        place: file and line where it is described, for messages; None if unknown.
    """

    name: str
    pair: Pair
    parent: str
    child: str
    frame_parent: pin.SE3
    frame_child: pin.SE3
    cut: bool | None = None
    coordinates: Coordinates = ""
    lower: tuple[float, ...] = ()
    upper: tuple[float, ...] = ()
    velocity: tuple[float, ...] = ()
    effort: tuple[float, ...] = ()
    damping: tuple[float, ...] = ()
    friction: tuple[float, ...] = ()
    armature: tuple[float, ...] = ()
    place: tuple[str, int] | None = None


def coordinate_count(joint: Joint, orientation: int = 1) -> int:
    """Length of a tree joint's part of the configuration.

    ``orientation`` is -1 if the tree walks the joint against its direction.
    """
    tree_joint = joint.pair.tree_joints.get(joint.coordinates)
    if tree_joint is None or joint.pair.dof == 0:
        return joint.pair.dof
    return int(tree_joint.build(joint.pair.advance, np.eye(3), orientation > 0)[0].nq)


@dataclass(frozen=True)
class Coupling:
    """One row ``sum_i P_i(q_i) = 0`` between joints with one degree of freedom each.

    Gears, racks, belts, mimic joints and polynomial cams. Coefficients start with the constant.

    Args:
        name: unique among the couplings and joints.
        joints: names of the joints.
        polynomials: per joint the coefficients of ``P_i``, lowest power first.
    """

    name: str
    joints: tuple[str, ...]
    polynomials: tuple[tuple[float, ...], ...]

    @staticmethod
    def linear(name: str, joint: str, source: str, ratio: float, offset: float = 0.0) -> Coupling:
        """Coupling ``q_joint = ratio * q_source + offset``."""
        return Coupling(name, (joint, source), ((-offset, 1.0), (0.0, -ratio)))

    def turn_period(self, loops: Mapping[str, Joint]) -> float | None:
        """Smallest change of the row by whole turns of joints that close loops; 0 if none turns.

        Placements of bodies do not tell how often such joints have turned, and so the row only up
        to multiples of this. Joints with limits within a turn, `middle_of_turn`, need not count.

        Args:
            loops: those of its joints that close loops.

        Returns:
            None where there is none: gears whose ratio is not one of small whole numbers, and
            polynomials of higher degree in a joint that may turn further.
        """
        slopes, free = list[float](), list[float]()
        for name, (_, slope, *curved) in zip(self.joints, self.polynomials, strict=True):
            joint = loops.get(name)
            if joint is None or joint.pair.turns != "z" or joint.pair.advance:
                continue
            turns_once = middle_of_turn(joint) is not None
            if any(curved) and not turns_once:
                return None
            if not any(curved) and slope:
                slopes.append(slope)
                free += [] if turns_once else [slope]
        common = _common_measure(slopes)
        return common if common is not None else _common_measure(free)


def middle_of_turn(joint: Joint) -> float | None:
    """Middle of the range of a joint [rad], if its file limits it to less than a turn."""
    if len(joint.lower) == 1 and joint.upper[0] - joint.lower[0] < 2.0 * math.pi:
        return 0.5 * (joint.lower[0] + joint.upper[0])
    return None


def _common_measure(slopes: Sequence[float]) -> float | None:
    """The change by a turn that all changes by whole turns are multiples of; None if too small."""
    if not slopes:
        return 0.0
    parts = [Fraction(slope / slopes[0]).limit_denominator(MOST_TEETH) for slope in slopes]
    exact = all(
        abs(part - slope / slopes[0]) <= SAME * abs(part)
        for part, slope in zip(parts, slopes, strict=True)
    )
    below = math.lcm(*(part.denominator for part in parts))
    if not exact or below > MOST_TEETH:
        return None
    above = math.gcd(*(part.numerator * below // part.denominator for part in parts))
    return 2.0 * math.pi * abs(slopes[0]) * above / below


def is_mimic(coupling: Coupling) -> bool:
    """Whether a coupling is one that a `<mimic>` of a URDF says, and has the name that it gives."""
    rows, joint = coupling.polynomials, coupling.joints[0]
    linear = len(rows) == 2 and all(len(row) == 2 for row in rows)
    return linear and rows[0][1] == 1 and not rows[1][0] and coupling.name == f"{joint}:mimic"


@dataclass(frozen=True)
class Drive:
    """What turns a joint.

    Args:
        joint: name of the joint.
        reduction: motor turns per joint turn [-] (rad/m on a sliding joint).
        rotor_inertia: inertia of the rotor on the motor side [kg m^2], or None if not known.
    """

    joint: str
    reduction: float = 1.0
    rotor_inertia: float | None = None


@dataclass(frozen=True)
class Shape:
    """A primitive or a mesh.

    Args:
        kind: what it is.
        size: box (x, y, z); sphere (radius,); cylinder and capsule (radius, length along z, of a
            capsule without its caps); ellipsoid (radii x, y, z); mesh (scale x, y, z). Full
            lengths [m].
        path: file of a mesh.
    """

    kind: Literal["box", "sphere", "cylinder", "capsule", "ellipsoid", "mesh"]
    size: tuple[float, ...]
    path: Path | None = None


@dataclass(frozen=True, eq=False)
class Geometry:
    """A shape on a body, to be seen or to be collided with.

    Args:
        name: unique among the geometries of the same role.
        body: name of the body that carries it.
        role: "visual" or "collision".
        shape: the shape.
        placement: placement of the shape in the body frame.
        color: red, green, blue, alpha in [0, 1], or None for the viewer's default.
    """

    name: str
    body: str
    role: Literal["visual", "collision"]
    shape: Shape
    placement: pin.SE3
    color: tuple[float, float, float, float] | None = None


@dataclass(frozen=True, eq=False)
class NamedFrame:
    """A named frame on a body (a tool point, an MJCF site, an SDF frame).

    Args:
        name: unique among bodies, joints and frames.
        body: name of the body that carries it, or `GROUND`.
        placement: placement in the body frame.
    """

    name: str
    body: str
    placement: pin.SE3


@dataclass(frozen=True)
class Rounding:
    """By how much joint frames were moved because numbers are rounded; prints as a sentence.

    Args:
        tolerance: largest turn [rad] or shift [lengths of the robot] that counts as rounding.
        shift: largest shift of a joint frame [m].
        turn: largest turn of a joint frame [rad].
        joint: the joint whose frame was moved most.
    """

    tolerance: float
    shift: float
    turn: float
    joint: str

    @property
    def extent(self) -> str:
        """By how much frames were moved, and which one most, as a part of a sentence."""
        scale, unit = length_scale(self.shift)
        return (
            f"by up to {scale * self.shift:.2g} {unit} and {np.degrees(self.turn):.2g} deg (most "
            f"of '{self.joint}')"
        )

    def __str__(self) -> str:
        return (
            f"joint frames moved {self.extent}; tolerance {self.tolerance:.2g} rad and lengths of "
            "the robot"
        )


_TOOLS = ("tcp", "tool0", "tool", "ee", "end_effector", "flange")
"""Names by which the frame of a tool is recognised, best first."""


@dataclass(frozen=True, eq=False)
class Description:
    """A whole robot as its file describes it.

    Args:
        name: name of the robot.
        bodies: the bodies, without the ground.
        joints: tree and loop joints; children of a body come in the order of this tuple.
        base: body that is welded to the ground, if the joints do not say where the ground is.
        couplings: rows between joint coordinates.
        actuated: names of the actuated joints, or None if the file does not say.
        drives: transmissions.
        frames: further named frames.
        geometry: visuals and collision shapes.
        gravity: gravity vector [m/s^2], shape (3,).
        warnings: what the reader did not understand or had to assume.
        source: file or kind of input it was read from.
        rounding: how joint frames differ from what was read, or None if they do not.
    """

    name: str
    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...]
    base: str | None = None
    couplings: tuple[Coupling, ...] = ()
    actuated: tuple[str, ...] | None = None
    drives: tuple[Drive, ...] = ()
    frames: tuple[NamedFrame, ...] = ()
    geometry: tuple[Geometry, ...] = ()
    gravity: Array = field(default_factory=lambda: constant((0.0, 0.0, -9.81)))
    warnings: tuple[str, ...] = ()
    source: str = ""
    rounding: Rounding | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "gravity", constant(self.gravity))

    @property
    def tool(self) -> str | None:
        """The frame or body whose name means a tool, if there is one."""
        names = [thing.name for things in (self.frames, self.bodies) for thing in things]
        called = {name.lower(): name for name in names}
        return next((called[name] for name in _TOOLS if name in called), None)

    __reduce__ = construct_again
