"""Things that stand around a robot: named boxes, balls and meshes, as coal has them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import coal
import lazy_loader
import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from ...boundary.arguments import public
from ...errors import BadValue
from .hulls import hull_of
from .shapes import convex, positive, read_mesh

trimesh = lazy_loader.load("trimesh")

__all__ = ["Obstacle", "checked_obstacles"]

Array = NDArray[np.float64]


@public
@dataclass(frozen=True, eq=False)
class Obstacle:
    """A thing that stands still; made by `box`, `sphere` or `mesh`.

    Args:
        name: name for reports.
        solid: the thing as coal has it.
        placement: placement of ``solid`` in the world.
        shell: corners [m] and triangles, in the axes of ``solid``, of a closed surface that is
            not convex: what is inside touches it, although coal knows the surface only.
    """

    name: str
    solid: Any
    placement: pin.SE3
    shell: tuple[Array, NDArray[np.int64]] | None = None

    @staticmethod
    def box(name: str, size: ArrayLike, placement: pin.SE3 | ArrayLike = (0, 0, 0)) -> Obstacle:
        """A box.

        Args:
            name: its name.
            size: full lengths along x, y, z [m].
            placement: placement of its centre in the world, or only the position [m].
        """
        lengths = _vector(f"the size of obstacle '{name}'", size)
        if np.any(lengths <= 0):
            raise BadValue(f"the size of obstacle '{name}' is {size!r}; all lengths must be > 0")
        return Obstacle(_named(name), coal.Box(*lengths), _placement(name, placement))

    @staticmethod
    def sphere(name: str, radius: float, centre: ArrayLike) -> Obstacle:
        """A ball.

        Args:
            name: its name.
            radius: its radius [m].
            centre: its centre in the world [m].
        """
        size = positive(f"the radius of obstacle '{name}'", radius)
        return Obstacle(_named(name), coal.Sphere(size), _placement(name, centre))

    @staticmethod
    def mesh(
        name: str,
        mesh: str | Path | Any,
        placement: pin.SE3 | ArrayLike = (0, 0, 0),
        scale: float = 1.0,
    ) -> Obstacle:
        """A mesh, triangle by triangle; solid inside if it is closed and its faces look outward.

        Args:
            name: its name.
            mesh: a file that trimesh reads, or a `trimesh.Trimesh`.
            placement: placement of the mesh's axes in the world, or only the position [m].
            scale: metres per unit of the mesh.
        """
        what = f"obstacle '{_named(name)}'"
        if isinstance(mesh, trimesh.Trimesh):
            vertices, faces = np.asarray(mesh.vertices, float), np.asarray(mesh.faces, np.int64)
        elif isinstance(mesh, (str, Path)):
            if not Path(mesh).is_file():
                raise BadValue(f"{what}: there is no mesh file '{mesh}'")
            vertices, faces = read_mesh(Path(mesh), what)
        else:
            raise BadValue(f"{what} is {type(mesh).__name__}; give a file or a trimesh.Trimesh")
        if len(faces) == 0 or not np.all(np.isfinite(vertices)):
            raise BadValue(f"{what}: its mesh has no triangles, or points that are not finite")
        vertices = positive(f"the scale of {what}", scale) * vertices
        where = _placement(name, placement)
        # Files repeat the corners of every triangle: merged, the surface shows whether it closes.
        surface = trimesh.Trimesh(vertices, faces, process=True)
        closed = bool(surface.is_watertight)
        # A surface that looks inward has a negative volume: a room, not a solid.
        if closed and surface.is_convex and surface.volume > 0:
            return Obstacle(name, convex(hull_of(vertices)), where)
        shell = (vertices, faces) if closed else None
        return Obstacle(name, _surface(vertices, faces), where, shell)

    def surrounds(self, point: Array) -> bool:
        """Whether a point lies inside a closed surface that is not convex.

        The solid angles under which the triangles are seen (Van Oosterom and Strackee, IEEE
        Trans. Biomed. Eng. 30, 1983) add up to 4 pi inside, to zero outside, and to -4 pi in a
        room whose walls look inward.

        Args:
            point: the point in the world [m], shape (3,).
        """
        if self.shell is None:
            return False
        vertices, faces = self.shell
        a, b, c = ((vertices - self.placement.actInv(point))[faces[:, k]] for k in range(3))
        la, lb, lc = (np.linalg.norm(x, axis=1) for x in (a, b, c))
        above = np.einsum("ij,ij->i", a, np.cross(b, c))
        below = la * lb * lc
        for x, y, z in ((a, b, lc), (b, c, la), (c, a, lb)):
            below = below + np.einsum("ij,ij->i", x, y) * z
        return bool(2 * np.sum(np.arctan2(above, below)) > 2 * np.pi)


def checked_obstacles(obstacles: Obstacle | Iterable[Obstacle]) -> list[Obstacle]:
    """Return obstacles as a list after checking that their names differ."""
    given = [obstacles] if isinstance(obstacles, Obstacle) else obstacles
    if not isinstance(given, Iterable):
        raise BadValue(f"obstacles are {given!r}; give a list of pl.Obstacle")
    found = list(given)
    if not found:
        raise BadValue("there is no obstacle; give at least one, e.g. Obstacle.box(...)")
    for obstacle in found:
        if not isinstance(obstacle, Obstacle):
            raise BadValue(
                f"obstacle {obstacle!r} is none; make it by Obstacle.box, .sphere, .mesh"
            )
    names = [obstacle.name for obstacle in found]
    for name in names:
        if names.count(name) > 1:
            raise BadValue(f"two obstacles are called '{name}'; give each a name of its own")
    return found


def _surface(vertices: Array, faces: NDArray[np.int64]) -> Any:
    """Triangles as coal has them."""
    surface = coal.BVHModelOBBRSS()
    surface.beginModel(len(faces), len(vertices))
    surface.addVertices(vertices)
    surface.addTriangles(faces)
    surface.endModel()
    return surface


def _named(name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise BadValue(f"the name of an obstacle is {name!r}; give it one")
    return name


def _vector(what: str, values: ArrayLike) -> Array:
    """Three finite numbers."""
    try:
        vector = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise BadValue(f"{what} is {values!r}; give three numbers in metres") from None
    if vector.shape != (3,) or not np.all(np.isfinite(vector)):
        raise BadValue(f"{what} is {values!r}; give three finite numbers in metres")
    return vector


def _placement(name: str, placement: pin.SE3 | ArrayLike) -> pin.SE3:
    """A placement, or a position with the axes of the world."""
    if isinstance(placement, pin.SE3):
        return placement
    return pin.SE3(np.eye(3), _vector(f"the placement of obstacle '{name}'", placement))
