"""Tests of `pinloop.regularization.diagnosis` on mechanisms whose mobility is known from
textbooks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.model.description import GROUND, Body, constant
from pinloop.model.mechanism import build
from pinloop.regularization.diagnosis import LoopSummary

from .. import linkages
from .. import mechanisms as m
from .. import motion_by_hand as hand
from .. import screw_tables as tables


def flat_parallelogram() -> tables.Table:
    """At the change point all pivots lie on one line."""
    return tables.table(
        "flat parallelogram",
        tables.joint("left", "revolute", GROUND, "left", [0, 0, 0], m.TURN),
        tables.joint("top", "revolute", "left", "coupler", [0.4, 0, 0], m.TURN),
        tables.joint("right", "revolute", GROUND, "right", [1, 0, 0], m.TURN),
        tables.joint("close", "revolute", "coupler", "right", [1.4, 0, 0], m.TURN, cut=True),
    )


def truss() -> tables.Table:
    """Two bars on two pivots: a triangle does not move."""
    return tables.table(
        "truss",
        tables.joint("left", "revolute", GROUND, "left", [0, 0, 0], m.TURN),
        tables.joint("right", "revolute", GROUND, "right", [1, 0, 0], m.TURN),
        tables.joint("close", "revolute", "left", "right", [0.5, 0, 0.7], m.TURN, cut=True),
    )


# nv, rows, rank in general. The rows come from the pair that is cut; nv - rank is the mobility
# that one finds in textbooks: planar and spherical loops count three freedoms each, Bennett and
# Sarrus one, ball ends of rods leave a spin that moves nothing.
KNOWN: dict[str, tuple[Callable[[], tables.Table], int, int, int]] = {
    "four-bar": (m.four_bar, 3, 5, 2),
    "parallelogram": (m.parallelogram, 3, 5, 2),
    "flat parallelogram": (flat_parallelogram, 3, 5, 2),
    "five-bar": (m.five_bar, 4, 5, 2),
    "slider-crank": (m.slider_crank, 3, 5, 2),
    "truss": (truss, 2, 5, 2),
    "spherical four-bar": (m.spherical_four_bar, 3, 5, 2),
    "flat spherical four-bar": (lambda: m.spherical_four_bar(flat=True), 3, 5, 2),
    "bennett": (m.bennett, 3, 5, 2),
    "sarrus": (m.sarrus, 5, 5, 4),
    "screw jack": (m.screw_jack, 2, 5, 1),
    "double cardan": (m.double_cardan, 4, 4, 3),
    "rssr": (m.rssr, 5, 3, 3),
    "spinning rods": (m.spinning_rods, 9, 6, 6),
    "rod pendulums": (m.rod_pendulums, 4, 1, 1),
    "ball loop": (m.ball_loop, 6, 2, 2),
    "tip on plane": (m.tip_on_plane, 5, 1, 1),
    "gear pair": (m.gear_pair, 2, 1, 1),
    "door": (m.door, 1, 5, 0),
    "double pendulum": (m.double_pendulum, 6, 0, 0),
    "six-axis arm": (m.arm_6r, 6, 0, 0),
}


def unwrapped(report: pl.Diagnosis) -> str:
    """What a report says, without the ends of its lines."""
    return " ".join(str(report).split())


@pytest.mark.parametrize("name", KNOWN)
def test_numbers_are_those_of_the_textbook(name: str) -> None:
    entries, nv, rows, rank = KNOWN[name]
    robot = tables.build(entries())
    found = pl.diagnose(robot)
    assert (found.nv, found.rows, found.rank) == (nv, rows, rank)
    assert (found.mobility, found.redundancy) == (nv - rank, rows - rank)
    assert found.assembled
    assert found.closure_error < 1e-9
    assert found.rank == max(found.ranks)
    moves = rows > 0 and nv > rank
    # As many again from a singular pose, where branches may cross.
    assert len(found.ranks) == ((13 if found.ranks[0] < rank else 7) if moves else 1)
    assert (found.name, found.bodies, found.nq) == (robot.name, len(robot.bodies), robot.nq)
    assert (found.joints, found.couplings) == (len(robot.joints), len(robot.couplings))
    assert found.mass == pytest.approx(hand.point_masses(robot).sum())


@pytest.mark.parametrize("name", ["flat parallelogram", "flat spherical four-bar"])
def test_singular_reference_does_not_pass_for_the_general_case(name: str) -> None:
    """At a change point one row less is independent; one step further it is back."""
    found = pl.diagnose(tables.build(KNOWN[name][0]()))
    assert found.ranks[0] == 1
    assert set(found.ranks[1:]) == {2}
    assert "from 1 to 2" in str(found)
    assert found.idle == ()


@pytest.mark.parametrize("name", ["four-bar", "spherical four-bar", "sarrus", "rssr"])
def test_general_position_has_one_rank_everywhere(name: str) -> None:
    found = pl.diagnose(tables.build(KNOWN[name][0]()), samples=12, seed=3)
    assert len(found.ranks) == 13
    assert len(set(found.ranks)) == 1
    assert "samples" not in str(found)


def test_planar_and_spherical_redundancy_is_explained_and_bennetts_is_not() -> None:
    for name, reduced, paradoxical in (
        ("four-bar", 2, False),
        ("spherical four-bar", 2, False),
        ("sarrus", 4, False),
        ("screw jack", 1, False),
        ("rssr", 3, False),
        ("door", 0, False),
        ("bennett", 5, True),
    ):
        found = pl.diagnose(tables.build(KNOWN[name][0]()))
        assert (found.reduced_rows, found.paradoxical) == (reduced, paradoxical), name
    assert "0 redundant by geometry" in unwrapped(pl.diagnose(tables.build(m.bennett())))
    assert "3 overconstrained" in unwrapped(pl.diagnose(tables.build(m.bennett())))
    assert "3 redundant by geometry" in unwrapped(pl.diagnose(tables.build(m.four_bar())))


@pytest.mark.parametrize("name", ["four-bar", "bennett", "double cardan", "rssr", "tip on plane"])
@pytest.mark.parametrize("space", ["SE3", "SO3xR3"])
def test_mobility_is_the_same_in_absolute_coordinates(name: str, space: str) -> None:
    entries, nv, _, rank = KNOWN[name]
    robot = tables.build(entries()).absolute(space)  # type: ignore[arg-type]
    found = pl.diagnose(robot, samples=3)
    assert found.mobility == nv - rank
    assert found.rows == sum(joint.pair.rows for joint in robot.description.joints)


def test_size_does_not_matter() -> None:
    for scale in (1e-4, 1e4):
        for make in (m.four_bar, m.bennett, m.sarrus, m.rssr):
            found = pl.diagnose(tables.build(tables.scaled(make(), scale)))
            usual = pl.diagnose(tables.build(make()))
            assert (found.rank, found.assembled) == (usual.rank, True), (found.name, scale)


# -- idle joints ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entries", "idle", "idle_dof"),
    [
        (m.rssr(actuated=["crank"]), ("ball",), 1),
        (m.rssr(), ("ball",), 1),
        (m.spinning_rods(), ("ball1", "ball2"), 2),
        (m.four_bar(actuated=["rocker"]), (), 0),
        (m.four_bar(actuated=["close"]), (), 0),
        (m.four_bar(actuated=[]), ("crank", "elbow", "rocker"), 1),
        (m.five_bar() | {"actuated": ["m1", "m2"]}, (), 0),
        (m.five_bar() | {"actuated": ["m1"]}, ("e1", "m2", "e2"), 1),
        (m.gear_pair(), (), 0),
        (m.gear_pair() | {"actuated": []}, ("pinion", "wheel"), 1),
        (m.double_pendulum() | {"actuated": ["upper"]}, ("lower",), 3),
        (m.double_pendulum() | {"actuated": []}, ("upper", "lower"), 6),
        (m.arm_6r(), (), 0),
        (m.screw_jack() | {"actuated": ["shaft"]}, (), 0),
        # The singular reference has a second freedom that is gone one step further.
        (m.spherical_four_bar(flat=True) | {"actuated": ["crank"]}, (), 0),
        (flat_parallelogram() | {"actuated": ["right"]}, (), 0),
    ],
    ids=str,
)
def test_idle_joints_are_those_that_move_when_the_motors_hold(
    entries: tables.Table, idle: tuple[str, ...], idle_dof: int
) -> None:
    found = pl.diagnose(tables.build(entries))
    assert (found.idle, found.idle_dof) == (idle, idle_dof)


# -- loops, warnings, forms of the report ---------------------------------------------------


def open_robot() -> pl.Mechanism:
    """A coupler that is 3 m too long: 3 m open at neutral, 1.9 m at best."""
    return m.stretched_four_bar(3.0)


def test_each_loop_is_summed_up() -> None:
    entries = m.spinning_rods()
    entries["bodies"].append(tables.body("plate"))
    entries["joints"] += [
        tables.joint("bolt", "fixed", "rod1", "plate", [0, 0, 0]),
        tables.joint(
            "latch", "rod", "plate", "rod2", [0.5, 0.3, 0.4], point2=[0.5, -0.3, 0.4], cut=True
        ),
    ]
    first, _, latch = pl.diagnose(tables.build(entries)).loops
    assert first.neutral_error < 1e-12
    assert replace(first, neutral_error=0.0) == LoopSummary(
        "close1", "spherical", ("rod1", "rocker1"), GROUND, ("crank", "ball1", "rocker1"), 3, 0.0
    )
    assert (latch.root, latch.joints, latch.rows) == ("crank", ("ball1", "ball2"), 1)
    (lone,) = pl.diagnose(open_robot()).loops
    assert lone.neutral_error == pytest.approx(3.0)


def test_robot_that_cannot_be_assembled_is_reported_not_raised() -> None:
    found = pl.diagnose(open_robot())
    assert not found.assembled
    assert (found.rows, found.reduced_rows, found.paradoxical) == (5, None, None)
    assert len(found.ranks) == 1
    assert found.closure_error == pytest.approx(1.9, abs=1e-3)
    assert any("'close'" in warning and "out of reach" in warning for warning in found.warnings)
    assert "NOT CLOSED, residual 1.9e+00" in str(found)


def test_placeholder_masses_are_pointed_at() -> None:
    fine = tables.build(m.planar_3r()).description
    *rest, tip = fine.bodies
    for mass, warned in ((1e-9, True), (1e-3, False)):
        light = Body(tip.name, mass, tip.com, constant(mass * np.eye(3)))
        found = pl.diagnose(build(replace(fine, bodies=(*rest, light))))
        assert [("'j3'" in text and "placeholder" in text) for text in found.warnings] == (
            [True] if warned else []
        )


def test_massless_bodies_and_warnings_of_loading_are_passed_on() -> None:
    fine = tables.build(m.planar_3r()).description
    *rest, tip = fine.bodies
    robot = build(replace(fine, bodies=(*rest, Body(tip.name)), warnings=("found odd",)))
    found = pl.diagnose(robot)
    assert found.warnings[0] == "found odd"
    assert any("'c'" in warning and "no mass" in warning for warning in found.warnings)
    assert "Warnings\n  - found odd\n" in str(found)


@pytest.mark.parametrize("name", [*KNOWN, "open"])
def test_report_is_plain_data_and_can_be_read(name: str) -> None:
    robot = open_robot() if name == "open" else tables.build(KNOWN[name][0]())
    found = pl.diagnose(robot)
    plain = found.as_dict()
    back = json.loads(json.dumps(plain))
    assert back["rank"] == found.rank
    assert back["ranks"] == list(found.ranks)
    assert [loop["name"] for loop in back["loops"]] == [loop.name for loop in robot.loops]
    text = str(found)
    for label, number in (
        ("constraint equations", found.rows), ("rank", found.rank),
        ("redundant equations", found.redundancy),
        ("mobility", found.mobility), ("loops", len(found.loops)),
        ("bodies", found.bodies), ("actuated", len(found.actuated)), ("tree joints", found.joints),
    ):  # fmt: skip
        assert re.search(rf"^  {label} +{number}\b", text, re.MULTILINE), label
    for loop in found.loops:
        row = (
            rf"^  {loop.name} +{loop.pair} +{loop.rows} +{re.escape(f'{loop.neutral_error:.1e}')}  "
        )
        assert re.search(row, text, re.MULTILINE)


def test_report_is_frozen_and_the_same_for_the_same_seed() -> None:
    robot = tables.build(m.five_bar())
    found = pl.diagnose(robot, seed=5)
    assert found == pl.diagnose(tables.build(m.five_bar()), seed=5)
    with pytest.raises(FrozenInstanceError):
        found.rank = 7  # type: ignore[misc]


def test_a_robot_that_does_not_move() -> None:
    statue = tables.build(
        tables.table("statue", tables.joint("w", "fixed", GROUND, "statue", [0, 0, 0]))
    )
    found = pl.diagnose(statue)
    assert (found.nv, found.rows, found.rank, found.mobility, found.mass) == (0, 0, 0, 0, 0)
    assert (found.idle, found.ranks) == ((), (0,))


def test_many_actuated_joints_are_counted_and_cut_short() -> None:
    joints = [
        tables.joint(
            f"j{k}", "revolute", GROUND if k == 0 else f"b{k - 1}", f"b{k}", [k, 0, 0], m.Y
        )
        for k in range(11)
    ]
    text = str(pl.diagnose(tables.build(tables.table("snake", *joints))))
    assert "11  j0, j1, j2, j3, j4, j5, j6, j7, ... (11 in all)" in text


def folded_sarrus() -> tables.Table:
    """Two pairs of hinged plates folded flat: they open together, or each turns by itself."""
    joints = []
    for index, angle in enumerate((0.0, 2.0)):
        turn = pin.exp3(angle * m.Z)
        bodies = ["ground", f"lower{index}", f"upper{index}", "lid"]
        for k, x in enumerate((1.0, 1.7 + 0.3 * index, 1.0)):
            point, axis = turn @ (x * m.X), turn @ m.Y
            name = f"hinge{index}{k}"
            cut = {"cut": True} if name == "hinge12" else {}
            joints.append(
                tables.joint(name, "revolute", bodies[k], bodies[k + 1], point, axis, **cut)
            )
    return tables.table("folded", *joints)


def test_a_singular_pose_is_told_from_the_motions_beside_it() -> None:
    found = pl.diagnose(tables.build(folded_sarrus()))
    # Five hinges in the tree. Folded: three directions are left; opened as Sarrus' linkage: one; a
    # folded pair turns about its own hinge: two, on another branch.
    assert found.nv - found.ranks[0] == 3
    assert found.mobility == 1
    assert {found.nv - rank for rank in found.ranks[1:]} == {1, 2}
    text = unwrapped(found)
    assert "1 degree of freedom; 3 in the assembled pose, which is singular; 2 on other" in text


def test_a_pose_that_cannot_be_left_is_warned_of() -> None:
    found = pl.diagnose(tables.build(linkages.collinear_three_bar()))
    assert found.mobility == 0
    assert "singular pose that the mechanism cannot leave" in found.warnings[-1]


@pytest.mark.parametrize("motors", [["crank"], None])
def test_joints_that_count_as_actuated_for_want_of_motors_are_said_to(
    motors: list[str] | None,
) -> None:
    motors_given = {} if motors is None else {"actuated": motors}
    report = pl.diagnose(tables.build(m.four_bar() | motors_given), samples=2)
    (line,) = [line for line in str(report).splitlines() if line.split()[:1] == ["actuated"]]
    assert report.motors_named is report.as_dict()["motors_named"] is (motors is not None)
    assert line.endswith("1  crank" if motors else "; no motor is named")
