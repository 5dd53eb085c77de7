"""The report of a study in a real browser, without a network: cases are chosen and play."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import trimesh

import pinloop as pl
from pinloop.safety.space.solids import Obstacle

from .browser import Browser, needs_browser
from .test_stop_report_pixels import _ARM, Picture, magenta, until

COUNT = 12
SEEN = "[...document.querySelectorAll('.case')].filter((e) => !e.hidden).map((e) => e.id)"


def _study(folder: Path, text: str = _ARM, obstacles: list[Obstacle] | None = None) -> pl.Study:
    file = folder / "arm.urdf"
    file.write_text(text, encoding="utf-8")
    brake = pl.safety.JointBrake(side="joint", dynamic_torque=12.0, static_torque=60.0, delay=0.05)
    space = pl.safety.Space(
        pose={"axis": (-1.2, 1.2)}, speed={"axis": (-6.0, 6.0)}, payload=(0.0, 2.0)
    )
    return pl.study(
        pl.load(file),
        pl.Brakes({"axis": brake}, pl.safety.Chain()),
        space,
        pl.safety.Sobol(COUNT, seed=3),
        obstacles=obstacles,
        results=folder / "arm.csv",
        jobs=1,
        search=False,
    )


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> pl.Study:
    post = Obstacle.box("post", [0.1, 0.1, 1.0], (-0.6, 0.0, 0.5))
    return _study(tmp_path_factory.mktemp("study"), obstacles=[post])


@pytest.fixture(scope="module")
def browser(study: pl.Study, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    folder = tmp_path_factory.mktemp("report")
    path = study.save_html(folder / "study.html")
    with Browser(path, folder / "profile", (620, 560)) as browser:
        yield browser


def case(column: str, study: pl.Study) -> str:
    values = study.column(column)
    return f"case-{int(values.argmin() if column == 'clearance_m' else values.argmax())}"


def seen(browser: Browser) -> Picture:
    return browser.picture(".case:not([hidden]) .replay-pane")


@needs_browser
def test_it_opens_with_the_longest_stop_in_the_picture(browser: Browser, study: pl.Study) -> None:
    assert browser.value(SEEN) == [case("stopping_time_s", study)]
    until(lambda: magenta(seen(browser)).any())
    picture = seen(browser)
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 200
    assert 0.01 < magenta(picture).mean() < 0.4
    assert browser.value("document.querySelectorAll('canvas').length") == 1  # of the case seen


@needs_browser
def test_a_button_shows_another_case(browser: Browser, study: pl.Study) -> None:
    before, first = seen(browser), browser.value(SEEN)
    other = next(
        key for key in browser.value("[...document.querySelectorAll('.case')].map((e) => e.id)")
        if key not in first
    )  # fmt: skip
    browser.click(f"#tab-{other}")
    assert browser.value(SEEN) == [other]
    until(lambda: magenta(seen(browser)).any())
    assert np.abs(seen(browser) - before).mean() > 1
    assert browser.value(f"document.querySelector('#{other}').querySelector('.replay').replay.end"
                         ) == pytest.approx(_end(study, other), abs=1e-6)  # fmt: skip
    browser.click(f"#tab-{first[0]}")
    assert browser.value(SEEN) == first


def _end(study: pl.Study, key: str) -> float:
    """Until when a stop is shown: a little beyond the end, as far as it was computed."""
    stop = study.replay(int(key.removeprefix("case-")))
    last = max([stop.stopping_time, *(t for t, _ in stop.events)])
    return min(float(stop.run.t[-1]), 1.04 * last)


@needs_browser
def test_the_slider_moves_the_robot(browser: Browser, study: pl.Study) -> None:
    for key in browser.value("[...document.querySelectorAll('.case')].map((e) => e.id)")[:2]:
        browser.click(f"#tab-{key}")
        browser.click(f"#{key} .replay-show-ghost")
        browser.click(f"#{key} .replay-slider")
        browser.press("Home", 36)
        clock = f"document.querySelector('#{key} .replay-clock').textContent"
        assert float(browser.value(clock).split()[0]) == 0.0
        start = magenta(seen(browser))
        browser.press("End", 35)
        number, unit = browser.value(clock).split()
        end = float(number) / {"s": 1.0, "ms": 1e3}[unit]
        assert end == pytest.approx(_end(study, key), abs=6e-4)
        until(lambda start=start: (magenta(seen(browser)) != start).mean() > 0.01)  # type: ignore[misc]


@needs_browser
def test_the_number_of_a_case_leads_to_it(browser: Browser, study: pl.Study) -> None:
    key = case("clearance_m", study)
    browser.click(f".cards a[href='#{key}']")
    until(lambda: browser.value(SEEN) == [key])
    browser.value("document.querySelector('.tabs [aria-selected=true]').focus()")
    browser.press("ArrowRight", 39)
    assert browser.value(SEEN) != [key]


@needs_browser
def test_of_many_cases_only_some_run_at_a_time(browser: Browser, study: pl.Study) -> None:
    keys = browser.value("[...document.querySelectorAll('.case')].map((e) => e.id)")
    browser.value("document.querySelector('.tabs').dataset.most = 1")
    for key in (keys[1], keys[0], keys[1], keys[0]):
        browser.click(f"#tab-{key}")
        assert browser.value(SEEN) == [key]
        until(lambda: magenta(seen(browser)).any())
        assert browser.value(f"document.querySelectorAll('#{key} canvas').length") == 1
        browser.click(f"#{key} .replay-play")  # once, though it was begun more than once
        label = f"document.querySelector('#{key} .replay-play').getAttribute('aria-label')"
        assert browser.value(label) == "Pause"
    browser.value("document.querySelector('.tabs').dataset.most = 8")


@needs_browser
def test_paper_shows_a_picture_of_every_case(browser: Browser) -> None:
    chosen = browser.value(SEEN)
    pictures = "[...document.querySelectorAll('.replay-still')].map((e) => e.src)"
    browser.value("[...document.querySelectorAll('.replay')].forEach((e) => e.replay?.seek(0))")
    before = browser.value(pictures)
    browser.value("window.dispatchEvent(new Event('beforeprint')), 0")
    assert browser.value(SEEN) == chosen
    stills = browser.value(pictures)
    assert not set(stills) & set(before)  # what is seen now, not what was seen first
    assert len(stills) == len(set(stills)) >= 2
    assert all(still.startswith("data:image") and len(still) > 5000 for still in stills)


@needs_browser
def test_it_needs_nothing_and_complains_of_nothing(browser: Browser) -> None:
    assert browser.requests == []
    assert browser.complaints == []
    assert browser.value("document.documentElement.scrollWidth") == 620
    manifest = browser.value("document.getElementById('manifest').textContent")
    assert json.loads(manifest)["robot"]["name"] == "arm"


def test_the_cases_share_the_meshes(tmp_path: Path) -> None:
    trimesh.creation.icosphere(5, 0.1).export(tmp_path / "ball.stl")
    ball = '<visual><geometry><mesh filename="ball.stl"/></geometry></visual><inertial>'
    study = _study(tmp_path, _ARM.replace("<inertial>", ball, 1))
    one, all_of_them = (
        study.save_html(tmp_path / f"{name}.html", worst=worst).read_text("utf-8")
        for name, worst in (("one", ["time"]), ("all", None))
    )
    assert one.count('role="tabpanel"') == 1 and all_of_them.count('role="tabpanel"') >= 2
    (tmp_path / "bare").mkdir()
    bare = _study(tmp_path / "bare").save_html(tmp_path / "bare.html", worst=["time"])
    mesh = len(one) - len(bare.read_text("utf-8"))
    assert mesh > 300_000
    assert len(all_of_them) - len(one) < 0.5 * mesh
    assert len(all_of_them) < 10_000_000
