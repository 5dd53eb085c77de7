"""Tests of `pinloop.regularization.sampled_redundancy`: as many rows as the rank on one branch,
and none too few.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.assembly.continuation import moved_away, nearby_assembly
from pinloop.assembly.search import null_space
from pinloop.dynamics import Formulation
from pinloop.model.description import GROUND
from pinloop.regularization import sampled_redundancy as sampling
from pinloop.regularization.sampled_redundancy import RowChooser, with_rows
from pinloop.simulation.modes import ModalSystem

from .. import linkages as k
from .. import mechanisms as m
from .. import random_linkages as some
from ..known_linkages import Maker, assert_nothing_lost, reduced_called, report_of, robot_called
from ..reductions import configurations, jacobians, lost, rank
from ..screw_tables import Array, Table, joint, table


def sampled(robot: pl.Mechanism, seed: int = 0) -> pl.Mechanism:
    return pl.regularize(robot, sampled=True, seed=seed)


def three_gears() -> Table:
    """Gears in a ring whose ratios fit: each coupling follows from the other two."""
    wheels = [joint(f"g{i}", "revolute", "ground", f"wheel{i}", [i, 0, 0], m.Z) for i in range(3)]
    ratios = [("g1", "g0", -2.0), ("g2", "g1", -0.5), ("g0", "g2", 1.0)]
    couplings = [
        {"name": f"mesh{i}", "joint": a, "source": b, "ratio": ratio}
        for i, (a, b, ratio) in enumerate(ratios)
    ]
    return table("three gears", *wheels) | {"couplings": couplings}


def two_bennetts() -> Table:
    """Two linkages that share nothing, and a third that is not overconstrained."""
    parts = [m.bennett(), k.goldberg(), m.four_bar()]
    for number, entries in enumerate(parts):
        for entry in entries["joints"]:
            entry["name"] = f"{entry['name']} of {number}"
            for end in ("parent", "child"):
                if entry[end] != GROUND:
                    entry[end] = f"{entry[end]} of {number}"
    return k.together("two", *parts)


# Rows that motion groups leave, and the rank on the branch.
DROPPED: dict[str, tuple[Maker, int, int]] = {
    "bennett": (m.bennett, 5, 2),
    "goldberg": (k.goldberg, 5, 3),
    "double cardan": (m.double_cardan, 4, 3),
    "bent double cardan": (k.bent_double_cardan, 4, 3),
    "triple parallelogram": (k.triple_parallelogram, 4, 3),
    "seen from the coupler": (lambda: k.triple_parallelogram(seen_from_crank=False), 4, 3),
    "slanted": (lambda: k.triple_parallelogram(in_line=False), 4, 3),
    "4-UPU": (lambda: k.upu(4), 12, 11),
    "4-UPU upright": (lambda: k.upu(4, upright=True), 12, 10),
    "universal delta": (k.universal_delta, 20, 14),
    "hoberman 4": (k.hoberman, 10, 6),
    "hoberman 6": (lambda: k.hoberman(6), 14, 10),
    "three gears": (three_gears, 3, 2),
    "two bennetts": (two_bennetts, 12, 7),
}


def dropped(name: str) -> pl.Mechanism:
    return robot_called("bricard") if name == "bricard" else pl.from_screws(DROPPED[name][0]())


@pytest.mark.parametrize("name", [*DROPPED, "bricard"])
def test_as_many_rows_as_the_rank(name: str) -> None:
    before, after = DROPPED[name][1:] if name in DROPPED else (5, 4)
    robot = dropped(name)
    reduced = sampled(robot)
    report = report_of(reduced)
    assert report_of(pl.regularize(robot)).rows == before
    assert report.rows == len(pl.Constraints(reduced)) == after
    assert report.sampled_rows == before - after and report.undecided == ()
    assert report.mobility == robot.nv - after
    assert sum(loop.rows for loop in report.loops) + len(report.couplings) == after
    assert report.residual is not None and report.residual < 1e-9
    assert f"on the sampled branch {before - after} more redundant equations" in str(report)
    assert pl.diagnose(reduced).reduced_rows == after
    # Fresh configurations: another seed than that of the samples.
    for q in configurations(reduced, np.random.default_rng(7), walk=30, restarts=0):
        here = pl.renew_rows(reduced, q)
        assert len(pl.Constraints(here)) == after
        assert_nothing_lost(here, q)
        assert rank(jacobians(here, q)[1]) == after


@pytest.mark.parametrize("name", [*DROPPED, "bricard"])
def test_what_is_left_closes_the_loops(name: str) -> None:
    reduced = sampled(dropped(name))
    full = pl.Constraints(reduced, full=True)
    rng = np.random.default_rng(8)
    q, count = pl.assemble(reduced), 0
    for _ in range(20):
        here = pl.renew_rows(reduced, q)
        moved = nearby_assembly(here, q, rng, full=False, reach=0.1)
        if moved is not None:
            q, count = moved, count + 1
            assert np.linalg.norm(full.residual(q)) < 1e-9
    assert count > 10


KINDS = {"bennett": 2, "goldberg": 3, "bricard": 5}


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", KINDS)
def test_random_overconstrained_linkages(kind: str, seed: int) -> None:
    robot = pl.from_screws(some.overconstrained(seed, kind), tolerance=0)
    reduced = sampled(robot)
    # A hinge is cut: one coordinate less than hinges, and one of these is free.
    expected = robot.nv - 1
    assert report_of(pl.regularize(robot)).rows == 5
    assert report_of(reduced).rows == min(expected, 5)
    for q in configurations(reduced, np.random.default_rng(seed), walk=12, restarts=0):
        here = pl.renew_rows(reduced, q)
        assert rank(jacobians(here, q)[0]) == expected == len(pl.Constraints(here))
        assert lost(here, q) < 1e-6


KEPT = [
    "four-bar", "sarrus", "3-PRRR", "rssr", "spinning rods", "3-UPU", "geared five-bar",
    "spherical four-bar", "door",
]  # fmt: skip


@pytest.mark.parametrize("name", [*KEPT, "stewart", "delta", "palletizer"])
def test_nothing_is_dropped_where_no_row_is_redundant(name: str) -> None:
    report, groups = report_of(sampled(robot_called(name))), report_of(reduced_called(name))
    assert report.sampled_rows == 0 and report.rows == groups.rows
    assert report.held is None and report.undecided == ()
    assert "no more equations were dropped" in str(report)
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


def welded_4_upu() -> Table:
    """Slides that are welded leave no motion, though the rows are redundant."""
    entries = k.changed(k.upu(4), *(f"slide{leg}" for leg in range(4)), pair="fixed")
    for entry in entries["joints"]:
        if entry["pair"] == "fixed":
            del entry["point"], entry["axis"]
    return entries


@pytest.mark.parametrize(
    ("make", "redundant"), [(rigid_loop, True), (truss, False), (welded_4_upu, True)]
)
def test_what_does_not_move_tells_nothing(make: Maker, redundant: bool) -> None:
    robot = pl.from_screws(make())
    assert nearby_assembly(robot, robot.neutral, np.random.default_rng(0)) is None
    report = report_of(sampled(robot))
    assert report.sampled_rows == 0
    assert report.rows == report_of(pl.regularize(robot)).rows
    assert bool(report.undecided) == redundant
    if redundant:
        assert "do not move" in report.undecided[0] and report.undecided[0] in str(report)


@pytest.mark.parametrize("name", ["four-bar", "sarrus", "3-PRRR", "rssr", "stewart", "bennett"])
def test_a_wrong_guess_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # A row that is needed goes: closing without it shows better.
    best = sampling._best_rows
    monkeypatch.setattr(sampling, "_best_rows", lambda *given: best(*given)[:-1])
    report = report_of(sampled(robot_called(name)))
    assert report.sampled_rows == 0 and report.rows == report_of(reduced_called(name)).rows
    assert len(report.undecided) == 1 and "open by" in report.undecided[0]


@pytest.mark.parametrize("name", ["four-bar", "bennett"])
def test_ranks_are_checked_as_well(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Even if nobody looks whether the loops are closed.
    best = sampling._best_rows
    monkeypatch.setattr(sampling, "_best_rows", lambda *given: best(*given)[:-1])
    monkeypatch.setattr(sampling, "ASSEMBLED", np.inf)
    report = report_of(sampled(robot_called(name)))
    assert report.sampled_rows == 0 and "their rank is" in report.undecided[0]


@pytest.mark.parametrize("size", [1.0, 1e-3])
@pytest.mark.parametrize("beside", [None, m.four_bar, m.bennett])
def test_a_first_instant_of_motion_is_no_motion(beside: Maker | None, size: float) -> None:
    # The flat truss seems to move, always at the same place; its second row holds it.
    flat = k.moved(k.collinear_three_bar(), pin.SE3.Identity(), size)
    robot = pl.from_screws(flat if beside is None else k.together("both", flat, beside()))
    reduced = sampled(robot)
    gone = 3 if beside is m.bennett else 0  # the other linkage is judged by itself
    assert report_of(reduced).sampled_rows == gone
    assert report_of(reduced).rows == report_of(pl.regularize(robot)).rows - gone
    assert_nothing_lost(reduced, robot.neutral)


@pytest.mark.parametrize("size", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("name", ["triple parallelogram", "bennett"])
def test_units_do_not_matter(name: str, size: float) -> None:
    make, before, after = DROPPED[name]
    robot = pl.from_screws(k.moved(make(), pin.SE3.Identity(), size))
    assert report_of(sampled(robot)).sampled_rows == before - after


def test_same_seed_same_rows() -> None:
    robot = pl.from_screws(k.universal_delta())
    first, again = report_of(sampled(robot, seed=3)), report_of(sampled(robot, seed=3))
    assert first.held == again.held and first.residual == again.residual
    assert report_of(sampled(robot, seed=4)).rows == first.rows
    assert report_of(pl.regularize(robot, sampled=True, samples=20)).rows == first.rows


def test_sampling_is_asked_for() -> None:
    report = report_of(pl.regularize(pl.from_screws(k.triple_parallelogram())))
    assert report.rows == 4 and report.sampled_rows is None and report.residual is None


def test_the_report_is_plain_data() -> None:
    values = report_of(sampled(dropped("bennett"))).as_dict()
    assert values["rows"] == 2 and len(values["held"]) == 2 and values["undecided"] == ()
    assert "by_geometry" not in values


# -- rows that degenerate -------------------------------------------------------------------------


def test_other_rows_are_held_where_these_have_degenerated() -> None:
    robot = sampled(dropped("double cardan"))
    q = robot.neutral
    bad = with_rows(robot, (0, 1, 3))
    assert rank(jacobians(bad, q)[1]) == 2 and lost(bad, q) > 0.1
    good = pl.renew_rows(bad, q)
    assert report_of(good).held != (0, 1, 3) and rank(jacobians(good, q)[1]) == 3
    assert pl.renew_rows(good, q) is good  # a value: nothing is remembered, nothing changes
    assert report_of(bad).held == (0, 1, 3)
    with pytest.raises(pl.BadValue, match="robot"):
        pl.renew_rows("double cardan", q)  # type: ignore[arg-type]
    groups = pl.regularize(dropped("double cardan"))
    assert pl.renew_rows(groups, q) is groups  # all rows are held: nothing to choose


def test_a_choice_is_not_given_up_for_nothing() -> None:
    robot = sampled(dropped("universal delta"))
    chooser, rng = RowChooser(robot), np.random.default_rng(5)
    q, held = pl.assemble(robot), report_of(robot).held
    assert held is not None
    changes = 0
    for _ in range(40):
        moved = moved_away(robot, q, rng)
        assert moved is not None
        q = moved
        renewed = chooser.renewed(held, q)
        assert chooser.renewed(renewed, q) == renewed
        if renewed != held:
            J = chooser.jacobian(q)
            before, after, whole = (
                np.linalg.svd(J[list(rows)], compute_uv=False)[13]
                for rows in (held, renewed, range(len(J)))
            )
            assert after > 2 * before and before < 0.3 * whole
        changes, held = changes + (renewed != held), renewed
    assert 0 < changes < 30


@pytest.mark.parametrize(("apart", "kept"), [(10, False), (20, True)])
def test_others_must_be_much_better(apart: int, kept: bool) -> None:
    # Thirty-one rows (1, y) with |y| < 0.15: two of them are worse than all, and the better the
    # farther apart. The two ends are 30 apart, 3 or 1.5 times as far as those that are held.
    J = np.column_stack([np.ones(31), np.linspace(-0.15, 0.15, 31)])
    block = sampling._Block((), tuple(range(31)), np.arange(2))
    held = 15 - apart // 2, 15 + apart // 2
    values = [np.linalg.svd(J[list(rows)], compute_uv=False)[1] for rows in (held, range(31))]
    assert values[0] < 0.3 * values[1]
    assert sampling._renewed(block, J, held) == (held if kept else (0, 30))


def test_rows_are_taken_that_are_good_where_they_are_worst() -> None:
    # All the way round, the least singular value of rows 0 to 3 stays above 0.41 of that of all
    # rows. That of any other four gets to zero somewhere, but not at every pose.
    assert report_of(sampled(robot_called("bricard"))).held == (0, 1, 2, 3)


def test_clusters_choose_by_themselves() -> None:
    robot = sampled(dropped("two bennetts"))
    chooser, held = RowChooser(robot), report_of(robot).held
    assert held is not None and len(chooser.blocks) == 3
    rng, q = np.random.default_rng(0), pl.assemble(robot)
    for _ in range(30):
        moved = moved_away(robot, q, rng)
        assert moved is not None
        q = moved
        new = chooser.renewed(held, q)
        for block, count in zip(chooser.blocks, (2, 3, 2), strict=True):
            assert sum(row in block.rows for row in new) == count


def test_rows_that_do_not_exist() -> None:
    robot = sampled(dropped("bennett"))
    with pytest.raises(pl.BadValue, match=r"rows \[0, 9\] of robot 'bennett'.*from 0 to 4"):
        with_rows(robot, (0, 9))
    with pytest.raises(pl.BadValue, match="not regularized"):
        with_rows(robot_called("bennett"), (0,))
    with pytest.raises(pl.BadValue, match="hold all loops"):
        pl.simulate(robot, robot.neutral, until=0.1, mode=pl.Mode(opened="j4", rows=(0, 1)))


# -- runs -----------------------------------------------------------------------------------------


def moving_state(robot: pl.Mechanism, speed: float = 3.0) -> tuple[Array, Array]:
    """A configuration on the branch, and a velocity that the loops allow."""
    rng, q = np.random.default_rng(3), pl.assemble(robot)
    for _ in range(3):
        moved = moved_away(robot, q, rng)
        assert moved is not None
        q = moved
    free = null_space(pl.Constraints(robot, full=True).jacobian(q))
    # Whatever basis is found, the direction must not depend on the processor; this way Bennett's
    # rows degenerate soon.
    v = free @ (free.T @ rng.normal(size=robot.nv))
    return q, -speed * v / np.linalg.norm(v)


RUNS = ["bricard", "bennett", "goldberg", "double cardan", "universal delta", "hoberman 4"]


@pytest.mark.parametrize("formulation", [None, pl.Augmented(), pl.Projected(), pl.Voronets()])
@pytest.mark.parametrize("name", RUNS)
def test_runs_are_those_of_all_rows(name: str, formulation: Formulation | None) -> None:
    robot = dropped(name)
    q, v = moving_state(robot)
    method = pl.MuntheKaas(rtol=1e-9, atol=1e-9)
    runs = [
        pl.simulate(model, q, v, until=1.0, formulation=formulation, method=method)
        for model in (pl.regularize(robot), sampled(robot))
    ]
    full = pl.Constraints(robot, full=True)
    for run in runs:
        assert max(np.linalg.norm(full.residual(place)) for place in run.q) < 1e-9
        energy = run.energy()
        assert np.abs(energy.error).max() < 1e-6 * np.ptp(energy.kinetic)
    whole, few = runs
    assert np.abs(robot.difference(whole.q[-1], few.q[-1])).max() < 1e-6
    # Bennett's axes turn so far that no two of its rows do all the way.
    if name in ("bennett", "hoberman 4", "universal delta"):
        assert len(few.modes) > 1


def test_rows_are_chosen_again_between_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = with_rows(sampled(dropped("bennett")), (0, 1))
    q, v = moving_state(robot)
    run = pl.simulate(robot, q, v, until=1.0, formulation=pl.Augmented())
    assert len(run.modes) > 1 and all(len(mode.rows) == 2 for mode in run.modes)
    changed = np.flatnonzero(np.diff(run.mode)) + 1
    assert np.all(np.diff(run.t)[changed - 1] == 0.0)  # both sides of a change are stored
    np.testing.assert_array_equal(run.q[changed], run.q[changed - 1])
    np.testing.assert_allclose(run.a[changed], run.a[changed - 1], atol=1e-6)
    again = pl.simulate(robot, q, v, until=1.0, formulation=pl.Augmented())
    assert again.modes == run.modes and again.q.tobytes() == run.q.tobytes()
    # Where these rows degenerate, they alone allow other motions: a bifurcation, which is passed.
    monkeypatch.setattr(ModalSystem, "renewed", lambda self, mode, q: mode)
    kept = pl.simulate(robot, q, v, until=1.0, formulation=pl.Augmented())
    np.testing.assert_allclose(kept.q[-1], run.q[-1], atol=1e-6)
    assert len(kept.modes) == 1 and kept.evaluations > run.evaluations


@pytest.mark.parametrize("name", ["bennett", "bricard", "hoberman 4"])
def test_locks(name: str) -> None:
    robot = dropped(name)
    q, v = moving_state(robot)
    joint_name = robot.joints[0]
    events = [pl.lock(joint_name, at=0.2), pl.unlock(joint_name, at=0.3)]
    whole, few = (
        pl.simulate(model, q, v, until=0.5, events=events, tau=lambda t, q, v: 0.3 * np.sin(t + v))
        for model in (pl.regularize(robot), sampled(robot))
    )
    assert np.abs(robot.difference(whole.q[-1], few.q[-1])).max() < 1e-6
    for one, other in zip(whole.transitions, few.transitions, strict=True):
        np.testing.assert_allclose(one.v_plus, other.v_plus, atol=1e-6)
        assert one.energy_loss == pytest.approx(other.energy_loss, abs=1e-6)
    locked = [pl.Mode(joint_name), pl.Mode()]
    for model in (pl.regularize(robot), sampled(robot)):
        after = pl.transition(model, q, v, pl.Mode(), locked[0])
        assert np.abs(after.v_plus[robot.coordinates(joint_name).v]).max() < 1e-12


def test_loops_that_open_and_close_again() -> None:
    robot = sampled(pl.from_screws(two_bennetts()))
    loop = robot.loops[0].name
    q = pl.assemble(robot)
    events = [pl.open_loop(loop, at=0.1), pl.close_loop(loop, at=0.1005)]
    run = pl.simulate(robot, q, until=0.2, events=events)
    assert len(run.modes[0].rows) == len(run.modes[run.mode[-1]].rows) == 7
    opened = pl.simulate(robot, q, until=0.2, events=[pl.open_loop(loop, at=0.1)])
    assert opened.modes[opened.mode[-1]] == pl.Mode(opened=loop)
    # Without one loop other rows are redundant: those that motion groups leave are held.
    assert len(opened.equations[-1].rows) == 7


def test_saved_runs_know_their_rows(tmp_path: Path) -> None:
    robot = sampled(dropped("bennett"))
    q, v = moving_state(robot)
    run = pl.simulate(robot, q, v, until=0.5)
    again = pl.load_trajectory(run.save(tmp_path / "run.npz"))
    assert again.modes == run.modes and all(mode.rows for mode in run.modes)
    a, b = run.equations[-1], again.equations[-1]
    assert len(a.rows) == len(b.rows) == 2
    np.testing.assert_allclose(
        a.terms(0, run.q[-1], run.v[-1])[0], b.terms(0, run.q[-1], run.v[-1])[0], atol=1e-9
    )


def test_stops_hold_the_rows_that_motion_groups_leave() -> None:
    robot = robot_called("bricard")
    q, v = moving_state(robot, 1.0)
    brakes = pl.Brakes.template(robot)
    one, other = (pl.stop(model, q, v, brakes=brakes) for model in (robot, sampled(robot)))
    assert len(other.run.equations[-1].rows.loops) == 5
    np.testing.assert_array_equal(one.run.q[-1], other.run.q[-1])


def test_inverse_dynamics_where_the_carried_rows_degenerate() -> None:
    robot = sampled(dropped("double cardan"))
    q, rest = robot.neutral, np.zeros(robot.nv)
    few, whole = (
        pl.inverse_dynamics(model, q, rest, rest, actuated=robot.joints[:1])
        for model in (with_rows(robot, (0, 1, 3)), pl.regularize(dropped("double cardan")))
    )
    np.testing.assert_allclose(few, whole, atol=1e-9)


@pytest.mark.parametrize("rows", [3.5, "ab", [0, "x"]])
def test_rows_of_a_mode_are_numbers(rows: Any) -> None:
    with pytest.raises(pl.BadValue, match="rows of a mode"):
        pl.Mode(rows=rows)


class TestChoice:
    """Which rows are held, on small matrices of which the answer is known."""

    @staticmethod
    def block(rows: int, columns: int) -> sampling._Block:
        return sampling._Block(("loop",), tuple(range(rows)), np.arange(columns))

    def test_of_rows_that_are_equal_but_for_rounding_the_first_is_taken(self) -> None:
        assert sampling._pivots(np.diag([1.0, 1.0 + 1e-9]), 1) == (0,)
        assert sampling._pivots(np.diag([1.0, 1.0 + 1e-3]), 1) == (1,)

    def test_singular_poses_have_no_say(self) -> None:
        regular = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.5]])
        singular = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1e-13]])
        assert sampling._best_rows(self.block(3, 2), [regular, singular]) == (0, 1)

    def test_rows_are_compared_with_all_rows_of_the_same_pose(self) -> None:
        # Where all rows are small, the second is small, too, but not as bad as the first elsewhere.
        poses = [np.array([[0.5], [0.9]]), np.array([[0.1], [0.08]])]
        assert sampling._best_rows(self.block(2, 1), poses) == (1,)

    def test_where_the_mechanism_is_singular_nothing_is_exchanged(self) -> None:
        J = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1e-12]])
        assert sampling._renewed(self.block(3, 2), J, (0, 1)) == (0, 1)
        J[2, 1] = 1.0
        assert sampling._renewed(self.block(3, 2), J, (0, 1)) == (0, 2)
