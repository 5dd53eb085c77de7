"""Tests of the states between the ends of steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pinloop as pl
from pinloop.integrate import MuntheKaas, Step
from pinloop.simulation.modes import RobotManifold

from .. import motion_by_hand as hand
from ..screw_tables import Array
from ..states import close, moving, robot
from .orders import SPACES, four_bar, free_body

every_space = pytest.mark.parametrize("space", SPACES)


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
