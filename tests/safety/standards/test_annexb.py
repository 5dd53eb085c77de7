"""Tests of `pinloop.safety.standards.annexb`: stops of single axes in closed form, tables,
files.
"""

from __future__ import annotations

import csv
import math
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

import pinloop as pl
from pinloop.safety.standards.annexb import AnnexB, annex_b
from pinloop.tables.report import Cell, Table

from ...screw_tables import Array, joint
from ...states import URDF, robot
from ..stopping.robots_to_stop import G, Y, Z, made, solid
from ..studies.arms_to_declare import (
    COMMAND,
    REACTION,
    THIRDS,
    arm_by_hand,
    brakes,
    limits,
    tip,
    two_links,
)

# -- one axis -----------------------------------------------------------------------------------


def turntable(axis: Array = Z, **more: Any) -> pl.Mechanism:
    """A wheel of 2 kg m^2 whose axis goes through the origin."""
    return made(
        [solid("wheel", 1.0, inertia=2.0)],
        [joint("axis", "revolute", "ground", "wheel", [0, 0, 0], axis, **(more or limits(-3, 3)))],
    )


ECCENTRIC = pl.Payload(4.0, com=(0.5, 0, 0), frame="wheel")
TORQUE = 8.0


@cache
def table() -> AnnexB:
    """A turntable with an eccentric payload, both categories on the whole grid."""
    brake = {"dynamic_torque": TORQUE, "deceleration": 5.0}
    return annex_b(
        turntable(), brakes(axis=brake), payload=ECCENTRIC, shares={0: THIRDS}, speeds={"axis": 1.5}
    )


def test_an_axis_that_swings_back_is_told_at_its_farthest() -> None:
    """From its lowest place it swings up and comes back before its late brake acts.

    Inertia 2 + 4 * 0.5^2 kg m^2; without power I v^2 / 2 = m g r (cos(v t) - cos(farthest)).
    """
    found = annex_b(
        turntable(Y), brakes(axis={"dynamic_torque": 30.0, "delay": 1.1}), payload=ECCENTRIC,
        speeds={"axis": 1.5}, extension_poses={"axis": {1.0: [np.pi / 2]}}, categories=(0,),
    )  # fmt: skip
    (stop,) = found.stops
    whole = found.again(stop).joints["axis"]
    farthest = np.arccos(np.cos(1.5 * REACTION) - 3.0 * 1.5**2 / 2 / (4.0 * G * 0.5))
    assert stop.outcome == "stopped" and abs(whole.angle) < 0.5 * farthest
    assert stop.distance == pytest.approx(farthest, rel=1e-6)


@pytest.mark.parametrize("speed", THIRDS)
@pytest.mark.parametrize("load", THIRDS)
def test_a_turntable_in_closed_form(speed: float, load: float) -> None:
    """It turns on until the brake comes, then slows down by T / I."""
    (stop,) = table().select(category=0, speed_share=speed, payload_share=load)
    v, inertia = 1.5 * speed, 2.0 + load * 4.0 * 0.5**2
    assert stop.speed == pytest.approx(v)
    assert stop.mass == pytest.approx(4.0 * load)
    assert stop.reaction_time == pytest.approx(REACTION, rel=1e-9)
    assert stop.reaction_distance == pytest.approx(v * REACTION, rel=1e-9)
    assert stop.time == pytest.approx(REACTION + inertia * v / TORQUE, rel=1e-7)
    assert stop.distance == pytest.approx(v * REACTION + inertia * v**2 / (2 * TORQUE), rel=1e-7)
    assert (stop.outcome, stop.last) == ("stopped", "axis")


@pytest.mark.parametrize("speed", THIRDS)
def test_a_controlled_stop_in_closed_form(speed: float) -> None:
    for stop in table().select(category=1, speed_share=speed):
        v = 1.5 * speed
        assert stop.time == pytest.approx(COMMAND + v / 5.0, rel=1e-7)
        assert stop.distance == pytest.approx(v * COMMAND + v**2 / 10.0, rel=1e-7)
        assert stop.reaction_time == pytest.approx(COMMAND, rel=1e-9)


