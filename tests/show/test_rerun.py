"""Runs as recordings of rerun, as rerun itself reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pinloop as pl
from pinloop.simulation.columns import columns

from .test_recordings import locked_run

reader: Any = pytest.importorskip("rerun.chunk")


@pytest.fixture(scope="module")
def run() -> pl.Trajectory:
    return locked_run()


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
