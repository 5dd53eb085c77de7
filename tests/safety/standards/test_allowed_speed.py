"""Allowed speeds against closed forms of a carriage, and against stops on either side of them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from scipy.optimize import brentq

import pinloop as pl
from pinloop.safety.standards.allowed_speed import largest_share, scaled
from pinloop.tolerances import SPEED_SHARE

from ..space.moving_bodies import at, chain, shape
from ..studies.carriage import BRAKING, COMMAND, DELAY, SPEED, brakes

DEAD = COMMAND + DELAY
ARM = pl.example_file("six_axis_arm.brakes.yaml")


def slider(axis: tuple[float, float, float] = (1, 0, 0)) -> pl.Mechanism:
    body = shape("a", "box", (0.5, 0.3, 0.2), at(0, 0, 0))
    return chain("prismatic", axis=axis, geometry=(replace(body, placement=pin.SE3(1)),))


def allowed(within: dict[str, Any], **more: Any) -> pl.safety.AllowedSpeed:
    """Of a carriage at two places, whose full speed is 2 m/s."""
    robot = more.pop("robot", None) or slider()
    by = more.pop("by", None) or brakes(j1=BRAKING)
    space = pl.safety.Space(pose={"j1": (-0.5, 0.5)}, speed={"j1": more.pop("speed", SPEED)})
    return pl.allowed_speed(robot, by, within, space, pl.safety.Grid(2), jobs=1, **more)


def travel(v: float) -> float:
    return v * DEAD + v**2 / (2 * BRAKING)


def separated(v: float) -> float:
    """From the front face 0.25 m ahead: the person at 1.6 m/s, and the robot (ISO/TS 15066)."""
    return 1.6 * (DEAD + v / BRAKING) + travel(v)


@pytest.mark.parametrize(
    ("within", "by_hand"),
    [
        ({"travel": 0.3}, lambda v: travel(v) - 0.3),
        ({"travel": "300 mm"}, lambda v: travel(v) - 0.3),
        ({"time": "400ms"}, lambda v: DEAD + v / BRAKING - 0.4),
        ({"angle:j1": 0.1}, lambda v: travel(v) - 0.1),
        ({"time": 0.4, "travel": 0.15}, lambda v: max(DEAD + v / BRAKING - 0.4, travel(v) - 0.15)),
        ({"separation": 0.8}, lambda v: separated(v) - 0.8),
    ],
)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_carriage_may_go_as_fast_as_a_hand_computes(
    within: dict[str, Any], by_hand: Any, sign: float
) -> None:
    person = {"direction": (sign, 0, 0)} if "separation" in within else None
    result = allowed(within, speed=sign * SPEED, person=person)
    share = brentq(by_hand, 0.0, SPEED) / SPEED
    assert share - SPEED_SHARE <= result.share <= share * (1 + 1e-9)
    assert result.worst.binding in within
    assert {case.share for case in result.cases} == {result.share}
    assert abs(result.stop().run.v[0, 0]) == pytest.approx(result.share * SPEED, rel=1e-14)


def test_full_speed_and_no_speed() -> None:
    fast = allowed({"travel": 10.0})
    assert fast.share == 1.0 and fast.worst.binding == ""
    assert "100.0 % of the speeds allowed" in str(fast)
    text = "no case comes to any limit; are the limits in the right units?"
    assert text in fast.as_dict()["notes"]
    assert text not in allowed({"travel": 0.3}).as_dict()["notes"]
    weight = {"robot": slider((0, 0, 1)), "gravity": (0.0, 0.0, -9.81)}  # held by 4 N
    hanging = allowed({"travel": 0.5}, **weight)
    assert hanging.share == 0.0
    assert hanging.worst.binding == "the robot is not held"


def test_a_stop_at_the_share_is_within_and_one_above_is_not() -> None:
    arm = pl.example("six_axis_arm")
    limits = {"travel": 0.25, "time": 0.18}
    result = pl.allowed_speed(arm, ARM, limits, sampling=pl.safety.Random(6, seed=3), jobs=1)
    assert 0.0 < result.share < 1.0
    bound = [case for case in result.known if case.share < 1.0]
    for case in bound:
        values = result.values[case.case]
        for share, within in ((case.share, True), (case.share + 1.5 * SPEED_SHARE, False)):
            stop = result.setup.stop(scaled(values, share))
            assert (
                stop.point().length <= limits["travel"] and stop.stopping_time <= limits["time"]
            ) is within
    assert result.worst.share == min(case.share for case in bound)
    place = arm.placement(result.stop().run.q[0], result.stop().tool).translation
    assert np.allclose(place, result.worst.tool, rtol=0, atol=1e-12)


def test_clearance_is_kept_at_least() -> None:
    wall = pl.Obstacle.box("wall", (0.1, 2.0, 2.0), pin.SE3(np.eye(3), np.array([1.5, 0.0, 0.0])))
    result = allowed({"clearance": 0.2}, obstacles=wall)
    # The face is at 0.75 m in the nearer case, the wall at 1.45 m.
    nearer = brentq(lambda v: travel(v) - 0.5, 0.0, SPEED) / SPEED
    assert nearer - SPEED_SHARE - 1e-3 <= result.share <= nearer + 1e-3


@pytest.mark.parametrize("limit", [0.03, 0.2, 0.51, 0.95])
def test_a_share_that_breaks_a_limit_below_is_not_jumped_over(limit: float) -> None:
    """Between two shares too much, and at full speed not: as where a joint swings back."""
    gap = (limit, limit + 0.2)
    tried: list[float] = []

    def keeps(share: float) -> bool:
        tried.append(share)
        return not gap[0] < share < gap[1]

    share = largest_share(keeps)
    assert limit - SPEED_SHARE <= share <= limit
    assert share == 0.0 or share in tried


def test_what_samples_prove() -> None:
    result = allowed({"travel": 0.3})
    # The chance that two samples are both among the better ones is 5 %.
    assert result.proven**2 == pytest.approx(0.05)
    assert f"{100 * math.sqrt(0.05):.1f} % of all cases" in str(result)


@pytest.mark.parametrize(
    ("within", "more", "match"),
    [
        ({}, {}, "stop_within is empty"),
        ({"travl": 1.0}, {}, "did you mean 'travel'"),
        ({"travel": "-3mm"}, {}, "must be positive"),
        ({"time": 250}, {}, "is 250 s, longer than any stop is followed \\(10 s\\)"),
        ({"travel": "3 s"}, {}, "no number, with or without a unit"),
        ({"separation": 1.0}, {}, "needs person="),
        ({"clearance": 1.0}, {}, "needs obstacles"),
    ],
)
def test_mistakes_are_named(within: dict[str, Any], more: dict[str, Any], match: str) -> None:
    with pytest.raises(pl.PinloopError, match=match):
        allowed(within, **more)


def test_the_picture_shows_each_case_at_its_place() -> None:
    pytest.importorskip("matplotlib")
    result = allowed({"travel": 0.3})
    figure = result.plot("xz")
    (spots,) = figure.axes[0].collections[-1:]
    places = np.array([case.tool for case in result.known])[:, [0, 2]]
    order = np.argsort(places[:, 0])
    drawn = np.asarray(spots.get_offsets())
    assert np.allclose(drawn[np.argsort(drawn[:, 0])], places[order])
    assert f"{100 * result.share:.1f} % of the speeds allowed" in figure.get_suptitle()
    with pytest.raises(pl.BadValue, match="plane is 'zx'"):
        result.plot("zx")
