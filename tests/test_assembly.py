"""Tests of `pinloop.assembly` and `pinloop.closing` against closed forms and against the promise
that what is fixed stays fixed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.closing import TOLERANCE, Problem, search
from pinloop.description import GROUND, Description, Joint
from pinloop.mechanism import build
from pinloop.pairs import make_pair

from . import mechanisms as m
from . import motion_by_hand as hand
from .mechanisms import Array

CRANKS = (0.1, 0.8, 1.9, 3.1, 4.4, 5.9)
UNIT = pin.SE3.Identity()


def is_closed(robot: pl.Mechanism, q: Array, tolerance: float = 1e-9) -> bool:
    return bool(np.linalg.norm(pl.Constraints(robot).residual(q)) < tolerance)


def at(robot: pl.Mechanism, q: Array, joint: str) -> float:
    return float(q[robot.coordinates(joint).q][0])


def limited(entries: m.Table, **ranges: tuple[float, float]) -> pl.Mechanism:
    for entry in entries["joints"]:
        if entry["name"] in ranges:
            lower, upper = ranges[entry["name"]]
            entry["limits"] = {"lower": lower, "upper": upper}
    return m.build(entries)


# -- closed forms ---------------------------------------------------------------------------


@pytest.mark.parametrize("crank", CRANKS)
@pytest.mark.parametrize("branch", [1, -1])
def test_four_bar_stands_where_the_law_of_cosines_puts_it(crank: float, branch: int) -> None:
    """The guess is 0.2 rad off: the branch that it is on is the one that is found."""
    robot, rng = m.build(m.four_bar()), np.random.default_rng(51)
    exact = m.four_bar_q(crank, branch)
    guess = hand.angles(robot, exact) + rng.uniform(-0.2, 0.2, 3)
    q = pl.assemble(robot, guess, fixed={"crank": exact["crank"]})
    for joint, value in exact.items():
        assert np.cos(at(robot, q, joint) - value) == pytest.approx(1, abs=1e-15)
    coupler, rocker = m.four_bar_angles(crank, branch)
    expected = m.planar(crank, m.CRANK) + m.planar(coupler, m.COUPLER)
    np.testing.assert_allclose(robot.placement(q, "close/A").translation, expected, atol=1e-9)
    expected = m.GROUND_BAR * m.X + m.planar(rocker, m.ROCKER)
    np.testing.assert_allclose(robot.placement(q, "close/B").translation, expected, atol=1e-9)


@pytest.mark.parametrize("crank", CRANKS)
@pytest.mark.parametrize("branch", [1, -1])
def test_slider_crank_stands_where_trigonometry_puts_it(crank: float, branch: int) -> None:
    robot, rng = m.build(m.slider_crank()), np.random.default_rng(52)
    exact = m.slider_crank_q(crank, branch)
    guess = hand.angles(robot, exact) + rng.uniform(-0.1, 0.1, 3)
    q = pl.assemble(robot, guess, fixed={"crank": exact["crank"]})
    assert at(robot, q, "slide") == pytest.approx(exact["slide"], abs=1e-9)
    assert np.cos(at(robot, q, "rod") - exact["rod"]) == pytest.approx(1, abs=1e-15)


def test_cardan_shafts_in_phase_turn_alike_and_the_middle_one_does_not() -> None:
    """Hooke's joint: tan(middle) = tan(input) cos(bend), undone by the second one."""
    robot = m.build(m.double_cardan())
    q = robot.neutral
    along = m.planar(m.BEND)
    for angle in (0.3, 0.7, 1.1, 1.4):
        q = pl.assemble(robot, q, fixed={"input": angle})
        assert at(robot, q, "output") == pytest.approx(angle, abs=1e-9)
        # The pin on the middle shaft, which started across it and in the plane of the shafts.
        pin_axis = robot.placement(q, "middle").rotation @ np.cross(along, m.Y)
        middle = np.arctan2(pin_axis @ np.cross(along, np.cross(along, m.Y)),
                            pin_axis @ np.cross(along, m.Y))  # fmt: skip
        assert np.tan(middle) == pytest.approx(np.tan(angle) * np.cos(m.BEND), abs=1e-8)
        assert abs(middle - angle) > 0.01


