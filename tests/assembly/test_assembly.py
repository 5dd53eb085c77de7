"""Tests of `pinloop.assembly.assemble`: configurations against closed forms; what is fixed stays
fixed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.assembly.search import is_at_limit, is_outside
from pinloop.model.description import GROUND, Description, Joint
from pinloop.model.mechanism import build
from pinloop.model.pairs import make_pair

from .. import mechanisms as m
from .. import motion_by_hand as hand
from .. import screw_tables as tables

CRANKS = (0.1, 0.8, 1.9, 3.1, 4.4, 5.9)
UNIT = pin.SE3.Identity()


# -- closed forms ---------------------------------------------------------------------------


@pytest.mark.parametrize("crank", CRANKS)
@pytest.mark.parametrize("branch", [1, -1])
def test_four_bar_stands_where_the_law_of_cosines_puts_it(crank: float, branch: int) -> None:
    """The guess is 0.2 rad off: the branch that it is on is the one that is found."""
    robot, rng = tables.build(m.four_bar()), np.random.default_rng(51)
    exact = m.four_bar_q(crank, branch)
    guess = hand.angles(robot, exact) + rng.uniform(-0.2, 0.2, 3)
    q = pl.assemble(robot, guess, fixed={"crank": exact["crank"]})
    for joint, value in exact.items():
        assert np.cos(hand.at(robot, q, joint) - value) == pytest.approx(1, abs=1e-15)
    coupler, rocker = m.four_bar_angles(crank, branch)
    expected = m.planar(crank, m.CRANK) + m.planar(coupler, m.COUPLER)
    np.testing.assert_allclose(robot.placement(q, "close/A").translation, expected, atol=1e-9)
    expected = m.GROUND_BAR * m.X + m.planar(rocker, m.ROCKER)
    np.testing.assert_allclose(robot.placement(q, "close/B").translation, expected, atol=1e-9)


@pytest.mark.parametrize("crank", CRANKS)
@pytest.mark.parametrize("branch", [1, -1])
def test_slider_crank_stands_where_trigonometry_puts_it(crank: float, branch: int) -> None:
    robot, rng = tables.build(m.slider_crank()), np.random.default_rng(52)
    exact = m.slider_crank_q(crank, branch)
    guess = hand.angles(robot, exact) + rng.uniform(-0.1, 0.1, 3)
    q = pl.assemble(robot, guess, fixed={"crank": exact["crank"]})
    assert hand.at(robot, q, "slide") == pytest.approx(exact["slide"], abs=1e-9)
    assert np.cos(hand.at(robot, q, "rod") - exact["rod"]) == pytest.approx(1, abs=1e-15)


def test_cardan_shafts_in_phase_turn_alike_and_the_middle_one_does_not() -> None:
    """Hooke's joint: tan(middle) = tan(input) cos(bend), undone by the second one."""
    robot = tables.build(m.double_cardan())
    q = robot.neutral
    along = m.planar(m.BEND)
    for angle in (0.3, 0.7, 1.1, 1.4):
        q = pl.assemble(robot, q, fixed={"input": angle})
        assert hand.at(robot, q, "output") == pytest.approx(angle, abs=1e-9)
        # The pin on the middle shaft, which started across it and in the plane of the shafts.
        pin_axis = robot.placement(q, "middle").rotation @ np.cross(along, m.Y)
        middle = np.arctan2(pin_axis @ np.cross(along, np.cross(along, m.Y)),
                            pin_axis @ np.cross(along, m.Y))  # fmt: skip
        assert np.tan(middle) == pytest.approx(np.tan(angle) * np.cos(m.BEND), abs=1e-8)
        assert abs(middle - angle) > 0.01


def test_screw_jack_moves_by_its_pitch_over_many_turns() -> None:
    robot = tables.build(m.screw_jack())
    for angle in (0.5, -2.0, 40.0):
        # The nut does not turn: a positive turn of the shaft inside it draws it back.
        exact = -m.PITCH * angle
        q = pl.assemble(robot, [0.0, exact + 0.02], fixed={"shaft": angle})
        assert hand.at(robot, q, "nut") == pytest.approx(exact, abs=1e-9)


