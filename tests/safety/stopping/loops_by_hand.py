"""Stopping robots with closed loops by other means than pinloop's; no test lives here.

Loops are points that coincide: one for a ball, two on the axis of a hinge. Masses, gravity and
payload are put into a `pin.Model` of its own, brakes and friction are written out once more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog

import pinloop as pl
from pinloop.model.tree import LoopJoint

from ...screw_tables import Array

_WORLD = pin.LOCAL_WORLD_ALIGNED
_REST = 1e-10
"""Speed that is rounding [rad/s, m/s]."""


class Machine:
    """Tree, loops and masses of a robot.

    Args:
        robot: the robot, without payload and without the rotors of its brakes.
        brakes: their rotors are added to the mass matrix where the gear has no losses.
        gravity: gravity [m/s^2]; that of the robot by default.
        payload: frame, mass, centre of mass in the frame, inertia about it.
    """

    def __init__(
        self,
        robot: pl.Mechanism,
        brakes: pl.Brakes | None = None,
        gravity: ArrayLike | None = None,
        payload: tuple[str, float, Array, Array] | None = None,
    ) -> None:
        self.robot, self.model = robot, pin.Model(robot.model)
        if gravity is not None:
            self.model.gravity = pin.Motion(np.asarray(gravity, float), np.zeros(3))
        if payload is not None:
            name, mass, com, inertia = payload
            frame = self.model.frames[robot.frame_id(name)]
            load = pin.Inertia(mass, com, inertia)
            self.model.appendBodyToJoint(frame.parentJoint, load, frame.placement)
        self.rotors = np.array(robot.model.armature)
        self.lossy = np.zeros(robot.nv)
        for joint, brake in ({} if brakes is None else brakes.joints).items():
            i = robot.coordinates(joint).v.start
            if brake.rotor_inertia is not None:
                self.rotors[i] = brake.gear_ratio**2 * brake.rotor_inertia
            if brake.efficiency < 1.0:
                self.lossy[i] = self.rotors[i]
        self.model.armature = self.rotors - self.lossy
        self._pairs = [pair for loop in robot.loops for pair in self._points(loop)]
        self.data = self.model.createData()

    def _points(self, loop: LoopJoint) -> list[tuple[int, int]]:
        """Frames whose origins coincide."""
        pairs = [(loop.frame_a, loop.frame_b)]
        if loop.pair.name == "revolute":
            along = pin.SE3(np.eye(3), np.array([0.0, 0.0, 0.5]))
            pairs.append((self._added(loop.frame_a, along), self._added(loop.frame_b, along)))
        else:
            assert loop.pair.name == "spherical"
        return pairs

    def _added(self, frame: int, shift: pin.SE3) -> int:
        """A frame beside another one, on the same body."""
        near = self.model.frames[frame]
        kind, place = pin.FrameType.OP_FRAME, near.placement * shift
        return int(self.model.addFrame(pin.Frame(f"{near.name}/+", near.parentJoint, place, kind)))

    def gap(self, q: Array) -> Array:
        """Distances of the points that shall coincide [m]."""
        pin.framesForwardKinematics(self.model, self.data, q)
        gaps = [self.data.oMf[a].translation - self.data.oMf[b].translation for a, b in self._pairs]
        return np.concatenate([*gaps, np.zeros(0)])

    def rows(self, q: Array, v: Array) -> tuple[Array, Array]:
        """``J`` and ``gamma`` with ``J a + gamma = 0``."""
        model, data = self.model, self.data
        pin.computeJointJacobians(model, data, q)
        pin.forwardKinematics(model, data, q, v, np.zeros(model.nv))
        pin.updateFramePlacements(model, data)
        J, gamma = [np.zeros((0, model.nv))], [np.zeros(0)]
        for a, b in self._pairs:
            J.append(
                pin.getFrameJacobian(model, data, a, _WORLD)[:3]
                - pin.getFrameJacobian(model, data, b, _WORLD)[:3]
            )
            gamma.append(
                pin.getFrameClassicalAcceleration(model, data, a, _WORLD).linear
                - pin.getFrameClassicalAcceleration(model, data, b, _WORLD).linear
            )
        return np.vstack(J), np.concatenate(gamma)

    def mass(self, q: Array) -> Array:
        """Mass matrix, without rotors behind gears with losses."""
        upper = np.triu(pin.crba(self.model, self.data, q))
        return np.asarray(upper + np.triu(upper, 1).T)

    def bias(self, q: Array, v: Array) -> Array:
        """Gravity and what depends on velocities: ``M a + bias = tau + J' lam``."""
        return np.array(pin.nonLinearEffects(self.model, self.data, q, v))

    def kinetic(self, q: Array, v: Array) -> float:
        """Kinetic energy with all rotors [J]."""
        return 0.5 * float(v @ (self.mass(q) @ v) + v @ (self.lossy * v))

    def potential(self, q: Array) -> float:
        """Potential energy [J]."""
        return float(pin.computePotentialEnergy(self.model, self.data, q))

    def energy(self, q: Array, v: Array) -> float:
        """Kinetic and potential energy [J]."""
        return self.kinetic(q, v) + self.potential(q)

    def free(self, q: Array) -> Array:
        """Directions in which the robot can move, orthonormal columns."""
        J, _ = self.rows(q, np.zeros(self.model.nv))
        if not len(J):
            return np.eye(self.model.nv)
        _, values, V = np.linalg.svd(J)
        return np.asarray(V[int(np.sum(values > 1e-9 * values[0])) :].T)