def test_screw_jack_moves_by_its_pitch_over_many_turns() -> None:
    robot = m.build(m.screw_jack())
    for angle in (0.5, -2.0, 40.0):
        # The nut does not turn: a positive turn of the shaft inside it draws it back.
        exact = -m.PITCH * angle
        q = pl.assemble(robot, [0.0, exact + 0.02], fixed={"shaft": angle})
        assert at(robot, q, "nut") == pytest.approx(exact, abs=1e-9)


def test_gear_turns_with_ratio_and_offset() -> None:
    robot = m.build(m.gear_pair())
    q = pl.assemble(robot, fixed={"pinion": 2.0})
    assert at(robot, q, "wheel") == pytest.approx(-0.25 * 2.0 + 0.3, abs=1e-12)


# -- what is given --------------------------------------------------------------------------


def awkward() -> pl.Mechanism:
    """Ball, circle and free joints in a loop, where rounding could creep into given values."""
    rng = np.random.default_rng(53)
    spots = [hand.random_se3(rng, 0.5) for _ in range(10)]
    joints = (
        Joint("ball", make_pair("spherical"), GROUND, "a", *spots[0:2]),
        Joint("hinge", make_pair("revolute"), "a", "b", *spots[2:4], coordinates="circle"),
        Joint("fly", make_pair("free"), GROUND, "c", *spots[4:6], coordinates="SO3xR3"),
        Joint("slide", make_pair("prismatic"), "c", "d", *spots[6:8]),
        Joint("close", make_pair("point_on_plane"), "b", "d", *spots[8:10], cut=True),
    )
    return build(Description("awkward", tuple(m.described(name) for name in "abcd"), joints))


def test_fixed_values_are_kept_to_the_last_bit() -> None:
    robot, rng = awkward(), np.random.default_rng(54)
    for _ in range(20):
        turns = rng.normal(size=(2, 4))
        turns /= np.linalg.norm(turns, axis=1)[:, None]
        angle = rng.uniform(-9, 9)
        q = pl.assemble(robot, hand.random_q(robot, rng), {"ball": turns[0], "hinge": angle})
        assert is_closed(robot, q)
        np.testing.assert_array_equal(q[robot.coordinates("ball").q], turns[0])
        circle = [np.cos(angle), np.sin(angle)]
        np.testing.assert_array_equal(q[robot.coordinates("hinge").q], circle)
        flight = np.r_[rng.uniform(-1, 1, 3), turns[1]]
        q = pl.assemble(robot, hand.random_q(robot, rng), {"fly": flight})
        assert is_closed(robot, q)
        np.testing.assert_array_equal(q[robot.coordinates("fly").q], flight)
    bar = m.build(m.four_bar())
    for angle in rng.uniform(-3, 3, 20):
        assert at(bar, pl.assemble(bar, fixed={"crank": angle}), "crank") == angle


def test_array_guess_chooses_the_branch_near_it_and_is_left_alone() -> None:
    robot = m.build(m.four_bar())
    for branch in (1, -1):
        exact = hand.angles(robot, m.four_bar_q(1.2, branch))
        guess = exact + np.array([0.05, -0.08, 0.06])
        kept = guess.copy()
        q = pl.assemble(robot, guess)
        np.testing.assert_array_equal(guess, kept)
        assert is_closed(robot, q)
        assert np.linalg.norm(q - guess) < np.linalg.norm(exact - guess) * 1.05, "a step too far"
        assert np.linalg.norm(q - exact) < 0.3


def test_closed_guess_is_returned_as_it_is() -> None:
    robot = m.build(m.rssr())
    q = pl.assemble(robot, fixed={"crank": -0.4})
    np.testing.assert_allclose(pl.assemble(robot, q), q, atol=1e-10)
    np.testing.assert_array_equal(pl.assemble(m.build(m.parallelogram())), np.zeros(3))


def test_dict_guess_is_kept_where_the_loops_close_with_it() -> None:
    robot = m.build(m.five_bar())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        q = pl.assemble(robot, {"m1": 0.3, "m2": -0.2})
    assert is_closed(robot, q)
    assert (at(robot, q, "m1"), at(robot, q, "m2")) == (0.3, -0.2)