def test_the_extension_of_one_axis_cannot_change() -> None:
    found = table().extensions["axis"]
    assert (found.least, found.largest) == pytest.approx((0.5, 0.5))
    assert list(found.poses) == [1.0]
    assert found.poses[1.0].motion == "horizontally"
    assert {stop.extension_share for stop in table().stops} == {1.0}
    assert "no pose with an extension of 33 %, 66 %" in str(table())


def test_payloads_that_are_solid_have_their_share_of_inertia() -> None:
    load = pl.Payload(4.0, com=(0.5, 0, 0), inertia=0.6 * np.eye(3), frame="wheel")
    found = annex_b(
        turntable(), brakes(axis=TORQUE), payload=load, categories=(0,), shares={0: (0.5, 1.0)}
    )
    (stop,) = found.select(payload_share=0.5, speed_share=1.0)
    inertia = 2.0 + 0.5 * (1.0 + 0.6)
    assert stop.time == pytest.approx(REACTION + inertia * 2.0 / TORQUE, rel=1e-7)


def test_without_payload() -> None:
    found = annex_b(turntable(), brakes(axis=TORQUE), payload=0, categories=(0,))
    (stop,) = found.stops
    assert stop.mass == 0 and found.extensions["axis"].largest == pytest.approx(0, abs=1e-12)
    assert stop.time == pytest.approx(REACTION + 2.0 * 2.0 / TORQUE, rel=1e-7)


@pytest.mark.parametrize("upwards", [1.0, -1.0])
def test_a_lift_goes_down_against_its_weight(upwards: float) -> None:
    """Mass 3 kg and 2 kg; the brake holds F = 90 N, of which the weight takes 5 g."""
    rail = made(
        [solid("lift", 3.0)],
        [joint("axis", "prismatic", "ground", "lift", [0, 0, 0], upwards * Z, **limits(-2, 2))],
    )
    load = pl.Payload(2.0, frame="lift")
    found = annex_b(rail, brakes(axis=90.0), payload=load, categories=(0,))
    (stop,) = found.stops
    assert stop.speed == pytest.approx(-2.0 * upwards)
    slow = 90.0 / 5.0 - G
    assert stop.time == pytest.approx(REACTION + 2.0 / slow, rel=1e-7)
    assert stop.distance == pytest.approx(2.0 * REACTION + 4.0 / (2 * slow), rel=1e-7)
    text = str(found.table(0))
    assert "[mm]" in text and f"{1e3 * stop.distance:.1f}" in text and "deg" not in text


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_beam_falls_from_the_level(sign: float) -> None:
    """I w^2 / 2 + m g l sin(a) = T (a - a0): from the level, where gravity pulls most."""
    length, mass, inertia, torque = 0.5, 4.0, 0.9, 40.0
    arm = made(
        [solid("beam", 1.0, [0, 0, 0], inertia)],
        [joint("axis", "revolute", "ground", "beam", [0, 0, 0], -sign * Y, **limits(-2, 2))],
    )
    load = pl.Payload(mass, com=(length, 0, 0), frame="beam")
    found = annex_b(arm, brakes(axis=torque), payload=load, categories=(0,))
    (stop,) = found.stops
    assert stop.pose.motion == "downwards"
    assert stop.pose.q == pytest.approx([0.0], abs=1e-6)
    assert stop.speed == pytest.approx(-2.0 * sign)
    whole, w, begin = inertia + mass * length**2, 2.0, 2.0 * REACTION

    def left(a: float) -> float:
        fall = mass * G * length * (math.sin(a) - math.sin(begin))
        return 0.5 * whole * w**2 + fall - torque * (a - begin)

    assert stop.distance == pytest.approx(brentq(left, begin, 2.0), rel=1e-6)


def test_an_axis_keeps_room_for_its_stop() -> None:
    """A beam that cannot pass the level far stops before its limit instead of from the level."""
    arm = made(
        [solid("beam", 1.0, [0, 0, 0], 0.9)],
        [joint("axis", "revolute", "ground", "beam", [0, 0, 0], Y, **limits(-1.5, 0.1))],
    )
    load = pl.Payload(2.0, com=(0.5, 0, 0), frame="beam")
    found = annex_b(arm, brakes(axis=30.0), payload=load, categories=(0,))
    (stop,) = found.stops
    end = stop.pose.q[0] + stop.distance
    assert stop.speed > 0 and stop.distance > 0.1
    assert 0.1 - 0.15 * stop.distance < end <= 0.1
    assert stop.passed == ()


