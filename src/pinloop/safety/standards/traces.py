"""Measured motions of stops, as encoders record them, laid over computed stops.

The clock of a recording is not that of the signal: where nobody has noted when the signal came, the
time that suits the computed stop best is found along with the parameters. Before the signal joints
move evenly; a line through these samples gives the state at the signal, so that noise of encoders
is not differentiated, and is found along with the rest. Sizes of errors are those of coordinates,
sliding ones by the robot's length.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy

from ...assembly.assemble import assemble, consistent_velocity
from ...boundary.arguments import public
from ...boundary.marks import Array
from ...boundary.values import forward
from ...errors import BadValue, LoadError, PinloopError
from ...model.mechanism import Mechanism
from ...tables.number_format import milliseconds, units_of
from ...tables.report import Block, KeyValues, Report, Reported, Table
from ...tolerances import FIT_STEP
from ..brakes.brakes import Brakes
from ..stopping import JointTrajectory, StopResult, stop
from ..stopping.result_document import PLANNING_AID
from .comparison import failed_rows
from .measured import require_possible_speeds
from .published import FailedRow

BEFORE, _LEAST = 0.1, 4
"""Time before the signal in which joints move evenly [s], and samples in it, at least."""
_PLACES = 24
"""Times of the signal that are tried before the best is looked for."""


@public
@dataclass(frozen=True, eq=False)
class StopTrace:
    """A measured stop.

    Args:
        motion: coordinates of all joints with a drive over time; they move evenly until the signal.
        signal: when the signal came, by the clock of the recording [s]; None if nobody knows.
        payload: a point at the tool [kg].
        category: of the stop: 0, 1 or 2.
    """

    motion: JointTrajectory
    signal: float | None = None
    payload: float = 0.0
    category: int = 0

    @classmethod
    def from_csv(cls, path: str | Path, **arguments: Any) -> StopTrace:
        """Read a recording, see `JointTrajectory.from_csv`; ``arguments`` are those of the class.

        Raises:
            LoadError: names the file, the line and the column.
        """
        return cls(JointTrajectory.from_csv(path), **arguments)

    def approach(self, signal: float) -> Approach:
        """The even motion before a time of the signal: lines through its samples."""
        motion = self.motion
        before = (motion.t <= signal) & (motion.t >= signal - BEFORE)
        if before.sum() < _LEAST:
            raise BadValue(
                f"the recording has {before.sum()} samples in the {BEFORE:g} s before the signal "
                f"at {signal:.6g} s; {_LEAST} at least are needed: record for longer before it"
            )
        t = motion.t[before] - signal
        places, rates = np.polynomial.polynomial.polyfit(t, motion.values[before], 1)
        return Approach(signal, places, rates)


@dataclass(frozen=True, eq=False)
class StopTraces:
    """Measured stops, and files that are none."""

    each: tuple[StopTrace, ...]
    failed: tuple[FailedRow, ...] = ()

    @classmethod
    def from_csv(
        cls,
        paths: Iterable[str | Path],
        signals: Iterable[float | None],
        payloads: Iterable[float],
    ) -> StopTraces:
        """Read recordings; go on after one that cannot be read, if there are more."""
        each, failed = list[StopTrace](), list[FailedRow]()
        for path, signal, payload in zip(paths, signals, payloads, strict=True):
            try:
                each.append(StopTrace.from_csv(path, signal=signal, payload=payload))
            except LoadError as error:
                failed.append(FailedRow("", error.place, error.problem))
        if not each:
            raise failed[0].error
        return cls(tuple(each), tuple(failed))


class Approach(NamedTuple):
    """Even motion of the joints of a recording.

    Args:
        at: a time by its clock [s].
        places: coordinates at that time, shape (joints,).
        rates: their rates.
    """

    at: float
    places: Array
    rates: Array

    def positions(self, t: Array) -> Array:
        """Coordinates at some times, shape (k, joints)."""
        return np.asarray(self.places + (t - self.at)[:, None] * self.rates)


@public
@dataclass(frozen=True, eq=False)
class Overlay(Reported):
    """A measured stop and the computed one, by the same clock: print it, or `plot` it.

    Args:
        trace: the measured stop.
        stop: the computed one.
        signal: when the signal came, by the clock of the recording [s].
        times: of the samples that are compared, from shortly before the signal on [s].
        computed: coordinates at these [rad, m], shape (k, joints).
        measured: the same of the recording.
    """

    trace: StopTrace
    stop: StopResult
    signal: float
    times: Array
    computed: Array
    measured: Array

    @property
    def residuals(self) -> Array:
        """Measured minus computed coordinates [rad, m], shape (k, joints)."""
        return np.asarray(self.measured - self.computed)

    @property
    def rms(self) -> Array:
        """Root mean square of the residuals of each joint, shape (joints,)."""
        return np.asarray(np.sqrt(np.mean(self.residuals**2, axis=0)))

    def __rich__(self) -> Report:
        return self.table()

    def table(self, facts: Iterable[tuple[str, str]] = ()) -> Report:
        """Per joint what is between; ``facts`` are further lines above it: name, text."""
        title = self.stop.guesses.title(f"{self.stop.robot.name}: measured and computed stop")
        return Report.of(title, self.blocks("Stop", facts), PLANNING_AID)

    def blocks(self, name: str, facts: Iterable[tuple[str, str]] = ()) -> tuple[Block, Block]:
        """Both blocks of it, the first of which has a name."""
        rows = [
            (name, *(f"{units.factor * x:.3g}" for x in (rms, most)), units.shown)
            for name, rms, most in zip(
                self.trace.motion.joints, self.rms, np.abs(self.residuals).max(axis=0), strict=True
            )
            for units in [units_of(self.stop.robot, name)]
        ]
        signal = ("signal", f"{self.signal:.5f} s by the clock of the recording")
        time = ("stopping time", f"{milliseconds(self.stop.stopping_time)} computed")
        headings = ("<joint", "difference | rms", "difference | largest", "<unit")
        table = Table.of("Measured beside computed coordinates", headings, rows)
        return KeyValues.of(name, [signal, time, *facts]), table

    def as_dict(self) -> dict[str, Any]:
        """Alignment and differences in SI units, as JSON takes them."""
        joints = self.trace.motion.joints
        return {
            "robot": self.stop.robot.name,
            "source": self.trace.motion.source,
            "signal_s": self.signal,
            "stopping_time_s": self.stop.stopping_time,
            "rms": dict(zip(joints, self.rms.tolist(), strict=True)),
            "largest": dict(zip(joints, np.abs(self.residuals).max(axis=0).tolist(), strict=True)),
        }

    def plot(self) -> Any:
        """Draw measured and computed coordinates, and beside them what is between them."""
        return forward("show.plots.stop_figures", "plot_overlay", self)


@dataclass(frozen=True, eq=False)
class Overlays(Reported):
    """Several measured stops of a robot and the computed ones."""

    each: tuple[Overlay, ...]
    failed: tuple[FailedRow, ...] = ()

    def __rich__(self) -> Report:
        return self.table()

    def table(self, facts: Iterable[tuple[str, str]] = ()) -> Report:
        """Those of all recordings, one after another."""
        stop = self.each[0].stop
        title = f"{stop.robot.name}: {len(self.each)} measured and computed stops"
        blocks: list[Block] = [KeyValues.of("Stops", facts)]
        for k, each in enumerate(self.each, 1):
            blocks += each.blocks(f"Recording {k}", [("file", each.trace.motion.source)])
        blocks += failed_rows(self.failed)
        return Report.of(stop.guesses.title(title), blocks, PLANNING_AID)

    def as_dict(self) -> dict[str, Any]:
        """Those of all recordings, as JSON takes them."""
        return {
            "recordings": [each.as_dict() for each in self.each],
            "failed": [asdict(row) for row in self.failed],
        }


def overlay(
    robot: Mechanism,
    trace: StopTrace,
    brakes: Brakes,
    signal: float,
    approach: Approach | None = None,
) -> Overlay:
    """A trace beside the stop that is computed for a time of the signal.

    ``approach``: the motion before it; that through the samples before the signal by default.
    """
    motion = trace.motion
    before = trace.approach(signal) if approach is None else approach
    pose, speeds = (
        dict(zip(motion.joints, row.tolist(), strict=True))
        for row in (before.positions(np.array([signal]))[0], before.rates)
    )
    require_possible_speeds(robot, speeds)
    q, v = robot.configuration(pose), robot.velocity(speeds)
    if robot.loops or robot.couplings:
        q = assemble(robot, fixed=pose)
        v = consistent_velocity(robot, q, speeds)
    load = trace.payload or None
    result = stop(robot, q, v, brakes=brakes, payload=load, category=trace.category)
    chosen = motion.t >= before.at - BEFORE
    times, computed = motion.t[chosen], before.positions(motion.t[chosen])
    late = np.clip(times - signal, 0.0, result.run.t[-1])
    if (late > 0.0).any():
        columns = [robot.coordinates(name).q.start for name in motion.joints]
        computed[late > 0.0] = result.run(late[late > 0.0]).q[:, columns]
    return Overlay(trace, result, signal, times, computed, motion.values[chosen])


@public
def align(robot: Mechanism, trace: StopTrace, brakes: Brakes) -> Overlay:
    """Lay a measured stop over the computed one, at the time of the signal that suits best.

    Args:
        robot: the mechanism.
        trace: the measured stop; its ``signal`` is taken if it is known.
        brakes: its brakes.
    """
    trace.motion.check(robot)
    if trace.signal is not None:
        return overlay(robot, trace, brakes, trace.signal)
    first = float(trace.motion.t[_LEAST]) + BEFORE

    def miss(signal: float) -> float:
        try:
            return float(np.mean(overlay(robot, trace, brakes, signal).residuals ** 2))
        except PinloopError:
            return math.inf

    # At rest nothing tells when the signal came.
    moving = np.abs(trace.motion.values - trace.motion.values[-1]).max(axis=1)
    last = float(trace.motion.t[moving > 0.05 * moving.max()][-1])
    places = np.linspace(first, max(last, first), _PLACES)
    misses = [miss(place) for place in places]
    k, width = int(np.argmin(misses)), float(places[1] - places[0])
    if not np.isfinite(misses[k]):
        raise BadValue(
            "no time of the signal gives a computed stop beside the recording; record at least "
            f"{BEFORE:g} s before the signal, or say when it came (signal=)"
        )
    best = scipy.optimize.minimize_scalar(
        miss, bounds=(places[k] - width, places[k] + width), method="bounded",
        options={"xatol": FIT_STEP},
    )  # fmt: skip
    return overlay(robot, trace, brakes, float(best.x))


def align_each(robot: Mechanism, traces: StopTraces, brakes: Brakes) -> Overlays:
    """Lay measured stops over computed ones; go on after one that cannot be, if there are more."""
    laid, failed = list[Overlay](), [*traces.failed]
    for trace in traces.each:
        try:
            laid.append(align(robot, trace, brakes))
        except PinloopError as error:
            if len(traces.each) == 1:
                raise
            failed.append(FailedRow("", trace.motion.source, str(error)))
    if not laid:
        raise failed[0].error
    return Overlays(tuple(laid), tuple(failed))
