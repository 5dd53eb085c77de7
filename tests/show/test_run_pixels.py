"""The page of a run in a real browser, without a network: it plays, and shows what it should."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from PIL import Image

import pinloop as pl

from ..fourbar_files import fourbar
from .browser import Browser, needs_browser, until

pytestmark = needs_browser

Picture = NDArray[np.int64]
Mask = NDArray[np.bool_]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> pl.Trajectory:
    """A four-bar of sticks whose crank locks at 0.2 s, and whose loop opens at 0.4 s."""
    path = fourbar(tmp_path_factory.mktemp("bars"))
    text = path.read_text().replace("<inertial>", '<inertial><origin xyz="0.2 0 0.1"/>')
    path.write_text(text)
    robot = pl.load(path)
    q = pl.assemble(robot, fixed={"drive": -1.0})
    v = pl.consistent_velocity(robot, q, {"drive": 4.0})
    changes = [pl.lock("drive", at=0.2), pl.open_loop("closer", at=0.4)]
    return pl.simulate(robot, q, v, until=0.6, events=changes)


@pytest.fixture(scope="module")
def browser(run: pl.Trajectory, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    folder = tmp_path_factory.mktemp("run")
    path = run.save_html(folder / "run.html", forces=True, ghosts=[0.0], traces=["coupler"])
    with Browser(path, folder / "profile", (520, 620)) as browser:
        yield browser


def seen(browser: Browser, time: float, *shown: str) -> Picture:
    """What the viewer draws at a time with only some of its switches on."""
    for name in ("ghost", "traces", "marks", "arrows"):
        browser.value(
            f"(() => {{ const box = document.querySelector('.replay-show-{name}');"
            f"box.checked = {str(name in shown).lower()};"
            "box.dispatchEvent(new Event('change')); })()"
        )
    browser.value(f"document.querySelector('.replay').replay.seek({time})")
    address = browser.value("document.querySelector('.replay').replay.viewer.capture_image()")
    with Image.open(io.BytesIO(base64.b64decode(address.split(",")[1]))) as image:
        return np.asarray(image.convert("RGB"), dtype=np.int64)


def clock(browser: Browser) -> float:
    """Time that is shown [s]."""
    text = str(browser.value("document.querySelector('.replay-clock').textContent"))
    return float(text.split()[0]) / 1000


def channels(picture: Picture) -> tuple[Picture, Picture, Picture]:
    red, green, blue = np.moveaxis(picture, 2, 0)
    return red, green, blue


def is_blue(picture: Picture) -> Mask:
    red, green, blue = channels(picture)
    return np.asarray((blue > 140) & (blue > 1.3 * green) & (blue > 2.5 * red))


def is_green(picture: Picture) -> Mask:
    red, green, blue = channels(picture)
    return np.asarray((green > 60) & (green > 1.7 * red) & (green > 1.5 * blue))


def is_purple(picture: Picture) -> Mask:
    red, green, blue = channels(picture)
    return np.asarray((blue > 60) & (blue > 2 * green) & (blue > 1.2 * red) & (red > 1.3 * green))


def is_crimson(picture: Picture) -> Mask:
    red, green, blue = channels(picture)
    return np.asarray((red > 100) & (red > 3 * green) & (red > 2 * blue))


def changed(one: Picture, other: Picture) -> int:
    """Pixels that differ clearly."""
    return int(np.sum(np.abs(one - other).max(axis=2) > 12))


def test_it_opens_at_the_start_and_plays(browser: Browser) -> None:
    assert clock(browser) == 0.0
    before = seen(browser, 0.0)
    assert len(np.unique(before.reshape(-1, 3), axis=0)) > 100
    browser.click(".replay-play")
    until(lambda: clock(browser) > 0.05)
    browser.click(".replay-play")
    stopped = clock(browser)
    assert changed(before, seen(browser, stopped)) > 300
    assert clock(browser) == stopped


def test_space_plays_and_pauses(browser: Browser) -> None:
    playing = "document.querySelector('.replay').replay.playing"
    browser.value("document.activeElement.blur()")
    assert browser.value(playing) is False
    for plays in (True, False):
        browser.press(" ", 32)
        assert browser.value(playing) is plays
    # On a control, Space does what it does there.
    browser.value("document.querySelector('.replay-loop').focus()")
    browser.press(" ", 32)
    assert browser.value(playing) is False


def test_lengths_are_in_seconds_where_runs_take_some(browser: Browser) -> None:
    text = (
        "(() => { const replay = document.querySelector('.replay').replay, end = replay.end;"
        "replay.end = {}; const text = replay.timeText(0.25); replay.end = end; return text; })()"
    )
    short, long = (browser.value(text.replace("{}", str(end), 1)) for end in (0.9, 1.2))
    assert (short, long) == ("250.0 ms", "0.250 s")


def test_a_locked_joint_is_blue(browser: Browser) -> None:
    free, locked = seen(browser, 0.19, "marks"), seen(browser, 0.25, "marks")
    # An axis of the world is blue, another one green.
    assert is_blue(locked).sum() > is_blue(free).sum() + 40
    words = "document.querySelector('.replay-mode').textContent"
    assert browser.value(words) == "locked: drive"
    seen(browser, 0.1)
    assert browser.value(words) == "nothing locked"


def test_forces_are_arrows_if_they_are_shown(browser: Browser) -> None:
    without = is_green(seen(browser, 0.15)).sum()
    assert is_green(seen(browser, 0.15, "arrows")).sum() > without + 40
    # No force in a loop that is open, but the lock has to hold the crank.
    later, drawn = seen(browser, 0.59), seen(browser, 0.59, "arrows")
    assert abs(is_green(drawn).sum() - is_green(later).sum()) < 15
    assert is_purple(later).sum() == 0
    assert is_purple(drawn).sum() > 40


def test_an_arrow_points_along_the_reaction(browser: Browser, run: pl.Trajectory) -> None:
    reaction = run.reactions("closer")
    (k,) = np.flatnonzero(run.t == 0.2)[-1:]
    assert isinstance(reaction, pl.simulation.Reaction)
    place = run.robot.placement(run.q[k], "closer/B")
    force = place.rotation @ reaction.force[k]
    browser.value("document.querySelector('.replay').replay.seek(0.2)")
    scale, unit, tip, length = browser.value(
        "(() => { const replay = document.querySelector('.replay').replay;"
        "const at = (name) => replay.node('arrows/0/' + name).object;"
        "return [replay.data.arrows[0].scale, 0.06 * replay.data.size,"
        "at('tip').position.toArray(), at('tip').scale.z]; })()"
    )
    # The tip is the last part of the arrow, its place is its middle.
    end = np.linalg.norm(force) / scale - unit * length / 2
    expected = place.translation + end * force / np.linalg.norm(force)
    assert np.linalg.norm(force) / scale > 0.02
    assert_allclose(tip, expected, atol=2e-4)


def test_the_way_of_a_frame_is_a_line(browser: Browser) -> None:
    bare, drawn = seen(browser, 0.3), seen(browser, 0.3, "traces")
    assert changed(bare, drawn) > 60


def test_ghosts_are_where_the_robot_was(browser: Browser) -> None:
    bare, ghost = seen(browser, 0.5), seen(browser, 0.5, "ghost")
    start = seen(browser, 0.0)
    differs = np.abs(bare - ghost).max(axis=2) > 12
    assert differs.sum() > 300
    # The start is drawn where the ghost is, but for shadows.
    there = np.abs(start - bare).max(axis=2) > 12
    assert np.mean(there[differs]) > 0.95


def test_a_loop_that_is_open_is_grey(browser: Browser) -> None:
    assert is_crimson(seen(browser, 0.3)).sum() > 40
    assert is_crimson(seen(browser, 0.5)).sum() == 0


def test_marks_on_the_bar_of_time_lead_there(browser: Browser) -> None:
    marks = browser.value(
        "[...document.querySelectorAll('.replay-events button')].map((mark) => mark.title)"
    )
    assert marks == ["200.0 ms: lock drive", "400.0 ms: open closer"]
    browser.click(".replay-events button:nth-child(2)")
    assert clock(browser) == 0.4
    places = browser.value(
        "(() => { const bar = document.querySelector('.replay-slider').getBoundingClientRect();"
        "return [...document.querySelectorAll('.replay-events button')].map((mark) => {"
        "const r = mark.getBoundingClientRect();"
        "return (r.left + r.width / 2 - bar.left) / bar.width; }); })()"
    )
    assert places == pytest.approx([1 / 3, 2 / 3], abs=0.02)


def test_the_legend_names_the_forces(browser: Browser) -> None:
    legend = browser.value("document.querySelector('.legend').textContent")
    assert "path of coupler" in legend
    assert "force: an arrow of 1 m is" in legend and "closer" in legend
    assert "lock:drive" in legend


def test_nothing_was_wrong_and_nothing_was_fetched(browser: Browser) -> None:
    assert browser.complaints == []
    assert browser.requests == []
