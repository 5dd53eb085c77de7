"""How a stop as a whole changes with its inputs: along its phases, and through what ends them.

In a phase changes of the state obey the linear equations of `phase_slopes` along the motion that
was recorded. Gauss' collocation solves them on its steps, a method that damping cannot upset; its
points serve the integrals, too, and are inside, where speeds have a direction.

Where a guard ``g`` or an instant of the plan ends a phase, that happens later by

    dt = -(g_x dx + g_p) / (g_x f- + g_t),

and as both motions, before and after, are smooth, at a fixed time ``dx`` jumps by ``(f- - f+) dt``
(saltation; Aizerman and Gantmacher 1958); an impact maps ``dx + f- dt`` first. Several things may
happen at one instant, and each later by another time: brakes that come and ramps that end then add
up, because each jump is linear in the torque or the acceleration behind it. Other coincidences are
changes of the sequence of events, across which nothing is smooth: there is no derivative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ...boundary.marks import Array, Mask
from ...dynamics.inverse import group_bracket
from ...errors import BadValue
from ...integrate import Step, collocation
from ...linalg.dense import slope
from ...linalg.saddle import Saddle
from ...model.moving_tree import MovingTree
from ...simulation.modes import RobotManifold
from ...simulation.transitions import Transition
from ...tolerances import ONE_CAUSE, SAME, SENSITIVE_INTEGRAL, SLOPE_TIME, TIME_SUM
from .history import StopHistory
from .inputs import InputChanges, ramp_ends
from .phase import DriveSpeed, Phase, Watched
from .phase_slopes import PhaseSlopes, PinnedProblem, SolvedSlopes
from .stop_equations import StopEquations

_TURN = 1.0
"""By how much all joints together turn between two points of support, at most [rad], about."""
_POINTS = 0.5 + 0.5 * np.polynomial.legendre.leggauss(5)[0]
_INSIDE, _END = collocation(_POINTS, _POINTS), collocation(_POINTS, np.ones(1))[0]
"""Weights of Gauss' points for what lies at these, and at the end."""
_LAST = np.linalg.inv(np.polynomial.legendre.legvander(2.0 * _POINTS - 1.0, 4))[3:]
"""What makes of values at these points their last two coefficients in Legendre polynomials."""
_LEAST = 1e-3
"""Part of a step that is not halved any more."""


class Integrand(Protocol):
    """Something that is integrated over a stop."""

    @property
    def size(self) -> int:
        """Number of its values."""
        ...

    @property
    def columns(self) -> tuple[int, ...]:
        """Coordinate that each belongs to; -1 for what belongs to none."""
        ...

    def values(self, t: float, q: Array, v: Array, at: SolvedSlopes, phase: PhaseSlopes) -> Array:
        """Its values, shape (m,)."""
        ...

    def changes(
        self, t: float, q: Array, v: Array, at: SolvedSlopes, phase: PhaseSlopes, by: Array
    ) -> Array:
        """Their changes, shape (m, k).

        ``by``: those of position and velocity, shape (2 nv, k).
        """
        ...


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


