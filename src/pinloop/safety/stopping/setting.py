"""What was stopped, read back from a result: the payload."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .machine import Payload

if TYPE_CHECKING:
    from .result import StopResult

__all__ = ["payload_of"]


def payload_of(result: StopResult) -> Payload | None:
    """What the robot carried in a stop, in the frame of its tool or of the body that carries it.

    Returns:
        Mass, centre of mass and inertia; None if it carried nothing.
    """
    before, after = result.course.train.robot, result.robot
    known = set(before.bodies)
    added = [body for body in after.description.bodies if body.name not in known]
    if not added:
        return None
    (body,) = added
    (mount,) = (joint for joint in after.description.joints if joint.child == body.name)
    frame, placement = mount.parent, mount.frame_parent
    model, carrier, tool = after.model, after.frame_id(mount.parent), after.frame_id(result.tool)
    if model.frames[tool].parentJoint == model.frames[carrier].parentJoint:
        seat = model.frames[tool].placement.actInv(model.frames[carrier].placement)
        frame, placement = result.tool, seat * placement
    turn = np.asarray(placement.rotation)
    return Payload(
        body.mass,
        np.asarray(placement.act(np.array(body.com))),
        turn @ body.inertia @ turn.T,
        frame,
    )
