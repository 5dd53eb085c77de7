"""Mass, centre and inertia of homogeneous solids, and of bodies put together from them.

Closed formulas for primitives, sums over triangles for meshes. Knows no file format; only the mesh
reader needs `trimesh`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ..description import Shape

__all__ = ["Moments", "mesh_moments", "primitive_moments", "read_triangles", "turned"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Moments:
    """Mass properties of a body, or of a solid of density 1.

    Args:
        mass: mass [kg] (volume [m^3] at density 1).
        com: centre of mass [m], shape (3,).
        inertia: inertia about the centre of mass [kg m^2], shape (3, 3).
    """

    mass: float
    com: Array
    inertia: Array

    def scaled(self, factor: float) -> Moments:
        """The same shape with another density."""
        return Moments(self.mass * factor, self.com, self.inertia * factor)

    def placed(self, T: pin.SE3) -> Moments:
        """The same solid seen from the frame in which its own frame has the placement ``T``."""
        return Moments(self.mass, T.act(self.com), turned(T.rotation, self.inertia))

    def bounded(self, mass: float, inertia: float, balance: bool) -> Moments:
        """Bound mass and principal moments from below; even out impossible ones if ``balance``."""
        moments, axes = np.linalg.eigh(self.inertia)
        moments = np.maximum(moments, inertia)
        if balance and moments[0] + moments[1] < moments[2]:
            moments = np.full(3, moments.mean())
        changed = not np.allclose(moments, np.linalg.eigvalsh(self.inertia), rtol=1e-14, atol=0.0)
        own = turned(axes, np.diag(moments)) if changed else self.inertia
        return Moments(max(self.mass, mass), self.com, own)

    @staticmethod
    def total(parts: Iterable[Moments]) -> Moments:
        """Moments of several solids in one frame (parallel axes)."""
        solids = list(parts)
        mass = sum(solid.mass for solid in solids)
        if mass <= 0.0:
            return Moments(0.0, np.zeros(3), np.zeros((3, 3)))
        com = np.asarray(sum(solid.mass * solid.com for solid in solids)) / mass
        inertia = np.zeros((3, 3))
        for solid in solids:
            r = solid.com - com
            inertia += solid.inertia + solid.mass * (r @ r * np.eye(3) - np.outer(r, r))
        return Moments(float(mass), com, inertia)


def turned(R: Array, inertia: Array) -> Array:
    """``R I R'``, symmetric to the last bit."""
    product = R @ inertia @ R.T
    return np.asarray((product + product.T) / 2)


def primitive_moments(shape: Shape) -> Moments:
    """Moments of a primitive of density 1 in its own frame.

    A capsule is a cylinder with two half spheres of radius r, whose centres lie 3r/8 beyond its
    ends; the inertia of a half sphere about a diameter through its centre of mass is 83/320 m r^2.

    Args:
        shape: a shape that is no mesh.
    """
    if shape.kind == "sphere":
        (r,) = shape.size
        volume, moments = 4 / 3 * np.pi * r**3, np.full(3, 0.4 * r**2)
    elif shape.kind == "box":
        squares = np.square(shape.size)
        volume, moments = float(np.prod(shape.size)), (squares.sum() - squares) / 12
    elif shape.kind == "ellipsoid":
        squares = np.square(shape.size)
        volume = 4 / 3 * np.pi * float(np.prod(shape.size))
        moments = (squares.sum() - squares) / 5
    else:
        r, h = shape.size
        rod = np.pi * r**2 * h
        across = (3 * r**2 + h**2) / 12
        volume, moments = rod, np.array([across, across, r**2 / 2])
        if shape.kind == "capsule":
            caps = 4 / 3 * np.pi * r**3
            side = 83 / 320 * r**2 + (h / 2 + 3 / 8 * r) ** 2
            volume = rod + caps
            moments = (rod * moments + caps * np.array([side, side, 0.4 * r**2])) / volume
    return Moments(float(volume), np.zeros(3), float(volume) * np.diag(moments))


def mesh_moments(vertices: Array, faces: NDArray[np.int64], method: str) -> Moments:
    """Moments of what triangles enclose, at density 1 (per area for "shell").

    Every triangle spans a pyramid with the centre of the surface. The second moment of a simplex
    with corners c_i and volume V is V/20 (sum c_i c_i' + s s'), s = sum c_i, with one corner at
    the origin; of a triangle with area A it is A/12 (sum c_i c_i' + s s').

    Args:
        vertices: corners [m], shape (n, 3).
        faces: triangles, all counter-clockwise seen from the same side, shape (m, 3).
        method: "exact" (signed pyramids, closed surface), "legacy" (their absolute volumes, which
            overcounts what is not convex), or "shell" (the surface alone).
    """
    corners = vertices[faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]) / 2
    areas = np.linalg.norm(normals, axis=1)
    if not areas.sum() > 0:
        return Moments(0.0, np.zeros(3), np.zeros((3, 3)))
    centre = areas @ corners.mean(axis=1) / areas.sum()
    corners = corners - centre
    sums = corners.sum(axis=1)
    if method == "shell":
        weights, first, second = areas, 1 / 3, 1 / 12
    else:
        weights, first, second = np.einsum("ij,ij->i", normals, sums) / 9, 1 / 4, 1 / 20
        # A surface that is inside out has all signs wrong.
        weights = np.abs(weights) if method == "legacy" else weights * np.sign(weights.sum())
    mass = float(weights.sum())
    if not mass > 0:
        return Moments(0.0, centre, np.zeros((3, 3)))
    com = first * (weights @ sums) / mass
    pairs = np.einsum("ijk,ijl->ikl", corners, corners) + np.einsum("ij,ik->ijk", sums, sums)
    square = second * np.einsum("i,ijk->jk", weights, pairs) - mass * np.outer(com, com)
    return Moments(mass, com + centre, np.trace(square) * np.eye(3) - square)


def convex_hull(vertices: Array) -> tuple[Array, NDArray[np.int64]]:
    """Vertices and outward triangles of the convex hull of points.

    Raises:
        QhullError: the points lie in a plane.
    """
    from scipy.spatial import ConvexHull  # slow to import

    hull = ConvexHull(vertices)
    faces = np.asarray(hull.simplices, dtype=np.int64)
    a, b, c = (vertices[faces[:, corner]] for corner in range(3))
    inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), hull.equations[:, :3]) < 0
    faces[inward] = faces[inward, ::-1]
    return vertices, faces


def read_triangles(path: Path) -> tuple[Array, NDArray[np.int64]]:
    """Vertices and faces of a mesh file; raises what `trimesh` raises."""
    import trimesh

    mesh = trimesh.load_mesh(str(path), process=False)
    if not isinstance(mesh, trimesh.Trimesh) or not len(mesh.faces):
        raise ValueError("it holds no triangles")
    return np.asarray(mesh.vertices, dtype=float), np.asarray(mesh.faces, dtype=np.int64)
