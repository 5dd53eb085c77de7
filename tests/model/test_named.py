"""Coordinates and rates by name, with units as people write them, and back."""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl

_ROBOTS = ("palletizer", "spherical_threebar", "stewart", "prrr3")


@pytest.mark.parametrize("name", _ROBOTS)
@pytest.mark.parametrize("seed", range(3))
def test_names_and_back_are_the_same(name: str, seed: int) -> None:
    robot, draw = pl.example(name), np.random.default_rng(seed)
    v = draw.normal(size=robot.nv)
    q = robot.integrate(robot.neutral, draw.normal(size=robot.nv))
    named, rates = robot.named(q), robot.named_rates(v)
    assert tuple(named) == tuple(rates) == robot.joints
    assert np.allclose(robot.configuration(named), q, rtol=0, atol=1e-15)
    assert np.array_equal(robot.velocity(rates), v)
    for joint, value in named.items():
        assert np.size(value) == robot.coordinates(joint).nq  # no joint without limits here
        assert np.size(rates[joint]) == robot.coordinates(joint).nv


def test_a_joint_without_limits_has_an_angle() -> None:
    model = pin.Model()
    model.addJoint(0, pin.JointModelRUBY(), pin.SE3.Identity(), "wheel")
    model.appendBodyToJoint(1, pin.Inertia.Random(), pin.SE3.Identity())
    robot = pl.load(model)
    for angle in (-3.0, 0.2, 3.1):
        assert robot.named(robot.configuration({"wheel": angle})) == {"wheel": pytest.approx(angle)}
    assert robot.named(robot.configuration({"wheel": "90 deg"}))["wheel"] == pytest.approx(
        math.pi / 2
    )


def test_units_are_those_of_the_joint() -> None:
    robot = pl.example("prrr3")
    slide = next(name for name in robot.joints if robot.coordinates(name).slides)
    hinge = next(name for name in robot.joints if not robot.coordinates(name).slides)
    q = robot.configuration({slide: "-30 mm", hinge: "25deg"})
    assert robot.named(q)[slide] == pytest.approx(-0.03, rel=1e-15)
    assert robot.named(q)[hinge] == pytest.approx(math.radians(25), rel=1e-15)
    v = robot.velocity({slide: "20mm/s", hinge: "-2 rad/s"})
    assert robot.named_rates(v)[slide] == pytest.approx(0.02, rel=1e-15)
    assert robot.named_rates(v)[hinge] == -2.0
    for wrong in ({slide: "25deg"}, {hinge: "30 mm"}, {hinge: "25 dge"}, {hinge: "deg"}):
        with pytest.raises(pl.BadValue, match=r"no number, with or without a unit \((rad|m), "):
            robot.configuration(wrong)
    with pytest.raises(pl.BadValue, match=r"the rate of joint .* is '20mm'"):
        robot.velocity({slide: "20mm"})


def test_a_ball_takes_plain_numbers() -> None:
    robot = pl.example("spherical_threebar")
    with pytest.raises(pl.BadValue, match="a joint with several axes takes plain numbers"):
        robot.configuration({robot.joints[0]: "25deg"})


def test_values_that_look_like_degrees_get_a_hint() -> None:
    robot = pl.example("palletizer")
    assert pl.assemble(robot, {"shoulder": "25deg"})[robot.coordinates("shoulder").q] == (
        pytest.approx(math.radians(25))
    )
    with pytest.raises(pl.BadValue, match="25 degrees are within them: write '25deg'"):
        pl.assemble(robot, {"shoulder": 25})
    with pytest.raises(pl.BadValue) as refused:  # neither in radians nor in degrees
        pl.assemble(robot, {"shoulder": 200})
    assert "degrees" not in str(refused.value)
    machine = pl.example("prrr3")
    slide = next(name for name in machine.joints if machine.coordinates(name).slides)
    with pytest.raises(pl.BadValue) as refused:
        pl.assemble(machine, {slide: 10.0})
    assert "degrees" not in str(refused.value)
