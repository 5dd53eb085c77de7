"""Shapes as three.js geometries, and the viewer's command language that puts them at a path.

Knows one shape at a time, no robot. three.js draws cylinders along y, the robots' files along z:
that turn is made here and nowhere else. Commands are what meshcat sends to its page (message pack
of a small dictionary); meshcat's own classes draw a new random ``uuid`` every time, where here the
same scene gives the same bytes.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import umsgpack
from numpy.typing import ArrayLike, NDArray

from ...errors import PinloopError
from ...tables.page import Markup

Array = NDArray[np.float64]
Color = tuple[float, float, float, float]
"""Red, green, blue and opacity, each in [0, 1]."""
Command = dict[str, Any]
"""A command for the viewer: ``type``, ``path`` and what belongs to them."""

_ROUND = 48
"""Segments of a full turn."""
_TUBE = 8
"""Segments around a tube."""

_Y_TO_Z = np.array([[1.0, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
"""Turns the y axis, along which three.js draws its solids of revolution, to z."""


def css_color(color: Color) -> str:
    """A colour as style sheets have it."""
    return f"rgb({', '.join(str(round(255 * value)) for value in color[:3])})"


@dataclass(frozen=True, eq=False)
class Solid:
    """One drawable geometry in the frame of its shape.

    Args:
        geometry: three.js geometry as its object format has it, without ``uuid``.
        matrix: placement (and stretch) of that geometry in the shape's frame, shape (4, 4).
        corners: points in the shape's frame whose hull holds the solid [m], shape (n, 3).
        kind: three.js object that draws it: "Mesh" or "LineSegments".
        color: colour of its own, if the file has one.
    """

    geometry: dict[str, Any]
    matrix: Array
    corners: Array
    kind: str = "Mesh"
    color: Color | None = None


def make_solid(kind: str, size: Sequence[float]) -> Solid:
    """The solid of a shape that is not a mesh, with sizes as in `Shape`, or a "ring"."""
    make: dict[str, Callable[..., Solid]] = {
        "box": box,
        "sphere": sphere,
        "cylinder": cylinder,
        "capsule": capsule,
        "ellipsoid": ellipsoid,
        "ring": ring,
    }
    return make[kind](*size)


def _solid(kind: str, halves: Sequence[float], matrix: Array, **geometry: Any) -> Solid:
    """A geometry of three.js within a box of given half lengths."""
    return Solid({"type": f"{kind}Geometry", **geometry}, matrix, _corners(*halves))


def box(x: float, y: float, z: float) -> Solid:
    """Box with full lengths ``x``, ``y``, ``z`` [m], centred."""
    return _solid("Box", (x / 2, y / 2, z / 2), np.eye(4), width=x, height=y, depth=z)


def sphere(radius: float) -> Solid:
    """Sphere of ``radius`` [m]."""
    segments = {"widthSegments": _ROUND, "heightSegments": _ROUND * 2 // 3}
    return _solid("Sphere", (radius, radius, radius), np.eye(4), radius=radius, **segments)


def ellipsoid(x: float, y: float, z: float) -> Solid:
    """Ellipsoid with half axes ``x``, ``y``, ``z`` [m]: a unit sphere, stretched."""
    return Solid(sphere(1.0).geometry, np.diag([x, y, z, 1.0]), _corners(x, y, z))


def cylinder(radius: float, length: float, tip: float | None = None) -> Solid:
    """Cylinder along z with full ``length`` [m], centred; of radius ``tip`` at its end."""
    ends = {"radiusTop": radius if tip is None else tip, "radiusBottom": radius, "height": length}
    halves = (radius, radius, length / 2)
    return _solid("Cylinder", halves, _Y_TO_Z.copy(), **ends, radialSegments=_ROUND)


def capsule(radius: float, length: float) -> Solid:
    """Cylinder along z with full ``length`` [m] and a half ball of ``radius`` on each end."""
    angles = np.linspace(-np.pi / 2, np.pi / 2, _ROUND // 2)
    across, along = radius * np.cos(angles), radius * np.sin(angles)
    along += np.copysign(length / 2, angles)
    points = [{"x": x, "y": y} for x, y in zip(across.tolist(), along.tolist(), strict=True)]
    turn = {"segments": _ROUND, "phiStart": 0.0, "phiLength": float(2 * np.pi)}
    halves = (radius, radius, length / 2 + radius)
    return _solid("Lathe", halves, _Y_TO_Z.copy(), points=points, **turn)


def ring(radius: float, tube: float) -> Solid:
    """Ring about z whose centre line has ``radius``, of thickness ``2 tube`` [m]."""
    sizes = {"radius": radius, "tube": tube, "arc": float(2 * np.pi)}
    segments = {"radialSegments": _ROUND // 3, "tubularSegments": _ROUND}
    return _solid("Torus", (radius + tube, radius + tube, tube), np.eye(4), **sizes, **segments)


def triangles(vertices: Array, faces: NDArray[np.int64], normals: Array) -> Solid:
    """Triangles with one normal per vertex.

    Vertices [m] and normals have shape (n, 3); faces, anticlockwise from outside, shape (m, 3).
    """
    return _buffer(vertices, faces, normal=normals)


def facets(vertices: Array, faces: NDArray[np.int64]) -> Solid:
    """Triangles without normals, to be shaded flat; arguments as those of `triangles`."""
    return _buffer(vertices, faces)


def tube(path: Array, radius: float) -> Solid:
    """Tube of a radius [m] about a line of points [m], shape (n, 3), n > 0."""
    apart = np.linalg.norm(np.diff(path, axis=0), axis=1) > 1e-3 * radius
    path = path[np.concatenate([[True], apart])]
    if len(path) == 1:  # a point: as short as it is wide
        path = path + radius * np.array([[0.0, 0.0, -1.0], [0.0, 0.0, 1.0]])
    angles = 2 * np.pi * np.arange(_TUBE) / _TUBE
    normals = np.einsum(
        "ai,kij->kaj", np.column_stack([np.cos(angles), np.sin(angles)]), _across(path)
    )
    vertices = path[:, None] + radius * normals
    k, i = (cells.ravel() for cells in np.mgrid[: len(path) - 1, :_TUBE])
    a, b = k * _TUBE + i, k * _TUBE + (i + 1) % _TUBE
    above = np.column_stack([a, b, b + _TUBE]), np.column_stack([a, b + _TUBE, a + _TUBE])
    return triangles(vertices.reshape(-1, 3), np.vstack(above), normals.reshape(-1, 3))


def _across(path: Array) -> Array:
    """Two unit vectors across a line at each point, turned as little as can be, shape (n, 2, 3)."""
    along = np.gradient(path, axis=0)
    axes = np.zeros((len(path), 2, 3))
    unit, side = np.array([0.0, 0.0, 1.0]), np.zeros(3)
    for k, tangent in enumerate(along):
        length = float(np.linalg.norm(tangent))
        if length > 0:  # it is zero where a line turns right round: the direction stays
            unit = tangent / length
        side = side - (side @ unit) * unit
        if np.linalg.norm(side) < 1e-3:
            side = np.cross(unit, np.eye(3)[np.argmin(np.abs(unit))])
        side = side / np.linalg.norm(side)
        axes[k] = side, np.cross(unit, side)
    return axes


def line_segments(points: Array, colors: Array) -> Solid:
    """Separate lines between points 0-1, 2-3, ... [m]; points and colours have shape (2 n, 3)."""
    return replace(_buffer(points, None, color=colors), corners=points, kind="LineSegments")


def _buffer(points: Array, faces: NDArray[np.int64] | None, **attributes: Array) -> Solid:
    """three.js buffers; arrays are packed when the command is."""
    rows = {"position": points, **attributes}
    data: dict[str, Any] = {
        "attributes": {name: _attribute(v.astype("<f4"), 3, "Float32") for name, v in rows.items()}
    }
    if faces is not None:
        data["index"] = _attribute(faces.astype("<u4"), 1, "Uint32")
    low, high = points.min(axis=0), points.max(axis=0)
    corners = (low + high) / 2 + _corners(*(high - low) / 2)
    return Solid({"type": "BufferGeometry", "data": data}, np.eye(4), corners)


def _attribute(values: NDArray[Any], size: int, kind: str) -> dict[str, Any]:
    array = {"array": values.ravel(), "type": f"{kind}Array"}
    return {"itemSize": size, **array, "normalized": False}


def _corners(x: float, y: float, z: float) -> Array:
    """The eight corners of the box with these half lengths."""
    signs = np.array([[i, j, k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)], dtype=float)
    return signs * (x, y, z)


# -- commands ------------------------------------------------------------------------------------

_FORMAT = {"version": 4.5, "type": "Object"}
_EXTENSIONS = {"f": 0x17, "u": 0x16}
"""Message pack extensions by which meshcat's page knows float and unsigned 32 bit arrays."""


