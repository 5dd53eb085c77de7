"""The command line: output, exit codes, and that no mistake ends in a traceback."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

import pinloop as pl
from pinloop.cli import main as cli
from pinloop.cli import robots as cli_model
from pinloop.tables.report import KeyValues

from ..fourbar_files import fourbar
from .commands import Captured

URDF = Path(__file__).resolve().parents[2] / "urdf"


# -- check ----------------------------------------------------------------------------------


def test_check_prints_the_report(robot: str, capsys: Captured) -> None:
    assert cli.run(["check", robot]) == 0
    out, err = capsys.readouterr()
    assert out == f"{pl.diagnose(pl.load(robot))}\n"
    assert err == ""
    assert "\x1b" not in out


NASTY = "\\x1b[31m\\r\\n\\x9b2J\\u202e"
"""An escape, line ends, the one-byte start of an escape and a reversal, as YAML writes them."""


def nasty_robot(folder: Path) -> Path:
    path, ball = folder / "nasty.yaml", "[[1, 0, 0], [0, 1, 0], [0, 0, 1]]"
    body = f'{{name: "{NASTY}body", mass: 1, com: [0, 0.1, 0], inertia: {ball}}}'
    ends = f'parent: ground, child: "{NASTY}body"'
    joint = f'{{name: "{NASTY}joint", {ends}, pair: revolute, point: [0, 0, 0], axis: [1, 0, 0]}}'
    path.write_text(f'name: "{NASTY}robot"\nbodies:\n- {body}\njoints:\n- {joint}\n')
    return path


@pytest.mark.parametrize(
    "words",
    [
        ["check"],
        ["assemble"],
        ["regularize"],
        ["check", "--loops", "{loops}"],
        ["assemble", "--q", "\x1b[2Jq\r=1"],
        ["stop", "--q", "\x1b[2Jq\r=1"],
        ["assemble", "--q", "a" * 10_000],
    ],
)
@pytest.mark.parametrize("terminal", [False, True])
def test_names_do_nothing_to_a_terminal(
    words: list[str], terminal: bool, tmp_path: Path, capsys: Captured, monkeypatch: Any
) -> None:
    loops = tmp_path / "loops.yaml"
    loops.write_text(f'loops: [{{name: "{NASTY}", body_a: "{NASTY}", body_b: x, pair: revolute}}]')
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
    command, *more = [word.format(loops=loops) for word in words]
    cli.run([command, str(nasty_robot(tmp_path)), *more])
    out, err = capsys.readouterr()
    shown = re.sub(r"\x1b\[[0-9;]*m", "", out + err) if terminal else out + err
    assert "\x1b[31m\\r" not in out + err
    assert all(letter.isprintable() or letter == "\n" for letter in shown)
    assert max(map(len, err.splitlines()), default=0) < 1000


@pytest.mark.parametrize("terminal", [False, True])
def test_names_in_results_do_nothing_to_a_terminal(
    terminal: bool, tmp_path: Path, capsys: Captured, monkeypatch: Any
) -> None:
    """What commands compute of a robot, and say of it when it does not stop or is not known."""
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
    robot, joint = str(nasty_robot(tmp_path)), yaml.safe_load(f'"{NASTY}joint"')
    brakes, table = tmp_path / "made.yaml", tmp_path / "table.csv"
    scenario, study = tmp_path / "nasty.scenario.yaml", tmp_path / "nasty.study.yaml"
    plan = {"format": "pinloop-scenario-1", "robot": "nasty.yaml", "until": 0.01}
    scenario.write_text(yaml.safe_dump(plan | {"outputs": {"html": "run.html"}}))
    space, sampling = {"speed": {joint: [1, 2]}}, {"method": "grid", "count": 2}
    plan = {"format": "pinloop-study-1", "robot": "nasty.yaml", "jobs": 1}
    study.write_text(yaml.safe_dump(plan | {"space": space, "sampling": sampling}))
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["joint", "speed_deg_per_s", "time_ms", "angle_rad"])
        writer.writerow([joint, 50, 300, 0.1])
    speed = ["--speed", f"{joint}=1"]
    for words in (
        ["brakes", "init", robot, "-o", str(brakes)],
        ["stop", robot, *speed, "--brakes", str(brakes)],
        ["stop", robot, *speed, "--fault", f"{joint}=missing"],
        ["stop", robot, "--q", f"{joint}x=1"],
        ["simulate", str(scenario)],
        ["study", str(study)],
        ["worst", str(study), "--starts", "1", "--evaluations", "2"],
        ["compare", robot, str(table), "--brakes", str(brakes)],
        ["view", robot, "--html", str(tmp_path / "view.html"), "--no-browser"],
    ):
        assert cli.run(words) == (2 if "--q" in words else 1 if "--fault" in words else 0)
        out, err = capsys.readouterr()
        shown = re.sub(r"\x1b\[[0-9;?]*[mhlK]", "", out + err) if terminal else out + err
        assert all(letter.isprintable() or letter == "\n" for letter in shown), words[0]


def test_check_as_json(robot: str, capsys: Captured) -> None:
    assert cli.run(["check", robot, "--json"]) == 0
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert err == ""
    assert set(report) == {field.name for field in fields(pl.Diagnosis)}
    # 3 coordinates, 5 rows of a revolute loop of which a planar mechanism needs 2.
    assert (report["nv"], report["rows"], report["rank"], report["mobility"]) == (3, 5, 2, 1)
    assert report["assembled"] is True
    assert report["loops"][0]["bodies"] == ["coupler", "rocker"]
    assert len(report["ranks"]) == 7


def test_check_a_robot_that_cannot_be_assembled(open_robot: str, capsys: Captured) -> None:
    assert cli.run(["check", open_robot]) == 1
    assert "NOT CLOSED" in capsys.readouterr().out
    assert cli.run(["check", open_robot, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["assembled"] is False


def test_samples_and_seed_arrive(
    robot: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, int] = {}

    def noted(mechanism: pl.Mechanism, **options: int) -> pl.Diagnosis:
        seen.update(options)
        return pl.diagnose(mechanism, **options)

    monkeypatch.setattr(cli_model, "diagnose", noted)
    assert cli.run(["check", robot, "--samples", "2", "--seed", "5", "--json"]) == 0
    assert seen == {"samples": 2, "seed": 5}
    assert len(json.loads(capsys.readouterr().out)["ranks"]) == 3


def test_loops_come_from_a_file_elsewhere(tmp_path: Path, capsys: Captured) -> None:
    tree = fourbar(tmp_path, loop=False)
    loops = tmp_path / "elsewhere.yaml"
    loops.write_text(
        """loops:
  - name: closer
    pair: revolute
    axis: [0, 1, 0]
    a: {body: coupler, xyz: [0.6, 0, 0]}
    b: {body: rocker, xyz: [0, 0, 0.4]}
