"""Plots as SVG: curves over a common axis, labelled instants, axes with round steps and units.

Knows numbers and names, neither robots nor stops. Sizes are in units of the picture, which is
scaled as a whole; a page needs no script to show it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .markup import Markup, element, joined

__all__ = ["DASHES", "PALETTE", "Curve", "Instant", "Plot", "label_width", "shortened", "ticks"]

Array = NDArray[np.float64]

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#7a5c00", "#3d9bd1", "#5b4fa0", "#222222")
"""Colours that people with any colour vision tell apart: Okabe and Ito (2008), darker for print."""
DASHES = ("", "7 3", "2 3", "9 3 2 3")
"""Further curves repeat the colours with these dashes."""

_LETTER = 6.9
"""Width of a letter of the labels."""
_ROW, _TOP, _BOTTOM, _RIGHT = 15, 8, 44, 14
_MOST_ROWS = 6
_ROOM = 0.03
"""Room between the curves and the ends of the axis, as part of it."""
_MOST_POINTS = 700


@dataclass(frozen=True, eq=False)
class Curve:
    """A curve.

    Args:
        name: for the legend.
        x: shape (k,), not descending.
        y: shape (k,).
        color: its colour.
        dash: its dashes, or empty.
    """

    name: str
    x: Array
    y: Array
    color: str = PALETTE[0]
    dash: str = ""


@dataclass(frozen=True)
class Instant:
    """A vertical line at an instant; without a label if that is empty."""

    x: float
    label: str = ""


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
    """

    title: str
    x_label: str
    y_label: str
    curves: Sequence[Curve]
    span: tuple[float, float]
    instants: Sequence[Instant] = field(default=())
    width: float = 900.0
    height: float = 240.0
    zero: bool = True

    def svg(self) -> Markup:
        """The picture."""
        ys = ticks(*self._range(), most=6)
        left = 30 + max(label_width(text) for text in ys.texts)
        labels = _placed(self.instants, self._x_scale(left), self.width)
        top = _TOP + _ROW * max((row + 1 for _, row in labels.values()), default=0)
        frame = _Frame(left, top, self.width - _RIGHT - left, self.height)
        return element(
            "svg",
            element("title", self.title),
            element("g", *frame.grid(self.span, ys), class_="grid"),
            *self._marks(frame, labels),
            *(frame.curve(curve, self.span, ys) for curve in self.curves),
            *frame.axes(self.span, ys, self.x_label, self.y_label),
            *frame.cursor(),
            viewBox=f"0 0 {self.width:g} {top + self.height + _BOTTOM:g}",
            role="img",
            class_="plot",
            **frame.data(self.span),
        )

    def legend(self) -> Markup:
        """Names of the curves with their lines; nothing if there is but one."""
        if len(self.curves) < 2:
            return Markup("")
        return element("ul", *(_legend_entry(curve) for curve in self.curves), class_="legend")

    def _range(self) -> tuple[float, float]:
        values = [curve.y[np.isfinite(curve.y)] for curve in self.curves]
        found = np.concatenate([np.zeros(1 if self.zero else 0), *values])
        if found.size == 0:
            return 0.0, 1.0
        low, high = float(found.min()), float(found.max())
        room = _ROOM * (high - low)
        return low - room * (low != 0.0), high + room * (high != 0.0)

    def _x_scale(self, left: float) -> _Scale:
        return _Scale(self.span, (left, self.width - _RIGHT))

    def _marks(self, frame: _Frame, labels: dict[int, tuple[float, int]]) -> Iterable[Markup]:
        scale = _Scale(self.span, (frame.left, frame.left + frame.width))
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
                "text", self.instants[k].label, x=line + (4 if ahead else -4),
                y=_TOP + _ROW * row + 11, text_anchor="start" if ahead else "end", class_="label",
            )  # fmt: skip


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


