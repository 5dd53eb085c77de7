"""The page of a run: poses, arrows of reactions against closed forms, what is said, its size."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray

import pinloop as pl
from pinloop.errors import BadValue, UnknownName
from pinloop.show.scene import run_page as runs
from pinloop.show.scene.motion import mode_spans, opened_spans, round_scale
from pinloop.show.scene.run_page import ReplayOptions, run_page

from ..fourbar_files import fourbar
from .scenes import Played, arm, at, visual
from .test_replay import decoded

Array = NDArray[np.float64]
BAR = visual("bar", "link", "box", (0.6, 0.1, 0.1), at(0.3, 0, 0))
MASS, ARM, INERTIA, G = 1.0, 0.3, 0.01, 9.81
"""The link of `arm`: its centre of mass is 0.3 m from the hinge."""


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'class="replay-data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return dict(json.loads(found[1]))


def shown(run: pl.Trajectory, **more: Any) -> dict[str, Any]:
    return data_of(run_page(run, ReplayOptions(**more)))


def vectors(arrow: dict[str, Any]) -> Array:
    """Forces or moments of an arrow as the page has them [N, N m]."""
    parts = np.frombuffer(base64.b64decode(arrow["vector"]), "<i2").reshape(-1, 3)
    return np.asarray(arrow["largest"] / 32767 * parts)


def starts(arrow: dict[str, Any]) -> Array:
    cells = np.frombuffer(base64.b64decode(arrow["start"]), "<u2").reshape(-1, 3)
    return np.asarray(arrow["low"] + np.array(arrow["step"]) * cells)


def swing(until: float = 0.5, rate: float = 2.0, **more: Any) -> pl.Trajectory:
    robot = arm(BAR)
    return pl.simulate(robot, robot.neutral, [rate], until=until, **more)


@pytest.fixture(scope="module")
def bars(tmp_path_factory: pytest.TempPathFactory) -> pl.Trajectory:
    """A four-bar whose crank locks and whose loop opens later."""
    robot = pl.load(fourbar(tmp_path_factory.mktemp("bars")))
    q = pl.assemble(robot, fixed={"drive": -1.0})
    v = pl.consistent_velocity(robot, q, {"drive": 2.0})
    changes = [pl.lock("drive", at=0.2), pl.open_loop("closer", at=0.4), pl.unlock("drive", at=0.4)]
    return pl.simulate(robot, q, v, until=0.6, events=changes)


def test_bodies_are_where_they_were(bars: pl.Trajectory) -> None:
    data = shown(bars)
    positions, quaternions = decoded(data)
    states = bars(data["times"])
    for body in ("crank", "coupler", "rocker"):
        column = data["paths"].index(f"skeleton/{body}")
        for k, q in enumerate(states.q):
            place = bars.robot.placement(q, body)
            assert_allclose(positions[k, column], place.translation, atol=2e-5)
            x, y, z, w = quaternions[k, column]
            # The first column of the rotation that a quaternion stands for.
            first = (1 - 2 * (y * y + z * z), 2 * (x * y + z * w), 2 * (x * z - y * w))
            assert_allclose(first, place.rotation[:, 0], atol=1e-4)


@pytest.mark.parametrize(("rate", "count"), [(30.0, 40), (200.0, 100)])
def test_frames_come_at_the_rate_that_is_asked_for(rate: float, count: int) -> None:
    times = shown(swing(), rate=rate)["times"]
    assert_allclose(times, np.linspace(0, 0.5, count + 1), atol=1e-12)


def pendulum_force(angle: Array, start: float, rate: float) -> Array:
    """Force of the hinge on the link in the world, from Newton's law and the kept energy."""
    about_hinge = INERTIA + MASS * ARM**2
    acceleration = MASS * G * ARM * np.cos(angle) / about_hinge
    square = rate**2 + 2 * MASS * G * ARM * (np.sin(angle) - np.sin(start)) / about_hinge
    # The centre of mass is at (l cos a, 0, -l sin a) from the hinge.
    x = -ARM * (np.sin(angle) * acceleration + np.cos(angle) * square)
    z = -ARM * (np.cos(angle) * acceleration - np.sin(angle) * square)
    return MASS * np.column_stack([x, 0 * x, z + G])


