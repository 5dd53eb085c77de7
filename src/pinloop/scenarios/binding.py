"""Entries of a scenario on its robot: coordinates with units, forces, events.

Each is tried on the robot, so that a mistake is found before anything is computed, with its line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..boundary.schema import Document, label_of
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
from ..model.mechanism import Mechanism
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
from ..tables.number_format import accepted_units
from ..units import in_units, listed
from .scenario_entries import (
    DamperEntry,
    DriveEntry,
    EventEntry,
    ForcesEntry,
    JointSpringEntry,
    PointForceEntry,
    Quantity,
    SpringEntry,
    WhenEntry,
)

Array = NDArray[np.float64]
Guard = Callable[[float, Array, Array], float]
Key = str | int

_DIRECTIONS = {"rising": 1, "falling": -1, "both": 0}


@dataclass(frozen=True, eq=False)
class BoundScenario:
    """A scenario file beside the robot that it is about.

    Args:
        document: the file.
        robot: the robot.
    """

    document: Document
    robot: Mechanism

    def at(self, *place: Key) -> AbstractContextManager[None]:
        """Say of what the robot refuses which place of the file it comes from."""
        return self.document.at(*place)

    def value(self, joint: str, quantity: Quantity, *place: Key, rate: bool = False) -> float:
        """A coordinate or rate of a joint [rad, m; per s].

        Args:
            joint: name of the joint.
            quantity: a number, or a text with a unit that the joint has to fit.
            place: where it is in the file.
            rate: whether it is a rate.
        """
        with self.at(*place):
            units = accepted_units(self.robot, joint, rate=rate)
            value = in_units(quantity, units) if isinstance(quantity, str) else quantity
            if value is not None:
                return value
            known = listed(units)
            if not known:
                raise BadValue(
                    f"{label_of(place)} is '{quantity}': a joint with several axes takes plain "
                    "numbers"
                )
            raise BadValue(
                f"{label_of(place)} is '{quantity}': no number, with or without a unit ({known}); "
                f"write for example 30{known.split(', ')[-1]}"
            )

    def values(
        self, table: Mapping[str, Sequence[Quantity]], *place: Key, rates: bool = False
    ) -> dict[str, list[float]]:
        """Coordinates or rates by joint [rad, m; per s]."""
        table_of_values = {}
        for joint, quantities in table.items():
            here = (*place, joint)
            with self.at(*here):
                at = self.robot.coordinates(joint)
                values = [self.value(joint, quantity, *here, rate=rates) for quantity in quantities]
                if rates and len(values) != at.nv:
                    raise BadValue(f"joint '{joint}' has {at.nv} rates, not {len(values)}")
                if not rates:
                    at.part(values)  # says so if there are too many or too few
                table_of_values[joint] = values
        return table_of_values


# -- forces ---------------------------------------------------------------------------------------


def forces_of(entry: ForcesEntry, scenario: BoundScenario) -> list[Force]:
    """The forces that an entry describes.

    Raises:
        LoadError: the robot does not have what they act on.
    """
    forces: list[Force] = []
    for kind in ("pd", "torque", "joint_spring"):
        for joint, item in getattr(entry, kind).items():
            place = ("forces", kind, joint)
            with scenario.at(*place):
                forces.append(_at_joint(joint, item, scenario, *place))
                forces[-1].bind(scenario.robot)
    if entry.joint_damping:
        _check_joints(entry.joint_damping, scenario, "forces", "joint_damping")
        forces.append(JointDamping(entry.joint_damping))
    if friction := entry.joint_friction:
        place = ("forces", "joint_friction", "coefficients")
        _check_joints(friction.coefficients, scenario, *place)
        forces.append(JointFriction(friction.speed, friction.coefficients))
    for kind in ("spring", "damper", "point_force"):
        for k, item in enumerate(getattr(entry, kind)):
            with scenario.at("forces", kind, k):
                forces.append(_between(item))
                forces[-1].bind(scenario.robot)
    return forces


def _at_joint(
    joint: str, entry: DriveEntry | JointSpringEntry | float, scenario: BoundScenario, *place: Key
) -> Force:
    scenario.robot.coordinates(joint)  # says so if there is no such joint
    if isinstance(entry, DriveEntry):
        target = scenario.value(joint, entry.target, *place, "target")
        rate = scenario.value(joint, entry.rate, *place, "rate", rate=True)
        return PD(joint, entry.stiffness, entry.damping, target, rate)
    if isinstance(entry, JointSpringEntry):
        rest = scenario.value(joint, entry.rest, *place, "rest")
        return JointSpring(joint, entry.stiffness, rest)
    return Torque(joint, entry)


def _check_joints(joints: Iterable[str], scenario: BoundScenario, *place: Key) -> None:
    for joint in joints:
        with scenario.at(*place, joint):
            scenario.robot.coordinates(joint)


def _between(entry: SpringEntry | DamperEntry | PointForceEntry) -> Force:
    if isinstance(entry, PointForceEntry):
        return PointForce(_place(entry.frame, entry.point), entry.force, entry.local)
    ends = _place(entry.a, entry.point_a), _place(entry.b, entry.point_b)
    if isinstance(entry, SpringEntry):
        return Spring(*ends, entry.stiffness, entry.length)
    return Damper(*ends, entry.damping)


def _place(name: str, point: tuple[float, float, float]) -> Place:
    """A point of a frame, or the frame where that is its origin."""
    return (name, point) if any(point) else name


# -- events ---------------------------------------------------------------------------------------


def events_of(
    entries: tuple[EventEntry, ...], scenario: BoundScenario, until: float
) -> list[Event | JointLimits]:
    """The events that entries describe, in their order.

    Args:
        entries: the entries.
        scenario: the file and the robot.
        until: end of the run [s].

    Raises:
        LoadError: the robot does not have what they name, or they are outside the run.
    """
    system = ModalSystem(scenario.robot, regularization=False)
    events: list[Event | JointLimits] = []
    for k, entry in enumerate(entries):
        with scenario.at("events", k):
            event = _event(entry, scenario, k)
            bind_events(system, [event], 0.0, until)
            events.append(event)
    return events


def _event(entry: EventEntry, scenario: BoundScenario, index: int) -> Event | JointLimits:
    if entry.limits is not None:
        every = entry.limits == ("all",) and "all" not in scenario.robot.joints
        return JointLimits(None if every else entry.limits)
    if entry.when is None:
        return _action(entry, entry.at)
    guard = _guard(entry.when, scenario, index)
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
        return close_loop(entry.close_loop, at, tolerance=entry.tolerance or 1e-4)
    if entry.stop is not None:
        return Event(StopAction(entry.stop), at)
    return Event(Report(str(entry.report)), at)


def _guard(condition: WhenEntry, scenario: BoundScenario, index: int) -> Guard:
    """A function of the state that is zero where the condition holds."""
    joint, place = condition.joint, ("events", index, "when")
    at = scenario.robot.coordinates(joint)
    if (at.nq, at.nv) != (1, 1):
        raise BadValue(f"an event needs a joint with one coordinate; '{joint}' has {at.nq}")
    i, j = at.q.start, at.v.start
    if condition.q is not None:
        wanted = scenario.value(joint, condition.q, *place, "q")
        return lambda t, q, v: float(q[i] - wanted)
    rate = scenario.value(joint, condition.v or 0.0, *place, "v", rate=True)
    return lambda t, q, v: float(v[j] - rate)
