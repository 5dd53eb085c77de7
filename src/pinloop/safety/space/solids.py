"""What can come near to what: convex pieces of bodies, each fixed to a joint, and obstacles.

From the shapes of a `Mechanism` to polyhedra that hold them and to objects of coal. Nothing here
moves. A mesh of the robot counts as its convex hull, a mesh of an obstacle as it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import Any

import coal
import lazy_loader
import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from ...boundary.arguments import flat_numbers, public
from ...boundary.marks import Array, Integers
from ...boundary.meshes import join_meshes, mesh_unit, read_mesh_parts
from ...errors import BadValue
from ...model.description import GROUND, Geometry
from ...model.mechanism import Mechanism
from ...model.workspace import remembered
from .hulls import SIGNS, Hull, build_hull, enclose_ball, enclose_cylinder, simplify_hull

trimesh = lazy_loader.load("trimesh")


_FEW = 60
"""Meshes with at most so many corners on their hull are taken as they are."""


@dataclass(frozen=True, eq=False)
class Piece:
    """A convex piece of a body.

    ``body``: name of the body, or of the frame about which it is; ``joint``: index of the joint of
    the model to which it is fixed; ``points``: corners of a polyhedron around it, in the frame of
    the joint [m], shape (n, 3); ``excess``: how far that polyhedron stands out of it [m];
    ``solid``: the piece as an object of coal; ``placement``: placement of ``solid`` in the frame of
    the joint.
    """

    body: str
    joint: int
    points: Array
    excess: float
    solid: Any
    placement: pin.SE3

    @cached_property
    def radius(self) -> float:
        """Distance of its farthest corner from the origin of the joint [m]."""
        return float(np.linalg.norm(self.points, axis=1).max())

    @cached_property
    def diameter(self) -> float:
        """Largest distance between two of its corners [m]."""
        apart = self.points[:, None] - self.points
        return float(np.sqrt(np.max(np.sum(apart * apart, axis=2))))


@dataclass(frozen=True, eq=False)
class RobotPieces:
    """The pieces of a robot and where they come from.

    Args:
        pieces: the pieces of all bodies, those of the ground behind the others; then balls about
            frames.
        shapes: "collision" or "visual" shapes, "joint frames" or "frame", by body or frame.
        bare: bodies without any shape.
    """

    pieces: tuple[Piece, ...]
    shapes: Mapping[str, str]
    bare: tuple[str, ...]


def collect_pieces(
    robot: Mechanism,
    excess: float,
    thickness: float | None = None,
    frames: Mapping[str, float] | None = None,
) -> RobotPieces:
    """Convex pieces of all bodies of a robot; kept for its next run.

    A body is made of its collision shapes, or of its visual ones if it has no others. If no body of
    the robot has a shape, each is replaced by the hull of its joints, frames and centre of mass.
    Polyhedra stand out of round shapes and of meshes by ``excess`` [m] at most; the other arguments
    are those of `swept_volume`.
    """
    thick = None if thickness is None else require_length("thickness", thickness)
    links, frames = _collect_links(robot, excess, thick), {} if frames is None else frames
    if not isinstance(frames, Mapping):
        raise BadValue(f"frames is {frames!r}; give radii by name, e.g. {{'tool0': 0.05}}")
    pieces = list(links.pieces)
    for name, radius in frames.items():
        frame = robot.model.frames[robot.frame_id(name)]
        size = require_length(f"the radius about frame '{name}'", radius)
        corners, out = enclose_ball(size, excess)
        points, ball = corners + frame.placement.translation, coal.Sphere(size)
        pieces.append(Piece(name, frame.parentJoint, points, out, ball, frame.placement))
    shapes = {**links.shapes, **{name: "frame" for name in frames if name not in links.shapes}}
    return RobotPieces(tuple(pieces), shapes, links.bare)


def require_length(what: str, value: Any) -> float:
    """Return a length [m] after checking that it is above zero."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not 0 < float(value) < np.inf:
        raise BadValue(f"{what} is {value!r}; it must be a length > 0 in metres")
    return float(value)


# -- shapes ---------------------------------------------------------------------------------


@remembered
def _collect_links(robot: Mechanism, excess: float, thickness: float | None) -> RobotPieces:
    """See `collect_pieces`."""
    chosen: dict[str, list[Geometry]] = {}
    for role in ("visual", "collision"):  # collision shapes replace visual ones
        own = [geometry for geometry in robot.geometry if geometry.role == role]
        chosen |= {x.body: [y for y in own if y.body == x.body] for x in own}
    shapes: dict[str, str] = {body: given[0].role for body, given in chosen.items()}
    meshes: dict[Path, Hull] = {}
    pieces = [
        _piece(robot, geometry, excess, meshes)
        for body in (*robot.bodies, GROUND)
        for geometry in chosen.get(body, ())
    ]
    if not set(chosen) - {GROUND}:
        hulls = _enclose_joints(robot, excess, thickness)
        pieces = hulls + pieces
        shapes |= {piece.body: "joint frames" for piece in hulls}
    bare = tuple(body for body in robot.bodies if body not in shapes)
    return RobotPieces(tuple(pieces), shapes, bare)


