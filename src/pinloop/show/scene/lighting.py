"""Everything around the robot: camera, light, ground and background, fitted to what is shown."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...tolerances import SAME, SAME_PLACE
from .solids import (
    Command,
    Solid,
    line_segments,
    set_light,
    set_object,
    set_property,
    set_transform,
)

__all__ = ["FIELD_OF_VIEW", "light_scene"]

Array = NDArray[np.float64]

FIELD_OF_VIEW = 32.0
"""Vertical angle of view [deg]; a narrow one, so that parallel links look parallel."""

_ASPECT = 1.25
"""Width over height of the narrowest window in which the whole robot is seen."""

_MARGIN = 1.12
"""How much further away than necessary the camera stands."""

_WHITE = [1.0, 1.0, 1.0]
_HAZE = [0.90, 0.92, 0.95]


def light_scene(points: Array) -> list[Command]:
    """Return the commands that set the scene for a robot.

    Args:
        points: points of the robot in the world [m], shape (n, 3).
    """
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
    commands = [
        set_property(f"/Lights/{name}", "visible", False)
        for name in ("SpotLight", "PointLightNegativeX", "PointLightPositiveX", "FillLight")
    ]
    commands.append(set_property("/Lights/AmbientLight", "visible", False))
    sky = {"type": "HemisphereLight", "color": 0xFFFFFF, "groundColor": 0xB9BEC6, "intensity": 0.58}
    commands.append(set_light("/Lights/sky", sky))
    reach = 1.6 * radius
    shadow = {
        "bias": -0.0005,
        "normalBias": 0.006 * radius,
        "radius": 3,
        "mapSize": [2048, 2048],
        "camera": {
            "uuid": "/Lights/key#shadow",
            "type": "OrthographicCamera",
            "left": -reach,
            "right": reach,
            "top": reach,
            "bottom": -reach,
            "near": 0.1 * radius,
            "far": 12 * radius,
        },
    }
    key = {"type": "DirectionalLight", "color": 0xFFFFFF, "intensity": 0.72, "shadow": shadow}
    commands.append(set_light("/Lights/key", key))
    commands.append(_at("/Lights/key", center + radius * (3.6 * toward - 2.4 * side + 3.2 * up)))
    fill = {"type": "DirectionalLight", "color": 0xDDE6FF, "intensity": 0.30, "castShadow": False}
    commands.append(set_light("/Lights/fill", fill))
    commands.append(_at("/Lights/fill", center + radius * (3.0 * toward + 4.0 * side)))
    # The page makes every object cast shadows; two sets of them would only confuse, and the sky
    # has none.
    for name in ("fill", "sky"):
        commands.append(set_property(f"/Lights/{name}/<object>", "castShadow", False))
    return commands


def _at(path: str, position: Array) -> Command:
    matrix = np.eye(4)
    matrix[:3, 3] = position
    return set_transform(path, matrix)


def _ground(center: Array, radius: float, floor: float) -> list[Command]:
    """A grid with round steps, a plane that only shows shadows, and the axes of the world."""
    step = _round_step(radius / 2.5)
    middle = np.round(center[:2] / step) * step
    grid = _grid(step, cells=24)
    lift = 1e-3 * radius
    at = np.eye(4)
    at[:3, 3] = (*middle, floor - 2 * lift)
    plane = Solid(
        {"type": "PlaneGeometry", "width": 40 * radius, "height": 40 * radius},
        np.eye(4),
        np.zeros((0, 3)),
    )
    under = np.eye(4)
    under[:3, 3] = (*middle, floor - lift)
    shadow = {"type": "ShadowMaterial", "color": 0, "opacity": 0.13, "transparent": True}
    lines = {"type": "LineBasicMaterial", "color": 0xFFFFFF, "vertexColors": 2}
    axes = np.diag([0.8 * radius, 0.8 * radius, 0.8 * radius, 1.0])
    return [
        set_object("/Grid", grid, lines, at),
        set_object("/Ground", plane, shadow, under),
        set_transform("/Axes", axes),
    ]


def _round_step(length: float) -> float:
    """The largest of 1, 2, 5 times a power of ten that is not above ``length``."""
    power = 10.0 ** np.floor(np.log10(length))
    return float(power * max(digit for digit in (1, 2, 5) if digit * power <= length * (1 + SAME)))


def _grid(step: float, cells: int) -> Solid:
    """Square grid in the xy plane around the origin; every fifth line is darker."""
    half = cells // 2
    ends, colors = [], []
    for index in range(-half, half + 1):
        shade = 0.70 if index % 5 == 0 else 0.82
        for flip in (slice(None), slice(None, None, -1)):
            for end in (-half, half):
                ends.append((*np.array([index * step, end * step])[flip], 0.0))
                colors.append((shade, shade, shade + 0.02))
    return line_segments(np.array(ends), np.array(colors))


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
    """Distance at which a camera in direction ``toward`` of the origin sees all ``points``.

    Args:
        points: points relative to what the camera looks at [m], shape (n, 3).
        toward: unit vector from there to the camera, not vertical.
    """
    side, up = _image_axes(toward)
    slope = np.tan(np.radians(FIELD_OF_VIEW) / 2)
    needed = np.maximum(np.abs(points @ side) / (_ASPECT * slope), np.abs(points @ up) / slope)
    return float(_MARGIN * np.max(points @ toward + needed))


def _image_axes(toward: Array) -> tuple[Array, Array]:
    """Unit vectors to the right and up in the picture of a camera in direction ``toward``."""
    side = np.cross([0.0, 0.0, 1.0], toward)
    side /= np.linalg.norm(side)
    return side, np.cross(toward, side)
