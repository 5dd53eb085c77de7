"""Forces and events of a scenario as values of the package; each is tried on the robot first."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..dynamics.forces import (
    PD,
    Damper,
    Force,
    JointDamping,
    JointFriction,
    JointSpring,
    Place,
    PointForce,
    Spring,
    Torque,
)
from ..errors import BadValue
from ..simulation.events import (
    Event,
    JointLimits,
    Report,
    close_loop,
    lock,
    open_loop,
    stop_when,
    unlock,
    when,
)
from ..simulation.events import Stop as StopAction
from ..simulation.modes import ModalSystem
from ..simulation.watching import bind_events
from .scenario_entries import EventEntry, ForcesEntry, WhenEntry
from .scenario_places import Words

__all__ = ["events_of", "forces_of"]

Array = NDArray[np.float64]
Guard = Callable[[float, Array, Array], float]

_DIRECTIONS = {"rising": 1, "falling": -1, "both": 0}


# -- forces ---------------------------------------------------------------------------------------


def forces_of(entry: ForcesEntry, words: Words) -> list[Force]:
    """The forces that an entry describes.

    Args:
        entry: the entry.
        words: the file and the robot.

    Raises:
        LoadError: the robot has not what they act on.
    """
    found = _at_joints(entry, words)
    between: list[tuple[str, int, Force]] = []
    for k, spring in enumerate(entry.spring):
        ends = _place(spring.a, spring.point_a), _place(spring.b, spring.point_b)
        between.append(("spring", k, Spring(*ends, spring.stiffness, spring.length)))
    for k, damper in enumerate(entry.damper):
        ends = _place(damper.a, damper.point_a), _place(damper.b, damper.point_b)
        between.append(("damper", k, Damper(*ends, damper.damping)))
    for k, push in enumerate(entry.point_force):
        place = _place(push.frame, push.point)
        between.append(("point_force", k, PointForce(place, push.force, push.local)))
    for kind, k, force in between:
        with words.at("forces", kind, k):
            force.bind(words.robot)
    return [*found, *(force for _, _, force in between)]


def _place(name: str, point: tuple[float, float, float]) -> Place:
    """A point of a frame, or the frame where that is its origin."""
    return (name, point) if any(point) else name


def _at_joints(entry: ForcesEntry, words: Words) -> list[Force]:
    """Forces at joints, one by one, so that a mistake is found where it is."""
    found: list[Force] = []
    for joint, drive in entry.pd.items():
        place = ("forces", "pd", joint)
        with words.at(*place):
            target = words.position(joint, drive.target, *place, "target")
            rate = words.rate(joint, drive.rate, *place, "rate")
            found.append(_tried(PD(joint, drive.stiffness, drive.damping, target, rate), words))
    for joint, value in entry.torque.items():
        with words.at("forces", "torque", joint):
            found.append(_tried(Torque(joint, value), words))
    for joint, spring in entry.joint_spring.items():
        place = ("forces", "joint_spring", joint)
        with words.at(*place):
            rest = words.position(joint, spring.rest, *place, "rest")
            found.append(_tried(JointSpring(joint, spring.stiffness, rest), words))
    for joint in entry.joint_damping:
        with words.at("forces", "joint_damping", joint):
            words.robot.coordinates(joint)
    if entry.joint_damping:
        found.append(JointDamping(dict(entry.joint_damping)))
    if entry.joint_friction is not None:
        for joint in entry.joint_friction.coefficients:
            with words.at("forces", "joint_friction", "coefficients", joint):
                words.robot.coordinates(joint)
        friction = entry.joint_friction
        found.append(JointFriction(friction.speed, dict(friction.coefficients)))
    return found


def _tried(force: Force, words: Words) -> Force:
    force.bind(words.robot)
    return force


# -- events ---------------------------------------------------------------------------------------


def events_of(
    entries: tuple[EventEntry, ...], words: Words, until: float
) -> list[Event | JointLimits]:
    """The events that entries describe, in their order.

    Args:
        entries: the entries.
        words: the file and the robot.
        until: end of the run [s].

    Raises:
        LoadError: the robot has not what they name, or they are outside the run.
    """
    system = ModalSystem(words.robot, regularization=False)
    found: list[Event | JointLimits] = []
    for k, entry in enumerate(entries):
        with words.at("events", k):
            event = _event(entry, words, k)
            bind_events(system, [event], 0.0, until)
            found.append(event)
    return found


def _event(entry: EventEntry, words: Words, index: int) -> Event | JointLimits:
    if entry.limits is not None:
        every = entry.limits == ("all",) and "all" not in words.robot.joints
        return JointLimits(None if every else entry.limits)
    if entry.when is None:
        return _action(entry, entry.at)
    guard = _guard(entry.when, words, index)
    direction = _DIRECTIONS[entry.when.direction]
    if entry.stop is not None:
        return stop_when(guard, direction, name=entry.stop)
    return when(guard, _action(entry, None), direction)


def _action(entry: EventEntry, at: float | None) -> Event:
    """What happens, at a time or whenever its guard says."""
    if entry.lock is not None:
        return lock(entry.lock, at, axes=entry.axes)
    if entry.unlock is not None:
        return unlock(entry.unlock, at)
    if entry.open_loop is not None:
        return open_loop(entry.open_loop, at)
    if entry.close_loop is not None:
        return close_loop(entry.close_loop, at, tolerance=entry.tolerance)
    if entry.stop is not None:
        return Event(StopAction(entry.stop), at)
    return Event(Report(str(entry.report)), at)


def _guard(condition: WhenEntry, words: Words, index: int) -> Guard:
    """A function of the state that is zero where the condition holds."""
    joint, place = condition.joint, ("events", index, "when")
    at = words.robot.coordinates(joint)
    if (at.nq, at.nv) != (1, 1):
        raise BadValue(f"an event needs a joint with one coordinate; '{joint}' has {at.nq}")
    i, j = at.q.start, at.v.start
    if condition.q is not None:
        wanted = words.position(joint, condition.q, *place, "q")
        return lambda t, q, v: float(q[i] - wanted)
    rate = words.rate(joint, 0.0 if condition.v is None else condition.v, *place, "v")
    return lambda t, q, v: float(v[j] - rate)