def test_gear_turns_with_ratio_and_offset() -> None:
    robot = tables.build(m.gear_pair())
    q = pl.assemble(robot, fixed={"pinion": 2.0})
    assert hand.at(robot, q, "wheel") == pytest.approx(-0.25 * 2.0 + 0.3, abs=1e-12)


# -- what is given --------------------------------------------------------------------------


def awkward() -> pl.Mechanism:
    """Ball, circle and free joints in a loop, where rounding could creep into given values."""
    rng = np.random.default_rng(53)
    spots = [hand.random_se3(rng, 0.5) for _ in range(10)]
    joints = (
        Joint("ball", make_pair("spherical"), GROUND, "a", spots[0], spots[1]),
        Joint("hinge", make_pair("revolute"), "a", "b", spots[2], spots[3], coordinates="circle"),
        Joint("fly", make_pair("free"), GROUND, "c", spots[4], spots[5], coordinates="SO3xR3"),
        Joint("slide", make_pair("prismatic"), "c", "d", spots[6], spots[7]),
        Joint("close", make_pair("point_on_plane"), "b", "d", spots[8], spots[9], cut=True),
    )
    return build(Description("awkward", tuple(tables.described(name) for name in "abcd"), joints))


def test_fixed_values_are_kept_to_the_last_bit() -> None:
    robot, rng = awkward(), np.random.default_rng(54)
    for _ in range(20):
        turns = rng.normal(size=(2, 4))
        turns /= np.linalg.norm(turns, axis=1)[:, None]
        angle = rng.uniform(-9, 9)
        q = pl.assemble(robot, hand.random_q(robot, rng), {"ball": turns[0], "hinge": angle})
        assert hand.is_closed(robot, q)
        np.testing.assert_array_equal(q[robot.coordinates("ball").q], turns[0])
        circle = [np.cos(angle), np.sin(angle)]
        np.testing.assert_array_equal(q[robot.coordinates("hinge").q], circle)
        flight = np.r_[rng.uniform(-1, 1, 3), turns[1]]
        q = pl.assemble(robot, hand.random_q(robot, rng), {"fly": flight})
        assert hand.is_closed(robot, q)
        np.testing.assert_array_equal(q[robot.coordinates("fly").q], flight)
    bar = tables.build(m.four_bar())
    for angle in rng.uniform(-3, 3, 20):
        assert hand.at(bar, pl.assemble(bar, fixed={"crank": angle}), "crank") == angle


def test_array_guess_chooses_the_branch_near_it_and_is_left_alone() -> None:
    robot = tables.build(m.four_bar())
    for branch in (1, -1):
        exact = hand.angles(robot, m.four_bar_q(1.2, branch))
        guess = exact + np.array([0.05, -0.08, 0.06])
        kept = guess.copy()
        q = pl.assemble(robot, guess)
        np.testing.assert_array_equal(guess, kept)
        assert hand.is_closed(robot, q)
        assert np.linalg.norm(q - guess) < np.linalg.norm(exact - guess) * 1.05, "a step too far"
        assert np.linalg.norm(q - exact) < 0.3


def test_closed_guess_is_returned_as_it_is() -> None:
    robot = tables.build(m.rssr())
    q = pl.assemble(robot, fixed={"crank": -0.4})
    np.testing.assert_allclose(pl.assemble(robot, q), q, atol=1e-10)
    np.testing.assert_array_equal(pl.assemble(tables.build(m.parallelogram())), np.zeros(3))


def test_dict_guess_is_kept_where_the_loops_close_with_it() -> None:
    robot = tables.build(m.five_bar())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        q = pl.assemble(robot, {"m1": 0.3, "m2": -0.2})
    assert hand.is_closed(robot, q)
    assert (hand.at(robot, q, "m1"), hand.at(robot, q, "m2")) == (0.3, -0.2)


