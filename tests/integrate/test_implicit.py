"""Tests of implicit steps: stiff equations against SciPy's Radau and closed forms.

Oracles: `scipy.integrate.solve_ivp`, exact solutions, and eigenvalues written down by hand.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from pinloop.integrate import (
    Flow,
    ImplicitSteps,
    Iterated,
    MuntheKaas,
    StepControl,
    StepMemory,
    Stepper,
    get_tableau,
)
from pinloop.integrate.implicit import (
    Slopes,
    _extrapolation,
    _newton_solver,
    difference_slopes,
    left_over,
    outgrown,
)
from pinloop.simulation.modes import RobotManifold

from .. import motion_by_hand as hand
from ..screw_tables import Array
from ..states import one_body
from .groups_by_hand import Space

NAMES = ["radau5", "radau9"]


def solved(
    name: str, f: Callable[[float, Array, Array], Array], q: float, v: float, until: float
) -> tuple[float, float, int]:
    """State at the end, with tolerances of 1e-8, and the number of steps."""
    method, unit = MuntheKaas(name), np.ones(1)
    steps, control = ImplicitSteps(method, unit), StepControl(method, unit)
    state = np.array([q]), np.array([v]), f(0.0, np.array([q]), np.array([v]))
    t, h, before, known, count = 0.0, 1e-4, StepControl.FIRST_ERROR, Iterated(), 0
    while t < until:
        h = min(h, until - t)
        attempt, iterated = steps.attempt(Space(), f, t, h, state, known)
        error = np.nan if attempt is None else control.error(attempt.errors, state[1], attempt.v)
        if attempt is None or attempt.a is None or not error <= 1.0:
            known, h = iterated if attempt is None else known, h * control.shrink(error)
            continue
        t, known, count = t + h, iterated, count + 1
        state = attempt.q, attempt.v, attempt.a
        factor, before = control.grow(error, before)
        h *= factor
    return float(state[0][0]), float(state[1][0]), count


@pytest.mark.parametrize("name", NAMES)
def test_van_der_pol(name: str) -> None:
    reference = solve_ivp(
        lambda t, y: [y[1], 100.0 * (1 - y[0] ** 2) * y[1] - y[0]],
        (0.0, 100.0), [2.0, 0.0], method="Radau", rtol=1e-11, atol=1e-12,
    )  # fmt: skip
    q, v, count = solved(name, lambda t, q, v: 100.0 * (1 - q**2) * v - q, 2.0, 0.0, 100.0)
    assert q == pytest.approx(reference.y[0, -1], abs=1e-6)
    assert v == pytest.approx(reference.y[1, -1], abs=1e-6)
    assert count < {"radau5": 1500, "radau9": 300}[name]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rate", [1e2, 1e5, 1e9])
def test_what_is_driven_slowly_takes_long_steps(name: str, rate: float) -> None:
    """``v' = cos t - rate (v - sin t)`` (Prothero, Robinson): ``v = sin t``, ``q = 1 - cos t``."""
    q, v, count = solved(name, lambda t, q, v: np.cos(t) - rate * (v - np.sin(t)), 0.0, 0.0, 3.0)
    assert (q, v) == pytest.approx((1 - np.cos(3.0), np.sin(3.0)), abs=2e-7)
    assert count < 500


@pytest.mark.parametrize("name", ["radau9", "dop853"])
def test_numbers_may_give_out_in_a_step_that_is_far_too_long(name: str) -> None:
    """``v' = -1e6 v^3``: ``v = 1 / sqrt(1 + 2e6 t)``. Stages of a step of 1 s are infinite."""
    flow = Flow(lambda t, q, v: -1e6 * v**3, Space(), lambda t, q, v: (q, v, False))
    stepper, start = (
        Stepper(MuntheKaas(name), np.ones(1)),
        (np.zeros(1), np.ones(1), -1e6 * np.ones(1)),
    )
    step, *_ = stepper.controlled(flow, StepMemory(), 0.0, 1.0, 1.0, start)
    assert stepper.rejected > 0
    np.testing.assert_allclose(step.v1, 1.0 / np.sqrt(1.0 + 2e6 * step.t1), rtol=1e-7)


