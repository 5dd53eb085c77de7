"""Tests of `pinloop.regularize` and `pinloop.bounds`: the right rows, and never one too few.

Rows of a single loop by hand: with the motion algebras of both chains, dim(A + B + cut) - dim(cut).
A group of dimension d that holds the whole loop gives d - dim(cut) at most.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.closing import null_space
from pinloop.description import GROUND
from pinloop.mechanism import build

from . import linkages as k
from . import mechanisms as m
from .reductions import configurations, jacobians, lost, rank
from .tables import Array, Table, joint, table

Maker = Callable[[], Table]


def flat_spherical() -> Table:
    return m.spherical_four_bar(flat=True)


def geared_five_bar() -> Table:
    gear = {"name": "gear", "joint": "m2", "source": "m1", "ratio": -1.0}
    return m.five_bar() | {"couplings": [gear]}


def idle_turn() -> Table:
    """A hinge in line with the cut hinge, and a slide across: the turn is idle, the slide held."""
    return table(
        "idle turn",
        joint("turn", "revolute", GROUND, "spinner", [0, 0, 0], m.Z),
        joint("slide", "prismatic", GROUND, "slider", [0, 0, 0], m.X),
        joint("close", "revolute", "slider", "spinner", [0, 0, 1], m.Z, cut=True),
    )


# Rows of all pairs, rows that are left, rank in general.
KNOWN: dict[str, tuple[Maker, int, int, int]] = {
    # Planar, dim 3: 3 - 1 per hinge or slide that is cut, whatever the number of bars.
    "four-bar": (m.four_bar, 5, 2, 2),
    "parallelogram": (m.parallelogram, 5, 2, 2),
    "five-bar": (m.five_bar, 5, 2, 2),
    "slider-crank": (m.slider_crank, 5, 2, 2),
    "scotch yoke": (k.scotch_yoke, 5, 2, 2),
    "oldham": (k.oldham, 5, 2, 2),
    "collinear three-bar": (k.collinear_three_bar, 5, 2, 2),
    "floating four-bar": (k.floating_four_bar, 5, 2, 2),
    "planar 3-RRR": (k.planar_3rrr, 10, 4, 4),
    # The coupling is one row more, and stays.
    "geared five-bar": (geared_five_bar, 6, 3, 3),
    # 8 bars, 12 hinges, 5 loops: one freedom in 7 coordinates, where 10 planar rows leave none.
    "hoberman 4": (k.hoberman, 25, 10, 6),
    "triple parallelogram": (k.triple_parallelogram, 10, 4, 3),
    # Planar chains, other cuts: 3 less what the pair leaves free in the plane.
    "four-bar with ball": (lambda: k.four_bar_with("spherical"), 3, 2, 2),
    "four-bar with sleeve": (lambda: k.four_bar_with("cylindrical"), 4, 2, 2),
    "four-bar welded": (lambda: k.four_bar_with("fixed"), 6, 3, 3),
    "four-bar with table": (lambda: k.four_bar_with("planar"), 3, 0, 0),
    "four-bar with cross slide": (lambda: k.four_bar_with("planar_translation"), 4, 1, 1),
    "four-bar with shifts": (lambda: k.four_bar_with("spatial_translation"), 3, 1, 1),
    "four-bar with schoenflies": (lambda: k.four_bar_with("schoenflies"), 2, 0, 0),
    # Spherical, dim 3; the universal joint sees one of three rotations.
    "spherical four-bar": (m.spherical_four_bar, 5, 2, 2),
    "flat spherical four-bar": (flat_spherical, 5, 2, 2),
    "spherical five-bar": (k.spherical_five_bar, 5, 2, 2),
    "cardan": (k.cardan, 5, 2, 2),
    "cardan cut in its cross": (lambda: k.cardan("cross"), 4, 1, 1),
    # Cylindrical, dim 2; translations, dim 2 and 3; parallel screws, dim 3; Schoenflies, dim 4.
    "screw jack": (m.screw_jack, 5, 1, 1),
    "differential screw": (k.differential_screw, 5, 1, 1),
    "plunger": (k.plunger, 4, 0, 0),
    "wedge": (k.wedge, 5, 1, 1),
    "translator": (k.translator, 5, 2, 2),
    "screw four-bar": (k.screw_four_bar, 5, 2, 2),
    "schoenflies loop": (k.schoenflies_loop, 5, 3, 3),
    # One body twice on one axis.
    "door": (m.door, 5, 0, 0),
    "idle turn": (idle_turn, 5, 1, 1),
    # Two planes at right angles: 3 + 3 - 1 shift in common, less the cut hinge.
    "sarrus": (m.sarrus, 5, 4, 4),
    # Paper 5, section 7.2: 4 + 4 - 1 for the three shifts that two legs leave.
    "3-PRRR": (k.prrr3, 10, 7, 7),
    # Nothing in common: all rows stay, and are needed.
    "rssr": (m.rssr, 3, 3, 3),
    "spinning rods": (m.spinning_rods, 6, 6, 6),
    "tip on plane": (m.tip_on_plane, 1, 1, 1),
    "rod pendulums": (m.rod_pendulums, 1, 1, 1),
    "ball loop": (m.ball_loop, 2, 2, 2),
    "3-UPU": (lambda: k.upu(3), 8, 8, 8),
    # Paradoxical: nothing in common, but not all needed.
    "double cardan": (m.double_cardan, 4, 4, 3),
    "bent double cardan": (k.bent_double_cardan, 4, 4, 3),
    "4-UPU": (lambda: k.upu(4), 12, 12, 11),
    "universal delta": (k.universal_delta, 20, 20, 14),
    "bennett": (m.bennett, 5, 5, 2),
    "goldberg": (k.goldberg, 5, 5, 3),
}
NAMES = list(KNOWN)

OTHERS: dict[str, Maker] = {
    "four-bar with cross": lambda: k.four_bar_with("universal"),
    "cardan cut at its input": lambda: k.cardan("input"),
    "screw trap": k.screw_trap,
    "slanted triple parallelogram": lambda: k.triple_parallelogram(in_line=False),
    "two four-bars": lambda: k.together("two", m.four_bar(), k.cardan()),
    "gear pair": m.gear_pair,
    "planar 3R": m.planar_3r,
}
"""Mechanisms whose rows are looked at elsewhere or not at all."""

URDF = Path(__file__).parents[1] / "urdf"
SHIPPED = {
    "fourbar": 2,
    "fivebar": 2,
    "sevenbar": 4,
    "palletizer": 6,
    "spherical_fourbar": 2,
    "spherical_threebar": 3,
    "prrr3": 7,
    "delta": 15,
    "stewart": 18,
    "bricard": 5,
    "planar_3r": 0,
    "six_axis_arm": 0,
}
"""Rows that shipped robots keep: 2 per planar loop, and see the paper for the others."""


@cache
def robot_called(name: str) -> pl.Mechanism:
    if (URDF / f"{name}.urdf").is_file():
        return pl.load(URDF / f"{name}.urdf")
    return pl.from_screws((KNOWN[name][0] if name in KNOWN else OTHERS[name])())


@cache
def reduced_called(name: str) -> pl.Mechanism:
    return pl.regularize(robot_called(name))


def report_of(robot: pl.Mechanism) -> pl.Regularization:
    assert robot.regularization is not None
    return robot.regularization


def rows_of(entries: Table) -> int:
    return report_of(pl.regularize(pl.from_screws(entries))).rows


# -- how many rows --------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_rows_by_hand(name: str) -> None:
    _, full, reduced, _ = KNOWN[name]
    robot, report = reduced_called(name), report_of(reduced_called(name))
    assert (report.full_rows, report.rows) == (full, reduced)
    assert report.mobility == robot.nv - reduced
    assert (
        len(pl.Constraints(robot))
        == reduced
        == sum(loop.rows for loop in report.loops) + len(report.couplings)
    )
    assert len(pl.Constraints(robot, full=True)) == full
    for loop in report.loops:
        U = report.selection(loop.loop)
        assert U.shape == (loop.rows, loop.full_rows)
        np.testing.assert_allclose(U @ U.T, np.eye(loop.rows), atol=1e-12)
    assert report.sampled_rows is report.residual is None
    assert robot_called(name).regularization is None


@pytest.mark.parametrize("name", NAMES)
def test_diagnosis_tells_what_is_explained_from_what_is_paradoxical(name: str) -> None:
    _, full, reduced, needed = KNOWN[name]
    found = pl.diagnose(robot_called(name))
    assert (found.rows, found.reduced_rows, found.rank) == (full, reduced, needed)
    assert found.redundancy == full - needed
    assert found.mobility == robot_called(name).nv - needed
    assert found.paradoxical is (reduced > needed)
    assert pl.diagnose(reduced_called(name)).reduced_rows == reduced
    text = str(found)
    if full > needed:
        assert f"{full - reduced} explained by motion groups" in text
        assert f"{reduced - needed} paradoxical" in text


@pytest.mark.parametrize("name", sorted(path.stem for path in URDF.glob("*.urdf")))
def test_rows_of_shipped_robots(name: str) -> None:
    assert report_of(reduced_called(name)).rows == SHIPPED[name]
    assert pl.diagnose(robot_called(name)).paradoxical is (name == "bricard")


def test_loop_by_loop_alone_leaves_a_row_too_much_on_the_3_prrr() -> None:
    # Paper 5, section 7.2: 4 and 4 for the loops by themselves, 7 for both together.
    alone = [rows_of(k.prrr3(legs)) for legs in ("xy", "xz", "yz")]
    assert alone == [4, 4, 4]
    loops = report_of(reduced_called("3-PRRR")).loops
    assert [loop.rows for loop in loops] == [4, 3]
    assert sum(alone[:2]) - rows_of(k.prrr3()) == 1


# -- never one too few ----------------------------------------------------------------------


def assert_nothing_lost(robot: pl.Mechanism, q: Array) -> None:
    """Same rank and same kernel of the reduced rows as of the full ones, closed loops given."""
    assert np.linalg.norm(pl.Constraints(robot, full=True).residual(q)) < 1e-9 * (1 + robot.length)
    full, reduced = jacobians(robot, q)
    assert rank(full) == rank(reduced)
    assert lost(robot, q) < 1e-6


@pytest.mark.parametrize("name", [*NAMES, *OTHERS, *SHIPPED])
def test_nothing_is_lost_wherever_the_loops_close(name: str) -> None:
    robot = reduced_called(name)
    found = 0
    for q in configurations(robot, np.random.default_rng(1), walk=44, restarts=6):
        assert_nothing_lost(robot, q)
        found += 1
    # Found them, or there was nothing to find: nothing moves, or for a first instant only.
    moves = null_space(jacobians(robot, pl.assemble(robot, limits=False))[0]).shape[1]
    assert found > 40 or not moves or name == "collinear three-bar"


def collinear_five_bar(robot: pl.Mechanism) -> Array:
    """The left leg stretched: its upper bar, which starts at the angle below, in line with it."""
    lower = 2.0
    upper = np.array([0.5, 0, 1.1]) - m.planar(lower, 0.5)
    return pl.assemble(robot, fixed={"e1": lower - np.arctan2(upper[2], upper[0])}, limits=False)


# A singular configuration, and how many rows are needed there.
SINGULAR: list[tuple[str, Callable[[pl.Mechanism], Array], int]] = [
    ("flat spherical four-bar", lambda robot: robot.neutral, 1),
    ("spherical_fourbar", lambda robot: robot.neutral, 1),
    # All pins on the x axis: every bar moves them along z only.
    (
        "parallelogram",
        lambda robot: robot.configuration({"left": -1.1, "top": 1.1, "right": -1.1}),
        1,
    ),
    (
        "triple parallelogram",
        lambda robot: robot.configuration(
            {"low0": -k.LEAN, "top0": -k.LEAN, "low1": -k.LEAN, "low2": -k.LEAN}
        ),
        2,
    ),
    # The dead centres of the slide are no singularities of the rows.
    ("slider-crank", lambda robot: robot.configuration(m.slider_crank_q(0.0)), 2),
    ("slider-crank", lambda robot: robot.configuration(m.slider_crank_q(np.pi)), 2),
    ("five-bar", collinear_five_bar, 2),
    ("collinear three-bar", lambda robot: robot.neutral, 1),
    # The rod of the nut crosses the thread at a right angle after one turn; the guide holds it.
    ("screw trap", lambda robot: pl.assemble(robot, fixed={"thread": 2 * np.pi}), 3),
]


@pytest.mark.parametrize(("name", "place", "needed"), SINGULAR, ids=lambda value: str(value)[:24])
def test_nothing_is_lost_in_singular_poses(
    name: str, place: Callable[[pl.Mechanism], Array], needed: int
) -> None:
    robot = reduced_called(name)
    q = place(robot)
    assert rank(jacobians(robot, q)[0]) == needed
    assert_nothing_lost(robot, q)


def in_turned_reference(entries: Table, loop: str, motion: Array) -> pl.Mechanism:
    """The robot with frame B of a loop joint displaced by a motion that its pair leaves free."""
    description = pl.from_screws(entries).description
    joints = tuple(
        replace(j, frame_child=j.frame_child * pin.exp6(motion)) if j.name == loop else j
        for j in description.joints
    )
    return build(replace(description, joints=joints))


x, y, z, rx, ry, rz = np.eye(6)
TURNED: list[tuple[Maker, str, Array, int]] = [
    (m.four_bar, "close", 2.0 * rz, 2),
    (m.sarrus, "b3", 1.1 * rz, 4),
    (lambda: k.turned_over(m.sarrus(), "b3"), "b3", 1.1 * rz, 4),
    (k.prrr3, "hinge_y3", -0.7 * rz, 7),
    (idle_turn, "close", 0.9 * rz, 1),
    (k.oldham, "groove", 0.2 * z, 2),
    (m.screw_jack, "thread", 3.0 * (rz + m.PITCH * z), 1),
    (m.rssr, "close", rx - 0.3 * ry + 2 * rz, 3),
    (lambda: k.four_bar_with("spherical"), "close", rx + ry + rz, 2),
    (lambda: k.four_bar_with("cylindrical"), "close", 0.3 * z + 2 * rz, 2),
    (lambda: k.four_bar_with("planar_translation"), "close", 0.3 * x - y, 1),
    (lambda: k.four_bar_with("spatial_translation"), "close", x + y + z, 1),
]


@pytest.mark.parametrize(("make", "loop", "motion", "rows"), TURNED)
def test_the_reference_of_the_cut_joint_does_not_matter(
    make: Maker, loop: str, motion: Array, rows: int
) -> None:
    robot = pl.regularize(in_turned_reference(make(), loop, motion))
    assert report_of(robot).rows == rows
    for q in configurations(robot, np.random.default_rng(2), walk=6, restarts=1):
        assert_nothing_lost(robot, q)


SIDES: list[tuple[Maker, tuple[str, ...]]] = [
    (m.sarrus, ("b3",)),
    (k.prrr3, ("hinge_y3", "hinge_z3")),
    (idle_turn, ("close",)),
    (k.schoenflies_loop, ("j4",)),
    (k.planar_3rrr, ("c1", "c2")),
    (m.rssr, ("close",)),
]


@pytest.mark.parametrize(("make", "cuts"), SIDES)
def test_it_does_not_matter_which_side_of_a_cut_is_the_parent(
    make: Maker, cuts: tuple[str, ...]
) -> None:
    rows = rows_of(make())
    for count in range(1, len(cuts) + 1):
        for names in combinations(cuts, count):
            robot = pl.regularize(pl.from_screws(k.turned_over(make(), *names)))
            assert report_of(robot).rows == rows
            for q in configurations(robot, np.random.default_rng(3), walk=5, restarts=1):
                assert_nothing_lost(robot, q)


def test_an_idle_turn_of_the_cut_joint_is_not_a_slide() -> None:
    # Seen from the spinner, the slide's axis turns; a row for its first direction would not do.
    robot = reduced_called("idle turn")
    for angle in np.linspace(-3, 3, 7):
        q = robot.configuration({"turn": angle})
        assert_nothing_lost(robot, q)
        held = pl.Constraints(robot).jacobian(q)[0, robot.coordinates("slide").v]
        assert abs(held[0]) == pytest.approx(1, abs=1e-12)


FAR = pin.SE3(pin.exp3(np.array([0.3, -1.0, 0.5])), np.array([600.0, -800.0, 20.0]))


@pytest.mark.parametrize("size", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize(
    "name",
    ["four-bar", "hoberman 4", "spherical five-bar", "sarrus", "3-PRRR", "screw jack",
     "screw four-bar", "schoenflies loop", "rssr", "bennett", "idle turn", "cardan"],
)  # fmt: skip
def test_units_and_places_do_not_matter(name: str, size: float) -> None:
    make, full, reduced, needed = KNOWN[name]
    for placement in (pin.SE3.Identity(), FAR if size >= 1 else pin.SE3(FAR.rotation, m.X)):
        robot = pl.regularize(pl.from_screws(k.moved(make(), placement, size)))
        assert (report_of(robot).full_rows, report_of(robot).rows) == (full, reduced)
        ranks = []
        for q in configurations(robot, np.random.default_rng(4), walk=3, restarts=0):
            assert_nothing_lost(robot, q)
            ranks.append(rank(jacobians(robot, q)[0]))
        assert max(ranks) == needed


@pytest.mark.parametrize(("off", "rows"), [(1e-3, 4), (1e-13, 2)])
def test_axes_are_parallel_only_if_they_are(off: float, rows: int) -> None:
    # One chain of a five-bar leans out of the plane of the other. A ball closes it: 2 of its 3
    # rows if all is in one plane; two planes give all 3, seen with a hinge 3 + 3 - 1 - 1 = 4.
    tilt = pin.SE3(pin.exp3(off * m.X), np.zeros(3))
    left = table("left", *m.five_bar()["joints"][:2])
    right = k.moved(table("right", *m.five_bar()["joints"][2:4]), tilt)
    close = m.five_bar()["joints"][4]
    assert rows_of(k.together("leaning", left, right, table("close", close))) == rows


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
    report = report_of(pl.regularize(robot))
    cuts = [loop.name for loop in robot.loops]
    for loop in report.loops:
        for found in loop.alternatives:
            names = [found.joint if name == loop.loop else name for name in cuts]
            other = report_of(pl.regularize(robot, cut=names))
            rows = {found.loop: found.rows for found in other.loops}
            assert (rows[found.joint], other.mobility) == (found.rows, found.mobility)


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
        "import pinloop as pl; from tests.tables import joint, table\n"
        "weld = joint('w', 'fixed', 'ground', 'b')\n"
        "cut = joint('c', 'revolute', 'ground', 'b', [0, 0, 0], [0, 0, 1], cut=True)\n"
        "robot = pl.from_screws(table('welded', weld, cut))\n"
        "assert pl.Constraints(robot).jacobian(robot.neutral).shape == (5, 0)\n"
        "assert pl.regularize(robot).regularization.rows == 0\n"
        "assert pl.diagnose(robot).mobility == 0\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=Path(__file__).parents[1], capture_output=True
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
    # Leg and platform, which the first loop lets shift only, and the leg turns about z.
    assert second.tied == "Schoenflies, axis z"
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
    assert "10 rows -> 7, estimated mobility 3" in text and "Schoenflies, axis x" in text
    for loop in report.loops:
        assert f"{loop.loop}: revolute, 5 rows -> {loop.rows}" in text
        assert all(found.joint in text for found in loop.alternatives)
    assert "sampled" not in text
