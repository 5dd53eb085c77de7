"""A joint told from its other end, for files whose joints must all lead away from the root."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin

from ..model.description import Joint

__all__ = ["reversed_joint"]


def reversed_joint(joint: Joint) -> Joint:
    r"""Return the joint with parent and child exchanged; twice gives the joint back.

    With the same rotation of both frames, the motion ``T`` becomes ``F^-1 T^-1 F``. Along or about
    one axis, half a turn about x gives the motion back, so that the coordinate keeps its sign. For
    two axes, :math:`T = R_z(a) R_x(b)`, the symmetric ``F`` that takes z to -x and x to -z gives
    :math:`F R_x(-b) R_z(-a) F = R_z(b) R_x(a)`: the coordinates change places. Other pairs
    are told by their inverse motion.
    """
    values: dict[str, tuple[float, ...]] = {}
    if joint.pair.reverses_coordinates:
        for key in ("lower", "upper", "velocity", "effort", "damping", "friction", "armature"):
            values[key] = getattr(joint, key)[::-1]
    frame = pin.SE3(joint.pair.reversal, np.zeros(3))
    return replace(
        joint,
        parent=joint.child,
        child=joint.parent,
        frame_parent=joint.frame_child * frame,
        frame_child=joint.frame_parent * frame,
        **values,  # type: ignore[arg-type]
    )
