"""Tests of `pinloop.simulation.trajectory` and `pinloop.simulation.analysis`: evaluation,
momenta, files.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import pinloop as pl

from .. import motion_by_hand as hand
from ..screw_tables import Array
from ..states import SHIPPED, SMALL, moving, one_body, robot


def short(
    machine: pl.Mechanism, seed: int = 1, until: float = 0.03, **options: Any
) -> pl.Trajectory:
    return pl.simulate(machine, *moving(machine, seed), until=until, **options)


# -- evaluation -----------------------------------------------------------------------------


def test_states_at_times() -> None:
    machine = robot("four-bar")
    run = short(machine, until=0.5, start=0.1)
    one = run(0.2)
    assert isinstance(one.t, float) and one.q.shape == one.v.shape == (3,)
    many = run([0.2, 0.1, 0.5])
    assert many.q.shape == many.v.shape == (3, 3)
    np.testing.assert_array_equal(many.q[0], one.q)
    np.testing.assert_array_equal(many.q[1], run.q[0])
    np.testing.assert_array_equal(many.v[2], run.v[-1])
    np.testing.assert_array_equal(many.t, [0.2, 0.1, 0.5])
    one.q[:] = np.nan
    run(0.1).q[:] = np.nan
    assert np.all(np.isfinite(run.q))  # what is handed out is the caller's own


@pytest.mark.parametrize("t", [0.05, 0.51, -np.inf, np.nan, [0.2, 0.6], "soon", [], [[0.2]]])
def test_times_that_are_not_in_the_run(t: Any) -> None:
    run = short(robot("four-bar"), until=0.5, start=0.1)
    with pytest.raises(pl.BadValue):
        run(t)


def test_the_message_tells_where_the_run_is() -> None:
    run = short(robot("four-bar"), until=0.5, start=0.1)
    with pytest.raises(pl.BadValue, match=r"time 0\.6 s is outside the run.*0\.1 to 0\.5 s"):
        run(0.6)
    assert repr(run).startswith("<Trajectory of 'four-bar': ")
    assert "t = 0.1 ... 0.5 s, done" in repr(run)


def test_quaternions_stay_of_unit_length() -> None:
    machine = one_body("spherical", com=(0.2, 0.1, 0.3), inertia=(0.1, 0.2, 0.25))
    run = pl.simulate(machine, machine.neutral, np.array([3.0, 5.0, -2.0]), until=2.0)
    inside = run(np.linspace(0, 2, 77))
    for table in (run.q, inside.q):
        np.testing.assert_allclose(np.linalg.norm(table, axis=1), 1.0, atol=1e-14)


@pytest.mark.parametrize("name", ["four-bar", "floating-four-bar", "delta"])
def test_placements_follow_the_states(name: str) -> None:
    machine = robot(name)
    run = short(machine)
    for body in machine.bodies[:2]:
        found = run.placement(body)
        assert len(found) == len(run.t)
        for q, placement in zip(run.q, found, strict=True):
            expected = machine.placement(q, body).homogeneous
            np.testing.assert_array_equal(placement.homogeneous, expected)
    with pytest.raises(pl.UnknownName, match="no body or frame 'nothing'"):
        run.placement("nothing")


@pytest.mark.parametrize("name", ["four-bar", "floating-four-bar", "every-pair", "rssr"])
def test_momenta_are_those_of_the_point_masses(name: str) -> None:
    machine = robot(name)
    run = short(machine)
    found = run.momentum()
    assert found.generalized.shape == run.v.shape and len(found.t) == len(run.t)
    welded = [machine.model.frames[machine.frame_id(b)].parentJoint == 0 for b in machine.bodies]
    masses = hand.point_masses(machine) * ~np.repeat(welded, 8)
    for k in (0, len(run.t) - 1):
        q, v = run.q[k], run.v[k]
        points = hand.points_in_world(machine, q)
        rates = hand.rate(machine, q, v, lambda q: hand.points_in_world(machine, q))
        centre = masses @ points / masses.sum()
        np.testing.assert_allclose(found.linear[k], masses @ rates, atol=1e-8)
        turning = (masses[:, None] * np.cross(points - centre, rates)).sum(axis=0)
        np.testing.assert_allclose(found.angular[k], turning, atol=1e-8)
        twice = 2 * hand.kinetic_energy(machine, q, v)
        assert found.generalized[k] @ v == pytest.approx(twice, rel=1e-7)


def test_closure_is_that_of_all_rows_also_of_those_left_out() -> None:
    machine = robot("four-bar")
    run = short(machine, until=1.0, stabilization=None, method=pl.MuntheKaas("rk4", step=0.05))
    full = pl.Constraints(machine, full=True)
    expected = [np.linalg.norm(full.residual(q)) for q in run.q]
    np.testing.assert_allclose(run.closure(), expected, rtol=1e-9, atol=1e-15)
    assert run.closure()[-1] > 1e-9


# -- saving and loading -----------------------------------------------------------------------


def same(there: pl.Trajectory, here: pl.Trajectory) -> None:
    for part in ("t", "q", "v", "a", "psi", "mode"):
        assert getattr(there, part).tobytes() == getattr(here, part).tobytes()
    assert there.mode.dtype == here.mode.dtype
    assert there.message == here.message and there.robot.name == here.robot.name
    assert there.robot.joints == here.robot.joints and there.robot.bodies == here.robot.bodies
    assert (there.evaluations, there.rejected) == (here.evaluations, here.rejected)
    middle = 0.5 * (here.t[0] + here.t[-1])
    np.testing.assert_allclose(there(middle).q, here(middle).q, atol=1e-13)
    np.testing.assert_allclose(there(middle).v, here(middle).v, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(there.closure(), here.closure(), atol=1e-12)
    ours, theirs = here.momentum(), there.momentum()
    np.testing.assert_allclose(theirs.generalized, ours.generalized, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(there.energy().total, here.energy().total, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", [*SHIPPED, *SMALL])
def test_a_saved_run_comes_back(name: str, tmp_path: Path) -> None:
    run = short(robot(name), losses=False)
    file = run.save(tmp_path / "run.npz")
    assert file == tmp_path / "run.npz"
    same(pl.load_trajectory(file), run)


@pytest.mark.parametrize("space", ["SE3", "SO3xR3", "auto"])
def test_a_run_in_absolute_coordinates_comes_back(space: Any, tmp_path: Path) -> None:
    run = short(robot("rssr").absolute(space))
    same(pl.load_trajectory(run.save(tmp_path / "run")), run)


def test_names_of_files(tmp_path: Path) -> None:
    """What follows a dot is not thrown away: two runs do not end in one file."""
    run = short(robot("planar-3R"))
    files = [run.save(tmp_path / name) for name in ("step_0.1", "step_0.2", "plain", "done.npz")]
    names = [file.name for file in files]
    assert names == ["step_0.1.npz", "step_0.2.npz", "plain.npz", "done.npz"]
    assert all(file.is_file() for file in files)
    assert pl.load_trajectory(str(files[0])).t[-1] == run.t[-1]


def test_files_that_hold_no_run(tmp_path: Path) -> None:
    good = short(robot("planar-3R")).save(tmp_path / "good")
    data = dict(np.load(good))
    text = str(data["robot"])

    def broken(name: str, **changes: Any) -> Path:
        file = tmp_path / f"{name}.npz"
        kept = {key: value for key, value in (data | changes).items() if value is not None}
        np.savez(file, **kept)
        return file

    torn, words = tmp_path / "torn.npz", tmp_path / "words.npz"
    torn.write_bytes(good.read_bytes()[:1000])
    words.write_text("not a run")
    (tmp_path / "empty.npz").write_bytes(b"")
    cases = {
        tmp_path / "missing.npz": "no such file",
        torn: "is not a saved run",
        words: "is not a saved run",
        tmp_path / "empty.npz": "is not a saved run",
        tmp_path: "is a folder",
        broken("no times", t=None): "is not a saved run",
        broken("no robot", robot=None): "is not a saved run",
        broken("odd", robot=np.array("{")): "is not a saved run",
        broken("other", robot=np.array(text.replace("trajectory-3", "trajectory-9"))): "format is",
        broken("list", robot=np.array("[1, 2]")): "is not a saved run",
        broken("bare", robot=np.array('{"format": "pinloop-trajectory-1"}')): "is not a saved run",
    }
    for file, message in cases.items():
        with pytest.raises(pl.LoadError, match=message) as caught:
            pl.load_trajectory(file)
        assert str(file) in str(caught.value)


# -- tables ---------------------------------------------------------------------------------


def test_columns_have_units() -> None:
    machine = robot("prrr3")
    columns = short(machine, losses=False).columns()
    names = list(columns)
    assert names[0] == "t_s" and names[-1] == "mode"
    assert "slide_x_position_m" in names and "slide_x_velocity_m_per_s" in names
    assert "hinge_x1_position_rad" in names and "hinge_x1_velocity_rad_per_s" in names
    assert len(names) == 2 + 2 * machine.nv


def test_columns_of_joints_with_several_coordinates() -> None:
    machine = robot("floating-four-bar")
    run = short(machine)
    columns = run.columns()
    places = [f"float_position_{k}_m" for k in range(3)]
    places += [f"float_position_{k}" for k in range(3, 7)]
    rates = [f"float_velocity_{k}_m_per_s" for k in range(3)]
    rates += [f"float_velocity_{k}_rad_per_s" for k in (3, 4, 5)]
    assert [n for n in columns if n.startswith("float_")] == places + rates
    np.testing.assert_array_equal(columns["float_position_2_m"], run.q[:, 2])
    np.testing.assert_array_equal(columns["float_velocity_5_rad_per_s"], run.v[:, 5])
    plane = short(one_body("planar"))
    own = plane.columns()
    assert [n for n in own if n.startswith("joint_position")] == [
        "joint_position_0_m", "joint_position_1_m", "joint_position_2_rad"
    ]  # fmt: skip
    # The angle, stored as cosine and sine, goes on beyond half a turn.
    angle = own["joint_position_2_rad"]
    np.testing.assert_allclose(np.column_stack([np.cos(angle), np.sin(angle)]), plane.q[:, 2:])
    np.testing.assert_allclose(np.diff(angle) / np.diff(plane.t), plane.v[:-1, 2], rtol=1e-3)


@pytest.mark.parametrize("name", ["prrr3", "rssr", "palletizer"])
def test_csv_holds_all_digits(name: str, tmp_path: Path) -> None:
    machine = robot(name)
    run = short(machine, losses=False)
    file = run.to_csv(tmp_path / "run.csv")
    with file.open(newline="", encoding="utf-8") as stream:
        header, *rows = list(csv.reader(stream))
    assert header == list(run.columns()) and len(set(header)) == len(header)
    table = np.array(rows, dtype=float)
    np.testing.assert_array_equal(table[:, 0], run.t)
    kinds = np.array(["_position" in name for name in header[1:-1]])
    np.testing.assert_array_equal(table[:, 1:-1][:, kinds], run.q)
    np.testing.assert_array_equal(table[:, 1:-1][:, ~kinds], run.v)
    assert not table[:, -1].any()


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(pl.BadValue, match=r"pip install pyarrow, or use to_csv"):
        short(robot("planar-3R")).to_parquet(tmp_path / "run.parquet")
    assert not (tmp_path / "run.parquet").exists()


def test_parquet_gets_the_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for pyarrow that keeps what it is given."""
    written: dict[Path, dict[str, Array]] = {}
    arrow, parquet = ModuleType("pyarrow"), ModuleType("pyarrow.parquet")
    arrow.table = dict  # type: ignore[attr-defined]
    arrow.parquet = parquet  # type: ignore[attr-defined]
    parquet.write_table = lambda table, file: written.update({file: table})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pyarrow", arrow)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", parquet)
    run = short(robot("planar-3R"))
    assert run.to_parquet(tmp_path / "run.parquet") == tmp_path / "run.parquet"
    (table,) = written.values()
    assert list(table) == list(run.columns())
    np.testing.assert_array_equal(table["j2_position_rad"], run.q[:, 1])
