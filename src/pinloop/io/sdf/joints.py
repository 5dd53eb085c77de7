"""Joints of SDF: pairs, axes, limits, gears, and which of them close loops.

Every joint is placed by the initial poses of its two links: both of its frames coincide there, so
that all coordinates are zero in the pose of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pinocchio as pin
from scipy.cluster.hierarchy import DisjointSet

from ...boundary.marks import Array
from ...boundary.xml import Element, Remarks, pose_rpy
from ...errors import listed
from ...model.description import LIMITS, Coupling, Description, Joint
from ...model.pairs import Pair, Revolute, make_pair
from ...tolerances import PARALLEL
from ..quantities import axes_turn, find_body, joint_limits, limit_numbers, weld
from .scope import Frame, Scope, text_of, truth

Axes = Sequence[Element | None]
"""Elements with the axes of a joint's coordinates, as far as they are given."""

_TYPES = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "screw": "helical",
    "ball": "spherical",
    "universal": "universal",
    "revolute2": "universal",
    "fixed": "fixed",
    "gearbox": "",
}


def read_joints(world: Scope, remarks: Remarks) -> tuple[list[Joint], list[Coupling]]:
    """Read the joints of all models in a world, and those between models.

    Joints that close loops are marked as cut; gearboxes and mimics are couplings.
    """
    frames = [frame for scope in world.scopes() for frame in scope.joints]
    springs: list[str] = []
    joints = [_joint(f, remarks, springs) for f in frames if _type_of(f.element) != "gearbox"]
    for scope in world.scopes():
        joints += _detachable(scope, remarks)
    couplings: list[Coupling] = []
    for frame in frames:
        read = _gearbox if _type_of(frame.element) == "gearbox" else _mimics
        couplings += read(frame, joints, remarks)
    if springs:
        remarks.say(f"the springs of joints{listed(springs, ' ')} are not read")
    forced = {frame.name for frame in frames if _must_be_loop(frame.element)}
    return _cut_loops(joints, forced), couplings


def _type_of(element: Element) -> str:
    kind = element.require("type")
    if kind not in _TYPES:
        raise element.error(f"has the type '{kind}'; it must be one of: {', '.join(_TYPES)}")
    return kind


def _joint(frame: Frame, remarks: Remarks, springs: list[str]) -> Joint:
    """Read one joint, not yet cut."""
    element, scope = frame.element, frame.scope
    kind = _type_of(element)
    pair = sdf_pair(element, remarks)
    parent, child = scope.link(element, "parent"), scope.link(element, "child")
    if child.kind == "world" and kind != "fixed":
        raise element.error("has the world as its child; make the world the parent")
    at = scope.placement(frame)
    axes = axes_of(element, pair)
    if not axes and any(_dynamics([element.first("axis")], tag) for tag in ("damping", "friction")):
        remarks.add(element, f"has damping, which is not read for type '{kind}'")
    if axes:
        turned = axes_turn(element, [_direction(frame, axis) for axis in axes])
        at = pin.SE3(turned.rotation, at.translation)
    if any(_dynamics(axes, "spring_stiffness")):
        springs.append(frame.name)
    if child.kind == "world":
        parent, child = child, parent
    return Joint(
        frame.name,
        pair,
        parent.name,
        child.name,
        scope.placement(parent).actInv(at),
        scope.placement(child).actInv(at),
        False,
        place=element.place,
        **axis_values(element, axes, remarks),
    )


def axis_values(element: Element, axes: Axes, remarks: Remarks) -> dict[str, Any]:
    """Limits, damping and friction of a joint from the axes of its coordinates, as far as given."""
    limits = {key: _limits(axes, key) for key in LIMITS}
    if element.get("type") == "continuous":
        del limits["lower"], limits["upper"]
    losses = {key: _dynamics(axes, key) for key in ("damping", "friction")}
    return losses | joint_limits(limits, len(axes), partial(remarks.add, element))


def _limits(axes: Axes, key: str) -> tuple[float, ...]:
    """A limit per axis; a negative effort or velocity is SDF's way to say none."""
    values = []
    for axis in axes:
        limit = None if axis is None else axis.first("limit")
        child = None if limit is None else limit.first(key)
        value = -np.inf if key == "lower" else np.inf
        if child is not None:
            (value,) = limit_numbers(child, child.text, "the value", 1)
        values.append(np.inf if value < 0 and key in ("effort", "velocity") else value)
    return tuple(values)


def is_detachable(plugin: Element) -> bool:
    """Whether a plugin is the system of Gazebo that welds two links until told otherwise."""
    return (plugin.get("name") or "").rpartition("::")[2] == "DetachableJoint"


