"""Tangents of a motion: how steps, events and jumps carry small changes on; no robot is known here.

A change of a state is ``(dt, dq, dv)``: how much later it is reached, and how it then differs, dq
in tangent coordinates. A step from ``(t0, q0, v0)`` to ``t1`` is a smooth function of these and of
parameters, and its tangent that of the numbers that the step computes: with the same steps,
derivatives are those of the discrete motion, to rounding. The end of a step is fixed, or a guard
decides it:

    dt1 = -(g_x (Phi_x dx0 + Phi_t0 dt0 + Phi_p dp) + g_p dp) / (g_t + g_x Phi_t1)

``g_x Phi_t1 + g_t`` is how fast the guard passes zero. A jump ``x+ = R(t, x-, p)`` follows, and the
next step starts ``dt1`` later. For short steps ``Phi_t1`` is the rate ``f-`` before the event and
``Phi_t0`` is ``-f+`` after it: together this is the saltation matrix
``R_x + (R_x f- + R_t - f+) dt/dx`` (Aizerman, Gantmacher 1958), which `saltate` applies to changes
at fixed times, for motions that are known as functions of time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..boundary.marks import Array
from ..errors import BadValue
from ..tolerances import RETRACED, SLOPE_STEP, SLOPE_TIME, SOLVED_STEP
from .munthe_kaas import ConfigurationGroup, slope_along
from .tableaux import Tableau

_ITERATIONS = 20
"""Newton's iterations for the stages of an implicit step, which start next to them."""


class TangentGroup(ConfigurationGroup, Protocol):
    """A configuration group whose changes can be followed.

    Attributes:
        curved: mask of the velocity coordinates that do not belong to a vector space, shape (nv,).
    """

    curved: NDArray[np.bool_]

    def integrate_slopes(self, q: Array, step: Array) -> tuple[Array, Array]:
        """Derivatives of ``q (+) step`` by ``q`` and by ``step``, shape (nv, nv) each."""
        ...


class AccelerationSlopes(NamedTuple):
    """An acceleration and its derivatives at one state.

    Args:
        a: acceleration, shape (nv,).
        by_time: shape (nv,).
        by_position: shape (nv, nv).
        by_velocity: shape (nv, nv).
        by_parameters: shape (nv, parameters).
    """

    a: Array
    by_time: Array
    by_position: Array
    by_velocity: Array
    by_parameters: Array


SlopesOfMotion = Callable[[float, Array, Array], AccelerationSlopes]
"""A function of t, q, v."""


class GuardSlopes(NamedTuple):
    """Derivatives of a guard at the instant at which it is zero.

    Args:
        by_time: a number.
        by_state: by position and velocity, shape (2 nv,).
        by_parameters: shape (parameters,).
    """

    by_time: float
    by_state: Array
    by_parameters: Array


def later_by(missed: Array, rate: float) -> Array:
    """How much later a guard is zero that is larger by ``missed``, and grows at a rate."""
    return np.asarray(-missed / rate)


def reached_later(changes: Array, rates: Array, later: Array) -> Array:
    """Changes of a state that is reached later, at its rates, by k delays; shape (n, k)."""
    return np.asarray(changes + np.outer(rates, later))


def saltate(
    changes: Array,
    later: Array,
    rates: tuple[Array, Array],
    jump: Callable[[Array], Array] = np.asarray,
) -> Array:
    """Changes at a fixed time after something that happens later, from those before it.

    Args:
        changes: of the state, shape (n, k).
        later: by how much later it happens, shape (k,).
        rates: of the state before and after, shape (n,) each.
        jump: what becomes in it of changes at the instant at which it happens.
    """
    before, after = rates
    return reached_later(jump(reached_later(changes, before, later)), after, -later)


