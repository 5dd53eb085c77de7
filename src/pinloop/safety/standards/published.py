"""Tables of measured stops, and the CSV file of one."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import zip_longest
from pathlib import Path
from typing import Any

from ...boundary.arguments import public
from ...boundary.csv import read_table_rows
from ...errors import BadValue, LoadError, PinloopError, listed
from ...model.mechanism import Mechanism
from ...units import UNITS, column_name
from ..brakes.brakes import Brakes
from ..stopping import StopResult
from ..stopping.safety_functions import function_by_name
from .measured import NUMBERS, Measured


@dataclass(frozen=True)
class FailedRow:
    """A row of a table, or a recording, whose stop cannot be read or computed, and why."""

    joint: str
    place: str
    reason: str

    @property
    def error(self) -> PinloopError:
        """The error of a command that has nothing else to go on with."""
        return LoadError(self.reason, source=self.place) if self.place else BadValue(self.reason)


@public
@dataclass(frozen=True)
class StoppingTable:
    """Stops that somebody has published or measured.

    Args:
        rows: the stops.
        source: where they come from.
        failed: rows that were left out: they cannot be read, or their stops cannot be computed.
    """

    rows: tuple[Measured, ...]
    source: str = ""
    failed: tuple[FailedRow, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", tuple(self.rows))
        if not self.rows:
            raise self.failed[0].error if self.failed else BadValue("the table of stops is empty")

    @classmethod
    def from_csv(cls, path: str | Path) -> StoppingTable:
        """Read a table.

        One row per stop, with the columns ``joint``; ``speed_rad_per_s``, ``speed_deg_per_s``,
        ``speed_m_per_s`` or ``speed_mm_per_s``; ``time_s`` or ``time_ms``; ``angle_rad``,
        ``angle_deg``, ``distance_m`` or ``distance_mm``; and if wanted ``power_off_s`` or ``_ms``,
        ``brakes_closed_s`` or ``_ms``, ``payload_kg``, ``weight``,
        ``category``, ``note``, and ``<joint>_pose_deg`` (or ``_rad``, ``_m``, ``_mm``) for
        coordinates at the signal. Unknown cells stay empty. Times and angles are rounded to the
        digits that are written: "0.3" is 0.3 +- 0.05. Lines that begin with ``#`` are
        comments. Rows that cannot be read are left out, and are in ``failed``.

        Raises:
            LoadError: the file cannot be read, or none of its rows; names file, line and column.
        """
        rows, failed = list[Measured](), list[FailedRow]()
        for line in _read_lines(path):
            try:
                rows.append(line.stop())
            except LoadError as error:
                failed.append(FailedRow(line.cells.get("joint", ""), line.place, error.problem))
        return cls(tuple(rows), str(path), tuple(failed))

    def for_robot(self, robot: Mechanism) -> StoppingTable:
        """Check that no row has failed, and that a robot has the joints of all.

        Returns:
            The same object.

        Raises:
            PinloopError: it does not; a `LoadError` with file and line if they are known.
        """
        if self.failed:
            raise self.failed[0].error
        for row in self.rows:
            try:
                row.check(robot)
            except PinloopError as error:
                if row.place:
                    raise LoadError(str(error), source=row.place) from None
                raise
        return self

    def without(self, failures: Iterable[tuple[Measured, str]]) -> StoppingTable:
        """Leave out rows, each with the reason; an error if none is left."""
        failures = list(failures)
        rows = tuple(row for row in self.rows if not any(row is x for x, _ in failures))
        failed = [FailedRow(row.joint, row.place, reason) for row, reason in failures]
        return replace(self, rows=rows, failed=(*self.failed, *failed))

    def possible(self, robot: Mechanism, brakes: Brakes) -> StoppingTable:
        """Leave out rows whose stops cannot begin: no such joint, pose, brake; wrong units."""
        failures = []
        for row in self.rows:
            try:
                row.state(robot, brakes)
            except PinloopError as error:
                failures.append((row, str(error)))
        return self.without(failures)

    def stops(self, robot: Mechanism, brakes: Brakes, **arguments: Any) -> tuple[StopResult, ...]:
        """Make all these stops; ``arguments`` are all else that `stop` takes."""
        self.for_robot(robot)
        return tuple(row.stop(robot, brakes, **arguments) for row in self.rows)

    def attempt(
        self, robot: Mechanism, brakes: Brakes, **arguments: Any
    ) -> tuple[StopResult | PinloopError, ...]:
        """As `stops`, but go on after a row that fails; its error is in the place of its stop."""
        return tuple(row.attempt(robot, brakes, **arguments) for row in self.rows)


# -- the file --------------------------------------------------------------------------------

_ANGLES, _LENGTHS = ("rad", "deg"), ("m", "mm")
_QUANTITIES = {
    "speed": {
        column_name("speed", unit=f"{unit}/s"): UNITS[unit] for unit in (*_ANGLES, *_LENGTHS)
    },
    **{
        name: {column_name(name, unit=unit): ("", UNITS[unit][1]) for unit in ("s", "ms")}
        for name in ("time", "power_off", "brakes_closed")
    },
    "angle": {
        column_name(word, unit=unit): UNITS[unit]
        for word, units in (("angle", _ANGLES), ("distance", _LENGTHS))
        for unit in units
    },
}
"""Columns of each quantity: the SI unit of the joint that they tell, and the factor to it."""
_OTHERS = ("joint", "payload_kg", "weight", "category", "note")
_KNOWN = (*_OTHERS, *(name for columns in _QUANTITIES.values() for name in columns))
_POSE = re.compile(r"(?s)(?P<joint>.+)_pose_(?P<unit>rad|deg|mm|m)")


def _read_lines(path: str | Path) -> Iterator[_Line]:
    source = str(path)
    rows = read_table_rows(path, "table of stops")
    lines = [row for row in rows if not row.cells[0].startswith("#")]
    if not lines:
        raise LoadError(
            "is empty; a table of stops begins with the names of columns", source=source
        )
    (number, names), *rest = lines
    _check_names(names, source, number)
    if not rest:
        raise LoadError("has no row below the names of columns", source=source, line=number)
    for number, cells in rest:
        yield _Line(source, number, names, cells)


def _check_names(names: Sequence[str], source: str, line: int) -> None:
    """Complain of columns that are missing, unknown or there twice."""
    if "joint" not in names or not any(name in names for name in _QUANTITIES["speed"]):
        raise LoadError(
            f"must name the columns joint and one of {', '.join(_QUANTITIES['speed'])}, separated "
            f"by commas; it names {listed(names) or 'none'}",
            source=source,
            line=line,
        )
    for name in filter(None, names):
        if name not in _KNOWN and not _POSE.fullmatch(name):
            raise LoadError(
                f"has the column '{name}'; known are {', '.join(_KNOWN)}, and "
                "<joint>_pose_deg, _rad, _m or _mm",
                source=source,
                line=line,
            )
        if names.count(name) > 1:
            raise LoadError(f"has the column '{name}' twice", source=source, line=line)


class _Line:
    """One line, cell by cell."""

    def __init__(self, source: str, number: int, names: list[str], cells: list[str]) -> None:
        self.place = f"{source}:{number}"
        named = zip_longest(names, cells, fillvalue="")
        self.unnamed = next(((k, x) for k, (n, x) in enumerate(named, 1) if x and not n), None)
        self.cells = {n: text for n, text in zip(names, cells, strict=False) if n and text}
        self.units: dict[str, str] = {}

    def wrong(self, problem: str) -> LoadError:
        return LoadError(problem, source=self.place)

    def stop(self) -> Measured:
        """The stop of the line, in SI units."""
        if self.unnamed is not None:
            column, text = self.unnamed
            raise self.wrong(f"'{text}' stands in column {column}, which has no name")
        joint = self.cells.get("joint", "")
        if not joint:
            raise self.wrong("names no joint")
        speed = self.quantity("speed", joint)
        if speed is None:
            raise self.wrong(f"gives no speed of joint '{joint}'")
        time, angle = self.quantity("time", joint), self.quantity("angle", joint)
        pose = self.pose()
        category: int | str = self.cells.get("category", "0")
        if function_by_name(str(category)) is None:
            number = self.number_in("category") if "category" in self.cells else 0.0
            if number not in (0.0, 1.0, 2.0):
                raise self.wrong(f"column 'category': {category} is not 0, 1 or 2")
            category = int(number)
        power_off, closed = (self.quantity(name, joint) for name in ("power_off", "brakes_closed"))
        rounding = {name: half for name in NUMBERS if (half := self.rounding(name)) is not None}
        weight = self.number_in("weight") if "weight" in self.cells else 1.0
        payload = self.number_in("payload_kg") if "payload_kg" in self.cells else 0.0
        try:
            return Measured(
                joint, speed, time, angle, pose, payload, category, self.units, self.place,
                power_off, closed, rounding, weight,
            )  # fmt: skip
        except BadValue as error:
            raise self.wrong(str(error)) from None

    def quantity(self, name: str, joint: str) -> float | None:
        """A quantity that may stand in one of several columns."""
        given = [column for column in _QUANTITIES[name] if column in self.cells]
        if len(given) > 1:
            raise self.wrong(f"gives both {' and '.join(given)}; leave all but one empty")
        if not given:
            return None
        unit, factor = _QUANTITIES[name][given[0]]
        self.note_unit(joint, unit)
        return factor * self.number_in(given[0])

    def rounding(self, name: str) -> float | None:
        """Half the unit of the last digit of a quantity; None if it is not given."""
        for column, (_, factor) in _QUANTITIES[name].items():
            if column in self.cells:
                exponent = Decimal(self.cells[column]).as_tuple().exponent
                return 0.5 * factor * 10.0 ** int(exponent)
        return None

    def pose(self) -> dict[str, float]:
        """Coordinates by joint."""
        pose: dict[str, float] = {}
        for column in self.cells:
            match = None if column in _KNOWN else _POSE.fullmatch(column)
            if match is None:
                continue
            if match["joint"] in pose:
                raise self.wrong(f"gives the pose of joint '{match['joint']}' twice")
            unit, factor = UNITS[match["unit"]]
            self.note_unit(match["joint"], unit)
            pose[match["joint"]] = factor * self.number_in(column)
        return pose

    def note_unit(self, joint: str, unit: str) -> None:
        if unit and self.units.setdefault(joint, unit) != unit:
            raise self.wrong(f"gives numbers of joint '{joint}' in both rad or deg and m or mm")

    def number_in(self, column: str) -> float:
        try:
            value = float(self.cells[column])
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise self.wrong(f"column '{column}': '{self.cells[column]}' is not a number")
        return value
