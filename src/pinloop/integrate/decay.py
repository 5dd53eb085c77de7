"""Velocities that die away by themselves: damping goes exactly into a step, however fast it is.

A stiff part ``v' = -A v + ...`` with ``A = G D``, both symmetric and positive semidefinite, is
taken out of a step. With ``phi_k`` of exponential integrators (``phi_0 = exp``), the motion that
has the step's first acceleration ``a0`` and then only decays is

    v(t) = v0 + t phi_1(-t A) a0,        psi(t) = t v0 + t^2 phi_2(-t A) a0,

and what is left over, ``r = a + A v - (a0 + A v0)``, adds ``w``: ``(exp(t A) w)' = exp(t A) r``.
A Runge-Kutta method in ``psi - psi(t)`` and ``exp(t A) w`` keeps its order, whatever ``A`` is, as
these are only other coordinates (generalised Lawson methods: Krogstad, J. Comput. Phys. 203,
2005). Where decay is fast, ``w`` at the end errs by what ``r`` changes in the step, although ``r``
then only shifts the balance of forces: there Newton's step to this balance is added, from the
acceleration ``a1`` that is more than that of the known motion,

    v1 += h gamma(h A) (h A)^-1 (a1 - v'(h)),   gamma(z) = 1 - exp(-z) (1 + z + ... + z^p / p!),

which is of order p + 1 where decay is slow. No robot is known here.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..tolerances import UNBALANCED, UNDAMPED
from .munthe_kaas import Attempt, Manifold, MuntheKaas, RightHandSide
from .polynomials import hermite, slope_powers, value_powers

Array = NDArray[np.float64]

_TERMS = 20
"""Terms of the series of the functions for arguments up to 1."""
_FAST = 0.5
"""Steps over the least time constant from which on the balance of forces is looked for."""
_SETTLED = 200.0
"""Steps over time constants after which nothing is left, to the last bit."""


def decay_functions(z: Array) -> Array:
    """``phi_k(-z)`` for ``z >= 0`` and k = 0 ... 3, shape (4, ...).

    ``phi_k(-z) = sum of (-z)^i / (i + k)!``, so that ``phi_k = (1 / (k - 1)! - phi_(k - 1)) / z``.
    """
    values, below = np.empty((2, 4, *np.shape(z)))
    small, large = np.minimum(z, 1.0), np.maximum(z, 1.0)
    values[0], below[3] = np.exp(-large), 0.0
    for k in range(1, 4):
        values[k] = (1.0 / math.factorial(k - 1) - values[k - 1]) / large
    # Where that cancels, the last one is summed up, and the others follow downwards.
    for i in reversed(range(_TERMS)):
        below[3] = 1.0 / math.factorial(i + 3) - small * below[3]
    for k in reversed(range(3)):
        below[k] = 1.0 / math.factorial(k) - small * below[k + 1]
    return np.asarray(np.where(z < 1.0, below, values))


class Decay:
    """The matrix ``A = G D`` of ``v' = -A v``, by its motions.

    ``A = K L`` with ``K = G R'U``, ``L = U'R``, ``R'R = D``, and ``R G R' = U rates U'``; so that
    ``f(-t A) = f(0) - t K g(-t rates) L`` with ``g(z) = (f(z) - f(0)) / z``.

    Args:
        G: accelerations that forces give, shape (n, n).
        D: forces that velocities take, shape (n, n).

    Attributes:
        rates: of the motions that die away [1/s], shape (m,).
        K: shape (n, m).
        L: shape (m, n).
    """

    def __init__(self, G: Array, D: Array) -> None:
        values, vectors = np.linalg.eigh(0.5 * (D + D.T))
        damped = values > UNDAMPED * max(float(values.max(initial=0.0)), 0.0)
        root = (vectors[:, damped] * np.sqrt(values[damped])).T
        rates, U = np.linalg.eigh(root @ G @ root.T)
        self.rates = np.maximum(rates, 0.0)
        self.K, self.L = G @ root.T @ U, U.T @ root


def attempt_with_decay(
    method: MuntheKaas,
    manifold: Manifold,
    f: RightHandSide,
    t: float,
    h: float,
    state: tuple[Array, Array, Array],
    decay: Decay,
) -> Attempt:
    """Try one step; arguments as of `MuntheKaas.attempt`.

    The error estimate covers dense output too, which is a polynomial: where velocities have not
    died away yet, steps are as short as they do.

    Args:
        method: method whose stages follow each other in time.
        manifold: the group.
        f: acceleration as a function of t, q, v.
        t: start [s].
        h: step [s].
        state: configuration, velocity and acceleration at the start.
        decay: what dies away, as it is at the start.
    """
    step = _Step(method, h, state, decay)
    tableau, (q, v, _), s = method.tableau, state, method.tableau.stages
    psi, v1, a1, fix = step.path[0], v, None, None
    for j in range(1, s + 1):
        to_psi, to_v = step.added(j, tableau.b if j == s else tableau.a[j, :j])
        psi, v1 = step.path[j] + to_psi, step.rate[j] + to_v
        q1 = manifold.integrate(q, psi)
        if j == s and not (step.fast or tableau.looks_ahead):
            break
        a1 = f(t + float(step.times[j]), q1, v1)
        step.note(j, v1 if manifold.flat else manifold.dexp_inv(q, psi, v1), v1, a1)
    if step.fast and a1 is not None:
        v1 = v1 + step.balance(a1)
        fix = 0.5 * h * step.fast_part(v1 - step.rate[s])
        psi = psi + fix
        q1, a1 = manifold.integrate(q, psi), None
    if method.step is not None:
        return Attempt(psi, q1, v1, a1, np.zeros((0, 2, len(v))))
    return Attempt(psi, q1, v1, a1, np.maximum(step.missed(), step.errors(fix)))


class _Step:
    """What is known of a step before it is taken, and what its stages add.

    Attributes:
        times: of the stages, the end, and the middle, from the start [s].
        rate: velocity of the known motion at these times, shape (s + 2, n).
        path: way in the algebra of the known motion at these times, shape (s + 2, n).
        fast: whether something dies away within the step.
    """

    def __init__(
        self, method: MuntheKaas, h: float, state: tuple[Array, Array, Array], decay: Decay
    ) -> None:
        self._tableau, self._h, self._decay = method.tableau, h, decay
        _, self._v, self._a = state
        self._s, n, K = self._tableau.stages, len(self._v), decay.K
        self.times = h * np.append(self._tableau.c, (1.0, 0.5))
        T, y = self.times[:, None], decay.L @ self._a
        phi = decay_functions(T * decay.rates)
        self.rate = self._v + T * self._a - T**2 * (phi[2] * y) @ K.T
        self.path = T * self._v + T**2 / 2 * self._a - T**3 * (phi[3] * y) @ K.T
        self._end = self._a - h * K @ (phi[1][self._s] * y)
        spans = np.maximum(self.times[:-1, None] - self.times[:-1], 0.0)[:, :, None]
        self._fading = spans * decay_functions(spans * decay.rates)[1]
        z = h * decay.rates
        self.fast = bool((z > _FAST).any())
        self._gamma = _share_of_balance(z, self._tableau.order)
        self._z = np.where(self._gamma > 0.0, z, 1.0)
        # Rates of psi and accelerations beyond what is known, the latter also along the motions
        # that die away.
        count = self._s + 1
        self._X, self._R, self._Y = (np.zeros((count, m)) for m in (n, n, len(y)))

    def added(self, j: int, row: Array) -> tuple[Array, Array]:
        """What the stages before j add to psi and v at its time, with some weights."""
        k = len(row)
        faded = self._decay.K @ np.einsum("l,lm,lm->m", row, self._fading[j, :k], self._Y[:k])
        return self._h * row @ self._X[:k], self._h * (row @ self._R[:k] - faded)

    def note(self, j: int, slope: Array, v: Array, a: Array) -> None:
        """Take account of a stage.

        Args:
            j: number of the stage.
            slope: rate of psi, shape (n,).
            v: velocity, shape (n,).
            a: acceleration, shape (n,).
        """
        self._X[j] = slope - self.rate[j]
        self._R[j] = a - self._a + self._decay.K @ (self._decay.L @ (v - self._v))
        self._Y[j] = self._decay.L @ self._R[j]

    def balance(self, a: Array) -> Array:
        """Newton's step of the velocity to the balance of forces, from the acceleration there."""
        part = self._gamma / self._z**2 * (self._decay.L @ (a - self._end))
        return np.asarray(self._h**2 * self._decay.K @ part)

    def fast_part(self, x: Array) -> Array:
        """``gamma(h A) x``: what of a velocity belongs to motions that die away in the step."""
        return np.asarray(self._h * self._decay.K @ (self._gamma / self._z * (self._decay.L @ x)))

    def missed(self) -> Array:
        """By how much a quintic misses the known motion in the middle: psi and v, shape (2, n)."""
        h, s = self._h, self._s
        ends = h * self._v, h * self.rate[s], h * h * self._a, h * h * self._end
        quintic = hermite(self.path[s], *ends)
        between = value_powers(0.5) @ quintic, slope_powers(0.5) @ quintic / h
        return np.asarray(np.abs(np.array(between) - (self.path[s + 1], self.rate[s + 1])))

    def errors(self, fix: Array | None) -> Array:
        """Errors of psi and v by each estimate of the tableau, shape (k, 2, n).

        Args:
            fix: what the balance of forces has changed of psi; None if it was not looked for.
        """
        rows, s = self._tableau.error_weights, self._s
        errors = np.array([self.added(s, row) for row in rows]).reshape(len(rows), 2, len(self._v))
        if fix is None:
            return np.asarray(np.abs(errors))
        last = self.fast_part(self._X[s])
        rest = self._h**2 * self._decay.K @ (self._gamma / self._z**3 * self._Y[s])
        for row, (of_psi, of_v) in zip(rows, errors, strict=True):
            of_psi[:] = np.abs(of_psi - self._h * row[s] * last) + np.abs(fix)
            left = np.abs(of_v - self.fast_part(of_v)) + np.abs(rest)
            of_v[:] = np.maximum(left, UNBALANCED * np.abs(of_v))
        return errors


def _share_of_balance(z: Array, order: int) -> Array:
    """``gamma(z) = 1 - exp(-z) (1 + z + ... + z^order / order!)``; zero where nothing decays."""
    terms = np.cumprod(np.vstack([np.ones_like(z), *(z / k for k in range(1, order + 1))]), axis=0)
    gamma = 1.0 - np.exp(-z) * terms.sum(axis=0) if len(z) else z
    return np.where(z > _FAST / 10, np.where(z > _SETTLED, 1.0, gamma), 0.0)