class StopVariation:
    """Changes of a stop with inputs, followed from the signal on.

    Attributes:
        changes: of position and velocity at the end, shape (2 nv, k).
        happenings: the instants at which phases end, in order.
        integrals: changes of what is integrated, shape (m, k).
        notes: what has no derivative, a sentence each.
    """

    def __init__(
        self,
        history: StopHistory,
        equations: StopEquations,
        inputs: InputChanges,
        integrands: Sequence[Integrand] = (),
    ) -> None:
        # The powers of brakes come first, if they count.
        powers = bool(integrands) and -1 not in integrands[0].columns
        self._brakes_counted = history.robot.nv if powers else 0
        self._history, self._equations, self.inputs = history, equations, inputs
        self._integrands, self._manifold = integrands, RobotManifold(history.robot)
        self.changes = inputs.initial.copy()
        self.changes[:, inputs.unknown] = np.nan
        self.happenings: list[Happening] = []
        self.notes: list[str] = []
        self._whole = 0.0  # of the largest integrand so far
        self.integrals = np.zeros((sum(x.size for x in integrands), len(inputs.inputs)))
        self._brake = None if history.plan.category.controlled else inputs.command
        self._follow()

    @property
    def _begin(self) -> Array:
        """Changes of the times at which brakes begin to act, shape (k, nv)."""
        brake = np.zeros(len(self.inputs.inputs)) if self._brake is None else self._brake
        return np.asarray(brake[:, None] + self.inputs.delay)

    def _follow(self) -> None:
        run = self._history.run
        k, last = 0, len(run.t) - 1
        self._begin_later(int(np.searchsorted(run.t, run.t[0], side="right")) - 1)
        while k < last:
            j = k
            while j < last and run.t[j + 1] == run.t[k]:
                j += 1
            if j > k:
                self._happen(k, j)
            if j < last:
                self._step(j)
            k = j + 1

    def _enter(self, k: int, *, inside: bool) -> PhaseSlopes:
        self._history.enter(self._equations, k, inside=inside)
        if self._equations.passage is not None:
            raise BadValue(
                f"the stop passes a singular pose at t = {self._history.run.t[k]:.6g} s, where it "
                "has no sensitivities; let it pass in another pose"
            )
        return PhaseSlopes(self._equations, self.inputs, self._begin)

    # -- steps ------------------------------------------------------------------------------

    def _step(self, k: int) -> None:
        run = self._history.run
        if not (run.v[k : k + 2].any() or run.psi[k].any()):
            return
        phase, step = self._enter(k, inside=True), self._history.step(k)
        turning = np.abs(step.polynomial)[:, ~self._history.robot.is_translation].sum()
        count = max(1, int(np.ceil(turning / _TURN)))
        for piece in range(count):
            self._collocate(phase, step, piece / count, 1.0 / count)

    def _collocate(self, phase: PhaseSlopes, step: Step, start: float, width: float) -> None:
        """Follow the changes through a piece of a step."""
        h = width * (step.t1 - step.t0)
        parts = start + width * _POINTS
        q, v = step.inside(parts)
        times = step.t0 + parts * (step.t1 - step.t0)
        states = list(zip(times.tolist(), q, v, strict=True))
        points = [phase.at(*state) for state in states]
        if self._integrands and width > _LEAST:
            pairs = zip(states, points, strict=True)
            values = np.array([self._integrand_values((*x, at, phase)) for x, at in pairs])
            left = h * np.abs(_LAST @ values).max(axis=0)
            whole = np.maximum(self._whole, h * np.abs(values).max())
            if (left > SENSITIVE_INTEGRAL * whole).any():
                for half in (start, start + 0.5 * width):
                    self._collocate(phase, step, half, 0.5 * width)
                return
            self._whole += h * float(np.abs(values).max())
        n, count = self._history.robot.nv, len(parts)
        rates, more = [], []
        for at, speed in zip(points, v, strict=True):
            rates.append(np.block([[self._turning(speed), np.eye(n)], [at.a[:, : 2 * n]]]))
            more.append(np.vstack([np.zeros((n, self.changes.shape[1])), at.a[:, 2 * n + 1 :]]))
        A, size = np.array(rates), 2 * n
        blocks = _INSIDE[:, :, None, None] * A[:, None]
        matrix = np.eye(count * size) - h * blocks.transpose(0, 2, 1, 3).reshape(
            count * size, count * size
        )
        right = (A @ self.changes + np.array(more)).reshape(count * size, -1)
        slopes = np.linalg.solve(matrix, right).reshape(count, size, -1)
        inside = self.changes + h * np.tensordot(_INSIDE, slopes, 1)
        for i, at in enumerate(points):
            by = self._integrand_changes((*states[i], at, phase), inside[i])
            self.integrals += h * _END[i] * by
        self.changes = self.changes + h * np.tensordot(_END, slopes, 1)

    def _turning(self, v: Array) -> Array:
        """What positions in curved joints change by because the frame turns, ``[dq, v]``."""
        n = len(v)
        if self._manifold.flat:
            return np.zeros((n, n))
        robot = self._history.robot
        return np.array([group_bracket(robot, unit, v) for unit in np.eye(n)]).T

    def _integrand_changes(
        self, state: tuple[float, Array, Array, SolvedSlopes, PhaseSlopes], changes: Array
    ) -> Array:
        parts = [integrand.changes(*state, changes) for integrand in self._integrands]
        return np.vstack([np.zeros((0, changes.shape[1])), *parts])

    def _integrand_values(
        self, state: tuple[float, Array, Array, SolvedSlopes, PhaseSlopes]
    ) -> Array:
        parts = [integrand.values(*state) for integrand in self._integrands]
        return np.concatenate([np.zeros(0), *parts])

    def _integrand_values_at(self, k: int, phase: PhaseSlopes) -> Array:
        """The same at a stored state."""
        state = float(self._history.run.t[k]), self._history.run.q[k], self._history.run.v[k]
        return self._integrand_values((*state, phase.at(*state), phase))

    # -- events -----------------------------------------------------------------------------

    def _happen(self, first: int, last: int) -> None:
        """Carry changes through what happens between two states of one instant."""
        run, history = self._history.run, self._history
        t, phases = float(run.t[first]), history.phases
        before, after = phases[run.mode[first]], phases[run.mode[last]]
        hits = [change for change in run.transitions if change.t == t]
        slopes = self._enter(first, inside=False)
        if t == run.t[0]:
            causes = [Cause("signal", np.zeros(len(self.inputs.inputs)))]
        else:
            causes = self._causes(slopes, int(run.mode[first]) + 1, t)
        happening = Happening(t, tuple(causes))
        self.happenings.append(happening)
        power = self._integrand_values_at(first, slopes)
        if self._brake is None and history.brake_times.brake == t:
            self._brake = happening.change
        if len(hits) > 1:
            self._lose(np.ones(len(happening.change), bool), t, "several impacts at once")
            return
        shift = run.a[last] - run.a[first]
        small = SAME * max(1.0, float(np.abs(run.a[first : last + 1]).max()))
        if hits:
            self._hit(hits[0], run.a[first], run.a[last], happening)
        elif np.abs(shift).max() > small:
            self._shift(first, last, shift, (before, after), happening)
        if len(power):
            gone = power - self._integrand_values_at(last, self._enter(last, inside=False))
            self.integrals += self._jumps(gone, happening)

    def _begin_later(self, k: int) -> None:
        """Let brakes that act from the signal on come a little later."""
        run, times, train = self._history.run, self._history.brake_times, self._equations.train
        t, inputs = float(run.t[k]), self.inputs
        if times.command <= t:
            self._lose(inputs.command != 0.0, t, "the command comes with the signal, at once")
        if times.off <= t:
            self._lose(inputs.drive_off != 0.0, t, "the power goes with the signal, at once")
        slopes, late = self._enter(k, inside=False), self._begin + 0.5 * inputs.rise
        full = (times.engagement(train)[1] <= t) & train.has_brake & ~slopes.phase.pinned
        power = self._integrand_values_at(k, slopes)
        for column in full.nonzero()[0].tolist():
            own = self._brake_response(column, k)
            self.changes[len(own) :] -= np.outer(own, late[:, column])
            if self._brakes_counted > column:
                self.integrals[column] -= power[column] * late[:, column]

    def _jumps(self, gone: Array, happening: Happening) -> Array:
        """What integrals change by because an integrand jumps later, shape (m, k)."""
        large = np.abs(gone) > SAME * max(1.0, float(np.abs(gone).max()))
        columns = [column for integrand in self._integrands for column in integrand.columns]
        change = happening.change
        jumps = np.zeros((len(gone), len(change)))
        for row in large.nonzero()[0].tolist():
            # What brakes take begins with each of them; the rest with what they have in common.
            own = happening.change_of(columns[row]) if row < self._brakes_counted else change
            jumps[row] = gone[row] * own
        return jumps

    def _lose(self, mask: Mask, t: float, why: str) -> None:
        """Let changes with some inputs be unknown from now on."""
        if mask.any():
            self.changes[:, mask] = np.nan
            self.notes.append(f"t = {1e3 * t:.4g} ms: {why}")

    def _shift(
        self,
        first: int,
        last: int,
        shift: Array,
        phases: tuple[Phase, Phase],
        happening: Happening,
    ) -> None:
        """Saltation where accelerations jump, but no velocities."""
        n, change = self._history.robot.nv, happening.change
        alike = np.isfinite(change)
        self.changes[n:, alike] -= np.outer(shift, change[alike])
        parted = ~alike & np.isfinite(self.changes).all(axis=0)
        if not parted.any():
            return
        others = [x for x in happening.causes if x.column is None or np.isfinite(x.rate)]
        common = Happening(happening.t, tuple(others)).change if others else None
        rest = np.repeat(shift[:, None], len(change), axis=1)
        for cause in happening.causes:
            if cause.column is None or np.isfinite(cause.rate):
                continue
            own = self._shift_of(cause.column, first, last, phases)
            counts = parted.copy()
            if common is not None and phases[0].pinned[cause.column]:
                # A brake that comes before its drive lets go does nothing until then.
                counts &= phases[1].pinned[cause.column] | (cause.change > common)
            self.changes[n:, counts] -= np.outer(own, cause.change[counts])
            rest[:, counts] -= own[:, None]
        left = parted & (np.abs(rest).max(axis=0) > ONE_CAUSE * np.abs(shift).max())
        nothing = np.full(len(change), np.nan)
        self.changes[n:, left] -= (rest * (nothing if common is None else common))[:, left]
        lost = parted & ~np.isfinite(self.changes).all(axis=0)
        names = " and ".join(dict.fromkeys(cause.name for cause in happening.causes))
        self._lose(lost, happening.t, f"{names} at once, in one order or the other")

    def _shift_of(self, column: int, first: int, last: int, phases: tuple[Phase, Phase]) -> Array:
        """Part of a jump of accelerations that is due to one coordinate."""
        run, n = self._history.run, self._history.robot.nv
        torque, given = np.zeros((2, n, 1))
        state = float(run.t[last]), run.q[last], run.v[last]
        before, after = (bool(phase.pinned[column]) for phase in phases)
        if before and after:
            given[column] = run.a[last, column] - run.a[first, column]
        elif not before and not after:
            torque[column] = self._torque_at(column, last) - self._torque_at(column, first)
        elif before:
            return self._brake_response(column, last)
        return self._enter(last, inside=False).response(*state, torque, given)[:, 0]

    def _torque_at(self, column: int, k: int) -> float:
        """Torque of what slides on a coordinate at a state."""
        self._enter(k, inside=False)
        equations, run = self._equations, self._history.run
        joint, before = equations.tables.slide.torques(float(run.t[k]), run.v[k])
        through = equations.train.through_gear(before, equations.phase.sliding.direction)
        return float((joint + through)[column])

    def _brake_response(self, column: int, k: int) -> Array:
        """What the full torque of a brake, on a coordinate that slides, makes of accelerations."""
        run, slopes = self._history.run, self._enter(k, inside=False)
        t, tables, train = float(run.t[k]), self._equations.tables, self._equations.train
        direction = slopes.phase.sliding.direction[column]
        gain = tables.gain(tables.slide.torques(t, run.v[k])[1])[column]
        torque = np.zeros((len(run.v[k]), 1))
        brake = train.joint_brake[0, column] + gain * train.motor_brake[0, column]
        torque[column] = -direction * slopes.phase.sliding.ramp[column] * brake
        return slopes.response(t, run.q[k], run.v[k], torque, np.zeros_like(torque))[:, 0]

    def _hit(self, hit: Transition, a_before: Array, a_after: Array, happening: Happening) -> None:
        """Carry changes through an impact."""
        n, change = self._history.robot.nv, happening.change
        by_q, by_v, by_p = self._impact_slopes(hit)
        q = self.changes[:n] + np.outer(hit.v_minus, change)
        v = self.changes[n:] + np.outer(a_before, change)
        self.changes[:n] = q - np.outer(hit.v_plus, change)
        self.changes[n:] = by_q @ q + by_v @ v + by_p - np.outer(a_after, change)
        lost = np.isnan(change)
        self._lose(lost, happening.t, "an impact and something else at once")

    def _impact_slopes(self, hit: Transition) -> tuple[Array, Array, Array]:
        """Derivatives of the velocity after an impact by position, velocity before, and inputs."""
        equations, inputs = self._equations, self.inputs
        n, q, rest, dv = len(hit.v_plus), hit.q, np.zeros(len(hit.v_plus)), hit.v_plus - hit.v_minus
        names = equations.train.names
        M, _, J, _, _ = equations.system(hit.t, q, hit.v_minus)
        M = M + np.diag(equations.train.lossy)
        count, at = len(J), [label.partition(":") for label in hit.labels]
        active = [
            (kind == "drive", names.index(name))
            for (kind, _, name), impulse in zip(at[count:], hit.impulse[count:], strict=True)
            if impulse != 0.0
        ]
        held = np.array([column for _, column in active], dtype=np.intp)
        free = np.setdiff1d(np.arange(n), held)
        saddle = Saddle(M[np.ix_(free, free)], J[:, free], equations.equations.rows.scale)
        chain = PhaseSlopes(equations, inputs, self._begin).chain
        own = chain.columns
        tree = MovingTree(chain, q, hit.v_plus, rest)
        rows = equations.equations.rows.slopes(
            tree, (hit.t, q, hit.v_plus, rest), hit.impulse[:count]
        )
        load, weight = (MovingTree(chain, q, rest, x).load_slopes()[0] for x in (dv, rest))
        by_p = inputs.loads(equations, hit.t, q, rest, dv)
        by_p = by_p - inputs.loads(equations, hit.t, q, rest, rest) + (inputs.lossy * dv).T
        missing = np.hstack([(load - weight - rows.force_q)[np.ix_(own, own)], -M, by_p])
        values = np.zeros((count, missing.shape[1]))
        values[:, :n] = rows.rate_q[:, own]
        given = np.zeros(missing.shape)
        piece = self._equations.phase.piece
        for driven, column in active:
            if driven:
                given[column, 2 * n :] = inputs.references(piece, hit.t)[0][:, column]
        problem = PinnedProblem(saddle, M, J, free, held)
        by_q, by_v, by_p = np.split(problem.changes(missing, values, given)[0], [n, 2 * n], 1)
        return by_q, by_v, by_p

    # -- causes -----------------------------------------------------------------------------

    def _causes(self, slopes: PhaseSlopes, number: int, t: float) -> list[Cause]:
        """What ends a phase at a time, see `StopHistory.causes`."""
        history, run = self._history, self._history.run
        if number >= len(history.causes):
            raise BadValue("the stop was computed by an earlier version; compute it again")
        k = int(np.flatnonzero(run.mode == number - 1)[-1])
        causes: list[Cause] = []
        for event in history.causes[number]:
            if isinstance(event, Watched):
                causes.append(self._watched(event, slopes, k))
            elif event == "bound passed":
                causes.append(self._bound(slopes, k))
            elif event == "time":
                causes += self._instants(t)
        return causes

    def _watched(self, event: Watched, slopes: PhaseSlopes, k: int) -> Cause:
        """A coordinate at its level."""
        run, n, i = self._history.run, self._history.robot.nv, event.column
        t = float(run.t[k])
        if event.q_index is not None:
            rate, change = run.v[k, i], self.changes[i]
        else:
            rate, change = run.a[k, i], self.changes[n + i]
            if isinstance(event.level, DriveSpeed):
                piece = event.level.piece
                rate = rate - piece.a(t)[i]
                change = change - self.inputs.references(piece, t)[0][:, i]
        return Cause(event.name, -change / rate, i, abs(float(rate)))

    def _bound(self, slopes: PhaseSlopes, k: int) -> Cause:
        """What pins a coordinate gives way, or the power in a gear turns round."""
        run, tables = self._history.run, self._equations.tables
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
            bound = self.inputs.bounds(slopes.phase, self._begin, t, v)[upper][:, column]
            grows = slope(lambda s: tables.bounds(t + s, v + s * a)[upper][column], SLOPE_TIME)
            growth = float(grows)
            name = f"{names[column]} comes loose"
        rate = sign * (at.rates(part, v)[column] - growth)
        change = sign * (at.along(part, self.changes)[column] - bound)
        return Cause(name, -change / rate, column, abs(float(rate)))

    def _instants(self, t: float) -> list[Cause]:
        """What the plan has for a time."""
        history, inputs = self._history, self.inputs
        plan, times, train = history.plan, history.brake_times, history.train
        close = TIME_SUM * max(1.0, abs(t))
        causes: list[Cause] = []
        limit = plan.category.time_limit

        def add(instant: float, name: str, change: Array, column: int | None = None) -> None:
            if abs(instant - t) <= close:
                causes.append(Cause(name, change, column))

        if plan.category.controlled:
            add(times.command, "command", inputs.command)
            if limit is not None:
                add(plan.chain.command + limit, "time limit", inputs.command)
        add(times.off, "power off", self._off())
        begin, full = times.engagement(train)
        late = np.where(train.rise == 0.0, 0.5 * inputs.rise, 0.0)  # acts like half as much delay
        for column in train.has_brake.nonzero()[0].tolist():
            name = train.names[column]
            change = self._begin[:, column] + late[:, column]
            add(float(begin[column]), f"brake of {name} engages", change, column)
            if train.rise[column] > 0.0:
                change = self._begin[:, column] + inputs.rise[:, column]
                add(float(full[column]), f"brake of {name} has its full torque", change, column)
        for column, end in enumerate(ramp_ends(plan.reference).tolist()):
            name = f"ramp of {train.names[column]} ends"
            add(end, name, inputs.ramp_end[:, column], column)
        return causes or [Cause("an instant of the plan", np.full(len(inputs.inputs), np.nan))]

    def _off(self) -> Array:
        """By how much later the power goes, shape (k,)."""
        history, inputs = self._history, self.inputs
        times, train = history.brake_times, history.train
        if not history.plan.category.controlled:
            return np.asarray(inputs.command + inputs.drive_off)
        brake = np.zeros(len(inputs.inputs)) if self._brake is None else self._brake
        if abs(times.brake + history.plan.chain.drive_off - times.off) <= TIME_SUM:
            return np.asarray(brake + inputs.drive_off)
        full = np.where(train.has_brake, times.engagement(train)[1], -np.inf)
        last = int(np.argmax(full))
        return np.asarray(brake + inputs.delay[:, last] + inputs.rise[:, last])
