"""How brakes, gears, friction and drives change with numbers of the brakes file, in closed form.

The numbers of a drive train are products of those of its file, and what acts is linear in them but
for the efficiencies of gears and the speeds over which friction falls. A gear whose efficiency is
one stays as it is: it could have losses in one direction only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...boundary.marks import Array
from ..brakes.joint_brake import JointBrake
from .drivetrain import Drivetrain, SlidingTorques
from .inputs import TORQUE, StopInput, brake_number
from .phase import Phase, breakaway_directions, motor_bounds
from .stop_equations import Solved


class Engagement(NamedTuple):
    """Changes of the part of their torque that brakes have in a phase, of k inputs.

    Args:
        ramp: at the start of the phase, shape (k, nv).
        slope: of its rate [1/s], shape (k, nv).
    """

    ramp: Array
    slope: Array

    @classmethod
    def of(cls, phase: Phase, begin: Array, rise: Array) -> Engagement:
        """From those of the times at which brakes begin to act, and of their rises, (k, nv)."""
        sliding = phase.sliding  # (t - begin) / rise, of which `ramp` is the start
        ramp = -sliding.slope * (begin + sliding.ramp * rise)
        return cls(ramp, -(sliding.slope**2) * rise)


class TrainChanges:
    """Changes of a drive train with k inputs; for what is not described here see `Drivetrain`.

    Attributes:
        brake: of the torques of brakes at the joints and before the gears, sliding and at rest,
            shape (2, 2, k, nv).
        coulomb: of dry friction, shape (k, nv) as all that follow.
        extra: of what dry friction is larger at rest.
        shape: of the speed over which that vanishes.
        viscous: of viscous coefficients.
        short: of those of shorted motors.
        reflected: of the inertia of rotors.
        lossy: of those behind gears with losses.
        efficiency: of gears.
        limit: of the largest torques of drives.
        delay: of delays.
        rise: of rises.
        pull: of the share of it that drives give that cannot follow.
    """

    def __init__(self, train: Drivetrain, inputs: Sequence[StopInput]) -> None:
        self._train, shape = train, (len(inputs), train.robot.nv)
        self.brake = np.zeros((2, 2, *shape))
        self.coulomb, self.extra, self.shape = np.zeros((3, *shape))
        self.viscous, self.short, self.reflected, self.efficiency = np.zeros((4, *shape))
        self.limit, self.delay, self.rise, self.pull = np.zeros((4, *shape))
        for k, of in enumerate(inputs):
            joints = [of.joint] if of.joint in train.brakes.joints else [*train.brakes.joints]
            for joint in joints:
                self._enter(k, of, train.columns[joint], train.brakes.joints[joint])
        self.lossy = np.where(train.efficiency < 1.0, self.reflected, 0.0)

    def _enter(self, k: int, of: StopInput, column: int, brake: JointBrake) -> None:
        """Enter what an input changes at a joint."""
        quantity, at = of.quantity, (k, column)
        if quantity not in _QUANTITIES or (value := brake_number(brake, quantity)) is None:
            return
        by = 1.0 if of.joint else value
        if quantity in _PLAIN:
            getattr(self, quantity)[at] = by
        elif quantity == "coulomb":
            self.coulomb[at], self.extra[at] = by, -by if brake.uses("breakaway") else 0.0
        elif quantity == "breakaway":
            self.extra[at] = by
        elif quantity == "stribeck_speed":
            self.shape[at] = by
        elif quantity == "short_circuit":
            self.short[at] = by * brake.gear_ratio**2
        elif quantity == "rotor_inertia":
            self.reflected[at] = by * brake.gear_ratio**2
        elif quantity == "drive_torque":
            self.limit[at] = by * brake.gear_ratio
        elif quantity == "torque_share":
            self.pull[at] = by
        elif quantity == "gear_ratio":
            self.short[at] = 2.0 * by * brake.gear_ratio * brake.short_circuit
            self.reflected[at] = 2.0 * by * brake.gear_ratio * (brake.rotor_inertia or 0.0)
            self.limit[at] = by * (brake.drive_torque or 0.0)
        if brake.kind == "friction":
            self.brake[int(brake.side == "motor"), :, k, column] = by * _torque_changes(
                brake, quantity
            )

    def sliding_torques(self, phase: Phase, engagement: Engagement) -> SlidingTorques:
        """Changes of the torques of what slides in a phase."""
        sliding, train = phase.sliding, self._train
        brakes = -sliding.direction * np.array([train.joint_brake[0], train.motor_brake[0]])
        own = -sliding.direction * self.brake[:, 0]
        rest = sliding.ramp * own + engagement.ramp * brakes[:, None]
        rest[0] -= sliding.direction * self.coulomb
        rest[1] += self._dragged(phase)
        rate = sliding.slope * own + engagement.slope * brakes[:, None]
        viscous = np.array([self.viscous, self.short * sliding.shorted])
        for part in (rest, rate, viscous):
            part[1][:, phase.pinned] = 0.0  # see `PhaseTables`
        start, extra = float(np.asarray(sliding.start)), sliding.direction * self.extra
        return SlidingTorques(start, rest, rate, viscous, extra, self.shape)

    def bounds(
        self, phase: Phase, engagement: Engagement, t: float, v: Array, rates: Array
    ) -> tuple[Array, Array]:
        """Changes of the bounds of what is pinned, lower and upper, shape (k, nv) each.

        ``rates``: changes of the accelerations of drives that are followed, shape (k, nv).
        """
        train, sliding, follow = self._train, phase.sliding, phase.follow
        helps = phase.stuck & sliding.drives & (sliding.saturated_drive_sign == 0.0)
        joint, motor = self._brakes(phase, engagement, t, 1)
        drive, dragged = self.limit * sliding.limited, self._dragged(phase)
        hold = motor + np.where(helps, drive, 0.0)
        low, high = dragged - hold, dragged + hold
        joint = np.where(follow, 0.0, joint + self.coulomb + self.extra)
        if follow.any():
            rest = -self.short * v * sliding.shorted
            rest = rest - sliding.direction * self._brakes(phase, engagement, t, 0)[1]
            rest -= self.lossy * phase.piece.a(t) + train.lossy * rates
            low, high = np.where(follow, rest - drive, low), np.where(follow, rest + drive, high)
        if train.has_losses:
            nominal = motor_bounds(train, phase, t, v)
            low, high = (
                part * train.gain(np.sign(bound), way) + bound * self._gain(np.sign(bound), way)
                for part, bound, way in zip(
                    (low, high), np.where(np.isfinite(nominal), nominal, 0.0),
                    breakaway_directions(phase), strict=True,
                )
            )  # fmt: skip
        return low - joint, high + joint

    def sink_torques(
        self,
        phase: Phase,
        engagement: Engagement,
        t: float,
        v: Array,
        slide: SlidingTorques,
        solved: Solved,
    ) -> Array:
        """Changes of what takes energy in a phase, of the drives last, shape (6, k, nv).

        ``slide``: the torques of what slides; ``solved``: solution of the equations, which stays.
        """
        train, sliding, follow = self._train, phase.sliding, phase.follow
        joint, motor = self._brakes(phase, engagement, t, 0)
        rest = np.array([-sliding.direction * self.coulomb, np.zeros_like(self.coulomb)])
        extra = sliding.direction * self.extra
        friction = SlidingTorques(slide.start, rest, None, 0.0 * rest, extra, self.shape)
        output = solved.gear_output + np.where(follow, solved.holding_torque, 0.0)
        power, way = np.sign(output), sliding.direction
        before = -output / train.gain(power, way) ** 2 * self._gain(power, way)
        shorted = self.short * v * sliding.shorted
        driven = before + sliding.direction * motor + self.lossy * solved.a + shorted
        torques = [
            sliding.direction * (joint + motor),
            -slide.changes(t, v, friction)[0],
            self.viscous * v,
            shorted,
            before,
            np.where(follow, driven, self._dragged(phase)),
        ]
        return np.array(torques)

    def _brakes(self, phase: Phase, engagement: Engagement, t: float, kind: int) -> Array:
        """Changes of the torques of brakes at joints and before gears, shape (2, k, nv)."""
        sliding, train = phase.sliding, self._train
        nominal = np.array([train.joint_brake[kind], train.motor_brake[kind]])[:, None]
        part = engagement.ramp + engagement.slope * (t - sliding.start)
        return np.asarray(sliding.engaged(t) * self.brake[:, kind] + part * nominal)

    def _dragged(self, phase: Phase) -> Array:
        """Changes of the torques of drives that cannot follow."""
        sliding, train = phase.sliding, self._train
        limit = np.where(np.isfinite(train.limit), train.limit, 0.0)
        pull = train.pull * self.limit + limit * self.pull
        return np.asarray(sliding.saturated_drive_sign * pull * sliding.limited)

    def _gain(self, power: Array, direction: Array) -> Array:
        """Changes of what gears let through of a torque, see `Drivetrain.gain`."""
        by = np.where(power * direction > 0, 1.0, -1.0 / self._train.efficiency**2)
        return np.asarray(by * self.efficiency)


_PLAIN = ("viscous", "efficiency", "delay", "rise")
"""Numbers that are the same in the file and in the drive train."""
_TORQUES = (TORQUE, "dynamic_torque", "static_torque", "band", "gear_ratio")
_QUANTITIES = (
    *(*_PLAIN, *_TORQUES, "coulomb", "breakaway", "stribeck_speed", "short_circuit"),
    *("rotor_inertia", "drive_torque", "torque_share"),
)


def _torque_changes(brake: JointBrake, quantity: str) -> Array:
    """Changes of the torques of a friction brake at its joint, sliding and at rest, shape (2,)."""
    torques = np.array([brake.dynamic_torque, brake.static])
    ratio = brake.gear_ratio if brake.side == "motor" else 1.0
    follows = float(brake.static_torque is None)
    changes = {
        TORQUE: brake.factor * torques,
        "dynamic_torque": brake.factor * np.array([1.0, follows]),
        "static_torque": np.array([0.0, brake.factor]),
        "band": brake.tolerance * torques,
        "gear_ratio": brake.factor * torques / ratio * float(brake.side == "motor"),
    }
    return np.asarray(ratio * changes.get(quantity, np.zeros(2)))
