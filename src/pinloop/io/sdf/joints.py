"""Joints of SDF: pairs, axes, limits, gears, and which of them close loops.

Every joint is placed by the initial poses of its two links: both of its frames coincide there, so
that all coordinates are zero in the pose of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ...boundary.xml import Element, Remarks
from ...errors import listed
from ...model.description import Coupling, Joint
from ...model.pairs import Pair, Revolute, align_z, make_pair
from ...tolerances import PARALLEL
from ..entries import ordered, unlimited
from .scope import Frame, Scope
from .source import truth

__all__ = ["Joints", "axes_of", "axis_values", "is_detachable", "read_joints", "sdf_pair"]

Array = NDArray[np.float64]

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


@dataclass
class Joints:
    """What the `<joint>` elements of a robot say.

    Args:
        joints: the joints, those that close loops marked as cut.
        couplings: gearboxes and mimics.
    """

    joints: list[Joint]
    couplings: list[Coupling]


def read_joints(world: Scope, remarks: Remarks) -> Joints:
    """Read the joints of all models, and those between models.

    Args:
        world: the scope that holds everything.
        remarks: takes what is not read.
    """
    frames = [frame for scope in world.scopes() for frame in scope.joints]
    springs: list[str] = []
    joints: list[Joint] = []
    forced: set[str] = set()
    for frame in frames:
        if _type_of(frame) != "gearbox":
            joints.append(_joint(frame, remarks, springs))
            if _must_be_loop(frame):
                forced.add(frame.name)
    for scope in world.scopes():
        joints += _detachable(scope, remarks)
    couplings: list[Coupling] = []
    for frame in frames:
        if _type_of(frame) == "gearbox":
            couplings += _gearbox(frame, joints, remarks)
        else:
            couplings += _mimics(frame, joints, remarks)
    if springs:
        remarks.say(f"the springs of joints{listed(springs, ' ')} are not read")
    return Joints(_cut_loops(joints, forced), couplings)


def _type_of(frame: Frame) -> str:
    element = frame.element
    assert element is not None
    kind = element.require("type")
    if kind not in _TYPES:
        raise element.error(f"has the type '{kind}'; it must be one of: {', '.join(_TYPES)}")
    return kind


def _ends(frame: Frame) -> tuple[Frame, Frame]:
    """Links that a joint joins; the world frame for the ground."""
    element, scope = frame.element, frame.scope
    assert element is not None and scope is not None
    ends = []
    for tag in ("parent", "child"):
        end = element.need(tag)
        ends.append(scope.link_of(scope.find(end, end.text.strip())))
    return ends[0], ends[1]


def _joint(frame: Frame, remarks: Remarks, springs: list[str]) -> Joint:
    """Read one joint, not yet cut."""
    element, scope = frame.element, frame.scope
    assert element is not None and scope is not None
    kind = _type_of(frame)
    pair = sdf_pair(element, remarks)
    parent, child_link = _ends(frame)
    if child_link.kind == "world" and kind != "fixed":
        raise element.error("has the world as its child; make the world the parent")
    at = scope.placement(frame)
    axes = axes_of(element, pair)
    if not axes and any(_dynamics([element.first("axis")], tag) for tag in ("damping", "friction")):
        remarks.add(element, f"has damping, which is not read for type '{kind}'")
    turn = _turn(frame, pair, element, axes)
    at = pin.SE3(turn, at.translation)
    if any(_spring(axis) for axis in axes):
        springs.append(frame.name)
    if child_link.kind == "world":
        parent, child_link = child_link, parent
    return Joint(
        frame.name,
        pair,
        parent.name,
        child_link.name,
        scope.placement(parent).actInv(at),
        scope.placement(child_link).actInv(at),
        False,
        place=element.place,
        **axis_values(element, axes, remarks),
    )


def axis_values(
    element: Element, axes: Sequence[Element | None], remarks: Remarks
) -> dict[str, Any]:
    """Limits, damping and friction of a joint from its axes, for each that is given.

    Args:
        element: the joint.
        axes: elements with the axes of its coordinates.
        remarks: takes what had to be mended.
    """
    values = {
        "velocity": _most(axes, "velocity"),
        "effort": _most(axes, "effort"),
        "damping": _dynamics(axes, "damping"),
        "friction": _dynamics(axes, "friction"),
    }
    lower, upper = _ends_of_range(axes, "lower", -np.inf), _ends_of_range(axes, "upper", np.inf)
    if element.get("type") != "continuous" and np.any(np.isfinite([*lower, *upper])):
        values["lower"], values["upper"], swapped = ordered(lower, upper)
        if swapped:
            remarks.add(element, "has its lower limit above the upper one; they are swapped")
    return values


def is_detachable(plugin: Element) -> bool:
    """Whether a plugin is the system of Gazebo that welds two links until told otherwise."""
    return (plugin.get("name") or "").rpartition("::")[2] == "DetachableJoint"


def _detachable(scope: Scope, remarks: Remarks) -> list[Joint]:
    """The welds of Gazebo's plugin between two links of the robot, in their initial pose."""
    joints: list[Joint] = []
    for plugin in () if scope.element is None else scope.element.all("plugin"):
        if not is_detachable(plugin):
            continue
        name = plugin.need("child_model").text.strip()
        target: Scope | None = scope
        if name not in ("__model__", scope.frame.name):
            around = [scope.frames, scope.outer.frames if scope.outer is not None else {}]
            target = next((f[name].inside for f in around if name in f), None)
        if target is None:
            remarks.add(plugin, f"attaches the model '{name}', which is not loaded; left out")
            continue
        ends = []
        for place, tag in ((scope, "parent_link"), (target, "child_link")):
            end = plugin.need(tag)
            ends.append(place.link_of(place.find(end, end.text.strip())))
        name = f"{ends[0].name}-{ends[1].name}"
        placement = scope.placement(ends[0]).actInv(scope.placement(ends[1]))
        joints.append(
            Joint(
                name,
                make_pair("fixed"),
                ends[0].name,
                ends[1].name,
                placement,
                pin.SE3.Identity(),
                False,
            )
        )
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


