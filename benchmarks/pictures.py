"""Work against precision as small SVG pictures; the same numbers give the same bytes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from pinloop.show.plots import PALETTE

from .comparison import TARGET, series_of

__all__ = ["work_precision"]

WIDTH, HEIGHT = 860, 440
LEFT, RIGHT, TOP, BOTTOM = 64, 336, 34, 48
"""Margins; the legend is at the right."""
LARGEST = 1.0
SMALLEST = 1e-13
"""Errors outside are not shown."""

COLOURS = {"pinloop": PALETTE[0], "SciPy + Pinocchio": PALETTE[1], "MuJoCo": PALETTE[2],
           "Exudyn": PALETTE[3], "Drake": PALETTE[4]}  # fmt: skip
DASHES = ("", "6 3", "2 3")
ROW = 20
"""Height of a row of the legend; less if there are many."""


def work_precision(entry: dict[str, Any], path: Path) -> None:
    """Draw a case: CPU time over error, a line per method.

    Args:
        entry: a case as `benchmarks.precision` gives it.
        path: file to write.
    """
    curves = {}
    for name, points in series_of(entry).items():
        shown = [
            (point["error"], point["time"]["least"])
            for point in points
            if point["error"] is not None and point["time"] and point["error"] <= LARGEST
        ]
        if shown:
            curves[name] = [(max(error, SMALLEST), spent) for error, spent in shown]
    every = [point for points in curves.values() for point in points]
    axes = _Axes([error for error, _ in every], [spent for _, spent in every])
    parts = [*axes.draw(f"{entry['title']}, {entry['until']:g} s"), *_curves(curves, axes)]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" font-family="sans-serif" font-size="12" fill="#222">'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>'
    )
    path.write_text("\n".join([head, *parts, "</svg>"]) + "\n", encoding="utf-8")


class _Axes:
    """Two logarithmic scales, small errors at the right."""

    def __init__(self, errors: list[float], times: list[float]) -> None:
        self._x = math.floor(math.log10(min(errors))), math.ceil(math.log10(max(errors)))
        self._y = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))

    def x(self, error: float) -> float:
        """Place of an error."""
        low, high = self._x
        part = (high - math.log10(error)) / max(high - low, 1)
        return LEFT + part * (WIDTH - LEFT - RIGHT)

    def y(self, spent: float) -> float:
        """Place of a time."""
        low, high = self._y
        part = (math.log10(spent) - low) / max(high - low, 1)
        return HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)

    def draw(self, title: str) -> list[str]:
        """Grid, labels, and the error at which times are compared."""
        left, right, top, bottom = LEFT, WIDTH - RIGHT, TOP, HEIGHT - BOTTOM
        parts = [_text(left, 20, title, "start", weight="bold")]
        for power in range(self._x[0], self._x[1] + 1, 2 if self._x[1] - self._x[0] > 8 else 1):
            at = self.x(10.0**power)
            parts += [_line(at, top, at, bottom), _text(at, bottom + 16, _power(power), "middle")]
        for power in range(self._y[0], self._y[1] + 1):
            at = self.y(10.0**power)
            parts += [_line(left, at, right, at), _text(left - 6, at + 4, _power(power), "end")]
        if self._x[0] <= math.log10(TARGET) <= self._x[1]:
            at = self.x(TARGET)
            parts.append(_line(at, top, at, bottom, "#888", "4 3"))
        middle = (top + bottom) / 2
        parts.append(_text((left + right) / 2, HEIGHT - 10, "error of the end state", "middle"))
        parts.append(
            f'<text transform="translate(16 {middle:.1f}) rotate(-90)" text-anchor="middle">'
            "CPU time [s]</text>"
        )
        return parts


def _curves(curves: dict[tuple[str, str], list[tuple[float, float]]], axes: _Axes) -> list[str]:
    """Lines with their marks, and the legend."""
    parts, seen = [], dict.fromkeys(COLOURS, 0)
    for row, ((package, method), points) in enumerate(curves.items()):
        number = seen[package]
        seen[package] += 1
        colour, dash = COLOURS[package], DASHES[number % len(DASHES)]
        width = 2.4 if package == "pinloop" else 1.4
        places = [(axes.x(error), axes.y(spent)) for error, spent in points]
        y = TOP + 8 + row * min(ROW, (HEIGHT - TOP - 16) / len(curves))
        legend = [(WIDTH - RIGHT + 14, y), (WIDTH - RIGHT + 42, y)]
        for line in (places, legend):
            path = " ".join(f"{a:.1f},{b:.1f}" for a, b in line)
            parts.append(
                f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"'
                + (f' stroke-dasharray="{dash}"/>' if dash else "/>")
            )
        marks = [*places, ((legend[0][0] + legend[1][0]) / 2, y)]
        parts += [_mark(a, b, number, colour) for a, b in marks]
        parts.append(_text(WIDTH - RIGHT + 50, y + 4, f"{package}, {method}", "start", size=11))
    return parts


def _mark(x: float, y: float, number: int, colour: str) -> str:
    """A disc, a square or a triangle."""
    if number == 0:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.2" fill="{colour}"/>'
    if number == 1:
        return (
            f'<rect x="{x - 3:.1f}" y="{y - 3:.1f}" width="6" height="6" fill="#fff" '
            f'stroke="{colour}"/>'
        )
    return f'<path d="M{x:.1f} {y - 4:.1f}l4 7h-8z" fill="{colour}" stroke="{colour}"/>'


def _line(
    x1: float, y1: float, x2: float, y2: float, colour: str = "#e3e6ea", dash: str = ""
) -> str:
    more = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"{more}/>'
    )


def _text(
    x: float, y: float, text: str, anchor: str, *, weight: str = "normal", size: int = 12
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}" '
        f'font-size="{size}">{text}</text>'
    )


def _power(power: int) -> str:
    """A power of ten with a raised exponent."""
    return f'10<tspan dy="-4" font-size="9">{power}</tspan>'