def test_dict_guess_that_the_loops_do_not_allow_becomes_the_nearest_one() -> None:
    """A four-bar has one freedom: the nearest pose is searched along its branch."""
    robot = tables.build(m.four_bar())
    exact = m.four_bar_q(1.5)
    guess = {"crank": exact["crank"], "rocker": exact["rocker"] + 0.1}
    with pytest.warns(pl.PinloopWarning, match=r"four-bar.*'rocker' is at .* instead of") as caught:
        q = pl.assemble(robot, guess)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert "the loops allow no nearer ones" in str(caught[0].message)
    assert hand.is_closed(robot, q)
    poses = [m.four_bar_q(crank) for crank in np.linspace(1.3, 1.7, 4001)]
    missed = [sum((pose[name] - guess[name]) ** 2 for name in guess) for pose in poses]
    nearest = poses[int(np.argmin(missed))]
    assert hand.at(robot, q, "crank") == pytest.approx(nearest["crank"], abs=2e-4)
    assert hand.at(robot, q, "rocker") == pytest.approx(nearest["rocker"], abs=2e-4)


def test_what_is_fixed_stays_and_only_the_guess_gives_way() -> None:
    robot = tables.build(m.four_bar())
    with pytest.warns(pl.PinloopWarning, match=r"nearest: 'rocker' is at [-\d.]* instead of 0\.5;"):
        q = pl.assemble(robot, {"rocker": 0.5, "crank": 9.0}, {"crank": 0.7})
    assert hand.at(robot, q, "crank") == 0.7


PALLETIZER = Path(__file__).parents[2] / "urdf" / "palletizer.urdf"


def test_limits_that_block_are_named_and_the_nearest_values_are_a_projection() -> None:
    """The palletizer's rods only let ``shoulder - elbow`` reach 1.309 rad: a strip in the plane."""
    robot = pl.load(PALLETIZER)
    rng = np.random.default_rng(55)
    blocked = 0
    for shoulder, elbow in rng.uniform((1.1, -0.34), (1.39, 0.0), size=(20, 2)):
        excess = max(0.0, (shoulder - elbow - 1.309) / 2)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            q = pl.assemble(robot, {"shoulder": shoulder, "elbow": elbow})
        assert hand.at(robot, q, "shoulder") == pytest.approx(shoulder - excess, abs=1e-7)
        assert hand.at(robot, q, "elbow") == pytest.approx(elbow + excess, abs=1e-7)
        assert len(caught) == (excess > 0)
        for warning in caught:
            assert "limits of 'drive_rod_hinge', 'forearm_hinge'" in str(warning.message)
            blocked += 1
    assert 5 < blocked < 20


@pytest.mark.parametrize("how", ["guess", "fixed"])
def test_motors_that_are_not_named_stay_where_they_are(how: str) -> None:
    robot = pl.load(PALLETIZER)
    for value in (-0.2, 0.3, 0.5, 0.9):
        q = pl.assemble(robot, **{how: {"elbow": value}})  # type: ignore[arg-type]
        assert [hand.at(robot, q, name) for name in robot.actuated] == [
            value if name == "elbow" else 0.0 for name in robot.actuated
        ]
    # The shoulder has to follow where the rods would pass their limits, by as little as will do.
    q = pl.assemble(robot, **{how: {"elbow": 1.35}})  # type: ignore[arg-type]
    assert hand.at(robot, q, "elbow") == 1.35
    assert hand.at(robot, q, "shoulder") == pytest.approx(1.35 - 1.309, abs=1e-7)
    assert hand.at(robot, q, "base_yaw") == pytest.approx(0.0, abs=1e-9)


def test_what_cannot_be_closed_is_shown_from_the_start_of_the_search() -> None:
    robot = pl.load(PALLETIZER)
    with pytest.raises(pl.LoopNotClosed) as caught:
        pl.assemble(robot, fixed={"shoulder": 1.3, "elbow": -0.34})
    assert caught.value.blocked_by == ("drive_rod_hinge", "forearm_hinge")
    assert hand.at(robot, caught.value.q, "base_yaw") == 0.0
    assert hand.at(robot, caught.value.q, "wrist") == 0.0


def test_limits_are_respected_unless_switched_off() -> None:
    exact = m.four_bar_q(2.0)
    low, high = exact["rocker"] - 0.05, exact["rocker"] + 0.05
    robot = tables.limited(m.four_bar(), rocker=(low, high), crank=(-4.0, 4.0))
    for guess in (None, hand.angles(robot, m.four_bar_q(0.3)), {"elbow": 0.2}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pl.PinloopWarning)
            q = pl.assemble(robot, guess)
        assert hand.is_closed(robot, q)
        assert low <= hand.at(robot, q, "rocker") <= high
        assert -4 <= hand.at(robot, q, "crank") <= 4
    outside = hand.angles(robot, m.four_bar_q(0.3))
    np.testing.assert_allclose(pl.assemble(robot, outside, limits=False), outside, atol=1e-9)


