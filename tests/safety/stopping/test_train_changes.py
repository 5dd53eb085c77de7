"""How drive trains change, against differences of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pinloop as pl
from pinloop.linalg.dense import slope
from pinloop.safety.brakes.joint_brake import JointBrake
from pinloop.safety.stopping.drivetrain import Drivetrain, Sliding, imaginary
from pinloop.safety.stopping.inputs import StopInput
from pinloop.safety.stopping.loads import sink_torques
from pinloop.safety.stopping.phase import Phase, pinned_bounds
from pinloop.safety.stopping.plan import BrakeTimes
from pinloop.safety.stopping.reference import EvenPiece
from pinloop.safety.stopping.stop_equations import Solved
from pinloop.safety.stopping.train_changes import TrainChanges

from ...screw_tables import Array
from ...states import robot as loaded

ARM, RNG = loaded("six_axis_arm"), np.random.default_rng(7)
MOTOR: dict[str, Any] = {
    "dynamic_torque": 0.9, "tolerance": 0.2, "band": 0.5, "delay": 0.02, "rise": 0.05,
    "gear_ratio": 100.0, "rotor_inertia": 1e-3, "coulomb": 6.0, "breakaway": 9.0,
    "stribeck_speed": 0.2, "viscous": 3.0, "short_circuit": 2e-3, "drive_torque": 2.0,
}  # fmt: skip
FADES: dict[str, Any] = {
    "fade_share": 0.4, "fade_speed": 20.0, "fade_heat": 150.0, "start_heat": 20.0
}  # fmt: skip
JOINTS = {
    "joint_1": JointBrake(**MOTOR, **FADES, efficiency=0.8),
    "joint_2": JointBrake(**{**MOTOR, **FADES, "side": "joint", "static_torque": 1.4}),
    "joint_3": JointBrake(
        **MOTOR, static_torque=1.3, efficiency=0.7, law="drive-torque", torque_share=0.6
    ),
    "joint_4": JointBrake(**{**MOTOR, "kind": "tooth", "breakaway": None, "pitch": 0.1}),
    "joint_5": JointBrake(
        kind="none",
        coulomb=2.0,
        viscous=1.0,
        gear_ratio=50.0,
        short_circuit=1e-3,
        rotor_inertia=2e-3,
    ),
    "joint_6": JointBrake(**{**MOTOR, **FADES, "breakaway": None, "efficiency": 0.6}),
}
QUANTITIES = (
    *("brake_torque", "dynamic_torque", "static_torque", "band", "delay", "rise", "coulomb"),
    *("breakaway", "stribeck_speed", "viscous", "short_circuit", "efficiency", "gear_ratio"),
    *("rotor_inertia", "drive_torque", "torque_share", *FADES),
)
START, T, BRAKE = 0.03, 0.035, 0.0
V, A, OUTPUT, HOLDING = RNG.normal(size=(4, 6))
Q, PLACE, SLIPPED = np.array([[1.0], [0.6], [0.5]]) * RNG.uniform(0.5, 1.0, (3, 6))
STATE = T, Q, V
PIECE = EvenPiece(0.0, RNG.normal(size=6), RNG.normal(size=6))


def changed(quantity: str, joint: str, by: float) -> Drivetrain:
    """The drive train with a number that is larger, or larger by a part at all joints."""
    joints = dict(JOINTS)
    if quantity == "static_torque":  # which cannot fall below the other one
        joints = {name: replace(brake, static_torque=1.7) for name, brake in joints.items()}
    for name in [joint] if joint else joints:
        brake, part = joints[name], dict[str, Any]()
        if quantity == "brake_torque":
            for torque in ("dynamic_torque", "static_torque"):
                if (value := getattr(brake, torque)) is not None:
                    part[torque] = value * (1.0 + by)
        elif brake.uses(quantity) and not (quantity == "efficiency" and brake.efficiency == 1.0):
            value = getattr(brake, quantity)
            if value is not None:
                part[quantity] = value + by if joint else value * (1.0 + by)
        joints[name] = replace(brake, **part)
    return Drivetrain(ARM, pl.Brakes(joints))


def phase_of(train: Drivetrain) -> Phase:
    """Joints 1 to 3 slide or are dragged, 4 follows, 5 and 6 stick; all but 4 are shorted."""
    ramp, rate = BrakeTimes(0.0, BRAKE, np.inf).ramp(train, START)
    sliding = Sliding(
        np.array([1.0, -1.0, -1.0, 1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0]),
        START, ramp, rate, np.array([0, 0, 1, 1, 0, 1], bool), np.ones(6, bool),
        np.array([1, 1, 1, 0, 1, 1], bool), SLIPPED, PLACE,
    )  # fmt: skip
    stuck, follow = np.array([0, 0, 0, 0, 1, 1], bool), np.array([0, 0, 0, 1, 0, 0], bool)
    none = np.zeros(6)
    return Phase(sliding, stuck, follow, PIECE, none, none.astype(int), pl.Mode(), none)


def laws(train: Drivetrain) -> Array:
    """Torques of what slides, bounds of what is pinned, what takes energy, and rotors."""
    phase = phase_of(train)
    before, through = train.sliding_torques(phase.sliding, phase.follow).torques(*STATE)
    through = np.where(phase.pinned, 0.0, through)  # what pins acts instead
    bounds = [np.where(np.isfinite(x), x, 0.0) for x in pinned_bounds(train, phase, T, V)]
    own = [np.where(phase.pinned, bound, 0.0) for bound in bounds]
    solved = Solved(A, np.zeros(6), OUTPUT, HOLDING)
    sinks = sink_torques(train, phase.sliding, phase.follow, STATE, solved)
    rotors = train.reflected, train.lossy, train.efficiency, train.delay, train.rise
    return np.array([before, through, *own, *sinks, *rotors])


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_what_acts_changes_as_its_differences(quantity: str) -> None:
    """Of each joint, and of all together; a tooth has no torque, no brake no delay."""
    train = changed(quantity, "", 0.0)
    for joint in ("", *JOINTS):
        of = StopInput(quantity, quantity, joint, 1.0, "")
        changes, phase = TrainChanges(train, [of]), phase_of(train)
        own = changes.phase(phase, changes.delay, np.zeros((2, 1, 6)))
        slide = changes.beside.sliding_torques(own.sliding, phase.follow)
        before, through = imaginary(np.array(slide.torques(*STATE)))
        bounds = changes.bounds(own, T, V, np.zeros((1, 6)))
        solved = Solved(A, np.zeros(6), OUTPUT, HOLDING)
        at = T, Q, V + np.zeros((1, 6))
        found = [
            before, np.where(phase.pinned, 0.0, through),
            *(np.where(phase.pinned, bound, 0.0) for bound in bounds),
            *imaginary(sink_torques(changes.beside, own.sliding, phase.follow, at, solved)),
            changes.reflected, changes.lossy, changes.efficiency, changes.delay, changes.rise,
        ]  # fmt: skip
        size = 1.0 if not joint or quantity == "brake_torque" else _size(quantity, joint)
        wanted = slope(lambda s: laws(changed(quantity, joint, s)), 1e-3 * size)  # noqa: B023
        np.testing.assert_allclose(
            np.array(found)[:, 0] * size, wanted * size, rtol=1e-8, atol=1e-8, err_msg=joint
        )


def _size(quantity: str, joint: str) -> float:
    return getattr(JOINTS[joint], quantity) or 1.0
