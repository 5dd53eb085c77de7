"""Forces: springs, dampers, drives, torques; what each does to the joints and what it stores.

Forces are frozen values that a user writes down, bound to a robot before a run. Each knows its
generalised force and, if it is conservative, its stored energy; the work of the others is
integrated along a trajectory by `analysis`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from ..boundary.arguments import checked, flat_numbers, public
from ..boundary.marks import Array
from ..constraints.relative_motion import BodyPoint, JointMotion, Place, PointDistance
from ..errors import BadValue
from ..model.mechanism import Mechanism
from ..model.moving_tree import MovingTree

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

Signal = float | Callable[[float], float]
"""A number, or a function of time."""
Slopes = tuple[Array, Array] | None
"""Derivatives of a generalised force by positions and velocities."""


class Coordinate(Protocol):
    """A coordinate of a robot that a force acts on."""

    def __call__(self, q: Array, data: pin.Data) -> tuple[float, Array]:
        """Value and gradient, shape (nv,)."""
        ...

    def slope(self, tree: MovingTree) -> tuple[Array, Array]:
        """Gradient and its derivative, ``[j, i]`` that of entry j by coordinate i of a tree."""
        ...


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
        needs_kinematics: whether it looks at ``data`` at all.
    """

    name: str
    conservative: bool = False
    needs_kinematics: bool = True

    @abstractmethod
    def torque(self, t: float, q: Array, v: Array, data: pin.Data) -> Array:
        """Generalised force, shape (nv,), at the kinematics in ``data``."""

    def energy(self, t: float, q: Array, data: pin.Data) -> float:
        """Stored energy [J]; zero for what stores none."""
        return 0.0

    def damping(self, t: float, q: Array, v: Array, data: pin.Data) -> Array | None:
        """``-d torque / d v``, shape (nv, nv); None where it is zero or not known."""
        return None

    def slopes(self, tree: MovingTree, t: float, q: Array, v: Array, data: pin.Data) -> Slopes:
        """Derivatives of the torque by positions and velocities, shape (n, n) each.

        By the n coordinates of a tree at the state; None leaves them to differences.
        """
        return None


def _value(signal: Signal, t: float) -> float:
    return float(signal(t)) if callable(signal) else float(signal)


class _Applied(BoundForce):
    """A force given by functions; pickled as what was bound to which robot."""

    def __init__(
        self,
        force: Force,
        robot: Mechanism,
        name: str,
        torque: Callable[[float, Array, Array, pin.Data], Array],
        energy: Callable[[Array, pin.Data], float] | None = None,
        damping: Callable[[Array, Array, pin.Data], Array] | None = None,
        slopes: Callable[[MovingTree, float, Array, Array, pin.Data], Slopes] | None = None,
    ) -> None:
        self._bound, self.name, self.conservative = (force, robot), name, energy is not None
        self._torque, self._energy, self._damping = torque, energy, damping
        self._slopes = slopes

    def __reduce__(self) -> tuple[Callable[..., BoundForce], tuple[Force, Mechanism, str]]:
        return _bound_again, (*self._bound, self.name)

    def torque(self, t: float, q: Array, v: Array, data: pin.Data) -> Array:
        return self._torque(t, q, v, data)

    def energy(self, t: float, q: Array, data: pin.Data) -> float:
        return 0.0 if self._energy is None else self._energy(q, data)

    def damping(self, t: float, q: Array, v: Array, data: pin.Data) -> Array | None:
        return None if self._damping is None else self._damping(q, v, data)

    def slopes(self, tree: MovingTree, t: float, q: Array, v: Array, data: pin.Data) -> Slopes:
        return None if self._slopes is None else self._slopes(tree, t, q, v, data)


def _bound_again(force: Force, robot: Mechanism, name: str) -> BoundForce:
    """A force bound to a robot, under the name that it had."""
    bound = force.bind(robot)
    bound.name = name
    return bound


def _spring(
    force: Force, robot: Mechanism, name: str, along: Coordinate, stiffness: float, rest: float
) -> BoundForce:
    """A spring along a coordinate."""

    def torque(t: float, q: Array, v: Array, data: pin.Data) -> Array:
        x, gradient = along(q, data)
        return -stiffness * (x - rest) * gradient

    def energy(q: Array, data: pin.Data) -> float:
        return 0.5 * stiffness * (along(q, data)[0] - rest) ** 2

    def slopes(tree: MovingTree, t: float, q: Array, v: Array, data: pin.Data) -> Slopes:
        x, (g, G) = along(q, data)[0], along.slope(tree)
        return -stiffness * (np.outer(g, g) + (x - rest) * G), np.zeros(G.shape)

    return _Applied(force, robot, name, torque, energy, slopes=slopes)