def _piece(robot: Mechanism, geometry: Geometry, excess: float, meshes: dict[Path, Hull]) -> Piece:
    """A shape as a piece."""
    frame = robot.model.frames[robot.frame_id(geometry.body)]
    placement = frame.placement * geometry.placement
    kind, size = geometry.shape.kind, geometry.shape.size
    if kind == "mesh":
        hull = _mesh_hull(geometry, meshes)
        corners, out = _few_corners(hull, excess)
        solid: Any = to_coal(hull)
    else:
        corners, out, solid = _primitive(kind, size, excess)
    points = corners @ placement.rotation.T + placement.translation
    return Piece(geometry.body, int(frame.parentJoint), points, out, solid, placement)


def _primitive(kind: str, size: tuple[float, ...], excess: float) -> tuple[Array, float, Any]:
    """Corners around a shape (sizes as in `Shape`), how far they stand out, and coal's object."""
    if kind == "box":
        return SIGNS * np.array(size) / 2, 0.0, coal.Box(*size)
    if kind == "cylinder":
        radius, length = size
        return *enclose_cylinder(radius, length, excess), coal.Cylinder(radius, length)
    if kind == "sphere":
        return *enclose_ball(size[0], excess), coal.Sphere(size[0])
    if kind == "capsule":
        radius, length = size
        ball, out = enclose_ball(radius, excess)
        end = np.array([0.0, 0.0, length / 2])
        both = build_hull(np.vstack([ball - end, ball + end])).vertices
        return both, out, coal.Capsule(radius, length)
    if kind == "ellipsoid":
        # The image of a ball under a linear map; no length grows by more than the largest radius.
        ball, out = enclose_ball(max(size), excess)
        return ball / max(size) * np.array(size), out, coal.Ellipsoid(*size)
    raise BadValue(f"a shape of kind '{kind}' has no polyhedron")


def to_coal(hull: Hull) -> Any:
    """The hull as an object of coal."""
    points, faces = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
    for point in hull.vertices:
        points.append(point)
    for face in hull.faces:
        faces.append(coal.Triangle(*(int(corner) for corner in face)))
    return coal.Convex(points, faces)


def _few_corners(hull: Hull, excess: float) -> tuple[Array, float]:
    """Corners of a polyhedron around a hull, and how far they stand out of it."""
    if len(hull.vertices) <= _FEW:
        return hull.vertices, 0.0
    corners = simplify_hull(hull, excess)
    if corners is hull.vertices:
        return corners, 0.0
    # The distance from a convex set is largest at a corner.
    solid, point, here = to_coal(hull), coal.Sphere(0.0), coal.Transform3s()
    request, out = coal.DistanceRequest(), 0.0
    for corner in corners:
        at = coal.Transform3s(np.eye(3), corner)
        out = max(out, coal.distance(point, at, solid, here, request, coal.DistanceResult()))
    return corners, out


def _mesh_hull(geometry: Geometry, meshes: dict[Path, Hull]) -> Hull:
    """Hull of the mesh of a shape, at its scale."""
    path, scale = geometry.shape.path, np.array(geometry.shape.size)
    where = f"shape '{geometry.name}' of body '{geometry.body}'"
    if path is None:
        raise BadValue(
            f"{where} is a mesh whose file was not found when the robot was loaded; give its "
            "folder to pl.load with package_dirs="
        )
    if path not in meshes:
        meshes[path] = build_hull(read_mesh(path, where)[0])
    return build_hull(meshes[path].vertices * scale)


def read_mesh(path: Path, what: str) -> tuple[Array, Integers]:
    """Corners [m] and triangles of a mesh file, as `trimesh` reads it.

    ``path``: the file; COLLADA files give their unit, the others are in metres; ``what``: name of
    the shape, for messages.
    """
    try:
        parts = read_mesh_parts(path)
    except BadValue as error:
        raise BadValue(f"{what}: {error}") from None
    return join_meshes((mesh_unit(path, p) * np.asarray(p.vertices), p.faces) for p in parts)


# -- robots without shapes ------------------------------------------------------------------


def _enclose_joints(robot: Mechanism, excess: float, thickness: float | None) -> list[Piece]:
    """Per body the hull of its joint frames, other frames and centre of mass, made thick."""
    radius = 0.02 * robot.length if thickness is None else thickness
    anchors: dict[str, list[Array]] = {body.name: [] for body in robot.description.bodies}
    anchors[GROUND] = []
    for joint in robot.description.joints:
        if joint.pair.rows:  # whose frames are no points of the bodies
            anchors[joint.parent].append(joint.frame_parent.translation)
            anchors[joint.child].append(joint.frame_child.translation)
    for named in robot.description.frames:
        anchors[named.body].append(named.placement.translation)
    for body in robot.description.bodies:
        if body.mass > 0:
            anchors[body.name].append(np.array(body.com))
    ball, out = enclose_ball(radius, excess)
    pieces = []
    for name in robot.bodies:
        if anchors[name]:
            frame = robot.model.frames[robot.frame_id(name)]
            hull = build_hull((np.array(anchors[name])[:, None] + ball).reshape(-1, 3))
            placement = frame.placement
            points = hull.vertices @ placement.rotation.T + placement.translation
            carrier = int(frame.parentJoint)
            pieces.append(Piece(name, carrier, points, out, to_coal(hull), placement))
    return pieces


