"""Charts of a measured stop over the computed one, and of what is between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...safety.standards.traces import Overlay
from ...tables.number_format import units_of
from . import Chart, Line, draw_charts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MEASURED, _COMPUTED = "#8a94a3", "#0072b2"


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