def test_limits_that_are_passed_all_the_same_are_told() -> None:
    narrow = turntable(limits=limits(-0.05, 0.05)["limits"])
    found = annex_b(narrow, brakes(axis=TORQUE), payload=1.0, categories=(0,))
    (stop,) = found.stops
    (passed,) = stop.passed
    assert (passed.joint, passed.side) == ("axis", "upper")
    assert passed.by == pytest.approx(stop.pose.q[0] + stop.distance - 0.05, rel=1e-6)
    assert "passes the upper limit of joint 'axis'" in str(found)


# -- whole tables -------------------------------------------------------------------------------


def test_a_mirrored_robot_stops_alike() -> None:
    def stops(axis: Array) -> list[tuple[float, ...]]:
        found = annex_b(two_links(axis), brakes(j1=60.0, j2=25.0), payload=tip(), categories=(0,))
        return [(abs(stop.speed), stop.time, stop.distance) for stop in found.stops]

    one, other = stops(-Y), stops(Y)
    assert len(one) == 2
    assert np.array(one) == pytest.approx(np.array(other), rel=1e-5)


def test_the_time_is_that_of_all_joints() -> None:
    """The second joint comes loose while the first one stops, and stands later."""
    weak = brakes(j1=200.0, j2=6.5)
    found = annex_b(
        two_links(Z), weak, payload=tip(), axes=("j1",), categories=(0,), gravity=(0, 0, 0)
    )
    (stop,) = found.stops
    whole = found.again(stop)
    assert whole.joints["j2"].travel > 0.1
    assert stop.last == "j2"
    assert stop.time == whole.stopping_time == whole.joints["j2"].time
    assert whole.joints["j1"].time < 0.9 * stop.time
    assert "stopped; j2 comes to rest last" in str(found.table(0))
    assert stop.distance == abs(whole.joints["j1"].angle)


def test_given_poses_are_used() -> None:
    arm = two_links()
    given: Any = {"j1": {1.0: {"j1": np.pi - 3, "j2": 0.2}, 0.5: [0.3, 1.0]}}
    found = annex_b(
        arm, brakes(j1=60.0, j2=25.0), payload=tip(), axes=("j1",), categories=(0,),
        shares={0: (0.5, 1.0)}, extension_poses=given,
    )  # fmt: skip
    extension = found.extensions["j1"]
    for share, q in ((1.0, [np.pi - 3, 0.2]), (0.5, [0.3, 1.0])):
        pose = extension.poses[share]
        x, z = arm_by_hand(np.array(q))
        assert pose.given and pose.q == pytest.approx(q)
        assert pose.reached == pytest.approx(np.hypot(x[1], z[1]) / 1.1, rel=1e-5)
        assert pose.direction == -1.0  # raised by positive angles
        assert pose.fall == pytest.approx(x[1] / np.hypot(x[1], z[1]), rel=1e-5)
    assert "given" in str(found)


def test_tables_have_rows_of_speeds_and_columns_of_extensions() -> None:
    arm = two_links()
    found = annex_b(
        arm, brakes(j1={"dynamic_torque": 60.0, "deceleration": 4.0}, j2=25.0), payload=tip(),
        axes=("j1",), categories=(0, 1), shares={1: (0.5, 1.0)},
    )  # fmt: skip
    sheet = found.table(1, "j1")
    assert [block.title for block in sheet.blocks] == [
        "Category 1, axis j1, payload 100 % (2 kg)", "Category 1, axis j1, payload 50 % (1 kg)",
        "Cells that are alike",
    ]  # fmt: skip
    grid = sheet.blocks[1]
    for row, speed in zip(grid.rows, (0.5, 1.0), strict=True):  # type: ignore[union-attr]
        assert row[0].text.startswith(f"{100 * speed:g} % (")
        for k, extension in enumerate((0.5, 1.0)):
            (stop,) = found.select(
                category=1, speed_share=speed, extension_share=extension, payload_share=0.5
            )
            assert float(row[1 + k].text) == pytest.approx(np.degrees(stop.distance), abs=0.01)
            assert float(row[3 + k].text) == pytest.approx(1e3 * stop.time, abs=0.1)
    summary = found.table(0).blocks[0]
    (whole,) = found.select(category=0)
    (cells,) = summary.rows  # type: ignore[union-attr]
    reaction = np.degrees(whole.reaction_distance), 1e3 * whole.reaction_time
    total = np.degrees(whole.distance), 1e3 * whole.time
    for k, (first, all_of_it) in enumerate(zip(reaction, total, strict=True)):
        shown = [float(cell.text) for cell in cells[2 + 3 * k : 5 + 3 * k]]
        assert shown == pytest.approx([first, all_of_it - first, all_of_it], abs=0.06)
    again = found.again(stop)
    assert again.stopping_time == stop.time


