"""The report in a real browser, without a network: it plays, and complains of nothing."""

from __future__ import annotations

import base64
import io
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

import pinloop as pl

from .browser import Browser, needs_browser

pytestmark = needs_browser

Picture = NDArray[np.int64]

_ARM = """<robot name="arm">
  <link name="base">
    <visual><geometry><cylinder radius="0.1" length="0.1"/></geometry></visual>
  </link>
  <link name="link">
    <visual><origin xyz="0.4 0 0"/><geometry><box size="0.8 0.12 0.12"/></geometry>
      <material name="magenta"><color rgba="1 0 1 1"/></material></visual>
    <inertial><origin xyz="0.4 0 0"/><mass value="3"/>
      <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.2" iyz="0" izz="0.2"/></inertial>
  </link>
  <joint name="axis" type="revolute">
    <origin xyz="0 0 0.3"/><parent link="base"/><child link="link"/><axis xyz="0 -1 0"/>
    <limit lower="-3" upper="3" velocity="9" effort="99"/>
  </joint>
  <link name="tool0"/>
  <joint name="flange" type="fixed">
    <origin xyz="0.8 0 0"/><parent link="link"/><child link="tool0"/>
  </joint>
</robot>"""


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> pl.StopResult:
    """A beam that swings up by more than half a radian before its brake holds it."""
    file = tmp_path_factory.mktemp("robot") / "arm.urdf"
    file.write_text(_ARM, encoding="utf-8")
    brake = pl.safety.JointBrake(side="joint", dynamic_torque=8.0, static_torque=60.0, delay=0.05)
    robot = pl.load(file)
    return pl.stop(robot, [-0.2], [5.0], brakes=pl.Brakes({"axis": brake}, pl.safety.Chain()))


@pytest.fixture(scope="module")
def browser(result: pl.StopResult, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    folder = tmp_path_factory.mktemp("report")
    path = result.save_html(folder / "stop.html", swept=True)
    with Browser(path, folder / "profile", (560, 520)) as browser:
        yield browser


def magenta(picture: Picture) -> NDArray[np.bool_]:
    red, green, blue = np.moveaxis(picture, 2, 0)
    return np.asarray((np.minimum(red, blue) > 100) & (np.minimum(red, blue) > 2.5 * green))


def clock(browser: Browser) -> float:
    return float(
        str(browser.value("document.querySelector('.replay-clock').textContent")).split()[0]
    )


def seen(browser: Browser) -> Picture:
    """What the viewer draws now; a picture of the screen may be that of a frame before."""
    address = browser.value("document.querySelector('.replay').replay.viewer.capture_image()")
    with Image.open(io.BytesIO(base64.b64decode(address.split(",")[1]))) as image:
        return np.asarray(image.convert("RGB"), dtype=np.int64)


def switched(browser: Browser, name: str, on: bool) -> None:
    box = f".replay-show-{name}"
    if browser.value(f"document.querySelector('{box}').checked") != on:
        browser.click(box)
    assert browser.value(f"document.querySelector('{box}').checked") is on


def at(browser: Browser, milliseconds: float) -> Picture:
    browser.value(f"document.querySelector('.replay').replay.seek({milliseconds / 1e3})")
    return seen(browser)


def until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.05)


def test_it_opens_at_the_end_with_the_robot_in_the_picture(
    browser: Browser, result: pl.StopResult
) -> None:
    assert clock(browser) == pytest.approx(1e3 * result.stopping_time, abs=0.051)
    until(lambda: magenta(browser.picture(".replay-pane")).any())
    picture = browser.picture(".replay-pane")
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 200
    assert 0.01 < magenta(picture).mean() < 0.4
    assert "replay-failed" not in browser.value("document.querySelector('.replay').className")


def test_the_slider_moves_the_robot(browser: Browser) -> None:
    for name in ("ghost", "traces", "marks", "layer-0"):
        switched(browser, name, False)
    browser.click(".replay-slider")
    browser.press("Home", 36)
    assert clock(browser) == 0.0
    start, screen = magenta(seen(browser)), browser.picture(".replay-pane")
    browser.press("End", 35)
    end = magenta(seen(browser))
    until(lambda: np.abs(browser.picture(".replay-pane") - screen).mean() > 1)
    assert clock(browser) > 100
    # The beam points to the right and rises: the middle of what is magenta goes up in the picture.
    (before, after) = (np.argwhere(mask)[:, 0].mean() for mask in (start, end))
    assert before - after > 20
    assert 0.5 < end.sum() / start.sum() < 2


def test_between_frames_the_link_is_where_it_was_computed(
    browser: Browser, result: pl.StopResult
) -> None:
    run = result.run
    for t in np.linspace(0, result.stopping_time, 8):
        browser.value(f"document.querySelector('.replay').replay.seek({t})")
        x, y, z, w = browser.value(
            "(() => { const r = document.querySelector('.replay').replay;"
            "return r.node('robot/link').object.quaternion.toArray(); })()"
        )
        # The axis is -y; frames are some 5 ms apart.
        assert 2 * np.arctan2(-y, w) == pytest.approx(run(t).q[0], abs=2e-4)
        assert abs(x) + abs(z) < 1e-4


