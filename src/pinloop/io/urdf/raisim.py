"""RaiSim's ``<constraints>`` in a URDF: points of one link that stay on points of another."""

from __future__ import annotations

import numpy as np

from ...boundary.xml import Element, pose_rpy
from ...model.description import GROUND, Description, Joint
from ...model.pairs import align_z, make_pair
from ..reference import link_of, reference_placements

__all__ = ["raisim_constraints"]


def raisim_constraints(element: Element, root: Element, description: Description) -> list[Joint]:
    """Read ``<pin>`` and ``<equality>``.

    The anchor is given on ``body1``; on ``body2`` it is the point that coincides with it in the
    configuration ``nominal_config``. A pin holds it there; the axes of an equality, one or two, are
    the directions of ``body1`` in which it is held.

    Args:
        element: the ``<constraints>``.
        root: the ``<robot>``.
        description: the tree.
    """
    placements = reference_placements(description, _nominal(element, root, description))
    joints: list[Joint] = []
    names: set[str] = set()
    for child in element.all("pin", "equality"):
        first, second = (link_of(child, key, description) for key in ("body1", "body2"))
        axes = [axis.unit_vector(axis.vector("xyz")) for axis in child.all("axis")]
        if len(axes) not in ((0,) if child.tag == "pin" else (1, 2)):
            raise child.error(f"has {len(axes)} axes; a <pin> has none, an <equality> one or two")
        frame = pose_rpy(child.vector("anchor", (0.0, 0.0, 0.0)), np.zeros(3))
        pair = ("spherical", "point_on_plane", "point_on_line")[len(axes)]
        if axes:
            normal = axes[0] if len(axes) == 1 else np.cross(axes[0], axes[1])
            frame.rotation = align_z(child.unit_vector(normal, "normal of its axes"))
        stem = name = child.get("name") or f"{first}-{second}"
        while name in names:
            name = f"{stem}_{len(names)}"
        names.add(name)
        other = placements[second].actInv(placements[first] * frame)
        joints.append(Joint(name, make_pair(pair), first, second, frame, other, cut=True))
    return joints


def _nominal(element: Element, root: Element, description: Description) -> dict[str, float]:
    """Joint coordinates of ``nominal_config``, which go through the tree depth first."""
    text = element.get("nominal_config")
    if text is None:
        return {}
    values = element.numbers(text, None, "nominal_config")
    tree = {joint.name: joint for joint in description.joints if not joint.cut}
    children: dict[str, list[Joint]] = {}
    for child in root.all("joint"):
        if (joint := tree.get(child.require("name"))) is not None:
            children.setdefault(joint.parent, []).append(joint)
    order: list[Joint] = []
    waiting = list(reversed(children.get(description.base or GROUND, [])))
    while waiting:
        joint = waiting.pop()
        order += [joint] if joint.pair.dof else []
        waiting += reversed(children.get(joint.child, []))
    if any(joint.pair.dof > 1 for joint in order):
        raise element.error("has a nominal_config and joints with several coordinates")
    # A robot that floats has the position and quaternion of its base first.
    if len(values) == len(order) + 7:
        values = values[7:]
    if len(values) != len(order):
        raise element.error(
            f"has {len(values)} numbers in nominal_config; the robot has {len(order)} coordinates "
            "(7 more if it floats)"
        )
    return {joint.name: float(value) for joint, value in zip(order, values, strict=True)}
