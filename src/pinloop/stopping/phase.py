"""A phase of a stop: who sticks, follows or slides, and what pins those that do not slide."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..modes import Mode
from .drivetrain import Drivetrain, Sliding
from .gauss import Contacts
from .reference import Piece

__all__ = ["Phase", "gear_contacts", "pinned_bounds"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Phase:
    """A stretch of time in which no joint changes between sticking, following and sliding.

    Args:
        sliding: directions of motion, brakes, power.
        stuck: mask of the coordinates at rest that are held.
        follow: mask of the coordinates whose drive follows its reference.
        piece: the reference.
        power: sign of the torque before each gear with losses that turns a rotor, 0 for others.
        blocked: per coordinate the directions in which a tooth or stop blocks it: bit 1 up, bit 2
            down.
        mode: the stuck joints as locks.
        redundant: whether the torques of what is pinned are not unique.
    """

    sliding: Sliding
    stuck: Mask
    follow: Mask
    piece: Piece
    power: Array
    blocked: NDArray[np.int64]
    mode: Mode
    redundant: bool = False

    @property
    def pinned(self) -> Mask:
        """Mask of the coordinates whose acceleration is given."""
        return self.stuck | self.follow


def pinned_bounds(train: Drivetrain, phase: Phase, t: float, v: Array) -> tuple[Array, Array]:
    """Least and largest torque of what pins a coordinate, shape (nv,).

    Args:
        train: brakes, gears, friction, drives.
        phase: what is pinned, and by what.
        t: time [s].
        v: velocity, shape (nv,).
    """
    powered = phase.follow | (phase.stuck & phase.sliding.drives & (phase.sliding.pull == 0.0))
    hold = train.hold(t, phase.sliding, 1, powered)
    dragged = train.dragged(phase.sliding)
    low, high = dragged - hold, dragged + hold
    low[(phase.blocked & 1) > 0] = -np.inf
    high[(phase.blocked & 2) > 0] = np.inf
    if phase.follow.any():
        follow = phase.follow
        least, largest = train.followed(t, v, phase.piece.a(t), phase.sliding)
        low[follow], high[follow] = least[follow], largest[follow]
    return low, high


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
