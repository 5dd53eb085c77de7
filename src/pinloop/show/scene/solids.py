"""Shapes and meshes as three.js geometries.

Knows one shape at a time, no robot. three.js draws cylinders along y, the robots' files along z:
that turn is made here and nowhere else. Mesh files are read once through trimesh, with normals that
keep edges sharp. Where a page would get too large they are simplified, for pictures only: vertices
nearby become one, and surfaces move by up to the size of a cell.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from ...boundary.marks import Array, Integers
from ...boundary.meshes import mesh_unit, read_mesh_parts
from ...errors import BadValue, PinloopWarning
from ...tolerances import LAST_BITS, THIN_TRIANGLE

with warnings.catch_warnings():
    # Its server, which comes along, uses what zmq calls deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    import meshcat as meshcat
    from meshcat.geometry import pack_numpy_array

Color = tuple[float, float, float, float]
"""Red, green, blue and opacity, each in [0, 1]."""

_ROUND = 48
"""Segments of a full turn."""
_TUBE = 8
"""Segments around a tube."""

_BOX_FACES = (
    *((0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1)),
    *((2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3)),
)
"""Triangles of a box by its corners, anticlockwise from outside."""
_Y_TO_Z = np.array([[1.0, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
"""Turns the y axis, along which three.js draws its solids of revolution, to z."""


def css_color(color: Color) -> str:
    """A colour as style sheets have it."""
    return f"rgb({', '.join(str(round(255 * value)) for value in color[:3])})"


@dataclass(frozen=True, eq=False)
class Solid:
    """One drawable geometry in the frame of its shape.

    Args:
        geometry: three.js geometry as its object format has it, without ``uuid``.
        matrix: placement (and stretch) of that geometry in the shape's frame, shape (4, 4).
        corners: points in the shape's frame whose hull holds the solid [m], shape (n, 3).
        kind: three.js object that draws it: "Mesh" or "LineSegments".
    """

    geometry: dict[str, Any]
    matrix: Array
    corners: Array
    kind: str = "Mesh"
    color: Color | None = None


def make_solid(kind: str, size: Sequence[float]) -> Solid:
    """The solid of a shape that is not a mesh, with sizes as in `Shape`, or a "ring"."""
    shapes: tuple[Callable[..., Solid], ...] = (box, sphere, cylinder, capsule, ellipsoid, ring)
    return {shape.__name__: shape for shape in shapes}[kind](*size)


def _solid(kind: str, halves: Sequence[float], matrix: Array, **geometry: Any) -> Solid:
    """A geometry of three.js within a box of given half lengths."""
    return Solid({"type": f"{kind}Geometry", **geometry}, matrix, _corners(*halves))


def box(x: float, y: float, z: float) -> Solid:
    """Box with full lengths ``x``, ``y``, ``z`` [m], centred."""
    return _solid("Box", (x / 2, y / 2, z / 2), np.eye(4), width=x, height=y, depth=z)


def sphere(radius: float) -> Solid:
    """Sphere of ``radius`` [m]."""
    segments = {"widthSegments": _ROUND, "heightSegments": _ROUND * 2 // 3}
    return _solid("Sphere", (radius, radius, radius), np.eye(4), radius=radius, **segments)


def ellipsoid(x: float, y: float, z: float) -> Solid:
    """Ellipsoid with half axes ``x``, ``y``, ``z`` [m]: a unit sphere, stretched."""
    return Solid(sphere(1.0).geometry, np.diag([x, y, z, 1.0]), _corners(x, y, z))


def cylinder(radius: float, length: float, tip: float | None = None) -> Solid:
    """Cylinder along z with full ``length`` [m], centred; of radius ``tip`` at its end."""
    ends = {"radiusTop": radius if tip is None else tip, "radiusBottom": radius, "height": length}
    halves = (radius, radius, length / 2)
    return _solid("Cylinder", halves, _Y_TO_Z.copy(), **ends, radialSegments=_ROUND)


def capsule(radius: float, length: float) -> Solid:
    """Cylinder along z with full ``length`` [m] and a half ball of ``radius`` on each end."""
    angles = np.linspace(-np.pi / 2, np.pi / 2, _ROUND // 2)
    across, along = radius * np.cos(angles), radius * np.sin(angles)
    along += np.copysign(length / 2, angles)
    points = [{"x": x, "y": y} for x, y in zip(across.tolist(), along.tolist(), strict=True)]
    turn = {"segments": _ROUND, "phiStart": 0.0, "phiLength": float(2 * np.pi)}
    halves = (radius, radius, length / 2 + radius)
    return _solid("Lathe", halves, _Y_TO_Z.copy(), points=points, **turn)


def ring(radius: float, tube: float) -> Solid:
    """Ring about z whose centre line has ``radius``, of thickness ``2 tube`` [m]."""
    sizes = {"radius": radius, "tube": tube, "arc": float(2 * np.pi)}
    segments = {"radialSegments": _ROUND // 3, "tubularSegments": _ROUND}
    return _solid("Torus", (radius + tube, radius + tube, tube), np.eye(4), **sizes, **segments)


def triangles(vertices: Array, faces: Integers, normals: Array | None = None) -> Solid:
    """Triangles with one normal per vertex, or without, to be shaded flat.

    Vertices [m] and normals have shape (n, 3); faces, anticlockwise from outside, shape (m, 3).
    """
    return _buffer(vertices, faces, **({} if normals is None else {"normal": normals}))


def tube(path: Array, radius: float) -> Solid:
    """Tube of a radius [m] about a line of points [m], shape (n, 3), n > 0."""
    apart = np.linalg.norm(np.diff(path, axis=0), axis=1) > 1e-3 * radius
    path = path[np.concatenate([[True], apart])]
    if len(path) == 1:  # a point: as short as it is wide
        path = path + radius * np.array([[0.0, 0.0, -1.0], [0.0, 0.0, 1.0]])
    angles = 2 * np.pi * np.arange(_TUBE) / _TUBE
    normals = np.einsum(
        "ai,kij->kaj", np.column_stack([np.cos(angles), np.sin(angles)]), _across(path)
    )
    vertices = path[:, None] + radius * normals
    return triangles(vertices.reshape(-1, 3), _wall(len(path), _TUBE), normals.reshape(-1, 3))


def _wall(count: int, around: int) -> Integers:
    """Triangles between rings of vertices, one after the other, with so many vertices each."""
    k, i = (cells.ravel() for cells in np.mgrid[: count - 1, :around])
    a, b = k * around + i, k * around + (i + 1) % around
    above = np.column_stack([a, b, b + around]), np.column_stack([a, b + around, a + around])
    return np.vstack(above)


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
    """Separate lines between points 0-1, 2-3, ... [m]; points and colours have shape (2 n, 3)."""
    return replace(_buffer(points, None, color=colors), corners=points, kind="LineSegments")


def _buffer(points: Array, faces: Integers | None, **attributes: Array) -> Solid:
    rows = {"position": points, **attributes}
    data = {"attributes": {name: pack_numpy_array(values.T) for name, values in rows.items()}}
    if faces is not None:
        data["index"] = pack_numpy_array(faces.ravel().astype(np.uint32))
    low, high = points.min(axis=0), points.max(axis=0)
    corners = (low + high) / 2 + _corners(*(high - low) / 2)
    return Solid({"type": "BufferGeometry", "data": data}, np.eye(4), corners)


def _corners(x: float, y: float, z: float) -> Array:
    """The eight corners of the box with these half lengths."""
    signs = np.array([[i, j, k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)], dtype=float)
    return signs * (x, y, z)


# -- mesh files -----------------------------------------------------------------------------------

_CREASE = np.cos(np.radians(30.0))
"""Faces that meet at a smaller angle than this (as a cosine) are shaded as one surface."""
_PICTURES = ("image", "baseColorTexture")
_FINEST = 1 / 2000
"""Size of the first cells of a simplified mesh, as part of the size of everything."""


class MeshFiles:
    """Reads mesh files, each one once."""

    def __init__(self) -> None:
        self._read: dict[Path, list[_Mesh]] = {}

    def solids(self, path: Path, scale: tuple[float, ...]) -> list[Solid]:
        """The coloured parts of a mesh file; none, and a warning, if it cannot be read.

        An odd number of negative factors along x, y, z mirrors the mesh.
        """
        if path not in self._read:
            try:
                self._read[path] = [_mesh(part, path) for part in read_mesh_parts(path)]
            except BadValue as error:
                warnings.warn(f"{error}; it is not shown", PinloopWarning, stacklevel=2)
                self._read[path] = []
        return [_scaled(mesh, np.array(scale, dtype=float)) for mesh in self._read[path]]


@dataclass(frozen=True, eq=False)
class _Mesh:
    """Triangles of one colour [m], as they are in the file."""

    vertices: Array
    faces: Integers
    color: Color | None


def _mesh(part: Any, path: Path) -> _Mesh:
    """Triangles with an area, in metres."""
    color = _color(part)
    part.merge_vertices(merge_tex=True, merge_norm=True)
    vertices = np.asarray(part.vertices, dtype=float) * mesh_unit(path, part)
    faces = np.asarray(part.faces, dtype=np.int64)
    return _Mesh(vertices, faces[np.linalg.norm(_areas(vertices, faces), axis=1) > 0], color)


def _scaled(mesh: _Mesh, scale: Array) -> Solid:
    faces = mesh.faces[:, ::-1] if np.prod(scale) < 0 else mesh.faces
    return replace(triangles(*crease_normals(mesh.vertices * scale, faces)), color=mesh.color)


def _areas(vertices: Array, faces: Integers) -> Array:
    """Per face its normal times twice its area [m^2], shape (m, 3)."""
    first, second, third = (vertices[faces[:, corner]] for corner in range(3))
    return np.asarray(np.cross(second - first, third - first))


def _color(part: Any) -> Color | None:
    """Main colour of a mesh, if its file gives one; of a picture, the mean colour on the mesh."""
    visual = part.visual
    if not visual.defined:
        return None
    if visual.kind != "texture":
        color = np.asarray(visual.main_color)
    elif any(getattr(visual.material, name, None) is not None for name in _PICTURES):
        color = np.asarray(visual.to_color().vertex_colors).mean(axis=0)
    else:
        color = np.asarray(visual.material.main_color)
    red, green, blue, alpha = (float(value) / 255 for value in color)
    # COLLADA files disagree on what a transparency of 0 means; nobody ships an invisible robot.
    return red, green, blue, alpha or 1.0


def crease_normals(vertices: Array, faces: Integers) -> tuple[Array, Integers, Array]:
    """Split vertices where faces meet at an edge, so that only smooth surfaces are shaded smooth.

    The normal of a face at a corner is the mean, weighed by area, of the normals of the faces
    around that vertex that are inclined to it by less than 30 degrees. No face may be without an
    area.

    Returned are vertices, faces and normals of the split mesh.
    """
    areas, corners = _areas(vertices, faces), np.arange(faces.size + 1)
    units = areas / np.linalg.norm(areas, axis=1)[:, None]
    at = csr_array((np.ones(faces.size), faces.ravel(), corners))  # which corner at which vertex
    corner, other = (at @ at.T).nonzero()
    smooth = np.einsum("ij,ij->i", units[corner // 3], units[other // 3]) > _CREASE
    around = csr_array((np.ones(np.sum(smooth)), (corner[smooth], other[smooth])))
    normals = around @ np.repeat(areas, 3, axis=0)
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    ends = np.hstack([vertices[faces.ravel()], normals]).astype(np.float32)
    unique, index = np.unique(ends, axis=0, return_inverse=True)
    split = np.asarray(unique, dtype=float)
    return split[:, :3], np.asarray(index).reshape(-1, 3).astype(np.int64), split[:, 3:]


# -- all solids as triangles ----------------------------------------------------------------------


def tessellate(solid: Solid) -> tuple[Array, Integers]:
    """Triangles of a solid in the frame of its shape: vertices [m], (n, 3), and faces, (m, 3)."""
    shape = solid.geometry
    kind = shape["type"].removesuffix("Geometry")
    if kind == "Buffer":
        vertices, faces = _arrays(solid)
    elif kind == "Box":
        vertices = _corners(*(shape[name] / 2 for name in ("width", "height", "depth")))
        faces = np.array(_BOX_FACES)
    else:
        radii, heights = _profile(kind, shape)
        radii = np.where(radii > LAST_BITS * radii.max(), radii, 0.0)
        angles = 2 * np.pi * np.arange(_ROUND) / _ROUND
        around = [np.outer(radii, np.cos(angles)), np.outer(radii, np.sin(angles))]
        up = np.broadcast_to(heights[:, None], (len(radii), _ROUND))
        vertices = np.stack([*around, up], axis=2).reshape(-1, 3)
        vertices = vertices if kind == "Torus" else vertices @ _Y_TO_Z[:3, :3]
        faces = _wall(len(radii), _ROUND)
    vertices = vertices @ solid.matrix[:3, :3].T + solid.matrix[:3, 3]
    return vertices, faces[np.linalg.norm(_areas(vertices, faces), axis=1) > 0]


def _profile(kind: str, shape: dict[str, Any]) -> tuple[Array, Array]:
    """Distance from the axis of revolution and height of a line about the inside, anticlockwise."""
    if kind == "Cylinder":
        lower, upper, half = shape["radiusBottom"], shape["radiusTop"], shape["height"] / 2
        return np.array([0.0, lower, upper, 0.0]), np.array([-half, -half, half, half])
    if kind == "Lathe":
        radii, heights = np.array([(point["x"], point["y"]) for point in shape["points"]]).T
        return radii, heights
    if kind == "Sphere":
        angles = np.linspace(-np.pi / 2, np.pi / 2, _ROUND // 2)
        return shape["radius"] * np.cos(angles), shape["radius"] * np.sin(angles)
    angles = np.linspace(-np.pi, np.pi, _ROUND // 3 + 1)
    return shape["radius"] + shape["tube"] * np.cos(angles), shape["tube"] * np.sin(angles)


# -- fewer triangles ------------------------------------------------------------------------------


def decimate(solids: Sequence[Solid], budget: int) -> tuple[list[Solid | None], float]:
    """Simplify meshes until they need no more than ``budget`` bytes; other solids stay as they are.

    A solid of which nothing is left is None. Returned with the size of the cells in which vertices
    were joined [m]; 0 if none were.
    """
    lighter: list[Solid | None] = list(solids)
    meshes = {k: _arrays(solid) for k, solid in enumerate(solids) if _bytes(solid)}
    needed, cell = sum(map(_bytes, solids)), 0.0
    if needed > budget:
        extents = (float(np.ptp(vertices, axis=0).max()) for vertices, _ in meshes.values())
        cell = _FINEST * max(extents)
    while needed > budget:
        # The number of cells that a surface passes goes with their size to the power of -2.
        cell *= min(2.0, max(1.15, float(np.sqrt(needed / budget))))
        for k, arrays in meshes.items():
            lighter[k] = _simplified(solids[k], *arrays, cell)
        needed = sum(_bytes(solid) for solid in lighter if solid is not None)
    return lighter, cell


def _bytes(solid: Solid) -> int:
    """What the arrays of a mesh take; zero of another solid."""
    if solid.kind != "Mesh" or solid.geometry["type"] != "BufferGeometry":
        return 0
    data = solid.geometry["data"]
    return sum(len(e["array"].data) for e in (*data["attributes"].values(), data["index"]))


def _arrays(solid: Solid) -> tuple[Array, Integers]:
    data: dict[str, Any] = solid.geometry["data"]
    vertices = np.frombuffer(data["attributes"]["position"]["array"].data, dtype=np.float32)
    faces = np.frombuffer(data["index"]["array"].data, dtype=np.uint32)
    return vertices.astype(float).reshape(-1, 3), faces.astype(np.int64).reshape(-1, 3)


def _simplified(solid: Solid, vertices: Array, faces: Integers, cell: float) -> Solid | None:
    """A mesh whose vertices are the means of those that share a cell; None if it is too small."""
    _, index = np.unique(np.floor(vertices / cell), axis=0, return_inverse=True)
    index = np.asarray(index).ravel()
    counts = np.bincount(index)
    means = np.column_stack([np.bincount(index, vertices[:, k]) / counts for k in range(3)])
    corners = index[faces]
    corners = corners[np.linalg.norm(_areas(means, corners), axis=1) > THIN_TRIANGLE * cell**2]
    if len(corners) == 0:
        return None
    _, first_of_each = np.unique(np.sort(corners, axis=1), axis=0, return_index=True)
    mesh = triangles(*crease_normals(means, corners[np.sort(first_of_each)]))
    return replace(solid, geometry=mesh.geometry)
