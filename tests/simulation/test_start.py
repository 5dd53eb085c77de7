"""Tests of `pinloop.simulation.initial_state` and of the arguments of `simulate`."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import pinloop as pl

from .. import mechanisms as m
from ..states import one_body, robot

BAR = robot("four-bar")
RATE = pl.consistent_velocity(BAR, BAR.neutral, {"crank": 3.0})


def test_what_the_caller_gave_stays_as_it_is() -> None:
    q, v = BAR.neutral, RATE.copy()
    run = pl.simulate(BAR, q, v, until=0.1)
    np.testing.assert_array_equal(q, BAR.neutral)
    np.testing.assert_array_equal(v, RATE)
    assert run.robot is BAR or run.robot.name == BAR.name
    assert BAR.regularization is None


def test_lists_and_missing_velocities_will_do() -> None:
    run = pl.simulate(BAR, [0.0, 0.0, 0.0], until=0.1)
    assert not run.v[0].any() and run.v[-1].any()
    again = pl.simulate(BAR, BAR.neutral, [0, 0, 0], until=0.1)
    np.testing.assert_array_equal(again.q, run.q)


def test_a_start_that_is_slightly_open_is_closed_silently() -> None:
    q = BAR.neutral + np.array([1e-7, -1e-7, 2e-7])
    run = pl.simulate(BAR, q, RATE + 1e-8, until=0.1)
    assert np.abs(pl.Constraints(BAR).residual(run.q[0])).max() < 1e-12
    assert np.abs(pl.Constraints(BAR).jacobian(run.q[0]) @ run.v[0]).max() < 1e-11
    assert np.abs(run.q[0] - q).max() < 1e-6


@pytest.mark.parametrize("regularization", [False, True])
def test_a_start_that_is_open_is_refused_with_the_nearest_closed_one(regularization: bool) -> None:
    with pytest.raises(pl.LoopNotClosed, match=r"not assembled.*pl\.assemble") as caught:
        pl.simulate(BAR, [0.1, 0.0, 0.0], until=0.1, regularization=regularization)
    error = caught.value
    assert set(error.residuals) == {"close"} and error.residuals["close"] > 1e-3
    assert np.abs(pl.Constraints(BAR).residual(error.q)).max() < 1e-9
    pl.simulate(BAR, error.q, until=0.05)


@pytest.mark.parametrize("size", [1e-5, 1e-3])
def test_what_is_more_than_rounding_is_not_closed_silently(size: float) -> None:
    with pytest.raises(pl.LoopNotClosed):
        pl.simulate(BAR, BAR.neutral + size, until=0.1)
    with pytest.raises(pl.InconsistentVelocity):
        pl.simulate(BAR, BAR.neutral, RATE + 10 * size, until=0.1)
    with pytest.raises(pl.LoopNotClosed, match="start where prescribed motions start"):
        row = pl.constraints.Prescribed("crank", lambda t: (10 * size, 0.0, 0.0))
        pl.simulate(BAR, BAR.neutral, until=0.1, rows=[row])


def test_a_velocity_that_opens_a_loop_is_refused_with_the_nearest_allowed_one() -> None:
    v = np.array([3.0, 0.0, 0.0])
    with pytest.raises(pl.InconsistentVelocity, match=r"violates row 'close: v_[xy]'") as caught:
        pl.simulate(BAR, BAR.neutral, v, until=0.1)
    error = caught.value
    assert error.residual > 0.1
    J = pl.Constraints(BAR).jacobian(BAR.neutral)
    assert np.abs(J @ error.v).max() < 1e-10
    # Nearest in the kinetic metric: what is missing cannot be had along the allowed motion.
    M = pl.EquationsOfMotion(BAR).mass(BAR.neutral)
    assert RATE @ M @ (v - error.v) == pytest.approx(0, abs=1e-9)
    pl.simulate(BAR, BAR.neutral, error.v, until=0.05)


def test_rows_have_a_say_in_the_start_velocity() -> None:
    sled = one_body("planar")
    blade = pl.constraints.NoSlip("body", (0, 1, 0))
    with pytest.raises(pl.InconsistentVelocity, match="violates row 'no slip of body'") as caught:
        pl.simulate(sled, sled.neutral, [1.0, 0.5, 0.3], until=0.1, rows=[blade])
    np.testing.assert_allclose(caught.value.v, [1.0, 0.0, 0.3], atol=1e-12)


@pytest.mark.parametrize(
    "rows",
    [
        [pl.constraints.Prescribed("crank", lambda t: (t, 1.0, 0.0)),
         pl.constraints.Prescribed("crank", lambda t: (2 * t, 2.0, 0.0))],
        [pl.constraints.Prescribed("crank", lambda t: (t, 1.0, 0.0)),
         pl.constraints.Prescribed("rocker", lambda t: (t, 1.0, 0.0))],
    ],
)  # fmt: skip
def test_rows_that_contradict_each_other_are_refused(rows: list[pl.constraints.Prescribed]) -> None:
    with pytest.raises(pl.InconsistentVelocity, match="contradict each other") as caught:
        pl.simulate(BAR, BAR.neutral, RATE, until=0.1, rows=rows)
    assert caught.value.residual > 1e-3


def test_prescribed_motions_start_where_the_robot_stands() -> None:
    row = pl.constraints.Prescribed("crank", lambda t: (0.5 + t, 1.0, 0.0))
    with pytest.raises(pl.LoopNotClosed, match="start where prescribed motions start"):
        pl.simulate(BAR, BAR.neutral, RATE / 3, until=0.1, rows=[row])
    q = BAR.configuration(m.four_bar_q(m.START + 0.5))
    v = pl.consistent_velocity(BAR, q, {"crank": 1.0})
    run = pl.simulate(BAR, q, v, until=0.1, rows=[row])
    assert run.q[-1][0] == pytest.approx(0.6, abs=1e-10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"q": [0.0, 0.0]}, "3 numbers, not 2"),
        ({"q": [0.0, np.nan, 0.0]}, "not finite at index 1"),
        ({"q": "home"}, "not made of numbers"),
        ({"q": np.zeros((1, 3))}, r"shape \(1, 3\)"),
        ({"v": [1.0]}, "3 numbers, not 1"),
        ({"v": [0.0, 0.0, np.inf]}, "not finite at index 2"),
        ({"until": 0.0}, "end must come after"),
        ({"until": -1.0}, "end must come after"),
        ({"until": np.nan}, "until is nan; simulate needs a number"),
        ({"until": np.inf}, "end must come after"),
        ({"until": "later"}, "until"),
        ({"start": 2.0}, "end must come after"),
        ({"start": np.nan}, "start is nan; simulate needs a number"),
        ({"save_every": 0.0}, "save_every is 0"),
        ({"save_every": -0.1}, "save_every is -0.1"),
        ({"save_every": np.nan}, "save_every is nan"),
        ({"save_every": np.inf}, "save_every is inf"),
    ],
)
def test_arguments_that_cannot_be(arguments: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"q": BAR.neutral, "until": 0.1} | arguments
    with pytest.raises(pl.BadValue, match=message):
        pl.simulate(BAR, **given)


def test_quaternions_that_are_no_rotations_are_refused() -> None:
    machine = robot("double-pendulum")
    with pytest.raises(pl.BadValue, match="unit length"):
        pl.simulate(machine, 2 * machine.neutral, until=0.1)


@pytest.mark.parametrize(
    "until", [np.float64(0.1), np.float32(0.125), np.int64(1), 1, Fraction(1, 8)]
)
def test_times_may_be_any_numbers(until: Any) -> None:
    run = pl.simulate(BAR, BAR.neutral, until=until, method=pl.MuntheKaas("rk4", step=0.05))
    assert run.t[-1] == float(until)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"forces": ["spring"]}, "spring"),
        ({"rows": ["no slip"]}, "no slip"),
        ({"method": "rk4"}, "MuntheKaas"),
        ({"formulation": pl.Voronets}, "Voronets"),
        ({"stabilization": "mass"}, "Projection"),
        ({"tau": np.zeros(3)}, "tau"),
    ],
)
def test_arguments_of_the_wrong_kind(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(pl.PinloopError, match=message):
        pl.simulate(BAR, BAR.neutral, until=0.1, **arguments)


def test_rows_that_keep_what_there_is_take_nothing_from_the_start() -> None:
    body = one_body("spherical", gravity=(0.0, 0.0, 0.0))
    v = np.array([1.0, 2.0, 3.0])
    run = pl.simulate(body, body.neutral, v, until=0.1, rows=[pl.constraints.AngularMomentum()])
    np.testing.assert_allclose(run.v[0], v, atol=1e-12)


def test_what_rounding_leaves_of_a_locked_velocity_is_zero_to_the_last_bit() -> None:
    arm = robot("six-axis-arm")
    first = arm.joints[0]
    v = np.full(arm.nv, 0.3)
    v[0] = 1e-8
    run = pl.simulate(arm, arm.neutral, v, until=0.05, mode=pl.Mode([first]))
    assert not run.v[:, 0].any() and run.v[0, 1] == 0.3


def test_what_is_locked_stands_still_to_the_last_bit() -> None:
    machine = robot("six_axis_arm")
    joint = machine.joints[2]
    v, column = np.full(machine.nv, 0.1), machine.coordinates(joint).v
    v[column] = 1e-16
    run = pl.simulate(machine, machine.neutral, v, until=0.1, mode=pl.Mode(locks=(joint,)))
    assert not run.v[:, column].any()
