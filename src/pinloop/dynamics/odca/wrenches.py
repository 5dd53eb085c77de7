"""From arrays to names: accelerations of all bodies, wrenches in all joints, fixed ones too."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from ...boundary.marks import Array
from ...model.description import Body
from ...model.mechanism import Mechanism


@dataclass(frozen=True, eq=False)
class BodyMotion:
    """Motion of all bodies and wrenches in all joints at one state.

    Args:
        accelerations: spatial acceleration of each body, at and in its frame [m/s^2, rad/s^2].
        wrenches: what each joint, fixed ones and loop joints too, exerts on its child (body B of a
            loop joint), at and in the joint's frame on the child [N, N m]. Actuation, brakes and
            forces of the user act through the joints here, as their generalised forces.
    """

    accelerations: dict[str, pin.Motion]
    wrenches: dict[str, pin.Force]


def body_motion(
    robot: Mechanism, q: Array, v: Array, accelerations: Array, tree: Array, loops: Array
) -> BodyMotion:
    """Name accelerations and wrenches.

    Args:
        robot: the mechanism.
        q: configuration, shape (nq,).
        v: velocity, shape (nv,).
        accelerations: of the joint frames of the model, shape (n, 6).
        tree: wrench of each joint of the model on its body, at and in the joint frame, (n, 6).
        loops: wrench of each loop joint on body B, at and in frame B, shape (loops, 6).
    """
    model, described = robot.model, {joint.name: joint for joint in robot.description.joints}
    placements, twists = _tree_motion(model, q, v)
    frames = {body: model.frames[robot.frame_id(body)] for body in robot.bodies}
    moving = np.vstack([np.zeros(6), accelerations])
    own = {
        body: frame.placement.actInv(pin.Motion(moving[frame.parentJoint]))
        for body, frame in frames.items()
    }

    def place(frame: pin.Frame) -> pin.SE3:
        return placements[frame.parentJoint] * frame.placement

    missing = {
        body.name: _needed(body, place(frame), frame.placement.actInv(twists[frame.parentJoint]),
                           own[body.name], model.gravity)
        for body in robot.description.bodies
        if (frame := frames.get(body.name)) is not None
    }  # fmt: skip

    def transmit(force: pin.Force, child: str, parent: str) -> None:
        for body, received in ((child, force), (parent, -force)):
            if body in missing:  # the ground needs nothing
                missing[body] = missing[body] - received

    on_child: dict[str, pin.Force] = {}
    for loop, wrench in zip(robot.loops, loops, strict=True):
        force = place(model.frames[loop.frame_b]).act(pin.Force(wrench))
        on_child[loop.name] = force if described[loop.name].child == loop.body_b else -force
        transmit(force, loop.body_b, loop.body_a)
    # Children first: what a fixed joint carries is what its child still lacks.
    for edge in reversed(robot.tree.edges):
        name, force = edge.joint.name, missing[edge.child]
        if edge.joint.pair.dof:
            index = model.getJointId(name)
            force = placements[index].act(pin.Force(tree[index - 1]))
        transmit(force, edge.child, edge.parent)
        on_child[name] = force if edge.orientation > 0 else -force
    wrenches = {
        name: (place(model.frames[robot.frame_id(joint.child)]) * joint.frame_child).actInv(
            on_child[name]
        )
        for name, joint in described.items()
        if name in on_child
    }
    return BodyMotion(own, wrenches)


def _needed(
    body: Body, placement: pin.SE3, twist: pin.Motion, acceleration: pin.Motion, gravity: pin.Motion
) -> pin.Force:
    """What a body needs from its joints, at and in the world frame; its motion is in its own."""
    inertia = pin.Inertia(body.mass, np.array(body.com), np.array(body.inertia))
    A = acceleration - placement.actInv(gravity)
    return placement.act(inertia * A + inertia.vxiv(twist))


def _tree_motion(model: pin.Model, q: Array, v: Array) -> tuple[list[pin.SE3], list[pin.Motion]]:
    """Placements in the world and twists of all joint frames.

    Without `pin.Data`, whose memory grows with the cube of the coordinates.
    """
    placements, twists = [pin.SE3.Identity()], [pin.Motion.Zero()]
    for k in range(1, model.njoints):
        joint = model.joints[k]
        moving = joint.createData()
        joint.calc(moving, q, v)
        step = model.jointPlacements[k] * moving.M
        above = int(model.parents[k])
        placements.append(placements[above] * step)
        twists.append(step.actInv(twists[above]) + moving.v)
    return placements, twists
