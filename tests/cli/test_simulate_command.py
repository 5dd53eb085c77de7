"""`pinloop simulate` and `pinloop play`: scenarios run, files are written, nothing is lost."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from tools.schemas import schema_of

import pinloop as pl
from pinloop.cli import main as cli
from pinloop.dynamics.kernel_tables import HAS_KERNEL
from pinloop.integrate import Stepper
from pinloop.simulation.native_steps import NativeSteps

from ..beam_files import beam
from ..fourbar_files import fourbar
from .commands import Captured, printed_json, program

ROBOTS = Path(__file__).parents[2] / "urdf"

PLAIN: dict[str, Any] = {
    "format": "pinloop-scenario-1",
    "robot": "beam.urdf",
    "until": 0.2,
    "start": {"q": {"rail": 0.5}, "v": {"axis": 2.0}, "locked": ["rail"]},
    "events": [{"lock": "axis", "at": 0.1}],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    beam(tmp_path)
    fourbar(tmp_path)
    return tmp_path


def written(folder: Path, **changes: Any) -> str:
    path = folder / "x.yaml"
    path.write_text(yaml.safe_dump(PLAIN | changes, sort_keys=False))
    return str(path)


def document(capsys: Captured, *words: str, code: int = 0) -> dict[str, Any]:
    return printed_json(capsys, *words, code=code, schema=schema_of("run"))


# -- what is printed ------------------------------------------------------------------------------


def test_what_came_out_is_printed(folder: Path, capsys: Captured) -> None:
    assert cli.run(["simulate", written(folder)]) == 0
    out, err = capsys.readouterr()
    assert err == "" and "\x1b" not in out
    assert out.startswith("beam: done at 0.2 s\n")
    flat = re.sub(" +", " ", out)
    # The beam turns 0.2 rad, then stands; the slide is 500 mm out all the time.
    assert "axis 0.000 11.459 0.000 deg, deg/s" in flat
    assert "rail 500.000 500.000 0.000 mm, mm/s" in flat
    # I = 0.1 + 2 * 0.25 + 0.1 + 0.25 = 0.95: 0.5 I 2^2 = 1.9 J and 0.95 * 2 = 1.9 N m s are lost.
    assert "lock axis 0.1 1.9 regular" in flat
    assert "lock:axis -1.9 N m s yes" in flat
    assert max(map(len, out.splitlines())) <= 100


def test_json_has_the_same(folder: Path, capsys: Captured) -> None:
    data = document(capsys, "simulate", written(folder))
    assert (data["format"], data["robot"]) == ("pinloop-run-1", "beam")
    assert (data["ended"], data["failure"], data["end_s"]) == ("done", None, 0.2)
    assert data["events"] == [{"t_s": 0.1, "name": "lock axis"}]
    (change,) = data["transitions"]
    assert change["energy_loss_J"] == pytest.approx(1.9, rel=1e-12)
    assert (change["before"], change["after"]) == ("lock:rail", "lock:axis, lock:rail")
    impulses = {row["row"]: row for row in change["impulses"]}
    # The lock of the slide takes up m x w^2 only as a force, no impulse.
    assert impulses["lock:axis"]["impulse"] == pytest.approx(-1.9, rel=1e-9)
    assert (impulses["lock:axis"]["unit"], impulses["lock:rail"]["unit"]) == ("N m s", "N s")
    assert impulses["lock:rail"]["impulse"] == pytest.approx(0, abs=1e-12)
    assert data["first"]["v"] == {"axis": [2.0], "rail": [0.0]}
    assert data["last"]["q"]["axis"][0] == pytest.approx(0.2, abs=1e-12)
    assert data["energy"]["largest_kinetic_J"] == pytest.approx(1.9, rel=1e-12)
    assert data["energy"]["largest_error_J"] < 1e-12
    assert data["files"] == []


def test_energy_that_is_missing_is_told(folder: Path, capsys: Captured) -> None:
    """The slide is thrown outwards: with steps of 50 ms Euler's method makes a tenth of it."""
    coarse = written(
        folder,
        start={"q": {"rail": 0.5}, "v": {"axis": 5.0}},
        events=[],
        method={"name": "euler", "step": "50ms"},
    )
    data = document(capsys, "simulate", coarse)
    (warning,) = data["warnings"]
    assert "of the energy turned over: take a smaller step" in warning
    assert cli.run(["simulate", coarse]) == 0
    assert "the energy balance is off by" in capsys.readouterr().out
    assert document(capsys, "simulate", written(folder))["warnings"] == []


