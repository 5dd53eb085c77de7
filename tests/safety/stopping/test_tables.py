"""The table of a stop: its numbers against closed forms, what it assumes and what it warns of."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pinloop as pl
from pinloop.safety.brakes.joint_brake import Source
from pinloop.tables.number_format import decimals, milliseconds, number
from pinloop.tables.report import Report, Table

from .robots_to_stop import (
    arm_table,
    brakes,
    carriages,
    lift_with_beam,
    on_axis,
    pendulum,
    slider,
    two_links,
    wheel,
)
from .robots_to_stop import stop as stopped

URDF = Path(__file__).parents[3] / "urdf"
CHAIN = pl.safety.Chain(sensor=0.02, controller=0.03, drive_off=0.01)


def grid_of(table: Report, title: str) -> dict[str, list[str]]:
    """Rows of the table whose title begins so, by their first cell."""
    (block,) = (b for b in table.blocks if b.title.startswith(title))
    assert isinstance(block, Table)
    return {row[0].text: [cell.text for cell in row[1:]] for row in block.rows}


def columns_of(table: Report, title: str) -> list[tuple[str, str, str]]:
    (block,) = (b for b in table.blocks if b.title.startswith(title))
    assert isinstance(block, Table)
    return [(column.group, column.heading, column.unit) for column in block.columns]


# -- numbers --------------------------------------------------------------------------------


def test_a_wheel_in_degrees_and_milliseconds() -> None:
    """3 rad/s for 50 + 10 ms, then ``I v / T`` = 2 * 3 / 4 s: 1.5 s, 2.25 rad."""
    by = on_axis(CHAIN, dynamic_torque=4.0, delay=0.01, peak_gear_torque=5.0)
    table = stopped(wheel(2.0), 3.0, by).table()
    assert columns_of(table, "Joints: time and angle") == [
        ("", "joint", ""),
        ("", "start", "deg"),
        *[("time", part, "ms") for part in ("reaction", "braking", "total")],
        *[("angle", part, "deg") for part in ("reaction", "braking", "total")],
    ]
    start, *numbers = grid_of(table, "Joints: time")["axis"]
    assert start == "0.0"
    expected = [60.0, 1500.0, 1560.0, np.degrees(0.18), np.degrees(2.25), np.degrees(2.43)]
    assert [float(x) for x in numbers] == pytest.approx(expected, abs=0.051)
    loads = grid_of(table, "Joints: loads")["axis"]
    # Speed at the signal and peak [deg/s], torque, energy, gear, slips, margin, state.
    assert [float(x) for x in loads[:4]] == pytest.approx(
        [np.degrees(3.0), np.degrees(3.0), 4.0, 9.0], abs=0.051
    )
    # The brake at the joint itself loads no gear; nothing pulls at the wheel in the end.
    assert loads[4:] == ["0", "0", ">1000", "held"]
    assert ("", "peak torque", "N m") in columns_of(table, "Joints: loads")
    title = "mechanism: stopped after 1560 ms (520 to 5000 ms), and holds; brake data are guesses"
    assert (table.title.text, table.title.mark) == (title, "caution")


def test_a_carriage_in_millimetres_and_newtons() -> None:
    """0.5 m/s, 2 kg, 20 N: 50 ms and 12.5 mm."""
    table = stopped(slider(2.0), -0.5, on_axis(dynamic_torque=20.0)).table()
    ways = grid_of(table, "Joints: time and displacement")["axis"]
    assert [float(x) for x in ways] == pytest.approx([0, 0, 50, 50, 0, -12.5, -12.5], abs=0.0051)
    loads = grid_of(table, "Joints: loads")["axis"]
    assert [float(x) for x in loads[:4]] == pytest.approx([-500, 500, 20, 0.25], abs=0.0051)
    headings = columns_of(table, "Joints: loads")
    assert ("speed", "peak", "mm/s") in headings and ("", "peak force", "N") in headings
    tool = grid_of(table, "Tool")["carriage"]
    assert [float(x) for x in tool] == pytest.approx([0, 12.5, 12.5, 12.5, 500], abs=0.0051)
    assert columns_of(table, "Tool")[-1] == ("", "peak speed", "mm/s")


def test_turning_and_sliding_joints_have_tables_of_their_own() -> None:
    by = brakes(lift={"dynamic_torque": 90.0}, beam={"dynamic_torque": 30.0})
    table = stopped(lift_with_beam(4.0, 2.0, 0.5, 0.7), [0.5, 1.0], by).table()
    assert list(grid_of(table, "Joints that slide: time")) == ["lift"]
    assert list(grid_of(table, "Joints that turn: time")) == ["beam"]
    assert columns_of(table, "Joints that slide: time")[1] == ("", "start", "mm")
    assert float(grid_of(table, "Joints that slide: loads")["lift"][0]) == 500.0
    assert float(grid_of(table, "Joints that turn: loads")["beam"][0]) == pytest.approx(
        57.3, abs=0.06
    )


def test_the_energy_adds_up() -> None:
    """Half of 2.5 * 9 J of motion becomes heat in brake and friction, 4 to 1 by their torques."""
    result = stopped(wheel(2.5), 3.0, on_axis(dynamic_torque=4.0, coulomb=1.0))
    rows = {name: float(cells[0]) for name, cells in grid_of(result.table(), "Energy").items()}
    assert rows["kinetic energy at the signal"] == pytest.approx(11.25, abs=0.0051)
    assert rows["brake"] == pytest.approx(9.0, abs=0.0051)
    assert rows["dry friction"] == pytest.approx(2.25, abs=0.0051)
    assert rows["in"] == rows["out"] == pytest.approx(11.25, abs=0.0051)
    assert abs(rows["energy balance error"]) < 1e-6
    assert set(rows) >= {"viscous friction", "short circuit", "gear losses", "impacts"}


def test_the_work_of_drives_is_what_they_put_in() -> None:
    """Held at 3 rad/s against 0.5 N m; or braked by drives from 9 J, friction helps."""
    result = stopped(wheel(2.0), 3.0, on_axis(CHAIN, dynamic_torque=4.0, coulomb=0.5))
    rows = grid_of(result.table(), "Energy")
    # The brake of 4 N m acts from the command at 50 ms on, the drives hold against it until 60 ms.
    work = 3.0 * (0.5 * 0.05 + 4.5 * 0.01)
    assert float(rows["work done by the drives"][0]) == pytest.approx(work, abs=0.0051)
    by = on_axis(dynamic_torque=4.0, coulomb=0.5, deceleration=6.0)
    rows = grid_of(stopped(wheel(2.0), 3.0, by, category=2).table(), "Energy")
    # The way is v^2 / 2 a = 0.75 rad.
    assert float(rows["work done by the drives"][0]) == pytest.approx(-(9.0 - 0.375), abs=0.0051)


def test_figures() -> None:
    assert [number(x, 1) for x in (-0.04, 0.04, -0.06, 12.34)] == ["0.0", "0.0", "-0.1", "12.3"]
    assert [decimals([x]) for x in (1234.0, 12.34, 0.01234, 99999.0, 0.0)] == [0, 2, 5, 0, 1]
    assert decimals([np.inf, 12.0, -123.0]) == 1
    assert [milliseconds(x) for x in (0.005, 0.2351964, 12.0)] == ["5 ms", "235.2 ms", "12 s"]


def test_what_is_rounded_to_zero_has_no_sign_and_loads_that_are_rounding_no_margin() -> None:
    table = stopped(carriages(1.0, 2.0), [1.0, -1e-9], brakes(
        a={"dynamic_torque": 5.0}, b={"dynamic_torque": 5.0})).table()  # fmt: skip
    assert "-0.0" not in re.sub(r"-0\.0*[1-9]", "", str(table).split("Energy")[0])
    assert grid_of(table, "Joints: loads")["b"][-2:] == [">1000", "held"]


def test_a_way_to_and_fro_is_told_if_it_is_one() -> None:
    """Raised against gravity, the beam comes back before its brake acts."""
    up = stopped(pendulum(), 1.5, on_axis(dynamic_torque=60.0, delay=0.4))
    assert ("", "travel", "deg") in columns_of(up.table(), "Joints: time")
    one = up.joints["axis"]
    shown = float(grid_of(up.table(), "Joints: time")["axis"][-1])
    assert shown == pytest.approx(np.degrees(one.travel), abs=0.051)
    assert one.travel > abs(one.angle) + 0.01
    straight = stopped(pendulum(), 1.5, on_axis(dynamic_torque=60.0))
    assert not any("travel" in name for _, name, _ in columns_of(straight.table(), "Joints: time"))


def test_the_load_of_a_gear_against_its_limit() -> None:
    """A brake of 3 N m at the motor, behind a gear of 10, stops a wheel with 30 N m."""
    by = on_axis(side="motor", gear_ratio=10.0, dynamic_torque=3.0, peak_gear_torque=40.0)
    result = stopped(wheel(), 2.0, by)
    assert grid_of(result.table(), "Joints: loads")["axis"][4] == "75"
    assert not [text for text in result.warnings if "gear" in text]
    weak = replace(by, joints={"axis": replace(by.joints["axis"], peak_gear_torque=20.0)})
    result = stopped(wheel(), 2.0, weak)
    assert grid_of(result.table(), "Joints: loads")["axis"][4] == "150"
    assert "the gear of joint 'axis' carries 30 N m, more than the 20 N m that it may" in (
        result.warnings
    )


def test_large_torques_are_told_in_full() -> None:
    """A tooth takes 2 kg m^2 at 10 rad/s within 1 ms: 20,000 N m. A hoist of 2 t: 19,620 N."""
    by = on_axis(kind="tooth", peak_gear_torque=15_000.0, impact_time=0.001)
    told = stopped(wheel(2.0), 10.0, by).warnings
    assert "the gear of joint 'axis' carries 20000 N m, more than the 15000 N m that it may" in told
    falls = stopped(slider(2000.0, np.pi / 2), -0.1, on_axis(dynamic_torque=12_500.0), until=0.1)
    (sentence,) = (text for text in falls.warnings if "not held" in text)
    assert "holding takes 19620 N, its brake, friction and drive hold 12500 N" in sentence


# -- headline -------------------------------------------------------------------------------


def facts(result: pl.StopResult) -> str:
    return re.sub(r"\s+", " ", result.table().text().split("\n\n")[1])


def test_the_headline_says_what_was_stopped() -> None:
    by = on_axis(CHAIN, dynamic_torque=90.0, delay=0.01, tolerance=0.1).at_band(-1)
    by = by.late("axis", 0.02)
    text = facts(stopped(pendulum(), 1.0, by, payload=2.5, gravity=[0, 0, -3.7]))
    assert "category 0: power off and brakes at once" in text
    assert "sensor 20 ms + controller 30 ms = command at 50 ms" in text
    assert "drives off at 60 ms" in text
    assert "= 80 ms reaction +" in text  # 50 + 10 + 20
    assert "gravity (0, 0, -3.7) m/s^2" in text
    assert "payload 2.5 kg, centre of mass at (0, 0, 0) mm in beam" in text
    assert "at the low end of their bands" in text
    assert "fault brake of axis late by 0.02 s" in text


def test_a_payload_off_centre() -> None:
    robot = pl.load(URDF / "six_axis_arm.urdf")
    load = pl.Payload(4.0, com=[0.1, 0, -0.02], frame="tool0")
    result = pl.stop(
        robot,
        robot.neutral,
        np.full(6, 0.1),
        brakes=URDF / "six_axis_arm.brakes.yaml",
        payload=load,
    )
    assert "4 kg, centre of mass at (100, 0, -20) mm in tool0" in facts(result)
    elsewhere = pl.stop(
        robot, robot.neutral, np.full(6, 0.1), brakes=URDF / "six_axis_arm.brakes.yaml",
        payload=pl.Payload(4.0, com=[0.1, 0, 0.2], frame="upper_arm"),
    )  # fmt: skip
    assert "4 kg, centre of mass at (100, 0, 200) mm in upper_arm" in facts(elsewhere)


def test_controlled_stops_say_how() -> None:
    by = on_axis(dynamic_torque=9.0, deceleration=10.0)
    first = stopped(wheel(), 1.0, by, category=pl.Category1(on_path=True, time_limit=2.0))
    assert "on the path" in facts(first) and "brakes after 2000 ms in any case" in facts(first)
    second = stopped(wheel(), 1.0, by, category=2)
    assert "2: drives bring the robot to rest and hold it" in facts(second)
    assert "path" not in facts(second) and "without torque" not in facts(second)


def test_what_does_not_hold_and_what_does_not_stop_is_seen() -> None:
    """10 kg at 0.5 m pull with 49 N m at a brake of 20 N m."""
    falls = stopped(pendulum(10.0, 0.5, 3.0), 0.0, on_axis(dynamic_torque=20.0), until=0.3)
    table = falls.table()
    assert (table.title.text, table.title.mark) == (
        "mechanism: DOES NOT HOLD; brake data are guesses", "bad",
    )  # fmt: skip
    sentence = next(text for text in falls.warnings if "not held" in text)
    torque = 10.0 * 9.81 * 0.5 * np.cos(falls.run.q[-1, 0])
    assert f"{abs(torque):.3g}"[:2] in sentence and "hold 20 N m" in sentence
    slow = stopped(wheel(5.0), 9.0, on_axis(dynamic_torque=1.0), until=0.25)
    assert slow.table().title.text == "mechanism: NOT STOPPED within 250 ms; brake data are guesses"
    assert slow.table().title.mark == "bad"
    assert "did not stop within 250 ms" in slow.warnings[0]


# -- assumptions ----------------------------------------------------------------------------


def assumed(result: pl.StopResult) -> list[str]:
    (block,) = (b for b in result.table().blocks if b.title.startswith("Assumptions"))
    return [item.replace("\N{NO-BREAK SPACE}", " ") for item in block.items]  # type: ignore[union-attr]


def test_assumptions_are_grouped() -> None:
    common = {"dynamic_torque": 50.0, "delay": 0.03, "peak_gear_torque": 9.0}
    by = brakes(CHAIN, j1={**common, "rise": 0.01}, j2={**common, "rise": 0.02})
    source: dict[str, Source] = {"delay": "published", "dynamic_torque": "measured"}
    joints = {n: replace(b, sources={**b.sources, **source}) for n, b in by.joints.items()}
    lines = assumed(stopped(two_links(), [0.2, 0.1], replace(by, joints=joints)))
    assert "guessed, chain: sensor 20 ms, controller 30 ms, drive_off 10 ms" in lines
    assert "guessed, all joints: side joint, peak_gear_torque 9 N m" in lines
    assert "guessed, rise [ms]: 10 (j1), 20 (j2)" in lines
    assert "published, all joints: delay 30 ms" in lines
    assert "measured, all joints: dynamic_torque 50 N m" in lines
    (default,) = [line for line in lines if line.startswith("not given")]
    assert "efficiency 1" in default and "static_torque 50 N m" in default
    assert "deceleration" not in default and "drive_torque" not in default


def test_what_only_controlled_stops_need_is_told_there() -> None:
    by = on_axis(dynamic_torque=9.0, deceleration=10.0)
    (line,) = [x for x in assumed(stopped(wheel(), 1.0, by, category=2)) if "deceleration 10" in x]
    assert "deceleration 10 rad/s^2" in line
    assert any("drive_torque not limited" in x for x in assumed(
        stopped(wheel(), 1.0, by, category=2)))  # fmt: skip


def test_many_different_values_become_a_range() -> None:
    robot = pl.from_screws(arm_table(np.random.default_rng(3), 7))
    torques = [300.0, 900.0, 250.0, 400.0, 350.0, 310.0, 280.0]
    joints = {f"j{k + 1}": {"dynamic_torque": torque} for k, torque in enumerate(torques)}
    lines = assumed(stopped(robot, np.full(7, 0.1), brakes(**joints)))
    assert "guessed, dynamic_torque [N m]: 250 to 900 (7 joints)" in lines
    six = brakes(**{n: {"dynamic_torque": 10.0 + k} for k, n in enumerate("abcdef")})
    lines = assumed(stopped(carriages(*range(1, 7)), np.ones(6), six))
    assert "guessed, dynamic_torque [N]: 10 (a), 11 (b), 12 (c), 13 (d), 14 (e), 15 (f)" in lines


def test_times_of_the_trigger_are_those_that_are_told() -> None:
    by = on_axis(replace(CHAIN, sources={"sensor": "measured"}), dynamic_torque=4.0)
    result = stopped(wheel(), 1.0, by, trigger=pl.safety.Trigger(sensor=0.2))
    lines = assumed(result)
    assert any(line.startswith("guessed, chain:") and "sensor 200 ms" in line for line in lines)
    assert not any("sensor 20 ms" in line for line in lines)


def test_rotors_behind_lossy_gears_are_those_of_the_file(tmp_path: Path) -> None:
    """An armature of 0.5 kg m^2 at the joint is a rotor of 0.5 / 10^2 at the motor."""
    text = (URDF / "planar_3r.urdf").read_text()
    text = re.sub(r"<dynamics[^>]*/>", "", text)
    text = text.replace("</joint>", '<dynamics armature="0.5"/></joint>')
    (tmp_path / "arm.urdf").write_text(text)
    robot = pl.load(tmp_path / "arm.urdf")
    gear = pl.safety.JointBrake(gear_ratio=10.0, efficiency=0.8, dynamic_torque=90.0)
    by = pl.Brakes(dict.fromkeys(robot.joints, gear))
    result = pl.stop(robot, robot.neutral, np.full(3, 0.01), brakes=by)
    rows = [row for row in result.assumptions if row.parameter == "rotor_inertia"]
    assert [row.value for row in rows] == pytest.approx([0.005] * 3)


# -- warnings -------------------------------------------------------------------------------


def test_limits_that_are_passed() -> None:
    robot = pl.load(URDF / "six_axis_arm.urdf")
    high = float(robot.model.upperPositionLimit[0])
    q = robot.configuration({"joint_1": high - np.radians(1.0)})
    v = robot.velocity({"joint_1": 1.1 * float(robot.model.upperVelocityLimit[0])})
    result = pl.stop(robot, q, v, brakes=URDF / "six_axis_arm.brakes.yaml")
    (position,) = [x for x in result.warnings if "'joint_1' passes its upper limit" in x]
    # 220 deg/s cover one degree in 4.545 ms.
    assert "limit of 160 deg after 4.5" in position and "end stop" in position
    beyond = np.degrees(result.joints["joint_1"].excursion) - 1.0
    assert f"by {beyond:.1f} deg at most" in position
    (speed,) = [x for x in result.warnings if "'joint_1' is faster" in x]
    assert "velocity limit of 200 deg/s at the signal, by 20.0 deg/s at most" in speed
    back = pl.stop(robot, robot.neutral, -v, brakes=URDF / "six_axis_arm.brakes.yaml")
    assert speed in back.warnings


def test_joints_that_nothing_stops() -> None:
    robot = carriages(1.0, 2.0)
    result = stopped(robot, [1.0, 0.0], brakes(a={"dynamic_torque": 3.0}))
    assert any("given for b: taken as passive" in text for text in result.warnings)


def test_brakes_of_another_robot_and_suspicious_numbers() -> None:
    by = replace(on_axis(dynamic_torque=3.0, delay=0.8), robot="other")
    result = stopped(wheel(), 1.0, by)
    assert "the brakes were made for robot 'other', not for 'mechanism'" in result.warnings
    assert any("delay is 0.8 s" in text for text in result.warnings)
    assert any("peak_gear_torque of axis is not known" in text for text in result.warnings)


def test_a_robot_at_rest() -> None:
    result = stopped(wheel(), 0.0, on_axis(dynamic_torque=3.0))
    assert "nothing moved when the signal came" in result.warnings
    assert result.table().title.text == (
        "mechanism: stopped after 0 ms, and holds; brake data are guesses"
    )


def test_nothing_odd_is_no_block_of_warnings() -> None:
    result = stopped(wheel(), 1.0, on_axis(dynamic_torque=3.0, peak_gear_torque=9.0))
    assert result.warnings == ()
    assert "Warnings" not in str(result.table())


def test_the_table_says_that_it_is_no_certificate() -> None:
    text = re.sub(r"\s+", " ", str(stopped(wheel(), 1.0, on_axis(dynamic_torque=3.0)).table()))
    assert "planning aid, not a safety certificate" in text
