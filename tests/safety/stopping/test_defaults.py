"""What is taken where nothing is said: poses inside limits, speeds that loops allow, brakes."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import pinloop as pl
from pinloop.safety.stopping.defaults import (
    brakes_beside,
    default_brakes,
    default_pose,
    default_velocity,
)

from ...fourbar_files import fourbar
from .robots_to_stop import carriages, pendulum, wheel

URDF = Path(__file__).parents[3] / "urdf"
ROBOTS = sorted(path.stem for path in URDF.glob("*.urdf"))


def closed(robot: pl.Mechanism, q: np.ndarray) -> float:
    return float(np.abs(pl.Constraints(robot, full=True).residual(q)).max(initial=0.0))


# -- pose -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ROBOTS)
def test_every_shipped_robot_has_a_pose_and_a_speed(name: str) -> None:
    robot = pl.load(URDF / f"{name}.urdf")
    q, said = default_pose(robot)
    assert closed(robot, q) < 1e-9 and "zero" in said
    assert np.all(robot.model.lowerPositionLimit <= q + 1e-12)
    assert np.all(robot.model.upperPositionLimit >= q - 1e-12)
    if name == "spherical_threebar":  # nothing but ball joints
        with pytest.raises(pl.BadValue, match="no actuated joint with one degree of freedom"):
            default_velocity(robot, q)
        return
    v, said = default_velocity(robot, q)
    constraints = pl.Constraints(robot, full=True)
    size = max(1.0, float(np.abs(v).max()))
    assert np.abs(constraints.jacobian(q) @ v).max(initial=0.0) < 1e-7 * size
    limit = robot.model.upperVelocityLimit
    known = np.isfinite(limit) & (limit > 0)
    ratio = np.abs(v[known]) / limit[known]
    assert ratio.max() == pytest.approx(1.0) and "100 %" in said


def test_a_pose_keeps_away_from_limits() -> None:
    """Ranges of 2 with a margin of 0.2 on both sides."""
    robot = pl.load(URDF / "planar_3r.urdf")
    model = robot.model
    for k, (low, high) in enumerate([(0.5, 2.5), (-3.0, -1.0), (-1.0, 1.0)]):
        model.lowerPositionLimit[k], model.upperPositionLimit[k] = low, high
    np.testing.assert_allclose(default_pose(robot)[0], [0.7, -1.2, 0.0], atol=1e-12)
    model.upperPositionLimit[0] = np.inf  # half a line has no range to take a part of
    assert default_pose(robot)[0][0] == pytest.approx(0.5)


def test_what_is_given_stays() -> None:
    robot = pl.load(URDF / "palletizer.urdf")
    q, said = default_pose(robot, {"shoulder": [0.4], "base_yaw": [-0.2]})
    assert closed(robot, q) < 1e-9
    assert q[robot.coordinates("shoulder").q][0] == 0.4
    assert q[robot.coordinates("base_yaw").q][0] == -0.2
    assert said.startswith("shoulder at 0.4 rad, base_yaw at -0.2 rad; assumed: all other joints")
    every = default_pose(wheel(), {"axis": [0.3]})[1]
    assert every == "axis at 0.3 rad"


# -- speed ----------------------------------------------------------------------------------


def limits(robot: pl.Mechanism, *speeds: float) -> pl.Mechanism:
    robot.model.upperVelocityLimit[:] = speeds
    return robot


@pytest.mark.parametrize(("angle", "way"), [(0.0, -1), (2.5, 1), (-1.0, -1)])
def test_the_way_is_the_one_that_gravity_pulls(angle: float, way: int) -> None:
    """Positive angles raise a beam that points along +x, and lower one that points along -x."""
    robot = limits(pendulum(), 2.5)
    v, said = default_velocity(robot, np.array([angle]))
    assert v == pytest.approx([2.5 * way])
    assert "in the direction in which gravity pulls" in said
    # Downwards: the power of gravity is positive.
    assert -np.cos(angle) * v[0] > 0


def test_without_gravity_away_from_the_nearer_limit() -> None:
    robot = limits(carriages(1.0, 1.0, 1.0), 2.0, 2.0, 2.0)
    robot.model.lowerPositionLimit[:] = [-1.0, -3.0, -np.inf]
    robot.model.upperPositionLimit[:] = [3.0, 1.0, np.inf]
    np.testing.assert_allclose(default_velocity(robot, robot.neutral, 0.5)[0], [1.0, -1.0, 1.0])


def test_limits_that_are_not_known_are_assumed_and_told() -> None:
    for unknown in (np.inf, 0.0):
        robot = limits(carriages(1.0, 1.0), unknown, 0.3)
        v, said = default_velocity(robot, robot.neutral, 0.5)
        np.testing.assert_allclose(v, [0.5, 0.15])
        assert "assumed for a: a limit of 1 rad/s or m/s" in said


def test_single_joints() -> None:
    robot = limits(carriages(1.0, 1.0, 1.0), 2.0, 2.0, 2.0)
    v, said = default_velocity(robot, robot.neutral, None, {"b": [0.7]})
    np.testing.assert_allclose(v, [0.0, 0.7, 0.0])
    assert said == "b at 0.7 m/s"
    v, said = default_velocity(robot, robot.neutral, 0.5, {"b": [-0.7]})
    np.testing.assert_allclose(v, [1.0, -0.7, 1.0])
    assert said.startswith("b at -0.7 m/s; all other motors at 50 %")


def test_loops_that_do_not_let_all_motors_run(tmp_path: Path) -> None:
    """A four-bar whose three hinges all count as motors moves in one way only, at 1 rad/s."""
    robot = pl.load(fourbar(tmp_path))
    q, _ = default_pose(robot)
    for part in (1.0, 0.4):
        v, said = default_velocity(robot, q, part)
        assert np.abs(v).max() == pytest.approx(part)
        assert np.abs(pl.Constraints(robot, full=True).jacobian(q) @ v).max() < 1e-9
        assert "changed to what the loops and the limits of all joints allow" in said
    v, _ = default_velocity(robot, q, None, {"drive": [0.5]})
    assert v[robot.coordinates("drive").v][0] == 0.5  # also beyond the limit of another joint
    with pytest.raises(pl.InconsistentVelocity, match="do not allow"):
        default_velocity(robot, q, None, {"drive": [0.5], "knee": [0.5], "swing": [0.5]})


def test_gravity_decides_in_loops_too() -> None:
    """The power of gravity in the motion of each arm of a delta robot alone is positive."""
    robot = pl.load(URDF / "delta.urdf")
    q = pl.assemble(robot)
    v, _ = default_velocity(robot, q)
    before, after = (pl.EquationsOfMotion(robot).energies(0.0, x, v)[1] for x in (
        q, robot.integrate(q, 1e-5 * v)))  # fmt: skip
    assert after < before
    arms = [v[robot.coordinates(name).v][0] for name in robot.actuated]
    assert arms == pytest.approx([arms[0]] * 3) and arms[0] == pytest.approx(12.0)


def test_standing_still_can_be_asked_for() -> None:
    robot = pl.load(URDF / "six_axis_arm.urdf")
    assert not default_velocity(robot, robot.neutral, 0.0)[0].any()


# -- brakes ---------------------------------------------------------------------------------


def test_guessed_brakes_hold_the_payload(tmp_path: Path) -> None:
    """A beam of 2 kg at 0.5 m without limits, and a payload at its end, 1 m from the axis."""
    path = tmp_path / "beam.urdf"
    path.write_text("""<robot name="beam"><link name="base"/><link name="arm"><inertial>
      <origin xyz="0.5 0 0"/><mass value="2"/>
      <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
      <link name="tool0"/><joint name="axis" type="continuous"><parent link="base"/>
      <child link="arm"/><axis xyz="0 1 0"/><limit effort="1" velocity="1"/></joint>
      <joint name="end" type="fixed"><parent link="arm"/><child link="tool0"/>
      <origin xyz="1 0 0"/></joint></robot>""")
    robot = pl.load(path)
    bare, loaded = (default_brakes(robot, path, mass)[0].joints["axis"] for mass in (0.0, 3.0))
    # Twice the load of gravity: 2 kg at 0.5 m, then 3 kg at 1 m more.
    assert loaded.static / bare.static == pytest.approx((2 * 0.5 + 3.0) / (2 * 0.5), rel=1e-3)


def test_the_file_beside_the_robot(tmp_path: Path) -> None:
    shutil.copy(URDF / "delta.urdf", tmp_path / "delta.urdf")
    robot = pl.load(tmp_path / "delta.urdf")
    assert brakes_beside(tmp_path / "delta.urdf") is None
    guessed, found = default_brakes(robot, tmp_path / "delta.urdf")
    assert not found and guessed.source == "template"
    text = (URDF / "delta.brakes.yaml").read_text()
    (tmp_path / "delta.brakes.yml").write_text(re.sub("1.9 ", "1.8 ", text))
    brakes, found = default_brakes(robot, tmp_path / "delta.urdf")
    assert found and brakes.joints["arm_1"].dynamic_torque == 1.8
    (tmp_path / "delta.brakes.yaml").write_text(text)
    brakes, _ = default_brakes(robot, tmp_path / "delta.urdf")
    assert brakes.joints["arm_1"].dynamic_torque == 1.9
    assert brakes.source == str(tmp_path / "delta.brakes.yaml")
