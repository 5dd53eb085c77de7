"""Tests of `pinloop.safety.standards.extension`: poses that other formulas say are right.

Distances come from Pinocchio's placements or from plain geometry, the best of many poses from brute
force; nothing here asks the code that found a pose.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

import pinloop as pl
from pinloop.constraints.closure import Constraints
from pinloop.safety.standards.annexb import annex_b
from pinloop.safety.standards.extension import Extension, Finder
from pinloop.safety.standards.posture import Driven, Point

from ...screw_tables import Array, joint
from ...states import URDF, robot
from ..stopping.robots_to_stop import X, Y, Z, made, solid
from ..studies.arms_to_declare import (
    THIRDS,
    TIP,
    arm_by_hand,
    limits,
    poses,
    three_links,
    two_links,
)

# -- arms of a few numbers ----------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.33, 0.66, 0.95])
def test_two_links_by_the_law_of_cosines(share: float) -> None:
    found = poses(two_links(), "j1", TIP, (share,))
    assert found.largest == pytest.approx(1.1, rel=1e-6)
    # The least distance at the limit of the second joint.
    assert found.least == pytest.approx(np.sqrt(0.61 + 0.6 * np.cos(2.5)), rel=1e-4)
    pose = found.poses[share]
    fold = math.acos(((1.1 * share) ** 2 - 0.61) / 0.6)
    assert abs(pose.joints["j2"]) == pytest.approx(fold, abs=1e-4)
    assert pose.reached == pytest.approx(share, abs=1e-6)
    # The tip is level with the axis, the elbow above it.
    x, z = arm_by_hand(pose.q)
    assert z[1] == pytest.approx(0, abs=2e-3) and z[0] > 0
    assert pose.fall == pytest.approx(1, abs=1e-5)
    assert pose.direction == (-1.0 if x[1] > 0 else 1.0)


def test_shares_that_cannot_be_are_left_out() -> None:
    found = poses(two_links(second=(-1.0, 1.0)), "j1", TIP)
    assert list(found.poses) == [1.0]
    assert found.least == pytest.approx(np.sqrt(0.61 + 0.6 * np.cos(1.0)), rel=1e-4)


def test_gravity_says_where_down_is() -> None:
    """With gravity along +x the links hang out along z or -z."""
    sideways = Point("lower", np.array([1.1, 0, 0]), X)
    pose = poses(two_links(), "j1", sideways).poses[1.0]
    x, z = arm_by_hand(pose.q)
    assert x[1] == pytest.approx(0, abs=2e-3) and abs(z[1]) == pytest.approx(1.1, abs=1e-5)
    # The tip moves along gravity: d x / d q1 = -z.
    assert pose.direction * -z[1] > 0
    still = poses(two_links(), "j1", Point("lower", np.array([1.1, 0, 0]), 0 * Z))
    assert still.poses[1.0].motion == "horizontally"


def test_the_nearest_of_many_poses() -> None:
    """Of all folds with an extension that whose joints go the shortest way, in shares of ranges."""
    point = Point("c", np.array([1.4, 0, 0]), -Z)
    found = poses(three_links(Z), "j1", point, (0.7, 1.0))
    full, pose = found.poses[1.0], found.poses[0.7]
    assert full.q == pytest.approx([0, 0, 0], abs=1e-3)
    second, third = np.meshgrid(np.linspace(-2.5, 2.5, 1501), np.linspace(-1.5, 2.0, 1501))
    reach = abs(0.6 + 0.5 * np.exp(1j * second) + 0.3 * np.exp(1j * (second + third)))
    way = (second / 5.0) ** 2 + (third / 3.5) ** 2
    least = np.min(way[abs(reach - 0.98) < 1e-3])
    assert (pose.q[1] / 5.0) ** 2 + (pose.q[2] / 3.5) ** 2 == pytest.approx(least, rel=0.01)
    assert pose.q[0] == pytest.approx(0, abs=1e-6)


def test_joints_that_carry_the_axis_stay() -> None:
    found = poses(three_links(-Y), "j2", Point("c", np.array([1.4, 0, 0]), -Z), (0.8, 1.0))
    assert found.varied == ("j2", "j3")
    for share, pose in found.poses.items():
        assert pose.q[0] == pytest.approx(0, abs=1e-3)
        second, both = pose.q[1], pose.q[1] + pose.q[2]
        tip = 0.5 * np.exp(1j * second) + 0.3 * np.exp(1j * both)
        assert [tip.real, tip.imag] == pytest.approx([0.8 * share, 0], abs=2e-3)


def test_the_arm_is_stretched_out_for_the_first_axis_that_falls() -> None:
    """A yaw beside the arm: straight out from the second axis, askew from the first."""
    places = ([0, 0, 0], [0, 0, 0], [0.6, 0.3, 0], [1.1, 0.3, 0])
    names = ("ground", "a", "b", "c", "d")
    crooked = made(
        [solid(name, 2.0, [0.3 * k, 0, 0]) for k, name in enumerate(names[1:])],
        [
            joint(f"j{k + 1}", "revolute", names[k], names[k + 1], places[k], axis, **limits(-2, 2))
            for k, axis in enumerate((Z, -Y, Z, -Y))
        ],
    )
    finder = Finder(crooked, crooked.actuated, Point("d", np.array([1.3, 0.3, 0]), -Z))
    askew = math.atan2(0.3, 0.6)
    assert finder.extended("j1").q[2] == pytest.approx(askew, abs=2e-3)
    for axis in ("j2", "j4"):
        assert finder.extended(axis).q[1:] == pytest.approx([0, 0, 0], abs=2e-3)


@pytest.mark.parametrize(
    ("name", "axis"),
    [("six_axis_arm", "joint_1"), ("six_axis_arm", "joint_3"), ("palletizer", "shoulder"),
     ("delta", "arm_2")],
)  # fmt: skip
def test_slopes_are_those_of_differences(name: str, axis: str) -> None:
    arm = robot(name)
    names = tuple(arm.actuated)
    point, start = np.array([0.2, 0.1, 0.15]), pl.assemble(arm)
    driven = Driven(arm, names, axis, Point("tool0", point, -Z), start)
    here = driven.values + np.linspace(0.1, 0.3, len(names))
    assert driven.go(here)
    distance, fall = driven.distance_slopes(), driven.fall_slopes()
    for k in range(len(names)):
        ends = []
        for h in (1e-5, -1e-5):
            assert driven.go(here + h * np.eye(len(names))[k])
            ends.append(driven.lever())
        assert distance[k] == pytest.approx((ends[0].distance - ends[1].distance) / 2e-5, abs=1e-5)
        assert fall[k] == pytest.approx((ends[0].fall - ends[1].fall) / 2e-5, abs=1e-4)


@cache
def six_axis() -> tuple[pl.Mechanism, dict[str, Extension]]:
    arm = robot("six_axis_arm")
    finder = Finder(arm, arm.actuated, Point("tool0", np.array([0, 0, 0.1]), -Z))
    axes = ("joint_1", "joint_2", "joint_3")
    return arm, {axis: finder.extension(axis, THIRDS) for axis in axes}


def tool(arm: pl.Mechanism, q: Array) -> Array:
    return np.asarray(arm.placement(q, "tool0").act(np.array([0, 0, 0.1])))


def from_axis(arm: pl.Mechanism, q: Array, axis: str) -> float:
    """Distance of the tool from the line of an axis: z of joint 1, y of joints 2 and 3."""
    seat = arm.placement(q, axis)
    local = seat.actInv(tool(arm, q))
    keep = [0, 1] if axis == "joint_1" else [0, 2]
    return float(np.linalg.norm(local[keep]))


@pytest.mark.parametrize("axis", ["joint_1", "joint_2", "joint_3"])
def test_poses_of_an_arm_have_their_extension(axis: str) -> None:
    arm, found = six_axis()
    extension = found[axis]
    for share, pose in extension.poses.items():
        assert from_axis(arm, pose.q, axis) == pytest.approx(share * extension.largest, rel=1e-5)
        assert np.all(pose.q >= arm.model.lowerPositionLimit - 1e-9)
        assert np.all(pose.q <= arm.model.upperPositionLimit + 1e-9)
        h = 1e-6 * pose.direction
        there = pose.q + h * arm.velocity({axis: 1.0})
        moved = (tool(arm, there) - tool(arm, pose.q)) / 1e-6
        steep = -moved[2] / np.linalg.norm(moved)
        assert steep == pytest.approx(0.0 if axis == "joint_1" else 1.0, abs=1e-3)
    assert sorted(extension.poses) == ([1.0] if axis == "joint_3" else list(THIRDS))


def test_no_pose_of_an_arm_is_farther_out_or_in() -> None:
    arm, found = six_axis()
    rng, model = np.random.default_rng(3), arm.model
    # Upper arm, forearm, wrist and payload in line: 0.825 + 0.625 + 0.21 + 0.1 m.
    assert found["joint_2"].largest == pytest.approx(1.76, abs=1e-6)
    assert found["joint_3"].largest == pytest.approx(1.135, abs=1e-3)
    for _ in range(500):
        q = rng.uniform(model.lowerPositionLimit, model.upperPositionLimit)
        for axis, extension in found.items():
            assert extension.least - 1e-6 <= from_axis(arm, q, axis) <= extension.largest + 1e-6


def test_the_arm_is_stretched_out_and_level() -> None:
    arm, found = six_axis()
    second, third = found["joint_2"].poses[1.0], found["joint_3"].poses[1.0]
    assert third.joints == pytest.approx(second.joints, abs=2e-3)
    for q in (second.q, third.q):
        heights = [arm.placement(q, f"joint_{k}").translation[2] for k in (2, 3, 5)]
        assert [*heights, tool(arm, q)[2]] == pytest.approx([heights[0]] * 4, abs=3e-3)
    # Joints that carry the axis stay; in the folded poses the elbow is up.
    folded = found["joint_1"].poses[0.33]
    assert arm.placement(folded.q, "joint_3").translation[2] > 0.9


def test_a_palletizer_with_its_loops() -> None:
    arm = robot("palletizer")
    found = annex_b(
        arm, URDF / "palletizer.brakes.yaml", payload=60.0, axes=("shoulder",), categories=(0,)
    )
    (stop,) = found.stops
    assert stop.outcome == "stopped"
    yaw = poses(arm, "base_yaw", Point("tool0", np.zeros(3), -Z), (0.4, 1.0))
    low, high = (
        np.asarray(x) for x in (arm.model.lowerPositionLimit, arm.model.upperPositionLimit)
    )
    for extension in (found.extensions["shoulder"], yaw):
        for share, pose in extension.poses.items():
            assert np.linalg.norm(Constraints(arm, full=True).residual(pose.q)) < 1e-9
            assert np.all((pose.q >= low - 1e-5) & (pose.q <= high + 1e-5))
            axis = arm.placement(pose.q, extension.axis)
            place = axis.actInv(arm.placement(pose.q, "tool0").translation)
            across = place[[0, 1]] if extension is yaw else place[[0, 2]]
            assert np.linalg.norm(across) == pytest.approx(share * extension.largest, rel=1e-5)
    assert yaw.poses[1.0].motion == "horizontally"
    # The hinge of the forearm, which no motor drives, has the room as well as the axis.
    assert found.extensions["shoulder"].room >= stop.distance and stop.passed == ()
    end = stop.pose.joints["shoulder"] + stop.distance
    q = pl.assemble(arm, fixed={**stop.pose.joints, "shoulder": end})
    assert np.all((q >= low - 1e-6) & (q <= high + 1e-6))
