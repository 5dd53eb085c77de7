"""Tables of stopping times and angles that somebody has published or measured, row by row."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import BadValue, LoadError
from ..mechanism import Mechanism
from ..stopping import Brakes, Payload, StopResult, stop

__all__ = ["Measured", "StoppingTable"]

_SPEED = {"speed_rad_per_s": 1.0, "speed_deg_per_s": math.pi / 180, "speed_m_per_s": 1.0}
_TIME = {"time_s": 1.0, "time_ms": 1e-3}
_ANGLE = {"angle_rad": 1.0, "angle_deg": math.pi / 180, "distance_m": 1.0, "distance_mm": 1e-3}
_POSE = {"_rad": 1.0, "_deg": math.pi / 180, "_m": 1.0, "_mm": 1e-3}


@dataclass(frozen=True)
class Measured:
    """One stop of one axis, the others at rest. Sliding joints: m for rad.

    Args:
        joint: the axis.
        speed: its speed at the signal, signed [rad/s].
        time: stopping time from the signal [s]; None if not given.
        angle: stopping angle, as a size [rad]; None if not given.
        pose: coordinates of joints at the signal [rad]; the others are at zero.
        payload: [kg].
        category: of the stop.
    """

    joint: str
    speed: float
    time: float | None
    angle: float | None
    pose: Mapping[str, float] = field(default_factory=dict)
    payload: float = 0.0
    category: int = 0

    def stop(self, robot: Mechanism, brakes: Brakes, **arguments: Any) -> StopResult:
        """Make this stop.

        Args:
            robot: the mechanism.
            brakes: its brakes.
            arguments: all else that `stop` takes.
        """
        from ..assembly import assemble, consistent_velocity

        q = robot.configuration(dict(self.pose))
        v = robot.velocity({self.joint: self.speed})
        if robot.loops or robot.couplings:
            q = assemble(robot, fixed=dict(self.pose))
            others = {name: 0.0 for name in brakes.joints if name != self.joint}
            v = consistent_velocity(robot, q, {**others, self.joint: self.speed})
        load = Payload(self.payload) if self.payload else None
        return stop(robot, q, v, brakes=brakes, payload=load, category=self.category, **arguments)


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
        if not self.rows:
            raise BadValue("the table of stops is empty")

    @classmethod
    def from_csv(cls, path: str | Path) -> StoppingTable:
        """Read a table.

        One row per stop, with the columns ``joint``; ``speed_rad_per_s``, ``speed_deg_per_s`` or
        ``speed_m_per_s``; ``time_s`` or ``time_ms``; ``angle_rad``, ``angle_deg``, ``distance_m``
        or ``distance_mm``; and if wanted ``payload_kg``, ``category``, and
        ``pose_<joint>_deg`` (or ``_rad``, ``_m``, ``_mm``) for the coordinates at the signal. Cells
        of times and angles may be empty.

        Raises:
            LoadError: the file cannot be read; names file, line and column.
        """
        path = Path(path)
        try:
            with path.open(newline="", encoding="utf-8-sig") as file:
                lines = csv.DictReader(file)
                _check_head(path, list(lines.fieldnames or ()))
                rows = tuple(_row(path, lines.line_num, line) for line in lines)
        except (OSError, UnicodeDecodeError) as error:
            raise LoadError(f"{path}: cannot be read: {error}") from error
        if not rows:
            raise LoadError(f"{path}: has no row; a table of stops needs at least one")
        return cls(rows, str(path))

    def stops(self, robot: Mechanism, brakes: Brakes, **arguments: Any) -> tuple[StopResult, ...]:
        """Make all these stops.

        Args:
            robot: the mechanism.
            brakes: its brakes.
            arguments: all else that `stop` takes.
        """
        return tuple(row.stop(robot, brakes, **arguments) for row in self.rows)


def _check_head(path: Path, names: list[str]) -> None:
    if "joint" not in names or not any(name in _SPEED for name in names):
        raise LoadError(
            f"{path}: line 1 must name the columns 'joint' and one of {', '.join(_SPEED)}; it "
            f"names {', '.join(names) or 'nothing'}"
        )
    for name in names:
        known = name in {"joint", "payload_kg", "category", "note", *_SPEED, *_TIME, *_ANGLE}
        if not known and not (name.startswith("pose_") and name.endswith(tuple(_POSE))):
            raise LoadError(
                f"{path}: line 1 has the column '{name}'; known: joint, payload_kg, category, "
                f"note, {', '.join([*_SPEED, *_TIME, *_ANGLE])}, pose_<joint>_deg"
            )


def _row(path: Path, number: int, line: Mapping[str, str | None]) -> Measured:
    def value(name: str) -> float | None:
        text = (line.get(name) or "").strip()
        if not text:
            return None
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if not math.isfinite(found):
            raise LoadError(f"{path}: line {number}, column '{name}': '{text}' is not a number")
        return found

    def first(names: Mapping[str, float]) -> float | None:
        found = [value(name) for name in names]
        return next(
            (x * unit for x, unit in zip(found, names.values(), strict=True) if x is not None),
            None,
        )

    speed = first(_SPEED)
    if speed is None or speed == 0.0:
        raise LoadError(f"{path}: line {number}: a stop needs a speed that is not zero")
    pose = {}
    for name in line:
        for ending, unit in _POSE.items():
            if name and name.startswith("pose_") and name.endswith(ending):
                place = value(name)
                if place is not None:
                    pose[name[len("pose_") : -len(ending)]] = place * unit
                break
    joint = (line.get("joint") or "").strip()
    category = value("category")
    return Measured(
        joint, speed, first(_TIME), first(_ANGLE), pose, value("payload_kg") or 0.0,
        0 if category is None else int(category),
    )  # fmt: skip
