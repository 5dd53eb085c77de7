"""`load_scenario`: from a YAML file to a run that is ready to start.

Paths in the file are relative to it. Every entry is tried on the robot: what is wrong is said in
one sentence with file, line and key, before anything is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..assembly.assemble import assemble, consistent_velocity
from ..assembly.search import outside_limits
from ..boundary.arguments import in_si, public
from ..boundary.marks import Array
from ..boundary.schema import Document, label_of
from ..constraints.relative_motion import Place
from ..dynamics import ODCA, Augmented, Projected, Voronets
from ..dynamics.forces import (
    PD,
    Damper,
    Force,
    JointDamping,
    JointFriction,
    JointSpring,
    PointForce,
    Spring,
    Torque,
)
from ..errors import BadValue
from ..model.mechanism import Mechanism
from ..simulation import events as actions
from ..simulation.events import Event, JointLimits, Report
from ..simulation.limits import joint_ends, limited_ends
from ..simulation.modes import ModalSystem, Mode
from ..simulation.simulate import Limits, bind_events, simulate
from ..simulation.trajectory import Trajectory
from .results import Output, check_named, check_output, tried_outputs
from .scenario_entries import (
    DamperEntry,
    DriveEntry,
    EventEntry,
    ForcesEntry,
    JointSpringEntry,
    PointForceEntry,
    Quantity,
    Scenario,
    SpringEntry,
    StartEntry,
    WhenEntry,
)

Guard = Callable[[float, Array, Array], float]
Key = str | int

_DIRECTIONS = {"rising": 1, "falling": -1, "both": 0}
_FORMULATIONS = {"augmented": Augmented, "projected": Projected, "voronets": Voronets, "odca": ODCA}


@dataclass(frozen=True, eq=False)
class PlannedRun:
    """A run that a scenario file describes.

    Args:
        q: assembled configuration at the start, shape (nq,).
        v: velocity at the start that all loops allow, shape (nv,).
        arguments: all else that `simulate` takes.
        every: interval of the states in files of states [s]; every step if None.
    """

    scenario: Scenario
    source: Path
    robot: Mechanism
    q: Array
    v: Array
    arguments: Mapping[str, Any]
    outputs: tuple[Output, ...]
    every: float | None

    @property
    def inputs(self) -> tuple[Path, ...]:
        """All files that are read: the scenario, the robot's, those of its loops."""
        return (self.source, *self.scenario.robot.inputs)

    def simulate(self, *, progress: bool = False) -> Trajectory:
        """Compute the run, with every step of it.

        Args:
            progress: show a progress bar on standard error.

        Raises:
            SimulationFailed: the run could not go on; carries the trajectory so far.
        """
        return simulate(self.robot, self.q, self.v, **self.arguments, progress=progress)

    def write(self, run: Trajectory) -> tuple[Path, ...]:
        """Write the files that the scenario asks for, of a run or a part of it.

        If some cannot be written, which is a `BadValue`, the others are.
        """
        written, problems = tried_outputs(run, self.outputs, self.every)
        if problems:
            raise BadValue("; ".join(problems))
        return tuple(written)


@public
def load_scenario(
    path: str | Path,
    *,
    until: float | None = None,
    limits: Limits | None = None,
    force: bool = False,
) -> PlannedRun:
    """Read a scenario file, the robot in it, and find its state at the start.

    Args:
        path: the YAML file.
        until: end of the run instead of that in the file [s].
        limits: what happens at position limits instead of what the file says; see `simulate`.
        force: let the scenario name files outside its folder, and files that are there and that
            pinloop did not write.

    Raises:
        LoadError: names file, line and key.
    """
    document = Document.open(path, "scenario file")
    file = document.read(Scenario)
    end = file.until if until is None else until
    robot = file.robot.load(gravity=file.gravity)
    scenario = BoundScenario(document, robot)
    mode = _mode(file.start, scenario)
    q, v = _state(file.start, scenario, mode)
    arguments = {
        "until": end,
        "forces": tuple(forces_of(file.forces, scenario)),
        "events": tuple(events_of(file.events, scenario, end)),
        "limits": _limits(file, scenario) if limits is None else limits,
        "mode": mode,
        "losses": file.robot.losses,
        "formulation": _FORMULATIONS[file.formulation]() if file.formulation else None,
        "method": file.method,
        "stabilization": _stabilization(file, scenario),
        "regularization": file.robot.regularize,
    }
    outputs = _outputs(file, scenario, force)
    return PlannedRun(file, Path(path), robot, q, v, arguments, outputs, file.outputs.every)


