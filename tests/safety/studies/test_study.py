"""`study`: rows in order and the same everywhere, failures as rows, warnings, mistakes."""

from __future__ import annotations

import gc
import tracemalloc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

import pinloop as pl
from pinloop.safety.space.solids import Obstacle
from pinloop.safety.studies.cases import Setup

from ...states import URDF
from . import wheels

# The package has a function of the same name.
module = import_module("pinloop.safety.studies.study")


@pytest.fixture(scope="module")
def arm() -> pl.Mechanism:
    return pl.load(URDF / "six_axis_arm.urdf")


@pytest.fixture(scope="module")
def palletizer() -> pl.Mechanism:
    return pl.load(URDF / "palletizer.urdf")


# -- results --------------------------------------------------------------------------------------


def test_every_case_is_the_closed_form() -> None:
    study = wheels.study(pl.safety.Sobol(32, seed=2))
    assert study.complete and study.outcomes() == {"stopped": 32}
    rows = list(study.rows())
    assert [row["case"] for row in rows] == list(range(32))
    for row in rows:
        speed, late, band = (
            float(row[name]) for name in ("axis_speed_rad_per_s", "axis_delay_s", "axis_band")
        )
        time, angle = wheels.stopping(speed, late, band)
        assert row["stopping_time_s"] == pytest.approx(time, rel=1e-7)
        assert row["axis_excursion_rad"] == pytest.approx(angle, rel=1e-6, abs=1e-9)
        assert row["kinetic_energy_J"] == pytest.approx(speed**2, rel=1e-12)


def test_corners_of_bands_speeds_and_delays() -> None:
    space = replace(wheels.SPACE, pose={"axis": 0.0})
    study = wheels.study(pl.safety.Corners(), space=space)
    ends = product((-wheels.FASTEST, wheels.FASTEST), (0.0, 0.04), (-1.0, 1.0))
    found = zip(*map(study.column, ("axis_speed_rad_per_s", "axis_delay_s", "axis_band")),
                strict=True)  # fmt: skip
    assert list(found) == list(ends)
    times = [wheels.stopping(*corner)[0] for corner in
             product((3.0, 3.0), (0.0, 0.04), (-1.0, 1.0))]  # fmt: skip
    assert study.column("stopping_time_s") == pytest.approx(times, rel=1e-7)


def test_instants_of_a_recording(tmp_path: Path) -> None:
    t = np.linspace(0.0, 1.0, 51)
    recording = tmp_path / "wheel.csv"
    lines = [f"{time},{1.5 * time**2}" for time in t]  # speeds up at 3 rad/s^2
    recording.write_text("\n".join(["t,axis", *lines]))
    motion = pl.safety.JointTrajectory.from_csv(recording)
    study = wheels.study(
        pl.safety.Grid(9), space=pl.safety.Space(motion=motion, instant=(0.1, 0.9))
    )
    instants = study.column("instant_s")
    assert instants == pytest.approx(np.linspace(0.1, 0.9, 9))
    # It goes on speeding up until the command, then turns freely until the brake acts.
    speed = 3.0 * (instants + wheels.COMMAND)
    times = wheels.COMMAND + wheels.DELAY + speed * wheels.INERTIA / wheels.TORQUE
    assert study.column("stopping_time_s") == pytest.approx(times, rel=1e-6)


def test_replay_and_worst() -> None:
    study = wheels.study(pl.safety.Random(20, seed=1))
    angles = study.column("axis_excursion_rad")
    worst = study.worst("axis_excursion_rad")
    assert angles[worst] == angles.max()
    assert study.replay(worst).joints["axis"].excursion == angles[worst]
    assert study.values(worst)["speed.axis"] == study.column("axis_speed_rad_per_s")[worst]
    assert repr(study).startswith("<Study of ") and "20 of 20 cases" in repr(study)
    with pytest.raises(pl.BadValue, match="there is no case 20; the study has cases 0 to 19"):
        study.replay(20)
    with pytest.raises(pl.UnknownName, match=r"no column 'axis_excursion'.*did you mean"):
        study.column("axis_excursion")


