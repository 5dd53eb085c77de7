"""One step on the configuration group: tried, accepted or made smaller, put back on the manifold.

What happens between steps (events, modes, contacts) is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ..errors import NotFinite, PinloopError, SingularMass
from ..integrate import Attempt, Decay, MuntheKaas, Stages, Step, StepControl, attempt_with_decay
from ..linalg.dense import lapack
from ..model.mechanism import Mechanism
from ..tolerances import PROJECTED_TRIFLE, TIME_SUM, Regularity
from .accuracy import SpeedLoss, VelocityShift

__all__ = ["RobotManifold", "StepFailed", "Stepper"]

Array = NDArray[np.float64]


class RobotManifold:
    """Configurations of a robot: joint by joint a vector space, SO(3), SE(3), ...

    Args:
        robot: the mechanism.

    Attributes:
        curved: mask of the velocity coordinates of joints that are no vector space, shape (nv,).
        flat: whether none is.
    """

    def __init__(self, robot: Mechanism) -> None:
        self._model = robot.model
        curved = np.zeros(robot.nv, dtype=bool)
        self._cells: dict[str, slice] = {}
        for name in robot.joints:
            at = robot.coordinates(name)
            self._cells[name] = at.q
            # Joints stored as cosine and sine (nq = 2) commute like a vector space.
            curved[at.v] = at.nq != at.nv and at.nv > 1
        self.curved = curved
        self.flat = not curved.any()
        places = np.flatnonzero(curved)
        # From the first to the last of them: between them lie columns of the identity.
        self._bent = slice(0) if self.flat else slice(int(places[0]), int(places[-1]) + 1)
        self._plain = robot.nq == robot.nv
        self._held = np.zeros(0, dtype=np.intp)

    def hold(self, joints: Iterable[str]) -> None:
        """Keep the coordinates of joints to the last bit: they do not move at all."""
        mask = np.zeros(self._model.nq, dtype=bool)
        for name in joints:
            mask[self._cells[name]] = True
        self._held = np.flatnonzero(mask)

    def integrate(self, q: Array, step: Array) -> Array:
        """Return ``q (+) step``."""
        moved: Array = q + step if self._plain else pin.integrate(self._model, q, step)
        return self._kept(q, moved) if len(self._held) else moved

    def normalize(self, q: Array) -> Array:
        """``q`` with quaternions of unit length."""
        return q if self._plain else self._kept(q, pin.normalize(self._model, q))

    def _kept(self, q: Array, moved: Array) -> Array:
        if len(self._held):
            moved[self._held] = q[self._held]
        return moved

    def dexp(self, q: Array, psi: Array, rate: Array) -> Array:
        """``dexp(-psi) rate``: the right Jacobian of the exponential map."""
        if self.flat:
            return rate
        at, v = self._bent, rate.copy()
        v[at] = pin.dIntegrate(self._model, q, psi, pin.ARG1)[at, at] @ rate[at]
        return v

    def dexp_inv(self, q: Array, psi: Array, v: Array) -> Array:
        """``dexpinv(-psi) v``: solve with the right Jacobian of the exponential map."""
        if self.flat:
            return v
        # The inverse Jacobian of the logarithm is the same up to half a turn, and wrong behind it.
        dexp = pin.dIntegrate(self._model, q, psi, pin.ARG1)
        at = self._bent
        rate = v.copy()
        rate[at] = lapack().dgesv(dexp[at, at], v[at])[2]
        return rate


State = tuple[Array, Array, Array]
"""Configuration, velocity, acceleration."""


_OTHER_ENDS = (1.3, 1.7, 0.7, 0.4)
"""Sizes to try instead, over the first one."""
_FARTHER = 4.0
"""By how much an end must be more regular than the best before for yet another to be tried, if the
best is not close."""
_TRIES = 300
"""Rejected steps beside a bifurcation after which a run does not pass it: those that do need few,
others come nearer and nearer."""


class StepFailed(Exception):  # noqa: N818 - says what happened
    """A step cannot be taken; whoever steps turns it into an error with the motion so far.

    Args:
        message: what is wrong and what to do.
        reason: the same in a few words.
    """

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


_ROUNDING = (
    "rounding decides which way it goes; steps that are larger pass there (loosen rtol and atol, "
    "or fix the step)"
)


def _branching(t: float) -> StepFailed:
    return StepFailed(f"the mechanism branches at t = {t:.6g} s, and {_ROUNDING}", "bifurcation")


class _Ended(NamedTuple):
    """A step that is good enough, and where it ends.

    Args:
        regular: regularity of the rows at its end.
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
        robot: the mechanism.
        method: integrator.
        manifold: configuration group of the robot.
        acceleration: right-hand side, a function of t, q, v.
        project: returns a state on the manifold and whether it has been moved.
        regularity: how independent the rows are at the state that was projected last, from 0 where
            the mechanism branches to 1; not looked at by default.
        loss: why a projection at the end of a step takes more than its error, a function of the
            step and the velocities; None if it does not. Not looked at by default.

    Attributes:
        decay: how velocities die away, a function of t, q, v, where that goes exactly into the
            steps; None where it does not.
        exact: mask of the velocity coordinates whose steps in the algebra are zero to the last bit.
        evaluations: how often the right-hand side was asked for.
        rejected: number of rejected steps.
    """

    def __init__(
        self,
        robot: Mechanism,
        method: MuntheKaas,
        manifold: RobotManifold,
        acceleration: Callable[[float, Array, Array], Array],
        project: Callable[[float, Array, Array], tuple[Array, Array, bool]],
        regularity: Callable[[], float] | None = None,
        loss: Callable[[Step, VelocityShift], SpeedLoss | None] | None = None,
    ) -> None:
        self.method, self.manifold = method, manifold
        self.exact = np.zeros(robot.nv, dtype=bool)
        self.rejected = 0
        self.decay: Callable[[float, Array, Array], Decay] | None = None
        self._model = robot.model
        self._project = project
        self.evaluations = 0
        tableau = method.tableau
        self._stages = tableau.stages - 1 + (method.step is None and tableau.looks_ahead)
        self._regularity, self._loss = regularity, loss
        self._work = Stages(method.tableau, robot.nv)
        self._control = StepControl(method, np.where(robot.is_translation, robot.length, 1.0))
        self.begin(acceleration)

    def begin(self, acceleration: Callable[[float, Array, Array], Array]) -> None:
        """Start a mode, with a right-hand side of its own; nothing is known of its branches."""
        self._acceleration = acceleration
        self._regular, self._tries = 1.0, 0

    def first_step(self, v: Array, a: Array, span: float) -> float:
        """Size of a first step [s]."""
        return self.method.step or self._control.first_step(v, a, span)

    def fixed(self, t: float, t_next: float, state: State) -> Step:
        """One step to a given time, whatever its error."""
        decay = None if self.decay is None else self._decay_at(t, state)
        attempt = self._attempt(t, t_next - t, state, decay)
        step = self._finish(t, t_next, state, attempt)
        self._require_small_shift(step, attempt.v)
        return step

    def controlled(self, t: float, h: float, end: float, state: State) -> tuple[Step, float]:
        """One accepted step that does not pass ``end``, of about ``h``; and the next size.

        Beside a bifurcation accelerations follow the error of the state divided by the distance,
        squared and more. Smaller steps only come nearer; one that ends elsewhere passes. Of the
        ends that are tried the one farthest off is taken.
        """
        method, first, decay = self.method, 0.0, self._decay_at(t, state)
        others = iter(_OTHER_ENDS)
        best: _Ended | None = None
        trouble: PinloopError | None = None
        while True:
            h = min(h, method.largest)
            last = t + h >= end - TIME_SUM * max(abs(t), h)
            t_next = end if last else t + h
            if t_next - t < method.smallest and (first > 0.0 or not last):
                if best is not None:
                    return self._settled(best)
                if trouble is not None:
                    raise trouble  # it is there, however short the step
                raise StepFailed(
                    f"the step fell below {method.smallest:g} s; the motion is too stiff or "
                    "jumps (loosen rtol and atol, or look for a discontinuous force)",
                    "step too small",
                )
            first = first or t_next - t
            attempt, error, trouble = self._tried(t, t_next - t, state, decay)
            other = None
            if attempt is not None and error <= 1.0:  # not if it is NaN
                step = self._finish(t, t_next, state, attempt)
                regular = 1.0 if self._regularity is None else self._regularity()
                farther = best is None or regular > _FARTHER * best.regular
                if best is None or regular > best.regular:
                    best = _Ended(regular, step, error, h, last, attempt.v)
                more = regular < Regularity.BESIDE and (farther or best.regular < Regularity.CLOSE)
                other = next(others, None) if more else None
            elif best is not None or self._regular < Regularity.NEAR:
                other = next(others, None)
            if best is not None and other is None:
                return self._settled(best)
            self.rejected += 1
            if self._regular < Regularity.BESIDE:
                self._tries += 1
                if self._tries > _TRIES:
                    raise _branching(t)
            if other is not None:
                h = first * other
                continue
            shrink = self._control.factor(error, accepted=False) if np.isfinite(error) else 0.2
            h = (t_next - t) * shrink

    def _settled(self, ended: _Ended) -> tuple[Step, float]:
        """The step that is taken, and the size of the next one."""
        step = ended.step
        if ended.regular < Regularity.AT:
            raise _branching(step.t1)
        self._require_small_shift(step, ended.v, ended.regular)
        if ended.regular > Regularity.NEAR:
            self._tries = 0
        self._regular = ended.regular
        factor = self._control.factor(ended.error, accepted=True)
        # A step that had to end at an event does not make the next ones short.
        size = max(ended.h, (step.t1 - step.t0) * factor) if ended.last else ended.h * factor
        return step, size

    def _require_small_shift(self, step: Step, before: Array, regular: float = 1.0) -> None:
        """Raise if the projection at the end of a step has taken more than its error."""
        if self._loss is None or step.v1 is before:
            return
        fixed = self.method.step is not None
        # Most often the largest number settles it; of a few, Python's max is faster than NumPy's.
        moved = max(map(abs, (step.v1 - before).tolist()))
        if moved <= (
            PROJECTED_TRIFLE * max(map(abs, before.tolist())) if fixed else self._control.finest
        ):
            return
        tolerance = None if fixed else self._control.tolerance(step.v0, before)
        loss = self._loss(step, VelocityShift(step.v0, before, step.v1, tolerance))
        if loss is None:
            return
        if regular < Regularity.NEAR:
            advice = f"the mechanism branches here, and {_ROUNDING}"
        elif fixed:
            advice = "take a smaller step, or start farther off a singular pose"
        else:
            advice = "start farther off a singular pose; a prescribed motion needs its true rates"
        raise StepFailed(f"{loss} at t = {step.t1:.6g} s; {advice}", "speed taken")

    def _decay_at(self, t: float, state: State) -> Decay | None:
        return None if self.decay is None else self.decay(t, state[0], state[1])

    def _tried(
        self, t: float, h: float, state: State, decay: Decay | None
    ) -> tuple[Attempt | None, float, PinloopError | None]:
        """A step and its error; NaN, and why, if a stage was so far off that numbers gave out.

        In a step that is far too long even a mass matrix may lose its definiteness to rounding.
        """
        try:
            attempt = self._attempt(t, h, state, decay)
        except (NotFinite, SingularMass) as trouble:
            return None, np.nan, trouble
        return attempt, self._control.error(attempt.errors, state[1], attempt.v), None

    def _attempt(self, t: float, h: float, state: State, decay: Decay | None) -> Attempt:
        self.evaluations += self._stages
        if decay is not None:
            return attempt_with_decay(
                self.method, self.manifold, self._acceleration, t, h, state, decay
            )
        return self.method.attempt(self.manifold, self._acceleration, t, h, state, self._work)

    def _finish(self, t: float, t_next: float, state: State, attempt: Attempt) -> Step:
        """Project the end of a step."""
        psi, a = attempt.psi, attempt.a
        normal = self.manifold.normalize(attempt.q)
        q_new, v_new, moved = self._project(t_next, normal, attempt.v)
        if moved:
            shift = pin.difference(self._model, attempt.q, q_new)
            # First order in the shift, which is as small as the error of the step.
            psi = psi + self.manifold.dexp_inv(state[0], psi, shift)
            psi[self.exact] = 0.0
            a = None
        if a is None:
            self.evaluations += 1
            a = self._acceleration(t_next, q_new, v_new)
        return Step(self.manifold, t, t_next, *state, psi, q_new, v_new, a)