@pytest.mark.parametrize(
    ("drive_torque", "why"),
    [
        (None, "at constant deceleration whatever torque that takes; give its drive_torque"),
        (300.0, "at constant deceleration, and has the torque for it in each of them"),
        (30.0, ""),
    ],
)
def test_cells_that_do_not_depend_on_payload_and_extension_say_why(
    drive_torque: float | None, why: str
) -> None:
    """Down with the tip heavy and far out, 30 N m do not keep the ramp of 4 rad/s^2."""
    first = {"dynamic_torque": 60.0, "deceleration": 4.0, "drive_torque": drive_torque}
    found = annex_b(
        two_links(), brakes(j1=first, j2=60.0), payload=tip(), axes=("j1",), categories=(1,),
        shares={1: (0.5, 1.0)},
    )  # fmt: skip
    text = " ".join(str(found.report()).split())
    sentence = "axis j1, category 1: payload and extension change nothing: its drive slows down"
    assert (sentence in text) == bool(why) and why in text
    times = {stop.time for stop in found.select(speed_share=1.0)}
    assert (max(times) - min(times) < 1e-9) == bool(why)


class Tables(HTMLParser):
    """Counts what is in a page."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[int] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        if tag == "table":
            self.rows.append(0)
        if tag == "tr" and self.rows:
            self.rows[-1] += 1


def test_files(tmp_path: Path) -> None:
    found = table()
    with found.to_csv(tmp_path / "stops.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(found.stops) == 2 * 9
    for row, stop in zip(rows, found.stops, strict=True):
        assert float(row["stopping_time_s"]) == stop.time
        assert float(row["stopping_distance_rad"]) == stop.distance
        assert row["stopping_distance_m"] == ""
        assert float(row["axis_pose_rad"]) == stop.pose.q[0]
        assert (row["outcome"], float(row["payload_kg"])) == ("stopped", stop.mass)
    page = found.to_html(tmp_path / "stops.html")
    assert (tmp_path / "stops.html").read_text(encoding="utf-8") == page
    parser = Tables()
    parser.feed(page)
    # Facts; three payloads per category, and poses, with two rows of headings; intervals.
    assert parser.rows == [5, *[5] * 6, 3, 3]
    assert "script" not in parser.tags
    # The icon that browsers would ask for otherwise.
    assert parser.tags.count("link") == 1 and '<link rel="icon" href="data:,">' in page
    text = found.to_markdown(tmp_path / "stops.md")
    assert text.count("| 33 % (") == 6 and "## Definitions" in text
    assert "stopping distance ext. 100 % \\[deg\\]" in text
    for sentence in ("from the signal until all joints are at rest", "not a safety certificate"):
        assert sentence in text and sentence in page


def test_guesses_are_said_first_with_the_intervals_that_follow() -> None:
    found = table()
    title = found.report().title
    assert title.text.endswith("; brake data are guesses") and title.mark == "caution"
    blocks = {block.title: block for block in found.report().blocks}
    intervals = blocks["95 % intervals, as brake data are uncertain"]
    assert isinstance(intervals, Table)
    (stop, result), _ = found.longest
    bands = result.bands(of=["stopping_time", "angle:axis"])
    assert stop.time == max(x.time for x in found.select(category=0)) == result.stopping_time
    assert [cell.text for cell in intervals.rows[0][2:4]] == [band.text for band in bands]
    one = annex_b(turntable(), brakes(axis=TORQUE), payload=1.0, categories=(0,))
    (summary,) = (block for block in one.report().blocks if block.title.startswith("Category 0"))
    assert isinstance(summary, Table) and summary.rows[0][-1] == Cell("stopped")


def test_names_cannot_break_a_page() -> None:
    odd = made(
        [solid("wheel", 1.0, inertia=2.0)],
        [joint("a|<b>", "revolute", "ground", "wheel", [0, 0, 0], Z, **limits(-3, 3))],
    )
    found = annex_b(odd, brakes(**{"a|<b>": TORQUE}), payload=1.0, categories=(0,))
    assert "<b>" not in found.to_html() and "a\\|\\<b\\>" in found.to_markdown()


# -- what cannot be -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"payload": None}, "largest payload of robot .* is not known"),
        ({"payload": -1.0}, "mass is -1.0"),
        ({"payload": "heavy"}, "payload is 'heavy'"),
        ({"payload": pl.Payload(1.0, frame="hand")}, "no body or frame 'hand'"),
        ({"axes": ("j3",)}, "no joint 'j3'"),
        ({"axes": ()}, "no driven joint"),
        ({"brakes": brakes(j1=60.0)}, "axis 'j2' .* has no brake"),
        ({"brakes": brakes(j1=60.0, j2={"kind": "none"})}, "axis 'j2' .* has no brake"),
        ({"speeds": {"j1": 0.0}}, "full speed of axis 'j1' .* is 0 rad/s"),
        ({"speeds": {"j7": 1.0}}, "speeds names 'j7'"),
        ({"extension_poses": {"j1": {0.5: [0, 0]}}}, "a pose for 0.5; the shares are"),
        ({"extension_poses": {"j1": {1.0: [0]}}}, "has 2 numbers"),
        ({"categories": ()}, "give at least one"),
        ({"categories": (0, pl.Category0())}, "each number once"),
        ({"categories": (3,)}, "category is 3"),
        ({"categories": (1,)}, "needs the deceleration of joint 'j1'"),
        ({"shares": {0: (0.0, 1.0)}}, "shares of category 0"),
        ({"gravity": (0, 0)}, "gravity has 3 numbers"),
        ({"until": -1.0}, "until is -1"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], sentence: str) -> None:
    usual: dict[str, Any] = {
        "payload": tip(),
        "categories": (0,),
        "brakes": brakes(j1=60.0, j2=25.0),
    }
    given = usual | arguments
    with pytest.raises(pl.PinloopError, match=sentence):
        annex_b(two_links(), given.pop("brakes"), **given)


def test_an_axis_whose_speed_is_not_known() -> None:
    bare = turntable(limits={"lower": -1, "upper": 1})
    with pytest.raises(pl.BadValue, match="full speed of axis 'axis'"):
        annex_b(bare, brakes(axis=TORQUE), payload=0)


def test_a_passive_joint_is_no_axis() -> None:
    with pytest.raises(pl.BadValue, match=r"axis 'forearm_hinge' .* is not driven"):
        annex_b(
            robot("palletizer"), URDF / "palletizer.brakes.yaml", payload=0, axes=("forearm_hinge",)
        )


def test_tables_that_were_not_asked_for() -> None:
    with pytest.raises(pl.BadValue, match="category 2 was not asked for"):
        table().table(2)
    with pytest.raises(pl.BadValue, match="axis 'j1' was not asked for"):
        table().table(0, "j1")


def test_a_robot_that_does_not_hold_is_a_row() -> None:
    arm = made(
        [solid("beam", 4.0, [0.5, 0, 0], 0.3)],
        [joint("axis", "revolute", "ground", "beam", [0, 0, 0], -Y, **limits(-2, 2))],
    )
    load = pl.Payload(1.0, com=(0.5, 0, 0), frame="beam")
    found = annex_b(arm, brakes(axis=5.0), payload=load, categories=(0,), until=0.3)
    (stop,) = found.stops
    assert stop.outcome == "does not hold"
    assert "does not hold" in str(found.table(0)) and "does not hold" in found.rows()[0].values()
