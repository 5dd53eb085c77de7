"""What came out of a stop: per joint, per point, in energy; and whether the robot holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ..mechanism import Mechanism
from ..modes import ModalSystem
from ..trajectory import Trajectory
from .brakes import Assumption, Brakes, Chain
from .course import Course
from .document import Document
from .export import as_document, write_csv, write_json
from .holding import Holding, holding
from .ledger import Ledger, Peaks, energy_ledger, peaks
from .machine import tool_of
from .remarks import assumptions_of, warnings_of
from .schedule import Category, Category0
from .sheet import Sheet
from .tables import stop_table
from .ways import all_stand_since, slips, stands_since, way_of

__all__ = ["JointStop", "PointStop", "StopResult", "made_result"]

Array = NDArray[np.float64]
Outcome = Literal["stopped", "does not hold", "time-out"]


@dataclass(frozen=True)
class JointStop:
    """The stop of one joint. Sliding joints: m and N for rad and N m.

    Args:
        name: name of the joint.
        reaction_time: from the signal until its brake acts, or until its drive slows it down [s].
        braking_time: from then until it stands for good [s].
        reaction_angle: how far it moves in the reaction time [rad], signed.
        braking_angle: how far it moves from then to the end [rad], signed.
        travel: length of the way, to and fro [rad].
        excursion: largest distance from where it was at the signal [rad].
        peak_speed: [rad/s].
        impulse: sum of the impulses of teeth and stops on it, sizes [N m s].
        peak_torque: largest torque of brake, friction, gear and drive together [N m].
        peak_gear_torque: largest torque in its gear, impulses spread over their time [N m].
        gear_limit: what the gear may carry [N m]; None if not known.
        dissipated: what its brake, friction and gear turned into heat [J].
        slips: how often it came loose again after it had stood.
        load: torque that holding takes at the end [N m].
        hold: torque up to which it is held at the end [N m]; infinite if a tooth holds it.
        state: at the end: "held", "free", "moving".
    """

    name: str
    reaction_time: float
    braking_time: float
    reaction_angle: float
    braking_angle: float
    travel: float
    excursion: float
    peak_speed: float
    impulse: float
    peak_torque: float
    peak_gear_torque: float
    gear_limit: float | None
    dissipated: float
    slips: int
    load: float
    hold: float
    state: Literal["held", "free", "moving"]

    @property
    def time(self) -> float:
        """From the signal until it stands for good [s]."""
        return self.reaction_time + self.braking_time

    @property
    def angle(self) -> float:
        """From the signal to the end [rad], signed."""
        return self.reaction_angle + self.braking_angle

    @property
    def margin(self) -> float:
        """Torque that holds over torque that is needed; infinite without load."""
        # A load as small as rounding is none.
        return self.hold / abs(self.load) if abs(self.load) > 1e-9 * self.hold else np.inf

    @property
    def gear_use(self) -> float | None:
        """Peak torque of the gear over what it may carry; None if that is not known."""
        return None if self.gear_limit is None else self.peak_gear_torque / self.gear_limit


@dataclass(frozen=True, eq=False)
class PointStop:
    """The way of a point of the robot.

    Args:
        frame: the frame whose origin it is.
        t: times [s], shape (k,).
        path: places in the world [m], shape (k, 3).
        speed: [m/s], shape (k,).
        reaction: index of the time at which the reaction ends.
    """

    frame: str
    t: Array
    path: Array
    speed: Array
    reaction: int

    @property
    def displacement(self) -> float:
        """Straight distance from where it was at the signal to where it ends [m]."""
        return float(np.linalg.norm(self.path[-1] - self.path[0]))

    @property
    def length(self) -> float:
        """Length of the way [m]."""
        return _length(self.path)

    @property
    def reaction_length(self) -> float:
        """Length of the way in the reaction time [m]."""
        return _length(self.path[: self.reaction + 1])

    @property
    def braking_length(self) -> float:
        """Length of the way after the reaction time [m]."""
        return _length(self.path[self.reaction :])

    @property
    def peak_speed(self) -> float:
        """Largest speed [m/s]."""
        return float(self.speed.max())


def _length(path: Array) -> float:
    return float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())


@dataclass(frozen=True, eq=False)
class StopResult:
    """The result of a stop.

    Args:
        robot: the robot as it stopped, with payload and rotors.
        brakes: its brakes.
        category: category of the stop.
        chain: from the signal to the command.
        run: the motion from the signal to the end, for `view`, export and analysis.
        outcome: "stopped": all stand and are held; "does not hold": a joint that nothing holds
            against gravity; "time-out": the limit of time came first.
        stopping_time: from the signal until all stand for good [s]; to the end if they do not.
        reaction_time: from the signal until the first brake or controlled deceleration acts [s].
        holding: what holds each joint at the end.
        ledger: where the energy went.
        events: time and name of everything that happened.
        course: phases and states, for whoever needs the details.
    """

    robot: Mechanism
    brakes: Brakes
    category: Category
    chain: Chain
    run: Trajectory = field(repr=False)
    outcome: Outcome
    stopping_time: float
    reaction_time: float
    holding: Holding
    ledger: Ledger
    events: tuple[tuple[float, str], ...] = field(repr=False)
    course: Course = field(repr=False)

    def __repr__(self) -> str:
        return (
            f"<StopResult of '{self.robot.name}', category {self.category.number}: {self.outcome}, "
            f"{self.stopping_time:.4g} s>"
        )

    @property
    def holds(self) -> bool:
        """Whether the robot has stopped and is held."""
        return self.outcome == "stopped"

    @property
    def category_number(self) -> int:
        """Number of the category."""
        return self.category.number

    @cached_property
    def joints(self) -> dict[str, JointStop]:
        """Per joint with a brake entry, by name."""
        extremes = peaks(self.course)
        return {name: _joint(self, name, extremes) for name in self.brakes.joints}

    @cached_property
    def assumptions(self) -> tuple[Assumption, ...]:
        """Every number of chain and brakes that the stop rests on, with its provenance."""
        return assumptions_of(self)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What is odd about the stop or its numbers, one sentence each."""
        return warnings_of(self)

    def table(self) -> Sheet:
        """Everything that counts, for reading: print it, or let rich or a notebook show it."""
        return stop_table(self)

    def as_dict(self) -> Document:
        """Everything that went in and came out, as `save_json` writes it."""
        return as_document(self)

    def save_json(self, path: str | Path, *, stamp: bool = False) -> Path:
        """Write everything that went in and came out, with versions and digests of the files.

        The form is that of docs/schemas/stop.schema.json. The same stop gives the same bytes.

        Args:
            path: file to write.
            stamp: say when it was written.
        """
        return write_json(self, path, stamp=stamp)

    def to_csv(self, path: str | Path, *, every: float | None = 1e-3) -> Path:
        """Write states, torques, way of the tool and energies over time, units in the names.

        Torques are those at the joints, see `stopping.series.Series`.

        Args:
            path: file to write.
            every: interval of the rows [s]; None: the states that were computed, two where
                something changes at once.
        """
        return write_csv(self, path, every)

    def save_html(self, path: str | Path, *, swept: bool = False) -> Path:
        """Write a report as one HTML file: numbers, plots, assumptions, and a replay.

        Args:
            path: file to write.
            swept: whether the replay shows the volume that the robot sweeps.
        """
        from .report import write_report

        return write_report(self, path, swept=swept)

    @property
    def tool(self) -> str:
        """Frame that is taken for the tool."""
        return tool_of(self.robot)

    def point(self, frame: str | None = None, *, every: float = 1e-3) -> PointStop:
        """The way of the origin of a frame or body.

        Args:
            frame: body or frame; the tool by default.
            every: interval between its places [s].
        """
        name = self.tool if frame is None else frame
        index, model = self.robot.frame_id(name), self.robot.model
        data = model.createData()
        count = max(2, int(np.ceil(self.run.t[-1] / every)) + 1)
        times = np.union1d(np.linspace(0.0, self.run.t[-1], count), self.run.t)
        reaction = min(self.reaction_time, float(self.run.t[-1]))
        times = np.union1d(times, [reaction])
        path, speed = np.zeros((len(times), 3)), np.zeros(len(times))
        for k, state in enumerate(zip(*self.run(times)[1:], strict=True)):
            pin.forwardKinematics(model, data, *state)
            path[k] = pin.updateFramePlacement(model, data, index).translation
            motion = pin.getFrameVelocity(model, data, index, pin.LOCAL)
            speed[k] = np.linalg.norm(motion.linear)
        return PointStop(name, times, path, speed, int(np.searchsorted(times, reaction)))


