"""What a stop depends on, number by number: names and values.

A name is a quantity, or a quantity of a joint: "payload", "speed:joint_1", "delay:joint_2",
"sensor". A quantity that joints have, without a joint, is that of all of them together, by the same
part: it counts from 1. How they change all that acts is in `input_changes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from ...boundary.arguments import require_kind
from ...errors import BadValue, UnknownName
from ..brakes.joint_brake import CHAIN_PARAMETERS, JOINT_PARAMETERS, Chain, JointBrake
from .history import StopHistory
from .plan import Trigger
from .prepared_robot import payload_of
from .reference import RecordedPiece

TORQUE = "brake_torque"
"""Both torques of a brake, by the same part."""
_OF_BRAKE = (
    *("dynamic_torque", "static_torque", "band", "delay", "rise", "coulomb", "breakaway"),
    *("stribeck_speed", "viscous", "short_circuit", "efficiency", "gear_ratio", "rotor_inertia"),
    *("fade_share", "fade_speed", "fade_heat", "start_heat"),
    *("drive_torque", "deceleration", "ramp_time", "jerk", "time_constant", "torque_share"),
)
"""Parameters of a joint in the brakes file that the motion depends on smoothly."""
_OF_RAMP = ("deceleration", "ramp_time", "jerk", "time_constant")
OF_PLAN = ("speed", "instant", *_OF_RAMP, *CHAIN_PARAMETERS)
"""Inputs on which it depends what drives follow."""
_OF_CONTROL = ("drive_torque", "torque_share", *_OF_RAMP)


@dataclass(frozen=True)
class StopInput:
    """A number that a stop depends on.

    Args:
        name: its name.
        quantity: what it is.
        joint: whose it is; empty for what belongs to none, or to all joints together.
        value: what it was; 1 for what belongs to all together.
        unit: its unit; empty for that.
    """

    name: str
    quantity: str
    joint: str
    value: float
    unit: str


def stop_inputs(history: StopHistory, names: Iterable[str] | None = None) -> tuple[StopInput, ...]:
    """The inputs of a stop that are named; all that are not zero by default."""
    if names is not None:
        return tuple(_named(history, name) for name in distinct_names(names, "to"))
    every = [_named(history, name) for name in _all_names(history)]
    return tuple(each for each in every if each.value != 0.0)


def distinct_names(names: Iterable[str], what: str) -> tuple[str, ...]:
    """One name or several, each once."""
    chosen = tuple(dict.fromkeys([names] if isinstance(names, str) else names))
    for name in chosen:
        require_kind(name, str, what, "give names such as 'delay:JOINT' or 'angle:JOINT'")
    return chosen


def _all_names(history: StopHistory) -> Iterator[str]:
    """Names of all inputs of a stop that may count."""
    brakes, controlled = history.train.brakes, history.plan.category.controlled
    if recorded_motion(history) is None:
        followed = _followed(history)
        yield from (f"speed:{name}" for name in followed)
        yield from (f"pose:{name}" for name in followed)
    if payload_of(history.train.robot, history.robot) is not None:
        yield "payload"
    yield from CHAIN_PARAMETERS
    for name, brake in brakes.joints.items():
        for quantity in (TORQUE, *_OF_BRAKE):
            torque = quantity in ("dynamic_torque", "static_torque")
            if torque or quantity == "gear_ratio" or (quantity in _OF_CONTROL and not controlled):
                continue  # the torques together are what counts; teeth can be counted
            if quantity in _OF_RAMP and history.run.v[0, history.train.columns[name]] == 0.0:
                continue
            if brake_number(brake, quantity) is not None:
                yield f"{quantity}:{name}"


def _named(history: StopHistory, name: str) -> StopInput:
    """An input by its name."""
    quantity, _, joint = name.partition(":")
    robot, brakes = history.train.robot, history.train.brakes
    motion = recorded_motion(history)
    plain = {key: getattr(history.plan.chain, key) for key in CHAIN_PARAMETERS}
    if motion is not None:
        plain["instant"] = motion.signal
    if quantity == "payload" and not joint:
        load = payload_of(robot, history.robot)
        return StopInput(name, quantity, "", 0.0 if load is None else float(load.mass), "kg")
    if quantity in plain and not joint:
        return StopInput(name, quantity, "", float(plain[quantity]), "s")
    known = ("speed", "pose", TORQUE, *_OF_BRAKE)
    if quantity not in known or (quantity == "pose" and not joint):
        raise UnknownName(
            "input of a stop", name, ["payload", *plain, *(f"{k}:JOINT" for k in known)]
        )
    if quantity in ("speed", "pose"):
        if motion is not None:
            raise BadValue(f"'{name}' follows from the motion of the trigger; give 'instant'")
        if not joint:
            return StopInput(name, quantity, "", 1.0, "")
        column = robot.coordinates(joint).v.start
        if robot.coordinates(joint).nv != 1:
            raise BadValue(f"'{name}': joint '{joint}' has several degrees of freedom")
        unit = "m" if robot.is_translation[column] else "rad"
        if quantity == "speed":
            return StopInput(name, quantity, joint, float(history.run.v[0, column]), f"{unit}/s")
        at = history.robot.coordinates(joint).q
        q = history.run.q[0, at]
        angle = float(q[0]) if len(q) == 1 else float(np.arctan2(q[1], q[0]))
        return StopInput(name, quantity, joint, angle, unit)
    if not joint:
        return StopInput(name, quantity, "", 1.0, "")
    if joint not in brakes.joints:
        raise UnknownName("brake of joint", joint, brakes.joints, brakes.robot)
    value = brake_number(brakes.joints[joint], quantity)
    if value is None:
        raise BadValue(f"the stop does not depend on '{name}': its joint has no such number")
    if quantity == TORQUE:
        return StopInput(name, quantity, joint, 1.0, "")
    sliding = bool(robot.is_translation[robot.coordinates(joint).v.start])
    unit = JOINT_PARAMETERS[quantity].unit_at(sliding=sliding, side=brakes.joints[joint].side)
    return StopInput(name, quantity, joint, value, unit)


def brake_number(brake: JointBrake, quantity: str) -> float | None:
    """A number of a brake; None if it has none that a stop depends on smoothly."""
    if quantity == TORQUE:
        return 1.0 if brake.kind == "friction" and brake.static > 0.0 else None
    if not brake.uses(quantity):
        return None
    if quantity == "efficiency" and brake.efficiency == 1.0:
        return None  # losses in one direction only
    value = brake.static if quantity == "static_torque" else getattr(brake, quantity)
    return None if value is None else float(value)


def recorded_motion(history: StopHistory) -> RecordedPiece | None:
    """The recorded motion that the robot was on."""
    first = history.plan.reference.pieces[0]
    return first if isinstance(first, RecordedPiece) else None


def trigger_of(history: StopHistory, chain: Chain) -> Trigger:
    """The trigger of a stop, with times of a signal chain."""
    times = {name: getattr(chain, name) for name in CHAIN_PARAMETERS}
    recorded = recorded_motion(history)
    if recorded is None:
        return Trigger(**times)
    return Trigger(recorded.motion, recorded.signal, **times)


def _followed(history: StopHistory) -> list[str]:
    """Joints whose drives lead the others, or that are free to move by themselves."""
    names, follows = history.train.names, history.plan.reference.follows
    return [names[k] for k in follows.nonzero()[0].tolist() if history.train.single[k]]
