"""Where the joints of a robot are and how they move in many states, all at once; no loop over them.

Knows the joints that a robot's tree is made of, nothing of runs and shapes.

A joint is a chain of motions: about and along fixed axes one after another, or in a plane, or by a
quaternion. About an axis with the cross product matrix ``W`` the rotation is
``(I + W^2) + sin(x) W - cos(x) W^2`` (Rodrigues): of all states one product with three weights.
Velocities are derivatives of placements, by the product rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ...model.mechanism import Mechanism
from ...model.workspace import remembered

__all__ = ["JointMotions", "joint_motions", "joint_poses"]

Array = NDArray[np.float64]

_STORED = {
    "JointModelRUBX": (0, 2),
    "JointModelRUBY": (0, 2),
    "JointModelRUBZ": (0, 2),
    "JointModelPlanar": (2, 2),
    "JointModelTranslation": (3, 0),
    "JointModelSpherical": (0, 4),
    "JointModelFreeFlyer": (3, 4),
}
"""Joints that do not move along one axis after another, by Pinocchio's name: how many translations
they have, and how many numbers of their turn follow in q: cosine and sine, or a quaternion."""
_CROSS = np.array([pin.skew(unit) for unit in np.eye(3)]).reshape(3, 9)
"""From a vector to the matrix of its cross product."""


@dataclass(frozen=True, eq=False)
class _Motion:
    """One motion of a joint, seen from the motion before.

    Args:
        seat: rotation with which it starts, shape (3, 3).
        place: where it starts [m], shape (3,).
        slides: its translations in q.
        way: where each of them leads to, shape (number of them, 3).
        turns: its angle in q, or cosine and sine, or a quaternion; nothing if it does not turn.
        turn: rotation per weight (module docstring), shape (3, 9); not used of a quaternion.
        rates: its velocities in v.
        twist: twist of what it carries per velocity, in axes that it carries, shape (6, k).
    """

    seat: Array
    place: Array
    slides: slice
    way: Array
    turns: slice
    turn: Array
    rates: slice
    twist: Array

    def rotation(self, q: Array) -> Array:
        """Its rotation at configurations, shape (n, 3, 3), or (3, 3) if it does not turn."""
        x = q[:, self.turns]
        if x.shape[1] == 0:
            return self.seat
        if x.shape[1] == 4:
            return np.asarray(self.seat @ _of_quaternions(x))
        weights = np.ones((len(q), 3))
        if x.shape[1] == 1:
            np.sin(x[:, 0], out=weights[:, 1])
            np.cos(x[:, 0], out=weights[:, 2])
        else:
            weights[:, 1], weights[:, 2] = x[:, 1], x[:, 0]
        return np.asarray((weights @ self.turn).reshape(-1, 3, 3))

    def origin(self, q: Array) -> Array:
        """Its origin at configurations [m], shape (n, 3), or (3,) if it stays."""
        if not len(self.way):
            return self.place
        return np.asarray(self.place + q[:, self.slides] @ self.way)


def joint_poses(robot: Mechanism, q: Array) -> tuple[Array, Array]:
    """Placements of all joints in the world at many configurations.

    Args:
        robot: the robot.
        q: configurations, shape (n, nq), quaternions of unit length.

    Returns:
        Rotations, shape (n, njoints, 3, 3), and origins [m], shape (n, njoints, 3), of Pinocchio's
        joints; the universe comes first.
    """
    R, p, *_ = _along_the_tree(robot, q, None)
    return R, p


@dataclass(frozen=True, eq=False)
class JointMotions:
    """Placements of all joints in many states, and their rates; the universe comes first.

    Args:
        rotations: shape (n, njoints, 3, 3).
        origins: in the world [m], shape (n, njoints, 3).
        turning: rates of the rotations [1/s], shape (n, njoints, 3, 3).
        moving: velocities of the origins [m/s], shape (n, njoints, 3).
    """

    rotations: Array
    origins: Array
    turning: Array
    moving: Array

    def velocities(self, joint: int, points: Array) -> Array:
        """How points on a joint move, shape (m, 3) in its frame, (n, m, 3) in the world [m/s]."""
        turning, moving = self.turning[:, joint], self.moving[:, joint]
        return np.asarray(points @ np.swapaxes(turning, 1, 2) + moving[:, None])


def joint_motions(robot: Mechanism, q: Array, v: Array) -> JointMotions:
    """Placements of all joints in many states, and their rates.

    Args:
        robot: the robot.
        q: configurations, shape (n, nq), quaternions of unit length.
        v: velocities, shape (n, nv).
    """
    return JointMotions(*_along_the_tree(robot, q, v))


def _along_the_tree(robot: Mechanism, q: Array, v: Array | None) -> tuple[Array, ...]:
    """What `JointMotions` holds; without rates if no velocities are given."""
    parents = robot.model.parents
    kinds = 1 if v is None else 2
    size = kinds, len(parents), len(q), 3
    Rs, ps = np.zeros((*size, 3)), np.zeros(size)
    Rs[0, 0] = np.eye(3)
    for joint, motions in enumerate(_motions(robot), start=1):
        R, p = Rs[:, parents[joint]], ps[:, parents[joint]]
        for one in motions:
            p, R = p + (R @ one.origin(q)[..., None])[..., 0], R @ one.rotation(q)
            if v is not None:
                # The twist is given in axes that the motion carries: those after it has turned.
                rates = v[:, one.rates] @ one.twist.T
                p[1] += (R[0] @ rates[:, :3, None])[..., 0]
                R[1] += R[0] @ (rates[:, 3:] @ _CROSS).reshape(-1, 3, 3)
        Rs[:, joint], ps[:, joint] = R, p
    pairs = zip(np.moveaxis(Rs, 2, 1), np.moveaxis(ps, 2, 1), strict=True)
    return tuple(values for pair in pairs for values in pair)


@remembered
def _motions(robot: Mechanism) -> tuple[tuple[_Motion, ...], ...]:
    """The motions of all joints; the same robot is asked for again and again."""
    model = robot.model
    rest = pin.neutral(model)
    joints = list(zip(model.joints, model.jointPlacements, strict=True))[1:]
    return tuple(tuple(_of_joint(joint, seat, rest)) for joint, seat in joints)


def _of_joint(joint: pin.JointModel, seat: pin.SE3, rest: Array) -> Iterator[_Motion]:
    """The motions of a joint, from its parent on.

    Args:
        joint: the joint.
        seat: its placement in its parent.
        rest: neutral configuration of the robot, shape (nq,).
    """
    first, name = joint.idx_q, joint.shortname()
    if name == "JointModelComposite":
        whole = joint.extract()
        for part, own in zip(whole.joints, whole.jointPlacements, strict=True):
            yield from _of_joint(part, seat * own, rest)
            seat = pin.SE3.Identity()
        return
    data = joint.createData()
    joint.calc(data, rest)
    twist, rate = np.array(data.S).reshape(6, -1), joint.idx_v
    if name in _STORED:
        count, stored = _STORED[name]
        cells, ways = (first, count, first + count, stored), np.eye(3)[:count]
        yield _motion(seat, cells, ways, rate, twist)
        return
    for k, axis in enumerate(twist.T):
        cells = first + k, bool(axis[:3].any()), first + k, bool(axis[3:].any())
        yield _motion(seat, cells, axis[None, :3], rate + k, axis[:, None])
        seat = pin.SE3.Identity()


def _motion(
    seat: pin.SE3, cells: tuple[int, int, int, int], ways: Array, rate: int, twist: Array
) -> _Motion:
    """A motion.

    Args:
        seat: its placement before it has moved, seen from the motion before.
        cells: where its translations are in q and how many; where its turn is and how long.
        ways: direction of each translation, shape (m, 3); those beyond their number do not count.
        rate: where its velocities are in v.
        twist: see `_Motion`; its last column is about the axis, if it has one.
    """
    slide, slides, turn, turns = cells
    R, W = np.array(seat.rotation), pin.skew(twist[3:, -1])
    parts = np.array([R + R @ W @ W, R @ W, -R @ W @ W])
    return _Motion(
        seat=R,
        place=np.array(seat.translation),
        slides=slice(slide, slide + slides),
        way=ways[:slides] @ R.T,
        turns=slice(turn, turn + turns),
        turn=parts.reshape(3, 9),
        rates=slice(rate, rate + twist.shape[1]),
        twist=twist,
    )


def _of_quaternions(x: Array) -> Array:
    """Rotations of unit quaternions stored as x, y, z, w: ``I + 2 w [u] + 2 [u]^2``, (n, 3, 3)."""
    cross = (x[:, :3] @ _CROSS).reshape(-1, 3, 3)
    return np.asarray(np.eye(3) + 2.0 * (x[:, 3, None, None] * cross + cross @ cross))