@dataclass(frozen=True, eq=False)
class Carry:
    """A linear map of changes ``(dt, dq, dv)``, with parameters that stay the same.

    Args:
        before: by the change before, shape (1 + 2 nv, 1 + 2 nv).
        parameters: by those of parameters, shape (1 + 2 nv, parameters).
    """

    before: Array
    parameters: Array

    @classmethod
    def at_instant(cls, by_time: Array, by_state: Array, by_parameters: Array) -> Carry:
        """``dx+ = by_time dt + by_state dx- + by_parameters dp``, when it is as late as before."""
        whole = np.eye(len(by_time) + 1)
        whole[1:, 0], whole[1:, 1:] = by_time, by_state
        return cls(whole, np.pad(by_parameters, ((1, 0), (0, 0))))

    def then(self, after: Carry) -> Carry:
        """This map and another after it."""
        parameters = after.before @ self.parameters + after.parameters
        return Carry(after.before @ self.before, parameters)

    def forward(self, changes: Array, parameters: Array) -> Array:
        """Changes afterwards, shape (1 + 2 nv, k), of k changes at once.

        Args:
            changes: before, shape (1 + 2 nv, k).
            parameters: of the parameters, shape (parameters, k).
        """
        return np.asarray(self.before @ changes + self.parameters @ parameters)

    def backward(self, weights: Array, gradient: Array) -> tuple[Array, Array]:
        """Weights of changes before, and the gradient by parameters: the transposed map.

        Args:
            weights: of changes afterwards, shape (k, 1 + 2 nv).
            gradient: by parameters from there on, shape (k, parameters).
        """
        return weights @ self.before, gradient + weights @ self.parameters


@dataclass(frozen=True, eq=False)
class FollowedStep:
    """A step computed again, and how its end depends on its start, both times and parameters.

    Args:
        q: configuration at its end, before anything corrects it, shape (nq,).
        v: velocity there, shape (nv,).
        by_start: derivatives of position and velocity at its end by ``(dt, dq, dv)`` at its start
            and by parameters, shape (2 nv, 1 + 2 nv + parameters).
        by_end: by the time of its end, shape (2 nv,).
    """

    q: Array
    v: Array
    by_start: Array
    by_end: Array

    def then(self, after: Carry) -> FollowedStep:
        """With what happens at its end, such as a projection."""
        matrix = after.before[1:, 1:]
        by_start = matrix @ self.by_start
        by_start[:, len(after.before) :] += after.parameters[1:]
        return replace(self, by_start=by_start, by_end=matrix @ self.by_end + after.before[1:, 0])

    def passing_rate(self, guard: GuardSlopes) -> float:
        """How fast a guard passes zero at its end; zero where it only touches."""
        return float(guard.by_time + guard.by_state @ self.by_end)

    def planned(self, end_by_parameters: Array | None = None) -> Carry:
        """The end is at a time that the state does not change, perhaps a parameter does."""
        end = np.zeros(self.by_start.shape[1])
        if end_by_parameters is not None:
            end[1 + len(self.by_end) :] = end_by_parameters
        return self._ending(end)

    def until(self, guard: GuardSlopes) -> Carry:
        """The end is where a guard is zero."""
        missed = guard.by_state @ self.by_start
        missed[1 + len(self.by_end) :] += guard.by_parameters
        return self._ending(later_by(missed, self.passing_rate(guard)))

    def _ending(self, end: Array) -> Carry:
        """The map of changes from the derivatives of the time of the end."""
        whole = np.vstack([end, reached_later(self.by_start, self.by_end, end)])
        return Carry(*np.split(whole, [1 + len(self.by_end)], axis=1))


class _Stage(NamedTuple):
    """A stage: rates of ``y = (psi, v)``, and their derivatives.

    Args:
        rates: of psi and v, shape (2 n,).
        by_own: by y, shape (2 n, 2 n).
        by_given: by position and velocity at the start, time of the stage, parameters.
    """

    rates: Array
    by_own: Array
    by_given: tuple[Array, Array, Array]


