"""The map of the workspace: where the tool was at the signal, and how bad the stop from there was.

Few cases are points. Of many the map shows hexagons with the worst case in each, so that the
picture is no larger for more of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import printable
from ...safety.space.obstacles import Obstacle
from ...tables.markup import Markup, element
from ...tolerances import STILL_TOOL
from ..plots.shapes import Hexagons, Outline, Spots, color_of, color_scale
from ..plots.svg import Plot, Scale, Shape
from ..stop_report.parts import figure, section
from .obstacle_surfaces import outline
from .quantities import Told
from .results import Results

__all__ = ["hexagons", "map_section"]

Array = NDArray[np.float64]

_POINTS = 300
"""So many cases are shown one by one."""
_ACROSS, _FILL = 26, 0.55
"""Hexagons across the map, at most and over the root of the number of cases."""
_VIEWS = (("from above", 0, 1), ("from the side", 0, 2))
_ROOM = 0.03
_TALLEST, _FLATTEST = 1.25, 0.4
"""Height of a map over its width, at most and at least."""


def map_section(
    results: Results, told: Mapping[str, Told], obstacles: Sequence[Obstacle], tool: str
) -> Markup:
    """Maps of the tool path and of the time.

    Args:
        results: what came out.
        told: quantities by criterion.
        obstacles: what stands around the robot.
        tool: frame whose places they are.
    """
    chosen = [told[name] for name in ("travel", "time", "clearance") if name in told]
    if not chosen:
        return Markup("")
    name = printable(tool)
    everywhere = np.vstack([results.places, results.lost])
    if np.ptp(everywhere, axis=0).max() < STILL_TOOL:
        text = f"{name} is at the same place when the signal comes in all cases: there is no map."
        return section("Workspace", "workspace", element("p", text))
    many = results.stopped > _POINTS
    what = "the worst case in each hexagon" if many else "each point is a case"
    said = f"Where {name} was when the signal came; {what}, the ring is the worst one."
    said += " The dark cross is the origin of the world."
    if len(results.lost):
        said += " Red crosses are cases that did not stop or are not held."
    return section(
        "Workspace", "workspace",
        element("p", said, class_="remark"),
        *(_maps(results, one, everywhere, obstacles) for one in chosen),
    )  # fmt: skip


def _maps(results: Results, one: Told, everywhere: Array, obstacles: Sequence[Obstacle]) -> Markup:
    """A quantity, seen from above and from the side."""
    low, high = float(one.shown.min()), float(one.shown.max())
    turned = one.quantity.kind == "clearance"
    places = 1e3 * results.places[np.searchsorted(results.cases, one.cases)]
    views = (
        figure(_view(view, places, one, 1e3 * everywhere, 1e3 * results.lost, obstacles),
               titled=True)
        for view in _VIEWS
    )  # fmt: skip
    scale = color_scale(low, high, one.quantity.label, reverse=turned)
    heading = one.quantity.name[:1].upper() + one.quantity.name[1:]
    return element(
        "div", element("h3", heading), scale, element("div", *views, class_="multiples"),
        class_="map",
    )  # fmt: skip


def _view(
    view: tuple[str, int, int], places: Array, one: Told, everywhere: Array, lost: Array,
    obstacles: Sequence[Obstacle],
) -> Plot:  # fmt: skip
    """One view."""
    name, across, up = view
    flat = np.ascontiguousarray(places[:, [across, up]])
    span, height = _spans(everywhere, across, up)
    shapes: list[Shape] = [_cases(flat, one, span[1] - span[0])]
    shapes += [
        Outline(1e3 * outline(obstacle, (across, up)), printable(obstacle.name))
        for obstacle in obstacles
    ]
    if len(lost):
        crosses = [(a, b, "#c0272d", "") for a, b in lost[:, [across, up]].tolist()]
        shapes.append(Spots(crosses, 3.0, "cross"))
    worst = int(np.flatnonzero(one.cases == one.spread.case)[0])
    ring = f"worst: {one.quantity.text(one.spread.worst)}, case {one.spread.case}"
    shapes.append(
        Spots([(float(flat[worst, 0]), float(flat[worst, 1]), "#111", ring)], 7.0, "ring")
    )
    shapes.append(Spots([(0.0, 0.0, "#3c4552", "origin of the world")], 5.0, "cross"))
    shapes.append(_Room(*height))
    letters = "xyz"
    return Plot(
        name[:1].upper() + name[1:], f"{letters[across]} [mm]", f"{letters[up]} [mm]", [], span,
        width=440.0, zero=False, shapes=shapes, equal=True, follows=False,
    )  # fmt: skip


def _spans(places: Array, across: int, up: int) -> tuple[tuple[float, float], tuple[float, float]]:
    """Ends of both axes: all places and the origin, with room, neither flat nor tall."""
    points = np.vstack([places, np.zeros(3)])
    low, high = points.min(axis=0), points.max(axis=0)
    room = _ROOM * float((high - low).max())
    low, high = low - room, high + room
    wide, tall = (float(high[k] - low[k]) for k in (across, up))
    wider, taller = max(0.0, tall / _TALLEST - wide), max(0.0, _FLATTEST * wide - tall)
    return (
        (float(low[across]) - wider / 2, float(high[across]) + wider / 2),
        (float(low[up]) - taller / 2, float(high[up]) + taller / 2),
    )


@dataclass(frozen=True)
class _Room:
    """Nothing, but there has to be room for it."""

    low: float
    high: float

    @property
    def ends(self) -> tuple[float, float]:
        return self.low, self.high

    def drawn(self, x: Scale, y: Scale) -> Markup:
        return Markup("")


def _cases(flat: Array, one: Told, width: float) -> Shape:
    """The cases as points, or the worst ones in hexagons."""
    values = one.shown
    low, high = float(values.min()), float(values.max())
    sign = -1.0 if one.quantity.kind == "clearance" else 1.0

    def color(value: float) -> str:
        share = (value - low) / (high - low) if high > low else 1.0
        return color_of(share if sign > 0 else 1.0 - share)

    unit = one.quantity.unit
    if len(values) <= _POINTS:
        order = np.argsort(sign * values, kind="stable")  # the worst ones on top
        return Spots([
            (float(flat[k, 0]), float(flat[k, 1]), color(values[k]),
             f"case {one.cases[k]}: {values[k]:.4g} {unit}")
            for k in order
        ])  # fmt: skip
    across = min(_ACROSS, max(10.0, _FILL * np.sqrt(len(values))))
    size = float(width / across / np.sqrt(3.0))
    middles, worst, counts = hexagons(flat, sign * values, size)
    return Hexagons([
        (float(x), float(y), color(sign * value), f"worst of {count}: {sign * value:.4g} {unit}")
        for (x, y), value, count in zip(middles, worst, counts, strict=True)
    ], size)  # fmt: skip


def hexagons(points: Array, values: Array, size: float) -> tuple[Array, Array, NDArray[np.int64]]:
    """Middles of the hexagons that hold points, the largest value in each, and how many there are.

    Middles are those of two rectangular lattices, one shifted by half of its steps; a point belongs
    to the nearest middle.

    Args:
        points: shape (n, 2).
        values: shape (n,).
        size: from the middle of a hexagon to its corners.

    Returns:
        Shapes (m, 2), (m,), (m,).
    """
    steps = size * np.array([np.sqrt(3.0), 3.0])
    even = 2.0 * np.round(points / steps)  # in half steps
    odd = 2.0 * np.floor(points / steps) + 1.0
    to_even, to_odd = (
        np.sum((points - near * steps / 2.0) ** 2, axis=1) for near in (even, odd)
    )  # fmt: skip
    nearest = np.where((to_even <= to_odd)[:, None], even, odd).astype(np.int64)
    cells, own, counts = np.unique(nearest, axis=0, return_inverse=True, return_counts=True)
    worst = np.full(len(cells), -np.inf)
    np.maximum.at(worst, own.ravel(), values)
    return cells * steps / 2.0, worst, counts.astype(np.int64)
