"""The report of a stop: its numbers are those of the result, names are text, nothing is fetched."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray

import pinloop as pl
from pinloop.model.description import GROUND
from pinloop.safety.stopping.result_document import PLANNING_AID
from pinloop.show.plots.svg import draw
from pinloop.show.stop_report import page_of, write_report
from pinloop.show.stop_report.stop_curves import (
    StopCurves,
    clock_of,
    energy_flow,
    happenings,
    heat_by_joint,
    instants,
    joint_spans,
    shown_until,
)

from ..safety.stopping.robots_to_stop import (
    X,
    Z,
    brakes,
    carriages,
    made,
    on_axis,
    pendulum,
    solid,
    train,
    two_links,
)
from ..screw_tables import joint

ROBOT, BRAKES = "urdf/six_axis_arm.urdf", "urdf/six_axis_arm.brakes.yaml"
ROOT = Path(__file__).parents[2]
NASTY = "<script>alert(1)</script>"
VOID = {"meta", "link", "input", "img", "br"}


class Page(HTMLParser):
    """A page as a tree of tags; tables and texts by what they say."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.scopes: list[str | None] = []
        self._caption = ""
        self.feed(text)
        assert self.open == [], "not closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append((tag, given))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self._caption = ""
        elif tag == "tr":
            self.tables.setdefault(self._caption, []).append([])
        elif tag in ("td", "th"):
            self.tables[self._caption][-1].append("")
        if tag == "th":
            self.scopes.append(given.get("scope"))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "script" in self.open or "style" in self.open:
            return
        self.texts.append(data)
        if "caption" in self.open:
            self._caption += data
        elif "td" in self.open or "th" in self.open:
            self.tables[self._caption][-1][-1] += data

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).replace("\N{NO-BREAK SPACE}", " ").split())

    def rows(self, caption: str) -> dict[str, list[str]]:
        """Rows of a table by their first cells."""
        return {row[0].strip(): [cell.strip() for cell in row[1:]] for row in self.tables[caption]}


@pytest.fixture(scope="module")
def result() -> pl.StopResult:
    robot = pl.load(ROOT / ROBOT)
    q = robot.configuration({"joint_2": 0.6, "joint_3": 0.4})
    v = robot.velocity({"joint_1": 2.0, "joint_2": 1.5, "joint_3": -1.0})
    return pl.stop(robot, q, v, brakes=ROOT / BRAKES, payload=5.0)


