"""The loops file: loop joints, couplings and actuation beside a tree, in YAML of our own.

What the file may say is the model `LoopsFile`, whose JSON schema is part of the documentation;
`apply_loops` adds what it says to a description.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, Literal

import numpy as np
import pinocchio as pin

from ..boundary.json import json_schema_of
from ..boundary.marks import Check, Direction, Name, NotNegative, Vector3
from ..boundary.xml import pose_rpy
from ..errors import BadValue, LoadError, UnknownName
from ..model.description import Coordinates, Description, Drive, Joint, constant
from ..model.pairs import align_z
from .companions import without_passive
from .entries import (
    CouplingEntry,
    LimitsEntry,
    PairEntry,
    known_joints,
    locate,
    make_couplings,
    need_unique,
)
from .quantities import reversed_joint, universal_axes

__all__ = [
    "FORMAT",
    "DriveEntry",
    "FrameEntry",
    "LoopEntry",
    "LoopsFile",
    "LossesEntry",
    "apply_loops",
    "json_schema",
]

FORMAT: Literal["pinloop-loops-1"] = "pinloop-loops-1"
"""Version tag of the loops file."""


@dataclass(frozen=True, kw_only=True)
class FrameEntry:
    """A frame on a body. The placement is relative to what is named.

    A joint's name means the frame of its child body.
    """

    body: Annotated[Name | None, "body, or 'ground'; either this or 'frame'"] = None
    frame: Annotated[Name | None, "named frame, body or joint"] = None
    xyz: Annotated[Vector3, "position [m]"] = (0.0, 0.0, 0.0)
    rpy: Annotated[Vector3, "roll, pitch, yaw about fixed axes [rad]"] = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        if (self.body is None) == (self.frame is None):
            raise ValueError("needs either 'body' or 'frame', with the name of one")

    @property
    def name(self) -> str:
        """Name to look up."""
        return self.body or self.frame or ""


@dataclass(frozen=True, kw_only=True)
class LossesEntry:
    """Losses and rotor of a joint, one value per degree of freedom."""

    damping: Annotated[tuple[float, ...], "viscous damping [N m s/rad, N s/m]"] = ()
    friction: Annotated[tuple[float, ...], "dry friction [N m, N]"] = ()
    armature: Annotated[tuple[float, ...], "reflected rotor inertia [kg m^2, kg]"] = ()


@dataclass(frozen=True, kw_only=True)
class LoopEntry(PairEntry):
    """A joint that closes a loop between frames A and B."""

    name: Annotated[Name, "name of the joint, unique"]
    a: Annotated[FrameEntry, "frame A"]
    b: Annotated[FrameEntry, "frame B"]
    axis: Annotated[
        Direction | None, "axis, expressed in both A and B (universal: in A); 0 0 1 by default"
    ] = None
    axis2: Annotated[Direction | None, "second axis, expressed in B (universal only)"] = None
    cut: Annotated[
        bool | None, "true: always cut; null: free choice; false: in the tree if possible"
    ] = True
    coordinates: Annotated[
        Coordinates, "variant of the coordinates, should the joint come into the tree"
    ] = ""
    limits: Annotated[LimitsEntry | None, "limits, likewise"] = None
    losses: Annotated[LossesEntry | None, "damping, friction, armature, likewise"] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            pair = self.make_pair()
        except BadValue as error:
            raise ValueError(str(error)) from None
        if self.axis is not None and not pair.axis_count():
            raise ValueError(f"a {pair.name} pair has no axis; leave it out")


def _turns(reduction: float) -> None:
    if reduction == 0:
        raise BadValue("a motor with reduction 0 does not turn")


@dataclass(frozen=True, kw_only=True)
class DriveEntry:
    """Gear and rotor of a joint."""

    reduction: Annotated[
        float, Check(_turns, {}), "motor turns per joint turn [-] (sliding: rad/m)"
    ] = 1.0
    rotor_inertia: Annotated[NotNegative | None, "inertia of the rotor, motor side [kg m^2]"] = None


@dataclass(frozen=True, kw_only=True)
class LoopsFile:
    """Loop joints, couplings and actuation of a robot whose tree another file describes."""

    format: Annotated[Literal["pinloop-loops-1"], "version of this format"] = FORMAT
    loops: Annotated[tuple[LoopEntry, ...], "joints that close loops"] = ()
    couplings: Annotated[tuple[CouplingEntry, ...], "gears, racks, cams"] = ()
    actuated: Annotated[tuple[Name, ...] | None, "joints with a motor, all of them"] = None
    passive: Annotated[tuple[Name, ...], "joints without a motor"] = ()
    cut: Annotated[tuple[Name, ...], "joints to cut; other loop joints become free"] = ()
    free: Annotated[tuple[Name, ...], "joints that may be cut or not, as is best"] = ()
    reversed: Annotated[
        tuple[Name, ...],
        "joints that the tree's file tells from the child's side: turned back here",
    ] = ()
    order: Annotated[tuple[Name, ...], "order of the joints; the others follow"] = ()
    drives: Annotated[Mapping[Name, DriveEntry], "gear and rotor per joint"] = field(
        default_factory=dict
    )
    limits: Annotated[
        Mapping[Name, LimitsEntry],
        "limits per joint instead of those in the tree's file; infinite: none",
    ] = field(default_factory=dict)
    gravity: Annotated[Vector3 | None, "gravity [m/s^2]"] = None


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of the loops file."""
    return json_schema_of(LoopsFile)


