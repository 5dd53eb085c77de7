"""The file of a table of stops (CSV): columns, units, and what is wrong with them, line by line.

Text to numbers in SI units. Knows no robot.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...boundary.csv import read_table_rows
from ...boundary.remarks import listed
from ...errors import LoadError
from ...units import UNITS, column_name

__all__ = ["StopRow", "read_stops"]

_ANGLES, _LENGTHS = ("rad", "deg"), ("m", "mm")
_QUANTITIES = {
    "speed": {
        column_name("speed", unit=f"{unit}/s"): UNITS[unit] for unit in (*_ANGLES, *_LENGTHS)
    },
    "time": {column_name("time", unit=unit): ("", UNITS[unit][1]) for unit in ("s", "ms")},
    "angle": {
        column_name(word, unit=unit): UNITS[unit]
        for word, units in (("angle", _ANGLES), ("distance", _LENGTHS))
        for unit in units
    },
}
"""Columns of each quantity: the SI unit of the joint that they tell, and the factor to it."""
_OTHERS = ("joint", "payload_kg", "category", "note")
_KNOWN = (*_OTHERS, *(name for columns in _QUANTITIES.values() for name in columns))
_POSE = re.compile(r"(?P<joint>.+)_pose_(?P<unit>rad|deg|mm|m)")
_FORMER_POSE = re.compile(r"pose_(?P<joint>.+)_(?P<unit>rad|deg|mm|m)")
"""How columns of poses were called in earlier versions."""


@dataclass(frozen=True)
class StopRow:
    """A line of the file, in SI units.

    Args:
        place: file and line.
        joint: the axis.
        speed: [rad/s, m/s].
        time: [s]; None if the cell is empty.
        angle: [rad, m]; None if the cell is empty.
        pose: coordinates by joint [rad, m].
        payload: [kg].
        category: of the stop.
        units: "rad" or "m" by joint.
    """

    place: str
    joint: str
    speed: float
    time: float | None
    angle: float | None
    pose: dict[str, float]
    payload: float
    category: int
    units: dict[str, str]


def read_stops(path: str | Path) -> Iterator[StopRow]:
    """Read the rows of a table of stops.

    Raises:
        LoadError: names file, line and column.
    """
    source = str(path)
    rows = read_table_rows(path, "table of stops")
    lines = [row for row in rows if not row.cells[0].startswith("#")]
    if not lines:
        raise LoadError("is empty; a table of stops begins with the names of columns",
                        source=source)  # fmt: skip
    (number, names), *rest = lines
    _check_names(names, source, number)
    if not rest:
        raise LoadError("has no row below the names of columns", source=source, line=number)
    for number, cells in rest:
        yield _Line(source, number, names, cells).row()


def _check_names(names: Sequence[str], source: str, line: int) -> None:
    """Complain of columns that are missing, unknown or there twice."""
    if "joint" not in names or not any(name in names for name in _QUANTITIES["speed"]):
        raise LoadError(
            f"must name the columns joint and one of {', '.join(_QUANTITIES['speed'])}, separated "
            f"by commas; it names {listed(names) or 'none'}",
            source=source, line=line,
        )  # fmt: skip
    for name in filter(None, names):
        if name not in _KNOWN and not _pose_column(name):
            raise LoadError(
                f"has the column '{name}'; known are {', '.join(_KNOWN)}, and "
                "<joint>_pose_deg, _rad, _m or _mm",
                source=source, line=line,
            )  # fmt: skip
        if names.count(name) > 1:
            raise LoadError(f"has the column '{name}' twice", source=source, line=line)


def _pose_column(name: str) -> re.Match[str] | None:
    """The joint and the unit of a column with a coordinate of the pose; None if it is another."""
    return _POSE.fullmatch(name) or _FORMER_POSE.fullmatch(name)


class _Line:
    """One line, cell by cell."""

    def __init__(self, source: str, number: int, names: list[str], cells: list[str]) -> None:
        self.source, self.number = source, number
        for k, cell in enumerate(cells):
            if cell.strip() and (k >= len(names) or not names[k]):
                raise self.wrong(f"'{cell.strip()}' stands in column {k + 1}, which has no name")
        texts = (cell.strip() for cell in cells)
        self.cells = {n: text for n, text in zip(names, texts, strict=False) if n and text}
        self.units: dict[str, str] = {}

    def wrong(self, problem: str) -> LoadError:
        return LoadError(problem, source=self.source, line=self.number)

    def row(self) -> StopRow:
        """The line in SI units."""
        joint = self.cells.get("joint", "")
        if not joint:
            raise self.wrong("names no joint")
        speed = self.quantity("speed", joint)
        if speed is None:
            raise self.wrong(f"gives no speed of joint '{joint}'")
        time, angle = self.quantity("time", joint), self.quantity("angle", joint)
        pose = self.pose()
        category = self.number_in("category") if "category" in self.cells else 0.0
        if category not in (0.0, 1.0, 2.0):
            raise self.wrong(f"column 'category': {self.cells['category']} is not 0, 1 or 2")
        payload = self.number_in("payload_kg") if "payload_kg" in self.cells else 0.0
        return StopRow(
            f"{self.source}:{self.number}", joint, speed, time, angle, pose, payload,
            int(category), self.units,
        )  # fmt: skip

    def quantity(self, name: str, joint: str) -> float | None:
        """A quantity that may stand in one of several columns."""
        given = [column for column in _QUANTITIES[name] if column in self.cells]
        if len(given) > 1:
            raise self.wrong(f"gives both {' and '.join(given)}; leave all but one empty")
        if not given:
            return None
        unit, factor = _QUANTITIES[name][given[0]]
        self.note(joint, unit)
        return factor * self.number_in(given[0])

    def pose(self) -> dict[str, float]:
        """Coordinates of joints."""
        found: dict[str, float] = {}
        for column in self.cells:
            match = None if column in _KNOWN else _pose_column(column)
            if match is None:
                continue
            if match["joint"] in found:
                raise self.wrong(f"gives the pose of joint '{match['joint']}' twice")
            unit, factor = UNITS[match["unit"]]
            self.note(match["joint"], unit)
            found[match["joint"]] = factor * self.number_in(column)
        return found

    def note(self, joint: str, unit: str) -> None:
        """Remember what the numbers of a joint are in."""
        if unit and self.units.setdefault(joint, unit) != unit:
            raise self.wrong(f"gives numbers of joint '{joint}' in both rad or deg and m or mm")

    def number_in(self, column: str) -> float:
        """The number in a column."""
        text = self.cells[column]
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise self.wrong(f"column '{column}': '{text}' is not a number")
        return value