@pytest.fixture(scope="module")
def file(result: pl.StopResult, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return result.save_html(tmp_path_factory.mktemp("report") / "stop.html", swept=True)


@pytest.fixture(scope="module")
def page(file: Path) -> Page:
    return Page(file.read_text(encoding="utf-8"))


def falling() -> pl.StopResult:
    """A beam whose brake is too weak to hold it."""
    weak = on_axis(dynamic_torque=2.0, static_torque=3.0)
    return pl.stop(pendulum(), [0.3], [1.0], brakes=weak, until=0.4)


def controlled() -> pl.StopResult:
    """A wheel that its drive brings to rest, then the brake comes; nothing happens after that."""
    robot = made([solid("wheel", 1.0, inertia=2.0)],
                 [joint("axis", "revolute", GROUND, "wheel", [0, 0, 0], Z)])  # fmt: skip
    numbers: dict[str, Any] = {"dynamic_torque": 40.0, "static_torque": 50.0, "delay": 0.02,
                               "drive_torque": 90.0, "deceleration": 10.0}  # fmt: skip
    return pl.stop(robot, robot.neutral, [1.0], brakes=on_axis(**numbers), category=1)


# -- the file -----------------------------------------------------------------------------------


def test_the_file_is_small_and_fetches_nothing(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert 0.9e6 < file.stat().st_size < 3e6
    addresses = set(re.findall(r"(?:https?|wss?|ftp)://[^\s\"'`)]+", text))
    # The name of a language, and what the viewer would call if it were told to connect.
    assert addresses <= {"http://www.w3.org/1999/xhtml", "ws://${location.host}"}
    own = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r"https?:|//[a-z]|@import|url\(", own.split("<body", 1)[0])
    assert "http" not in own.replace("http-equiv", "")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert "default-src 'none'" in html.unescape(policy[1])
    assert "http" not in policy[1]


def test_what_tags_would_fetch_is_in_the_file(page: Page) -> None:
    names = ("src", "href", "srcset", "data", "action", "poster")
    asked = [given[name] for _, given in page.tags for name in names if name in given]
    assert asked == ["data:,"]


def test_the_same_stop_gives_the_same_bytes(result: pl.StopResult, tmp_path: Path) -> None:
    first, second = (write_report(result, tmp_path / name).read_bytes() for name in ("a", "b"))
    assert first == second


def test_a_place_where_nothing_can_be_written(result: pl.StopResult, tmp_path: Path) -> None:
    with pytest.raises(pl.BadValue, match="cannot be written"):
        result.save_html(tmp_path / "nowhere" / "stop.html")


def test_tables_can_be_read_aloud(page: Page) -> None:
    """Headings say for what they are headings, pictures have names, there is one main heading."""
    assert set(page.scopes) == {"row", "col", "colgroup"}
    tags = Counter(tag for tag, _ in page.tags)
    assert tags["caption"] == tags["table"]
    assert tags["h1"] == tags["main"] == 1
    pictures = [given for tag, given in page.tags if tag == "svg" and "role" in given]
    assert tags["title"] >= 1 + len(pictures) > 10
    inputs = [given for tag, given in page.tags if tag in ("input", "button")]
    assert len(inputs) == 8  # play, time, repeat, four switches, reset
    assert ("html", {"lang": "en"}) in page.tags


# -- numbers ------------------------------------------------------------------------------------


def test_the_head_says_what_became_of_it(page: Page, result: pl.StopResult) -> None:
    text, point = page.text, result.point()
    assert "six_axis_arm" in text
    assert f"STOPPED ({result.intervals['stopping_time'].text}) and holds" in text
    assert text.count(PLANNING_AID) == 2
    assert f"stopping time {1e3 * result.stopping_time:.4g} ms" in text
    assert f"tool path (tool0) {1e3 * point.length:.1f} mm" in text
    parts = f"{1e3 * point.reaction_length:.1f} mm reaction + {1e3 * point.braking_length:.1f} mm"
    assert parts in text
    assert f"peak speed {1e3 * point.peak_speed:.0f} mm/s" in text
    worst = max(result.joints.values(), key=lambda one: abs(one.angle))
    assert f"worst joint {np.degrees(worst.angle):.3f} deg {worst.name} moves farthest" in text
    use = max(one.gear_use or 0 for one in result.joints.values())
    assert f"highest gear utilisation {100 * use:.0f} %" in text
    margin = min(one.margin for one in result.joints.values())
    assert f"smallest holding margin {margin:.2f} ×" in text


def test_the_rows_of_the_joints(page: Page, result: pl.StopResult) -> None:
    ways = page.rows("Joints: time and angle from the signal")
    loads = page.rows("Joints: loads and holding")
    for name, one in result.joints.items():
        _, *times, reaction, braking, total = map(float, ways[name])
        assert_allclose(times, 1e3 * np.array([one.reaction_time, one.braking_time, one.time]),
                        atol=0.0501)  # fmt: skip
        angles = np.degrees([one.reaction_angle, one.braking_angle, one.angle])
        assert_allclose([reaction, braking, total], angles, atol=0.000501)
        signal, peak, torque, energy = map(float, loads[name][:4])
        assert signal == pytest.approx(
            np.degrees(result.run.v[0, result.robot.coordinates(name).v.start]), abs=0.0501
        )
        assert peak == pytest.approx(np.degrees(one.peak_speed), abs=0.0501)
        assert torque == pytest.approx(one.peak_torque, abs=0.0501)
        assert energy == pytest.approx(one.dissipated, abs=0.00501)
        assert loads[name][-1] == one.state


def test_tool_and_energy(page: Page, result: pl.StopResult) -> None:
    point, ledger = result.point(), result.ledger
    way = [float(cell) for cell in page.rows("Tool")["tool0"]]
    expected = [point.reaction_length, point.braking_length, point.length, point.displacement]
    assert_allclose(way[:4], 1e3 * np.array(expected), atol=0.0501)
    assert way[4] == pytest.approx(1e3 * point.peak_speed, abs=0.501)
    energy = page.rows("Energy")
    assert float(energy["kinetic energy at the signal"][0]) == pytest.approx(
        ledger.kinetic_before, abs=0.1
    )
    heat = ledger.dissipated["brake"].sum()
    assert float(energy["brake"][0]) == pytest.approx(heat, abs=0.0501)


def test_what_the_stop_depends_on(file: Path, result: pl.StopResult) -> None:
    """Path and time, the largest first; where there is nothing to say, why."""
    text = file.read_text(encoding="utf-8")
    section = text[text.index('id="depends"') : text.index('id="motion"')]
    expected = result.sensitivity(["path", "stopping_time"])
    rows = re.findall(r"<tr>(.*?)</tr>", section, re.S)[-12:]
    cells = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.S) for row in rows]
    sizes = np.abs([float(row[2]) for row in cells])
    assert (np.diff(sizes) <= 0.0).all() and sizes[0] > 0.0
    for name, _, path, time in cells:
        column = expected.inputs.index(name)
        per_percent = 1e3 * expected.per_percent()[:, column]
        assert_allclose([float(path), float(time)], per_percent, atol=6e-3)
    assert "only stops that end at rest and held have sensitivities" in page_of(falling())


