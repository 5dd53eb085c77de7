"""Stopping times and distances as vendors declare them (ISO 10218-1:2011, annex B): axis by axis.

One axis moves at a share of its full speed, all others stand; the robot is extended by a share of
what it can and carries a share of its payload. Poses are found in `extension`, stops are made in
`axis_stops`, how tables look is in `annexb_tables`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...boundary.arguments import flat_numbers, public
from ...boundary.csv import write_rows
from ...boundary.files import write_text
from ...boundary.values import forward, stored_fields
from ...errors import BadValue
from ...integrate import MuntheKaas
from ...model.mechanism import Mechanism
from ...tables.number_format import units_of
from ...tables.report import Report, Reported
from ..brakes.brakes import Brakes
from ..brakes.template import driven_joints
from ..stopping import Payload, Standstill, StopResult
from ..stopping.categories import Category, as_category
from ..stopping.intervals import Guesses
from ..stopping.uncertain_brakes import find_guesses
from .axis_stops import AxisStop, Declaration, GivenPoses, Settings
from .editions import ROBOT_EDITIONS, Edition, edition_by_name
from .extension import Extension
from .posture import checked_payload

SHARES: Mapping[int, tuple[float, ...]] = {0: (1.0,), 1: (0.33, 0.66, 1.0), 2: (0.33, 0.66, 1.0)}
"""Shares of speed, extension and payload by number of the category (ISO 10218-1:2011, annex B)."""

_NO_LIMIT = 1e6
"""Velocity limits above this are none [rad/s, m/s]."""
_TABLES = "safety.standards.annexb_tables"


@public
@dataclass(frozen=True, eq=False)
class AnnexB(Reported):
    """Stopping times and distances of a robot, axis by axis.

    Args:
        robot: the robot.
        payload: the largest payload.
        axes: names of the axes.
        categories: the categories.
        shares: shares of speed, extension and payload, by number of the category.
        speeds: full speed of each axis [rad/s, m/s].
        extensions: per axis what it reaches, and its poses.
        stops: all stops.
        settings: brakes, gravity and numerics of all stops.
        edition: standard that asks for them.
    """

    robot: Mechanism = field(repr=False)
    payload: Payload
    axes: tuple[str, ...]
    categories: tuple[Category, ...]
    shares: Mapping[int, tuple[float, ...]]
    speeds: Mapping[str, float]
    extensions: Mapping[str, Extension] = field(repr=False)
    stops: tuple[AxisStop, ...] = field(repr=False)
    settings: Settings = field(repr=False)
    edition: Edition = ROBOT_EDITIONS["ISO 10218-1:2011"]

    __getstate__ = stored_fields

    def __repr__(self) -> str:
        return f"<AnnexB of '{self.robot.name}': {len(self.stops)} stops of {len(self.axes)} axes>"

    def __rich__(self) -> Report:
        return self.report()

    def select(self, **wanted: Any) -> tuple[AxisStop, ...]:
        """Return the stops with the wanted attributes, e.g. ``axis="joint_1", category=0``."""
        return tuple(
            stop
            for stop in self.stops
            if all(getattr(stop, name) == value for name, value in wanted.items())
        )

    def again(self, stop: AxisStop) -> StopResult:
        """Compute a stop once more, with everything that belongs to it."""
        machine = self.settings.machine(self.robot, self.payload, stop.payload_share)
        (category,) = (each for each in self.categories if each.number == stop.category)
        return self.settings.stop(machine, category, stop.pose.q, stop.axis, stop.speed)

    @cached_property
    def longest(self) -> tuple[tuple[AxisStop, StopResult], ...]:
        """By category and axis the stop with the longest time, with everything."""
        stopped = [stop for stop in self.stops if stop.outcome == "stopped"]
        by_time = sorted(stopped, key=lambda stop: stop.time)
        chosen = {(stop.category, stop.axis): stop for stop in by_time}
        keys = product((category.number for category in self.categories), self.axes)
        return tuple((chosen[k], self.again(chosen[k])) for k in keys if k in chosen)

    @property
    def guesses(self) -> Guesses:
        """Brake data that are guesses."""
        brakes = self.settings.brakes
        of_each = (find_guesses(self.robot, brakes, category) for category in self.categories)
        return next((guesses for guesses in of_each if guesses), Guesses(()))

    def table(self, category: int, axis: str | None = None) -> Report:
        """The tables of a category: rows are speeds, columns extensions, one block per payload.

        Args:
            category: its number.
            axis: only this axis; all by default.
        """
        if category not in self.shares:
            raise BadValue(f"category {category!r} was not asked for; there are {[*self.shares]}")
        if axis is not None and axis not in self.axes:
            raise BadValue(f"axis '{axis}' was not asked for; there are {', '.join(self.axes)}")
        return forward(_TABLES, "table_report", self, category, axis)

    def report(self) -> Report:
        """All tables, and below them poses and definitions."""
        return forward(_TABLES, "whole_report", self)

    def rows(self) -> list[dict[str, str | float]]:
        """The stops, a row each, units in the names."""
        return forward(_TABLES, "csv_rows", self)

    def to_csv(self, path: str | Path) -> Path:
        """Write a row per stop as CSV, with its pose; units in the column names."""
        rows = self.rows()
        return write_rows(path, rows[0], (row.values() for row in rows))

    def to_markdown(self, path: str | Path | None = None) -> str:
        """All tables, poses and definitions as Markdown; written to a file if one is given."""
        return _written(self.report().to_markdown(), path)

    def to_html(self, path: str | Path | None = None) -> str:
        """All tables, poses and definitions as a page; written to a file if one is given."""
        return _written(self.report().to_html(), path)

    def to_pdf(self, path: str | Path) -> Path:
        """Write all tables, poses and definitions as pages of A4; needs matplotlib."""
        return self.report().to_pdf(path)


@public
def annex_b(
    robot: Mechanism,
    brakes: Brakes | str | Path,
    *,
    payload: Payload | float | None,
    axes: Sequence[str] | None = None,
    speeds: Mapping[str, float] | None = None,
    extension_poses: GivenPoses | None = None,
    categories: Iterable[int | Category] = (0, 1),
    shares: Mapping[int, Sequence[float]] | None = None,
    gravity: ArrayLike | None = None,
    until: float = 10.0,
    method: MuntheKaas | None = None,
    standstill: Standstill = Standstill(),  # noqa: B008 (frozen)
    edition: str = "ISO 10218-1:2011",
) -> AnnexB:
    """Stopping times and distances as vendors declare them (ISO 10218-1:2011, annex B).

    Category 0 at full speed, extension and payload, category 1 on the grid of 33, 66 and 100 % of
    each; from the signal until all joints are at rest. One axis moves, downwards where it can, and
    the other driven joints stand. What extension is, and which poses have it, is told in
    `standards.extension` and below the tables. Each axis has room up to the limits of all joints,
    1.05 times the travel of its longest stop, if any pose has so much.

    Args:
        robot: the mechanism.
        brakes: brakes, gears, friction and drives, or the file that describes them.
        payload: the largest payload; a number is the mass of a point at the tool [kg], 0 for none.
        axes: driven joints; the first three by default.
        speeds: full speed of axes [rad/s, m/s]; the velocity limits of the robot's file otherwise.
        extension_poses: poses to be used instead, per axis and share of the extension:
            configurations, or values of driven joints by name.
        categories: 0, 1 or 2, or with details, e.g. `Category1(time_limit=0.5)`.
        shares: shares of speed, extension and payload per category, where not those of `SHARES`.
        gravity: gravity in the robot's base [m/s^2], shape (3,); that of its file by default.
        until: limit of the time of a stop [s].
        method: integrator; see `stop`.
        standstill: what counts as standing still.
        edition: "ISO 10218-1:2011" or "ISO 10218-1:2025", or the year alone: the tables are the
            same, see their remarks.

    Raises:
        BadValue: an argument is impossible, an axis has no brake or no known speed, or a pose was
            not found.
    """
    chosen = tuple(map(as_category, categories))
    by, grid = edition_by_name(edition, ROBOT_EDITIONS), _shares(chosen, shares)
    brakes = (brakes if isinstance(brakes, Brakes) else Brakes.from_yaml(brakes)).for_robot(robot)
    vector = robot.gravity if gravity is None else flat_numbers(gravity, "gravity", 3)
    settings = Settings(brakes, np.array(vector), until, method or MuntheKaas(), standstill)
    names = _checked_axes(robot, brakes, axes, chosen)
    own = _for(names, speeds, "speeds")
    full = {axis: _full_speed(robot, axis, own.get(axis)) for axis in names}
    given = _for(names, extension_poses, "extension_poses")
    load = checked_payload(robot, payload)
    wanted = Declaration(robot, settings, load, chosen, grid, full, given)
    extensions = wanted.extensions()
    stops = wanted.stops(extensions)
    return AnnexB(robot, load, names, chosen, grid, full, extensions, stops, settings, by)


def _shares(
    categories: tuple[Category, ...], given: Mapping[int, Sequence[float]] | None
) -> dict[int, tuple[float, ...]]:
    """Shares by number of the category, in rising order."""
    numbers = [category.number for category in categories]
    if not numbers or len(set(numbers)) < len(numbers):
        raise BadValue(f"categories are {numbers}; give at least one, and each number once")
    chosen: dict[int, tuple[float, ...]] = {}
    for number in numbers:
        shares = (given or {}).get(number, SHARES[number])
        chosen[number] = tuple(np.unique(np.asarray(shares, dtype=float)).tolist())
        if not chosen[number] or not all(0 < share <= 1 for share in chosen[number]):
            raise BadValue(
                f"shares of category {number} are {shares!r}; give numbers above 0 and up to 1"
            )
    return chosen


def _for(names: tuple[str, ...], given: Mapping[str, Any] | None, what: str) -> Mapping[str, Any]:
    """What is given per axis, after checking that these axes were asked for."""
    for name in given or {}:
        if name not in names:
            raise BadValue(f"{what} names '{name}', which is none of the axes {', '.join(names)}")
    return given or {}


def _written(text: str, path: str | Path | None) -> str:
    if path is not None:
        write_text(path, text)
    return text


def _checked_axes(
    robot: Mechanism, brakes: Brakes, axes: Sequence[str] | None, categories: Sequence[Category]
) -> tuple[str, ...]:
    """Return the axes after checking that they are driven and have what the categories need."""
    if robot.loops and robot.description.actuated is None:
        raise BadValue(
            f"the file of robot '{robot.name}' does not say which joints of its loops are driven; "
            "list them in its loops file: actuated: [...]"
        )
    driven = driven_joints(robot)
    if isinstance(axes, str):
        axes = (axes,)
    names = tuple(driven[:3] if axes is None else dict.fromkeys(axes))
    if not names:
        raise BadValue(f"robot '{robot.name}' has no driven joint whose stops could be declared")
    braked = any(category.number < 2 for category in categories)
    for name in names:
        robot.coordinates(name)  # says so if there is no such joint
        if name not in driven:
            raise BadValue(
                f"axis '{name}' of robot '{robot.name}' is not driven; driven are "
                f"{', '.join(driven)}"
            )
        brake = brakes.joints.get(name)
        if brake is None or (braked and brake.kind == "none"):
            raise BadValue(
                f"axis '{name}' of robot '{robot.name}' has no brake: nothing stops it; give it "
                f"one in the brakes file: joints: {name}: kind: friction"
            )
    return names


def _full_speed(robot: Mechanism, axis: str, given: float | None) -> float:
    """Full speed of an axis [rad/s, m/s], given or from the robot's file."""
    limit = robot.model.upperVelocityLimit[robot.coordinates(axis).v.start]
    what = f"the full speed of axis '{axis}'"
    speed = float(limit if given is None else flat_numbers(given, what, 1)[0])
    if 0 < speed < _NO_LIMIT:
        return speed
    raise BadValue(
        f"{what} of robot '{robot.name}' is {speed:g} {units_of(robot, axis).si}/s; give it, e.g. "
        f"speeds={{'{axis}': 2.0}}"
    )
