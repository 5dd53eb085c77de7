"""Robots that come with pinloop: all that are made are there, by name, from any folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pinloop as pl
from pinloop.io.examples import copy_examples, examples_folder, known_examples, robot_path

MADE = Path(__file__).parents[2] / "urdf"
NAMES = sorted(path.stem for path in MADE.glob("*.urdf"))


def test_all_that_are_made_are_there() -> None:
    assert sorted(known_examples()) == NAMES and len(NAMES) == 12
    there = {path.name for robot in known_examples().values() for path in robot.files}
    made = {path.name for path in MADE.iterdir() if path.suffix in (".urdf", ".yaml")}
    assert there == made
    for name in there:
        assert pl.example_file(name).read_bytes() == (MADE / name).read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_each_is_loaded_from_anywhere(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    robot, made = pl.example(name), pl.load(MADE / f"{name}.urdf")
    assert robot.name == name and robot.joints == made.joints and not robot.warnings
    assert robot.model == made.model
    example = known_examples()[name]
    assert example.files[0].name == f"{name}.urdf"
    assert 10 < len(example.summary) < 80 and not example.summary.endswith(".")
    assert example.description.startswith(example.summary.split()[0])


def test_an_unknown_one_is_refused_with_what_is_near() -> None:
    with pytest.raises(pl.UnknownName, match="no example 'palletiser'; did you mean 'palletizer'"):
        pl.example("palletiser")
    with pytest.raises(pl.UnknownName, match=re.escape("'delta.brakes.yaml'")):
        pl.example_file("delta.brake.yaml")
    with pytest.raises(pl.UnknownName, match="no example '3'"):
        pl.example(3)  # type: ignore[arg-type]


def test_files_of_the_user_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert robot_path(Path("delta")) == examples_folder() / "delta.urdf"
    for path in (Path("delta.urdf"), Path("./robots/delta"), tmp_path / "delta"):
        assert robot_path(path) == path
    Path("delta").touch()
    assert robot_path(Path("delta")) == Path("delta")


def test_copies_overwrite_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "mine" / "robots"
    written = copy_examples(["palletizer"], folder, force=False)
    assert [path.name for path in written] == [
        "palletizer.urdf",
        "palletizer.brakes.yaml",
        "palletizer.scenario.yaml",
    ]
    edited = folder / "palletizer.brakes.yaml"
    edited.write_text("mine")
    (folder / "palletizer.urdf").unlink()
    with pytest.raises(pl.BadValue, match="exists; add --force"):
        copy_examples(["palletizer"], folder, force=False)
    assert edited.read_text() == "mine" and not (folder / "palletizer.urdf").exists()
    copy_examples(["palletizer"], folder, force=True)
    assert edited.read_bytes() == pl.example_file(edited.name).read_bytes()
    with pytest.raises(pl.BadValue, match="cannot be written"):
        copy_examples(["delta"], edited / "below", force=False)