def _detachable(scope: Scope, remarks: Remarks) -> list[Joint]:
    """The welds of Gazebo's plugin between two links of the robot, in their initial pose."""
    joints: list[Joint] = []
    for plugin in filter(is_detachable, scope.element.all("plugin")):
        name = text_of(plugin, "child_model")
        target: Scope | None = scope
        if name not in ("__model__", scope.frame.name):
            around = [scope.frames, scope.outer.frames if scope.outer is not None else {}]
            target = next((f[name].inside for f in around if name in f), None)
        if target is None:
            problem = (
                f"a DetachableJoint attaches the model '{name}', which is not loaded; left out"
            )
            remarks.about((plugin.source, "detached"), name, f"{plugin.where}: {problem}")
            continue
        parent, child = scope.link(plugin, "parent_link"), target.link(plugin, "child_link")
        placement = scope.placement(parent).actInv(scope.placement(child))
        joints.append(weld(parent.name, child.name, placement, False))
    return joints


def sdf_pair(element: Element, remarks: Remarks) -> Pair:
    """Pair of a joint type, also of a Gazebo joint inside a URDF.

    `screw_thread_pitch` is metres per turn, positive for a right-hand thread; the older
    `thread_pitch` is radians per metre, positive for a left-hand thread (sdformat, sdf/1.11/
    joint.sdf and pull request 1168). The newer one wins if both are given.
    """
    kind = element.require("type").lower()
    if not _TYPES.get(kind):
        raise element.error(f"has the type '{kind}', which is no pair of SDF")
    if kind != "screw":
        return make_pair(_TYPES[kind])
    if element.first("screw_thread_pitch") is not None:
        pitch = element.text_number("screw_thread_pitch") / (2 * np.pi)
    else:
        if element.first("thread_pitch") is None:
            # sdformat, sdf/1.11/joint.sdf
            remarks.add(element, "has no <screw_thread_pitch>; SDF's default of 1 m/turn is taken")
        rate = element.text_number("thread_pitch", -2 * np.pi)
        if rate == 0:
            raise element.error("has thread_pitch 0 rad/m; give it a <screw_thread_pitch>")
        pitch = -1.0 / rate
    return make_pair("helical", pitch=float(pitch))


def axes_of(element: Element, pair: Pair) -> Axes:
    """Elements with the axes of the pair's coordinates, in order."""
    if pair.axis_count() == 2:
        return [element.first("axis"), element.first("axis2")]
    return [element.first("axis")] if pair.dof == 1 else []


def _direction(frame: Frame, axis: Element | None) -> Array:
    """Unit vector of an axis in the world; (0, 0, 1) of the joint frame by default.

    Versions to 1.4 give axes in the model frame; 1.5 and 1.6 do if `use_parent_model_frame` is set.
    """
    scope, base = frame.scope, frame
    values = np.array([0.0, 0.0, 1.0])
    if axis is not None:
        values = axis.unit_vector(axis.text_vector("xyz", (0.0, 0.0, 1.0)))
        xyz, flag = axis.first("xyz"), axis.first("use_parent_model_frame")
        name = None if xyz is None else xyz.get("expressed_in")
        if xyz is not None and name:
            base = scope.find(xyz, name)
        elif truth(flag) if flag is not None else scope.source.version < (1, 5):
            base = scope.frame
    return np.asarray(scope.placement(base).rotation @ values)


def _dynamics(axes: Axes, tag: str) -> tuple[float, ...]:
    """What `<dynamics>` says per axis; empty if it says nothing."""
    elements = [None if axis is None else axis.first("dynamics") for axis in axes]
    if all(dynamics is None or dynamics.first(tag) is None for dynamics in elements):
        return ()
    return tuple(0.0 if element is None else element.text_number(tag, 0.0) for element in elements)


def _must_be_loop(joint: Element) -> bool:
    element: Element | None = joint
    for tag in ("physics", "simbody", "must_be_loop_joint"):
        element = None if element is None else element.first(tag)
    return truth(element)


def _gearbox(frame: Frame, joints: Iterable[Joint], remarks: Remarks) -> list[Coupling]:
    """Coupling ``theta_2 = -gearbox_ratio theta_1`` (sdformat, sdf/1.10/joint.sdf).

    theta_1 is the angle from the reference body to the parent about `axis`, theta_2 to the child
    about `axis2`: the coordinates of the joints between them, up to sign.
    """
    element, scope = frame.element, frame.scope
    reference = scope.link(element, "gearbox_reference_body")
    angles: list[tuple[str, float]] = []
    for end, tag in (("parent", "axis"), ("child", "axis2")):
        link = scope.link(element, end)
        axis = _direction(frame, element.first(tag) or element.first("axis"))
        angle = _angle(reference, link, axis, joints, scope.placement)
        if angle is None:
            problem = (
                f"is not read: no revolute joint about its {tag} joins '{link.name}' to "
                f"'{reference.name}'"
            )
            remarks.add(element, problem)
            return []
        angles.append(angle)
    (first, sign_1), (second, sign_2) = angles
    ratio = -element.text_number("gearbox_ratio", 1.0) * sign_1 * sign_2
    return [Coupling.linear(frame.name, second, first, ratio)]


