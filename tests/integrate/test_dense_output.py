"""Tests of the states between the ends of steps."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pinloop as pl
from pinloop.integrate import (
    INNER,
    Coordinate,
    Guard,
    Guards,
    MuntheKaas,
    NoBranch,
    Step,
    hermite,
    refined,
)
from pinloop.simulation.modes import RobotManifold

from .. import motion_by_hand as hand
from ..screw_tables import Array
from ..states import close, moving, robot
from .orders import SPACES, four_bar, free_body

every_space = pytest.mark.parametrize("space", SPACES)


def dense_errors(name: str, method: str, count: int) -> tuple[float, float]:
    """Largest distance of dense output from a fine run, and of velocities."""
    case = free_body("") if name == "free" else four_bar()
    times = np.linspace(0, case.until, 69)
    fine = pl.simulate(
        case.robot, case.q, case.v, until=case.until,
        method=MuntheKaas("dop853", step=case.until / 68),
    )  # fmt: skip
    # dop853 ends its steps exactly at these times: no dense output of its own is used.
    np.testing.assert_allclose(fine.t, times, atol=1e-12)
    run = pl.simulate(
        case.robot, case.q, case.v, until=case.until,
        method=MuntheKaas(method, step=case.until / count),
    )  # fmt: skip
    there = run(times)
    gaps = [case.robot.difference(a, b) for a, b in zip(there.q, fine.q, strict=True)]
    return float(np.abs(gaps).max()), float(np.abs(there.v - fine.v).max())


@pytest.mark.parametrize(
    ("name", "method", "count", "most", "order"),
    [
        ("free", "dopri5", 32, 2e-6, 4.8),
        ("four-bar", "dopri5", 16, 2e-8, 4.3),
        ("free", "dop853", 8, 1e-6, 7.5),
        # With twice as many steps nothing is left but rounding.
        ("four-bar", "dop853", 6, 5e-10, 7.0),
    ],
)
def test_dense_output_is_as_accurate_as_the_method(
    name: str, method: str, count: int, most: float, order: float
) -> None:
    """Positions and velocities between the ends of steps converge as those at the ends do."""
    coarse, fine = (dense_errors(name, method, k * count) for k in (1, 2))
    assert max(coarse) < most
    for one, two in zip(coarse, fine, strict=True):
        assert np.log2(one / two) > order


def test_what_lies_inside_steps_is_evaluated_when_asked_for() -> None:
    machine = robot("planar-3R")
    start = (machine, machine.neutral, [1.0, 2.0, 0.3])
    method = MuntheKaas("dop853", step=0.05)
    run = pl.simulate(*start, until=0.5, losses=False, method=method)
    looked = 1 + 2 * machine.nv  # once at the start, whether the steps are short enough
    assert run.evaluations == 1 + 12 * 10 + looked
    assert run.inner is not None and np.isnan(run.inner).all()
    # Limits out of reach are nothing to ask for; one that is passed is.
    arm, limits = robot("six_axis_arm"), [pl.simulation.JointLimits()]
    for speed, passed in ((0.1, False), (6.0, True)):
        run = pl.simulate(arm, arm.neutral, np.full(arm.nv, speed), until=0.3, losses=False,
                          method=method, events=limits)  # fmt: skip
        assert (
            bool(run.events) == passed and (run.evaluations > 1 + 12 * 6 + 1 + 2 * arm.nv) == passed
        )


@pytest.mark.parametrize("name", ["delta", "all pairs"])
def test_a_saved_run_has_the_same_between_its_states(name: str, tmp_path: Path) -> None:
    """Though its forces are not saved; and so has one that is pickled before or after."""
    machine = SPACES[name]
    q, v = moving(machine, 4)
    run = pl.simulate(
        machine, q, v, until=0.1, method=MuntheKaas("dop853", rtol=1e-5, atol=1e-5),
        forces=[pl.forces.JointDamping({name: 0.3 for name in machine.actuated[:2]})],
        events=[pl.lock(machine.actuated[0], at=0.04)],
    )  # fmt: skip
    times = np.linspace(0.0, 0.1, 37)
    bytes_before = pickle.dumps(run)
    here = run(times)
    assert pickle.dumps(run) == bytes_before
    loaded = pl.load_trajectory(run.save(tmp_path / "run"))
    for other in (
        loaded,
        pickle.loads(bytes_before),
        pl.load_trajectory(loaded.save(tmp_path / "again")),
    ):
        there = other(times)
        assert there.q.tobytes() == here.q.tobytes() and there.v.tobytes() == here.v.tobytes()
    # Of quintics it is something else.
    assert np.abs(replace(run, inner=None)(times).v - here.v).max() > 1e-8


def test_a_step_meets_accelerations_inside() -> None:
    """With a polynomial motion of the eighth degree it is exact, whatever is evaluated when."""
    c = np.array([0.3, -1.0, 2.0, 0.7, -0.4, 0.9, -1.3, 0.8, 0.5])
    machine, q = robot("screw-jack"), np.polynomial.Polynomial(c)
    both = np.array([1.0, -2.0])
    ends = [[both * f(t) for f in (q, q.deriv(), q.deriv(2))] for t in (0.5, 1.5)]
    (q0, v0, a0), (q1, v1, a1) = ends
    asked: list[float] = []

    def follows(t: float, here: Array, v: Array) -> Array:
        asked.append(t)
        return both * q.deriv(2)(t)

    step = Step(RobotManifold(machine), 0.5, 1.5, q0, v0, a0, q1 - q0, q1, v1, a1, follows)
    assert not asked
    for t in (0.5, 0.8, 1.2, 1.5):
        np.testing.assert_allclose(step(t)[0], both * q(t), rtol=1e-12)
        np.testing.assert_allclose(step(t)[1], both * q.deriv()(t), rtol=1e-12)
        np.testing.assert_allclose(step.along(t), both * (q(t) - q(0.5)), rtol=1e-12, atol=1e-12)
    values, rates = step.inside(np.array([0.3, 0.7]))
    np.testing.assert_allclose(values, [both * q(t) for t in (0.8, 1.2)], rtol=1e-12)
    np.testing.assert_allclose(rates, [both * q.deriv()(t) for t in (0.8, 1.2)], rtol=1e-12)
    assert len(asked) == 4


@every_space
def test_dense_output_meets_the_ends_of_steps(space: str) -> None:
    machine = SPACES[space]
    q, v = moving(machine, 5)
    method = MuntheKaas("rk4", step=0.02)
    run = pl.simulate(machine, q, v, until=0.2, method=method, losses=False)
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


def test_a_level_that_a_quintic_does_not_reach_is_found() -> None:
    """A peak of 1.25, of which the ends of the step tell 1, and their control points 1.2."""
    machine, bump = robot("screw-jack"), np.polynomial.Polynomial([0, 0, 0, 1, -3, 3, -1])
    q = np.polynomial.Polynomial([0.0, 4.0, -4.0]) + 16.0 * bump
    both = np.array([1.0, -1.0])
    q0, v0, a0, q1, v1, a1 = (both * f(t) for t in (0.0, 1.0) for f in (q, q.deriv(), q.deriv(2)))

    def follows(t: float, here: Array, v: Array) -> Array:
        return both * q.deriv(2)(t)

    ends = 0.0, 1.0, q0, v0, a0, q1 - q0, q1, v1, a1
    for level, found in ((1.22, True), (1.5, False)):
        guards = Guards([Guard("peak", Coordinate(0, 0, 1.0, level))])
        watched = guards.look(0.0, q0, v0, (guards, guards.unknown))
        step = Step(RobotManifold(machine), *ends, follows)
        crossing, _ = guards.locate(step, watched)
        assert (crossing is not None) == found
        if crossing is not None:
            assert q(crossing.t) == pytest.approx(level, abs=1e-12) and crossing.t < 0.5
        coarse, _ = guards.locate(Step(RobotManifold(machine), *ends), watched)
        assert coarse is None


def test_many_steps_are_refined_at_once_and_those_without_inner_accelerations_stay() -> None:
    """Polynomials of the eighth degree are told by both ends and what is inside; quintics stay."""
    rng = np.random.default_rng(3)
    want = rng.normal(size=(8, 4, 2))  # of s, s^2, ..., four steps of two coordinates
    want[5:, 1] = 0.0
    ones = [np.polynomial.Polynomial([0.0, *column]) for column in want.reshape(8, -1).T]

    def at(s: float, order: int) -> Array:
        values = [one.deriv(order)(s) if order else one(s) for one in ones]
        return np.array(values).reshape(4, 2)

    quintic = hermite(at(1.0, 0), at(0.0, 1), at(1.0, 1), at(0.0, 2), at(1.0, 2))
    bends = np.array([at(s, 2) for s in INNER.tolist()])
    bends[:, 1] = np.inf
    np.testing.assert_allclose(refined(quintic, INNER, bends), want, atol=1e-11)


def test_a_step_inside_which_no_branch_is_known_is_a_quintic() -> None:
    machine = robot("six_axis_arm")
    q, v = moving(machine, 1, speed=1.0)

    def follows(t: float, q: Array, v: Array) -> Array:
        raise NoBranch("nothing is known there")

    ends = 0.0, 0.1, q, v, np.ones(6), 0.1 * v, q + 0.1 * v, 1.1 * v, -np.ones(6)
    step = Step(RobotManifold(machine), *ends, follows)
    assert step.bends is None
    np.testing.assert_array_equal(step.polynomial, Step(RobotManifold(machine), *ends).polynomial)


def test_limits_that_are_passed_are_as_accurate_as_the_method() -> None:
    arm = robot("six_axis_arm")
    start = arm, arm.neutral, np.full(arm.nv, 3.0)
    coarse, fine = (
        pl.simulate(*start, until=0.6, losses=False, method=MuntheKaas("dop853", step=step))
        for step in (0.05, 0.005)
    )
    assert fine.limits_passed and len(fine.limits_passed) == len(coarse.limits_passed)
    for one, other in zip(coarse.limits_passed, fine.limits_passed, strict=True):
        assert one.joint == other.joint and abs(one.t - other.t) < 2e-7
        quintic = replace(coarse, inner=None)(one.t).q[arm.coordinates(one.joint).q]
        assert abs(quintic[0] - one.limit) > 3e-5
