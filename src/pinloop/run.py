"""The only loop over time: step, look for events, change the mode, keep what happened."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from .constraints import Constraints
from .dynamics import EquationsOfMotion
from .errors import BadValue, PinloopError, PinloopWarning, SimulationFailed
from .events import BoundEvent, CloseLoop, Stop
from .integrate import Attempt, MuntheKaas, Step, StepControl
from .manifold import RobotManifold
from .modes import ModalSystem, Mode, locked_columns
from .stabilization import Projection, Projector
from .trajectory import Trajectory
from .transitions import Transition, make_transition
from .watching import Watcher, refined_root

__all__ = ["Run", "sampled"]

Array = NDArray[np.float64]
Report = Callable[[float], None]

_TORN = 1e-6
"""Closure residual of the full rows at which loops count as torn."""
_CORRECTIONS = 3
"""How often the root of an event is corrected by the state that a step to it gives."""
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
    """

    def __init__(
        self,
        system: ModalSystem,
        method: MuntheKaas,
        stabilization: Projection | None,
        span: tuple[float, float],
        events: list[BoundEvent],
    ) -> None:
        self.system, self.method, self.stabilization = system, method, stabilization
        self.start, self.until = span
        robot = system.robot
        self.manifold = RobotManifold(robot)
        self.control = StepControl(method, np.where(robot.is_translation, robot.length, 1.0))
        self.watcher = Watcher(events, self.start)
        self.evaluations, self.rejected = 0, 0
        self.kept: list[tuple[float, Array, Array, Array, int]] = []
        self.psi: list[Array] = []
        self.modes: list[Mode] = []
        self.transitions: list[Transition] = []
        self.log: list[tuple[float, str]] = []

    def go(self, mode: Mode, q: Array, v: Array, report: Report) -> Trajectory:
        """Step until the end, a failure, or Ctrl-C."""
        message = "done"
        self._enter(mode, q, v)
        try:
            message = self._steps(q, v, report)
        except KeyboardInterrupt:
            if not self.kept:
                raise
            message = f"interrupted at t = {self.kept[-1][0]:.6g} s"
            warnings.warn(message, PinloopWarning, stacklevel=3)
        except _StepFailedError as failure:
            raise self._failed(str(failure), failure.reason) from None
        except PinloopError as error:
            raise self._failed(str(error), type(error).__name__) from error
        except Exception as error:  # whatever it is, the run so far is not lost
            name = type(error).__name__
            raise self._failed(f"{name}: {error}", name) from error
        return self._trajectory(message)

    # -- modes ------------------------------------------------------------------------------

    def _enter(self, mode: Mode, q: Array, v: Array) -> None:
        """Set up everything that depends on the mode."""
        self.mode = mode
        self.system.current = mode
        self.equations: EquationsOfMotion = self.system.equations(mode)
        self.system.begin(mode, q, v)
        self.locked = self.system.locked(mode)
        # A locked axis of a curved joint stands still, but its algebra coordinate does not.
        whole = [
            k
            for lock in mode.locks
            if not lock.axes
            for k in locked_columns(self.system.robot, lock)
        ]
        self.exact = self.locked & ~self.manifold.curved
        self.exact[whole] = True
        # A joint that is locked as a whole keeps its coordinates to the last bit.
        self.manifold.hold(lock.joint for lock in mode.locks if not lock.axes)
        self.projector = (
            None
            if self.stabilization is None
            else Projector(self.equations, self.stabilization, self.locked, self.manifold)
        )
        report = self.equations.robot.regularization
        reduced = report is not None and report.rows < report.full_rows
        self.watch = Constraints(self.equations.robot, full=True) if reduced else None
        if mode not in self.modes:
            self.modes.append(mode)

    def _change(
        self, t: float, q: Array, v: Array, events: list[BoundEvent]
    ) -> tuple[Array, Array]:
        """Let events happen at one instant, as one change; returns the state after."""
        for event in events:
            self.log.append((t, event.label))
        recent = [time for time, _ in self.log if t - time <= 1e-6 * (self.until - self.start)]
        if len(recent) > _CHATTER:
            history = ", ".join(dict.fromkeys(name for _, name in self.log[-10:]))
            raise _StepFailedError(
                f"{len(recent)} events within {t - recent[0]:.3g} s ({history}): they chatter; "
                "give the guards a gap between switching on and off",
                "chatter",
            )
        mode = self.mode
        for event in sorted(events, key=lambda event: event.action.name):
            mode = event.action.apply(mode)
        if mode == self.mode:
            return q, v
        self.system.check(mode)
        q = self._met(t, q, v, events, mode)
        names = tuple(event.label for event in events)
        made = make_transition(self.system, t, q, v, self.mode, mode, None, names)
        self.transitions.append(made)
        self._enter(mode, q, made.v_plus)
        return q, made.v_plus

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
                raise _StepFailedError(
                    f"loop '{action.loop}' shall close but is open by {gaps[action.loop]:.3g} "
                    f"(m and rad; tolerance {action.tolerance:g}); bring its frames together first",
                    "loop not met",
                )
        projector = Projector(
            self.system.equations(mode), Projection(), self.system.locked(mode), self.manifold
        )
        return projector.position(t, q)[0]

    # -- steps ------------------------------------------------------------------------------

    def _steps(self, q: Array, v: Array, report: Report) -> str:
        t, count = self.start, 0
        a = self._acceleration(t, q, v)
        self._keep(t, q, v, a, None)
        self.watcher.look(self.mode, t, q, v)
        first = self.watcher.due(t) + self.watcher.at_once(self.mode, t, q, v)
        t, q, v, a, stopped = self._happen(t, q, v, a, first)
        h = self.method.step or self.control.first_step(v, a, self.until - t)
        while t < self.until and not stopped:
            end = min(self.until, self.watcher.next_time())
            if self.method.step is not None:
                planned = self.start + (count + 1) * self.method.step
                if end - planned < 1e-9 * self.method.step:
                    planned = end
                t_next = min(planned, end)
                attempt = self._attempt(t, t_next - t, (q, v, a))
                # Steps that events cut short do not count: t_k = t0 + k h.
                count = self._whole_steps(t_next)
            else:
                t_next, attempt, h = self._controlled(t, h, end, (q, v, a))
            step, state = self._finish(t, t_next, (q, v, a), attempt)
            found = self.watcher.first_root(self.mode, t, t_next, step)
            due: list[BoundEvent] = []
            if found is not None:
                root, due = found
                if root <= t:  # it was exactly at zero where the step started
                    t, q, v, a, stopped = self._happen(t, q, v, a, due)
                    count = self._whole_steps(t)
                    continue
                if root < t_next:
                    h = max(h, t_next - root)
                    t_next, step, state = self._shortened(step, root, due)
                    count = self._whole_steps(t_next)
            t, (q, v, a) = t_next, state
            self._keep(t, q, v, a, step.psi)
            due += self.watcher.due(t + 1e-13 * abs(t))
            t, q, v, a, stopped = self._happen(t, q, v, a, due)
            report(t)
        return "stopped by an event" if stopped else "done"

    def _whole_steps(self, t: float) -> int:
        """Fixed steps up to a time; times far from zero carry the rounding of the start."""
        return int(np.floor((t - self.start) / (self.method.step or np.inf) + 1e-6))

    def _happen(
        self, t: float, q: Array, v: Array, a: Array, due: list[BoundEvent]
    ) -> tuple[float, Array, Array, Array, bool]:
        """Let due events happen; keeps the state after a change of the mode."""
        if not due:
            return t, q, v, a, False
        before = self.mode
        self.watcher.note(due, t, q, v)
        q, v = self._change(t, q, v, due)
        if self.mode != before:
            a = self._acceleration(t, q, v)
            self._keep(t, q, v, a, np.zeros(len(v)))
        self.watcher.look(self.mode, t, q, v)
        stopped = any(isinstance(event.action, Stop) for event in due)
        again = self.watcher.at_once(self.mode, t, q, v) if self.mode != before else []
        if again and not stopped:
            return self._happen(t, q, v, a, again)
        return t, q, v, a, stopped

    def _finish(
        self, t: float, t_next: float, state: tuple[Array, Array, Array], attempt: Attempt
    ) -> tuple[Step, tuple[Array, Array, Array]]:
        """Project the end of a step; returns the step with its end state."""
        psi, q, v, a = attempt.psi, attempt.q, attempt.v, attempt.a
        q_new, v_new, moved = self._project(t_next, q, v)
        if moved:
            shift = pin.difference(self.system.robot.model, q, q_new)
            # First order in the shift, which is as small as the error of the step.
            psi = psi + self.manifold.dexp_inv(state[0], psi, shift)
            psi[self.exact] = 0.0
            a = None
        self._watch_loops(q_new)
        a_new = self._acceleration(t_next, q_new, v_new) if a is None else a
        step = Step(self.manifold, t, t_next, *state, psi, q_new, v_new, a_new)
        return step, (q_new, v_new, a_new)

    def _shortened(
        self, step: Step, root: float, events: list[BoundEvent]
    ) -> tuple[float, Step, tuple[Array, Array, Array]]:
        """A step that ends at a root inside it: taken again, so that it is as good as any step.

        The root of the dense output is corrected by what the method gives there.
        """
        start = step.q0, step.v0, step.a0
        guarded = [event for event in events if event.guard is not None]
        best: tuple[float, Step, tuple[Array, Array, Array]] | None = None
        least = np.inf
        for _ in range(_CORRECTIONS):
            attempt = self._attempt(step.t0, root - step.t0, start)
            taken, state = self._finish(step.t0, root, start, attempt)
            if not guarded:
                return root, taken, state
            better, off = refined_root(guarded[0], root, state[:2], step, step.t1 - step.t0)
            # A guard that jumps has no slope to follow: its first root is the best.
            if best is not None and off >= 0.5 * least:
                break
            best, least = (root, taken, state), off
            if off == 0.0 or not step.t0 < better < step.t1:
                break
            root = better
        assert best is not None
        return best

    def _controlled(
        self, t: float, h: float, end: float, state: tuple[Array, Array, Array]
    ) -> tuple[float, Attempt, float]:
        """One accepted step of controlled size; returns its end, the attempt, the next size."""
        while True:
            h = min(h, self.method.largest)
            last = t + h >= end - 1e-12 * max(abs(t), h)
            t_next = end if last else t + h
            if t_next - t < self.method.smallest and not last:
                raise _StepFailedError(
                    f"the step fell below {self.method.smallest:g} s; the motion is too stiff or "
                    "jumps (loosen rtol and atol, or look for a discontinuous force)",
                    "step too small",
                )
            attempt = self._attempt(t, t_next - t, state)
            error = self.control.error(attempt.errors, state[1], attempt.v)
            if np.isfinite(error) and error <= 1.0:
                factor = self.control.factor(error, accepted=True)
                # A step that had to end at an event does not make the next ones short.
                return t_next, attempt, max(h, (t_next - t) * factor) if last else h * factor
            self.rejected += 1
            shrink = self.control.factor(error, accepted=False) if np.isfinite(error) else 0.2
            h = (t_next - t) * shrink

    def _attempt(self, t: float, h: float, state: tuple[Array, Array, Array]) -> Attempt:
        return self.method.attempt(self.manifold, self._acceleration, t, h, state)

    def _acceleration(self, t: float, q: Array, v: Array) -> Array:
        self.evaluations += 1
        if self.method.step is not None and not (np.all(np.isfinite(v)) and np.all(np.isfinite(q))):
            raise _StepFailedError("the state became infinite; take a smaller step", "not finite")
        a = self.equations.acceleration(t, q, v)
        a[self.locked] = 0.0
        return a

    def _project(self, t: float, q: Array, v: Array) -> tuple[Array, Array, bool]:
        normal = self.manifold.normalize(q)
        if self.projector is None:
            return normal, v, False
        return self.projector.apply(t, normal, v)

    def _watch_loops(self, q: Array) -> None:
        """Rows that regularization dropped must stay closed by themselves."""
        if self.watch is None or self.projector is None:
            return
        residual = self.watch.residual(q)
        if np.linalg.norm(residual) > _TORN * max(1.0, self.system.robot.length):
            names = self.watch.by_name(residual)
            worst = max(names, key=lambda name: names[name])
            raise _StepFailedError(
                f"loop '{worst}' is torn apart (residual {names[worst]:.3g}) although its "
                "regularized rows are closed; simulate with regularization=False",
                "loop torn apart",
            )

    # -- what is kept -----------------------------------------------------------------------

    def _keep(self, t: float, q: Array, v: Array, a: Array, psi: Array | None) -> None:
        number = self.modes.index(self.mode)
        self.kept.append((t, q.copy(), v.copy(), a.copy(), number))
        if psi is not None:
            self.psi.append(psi.copy())

    def _trajectory(self, message: str) -> Trajectory:
        robot = self.system.robot
        t, q, v, a, mode = (np.array([state[k] for state in self.kept]) for k in range(5))
        return Trajectory(
            robot=robot,
            t=t,
            q=q,
            v=v,
            a=a,
            psi=np.array(self.psi).reshape(-1, robot.nv),
            mode=mode.astype(np.int64),
            modes=tuple(self.modes),
            message=message,
            system=self.system,
            transitions=tuple(self.transitions),
            events=tuple(self.log),
            evaluations=self.evaluations,
            rejected=self.rejected,
        )

    def _failed(self, message: str, reason: str) -> SimulationFailed:
        t = self.kept[-1][0] if self.kept else self.start
        return SimulationFailed(
            f"robot '{self.system.robot.name}' at t = {t:.6g} s: {message}",
            trajectory=self._trajectory(reason) if self.kept else None,
            reason=reason,
        )