def test_an_arrow_is_the_force_of_the_joint() -> None:
    robot = arm(BAR).absolute()
    (loop,) = robot.loops
    q = pl.assemble(robot)
    # The only motion that the hinge allows, at 2 rad/s about +y.
    *_, free = np.linalg.svd(pl.Constraints(robot).jacobian(q))[2]
    pin.computeJointJacobians(robot.model, data := robot.model.createData(), q)
    frame = robot.frame_id("link")
    about = pin.getFrameJacobian(robot.model, data, frame, pin.LOCAL_WORLD_ALIGNED) @ free
    v = 2.0 / about[4] * free
    run = pl.simulate(robot, q, v, until=0.4)
    seen = shown(run, forces=[loop.name])
    (arrow,) = seen["arrows"]
    assert (arrow["name"], arrow["moment"]) == (loop.name, False)
    turns = [robot.placement(q, "link").rotation for q in run(seen["times"]).q]
    angle = np.array([np.arctan2(-turn[2, 0], turn[0, 0]) for turn in turns])
    expected = pendulum_force(angle, 0.0, 2.0) * (1 if loop.body_b == "link" else -1)
    assert np.ptp(angle) > 0.5
    assert_allclose(vectors(arrow), expected, atol=2e-3 * np.abs(expected).max())
    assert_allclose(starts(arrow), np.tile([0, 0, 0.2], (len(angle), 1)), atol=1e-6)
    largest = np.linalg.norm(expected, axis=1).max()
    assert arrow["largest"] == pytest.approx(largest, rel=1e-3)
    # A round number of newtons per metre, by which the longest arrow is as long as agreed.
    assert f"{arrow['scale']:e}"[0] in "125"
    assert 0.35 * seen["size"] / 2.5 < largest / arrow["scale"] <= 0.35 * seen["size"]


def test_an_arrow_is_the_moment_of_the_lock() -> None:
    run = swing(until=0.4, events=[pl.lock("hinge", at=0.2)])
    data = shown(run, forces=True)
    (arrow,) = data["arrows"]
    assert (arrow["name"], arrow["moment"]) == ("lock:hinge", True)
    t = np.array(data["times"])
    angle = run(0.4).q[0]
    # It holds the weight of the link, which turns about +y as it falls.
    held = np.where(t >= 0.2, -MASS * G * ARM * np.cos(angle), 0.0)
    expected = np.column_stack([0 * t, held, 0 * t])
    assert_allclose(vectors(arrow), expected, atol=1e-3 * np.abs(held).max())
    assert data["jumps"] == [int(np.flatnonzero(t == 0.2)[0])]


def test_moments_of_loops_are_drawn_if_asked_for(bars: pl.Trajectory) -> None:
    few = shown(bars, forces=["closer"], moments=False)["arrows"]
    assert [arrow["moment"] for arrow in few] == [False]
    names = [arrow["name"] for arrow in shown(bars, forces=True)["arrows"]]
    assert names == ["closer", "lock:drive"]
    (force,) = few
    times = np.array(shown(bars, forces=["closer"])["times"])
    # Nothing is felt in a loop that is open.
    assert np.abs(vectors(force)[times >= 0.4]).max() == 0.0
    assert np.linalg.norm(vectors(force)[times < 0.2], axis=1).min() > 0.0


