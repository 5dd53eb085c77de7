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
    """Measured and computed coordinates of the joints that move, and their differences."""
    robot, t = overlay.stop.robot, overlay.times - overlay.signal
    columns = []
    for k, name in enumerate(overlay.trace.motion.joints):
        units = units_of(robot, name)
        measured, computed = (units.factor * x[:, k] for x in (overlay.measured, overlay.computed))
        above = Chart(
            f"{name} [{units.shown}]",
            [
                Line("measured", t, measured, color=_MEASURED, dash="2 3"),
                Line("computed", t, computed, color=_COMPUTED),
            ],
            zero=False,
        )
        between = Line("measured - computed", t, measured - computed, color=_COMPUTED)
        columns.append([above, Chart(f"difference [{units.shown}]", [between])])
    charts = [chart for column in columns for chart in column]
    title = f"{robot.name}: measured and computed stop"
    events = [(0.0, "signal")]
    if overlay.stop.stopping_time < t[-1]:
        events.append((overlay.stop.stopping_time, "at rest"))
    return draw_charts(title, [charts], (float(t[0]), float(t[-1])), events)