def made_result(
    course: Course,
    system: ModalSystem,
    brakes: Brakes,
    stands: bool,
) -> StopResult:
    """The result of a course that has ended."""
    last = course.kept[-1]
    held = holding(course.equations, course.phases[-1], last.t, last.q, course.phases[-1].blocked)
    outcome: Outcome = "stopped" if stands and held.all_held else "time-out"
    if not held.all_held:
        outcome = "does not hold"
    since = all_stand_since(course) if stands else None
    return StopResult(
        robot=course.robot,
        brakes=brakes,
        category=course.plan.category,
        chain=course.plan.chain,
        run=_trajectory(course, system, outcome),
        outcome=outcome,
        stopping_time=last.t if since is None else since,
        reaction_time=_reaction_time(course),
        holding=held,
        ledger=energy_ledger(course),
        events=tuple(sorted(course.log, key=lambda event: event[0])),
        course=course,
    )


def _reaction_time(course: Course) -> float:
    """From the signal until the first brake or controlled deceleration acts [s]."""
    acting = course.train.has_brake
    if not isinstance(course.plan.category, Category0) or not acting.any():
        return course.plan.chain.command
    begin, _ = course.clock.schedule.engagement(course.train)
    return float(begin[acting].min())


def _trajectory(course: Course, system: ModalSystem, outcome: str) -> Trajectory:
    kept = course.kept
    # Every phase is a mode of its own, so that both states of each change are kept apart.
    return Trajectory(
        robot=system.robot,
        t=np.array([state.t for state in kept]),
        q=np.array([state.q for state in kept]),
        v=np.array([state.v for state in kept]),
        a=np.array([state.a for state in kept]),
        psi=np.array(course.psi).reshape(-1, system.robot.nv),
        mode=np.array([state.phase for state in kept], dtype=np.int64),
        modes=tuple(phase.mode for phase in course.phases),
        message=outcome,
        system=system,
        transitions=tuple(course.transitions),
        events=tuple(course.log),
        evaluations=course.equations.evaluations,
        rejected=course.stepper.rejected,
    )


