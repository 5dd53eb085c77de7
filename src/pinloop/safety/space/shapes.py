"""What the bodies of a robot are made of: convex pieces, each fixed to a joint of the model.

From the shapes of a `Mechanism` to polyhedra that hold them and to objects of coal. Nothing here
moves; a mesh counts as its convex hull.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import Any

import coal
import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ...boundary.meshes import mesh_unit, read_mesh_parts
from ...errors import BadValue
from ...model.description import GROUND, Geometry
from ...model.mechanism import Mechanism
from ...model.workspace import remembered
from .hulls import Hull, around_ball, around_cylinder, hull_of, simplified

__all__ = ["Links", "Piece", "convex", "frame_pieces", "positive", "read_mesh", "robot_links"]

Array = NDArray[np.float64]

_FEW = 60
"""Meshes with at most so many corners on their hull are taken as they are."""


@dataclass(frozen=True, eq=False)
class Piece:
    """A convex piece of a body.

    Args:
        body: name of the body, or of the frame that it stands for.
        joint: index of the joint of the model to which it is fixed.
        points: corners of a polyhedron that holds it, in the frame of the joint [m], shape (n, 3).
        excess: how far that polyhedron stands out of it [m].
        solid: the piece as coal has it.
        placement: placement of ``solid`` in the frame of the joint.
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
class Links:
    """The pieces of a robot and where they come from.

    Args:
        pieces: the pieces of all bodies; those of the ground come last.
        shapes: per body that has any: "collision" or "visual" shapes, or "joint frames".
        bare: bodies without any shape.
    """

    pieces: tuple[Piece, ...]
    shapes: Mapping[str, str]
    bare: tuple[str, ...]


def robot_links(robot: Mechanism, excess: float, thickness: float | None = None) -> Links:
    """Convex pieces of all bodies of a robot; kept for its next run.

    A body is made of its collision shapes, or of its visual ones if it has no others. If no body
    of the robot has a shape, the hull of the joints, frames and centre of mass of each body stands
    in for it.

    Args:
        robot: the robot.
        excess: how far polyhedra may stand out of round shapes and of meshes [m].
        thickness: of a robot without shapes: how thick its bodies are about their frames [m]; a
            fiftieth of its characteristic length by default.

    Raises:
        BadValue: a mesh cannot be had.
    """
    return _links(robot, excess, None if thickness is None else positive("thickness", thickness))


def frame_pieces(robot: Mechanism, frames: Mapping[str, float], excess: float) -> tuple[Piece, ...]:
    """A ball about each of some frames.

    Args:
        robot: the robot.
        frames: radius of the ball [m] by name of the frame.
        excess: how far its polyhedron may stand out [m].
    """
    if not isinstance(frames, Mapping):
        raise BadValue(f"frames is {frames!r}; give radii by name, e.g. {{'tool0': 0.05}}")
    pieces = []
    for name, radius in frames.items():
        frame = robot.model.frames[robot.frame_id(name)]
        size = positive(f"the radius about frame '{name}'", radius)
        corners, out = around_ball(size, excess)
        points = corners + frame.placement.translation
        pieces.append(
            Piece(name, frame.parentJoint, points, out, coal.Sphere(size), frame.placement)
        )
    return tuple(pieces)


