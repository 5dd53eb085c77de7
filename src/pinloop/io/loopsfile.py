"""The loops file: loop joints, couplings and actuation beside a tree, in YAML of our own.

What the file may say is the model `LoopsFile`, whose JSON schema is part of the documentation;
`apply_loops` adds what it says to a description. Entries for pairs, limits and couplings, and names
that must exist, are the same in screw tables and in Gepetto's YAML.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, Literal

import numpy as np

from ..boundary.marks import As, Check, Direction, Misfit, Name, NotNegative, Short, Vector3
from ..boundary.xml import pose_rpy
from ..errors import BadValue, LoadError, UnknownName
from ..model.description import LIMITS, Coordinates, Coupling, Description, Drive, Joint
from ..model.graph import with_cuts
from ..model.pairs import Pair, make_pair, pair_class
from .quantities import axes_rotation, locate, reversed_joint, turn

FORMAT: Literal["pinloop-loops-1"] = "pinloop-loops-1"
"""Version tag of the loops file."""


@dataclass(frozen=True, kw_only=True)
class PairEntry:
    """A pair with its axes and parameters, as loops file and screw table write it."""

    defined_in: Annotated[
        Name | None, "Python class of a pair that is not pinloop's own, as module:class"
    ] = None
    pair: Annotated[Name, "name of the pair"]
    axis: Annotated[Direction | None, "axis of the pair"] = None
    axis2: Annotated[Direction | None, "second axis (universal only)"] = None
    pitch: Annotated[float | None, "advance per radian [m/rad] (helical only)"] = None
    length: Annotated[float | None, "length [m] (rod only)"] = None
    parameters: Annotated[
        Mapping[Name, float | tuple[float, ...]], "parameters of a pair that is not pinloop's own"
    ] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            two_axes = self.pair_class.axis_count() == 2
        except BadValue as error:
            raise Misfit("pair", str(error)) from None
        if self.axis2 is not None and not two_axes:
            raise BadValue(f"a {self.pair_class.name} pair has no axis2; leave it out")
        if self.axis2 is None and two_axes:
            raise BadValue(f"a {self.pair_class.name} pair needs its second axis: axis2")

    @property
    def pair_class(self) -> type[Pair]:
        """The class that the name means."""
        return pair_class(self.pair, self.defined_in)

    def make_pair(self, measured: Mapping[str, float] | None = None) -> Pair:
        """Build the pair; what is ``measured`` is used where the entry gives no parameter."""
        given = {"pitch": self.pitch, "length": self.length, **self.parameters}
        given = {key: value for key, value in given.items() if value is not None}
        return make_pair(self.pair, **{**(measured or {}), **given})


def _limit(value: object) -> float:
    if isinstance(value, bool):
        raise ValueError("expected a number, not yes or no")
    try:
        limit = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise ValueError("expected a number") from None
    if math.isnan(limit):
        raise ValueError("expected a number")
    return limit


_Limit = Annotated[float, As(Any, _limit, {"type": "number"})]
_Limits = Annotated[tuple[_Limit, ...], Short(_Limit, lambda limit: (limit,))]
"""A number or one per degree of freedom; infinite ones are welcome."""


@dataclass(frozen=True, kw_only=True)
class LimitsEntry:
    """Limits of a joint, a number or one per degree of freedom."""

    lower: Annotated[_Limits, "lower position limit [rad, m]"] = ()
    upper: Annotated[_Limits, "upper position limit [rad, m]"] = ()
    velocity: Annotated[_Limits, "largest speed [rad/s, m/s]"] = ()
    effort: Annotated[_Limits, "largest torque or force [N m, N]"] = ()

    def __post_init__(self) -> None:
        if self.lower and self.upper and len(self.lower) != len(self.upper):
            raise ValueError("needs as many lower limits as upper ones")
        if any(low > high for low, high in zip(self.lower, self.upper, strict=False)):
            raise ValueError(f"lower limit {self.lower} is above upper limit {self.upper}")
        if any(value < 0 for value in (*self.effort, *self.velocity)):
            raise ValueError("effort and velocity limits must not be negative")

    def limit(self, joint: Joint) -> Joint:
        """Return the joint with these limits, and its own where none are given.

        Position limits have a value per coordinate, of which some pairs have more than degrees of
        freedom. Infinite limits are none.
        """
        dof = joint.pair.dof
        for key in ("velocity", "effort"):
            if len(values := getattr(self, key)) not in (0, dof):
                raise BadValue(f"{key} has {len(values)} values for {dof} degrees of freedom")
        limits = {key: getattr(self, key) or getattr(joint, key) for key in LIMITS}
        limits["lower"] = limits["lower"] or (-np.inf,) * len(limits["upper"])
        limits["upper"] = limits["upper"] or (np.inf,) * len(limits["lower"])
        for keys in (("lower", "upper"), ("velocity",), ("effort",)):
            if np.all(np.isinf([value for key in keys for value in limits[key]])):
                limits |= dict.fromkeys(keys, ())
        return replace(joint, **limits)


@dataclass(frozen=True, kw_only=True)
class CouplingEntry:
    """A gear, rack or cam: ``joint = ratio * source + offset``, or a sum of polynomials = 0."""

    name: Annotated[Name, "name of the coupling, unique among couplings and joints"]
    joint: Annotated[Name | None, "joint that follows"] = None
    source: Annotated[Name | None, "joint that is followed"] = None
    ratio: Annotated[float | None, "joint motion per source motion"] = None
    offset: Annotated[float | None, "joint position at source zero, 0 by default"] = None
    polynomials: Annotated[
        Mapping[Name, tuple[float, ...]] | None,
        "per joint the coefficients, constant first; their sum vanishes",
    ] = None

    def __post_init__(self) -> None:
        linear = (self.joint, self.source, self.ratio)
        if self.polynomials is None:
            if any(value is None for value in linear):
                raise ValueError("needs 'joint', 'source' and 'ratio', or else 'polynomials'")
            if self.joint == self.source:
                raise ValueError(f"couples joint '{self.joint}' with itself")
        elif any(value is not None for value in (*linear, self.offset)):
            raise ValueError("has 'polynomials' beside 'joint', 'source', 'ratio' or 'offset'")
        elif not any(c for row in self.polynomials.values() for c in row[1:]):
            raise ValueError("needs a joint with a coefficient beyond the constant one")

    def make(self) -> Coupling:
        """Build the coupling row."""
        if self.polynomials is not None:
            rows = {
                joint: (*row, 0.0, 0.0)[: max(2, len(row))]
                for joint, row in self.polynomials.items()
            }
            return Coupling(self.name, tuple(rows), tuple(rows.values()))
        return Coupling.linear(
            self.name, self.joint or "", self.source or "", self.ratio or 0.0, self.offset or 0.0
        )


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
    beside: Annotated[
        Name | None,
        "end of the robot's file, such as .urdf: beside no other is it found by its name",
    ] = None
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


def apply_loops(description: Description, loops: LoopsFile, source: str) -> Description:
    """Add what a loops file says; ``source`` is its name, for messages.

    Loop joints (cut unless the file says otherwise) and couplings are added; ``actuated``,
    ``drives`` and ``gravity`` replace what was there.
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
    return replace(
        description,
        joints=tuple(joints),
        couplings=couplings,
        actuated=_actuated(description.actuated, loops, joints, source),
        drives=(*old_drives, *new_drives.values()),
        gravity=description.gravity if loops.gravity is None else np.array(loops.gravity),
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
    axis = entry.axis or (0.0, 0.0, 1.0) if pair.axis_count() else None
    turn_a = turn_b = axes_rotation(axis, entry.axis2)
    if entry.axis2 is not None:
        # x of B is the second axis; where the two are perpendicular, A and B turn alike.
        turn_b = axes_rotation(entry.axis2, axis)[:, [2, 1, 0]] * (1.0, -1.0, 1.0)
    frames = frame_a * turn(turn_a), frame_b * turn(turn_b)
    joint = Joint(entry.name, pair, parent, child, *frames, entry.cut, entry.coordinates)
    if entry.losses is not None:
        joint = replace(joint, **asdict(entry.losses))
    return _limited(joint, entry.limits, source)


def _limited(joint: Joint, entry: LimitsEntry | None, source: str) -> Joint:
    """The joint with the limits of an entry, if there is one."""
    try:
        return joint if entry is None else entry.limit(joint)
    except BadValue as error:
        raise LoadError(f"limits of joint '{joint.name}': {error}", source=source) from None


def _chosen_cuts(joints: Sequence[Joint], loops: LoopsFile, source: str) -> list[Joint]:
    """Cut what the user names; what was cut before is free then, so that the tree can close."""
    if both := sorted({*loops.cut} & {*loops.free}):
        raise LoadError(f"joint '{both[0]}' is named in both 'cut' and 'free'", source=source)
    joints = with_cuts(joints, loops.cut) if loops.cut else joints
    return [replace(joint, cut=None) if joint.name in loops.free else joint for joint in joints]


def _actuated(
    before: tuple[str, ...] | None, loops: LoopsFile, joints: list[Joint], source: str
) -> tuple[str, ...] | None:
    """Actuated joints after the file has been heard."""
    if loops.actuated is None:
        return without_passive(joints, before, loops.passive) if loops.passive else before
    known_joints(loops.actuated, joints, "actuated", source)
    if both := sorted({*loops.actuated} & {*loops.passive}):
        raise LoadError(f"joint '{both[0]}' is both actuated and passive", source=source)
    return loops.actuated


# -- for the other tables -------------------------------------------------------------------------


def known_joints(names: Iterable[str], joints: Sequence[Joint], key: str, source: str) -> None:
    """Check that ``key`` names joints that exist, each once."""
    names, known = list(names), [joint.name for joint in joints]
    for name in names:
        if name not in known:
            raise LoadError(f"{key}: {UnknownName('joint', name, known)}", source=source)
    need_unique(names, f"{key}: joint", source)


def make_couplings(
    entries: Iterable[CouplingEntry], joints: Sequence[Joint], source: str
) -> tuple[Coupling, ...]:
    """Build coupling rows between joints with one degree of freedom."""
    couplings = tuple(entry.make() for entry in entries)
    dofs = {joint.name: joint.pair.dof for joint in joints}
    for coupling in couplings:
        where = f"coupling '{coupling.name}'"
        known_joints(coupling.joints, joints, where, source)
        for name in coupling.joints:
            if dofs[name] != 1:
                problem = f"joint '{name}' has {dofs[name]} degrees of freedom; only one can be"
                raise LoadError(f"{where}: {problem} coupled", source=source)
    return couplings


def need_unique(names: Iterable[str], kind: str, source: str) -> None:
    """Check that no name occurs twice."""
    for name, number in Counter(names).items():
        if number > 1:
            raise LoadError(f"{kind} '{name}' is there twice; names must be unique", source=source)


def without_passive(
    joints: Iterable[Joint], actuated: tuple[str, ...] | None, passive: Collection[str]
) -> tuple[str, ...]:
    """Names of the actuated joints without the ``passive`` ones.

    Where ``actuated`` is None, all tree joints with one degree of freedom are.
    """
    if actuated is None:
        actuated = tuple(j.name for j in joints if j.cut is not True and j.pair.dof == 1)
    return tuple(name for name in actuated if name not in passive)
