"""The map of the workspace: where the tool was at the signal, and how bad the stop from there was.

Few cases are points. Of many the map shows hexagons with the worst case in each, so that the
picture is no larger for more of them. Also obstacles as surfaces, for this and other pictures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import coal
import lazy_loader
import numpy as np
import scipy
from numpy.typing import NDArray

from ...errors import printable
from ...safety.space.solids import Obstacle
from ...tables.markup import Markup, element
from ...tolerances import STILL_TOOL
from ..plots.chart_shapes import Hexagons, Outline, Spots, color_of, color_scale
from ..plots.svg import Plot, Scale, Shape
from ..scene.replay import Layer
from ..stop_report.sections import figure, section
from .results import Measures, QuantityDistribution, Results

__all__ = ["hexagons", "map_section", "obstacle_layers", "outline", "surface"]

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
    results: Results,
    measures: Measures,
    obstacles: Sequence[Obstacle],
    tool: str,
) -> Markup:
    """Maps of the tool path and of the time.

    Args:
        results: what came out.
        measures: quantities by criterion.
        obstacles: what stands around the robot.
        tool: frame whose places they are.
    """
    chosen = [measures[name] for name in ("travel", "time", "clearance") if name in measures]
    if not chosen:
        return Markup("")
    name = printable(tool)
    everywhere = np.vstack([results.places, results.lost])
    if np.ptp(everywhere, axis=0).max() < STILL_TOOL:
        text = f"{name} is at the same place when the signal comes in all cases: there is no map."
        return section("Workspace", "workspace", element("p", text))
    many = results.stopped > _POINTS
    what = "the worst case in each hexagon" if many else "each point is a case"
    remark = f"Where {name} was when the signal came; {what}, the ring is the worst one."
    remark += " The dark cross is the origin of the world."
    if len(results.lost):
        remark += " Red crosses are cases that did not stop or are not held."
    return section(
        "Workspace",
        "workspace",
        element("p", remark, class_="remark"),
        *(_maps(results, measure, everywhere, obstacles) for measure in chosen),
    )


def _maps(
    results: Results,
    measure: QuantityDistribution,
    everywhere: Array,
    obstacles: Sequence[Obstacle],
) -> Markup:
    """A quantity, seen from above and from the side."""
    low, high = float(measure.shown.min()), float(measure.shown.max())
    turned = measure.quantity.kind == "clearance"
    places = 1e3 * results.places[np.searchsorted(results.cases, measure.cases)]
    views = (
        figure(
            _view(view, places, measure, 1e3 * everywhere, 1e3 * results.lost, obstacles),
            titled=True,
        )
        for view in _VIEWS
    )
    scale = color_scale(low, high, measure.quantity.label, reverse=turned)
    heading = measure.quantity.name[:1].upper() + measure.quantity.name[1:]
    return element(
        "div",
        element("h3", heading),
        scale,
        element("div", *views, class_="multiples"),
        class_="map",
    )


def _view(
    view: tuple[str, int, int],
    places: Array,
    measure: QuantityDistribution,
    everywhere: Array,
    lost: Array,
    obstacles: Sequence[Obstacle],
) -> Plot:
    """One view."""
    name, across, up = view
    flat = np.ascontiguousarray(places[:, [across, up]])
    span, height = _spans(everywhere, across, up)
    shapes: list[Shape] = [_cases(flat, measure, span[1] - span[0])]
    shapes += [
        Outline(1e3 * outline(obstacle, (across, up)), printable(obstacle.name))
        for obstacle in obstacles
    ]
    if len(lost):
        crosses = [(a, b, "#c0272d", "") for a, b in lost[:, [across, up]].tolist()]
        shapes.append(Spots(crosses, 3.0, "cross"))
    worst = int(np.flatnonzero(measure.cases == measure.spread.case)[0])
    ring = f"worst: {measure.quantity.text(measure.spread.worst)}, case {measure.spread.case}"
    shapes.append(
        Spots([(float(flat[worst, 0]), float(flat[worst, 1]), "#111", ring)], 7.0, "ring")
    )
    shapes.append(Spots([(0.0, 0.0, "#3c4552", "origin of the world")], 5.0, "cross"))
    shapes.append(_Room(*height))
    letters = "xyz"
    return Plot(
        name[:1].upper() + name[1:],
        f"{letters[across]} [mm]",
        f"{letters[up]} [mm]",
        [],
        span,
        width=440.0,
        zero=False,
        shapes=shapes,
        equal=True,
        follows=False,
    )


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

    def draw(self, x: Scale, y: Scale) -> Markup:
        return Markup("")


def _cases(flat: Array, measure: QuantityDistribution, width: float) -> Shape:
    """The cases as points, or the worst ones in hexagons."""
    values = measure.shown
    low, high = float(values.min()), float(values.max())
    sign = -1.0 if measure.quantity.kind == "clearance" else 1.0

    def color(value: float) -> str:
        share = (value - low) / (high - low) if high > low else 1.0
        return color_of(share if sign > 0 else 1.0 - share)

    unit = measure.quantity.unit
    if len(values) <= _POINTS:
        order = np.argsort(sign * values, kind="stable")  # the worst ones on top
        return Spots(
            [
                (
                    float(flat[k, 0]),
                    float(flat[k, 1]),
                    color(values[k]),
                    f"case {measure.cases[k]}: {values[k]:.4g} {unit}",
                )
                for k in order
            ]
        )
    across = min(_ACROSS, max(10.0, _FILL * np.sqrt(len(values))))
    size = float(width / across / np.sqrt(3.0))
    middles, worst, counts = hexagons(flat, sign * values, size)
    return Hexagons(
        [
            (
                float(x),
                float(y),
                color(sign * value),
                f"worst of {count}: {sign * value:.4g} {unit}",
            )
            for (x, y), value, count in zip(middles, worst, counts, strict=True)
        ],
        size,
    )


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
    to_even, to_odd = (np.sum((points - near * steps / 2.0) ** 2, axis=1) for near in (even, odd))
    nearest = np.where((to_even <= to_odd)[:, None], even, odd).astype(np.int64)
    cells, own, counts = np.unique(nearest, axis=0, return_inverse=True, return_counts=True)
    worst = np.full(len(cells), -np.inf)
    np.maximum.at(worst, own.ravel(), values)
    return cells * steps / 2.0, worst, counts.astype(np.int64)


trimesh = lazy_loader.load("trimesh")


_COLOR = (0.45, 0.42, 0.36, 0.35)


def surface(obstacle: Obstacle) -> tuple[Array, NDArray[np.int64]]:
    """Points in the world [m], shape (n, 3), and triangles, anticlockwise from outside, (m, 3).

    Args:
        obstacle: the obstacle.
    """
    solid = obstacle.solid
    if obstacle.shell is not None:
        points, faces = obstacle.shell
    elif isinstance(solid, coal.Box):
        box = trimesh.creation.box(2.0 * np.asarray(solid.halfSide))
        points, faces = box.vertices, box.faces
    elif isinstance(solid, coal.Sphere):
        ball = trimesh.creation.icosphere(3, solid.radius)
        points, faces = ball.vertices, ball.faces
    elif isinstance(solid, coal.BVHModelBase):
        corners = [solid.tri_indices(k) for k in range(solid.num_tris)]
        # A triangle of coal can be indexed, but its iteration does not end properly.
        faces = np.array([[corner[k] for k in range(3)] for corner in corners])
        points = np.asarray(solid.vertices())
    else:
        hull = trimesh.convex.convex_hull(np.asarray(solid.points()))
        points, faces = hull.vertices, hull.faces
    place = obstacle.placement
    world = np.asarray(points) @ np.asarray(place.rotation).T + np.asarray(place.translation)
    return world, np.asarray(faces, dtype=np.int64)


def outline(obstacle: Obstacle, axes: tuple[int, int]) -> Array:
    """Corners of what is seen of an obstacle along an axis, as a convex polygon, shape (k, 2).

    Args:
        obstacle: the obstacle.
        axes: axes of the picture, of x, y, z.
    """
    flat = surface(obstacle)[0][:, axes]
    return np.asarray(flat[scipy.spatial.ConvexHull(flat).vertices])


def obstacle_layers(obstacles: Sequence[Obstacle]) -> list[Layer]:
    """All obstacles as one translucent surface; none if there is none."""
    if not obstacles:
        return []
    points: list[Array] = []
    faces: list[NDArray[np.int64]] = []
    for obstacle in obstacles:
        own, triangles = surface(obstacle)
        faces.append(triangles + sum(len(part) for part in points))
        points.append(own)
    return [Layer("obstacles", np.vstack(points), np.vstack(faces), _COLOR)]
