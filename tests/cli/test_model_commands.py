"""`pinloop assemble` and `pinloop regularize`: numbers, JSON, exit codes, mistakes."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tools.schemas import schema_of

import pinloop as pl
from pinloop.cli import main as cli

from ..beam_files import beam
from ..fourbar_files import apart, rocker_angle
from .commands import Captured, printed_json

ROBOTS = Path(__file__).parents[2] / "urdf"


def document(capsys: Captured, *words: str, code: int = 0) -> dict[str, Any]:
    name = {"assemble": "assembly", "regularize": "regularization"}[words[0]]
    return printed_json(capsys, *words, code=code, schema=schema_of(name))


# -- assemble -------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", [1, -1])
def test_the_configuration_is_the_one_near_the_guess(
    robot: str, capsys: Captured, side: int
) -> None:
    swing = rocker_angle(0.5, side)
    words = ("assemble", robot, "--q", f"drive={math.degrees(0.5)}deg", "--ignore-limits")
    data = document(capsys, *words, "--near", f"swing={swing + 0.1}")
    assert data["closed"] is True and data["residual"] < 1e-10 and data["error"] is None
    joints = data["joints"]
    assert joints["swing"]["value"] == pytest.approx(swing, abs=1e-9)
    assert joints["swing"]["shown"] == pytest.approx(math.degrees(swing), abs=1e-7)
    assert (joints["swing"]["unit"], joints["swing"]["shown_unit"]) == ("rad", "deg")
    assert joints["swing"]["moved"] == pytest.approx(0.1, abs=1e-9)
    assert (joints["drive"]["held"], joints["drive"]["moved"]) == (True, 0.0)
    assert joints["drive"]["value"] == pytest.approx(0.5, rel=1e-15)
    # All three joints count as driven: no system to tell a branch by.
    assert data["branch"] is None
    q = np.array(data["q"])
    machine = pl.load(robot)
    assert np.linalg.norm(pl.Constraints(machine, full=True).residual(q)) == data["residual"]


def test_the_branch_is_told(capsys: Captured) -> None:
    data = document(capsys, "assemble", str(ROBOTS / "palletizer.urdf"), "--q", "shoulder=25deg")
    assert set(data["branch"]) == {"drive_loop", "rear_level_loop", "front_level_loop"}
    assert set(map(abs, data["branch"].values())) == {1}


def test_the_table_says_the_same(robot: str, capsys: Captured) -> None:
    assert cli.run(["assemble", robot, "--q", "drive=0.5"]) == 0
    out, err = capsys.readouterr()
    assert err == "" and out.startswith("bars: assembled\n")
    flat = re.sub(" +", " ", out)
    assert "drive 0.500000 rad 28.648 deg held -171.9 to 171.9" in flat
    assert "moved 2 of 3 joints, from the start of the search" in flat
    assert "branch undefined: the number of passive joints differs from the rank" in flat
    assert max(map(len, out.splitlines())) <= 100


def test_units_of_slides(tmp_path: Path, capsys: Captured) -> None:
    data = document(capsys, "assemble", str(beam(tmp_path)), "--q", "rail=250mm")
    rail = data["joints"]["rail"]
    assert (rail["value"], rail["unit"], rail["shown"], rail["shown_unit"]) == (
        0.25, "m", 250.0, "mm")  # fmt: skip
    assert data["branch"] == {}


def test_joints_with_several_axes(capsys: Captured) -> None:
    path = str(ROBOTS / "spherical_threebar.urdf")
    data = document(capsys, "assemble", path)
    assert any(len(joint["q"]) == 4 and "value" not in joint for joint in data["joints"].values())
    assert cli.run(["assemble", path]) == 0
    assert "1.0000" in capsys.readouterr().out


def test_what_cannot_be_assembled_is_told(tmp_path: Path, capsys: Captured) -> None:
    path = str(apart(tmp_path))
    assert cli.run(["assemble", path]) == 1
    out, err = capsys.readouterr()
    assert out.startswith("apart: NOT CLOSED\n")
    assert err.startswith("NOT CLOSED: robot 'apart': loop 'closer'") and err.count("\n") == 1
    data = document(capsys, "assemble", path, code=1)
    assert data["closed"] is False and data["branch"] is None
    # Coupler and rocker reach 0.2 m too little.
    assert data["residual"] == pytest.approx(0.2, abs=0.02)
    assert "loop 'closer'" in data["error"]


def test_what_blocks_it_is_named(robot: str, capsys: Captured) -> None:
    words = ("assemble", robot, "--q", "drive=0.5", "--q", "swing=0.1")
    data = document(capsys, *words, code=1)
    assert data["blocked_by"] in (["drive"], ["swing"])


# -- regularize -----------------------------------------------------------------------------------


def test_rows_before_and_after(capsys: Captured) -> None:
    data = document(capsys, "regularize", str(ROBOTS / "prrr3.urdf"))
    # Paper 5, section 7.2: 10 rows, of which 7 are sufficient.
    assert (data["full_rows"], data["rows"], data["mobility"]) == (10, 7, 3)
    assert sum(len(loop["selection"]) for loop in data["loops"]) == 7
    assert all("algebra_a" in loop and loop["alternatives"] for loop in data["loops"])


def test_the_reduction_is_told_with_its_reason(robot: str, capsys: Captured) -> None:
    assert cli.run(["regularize", robot]) == 0
    out, err = capsys.readouterr()
    assert err == "" and out.startswith("bars: 5 constraint equations, 2 kept\n")
    flat = re.sub(r"\s+", " ", out)
    assert "closer revolute 5 2 ground" in flat
    assert "3 equations forbid what is impossible anyway." in flat
    assert "by planar, normal y" in flat
    assert "mobility at least 1: 3 coordinates less the equations" in flat
    assert max(map(len, out.splitlines())) <= 100


def test_another_cut_is_saved_and_read_back(robot: str, tmp_path: Path, capsys: Captured) -> None:
    target = tmp_path / "recut.urdf"
    words = ["regularize", robot, "--cut", "swing", "-o", str(target)]
    assert cli.run(words) == 0
    assert capsys.readouterr().out.endswith(f"written: {target}\n")
    again = pl.load(target)
    assert [loop.name for loop in again.loops] == ["swing"] and "closer" in again.joints
    assert cli.run(words) == 2
    assert "exists; add --force" in capsys.readouterr().err
    assert cli.run([*words, "--force"]) == 0


def test_what_cannot_be_assembled_cannot_be_regularized(tmp_path: Path, capsys: Captured) -> None:
    path = str(apart(tmp_path))
    assert cli.run(["regularize", path]) == 1
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("NOT CLOSED: robot 'apart'")
    data = printed_json(capsys, "regularize", path, code=1)
    assert data["error"].startswith("robot 'apart': loop 'closer'")


# -- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["assemble"], "ROBOT"),
        (["assemble", "nowhere.urdf"], "no such file"),
        (["assemble", "{robot}", "--q", "drvie=1"], "did you mean 'drive'"),
        (["assemble", "{robot}", "--q", "drive"], "'--q drive' is not a joint and its value"),
        (["assemble", "{robot}", "--q", "drive=1m"], "(rad, deg); write for example --q drive=0.3"),
        (["assemble", "{robot}", "--q", "drive=1", "--q", "drive=2"], "given twice with --q"),
        (["assemble", "{robot}", "--q", "drive=1", "--near", "drive=2"], "with --q and --near"),
        (
            ["assemble", "{robot}", "--q", "drive=5"],
            "(-171.9 to 171.9 deg); 5 degrees are within them: write '5deg'; add --",
        ),
        (["regularize", "{robot}", "--cut", "drvie"], "did you mean 'drive'"),
        (["regularize", "{robot}", "-o", "{robot}"], "is a file that is used already"),
        (["regularize", "{robot}", "-o", "/nowhere/x.urdf"], "there is no folder '/nowhere'"),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_mistakes_are_told_in_a_sentence(
    robot: str, capsys: Captured, words: list[str], said: str, as_json: bool
) -> None:
    words = [word.format(robot=robot) for word in words] + ["--json"] * as_json
    assert cli.run(words) == 2
    out, err = capsys.readouterr()
    assert err.startswith("error: ") and err.count("\n") == 1 and said in err
    assert (json.loads(out)["error"] in err) if as_json else out == ""
