"""Robots as units of a co-simulation, run by a tool of others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fmpy
import fmpy.validation
import numpy as np
import pytest

import pinloop as pl


@pytest.fixture(scope="module")
def unit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    robot = pl.example("fourbar")
    q = pl.assemble(robot, {"joint_1": 0.4})
    return pl.export_fmu(robot, tmp_path_factory.mktemp("unit") / "fourbar.fmu", q)


def moved(unit: Path, torque: float, lock_at: float = 1.0) -> Any:
    """Communication points of a run of the unit, as a table."""
    t = np.array([0.0, lock_at - 1e-9, lock_at, 1.0])
    names = [("time", np.float64), ("joint_1.torque", np.float64), ("joint_1.locked", np.bool_)]
    inputs = np.array([(x, torque, x >= lock_at) for x in t], dtype=names)
    return fmpy.simulate_fmu(
        str(unit), stop_time=0.4, output_interval=0.01, input=inputs, fmi_type="CoSimulation"
    )


def test_a_unit_says_what_fmi_asks_for(unit: Path) -> None:
    assert fmpy.validation.validate_fmu(str(unit)) == []
    description = fmpy.read_model_description(str(unit))
    assert description.fmiVersion == "3.0" and description.coSimulation is not None
    causes = {x.name: x.causality for x in description.modelVariables}
    assert causes["joint_1.torque"] == causes["joint_1.locked"] == "input"
    assert causes["joint_3.position"] == causes["joint_3.velocity"] == "output"


def test_a_unit_moves_as_the_robot(unit: Path) -> None:
    robot = pl.example("fourbar")
    q = pl.assemble(robot, {"joint_1": 0.4})
    run = pl.simulate(robot, q, until=0.4, forces=[pl.Torque("joint_1", 3.0)])
    table = moved(unit, 3.0)
    assert len(table) > 35
    for row in table:
        _, q, v = run(row["time"])
        for name in robot.joints:
            at = robot.coordinates(name)
            assert row[f"{name}.position"] == pytest.approx(q[at.q][0], abs=1e-7)
            assert row[f"{name}.velocity"] == pytest.approx(v[at.v][0], abs=1e-6)


def test_a_unit_locks(unit: Path) -> None:
    table = moved(unit, 3.0, lock_at=0.2)
    late = table["time"] > 0.215
    assert np.ptp(table["joint_1.position"][late]) < 1e-12
    assert np.ptp(table["joint_1.position"][~late]) > 0.01
    assert np.abs(table["joint_1.velocity"][late]).max() < 1e-12


@pytest.mark.parametrize("name", ["fourbar.zip", "four-bar.fmu", "class.fmu"])
def test_units_have_names(name: str, tmp_path: Path) -> None:
    robot = pl.example("fourbar")
    with pytest.raises(pl.PinloopError, match=name.partition(".")[0]):
        pl.export_fmu(robot, tmp_path / name, pl.assemble(robot))
    assert not list(tmp_path.iterdir())


def test_starts_and_drives_are_checked(tmp_path: Path) -> None:
    robot = pl.example("fourbar")
    q = pl.assemble(robot)
    with pytest.raises(pl.LoopNotClosed):
        pl.export_fmu(robot, tmp_path / "x.fmu", q + 0.3)
    with pytest.raises(pl.PinloopError, match="knee"):
        pl.export_fmu(robot, tmp_path / "x.fmu", q, driven=["knee"])
    with pytest.raises(pl.PinloopError, match="give a list"):
        pl.export_fmu(robot, tmp_path / "x.fmu", q, driven="joint_1")
    assert not list(tmp_path.iterdir())
