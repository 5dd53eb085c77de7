"""Tables of published stops: what a file may say, what is refused, and the stops that are made."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pinloop as pl

from ..stopping.robots_to_stop import brakes, on_axis, slider, train, wheel

URDF = Path(__file__).parents[3] / "urdf"


def written(folder: Path, text: str) -> Path:
    path = folder / "table.csv"
    path.write_text(text, encoding="utf-8")
    return path


def read(folder: Path, text: str) -> tuple[pl.safety.Measured, ...]:
    return pl.safety.StoppingTable.from_csv(written(folder, text)).rows


# -- files ----------------------------------------------------------------------------------------


def test_a_table_in_degrees_and_milliseconds(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "\ufeff# a remark, with a comma\n"
        "joint , speed_deg_per_s,time_ms,angle_deg,payload_kg,category,note,elbow_pose_deg\n"
        "\n"
        "pan,-90,250,45,5,1,first,-30\n"
        "lift,180,,22.5,,,,\n",
    )
    table = pl.safety.StoppingTable.from_csv(path)
    first, second = table.rows
    assert table.source == str(path)
    assert (first.joint, first.payload, first.category) == ("pan", 5.0, 1)
    assert first.speed == pytest.approx(-np.pi / 2) and first.time == pytest.approx(0.25)
    assert first.angle == pytest.approx(np.pi / 4)
    assert first.pose == pytest.approx({"elbow": -np.pi / 6})
    assert first.place == f"{path}:4"
    assert (second.time, second.pose, second.payload, second.category) == (None, {}, 0.0, 0)
    assert second.angle == pytest.approx(np.pi / 8) and second.numbers == 1


def test_a_table_in_si_units(tmp_path: Path) -> None:
    (row,) = read(tmp_path, "joint,speed_rad_per_s,time_s,angle_rad\na,3,0.5,0.75\n")
    rounding = {"time": 0.05, "angle": 0.005}
    assert row == pl.safety.Measured("a", 3.0, 0.5, 0.75, units={"a": "rad"}, rounding=rounding)
    assert row.shape == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("head", "cells", "speed", "way"),
    [
        ("speed_m_per_s,distance_m,b_pose_m", "2,0.25,0.1", 2.0, 0.25),
        ("speed_mm_per_s,distance_mm,b_pose_mm", "2000,250,100", 2.0, 0.25),
    ],
)
def test_axes_that_slide(tmp_path: Path, head: str, cells: str, speed: float, way: float) -> None:
    (row,) = read(tmp_path, f"joint,{head}\na,{cells}\n")
    assert (row.speed, row.angle) == pytest.approx((speed, way))
    assert row.pose == pytest.approx({"b": 0.1})
    assert row.units == {"a": "m", "b": "m"}


def test_units_may_differ_from_row_to_row(tmp_path: Path) -> None:
    text = "joint,speed_deg_per_s,speed_m_per_s,angle_deg,distance_m\na,90,,10,\nb,,2,,0.1\n"
    turns, slides = read(tmp_path, text)
    assert (turns.units, slides.units) == ({"a": "rad"}, {"b": "m"})
    assert (slides.speed, slides.angle) == (2.0, 0.1)


def test_names_of_joints_may_look_like_units(tmp_path: Path) -> None:
    (row,) = read(tmp_path, "joint,speed_m_per_s,arm_m_pose_m,x_deg_pose_deg\na,1,0.5,90\n")
    assert row.pose == pytest.approx({"arm_m": 0.5, "x_deg": np.pi / 2})


HEAD = "joint,speed_deg_per_s,time_s,angle_deg\n"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "table.csv: is empty"),
        ("# nothing\n\n", "table.csv: is empty"),
        (HEAD, "table.csv:1: has no row"),
        (HEAD + "\n# none\n", "table.csv:1: has no row"),
        ("speed_deg_per_s,time_s\n90,0.1\n", "table.csv:1: must name the columns joint and one"),
        ("joint,time_s\na,0.1\n", "it names 'joint', 'time_s'"),
        ("joint speed_deg_per_s\na 90\n", "separated by commas"),
        ("joint,speed_deg_per_s,colour\na,90,red\n", "table.csv:1: has the column 'colour'"),
        ("joint,speed_deg_per_s,pose_a\na,90,1\n", "has the column 'pose_a'"),
        ("joint,speed_deg_per_s,joint\na,90,b\n", "has the column 'joint' twice"),
        (HEAD + "a,fast,0.1,5\n", "table.csv:2: column 'speed_deg_per_s': 'fast' is not a number"),
        (HEAD + "a,90,nan,5\na,0,1,5\n", "table.csv:2: column 'time_s': 'nan' is not a number"),
        (HEAD + "a,90,0.1,inf\n", "column 'angle_deg': 'inf'"),
        (HEAD + "a,,0.1,5\n", "table.csv:2: gives no speed of joint 'a'"),
        (HEAD + ",90,0.1,5\n", "table.csv:2: names no joint"),
        (HEAD + "a,0,0.1,5\n", "table.csv:2: the speed of a stop of 'a' is 0"),
        (HEAD + "a,90,-0.1,5\n", "table.csv:2: the time of a stop of 'a' is -0.1"),
        (HEAD + "a,90,0,5\n", "the time of a stop of 'a' is 0"),
        (HEAD + "a,90,0.1,-5\n", "the angle of a stop of 'a' is"),
        (HEAD + "a,90,0.1,5,7\n", "table.csv:2: '7' stands in column 5, which has no name"),
        (HEAD + 'a,90,"0,1",5\n', "column 'time_s': '0,1' is not a number"),
        ("joint,speed_deg_per_s,payload_kg\na,90,-5\n", "the payload of a stop of 'a' is -5"),
        ("joint,speed_deg_per_s,category\na,90,0.5\n", "column 'category': 0.5 is not 0, 1 or 2"),
        ("joint,speed_deg_per_s,category\na,90,3\n", "column 'category': 3 is not 0, 1 or 2"),
        ("joint,speed_deg_per_s,time_s,time_ms\na,90,0.1,100\n", "gives both time_s and time_ms"),
        ("joint,speed_deg_per_s,distance_mm\na,90,5\n", "joint 'a' in both rad or deg and m or mm"),
        ("joint,speed_m_per_s,a_pose_deg\na,1,5\n", "joint 'a' in both rad or deg and m or mm"),
        ("joint,speed_m_per_s,b_pose_m,b_pose_mm\na,1,5,5\n", "gives the pose of joint 'b' twice"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, part: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(pl.LoadError) as caught:
        pl.safety.StoppingTable.from_csv(path)
    assert part in str(caught.value) and str(caught.value).startswith(str(path))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(pl.LoadError, match=r"nowhere\.csv: no such file"):
        pl.safety.StoppingTable.from_csv(tmp_path / "nowhere.csv")
    with pytest.raises(pl.LoadError, match="is a folder"):
        pl.safety.StoppingTable.from_csv(tmp_path)
    path = tmp_path / "picture.csv"
    path.write_bytes(b"\x89PNG\0\xff\xfe")
    with pytest.raises(pl.LoadError, match=r"picture\.csv: is not a text"):
        pl.safety.StoppingTable.from_csv(path)
    path.write_text('joint,speed_deg_per_s\n"' + "a" * 200_000, encoding="utf-8")
    with pytest.raises(pl.LoadError, match=r"picture\.csv:2: malformed CSV"):
        pl.safety.StoppingTable.from_csv(path)


# -- values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("numbers", "part"),
    [
        ({"speed": 0.0}, "speed"),
        ({"speed": np.nan}, "speed"),
        ({"time": 0.0}, "time"),
        ({"time": np.inf}, "time"),
        ({"angle": -0.1}, "angle"),
        ({"payload": -1.0}, "payload"),
        ({"category": 3}, "category"),
    ],
)
def test_bad_values(numbers: dict[str, Any], part: str) -> None:
    given: dict[str, Any] = {"joint": "axis", "speed": 1.0, "time": 0.1, "angle": 0.1} | numbers
    with pytest.raises(pl.BadValue, match=f"the {part} of a stop of 'axis' is"):
        pl.safety.Measured(**given)


def test_a_table_needs_rows() -> None:
    with pytest.raises(pl.BadValue, match="empty"):
        pl.safety.StoppingTable(())


def test_shapes_need_both_numbers() -> None:
    assert pl.safety.Measured("axis", -3.0, 0.2, 0.3).shape == pytest.approx(0.5)
    assert pl.safety.Measured("axis", 3.0, None, 0.3).shape is None
    assert pl.safety.Measured("axis", 3.0, 0.2, None).shape is None


# -- against a robot ------------------------------------------------------------------------------


def test_what_the_robot_does_not_have_is_told_with_its_line(tmp_path: Path) -> None:
    robot, by = wheel(), on_axis(dynamic_torque=4.0)
    for cells, part in (
        ("axos,1,", r"table\.csv:2: no joint 'axos'.*did you mean 'axis'"),
        ("axis,1,2", r"table\.csv:2: no joint 'elbow'"),
    ):
        path = written(tmp_path, f"joint,speed_rad_per_s,elbow_pose_rad\n{cells}\n")
        with pytest.raises(pl.LoadError, match=part):
            pl.safety.StoppingTable.from_csv(path).stops(robot, by)
    with pytest.raises(pl.UnknownName, match="axos"):
        pl.safety.StoppingTable((pl.safety.Measured("axos", 1.0, None, None),)).for_robot(robot)


def test_units_of_the_wrong_kind_of_joint(tmp_path: Path) -> None:
    path = written(tmp_path, "joint,speed_deg_per_s,distance_mm,speed_m_per_s\naxis,90,,\n")
    table = pl.safety.StoppingTable.from_csv(path)
    assert table.for_robot(wheel()) is table
    with pytest.raises(pl.LoadError, match=r"table\.csv:2: joint 'axis' slides, .* given in rad"):
        table.for_robot(slider())
    path.write_text("joint,speed_mm_per_s\naxis,90\n")
    with pytest.raises(pl.LoadError, match=r"joint 'axis' turns, .* given in m and"):
        pl.safety.StoppingTable.from_csv(path).stops(wheel(), on_axis(dynamic_torque=4.0))
    path.write_text("joint,speed_m_per_s,b_pose_deg\na,1,10\n")
    with pytest.raises(pl.LoadError, match="joint 'b' slides"):
        pl.safety.StoppingTable.from_csv(path).for_robot(train(1.0, 1.0))


def test_joints_with_several_freedoms_are_no_axes() -> None:
    floating = pl.load(URDF / "six_axis_arm.urdf", floating_base=True)
    row = pl.safety.Measured(floating.joints[0], 1.0, None, None)
    with pytest.raises(pl.BadValue, match="6 degrees of freedom"):
        row.check(floating)


# -- stops ----------------------------------------------------------------------------------------


def test_a_stop_has_the_speed_the_pose_and_the_payload() -> None:
    """Two carriages, b on a: a alone moves, and with it b and 3 kg more; time ``m v / F``."""
    robot, by = train(4.0, 1.0), brakes(a={"dynamic_torque": 16.0}, b={"dynamic_torque": 99.0})
    row = pl.safety.Measured("a", -2.0, None, None, pose={"b": 0.25}, payload=3.0)
    result = row.stop(robot, by)
    np.testing.assert_array_equal(result.run.q[0], [0.0, 0.25])
    np.testing.assert_array_equal(result.run.v[0], [-2.0, 0.0])
    assert result.joints["a"].time == pytest.approx(8.0 * 2.0 / 16.0)
    assert result.joints["a"].angle == pytest.approx(-8.0 * 4.0 / 32.0)


def test_a_stop_has_the_category() -> None:
    by = on_axis(dynamic_torque=40.0, deceleration=2.0)
    made = [
        pl.safety.Measured("axis", 3.0, None, None, category=k).stop(wheel(), by) for k in (0, 1, 2)
    ]
    assert [one.category.number for one in made] == [0, 1, 2]
    assert made[1].joints["axis"].time == pytest.approx(1.5)


def test_other_arguments_reach_the_stop() -> None:
    row, by = pl.safety.Measured("axis", 3.0, None, None), on_axis(dynamic_torque=4.0)
    assert row.stop(wheel(), by, until=0.1).outcome == "time-out"
    for name in ("payload", "category", "q", "trigger"):
        with pytest.raises(pl.BadValue, match=f"'{name}' is given by each row"):
            pl.safety.StoppingTable((row,)).stops(wheel(), by, **{name: 1})


def test_loops_are_closed_and_the_other_motors_rest() -> None:
    robot = pl.load(URDF / "palletizer.urdf")
    by = pl.Brakes.from_yaml(URDF / "palletizer.brakes.yaml")
    first, second = list(by.joints)[1:3]
    result = pl.safety.Measured(first, 0.5, None, None, pose={first: 0.3}).stop(robot, by)
    start = result.run(0.0)
    assert start.q[robot.coordinates(first).q] == pytest.approx([0.3])
    assert start.v[robot.coordinates(first).v] == pytest.approx([0.5])
    assert start.v[robot.coordinates(second).v] == pytest.approx([0.0], abs=1e-12)
    assert np.abs(pl.Constraints(robot).residual(start.q)).max() < 1e-8
    assert result.holds


def test_digits_tell_how_numbers_are_rounded(tmp_path: Path) -> None:
    text = "joint,speed_deg_per_s,time_ms,angle_deg,weight\na,90,300,16.50,\nb,90,3e2,,4\n"
    first, second = read(tmp_path, text)
    assert first.rounding == pytest.approx({"time": 0.5e-3, "angle": np.deg2rad(0.005)})
    assert (first.weight, second.weight) == (1.0, 4.0)
    assert second.rounding == pytest.approx({"time": 0.05})
    # Even within an interval: its half width over the square root of three.
    assert second.rounded == pytest.approx([0.05 / 0.3 / np.sqrt(3.0)])
    with pytest.raises(pl.LoadError, match=r"weight of a stop of 'a' is 0\.0; it must be above 0"):
        read(tmp_path, "joint,speed_deg_per_s,time_ms,weight\na,90,300,0\n")


def test_numbers_that_cannot_be_are_doubted_or_refused() -> None:
    """A time of 0.3 in a column of ms; a pose of 9000 deg."""
    seconds = pl.safety.Measured("joint_3", 1.0, 3e-4, 0.12, place="table.csv:7")
    assert "joint 'joint_3' goes 400 times as far" in seconds.doubt
    with pytest.raises(pl.LoadError, match=r"csv:7: .*goes 400 times as far"):
        pl.safety.StoppingTable((seconds,)).for_robot(pl.example("six_axis_arm"))
    plain = pl.safety.Measured("joint_3", 1.0, 0.3, 0.12)
    degrees = pl.safety.Measured("joint_3", 100.0, 0.3, None)
    for speed in (100.0, -100.0):
        with pytest.raises(pl.BadValue, match=r"moves at 100 rad/s at the signal, [\d.]+ times"):
            replace(degrees, speed=speed).check(pl.example("six_axis_arm"))
    replace(degrees, speed=10.0).check(pl.example("six_axis_arm"))
    assert plain.doubt == ""
    arm = pl.example("six_axis_arm")
    brakes = pl.Brakes.from_yaml(pl.example_file("six_axis_arm.brakes.yaml"))
    beyond = pl.safety.Measured("joint_2", 1.0, 0.3, 0.12, pose={"joint_3": 50.0 * np.pi})
    with pytest.raises(pl.BadValue, match="joint 'joint_3' at 9000 deg, outside its limits, -230"):
        beyond.stop(arm, brakes)
    compared = pl.safety.compare([plain.stop(arm, brakes)], pl.safety.StoppingTable((seconds,)))
    assert compared.warnings[0] == f"table.csv:7: {seconds.doubt}"