def test_every_number_has_its_provenance(page: Page, result: pl.StopResult) -> None:
    letters = {"measured": "M", "published": "P", "fitted": "F", "guess": "G"}
    rows = page.rows("Brakes, gears, friction and drives")
    names = rows.pop("parameter")
    assert names == list(result.joints)
    chain = page.rows("Signal chain")
    assert chain["drive off [ms]"] == ["5 G"]
    shown = Counter(cell[-1] for row in (*rows.values(), *chain.values()) for cell in row)
    given = Counter(
        "–" if row.source == "guess" and not row.given else letters[row.source]
        for row in result.assumptions
    )
    assert shown == given
    assert f"G {given['G']} guessed" in page.text
    assert "M 0 measured" in page.text
    torque = result.brakes.joints["joint_2"].dynamic_torque
    assert rows["dynamic torque [N m]"][1] == f"{torque:g} G"


def test_sources_are_told_apart() -> None:
    given: dict[str, Any] = {
        "dynamic_torque": 50.0,
        "sources": {"dynamic_torque": "measured", "delay": "published"},
    }
    robot = pl.stop(
        pendulum(), [0.3], [1.0],
        brakes=on_axis(static_torque=60.0, delay=0.01, notes={"delay": "as <new>"}, **given),
    )  # fmt: skip
    page = Page(page_of(robot))
    rows = page.rows("Brakes, gears, friction and drives")
    assert rows["dynamic torque [N m]"] == ["50 M"]
    assert rows["delay [ms]"] == ["10 P"]
    assert "1 measured" in page.text
    assert "P 1 published" in page.text
    assert "axis, delay: as <new>" in page.text


def test_events_in_order(page: Page, result: pl.StopResult) -> None:
    rows = page.tables["Events in order of time"][1:]
    times = [float(row[0]) for row in rows]
    assert times == sorted(times)
    assert [row[1:] for row in rows[:2]] == [["signal", "robot"], ["command", "robot"]]
    assert float(rows[1][0]) == pytest.approx(1e3 * result.chain.command)
    (acts,) = (row for row in rows if row[1] == "brake acts")
    assert acts[2] == ", ".join(result.joints)
    # Nothing that happened is lost when alike and simultaneous things are put together.
    assert sum(max(1, len(one.joints)) for one in happenings(result)) == len(result.events)