def test_dict_guess_gives_way_with_a_warning_that_names_what_moved() -> None:
    robot = m.build(m.four_bar())
    exact = m.four_bar_q(1.5)
    guess = {"crank": exact["crank"], "rocker": exact["rocker"] + 0.1}
    with pytest.warns(pl.PinloopWarning, match=r"four-bar.*'rocker' at .*fixed=") as caught:
        q = pl.assemble(robot, guess)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert is_closed(robot, q)
    assert abs(at(robot, q, "rocker") - guess["rocker"]) < 0.3, "it started from the guess"
    # What is fixed stays, and only the guess gives way.
    with pytest.warns(pl.PinloopWarning, match=r"as given: 'rocker' at [-\d.]*; pass"):
        q = pl.assemble(robot, {"rocker": guess["rocker"], "crank": 9.0}, {"crank": 0.7})
    assert at(robot, q, "crank") == 0.7


def test_limits_are_respected_unless_switched_off() -> None:
    exact = m.four_bar_q(2.0)
    low, high = exact["rocker"] - 0.05, exact["rocker"] + 0.05
    robot = limited(m.four_bar(), rocker=(low, high), crank=(-4.0, 4.0))
    for guess in (None, hand.angles(robot, m.four_bar_q(0.3)), {"elbow": 0.2}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pl.PinloopWarning)
            q = pl.assemble(robot, guess)
        assert is_closed(robot, q)
        assert low <= at(robot, q, "rocker") <= high
        assert -4 <= at(robot, q, "crank") <= 4
    outside = hand.angles(robot, m.four_bar_q(0.3))
    np.testing.assert_allclose(pl.assemble(robot, outside, limits=False), outside, atol=1e-9)


def test_a_fixed_value_beyond_its_limit_is_refused() -> None:
    robot = limited(m.four_bar(), crank=(-0.5, 0.5))
    with pytest.raises(pl.BadValue, match=r"'crank' shall be at 0.6, outside .*\[-0.5, 0.5\]"):
        pl.assemble(robot, fixed={"crank": 0.6})
    assert at(robot, pl.assemble(robot, fixed={"crank": 0.6}, limits=False), "crank") == 0.6
    assert at(robot, pl.assemble(robot, fixed={"crank": 0.5}), "crank") == 0.5


def test_names_and_values_that_do_not_exist_are_refused() -> None:
    robot = m.build(m.four_bar())
    for arguments in ({"guess": {"cranck": 1}}, {"fixed": {"cranck": 1}}):
        with pytest.raises(pl.UnknownName, match="'crank'"):
            pl.assemble(robot, **arguments)  # type: ignore[arg-type]
    with pytest.raises(pl.UnknownName, match="'coupler'"):
        pl.assemble(robot, targets={"couple": UNIT})
    with pytest.raises(pl.BadValue, match="closes a loop"):
        pl.assemble(robot, fixed={"close": 1})
    with pytest.raises(pl.BadValue, match=r"target of 'coupler' must be a pin.SE3, not ndarray"):
        pl.assemble(robot, targets={"coupler": np.eye(4)})
    with pytest.raises(pl.BadValue):
        pl.assemble(robot, [0.0, 1.0])
    with pytest.raises(pl.BadValue):
        pl.assemble(robot, fixed={"crank": np.nan})


# -- targets --------------------------------------------------------------------------------


@pytest.mark.parametrize("entries", [m.planar_3r, m.arm_6r, m.double_pendulum])
def test_inverse_kinematics_reaches_every_reachable_pose(entries: Callable[[], m.Table]) -> None:
    robot, rng = m.build(entries()), np.random.default_rng(55)
    tip = robot.bodies[-1]
    for _ in range(8):
        pose = robot.placement(hand.random_q(robot, rng, 1.5), tip)
        q = pl.assemble(robot, 0.3 + robot.neutral if robot.nq == robot.nv else None,
                        targets={tip: pose})  # fmt: skip
        np.testing.assert_allclose(robot.placement(q, tip).homogeneous, pose.homogeneous, atol=1e-9)


