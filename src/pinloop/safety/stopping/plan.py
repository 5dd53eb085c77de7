"""The plan of a stop: what the drives follow, when brakes come, when power goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from ...boundary.arguments import public
from ...boundary.marks import INTERNAL, NotNegative
from ...dynamics import EquationsOfMotion
from ...errors import BadValue
from ...linalg.saddle import Saddle
from ..brakes.brakes import Brakes, Chain
from .brake_times import BrakeTimes, Category, Category0
from .recorded import JointTrajectory
from .reference import Piece, Reference, constant, on_path, ramps

__all__ = ["Plan", "Trigger", "make_plan"]

Array = NDArray[np.float64]
Signal = Callable[[float], Array]

_ROUNDING = 1.0 - 1e-12
"""Sums of times are off by less."""
_STILL = 1e-12
"""Speed that is rounding [rad/s, m/s]."""


@public
@dataclass(frozen=True, eq=False)
class Trigger:
    """What the robot does when the signal comes, and how long it takes until brakes are commanded.

    Args:
        motion: what the robot is doing; going on at constant joint speeds by default.
        at: when the signal comes, in the time of ``motion`` [s].
        sensor: time from the signal until the controller knows [s]; that of the brakes by default.
        controller: time from then until the command [s]; that of the brakes by default.
        drive_off: time from the command until the drives are off [s]; that of the brakes by
            default.
    """

    motion: Annotated[JointTrajectory | None, INTERNAL] = None
    at: Annotated[float, INTERNAL] = 0.0
    sensor: NotNegative | None = None
    controller: NotNegative | None = None
    drive_off: NotNegative | None = None

    def chain(self, defaults: Chain) -> Chain:
        """The chain with what is given here."""
        given = {
            name: getattr(self, name)
            for name in ("sensor", "controller", "drive_off")
            if getattr(self, name) is not None
        }
        return replace(defaults, **given)


@dataclass(frozen=True, eq=False)
class Plan:
    """A plan.

    Args:
        category: category of the stop.
        chain: from the signal to the command.
        brake_times: when brakes are commanded and power goes, as far as known at the signal.
        reference: what the drives follow.
        duration: how long they take from the command until all stand [s]; 0 without control.
        slower: gives the plan of a stop on the path that takes longer; None for others.
        longest: how long that may take, because a recorded motion ends [s].
    """

    category: Category
    chain: Chain
    brake_times: BrakeTimes
    reference: Reference
    duration: float = 0.0
    slower: Callable[[float], Plan] | None = None
    longest: float = np.inf


def make_plan(
    equations: EquationsOfMotion,
    brakes: Brakes,
    trigger: Trigger,
    category: Category,
    q0: Array,
    v0: Array,
) -> Plan:
    """The plan of a stop from a state at the signal.

    Args:
        equations: equations of the robot.
        brakes: its brakes, with the decelerations of its drives.
        trigger: what the robot does when the signal comes.
        category: category of the stop.
        q0: configuration at the signal, shape (nq,).
        v0: velocity at the signal, shape (nv,).
    """
    chain = trigger.chain(brakes.chain)
    now = isinstance(category, Category0)
    command, off = chain.command, chain.command + chain.drive_off
    brake_times = BrakeTimes(command, command if now else np.inf, off if now else np.inf)
    columns = _driven(equations, brakes, q0)
    follows = np.zeros(len(v0), dtype=bool)
    follows[list(columns.values())] = True
    start = np.where(follows, v0, 0.0)
    _check_length(trigger, off if now else command)
    slope, bend = _path(trigger, columns, start)
    may_reverse = _reversible(trigger, columns, start)
    first = Piece(0.0, slope, bend, may_reverse)
    # Without power nobody follows; a recorded motion need not be known any longer.
    nothing = constant(off, np.zeros(len(v0)))
    plan = Plan(category, chain, brake_times, Reference(follows, (first, nothing)))
    if isinstance(category, Category0):
        return plan
    # At rest the spline through a recording leaves rounding.
    speed, times = slope(command), np.zeros(len(v0))
    speed = np.where(np.abs(speed) > _STILL, speed, 0.0)
    for name, column in columns.items():
        if speed[column] != 0.0:
            times[column] = abs(speed[column]) / _deceleration(brakes, name, category.number)
    longest = float(times.max(initial=0.0))
    if longest == 0.0:
        return replace(plan, reference=Reference(follows, (first, constant(command, 0.0 * v0))))
    if not category.on_path:
        pieces = ramps(command, speed, times)
        return replace(plan, reference=Reference(follows, (first, *pieces)), duration=longest)

    def along(duration: float) -> Plan:
        _check_length(trigger, command + 0.5 * duration)
        pieces = on_path(command, duration, slope, bend, may_reverse)
        reference = Reference(follows, (first, *pieces))
        return replace(plan, reference=reference, duration=duration, slower=along)

    if trigger.motion is not None:
        # Slowing down evenly the robot goes half as far on its path as at its speed.
        known = 2.0 * (trigger.motion.end - trigger.at - command) * _ROUNDING
        plan = replace(plan, longest=known)
    return along(longest)


def _check_length(trigger: Trigger, needed: float) -> None:
    """Check that a recorded motion is known for as long as the robot follows it."""
    motion = trigger.motion
    if motion is not None and trigger.at + needed > motion.end:
        raise BadValue(
            f"the motion ends at {motion.end:.6g} s, but a signal at {trigger.at:.6g} s needs it "
            f"until {trigger.at + needed:.6g} s; let the signal come earlier, or record longer"
        )


def _driven(equations: EquationsOfMotion, brakes: Brakes, q: Array) -> dict[str, int]:
    """Velocity coordinates of the driven joints of the tree, by name.

    As many as move independently: where loops couple drives, those with a brake come first, and
    what is left goes along.
    """
    robot = equations.robot
    names = brakes.motorized(robot)
    columns = {name: robot.coordinates(name).v.start for name in names}
    if len(equations.rows) == 0:
        return columns
    rest = np.zeros(robot.nv)
    M = np.eye(robot.nv)  # ranks do not depend on it
    J = equations.terms(0.0, q, rest)[0]
    rows, rank = J, Saddle(M, J).rank
    chosen: dict[str, int] = {}
    for name in sorted(names, key=lambda name: name not in brakes.joints):
        more = np.vstack([rows, np.eye(robot.nv)[columns[name]]])
        if Saddle(M, more).rank > rank:
            rows, rank = more, rank + 1
            chosen[name] = columns[name]
    return chosen


def _deceleration(brakes: Brakes, joint: str, category: int) -> float:
    brake = brakes.joints.get(joint)
    if brake is None or brake.deceleration is None:
        raise BadValue(
            f"a stop of category {category} needs the deceleration of joint '{joint}'; give it in "
            f"the brakes file: joints: {joint}: deceleration: 5.0"
        )
    return brake.deceleration


def _path(trigger: Trigger, columns: dict[str, int], v0: Array) -> tuple[Signal, Signal]:
    """First and second derivative of the driven joints by the time since the signal."""
    motion = trigger.motion
    if motion is None:
        rest = np.zeros_like(v0)
        return lambda t: v0, lambda t: rest
    driven = [k for k, name in enumerate(motion.joints) if name in columns]
    at = [columns[motion.joints[k]] for k in driven]

    def spread(values: Array) -> Array:
        full = np.zeros_like(v0)
        full[at] = values[driven]
        return full

    return (
        lambda t: spread(motion.rates(trigger.at + t)),
        lambda t: spread(motion.accelerations(trigger.at + t)),
    )


def _reversible(trigger: Trigger, columns: dict[str, int], v0: Array) -> NDArray[np.bool_]:
    """Mask of the driven joints that do not stay where they are from the signal on."""
    mask, motion = np.zeros(len(v0), dtype=bool), trigger.motion
    if motion is not None:
        later = motion.values[max(int(np.searchsorted(motion.t, trigger.at)) - 1, 0) :]
        for name, moves in zip(motion.joints, np.ptp(later, axis=0) > 0.0, strict=True):
            if name in columns:
                mask[columns[name]] = moves
    return mask