def test_different_things_at_one_instant_stay_apart() -> None:
    """In category 1 the power goes when the brakes have come."""
    found = happenings(controlled())
    (off,) = (one for one in found if one.what == "drives off")
    (brake,) = (one for one in found if one.what == "brake acts")
    assert off.t == pytest.approx(brake.t, abs=1e-12)
    assert (off.joints, brake.joints) == ((), ("axis",))


def test_versions_and_digests(page: Page) -> None:
    import hashlib

    digest = hashlib.sha256((ROOT / BRAKES).read_bytes()).hexdigest()
    assert f"SHA-256 {digest}" in page.text
    assert f"pinloop {pl.__version__}" in page.text


def test_the_volume_swept(page: Page, result: pl.StopResult) -> None:
    from pinloop.safety.space.swept import swept_volume

    volume = swept_volume(result.run, max_triangles=40_000)
    assert f"nowhere more than {1e3 * volume.excess:.1f} mm too large" in page.text
    assert f"x = {volume.bounds[0, 0]:.3f} to {volume.bounds[1, 0]:.3f} m" in page.text
    assert "volume swept" not in Page(page_of(result)).text


def test_further_facts(result: pl.StopResult) -> None:
    page = Page(page_of(result, facts=[("cell <4>", "left & right")]))
    assert page.rows("Stop")["cell <4>"] == ["left & right"]


# -- outcomes -----------------------------------------------------------------------------------


def test_a_robot_that_does_not_hold() -> None:
    result = falling()
    assert result.outcome == "does not hold"
    page = Page(page_of(result))
    assert "DOES NOT HOLD" in page.text
    assert "STOPPED" not in page.text
    assert "time computed 400 ms" in page.text
    assert "still in motion: axis" in page.text
    # 3 N m against the weight of 2 kg, 0.5 m out.
    reserve = 3.0 / (2.0 * 9.81 * 0.5 * np.cos(result.run.q[-1, 0]))
    assert f"smallest holding margin {reserve:.2f} × load axis: held by 3.000 N m" in page.text
    (warning, *_) = result.warnings
    assert warning in page.text


def test_a_time_out() -> None:
    slow = on_axis(dynamic_torque=60.0, static_torque=80.0)
    result = pl.stop(pendulum(), [0.3], [8.0], brakes=slow, until=0.02)
    assert result.outcome == "time-out"
    page = Page(page_of(result))
    assert "NOT STOPPED within the time computed" in page.text
    assert "STOPPED and holds" not in page.text
    assert "reserve" not in page.text


def test_one_that_never_moved() -> None:
    strong = on_axis(dynamic_torque=60.0, static_torque=80.0)
    result = pl.stop(pendulum(), [0.3], [0.0], brakes=strong)
    page = Page(page_of(result))
    assert "nothing moved when the signal came" in page.text
    assert "STOPPED and holds" in page.text


def test_a_joint_beyond_its_limit_is_told_at_the_head() -> None:
    """For 20 ms after the signal the motors keep up the 2 rad/s: that is 0.04 rad."""
    robot = pl.load(ROOT / "urdf" / "six_axis_arm.urdf")
    upper = float(robot.model.upperPositionLimit[0])
    for ahead, speed, head in (
        (0.03, 2.0, "and holds, but beyond the limits of joint_1"),
        (1.5, 2.0, "and holds; brake data are guesses"),
    ):
        q = robot.configuration({"joint_1": upper - ahead})
        v = robot.velocity({"joint_1": speed})
        result = pl.stop(robot, q, v, brakes=ROOT / "urdf" / "six_axis_arm.brakes.yaml")
        page = Page(page_of(result))
        band = result.intervals["stopping_time"].text
        assert f"STOPPED ({band}) {head}" in page.text
        assert ("but beyond" in page.text) == (ahead < 1)
        assert f"braking; 95 % interval: {band}" in page.text
        assert f"mm/s; 95 % interval: {result.intervals['path'].text}" in page.text
        badges = [
            given["class"] for tag, given in page.tags if "badge" in (given.get("class") or "")
        ]
        assert badges == ["badge warn"]