def ticks(low: float, high: float, most: int) -> Ticks:
    """Round values between two numbers, and the ends of an axis that holds both.

    Args:
        low: the lower number.
        high: the higher one, or the same.
        most: how many values there may be.
    """
    if not high > low:
        low, high = low - max(abs(low), 1.0) / 2, high + max(abs(high), 1.0) / 2
    raw = (high - low) / (most - 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(s * power for s in (1, 2, 2.5, 5, 10, 20) if s * power >= raw * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    places = max(0, -math.floor(math.log10(step) + 1e-9))
    places += step / 10.0**-places % 1 > 1e-6 and step / 10.0**-places % 1 < 1 - 1e-6
    values = tuple(k * step for k in range(first, last + 1))
    return Ticks((values[0], values[-1]), values, tuple(_plain(v, int(places)) for v in values))


def label_width(text: str) -> float:
    """Width of a label."""
    return _LETTER * len(text)


def shortened(text: str, width: float) -> str:
    """A label that is no wider than a width; what is cut off is marked."""
    most = max(2, int(width / _LETTER))
    return text if len(text) <= most else f"{text[: most - 1]}\N{HORIZONTAL ELLIPSIS}"


def _plain(value: float, places: int) -> str:
    text = f"{value:.{places}f}"
    text = text.removeprefix("-") if float(text) == 0 else text
    return text.replace("-", "\N{MINUS SIGN}")


@dataclass(frozen=True)
class _Scale:
    """From numbers to places in the picture."""

    span: tuple[float, float]
    ends: tuple[float, float]

    def __call__(self, value: float) -> float:
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

    def _y(self, ys: Ticks) -> _Scale:
        return _Scale(ys.span, (self.top + self.height, self.top))

    def _x(self, span: tuple[float, float]) -> _Scale:
        return _Scale(span, (self.left, self.left + self.width))

    def _x_ticks(self, span: tuple[float, float]) -> list[tuple[float, str]]:
        found = ticks(*span, most=max(4, int(self.width / 62)))
        slack = 1e-9 * (span[1] - span[0])
        pairs = zip(found.values, found.texts, strict=True)
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
            "text", x_label, x=self.left + self.width / 2, y=low + 35,
            text_anchor="middle", class_="name",
        )  # fmt: skip
        yield element(
            "text", y_label, x=12, y=middle, text_anchor="middle", class_="name",
            transform=f"rotate(-90 12 {middle:g})",
        )  # fmt: skip

    def curve(self, curve: Curve, span: tuple[float, float], ys: Ticks) -> Markup:
        """A line; a point if it is one."""
        x, y = _thinned(self._x(span).many(curve.x), self._y(ys).many(curve.y))
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
        return element(
            "polyline", points=points, stroke=curve.color, class_="curve",
            stroke_dasharray=curve.dash or None,
        )  # fmt: skip

    def cursor(self) -> Iterable[Markup]:
        """The line that a script moves to the time of a replay."""
        low = self.top + self.height
        yield element("line", x1=0, x2=0, y1=self.top, y2=low, class_="cursor", visibility="hidden")

    def data(self, span: tuple[float, float]) -> dict[str, str | float]:
        """What such a script needs."""
        right = self.left + self.width
        return {
            "data_left": self.left, "data_right": right,
            "data_from": repr(float(span[0])), "data_to": repr(float(span[1])),
        }  # fmt: skip


def _thinned(x: Array, y: Array) -> tuple[Array, Array]:
    """Points without those that add nothing: of many in a strip, the extreme ones stay."""
    finite = np.isfinite(y)
    x, y = x[finite], y[finite]
    if len(x) > _MOST_POINTS:
        strips = np.array_split(np.arange(len(x)), _MOST_POINTS // 4)
        kept = [(s[0], s[np.argmin(y[s])], s[np.argmax(y[s])], s[-1]) for s in strips]
        chosen = np.unique(np.array(kept))
        x, y = x[chosen], y[chosen]
    if len(x) < 3:
        return x, y
    flat = (np.abs(np.diff(y)[1:]) < 0.05) & (np.abs(np.diff(y)[:-1]) < 0.05)
    flat &= np.abs(y[1:-1] - y[:-2]) + np.abs(y[2:] - y[1:-1]) == 0
    keep = np.concatenate([[True], ~flat, [True]])
    return x[keep], y[keep]


def _placed(
    instants: Sequence[Instant], scale: _Scale, width: float
) -> dict[int, tuple[float, int]]:
    """Where the labels of instants begin, and in which row, so that none covers another.

    A label begins at its instant, or ends there where the picture ends. Its line rises to it
    through no other label. Labels that find no room are left out.
    """
    found: dict[int, tuple[float, int]] = {}
    placed: list[tuple[float, float, float, int]] = []
    for k, ahead in _in_turn(instants, scale, width):
        x, room = scale(instants[k].x), label_width(instants[k].label)
        begin = x + 4 if ahead else x - 4 - room
        end = begin + room
        for row in range(_MOST_ROWS):
            free = all(
                (other != row or begin >= b + 6 or end <= a - 6)
                and not (other > row and a - 3 < x < b + 3)
                and not (other < row and begin - 3 < line < end + 3)
                for a, b, line, other in placed
            )
            if free:
                placed.append((begin, end, x, row))
                found[k] = begin, row
                break
    return found


def _in_turn(instants: Sequence[Instant], scale: _Scale, width: float) -> list[tuple[int, bool]]:
    """Instants with labels, outer ones first, and whether there is room ahead of them.

    A line that rises higher then stands outside of the labels below its own.
    """
    labelled = [k for k, instant in enumerate(instants) if instant.label]
    ahead = {
        k: scale(instants[k].x) + 4 + label_width(instants[k].label) <= width for k in labelled
    }
    forward = sorted((k for k in labelled if ahead[k]), key=lambda k: instants[k].x)
    backward = sorted((k for k in labelled if not ahead[k]), key=lambda k: -instants[k].x)
    return [(k, False) for k in backward] + [(k, True) for k in forward]


def _legend_entry(curve: Curve) -> Markup:
    line = element(
        "line", x1=0, x2=26, y1=5, y2=5, stroke=curve.color, stroke_width=2.5,
        stroke_dasharray=curve.dash or None,
    )  # fmt: skip
    key = element("svg", line, viewBox="0 0 26 10", width=26, height=10, aria_hidden="true")
    return element("li", joined(key, " ", curve.name))
