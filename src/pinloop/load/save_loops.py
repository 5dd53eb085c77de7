"""A robot's loops file as a document: closing joints, couplings, actuation, order, gravity."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pinocchio as pin

from ..description import Coupling, Description, Drive, Joint
from ..graph import SpanningTree
from .loopsfile import FORMAT
from .save_poses import axes_of_loop

__all__ = ["loops_of"]


def loops_of(description: Description, tree: SpanningTree) -> dict[str, Any]:
    """Return what the URDF of the tree does not say, in the form of `loopsfile.LoopsFile`.

    Args:
        description: the robot.
        tree: its spanning tree: these joints are in the URDF, the others here.
    """
    in_tree = {edge.joint.name for edge in tree.edges}
    closing = [joint for joint in description.joints if joint.name not in in_tree]
    document: dict[str, Any] = {
        "format": FORMAT,
        "loops": [_loop(joint) for joint in closing],
        "couplings": [_coupling(coupling) for coupling in description.couplings],
    }
    if description.actuated is not None:
        document["actuated"] = list(description.actuated)
    free = [j.name for j in description.joints if j.name in in_tree and j.cut is None]
    # A URDF is read in the order of the joints' names, and the loops come after them.
    order = [joint.name for joint in description.joints]
    read = sorted(in_tree) + [joint.name for joint in closing]
    document |= {
        "free": free,
        "order": [] if read == order else order,
        "drives": {drive.joint: _drive(drive) for drive in description.drives},
    }
    document = {key: value for key, value in document.items() if value or key == "actuated"}
    return document | {"gravity": _floats(description.gravity)}


def _floats(values: Iterable[float]) -> list[float]:
    """Plain numbers without negative zeros."""
    return [float(value) + 0.0 for value in values]


def _loop(joint: Joint) -> dict[str, Any]:
    """Entry of one closing joint."""
    poses = axes_of_loop(joint)
    entry: dict[str, Any] = {"name": joint.name, "pair": joint.pair.name}
    entry |= {key: float(value) for key, value in joint.pair.parameters.items()}
    entry["a"] = _frame(joint.parent, poses.origin)
    entry["b"] = _frame(joint.child, poses.seat)
    if poses.axis is not None:
        entry["axis"] = _floats(poses.axis)
    if poses.axis2 is not None:
        entry["axis2"] = _floats(poses.axis2)
    if joint.cut is not True:
        entry["cut"] = joint.cut
    if joint.coordinates:
        entry["coordinates"] = joint.coordinates
    for group, keys in (
        ("limits", ("lower", "upper", "velocity", "effort")),
        ("losses", ("damping", "friction", "armature")),
    ):
        values = {key: _floats(getattr(joint, key)) for key in keys if getattr(joint, key)}
        if values:
            entry[group] = values
    return entry


def _frame(body: str, placement: pin.SE3) -> dict[str, Any]:
    frame: dict[str, Any] = {"body": body, "xyz": _floats(placement.translation)}
    if np.any(placement.rotation != np.eye(3)):
        frame["rpy"] = _floats(pin.rpy.matrixToRpy(placement.rotation))
    return frame


def _coupling(coupling: Coupling) -> dict[str, Any]:
    """Entry of a coupling; ``joint = ratio * source + offset`` where it is one."""
    rows = coupling.polynomials
    if len(rows) == 2 and all(len(row) == 2 for row in rows) and rows[0][1] == 1 and not rows[1][0]:
        joint, source = coupling.joints
        numbers = {"ratio": 0.0 - float(rows[1][1]), "offset": 0.0 - float(rows[0][0])}
        return {"name": coupling.name, "joint": joint, "source": source, **numbers}
    terms = zip(coupling.joints, rows, strict=True)
    return {"name": coupling.name, "polynomials": {joint: _floats(row) for joint, row in terms}}


def _drive(drive: Drive) -> dict[str, float]:
    entry = {"reduction": float(drive.reduction)}
    if drive.rotor_inertia is not None:
        entry["rotor_inertia"] = float(drive.rotor_inertia)
    return entry
