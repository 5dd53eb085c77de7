"""Where the links of a tree are, and which joints carry them, before there is a mechanism.

Loops that are declared by a pose of the whole robot rather than by frames are read with it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pinocchio as pin

from ..boundary.xml import Element
from ..model.description import GROUND, Description, Joint
from ..model.tree import motion_of

__all__ = ["link_of", "moving_path", "reference_placements"]


def link_of(
    element: Element, attribute: str, description: Description, owner: Element | None = None
) -> str:
    """Link that an attribute names; "world" is the ground if no link is called so.

    Args:
        element: what has the attribute.
        attribute: its name.
        description: the robot.
        owner: element to be named if there is no such link; ``element`` by default.
    """
    name = element.require(attribute)
    known = [body.name for body in description.bodies]
    if name in known or name == GROUND:
        return name
    if name == "world":
        return GROUND
    raise (owner or element).unknown("link", name, known)


def moving_path(link: str, description: Description) -> list[str]:
    """Names of the moving tree joints from the base to ``link``."""
    return [joint.name for joint in _chain(link, _carriers(description)) if joint.pair.dof]


def reference_placements(
    description: Description, coordinates: Mapping[str, float] | None = None
) -> dict[str, pin.SE3]:
    """Placements of the bodies in the base frame.

    Args:
        description: the tree; its cut joints do not count.
        coordinates: coordinates of joints with one degree of freedom [rad, m]; 0 by default.
    """
    carriers = _carriers(description)
    placements: dict[str, pin.SE3] = {GROUND: pin.SE3.Identity()}
    for body in description.bodies:
        chain = _chain(body.name, carriers, placements)
        placements.setdefault(chain[0].parent if chain else body.name, pin.SE3.Identity())
        for joint in chain:
            step = joint.frame_parent * _motion(joint, (coordinates or {}).get(joint.name, 0.0))
            placements[joint.child] = placements[joint.parent] * step * joint.frame_child.inverse()
    return placements


def _motion(joint: Joint, coordinate: float) -> pin.SE3:
    if coordinate == 0.0:
        return pin.SE3.Identity()
    return motion_of(joint.pair, coordinate)


def _carriers(description: Description) -> dict[str, Joint]:
    return {joint.child: joint for joint in description.joints if joint.cut is not True}


def _chain(link: str, carriers: Mapping[str, Joint], known: Collection[str] = ()) -> list[Joint]:
    """The tree joints to ``link`` from the base, or from the nearest link that is known."""
    chain: list[Joint] = []
    while link in carriers and link not in known and len(chain) <= len(carriers):
        chain.append(carriers[link])
        link = carriers[link].parent
    return chain[::-1]