def test_a_fixed_value_beyond_its_limit_is_refused() -> None:
    robot = tables.limited(m.four_bar(), crank=(-0.5, 0.5))
    with pytest.raises(pl.BadValue, match=r"'crank' is set to 0.6, outside .*\[-0.5, 0.5\]"):
        pl.assemble(robot, fixed={"crank": 0.6})
    assert hand.at(robot, pl.assemble(robot, fixed={"crank": 0.6}, limits=False), "crank") == 0.6
    assert hand.at(robot, pl.assemble(robot, fixed={"crank": 0.5}), "crank") == 0.5


def test_names_and_values_that_do_not_exist_are_refused() -> None:
    robot = tables.build(m.four_bar())
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
def test_inverse_kinematics_reaches_every_reachable_pose(
    entries: Callable[[], tables.Table],
) -> None:
    robot, rng = tables.build(entries()), np.random.default_rng(55)
    tip = robot.bodies[-1]
    for _ in range(8):
        pose = robot.placement(hand.random_q(robot, rng, 1.5), tip)
        q = pl.assemble(robot, 0.3 + robot.neutral if robot.nq == robot.nv else None,
                        targets={tip: pose})  # fmt: skip
        np.testing.assert_allclose(robot.placement(q, tip).homogeneous, pose.homogeneous, atol=1e-9)


def test_targets_on_a_loop_close_the_loop_too_and_leave_fixed_joints() -> None:
    robot = tables.build(m.five_bar())
    aim = pl.assemble(robot, fixed={"m1": 0.4, "m2": -0.3})
    pose = robot.placement(aim, "r2")
    q = pl.assemble(robot, targets={"r2": pose})
    assert hand.is_closed(robot, q)
    np.testing.assert_allclose(robot.placement(q, "r2").homogeneous, pose.homogeneous, atol=1e-9)
    q = pl.assemble(robot, fixed={"m1": 0.4}, targets={"r2": pose})
    assert hand.at(robot, q, "m1") == 0.4
    assert hand.at(robot, q, "m2") == pytest.approx(-0.3, abs=1e-8)


def test_two_targets_at_once() -> None:
    robot = tables.build(m.arm_6r())
    aim = np.array([0.3, -0.5, 0.8, 0.2, 0.6, -0.4])
    poses = {name: robot.placement(aim, name) for name in ("b4", "b6")}
    np.testing.assert_allclose(pl.assemble(robot, targets=poses), aim, atol=1e-8)


def test_target_out_of_reach_is_named_with_how_far_it_is_missed() -> None:
    robot = tables.build(m.planar_3r())
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
    bystander = tables.joint("aside", "revolute", GROUND, "aside", [0, 3, 0], m.Y)
    robot = tables.build(tables.table("over", bystander, *entries["joints"]))
    exact = m.four_bar_q(2.5)
    fixed = {"aside": 1.0, "crank": exact["crank"], "rocker": exact["rocker"] + 0.2}
    with pytest.raises(pl.LoopNotClosed, match=r"too much is fixed.*'crank' is released") as caught:
        pl.assemble(robot, fixed=fixed)
    assert caught.value.blocked_by == ("crank",)
    for name, value in fixed.items():
        assert hand.at(robot, caught.value.q, name) == value
    gap = np.linalg.norm(pl.Constraints(robot).residual(caught.value.q))
    assert caught.value.residuals == {"close": pytest.approx(gap)}
    fixed |= {"elbow": 0.0}
    with pytest.raises(pl.LoopNotClosed, match="too much is fixed") as caught:
        pl.assemble(robot, fixed=fixed)
    assert set(caught.value.blocked_by) == set(fixed)


def test_blocking_limits_are_named() -> None:
    rocker = m.four_bar_q(2.5)["rocker"]
    robot = tables.limited(m.four_bar(), crank=(-0.1, 0.1), elbow=(-7.0, 7.0))
    with pytest.raises(pl.LoopNotClosed, match=r"limits block it \('crank'\)") as caught:
        pl.assemble(robot, fixed={"rocker": rocker})
    assert caught.value.blocked_by == ("crank",)
    assert -0.1 <= hand.at(robot, caught.value.q, "crank") <= 0.1
    assert hand.is_closed(robot, pl.assemble(robot, fixed={"rocker": rocker}, limits=False))


