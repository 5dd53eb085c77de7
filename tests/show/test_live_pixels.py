"""The live viewer in a real browser: sliders move a robot whose loop stays closed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray

import pinloop as pl
from pinloop.show.scene.live import Viewer

from ..fourbar_files import fourbar
from .browser import Browser, needs_browser, until

pytestmark = needs_browser


@pytest.fixture(scope="module")
def robot(tmp_path_factory: pytest.TempPathFactory) -> pl.Mechanism:
    path = fourbar(tmp_path_factory.mktemp("bars"))
    text = path.read_text().replace("</robot>", '<actuated joint="drive"/></robot>')
    path.write_text(text)
    return pl.load(path)


@pytest.fixture(scope="module")
def viewer(robot: pl.Mechanism) -> Iterator[Viewer]:
    with pl.view(robot, pl.assemble(robot, fixed={"drive": -1.0})) as viewer:
        yield viewer


@pytest.fixture(scope="module")
def browser(viewer: Viewer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(viewer.url, tmp_path_factory.mktemp("live") / "profile", (700, 460)) as browser:
        until(lambda: browser.value("window.pinloop !== undefined && pinloop.number > 0"))
        yield browser


def slider(browser: Browser, label: str) -> str:
    """Selector of the slider with a label."""
    return f'input[aria-label="{label}"]'


def state(browser: Browser) -> dict[str, Any]:
    until(lambda: browser.value("!pinloop.asking && pinloop.wanted === null"))
    return dict(browser.value("pinloop.state"))


def sticks(browser: Browser) -> NDArray[np.bool_]:
    """Where something dark is in the picture left of the panel."""
    picture = browser.picture("#pane")[:, :400]
    return np.asarray(picture.max(axis=2) < 175)


def tip(robot: pl.Mechanism, q: NDArray[np.float64]) -> NDArray[np.float64]:
    """The pin of coupler and rocker, after a check that both have it there."""
    here, there = (robot.placement(q, f"closer/{side}").translation for side in "AB")
    assert_allclose(here, there, atol=1e-10)
    return np.asarray(here)


def test_dragging_one_joint_moves_all_bodies(
    browser: Browser, viewer: Viewer, robot: pl.Mechanism
) -> None:
    until(lambda: sticks(browser).any())
    before, first, q = sticks(browser), state(browser), viewer.q
    browser.drag(slider(browser, "drive"), 0.44)
    after = state(browser)
    # The slider is 6 rad long; its thumb is not put to the pixel.
    assert viewer.q[robot.coordinates("drive").q] == pytest.approx(-3 + 0.44 * 6, abs=0.15)
    assert np.linalg.norm(tip(robot, viewer.q) - tip(robot, q)) > 0.02
    moved = [
        not np.allclose(one, other, atol=1e-3)
        for one, other in zip(first["placements"], after["placements"], strict=True)
    ]
    nodes = browser.value("data.nodes")
    still = [node for node, moves in zip(nodes, moved, strict=True) if not moves]
    assert still == ["skeleton/base"] or still == []
    until(lambda: (sticks(browser) ^ before).sum() > 300)
    shown = browser.value(
        "pinloop.node('loops/closer/B').position.toArray().concat("
        "pinloop.node('loops/closer/A').position.toArray())"
    )
    assert_allclose(shown, [*tip(robot, viewer.q), *tip(robot, viewer.q)], atol=1e-9)
    assert "loops closed" in browser.value("document.getElementById('closure').textContent")


def test_the_camera_keeps_a_dragged_robot_in_the_picture(tmp_path: Path) -> None:
    robot = pl.example("palletizer")
    with pl.view(robot) as viewer, Browser(viewer.url, tmp_path / "profile", (1280, 800)) as page:
        until(lambda: page.value("window.pinloop !== undefined && pinloop.number > 0"))
        labels = page.value("[...document.querySelectorAll('#motors b')].map((b) => b.textContent)")
        assert labels == list(robot.actuated)
        away = "pinloop.viewer.camera.position.clone().sub(pinloop.viewer.controls.target)"
        before = np.array(page.value(f"{away}.toArray()"))
        assert page.value("pinloop.isSeen()")
        page.drag(slider(page, "shoulder"), 0.95)
        state(page)
        # The arm that leans forward leaves the picture, and the camera goes after it.
        assert page.value("pinloop.isSeen()")
        after = np.array(page.value(f"{away}.toArray()"))
        assert np.linalg.norm(page.value("pinloop.viewer.controls.target.toArray()")) > 0.05
        assert_allclose(np.cross(after, before), 0, atol=1e-6)
        # Who looks at a part goes on doing so.
        page.value("pinloop.view.turnTo([0, 0, 0], 0.3); pinloop.follows = false")
        page.drag(slider(page, "shoulder"), 0.5)
        state(page)
        assert not page.value("pinloop.isSeen()")


def test_a_slider_stops_where_the_loop_closes_no_further(
    browser: Browser, viewer: Viewer, robot: pl.Mechanism
) -> None:
    browser.value("document.getElementById('passive').open = true")
    browser.drag(slider(browser, "swing"), 0.98)
    said = state(browser)["said"]
    assert "'swing' goes no further" in said
    assert browser.value("document.getElementById('said').textContent") == said
    tip(robot, viewer.q)
    angle = float(viewer.q[robot.coordinates("swing").q][0])
    # Crank and coupler, 0.3 and 0.6 m, are in one line then; see the tests of dragging.
    end = np.arccos((0.6**2 + 0.4**2 - 0.9**2) / (2 * 0.6 * 0.4)) - np.pi / 2
    assert angle == pytest.approx(end, abs=2e-3)
    thumb = browser.value(f"document.querySelector('{slider(browser, 'swing')}').valueAsNumber")
    assert thumb == pytest.approx(angle, abs=1e-6)


def test_python_moves_the_page_too(browser: Browser, viewer: Viewer, robot: pl.Mechanism) -> None:
    viewer.show(pl.assemble(robot, fixed={"drive": -0.5}))
    until(
        lambda: browser.value(
            f"document.querySelector('{slider(browser, 'drive')}').valueAsNumber === -0.5"
        )
    )


def test_reset_and_copy(browser: Browser, viewer: Viewer, robot: pl.Mechanism) -> None:
    browser.click("#reset")
    until(lambda: viewer.q[robot.coordinates("drive").q] == -1.0)
    state(browser)
    browser.click("#words")
    assert "--q drive=-1" in browser.value("document.getElementById('copied').value")
    browser.click("#python")
    text = browser.value("document.getElementById('copied').value")
    assert_allclose(pl.assemble(robot, eval(text)), viewer.q, atol=1e-12)


def test_symbols_of_loops_can_be_hidden(browser: Browser) -> None:
    def crimson() -> int:
        red, green, blue = np.moveaxis(browser.picture("#pane")[100:, :400], 2, 0)
        return int(np.sum((red > 100) & (red > 3 * green) & (red > 2 * blue)))

    assert crimson() > 30
    browser.click("#show-loops")
    until(lambda: crimson() == 0)


def test_nothing_was_wrong_and_only_the_viewer_was_asked(browser: Browser, viewer: Viewer) -> None:
    assert browser.complaints == []
    assert all(address.startswith(viewer.url) for address in browser.requests)


def test_the_page_says_that_the_viewer_has_ended(browser: Browser, viewer: Viewer) -> None:
    assert browser.value("document.getElementById('gone').hidden") is True
    viewer.close()
    until(lambda: browser.value("document.getElementById('gone').hidden") is False)
