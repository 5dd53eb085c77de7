"""Stops of one axis each that somebody has published or measured, and the CSV file of them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from ...assembly.assemble import assemble, consistent_velocity
from ...assembly.search import outside_limits
from ...boundary.arguments import public
from ...boundary.csv import read_table_rows
from ...boundary.marks import Array
from ...errors import BadValue, LoadError, PinloopError, listed
from ...model.mechanism import Mechanism
from ...tables.number_format import units_of
from ...units import UNITS, column_name
from ..brakes.brakes import Brakes
from ..stopping import Payload, StopResult, stop
from ..stopping.categories import as_category
from ..stopping.safety_functions import SafetyFunction, function_by_name

_NUMBERS = ("time", "angle", "power_off", "brakes_closed")
"""What a row may give of how a stop came out."""
_LEAST_SHAPE, _LARGEST_SHAPE = 0.05, 5.0
"""Shapes beyond these are mistakes rather than stops, see `Measured.doubt`."""
_OWN = ("q", "v", "trigger", "brakes", "payload", "category")
"""Arguments of `stop` that a row gives."""


@public
@dataclass(frozen=True)
class Measured:
    """One stop of one axis, the others at rest. Sliding joints: m for rad.

    Args:
        joint: the axis.
        speed: its speed at the signal, signed [rad/s].
        time: stopping time from the signal [s]; None if not given.
        angle: stopping angle from the signal, as a size [rad]; None if not given.
        pose: coordinates of joints at the signal [rad]; the others are at zero.
        payload: a point at the tool [kg].
        category: of the stop: 0, 1, 2, or a safety function; "SS1-t" needs the power_off.
        units: per joint "rad" or "m" where it is known what its numbers are; compared with the
            robot.
        place: where this stop stands, e.g. "table.csv:3".
        power_off: from the signal until the torque of the drives is gone [s]; None if not given.
        brakes_closed: from the signal until all brakes have their full torque [s]; likewise.
        rounding: half the unit of the last digit, in SI units, per number that is given: "time",
            "angle", "power_off", "brakes_closed"; a file tells it by its digits.
        weight: how much the stop counts in a fit, beside others with 1: as a mean of so many stops.
    """

    joint: str
    speed: float
    time: float | None
    angle: float | None
    pose: Mapping[str, float] = field(default_factory=dict)
    payload: float = 0.0
    category: int | str = 0
    units: Mapping[str, str] = field(default_factory=dict)
    place: str = field(default="", compare=False)
    power_off: float | None = None
    brakes_closed: float | None = None
    rounding: Mapping[str, float] = field(default_factory=dict)
    weight: float = 1.0

    def __post_init__(self) -> None:
        of = f"of a stop of '{self.joint}'"
        if not (math.isfinite(self.speed) and self.speed != 0.0):
            raise BadValue(f"the speed {of} is {self.speed}; it must be a number other than 0")
        for name, value in self.given.items():
            if value is not None and not (math.isfinite(value) and value > 0.0):
                raise BadValue(f"the {name} {of} is {value}; it is a size and must be above 0")
        for name, half in self.rounding.items():
            if name not in _NUMBERS or not 0.0 <= half < math.inf:
                raise BadValue(
                    f"the rounding {of} has {name}: {half}; give sizes for {', '.join(_NUMBERS)}"
                )
        if not 0.0 < self.weight < math.inf:
            raise BadValue(f"the weight {of} is {self.weight}; it must be above 0")
        if not (math.isfinite(self.payload) and self.payload >= 0.0):
            raise BadValue(f"the payload {of} is {self.payload} kg; it must be 0 or more")
        if self.function is None and self.category not in (0, 1, 2):
            raise BadValue(
                f"the category {of} is {self.category}; it must be 0, 1 or 2, or the name of a "
                "safety function such as SS1-r"
            )
        if self.function is SafetyFunction.SS1_T and self.power_off is None:
            raise BadValue(f"the power_off {of} is not known, by which SS1-t is timed; give it")

    @property
    def function(self) -> SafetyFunction | None:
        """Safety function that the category is named by."""
        return function_by_name(self.category) if isinstance(self.category, str) else None

    @property
    def number(self) -> int:
        """Number of the category."""
        return as_category(self.category, time_limit=self._limit(0.0)).number

    def _limit(self, reaction: float) -> float | None:
        """Time limit of the stop, with the time that the chain takes beside it [s]."""
        if self.function is not SafetyFunction.SS1_T or self.power_off is None:
            return None
        return self.power_off - reaction

    @property
    def given(self) -> dict[str, float]:
        """The numbers that are given."""
        return {name: x for name in _NUMBERS if (x := getattr(self, name)) is not None}

    @property
    def rounded(self) -> Array:
        """Standard deviations of the logarithms of ``given`` by rounding: even within an interval.

        Zero where the rounding is not known.
        """
        halves = [self.rounding.get(name, 0.0) / value for name, value in self.given.items()]
        return np.array(halves) / math.sqrt(3.0)

    @property
    def numbers(self) -> int:
        """How many of time, angle, and instants of power and brakes are given."""
        return len(self.given)

    @property
    def shape(self) -> float | None:
        """Measured ``d / (v0 t)``: at least 1/2 for a delay and a constant deceleration."""
        if self.time is None or self.angle is None:
            return None
        return self.angle / (abs(self.speed) * self.time)

    @property
    def doubt(self) -> str:
        """What is hardly possible about its numbers, as where a unit is wrong; else empty."""
        if self.shape is None or _LEAST_SHAPE <= self.shape <= _LARGEST_SHAPE:
            return ""
        return (
            f"{self.place or 'a row'}: joint '{self.joint}' goes {self.shape:.3g} times as far as "
            "at the speed of the signal in the whole time; are the units right?"
        )

    @property
    def likely_time(self) -> float:
        """Time that the stop takes, about, if it is not given [s]."""
        if self.time is None and self.angle is not None:
            return 2.0 * self.angle / abs(self.speed)
        assert self.given, "a row without numbers is not fitted"
        return next(iter(self.given.values()))

    def errors(self, result: StopResult) -> Array:
        """Logarithms of computed over measured numbers; infinite if the axis moves on."""
        joint = result.joints[self.joint]
        computed = {
            "time": joint.time,
            "angle": abs(joint.angle),
            "power_off": result.power_off or 0.0,
            "brakes_closed": result.brakes_closed or 0.0,
        }
        ratios = [computed[name] / given for name, given in self.given.items()]
        if joint.state == "moving" or min(ratios, default=1.0) <= 0.0:
            return np.full(len(ratios), np.inf)
        return np.asarray(np.log(ratios))

    def check(self, robot: Mechanism) -> None:
        """Check that a robot has these joints, and with these units.

        Raises:
            UnknownName: the robot has no such joint.
            BadValue: the joint has several degrees of freedom, or slides where it should turn.
        """
        for name in (self.joint, *self.pose):
            dof = robot.coordinates(name).nv
            if dof != 1:
                raise BadValue(f"joint '{name}' has {dof} degrees of freedom; an axis has one")
            given, si = self.units.get(name), units_of(robot, name).si
            if given not in (None, si):
                does = "slides" if si == "m" else "turns"
                raise BadValue(
                    f"joint '{name}' {does}, but its numbers are given in {given} and its like; "
                    f"give them in {si} and its like"
                )

    def state(self, robot: Mechanism, brakes: Brakes | None = None) -> tuple[Array, Array]:
        """Configuration and velocity at the signal; joints with brakes but its own are at rest.

        Raises:
            PinloopError: see `check`; or loops do not close in this pose.
        """
        self.check(robot)
        q, v = robot.configuration(dict(self.pose)), robot.velocity({self.joint: self.speed})
        for name, *values, _ in outside_limits(robot, q, self.pose):
            units = units_of(robot, name)
            at, low, high = (f"{units.factor * value:.5g}" for value in values)
            raise BadValue(
                f"the pose has joint '{name}' at {at} {units.shown}, outside its limits, {low} to "
                f"{high} {units.shown}"
            )
        if robot.loops or robot.couplings:
            q = assemble(robot, fixed=dict(self.pose))
            others = {} if brakes is None else {n: 0.0 for n in brakes.joints if n != self.joint}
            v = consistent_velocity(robot, q, {**others, self.joint: self.speed})
        return q, v

    def stop(self, robot: Mechanism, brakes: Brakes, **arguments: Any) -> StopResult:
        """Make this stop; ``arguments`` are all else that `stop` takes."""
        for name in _OWN:
            if name in arguments:
                raise BadValue(f"'{name}' is given by each row of the table; leave it out")
        q, v = self.state(robot, brakes)
        load = Payload(self.payload) if self.payload else None
        limit = self._limit(brakes.chain.command + brakes.chain.drive_off)
        category = as_category(self.category, time_limit=limit)
        return stop(robot, q, v, brakes=brakes, payload=load, category=category, **arguments)


@public
@dataclass(frozen=True)
class StoppingTable:
    """Stops that somebody has published or measured.

    Args:
        rows: the stops.
        source: where they come from.
    """

    rows: tuple[Measured, ...]
    source: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", tuple(self.rows))
        if not self.rows:
            raise BadValue("the table of stops is empty")

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
        comments.

        Raises:
            LoadError: the file cannot be read; names file, line and column.
        """
        return cls(tuple(_read_stops(path)), str(path))

    def for_robot(self, robot: Mechanism) -> StoppingTable:
        """Check that a robot has the joints of all rows.

        Returns:
            The same object.

        Raises:
            PinloopError: it does not; a `LoadError` with file and line if they are known.
        """
        for row in self.rows:
            try:
                row.check(robot)
            except PinloopError as error:
                if row.place:
                    raise LoadError(str(error), source=row.place) from None
                raise
        return self

    def stops(self, robot: Mechanism, brakes: Brakes, **arguments: Any) -> tuple[StopResult, ...]:
        """Make all these stops; ``arguments`` are all else that `stop` takes."""
        self.for_robot(robot)
        return tuple(row.stop(robot, brakes, **arguments) for row in self.rows)

    def attempt(
        self, robot: Mechanism, brakes: Brakes, **arguments: Any
    ) -> tuple[StopResult | PinloopError, ...]:
        """As `stops`, but go on after a row that fails; its error is in the place of its stop."""

        def stop_or_error(row: Measured) -> StopResult | PinloopError:
            try:
                return row.stop(robot, brakes, **arguments)
            except PinloopError as error:
                return error

        return tuple(map(stop_or_error, self.rows))


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


def _read_stops(path: str | Path) -> Iterator[Measured]:
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
        yield _Line(source, number, names, cells).stop()


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
        self.source, self.number = source, number
        for k, cell in enumerate(cells):
            if cell.strip() and (k >= len(names) or not names[k]):
                raise self.wrong(f"'{cell.strip()}' stands in column {k + 1}, which has no name")
        texts = (cell.strip() for cell in cells)
        self.cells = {n: text for n, text in zip(names, texts, strict=False) if n and text}
        self.units: dict[str, str] = {}

    def wrong(self, problem: str) -> LoadError:
        return LoadError(problem, source=self.source, line=self.number)

    def stop(self) -> Measured:
        """The stop of the line, in SI units."""
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
        rounding = {name: half for name in _NUMBERS if (half := self.rounding(name)) is not None}
        weight = self.number_in("weight") if "weight" in self.cells else 1.0
        payload = self.number_in("payload_kg") if "payload_kg" in self.cells else 0.0
        place = f"{self.source}:{self.number}"
        try:
            return Measured(
                joint, speed, time, angle, pose, payload, category, self.units, place, power_off,
                closed, rounding, weight,
            )  # fmt: skip
        except BadValue as error:
            raise LoadError(str(error), source=place) from None

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
