"""Pairs of frames that close loops by their names, as onshape-to-robot and PlaCo leave them."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pinocchio as pin

from ...model.description import Description, Joint
from ...model.pairs import make_pair

__all__ = ["close_frames"]

_CLOSING = re.compile(r"^closing_(.+)_([12])$")


def close_frames(description: Description) -> Description:
    """Close the pairs of frames ``closing_<name>_1`` and ``_2`` of onshape-to-robot and PlaCo.

    A loop of the same name that is declared already wins; the pair is not said, so a point is
    taken, with a warning.
    """
    places = {body.name: (body.name, pin.SE3.Identity()) for body in description.bodies}
    places |= {frame.name: (frame.body, frame.placement) for frame in description.frames}
    declared = {joint.name for joint in description.joints}
    found: dict[str, dict[str, str]] = {}
    for name in places:
        if match := _CLOSING.match(name):
            found.setdefault(match[1], {})[match[2]] = name
    joints: list[Joint] = []
    warnings: list[str] = []
    for stem, ends in found.items():
        loop = f"closing_{stem}"
        if declared & {stem, loop}:
            continue
        if len(ends) < 2:
            lone = next(iter(ends.values()))
            warnings.append(
                f"{description.source}: frame '{lone}' has no partner to close a loop with"
            )
            continue
        (body_a, frame_a), (body_b, frame_b) = places[ends["1"]], places[ends["2"]]
        if _joined(description, places[ends["1"]], places[ends["2"]]):
            continue
        joints.append(
            Joint(loop, make_pair("spherical"), body_a, body_b, frame_a, frame_b, cut=True)
        )
        warnings.append(
            f"{description.source}: frames '{ends['1']}' and '{ends['2']}' are joined by a "
            f"spherical pair; name another pair for loop '{loop}' in a loops file"
        )
    return replace(
        description,
        joints=(*description.joints, *joints),
        warnings=(*description.warnings, *warnings),
    )


def _joined(description: Description, one: tuple[str, pin.SE3], other: tuple[str, pin.SE3]) -> bool:
    """Whether some joint already joins two frames."""

    def same(body: str, frame: pin.SE3, end: tuple[str, pin.SE3]) -> bool:
        # The axes of a pair may be turned against the frame it was asked for.
        return body == end[0] and np.allclose(frame.translation, end[1].translation, atol=1e-9)

    for joint in description.joints:
        ends = (joint.parent, joint.frame_parent), (joint.child, joint.frame_child)
        for a, b in (ends, ends[::-1]):
            if same(*a, one) and same(*b, other):
                return True
    return False
