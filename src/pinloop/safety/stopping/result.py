"""What came out of a stop: per joint, per point, in energy; and whether the robot holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ...boundary.arguments import public
from ...boundary.forwards import forward
from ...model.mechanism import Mechanism
from ...simulation.modes import ModalSystem
from ...simulation.trajectory import Trajectory
from ...tables.sheet import Sheet
from ..brakes.brakes import Assumption, Brakes, Chain
from ..space.clearance import Approach, SelfCollisions, clearance, self_collisions
from ..space.obstacles import Obstacle
from ..space.passed_limits import LimitPassed, joint_limits
from ..space.swept import swept_volume
from ..space.volume import SweptVolume
from .brake_times import Category, Category0
from .holding import Holding, holding
from .joint_stop import JointStop, joint_stop
from .joint_travel import all_stand_since, measure_joint_travel
from .ledger import Ledger, energy_ledger
from .loads import Loads, loads_of
from .point_stop import PointStop, point_stop
from .prepared_robot import tool_of
from .result_document import Document
from .simulation import StopSimulation
from .stop_equations import StopTorque

__all__ = ["StopResult", "make_result"]

Outcome = Literal["stopped", "does not hold", "time-out"]

_REMARKS, _EXPORT = "safety.stopping.assumptions", "safety.stopping.export"


@public
@dataclass(frozen=True, eq=False)
class StopResult:
    """The result of a stop.

    Args:
        robot: the robot as it stopped, with payload and rotors.
        brakes: its brakes.
        category: category of the stop.
        chain: from the signal to the command.
        run: the motion from the signal to the end, for `view`, export and analysis.
        outcome: "stopped": all are at rest and held; "does not hold": a joint that nothing holds
            against gravity; "time-out": the limit of time came first.
        stopping_time: from the signal until all are at rest for good [s]; otherwise to the end.
        reaction_time: from the signal until the first brake or controlled deceleration acts [s].
        holding: what holds each joint at the end.
        loads: the largest speeds, torques and energies, joint by joint.
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
    loads: Loads = field(repr=False)
    ledger: Ledger
    events: tuple[tuple[float, str], ...] = field(repr=False)
    course: StopSimulation = field(repr=False)

    def __repr__(self) -> str:
        return (
            f"<StopResult of '{self.robot.name}', category {self.category.number}: {self.outcome}, "
            f"{self.stopping_time:.4g} s>"
        )

    @property
    def holds(self) -> bool:
        """Whether the robot has stopped and is held."""
        return self.outcome == "stopped"

    @cached_property
    def joints(self) -> dict[str, JointStop]:
        """Per joint with a brake entry, by name."""
        ways = measure_joint_travel(self.course)
        return {
            name: joint_stop(self.course, name, ways, self.loads, self.holding)
            for name in self.brakes.joints
        }

    @cached_property
    def assumptions(self) -> tuple[Assumption, ...]:
        """Every number of chain and brakes that the stop rests on, with its provenance."""
        rows: tuple[Assumption, ...] = forward(_REMARKS, "assumptions_of", self)
        return rows

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What is odd about the stop or its numbers, one sentence each."""
        sentences: tuple[str, ...] = forward(_REMARKS, "warnings_of", self)
        return sentences

    def table(self) -> Sheet:
        """Everything that counts, for reading: print it, or let rich or a notebook show it."""
        sheet: Sheet = forward("safety.stopping.stop_table", "stop_table", self)
        return sheet

    def as_dict(self) -> Document:
        """Everything that went in and came out, as `save_json` writes it."""
        document: Document = forward(_EXPORT, "as_document", self)
        return document

    def save_json(self, path: str | Path, *, stamp: bool = False) -> Path:
        """Write everything that went in and came out, with versions and digests of the files.

        The form is that of docs/schemas/stop.schema.json. The same stop gives the same bytes.

        Args:
            path: file to write.
            stamp: say when it was written.
        """
        file: Path = forward(_EXPORT, "write_json", self, path, stamp=stamp)
        return file

    def to_csv(self, path: str | Path, *, every: float | None = 1e-3) -> Path:
        """Write states, torques, tool path and energies over time, units in the names.

        Torques are those at the joints, see `stopping.series.Series`.

        Args:
            path: file to write.
            every: interval of the rows [s]; None: the states that were computed, two where
                something changes at once.
        """
        file: Path = forward(_EXPORT, "write_csv", self, path, every)
        return file

    def plot(self, joints: str | Iterable[str] | None = None) -> Any:
        """Draw ways, velocities, torques and energy of all joints or of those named."""
        return forward("show.plots.stops", "plot_stop", self, joints)

    def save_html(self, path: str | Path, *, swept: bool = False) -> Path:
        """Write a report as one HTML file: numbers, plots, assumptions, and a replay.

        Args:
            path: file to write.
            swept: whether the replay shows the volume that the robot sweeps.
        """
        page: Path = forward("show.stop_report", "write_report", self, path, swept=swept)
        return page

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
        return point_stop(self.run, name, self.reaction_time, every)

    def swept_volume(
        self,
        *,
        tolerance: float = 0.005,
        frames: Mapping[str, float] | None = None,
        max_triangles: int = 1_000_000,
        thickness: float | None = None,
    ) -> SweptVolume:
        """A volume that holds the whole robot at every instant: `pinloop.safety.swept_volume`."""
        return swept_volume(
            self.run,
            tolerance=tolerance,
            frames=frames,
            max_triangles=max_triangles,
            thickness=thickness,
        )

    def clearance(
        self,
        obstacles: Obstacle | Iterable[Obstacle],
        *,
        tolerance: float = 0.001,
        ignore: Iterable[str] = (),
        frames: Mapping[str, float] | None = None,
        thickness: float | None = None,
    ) -> dict[str, Approach]:
        """How near the robot comes to each obstacle, by its name; see `pinloop.clearance`."""
        return clearance(
            self.run,
            obstacles,
            tolerance=tolerance,
            ignore=ignore,
            frames=frames,
            thickness=thickness,
        )

    def self_collisions(
        self, *, tolerance: float = 0.001, thickness: float | None = None
    ) -> SelfCollisions:
        """How near the bodies come to each other: `pinloop.safety.self_collisions`."""
        return self_collisions(self.run, tolerance=tolerance, thickness=thickness)

    def joint_limits(self, *, tolerance: float = 1e-6) -> tuple[LimitPassed, ...]:
        """The limits of position and speed that are passed; see `pinloop.safety.joint_limits`."""
        return joint_limits(self.run, tolerance=tolerance)


def make_result(course: StopSimulation, system: ModalSystem, stands: bool) -> StopResult:
    """The result of a course that has ended.

    Args:
        course: the course.
        system: equations by mode of the robot with all its rotors.
        stands: whether all stand.
    """
    last = course.kept[-1]
    held = holding(course.equations, course.phases[-1], last.t, last.q, stands=stands)
    outcome: Outcome = "stopped" if stands and held.all_held else "time-out"
    if not held.all_held:
        outcome = "does not hold"
    run = _trajectory(course, system, outcome)  # first: it tells what the motion alone took
    since, loads = all_stand_since(course) if stands else None, loads_of(course)
    return StopResult(
        robot=course.robot,
        brakes=course.train.brakes,
        category=course.plan.category,
        chain=course.plan.chain,
        run=run,
        outcome=outcome,
        stopping_time=last.t if since is None else since,
        reaction_time=_reaction_time(course),
        holding=held,
        loads=loads,
        ledger=energy_ledger(course, loads),
        events=tuple(sorted(course.log, key=lambda event: event[0])),
        course=course,
    )


def _reaction_time(course: StopSimulation) -> float:
    """From the signal until the first brake or controlled deceleration acts [s]."""
    acting = course.train.has_brake
    if not isinstance(course.plan.category, Category0) or not acting.any():
        return course.plan.chain.command
    begin, _ = course.clock.brake_times.engagement(course.train)
    return float(begin[acting].min())


def _trajectory(course: StopSimulation, system: ModalSystem, outcome: str) -> Trajectory:
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
        forces=tuple((StopTorque(course.equations, phase),) for phase in course.phases),
        transitions=tuple(course.transitions),
        events=tuple(sorted(course.log, key=lambda event: event[0])),
        evaluations=course.equations.evaluations,
        rejected=course.stepper.rejected,
    )
