"""Writing a robot as SDF: links at their poses, joints, loops as joints between links with parents.

A joint of SDF has one frame, in which both links meet in the pose of the file: only loops that are
closed at zero coordinates can be said.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from ...boundary.xml import add_element, number_text
from ...model.description import GROUND, Geometry, Joint
from ...tolerances import CLOSED
from ..quantities import MOMENTS, SIZES, reversed_joint
from .outline import Axis, Branch, Outline, mesh_name, mimic_terms

_TYPES = {
    **{name: name for name in ("fixed", "revolute", "prismatic", "universal")},
    **{"spherical": "ball", "helical": "screw"},
}


def write_sdf(outline: Outline, folder: Path | None = None) -> str:
    """Return the SDF of a robot; meshes are named as seen from ``folder``.

    Raises:
        BadValue: it has joints, loops or couplings that SDF does not have.
    """
    robot, description = outline.robot, outline.robot.description
    root = ElementTree.Element("sdf", version="1.11")
    world = add_element(root, "world", name="world")
    _add(world, "gravity", robot.gravity)
    model = add_element(world, "model", name=robot.name or "robot")
    for body in description.bodies:
        link = add_element(model, "link", name=body.name)
        _pose(link, outline.placements[body.name])
        inertial = add_element(link, "inertial")
        _pose(inertial, pin.SE3(np.eye(3), np.array(body.com)))
        _add(inertial, "mass", body.mass)
        moments = add_element(inertial, "inertia")
        for key, cell in MOMENTS.items():
            _add(moments, key, body.inertia[cell])
        for shape in description.geometry:
            if shape.body == body.name:
                _shape(outline, link, shape, folder)
    mimics = {terms[0]: terms for terms in mimic_terms(outline, "linear between two joints")}
    for branch in outline.branches:
        _branch(outline, model, branch, mimics)
    for loop in outline.loops():
        _loop(outline, model, loop)
    for frame in description.frames:
        attached = "world" if frame.body == GROUND else frame.body
        _pose(add_element(model, "frame", name=frame.name, attached_to=attached), frame.placement)
    _note_losses(outline)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _note_losses(outline: Outline) -> None:
    description = outline.robot.description
    names = {body.name for body in description.bodies}
    for shape in description.geometry:
        if shape.body == GROUND:
            outline.omit("shapes on the ground", shape.name)
    for joint in description.joints:
        if joint.name in names:
            outline.omit("names other than those of links, which Gazebo demands", joint.name)
    for name in description.actuated or ():
        outline.omit("motors", name)
    for drive in description.drives:
        if drive.reduction != 1.0:
            outline.omit("gear ratios", drive.joint)


def _add(parent: ElementTree.Element, tag: str, values: ArrayLike | str) -> ElementTree.Element:
    """Add an element with a text or numbers in it."""
    element = add_element(parent, tag)
    element.text = values if isinstance(values, str) else number_text(values)
    return element


def _pose(parent: ElementTree.Element, placement: pin.SE3) -> None:
    if not placement.isIdentity(0.0):
        angles = pin.rpy.matrixToRpy(placement.rotation)
        _add(parent, "pose", [*placement.translation, *angles])


def _joint(
    model: ElementTree.Element, name: str, kind: str, ends: tuple[str, str], at: pin.SE3
) -> ElementTree.Element:
    """Add a joint between two bodies, whose frame is at a placement in the second."""
    element = add_element(model, "joint", name=name, type=kind)
    for tag, body in zip(("parent", "child"), ends, strict=True):
        _add(element, tag, "world" if body == GROUND else body)
    _pose(element, at)
    return element


def _branch(
    outline: Outline,
    model: ElementTree.Element,
    branch: Branch,
    mimics: dict[str, tuple[str, str, float, float]],
) -> None:
    if branch.kind == "free":
        outline.carrier(branch)  # a link without a joint floats
        outline.omit("names, limits and losses of free joints", branch.name)
        return
    pair = "fixed" if branch.joint is None else branch.joint.pair.name
    if pair not in _TYPES:
        raise outline.refuse(f"joint '{branch.name}' is a {pair} pair")
    ends = branch.parent, branch.body.name
    element = _joint(model, branch.name, _TYPES[pair], ends, branch.mount)
    if branch.joint is not None and branch.kind == "screw":
        _add(element, "screw_thread_pitch", 2 * np.pi * branch.joint.pair.advance)
    axes = branch.axes if pair != "spherical" else ()
    for axis, tag in zip(axes, ("axis", "axis2"), strict=False):
        _axis(outline, add_element(element, tag), axis)
    if branch.name in mimics:
        _, source, ratio, offset = mimics[branch.name]
        mimic = add_element(element[-1], "mimic", joint=source)
        for tag, value in (("multiplier", ratio), ("offset", offset), ("reference", 0.0)):
            _add(mimic, tag, value)
    if pair == "spherical" and _says_more(branch.axes):
        outline.omit("limits and losses of ball joints", branch.name)


def _says_more(axes: Iterable[Axis]) -> bool:
    return any(
        np.isfinite([*axis.limits.values()]).any() or any(axis.losses.values()) for axis in axes
    )


def _axis(outline: Outline, element: ElementTree.Element, axis: Axis) -> None:
    _add(element, "xyz", axis.direction)
    if np.isfinite([*axis.limits.values()]).any():
        limit = add_element(element, "limit")
        for key, value in axis.limits.items():
            if np.isfinite(value):
                _add(limit, key, value)
    losses = {key: axis.losses[key] for key in ("damping", "friction") if axis.losses[key]}
    if losses:
        dynamics = add_element(element, "dynamics")
        for key, value in losses.items():
            _add(dynamics, key, value)
    if axis.losses["armature"]:
        outline.omit("armature", axis.name)


def _loop(outline: Outline, model: ElementTree.Element, loop: Joint) -> None:
    if loop.pair.name not in _TYPES:
        raise outline.refuse(f"loop '{loop.name}' is closed by a {loop.pair.name} pair")
    loop = reversed_joint(loop) if loop.child == GROUND else loop
    above, below = (outline.placements[body] for body in (loop.parent, loop.child))
    a, b = above * loop.frame_parent, below * loop.frame_child
    if np.abs(loop.pair.residual(a.actInv(b))).max() > CLOSED * max(1.0, outline.robot.length):
        what = f"loop '{loop.name}' is open at zero coordinates"
        raise outline.refuse(what, "; URDF and MJCF can")
    kind = _TYPES[loop.pair.name]
    element = _joint(model, loop.name, kind, (loop.parent, loop.child), loop.frame_child)
    if loop.pair.advance:
        _add(element, "screw_thread_pitch", 2 * np.pi * loop.pair.advance)
    count = loop.pair.axis_count()
    axes = (b.rotation.T @ a.rotation[:, 2], np.eye(3)[0]) if count == 2 else (np.eye(3)[2],)
    for direction, tag in zip(axes if count else (), ("axis", "axis2"), strict=False):
        _add(add_element(element, tag), "xyz", direction)
    simbody = add_element(add_element(element, "physics"), "simbody")
    _add(simbody, "must_be_loop_joint", "true")


def _shape(
    outline: Outline, link: ElementTree.Element, geometry: Geometry, folder: Path | None
) -> None:
    shape = geometry.shape
    element = add_element(link, geometry.role, name=geometry.name)
    _pose(element, geometry.placement)
    kind = add_element(add_element(element, "geometry"), shape.kind)
    if shape.kind == "mesh":
        if shape.path is None:
            raise outline.refuse(f"mesh '{geometry.name}' is in no file")
        _add(kind, "uri", mesh_name(shape.path, folder))
        _add(kind, "scale", shape.size)
    else:
        keys = SIZES[shape.kind]
        if len(keys) == 1:
            _add(kind, keys[0], shape.size)
        for key, value in zip(keys, shape.size, strict=False) if len(keys) > 1 else ():
            _add(kind, key, value)
    if geometry.color is not None and geometry.role == "visual":
        _add(add_element(element, "material"), "diffuse", geometry.color)
    elif geometry.color is not None:
        outline.omit("colours of collision shapes", geometry.name)
