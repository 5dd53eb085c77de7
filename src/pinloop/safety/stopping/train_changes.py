"""How brakes, gears, friction and drives change with numbers of the brakes file.

The numbers of a drive train are products and quotients of those of its file: a step in the
imaginary direction gives their derivatives to the last digit. What acts is linear in them but for
the efficiencies of gears and the speeds over which friction falls. A gear whose efficiency is one
stays as it is: it could have losses in one direction only.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...boundary.marks import Array
from ...tolerances import COMPLEX_STEP
from ..brakes.joint_brake import JOINT_PARAMETERS, JointBrake
from .drivetrain import Drivetrain, SlidingTorques, drive_numbers
from .fading import FadeChanges, PhaseFade
from .inputs import TORQUE, StopInput, brake_number
from .phase import Phase, breakaway_directions, motor_bounds
from .stop_equations import Solved


class Engagement(NamedTuple):
    """Changes of the part of their torque that brakes have in a phase, of k inputs.

    Args:
        ramp: at the start of the phase, shape (k, nv).
        slope: of its rate [1/s], shape (k, nv).
        slip: of the slip of brakes when the phase begins, and of the travel of joints there,
            shape (2, k, nv).
    """

    ramp: Array
    slope: Array
    slip: Array

    @classmethod
    def of(cls, phase: Phase, begin: Array, rise: Array, slip: Array) -> Engagement:
        """From those of the times at which brakes begin to act, and of their rises, (k, nv)."""
        sliding = phase.sliding  # (t - begin) / rise, of which `ramp` is the start
        ramp = -sliding.slope * (begin + sliding.ramp * rise)
        return cls(ramp, -(sliding.slope**2) * rise, slip)


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
        fading: of how the torques of brakes fall: share, speed, rate, heat at the begin.
    """

    def __init__(self, train: Drivetrain, inputs: Sequence[StopInput]) -> None:
        self._train, shape = train, (len(inputs), train.robot.nv)
        parts = {"brakes": (2, 2, *shape), "fading": (4, *shape)}
        by = {name: np.zeros(parts.get(name, shape)) for name in _NUMBERS}
        for k, of in enumerate(inputs):
            joints = [of.joint] if of.joint in train.brakes.joints else [*train.brakes.joints]
            for joint in joints if of.quantity in (TORQUE, *JOINT_PARAMETERS) else ():
                brake = train.brakes.joints[joint]
                if (value := brake_number(brake, of.quantity)) is None:
                    continue
                beside = _beside(brake, of.quantity, value, 1.0 if of.joint else value)
                for name, number in drive_numbers(beside).items():
                    if name in by:
                        by[name][..., k, train.columns[joint]] = np.imag(number) / COMPLEX_STEP
        self.brake, self.fading = by["brakes"], by["fading"]
        self.coulomb, self.extra, self.shape = by["coulomb"], by["extra"], by["shape"]
        self.viscous, self.short, self.reflected = by["viscous"], by["short"], by["reflected"]
        self.efficiency, self.limit, self.pull = by["efficiency"], by["limit"], by["pull"]
        self.delay, self.rise = by["delay"], by["rise"]
        self.lossy = np.where(train.efficiency < 1.0, self.reflected, 0.0)

    def sliding_torques(self, phase: Phase, engagement: Engagement) -> SlidingTorques:
        """Changes of the torques of what slides in a phase."""
        sliding, train = phase.sliding, self._train
        brakes = -sliding.direction * np.array([train.joint_brake[0], train.motor_brake[0]])
        own = -sliding.direction * self.brake[:, 0]
        each = np.array([sliding.ramp * own, sliding.slope * own])
        each += np.array([engagement.ramp, engagement.slope])[:, None] * brakes[:, None]
        rest, rate = each[0].copy(), each[1].copy()
        rest[0] -= sliding.direction * self.coulomb
        rest[1] += self._dragged(phase)
        viscous = np.array([self.viscous, self.short * sliding.shorted])
        for part in (rest, rate, viscous, *each):
            part[1][:, phase.pinned] = 0.0  # see `PhaseTables`
        start, extra = float(np.asarray(sliding.start)), sliding.direction * self.extra
        return SlidingTorques(start, rest, rate, viscous, extra, self.shape, brakes=each)

    def fade(self, engagement: Engagement) -> FadeChanges:
        """Changes of how torques of brakes fall in a phase."""
        return FadeChanges(*self.fading, *engagement.slip)

    def bounds(
        self, phase: Phase, engagement: Engagement, t: float, v: Array, rates: Array
    ) -> tuple[Array, Array]:
        """Changes of the bounds of what is pinned, lower and upper, shape (k, nv) each.

        ``rates``: changes of the accelerations of drives that are followed, shape (k, nv).
        """
        train, sliding, follow = self._train, phase.sliding, phase.follow
        helps = phase.stuck & sliding.drives & (sliding.saturated_drive_sign == 0.0)
        rest = np.zeros_like(v)
        fade = PhaseFade(train.fading, sliding.slipped, sliding.place, rest)
        joint, motor = self._brakes(phase, engagement, (t, None, rest), 1, fade)
        drive, dragged = self.limit * sliding.limited, self._dragged(phase)
        hold = motor + np.where(helps, drive, 0.0)
        low, high = dragged - hold, dragged + hold
        joint = np.where(follow, 0.0, joint + self.coulomb + self.extra)
        if follow.any():
            rest = -self.short * v * sliding.shorted
            rest = rest - sliding.direction * self._brakes(phase, engagement, (t, None, v), 0)[1]
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
        at: tuple[float, Array, Array],
        slide: SlidingTorques,
        solved: Solved,
    ) -> Array:
        """Changes of what takes energy in a phase, of the drives last, shape (6, k, nv).

        ``at``: time, configuration and velocity.

        ``slide``: the torques of what slides; ``solved``: solution of the equations, which stays.
        """
        train, sliding, follow = self._train, phase.sliding, phase.follow
        t, q, v = at
        joint, motor = self._brakes(phase, engagement, at, 0, slide.fade)
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
            -replace(slide, fade=None).changes(t, q, v, friction)[0],
            self.viscous * v,
            shorted,
            before,
            np.where(follow, driven, self._dragged(phase)),
        ]
        return np.array(torques)

    def _brakes(
        self,
        phase: Phase,
        engagement: Engagement,
        at: tuple[float, Array | None, Array],
        kind: int,
        fade: PhaseFade | None = None,
    ) -> Array:
        """Changes of the torques of brakes at joints and before gears, shape (2, k, nv)."""
        (t, q, v), sliding, train = at, phase.sliding, self._train
        nominal = np.array([train.joint_brake[kind], train.motor_brake[kind]])[:, None]
        part = engagement.ramp + engagement.slope * (t - sliding.start)
        changes = sliding.engaged(t) * self.brake[:, kind] + part * nominal
        if fade is None:
            return np.asarray(changes)
        faded = sliding.engaged(t) * fade.changes(q, v, self.fade(engagement))
        return np.asarray(changes * fade.left(q, v) + faded * nominal)

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


_NUMBERS = (
    *("coulomb", "extra", "shape", "viscous", "short", "reflected", "efficiency", "limit"),
    *("pull", "delay", "rise", "brakes", "fading"),
)
"""What of `drive_numbers` a motion depends on smoothly."""


def _beside(brake: JointBrake, quantity: str, value: float, by: float) -> JointBrake:
    """A brake with a number that is larger by a step in the imaginary direction."""
    beside, step = copy(brake), 1j * COMPLEX_STEP
    numbers = {quantity: value + step * by}
    if quantity == TORQUE:
        torques = {"dynamic_torque": brake.dynamic_torque, "static_torque": brake.static_torque}
        numbers = {name: x + step * x for name, x in torques.items() if x is not None}
    for name, number in numbers.items():
        object.__setattr__(beside, name, number)  # it is no brake for anybody else
    return beside
