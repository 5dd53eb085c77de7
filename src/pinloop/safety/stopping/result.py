"""What came out of a stop: per joint, per point, in energy; and whether the robot holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from ...boundary.arguments import public
from ...boundary.values import forward, stored_fields
from ...model.mechanism import Mechanism
from ...simulation.limits import LimitPassed
from ...simulation.modes import ModalSystem
from ...simulation.trajectory import Trajectory
from ...tables.report import Report, Section
from ...tolerances import LIMIT_PASSED
from ..brakes.brakes import Assumption, Brakes
from ..brakes.joint_brake import Chain
from ..space.clearance import Approach, SelfCollisions, clearance, self_collisions
from ..space.interval_tree import joint_limits
from ..space.solids import Obstacle
from ..space.swept import SweptVolume, swept_volume
from .history import StopHistory
from .loads import Ledger, Loads, energy_ledger, measure_loads
from .plan import Category
from .prepared_robot import tool_of
from .result_document import Document
from .simulation import StopSimulation
from .stick_slip import Holding, check_holding
from .travel import (
    JointStop,
    PointStop,
    all_stand_since,
    joint_stop,
    measure_joint_travel,
    point_stop,
)

Outcome = Literal["stopped", "does not hold", "time-out"]

_TABLE, _EXPORT = "safety.stopping.stop_table", "safety.stopping.export"


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
        history: phases and all that they rest on, for whoever needs the details.
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
    history: StopHistory = field(repr=False)

    __getstate__ = stored_fields

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
        travel = measure_joint_travel(self.history)
        return {
            name: joint_stop(self.history, name, travel, self.loads, self.holding)
            for name in self.brakes.joints
        }

    @cached_property
    def assumptions(self) -> tuple[Assumption, ...]:
        """Every number of chain and brakes that the stop rests on, with its provenance."""
        # The robot that stopped has rotors behind gears with losses beside its mass matrix.
        return self.brakes.assumptions(self.history.train.robot, self.chain)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What is odd about the stop or its numbers, one sentence each."""
        sentences: tuple[str, ...] = forward(_TABLE, "warnings_of", self)
        return sentences

    def table(self, *, sections: Iterable[Section] = ()) -> Report:
        """Everything that counts, for reading: print it, or let rich or a notebook show it.

        Args:
            sections: further parts of your own: functions of the stop that return a table.
        """
        report: Report = forward(_TABLE, "stop_table", self, sections=sections)
        return report

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

        Torques are those at the joints, see `stopping.export.Series`.

        Args:
            path: file to write.
            every: interval of the rows [s]; None: the states that were computed, two where
                something changes at once.
        """
        file: Path = forward(_EXPORT, "write_csv", self, path, every)
        return file

    def plot(self, joints: str | Iterable[str] | None = None) -> Any:
        """Draw ways, velocities, torques and energy of all joints or of those named."""
        return forward("show.stop_report.stop_curves", "plot_stop", self, joints)

    def save_html(
        self, path: str | Path, *, swept: bool = False, sections: Iterable[Section] = ()
    ) -> Path:
        """Write a report as one HTML file: numbers, plots, assumptions, and a replay.

        Args:
            path: file to write.
            swept: whether the replay shows the volume that the robot sweeps.
            sections: further parts of your own, as of `table`.
        """
        page: Path = forward(
            "show.stop_report", "write_report", self, path, swept=swept, sections=sections
        )
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

    def joint_limits(self, *, tolerance: float = LIMIT_PASSED) -> tuple[LimitPassed, ...]:
        """The limits of position and speed that are passed; see `pinloop.safety.joint_limits`."""
        return joint_limits(self.run, tolerance=tolerance)


def make_result(simulation: StopSimulation, system: ModalSystem, stands: bool) -> StopResult:
    """The result of a simulation that has ended.

    ``stands``: whether all stand.
    """
    equations, last = simulation.equations, simulation.last
    assert last is not None
    held = check_holding(equations, simulation.phases[-1], last.t, last.q, stands=stands)
    outcome: Outcome = "stopped" if stands and held.all_held else "time-out"
    if not held.all_held:
        outcome = "does not hold"
    history = simulation.history(system, outcome)
    loads = measure_loads(history, equations, simulation.solved)
    return StopResult(
        robot=history.robot,
        brakes=history.train.brakes,
        category=history.plan.category,
        chain=history.plan.chain,
        run=history.run,
        outcome=outcome,
        stopping_time=all_stand_since(history) if stands else last.t,
        reaction_time=_reaction_time(history),
        holding=held,
        loads=loads,
        ledger=energy_ledger(history, equations, loads),
        events=history.run.events,
        history=history,
    )


def _reaction_time(history: StopHistory) -> float:
    """From the signal until the first brake or controlled deceleration acts [s]."""
    acting = history.train.has_brake
    if history.plan.category.controlled or not acting.any():
        return history.plan.chain.command
    begin, _ = history.brake_times.engagement(history.train)
    return float(begin[acting].min())
