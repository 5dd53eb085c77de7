"""Tests of `pinloop.regularize` and `pinloop.regularization.loop_bounds`: the right rows, and
never one too few.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.assembly.search import null_space
from pinloop.model.description import GROUND
from pinloop.model.mechanism import build
from pinloop.regularization import loop_bounds as bounds
from pinloop.regularization.loop_bounds import MotionNetwork

from .. import linkages as k
from .. import mechanisms as m
from ..known_linkages import (
    FAR,
    KNOWN,
    NAMES,
    OTHERS,
    SHIPPED,
    URDF,
    Maker,
    assert_nothing_lost,
    idle_turn,
    reduced_called,
    report_of,
    robot_called,
    rows_of,
)
from ..random_linkages import graph
from ..reductions import configurations, jacobians, rank
from ..screw_tables import Array, Table, joint, table

# -- many loops ----


def by_looking_at_all(
    reference: bounds.Reference, network: MotionNetwork, cuts: list[str]
) -> list[bounds.Bound]:
    """The greedy order without any memory: every loop that is left is bounded at each step."""
    done: list[bounds.Bound] = []
    left = list(cuts)
    while left:
        every = [bounds._bound(reference, network, reference.edges[name]) for name in left]
        done.append(min(every, key=lambda bound: bound.rows))
        left.remove(done[-1].edge.name)
        network.tighten([(*done[-1].edge.ends, done[-1].edge.algebra)])
    return done


@pytest.mark.parametrize("seed", range(12))
def test_many_loops_in_the_greedy_order(seed: int) -> None:
    robot = pl.load(graph(seed)) if seed < 6 else parallel_joints(seed, 9)
    reference = bounds.Reference.of(robot, pl.assemble(robot))
    for cluster in reference.clusters:
        cuts = list(cluster.names)
        network = reference.network(cluster, cuts)
        fast = bounds._greedily(reference, network.copy(), cuts)
        slow = by_looking_at_all(reference, network, cuts)
        assert [(b.edge.name, b.rows, b.over) for b in fast] == [
            (b.edge.name, b.rows, b.over) for b in slow
        ]


def parallel_joints(seed: int, count: int) -> pl.Mechanism:
    """Two links with many joints between them, of three kinds."""
    rng = np.random.default_rng(seed)
    joints = [joint("first", "revolute", GROUND, "link", [0, 0, 0], [0, 0, 1])]
    for number in range(count):
        kind = ("revolute", "cylindrical", "universal")[int(rng.integers(3))]
        more: dict[str, Any] = {"axis2": [1, 0, 0]} if kind == "universal" else {}
        place, axis = [0, 0, 0.1 * number], [0, 0, 1]
        joints.append(joint(f"j{number}", kind, GROUND, "link", place, axis, cut=True, **more))
    return pl.load(table("parallel", *joints))


def test_parallel_loops_are_bounded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    count, bound = 0, bounds._bound

    def counted(*given: Any) -> bounds.Bound:
        nonlocal count
        count += 1
        return bound(*given)

    joints = [
        joint(f"j{number}", "revolute", GROUND, "link", [0, 0, number], [0, 0, 1], cut=number > 0)
        for number in range(60)
    ]
    robot = pl.load(table("parallel", *joints))
    monkeypatch.setattr(bounds, "_bound", counted)
    assert pl.regularize(robot).regularization.rows == 0  # type: ignore[union-attr]
    assert count <= 3


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
    text = " ".join(str(found).split())
    if full > needed:
        assert f"{full - reduced} redundant by geometry" in text
        assert f"{reduced - needed} overconstrained" in text


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


def bent_universal() -> Table:
    """A hinge, and a universal joint whose z axis is that of the hinge once it is bent by 0.5."""
    return table(
        "bent universal",
        joint("turn", "revolute", GROUND, "arm", [0, 0, 0], [0, -np.sin(0.5), np.cos(0.5)]),
        joint("close", "universal", GROUND, "arm", [0, 0, 0], m.Z, axis2=m.X, cut=True),
    )


x, y, z, rx, ry, rz = np.eye(6)
TURNED: list[tuple[Maker, str, Array, int]] = [
    (m.four_bar, "close", 2.0 * rz, 2),
    # A right angle: the one direction that the rows leave out becomes one that they need.
    (m.sarrus, "b3", np.pi / 2 * rz, 4),
    (lambda: k.turned_over(m.sarrus(), "b3"), "b3", np.pi / 2 * rz, 4),
    (m.sarrus, "b3", 1.1 * rz, 4),
    (k.prrr3, "hinge_y3", -np.pi / 2 * rz, 7),
    (idle_turn, "close", np.pi / 2 * rz, 1),
    (lambda: k.turned_over(idle_turn(), "close"), "close", np.pi / 2 * rz, 1),
    # A hinge along z of B: bent, the universal joint about z of A and x of B does not allow it.
    (bent_universal, "close", 0.5 * rx, 1),
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


def test_a_loop_joint_that_is_turned_over_is_so_throughout() -> None:
    # Of the two sides of b3 only the one on leg b stays in a plane: that has to be A.
    robot = pl.from_screws(k.turned_over(m.sarrus(), "b3"))
    (before,), (after,) = robot.loops, pl.regularize(robot).loops
    assert (after.body_a, after.body_b) == (before.body_b, before.body_a) == ("b_high", "platform")
    assert (after.frame_a, after.frame_b) == (before.frame_b, before.frame_a)
    assert after.loop.chain_a == before.loop.chain_b == ("b1", "b2")
    assert after.loop.chain_b == before.loop.chain_a == ("a1", "a2", "a3")
    assert after.loop.root == before.loop.root
    (loop,) = report_of(pl.regularize(robot)).loops
    assert (loop.algebra_a, loop.algebra_b) == ("planar, normal y", "planar, normal x")
    assert robot.loops[0].body_a == "platform"


@pytest.mark.parametrize("first", ["along", "across"])
def test_the_order_of_the_loops_is_searched(first: str) -> None:
    # A nut on a thread with two guides. The guide along the thread leaves steps of whole turns, so
    # that the one across is still needed after it; after that one nothing is left to forbid.
    axes = {"along": m.Z, "across": m.X}
    names = [first, *(axes.keys() - {first})]
    guides = [joint(n, "prismatic", GROUND, "nut", [0, 0, 0], axes[n], cut=True) for n in names]
    thread = joint("thread", "helical", GROUND, "nut", [0, 0, 0], m.Z, pitch=0.1)
    robot = pl.regularize(pl.from_screws(table("guides", thread, *guides)))
    assert [loop.name for loop in robot.loops] == names
    assert [(loop.loop, loop.rows) for loop in report_of(robot).loops] == [
        ("across", 1),
        ("along", 0),
    ]
    for turn in (0.0, 2 * np.pi):
        full, reduced = jacobians(robot, robot.configuration({"thread": turn}))
        assert rank(full) == rank(reduced) == 1


def test_an_idle_turn_of_the_cut_joint_is_not_a_slide() -> None:
    # Seen from the spinner, the slide's axis turns; a row for its first direction would not do.
    robot = reduced_called("idle turn")
    for angle in np.linspace(-3, 3, 7):
        q = robot.configuration({"turn": angle})
        assert_nothing_lost(robot, q)
        held = pl.Constraints(robot).jacobian(q)[0, robot.coordinates("slide").v]
        assert abs(held[0]) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("size", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize(
    "name",
    ["four-bar", "hoberman 4", "spherical five-bar", "sarrus", "3-PRRR", "screw jack", "door",
     "screw four-bar", "schoenflies loop", "rssr", "bennett", "idle turn", "cardan", "plunger"],
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


@pytest.mark.parametrize(("off", "rows"), [(1e-3, 4), (3e-7, 4), (1e-13, 2)])
def test_axes_are_parallel_only_if_they_are(off: float, rows: int) -> None:
    # One chain of a five-bar leans out of the plane of the other. Two planes have one direction in
    # common: 3 + 3 - 1, less the hinge that closes the loop in one of them.
    tilt = pin.SE3(pin.exp3(off * m.X), np.zeros(3))
    left = table("left", *m.five_bar()["joints"][:2])
    right = k.moved(table("right", *m.five_bar()["joints"][2:4]), tilt)
    close = m.five_bar()["joints"][4]
    leaning = k.together("leaning", left, right, table("close", close))
    robot = pl.regularize(pl.from_screws(leaning, tolerance=0))
    assert report_of(robot).rows == rows
    # What rounding explains is taken for parallel by default.
    by_default = pl.regularize(pl.from_screws(leaning))
    assert report_of(by_default).rows == (4 if off > 1e-4 else 2)


@pytest.mark.parametrize("size", [1e-3, 1e-2, 1.0, 1e3, 1e5])
@pytest.mark.parametrize("name", ["scotch yoke", "four-bar", "oldham", "slider-crank"])
def test_rows_of_a_pair_are_told_from_combinations_at_any_size(name: str, size: float) -> None:
    # In a plane two of a pair's own rows are left: nothing else is in them but rounding.
    robot = pl.regularize(pl.from_screws(k.moved(KNOWN[name][0](), pin.SE3.Identity(), size)))
    (loop,) = report_of(robot).loops
    assert sorted(np.abs(loop.selection[loop.selection != 0.0])) == [1.0, 1.0]
    assert not any("row" in label for label in pl.Constraints(robot).labels)


# -- many loops -------------------------------------------------------------------------------


def row_of_four_bars(count: int) -> Table:
    """Four-bars on the ground of which each turns the next: loops that share no joint."""
    entries: list[Table] = []
    for number in range(count):
        for one in m.four_bar()["joints"]:
            names = {end: f"{one[end]} {number}" for end in ("parent", "child")}
            ground = GROUND if number == 0 else f"rocker {number - 1}"
            ends = {e: ground if one[e] == GROUND else name for e, name in names.items()}
            entries.append(one | {"name": f"{one['name']} {number}"} | ends)
    return table("row", *entries)


def braced(cells: int) -> Table:
    """Two rails of hinged links with a bar between them in each cell: all loops share joints."""
    rng, entries = np.random.default_rng(0), []
    for cell in range(cells):
        for side, rail in enumerate("lr"):
            below = GROUND if cell == 0 else f"{rail}{cell - 1}"
            at = np.array([side, cell, 0]) + np.append(rng.uniform(-0.1, 0.1, 2), 0)
            entries.append(joint(f"h{rail}{cell}", "revolute", below, f"{rail}{cell}", at, m.Z))
        left, right = (np.array([side, cell + 0.5, 0]) for side in (0.1, 0.9))
        right = right + np.append(rng.uniform(-0.1, 0.1, 2), 0)
        entries += [
            joint(f"a{cell}", "revolute", f"l{cell}", f"bar{cell}", left, m.Z),
            joint(f"b{cell}", "revolute", f"bar{cell}", f"r{cell}", right, m.Z, cut=True),
        ]
    return table("braced", *entries)


@pytest.mark.parametrize("legs", ["xyzx", "xyzxy", "xyzxyz", "xxyyzz", "zzxxyyxyz"])
def test_each_further_leg_finds_a_platform_that_does_not_turn(legs: str) -> None:
    # Two legs leave the shifts: 4 rows. Each further one forbids three: the shifts that it does not
    # share, and turns about its axis; a loop that was bounded before that would take four.
    robot = pl.regularize(pl.from_screws(k.prrr3(legs), tolerance=0))
    assert len(robot.loops) == len(legs) - 1
    assert report_of(robot).rows == 4 + 3 * (len(legs) - 2)
    for q in configurations(robot, np.random.default_rng(0), walk=3, restarts=0):
        assert_nothing_lost(robot, q)


def test_loops_that_share_bodies_only_are_clusters_of_their_own() -> None:
    robot = pl.from_screws(row_of_four_bars(3))
    assert [cluster.names for cluster in robot.clusters] == [
        tuple(loop.name for loop in robot.loops if loop.name.endswith(f" {number}"))
        for number in range(3)
    ]
    assert all(len(cluster.joints) == 3 for cluster in robot.clusters)
    alone, together = reduced_called("four-bar"), pl.regularize(robot, compare_cuts=True)
    (loop,) = report_of(alone).loops
    for other in report_of(together).loops:
        np.testing.assert_allclose(other.selection, loop.selection, atol=1e-9)
        assert [one.rows for one in other.alternatives] == [one.rows for one in loop.alternatives]
        # Of all loops: two rows of each of the others.
        for one in other.alternatives:
            assert one.total_rows == one.rows + 4 and one.mobility == 9 - one.total_rows
    assert len(pl.from_screws(braced(6), tolerance=0).clusters) == 1


def around_a_hub(count: int) -> Table:
    """Chains of three bars from a hub that turns to one body: all loops share both."""
    entries = [joint("hub", "revolute", GROUND, "hub", [0, 0, 0], m.Z)]
    for leg in range(count + 1):
        turn = pin.exp3(2 * np.pi * leg / (count + 1) * m.Z)
        bodies = ["hub", f"inner{leg}", f"outer{leg}", "frame"]
        for step, radius in enumerate((1.0, 2.0, 2.5)):
            cut: Table = {"cut": True} if leg and step == 2 else {}
            ends, at = bodies[step : step + 2], turn @ [radius, 0.3 * step, 0]
            entries.append(joint(f"h{step} {leg}", "revolute", *ends, at, m.Z, **cut))
    return table("hub", *entries)


@pytest.mark.parametrize("make", [row_of_four_bars, braced, around_a_hub])
def test_work_grows_with_the_number_of_loops(
    make: Callable[[int], Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Counted, not timed: how many loops are bounded, and how many bounds are looked at for that.
    work: list[int] = []
    bound, through = bounds._bound, MotionNetwork._through

    def counted(*given: Any) -> Any:
        work[-1] += 1
        return bound(*given)

    def counted_through(*given: Any) -> Any:
        work[-1] += 1
        return through(*given)

    monkeypatch.setattr(bounds, "_bound", counted)
    monkeypatch.setattr(MotionNetwork, "_through", counted_through)
    for count in (10, 20, 40):
        robot = pl.from_screws(make(count), tolerance=0)
        work.append(0)
        assert report_of(pl.regularize(robot)).rows == 2 * count
    assert work[2] - work[1] <= 2.2 * (work[1] - work[0])


def test_a_hundred_loops_reach_no_pin_data(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = pl.from_screws(row_of_four_bars(100), tolerance=0)
    monkeypatch.setattr(pin.Model, "createData", no_data)
    reduced = pl.regularize(robot)
    assert report_of(reduced).rows == 200 and robot.nv == 300


def no_data(model: pin.Model) -> None:
    """Of 300 coordinates it takes nearly a gigabyte."""
    raise AssertionError(f"a pin.Data of {model.nv} coordinates is made")


@pytest.mark.parametrize("count", [340, 1541])
def test_trees_are_diagnosed_at_once(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    arms = [
        joint(f"j{k}", "revolute", GROUND if k == 0 else f"b{k - 1}", f"b{k}", [k, 0, 0], m.Z)
        for k in range(count)
    ]
    robot = pl.from_screws(table("tree", *arms), tolerance=0)
    monkeypatch.setattr(pin.Model, "createData", no_data)
    found = pl.diagnose(robot)
    assert (found.mobility, found.rank, found.idle_dof) == (count, 0, 0)
    assert found.assembled and found.reduced_rows == 0
    assert report_of(pl.regularize(robot)).rows == 0
