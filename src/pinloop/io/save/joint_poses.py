"""From the frames A and B of a joint to what URDF says: origin, axis, and a pose on the child.

A URDF joint has one frame, ``origin`` in the parent, and an axis in it. Here the child carries a
pose of that frame as well, which is the identity for a joint that URDF can express. Reading is
``A = origin K``, ``B = seat K`` with a rotation ``K`` that the axes give; this is its inverse.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ...model.description import Joint
from ...model.pairs import align_z
from ...tolerances import ROTATION_DUST

__all__ = ["UrdfPoses", "axes_of_loop", "urdf_poses"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class UrdfPoses:
    """A joint as URDF says it.

    Args:
        origin: placement of the joint frame in the parent.
        seat: placement of the joint frame in the child; the identity in plain URDF.
        axis: axis in the joint frame, shape (3,), or None.
        axis2: second axis of a universal joint, shape (3,), or None.
    """

    origin: pin.SE3
    seat: pin.SE3
    axis: Array | None = None
    axis2: Array | None = None


def urdf_poses(joint: Joint) -> UrdfPoses:
    """Poses and axes with which a URDF says a tree joint."""
    frame_a, frame_b = joint.frame_parent, joint.frame_child
    pair, axes = joint.pair, joint.pair.axis_count()
    z = np.array(frame_b.rotation[:, 2])
    # The axes of the child will do where only a shift is left on it then: two axes say all of the
    # frames, and the motion along one screw commutes with turns of A and B about its axis.
    if axes == 2 or (pair.is_group and pair.dof <= 1):
        turn = _turned(frame_b.rotation.T)
        origin, seat = frame_a * turn, pin.SE3(np.eye(3), frame_b.translation)
        if not axes:
            return UrdfPoses(origin, seat)
        return UrdfPoses(origin, seat, z, frame_b.rotation[:, 0] if axes == 2 else None)
    if not axes:
        return UrdfPoses(frame_a, frame_b)
    turn = _turned(align_z(z).T)
    return UrdfPoses(frame_a * turn, _settled(frame_b * turn), z)


def axes_of_loop(joint: Joint) -> UrdfPoses:
    """Poses and axes with which a loops file says a joint: exactly its frames A and B."""
    axes = joint.pair.axis_count()
    if not axes:
        return UrdfPoses(joint.frame_parent, joint.frame_child)
    if axes == 2:
        x, _, z = np.eye(3)
        return UrdfPoses(joint.frame_parent, joint.frame_child, z, x)
    z = np.array(joint.frame_child.rotation[:, 2])
    turn = _turned(align_z(z).T)
    return UrdfPoses(joint.frame_parent * turn, _settled(joint.frame_child * turn), z)


def _turned(rotation: Array) -> pin.SE3:
    return pin.SE3(np.array(rotation), np.zeros(3))


def _settled(placement: pin.SE3) -> pin.SE3:
    """The placement, without a rotation that is only rounding."""
    if np.abs(placement.rotation - np.eye(3)).max() < ROTATION_DUST:
        return pin.SE3(np.eye(3), placement.translation)
    return placement
