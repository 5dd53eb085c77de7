"""Tests of `pinloop.integrate.decay`: damping goes into a step exactly, at the order of its method.

Oracles: series in fractions, matrix exponentials by eigenvalues, and the same methods without it.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import pinloop as pl
from pinloop.integrate import METHODS, Decay, attempt_with_decay, get_tableau
from pinloop.integrate import decay as decaying
from pinloop.integrate.decay import decay_functions

from ..screw_tables import Array
from .groups_by_hand import Space
from .test_munthe_kaas import Turns

RISING = ["euler", "heun", "rk4", "bs32", "dopri5"]


def steps(
    name: str, count: int, manifold: Space | Turns, f: object, start: tuple[Array, Array],
    decay: Decay | None,
) -> tuple[Array, Array]:  # fmt: skip
    """State after one second in so many steps."""
    method, (q, v), h = pl.MuntheKaas(name, step=1 / count), start, 1 / count
    assert callable(f)
    for k in range(count):
        state = q, v, f(k * h, q, v)
        taken = (
            method.attempt(manifold, f, k * h, h, state)
            if decay is None
            else attempt_with_decay(method, manifold, f, k * h, h, state, decay)
        )
        q, v = taken.q, taken.v
    return q, v


def positive(rng: np.random.Generator, rank: int) -> Array:
    root = rng.normal(size=(3, rank))
    return np.asarray(root @ root.T)


@pytest.mark.parametrize("k", range(4))
@pytest.mark.parametrize("z", [0.0, 1e-12, 1e-3, 0.5, 0.999, 1.0, 1.001, 7.0, 30.0])
def test_functions_are_their_series(k: int, z: float) -> None:
    x = -Fraction(z)
    exact = float(sum(x**i / math.factorial(i + k) for i in range(160)))
    assert decay_functions(np.array([z]))[k, 0] == pytest.approx(exact, rel=1e-12, abs=1e-15)


def test_functions_of_fast_decay() -> None:
    """``phi_k(-z)`` tends to ``1 / ((k - 1)! z)``."""
    z = np.array([1e12])
    np.testing.assert_allclose(decay_functions(z)[1:, 0] * z, [1.0, 1.0, 0.5], rtol=1e-11)


@pytest.mark.parametrize("name", RISING)
@pytest.mark.parametrize("h", [1e-3, 1.0, 1e3])
def test_linear_decay_is_exact_in_steps_of_any_length(name: str, h: float) -> None:
    """``v' = F - A v`` with constant ``F``, of which some motions are not damped."""
    rng = np.random.default_rng(3)
    G, D, F = positive(rng, 3), positive(rng, 2), rng.normal(size=3)
    A = G @ D
    q, v = rng.normal(size=(2, 3))
    method = pl.MuntheKaas(name, step=h)
    taken = attempt_with_decay(
        method, Space(), lambda t, q, v: F - A @ v, 0.0, h, (q, v, F - A @ v), Decay(G, D)
    )
    values, T = np.linalg.eig(A)
    values, T = values.real, T.real
    y, force = np.linalg.solve(T, np.column_stack([v, F])).T
    undamped = np.abs(values) < 1e-9
    rates = np.where(undamped, 1.0, values)
    rest = force / rates
    gone = np.exp(-rates * h)
    speed = np.where(undamped, y + force * h, rest + (y - rest) * gone)
    path = np.where(undamped, y * h + force * h * h / 2, rest * h + (y - rest) * (1 - gone) / rates)
    size = max(1.0, h * h)
    np.testing.assert_allclose(taken.v, T @ speed, rtol=1e-9, atol=1e-10 * size)
    np.testing.assert_allclose(taken.psi, T @ path, rtol=1e-9, atol=1e-10 * size)
    np.testing.assert_allclose(taken.q, q + taken.psi)


