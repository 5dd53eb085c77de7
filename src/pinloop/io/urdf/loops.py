"""Loops inside a URDF, in the dialects that exist (and Drake's constraints in SDF too).

`<loop_joint>`, URDF+ (`<loop>`, `<coupling>`, and what they were called before: `<constraint>` of
type position or rolling, `<loop_constraint>`, `<joint_constraint>`), the ROS proposal
(`<constraint>`), RaiSim's `<constraints>`, Drake's constraints, pairs of frames that are named for
it, as onshape-to-robot and PlaCo leave them. Each becomes a joint with ``cut=True`` or a coupling.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import PurePath

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ...boundary.xml import Element, Remarks, pose_of, pose_rpy
from ...errors import BadValue
from ...model.description import GROUND, Coupling, Description, Joint
from ...model.pairs import Pair, align_z, make_pair, pair_class
from ...tolerances import SAME_PLACE
from ..tree_placements import link_of, moving_path, reference_placements

__all__ = [
    "close_frames",
    "closing_joint",
    "drake_constraints",
    "raisim_constraints",
    "read_loops",
    "read_pair",
]

Array = NDArray[np.float64]

_DEFAULT_AXIS = (1.0, 0.0, 0.0)
_ENDS = (("predecessor", "successor"), ("link1", "link2"), ("parent", "child"))
"""What the two ends of a loop are called in the dialects."""
_CLOSING = re.compile(r"^closing_(.+)_([12])$")


def read_loops(root: Element, description: Description, remarks: Remarks) -> Description:
    """Add every loop joint and coupling that the URDF declares."""
    joints: list[Joint] = []
    couplings: list[Coupling] = []
    for element in root.children:
        if element.tag in ("coupling", "joint_constraint") or _is_rolling(element):
            couplings.append(_coupling(element, description))
        elif element.tag in ("loop_joint", "loop", "constraint", "loop_constraint"):
            joints.append(_loop(element, description))
        elif element.tag == "constraints":
            joints += raisim_constraints(element, root, description)
    description = replace(
        description,
        joints=(*description.joints, *joints),
        couplings=(*description.couplings, *couplings),
    )
    return drake_constraints(root, description, remarks)


def read_pair(element: Element) -> Pair:
    """Pair of a joint or loop joint, from its type and parameters.

    Those of a pair that is not pinloop's own are elements: what they are called is its business.
    """
    name = element.require("type").removesuffix("_joint")
    parameters: dict[str, float | list[float]] = {
        key: element.number(key) for key in ("pitch", "length") if element.get(key) is not None
    }
    for child in element.all("parameter"):
        values = [float(value) for value in child.numbers(child.get("value") or "", None, "value")]
        parameters[child.require("name")] = values[0] if len(values) == 1 else values
    try:
        pair_class(name, element.get("defined_in"))
        return make_pair(name, **parameters)
    except BadValue as error:
        raise element.error(str(error)) from None


def _is_rolling(element: Element) -> bool:
    return element.tag == "constraint" and element.get("type") == "rolling"


def _loop_pair(element: Element) -> Pair:
    """Pair of a loop; those of early URDF+, of type position or none, hold two points together."""
    early = {"constraint": "position", "loop_constraint": None}
    if element.tag in early and element.get("type") == early[element.tag]:
        return make_pair("spherical")
    return read_pair(element)


def _pair_frames(
    element: Element, pair: Pair, poses: tuple[pin.SE3, pin.SE3], axes: tuple[Array, Array]
) -> tuple[pin.SE3, pin.SE3]:
    """Turn the declared frames so that the pair's axis is their z (universal: z of A, x of B).

    Args:
        element: the element, for messages.
        pair: its pair.
        poses: declared frames on the two bodies.
        axes: the axis in each of the two frames.
    """
    if not pair.axis_count():
        return poses
    a, b = (element.unit_vector(axis) for axis in axes)
    turn = align_z(a)
    if pair.axis_count() == 2:
        # x of B carries the second axis: a cyclic shift of the frame whose z it is.
        return poses[0] * _turned(turn), poses[1] * _turned(align_z(b)[:, [2, 0, 1]])
    other = turn
    if not np.array_equal(a, b):
        # The smallest rotation that takes one axis to the other keeps the rest of the frames.
        other = pin.Quaternion.FromTwoVectors(a, b).matrix() @ turn
    return poses[0] * _turned(turn), poses[1] * _turned(other)


def _turned(rotation: Array) -> pin.SE3:
    return pin.SE3(rotation, np.zeros(3))


def _axis(element: Element, tag: str = "axis") -> Array:
    """Direction given by a child element, x by default as everywhere in URDF."""
    axis = element.first(tag)
    return np.array(_DEFAULT_AXIS) if axis is None else axis.vector("xyz", _DEFAULT_AXIS)


def closing_joint(
    element: Element,
    pair: Pair,
    ends: tuple[str, str],
    poses: tuple[pin.SE3, pin.SE3],
    axes: tuple[Array, Array],
) -> Joint:
    """Build the loop joint of an element.

    Args:
        element: the element; without a name the joint is called after its bodies.
        pair: its pair.
        ends: names of the two bodies.
        poses: declared frames on the two bodies.
        axes: the axis in each of the two frames (universal: the first in A, the second in B).
    """
    # Some write <constraint> without a name.
    unnamed = element.tag == "constraint" and element.get("name") is None
    name = "-".join(ends) if unnamed else element.require("name")
    frames = _pair_frames(element, pair, poses, axes)
    return Joint(name, pair, *ends, *frames, cut=True, place=element.place)


def _loop(element: Element, description: Description) -> Joint:
    """A loop of one pair between frames on two links, in any of the dialects.

    An axis is in both frames alike, unless each end has its own (``parent_axis``) or the element
    says in which of the two frames it is (Fusion's ``frame``): the other one follows from the
    pose of the file, in which the loop is closed.
    """
    pair = _loop_pair(element)
    ends = _ends(element)
    first, second = (link_of(end, "link", description, element) for end in ends)
    poses = _frame(element, ends[0]), _frame(element, ends[1])
    axis = element.first("axis")
    if element.first("parent_axis", "child_axis") is not None:
        axes = _axis(element, "parent_axis"), _axis(element, "child_axis")
    elif pair.axis_count() == 2:
        axes = _axis(element), element.need("axis2").vector("xyz")
    elif axis is not None and (side := axis.get("frame")) is not None:
        axes = _axes_of_one_side(axis, side, (first, second), poses, description)
    else:
        axes = _axis(element), _axis(element)
    return closing_joint(element, pair, (first, second), poses, axes)


def _ends(element: Element) -> tuple[Element, Element]:
    """The two elements that name the links of a loop."""
    first, second = next((pair for pair in _ENDS if element.first(*pair) is not None), _ENDS[0])
    if element.tag == "loop_joint" and first == "predecessor":
        first, second = "link1", "link2"
    both = element.all(first)
    # The manual of Isaac Sim shows two <link1>.
    if len(both) == 2 and element.first(second) is None:
        return both[0], both[1]
    return element.need(first), element.need(second)


def _frame(element: Element, end: Element) -> pin.SE3:
    """Frame on one end: its attributes, an <origin> in it, or beside it as <parent_origin>."""
    origins = [*end.all("origin"), *element.all(f"{end.tag}_origin")]
    if not origins:
        return pose_of(end)
    if len(origins) > 1 or end.get("xyz") or end.get("rpy"):
        raise end.error("has two origins; give one")
    return pose_of(origins[0])


def _axes_of_one_side(
    axis: Element,
    side: str,
    names: tuple[str, str],
    poses: tuple[pin.SE3, pin.SE3],
    description: Description,
) -> tuple[Array, Array]:
    """An axis given in the frame of one end, in the frames of both."""
    if side not in ("parent", "child"):
        raise axis.error(f"has frame '{side}'; it must be parent or child")
    placements = reference_placements(description)
    rotations = [
        placements[name].rotation @ pose.rotation for name, pose in zip(names, poses, strict=True)
    ]
    direction = rotations[side == "child"] @ axis.vector("xyz", _DEFAULT_AXIS)
    return rotations[0].T @ direction, rotations[1].T @ direction


def _coupling(element: Element, description: Description) -> Coupling:
    """URDF+ ``<coupling>``: angle of the successor = ratio times angle of the predecessor.

    Both angles are sums of the joint coordinates on the way from the nearest common ancestor.
    """
    given = element.first("gear_ratio") or element.need("ratio")
    ratio = given.number("value")
    first, second = (
        moving_path(link_of(end, "link", description, element), description)
        for end in _ends(element)
    )
    while first and second and first[0] == second[0]:
        first, second = first[1:], second[1:]
    # What follows comes first, as in `Coupling.linear`.
    terms = {joint: (0.0, 1.0) for joint in second} | {joint: (0.0, -ratio) for joint in first}
    if not terms:
        raise element.error("couples two links that do not move relative to each other")
    return Coupling(element.require("name"), tuple(terms), tuple(terms.values()))


def _scoped(description: Description, name: str) -> str:
    """Body that a name with model scopes (``model::link``) means: the longest end that is one."""
    bodies = {body.name for body in description.bodies}
    while name not in bodies and "::" in name:
        name = name.partition("::")[2]
    return name


def drake_constraints(root: Element, description: Description, remarks: Remarks) -> Description:
    """Add Drake's ball and weld constraints; others that it has are warned of."""
    joints: list[Joint] = []
    for element in root.children:
        kind = element.tag.removeprefix("drake:").removesuffix("_constraint")
        if element.tag != f"drake:{kind}_constraint" or kind not in ("ball", "weld"):
            continue
        ends: list[str] = []
        frames: list[pin.SE3] = []
        for body, frame in (("A", "P"), ("B", "Q")):
            end = element.need(f"{element.tag}_body_{body}")
            link = _scoped(description, (end.get("name") or end.text).strip())
            bodies = [known.name for known in description.bodies]
            if link not in (*bodies, GROUND):
                raise element.unknown("link", link, bodies)
            ends.append(link)
            symbol = "p" if kind == "ball" else "X"
            where = element.need(f"{element.tag}_{symbol}_{body}{frame}")
            values = where.numbers(
                where.get("value") or where.text, 3 if kind == "ball" else 6, "value"
            )
            frames.append(pose_rpy(values[:3], np.resize(values[3:], 3)))
        pair = make_pair("spherical" if kind == "ball" else "fixed")
        name = element.get("name") or f"{kind}_{ends[0]}_{ends[1]}"
        joints.append(Joint(name, pair, ends[0], ends[1], frames[0], frames[1], True))
    return replace(description, joints=(*description.joints, *joints))


def raisim_constraints(element: Element, root: Element, description: Description) -> list[Joint]:
    """Read ``<pin>`` and ``<equality>``.

    The anchor is given on ``body1``; on ``body2`` it is the point that coincides with it in the
    configuration ``nominal_config``. A pin holds it there; the axes of an equality, one or two, are
    the directions of ``body1`` in which it is held.

    Args:
        element: the ``<constraints>``.
        root: the ``<robot>``.
        description: the tree.
    """
    placements = reference_placements(description, _nominal(element, root, description))
    joints: list[Joint] = []
    names: set[str] = set()
    for child in element.all("pin", "equality"):
        first, second = (link_of(child, key, description) for key in ("body1", "body2"))
        axes = [axis.unit_vector(axis.vector("xyz")) for axis in child.all("axis")]
        if len(axes) not in ((0,) if child.tag == "pin" else (1, 2)):
            raise child.error(f"has {len(axes)} axes; a <pin> has none, an <equality> one or two")
        frame = pose_rpy(child.vector("anchor", (0.0, 0.0, 0.0)), np.zeros(3))
        pair = ("spherical", "point_on_plane", "point_on_line")[len(axes)]
        if axes:
            normal = axes[0] if len(axes) == 1 else np.cross(axes[0], axes[1])
            frame.rotation = align_z(child.unit_vector(normal, "normal of its axes"))
        stem = name = child.get("name") or f"{first}-{second}"
        while name in names:
            name = f"{stem}_{len(names)}"
        names.add(name)
        other = placements[second].actInv(placements[first] * frame)
        joints.append(Joint(name, make_pair(pair), first, second, frame, other, cut=True))
    return joints


def _nominal(element: Element, root: Element, description: Description) -> dict[str, float]:
    """Joint coordinates of ``nominal_config``, which go through the tree depth first."""
    text = element.get("nominal_config")
    if text is None:
        return {}
    values = element.numbers(text, None, "nominal_config")
    tree = {joint.name: joint for joint in description.joints if not joint.cut}
    children: dict[str, list[Joint]] = {}
    for child in root.all("joint"):
        if (joint := tree.get(child.require("name"))) is not None:
            children.setdefault(joint.parent, []).append(joint)
    order: list[Joint] = []
    waiting = list(reversed(children.get(description.base or GROUND, [])))
    while waiting:
        joint = waiting.pop()
        order += [joint] if joint.pair.dof else []
        waiting += reversed(children.get(joint.child, []))
    if any(joint.pair.dof > 1 for joint in order):
        raise element.error("has a nominal_config and joints with several coordinates")
    # A robot that floats has the position and quaternion of its base first.
    if len(values) == len(order) + 7:
        values = values[7:]
    if len(values) != len(order):
        raise element.error(
            f"has {len(values)} numbers in nominal_config; the robot has {len(order)} coordinates "
            "(7 more if it floats)"
        )
    return {joint.name: float(value) for joint, value in zip(order, values, strict=True)}


def close_frames(description: Description) -> Description:
    """Close the pairs of frames ``closing_<name>_1`` and ``_2`` of onshape-to-robot and PlaCo.

    A loop of the same name that is declared already wins; the pair is not said, so a point is
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
