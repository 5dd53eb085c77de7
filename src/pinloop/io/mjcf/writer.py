"""Writing a robot without loops as MJCF: bodies, joints, shapes, motors, joints that follow others.

What MJCF cannot say of a tree is refused by name, but for limits of speed, which it does not have,
and meshes in formats that MuJoCo does not read: these are left out.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import numpy as np
import pinocchio as pin

from ...boundary.xml import add_element, number_text
from ...errors import BadValue
from ...model.description import GROUND, Body, Geometry, Joint
from ...model.mechanism import Mechanism
from ...tolerances import ROTATION_DUST
from ..quantities import reversed_joint

_KINDS = {"revolute": "hinge", "prismatic": "slide", "spherical": "ball", "free": "free"}
_MESHES = (".stl", ".obj", ".msh")


def write_mjcf(robot: Mechanism) -> str:
    """Return the MJCF of a tree; meshes by their absolute paths.

    Raises:
        BadValue: it has loops, or joints or couplings that MJCF does not have.
    """
    if robot.loops:
        raise BadValue(
            f"robot '{robot.name}' has the loop '{robot.loops[0].name}'; MJCF is "
            "written of trees, such as serial twins"
        )
    root = ElementTree.Element("mujoco", model=robot.name or "robot")
    add_element(root, "compiler", angle="radian")
    add_element(root, "option", gravity=robot.gravity)
    writer = _Writer(robot, add_element(root, "asset"))
    writer.bodies(add_element(root, "worldbody"))
    equalities, motors = add_element(root, "equality"), add_element(root, "actuator")
    for coupling in robot.couplings:
        rows, joints = coupling.polynomials, coupling.joints
        if len(rows) != 2 or len(rows[0]) != 2 or rows[0][1] != 1.0 or len(rows[1]) > 5:
            raise BadValue(
                f"coupling '{coupling.name}' is no polynomial of degree 4 in one joint, which is "
                "what MJCF has"
            )
        terms = -np.pad(rows[1], (0, 5 - len(rows[1])))
        terms[0] -= rows[0][0]
        first, second = joints
        names = {"name": coupling.name, "joint1": first, "joint2": second}
        add_element(equalities, "joint", **names, polycoef=terms)
    for name in robot.actuated:
        add_element(motors, "motor", name=name, joint=name)
    for empty in [section for section in root if section.tag != "option" and not len(section)]:
        if not empty.attrib:
            root.remove(empty)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


class _Writer:
    """Writes bodies, with joints and shapes, and their meshes into ``assets``."""

    def __init__(self, robot: Mechanism, assets: ElementTree.Element) -> None:
        self._robot, self._assets = robot, assets

    def bodies(self, world: ElementTree.Element) -> None:
        """All bodies under the world."""
        description = self._robot.description
        known = {body.name: body for body in description.bodies}
        elements = {GROUND: world}
        if description.base is not None:
            elements[description.base] = self._body(world, known[description.base])
        for edge in self._robot.tree.edges:
            joint = edge.joint if edge.orientation > 0 else reversed_joint(edge.joint)
            element = elements[edge.child] = self._body(elements[edge.parent], known[edge.child])
            _pose(element, joint.frame_parent * joint.frame_child.inverse())
            self._joint(element, joint)
        for shape in description.geometry:
            self._shape(elements[shape.body], shape)

    def _body(self, parent: ElementTree.Element, body: Body) -> ElementTree.Element:
        element = add_element(parent, "body", name=body.name)
        if body.mass or np.any(body.inertia):
            cells = [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)]
            moments = [body.inertia[cell] for cell in cells]
            add_element(element, "inertial", pos=body.com, mass=body.mass, fullinertia=moments)
        return element

    def _joint(self, body: ElementTree.Element, joint: Joint) -> None:
        if joint.pair.dof == 0:
            return
        kind = _KINDS.get(joint.pair.name)
        if kind is None:
            raise BadValue(f"joint '{joint.name}' is a {joint.pair.name} pair; MJCF has none")
        frame, model = joint.frame_child, self._robot.model
        element = ElementTree.Element("joint", name=joint.name, type=kind)
        body.insert(0, element)
        if kind == "free":
            return
        element.set("pos", number_text(frame.translation))
        values = {"damping": joint.damping, "frictionloss": joint.friction}
        values["armature"] = model.armature[self._robot.coordinates(joint.name).v]
        if kind != "ball":
            element.set("axis", number_text(frame.rotation[:, 2]))
            ends = {"range": (*joint.lower, *joint.upper)}
            ends["actuatorfrcrange"] = tuple(s * x for x in joint.effort for s in (-1.0, 1.0))
            for key, pair in ends.items():
                if len(pair) == 2 and np.isfinite(pair).all() and pair[0] < pair[1]:
                    element.set(key, number_text(pair))
        for key, numbers in values.items():
            if np.any(numbers):
                element.set(key, number_text([max(numbers)]))

    def _shape(self, body: ElementTree.Element, geometry: Geometry) -> None:
        shape, size = geometry.shape, np.array(geometry.shape.size)
        if shape.kind == "mesh" and (
            shape.path is None or shape.path.suffix.lower() not in _MESHES
        ):
            return
        name = f"{geometry.role}:{geometry.name}"
        element = add_element(body, "geom", name=name, type=shape.kind, rgba=geometry.color)
        if shape.kind == "mesh":
            name = f"mesh_{len(self._assets)}"
            add_element(self._assets, "mesh", name=name, file=str(shape.path), scale=size)
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