def test_targets_on_a_loop_close_the_loop_too_and_leave_fixed_joints() -> None:
    robot = m.build(m.five_bar())
    aim = pl.assemble(robot, fixed={"m1": 0.4, "m2": -0.3})
    pose = robot.placement(aim, "r2")
    q = pl.assemble(robot, targets={"r2": pose})
    assert is_closed(robot, q)
    np.testing.assert_allclose(robot.placement(q, "r2").homogeneous, pose.homogeneous, atol=1e-9)
    q = pl.assemble(robot, fixed={"m1": 0.4}, targets={"r2": pose})
    assert at(robot, q, "m1") == 0.4
    assert at(robot, q, "m2") == pytest.approx(-0.3, abs=1e-8)


def test_two_targets_at_once() -> None:
    robot = m.build(m.arm_6r())
    aim = np.array([0.3, -0.5, 0.8, 0.2, 0.6, -0.4])
    poses = {name: robot.placement(aim, name) for name in ("b4", "b6")}
    np.testing.assert_allclose(pl.assemble(robot, targets=poses), aim, atol=1e-8)


def test_target_out_of_reach_is_named_with_how_far_it_is_missed() -> None:
    robot = m.build(m.planar_3r())
    pose = pin.SE3(np.eye(3), np.array([5.0, 0.0, 0.0]))
    with pytest.raises(
        pl.LoopNotClosed, match=r"'c' misses its target by .* out of reach"
    ) as caught:
        pl.assemble(robot, targets={"c": pose})
    error = caught.value
    assert error.blocked_by == ("c",)
    miss = pin.log6(pose.actInv(robot.placement(error.q, "c"))).vector
    assert error.residuals == {"target c": pytest.approx(np.linalg.norm(miss))}
    assert np.linalg.norm(miss) > 1.0


# -- what cannot be -------------------------------------------------------------------------


def test_over_fixed_joints_are_named() -> None:
    """One of the two angles of a four-bar is too many; the pendulum beside it is not to blame."""
    entries = m.four_bar()
    bystander = m.joint("aside", "revolute", GROUND, "aside", [0, 3, 0], m.Y)
    robot = m.build(m.table("over", bystander, *entries["joints"]))
    exact = m.four_bar_q(2.5)
    fixed = {"aside": 1.0, "crank": exact["crank"], "rocker": exact["rocker"] + 0.2}
    with pytest.raises(pl.LoopNotClosed, match=r"over-fixed.*'crank' is released") as caught:
        pl.assemble(robot, fixed=fixed)
    assert caught.value.blocked_by == ("crank",)
    for name, value in fixed.items():
        assert at(robot, caught.value.q, name) == value
    gap = np.linalg.norm(pl.Constraints(robot).residual(caught.value.q))
    assert caught.value.residuals == {"close": pytest.approx(gap)}
    fixed |= {"elbow": 0.0}
    with pytest.raises(pl.LoopNotClosed, match="over-fixed") as caught:
        pl.assemble(robot, fixed=fixed)
    assert set(caught.value.blocked_by) == set(fixed)


def test_blocking_limits_are_named() -> None:
    rocker = m.four_bar_q(2.5)["rocker"]
    robot = limited(m.four_bar(), crank=(-0.1, 0.1), elbow=(-7.0, 7.0))
    with pytest.raises(pl.LoopNotClosed, match=r"limits block it \('crank'\)") as caught:
        pl.assemble(robot, fixed={"rocker": rocker})
    assert caught.value.blocked_by == ("crank",)
    assert -0.1 <= at(robot, caught.value.q, "crank") <= 0.1
    assert is_closed(robot, pl.assemble(robot, fixed={"rocker": rocker}, limits=False))


def test_loop_that_cannot_close_says_by_how_much_it_stays_open() -> None:
    """A coupler of 3.9 m between bars of 2 m in all: 1.9 m are missing, whatever one does."""
    fine = m.build(m.four_bar()).description
    *rest, close = fine.joints
    coupler, _ = m.four_bar_angles(m.START)
    longer = pin.SE3(close.frame_parent.rotation,
                     close.frame_parent.translation + m.planar(coupler, 3.0))  # fmt: skip
    robot = build(replace(fine, joints=(*rest, replace(close, frame_parent=longer))))
    with pytest.raises(pl.LoopNotClosed) as caught:
        pl.assemble(robot)
    error = caught.value
    assert "'close': the revolute pair between 'coupler' and 'rocker' is open by 1.9e+03 mm" in str(
        error
    )
    assert "out of reach" in str(error)
    assert error.blocked_by == ()
    assert error.residuals == {"close": pytest.approx(1.9, abs=1e-3)}


