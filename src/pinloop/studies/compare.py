"""Computed stops beside published ones: times, angles, and the shape ratio d / (v0 t)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import BadValue
from ..stopping import StopResult
from .published import Measured, StoppingTable

__all__ = ["Compared", "Comparison", "compare"]


@dataclass(frozen=True)
class Compared:
    """One row of a comparison.

    Args:
        measured: the published stop.
        outcome: how the computed one ended.
        time: computed stopping time of the axis [s].
        angle: computed stopping angle of the axis, as a size [rad, m].
    """

    measured: Measured
    outcome: str
    time: float
    angle: float

    @property
    def time_ratio(self) -> float | None:
        """Computed over published time."""
        return self.time / self.measured.time if self.measured.time else None

    @property
    def angle_ratio(self) -> float | None:
        """Computed over published angle."""
        return self.angle / self.measured.angle if self.measured.angle else None

    @property
    def shape(self) -> float:
        """Computed ``d / (v0 t)``: at least 1/2 for a delay and a constant deceleration."""
        return self.angle / (abs(self.measured.speed) * self.time) if self.time else 0.0

    @property
    def published_shape(self) -> float | None:
        """Published ``d / (v0 t)``."""
        row = self.measured
        if not row.time or row.angle is None:
            return None
        return row.angle / (abs(row.speed) * row.time)


@dataclass(frozen=True)
class Comparison:
    """Computed stops beside published ones.

    Args:
        rows: the rows.
        source: where the published ones come from.
    """

    rows: tuple[Compared, ...]
    source: str = ""

    def __str__(self) -> str:
        head = ("joint", "speed", "payload", "time", "published", "ratio", "angle", "published",
                "ratio", "d/(v0 t)", "published", "outcome")  # fmt: skip
        units = ("", "[1/s]", "[kg]", "[ms]", "[ms]", "", "[rad, m]", "[rad, m]", "", "", "", "")
        lines = [head, units, *(_cells(row) for row in self.rows)]
        widths = [max(len(line[k]) for line in lines) for k in range(len(head))]
        text = [
            "  ".join(
                cell.ljust(width) if k in (0, len(head) - 1) else cell.rjust(width)
                for k, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        return "\n".join(text)


def compare(results: StopResult | Sequence[StopResult], table: StoppingTable) -> Comparison:
    """Set computed stops beside a published table.

    Args:
        results: a stop per row of the table, as of `StoppingTable.stops`; or one stop for all rows.
        table: the published stops.
    """
    stops = [results] * len(table.rows) if isinstance(results, StopResult) else list(results)
    if len(stops) != len(table.rows):
        raise BadValue(
            f"there are {len(stops)} stops for {len(table.rows)} rows of the table; give one per "
            "row, e.g. table.stops(robot, brakes)"
        )
    rows = []
    for measured, result in zip(table.rows, stops, strict=True):
        if measured.joint not in result.joints:
            raise BadValue(
                f"the table has joint '{measured.joint}', which the stop does not; it has "
                f"{', '.join(result.joints)}"
            )
        joint = result.joints[measured.joint]
        rows.append(Compared(measured, result.outcome, joint.time, abs(joint.angle)))
    return Comparison(tuple(rows), table.source)


def _cells(row: Compared) -> tuple[str, ...]:
    def shown(value: float | None, digits: int = 3) -> str:
        return "-" if value is None else f"{value:.{digits}f}"

    measured = row.measured
    time = None if measured.time is None else 1e3 * measured.time
    return (
        measured.joint, shown(measured.speed), shown(measured.payload, 1), shown(1e3 * row.time, 0),
        shown(time, 0), shown(row.time_ratio, 2), shown(row.angle, 4), shown(measured.angle, 4),
        shown(row.angle_ratio, 2), shown(row.shape), shown(row.published_shape), row.outcome,
    )  # fmt: skip
