"""What varies in a study: ranges by default, ranges that are given, mistakes."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pinloop as pl
from pinloop.safety.studies.space import Variable

from ...states import URDF
from . import wheels

ARM, ARM_BRAKES = "six_axis_arm.urdf", "six_axis_arm.brakes.yaml"


@pytest.fixture(scope="module")
def arm() -> pl.Mechanism:
    return pl.load(URDF / ARM)


@pytest.fixture(scope="module")
def brakes() -> pl.Brakes:
    return pl.Brakes.from_yaml(URDF / ARM_BRAKES)


def table(
    space: pl.safety.Space, robot: pl.Mechanism, brakes: pl.Brakes
) -> dict[str, tuple[float, ...]]:
    return {one.column: (one.low, one.high) for one in space.variables(robot, brakes)}


def motion(robot: pl.Mechanism, end: float = 2.0) -> pl.safety.JointTrajectory:
    t = np.linspace(0.0, end, 21)
    return pl.safety.JointTrajectory(
        robot.actuated, t, 0.3 * np.sin(2 * t)[:, None] * np.ones(len(robot.actuated))
    )


def test_all_poses_and_speeds_by_default(arm: pl.Mechanism, brakes: pl.Brakes) -> None:
    found = table(pl.safety.Space(), arm, brakes)
    model = arm.model
    assert list(found)[:2] == ["joint_1_pose_rad", "joint_2_pose_rad"]
    assert len(found) == 12
    for k in range(6):
        name = f"joint_{k + 1}"
        limits = (model.lowerPositionLimit[k], model.upperPositionLimit[k])
        assert found[f"{name}_pose_rad"] == limits
        top = model.upperVelocityLimit[k]
        assert found[f"{name}_speed_rad_per_s"] == (-top, top)


def test_parts_of_speed_limits_and_speeds_of_joints(arm: pl.Mechanism, brakes: pl.Brakes) -> None:
    top = arm.model.upperVelocityLimit
    part = table(pl.safety.Space(speed=(0.33, 1.0)), arm, brakes)
    assert part["joint_3_speed_rad_per_s"] == pytest.approx((0.33 * top[2], top[2]))
    assert table(pl.safety.Space(speed=0.5), arm, brakes)[
        "joint_1_speed_rad_per_s"
    ] == pytest.approx((0.5 * top[0], 0.5 * top[0]))
    single = table(pl.safety.Space(speed={"joint_2": (0, 1), "joint_3": 0.0}), arm, brakes)
    assert single["joint_2_speed_rad_per_s"] == (0.0, 1.0)
    assert single["joint_3_speed_rad_per_s"] == (0.0, 0.0)
    assert single["joint_1_speed_rad_per_s"] == (-top[0], top[0])


def test_the_other_variables(arm: pl.Mechanism, brakes: pl.Brakes) -> None:
    space = pl.safety.Space(
        pose={"joint_1": np.float32(0.5)},  # type: ignore[dict-item]
        payload=(np.int64(0), 10),  # type: ignore[arg-type]
        delay={"joint_4": (0, 0.02)},
        band=(-1, 0.5),
    )
    found = table(space, arm, brakes)
    assert found["joint_1_pose_rad"] == (0.5, 0.5)
    assert found["payload_kg"] == (0.0, 10.0)
    assert found["joint_4_delay_s"] == (0.0, 0.02)
    assert [name for name in found if name.endswith("band")] == [
        f"joint_{k}_band" for k in range(1, 7)
    ]
    assert found["joint_6_band"] == (-1.0, 0.5)
    names = [one.name for one in space.variables(arm, brakes)]
    assert names[12:14] == ["payload", "delay.joint_4"]
    few = table(pl.safety.Space(band={"joint_2": (0, 1)}), arm, brakes)
    assert [name for name in few if name.endswith("band")] == ["joint_2_band"]


def test_a_band_for_all_leaves_out_joints_without_a_brake(
    arm: pl.Mechanism, brakes: pl.Brakes
) -> None:
    found = table(pl.safety.Space(band=(-1, 1)), arm, brakes.missing("joint_2"))
    assert "joint_2_band" not in found and "joint_1_band" in found


def test_sliding_joints_are_in_metres() -> None:
    found = table(wheels.CARRIAGES_SPACE, wheels.carriages(), wheels.CARRIAGES_BRAKES)
    assert found["a_speed_m_per_s"] == (0.5, 2.0)
    assert found["b_pose_m"] == (0.0, 0.0)


def test_a_wheel_without_limits_turns_once() -> None:
    found = table(wheels.SPACE, wheels.robot(), wheels.BRAKES)
    assert found["axis_pose_rad"] == (-np.pi, np.pi)


def test_of_a_robot_with_loops_only_its_motors_vary() -> None:
    robot = pl.load(URDF / "palletizer.urdf")
    found = table(pl.safety.Space(), robot, pl.Brakes.from_yaml(URDF / "palletizer.brakes.yaml"))
    assert [name for name in found if "_pose_" in name] == [
        f"{name}_pose_rad" for name in robot.actuated
    ]


def test_instants_leave_time_for_the_reaction(arm: pl.Mechanism, brakes: pl.Brakes) -> None:
    # 5 + 10 ms until the command, 5 ms more until the drives are off.
    found = table(pl.safety.Space(motion=motion(arm)), arm, brakes)
    assert list(found) == ["instant_s"] and found["instant_s"] == pytest.approx((0.0, 1.98))
    single = table(pl.safety.Space(motion=motion(arm), instant=0.5), arm, brakes)
    assert single == {"instant_s": (0.5, 0.5)}
    slow = pl.safety.Chain(sensor=0.5, controller=0.25, drive_off=0.25)
    (one,) = pl.safety.Space(motion=motion(arm)).variables(arm, brakes, slow)
    assert one.high == pytest.approx(1.0)


def test_ends_of_a_range_are_exact() -> None:
    rng = np.random.default_rng(4)
    for low, high in np.sort(rng.normal(size=(200, 2)), axis=1).tolist():
        variable = Variable("payload", "", low, high, "kg")
        assert (variable.at(0.0), variable.at(1.0)) == (low, high)
        inner = [variable.at(share) for share in rng.random(20)]
        assert low <= min(inner) and max(inner) <= high
        assert variable.at(0.25) == pytest.approx(low + 0.25 * (high - low))


BAD: list[tuple[dict[str, Any], type[pl.PinloopError], str]] = [
    ({"pose": {"joint_9": 0.0}}, pl.UnknownName, "no joint 'joint_9' in robot 'six_axis_arm'"),
    ({"speed": {"joint_9": 0.0}}, pl.UnknownName, "no joint 'joint_9'"),
    ({"delay": {"joint_9": 0.0}}, pl.UnknownName, "no brake of joint 'joint_9'"),
    ({"band": {"joint_9": 0.0}}, pl.UnknownName, "no brake of joint 'joint_9'"),
    ({"pose": {"joint_1": (1, 0)}}, pl.BadValue, "pose of 'joint_1' goes from 1 to 0"),
    ({"pose": {"joint_1": (0, np.inf)}}, pl.BadValue, "give finite ends in order"),
    ({"pose": {"joint_1": np.nan}}, pl.BadValue, "give finite ends in order"),
    ({"pose": {"joint_1": "12"}}, pl.BadValue, r"is '12'; give a number or \(low, high\)"),
    ({"pose": {"joint_1": (1, 2, 3)}}, pl.BadValue, r"give a number or \(low, high\)"),
    ({"pose": {"joint_1": True}}, pl.BadValue, r"give a number or \(low, high\)"),
    ({"pose": {"joint_1": (0, True)}}, pl.BadValue, r"give a number or \(low, high\)"),
    ({"payload": (-1, 2)}, pl.BadValue, "payload is -1; it cannot be negative"),
    ({"delay": {"joint_1": -0.1}}, pl.BadValue, "delay of 'joint_1' is -0.1"),
    ({"band": {"joint_1": (-1, 1.5)}}, pl.BadValue, r"within -1 and 1"),
    ({"band": -1.5}, pl.BadValue, r"is -1.5; it must be within -1 and 1"),
    ({"instant": 0.5}, pl.BadValue, "instant is given without a motion"),
]


@pytest.mark.parametrize(("words", "error", "match"), BAD)
def test_mistakes(
    arm: pl.Mechanism,
    brakes: pl.Brakes,
    words: dict[str, Any],
    error: type[pl.PinloopError],
    match: str,
) -> None:
    with pytest.raises(error, match=match):
        pl.safety.Space(**words).variables(arm, brakes)


@pytest.mark.parametrize(
    ("words", "match"),
    [
        ({"pose": {"joint_1": 0.0}}, "give either poses and speeds or a motion"),
        ({"speed": 0.5}, "give either poses and speeds or a motion"),
        ({"instant": (-0.1, 1.0)}, "from -0.1 to 1 s need the motion from there until 0.02 s"),
        ({"instant": (0.0, 1.99)}, "it goes from 0 to 2 s"),
    ],
)
def test_mistakes_with_a_motion(
    arm: pl.Mechanism, brakes: pl.Brakes, words: dict[str, Any], match: str
) -> None:
    with pytest.raises(pl.BadValue, match=match):
        pl.safety.Space(motion=motion(arm), **words).variables(arm, brakes)


def test_a_motion_that_is_shorter_than_the_reaction(arm: pl.Mechanism, brakes: pl.Brakes) -> None:
    with pytest.raises(pl.BadValue, match=r"a motion of 0\.01 s is too short.*for 0\.02 s after"):
        pl.safety.Space(motion=motion(arm, 0.01)).variables(arm, brakes)


def test_joints_that_are_not_driven() -> None:
    robot = pl.load(URDF / "palletizer.urdf")
    brakes = pl.Brakes.from_yaml(URDF / "palletizer.brakes.yaml")
    passive = next(name for name in robot.joints if name not in robot.actuated)
    with pytest.raises(pl.BadValue, match=f"pose names joint '{passive}', which is not driven"):
        pl.safety.Space(pose={passive: 0.0}).variables(robot, brakes)


def test_what_has_no_limits_must_be_said() -> None:
    with pytest.raises(pl.BadValue, match=r"'axis' of robot .* has no velocity limit; give speed="):
        pl.safety.Space().variables(wheels.robot(), wheels.BRAKES)
    with pytest.raises(pl.BadValue, match=r"'a' of robot .* slides without position limits"):
        pl.safety.Space(speed={"a": 1.0, "b": 1.0}).variables(
            wheels.carriages(), wheels.CARRIAGES_BRAKES
        )


@pytest.mark.parametrize("words", [{"delay": {"axis": 0.1}}, {"band": {"axis": 1.0}}])
def test_a_joint_without_a_brake_has_neither_delay_nor_band(words: dict[str, Any]) -> None:
    bare = wheels.BRAKES.missing("axis")
    space = replace(wheels.SPACE, **({"delay": {}, "band": {}} | words))
    with pytest.raises(pl.BadValue, match=re.escape("joint 'axis' has no brake whose")):
        space.variables(wheels.robot(), bare)
