"""A phase of a stop: who sticks, follows or slides, and what pins those that do not slide."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...dynamics.stick_slip import Contacts
from ...simulation.modes import Mode
from .prepared_robot import Drivetrain, Sliding
from .reference import Piece, rates_at

__all__ = [
    "RELEASE",
    "Phase",
    "breakaway_directions",
    "gear_contacts",
    "in_the_way",
    "motor_bounds",
    "pinned_bounds",
]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

RELEASE = 2.0
"""What is pinned comes loose so many times the noise beyond its bound; within one it sticks."""


@dataclass(frozen=True, eq=False)
class Phase:
    """A stretch of time in which no joint changes between sticking, following and sliding.

    Args:
        sliding: directions of motion, brakes, power.
        stuck: mask of the coordinates at rest that are held.
        follow: mask of the coordinates whose drive follows its reference.
        piece: the reference.
        gear_power_sign: sign of the torque before each gear with losses that turns a rotor, 0 for
            others.
        blocked: per coordinate the directions in which a tooth or stop blocks it: bit 1 up, bit 2
            down.
        mode: the stuck joints as locks.
        noise: torque below which what pins a coordinate is rounding [N m], shape (nv,).
        redundant: whether the torques of what is pinned are not unique.
    """

    sliding: Sliding
    stuck: Mask
    follow: Mask
    piece: Piece
    gear_power_sign: Array
    blocked: NDArray[np.int64]
    mode: Mode
    noise: Array
    redundant: bool = False

    @property
    def pinned(self) -> Mask:
        """Mask of the coordinates whose acceleration is given."""
        return self.stuck | self.follow

    def pin_velocity(self, t: float, v: Array) -> Array:
        """Velocity with exactly that of the ground or the drive where one is pinned to it."""
        v = v.copy()
        v[self.stuck] = 0.0
        if self.follow.any():
            v[self.follow] = self.piece.v(t)[self.follow]
        return v


def in_the_way(blocked: NDArray[np.int64], wanted: Array) -> Mask:
    """Mask of the coordinates that a tooth or stop blocks in the direction that is wanted.

    Args:
        blocked: directions that are blocked, see `Phase`.
        wanted: speeds, of which the signs count, shape (nv,).
    """
    return np.asarray(
        np.where(wanted > 0.0, blocked & 1, np.where(wanted < 0.0, blocked & 2, 0)) > 0
    )


def motor_bounds(
    train: Drivetrain, phase: Phase, t: float | Array, v: Array, kind: int = 1
) -> tuple[Array, Array]:
    """Least and largest torque before the gears of what pins a coordinate, shape (nv,).

    Args:
        train: brakes, gears, friction, drives.
        phase: what is pinned, and by what.
        t: time [s], or several of shape (k, 1).
        v: velocity, shape (nv,), or (k, nv).
        kind: 1 for what brakes hold at rest, 0 for what is left once they slide.
    """
    low, high, _ = _holding(train, phase, t, v, kind)
    return low, high


def pinned_bounds(
    train: Drivetrain, phase: Phase, t: float | Array, v: Array, kind: int = 1
) -> tuple[Array, Array]:
    """Least and largest torque at the joints of what pins a coordinate, shape (nv,).

    The least is what there is when the joint moves up, the largest when it moves down: the losses
    of a gear follow that. For the arguments see `motor_bounds`.
    """
    low, high, joint_side = _holding(train, phase, t, v, kind)
    if train.has_losses:
        up, down = breakaway_directions(phase)
        low, high = train.through_gear(low, up), train.through_gear(high, down)
    low, high = low - joint_side, high + joint_side
    if phase.blocked.any():
        low[..., (phase.blocked & 1) > 0] = -np.inf
        high[..., (phase.blocked & 2) > 0] = np.inf
    return low, high


def _holding(
    train: Drivetrain, phase: Phase, t: float | Array, v: Array, kind: int
) -> tuple[Array, Array, Array]:
    """Least and largest torque before the gears, and what holds at the joints beside them."""
    sliding, follow = phase.sliding, phase.follow
    helping = phase.stuck & sliding.drives & (sliding.saturated_drive_sign == 0.0)
    hold, joint_side = train.hold(t, sliding, kind, helping)
    dragged = train.dragged(sliding)
    low, high = dragged - hold, dragged + hold
    if follow.any():
        brake = train.motor_brake[0]
        rest = train.shorted(v, sliding) - sliding.direction * sliding.engaged(t) * brake
        if train.has_losses:
            rest = rest - train.lossy * rates_at(phase.piece, t)
        drive = train.drive(sliding)
        low, high = np.where(follow, rest - drive, low), np.where(follow, rest + drive, high)
        joint_side = np.where(follow, 0.0, joint_side)
    return low, high, joint_side


def breakaway_directions(phase: Phase) -> tuple[Array, Array]:
    """Direction of the motion if what pins a coordinate gives way upwards, and downwards."""
    up, direction = np.ones(len(phase.follow)), phase.sliding.direction
    return np.where(phase.follow, direction, up), np.where(phase.follow, direction, -up)


def gear_contacts(
    train: Drivetrain, columns: NDArray[np.intp], before: Array, direction: Array
) -> Contacts:
    """Gears with losses as contacts: torque zero at a kink, another inertia on each side of it.

    The torque ``S = S0 - I a`` before the gear changes its sign at ``a = S0 / I``.

    Args:
        train: brakes, gears, friction, drives.
        columns: the coordinates, which all move.
        before: torque before the gears without that of the rotors, shape (nv,).
        direction: sign of the motion, shape (nv,).
    """
    inertia, none = train.lossy, np.zeros(len(columns))
    return Contacts(
        columns,
        before[columns] / inertia[columns],
        none,
        none,
        (inertia * train.gain(-np.ones_like(direction), direction))[columns],
        (inertia * train.gain(np.ones_like(direction), direction))[columns],
    )
