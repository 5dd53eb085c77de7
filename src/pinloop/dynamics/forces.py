"""Forces: springs, dampers, drives, torques; what each does to the joints and what it stores.

Forces are frozen values that a user writes down, bound to a robot before a run. Each knows its
generalised force and, if it is conservative, its stored energy; the work of the others is
integrated along a trajectory by `analysis`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from ..boundary.arguments import checked, public
from ..errors import BadValue
from ..model.mechanism import Mechanism
from ..tolerances import COINCIDENT

__all__ = [
    "PD",
    "BoundForce",
    "Damper",
    "Force",
    "JointDamping",
    "JointFriction",
    "JointSpring",
    "PointForce",
    "Spring",
    "Torque",
    "TorqueFunction",
]

Array = NDArray[np.float64]
Signal = float | Callable[[float], float]
"""A number, or a function of time."""
Place = str | tuple[str, ArrayLike]
"""A body or frame, for its origin, or that and a point in its axes [m], shape (3,)."""


class Force(ABC):
    """Something that acts on a robot."""

    @abstractmethod
    def bind(self, robot: Mechanism) -> BoundForce:
        """Return the force for a robot; checks names."""


class BoundForce(ABC):
    """A force on a certain robot.

    Attributes:
        name: name in energy balances.
        conservative: whether all its work is stored in `energy`.
    """

    name: str
    conservative: bool = False

    @abstractmethod
    def torque(self, t: float, q: Array, v: Array, data: pin.Data) -> Array:
        """Generalised force, shape (nv,), at the kinematics in ``data``."""

    def energy(self, t: float, q: Array, data: pin.Data) -> float:
        """Stored energy [J]; zero for what stores none."""
        return 0.0

    def damping(self, t: float, q: Array, v: Array, data: pin.Data) -> Array | None:
        """``-d torque / d v``, shape (nv, nv); None where it is zero or not known."""
        return None


def _value(signal: Signal, t: float) -> float:
    return float(signal(t)) if callable(signal) else float(signal)


def _numbers(values: ArrayLike, what: str, count: int | None) -> Array:
    """``values`` as an array of ``count`` numbers, or as one number if None."""
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise BadValue(f"{what} is {values!r}, which is not made of numbers") from None
    if count is None and array.size != 1:
        raise BadValue(f"{what} has one number, not {array.size}")
    if count is not None and array.shape != (count,):
        raise BadValue(f"{what} has shape {array.shape}; it must be ({count},)")
    if not np.all(np.isfinite(array)):
        raise BadValue(f"{what} is not finite: {array}")
    return array.reshape(()) if count is None else array


def _one_axis(robot: Mechanism, joint: str, who: str) -> tuple[int, int]:
    """Indices in q and v of a joint with one coordinate."""
    at = robot.coordinates(joint)
    if (at.nq, at.nv) != (1, 1):
        raise BadValue(f"{who} needs a joint with one coordinate; '{joint}' has {at.nq}")
    return at.q.start, at.v.start


class _Simple(BoundForce):
    """A force given by functions; pickled as what was bound to which robot."""

    def __init__(
        self,
        force: Force,
        robot: Mechanism,
        name: str,
        torque: Callable[[float, Array, Array, pin.Data], Array],
        energy: Callable[[float, Array, pin.Data], float] | None = None,
        damping: Callable[[Array, pin.Data], Array] | None = None,
    ) -> None:
        self._force, self._robot, self._damping = force, robot, damping
        self.name, self._torque, self._energy = name, torque, energy
        self.conservative = energy is not None

    def __reduce__(self) -> tuple[Callable[..., BoundForce], tuple[Force, Mechanism, str]]:
        return _bound_again, (self._force, self._robot, self.name)

    def torque(self, t: float, q: Array, v: Array, data: pin.Data) -> Array:
        return self._torque(t, q, v, data)

    def energy(self, t: float, q: Array, data: pin.Data) -> float:
        return 0.0 if self._energy is None else self._energy(t, q, data)

    def damping(self, t: float, q: Array, v: Array, data: pin.Data) -> Array | None:
        return None if self._damping is None else self._damping(v, data)


def _bound_again(force: Force, robot: Mechanism, name: str) -> BoundForce:
    """A force bound to a robot, under the name that it had."""
    bound = force.bind(robot)
    bound.name = name
    return bound


@public
@checked
@dataclass(frozen=True)
class JointDamping(Force):
    """Viscous damping of the joints.

    Args:
        coefficients: per joint [N m s/rad, N s/m]; those of the robot's file by default.
    """

    coefficients: Mapping[str, float] | None = None

    def bind(self, robot: Mechanism) -> BoundForce:
        """Collect the coefficients."""
        damping = np.array(robot.model.damping)
        if self.coefficients is not None:
            damping = np.zeros(robot.nv)
            for joint, value in self.coefficients.items():
                damping[robot.coordinates(joint).v] = float(_numbers(value, f"'{joint}'", None))
        return _Simple(
            self,
            robot,
            "joint damping",
            lambda t, q, v, data: -damping * v,
            damping=lambda v, data: np.diag(damping),
        )


@public
@checked
@dataclass(frozen=True)
class JointFriction(Force):
    """Dry friction of the joints, smoothed: ``-f tanh(v / speed)``. It never sticks.

    Args:
        speed: speed at which three quarters of the friction act [rad/s, m/s].
        coefficients: per joint [N m, N]; those of the robot's file by default.
    """

    speed: float = 0.1
    coefficients: Mapping[str, float] | None = None

    def bind(self, robot: Mechanism) -> BoundForce:
        """Collect the coefficients."""
        if not self.speed > 0:
            raise BadValue(f"JointFriction has speed {self.speed}; it must be > 0")
        friction = np.array(robot.model.upperDryFrictionLimit)
        if self.coefficients is not None:
            friction = np.zeros(robot.nv)
            for joint, value in self.coefficients.items():
                friction[robot.coordinates(joint).v] = float(_numbers(value, f"'{joint}'", None))

        def damping(v: Array, data: pin.Data) -> Array:
            return np.diag(friction / self.speed * (1.0 - np.tanh(v / self.speed) ** 2))

        return _Simple(
            self,
            robot,
            "joint friction",
            lambda t, q, v, data: -friction * np.tanh(v / self.speed),
            damping=damping,
        )


@public
@checked
@dataclass(frozen=True)
class JointSpring(Force):
    """A spring at a joint: ``-stiffness (q - rest)``.

    Args:
        joint: joint with one coordinate.
        stiffness: [N m/rad, N/m].
        rest: coordinate without load [rad, m].
    """

    joint: str
    stiffness: float
    rest: float = 0.0

    def bind(self, robot: Mechanism) -> BoundForce:
        """Look the joint up."""
        iq, iv = _one_axis(robot, self.joint, "JointSpring")
        unit = np.eye(robot.nv)[iv]

        def torque(t: float, q: Array, v: Array, data: pin.Data) -> Array:
            return np.asarray(-self.stiffness * (q[iq] - self.rest) * unit)

        def energy(t: float, q: Array, data: pin.Data) -> float:
            return 0.5 * self.stiffness * float(q[iq] - self.rest) ** 2

        return _Simple(self, robot, f"spring {self.joint}", torque, energy)


@public
@checked
@dataclass(frozen=True)
class Torque(Force):
    """A drive torque or force at a joint.

    Args:
        joint: joint with one degree of freedom.
        value: [N m, N], or a function of time.
    """

    joint: str
    value: Signal

    def bind(self, robot: Mechanism) -> BoundForce:
        """Look the joint up."""
        at = robot.coordinates(self.joint)
        if at.nv != 1:
            raise BadValue(f"Torque needs a joint with one axis; '{self.joint}' has {at.nv}")
        unit = np.eye(robot.nv)[at.v.start]
        return _Simple(
            self, robot, f"torque {self.joint}", lambda t, q, v, data: _value(self.value, t) * unit
        )


@public
@checked
@dataclass(frozen=True)
class PD(Force):
    """A PD drive: ``stiffness (target - q) + damping (rate - v)``.

    Args:
        joint: joint with one coordinate.
        stiffness: [N m/rad, N/m].
        damping: [N m s/rad, N s/m].
        target: position to hold [rad, m], or a function of time.
        rate: rate of the target [rad/s, m/s], or a function of time.
    """

    joint: str
    stiffness: float
    damping: float
    target: Signal = 0.0
    rate: Signal = 0.0

    def bind(self, robot: Mechanism) -> BoundForce:
        """Look the joint up."""
        iq, iv = _one_axis(robot, self.joint, "PD")
        unit = np.eye(robot.nv)[iv]

        def torque(t: float, q: Array, v: Array, data: pin.Data) -> Array:
            pull = self.stiffness * (_value(self.target, t) - q[iq])
            return np.asarray((pull + self.damping * (_value(self.rate, t) - v[iv])) * unit)

        damping = self.damping * np.outer(unit, unit)
        name = f"drive {self.joint}"
        return _Simple(self, robot, name, torque, damping=lambda v, data: damping)


@public
@checked
@dataclass(frozen=True)
class Spring(Force):
    """A straight spring between two points.

    Args:
        frame_a: body or frame at one end, or this and a point of it: ``("arm", (0.1, 0, 0))``.
        frame_b: body or frame at the other end, likewise.
        stiffness: [N/m].
        length: length without load [m].
    """

    frame_a: Place
    frame_b: Place
    stiffness: float
    length: float = 0.0

    def bind(self, robot: Mechanism) -> BoundForce:
        """Look the frames up."""
        line = _Line(robot, self.frame_a, self.frame_b)

        def torque(t: float, q: Array, v: Array, data: pin.Data) -> Array:
            distance, J = line.along(data)
            return -self.stiffness * (distance - self.length) * J

        def energy(t: float, q: Array, data: pin.Data) -> float:
            return 0.5 * self.stiffness * (line.distance(data) - self.length) ** 2

        return _Simple(self, robot, f"spring {line}", torque, energy)


@public
@checked
@dataclass(frozen=True)
class Damper(Force):
    """A straight damper between two points.

    Args:
        frame_a: body or frame at one end, or this and a point of it: ``("arm", (0.1, 0, 0))``.
        frame_b: body or frame at the other end, likewise.
        damping: [N s/m].
    """

    frame_a: Place
    frame_b: Place
    damping: float

    def bind(self, robot: Mechanism) -> BoundForce:
        """Look the frames up."""
        line = _Line(robot, self.frame_a, self.frame_b)

        def torque(t: float, q: Array, v: Array, data: pin.Data) -> Array:
            _, J = line.along(data)
            return -self.damping * float(J @ v) * J

        def damping(v: Array, data: pin.Data) -> Array:
            _, J = line.along(data)
            return self.damping * np.outer(J, J)

        return _Simple(self, robot, f"damper {line}", torque, damping=damping)


class _Anchor:
    """A point of a robot that a force acts on."""

    def __init__(self, robot: Mechanism, place: Place) -> None:
        self._model = robot.model
        self._point: Array | None = None
        if isinstance(place, str):
            self.name = place
        else:
            if not (isinstance(place, Sequence) and len(place) == 2 and isinstance(place[0], str)):
                raise BadValue(
                    f"a force acts on {place!r}; name a body or frame, or give (name, point)"
                )
            point = _numbers(place[1], f"the point on '{place[0]}'", 3)
            self.name = place[0]
            if point.any():
                self.name += f" at ({', '.join(f'{x:g}' for x in point)})"
                self._point = point
        self._frame = robot.frame_id(place if isinstance(place, str) else place[0])

    def position(self, data: pin.Data) -> Array:
        """Where it is in the world [m], shape (3,)."""
        placement = data.oMf[self._frame]
        return np.array(placement.translation if self._point is None else placement * self._point)

    def jacobian(self, data: pin.Data) -> Array:
        """Of its velocity in the world's axes, shape (3, nv)."""
        J = pin.getFrameJacobian(self._model, data, self._frame, pin.LOCAL_WORLD_ALIGNED)
        J = J.reshape(6, -1)
        if self._point is None:
            return np.asarray(J[:3])
        lever = data.oMf[self._frame].rotation @ self._point
        return np.asarray(J[:3] - pin.skew(lever) @ J[3:])

    def turned(self, force: Array, data: pin.Data) -> Array:
        """A force in the axes of the frame, in those of the world."""
        return np.asarray(data.oMf[self._frame].rotation @ force)