def _damper(
    force: Force,
    robot: Mechanism,
    name: str,
    along: Coordinate,
    c: float,
    drive: Callable[[float, float], float],
    stiffness: float = 0.0,
) -> BoundForce:
    """A damper along a coordinate, and what drives it: a function of time and coordinate.

    The drive loses its ``stiffness`` per unit of the coordinate.
    """

    def torque(t: float, q: Array, v: Array, data: pin.Data) -> Array:
        x, gradient = along(q, data)
        return (drive(t, x) - c * float(gradient @ v)) * gradient

    def damping(q: Array, v: Array, data: pin.Data) -> Array:
        gradient = along(q, data)[1]
        return c * np.outer(gradient, gradient)

    def slopes(tree: MovingTree, t: float, q: Array, v: Array, data: pin.Data) -> Slopes:
        x, (g, G) = along(q, data)[0], along.slope(tree)
        speed = tree.velocity
        force = drive(t, x) - c * float(g @ speed)
        by_q = np.outer(g, -stiffness * g - c * (speed @ G)) + force * G
        return by_q, -c * np.outer(g, g)

    return _Applied(force, robot, name, torque, damping=damping, slopes=slopes)


@dataclass(frozen=True, eq=False)
class _JointCoordinate(Coordinate):
    axis: JointMotion
    near: float

    def __call__(self, q: Array, data: pin.Data) -> tuple[float, Array]:
        return self.axis.position(q, data, self.near), self.axis.jacobian(data)[0]

    def slope(self, tree: MovingTree) -> tuple[Array, Array]:
        rows = self.axis.slopes(tree, np.ones(1))
        assert rows is not None  # the axes of pairs with one stand still
        return rows.J[0], rows.force_q


def _joint_coordinate(robot: Mechanism, joint: str, who: str, near: float = 0.0) -> Coordinate:
    """Coordinate of a joint with one, and its gradient."""
    axis = JointMotion(robot, joint)
    if axis.coordinates != 1:
        raise BadValue(f"{who} needs a joint with one coordinate; '{joint}' has {axis.coordinates}")
    return _JointCoordinate(axis, near)


def file_losses(
    robot: Mechanism, kind: Literal["damping", "friction"]
) -> list[tuple[JointMotion | None, Array]]:
    """Damping or dry friction of a robot's file, where there is any.

    Returns:
        Coefficients of all coordinates, with None; and of each joint that closes a loop.
    """
    model, loops = robot.model, {loop.name for loop in robot.loops}
    own = np.array(model.damping if kind == "damping" else model.upperDryFrictionLimit)
    parts: list[tuple[JointMotion | None, Array]] = [(None, own)] if own.any() else []
    for joint in robot.description.joints:
        if joint.name in loops and any(getattr(joint, kind)):
            parts.append((JointMotion(robot, joint.name), np.array(getattr(joint, kind))))
    return parts


def _given_losses(
    robot: Mechanism, coefficients: Mapping[str, float]
) -> Iterator[tuple[JointMotion, Array]]:
    """Coefficients that a user gives, per axis of each joint."""
    for joint, value in coefficients.items():
        motion = JointMotion(robot, joint)
        number = flat_numbers(value, f"'{joint}'", 1)[0]
        yield motion, np.full(len(motion.is_translation), number)


def _losses(
    force: JointDamping | JointFriction,
    robot: Mechanism,
    kind: Literal["damping", "friction"],
    loss: Callable[[Array, Array], tuple[Array, Array]],
) -> BoundForce:
    """Torque that joints lose, and its slope, by coefficients and rates of their axes."""
    if force.coefficients is None:
        parts = file_losses(robot, kind)
    else:
        parts = [*_given_losses(robot, force.coefficients)]

    def acting(v: Array, data: pin.Data) -> Iterator[tuple[Array, Array, Array]]:
        for motion, coefficients in parts:
            J = np.eye(robot.nv) if motion is None else motion.jacobian(data)
            yield J, *loss(coefficients, J @ v)

    def torque(t: float, q: Array, v: Array, data: pin.Data) -> Array:
        return sum((tau @ J for J, tau, _ in acting(v, data)), np.zeros(robot.nv))

    def damping(q: Array, v: Array, data: pin.Data) -> Array:
        none = np.zeros((robot.nv, robot.nv))
        return sum(((J.T * slope) @ J for J, _, slope in acting(v, data)), none)

    def slopes(tree: MovingTree, t: float, q: Array, v: Array, data: pin.Data) -> Slopes:
        n = len(tree.twists)
        by_q, by_v = np.zeros((n, n)), np.zeros((n, n))
        for motion, coefficients in parts:
            if motion is None:
                columns = np.ix_(tree.chain.columns, tree.chain.columns)
                by_v[columns] -= np.diag(loss(coefficients, v)[1])
                continue
            axes = motion.slopes(tree, loss(coefficients, motion.jacobian(data) @ v)[0])
            if axes is None:
                return None
            resistance = axes.J.T * loss(coefficients, axes.J @ tree.velocity)[1]
            by_q += axes.force_q - resistance @ axes.rate_q
            by_v -= resistance @ axes.J
        return by_q, by_v

    bound = _Applied(force, robot, f"joint {kind}", torque, damping=damping, slopes=slopes)
    bound.needs_kinematics = any(motion is not None and motion.closes_loop for motion, _ in parts)
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
        return _losses(self, robot, "damping", lambda c, rate: (-c * rate, c))