@pytest.mark.parametrize("name", RISING)
def test_the_order_is_that_of_the_method_whatever_decays(name: str) -> None:
    """With a matrix that has nothing to do with the damping that there is, which varies."""
    rng = np.random.default_rng(0)
    B = rng.normal(size=(3, 3))
    decay = Decay(0.3 * positive(rng, 3), np.diag([1.0, 2.0, 0.0]))

    def f(t: float, q: Array, v: Array) -> Array:
        M = np.diag([1.0, 2.0, 0.5]) + 0.3 * np.cos(q[0]) ** 2 * np.eye(3)
        damping = np.array([2.0, 1.0, 3.0]) * (1 + 0.3 * np.tanh(v[1])) * v
        return np.asarray(np.linalg.solve(M, B @ np.sin(q) + np.cos(3 * t) - damping))

    start = np.array([0.1, 0.2, 0.3]), np.array([1.0, -1.0, 0.5])
    exact = np.concatenate(steps("dopri5", 1024, Space(), f, start, None))
    errors = [
        float(np.abs(np.concatenate(steps(name, count, Space(), f, start, decay)) - exact).max())
        for count in (64, 128)
    ]
    assert np.log2(errors[0] / errors[1]) > get_tableau(name).order - 0.35


def test_the_step_to_the_balance_of_forces_is_of_higher_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where it is taken although nothing decays fast."""
    monkeypatch.setattr(decaying, "_FAST", 0.0)
    for name in RISING:
        test_the_order_is_that_of_the_method_whatever_decays(name)


def test_what_is_driven_slowly_takes_long_steps() -> None:
    """``v' = -A (v - sin t)``: it follows at a distance of ``cos(t) / A``."""
    rate, h = 1e9, 0.05
    decay, method = Decay(np.eye(1), np.full((1, 1), rate)), pl.MuntheKaas(step=h)

    def f(t: float, q: Array, v: Array) -> Array:
        return np.asarray(-rate * (v - np.sin(t)))

    q, v = np.zeros(1), np.zeros(1)
    for k in range(20):
        state = q, v, f(k * h, q, v)
        taken = attempt_with_decay(method, Space(), f, k * h, h, state, decay)
        q, v = taken.q, taken.v
        assert v[0] == pytest.approx(np.sin((k + 1) * h), abs=2e-9)
    assert q[0] == pytest.approx(1 - np.cos(1.0), abs=h * h / 8)


@pytest.mark.parametrize("name", RISING)
def test_the_order_on_a_group(name: str) -> None:
    """A body that turns in a thick fluid, whose axes differ."""
    inertia, drag = np.array([1.0, 2.0, 3.0]), np.array([2.0, 0.5, 4.0])

    def f(t: float, q: Array, v: Array) -> Array:
        return np.asarray((np.cross(inertia * v, v) - drag * v + np.sin(2 * t)) / inertia)

    start = np.eye(3), np.array([1.0, -2.0, 0.7])
    decay = Decay(np.diag(1 / inertia), np.diag(drag))
    exact = steps("dopri5", 256, Turns(), f, start, None)
    errors = []
    for count in (32, 64):
        q, v = steps(name, count, Turns(), f, start, decay)
        errors.append(float(np.abs(q - exact[0]).max() + np.abs(v - exact[1]).max()))
    assert np.log2(errors[0] / errors[1]) > get_tableau(name).order - 0.5


def test_stages_that_go_back_in_time_are_refused() -> None:
    assert [name for name in METHODS if not get_tableau(name).goes_ahead] == ["dop853"]
    with pytest.raises(pl.BadValue, match=r"'dop853' cannot take damping exactly.*'dopri5'"):
        pl.MuntheKaas("dop853", exact_damping=True)


def test_the_error_covers_what_lies_between_the_ends() -> None:
    """A step over the whole decay ends right, but no quintic follows it in between."""
    decay = Decay(np.eye(1), np.eye(1))

    def error(h: float) -> float:
        taken = attempt_with_decay(
            pl.MuntheKaas(), Space(), lambda t, q, v: -v, 0.0, h,
            (np.zeros(1), np.ones(1), -np.ones(1)), decay,
        )  # fmt: skip
        return float(taken.errors.max())

    assert error(30.0) > 1.0 and error(1e-2) < 1e-12
