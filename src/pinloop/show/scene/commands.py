"""The viewer's command language; camera, light and ground, fitted to what is shown.

Commands are meshcat's own, with its objects and materials. Their ``uuid``, which meshcat draws by
lot, is made from the path, so that the same scene gives the same bytes and a server sends nothing
twice. Commands put solids at paths; paths begin at the root of a page, or at a node of a viewer.
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
from .solids import Color, Solid, line_segments, meshcat

Command = Any
"""A command of meshcat: it has a ``path``, and ``lower`` gives what is sent."""


class _Geometry(meshcat.geometry.Geometry):
    """A geometry in three.js's own words, placed by a matrix."""

    def __init__(self, solid: Solid, matrix: ArrayLike) -> None:
        self.solid, self.matrix = solid, np.asarray(matrix, dtype=float)

    def lower(self, object_data: dict[str, Any]) -> dict[str, Any]:
        return {"uuid": self.uuid, **self.solid.geometry}

    def intrinsic_transform(self) -> Array:
        return self.matrix.T  # three.js reads by columns what meshcat writes by rows


class _Light(meshcat.geometry.Object):
    """A light in three.js's own words: meshcat has none."""

    def __init__(self, **content: Any) -> None:
        self.content = content

    def lower(self) -> dict[str, Any]:
        return {"object": {"uuid": self.uuid, **self.content}}


class _ShadowMaterial(meshcat.geometry.GenericMaterial):
    """What shows nothing but the shadows on it."""

    _type = "ShadowMaterial"


class _SetObject(meshcat.commands.SetObject):
    """Has a ``uuid`` for everything from its path."""

    def lower(self) -> dict[str, Any]:
        path = self.path.lower()
        self.object.uuid = f"{path}#object"
        for name, part in vars(self.object).items():
            if isinstance(part, meshcat.geometry.SceneElement):
                part.uuid = f"{path}#{name}"
        return dict(super().lower())


class _SetProperty(meshcat.commands.SetProperty):
    """Leaves capitals of the name as they are."""

    def lower(self) -> dict[str, Any]:
        return {**super().lower(), "property": self.key}


def set_object(path: str, solid: Solid, material: Any, matrix: ArrayLike) -> Command:
    """Put a solid with a material of meshcat at a path, placed by a matrix."""
    drawn = getattr(meshcat.geometry, solid.kind)(_Geometry(solid, matrix), material)
    return _SetObject(drawn, path=node_path(path))


def set_transform(path: str, matrix: Array) -> Command:
    """Place the node at ``path`` in its parent, shape (4, 4)."""
    return meshcat.commands.SetTransform(matrix, node_path(path))


def set_property(path: str, name: str, value: Any) -> Command:
    """Set a property of the node at ``path``."""
    return _SetProperty(name, value, node_path(path))


def node_path(path: str) -> Any:
    """A path as meshcat has it."""
    return meshcat.path.Path(tuple(step for step in path.split("/") if step))


def packed(command: Command) -> bytes:
    """A command as the page reads it."""
    return bytes(umsgpack.packb(command.lower()))


def encoded(commands: Iterable[Command]) -> Iterator[str]:
    """Commands as text for a page (base64)."""
    return (base64.b64encode(packed(command)).decode() for command in commands)


def paint(
    color: Color, kind: str = "MeshPhongMaterial", *, in_front: bool = False, **more: Any
) -> Any:
    """Material of a colour, slightly glossy; ``in_front`` of whatever else is there."""
    *channels, alpha = (min(max(float(value), 0.0), 1.0) for value in color)
    red, green, blue = (round(255 * value) for value in channels)
    return getattr(meshcat.geometry, kind)(
        color=red << 16 | green << 8 | blue,
        # three.js draws transparent objects after the others.
        transparent=alpha < 1 or in_front,
        opacity=alpha,
        depthTest=not in_front,
        specular=0x1C1C1C,
        shininess=35,
        **more,
    )


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

CAMERA = "/Cameras/default/rotated/<object>"
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
        set_property("/Background", "top_color", _WHITE),
        set_property("/Background", "bottom_color", _HAZE),
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
        "sky": {"type": "HemisphereLight", "groundColor": 0xD8DBE0, "intensity": 0.74},
        "key": {"type": sun, "intensity": 0.52, "shadow": shadow | {"camera": camera}},
        "fill": {"type": sun, "color": 0xDDE6FF, "intensity": 0.34, "castShadow": False},
    }
    for name, own_words in lights.items():
        light = _Light(**{"color": 0xFFFFFF} | own_words)
        commands.append(_SetObject(light, path=node_path(f"/Lights/{name}")))
    key = center + radius * (3.6 * toward - 2.4 * side + 3.2 * up)
    fill = center + radius * (3.0 * toward + 4.0 * side)
    commands.append(set_transform("/Lights/key", _shifted(key)))
    commands.append(set_transform("/Lights/fill", _shifted(fill)))
    # The page makes every object cast shadows; two sets of them would only confuse, and the sky
    # has none.
    for name in ("fill", "sky"):
        commands.append(set_property(f"/Lights/{name}/<object>", "castShadow", False))
    return commands


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
    shadow = _ShadowMaterial(color=0, opacity=0.13)
    lines = meshcat.geometry.LineBasicMaterial(vertexColors=True)
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
    return [
        *look_at(center),
        set_property(CAMERA, "fov", FIELD_OF_VIEW),
        set_property(CAMERA, "near", 0.02 * radius),
        set_property(CAMERA, "far", 200 * radius),
        look_from(_distance(points, toward) * toward),
    ]


def look_at(center: Array) -> list[Command]:
    """Let the camera turn about a point in the world [m]; it is shifted with it."""
    scene = np.array([[1.0, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 0], [0, 0, 0, 1]])
    scene[:3, 3] = -scene[:3, :3] @ center
    return [set_transform("/", scene), set_transform("/Cameras", _shifted(center))]


def look_from(position: Array) -> Command:
    """Put the camera at a place [m] from the point about which it turns."""
    x, y, z = (float(value) for value in position)
    return set_property(CAMERA, "position", [x, z, -y])  # its axes are those of three.js: y up


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