@dataclass(frozen=True, eq=False)
class Friction:
    """Dry friction, brakes and losses per velocity coordinate after the power has gone.

    Args:
        robot: for the friction and damping of joints without entry.
        brakes: the brakes.
        chain: from the signal to the command.
    """

    robot: pl.Mechanism
    brakes: pl.Brakes
    chain: pl.safety.Chain

    def _single(self, joint: str) -> bool:
        return self.robot.coordinates(joint).nv == 1

    def part(self, joint: str, t: float) -> float:
        """Part of the torque of a brake."""
        brake = self.brakes.joints[joint]
        begin = self.chain.command + brake.delay
        if t < begin or brake.kind != "friction":
            return 0.0
        return 1.0 if t >= begin + brake.rise else (t - begin) / brake.rise

    def hold(self, joint: str, t: float) -> float:
        """Torque up to which a joint at rest is held [N m]."""
        if joint not in self.brakes.joints:
            column = self.robot.coordinates(joint).v.start
            return float(self.robot.model.upperDryFrictionLimit[column]) * self._single(joint)
        brake = self.brakes.joints[joint]
        most = brake.factor * brake.static * self.part(joint, t)
        dry = brake.coulomb if brake.breakaway is None else brake.breakaway
        if brake.side == "motor":
            most *= brake.gear_ratio / brake.efficiency
        return most + dry

    def moving(self, joint: str, t: float, v: float, a: float, way: float, rotor: float) -> float:
        """Torque at a joint that moves, or begins to move, in direction ``way`` [N m].

        Args:
            joint: the joint.
            t: time [s].
            v: speed.
            a: acceleration.
            way: sign of the motion.
            rotor: inertia of the rotor behind a gear with losses, at the joint.
        """
        if joint not in self.brakes.joints:
            column = self.robot.coordinates(joint).v.start
            dry = float(self.robot.model.upperDryFrictionLimit[column])
            return -dry * way - float(self.robot.model.damping[column]) * v
        brake = self.brakes.joints[joint]
        grip = brake.factor * brake.dynamic_torque * self.part(joint, t) * way
        dry = brake.coulomb
        if brake.breakaway is not None and brake.breakaway > brake.coulomb:
            dry += (brake.breakaway - brake.coulomb) * np.exp(-((v / brake.stribeck_speed) ** 2))
        before = -(brake.gear_ratio**2) * brake.short_circuit * v - rotor * a
        behind = -dry * way - brake.viscous * v
        if brake.side == "motor":
            before -= brake.gear_ratio * grip
        else:
            behind -= grip
        gain = brake.efficiency if before * way > 0 else 1 / brake.efficiency
        return float(behind + gain * before)