def test_signed_columns_count_by_their_size() -> None:
    study = wheels.study(pl.safety.Grid({"speed.axis": 3}), space=replace(wheels.SPACE, speed=
                         {"axis": (-3.0, 1.0)}))  # fmt: skip
    assert study.worst("axis_braking_rad") == 0


def test_the_nearest_case_is_the_worst_clearance(arm: pl.Mechanism) -> None:
    near = Obstacle.box("post", [0.2, 0.2, 2.0], (1.8, 0.9, 1.0))
    study = pl.study(
        arm,
        URDF / "six_axis_arm.brakes.yaml",
        sampling=pl.safety.Sobol(4),
        jobs=1,
        obstacles=near,
        search=False,
    )
    distances = study.column("clearance_m")
    assert distances.max() > distances.min()
    assert study.worst("clearance_m") == int(np.argmin(distances))


def test_parquet_holds_the_same(palletizer: pl.Mechanism, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    study = pl.study(
        palletizer,
        URDF / "palletizer.brakes.yaml",
        sampling=pl.safety.Grid({"pose.shoulder": 3, "pose.elbow": 3}),
        jobs=1,
        search=False,
    )
    assert study.outcomes()["failed"] >= 1
    table = parquet.read_table(study.to_parquet(tmp_path / "study.parquet"))
    assert tuple(table.column_names) == study.names
    assert table.num_rows == 9
    for ours, theirs in zip(study.rows(), table.to_pylist(), strict=True):
        for name, value in ours.items():
            np.testing.assert_equal(theirs[name], value, name)
    with pytest.raises(pl.PinloopError, match="cannot be written"):
        study.to_parquet(tmp_path / "no" / "study.parquet")


# -- everywhere the same --------------------------------------------------------------------------


@contextmanager
def dask_cluster() -> Iterator[None]:
    """A real cluster of two processes."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        yield


@contextmanager
def threads() -> Iterator[None]:
    with joblib.parallel_config(backend="threading"):
        yield


@contextmanager
def processes() -> Iterator[None]:
    yield


@pytest.fixture(scope="module")
def alone(
    arm: pl.Mechanism, palletizer: pl.Mechanism, tmp_path_factory: pytest.TempPathFactory
) -> list[bytes]:
    return both(arm, palletizer, tmp_path_factory.mktemp("alone"), 1)


def both(arm: pl.Mechanism, palletizer: pl.Mechanism, folder: Path, jobs: int) -> list[bytes]:
    """Results of the arm, with payloads, bands and an obstacle, and of a robot with loops."""
    space = pl.safety.Space(payload=(0.0, 10.0), band=(-1.0, 1.0))
    arguments: dict[str, Any] = {"sampling": pl.safety.Sobol(9, seed=4), "jobs": jobs}
    ring = Obstacle.box("post", [0.2, 0.2, 2.0], (1.8, 0.9, 1.0))
    one = pl.study(arm, URDF / "six_axis_arm.brakes.yaml", space, obstacles=ring,
                   results=folder / "arm.csv", **arguments, search=False)  # fmt: skip
    two = pl.study(
        palletizer,
        URDF / "palletizer.brakes.yaml",
        results=folder / "loops.csv",
        **arguments,
        search=False,
    )
    return [study.path.read_bytes() for study in (one, two)]


@pytest.mark.parametrize("where", [processes, threads, dask_cluster])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_results_are_the_same_to_the_last_byte(
    where: Any, arm: pl.Mechanism, palletizer: pl.Mechanism, alone: list[bytes], tmp_path: Path
) -> None:
    with where():
        assert both(arm, palletizer, tmp_path, 2) == alone


def test_results_do_not_depend_on_how_cases_are_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = set()
    for first, pause in ((1, 0.0), (4, 1.0), (7, 0.02)):
        monkeypatch.setattr(module, "_BATCH", first)
        monkeypatch.setattr(module, "_ROUND", pause)
        found.add(wheels.study(pl.safety.Sobol(45), tmp_path / f"{first}.csv").path.read_bytes())
    assert len(found) == 1


# -- failures, warnings ---------------------------------------------------------------------------


def test_cases_that_cannot_be_computed_are_rows(palletizer: pl.Mechanism) -> None:
    study = pl.study(
        palletizer,
        URDF / "palletizer.brakes.yaml",
        sampling=pl.safety.Grid({"pose.shoulder": 3, "pose.elbow": 3}),
        jobs=1,
        search=False,
    )
    assert study.complete and sum(study.outcomes().values()) == 9
    failed = [row for row in study.rows() if row["outcome"] == "failed"]
    assert failed and len(failed) == study.outcomes()["failed"] < 9
    for row in failed:
        assert str(row["reason"]).startswith("robot 'palletizer': ")
        assert np.isnan(float(row["stopping_time_s"])) and np.isfinite(float(row["case"]))
        with pytest.raises(pl.LoopNotClosed):
            study.replay(int(float(row["case"])))


def test_robots_that_do_not_hold_are_told_apart(arm: pl.Mechanism) -> None:
    brakes = pl.Brakes.from_yaml(URDF / "six_axis_arm.brakes.yaml").missing("joint_2")
    study = pl.study(arm, brakes, sampling=pl.safety.Random(4), until=2.0, jobs=1, search=False)
    # Where the arm swings back at the end, nobody knows yet whether it would hold.
    assert set(study.outcomes()) <= {"does not hold", "time-out"}
    assert study.outcomes()["does not hold"] >= 2


def test_speeds_above_limits_are_told(arm: pl.Mechanism) -> None:
    space = pl.safety.Space(speed={"joint_1": (-3.6, 3.6), "joint_2": (0.0, 1.0)})
    top = arm.model.upperVelocityLimit[0]
    assert top < 3.6
    brakes = URDF / "six_axis_arm.brakes.yaml"
    with pytest.warns(pl.PinloopWarning, match="'joint_1' go to 3.6 rad/s, above its limit of"):
        pl.study(arm, brakes, space, pl.safety.Random(1), jobs=1, search=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pl.study(arm, brakes, pl.safety.Space(), pl.safety.Random(1), jobs=1, search=False)
    t = np.linspace(0.0, 1.0, 11)
    fast = pl.safety.JointTrajectory(arm.actuated, t, 3.6 * t[:, None] * np.eye(6)[0])
    with pytest.warns(pl.PinloopWarning, match=r"'joint_1' reaches 3\.6 rad/s"):
        pl.study(
            arm, brakes, pl.safety.Space(motion=fast), pl.safety.Random(1), jobs=1, search=False
        )


# -- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "error", "match"),
    [
        ({"sampling": pl.safety.Grid(0)}, pl.BadValue, r"a grid has 1, 2, \.\.\. values"),
        ({"sampling": pl.safety.Grid({"payload": 2})}, pl.BadValue, "the grid counts 'payload'"),
        ({"space": pl.safety.Space(speed={"motor": 1.0})}, pl.UnknownName, "no joint 'motor'"),
        ({"jobs": 0}, pl.BadValue, "jobs is 0; give a number of processes, or -1"),
        ({"jobs": 1.5}, pl.BadValue, "jobs is 1.5"),
        ({"until": -1.0}, pl.BadValue, "until is -1.0 s"),
        ({"category": 3}, pl.BadValue, "category is 3"),
        (
            {"brakes": pl.Brakes({"motor": pl.safety.JointBrake()})},
            pl.UnknownName,
            "no joint 'motor'",
        ),
        ({"obstacles": []}, pl.BadValue, "there is no obstacle"),
        (
            {"space": pl.safety.Space(pose={"axis": 0.0}, speed={"axis": 1.0})},
            pl.BadValue,
            r"nothing varies in this study of robot .* its 4 cases would be the same",
        ),
    ],
)
def test_mistakes_are_told_before_anything_is_computed(
    words: dict[str, Any], error: type[pl.PinloopError], match: str, tmp_path: Path
) -> None:
    arguments: dict[str, Any] = {
        "brakes": wheels.BRAKES, "space": wheels.SPACE, "sampling": pl.safety.Random(4), "jobs": 1,
        "results": tmp_path / "r.csv",
    }  # fmt: skip
    with pytest.raises(error, match=match):
        pl.study(wheels.robot(), **(arguments | words), search=False)
    assert not (tmp_path / "r.csv").exists()


def test_a_motion_of_other_joints_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    results = tmp_path / "results.csv"
    for joints, error, told in (
        ("t,joint_1,joint_2,joint_3,joint_4,joint_5", pl.BadValue, "actuated joints 'joint_6'"),
        ("t,joint_1,joint_2,joint_3,joint_4,joint_5,joint_9", pl.LoadError, r"m\.csv: no joint 'j"),
    ):
        zeros = ",0" * joints.count(",")
        (tmp_path / "m.csv").write_text(f"{joints}\n0{zeros}\n1{zeros}\n")
        motion = pl.safety.JointTrajectory.from_csv(tmp_path / "m.csv")
        with pytest.raises(error, match=told):
            pl.study(
                pl.load(URDF / "six_axis_arm.urdf"), URDF / "six_axis_arm.brakes.yaml",
                pl.safety.Space(motion=motion), pl.safety.Random(2), jobs=1, results=results,
                search=False,
            )  # fmt: skip
    assert not results.exists()


def test_a_motion_belongs_to_the_space() -> None:
    motion = pl.safety.JointTrajectory(("axis",), np.array([0.0, 1.0]), np.array([[0.0], [1.0]]))
    with pytest.raises(pl.BadValue, match="give the motion to the space, not the trigger"):
        pl.study(
            wheels.robot(),
            wheels.BRAKES,
            wheels.SPACE,
            trigger=pl.safety.Trigger(motion, 0.5),
            search=False,
        )


def test_one_case_where_nothing_varies() -> None:
    space = pl.safety.Space(pose={"axis": 0.0}, speed={"axis": 1.0})
    study = wheels.study(pl.safety.Grid(), space=space)
    assert study.column("stopping_time_s") == pytest.approx([wheels.stopping(1.0)[0]], rel=1e-7)


# -- progress and memory --------------------------------------------------------------------------


def test_the_bar_shows_cases_rate_and_time_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in (("FORCE_COLOR", "1"), ("TERM", "xterm"), ("COLUMNS", "100")):
        monkeypatch.setenv(name, value)
    results = tmp_path / "r.csv"
    pl.study(wheels.robot(), wheels.BRAKES, wheels.SPACE, pl.safety.Random(12), results=results,
             jobs=1, progress=True, search=False)  # fmt: skip
    out, err = capsys.readouterr()
    assert out == ""
    assert "12 / 12 stops" in err and " per s" in err and "0:00:00" in err
    pl.study(
        wheels.robot(),
        wheels.BRAKES,
        wheels.SPACE,
        pl.safety.Random(12),
        results=results,
        jobs=1,
        search=False,
    )
    assert capsys.readouterr() == ("", "")


def test_the_bar_is_told_every_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []

    @contextmanager
    def bar(done: int, size: int, name: str) -> Iterator[Any]:
        assert (done, size) == (0, 20)
        yield told.append

    monkeypatch.setattr(module, "case_bar", bar)
    monkeypatch.setattr(module, "_ROUND", 0.0)
    pl.study(
        wheels.robot(),
        wheels.BRAKES,
        wheels.SPACE,
        pl.safety.Random(20),
        jobs=1,
        progress=True,
        results=tmp_path / "r.csv",
        search=False,
    )
    assert told == [16, 20]


def test_memory_does_not_grow_with_the_number_of_cases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    known = wheels.study(pl.safety.Random(1))
    (row,) = known.rows()
    stop = known.replay(0)
    monkeypatch.setattr(
        Setup, "evaluate", lambda setup, number, values: (row | {"case": float(number)}, stop)
    )
    monkeypatch.setattr(module, "_ROUND", 0.0)
    # A collection clears Python's lists of free tuples, too: pickling fills them up to a limit.
    # What other tests have left need not be gone through each time.
    collecting = nullcontext(lambda done: gc.collect())
    monkeypatch.setattr(module, "_progress", lambda *_: collecting)
    request.addfinalizer(gc.unfreeze)
    gc.freeze()

    def peak(count: int) -> int:
        tracemalloc.start()
        try:
            study = wheels.study(pl.safety.Random(count), tmp_path / f"{count}.csv")
            assert study.outcomes() == {"stopped": count}
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(10)
    # Peaks differ by 200 kilobytes for any count. A row takes two: 750 rows kept would be 1,500.
    assert peak(800) < peak(50) + 500_000
