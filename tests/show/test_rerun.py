"""Runs as recordings of rerun, as rerun itself reads them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pinloop as pl
from pinloop.simulation.columns import columns

reader: Any = pytest.importorskip("rerun.chunk")


@pytest.fixture(scope="module")
def run() -> pl.Trajectory:
    robot = pl.regularize(pl.example("palletizer"))
    q = pl.assemble(robot, {"shoulder": 0.4})
    v = pl.consistent_velocity(robot, q, {"elbow": 0.5})
    lock = pl.lock("shoulder", at=0.123)
    return pl.simulate(robot, q, v, until=0.3, events=[lock])


@pytest.mark.filterwarnings("ignore:RRD file has no footer")
def test_a_recording_is_the_run(run: pl.Trajectory, tmp_path: Path) -> None:
    path, robot = run.to_rerun(tmp_path / "run.rrd", rate=50), run.robot
    tables = dict[str, list[dict[str, list[Any]]]]()
    for chunk in reader.RrdReader(path).stream():
        tables.setdefault(chunk.entity_path, []).append(chunk.to_record_batch().to_pydict())
    moving = [path for path in tables if path.startswith("/robot/robot/") and path.count("/") == 3]
    assert len(moving) > 5
    for name in moving:
        (table,) = tables[name]
        body = name.rpartition("/")[2]
        assert len(table["time"]) >= 41
        for at, place, turn in zip(
            table["time"],
            table["Transform3D:translation"],
            table["Transform3D:quaternion"],
            strict=True,
        ):
            expected = robot.placement(run(seconds(at)).q, body)
            np.testing.assert_allclose(place[0], expected.translation, atol=1e-6)
            x = np.array([0.3, -0.5, 0.7])
            u, w = np.array(turn[0][:3]), turn[0][3]
            image = x + 2 * np.cross(u, np.cross(u, x) + w * x)
            np.testing.assert_allclose(image, expected.rotation @ x, atol=1e-6)
    times = np.array([seconds(at) for at in tables[moving[0]][0]["time"]])
    states = run(times)
    expected = columns(robot, times, states.q, states.v, np.zeros(len(times), dtype=np.int64))
    for name, values in list(expected.items())[1:-1]:
        (table,) = tables[f"/joints/{name}"]
        recorded = np.array(table["Scalars:scalars"])[:, 0]
        steady = np.abs(times - 0.123) > 1e-6  # there velocities jump
        np.testing.assert_allclose(recorded[steady], values[steady], atol=1e-6)
    (modes,) = tables["/mode"]
    assert [seconds(at) for at in modes["time"]] == pytest.approx([0.0, 0.123])
    assert modes["TextLog:text"] == [["nothing locked"], ["locked: shoulder"]]
    meshes = [x for x in tables.values() if any("Mesh3D:vertex_positions" in each for each in x)]
    assert len(meshes) > 20


def seconds(at: Any) -> float:
    return float(at / np.timedelta64(1, "ns")) * 1e-9


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), 1e9])
def test_rates_are_positive_and_few(run: pl.Trajectory, rate: float, tmp_path: Path) -> None:
    with pytest.raises(pl.PinloopError, match="rate"):
        run.to_rerun(tmp_path / "run.rrd", rate=rate)
    assert not list(tmp_path.iterdir())


def test_without_the_library_it_is_named() -> None:
    program = (
        "import sys; sys.modules['rerun'] = None\n"
        "import pinloop as pl\n"
        "robot = pl.example('planar_3r')\n"
        "run = pl.simulate(robot, robot.neutral, [0.0] * 3, until=0.01)\n"
        "try:\n    run.to_rerun('x.rrd')\n"
        "except pl.PinloopError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "pip install 'pinloop[rerun]'" in done.stdout
