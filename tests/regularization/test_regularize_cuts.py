"""Tests of `pinloop.regularize`: other cut joints, bad arguments, and the report."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pinloop as pl
from pinloop.model.description import GROUND

from .. import linkages as k
from .. import mechanisms as m
from ..known_linkages import (
    FAR,
    Maker,
    assert_nothing_lost,
    reduced_called,
    report_of,
    robot_called,
)
from ..reductions import configurations
from ..screw_tables import Table, joint, table

# -- other cuts -----------------------------------------------------------------------------

ONE_LOOP = [
    "four-bar", "five-bar", "slider-crank", "sarrus", "spherical four-bar", "schoenflies loop",
    "screw jack", "wedge", "cardan", "rssr", "bennett", "idle turn", "geared five-bar",
    "double cardan", "plunger",
]  # fmt: skip


@pytest.mark.parametrize("name", ONE_LOOP)
def test_alternatives_promise_what_cutting_there_gives(name: str) -> None:
    robot = robot_called(name)
    (loop,) = report_of(reduced_called(name)).loops
    held = {coupled for coupling in robot.couplings for coupled in coupling.joints}
    expected = {
        j.name
        for j in robot.description.joints
        if j.name != loop.loop and j.pair.name != "universal" and j.name not in held
    }
    assert {found.joint for found in loop.alternatives} == expected
    for found in loop.alternatives:
        cut = pl.regularize(robot, cut=[found.joint])
        assert [other.name for other in cut.loops] == [found.joint]
        report = report_of(cut)
        assert (report.loops[0].rows, report.mobility) == (found.rows, found.mobility)
        assert found.total_rows == found.rows
        assert cut.nv - report.rows == found.mobility


def with_rod() -> Table:
    """A four-bar whose rocker is tied to a pendulum by a rod."""
    tie = table(
        "pendulum",
        joint("swing", "spherical", GROUND, "swing", [2, 0, 0]),
        joint("tie", "rod", "rocker", "swing", [1.2, 0, 0.5], point2=[2, 0.3, 0.6], cut=True),
    )
    return k.together("four-bar with rod", m.four_bar(), tie)


MANY_LOOPS: list[Maker] = [
    k.prrr3,
    m.spinning_rods,
    k.planar_3rrr,
    k.triple_parallelogram,
    with_rod,
    lambda: k.together("two", m.four_bar(), m.double_cardan()),
]


@pytest.mark.parametrize("make", MANY_LOOPS)
def test_alternatives_with_several_loops(make: Maker) -> None:
    robot = pl.from_screws(make())
    report = report_of(pl.regularize(robot, compare_cuts=True))
    assert any(loop.alternatives for loop in report.loops)
    cuts = [loop.name for loop in robot.loops]
    for loop in report.loops:
        for found in loop.alternatives:
            names = [found.joint if name == loop.loop else name for name in cuts]
            other = report_of(pl.regularize(robot, cut=names))
            rows = {found.loop: found.rows for found in other.loops}
            assert (rows[found.joint], other.mobility) == (found.rows, found.mobility)
            assert sum(rows.values()) == found.total_rows


def test_recut_finds_the_cut_that_leaves_least() -> None:
    # The middle hinges of the legs do not see that the legs are planar: 5 rows, one too many.
    bad = pl.from_screws(k.marked(m.sarrus(), "a2"))
    assert report_of(pl.regularize(bad)).rows == 5
    assert [loop.name for loop in pl.regularize(bad).loops] == ["a2"]
    good = pl.regularize(bad, recut=True)
    assert (report_of(good).rows, report_of(good).mobility) == (4, 1)
    assert "a2" in good.joints
    for q in configurations(good, np.random.default_rng(6), walk=20, restarts=2):
        assert_nothing_lost(good, q)


def test_recut_leaves_alone_what_is_good() -> None:
    for name in ("four-bar", "sarrus", "3-PRRR", "rssr"):
        robot = robot_called(name)
        again = pl.regularize(robot, recut=True)
        assert again.joints == robot.joints
        assert report_of(again).rows == report_of(reduced_called(name)).rows


def test_recut_cuts_no_joint_that_a_coupling_needs() -> None:
    gear = {"name": "gear", "joint": "a3", "source": "b3", "ratio": 1.0}
    entries = k.marked(m.sarrus(), "a2") | {"couplings": [gear]}
    robot = pl.regularize(pl.from_screws(entries), recut=True)
    assert {"a3", "b3"} <= set(robot.joints)
    assert report_of(robot).couplings == ("gear",)
    assert report_of(robot).rows == 4 + 1


def test_what_the_user_cuts_stays_cut() -> None:
    robot = robot_called("sarrus")
    for recut in (False, True):
        cut = pl.regularize(robot, cut=["a2"], recut=recut)
        assert [loop.name for loop in cut.loops] == ["a2"]
        assert report_of(cut).rows == 5
    assert [loop.name for loop in pl.regularize(robot, cut="b2").loops] == ["b2"]
    assert pl.regularize(robot, cut=[]).joints == robot.joints
    two = pl.regularize(robot_called("planar 3-RRR"), cut=["a1", "b2"], recut=True)
    assert {loop.name for loop in two.loops} == {"a1", "b2"}


def test_bad_arguments_are_named() -> None:
    robot = robot_called("sarrus")
    with pytest.raises(pl.UnknownName, match=r"b33.*did you mean 'b3'"):
        pl.regularize(robot, cut=["b33"])
    for cut in (3, [3], [None]):
        with pytest.raises(pl.BadValue, match="cut"):
            pl.regularize(robot, cut=cut)  # type: ignore[arg-type]
    with pytest.raises(pl.LoadError, match="'b1', 'b2'"):
        pl.regularize(robot, cut=["b1", "b2"])
    for samples in (0, -1):
        with pytest.raises(pl.BadValue, match="samples"):
            pl.regularize(robot, sampled=True, samples=samples)
    with pytest.raises(pl.LoopNotClosed):
        pl.regularize(m.stretched_four_bar(2.0))


def test_a_robot_that_cannot_move_is_no_crash() -> None:
    # In a process of its own, because Pinocchio may take the interpreter down with it.
    program = (
        "import pinloop as pl; from tests.screw_tables import joint, table\n"
        "weld = joint('w', 'fixed', 'ground', 'b')\n"
        "cut = joint('c', 'revolute', 'ground', 'b', [0, 0, 0], [0, 0, 1], cut=True)\n"
        "robot = pl.from_screws(table('welded', weld, cut))\n"
        "assert pl.Constraints(robot).jacobian(robot.neutral).shape == (5, 0)\n"
        "assert pl.regularize(robot).regularization.rows == 0\n"
        "assert pl.diagnose(robot).mobility == 0\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=Path(__file__).parents[2], capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()


# -- the report -----------------------------------------------------------------------------


def test_rows_keep_their_names_where_they_are_the_pairs_own() -> None:
    assert set(pl.Constraints(reduced_called("four-bar")).labels) == {"close: v_x", "close: v_y"}
    labels = pl.Constraints(reduced_called("geared five-bar")).labels
    assert "gear" in labels and len(set(labels)) == 3
    # A radial hinge at the distance d of the centre sees w and v = d w x z together.
    U = report_of(reduced_called("spherical four-bar")).selection("close")
    assert np.all(np.sum(np.abs(U) > 1e-9, axis=1) > 1)


def test_report_names_the_algebras() -> None:
    (loop,) = report_of(reduced_called("five-bar")).loops
    assert (loop.loop, loop.pair, loop.root) == ("close", "revolute", GROUND)
    assert loop.algebra_a == loop.algebra_b == loop.tied == "planar, normal y"
    (loop,) = report_of(reduced_called("spherical five-bar")).loops
    assert loop.algebra_b == "fixed" and loop.algebra_a == "spherical, about (1, 2, 3)"
    first, second = report_of(reduced_called("3-PRRR")).loops
    assert {first.algebra_a, first.algebra_b} == {"Schoenflies, axis x", "Schoenflies, axis y"}
    # All shifts, and turns about two axes, whose bracket would be the third.
    assert (first.tied, first.twists) == ("free", "5 degrees of freedom, no group")
    # Leg and platform, which the first loop lets shift only, and the leg turns about z.
    assert second.tied == second.twists == "Schoenflies, axis z"
    away = pl.regularize(pl.from_screws(k.moved(k.spherical_five_bar(), FAR)))
    name = report_of(away).loops[0].algebra_a
    centre = FAR.act(np.array([1.0, 2.0, 3.0]))
    assert name == f"spherical, about ({', '.join(f'{value:.4g}' for value in centre)})"


def test_report_prints_and_goes_to_json() -> None:
    report = report_of(reduced_called("3-PRRR"))
    values = json.loads(json.dumps(report.as_dict()))
    assert values["rows"] == 7 and [loop["rows"] for loop in values["loops"]] == [4, 3]
    np.testing.assert_array_equal(values["loops"][0]["selection"], report.loops[0].selection)
    text = str(report)
    assert (
        "10 constraint equations -> 7, estimated mobility 3" in text
        and "Schoenflies, axis x" in text
    )
    for loop in report.loops:
        assert f"{loop.loop}: revolute, 5 equations -> {loop.rows}" in text
        assert all(found.joint in text for found in loop.alternatives)
    assert "sampled" not in text
