"""The page in a real browser, without a network: the robot is in the picture, in its colours."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
import trimesh
from numpy.typing import NDArray
from PIL import Image

from pinloop.show.scene import save_html

from .browser import BROWSER, FLAGS, Browser, needs_browser
from .scenes import arm, at, visual

pytestmark = needs_browser

MAGENTA, GREEN = (1.0, 0.0, 1.0, 1.0), (0.0, 1.0, 0.0, 1.0)


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> NDArray[np.int64]:
    """A magenta post, and a green mesh beside it on the right, shape (600, 800, 3)."""
    folder = tmp_path_factory.mktemp("pixels")
    mesh = folder / "ball.stl"
    trimesh.creation.icosphere(radius=0.15).export(str(mesh))
    robot = arm(
        visual("post", "base", "box", (0.2, 0.2, 0.6), at(-0.4, 0, 0.3), color=MAGENTA),
        visual("ball", "link", "mesh", (1.0, 1.0, 1.0), at(0.4, 0, 0.2), path=mesh, color=GREEN),
    )
    return photographed(save_html(robot, folder / "robot.html"), folder)


def photographed(page: Path, folder: Path) -> NDArray[np.int64]:
    """What the browser shows of a page that it opens as a file."""
    assert BROWSER is not None
    target = folder / "picture.png"
    words = [
        *(*FLAGS, "--window-size=800,600", "--virtual-time-budget=3000"),
        f"--user-data-dir={folder / 'profile'}",
        *(f"--screenshot={target}", page.as_uri()),
    ]
    subprocess.run([BROWSER, *words], check=True, capture_output=True, timeout=120)
    with Image.open(target) as image:
        return np.asarray(image.convert("RGB"), dtype=np.int64)


def magenta(picture: NDArray[np.int64]) -> NDArray[np.bool_]:
    red, green, blue = np.moveaxis(picture, 2, 0)
    return np.asarray((np.minimum(red, blue) > 60) & (np.minimum(red, blue) > 2 * green))


def green(picture: NDArray[np.int64]) -> NDArray[np.bool_]:
    red, green, blue = np.moveaxis(picture, 2, 0)
    return np.asarray((green > 60) & (green > 2 * np.maximum(red, blue)))


def test_the_picture_is_not_blank_and_mostly_light(picture: NDArray[np.int64]) -> None:
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 200
    assert np.mean(picture.min(axis=2) > 180) > 0.5


def test_the_robot_is_there_in_its_colours(picture: NDArray[np.int64]) -> None:
    assert magenta(picture).mean() > 0.03
    assert green(picture).mean() > 0.015


def test_the_robot_is_where_it_should_be(picture: NDArray[np.int64]) -> None:
    post, ball = (np.argwhere(mask(picture)) for mask in (magenta, green))
    whole = np.vstack([post, ball])
    assert whole.min() > 0
    assert np.all(whole.max(axis=0) < np.array(picture.shape[:2]) - 1)
    middle = (whole.min(axis=0) + whole.max(axis=0)) / 2
    assert np.all(np.abs(middle - (300, 400)) < (80, 80))
    # x points to the right, z up: the ball is right of the post, and in its upper half.
    assert ball[:, 1].mean() > post[:, 1].max()
    assert post[:, 0].min() < ball[:, 0].mean() < post[:, 0].max()


def test_surfaces_are_shaded(picture: NDArray[np.int64]) -> None:
    shades = picture[magenta(picture)][:, 0]
    assert np.ptp(shades) > 40
    # Also where the light of the key lamp does not come.
    assert np.quantile(shades, 0.02) > 0.4 * shades.max()


def test_meshcats_own_controls_are_hidden(tmp_path: Path) -> None:
    page = save_html(
        arm(visual("post", "base", "box", (0.2, 0.2, 0.6), at(0, 0, 0))), tmp_path / "a.html"
    )
    with Browser(page, tmp_path / "profile", (420, 600)) as browser:
        assert "Open Controls" in browser.value("document.body.textContent")
        assert "Open Controls" not in browser.value("document.body.innerText")
