"""A run followed again: each of its steps, projections and jumps as a linear map of small changes.

States are those that the run has stored; nothing is simulated. Steps are computed again with the
same method from state to state, with their tangents. They end where they ended, and where an event
decided that, the guard of the event decides how much later they end. What is asked of these maps is
not known here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from ..boundary.marks import Array
from ..dynamics import EquationsOfMotion
from ..dynamics.derivatives import Derivatives, derivatives_at, jump_derivatives_at
from ..dynamics.parameters import ForceParameter, Parameter
from ..errors import BadValue, UnknownName
from ..integrate import (
    WHEN_STIFF,
    AccelerationSlopes,
    Carry,
    FollowedStep,
    Guard,
    GuardSlopes,
    Step,
    follow_step,
    get_tableau,
    guard_slopes,
)
from ..linalg.dense import slope, slopes
from ..linalg.saddle import Saddle
from ..tolerances import LEAST_SQUARES, RETRACED, SHALLOW, SLOPE_TIME
from .events import BoundEvent, Happenings, Impact, Instant
from .mode_parameters import StartValues, friction_slopes, in_mode
from .modes import Mode, RobotManifold
from .stabilization import Projection, Projector
from .trajectory import Trajectory

State = tuple[float, Array, Array]

_KIND = 1e-3
"""How far off a step ends that was taken in another way [rad, lengths]."""


@dataclass(frozen=True)
class Inputs:
    """What a run is differentiated by, besides its start.

    Args:
        parameters: of the robot and of what acts on it.
        events: names of events that happen at a time, for these times.
    """

    parameters: tuple[Parameter, ...]
    events: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Piece:
    """What holds from one change of the mode to the next.

    Args:
        mode: the mode.
        equations: equations of motion.
        manifold: configuration group.
        projector: what puts states back on the constraint manifold; None if nothing does.
        parameters: what the equations are differentiated by.
        since: when it began [s].
    """

    mode: Mode
    equations: EquationsOfMotion
    manifold: RobotManifold
    projector: Projector | None
    parameters: tuple[Parameter, ...]
    since: float


class RetracedRun:
    """The maps of a run, one from each of its states to the next.

    Args:
        run: the run.
        inputs: what it is differentiated by.

    Attributes:
        count: number of parameters, of values that rows keep from the start, and times of events.
        begins: number of values that rows keep from the start.
        happenings: what happened in it.
        warnings: what makes derivatives doubtful, known once all maps have been asked for.
    """

    def __init__(self, run: Trajectory, inputs: Inputs) -> None:
        if run.happenings is None or run.accuracy is None:
            raise BadValue(
                "this run was loaded or unpickled; forces, rows and guards of events are functions "
                "and are not stored: simulate it again"
            )
        if run.accuracy.steps != int(np.count_nonzero(np.diff(run.t))):
            raise BadValue(
                f"this run stores {len(run.t)} states of {run.accuracy.steps} steps; sensitivities "
                "follow every step: simulate it again without save_every"
            )
        begins = int(np.count_nonzero(run.equations[0].rows.beginning))
        more = (StartValues(begins),) if begins else ()
        inputs = replace(inputs, parameters=(*inputs.parameters, *more))
        self.run, self.inputs, self.begins = run, inputs, begins
        self._method = method = run.accuracy.method
        self._enough = RETRACED
        if method.step is None:
            self._enough = max(RETRACED, 10.0 * (method.rtol + method.atol))
        self.happenings: Happenings = run.happenings
        self._group, robot = RobotManifold(run.robot), run.robot
        self._unit = np.where(robot.is_translation, robot.length, 1.0)
        self._equations = run.equations
        self._known: tuple[tuple[_Piece, float, bytes, bytes], Derivatives] | None = None
        self.warnings: list[str] = []
        self.count = sum(len(p.labels(robot)) for p in inputs.parameters) + len(inputs.events)
        self._require_what_acts()

    @cached_property
    def links(self) -> tuple[Carry, ...]:
        """The map from each stored state to the next."""
        piece, links = self.piece(0), []
        for k in range(len(self.run.t) - 1):
            if self.run.t[k + 1] > self.run.t[k]:
                links.append(self._step(piece, k))
            else:
                links.append(self._change(k))
                piece = self.piece(k + 1)
        return tuple(links)

    def state(self, k: int) -> State:
        """A stored state."""
        return float(self.run.t[k]), self.run.q[k], self.run.v[k]

    def step(self, k: int) -> Step:
        """The step from a stored state to the next."""
        return self.run.step(k, self._group)

    def piece(self, k: int) -> _Piece:
        """What holds from a stored state on."""
        (t, q, _), mode = self.state(k), self.run.modes[self.run.mode[k]]
        equations, manifold = self._equations[k], self._group.in_mode(mode)
        projector, wanted = None, self.happenings.stabilization
        if wanted is not None and equations.rows.unlocked:
            projector = Projector(equations, wanted, manifold)
            projector.begin(t, q)
            projector.choose(t, q)
        return _Piece(
            mode, equations, manifold, projector, in_mode(self.inputs.parameters, mode), t
        )

    def beyond(self, k: int, t: float) -> tuple[Carry, State]:
        """The map from a stored state to a later time in the step that starts there."""
        piece, (t0, q, v) = self.piece(k), self.state(k)
        step = self._followed(piece, k, (t0, t), (q, v))
        end = self._projected(piece, t, step)
        projection = self._projection(piece, t, (step.q, step.v), end)
        return step.then(projection).planned(), (t, *end)

    def derivatives(self, piece: _Piece, state: State) -> Derivatives:
        """Derivatives at a state; those that were asked for last are kept."""
        key = piece, state[0], state[1].tobytes(), state[2].tobytes()
        if self._known is None or self._known[0] != key:
            self._known = key, derivatives_at(piece.equations, *state, None, piece.parameters)
        return self._known[1]

    # -- parameters -------------------------------------------------------------------------

    def padded(self, by_parameters: Array) -> Array:
        """Derivatives by parameters with those by times of events, which are zero."""
        return np.hstack([by_parameters, np.zeros((len(by_parameters), len(self.inputs.events)))])

    def _require_what_acts(self) -> None:
        """Refuse numbers of forces that do not act."""
        acting = self.run.system.forces
        for parameter in self.inputs.parameters:
            if isinstance(parameter, ForceParameter) and parameter.force not in acting:
                raise UnknownName("force", repr(parameter.force), map(repr, acting))
        timed = {name for instant in self.happenings.instants for name in instant.timed}
        for name in self.inputs.events:
            if name not in timed:
                raise UnknownName("event at a given time", name, sorted(timed))

    # -- steps ------------------------------------------------------------------------------

    def _step(self, piece: _Piece, k: int) -> Carry:
        """The map of the step that leads to the next stored state."""
        (t0, q, v), (t1, *end) = self.state(k), self.state(k + 1)
        step = self._followed(piece, k, (t0, t1), (q, v))
        step = step.then(self._projection(piece, t1, (step.q, step.v), end))
        return self._ended(piece, step, self.state(k + 1))

    def _followed(
        self, piece: _Piece, k: int, span: tuple[float, float], start: tuple[Array, Array]
    ) -> FollowedStep:
        """A step with its tangent; implicit where the run has taken it so."""
        moving = any(self._instant(t) is not None for t in self.run.t[k : k + 2].tolist())

        def slopes(t: float, q: Array, v: Array) -> AccelerationSlopes:
            found, still = self.derivatives(piece, (t, q, v)), np.zeros(len(v))
            if moving:
                still = slope(lambda s: piece.equations.acceleration(t + s, q, v), SLOPE_TIME)
            return AccelerationSlopes(
                found.ddq, still, found.ddq_dq, found.ddq_dv, self.padded(found.ddq_dp)
            )

        # Dense output inside a step is less accurate: it tells one kind of step from the other.
        enough = self._enough if span[1] == self.run.t[k + 1] else max(self._enough, _KIND)
        tableau, missed = self._method.tableau, np.inf
        if not tableau.implicit:
            step = follow_step(tableau, piece.manifold, slopes, span, start)
            missed = self._missed(piece, k, span[1], step)
        if not missed <= enough:
            if not tableau.implicit:
                tableau = get_tableau(WHEN_STIFF)
            dense, times = self.run.step(k, piece.manifold), np.interp(tableau.c, (0, 1), span)
            guess = np.array([np.append(dense.along(t), dense(t)[1]) for t in times.tolist()])
            step = follow_step(tableau, piece.manifold, slopes, span, start, guess)
            missed = self._missed(piece, k, span[1], step)
        if not missed <= enough:
            raise BadValue(
                f"the step of this run from t = {span[0]:.6g} s to {span[1]:.6g} s cannot be "
                f"followed again (it ends {missed:.2g} off): near singular poses, in which "
                "branches of the motion meet, there are no sensitivities"
            )
        return step

    def _missed(self, piece: _Piece, k: int, t: float, step: FollowedStep) -> float:
        """How far a step that is computed again ends from where it ended."""
        if not (np.isfinite(step.q).all() and np.isfinite(step.v).all()):
            return np.inf
        if t == self.run.t[k + 1]:
            _, q, v = self.state(k + 1)
        else:
            q, v = self.run.step(k, piece.manifold)(t)
        try:
            here = self._projected(piece, t, step)
        except BadValue:
            return np.inf
        off = self._group.difference(here[0], q) / self._unit
        size = max(1.0, float(np.abs(v / self._unit).max(initial=0.0)))
        turned = (here[1] - v) / self._unit / size
        return float(np.abs(np.append(off, turned)).max(initial=0.0))

    def _projected(self, piece: _Piece, t: float, step: FollowedStep) -> tuple[Array, Array]:
        """Where a projection puts the end of a step."""
        q = piece.manifold.normalize(step.q)
        if piece.projector is None:
            return q, step.v
        return piece.projector.apply(t, q, step.v)[:2]

    def _projection(
        self, piece: _Piece, t: float, before: Sequence[Array], end: Sequence[Array]
    ) -> Carry:
        """What the projection at the end of a step does to changes.

        It may have been left out where hardly anything was to be corrected: as if it had not been.
        """
        n, equations, projector = len(before[1]), piece.equations, piece.projector
        whole = np.eye(2 * n, 2 * n + 1 + self.count - len(self.inputs.events))
        if projector is not None:
            q, v = end
            known, rows = self.derivatives(piece, (t, q, v)), equations.rows
            u, none = rows.unlocked, np.zeros((len(rows), n))
            _, b, gamma = equations.terms(t, q, v)
            drift = gamma - known.violation_dq @ v if rows.moving else np.zeros(len(b))
            opened = np.column_stack([none, none, -b, known.closure_dp])
            faster = np.column_stack([none, none, drift, known.violation_dp])
            shift = self._group.difference(before[0], q)
            by_q, by_s = self._group.integrate_slopes(before[0], shift)
            whole[:n, :n] = by_q
            held, scale = rows.holonomic[:u], rows.scale[:u, None]
            J = (scale * known.J[:u])[held]
            missed = J @ whole[:n] + (scale * opened[:u])[held]
            moved = projector.moves(t, q, "position")
            whole[:n] -= by_s @ _shift(equations, q, J @ by_s, moved, missed)
            J, turned = scale * known.J[:u], known.violation_dq @ whole[:n] + faster
            missed = J @ whole[n:] + scale * turned[:u]
            moved = projector.moves(t, q, "velocity")
            whole[n:] -= _shift(equations, q, J, moved, missed)
        by_parameters = self.padded(whole[:, 2 * n + 1 :])
        return Carry.at_instant(whole[:, 2 * n], whole[:, : 2 * n], by_parameters)

    # -- events -----------------------------------------------------------------------------

    @cached_property
    def _instants(self) -> dict[float, list[Instant]]:
        """What happened, by time."""
        instants: dict[float, list[Instant]] = {}
        for instant in self.happenings.instants:
            instants.setdefault(instant.t, []).append(instant)
        return instants

    def _instant(self, t: float) -> Instant | None:
        """What has decided that a step ends at a time, unless it was planned so."""
        events = set(self.inputs.events)
        for instant in self._instants.get(t, ()):
            if instant.timed:
                return instant if events & set(instant.timed) else None
            if instant.guards:
                return instant
        return None

    def _ended(self, piece: _Piece, step: FollowedStep, end: State) -> Carry:
        """The map of a step from its tangent: what decides when it ends?"""
        instant = self._instant(end[0])
        if instant is None:
            return step.planned()
        if instant.timed:
            named = [float(name in instant.timed) for name in self.inputs.events]
            return step.planned(np.append(np.zeros(self.count - len(named)), named))
        guard = min(instant.guards, key=lambda guard: abs(guard.at(*end)))
        slopes = self.guard_slopes(piece, guard, end)
        first = np.searchsorted(self.run.t, piece.since, side="right") - 1
        last = np.searchsorted(self.run.t, end[0])
        states = [self.state(k) for k in range(int(first), int(last) + 1)]
        rates = np.diff([guard.at(*state) for state in states]) / np.diff([x[0] for x in states])
        if not abs(step.passing_rate(slopes)) > np.sqrt(SHALLOW) * np.abs(rates).max():
            self.warnings.append(
                f"'{guard.event.label}' at t = {end[0]:.6g} s happens where its guard hardly "
                "changes: a little less, and it does not happen"
            )
        others = {event.label for event in (x.event for x in instant.guards)} - {guard.event.label}
        if others:
            self.warnings.append(
                f"'{guard.event.label}' and '{', '.join(sorted(others))}' happen together at "
                f"t = {end[0]:.6g} s: a change that parts them is another sequence of events"
            )
        return step.until(slopes)

    def guard_slopes(self, piece: _Piece, guard: Guard[BoundEvent], state: State) -> GuardSlopes:
        """Derivatives of a guard."""
        bound = getattr(guard.value, "bound_row", None)
        if bound is None:
            found = guard_slopes(self._group, guard.at, state, self.count)
            return found._replace(by_parameters=self._guard_by_places(guard, state))
        (t, q, v), (equations, number, sign, axis) = state, bound(*state)
        known = derivatives_at(equations, t, q, v, None, piece.parameters)
        by_state = np.append(known.reactions_dq[number], known.reactions_dv[number])
        by_p = known.reactions_dp[number]
        if not np.isfinite(np.append(by_state, by_p)).all():
            raise BadValue(
                f"'{guard.event.label}' at t = {t:.6g} s hangs on a reaction that is not unique; "
                "it has no derivative"
            )

        def reaction(s: float) -> Array:
            return np.array(equations.motion(t + s, q, v).multipliers[number])

        by_time = float(sign * slope(reaction, SLOPE_TIME))
        by_parameters = self.padded(
            (sign * by_p - friction_slopes(piece.parameters, self.run.robot, axis))[None]
        )[0]
        return GuardSlopes(by_time, sign * by_state, by_parameters)

    def _guard_by_places(self, guard: Guard[BoundEvent], state: State) -> Array:
        """Derivatives by parameters of a guard that knows where frames of the robot are."""
        parts, robot = [np.zeros(0)], self.run.robot
        of_robot = getattr(guard.value, "of_robot", None)

        def value(numbers: Array, x: Parameter) -> Array:
            return np.array(of_robot and of_robot(x.of_robot(robot, numbers))(*state))

        for x in self.inputs.parameters:
            count, moves = len(x.labels(robot)), of_robot is not None and x.places
            parts.append(slopes(partial(value, x=x), count) if moves else np.zeros(count))
        return np.asarray(self.padded(np.concatenate(parts)[None])[0])

    def _change(self, k: int) -> Carry:
        """The map of a change of the mode or the velocity, between two states of one instant."""
        (t, q0, v), (_, q, v_plus) = self.state(k), self.state(k + 1)
        begun = [x for x in self._instants.get(t, ()) if x.begins]
        first = k
        while first and self.run.t[first - 1] == t:
            first -= 1
        before, after = (self.run.modes[self.run.mode[j]] for j in (k, k + 1))
        impacts = begun[k - first].impacts if k - first < len(begun) else ()
        if not impacts and before.without_friction != after.without_friction:
            impacts = (Impact(after.without_friction, 0.0),)
        n = len(v)
        carry = Carry(np.eye(2 * n + 1), np.zeros((2 * n + 1, self.count)))
        if not np.array_equal(q0, q):
            carry = self._met(after, t, q0, q)
        for impact in (*impacts, Impact(after, 0.0)):
            v, jump = self._hit(impact, t, q, v)
            carry = carry.then(jump)
        off = np.abs((v - v_plus) / self._unit).max(initial=0.0)
        if not off <= RETRACED * max(1.0, float(np.abs(v / self._unit).max(initial=0.0))):
            raise BadValue(
                f"what happened at t = {t:.6g} s cannot be followed again (velocities are "
                f"{off:.2g} off); there are no sensitivities of this run"
            )
        return carry

    def _hit(self, impact: Impact, t: float, q: Array, v: Array) -> tuple[Array, Carry]:
        """Velocity after a jump to what rows allow, or beyond, and the tangent of that."""
        equations, e, n = self.run.system.equations(impact.mode), impact.restitution, len(v)
        jump = jump_derivatives_at(equations, t, q, v, in_mode(self.inputs.parameters, impact.mode))
        by_time = np.zeros(2 * n)
        if equations.rows.moving:
            by_time[n:] = (1.0 + e) * slope(lambda s: equations.jump(t + s, q, v).a, SLOPE_TIME)
        by_state = np.eye(2 * n)
        by_state[n:, :n] = (1.0 + e) * jump.v_plus_dq
        by_state[n:, n:] = (1.0 + e) * jump.v_plus_dv - e * np.eye(n)
        by_p = np.vstack([np.zeros((n, self.count)), self.padded((1.0 + e) * jump.v_plus_dp)])
        return jump.v_plus + e * (jump.v_plus - v), Carry.at_instant(by_time, by_state, by_p)

    def _met(self, mode: Mode, t: float, q0: Array, q: Array) -> Carry:
        """The map of closing loops whose frames have met, which moves positions a little.

        Of curved joints what the square of that distance makes is left out.
        """
        equations, n = self.run.system.equations(mode), len(self._unit)
        projector = Projector(equations, Projection(), self._group.in_mode(mode))
        piece = _Piece(
            mode, equations, self._group, projector, in_mode(self.inputs.parameters, mode), t
        )
        still = np.zeros(n)
        moved = self._projection(piece, t, (q0, still), (q, still))
        moved.before[1 + n :], moved.parameters[1 + n :] = np.eye(n, 2 * n + 1, n + 1), 0.0
        return moved


def _shift(
    equations: EquationsOfMotion, q: Array, J: Array, moved: NDArray[np.intp] | None, values: Array
) -> Array:
    """Shifts with ``J x = values`` of some coordinates, or the shortest ones of all free ones."""
    x = np.zeros((J.shape[1], values.shape[1]))
    if moved is not None:
        x[moved] = np.linalg.lstsq(J[:, moved], values, rcond=LEAST_SQUARES)[0]
        return x
    free = np.setdiff1d(np.arange(len(x)), equations.rows.locked)
    M, rank = equations.mass(q)[np.ix_(free, free)], equations.max_rank
    cap = None if rank is None else rank - len(equations.rows.locked)
    saddle = Saddle(M, J[:, free], max_rank=cap)
    x[free] = saddle.solve(np.zeros((len(free), values.shape[1])), values)[0]
    return x
