"""Mesh files as solids: read once through trimesh, scaled, with normals that keep edges sharp."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import PinloopWarning
from .solids import Color, Solid, triangles

__all__ = ["MeshFiles", "crease_normals"]

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

_CREASE = np.cos(np.radians(30.0))
"""Faces that meet at a smaller angle than this (as a cosine) are shaded as one surface."""


class MeshFiles:
    """Reads mesh files, each one once."""

    def __init__(self) -> None:
        self._read: dict[tuple[Path, tuple[float, ...]], list[Solid]] = {}

    def solids(self, path: Path, scale: tuple[float, ...]) -> list[Solid]:
        """Return the coloured parts of a mesh file; none, and a warning, if it cannot be read.

        Args:
            path: the file, in any format that trimesh reads.
            scale: factors along x, y, z; an odd number of negative ones mirrors the mesh.
        """
        key = (path, scale)
        if key not in self._read:
            try:
                self._read[key] = _solids(path, np.array(scale, dtype=float))
            except Exception as error:
                # Each of the many mesh formats fails in its own way.
                text = " ".join(str(error).split()) or type(error).__name__
                message = f"{path}: the mesh cannot be read and is not shown: {text}"
                warnings.warn(message, PinloopWarning, stacklevel=2)
                self._read[key] = []
        return self._read[key]


def _solids(path: Path, scale: Array) -> list[Solid]:
    """The parts of a mesh file, one per colour of the file."""
    import trimesh

    with warnings.catch_warnings():
        # What a reader of meshes deprecates is not this user's concern.
        warnings.simplefilter("ignore")
        scene = trimesh.load_scene(str(path))
        meshes = [mesh for mesh in scene.dump() if isinstance(mesh, trimesh.Trimesh)]
        meshes = [mesh for mesh in meshes if len(mesh.faces)]
        if not meshes:
            raise ValueError("it holds no triangles")
        unit = _unit(path, meshes[0])
        return [_solid(mesh, scale * unit) for mesh in meshes]


def _solid(mesh: Any, scale: Array) -> Solid:
    """One mesh of the file, in metres."""
    color = _color(mesh)
    mesh.merge_vertices(merge_tex=True, merge_norm=True)
    vertices = np.asarray(mesh.vertices, dtype=float) * scale
    faces = np.asarray(mesh.faces, dtype=np.int64)
    if np.prod(scale) < 0:
        faces = faces[:, ::-1]
    return replace(triangles(*crease_normals(vertices, faces)), color=color)


def _unit(path: Path, mesh: Any) -> float:
    """Metres per unit of the file: COLLADA says it, the other formats are taken for metres."""
    if path.suffix.lower() != ".dae":
        return 1.0
    words = str(mesh.metadata.get("units", "meters")).split("*")
    return float(words[0]) if len(words) == 2 else 1.0


def _color(mesh: Any) -> Color | None:
    """Main colour of a mesh, if its file gives one."""
    if not mesh.visual.defined:
        return None
    main = getattr(mesh.visual, "main_color", None)
    if main is None:
        main = mesh.visual.to_color().main_color
    red, green, blue, alpha = (float(value) / 255 for value in main)
    return red, green, blue, alpha


def crease_normals(vertices: Array, faces: Indices) -> tuple[Array, Indices, Array]:
    """Split vertices where faces meet at an edge, so that only smooth surfaces are shaded smooth.

    The normal of a face at a corner is the mean, weighed by area, of the normals of the faces
    around that vertex that are inclined to it by less than 30 degrees.

    Args:
        vertices: points [m], shape (n, 3).
        faces: indices of three points each, shape (m, 3).

    Returns:
        Vertices, faces and normals of the split mesh.
    """
    areas = np.cross(
        vertices[faces[:, 1]] - vertices[faces[:, 0]], vertices[faces[:, 2]] - vertices[faces[:, 0]]
    )
    lengths = np.linalg.norm(areas, axis=1)
    faces, areas, lengths = faces[lengths > 0], areas[lengths > 0], lengths[lengths > 0]
    if len(faces) == 0:
        raise ValueError("its triangles have no area")
    units = areas / lengths[:, None]
    corner, other = _neighbours(faces.ravel())
    smooth = np.einsum("ij,ij->i", units[corner // 3], units[other // 3]) > _CREASE
    normals = np.zeros((faces.size, 3))
    for axis in range(3):
        weights = areas[other[smooth] // 3, axis]
        normals[:, axis] = np.bincount(corner[smooth], weights, minlength=faces.size)
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    corners = np.hstack([vertices[faces.ravel()], normals]).astype(np.float32)
    unique, index = np.unique(corners, axis=0, return_inverse=True)
    unique = unique.astype(float)
    return unique[:, :3], index.reshape(-1, 3).astype(np.int64), unique[:, 3:]


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