def set_object(path: str, solid: Solid, material: dict[str, Any], matrix: ArrayLike) -> Command:
    """Put a solid with a three.js material (without ``uuid``) at a path, placed by a matrix."""
    shape, surface = f"{path}#geometry", f"{path}#material"
    return {
        "type": "set_object",
        "path": path,
        "object": {
            "metadata": _FORMAT,
            "geometries": [{"uuid": shape, **solid.geometry}],
            "materials": [{"uuid": surface, **material}],
            "object": {
                "uuid": f"{path}#object",
                "type": solid.kind,
                "geometry": shape,
                "material": surface,
                "matrix": _by_columns(matrix),
            },
        },
    }


def set_light(path: str, light: dict[str, Any]) -> Command:
    """Put a light (three.js object without ``uuid``) at ``path``."""
    content = {"metadata": _FORMAT, "object": {"uuid": f"{path}#object", **light}}
    return {"type": "set_object", "path": path, "object": content}


def set_transform(path: str, matrix: ArrayLike) -> Command:
    """Place the node at ``path`` in its parent, shape (4, 4)."""
    return {"type": "set_transform", "path": path, "matrix": _by_columns(matrix)}


def set_property(path: str, name: str, value: Any) -> Command:
    """Set a property of the node at ``path``."""
    return {"type": "set_property", "path": path, "property": name, "value": value}


