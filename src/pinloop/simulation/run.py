"""A run: what moves, what is looked for and what happens then, for the loop over time."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from ..boundary.marks import Array
from ..dynamics.stiffness import StiffnessNotes, largest_at, stiff_motion, stiffest_damping, way_out
from ..errors import NotFinite, PinloopError, PinloopWarning, SimulationFailed
from ..integrate import (
    INNER,
    Ahead,
    Change,
    Chatter,
    EveryStep,
    Flow,
    Guard,
    Guards,
    HybridIntegrator,
    HybridState,
    MuntheKaas,
    Recorded,
    Recording,
    Samples,
    Segment,
    Step,
    StepFailed,
    Stepper,
    difference_slopes,
)
from ..model.mechanism import blamed_links
from ..tolerances import CHATTER, DUE
from .accuracy import Accuracy, unresolved_motion
from .closing_loops import close_loops
from .endstops import NONE_TOUCHED, EndStopContacts, RestingEnds
from .events import BoundEvent, Happenings, Impact, Instant, Report, Stop, Touch
from .friction import NO_GRIP, DryFriction, Grip, Release, Rest
from .initial_state import meeting, obstacle
from .limits import LimitWatch, joint_ends
from .mode_motion import ModeMotion
from .modes import ModalSystem, Mode, RobotManifold
from .stabilization import Projection
from .trajectory import Trajectory
from .transitions import Transition, make_transition

_SWITCHES = 4
"""So many changes between explicit and implicit steps are told one by one."""
_CHATTER = 100
"""So many events within a millionth of the run are chatter."""
_MODES = 8
"""The guards of so many modes are kept, of which a run goes to and fro between few."""
_NOTHING_AHEAD = Ahead(np.inf)
_RENEWAL = BoundEvent("renewal", Report("renewal"))
"""The loops are to be held by other rows."""


@dataclass(frozen=True, eq=False)
class BoundEvents:
    """The events of a run: those at a time, in order, and the guards of the others."""

    timed: tuple[BoundEvent, ...]
    guards: tuple[Guard[BoundEvent], ...]


class RunMode(NamedTuple):
    """What holds in a run until the next event.

    Args:
        mode: locks, loops, and what dry friction does.
        resting: end stops without a row.
        grip: what is to be known of axes that stick.
    """

    mode: Mode
    resting: RestingEnds = NONE_TOUCHED
    grip: Grip = NO_GRIP


class RunContacts(NamedTuple):
    """What else may hold joints in a run; None if there is none."""

    ends: EndStopContacts | None = None
    friction: DryFriction | None = None


State = HybridState[RunMode]


class Run:
    """A run of a robot, which a `HybridIntegrator` steps."""

    def __init__(
        self,
        system: ModalSystem,
        method: MuntheKaas,
        stabilization: Projection | None,
        span: tuple[float, float],
        events: BoundEvents,
        recording: Recording,
        contacts: RunContacts,
    ) -> None:
        self.system, self.method, self.stabilization = system, method, stabilization
        self.start, self.until = span
        self.events, self.recording, self.contacts = events, recording, contacts
        robot = system.robot
        self._unit = np.where(robot.is_translation, robot.length, 1.0)
        self._group = RobotManifold(robot)
        self._stepper = Stepper(method, self._unit)
        self._stiffness, self._switched = StiffnessNotes(robot, method), list[str]()
        self._motion: ModeMotion
        self._steps = 0
        self._modes: list[Mode] = []
        self._engines: set[str] = set()
        self._transitions: list[Transition] = []
        self._log: list[tuple[float, str]] = []
        self._instants: list[Instant] = []
        self._impacts: tuple[Impact, ...] = ()
        self._looked_at: list[tuple[float, Guards[BoundEvent]]] = []
        self._guards_of = lru_cache(_MODES)(self._make_guards)

    def go(self, mode: Mode, q: Array, v: Array, report: Callable[[float], None]) -> Trajectory:
        """Step until the end, a failure, or Ctrl-C."""
        self._report, self._limits = report, None
        if isinstance(self.recording, Samples):  # of the steps nothing else is left
            self._limits = LimitWatch(joint_ends(self.system.robot), self.start, q)
        self._last = self.start, q, v
        self.system.begin(mode, self.start, q, v)
        begun, v = self._decided((self.start, q, v), RunMode(mode), RunMode(mode), (), jumped=False)
        self._enter(begun.mode, self.start, q, v)
        chatter = Chatter(CHATTER * (self.until - self.start), _CHATTER, _chatter)
        integrator = HybridIntegrator(self, self._stepper, (self.start, self.until), chatter)
        try:
            end = integrator.run(integrator.begin(q, v, begun))
            self._motion.loops.look(end.q)
        except KeyboardInterrupt:
            if self.recording.last is None:
                raise
            message = f"interrupted at t = {self.recording.last:.6g} s"
            warnings.warn(message, PinloopWarning, stacklevel=3)
            return self._trajectory(message)
        except StepFailed as failure:
            why = self._why(failure.reason, failure.q)
            raise self._failed(f"{failure}{why}", failure.reason) from None
        except PinloopError as error:
            reason = "not finite" if isinstance(error, NotFinite) else type(error).__name__
            text = f"{error}{blamed_links(error, self.system.robot)}{self._why(reason)}"
            raise self._failed(text, reason) from error
        except Exception as error:  # whatever it is, the run so far is not lost
            name = type(error).__name__
            raise self._failed(f"{name}: {error}", name) from error
        finally:
            self._motion.release()
        return self._trajectory("stopped by an event" if end.ended else "done")

    # -- what the loop over time asks for -------------------------------------------------------

    def flow(self, mode: RunMode) -> Flow:
        """See `HybridSystem`; the motion of the mode that was entered last."""
        return self._motion.flow

    def guards(self, mode: RunMode) -> Guards[BoundEvent]:
        """See `HybridSystem`."""
        return self._guards_of(mode)

    def ahead(self, state: State) -> Ahead:
        """See `HybridSystem`."""
        if not self.events.timed:
            return _NOTHING_AHEAD
        passed = _just_after(state.passed)
        return Ahead(min((x.at for x in self.events.timed if x.at > passed), default=np.inf))

    def due(self, state: State, *, begun: bool) -> list[BoundEvent]:
        """See `HybridSystem`."""
        t, q, v, mode = *state[:3], state.mode.mode
        due: list[BoundEvent] = []
        if self.events.timed:
            passed, now = _just_after(state.passed), _just_after(t)
            due += [event for event in self.events.timed if passed < event.at <= now]
        if begun:
            watched = (guard.event for guard in self.guards(state.mode).guards)
            due += [x for x in watched if x.at_once is not None and x.at_once(mode, t, q, v)]
            if self.contacts.ends and state.passed == -np.inf:
                due += self.contacts.ends.hits(q, mode)
        if self.system.renewed(mode, q) != mode:
            due.append(_RENEWAL)
        return due

    def handle(self, state: State, events: Sequence[BoundEvent]) -> Change[RunMode]:
        """See `HybridSystem`; all events of an instant are one change of the mode."""
        self._impacts = ()
        change = self._changed(state, events)
        instant = Instant(
            state.t,
            tuple(event.label for event in events),
            tuple(event.label for event in events if event.at < np.inf),
            tuple(x for x in self.guards(state.mode).guards if any(x.event is y for y in events)),
            self._impacts,
            change.begins,
        )
        self._instants.append(instant)
        return change

    def _changed(self, state: State, events: Sequence[BoundEvent]) -> Change[RunMode]:
        """What all events of an instant make of a state."""
        t, q, v = state[:3]
        before, plain = state.mode, state.mode.mode.without_friction
        happening = tuple(event.label for event in events if event is not _RENEWAL)
        named = [event for event in events if not isinstance(event.action, Touch)]
        names = tuple(event.label for event in named if event is not _RENEWAL)
        self._log += [(t, name) for name in names]
        ended = any(isinstance(event.action, Stop) for event in events)
        wanted = before.mode.without_contacts
        for event in sorted(events, key=lambda event: event.action.name):
            wanted = event.action.apply(wanted)
        touched = bool(self.contacts.ends and self.contacts.ends.at(q, wanted))
        change: Transition | None = None
        after = RunMode(self.system.renewed(plain, q), before.resting, before.grip)
        if touched or wanted != plain:
            self._motion.loops.look(q)
            self.system.check(wanted)
            q = close_loops(self.system, (t, q), [event.action for event in events], wanted)
            wanted = self.system.renewed(wanted, q)
            change, resting = self._transition((t, q, v), plain, wanted, names, touched)
            after = RunMode(plain if change is None else change.after, resting, before.grip)
        rubs = [event.action for event in events if isinstance(event.action, (Rest, Release))]
        if change is None and after.mode == plain and not rubs:
            return Change(after._replace(mode=before.mode), q, v, False, happening, ended)
        if change is None and after.mode != plain:
            self._motion.loops.look(q)
        v_plus = v if change is None else change.v_plus
        after, v_plus = self._decided((t, q, v_plus), after, before, rubs, jumped=bool(change))
        if after.mode != before.mode:
            self._enter(after.mode, t, q, v_plus)
        elif change is None and not any(isinstance(action, Rest) for action in rubs):
            # By a little: the next step finds the instant.
            return Change(before, q, v, False, happening, ended)
        self._require_way_on(change, t, q, v_plus, names)
        return Change(after, q, v_plus, True, happening, ended)

    def _transition(
        self,
        state: tuple[float, Array, Array],
        before: Mode,
        wanted: Mode,
        names: tuple[str, ...],
        touched: bool,
    ) -> tuple[Transition | None, RestingEnds]:
        """What becomes of velocities and end stops; no transition if nothing does."""
        change: Transition | None
        if touched and self.contacts.ends:
            change, resting, self._impacts = self.contacts.ends.settle(
                *state, before, wanted, names
            )
            if change is not None:
                self._log += [(state[0], name) for name in change.events[len(names) :]]
        else:
            change = make_transition(self.system, *state, before, wanted, None, names)
            resting = NONE_TOUCHED
        if change is not None:
            self._transitions.append(change)
        return change, resting

    def _decided(
        self,
        state: tuple[float, Array, Array],
        after: RunMode,
        before: RunMode,
        rubs: Sequence[Rest | Release],
        *,
        jumped: bool,
    ) -> tuple[RunMode, Array]:
        """A mode with its dry friction, and the velocity in it."""
        if self.contacts.friction is None:
            return after, state[2]
        stopped = frozenset(rub.axis for rub in rubs if isinstance(rub, Rest) and not jumped)
        released = any(isinstance(rub, Release) for rub in rubs)
        mode, grip, v = self.contacts.friction.decide(
            state, after.mode, (before.mode, before.grip), stopped, released=released
        )
        return RunMode(mode, after.resting, grip), v

    def _require_way_on(
        self, change: Transition | None, t: float, q: Array, v: Array, names: tuple[str, ...]
    ) -> None:
        """Raise if after a transition no acceleration meets the rows."""
        trouble = change and obstacle(self._motion.equations, t, q, v, change.v_minus)
        if trouble:
            raise StepFailed(
                f"after '{', '.join(names)}' {trouble}; let it happen in another pose", "no way on"
            )

    def record(self, state: State, step: Step | None) -> None:
        """See `HybridSystem`."""
        t, q, v, a = state[:4]
        self._last = t, q, v
        self._motion.along.advance(q)
        if step is None:
            self._looked_at.append((t, self.guards(state.mode)))
            self.recording.add(Recorded(t, q, v, a, self._number))
            return
        self._keep(step, state.memory.branch)
        damping, left = partial(stiffest_damping, self._motion.equations, t, q, v), self.until - t
        if note := self._stiffness.look(t, state.memory.stiff, damping, (left, step.t1 - step.t0)):
            self._switched.append(f"from t = {t:.6g} s on {note}")
        self._report(t)

    def _keep(self, step: Step, branch: Flow | None = None) -> None:
        """Store a step, along a branch or not."""
        self._steps += 1
        if self._limits is not None:
            self._limits.look(step)
        inside = partial(_inside, branch or self._motion.flow, step)
        inner = step.inner
        if step.follows is not None:  # a branch is not known any more once the run is over
            inner = step.bends if branch else np.full((len(INNER), len(step.v1)), np.nan)
        end = step.t1, step.q1, step.v1, step.a1
        self.recording.add(Recorded(*end, self._number, step.psi, inside, inner, step.a0))

    # -- modes ------------------------------------------------------------------------------

    def _enter(self, mode: Mode, t: float, q: Array, v: Array) -> None:
        """Set up everything that depends on the mode."""
        if self._modes:
            self._motion.release()
        self._motion = ModeMotion(
            self.system.begin(mode, t, q, v),
            self.method,
            self.stabilization,
            self._group.in_mode(mode),
            (t, q),
            None if self.system.renews else self._record_all,
        )
        self._engines.add(self._motion.engine)
        if mode not in self._modes:
            self._modes.append(mode)
        self._number = self._modes.index(mode)

    def _record_all(self, segment: Segment) -> None:
        """Take notice of steps that have been taken at once, in the mode that was entered last."""
        self._last = float(segment.t[-1]), segment.q[-1], segment.v[-1]
        self._motion.catch_up(segment)
        if isinstance(self.recording, EveryStep):
            self.recording.extend(segment, self._number)
            self._steps += len(segment)
        else:
            for k in range(len(segment)):
                self._keep(segment.step(k))
        self._report(self._last[0])

    def _make_guards(self, mode: RunMode) -> Guards[BoundEvent]:
        """What is looked for in a mode."""
        guards = [guard for guard in self.events.guards if guard.event.active(mode.mode)]
        if self.contacts.ends:
            guards += self.contacts.ends.guards(mode.mode, mode.resting)
        if self.contacts.friction:
            guards += self.contacts.friction.guards(mode.mode, mode.grip)
        return Guards(guards)

    # -- what is left of it -----------------------------------------------------------------

    def _trajectory(self, message: str) -> Trajectory:
        states, switched = self.recording.states(), self._switched[:_SWITCHES]
        if more := self._switched[_SWITCHES:]:
            switched.append(f"and {len(more)} times more")
        notes = (
            "; ".join(switched),
            unresolved_motion(self.system.robot, self.method, self._stepper.left_over, states.v),
        )
        slack = 0.0 if self.stabilization is None else self.stabilization.tol
        return Trajectory(
            robot=self.system.robot,
            **states._asdict(),
            modes=tuple(self._modes),
            message=message,
            system=self.system,
            transitions=tuple(self._transitions),
            events=tuple(self._log),
            evaluations=self._stepper.evaluations,
            rejected=self._stepper.rejected,
            accuracy=Accuracy(self.method, self._steps, slack, *notes),
            limits=None if self._limits is None else self._limits.passed,
            engine=" and ".join(sorted(self._engines)),
            happenings=Happenings(
                self.stabilization, tuple(self._instants), tuple(self._looked_at)
            ),
        )

    def _failed(self, message: str, reason: str) -> SimulationFailed:
        last = self.recording.last
        t = self.start if last is None else last
        return SimulationFailed(
            f"robot '{self.system.robot.name}' at t = {t:.6g} s: {message}",
            trajectory=None if last is None else self._trajectory(reason),
            reason=reason,
        )

    def _why(self, reason: str, q: Array | None = None) -> str:
        """What else is to be said of a step that failed: what it could not follow, where it is."""
        if q is not None:
            return f" ({meeting(self._motion.equations, self._last[0], q)})"
        if reason not in ("not finite", "step too small", "not solved"):
            return ""
        (t, q, v), method, robot = self._last, self.method, self.system.robot
        f = self._motion.equations.acceleration
        state = q, v, f(t, q, v)
        if (motion := self._stiffness.motion) is None:
            slopes = difference_slopes(self._motion.flow.manifold, f, t, state, self._unit)
            motion = stiff_motion(robot, slopes, stiffest_damping(self._motion.equations, t, q, v))
        if motion.time_constant > (method.step or 1e3 * method.smallest):
            largest = largest_at(robot, np.abs(state[2]) / self._unit)
            return f". The largest acceleration is that of joint '{largest}'"
        switched = method.when_stiff == "switch" and (method.step is None or reason == "not solved")
        return f". {motion}; {way_out(method, tried=method.tableau.implicit or switched)}"


def _inside(flow: Flow, step: Step, t: float) -> tuple[Array, Array, Array]:
    """State and acceleration inside a step that has just been taken."""
    q, v = step(t)
    q = flow.manifold.normalize(q)
    return q, v, flow.acceleration(t, q, v)


def _just_after(t: float) -> float:
    """Until when what is to happen at a time is due [s]."""
    return t + DUE * abs(t) if t > -np.inf else t


def _chatter(recent: Sequence[tuple[float, str]]) -> str:
    """What to say of events that keep each other going."""
    history = ", ".join(dict.fromkeys(name for _, name in recent[-10:]))
    return (
        f"{len(recent)} events within {recent[-1][0] - recent[0][0]:.3g} s ({history}): they "
        "chatter; give the guards a gap between switching on and off"
    )
