"""Obstacles as surfaces, for pictures."""

from __future__ import annotations

from collections.abc import Sequence

import coal
import lazy_loader
import numpy as np
import scipy
from numpy.typing import NDArray

from ...safety.space.obstacles import Obstacle
from ..scene.replay import Layer

trimesh = lazy_loader.load("trimesh")

__all__ = ["obstacle_layers", "outline", "surface"]

Array = NDArray[np.float64]

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
    for one in obstacles:
        own, triangles = surface(one)
        faces.append(triangles + sum(len(part) for part in points))
        points.append(own)
    return [Layer("obstacles", np.vstack(points), np.vstack(faces), _COLOR)]
