"""Writing a robot as URDF: bodies, joints, loops and shapes, with a loops file for the rest.

`pinloop.load` reads both back as the same robot. What URDF has no words for is said with the
elements of our own that `urdf.reader` and `urdf.loops` describe; other readers ignore them.
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

from ...boundary.files import as_target, write_text
from ...boundary.marks import Array
from ...boundary.values import origin
from ...boundary.xml import add_element, number_text, parse_xml
from ...errors import BadValue, LoadError
from ...model.description import (
    GROUND,
    LIMITS,
    LOSSES,
    Body,
    Coupling,
    Description,
    Drive,
    Geometry,
    Joint,
    Shape,
    is_mimic,
)
from ...model.graph import SpanningTree, spanning_tree
from ...model.pairs import align_z
from ...tolerances import ROTATION_DUST
from ..loopsfile import FORMAT
from ..quantities import MOMENTS, SIZES, reversed_joint, turn
from .outline import mesh_name

_URDF_TYPES = {"free": "floating"}
"""Pairs that URDF knows under another name."""

_STAND_IN = {"lower": -1e30, "upper": 1e30, "velocity": 1e30, "effort": 1e30}
"""URDF readers insist on finite limits of revolute and prismatic joints: these limit nothing."""

_SHIFTED = """\
 Joints with a pose on their child (the attributes xyz and rpy of child) are an addition to URDF:
  readers that do not know it put these child links in the wrong place. """


def save_urdf(description: Description, path: str | Path) -> Path:
    """Write ``<path>.urdf`` and, beside it, ``<path>.loops.yaml``; return the path of the URDF.

    A `BadValue` if the robot has a name that XML cannot hold, or the files cannot be written; a
    `LoadError` if its joints do not hang together, so that there is no tree to write.
    """
    urdf = as_target(path)
    if urdf.suffix.lower() != ".urdf":
        urdf = urdf.with_name(urdf.name + ".urdf")
    loops = yaml.safe_dump(
        {"format": FORMAT, "beside": ".urdf"} | loops_document(description),
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=None,
        width=100,
    )
    texts = {
        urdf: write_urdf(description, urdf.parent),
        urdf.with_name(urdf.stem + ".loops.yaml"): (f"# What {urdf.name!r} does not say.\n{loops}"),
    }
    for file, text in texts.items():
        write_text(file, text)
    return urdf


def write_urdf(description: Description, folder: Path | None = None) -> str:
    """Return the URDF of the bodies, joints, loops, named frames and shapes of a robot.

    Which joints are in the tree is chosen as for simulation. A joint that the tree runs through
    against its direction is written the other way round; the loops file turns it back. Meshes are
    named as seen from ``folder``.
    """
    groups = (description.bodies, description.joints, description.frames, description.geometry)
    for name in (description.name, *(item.name for group in groups for item in group)):
        if name != name.strip():
            raise BadValue(f"name '{name}' begins or ends with blanks, which a URDF does not keep")
    writer = _Writer(description, folder)
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

    The keys are those of `loopsfile.LoopsFile`.
    """
    tree = _tree(description)
    in_tree = {edge.joint.name for edge in tree.edges}
    closing = [joint for joint in description.joints if joint.name not in in_tree]
    apart = [joint for joint in closing if not _is_plain_loop(joint)]
    # A URDF is read in the order of the joints' names, and the loops come after them.
    order = [joint.name for joint in description.joints]
    plain = [joint.name for joint in closing if joint not in apart]
    read = sorted(in_tree) + plain + [joint.name for joint in apart]
    limits = {j.name: _lost_limits(j) for j in description.joints if j.name in in_tree}
    document: dict[str, Any] = {
        "format": FORMAT,
        "loops": [_loop_entry(joint) for joint in apart],
        "couplings": [_coupling_entry(c) for c in description.couplings if not is_mimic(c)],
        "actuated": list(description.actuated or ()),
        "limits": {name: values for name, values in limits.items() if values},
        "reversed": [edge.joint.name for edge in tree.edges if edge.orientation < 0],
        "free": [j.name for j in description.joints if j.name in in_tree and j.cut is None],
        "order": [] if read == order else order,
        "drives": {drive.joint: _drive_entry(drive) for drive in description.drives},
        "gravity": _floats(description.gravity),
    }
    stays = {"gravity"} if description.actuated is None else {"gravity", "actuated"}
    return {key: value for key, value in document.items() if value or key in stays}


