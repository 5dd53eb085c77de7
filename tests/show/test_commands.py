"""Camera and ground: the page's camera, computed as three.js does, must see the whole robot."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray

from pinloop.show.scene.commands import Command, light_scene

from .scenes import Played, moved

Array = NDArray[np.float64]

# The page turns the scene so that z is up, and the camera node back (meshcat's create_camera).
Z_UP_TO_Y_UP = np.array([[1.0, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 0], [0, 0, 0, 1]])
CAMERA = ("Cameras", "default", "rotated", "<object>")


def in_the_picture(commands: list[Command], points: Array, aspect: float) -> Array:
    """Coordinates in the picture, -1 to 1 in both directions, shape (n, 2)."""
    page = Played(commands)
    root = page.transforms[()]
    camera = root @ page.transforms[("Cameras",)] @ np.linalg.inv(Z_UP_TO_Y_UP)
    eye = moved(camera, page.properties[CAMERA]["position"])
    # The page's controls look at the origin, with y upwards.
    back = eye / np.linalg.norm(eye)
    sideways: Array = np.cross((0.0, 1.0, 0.0), back)
    right = sideways / np.linalg.norm(sideways)
    up = np.cross(back, right)
    seen = np.array([moved(root, point) for point in points]) - eye
    depth = -seen @ back
    assert np.all(depth > page.properties[CAMERA]["near"])
    assert np.all(depth < page.properties[CAMERA]["far"])
    slope = np.tan(np.radians(page.properties[CAMERA]["fov"]) / 2)
    return np.column_stack([seen @ right / (depth * slope * aspect), seen @ up / (depth * slope)])


@pytest.mark.parametrize(
    "low, high",
    [
        ((-0.3, -0.3, 0.0), (2.4, 0.4, 1.9)),
        ((0.0, -0.01, -0.4), (0.5, 0.01, 0.0)),
        ((-20.0, -30.0, 5.0), (20.0, 30.0, 5.1)),
        ((1.001, 2.001, 3.001), (1.003, 2.002, 3.010)),
    ],
)
def test_the_whole_robot_fills_the_picture(low: tuple[float, ...], high: tuple[float, ...]) -> None:
    points = np.random.default_rng(0).uniform(low, high, (200, 3))
    points[0], points[1] = low, high
    places = in_the_picture(light_scene(points), points, aspect=1.25)
    assert np.abs(places).max() < 1
    assert np.abs(places).max() > 0.6
    wide = in_the_picture(light_scene(points), points, aspect=2.4)
    assert np.abs(wide).max() < 1


def test_up_is_up_and_the_front_is_seen() -> None:
    points = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (0, 2)], dtype=float)
    commands = light_scene(points)
    low, high = in_the_picture(commands, np.array([(0, 0, 0), (0, 0, 2.0)]), 1.25)
    assert high[1] > low[1] + 0.5
    left, right = in_the_picture(commands, np.array([(-1.0, -1, 1), (1.0, -1, 1)]), 1.25)
    assert right[0] > left[0] + 0.5


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_flat_robot_is_seen_from_its_broad_side(axis: int) -> None:
    size = np.full(3, 1.0)
    size[axis] = 0.01
    points = np.random.default_rng(1).uniform(-size, size, (100, 3))
    page = Played(light_scene(points))
    x, y, z = page.properties[CAMERA]["position"]
    toward = np.array([x, -z, y])
    assert np.argmax(np.abs(toward)) == axis


def test_the_ground_is_not_above_the_robot_nor_above_the_origin() -> None:
    for low, expected in ((-0.7, -0.7), (0.4, 0.0)):
        points = np.array([(0, 0, low), (1.0, 1.0, 1.5)])
        page = Played(light_scene(points))
        for name in ("Grid", "Ground"):
            height = page.matrix(name)[2, 3]
            assert expected - 0.01 < height < expected


def test_the_grid_has_round_steps_that_suit_the_robot() -> None:
    for size, step in ((0.02, 0.005), (1.0, 0.2), (30.0, 10.0)):
        points = size * np.array([(-0.5, -0.5, 0), (0.5, 0.5, 1.0)])
        page = Played(light_scene(points))
        ends = page.attribute("position", "Grid")
        values = np.unique(np.round(ends[:, 0] / step, 3))
        assert_allclose(np.diff(values), 1.0)
        assert page.objects[("Grid",)]["object"]["type"] == "LineSegments"


def test_an_empty_robot_has_a_stage() -> None:
    assert Played(light_scene(np.zeros((0, 3)))).properties[CAMERA]["fov"] > 0


def test_the_page_keeps_world_coordinates() -> None:
    points = np.array([(4.0, 5.0, 6.0), (5.0, 6.0, 8.0)])
    page = Played(light_scene(points))
    # The centre of the robot is where the controls turn; the camera's own node undoes the shift.
    assert_allclose(moved(page.transforms[()], (4.5, 5.5, 7.0)), (0, 0, 0), atol=1e-12)
    assert_allclose(moved(page.transforms[()] @ page.transforms[("Cameras",)], (0, 0, 0)), 0)