def apply_loops(description: Description, loops: LoopsFile, source: str) -> Description:
    """Add what a loops file says.

    Args:
        description: the tree, and the loops it already has.
        loops: the file.
        source: its name, for messages.

    Returns:
        A new description with the loop joints (cut unless the file says otherwise) and couplings
        added, and with ``actuated``, ``drives`` and ``gravity`` replaced where given.

    Raises:
        LoadError: a name that does not exist or exists already, or a coupling that cannot be.
    """
    joints = list(description.joints)
    for entry in loops.loops:
        joints.append(_loop_joint(description, entry, source))
    need_unique([joint.name for joint in joints], "joint", source)
    for key in ("cut", "free", "order", "reversed", "drives", "limits", "passive"):
        known_joints(getattr(loops, key), joints, key, source)
    joints = _chosen_cuts(joints, loops, source)
    joints = [reversed_joint(j) if j.name in loops.reversed else j for j in joints]
    joints = [_limited(joint, loops.limits.get(joint.name), source) for joint in joints]
    order = {name: place for place, name in enumerate(loops.order)}
    joints.sort(key=lambda joint: order.get(joint.name, len(order)))
    couplings = (*description.couplings, *make_couplings(loops.couplings, joints, source))
    names = [coupling.name for coupling in couplings] + [joint.name for joint in joints]
    need_unique(names, "joint or coupling", source)
    new_drives = {
        name: Drive(name, entry.reduction, entry.rotor_inertia)
        for name, entry in loops.drives.items()
    }
    old_drives = tuple(drive for drive in description.drives if drive.joint not in new_drives)
    gravity = description.gravity if loops.gravity is None else constant(loops.gravity)
    return replace(
        description,
        joints=tuple(joints),
        couplings=couplings,
        actuated=_actuated(description.actuated, loops, joints, source),
        drives=(*old_drives, *new_drives.values()),
        gravity=gravity,
    )


def _loop_joint(description: Description, entry: LoopEntry, source: str) -> Joint:
    """Joint of one entry, with the axes of the pair in z (universal: z of A, x of B)."""
    pair = entry.make_pair()
    ends = []
    for key, frame in (("a", entry.a), ("b", entry.b)):
        try:
            body, placement = locate(description, frame.name)
        except UnknownName as error:
            raise LoadError(f"loop '{entry.name}', {key}: {error}", source=source) from None
        pose = pose_rpy(np.array(frame.xyz), np.array(frame.rpy))
        ends.append((body, placement * pose))
    (parent, frame_a), (child, frame_b) = ends
    if parent == child:
        problem = f"loop '{entry.name}' joins '{parent}' with itself; give two bodies"
        raise LoadError(problem, source=source)
    turn_a = turn_b = np.eye(3)
    axis = np.array(entry.axis or (0.0, 0.0, 1.0))
    if entry.axis2 is not None:
        axis2 = np.array(entry.axis2)
        turn_a = universal_axes(axis, axis2)
        # x of B is the second axis; where the two are perpendicular, A and B turn alike.
        turn_b = universal_axes(axis2, axis)[:, [2, 1, 0]] * (1.0, -1.0, 1.0)
    elif pair.axis_count():
        turn_a = turn_b = align_z(axis)
    joint = Joint(
        entry.name,
        pair,
        parent,
        child,
        frame_a * pin.SE3(turn_a, np.zeros(3)),
        frame_b * pin.SE3(turn_b, np.zeros(3)),
        cut=entry.cut,
        coordinates=entry.coordinates,
    )
    if entry.losses is not None:
        joint = replace(joint, **asdict(entry.losses))
    return _limited(joint, entry.limits, source)


def _limited(joint: Joint, entry: LimitsEntry | None, source: str) -> Joint:
    """The joint with the limits that ``entry`` gives; infinite ones are none."""
    if entry is None:
        return joint
    try:
        values = entry.values(joint.pair.dof)
    except BadValue as error:
        raise LoadError(f"limits of joint '{joint.name}': {error}", source=source) from None
    values = {key: numbers or getattr(joint, key) for key, numbers in values.items()}
    # The side that is not given keeps what the joint has.
    for key, given in (("lower", entry.lower), ("upper", entry.upper)):
        if not given and getattr(joint, key):
            values[key] = getattr(joint, key)
    if np.all(np.isinf((*values["lower"], *values["upper"]))):
        values["lower"] = values["upper"] = ()
    for key in ("velocity", "effort"):
        if np.all(np.isinf(values[key])):
            values[key] = ()
    return replace(joint, **values)


def _chosen_cuts(joints: list[Joint], loops: LoopsFile, source: str) -> list[Joint]:
    """Cut what the user names; what was cut before is free then, so that the tree can close."""
    both = sorted(set(loops.cut) & set(loops.free))
    if both:
        raise LoadError(f"joint '{both[0]}' is named in both 'cut' and 'free'", source=source)
    chosen = []
    for joint in joints:
        cut = joint.cut
        if joint.name in loops.cut:
            cut = True
        elif joint.name in loops.free or (loops.cut and cut):
            cut = None
        chosen.append(replace(joint, cut=cut))
    return chosen


def _actuated(
    before: tuple[str, ...] | None, loops: LoopsFile, joints: list[Joint], source: str
) -> tuple[str, ...] | None:
    """Actuated joints after the file has been heard."""
    if loops.actuated is None:
        return without_passive(joints, before, loops.passive) if loops.passive else before
    known_joints(loops.actuated, joints, "actuated", source)
    both = sorted(set(loops.actuated) & set(loops.passive))
    if both:
        raise LoadError(f"joint '{both[0]}' is both actuated and passive", source=source)
    return loops.actuated