def _is_plain_loop(joint: Joint) -> bool:
    """Whether a ``<loop_joint>`` says all of a joint that closes a loop."""
    values = (getattr(joint, key) for key in ("coordinates", *LIMITS, *LOSSES))
    return joint.cut is True and not any(values)


def _tree(description: Description) -> SpanningTree:
    bodies = [body.name for body in description.bodies]
    return spanning_tree(bodies, description.joints, description.base)


# -- joints ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class UrdfPoses:
    """A joint as URDF says it: ``origin`` in the parent, and axes in this frame, shape (3,).

    Here the child carries a pose of that frame as well, ``mount``: the identity in plain URDF.
    Reading is ``A = origin K`` and ``B = mount K`` with the rotation ``K`` that the axes give.
    """

    origin: pin.SE3
    mount: pin.SE3
    axis: Array | None = None
    axis2: Array | None = None


def urdf_poses(joint: Joint) -> UrdfPoses:
    """Poses and axes with which a URDF says a tree joint."""
    frame_a, frame_b = joint.frame_parent, joint.frame_child
    pair, axes = joint.pair, joint.pair.axis_count()
    # The axes of the child will do where only a shift is left on it then: two axes say all of the
    # frames, and the motion along one screw commutes with turns of A and B about its axis.
    if not (axes == 2 or (pair.is_group and pair.dof <= 1)):
        return _exact_poses(joint)
    origin, mount = frame_a * turn(frame_b.rotation.T), pin.SE3(np.eye(3), frame_b.translation)
    x, _, z = np.array(frame_b.rotation.T)
    return UrdfPoses(origin, mount, z if axes else None, x if axes == 2 else None)


def _exact_poses(joint: Joint) -> UrdfPoses:
    """Poses and axes that give exactly the frames A and B of a joint."""
    axes = joint.pair.axis_count()
    if axes == 2:
        return UrdfPoses(joint.frame_parent, joint.frame_child, np.eye(3)[2], np.eye(3)[0])
    if not axes:
        return UrdfPoses(joint.frame_parent, joint.frame_child)
    z = np.array(joint.frame_child.rotation[:, 2])
    back = turn(align_z(z).T)
    mount = joint.frame_child * back
    if np.abs(mount.rotation - np.eye(3)).max() < ROTATION_DUST:
        mount = pin.SE3(np.eye(3), mount.translation)
    return UrdfPoses(joint.frame_parent * back, mount, z)


def _urdf_limits(joint: Joint) -> dict[str, tuple[float, ...]]:
    """Limits of a tree joint as its URDF says them, without those that are not given.

    Complete and finite where other readers demand it. A revolute joint without a range is
    continuous; it needs effort and velocity together or not at all.
    """
    given = {key: getattr(joint, key) for key in LIMITS if getattr(joint, key)}
    if joint.pair.name not in ("revolute", "prismatic") or len(joint.lower) > 1:
        return given
    keys = list(_STAND_IN)
    if joint.pair.name == "revolute" and not np.any(np.isfinite((*joint.lower, *joint.upper))):
        if not np.any(np.isfinite((*joint.velocity, *joint.effort))):
            return {}
        keys = ["velocity", "effort"]
    limits = {key: given.get(key, (np.inf,)) for key in keys}
    return {
        key: values if np.all(np.isfinite(values)) else (_STAND_IN[key],)
        for key, values in limits.items()
    }


def _lost_limits(joint: Joint) -> dict[str, float]:
    """Limits for which the URDF holds a stand-in: in truth there is none."""
    written = _urdf_limits(joint)
    return {
        key: float(np.copysign(np.inf, value))
        for key, value in _STAND_IN.items()
        if written.get(key) == (value,)
    }


# -- the loops file -------------------------------------------------------------------------------


def _floats(values: Iterable[float]) -> list[float]:
    """Plain numbers without negative zeros."""
    return [float(value) + 0.0 for value in values]