def test_closure_and_the_event_that_ends_it(folder: Path, capsys: Captured) -> None:
    stop = {"stop": "far down", "when": {"joint": "swing", "q": 0.5}}
    path = written(folder, robot="bars.urdf", start={}, until=2, events=[stop])
    data = document(capsys, "simulate", path)
    assert data["ended"] == "stopped by an event" and data["end_s"] < 2
    assert data["last"]["q"]["swing"][0] == pytest.approx(0.5, abs=1e-9)
    assert 0 < data["closure_residual"] < 1e-10
    assert cli.run(["simulate", path]) == 0
    out = capsys.readouterr().out
    assert out.startswith("bars: stopped by 'far down' at ")
    assert "closure  residual at most" in out


def test_units_of_the_impulses_of_loops(folder: Path, capsys: Captured) -> None:
    start = {"v": {"drive": 1.0}}
    path = written(folder, robot="bars.urdf", start=start, events=[{"lock": "drive", "at": 0.1}])
    (change,) = document(capsys, "simulate", path)["transitions"]
    units = {row["row"]: row["unit"] for row in change["impulses"]}
    # The hinge is held by two forces in the plane, the drive by a moment.
    assert sorted(units.values()) == ["N m s", "N s", "N s"] and units["lock:drive"] == "N m s"


def test_a_joint_with_several_axes_is_told(folder: Path, capsys: Captured) -> None:
    path = written(
        folder, robot=str(ROBOTS / "spherical_threebar.urdf"), start={}, events=[], until=0.01
    )
    assert cli.run(["simulate", path]) == 0
    assert "ball_1 0.0000, 0.0000, 0.0000, 1.0000" in re.sub(" +", " ", capsys.readouterr().out)


