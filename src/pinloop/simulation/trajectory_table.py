"""A run as a table: named columns with units, and the files that hold them.

Numbers and names only; what a run is, is in `trajectory`.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..boundary.files import replace_text_file, require_pyarrow, write_file
from ..model.mechanism import Mechanism

__all__ = ["columns", "write_csv", "write_parquet"]

Array = NDArray[np.float64]


def columns(
    robot: Mechanism, t: Array, q: Array, v: Array, mode: NDArray[np.int64]
) -> dict[str, Array]:
    """Time, coordinates, velocities and number of the mode as named columns with units.

    Args:
        robot: the robot.
        t: times [s], shape (k,).
        q: configurations, shape (k, nq).
        v: velocities, shape (k, nv).
        mode: numbers of the modes, shape (k,).
    """
    table: dict[str, Array] = {"t [s]": t}
    for name in robot.joints:
        at = robot.coordinates(name)
        # Of a joint with a quaternion, or a cosine and sine, the translations come first.
        lengths = int(np.sum(robot.is_translation[at.v]))
        for k, label in enumerate(_labels(at.nq)):
            plain = "m" if k < lengths else "-"
            unit = _unit(robot, at.v.start + k) if at.nq == at.nv else plain
            table[f"q.{name}{label} [{unit}]"] = q[:, at.q.start + k]
    for name in robot.joints:
        at = robot.coordinates(name)
        for k, label in enumerate(_labels(at.nv)):
            unit = _unit(robot, at.v.start + k)
            table[f"v.{name}{label} [{unit}/s]"] = v[:, at.v.start + k]
    table["mode"] = mode.astype(float)
    return table


def write_csv(table: dict[str, Array], path: str | Path) -> Path:
    """Write a table as CSV, numbers to the last bit."""
    with replace_text_file(path) as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows(_rows(table.values()))
    return Path(path)


def write_parquet(table: dict[str, Array], path: str | Path) -> Path:
    """Write a table as Parquet (needs the extra ``parquet``)."""
    pyarrow, parquet = require_pyarrow("or use to_csv")
    content = pyarrow.table(table)
    return write_file(path, lambda file: parquet.write_table(content, file))


def _labels(count: int) -> list[str]:
    return [""] if count == 1 else [f".{k}" for k in range(count)]


def _unit(robot: Mechanism, column: int) -> str:
    return "m" if robot.is_translation[column] else "rad"


def _rows(cells: Iterable[Array]) -> Iterator[list[str]]:
    for row in zip(*cells, strict=True):
        yield [repr(float(value)) for value in row]
