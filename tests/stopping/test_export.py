"""A stop as CSV and JSON: every number against closed forms; files that are whole or not there."""

from __future__ import annotations

import csv
import errno
import hashlib
import json
import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
import scipy
from numpy.typing import NDArray
from pydantic import TypeAdapter

import pinloop as pl
from pinloop.stopping.document import Document, json_schema
from pinloop.stopping.files import written_whole
from pinloop.stopping.series import series_of

from .robots_to_stop import (
    G,
    brakes,
    lift_with_beam,
    on_axis,
    pendulum,
    random_arm,
    random_brake,
    wheel,
)

ROOT = Path(__file__).parents[2]
URDF = ROOT / "urdf"
CHAIN = pl.Chain(sensor=0.02, controller=0.03, drive_off=0.05)
Columns = dict[str, NDArray[np.float64]]


def stopped(robot: pl.Mechanism, v: Any, by: pl.Brakes, **more: Any) -> pl.StopResult:
    return pl.stop(robot, more.pop("q", robot.neutral), np.atleast_1d(v), brakes=by, **more)


def read(path: Path) -> Columns:
    with path.open(encoding="utf-8", newline="") as file:
        names, *rows = csv.reader(file)
    values = np.array(rows, dtype=float)
    return {name: values[:, k] for k, name in enumerate(names)}


def arm(**more: Any) -> pl.StopResult:
    robot = pl.load(URDF / "six_axis_arm.urdf")
    v = 0.4 * np.array([1, 1, -1, 1, 0, 1])
    return pl.stop(robot, robot.neutral, v, brakes=URDF / "six_axis_arm.brakes.yaml", **more)


# -- time series ----------------------------------------------------------------------------


def test_the_stop_of_a_wheel_over_time(tmp_path: Path) -> None:
    """Held at speed against friction until 95 ms, free until 155 ms, then braked.

    2 kg m^2 at 3 rad/s, friction 0.5 N m, brake 4 N m from 50 + 105 ms on.
    """
    by = on_axis(replace(CHAIN, drive_off=0.045), dynamic_torque=4.0, delay=0.105, coulomb=0.5)
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
    by = on_axis(CHAIN, dynamic_torque=4.0, viscous=0.3, gear_ratio=10.0, short_circuit=2e-3)
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
    robot = random_arm(rng, 4)
    made = {n: random_brake(rng, 200.0 / (1 + k)) for k, n in enumerate(robot.joints)}
    made = {n: replace(b, deceleration=6.0, efficiency=1.0) for n, b in made.items()}
    result = stopped(robot, rng.uniform(-1, 1, 4), pl.Brakes(made, CHAIN), category=category)
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
    result = arm()
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


def test_zeros_have_no_sign(tmp_path: Path) -> None:
    path = stopped(wheel(), 3.0, on_axis(dynamic_torque=4.0)).to_csv(tmp_path / "stop.csv")
    assert "-0.0," not in path.read_text()


@pytest.mark.parametrize("every", [0, -1e-3, np.nan, np.inf, 1e-12, "fast"])
def test_intervals_that_are_none(every: Any, tmp_path: Path) -> None:
    result = stopped(wheel(), 3.0, on_axis(dynamic_torque=4.0))
    with pytest.raises(pl.BadValue, match="every is"):
        result.to_csv(tmp_path / "stop.csv", every=every)
    assert list(tmp_path.iterdir()) == []


# -- document -------------------------------------------------------------------------------


def test_the_document_keeps_to_its_schema(tmp_path: Path) -> None:
    """Robots with loops, teeth and payload, stops of all categories, too."""
    adapter = TypeAdapter(Document)
    tooth = stopped(pendulum(), -0.5, on_axis(kind="tooth"))
    controlled = arm(category=pl.Category1(on_path=True, time_limit=1.5), payload=3.0)
    for k, result in enumerate((arm(), tooth, controlled)):
        data = json.loads(result.save_json(tmp_path / f"{k}.json", stamp=k == 1).read_text())
        adapter.validate_python(data, strict=True)
        assert data == json.loads(json.dumps(result.as_dict())) | (
            {"created": data["created"]} if k == 1 else {}
        )


def test_the_schema_in_the_documentation_is_current() -> None:
    text = (ROOT / "docs" / "schemas" / "stop.schema.json").read_text(encoding="utf-8")
    assert json.loads(text) == json_schema()
    assert json_schema()["additionalProperties"] is False
    assert all(block["additionalProperties"] is False for block in json_schema()["$defs"].values())


def test_what_the_document_says(tmp_path: Path) -> None:
    by = on_axis(CHAIN, dynamic_torque=4.0, delay=0.1, peak_gear_torque=5.0)
    result = stopped(wheel(2.0), 3.0, by)
    data = result.as_dict()
    assert data["format"] == "pinloop-stop-1"
    assert data["outcome"] == "stopped"
    assert data["chain"] == {
        "sensor_s": 0.02, "controller_s": 0.03, "drive_off_s": 0.05, "command_s": 0.05,
    }  # fmt: skip
    assert data["signal"] == {"q": {"axis": [0.0]}, "v": {"axis": [3.0]}}
    axis = data["joints"]["axis"]
    # 150 ms at 3 rad/s, then 2 rad/s^2 for 1.5 s.
    assert axis["time_s"] == pytest.approx(1.65) and axis["angle"] == pytest.approx(0.45 + 2.25)
    assert axis["reaction_time_s"] == pytest.approx(0.15)
    assert axis["braking_angle"] == pytest.approx(2.25)
    assert (axis["unit"], axis["torque_unit"], axis["state"]) == ("rad", "N m", "held")
    assert data["end"]["q"]["axis"] == pytest.approx([2.7])
    assert data["ledger"]["dissipated_J"]["brake"]["axis"] == pytest.approx(9.0)
    assert data["events"][0] == {"t_s": 0.0, "what": "signal"}
    assert data["brakes"]["joints"]["axis"]["delay"] == {
        "value": 0.1, "unit": "s", "source": "assumed", "given": True,
    }  # fmt: skip
    assert data["brakes"]["joints"]["axis"]["efficiency"]["given"] is False
    assert data["versions"]["pinocchio"] == pin.__version__
    assert data["versions"]["scipy"] == scipy.__version__
    assert data["versions"]["pinloop"] == pl.__version__
    assert data["payload"] is None and data["robot"]["file"] is None and "created" not in data


