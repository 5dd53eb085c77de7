"""Implicit steps: collocation in the algebra, for motions that explicit steps cannot follow.

In a step, ``y = (psi, v)`` obeys an ordinary differential equation in a vector space,

    psi' = dexpinv(-psi) v,        v' = f(t, q0 (+) psi, v),

so that the stages ``Z = h A G(Z)`` of an implicit Runge-Kutta method need of the manifold what
explicit ones need. Simplified Newton iterations solve them (Hairer, Wanner, "Solving Ordinary
Differential Equations II", IV.8): with ``A^-1 = T diag(mu) T^-1`` they fall into systems of the
size of ``v``, one for ``psi``, which but for turns of the frame is ``psi' = v``, and one for ``v``.
Slopes are differences on the manifold; they are kept while iterations
converge fast. What they converge to does not hang on them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..boundary.marks import Array
from ..tolerances import FORWARD_STEP, LAST_BITS, SOLVED_STEP, SPEED_STEP, TINY
from .munthe_kaas import Attempt, Manifold, MuntheKaas, RightHandSide, StepControl
from .polynomials import INNER
from .tableaux import Tableau

State = tuple[Array, Array, Array]

_RESTLESS = 0.1
"""Contraction of iterations from which on slopes are computed anew for the next step."""
_UNTRIED = 1e-3
"""Least contraction to count on: the first guess may be wrong in what iterations solve at once."""
_ITERATIONS, _MORE = 12, 30
"""Most iterations of a step, and of a fixed one, which cannot be made smaller."""
_ITERATED = 0.03
"""Part of the tolerance that iterations may leave; its root if that is less, but for rounding."""
_ROUNDED = 1e3
"""Change over the tolerance of a fixed step that may be rounding alone, near singular poses."""
_GROWS = 0.1
"""Growth over the rate of change from which on a motion grows by itself."""


class Slopes(NamedTuple):
    """``d psi' = turning psi + dv`` and ``da = by_position psi + by_velocity dv`` at a state."""

    turning: Array
    by_position: Array
    by_velocity: Array

    def motions(self) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
        """Rates of the motions that small disturbances are made of, and psi beside v of each.

        Without an end of a slope nothing is known of any.
        """
        n = len(self.by_position)
        if not all(np.isfinite(part).all() for part in self):
            return np.zeros(0, np.complex128), np.zeros((2 * n, 0), np.complex128)
        blocks = [[self.turning, np.eye(n)], [self.by_position, self.by_velocity]]
        rates, motions = np.linalg.eig(np.block(blocks))
        return rates.astype(np.complex128), motions.astype(np.complex128)

    @property
    def fastest(self) -> float:
        """Largest rate of change [1/s]."""
        return float(np.abs(self.motions()[0]).max(initial=0.0))


class Iterated(NamedTuple):
    """What the next implicit step takes over from the last one.

    Args:
        slopes: of the accelerations; None if they are to be computed.
        fresh: whether they are those at the start of the step to come.
        contraction: of the last iterations.
        h: size of the last step [s]; zero if there was none.
        rise: by how much the stages of the velocity were above its start, shape (s, n).
    """

    slopes: Slopes | None = None
    fresh: bool = False
    contraction: float = 0.0
    h: float = 0.0
    rise: Array | None = None

    @property
    def again(self) -> Iterated:
        """What is left of it after a step that failed: no guess of the stages."""
        return self._replace(h=0.0, rise=None)


