"""Joints that are dragged: loops stay closed, motors stay where they are, ends are found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import pinloop as pl
from pinloop.show.scene import dragging
from pinloop.show.scene.dragging import Dragged, Slider

from ..fourbar_files import apart, fourbar

ROBOTS = Path(__file__).parents[2] / "urdf"


def dragged(name: str) -> Dragged:
    robot = pl.load(ROBOTS / f"{name}.urdf")
    return Dragged(robot, pl.assemble(robot))


def slider(robot: Dragged, label: str) -> Slider:
    return next(one for one in robot.sliders if one.label == label)


def gap(robot: pl.Mechanism, q: np.ndarray) -> float:
    """Largest distance between the two origins of a loop joint, and between its two axes."""
    found = [0.0]
    for loop in robot.loops:
        a, b = (robot.placement(q, f"{loop.name}/{side}") for side in "AB")
        found.append(float(np.linalg.norm(a.translation - b.translation)))
        if loop.pair.name == "revolute":
            found.append(float(np.linalg.norm(np.cross(a.rotation[:, 2], b.rotation[:, 2]))))
    return max(found)


@pytest.mark.parametrize("name", ["palletizer", "delta", "stewart", "fivebar", "bricard"])
def test_motors_move_one_by_one_and_loops_stay_closed(name: str) -> None:
    robot = dragged(name)
    motors = [one for one in robot.sliders if one.motor]
    given = {one.joint: float(robot.values(one.joint)[0]) for one in motors}
    for k, one in enumerate(motors):
        given[one.joint] += (-1) ** k * (0.05 if one.linear else 0.15)
        given[one.joint] = min(max(given[one.joint], one.low), one.high)
        assert robot.move(one, given[one.joint]) == ""
        assert gap(robot.robot, robot.q) < 1e-10
        for joint, value in given.items():
            assert robot.values(joint)[0] == pytest.approx(value, abs=1e-15)


@pytest.fixture
def bars(tmp_path: Path) -> Dragged:
    """Crank 0.3, coupler 0.6, rocker 0.4 m, axes 0.6 m apart."""
    path = fourbar(tmp_path)
    path.write_text(path.read_text().replace('lower="-3" upper="3"', 'lower="-9" upper="9"'))
    robot = pl.load(path)
    return Dragged(robot, pl.assemble(robot, fixed={"drive": -1.0}))


def test_a_loop_that_closes_no_further_stops_the_slider(bars: Dragged) -> None:
    # The rocker stops where crank and coupler are in one line. It is upright at zero and turns
    # about y, so that its angle from the way to the crank's axis is 90 degrees more.
    stretched = np.arccos((0.6**2 + 0.4**2 - (0.6 + 0.3) ** 2) / (2 * 0.6 * 0.4)) - np.pi / 2
    folded = np.arccos((0.6**2 + 0.4**2 - (0.6 - 0.3) ** 2) / (2 * 0.6 * 0.4)) - np.pi / 2
    swing = slider(bars, "swing")
    said = bars.move(swing, 2.5)
    assert "'swing' goes no further" in said
    assert bars.values("swing")[0] == pytest.approx(stretched, abs=2e-4)
    assert bars.values("swing")[0] <= stretched + 1e-9
    assert gap(bars.robot, bars.q) < 1e-10
    assert "no further" in bars.move(swing, -2.5)
    assert bars.values("swing")[0] == pytest.approx(folded, abs=2e-4)
    # And back again.
    assert bars.move(swing, (stretched + folded) / 2) == ""


@pytest.mark.parametrize("step", [0.1, 10.0])
def test_the_branch_of_the_assembly_stays(
    bars: Dragged, monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    monkeypatch.setattr(dragging, "_STEP", step)

    def side(robot: Dragged) -> float:
        """On which side of the line from knee to rocker's axis the two bars meet."""
        tip = robot.robot.placement(robot.q, "closer/B").translation
        knee = 0.3 * np.array([np.cos(robot.q[0]), 0, -np.sin(robot.q[0])])
        return float(np.cross(tip - knee, [0.6, 0, 0] - knee)[1])

    for angle in np.linspace(-4.0, 6.0, 9):
        moved = Dragged(bars.robot, bars.q)
        assert moved.move(slider(moved, "drive"), angle) == ""
        assert np.sign(side(moved)) == np.sign(side(bars))
        assert gap(moved.robot, moved.q) < 1e-10