def test_files_and_their_digests(tmp_path: Path) -> None:
    result = arm()
    data = result.as_dict()
    for part, name in (("robot", "six_axis_arm.urdf"), ("brakes", "six_axis_arm.brakes.yaml")):
        record: Any = data[part]  # type: ignore[literal-required]
        assert record["file"] == str(URDF / name)
        assert record["sha256"] == hashlib.sha256((URDF / name).read_bytes()).hexdigest()
    # Another text of the same robot is the same robot; another mass is not.
    text = (URDF / "six_axis_arm.urdf").read_text()
    digests = []
    for changed in (
        text,
        text.replace("\n", "\n\n"),
        text.replace('<mass value="', '<mass value="1'),
    ):
        (tmp_path / "arm.urdf").write_text(changed)
        robot = pl.load(tmp_path / "arm.urdf")
        made = pl.stop(robot, robot.neutral, np.zeros(6), brakes=result.brakes)
        digests.append(made.as_dict()["robot"]["content_sha256"])
    assert digests[0] == digests[1] == data["robot"]["content_sha256"] != digests[2]


def test_the_payload_in_the_document() -> None:
    load = pl.Payload(4.0, com=[0.1, 0, -0.02], inertia=np.diag([0.1, 0.2, 0.25]), frame="tool0")
    record = arm(payload=load).as_dict()["payload"]
    assert record is not None and record["frame"] == "tool0" and record["mass_kg"] == 4.0
    np.testing.assert_allclose(record["com_m"], [0.1, 0, -0.02], atol=1e-12)
    np.testing.assert_allclose(record["inertia_kg_m2"], np.diag([0.1, 0.2, 0.25]), atol=1e-12)


def test_infinity_is_null(tmp_path: Path) -> None:
    result = stopped(pendulum(), -0.5, on_axis(kind="tooth"))
    assert result.joints["axis"].hold == np.inf
    text = result.save_json(tmp_path / "stop.json").read_text()
    axis = json.loads(text)["joints"]["axis"]
    assert axis["hold"] is None and axis["margin"] is None and axis["gear_limit"] is None
    assert "Infinity" not in text and "NaN" not in text


def test_the_same_stop_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        result = arm()
        result.save_json(tmp_path / f"{name}.json")
        result.to_csv(tmp_path / f"{name}.csv")
    for ending in ("json", "csv"):
        one, other = ((tmp_path / f"{name}.{ending}").read_bytes() for name in "ab")
        assert one == other and b"\r" not in one


# -- files ----------------------------------------------------------------------------------


def write(path: Path, text: str) -> None:
    with written_whole(path) as file:
        file.write(text)


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "stop.json"
    write(target, "old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(pl.BadValue, match=r"stop\.json cannot be written: no space left"):
        write(target, "new")
    assert target.read_text() == "old" and list(tmp_path.iterdir()) == [target]


def test_an_interrupt_leaves_what_was_there(tmp_path: Path) -> None:
    target = tmp_path / "stop.json"
    write(target, "old")
    with pytest.raises(KeyboardInterrupt), written_whole(target) as file:
        file.write("ne")
        raise KeyboardInterrupt
    assert target.read_text() == "old" and list(tmp_path.iterdir()) == [target]


@pytest.mark.skipif(os.name == "nt", reason="permissions and links of POSIX")
def test_permissions_and_links_stay(tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    write(real, "old")
    plain = tmp_path / "plain"
    plain.write_text("")
    assert stat.S_IMODE(real.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    real.chmod(0o640)
    link.symlink_to(real)
    write(link, "new")
    assert link.is_symlink() and real.read_text() == "new"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_devices_are_written_to_and_not_replaced() -> None:
    write(Path(os.devnull), "x")
    assert Path(os.devnull).is_char_device()
    with pytest.raises(pl.BadValue, match="/dev/full cannot be written"):
        write(Path("/dev/full"), "x")
    assert Path("/dev/full").is_char_device()


@pytest.mark.parametrize("name", ["nowhere/x.csv", ".", "x" * 300, "nul\0byte"])
def test_paths_that_cannot_be_written(name: str, tmp_path: Path) -> None:
    result = stopped(wheel(), 3.0, on_axis(dynamic_torque=4.0))
    for call in (result.to_csv, result.save_json):
        with pytest.raises(pl.BadValue, match=r"cannot be written|is a folder"):
            call(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_robot_file_that_has_gone(tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf"
    path.write_text((URDF / "six_axis_arm.urdf").read_text())
    robot = pl.load(path)
    result = pl.stop(robot, robot.neutral, np.zeros(6), brakes=URDF / "six_axis_arm.brakes.yaml")
    path.unlink()
    record = result.as_dict()["robot"]
    assert (record["file"], record["sha256"]) == (None, None)
    assert record["content_sha256"] is not None