"""
    )
    assert cli.run(["check", str(tree), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["mobility"] == 3
    assert cli.run(["check", str(tree), "--loops", str(loops), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["mobility"] == 1


def test_floating_base(robot: str, capsys: Captured) -> None:
    assert cli.run(["check", robot, "--floating-base", "--kinematics-only", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["mobility"] == 7


def test_links_without_mass(tmp_path: Path, capsys: Captured) -> None:
    path = fourbar(tmp_path)
    path.write_text(re.sub(r"<inertial>.*?</inertial>", "", path.read_text(), flags=re.DOTALL))
    assert cli.run(["check", str(path)]) == 0
    assert "moves but has no mass" in capsys.readouterr().out
    assert cli.run(["check", str(path), "--kinematics-only"]) == 0
    assert "mass" not in capsys.readouterr().out


def test_package_folders(tmp_path: Path, capsys: Captured) -> None:
    path = fourbar(tmp_path)
    visual = '<visual><geometry><mesh filename="package://parts/x.stl"/></geometry></visual>'
    path.write_text(
        path.read_text().replace('<link name="base"/>', f'<link name="base">{visual}</link>')
    )
    (tmp_path / "store" / "parts").mkdir(parents=True)
    (tmp_path / "store" / "parts" / "x.stl").write_bytes(b"")
    assert cli.run(["check", str(path)]) == 0
    assert "Warnings" in capsys.readouterr().out
    assert cli.run(["check", str(path), "--package-dir", str(tmp_path / "store")]) == 0
    assert "Warnings" not in capsys.readouterr().out


# -- on a terminal --------------------------------------------------------------------------


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "200")


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.usefixtures("terminal")
def test_tables_say_what_the_plain_report_says(robot: str, capsys: Captured) -> None:
    assert cli.run(["check", robot]) == 0
    out = capsys.readouterr().out
    assert "\x1b[" in out and "╭" in out
    report = pl.diagnose(pl.load(robot))
    mechanism, *_ = report.report().blocks
    assert isinstance(mechanism, KeyValues)
    labels = [label for label, _ in mechanism.entries]
    assert labels[0] == "bodies" and labels[-1] == "closure"
    text = plain(out)
    for label in labels:
        assert f"│ {label}" in text
    for fact in ("3 moving, nq = 3, nv = 3", "1 degree of freedom", "coupler - rocker", "closer"):
        assert fact in text
    for loop in report.loops:
        assert f"{loop.neutral_error:.1e}" in text
        assert ", ".join(loop.joints) in text
    singular = str(URDF / "spherical_fourbar.urdf")
    assert cli.run(["check", singular]) == 0
    out = plain(capsys.readouterr().out)
    mechanism, *_ = pl.diagnose(pl.load(singular)).report().blocks
    assert isinstance(mechanism, KeyValues)
    for label, cell in mechanism.entries:
        assert re.search(rf"│ {label} +{re.escape(cell.text[:40])}", out)


@pytest.mark.usefixtures("terminal")
def test_what_is_wrong_is_seen(open_robot: str, capsys: Captured) -> None:
    assert cli.run(["check", open_robot]) == 1
    out = capsys.readouterr().out
    assert "\x1b[1;31mNOT CLOSED" in out
    assert "Warnings" in out and "\x1b[33m" in out


@pytest.mark.usefixtures("terminal")
def test_names_are_not_taken_for_markup(tmp_path: Path, capsys: Captured) -> None:
    path = fourbar(tmp_path, name="[bold]bars[/bold]")
    path.write_text(path.read_text().replace('"closer"', '"[red]closer[/red]"'))
    assert cli.run(["check", str(path)]) == 0
    text = plain(capsys.readouterr().out)
    assert "[bold]bars[/bold]" in text
    assert "[red]closer[/red]" in text


# -- mistakes -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words, part",
    [
        (["check", "nowhere.urdf"], "nowhere.urdf: no such file"),
        (["check", "."], "is a folder"),
        (["check"], "ROBOT"),
        (["check", "{robot}", "--samples", "many"], "--samples"),
        (["check", "{robot}", "--samples", "-1"], "--samples"),
        (["check", "{robot}", "--loops", "nowhere.yaml"], "nowhere.yaml: no such file"),
        (["check", "{robot}", "--no-such-option"], "--no-such-option"),
        (["chek", "{robot}"], "chek"),
        (["view", "{robot}", "--html", "{out}", "--q", "drive"], "drive"),
        (["view", "{robot}", "--html", "{out}", "--q", "drive=fast"], "drive=fast"),
        (["view", "{robot}", "--html", "{out}", "--q", "drvie=0.1"], "did you mean 'drive'"),
        (["view", "{robot}", "--html", "{out}", "--q", "drive=5"], "limits"),
        (["view", "{robot}", "--html", "{out}", "--q", "drive=nan"], "not a number"),
        (["view", "{robot}", "--html", "/nowhere/x.html"], "/nowhere/x.html cannot be written"),
    ],
)
def test_mistakes_are_told_in_a_sentence(
    robot: str, tmp_path: Path, capsys: Captured, words: list[str], part: str
) -> None:
    words = [word.format(robot=robot, out=tmp_path / "out.html") for word in words]
    assert cli.run(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert part.lower() in err.lower()
    assert err.count("\n") == 1


def test_json_is_printed_or_written(robot: str, tmp_path: Path, capsys: Captured) -> None:
    """One grammar for all commands: a flag wherever it is, or a file whose name ends in .json."""
    printed = []
    for words in (
        [robot, "--json"],
        ["--json", robot],
        [robot, "--json", "-"],
        ["--json=-", robot],
    ):
        assert cli.run(["check", *words]) == 0
        printed.append(json.loads(capsys.readouterr().out))
    target = tmp_path / "report.json"
    assert cli.run(["check", "--json", str(target), robot]) == 0
    out = capsys.readouterr().out
    assert out.endswith(f"written: {target}\n") and "mobility" in out
    assert all(document == json.loads(target.read_text()) for document in printed)
    assert cli.run(["check", robot, "--json", str(tmp_path / "no" / "x.json")]) == 2
    assert "there is no folder" in capsys.readouterr().err


def test_a_pose_is_given_alike_everywhere(robot: str, capsys: Captured) -> None:
    joint = pl.load(robot).actuated[0]
    outputs = []
    for words in (["--q", f"{joint}=10deg"], [f"--pose={joint}=10deg"], []):
        assert cli.run(["stop", robot, *words, "--speed", "0%", "--json"]) in (0, 1)
        outputs.append(json.loads(capsys.readouterr().out)["signal"])
    assert outputs[0] == outputs[1] != outputs[2]
    for option in ("--q", "--pose"):
        assert cli.run(["assemble", robot, option, f"{joint}=10deg"]) == 0


def test_mistakes_as_json(tmp_path: Path, capsys: Captured) -> None:
    broken = tmp_path / "broken.urdf"
    broken.write_text("<robot name='x'>\n<link")
    assert cli.run(["check", str(broken), "--json"]) == 2
    out, err = capsys.readouterr()
    assert "broken.urdf" in json.loads(out)["error"]
    assert err == f"error: {json.loads(out)['error']}\n"


@pytest.mark.parametrize(("module", "where"), [(cli_model, "diagnose"), (cli, "get_command")])
def test_an_interrupt_is_not_a_traceback(
    robot: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch, module: ModuleType, where: str
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, where, interrupted)
    assert cli.run(["check", robot]) == 130
    assert capsys.readouterr() == ("", "interrupted\n")


INTERRUPTING = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == MODULE:
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupting())
from pinloop.__main__ import main
main()
"""


