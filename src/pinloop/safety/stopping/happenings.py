"""What ends a phase of a stop, and how much later it does with the inputs.

Several things may happen at one instant, and each later by another time: brakes that come and ramps
that end add up, because what they change is linear in the torque or the acceleration behind it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...boundary.marks import Array
from ...errors import BadValue
from ...integrate import later_by
from ...linalg.dense import slope
from ...tolerances import ONE_CAUSE, SLOPE_TIME, TIME_SUM
from .history import StopHistory
from .input_changes import InputChanges
from .phase import DriveSpeed, Watched
from .phase_slopes import PhaseSlopes
from .reference import ramp_ends
from .stop_equations import StopEquations


@dataclass(frozen=True, eq=False)
class Cause:
    """What ends a phase.

    Args:
        name: what it is, for reading.
        change: by how much later it happens [s/unit], shape (k,).
        column: coordinate that it happens to; None if all are concerned.
        rate: how fast its guard passes zero; infinite for an instant of the plan.
    """

    name: str
    change: Array
    column: int | None = None
    rate: float = np.inf


@dataclass(frozen=True, eq=False)
class Happening:
    """An instant at which a phase ends [s], and why."""

    t: float
    causes: tuple[Cause, ...]

    @property
    def change(self) -> Array:
        """By how much later it happens, shape (k,); not a number where causes part."""
        every = np.array([cause.change for cause in self.causes])
        size = np.abs(every).max(axis=0)
        return np.where(np.ptp(every, axis=0) <= ONE_CAUSE * size, every[0], np.nan)

    def change_of(self, column: int) -> Array:
        """The same of what happens to a coordinate."""
        own = [cause.change for cause in self.causes if cause.column == column]
        return own[0] if len(own) == 1 else self.change


@dataclass(frozen=True, eq=False)
class Instant:
    """The end of a phase.

    Args:
        number: of the phase after it.
        t: when it ends [s].
        slopes: derivatives in it.
        changes: of position and velocity there at a fixed time, shape (2 nv, k).
        brake: of the time at which brakes are commanded, shape (k,); None while not known.
    """

    number: int
    t: float
    slopes: PhaseSlopes
    changes: Array
    brake: Array | None


class Causes:
    """What ends the phases of a stop.

    Args:
        history: the stop.
        equations: its equations of motion.
        inputs: what it is differentiated by.
    """

    def __init__(
        self, history: StopHistory, equations: StopEquations, inputs: InputChanges
    ) -> None:
        self._history, self._equations, self.inputs = history, equations, inputs

    def of(self, instant: Instant) -> list[Cause]:
        """What ends a phase, see `StopHistory.causes`."""
        history, run = self._history, self._history.run
        if instant.number >= len(history.causes):
            raise BadValue("the stop was computed by an earlier version; compute it again")
        k = int(np.flatnonzero(run.mode == instant.number - 1)[-1])
        causes: list[Cause] = []
        for event in history.causes[instant.number]:
            if isinstance(event, Watched):
                causes.append(self._watched(event, instant, k))
            elif event == "bound passed":
                causes.append(self._bound(instant, k))
            elif event == "time":
                causes += self._planned(instant)
        if not causes:
            causes.append(Cause("an instant", np.full(len(self.inputs.inputs), np.nan)))
        return causes

    def _watched(self, event: Watched, instant: Instant, k: int) -> Cause:
        """A coordinate at its level."""
        run, n, i = self._history.run, self._history.robot.nv, event.column
        t = float(run.t[k])
        if event.q_index is not None:
            rate, change = run.v[k, i], instant.changes[i]
        else:
            rate, change = run.a[k, i], instant.changes[n + i]
            if isinstance(event.level, DriveSpeed):
                piece = event.level.piece
                rate = rate - piece.a(t)[i]
                change = change - self.inputs.plan.references(piece, t)[0][:, i]
        return Cause(event.name, later_by(change, rate), i, abs(float(rate)))

    def _bound(self, instant: Instant, k: int) -> Cause:
        """What pins a coordinate gives way, or the power in a gear turns round."""
        run, tables, slopes = self._history.run, self._equations.tables, instant.slopes
        t, q, v, a = float(run.t[k]), run.q[k], run.v[k], run.a[k]
        at, names = slopes.at(t, q, v), self._equations.train.names
        violations = tables.violations(t, v, at.solved.holding_torque, at.solved.gear_output)
        worst, held = int(np.argmax(violations)), tables.held
        if slopes.phase.redundant:
            nothing = np.full(len(self.inputs.inputs), np.nan)
            return Cause("a joint comes loose in loops with more brakes than it takes", nothing)
        column = int(np.concatenate([held, held, tables.rotors])[worst])
        if worst >= 2 * len(held):
            part, sign = at.gear_output, -float(slopes.phase.gear_power_sign[column])
            bound, growth = np.zeros(len(self.inputs.inputs)), 0.0
            name = f"power turns round in the gear of {names[column]}"
        else:
            upper = worst >= len(held)
            part, sign = at.holding_torque, 1.0 if upper else -1.0
            bound = slopes.bound_changes(t, v)[upper][:, column]
            grows = slope(lambda s: tables.bounds(t + s, v + s * a)[upper][column], SLOPE_TIME)
            growth = float(grows)
            name = f"{names[column]} comes loose"
        rate = sign * (at.rates(part, v)[column] - growth)
        change = sign * (at.along(part, instant.changes)[column] - bound)
        return Cause(name, later_by(change, rate), column, abs(float(rate)))

    def _planned(self, instant: Instant) -> list[Cause]:
        """What the plan has for a time."""
        t = instant.t
        history, inputs = self._history, self.inputs
        plan, times, train = history.plan, history.brake_times, history.train
        close = TIME_SUM * max(1.0, abs(t))
        causes: list[Cause] = []
        limit = plan.category.time_limit

        def add(time: float, name: str, change: Array, column: int | None = None) -> None:
            if abs(time - t) <= close:
                causes.append(Cause(name, change, column))

        if plan.category.controlled:
            add(times.command, "command", inputs.command)
            if limit is not None:
                add(plan.chain.command + limit, "time limit", inputs.command)
        add(times.off, "power off", self._off(instant.brake))
        begin, full = times.engagement(train)
        later = inputs.begin(instant.brake)
        # What begins to rise acts like half as much delay.
        late = np.where(train.rise == 0.0, 0.5 * inputs.train.rise, 0.0)
        for column in train.has_brake.nonzero()[0].tolist():
            name = train.names[column]
            change = later[:, column] + late[:, column]
            add(float(begin[column]), f"brake of {name} engages", change, column)
            if train.rise[column] > 0.0:
                change = later[:, column] + inputs.train.rise[:, column]
                add(float(full[column]), f"brake of {name} has its full torque", change, column)
        for column, end in enumerate(ramp_ends(plan.reference).tolist()):
            name = f"ramp of {train.names[column]} ends"
            add(end, name, inputs.plan.ramp_end[:, column], column)
        return causes

    def _off(self, brake: Array | None) -> Array:
        """By how much later the power goes, shape (k,)."""
        history, inputs = self._history, self.inputs
        times, train = history.brake_times, history.train
        if not history.plan.category.controlled:
            return np.asarray(inputs.command + inputs.drive_off)
        brake = np.zeros(len(inputs.inputs)) if brake is None else brake
        if abs(times.brake + history.plan.chain.drive_off - times.off) <= TIME_SUM:
            return np.asarray(brake + inputs.drive_off)
        full = np.where(train.has_brake, times.engagement(train)[1], -np.inf)
        last = int(np.argmax(full))
        return np.asarray(brake + inputs.train.delay[:, last] + inputs.train.rise[:, last])
