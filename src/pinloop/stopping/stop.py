"""`stop`: a robot, a state, brakes, a category; the course of the stop is in `course`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..dynamics import EquationsOfMotion
from ..errors import BadValue, PinloopError, StopFailed
from ..integrate import MuntheKaas
from ..mechanism import Mechanism
from ..modes import ModalSystem
from ..start import consistent_start
from ..stepping import StepFailed
from .brakes import Brakes, Chain
from .course import Course, Standstill
from .drivetrain import Drivetrain
from .machine import Payload, loaded
from .recorded import JointTrajectory
from .reference import Reference, constant, on_path, ramps
from .result import StopResult, made_result
from .schedule import Category, Category0, Schedule, as_category

__all__ = ["Trigger", "stop"]

Array = NDArray[np.float64]

_METHOD = MuntheKaas("dopri5", rtol=1e-8, atol=1e-8)


@dataclass(frozen=True, eq=False)
class Trigger:
    """What the robot does when the signal comes, and how long it takes until brakes are commanded.

    Args:
        motion: what the robot is doing; going on at constant joint speeds by default.
        at: when the signal comes, in the time of ``motion`` [s].
        sensor: see `Chain`; that of the brakes by default.
        controller: see `Chain`.
        drive_off: see `Chain`.
    """

    motion: JointTrajectory | None = None
    at: float = 0.0
    sensor: float | None = None
    controller: float | None = None
    drive_off: float | None = None

    def chain(self, usual: Chain) -> Chain:
        """The chain with what is given here."""
        given = {
            name: getattr(self, name)
            for name in ("sensor", "controller", "drive_off")
            if getattr(self, name) is not None
        }
        return replace(usual, **given)


def stop(
    robot: Mechanism,
    q: ArrayLike | None = None,
    v: ArrayLike | None = None,
    *,
    brakes: Brakes | str | Path,
    category: int | Category = 0,
    payload: Payload | float | None = None,
    trigger: Trigger | None = None,
    gravity: ArrayLike | None = None,
    until: float = 10.0,
    method: MuntheKaas | None = None,
    standstill: Standstill = Standstill(),  # noqa: B008 (frozen)
) -> StopResult:
    """Stop a moving robot: how far, how long, what its brakes and gears feel, whether it holds.

    The signal comes at t = 0. Until the command (sensor and controller) and until the torque of
    the motors is gone the robot goes on as it was. A planning aid, not a safety certificate.

    Args:
        robot: the mechanism.
        q: configuration at the signal, shape (nq,); from the trigger's motion by default.
        v: velocity at the signal, shape (nv,); from the trigger's motion by default.
        brakes: brakes, gears, friction and drives, or the file that describes them.
        category: 0, 1 or 2, or with details e.g. `Category1(on_path=True)`.
        payload: what the robot carries; a number is a point mass at its tool [kg].
        trigger: what the robot does when the signal comes, and the chain of signals.
        gravity: gravity in the robot's base [m/s^2], shape (3,); that of its file by default.
        until: limit of the time from the signal on [s]; reaching it is a failure.
        method: integrator; Dormand-Prince 5(4) with tolerance 1e-8 by default.
        standstill: what counts as standing still.

    Returns:
        The result; its ``outcome`` says whether the robot stopped and holds.

    Raises:
        LoopNotClosed: ``q`` is not assembled.
        InconsistentVelocity: the loops do not allow ``v``.
        StopFailed: the stop could not be computed to its end; carries what there is.
    """
    brakes = brakes if isinstance(brakes, Brakes) else Brakes.from_yaml(brakes)
    brakes = brakes.for_robot(robot)
    trigger = Trigger() if trigger is None else trigger
    category = as_category(category)
    if not 0 < until < np.inf:
        raise BadValue(f"until is {until} s; it must be positive")
    train = Drivetrain(robot, brakes)
    machine = loaded(robot, train, payload, gravity)
    system = ModalSystem(machine)
    equations = EquationsOfMotion(system.mechanism(frozenset()))
    q0, v0 = _start(machine, equations, trigger, q, v)
    chain = trigger.chain(brakes.chain)
    power = category.number > 0
    schedule = Schedule(
        chain.command,
        np.inf if power else chain.command,
        np.inf if power else chain.command + chain.drive_off,
    )
    reference = _reference(robot, brakes, trigger, category, chain.command, v0)
    tiny = 1e-9 * max(1.0, float(np.abs(v0).max(initial=0.0)))
    course = Course(
        equations, train, reference, schedule, category, method or _METHOD, standstill,
        chain.drive_off, tiny,
    )  # fmt: skip
    reason = ""
    try:
        stands = course.go(q0, v0, until, lambda t: None)
    except (StepFailed, PinloopError) as error:
        reason, stands = str(error), False
    result = made_result(course, system, brakes, category, chain, stands)
    if reason:
        raise StopFailed(
            f"the stop of robot '{robot.name}' could not be computed beyond "
            f"t = {course.kept[-1].t if course.kept else 0.0:.6g} s: {reason}",
            result,
        )
    return result


def _start(
    robot: Mechanism,
    equations: EquationsOfMotion,
    trigger: Trigger,
    q: ArrayLike | None,
    v: ArrayLike | None,
) -> tuple[Array, Array]:
    """State at the signal, assembled."""
    if trigger.motion is not None:
        if q is not None or v is not None:
            raise BadValue("give either q and v or a trigger with a motion, not both")
        q0, v0 = trigger.motion.state(robot, trigger.at)
    else:
        if q is None or v is None:
            raise BadValue("give q and v, or a trigger with a motion, e.g. pl.Trigger(motion, 0.8)")
        q0, v0 = robot.checked_configuration(q).copy(), robot.checked_velocity(v).copy()
    return consistent_start(equations, np.zeros(robot.nv, dtype=bool), 0.0, q0, v0)


def _reference(
    robot: Mechanism,
    brakes: Brakes,
    trigger: Trigger,
    category: Category,
    command: float,
    v0: Array,
) -> Reference:
    """What the drives follow, before the command and after it."""
    tree = set(robot.joints)
    driven = [name for name in robot.actuated if name in tree and robot.coordinates(name).nv == 1]
    columns = {name: robot.coordinates(name).v.start for name in driven}
    follows = np.zeros(robot.nv, dtype=bool)
    follows[list(columns.values())] = True
    slope, bend = _path(trigger, columns, np.where(follows, v0, 0.0))
    first = (
        constant(np.where(follows, v0, 0.0))
        if trigger.motion is None
        else replace(constant(v0), v=slope, a=bend)
    )
    if isinstance(category, Category0):
        return Reference(follows, (first,))
    speed = slope(command)
    times = np.zeros(robot.nv)
    for name, column in columns.items():
        if speed[column] != 0.0:
            times[column] = abs(speed[column]) / _deceleration(brakes, name, category.number)
    if not times.any():
        return Reference(follows, (first, constant(np.zeros(robot.nv))))
    if category.on_path:
        pieces = on_path(command, float(times.max()), slope, bend)
    else:
        pieces = ramps(command, speed, times)
    return Reference(follows, (first, *pieces))


def _deceleration(brakes: Brakes, joint: str, category: int) -> float:
    brake = brakes.joints.get(joint)
    if brake is None or brake.deceleration is None:
        raise BadValue(
            f"a stop of category {category} needs the deceleration of joint '{joint}'; give it in "
            f"the brakes file: joints: {joint}: deceleration: 5.0"
        )
    return brake.deceleration


def _path(
    trigger: Trigger, columns: dict[str, int], v0: Array
) -> tuple[Callable[[float], Array], Callable[[float], Array]]:
    """First and second derivative of the driven joints by the time since the signal."""
    motion = trigger.motion
    if motion is None:
        rest = np.zeros_like(v0)
        return lambda t: v0, lambda t: rest
    at = [columns[name] for name in motion.joints]

    def spread(values: Array) -> Array:
        full = np.zeros_like(v0)
        full[at] = values
        return full

    return (
        lambda t: spread(motion.rates(trigger.at + t)),
        lambda t: spread(motion.accelerations(trigger.at + t)),
    )