def axes_of(element: Element, pair: Pair) -> list[Element | None]:
    """Elements with the axes of the pair's coordinates, in order."""
    if pair.axis_count() == 2:
        return [element.first("axis"), element.first("axis2")]
    return [element.first("axis")] if pair.dof == 1 else []


def _turn(frame: Frame, pair: Pair, element: Element, axes: Sequence[Element | None]) -> Array:
    """Orientation of the joint's frames in the world: z along the axis; universal: x the second."""
    scope = frame.scope
    assert scope is not None
    if not axes:
        return np.asarray(scope.placement(frame).rotation)
    z = _direction(frame, axes[0])
    if pair.axis_count() != 2:
        return align_z(z)
    x = _direction(frame, axes[1])
    if abs(x @ z) > 1e-4:
        raise element.error(
            f"has axes at {np.degrees(np.arccos(np.clip(x @ z, -1, 1))):.3f} deg to each other; "
            "only perpendicular ones are read: write two revolute joints and a light link between"
        )
    x = element.unit_vector(x - (x @ z) * z)
    return np.column_stack([x, np.cross(z, x), z])


def _direction(frame: Frame, axis: Element | None) -> Array:
    """Unit vector of an axis in the world; (0, 0, 1) of the joint frame by default.

    Versions to 1.4 give axes in the model frame; 1.5 and 1.6 do if `use_parent_model_frame` is set.
    """
    scope = frame.scope
    assert scope is not None
    base = frame
    values = np.array([0.0, 0.0, 1.0])
    if axis is not None:
        values = axis.text_vector("xyz", (0.0, 0.0, 1.0))
        values = axis.unit_vector(values)
        xyz, flag = axis.first("xyz"), axis.first("use_parent_model_frame")
        name = None if xyz is None else xyz.get("expressed_in")
        if xyz is not None and name:
            base = scope.find(xyz, name)
        elif (flag is not None and truth(flag, flag.text)) or (
            flag is None and scope.source.version < (1, 5)
        ):
            base = scope.frame
    return np.asarray(scope.placement(base).rotation @ values)


