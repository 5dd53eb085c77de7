"""Charts as SVG for pages: round steps and units, labelled instants, legends, scales of colours.

Sizes are in units of the picture, which is scaled as a whole; a page needs no script to show it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ...boundary.marks import Array
from ...tables.number_format import number
from ...tables.report import Markup, render
from ...tolerances import SAME, TICK_DIGITS
from . import Chart, Line, place_labels, shorten, styled, thin_line

Span = tuple[float, float]
Scale = Callable[[Any], Any]
"""From a number, or an array of them, to places in the picture."""

_WIDTHS = (900.0, 440.0)
"""Of a picture, and of one of half the width."""
_LETTER = 6.9
"""Width of a letter of the labels."""
_LINE, _TOP, _BOTTOM, _RIGHT = 15, 8, 44, 14
_STEP = 29.0
"""Height of a row."""
_ROOM = 0.03
"""Room between the curves and the ends of the axis, as part of it."""
_MOST_POINTS = 700
_COLORS = (
    (255, 232, 163),
    (253, 190, 90),
    (241, 133, 56),
    (205, 66, 56),
    (133, 22, 84),
    (52, 8, 66),
)
"""From little to much: lighter to darker, so that it can be told in grey and with any eyes."""
_SHADES = 48
"""Steps of the picture of the scale."""


class Key(NamedTuple):
    """What stands for a name in a chart: a line, or an area."""

    name: str
    color: str
    dash: str = ""
    area: bool = False
    opacity: float = 1.0


def figure(chart: Chart, keys: Sequence[Key] | None = None) -> Markup:
    """A chart with its name and legend, by default of its lines if there are several."""
    if keys is None:
        keys = [Key(line.name, color, dash) for line, color, dash in styled(chart.lines)]
        keys = keys if len(keys) > 1 else []
    return render(
        "show/plots/templates/figure.html",
        title=chart.title,
        picture=draw(chart),
        legend=legend(keys) if keys else "",
        half=chart.half,
    )


def legend(keys: Sequence[Key]) -> Markup:
    """Names with what stands for them in a chart."""
    return render("show/plots/templates/legend.html", keys=keys)


def draw(chart: Chart) -> Markup:
    """The picture of a chart."""
    rows, width = len(chart.rows), _WIDTHS[chart.half]
    ys = Ticks((0.0, 1.0), (), ()) if rows else _y_ticks(chart)
    widest = max((label_width(text) for text in chart.rows or ys.texts), default=0.0)
    left = min(20 + widest, width / 3) if rows else 30 + widest
    right = width - _RIGHT
    x = _scale(chart.span, (left, right))
    labels = place_labels(chart.instants, x, width, _LETTER)
    top = _TOP + _LINE * max((row + 1 for _, row in labels.values()), default=0)
    tall = _STEP * rows if rows else chart.height
    if chart.equal:
        tall = (right - left) * (ys.span[1] - ys.span[0]) / (chart.span[1] - chart.span[0])
    low = top + tall
    y = _scale((rows, 0) if rows else ys.span, (low, top))
    numbers = [(y(v), text, v == 0) for v, text in zip(ys.values, ys.texts, strict=True)]
    for k, name in enumerate(chart.rows):
        numbers.append((y(k + 0.5), shortened(name, left - 16), False))
    return render(
        "show/plots/templates/chart.html",
        chart=chart,
        width=width,
        height=low + _BOTTOM,
        left=left,
        right=right,
        top=top,
        low=low,
        hexagon=cache(lambda size: _hexagon(x(size) - x(0.0), y(0.0) - y(size))),
        places=lambda a, b: np.column_stack([x(np.array(a)), y(np.array(b))]).round(2).tolist(),
        joined=lambda points: " ".join(f"{a:.1f},{b:.1f}" for a, b in points),
        label_of=lambda points: _label_of(np.array(points), (left, right), (top, low)),
        x_numbers=_x_numbers(chart, x, right - left),
        y_numbers=numbers,
        lines=[
            (x(instant.x), top if k not in labels else _TOP + _LINE * labels[k][1] + 4)
            for k, instant in enumerate(chart.instants)
        ],
        labels=[
            _label(x(chart.instants[k].x), *place, chart.instants[k].label)
            for k, place in labels.items()
        ],
        curves=[(_points(line, x, y), color, dash) for line, color, dash in styled(chart.lines)],
    )


def _y_ticks(chart: Chart) -> Ticks:
    values = [line.y[np.isfinite(line.y)] for line in chart.lines]
    values += [np.array(shape.ends) for shape in chart.shapes]
    every = np.concatenate([np.zeros(1 if chart.zero else 0), *values])
    low, high = (float(every.min()), float(every.max())) if every.size else (0.0, 1.0)
    room = _ROOM * (high - low) * chart.room
    if chart.y_span is not None:
        low, high, room = *chart.y_span, 0.0
    return ticks(
        low - room * (low != 0.0),
        high + room * (high != 0.0),
        most=12 if chart.equal else 6,
        whole=chart.whole,
    )


def _x_numbers(chart: Chart, x: Scale, width: float) -> list[tuple[float, str]]:
    """Places of the round values of the common axis, and how they are written."""
    low, high = chart.span
    most = max(4, int(width / 62))
    if chart.rows:
        most = 10 if chart.follows else 8
    axis = ticks(low, high, most=most)
    slack = SAME * (high - low)
    pairs = zip(axis.values, axis.texts, strict=True)
    return [(x(v), text) for v, text in pairs if low - slack <= v <= high + slack]


def _label(line: float, begin: float, row: int, text: str) -> tuple[float, float, str, str]:
    """Where the label of an instant stands, which of its ends is there, and what it says."""
    ahead = begin > line
    place = line + 4 if ahead else line - 4
    return place, _TOP + _LINE * row + 11, "start" if ahead else "end", text


def _label_of(points: Array, across: Span, down: Span) -> tuple[float, float]:
    """Where the name of an outline stands: above what is seen of it."""
    (left, top), (right, _) = points.min(axis=0), points.max(axis=0)
    middle = (max(left, across[0]) + min(right, across[1])) / 2
    return middle, min(max(top - 4, down[0] + 12), down[1] - 4)


def _hexagon(across: float, up: float) -> tuple[float, str]:
    """Size upwards, and the way around from the highest corner, of sizes along both axes."""
    wide, tall = math.sqrt(0.75) * across, up / 2
    steps = f"l{wide:.2f} {tall:.2f}v{up:.2f}l{-wide:.2f} {tall:.2f}"
    return up, steps + f"l{-wide:.2f} {-tall:.2f}v{-up:.2f}z"


def _points(line: Line, x: Scale, y: Scale) -> Array:
    """A line in the picture without points that no eye sees, nor those amid a level stretch."""
    there = np.isfinite(line.y)
    a, b = thin_line(np.asarray(x(line.x[there])), np.asarray(y(line.y[there])), _MOST_POINTS)
    if len(a) > 2:
        idle = np.abs(b[1:-1] - b[:-2]) + np.abs(b[2:] - b[1:-1]) == 0
        moves = np.concatenate([[True], ~idle, [True]])
        a, b = a[moves], b[moves]
    return np.column_stack([a, b])


def _scale(span: Span, ends: Span) -> Scale:
    """From numbers to places in the picture."""
    (a, b), (c, d) = span, ends
    return lambda value: c + (d - c) * (value - a) / (b - a)


# -- numbers and names ----------------------------------------------------------------------------


class Ticks(NamedTuple):
    """Ends of an axis, round values along it, and how they are written."""

    span: Span
    values: tuple[float, ...]
    texts: tuple[str, ...]


def ticks(low: float, high: float, most: int, *, whole: bool = False) -> Ticks:
    """Up to ``most`` round values between two numbers, and the ends of an axis that holds both."""
    if not high > low:
        low, high = low - max(abs(low), 1.0) / 2, high + max(abs(high), 1.0) / 2
    raw = (high - low) / (most - 1)
    raw = max(raw, 1.0) if whole else raw
    power = 10.0 ** math.floor(math.log10(raw))
    steps = (1, 2, 5, 10, 20) if whole else (1, 2, 2.5, 5, 10, 20)
    step = next(s * power for s in steps if s * power >= raw * (1 - SAME))
    first, last = math.floor(low / step + SAME), math.ceil(high / step - SAME)
    places = max(0, -math.floor(math.log10(step) + SAME))
    places += step / 10.0**-places % 1 > TICK_DIGITS and step / 10.0**-places % 1 < 1 - TICK_DIGITS
    values = tuple(k * step for k in range(first, last + 1))
    texts = (number(value, int(places)).replace("-", "\N{MINUS SIGN}") for value in values)
    return Ticks((values[0], values[-1]), values, tuple(texts))


def label_width(text: str) -> float:
    """Width of a label."""
    return _LETTER * len(text)


def shortened(text: str, width: float) -> str:
    """A label that is no wider than a width; what is cut off is marked."""
    return shorten(text, max(2, int(width / _LETTER)))


def color_of(share: float) -> str:
    """The colour of a place between the ends of a scale, 0 to 1."""
    places = np.linspace(0.0, 1.0, len(_COLORS))
    channels = (np.interp(share, places, channel) for channel in zip(*_COLORS, strict=True))
    return "#" + "".join(f"{round(float(value)):02x}" for value in channels)


def color_scale(low: float, high: float, label: str, *, reverse: bool = False) -> Markup:
    """A picture of the scale of colours between two values, with numbers and a label below it.

    With ``reverse`` the last colour comes first.
    """
    left, right = 16.0, 404.0
    x = _scale((low, high if high > low else low + 1.0), (left, right))
    step = (right - left) / _SHADES
    shades = [color_of((k + 0.5) / _SHADES) for k in range(_SHADES)]
    axis = ticks(low, high, most=6)
    return render(
        "show/plots/templates/color_scale.html",
        label=label,
        bars=[
            (left + k * step, step + 0.4, color)
            for k, color in enumerate(reversed(shades) if reverse else shades)
        ],
        numbers=[
            (x(value), text)
            for value, text in zip(axis.values, axis.texts, strict=True)
            if low - SAME * abs(low) <= value <= high * (1 + SAME)
        ],
    )
