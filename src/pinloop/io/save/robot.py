"""Writing a robot: URDF for bodies, tree joints and shapes, a loops file for the rest.

`save` writes what `pinloop.load` reads back as the same robot. What URDF has no words for is said
with the elements of our own that `urdf` describes; other readers ignore them. The loops file is
`loopsfile`'s.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import yaml

from ...boundary.files import as_path, write_text
from ...boundary.registry import origin
from ...boundary.xml import parse_xml
from ...errors import BadValue, LoadError
from ...model.description import GROUND, Body, Description, Geometry, Joint, Shape
from ...model.graph import SpanningTree, spanning_tree
from ..reversal import reversed_joint
from .joint_poses import urdf_poses
from .loops_document import loops_of, urdf_limits

__all__ = ["loops_document", "save", "write_urdf"]

_URDF_TYPES = {"free": "floating"}
"""Pairs that URDF knows under another name."""

_SHIFTED = """\
 Joints with a pose on their child (the attributes xyz and rpy of child) are an addition to URDF:
  readers that do not know it put these child links in the wrong place. """


def save(description: Description, path: str | Path) -> Path:
    """Write ``<path>.urdf`` and, beside it, ``<path>.loops.yaml``.

    Args:
        description: the robot.
        path: file to write, with or without ``.urdf``; its folder must exist.

    Returns:
        Path of the URDF.

    Raises:
        BadValue: the robot has a name that XML cannot hold, or the files cannot be written.
        LoadError: the joints do not hang together, so that there is no tree to write.
    """
    urdf = as_path(path)
    if urdf.suffix.lower() != ".urdf":
        urdf = urdf.with_name(urdf.name + ".urdf")
    loops = urdf.with_name(urdf.stem + ".loops.yaml")
    texts = {urdf: write_urdf(description, urdf.parent), loops: _loops_text(description, urdf.name)}
    for file, text in texts.items():
        write_text(file, text)
    return urdf


def write_urdf(description: Description, folder: Path | None = None) -> str:
    """Return the URDF of the bodies, tree joints, named frames and shapes of a robot.

    Which joints are in the tree is chosen as for simulation. A joint that the tree runs through
    against its direction is written the other way round; the loops file turns it back.

    Args:
        description: the robot.
        folder: meshes in it are named relative to it; all others by their absolute path.

    Raises:
        BadValue: a name that XML cannot hold.
        LoadError: the joints do not hang together.
    """
    for name in _names(description):
        if name != name.strip():
            raise BadValue(f"name '{name}' begins or ends with blanks, which a URDF does not keep")
    writer = _Writer(description, _tree(description), folder)
    root = writer.robot()
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    if writer.shifted:
        text = f"<!--{_SHIFTED}-->\n{text}"
    text = f'<?xml version="1.0"?>\n{text}\n'
    try:
        parse_xml(text, "URDF")
    except LoadError as error:
        problem = "has a name with characters that XML does not allow"
        raise BadValue(f"robot '{description.name}' {problem}: {error.problem}") from None
    return text


def loops_document(description: Description) -> dict[str, Any]:
    """Return what the loops file of a robot says: all that its URDF does not.

    Args:
        description: the robot.
    """
    return loops_of(description, _tree(description))


def _loops_text(description: Description, urdf: str) -> str:
    text = yaml.safe_dump(
        loops_document(description),
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=None,
        width=100,
    )
    return f"# Loops, couplings and actuation of {urdf!r}.\n{text}"


def _tree(description: Description) -> SpanningTree:
    bodies = [body.name for body in description.bodies]
    return spanning_tree(bodies, description.joints, description.base)


def _names(description: Description) -> Iterable[str]:
    yield description.name
    for group in (description.bodies, description.joints, description.frames, description.geometry):
        yield from (item.name for item in group)


def _text(values: Iterable[float]) -> str:
    """Numbers with as many digits as it takes to read the same ones; no negative zeros."""
    return " ".join(repr(float(value) + 0.0) for value in values)


def _pose(element: ElementTree.Element, placement: pin.SE3) -> None:
    """Write a placement as attributes; nothing for the identity."""
    if np.any(placement.translation):
        element.set("xyz", _text(placement.translation))
    if np.any(placement.rotation != np.eye(3)):
        element.set("rpy", _text(pin.rpy.matrixToRpy(placement.rotation)))


def _add(parent: ElementTree.Element, tag: str, **attributes: str) -> ElementTree.Element:
    return ElementTree.SubElement(parent, tag, attributes)


def _origin(parent: ElementTree.Element, placement: pin.SE3) -> None:
    """Write a placement as ``<origin>``, unless it is the identity."""
    origin = ElementTree.Element("origin")
    _pose(origin, placement)
    if origin.attrib:
        parent.append(origin)


@dataclass
class _Writer:
    """Writes one robot.

    Args:
        description: the robot.
        tree: its spanning tree.
        folder: folder of the file.
        shifted: whether some joint has a pose on its child.
    """

    description: Description
    tree: SpanningTree
    folder: Path | None
    shifted: bool = False

    def robot(self) -> ElementTree.Element:
        """The whole document."""
        root = ElementTree.Element("robot", name=self.description.name or "robot")
        if self.description.base is None:
            self._link(root, Body(GROUND))
        for body in self.description.bodies:
            self._link(root, body)
        edges = {edge.joint.name: edge for edge in self.tree.edges}
        for joint in self.description.joints:
            if joint.name in edges:
                forward = edges[joint.name].orientation > 0
                self._joint(root, joint if forward else reversed_joint(joint))
        for frame in self.description.frames:
            _pose(_add(root, "frame", name=frame.name, link=frame.body), frame.placement)
        return root

    def _root_link(self, body: str) -> str:
        """Name of the link that stands for a body: a base is the ground itself."""
        return self.description.base or GROUND if body == GROUND else body

    def _link(self, root: ElementTree.Element, body: Body) -> None:
        link = _add(root, "link", name=body.name)
        if body.mass or np.any(body.inertia):
            inertial = _add(link, "inertial")
            _origin(inertial, pin.SE3(np.eye(3), np.array(body.com)))
            _add(inertial, "mass", value=_text([body.mass]))
            cells = {
                "ixx": (0, 0),
                "ixy": (0, 1),
                "ixz": (0, 2),
                "iyy": (1, 1),
                "iyz": (1, 2),
                "izz": (2, 2),
            }
            moments = {key: _text([body.inertia[cell]]) for key, cell in cells.items()}
            _add(inertial, "inertia", **moments)
        for geometry in self.description.geometry:
            if self._root_link(geometry.body) == body.name:
                self._geometry(link, geometry)

    def _geometry(self, link: ElementTree.Element, geometry: Geometry) -> None:
        element = _add(link, geometry.role, name=geometry.name)
        _origin(element, geometry.placement)
        self._shape(_add(element, "geometry"), geometry.shape)
        if geometry.color is not None:
            colors = [item.color for item in self.description.geometry if item.color is not None]
            number = list(dict.fromkeys(colors)).index(geometry.color) + 1
            material = _add(element, "material", name=f"color_{number}")
            _add(material, "color", rgba=_text(geometry.color))

    def _shape(self, parent: ElementTree.Element, shape: Shape) -> None:
        if shape.kind == "mesh":
            if shape.path is None:
                raise BadValue("a mesh without a file cannot be written")
            mesh = _add(parent, "mesh", filename=self._file(shape.path))
            if shape.size != (1.0, 1.0, 1.0):
                mesh.set("scale", _text(shape.size))
        elif shape.kind == "box":
            _add(parent, "box", size=_text(shape.size))
        elif shape.kind == "ellipsoid":
            _add(parent, "ellipsoid", radii=_text(shape.size))
        else:
            keys = ("radius", "length")
            values = {key: _text([value]) for key, value in zip(keys, shape.size, strict=False)}
            _add(parent, shape.kind, **values)

    def _file(self, path: Path) -> str:
        """File name of a mesh, relative if it lies in the folder."""
        path = path.resolve()
        if self.folder is not None and path.is_relative_to(self.folder.resolve()):
            return path.relative_to(self.folder.resolve()).as_posix()
        return path.as_posix()

    def _joint(self, root: ElementTree.Element, joint: Joint) -> None:
        kind = _URDF_TYPES.get(joint.pair.name, joint.pair.name)
        limits = urdf_limits(joint)
        if kind == "revolute" and "lower" not in limits:
            kind = "continuous"
        element = _add(root, "joint", name=joint.name, type=kind)
        where = origin(type(joint.pair))
        if where:
            element.set("defined_in", where)
        for key, value in joint.pair.parameters.items():
            text = _text(np.atleast_1d(value))
            if where:
                _add(element, "parameter", name=key, value=text)
            else:
                element.set(key, text)
        if joint.coordinates:
            element.set("coordinates", joint.coordinates)
        poses = urdf_poses(joint)
        _origin(element, poses.origin)
        _add(element, "parent", link=self._root_link(joint.parent))
        seat = _add(element, "child", link=joint.child)
        _pose(seat, poses.seat)
        self.shifted = self.shifted or len(seat.attrib) > 1
        for tag, axis in (("axis", poses.axis), ("axis2", poses.axis2)):
            if axis is not None:
                _add(element, tag, xyz=_text(axis))
        losses = {key: getattr(joint, key) for key in ("damping", "friction", "armature")}
        for tag, values in (("limit", limits), ("dynamics", losses)):
            given = {key: _text(numbers) for key, numbers in values.items() if numbers}
            if given:
                _add(element, tag, **given)
