"""The guide to stopping: its tables are those of its program, its own program runs.

The program `ur_stopping` checks its physics itself, on all axes; here two axes are enough to see
that the page is not older than the code.
"""

from __future__ import annotations

import re
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import pinloop as pl

from ...papers.programs import program

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "stopping.md").read_text(encoding="utf-8")


def between(name: str) -> str:
    text = PAGE.partition(f"<!-- {name}: begin -->\n")[2].partition(f"\n<!-- {name}: end -->")[0]
    assert text, f"the page has no {name}"
    return text


def rows(name: str, first: str) -> list[list[str]]:
    """Cells of the rows of a table that begin with a name."""
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in between(name).split("\n")]
    return [row for row in cells if row[0] == first]


@pytest.fixture(scope="module")
def ur() -> ModuleType:
    module = program("ur_stopping")
    try:
        module.example_urdf("ur5_robot.urdf")
    except SystemExit:
        pytest.skip("example-robot-data is not installed")
    return module


@pytest.mark.parametrize(("robot", "column"), [("UR5", 1), ("UR3", 2)])
def test_the_tables_are_those_of_the_program(ur: ModuleType, robot: str, column: int) -> None:
    axis = ur.axes([robot])[column]
    assert rows("means", axis.name) == [ur.means_row(axis)]
    assert rows("models", axis.name) == ur.model_rows(axis)[0]
    assert rows("level", axis.name) == ur.level_rows(axis)


def test_the_tables_are_complete(ur: ModuleType) -> None:
    names = [f"{robot} J{k}" for robot in ("UR5", "UR3") for k in range(3)]
    counts = [[len(rows(table, name)) for name in names] for table in ("means", "models", "level")]
    assert counts == [[1] * 6, [3] * 6, [0, 3, 3] * 2]
    for table, head in (("means", ur.MEANS_HEAD), ("models", ur.MODELS_HEAD)):
        first = between(table).split("\n")[0]
        assert [cell.strip() for cell in first.split("|")[1:-1]] == re.split(r"\s*\|\s*", head)


def test_the_locks_are_those_of_the_program(ur: ModuleType) -> None:
    found = ur.locks()
    ur.check_locks(found)
    assert str(found) == between("locks")


def test_the_fit_finds_torques_that_are_known(ur: ModuleType) -> None:
    axis, torque, short = ur.axes(["UR3"])[0], 20.0, 6.0
    # I dv/dt = -T - c v, from the angular momentum and from the time at which it stands.
    time = axis.inertia / short * np.log(1 + short * axis.speed / torque)
    angle = (axis.inertia * axis.speed - torque * time) / short
    found = replace(axis, time=time, angle=angle).for_both(0.0)
    assert (found.torque, found.short) == pytest.approx((torque, short), rel=2e-3)
    assert found.share == pytest.approx(
        1 - torque * angle / (0.5 * axis.inertia * axis.speed**2), rel=5e-3
    )


def test_only_what_is_between_the_markers_is_replaced(ur: ModuleType) -> None:
    begin, end = "<!-- locks: begin -->", "<!-- locks: end -->"
    old = between("locks")
    assert ur.put(PAGE, {"locks": "new"}) == PAGE.replace(
        f"{begin}\n{old}\n{end}", f"{begin}\nnew\n{end}"
    )


def test_a_missing_package_is_named(ur: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("common.single_axis.files", gone)
    with pytest.raises(SystemExit, match="pip install 'example-robot-data>=5'"):
        ur.example_urdf("ur5_robot.urdf")


def test_the_programs_of_the_page_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(code, names)
    stop, worse = names["stop"], names["worse"]
    assert isinstance(stop, pl.StopResult) and isinstance(worse, pl.StopResult)
    assert stop.outcome == worse.outcome == "stopped" and len(worse.brakes.faults) == 2
    assert np.all(stop.holding.held) and stop.ledger.relative_error < 1e-6


def test_what_the_page_names_is_there() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", PAGE):
        assert (ROOT / "docs" / target).exists(), target
