"""Errors that robots of other people have: rods that differ, axes that nearly meet."""

from __future__ import annotations

import re

import numpy as np
import pytest

import pinloop as pl
from pinloop.assembly.open_loops import _gap
from pinloop.assembly.rounding.exact import DEFAULT_TOLERANCE, with_exact_geometry
from pinloop.model.description import GROUND

from .. import mechanisms as m
from .. import rounded
from ..known_linkages import robot_called
from ..screw_tables import Array, Table, joint, limited, table


def neck(turn: float) -> Table:
    """A head on three equal bars whose plate is drawn turned: two rods with two balls at each end.

    One rod is drawn longer by as much as the other one is shorter, so that the loops open by the
    square of the turn only, wherever the head goes.

    Args:
        turn: angle of the plate [rad].
    """
    up, side = np.array([-0.027, 0.0, 0.0326]), np.array([0.0072, 0.0, 0.0019])
    c, s = np.cos(turn), np.sin(turn)
    turned = np.array([c * side[0] + s * side[2], 0.0, c * side[2] - s * side[0]])
    joints = [
        joint("yaw", "revolute", GROUND, "base", [0, 0, 0], m.Z),
        joint("pitch", "revolute", "base", "head", [0, 0, 0], m.Y),
        joint("plate", "revolute", "head", "plate", up, m.Y),
    ]
    for name, sign in (("front", 1.0), ("back", -1.0)):
        joints.append(joint(name, "revolute", "plate", name, up + sign * turned, m.Y))
        for k in range(2):
            point = sign * side + [0, 0.1 * k, 0]
            joints.append(joint(f"{name}{k}", "spherical", name, "base", point, cut=True))
    return table("neck", *joints)


def mobility(robot: pl.Mechanism) -> int:
    report = pl.diagnose(robot)
    assert report.assembled
    return report.mobility


def test_rods_that_differ_in_length_are_made_equal() -> None:
    assert mobility(pl.from_screws(neck(0.0), tolerance=0)) == 2
    drawn = neck(3e-3)
    assert pl.diagnose(pl.from_screws(drawn, tolerance=0)).mobility != 2
    robot = pl.from_screws(drawn)
    assert mobility(robot) == 2
    rounding = robot.description.rounding
    # The ends of the rods are 3e-3 * 7.4 mm off; half of that at each end is enough.
    assert rounding is not None and 5e-6 < rounding.shift < 2.3e-5
    constraints = pl.Constraints(robot, full=True)
    for pitch in (-0.5, 0.2, 0.7):
        q = pl.assemble(robot, {"pitch": pitch, "yaw": 0.4})
        assert np.linalg.norm(constraints.residual(q)) < 1e-11


@pytest.mark.parametrize("gap", [4.5e-9, 1e-6, 2e-5])
def test_axes_of_a_wrist_that_nearly_meet(gap: float) -> None:
    rng = np.random.default_rng(5)
    entries = m.spherical_four_bar()
    for entry in entries["joints"]:
        entry["point"] = np.asarray(entry["point"], float) + gap * rng.uniform(-1, 1, 3)
    robot = pl.from_screws(entries)
    assert mobility(robot) == 1
    # As written it moves by what the ranks of `diagnose` take for nothing, if at all.
    strict = pl.from_screws(entries, tolerance=0)
    assert pl.diagnose(strict).mobility == int(gap < 1e-8)
    assert pl.diagnose(robot).reduced_rows == 2
    rows = pl.diagnose(strict).reduced_rows
    assert rows is not None and rows > 2


