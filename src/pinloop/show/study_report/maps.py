"""The map of the workspace: where the tool was at the signal, and how bad the stop from there was.

Few cases are points. Of many the map shows hexagons with the worst case in each, so that the
picture is no larger for more of them. Also obstacles as surfaces, for this and other pictures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import coal
import lazy_loader
import numpy as np
import scipy

from ...boundary.marks import Array, Integers
from ...boundary.meshes import join_meshes
from ...errors import printable
from ...safety.space.solids import Obstacle, triangles_of
from ...safety.studies.results import QuantityDistribution, Results
from ...tables.report import Markup
from ...tolerances import STILL_TOOL
from ..plots import Chart, Shape
from ..plots.svg import color_of, color_scale
from ..scene.replay import Layer
from .distributions import Measures, capital

trimesh = lazy_loader.load("trimesh")


_POINTS = 300
"""So many cases are shown one by one."""
_ACROSS, _FILL = 26, 0.55
"""Hexagons across the map, at most and over the root of the number of cases."""
_VIEWS = (("From above", 0, 1), ("From the side", 0, 2))
_ROOM = 0.03
_BEYOND = 0.5
"""Edges of obstacles nearer than that, over the size of what the cases need, widen the map."""
_TALLEST, _FLATTEST = 1.25, 0.4
"""Height of a map over its width, at most and at least."""
_COLOR = (0.45, 0.42, 0.36, 0.35)


class Maps(NamedTuple):
    """Maps: title, scale of colours and two views each; or a sentence why there are none."""

    views: Sequence[tuple[str, Markup, list[Chart]]] = ()
    remark: str = ""
    still: str = ""


def maps_of(
    results: Results, measures: Measures, obstacles: Sequence[Obstacle], tool: str
) -> Maps | None:
    """Maps of tool path, time and clearance for a frame, the tool; None if no case stopped."""
    chosen = [measures[name] for name in ("travel", "time", "clearance") if name in measures]
    if not chosen:
        return None
    name = printable(tool)
    everywhere = np.vstack([results.places, results.lost])
    if np.ptp(everywhere, axis=0).max() < STILL_TOOL:
        text = f"{name} is at the same place when the signal comes in all cases: there is no map."
        return Maps(still=text)
    what = "the worst case in each hexagon" if results.stopped > _POINTS else "each point is a case"
    remark = f"Where {name} was when the signal came; {what}, the ring is the worst one."
    remark += " The grey cross is the origin of the world."
    if len(results.lost):
        remark += " Red crosses are cases that did not stop or are not held."
    views = []
    for measure in chosen:
        quantity, shown = measure.quantity, measure.shown
        low, high = float(shown.min()), float(shown.max())
        scale = color_scale(low, high, quantity.label, reverse=quantity.kind == "clearance")
        charts = [_view(results, measure, obstacles, *view) for view in _VIEWS]
        views.append((capital(quantity.name), scale, charts))
    return Maps(views, remark)


def _view(
    results: Results,
    measure: QuantityDistribution,
    obstacles: Sequence[Obstacle],
    title: str,
    across: int,
    up: int,
) -> Chart:
    """A quantity over two axes."""
    axes = [across, up]
    places = 1e3 * results.places[np.searchsorted(results.cases, measure.cases)]
    flat, lost = np.ascontiguousarray(places[:, axes]), 1e3 * results.lost[:, axes]
    outlines = [1e3 * outline(obstacle, (across, up)) for obstacle in obstacles]
    everywhere = 1e3 * np.vstack([results.places, results.lost])
    (left, right), _ = map_spans(everywhere, (), across, up)
    cells = int(len(flat) > _POINTS) * min(_ACROSS, max(10.0, _FILL * np.sqrt(len(flat))))
    room = _ROOM + (1.0 / cells if cells else 0.0)  # a hexagon reaches beyond the points in it
    span, height = map_spans(everywhere, outlines, across, up, room)
    worst = int(np.flatnonzero(measure.cases == measure.spread.case)[0])
    ring = f"worst: {measure.quantity.text(measure.spread.worst)}, case {measure.spread.case}"
    shapes: list[Shape] = [
        *_cases(flat, measure, (right - left) / cells / np.sqrt(3.0) if cells else 0.0),
        *(
            Shape("outline", corners[:, 0], corners[:, 1], name=printable(obstacle.name))
            for corners, obstacle in zip(outlines, obstacles, strict=True)
            if _overlap(corners, span, height)
        ),
        *(Shape("cross", [a], [b], "#c0272d", size=3.0) for a, b in lost),
        Shape("ring", flat[[worst], 0], flat[[worst], 1], "#111", ring, 7.0),
        Shape("cross", [0.0], [0.0], "#3c4552", "origin of the world", 5.0),
    ]
    letters = "xyz"
    return Chart(
        f"{letters[up]} [mm]",
        title=title,
        x_label=f"{letters[across]} [mm]",
        span=span,
        y_span=height,
        half=True,
        shapes=shapes,
        equal=True,
        follows=False,
    )


Span = tuple[float, float]


def map_spans(
    places: Array, outlines: Sequence[Array], across: int, up: int, room: float = _ROOM
) -> tuple[Span, Span]:
    """Ends of both axes: all places and the origin, obstacles nearby, neither flat nor tall.

    Room around them is given over their size.
    """
    points = np.vstack([places, np.zeros(3)])
    size = float(np.ptp(points, axis=0).max())
    flat = points[:, [across, up]]
    low, high = flat.min(axis=0), flat.max(axis=0)
    corners = np.vstack([flat, *outlines])
    near = (corners > low - _BEYOND * size) & (corners < high + _BEYOND * size)
    low = np.where(near, corners, np.inf).min(axis=0) - room * size
    high = np.where(near, corners, -np.inf).max(axis=0) + room * size
    wide, tall = (high - low).tolist()
    more = np.array([max(0.0, tall / _TALLEST - wide), max(0.0, _FLATTEST * wide - tall)])
    low, high = low - more / 2, high + more / 2
    return (float(low[0]), float(high[0])), (float(low[1]), float(high[1]))


def _overlap(corners: Array, *spans: Span) -> bool:
    """Whether something of an outline is in the picture."""
    ends = zip(corners.min(axis=0), corners.max(axis=0), spans, strict=True)
    return all(low < span[1] and high > span[0] for low, high, span in ends)


def _cases(flat: Array, measure: QuantityDistribution, size: float) -> Iterator[Shape]:
    """The cases as points, or the worst ones in hexagons of a size."""
    values, unit = measure.shown, measure.quantity.unit
    low, high = float(values.min()), float(values.max())
    sign = -1.0 if measure.quantity.kind == "clearance" else 1.0

    def color(value: float) -> str:
        share = (value - low) / (high - low) if high > low else 1.0
        return color_of(share if sign > 0 else 1.0 - share)

    if size == 0.0:
        for k in np.argsort(sign * values, kind="stable"):  # the worst ones on top
            name = f"case {measure.cases[k]}: {values[k]:.4g} {unit}"
            yield Shape("spot", flat[[k], 0], flat[[k], 1], color(values[k]), name, 4.0)
        return
    for (x, y), worst, count in zip(*hexagons(flat, sign * values, size), strict=True):
        value = sign * float(worst)
        name = f"worst of {count}: {value:.4g} {unit}"
        yield Shape("hexagon", [x], [y], color(value), name, size)


def hexagons(points: Array, values: Array, size: float) -> tuple[Array, Array, Integers]:
    """Middles of the hexagons that hold points, the largest value in each, and how many there are.

    Middles are those of two rectangular lattices, one shifted by half of its steps; a point belongs
    to the nearest middle. ``size``: from the middle of a hexagon to its corners.
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


