"""Charts as a figure of matplotlib. Only `pdf` imports it, too, and only when it is needed."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import colormaps, style
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ...boundary.marks import Array
from ...tolerances import LOG_FLOOR, SAME
from . import Chart, Instant, Line, place_labels, styled, thin_line

if TYPE_CHECKING:
    from ...safety.standards.cell_map import CellMap

_MOST_POINTS = 4000
"""Lines of more points are thinned; of many at one place the extreme ones stay."""
_WIDTHS = (8.0, 12.5)
"""Of figures with one and with two columns [inch]."""
_LETTERS = 11
"""Letters of titles to the inch."""
_ROW, _ABOVE, _LEAST_HEIGHT = 2.1, 0.7, 3.6
"""Height of a chart, of title and labels, and of the smallest figure [inch]."""
_LETTER, _LABEL_ROW = 4.4, 10.0
"""Width of a letter of labels, and distance of their rows [point]."""
_RISE: Any = {"arrowstyle": "-", "color": "#8a94a3", "lw": 0.7, "shrinkA": 0, "shrinkB": 0}
"""The line of an instant between the axes and its label."""
_STYLE = Path(__file__).with_name("figure.mplstyle")


class Picture(Figure):
    """A figure that notebooks show without ``pyplot``."""

    def _repr_png_(self) -> bytes:
        stream = io.BytesIO()
        self.savefig(stream, format="png", dpi=100)
        return stream.getvalue()


def draw(
    title: str,
    columns: Sequence[Sequence[Chart]],
    span: tuple[float, float],
    instants: Sequence[Instant],
) -> Picture:
    """Draw charts in columns; the last one of a shorter column is the taller for it."""
    with style.context(_STYLE):
        rows = max(map(len, columns))
        size = (_WIDTHS[len(columns) > 1], max(_ROW * rows + _ABOVE, _LEAST_HEIGHT))
        figure = Picture(figsize=size, layout="constrained")
        _entitle(figure, title)
        grid = figure.add_gridspec(rows, len(columns))
        heads = []
        for c, charts in enumerate(columns):
            above: Axes | None = None
            for r, chart in enumerate(charts):
                last = r == len(charts) - 1
                axes = figure.add_subplot(grid[r : rows if last else r + 1, c], sharex=above)
                _draw(axes, chart, instants)
                axes.tick_params(labelbottom=last)
                axes.set_xlabel("time [s]" if last else "")
                if above is None:
                    heads.append(axes)
                above = above or axes
            if above is not None:
                above.set_xlim(*_ends(span))
        figure.draw_without_rendering()  # now the widths of the axes are known
        for head in heads:
            _label(head, instants)
    return figure


def draw_map(
    title: str, labels: tuple[str, str], points: Array, values: Array, unit: str
) -> Picture:
    """Draw values at points of a plane, to scale, coloured by size.

    Colours end where the largest twentieth begins: near singular poses some grow without end.

    Args:
        title: what the values are.
        labels: of the axes, across and up.
        points: shape (n, 2).
        values: shape (n,); where there is none or no end, a cross says so.
        unit: name and unit of the values.
    """
    known = np.isfinite(values)
    with style.context(_STYLE):
        figure = Picture(figsize=(_WIDTHS[0], 0.75 * _WIDTHS[0]), layout="constrained")
        _entitle(figure, title)
        axes = figure.add_subplot()
        axes.set_aspect("equal", adjustable="datalim")
        axes.set_xlabel(labels[0])
        axes.set_ylabel(labels[1])
        across, up = points[~known].T
        axes.scatter(across, up, marker="x", s=14.0, c="#8a94a3", lw=0.8)
        # The least in front: what limits the robot is to be seen.
        order = known.nonzero()[0][np.argsort(-values[known], kind="stable")]
        across, up = points[order].T
        most = float(np.quantile(values[order], 0.95)) if len(order) else 1.0
        spots = axes.scatter(across, up, s=26.0, c=values[order], cmap="viridis", vmax=most)
        beyond = "max" if (values[order] > most).any() else "neither"
        figure.colorbar(spots, ax=axes, label=unit, shrink=0.85, extend=beyond)
    return figure


def draw_zones(title: str, zones: CellMap) -> Picture:
    """Draw from above where people may be at which speeds, and what the robot sweeps.

    Edges of zones are interpolated between places; a zone is filled up to the next faster one.
    """
    shades = colormaps["YlOrRd_r"](np.linspace(0.15, 0.85, len(zones.shares)))
    worst = np.minimum.accumulate(zones.margins, axis=0)
    with style.context(_STYLE):
        height = 0.72 * _WIDTHS[0] * float(np.ptp(zones.y) / np.ptp(zones.x)) + 1.5 * _ABOVE
        height = min(max(height, _LEAST_HEIGHT), 1.5 * _WIDTHS[0])
        figure = Picture(figsize=(_WIDTHS[0], height), layout="constrained")
        _entitle(figure, title)
        axes = figure.add_subplot()
        axes.set_aspect("equal")
        axes.set(xlabel="x [m]", ylabel="y [m]", facecolor="#dcefdc")
        handles: list[Any] = []
        allowed = ("0 %: the robot must be at rest", *(f"{100 * s:g} %" for s in zones.shares))
        for k in range(len(zones.shares) - 1, -1, -1):  # the smallest zone above all others
            color = tuple(shades[k])
            low = min(float(worst[k].min()), -1.0)
            axes.contourf(zones.x, zones.y, worst[k], levels=[low, 0.0], colors=[color])
            edge: Any = {"levels": [0.0], "colors": ["#444c56"], "linewidths": 0.8}
            axes.contour(zones.x, zones.y, worst[k], **edge)
            handles.insert(0, Patch(facecolor=color, edgecolor="#444c56", label=allowed[k]))
        handles.append(Patch(facecolor="#dcefdc", edgecolor="#444c56", label=allowed[-1]))
        swept = PolyCollection(zones.footprint, facecolors="#444c56", edgecolors="none", zorder=3)
        axes.add_collection(swept)
        handles.append(Patch(facecolor="#444c56", label="swept at full speed"))
        figure.legend(handles=handles, title="allowed speed", loc="outside right center")
    return figure


def _entitle(figure: Picture, title: str) -> None:
    """Write a title above all, in as many lines as it takes."""
    text = fill(title, int(_LETTERS * figure.get_figwidth()))
    figure.suptitle(text, x=0.01, ha="left", fontsize=11.0, fontweight="bold")


def _ends(span: tuple[float, float]) -> tuple[float, float]:
    """Ends of an axis, apart also for a run of one state."""
    return span if span[1] > span[0] else (span[0] - 0.5, span[1] + 0.5)


def _draw(axes: Axes, chart: Chart, instants: Sequence[Instant]) -> None:
    axes.set_ylabel(chart.y_label)
    for line, color, dashes in styled(chart.lines):
        _plot(axes, line, color, dashes, chart.logarithmic)
    if chart.logarithmic:
        axes.set_yscale("log")
    else:
        _room(axes, chart.zero)
    for instant in instants:
        axes.axvline(instant.x, color="#8a94a3", lw=0.7 if len(instants) <= 40 else 0.2, zorder=1)
    if chart.level is not None:
        value, name = chart.level
        axes.axhline(value, color="#8a94a3", lw=1.0, ls="--", label=name, zorder=1)
    handles = [h for h in axes.get_legend_handles_labels()[0] if isinstance(h, Line2D)]
    handles += [Line2D([], [], ls="none", label=note) for note in chart.notes]
    if len(handles) > 1:
        axes.legend(
            handles=handles,
            loc="center left",
            bbox_to_anchor=(1.0, 0.5),
            handlelength=1.6,
            borderaxespad=0.4,
            labelspacing=0.35,
        )


def _plot(axes: Axes, line: Line, color: str, dashes: str, logarithmic: bool) -> None:
    y = np.maximum(np.abs(line.y), LOG_FLOOR) if logarithmic else line.y
    t, y = thin_line(line.x, y, _MOST_POINTS)
    pattern = (0, tuple(map(float, dashes.split()))) if dashes else "-"
    axes.plot(
        t,
        y,
        color=color,
        label=line.name or "_",
        ls=":" if line.dotted else pattern,
        marker="o" if len(t) == 1 else None,
        ms=4.0,
    )
    for level, upwards in line.passed:
        axes.axhline(level, color=color, lw=1.0, ls="--", label="_", zorder=1)
        beyond = np.where(y > level if upwards else y < level, y, np.nan)
        axes.plot(t, beyond, color=color, lw=6.0, alpha=0.3, label="_", zorder=1)


def _room(axes: Axes, zero: bool) -> None:
    """Zero where it is asked for; what is constant but for rounding is shown as constant."""
    if zero:
        axes.update_datalim([(axes.get_xlim()[0], 0.0)], updatex=False)
        axes.autoscale_view(scalex=False)
    low, high = axes.get_ylim()
    values = [np.asarray(line.get_ydata(), dtype=float) for line in axes.get_lines()]
    largest = float(np.nanmax(np.abs(np.concatenate([*values, np.zeros(1)]))))
    least = SAME * max(1.0, largest)
    if high - low < least:
        middle = (high + low) / 2
        axes.set_ylim(middle - 0.5 * max(1.0, abs(middle)), middle + 0.5 * max(1.0, abs(middle)))


def _label(axes: Axes, instants: Sequence[Instant]) -> None:
    """Write labels of instants above the axes, in as many rows as they need."""
    width = float(axes.get_window_extent().width) * 72.0 / float(axes.figure.dpi)
    low, high = axes.get_xlim()
    places = place_labels(instants, lambda t: width * (t - low) / (high - low), width, _LETTER)
    rows = max((row for _, row in places.values()), default=-1)
    for k, (begin, row) in places.items():
        up = 4.0 + _LABEL_ROW * (rows - row)
        line = width * (instants[k].x - low) / (high - low)
        ahead = begin > line
        common: dict[str, Any] = {
            "xycoords": ("data", "axes fraction"),
            "xy": (instants[k].x, 1.0),
            "textcoords": "offset points",
        }
        axes.annotate(
            instants[k].label,
            xytext=(2.5 if ahead else -2.5, up),
            ha="left" if ahead else "right",
            va="baseline",
            fontsize=7.5,
            color="#444c56",
            **common,
        )
        axes.annotate("", xytext=(0.0, up + 6.0), arrowprops=_RISE, **common)