@pytest.mark.parametrize("width", [60, 100])
def test_on_a_terminal(
    folder: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in (("FORCE_COLOR", "1"), ("TERM", "xterm"), ("COLUMNS", str(width))):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert cli.run(["simulate", written(folder)]) == 0
    out, err = capsys.readouterr()
    lines = re.sub(r"\x1b\[[0-9;]*m", "", out).splitlines()
    assert max(map(len, lines)) <= width and any("╭─ Events" in line for line in lines)
    assert "0.200 / 0.200 s" in re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", err)


# -- options --------------------------------------------------------------------------------------


def test_files_of_the_command_and_of_the_scenario(folder: Path, capsys: Captured) -> None:
    path = written(folder, outputs={"csv": "r.csv"})
    words = ["simulate", path, "-o", str(folder / "r.npz"), "--output", str(folder / "r.json")]
    assert cli.run(words) == 0
    out = capsys.readouterr().out
    assert out.endswith("".join(f"written: {folder / f'r.{end}'}\n" for end in
                                ("csv", "npz", "json")))  # fmt: skip
    run = pl.load_trajectory(folder / "r.npz")
    assert run.t[-1] == 0.2 and len((folder / "r.csv").read_text().splitlines()) == len(run.t) + 1
    summary = json.loads((folder / "r.json").read_text())
    assert summary["files"] == [str(folder / f"r.{end}") for end in ("csv", "npz", "json")]
    assert document(capsys, *words)["files"] == summary["files"]


def test_another_end(folder: Path, capsys: Captured) -> None:
    data = document(capsys, "simulate", written(folder), "--until", "150ms")
    assert data["end_s"] == 0.15


# -- nothing is lost ------------------------------------------------------------------------------


def test_a_run_that_fails_leaves_what_was_computed(folder: Path, capsys: Captured) -> None:
    twice = [{"lock": "axis", "at": 0.1}, {"lock": "axis", "at": 0.15}]
    path = written(folder, events=twice, outputs={"npz": "r.npz", "summary": "r.json"})
    assert cli.run(["simulate", path]) == 1
    out, err = capsys.readouterr()
    assert out.startswith("beam: FAILED at 0.15 s\n")
    assert f"written: {folder / 'r.npz'}" in out
    assert err.startswith("FAILED: robot 'beam' at t = 0.15 s: joint 'axis' is locked already")
    assert f"what was computed until then is in {folder / 'r.npz'}" in err
    assert err.count("\n") == 1
    run = pl.load_trajectory(folder / "r.npz")
    assert run.t[-1] == 0.15 and run.q[-1][0] == pytest.approx(0.2)
    failure = json.loads((folder / "r.json").read_text())["failure"]
    assert "locked already" in failure
    assert document(capsys, "simulate", path, code=1)["failure"] == failure


@pytest.mark.parametrize("engine", ["native", "python"])
def test_an_interrupted_run_leaves_what_was_computed(
    folder: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    """The kernel takes many steps at once: it is interrupted in the second mode."""
    owner, name, most = (
        (Stepper, "controlled", 3) if engine == "python" else (NativeSteps, "take", 1)
    )
    calls, real = [], getattr(owner, name)

    def interrupted(*given: Any) -> Any:
        calls.append(given)
        if len(calls) > most:
            raise KeyboardInterrupt
        return real(*given)

    monkeypatch.setattr(owner, name, interrupted)
    if engine == "python":
        monkeypatch.setattr(NativeSteps, "of", lambda *_: None)
    elif not HAS_KERNEL:
        pytest.skip("the kernel was not built")
    path = written(folder, outputs={"npz": "r.npz"})
    assert cli.run(["simulate", path]) == 130
    out, err = capsys.readouterr()
    assert out.startswith("beam: interrupted at ")
    assert "warning: interrupted at t = " in err
    assert f"what was computed until then is in {folder / 'r.npz'}" in err
    reached = calls[-1][3] if engine == "python" else calls[-1][1][0]
    assert pl.load_trajectory(folder / "r.npz").t[-1] == reached > 0


def test_a_file_that_cannot_be_written_is_told_and_the_others_are_written(
    folder: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pinloop.boundary.csv._written", full)
    path = written(folder, outputs={"csv": "r.csv", "npz": "r.npz"})
    assert cli.run(["simulate", path]) == 2
    out, err = capsys.readouterr()
    assert err == f"error: {folder / 'r.csv'} cannot be written: no space left on device\n"
    assert out.endswith(f"written: {folder / 'r.npz'}\n")
    assert sorted(one.name for one in folder.iterdir()) == [
        "bars.urdf", "beam.brakes.yaml", "beam.urdf", "r.npz", "x.yaml"]  # fmt: skip


# -- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["simulate"], "SCENARIO.yaml"),
        (["simulate", "nowhere.yaml"], "nowhere.yaml: no such file"),
        (["simulate", "."], "is a folder"),
        (["simulate", "{folder}/beam.urdf"], "beam.urdf"),
        (["simulate", "{path}", "--until", "0"], "'--until 0' is not after the start"),
        (["simulate", "{path}", "--until", "soon"], "'--until soon' is not a number"),
        (["simulate", "{path}", "--until", "50ms"], ":12: events[0]: event 'lock axis' is at"),
        (["simulate", "{path}", "-o", "r.zip"], "--output: 'r.zip' ends in none of .npz,"),
        (["simulate", "{path}", "-o", "{folder}/no/r.npz"], "there is no folder"),
        (["simulate", "{path}", "-o", "{folder}/r.csv", "-o", "{folder}/r.csv"], "used already"),
        (["simulate", "{path}", "--untli", "1"], "--untli"),
        (["play"], "RUN.npz"),
        (["play", "nowhere.npz"], "nowhere.npz: no such file"),
        (["play", "{path}"], "is not a saved run"),
    ],
)
def test_mistakes_are_told_in_a_sentence(
    folder: Path, capsys: Captured, words: list[str], said: str
) -> None:
    names = {"folder": folder, "path": written(folder)}
    assert cli.run([word.format(**names) for word in words]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("error: ") and err.count("\n") == 1
    assert said in err


def test_mistakes_as_json(folder: Path, capsys: Captured) -> None:
    path = written(folder, events=[{"lock": "axle", "at": 0.1}])
    assert cli.run(["simulate", path, "--json"]) == 2
    out, err = capsys.readouterr()
    said = json.loads(out)["error"]
    assert said.startswith(f"{path}:") and "no joint 'axle' in robot 'beam'" in said
    assert err == f"error: {said}\n"


# -- play -----------------------------------------------------------------------------------------


def test_play_writes_a_page(folder: Path, capsys: Captured) -> None:
    run, page = str(folder / "r.npz"), folder / "r.html"
    assert cli.run(["simulate", written(folder), "-o", run]) == 0
    capsys.readouterr()
    assert cli.run(["play", run, "--html", str(page)]) == 0
    assert capsys.readouterr() == (f"{page}\n", "")
    assert "<html" in page.read_text(encoding="utf-8")[:300].lower()


def test_what_is_drawn_can_be_chosen(folder: Path, capsys: Captured) -> None:
    run, page = str(folder / "r.npz"), folder / "r.html"
    assert cli.run(["simulate", written(folder), "-o", run]) == 0
    words = ["play", run, "--html", str(page)]
    assert cli.run([*words, "--trace", "tip", "--ghost", "100ms", "--forces"]) == 0
    assert cli.run([*words, "--trace", "tipp"]) == 2
    assert cli.run([*words, "--ghost", "3"]) == 2
    err = capsys.readouterr().err
    assert "no body or frame 'tipp'" in err and "outside the run, which goes from 0 to 0.2 s" in err


@pytest.mark.skipif(os.name == "nt", reason="signals of this kind exist on POSIX only")
def test_a_live_replay_ends_cleanly(folder: Path) -> None:
    run = folder / "r.npz"
    pl.load_scenario(written(folder)).simulate().save(run)
    with program("play", str(run)) as process:
        assert process.stdout is not None
        with urllib.request.urlopen(process.stdout.readline().strip(), timeout=20) as answer:
            assert answer.status == 200
        assert "Ctrl-C" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        assert (process.returncode, out, err) == (0, "", "")


def test_play_shows_the_run_until_it_is_interrupted(
    folder: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[Any] = []

    class Shown:
        url = "http://127.0.0.1:7000/static/"

        def __init__(self, run: pl.Trajectory) -> None:
            self.run = run

        def __enter__(self) -> Shown:
            shown.append(self.run)
            return self

        def __exit__(self, *_: object) -> None:
            shown.append("closed")

        def wait(self) -> None:
            raise KeyboardInterrupt

    run = folder / "r.npz"
    assert cli.run(["simulate", written(folder), "-o", str(run)]) == 0
    capsys.readouterr()
    monkeypatch.setattr(pl.Trajectory, "view", lambda run, **_: Shown(run))
    assert cli.run(["play", str(run)]) == 0
    assert capsys.readouterr() == (f"{Shown.url}\nCtrl-C ends the viewer.\n", "")
    assert np.array_equal(shown[0].q, pl.load_trajectory(run).q) and shown[1] == "closed"