@public
@checked
@dataclass(frozen=True)
class JointFriction(Force):
    """Dry friction of the joints: ``-f sign(v)`` while they slide, what holds them at rest.

    A run decides which axes stick, all together. Where a force is a function of one state
    (`EquationsOfMotion`, `inverse_dynamics`), an axis at rest feels none.

    Args:
        speed: smooths it to ``-f tanh(v / speed)``, which creeps and never sticks: speed at which
            three quarters of it act [rad/s, m/s]. By default it is not smoothed.
        coefficients: per joint [N m, N]; those of the robot's file by default.
    """

    speed: float | None = None
    coefficients: Mapping[str, float] | None = None

    def bind(self, robot: Mechanism) -> BoundForce:
        """Collect the coefficients."""
        speed = self.speed
        if speed is not None and not speed > 0:
            raise BadValue(f"JointFriction has speed {speed}; it must be > 0")

        def loss(c: Array, rate: Array) -> tuple[Array, Array]:
            if speed is None:
                return -c * np.sign(rate), np.zeros(len(c))
            part = np.tanh(rate / speed)
            return -c * part, c / speed * (1.0 - part**2)

        return _losses(self, robot, "friction", loss)

    def coefficients_on(self, robot: Mechanism) -> list[tuple[JointMotion, Array]]:
        """Coefficients per axis of each joint."""
        if self.coefficients is not None:
            return [*_given_losses(robot, self.coefficients)]
        parts = []
        for motion, values in file_losses(robot, "friction"):
            if motion is not None:
                parts.append((motion, values))
                continue
            for joint in robot.joints:
                if (own := values[robot.coordinates(joint).v]).any():
                    parts.append((JointMotion(robot, joint), own))
        return parts


@public
@checked
@dataclass(frozen=True)
class JointSpring(Force):
    """A spring at a joint: ``-stiffness (q - rest)``.

    Args:
        joint: joint with one coordinate; the angle of one that closes a loop is within half a turn
            of ``rest``.
        stiffness: [N m/rad, N/m].
        rest: coordinate without load [rad, m].
    """

    joint: str
    stiffness: float
    rest: float = 0.0

    def bind(self, robot: Mechanism) -> BoundForce:
        """Look the joint up."""
        along = _joint_coordinate(robot, self.joint, "JointSpring", self.rest)
        return _spring(self, robot, f"spring {self.joint}", along, self.stiffness, self.rest)


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
        axis = JointMotion(robot, self.joint, "Torque")

        def torque(t: float, q: Array, v: Array, data: pin.Data) -> Array:
            return np.asarray(_value(self.value, t) * axis.jacobian(data)[0])

        def slopes(tree: MovingTree, t: float, q: Array, v: Array, data: pin.Data) -> Slopes:
            rows = axis.slopes(tree, np.array([_value(self.value, t)]))
            return None if rows is None else (rows.force_q, np.zeros(rows.force_q.shape))

        return _Applied(self, robot, f"torque {self.joint}", torque, slopes=slopes)


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

        def drive(t: float, x: float) -> float:
            pull = self.stiffness * (_value(self.target, t) - x)
            return pull + self.damping * _value(self.rate, t)

        along = _joint_coordinate(robot, self.joint, "PD")
        name = f"drive {self.joint}"
        return _damper(self, robot, name, along, self.damping, drive, self.stiffness)


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
        line = PointDistance(robot, self.frame_a, self.frame_b)
        return _spring(self, robot, f"spring {line}", line, self.stiffness, self.length)


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
        line = PointDistance(robot, self.frame_a, self.frame_b)
        return _damper(self, robot, f"damper {line}", line, self.damping, lambda t, x: 0.0)


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
        anchor = BodyPoint(robot, self.frame)
        what = f"force on '{anchor.name}'"

        def force(t: float, data: pin.Data) -> Array:
            given = flat_numbers(self.force(t) if callable(self.force) else self.force, what, 3)
            return anchor.turned(given, data) if self.local else given

        def torque(t: float, q: Array, v: Array, data: pin.Data) -> Array:
            return np.asarray(force(t, data) @ anchor.jacobian(data))

        def slopes(tree: MovingTree, t: float, q: Array, v: Array, data: pin.Data) -> Slopes:
            by_q = anchor.force_slope(tree, force(t, data), turns=self.local)
            return by_q, np.zeros(by_q.shape)

        return _Applied(self, robot, f"force on {anchor.name}", torque, slopes=slopes)


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
            return flat_numbers(self.function(t, q.copy(), v.copy()), f"'{self.name}'", robot.nv)

        return _Applied(self, robot, self.name, torque)