@pytest.mark.parametrize("tilt", [1e-8, 1e-6])
def test_a_parallelogram_drawn_flat_where_limits_forbid_it(tilt: float) -> None:
    """Drawn along one line it closes exactly, however the rocker's axis is tilted about that line.

    There it is singular and beyond its limits; within them its ball joint opens by what the axis
    is off. The toe rods of Cassie are so.
    """
    ends = [np.array([x, 0.0, 0.0]) for x in (0.0, 0.2, 0.5, 0.7)]
    tilted = [0.0, 1.0, tilt]
    joints = [
        joint("crank", "revolute", GROUND, "crank", ends[0], m.Y),
        joint("rod", "revolute", "crank", "rod", ends[1], m.Y),
        joint("toe", "revolute", GROUND, "toe", ends[2], tilted),
        joint("ball", "spherical", "rod", "toe", ends[3], cut=True),
    ]
    entries = table("toe rod", *joints)
    limits = {"crank": (-2.4435, -0.6109), "toe": (-2.4435, -0.6109)}
    robot = with_exact_geometry(limited(entries, **limits), DEFAULT_TOLERANCE)
    assert robot.description.rounding is not None
    assert mobility(robot) == 1
    q = pl.assemble(robot)
    assert np.linalg.norm(pl.Constraints(robot, full=True).residual(q)) < 1e-12


class TestDrawingsThatMiss:
    """Loops off by millimetres are not rounded: the message says what they are."""

    @staticmethod
    def message(robot: pl.Mechanism) -> str:
        with pytest.raises(pl.LoopNotClosed) as caught:
            pl.assemble(robot)
        assert caught.value.blocked_by == ()
        assert str(caught.value) in pl.diagnose(robot).warnings
        return str(caught.value)

    def test_the_message_says_which_loop_is_off_and_what_closes_it(self) -> None:
        drawn = rounded.drawn_off(robot_called("fourbar"), np.random.default_rng(1), 4e-3, 5e-3)
        text = self.message(drawn)
        assert "loop 'joint_4': the revolute pair between 'coupler' and 'rocker' is open by" in text
        assert re.search(r"open by [\d.]+ mm \(.* along its z\) and [\d.]+ deg", text)
        assert "joint limits are not to blame" in text
        fit = drawn.fitted().description.rounding
        assert fit is not None and f"robot.fitted() moves them {fit.extent}" in text
        assert mobility(drawn.fitted()) == 1

    def test_the_direction_is_that_of_the_gap(self) -> None:
        # The rocker is 3 mm beside the plane: along the axes of all hinges.
        shifted = _shifted(pl.from_screws(m.four_bar()), "close", np.array([0.0, 0.0, 3e-3]))
        text = self.message(shifted)
        assert "is open by 3 mm (3 along its z) and 0 deg" in text

    def test_what_is_rounding_in_a_gap_is_called_zero(self) -> None:
        gap = np.array([0.0, 0.0, -0.1234, 2.5e-17, -1e-19, 0.0])
        text = _gap(gap, np.arange(6) > 2, [*"xyzxyz"], 1.0)[1]
        assert text == "123 mm (-123 along its z) and 0 deg"

    def test_limits_are_not_blamed_for_what_they_do_not_block(self) -> None:
        robot = limited(m.four_bar(), crank=(-0.3, 0.3))
        text = self.message(_shifted(robot, "close", np.array([0.0, 0.0, 3e-3])))
        assert "limits are not to blame" in text and "limits block" not in text

    def test_limits_are_blamed_for_what_they_block(self) -> None:
        robot = limited(m.four_bar(), rocker=(0.5, 0.6), crank=(-0.1, 0.1))
        with pytest.raises(pl.LoopNotClosed, match="past the limits of joint 'rocker'") as caught:
            pl.assemble(robot)
        assert caught.value.blocked_by == ("rocker",)

    def test_one_wrong_loop_among_others_is_named(self) -> None:
        robot = robot_called("prrr3")
        wrong = robot.loops[1].name
        text = self.message(_shifted(robot, wrong, np.array([0.0, 0.0, 0.0]), turn=0.02))
        assert f"loop '{wrong}'" in text

    def test_messages_have_no_empty_clause(self) -> None:
        # Open by less than is worth a millimetre, but not closed.
        robot = _shifted(robot_called("fourbar"), "joint_4", np.array([0.0, 0.0, 2e-10]))
        strict = pl.diagnose(robot)
        for warning in strict.warnings:
            assert ": ;" not in warning and "open by 0 " not in warning


def _shifted(robot: pl.Mechanism, name: str, shift: Array, turn: float = 0.0) -> pl.Mechanism:
    """The robot with frame B of a joint moved in its own axes [m], and turned about x [rad]."""
    return rounded.moved_frame(robot, name, np.r_[shift, turn, 0.0, 0.0])
