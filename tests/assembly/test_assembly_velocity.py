"""Tests of `pinloop.assembly.assemble.consistent_velocity` against derivatives of closed forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.model.description import GROUND

from .. import mechanisms as m
from .. import motion_by_hand as hand
from .. import screw_tables as tables
from ..screw_tables import Array

CRANKS = (0.1, 0.8, 1.9, 3.1, 4.4, 5.9)


@pytest.mark.parametrize("crank", CRANKS)
@pytest.mark.parametrize(
    ("entries", "closed_form"), [(m.four_bar, m.four_bar_q), (m.slider_crank, m.slider_crank_q)]
)
def test_velocities_are_the_derivatives_of_the_closed_form(
    entries: Callable[[], tables.Table],
    closed_form: Callable[[float], Mapping[str, float]],
    crank: float,
) -> None:
    robot = tables.build(entries())
    q, speed = hand.angles(robot, closed_form(crank)), -1.7

    def turning(t: float) -> Array:
        later = hand.angles(robot, closed_form(crank + speed * t))
        return np.asarray(q + np.angle(np.exp(1j * (later - q))))

    v = pl.consistent_velocity(robot, q, {"crank": speed})
    np.testing.assert_allclose(v, hand.slope(turning), atol=1e-8)
    assert v[robot.coordinates("crank").v][0] == speed


@pytest.mark.parametrize("crank", CRANKS)
def test_the_twist_of_a_body_moves_the_rest(crank: float) -> None:
    robot = tables.build(m.four_bar())
    q = hand.angles(robot, m.four_bar_q(crank))
    expected = pl.consistent_velocity(robot, q, {"crank": -1.7})
    model, data = robot.model, robot.model.createData()
    pin.forwardKinematics(model, data, q, expected)
    pin.updateFramePlacements(model, data)
    axes = pin.LOCAL_WORLD_ALIGNED
    twist = pin.getFrameVelocity(model, data, robot.frame_id("coupler"), axes).vector
    found = pl.consistent_velocity(robot, q, twists={"coupler": twist})
    np.testing.assert_allclose(found, expected, atol=1e-9)
    linear = pl.consistent_velocity(robot, q, twists={"coupler": twist[:3]})
    if np.linalg.norm(twist[:3]) > 1e-6:
        np.testing.assert_allclose(linear, expected, atol=1e-7)
    both = pl.consistent_velocity(robot, q, {"crank": -1.7}, twists={"coupler": twist})
    np.testing.assert_allclose(both, expected, atol=1e-9)


def test_twists_that_cannot_be() -> None:
    robot = tables.build(m.four_bar())
    q = pl.assemble(robot, fixed={"crank": 0.8})
    with pytest.raises(pl.InconsistentVelocity, match="do not allow 'coupler' at"):
        pl.consistent_velocity(robot, q, twists={"coupler": (0, 0, 0, 1, 0, 0)})
    with pytest.raises(pl.InconsistentVelocity, match=r"allow 'crank' at 1\.0, 'rocker' at"):
        pl.consistent_velocity(robot, q, {"crank": 1.0}, twists={"rocker": np.zeros(6)})
    with pytest.raises(pl.BadValue, match="has 2 numbers; it takes 6, or 3"):
        pl.consistent_velocity(robot, q, twists={"coupler": (0, 0)})
    with pytest.raises(pl.UnknownName, match="did you mean 'coupler'"):
        pl.consistent_velocity(robot, q, twists={"coupled": np.zeros(6)})
    with pytest.raises(pl.BadValue, match="twists is 'coupler'"):
        pl.consistent_velocity(robot, q, twists="coupler")  # type: ignore[arg-type]
    assert not pl.consistent_velocity(robot, q).any()


def test_given_rates_are_kept_exactly_and_the_rest_is_least() -> None:
    robot = tables.build(m.spinning_rods())
    q = pl.assemble(robot, fixed={"crank": -0.2})
    J = pl.Constraints(robot).jacobian(q)
    v = pl.consistent_velocity(robot, q, {"rocker1": 0.7})
    assert v[robot.coordinates("rocker1").v] == 0.7
    assert np.abs(J @ v).max() < 1e-10
    # All joints turn: no scale. Least means across to every motion that is still free.
    held = np.zeros(robot.nv, dtype=bool)
    held[robot.coordinates("rocker1").v] = True
    _, values, directions = np.linalg.svd(J[:, ~held])
    free = directions[int(np.sum(values > 1e-9)) :]
    assert len(free) == 2, "both rods may spin"
    assert np.abs(free @ v[~held]).max() < 1e-10
    # The three rates of a ball joint are kept as well, if they are possible together.
    ball = {"ball1": v[robot.coordinates("ball1").v]}
    again = pl.consistent_velocity(robot, q, ball)
    np.testing.assert_array_equal(again[robot.coordinates("ball1").v], ball["ball1"])
    np.testing.assert_allclose(again, v, atol=1e-9)


def test_least_weighs_metres_with_the_length_of_the_robot() -> None:
    """A rack: v = q_rate * 0.5 shared between turning and sliding in numbers without unit."""
    entries = tables.table(
        "rack",
        tables.joint("turn", "revolute", GROUND, "wheel", [0, 0, 0], m.Y),
        tables.joint("slide", "prismatic", GROUND, "bar", [6, 0, 0], m.X),
        tables.joint("feed", "prismatic", GROUND, "feed", [0, 0, 0], m.X),
        couplings=[{"name": "sum", "polynomials": {"turn": [0, 2.0], "slide": [0, 1.0],
                                                  "feed": [0, -1.0]}}],
    )  # fmt: skip
    robot = tables.build(entries)
    assert robot.length == pytest.approx(np.sqrt(8.0))
    v = pl.consistent_velocity(robot, robot.neutral, {"feed": 3.0})
    # min (turn)^2 + (slide / L)^2 with 2 turn + slide = 3: turn : slide / L = 2 : L.
    expected = 3.0 / (4 + 8) * np.array([2.0, 8.0, 4.0])
    np.testing.assert_allclose(v, [expected[0], expected[1], 3.0], atol=1e-12)


def test_rates_of_both_motors_of_a_five_bar() -> None:
    robot = tables.build(m.five_bar())
    q = pl.assemble(robot, fixed={"m1": 0.2, "m2": 0.1})
    rates = {"m1": 0.8, "m2": -1.1}
    v = pl.consistent_velocity(robot, q, rates)

    def later(t: float) -> Array:
        fixed = {name: hand.at(robot, q, name) + t * rate for name, rate in rates.items()}
        return pl.assemble(robot, q, fixed=fixed)

    np.testing.assert_allclose(v, hand.slope(later, 1e-3), atol=1e-6)


def test_rates_that_the_loops_do_not_allow_are_refused() -> None:
    robot = tables.build(m.parallelogram())
    q = pl.assemble(robot, fixed={"left": 0.3})
    v = pl.consistent_velocity(robot, q, {"left": 1.0, "right": 1.0})
    np.testing.assert_allclose(v, [1, -1, 1], atol=1e-12)
    with pytest.raises(
        pl.InconsistentVelocity, match=r"'left' at 1.0.*'right' at 1.5.*'close"
    ) as e:
        pl.consistent_velocity(robot, q, {"left": 1.0, "right": 1.5})
    assert e.value.v[robot.coordinates("left").v][0] == 1.0
    assert e.value.v[robot.coordinates("right").v][0] == 1.5
    # Bars of 0.4 m that turn 0.5 rad/s differently: 0.2 m/s along the coupler, or across it.
    assert 0.01 < e.value.residual < 1.0
    with pytest.raises(pl.InconsistentVelocity):
        pl.consistent_velocity(robot, q, {"left": 1.0, "right": 1.000001})


@pytest.mark.parametrize("speed", [1e-6, 1.0, 1e6])
def test_whether_rates_are_consistent_does_not_depend_on_how_fast_they_are(speed: float) -> None:
    robot = tables.build(m.four_bar())
    q = hand.angles(robot, m.four_bar_q(2.2))
    v = pl.consistent_velocity(robot, q, {"crank": speed})
    again = pl.consistent_velocity(robot, q, dict(zip(robot.joints, v, strict=True)))
    np.testing.assert_array_equal(again, v)
    wrong: dict[str, Any] = {"crank": speed, "rocker": 2 * v[robot.coordinates("rocker").v][0]}
    if speed >= 1.0:
        with pytest.raises(pl.InconsistentVelocity):
            pl.consistent_velocity(robot, q, wrong)


def test_velocity_needs_an_assembled_robot() -> None:
    robot = tables.build(m.four_bar())
    q = hand.angles(robot, m.four_bar_q(2.2)) + np.array([0, 0, 0.1])
    with pytest.raises(pl.LoopNotClosed, match=r"'close'.*assemble the robot first") as caught:
        pl.consistent_velocity(robot, q, {"crank": 1.0})
    gap = 2 * np.sin(0.05) * m.ROCKER
    assert caught.value.residuals == {"close": pytest.approx(gap, rel=1e-9)}
    np.testing.assert_array_equal(caught.value.q, q)


def test_no_rates_mean_rest_and_unknown_ones_are_refused() -> None:
    robot = tables.build(m.rssr())
    np.testing.assert_array_equal(
        pl.consistent_velocity(robot, robot.neutral, {}), np.zeros(robot.nv)
    )
    with pytest.raises(pl.UnknownName, match="'crank'"):
        pl.consistent_velocity(robot, robot.neutral, {"krank": 1.0})
    with pytest.raises(pl.BadValue):
        pl.consistent_velocity(robot, robot.neutral, {"crank": np.inf})
    with pytest.raises(pl.BadValue):
        pl.consistent_velocity(robot, robot.neutral[1:], {"crank": 1.0})


def test_gear_rate_follows_its_ratio() -> None:
    robot = tables.build(m.gear_pair())
    q = pl.assemble(robot)
    v = pl.consistent_velocity(robot, q, {"pinion": 4.0})
    np.testing.assert_allclose(v, [4.0, -1.0], atol=1e-12)


# -- accelerations -------------------------------------------------------------------------------


@pytest.mark.parametrize("crank", CRANKS)
@pytest.mark.parametrize(
    ("entries", "closed_form"), [(m.four_bar, m.four_bar_q), (m.slider_crank, m.slider_crank_q)]
)
def test_accelerations_are_the_second_derivatives_of_the_closed_form(
    entries: Callable[[], tables.Table],
    closed_form: Callable[[float], Mapping[str, float]],
    crank: float,
) -> None:
    robot = tables.build(entries())
    q, speed, gain = hand.angles(robot, closed_form(crank)), -1.7, 4.0

    def velocity(t: float) -> Array:
        rate = speed + gain * t
        there = hand.angles(robot, closed_form(crank + speed * t + 0.5 * gain * t * t))
        return pl.consistent_velocity(robot, there, {"crank": rate})

    a = pl.consistent_acceleration(robot, q, velocity(0.0), {"crank": gain})
    np.testing.assert_allclose(a, hand.slope(velocity), atol=1e-7)
    assert a[robot.coordinates("crank").v][0] == gain


def test_accelerations_that_the_loops_do_not_allow() -> None:
    robot = tables.build(m.four_bar())
    q = hand.angles(robot, m.four_bar_q(0.8))
    v = pl.consistent_velocity(robot, q, {"crank": 1.0})
    with pytest.raises(pl.InconsistentVelocity, match=r"accelerations of 'crank' at 1.0, 'rocker'"):
        pl.consistent_acceleration(robot, q, v, {"crank": 1.0, "rocker": 5.0})
    equations = pl.EquationsOfMotion(robot)
    J, _, gamma = equations.terms(0.0, q, v)
    least = pl.consistent_acceleration(robot, q, v)
    np.testing.assert_allclose(J @ least + gamma, 0.0, atol=1e-10)
