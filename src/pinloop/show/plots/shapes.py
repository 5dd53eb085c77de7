"""Shapes for plots: bars of a histogram, bands, points, hexagons, outlines, and a scale of colours.

Know numbers and colours, neither robots nor studies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...tables.markup import Markup, element, joined
from ...tolerances import SAME
from .svg import Scale, ticks

__all__ = ["Band", "Bars", "Dots", "Hexagons", "Outline", "Spots", "color_of", "color_scale"]

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

    def drawn(self, x: Scale, y: Scale) -> Markup:
        """The bars, a little apart."""
        bars = []
        for low, high, count in zip(self.edges[:-1], self.edges[1:], self.counts, strict=True):
            if count:
                cases = "case" if count == 1 else "cases"
                name = f"{low:.4g} to {high:.4g} {self.unit}: {count:.0f} {cases}"
                left, width = x(low) + 0.5, max(x(high) - x(low) - 1.0, 0.8)
                bar = element("title", name)
                bars.append(element(
                    "rect", bar, x=round(left, 1), y=round(y(count), 1), width=round(width, 1),
                    height=round(y(0.0) - y(count), 1),
                ))  # fmt: skip
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

    def drawn(self, x: Scale, y: Scale) -> Markup:
        """The area."""
        across = np.concatenate([self.x, self.x[::-1]])
        up = np.concatenate([self.high, self.low[::-1]])
        points = _points(x.many(across), y.many(up))
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

    def drawn(self, x: Scale, y: Scale) -> Markup:
        """The points, as one path of lines without length."""
        places = zip(x.many(self.x), y.many(self.y), strict=True)
        path = "".join(f"M{a:.1f} {b:.1f}h0" for a, b in places)
        return element(
            "path", d=path, stroke=self.color, stroke_width=4, stroke_linecap="round",
            stroke_opacity=0.45, fill="none",
        )  # fmt: skip


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

    def drawn(self, x: Scale, y: Scale) -> Markup:
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

    def drawn(self, x: Scale, y: Scale) -> Markup:
        """The hexagons, each by steps from its highest corner."""
        tall = abs(y(self.size) - y(0.0))
        wide = np.sqrt(0.75) * abs(x(self.size) - x(0.0))
        way = f"l{wide:.2f} {tall / 2:.2f}v{tall:.2f}l{-wide:.2f} {tall / 2:.2f}"
        way += f"l{-wide:.2f} {-tall / 2:.2f}v{-tall:.2f}z"
        return element("g", *(
            element("path", element("title", name), d=f"M{x(a):.1f} {y(b) - tall:.1f}{way}", fill=c)
            for a, b, c, name in self.cells
        ))  # fmt: skip


@dataclass(frozen=True, eq=False)
class Outline:
    """A closed line with a name, shape (k, 2)."""

    corners: Array
    name: str

    @property
    def ends(self) -> tuple[float, float]:
        """Lowest and highest corner."""
        return float(self.corners[:, 1].min()), float(self.corners[:, 1].max())

    def drawn(self, x: Scale, y: Scale) -> Markup:
        """The line, and the name above it."""
        across, up = x.many(self.corners[:, 0]), y.many(self.corners[:, 1])
        line = element("polygon", points=_points(across, up), class_="outline")
        middle = (across.min() + across.max()) / 2
        text = element(
            "text", self.name, x=round(float(middle), 1), y=round(float(up.min()) - 4, 1),
            text_anchor="middle", class_="label",
        )  # fmt: skip
        return joined(line, text)


def color_of(share: float) -> str:
    """The colour of a place between the ends of a scale, 0 to 1."""
    place = min(max(share, 0.0), 1.0) * (len(_COLORS) - 1)
    k = min(int(place), len(_COLORS) - 2)
    mixed = (a + (place - k) * (b - a) for a, b in zip(_COLORS[k], _COLORS[k + 1], strict=True))
    return "#" + "".join(f"{round(one):02x}" for one in mixed)


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
            "rect", x=round(left + k * step, 2), y=0, width=round(step + 0.4, 2), height=12,
            fill=color_of((_STEPS - k - 0.5 if reverse else k + 0.5) / _STEPS),
        )
        for k in range(_STEPS)
    ]  # fmt: skip
    found = ticks(low, high, most=6)
    numbers = [
        element("text", text, x=round(scale(value), 1), y=26, text_anchor="middle")
        for value, text in zip(found.values, found.texts, strict=True)
        if low - SAME * abs(low) <= value <= high * (1 + SAME)
    ]
    name = element("text", label, x=width / 2, y=42, text_anchor="middle", class_="name")
    return element(
        "svg", element("title", f"colours: {label}"), *bars, *numbers, name,
        viewBox=f"0 0 {width:g} 46", role="img", class_="plot scale",
    )  # fmt: skip


def _points(x: Array, y: Array) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
