"""Tests of `pinloop.assembly.rounding`: what rounding took from a mechanism comes back, and
nothing else.

The mechanisms are written anew in frames of their own with 3 to 9 digits, and compared with what
they are with all digits.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import pinloop as pl
from pinloop.assembly.continuation import nearby_assembly
from pinloop.assembly.rounding.exact import (
    DEFAULT_TOLERANCE,
    with_exact_geometry,
    written_tolerance,
)
from pinloop.model.description import GROUND

from .. import rounded
from ..known_linkages import KNOWN, URDF, robot_called
from ..screw_tables import Array, joint, table

PAGE = Path(__file__).parents[2] / "docs" / "getting_started.md"
LOOPED = (
    "bricard", "fivebar", "fourbar", "palletizer", "prrr3", "sevenbar", "spherical_fourbar",
    "spherical_threebar", "stewart",
)  # fmt: skip
TURNED_ROCKER = (
    '<origin xyz="0.4 0 0" rpy="1.5708 0 0"/> <axis xyz="0 0 -1"/>',
    '<link2 link="rocker" xyz="0 0.3 0" rpy="-1.5708 0 0"/>',
)
"""The rocker of the page in the frame that an exporter gives it."""
HARDER = ("triple parallelogram", "hoberman 4", "universal delta", "4-UPU")
"""Geometries at which conditions are met to second order only: equal lengths bring them back."""

RIGID = "collinear three-bar"
"""A flat triangle: with other numbers it is another one, or none."""
EASIER = [name for name in KNOWN if name not in (*HARDER, RIGID)]


def crank(axis: str, link: str) -> str:
    found = re.search(r'<robot name="crank_rocker">.*?</robot>', PAGE.read_text(), re.DOTALL)
    assert found is not None
    text = found[0].replace('<origin xyz="0.4 0 0"/> <axis xyz="0 1 0"/>', axis)
    assert axis in text
    text, count = re.subn(r'<link2 link="rocker"[^>]*/>', link, text)
    assert count == 1
    return text


def numbers(robot: pl.Mechanism) -> tuple[int, int, int | None]:
    """Mobility, rank, and rows that regularization leaves."""
    report = pl.diagnose(robot)
    assert report.assembled
    return report.mobility, report.rank, report.reduced_rows


def closes(robot: pl.Mechanism, q: Array) -> float:
    return float(np.linalg.norm(pl.Constraints(robot, full=True).residual(q)))


def test_a_newcomers_first_file_closes() -> None:
    robot = pl.load(crank(*TURNED_ROCKER))
    assert numbers(robot) == (1, 2, 2)
    rounding = robot.description.rounding
    assert rounding is not None and rounding.tolerance == DEFAULT_TOLERANCE
    # 1.5708 is 3.67e-6 rad too much: no frame need turn by more, and the worst by half of it.
    assert 1e-6 < rounding.turn < 3.7e-6
    assert rounding.shift < 1e-6
    (warning,) = robot.warnings
    assert "closes; its numbers are rounded: joint frames moved by up to" in warning
    assert warning.endswith("; mobility 1")
    assert "tolerance 0.0001 rad" in str(pl.diagnose(robot))
    q = pl.assemble(robot, {"motor": 0.3})
    exact = pl.load(
        crank('<origin xyz="0.4 0 0"/> <axis xyz="0 1 0"/>', '<link2 link="rocker" xyz="0 0 0.3"/>')
    )
    assert np.allclose(q, pl.assemble(exact, {"motor": 0.3}), atol=1e-5)
    v, w = (pl.consistent_velocity(r, q, {"motor": 12.0}) for r in (robot, exact))
    assert np.allclose(v, w, atol=1e-3)


@pytest.mark.parametrize("tilt", [1e-11, 1e-9, 1e-7, 1e-5, 5e-5])
def test_any_tilt_below_the_tolerance_is_rounding(tilt: float) -> None:
    axis = f'<origin xyz="0.4 0 0" rpy="{tilt:.3e} 0 0"/> <axis xyz="0 1 0"/>'
    robot = pl.load(crank(axis, '<link2 link="rocker" xyz="0 1e-8 0.3"/>'))
    assert numbers(robot) == (1, 2, 2)
    assert closes(robot, pl.assemble(robot, {"motor": 1.0})) < 1e-12


@pytest.mark.parametrize("tilt", [4e-4, 1e-3])
def test_a_tilt_beyond_the_tolerance_is_none(tilt: float) -> None:
    axis = f'<origin xyz="0.4 0 0" rpy="{tilt} 0 0"/> <axis xyz="0 1 0"/>'
    text = crank(axis, '<link2 link="rocker" xyz="0 0 0.3"/>')
    assert pl.load(text).description.rounding is None
    assert not pl.diagnose(pl.load(text)).assembled
    assert numbers(pl.load(text, tolerance=1e-3)) == (1, 2, 2)


def test_what_is_closed_but_barely_held_is_told() -> None:
    # Hinges are drawn where they are, so that the loop is closed; one axis is 2e-3 rad off.
    entries = KNOWN["four-bar"][0]()
    for entry in entries["joints"]:
        if entry["name"] == "rocker":
            entry["axis"] = np.asarray(entry["axis"], float) + np.array([2e-3, 0, 0])
    report = pl.diagnose(pl.from_screws(entries))
    assert report.assembled and report.mobility == 0
    warning = report.warnings[-1]
    assert "is held by" in warning and "robot.fitted() moves them by up to" in warning
    assert "loading with tolerance=0.00" in warning
    assert numbers(pl.from_screws(entries).fitted()) == (1, 2, 2)


def test_a_tolerance_of_zero_takes_every_digit() -> None:
    robot = pl.load(crank(*TURNED_ROCKER), tolerance=0)
    assert robot.description.rounding is None
    assert not pl.diagnose(robot).assembled


@pytest.mark.parametrize("tolerance", [-1e-3, 1.0, float("nan"), "1e-4"])
def test_a_tolerance_is_a_small_number(tolerance: float) -> None:
    with pytest.raises(pl.BadValue, match="tolerance is"):
        pl.load(URDF / "fourbar.urdf", tolerance=tolerance)


@pytest.mark.parametrize("name", [*LOOPED, "delta"])
def test_exact_robots_stay_as_they_are(name: str) -> None:
    robot = pl.load(URDF / f"{name}.urdf", tolerance=0)
    assert with_exact_geometry(robot, DEFAULT_TOLERANCE) is robot


@pytest.mark.parametrize("count", [3, 4, 5, 6, 9])
@pytest.mark.parametrize("name", [*LOOPED, "delta"])
def test_shipped_robots_with_few_digits(name: str, count: int, tmp_path: Path) -> None:
    exact, error = robot_called(name), 10.0 ** (1 - count)
    rng = np.random.default_rng(count)
    path = rounded.saved_with_digits(
        rounded.in_other_frames(exact, rng), tmp_path / "robot.urdf", count
    )
    robot = pl.load(path)
    assert numbers(robot) == numbers(exact)
    rounding = robot.description.rounding
    assert rounding is None or rounding.turn < 4 * error
    # It moves as with all digits: where the exact one goes, this one goes but for rounding.
    start = pl.assemble(exact)
    there = nearby_assembly(exact, start, np.random.default_rng(0), reach=0.1)
    assert there is not None and np.abs(exact.difference(start, there)).max() > 0.01
    q = pl.assemble(robot, there, limits=False)
    assert np.abs(exact.difference(there, q)).max() < 20 * error


@pytest.mark.parametrize(("count", "frames"), [(3, 203), (3, 403), (3, 1103), (4, 904)])
def test_right_angles_lead_back_to_bricards_linkage(
    count: int, frames: int, tmp_path: Path
) -> None:
    # Equal angles alone do not: near a right angle more and less look the same.
    exact = rounded.in_other_frames(robot_called("bricard"), np.random.default_rng(frames))
    robot = pl.load(rounded.saved_with_digits(exact, tmp_path / "robot.urdf", count))
    assert numbers(robot) == (1, 4, 5)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("count", [3, 4])
@pytest.mark.parametrize("name", ["bennett", "goldberg"])
def test_what_rounding_holds_rigid_is_said_with_its_remedy(
    name: str, count: int, seed: int
) -> None:
    # A table has masses with all digits: nothing tells that its axes have few.
    table = rounded.table_with_digits(KNOWN[name][0](), np.random.default_rng(seed), count)
    robot, exact = pl.from_screws(table), robot_called(name)
    report = pl.diagnose(robot)
    if robot.description.rounding is not None:
        assert report.mobility == pl.diagnose(exact).mobility
        return
    assert report.mobility == 0
    assert f"loop '{robot.loops[0].name}' can be closed, but cannot move" in robot.warnings[-1]
    told = re.search(
        r"robot\.fitted\(\) moves them by up to .*, and it closes with mobility (\d+); so does "
        r"loading with tolerance=([\d.e-]+) \(--tolerance [\d.e-]+\)$",
        report.warnings[-1],
    )
    assert told is not None and int(told[1]) == pl.diagnose(exact).mobility
    assert numbers(pl.from_screws(table, tolerance=float(told[2]))) == numbers(exact)
    assert numbers(robot.fitted()) == numbers(exact)


def test_loops_that_are_open_are_not_said_to_be_rigid() -> None:
    tilt = np.array([0.0, 0.0, 0.0, 0.02, 0.0, 0.0])
    tilted = rounded.moved_frame(robot_called("fourbar"), "joint_1", tilt)
    assert not pl.diagnose(tilted).assembled
    assert not with_exact_geometry(tilted, DEFAULT_TOLERANCE).warnings


def test_a_structure_is_said_to_be_one() -> None:
    # Three bars hinged to a triangle.
    corners = [np.array(p, dtype=float) for p in ([0, 0, 0], [1, 0, 0], [0.3, 0.8, 0])]
    bodies = [GROUND, "a", "b", GROUND]
    joints = [
        joint(f"j{k}", "revolute", bodies[k], bodies[k + 1], corners[k], [0, 0, 1], cut=k == 2)
        for k in range(3)
    ]
    robot = pl.from_screws(table("triangle", *joints))
    sentence = "robot 'triangle': loop 'j2' can be closed, but cannot move (mobility 0)"
    assert sentence in robot.warnings
    report = pl.diagnose(robot)
    assert report.mobility == 0 and report.warnings == (sentence,)
    # Taken literally, too.
    assert sentence in pl.diagnose(pl.from_screws(table("triangle", *joints), tolerance=0)).warnings


@pytest.mark.parametrize("count", [3, 4, 6, 9])
@pytest.mark.parametrize("name", EASIER)
def test_known_linkages_with_few_digits(name: str, count: int) -> None:
    exact = robot_called(name)
    rng = np.random.default_rng(count)
    table = rounded.table_with_digits(KNOWN[name][0](), rng, count)
    robot = pl.from_screws(table, tolerance=max(DEFAULT_TOLERANCE, 3 * 10.0 ** (1 - count)))
    assert numbers(robot) == numbers(exact)


@pytest.mark.parametrize("name", HARDER)
def test_harder_linkages_come_back_by_equal_lengths(name: str, tmp_path: Path) -> None:
    exact = robot_called(name)
    for count in (5, 9):
        turned = rounded.in_other_frames(exact, np.random.default_rng(0))
        path = rounded.saved_with_digits(turned, tmp_path / "robot.urdf", count)
        robot = pl.load(path, tolerance=max(DEFAULT_TOLERANCE, 3 * 10.0 ** (1 - count)))
        assert robot.description.rounding is not None
        assert pl.diagnose(robot).mobility == pl.diagnose(exact).mobility


def test_a_run_of_a_rounded_robot_is_that_of_the_exact_one(tmp_path: Path) -> None:
    exact = robot_called("palletizer")
    path = rounded.saved_with_digits(exact, tmp_path / "robot.urdf", 6)
    robot = pl.load(path)
    turned = pl.load(
        rounded.saved_with_digits(
            rounded.in_other_frames(exact, np.random.default_rng(2)), tmp_path / "other.urdf", 6
        )
    )
    assert turned.description.rounding is not None
    runs = [pl.simulate(r, pl.assemble(r, {"shoulder": 0.3}), until=0.5) for r in (robot, turned)]
    ends = [run.q[-1] for run in runs]
    assert np.allclose(ends[0], ends[1], atol=1e-4)
    assert runs[1].closure().max() < 1e-10


@pytest.mark.parametrize("name", ["fourbar", "fivebar", "palletizer", "prrr3", "spherical_fourbar"])
def test_a_drawing_that_misses_is_fitted(name: str) -> None:
    exact = robot_called(name)
    drawn = rounded.drawn_off(exact, np.random.default_rng(1), 2e-3, 3e-3)
    assert not pl.diagnose(drawn).assembled
    robot = drawn.fitted()
    assert numbers(robot) == numbers(exact)
    rounding = robot.description.rounding
    assert rounding is not None
    # Of three frames that are off, moving one is enough: less than twice what they are off by.
    assert rounding.shift < 4e-3 and rounding.turn < 6e-3
    assert f"robot '{name}' was fitted: joint frames moved" in robot.warnings[-1]
    assert robot.fitted() is robot


def test_what_cannot_be_fitted_says_so() -> None:
    drawn = rounded.drawn_off(robot_called("fourbar"), np.random.default_rng(1), 2e-3, 3e-3)
    with pytest.raises(pl.LoopNotClosed, match=r"no change of its joint frames by up to 0\.0001"):
        drawn.fitted(1e-4)
    with pytest.raises(pl.BadValue, match="tolerance is 0"):
        drawn.fitted(0)


class TestWrittenDigits:
    """`written_tolerance`: a file whose numbers are all short was rounded."""

    @staticmethod
    def text(count: int, lines: int = 30) -> str:
        rng = np.random.default_rng(0)
        values = rng.uniform(-3, 3, size=(lines, 3))
        return "\n".join(
            f'<origin xyz="{" ".join(repr(rounded.digits(v, count)) for v in row)}"/>'
            for row in values
        )

    @pytest.mark.parametrize(("count", "tolerance"), [(3, 3e-2), (4, 3e-3), (5, 3e-4), (6, 1e-4)])
    def test_digits_tell_the_tolerance(self, count: int, tolerance: float) -> None:
        assert written_tolerance([self.text(count)]) == pytest.approx(tolerance)

    def test_one_long_number_is_enough_to_know_better(self) -> None:
        assert written_tolerance([self.text(3), '<mass value="1.234567"/>']) == DEFAULT_TOLERANCE

    def test_short_numbers_are_meant(self) -> None:
        text = '<origin xyz="0.3 0 0.25"/> <origin xyz="0.125 0 1" rpy="1.57 0 0"/>' * 20
        assert written_tolerance([text]) == DEFAULT_TOLERANCE

    def test_names_are_no_numbers(self) -> None:
        assert written_tolerance(["link_1.23 v2.345 " * 30]) == DEFAULT_TOLERANCE