def positive(what: str, value: Any) -> float:
    """Return a length after checking that it is one."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not 0 < float(value) < np.inf:
        raise BadValue(f"{what} is {value!r}; it must be a length > 0 in metres")
    return float(value)


# -- shapes ---------------------------------------------------------------------------------


@remembered
def _links(robot: Mechanism, excess: float, thickness: float | None) -> Links:
    """See `robot_links`."""
    chosen: dict[str, list[Geometry]] = {}
    for role in ("visual", "collision"):  # collision shapes replace visual ones
        found: dict[str, list[Geometry]] = {}
        for geometry in robot.geometry:
            if geometry.role == role:
                found.setdefault(geometry.body, []).append(geometry)
        chosen |= found
    shapes: dict[str, str] = {body: given[0].role for body, given in chosen.items()}
    meshes: dict[Path, Hull] = {}
    pieces = [
        _piece(robot, geometry, excess, meshes)
        for body in (*robot.bodies, GROUND)
        for geometry in chosen.get(body, ())
    ]
    if not set(chosen) - {GROUND}:
        stand_ins = _stand_ins(robot, excess, thickness)
        pieces = stand_ins + pieces
        shapes |= {piece.body: "joint frames" for piece in stand_ins}
    bare = tuple(body for body in robot.bodies if body not in shapes)
    return Links(tuple(pieces), shapes, bare)


def _piece(robot: Mechanism, geometry: Geometry, excess: float, meshes: dict[Path, Hull]) -> Piece:
    """The piece that a shape is."""
    frame = robot.model.frames[robot.frame_id(geometry.body)]
    placement = frame.placement * geometry.placement
    kind, size = geometry.shape.kind, geometry.shape.size
    if kind == "mesh":
        hull = _mesh_hull(geometry, meshes)
        corners, out = _few_corners(hull, excess)
        solid: Any = convex(hull)
    else:
        corners, out, solid = _primitive(kind, size, excess)
    points = corners @ placement.rotation.T + placement.translation
    return Piece(geometry.body, int(frame.parentJoint), points, out, solid, placement)


def _primitive(kind: str, size: tuple[float, ...], excess: float) -> tuple[Array, float, Any]:
    """Corners around a shape (sizes as in `Shape`), how far they stand out, and coal's object."""
    if kind == "box":
        half = np.array(size) / 2
        corners = np.array([[i, j, k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)])
        return corners * half, 0.0, coal.Box(*size)
    if kind == "cylinder":
        radius, length = size
        return *around_cylinder(radius, length, excess), coal.Cylinder(radius, length)
    if kind == "sphere":
        return *around_ball(size[0], excess), coal.Sphere(size[0])
    if kind == "capsule":
        radius, length = size
        ball, out = around_ball(radius, excess)
        end = np.array([0.0, 0.0, length / 2])
        both = hull_of(np.vstack([ball - end, ball + end])).vertices
        return both, out, coal.Capsule(radius, length)
    if kind == "ellipsoid":
        # The image of a ball under a linear map; no length grows by more than the largest radius.
        ball, out = around_ball(max(size), excess)
        return ball / max(size) * np.array(size), out, coal.Ellipsoid(*size)
    raise BadValue(f"a shape of kind '{kind}' has no polyhedron")


def convex(hull: Hull) -> Any:
    """The hull as coal has it."""
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
    corners = simplified(hull, excess)
    if corners is hull.vertices:
        return corners, 0.0
    # The distance from a convex set is largest at a corner.
    solid, point, here = convex(hull), coal.Sphere(0.0), coal.Transform3s()
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
        meshes[path] = hull_of(read_mesh(path, where)[0])
    return hull_of(meshes[path].vertices * scale)


def read_mesh(path: Path, what: str) -> tuple[Array, NDArray[np.int64]]:
    """Corners [m] and triangles of a mesh file, as `trimesh` reads it.

    Args:
        path: the file; COLLADA files say their unit, the others are taken for metres.
        what: what the mesh is for, for messages.
    """
    try:
        found = read_mesh_parts(path)
    except BadValue as error:
        raise BadValue(f"{what}: {error}") from None
    units = [mesh_unit(path, part) for part in found]
    starts = np.cumsum([0] + [len(part.vertices) for part in found])
    corners = [unit * np.asarray(part.vertices) for unit, part in zip(units, found, strict=True)]
    faces = [start + np.asarray(part.faces) for start, part in zip(starts, found, strict=False)]
    return np.vstack(corners), np.vstack(faces).astype(np.int64)


# -- robots without shapes ------------------------------------------------------------------


def _stand_ins(robot: Mechanism, excess: float, thickness: float | None) -> list[Piece]:
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
    ball, out = around_ball(radius, excess)
    pieces = []
    for name in robot.bodies:
        if anchors[name]:
            frame = robot.model.frames[robot.frame_id(name)]
            hull = hull_of((np.array(anchors[name])[:, None] + ball).reshape(-1, 3))
            placement = frame.placement
            points = hull.vertices @ placement.rotation.T + placement.translation
            carrier = int(frame.parentJoint)
            pieces.append(Piece(name, carrier, points, out, convex(hull), placement))
    return pieces
