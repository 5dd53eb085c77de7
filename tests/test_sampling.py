"""Tests of `pinloop.sampling`: rows that follow from the others on one branch, and no others."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop import sampling
from pinloop.closing import nearby_assembly

from . import linkages as k
from . import mechanisms as m
from .known_linkages import Maker, assert_nothing_lost, reduced_called, report_of, robot_called
from .reductions import configurations, jacobians, rank
from .tables import Table, joint, table


def sampled(robot: pl.Mechanism, seed: int = 0) -> pl.Mechanism:
    return pl.regularize(robot, sampled=True, seed=seed)


def by_force(robot: pl.Mechanism) -> int:
    """Rows of a regularized robot that are no constant combination of the others, over 40 poses."""
    rng = np.random.default_rng(99)
    rows = [jacobians(robot, q)[1] for q in configurations(robot, rng, walk=40, restarts=0)]
    return rank(np.hstack(rows))


def three_gears() -> Table:
    """Gears in a ring whose ratios fit: each coupling follows from the other two."""
    wheels = [joint(f"g{i}", "revolute", "ground", f"wheel{i}", [i, 0, 0], m.Z) for i in range(3)]
    ratios = [("g1", "g0", -2.0), ("g2", "g1", -0.5), ("g0", "g2", 1.0)]
    couplings = [
        {"name": f"mesh{i}", "joint": a, "source": b, "ratio": ratio}
        for i, (a, b, ratio) in enumerate(ratios)
    ]
    return table("three gears", *wheels) | {"couplings": couplings}


# Rows after motion groups, rows after sampling, rank.
#
# Triple parallelogram, cuts seen from the cranks (axes x along the crank, y across): with the angle
# t of the cranks, d2 and d3 from the first pivot to the others, and L the length of the cranks, the
# columns of the first crank and of the coupler are L y + z x Q(t)' d and z x Q(t)' d, that of a cut
# crank is -L y. So combinations may use rows along x only, and a x.(z x Q'd2) + b x.(z x Q'd3)
# vanishes for all t if a d2 + b d3 = 0: one combination if the pivots are in line, else none. Seen
# from the coupler, which does not turn, the columns of the cut cranks go round: none.
DROPPED: dict[str, tuple[Maker, int, int, int]] = {
    "triple parallelogram": (k.triple_parallelogram, 4, 3, 3),
    "seen from the coupler": (lambda: k.triple_parallelogram(seen_from_crank=False), 4, 4, 3),
    "slanted": (lambda: k.triple_parallelogram(in_line=False), 4, 4, 3),
    "three gears": (three_gears, 3, 2, 2),
    # Found by brute force, see the next test.
    "universal delta": (k.universal_delta, 20, 17, 14),
    "bennett": (m.bennett, 5, 4, 2),
}


@pytest.mark.parametrize("name", DROPPED)
def test_constant_combinations_are_dropped(name: str) -> None:
    make, before, after, needed = DROPPED[name]
    robot = pl.from_screws(make())
    reduced = sampled(robot)
    report = report_of(reduced)
    assert by_force(pl.regularize(robot)) == report.rows == len(pl.Constraints(reduced)) == after
    assert report.sampled_rows == before - after
    assert report.mobility == robot.nv - after
    assert sum(loop.rows for loop in report.loops) + len(report.couplings) == after
    assert report.residual is not None and report.residual < 1e-9
    text = f"on the sampled branch {before - after} more rows are redundant"
    assert text in str(report)
    assert pl.diagnose(reduced).reduced_rows == after
    for q in configurations(reduced, np.random.default_rng(7), walk=30, restarts=0):
        assert_nothing_lost(reduced, q)
        assert rank(jacobians(reduced, q)[1]) == needed


@pytest.mark.parametrize("name", DROPPED)
def test_what_is_left_closes_the_loops(name: str) -> None:
    reduced = sampled(pl.from_screws(DROPPED[name][0]()))
    full = pl.Constraints(reduced, full=True)
    rng = np.random.default_rng(8)
    q = pl.assemble(reduced)
    for _ in range(20):
        moved = nearby_assembly(reduced, q, rng, full=False)
        if moved is not None:
            q = moved
            assert np.linalg.norm(full.residual(q)) < 1e-9


KEPT = [
    "four-bar", "sarrus", "3-PRRR", "rssr", "spinning rods", "double cardan", "3-UPU", "hoberman 4",
    "goldberg", "4-UPU", "geared five-bar", "spherical four-bar", "door",
]  # fmt: skip


@pytest.mark.parametrize("name", [*KEPT, "stewart", "delta", "bricard", "palletizer"])
def test_nothing_else_is_dropped(name: str) -> None:
    # Either no row is redundant, or which combination is redundant changes with the configuration.
    robot, groups = robot_called(name), report_of(reduced_called(name))
    reduced = sampled(robot)
    report = report_of(reduced)
    assert report.sampled_rows == 0 and report.rows == groups.rows
    assert by_force(reduced_called(name)) == groups.rows
    for loop, other in zip(report.loops, groups.loops, strict=True):
        np.testing.assert_array_equal(loop.selection, other.selection)


def rigid_loop() -> Table:
    """Four skew hinges: no motion at all, but two rows more than coordinates."""
    rng = np.random.default_rng(11)
    return k.chain(
        "rigid", *(("revolute", rng.normal(size=3), rng.normal(size=3), None) for _ in range(4))
    )


def truss() -> Table:
    return table(
        "truss",
        joint("left", "revolute", "ground", "left", [0, 0, 0], m.TURN),
        joint("right", "revolute", "ground", "right", m.X, m.TURN),
        joint("close", "revolute", "left", "right", m.planar(0.9, 0.7), m.TURN, cut=True),
    )


@pytest.mark.parametrize("make", [rigid_loop, truss, lambda: k.upu(4)])
def test_what_does_not_move_tells_nothing(make: Maker) -> None:
    entries = make()
    if entries["name"] == "4-UPU":
        # Slides that are welded leave no motion, though the rows are redundant.
        entries = k.changed(entries, *(f"slide{leg}" for leg in range(4)), pair="fixed")
        for entry in entries["joints"]:
            if entry["pair"] == "fixed":
                del entry["point"], entry["axis"]
    robot = pl.from_screws(entries)
    assert nearby_assembly(robot, robot.neutral, np.random.default_rng(0)) is None
    report = report_of(sampled(robot))
    assert report.sampled_rows == 0
    assert report.rows == report_of(pl.regularize(robot)).rows


@pytest.mark.parametrize("name", ["four-bar", "sarrus", "3-PRRR", "rssr", "stewart"])
def test_a_wrong_guess_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Somebody believes that the last row follows from the others: closing without it shows better.
    monkeypatch.setattr(sampling, "_left_null", lambda rows: np.eye(len(rows))[:, -1:])
    report = report_of(sampled(robot_called(name)))
    assert report.sampled_rows == 0 and report.rows == report_of(reduced_called(name)).rows
    assert report.residual is not None and report.residual > 1e-9


@pytest.mark.parametrize("size", [1.0, 1e-3])
@pytest.mark.parametrize("beside", [None, m.four_bar])
def test_a_first_instant_of_motion_is_no_motion(beside: Maker | None, size: float) -> None:
    # The flat truss seems to move, always at the same place; its second row holds it.
    flat = k.moved(k.collinear_three_bar(), pin.SE3.Identity(), size)
    robot = pl.from_screws(flat if beside is None else k.together("both", flat, beside()))
    reduced = sampled(robot)
    assert report_of(reduced).sampled_rows == 0
    assert report_of(reduced).rows == report_of(pl.regularize(robot)).rows
    assert_nothing_lost(reduced, robot.neutral)


@pytest.mark.parametrize("size", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("name", ["triple parallelogram", "bennett"])
def test_units_do_not_matter(name: str, size: float) -> None:
    make, before, after, _ = DROPPED[name]
    robot = pl.from_screws(k.moved(make(), pin.SE3.Identity(), size))
    assert report_of(sampled(robot)).sampled_rows == before - after


def test_same_seed_same_rows() -> None:
    robot = pl.from_screws(k.universal_delta())
    first, again = report_of(sampled(robot, seed=3)), report_of(sampled(robot, seed=3))
    for one, other in zip(first.loops, again.loops, strict=True):
        assert one.selection.tobytes() == other.selection.tobytes()
    assert first.residual == again.residual
    assert report_of(sampled(robot, seed=4)).rows == first.rows
    assert report_of(pl.regularize(robot, sampled=True, samples=20)).rows == first.rows


def test_the_seed_is_used() -> None:
    robot = pl.from_screws(k.triple_parallelogram())
    assert len({report_of(sampled(robot, seed=seed)).residual for seed in range(6)}) > 1


def test_sampling_is_asked_for() -> None:
    report = report_of(pl.regularize(pl.from_screws(k.triple_parallelogram())))
    assert report.rows == 4 and report.sampled_rows is None and report.residual is None
