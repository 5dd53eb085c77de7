"""Mistakes of new users: each message names what was typed, where it is, and the way out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml

import pinloop as pl
from pinloop.cli import main as cli

from ..fourbar_files import fourbar
from .commands import Captured

ARM = pl.example_file("six_axis_arm.urdf")
BRAKES = pl.example_file("six_axis_arm.brakes.yaml")


def mistake(capsys: Captured, *words: str) -> str:
    """What is said of a mistake."""
    assert cli.run(words) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    return err.removeprefix("error: ").rstrip()


@pytest.mark.parametrize("option", ["--q", "--near"])
def test_a_value_beyond_limits_is_repeated_as_typed(
    option: str, robot: str, capsys: Captured
) -> None:
    said = mistake(capsys, "assemble", robot, option, "drive=200deg")
    assert said.startswith(f"'{option} drive=200deg' is outside the limits of the joint, -3 to 3")
    assert "degrees are within them" not in said
    assert "write '100deg'" in mistake(capsys, "assemble", robot, option, "drive=100")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--samples", "x"), "'--samples x' is not a whole number"),
        (("--samples", "-1"), "'--samples -1' is not 0 or more"),
        (("--tolerance", "x"), "'--tolerance x' is not a number"),
    ],
)
def test_numbers_of_options(
    words: tuple[str, ...], said: str, robot: str, capsys: Captured
) -> None:
    assert mistake(capsys, "check", robot, *words) == said


@pytest.mark.parametrize("command", ["stop", "swept", "annex-b"])
def test_categories(command: str, robot: str, capsys: Captured) -> None:
    said = mistake(capsys, command, robot, "--category", "4")
    assert said.startswith("'--category 4' is not a category of a stop: 0, 1 or 2, or STO")


# -- studies --------------------------------------------------------------------------------------


def study_file(folder: Path, **more: object) -> Path:
    path = folder / "a.study.yaml"
    plan = {"format": "pinloop-study-1", "robot": str(ARM), "brakes": str(BRAKES), **more}
    path.write_text(yaml.safe_dump(plan, sort_keys=False))
    return path


@pytest.mark.parametrize("command", ["study", "worst"])
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("travell", "no criterion 'travell'; did you mean 'travel'?"),
        ("clearance", "criterion 'clearance' needs obstacles; give them to the study"),
    ],
)
def test_criteria_of_a_study_are_checked_first(
    command: str, name: str, said: str, tmp_path: Path, capsys: Captured
) -> None:
    path = study_file(tmp_path, worst=["time", name])
    assert mistake(capsys, command, str(path)) == f"{path}:6: worst[1]: {said}"
    assert [*tmp_path.iterdir()] == [path]


def test_a_criterion_of_the_command_is_checked_first(tmp_path: Path, capsys: Captured) -> None:
    path = study_file(tmp_path)
    said = mistake(capsys, "worst", str(path), "--criterion", "travell")
    assert said == "no criterion 'travell'; did you mean 'travel'?"
    assert [*tmp_path.iterdir()] == [path]


def test_missing_brakes_of_a_study_have_a_line(tmp_path: Path, capsys: Captured) -> None:
    path = study_file(tmp_path, brakes="nix.brakes.yaml")
    said = mistake(capsys, "study", str(path))
    assert said.startswith(f"{path}:3: brakes") and "no such file" in said


def test_brakes_of_another_robot_have_file_and_line(
    robot: str, tmp_path: Path, capsys: Captured
) -> None:
    text = BRAKES.read_text()
    path = tmp_path / "b.brakes.yaml"
    path.write_text(text.replace("joint_2:", "joint_22:", 1))
    line = text[: text.index("joint_2:")].count("\n") + 1
    said = f"{path}:{line}: holds the brakes of robot 'six_axis_arm': no joint 'joint_22' in robot"
    assert mistake(capsys, "stop", str(ARM), "--brakes", str(path)).startswith(said)
    study = study_file(tmp_path, brakes=str(path))
    assert mistake(capsys, "study", str(study)).startswith(f"{study}:3: brakes: {said}")
    with pytest.raises(pl.LoadError, match="no joint 'joint_22'"):
        pl.Brakes.from_yaml(path).for_robot(pl.load(ARM))


# -- Python ---------------------------------------------------------------------------------------


def test_values_of_the_wrong_kind(robot: str) -> None:
    bars = pl.load(robot)
    q = pl.assemble(bars)
    with pytest.raises(pl.BadValue, match=r"^robot is a pinocchio.Model; load it first: robot ="):
        pl.simulate(bars.model, q, until=0.1)
    with pytest.raises(pl.BadValue, match=r"'tau' is array\(.*; give a function of t, q and v"):
        pl.simulate(bars, q, until=0.1, tau=np.zeros(3))  # type: ignore[arg-type]
    with pytest.raises(pl.BadValue, match=r"is not a force; .* pl.TorqueFunction\(function\)"):
        pl.simulate(bars, q, until=0.1, forces=[lambda t, q, v: v])  # type: ignore[list-item]


@pytest.mark.parametrize("gains", [(-1.0, 0.0), (0.0, -1.0)])
def test_drives_have_no_negative_gains(gains: tuple[float, float]) -> None:
    with pytest.raises(pl.BadValue, match=r"is -1\.0"):
        pl.PD("drive", *gains)


def test_a_wide_gap_is_said_in_metres(tmp_path: Path) -> None:
    with pytest.raises(pl.LoopNotClosed, match=r"is open by 3\.7 m \(-3\.7 along its x\)"):
        pl.assemble(pl.load(fourbar(tmp_path, reach=5.0)))
