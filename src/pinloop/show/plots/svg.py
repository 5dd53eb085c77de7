"""Plots as SVG: curves and shapes over a common axis, labelled instants, round steps and units.

Knows numbers and names, neither robots nor stops. Sizes are in units of the picture, which is
scaled as a whole; a page needs no script to show it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ...tables.markup import Markup, element
from ...tolerances import SAME, TICK_DIGITS
from .charts import Instant, Line, place_labels, shorten, styled, thin_line

__all__ = [
    "Plot",
    "Scale",
    "Shape",
    "area_key",
    "label_width",
    "legend",
    "line_key",
    "points_text",
    "shortened",
    "ticks",
]

Array = NDArray[np.float64]

_LETTER = 6.9
"""Width of a letter of the labels."""
_ROW, _TOP, _BOTTOM, _RIGHT = 15, 8, 44, 14
_ROOM = 0.03
"""Room between the curves and the ends of the axis, as part of it."""
_MOST_POINTS = 700


class Shape(Protocol):
    """Something in the field of a plot that is no curve: bars, points, areas."""

    @property
    def ends(self) -> tuple[float, float]:
        """Lowest and highest place on the axis that is not the common one."""

    def draw(self, x: Scale, y: Scale) -> Markup:
        """The picture of it."""


@dataclass(frozen=True, eq=False)
class Plot:
    """A plot.

    Args:
        title: what it shows; its accessible name.
        x_label: name and unit of the common axis.
        y_label: name and unit of the other.
        curves: what is shown.
        span: ends of the common axis.
        instants: vertical lines.
        width: of the picture.
        height: of the field of the curves.
        zero: whether the other axis contains zero.
        room: whether there is room between the curves and the ends of the axis.
        shapes: what is shown below the curves.
        equal: whether a unit is as long on both axes; the height is what follows from it.
        follows: whether a cursor shows the time of a replay.
        whole: whether the other axis counts things, of which there are no halves.
    """

    title: str
    x_label: str
    y_label: str
    curves: Sequence[Line]
    span: tuple[float, float]
    instants: Sequence[Instant] = field(default=())
    width: float = 900.0
    height: float = 240.0
    zero: bool = True
    room: bool = True
    shapes: Sequence[Shape] = ()
    equal: bool = False
    follows: bool = True
    whole: bool = False

    def svg(self) -> Markup:
        """The picture."""
        ys = ticks(*self._range(), most=12 if self.equal else 6, whole=self.whole)
        left = 30 + max(label_width(text) for text in ys.texts)
        labels = place_labels(self.instants, self._x_scale(left), self.width, _LETTER)
        top = _TOP + _ROW * max((row + 1 for _, row in labels.values()), default=0)
        across = self.width - _RIGHT - left
        high = self.height
        if self.equal:
            high = across * (ys.span[1] - ys.span[0]) / (self.span[1] - self.span[0])
        frame = _Frame(left, top, across, high)
        x_scale, y_scale = frame.scales(self.span, ys)
        return element(
            "svg",
            element("title", self.title),
            element("g", *frame.grid(self.span, ys), class_="grid"),
            *(shape.draw(x_scale, y_scale) for shape in self.shapes),
            *self._marks(frame, labels),
            *(frame.curve(*curve, self.span, ys) for curve in styled(self.curves)),
            *frame.axes(self.span, ys, self.x_label, self.y_label),
            *(frame.cursor() if self.follows else ()),
            viewBox=f"0 0 {self.width:g} {top + high + _BOTTOM:g}",
            role="img",
            class_="plot",
            **(frame.data(self.span) if self.follows else {}),
        )

    def legend(self) -> Markup:
        """Names of the curves with their lines; nothing if there is but one."""
        if len(self.curves) < 2:
            return Markup("")
        return legend((line.name, line_key(*style)) for line, *style in styled(self.curves))

    def _range(self) -> tuple[float, float]:
        values = [curve.y[np.isfinite(curve.y)] for curve in self.curves]
        values += [np.array(shape.ends) for shape in self.shapes]
        every = np.concatenate([np.zeros(1 if self.zero else 0), *values])
        if every.size == 0:
            return 0.0, 1.0
        low, high = float(every.min()), float(every.max())
        room = _ROOM * (high - low) * self.room
        return low - room * (low != 0.0), high + room * (high != 0.0)

    def _x_scale(self, left: float) -> Scale:
        return Scale(self.span, (left, self.width - _RIGHT))

    def _marks(self, frame: _Frame, labels: dict[int, tuple[float, int]]) -> Iterable[Markup]:
        scale = Scale(self.span, (frame.left, frame.left + frame.width))
        for k, instant in enumerate(self.instants):
            x = scale(instant.x)
            high = frame.top if k not in labels else _TOP + _ROW * labels[k][1] + 4
            yield element(
                "line", x1=x, x2=x, y1=high, y2=frame.top + frame.height, class_="instant"
            )
        for k, (x, row) in labels.items():
            line = scale(self.instants[k].x)
            ahead = x > line
            yield element(
                "text",
                self.instants[k].label,
                x=line + (4 if ahead else -4),
                y=_TOP + _ROW * row + 11,
                text_anchor="start" if ahead else "end",
                class_="label",
            )


@dataclass(frozen=True)
class Ticks:
    """Round values along an axis.

    Args:
        span: ends of the axis.
        values: the values.
        texts: how they are written.
    """

    span: tuple[float, float]
    values: tuple[float, ...]
    texts: tuple[str, ...]


def ticks(low: float, high: float, most: int, *, whole: bool = False) -> Ticks:
    """Round values between two numbers, and the ends of an axis that holds both.

    Args:
        low: the lower number.
        high: the higher one, or the same.
        most: how many values there may be.
        whole: whether they must be whole numbers.
    """
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
    return Ticks((values[0], values[-1]), values, tuple(_plain(v, int(places)) for v in values))


def label_width(text: str) -> float:
    """Width of a label."""
    return _LETTER * len(text)


def shortened(text: str, width: float) -> str:
    """A label that is no wider than a width; what is cut off is marked."""
    return shorten(text, max(2, int(width / _LETTER)))


def _plain(value: float, places: int) -> str:
    text = f"{value:.{places}f}"
    text = text.removeprefix("-") if float(text) == 0 else text
    return text.replace("-", "\N{MINUS SIGN}")


@dataclass(frozen=True)
class Scale:
    """From numbers to places in the picture."""

    span: tuple[float, float]
    ends: tuple[float, float]

    def __call__(self, value: float) -> float:
        """The place of a number."""
        (a, b), (c, d) = self.span, self.ends
        return c + (d - c) * (value - a) / (b - a)

    def many(self, values: Array) -> Array:
        """The same for an array."""
        (a, b), (c, d) = self.span, self.ends
        return np.asarray(c + (d - c) * (values - a) / (b - a))


@dataclass(frozen=True)
class _Frame:
    """The field of the curves in the picture."""

    left: float
    top: float
    width: float
    height: float

    def scales(self, span: tuple[float, float], ys: Ticks) -> tuple[Scale, Scale]:
        """Scales of both axes."""
        return self._x(span), self._y(ys)

    def _y(self, ys: Ticks) -> Scale:
        return Scale(ys.span, (self.top + self.height, self.top))

    def _x(self, span: tuple[float, float]) -> Scale:
        return Scale(span, (self.left, self.left + self.width))

    def _x_ticks(self, span: tuple[float, float]) -> list[tuple[float, str]]:
        axis = ticks(*span, most=max(4, int(self.width / 62)))
        slack = SAME * (span[1] - span[0])
        pairs = zip(axis.values, axis.texts, strict=True)
        return [(v, text) for v, text in pairs if span[0] - slack <= v <= span[1] + slack]

    def grid(self, span: tuple[float, float], ys: Ticks) -> Iterable[Markup]:
        """Lines at the round values."""
        right, low = self.left + self.width, self.top + self.height
        for value in ys.values:
            y = self._y(ys)(value)
            zero = "zero" if value == 0 else None
            yield element("line", x1=self.left, x2=right, y1=y, y2=y, class_=zero)
        for value, _ in self._x_ticks(span):
            x = self._x(span)(value)
            yield element("line", x1=x, x2=x, y1=self.top, y2=low)

    def axes(
        self, span: tuple[float, float], ys: Ticks, x_label: str, y_label: str
    ) -> Iterable[Markup]:
        """Numbers and names of both axes."""
        low, middle = self.top + self.height, self.top + self.height / 2
        yield element(
            "rect", x=self.left, y=self.top, width=self.width, height=self.height, class_="frame"
        )
        for value, text in zip(ys.values, ys.texts, strict=True):
            at = self._y(ys)(value) + 4
            yield element("text", text, x=self.left - 6, y=at, text_anchor="end")
        for value, text in self._x_ticks(span):
            yield element("text", text, x=self._x(span)(value), y=low + 16, text_anchor="middle")
        yield element(
            "text",
            x_label,
            x=self.left + self.width / 2,
            y=low + 35,
            text_anchor="middle",
            class_="name",
        )
        yield element(
            "text",
            y_label,
            x=12,
            y=middle,
            text_anchor="middle",
            class_="name",
            transform=f"rotate(-90 12 {middle:g})",
        )

    def curve(
        self, curve: Line, color: str, dash: str, span: tuple[float, float], ys: Ticks
    ) -> Markup:
        """A line; a point if it is one."""
        there = np.isfinite(curve.y)
        x, y = thin_line(
            self._x(span).many(curve.x[there]), self._y(ys).many(curve.y[there]), _MOST_POINTS
        )
        return element(
            "polyline",
            points=points_text(*_without_idle_points(x, y)),
            stroke=color,
            class_="curve",
            stroke_dasharray=dash or None,
        )

    def cursor(self) -> Iterable[Markup]:
        """The line that a script moves to the time of a replay."""
        low = self.top + self.height
        yield element("line", x1=0, x2=0, y1=self.top, y2=low, class_="cursor", visibility="hidden")

    def data(self, span: tuple[float, float]) -> dict[str, str | float]:
        """What such a script needs."""
        right = self.left + self.width
        return {
            "data_left": self.left,
            "data_right": right,
            "data_from": repr(float(span[0])),
            "data_to": repr(float(span[1])),
        }


def _without_idle_points(x: Array, y: Array) -> tuple[Array, Array]:
    """Points without those in the middle of a level stretch, in units of the picture."""
    if len(x) < 3:
        return x, y
    idle = np.abs(y[1:-1] - y[:-2]) + np.abs(y[2:] - y[1:-1]) == 0
    moves = np.concatenate([[True], ~idle, [True]])
    return x[moves], y[moves]


def line_key(color: str, dash: str = "") -> Markup:
    """A short line for a legend."""
    return element(
        "line",
        x1=0,
        x2=26,
        y1=5,
        y2=5,
        stroke=color,
        stroke_width=2.5,
        stroke_dasharray=dash or None,
    )


def area_key(color: str, **more: float) -> Markup:
    """A small area for a legend."""
    return element("rect", width=14, height=10, rx=2, fill=color, **more)


def legend(entries: Iterable[tuple[str, Markup]]) -> Markup:
    """Names with what stands for them in a chart.

    Args:
        entries: names, and pictures of at most 26 by 10.
    """
    return element("ul", *(_legend_entry(*entry) for entry in entries), class_="legend")


def _legend_entry(name: str, picture: Markup) -> Markup:
    width = 26 if picture.startswith("<line") else 14
    key = element(
        "svg", picture, viewBox=f"0 0 {width} 10", width=width, height=10, aria_hidden="true"
    )
    return element("li", key, " ", name)


def points_text(x: Array, y: Array) -> str:
    """Points as the attribute of a polygon has them."""
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