@pytest.mark.parametrize("missing", [1e-3, 1e-6, 1e-8])
def test_nearly_closed_is_not_closed(missing: float) -> None:
    """Bars of 2 m in all and a coupler that is longer than that by very little."""
    fine = m.build(m.four_bar()).description
    *rest, close = fine.joints
    extra = m.GROUND_BAR + m.CRANK + m.ROCKER + missing - m.COUPLER
    coupler, _ = m.four_bar_angles(m.START)
    shift = pin.SE3(np.eye(3), m.planar(coupler, extra))
    robot = build(
        replace(fine, joints=(*rest, replace(close, frame_parent=shift * close.frame_parent)))
    )
    with pytest.raises(pl.LoopNotClosed) as caught:
        pl.assemble(robot, m.START * np.array([-1.0, 0.0, 0.0]))
    assert missing * 0.99 < caught.value.residuals["close"] < missing + 1e-3


def test_coupling_that_cannot_hold_is_named() -> None:
    """No real root: q^2 + 1 = 0."""
    entries = m.gear_pair()
    entries["couplings"] = [{"name": "cam", "polynomials": {"pinion": [1.0, 0.0, 1.0]}}]
    with pytest.raises(pl.LoopNotClosed, match="coupling 'cam' is off by") as caught:
        pl.assemble(m.build(entries))
    assert caught.value.residuals["cam"] == pytest.approx(1.0, abs=1e-3)


def flag() -> pl.Mechanism:
    """A body on a ball joint, and a hinge along z through the ball's centre."""
    return m.build(
        m.table(
            "flag",
            m.joint("ball", "spherical", GROUND, "flag", [0, 0, 0]),
            m.joint("hinge", "revolute", GROUND, "flag", [0, 0, 0], m.Z, cut=True),
        )
    )


@pytest.mark.parametrize("tilt", [0.0, 1e-9, 0.3, -0.3])
def test_hinge_upside_down_is_not_closed(tilt: float) -> None:
    """Paper 1, remark 4: parallel axes are not enough, they must point the same way."""
    robot = flag()
    turned = pin.SE3ToXYZQUAT(pin.SE3(pin.exp3((np.pi - tilt) * m.X), np.zeros(3)))[3:]
    upside_down = robot.configuration({"ball": turned})
    gap = np.linalg.norm(pl.Constraints(robot).residual(upside_down))
    assert gap == pytest.approx(np.pi - abs(tilt), abs=1e-6)
    q = pl.assemble(robot, upside_down)
    np.testing.assert_allclose(robot.placement(q, "flag").rotation @ m.Z, m.Z, atol=1e-9)


# -- the search -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "entries", [m.four_bar, m.slider_crank, m.rssr, m.spherical_four_bar, m.bennett, m.sarrus]
)
def test_search_succeeds_from_almost_anywhere(entries: Callable[[], m.Table]) -> None:
    robot, rng, successes = m.build(entries()), np.random.default_rng(56), 0
    scale = np.where(robot.is_translation, robot.length, 1.0)
    for _ in range(200):
        start = robot.integrate(robot.neutral, rng.uniform(-np.pi, np.pi, robot.nv) * scale)
        try:
            successes += is_closed(robot, pl.assemble(robot, start, limits=False))
        except pl.LoopNotClosed:
            continue
    assert successes >= 190


def test_stretched_arm_is_not_stuck() -> None:
    """No direction leads from a straight arm towards its root: only another start does."""
    robot = m.build(m.planar_3r())
    pose = pin.SE3(np.eye(3), np.array([-0.3, 0.0, 0.0]))
    q = pl.assemble(robot, targets={"c": pose})
    np.testing.assert_allclose(robot.placement(q, "c").homogeneous, pose.homogeneous, atol=1e-9)


