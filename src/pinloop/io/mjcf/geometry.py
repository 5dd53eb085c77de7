"""Geoms and mesh assets of MJCF: shapes to be seen and collided with, and the mass they stand for.

What lives here knows one geom at a time; which body it sits on is told by the caller.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal, cast

import numpy as np
import pinocchio as pin
import scipy

from ...boundary.marks import Array, Integers
from ...boundary.meshes import join_meshes, outward_faces, read_mesh_parts
from ...boundary.xml import Element
from ...errors import BadValue
from ...model.description import GROUND, Geometry, Shape
from ...tolerances import SAME
from ..moments import Moments, count_misoriented, enclosed_volume, mesh_moments, primitive_moments
from ..quantities import Color, Names, read_mass, rgba
from .document import Document, flag, quaternion, turn_z, word

_KINDS = ("plane", "hfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh", "sdf")
_LARGEST = 1e9
_UNREAD = ("plane", "hfield", "sdf")
_NO_COLOR = (0.5, 0.5, 0.5, 1.0)
"""MuJoCo takes this colour for "none given"."""


@dataclass(frozen=True, eq=False)
class Mesh:
    """A mesh asset: vertices are ``S R' (x - p)`` of those in the file.

    ``scale`` is the diagonal of ``S``, ``turn`` is ``R``, ``shift`` is ``p`` [units of the file];
    ``path`` is None if the vertices are in the model.
    """

    element: Element
    path: Path | None
    scale: Array
    turn: Array
    shift: Array

    def as_shape(self) -> tuple[Shape, pin.SE3] | None:
        """Shape and its placement in the geom, or None if a turned mesh is stretched askew.

        ``S R' = R' (R S R')``: a placement after a scale only if ``R S R'`` is diagonal.
        """
        stretch = self.turn @ np.diag(self.scale) @ self.turn.T
        diagonal = np.diag(stretch)
        if not np.allclose(stretch, np.diag(diagonal), atol=SAME * np.abs(diagonal).max()):
            return None
        offset = -np.diag(self.scale) @ self.turn.T @ self.shift
        return Shape("mesh", tuple(map(float, diagonal)), self.path), pin.SE3(
            self.turn.T.copy(), offset
        )

    def triangles(self) -> tuple[Array, Integers]:
        """Vertices in the geom [m] and faces."""
        element = self.element
        if self.path is not None:
            try:
                parts = read_mesh_parts(self.path, exactly=True)
                vertices, faces = join_meshes((part.vertices, part.faces) for part in parts)
            except BadValue as error:
                raise element.error(f"has a mesh file that cannot be read: {error}") from error
        else:
            vertices = _triples(element, "vertex")
            if element.get("face") is None:
                vertices, faces = _hull(element, vertices)
            else:
                faces = _triples(element, "face").astype(np.int64)
        if faces.min() < 0 or faces.max() >= len(vertices):
            raise element.error(f"has faces that use other than its {len(vertices)} vertices")
        return (vertices - self.shift) @ self.turn * self.scale, faces


@dataclass(frozen=True, eq=False)
class Geom:
    """A geom with its defaults, and its placement on the body that carries it."""

    element: Element
    name: str
    body: str
    placement: pin.SE3
    solid: Shape | Mesh


class Shapes:
    """The meshes and materials of a model, whose geoms add their names to ``names``."""

    def __init__(self, document: Document, names: Names) -> None:
        self._document = document
        self._meshes: dict[str, Mesh | None] = {}
        self._materials: dict[str, Color | None] = {}
        self._names = names
        names.take(document.below_world("geom"))
        for element in document.section("asset"):
            if element.tag == "mesh":
                self._read_mesh(element)
            elif element.tag == "material":
                filled = document.filled(element, "material", "")
                self._materials[element.require("name")] = _rgba(filled)

    def read(self, element: Element, body: str, number: int, frame: pin.SE3) -> Geom | None:
        """Read a geom with its defaults filled in; None, and a warning, if it is not supported.

        ``number`` counts the geoms of its body; ``frame`` is the placement in the body of the frame
        in which it is written.
        """
        document = self._document
        kind = word(element, "type", _KINDS, "sphere")
        name = self._names.of(element, f"{body}_geom{number}" if number else f"{body}_geom")
        if kind in _UNREAD:
            if kind != "plane" and body != GROUND:  # floors and terrain touch nothing here
                document.warn(element, f"is a {kind}, which is not read")
            return None
        if kind == "mesh":
            asset = element.require("mesh")
            if asset not in self._meshes:
                raise element.error(f"uses the mesh '{asset}', which is not among the assets")
            mesh = self._meshes[asset]
            placement = frame * document.pose(element)
            return None if mesh is None else Geom(element, name, body, placement, mesh)
        if element.get("mesh") is not None:
            document.warn(element, f"is a {kind} fitted to a mesh, which is not read; size it")
            return None
        shape, placement = _primitive(document, element, kind)
        return Geom(element, name, body, frame * placement, shape)

    def pictures(self, geom: Geom) -> list[Geometry]:
        """What is to be seen, and what is to be collided with.

        Geoms with contype and conaffinity 0 touch nothing. MuJoCo shows groups 0 to 2: a geom of a
        higher group that touches something is there for collisions only.
        """
        shape, placement = geom.solid, geom.placement
        if isinstance(shape, Mesh):
            placed = shape.as_shape()
            problem = "has a mesh without a file" if shape.path is None else ""
            if placed is None:
                problem = problem or "has a mesh stretched askew"
            if placed is None or problem:
                self._document.warn(geom.element, f"{problem}; it is not shown")
                return []
            shape, placement = placed[0], placement * placed[1]
        touches = any(geom.element.number(bits, 1.0) != 0 for bits in ("contype", "conaffinity"))
        seen = geom.element.number("group", 0.0) <= 2 or not touches
        roles: list[Literal["visual", "collision"]] = ["visual"] if seen else []
        roles += ["collision"] if touches else []
        color = self._color(geom)
        return [Geometry(geom.name, geom.body, role, shape, placement, color) for role in roles]

    def moments(self, geom: Geom) -> Moments:
        """Mass properties of a geom in the body frame."""
        element = geom.element
        if isinstance(geom.solid, Mesh):
            solid = _mesh_solid(geom.solid, self._document)
        else:
            solid = primitive_moments(geom.solid, shell=flag(element, "shellinertia", False))
        if element.get("mass") is not None:
            mass = read_mass(element, element.number("mass"))
        else:
            mass = element.number("density", 1000.0) * solid.mass
        if not solid.mass > 0:
            raise element.error("has no volume; give it a size")
        return solid.scaled(mass / solid.mass).placed(geom.placement)

    def _read_mesh(self, element: Element) -> None:
        document, file = self._document, element.get("file")
        filled = document.filled(element, "mesh", "")
        name = element.get("name") or (PurePosixPath(file).stem if file else None)
        if name is None:
            raise element.error("needs a name or a file")
        self._meshes[name] = None
        path = None if file is None else self._find(file)
        if file is not None and path is None:
            kind = ("missing mesh", element.source)
            problem = f"{element.where}: mesh file '{file}' not found"
            advice = "; geoms of such meshes are left out, and their mass where they have any"
            document.remarks.about(kind, file, problem, advice)
        elif file is None and element.get("vertex") is None:
            document.warn(element, "has neither file nor vertices; geoms of it are left out")
        else:
            quat = filled.numbers(filled.get("refquat") or "1 0 0 0", 4, "refquat")
            scale = filled.vector("scale", (1.0, 1.0, 1.0))
            shift = filled.vector("refpos", (0.0, 0.0, 0.0))
            self._meshes[name] = Mesh(filled, path, scale, quaternion(filled, quat), shift)

    def _find(self, file: str) -> Path | None:
        """Path of a mesh file, with the rules of `meshdir` and `strippath`."""
        compiler = self._document.compiler
        if compiler.strippath:
            file = PurePosixPath(file.replace("\\", "/")).name
        if compiler.meshdir and not Path(file).is_absolute() and "://" not in file:
            file = f"{compiler.meshdir.rstrip('/')}/{file}"
        return self._document.find(file)

    def _color(self, geom: Geom) -> Color | None:
        own = _rgba(geom.element)
        if own is not None and own != _NO_COLOR:
            return own
        material = geom.element.get("material")
        if material is None and isinstance(geom.solid, Mesh):
            material = geom.solid.element.get("material")
        if material is None:
            return own
        if material not in self._materials:
            raise geom.element.error(f"uses the material '{material}', which is not defined")
        return self._materials[material]


def segment(element: Element) -> tuple[pin.SE3, float] | None:
    """Placement and half length of an element with `fromto`, or None.

    MuJoCo's documentation says that z points from the first to the second point; its compiler
    (as of 4.0.0) turns it the other way, and the orientation of a site depends on it.
    """
    text = element.get("fromto")
    if text is None:
        return None
    values = element.numbers(text, 6, "fromto")
    start, end = values[:3], values[3:]
    z = element.unit_vector(start - end, "length fromto")
    return pin.SE3(turn_z(z), (start + end) / 2), float(np.linalg.norm(end - start)) / 2


def _primitive(document: Document, element: Element, kind: str) -> tuple[Shape, pin.SE3]:
    """Shape, with full lengths, and placement of a primitive geom."""
    along = segment(element) if kind in ("capsule", "cylinder", "box", "ellipsoid") else None
    size = element.numbers(element.require("size"), None, "size")
    if along is None:
        placement = document.pose(element)
    else:
        placement, half = along
        across = size[:1] if kind in ("capsule", "cylinder") else size[[0, 0]]
        size = np.append(across, half)
    count = {"sphere": 1, "capsule": 2, "cylinder": 2, "box": 3, "ellipsoid": 3}[kind]
    if len(size) < count:
        raise element.error(f"has size '{element.get('size')}'; a {kind} needs {count} numbers")
    size = size[:count]
    if np.any(size <= 0) or np.any(size > _LARGEST):
        raise element.error(
            f"has size '{element.get('size')}'; each must be positive and at most {_LARGEST:g} m"
        )
    # MuJoCo has half lengths, but of an ellipsoid, a sphere, and across a cylinder radii.
    full = {"box": [2.0, 2.0, 2.0], "capsule": [1.0, 2.0], "cylinder": [1.0, 2.0]}
    size = size * np.array(full.get(kind, [1.0]))
    return Shape(cast(Any, kind), tuple(float(number) for number in size)), placement


def _triples(element: Element, attribute: str) -> Array:
    values = element.numbers(element.require(attribute), None, attribute)
    if not len(values) or len(values) % 3:
        raise element.error(f"has {len(values)} numbers as {attribute}; they come in threes")
    return values.reshape(-1, 3)


def _hull(element: Element, vertices: Array) -> tuple[Array, Integers]:
    try:
        return vertices, outward_faces(scipy.spatial.ConvexHull(vertices))
    except scipy.spatial.QhullError:
        raise element.error("has vertices that span no volume; its convex hull is flat") from None


def _mesh_solid(mesh: Mesh, document: Document) -> Moments:
    methods = ("convex", "exact", "legacy", "shell")
    method = word(mesh.element, "inertia", methods, "legacy")
    vertices, faces = mesh.triangles()
    if method == "convex":
        if mesh.element.get("maxhullvert") is not None:
            document.warn(mesh.element, "has maxhullvert; its mass is that of the whole hull")
        vertices, faces = _hull(mesh.element, vertices)
        method = "exact"
    elif method == "exact" and (count := count_misoriented(faces)):
        raise mesh.element.error(
            f"has {count} edges with triangles that face opposite sides, so that it has no exact "
            "volume; repair the mesh, or give it inertia='convex'"
        )
    # A mirror turns every surface inside out.
    if method == "exact" and enclosed_volume(vertices, faces) * np.prod(mesh.scale) < 0:
        document.warn(mesh.element, "is inside out; the mass is that of what its surface encloses")
    solid = mesh_moments(vertices, faces, method)
    if not solid.mass > 0:
        raise mesh.element.error(
            "encloses no volume, so that no mass can be computed from it; give the body an "
            "<inertial>, or the mesh inertia='convex'"
        )
    return solid


def _rgba(element: Element) -> Color | None:
    text = element.get("rgba")
    return None if text is None else rgba(element, text)
