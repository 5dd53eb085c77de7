"""SRDF: which joints have no motor. Everything else in it is about planning, not mechanics."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from ..boundary.xml import Element
from ..model.description import Description, Joint

__all__ = ["apply_srdf", "without_passive"]


def apply_srdf(description: Description, root: Element) -> Description:
    """Take the passive joints of an SRDF into account.

    Args:
        description: the robot.
        root: the ``<robot>`` element of the SRDF.

    Returns:
        The description with the passive joints removed from ``actuated``; if that was not known,
        it is now every other tree joint with one degree of freedom.

    Raises:
        LoadError: a passive joint without a name.
    """
    known = {joint.name for joint in description.joints}
    # The joint between the world and the robot is declared in the SRDF itself.
    virtual = {element.get("name") for element in root.all("virtual_joint")}
    passive: list[str] = []
    warnings: list[str] = []
    for element in root.all("passive_joint"):
        name = element.require("name")
        if name in known:
            passive.append(name)
        elif name not in virtual:
            warnings.append(
                f"{element.source}:{element.line}: {element!r} names a joint that the robot does "
                "not have; left out"
            )
    if passive:
        actuated = without_passive(description.joints, description.actuated, passive)
        description = replace(description, actuated=actuated)
    return replace(description, warnings=(*description.warnings, *warnings))


def without_passive(
    joints: Iterable[Joint], actuated: tuple[str, ...] | None, passive: Collection[str]
) -> tuple[str, ...]:
    """Names of the actuated joints, given those that are not.

    Args:
        joints: all joints.
        actuated: what is known so far; None stands for all tree joints with one degree of freedom.
        passive: names of joints without a motor.
    """
    if actuated is None:
        candidates = (j.name for j in joints if j.cut is not True and j.pair.dof == 1)
    else:
        candidates = (name for name in actuated)
    return tuple(name for name in candidates if name not in passive)
