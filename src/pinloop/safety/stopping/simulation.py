"""The course of a stop: phases one after another, until all are at rest and held, or time is up.

The only loop over the time of a stop; its steps are those of `stepping`. Between the steps all
joints that may stick or slide are decided together, which the events of `simulate`, one mode
change each, cannot do.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ...boundary.arguments import checked, public
from ...boundary.marks import NotNegative
from ...dynamics import EquationsOfMotion
from ...dynamics.stiffness import MANY, crawl_message
from ...errors import PinloopError, PinloopWarning
from ...integrate import Flow, MuntheKaas, Step, StepFailed, StepMemory, Stepper
from ...model.workspace import create_data
from ...simulation.accuracy import SpeedLoss, VelocityShift, speed_loss
from ...simulation.initial_state import obstacle
from ...simulation.limits import JointEnd
from ...simulation.modes import ModalSystem, RobotManifold
from ...simulation.stabilization import Projection, Projector
from ...simulation.trajectory import Trajectory
from ...simulation.transitions import Transition
from ...tolerances import HELD_ACCELERATION, SIGNAL_SPEED
from .crossing import (
    Crossing,
    Watched,
    WatchedCoordinates,
    first_crossing,
    shortened,
    watched_joints,
)
from .history import StopHistory
from .phase import Phase, in_the_way
from .plan import PendingInstants, Plan
from .prepared_robot import Drivetrain
from .stick_slip import PhaseStart, decide_phase
from .stop_equations import CHATTER, INSTANT, Solved, StopEquations, StopTorque, explained
from .teeth import Teeth, impact

__all__ = ["Standstill", "StopSimulation", "Trial"]

Array = NDArray[np.float64]
State = tuple[Array, Array, Array]
"""Configuration, velocity, acceleration."""

_LOOK = 500
"""So often, in states, it is asked whether a stop crawls."""


@dataclass(frozen=True, eq=False)
class StoredState:
    """A state, and the phase that it is in.

    Args:
        t: time [s].
        q: configuration, shape (nq,).
        v: velocity, shape (nv,).
        a: acceleration, shape (nv,).
        psi: step in the algebra that leads to it, shape (nv,).
        phase: number of the phase.
        solved: solution of the equations there; None if it was not at hand.
    """

    t: float
    q: Array
    v: Array
    a: Array
    psi: Array
    phase: int
    solved: Solved | None = None

    @property
    def state(self) -> tuple[float, Array, Array]:
        """Time, configuration, velocity."""
        return self.t, self.q, self.v


@public
@checked
@dataclass(frozen=True)
class Standstill:
    """When everything that a stop has to stop counts as standing.

    Args:
        speed: residual speed that is irrelevant [rad/s, m/s].
        dwell: how long it must stay below [s], where nothing holds it.
    """

    speed: NotNegative = 1e-3
    dwell: NotNegative = 0.1


@dataclass(frozen=True)
class Trial:
    """A simulation with drives of any torque, to find out how much it takes.

    Args:
        longest: longest step from the command on [s].
        enough: asked after each step whether the rest does not matter.
    """

    longest: float
    enough: Callable[[Step], bool]


class StopSimulation:
    """A stop, from the signal on.

    Args:
        equations: equations of the robot with its loops, without forces.
        train: brakes, gears, friction, drives.
        plan: what the drives follow, when brakes come and power goes.
        method: integrator.
        standstill: what counts as standing.
        ends: position limits that are end stops.
        trial: what is looked at, if that is all that the simulation is for.
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
    ) -> None:
        self.robot, self.train, self.plan = equations.robot, train, plan
        self.clock, self.standstill = PendingInstants(plan, train), standstill
        self.equations = StopEquations(equations, train)
        rows = equations.rows
        self.group = RobotManifold(self.robot)
        self.projector = Projector(equations, Projection(), self.group) if rows else None
        self.stepper = Stepper(method, np.where(self.robot.is_translation, self.robot.length, 1.0))
        self.memory = StepMemory()
        # Whether a step ends beside a bifurcation is not looked at: stops may end in flat poses.
        self.flow = Flow(self.equations.acceleration, self.group, self._project, loss=self._loss)
        self.states: list[StoredState] = []
        self.phases: list[Phase] = []
        self.transitions: list[Transition] = []
        self.log: list[tuple[float, str]] = []
        self.missed: list[float] = []  # instants at which nothing had come loose yet
        self.refuted: frozenset[int] = frozenset()  # see `PhaseStart`
        self.teeth = Teeth(train, ends)
        self.stands_since: float | None = None
        self.crawls = ""  # what damping makes steps so short, if any
        self.tiny = 0.0
        self.simple = train.single
        self._trial, self._over = trial, False
        model = self.robot.model
        self.data = create_data(model)
        kinds = pin.FrameType.JOINT, pin.FrameType.OP_FRAME
        self.points = [k for k, frame in enumerate(model.frames) if frame.type in kinds]

    def go(self, q: Array, v: Array, until: float) -> bool:
        """Run from the signal on; says whether all stand."""
        try:
            return self._run(q, v, until)
        except StepFailed as failure:
            regular = 1.0 if self.projector is None else self.projector.regularity
            last = self.states[-1].state if self.states else None
            raise explained(failure, self.equations, self.stepper.method, regular, last) from None

    def _run(self, q: Array, v: Array, until: float) -> bool:
        t = 0.0
        self.tiny = SIGNAL_SPEED * max(1.0, float(np.abs(v).max(initial=0.0)))
        q, v, a = self._begin(t, q, v, ("signal",))
        hit = self.teeth.touch(q, v, self.tiny)
        if hit or self.teeth.blocked.any():
            q, v, a = self._begin(t, q, self._hit(t, q, v, ", ".join(hit)), tuple(hit))
        h = self.stepper.first_step(v, a, until)
        while t < until and not self._over:
            changed = self._timed(t, q, v)
            if changed is not None:
                q, v, a = changed
                continue
            if self._stands(t, q, v, a):
                return True
            end = min([until, *(instant for instant in self.clock.breaks if instant > t)])
            if self._rests(v, a):
                t = end  # nothing moves before something changes
                self._store(t, q, v, a, np.zeros(self.robot.nv))
                continue
            self._look_for_stiffness(t, q, v, h, until - t)
            t, q, v, a, h = self._step(t, h, end, (q, v, a))
        return self._stands(t, q, v, a)

    # -- steps ------------------------------------------------------------------------------

    def _step(
        self, t: float, h: float, end: float, state: State
    ) -> tuple[float, Array, Array, Array, float]:
        """One step, cut short where something happens in it."""
        equations = self.equations
        equations.forget()
        if (fixed := self.stepper.method.step) is not None:
            end = min(t + fixed, end)
            step, h_next = self.stepper.fixed(self.flow, self.memory, t, end, state)[0], fixed
        else:
            longest = self.train.longest_step(state[1], state[2])
            if self._trial is not None and t >= self.clock.brake_times.command:
                longest = min(longest, self._trial.longest)
            step, h_next, self.memory = self.stepper.controlled(
                self.flow, self.memory, t, min(h, longest), end, state
            )
        violation = equations.bound_violation(between=1.0)
        crossing = first_crossing(step, self.watched, equations, violation, self.tiny)
        if crossing is None:
            self._store_step(step)
            return step.t1, step.q1, step.v1, step.a1, h_next
        if crossing.t > t:
            step, reached = self._shortened(step, crossing)
            self._store_step(step)
            if not reached:
                return step.t1, step.q1, step.v1, step.a1, h_next
            t, state = step.t1, (step.q1, step.v1, step.a1)
        if crossing.watched is None:
            return (t, *self._end_phase(t, state), h_next)
        return (t, *self._pass(t, state[0], state[1].copy(), crossing.watched), h_next)

    def _end_phase(self, t: float, state: State) -> State:
        """What is pinned comes loose, or power turns round in gears; the state after it."""
        q, v, _ = state
        breaking, reversing = (
            self.equations.breaking_away(t, q, v),
            self.equations.reversing_gears(t, q, v),
        )
        names = [f"{self.train.names[k]} comes loose" for k in breaking]
        names += [f"power turns round in the gear of {self.train.names[k]}" for k in reversing]
        if names:
            return self._begin(t, q, v, tuple(names), breaking, reversing)
        self.missed.append(t)  # by a little: the next step finds the instant
        self._look_for_chatter(t)
        return state

    def _pass(self, t: float, q: Array, v: Array, joint: Watched) -> State:
        """A speed or an angle passes the level at which it is watched; the state after it."""
        if joint.q_index is not None:
            v = self._hit(t, q, v, joint.name, self.teeth.hit(joint, t, q))
        elif not self.phase.follow[joint.column]:  # else it is where its drive is
            v[joint.column] = joint.at(t)
            if t == self.phase.sliding.start:
                self.refuted |= {joint.column}
        return self._begin(t, q, v, (joint.name,))

    def _project(self, t: float, q: Array, v: Array) -> tuple[Array, Array, bool]:
        """On the manifold, with what is pinned exactly where it belongs."""
        v = self.phase.pin_velocity(t, v)
        if self.projector is None:
            return q, v, False
        return self.projector.apply(t, q, v)

    def _shortened(self, step: Step, crossing: Crossing) -> tuple[Step, bool]:
        """The step taken again to where something happens, and whether it gets there."""
        return shortened(self.stepper, self.flow, self.equations, step, crossing, self.tiny)

    def _loss(self, step: Step, before: Array, tolerance: Array | None) -> SpeedLoss | None:
        """Why the projection at the end of a step takes more than its error, if it does."""
        # What is pinned has its speed from the ground or its drive: that is no loss.
        before = self.phase.pin_velocity(step.t1, before)
        shift = VelocityShift(step.v0, before, step.v1, tolerance, Projection().tol)
        return speed_loss(self.equations.equations, step.t1, step.q1, shift)

    def _require_kept(self, t: float, q: Array, before: Array, v: Array) -> None:
        """Raise if the rows take speed where a phase begins, in which nothing but rounding does."""
        if self.projector is None or max(map(abs, (v - before).tolist())) <= self.tiny:
            return
        tolerance = np.full(len(v), self.tiny)
        loss = speed_loss(self.equations.equations, t, q, VelocityShift(v, before, v, tolerance))
        if loss is not None:
            raise StepFailed(f"{loss} at t = {t:.6g} s", "speed taken")

    # -- what happens -----------------------------------------------------------------------

    def _begin(
        self,
        t: float,
        q: Array,
        v: Array,
        events: tuple[str, ...],
        breaking_away: Mapping[int, int] = MappingProxyType({}),
        reversing_gears: Mapping[int, int] = MappingProxyType({}),
    ) -> State:
        """Let a phase begin: solve_stick_slip all joints; returns the state in it."""
        self.log += [(t, name) for name in events]
        self._look_for_chatter(t)
        if not self.phases or t > self.phases[-1].sliding.start:
            self.refuted = frozenset()
        piece = self.plan.reference.at(t)
        drives, v = self._drives(t), v.copy()
        level = np.where(drives, piece.v(t), 0.0)
        blocked = self.teeth.blocked.copy()
        may_rest = self.train.dry | drives | (blocked > 0)
        # What rests is not taken along by a drive that hardly moves.
        met = drives & (v != 0.0) & (np.abs(v - level) <= self.tiny)
        v[may_rest & (np.abs(v) <= self.tiny)] = 0.0
        v[met] = level[met]
        ramp, slope = self.clock.brake_times.ramp(self.train, t)
        off = t >= self.clock.brake_times.off
        limited = self._limited(t)
        now = PhaseStart(
            t,
            q,
            v,
            ramp,
            slope,
            piece,
            drives,
            limited,
            off,
            blocked,
            breaking_away,
            reversing_gears,
            self.refuted,
        )
        self.phase = decide_phase(self.equations, now)
        self.teeth.leave(self.phase.stuck)
        self.equations.enter(self.phase)
        self.phases.append(self.phase)
        self.flow = replace(self.flow, manifold=self.group.in_mode(self.phase.mode))
        self.memory = self.memory.in_new_mode
        watched = watched_joints(self.phase, self.train, self.tiny)
        self.watched = WatchedCoordinates([*watched, *self.teeth.watched(self.phase.stuck)])
        if self.projector is not None:
            self.projector.lock(self.phase.pinned)
        before = v
        q, v, _ = self._project(t, q, v)
        self._require_kept(t, q, before, v)
        a = self.equations.acceleration(t, q, v)
        self._store(t, q, v, a, 0.0 * v)
        return q, v, a

    def _timed(self, t: float, q: Array, v: Array) -> State | None:
        """Let begin what begins at this instant; the state after it, None if nothing does."""
        clock = self.clock
        stand = t >= clock.reference_ends and not v[self.plan.reference.follows].any()
        names = clock.brakes_due(t, stand=stand)
        due = clock.due(t)
        self.log += clock.passed(t)
        clock.done = t
        if t == 0.0 and not self.train.teeth.any():
            due = []  # the first phase has begun with all that
        if not names and not due:
            return None
        v = self._engage_teeth(t, q, v)
        return self._begin(t, q, v, (*names, *clock.named(due)))

    def _drives(self, t: float) -> NDArray[np.bool_]:
        """Mask of the coordinates whose drive has power, and no tooth in its way."""
        power, caught = t < self.clock.brake_times.off, self.train.teeth & (self.teeth.blocked > 0)
        return np.asarray(self.plan.reference.follows & power & ~caught)

    def _limited(self, t: float) -> bool:
        """Whether the torque of the drives is limited: in a controlled stop."""
        controlled = self.plan.category.controlled and t >= self.clock.brake_times.command
        return self._trial is None and controlled

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
        endless = np.isinf(self.train.limit) | (not self._limited(t))
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
                f"{name} while drives go on as loops do not allow it: they have any torque until "
                "the stop slows them down; let the signal come where there is more room"
            ) from error
        if change.energy_loss > 0.0:
            self.transitions.append(change)
        blocked_by = obstacle(self.equations.equations, t, q, change.v_plus, change.v_minus)
        if blocked_by is not None:
            raise StepFailed(f"after '{name}' {blocked_by}", "no way on")
        return change.v_plus

    # -- the end ----------------------------------------------------------------------------

    def _stands(self, t: float, q: Array, v: Array, a: Array) -> bool:
        """Whether all stand, and nothing more will happen."""
        if not self._slow(q, v):
            self.stands_since = None
            return False
        if self.stands_since is None:
            self.stands_since = t
        waiting = self.clock.waiting(t)
        return not waiting and (self._rests(v, a) or t - self.stands_since >= self.standstill.dwell)

    def _rests(self, v: Array, a: Array) -> bool:
        """Whether nothing moves nor begins to; loops leave rounding."""
        # Most often the first number settles it, for which NumPy is slow.
        still = all(abs(x) <= self.tiny for x in v.tolist())
        return still and all(abs(x) <= HELD_ACCELERATION for x in a.tolist())

    def _look_for_stiffness(self, t: float, q: Array, v: Array, h: float, left: float) -> None:
        """Take damping exactly into the steps where the stop crawls; else warn, once."""
        if (
            self.crawls
            or self.flow.decay is not None
            or left < MANY * h
            or len(self.states) % _LOOK != _LOOK - 1
        ):
            return
        damping = self.equations.stiffest_damping(t, q, v)
        message = damping and crawl_message(damping, self.stepper.method, left, h)
        method = self.stepper.method
        if message and method.exact_damping is None and method.tableau.goes_ahead:
            self.flow = replace(self.flow, decay=self.equations.decay)
        elif message:
            self.crawls = f"robot '{self.robot.name}' at t = {t:.6g} s: {message}"
            warnings.warn(self.crawls, PinloopWarning, stacklevel=7)

    def _look_for_motion(self, step: Step) -> None:
        """What moved in a step has not stood since before, though it may stand at both ends."""
        most = self.standstill.speed * (step.t1 - step.t0)
        if any(abs(way) > most for way in step.psi[self.simple].tolist()):
            self.stands_since = None

    def _slow(self, q: Array, v: Array) -> bool:
        """Whether no joint with one axis, and no joint or frame in space, moves noticeably."""
        limit = self.standstill.speed
        if any(abs(x) > limit for x in v[self.simple].tolist()):
            return False
        if self.simple.all():
            return True
        model, data = self.robot.model, self.data
        pin.forwardKinematics(model, data, q, v)
        pin.updateFramePlacements(model, data)
        return all(
            np.linalg.norm(pin.getFrameVelocity(model, data, k, pin.LOCAL).linear) <= limit
            for k in self.points
        )

    def _look_for_chatter(self, t: float) -> None:
        recent = [name for time, name in self.log if t - time <= INSTANT]
        missed = sum(t - time <= INSTANT for time in self.missed)
        if len(recent) + missed > CHATTER:
            names = ", ".join(dict.fromkeys(recent[-10:]))
            text = f"{len(recent) + missed} changes within a millisecond"
            text += f" ({names})" if names else ""
            if missed:
                text += (
                    ": what it takes to hold the joints jumps from one instant to the next, as it "
                    "does where loops come into a singular configuration, behind which the motion "
                    "is not determined; look whether joints are beyond their limits there"
                )
            raise StepFailed(text, "chatter")

    # -- what is stored -----------------------------------------------------------------------

    def _store_step(self, step: Step) -> None:
        self._store(step.t1, step.q1, step.v1, step.a1, step.psi)
        self._look_for_motion(step)
        self._over = self._trial is not None and self._trial.enough(step)

    def _store(self, t: float, q: Array, v: Array, a: Array, psi: Array) -> None:
        last = self.equations.last
        solved = last if last is not None and last.a is a else None
        state = StoredState(t, q.copy(), v.copy(), a, psi, len(self.phases) - 1, solved)
        self.states.append(state)

    def history(self, system: ModalSystem, message: str) -> StopHistory:
        """What has happened, as data.

        Args:
            system: equations by mode of the robot with all its rotors.
            message: how it has ended.
        """
        states = self.states
        run = Trajectory(
            robot=system.robot,
            t=np.array([state.t for state in states]),
            q=np.array([state.q for state in states]),
            v=np.array([state.v for state in states]),
            a=np.array([state.a for state in states]),
            psi=np.array([state.psi for state in states])[1:],
            # Every phase is a mode of its own, so that both states of each change are kept apart.
            mode=np.array([state.phase for state in states]),
            modes=tuple(phase.mode for phase in self.phases),
            message=message,
            system=system,
            forces=tuple((StopTorque(self.train, phase),) for phase in self.phases),
            transitions=tuple(self.transitions),
            events=tuple(sorted(self.log, key=lambda event: event[0])),
            evaluations=self.equations.evaluations,
            rejected=self.stepper.rejected,
        )
        return StopHistory(
            robot=self.robot,
            train=self.train,
            plan=self.plan,
            brake_times=self.clock.brake_times,
            run=run,
            phases=tuple(self.phases),
            ends=self.teeth.ends,
            method=self.stepper.method,
            tiny=self.tiny,
            slow=self.standstill.speed,
            slow_since=self.stands_since,
        )