def test_only_a_stop_without_guesses_is_green() -> None:
    known = {"dynamic_torque": 60.0, "static_torque": 80.0, "delay": 0.01, "rotor_inertia": 0.1}
    for source, mark in (("measured", "good"), ("fitted", "good"), ("guess", "warn")):
        by = on_axis(**known, sources=dict.fromkeys(known, source))
        page = Page(page_of(pl.stop(pendulum(), [0.3], [1.0], brakes=by)))
        classes = [given.get("class") or "" for _, given in page.tags]
        assert [name for name in classes if "badge" in name] == [f"badge {mark}"]
        assert ("brake data are guesses" in page.text) == (mark == "warn")


def test_end_stops_are_warned_of_before_speeds() -> None:
    robot = pl.load(ROOT / "urdf" / "six_axis_arm.urdf")
    q = robot.configuration({"joint_1": float(robot.model.upperPositionLimit[0]) - 0.03})
    v = 1.5 * robot.velocity({"joint_1": float(robot.model.upperVelocityLimit[0])})
    first, second, *_ = pl.stop(
        robot, q, v, brakes=ROOT / "urdf" / "six_axis_arm.brakes.yaml"
    ).warnings
    assert "passes its upper limit" in first and "faster than its velocity limit" in second


def test_the_part_of_a_stop_that_failed() -> None:
    result = falling()
    page_of(replace(result, run=replace(result.run, message="failed")))


def test_sliding_joints_are_in_millimetres() -> None:
    robot = carriages(2.0, 3.0)
    stopped = brakes(a={"dynamic_torque": 20.0, "static_torque": 25.0},
                     b={"dynamic_torque": 30.0, "static_torque": 35.0})  # fmt: skip
    result = pl.stop(robot, robot.neutral, [-1.0, 0.8], brakes=stopped)
    page = Page(page_of(result))
    # 2 kg at 1 m/s against 20 N: 50 mm; 3 kg at 0.8 m/s against 30 N: 32 mm.
    rows = page.rows("Joints: time and displacement from the signal")
    assert float(rows["a"][-1]) == pytest.approx(-50.0, abs=1e-2)
    assert float(rows["b"][-1]) == pytest.approx(32.0, abs=1e-2)
    assert "worst joint -50.00 mm a moves farthest" in page.text
    (plot,) = StopCurves(result).positions()
    assert plot.y_label == "change of position [mm]"
    assert [curve.y[-1] for curve in plot.lines] == pytest.approx([-50.0, 32.0], rel=1e-6)


# -- names --------------------------------------------------------------------------------------


def nasty_stop() -> pl.StopResult:
    """A robot, a joint, a body and a fault whose names are markup."""
    robot = made(
        [solid(f"{NASTY}b", 2.0)],
        [joint(NASTY, "prismatic", GROUND, f"{NASTY}b", [0, 0, 0], X)],
        name=f"--><b>{NASTY}&amp;\x07",
    )
    stops = brakes(**{NASTY: {"dynamic_torque": 20.0, "static_torque": 25.0}})
    return pl.stop(robot, robot.neutral, [1.0], brakes=replace(stops, faults=(f"{NASTY} late",)))


def test_names_are_text() -> None:
    page = Page(page_of(nasty_stop(), facts=[(NASTY, NASTY)]))
    tags = Counter(tag for tag, _ in page.tags)
    assert tags["script"] == 5  # the data, the viewer, its pane, the player, what ties plots to it
    assert tags["b"] == 0
    assert f"--><b>{NASTY}&amp;\\x07" in page.text
    assert "\x07" not in page.text
    assert page.rows("Joints: time and displacement from the signal")[NASTY]


# -- plots --------------------------------------------------------------------------------------


def polylines(svg: str) -> Iterator[NDArray[np.float64]]:
    for points in re.findall(r'<polyline points="([^"]+)"', svg):
        yield np.array([[float(x) for x in pair.split(",")] for pair in points.split()])


