"""Serial twins as files: read by pinloop, Pinocchio and MuJoCo, and moving like the twin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.dynamics import SerialMap, SerialTwin

from ..papers.programs import program
from ..screw_tables import Array
from ..states import close

robots: Any = program("common.serial_robots")
RANGES = {"pitch": (-0.4, 0.3), "roll": (-0.2, 0.2)}
FINGERS = ["left_knuckle", "left_tip", "right_knuckle", "right_tip"]


@pytest.fixture(scope="module")
def twin() -> SerialTwin:
    return pl.serial(robots.ankle(), ["pitch", "roll"], ranges=RANGES)


def mass(model: pin.Model, q: Array) -> Array:
    M = np.triu(pin.crba(model, model.createData(), q))
    return np.asarray(M + np.triu(M, 1).T)


def test_urdf_is_read_as_the_twin(twin: SerialTwin, tmp_path: Path) -> None:
    path = twin.save(tmp_path / "ankle.urdf")
    assert sorted(x.name for x in tmp_path.iterdir()) == ["ankle.serial.json", "ankle.urdf"]
    again, theirs, y = pl.load(path), pin.buildModelFromUrdf(str(path)), np.array([0.2, -0.1])
    assert not again.loops and not again.warnings and again.joints == twin.joints
    close(mass(again.model, y), mass(twin.robot.model, y), 1e-15)
    close(mass(theirs, y) + np.diag(twin.robot.model.armature), mass(twin.robot.model, y), 1e-12)
    np.testing.assert_allclose(theirs.upperPositionLimit, [0.3, 0.2])
    np.testing.assert_allclose(theirs.upperEffortLimit, twin.torque_box)
    np.testing.assert_allclose(theirs.upperVelocityLimit, twin.speed_box)
    text = path.read_text()
    for part in (
        "without the linkage of left_motor, right_motor",
        "pitch and roll: -0.000",
        "weight",
    ):
        assert part in text
    fitted = SerialMap.load(tmp_path / "ankle.serial.json")
    close(fitted.motor_positions(y), robots.ankle_motors(*y), fitted.position_error)


def test_mjcf_moves_like_the_twin(twin: SerialTwin, tmp_path: Path) -> None:
    mujoco: Any = pytest.importorskip("mujoco")
    path = twin.save(tmp_path / "ankle.xml")
    model = mujoco.MjModel.from_xml_path(str(path))
    data, again = mujoco.MjData(model), pl.load(path)
    assert not again.loops and again.actuated == twin.joints and not again.warnings
    np.testing.assert_allclose(model.dof_armature, twin.robot.model.armature)
    np.testing.assert_allclose(model.jnt_range, list(RANGES.values()))
    np.testing.assert_allclose(model.jnt_actfrcrange[:, 1], twin.torque_box)
    rng = np.random.default_rng(0)
    for machine in (twin.robot, again):
        data.qpos[:], data.qvel[:], data.ctrl[:] = rng.uniform(-0.2, 0.2, (3, 2))
        mujoco.mj_forward(model, data)
        force = [pl.Torque(x, float(y)) for x, y in zip(twin.joints, data.ctrl, strict=True)]
        equations = pl.EquationsOfMotion(machine, forces=force)
        close(equations.acceleration(0.0, data.qpos, data.qvel), data.qacc, 1e-9)


@pytest.mark.parametrize("parallel", [True, False])
def test_fingers_follow_in_files(parallel: bool, tmp_path: Path) -> None:
    twin = pl.serial(robots.gripper(parallel=parallel), FINGERS)
    urdf, mjcf = twin.save(tmp_path / "gripper.urdf"), twin.save(tmp_path / "gripper.xml")
    assert ("Joints that follow are off" in urdf.read_text()) == (not parallel)
    expected = [pose.q for pose in twin.poses(4)]
    for path, off in ((urdf, 1e-9 if parallel else 0.08), (mjcf, 1e-9 if parallel else 3e-3)):
        serial = pl.load(path)
        assert set(serial.joints) == set(FINGERS) and len(serial.couplings) == 3
        for q in expected:
            names = twin.looped.named(q)
            there = serial.named(
                pl.assemble(serial, {"left_knuckle": float(names["left_knuckle"])})
            )
            close([there[x] for x in FINGERS], [names[x] for x in FINGERS], off)
    theirs = pin.buildModelFromUrdf(str(urdf), mimic=True)
    assert theirs.nv == 1
    mujoco: Any = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_path(str(mjcf))
    terms = {c.joints[0]: -np.array(c.polynomials[1]) for c in twin.robot.couplings}
    for k in range(model.neq):
        joint = model.joint(model.eq_obj1id[k]).name
        close(model.eq_data[k, : len(terms[joint])], terms[joint], 1e-9)


def test_loops_that_are_left_stay(tmp_path: Path) -> None:
    both = robots.ankle().with_robot(robots.knee(), "knee_")
    twin = pl.serial(both, ["pitch", "roll"], ranges=RANGES)
    again = pl.load(twin.save(tmp_path / "both.urdf"))
    assert [loop.name for loop in again.loops] == ["knee_rod_shank"]
    assert set(again.actuated) == {"pitch", "roll", "knee_motor"}
    again = pl.load(twin.save(tmp_path / "both.xml"))
    assert [(loop.name, loop.pair.name) for loop in again.loops] == [("knee_rod_shank", "revolute")]
    with pytest.raises(pl.BadValue, match=r"'both.sdf' is neither .urdf nor .xml"):
        twin.save(tmp_path / "both.sdf")
