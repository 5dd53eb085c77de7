"""Meshes as solids: read once through trimesh, with normals that keep edges sharp, and simplified.

Simplified where a page would get too large, for pictures only: vertices nearby become one, and
surfaces move by up to the size of a cell.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...boundary.meshes import mesh_unit, read_mesh_parts
from ...errors import BadValue, PinloopWarning
from ...tolerances import THIN_TRIANGLE
from .solids import Color, Solid, triangles

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

_CREASE = np.cos(np.radians(30.0))
"""Faces that meet at a smaller angle than this (as a cosine) are shaded as one surface."""
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
        return [_solid(mesh, np.array(scale, dtype=float)) for mesh in self._read[path]]


@dataclass(frozen=True, eq=False)
class _Mesh:
    """Triangles of one colour [m], as they are in the file."""

    vertices: Array
    faces: Indices
    color: Color | None


def _mesh(part: Any, path: Path) -> _Mesh:
    """Triangles with an area, in metres."""
    color = _color(part)
    part.merge_vertices(merge_tex=True, merge_norm=True)
    vertices = np.asarray(part.vertices, dtype=float) * mesh_unit(path, part)
    faces = np.asarray(part.faces, dtype=np.int64)
    return _Mesh(vertices, faces[np.linalg.norm(_areas(vertices, faces), axis=1) > 0], color)


def _solid(mesh: _Mesh, scale: Array) -> Solid:
    """A mesh at its scale, for the viewer."""
    faces = mesh.faces[:, ::-1] if np.prod(scale) < 0 else mesh.faces
    return replace(triangles(*crease_normals(mesh.vertices * scale, faces)), color=mesh.color)


def _areas(vertices: Array, faces: Indices) -> Array:
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
    elif _has_picture(visual.material):
        color = np.asarray(visual.to_color().vertex_colors).mean(axis=0)
    else:
        color = np.asarray(visual.material.main_color)
    red, green, blue, alpha = (float(value) / 255 for value in color)
    # COLLADA files disagree on what a transparency of 0 means; nobody ships an invisible robot.
    return red, green, blue, alpha or 1.0


def _has_picture(material: Any) -> bool:
    pictures = (getattr(material, name, None) for name in ("image", "baseColorTexture"))
    return any(picture is not None for picture in pictures)


def crease_normals(vertices: Array, faces: Indices) -> tuple[Array, Indices, Array]:
    """Split vertices where faces meet at an edge, so that only smooth surfaces are shaded smooth.

    The normal of a face at a corner is the mean, weighed by area, of the normals of the faces
    around that vertex that are inclined to it by less than 30 degrees.

    Args:
        vertices: points [m], shape (n, 3).
        faces: indices of three points each, none without an area, shape (m, 3).

    Returns:
        Vertices, faces and normals of the split mesh.
    """
    areas = _areas(vertices, faces)
    units = areas / np.linalg.norm(areas, axis=1)[:, None]
    corner, other = _neighbours(faces.ravel())
    smooth = np.einsum("ij,ij->i", units[corner // 3], units[other // 3]) > _CREASE
    normals = np.zeros((faces.size, 3))
    for axis in range(3):
        weights = areas[other[smooth] // 3, axis]
        normals[:, axis] = np.bincount(corner[smooth], weights, minlength=faces.size)
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    corners = np.hstack([vertices[faces.ravel()], normals]).astype(np.float32)
    unique, index = np.unique(corners, axis=0, return_inverse=True)
    split = np.asarray(unique, dtype=float)
    return split[:, :3], np.asarray(index).reshape(-1, 3).astype(np.int64), split[:, 3:]


def _neighbours(owner: Indices) -> tuple[Indices, Indices]:
    """All pairs (i, j), i = j included, of face corners that share a vertex.

    Args:
        owner: vertex of each face corner, shape (3 m,).
    """
    order = np.argsort(owner, kind="stable")
    counts = np.bincount(owner)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    repeats = counts[owner[order]]
    first = np.repeat(order, repeats)
    begin = np.repeat(np.cumsum(repeats) - repeats, repeats)
    within = np.arange(len(first)) - begin
    second = order[np.repeat(starts[owner[order]], repeats) + within]
    return first, second


# -- fewer triangles ------------------------------------------------------------------------------


def decimate(solids: Sequence[Solid], budget: int) -> tuple[list[Solid | None], float]:
    """Simplify meshes until they need no more than ``budget`` bytes; other solids stay as they are.

    Returns:
        The solids, None where nothing is left, and the size of the cells in which vertices were
        joined [m]; 0 if none were.
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
    return sum(int(e["array"].nbytes) for e in (*data["attributes"].values(), data["index"]))


def _arrays(solid: Solid) -> tuple[Array, Indices]:
    """Vertices and faces."""
    data: dict[str, Any] = solid.geometry["data"]
    vertices = np.asarray(data["attributes"]["position"]["array"], dtype=float).reshape(-1, 3)
    return vertices, np.asarray(data["index"]["array"], dtype=np.int64).reshape(-1, 3)


def _simplified(solid: Solid, vertices: Array, faces: Indices, cell: float) -> Solid | None:
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
