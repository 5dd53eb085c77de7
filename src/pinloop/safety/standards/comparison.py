"""Computed stops beside published ones: times, angles, and the shape ratio d / (v0 t)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ...boundary.arguments import public
from ...errors import BadValue, PinloopError
from ...tables.number_format import SLIDING, TURNING, Units, numbers, units_of
from ...tables.report import Block, Cell, KeyValues, Notes, Report, Reported, Table
from ..stopping import StopResult
from ..stopping.intervals import Guesses
from ..stopping.result_document import PLANNING_AID
from .measured import Measured
from .published import FailedRow, StoppingTable

_SAME_SPEED = 0.01
"""Part by which speeds may differ; published ones are rounded."""


@dataclass(frozen=True)
class Compared:
    """One row of a comparison.

    Args:
        speed: computed speed of the axis at the signal, signed [rad/s, m/s].
        time: computed stopping time of the axis [s].
        angle: computed stopping angle of the axis, as a size [rad, m].
        unit: unit of the angle, "rad" or "m".
        category: number of the category of the computed stop; None if that is not known.
        power_off: computed time at which the torque of the drives is gone [s]; None if it stays.
        brakes_closed: computed time at which all brakes have their full torque [s]; likewise.
    """

    measured: Measured
    outcome: str
    speed: float
    time: float
    angle: float
    unit: str = "rad"
    category: int | None = None
    power_off: float | None = None
    brakes_closed: float | None = None

    @property
    def time_ratio(self) -> float | None:
        """Computed over published time."""
        return None if self.measured.time is None else self.time / self.measured.time

    @property
    def angle_ratio(self) -> float | None:
        """Computed over published angle."""
        return None if self.measured.angle is None else self.angle / self.measured.angle

    @property
    def shape(self) -> float | None:
        """Computed ``d / (v0 t)``: at least 1/2 for a delay and a constant deceleration."""
        at_speed = abs(self.speed) * self.time
        return self.angle / at_speed if at_speed > 0.0 else None

    @property
    def published_shape(self) -> float | None:
        """Published ``d / (v0 t)``."""
        return self.measured.shape

    @property
    def mismatches(self) -> tuple[str, ...]:
        """In what the computed stop is another one than the published one, a sentence each."""
        row, units = self.measured, TURNING if self.unit == TURNING.si else SLIDING
        sentences = [f"{row.place or 'a row'}: {row.doubt}"] if row.doubt else []
        if abs(self.speed - row.speed) > _SAME_SPEED * abs(row.speed):
            speeds = [f"{units.factor * v:.4g} {units.shown}/s" for v in (self.speed, row.speed)]
            sentences.append(
                f"axis '{row.joint}' moves at {speeds[0]} in the computed stop, at {speeds[1]} in "
                "the table: their times and distances are not comparable"
            )
        if self.category not in (None, row.number):
            sentences.append(
                f"the stop of axis '{row.joint}' is computed in category {self.category}, the "
                f"table has category {row.number}"
            )
        return tuple(sentences)

    def as_dict(self) -> dict[str, Any]:
        """The row in SI units, as JSON takes it."""
        row = self.measured
        return {
            "joint": row.joint,
            "unit": self.unit,
            "speed": row.speed,
            "payload_kg": row.payload,
            "category": row.category,
            "pose": dict(row.pose),
            "outcome": self.outcome,
            "time_s": self.time,
            "published_time_s": row.time,
            "time_ratio": self.time_ratio,
            "angle": self.angle,
            "published_angle": row.angle,
            "angle_ratio": self.angle_ratio,
            "power_off_s": self.power_off,
            "published_power_off_s": row.power_off,
            "brakes_closed_s": self.brakes_closed,
            "published_brakes_closed_s": row.brakes_closed,
            "shape": self.shape,
            "published_shape": self.published_shape,
        }


@public
@dataclass(frozen=True)
class Comparison(Reported):
    """Computed stops beside published ones: print it, or let rich or a notebook show it.

    Args:
        rows: the rows.
        source: where the published ones come from.
        robot: name of the robot.
        failed: rows that cannot be read, or whose stops cannot be computed.
        guesses: brake data that are guesses.
    """

    rows: tuple[Compared, ...]
    source: str = ""
    robot: str = ""
    failed: tuple[FailedRow, ...] = ()
    guesses: Guesses = Guesses(())  # noqa: RUF009 (frozen)

    def __rich__(self) -> Report:
        return self.table()

    def table(self, facts: Iterable[tuple[str, str]] = ()) -> Report:
        """The comparison for reading; ``facts`` are further lines above it: name, text."""
        entries = [("published", self.source), *facts] if self.source else facts
        title = self.guesses.title(f"{self.robot or 'robot'}: computed and published stops")
        return Report.of(title, [KeyValues.of("Stops", entries), *self.blocks()], PLANNING_AID)

    @property
    def warnings(self) -> tuple[str, ...]:
        """In what computed stops are others than the published ones, a sentence each."""
        return tuple(dict.fromkeys(text for row in self.rows for text in row.mismatches))

    def blocks(self) -> tuple[Block, ...]:
        """The tables alone: one for axes that turn, one for axes that slide; and warnings."""
        grids: list[Block] = [
            _grid(rows, units)
            for units in (TURNING, SLIDING)
            if (rows := [row for row in self.rows if row.unit == units.si])
        ]
        grids += failed_rows(self.failed)
        if self.warnings:
            grids.append(Notes.of("Not comparable", self.warnings, "caution"))
        return tuple(grids)

    def as_dict(self) -> dict[str, Any]:
        """Everything in SI units, as JSON takes it."""
        return {
            "headline": self.table().title.text,
            "robot": self.robot,
            "source": self.source,
            "rows": [row.as_dict() for row in self.rows],
            "failed": [asdict(row) for row in self.failed],
            "warnings": list(self.warnings),
        }


@public
def compare(
    results: StopResult | Sequence[StopResult | PinloopError], table: StoppingTable
) -> Comparison:
    """Set computed stops beside a published table.

    Times and angles are those of the axis of each row: from the signal until this axis stands for
    good.

    Args:
        results: a stop per row of the table, as of `StoppingTable.stops`, or why there is none, as
            of `StoppingTable.attempt`; or one stop for all rows.
        table: the published stops.
    """
    stops = [results] * len(table.rows) if isinstance(results, StopResult) else list(results)
    if len(stops) != len(table.rows):
        raise BadValue(
            f"there are {len(stops)} stops for {len(table.rows)} rows of the table; give one per "
            "row, e.g. table.stops(robot, brakes)"
        )
    pairs = list(zip(table.rows, stops, strict=True))
    rows = tuple(_compared(row, stop) for row, stop in pairs if isinstance(stop, StopResult))
    failed = [
        FailedRow(row.joint, row.place, str(x)) for row, x in pairs if isinstance(x, PinloopError)
    ]
    robot = next((stop.robot.name for stop in stops if isinstance(stop, StopResult)), "")
    guesses = (stop.guesses for stop in stops if isinstance(stop, StopResult))
    failed = [*table.failed, *failed]
    return Comparison(rows, table.source, robot, tuple(failed), next(guesses, Guesses(())))


def _compared(measured: Measured, result: StopResult) -> Compared:
    name = measured.joint
    if name not in result.joints:
        raise BadValue(
            f"the table has joint '{name}', for which the brakes of the stop have no entry; they "
            f"have {', '.join(result.joints) or 'none at all'}"
        )
    joint, number = result.joints[name], result.category.number
    speed = float(result.run.v[0][result.robot.coordinates(name).v.start])
    unit, angle = units_of(result.robot, name).si, abs(joint.angle)
    instants = result.power_off, result.brakes_closed
    return Compared(measured, result.outcome, speed, joint.time, angle, unit, number, *instants)


# -- for reading --------------------------------------------------------------------------------


def failed_rows(failed: Iterable[FailedRow]) -> list[Block]:
    """What was left out and why, if there is any."""
    lines = [(x.joint or "-", x.place or "-", Cell(x.reason, "bad")) for x in failed]
    return [Table.of("Left out", ("<axis", "<row", "<reason"), lines)] if lines else []


def _grid(rows: Sequence[Compared], units: Units) -> Table:
    """A table of axes with the same units."""
    pair, factor = ("computed", "published"), units.factor
    headings = ["<axis", f"speed [{units.shown}/s]", "payload [kg]"]
    headings += [*(f"stopping time | {which} [ms]" for which in pair), "difference [%]"]
    headings += [f"stopping distance | {which} [{units.shown}]" for which in pair]
    headings += ["difference [%]", *(f"d / (v0 t) | {which}" for which in pair)]
    published = [row.measured for row in rows]
    instants = [
        name
        for name in ("power_off", "brakes_closed")
        if any(getattr(row, name) is not None for row in published)
    ]
    for name in instants:
        headings += [f"{name.replace('_', ' ')} | {which} [ms]" for which in pair]
    headings.append("<outcome")
    cells = [
        [row.joint for row in published],
        *_columns(factor, [row.speed for row in published]),
        [f"{row.payload:g}" for row in published],
        *_columns(1e3, [row.time for row in rows], [row.time for row in published]),
        [_difference(row.time_ratio) for row in rows],
        *_columns(factor, [row.angle for row in rows], [row.angle for row in published]),
        [_difference(row.angle_ratio) for row in rows],
        [_share(row.shape) for row in rows],
        [_share(row.published_shape) for row in rows],
        *(
            column
            for name in instants
            for column in _columns(1e3, *([getattr(x, name) for x in y] for y in (rows, published)))
        ),
        [Cell(row.outcome, "good" if row.outcome == "stopped" else "bad") for row in rows],
    ]
    what = "turn" if units is TURNING else "slide"
    return Table.of(f"Axes that {what}", headings, zip(*cells, strict=True))


def _columns(factor: float, *columns: Sequence[float | None]) -> list[list[str]]:
    """Columns with the same decimals."""
    texts = numbers(None if x is None else factor * x for column in columns for x in column)
    return np.reshape(texts, (len(columns), -1)).tolist()


def _difference(ratio: float | None) -> str:
    # Adding zero takes the sign from a zero.
    return "-" if ratio is None else f"{round(100.0 * (ratio - 1.0), 1) + 0.0:+.1f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
