"""Figures of stops in SI units over seconds, and of measured motions over computed ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from ...boundary.marks import Array
from ...safety.standards.traces import Overlay
from ...safety.stopping.export import Series
from ...safety.stopping.result import StopResult
from ...tables.number_format import units_of
from ..stop_report.stop_curves import Clock, dense_series, instants
from . import Chart, Line, draw_charts
from .runs import Coordinate, Fine, charts_by_unit, coordinates, velocities

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MEASURED, _COMPUTED = "#8a94a3", "#0072b2"
_POINTS = 900
"""Instants along a stop."""


def plot_stop(result: StopResult, joints: str | Iterable[str] | None = None) -> Figure:
    """Draw a stop.

    By default all joints are shown; where they are too many for one panel, those that move fastest.
    """
    robot = result.robot
    series = dense_series(result, float(result.run.t[-1]) / _POINTS)
    states = Fine(series.t, series.q, series.v, np.arange(len(series.t)))
    chosen = [joints] if isinstance(joints, str) else joints
    names = list(result.joints if chosen is None else chosen)
    columns = {name: robot.coordinates(name).v.start for name in names}
    speeds = np.abs(series.v).max(axis=0, initial=0.0)
    fastest = {name: (True, float(speeds[k])) for name, k in columns.items()}
    ranks = fastest if joints is None else None

    def charts(shown: Iterable[Coordinate], labels: Mapping[str, str]) -> list[Chart]:
        return charts_by_unit(series.t, shown, labels, ranks)

    def exerted(part: str) -> list[Chart]:
        """What brakes or drives exert; nothing where they never do."""
        values: Array = getattr(series, part)
        units = {name: "N" if robot.is_translation[k] else "N m" for name, k in columns.items()}
        shown = [Coordinate(n, n, units[n], values[:, k]) for n, k in columns.items()]
        labels = {"N m": f"{part} torque [N m]", "N": f"{part} force [N]"}
        return charts(shown if values.any() else [], labels)

    moved = (
        c._replace(values=c.values - c.values[0])
        for name in names
        for c in coordinates(robot, name, states)
    )
    rates = (c for name in names for c in velocities(robot, name, states))
    left = charts(moved, {"rad": "angle, from start [rad]", "m": "displacement, from start [m]"})
    right = charts(rates, {"rad/s": "velocity [rad/s]", "m/s": "velocity [m/s]"})
    left, right = left + exerted("brake"), right + exerted("drive")
    (right if len(right) <= len(left) else left).append(_energy(series))
    title = f"{robot.name}: stop of category {result.category.number}, {result.outcome}"
    events = [(mark.x, mark.label) for mark in instants(result, Clock("s", 1.0, 3))]
    return draw_charts(title, [left, right], (0.0, float(series.t[-1])), events)


def _energy(series: Series) -> Chart:
    potential = series.potential - series.potential[0]
    energies = {
        "kinetic": series.kinetic,
        "potential, from start": potential,
        "total": series.kinetic + potential,
    }
    return Chart("energy [J]", [Line(name, series.t, y) for name, y in energies.items()])


def plot_overlay(overlay: Overlay) -> Figure:
    """Measured and computed coordinates of joints, and beside them their differences."""
    robot, t = overlay.stop.robot, overlay.times - overlay.signal
    coordinates, differences = [], []
    for k, name in enumerate(overlay.trace.motion.joints):
        units = units_of(robot, name)
        measured, computed = (units.factor * x[:, k] for x in (overlay.measured, overlay.computed))
        lines = [
            Line("measured", t, measured, color=_MEASURED),
            Line("computed", t, computed, color=_COMPUTED, dash="7 3"),
        ]
        coordinates.append(Chart(f"{name} [{units.shown}]", lines, zero=False))
        between = Line("measured - computed", t, measured - computed, color=_COMPUTED)
        differences.append(Chart(f"difference [{units.shown}]", [between]))
    title = f"{robot.name}: measured and computed stop"
    events = [(0.0, "signal")]
    if overlay.stop.stopping_time < t[-1]:
        events.append((overlay.stop.stopping_time, "at rest"))
    return draw_charts(title, [coordinates, differences], (float(t[0]), float(t[-1])), events)
