"""One step of a method: tried, accepted or made smaller, put back on the manifold.

A step takes a state and what is remembered of the steps before, and returns both. What happens
between steps (events, modes) is not known here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import NotFinite, PinloopError, SingularMass
from ..tolerances import PROJECTED_TRIFLE, TIME_SUM, Regularity
from .decay import Decay, attempt_with_decay
from .munthe_kaas import (
    Attempt,
    ConfigurationGroup,
    MuntheKaas,
    RightHandSide,
    Stages,
    Step,
    StepControl,
)

__all__ = ["Flow", "State", "StepFailed", "StepMemory", "Stepper"]

Array = NDArray[np.float64]
State = tuple[Array, Array, Array]
"""Configuration, velocity, acceleration."""
Projection = Callable[[float, Array, Array], tuple[Array, Array, bool]]

_OTHER_ENDS = (1.3, 1.7, 0.7, 0.4)
"""Sizes to try instead, over the first one."""
_FARTHER = 4.0
"""By how much an end must be more regular than the best before for yet another to be tried, if the
best is not close."""
_TRIES = 300
"""Rejected steps beside a bifurcation after which a run does not pass it: those that do need few,
others come nearer and nearer."""
_ROUNDING = (
    "rounding decides which way it goes; steps that are larger pass there (loosen rtol and atol, "
    "or fix the step)"
)


class StepFailed(Exception):  # noqa: N818 - says what happened
    """A step cannot be taken; whoever steps turns it into an error with the motion so far.

    Args:
        message: what is wrong and what to do.
        reason: the same in a few words.
    """

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


def _branching(t: float) -> StepFailed:
    return StepFailed(f"the mechanism branches at t = {t:.6g} s, and {_ROUNDING}", "bifurcation")


@dataclass(frozen=True, eq=False)
class Flow:
    """A smooth motion on a manifold.

    Args:
        acceleration: right-hand side, a function of t, q, v.
        manifold: group of the configurations.
        project: puts a state back on the constraint manifold, and says whether it moved.
        regularity: how independent the constraints are at the state that was projected last, from
            0 where the mechanism branches to 1; None: not looked at.
        loss: why a projection at the end of a step takes more than its error, a function of the
            step, the velocity before, and the error per coordinate (None of fixed steps); its
            answer is None if it does not. Not looked at by default.
        decay: how velocities die away, a function of t, q, v, where that goes exactly into the
            steps.
    """

    acceleration: RightHandSide
    manifold: ConfigurationGroup
    project: Projection
    regularity: Callable[[], float] | None = None
    loss: Callable[[Step, Array, Array | None], object | None] | None = None
    decay: Callable[[float, Array, Array], Decay] | None = None

    @property
    def to_event(self) -> Flow:
        """The flow of steps that must end where something happens, however regular that is."""
        return self if self.regularity is None else replace(self, regularity=None)


class StepMemory(NamedTuple):
    """What the next step takes over from those before.

    Args:
        error: error of the last step over its tolerance.
        regularity: of the constraints at its end, see `Flow`.
        tries: steps rejected since the constraints were regular.
    """

    error: float = StepControl.FIRST_ERROR
    regularity: float = 1.0
    tries: int = 0

    @property
    def in_new_mode(self) -> StepMemory:
        """What is left of it after an event: nothing is known of the branches of another mode."""
        return StepMemory(self.error)


class _Ended(NamedTuple):
    """A step that is good enough, and where it ends.

    Args:
        regular: regularity of the constraints at its end.
        step: the step.
        error: its error over the tolerance.
        h: size that was wanted [s].
        last: whether it had to be shorter than that.
        v: velocity before the projection.
    """

    regular: float
    step: Step
    error: float
    h: float
    last: bool
    v: Array


class Stepper:
    """Takes steps of a method.

    Args:
        method: integrator.
        scale: size of one unit of each velocity coordinate, see `StepControl`.

    Attributes:
        evaluations: how often right-hand sides were asked for.
        rejected: number of rejected steps.
    """

    def __init__(self, method: MuntheKaas, scale: Array) -> None:
        self.method = method
        self.evaluations = self.rejected = 0
        tableau = method.tableau
        self._stages = tableau.stages - 1 + (method.step is None and tableau.looks_ahead)
        self._work = Stages(tableau, len(scale))
        self._control = StepControl(method, scale)

    def first_step(self, v: Array, a: Array, span: float) -> float:
        """Size of a first step [s]."""
        return self.method.step or self._control.first_step(v, a, span)

    def fixed(self, flow: Flow, t: float, t_next: float, state: State) -> Step:
        """One step to a given time, whatever its error."""
        decay = None if flow.decay is None else flow.decay(t, *state[:2])
        attempt = self._attempt(flow, t, t_next - t, state, decay)
        step = self._finish(flow, t, t_next, state, attempt)
        self._require_small_shift(flow, step, attempt.v)
        return step

    def prolonged(self, flow: Flow, step: Step, end: float) -> Step:
        """A step that goes on for an instant, or ends an instant earlier: its velocity is even.

        Args:
            flow: what it follows.
            step: the step.
            end: where it is to end [s]; so near that the jerk leaves nothing but rounding.
        """
        more, manifold = end - step.t1, flow.manifold
        path = more * step.v1
        psi = step.psi + manifold.dexp_inv(step.q0, step.psi, path)
        q, v = manifold.integrate(step.q1, path), step.v1 + more * step.a1
        attempt = Attempt(psi, q, v, None, np.zeros((0, 2, len(v))))
        return self._finish(flow, step.t0, end, (step.q0, step.v0, step.a0), attempt)

    def controlled(
        self, flow: Flow, memory: StepMemory, t: float, h: float, end: float, state: State
    ) -> tuple[Step, float, StepMemory]:
        """One accepted step that does not pass ``end``, of about ``h``; the next size and memory.

        Beside a bifurcation accelerations follow the error of the state divided by the distance,
        squared and more. Smaller steps only come nearer; one that ends elsewhere passes. Of the
        ends that are tried the one farthest off is taken.
        """
        method, first = self.method, 0.0
        decay = None if flow.decay is None else flow.decay(t, *state[:2])
        others = iter(_OTHER_ENDS)
        best: _Ended | None = None
        trouble: PinloopError | None = None
        while True:
            h = min(h, method.largest)
            last = t + h >= end - TIME_SUM * max(abs(t), h)
            t_next = end if last else t + h
            if t_next - t < method.smallest and (first > 0.0 or not last):
                if best is not None:
                    return self._settled(flow, best, memory)
                if trouble is not None:
                    raise trouble  # it is there, however short the step
                raise StepFailed(
                    f"the step fell below {method.smallest:g} s; the motion is too stiff or "
                    "jumps (loosen rtol and atol, or look for a discontinuous force)",
                    "step too small",
                )
            first = first or t_next - t
            attempt, error, trouble = self._tried(flow, t, t_next - t, state, decay)
            other = None
            if attempt is not None and error <= 1.0:  # not if it is NaN
                step = self._finish(flow, t, t_next, state, attempt)
                regular = 1.0 if flow.regularity is None else flow.regularity()
                farther = best is None or regular > _FARTHER * best.regular
                if best is None or regular > best.regular:
                    best = _Ended(regular, step, error, h, last, attempt.v)
                more = regular < Regularity.BESIDE and (farther or best.regular < Regularity.CLOSE)
                other = next(others, None) if more else None
            elif best is not None or memory.regularity < Regularity.NEAR:
                other = next(others, None)
            if best is not None and other is None:
                return self._settled(flow, best, memory)
            self.rejected += 1
            if memory.regularity < Regularity.BESIDE:
                memory = memory._replace(tries=memory.tries + 1)
                if memory.tries > _TRIES:
                    raise _branching(t)
            if other is not None:
                h = first * other
                continue
            h = (t_next - t) * self._control.shrink(error)

    def _settled(
        self, flow: Flow, ended: _Ended, memory: StepMemory
    ) -> tuple[Step, float, StepMemory]:
        """The step that is taken, the size of the next one, and what that takes over."""
        step = ended.step
        if ended.regular < Regularity.AT:
            raise _branching(step.t1)
        self._require_small_shift(flow, step, ended.v, ended.regular)
        tries = 0 if ended.regular > Regularity.NEAR else memory.tries
        factor, error = self._control.grow(ended.error, memory.error)
        # A step that had to end at an event does not make the next ones short.
        size = max(ended.h, (step.t1 - step.t0) * factor) if ended.last else ended.h * factor
        return step, size, StepMemory(error, ended.regular, tries)

    def _require_small_shift(
        self, flow: Flow, step: Step, before: Array, regular: float = 1.0
    ) -> None:
        """Raise if the projection at the end of a step has taken more than its error."""
        if flow.loss is None or step.v1 is before:
            return
        fixed = self.method.step is not None
        # Most often the largest number settles it; of a few, Python's max is faster than NumPy's.
        moved = max(map(abs, (step.v1 - before).tolist()))
        if moved <= (
            PROJECTED_TRIFLE * max(map(abs, before.tolist())) if fixed else self._control.finest
        ):
            return
        tolerance = None if fixed else self._control.tolerance(step.v0, before)
        loss = flow.loss(step, before, tolerance)
        if loss is None:
            return
        if regular < Regularity.NEAR:
            advice = f"the mechanism branches here, and {_ROUNDING}"
        elif fixed:
            advice = "take a smaller step, or start farther off a singular pose"
        else:
            advice = "start farther off a singular pose; a prescribed motion needs its true rates"
        raise StepFailed(f"{loss} at t = {step.t1:.6g} s; {advice}", "speed taken")

    def _tried(
        self, flow: Flow, t: float, h: float, state: State, decay: Decay | None
    ) -> tuple[Attempt | None, float, PinloopError | None]:
        """A step and its error; NaN, and why, if a stage was so far off that numbers gave out.

        In a step that is far too long even a mass matrix may lose its definiteness to rounding.
        """
        try:
            attempt = self._attempt(flow, t, h, state, decay)
        except (NotFinite, SingularMass) as trouble:
            return None, np.nan, trouble
        return attempt, self._control.error(attempt.errors, state[1], attempt.v), None

    def _attempt(
        self, flow: Flow, t: float, h: float, state: State, decay: Decay | None
    ) -> Attempt:
        self.evaluations += self._stages
        manifold, f = flow.manifold, flow.acceleration
        if decay is not None:
            return attempt_with_decay(self.method, manifold, f, t, h, state, decay)
        return self.method.attempt(manifold, f, t, h, state, self._work)

    def _finish(self, flow: Flow, t: float, t_next: float, state: State, attempt: Attempt) -> Step:
        """Project the end of a step."""
        psi, a, manifold = attempt.psi, attempt.a, flow.manifold
        q, v, moved = flow.project(t_next, manifold.normalize(attempt.q), attempt.v)
        if moved:
            # First order in the shift, which is as small as the error of the step.
            psi = psi + manifold.dexp_inv(state[0], psi, manifold.difference(attempt.q, q))
            a = None
        if a is None:
            self.evaluations += 1
            a = flow.acceleration(t_next, q, v)
        return Step(manifold, t, t_next, *state, psi, q, v, a)
