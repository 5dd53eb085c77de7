"""Stopping times and distances between the cells of a table, with a bound on what that misses.

Between the shares of speed, extension and payload of a table of `annexb` its numbers are followed
by polynomials, which go through all of them. How far these are off is found out at random shares,
at which stops are computed: of n such stops drawn from all, with a confidence of 95 % a part
``0.05^(1/n)`` of all is no farther off than the farthest (order statistics, whatever the errors are
like). Nothing is said of stops outside the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ...boundary.arguments import flat_numbers, public
from ...boundary.marks import Array
from ...errors import BadValue
from ...tables.number_format import milliseconds, number, units_of
from ...tables.report import KeyValues, Notes, Report, Reported, Table
from ..brakes.template import driven_joints
from ..stopping.result_document import PLANNING_AID
from .annexb import AnnexB
from .axis_stops import AxisStop
from .extension import Finder
from .posture import payload_point

_CONFIDENCE = 0.95
_NAMES = ("speed", "extension", "payload")


class Estimate(NamedTuple):
    """A stop between cells: its time [s] and distance [rad, m], and how far they may be off."""

    time: float
    distance: float
    time_bound: float
    distance_bound: float


@dataclass(frozen=True)
class Check:
    """A computed stop that an interpolation was held against.

    ``shares``: of speed, extension and payload; ``time``, ``distance``: computed [s; rad, m];
    ``time_error``, ``distance_error``: interpolated less computed.
    """

    shares: tuple[float, float, float]
    time: float
    distance: float
    time_error: float
    distance_error: float


@public
@dataclass(frozen=True, eq=False)
class StopInterpolation(Reported):
    """Stopping time and distance of an axis over speed, extension and payload.

    Args:
        robot: name of the robot.
        axis: name of the axis.
        category: number of the category.
        nodes: shares of speed, extension and payload, each rising.
        times: at the nodes [s], an axis per share.
        distances: at the nodes [rad, m], an axis per share.
        checks: stops that it was held against.
        unit: unit of distances for reading, and its factor.
    """

    robot: str
    axis: str
    category: int
    nodes: tuple[tuple[float, ...], ...]
    times: Array = field(repr=False)
    distances: Array = field(repr=False)
    checks: tuple[Check, ...] = field(repr=False)
    unit: tuple[str, float] = ("rad", 1.0)

    def __call__(self, speed: float, extension: float = 1.0, payload: float = 1.0) -> Estimate:
        """Time and distance at shares of speed, extension and payload, with their bounds."""
        shares = flat_numbers((speed, extension, payload), "shares", 3)
        for name, share, nodes in zip(_NAMES, shares.tolist(), self.nodes, strict=True):
            if not nodes[0] <= share <= nodes[-1]:
                raise BadValue(
                    f"{name} is {share:g}; the table of axis '{self.axis}' goes from {nodes[0]:g} "
                    f"to {nodes[-1]:g}, and nothing is known beyond"
                )
        time, distance = (_between(self.nodes, x, shares) for x in (self.times, self.distances))
        return Estimate(time, distance, self.time_bound, self.distance_bound)

    @property
    def time_bound(self) -> float:
        """Largest error of a time among the checks [s]."""
        return max(abs(check.time_error) for check in self.checks)

    @property
    def distance_bound(self) -> float:
        """Largest error of a distance among the checks [rad, m]."""
        return max(abs(check.distance_error) for check in self.checks)

    @property
    def proven(self) -> float:
        """Part of all stops within a bound, with a confidence of 95 %."""
        return float((1.0 - _CONFIDENCE) ** (1.0 / len(self.checks)))

    def __rich__(self) -> Report:
        unit, factor = self.unit
        worst = max(self.checks, key=lambda check: abs(check.distance_error))
        facts = [
            ("axis", f"{self.axis}, category {self.category}"),
            ("time", f"off by {milliseconds(self.time_bound)} at most"),
            ("distance", f"off by {number(factor * self.distance_bound, 2)} {unit} at most"),
            ("checks", f"{len(self.checks)} computed stops at random shares"),
        ]
        rows = [
            (name, ", ".join(f"{100 * x:.4g} %" for x in nodes), f"{100 * share:.1f} %")
            for name, nodes, share in zip(_NAMES, self.nodes, worst.shares, strict=True)
        ]
        notes = [
            f"with 95 % confidence {100 * self.proven:.1f} % of all stops within the table are no "
            "farther off, each for itself in time and in distance",
            "outside the table nothing is known",
        ]
        blocks = (
            KeyValues.of("Interpolation", facts),
            Table.of("Shares", ("<share of", "<in the table", "distance worst at"), rows),
            Notes.of("Notes", notes),
        )
        return Report.of(f"{self.robot}: stops between the cells", blocks, PLANNING_AID)

    def as_dict(self) -> dict[str, Any]:
        """All numbers, in SI units, to be interpolated elsewhere."""
        return {
            "robot": self.robot,
            "axis": self.axis,
            "category": self.category,
            "nodes": dict(zip(_NAMES, map(list, self.nodes), strict=True)),
            "stopping_time_s": self.times.tolist(),
            "stopping_distance": self.distances.tolist(),
            "time_bound_s": self.time_bound,
            "distance_bound": self.distance_bound,
            "share_of_stops_proven": self.proven,
            "checks": len(self.checks),
            "disclaimer": PLANNING_AID,
        }


def _between(nodes: Sequence[Sequence[float]], values: Array, shares: Array) -> float:
    """The polynomial through all nodes (Lagrange), in one share after the other."""
    for points, share in zip(nodes, shares.tolist(), strict=True):
        weights = [np.prod([(share - b) / (a - b) for b in points if b != a]) for a in points]
        values = np.tensordot(weights, values, axes=1)
    return float(values)


@public
def interpolate_stops(
    annex: AnnexB, category: int, axis: str, *, checks: int = 59, seed: int = 0
) -> StopInterpolation:
    """Follow time and distance between the cells of a table, and find out how far that is off.

    Args:
        annex: the tables, see `annex_b`.
        category: its number; it needs stops at several shares.
        axis: the axis.
        checks: number of stops at random shares that it is held against: with 59 of them, 95 % of
            all stops are no farther off than the farthest, with a confidence of 95 %.
        seed: of the random shares.

    Raises:
        BadValue: a stop of the table does not end at rest, and held, or there are too few.
    """
    if isinstance(checks, bool) or not isinstance(checks, int) or checks < 1:
        raise BadValue(f"checks is {checks!r}; give a number of stops, at least 1")
    if category not in annex.shares or axis not in annex.axes:
        raise BadValue(
            f"there is no table of category {category!r} and axis '{axis}'; there are categories "
            f"{[*annex.shares]} and axes {', '.join(annex.axes)}"
        )
    poses = annex.extensions[axis].poses
    shares = annex.shares[category]
    nodes = (shares, tuple(share for share in shares if share in poses), shares)
    if any(poses[share].given for share in nodes[1]) and len(nodes[1]) > 1:
        raise BadValue(f"poses of axis '{axis}' are given: there is none between them")
    if len(shares) < 2:
        raise BadValue(
            f"category {category} has stops at {100 * shares[0]:g} % only; ask for more, such as "
            f"shares={{{category}: (0.33, 0.66, 1.0)}}"
        )
    table = {
        (stop.speed_share, stop.extension_share, stop.payload_share): stop
        for stop in annex.select(category=category, axis=axis)
    }
    cells = [[[table[v, e, m] for m in nodes[2]] for e in nodes[1]] for v in nodes[0]]
    for stop in table.values():
        _require_stopped(stop)
    times, distances = (
        np.array([[[getattr(stop, name) for stop in row] for row in some] for some in cells])
        for name in ("time", "distance")
    )
    rng = np.random.default_rng(seed)
    drawn = np.array([[rng.uniform(n[0], n[-1]) for n in nodes] for _ in range(checks)])
    found = []
    for point, stop in zip(drawn, _computed(annex, category, axis, drawn), strict=True):
        _require_stopped(stop)
        errors = (
            _between(nodes, values, point) - float(getattr(stop, name))
            for name, values in (("time", times), ("distance", distances))
        )
        speed, extension, payload = point.tolist()
        found.append(Check((speed, extension, payload), stop.time, stop.distance, *errors))
    units = units_of(annex.robot, axis)
    shown = units.shown, units.factor
    name = annex.robot.name
    return StopInterpolation(name, axis, category, nodes, times, distances, tuple(found), shown)


def _computed(annex: AnnexB, category: int, axis: str, drawn: Array) -> list[AxisStop]:
    """Stops of an axis at shares of speed, extension and payload, shape (n, 3)."""
    settings, extension = annex.settings, annex.extensions[axis]
    (own,) = (each for each in annex.categories if each.number == category)
    poses = dict(extension.poses)
    if missing := {*drawn[:, 1].tolist()} - {*poses}:
        point = payload_point(annex.payload, settings.gravity)
        finder = Finder(annex.robot, driven_joints(annex.robot), point)
        poses |= finder.extension(axis, missing, None, extension.room).poses
    stops = []
    for speed, reach, load in drawn.tolist():
        machine = settings.machine(annex.robot, annex.payload, load)
        full, mass = annex.speeds[axis], annex.payload.mass
        stops.append(
            settings.axis_stop(machine, own, axis, poses[reach], full, (speed, load), mass)
        )
    return stops


def _require_stopped(stop: AxisStop) -> None:
    if stop.outcome != "stopped":
        shares = (stop.speed_share, stop.extension_share, stop.payload_share)
        where = ", ".join(f"{100 * share:.4g} %" for share in shares)
        raise BadValue(
            f"axis '{stop.axis}', category {stop.category}, at {where} of speed, extension and "
            f"payload: {stop.outcome}; there is nothing to interpolate"
        )