class ImplicitSteps:
    """Takes implicit steps of a method whose last stage is the end of the step.

    Args:
        method: integrator.
        scale: size of one unit of each velocity coordinate, see `StepControl`.

    Attributes:
        control: of the step, by its tolerances.
        tableau: of the method.
    """

    def __init__(self, method: MuntheKaas, scale: Array) -> None:
        self.tableau = tableau = method.tableau
        self._fixed = method.step is not None
        self._most = _MORE if self._fixed else _ITERATIONS
        if self._fixed:
            method = replace(method, rtol=SOLVED_STEP, atol=SOLVED_STEP)
        self.control, self._scale = StepControl(method, scale), scale
        self._c, self._a = tableau.c, tableau.a
        self._inverse = np.linalg.inv(tableau.a)
        rates, T = np.linalg.eig(self._inverse)
        chosen = rates.imag >= -LAST_BITS  # of each pair one
        real = np.abs(rates[chosen].imag) <= LAST_BITS
        self._rates, self._back = rates[chosen], np.linalg.inv(T)[chosen]
        self._forth = T[:, chosen] * np.where(real, 1.0, 2.0)
        # What the embedded method misses of the step, and the weight of the slope at its start.
        missed = tableau.error_weights[0, :-1]
        self._missed, self._at_start = missed @ self._inverse, -float(missed.sum())
        self._guess = _extrapolation(tableau.c)
        self._slope = _slopes(tableau.c)
        left = max(method.rtol, method.atol)
        self._enough = max(min(_ITERATED, float(np.sqrt(left))), LAST_BITS / left)

    def attempt(
        self,
        manifold: Manifold,
        f: RightHandSide,
        t: float,
        h: float,
        state: State,
        known: Iterated,
    ) -> tuple[Attempt | None, Iterated]:
        """Try one step, see `MuntheKaas.attempt`; None if the iterations do not converge."""
        while True:
            slopes = known.slopes
            if slopes is None:
                slopes = difference_slopes(manifold, f, t, state, self._scale)
                known = known._replace(slopes=slopes, fresh=True)
            try:
                solve = _newton_solver(self._rates / h, slopes)
            except np.linalg.LinAlgError:  # something that grows would do so without bound in it
                return None, known.again
            Z, contraction = self._stages(manifold, f, (t, h), state, known, solve)
            if Z is not None:
                break
            if known.fresh:
                return None, known.again
            known = known.again._replace(slopes=None)
        (q, v, _), n = state, len(state[1])
        psi, rise = Z[-1, :n], Z[:, n:]
        v1 = v + rise[-1]
        q1, a = manifold.integrate(q, psi), self._inverse[-1] @ rise / h
        errors, fresh = self._errors(manifold, f, (t, h), state, (Z, slopes)), False
        if contraction > _RESTLESS:
            # What died away at the start may not do so at the end, and is no less of an error.
            slopes, fresh = difference_slopes(manifold, f, t + h, (q1, v1, a), self._scale), True
            there = self._errors(manifold, f, (t, h), state, (Z, slopes))
            errors = np.maximum(errors, there)
        rates = np.vstack([v, self._inverse @ Z[:, :n] / h])
        start, *inner = self._slope @ rates / h
        fine = np.array(inner) if self.tableau.outruns_quintics else None
        attempt = Attempt(psi, q1, v1, a, errors[None], start, fine)
        return attempt, Iterated(slopes, fresh, contraction, h, rise)

    def _stages(
        self,
        manifold: Manifold,
        f: RightHandSide,
        when: tuple[float, float],
        state: State,
        known: Iterated,
        solve: Callable[[Array], Array],
    ) -> tuple[Array | None, float]:
        """Stages beyond the start, shape (s, 2 n), and the contraction that led to them."""
        (t, h), (q, v, _), n, s = when, state, len(state[1]), len(self._c)
        Z, G = np.zeros((s, 2 * n)), np.empty((s, 2 * n))
        if known.rise is not None:
            nodes = (self._guess(h / known.h) @ known.rise) if known.h else 0.0
            Z[:, n:] = nodes
            Z[:, :n] = h * self._a @ (v + Z[:, n:])
        times = (t + h * self._c).tolist()
        contraction, before = max(known.contraction, _UNTRIED), np.inf
        for k in range(self._most):
            for j in range(s):
                psi, v_j = Z[j, :n], v + Z[j, n:]
                G[j, :n] = v_j if manifold.flat else manifold.dexp_inv(q, psi, v_j)
                G[j, n:] = f(times[j], manifold.integrate(q, psi), v_j)
            residual = self._back @ (G - self._inverse @ Z / h)
            change = (self._forth @ solve(residual)).real
            Z += change
            size = self.control.norm(change.reshape(s, 2, n), v, v + Z[-1, n:])
            if not np.isfinite(size):
                return None, 1.0
            if k > 0:
                contraction = max(size / max(before, TINY), _UNTRIED)
                rounded = self._fixed and size <= _ROUNDED
                if rounded and contraction >= 1.0:
                    return Z, contraction
                left = contraction ** (self._most - 1 - k) * size
                if left > (1.0 - contraction) * self._enough and not rounded:
                    return None, contraction
            if contraction * size <= (1.0 - contraction) * self._enough:
                return Z, contraction
            before = size
        return None, 1.0

    def _errors(
        self,
        manifold: Manifold,
        f: RightHandSide,
        when: tuple[float, float],
        state: State,
        taken: tuple[Array, Slopes],
    ) -> Array:
        """Error of psi and v, shape (2, n), from which motions that die away are filtered.

        The embedded method has the slope at the start as a stage of its own; its error is filtered
        by ``(I - h gamma J)^-1`` so that it stays bounded where motions die away (IV.8.19). Where
        that is not enough it is done twice (IV.8.20).
        """
        (t, h), (q, v, a), (Z, slopes), n = when, state, taken, len(state[1])
        weight = h * self._at_start
        solve = _newton_solver(np.array([1.0 / weight]), slopes)
        missed = self._missed @ Z

        def filtered(slope: Array) -> Array:
            return np.asarray(solve((slope + missed / weight)[None])[0].real)

        error = filtered(np.concatenate([v, a]))
        if self.control.norm(error.reshape(1, 2, n), v, v + Z[-1, n:]) >= 1.0:
            psi, v_1 = error[:n], v + error[n:]
            rate = v_1 if manifold.flat else manifold.dexp_inv(q, psi, v_1)
            slope = np.concatenate([rate, f(t, manifold.integrate(q, psi), v_1)])
            if np.isfinite(slope).all():
                error = filtered(slope)
        return np.abs(error.reshape(2, n))


