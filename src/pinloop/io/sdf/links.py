"""Links of SDF: mass properties, and shapes to be seen and collided with."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...boundary.xml import Element, Remarks
from ...model.description import Body, Geometry, Shape, constant
from ..mjcf.inertia import Moments, primitive_moments, turned
from .scope import Frame, Scope
from .source import read_pose, truth

__all__ = ["read_body", "read_geometry", "read_link"]

Array = NDArray[np.float64]
Color = tuple[float, float, float, float]

_DENSITY = 1000.0
"""What SDF takes for the density of a collision that gives none [kg/m^3]."""


def read_link(frame: Frame, remarks: Remarks) -> Body:
    """Read the mass properties of a link; warn of what else it says about mechanics."""
    link = frame.element
    assert link is not None
    for tag, default, problem in (
        ("gravity", True, "switches gravity off, which is not read; it has its weight"),
        ("kinematic", False, "is kinematic, which is not read; it moves as its joints let it"),
    ):
        child = link.first(tag)
        if child is not None and truth(child, child.text, default) != default:
            remarks.add(link, problem)
    decay = link.first("velocity_decay")
    if decay is not None and any(decay.text_number(kind, 0.0) for kind in ("linear", "angular")):
        remarks.add(decay, "is not read; give its joints damping")
    inertial = link.first("inertial")
    if inertial is not None and truth(inertial, inertial.get("auto")):
        return _body_of_collisions(frame, inertial)
    return read_body(frame.name, link, remarks)


def _body_of_collisions(frame: Frame, inertial: Element) -> Body:
    """Mass properties that SDF computes from the collisions (``auto="true"``)."""
    link, scope = frame.element, frame.scope
    assert link is not None and scope is not None
    density = inertial.text_number("density", _DENSITY)
    parts: list[Moments] = []
    for element in link.all("collision"):
        if element.need("geometry").first("mesh") is not None:
            raise element.error("is a mesh, whose inertia is not computed; write <inertial> out")
        # What is not read is reported where the collisions are.
        shape = _shape(element, scope, Remarks())
        if shape is not None:
            solid = primitive_moments(shape).scaled(element.text_number("density", density))
            parts.append(solid.placed(scope.pose_in(element, frame)))
    total = Moments.total(parts)
    if not total.mass > 0:
        raise inertial.error("is to be computed (auto='true'), but no collision has a mass")
    total = total.scaled(inertial.text_number("mass", total.mass) / total.mass)
    return Body(frame.name, total.mass, constant(total.com), constant(total.inertia), link.place)


def read_geometry(frame: Frame, scope: Scope, taken: set[str], remarks: Remarks) -> list[Geometry]:
    """Read the visuals and collisions of a link.

    Args:
        frame: the link.
        scope: the model it is in.
        taken: names that are used already, as "role name"; is added to.
        remarks: takes what is not read.
    """
    link = frame.element
    assert link is not None
    shapes: list[Geometry] = []
    for element in link.all("visual", "collision"):
        role: Literal["visual", "collision"] = "visual" if element.tag == "visual" else "collision"
        shape = _shape(element, scope, remarks)
        if shape is None:
            continue
        # Names are unique in their link only.
        name = plain = element.get("name") or f"{frame.name}_{role}"
        if f"{role} {name}" in taken:
            name = plain = f"{frame.name}::{plain}"
        count = 1
        while f"{role} {name}" in taken:
            count += 1
            name = f"{plain}_{count}"
        taken.add(f"{role} {name}")
        placement = scope.pose_in(element, frame)
        color = _color(element) if role == "visual" else None
        shapes.append(Geometry(name, frame.name, role, shape, placement, color))
    return shapes


def read_body(name: str, link: Element, remarks: Remarks) -> Body:
    """Read the mass properties; SDF gives a link that says nothing 1 kg and a unit inertia."""
    inertial = link.first("inertial")
    if inertial is None:
        remarks.add(link, "has no <inertial>; SDF's default of 1 kg and 1 kg m^2 is taken")
        return Body(name, 1.0, constant(np.zeros(3)), constant(np.eye(3)), link.place)
    if truth(inertial, inertial.get("auto")):
        raise inertial.error("is to be computed (auto='true'), which is not read; write it out")
    defaults = [tag for tag in ("mass", "inertia") if inertial.first(tag) is None]
    if defaults:
        remarks.add(link, f"has no {' and no '.join(defaults)}; SDF's 1 is taken")
    mass = inertial.text_number("mass", 1.0)
    if mass < 0:
        raise inertial.error(f"has mass {mass} kg; it must not be negative")
    inertia = np.eye(3)
    element = inertial.first("inertia")
    if element is not None:
        xx, yy, zz = (element.text_number(f"i{a}{a}", 1.0) for a in "xyz")
        xy, xz, yz = (element.text_number(tag, 0.0) for tag in ("ixy", "ixz", "iyz"))
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    pose = read_pose(inertial.first("pose"))
    moments = constant(turned(pose.rotation, inertia))
    return Body(name, mass, constant(pose.translation), moments, link.place)


def _shape(element: Element, scope: Scope, remarks: Remarks) -> Shape | None:
    """Shape of a visual or collision, or None and a warning if there is none to show."""
    geometry = element.need("geometry")
    if not geometry.children:
        raise geometry.error("is empty; give it a shape")
    shape = geometry.children[0]
    if shape.tag in ("empty", "plane"):  # floors touch nothing here
        return None
    if shape.tag == "mesh":
        return _mesh(shape, scope, remarks)
    if shape.tag not in ("box", "sphere", "cylinder", "capsule", "ellipsoid"):
        remarks.add(element, f"is a <{shape.tag}>, which is not read")
        return None
    if shape.tag == "box":
        return Shape("box", _positive(shape, shape.text_vector("size")))
    if shape.tag == "ellipsoid":
        return Shape("ellipsoid", _positive(shape, shape.text_vector("radii")))
    radius = shape.text_number("radius")
    if shape.tag == "sphere":
        return Shape("sphere", _positive(shape, np.array([radius])))
    size = _positive(shape, np.array([radius, shape.text_number("length")]))
    return Shape("cylinder" if shape.tag == "cylinder" else "capsule", size)


def _mesh(mesh: Element, scope: Scope, remarks: Remarks) -> Shape | None:
    uri = mesh.need("uri").text.strip()
    path = scope.source.resolve(uri)
    if path is None:
        remarks.add(mesh, f"names the file '{uri}', which does not exist")
        return None
    if mesh.first("submesh") is not None:
        remarks.add(mesh, "picks a submesh, which is not read; all of it is taken")
    scale = mesh.text_vector("scale", (1.0, 1.0, 1.0))
    return Shape("mesh", (float(scale[0]), float(scale[1]), float(scale[2])), path)


def _positive(shape: Element, numbers: Array) -> tuple[float, ...]:
    if np.any(numbers <= 0):
        raise shape.error(f"has size {tuple(map(float, numbers))}; all numbers must be positive")
    return tuple(float(number) for number in numbers)


def _color(visual: Element) -> Color | None:
    """Diffuse colour, or ambient where there is no other, made transparent."""
    material = visual.first("material")
    paint = None if material is None else material.first("diffuse") or material.first("ambient")
    if paint is None:
        return None
    values = paint.numbers(paint.text, None, "the value")
    if len(values) not in (3, 4):
        raise paint.error(f"has {len(values)} numbers; a colour has 3 or 4")
    alpha = float(values[3]) if len(values) == 4 else 1.0
    alpha *= 1.0 - visual.text_number("transparency", 0.0)
    return float(values[0]), float(values[1]), float(values[2]), alpha
