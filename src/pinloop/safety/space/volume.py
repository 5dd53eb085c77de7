"""A swept volume as a value: what it holds, how large it is, how it is written to a file.

How it is made is in `swept`; nothing here knows a robot or a motion.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import lazy_loader
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import BadValue
from ...tolerances import SAME
from .hulls import Hull, inside

trimesh = lazy_loader.load("trimesh")

__all__ = ["SweptVolume"]

Array = NDArray[np.float64]

_FORMATS = (".stl", ".ply", ".obj", ".glb")
_LINES, _FEWEST_LINES = 256, 64
"""Lines across the longest side by which a volume is measured, at most and at least."""
_WORK, _CHUNK = 100_000_000, 500_000
"""Crossings of lines with planes, in all (which decides on the number of lines) and at once."""


@dataclass(frozen=True, eq=False)
class SweptVolume:
    """A volume that a robot does not leave during a run; made by `swept.swept_volume`.

    Args:
        parts: convex polyhedra per body (or frame), in the world; their union is the volume.
        tolerance: tolerance that was used [m]: larger than asked for if triangles were limited.
        excess: no point of the volume is farther than this from a place where a piece of the
            robot has been [m]. A mesh counts as its convex hull.
        shapes: per body what it was made of: "collision" or "visual" shapes, "joint frames" (the
            robot has no shapes: hulls of its joints, frames and centres of mass stand in), or
            "frame".
        bare: bodies without any shape, which are not in the volume.
    """

    parts: Mapping[str, tuple[Hull, ...]]
    tolerance: float
    excess: float
    shapes: Mapping[str, str] = field(repr=False)
    bare: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return (
            f"<SweptVolume of {len(self.parts)} bodies: {self.triangles} triangles, at most "
            f"{1000 * self.excess:.1f} mm too large>"
        )

    @property
    def triangles(self) -> int:
        """Number of triangles."""
        return sum(len(hull.faces) for hull in self._hulls)

    @property
    def bounds(self) -> Array:
        """Lower and upper corner of the box that holds it [m], shape (2, 3)."""
        low = np.min([hull.vertices.min(axis=0) for hull in self._hulls], axis=0)
        return np.array([low, np.max([hull.vertices.max(axis=0) for hull in self._hulls], axis=0)])

    @cached_property
    def meshes(self) -> dict[str, tuple[Any, ...]]:
        """Per body (or frame) its convex pieces, each a `trimesh.Trimesh`."""
        return {
            name: tuple(_trimesh(hull.vertices, hull.faces) for hull in hulls)
            for name, hulls in self.parts.items()
        }

    def mesh(self, body: str | None = None) -> Any:
        """All pieces in one `trimesh.Trimesh`; they overlap, what lies inside is not removed.

        Args:
            body: only the pieces of this body or frame.
        """
        if body is not None and body not in self.parts:
            known = ", ".join(self.parts)
            raise BadValue(f"'{body}' has no part in the swept volume; known: {known}")
        hulls = self._hulls if body is None else self.parts[body]
        starts = np.cumsum([0] + [len(hull.vertices) for hull in hulls])
        faces = [hull.faces + start for hull, start in zip(hulls, starts, strict=False)]
        return _trimesh(np.vstack([hull.vertices for hull in hulls]), np.vstack(faces))

    def contains(self, points: ArrayLike) -> NDArray[np.bool_]:
        """Whether points lie in the volume.

        Args:
            points: points in the world [m], shape (n, 3), or one of shape (3,).

        Returns:
            One value per point, shape (n,).
        """
        try:
            asked = np.atleast_2d(np.asarray(points, dtype=float))
        except (TypeError, ValueError):
            raise BadValue(f"points are {points!r}; give an array of shape (n, 3)") from None
        if asked.ndim != 2 or asked.shape[1] != 3 or not np.all(np.isfinite(asked)):
            raise BadValue(f"points of shape {asked.shape} are not n points with finite x, y, z")
        found = np.zeros(len(asked), dtype=bool)
        for hull in self._hulls:
            left = np.flatnonzero(~found)
            found[left[inside(hull, asked[left])]] = True
        return found

    @cached_property
    def volume(self) -> float:
        """Volume of the union [m^3], an estimate by parallel lines.

        On each of a grid of lines along the shortest side of `bounds`, up to 256 of them across the
        longest side (fewer if there are very many pieces), the length inside the pieces is exact.
        What is left is the error of the grid: about a percent where what is swept is some ten
        lines wide, less where it is wider.
        """
        return _volume(self._hulls, self.bounds)

    def export(self, path: str | Path) -> Path:
        """Write the volume as STL, PLY, OBJ or GLB (there with one node per body).

        Args:
            path: the file; its suffix tells the format.
        """
        target = Path(path)
        if target.suffix.lower() not in _FORMATS:
            known = ", ".join(_FORMATS)
            raise BadValue(f"a swept volume cannot be written as '{target.name}'; use {known}")
        content = self.mesh()
        if target.suffix.lower() == ".glb":
            content = trimesh.Scene({name: self.mesh(name) for name in self.parts})
        content.export(str(target))
        return target

    @cached_property
    def _hulls(self) -> tuple[Hull, ...]:
        return tuple(hull for hulls in self.parts.values() for hull in hulls)


def _trimesh(vertices: Array, faces: NDArray[np.int64]) -> Any:

    return trimesh.Trimesh(vertices, faces, process=False)


def _volume(hulls: tuple[Hull, ...], bounds: Array) -> float:
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


def _covered(line: NDArray[np.int64], ends: Array) -> float:
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
