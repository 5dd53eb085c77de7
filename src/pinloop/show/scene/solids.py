"""Shapes as three.js geometries: what a box, a cylinder or a set of triangles is for the viewer.

This room knows one shape at a time, no robot. three.js draws cylinders along y, the robots' files
along z: that turn is made here and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...model.description import Shape

__all__ = [
    "Color",
    "Solid",
    "box",
    "capsule",
    "cone",
    "cylinder",
    "ellipsoid",
    "facets",
    "line_segments",
    "primitive",
    "ring",
    "sphere",
    "triangles",
    "tube",
]

Array = NDArray[np.float64]
Color = tuple[float, float, float, float]
"""Red, green, blue and opacity, each in [0, 1]."""

_ROUND = 48
"""Segments of a full turn."""
_TUBE = 8
"""Segments around a tube."""

_Y_TO_Z = np.array([[1.0, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
"""Turns the y axis, along which three.js draws its solids of revolution, to z."""


@dataclass(frozen=True, eq=False)
class Solid:
    """One drawable geometry in the frame of its shape.

    Args:
        geometry: three.js geometry as its object format has it, without ``uuid``.
        matrix: placement (and stretch) of that geometry in the shape's frame, shape (4, 4).
        corners: points in the shape's frame whose hull holds the solid [m], shape (n, 3).
        kind: three.js object that draws it: "Mesh" or "LineSegments".
        color: colour of its own, if the file has one.
    """

    geometry: dict[str, Any]
    matrix: Array
    corners: Array
    kind: str = "Mesh"
    color: Color | None = None


def primitive(shape: Shape) -> Solid:
    """Return the solid of a shape that is not a mesh (sizes as in `Shape`)."""
    if shape.kind == "box":
        return box(*shape.size)
    if shape.kind == "sphere":
        return sphere(*shape.size)
    if shape.kind == "cylinder":
        return cylinder(*shape.size)
    if shape.kind == "capsule":
        return capsule(*shape.size)
    if shape.kind == "ellipsoid":
        return ellipsoid(*shape.size)
    raise ValueError(f"a {shape.kind} is no primitive")


def box(x: float, y: float, z: float) -> Solid:
    """Box with full lengths ``x``, ``y``, ``z`` [m], centred."""
    geometry = {"type": "BoxGeometry", "width": x, "height": y, "depth": z}
    return Solid(geometry, np.eye(4), _corners(x / 2, y / 2, z / 2))


def sphere(radius: float) -> Solid:
    """Sphere of ``radius`` [m]."""
    return Solid(_ball(radius), np.eye(4), _corners(radius, radius, radius))


def ellipsoid(x: float, y: float, z: float) -> Solid:
    """Ellipsoid with half axes ``x``, ``y``, ``z`` [m]: a unit sphere, stretched."""
    return Solid(_ball(1.0), np.diag([x, y, z, 1.0]), _corners(x, y, z))


def cylinder(radius: float, length: float) -> Solid:
    """Cylinder along z with full ``length`` [m], centred."""
    geometry = {
        "type": "CylinderGeometry",
        "radiusTop": radius,
        "radiusBottom": radius,
        "height": length,
        "radialSegments": _ROUND,
    }
    return Solid(geometry, _Y_TO_Z.copy(), _corners(radius, radius, length / 2))


def cone(radius: float, length: float) -> Solid:
    """Cone along z with full ``length`` [m], centred, its tip at positive z."""
    solid = cylinder(radius, length)
    return replace(solid, geometry=solid.geometry | {"radiusTop": 0.0})


def capsule(radius: float, length: float) -> Solid:
    """Cylinder along z with full ``length`` [m] and a half ball of ``radius`` on each end."""
    angles = np.linspace(-np.pi / 2, np.pi / 2, _ROUND // 2)
    profile = [
        {
            "x": float(radius * np.cos(angle)),
            "y": float(radius * np.sin(angle) + np.copysign(length / 2, angle)),
        }
        for angle in angles
    ]
    geometry = {
        "type": "LatheGeometry",
        "points": profile,
        "segments": _ROUND,
        "phiStart": 0.0,
        "phiLength": float(2 * np.pi),
    }
    return Solid(geometry, _Y_TO_Z.copy(), _corners(radius, radius, length / 2 + radius))


def ring(radius: float, tube: float) -> Solid:
    """Ring about z whose centre line has ``radius``, of thickness ``2 tube`` [m]."""
    geometry = {
        "type": "TorusGeometry",
        "radius": radius,
        "tube": tube,
        "radialSegments": _ROUND // 3,
        "tubularSegments": _ROUND,
        "arc": float(2 * np.pi),
    }
    return Solid(geometry, np.eye(4), _corners(radius + tube, radius + tube, tube))


def triangles(vertices: Array, faces: NDArray[np.int64], normals: Array) -> Solid:
    """Triangles with one normal per vertex.

    Args:
        vertices: points [m], shape (n, 3).
        faces: indices of three points each, anticlockwise from outside, shape (m, 3).
        normals: unit normals, shape (n, 3).
    """
    geometry = {
        "type": "BufferGeometry",
        "data": {
            "attributes": {
                "position": _attribute(vertices.astype("<f4"), 3),
                "normal": _attribute(normals.astype("<f4"), 3),
            },
            "index": _attribute(faces.astype("<u4"), 1),
        },
    }
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    return Solid(geometry, np.eye(4), (low + high) / 2 + _corners(*(high - low) / 2))


def facets(vertices: Array, faces: NDArray[np.int64]) -> Solid:
    """Triangles without normals, to be shaded flat; arguments as those of `triangles`."""
    solid = triangles(vertices, faces, np.zeros((0, 3)))
    del solid.geometry["data"]["attributes"]["normal"]
    return solid


def tube(path: Array, radius: float) -> Solid:
    """Tube about a line.

    Args:
        path: points of the line [m], shape (n, 3), n > 0.
        radius: [m].
    """
    apart = np.linalg.norm(np.diff(path, axis=0), axis=1) > 1e-3 * radius
    path = path[np.concatenate([[True], apart])]
    if len(path) == 1:  # a point: as short as it is wide
        path = path + radius * np.array([[0.0, 0.0, -1.0], [0.0, 0.0, 1.0]])
    angles = 2 * np.pi * np.arange(_TUBE) / _TUBE
    normals = np.einsum(
        "ai,kij->kaj", np.column_stack([np.cos(angles), np.sin(angles)]), _across(path)
    )
    vertices = path[:, None] + radius * normals
    k, i = (cells.ravel() for cells in np.mgrid[: len(path) - 1, :_TUBE])
    a, b = k * _TUBE + i, k * _TUBE + (i + 1) % _TUBE
    above = np.column_stack([a, b, b + _TUBE]), np.column_stack([a, b + _TUBE, a + _TUBE])
    return triangles(vertices.reshape(-1, 3), np.vstack(above), normals.reshape(-1, 3))


def _across(path: Array) -> Array:
    """Two unit vectors across a line at each point, turned as little as can be, shape (n, 2, 3)."""
    along = np.gradient(path, axis=0)
    axes = np.zeros((len(path), 2, 3))
    unit, side = np.array([0.0, 0.0, 1.0]), np.zeros(3)
    for k, tangent in enumerate(along):
        length = float(np.linalg.norm(tangent))
        if length > 0:  # it is zero where a line turns right round: the direction stays
            unit = tangent / length
        side = side - (side @ unit) * unit
        if np.linalg.norm(side) < 1e-3:
            side = np.cross(unit, np.eye(3)[np.argmin(np.abs(unit))])
        side = side / np.linalg.norm(side)
        axes[k] = side, np.cross(unit, side)
    return axes


def line_segments(points: Array, colors: Array) -> Solid:
    """Separate lines between points 0-1, 2-3, ..., each end with its colour.

    Args:
        points: ends [m], shape (2 n, 3).
        colors: red, green, blue in [0, 1], shape (2 n, 3).
    """
    geometry = {
        "type": "BufferGeometry",
        "data": {
            "attributes": {
                "position": _attribute(points.astype("<f4"), 3),
                "color": _attribute(colors.astype("<f4"), 3),
            }
        },
    }
    return Solid(geometry, np.eye(4), points, kind="LineSegments")


def _ball(radius: float) -> dict[str, Any]:
    """three.js sphere."""
    return {
        "type": "SphereGeometry",
        "radius": radius,
        "widthSegments": _ROUND,
        "heightSegments": _ROUND * 2 // 3,
    }


def _corners(x: float, y: float, z: float) -> Array:
    """The eight corners of the box with these half lengths."""
    signs = np.array([[i, j, k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)], dtype=float)
    return signs * (x, y, z)


def _attribute(values: NDArray[Any], size: int) -> dict[str, Any]:
    """three.js buffer attribute; the array is packed when the command is (see `commands`)."""
    kind = "Float32Array" if values.dtype.kind == "f" else "Uint32Array"
    return {"itemSize": size, "type": kind, "array": values.ravel(), "normalized": False}