def follow_step(
    tableau: Tableau,
    manifold: TangentGroup,
    slopes: SlopesOfMotion,
    span: tuple[float, float],
    state: tuple[Array, Array],
    guess: Array | None = None,
) -> FollowedStep:
    """A step of a Munthe-Kaas method, and its tangent.

    Args:
        tableau: the method; stages of an implicit one are found by Newton's method.
        manifold: the group.
        slopes: acceleration and its derivatives.
        span: times of its start and end [s].
        state: configuration and velocity at its start.
        guess: of an implicit method psi and velocity of its stages, shape (stages, 2 nv).

    Raises:
        BadValue: the stages of an implicit method are not found.
    """
    (t0, t1), (q, v) = span, state
    h, n = t1 - t0, len(v)
    base = np.concatenate([np.zeros(n), v])
    times = (t0 + h * tableau.c).tolist()

    def stage(j: int, y: Array) -> _Stage:
        return _stage(manifold, slopes, times[j], q, y)

    stages: list[_Stage] = []
    if not tableau.implicit:
        for j in range(tableau.stages):
            step = sum((h * w * s.rates for w, s in zip(tableau.a[j], stages, strict=False)), base)
            stages.append(stage(j, step))
    else:
        stages = _implicit_stages(tableau, h, base, stage, guess)
    changes = _stage_changes(tableau, h, stages)
    rates = np.array([s.rates for s in stages])
    end = base + h * (tableau.b @ rates)
    q1, (by_q, by_psi) = manifold.integrate(q, end[:n]), manifold.integrate_slopes(q, end[:n])
    total = _given_rows(n, changes.shape[-1]) + h * np.tensordot(tableau.b, changes, 1)
    _add_times(total, tableau.b @ rates, n)
    total[:n] = by_psi @ total[:n]
    total[:n, :n] += by_q
    by_start = np.column_stack([total[:, 2 * n], total[:, : 2 * n], total[:, 2 * n + 2 :]])
    return FollowedStep(q1, end[n:], by_start, total[:, 2 * n + 1])


def guard_slopes(
    manifold: TangentGroup,
    value: Callable[[float, Array, Array], float],
    state: tuple[float, Array, Array],
    parameters: int = 0,
) -> GuardSlopes:
    """Derivatives of a function of time, configuration and velocity, by differences.

    Args:
        manifold: the group.
        value: the function.
        state: time [s], configuration and velocity.
        parameters: number of parameters, on which it does not depend.
    """
    (t, q, v), n = state, len(state[2])

    def at(s: float, k: int) -> Array:
        q_s = manifold.integrate(q, _moved(np.zeros(n), k, s)) if k < n else q
        return np.array(value(t, q_s, v if k < n else _moved(v, k - n, s)))

    by_time = slope_along(lambda s: np.array(value(t + s, q, v)), SLOPE_TIME)
    by_state = np.array([slope_along(partial(at, k=k), SLOPE_STEP) for k in range(2 * n)])
    return GuardSlopes(float(by_time), by_state, np.zeros(parameters))


def _stage(manifold: TangentGroup, slopes: SlopesOfMotion, t: float, q: Array, y: Array) -> _Stage:
    """Rates at a stage."""
    n = len(y) // 2
    psi, v = y[:n], y[n:]
    by_q, by_psi = manifold.integrate_slopes(q, psi)
    here = slopes(t, manifold.integrate(q, psi), v)
    rate, turning, dexp_inv = v, np.zeros((n, n)), np.eye(n)
    if not manifold.flat and psi.any():
        rate, dexp_inv = manifold.dexp_inv(q, psi, v), np.array(np.linalg.inv(by_psi))
        for k in manifold.curved.nonzero()[0].tolist():
            beside = partial(_rate_beside, manifold, (q, psi, v), k)
            turning[:, k] = slope_along(beside, SLOPE_STEP)
    own = np.block([[turning, dexp_inv], [here.by_position @ by_psi, here.by_velocity]])
    zeros = np.zeros((n, here.by_parameters.shape[1]))
    given = (
        np.vstack([np.zeros((n, n)), here.by_position @ by_q]),
        np.concatenate([np.zeros(n), here.by_time]),
        np.vstack([zeros, here.by_parameters]),
    )
    return _Stage(np.concatenate([rate, here.a]), own, given)