def scale_of(svg: str, anchor: str, axis: str) -> tuple[float, float]:
    """Slope and offset from places in the picture to the numbers beside the axis."""
    found = re.findall(rf'<text x="([^"]+)" y="([^"]+)" text-anchor="{anchor}">([^<]+)<', svg)
    places = [float(y if axis == "y" else x) for x, y, _ in found]
    numbers = [float(text.replace("\N{MINUS SIGN}", "-")) for *_, text in found]
    if axis == "y":
        places = [place - 4 for place in places]  # a number stands on its line
    slope, offset = np.polyfit(places, numbers, 1)
    assert_allclose(np.polyval((slope, offset), places), numbers, atol=1e-3 * np.ptp(numbers))
    return float(slope), float(offset)


def test_curves_end_where_the_joints_do(result: pl.StopResult) -> None:
    """Read off the picture by its axes, as a reader does."""
    (plot,) = StopCurves(result).positions()
    svg = draw(plot)
    dx, x0 = scale_of(svg, "middle", "x")
    dy, y0 = scale_of(svg, "end", "y")
    for points, (name, one) in zip(polylines(svg), result.joints.items(), strict=True):
        x, y = dx * points[-1, 0] + x0, dy * points[-1, 1] + y0
        assert y == pytest.approx(np.degrees(one.angle), abs=0.05), name
        assert x == pytest.approx(1e3 * result.stopping_time, abs=0.1)
        (first,) = (points[:1, 1] * dy + y0).tolist()
        assert first == pytest.approx(0.0, abs=0.05)


def test_velocities_begin_as_they_were(result: pl.StopResult) -> None:
    (plot,) = StopCurves(result).velocities()
    assert plot.y_label == "velocity [deg/s]"
    first = [curve.y[0] for curve in plot.lines]
    assert_allclose(first, np.degrees(result.run.v[0]), atol=1e-9)
    assert [curve.name for curve in plot.lines] == list(result.joints)


@pytest.mark.parametrize("category", [0, 1])
def test_powers_add_up_to_the_energies(category: int) -> None:
    """The area under each curve is its line of the ledger."""
    robot = two_links()
    stops = brakes(
        pl.safety.Chain(sensor=0.01, controller=0.02, drive_off=0.01),
        j1={"dynamic_torque": 40.0, "static_torque": 50.0, "coulomb": 3.0, "viscous": 2.0,
            "delay": 0.02, "rise": 0.02, "drive_torque": 90.0, "deceleration": 12.0},
        j2={"dynamic_torque": 25.0, "static_torque": 30.0, "coulomb": 2.0, "viscous": 1.0,
            "delay": 0.03, "drive_torque": 60.0, "deceleration": 12.0},
    )  # fmt: skip
    result = pl.stop(robot, [0.4, 0.5], [1.5, 1.0], brakes=stops, category=category)
    assert result.outcome == "stopped"
    plot, ledger = StopCurves(result).power(), result.ledger
    areas = {curve.name: np.trapezoid(curve.y, curve.x / 1e3) for curve in plot.lines}
    heat = {sink: values.sum() for sink, values in ledger.dissipated.items()}
    whole = ledger.kinetic_before
    assert areas["brakes"] == pytest.approx(-heat["brake"], abs=1e-3 * whole)
    friction = heat["dry friction"] + heat["viscous friction"]
    assert areas["friction"] == pytest.approx(-friction, abs=1e-3 * whole)
    assert areas["drives"] == pytest.approx(ledger.drive_work, abs=1e-3 * whole)
    assert set(areas) == {"brakes", "friction", "drives"}
    assert abs(ledger.drive_work) > 0.1


def test_a_jump_is_drawn_as_one() -> None:
    """Teeth without play: both velocities, at one time."""
    robot = train(2.0, 3.0)
    stops = brakes(a={"kind": "tooth", "delay": 0.1},
                   b={"dynamic_torque": 9.0, "static_torque": 10.0, "delay": 0.2})  # fmt: skip
    result = pl.stop(robot, robot.neutral, [0.5, 0.4], brakes=stops)
    (plot,) = StopCurves(result).velocities()
    for curve, before, after in zip(plot.lines, (500.0, 400.0), (0.0, 900.0), strict=True):
        # The second carriage keeps its speed over the ground, and with it its momentum.
        found = curve.y[np.abs(curve.x - 100.0) < 1e-9]
        assert found[0] == pytest.approx(before)
        assert found[-1] == pytest.approx(after)


