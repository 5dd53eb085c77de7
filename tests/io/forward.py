"""Forward kinematics of a description with plain matrices, to check readers against."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pinloop.model.description import GROUND, Description, Joint

Array = NDArray[np.float64]


def turn(axis: ArrayLike, angle: float) -> Array:
    """Homogeneous matrix of a rotation about an axis through the origin (Rodrigues)."""
    x, y, z = np.asarray(axis, dtype=float) / np.linalg.norm(axis)
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    T = np.eye(4)
    T[:3, :3] = np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K
    return T


def shift(p: ArrayLike) -> Array:
    """Homogeneous matrix of a translation."""
    T = np.eye(4)
    T[:3, 3] = p
    return T


def about(point: ArrayLike, axis: ArrayLike, angle: float) -> Array:
    """Homogeneous matrix of a rotation about an axis through a point."""
    p = np.asarray(point, dtype=float)
    return shift(p) @ turn(axis, angle) @ shift(-p)


def motion(joint: Joint, q: Any) -> Array:
    """Placement of frame B in frame A at the coordinates ``q`` of a joint."""
    z = (0.0, 0.0, 1.0)
    name = joint.pair.name
    if name == "fixed":
        return np.eye(4)
    if name == "revolute":
        return turn(z, q)
    if name == "prismatic":
        return shift((0.0, 0.0, q))
    if name == "helical":
        return shift((0.0, 0.0, joint.pair.parameters["pitch"] * q)) @ turn(z, q)
    if name == "universal":
        return turn(z, q[0]) @ turn((1.0, 0.0, 0.0), q[1])
    if name in ("spherical", "free"):
        return np.asarray(q, dtype=float)
    raise AssertionError(name)


def neutral(joint: Joint) -> Any:
    """Coordinates at which frame B coincides with frame A."""
    if joint.pair.name in ("spherical", "free"):
        return np.eye(4)
    return (0.0, 0.0) if joint.pair.name == "universal" else 0.0


def placements(description: Description, q: Mapping[str, Any]) -> dict[str, Array]:
    """Placement of every body in the world; joints that are not in ``q`` are at zero."""
    found = {GROUND: np.eye(4)}
    waiting = [joint for joint in description.joints if not joint.cut]
    while waiting:
        ready = [joint for joint in waiting if joint.parent in found]
        assert ready, "some joints hang in the air"
        for joint in ready:
            A, B = joint.frame_parent.homogeneous, joint.frame_child.homogeneous
            step = motion(joint, q.get(joint.name, neutral(joint)))
            assert joint.child not in found, "a body has two parents"
            found[joint.child] = found[joint.parent] @ A @ step @ np.linalg.inv(B)
        waiting = [joint for joint in waiting if joint not in ready]
    return found


def joint_named(description: Description, name: str) -> Joint:
    """The joint with this name."""
    return next(joint for joint in description.joints if joint.name == name)


def gap(description: Description, name: str, found: Mapping[str, Array]) -> Array:
    """Placement of frame B in frame A of a loop joint."""
    joint = joint_named(description, name)
    A = found[joint.parent] @ joint.frame_parent.homogeneous
    B = found[joint.child] @ joint.frame_child.homogeneous
    return np.asarray(np.linalg.inv(A) @ B)
