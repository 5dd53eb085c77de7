"""Forces: springs, dampers, drives, torques; what each does to the joints and what it stores.

Forces are frozen values that a user writes down, bound to a robot before a run; see `applied`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from ..boundary.arguments import checked, flat_numbers, public
from ..boundary.marks import Array, NotNegative
from ..constraints.relative_motion import BodyPoint, JointMotion, Place, PointDistance
from ..errors import BadValue, shown
from ..model.mechanism import Mechanism
from ..model.moving_tree import MovingTree
from .applied import BoundForce, Force, ForceOfFunctions, Slopes
from .losses import JointDamping, JointFriction

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


def _value(signal: Signal, t: float) -> float:
    return float(signal(t)) if callable(signal) else float(signal)


def _along(
    force: Force,
    robot: Mechanism,
    name: str,
    along: Coordinate,
    pull: Callable[[float, float], float],
    stiffness: float = 0.0,
    damping: float | None = None,
) -> BoundForce:
    """A pull along a coordinate, and its damping; without any it stores its work.

    The pull is a function of time and coordinate, and loses its ``stiffness`` per unit of that.
    """
    c = damping or 0.0

    def torque(t: float, q: Array, v: Array, data: pin.Data) -> Array:
        x, gradient = along(q, data)
        return (pull(t, x) - c * float(gradient @ v)) * gradient

    def energy(q: Array, data: pin.Data) -> float:
        # Of a spring, whose pull is its stiffness times how far it is from rest.
        return 0.5 * pull(0.0, along(q, data)[0]) ** 2 / stiffness if stiffness else 0.0

    def resistance(q: Array, v: Array, data: pin.Data) -> Array:
        gradient = along(q, data)[1]
        return c * np.outer(gradient, gradient)

    def slopes(tree: MovingTree, t: float, q: Array, v: Array, data: pin.Data) -> Slopes:
        x, (by_q, g, G) = along(q, data)[0], along.slope(tree)
        speed = tree.velocity
        slope = np.outer(g, -stiffness * by_q - c * (speed @ G))
        return slope + (pull(t, x) - c * float(g @ speed)) * G, -c * np.outer(g, g)

    return ForceOfFunctions(
        force,
        robot,
        name,
        torque,
        energy if damping is None else None,
        None if damping is None else resistance,
        slopes,
        along.needs_kinematics,
    )


class _JointCoordinate:
    """Coordinate of an axis of a joint, counted near a value, as `PointDistance` is one."""

    def __init__(self, robot: Mechanism, joint: str, axis: str, who: str, near: float) -> None:
        self._motion, self._near = JointMotion(robot, joint), near
        self._place = self._motion.axis(axis, who, measured=True)
        self.needs_kinematics = self._motion.closes_loop

    def __call__(self, q: Array, data: pin.Data) -> tuple[float, Array]:
        x = self._motion.position(q, data, self._near, self._place)
        return x, self._motion.jacobian(data)[self._place]

    def slope(self, tree: MovingTree) -> tuple[Array, Array, Array]:
        rows = self._motion.slopes(tree, np.ones(1), [self._place])
        return self._motion.position_slope(tree, self._place), rows.J[0], rows.force_q


Coordinate = _JointCoordinate | PointDistance
"""A coordinate of a robot that a force acts on."""


def _axis_name(joint: str, axis: str) -> str:
    return f"{joint}.{axis}" if axis else joint


@public
@checked
@dataclass(frozen=True)
class JointSpring(Force):
    """A spring at a joint: ``-stiffness (q - rest)``.

    Args:
        joint: the joint; the angle of one that closes a loop is within half a turn of ``rest``.
        stiffness: [N m/rad, N/m].
        rest: coordinate without load [rad, m].
        axis: axis that it acts on, where the joint has several, such as "vz"; it must have a
            coordinate, unlike turns of a ball joint.
    """

    joint: str
    stiffness: float
    rest: float = 0.0
    axis: str = ""

    def bind(self, robot: Mechanism) -> BoundForce:
        """Look the joint up."""
        along = _JointCoordinate(robot, self.joint, self.axis, "JointSpring", self.rest)
        name, k = f"spring {_axis_name(self.joint, self.axis)}", self.stiffness
        return _along(self, robot, name, along, lambda t, x: -k * (x - self.rest), k)


@public
@checked
@dataclass(frozen=True)
class Torque(Force):
    """A drive torque or force at a joint.

    Args:
        joint: the joint.
        value: [N m, N], or a function of time.
        axis: axis that it acts on, where the joint has several, such as "vz".
    """

    joint: str
    value: Signal
    axis: str = ""

    def bind(self, robot: Mechanism) -> BoundForce:
        """Look the joint up."""
        motion = JointMotion(robot, self.joint)
        place = motion.axis(self.axis, "Torque")

        def torque(t: float, q: Array, v: Array, data: pin.Data) -> Array:
            return np.asarray(_value(self.value, t) * motion.jacobian(data)[place])

        def slopes(tree: MovingTree, t: float, q: Array, v: Array, data: pin.Data) -> Slopes:
            rows = motion.slopes(tree, np.array([_value(self.value, t)]), [place])
            return rows.force_q, np.zeros(rows.force_q.shape)

        name, looks = f"torque {_axis_name(self.joint, self.axis)}", motion.closes_loop
        return ForceOfFunctions(self, robot, name, torque, slopes=slopes, needs_kinematics=looks)


@public
@checked
@dataclass(frozen=True)
class PD(Force):
    """A PD drive: ``stiffness (target - q) + damping (rate - v)``.

    Args:
        joint: the joint.
        stiffness: [N m/rad, N/m].
        damping: [N m s/rad, N s/m].
        target: position to hold [rad, m], or a function of time.
        rate: rate of the target [rad/s, m/s], or a function of time.
        axis: axis that it acts on, where the joint has several; it must have a coordinate.
    """

    joint: str
    stiffness: NotNegative
    damping: NotNegative
    target: Signal = 0.0
    rate: Signal = 0.0
    axis: str = ""

    def bind(self, robot: Mechanism) -> BoundForce:
        """Look the joint up."""

        def drive(t: float, x: float) -> float:
            pull = self.stiffness * (_value(self.target, t) - x)
            return pull + self.damping * _value(self.rate, t)

        along = _JointCoordinate(robot, self.joint, self.axis, "PD", 0.0)
        name = f"drive {_axis_name(self.joint, self.axis)}"
        return _along(self, robot, name, along, drive, self.stiffness, self.damping)


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
        line, k = PointDistance(robot, self.frame_a, self.frame_b), self.stiffness
        return _along(self, robot, f"spring {line}", line, lambda t, x: -k * (x - self.length), k)


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
        return _along(self, robot, f"damper {line}", line, lambda t, x: 0.0, 0.0, self.damping)


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
        if not callable(self.force):
            flat_numbers(self.force, what, 3)  # the kernel asks no further

        def force(t: float, data: pin.Data) -> Array:
            given = flat_numbers(self.force(t) if callable(self.force) else self.force, what, 3)
            return anchor.turned(given, data) if self.local else given

        def torque(t: float, q: Array, v: Array, data: pin.Data) -> Array:
            return np.asarray(force(t, data) @ anchor.jacobian(data))

        def slopes(tree: MovingTree, t: float, q: Array, v: Array, data: pin.Data) -> Slopes:
            by_q = anchor.force_slope(tree, force(t, data), turns=self.local)
            return by_q, np.zeros(by_q.shape)

        return ForceOfFunctions(self, robot, f"force on {anchor.name}", torque, slopes=slopes)


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

    def __post_init__(self) -> None:
        way_out = "give a function of t, q and v, such as lambda t, q, v: torques"
        if not callable(self.function):
            raise BadValue(f"'{self.name}' is {shown(self.function)}; {way_out}")

    def bind(self, robot: Mechanism) -> BoundForce:
        """Wrap the function; its result is checked for shape."""

        def torque(t: float, q: Array, v: Array, data: pin.Data) -> Array:
            return flat_numbers(self.function(t, q.copy(), v.copy()), f"'{self.name}'", robot.nv)

        return ForceOfFunctions(self, robot, self.name, torque, needs_kinematics=False)