class _StepFailedError(Exception):
    """A step cannot be taken; turned into `SimulationFailed` with the trajectory."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


def sampled(run: Trajectory, every: float) -> Trajectory:
    """The run at equal intervals, ``t_k = t0 + k every``, and at both sides of every change.

    Args:
        run: a run with all its steps.
        every: interval [s].
    """
    if not 0 < every < np.inf:
        raise BadValue(f"save_every is {every} s; it must be positive")
    count = int(np.floor((run.t[-1] - run.t[0]) / every * (1 + 1e-12)))
    grid = run.t[0] + every * np.arange(count + 1)
    changes = np.flatnonzero(np.diff(run.mode) != 0)
    fixed = np.unique(np.concatenate([[0, len(run.t) - 1], changes, changes + 1]))
    between = [time for time in grid if np.min(np.abs(run.t[fixed] - time)) > 1e-9 * every]
    # The place in the full run decides the order of states at one time.
    states = [(float(run.t[k]), run.q[k], run.v[k], run.a[k], int(run.mode[k]), k) for k in fixed]
    for time in between:
        k = int(np.searchsorted(run.t, time, side="right")) - 1
        _, q, v = run(time)
        equations = run.system.equations(run.modes[run.mode[k]])
        a = equations.acceleration(time, q, v)
        states.append((float(time), q, v, a, int(run.mode[k]), k))
    states.sort(key=lambda state: (state[0], state[5]))
    t, q, v, a, mode = (np.array([state[k] for state in states]) for k in range(5))
    model = run.robot.model
    psi = [pin.difference(model, q[k], q[k + 1]) for k in range(len(t) - 1)]
    psi_table = np.array(psi).reshape(-1, run.robot.nv)
    return replace(run, t=t, q=q, v=v, a=a, psi=psi_table, mode=mode.astype(np.int64))
