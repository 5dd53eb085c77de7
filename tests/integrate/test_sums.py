"""Tests of steps whose accelerations are computed in one call: those that stage by stage gives."""

from __future__ import annotations

import numpy as np
import pytest

from pinloop.integrate import MuntheKaas, Step
from pinloop.integrate.sums import end_step, try_step

from ..screw_tables import Array
from .groups_by_hand import Space

RNG = np.random.default_rng(7)
STIFFNESS, DAMPING = RNG.normal(size=(2, 4, 4))
T, H = 0.3, 0.4


def f(t: float, q: Array, v: Array) -> Array:
    """Depends on all that it may depend on, and is not linear."""
    return np.asarray(np.sin(STIFFNESS @ q) + DAMPING @ v * np.cos(t) + t**2 * q)


def follow(t: float, h: float, q: Array, sums: Array, basis: Array) -> list[Array]:
    """As the docstring of `Follow` has it."""
    m, accelerations = len(basis), []
    for part, place, *weights in sums.tolist():
        path, rate = np.array(weights[:m]) @ basis, np.array(weights[m:]) @ basis
        accelerations.append(f(t + part * h, q + path, rate / h))
        basis[int(place)] = h**2 * accelerations[-1]
    return accelerations


def start() -> tuple[Array, Array, Array]:
    q, v = np.random.default_rng(1).normal(size=(2, 4))
    return q, v, f(T, q, v)


@pytest.mark.parametrize("name", ["bs32", "dopri5", "dop853"])
def test_a_step_is_that_of_its_stages(name: str) -> None:
    method, state = MuntheKaas(name), start()
    stages = method.attempt(Space(), f, T, H, state)
    at_once = try_step(follow, method.tableau, T, H, state)
    assert at_once is not None and (at_once.a is None) == (stages.a is None)
    for mine, other in (
        (at_once.psi, stages.psi),
        (at_once.q, stages.q),
        (at_once.v, stages.v),
        (at_once.errors, stages.errors),
        (at_once.a, stages.a),
    ):
        if other is not None and mine is not None:
            np.testing.assert_allclose(mine, other, rtol=0, atol=1e-13)
    assert np.abs(stages.errors).max() > 1e-9


def test_second_derivatives_inside_are_those_of_a_step() -> None:
    state, method = start(), MuntheKaas()
    tried = method.attempt(Space(), f, T, H, state)
    a1 = f(T + H, tried.q, tried.v)
    step = Step(Space(), T, T + H, *state, tried.psi, tried.q, tried.v, a1, f)
    for inside in (True, False):
        ends = end_step(follow, (T, H), state, (tried.psi, tried.v), inside=inside)
        assert ends is not None
        np.testing.assert_allclose(ends[0], a1, rtol=0, atol=1e-12)
        if inside:
            assert ends[1] is not None and step.bends is not None
            np.testing.assert_allclose(ends[1], step.bends, rtol=0, atol=1e-11)
        else:
            assert ends[1] is None


def test_who_cannot_evaluate_them_gets_no_step() -> None:
    def refuse(*_: object) -> None:
        return None

    state = start()
    assert try_step(refuse, MuntheKaas().tableau, T, H, state) is None
    assert end_step(refuse, (T, H), state, state[:2], inside=True) is None