def test_stacks_are_as_long_on_both_sides(result: pl.StopResult) -> None:
    flow = energy_flow(result)
    assert list(flow) == ["in", "out"]
    total = [sum(parts.values()) for parts in flow.values()]
    assert total[0] == pytest.approx(total[1], rel=1e-6)
    ledger = result.ledger
    turned_over = ledger.kinetic_before + ledger.potential_drop + ledger.drive_work
    assert total[0] == pytest.approx(turned_over, rel=1e-12)
    assert min(amount for parts in flow.values() for amount in parts.values()) > 0
    heat = heat_by_joint(result)
    assert list(heat) == list(result.joints)
    for parts, stop in zip(heat.values(), result.joints.values(), strict=True):
        assert sum(parts.values()) == pytest.approx(stop.dissipated)


def test_what_is_lifted_takes_energy() -> None:
    result = pl.stop(pendulum(), [0.3], [1.0], brakes=on_axis(dynamic_torque=50, static_torque=60))
    assert result.ledger.potential_drop < 0
    flow = energy_flow(result)
    assert list(flow["in"]) == ["kinetic energy at the signal"]
    amounts = flow["out"]
    assert amounts["lifting"] == -result.ledger.potential_drop
    assert sum(amounts.values()) == pytest.approx(result.ledger.kinetic_before, rel=1e-6)


def test_lanes_tell_who_does_what_when(result: pl.StopResult) -> None:
    spans, last = joint_spans(result), shown_until(result)
    for name, stop in result.joints.items():
        ends = [span[1:] for span in spans[name]]
        assert ends[0][0] == 0.0
        assert ends[-1][1] == pytest.approx(last)
        assert all(a[1] == b[0] for a, b in pairwise(ends))
        still = [start for what, start, _ in spans[name] if what == "at rest"]
        assert (still[-1] if stop.time < last else last) == pytest.approx(stop.time, abs=1e-9)
    words = {name: [what for what, *_ in own] for name, own in spans.items()}
    assert words["joint_1"] == ["reaction", "braking"]
    assert spans["joint_1"][0][2] == pytest.approx(0.045)
    assert words["joint_6"] == ["at rest"]
    # The fifth joint is thrown off when the power goes, before its brake acts.
    assert words["joint_5"] == ["at rest", "reaction", "braking", "at rest"]
    assert spans["joint_5"][1][1] == pytest.approx(0.020)
    chart, keys = StopCurves(result).lanes()
    assert chart.rows == list(result.joints)
    assert [key.name for key in keys] == ["reaction", "braking", "at rest"]
    assert chart.shapes[0].x == (0.0, pytest.approx(45.0))


def test_labels_of_instants(result: pl.StopResult) -> None:
    found = {one.label: one.x for one in instants(result, clock_of(result))}
    assert found["command"] == pytest.approx(15.0)
    assert found["drives off"] == pytest.approx(20.0)
    assert found["brakes act"] == pytest.approx(45.0)
    assert found["full brake torque"] == pytest.approx(65.0)
    for name in ("joint_1", "joint_2", "joint_3"):
        assert found[f"{name} at rest"] == pytest.approx(1e3 * result.joints[name].time)
    assert not any("joint_6" in label for label in found)  # it never moved


def test_what_comes_after_the_end_is_not_shown() -> None:
    result = controlled()
    span = StopCurves(result).power().span
    last = max(t for t, _ in result.events)
    assert 1e3 * last <= span[1] <= 1.041e3 * last
    longer = replace(result, run=replace(result.run, t=2 * result.run.t))
    assert shown_until(longer) == pytest.approx(1.04 * last)
    shorter = replace(result, run=replace(result.run, t=result.run.t / result.run.t[-1] * last))
    assert shown_until(shorter) == pytest.approx(last)
