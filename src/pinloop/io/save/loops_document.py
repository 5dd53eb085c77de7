"""A robot's loops file as a document: closing joints, couplings, actuation, order, gravity.

Also which limits of a tree joint a URDF can say, as the loops file says the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pinocchio as pin

from ...boundary.registry import origin
from ...model.description import Coupling, Description, Drive, Joint
from ...model.graph import SpanningTree
from ..loopsfile import FORMAT
from .joint_poses import axes_of_loop

__all__ = ["loops_of", "urdf_limits"]

_STAND_IN = {"lower": -1e30, "upper": 1e30, "velocity": 1e30, "effort": 1e30}
"""URDF readers insist on finite limits of revolute and prismatic joints: these limit nothing."""


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
    against = [edge.joint.name for edge in tree.edges if edge.orientation < 0]
    limits = {j.name: _lost_limits(j) for j in description.joints if j.name in in_tree}
    document |= {
        "limits": {name: values for name, values in limits.items() if values},
        "reversed": against,
        "free": free,
        "order": [] if read == order else order,
        "drives": {drive.joint: _drive(drive) for drive in description.drives},
    }
    document = {key: value for key, value in document.items() if value or key == "actuated"}
    return document | {"gravity": _floats(description.gravity)}


def urdf_limits(joint: Joint) -> dict[str, tuple[float, ...]]:
    """Limits of a tree joint as its URDF says them, without those that are not given.

    Complete and finite where other readers demand it. A revolute joint without a range is
    continuous; it needs effort and velocity together or not at all.
    """
    given = {key: getattr(joint, key) for key in _STAND_IN if getattr(joint, key)}
    ranged = bool(np.any(np.isfinite((*joint.lower, *joint.upper))))
    if joint.pair.name not in ("revolute", "prismatic") or len(joint.lower) > 1:
        return given
    if joint.pair.name == "revolute" and not ranged:
        if not np.any(np.isfinite((*joint.velocity, *joint.effort))):
            return {}
        keys = ["velocity", "effort"]
    else:
        keys = list(_STAND_IN)
    complete = {}
    for key in keys:
        values = given.get(key, (np.inf,))
        complete[key] = values if np.all(np.isfinite(values)) else (_STAND_IN[key],)
    return complete


def _lost_limits(joint: Joint) -> dict[str, float]:
    """Limits for which the URDF holds a stand-in: in truth there is none."""
    written = urdf_limits(joint)
    return {
        key: float(np.copysign(np.inf, value))
        for key, value in _STAND_IN.items()
        if written.get(key) == (value,)
    }


def _floats(values: Iterable[float]) -> list[float]:
    """Plain numbers without negative zeros."""
    return [float(value) + 0.0 for value in values]


def _loop(joint: Joint) -> dict[str, Any]:
    """Entry of one closing joint."""
    poses = axes_of_loop(joint)
    entry: dict[str, Any] = {"name": joint.name, "pair": joint.pair.name}
    parameters = {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in joint.pair.parameters.items()
    }
    if where := origin(type(joint.pair)):
        entry |= {"defined_in": where, "parameters": parameters}
    else:
        entry |= parameters
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
