"""`pinloop stop`: words arrive, files are written, mistakes are told."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pinloop as pl
from pinloop.cli import main as cli
from pinloop.cli import stops as cli_stop

from ..beam_files import beam
from .commands import Captured, printed_json, program

URDF = Path(__file__).parents[2] / "urdf"


@pytest.fixture
def robot(tmp_path: Path) -> str:
    return str(beam(tmp_path))


def document(capsys: Captured, *words: str, code: int = 0) -> dict[str, Any]:
    """What a stop prints as JSON."""
    return printed_json(capsys, "stop", *words, code=code, quiet=True)


# -- what is printed ------------------------------------------------------------------------


def test_a_stop_prints_its_table(robot: str, capsys: Captured) -> None:
    assert cli.run(["stop", robot]) == 0
    out, err = capsys.readouterr()
    assert err == "" and "\x1b" not in out
    words = re.sub(r"\s+", " ", out)
    assert out.startswith("beam: stopped after ")
    assert f"{robot[:-5]}.brakes.yaml found beside the robot" in words
    assert "pose assumed: all joints at zero" in words
    assert "speed all motors at 100 % of their speed limits" in words
    assert "safety certificate" in words
    folder = str(Path(robot).parent)  # as long as the machine makes it
    assert max(map(len, out.replace(folder, "").splitlines())) <= 80


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_on_a_terminal_of_any_width(
    robot: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in (("FORCE_COLOR", "1"), ("TERM", "xterm"), ("COLUMNS", str(width))):
        monkeypatch.setenv(name, value)
    assert cli.run(["stop", robot]) == 0
    out = capsys.readouterr().out
    lines = re.sub(r"\x1b\[[0-9;]*m", "", out).splitlines()
    assert max(map(len, lines)) <= width
    assert any(line.startswith("╭─ Joints") for line in lines)
    assert "\x1b[33mbeam: stopped" in out


def test_without_a_brakes_file_everything_is_guessed(robot: str, capsys: Captured) -> None:
    Path(robot).with_suffix(".brakes.yaml").unlink()
    assert cli.run(["stop", robot]) == 0
    words = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert "brakes ALL GUESSED" in words
    assert f"write one with: pinloop brakes init {robot}" in words


# -- words arrive ---------------------------------------------------------------------------


def test_a_pose_at_a_limit_is_compared_in_the_digits_of_the_file(
    robot: str, capsys: Captured
) -> None:
    path = Path(robot)
    assert 'lower="-2"' in path.read_text()
    path.write_text(path.read_text().replace('lower="-2"', 'lower="0.31416"'))
    data = document(capsys, robot, "--q", "axis=18deg")
    assert data["signal"]["q"]["axis"] == [math.radians(18)]
    assert cli.run(["stop", robot, "--q", "axis=17.9deg"]) == 2
    assert "is outside the limits of the joint, 0.31416 to 3 rad" in capsys.readouterr().err


def test_full_speed_away_from_the_nearer_limit(robot: str, capsys: Captured) -> None:
    data = document(capsys, robot)
    assert data["signal"]["v"] == {"axis": [4.0], "rail": [2.0]}
    assert data["signal"]["q"] == {"axis": [0.0], "rail": [0.0]}
    assert data["settings"]["pose"].startswith("assumed: all joints at zero")
    assert data["settings"]["brakes"] == "found beside the robot"
    assert data["category"] == {"number": 0, "safety_function": "STO"} and data["payload"] is None


@pytest.mark.parametrize(
    ("words", "v"),
    [
        (["--speed", "50%"], (2.0, 1.0)),
        (["--speed", "axis=-0.5"], (-0.5, 0.0)),
        (["--speed", "axis=90deg/s", "--speed", "rail=100mm/s"], (np.pi / 2, 0.1)),
        (["--speed", "axis=-25%"], (-1.0, 0.0)),
        (["--speed", "10%", "--speed", "rail=-0.3m/s"], (0.4, -0.3)),
        (["--q", "axis=2.9", "--speed", "1e1%"], (-0.4, 0.2)),
    ],
)
def test_speeds(robot: str, capsys: Captured, words: list[str], v: tuple[float, ...]) -> None:
    data = document(capsys, robot, *words)
    found = [data["signal"]["v"][name][0] for name in ("axis", "rail")]
    assert found == pytest.approx(v, abs=1e-12)


def test_poses(robot: str, capsys: Captured) -> None:
    data = document(capsys, robot, "--q", "axis=30deg", "--q", "rail=-200mm")
    assert data["signal"]["q"]["axis"] == pytest.approx([np.pi / 6])
    assert data["signal"]["q"]["rail"] == pytest.approx([-0.2])
    assert data["settings"]["pose"] == "axis at 0.5236 rad, rail at -0.2 m"


@pytest.mark.parametrize(
    ("word", "mass"), [("5kg", 5.0), ("5", 5.0), ("500g", 0.5), ("0.002t", 2.0), ("1.5 kg", 1.5)]
)
def test_payloads(robot: str, capsys: Captured, word: str, mass: float) -> None:
    data = document(capsys, robot, "--payload", word)
    assert data["payload"]["mass_kg"] == pytest.approx(mass)
    assert data["payload"]["frame"] == "tip"


def test_a_law_and_a_safety_function(robot: str, capsys: Captured) -> None:
    """SS1-t by a law with numbers: at rest after its ramp time, power off after the time limit."""
    data = document(
        capsys, robot, "--speed", "50%", "--category", "SS1-t", "--time-limit", "400ms",
        "--law", "first-order:time_constant=0.1,ramp_time=0.25",
    )  # fmt: skip
    command, off = data["chain"]["command_s"], data["chain"]["drive_off_s"]
    assert data["category"] == {
        "number": 1, "safety_function": "SS1-t", "on_path": False, "law": "first-order",
        "time_limit_s": 0.4,
    }  # fmt: skip
    assert data["power_off_s"] == pytest.approx(command + 0.4 + off)
    for joint in data["joints"].values():
        assert joint["braking_time_s"] == pytest.approx(0.25)
        assert joint["braking_angle"] != 0.0


def test_the_other_options(robot: str, capsys: Captured) -> None:
    data = document(
        capsys, robot, "--speed", "50%", "--category", "1", "--on-path", "--gravity", "0,9.81,0",
        "--q", "axis=90deg",
    )  # fmt: skip
    assert data["category"] == {
        "number": 1, "safety_function": "SS1-r", "on_path": True, "time_limit_s": None,
    }  # fmt: skip
    assert data["gravity_m_per_s2"] == [0.0, 9.81, 0.0]
    # Along y at 90 degrees gravity pulls the slide outwards and turns nothing.
    assert data["signal"]["v"]["rail"] == [1.0]
    late = document(capsys, robot, "--fault", "axis=late:100ms", "--fault", "rail=weak:50%")
    assert late["brakes"]["joints"]["axis"]["delay"]["value"] == pytest.approx(0.15)
    assert late["brakes"]["joints"]["rail"]["dynamic_torque"]["value"] == 20.0
    assert len(late["brakes"]["faults"]) == 2
    angles = [
        document(capsys, robot, "--band", band)["joints"]["axis"]["braking_angle"]
        for band in ("low", "nominal", "high")
    ]
    assert angles[0] > angles[1] > angles[2]
    assert (
        document(capsys, robot, "--band", "nominal")["joints"]["axis"]["braking_angle"] == angles[1]
    )


def test_a_slide_by_hand(robot: str, tmp_path: Path, capsys: Captured) -> None:
    """1 m/s for 100 ms, then 40 N on 1 kg: 25 ms and 12.5 mm."""
    path = tmp_path / "stop.csv"
    words = [
        "stop",
        robot,
        "--speed",
        "rail=1",
        "--json",
        str(tmp_path / "s.json"),
        "--csv",
        str(path),
    ]
    assert cli.run(words) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.endswith(f"written: {tmp_path / 's.json'}\nwritten: {path}\n")
    rail = json.loads((tmp_path / "s.json").read_text())["joints"]["rail"]
    assert rail["time_s"] == pytest.approx(0.125) and rail["angle"] == pytest.approx(0.1125)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert float(rows[-1]["rail_position_m"]) == pytest.approx(0.1125)
    row = next(row for row in rows if row["t_s"] == "0.11")
    assert float(row["rail_brake_force_N"]) == pytest.approx(-40.0)
    assert float(row["rail_velocity_m_per_s"]) == pytest.approx(0.6)


def test_a_report(robot: str, tmp_path: Path, capsys: Captured) -> None:
    target = tmp_path / "stop.html"
    assert cli.run(["stop", robot, "--speed", "10%", "--html", str(target)]) == 0
    out, err = capsys.readouterr()
    assert out.endswith(f"\nwritten: {target}\n") and err == ""
    page = target.read_text(encoding="utf-8")
    assert "10 % of their speed limits" in page and "found beside the robot" in page


def test_a_recorded_motion(robot: str, tmp_path: Path, capsys: Captured) -> None:
    """Rates and angles of ``sin 2t`` and ``t^2 / 4`` at 0.8 s."""
    t = np.linspace(0, 2, 201)
    lines = [f"{s!r},{math.sin(2 * s)!r},{s * s / 4!r}" for s in t.tolist()]
    path = tmp_path / "motion.csv"
    path.write_text("\n".join(["t,axis,rail", *lines]))
    data = document(capsys, robot, "--trajectory", str(path), "--at", "800ms")
    assert data["signal"]["q"]["axis"] == pytest.approx([np.sin(1.6)], abs=1e-6)
    assert data["signal"]["v"]["axis"] == pytest.approx([2 * np.cos(1.6)], abs=1e-5)
    assert data["signal"]["v"]["rail"] == pytest.approx([0.4], abs=1e-6)
    assert data["settings"]["motion"] == f"{path} at 0.8 s"


def test_a_recording_faster_than_the_robot(robot: str, tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "motion.csv"
    path.write_text("t,axis,rail\n0,0,0\n1,1,5\n")
    assert cli.run(["stop", robot, "--trajectory", str(path), "--at", "0.1"]) == 0
    out, err = capsys.readouterr()
    assert err.startswith("warning: joint 'rail' reaches 5 m/s") and err.count("\n") == 1
    assert "faster than its velocity limit" in re.sub(r"\s+", " ", out)


def test_loops_and_the_brakes_of_an_argument(tmp_path: Path, capsys: Captured) -> None:
    data = document(capsys, str(URDF / "palletizer.urdf"), "--speed", "30%", "--payload", "20kg")
    assert data["outcome"] == "stopped" and len(data["joints"]) == 4
    path, mine = str(URDF / "fivebar.urdf"), tmp_path / "my.yaml"
    assert cli.run(["brakes", "init", path, "-o", str(mine)]) == 0
    assert capsys.readouterr().out.endswith(f"pinloop stop {path} --brakes {mine}\n")
    first, second = pl.load(path).actuated
    data = document(capsys, path, "--brakes", str(mine), "--speed", f"{first}=0.2")
    assert data["brakes"]["file"] == str(mine) and "brakes" not in data["settings"]
    assert data["signal"]["v"][first] == pytest.approx([0.2])
    assert second in data["signal"]["v"]


# -- exit codes -----------------------------------------------------------------------------


def test_what_does_not_stop_or_hold_ends_with_one(robot: str, capsys: Captured) -> None:
    data = document(capsys, robot, "--until", "60ms", code=1)
    assert data["outcome"] == "time-out"
    # On its side, the slide runs down the beam.
    words = ["--gravity", "9.81,0,0", "--fault", "rail=missing", "--until", "0.3"]
    assert document(capsys, robot, *words, code=1)["outcome"] == "does not hold"
    assert cli.run(["stop", robot, *words]) == 1
    assert capsys.readouterr().out.startswith("beam: DOES NOT HOLD; brake data are guesses\n")


def test_a_stop_that_cannot_be_computed_ends_with_one(
    robot: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise pl.StopFailed("the stop could not be computed beyond t = 0.1 s: chatter", None)

    monkeypatch.setattr(cli_stop, "compute_stop", failing)
    assert cli.run(["stop", robot]) == 1
    assert capsys.readouterr().err.startswith("error: the stop could not be computed")


def test_speeds_above_limits_are_a_warning(robot: str, capsys: Captured) -> None:
    assert cli.run(["stop", robot, "--speed", "150%"]) == 0
    text = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert "joint 'rail' is faster than its velocity limit of 2000 mm/s at the signal" in text


# -- mistakes -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ([], "Missing argument"),
        (["nowhere.urdf"], "nowhere.urdf: no such file"),
        (["{robot}", "--q", "axos=1"], "did you mean 'axis'"),
        (["{robot}", "--q", "axis"], "--q elbow=0.3"),
        (["{robot}", "--q", "axis="], "--q elbow=0.3"),
        (["{robot}", "--q", "axis=far"], "'--q axis=far' is not a number"),
        (["{robot}", "--q", "axis=3mm"], "(rad, deg)"),
        (["{robot}", "--q", "rail=3deg"], "(m, mm)"),
        (["{robot}", "--q", "axis=1,2"], "2"),
        (["{robot}", "--q", "axis=9"], "limits of the joint, -2 to 3 rad (-114.6 to 171.9 deg)"),
        (["{robot}", "--q", "axis=1", "--q", "axis=2"], "twice"),
        (["{robot}", "--speed", "fast"], "100%"),
        (["{robot}", "--speed", "3"], "100%"),
        (["{robot}", "--speed", "-50%"], "negative"),
        (["{robot}", "--speed", "10%", "--speed", "20%"], "second speed"),
        (["{robot}", "--speed", "axos=1"], "did you mean 'axis'"),
        (["{robot}", "--speed", "axis=1m/s"], "(rad/s, deg/s)"),
        (["{robot}", "--speed", "axis=1e999"], "too large"),
        (["{robot}", "--payload", "-5kg"], "negative"),
        (["{robot}", "--payload", "five"], "--payload 5kg"),
        (["{robot}", "--payload", "5lb"], "(kg, g, t)"),
        (["{robot}", "--category", "3"], "'--category 3' is not a category of a stop: 0, 1 or 2"),
        (["{robot}", "--category", "SOS"], "is no stop: it holds what is at rest, and SS2 brings"),
        (["{robot}", "--category", "SS1-t"], "cuts the power after a fixed time; add --time-limit"),
        (["{robot}", "--law", "first-order"], "'--law' needs the drives; add --category 1"),
        (["{robot}", "--category", "1", "--law", "slow"], "'slow' is no law of a controlled stop"),
        (["{robot}", "--category", "1", "--law", "constant-time:time=1"], "it has ramp_time"),
        (["{robot}", "--category", "1", "--law", "constant-time"], "needs the ramp_time of joint"),
        (["{robot}", "--on-path"], "--category 1"),
        (["{robot}", "--brakes", "nowhere.yaml"], "pinloop brakes init {robot} -o nowhere.yaml"),
        (["{robot}", "--brakes", "{robot}"], "beam.urdf"),
        (["{robot}", "--brakes", "{delta}"], "holds the brakes of robot 'delta': no joint 'arm_1'"),
        (["{robot}", "--fault", "axis"], "--fault elbow=missing"),
        (["{robot}", "--fault", "axis=gone"], "axis=late:0.1"),
        (["{robot}", "--fault", "axis=late"], "axis=late:0.1"),
        (["{robot}", "--fault", "axis=weak:3"], "0 to 1"),
        (["{robot}", "--fault", "elbow=missing"], "elbow"),
        (["{robot}", "--band", "medium"], "--band"),
        (["{robot}", "--gravity", "0,0"], "three numbers"),
        (["{robot}", "--gravity", "0,0,down"], "three numbers"),
        (["{robot}", "--gravity", "0,0,nan"], "three numbers"),
        (["{robot}", "--until", "0"], "positive"),
        (["{robot}", "--until", "soon"], "--until"),
        (["{robot}", "--at", "1"], "--trajectory"),
        (["{robot}", "--trajectory", "nowhere.csv", "--at", "1"], "nowhere.csv"),
        (["{robot}", "--trajectory", "{csv}"], "--at: {csv} runs from 0 s to 1 s"),
        (["{robot}", "--trajectory", "{csv}", "--at", "1", "--speed", "10%"], "leave out"),
        (["{robot}", "--trajectory", "{csv}", "--at", "7"], "7 s"),
        (["{robot}", "--trajectory", "{csv}", "--at", "0.99"], "earlier"),
        (["{robot}", "--trajectory", "{wrong}", "--at", "0.5"], "no joint 'elbow'"),
        (["{robot}", "--csv", "/nowhere/x.csv"], "/nowhere/x.csv cannot be written"),
        (["{robot}", "--json", "/nowhere/x.json"], "/nowhere/x.json cannot be written"),
        (["{robot}", "--html", "/nowhere/x.html"], "/nowhere/x.html cannot be written"),
        (["{robot}", "--csv", "{robot}"], "is used already"),
        (["{robot}", "--csv", "{csv}", "--trajectory", "{csv}", "--at", "0.5"], "is used already"),
        (["{robot}", "--csv", "x.json", "--json", "./x.json"], "is used already"),
        (["{robot}", "--loops", "nowhere.yaml"], "nowhere.yaml: no such file"),
    ],
)
def test_mistakes_are_told_in_a_sentence(
    robot: str, tmp_path: Path, capsys: Captured, words: list[str], part: str
) -> None:
    (tmp_path / "motion.csv").write_text("t,axis,rail\n0,0,0\n0.5,0.5,0\n1,1,0\n")
    (tmp_path / "wrong.csv").write_text("t,elbow,rail\n0,0,0\n0.5,0.5,0\n1,1,0\n")
    names = {
        "robot": robot,
        "delta": URDF / "delta.brakes.yaml",
        "csv": tmp_path / "motion.csv",
        "wrong": tmp_path / "wrong.csv",
    }
    before = Path(robot).read_bytes()
    assert cli.run(["stop", *(word.format(**names) for word in words)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ") and err.count("\n") == 1
    assert part.format(**names) in err
    assert Path(robot).read_bytes() == before


def test_a_mistake_is_json_where_json_is_printed(
    robot: str, tmp_path: Path, capsys: Captured
) -> None:
    for words in (["--json", "-"], ["--json=-"], ["--json"]):
        assert cli.run(["stop", robot, "--payload", "-1", *words]) == 2
        out, err = capsys.readouterr()
        assert err == f"error: {json.loads(out)['error']}\n" and "negative" in err
    target = tmp_path / "stop.json"
    assert cli.run(["stop", robot, "--payload", "-1", "--json", str(target)]) == 2
    assert capsys.readouterr().out == "" and not target.exists()


def test_an_interrupt_is_not_a_traceback(
    robot: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli_stop, "compute_stop", interrupted)
    assert cli.run(["stop", robot, "--json", str(tmp_path / "stop.json")]) == 130
    assert capsys.readouterr() == ("", "interrupted\n") and not (tmp_path / "stop.json").exists()


# -- as a program ---------------------------------------------------------------------------


@pytest.mark.skipif(os.name == "nt", reason="pipes of this kind exist on POSIX only")
def test_nobody_reads_the_output(robot: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with program("stop", robot, stdout=writer) as process:
        os.close(writer)
        assert process.communicate(timeout=60)[1] == ""
        assert process.returncode == 141


@pytest.mark.skipif(os.name == "nt", reason="signals of this kind exist on POSIX only")
def test_control_c_ends_a_command(robot: str, tmp_path: Path) -> None:
    """Interrupted while it waits for the robot: no traceback, and no file is left."""
    fifo = tmp_path / "robot.urdf"
    os.mkfifo(fifo)
    target = tmp_path / "stop.json"
    with program("stop", str(fifo), "--json", str(target)) as process:
        writer = opened_by_reader(fifo, process)
        try:
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
        finally:
            os.close(writer)
        assert (process.returncode, err) == (130, "interrupted\n")
    assert not target.exists()


def opened_by_reader(fifo: Path, process: subprocess.Popen[str]) -> int:
    """Open a named pipe for writing as soon as a program reads it."""
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        try:
            return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody reads yet
            time.sleep(0.01)
    process.kill()
    raise AssertionError("the program did not read the robot")
