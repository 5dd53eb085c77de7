"""One axis of a robot stops while the others are held: brakes fitted to a known time and angle.

What is known of which robot, and what must come out, is told by the programs that use this.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.integrate import simpson
from scipy.optimize import brentq, root

import pinloop as pl

__all__ = ["Axis", "Fit", "example_urdf"]

Array = NDArray[np.float64]

STRONG = 1000.0
"""Torque of the brakes of axes at rest [N m]."""


def example_urdf(name: str) -> Path:
    """A robot of the package example-robot-data."""
    try:
        listed = files("example-robot-data") or []
    except PackageNotFoundError:
        listed = []
    for file in listed:
        if file.name == name:
            return Path(str(file.locate()))
    raise SystemExit(f"{name} comes with example-robot-data: pip install 'example-robot-data>=5'")


@dataclass(frozen=True, eq=False)
class Axis:
    """An axis that turns downwards, or horizontally, on an arm that is level at angle zero.

    Args:
        name: for tables.
        robot: the robot; all its joints have one degree of freedom.
        payload: what it carries.
        column: which of its joints moves.
        speed: of this joint at the signal [rad/s].
        angle: that it is known to turn until it stands [rad].
        time: that it is known to take [s].
    """

    name: str
    robot: pl.Mechanism
    payload: pl.Payload
    column: int
    speed: float
    angle: float
    time: float

    @cached_property
    def inertia(self) -> float:
        """Of all that it moves, with payload [kg m^2]."""
        model, data = self._pinocchio
        return float(pin.crba(model, data, np.zeros(model.nq))[self.column, self.column])

    @cached_property
    def level(self) -> float:
        """Torque of gravity on the level arm [N m]."""
        return self.gravity(np.zeros(self.robot.nq))

    def gravity(self, q: Array) -> float:
        """Torque with which gravity speeds it up [N m]."""
        return -float(pin.computeGeneralizedGravity(*self._pinocchio, q)[self.column])

    def potential(self, q: Array) -> float:
        """Potential energy [J]."""
        return float(pin.computePotentialEnergy(*self._pinocchio, q))

    @property
    def means(self) -> tuple[float, float]:
        """Mean torque over the known time and over the known angle, gravity as if level [N m]."""
        impulse, energy = self.inertia * self.speed, 0.5 * self.inertia * self.speed**2
        return self.level + impulse / self.time, self.level + energy / self.angle

    @property
    def shape(self) -> float:
        """Known angle over what the axis would do in the time at full speed."""
        return self.angle / (self.speed * self.time)

    @cached_property
    def _pinocchio(self) -> tuple[Any, Any]:
        model = self.robot.with_payload(str(self.payload.frame), self.payload.mass).model
        return model, model.createData()

    def stop(
        self, torque: float, delay: float = 0.0, short: float = 0.0, passed: float = 0.5
    ) -> Fit:
        """Stop it.

        Args:
            torque: of its brake, at the joint [N m].
            delay: of its brake [s].
            short: viscous torque of the shorted motor, at the joint [N m s/rad].
            passed: part of the known angle after which the arm is level.
        """
        joint = self.robot.joints[self.column]
        strong = pl.safety.JointBrake(side="joint", dynamic_torque=STRONG)
        brake = pl.safety.JointBrake(
            side="joint", dynamic_torque=torque, delay=delay, short_circuit=short
        )  # fmt: skip
        brakes = pl.Brakes(dict.fromkeys(self.robot.joints, strong) | {joint: brake})
        q, v = np.zeros(self.robot.nq), np.zeros(self.robot.nv)
        q[self.column], v[self.column] = -passed * self.angle, self.speed
        result = pl.stop(self.robot, q, v, brakes=brakes, payload=self.payload, until=3.0)
        return Fit(self, torque, delay, short, result)

    @cached_property
    def by_time(self) -> Fit:
        """The stop with the constant torque, without delay, that takes the known time."""
        return self.for_time()

    @cached_property
    def by_angle(self) -> Fit:
        """The stop with the constant torque, without delay, that takes the known angle."""
        return self.for_angle()

    def for_time(self, delay: float = 0.0, passed: float = 0.5) -> Fit:
        """The stop with the constant torque that takes the known time."""

        def miss(torque: float) -> float:
            made = self.stop(torque, delay, passed=passed)
            return 1.0 / self.time - (1.0 / made.joint.time if made.result.holds else 0.0)

        return self.stop(float(brentq(miss, *self._around, rtol=1e-6)), delay, passed=passed)

    def for_angle(self, passed: float = 0.5) -> Fit:
        """The stop with the constant torque, without delay, that takes the known angle."""

        def miss(torque: float) -> float:
            made = self.stop(torque, passed=passed)
            return 1.0 / self.angle - (1.0 / made.joint.angle if made.result.holds else 0.0)

        return self.stop(float(brentq(miss, *self._around, rtol=1e-6)), passed=passed)

    def for_both(self, delay: float) -> Fit:
        """The stop with a constant torque, and a viscous one beside it, that takes both."""

        def made(x: Array) -> Fit:
            torque, short = np.exp(x)
            return self.stop(float(torque), delay, float(short))

        def miss(x: Array) -> Array:
            joint = made(x).joint
            return np.log([joint.time / self.time, joint.angle / self.angle])

        half = self.level + 0.4 * (self.means[0] - self.level)
        guess = np.log([half, 1.2 * self.inertia / self.time])
        found = root(miss, guess, options={"eps": 1e-4}, tol=1e-4)
        assert found.success, f"{self.name}: {found.message}"
        return made(found.x)

    @property
    def _around(self) -> tuple[float, float]:
        """Torques between which the fitted one lies."""
        return 0.5 * self.level + 0.3 * self.means[0], 4.0 * self.means[0]


class Fit(NamedTuple):
    """A stop of an axis with fitted torques; arguments as in `Axis.stop`."""

    axis: Axis
    torque: float
    delay: float
    short: float
    result: pl.StopResult

    @property
    def joint(self) -> pl.safety.JointStop:
        """The axis as it stopped."""
        return self.result.joints[self.axis.robot.joints[self.axis.column]]

    @property
    def shape(self) -> float:
        """Angle over what the axis would do in the time at full speed."""
        return self.joint.angle / (self.axis.speed * self.joint.time)

    @property
    def share(self) -> float:
        """Part of the heat that arises in the shorted motor."""
        return float(self.result.ledger.dissipated["short circuit"].sum()) / self.result.ledger.heat

    def check(self) -> None:
        """Momentum and energy of one axis, written down by hand: brake against all else."""
        axis, run, k = self.axis, self.result.run, self.axis.column
        assert self.result.holds and self.joint.slips == 0
        others = np.arange(axis.robot.nv) != k
        assert np.all(run.q[:, others] == 0.0), "an axis at rest has moved"
        t = np.linspace(0.0, run.t[-1], 401)
        pull = simpson([axis.gravity(q) for q in run(t)[1]], x=t)
        braked = self.torque * (t[-1] - self.delay) + self.short * self.joint.angle
        assert abs(braked / (axis.inertia * axis.speed + pull) - 1.0) < 1e-6
        fall = axis.potential(run.q[0]) - axis.potential(run.q[-1])
        kinetic = 0.5 * axis.inertia * axis.speed**2
        assert abs(self.result.ledger.heat / (kinetic + fall) - 1.0) < 1e-6