def surface(obstacle: Obstacle) -> tuple[Array, Integers]:
    """Points in the world [m], shape (n, 3), and triangles, anticlockwise from outside, (m, 3)."""
    solid = obstacle.solid
    if obstacle.shell is not None:
        points, faces = obstacle.shell
    elif isinstance(solid, coal.BVHModelBase):
        points, faces = np.asarray(solid.vertices()), np.array(triangles_of(solid))
    else:
        if isinstance(solid, coal.Box):
            mesh = trimesh.creation.box(2.0 * np.asarray(solid.halfSide))
        elif isinstance(solid, coal.Sphere):
            mesh = trimesh.creation.icosphere(3, solid.radius)
        else:
            mesh = trimesh.convex.convex_hull(np.asarray(solid.points()))
        points, faces = mesh.vertices, mesh.faces
    place = obstacle.placement
    world = np.asarray(points) @ np.asarray(place.rotation).T + np.asarray(place.translation)
    return world, np.asarray(faces, dtype=np.int64)


def outline(obstacle: Obstacle, axes: tuple[int, int]) -> Array:
    """Corners of what is seen of an obstacle over two axes, as a convex polygon, shape (k, 2)."""
    flat = surface(obstacle)[0][:, axes]
    return np.asarray(flat[scipy.spatial.ConvexHull(flat).vertices])


def obstacle_layers(obstacles: Sequence[Obstacle]) -> list[Layer]:
    """All obstacles as one translucent surface; none if there is none."""
    if not obstacles:
        return []
    return [Layer("obstacles", *join_meshes(map(surface, obstacles)), _COLOR)]
