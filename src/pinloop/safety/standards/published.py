"""Stops of one axis each that somebody has published or measured; `stopfile` reads their file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...assembly.assemble import assemble, consistent_velocity
from ...boundary.arguments import public
from ...errors import BadValue, LoadError, PinloopError
from ...model.mechanism import Mechanism
from ...tables.number_format import units_of
from ..brakes.brakes import Brakes
from ..stopping import Payload, StopResult, stop
from .stopfile import StopRow, read_stops

__all__ = ["Measured", "StoppingTable"]

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
        category: of the stop.
        units: per joint "rad" or "m" where it is known what its numbers are; compared with the
            robot.
        place: where this stop stands, e.g. "table.csv:3".
    """

    joint: str
    speed: float
    time: float | None
    angle: float | None
    pose: Mapping[str, float] = field(default_factory=dict)
    payload: float = 0.0
    category: int = 0
    units: Mapping[str, str] = field(default_factory=dict)
    place: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        of = f"of a stop of '{self.joint}'"
        if not (math.isfinite(self.speed) and self.speed != 0.0):
            raise BadValue(f"the speed {of} is {self.speed}; it must be a number other than 0")
        for name, value in (("time", self.time), ("angle", self.angle)):
            if value is not None and not (math.isfinite(value) and value > 0.0):
                raise BadValue(f"the {name} {of} is {value}; it is a size and must be above 0")
        if not (math.isfinite(self.payload) and self.payload >= 0.0):
            raise BadValue(f"the payload {of} is {self.payload} kg; it must be 0 or more")
        if self.category not in (0, 1, 2):
            raise BadValue(f"the category {of} is {self.category}; it must be 0, 1 or 2")

    @property
    def numbers(self) -> int:
        """How many of time and angle are given."""
        return (self.time is not None) + (self.angle is not None)

    @property
    def shape(self) -> float | None:
        """Measured ``d / (v0 t)``: at least 1/2 for a delay and a constant deceleration."""
        if self.time is None or self.angle is None:
            return None
        return self.angle / (abs(self.speed) * self.time)

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

    def stop(self, robot: Mechanism, brakes: Brakes, **arguments: Any) -> StopResult:
        """Make this stop.

        Args:
            robot: the mechanism.
            brakes: its brakes.
            arguments: all else that `stop` takes.
        """
        for name in _OWN:
            if name in arguments:
                raise BadValue(f"'{name}' is told by each row of the table; leave it out")
        self.check(robot)
        q = robot.configuration(dict(self.pose))
        v = robot.velocity({self.joint: self.speed})
        if robot.loops or robot.couplings:
            q = assemble(robot, fixed=dict(self.pose))
            others = {name: 0.0 for name in brakes.joints if name != self.joint}
            v = consistent_velocity(robot, q, {**others, self.joint: self.speed})
        load = Payload(self.payload) if self.payload else None
        return stop(robot, q, v, brakes=brakes, payload=load, category=self.category, **arguments)


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
        ``angle_deg``, ``distance_m`` or ``distance_mm``; and if wanted ``payload_kg``,
        ``category``, ``note``, and ``pose_<joint>_deg`` (or ``_rad``, ``_m``, ``_mm``) for
        coordinates at the signal. Cells that are not known stay empty. Lines that begin with
        ``#`` are remarks.

        Raises:
            LoadError: the file cannot be read; names file, line and column.
        """
        return cls(tuple(_measured(row) for row in read_stops(path)), str(path))

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
        """Make all these stops.

        Args:
            robot: the mechanism.
            brakes: its brakes.
            arguments: all else that `stop` takes.
        """
        self.for_robot(robot)
        return tuple(row.stop(robot, brakes, **arguments) for row in self.rows)


def _measured(row: StopRow) -> Measured:
    """A row of a file as a stop; what it says wrong is told with its line."""
    try:
        return Measured(
            row.joint, row.speed, row.time, row.angle, row.pose, row.payload, row.category,
            row.units, row.place,
        )  # fmt: skip
    except BadValue as error:
        raise LoadError(str(error), source=row.place) from None
