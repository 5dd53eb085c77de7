"""What stands beside a robot file: Gepetto's YAML, SRDF, and frames that are named for a loop.

Gepetto's YAML has pairs of frames that close loops, motors, and changed joint types: a revolute
joint of the URDF may become spherical, fixed, or two revolutes with crossing axes. Old files give
parts of names (``name_mot: mot``) instead of lists. Of an SRDF only joints without a motor count.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
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

__all__ = ["apply_gepetto", "apply_srdf", "close_frames"]

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


def apply_gepetto(description: Description, data: dict[str, Any], source: str) -> Description:
    """Add what a Gepetto YAML, read as ``data``, says to the tree of its URDF.

    Joint types are replaced; each pair of frames becomes a spherical ('3d') or fixed (anything
    else) loop joint called ``<frame A>-<frame B>``. ``source`` is the name of the file, for
    messages.
    """
    old_motors = data.get("name_mot") if isinstance(data, dict) else None
    if isinstance(old_motors, str):
        motors = [j.name for j in description.joints if old_motors in j.name]
        file = read_data(_GepettoFile, {**data, "name_mot": motors}, source, extra=True)
    else:
        file = read_data(_GepettoFile, data, source, extra=True)
    warnings = [
        f"{_place(source, data, key)}: key '{key}' is not read"
        f"{suggestion(key, keys_of(_GepettoFile))}"
        for key in data
        if key not in keys_of(_GepettoFile)
    ]
    loops = _loops(description, file, data, source, warnings)
    description = _replaced_joints(description, file, data, source, warnings)
    joints = (*description.joints, *loops)
    need_unique([joint.name for joint in joints], "joint", source)
    actuated = description.actuated
    if file.name_mot is not None:
        known_joints(file.name_mot, joints, "name_mot", source)
        actuated = file.name_mot
    return replace(
        description,
        joints=joints,
        actuated=actuated,
        warnings=(*description.warnings, *warnings),
    )


def _place(source: str, data: object, *path: str | int) -> str:
    line = line_of(data, path)
    return source if line is None else f"{source}:{line}"


def _loops(
    description: Description, file: _GepettoFile, data: object, source: str, warnings: list[str]
) -> list[Joint]:
    """One loop joint per pair of frames."""
    kinds = file.type
    if kinds is None:
        kinds = ("6d",) * len(file.closed_loop)
        if kinds:
            warnings.append(f"{source}: no 'type' of the loops is given; all six directions close")
    if len(kinds) != len(file.closed_loop):
        raise LoadError(
            f"'closed_loop' has {len(file.closed_loop)} pairs of frames, but 'type' has "
            f"{len(kinds)} entries; give one type per pair",
            source=source,
            line=line_of(data, ("type",)),
        )
    joints = []
    for index, (names, kind) in enumerate(zip(file.closed_loop, kinds, strict=True)):
        where = _place(source, data, "type", index)
        if kind.lower() not in ("3d", "6d"):
            warnings.append(
                f"{where}: type '{kind}' of loop {names[0]}-{names[1]} is taken as '6d'"
            )
        pair = make_pair("spherical" if kind.lower() == "3d" else "fixed")
        line = line_of(data, ("closed_loop", index))
        try:
            (parent, frame_a), (child, frame_b) = (locate(description, name) for name in names)
        except UnknownName as error:
            raise LoadError(f"closed_loop[{index}]: {error}", source=source, line=line) from None
        if parent == child:
            problem = f"closed_loop[{index}]: '{names[0]}' and '{names[1]}' are on one body, "
            raise LoadError(problem + f"'{parent}'", source=source, line=line)
        name = f"{names[0]}-{names[1]}"
        joints.append(Joint(name, pair, parent, child, frame_a, frame_b, cut=True))
    return joints


def _replaced_joints(
    description: Description,
    file: _GepettoFile,
    data: object,
    source: str,
    warnings: list[str],
) -> Description:
    """Replace the joints whose type the file changes."""
    if len(file.joint_name) != len(file.joint_type):
        raise LoadError(
            f"'joint_name' has {len(file.joint_name)} joints, but 'joint_type' has "
            f"{len(file.joint_type)} types; give one type per joint",
            source=source,
            line=line_of(data, ("joint_type",)),
        )
    known_joints(file.joint_name, description.joints, "joint_name", source)
    changes: dict[str, Callable[[Joint], tuple[list[Joint], list[Body]]]] = {}
    if file.rotule_name is not None:
        matching = (joint.name for joint in description.joints if file.rotule_name in joint.name)
        changes |= dict.fromkeys(matching, _spherical)
    for index, (name, kind) in enumerate(zip(file.joint_name, file.joint_type, strict=True)):
        change = _change(kind)
        if change is None:
            raise LoadError(
                f"joint_type[{index}] is '{kind}' for joint '{name}'; known are SPHERICAL, FIXED "
                "and UJOINT_ with two different axes, e.g. UJOINT_XY",
                source=source,
                line=line_of(data, ("joint_type", index)),
            )
        changes[name] = change
    bodies = list(description.bodies)
    joints: list[Joint] = []
    for joint in description.joints:
        if joint.name not in changes:
            joints.append(joint)
            continue
        if joint.pair.origins_apart:
            raise LoadError(
                f"the {joint.pair.name} '{joint.name}' cannot change its type", source=source
            )
        new_joints, new_bodies = changes[joint.name](joint)
        joints += new_joints
        bodies += new_bodies
    need_unique([body.name for body in bodies], "body", source)
    description = replace(description, bodies=tuple(bodies), joints=tuple(joints))
    return _without_lost(description, set(changes), source, warnings)


def _change(kind: str) -> Callable[[Joint], tuple[list[Joint], list[Body]]] | None:
    """Function that replaces a joint by one of type ``kind``; None if there is no such type."""
    kind = kind.upper()
    if kind == "SPHERICAL":
        return _spherical
    if kind == "FIXED":
        return _fixed
    prefix, _, axes = kind.partition("_")
    if prefix == "UJOINT" and len(axes) == 2 and axes[0] != axes[1] and set(axes) <= set("XYZ"):
        return lambda joint: _crossed(joint, axes)
    return None


def _seat(joint: Joint) -> tuple[pin.SE3, pin.SE3]:
    """Frames A and B of the joint, turned so that B has the axes of its body.

    A URDF joint has the axes of its child link; new coordinates are about these.
    """
    back = turn(joint.frame_child.rotation.T)
    return joint.frame_parent * back, joint.frame_child * back


def _bare(joint: Joint, pair: str, frame_parent: pin.SE3, frame_child: pin.SE3) -> Joint:
    """The joint with another pair; what belonged to the old coordinates is gone."""
    ends = (joint.parent, joint.child)
    return Joint(joint.name, make_pair(pair), *ends, frame_parent, frame_child, cut=joint.cut)


def _spherical(joint: Joint) -> tuple[list[Joint], list[Body]]:
    return [_bare(joint, "spherical", *_seat(joint))], []


def _fixed(joint: Joint) -> tuple[list[Joint], list[Body]]:
    """Fixed where its coordinates are zero."""
    return [_bare(joint, "fixed", joint.frame_parent, joint.frame_child)], []


def _crossed(joint: Joint, axes: str) -> tuple[list[Joint], list[Body]]:
    """Two revolutes, about the first axis and then about the second, and a body in between."""
    frame_parent, frame_child = _seat(joint)
    cross = Body(f"{joint.name}_cross")
    first, second = (turn(align_z(np.eye(3)["XYZ".index(axis)])) for axis in axes)
    revolute = _bare(joint, "revolute", frame_parent * first, frame_child * second)
    # The body in between must be reached even where the joint itself closes a loop.
    carrier = replace(revolute, cut=False) if joint.cut else revolute
    return [
        replace(carrier, name=f"{joint.name}_{axes[0]}", child=cross.name, frame_child=first),
        replace(revolute, name=f"{joint.name}_{axes[1]}", parent=cross.name, frame_parent=second),
    ], [cross]


def _without_lost(
    description: Description, changed: set[str], source: str, warnings: list[str]
) -> Description:
    """Take out drives and motors of joints that changed; a coupling of one is an error."""
    for coupling in description.couplings:
        lost = sorted(changed & set(coupling.joints))
        if lost:
            problem = f"joint '{lost[0]}' changes its type, but coupling '{coupling.name}' uses it"
            raise LoadError(problem, source=source)
    drives = [drive for drive in description.drives if drive.joint not in changed]
    actuated = description.actuated
    lost = sorted(changed & {*(drive.joint for drive in description.drives), *(actuated or ())})
    warnings += [f"{source}: joint '{name}' changes its type and loses its drive" for name in lost]
    if actuated is not None:
        actuated = tuple(name for name in actuated if name not in changed)
    return replace(description, drives=tuple(drives), actuated=actuated)


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

    def same(body: str, frame: pin.SE3, end: tuple[str, pin.SE3]) -> bool:
        # The axes of a pair may be turned against the frame it was asked for.
        return body == end[0] and np.allclose(
            frame.translation, end[1].translation, atol=SAME_PLACE
        )

    for joint in description.joints:
        ends = (joint.parent, joint.frame_parent), (joint.child, joint.frame_child)
        for a, b in (ends, ends[::-1]):
            if same(*a, first) and same(*b, second):
                return True
    return False
