"""What docs/stopping.md says of comparing and fitting: its table, its columns, its commands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import pinloop as pl
from pinloop.cli import main as cli
from pinloop.safety.standards.axis_fit import FITTABLE
from pinloop.safety.standards.fit import fitted

from ...papers.programs import program
from ..stopping.robots_to_stop import on_axis, wheel
from ..studies.closed_stops import only, table

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "stopping.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## Comparing and fitting\n")[2].partition("\n## ")[0]


def cells(first: str) -> list[list[str]]:
    """Rows of the table whose head begins with a word."""
    (found,) = re.findall(rf"^\| {first} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", SECTION, re.MULTILINE)
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in found.splitlines()]


def test_the_table_can_be_read(tmp_path: Path) -> None:
    (text,) = re.findall(r"```csv\n(.*?)```", SECTION, re.DOTALL)
    path = tmp_path / "table.csv"
    path.write_text(text)
    rows = pl.safety.StoppingTable.from_csv(path).rows
    assert [row.joint for row in rows] == ["joint_1", "joint_1", "joint_2"]
    assert rows[2].time is None and set(rows[0].pose) == {"joint_3"}


def test_the_columns_are_those_that_are_known(tmp_path: Path) -> None:
    named = [name for row in cells("column") for name in re.findall(r"`([^`]+)`", row[0])]
    columns = [name for name in named if not name.startswith("_")]
    assert len(columns) == 20
    assert [name for name in named if name not in columns] == ["_deg", "_m", "_mm"]
    path = tmp_path / "table.csv"
    for name in columns:
        column = name.replace("<joint>", "a")
        head = ["joint", "speed_rad_per_s"] if not column.startswith("speed") else ["joint"]
        heads = list(dict.fromkeys([*head, column]))
        path.write_text(",".join(heads) + "\n" + ",".join(["a", *["1"] * (len(heads) - 1)]))
        try:
            pl.safety.StoppingTable.from_csv(path)
        except pl.LoadError as error:
            assert "in both rad or deg and m or mm" in str(error)  # known, but of a slide
    with pytest.raises(pl.LoadError) as caught:
        path.write_text("joint,speed_rad_per_s,colour\na,1,red\n")
        pl.safety.StoppingTable.from_csv(path)
    listed = str(caught.value).partition("known are ")[2]
    assert all(name.replace("_rad", "_deg") in listed for name in columns if "<" in name)
    known = {name.strip() for name in listed.split(",")}
    assert known >= {name for name in columns if "<" not in name}


def test_the_parameters_are_those_that_can_be_fitted() -> None:
    (said,) = re.findall(r"zero or more: (.*?)\. All else", SECTION, re.DOTALL)
    assert tuple(re.findall(r"`(\w+)`", said)) == FITTABLE


TABLES = {
    "time, at one speed": ([3.0], False),
    "time and angle, at one speed": ([3.0], True),
    "time, at two speeds": ([1.0, 3.0], False),
    "time and angle, at two speeds": ([1.0, 3.0], True),
}


@pytest.mark.parametrize("row", cells("table"), ids=lambda row: row[0])
def test_what_a_table_tells(row: list[str]) -> None:
    name, *said = row
    speeds, angles = TABLES[name]
    published = only(table(2.0, speeds, 9.0, 0.04, 1.5), angles=angles)

    def told(*more: str) -> bool:
        names = ["dynamic_torque", *more]
        made = fitted(wheel(2.0), published, on_axis(dynamic_torque=4.0), names)
        return all(one.identified for one in made.parameters)

    found = ["yes" if told(*more) else "no" for more in ((), ("delay",), ("viscous",))]
    if found[2] == "yes" and not told("delay", "viscous"):
        found[2] = "either this or the delay"
    assert said == found


def test_the_commands_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        robot = program("ur_stopping").example_urdf("ur5_robot.urdf")
    except SystemExit:
        pytest.skip("example-robot-data is not installed")
    (tmp_path / "examples").mkdir()
    text = (ROOT / "examples" / "ur5_stops.csv").read_text(encoding="utf-8")
    # One axis is enough to see that the commands are right.
    (tmp_path / "examples" / "ur5_stops.csv").write_text(text.partition("\nshoulder_lift")[0])
    monkeypatch.chdir(tmp_path)
    (body,) = re.findall(r"```sh\n(.*?)```", SECTION, re.DOTALL)
    commands = [shlex.split(line)[1:] for line in body.splitlines()]
    assert [words[0] for words in commands] == ["compare", "fit"]
    for words in commands:
        given = [str(robot) if word == "ur5_robot.urdf" else word for word in words]
        assert cli.run(given) == 0
    assert capsys.readouterr().err == ""
    brakes = pl.Brakes.from_yaml("ur5.brakes.yaml").joints["shoulder_pan_joint"]
    assert brakes.sources["dynamic_torque"] == "fitted"