def _number(parent: Element | None, tag: str, default: float) -> float:
    """Number in a child element, which may be infinite."""
    child = None if parent is None else parent.first(tag)
    if child is None:
        return default
    try:
        return unlimited(float(child.text))
    except ValueError:
        return float(child.numbers(child.text, 1, "the value")[0])


def _ends_of_range(axes: Iterable[Element | None], tag: str, default: float) -> tuple[float, ...]:
    limits = [None if axis is None else axis.first("limit") for axis in axes]
    return tuple(_number(limit, tag, default) for limit in limits)


def _most(axes: Sequence[Element | None], tag: str) -> tuple[float, ...]:
    """Largest effort or velocity per axis; negative numbers mean no limit."""
    values = _ends_of_range(axes, tag, np.inf)
    values = tuple(value if value >= 0 else float(np.inf) for value in values)
    return values if np.any(np.isfinite(values)) else ()


def _dynamics(axes: Sequence[Element | None], tag: str) -> tuple[float, ...]:
    elements = [None if axis is None else axis.first("dynamics") for axis in axes]
    if all(dynamics is None or dynamics.first(tag) is None for dynamics in elements):
        return ()
    return tuple(
        0.0 if dynamics is None else dynamics.text_number(tag, 0.0) for dynamics in elements
    )


def _spring(axis: Element | None) -> bool:
    dynamics = None if axis is None else axis.first("dynamics")
    return dynamics is not None and dynamics.text_number("spring_stiffness", 0.0) != 0


def _must_be_loop(frame: Frame) -> bool:
    assert frame.element is not None
    element: Element | None = frame.element
    for tag in ("physics", "simbody", "must_be_loop_joint"):
        element = None if element is None else element.first(tag)
    return element is not None and truth(element, element.text)


def _gearbox(frame: Frame, joints: Iterable[Joint], remarks: Remarks) -> list[Coupling]:
    """Coupling ``theta_2 = -gearbox_ratio theta_1`` (sdformat, sdf/1.10/joint.sdf).

    theta_1 is the angle from the reference body to the parent about `axis`, theta_2 to the child
    about `axis2`: the coordinates of the joints between them, up to sign.
    """
    element, scope = frame.element, frame.scope
    assert element is not None and scope is not None
    body = element.need("gearbox_reference_body")
    reference = scope.link_of(scope.find(body, body.text.strip()))
    angles: list[tuple[str, float]] = []
    for link, tag in zip(_ends(frame), ("axis", "axis2"), strict=True):
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
        if not isinstance(joint.pair, Revolute):
            continue
        forward = (joint.parent, joint.child) == (reference.name, link.name)
        if not forward and (joint.child, joint.parent) != (reference.name, link.name):
            continue
        base = placement(reference if forward else link)
        z = base.rotation @ joint.frame_parent.rotation[:, 2]
        if abs(z @ axis) > 1 - PARALLEL:
            return joint.name, float(np.sign(z @ axis)) * (1.0 if forward else -1.0)
    return None


def _mimics(frame: Frame, joints: Sequence[Joint], remarks: Remarks) -> list[Coupling]:
    """Couplings ``q = multiplier (q_leader - reference) + offset`` (SDF 1.11)."""
    element, scope = frame.element, frame.scope
    assert element is not None and scope is not None
    couplings: list[Coupling] = []
    for axis in element.all("axis", "axis2"):
        mimic = axis.first("mimic")
        if mimic is None:
            continue
        leader = scope.find(mimic, mimic.require("joint")).name
        dofs = {joint.name: joint.pair.dof for joint in joints}
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
    island: dict[str, str] = {}

    def root(body: str) -> str:
        while body in island:
            body = island[body]
        return body

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
            island[root(joint.child)] = root(joint.parent)
    for joint in joints:
        if marks[joint.name] and joint.name not in forced:
            above, below = root(joint.parent), root(joint.child)
            if above != below:
                marks[joint.name] = None
                island[above] = below
    return [replace(joint, cut=marks[joint.name]) for joint in joints]