def _loop_entry(joint: Joint) -> dict[str, Any]:
    poses = _exact_poses(joint)
    entry: dict[str, Any] = {"name": joint.name, "pair": joint.pair.name}
    parameters = {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in joint.pair.parameters.items()
    }
    if where := origin(type(joint.pair)):
        entry |= {"defined_in": where, "parameters": parameters}
    else:
        entry |= parameters
    for end, body, placement in (
        ("a", joint.parent, poses.origin),
        ("b", joint.child, poses.mount),
    ):
        entry[end] = {"body": body, "xyz": _floats(placement.translation)}
        if np.any(placement.rotation != np.eye(3)):
            entry[end]["rpy"] = _floats(pin.rpy.matrixToRpy(placement.rotation))
    for key, axis in (("axis", poses.axis), ("axis2", poses.axis2)):
        if axis is not None:
            entry[key] = _floats(axis)
    if joint.cut is not True:
        entry["cut"] = joint.cut
    if joint.coordinates:
        entry["coordinates"] = joint.coordinates
    for group, keys in (("limits", LIMITS), ("losses", LOSSES)):
        values = {key: _floats(getattr(joint, key)) for key in keys if getattr(joint, key)}
        if values:
            entry[group] = values
    return entry


def _coupling_entry(coupling: Coupling) -> dict[str, Any]:
    """Entry of a coupling; ``joint = ratio * source + offset`` where it is one."""
    rows = coupling.polynomials
    if len(rows) == 2 and all(len(row) == 2 for row in rows) and rows[0][1] == 1 and not rows[1][0]:
        joint, source = coupling.joints
        numbers = {"ratio": 0.0 - float(rows[1][1]), "offset": 0.0 - float(rows[0][0])}
        return {"name": coupling.name, "joint": joint, "source": source, **numbers}
    terms = zip(coupling.joints, rows, strict=True)
    return {"name": coupling.name, "polynomials": {joint: _floats(row) for joint, row in terms}}


def _drive_entry(drive: Drive) -> dict[str, float]:
    entry = {"reduction": float(drive.reduction)}
    if drive.rotor_inertia is not None:
        entry["rotor_inertia"] = float(drive.rotor_inertia)
    return entry


# -- the URDF -------------------------------------------------------------------------------------


def _pose(element: ElementTree.Element, placement: pin.SE3) -> None:
    """Write a placement as attributes; nothing for the identity."""
    if np.any(placement.translation):
        element.set("xyz", number_text(placement.translation))
    if np.any(placement.rotation != np.eye(3)):
        element.set("rpy", number_text(pin.rpy.matrixToRpy(placement.rotation)))


def _origin(parent: ElementTree.Element, placement: pin.SE3) -> None:
    """Write a placement as ``<origin>``, unless it is the identity."""
    element = ElementTree.Element("origin")
    _pose(element, placement)
    if element.attrib:
        parent.append(element)