def test_what_is_locked_and_open_is_told(bars: pl.Trajectory) -> None:
    assert mode_spans(bars) == [
        (0.0, "nothing locked"),
        (0.2, "locked: drive"),
        (0.4, "open: closer"),
    ]
    assert opened_spans(bars) == {"closer": ((0.4, 0.6),)}
    data = shown(bars)
    assert data["joints"][0]["standing"] == [[0.2, 0.4]]
    (loop,) = data["loops"]
    assert (loop["name"], loop["open"]) == ("closer", [[0.4, 0.6]])
    played = Played(())
    import umsgpack

    for text in data["commands"]:
        played.handle(umsgpack.unpackb(base64.b64decode(text)))
    assert {tuple(path.split("/")) for path in loop["paths"]} == set(played.below("loops"))


def test_events_of_an_instant_are_one_mark(bars: pl.Trajectory) -> None:
    events = shown(bars)["events"]
    assert [time for time, _ in events] == [0.2, 0.4]
    assert "lock drive" in events[0][1]
    assert all(what in events[1][1] for what in ("open", "unlock", ","))


def test_ghosts_and_traces(bars: pl.Trajectory) -> None:
    data = shown(bars, ghosts=(0.0, 0.33), traces=("coupler", "rocker"))
    assert data["ghosts"] == [0.0, 0.33]
    assert 0.33 in data["times"]
    assert data["ghost"] == ["skeleton", "loops"]
    page = run_page(bars, ReplayOptions(traces=("coupler", "rocker")))
    assert "path of coupler" in page and "path of rocker" in page
    assert shown(bars)["traces"] is False
    assert shown(bars)["ghost"] == []


def test_a_page_with_less_room_has_fewer_frames(
    bars: pl.Trajectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "frames per second" not in run_page(bars, ReplayOptions(rate=400))
    monkeypatch.setattr(runs, "_FRAME_CHARACTERS", 20_000)
    page = run_page(bars, ReplayOptions(rate=400, forces=True))
    data = data_of(page)
    arrows = sum(len(arrow["start"]) + len(arrow["vector"]) for arrow in data["arrows"])
    kept = len(data["positions"]) + len(data["quaternions"]) + len(str(data["times"])) + arrows
    assert 5_000 < kept < 21_000
    rate = (len(data["times"]) - 1) / 0.6
    assert f"holds {rate:.3g} frames per second of motion instead of 400" in page


def test_nothing_is_fetched_and_names_are_text(bars: pl.Trajectory, tmp_path: Path) -> None:
    path = bars.save_html(tmp_path / "run.html", title="<b>& co")
    text = path.read_text(encoding="utf-8")
    assert "default-src 'none'" in text and "connect-src 'none'" in text
    assert "<h1>&lt;b&gt;&amp; co</h1>" in text
    assert not re.search(r"<(?:script|img|link)[^>]*(?:src|href)=\"(?!data:)", text)


@pytest.mark.parametrize(
    ("more", "kind", "words"),
    [
        ({"forces": ["closr"]}, UnknownName, "closr"),
        ({"forces": ["lock:knee"]}, UnknownName, "lock:knee"),
        ({"ghosts": [0.7]}, BadValue, "0.7 s is outside the run"),
        ({"ghosts": ["soon"]}, BadValue, "soon"),
        ({"traces": ["tip"]}, UnknownName, "tip"),
        ({"rate": 0.0}, BadValue, "rate"),
        ({"rate": np.inf}, BadValue, "rate"),
    ],
)
def test_mistakes(
    bars: pl.Trajectory, tmp_path: Path, more: dict[str, Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=re.escape(words)):
        bars.save_html(tmp_path / "run.html", **more)


def test_a_folder_that_is_not_there(bars: pl.Trajectory, tmp_path: Path) -> None:
    with pytest.raises(BadValue, match="cannot be written"):
        bars.save_html(tmp_path / "none" / "run.html")


@pytest.mark.parametrize(
    ("largest", "length", "scale"), [(950, 0.5, 2000), (1000, 1, 1000), (0.3, 0.1, 5), (7, 1, 10)]
)
def test_scales_are_round(largest: float, length: float, scale: float) -> None:
    assert round_scale(largest, length) == pytest.approx(scale)
