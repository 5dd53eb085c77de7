"""A study that is killed or interrupted, and started again: no case is lost, none is done twice."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures.process import BrokenProcessPool
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from threading import active_count
from typing import Any

import numpy as np
import pytest

import pinloop as pl
from pinloop.safety.space.solids import Obstacle
from pinloop.safety.studies.cases import Setup, manifest_of
from pinloop.safety.studies.journal import Journal
from pinloop.safety.studies.workers import _end_with

from ...states import URDF
from . import wheels

ROOT = Path(__file__).parents[3]
SIZE = 200

# The rounds are short, so that something is written before the end.
PROGRAM = f"""
import sys, warnings
from importlib import import_module
from pathlib import Path
import pinloop as pl
from tests.safety.studies import wheels

import_module("pinloop.safety.studies.study")._ROUND = 0.02
warnings.simplefilter("ignore", ResourceWarning)
study = wheels.study(pl.safety.Sobol({SIZE}, seed=3), Path(sys.argv[1]), int(sys.argv[2]))
print(study.done, study.complete, len(list(study.rows())))
"""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("whole") / "results.csv"
    assert wheels.study(pl.safety.Sobol(SIZE, seed=3), path).complete
    return path.read_bytes()


def started(path: Path, jobs: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(path), str(jobs)],
        cwd=ROOT,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(path: Path, lines: int, process: subprocess.Popen[str]) -> None:
    """Until a file has some lines."""
    end = time.monotonic() + 60.0
    while time.monotonic() < end and process.poll() is None:
        if path.exists() and path.read_bytes().count(b"\n") > lines:
            return
        time.sleep(0.005)
    raise AssertionError(f"no {lines} lines in time: {process.communicate()}")


@pytest.mark.parametrize("jobs", [1, 2])
def test_killed_in_the_middle_and_started_again(
    tmp_path: Path, jobs: int, undisturbed: bytes
) -> None:
    path = tmp_path / "results.csv"
    process = started(path, jobs)
    wait_for(path, 20, process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=30)
    assert process.returncode == -signal.SIGKILL
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    assert len(whole) < len(undisturbed) and undisturbed.startswith(whole)
    with path.open("ab") as file:  # as a kill within a write leaves it
        file.write(b'199,0.1,"torn')
    study = wheels.study(pl.safety.Sobol(SIZE, seed=3), path)
    assert study.complete
    assert path.read_bytes() == undisturbed


@pytest.mark.parametrize("lines", [0, 20], ids=["while they start", "while they work"])
def test_workers_end_with_a_study_that_is_killed(
    lines: int, tmp_path: Path, undisturbed: bytes
) -> None:
    """Only the process of the study is: its workers hear nothing of it, and end all the same."""
    path = tmp_path / "results.csv"
    process = started(path, 2)
    wait_for(path, lines, process)
    time.sleep(0.0 if lines else 0.2)  # they begin to import after the first line
    process.kill()
    process.communicate(timeout=30)  # until nobody can write to its output any more
    with pytest.raises(ProcessLookupError):  # nor is anybody left of its session
        for _ in range(600):
            os.killpg(process.pid, 0)
            time.sleep(0.05)
    assert wheels.study(pl.safety.Sobol(SIZE, seed=3), path).complete
    assert path.read_bytes() == undisturbed


def test_ctrl_c_returns_what_is_done(tmp_path: Path, undisturbed: bytes) -> None:
    """A terminal sends Ctrl-C to the processes of the study as well."""
    path = tmp_path / "results.csv"
    process = started(path, 2)
    wait_for(path, 20, process)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    done, complete, rows = out.split()
    assert complete == "False" and done == rows and 20 < int(done) < SIZE
    assert f"interrupted after {done} of {SIZE} cases; the same study with results=" in err
    assert undisturbed.startswith(path.read_bytes())
    assert path.read_bytes().count(b"\n") == int(done) + 1
    assert wheels.study(pl.safety.Sobol(SIZE, seed=3), path).complete
    assert path.read_bytes() == undisturbed


def test_what_is_done_is_not_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "results.csv"
    first = wheels.study(pl.safety.Random(40), path)
    content = path.read_bytes()
    lines = content.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:31]))
    asked: list[int] = []
    evaluate = Setup.evaluate

    def watched(setup: Setup, number: int, values: Any) -> Any:
        asked.append(number)
        return evaluate(setup, number, values)

    monkeypatch.setattr(Setup, "evaluate", watched)
    again = wheels.study(pl.safety.Random(40), path)
    assert asked == list(range(30, 40))
    assert path.read_bytes() == content and again.done == first.done == 40
    wheels.study(pl.safety.Random(40), path)
    assert len(asked) == 10


def test_no_room_on_the_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "results.csv"
    module, fsync, writes = import_module("pinloop.safety.studies.study"), os.fsync, 0

    def full(descriptor: int) -> None:
        nonlocal writes
        writes += 1
        if writes == 3:
            raise OSError(28, "No space left on device")
        fsync(descriptor)

    monkeypatch.setattr(module, "_ROUND", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr("pinloop.safety.studies.journal.os.fsync", full)
        with pytest.raises(pl.PinloopError, match=r"\(No space left on device\)") as caught:
            wheels.study(pl.safety.Sobol(30), path)
    done = re.search(r"(\d+) cases are done", str(caught.value))
    assert done is not None and 0 < int(done[1]) < 30
    assert path.read_bytes().count(b"\n") == int(done[1]) + 1
    wheels.study(pl.safety.Sobol(30), path)
    wheels.study(pl.safety.Sobol(30), tmp_path / "whole.csv")
    assert path.read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_a_worker_that_dies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("pinloop.safety.studies.study")
    calls = 0
    batch = module._batch

    def dying(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > 4:
            raise BrokenProcessPool("a process in the process pool was terminated")
        return batch(*arguments)

    monkeypatch.setattr(module, "_batch", dying)
    with pytest.raises(pl.PinloopError, match=r"16 of 40 cases are in .*: start the same study"):
        wheels.study(pl.safety.Random(40), tmp_path / "results.csv")


# -- the same study, and others -------------------------------------------------------------------


def test_the_same_study_from_another_place(tmp_path: Path) -> None:
    """Neither where files lie nor the process matter, only what is in them."""
    folder = tmp_path / "copy"
    folder.mkdir()
    for name in ("six_axis_arm.urdf", "six_axis_arm.brakes.yaml"):
        (folder / name).write_bytes((URDF / name).read_bytes())
    contents = []
    for place in (URDF, folder):
        robot = pl.load(place / "six_axis_arm.urdf")
        study = pl.study(
            robot,
            place / "six_axis_arm.brakes.yaml",
            sampling=pl.safety.Sobol(2),
            results=tmp_path / "r.csv",
            payload=pl.Payload(2.0, com=np.array([0.0, 0.0, 0.1])),
            obstacles=Obstacle.box("table", [1, 1, 0.1], (2.0, 0.0, 0.0)),
            gravity=[0, 0, -9.81],
            jobs=1,
            search=False,
        )
        contents.append(study.path.read_bytes())
    assert contents[0] == contents[1]


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"sampling": pl.safety.Sobol(5)}, "sampling"),
        ({"sampling": pl.safety.Sobol(4, seed=1)}, "sampling"),
        ({"category": 1}, "category"),
        ({"payload": 1.0}, "payload"),
        ({"payload": pl.Payload(2.0, com=np.array([0.0, 0.0, 0.1 + 1e-12]))}, "payload"),
        ({"gravity": [0, 0, -9.80]}, "gravity"),
        ({"until": 5.0}, "until"),
        ({"method": pl.MuntheKaas(rtol=1e-7)}, "method"),
        ({"trigger": pl.safety.Trigger(sensor=0.1)}, "trigger"),
        ({"obstacles": [Obstacle.box("table", [1, 1, 0.2], (2.0, 0.0, 0.0))]}, "obstacles"),
        ({"obstacles": [Obstacle.box("table", [1, 1, 0.1], (2.1, 0.0, 0.0))]}, "obstacles"),
        ({"space": pl.safety.Space(speed=0.5)}, "variables"),
        ({"weak": True}, "brakes_sha256"),
        ({"heavy": True}, "robot_sha256"),
    ],
)
def test_another_study_is_not_appended_to(
    changes: dict[str, Any], key: str, tmp_path: Path
) -> None:
    robot = pl.load(URDF / "six_axis_arm.urdf")
    brakes = pl.Brakes.from_yaml(URDF / "six_axis_arm.brakes.yaml")
    usual: dict[str, Any] = {
        "sampling": pl.safety.Sobol(4),
        "results": tmp_path / "r.csv",
        "payload": pl.Payload(2.0, com=np.array([0.0, 0.0, 0.1])),
        "gravity": [0, 0, -9.81],
        "obstacles": [Obstacle.box("table", [1, 1, 0.1], (2.0, 0.0, 0.0))],
        "jobs": 1,
    }
    pl.study(robot, brakes, **(usual | {"sampling": pl.safety.Sobol(4)}), search=False)
    content = (tmp_path / "r.csv").read_bytes()
    changes = dict(changes)
    if changes.pop("weak", False):
        brakes = brakes.weak("joint_6", 0.999)
    if changes.pop("heavy", False):
        text = (URDF / "six_axis_arm.urdf").read_text()
        mass = re.search(r'<mass value="([\d.]+)"', text)
        assert mass is not None
        heavy = tmp_path / "six_axis_arm.urdf"
        heavy.write_text(text.replace(mass[0], f'<mass value="{float(mass[1]) + 1e-9}"', 1))
        robot = pl.load(heavy)
    with pytest.raises(pl.PinloopError, match=f"holds another study: its {key} is "):
        pl.study(robot, brakes, **(usual | changes), search=False)
    assert (tmp_path / "r.csv").read_bytes() == content


def test_obstacles_of_all_kinds_can_be_told_apart(tmp_path: Path) -> None:
    import trimesh

    from pinloop.safety.studies.cases import manifest_of

    setup = wheels.study(pl.safety.Random(1)).setup
    ring = trimesh.creation.torus(1.0, 0.1)
    wide = trimesh.creation.torus(1.001, 0.1)
    brick = trimesh.creation.box((1, 2, 3))
    made = [
        Obstacle.box("x", [1, 1, 1]), Obstacle.sphere("x", 1.0, [0, 0, 0]),
        Obstacle.sphere("x", 1.1, [0, 0, 0]), Obstacle.mesh("x", ring), Obstacle.mesh("x", wide),
        Obstacle.mesh("x", brick), Obstacle.mesh("x", brick, scale=2.0),
    ]  # fmt: skip

    def digest(one: Obstacle) -> str:
        from dataclasses import replace

        found = manifest_of(replace(setup, obstacles=(one,)), pl.safety.Random(1))["obstacles"]["x"]
        assert isinstance(found, str)
        return found

    assert len({digest(one) for one in made}) == len(made)
    assert digest(Obstacle.mesh("x", ring)) == digest(Obstacle.mesh("x", ring.copy()))


def test_more_rows_than_cases_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    whole = wheels.study(pl.safety.Sobol(4, seed=3), path, jobs=1)
    journal = Journal(path, whole.names, manifest_of(whole.setup, whole.sampling))
    journal.append([{**row, "case": float(k + 4)} for k, row in enumerate(whole.rows())])
    with pytest.raises(pl.PinloopError, match="holds 8 cases, but the study has only 4; move it"):
        wheels.study(pl.safety.Sobol(4, seed=3), path, jobs=1)


def _watch_another() -> None:
    """What a worker does whose parent is not the process that has asked, as on other machines."""
    before = active_count()
    _end_with(os.getppid() + 1)
    sys.exit(active_count() - before)


def test_a_worker_of_another_parent_watches_none() -> None:
    worker = get_context("spawn").Process(target=_watch_another)
    worker.start()
    worker.join()
    assert worker.exitcode == 0
