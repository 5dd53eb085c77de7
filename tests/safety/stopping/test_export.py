"""A stop as JSON: what it says, against closed forms and the files that it came from."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pinocchio as pin
import pytest
import scipy
from tools.schemas import schema_of

import pinloop as pl

from .robots_to_stop import LATE, arm_stop, on_axis, pendulum, wheel
from .robots_to_stop import stop as stopped

ROOT = Path(__file__).parents[3]
URDF = ROOT / "urdf"


def test_the_document_keeps_to_its_schema(tmp_path: Path) -> None:
    """Robots with loops, teeth and payload, stops of all categories, too."""
    schema = jsonschema.Draft202012Validator(schema_of("stop"))
    tooth = stopped(pendulum(), -0.5, on_axis(kind="tooth"))
    controlled = arm_stop(category=pl.Category1(on_path=True, time_limit=1.5), payload=3.0)
    for k, result in enumerate((arm_stop(), tooth, controlled)):
        data = json.loads(result.save_json(tmp_path / f"{k}.json", stamp=k == 1).read_text())
        schema.validate(data)
        assert data == json.loads(json.dumps(result.as_dict())) | (
            {"created": data["created"]} if k == 1 else {}
        )


def test_the_schema_in_the_documentation_is_current() -> None:
    text = (ROOT / "docs" / "schemas" / "stop.schema.json").read_text(encoding="utf-8")
    assert json.loads(text) == schema_of("stop")
    assert schema_of("stop")["additionalProperties"] is False
    assert all(
        block["additionalProperties"] is False for block in schema_of("stop")["$defs"].values()
    )


def test_what_the_document_says(tmp_path: Path) -> None:
    by = on_axis(LATE, dynamic_torque=4.0, delay=0.1, peak_gear_torque=5.0)
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
        "value": 0.1, "unit": "s", "source": "guess", "given": True,
    }  # fmt: skip
    assert data["brakes"]["joints"]["axis"]["efficiency"]["given"] is False
    assert data["versions"]["pinocchio"] == pin.__version__
    assert data["versions"]["scipy"] == scipy.__version__
    assert data["versions"]["pinloop"] == pl.__version__
    assert data["payload"] is None and data["robot"]["file"] is None and "created" not in data


def test_files_and_their_digests(tmp_path: Path) -> None:
    result = arm_stop()
    data = result.as_dict()
    for part, name in (("robot", "six_axis_arm.urdf"), ("brakes", "six_axis_arm.brakes.yaml")):
        record: Any = data[part]  # type: ignore[literal-required]
        assert record["file"] == str(URDF / name)
        assert record["sha256"] == hashlib.sha256((URDF / name).read_bytes()).hexdigest()
    # Another text or look of the same robot is the same robot; another mass is not.
    text = (URDF / "six_axis_arm.urdf").read_text()
    before, mass, after = text.rpartition('<mass value="')
    seen = re.sub(r"<visual>.*?</visual>", "", text, count=1, flags=re.DOTALL)
    assert seen != text
    digests = []
    for changed in (text.replace("\n", "\n\n"), seen, f"{before}{mass}1{after}"):
        (tmp_path / "arm.urdf").write_text(changed)
        robot = pl.load(tmp_path / "arm.urdf")
        made = pl.stop(robot, robot.neutral, np.zeros(6), brakes=result.brakes)
        digests.append(made.as_dict()["robot"]["content_sha256"])
    assert digests[:2] == [data["robot"]["content_sha256"]] * 2
    assert digests[2] not in digests[:2]


def test_the_payload_in_the_document() -> None:
    load = pl.Payload(4.0, com=[0.1, 0, -0.02], inertia=np.diag([0.1, 0.2, 0.25]), frame="tool0")
    record = arm_stop(payload=load).as_dict()["payload"]
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
        result = arm_stop()
        result.save_json(tmp_path / f"{name}.json")
        result.to_csv(tmp_path / f"{name}.csv")
    for ending in ("json", "csv"):
        one, other = ((tmp_path / f"{name}.{ending}").read_bytes() for name in "ab")
        assert one == other and b"\r" not in one


def test_a_robot_file_that_has_gone(tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf"
    path.write_text((URDF / "six_axis_arm.urdf").read_text())
    robot = pl.load(path)
    result = pl.stop(robot, robot.neutral, np.zeros(6), brakes=URDF / "six_axis_arm.brakes.yaml")
    path.unlink()
    record = result.as_dict()["robot"]
    assert (record["file"], record["sha256"]) == (None, None)
    assert record["content_sha256"] is not None
