"""Where a point of a robot is as seen from one of its axes, by the values of its driven joints.

Kinematics of assembled robots: loops are closed, passive joints follow. What poses are wanted is
in `extension`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ...assembly.continuation import LoopContinuation
from ...assembly.search import limited_coordinates, rows_of
from ...model.mechanism import Mechanism
from ...model.workspace import create_data
from ...tolerances import FORWARD_STEP, LEAST_SQUARES, SAME

__all__ = ["Driven", "Lever"]

Array = NDArray[np.float64]

_STRIDE = 0.25
"""Driven joints go no farther at once while loops follow [rad, characteristic lengths]."""


@dataclass(frozen=True, eq=False)
class Lever:
    """How a point lies to an axis.

    Args:
        distance: of the point from the line of the axis [m].
        fall: part of the point's speed that goes downwards if the axis moves forwards and all
            other driven joints stand, -1 to 1; 0 where the axis does not move the point, or
            without gravity.
    """

    distance: float
    fall: float


class Driven:
    """A robot by the values of its driven joints; it keeps the last configuration.

    Args:
        robot: the mechanism.
        joints: its driven joints, of one degree of freedom each.
        axis: the axis to which the point is seen.
        frame: index of the frame that carries the point.
        point: the point in this frame [m], shape (3,).
        down: unit vector of gravity in the world, shape (3,); zero without gravity.
        q: an assembled configuration to begin with, shape (nq,).
    """

    def __init__(
        self,
        robot: Mechanism,
        joints: tuple[str, ...],
        axis: str,
        frame: int,
        point: Array,
        down: Array,
        q: Array,
    ) -> None:
        self.robot, self.joints, self.axis, self.q = robot, joints, axis, q.copy()
        self._model, self._data = robot.model, create_data(robot.model)
        self._frame, self._point, self.down = frame, point, down
        at = robot.coordinates(axis)
        self._index, self.column = at.index, joints.index(axis)
        self._cells = [robot.coordinates(name) for name in joints]
        self._columns = np.array([cell.v.start for cell in self._cells])
        self._loops = LoopContinuation(robot, limits=False)
        self._scale = np.where(robot.is_translation, robot.length, 1.0)[self._columns]
        free = ~rows_of(robot, joints)
        self._passive = [limit for limit in limited_coordinates(robot) if free[limit[1]]]

    @property
    def values(self) -> Array:
        """Values of the driven joints at the last configuration [rad, m], shape (m,)."""
        return np.array([_value(self.q[cell.q]) for cell in self._cells])

    def go(self, values: Array) -> bool:
        """Move the driven joints; says whether all loops could be closed.

        Args:
            values: values of the driven joints [rad, m], shape (m,).
        """
        begin, way = self.values, values - self.values
        count = 1
        if not self._loops.is_free:
            count = max(1, int(np.ceil(np.max(np.abs(way) / self._scale) / _STRIDE)))

        def lead(q: Array, part: float) -> Array:
            for cell, value in zip(self._cells, begin + way * part, strict=True):
                q[cell.q] = cell.part(value)
            return q

        self.q, part = self._loops.follow(self.q, lead, lambda q: (self.joints,), count)
        return part == 1.0

    def rates(self, q: Array) -> Array:
        """Velocity per rate of each driven joint while the others stand, shape (nv, m)."""
        V = np.zeros((self.robot.nv, len(self.joints)))
        V[self._columns, np.arange(len(self.joints))] = 1.0
        if not self._loops.is_free:
            scale = self._loops.problem.column_scale
            free = ~rows_of(self.robot, self.joints)
            J = self._loops.problem.jacobian(q)
            known = J @ (V / scale[:, None])
            V[free] = (
                np.linalg.lstsq(J[:, free], -known, rcond=LEAST_SQUARES)[0] * scale[free, None]
            )
        return V

    def lever(self) -> Lever:
        """How the point lies to the axis."""
        V = self.rates(self.q)
        return self._lever(self.q, V)

    def distance_slopes(self) -> Array:
        """Derivatives of the distance of the point by the driven joints, shape (m,)."""
        V = self.rates(self.q)
        point, speeds = self._moving(self.q, V)
        model, data = self._model, self._data
        o, a = self._line()
        reach = point - o
        across = reach - a * (a @ reach)
        distance = float(np.linalg.norm(across))
        if distance == 0.0:
            return np.zeros(len(self.joints))
        J = pin.getJointJacobian(model, data, self._index, pin.LOCAL_WORLD_ALIGNED)
        line = J.reshape(6, -1) @ V
        turned = -pin.skew(a) @ line[3:]
        return np.asarray((across / distance) @ (speeds - line[:3] - (a @ reach) * turned))

    def fall_slopes(self) -> Array:
        """Derivatives of the fall of the point by the driven joints, shape (m,)."""
        V = self.rates(self.q)
        here, slopes = self._lever(self.q, V).fall, np.zeros(len(self.joints))
        for k, scale in enumerate(self._scale):
            h = FORWARD_STEP * scale
            # To first order the loops stay closed along these velocities.
            q = np.asarray(pin.integrate(self._model, self.q, h * V[:, k]))
            slopes[k] = (self._lever(q, self.rates(q)).fall - here) / h
        return slopes

    def room(self) -> tuple[Array, Array]:
        """Room of passive joints up to their limits, and its derivatives, shapes (c,), (c, m)."""
        if not self._passive:
            return np.zeros(0), np.zeros((0, len(self.joints)))
        V, room, slopes = self.rates(self.q), [], []
        for i, j, low, high in self._passive:
            for limit, sign in ((low, 1.0), (high, -1.0)):
                if np.isfinite(limit):
                    room.append(sign * (self.q[i] - limit))
                    slopes.append(sign * V[j])
        return np.array(room), np.array(slopes).reshape(-1, len(self.joints))

    def _lever(self, q: Array, V: Array) -> Lever:
        point, speeds = self._moving(q, V)
        o, a = self._line()
        reach, speed = point - o, speeds[:, self.column]
        size = float(np.linalg.norm(speed))
        fall = float(speed @ self.down) / size if size > SAME * self.robot.length else 0.0
        return Lever(float(np.linalg.norm(reach - a * (a @ reach))), fall)

    def _moving(self, q: Array, V: Array) -> tuple[Array, Array]:
        """The point in the world, and its velocities, shape (3, m); computes the kinematics."""
        model, data = self._model, self._data
        pin.computeJointJacobians(model, data, q)
        placement = pin.updateFramePlacement(model, data, self._frame)
        point = np.asarray(placement.act(self._point))
        J = pin.getFrameJacobian(model, data, self._frame, pin.LOCAL_WORLD_ALIGNED)
        twists = J.reshape(6, -1) @ V
        arm = pin.skew(point - placement.translation)
        return point, np.asarray(twists[:3] - arm @ twists[3:])

    def _line(self) -> tuple[Array, Array]:
        """A point of the axis and its direction, in the world."""
        line = self._data.oMi[self._index]
        J = pin.getJointJacobian(self._model, self._data, self._index, pin.LOCAL).reshape(6, -1)
        screw = J[:, self._columns[self.column]]
        a = line.rotation @ (screw[3:] if np.any(screw[3:]) else screw[:3])
        return np.asarray(line.translation), np.asarray(a / np.linalg.norm(a))


def _value(cells: Array) -> float:
    """Coordinate of a joint with one axis, also if it is stored as cosine and sine."""
    return float(np.arctan2(cells[1], cells[0])) if len(cells) == 2 else float(cells[0])