def _angle(
    reference: Frame,
    link: Frame,
    axis: Array,
    joints: Iterable[Joint],
    placement: Callable[[Frame], pin.SE3],
) -> tuple[str, float] | None:
    """Joint whose coordinate is the angle of ``link`` in ``reference`` about ``axis``; its sign."""
    for joint in joints:
        forward = (joint.parent, joint.child) == (reference.name, link.name)
        backward = (joint.child, joint.parent) == (reference.name, link.name)
        if not isinstance(joint.pair, Revolute) or not (forward or backward):
            continue
        base = placement(reference if forward else link)
        z = base.rotation @ joint.frame_parent.rotation[:, 2]
        if abs(z @ axis) > 1 - PARALLEL:
            return joint.name, float(np.sign(z @ axis)) * (1.0 if forward else -1.0)
    return None


def _mimics(frame: Frame, joints: Iterable[Joint], remarks: Remarks) -> list[Coupling]:
    """Couplings ``q = multiplier (q_leader - reference) + offset`` (SDF 1.11)."""
    couplings: list[Coupling] = []
    dofs = {joint.name: joint.pair.dof for joint in joints}
    for axis in frame.element.all("axis", "axis2"):
        mimic = axis.first("mimic")
        if mimic is None:
            continue
        leader = frame.scope.find(mimic, mimic.require("joint")).name
        if dofs.get(frame.name) != 1 or dofs.get(leader) != 1:
            remarks.add(mimic, "is not read: both joints must have one coordinate")
            continue
        ratio = mimic.text_number("multiplier", 1.0)
        offset = mimic.text_number("offset", 0.0) - ratio * mimic.text_number("reference", 0.0)
        name = f"{frame.name}_mimics_{leader}"
        couplings.append(Coupling.linear(name, frame.name, leader, ratio, offset))
    return couplings


def _cut_loops(joints: Sequence[Joint], forced: set[str]) -> list[Joint]:
    """Mark the joints that close loops: those whose child already has a parent.

    A joint also closes a loop if its child already carries its parent. A link that would hang on
    nothing but such joints leaves one of them to the choice of the spanning tree.
    """
    parent_of: dict[str, str] = {}
    islands = DisjointSet(body for joint in joints for body in (joint.parent, joint.child))

    def carries(body: str, other: str) -> bool:
        while other != body and other in parent_of:
            other = parent_of[other]
        return other == body

    marks: dict[str, bool | None] = {}
    for joint in joints:
        taken = joint.child in parent_of or carries(joint.child, joint.parent)
        marks[joint.name] = taken or joint.name in forced
        if not marks[joint.name]:
            parent_of[joint.child] = joint.parent
            islands.merge(joint.child, joint.parent)
    for joint in joints:
        closes = marks[joint.name] and joint.name not in forced
        if closes and islands.merge(joint.parent, joint.child):
            marks[joint.name] = None
    return [replace(joint, cut=marks[joint.name]) for joint in joints]


# -- constraints of Drake, in SDF and in URDF ------------------------------------------------------


def drake_constraints(root: Element, description: Description) -> Description:
    """Add Drake's ball and weld constraints."""
    joints: list[Joint] = []
    known = [body.name for body in description.bodies]
    for element in root.all("drake:ball_constraint", "drake:weld_constraint"):
        is_ball = element.tag == "drake:ball_constraint"
        ends: list[str] = []
        frames: list[pin.SE3] = []
        for body, frame in (("A", "P"), ("B", "Q")):
            end = element.need(f"{element.tag}_body_{body}")
            link = (end.get("name") or end.text).strip()
            # Of a name with model scopes (``model::link``) the longest end that is a body.
            while link not in known and "::" in link:
                link = link.partition("::")[2]
            ends.append(find_body(link, known, element))
            where = element.need(f"{element.tag}_{'p' if is_ball else 'X'}_{body}{frame}")
            text = where.get("value") or where.text
            values = where.numbers(text, 3 if is_ball else 6, "value")
            frames.append(pose_rpy(values[:3], np.resize(values[3:], 3)))
        name = element.get("name") or "_".join(["ball" if is_ball else "weld", *ends])
        pair = make_pair("spherical" if is_ball else "fixed")
        joints.append(Joint(name, pair, ends[0], ends[1], frames[0], frames[1], True))
    return replace(description, joints=(*description.joints, *joints))
