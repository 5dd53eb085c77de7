"""Velocities that die away by themselves: damping goes exactly into a step, however fast it is.

A stiff part ``v' = -A v + ...`` with ``A = G D``, both symmetric and positive semidefinite, is
taken out of a step. With ``phi_k`` of exponential integrators (``phi_0 = exp``), the motion that
has the step's first acceleration ``a0`` and then only decays is

    v(t) = v0 + t phi_1(-t A) a0,        psi(t) = t v0 + t^2 phi_2(-t A) a0,

and what is left over, ``r = a + A v - (a0 + A v0)``, adds ``w``: ``(exp(t A) w)' = exp(t A) r``.
A Runge-Kutta method in ``psi - psi(t)`` and ``exp(t A) w`` keeps its order, whatever ``A`` is, as
these are only other coordinates (generalised Lawson methods: Krogstad, J. Comput. Phys. 203,
2005).
No robot is known here.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..tolerances import UNDAMPED
from .munthe_kaas import Attempt, Manifold, MuntheKaas, RightHandSide
from .quintic import hermite, slope_powers, value_powers

__all__ = ["Decay", "attempt_with_decay", "decay_functions"]

Array = NDArray[np.float64]

_TERMS = 20
"""Terms of the series of the functions for arguments up to 1."""


def decay_functions(z: Array) -> Array:
    """``phi_k(-z)`` for ``z >= 0`` and k = 0 ... 3, shape (4, ...).

    ``phi_k(-z) = sum of (-z)^i / (i + k)!``, so that ``phi_k = (1 / (k - 1)! - phi_(k - 1)) / z``.
    """
    values = np.empty((4, *np.shape(z)))
    small, large = np.minimum(z, 1.0), np.maximum(z, 1.0)
    values[0] = np.exp(-large)
    for k in range(1, 4):
        values[k] = (1.0 / math.factorial(k - 1) - values[k - 1]) / large
    for k in range(4):
        series = np.zeros(np.shape(z))
        for i in reversed(range(_TERMS)):
            series = 1.0 / math.factorial(i + k) - small * series
        values[k] = np.where(z < 1.0, series, values[k])
    return values


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
    tableau, (q, v, a), K, L = method.tableau, state, decay.K, decay.L
    s, n = tableau.stages, len(v)
    nodes = np.append(tableau.c, (1.0, 0.5))
    T = h * nodes[:, None]
    phi, y = decay_functions(T * decay.rates), L @ a
    rate = v + T * a - T**2 * (phi[2] * y) @ K.T
    path = T * v + T**2 / 2 * a - T**3 * (phi[3] * y) @ K.T
    weights = np.vstack([tableau.a, tableau.b])
    spans = h * np.maximum(nodes[: s + 1, None] - nodes[: s + 1], 0.0)[:, :, None]
    fading = spans * decay_functions(spans * decay.rates)[1]
    # Per stage and at the end: rate of psi and acceleration without what is known, the latter
    # also along the motions that die away.
    X, R, Y = np.zeros((s + 1, n)), np.zeros((s + 1, n)), np.zeros((s + 1, len(y)))

    def added(j: int, row: Array) -> tuple[Array, Array]:
        """What the stages before j add to psi and v at its time, with some weights."""
        faded = K @ np.einsum("l,lm,lm->m", row, fading[j, : len(row)], Y[: len(row)])
        return h * row @ X[: len(row)], h * (row @ R[: len(row)] - faded)

    psi, v_j, q_j, a1 = path[0], v, q, None
    for j in range(1, s + 1):
        to_psi, to_v = added(j, weights[j, :j])
        psi, v_j = path[j] + to_psi, rate[j] + to_v
        q_j = manifold.integrate(q, psi)
        if j == s and (method.step is not None or not tableau.looks_ahead):
            break
        a1 = f(t + float(T[j, 0]), q_j, v_j)
        X[j] = (v_j if manifold.flat else manifold.dexp_inv(q, psi, v_j)) - rate[j]
        R[j] = a1 - a + K @ (L @ (v_j - v))
        Y[j] = L @ R[j]
    if method.step is not None:
        return Attempt(psi, q_j, v_j, None, np.zeros((0, 2, n)))
    end = a - h * K @ (phi[1][s] * y)
    quintic = hermite(path[s], h * v, h * rate[s], h * h * a, h * h * end)
    missed = np.abs(
        [
            value_powers(0.5) @ quintic - path[s + 1],
            slope_powers(0.5) @ quintic / h - rate[s + 1],
        ]
    )
    errors = np.array([np.maximum(np.abs(added(s, row)), missed) for row in tableau.error_weights])
    return Attempt(psi, q_j, v_j, a1 if tableau.looks_ahead else None, errors)
