"""Motion that is smooth between events: the only loop over time. No robot is known here.

A step takes a state and returns one; all that it takes over from the steps before is in the state,
so that a motion goes on from any state as if it had never stopped. What is looked for, and what
happens then, is up to a `HybridSystem`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from ..boundary.marks import Array
from ..tolerances import SAME, STEP_INSTANT, WHOLE_STEPS
from .event_location import Crossing, GuardMemory, Guards
from .flow import MANY, Flow, StepFailed, StepMemory
from .guards import Guard
from .munthe_kaas import Step
from .recording import Segment
from .stepping import Stepper

M = TypeVar("M")
E = TypeVar("E")

_JUMP = 1e-2
"""Part of the rise of a guard around a root, on either side, that shows that it does not jump."""
_CORRECTIONS = 4
"""How often the root of an event is corrected by the state that a step to it gives."""
_MISLED = 1e-3
"""Part of a step by which the last correction moves a root that dense output has not told."""


class HybridState(NamedTuple, Generic[M]):
    """Where a motion is, and all that its next step takes over.

    Args:
        t: time [s].
        q: configuration, shape (nq,).
        v: velocity, shape (nv,).
        a: acceleration, shape (nv,).
        mode: what holds until the next event.
        h: size of the next step [s].
        memory: of the control of steps.
        watched: of the guards of the mode; None where others look what happens.
        passed: time up to which all has happened that was due [s].
        recent: time and name of what has happened lately.
        ended: whether the motion ends here.
    """

    t: float
    q: Array
    v: Array
    a: Array
    mode: M
    h: float
    memory: StepMemory
    watched: GuardMemory | None
    passed: float = -np.inf
    recent: tuple[tuple[float, str], ...] = ()
    ended: bool = False


class Change(NamedTuple, Generic[M]):
    """What events make of a state.

    Args:
        mode: mode from now on.
        q: configuration, shape (nq,).
        v: velocity, shape (nv,).
        begins: whether another mode or velocity begins; else the motion goes on as it did.
        names: what has happened, as far as too much of it is a chatter.
        ended: whether the motion ends with it.
    """

    mode: M
    q: Array
    v: Array
    begins: bool
    names: tuple[str, ...] = ()
    ended: bool = False


class Ahead(NamedTuple):
    """What is known of the time to come.

    Args:
        end: instant at which something may happen without a guard: no step passes it [s].
        longest: longest step [s].
        rests: whether nothing moves until then.
    """

    end: float
    longest: float = np.inf
    rests: bool = False


@dataclass(frozen=True)
class Chatter:
    """So much within so short a time that a motion does not get on.

    Args:
        window: the time [s].
        most: largest number of what may happen within it.
        describe: what to say of it, from times and names.
    """

    window: float
    most: int
    describe: Callable[[Sequence[tuple[float, str]]], str]


class HybridSystem(Protocol[M, E]):
    """What moves, what is looked for, and what happens then."""

    def flow(self, mode: M) -> Flow:
        """The smooth motion in a mode."""
        ...

    def guards(self, mode: M) -> Guards[E]:
        """What is looked for in a mode; the same object as long as that is the same."""
        ...

    def ahead(self, state: HybridState[M]) -> Ahead | None:
        """What is to come after a state; None if the motion ends there."""
        ...

    def due(self, state: HybridState[M], *, begun: bool) -> Sequence[E]:
        """What happens at a state without a guard, and has not happened yet.

        Args:
            state: the state.
            begun: whether it is the first one of the motion, or after a change.
        """
        ...

    def handle(self, state: HybridState[M], events: Sequence[E]) -> Change[M]:
        """Let everything happen that happens at one instant, in whatever order it is given."""
        ...

    def record(self, state: HybridState[M], step: Step | None) -> None:
        """Take notice of a state.

        Args:
            state: the state.
            step: what led there; None at the start, after a change, and where nothing moves.
        """
        ...


class HybridIntegrator(Generic[M, E]):
    """Steps from event to event.

    Args:
        system: what moves.
        stepper: how steps are taken.
        span: start and end [s].
        chatter: what ends a motion that does not get on.
    """

    def __init__(
        self,
        system: HybridSystem[M, E],
        stepper: Stepper,
        span: tuple[float, float],
        chatter: Chatter,
    ) -> None:
        self._system, self._stepper, self._chatter = system, stepper, chatter
        self._start, self._until = span

    def begin(self, q: Array, v: Array, mode: M) -> HybridState[M]:
        """The first state, after all that happens there.

        Args:
            q: configuration, shape (nq,).
            v: velocity, shape (nv,).
            mode: mode.
        """
        t = self._start
        state = HybridState(t, q, v, v, mode, 0.0, StepMemory(), None)
        state = self._settled(state, Change(mode, q, v, begins=True))
        state = state._replace(passed=-np.inf)  # nothing that is due has happened yet
        state = self._happen(state, self._system.due(state, begun=True), None)
        return state._replace(h=self._stepper.first_step(state.v, state.a, self._until - t))

    def run(self, state: HybridState[M]) -> HybridState[M]:
        """The state at the end, from any state on."""
        while state.t < self._until and not state.ended:
            state, single = self._leap(state)
            if single:
                state = self.advance(state)
        return state

    def advance(self, state: HybridState[M]) -> HybridState[M]:
        """The state after one step, or after the next event in it."""
        system = self._system
        ahead = system.ahead(state)
        if ahead is None:
            return state._replace(ended=True)
        if ahead.rests:
            state = state._replace(t=min(ahead.end, self._until))
            system.record(state, None)
            return self._happen(state, system.due(state, begun=False), None)
        return self._through(state, *self._step(state, ahead))

    def _leap(self, state: HybridState[M]) -> tuple[HybridState[M], bool]:
        """The state after many steps at once, or after the next event in them.

        And whether the next step is to be taken by itself.
        """
        system, flow = self._system, self._system.flow(state.mode)
        ahead = None if flow.many is None else system.ahead(state)
        if flow.many is None or ahead is None or ahead.rests:
            return state, True
        end, start = min(self._until, ahead.end), (state.q, state.v, state.a)
        times = self._planned(state.t, end, MANY) if self._stepper.method.step else []
        span = state.t, min(state.h, ahead.longest), end
        whole = segment = self._stepper.many(flow, state.memory, span, start, times)
        if segment is not None and flow.many.watches:
            return self._led(state, segment), False
        while segment is not None:
            clear, watched = system.guards(state.mode).clear(segment, self._watched(state))
            count = max(clear, 1)
            rest = segment.part(count, len(segment)) if count < len(segment) else None
            part, segment = segment.part(0, count) if rest else segment, rest
            memory, h = self._stepper.account(part, state.memory), float(part.notes[-1, 0])
            if clear == 0:  # something may happen in this one
                step, before = part.step(0), state
                state = self._through(state, step, h, memory)
                if state.t != step.t1 or state.passed != before.passed:
                    return state, False
                continue
            here = float(part.t[-1]), part.q[-1], part.v[-1], part.a[-1], state.mode
            state = HybridState(*here, h, memory, watched, state.passed, state.recent)
            flow.many.record(part)
            if events := system.due(state, begun=False):
                return self._happen(state, events, None), False
        return state, whole is None

    def _led(self, state: HybridState[M], segment: Segment) -> HybridState[M]:
        """The state after steps in which somebody has looked what happens, and after that."""
        system, many = self._system, self._system.flow(state.mode).many
        memory, h = self._stepper.account(segment, state.memory), float(segment.notes[-1, 0])
        here = float(segment.t[-1]), segment.q[-1], segment.v[-1], segment.a[-1], state.mode
        state = HybridState(*here, h, memory, None, state.passed, state.recent)
        assert many is not None
        many.record(segment)
        events = [*system.due(state, begun=False), *(segment.events or ())]
        return self._happen(state, events, None) if events else state

    def _watched(self, state: HybridState[M]) -> GuardMemory:
        """What the guards of the mode remember, seen anew if others have looked until now."""
        if state.watched is not None:
            return state.watched
        guards = self._system.guards(state.mode)
        return guards.look(*state[:3], (guards, guards.unknown))

    def _through(
        self, state: HybridState[M], step: Step, h: float, memory: StepMemory
    ) -> HybridState[M]:
        """The state after a step that has been taken, or after the next event in it."""
        system, guards = self._system, self._system.guards(state.mode)
        crossing, watched = guards.locate(step, before := self._watched(state))
        while crossing is not None and state.t < crossing.t < step.t1:
            h = max(h, step.t1 - crossing.t)
            step, reached = self._taken_again(state, step, crossing)
            if reached:
                break
            crossing, watched = guards.locate(step, before)
        if crossing is None or crossing.t > state.t:
            _, _, _, _, mode, _, _, _, passed, recent, ended = state
            state = HybridState(
                step.t1, step.q1, step.v1, step.a1, mode, h, memory, watched, passed, recent, ended
            )
            system.record(state, step)
        else:  # it happens where the step starts
            state = state._replace(watched=watched)
        events = [*system.due(state, begun=False)]
        if crossing is not None:
            events += [guard.event for guard in crossing.guards]
        return self._happen(state, events, crossing) if events else state

    # -- steps ------------------------------------------------------------------------------

    def _step(self, state: HybridState[M], ahead: Ahead) -> tuple[Step, float, StepMemory]:
        """One step, the size of the next one, and what that takes over."""
        t, flow, end = state.t, self._system.flow(state.mode), min(self._until, ahead.end)
        start = state.q, state.v, state.a
        if (fixed := self._stepper.method.step) is None:
            h = min(state.h, ahead.longest)
            return self._stepper.controlled(flow, state.memory, t, h, end, start)
        [planned] = self._planned(t, end, 1)
        step, memory = self._stepper.fixed(flow, state.memory, t, planned, start)
        return step, fixed, memory

    def _planned(self, t: float, end: float, count: int) -> list[float]:
        """When the next fixed steps end, the last one at the end.

        Steps that events cut short do not count: t_k = t0 + k h. Times far from zero carry the
        rounding of the start.
        """
        fixed = self._stepper.method.step or 0.0
        whole = int(np.floor((t - self._start) / fixed + WHOLE_STEPS))
        times = (self._start + (whole + k) * fixed for k in range(1, count + 1))
        planned = [end if end - x < SAME * fixed else x for x in times]
        return planned[: planned.index(end) + 1] if end in planned else planned

    def _taken_again(
        self, state: HybridState[M], step: Step, crossing: Crossing[E]
    ) -> tuple[Step, bool]:
        """The step taken again to what happens in it, so that it is as good as any step.

        The root of the dense output is corrected by what the method gives there. Close to a
        singularity a shorter step may be a worse one: then it ends before, and nothing has happened
        yet; that is the second thing returned. Nor has it if a step was so long that its dense
        output misleads: what happens is looked for in the shorter one then.
        """
        stepper, guard, root = self._stepper, crossing.guards[0], crossing.t
        flow = self._system.flow(state.mode)
        start = step.q0, step.v0, state.a
        best: Step | None = None
        least, shift = np.inf, 0.0
        for _ in range(_CORRECTIONS):
            if best and abs(root - best.t1) <= STEP_INSTANT * (best.t1 - best.t0):
                taken = stepper.prolonged(flow, state.memory, best, root)
            elif stepper.method.step is not None:
                taken, _ = stepper.fixed(flow, state.memory, step.t0, root, start)
            else:
                h = root - step.t0
                taken, *_ = stepper.controlled(flow, state.memory, step.t0, h, root, start)
            if taken.t1 < root:
                return taken, False
            value = guard.at(root, taken.q1, taken.v1)
            # A guard that jumps has no slope to follow: its first root is the best.
            if best is not None and abs(value) >= 0.5 * least:
                break
            best, least = taken, abs(value)
            if least <= guard.enough:
                break
            shift = _correction(guard, value, root, step)
            root -= shift
            if root == taken.t1 or not step.t0 < root < step.t1:
                break
        assert best is not None
        # Where corrections have not met the root, and a step so much shorter tells more.
        length = best.t1 - best.t0
        misled = abs(shift) > _MISLED * length and length < 0.5 * (step.t1 - step.t0)
        return best, not misled

    # -- events -----------------------------------------------------------------------------

    def _happen(
        self, state: HybridState[M], events: Sequence[E], crossing: Crossing[E] | None
    ) -> HybridState[M]:
        """The state after all that happens at an instant, and all that follows from it at once."""
        system = self._system
        if events and crossing is not None:
            watched = self._watched(state)
            watched = system.guards(state.mode).note(crossing, watched, *state[:3])
            state = state._replace(watched=watched)
        while events:
            change = system.handle(state, events)
            state = self._settled(state, change)
            if state.ended:
                break
            events = system.due(state, begun=change.begins)
        return state

    def _settled(self, state: HybridState[M], change: Change[M]) -> HybridState[M]:
        """The state that a change leads to, seen by the guards of its mode."""
        system, (t, q, v, a, mode, h, memory, watched, *_) = self._system, state
        flow = system.flow(change.mode)
        if change.begins:
            (q, v, a), memory = self._stepper.begin(flow, memory, t, change.q, change.v)
        recent = self._without_chatter(state, change)
        if flow.many is not None and flow.many.watches:
            watched = None
        else:
            old, new = system.guards(mode), system.guards(change.mode)
            watched = new.look(t, q, v, (old, old.unknown if watched is None else watched))
        state = HybridState(t, q, v, a, change.mode, h, memory, watched, t, recent, change.ended)
        if change.begins:
            system.record(state, None)
        return state

    def _without_chatter(
        self, state: HybridState[M], change: Change[M]
    ) -> tuple[tuple[float, str], ...]:
        """What has happened lately, with what happens now."""
        t, chatter = state.t, self._chatter
        before = [entry for entry in state.recent if t - entry[0] <= chatter.window]
        recent = (*before, *[(t, name) for name in change.names])
        if len(recent) > chatter.most:
            raise StepFailed(chatter.describe(recent), "chatter")
        return recent


def _correction(guard: Guard[E], value: float, root: float, step: Step) -> float:
    """By how much a root is too late, by Newton's method with the slope on the dense output [s].

    Zero of a guard that jumps there: all its rise is on one side.
    """
    gap = 1e-4 * (step.t1 - step.t0)
    behind, ahead = max(root - gap, step.t0), min(root + gap, step.t1)
    low, middle, high = (guard.at(t, *step(t)) for t in (behind, root, ahead))
    jumps = min(abs(middle - low), abs(high - middle)) <= _JUMP * abs(high - low)
    return 0.0 if jumps else value * (ahead - behind) / (high - low)
