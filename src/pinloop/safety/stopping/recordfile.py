"""Tables of recorded joint motion (CSV) as people's machines write them.

Text to names and numbers in SI units, each complaint with file, line and column. Knows no robot.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...boundary.csv import TableRow, read_table_rows
from ...boundary.marks import Array
from ...errors import BadValue, LoadError, UnknownName
from ...units import UNITS

_TIME_NAMES = {"t", "time", "timestamp"}
_TIME_UNITS = {name: size for name, (si, size) in UNITS.items() if si == "s"}
_UNITS = {name: unit for name, unit in UNITS.items() if unit[0] in ("rad", "m")}
_BRACKETS = re.compile(r"(?P<name>.*?)\s*(?:\[(?P<square>[^\]]*)\]|\((?P<round>[^)]*)\))")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)


RecordTable = tuple[tuple[str, ...], Array, Array, tuple[str, ...]]
"""Names of joints, times [s], shape (k,), coordinates [rad, m], shape (k, joints), and per joint
"rad", "m", or "" where the file does not say."""


@dataclass(frozen=True)
class _Column:
    """A column that is read: its place, what it is called, its factor to SI."""

    index: int
    title: str
    name: str
    unit: str
    factor: float

    def __str__(self) -> str:
        return f"column {self.index + 1} ('{self.title}')"


def read_table(path: str | Path, joints: Sequence[str] | None = None) -> RecordTable:
    """Read a table of times and joint coordinates.

    ``joints``: joints to take; every column but the time by default.

    Raises:
        LoadError: names the file, the line and the column.
    """
    if isinstance(joints, str) or (joints is not None and not joints):
        raise BadValue(f"joints is {joints!r}; give a list of joint names, or None for all")
    source = str(path)
    rows = read_table_rows(path, "recording")
    header, samples = _header(rows, source)
    width = len(header.cells)
    while (
        width
        and not header.cells[width - 1]
        and not any(any(row.cells[width - 1 :]) for row in samples)
    ):
        width -= 1  # every line ends with a separator
    time, columns = _columns(header, width, joints, source)
    numbers = np.array([_sample(row, width, (time, *columns), source) for row in samples])
    if len(numbers) < 2:
        problem = f"{len(numbers)} samples; a motion needs at least 2 (better 4)"
        raise LoadError(problem, source=source, line=header.line)
    late = np.flatnonzero(np.diff(numbers[:, 0]) <= 0)
    if late.size:
        k = int(late[0])
        raise LoadError(
            f"{time}: time {samples[k + 1].cells[time.index]} is not after "
            f"{samples[k].cells[time.index]} in line {samples[k].line}; times must increase",
            source=source,
            line=samples[k + 1].line,
        )
    names, units = (tuple(getattr(c, key) for c in columns) for key in ("name", "unit"))
    return names, numbers[:, 0], numbers[:, 1:], units


def _header(rows: list[TableRow], source: str) -> tuple[TableRow, list[TableRow]]:
    """The header and the samples; a comment above bare numbers is their header."""
    comment: TableRow | None = None
    for k, row in enumerate(rows):
        if row.cells[0].startswith("#"):
            comment = TableRow(row.line, [row.cells[0].lstrip("# "), *row.cells[1:]])
            continue
        samples = [other for other in rows[k:] if not other.cells[0].startswith("#")]
        if not all(_NUMBER.fullmatch(cell) for cell in row.cells if cell):
            return row, samples[1:]
        if comment is not None:
            return comment, samples
        raise LoadError(
            "numbers stand where the header must be; the first row names the columns, e.g. "
            "t,joint_1,joint_2",
            source=source,
            line=row.line,
        )
    raise LoadError("has no rows; the first names the columns, e.g. t,joint_1", source=source)


def _columns(
    header: TableRow, width: int, joints: Sequence[str] | None, source: str
) -> tuple[_Column, list[_Column]]:
    """The column of the time and those of the joints."""
    times: list[_Column] = []
    columns: dict[str, _Column] = {}
    own = _own_columns(header.cells[:width]) if joints is None else {}
    try:
        for index, title in enumerate(header.cells[:width]):
            if (time := _as_time(index, title)) is not None:
                times.append(time)
            elif (column := own.get(index) if own else _as_joint(index, title, joints)) is not None:
                if column.name in columns:
                    raise BadValue(
                        f"{column} and {columns[column.name]} are both joint '{column.name}'; "
                        "take one out"
                    )
                columns[column.name] = column
        if len(times) != 1:
            named = " and ".join(map(str, times)) or "none"
            raise BadValue(
                f"there must be one column of times, named t or time, separated from the others "
                f"by commas, semicolons or tabs; found: {named}"
            )
        for name in joints or ():
            if name not in columns:
                raise UnknownName("column", name, header.cells[:width])
        if not columns:
            raise BadValue("there is no column of a joint beside that of the time")
    except (BadValue, UnknownName) as error:
        raise LoadError(str(error), source=source, line=header.line) from None
    return times[0], list(columns.values())


def _own_columns(titles: Sequence[str]) -> dict[int, _Column]:
    """Coordinates in a table that pinloop wrote, by place; nothing if it is another table.

    The tables of runs and stops have ``_position_`` and ``_velocity_`` for each; that of a run had
    ``q.`` before coordinates in earlier versions, and ends with the mode.
    """
    if "mode" in titles and any(title.startswith("q.") for title in titles):
        former = ((k, title[2:]) for k, title in enumerate(titles) if title.startswith("q."))
        columns = (_as_joint(k, title, None) for k, title in former)
        return {column.index: column for column in columns if column is not None}
    parted = ((k, *title.rpartition("_position_")) for k, title in enumerate(titles))
    return {
        k: _Column(k, titles[k], name, unit, 1.0)
        for k, name, _, unit in parted
        if unit in ("rad", "m") and f"{name}_velocity_{unit}_per_s" in titles
    }


def _as_time(index: int, title: str) -> _Column | None:
    """The column as one of times, if its title says so."""
    name, unit = _parted(title, _TIME_UNITS)
    if name.lower() not in _TIME_NAMES:
        return None
    column = _Column(index, title, name, "s", _TIME_UNITS.get(unit.lower() or "s", np.nan))
    if np.isnan(column.factor):
        raise BadValue(f"{column} has unit '{unit}'; known for times: {', '.join(_TIME_UNITS)}")
    return column


def _as_joint(index: int, title: str, joints: Sequence[str] | None) -> _Column | None:
    """The column as one of a joint; None if it is not among those that are asked for."""
    name, unit = _parted(title, _UNITS)
    if joints is not None:
        # The names that are asked for decide what is a name and what a unit. Our own tables write
        # _position behind the name, and wrote q. before it.
        bare = (name.removesuffix("_position"), name.removeprefix("q."))
        pairs = [(title, ""), (name, unit), *((text, unit) for text in bare)]
        known = [pair for pair in pairs if pair[0] in joints and pair[1].lower() in ("", *_UNITS)]
        if not known:
            return None
        name, unit = known[0]
    column = _Column(index, title, name, "", 1.0)
    if not name:
        raise BadValue(
            f"{column} has no name; name it or take it out (a table of pandas: index=False)"
        )
    if not unit:
        return column
    if unit.lower() not in _UNITS:
        raise BadValue(
            f"{column} has unit '{unit}'; known: {', '.join(_UNITS)}; if it is not the coordinate "
            "of a joint, take it out or name the joints to read (joints=)"
        )
    si, factor = _UNITS[unit.lower()]
    return _Column(index, title, name, si, factor)


def _parted(title: str, units: Collection[str]) -> tuple[str, str]:
    """Name and unit of a title: ``name [unit]``, ``name (unit)``, or ``name_unit`` if known."""
    if match := _BRACKETS.fullmatch(title):
        return match["name"], (match["square"] or match["round"] or "").strip()
    name, _, unit = title.rpartition("_")
    return (name, unit) if name and unit.lower() in units else (title, "")


def _sample(row: TableRow, width: int, columns: Sequence[_Column], source: str) -> list[float]:
    """The numbers of a row, in SI units."""
    if any(row.cells[width:]):
        raise LoadError(
            f"{len(row.cells)} cells, but the header has {width}; with decimal commas, columns "
            "must be separated by semicolons",
            source=source,
            line=row.line,
        )
    numbers = []
    for column in columns:
        cell = row.cells[column.index] if column.index < len(row.cells) else ""
        number = float(cell) if _NUMBER.fullmatch(cell) else np.nan
        if not np.isfinite(number):
            what = f"{cell!r}, which is no finite number" if cell else "empty"
            problem = f"{column} is {what}; correct it or take the row out"
            raise LoadError(problem, source=source, line=row.line)
        numbers.append(number * column.factor)
    return numbers
