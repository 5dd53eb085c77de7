"""What stands beside a robot file: Gepetto's YAML, SRDF, and frames that are named for a loop.

Gepetto's YAML has pairs of frames that close loops, motors, and changed joint types: a revolute
joint of the URDF may become spherical, fixed, or two revolutes with crossing axes. Old files give
parts of names (``name_mot: mot``) instead of lists. Of an SRDF only joints without a motor count.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import PurePath
from types import NoneType
from typing import Annotated, Any

import numpy as np
import pinocchio as pin

from ..boundary.marks import Name, Short
from ..boundary.schema import keys_of, read_data
from ..boundary.xml import Element, Remarks
from ..boundary.yaml import line_of
from ..errors import LoadError, UnknownName, suggestion
from ..model.description import Body, Description, Joint
from ..model.pairs import align_z, make_pair
from ..tolerances import SAME_PLACE
from .loopsfile import known_joints, need_unique, without_passive
from .quantities import locate, turn

_CLOSING = re.compile(r"^closing_(.+)_([12])$")

_nothing = Short(NoneType, lambda value: () if value is None else value)
_Names = Annotated[tuple[Name, ...], _nothing]


@dataclass(frozen=True, kw_only=True)
class _GepettoFile:
    """What is read of the file."""

    closed_loop: Annotated[tuple[tuple[Name, Name], ...], _nothing]
    type: tuple[Name, ...] | None = None
    name_mot: tuple[Name, ...] | None = None
    rotule_name: Name | None = None
    joint_name: _Names = ()
    joint_type: _Names = ()


_CHANGE = re.compile(r"SPHERICAL|FIXED|UJOINT_([XYZ])(?!\1)[XYZ]")
"""Types that a joint may be changed to."""


def apply_gepetto(description: Description, data: dict[str, Any], source: str) -> Description:
    """Add what a Gepetto YAML, read as ``data``, says to the tree of its URDF.

    Joint types are replaced; each pair of frames becomes a spherical ('3d') or fixed (anything
    else) loop joint called ``<frame A>-<frame B>``. ``source`` is the name of the file, for
    messages.
    """
    given, part = data, data.get("name_mot")
    if isinstance(part, str):
        motors = [joint.name for joint in description.joints if part in joint.name]
        given = {**data, "name_mot": motors}
    reader = _Gepetto(read_data(_GepettoFile, given, source, extra=True), data, source)
    for key in (key for key in data if key not in keys_of(_GepettoFile)):
        reader.remark(f"key '{key}' is not read{suggestion(key, keys_of(_GepettoFile))}", key)
    loops = reader.loops(description)
    description = reader.with_changed_joints(description)
    joints = (*description.joints, *loops)
    need_unique([joint.name for joint in joints], "joint", source)
    actuated = reader.file.name_mot
    if actuated is not None:
        known_joints(actuated, joints, "name_mot", source)
    return replace(
        description,
        joints=joints,
        actuated=description.actuated if actuated is None else actuated,
        warnings=(*description.warnings, *reader.warnings),
    )


class _Gepetto:
    """A Gepetto file as it is read: ``data`` knows the lines of ``source``."""

    def __init__(self, file: _GepettoFile, data: object, source: str) -> None:
        self.file = file
        self.warnings: list[str] = []
        self._data = data
        self._source = source

    def remark(self, problem: str, *path: str | int) -> None:
        """Warn of something at a place of the file."""
        line = line_of(self._data, path)
        place = self._source if line is None else f"{self._source}:{line}"
        self.warnings.append(f"{place}: {problem}")

    def _error(self, problem: str, *path: str | int) -> LoadError:
        return LoadError(problem, source=self._source, line=line_of(self._data, path))

    def loops(self, description: Description) -> list[Joint]:
        """One loop joint per pair of frames."""
        pairs, kinds = self.file.closed_loop, self.file.type
        if kinds is None:
            kinds = ("6d",) * len(pairs)
            if kinds:
                self.remark("no 'type' of the loops is given; all six directions close")
        if len(kinds) != len(pairs):
            raise self._error(
                f"'closed_loop' has {len(pairs)} pairs of frames, but 'type' has {len(kinds)} "
                "entries; give one type per pair",
                "type",
            )
        joints = []
        for index, (names, kind) in enumerate(zip(pairs, kinds, strict=True)):
            name, where = "-".join(names), ("closed_loop", index)
            if kind.lower() not in ("3d", "6d"):
                self.remark(f"type '{kind}' of loop {name} is taken as '6d'", "type", index)
            try:
                (parent, frame_a), (child, frame_b) = (locate(description, name) for name in names)
            except UnknownName as error:
                raise self._error(f"closed_loop[{index}]: {error}", *where) from None
            if parent == child:
                problem = f"'{names[0]}' and '{names[1]}' are on one body, '{parent}'"
                raise self._error(f"closed_loop[{index}]: {problem}", *where)
            pair = make_pair("spherical" if kind.lower() == "3d" else "fixed")
            joints.append(Joint(name, pair, parent, child, frame_a, frame_b, cut=True))
        return joints

    def with_changed_joints(self, description: Description) -> Description:
        """Replace the joints whose type the file changes."""
        names, kinds, part = self.file.joint_name, self.file.joint_type, self.file.rotule_name
        if len(names) != len(kinds):
            raise self._error(
                f"'joint_name' has {len(names)} joints, but 'joint_type' has {len(kinds)} types; "
                "give one type per joint",
                "joint_type",
            )
        known_joints(names, description.joints, "joint_name", self._source)
        matching = [j.name for j in description.joints if part is not None and part in j.name]
        changes = dict.fromkeys(matching, "SPHERICAL")
        for index, (name, kind) in enumerate(zip(names, kinds, strict=True)):
            changes[name] = kind.upper()
            if not _CHANGE.fullmatch(changes[name]):
                raise self._error(
                    f"joint_type[{index}] is '{kind}' for joint '{name}'; known are SPHERICAL, "
                    "FIXED and UJOINT_ with two different axes, e.g. UJOINT_XY",
                    "joint_type",
                    index,
                )
        bodies = list(description.bodies)
        joints: list[Joint] = []
        for joint in description.joints:
            if joint.name not in changes:
                joints.append(joint)
                continue
            if joint.pair.origins_apart:
                problem = f"the {joint.pair.name} '{joint.name}' cannot change its type"
                raise self._error(problem)
            new_joints, new_bodies = _changed(joint, changes[joint.name])
            joints += new_joints
            bodies += new_bodies
        need_unique([body.name for body in bodies], "body", self._source)
        description = replace(description, bodies=tuple(bodies), joints=tuple(joints))
        return self._without_lost(description, set(changes))

    def _without_lost(self, description: Description, changed: set[str]) -> Description:
        """Take out drives and motors of joints that changed; a coupling of one is an error."""
        for coupling in description.couplings:
            for name in sorted(changed & set(coupling.joints)):
                problem = f"joint '{name}' changes its type, but coupling '{coupling.name}' uses it"
                raise self._error(problem)
        drives = [drive for drive in description.drives if drive.joint not in changed]
        actuated = description.actuated
        driven = {*(drive.joint for drive in description.drives), *(actuated or ())}
        for name in sorted(changed & driven):
            self.remark(f"joint '{name}' changes its type and loses its drive")
        if actuated is not None:
            actuated = tuple(name for name in actuated if name not in changed)
        return replace(description, drives=tuple(drives), actuated=actuated)


def _changed(joint: Joint, kind: str) -> tuple[list[Joint], list[Body]]:
    """What replaces a joint, without what belonged to its old coordinates.

    A fixed joint holds where its coordinates are zero. New coordinates are about the axes of the
    child link, which are those of a URDF joint: of UJOINT_XY x first, with a body after it.
    """
    frame_a, frame_b = joint.frame_parent, joint.frame_child
    ends = joint.parent, joint.child
    if kind == "FIXED":
        return [Joint(joint.name, make_pair("fixed"), *ends, frame_a, frame_b, joint.cut)], []
    back = turn(frame_b.rotation.T)
    frame_a, frame_b = frame_a * back, frame_b * back
    if kind == "SPHERICAL":
        return [Joint(joint.name, make_pair("spherical"), *ends, frame_a, frame_b, joint.cut)], []
    axes = kind[-2:]
    first, second = (turn(align_z(np.eye(3)["XYZ".index(axis)])) for axis in axes)
    pair, cross = make_pair("revolute"), Body(f"{joint.name}_cross", is_between=True)
    # The body in between must be reached even where the joint itself closes a loop.
    carried = joint.parent, cross.name, frame_a * first, first, False if joint.cut else joint.cut
    closing = cross.name, joint.child, second, frame_b * second, joint.cut
    return [
        Joint(f"{joint.name}_{axes[0]}", pair, *carried),
        Joint(f"{joint.name}_{axes[1]}", pair, *closing),
    ], [cross]


# -- SRDF -----------------------------------------------------------------------------------------


def apply_srdf(description: Description, root: Element) -> Description:
    """Take out the passive joints of an SRDF; other tree joints with one coordinate have a motor.

    What is known of motors already stays, but for the passive joints.
    """
    known = {joint.name for joint in description.joints}
    # The joint between the world and the robot is declared in the SRDF itself.
    virtual = {element.get("name") for element in root.all("virtual_joint")}
    elements = {element.require("name"): element for element in root.all("passive_joint")}
    warnings = [
        f"{element.source}:{element.line}: {element!r} names a joint that the robot does not have; "
        "left out"
        for name, element in elements.items()
        if name not in known | virtual
    ]
    actuated = description.actuated
    if passive := elements.keys() & known:
        actuated = without_passive(description.joints, actuated, passive)
    warnings = [*description.warnings, *warnings]
    return replace(description, actuated=actuated, warnings=tuple(warnings))


# -- closing frames -------------------------------------------------------------------------------


def close_frames(description: Description) -> Description:
    """Close the pairs of frames ``closing_<name>_1`` and ``_2`` of onshape-to-robot and PlaCo.

    A loop of the same name that is declared already wins; the pair is not known, so a point is
    taken, with a warning.
    """
    places = {body.name: (body.name, pin.SE3.Identity()) for body in description.bodies}
    places |= {frame.name: (frame.body, frame.placement) for frame in description.frames}
    declared = {joint.name for joint in description.joints}
    pairs: dict[str, dict[str, str]] = {}
    for name in places:
        if match := _CLOSING.match(name):
            pairs.setdefault(match[1], {})[match[2]] = name
    joints: list[Joint] = []
    remarks = Remarks()
    file = PurePath(description.source).name
    for stem, ends in pairs.items():
        loop = f"closing_{stem}"
        if declared & {stem, loop}:
            continue
        if len(ends) < 2:
            lone = next(iter(ends.values()))
            remarks.say(f"{file}: frame '{lone}' has no partner to close a loop with")
            continue
        (body_a, frame_a), (body_b, frame_b) = places[ends["1"]], places[ends["2"]]
        if _joined(description, places[ends["1"]], places[ends["2"]]):
            continue
        joints.append(
            Joint(loop, make_pair("spherical"), body_a, body_b, frame_a, frame_b, cut=True)
        )
        problem = f"{file}: frames '{ends['1']}' and '{ends['2']}' are joined by a spherical pair"
        advice = "; name other pairs for these loops in a loops file"
        remarks.about(("closing frames",), loop, problem, advice)
    return replace(
        description,
        joints=(*description.joints, *joints),
        warnings=(*description.warnings, *remarks.texts()),
    )


def _joined(
    description: Description, first: tuple[str, pin.SE3], second: tuple[str, pin.SE3]
) -> bool:
    """Whether some joint already joins two frames."""

    def same(end: tuple[str, pin.SE3], other: tuple[str, pin.SE3]) -> bool:
        # The axes of a pair may be turned against the frame it was asked for.
        (body, a), (another, b) = end, other
        return body == another and np.allclose(a.translation, b.translation, atol=SAME_PLACE)

    return any(
        same(a, first) and same(b, second)
        for joint in description.joints
        for a, b in permutations(
            ((joint.parent, joint.frame_parent), (joint.child, joint.frame_child))
        )
    )