@pytest.mark.parametrize("name", ["radau9", "dop853"])
def test_an_instant_more_does_not_stir_what_has_died_away(name: str) -> None:
    """Right-hand sides make 1e7 times the rounding of a state; so nothing may ask for them."""
    rate, h = 1e7, 0.1

    def f(t: float, q: Array, v: Array) -> Array:
        return np.asarray(np.cos(t) - rate * (v - np.sin(t)))

    flow = Flow(f, Space(), lambda t, q, v: (q, v, False), fine=True)
    stepper, start = Stepper(MuntheKaas(name), np.ones(1)), (np.zeros(1), np.zeros(1), np.ones(1))
    slopes = difference_slopes(Space(), f, 0.0, start, np.ones(1))
    memory = StepMemory(stiff=slopes)
    step, _, memory = stepper.controlled(flow, memory, 0.0, h, h, start)
    for end in (step.t1 * (1 + 1e-9), step.t1 * (1 - 1e-9)):
        more = stepper.prolonged(flow, memory, step, end)
        assert more.t1 == end
        np.testing.assert_allclose(more.a1, np.cos(end), rtol=0, atol=1e-5)
        _, v = more.inside(np.linspace(0.0, 1.0, 30))
        np.testing.assert_allclose(v[:, 0], np.sin(np.linspace(0, end, 30)), rtol=0, atol=1e-7)


@pytest.mark.parametrize("name", NAMES)
def test_steep_friction_reverses(name: str) -> None:
    reference = solve_ivp(
        lambda t, y: [y[1], -5 * np.tanh(y[1] / 1e-3) + 6 * np.sin(3 * t)],
        (0.0, 4.0), [0.0, 1.0], method="LSODA", rtol=1e-11, atol=1e-12,
    )  # fmt: skip
    q, v, _ = solved(
        name, lambda t, q, v: -5 * np.tanh(v / 1e-3) + 6 * np.sin(3 * t), 0.0, 1.0, 4.0
    )
    assert (q, v) == pytest.approx(reference.y[:, -1], abs=1e-6)


def test_slopes_are_those_of_the_acceleration() -> None:
    P, D = np.array([[-3.0, 1.0], [0.5, -2.0]]), np.array([[-1.0, 0.2], [0.0, -4.0]])
    state = np.array([0.3, -0.2]), np.array([1.0, 0.5]), np.zeros(2)
    slopes = difference_slopes(Space(), lambda t, q, v: P @ q + D @ v, 0.0, state, np.ones(2))
    np.testing.assert_allclose(slopes.by_position, P, atol=1e-6)
    np.testing.assert_allclose(slopes.by_velocity, D, atol=1e-6)


def test_frames_turn_on_the_way() -> None:
    """Of rotations ``dexpinv(-psi) v`` is ``v + psi x v / 2`` for small ``psi``."""
    manifold = RobotManifold(one_body("spherical"))
    v = np.array([1.0, -2.0, 0.5])
    state = np.array([0.0, 0.0, 0.0, 1.0]), v, np.zeros(3)
    slopes = difference_slopes(manifold, lambda t, q, v: 0.0 * v, 0.0, state, np.ones(3))
    np.testing.assert_allclose(slopes.turning, -0.5 * hand.skew(v), atol=1e-6)


def test_iterations_solve_the_whole_linear_system() -> None:
    rng = np.random.default_rng(3)
    slopes, mu = Slopes(*rng.normal(size=(3, 4, 4))), np.array([3.0, 2.0 - 5.0j])
    J = np.block([[slopes.turning, np.eye(4)], [slopes.by_position, slopes.by_velocity]])
    r = rng.normal(size=(2, 8)) + 1j * rng.normal(size=(2, 8))
    for found, rate, right in zip(_newton_solver(mu, slopes)(r), mu, r, strict=True):
        np.testing.assert_allclose(rate * found - J @ found, right, rtol=0, atol=1e-12)


@pytest.mark.parametrize("ratio", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("name", NAMES)
def test_a_guess_of_stages_goes_on_with_their_polynomial(name: str, ratio: float) -> None:
    c = get_tableau(name).c
    p = np.polynomial.Polynomial(np.arange(1.0, len(c) + 2.0))  # of degree s
    rise = p(c) - p(0.0)
    wanted = p(1.0 + ratio * c) - p(1.0)
    np.testing.assert_allclose(_extrapolation(c)(ratio) @ rise, wanted, rtol=1e-9)


def test_nothing_is_said_of_slopes_that_have_no_end() -> None:
    endless, tableau = np.array([[np.inf]]), get_tableau("dop853")
    slopes, one = Slopes(np.zeros((1, 1)), endless, endless), np.ones(1)
    assert not outgrown(tableau, 1.0, slopes) and slopes.fastest == 0.0
    np.testing.assert_array_equal(left_over(tableau, 1.0, slopes, (one, one, one)), [0.0])


@pytest.mark.parametrize(("rate", "stiff"), [(3.2, False), (3.4, True), (-100.0, False)])
def test_what_explicit_steps_let_grow_is_stiff(rate: float, stiff: bool) -> None:
    """dopri5 is stable up to 3.307; what grows by itself is no stiffness."""
    slopes = Slopes(np.zeros((1, 1)), np.zeros((1, 1)), np.array([[-rate]]))
    assert outgrown(get_tableau("dopri5"), 1.0, slopes) == stiff
