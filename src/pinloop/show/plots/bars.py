"""Bars as SVG: stacked amounts that can be compared, and spans of time in lanes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...tables.markup import Markup, element
from ...tolerances import SAME
from .svg import Instant, label_width, shortened, ticks

__all__ = ["Lane", "Part", "Span", "Stack", "lanes", "stacks"]

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

    def drawn() -> Iterable[Markup]:
        for row, bar in enumerate(bars):
            start = 0.0
            for part in bar.parts:
                if part.amount > 0:
                    name = f"{bar.name}: {part.name}, {part.amount:.4g}"
                    yield field.bar(row, start, start + part.amount, part.color, name)
                start += part.amount

    numbers = list(zip(axis.values, axis.texts, strict=True))
    return field.picture(title, label, numbers, drawn(), "bars")


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

    def drawn() -> Iterable[Markup]:
        for row, lane in enumerate(rows):
            for one in lane.spans:
                name = f"{lane.name}: {one.name}, {one.start:.4g} to {one.end:.4g}"
                yield field.bar(row, one.start, one.end, one.color, name)
        for instant in instants:
            yield field.line(instant.x)

    found = ticks(*span, most=10)
    pairs = zip(found.values, found.texts, strict=True)
    numbers = [(x, text) for x, text in pairs if span[0] <= x <= span[1] * (1 + SAME)]
    return field.picture(title, label, numbers, drawn(), "lanes")


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
            "rect", element("title", name), x=self.x(start), y=y,
            width=max(self.x(end) - self.x(start), 0.0), height=_BAR, fill=color,
        )  # fmt: skip

    def line(self, value: float) -> Markup:
        x = self.x(value)
        return element("line", x1=x, x2=x, y1=0, y2=self.low, class_="instant")

    def picture(
        self,
        title: str,
        label: str,
        numbers: Sequence[tuple[float, str]],
        drawn: Iterable[Markup],
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
            "text", label, x=(self.left + right) / 2, y=self.low + 36, text_anchor="middle",
            class_="name",
        )  # fmt: skip
        cursor = element(
            "line", x1=0, x2=0, y1=0, y2=self.low, class_="cursor", visibility="hidden"
        )
        follows = kind == "lanes"
        return element(
            "svg",
            element("title", title),
            element("g", *grid, class_="grid"),
            *drawn,
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