def _joint(result: StopResult, name: str, extremes: Peaks) -> JointStop:
    """The numbers of one joint."""
    course, brake = result.course, result.brakes.joints[name]
    column, held = course.train.columns[name], result.holding
    since = stands_since(course, column)
    end = float(result.run.t[-1]) if since is None else since
    begin, _ = course.clock.schedule.engagement(course.train)
    acts = result.chain.command
    if isinstance(result.category, Category0) and course.train.has_brake[column]:
        acts = float(begin[column])
    reaction = min(acts, end)
    way = way_of(course, column, reaction)
    lock = f"lock:{name}"
    impulses = [
        abs(float(change.impulse_of(lock).sum()))
        for change in course.transitions
        if lock in change.labels
    ]
    shock = max(impulses, default=0.0) / brake.impact_time
    return JointStop(
        name=name,
        reaction_time=reaction,
        braking_time=end - reaction,
        reaction_angle=way.reaction,
        braking_angle=way.total - way.reaction,
        travel=way.length,
        excursion=way.largest,
        peak_speed=float(extremes.speed[column]),
        impulse=sum(impulses),
        peak_torque=float(extremes.torque[column]),
        peak_gear_torque=max(float(extremes.gear[column]), shock),
        gear_limit=brake.peak_gear_torque,
        dissipated=float(sum(heat[column] for heat in result.ledger.dissipated.values())),
        slips=slips(course, column),
        load=float(held.load[column]),
        hold=float(held.hold[column]),
        state="moving" if since is None else "held" if held.held[column] else "free",
    )
