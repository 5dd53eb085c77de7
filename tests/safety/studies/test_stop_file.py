"""Stops of a study are computed once: reports, distances and replays read them from its file."""

from __future__ import annotations

import copy
import os
import pickle
import zlib
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pinloop as pl
from pinloop.safety.standards.separation import separation
from pinloop.safety.stopping.export import columns_of
from pinloop.safety.studies.criteria import Records, criteria
from pinloop.safety.studies.journal import pack_stop, unpack_stop

from ...states import URDF
from ..stopping.test_result_is_data import CASES
from . import wheels

cases_module = import_module("pinloop.safety.studies.cases")
file_module = import_module("pinloop.safety.studies.journal")
study_module = import_module("pinloop.safety.studies.study")
FIELDS = ("t", "q", "v", "a", "psi", "mode")


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """One entry per stop that a study computes."""
    stops: list[int] = []
    stop_prepared = cases_module.stop_prepared

    def counted(*arguments: Any) -> Any:
        stops.append(len(stops))
        return stop_prepared(*arguments)

    monkeypatch.setattr(cases_module, "stop_prepared", counted)
    yield stops


def arm_study(folder: Path, count: int = 8, jobs: int = 1) -> pl.Study:
    """Cases with payloads, brakes and an obstacle of their own."""
    space = pl.safety.Space(payload=(0.0, 10.0), band=(-1.0, 1.0), speed=(-0.4, 0.4))
    return pl.study(
        pl.load(URDF / "six_axis_arm.urdf"), URDF / "six_axis_arm.brakes.yaml", space,
        pl.safety.Sobol(count, seed=3), jobs=jobs, results=folder / "arm.csv",
        obstacles=pl.Obstacle.box("post", (0.2, 0.2, 2.0), (1.8, 0.9, 1.0)), search=False,
    )  # fmt: skip


def outputs(study: pl.Study, folder: Path) -> list[object]:
    """What is made from a study's stops: report, distances, replays."""
    page = study.save_html(folder / "report.html").read_bytes()
    distance = separation(study, direction=(1, 0, 0), jobs=1, search=False)
    other = separation(study, point=(5.0, 0.0, 1.0), detection=0.02, jobs=1, search=False)
    replays = [str(study.replay(case).table()) for case in range(study.done)]
    return [page, str(distance), distance.distances, str(other), other.distances, replays]


def test_nothing_is_computed_twice(computed: list[int], tmp_path: Path) -> None:
    study = arm_study(tmp_path)
    assert len(computed) == 8
    fresh = outputs(study, tmp_path)
    again = outputs(arm_study(tmp_path), tmp_path)
    assert len(computed) == 8
    # A study of an earlier version has no such file: then, and only then, they are computed.
    (tmp_path / "arm.csv.stops").unlink()
    former = outputs(arm_study(tmp_path), tmp_path)
    assert len(computed) > 8
    assert fresh == again == former


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_stop_from_the_file_is_the_one_that_was_computed(
    jobs: int, computed: list[int], tmp_path: Path
) -> None:
    study = arm_study(tmp_path, 4, jobs)
    for case in range(study.done):
        del computed[:]
        stored = study.replay(case)
        assert not computed
        made = study.setup.stop(study.values(case))
        for name in FIELDS:
            np.testing.assert_array_equal(getattr(stored.run, name), getattr(made.run, name))
        assert stored.as_dict() == made.as_dict()
        assert stored.warnings == made.warnings


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_every_kind_of_stop_can_be_packed(case: Callable[[], pl.StopResult]) -> None:
    stop = case()
    shared = {
        "robot": stop.robot, "rotors": stop.run.robot, "equations": stop.run.system,
        "train": stop.history.train, "brakes": stop.brakes,
    }  # fmt: skip
    data = pack_stop(stop, shared)
    other = unpack_stop(data, shared)
    assert other is not None and other.robot is stop.robot
    assert str(other.table()) == str(stop.table())
    theirs, ours = columns_of(other), columns_of(stop)
    assert {name: x.tobytes() for name, x in theirs.items()} == {
        name: x.tobytes() for name, x in ours.items()
    }
    assert len(data) < 10_000
    assert unpack_stop(data, {}) is None and unpack_stop(data[:-9], shared) is None


def test_a_search_returns_the_stops_that_it_finds(computed: list[int]) -> None:
    study = wheels.study(pl.safety.Random(6, 2))
    before = len(computed)
    worst = pl.worst_case(study, ["time", "angle:axis"], starts=2, evaluations=30, jobs=1)
    made = len(computed) - before
    corners, again = 64, 2 * len(worst)  # those to start from, and those that are returned
    assert made <= sum(case.evaluations for case in worst.values()) + corners + 2 * again
    for case in worst.values():
        assert case.stop.as_dict() == study.setup.stop(case.values).as_dict()