class _Line:
    """The straight line between two points."""

    def __init__(self, robot: Mechanism, a: Place, b: Place) -> None:
        self._a, self._b = _Anchor(robot, a), _Anchor(robot, b)

    def __str__(self) -> str:
        return f"{self._a.name}-{self._b.name}"

    def distance(self, data: pin.Data) -> float:
        """Distance of the points [m]."""
        return float(np.linalg.norm(self._b.position(data) - self._a.position(data)))

    def along(self, data: pin.Data) -> tuple[float, Array]:
        """Distance of the points and its gradient ``J``, shape (nv,)."""
        between = self._b.position(data) - self._a.position(data)
        distance = float(np.linalg.norm(between))
        direction = between / distance if distance > COINCIDENT else np.zeros(3)
        return distance, np.asarray(direction @ (self._b.jacobian(data) - self._a.jacobian(data)))


@public
@checked
@dataclass(frozen=True)
class PointForce(Force):
    """A force at a point.

    Args:
        frame: body or frame at whose origin it acts, or this and a point of it:
            ``("arm", (0.1, 0, 0))``.
        force: force [N], shape (3,), or a function of time that returns it.
        local: whether the force is given in the frame's axes instead of the world's.
    """

    frame: Place
    force: ArrayLike | Callable[[float], ArrayLike]
    local: bool = False

    def bind(self, robot: Mechanism) -> BoundForce:
        """Look the frame up."""
        anchor = _Anchor(robot, self.frame)
        what = f"force on '{anchor.name}'"

        def torque(t: float, q: Array, v: Array, data: pin.Data) -> Array:
            force = _numbers(self.force(t) if callable(self.force) else self.force, what, 3)
            force = anchor.turned(force, data) if self.local else force
            return np.asarray(force @ anchor.jacobian(data))

        return _Simple(self, robot, f"force on {anchor.name}", torque)


@public
@dataclass(frozen=True)
class TorqueFunction(Force):
    """Any generalised force ``tau(t, q, v)``.

    Args:
        function: returns the generalised force, shape (nv,).
        name: name in energy balances.
    """

    function: Callable[[float, Array, Array], ArrayLike]
    name: str = field(default="tau")

    def bind(self, robot: Mechanism) -> BoundForce:
        """Wrap the function; its result is checked for shape."""

        def torque(t: float, q: Array, v: Array, data: pin.Data) -> Array:
            return _numbers(self.function(t, q.copy(), v.copy()), f"'{self.name}'", robot.nv)

        return _Simple(self, robot, self.name, torque)
