"""Tables as CSV: whatever characters their names have, they are read as they were written."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest

import pinloop as pl
from pinloop.boundary.csv import csv_line, read_table_rows, write_rows
from pinloop.safety.studies.journal import Journal, read_rows

from ..safety.stopping.robots_to_stop import Z, made, solid
from ..screw_tables import joint

PARTS = [*"abz09 _.-#'\"\\,;:\t\n\r=[]()|/%äß°", "\r\n", "\x0b", "\x1f", "\x7f", "\x85", "\u2028"]
"""What names are made of: letters, separators, quotes, line breaks, control characters."""


def names(seed: int, count: int) -> list[str]:
    """Distinct names of 1 to 8 such parts, some with blanks at their ends."""
    rng = np.random.default_rng(seed)
    drawn: set[str] = set()
    while len(drawn) < count:
        drawn.add("".join(PARTS[k] for k in rng.integers(len(PARTS), size=rng.integers(1, 9))))
    return sorted(drawn)


@pytest.mark.parametrize("seed", range(40))
def test_cells_come_back_as_they_were(seed: int) -> None:
    rows = [names(seed, 6), names(seed + 1000, 6)]
    text = "".join(map(csv_line, rows))
    assert list(csv.reader(io.StringIO(text, newline=""))) == rows


@pytest.mark.parametrize("seed", range(40))
def test_a_table_is_read_as_it_was_written(seed: int, tmp_path: Path) -> None:
    """Blanks around a cell do not count for tables of others, and so not for ours."""
    titles = [f"x{name}x" for name in names(seed, 5)]
    below: list[list[str | float]] = [[0.1 * k, -3, 1e-300, "", x] for k, x in enumerate(titles)]
    path = write_rows(tmp_path / "table.csv", titles, below)
    rows = [row.cells for row in read_table_rows(path, "table")]
    assert rows == [titles, *([str(cell) for cell in row] for row in below)]


@pytest.mark.parametrize("seed", range(6))
def test_a_journal_resumes_whatever_its_columns_are_called(seed: int, tmp_path: Path) -> None:
    titles = ["case", *names(seed, 6), "outcome", "reason"]
    path, rng = tmp_path / "results.csv", np.random.default_rng(seed)
    reason = " ".join(f"'{titles[2]}' is in the way".split())
    rows: list[dict[str, float | str]] = []
    for k in range(3):
        rows.append({"case": float(k), "outcome": "stopped", "reason": reason})
        rows[k] |= dict(zip(titles[1:7], rng.normal(size=6).tolist(), strict=True))
    Journal(path, titles, {"robot": "r"}).append(rows[:2])
    again = Journal(path, titles, {"robot": "r"})
    assert again.done == 2
    again.append(rows[2:])
    assert list(read_rows(path, titles, 3)) == rows
    whole = path.read_bytes()
    for size in range(0, len(whole), 11):
        path.write_bytes(whole[:size])
        torn = Journal(path, titles, {"robot": "r"})
        torn.append(rows[torn.done :])
        assert path.read_bytes() == whole, size


@pytest.mark.parametrize("seed", range(6))
def test_studies_runs_and_recordings_of_strange_joints(seed: int, tmp_path: Path) -> None:
    first, second = (f"x{name}x" for name in names(seed, 2))
    robot = made(
        [solid("upper", 4.0, [0.3, 0, 0]), solid("lower", 3.0, [0.85, 0, 0])],
        [
            joint(first, "revolute", "ground", "upper", [0, 0, 0], Z),
            joint(second, "revolute", "upper", "lower", [0.6, 0, 0], Z),
        ],
    )
    brake = pl.safety.JointBrake(side="joint", dynamic_torque=20.0)
    brakes = pl.Brakes({first: brake, second: brake})
    space = pl.safety.Space(speed={first: (0.5, 1.0), second: 0.2})
    results = tmp_path / "study.csv"
    for size in (2, 3):  # the second time it goes on
        sampling = pl.safety.Grid({f"speed.{first}": 3})
        study = pl.study(robot, brakes, space, sampling, results=results, jobs=1, search=False)
        assert study.outcomes() == {"stopped": 3}, size
        assert study.column(f"{first}_speed_rad_per_s").tolist() == [0.5, 0.75, 1.0]
    run = pl.simulate(robot, robot.neutral, [0.3, -0.1], until=0.1)
    motion = pl.safety.JointTrajectory.from_csv(run.to_csv(tmp_path / "run.csv"))
    assert motion.joints == (first, second)
    np.testing.assert_array_equal(motion.values, run.q)
