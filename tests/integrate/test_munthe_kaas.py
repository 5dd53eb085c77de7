"""Tests of the Munthe-Kaas stepper: dexpinv, orders, dense output, step control, determinism."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import factorial
from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.special import bernoulli

import pinloop as pl
from pinloop.integrate import METHODS, MuntheKaas, Step, StepControl
from pinloop.manifold import RobotManifold

from .. import motion_by_hand as hand
from ..states import close, moving, one_body, robot
from ..tables import Array
from .orders import CASES, ORDERS, errors, four_bar, free_body

CONTROLLED = ("bs32", "dopri5", "dop853")
every_controlled = pytest.mark.parametrize("name", CONTROLLED)

SPACES = {
    "SE3": one_body(),
    "SO3xR3": one_body(coordinates="SO3xR3"),
    "ball joint": one_body("spherical"),
    "plane": one_body("planar"),
    "wheel": one_body("revolute", coordinates="circle"),
    "all pairs": robot("every-pair"),
    "delta": robot("delta"),
    "arm": robot("six-axis-arm"),
}
every_space = pytest.mark.parametrize("space", SPACES)


# -- dexpinv --------------------------------------------------------------------------------


def ad(space: str, psi: Array) -> Array:
    """Matrix of the bracket with ``psi``, linear part first."""
    if space == "ball joint":
        return hand.skew(psi)
    if space == "plane":
        x, y, w = psi
        return np.array([[0, -w, y], [w, 0, -x], [0, 0, 0.0]])
    found = np.zeros((6, 6))
    found[3:, 3:] = hand.skew(psi[3:])
    if space == "SE3":
        found[:3, :3], found[:3, 3:] = hand.skew(psi[3:]), hand.skew(psi[:3])
    return found


def dexp_inv_series(space: str, psi: Array, v: Array) -> Array:
    """``dexpinv(-psi) v`` as the sum of ``B_k / k! ad(-psi)^k v``."""
    found, term = np.zeros_like(v), v.copy()
    for k, number in enumerate(bernoulli(40)):
        found += number / factorial(k) * term
        term = ad(space, -psi) @ term
    return found


@pytest.mark.parametrize("space", ["SE3", "SO3xR3", "ball joint", "plane"])
@pytest.mark.parametrize("size", [1e-9, 1e-4, 0.1, 1.5])
def test_dexp_inv_is_the_series_of_bernoulli(space: str, size: float) -> None:
    machine = SPACES[space]
    manifold, rng = RobotManifold(machine), np.random.default_rng(1)
    for _ in range(5):
        psi, v = rng.normal(size=(2, machine.nv))
        psi *= size / np.linalg.norm(psi)
        found = manifold.dexp_inv(machine.neutral, psi, v)
        close(found, dexp_inv_series(space, psi, v), 1e-11)


@every_space
def test_dexp_inv_is_the_rate_of_the_algebra(space: str) -> None:
    """``q (+) psi(t)`` moves with v if psi changes at ``dexpinv(-psi) v``."""
    machine = SPACES[space]
    manifold, rng = RobotManifold(machine), np.random.default_rng(2)
    q = hand.random_q(machine, rng, 1.0)
    psi, v = 0.4 * rng.normal(size=machine.nv), rng.normal(size=machine.nv)
    there = manifold.integrate(q, psi)
    expected = hand.slope(lambda t: machine.difference(q, machine.integrate(there, t * v)))
    close(manifold.dexp_inv(q, psi, v), expected, 1e-9)
    assert manifold.dexp_inv(q, 0 * psi, v) == pytest.approx(v, abs=1e-15)


def test_inputs_of_a_step_stay_as_they_are() -> None:
    machine = SPACES["all pairs"]
    manifold = RobotManifold(machine)
    q, v = moving(machine, 3)
    psi = 0.1 * v
    copies = [part.copy() for part in (q, v, psi)]
    manifold.dexp_inv(q, psi, v)[:] = np.nan
    manifold.integrate(q, psi)[:] = np.nan
    pl.MuntheKaas("rk4", step=0.1).attempt(manifold, lambda t, q, v: -v, 0.0, 0.1, (q, v, -v))
    for part, copy in zip((q, v, psi), copies, strict=True):
        np.testing.assert_array_equal(part, copy)


# -- a group without robots -----------------------------------------------------------------


@dataclass
class Turns:
    """Rotation matrices, written with SciPy's matrix exponential and logarithm."""

    def integrate(self, q: Array, step: Array) -> Array:
        return np.asarray(q @ expm(hand.skew(step)))

    def dexp_inv(self, q: Array, psi: Array, v: Array) -> Array:
        return dexp_inv_series("ball joint", psi, v)


