"""How brakes, gears, friction and drives change with numbers of the brakes file.

The numbers of a drive train are products and quotients of those of its file: a step in the
imaginary direction gives their derivatives to the last digit, and those of all that acts. A gear
whose efficiency is one stays as it is: it could have losses in one direction only.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace

import numpy as np

from ...boundary.marks import Array
from ...tolerances import COMPLEX_STEP
from ..brakes.joint_brake import JOINT_PARAMETERS, JointBrake
from .drivetrain import STEP, Drivetrain, drive_numbers, imaginary
from .inputs import TORQUE, StopInput, brake_number
from .phase import Phase, pinned_bounds
from .reference import EvenPiece


class TrainChanges:
    """Changes of a drive train with k inputs; for what is not described here see `Drivetrain`.

    Attributes:
        beside: the drive trains with inputs that are larger by `STEP`, one after another.
        reflected: changes of the inertia of rotors, shape (k, nv) as all that follow.
        lossy: of those behind gears with losses.
        efficiency: of gears.
        delay: of delays.
        rise: of rises.
    """

    def __init__(self, train: Drivetrain, inputs: Sequence[StopInput]) -> None:
        shape = len(inputs), train.robot.nv
        parts = {"brakes": (2, 2, *shape), "fading": (4, *shape)}
        by = {name: np.zeros(parts.get(name, shape)) for name in _NUMBERS}
        for k, of in enumerate(inputs):
            joints = [of.joint] if of.joint in train.brakes.joints else [*train.brakes.joints]
            for joint in joints if of.quantity in (TORQUE, *JOINT_PARAMETERS) else ():
                brake = train.brakes.joints[joint]
                if (value := brake_number(brake, of.quantity)) is None:
                    continue
                numbers = _beside(brake, of.quantity, value, 1.0 if of.joint else value)
                for name, number in drive_numbers(numbers).items():
                    if name in by:
                        by[name][..., k, train.columns[joint]] = np.imag(number) / COMPLEX_STEP
        self.beside = train.beside(by)
        self.reflected, self.efficiency = by["reflected"], by["efficiency"]
        self.delay, self.rise = by["delay"], by["rise"]
        self.lossy = imaginary(self.beside.lossy)

    def phase(self, phase: Phase, begin: Array, slip: Array) -> Phase:
        """A phase beside, one after another.

        Args:
            phase: the phase.
            begin: changes of the times at which brakes begin to act, shape (k, nv).
            slip: of the slip of brakes when the phase begins, and of the travel of joints there,
                shape (2, k, nv).
        """
        own = phase.sliding  # (t - begin) / rise, of which `ramp` is the start
        sliding = replace(
            own,
            ramp=own.ramp - STEP * own.slope * (begin + own.ramp * self.rise),
            slope=own.slope - STEP * own.slope**2 * self.rise,
            slipped=own.slipped + STEP * slip[0],
            place=own.place + STEP * slip[1],
        )
        return replace(phase, sliding=sliding)

    def bounds(self, beside: Phase, t: float, v: Array, rates: Array) -> tuple[Array, Array]:
        """Changes of the bounds of what is pinned, lower and upper, shape (k, nv) each.

        ``rates``: changes of the accelerations of drives that are followed, shape (k, nv).
        """
        piece = EvenPiece(t, beside.piece.v(t), beside.piece.a(t) + STEP * rates)
        with np.errstate(invalid="ignore"):  # of bounds at infinity, which stay
            low, high = pinned_bounds(self.beside, replace(beside, piece=piece), t, v)
        low, high = (np.where(np.isfinite(x), imaginary(x), 0.0) for x in (low, high))
        return low, high


_NUMBERS = (
    *("coulomb", "extra", "shape", "viscous", "short", "reflected", "efficiency", "limit"),
    *("pull", "delay", "rise", "brakes", "fading"),
)
"""What of `drive_numbers` a motion depends on smoothly."""


def _beside(brake: JointBrake, quantity: str, value: float, by: float) -> JointBrake:
    """A brake with a number that is larger by a step in the imaginary direction."""
    beside, step = copy(brake), STEP
    numbers = {quantity: value + step * by}
    if quantity == TORQUE:
        torques = {"dynamic_torque": brake.dynamic_torque, "static_torque": brake.static_torque}
        numbers = {name: x + step * x for name, x in torques.items() if x is not None}
    for name, number in numbers.items():
        object.__setattr__(beside, name, number)  # it is no brake for anybody else
    return beside
