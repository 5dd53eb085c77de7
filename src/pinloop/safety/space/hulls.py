"""Convex polyhedra: hulls of points, polyhedra around round shapes, inflated hulls, their volume.

Geometry alone: no robot, no motion, no distance between bodies. A polyhedron that replaces a shape
encloses it, and comes with the distance by which it stands out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
import scipy

from ...boundary.marks import Array, Integers, Mask
from ...boundary.meshes import outward_faces
from ...tolerances import FLAT_HULL, SAME

SIGNS = np.array(list(product((-1.0, 1.0), repeat=3)))
"""Corners of the cube that holds the unit ball."""

CUBE = float(np.sqrt(3.0))
"""How far a hull with room for 1 stands out where the room is made of cubes."""

_MOST_PLANES = 250
"""More planes than this are not tried to simplify a hull."""


@dataclass(frozen=True, eq=False)
class Hull:
    """A convex polyhedron.

    ``vertices``: its corners [m], shape (n, 3); ``faces``: indices of three corners each,
    anticlockwise from outside, shape (m, 3); ``planes``: outward unit normal ``n`` and offset ``d``
    of each face's plane, shape (m, 4): inside is ``n x + d <= 0``.
    """

    vertices: Array
    faces: Integers
    planes: Array


def build_hull(points: Array) -> Hull:
    """Convex hull of points [m], shape (n, 3); what is flat is made two micrometres thick."""
    try:
        hull = scipy.spatial.ConvexHull(points)
    except scipy.spatial.QhullError:
        hull = scipy.spatial.ConvexHull((points[:, None] + FLAT_HULL * SIGNS).reshape(-1, 3))
    number = np.zeros(len(hull.points), dtype=np.int64)
    number[hull.vertices] = np.arange(len(hull.vertices))
    faces = number[outward_faces(hull)]
    return Hull(hull.points[hull.vertices].copy(), faces, hull.equations.copy())


def inflate_hull(points: Array, room: float, slight: float) -> tuple[Hull, float]:
    """Polyhedron that holds every point no farther than ``room`` [m] from the hull of points.

    A convex set that holds a ball of radius ``r`` about ``c``, stretched from ``c`` by ``1 +
    room/r``, holds its sum with a ball of radius ``room``: ``K + (room/r) (K - c)`` is the
    stretched set, and ``K - c`` holds the ball. That adds no corner, but the farthest corner moves
    by ``room R/r``. Where that is neither ``slight`` [m] nor little, every corner becomes a cube
    instead, whose corners stand out by ``sqrt(3) room``.

    Returned with how far it stands out of the hull of the points at most [m].
    """
    hull = build_hull(points)
    centre = hull.vertices.mean(axis=0)
    inner = -float(np.max(hull.planes[:, :3] @ centre + hull.planes[:, 3]))
    outer = float(np.linalg.norm(hull.vertices - centre, axis=1).max())
    if inner > 0 and room * outer / inner <= max(slight, CUBE * room):
        factor = 1 + room / inner
        planes = hull.planes.copy()
        planes[:, 3] = factor * planes[:, 3] + (factor - 1) * (planes[:, :3] @ centre)
        grown = Hull(centre + factor * (hull.vertices - centre), hull.faces, planes)
        return grown, room * outer / inner
    return build_hull((hull.vertices[:, None] + room * SIGNS).reshape(-1, 3)), CUBE * room


def hull_contains(hull: Hull, points: Array) -> Mask:
    """Which of some points [m], shape (n, 3), lie in a hull."""
    low, high = hull.vertices.min(axis=0), hull.vertices.max(axis=0)
    within: Mask = np.all((points >= low) & (points <= high), axis=1)
    near = points[within]
    within[within] = np.all(near @ hull.planes[:, :3].T + hull.planes[:, 3] <= 0, axis=1)
    return within


# -- round shapes ---------------------------------------------------------------------------


def enclose_ball(radius: float, excess: float) -> tuple[Array, float]:
    """Corners (n, 3) of a polyhedron that holds a ball about the origin [m].

    They stand out by ``excess`` at most, where that can be; returned with how far they do.
    """
    count = 12
    while count < 600:
        corners, reach = _unit_ball(count)
        if radius * (reach - 1) <= excess:
            break
        count = int(1.3 * count)
    return radius * corners, radius * (reach - 1)


@lru_cache
def _unit_ball(count: int) -> tuple[Array, float]:
    """Corners, all at one distance, of a polyhedron that holds the unit ball; that distance."""
    turn = np.pi * (1 + np.sqrt(5.0)) * (np.arange(count) + 0.5)
    z = 1 - (2 * np.arange(count) + 1) / count
    ring = np.sqrt(1 - z * z)
    points = np.column_stack([ring * np.cos(turn), ring * np.sin(turn), z])
    # The planes of the faces are nearer to the centre than the unit ball: move them out to it.
    nearest = -float(np.max(scipy.spatial.ConvexHull(points).equations[:, 3]))
    return points / nearest, 1 / nearest


def enclose_cylinder(radius: float, length: float, excess: float) -> tuple[Array, float]:
    """Corners (2 n, 3) of a prism about z that holds a cylinder about the origin [m].

    They stand out by ``excess`` at most, where that can be; returned with how far they do.
    """
    half_side = np.arccos(radius / (radius + max(excess, 1e-3 * radius)))
    count = max(4, int(np.ceil(np.pi / half_side)))
    reach = radius / np.cos(np.pi / count)
    angles = 2 * np.pi * np.arange(count) / count
    ring = reach * np.column_stack([np.cos(angles), np.sin(angles), np.zeros(count)])
    end = np.array([0.0, 0.0, length / 2])
    return np.vstack([ring - end, ring + end]), float(reach - radius)


# -- fewer corners --------------------------------------------------------------------------


def simplify_hull(hull: Hull, excess: float) -> Array:
    """Corners (n, 3) of a polyhedron with fewer faces that holds a hull [m].

    It is cut out of the hull's box by some of the hull's own planes: again and again by the plane
    beyond which a corner stands out most, until none stands out of any plane by more than
    ``excess``. Where nothing is gained, the corners are those of the hull.
    """
    low, high = hull.vertices.min(axis=0), hull.vertices.max(axis=0)
    planes = np.column_stack([np.vstack([np.eye(3), -np.eye(3)]), np.concatenate([-high, low])])
    centre = hull.vertices.mean(axis=0)
    while len(planes) < _MOST_PLANES:
        corners = np.asarray(scipy.spatial.HalfspaceIntersection(planes, centre).intersections)
        out = corners @ hull.planes[:, :3].T + hull.planes[:, 3]
        beyond = np.flatnonzero(out.max(axis=1) > excess)
        if len(beyond) == 0 or len(corners) >= len(hull.vertices):
            break
        worst = beyond[np.argsort(out[beyond].max(axis=1))[-4:]]
        planes = np.vstack([planes, hull.planes[np.unique(np.argmax(out[worst], axis=1))]])
    return corners if len(corners) < len(hull.vertices) else hull.vertices


# -- volume ---------------------------------------------------------------------------------

_LINES, _FEWEST_LINES = 256, 64
"""Lines across the longest side by which a volume is measured, at most and at least."""
_WORK, _CHUNK = 100_000_000, 500_000
"""Crossings of lines with planes, in all (which decides on the number of lines) and at once."""


def union_volume(hulls: tuple[Hull, ...], bounds: Array) -> float:
    """Volume of a union of convex hulls by lines along the shortest side of its box."""
    size = bounds[1] - bounds[0]
    along, *across = np.argsort(size, kind="stable")
    # Faces of a prism share their planes; rounding finds those that do.
    slim = [np.unique(np.round(hull.planes, 12), axis=0) for hull in hulls]
    shares = [
        len(planes) * np.prod(np.ptp(hull.vertices, axis=0)[across] / size[across])
        for hull, planes in zip(hulls, slim, strict=True)
    ]
    most = np.sqrt(_WORK / sum(shares) * size.max() ** 2 / np.prod(size[across]))
    step = float(size.max()) / np.clip(most, _FEWEST_LINES, _LINES)
    counts = [max(1, int(np.ceil(size[axis] / step))) for axis in across]
    grids = [
        bounds[0, axis] + size[axis] * (np.arange(count) + 0.5) / count
        for axis, count in zip(across, counts, strict=True)
    ]
    lines, ends = [np.zeros(0, dtype=np.int64)], [np.zeros((0, 2))]
    for hull, planes in zip(hulls, slim, strict=True):
        low, high = hull.vertices.min(axis=0), hull.vertices.max(axis=0)
        first, second = (
            np.arange(*np.searchsorted(grid, (low[axis], high[axis])))
            for grid, axis in zip(grids, across, strict=True)
        )
        rows = max(1, _CHUNK // (len(planes) * max(1, len(second))))
        for part in np.array_split(first, max(1, len(first) // rows)):
            u, w = (cells.ravel() for cells in np.meshgrid(part, second, indexing="ij"))
            start, end = _crossings(planes, along, across, grids[0][u], grids[1][w])
            hit = end > start
            lines.append((u * counts[1] + w)[hit])
            ends.append(np.column_stack([start, end])[hit])
    area = float(np.prod(size[across])) / (counts[0] * counts[1])
    return area * _covered(np.concatenate(lines), np.concatenate(ends))


def _crossings(
    planes: Array, along: int, across: list[int], u: Array, w: Array
) -> tuple[Array, Array]:
    """Where lines along an axis enter and leave a hull with these planes."""
    slope = planes[:, along]
    rest = np.column_stack([u, w]) @ planes[:, across].T + planes[:, 3]
    up, down = slope > SAME, slope < -SAME
    beside = np.any(rest[:, ~up & ~down] > 0, axis=1)
    end = np.min(-rest[:, up] / slope[up], axis=1)
    start = np.max(-rest[:, down] / slope[down], axis=1)
    return start, np.where(beside, -np.inf, end)


def _covered(line: Integers, ends: Array) -> float:
    """Total length that intervals on lines cover together."""
    if len(line) == 0:
        return 0.0
    order = np.lexsort((ends[:, 0], line))
    line, start, end = line[order], ends[order, 0], ends[order, 1]
    # Shift each line beyond the one before it, so that one running maximum serves them all.
    span = float(end.max() - start.min()) + 1.0
    start, end = start + line * span, end + line * span
    reached = np.concatenate([[-np.inf], np.maximum.accumulate(end)[:-1]])
    return float(np.sum(np.maximum(0.0, end - np.maximum(start, reached))))
