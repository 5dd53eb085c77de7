"""What acts on a robot: all forces together, and dry friction axis by axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from ..boundary.marks import Array
from ..constraints.relative_motion import JointMotion
from ..errors import BadValue, PinloopError
from ..linalg.dense import slopes
from ..model.mechanism import Mechanism
from ..model.moving_tree import MovingTree
from .forces import BoundForce, Force, JointFriction

Kinematics = Callable[[pin.Data, Array, Array], None]
"""Brings work space to a configuration and a velocity."""


class AppliedForces:
    """The forces on a robot, at the kinematics that a `pin.Data` holds.

    Attributes:
        bound: the forces, each with a name of its own.
        need_kinematics: whether one of them looks at the kinematics.
    """

    def __init__(self, robot: Mechanism, forces: Sequence[Force]) -> None:
        self._robot = robot
        self.bound = _with_unique_names([force.bind(robot) for force in forces])
        self.need_kinematics = any(force.needs_kinematics for force in self.bound)

    def with_force(self, force: BoundForce) -> AppliedForces:
        """The same forces and one more."""
        other = copy(self)
        other.bound = _with_unique_names([*self.bound, force])
        other.need_kinematics = self.need_kinematics or force.needs_kinematics
        return other

    def torque(self, t: float, q: Array, v: Array, data: pin.Data) -> Array:
        """Sum of the generalised forces, shape (nv,)."""
        total = np.zeros(self._robot.nv)
        for force in self.bound:
            try:
                tau = force.torque(t, q, v, data)
            except PinloopError:
                raise
            except Exception as error:
                raise BadValue(
                    f"force '{force.name}' raised {type(error).__name__} at t = {t:.6g} s: {error}"
                ) from error
            if not np.all(np.isfinite(tau)):
                raise BadValue(f"force '{force.name}' is not finite at t = {t:.6g} s")
            total += tau
        return total

    def powers(self, t: float, q: Array, v: Array, data: pin.Data) -> dict[str, float]:
        """Power of each force that does not store its work [W]."""
        return {
            force.name: float(force.torque(t, q, v, data) @ v)
            for force in self.bound
            if not force.conservative
        }

    def energies(self, t: float, q: Array, data: pin.Data) -> dict[str, float]:
        """Stored energy of each force that stores its work [J]."""
        return {f.name: f.energy(t, q, data) for f in self.bound if f.conservative}

    def dampings(self, t: float, q: Array, v: Array, data: pin.Data) -> dict[str, Array]:
        """``-d torque / d v`` of each force of which it is known, shape (nv, nv)."""
        by_force = {force.name: force.damping(t, q, v, data) for force in self.bound}
        return {name: D for name, D in by_force.items() if D is not None}

    def slopes(
        self, tree: MovingTree, t: float, q: Array, v: Array, kinematics: Kinematics
    ) -> tuple[Array, Array]:
        """Derivatives of the sum by positions and velocities of a tree, shape (n, n) each.

        Args:
            tree: the robot at the state.
            t: time [s].
            q: configuration, shape (nq,).
            v: velocity, shape (nv,).
            kinematics: brings work space to a state.
        """
        n = len(tree.twists)
        by_q, by_v = np.zeros((n, n)), np.zeros((n, n))
        others = []
        with self._robot.workspace() as data:
            kinematics(data, q, v)
            for force in self.bound:
                known = force.slopes(tree, t, q, v, data)
                if known is None:
                    others.append(force)
                else:
                    by_q, by_v = by_q + known[0], by_v + known[1]
            if others:
                own = np.ix_(tree.chain.columns, tree.chain.columns)
                parts = self._differences(others, (t, q, v), data, kinematics)
                by_q[own] += parts[0]
                by_v[own] += parts[1]
        return by_q, by_v

    def _differences(
        self,
        forces: Sequence[BoundForce],
        state: tuple[float, Array, Array],
        data: pin.Data,
        kinematics: Kinematics,
    ) -> tuple[Array, Array]:
        """Derivatives of forces that do not know their own."""
        t, q, v = state

        def torque(q: Array, v: Array) -> Array:
            kinematics(data, q, v)
            return sum((force.torque(t, q, v, data) for force in forces), np.zeros(len(v)))

        model, n = self._robot.model, self._robot.nv
        by_q = slopes(lambda step: torque(pin.integrate(model, q, step), v), n)
        return by_q.T, slopes(lambda change: torque(q, v + change), n).T


def _with_unique_names(forces: list[BoundForce]) -> tuple[BoundForce, ...]:
    """Number forces of the same name, so that each has its own line in energy balances."""
    seen: dict[str, int] = {}
    for force in forces:
        seen[force.name] = seen.get(force.name, 0) + 1
        if seen[force.name] > 1:
            force.name = f"{force.name} ({seen[force.name]})"
    return tuple(forces)


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