class _Writer:
    """Writes one robot; ``shifted`` says whether some joint has a pose on its child."""

    def __init__(self, description: Description, folder: Path | None) -> None:
        self.shifted = False
        self._description = description
        self._folder = folder
        colors = [item.color for item in description.geometry if item.color is not None]
        self._colors = {color: number for number, color in enumerate(dict.fromkeys(colors), 1)}

    def robot(self) -> ElementTree.Element:
        """The whole document."""
        description = self._description
        root = ElementTree.Element("robot", name=description.name or "robot")
        if description.base is None:
            self._link(root, Body(GROUND))
        for body in description.bodies:
            self._link(root, body)
        edges = {edge.joint.name: edge for edge in _tree(description).edges}
        for joint in description.joints:
            if joint.name in edges:
                forward = edges[joint.name].orientation > 0
                self._joint(root, joint if forward else reversed_joint(joint))
            elif _is_plain_loop(joint):
                self._loop(root, joint)
        for frame in description.frames:
            _pose(add_element(root, "frame", name=frame.name, link=frame.body), frame.placement)
        return root

    def _root_link(self, body: str) -> str:
        """Name of the link that stands for a body: a base is the ground itself."""
        return self._description.base or GROUND if body == GROUND else body

    def _link(self, root: ElementTree.Element, body: Body) -> None:
        link = add_element(root, "link", name=body.name)
        if body.mass or np.any(body.inertia):
            inertial = add_element(link, "inertial")
            _origin(inertial, pin.SE3(np.eye(3), np.array(body.com)))
            add_element(inertial, "mass", value=body.mass)
            moments = {key: body.inertia[cell] for key, cell in MOMENTS.items()}
            add_element(inertial, "inertia", **moments)
        for geometry in self._description.geometry:
            if self._root_link(geometry.body) == body.name:
                self._geometry(link, geometry)

    def _geometry(self, link: ElementTree.Element, geometry: Geometry) -> None:
        element = add_element(link, geometry.role, name=geometry.name)
        _origin(element, geometry.placement)
        self._shape(add_element(element, "geometry"), geometry.shape)
        if geometry.color is not None:
            number = self._colors[geometry.color]
            material = add_element(element, "material", name=f"color_{number}")
            add_element(material, "color", rgba=geometry.color)

    def _shape(self, parent: ElementTree.Element, shape: Shape) -> None:
        if shape.kind != "mesh":
            keys = SIZES[shape.kind]
            values = [shape.size] if len(keys) == 1 else shape.size
            add_element(parent, shape.kind, **dict(zip(keys, values, strict=True)))
            return
        if shape.path is None:
            raise BadValue("a mesh without a file cannot be written")
        scale = None if shape.size == (1.0, 1.0, 1.0) else shape.size
        add_element(parent, "mesh", filename=mesh_name(shape.path, self._folder), scale=scale)

    def _loop(self, root: ElementTree.Element, joint: Joint) -> None:
        element, poses = self._pair(root, "loop_joint", joint, joint.pair.name), _exact_poses(joint)
        for tag, axis in (("axis", poses.axis), ("axis2", poses.axis2)):
            if axis is not None:
                add_element(element, tag, xyz=axis)
        ends = ((joint.parent, poses.origin), (joint.child, poses.mount))
        for number, (body, placement) in enumerate(ends, 1):
            _pose(add_element(element, f"link{number}", link=self._root_link(body)), placement)

    @staticmethod
    def _pair(root: ElementTree.Element, tag: str, joint: Joint, kind: str) -> ElementTree.Element:
        """Element of a joint with its pair and the parameters of this."""
        element = add_element(root, tag, name=joint.name, type=kind)
        where = origin(type(joint.pair))
        if where:
            element.set("defined_in", where)
        for key, value in joint.pair.parameters.items():
            if where:
                add_element(element, "parameter", name=key, value=value)
            else:
                element.set(key, number_text(value))
        return element

    def _joint(self, root: ElementTree.Element, joint: Joint) -> None:
        kind = _URDF_TYPES.get(joint.pair.name, joint.pair.name)
        limits = _urdf_limits(joint)
        if kind == "revolute" and "lower" not in limits:
            kind = "continuous"
        element = self._pair(root, "joint", joint, kind)
        if joint.coordinates:
            element.set("coordinates", joint.coordinates)
        poses = urdf_poses(joint)
        _origin(element, poses.origin)
        add_element(element, "parent", link=self._root_link(joint.parent))
        child = add_element(element, "child", link=joint.child)
        _pose(child, poses.mount)
        self.shifted = self.shifted or len(child.attrib) > 1
        for tag, axis in (("axis", poses.axis), ("axis2", poses.axis2)):
            if axis is not None:
                add_element(element, tag, xyz=axis)
        for coupling in filter(is_mimic, self._description.couplings):
            if coupling.joints[0] == joint.name:
                entry = _coupling_entry(coupling)
                ratio, offset = entry["ratio"], entry["offset"]
                add_element(
                    element, "mimic", joint=entry["source"], multiplier=ratio, offset=offset
                )
        losses = {key: getattr(joint, key) for key in LOSSES}
        if losses["armature"] and not (losses["damping"] or losses["friction"]):
            # Other readers do not know armature and refuse an element without the others.
            losses["damping"] = (0.0,) * len(losses["armature"])
        for tag, values in (("limit", limits), ("dynamics", losses)):
            if given := {key: numbers for key, numbers in values.items() if numbers}:
                add_element(element, tag, **given)
