"""The viewer's command language; camera, light and ground, fitted to what is shown.

Commands put solids at paths. They are what meshcat sends to its page (message pack of a small
dictionary); meshcat's own classes draw a new random ``uuid`` every time, where here the same scene
gives the same bytes.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import umsgpack
from numpy.typing import ArrayLike

from ...boundary.marks import Array
from ...errors import PinloopError
from ...tables.report import Markup
from ...tolerances import SAME, SAME_PLACE
from .solids import Color, Solid, line_segments

Command = dict[str, Any]
"""A command for the viewer: ``type``, ``path`` and what belongs to them."""

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


# -- camera, light and ground ----------------------------------------------------------------------

FIELD_OF_VIEW = 32.0
"""Vertical angle of view [deg]; a narrow one, so that parallel links look parallel."""

_ASPECT = 1.25
"""Width over height of the narrowest window in which the whole robot is seen."""

_MARGIN = 1.12
"""How much further away than necessary the camera stands."""

_WHITE = [1.0, 1.0, 1.0]
_HAZE = [0.90, 0.92, 0.95]


def light_scene(points: Array) -> list[Command]:
    """Return the commands that set the scene for a robot with points in the world [m], (n, 3)."""
    if len(points) == 0:
        points = np.array([[-0.5, -0.5, 0.0], [0.5, 0.5, 1.0]])
    low, high = points.min(axis=0), points.max(axis=0)
    center = (low + high) / 2
    radius = max(float(np.linalg.norm(high - low)) / 2, 1e-3)
    floor = min(0.0, float(low[2]))
    toward = _view_direction(high - low)
    return [
        *_background(),
        *_lights(center, radius, toward),
        *_ground(center, radius, floor),
        *_camera(points - center, center, radius, toward),
    ]


def _view_direction(size: Array) -> Array:
    """Unit vector to the camera: where a robot of this extent [m] is seen from its broad side."""
    size = np.maximum(size, SAME_PLACE)
    thin = np.sqrt(size.max() / np.maximum(size, 0.15 * size.max()))
    toward = np.array([0.62, -1.0, 0.42]) * thin
    return np.asarray(toward / np.linalg.norm(toward))


def _background() -> list[Command]:
    return [
        set_property("/Background", "top_color", _WHITE),
        set_property("/Background", "bottom_color", _HAZE),
    ]


def _lights(center: Array, radius: float, toward: Array) -> list[Command]:
    """A key light with shadows over the camera's left shoulder, one from the right, and the sky."""
    side, up = _image_axes(toward)
    own = ("SpotLight", "PointLightNegativeX", "PointLightPositiveX", "FillLight", "AmbientLight")
    commands = [set_property(f"/Lights/{name}", "visible", False) for name in own]
    reach = 1.6 * radius
    camera = {
        "uuid": "/Lights/key#shadow",
        "type": "OrthographicCamera",
        **{"left": -reach, "right": reach, "top": reach, "bottom": -reach},
        **{"near": 0.1 * radius, "far": 12 * radius},
    }
    shadow = {"bias": -0.0005, "normalBias": 0.006 * radius, "radius": 3, "mapSize": [2048, 2048]}
    sun = "DirectionalLight"
    lights = {
        "sky": {"type": "HemisphereLight", "groundColor": 0xB9BEC6, "intensity": 0.58},
        "key": {"type": sun, "intensity": 0.72, "shadow": shadow | {"camera": camera}},
        "fill": {"type": sun, "color": 0xDDE6FF, "intensity": 0.30, "castShadow": False},
    }
    commands += [set_light(f"/Lights/{n}", {"color": 0xFFFFFF} | own) for n, own in lights.items()]
    commands.append(_at("/Lights/key", center + radius * (3.6 * toward - 2.4 * side + 3.2 * up)))
    commands.append(_at("/Lights/fill", center + radius * (3.0 * toward + 4.0 * side)))
    # The page makes every object cast shadows; two sets of them would only confuse, and the sky
    # has none.
    for name in ("fill", "sky"):
        commands.append(set_property(f"/Lights/{name}/<object>", "castShadow", False))
    return commands