# -- obstacles ------------------------------------------------------------------------------


@public
@dataclass(frozen=True, eq=False)
class Obstacle:
    """A solid at rest; made by `box`, `sphere` or `mesh`.

    Args:
        name: name for reports.
        solid: the obstacle as an object of coal.
        placement: placement of ``solid`` in the world.
        shell: corners [m] and triangles, in the axes of ``solid``, of a closed surface that is
            not convex: bodies inside touch it, although coal knows the surface only.
    """

    name: str
    solid: Any
    placement: pin.SE3
    shell: tuple[Array, Integers] | None = None

    @staticmethod
    def box(name: str, size: ArrayLike, placement: pin.SE3 | ArrayLike = (0, 0, 0)) -> Obstacle:
        """A box.

        Args:
            name: its name.
            size: full lengths along x, y, z [m].
            placement: placement of its centre in the world, or only the position [m].
        """
        lengths = flat_numbers(size, f"the size of obstacle '{name}'", 3)
        if np.any(lengths <= 0):
            raise BadValue(f"the size of obstacle '{name}' is {size!r}; all lengths must be > 0")
        return Obstacle(_require_name(name), coal.Box(*lengths), _placement(name, placement))

    @staticmethod
    def sphere(name: str, radius: float, centre: ArrayLike) -> Obstacle:
        """A ball.

        Args:
            name: its name.
            radius: its radius [m].
            centre: its centre in the world [m].
        """
        size = require_length(f"the radius of obstacle '{name}'", radius)
        return Obstacle(_require_name(name), coal.Sphere(size), _placement(name, centre))

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
        what = f"obstacle '{_require_name(name)}'"
        if isinstance(mesh, trimesh.Trimesh):
            vertices, faces = np.asarray(mesh.vertices, float), np.asarray(mesh.faces, np.int64)
        elif isinstance(mesh, (str, Path)):
            if not os.path.isfile(mesh):
                raise BadValue(f"{what}: there is no mesh file '{mesh}'")
            vertices, faces = read_mesh(Path(mesh), what)
        else:
            raise BadValue(f"{what} is {type(mesh).__name__}; give a file or a trimesh.Trimesh")
        if len(faces) == 0 or not np.all(np.isfinite(vertices)):
            raise BadValue(f"{what}: its mesh has no triangles, or points that are not finite")
        vertices = require_length(f"the scale of {what}", scale) * vertices
        where = _placement(name, placement)
        # Files repeat the corners of every triangle: merged, the surface shows whether it closes.
        surface = trimesh.Trimesh(vertices, faces, process=True)
        closed = bool(surface.is_watertight)
        # A surface that looks inward has a negative volume: a room, not a solid.
        if closed and surface.is_convex and surface.volume > 0:
            return Obstacle(name, to_coal(build_hull(vertices)), where)
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
    checked = list(given)
    if not checked:
        raise BadValue("there is no obstacle; give at least one, e.g. Obstacle.box(...)")
    for obstacle in checked:
        if not isinstance(obstacle, Obstacle):
            raise BadValue(
                f"{obstacle!r} is not an obstacle; make one by Obstacle.box, .sphere or .mesh"
            )
    names = [obstacle.name for obstacle in checked]
    for name in names:
        if names.count(name) > 1:
            raise BadValue(f"two obstacles are called '{name}'; give each its own name")
    return checked


def _surface(vertices: Array, faces: Integers) -> Any:
    """Triangles as an object of coal."""
    surface = coal.BVHModelOBBRSS()
    surface.beginModel(len(faces), len(vertices))
    surface.addVertices(vertices)
    surface.addTriangles(faces)
    surface.endModel()
    return surface


def triangles_of(surface: Any) -> list[list[int]]:
    """Triangles of a surface as coal has it."""
    triangles = (surface.tri_indices(k) for k in range(surface.num_tris))
    # A triangle of coal can be indexed, but its iteration does not end properly.
    return [[triangle[k] for k in range(3)] for triangle in triangles]


def _require_name(name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise BadValue(f"the name of an obstacle is {name!r}; give it one")
    return name


def _placement(name: str, placement: pin.SE3 | ArrayLike) -> pin.SE3:
    """A placement, or a position with the axes of the world."""
    if isinstance(placement, pin.SE3):
        return placement
    return pin.SE3(np.eye(3), flat_numbers(placement, f"the placement of obstacle '{name}'", 3))
