"""Poses of an assembled robot as seen from one of its axes, and local minima among them.

Loops are closed, passive joints follow the driven ones. The search has numbers without unit: driven
joints in shares of their ranges. What is to be small is said in `extension`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
import scipy

from ...assembly.continuation import LoopContinuation
from ...assembly.search import limited_coordinates, velocity_mask
from ...boundary.arguments import flat_numbers
from ...boundary.marks import Array, Mask
from ...errors import BadValue
from ...model.mechanism import Mechanism
from ...model.workspace import create_data
from ...tables.number_format import joint_value
from ...tolerances import FORWARD_STEP, LEAST_SQUARES, LIMIT_PASSED, PLACES_FIT, SAME
from ..stopping import Payload
from ..stopping.prepared_robot import tool_of

_STRIDE = 0.25
"""Driven joints go no farther at once while loops follow [rad, characteristic lengths]."""


class Lever(NamedTuple):
    """How a point lies to an axis: its distance from the line of the axis [m], and its fall.

    The fall is the part of the point's speed that goes downwards if the axis moves forwards while
    all other driven joints stand, -1 to 1; 0 without gravity, or if the axis does not move it.
    """

    distance: float
    fall: float


@dataclass(frozen=True, eq=False)
class Point:
    """The point whose distance from an axis is the extension.

    ``frame``: body or frame that carries it; ``place``: its place in this frame [m], shape (3,);
    ``down``: direction of gravity in the world, shape (3,); zero without gravity.
    """

    frame: str
    place: Array
    down: Array


def checked_payload(robot: Mechanism, payload: Payload | float | None) -> Payload:
    """Return the largest payload, with its frame, after checking that it is known."""
    if payload is None:
        raise BadValue(
            f"the largest payload of robot '{robot.name}' is not known: give payload=, a mass in "
            "kg or a pl.Payload; 0 if it carries none"
        )
    if not isinstance(payload, Payload):
        payload = Payload(float(flat_numbers(payload, "payload", 1)[0]))
    load = replace(payload, frame=tool_of(robot) if payload.frame is None else payload.frame)
    robot.frame_id(str(load.frame))  # says so if there is no such frame
    return load


def payload_point(payload: Payload, gravity: Array) -> Point:
    """The centre of a payload on its frame, whose distance from an axis is the extension."""
    place = flat_numbers(payload.com, "the centre of mass of the payload", 3)
    return Point(str(payload.frame), place, gravity / (np.linalg.norm(gravity) or 1.0))


class Driven:
    """A robot by the values of its driven joints; it keeps the last configuration.

    Args:
        joints: its driven joints, of one degree of freedom each.
        axis: the axis to which the point is seen.
        q: an assembled configuration to begin with, shape (nq,).
    """

    def __init__(
        self, robot: Mechanism, joints: tuple[str, ...], axis: str, point: Point, q: Array
    ) -> None:
        self.robot, self.joints, self.axis, self.q = robot, joints, axis, q.copy()
        self._model, self._data = robot.model, create_data(robot.model)
        self._frame, self._point, self.down = robot.frame_id(point.frame), point.place, point.down
        self._index, self.column = robot.coordinates(axis).index, joints.index(axis)
        self._coordinates = [robot.coordinates(name) for name in joints]
        self._columns = np.array([at.v.start for at in self._coordinates])
        self._loops = LoopContinuation(robot, limits=False)
        self._scale = np.where(robot.is_translation, robot.length, 1.0)[self._columns]
        self._free = ~velocity_mask(robot, joints)
        self._passive = [limit for limit in limited_coordinates(robot) if self._free[limit[1]]]

    @property
    def values(self) -> Array:
        """Values of the driven joints at the last configuration [rad, m], shape (m,)."""
        return np.array([joint_value(self.robot, name, self.q) for name in self.joints])

    def go(self, values: Array) -> bool:
        """Move the driven joints to values [rad, m], (m,); says whether all loops could close."""
        begin, travel = self.values, values - self.values
        count = 1
        if not self._loops.is_free:
            count = max(1, int(np.ceil(np.max(np.abs(travel) / self._scale) / _STRIDE)))

        def lead(q: Array, part: float) -> Array:
            for at, value in zip(self._coordinates, begin + travel * part, strict=True):
                q[at.q] = at.part(value)
            return q

        self.q, part = self._loops.follow(self.q, lead, lambda q: (self.joints,), count)
        return part == 1.0

    def rates(self, q: Array) -> Array:
        """Velocity per rate of each driven joint while the others stand, shape (nv, m)."""
        V = np.zeros((self.robot.nv, len(self.joints)))
        V[self._columns, np.arange(len(self.joints))] = 1.0
        if not self._loops.is_free:
            scale, free = self._loops.problem.column_scale, self._free
            J = self._loops.problem.jacobian(q)
            known = J @ (V / scale[:, None])
            passive = np.linalg.lstsq(J[:, free], -known, rcond=LEAST_SQUARES)[0]
            V[free] = passive * scale[free, None]
        return V

    def lever(self, q: Array | None = None) -> Lever:
        """How the point lies to the axis, at the last configuration or another one."""
        q = self.q if q is None else q
        point, speeds = self._moving(q, self.rates(q))
        o, a = self._line()
        reach, speed = point - o, speeds[:, self.column]
        size = float(np.linalg.norm(speed))
        fall = float(speed @ self.down) / size if size > SAME * self.robot.length else 0.0
        return Lever(float(np.linalg.norm(reach - a * (a @ reach))), fall)

    def distance_slopes(self) -> Array:
        """Derivatives of the distance of the point by the driven joints, shape (m,)."""
        V = self.rates(self.q)
        point, speeds = self._moving(self.q, V)
        o, a = self._line()
        reach = point - o
        across = reach - a * (a @ reach)
        distance = float(np.linalg.norm(across))
        if distance == 0.0:
            return np.zeros(len(self.joints))
        J = pin.getJointJacobian(self._model, self._data, self._index, pin.LOCAL_WORLD_ALIGNED)
        line = J.reshape(6, -1) @ V
        turned = -pin.skew(a) @ line[3:]
        return np.asarray((across / distance) @ (speeds - line[:3] - (a @ reach) * turned))

    def fall_slopes(self) -> Array:
        """Derivatives of the fall of the point by the driven joints, shape (m,)."""
        V, here, slopes = self.rates(self.q), self.lever().fall, np.zeros(len(self.joints))
        for k, scale in enumerate(self._scale):
            h = FORWARD_STEP * scale
            # To first order the loops stay closed along these velocities.
            q = np.asarray(pin.integrate(self._model, self.q, h * V[:, k]))
            slopes[k] = (self.lever(q).fall - here) / h
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


# -- search -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Place:
    """A pose and its neighbourhood; slopes are by the varied joints, in shares of their ranges.

    Args:
        x: varied joints, in shares of their ranges, shape (m,).
        q: configuration, shape (nq,).
        lever: how the point lies to the axis.
        distance: slopes of its distance [m], shape (m,).
        room: what is left of the ranges of passive joints [rad, m], shape (c,).
        room_slopes: slopes of that, shape (c, m).
        fall_slopes: gives slopes of the fall at a configuration.
    """

    x: Array
    q: Array
    lever: Lever
    distance: Array
    room: Array
    room_slopes: Array
    fall_slopes: Callable[[Array], Array]

    @cached_property
    def fall(self) -> Array:
        """Slopes of the fall of the point, shape (m,)."""
        return self.fall_slopes(self.q)


Rule = Callable[[Place], tuple[float, Array]]
"""A number, and its slopes."""
Rules = Callable[[Place], tuple[Array, Array]]
"""Several numbers, and their slopes."""


class _Open(Exception):  # noqa: N818 (control flow of this file)
    """The loops cannot be closed here."""


class Places:
    """The poses of a robot as seen from an axis, in the box of its joint limits.

    Args:
        driven: the robot by its driven joints, with the axis, at an assembled configuration.
        varied: names of the driven joints that may vary, the axis among them.
        limits: their lower and upper limits [rad, m], shape (m, 2).
        direction: direction in which the axis must still have some way; 0 for none.
        length: how long that way is [rad, m].

    Attributes:
        home: the configuration at the start, moved into the limits, in shares of the ranges.
        least: lower end of the box, shape (m,).
        most: upper end, shape (m,).
        own: number of the axis among the varied joints.
    """

    def __init__(
        self, driven: Driven, varied: Sequence[str], limits: Array, direction: float, length: float
    ) -> None:
        self.driven, self.own = driven, list(varied).index(driven.axis)
        self._start, self._values = driven.q.copy(), driven.values
        self._varied = np.array([name in varied for name in driven.joints])
        self._low, self._width = limits[:, 0], limits[:, 1] - limits[:, 0]
        self.least, self.most = np.zeros(len(limits)), np.ones(len(limits))
        self._way = direction * length
        part = length / self._width[self.own]
        if direction and part < 1.0:  # else no place in its range has so much room
            ends = self.most if direction > 0 else self.least
            ends[self.own] -= direction * part
        self._known: dict[bytes, Place | None] = {}
        self.home = self.within((self._values[self._varied] - self._low) / self._width)

    def within(self, x: Array) -> Array:
        """The nearest place in the box."""
        return np.clip(x, self.least, self.most)

    def place(self, x: Array, start: Place | None = None) -> Place | None:
        """The pose at a place, loops followed from another one; None if they cannot be closed.

        It begins at home by default; the result depends on nothing else.
        """
        self.driven.q = (self._start if start is None else start.q).copy()
        self._known.clear()
        return self._at(x)

    def minima(
        self,
        starts: Iterable[tuple[Array, Place | None]],
        free: Mask,
        worth: Rule,
        zero: Rules | None = None,
    ) -> list[Place]:
        """Local minima of a worth within all limits, where other numbers are zero.

        From each start, and from where loops are followed to there; ``free``: what may vary, (m,).
        """
        minima = []
        for x, base in starts:
            begin = self.place(x, base)
            if begin is None:
                continue
            try:
                here = self._minimum(begin, free, worth, zero) if free.any() else begin
            except _Open:
                continue
            if np.all(here.room >= -LIMIT_PASSED):
                minima.append(here)
        return minima

    def _minimum(self, begin: Place, free: Mask, worth: Rule, zero: Rules | None) -> Place:
        """Where sequential quadratic programming ends."""

        def at(x: Array) -> Place:
            full = begin.x.copy()
            full[free] = x
            here = self._at(self.within(full))
            if here is None:
                raise _Open
            return here

        def value(x: Array) -> float:
            return worth(at(x))[0]

        def slopes(x: Array) -> Array:
            return np.asarray(worth(at(x))[1][free])

        def constraint(kind: str, rule: Rules) -> dict[str, Any]:
            rates = lambda x: rule(at(x))[1][:, free]  # noqa: E731
            return {"type": kind, "fun": lambda x: rule(at(x))[0], "jac": rates}

        rules: Any = [] if zero is None else [constraint("eq", zero)]
        if len(begin.room):
            rules.append(constraint("ineq", lambda here: (here.room, here.room_slopes)))
        with warnings.catch_warnings():
            # Rounding beyond a limit is cut off above.
            warnings.filterwarnings("ignore", "Values in x were outside bounds")
            result: Any = scipy.optimize.minimize(
                value,
                begin.x[free],
                jac=slopes,
                bounds=list(zip(self.least[free], self.most[free], strict=True)),
                constraints=rules,
                method="SLSQP",
                options={"maxiter": 100, "ftol": PLACES_FIT},
            )
        return at(np.asarray(result.x))

    def _at(self, x: Array) -> Place | None:
        key = x.tobytes()
        if key not in self._known:
            self._known[key] = self._pose_at(x)
        return self._known[key]

    def _pose_at(self, x: Array) -> Place | None:
        driven, varied, values = self.driven, self._varied, self._values.copy()
        values[varied] = self._low + self._width * x
        if not driven.go(values):
            return None
        room, slopes = driven.room()
        if self._way:
            # Where the passive joints go while the axis moves on.
            ahead = room + slopes[:, driven.column] * self._way
            room, slopes = np.concatenate([room, ahead]), np.vstack([slopes, slopes])
        distance, slopes = driven.distance_slopes()[varied] * self._width, slopes[:, varied]
        lever, width = driven.lever(), self._width
        return Place(x.copy(), driven.q.copy(), lever, distance, room, slopes * width, self._fall)

    def _fall(self, q: Array) -> Array:
        self.driven.q = q.copy()
        return np.asarray(self.driven.fall_slopes()[self._varied] * self._width)
