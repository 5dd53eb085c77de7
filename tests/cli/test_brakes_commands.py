"""`pinloop brakes init`: a first brakes file, which nothing overwrites by mistake."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

import pinloop as pl
from pinloop.cli import main as cli

from ..beam_files import ARM, BRAKES, beam
from .commands import Captured

URDF = Path(__file__).parents[2] / "urdf"


@pytest.fixture
def robot(tmp_path: Path) -> str:
    return str(beam(tmp_path))


def test_a_first_brakes_file_beside_the_robot(robot: str, capsys: Captured) -> None:
    target = Path(robot).with_suffix(".brakes.yaml")
    target.unlink()
    assert cli.run(["brakes", "init", robot]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == str(target) and err == ""
    assert f"then run pinloop stop {robot}" in out
    machine = pl.load(robot)
    assert pl.Brakes.from_yaml(target) == pl.Brakes.template(machine)
    assert "NOTHING IN THIS FILE IS CERTIFIED" in target.read_text()
    assert cli.run(["stop", robot, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["brakes"]["file"] == str(target)


def test_a_file_is_not_overwritten_by_mistake(robot: str, capsys: Captured) -> None:
    target = Path(robot).with_suffix(".brakes.yaml")
    assert cli.run(["brakes", "init", robot]) == 2
    assert f"{target} exists; add --force" in capsys.readouterr().err
    assert target.read_text() == BRAKES
    assert cli.run(["brakes", "init", robot, "--force"]) == 0
    assert target.read_text() != BRAKES


def test_a_brakes_file_printed(robot: str, tmp_path: Path, capsys: Captured) -> None:
    assert cli.run(["brakes", "init", robot, "-o", "-"]) == 0
    (tmp_path / "printed.yaml").write_text(capsys.readouterr().out)
    machine = pl.load(robot)
    assert pl.Brakes.from_yaml(tmp_path / "printed.yaml") == pl.Brakes.template(machine)
    assert not Path("-").exists()


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["init"], "Missing argument"),
        (["init", "nowhere.urdf"], "nowhere.urdf: no such file"),
        (["init", "{robot}", "-o", "{robot}", "--force"], "is a file that is used already"),
        (["init", "{robot}", "-o", "/nowhere/x.yaml"], "/nowhere/x.yaml cannot be written"),
        (["init", "{balls}"], "no actuated joint with one degree of freedom"),
        (["ini"], "ini"),
    ],
)
def test_mistakes_of_brakes_init(
    robot: str, capsys: Captured, words: list[str], part: str, tmp_path: Path
) -> None:
    balls = tmp_path / "balls.urdf"
    shutil.copy(URDF / "spherical_threebar.urdf", balls)
    words = [word.format(robot=robot, balls=balls) for word in words]
    assert cli.run(["brakes", *words]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("error: ") and part in err and err.count("\n") == 1
    assert Path(robot).read_text() == ARM


# -- help -----------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [["stop", "--help"], ["brakes", "init", "--help"]])
def test_help_has_an_example(words: list[str], capsys: Captured) -> None:
    assert cli.run(words) == 0
    assert re.search(r"Example: pinloop (stop|brakes init) urdf/\w+\.urdf", capsys.readouterr().out)


def test_the_group_of_brakes_explains_itself(capsys: Captured) -> None:
    assert cli.run(["brakes"]) in (0, 2)
    out, err = capsys.readouterr()
    assert "init" in out + err and "Traceback" not in err
