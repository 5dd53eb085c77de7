"""One step of a method: tried, accepted or made smaller, put back on the manifold.

A step takes a state and what is remembered of the steps before, and returns both. What happens
between steps (events, modes) is not known here.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from ..boundary.marks import Array
from ..errors import BadValue, NotFinite, PinloopError, SingularMass
from ..tolerances import PROJECTED_TRIFLE, TIME_SUM, Regularity
from .flow import MANY, Flow, State, StepFailed, StepMemory
from .implicit import ImplicitSteps, Iterated, Slopes, difference_slopes, left_over, outgrown
from .munthe_kaas import Attempt, MuntheKaas, NoBranch, RightHandSide, Step, StepControl
from .rank_loss import first_near, leads_to_loss, least_regularity
from .recording import Segment

WHEN_STIFF = "radau9"
"""The method that goes on where explicit steps would crawl."""
_CRAWLS = 1000
"""Steps still to come with which a motion is said to crawl."""
_SOON = frozenset(20 * 2**k for k in range(5))
_OFTEN = 640
"""After so many steps of a kind it is asked whether a motion is stiff, or still is, and again
whenever so many more."""
_LONG = 10.0
"""So many time constants are about as long as the motion that is not stiff: then a fixed step that
implicit iterations cannot take is as good as the method makes it."""
_WORTH = 20.0
"""Evaluations that an implicit step is worth."""

_PASSED = 0.5
"""Part of the regularity at both ends of a step to which it falls inside if that leads across."""
_FARTHER = 0.5
"""Part of the changes of regularity that bring motions to their branch at which they leave it."""
_NOT_SOLVED = "the equations of an implicit step are not solved; take a smaller step"
_NOT_TOLD = (
    "branches of the motion meet there, and neither velocity nor constraints tell on which it goes "
    "on; let it pass in another pose, or faster"
)


class Stepper:
    """Takes steps of a method.

    Args:
        method: integrator.
        scale: size of one unit of each velocity coordinate, see `StepControl`.

    Attributes:
        evaluations: how often right-hand sides were asked for.
        rejected: number of rejected steps.
        left_over: largest velocities that fixed steps have missed of motions too fast for them,
            shape (nv,), as far as was looked.
    """

    def __init__(self, method: MuntheKaas, scale: Array) -> None:
        self.method, self._scale = method, scale
        self.evaluations, self.rejected, self.left_over = 0, 0, np.zeros(len(scale))
        self._tableau = tableau = method.tableau
        self._outruns = tableau.outruns_quintics
        self._stages = tableau.stages - 1 + (method.step is None and tableau.looks_ahead)
        self._control = StepControl(method, scale)

    @cached_property
    def _implicit(self) -> ImplicitSteps:
        """Steps of the method if it is implicit, else those that take over where it is stiff."""
        implicit = self._tableau.implicit
        return ImplicitSteps(
            self.method if implicit else replace(self.method, name=WHEN_STIFF), self._scale
        )

    def first_step(self, v: Array, a: Array, span: float) -> float:
        """Size of a first step [s]."""
        return self.method.step or self._control.first_step(v, a, span)

    def begin(
        self, flow: Flow, memory: StepMemory, t: float, q: Array, v: Array
    ) -> tuple[State, StepMemory]:
        """A state that no step has led to, on its branch, and what the first step takes over."""
        near = Regularity.NEAR if memory.branch is None else Regularity.AWAY
        memory = memory.in_new_mode
        if self.method.step is not None:
            memory = memory._replace(taken=0)
        if flow.branch is not None and flow.constraints is not None:
            memory = memory._replace(regularity=flow.constraints.regularity)
            if memory.regularity < near and self.leads(flow, t, q, v):
                with suppress(NoBranch):  # else steps that end near other branches find out
                    branch = flow.branch(t, q, v)
                    there = branch.project(t, q, v)[:2]
                    start = *there, branch.acceleration(t, *there)
                    self.evaluations += 1
                    return start, memory._replace(branch=branch)
        self.evaluations += 1
        return (q, v, flow.acceleration(t, q, v)), memory

    def many(
        self,
        flow: Flow,
        memory: StepMemory,
        start: tuple[float, float, float],
        state: State,
        times: list[float],
    ) -> Segment | None:
        """Steps from time, with size, to an end that nothing has to be decided in; most often many.

        Steps of fixed size end at given times.
        """
        beside = memory.branch is not None or memory.regularity < Regularity.NEAR
        if flow.many is None or beside or memory.refused < np.inf or self._takes_implicit(memory):
            return None
        t, h, end = start
        asked = self._asked_within(memory.taken)
        span = t, h, memory.error, end, self._crawls(memory)
        steepest = 0.0 if flow.constraints is None else flow.constraints.steepest
        segment = flow.many.take(span, state, times, asked)
        if segment is not None and flow.constraints is not None and flow.branch is not None:
            known = memory.regularity, steepest, self._scale
            if (k := first_near(flow.constraints, segment, *known, Regularity.NEAR)) is not None:
                # The next one is to be taken by itself, on its branch.
                segment = segment.part(0, k) if k else None
        if segment is not None and flow.loss is not None:
            segment = self._with_small_shifts(flow, segment)
        if segment is not None and segment.inner is None and flow.fine and self._outruns:
            return replace(segment, follows=partial(self._evaluated, flow.acceleration))
        return segment

    def _with_small_shifts(self, flow: Flow, segment: Segment) -> Segment | None:
        """The first steps whose projection takes no more than their error; None if there are none.

        The next one is to be taken by itself, which tells what is wrong.
        """
        assert flow.loss is not None
        moved, least = np.abs(segment.v[1:] - segment.before).max(axis=1), self._control.finest
        if self.method.step is not None:
            least = PROJECTED_TRIFLE * np.abs(segment.before).max(axis=1)
        for k in (moved > least).nonzero()[0].tolist():
            if self._loss(flow, segment.step(k), segment.before[k]) is not None:
                return segment.part(0, k) if k else None
        return segment

    def account(self, segment: Segment, memory: StepMemory) -> StepMemory:
        """Count what steps have taken that were taken at once; what the next one takes over."""
        evaluations, rejected, _ = segment.counts.sum(axis=0).tolist()
        self.evaluations, self.rejected = self.evaluations + evaluations, self.rejected + rejected
        _, error, regularity, _ = segment.notes[-1].tolist()
        taken = memory.taken + len(segment)
        return memory._replace(error=error, regularity=regularity, taken=taken)

    def _asked_within(self, taken: int) -> list[int]:
        """Numbers of the next steps before which it is asked if the motion is stiff."""
        if self.method.step is None and _OFTEN - 1 - taken % _OFTEN >= MANY:
            return [k - taken for k in _SOON if taken <= k < taken + MANY]
        return [k for k in range(MANY) if self._asks(taken + k)]

    def _crawls(self, memory: StepMemory) -> float:
        """Steps to come with which a motion crawls, where that is asked.

        Any, later on: events may be near one after another.
        """
        return 0.0 if memory.taken > max(_SOON) else _CRAWLS

    def _asks(self, taken: int) -> bool:
        """Whether it is asked before a step if the motion is stiff."""
        if self.method.step is not None:
            return taken % _OFTEN == 0
        return taken in _SOON or taken % _OFTEN == _OFTEN - 1

    def fixed(
        self, flow: Flow, memory: StepMemory, t: float, t_next: float, state: State
    ) -> tuple[Step, StepMemory]:
        """One step to a given time, whatever its error; and what the next one takes over."""
        plain, flow = flow, self._followed(flow, memory, t, state)
        if self._asks(memory.taken):
            memory = self._looked(flow, memory, t, t_next - t, state)
        while True:
            try:
                attempt, iterated = self._attempt(flow, memory, t, t_next - t, state)
                if attempt is None:
                    if not memory.stiff or memory.stiff.fastest * (t_next - t) > _LONG:
                        raise StepFailed(_NOT_SOLVED, "not solved")
                    memory = memory._replace(stiff=None)
                    continue
                step, ended, flow = self._ended(flow, memory, t, t_next, state, attempt)
            except NoBranch:
                flow, memory = self._other_flow(plain, memory, t, state)
                continue
            if step is not None:
                return step, ended.after(memory.error, plain, flow, iterated)

    def prolonged(self, flow: Flow, memory: StepMemory, step: Step, end: float) -> Step:
        """A step that goes on for an instant, or ends an instant earlier: its velocity is even.

        The end is so near that the jerk leaves nothing but rounding. What an implicit step knows of
        its accelerations stays: the right-hand side would make of rounding what dies away.
        """
        more, manifold = end - step.t1, flow.manifold
        path = more * step.v1
        psi = step.psi + manifold.dexp_inv(step.q0, step.psi, path)
        q, v = manifold.integrate(step.q1, path), step.v1 + more * step.a1
        known = (step.a1, step.a0, step.bends) if self._takes_implicit(memory) else (None,) * 3
        attempt = Attempt(psi, q, v, known[0], np.zeros((0, 2, len(v))), *known[1:])
        state = step.q0, step.v0, step.a0
        try:
            followed = self._followed(flow, memory, step.t0, state)
            return self._finish(followed, step.t0, end, state, attempt)
        except NoBranch:
            return self._finish(flow, step.t0, end, state, attempt)

    def controlled(
        self, flow: Flow, memory: StepMemory, t: float, h: float, end: float, state: State
    ) -> tuple[Step, float, StepMemory]:
        """One accepted step of about ``h``, not past ``end``; the next size and memory."""
        method, first, plain = self.method, 0.0, flow
        flow = self._followed(flow, memory, t, state)
        # Slopes that iterations have computed anew cost nothing to judge, once steps have grown.
        told = memory.taken > min(_SOON) and self._known_slopes(memory) is not None
        if told or self._asks(memory.taken):
            memory, h = self._asked(flow, memory, t, h, end, state)
        trouble: PinloopError | None = None
        while True:
            h = min(h, method.largest)
            last = t + h >= end - TIME_SUM * max(abs(t), h)
            t_next = end if last else t + h
            if t_next - t < method.smallest and (first > 0.0 or not last):
                if not self._takes_implicit(memory):
                    memory = self._looked(flow, memory, t, first, state)
                    if self._takes_implicit(memory):
                        h, first = max(first, method.smallest), 0.0
                        continue
                if trouble is not None:
                    raise trouble  # it is there, however short the step
                raise StepFailed(
                    f"the step fell below {method.smallest:g} s; the motion is too stiff or "
                    "jumps (loosen rtol and atol, or look for a discontinuous force)",
                    "step too small",
                )
            first = first or t_next - t
            try:
                attempt, iterated, error, trouble = self._tried(flow, memory, t, t_next - t, state)
                control = self._implicit.control if self._takes_implicit(memory) else self._control
                if attempt is None or not error <= 1.0:  # it may be NaN
                    self.rejected += 1
                    memory = memory._replace(iterated=memory.iterated if attempt else iterated)
                    h = (t_next - t) * control.shrink(error)
                    continue
                step, ended, taken = self._ended(flow, memory, t, t_next, state, attempt)
                if taken is flow and step is None:
                    h, memory = 0.5 * (t_next - t), memory.without_branch
                flow = taken
            except NoBranch:
                (flow, memory), step = self._other_flow(plain, memory, t, state), None
            if step is None:
                self.rejected += 1
                continue
            factor, error = control.grow(error, memory.error)
            # A step that had to end at an event does not make the next ones short.
            size = max(h, (t_next - t) * factor) if last else h * factor
            return step, size, ended.after(error, plain, flow, iterated)

    def _followed(self, flow: Flow, memory: StepMemory, t: float, state: State) -> Flow:
        """What the next step follows: the branch of the last one, while it is near others."""
        followed = memory.flow(flow)
        return followed if followed is flow or self.leads(flow, t, *state[:2], _FARTHER) else flow

    def leads(self, flow: Flow, t: float, q: Array, v: Array, part: float = 1.0) -> bool:
        """Whether a state beside other branches moves to where they meet, or comes from there."""
        share = part * Regularity.CHANGES
        return flow.constraints is None or leads_to_loss(
            flow.constraints, flow.manifold, (t, q, v), self._scale, share
        )

    def _other_flow(
        self, plain: Flow, memory: StepMemory, t: float, state: State
    ) -> tuple[Flow, StepMemory]:
        """What a step follows whose branch is told no further: that of its start, or none."""
        if memory.branch is not None and plain.branch is not None:
            with suppress(NoBranch):
                return plain.branch(t, *state[:2]), memory._replace(branch=None)
        return plain, memory.without_branch

    def _asked(
        self, flow: Flow, memory: StepMemory, t: float, h: float, end: float, state: State
    ) -> tuple[StepMemory, float]:
        """The memory after a look whether steps should be of the other kind, and their size."""
        if not self._takes_implicit(memory):
            crawls = end - t > self._crawls(memory) * h
            return self._looked(flow, memory, t, 2.0 * h, state) if crawls else memory, h
        if self._tableau.implicit:
            return memory, h
        equal = h * self._stages / _WORTH  # explicit steps that cost as much
        memory = self._looked(flow, memory, t, equal, state)
        return memory, h if self._takes_implicit(memory) else equal

    def _takes_implicit(self, memory: StepMemory) -> bool:
        """Whether steps are implicit: by their method, or as the motion is stiff."""
        stiff = memory.stiff is not None and self.method.when_stiff == "switch"
        return stiff or self._tableau.implicit

    def _known_slopes(self, memory: StepMemory) -> Slopes | None:
        """Slopes at the start of a step, if implicit ones have computed them."""
        fresh = memory.iterated.fresh and self._takes_implicit(memory)
        return memory.iterated.slopes if fresh else None

    def _looked(
        self, flow: Flow, memory: StepMemory, t: float, h: float, state: State
    ) -> StepMemory:
        """The memory after a look whether explicit steps of size ``h`` are too long."""
        f, tableau = partial(self._evaluated, flow.acceleration), self._tableau
        slopes = self._known_slopes(memory)
        if slopes is None:
            slopes = difference_slopes(flow.manifold, f, t, state, self._scale)
        stiff = not tableau.implicit and outgrown(tableau, h, slopes)
        if stiff != (memory.stiff is not None):
            iterated = Iterated(slopes, fresh=True)
            memory = memory._replace(stiff=slopes if stiff else None, taken=0, iterated=iterated)
        if self.method.step is not None:
            if self._takes_implicit(memory):
                tableau = self._implicit.tableau
            missed = left_over(tableau, h, slopes, state)
            self.left_over = np.maximum(self.left_over, missed)
        return memory

    def _ended(
        self,
        flow: Flow,
        memory: StepMemory,
        t: float,
        t_next: float,
        state: State,
        attempt: Attempt,
    ) -> tuple[Step | None, StepMemory, Flow]:
        """The end of a step: the step, what is known there, and what it follows.

        Near where branches meet, constraints do not tell how the motion goes on, and a projection
        may fail: then there is no step yet; it is to be taken again on the branch of its start, or
        if that has none, to an end before it gets there.
        """
        trouble: BadValue | None = None
        steepest = 0.0 if flow.constraints is None else flow.constraints.steepest
        try:
            step = self._finish(flow, t, t_next, state, attempt)
        except BadValue as error:
            trouble = error
        regular = 1.0 if flow.constraints is None else flow.constraints.regularity
        least = regular
        if flow.constraints is not None and flow.branch is not None and trouble is None:
            ends = memory.regularity, regular
            least = least_regularity(flow.constraints, step, ends, steepest, self._scale)
        looks = flow.branch is not None and least < Regularity.NEAR
        if looks and trouble is None and least > _PASSED * min(memory.regularity, regular):
            looks = self.leads(flow, t_next, step.q1, step.v1)
        if flow.branch is not None and looks:
            try:
                if least < Regularity.AGAIN * memory.refused:
                    return None, memory, flow.branch(t, *state[:2])
            except NoBranch:
                if least < regular and self.method.step is None:
                    return None, memory, flow  # from nearer there may be one
            if trouble is None and regular < Regularity.AT:
                raise StepFailed(f"t = {t_next:.6g} s: {_NOT_TOLD}", "bifurcation", step.q1)
        if trouble is not None:
            raise trouble
        self._require_small_shift(flow, step, attempt.v)
        return step, memory.at(regular, looked=looks), flow

    def _require_small_shift(self, flow: Flow, step: Step, before: Array) -> None:
        """Raise if the projection at the end of a step has taken more than its error."""
        if step.v1 is before:
            return
        fixed = self.method.step is not None
        # Most often the largest number settles it; of a few, Python's max is faster than NumPy's.
        moved = max(map(abs, (step.v1 - before).tolist()))
        if moved <= (
            PROJECTED_TRIFLE * max(map(abs, before.tolist())) if fixed else self._control.finest
        ):
            return
        loss = self._loss(flow, step, before)
        if loss is None:
            return
        if fixed:
            advice = "take a smaller step, or start farther off a singular pose"
        else:
            advice = "start farther off a singular pose; a prescribed motion needs its true rates"
        raise StepFailed(f"{loss} at t = {step.t1:.6g} s; {advice}", "speed taken")

    def _loss(self, flow: Flow, step: Step, before: Array) -> object | None:
        """Why the projection at the end of a step takes more than its error, if it does."""
        if flow.loss is None:
            return None
        fixed = self.method.step is not None
        tolerance = None if fixed else self._control.tolerance(step.v0, before)
        return flow.loss(step, before, tolerance)

    def _tried(
        self, flow: Flow, memory: StepMemory, t: float, h: float, state: State
    ) -> tuple[Attempt | None, Iterated, float, PinloopError | None]:
        """A step and its error; NaN, and why, if a stage was so far off that numbers gave out.

        In a step that is far too long even a mass matrix may lose its definiteness to rounding.
        """
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                attempt, iterated = self._attempt(flow, memory, t, h, state)
                if attempt is None:
                    return None, iterated, np.nan, None
                error = self._control.error(attempt.errors, state[1], attempt.v)
        except (NotFinite, SingularMass) as trouble:
            return None, memory.iterated.again, np.nan, trouble
        return attempt, iterated, error, None

    def _attempt(
        self, flow: Flow, memory: StepMemory, t: float, h: float, state: State
    ) -> tuple[Attempt | None, Iterated]:
        manifold = flow.manifold
        if self._takes_implicit(memory):
            f = partial(self._evaluated, flow.acceleration)
            return self._implicit.attempt(manifold, f, t, h, state, memory.iterated)
        self.evaluations += self._stages
        attempt = self.method.attempt(manifold, flow.acceleration, t, h, state)
        return attempt, memory.iterated

    def _finish(self, flow: Flow, t: float, t_next: float, state: State, attempt: Attempt) -> Step:
        """Project the end of a step."""
        psi, a, manifold = attempt.psi, attempt.a, flow.manifold
        q, v, moved = flow.project(t_next, manifold.normalize(attempt.q), attempt.v)
        if moved:
            # First order in the shift, which is as small as the error of the step.
            psi = psi + manifold.dexp_inv(state[0], psi, manifold.difference(attempt.q, q))
            a = a if attempt.start is not None else None
        if a is None:
            self.evaluations += 1
            a = flow.acceleration(t_next, q, v)
        follows, inner = None, attempt.inner
        if flow.fine and self._outruns and attempt.start is None:
            follows = partial(self._evaluated, flow.acceleration)
        q0, v0, a0 = state
        a0 = a0 if attempt.start is None else attempt.start
        return Step(manifold, t, t_next, q0, v0, a0, psi, q, v, a, follows, inner)

    def _evaluated(self, f: RightHandSide, t: float, q: Array, v: Array) -> Array:
        self.evaluations += 1
        return f(t, q, v)
