"""Fewer triangles where a page would get too large: vertices nearby become one.

Only for pictures: surfaces move by up to the size of a cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...tolerances import THIN_TRIANGLE
from .meshes import crease_normals
from .scene import Part
from .solids import Solid, triangles

__all__ = ["decimate"]

Array = NDArray[np.float64]

_FINEST = 1 / 2000
"""Size of the first cells, as part of the size of everything."""


def decimate(parts: Sequence[Part], budget: int) -> tuple[tuple[Part, ...], float]:
    """Simplify the meshes of a scene until they need no more than a number of bytes.

    Args:
        parts: what is drawn.
        budget: bytes that all meshes together may take.

    Returns:
        The parts, and the size of the cells in which vertices were joined [m]; 0 if none were.
    """
    solids: dict[int, Solid | None] = {k: part.solid for k, part in enumerate(parts)}
    original = {k: part.solid for k, part in enumerate(parts) if _is_mesh(part.solid)}
    needed = sum(map(_bytes, original.values()))
    if needed <= budget:
        return tuple(parts), 0.0
    arrays = {k: _arrays(solid) for k, solid in original.items()}
    cell = _FINEST * max(float(np.ptp(vertices, axis=0).max()) for vertices, _ in arrays.values())
    while needed > budget:
        # The number of cells that a surface passes goes with their size to the power of -2.
        cell *= min(2.0, max(1.15, float(np.sqrt(needed / budget))))
        for k, mesh in original.items():
            solids[k] = _simplified(mesh, *arrays[k], cell)
        left = [solid for k in original if (solid := solids[k]) is not None]
        needed = sum(map(_bytes, left))
    lighter_parts = [
        replace(part, solid=solid)
        for k, part in enumerate(parts)
        if (solid := solids[k]) is not None
    ]
    return tuple(lighter_parts), cell


def _is_mesh(solid: Solid) -> bool:
    return solid.kind == "Mesh" and solid.geometry["type"] == "BufferGeometry"


def _bytes(solid: Solid) -> int:
    data = solid.geometry["data"]
    arrays = [entry["array"] for entry in data["attributes"].values()]
    return sum(int(array.nbytes) for array in arrays) + int(data["index"]["array"].nbytes)


def _arrays(solid: Solid) -> tuple[Array, NDArray[np.int64]]:
    """Vertices, those of the same place joined, and faces."""
    data: dict[str, Any] = solid.geometry["data"]
    vertices = np.asarray(data["attributes"]["position"]["array"], dtype=float).reshape(-1, 3)
    faces = np.asarray(data["index"]["array"], dtype=np.int64).reshape(-1, 3)
    return vertices, faces


def _simplified(
    solid: Solid, vertices: Array, faces: NDArray[np.int64], cell: float
) -> Solid | None:
    """A mesh whose vertices are the means of those that share a cell; None if it is too small."""
    _, index = np.unique(np.floor(vertices / cell), axis=0, return_inverse=True)
    index = np.asarray(index).ravel()
    counts = np.bincount(index)
    means = np.column_stack([np.bincount(index, vertices[:, k]) / counts for k in range(3)])
    triangles_left = index[faces]
    first, second, third = (means[triangles_left[:, k]] for k in range(3))
    areas = np.linalg.norm(np.cross(second - first, third - first), axis=1)
    triangles_left = triangles_left[areas > THIN_TRIANGLE * cell**2]
    if len(triangles_left) == 0:
        return None
    _, one_of_each = np.unique(np.sort(triangles_left, axis=1), axis=0, return_index=True)
    mesh = triangles(*crease_normals(means, triangles_left[np.sort(one_of_each)]))
    return replace(solid, geometry=mesh.geometry)
