"""What joints lose: viscous damping, and dry friction axis by axis."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pinocchio as pin

from ..boundary.arguments import checked, flat_numbers, public
from ..boundary.marks import Array
from ..constraints.relative_motion import JointMotion
from ..errors import BadValue
from ..model.mechanism import Mechanism
from ..model.moving_tree import MovingTree
from .applied import BoundForce, Force, ForceOfFunctions, Slopes


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


def only_file_damping(forces: Sequence[Force]) -> bool:
    """Whether nothing acts but the damping of a robot's file."""
    return all(type(x) is JointDamping and x.coefficients is None for x in forces)


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

    def acting(v: Array, data: pin.Data) -> Iterator[tuple[Array | None, Array, Array]]:
        for motion, coefficients in parts:
            J = None if motion is None else motion.jacobian(data)
            yield J, *loss(coefficients, v if J is None else J @ v)

    def torque(t: float, q: Array, v: Array, data: pin.Data) -> Array:
        total = np.zeros(robot.nv)
        for J, tau, _ in acting(v, data):
            total += tau if J is None else tau @ J
        return total

    def damping(q: Array, v: Array, data: pin.Data) -> Array:
        total = np.zeros((robot.nv, robot.nv))
        for J, _, slope in acting(v, data):
            total += np.diag(slope) if J is None else (J.T * slope) @ J
        return total

    def slopes(tree: MovingTree, t: float, q: Array, v: Array, data: pin.Data) -> Slopes:
        n = len(tree.twists)
        by_q, by_v = np.zeros((n, n)), np.zeros((n, n))
        for motion, coefficients in parts:
            if motion is None:
                columns = np.ix_(tree.chain.columns, tree.chain.columns)
                by_v[columns] -= np.diag(loss(coefficients, v)[1])
                continue
            axes = motion.slopes(tree, loss(coefficients, motion.jacobian(data) @ v)[0])
            resistance = axes.J.T * loss(coefficients, axes.J @ tree.velocity)[1]
            by_q += axes.force_q - resistance @ axes.rate_q
            by_v -= resistance @ axes.J
        return by_q, by_v

    looks = any(motion is not None and motion.closes_loop for motion, _ in parts)
    return ForceOfFunctions(
        force, robot, f"joint {kind}", torque, None, damping, slopes, needs_kinematics=looks
    )


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
    (`EquationsOfMotion`), an axis at rest feels none; in inverse dynamics it opposes the motion
    that begins.

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


def losses_of_file(robot: Mechanism) -> list[Force]:
    """Damping and dry friction of a robot's file, where there is any."""
    losses: list[Force] = [JointDamping()] if file_losses(robot, "damping") else []
    return losses + ([JointFriction()] if file_losses(robot, "friction") else [])


@dataclass(frozen=True, eq=False)
class FrictionAxis:
    """An axis with dry friction.

    Args:
        joint: name of its joint.
        axis: name of the axis ("vx", "wz", ...) if the joint has several, else empty.
        limit: dry friction [N m, N], > 0.
        column: velocity coordinate of the axis; None if its joint closes a loop.
        motion: motion of the joint.
        place: number of the axis among those of the joint.
    """

    joint: str
    axis: str
    limit: float
    column: int | None
    motion: JointMotion
    place: int

    @property
    def axes(self) -> tuple[str, ...]:
        """The axis as locks have it: nothing if the joint has no other."""
        return (self.axis,) if self.axis else ()

    @property
    def name(self) -> str:
        """Name for messages."""
        return ".".join((self.joint, *self.axes))


def friction_axes(robot: Mechanism, forces: Sequence[JointFriction]) -> tuple[FrictionAxis, ...]:
    """The axes of a robot with dry friction; that of several forces on one axis adds up."""
    limits: dict[tuple[str, int], float] = {}
    motions: dict[str, JointMotion] = {}
    for force in forces:
        for motion, coefficients in force.coefficients_on(robot):
            motions.setdefault(motion.joint, motion)
            for key in ((motion.joint, place) for place in range(len(coefficients))):
                limits[key] = limits.get(key, 0.0) + float(coefficients[key[1]])
    axes = []
    for (joint, place), limit in limits.items():
        motion = motions[joint]
        axis = motion.axes[place] if len(motion.axes) > 1 else ""
        column = None if motion.closes_loop else robot.coordinates(joint).v.start + place
        axes.append(FrictionAxis(joint, axis, limit, column, motion, place))
    return tuple(axis for axis in axes if axis.limit > 0.0)


@dataclass(frozen=True, eq=False)
class AxisTorques(Force):
    """Constant torques on single axes [N m, N]: dry friction while they slide."""

    axes: tuple[FrictionAxis, ...]
    torques: tuple[float, ...]

    def bind(self, robot: Mechanism) -> BoundForce:
        """Add up what does not depend on the configuration."""
        return _BoundAxisTorques(self, robot)


class _BoundAxisTorques(BoundForce):
    def __init__(self, given: AxisTorques, robot: Mechanism) -> None:
        self.name, self._constant = "joint friction", np.zeros(robot.nv)
        pairs = [*zip(given.axes, given.torques, strict=True)]
        for axis, torque in pairs:
            if axis.column is not None:
                self._constant[axis.column] = torque
        self._others = [(axis, x) for axis, x in pairs if axis.column is None and x]
        self.needs_kinematics = bool(self._others)

    def torque(self, t: float, q: Array, v: Array, data: pin.Data) -> Array:
        parts = (x * axis.motion.jacobian(data)[axis.place] for axis, x in self._others)
        return sum(parts, self._constant)
