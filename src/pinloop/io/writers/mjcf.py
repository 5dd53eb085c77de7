"""Writing a robot as MJCF: bodies, joints axis by axis, loops and couplings as `<equality>`.

A ball that closes a loop is a connect of two sites, a rigid connection a weld of them, a hinge two
connects at points of its axis: MuJoCo has no other. Sites of loops are called like their frames,
``<loop>/A`` and ``<loop>/B``; by these names `io.mjcf` makes a hinge of two connects again.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pinocchio as pin

from ...boundary.xml import add_element, number_text
from ...model.description import GROUND, Body, Coupling, Geometry, Joint
from ...tolerances import ROTATION_DUST
from .outline import Axis, Branch, Outline, mesh_name

_MESHES = (".stl", ".obj", ".msh")
_CONNECTS = {"spherical": "connect", "revolute": "connect", "fixed": "weld"}
_MOST_POWERS = 5
"""Coefficients that MuJoCo has for polynomials."""


def write_mjcf(outline: Outline, folder: Path | None = None) -> str:
    """Return the MJCF of a robot; meshes are named as seen from ``folder``.

    Raises:
        BadValue: it has joints, loops or couplings that MJCF does not have.
    """
    robot = outline.robot
    root = ElementTree.Element("mujoco", model=robot.name or "robot")
    add_element(root, "compiler", angle="radian")
    add_element(root, "option", gravity=robot.gravity)
    writer = _Writer(outline, add_element(root, "asset"), folder)
    elements = writer.bodies(add_element(root, "worldbody"))
    tendons, equalities = add_element(root, "tendon"), add_element(root, "equality")
    for loop in outline.loops():
        _loop(outline, loop, elements, equalities)
    for coupling in robot.couplings:
        _coupling(outline, coupling, tendons, equalities)
    motors = add_element(root, "actuator")
    for name in robot.actuated:
        axis = outline.axes.get(name)
        if axis is None:
            outline.omit("motors", name)
            continue
        drive = robot.drives.get(name)
        gear = None if drive is None or drive.reduction == 1.0 else drive.reduction
        add_element(motors, "motor", name=name, joint=name, gear=gear)
    for empty in [section for section in root if section.tag != "option" and not len(section)]:
        if not empty.attrib:
            root.remove(empty)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _loop(
    outline: Outline,
    loop: Joint,
    elements: dict[str, ElementTree.Element],
    equalities: ElementTree.Element,
) -> None:
    tag = _CONNECTS.get(loop.pair.name)
    if tag is None:
        raise outline.refuse(f"loop '{loop.name}' is closed by a {loop.pair.name} pair")
    ends = ((loop.parent, loop.frame_parent), (loop.child, loop.frame_child))
    shifts = [0.0, outline.robot.length] if loop.pair.name == "revolute" else [0.0]
    for number, shift in enumerate(shifts, 1):
        name = loop.name if number == 1 else f"{loop.name}/2"
        along = pin.SE3(np.eye(3), np.array([0.0, 0.0, shift]))
        sites = []
        for (body, frame), end in zip(ends, "AB", strict=True):
            sites.append(f"{name}/{end}")
            site = add_element(elements[body], "site", name=sites[-1], group="4")
            _pose(site, frame * along)
        add_element(equalities, tag, name=name, site1=sites[0], site2=sites[1])


def _coupling(
    outline: Outline,
    coupling: Coupling,
    tendons: ElementTree.Element,
    equalities: ElementTree.Element,
) -> None:
    """A polynomial in one joint, or a tendon of constant length over joints that turn linearly."""
    joints, rows = coupling.joints, coupling.polynomials
    linear = [k for k, row in enumerate(rows) if not any(row[2:]) and row[1]]
    constant = sum(row[0] for row in rows)
    known = {*joints} <= outline.axes.keys()
    if known and len(rows) <= 2 and linear and max(map(len, rows)) <= _MOST_POWERS:
        k = linear[0]
        slope, other = rows[k][1], rows[1 - k] if len(rows) == 2 else (0.0,)
        powers = [constant, *other[1:], *[0.0] * (_MOST_POWERS - len(other))]
        names = {"joint1": joints[k], "joint2": joints[1 - k] if len(rows) == 2 else None}
        polynomial = -np.array(powers) / slope
        add_element(equalities, "joint", name=coupling.name, **names, polycoef=polynomial)
    elif known and len(linear) == len(rows):
        tendon = add_element(tendons, "fixed", name=coupling.name)
        for joint, row in zip(joints, rows, strict=True):
            add_element(tendon, "joint", joint=joint, coef=row[1])
        polynomial = np.array([-constant, 0.0, 0.0, 0.0, 0.0])
        names = {"name": coupling.name, "tendon1": coupling.name}
        add_element(equalities, "tendon", **names, polycoef=polynomial)
    else:
        what = f"coupling '{coupling.name}' is no polynomial of degree 4 in one joint of the tree"
        raise outline.refuse(what)


class _Writer:
    """Writes bodies, with joints and shapes, and their meshes into ``assets``."""

    def __init__(self, outline: Outline, assets: ElementTree.Element, folder: Path | None) -> None:
        self._outline, self._assets, self._folder = outline, assets, folder

    def bodies(self, world: ElementTree.Element) -> dict[str, ElementTree.Element]:
        """All bodies under the world, by name."""
        outline, elements = self._outline, {GROUND: world}
        for branch in outline.branches:
            carrier = outline.carrier(branch)
            element = self._body(elements[carrier], branch.body)
            elements[branch.body.name] = element
            above = outline.placements[carrier]
            _pose(element, above.actInv(outline.placements[branch.body.name]))
            self._joint(element, branch)
        description = outline.robot.description
        weighty = {body.name for body in description.bodies if body.mass or np.any(body.inertia)}
        for shape in description.geometry:
            self._shape(elements[shape.body], shape, shape.body in weighty)
        for frame in description.frames:
            _pose(add_element(elements[frame.body], "site", name=frame.name), frame.placement)
        return elements

    @staticmethod
    def _body(parent: ElementTree.Element, body: Body) -> ElementTree.Element:
        element = add_element(parent, "body", name=body.name)
        if body.mass or np.any(body.inertia):
            cells = [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)]
            moments = [body.inertia[cell] for cell in cells]
            add_element(element, "inertial", pos=body.com, mass=body.mass, fullinertia=moments)
        return element

    def _joint(self, body: ElementTree.Element, branch: Branch) -> None:
        outline, at = self._outline, branch.mount
        if branch.kind == "screw":
            raise outline.refuse(f"joint '{branch.name}' is a helical pair")
        if branch.kind in ("ball", "free"):
            pos = None if branch.kind == "free" else at.translation
            element = add_element(body, "joint", name=branch.name, type=branch.kind, pos=pos)
            self._losses(element, branch.name, branch.axes)
            if any(np.isfinite(axis.limits["effort"]) for axis in branch.axes):
                outline.omit("limits of torque", branch.name)
        for axis in branch.axes if branch.kind == "axes" else ():
            kind = "slide" if axis.slides else "hinge"
            element = add_element(body, "joint", name=axis.name, type=kind, pos=at.translation)
            element.set("axis", number_text(at.rotation @ axis.direction))
            effort = axis.limits["effort"]
            ranges = {"range": (axis.limits["lower"], axis.limits["upper"])}
            ranges["actuatorfrcrange"] = (-effort, effort)
            for key, ends in ranges.items():
                if np.isfinite(ends).all() and ends[0] < ends[1]:
                    element.set(key, number_text(ends))
                elif np.isfinite(ends).any() and (ends[1] or axis.name in outline.robot.actuated):
                    outline.omit("limits on one side only", axis.name)
            self._losses(element, axis.name, (axis,))
        if any(np.isfinite(axis.limits["velocity"]) for axis in branch.axes):
            outline.omit("limits of speed", branch.name)

    def _losses(self, element: ElementTree.Element, name: str, axes: tuple[Axis, ...]) -> None:
        """MuJoCo has one number for all axes of a joint."""
        for key, word in (("damping",) * 2, ("friction", "frictionloss"), ("armature",) * 2):
            values = {axis.losses[key] for axis in axes}
            if len(values) > 1:
                raise self._outline.refuse(f"joint '{name}' has a {key} of its own for each axis")
            if any(values):
                element.set(word, number_text([*values]))

    def _shape(self, body: ElementTree.Element, geometry: Geometry, has_mass: bool) -> None:
        shape, size = geometry.shape, np.array(geometry.shape.size)
        if shape.kind == "mesh" and (
            shape.path is None or shape.path.suffix.lower() not in _MESHES
        ):
            self._outline.omit("meshes other than STL and OBJ", geometry.name)
            return
        name = f"{geometry.role}:{geometry.name}"
        element = add_element(body, "geom", name=name, type=shape.kind, rgba=geometry.color)
        if not has_mass:  # MuJoCo would weigh what is drawn
            element.set("mass", "0")
        if shape.kind == "mesh" and shape.path is not None:
            name, file = f"mesh_{len(self._assets)}", mesh_name(shape.path, self._folder)
            add_element(self._assets, "mesh", name=name, file=file, scale=size)
            element.set("mesh", name)
        else:
            # Lengths are halved, radii are not.
            halves = {"box": (2, 2, 2), "cylinder": (1, 2), "capsule": (1, 2)}
            element.set("size", number_text(size / halves.get(shape.kind, 1)))
        _pose(element, geometry.placement)
        if geometry.role == "visual":
            element.attrib |= {"contype": "0", "conaffinity": "0", "group": "2"}


def _pose(element: ElementTree.Element, placement: pin.SE3) -> None:
    if np.any(placement.translation):
        element.set("pos", number_text(placement.translation))
    if np.abs(placement.rotation - np.eye(3)).max() > ROTATION_DUST:
        x, y, z, w = pin.Quaternion(placement.rotation).coeffs()
        element.set("quat", number_text([w, x, y, z]))
