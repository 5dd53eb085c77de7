"""What notebooks show of robots, runs, stops and studies, and their data frames."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import pinloop as pl
from pinloop.safety import Sobol, Space
from pinloop.simulation.columns import joint_columns


@cache
def run() -> pl.Trajectory:
    robot = pl.example("palletizer")
    q = pl.assemble(robot, {"shoulder": "25deg"})
    lock = pl.lock("shoulder", at="200 ms")
    return pl.simulate(robot, q, until="0.4 s", events=[lock], save_every="10ms")


def test_times_take_units() -> None:
    assert run().t[-1] == 0.4 and run().events == ((0.2, "lock shoulder"),)
    assert run().t[1] == pytest.approx(0.01)
    for wrong in ({"until": "4 m"}, {"until": "soon"}, {"until": 1.0, "save_every": "1 kg"}):
        with pytest.raises(pl.BadValue, match="no number, with or without a unit"):
            pl.simulate(run().robot, run().q[0], **wrong)


def test_a_joint_of_a_run_by_name() -> None:
    at = run().robot.coordinates("elbow")
    motion = run()["elbow"]
    assert np.array_equal(motion.t, run().t)
    assert np.array_equal(motion.position, run().q[:, at.q.start])
    assert np.array_equal(motion.velocity, run().v[:, at.v.start])
    assert np.array_equal(motion.acceleration, run().a[:, at.v.start])
    with pytest.raises(pl.UnknownName, match="did you mean 'elbow'"):
        run()["elbwo"]
    ball = pl.example("spherical_threebar")
    swing = pl.simulate(ball, ball.neutral, until=0.01)[ball.joints[0]]
    assert swing.position.shape == (len(swing.t), 4) and swing.velocity.shape == (len(swing.t), 3)


def test_notebooks_show_what_counts() -> None:
    robot = run().robot._repr_html_()
    assert "front_level_loop" in robot and "-40.0 to 80.0 deg" in robot
    shown = run()._repr_html_()
    assert "lock shoulder" in shown and "0 to 0.4 s" in shown


def test_data_frames_have_the_columns_of_tables(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = run().to_dataframe()
    assert isinstance(frame, pandas.DataFrame) and len(frame) == len(run().t)
    columns = joint_columns(run().robot, "elbow", run().q, run().v)
    assert np.array_equal(frame["elbow_position_rad"], columns["elbow_position_rad"])
    brakes = pl.example_file("palletizer.brakes.yaml")
    stop = pl.stop(run().robot, run().q[0], run().v[20], brakes=brakes)
    stopped = stop.to_dataframe(every=2e-3)
    assert stopped["t_s"].iloc[1] == pytest.approx(2e-3) and "shoulder_torque_N_m" in stopped
    assert stop.outcome in stop._repr_html_()
    arm = pl.example("six_axis_arm")
    space = Space(speed={"joint_2": (0.5, 1.0)})
    study = pl.study(
        arm,
        pl.example_file("six_axis_arm.brakes.yaml"),
        space,
        Sobol(4),
        results=tmp_path / "arm.csv",
        jobs=1,
        search=False,
    )
    rows = study.to_dataframe()
    assert len(rows) == 4 and tuple(rows.columns) == study.names
    assert "4 of 4 cases stopped" in study._repr_html_()