def packed(command: Command) -> bytes:
    """A command as the page reads it."""
    return bytes(umsgpack.packb(_plain(command)))


def encoded(commands: Iterable[Command]) -> Iterator[str]:
    """Commands as text for a page (base64)."""
    return (base64.b64encode(packed(command)).decode() for command in commands)


def phong(color: Color, *, in_front: bool = False) -> dict[str, Any]:
    """Slightly glossy three.js material of a colour; ``in_front`` of whatever else is there."""
    red, green, blue, alpha = (min(max(float(value), 0.0), 1.0) for value in color)
    channels = [round(255 * value) for value in (red, green, blue)]
    return {
        "type": "MeshPhongMaterial",
        "color": channels[0] << 16 | channels[1] << 8 | channels[2],
        "specular": 0x1C1C1C,
        "shininess": 35,
        "side": 2,
        # three.js draws transparent objects after the others.
        "transparent": alpha < 1 or in_front,
        "depthTest": not in_front,
        "opacity": alpha,
    }


def _by_columns(matrix: ArrayLike) -> list[float]:
    """The 16 numbers of a matrix in the order of three.js."""
    return [float(value) for value in np.asarray(matrix, dtype=float).T.ravel()]


def _plain(value: Any) -> Any:
    """Replace arrays in nested containers by their message pack extensions."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, np.ndarray):
        return umsgpack.Ext(_EXTENSIONS[value.dtype.kind], value.tobytes())
    return value


def viewer_script() -> Markup:
    """The script of the viewer, out of the meshcat package."""
    spec = find_spec("meshcat")
    for folder in (spec.submodule_search_locations if spec is not None else None) or ():
        script = Path(folder) / "viewer" / "dist" / "main.min.js"
        if script.is_file():
            return Markup(script.read_text(encoding="utf-8"))
    raise PinloopError(
        "the viewer's script is missing from meshcat; reinstall it: pip install "
        "--force-reinstall meshcat"
    )
