"""The course of a stop: phases one after another, until all are at rest and held, or time is up.

In a phase the same joints stick, follow their drives, or slide. Where one ends, all joints are
decided together, whatever ends it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from ...boundary.marks import Array
from ...dynamics import EquationsOfMotion
from ...dynamics.stiffness import StiffnessNotes
from ...errors import PinloopError
from ...integrate import (
    MANY,
    TURN,
    Ahead,
    Change,
    Chatter,
    EveryStep,
    Flow,
    Guard,
    Guards,
    HybridIntegrator,
    HybridState,
    ManySteps,
    MuntheKaas,
    NoBranch,
    Recorded,
    Segment,
    Step,
    StepFailed,
    Stepper,
)
from ...simulation.accuracy import SpeedLoss, speed_loss
from ...simulation.initial_state import obstacle
from ...simulation.limits import JointEnd
from ...simulation.modes import ModalSystem, RobotManifold
from ...simulation.passages import Passage
from ...simulation.stabilization import Projection, Projector
from ...simulation.trajectory import Trajectory
from ...simulation.transitions import Transition
from ...tolerances import SIGNAL_SPEED, Regularity
from .drivetrain import Drivetrain
from .failures import CHATTER, INSTANT, chatter_message, explained
from .history import StopHistory
from .native_phases import NativePhases
from .phase import Phase, PhaseEvent, Watched, in_the_way, watched_joints
from .plan import PendingInstants, Plan
from .standstill import Standstill, StandstillWatch
from .stick_slip import PhaseStart, decide_phase
from .stop_equations import StopEquations, StopTorque
from .teeth import Teeth, impact

State = HybridState[Phase]

_PROJECTION = Projection()
_ANY_DRIVE = 100.0
"""A drive that needs so many times its torque goes on as loops do not allow it."""


@dataclass(frozen=True)
class Trial:
    """A simulation with drives of any torque, to find out how much it takes.

    Args:
        longest: longest step [s].
        enough: asked after each step whether the rest does not matter.
    """

    longest: float
    enough: Callable[[Step], bool]


class StopSimulation:
    """A stop, from the signal on, which a `HybridIntegrator` steps.

    Args:
        equations: equations of the robot with its loops, without forces.
        train: brakes, gears, friction, drives.
        plan: what the drives follow, when brakes come and power goes.
        method: integrator.
        standstill: what counts as standing.
        ends: position limits that are end stops.
        trial: what is looked at, if that is all that the simulation is for.
        limited: whether the torque of the drives is, also before the command.
    """

    def __init__(
        self,
        equations: EquationsOfMotion,
        train: Drivetrain,
        plan: Plan,
        method: MuntheKaas,
        standstill: Standstill,
        *,
        ends: Sequence[JointEnd] = (),
        trial: Trial | None = None,
        limited: bool = False,
    ) -> None:
        self.robot = robot = equations.robot
        self.train, self.plan = train, plan
        self.clock = PendingInstants(plan, train)
        self.standing = StandstillWatch(robot, train.single, standstill)
        self.equations = StopEquations(equations, train)
        self.group = RobotManifold(robot)
        self._plain = robot.nq == robot.nv and not equations.rows
        rows = equations.rows
        self.projector = Projector(equations, _PROJECTION, self.group) if rows else None
        self._native = NativePhases.of(self.equations, method, self.projector)
        self.stepper = Stepper(method, np.where(robot.is_translation, robot.length, 1.0))
        self._stiffness = StiffnessNotes(robot, method)
        projector = self.projector
        self._flow = Flow(
            self.equations.acceleration,
            self.group,
            self._project,
            projector,
            None if projector is None else self._on_branch,
            None if projector is None else self._loss,
            fine=True,
        )
        self._many = ManySteps(self._take_many, self._record_many, watches=True)
        # What is looked for: guards are made of it where Python looks.
        self._watched: dict[Phase, tuple[list[Watched], bool] | Guards[PhaseEvent]] = {}
        self.recording = EveryStep(robot.nq, robot.nv)
        self.passages: list[Passage | None] = []  # what these states have followed
        self.last: tuple[float, Array, Array] | None = None
        self.phases: list[Phase] = []
        self.causes: list[tuple[PhaseEvent, ...]] = []  # what began each of them
        self.transitions: list[Transition] = []
        self.log: list[tuple[float, str]] = []
        self._engines = set[str]()  # of the steps of all phases
        self.refuted: frozenset[int] = frozenset()  # see `PhaseStart`
        self.teeth = Teeth(train, ends)
        self._touching: list[str] | None = None  # end stops that joints run into from the start on
        self.tiny = 0.0
        self._none = np.zeros(robot.nv, dtype=bool)
        self._trial, self._over, self._at_rest = trial, False, False
        begins = plan.category.controlled and trial is None
        ideal_until = plan.brake_times.command if begins else np.inf
        self._limited_from = 0.0 if limited else ideal_until

    def go(self, q: Array, v: Array, until: float, start: float = 0.0) -> bool:
        """Run from the signal on, or from a later start; says whether all stand."""
        chatter = Chatter(INSTANT, CHATTER, chatter_message)
        integrator = HybridIntegrator(self, self.stepper, (start, until), chatter)
        self._until = until
        self.tiny = SIGNAL_SPEED * max(1.0, float(np.abs(v).max(initial=0.0)))
        self.standing.tiny = self.tiny
        try:
            if self.projector is not None:
                self.projector.begin(start, q)
            phase, q, v = self._decided(start, q, v, ("signal",))
            self.causes.append(())
            hit = self.teeth.touch(q, v, self.tiny)
            if hit or self.teeth.blocked.any():
                self._touching = hit
            end = integrator.run(integrator.begin(q, v, phase))
            return self._at_rest or (not self._over and self._stands(end))
        except StepFailed as failure:
            regular = 1.0 if self.projector is None else self.projector.regularity
            method = self.stepper.method
            raise explained(failure, self.equations, method, regular, self.last) from None

    # -- what the loop over time asks for -------------------------------------------------------

    def flow(self, mode: Phase) -> Flow:
        """See `HybridSystem`; the motion of the phase that was entered last."""
        return self._flow

    def guards(self, mode: Phase) -> Guards[PhaseEvent]:
        """See `HybridSystem`."""
        known = self._watched[mode]
        if not isinstance(known, Guards):
            known = self._watched[mode] = Guards(self._make_guards(mode, *known))
        return known

    def _make_guards(
        self, phase: Phase, watched: Sequence[Watched], bounded: bool
    ) -> list[Guard[PhaseEvent]]:
        equations = self.equations
        guards: list[Guard[PhaseEvent]] = [joint.guard(self.tiny) for joint in watched]
        if bounded:
            guards.append(
                Guard(
                    "bound passed",
                    equations.passed,
                    1,
                    one_sided=True,
                    slack=0.0,
                    in_reach=self._bound_in_reach,
                    accuracy=lambda: equations.accuracy,
                    enough=1e-3 * self.tiny,
                    kinked=phase.redundant,
                )
            )
        return guards

    def ahead(self, state: State) -> Ahead | None:
        """See `HybridSystem`."""
        t, _, v, a = state[:4]
        self._at_rest = self._at_rest or self._stands(state)
        if self._over or self._at_rest:
            return None
        end = min([instant for instant in self.clock.breaks if instant > t], default=np.inf)
        if self.standing.rests(v, a):
            return Ahead(end, rests=True)
        self.equations.forget()
        longest = self.train.longest_step(v, a)
        if self._trial is not None:
            longest = min(longest, self._trial.longest)
        return Ahead(end, longest)

    def due(self, state: State, *, begun: bool) -> list[PhaseEvent]:
        """See `HybridSystem`."""
        t, passed, clock = state.t, state.passed, self.clock
        due: list[PhaseEvent] = []
        if self._touching is not None:
            due.append("touch")
        if clock.due(passed, t) or clock.passed(passed, t) or self._brakes_due(state):
            due.append("time")
        return due

    def handle(self, state: State, events: Sequence[PhaseEvent]) -> Change[Phase]:
        """See `HybridSystem`; all joints are decided together, whatever happens to one of them."""
        t, q, v = state[:3]
        names, changes = [], False
        reversing: dict[int, int] = {}
        if "bound passed" in events:
            reversing = self.equations.reversing_gears(t, q, v)
            loose = self.equations.breaking_away(t, q, v)
            names += [f"{self.train.names[k]} comes loose" for k in loose.nonzero()[0].tolist()]
            names += [f"power turns round in the gear of {self.train.names[k]}" for k in reversing]
        v = v.copy()
        # Where a drive is at rest a joint meets it when it comes to rest.
        reached = {x.column: x for x in reversed(events) if isinstance(x, Watched)}.values()
        for joint in reached:
            if joint.q_index is None and not self.phase.follow[joint.column]:
                v[joint.column] = joint.at(t)  # else it is where its drive is
                if t == self.phase.sliding.start:
                    self.refuted |= {joint.column}
        hit = [joint for joint in reached if joint.q_index is not None]
        if hit:
            names_hit = ", ".join(joint.name for joint in hit)
            v = self._hit(t, q, v, names_hit, self.teeth.hit(hit, t, q))
        names += [joint.name for joint in reached]
        if self._touching is not None:
            names += self._touching
            v, self._touching, changes = self._hit(t, q, v, ", ".join(names)), None, True
        if "time" in events:
            named, due = self._come(state)
            names += named
            if named or due:
                v, changes = self._engage_teeth(t, q, v), True
            elif len(events) == 1:
                return Change(state.mode, q, v, begins=False)
        if not (names or changes):
            # By a little: the next step finds the instant.
            return Change(state.mode, q, v, begins=False, names=("",))
        phase, q, v = self._decided(t, q, v, tuple(names), reversing)
        self.causes.append(tuple(events))
        return Change(phase, q, v, begins=True, names=tuple(names))

    def record(self, state: State, step: Step | None) -> None:
        """See `HybridSystem`."""
        t, q, v, a = state[:4]
        self.passages.append(self.equations.passage)
        psi, a0, inner = (step.psi, step.a0, step.bends) if step else (None, None, None)
        self.recording.add(Recorded(t, q, v, a, len(self.phases) - 1, psi, None, inner, a0))
        self.last = t, q, v
        if step is not None:
            self.standing.look(step)
            left = self._until - t, step.t1 - step.t0
            damping = partial(self.equations.stiffest_damping, t, q, v)
            if note := self._stiffness.look(t, state.memory.stiff, damping, left):
                self.log.append((t, note))
            self._over = self._trial is not None and self._trial.enough(step)
            self._require_drivable(t, q, v, a)

    def _take_many(
        self,
        start: tuple[float, float, float, float, float],
        state: tuple[Array, Array, Array],
        _: list[float],
        asked: list[int],
    ) -> Segment | None:
        """See `ManySteps`; one by one where each is looked at."""
        if self._native is None or self.equations.passage is not None:
            return None
        looks = self._trial or self.standing.since is not None or self.train.has_peaks
        return self._native.take(start, state, asked, 1 if looks else MANY)

    def _record_many(self, segment: Segment) -> None:
        """Take notice of steps that the kernel has taken; only the last one ends slow."""
        t, a = float(segment.t[-1]), segment.a[-1]
        if self.projector is not None:
            self.projector.regularity = float(segment.notes[-1, 2])
        self.passages += [None] * len(segment)
        self.recording.extend(segment, len(self.phases) - 1)
        self.equations.evaluations += int(segment.counts[:, 0].sum())
        self.last = t, segment.q[-1], segment.v[-1]
        if self.standing.since is not None:  # then each is looked at by itself
            self.standing.look(segment.step(0))
        if self._trial is not None:
            self._over = self._trial.enough(segment.step(0))
        self._require_drivable(*self.last, a)

    def _require_drivable(self, t: float, q: Array, v: Array, a: Array) -> None:
        """Raise if drives go on with so much torque that the loops do not let them."""
        command, follow = self.clock.brake_times.command, self.phase.follow
        path = self._trial is not None and t > command  # may take any torque
        if self.projector is None or path or not self.overdriven:
            return
        solved = self.equations.solution(a) or self.equations.solve(t, q, v)
        limit = self.train.limit[follow]
        if (np.abs(solved.holding_torque[follow]) > _ANY_DRIVE * limit).any():
            raise StepFailed(f"drives would need {_ANY_DRIVE:g} times their torque", "overdriven")

    # -- steps ------------------------------------------------------------------------------

    def _project(self, t: float, q: Array, v: Array) -> tuple[Array, Array, bool]:
        """On the manifold, with what is pinned exactly where it belongs."""
        v = self.phase.pin_velocity(t, v)
        if self.projector is None:
            return q, v, False
        native = self._native if self._flow.many else None
        return (native and native.project(q, v)) or self.projector.apply(t, q, v)

    def _project_in(
        self, passage: Passage, t: float, q: Array, v: Array
    ) -> tuple[Array, Array, bool]:
        """The same on a branch near a singular pose."""
        self.equations.follow(passage)
        v, pinned = self.phase.pin_velocity(t, v), np.flatnonzero(self.phase.pinned)
        there, v = passage.project(t, q, v, pinned)
        manifold = self._flow.manifold
        q = manifold.integrate(q, manifold.difference(q, there))
        assert self.projector is not None
        self.projector.look(t, q)
        return q, v, True

    def _on_branch(self, t: float, q: Array, v: Array) -> Flow:
        """The motion beside a singular pose, on the branch of a state; at rest, of its loads."""
        passage = self.equations.passage
        if passage is None:
            moves = np.abs(v).max() > self.tiny
            along = v if moves else self.equations.solve(t, q, v).a
            if not moves and self.standing.rests(v, along):
                raise NoBranch("what rests is moved along no branch")
            assert self.projector is not None
            is_near = self.projector.regularity_at(t, q) < Regularity.AWAY
            if is_near and self.projector.regularity_unlocked(t, q) > Regularity.AWAY:
                raise NoBranch("only what is pinned makes the rows depend there")
            passage = self.equations.passage_of(t, q, along)
            self.equations.follow(passage)
        return replace(
            self._flow,
            acceleration=partial(self.equations.acceleration_in, passage),
            project=partial(self._project_in, passage),
            branch=None,
            loss=None,
            many=None,
        )

    def _look_for_branch(self, t: float, q: Array, v: Array) -> None:
        """Decide on the branch that is followed, or that a state beside a singular pose is on."""
        self.equations.leave_untold(t, q, v)
        projector = self.projector
        if projector is None or self.equations.passage or projector.regularity > Regularity.AWAY:
            return
        if not self.stepper.leads(self._flow, t, q, v):
            return
        # Of what is at rest loads tell the branch, once it is decided what holds it.
        if projector.regularity_unlocked(t, q) < Regularity.NEAR and np.abs(v).max() > self.tiny:
            with suppress(NoBranch):
                self._on_branch(t, q, v)

    def _loss(self, step: Step, before: Array, tolerance: Array | None) -> SpeedLoss | None:
        """Why the projection at the end of a step takes more than its error, if it does."""
        # What is pinned has its speed from the ground or its drive: that is no loss.
        before = self.phase.pin_velocity(step.t1, before)
        v, slack = (step.v0, before, step.v1), _PROJECTION.tol
        if self.projector is not None:
            slack /= max(self.projector.regularity, Regularity.AT)
        return speed_loss(self.equations.equations, step.t1, step.q1, v, tolerance, slack)

    def _require_kept(self, t: float, q: Array, before: Array, v: Array) -> None:
        """Raise if the rows take speed where a phase begins, in which nothing but rounding does."""
        if self.projector is None or self.equations.passage:
            return
        if (loss := self._taken(t, q, before, v)) is not None:
            raise StepFailed(f"{loss} at t = {t:.6g} s", "speed taken")

    def _taken(self, t: float, q: Array, before: Array, v: Array) -> SpeedLoss | None:
        """What a projection has taken of the speed, if that is more than rounding."""
        if not max(map(abs, (v - before).tolist()), default=0.0) > self.tiny:
            return None
        tolerance = np.full(len(v), self.tiny)
        return speed_loss(self.equations.equations, t, q, (v, before, v), tolerance)

    def _bound_in_reach(self, step: Step) -> bool:
        """Whether what the phase rests on may end in a step, from what its stages have seen."""
        if self.equations.bound_violation(between=1.0) > 0.0:
            return True
        return float(np.abs(step.polynomial).sum()) > TURN

    # -- what happens -----------------------------------------------------------------------

    def _brakes_due(self, state: State) -> str:
        """Why brakes are commanded at a state, see `PendingInstants`."""
        if not self.clock.brakes_wait:
            return ""
        t, v, reference = state.t, state.v, self.plan.reference
        stand = t >= self.clock.reference_ends and not v[reference.follows].any()
        return self.clock.brakes_due(t, stand=stand)

    def _come(self, state: State) -> tuple[list[str], list[float]]:
        """The instants that have come at a state, by their names, and those that change anything.

        Brakes are commanded if it is time for that.
        """
        t, clock, names = state.t, self.clock, []
        if why := self._brakes_due(state):
            clock.command_brakes(t)
            names.append(why)
        due = clock.due(state.passed, t)
        self.log += clock.passed(state.passed, t)
        if t == 0.0 and not self.train.teeth.any():
            due = []  # the first phase has begun with all that
        return [*names, *clock.named(due)], due

    def _decided(
        self,
        t: float,
        q: Array,
        v: Array,
        events: tuple[str, ...],
        reversing_gears: Mapping[int, int] = MappingProxyType({}),
    ) -> tuple[Phase, Array, Array]:
        """The phase that begins: all joints are decided together; and the state in it."""
        self.log += [(t, name) for name in events]
        if not self.phases or t > self.phase.sliding.start:
            self.refuted = frozenset()
        piece, drives, blocked = self.plan.reference.at(t), self._drives(t), self.teeth.blocked
        blocked, (ramp, slope) = blocked.copy(), self.clock.ramp(t)
        small = np.abs(v) <= self.tiny
        # Most often what comes to rest is at rest exactly, and no drives are on.
        if any(drives.tolist()) or any((small & (v != 0.0)).tolist()):
            exact = small & (self.train.resists(ramp, slope) | drives | (blocked > 0))
            # What rests is not taken along by a drive that hardly moves.
            level = piece.v(t)
            met = drives & (v != 0.0) & (np.abs(v - level) <= self.tiny)
            speeds = np.where(met, level, np.where(exact, 0.0, v))
            q, v = self._with_exact(t, q, v, speeds, exact | met)
        now = PhaseStart(
            t,
            q,
            v,
            ramp,
            slope,
            piece,
            drives,
            t >= self._limited_from,
            t >= self.clock.brake_times.off,
            blocked,
            reversing_gears,
            self._slipped(q),
            self.refuted,
        )
        self._look_for_branch(t, q, v)
        phase = decide_phase(self.equations, now)
        self._enter(phase, (t, q, v))
        if self.projector is None:
            return phase, q, v  # what is pinned has exactly its speed
        before, passage = v, self.equations.passage
        project = self._project if passage is None else partial(self._project_in, passage)
        q, v, _ = project(t, q, v)
        self._require_kept(t, q, before, v)
        return phase, q, v

    def _slipped(self, q: Array) -> Array:
        """By how much brakes have slipped when a phase ends."""
        if not (self.phases and self.train.fades):
            return np.zeros(self.robot.nv)
        last = self.phase.sliding
        return np.asarray(last.slipped + last.heating * (self.train.travel(q) - last.place))

    def _with_exact(
        self, t: float, q: Array, v: Array, speeds: Array, some: NDArray[np.bool_]
    ) -> tuple[Array, Array]:
        """A state with speeds of which some are exact, and the others consistent with them.

        So what is decided is decided in the state in which the motion goes on: even rounding of a
        speed matters where others are fast. At a dead centre, where what turns is the fastest of
        all, others must not be consistent with it: they would have to stop.
        """
        if self.projector is None or self.equations.passage or not (speeds != v).any():
            return q, speeds
        self.projector.lock(some)
        moved, consistent, _ = self.projector.apply(t, q, speeds)
        if self._taken(t, moved, speeds, consistent) is not None:
            return q, speeds
        return moved, consistent

    def _enter(self, phase: Phase, start: tuple[float, Array, Array]) -> None:
        """Set up all that depends on the phase, which begins at a state."""
        equations = self.equations
        self.teeth.leave(phase.stuck)
        equations.enter(phase)
        self.phase = phase
        self.phases.append(phase)
        watched = watched_joints(phase, self.train, self.tiny) + self.teeth.watched(phase.stuck)
        native, slow = self._native, self.standing.standstill.speed
        many = self._many if native and native.enter(start, watched, self.tiny, slow) else None
        # Of a vector space what does not move stays to the last bit by itself.
        manifold = self.group if self._plain else self.group.in_mode(phase.mode)
        if manifold is not self._flow.manifold or many is not self._flow.many:
            self._flow = replace(self._flow, manifold=manifold, many=many)
        self._engines.add("native" if many else "python")
        self._watched = {known: self._watched[known] for known in self.phases[-2:-1]}
        self._watched[phase] = watched, equations.bounded
        if self.projector is not None:
            self.projector.lock(phase.pinned)

    def _drives(self, t: float) -> NDArray[np.bool_]:
        """Mask of the coordinates whose drive has power, and no tooth in its way."""
        if t >= self.clock.brake_times.off:
            return self._none
        caught = self.train.teeth & (self.teeth.blocked > 0)
        return np.asarray(self.plan.reference.follows & ~caught)

    @property
    def overdriven(self) -> bool:
        """Whether drives go on with any torque, though it is known how much they have."""
        if not self.phases or self.phase.sliding.limited:
            return False
        return bool(np.isfinite(self.train.limit[self.phase.follow]).any())

    def _engage_teeth(self, t: float, q: Array, v: Array) -> Array:
        """Let pawls fall whose time has come; velocity after those without play have caught."""
        begin, _ = self.clock.brake_times.engagement(self.train)
        caught = self.teeth.fall(begin <= t, q, v)
        return self._hit(t, q, v, "teeth engage") if caught else v

    def _hit(
        self, t: float, q: Array, v: Array, name: str, blocked: NDArray[np.int64] | None = None
    ) -> Array:
        """Velocity after teeth or stops have been hit, which block joints as they do in general."""
        blocked = self.teeth.blocked if blocked is None else blocked
        mode = self.phase.mode
        endless = np.isinf(self.train.limit) | (t < self._limited_from)
        wanted = self.plan.reference.at(t).v(t)
        strong = self._drives(t) & endless
        pressed = in_the_way(blocked, wanted)
        driven = strong & (v == wanted) & ~pressed
        blocked = np.where(strong & pressed, 3, blocked)  # between its stop and its drive
        try:
            change = impact(self.equations, t, q, v, blocked, driven, (mode, mode), (name,))
        except PinloopError as error:
            if not driven.any():
                raise
            raise PinloopError(
                f"{name} while drives go on as loops do not allow it: without drive_torque they "
                "have any torque; give it, or let the signal come where there is more room"
            ) from error
        if change.energy_loss > 0.0:
            self.transitions.append(change)
        blocked_by = None
        if self.equations.passage is None:
            blocked_by = obstacle(self.equations.equations, t, q, change.v_plus, change.v_minus)
        if blocked_by is not None:
            raise StepFailed(f"after '{name}' {blocked_by}", "no way on")
        return change.v_plus

    # -- the end ----------------------------------------------------------------------------

    def _stands(self, state: State) -> bool:
        """Whether all stand, and nothing more will happen."""
        return self.standing.holds(*state[:4]) and not self.clock.waiting(state.t)

    def history(self, system: ModalSystem, message: str) -> StopHistory:
        """What has happened, as data.

        Args:
            system: equations by mode of the robot with all its rotors.
            message: how it has ended.
        """
        run = Trajectory(
            robot=system.robot,
            # Every phase is a mode of its own, so that both states of each change are kept apart.
            **self.recording.states()._asdict(),
            modes=tuple(phase.mode for phase in self.phases),
            message=message,
            system=system,
            forces=tuple((StopTorque(self.train, phase),) for phase in self.phases),
            transitions=tuple(self.transitions),
            events=tuple(sorted(self.log, key=lambda event: event[0])),
            evaluations=self.equations.evaluations,
            rejected=self.stepper.rejected,
            engine=" and ".join(sorted(self._engines)),
        )
        history = StopHistory(
            robot=self.robot,
            train=self.train,
            plan=self.plan,
            brake_times=self.clock.brake_times,
            run=run,
            phases=tuple(self.phases),
            branches=tuple(None if x is None else x.start for x in self.passages),
            ends=self.teeth.ends,
            method=self.stepper.method,
            tiny=self.tiny,
            slow=self.standing.standstill.speed,
            slow_since=self.standing.since,
            causes=tuple(self.causes),
        )
        history.tables.update(self.equations.known_tables)
        history.passages.update(self.equations.passages)
        return history