def test_play_runs_to_the_end_and_pause_stops_it(browser: Browser, result: pl.StopResult) -> None:
    browser.value("document.querySelector('.replay-loop').checked = false")
    browser.value("document.querySelector('.replay-speed').value = '0.01'")
    at(browser, 1e3 * result.stopping_time)
    browser.click(".replay-play")
    until(lambda: 0 < clock(browser) < 100)
    browser.click(".replay-play")
    shown = clock(browser)
    time.sleep(0.3)
    assert clock(browser) == shown
    browser.value("document.querySelector('.replay-speed').value = '1'")
    browser.click(".replay-play")
    label = "document.querySelector('.replay-play').getAttribute('aria-label')"
    until(lambda: browser.value(label) == "Play")
    assert clock(browser) == pytest.approx(1e3 * result.stopping_time, abs=0.051)


def test_a_joint_changes_its_colour_when_it_stands(browser: Browser, result: pl.StopResult) -> None:
    switched(browser, "marks", True)
    state = "document.querySelector('.replay-joints .state').textContent"
    moves = at(browser, 0.5e3 * result.stopping_time)
    assert browser.value(state) == "moving"
    stands = at(browser, 1e3 * result.stopping_time)
    assert browser.value(state) == "at rest"

    def orange(picture: Picture) -> float:
        red, green, blue = np.moveaxis(picture, 2, 0)
        return float(np.mean((red > 150) & (red > 2 * blue) & (green > 1.3 * blue)))

    def blue(picture: Picture) -> float:
        red, green, blue = np.moveaxis(picture, 2, 0)
        return float(np.mean((blue > 100) & (blue > 2 * red) & (blue > 1.2 * green)))

    assert orange(moves) > 5 * max(orange(stands), 1e-5)
    assert blue(stands) > 5 * max(blue(moves), 1e-5)
    switched(browser, "marks", False)


@pytest.mark.parametrize("name", ["ghost", "traces", "layer-0"])
def test_switches_show_and_hide(browser: Browser, result: pl.StopResult, name: str) -> None:
    switched(browser, name, False)
    without = at(browser, 1e3 * result.stopping_time)
    switched(browser, name, True)
    shown = seen(browser)
    switched(browser, name, False)
    changed = np.abs(shown - without).max(axis=2) > 12
    assert changed.mean() > (0.0005 if name == "traces" else 0.005)
    assert np.mean(np.abs(seen(browser) - without)) < 0.5


def test_plots_follow_the_replay_and_lead_it(browser: Browser, result: pl.StopResult) -> None:
    middle = 0.5e3 * result.stopping_time
    at(browser, middle)
    parts = browser.value(
        "[...document.querySelectorAll('svg[data-from]')].map((plot) => {"
        "const line = plot.querySelector('.cursor'), d = plot.dataset;"
        "return (line.getAttribute('x1') - d.left) / (d.right - d.left) * (d.to - d.from); })"
    )
    assert len(parts) > 4
    assert parts == pytest.approx([middle] * len(parts), rel=1e-4)
    browser.click("#tool svg")
    # In the middle of the picture, whose field of curves begins and ends where it says.
    left, right, end, width = browser.value(
        "(() => { const p = document.querySelector('#tool svg'); return [+p.dataset.left,"
        "+p.dataset.right, +p.dataset.to, p.viewBox.baseVal.width]; })()"
    )
    expected = end * (width / 2 - left) / (right - left)
    assert clock(browser) == pytest.approx(expected, abs=0.005 * end)


def test_on_paper_there_is_a_picture_and_no_control(browser: Browser) -> None:
    until(lambda: browser.value("document.querySelector('.replay-still').naturalWidth > 100"))
    browser.send("Emulation.setEmulatedMedia", media="print")
    try:
        for name, shown in (("controls", False), ("pane", False), ("still", True)):
            height = f"document.querySelector('.replay-{name}').getBoundingClientRect().height"
            assert (browser.value(height) > 50) is shown, name
    finally:
        browser.send("Emulation.setEmulatedMedia", media="")


def test_a_small_screen_needs_no_scrolling_to_the_side(browser: Browser) -> None:
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert browser.value(wide) == 0


@pytest.mark.parametrize("turned", [False, True], ids=["as it opens", "turned by hand"])
def test_a_window_that_becomes_narrow_shows_the_whole_robot(
    result: pl.StopResult, tmp_path: Path, turned: bool
) -> None:
    with Browser(result.save_html(tmp_path / "stop.html"), tmp_path / "p", (1000, 520)) as browser:
        until(lambda: magenta(seen(browser)).any())
        if turned:
            browser.value(
                "document.querySelector('.replay').replay.viewer.camera.position.x *= 0.98"
            )
        for width in (420, 360):
            browser.send(
                "Emulation.setDeviceMetricsOverride",
                width=width, height=900, deviceScaleFactor=1, mobile=False,
            )  # fmt: skip
            until(lambda: seen(browser).shape[1] < width)  # noqa: B023 - waits here
            beam = np.flatnonzero(magenta(seen(browser)).any(axis=0))
            middle = seen(browser).shape[1]
            assert beam.min() > 8 and beam.max() < middle - 8
            assert len(beam) > 0.3 * middle


def test_nothing_was_asked_for_and_nothing_went_wrong(browser: Browser) -> None:
    assert browser.requests == []
    assert browser.complaints == []