def _at(path: str, position: ArrayLike) -> Command:
    return set_transform(path, _shifted(position))


def _shifted(position: ArrayLike) -> Array:
    matrix = np.eye(4)
    matrix[:3, 3] = position
    return matrix


def _ground(center: Array, radius: float, floor: float) -> list[Command]:
    """A grid with round steps, a plane that only shows shadows, and the axes of the world."""
    step = _round_step(radius / 2.5)
    middle = np.round(center[:2] / step) * step
    lift, wide = 1e-3 * radius, 40 * radius
    sheet = {"type": "PlaneGeometry", "width": wide, "height": wide}
    plane = Solid(sheet, np.eye(4), np.zeros((0, 3)))
    shadow = {"type": "ShadowMaterial", "color": 0, "opacity": 0.13, "transparent": True}
    lines = {"type": "LineBasicMaterial", "color": 0xFFFFFF, "vertexColors": 2}
    axes = np.diag([0.8 * radius, 0.8 * radius, 0.8 * radius, 1.0])
    return [
        set_object("/Grid", _grid(step, 24), lines, _shifted((*middle, floor - 2 * lift))),
        set_object("/Ground", plane, shadow, _shifted((*middle, floor - lift))),
        set_transform("/Axes", axes),
    ]


def _round_step(length: float) -> float:
    """The largest of 1, 2, 5 times a power of ten that is not above ``length``."""
    power = 10.0 ** np.floor(np.log10(length))
    return float(power * max(digit for digit in (1, 2, 5) if digit * power <= length * (1 + SAME)))


def _grid(step: float, cells: int) -> Solid:
    """Square grid in the xy plane around the origin; every fifth line is darker."""
    half = cells // 2
    index = np.arange(-half, half + 1)
    ends, places = np.meshgrid([-half, half], step * index)
    along_y = np.column_stack([places.ravel(), step * ends.ravel(), np.zeros(places.size)])
    shades = np.repeat(np.where(index % 5 == 0, 0.70, 0.82), 2)
    colors = shades[:, None] + (0.0, 0.0, 0.02)
    return line_segments(np.vstack([along_y, along_y[:, [1, 0, 2]]]), np.vstack([colors, colors]))


def _camera(points: Array, center: Array, radius: float, toward: Array) -> list[Command]:
    """Look at the robot from ``toward``, as near as shows all of it.

    The page always looks at its own origin. So the scene is shifted to have the robot's centre
    there, and the camera is shifted back: the nodes keep their coordinates in the world.
    """
    position = _distance(points, toward) * toward
    scene = np.array([[1.0, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 0], [0, 0, 0, 1]])
    scene[:3, 3] = -scene[:3, :3] @ center
    camera = "/Cameras/default/rotated/<object>"
    return [
        set_transform("/", scene),
        _at("/Cameras", center),
        set_property(camera, "fov", FIELD_OF_VIEW),
        set_property(camera, "near", 0.02 * radius),
        set_property(camera, "far", 200 * radius),
        # The camera's own axes are those of three.js: y up.
        set_property(
            camera, "position", [float(position[0]), float(position[2]), float(-position[1])]
        ),
    ]


def _distance(points: Array, toward: Array) -> float:
    """Distance at which a camera in direction ``toward`` of the origin sees points [m], (n, 3)."""
    side, up = _image_axes(toward)
    slope = np.tan(np.radians(FIELD_OF_VIEW) / 2)
    needed = np.maximum(np.abs(points @ side) / (_ASPECT * slope), np.abs(points @ up) / slope)
    return float(_MARGIN * np.max(points @ toward + needed))


def _image_axes(toward: Array) -> tuple[Array, Array]:
    """Unit vectors to the right and up in the picture of a camera in direction ``toward``."""
    side = np.cross([0.0, 0.0, 1.0], toward)
    side /= np.linalg.norm(side)
    return side, np.cross(toward, side)
