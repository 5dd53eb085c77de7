"""What came out of a stop: per joint, per point, in energy; whether the robot holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from ...boundary.arguments import public
from ...boundary.files import data_frame
from ...boundary.values import forward, stored_fields
from ...model.mechanism import Mechanism
from ...simulation.limits import LimitPassed
from ...simulation.trajectory import Trajectory
from ...tables.report import Report, Section
from ...tolerances import LIMIT_PASSED, TIME_SUM
from ..brakes.brakes import Assumption, Brakes
from ..brakes.joint_brake import Chain
from ..space.clearance import Approach, SelfCollisions, clearance, self_collisions
from ..space.interval_tree import joint_limits
from ..space.solids import Obstacle
from ..space.swept import SweptVolume, swept_volume
from .categories import Category
from .history import StopHistory
from .holding import Holding
from .intervals import Guesses, StopBands
from .loads import Ledger, Loads, energy_ledger, measure_loads
from .prepared_robot import tool_of
from .result_document import Document
from .sensitivity import StopSensitivity
from .travel import JointStop, PointStop, joint_stop, measure_joint_travel, point_stop

Outcome = Literal["stopped", "does not hold", "time-out"]

_EXPORT = "safety.stopping.export"


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

    @property
    def power_off(self) -> float | None:
        """From the signal until the torque of the drives is gone [s]; None if it stays."""
        return self._passed(self.history.brake_times.off)

    @property
    def brakes_closed(self) -> float | None:
        """From the signal until all brakes have their full torque [s]; None if they do not come."""
        train = self.history.train
        full = self.history.brake_times.engagement(train)[1][train.has_brake]
        return self._passed(float(full.max(initial=-1.0)))

    def _passed(self, t: float) -> float | None:
        """A time that the motion has come to."""
        return float(t) if 0.0 <= t <= self.run.t[-1] * (1.0 + TIME_SUM) else None

    @property
    def loads(self) -> Loads:
        """The largest speeds, torques and energies, joint by joint."""
        return self._measured[0]

    @property
    def ledger(self) -> Ledger:
        """Where the energy went."""
        return self._measured[1]

    @property
    def brake_energy(self) -> dict[str, float]:
        """What friction brakes turned into heat, by joint [J]; see `pinloop.safety.brake_heat`."""
        heat = self.ledger.dissipated["brake"]
        return {name: float(heat[self.robot.coordinates(name).v.start]) for name in self.joints}

    @cached_property
    def _measured(self) -> tuple[Loads, Ledger]:
        """Loads and ledger, computed when first asked for."""
        equations = self.history.equations()
        loads = measure_loads(self.history, equations)
        return loads, energy_ledger(self.history, equations, loads)

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
    def guesses(self) -> Guesses:
        """Brake data that are guesses."""
        own = self.history.train.robot, self.brakes, self.category
        return forward("safety.stopping.uncertain_brakes", "find_guesses", *own)

    @cached_property
    def intervals(self) -> StopBands:
        """95 % intervals of stopping time, tool path, and times and angles of joints: `bands`.

        With uncertain brake data it takes a few stops more, when first asked for.
        """
        return self.bands()

    def bands(self, of: Iterable[str] | None = None, *, level: float = 0.95) -> StopBands:
        """Between what the stop is likely to be, as brake data are uncertain, and what makes it.

        Guesses are as far off as published figures are from each other, on all joints the same way;
        numbers with a ``spread`` vary by it, torques without one within their ``tolerance``, and
        have lost up to ``wear``. `sensitivity` tells where an outcome is largest and smallest; two
        stops are made there.

        Args:
            of: outcomes, as of `sensitivity`; by default stopping time, path of the tool, and times
                and angles of joints.
            level: how many of such stops are within an interval, as a part of all.
        """
        return forward("safety.stopping.bands", "band_stop", self, of, level)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What is odd about the stop or its numbers, one sentence each."""
        return forward("safety.stopping.oddities", "warnings_of", self)

    def table(self, *, sections: Iterable[Section] = ()) -> Report:
        """Everything that counts, for reading: print it, or let rich or a notebook show it.

        Args:
            sections: further parts of your own: functions of the stop that return a table.
        """
        return forward("safety.stopping.stop_table", "stop_table", self, sections=sections)

    def as_dict(self) -> Document:
        """Everything that went in and came out, as `save_json` writes it."""
        return forward(_EXPORT, "as_document", self)

    def save_json(self, path: str | Path, *, stamp: bool = False) -> Path:
        """Write everything that went in and came out, with versions and digests of the files.

        The form is that of docs/schemas/stop.schema.json. The same stop gives the same bytes.

        Args:
            path: file to write.
            stamp: say when it was written.
        """
        return forward(_EXPORT, "write_json", self, path, stamp=stamp)

    def to_csv(self, path: str | Path, *, every: float | None = 1e-3) -> Path:
        """Write states, torques, tool path and energies over time, units in the names.

        Torques are those at the joints, see `stopping.export.Series`.

        Args:
            path: file to write.
            every: interval of the rows [s]; None: the states that were computed, two where
                something changes at once.
        """
        return forward(_EXPORT, "write_csv", self, path, every)

    def to_dataframe(self, *, every: float | None = 1e-3) -> Any:
        """What `to_csv` writes as a `pandas.DataFrame`."""
        return data_frame(forward(_EXPORT, "columns_of", self, every))

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def plot(self, joints: str | Iterable[str] | None = None) -> Any:
        """Draw positions, velocities, torques and energy of all joints or of those named."""
        return forward("show.plots.stop_figures", "plot_stop", self, joints)

    def save_html(
        self, path: str | Path, *, swept: bool = False, sections: Iterable[Section] = ()
    ) -> Path:
        """Write a report as one HTML file: numbers, plots, assumptions, and a replay.

        Args:
            path: file to write.
            swept: whether the replay shows the volume that the robot sweeps.
            sections: further parts of your own, as of `table`.
        """
        return forward(
            "show.stop_report", "write_report", self, path, swept=swept, sections=sections
        )

    @property
    def tool(self) -> str:
        """Frame that is taken for the tool."""
        return tool_of(self.robot)

    def point(self, frame: str | None = None, *, every: float = 1e-3) -> PointStop:
        """The path of the origin of a frame or body.

        Args:
            frame: body or frame; the tool by default.
            every: interval between its places [s].
        """
        name = self.tool if frame is None else frame
        return point_stop(self.run, name, self.reaction_time, every)

    def sensitivity(
        self, of: Iterable[str] | None = None, to: Iterable[str] | None = None
    ) -> StopSensitivity:
        """What the stop depends on: derivatives of what came out by what went in.

        Through all that comes to rest, breaks away, engages; for the sequence of events that the
        stop had. All inputs in one go, for about the time of a few stops.

        Args:
            of: what is differentiated: "stopping_time", "power_off", "brakes_closed";
                "time:JOINT", "angle:JOINT" and "heat:JOINT"; "path" and "displacement" of the tool,
                "path:FRAME"; "energy:SINK" for a sink of the ledger or "drives". Times, angles and
                the path by default.
            to: what by: "speed:JOINT", "pose:JOINT", "payload", times of the chain ("sensor"),
                and parameters of the brakes file ("delay:JOINT"); "brake_torque:JOINT" for both
                torques, by a part of them. Without a joint ("delay", "speed") all joints together,
                by the same part. All that are not zero by default.

        Raises:
            BadValue: the stop does not end at rest and held, or passes a singular pose.
        """
        return forward("safety.stopping.differentiation", "differentiate_stop", self, of, to)

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