def _rate_beside(
    manifold: TangentGroup, at: tuple[Array, Array, Array], k: int, by: float
) -> Array:
    q, psi, v = at
    return manifold.dexp_inv(q, _moved(psi, k, by), v)


def _moved(x: Array, k: int, by: float) -> Array:
    moved = x.copy()
    moved[k] += by
    return moved


def _implicit_stages(
    tableau: Tableau,
    h: float,
    base: Array,
    stage: Callable[[int, Array], _Stage],
    guess: Array | None,
) -> list[_Stage]:
    """The stages of an implicit step, by Newton's method with their own derivatives."""
    count, size, left = tableau.stages, len(base), np.inf
    y = np.tile(base, (count, 1)) if guess is None else guess.copy()
    for _ in range(_ITERATIONS):
        stages = [stage(j, y[j]) for j in range(count)]
        missed = y - base - h * tableau.a @ np.array([s.rates for s in stages])
        matrix = np.eye(count * size) - h * _coupled(tableau.a, stages)
        change = np.linalg.solve(matrix, missed.ravel()).reshape(count, size)
        y = y - change
        left = float(np.abs(change).max() / max(1.0, np.abs(y).max()))
        if left <= SOLVED_STEP:
            break
    if not left <= RETRACED:
        raise BadValue(
            f"an implicit step of {h:.6g} s cannot be followed again: its stages are {left:.2g} "
            f"off after {_ITERATIONS} iterations; let the run take shorter steps, by a smaller "
            "step or tolerance"
        )
    return [stage(j, y[j]) for j in range(count)]


def _coupled(a: Array, stages: list[_Stage]) -> Array:
    """``a`` times the derivatives of the stages, one block each."""
    blocks = a[:, :, None, None] * np.array([s.by_own for s in stages])
    size = len(stages) * len(stages[0].rates)
    return np.asarray(blocks.transpose(0, 2, 1, 3).reshape(size, size))


def _given_rows(n: int, columns: int) -> Array:
    """How ``y`` depends on what is given at the start of a step: its velocity starts there."""
    rows = np.zeros((2 * n, columns))
    rows[n:, n : 2 * n] = np.eye(n)
    return rows


def _add_times(rows: Array, rates: Array, n: int) -> None:
    """Add what a longer step adds, in the columns of the times of start and end."""
    rows[:, 2 * n] -= rates
    rows[:, 2 * n + 1] += rates


def _stage_changes(tableau: Tableau, h: float, stages: list[_Stage]) -> Array:
    """Derivatives of the rates of the stages, shape (stages, 2 n, 2 n + 2 + parameters).

    By position and velocity at the start, by the times of start and end, and by parameters.
    """
    size, count = len(stages[0].rates), len(stages)
    n, columns = size // 2, size + 2 + stages[0].by_given[2].shape[1]
    rates, changes = np.array([s.rates for s in stages]), np.zeros((count, size, columns))
    own, y = np.array([s.by_own for s in stages]), np.tile(_given_rows(n, columns), (count, 1, 1))
    for j, (by_q, by_time, by_p) in enumerate(s.by_given for s in stages):
        _add_times(y[j], tableau.a[j] @ rates, n)
        changes[j, :, :n], changes[j, :, size + 2 :] = by_q, by_p
        changes[j, :, size] = (1.0 - tableau.c[j]) * by_time
        changes[j, :, size + 1] = tableau.c[j] * by_time
    if tableau.implicit:
        y += h * np.tensordot(tableau.a, changes, 1)
        matrix = np.eye(count * size) - h * _coupled(tableau.a, stages)
        solved = np.linalg.solve(matrix, y.reshape(count * size, -1))
        return np.asarray(changes + own @ solved.reshape(y.shape))
    for j in range(count):
        y[j] += h * np.tensordot(tableau.a[j, :j], changes[:j], 1)
        changes[j] += own[j] @ y[j]
    return changes