@dataclass(frozen=True, eq=False)
class BoundScenario:
    """A scenario file beside the robot that it is about."""

    document: Document
    robot: Mechanism

    def at(self, *place: Key) -> AbstractContextManager[None]:
        """Say of what the robot refuses which place of the file it comes from."""
        return self.document.at(*place)

    def value(self, joint: str, quantity: Quantity, *place: Key, rate: bool = False) -> float:
        """A coordinate or rate of a joint [rad, m; per s], from a number or a text with a unit."""
        with self.at(*place):
            if not isinstance(quantity, str):
                return quantity
            units = self.robot.coordinates(joint).units(rate=rate)
            return in_si(quantity, label_of(place), units)

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


# -- start and limits -----------------------------------------------------------------------------


def _mode(start: StartEntry, scenario: BoundScenario) -> Mode:
    """What is locked and open at the start."""
    system = ModalSystem(scenario.robot, regularization=False)
    for key, names in (("locked", start.locked), ("opened", start.opened)):
        for k, name in enumerate(names):
            with scenario.at("start", key, k):
                system.check(Mode(name) if key == "locked" else Mode((), name))
    with scenario.at("start", "locked"):
        return Mode(start.locked, start.opened)


def _state(start: StartEntry, scenario: BoundScenario, mode: Mode) -> tuple[Array, Array]:
    """The assembled configuration and the velocity that the loops allow."""
    robot = scenario.robot
    closed = robot.without_loops(mode.opened) if mode.opened else robot
    held = scenario.values(start.q, "start", "q")
    near = scenario.values(start.near, "start", "near")
    if start.limits:
        for joint, values in held.items():
            with scenario.at("start", "q", joint):
                _check_limits(robot, joint, values)
    with scenario.at("start", *(("q",) if held else ())):
        guess = robot.configuration({**near, **held})
        q = assemble(closed, guess, held, limits=start.limits)
    asked = scenario.values(start.v, "start", "v", rates=True)
    still = {lock.joint: np.zeros(robot.coordinates(lock.joint).nv) for lock in mode.locks}
    for joint in (joint for joint in asked if joint in still):
        with scenario.at("start", "v", joint):
            raise BadValue(f"joint '{joint}' is locked at the start; give it no rate, or unlock it")
    with scenario.at("start", *(("v",) if asked else ())):
        return q, consistent_velocity(closed, q, {**asked, **still})


def _check_limits(robot: Mechanism, joint: str, values: list[float]) -> None:
    q = robot.configuration({joint: values})
    for _, value, low, high, hint in outside_limits(robot, q, (joint,)):
        raise BadValue(
            f"joint '{joint}' is set to {value:.9g}, outside its limits, {low:.9g} to {high:.9g}"
            f"{hint}; write 'limits: false' under start to ignore them"
        )


def _limits(file: Scenario, scenario: BoundScenario) -> Limits:
    """What happens at position limits; checks the joints that are named."""
    for k, joint in enumerate(file.limits.joints or ()):
        with scenario.at("limits", "joints", k):
            limited_ends(joint_ends(scenario.robot), scenario.robot, (joint,))
    return file.limits.make()


def _stabilization(file: Scenario, scenario: BoundScenario) -> Any:
    """The projection, if there is one; checks the joints that it names."""
    if file.stabilization is None:
        return None
    projection = file.stabilization.make()
    if not isinstance(projection.coordinates, str):
        for k, joint in enumerate(projection.coordinates):
            with scenario.at("stabilization", "coordinates", k):
                scenario.robot.coordinates(joint)
    return projection


def _outputs(file: Scenario, scenario: BoundScenario, force: bool) -> tuple[Output, ...]:
    """The files to write; refuses before the run what would fail after it."""
    path = scenario.document.path
    taken = [path, *file.robot.inputs]
    outputs: list[Output] = []
    for kind in ("npz", "csv", "parquet", "html", "plot", "summary"):
        given = getattr(file.outputs, kind)
        for target in given if isinstance(given, tuple) else (given,):
            if target is None:
                continue
            output = Output(kind, target)
            with scenario.at("outputs", kind):
                check_output(output, [*taken, *(other.path for other in outputs)])
                if not force:
                    check_named(output, path.parent)
            outputs.append(output)
    return tuple(outputs)


# -- forces ---------------------------------------------------------------------------------------


def forces_of(entry: ForcesEntry, scenario: BoundScenario) -> list[Force]:
    """The forces that an entry describes."""
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
    """The events that entries describe, in their order."""
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
        return actions.stop_when(guard, direction, name=entry.stop)
    return actions.when(guard, _action(entry, None), direction)


def _action(entry: EventEntry, at: float | None) -> Event:
    """What happens, at a time or whenever its guard says."""
    if entry.lock is not None:
        return actions.lock(entry.lock, at, axes=entry.axes)
    if entry.unlock is not None:
        return actions.unlock(entry.unlock, at)
    if entry.open_loop is not None:
        return actions.open_loop(entry.open_loop, at)
    if entry.close_loop is not None:
        return actions.close_loop(entry.close_loop, at, tolerance=entry.tolerance or 1e-4)
    if entry.stop is not None:
        return Event(actions.Stop(entry.stop), at)
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
