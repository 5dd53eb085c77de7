"""Loops inside a URDF, in the dialects that exist (and Drake's constraints in SDF too).

`<loop_joint>`, URDF+ (`<loop>`, `<coupling>`), the ROS proposal (`<constraint>`), joints in
`<gazebo>`, `<drake:ball_constraint>`. Each becomes a joint with ``cut=True`` or a coupling.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ..description import GROUND, Coupling, Description, Joint
from ..errors import BadValue
from ..pairs import Pair, align_z, make_pair
from .sdf_joints import sdf_pair
from .xmltools import Element, pose_of, pose_rpy

__all__ = ["drake_constraints", "read_loops", "read_pair", "reference_placements"]

Array = NDArray[np.float64]

_DEFAULT_AXIS = (1.0, 0.0, 0.0)
_NO_AXIS = ("fixed", "free", "spherical", "spatial_translation", "rod")


def read_loops(root: Element, description: Description) -> Description:
    """Add every loop joint and coupling that the URDF declares."""
    joints: list[Joint] = []
    couplings: list[Coupling] = []
    for element in root.children:
        if element.tag == "loop_joint":
            joints.append(_loop_joint(element))
        elif element.tag == "coupling":
            couplings.append(_coupling(element, description))
        elif element.tag in ("loop", "constraint"):
            if element.first("predecessor") is not None:
                joints.append(_urdf_plus(element))
            else:
                joints.append(_ros_constraint(element))
        elif element.tag == "gazebo":
            joints += [_gazebo_joint(child, description) for child in element.all("joint")]
    description = replace(
        description,
        joints=(*description.joints, *joints),
        couplings=(*description.couplings, *couplings),
    )
    return drake_constraints(root, description)


def read_pair(element: Element) -> Pair:
    """Pair of a joint or loop joint, from its type, pitch and length."""
    parameters = {
        key: element.number(key) for key in ("pitch", "length") if element.get(key) is not None
    }
    try:
        return make_pair(element.require("type"), **parameters)
    except BadValue as error:
        raise element.error(str(error)) from None


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
    if pair.name in _NO_AXIS:
        return poses
    a, b = (element.unit_vector(axis) for axis in axes)
    turn = align_z(a)
    if pair.name == "universal":
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


def _closing(
    element: Element,
    pair: Pair,
    ends: tuple[str, str],
    poses: tuple[pin.SE3, pin.SE3],
    axes: tuple[Array, Array],
) -> Joint:
    """Build the loop joint of an element between two bodies."""
    frame_a, frame_b = _pair_frames(element, pair, poses, axes)
    return Joint(element.require("name"), pair, *ends, frame_a, frame_b, cut=True)


def _one_axis_closing(
    element: Element, ends: tuple[str, str], poses: tuple[pin.SE3, pin.SE3]
) -> Joint:
    """Build the loop joint of an element that gives one axis for both frames."""
    pair = read_pair(element)
    first = second = _axis(element)
    if pair.name == "universal":
        second = element.need("axis2").vector("xyz")
    return _closing(element, pair, ends, poses, (first, second))


def _loop_joint(element: Element) -> Joint:
    """``<loop_joint>``: link1 and link2 with a pose each, one axis in both frames."""
    first, second = element.need("link1"), element.need("link2")
    ends = (first.require("link"), second.require("link"))
    return _one_axis_closing(element, ends, (pose_of(first), pose_of(second)))


def _urdf_plus(element: Element) -> Joint:
    """URDF+ ``<loop>``: predecessor and successor with an origin each."""
    first, second = element.need("predecessor"), element.need("successor")
    ends = (first.require("link"), second.require("link"))
    poses = (pose_of(first.first("origin")), pose_of(second.first("origin")))
    return _one_axis_closing(element, ends, poses)


def _ros_constraint(element: Element) -> Joint:
    """ROS proposal ``<constraint>``: parent and child with origin and axis each."""
    ends = (element.need("parent").require("link"), element.need("child").require("link"))
    poses = (pose_of(element.first("parent_origin")), pose_of(element.first("child_origin")))
    axes = _axis(element, "parent_axis"), _axis(element, "child_axis")
    return _closing(element, read_pair(element), ends, poses, axes)


def _coupling(element: Element, description: Description) -> Coupling:
    """URDF+ ``<coupling>``: angle of the successor = ratio times angle of the predecessor.

    Both angles are sums of the joint coordinates on the way from the nearest common ancestor.
    """
    ratio_element = element.need("ratio")
    ratio = ratio_element.number("value")
    paths = []
    for tag in ("predecessor", "successor"):
        end = element.need(tag)
        link = end.require("link")
        if all(body.name != link for body in description.bodies) and link != GROUND:
            raise end.error(f"names unknown link '{link}'")
        paths.append(_moving_path(link, description))
    first, second = paths
    while first and second and first[0] == second[0]:
        first, second = first[1:], second[1:]
    # What follows comes first, as in `Coupling.linear`.
    terms = {joint: (0.0, 1.0) for joint in second} | {joint: (0.0, -ratio) for joint in first}
    if not terms:
        raise element.error("couples two links that do not move relative to each other")
    return Coupling(element.require("name"), tuple(terms), tuple(terms.values()))


def _moving_path(link: str, description: Description) -> list[str]:
    """Names of the moving tree joints from the base to ``link``."""
    carrier = {joint.child: joint for joint in description.joints if joint.cut is not True}
    path: list[str] = []
    for _ in carrier:
        if link not in carrier:
            break
        joint = carrier[link]
        if joint.pair.dof:
            path.append(joint.name)
        link = joint.parent
    return path[::-1]


def reference_placements(description: Description) -> dict[str, pin.SE3]:
    """Placements of the bodies in the base frame at zero joint coordinates."""
    carrier = {joint.child: joint for joint in description.joints if joint.cut is not True}
    placements: dict[str, pin.SE3] = {GROUND: pin.SE3.Identity()}
    for body in description.bodies:
        chain: list[Joint] = []
        link = body.name
        while link not in placements and link in carrier and len(chain) <= len(carrier):
            chain.append(carrier[link])
            link = carrier[link].parent
        placements.setdefault(link, pin.SE3.Identity())
        for joint in reversed(chain):
            step = joint.frame_parent * joint.frame_child.inverse()
            placements[joint.child] = placements[joint.parent] * step
    return placements


def _gazebo_joint(element: Element, description: Description) -> Joint:
    """A joint in ``<gazebo>``: its frame sits on the child and coincides at zero coordinates."""
    ends = []
    for tag in ("parent", "child"):
        end = element.need(tag)
        name = end.text.strip() or end.require("link")
        ends.append(GROUND if name == "world" else name)
    parent, child = ends
    placements = reference_placements(description)
    for name in ends:
        if name not in placements:
            raise element.error(f"joins unknown link '{name}'")
    on_child = pin.SE3.Identity()
    pose = element.first("pose")
    if pose is not None and pose.text.strip():
        numbers = pose.numbers(pose.text, 6, "pose")
        on_child = pose_rpy(numbers[:3], numbers[3:])
    on_parent = placements[parent].actInv(placements[child] * on_child)
    axes: list[Array] = []
    for tag in ("axis", "axis2"):
        axis = element.first(tag)
        axes.append(
            np.array([0.0, 0.0, 1.0]) if axis is None else axis.text_vector("xyz", (0.0, 0.0, 1.0))
        )
    pair = sdf_pair(element, element.require("type").lower())
    second = axes[1] if pair.name == "universal" else axes[0]
    return _closing(element, pair, (parent, child), (on_parent, on_child), (axes[0], second))


def _scoped(description: Description, name: str) -> str:
    """Body that a name with model scopes (``model::link``) means: the longest end that is one."""
    bodies = {body.name for body in description.bodies}
    while name not in bodies and "::" in name:
        name = name.partition("::")[2]
    return name


def drake_constraints(root: Element, description: Description) -> Description:
    """Add Drake's ball constraints; other constraints of Drake are warned of."""
    joints: list[Joint] = []
    warnings: list[str] = []
    for element in root.children:
        if not element.tag.startswith("drake:"):
            continue
        if element.tag != "drake:ball_constraint":
            warnings.append(
                f"{element.source}:{element.line}: element <{element.tag}> is not understood; "
                "left out"
            )
            continue
        ends: list[str] = []
        points: list[pin.SE3] = []
        for body, point in (("body_A", "p_AP"), ("body_B", "p_BQ")):
            end = element.need(f"drake:ball_constraint_{body}")
            ends.append(_scoped(description, (end.get("name") or end.text).strip()))
            where = element.need(f"drake:ball_constraint_{point}")
            text = where.get("value") or where.text
            points.append(pin.SE3(np.eye(3), where.numbers(text, 3, "value")))
        name = element.get("name") or f"ball_{ends[0]}_{ends[1]}"
        joints.append(
            Joint(name, make_pair("spherical"), ends[0], ends[1], points[0], points[1], True)
        )
    return replace(
        description,
        joints=(*description.joints, *joints),
        warnings=(*description.warnings, *warnings),
    )