def cone(t: float) -> tuple[Array, Array, Array]:
    """A rotation that turns about two axes, its body rates and their rates."""
    a, b = np.array([0.0, 0.0, 1.7]), np.array([0.9, 0.0, 0.6])
    A, B = expm(hand.skew(a * t)), expm(hand.skew(b * t))
    w = B.T @ a + b
    return np.asarray(A @ B), w, np.cross(B.T @ a, b)


@pytest.mark.parametrize("name", METHODS)
def test_order_on_a_group_that_is_no_robot(name: str) -> None:
    """Only a group and a right-hand side are needed."""
    found = []
    counts = {1: (64, 128), 2: (32, 64), 3: (16, 32), 4: (16, 32), 5: (16, 32), 8: (2, 4)}
    for n in counts[ORDERS[name]]:
        h = 1.0 / n
        R, w, a = cone(0.0)
        for k in range(n):
            attempt = MuntheKaas(name, step=h).attempt(
                Turns(), lambda t, q, v: cone(t)[2], k * h, h, (R, w, a)
            )
            R, w, a = attempt.q, attempt.v, cone((k + 1) * h)[2]
        found.append(np.abs(R - cone(1.0)[0]).max() + np.abs(w - cone(1.0)[1]).max())
    assert np.log2(found[0] / found[1]) == pytest.approx(ORDERS[name], abs=0.4)


@pytest.mark.parametrize("name", METHODS)
def test_a_screw_motion_is_met_by_every_method(name: str) -> None:
    """A constant twist is one exponential, whatever the step: no group error at all."""
    machine = SPACES["SE3"]
    v = np.array([1.0, -2.0, 0.5, 0.3, 2.0, -1.0])
    q = hand.random_q(machine, np.random.default_rng(4))
    attempt = MuntheKaas(name, step=1.0).attempt(
        RobotManifold(machine), lambda t, q, v: np.zeros(6), 0.0, 0.9, (q, v, np.zeros(6))
    )
    np.testing.assert_allclose(attempt.psi, 0.9 * v, rtol=1e-12)
    np.testing.assert_allclose(attempt.q, machine.integrate(q, 0.9 * v), atol=1e-12)


# -- order of convergence -------------------------------------------------------------------


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("case", CASES)
def test_order_of_convergence(case: str, name: str) -> None:
    coarse, fine = errors(CASES[case](), name)
    assert fine > 1e-13  # or rounding would be measured
    assert np.log2(coarse / fine) == pytest.approx(ORDERS[name], abs=0.35)


# -- fixed steps ----------------------------------------------------------------------------


def fixed(until: float, step: float, start: float = 0.0, **options: Any) -> pl.Trajectory:
    machine = robot("planar_3r")
    method = MuntheKaas("rk4", step=step)
    return pl.simulate(machine, machine.neutral, until=until, start=start, method=method, **options)


@pytest.mark.parametrize("start", [0.0, -2.5, 1000.0])
def test_fixed_steps_are_multiples_not_sums(start: float) -> None:
    run = fixed(start + 0.1, 1e-3, start)
    assert len(run.t) == 101
    expected = [start + k * 1e-3 for k in range(100)]
    np.testing.assert_array_equal(run.t[:-1], expected)
    assert run.t[-1] == start + 0.1


def test_the_last_fixed_step_ends_at_the_end() -> None:
    run = fixed(0.1, 0.03)
    np.testing.assert_allclose(run.t, [0, 0.03, 0.06, 0.09, 0.1], rtol=1e-15)
    assert run.t[-1] == 0.1
    assert fixed(0.1, 0.1 / 3).t.tolist() == [0, 0.1 / 3, 2 * (0.1 / 3), 0.1]
    assert fixed(0.1, 5.0).t.tolist() == [0, 0.1]