@pytest.mark.parametrize(
    "module", ["pinloop.cli.main", "typer", "rich", "pinocchio", "pinloop.cli.robots", "scipy"]
)
def test_an_interrupt_of_an_import_is_one_line(robot: str, module: str) -> None:
    program = INTERRUPTING.replace("MODULE", repr(module))
    done = subprocess.run(
        [sys.executable, "-c", program, "check", robot], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_a_defect_is_not_taken_for_an_answer(
    robot: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("of our own")

    monkeypatch.setattr(cli_model, "diagnose", broken)
    assert cli.run(["check", robot]) == 70
    assert "ZeroDivisionError: of our own" in capsys.readouterr().err


# -- help -----------------------------------------------------------------------------------


def test_version(capsys: Captured) -> None:
    assert cli.run(["--version"]) == 0
    assert capsys.readouterr().out == f"pinloop {pl.__version__}\n"


@pytest.mark.parametrize("words", [[], ["--help"], ["check", "--help"], ["view", "--help"]])
def test_help_has_an_example(words: list[str], capsys: Captured) -> None:
    assert cli.run(words) == 0
    out = capsys.readouterr().out
    assert "Usage: pinloop" in out
    assert re.search(r"Example: pinloop (check|view) urdf/\w+\.urdf", out)


def test_the_shell_can_complete_commands(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_PINLOOP_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "pinloop ch")
    monkeypatch.setenv("COMP_CWORD", "1")
    with pytest.raises(SystemExit):
        cli.run([])
    assert capsys.readouterr().out.split() == ["check"]
