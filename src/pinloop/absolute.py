"""The same robot in absolute coordinates: another description, not another program (paper 2).

Every rigid group of bodies gets a free joint to the ground at its centre of mass, every joint of
the tree becomes a loop joint; building, constraints and integrators then run unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import pinocchio as pin

from .description import GROUND, Description, Joint
from .pairs import MotionGroup, make_pair

__all__ = ["Space", "in_absolute_coordinates"]

Space = Literal["SE3", "SO3xR3", "auto"]


def in_absolute_coordinates(
    description: Description,
    poses: Mapping[str, pin.SE3],
    groups: Sequence[Sequence[str]],
    ground: set[str],
    space: Space,
) -> Description:
    """Return the description with one free joint per rigid group and all other joints cut.

    Args:
        description: the robot.
        poses: placement of every body in the world, in the configuration that becomes neutral.
        groups: bodies that are welded to each other, group by group.
        ground: names of the bodies that are welded to the ground, and of the ground.
        space: configuration space of the groups; "auto" gives SE(3) to a group that a lower pair
            with a motion group joins to the ground, because the exact flow of a constant twist
            then stays in the pair, and SO(3)xR3 to the others.
    """
    cut = [
        replace(joint, cut=True, coordinates="", lower=(), upper=())
        for joint in description.joints
        if joint.pair.name not in ("fixed", "free") or joint.cut is True
    ]
    welds = [j for j in description.joints if j.pair.name == "fixed" and j.cut is not True]
    free = []
    for group in groups:
        lead = group[0]
        hinged = any(
            isinstance(joint.pair, MotionGroup)
            and joint.pair.rows > 0
            and (
                (joint.parent in ground and joint.child in group)
                or (joint.child in ground and joint.parent in group)
            )
            for joint in description.joints
        )
        rigid = hinged if space == "auto" else space == "SE3"
        centre = _centre(description, poses, group)
        at = pin.SE3(np.eye(3), centre)
        free.append(
            Joint(
                f"{lead}@ground",
                make_pair("free"),
                GROUND,
                lead,
                at,
                poses[lead].actInv(at),
                False,
                "" if rigid else "SO3xR3",
            )
        )
    return replace(description, joints=(*welds, *free, *cut))


def _centre(
    description: Description, poses: Mapping[str, pin.SE3], group: Sequence[str]
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Centre of mass of a rigid group in the world; the first body's origin if it has no mass."""
    bodies = [body for body in description.bodies if body.name in group]
    mass = sum(body.mass for body in bodies)
    if mass == 0:
        return np.array(poses[group[0]].translation)
    weighted = sum(body.mass * poses[body.name].act(np.array(body.com)) for body in bodies)
    return np.asarray(weighted / mass)
