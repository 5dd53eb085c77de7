"""`pinloop examples`, and commands that are given an example instead of a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.schemas import schema_of

from pinloop.cli import main as cli
from pinloop.io.examples import known_examples

from .commands import Captured, printed_json


@pytest.fixture(autouse=True)
def _anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_all_are_listed_with_what_comes_with_them(capsys: Captured) -> None:
    assert cli.run(["examples"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (arm,) = (line for line in lines if line.lstrip().startswith("six_axis_arm "))
    assert "Six-axis industrial arm" in arm and arm.endswith("brakes, study")
    document = printed_json(capsys, "examples", schema=schema_of("examples"))
    assert [robot["name"] for robot in document["examples"]] == list(known_examples())


def test_one_is_described(capsys: Captured) -> None:
    assert cli.run(["examples", "palletizer"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "6 are independent" in text and "palletizer.brakes.yaml" in text and "delta" not in text


def test_copies_are_robots_to_edit(capsys: Captured) -> None:
    assert cli.run(["examples", "palletizer", "-o", "robots"]) == 0
    assert capsys.readouterr().out.count("written: ") == 3
    assert cli.run(["simulate", "robots/palletizer.scenario.yaml", "-o", "run.npz"]) == 0
    assert cli.run(["examples", "palletizer", "-o", "robots"]) == 2
    assert "--force" in capsys.readouterr().err
    words = ["examples", "palletizer", "-o", "robots", "--force"]
    assert [robot["name"] for robot in printed_json(capsys, *words)["examples"]] == ["palletizer"]


def test_a_name_stands_for_a_file(capsys: Captured) -> None:
    document = printed_json(capsys, "stop", "palletizer", schema=schema_of("stop"))
    assert document["robot"]["name"] == "palletizer"
    assert cli.run(["check", "palletiser"]) == 2
    assert "no file or example robot 'palletiser'; did you mean" in capsys.readouterr().err
    assert cli.run(["examples", "palletiser"]) == 2
    assert "no example 'palletiser'; did you mean 'palletizer'?" in capsys.readouterr().err


def test_brakes_of_an_example_are_written_where_one_works(capsys: Captured) -> None:
    assert cli.run(["brakes", "init", "stewart"]) == 0
    assert "--brakes stewart.brakes.yaml" in capsys.readouterr().out
    assert Path("stewart.brakes.yaml").is_file()
    assert cli.run(["brakes", "init", "stewart"]) == 2
