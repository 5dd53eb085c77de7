"""The only loop over time: step, look for events, change the mode, keep what happened."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from ..constraints.closure import Constraints
from ..dynamics import EquationsOfMotion
from ..dynamics.independence import INFINITE
from ..dynamics.stiffness import (
    MANY,
    crawl_message,
    decay_at,
    is_too_stiff,
    limit_message,
    stiffest_damping,
)
from ..errors import NotFinite, PinloopError, PinloopWarning, SimulationFailed
from ..integrate import (
    Decay,
    Flow,
    MuntheKaas,
    Recording,
    Step,
    StepFailed,
    StepMemory,
    Stepper,
)
from ..model.mechanism import blamed_links
from ..tolerances import CHATTER, DUE, SAME, TORN, WHOLE_STEPS
from .accuracy import Accuracy, SpeedLoss, VelocityShift, speed_loss
from .endstops import EndStopContacts
from .events import BoundEvent, CloseLoop, Stop, Touch
from .initial_state import obstacle
from .limits import JointEnd, LimitWatch
from .modes import ModalSystem, Mode, RobotManifold
from .stabilization import Projection, Projector
from .trajectory import Trajectory
from .transitions import Transition, make_transition
from .watching import Watcher, refined_root

__all__ = ["Run"]

Array = NDArray[np.float64]
Report = Callable[[float], None]

_WATCHED = 8
"""Loops stay torn once they are: it is enough to look at every eighth step, and at the end."""
_CORRECTIONS = 3
"""How often the root of an event is corrected by the state that a step to it gives."""
_LOOK = 500
"""So often, in steps, it is asked whether a run crawls."""
_CHATTER = 100
"""So many events within a millionth of the run are chatter."""


class Run:
    """A run: where it is, how large the next step is, what is kept.

    Args:
        system: equations of motion by mode.
        method: integrator.
        stabilization: projection, or None.
        span: start and end [s].
        events: what to look for.
        kept: what is kept, still empty.
        ends: position limits.
        contacts: those of them that are end stops; None if there are none.
    """

    def __init__(
        self,
        system: ModalSystem,
        method: MuntheKaas,
        stabilization: Projection | None,
        span: tuple[float, float],
        events: list[BoundEvent],
        recording: Recording,
        ends: tuple[JointEnd, ...],
        contacts: EndStopContacts | None,
    ) -> None:
        self.system, self.method, self.stabilization = system, method, stabilization
        self.start, self.until = span
        robot = system.robot
        self._unit = np.where(robot.is_translation, robot.length, 1.0)
        self._group = RobotManifold(robot)
        self.stepper, self.memory = Stepper(method, self._unit), StepMemory()
        self.exact_damping = bool(method.exact_damping)
        own = contacts.events if contacts else []
        self.watcher = Watcher([*events, *own], self.start)
        self.evaluations = self.projected = self.steps = 0
        self.kept = recording
        self.modes: list[Mode] = []
        self.transitions: list[Transition] = []
        self.log: list[tuple[float, str]] = []
        self.ends, self.contacts = ends, contacts
        self.happened: list[tuple[float, str]] = []
        self._warned = False
        self._state = self.start, robot.neutral, np.zeros(robot.nv)

    def go(self, mode: Mode, q: Array, v: Array, report: Report) -> Trajectory:
        """Step until the end, a failure, or Ctrl-C."""
        message = "done"
        self.passing = LimitWatch(self.ends, self.start, q)
        self._enter(mode, self.start, q, v)
        try:
            message = self._steps(q, v, report)
        except KeyboardInterrupt:
            if self.kept.last is None:
                raise
            message = f"interrupted at t = {self.kept.last:.6g} s"
            warnings.warn(message, PinloopWarning, stacklevel=3)
        except StepFailed as failure:
            raise self._failed(str(failure) + self._why(failure.reason), failure.reason) from None
        except NotFinite as error:
            raise self._failed(f"{error}{self._why('not finite')}", "not finite") from None
        except PinloopError as error:
            text = f"{error}{blamed_links(error, self.system.robot)}"
            raise self._failed(text, type(error).__name__) from error
        except Exception as error:  # whatever it is, the run so far is not lost
            name = type(error).__name__
            raise self._failed(f"{name}: {error}", name) from error
        return self._trajectory(message)

    # -- modes ------------------------------------------------------------------------------

    def _enter(self, mode: Mode, t: float, q: Array, v: Array) -> None:
        """Set up everything that depends on the mode."""
        self.mode = mode
        self.system.current = mode
        self.equations: EquationsOfMotion = self.system.begin(mode, t, q, v)
        self._along = self.equations.right_hand_side()
        self._right_hand_side = self._along if self.method.step is None else self._checked
        self.manifold = self._group.in_mode(mode)
        self.memory = self.memory.in_new_mode
        self.flow = Flow(
            self._right_hand_side,
            self.manifold,
            self._project,
            self._regularity,
            None if self.stabilization is None else self._loss,
            self._decay if self.exact_damping else None,
        )
        self.projector = (
            None
            if self.stabilization is None
            else Projector(self.equations, self.stabilization, self.manifold)
        )
        rows = self.equations.rows
        self.watch = None if rows.whole is rows.loops else rows.whole
        if mode not in self.modes:
            self.modes.append(mode)

    def _change(
        self, t: float, q: Array, v: Array, events: list[BoundEvent]
    ) -> tuple[Array, Array, bool]:
        """Let events happen at one instant, as one change: the state after, if it is another."""
        self._look_for_chatter(t, events)
        names = tuple(event.label for event in events if not isinstance(event.action, Touch))
        self.log += [(t, name) for name in names]
        mode = self.mode.without_contacts
        for event in sorted(events, key=lambda event: event.action.name):
            mode = event.action.apply(mode)
        touches = bool(self.contacts.at(q, mode)) if self.contacts else False
        if not touches and mode == self.mode:
            return q, v, False
        self._watch_loops(q)
        self.system.check(mode)
        q = self._met(t, q, v, events, mode)
        mode = self.system.renewed(mode, q)
        change: Transition | None
        if self.contacts and touches:
            change = self.contacts.settle(t, q, v, self.mode, mode, names)
            if change is None:
                return q, v, False
            self.log += [(t, name) for name in change.events[len(names) :]]
        else:
            change = make_transition(self.system, t, q, v, self.mode, mode, None, names)
        self.transitions.append(change)
        if change.after != self.mode:
            self._enter(change.after, t, q, change.v_plus)
        trouble = obstacle(self.equations, t, q, change.v_plus, change.v_minus)
        if trouble is not None:
            raise StepFailed(
                f"after '{', '.join(names)}' {trouble}; let it happen in another pose",
                "no way on",
            )
        return q, change.v_plus, True

    def _look_for_chatter(self, t: float, events: list[BoundEvent]) -> None:
        self.happened += [(t, event.label) for event in events]
        instant = CHATTER * (self.until - self.start)
        times = (time for time, _ in reversed(self.happened))
        recent = [*takewhile(lambda time: t - time <= instant, times)]
        if len(recent) > _CHATTER:
            history = ", ".join(dict.fromkeys(name for _, name in self.happened[-10:]))
            raise StepFailed(
                f"{len(recent)} events within {t - recent[-1]:.3g} s ({history}): they chatter; "
                "give the guards a gap between switching on and off",
                "chatter",
            )

    def _met(self, t: float, q: Array, v: Array, events: list[BoundEvent], mode: Mode) -> Array:
        """Configuration with loops closed that are about to close; they must have met."""
        closing = [event.action for event in events if isinstance(event.action, CloseLoop)]
        if not closing:
            return q
        robot = self.system.mechanism(mode.opened)
        residual = Constraints(robot, full=True)
        gaps = residual.by_name(residual.residual(q))
        for action in closing:
            if gaps[action.loop] > action.tolerance:
                raise StepFailed(
                    f"loop '{action.loop}' shall close but is open by {gaps[action.loop]:.3g} "
                    f"(m and rad; tolerance {action.tolerance:g}); bring its frames together first",
                    "loop not met",
                )
        projector = Projector(self.system.equations(mode), Projection(), self.manifold)
        return projector.position(t, q)[0]

    # -- steps ------------------------------------------------------------------------------

    def _steps(self, q: Array, v: Array, report: Report) -> str:
        t, count = self.start, 0
        self._look_for_stiffness(t, q, v, self.method.step or 0.0)
        a = self._settled(t, q, v)
        self.watcher.look(self.mode, t, q, v)
        first = self.watcher.due(t) + self.watcher.at_once(self.mode, t, q, v)
        if self.contacts:
            first += self.contacts.hits(self.contacts.at(q, self.mode))
        t, q, v, a, stopped = self._happen(t, q, v, a, first)
        h = self.stepper.first_step(v, a, self.until - t)
        while t < self.until and not stopped:
            end = min(self.until, self.watcher.next_time())
            if self.method.step is not None:
                planned = self.start + (count + 1) * self.method.step
                if end - planned < SAME * self.method.step:
                    planned = end
                step = self.stepper.fixed(self.flow, t, min(planned, end), (q, v, a))
                # Steps that events cut short do not count: t_k = t0 + k h.
                count = self._whole_steps(step.t1)
            else:
                step, h, self.memory = self.stepper.controlled(
                    self.flow, self.memory, t, h, end, (q, v, a)
                )
                if self.steps % _LOOK == _LOOK - 1 and self.until - t > MANY * h:
                    self._look_for_stiffness(t, q, v, h)
            crossing = self.watcher.first_root(t, step.t1, step)
            due: list[BoundEvent] = []
            if crossing is not None:
                root, due = crossing
                if root <= t:  # it was exactly at zero where the step started
                    t, q, v, a, stopped = self._happen(t, q, v, a, due)
                    count = self._whole_steps(t)
                    continue
                if root < step.t1:
                    h = max(h, step.t1 - root)
                    step = self._shortened(step, root, due)
                    count = self._whole_steps(step.t1)
            t, q, v, a = step.t1, step.q1, step.v1, step.a1
            self._state = t, q, v
            self._along.advance(q)
            self._keep(t, q, v, a, step)
            a = self._renew_rows(t, q, v, a)
            due += self.watcher.due(t + DUE * abs(t))
            t, q, v, a, stopped = self._happen(t, q, v, a, due)
            report(t)
        self._watch_loops(q)
        return "stopped by an event" if stopped else "done"

    def _renew_rows(self, t: float, q: Array, v: Array, a: Array) -> Array:
        """Hold the loops by other rows where sampled ones have degenerated; the acceleration."""
        mode = self.system.renewed(self.mode, q)
        if mode == self.mode:
            return a
        self._watch_loops(q)
        self._enter(mode, t, q, v)
        return self._settled(t, q, v)

    def _look_for_stiffness(self, t: float, q: Array, v: Array, h: float) -> None:
        """Take damping exactly into the steps where without it they fail, or the run crawls.

        Warn, once, where the method cannot.
        """
        self._state = t, q, v
        method = self.method
        if self.exact_damping or self._warned:
            return
        stiffest = stiffest_damping(self.equations, t, q, v)
        if stiffest is None:
            return
        message = crawl_message(stiffest, method, self.until - t, h)
        if method.exact_damping is None and method.tableau.goes_ahead:
            if message or (method.step is not None and is_too_stiff(stiffest, method)):
                self.exact_damping = True
                self.flow = replace(self.flow, decay=self._decay)
        elif message:
            self._warned = True
            name = self.system.robot.name
            message = f"robot '{name}' at t = {t:.6g} s: {message}"
            warnings.warn(message, PinloopWarning, stacklevel=6)

    def _decay(self, t: float, q: Array, v: Array) -> Decay:
        """How velocities die away in the current mode."""
        return decay_at(self.equations, t, q, v)

    def _why(self, reason: str) -> str:
        """What else is to be said of a step that failed: the damping that it could not follow."""
        if reason not in ("not finite", "step too small"):
            return ""
        t, q, v = self._state
        stiffest = stiffest_damping(self.equations, t, q, v)
        if stiffest is not None and is_too_stiff(stiffest, self.method):
            return f". {limit_message(stiffest, self.method)}; {stiffest.way_out}"
        a = np.abs(self.equations.acceleration(t, q, v) / self._unit)
        robot = self.system.robot
        fastest = max(robot.joints, key=lambda name: float(a[robot.coordinates(name).v].max()))
        return f". The largest acceleration is that of joint '{fastest}'"

    def _whole_steps(self, t: float) -> int:
        """Fixed steps up to a time; times far from zero carry the rounding of the start."""
        return int(np.floor((t - self.start) / (self.method.step or np.inf) + WHOLE_STEPS))

    def _happen(
        self, t: float, q: Array, v: Array, a: Array, due: list[BoundEvent]
    ) -> tuple[float, Array, Array, Array, bool]:
        """Let due events happen; keeps the state after a change of the mode."""
        if not due:
            return t, q, v, a, False
        self.watcher.note(due, t, q, v)
        q, v, changed = self._change(t, q, v, due)
        if changed:
            a = self._settled(t, q, v)
        self.watcher.look(self.mode, t, q, v)
        stopped = any(isinstance(event.action, Stop) for event in due)
        again = self.watcher.at_once(self.mode, t, q, v) if changed else []
        if again and not stopped:
            return self._happen(t, q, v, a, again)
        return t, q, v, a, stopped

    def _shortened(self, step: Step, root: float, events: list[BoundEvent]) -> Step:
        """A step that ends at a root inside it: taken again, so that it is as good as any step.

        The root of the dense output is corrected by what the method gives there.
        """
        start = step.q0, step.v0, step.a0
        guarded = [event for event in events if event.guard is not None]
        best: Step | None = None
        least = np.inf
        for _ in range(_CORRECTIONS):
            taken = self.stepper.fixed(self.flow, step.t0, root, start)
            if not guarded:
                return taken
            reached = taken.q1, taken.v1
            better, off = refined_root(guarded[0], root, reached, step, step.t1 - step.t0)
            # A guard that jumps has no slope to follow: its first root is the best.
            if best is not None and off >= 0.5 * least:
                break
            best, least = taken, off
            if off == 0.0 or not step.t0 < better < step.t1:
                break
            root = better
        assert best is not None
        return best

    def _settled(self, t: float, q: Array, v: Array) -> Array:
        """Acceleration at a state that no step has led to; keeps the state."""
        self.evaluations += 1
        a = self._right_hand_side(t, q, v)
        self._along.advance(q)
        self._keep(t, q, v, a)
        return a

    def _checked(self, t: float, q: Array, v: Array) -> Array:
        """Acceleration with what only fixed steps need."""
        # Not if one of them is NaN. Configurations follow velocities; Python's floats do not warn.
        if not sum(map(abs, v.tolist())) < INFINITE:
            raise NotFinite(f"the state became infinite at t = {t:.6g} s; take a smaller step")
        return self._along(t, q, v)

    def _project(self, t: float, q: Array, v: Array) -> tuple[Array, Array, bool]:
        if self.projector is None:
            return q, v, False
        self.projected += 1
        moved = self.projector.apply(t, q, v)
        if self.projected % _WATCHED == 0:
            self._watch_loops(moved[0])
        return moved

    def _loss(self, step: Step, before: Array, tolerance: Array | None) -> SpeedLoss | None:
        """Why the projection at the end of a step takes more than its error, if it does."""
        shift = VelocityShift(step.v0, before, step.v1, tolerance, self._slack)
        return speed_loss(self.equations, step.t1, step.q1, shift)

    @property
    def _method_used(self) -> MuntheKaas:
        """The method, and whether damping went exactly into its steps."""
        return replace(self.method, exact_damping=True) if self.exact_damping else self.method

    @property
    def _slack(self) -> float:
        """Residual that projections let be."""
        return 0.0 if self.stabilization is None else self.stabilization.tol

    def _regularity(self) -> float:
        """How independent the rows are at the last state; unknown where nothing is projected."""
        return 1.0 if self.projector is None else self.projector.regularity

    def _watch_loops(self, q: Array) -> None:
        """Rows that regularization dropped must stay closed by themselves."""
        if self.watch is None or self.projector is None:
            return
        residual = self.equations.residual_of(self.watch, q)
        if np.linalg.norm(residual) > TORN * max(1.0, self.system.robot.length):
            names = self.watch.by_name(residual)
            worst = max(names, key=lambda name: names[name])
            raise StepFailed(
                f"loop '{worst}' is torn apart (residual {names[worst]:.3g}) although its "
                "regularized rows are closed; simulate with regularization=False",
                "loop torn apart",
            )

    # -- what is kept -----------------------------------------------------------------------

    def _keep(self, t: float, q: Array, v: Array, a: Array, step: Step | None = None) -> None:
        number = self.modes.index(self.mode)
        if step is None:
            self.kept.add(t, q, v, a, number)
        else:
            self.steps += 1
            self.passing.look(step)
            self.kept.add(t, q, v, a, number, step.psi, partial(self._inside, step))

    def _inside(self, step: Step, t: float) -> tuple[Array, Array, Array]:
        """State and acceleration inside a step that has just been taken."""
        q, v = step(t)
        q = self.manifold.normalize(q)
        return q, v, self._right_hand_side(t, q, v)

    def _trajectory(self, message: str) -> Trajectory:
        return Trajectory(
            robot=self.system.robot,
            **self.kept.states()._asdict(),
            modes=tuple(self.modes),
            message=message,
            system=self.system,
            transitions=tuple(self.transitions),
            events=tuple(self.log),
            evaluations=self.evaluations + self.stepper.evaluations,
            rejected=self.stepper.rejected,
            accuracy=Accuracy(self._method_used, self.steps, self._slack),
            limits_passed=self.passing.passed,
        )

    def _failed(self, message: str, reason: str) -> SimulationFailed:
        last = self.kept.last
        t = self.start if last is None else last
        return SimulationFailed(
            f"robot '{self.system.robot.name}' at t = {t:.6g} s: {message}",
            trajectory=None if last is None else self._trajectory(reason),
            reason=reason,
        )