def test_limits_that_the_drawn_pose_passes_are_named_with_its_values() -> None:
    """Closed as drawn, at zero; the limits leave the crank no pose in which the bars meet."""
    robot = tables.limited(m.four_bar(), crank=(0.2, 0.3), rocker=(-0.3, -0.2))
    match = (
        r"as the robot is drawn the loops close, but past the limits of joints "
        r"'crank' \(0, limits 0\.2 to 0\.3\), 'rocker' \(0, limits -0\.3 to -0\.2\)$"
    )
    with pytest.raises(pl.LoopNotClosed, match=match) as caught:
        pl.assemble(robot)
    assert set(caught.value.blocked_by) == {"crank", "rocker"}


def test_loop_that_cannot_close_says_by_how_much_it_stays_open() -> None:
    """A coupler of 3.9 m between bars of 2 m in all: 1.9 m are missing, whatever one does."""
    robot = m.stretched_four_bar(3.0)
    with pytest.raises(pl.LoopNotClosed) as caught:
        pl.assemble(robot)
    error = caught.value
    assert "'close': the revolute pair between 'coupler' and 'rocker' is open by 1.9 m" in str(
        error
    )
    assert "out of reach" in str(error)
    assert error.blocked_by == ()
    assert error.residuals == {"close": pytest.approx(1.9, abs=1e-3)}


@pytest.mark.parametrize("missing", [1e-3, 1e-6, 1e-8])
def test_nearly_closed_is_not_closed(missing: float) -> None:
    """Bars of 2 m in all and a coupler that is longer than that by very little."""
    robot = m.stretched_four_bar(m.GROUND_BAR + m.CRANK + m.ROCKER + missing - m.COUPLER)
    with pytest.raises(pl.LoopNotClosed) as caught:
        pl.assemble(robot, m.START * np.array([-1.0, 0.0, 0.0]))
    assert missing * 0.99 < caught.value.residuals["close"] < missing + 1e-3


def test_coupling_that_cannot_hold_is_named() -> None:
    """No real root: q^2 + 1 = 0."""
    entries = m.gear_pair()
    entries["couplings"] = [{"name": "cam", "polynomials": {"pinion": [1.0, 0.0, 1.0]}}]
    with pytest.raises(pl.LoopNotClosed, match="coupling 'cam' is off by") as caught:
        pl.assemble(tables.build(entries))
    assert caught.value.residuals["cam"] == pytest.approx(1.0, abs=1e-3)


def flag() -> pl.Mechanism:
    """A body on a ball joint, and a hinge along z through the ball's centre."""
    return tables.build(
        tables.table(
            "flag",
            tables.joint("ball", "spherical", GROUND, "flag", [0, 0, 0]),
            tables.joint("hinge", "revolute", GROUND, "flag", [0, 0, 0], m.Z, cut=True),
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


def test_a_single_coordinate_and_none_at_all() -> None:
    door = tables.build(m.door())
    np.testing.assert_array_equal(pl.assemble(door, fixed={"low": 0.7}), [0.7])
    np.testing.assert_allclose(pl.consistent_velocity(door, [0.7], {"low": 2.0}), [2.0])
    pose = door.placement([0.4], "leaf")
    np.testing.assert_allclose(pl.assemble(door, targets={"leaf": pose}), [0.4], atol=1e-9)
    statue = tables.build(
        tables.table("statue", tables.joint("w", "fixed", GROUND, "statue", [0, 0, 0]))
    )
    assert pl.assemble(statue).shape == pl.consistent_velocity(statue, [], {}).shape == (0,)


def test_at_a_limit_is_the_number_itself_or_beyond() -> None:
    low, high = np.array([-1.57] * 5), np.array([1.57] * 5)
    values = np.array([1.57, 1.5708, 1.57 - 1e-12, 1.5695, -1.5701])
    # Beyond by less than the digits of the limit allow is not outside, yet at the limit.
    assert not is_outside(1.5708, -1.57, 1.57)
    assert is_at_limit(values, low, high).tolist() == [True, True, True, False, True]
