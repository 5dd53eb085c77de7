"""From arrays to names: accelerations of all bodies, wrenches in all joints, fixed ones too."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ...model.mechanism import Mechanism

__all__ = ["BodyMotion", "body_motion"]

Array = NDArray[np.float64]


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
    return _Naming(robot, q, v, accelerations).named(tree, loops)


class _Naming:
    """Bodies by name at a state; wrenches are collected at and in the world frame."""

    def __init__(self, robot: Mechanism, q: Array, v: Array, accelerations: Array) -> None:
        self._robot = robot
        self._placements, self._twists = _tree_motion(robot.model, q, v)
        self._given = accelerations
        self._joints = {joint.name: joint for joint in robot.description.joints}

    def named(self, tree: Array, loops: Array) -> BodyMotion:
        robot, model = self._robot, self._robot.model
        on_tree_child: dict[str, pin.Force] = {}
        missing = {body: self._inertial(body) for body in robot.bodies}
        for loop, wrench in zip(robot.loops, loops, strict=True):
            force = self._placement(loop.frame_b).act(pin.Force(wrench))
            on_b = self._joints[loop.name].child == loop.body_b
            on_tree_child[loop.name] = force if on_b else -force
            _take(missing, loop.body_b, force)
            _take(missing, loop.body_a, -force)
        # Children first: what a fixed joint carries is what its child still lacks.
        for edge in reversed(robot.tree.edges):
            name = edge.joint.name
            if edge.joint.pair.dof == 0:
                force = missing[edge.child]
            else:
                index = model.getJointId(name)
                force = self._placements[index].act(pin.Force(tree[index - 1]))
            _take(missing, edge.child, force)
            _take(missing, edge.parent, -force)
            on_tree_child[name] = force if edge.orientation > 0 else -force
        wrenches = {
            name: self._seat(name).actInv(on_tree_child[name])
            for name in self._joints
            if name in on_tree_child
        }
        return BodyMotion({body: self._acceleration(body) for body in robot.bodies}, wrenches)

    def _frame(self, body: str) -> pin.Frame:
        return self._robot.model.frames[self._robot.frame_id(body)]

    def _placement(self, frame: int) -> pin.SE3:
        """Placement in the world of a frame of the model."""
        local = self._robot.model.frames[frame]
        return self._placements[local.parentJoint] * local.placement

    def _seat(self, joint: str) -> pin.SE3:
        """Placement in the world of a joint's frame on its child."""
        described = self._joints[joint]
        body = self._placement(self._robot.frame_id(described.child))
        return body * described.frame_child

    def _acceleration(self, body: str) -> pin.Motion:
        frame = self._frame(body)
        if frame.parentJoint == 0:
            return pin.Motion.Zero()
        return frame.placement.actInv(pin.Motion(self._given[frame.parentJoint - 1]))

    def _inertial(self, body: str) -> pin.Force:
        """Wrench that a body needs from its joints: inertia times acceleration, less its weight."""
        frame = self._frame(body)
        described = next(own for own in self._robot.description.bodies if own.name == body)
        inertia = pin.Inertia(described.mass, np.array(described.com), np.array(described.inertia))
        placement = self._placement(self._robot.frame_id(body))
        V = frame.placement.actInv(self._twists[frame.parentJoint])
        A = self._acceleration(body) - placement.actInv(self._robot.model.gravity)
        return placement.act(inertia * A + inertia.vxiv(V))


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


def _take(missing: dict[str, pin.Force], body: str, force: pin.Force) -> None:
    """Note that a body gets a wrench; the ground needs none."""
    if body in missing:
        missing[body] = missing[body] - force
