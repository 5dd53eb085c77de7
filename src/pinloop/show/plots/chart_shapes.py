"""Shapes of charts as SVG: histograms, bands, points, hexagons, outlines, stacks, lanes of time.

Know numbers and colours, neither robots nor studies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...tables.markup import Markup, element, joined
from ...tolerances import SAME
from .charts import Instant
from .svg import Scale, label_width, points_text, shortened, ticks

__all__ = [
    "Band",
    "Bars",
    "Dots",
    "Hexagons",
    "Lane",
    "Outline",
    "Part",
    "Span",
    "Spots",
    "Stack",
    "color_of",
    "color_scale",
    "lanes",
    "stacks",
]

Array = NDArray[np.float64]

_COLORS = (
    (255, 232, 163),
    (253, 190, 90),
    (241, 133, 56),
    (205, 66, 56),
    (133, 22, 84),
    (52, 8, 66),
)
"""From little to much: lighter to darker, so that it can be told in grey and with any eyes."""
_STEPS = 48
"""Steps of the picture of the scale."""


@dataclass(frozen=True, eq=False)
class Bars:
    """Bars of a histogram.

    Args:
        edges: ends of the bars, shape (k + 1,).
        counts: their heights, shape (k,).
        unit: of the edges, for those who point at a bar.
        color: of the bars.
    """

    edges: Array
    counts: Array
    unit: str
    color: str

    @property
    def ends(self) -> tuple[float, float]:
        """Zero, and the highest bar."""
        return 0.0, float(self.counts.max(initial=1.0))

    def draw(self, x: Scale, y: Scale) -> Markup:
        """The bars, a little apart."""
        bars = []
        for low, high, count in zip(self.edges[:-1], self.edges[1:], self.counts, strict=True):
            if count:
                cases = "case" if count == 1 else "cases"
                name = f"{low:.4g} to {high:.4g} {self.unit}: {count:.0f} {cases}"
                left, width = x(low) + 0.5, max(x(high) - x(low) - 1.0, 0.8)
                bar = element("title", name)
                bars.append(
                    element(
                        "rect",
                        bar,
                        x=round(left, 1),
                        y=round(y(count), 1),
                        width=round(width, 1),
                        height=round(y(0.0) - y(count), 1),
                    )
                )
        return element("g", *bars, fill=self.color)


@dataclass(frozen=True, eq=False)
class Band:
    """The area between two curves, shapes (k,)."""

    x: Array
    low: Array
    high: Array
    color: str

    @property
    def ends(self) -> tuple[float, float]:
        """Lowest and highest point."""
        return float(self.low.min(initial=np.inf)), float(self.high.max(initial=-np.inf))

    def draw(self, x: Scale, y: Scale) -> Markup:
        """The area."""
        across = np.concatenate([self.x, self.x[::-1]])
        up = np.concatenate([self.high, self.low[::-1]])
        points = points_text(x.many(across), y.many(up))
        return element("polygon", points=points, fill=self.color, fill_opacity=0.2)


@dataclass(frozen=True, eq=False)
class Dots:
    """Small points, shapes (k,), all of one colour."""

    x: Array
    y: Array
    color: str

    @property
    def ends(self) -> tuple[float, float]:
        """Lowest and highest point."""
        return float(self.y.min(initial=np.inf)), float(self.y.max(initial=-np.inf))

    def draw(self, x: Scale, y: Scale) -> Markup:
        """The points, as one path of lines without length."""
        places = zip(x.many(self.x), y.many(self.y), strict=True)
        path = "".join(f"M{a:.1f} {b:.1f}h0" for a, b in places)
        return element(
            "path",
            d=path,
            stroke=self.color,
            stroke_width=4,
            stroke_linecap="round",
            stroke_opacity=0.45,
            fill="none",
        )


@dataclass(frozen=True)
class Spots:
    """Points with names, each of its own colour: (x, y, colour, name)."""

    points: Sequence[tuple[float, float, str, str]]
    radius: float = 4.0
    kind: str = "spot"

    @property
    def ends(self) -> tuple[float, float]:
        """Lowest and highest point."""
        values = [y for _, y, _, _ in self.points]
        return min(values, default=np.inf), max(values, default=-np.inf)

    def draw(self, x: Scale, y: Scale) -> Markup:
        """Circles."""
        return element("g", *(self._spot(x(a), y(b), c, n) for a, b, c, n in self.points))

    def _spot(self, x: float, y: float, color: str, name: str) -> Markup:
        content = element("title", name) if name else Markup("")
        place = {"cx": round(x, 1), "cy": round(y, 1), "r": self.radius}
        if self.kind == "spot":
            return element("circle", content, fill=color, class_="spot", **place)
        if self.kind == "ring":
            return element("circle", content, stroke=color, class_="ring", **place)
        r = self.radius
        path = f"M{x - r:.1f} {y - r:.1f}l{2 * r:g} {2 * r:g}m0 {-2 * r:g}l{-2 * r:g} {2 * r:g}"
        return element("path", content, d=path, stroke=color, class_="cross")


@dataclass(frozen=True)
class Hexagons:
    """Hexagons with points up: middle, distance of the corners from it, colour, name."""

    cells: Sequence[tuple[float, float, str, str]]
    size: float

    @property
    def ends(self) -> tuple[float, float]:
        """Lowest and highest corner."""
        values = [y for _, y, _, _ in self.cells]
        low, high = min(values, default=np.inf), max(values, default=-np.inf)
        return low - self.size, high + self.size

    def draw(self, x: Scale, y: Scale) -> Markup:
        """The hexagons, each by steps from its highest corner."""
        tall = abs(y(self.size) - y(0.0))
        wide = np.sqrt(0.75) * abs(x(self.size) - x(0.0))
        edge = f"l{wide:.2f} {tall / 2:.2f}v{tall:.2f}l{-wide:.2f} {tall / 2:.2f}"
        edge += f"l{-wide:.2f} {-tall / 2:.2f}v{-tall:.2f}z"
        return element(
            "g",
            *(
                element(
                    "path",
                    element("title", name),
                    fill=color,
                    d=f"M{x(a):.1f} {y(b) - tall:.1f}{edge}",
                )
                for a, b, color, name in self.cells
            ),
        )


@dataclass(frozen=True, eq=False)
class Outline:
    """A closed line with a name, shape (k, 2)."""

    corners: Array
    name: str

    @property
    def ends(self) -> tuple[float, float]:
        """Lowest and highest corner."""
        return float(self.corners[:, 1].min()), float(self.corners[:, 1].max())

    def draw(self, x: Scale, y: Scale) -> Markup:
        """The line, and the name above it."""
        across, up = x.many(self.corners[:, 0]), y.many(self.corners[:, 1])
        line = element("polygon", points=points_text(across, up), class_="outline")
        middle = (across.min() + across.max()) / 2
        text = element(
            "text",
            self.name,
            x=round(float(middle), 1),
            y=round(float(up.min()) - 4, 1),
            text_anchor="middle",
            class_="label",
        )
        return joined(line, text)


def color_of(share: float) -> str:
    """The colour of a place between the ends of a scale, 0 to 1."""
    place = min(max(share, 0.0), 1.0) * (len(_COLORS) - 1)
    k = min(int(place), len(_COLORS) - 2)
    channels = (a + (place - k) * (b - a) for a, b in zip(_COLORS[k], _COLORS[k + 1], strict=True))
    return "#" + "".join(f"{round(value):02x}" for value in channels)


def color_scale(low: float, high: float, label: str, *, reverse: bool = False) -> Markup:
    """A picture of the scale of colours with numbers below it.

    Args:
        low: what the first colour stands for.
        high: what the last one stands for.
        label: name and unit of it.
        reverse: whether the last colour comes first.
    """
    width, left = 420.0, 16.0
    scale = Scale((low, high if high > low else low + 1.0), (left, width - left))
    step = (width - 2 * left) / _STEPS
    bars = [
        element(
            "rect",
            x=round(left + k * step, 2),
            y=0,
            width=round(step + 0.4, 2),
            height=12,
            fill=color_of((_STEPS - k - 0.5 if reverse else k + 0.5) / _STEPS),
        )
        for k in range(_STEPS)
    ]
    axis = ticks(low, high, most=6)
    numbers = [
        element("text", text, x=round(scale(value), 1), y=26, text_anchor="middle")
        for value, text in zip(axis.values, axis.texts, strict=True)
        if low - SAME * abs(low) <= value <= high * (1 + SAME)
    ]
    name = element("text", label, x=width / 2, y=42, text_anchor="middle", class_="name")
    return element(
        "svg",
        element("title", f"colours: {label}"),
        *bars,
        *numbers,
        name,
        viewBox=f"0 0 {width:g} 46",
        role="img",
        class_="plot scale",
    )


# -- bars and lanes over an axis ----------------------------------------------------------------

_BAR, _GAP, _RIGHT, _BOTTOM = 20.0, 9.0, 14.0, 44.0


@dataclass(frozen=True)
class Part:
    """A part of a stacked bar: a name, an amount that is not negative, a colour."""

    name: str
    amount: float
    color: str


@dataclass(frozen=True)
class Stack:
    """Amounts one after another, under a common name."""

    name: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Span:
    """A span of a lane: what it is, its ends, its colour."""

    name: str
    start: float
    end: float
    color: str


@dataclass(frozen=True)
class Lane:
    """Spans of time of something with a name."""

    name: str
    spans: tuple[Span, ...]


def stacks(title: str, label: str, bars: Sequence[Stack], width: float = 900.0) -> Markup:
    """Horizontal bars on a common axis that begins at zero.

    Args:
        title: what they show; the accessible name of the picture.
        label: name and unit of the axis.
        bars: the bars.
        width: of the picture.
    """
    largest = max((sum(part.amount for part in bar.parts) for bar in bars), default=0.0)
    axis = ticks(0.0, largest or 1.0, most=8)
    field = _Field.of([bar.name for bar in bars], axis.span, width)

    def bars_of_rows() -> Iterable[Markup]:
        for row, bar in enumerate(bars):
            start = 0.0
            for part in bar.parts:
                if part.amount > 0:
                    name = f"{bar.name}: {part.name}, {part.amount:.4g}"
                    yield field.bar(row, start, start + part.amount, part.color, name)
                start += part.amount

    numbers = list(zip(axis.values, axis.texts, strict=True))
    return field.picture(title, label, numbers, bars_of_rows(), "bars")


def lanes(
    title: str,
    label: str,
    rows: Sequence[Lane],
    span: tuple[float, float],
    instants: Sequence[Instant] = (),
    width: float = 900.0,
) -> Markup:
    """Spans of time in lanes.

    Args:
        title: what they show; the accessible name of the picture.
        label: name and unit of the axis.
        rows: the lanes.
        span: ends of the axis.
        instants: vertical lines, without labels.
        width: of the picture.
    """
    field = _Field.of([lane.name for lane in rows], span, width)

    def bars_of_rows() -> Iterable[Markup]:
        for row, lane in enumerate(rows):
            for stretch in lane.spans:
                name = f"{lane.name}: {stretch.name}, {stretch.start:.4g} to {stretch.end:.4g}"
                yield field.bar(row, stretch.start, stretch.end, stretch.color, name)
        for instant in instants:
            yield field.line(instant.x)

    axis = ticks(*span, most=10)
    pairs = zip(axis.values, axis.texts, strict=True)
    numbers = [(x, text) for x, text in pairs if span[0] <= x <= span[1] * (1 + SAME)]
    return field.picture(title, label, numbers, bars_of_rows(), "lanes")


@dataclass(frozen=True)
class _Field:
    """Rows with names on the left, over an axis."""

    names: tuple[str, ...]
    span: tuple[float, float]
    left: float
    width: float

    @classmethod
    def of(cls, names: Sequence[str], span: tuple[float, float], width: float) -> _Field:
        longest = max((label_width(name) for name in names), default=0.0)
        return cls(tuple(names), span, min(20 + longest, width / 3), width)

    @property
    def low(self) -> float:
        return _GAP + len(self.names) * (_BAR + _GAP)

    def x(self, value: float) -> float:
        part = (value - self.span[0]) / (self.span[1] - self.span[0])
        return self.left + (self.width - _RIGHT - self.left) * part

    def bar(self, row: int, start: float, end: float, color: str, name: str) -> Markup:
        y = _GAP + row * (_BAR + _GAP)
        return element(
            "rect",
            element("title", name),
            x=self.x(start),
            y=y,
            width=max(self.x(end) - self.x(start), 0.0),
            height=_BAR,
            fill=color,
        )

    def line(self, value: float) -> Markup:
        x = self.x(value)
        return element("line", x1=x, x2=x, y1=0, y2=self.low, class_="instant")

    def picture(
        self,
        title: str,
        label: str,
        numbers: Sequence[tuple[float, str]],
        content: Iterable[Markup],
        kind: str,
    ) -> Markup:
        right = self.width - _RIGHT
        grid = [element("line", x1=self.x(v), x2=self.x(v), y1=0, y2=self.low) for v, _ in numbers]
        names = []
        for row, name in enumerate(self.names):
            text, y = shortened(name, self.left - 16), _GAP + row * (_BAR + _GAP) + 15
            names.append(element("text", text, x=self.left - 8, y=y, text_anchor="end"))
        digits = [
            element("text", text, x=self.x(v), y=self.low + 17, text_anchor="middle")
            for v, text in numbers
        ]
        axis = element(
            "text",
            label,
            x=(self.left + right) / 2,
            y=self.low + 36,
            text_anchor="middle",
            class_="name",
        )
        cursor = element(
            "line", x1=0, x2=0, y1=0, y2=self.low, class_="cursor", visibility="hidden"
        )
        follows = kind == "lanes"
        return element(
            "svg",
            element("title", title),
            element("g", *grid, class_="grid"),
            *content,
            *names,
            *digits,
            axis,
            *([cursor] if follows else []),
            viewBox=f"0 0 {self.width:g} {self.low + _BOTTOM:g}",
            role="img",
            class_=f"plot {kind}",
            data_left=self.left if follows else None,
            data_right=right if follows else None,
            data_from=repr(float(self.span[0])) if follows else None,
            data_to=repr(float(self.span[1])) if follows else None,
        )