def test_search_slides_along_limits() -> None:
    """A narrow window of the rocker is found without luck: no restarts."""
    exact, rng = m.four_bar_q(2.0), np.random.default_rng(58)
    windows = {"rocker": 0.02, "elbow": 0.06, "crank": 4.0}
    ranges = {name: (exact[name] - r, exact[name] + r) for name, r in windows.items()}
    robot, found = limited(m.four_bar(), **ranges), 0
    problem = Problem(robot, pl.Constraints(robot), (), {}, limits=True)
    for _ in range(50):
        start = hand.angles(robot, exact) + rng.uniform(-1, 1, 3)
        q, error = search(problem, start, seed=0, restarts=0)
        found += error < TOLERANCE
        for name, (low, high) in ranges.items():
            assert low <= at(robot, q, name) <= high
    assert found >= 45


def test_search_follows_the_derivative_of_what_it_closes() -> None:
    """Closure, coupling and target rows, all in numbers without unit."""
    entries = m.slider_crank(couplings=[
        {"name": "cam", "polynomials": {"slide": [0, 2.0], "crank": [0, 0.5, 0.1]}}
    ])  # fmt: skip
    robot, rng = m.build(entries), np.random.default_rng(59)
    targets = {"piston": hand.random_se3(rng), "rod": hand.random_se3(rng)}
    problem = Problem(robot, pl.Constraints(robot), (), targets, limits=False)
    q = hand.angles(robot, m.slider_crank_q(2.0))
    scaled = rng.normal(size=robot.nv)
    # The length of the robot is the unit of length: the slider's rate is counted in it.
    v = scaled * np.where(np.array(robot.joints) == "slide", robot.length, 1.0)
    expected = hand.rate(robot, q, v, problem.residual)
    np.testing.assert_allclose(problem.jacobian(q) @ scaled, expected, atol=1e-8)
    rows = pl.Constraints(robot)
    units = np.r_[[robot.length] * 3, 1, 1, robot.length]
    np.testing.assert_allclose(problem.residual(q)[:6] * units, rows.residual(q), atol=1e-12)
    miss = pin.log6(targets["rod"].actInv(robot.placement(q, "rod"))).vector
    miss[:3] /= robot.length
    np.testing.assert_allclose(problem.residual(q)[-6:], miss, atol=1e-12)


def test_search_is_the_same_for_the_same_seed() -> None:
    robot = limited(m.four_bar(), rocker=(0.55, 0.6), elbow=(-7, 7))
    start = np.array([2.9, 2.0, -2.0])
    first = [pl.assemble(robot, start, seed=seed) for seed in range(4)]
    again = [pl.assemble(robot, start, seed=seed) for seed in range(4)]
    for one, other in zip(first, again, strict=True):
        assert one.tobytes() == other.tobytes()
        assert is_closed(robot, one)


def test_lengths_in_other_units_make_no_difference() -> None:
    """A four-bar a thousand times smaller is found at the same angles."""
    large, entries = m.build(m.four_bar()), m.four_bar()
    for entry in entries["joints"]:
        entry["point"] = 1e-3 * np.array(entry["point"])
    small = m.build(entries)
    assert small.length == pytest.approx(1e-3 * large.length)
    start = np.array([0.5, -0.9, 0.7])
    np.testing.assert_allclose(pl.assemble(small, start), pl.assemble(large, start), atol=1e-7)


def test_a_single_coordinate_and_none_at_all() -> None:
    door = m.build(m.door())
    np.testing.assert_array_equal(pl.assemble(door, fixed={"low": 0.7}), [0.7])
    np.testing.assert_allclose(pl.consistent_velocity(door, [0.7], {"low": 2.0}), [2.0])
    pose = door.placement([0.4], "leaf")
    np.testing.assert_allclose(pl.assemble(door, targets={"leaf": pose}), [0.4], atol=1e-9)
    statue = m.build(m.table("statue", m.joint("w", "fixed", GROUND, "statue", [0, 0, 0])))
    assert pl.assemble(statue).shape == pl.consistent_velocity(statue, [], {}).shape == (0,)


# -- velocities -----------------------------------------------------------------------------