@pytest.mark.parametrize("name", METHODS)
def test_number_of_evaluations(name: str) -> None:
    """One per stage; the first one is the last one of the step before."""
    method = MuntheKaas(name, step=0.01)
    machine = robot("planar_3r")
    run = pl.simulate(machine, machine.neutral, until=0.1, method=method)
    assert run.evaluations == 10 * method.tableau.stages + 1
    assert run.rejected == 0


# -- dense output ---------------------------------------------------------------------------


def dense_errors(name: str, options: dict[str, Any], counts: tuple[int, int]) -> list[float]:
    """Largest distance of dense output from a fine run, for two numbers of steps."""
    case = free_body("") if name == "free" else four_bar()
    times = np.linspace(0, case.until, 41)
    fine = pl.simulate(
        case.robot, case.q, case.v, until=case.until,
        method=MuntheKaas("dop853", step=case.until / 40),
    )  # fmt: skip
    # dop853 ends its steps exactly at these times: no dense output of its own is used.
    np.testing.assert_allclose(fine.t, times, atol=1e-12)
    found = []
    for count in counts:
        run = pl.simulate(
            case.robot, case.q, case.v, until=case.until,
            method=MuntheKaas("dop853", step=case.until / count), **options,
        )  # fmt: skip
        there = run(times)
        gaps = [case.robot.difference(a, b) for a, b in zip(there.q, fine.q, strict=True)]
        found.append(max(np.abs(gaps).max(), np.abs(there.v - fine.v).max() / 10))
    return found


@pytest.mark.parametrize("name", ["free", "four-bar"])
def test_dense_output_is_of_fifth_order_in_the_velocity(name: str) -> None:
    """Position and both derivatives are met at the ends: a quintic, its slope of order 5."""
    coarse, fine = dense_errors(name, {}, (7, 14))
    assert fine < 1e-4
    assert np.log2(coarse / fine) > 4.5


@every_space
def test_dense_output_meets_the_ends_of_steps(space: str) -> None:
    machine = SPACES[space]
    q, v = moving(machine, 5)
    run = pl.simulate(machine, q, v, until=0.2, method=MuntheKaas("rk4", step=0.02))
    for k in range(len(run.t) - 1):
        there = run(run.t[k])
        np.testing.assert_array_equal(there.q, run.q[k])
        np.testing.assert_array_equal(there.v, run.v[k])
        near = run(run.t[k + 1] - 1e-9)
        close(machine.difference(near.q, run.q[k + 1]), np.zeros(machine.nv), 1e-7)
        close(near.v, run.v[k + 1], 1e-6)


@pytest.mark.parametrize("space", ["SE3", "SO3xR3"])
def test_steps_in_the_algebra_lead_from_state_to_state(space: Any) -> None:
    """Also where a projection has moved the end of a step, and even far."""
    machine = robot("rssr").absolute(space)
    q, v = moving(machine, 6, speed=6.0)
    run = pl.simulate(machine, q, v, until=0.5, method=MuntheKaas("rk4", step=0.02))
    for k, psi in enumerate(run.psi):
        gap = machine.difference(machine.integrate(run.q[k], psi), run.q[k + 1])
        assert np.abs(gap).max() < 1e-7


def test_dense_velocity_is_the_rate_of_dense_position() -> None:
    machine = SPACES["all pairs"]
    q, v = moving(machine, 7)
    run = pl.simulate(machine, q, v, until=0.1, method=MuntheKaas("dopri5", step=0.05))
    for t in (0.013, 0.037, 0.081):
        here = run(t)
        rate = hand.slope(lambda s, t=t, here=here: machine.difference(here.q, run(t + s).q), 1e-4)  # type: ignore[misc]
        close(rate, here.v, 1e-8)


def test_dense_output_nearly_closes_the_loops() -> None:
    case = four_bar()
    run = pl.simulate(case.robot, case.q, case.v, until=2.0)
    rows = pl.Constraints(case.robot)
    inside = run(np.linspace(0, 2, 301))
    gaps = [np.abs(rows.residual(q)).max() for q in inside.q]
    slips = [np.abs(rows.jacobian(q) @ v).max() for q, v in zip(inside.q, inside.v, strict=True)]
    assert max(gaps) < 1e-7 and max(slips) < 1e-5


