"""Mass, centre and inertia of homogeneous solids, and of bodies put together from them.

Closed formulas for primitives, sums over triangles for meshes. Knows no file format.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

from ..boundary.marks import Array, Integers
from ..model.description import Body, Shape
from ..tolerances import COMPLEX_STEP, LAST_BITS


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

    def body(self, name: str, place: tuple[str, int] | None = None) -> Body:
        """The body that has these mass properties."""
        return Body(name, self.mass, self.com, self.inertia, place)

    def bounded(self, mass: float, inertia: float, balance: bool) -> Moments:
        """Bound mass and principal moments from below; even out impossible ones if ``balance``."""
        moments, axes = np.linalg.eigh(self.inertia)
        moments = np.maximum(moments, inertia)
        if balance and moments[0] + moments[1] < moments[2]:
            moments = np.full(3, moments.mean())
        changed = not np.allclose(
            moments, np.linalg.eigvalsh(self.inertia), rtol=LAST_BITS, atol=0.0
        )
        own = turned(axes, np.diag(moments)) if changed else self.inertia
        return Moments(max(self.mass, mass), self.com, own)

    @staticmethod
    def total(parts: Iterable[Moments]) -> Moments:
        """Moments of several solids in one frame (parallel axes)."""
        solids = list(parts)
        mass = sum(solid.mass for solid in solids)
        if mass <= 0.0:
            turning = sum((solid.inertia for solid in solids), np.zeros((3, 3)))
            return Moments(0.0, np.zeros(3), turning)
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


def primitive_moments(shape: Shape, *, shell: bool = False) -> Moments:
    """Moments of a primitive of density 1 in its own frame, or of its ``shell`` (per area).

    A surface is a layer of thickness t, t -> 0, that makes the solid grow by t to all sides: its
    moments are the derivatives of those of the solid. MuJoCo grows the half axes of an ellipsoid,
    whose layer is thinner at the flat sides, and scales it to an area by the formula of Thomsen; so
    do we.
    """
    size = np.array(shape.size)
    if not shell:
        volume, moments = _solid(shape.kind, size)
        return Moments(float(volume), np.zeros(3), np.diag(moments))
    growth = {"box": (2.0,), "cylinder": (1.0, 2.0), "capsule": (1.0, 0.0)}.get(shape.kind, (1.0,))
    step = COMPLEX_STEP  # in the imaginary direction, where a derivative has no difference to round
    volume, moments = _solid(shape.kind, size + 1j * step * np.array(growth))
    area, moments = float(volume.imag) / step, moments.imag / step
    if shape.kind == "ellipsoid":
        a, b, c = size**1.6075
        thomsen = 4 * np.pi * ((a * b + a * c + b * c) / 3) ** (1 / 1.6075)
        area, moments = float(thomsen), moments * (thomsen / area)
    return Moments(area, np.zeros(3), np.diag(moments))


def _solid(kind: str, size: Any) -> tuple[Any, Any]:
    """Volume and principal moments of a primitive of density 1; sizes may be complex.

    A capsule is a cylinder with two half spheres of radius r, whose centres lie 3r/8 beyond its
    ends; the inertia of a half sphere about a diameter through its centre of mass is 83/320 m r^2.
    """
    if kind == "sphere":
        (r,) = size
        volume = 4 / 3 * np.pi * r**3
        return volume, volume * np.array([0.4, 0.4, 0.4]) * r**2
    if kind == "box":
        volume = np.prod(size)
        return volume, volume * ((size**2).sum() - size**2) / 12
    if kind == "ellipsoid":
        volume = 4 / 3 * np.pi * np.prod(size)
        return volume, volume * ((size**2).sum() - size**2) / 5
    r, h = size
    rod = np.pi * r**2 * h
    across = (3 * r**2 + h**2) / 12
    moments = rod * np.array([across, across, r**2 / 2])
    if kind == "cylinder":
        return rod, moments
    caps = 4 / 3 * np.pi * r**3
    side = 83 / 320 * r**2 + (h / 2 + 3 / 8 * r) ** 2
    return rod + caps, moments + caps * np.array([side, side, 0.4 * r**2])


def mesh_moments(vertices: Array, faces: Integers, method: str) -> Moments:
    """Moments of what triangles enclose, at density 1 (per area for "shell"), as MuJoCo has them.

    Every triangle spans a pyramid with an origin: the centre of the surface, to find the centre of
    mass; then that one, to find mass and inertia. Of a closed surface with signed volumes both give
    the same. Absolute volumes ("legacy") hang on the origin where the solid is not star-shaped
    about it, so that it takes these two passes to arrive at MuJoCo's numbers.

    The first moment of a simplex of volume V with corners c_i and the origin is V/4 s, s = sum c_i,
    its second moment V/20 (sum c_i c_i' + s s'); of a triangle of area A they are A/3 s and A/12
    (sum c_i c_i' + s s'). Faces are all counter-clockwise seen from the same side. The method is
    "exact" (signed pyramids, closed surface), "legacy" (their absolute volumes, which overcounts
    what is not star-shaped), or "shell" (the surface alone).
    """
    corners = vertices[faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]) / 2
    areas = np.linalg.norm(normals, axis=1)
    first, second = (1 / 3, 1 / 12) if method == "shell" else (1 / 4, 1 / 20)

    def weights(sums: Array) -> Array:
        if method == "shell":
            return np.asarray(areas)
        volumes = np.einsum("ij,ij->i", normals, sums) / 9
        # A surface that is inside out has all signs wrong.
        return np.asarray(volumes * np.sign(volumes if method == "legacy" else volumes.sum()))

    com, mass = np.zeros(3), float(areas.sum())
    if mass > 0:
        com = areas @ corners.mean(axis=1) / mass
        sums = (corners - com).sum(axis=1)
        mass = float(weights(sums).sum())
    if not mass > 0:
        return Moments(0.0, com, np.zeros((3, 3)))
    com = com + first * (weights(sums) @ sums) / mass
    corners = corners - com
    sums = corners.sum(axis=1)
    pairs = np.einsum("ijk,ijl->ikl", corners, corners) + np.einsum("ij,ik->ijk", sums, sums)
    square = second * np.einsum("i,ijk->jk", weights(sums), pairs)
    return Moments(float(weights(sums).sum()), com, np.trace(square) * np.eye(3) - square)


def enclosed_volume(vertices: Array, faces: Integers) -> float:
    """Volume that a closed surface encloses; negative if it is inside out (divergence theorem)."""
    return float(np.linalg.det(vertices[faces] - vertices.mean(axis=0)).sum() / 6)


def count_misoriented(faces: Integers) -> int:
    """How many edges of a surface two triangles walk in the same direction."""
    degenerate = (faces == np.roll(faces, 1, axis=1)).any(axis=1)
    edges = faces[~degenerate][:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
    return len(edges) - len(np.unique(edges, axis=0))