def excess_torque(
    machine: Machine, friction: Friction, t: float, q: Array, v: Array, a: Array, still: float
) -> float:
    """How much more than friction can give the motion of a robot without power takes.

    Torques of joints at rest are free between their bounds, reactions are eliminated. In the
    largest torque of all; rounding if all is well.

    Args:
        machine: the robot.
        friction: its brakes and friction.
        t: time [s].
        q: configuration.
        v: velocity.
        a: acceleration.
        still: acceleration that counts as none.
    """
    robot = machine.robot
    known = machine.mass(q) @ a + machine.bias(q, v)
    size = float(np.abs(known).max()) + float(np.abs(machine.bias(q, 0 * v)).max())
    loose: list[int] = []
    bounds: list[tuple[float, float]] = []
    for joint in robot.joints:
        at = robot.coordinates(joint)
        if at.nv != 1:
            known[at.v] += robot.model.damping[at.v] * v[at.v]
            continue
        i = at.v.start
        way = np.sign(v[i]) if abs(v[i]) > _REST else np.sign(a[i]) if abs(a[i]) > still else 0.0
        if way:
            given = friction.moving(joint, t, v[i], a[i], way, machine.lossy[i])
            known[i] -= given
            size = max(size, abs(given))
        else:
            most = friction.hold(joint, t)
            size = max(size, most)
            loose.append(i)
            bounds.append((-most, most))
    N = machine.free(q)
    return _least_slack(N[loose].T, N.T @ known, bounds, size)


def _least_slack(A: Array, b: Array, bounds: list[tuple[float, float]], size: float) -> float:
    """Least ``s`` with ``|A x - b| <= s size`` and ``x`` in its bounds."""
    n, k = len(b), A.shape[1]
    if k == 0:
        return float(np.abs(b).max(initial=0.0)) / size
    limits: list[tuple[float, float | None]] = [(low / size, high / size) for low, high in bounds]
    sides = np.hstack([np.vstack([A, -A]), -np.ones((2 * n, 1))])
    return least(np.r_[np.zeros(k), 1.0], sides, np.r_[b, -b] / size, [*limits, (0.0, None)])


def least(cost: Array, A: Array, b: Array, bounds: Any = (None, None)) -> float:
    """Least ``cost' x`` with ``A x <= b`` and ``x`` in its bounds."""
    tight: Any = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    program = linprog(cost, A_ub=A, b_ub=b, bounds=bounds, options=tight)
    assert program.status == 0, program.message
    return float(cost @ np.asarray(program.x, float))


def static_excess(machine: Machine, friction: Friction, t: float, q: Array) -> float:
    """How much more torque than brakes and friction can give it takes to stay at rest."""
    none = np.zeros(machine.robot.nv)
    return excess_torque(machine, friction, t, q, none, none, 1.0)


def closed(machine: Machine, run: pl.Trajectory) -> float:
    """Largest gap of the loops over all states of a run [m]."""
    return max((float(np.abs(machine.gap(q)).max(initial=0.0)) for q in run.q), default=0.0)


def stuck(run: pl.Trajectory, k: int) -> set[str]:
    """Joints that do not move in the phase of state ``k``."""
    return {lock.joint for lock in run.modes[run.mode[k]].locks}


def columns(robot: pl.Mechanism, joints: set[str]) -> NDArray[np.intp]:
    """Velocity coordinates of joints with one degree of freedom."""
    return np.array(sorted(robot.coordinates(name).v.start for name in joints), dtype=np.intp)


# -- in short ------------------------------------------------------------------------------------


def brake(torque: float, **more: Any) -> pl.safety.JointBrake:
    """A friction brake at the joint itself."""
    return pl.safety.JointBrake(side="joint", dynamic_torque=torque, **more)


def rubbing(torque: float, **more: Any) -> pl.safety.JointBrake:
    """A joint without brake, with dry friction."""
    return pl.safety.JointBrake(kind="none", coulomb=torque, **more)


def moving(
    one: pl.Mechanism, rates: dict[str, float], pose: dict[str, float] | None = None
) -> tuple[Array, Array]:
    """An assembled configuration and a velocity."""
    q = pl.assemble(one, pose)
    return q, pl.consistent_velocity(one, q, rates)


def at(one: pl.Mechanism, *joints: str) -> list[int]:
    """Velocity coordinates of joints with one degree of freedom."""
    return [one.coordinates(joint).v.start for joint in joints]