def test_a_step_alone() -> None:
    """`Step` with a polynomial motion on a vector space is exact."""
    c = np.array([0.3, -1.0, 2.0, 0.7, -0.4, 0.9])
    q = np.polynomial.Polynomial(c)
    machine = robot("screw-jack")

    def state(t: float) -> tuple[Array, Array, Array]:
        return tuple(np.array([1.0, -2.0]) * f(t) for f in (q, q.deriv(), q.deriv(2)))  # type: ignore[return-value]

    (q0, v0, a0), (q1, v1, a1) = state(0.5), state(1.5)
    step = Step(RobotManifold(machine), 0.5, 1.5, q0, v0, a0, q1 - q0, q1, v1, a1)
    for t in (0.5, 0.8, 1.2, 1.5):
        np.testing.assert_allclose(step(t)[0], state(t)[0], rtol=1e-12)
        np.testing.assert_allclose(step(t)[1], state(t)[1], rtol=1e-12)


# -- step control ---------------------------------------------------------------------------


@every_controlled
def test_error_falls_with_the_tolerance(name: str) -> None:
    case = free_body("")
    found, evaluations = [], []
    for tolerance in (1e-4, 1e-6, 1e-8):
        run = pl.simulate(
            case.robot, case.q, case.v, until=case.until,
            method=MuntheKaas(name, rtol=tolerance, atol=tolerance),
        )  # fmt: skip
        found.append(case.error(run.q[-1], run.v[-1]))
        evaluations.append(run.evaluations)
        assert found[-1] < 1e3 * tolerance
    assert found[0] > 3 * found[1] > 9 * found[2]
    assert evaluations == sorted(evaluations) and evaluations[0] < evaluations[2]


@every_controlled
def test_the_first_try_knows_the_error_of_a_step(name: str) -> None:
    """The estimate is of the size of the true error of one step of the lower formula or larger."""
    case = free_body("")
    method = MuntheKaas(name)
    manifold = RobotManifold(case.robot)
    equations = pl.EquationsOfMotion(case.robot)
    state = case.q, case.v, equations.acceleration(0.0, case.q, case.v)
    estimates, true = [], []
    for h in (0.1, 0.05):
        attempt = method.attempt(manifold, equations.acceleration, 0.0, h, state)
        fine = state
        for k in range(20):
            part = MuntheKaas("dop853").attempt(
                manifold, equations.acceleration, k * h / 20, h / 20, fine
            )
            assert part.a is not None
            fine = part.q, part.v, part.a
        estimates.append(max(np.abs(e[1]).max() for e in attempt.errors))
        true.append(float(np.abs(attempt.v - fine[1]).max()))
        assert attempt.a is not None
        np.testing.assert_allclose(
            attempt.a, equations.acceleration(h, attempt.q, attempt.v), rtol=1e-12
        )
    assert estimates[0] > true[0] and estimates[1] > true[1]
    lowest = {"bs32": 3, "dopri5": 5, "dop853": 4}[name]
    assert np.log2(estimates[0] / estimates[1]) == pytest.approx(lowest, abs=0.7)


def kick(at: float, size: float) -> Callable[[float, Array, Array], Array]:
    """Torques that jump at a time."""
    return lambda t, q, v: size * (t > at) * np.ones(len(v))


def test_steps_stay_within_the_largest() -> None:
    machine = robot("planar_3r")
    method = MuntheKaas(largest=0.013)
    run = pl.simulate(machine, machine.neutral, until=0.5, method=method)
    assert np.diff(run.t).max() <= 0.013 * (1 + 1e-12)
    assert np.diff(run.t).max() > 0.0129


def test_steps_below_the_smallest_fail_with_what_there_is() -> None:
    machine = robot("planar_3r")
    with pytest.raises(pl.SimulationFailed, match=r"step fell below 0\.001 s") as caught:
        pl.simulate(
            machine, machine.neutral, until=0.5, tau=kick(0.2, 1e4),
            method=MuntheKaas(smallest=1e-3, rtol=1e-6),
        )  # fmt: skip
    assert caught.value.reason == "step too small"
    run = caught.value.trajectory
    assert 0.1 < run.t[-1] <= 0.2 and len(run.t) > 3 and run.rejected > 0
    assert np.all(np.diff(run.t) >= 1e-3)


