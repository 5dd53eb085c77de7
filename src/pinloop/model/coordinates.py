"""Where the joints of a `pin.Model` stand in q and v, and which coordinates are linear."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from ..boundary.checks import flat_numbers
from ..errors import BadValue
from ..tolerances import PURE_TRANSLATION

__all__ = ["JointCoordinates", "joint_coordinates", "linear_coordinates"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class JointCoordinates:
    """Where a tree joint stands in q and v.

    Args:
        name: name of the joint.
        index: index of the joint in the `pin.Model`.
        q: its part of a configuration.
        v: its part of a velocity.
    """

    name: str
    index: int
    q: slice
    v: slice

    @property
    def nq(self) -> int:
        """Number of coordinates."""
        return int(self.q.stop - self.q.start)

    @property
    def nv(self) -> int:
        """Number of degrees of freedom."""
        return int(self.v.stop - self.v.start)

    def part(self, value: ArrayLike) -> Array:
        """The joint's part of a configuration, shape (nq,).

        Args:
            value: its coordinate [rad, m], or an array of its ``nq`` coordinates; an angle also for
                a joint stored as cosine and sine.
        """
        cell = flat_numbers(value, f"joint '{self.name}'")
        if self.nq == 2 and self.nv == 1 and cell.size == 1:
            cell = np.array([np.cos(cell[0]), np.sin(cell[0])])
        if cell.size != self.nq:
            raise BadValue(f"joint '{self.name}' has {self.nq} coordinates, not {cell.size}")
        return cell


def joint_coordinates(model: pin.Model, joint: str) -> JointCoordinates:
    """Where ``joint``, which the model must have, stands in q and v."""
    index = model.getJointId(joint)
    kind = model.joints[index]
    return JointCoordinates(
        joint,
        index,
        slice(kind.idx_q, kind.idx_q + kind.nq),
        slice(kind.idx_v, kind.idx_v + kind.nv),
    )


def linear_coordinates(model: pin.Model) -> NDArray[np.bool_]:
    """Per velocity coordinate, whether it is a linear one [m/s], shape (nv,)."""
    neutral, linear = pin.neutral(model), np.zeros(model.nv, dtype=bool)
    for joint in list(model.joints)[1:]:
        moved = joint.createData()  # of one joint: a `pin.Data` takes 32 nv^3 bytes
        joint.calc(moved, neutral)
        # Pinocchio drops an axis of length one: nv = 1 gives shape (6,).
        twists = np.reshape(moved.S, (6, -1))
        linear[joint.idx_v : joint.idx_v + joint.nv] = (
            np.linalg.norm(twists[3:], axis=0) < PURE_TRANSLATION
        )
    return linear
