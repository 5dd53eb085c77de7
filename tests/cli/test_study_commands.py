"""`pinloop study` and `pinloop worst`: the file arrives, numbers come out, mistakes are told."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import joblib
import jsonschema
import numpy as np
import pytest
import yaml
from tools.schemas import schema_of

import pinloop as pl
from pinloop.cli import main as cli
from pinloop.safety.studies.studyfile import read_study

from ..beam_files import ARM, beam
from .commands import Captured, printed_json

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs" / "studies.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "urdf" / "six_axis_arm.study.yaml"

# The axis turns about a vertical line, the slide does not move: I = 0.1 + 2 * 0.25 + 0.1 + x^2 with
# the slide at x. 50 ms until the command, 50 ms until the brake acts.
PLAIN: dict[str, Any] = {
    "format": "pinloop-study-1",
    "robot": "beam.urdf",
    "space": {
        "pose": {"axis": 0.0, "rail": 0.0},
        "speed": {"axis": [1.0, 3.0], "rail": 0.0},
        "band": {"axis": [-1, 1]},
    },
    "sampling": {"method": "grid", "count": 3},
    "jobs": 1,
}


def stopping_time(speed: float, band: float) -> float:
    return 0.1 + speed * 0.7 / (6.0 * (1 + 0.25 * band))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    beam(tmp_path)
    return tmp_path


def written(folder: Path, **changes: Any) -> str:
    path = folder / "beam.study.yaml"
    path.write_text(yaml.safe_dump(PLAIN | changes, sort_keys=False))
    return str(path)


# -- study ----------------------------------------------------------------------------------------


def test_a_study_sums_up_its_cases(folder: Path, capsys: Captured) -> None:
    assert cli.run(["study", written(folder)]) == 0
    out, err = capsys.readouterr()
    assert err == "" and "\x1b" not in out
    assert out.startswith("beam: 9 of 9 cases stopped and hold; brake data are guesses\n")
    assert "Sampled, not guaranteed." in out and "not a safety certificate" in out
    # Speeds 1, 2, 3 change slowest, bands -1, 0, 1 fastest: case 6 is fast and weak.
    times = sorted(stopping_time(v, b) for v in (1, 2, 3) for b in (-1, 0, 1))
    most = np.quantile(times, 0.95)
    first = f"{1e3 * times[8]:.1f}"
    row = f"stopping time [ms] {first} case 6 {first} {1e3 * most:.1f} {1e3 * times[4]:.1f}"
    assert row in re.sub(r" +", " ", out)
    assert max(map(len, out.replace(str(folder), "").splitlines())) <= 80
    rows = list(csv.DictReader((folder / "beam.study.csv").read_text().splitlines()))
    assert len(rows) == 9
    assert float(rows[6]["stopping_time_s"]) == pytest.approx(times[8], rel=1e-6)


def test_json_has_the_same_in_si_units(folder: Path, capsys: Captured) -> None:
    data = printed_json(capsys, "study", written(folder))
    time = data["distributions"]["stopping_time_s"]
    assert time["worst_sampled"] == pytest.approx(stopping_time(3.0, -1.0), rel=1e-6)
    assert time["case"] == 6
    angle = data["distributions"]["axis_excursion_rad"]
    slow = 6.0 * 0.75 / 0.7
    assert angle["worst_sampled"] == pytest.approx(3.0 * 0.1 + 9.0 / 2 / slow, rel=1e-6)
    assert (data["cases"], data["size"], data["complete"]) == (9, 9, True)
    assert data["outcomes"] == {"stopped": 9} and data["reasons"] == {}
    assert data["manifest"]["sampling"] == "Grid(counts=3)"
    assert data["remark"] == "Sampled, not guaranteed."
    assert "planning" in data["disclaimer"]


def test_a_study_is_gone_on_with(folder: Path, capsys: Captured) -> None:
    path = written(folder)
    assert cli.run(["study", path]) == 0
    results = folder / "beam.study.csv"
    content = results.read_bytes()
    results.write_bytes(b"".join(content.splitlines(keepends=True)[:5]) + b"4,0.")
    assert cli.run(["study", path]) == 0
    assert results.read_bytes() == content
    capsys.readouterr()
    written(folder, until=5)
    assert cli.run(["study", path]) == 2
    assert "holds another study: its until is 10.0, not 5.0" in capsys.readouterr().err
    assert results.read_bytes() == content
    assert cli.run(["study", path, "--results", str(folder / "other.csv")]) == 0
    assert (folder / "other.csv").read_bytes() == content


def test_cases_that_do_not_hold_are_counted(folder: Path, capsys: Captured) -> None:
    # Hanging, the slide falls once nothing drives it.
    brakes = folder / "beam.brakes.yaml"
    brakes.write_text(brakes.read_text().replace("{side: joint, dynamic_torque: 40", "{kind: none"))
    path = written(folder, gravity=[9.81, 0, 0], until=0.5)
    assert cli.run(["study", path]) == 1
    out, err = capsys.readouterr()
    assert out.startswith("beam: 0 of 9 cases stopped and hold")
    assert "does not hold 9" in re.sub(" +", " ", out)
    assert "9 of 9 cases did not end with the robot at rest and held: 9 does not hold" in err
    data = printed_json(capsys, "study", path, code=1)
    assert data["outcomes"] == {"does not hold": 9} and data["distributions"] == {}
    assert cli.run(["worst", path]) == 2
    assert "no case of the study stopped" in capsys.readouterr().err


def test_cases_that_pass_limits_are_no_success(folder: Path, capsys: Captured) -> None:
    # At 1 rad/s the axis turns 0.147 to 0.178 rad until it is at rest, and has 0.16.
    space = PLAIN["space"] | {
        "pose": {"axis": 2.84, "rail": 0.0},
        "speed": {"axis": 1.0, "rail": 0.0},
    }
    assert cli.run(["study", written(folder, space=space)]) == 1
    out, err = capsys.readouterr()
    assert out.startswith("beam: 3 of 3 cases stopped and hold, but some beyond limits")
    assert "joint 'axis' gets beyond its limits in 1 of the cases" in err


def test_cases_that_collide_are_no_success(folder: Path, capsys: Captured) -> None:
    body = (
        '<collision><origin xyz="0.5 0 0"/><geometry><box size="1 .1 .1"/></geometry></collision>'
    )
    link = '<link name="beam">'
    (folder / "beam.urdf").write_text(ARM.replace(link, link + body))
    # A post in the way at 0.2 rad, where nothing that moves stops before.
    post = {"name": "post", "box": [0.02, 0.02, 1.0], "xyz": [0.9, 0.25, 0.0]}
    space = PLAIN["space"] | {"speed": {"axis": [0.0, 3.0], "rail": 0.0}}
    path = written(folder, space=space, obstacles=[post])
    assert cli.run(["study", path]) == 1
    err = capsys.readouterr().err
    assert "the robot touches an obstacle in 6 of the cases, first in case 3" in err


def test_failed_cases_come_with_their_reasons(capsys: Captured, tmp_path: Path) -> None:
    path = tmp_path / "loops.yaml"
    robot, brakes = (ROOT / "urdf" / f"palletizer.{end}" for end in ("urdf", "brakes.yaml"))
    content = {"format": "pinloop-study-1", "robot": str(robot), "brakes": str(brakes),
               "sampling": {"method": "grid", "count": {"pose.shoulder": 3, "pose.elbow": 3}},
               "jobs": 1}  # fmt: skip
    path.write_text(yaml.safe_dump(content))
    data = printed_json(capsys, "study", str(path), code=1)
    assert data["outcomes"]["failed"] + data["outcomes"]["stopped"] == 9
    assert sum(data["reasons"].values()) == data["outcomes"]["failed"]
    assert all("loop" in reason for reason in data["reasons"])
    rows = list(csv.DictReader(path.with_suffix(".csv").read_text().splitlines()))
    assert rows[2]["outcome"] == "failed"  # so that cases and stopped cases count differently
    for column, found in data["distributions"].items():
        assert float(rows[found["case"]][column]) == found["worst_sampled"], column
    assert cli.run(["study", str(path)]) == 1
    out, err = capsys.readouterr()
    assert "Failed cases" in out and "1 x robot 'palletizer': loop 'drive_loop'" in out
    assert "failed" in err


@pytest.mark.parametrize("width", [60, 100])
def test_on_a_terminal(
    folder: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in (("FORCE_COLOR", "1"), ("TERM", "xterm"), ("COLUMNS", str(width))):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert cli.run(["study", written(folder)]) == 0
    out, err = capsys.readouterr()
    lines = re.sub(r"\x1b\[[0-9;]*m", "", out).splitlines()
    assert max(map(len, lines)) <= width and any("╭─ Study" in line for line in lines)
    assert "9 / 9 stops" in err and "per s" in err


def test_interrupted_and_gone_on_with(folder: Path) -> None:
    path = written(folder, sampling={"method": "random", "count": 3000})
    process = subprocess.Popen(
        [sys.executable, "-m", "pinloop", "study", path],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    results, end = folder / "beam.study.csv", time.monotonic() + 60
    while not (results.exists() and results.read_bytes().count(b"\n") > 5):
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert re.match(r"beam: (\d+) of \1 cases stopped and hold; \d+ of 3000 are still to be", out)
    words = re.sub(r"\s+", " ", err)
    assert "interrupted after" in words and "goes on from there" in words
    done = results.read_bytes().count(b"\n") - 1
    assert f"interrupted after {done} of 3000 cases" in words


def test_a_study_without_cases_writes_no_report(
    folder: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    path, page = written(folder), folder / "report.html"
    page.write_text("what was there before")
    with monkeypatch.context() as patch:
        patch.setattr(sys.modules["pinloop.safety.studies.study"], "_run", interrupt)
        assert cli.run(["study", path, "--html", str(page)]) == 130
    out, err = capsys.readouterr()
    assert page.read_text() == "what was there before" and str(page) not in out
    assert "interrupted after 0 of" in re.sub(r"\s+", " ", err)
    assert cli.run(["study", path, "--html", str(page)]) == 0
    assert "what was there before" not in page.read_text()


def test_speeds_above_limits_are_told(folder: Path, capsys: Captured) -> None:
    space = PLAIN["space"] | {"speed": {"axis": [0, 5], "rail": 0}}
    assert cli.run(["study", written(folder, space=space)]) == 0
    assert "warning: speeds of joint 'axis' go to 5 rad/s" in capsys.readouterr().err


def test_brakes_are_found_or_guessed(folder: Path, capsys: Captured) -> None:
    space = {key: PLAIN["space"][key] for key in ("pose", "speed")}
    assert not read_study(written(folder, space=space)).guessed
    (folder / "beam.brakes.yaml").unlink()
    assert cli.run(["study", written(folder, space=space)]) == 0
    assert "its brakes are guessed" in capsys.readouterr().err


# -- worst ----------------------------------------------------------------------------------------


def test_worst_cases_and_where_they_are(folder: Path, capsys: Captured) -> None:
    path = written(folder, sampling={"method": "random", "count": 3}, worst=["time", "angle:axis"])
    words = ("worst", path, "--starts", "1", "--evaluations", "30")
    data = printed_json(capsys, *words)
    assert list(data["worst"]) == ["time", "angle:axis"]
    worst = data["worst"]["time"]
    assert worst["value"] == pytest.approx(stopping_time(3.0, -1.0), rel=1e-6)
    assert worst["values"]["speed.axis"] == 3.0 and worst["values"]["band.axis"] == -1.0
    assert worst["worst_sampled"] < worst["value"] and worst["column"] == "stopping_time_s"
    assert cli.run([*words, "--criterion", "angle:axis"]) == 0
    out, err = capsys.readouterr()
    assert err == "" and out.startswith("beam: worst cases of 1 criteria")
    flat = re.sub(" +", " ", out)
    assert "speed.axis [rad/s] 3" in flat and "band.axis -1" in flat
    assert "pose.axis" not in flat  # it does not vary
    assert "Sampled, not guaranteed." in out


def test_worst_cases_are_written(folder: Path, capsys: Captured) -> None:
    path = written(folder, worst=["angle:axis"])
    out = folder / "deep" / "worst"
    words = ["worst", path, "--starts", "1", "--evaluations", "5", "--stops", str(out)]
    assert cli.run([*words, "--html", str(out)]) == 0
    assert f"written: {out / 'angle-axis.json'}" in capsys.readouterr().out
    stop = json.loads((out / "angle-axis.json").read_text())
    assert stop["signal"]["v"]["axis"] == [3.0]
    assert stop["stopping_time_s"] == pytest.approx(stopping_time(3.0, -1.0), rel=1e-6)
    assert "<html" in (out / "angle-axis.html").read_text(encoding="utf-8")[:200].lower()
    assert cli.run([*words[:-1], path]) == 2
    assert "is a file; name a folder" in capsys.readouterr().err


def test_clearance_is_a_criterion(folder: Path, capsys: Captured) -> None:
    post = {"name": "post", "box": [0.1, 0.1, 1.0], "xyz": [0.0, 1.0, 0.0], "rpy": [0, 0, 0.5]}
    path = written(folder, obstacles=[post], worst=["clearance"])
    data = printed_json(capsys, "worst", path, "--starts", "1", "--evaluations", "8")
    worst = data["worst"]["clearance"]
    near = data["distributions"]["clearance_m"]
    assert worst["value"] <= near["worst_sampled"] <= near["95_percent"] <= near["median"]
    assert worst["values"]["speed.axis"] == 3.0
    assert cli.run(["study", path]) == 0
    assert "clearance [mm]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (["--criterion", "angle:axes"], "did you mean 'angle:axis'"),
        (["--criterion", "clearance"], "needs obstacles"),
        (["--starts", "0"], "starts"),
    ],
)
def test_mistakes_of_worst(folder: Path, capsys: Captured, words: list[str], match: str) -> None:
    assert cli.run(["worst", written(folder), *words]) == 2
    assert match in capsys.readouterr().err


# -- the file -------------------------------------------------------------------------------------


def test_everything_in_the_file_arrives(folder: Path) -> None:
    (folder / "run.csv").write_text("t,axis,rail\n0,0,0\n0.5,0.5,0.1\n1,1,0.2\n2,2,0.4\n")
    plan = read_study(
        written(
            folder,
            brakes="beam.brakes.yaml",
            category={"number": 1, "on_path": True, "time_limit": 0.5},
            payload={"mass": 2, "com": [0, 0, 0.1], "frame": "tip"},
            gravity=[0, 0, 9.81],
            trigger={"sensor": 0.1},
            until=3,
            space={"motion": "run.csv", "instant": [0.1, 0.9], "payload": [0, 2],
                   "delay": {"rail": 0.01}, "band": [-1, 0]},
            sampling={"method": "random", "count": 5, "seed": 3},
            results="deep/r.csv",
            jobs=2,
            worst=["time"],
            obstacles=[
                {"name": "a", "box": [1, 2, 3], "xyz": [1, 0, 0], "rpy": [0, 0, 1]},
                {"name": "b", "sphere": 0.5, "xyz": [0, 2, 0]},
            ],
        )
    )  # fmt: skip
    given = plan.arguments
    assert given["category"] == pl.Category1(on_path=True, time_limit=0.5)
    payload = given["payload"]
    assert (payload.mass, tuple(payload.com), payload.inertia, payload.frame) == (
        2.0, (0.0, 0.0, 0.1), None, "tip")  # fmt: skip
    assert given["gravity"] == (0.0, 0.0, 9.81) and given["until"] == 3.0 and given["jobs"] == 2
    chain = given["trigger"].chain(given["brakes"].chain)
    assert (chain.sensor, chain.controller) == (0.1, 0.03)
    assert given["sampling"] == pl.safety.Random(5, 3)
    assert given["results"] == folder / "deep" / "r.csv"
    assert plan.worst == ("time",)
    found = {one.name: (one.low, one.high) for one in given["space"].variables(
        plan.robot, given["brakes"])}  # fmt: skip
    assert found == {
        "instant": (0.1, 0.9), "payload": (0.0, 2.0), "delay.rail": (0.01, 0.01),
        "band.axis": (-1.0, 0.0), "band.rail": (-1.0, 0.0),
    }  # fmt: skip
    box, ball = given["obstacles"]
    assert 2 * box.solid.halfSide == pytest.approx([1, 2, 3])
    assert box.placement.rotation[0, 0] == pytest.approx(np.cos(1.0))
    assert box.placement.translation == pytest.approx([1, 0, 0])
    assert ball.solid.radius == 0.5 and ball.placement.translation == pytest.approx([0, 2, 0])


@pytest.mark.parametrize(
    ("sampling", "made"),
    [
        ({"method": "sobol", "count": 16, "seed": 2}, pl.safety.Sobol(16, 2)),
        ({"method": "grid", "count": {"speed.axis": 4}}, pl.safety.Grid({"speed.axis": 4})),
        ({"method": "corners"}, pl.safety.Corners()),
        (None, pl.safety.Sobol(256)),
    ],
)
def test_samplings(folder: Path, sampling: Any, made: Any) -> None:
    changes = {} if sampling is None else {"sampling": sampling}
    path = written(folder, **changes)
    if sampling is None:
        Path(path).write_text(yaml.safe_dump({k: PLAIN[k] for k in PLAIN if k != "sampling"}))
    assert read_study(path).arguments["sampling"] == made


def lines(path: str, text: str) -> list[int]:
    content = Path(path).read_text().splitlines()
    return [k for k, line in enumerate(content, 1) if text in line]


@pytest.mark.parametrize(
    ("changes", "where", "match"),
    [
        ({"robots": "x.urdf"}, "robots", "did you mean 'robot'"),
        ({"format": "pinloop-study-2"}, "format", "expected 'pinloop-study-1'"),
        (
            {"space": {"pose": {"axle": 0}}},
            "axle",
            "no joint 'axle' in robot 'beam'; known: axis, rail",
        ),
        ({"space": {"speed": {"axle": [0, 1]}}}, "axle", "no joint 'axle'"),
        ({"space": {"delay": {"axle": [0, 1]}}}, "axle", "no brake of joint 'axle'"),
        ({"space": {"band": {"axis": [-1, 2]}}}, "axis", "within -1 and 1"),
        ({"space": {"pose": {"axis": [1, 0]}}}, "axis", "goes from 1 to 0"),
        ({"space": {"pose": {"axis": "far"}}}, "axis", "space.pose.axis"),
        ({"space": {"speed": "fast"}}, "fast", "space.speed"),
        ({"space": {"instant": 0.5}}, "instant", "instant is given without a motion"),
        ({"sampling": {"method": "sobol", "count": 0}}, "sampling", "study of 0 cases is empty"),
        (
            {"sampling": {"method": "grid", "count": {"speed.axis": 2, "x": 3}}},
            "sampling",
            "the grid counts 'x', which does not vary",
        ),
        ({"sampling": {"method": "sobol"}}, "sampling", "sobol needs count"),
        ({"sampling": {"method": "corners", "count": 2}}, "sampling", "corners have no count"),
        ({"sampling": {"method": "all"}}, "method", "'sobol', 'random', 'grid' or 'corners'"),
        ({"category": 4}, "category", "expected 0, 1, 2, 'STO', 'SS1-r'"),
        ({"category": {"number": 0, "on_path": True}}, "category", "category 0 has no drives"),
        ({"payload": -1}, "payload", "a number greater than or equal to 0"),
        ({"until": 0}, "until", "a number greater than 0"),
        ({"worst": []}, "worst", "0 items where 1 are needed"),
        ({"obstacles": [{"name": "a"}]}, "name: a", "needs one of 'box', 'sphere' and 'mesh'"),
        (
            {"obstacles": [{"name": "a", "mesh": "no.stl"}]},
            "name: a",
            "obstacle 'a': there is no mesh file",
        ),
        (
            {"obstacles": [{"name": "a", "sphere": 1}, {"name": "a", "sphere": 2}]},
            "name: a",
            "two obstacles are called 'a'",
        ),
        ({"brakes": "other.yaml"}, "brakes", "no joint 'motor'"),
        ({"space": {"payload": [2, 1]}}, "payload", "payload goes from 2 to 1"),
        ({"obstacles": [{"name": "a", "box": [1, 0, 1]}]}, "name: a", "all lengths must be > 0"),
    ],
)
def test_mistakes_are_told_with_their_line(
    folder: Path, capsys: Captured, changes: dict[str, Any], where: str, match: str
) -> None:
    (folder / "other.yaml").write_text("format: pinloop-brakes-1\njoints: {motor: {}}\n")
    path = written(folder, **changes)
    assert cli.run(["study", path]) == 2
    err = re.sub(r"\s+", " ", capsys.readouterr().err)
    assert match in err
    named = re.search(rf"{re.escape(path)}:(\d+): ", err)
    assert named is not None, err
    assert int(named[1]) in lines(path, where)
    assert not (folder / "beam.study.csv").exists()


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (None, "no such file"),
        ("format: pinloop-study-1\n", "robot is missing: the robot, or just its file"),
        ("", "expected a table of keys and values"),
        ("a: [", "malformed YAML"),
        ("format: pinloop-study-1\nrobot: no.urdf\n", "no.urdf"),
    ],
)
def test_files_that_are_none(
    folder: Path, capsys: Captured, content: str | None, match: str
) -> None:
    path = folder / "x.yaml"
    if content is not None:
        path.write_text(content)
    assert cli.run(["study", str(path), "--json"]) == 2
    out, err = capsys.readouterr()
    assert match in err and match in json.loads(out)["error"]


def test_bad_numbers_of_processes(folder: Path, capsys: Captured) -> None:
    assert cli.run(["study", written(folder), "--jobs", "0"]) == 2
    assert "jobs is 0; give a number of processes" in capsys.readouterr().err


def test_a_mesh_beside_the_file(folder: Path) -> None:
    import trimesh

    trimesh.creation.box((1.0, 2.0, 3.0)).export(folder / "brick.stl")
    path = written(folder, obstacles=[{"name": "a", "mesh": "brick.stl", "scale": 0.1}])
    (one,) = read_study(path).arguments["obstacles"]
    assert np.abs(one.solid.points()).max(axis=0) == pytest.approx([0.05, 0.1, 0.15])


def test_the_chain_of_the_file_counts_for_instants(folder: Path, capsys: Captured) -> None:
    (folder / "run.csv").write_text("t,axis,rail\n0,0,0\n0.5,0.5,0.1\n1,1,0.2\n2,2,0.4\n")
    path = written(folder, trigger={"sensor": 2.5}, space={"motion": "run.csv"})
    assert cli.run(["study", path]) == 2
    err = re.sub(r"\s+", " ", capsys.readouterr().err)
    (line,) = lines(path, "motion")
    assert (
        f"{path}:{line}: space.motion: a motion of 2 s is too short" in err and "for 2.53 s" in err
    )


# -- documentation --------------------------------------------------------------------------------


def test_the_schema_is_strict() -> None:
    assert not {'"ge"', '"gt"'} & set(re.findall(r'"\w+"', json.dumps(schema_of("study"))))
    assert set(schema_of("study")["required"]) == {"format", "robot"}
    assert schema_of("study")["additionalProperties"] is False


def test_the_file_of_the_documentation_is_read(tmp_path: Path) -> None:
    (text,) = re.findall(r"<!-- study file of urdf -->\n```yaml\n(.*?)```", DOCS, re.DOTALL)
    assert jsonschema.Draft202012Validator(schema_of("study")).is_valid(yaml.safe_load(text))
    for name in ("six_axis_arm.urdf", "six_axis_arm.brakes.yaml"):
        (tmp_path / name).write_bytes((ROOT / "urdf" / name).read_bytes())
    (tmp_path / "s.yaml").write_text(text)
    assert read_study(tmp_path / "s.yaml").worst == EXAMPLE_WORST


EXAMPLE_WORST = ("time", "travel", "clearance", "angle:joint_1")


def test_the_program_of_the_documentation_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    (program,) = re.findall(r"<!-- program -->\n```python\n(.*?)```", DOCS, re.DOTALL)
    monkeypatch.chdir(ROOT)
    with joblib.parallel_config(backend="threading"):  # processes take long to start
        exec(program, {})
    assert "'stopped': 16" in capsys.readouterr().out


def test_the_links_of_the_documentation_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", DOCS):
        assert "://" in target or (ROOT / "docs" / target).exists(), target


def test_the_example_study(tmp_path: Path, capsys: Captured) -> None:
    results = tmp_path / "arm.csv"
    words = ("study", str(EXAMPLE), "--results", str(results), "--jobs", "1")
    data = printed_json(capsys, *words, code=1)  # some stops pass limits of joints
    assert data["size"] == 64 and sum(data["outcomes"].values()) == 64
    assert data["distributions"]["clearance_m"]["worst_sampled"] > 0
    assert read_study(EXAMPLE).worst == EXAMPLE_WORST
    assert not EXAMPLE.with_suffix(".csv").exists()


def test_a_study_writes_in_its_folder_and_replaces_no_file_of_others(
    folder: Path, capsys: Captured
) -> None:
    (folder / "in").mkdir()
    beam(folder / "in")
    path = written(folder / "in", results="../x.csv")
    assert cli.run(["study", path]) == 2
    assert "outside the folder of the study; give --results" in capsys.readouterr().err
    assert not (folder / "x.csv").exists()
    foreign = folder / "x.csv.manifest.json"
    foreign.write_text("{}")
    assert cli.run(["study", path, "--results", str(folder / "x.csv")]) == 2
    assert "is no manifest of a study" in capsys.readouterr().err
    assert foreign.read_text() == "{}" and not (folder / "x.csv").exists()