def test_a_limit_of_another_joint_is_named() -> None:
    robot = dragged("palletizer")
    said = robot.move(slider(robot, "bracket_hinge"), 3.0)
    limits = robot.robot.model
    at = robot.robot.coordinates("elbow").q.start
    assert robot.values("bracket_hinge")[0] == pytest.approx(
        -limits.lowerPositionLimit[at], abs=2e-3
    )
    assert "goes no further" in said and "'elbow' at its limit" in said


def test_values_beyond_the_ends_are_the_ends() -> None:
    robot = dragged("six_axis_arm")
    first = slider(robot, "joint_1")
    model = robot.robot.model
    assert (first.low, first.high) == (model.lowerPositionLimit[0], model.upperPositionLimit[0])
    assert robot.move(first, 99.0) == ""
    assert robot.values("joint_1")[0] == first.high


def test_ball_joints_turn_by_rotation_vectors() -> None:
    robot = dragged("delta")
    at = robot.robot.coordinates("elbow_1a")
    column = next(one for one in robot.sliders if one.joint == "elbow_1a" and one.column == 2)
    before = robot.values("elbow_1a")
    assert robot.move(column, before[2] + 0.2) == ""
    assert gap(robot.robot, robot.q) < 1e-10
    # A quaternion (x, y, z, w) of a turn by |r| about r, half the angle in it.
    wanted = before + np.array([0.0, 0.0, 0.2])
    angle = np.linalg.norm(wanted)
    expected = np.append(np.sin(angle / 2) * wanted / angle, np.cos(angle / 2))
    assert_allclose(robot.q[at.q], expected, atol=1e-12)


def test_what_the_loops_decide_is_said() -> None:
    # Three balls in a triangle: a bar turns about its own axis and swings, but keeps its angle.
    robot = dragged("spherical_threebar")
    before = robot.q.copy()
    last = [one for one in robot.sliders if one.joint == "ball_1"][2]
    assert "loops determine" in robot.move(last, 0.3)
    assert_allclose(robot.q, before, atol=1e-9)


def test_open_loops_move_joint_by_joint(tmp_path: Path) -> None:
    robot = pl.load(apart(tmp_path))
    q = robot.configuration({"drive": 0.2})
    open_bars = Dragged(robot, q)
    assert not open_bars.is_closed()
    assert "loops are open" in open_bars.move(slider(open_bars, "knee"), 0.7)
    assert_allclose(open_bars.q, robot.configuration({"drive": 0.2, "knee": 0.7}), atol=1e-12)


def test_open_loops_close_where_they_can(tmp_path: Path) -> None:
    robot = pl.load(fourbar(tmp_path))
    bars = Dragged(robot, robot.neutral)
    assert gap(robot, bars.q) > 0.1
    assert bars.move(slider(bars, "drive"), -0.8) == ""
    assert gap(robot, bars.q) < 1e-10
    assert bars.values("drive")[0] == -0.8


def test_a_turn_without_end_is_an_angle(tmp_path: Path) -> None:
    path = fourbar(tmp_path)
    path.write_text(
        path.read_text().replace('"drive" type="revolute"', '"drive" type="continuous"')
    )
    robot = pl.load(path)
    bars = Dragged(robot, pl.assemble(robot, fixed={"drive": -1.0}))
    drive = slider(bars, "drive")
    assert (drive.low, drive.high) == (-np.pi, np.pi)
    assert bars.move(drive, 1.2) == ""
    assert bars.values("drive")[0] == pytest.approx(1.2, abs=1e-12)
    assert gap(robot, bars.q) < 1e-10
