"""A stop over time, as CSV: every torque and energy against closed forms."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from numpy.typing import NDArray

import pinloop as pl
from pinloop.safety.stopping.export import series_of

from .robots_to_stop import (
    LATE,
    G,
    arm_stop,
    arm_table,
    brakes,
    lift_with_beam,
    on_axis,
    pendulum,
    random_brake,
    wheel,
)
from .robots_to_stop import stop as stopped

ROOT = Path(__file__).parents[3]
URDF = ROOT / "urdf"


def read(path: Path) -> dict[str, NDArray[np.float64]]:
    with path.open(encoding="utf-8", newline="") as file:
        names, *rows = csv.reader(file)
    values = np.array(rows, dtype=float)
    return {name: values[:, k] for k, name in enumerate(names)}


def test_the_stop_of_a_wheel_over_time(tmp_path: Path) -> None:
    """Held at speed against friction until 95 ms, free until 155 ms, then braked.

    2 kg m^2 at 3 rad/s, friction 0.5 N m, brake 4 N m from 50 + 105 ms on.
    """
    by = on_axis(replace(LATE, drive_off=0.045), dynamic_torque=4.0, delay=0.105, coulomb=0.5)
    result = stopped(wheel(2.0), 3.0, by)
    table = read(result.to_csv(tmp_path / "stop.csv", every=0.01))
    assert list(table) == [
        "t_s", "axis_position_rad", "axis_velocity_rad_per_s", "axis_torque_N_m",
        "axis_brake_torque_N_m", "axis_friction_torque_N_m", "axis_drive_torque_N_m",
        "tool_x_m", "tool_y_m", "tool_z_m", "tool_speed_m_per_s", "kinetic_energy_J",
        "potential_energy_J",
    ]  # fmt: skip
    t = table["t_s"]
    slow = 3.0 - 0.25 * 0.06  # friction alone from 95 to 155 ms
    end = 0.155 + slow / 2.25
    assert t[-1] == pytest.approx(end, rel=1e-9)
    assert list(t[:-1]) == [round(0.01 * k, 2) for k in range(len(t) - 1)]
    free, braked = 3 - 0.25 * (t - 0.095), slow - 2.25 * (t - 0.155)
    v = np.where(t < 0.095, 3.0, np.where(t < 0.155, free, braked))
    np.testing.assert_allclose(table["axis_velocity_rad_per_s"], v, atol=1e-8)
    np.testing.assert_allclose(table["kinetic_energy_J"], v**2, atol=1e-7)
    moving = slice(0, -1)
    drive = np.where(t < 0.095, 0.5, 0.0)[moving]
    brake = np.where(t < 0.155, 0.0, -4.0)[moving]
    np.testing.assert_allclose(table["axis_drive_torque_N_m"][moving], drive, atol=1e-9)
    np.testing.assert_allclose(table["axis_friction_torque_N_m"][moving], -0.5, atol=1e-9)
    np.testing.assert_allclose(table["axis_brake_torque_N_m"][moving], brake, atol=1e-9)
    np.testing.assert_allclose(table["axis_torque_N_m"][moving], drive - 0.5 + brake, atol=1e-9)
    # Nothing pulls at the wheel once it stands.
    assert abs(table["axis_torque_N_m"][-1]) < 1e-9
    angle = 3.0 * 0.095 + 0.06 * (3 + slow) / 2 + slow**2 / 4.5
    assert table["axis_position_rad"][-1] == pytest.approx(angle, rel=1e-9)


def test_what_holds_a_beam_is_shared_in_proportion(tmp_path: Path) -> None:
    """Gravity of 2 kg at 0.5 m, held by a brake of 90 and friction of 10 N m: 9 to 1."""
    result = stopped(
        pendulum(), -1.0, on_axis(dynamic_torque=80.0, static_torque=90.0, coulomb=10.0)
    )
    table = read(result.to_csv(tmp_path / "stop.csv", every=None))
    load = 2.0 * G * 0.5 * np.cos(table["axis_position_rad"][-1])
    last = {name: column[-1] for name, column in table.items()}
    assert last["axis_torque_N_m"] == pytest.approx(load, rel=1e-9)
    assert last["axis_brake_torque_N_m"] == pytest.approx(0.9 * load, rel=1e-9)
    assert last["axis_friction_torque_N_m"] == pytest.approx(0.1 * load, rel=1e-9)
    # Two rows where the brake begins at once, and where the joint comes to rest.
    assert np.any(np.diff(table["t_s"]) == 0) and np.all(np.diff(table["t_s"]) >= 0)
    energy = table["kinetic_energy_J"] + table["potential_energy_J"]
    assert energy[0] - energy[-1] == pytest.approx(result.ledger.heat, rel=1e-6)
    height = 0.5 * np.sin(table["axis_position_rad"])
    np.testing.assert_allclose(
        np.diff(table["potential_energy_J"]), 2 * G * np.diff(height), atol=1e-9
    )


def test_a_tooth_holds_alone_and_a_drive_holds_alone(tmp_path: Path) -> None:
    tooth = on_axis(kind="tooth", coulomb=3.0)
    table = read(stopped(pendulum(), -0.5, tooth).to_csv(tmp_path / "tooth.csv"))
    assert table["axis_friction_torque_N_m"][-1] == 0.0
    assert table["axis_brake_torque_N_m"][-1] == pytest.approx(2.0 * G * 0.5, rel=1e-2)
    driven = on_axis(dynamic_torque=80.0, coulomb=3.0, deceleration=5.0)
    result = stopped(pendulum(2.0, 0.5, 0.6), -0.5, driven, category=2)
    table = read(result.to_csv(tmp_path / "drive.csv"))
    # Slowed down by 5 rad/s^2: I a = 3 N m and gravity; friction, against the motion, helps.
    angle = table["axis_position_rad"]
    torque = 0.6 * 5.0 + 2.0 * G * 0.5 * np.cos(angle)
    slowing = table["t_s"] < 0.099
    np.testing.assert_allclose(table["axis_torque_N_m"][slowing], torque[slowing], rtol=1e-6)
    np.testing.assert_allclose(table["axis_friction_torque_N_m"][slowing], 3.0, rtol=1e-9)
    np.testing.assert_allclose(
        table["axis_drive_torque_N_m"][slowing], torque[slowing] - 3.0, rtol=1e-6
    )


def test_viscous_friction_and_a_shorted_motor_have_their_places(tmp_path: Path) -> None:
    by = on_axis(LATE, dynamic_torque=4.0, viscous=0.3, gear_ratio=10.0, short_circuit=2e-3)
    table = read(stopped(wheel(2.0), 3.0, by).to_csv(tmp_path / "stop.csv"))
    braked = (table["t_s"] > 0.1005) & (table["axis_velocity_rad_per_s"] > 1e-3)
    v = table["axis_velocity_rad_per_s"][braked]
    np.testing.assert_allclose(table["axis_friction_torque_N_m"][braked], -0.3 * v, rtol=1e-9)
    np.testing.assert_allclose(table["axis_drive_torque_N_m"][braked], -0.2 * v, rtol=1e-9)
    np.testing.assert_allclose(table["axis_brake_torque_N_m"][braked], -4.0, rtol=1e-9)


@pytest.mark.parametrize("category", [0, 1, 2])
def test_torques_explain_the_motion(category: int) -> None:
    """``M a + nle = torque`` at even instants, with accelerations by differences of velocities."""
    rng = np.random.default_rng(5)
    robot = pl.from_screws(arm_table(rng, 4))
    made = {n: random_brake(rng, 200.0 / (1 + k)) for k, n in enumerate(robot.joints)}
    made = {n: replace(b, deceleration=6.0, efficiency=1.0) for n, b in made.items()}
    result = stopped(robot, rng.uniform(-1, 1, 4), pl.Brakes(made, LATE), category=category)
    series, machine, h = series_of(result, every=2e-3), result.robot, 1e-5
    parts = series.brake + series.friction + series.drive
    np.testing.assert_allclose(parts, series.torque, atol=1e-7)
    data = machine.model.createData()
    changes = np.array([t for t, _ in result.events] + [0.0, float(result.run.t[-1])])
    between = [k for k, t in enumerate(series.t) if np.abs(changes - t).min() > 2 * h]
    assert len(between) > 20
    for k in between:
        before, after = (result.run(series.t[k] + side).v for side in (-h, h))
        a = (after - before) / (2 * h)
        wanted = pin.rnea(machine.model, data, series.q[k], series.v[k], a)
        np.testing.assert_allclose(series.torque[k], wanted, rtol=1e-4, atol=2e-2)


def test_the_peak_torque_is_one_of_the_file(tmp_path: Path) -> None:
    result = arm_stop()
    table = read(result.to_csv(tmp_path / "stop.csv", every=None))
    for name, joint in result.joints.items():
        assert np.abs(table[f"{name}_torque_N_m"]).max() == pytest.approx(joint.peak_torque)
    tool = result.point()
    np.testing.assert_allclose(
        [table[f"tool_{axis}_m"][-1] for axis in "xyz"], tool.path[-1], atol=1e-9
    )
    assert table["tool_speed_m_per_s"].max() == pytest.approx(tool.peak_speed, rel=1e-3)


def test_a_robot_with_loops_and_balls(tmp_path: Path) -> None:
    robot = pl.load(URDF / "delta.urdf")
    q = pl.assemble(robot)
    v = pl.consistent_velocity(robot, q, dict.fromkeys(robot.actuated, 2.0))
    result = pl.stop(robot, q, v, brakes=URDF / "delta.brakes.yaml")
    table = read(result.to_csv(tmp_path / "stop.csv", every=0.005))
    last = result.run.q[-1]
    for name in robot.joints:
        at = robot.coordinates(name)
        own = [column for column in table if column.startswith(f"{name}_position")]
        assert len(own) == at.nq
        np.testing.assert_allclose([table[c][-1] for c in own], last[at.q], atol=1e-12)
        speeds = [column for column in table if column.startswith(f"{name}_velocity")]
        assert len(speeds) == at.nv and all(column.endswith("rad_per_s") for column in speeds)
    ball = next(name for name in robot.joints if robot.coordinates(name).nq == 4)
    # The parts of a quaternion have no unit.
    assert f"{ball}_position_3" in table and f"{ball}_velocity_2_rad_per_s" in table
    assert f"{ball}_torque_N_m" not in table


def test_sliding_joints_have_forces(tmp_path: Path) -> None:
    by = brakes(lift={"dynamic_torque": 90.0}, beam={"dynamic_torque": 30.0})
    table = read(stopped(lift_with_beam(4, 2, 0.5, 0.7), [0.5, 1.0], by).to_csv(tmp_path / "s.csv"))
    assert {"lift_position_m", "lift_velocity_m_per_s", "lift_brake_force_N"} <= set(table)
    assert {"beam_position_rad", "beam_velocity_rad_per_s", "beam_brake_torque_N_m"} <= set(table)


def test_rotors_behind_gears_with_losses_move_too(tmp_path: Path) -> None:
    """2 kg m^2 and a rotor of 0.005 behind a gear of 10, at 3 rad/s: half of 2.5 * 9 J."""
    by = on_axis(gear_ratio=10.0, efficiency=0.8, rotor_inertia=5e-3, dynamic_torque=4.0)
    table = read(stopped(wheel(2.0), 3.0, by).to_csv(tmp_path / "stop.csv"))
    assert table["kinetic_energy_J"][0] == pytest.approx(11.25)


def test_an_angle_stored_as_cosine_and_sine(tmp_path: Path) -> None:
    """Past half a turn it goes on: 3 rad/s for 0.15 s and 2.25 rad from 3 rad on."""
    text = (URDF / "planar_3r.urdf").read_text()
    head, rest = text.split("<joint ", 1)
    kind = re.sub(r'type="\w+"', 'type="continuous" coordinates="circle"', rest, count=1)
    (tmp_path / "arm.urdf").write_text(f"{head}<joint {kind}")
    robot = pl.load(tmp_path / "arm.urdf")
    name = robot.joints[0]
    assert robot.coordinates(name).nq == 2
    q = robot.configuration({name: 3.0})
    by = pl.Brakes(
        {n: pl.safety.JointBrake(side="joint", dynamic_torque=900.0) for n in robot.joints}
    )
    result = pl.stop(robot, q, robot.velocity({name: 3.0}), brakes=by)
    table = read(result.to_csv(tmp_path / "stop.csv"))
    angle = table[f"{name}_position_rad"]
    assert angle[0] == pytest.approx(3.0)
    assert angle[-1] == pytest.approx(3.0 + result.joints[name].angle, abs=1e-9)
    assert angle[-1] > np.pi
    row = str(result.table()).split("time and angle")[1].splitlines()[3]
    assert row.split()[:2] == [name, "171.9"]


def test_zeros_have_no_sign(tmp_path: Path) -> None:
    path = stopped(wheel(), 3.0, on_axis(dynamic_torque=4.0)).to_csv(tmp_path / "stop.csv")
    assert "-0.0," not in path.read_text()


@pytest.mark.parametrize("every", [0, -1e-3, np.nan, np.inf, 1e-12, "fast"])
def test_intervals_that_are_none(every: Any, tmp_path: Path) -> None:
    result = stopped(wheel(), 3.0, on_axis(dynamic_torque=4.0))
    with pytest.raises(pl.BadValue, match="every is"):
        result.to_csv(tmp_path / "stop.csv", every=every)
    assert list(tmp_path.iterdir()) == []