def test_steps_shrink_at_a_jump_and_grow_again() -> None:
    machine = robot("planar_3r")
    run = pl.simulate(machine, machine.neutral, until=0.5, tau=kick(0.2, 500.0))
    steps = np.diff(run.t)
    at = int(np.argmin(np.abs(run.t - 0.2)))
    assert steps[at - 1 : at + 1].min() < 0.1 * np.median(steps[: at // 2])
    assert steps[-3] > 10 * steps[at - 1 : at + 1].min()
    assert run.rejected > 0


def test_the_first_step_is_cautious() -> None:
    control = StepControl(MuntheKaas("dopri5", rtol=1e-8), np.ones(2))
    rest, fast = (
        control.first_step(np.zeros(2), np.zeros(2), 10.0),
        control.first_step(np.array([1e3, 0.0]), np.zeros(2), 10.0),
    )
    assert 0 < fast < 1e-3 * rest and rest <= 1.0
    assert control.first_step(np.zeros(2), np.array([0.0, 1e8]), 10.0) < 1e-4
    small = StepControl(MuntheKaas("dopri5", largest=1e-7), np.ones(2))
    assert small.first_step(np.zeros(2), np.zeros(2), 10.0) == 1e-7


def test_factors_of_the_control() -> None:
    control = StepControl(MuntheKaas("dopri5"), np.ones(1))
    assert control.factor(1e-9, accepted=True) == 5.0
    assert control.factor(1e9, accepted=False) == 0.2
    assert 0.2 <= control.factor(2.0, accepted=False) < 0.9
    assert control.factor(1.0, accepted=True) < 1.0
    e = [(np.array([2e-8]), np.array([0.0]))]
    assert control.error(e, np.zeros(1), np.zeros(1)) == pytest.approx(2 / 2, rel=1e-12)
    # Velocities are judged relative to their size: 1e-8 + 1e-8 * 99.
    e = [(np.array([0.0]), np.array([2e-6]))]
    assert control.error(e, np.array([99.0]), np.zeros(1)) == pytest.approx(2.0, rel=1e-12)


def test_lengths_are_judged_in_characteristic_lengths() -> None:
    """The same machine ten times as large, at the same angles, takes the same steps."""
    control = [StepControl(MuntheKaas("dopri5"), np.array([1.0, scale])) for scale in (1.0, 10.0)]
    small = [(np.array([1e-7, 2e-7]), np.array([3e-7, 1e-7]))]
    large = [(e * [1, 10], f * [1, 10]) for e, f in small]
    v = np.array([2.0, 3.0])
    assert control[0].error(small, v, v) == pytest.approx(
        control[1].error(large, v * [1, 10], v * [1, 10])
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "rk5"}, "no method 'rk5'; known: euler"),
        ({"name": "rk4"}, "no error estimate; give it step="),
        ({"name": "euler"}, "no error estimate"),
        ({"step": 0.0}, "step is 0"),
        ({"step": -1.0}, "step is -1"),
        ({"step": np.inf}, "step is inf"),
        ({"step": np.nan}, "step is nan"),
        ({"rtol": -1e-3}, "rtol is -0.001"),
        ({"atol": 0.0}, "atol is 0"),
        ({"atol": np.nan}, "atol is nan"),
        ({"smallest": -1.0}, "smallest is -1"),
        ({"largest": 0.0}, "largest is 0"),
        ({"smallest": 1.0, "largest": 0.1}, "in order"),
    ],
)
def test_methods_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(pl.BadValue, match=message):
        MuntheKaas(**options)


# -- determinism ----------------------------------------------------------------------------


@pytest.mark.parametrize("formulation", [pl.Augmented(), pl.Projected(), pl.Voronets()], ids=str)
def test_the_same_input_gives_the_same_bytes(formulation: Any) -> None:
    machine = robot("rssr")
    q, v = moving(machine, 8)
    runs = [pl.simulate(machine, q, v, until=0.3, formulation=formulation) for _ in range(2)]
    for part in ("t", "q", "v", "a", "psi"):
        assert getattr(runs[0], part).tobytes() == getattr(runs[1], part).tobytes()
    assert runs[0].evaluations == runs[1].evaluations