def difference_slopes(
    manifold: Manifold, f: RightHandSide, t: float, state: State, scale: Array
) -> Slopes:
    """Slopes of the acceleration at a state by one-sided differences on the manifold."""
    (q, v, _), n = state, len(state[1])
    a = f(t, q, v)
    turning, by_position, by_velocity = np.zeros((3, n, n))
    width = FORWARD_STEP * scale
    speed = np.maximum(FORWARD_STEP * np.abs(v), SPEED_STEP * scale)
    for k in range(n):
        step = np.zeros(n)
        step[k] = width[k]
        by_position[:, k] = (f(t, manifold.integrate(q, step), v) - a) / width[k]
        if not manifold.flat:
            turning[:, k] = (manifold.dexp_inv(q, step, v) - v) / width[k]
        other = v.copy()
        other[k] += speed[k]
        by_velocity[:, k] = (f(t, q, other) - a) / (other[k] - v[k])
    return Slopes(turning, by_position, by_velocity)


def outgrown(tableau: Tableau, h: float, slopes: Slopes) -> bool:
    """Whether something that does not grow by itself would grow in explicit steps of size ``h``."""
    z = h * slopes.motions()[0]
    z = z[(z.real <= _GROWS * np.abs(z)) & (np.abs(z) > 1.0)]
    return not (np.abs(tableau.amplification(z)) <= 1.0).all()


def left_over(tableau: Tableau, h: float, slopes: Slopes, state: State) -> Array:
    """Velocity that a step misses of motions too fast for it, shape (n,).

    By the linear equation: of a motion with ``z = h rate`` a step leaves ``R(z)``, not ``exp z``.
    """
    (_, v, a), n = state, len(state[1])
    rates, motions = slopes.motions()
    parts = np.linalg.lstsq(motions, np.concatenate([v, a]), rcond=None)[0]
    fast = (h * np.abs(rates) > 1.0) & (rates.real <= _GROWS * np.abs(rates))
    z = h * rates[fast]
    missed = tableau.amplification(z) - np.exp(np.minimum(z.real, 0.0) + 1j * z.imag)
    return np.asarray(np.abs((motions[n:, fast] @ (missed * h / z * parts[fast])).real))


def _newton_solver(rates: Array, slopes: Slopes) -> Callable[[Array], Array]:
    """Solver of ``(mu - J) x = r`` for several mu, ``J`` the slopes of ``psi`` and ``v``."""
    (K, P, D), n = slopes, len(slopes.by_position)
    mu = rates[:, None, None] * np.eye(n)
    to_psi = np.linalg.inv(mu - K)
    pull = P @ to_psi
    to_v = np.linalg.inv(mu - D - pull)

    def solve(r: Array) -> Array:
        of_psi, of_v = r[:, :n, None], r[:, n:, None]
        dv = to_v @ (of_v + pull @ of_psi)
        return np.concatenate([to_psi @ (of_psi + dv), dv], axis=1)[:, :, 0]

    return solve


def _slopes(c: Array) -> Array:
    """What makes of values at the start and the stages slopes there and at `INNER`, (4, s + 1)."""
    orders = np.arange(len(c) + 1)
    values = np.append(0.0, c)[:, None] ** orders
    at = np.append(0.0, INNER)[:, None]
    slopes = orders * at ** np.maximum(orders - 1, 0)
    return np.asarray(slopes @ np.linalg.inv(values))


def _extrapolation(c: Array) -> Callable[[float], Array]:
    """What makes of the stages of a step a guess of the next one's, by the ratio of their sizes.

    Both are above the start of their step; the polynomial through the stages goes on.
    """
    powers = np.arange(1, len(c) + 1)
    weights = np.linalg.inv(c[:, None] ** powers)

    def guess(ratio: float) -> Array:
        rise = ((1.0 + ratio * c[:, None]) ** powers - 1.0) @ weights
        return np.asarray(rise)

    return guess
