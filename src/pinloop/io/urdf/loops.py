"""Loops inside a URDF, in the dialects that exist, and what `<gazebo>` adds in the words of SDF.

`<loop_joint>`, URDF+ (`<loop>`, `<coupling>`, and what they were called before: `<constraint>` of
type position or rolling, `<loop_constraint>`, `<joint_constraint>`), the ROS proposal
(`<constraint>`), RaiSim's `<constraints>`, Drake's constraints. Each becomes a joint with
``cut=True`` or a coupling. Where loops are declared by a pose of the whole robot rather than by
frames, it is computed here, before there is a mechanism.

With `<gazebo>`, the robot is the model that SDF makes of the URDF: its frame is that of the root
link, and all joint coordinates are zero in the pose of the file.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np
import pinocchio as pin

from ...boundary.marks import Array
from ...boundary.xml import Element, Remarks, pose_of, pose_rpy
from ...errors import BadValue
from ...model.description import GROUND, Body, Coupling, Description, Joint
from ...model.pairs import Pair, align_z, make_pair, pair_class
from ...model.tree import motion_of
from ..quantities import find_body, new_name, turn, weld
from ..sdf.joints import axes_of, axis_values, drake_constraints, is_detachable, sdf_pair
from ..sdf.reader import read_body
from ..sdf.scope import read_pose, text_of
from ..vocabulary import SDF, report_unread

_DEFAULT_AXIS = (1.0, 0.0, 0.0)
_ENDS = (("predecessor", "successor"), ("link1", "link2"), ("parent", "child"))
"""What the two ends of a loop are called in the dialects."""


def read_loops(root: Element, description: Description) -> Description:
    """Add every loop joint and coupling that the URDF declares."""
    joints: list[Joint] = []
    couplings: list[Coupling] = []
    for element in root.children:
        rolling = element.tag == "constraint" and element.get("type") == "rolling"
        if element.tag in ("coupling", "joint_constraint") or rolling:
            couplings.append(_coupling(element, description))
        elif element.tag in ("loop_joint", "loop", "constraint", "loop_constraint"):
            joints.append(_loop(element, description))
        elif element.tag == "constraints":
            joints += _raisim_constraints(element, root, description)
    description = replace(
        description,
        joints=(*description.joints, *joints),
        couplings=(*description.couplings, *couplings),
    )
    return drake_constraints(root, description)


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


def read_axes(element: Element, pair: Pair) -> list[Array]:
    """Vectors of ``<axis>`` and ``<axis2>``, as many as the pair has; x by default."""
    axes = [_axis(element)] if pair.axis_count() else []
    if pair.axis_count() == 2:
        axes.append(element.need("axis2").vector("xyz"))
    return axes


def _axis(element: Element, tag: str = "axis") -> Array:
    axis = element.first(tag)
    return np.array(_DEFAULT_AXIS) if axis is None else axis.vector("xyz", _DEFAULT_AXIS)


# -- the pose of the file -------------------------------------------------------------------------


def moving_path(link: str, description: Description) -> list[str]:
    """Names of the moving tree joints from the base to ``link``."""
    return [joint.name for joint in _chain(link, _carriers(description)) if joint.pair.dof]


def reference_placements(
    description: Description, coordinates: Mapping[str, float] | None = None
) -> dict[str, pin.SE3]:
    """Placements of the bodies in the base frame; cut joints do not count.

    ``coordinates`` are those of joints with one degree of freedom [rad, m]; 0 by default.
    """
    carriers, given = _carriers(description), coordinates or {}
    placements: dict[str, pin.SE3] = {GROUND: pin.SE3.Identity()}
    for body in description.bodies:
        chain = _chain(body.name, carriers, placements)
        placements.setdefault(chain[0].parent if chain else body.name, pin.SE3.Identity())
        for joint in chain:
            step = joint.frame_parent
            if q := given.get(joint.name, 0.0):
                step = step * motion_of(joint.pair, q)
            placements[joint.child] = placements[joint.parent] * step * joint.frame_child.inverse()
    return placements


def _carriers(description: Description) -> dict[str, Joint]:
    return {joint.child: joint for joint in description.joints if joint.cut is not True}


def _chain(link: str, carriers: Mapping[str, Joint], known: Collection[str] = ()) -> list[Joint]:
    """The tree joints to ``link`` from the base, or from the nearest link that is known."""
    chain: list[Joint] = []
    while link in carriers and link not in known and len(chain) <= len(carriers):
        chain.append(carriers[link])
        link = carriers[link].parent
    return chain[::-1]


def _link(
    element: Element, attribute: str, description: Description, owner: Element | None = None
) -> str:
    """Link that an attribute names; ``owner`` is the element that errors are about."""
    known = [body.name for body in description.bodies]
    return find_body(element.require(attribute), known, owner or element)


# -- loops between two frames ---------------------------------------------------------------------


def closing_joint(
    element: Element,
    pair: Pair,
    ends: tuple[str, str],
    poses: tuple[pin.SE3, pin.SE3],
    axes: tuple[Array, Array],
) -> Joint:
    """Build the loop joint of an element; without a name it is called after its bodies.

    ``poses`` are the declared frames on the two bodies, and ``axes`` the pair's axis in each of
    them (universal: the first in A, the second in B). The frames are turned so that the axis is
    their z.
    """
    # Some write <constraint> without a name.
    unnamed = element.tag == "constraint" and element.get("name") is None
    name = "-".join(ends) if unnamed else element.require("name")
    if pair.axis_count():
        a, b = (element.unit_vector(axis) for axis in axes)
        turn_a = turn_b = align_z(a)
        if pair.axis_count() == 2:
            # x of B carries the second axis: a cyclic shift of the frame whose z it is.
            turn_b = align_z(b)[:, [2, 0, 1]]
        elif not np.array_equal(a, b):
            # The smallest rotation that takes one axis to the other keeps the rest of the frames.
            turn_b = pin.Quaternion.FromTwoVectors(a, b).matrix() @ turn_a
        poses = poses[0] * turn(turn_a), poses[1] * turn(turn_b)
    return Joint(name, pair, *ends, *poses, cut=True, place=element.place)


def _loop(element: Element, description: Description) -> Joint:
    """A loop of one pair between frames on two links, in any of the dialects.

    An axis is in both frames alike, unless each end has its own (``parent_axis``) or the element
    says in which of the two frames it is (Fusion's ``frame``): the other one follows from the
    pose of the file, in which the loop is closed.
    """
    # Those of early URDF+, of type position or none, hold two points together.
    early = {"constraint": "position", "loop_constraint": None}
    holds_points = element.tag in early and element.get("type") == early[element.tag]
    pair = make_pair("spherical") if holds_points else read_pair(element)
    ends = _ends(element)
    first, second = (_link(end, "link", description, element) for end in ends)
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
        moving_path(_link(end, "link", description, element), description) for end in _ends(element)
    )
    while first and second and first[0] == second[0]:
        first, second = first[1:], second[1:]
    # What follows comes first, as in `Coupling.linear`.
    terms = {joint: (0.0, 1.0) for joint in second} | {joint: (0.0, -ratio) for joint in first}
    if not terms:
        raise element.error("couples two links that do not move relative to each other")
    return Coupling(element.require("name"), tuple(terms), tuple(terms.values()))


# -- RaiSim ---------------------------------------------------------------------------------------


def _raisim_constraints(element: Element, root: Element, description: Description) -> list[Joint]:
    """Read ``<pin>`` and ``<equality>``.

    The anchor is given on ``body1``; on ``body2`` it is the point that coincides with it in the
    configuration ``nominal_config``. A pin holds it there; the axes of an equality, one or two, are
    the directions of ``body1`` in which it is held.
    """
    placements = reference_placements(description, _nominal(element, root, description))
    joints: list[Joint] = []
    names: set[str] = set()
    for child in element.all("pin", "equality"):
        first, second = (_link(child, key, description) for key in ("body1", "body2"))
        axes = [axis.unit_vector(axis.vector("xyz")) for axis in child.all("axis")]
        if len(axes) not in ((0,) if child.tag == "pin" else (1, 2)):
            raise child.error(f"has {len(axes)} axes; a <pin> has none, an <equality> one or two")
        frame = pose_rpy(child.vector("anchor", (0.0, 0.0, 0.0)), np.zeros(3))
        pair = ("spherical", "point_on_plane", "point_on_line")[len(axes)]
        if axes:
            normal = axes[0] if len(axes) == 1 else np.cross(axes[0], axes[1])
            frame.rotation = align_z(child.unit_vector(normal, "normal of its axes"))
        name = new_name(child.get("name") or f"{first}-{second}", names)
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


# -- Gazebo ---------------------------------------------------------------------------------------


def read_gazebo(root: Element, description: Description, remarks: Remarks) -> Description:
    """Add the links and joints that stand in the `<gazebo>` elements of a URDF."""
    blocks = root.all("gazebo")
    parts = [part for block in blocks for part in block.all("link", "joint")]
    for part in parts:
        report_unread(part, SDF, remarks)
    for old in (child for block in blocks for child in block.children):
        if old.tag.startswith(("joint:", "body:")):
            remarks.add(old, "in <gazebo> is of a Gazebo before SDF and is not read")
    placements = reference_placements(description)
    bodies: list[Body] = []
    for link in (part for part in parts if part.tag == "link"):
        bodies.append(read_body(link.require("name"), link, remarks))
        placements[bodies[-1].name] = read_pose(link.first("pose"))
    added = {body.name for body in bodies}
    joints = [
        _gazebo_joint(part, placements, added, remarks) for part in parts if part.tag == "joint"
    ]
    for plugin in (plugin for block in blocks for plugin in block.all("plugin")):
        if not is_detachable(plugin):
            continue
        model = text_of(plugin, "child_model")
        if model not in (description.name, "__model__"):
            problem = "attaches the model '{}', which is not this robot; left out"
            remarks.add(plugin, problem, value=model)
            continue
        parent, child = (
            _end_link(plugin, f"{end}_link", placements) for end in ("parent", "child")
        )
        joints.append(weld(parent, child, placements[parent].actInv(placements[child]), True))
    return replace(
        description, bodies=(*description.bodies, *bodies), joints=(*description.joints, *joints)
    )


def _end_link(owner: Element, tag: str, placements: dict[str, pin.SE3]) -> str:
    element = owner.need(tag)
    return find_body(element.text.strip() or element.require("link"), placements, owner)


def _gazebo_joint(
    element: Element, placements: dict[str, pin.SE3], added: set[str], remarks: Remarks
) -> Joint:
    """A joint: its frame sits on the child and coincides with the parent's at zero coordinates."""
    parent, child = (_end_link(element, tag, placements) for tag in ("parent", "child"))
    on_child = read_pose(element.first("pose"))
    on_parent = placements[parent].actInv(placements[child] * on_child)
    pair = sdf_pair(element, remarks)
    axes = axes_of(element, pair)
    directions = [
        np.array([0.0, 0.0, 1.0]) if axis is None else axis.text_vector("xyz", (0.0, 0.0, 1.0))
        for axis in axes or [None]
    ]
    joint = closing_joint(
        element, pair, (parent, child), (on_parent, on_child), (directions[0], directions[-1])
    )
    values = axis_values(element, axes, remarks)
    # A link that only Gazebo knows hangs on what Gazebo's joints give it.
    return replace(joint, cut=None if {parent, child} & added else True, **values)