@pytest.mark.parametrize("crank", CRANKS)
@pytest.mark.parametrize(
    ("entries", "closed_form"),
    [(m.four_bar, m.four_bar_q), (m.slider_crank, m.slider_crank_q)],
)
def test_velocities_are_the_derivatives_of_the_closed_form(
    entries: Callable[[], m.Table],
    closed_form: Callable[[float], Mapping[str, float]],
    crank: float,
) -> None:
    robot = m.build(entries())
    q, speed = hand.angles(robot, closed_form(crank)), -1.7

    def turning(t: float) -> Array:
        later = hand.angles(robot, closed_form(crank + speed * t))
        return q + np.angle(np.exp(1j * (later - q)))

    v = pl.consistent_velocity(robot, q, {"crank": speed})
    np.testing.assert_allclose(v, hand.slope(turning), atol=1e-8)
    assert v[robot.coordinates("crank").v][0] == speed


def test_given_rates_are_kept_exactly_and_the_rest_is_least() -> None:
    robot = m.build(m.spinning_rods())
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
    entries = m.table(
        "rack",
        m.joint("turn", "revolute", GROUND, "wheel", [0, 0, 0], m.Y),
        m.joint("slide", "prismatic", GROUND, "bar", [6, 0, 0], m.X),
        m.joint("feed", "prismatic", GROUND, "feed", [0, 0, 0], m.X),
        couplings=[{"name": "sum", "polynomials": {"turn": [0, 2.0], "slide": [0, 1.0],
                                                  "feed": [0, -1.0]}}],
    )  # fmt: skip
    robot = m.build(entries)
    assert robot.length == pytest.approx(np.sqrt(8.0))
    v = pl.consistent_velocity(robot, robot.neutral, {"feed": 3.0})
    # min (turn)^2 + (slide / L)^2 with 2 turn + slide = 3: turn : slide / L = 2 : L.
    expected = 3.0 / (4 + 8) * np.array([2.0, 8.0, 4.0])
    np.testing.assert_allclose(v, [expected[0], expected[1], 3.0], atol=1e-12)


def test_rates_of_both_motors_of_a_five_bar() -> None:
    robot = m.build(m.five_bar())
    q = pl.assemble(robot, fixed={"m1": 0.2, "m2": 0.1})
    rates = {"m1": 0.8, "m2": -1.1}
    v = pl.consistent_velocity(robot, q, rates)

    def later(t: float) -> Array:
        fixed = {name: at(robot, q, name) + t * rate for name, rate in rates.items()}
        return pl.assemble(robot, q, fixed=fixed)

    np.testing.assert_allclose(v, hand.slope(later, 1e-3), atol=1e-6)


def test_rates_that_the_loops_do_not_allow_are_refused() -> None:
    robot = m.build(m.parallelogram())
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
    robot = m.build(m.four_bar())
    q = hand.angles(robot, m.four_bar_q(2.2))
    v = pl.consistent_velocity(robot, q, {"crank": speed})
    again = pl.consistent_velocity(robot, q, dict(zip(robot.joints, v, strict=True)))
    np.testing.assert_array_equal(again, v)
    wrong: dict[str, Any] = {"crank": speed, "rocker": 2 * v[robot.coordinates("rocker").v][0]}
    if speed >= 1.0:
        with pytest.raises(pl.InconsistentVelocity):
            pl.consistent_velocity(robot, q, wrong)


def test_velocity_needs_an_assembled_robot() -> None:
    robot = m.build(m.four_bar())
    q = hand.angles(robot, m.four_bar_q(2.2)) + np.array([0, 0, 0.1])
    with pytest.raises(pl.LoopNotClosed, match=r"'close'.*assemble the robot first") as caught:
        pl.consistent_velocity(robot, q, {"crank": 1.0})
    gap = 2 * np.sin(0.05) * m.ROCKER
    assert caught.value.residuals == {"close": pytest.approx(gap, rel=1e-9)}
    np.testing.assert_array_equal(caught.value.q, q)


def test_no_rates_mean_rest_and_unknown_ones_are_refused() -> None:
    robot = m.build(m.rssr())
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
    robot = m.build(m.gear_pair())
    q = pl.assemble(robot)
    v = pl.consistent_velocity(robot, q, {"pinion": 4.0})
    np.testing.assert_allclose(v, [4.0, -1.0], atol=1e-12)