def test_resumed_and_torn(computed: list[int], tmp_path: Path) -> None:
    """Wherever the file is torn, whole records are read, and the others are computed again."""
    path = tmp_path / "r.csv"
    study = wheels.study(pl.safety.Random(5, 1), path)
    replays = [str(study.replay(case).table()) for case in range(5)]
    stops = tmp_path / "r.csv.stops"
    whole, rows = stops.read_bytes(), path.read_bytes()
    for size in range(0, len(whole), len(whole) // 11):
        stops.write_bytes(whole[:size])
        path.write_bytes(b"".join(rows.splitlines(keepends=True)[:4]))
        del computed[:]
        again = wheels.study(pl.safety.Random(5, 1), path)
        assert path.read_bytes() == rows and len(computed) == 2
        assert [str(again.replay(case).table()) for case in range(5)] == replays
        assert len(computed) - 2 in range(4)


def test_changed_bytes_are_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    study = wheels.study(pl.safety.Random(1, 1), path)
    table, stops = str(study.replay(0).table()), tmp_path / "r.csv.stops"
    whole = stops.read_bytes()
    for place in range(0, len(whole), 41):
        changed = bytearray(whole)
        changed[place] ^= 1 << place % 8
        stops.write_bytes(changed)
        assert str(copy.copy(study).replay(0).table()) == table


def test_only_the_worst_where_there_is_no_room(
    computed: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = list[int]()
    monkeypatch.setattr(file_module, "_MOST", 0)
    monkeypatch.setattr(study_module, "_ROUND", 0.0)
    monkeypatch.setattr(
        cases_module,
        "pack_stop",
        lambda *arguments: packed.append(0) or pack_stop(*arguments),  # type: ignore[func-returns-value]
    )
    study = wheels.study(pl.safety.Random(60, 1), tmp_path / "r.csv")
    assert len(packed) < 60
    del computed[:]
    study.save_html(tmp_path / "report.html")
    assert not computed
    for case in range(60):
        study.replay(case)
    assert 30 < len(computed) < 60


def test_the_first_case_of_each_outcome_and_every_record_is_kept() -> None:
    setup = wheels.study(pl.safety.Random(1)).setup
    records = Records(setup)
    column, other = "stopping_time_s", dict.fromkeys(criteria(setup).values(), 0.0)
    rows = [("failed", 9.0), ("failed", 9.0), ("time-out", 9.0), ("time-out", 9.0),
            ("stopped", 0.5), ("stopped", 0.4), ("stopped", np.inf), ("stopped", 0.6)]  # fmt: skip
    taken = [records.takes(other | {"outcome": end, column: time}) for end, time in rows]
    assert taken == [True, False, True, False, True, False, False, True]


def test_files_of_others(tmp_path: Path) -> None:
    """Stops of another study are no stops of this one; a file of somebody else is not touched."""
    wheels.study(pl.safety.Random(3, 1), tmp_path / "one.csv")
    two = wheels.study(pl.safety.Random(3, 2), tmp_path / "two.csv")
    tables = [str(two.replay(case).table()) for case in range(3)]
    os.replace(tmp_path / "one.csv.stops", tmp_path / "two.csv.stops")
    two = wheels.study(pl.safety.Random(3, 2), tmp_path / "two.csv")
    assert [str(two.replay(case).table()) for case in range(3)] == tables
    (tmp_path / "three.csv.stops").write_text("important\n")
    with pytest.raises(pl.PinloopError, match=r"three\.csv\.stops' exists and is no file of stops"):
        wheels.study(pl.safety.Random(3, 2), tmp_path / "three.csv")
    assert (tmp_path / "three.csv.stops").read_text() == "important\n"
    assert not (tmp_path / "three.csv").exists()
    (tmp_path / "four.csv.stops").mkdir()
    with pytest.raises(pl.PinloopError, match=r"four\.csv\.stops' cannot be written \(Is a dir"):
        wheels.study(pl.safety.Random(3, 2), tmp_path / "four.csv")


class Evil:
    """What a pickle can do that is not data."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch evil",)


@pytest.mark.parametrize(
    "value", [Evil(), pl.Obstacle, print, pl.load, {"a": Evil()}, pl.MuntheKaas()]
)
def test_a_file_of_stops_calls_nothing(
    value: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert unpack_stop(zlib.compress(pickle.dumps(value)), {}) is None
    assert list(tmp_path.iterdir()) == []


def test_a_study_is_a_value(tmp_path: Path) -> None:
    study = wheels.study(pl.safety.Random(3, 1), tmp_path / "r.csv")
    before = pickle.dumps(study)
    study.replay(1)
    assert pickle.dumps(study) == before
    again = pickle.loads(before)
    assert str(again.replay(1).table()) == str(study.replay(1).table())
