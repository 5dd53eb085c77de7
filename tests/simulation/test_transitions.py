"""Tests of the change of a mode at one instant: velocity, impulse, energy, rank (paper 4).

Oracles: the dense system of eq. 22 with rows written down by `switching`, closed forms by hand.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pinloop as pl
from pinloop.dynamics import Formulation

from .. import mechanisms as m
from .. import motion_by_hand as hand
from .. import screw_tables as tables
from .. import switching as s
from ..screw_tables import Array
from ..states import LOOPED, SHIPPED, SMALL, allowed, assembled, close, rank, regularized, robot
from ..switching import FREE

FORMS: tuple[Formulation, ...] = (pl.Augmented(), pl.Projected(), pl.Voronets())
every_robot = pytest.mark.parametrize("name", [*SHIPPED, *SMALL])


def agree(machine: pl.Mechanism, q: Array, v: Array, before: pl.Mode, after: pl.Mode) -> Array:
    """Check a change in all forms against the oracle; returns the velocity after."""
    v_plus, impulse = s.jump(machine, q, v, after)
    M = hand.mass_matrix(machine, q)
    J, scale = s.mode_rows(machine, after, q)
    for form in FORMS:
        made = pl.transition(machine, q, v, before, after, form)
        s.assert_same_velocity(machine, q, made.v_plus, v_plus, v)
        if machine.regularization is None:
            momentum = M @ (made.v_plus - v)
            close(J.T @ made.impulse, momentum, 1e-11, max(1.0, float(np.abs(M @ v).max())))
            close(made.impulse / scale, impulse / scale, 1e-7)
    return v_plus


# -- by hand ----------------------------------------------------------------------------------


@pytest.mark.parametrize("elbow", [0.0, 0.7, -2.0])
def test_two_links_become_one_with_the_angular_momentum_they_have(elbow: float) -> None:
    (m1, _, c1, i1), (m2, _, c2, i2) = s.LINKS
    l1, (cos, sin) = s.LINKS[0][1], (np.cos(elbow), np.sin(elbow))
    # Angular momentum about the shoulder, link by link, both joints turning at 1 rad/s: link 1
    # turns at 1 rad/s, link 2 at 2 rad/s; q1 = 0.
    centre = np.array([l1 + c2 * cos, c2 * sin])
    velocity = np.array([-2 * c2 * sin, l1 + 2 * c2 * cos])
    before = m1 * c1**2 + i1 + m2 * (centre[0] * velocity[1] - centre[1] * velocity[0]) + 2 * i2
    frozen = m1 * c1**2 + i1 + m2 * centre @ centre + i2
    rate = before / frozen

    arm = s.two_links()
    made = pl.transition(arm, [0.0, elbow], [1.0, 1.0], FREE, pl.Mode("j2"))
    assert made.v_plus == pytest.approx([rate, 0.0], rel=1e-14)
    assert made.v_plus[1] == 0.0

    # The lock changes the angular momentum of link 2 about the elbow, less that of the moving
    # elbow: dL = I2 dw + m2 (c2 x d(velocity of the centre)).
    after = rate * np.array([-centre[1], centre[0]])
    lever = centre - np.array([l1, 0.0])
    jump = after - velocity
    impulse = i2 * (rate - 2) + m2 * (lever[0] * jump[1] - lever[1] * jump[0])
    assert made.impulse_of("lock:j2") == pytest.approx([impulse], rel=1e-13)

    def energy(w1: float, w2: float, speed: Array) -> float:
        ends = m1 * c1**2 * w1**2 + i1 * w1**2 + m2 * speed @ speed + i2 * w2**2
        return 0.5 * float(ends)

    lost = energy(1, 2, velocity) - energy(rate, rate, after)
    assert made.energy_loss == pytest.approx(lost, rel=1e-12)


def test_two_carriages_couple_like_a_perfectly_plastic_impact() -> None:
    made = pl.transition(
        s.couple("prismatic", "fixed"), [0.4, 0.4], [1.0, -0.5], pl.Mode(opened="coupling"), FREE
    )
    assert made.v_plus == pytest.approx([0.1, 0.1], rel=1e-14)  # (2 * 1 - 3 * 0.5) / 5
    # On body B, the right one, along the rail, which is z; at a point off the rail: also a torque.
    assert made.wrenches["coupling"][:3] == pytest.approx([0, 0, 1.8], abs=1e-14)
    assert made.energy_loss == pytest.approx(0.5 * 2 + 0.5 * 3 * 0.25 - 0.5 * 5 * 0.01, rel=1e-14)


# -- three forms ------------------------------------------------------------------------------


@every_robot
def test_all_forms_lock_joints_alike(name: str) -> None:
    rng = np.random.default_rng(5)
    for machine in (robot(name), regularized(name)):
        for seed in (3, 4):
            q = assembled(machine, seed, walk=1)
            v = s.moving_in(machine, q, FREE, seed)
            agree(machine, q, v, FREE, pl.Mode(s.some_locks(machine, rng)))


def test_the_robots_with_loops_are_those_that_are_named() -> None:
    assert [name for name in (*SHIPPED, *SMALL) if robot(name).loops] == LOOPED


@pytest.mark.parametrize("name", LOOPED)
def test_all_forms_close_loops_and_exchange_rows_alike(name: str) -> None:
    rng = np.random.default_rng(6)
    for machine in (robot(name), regularized(name)):
        q = assembled(machine, 3, walk=1)
        loops = [str(loop) for loop in rng.permutation([loop.name for loop in machine.loops])]
        held, other = (str(joint) for joint in rng.choice(machine.joints, 2))
        changes = [
            (pl.Mode(opened=loops[:1]), FREE),
            (pl.Mode(held, opened=loops[:1]), pl.Mode(other, opened=loops[-1:])),
            (pl.Mode(opened=loops), pl.Mode(held)),
        ]
        for before, after in changes:
            v = s.moving_in(machine, q, before, 8)
            with warnings.catch_warnings():  # some loops meet at a singularity
                warnings.simplefilter("ignore", pl.PinloopWarning)
                v_plus = agree(machine, q, v, before, after)
            J, _ = s.mode_rows(machine, after, q)
            close(J @ v_plus, np.zeros(len(J)), 1e-10)


def test_locked_velocities_are_exactly_zero_in_every_form() -> None:
    for name in ("delta", "every-pair", "spinning-rods"):
        machine = regularized(name)
        q = machine.neutral
        held = [j for j in machine.joints if j in ("arm_1", "ball1", "spherical")]
        locks, columns = pl.Mode(tuple(held)), [machine.coordinates(j).v for j in held]
        for form in FORMS:
            made = pl.transition(machine, q, s.moving_in(machine, q, FREE, 4), FREE, locks, form)
            assert not any(made.v_plus[at].any() for at in columns)
            assert made.v_plus.any()


# -- momentum and energy ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["every-pair", "six_axis_arm", "double-pendulum", "planar_3r"])
def test_momenta_of_free_joints_stay_in_trees(name: str) -> None:
    machine, rng = robot(name), np.random.default_rng(7)
    for seed in range(4):
        q, v = hand.random_q(machine, rng), rng.normal(size=machine.nv)
        locks = s.some_locks(machine, rng)
        made = pl.transition(machine, q, v, FREE, pl.Mode(locks))
        columns = [k for j in locks for k in np.r_[machine.coordinates(j).v]]
        free = np.delete(np.arange(machine.nv), columns)
        M = hand.mass_matrix(machine, q)
        close(made.momentum_before, M @ v, 1e-13)
        close(made.momentum_after[free], (M @ v)[free], 1e-12)
        assert np.abs(made.momentum_after - made.momentum_before)[columns].min() > 1e-6, seed
        # In a tree a lock's impulse is the momentum that its joint loses.
        found = np.concatenate([made.impulse_of(f"lock:{j}") for j in sorted(locks)])
        at = [k for j in sorted(locks) for k in np.r_[machine.coordinates(j).v]]
        close(found, (made.momentum_after - M @ v)[at], 1e-11)


@pytest.mark.parametrize("name", ["delta", "stewart", "planar-3-RRR", "spinning-rods", "sarrus"])
def test_momenta_along_what_stays_free_stay_with_loops(name: str) -> None:
    machine, rng = regularized(name), np.random.default_rng(8)
    for seed in range(3):
        q = assembled(machine, seed, walk=1)
        after = pl.Mode(s.some_locks(machine, rng, most=1))
        made = pl.transition(machine, q, s.moving_in(machine, q, FREE, seed), FREE, after)
        free = allowed(s.mode_rows(machine, after, q)[0])
        change = hand.mass_matrix(machine, q) @ (made.v_plus - made.v_minus)
        close(free.T @ change, np.zeros(free.shape[1]), 1e-11)


ENERGETIC = {name: regularized(name) for name in ("planar-3R", "four-bar", "five-bar", "rssr")}


@given(
    name=st.sampled_from(sorted(ENERGETIC)),
    pose=st.integers(0, 20),
    rates=st.lists(st.floats(-20, 20), min_size=8, max_size=8),
    chosen=st.sets(st.integers(0, 3), min_size=1, max_size=3),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_energy_never_rises(name: str, pose: int, rates: list[float], chosen: set[int]) -> None:
    machine = ENERGETIC[name]
    q = assembled(machine, pose, walk=1)
    free = allowed(s.mode_rows(machine, FREE, q)[0])
    v = free @ np.array(rates[: free.shape[1]])
    locks = {machine.joints[k % len(machine.joints)] for k in chosen}
    made = pl.transition(machine, q, v, FREE, pl.Mode(tuple(locks)))
    before = s.kinetic(machine, q, v)
    lost = before - s.kinetic(machine, q, made.v_plus)
    dv = made.v_plus - v
    assert made.energy_loss >= 0.0
    assert made.energy_loss == pytest.approx(lost, abs=1e-12 * max(1.0, before))
    assert made.energy_loss == pytest.approx(
        0.5 * dv @ hand.mass_matrix(machine, q) @ dv, abs=1e-12 * max(1.0, before)
    )


@pytest.mark.parametrize("name", ["six_axis_arm", "delta", "stewart", "every-pair"])
def test_locking_jointly_is_locking_one_after_another_in_any_order(name: str) -> None:
    machine = regularized(name)
    q = assembled(machine, 2, walk=1)
    v = s.moving_in(machine, q, FREE, 2)
    one, two = [j for j in machine.joints if machine.coordinates(j).nv == 1][:2]
    both = pl.Mode((one, two))
    jointly = pl.transition(machine, q, v, FREE, both).v_plus
    assert np.abs(jointly).max() > 0.05
    for first in (one, two):
        between = pl.transition(machine, q, v, FREE, pl.Mode(first))
        then = pl.transition(machine, q, between.v_plus, between.after, both)
        s.assert_same_velocity(machine, q, then.v_plus, jointly, v)


def test_zeroing_the_velocity_would_break_momentum_and_often_raise_energy() -> None:
    arm, rng = robot("six_axis_arm"), np.random.default_rng(9)
    raised, count, worst = 0, 2000, 0.0
    for _ in range(count):
        q, v = rng.uniform(-np.pi, np.pi, 6), rng.normal(size=6)
        zeroed = np.r_[v[0], 0.0, v[2:]]
        kept = np.delete(hand.mass_matrix(arm, q) @ (zeroed - v), 1)
        assert np.abs(kept).max() > 1e-6
        gain = s.kinetic(arm, q, zeroed) / s.kinetic(arm, q, v)
        raised, worst = raised + (gain > 1.0), max(worst, gain)
    print(f"\nzeroing joint 2 raises the kinetic energy in {raised / count:.1%} of random states, "
          f"up to {worst:.1f} times")  # fmt: skip
    assert 0.05 < raised / count < 0.5


# -- redundant rows ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["four-bar", "five-bar", "spherical-four-bar", "delta", "door"])
def test_determined_impulses_are_those_whose_row_is_needed(name: str) -> None:
    machine, rng = robot(name), np.random.default_rng(10)
    q = assembled(machine, 1, walk=1)
    v = s.moving_in(machine, q, FREE, 1)
    seen = set()
    for count in range(1, min(4, len(machine.joints)) + 1):
        locks = tuple(str(j) for j in rng.choice(machine.joints, count, replace=False))
        made = pl.transition(machine, q, v, FREE, pl.Mode(locks))
        J, _ = s.mode_rows(machine, made.after, q)
        assert made.determined.tolist() == s.determined(J)
        assert made.rank_after == (rank(J), rank(J))
        assert made.rank_before[0] == rank(s.mode_rows(machine, FREE, q)[0])
        seen |= set(made.determined[-len(locks) :].tolist())
    assert seen == {True, False} or name == "door"


@pytest.mark.parametrize("name", ["four-bar", "rssr", "delta", "spinning-rods", "sarrus"])
def test_wrenches_are_unique_where_every_row_of_their_loop_is_needed(name: str) -> None:
    told = {}
    for machine in (robot(name), regularized(name)):
        q, after = assembled(machine, 1, walk=1), pl.Mode(machine.joints[0])
        made = pl.transition(machine, q, s.moving_in(machine, q, FREE, 1), FREE, after)
        needed = s.determined(s.mode_rows(machine, after, q)[0])
        rows = pl.Constraints(machine, full=True).rows_of
        told = made.determined_wrenches
        assert told == {loop.name: all(needed[rows[loop.name]]) for loop in machine.loops}
    assert any(told.values()) == (name in ("rssr", "spinning-rods", "delta"))


def test_rows_may_be_redundant_before_and_become_needed() -> None:
    bar = robot("four-bar")
    q = bar.neutral
    stuck = pl.Mode(("crank", "elbow", "rocker"))
    freed = pl.transition(bar, q, np.zeros(3), stuck, pl.Mode("crank"))
    assert not freed.v_plus.any() and freed.regular
    assert freed.rank_before == (3, 3) and freed.rank_after == (3, 3)
    v = s.moving_in(bar, q, pl.Mode(opened="close"), 3)
    agree(bar, q, v, pl.Mode(opened="close"), stuck)
    agree(bar, q, np.array([0, 2.0, 3.0]), pl.Mode("crank", opened="close"), FREE)


@pytest.mark.parametrize("form", FORMS)
def test_a_lock_that_is_not_needed_changes_nothing(form: Formulation) -> None:
    # Two joints of a four-bar that floats: the second lock adds nothing, and nothing may jump.
    for machine in (robot("floating-four-bar"), regularized("floating-four-bar")):
        q, one = assembled(machine, 1, walk=1), pl.Mode("rocker")
        v = s.moving_in(machine, q, one, 3)
        both = pl.transition(machine, q, v, one, pl.Mode(("rocker", "elbow")), form)
        close(both.v_plus, v, 1e-13, 2.0)
        assert both.energy_loss < 1e-20 and both.regular


@pytest.mark.parametrize("form", FORMS)
def test_a_loop_that_is_not_needed_changes_nothing(form: Formulation) -> None:
    machine = robot("hoberman-4")
    q, before = assembled(machine, 3, walk=1), pl.Mode(opened="mid3")
    v = s.moving_in(machine, q, before, 8)
    made = pl.transition(machine, q, v, before, FREE, form)
    assert made.rank_before == made.rank_after == (6, 6)
    close(made.v_plus, v, 1e-12, 2.0)


# -- exchanges --------------------------------------------------------------------------------


def test_one_joint_is_locked_while_another_is_released() -> None:
    arm, rng = robot("planar_3r"), np.random.default_rng(11)
    q, v = rng.normal(size=3), np.array([1.0, 0.0, -2.0])
    made = pl.transition(arm, q, v, pl.Mode("joint_2"), pl.Mode("joint_3"))
    M = hand.mass_matrix(arm, q)
    assert made.labels == ("lock:joint_3",) and made.v_plus[2] == 0.0
    close((M @ made.v_plus)[:2], (M @ v)[:2], 1e-12)
    assert abs(made.v_plus[1]) > 0.1


def test_one_loop_closes_while_another_opens() -> None:
    rods = regularized("spinning-rods")
    q = assembled(rods, 4, walk=1)
    before, after = pl.Mode(opened="close2"), pl.Mode(opened="close1")
    v = s.moving_in(rods, q, before, 2)
    made = pl.transition(rods, q, v, before, after)
    close(made.v_plus, s.jump(rods, q, v, after)[0], 1e-12, 4.0)
    assert set(made.wrenches) == {"close2"} and np.abs(made.wrenches["close2"]).max() > 0.01
    rows = pl.Constraints(rods, full=True)
    violated = rows.by_name(rows.jacobian(q) @ made.v_plus)
    assert violated["close2"] < 1e-12 and violated["close1"] > 0.01


def test_nothing_jumps_when_joints_are_released_and_loops_open() -> None:
    for name in ("four-bar", "delta", "stewart"):
        machine = regularized(name)
        held, loop = machine.joints[0], machine.loops[0].name
        q = assembled(machine, 1, walk=1)
        for before, after in (
            (pl.Mode(held), FREE),
            (FREE, pl.Mode(opened=loop)),
            (pl.Mode(held), pl.Mode(opened=loop)),
        ):
            v = s.moving_in(machine, q, before, 5)
            made = pl.transition(machine, q, v, before, after)
            close(made.v_plus, v, 1e-14, 2.0)
            close(made.impulse, np.zeros(len(made.labels)), 1e-12, 10.0)
            assert made.energy_loss < 1e-20 and made.regular


# -- what is refused, what is said --------------------------------------------------------------


def test_a_velocity_that_the_mode_before_forbids_is_refused() -> None:
    bar = robot("four-bar")
    v = pl.consistent_velocity(bar, bar.neutral, {"crank": 1.0})
    with pytest.raises(pl.InconsistentVelocity, match=r"mode before \(lock:crank\)") as caught:
        pl.transition(bar, bar.neutral, v, pl.Mode("crank"), FREE)
    assert caught.value.residual == pytest.approx(1.0, rel=1e-9)
    with pytest.raises(pl.InconsistentVelocity, match="mode before"):
        pl.transition(bar, bar.neutral, [1.0, 0.0, 0.0], FREE, pl.Mode("crank"))
    pl.transition(bar, bar.neutral, [1.0, 0.0, 0.0], pl.Mode(opened="close"), pl.Mode("crank"))


def test_impulses_are_found_by_name_and_no_other_name() -> None:
    chain = tables.build(
        tables.table(
            "chain",
            tables.joint("j1", "revolute", "ground", "a", [0, 0, 0], m.Z),
            tables.joint("j10", "revolute", "a", "b", [1, 0, 0], m.Z),
            tables.joint("ball", "spherical", "b", "c", [2, 0, 0]),
        )
    )
    v = np.arange(1.0, 6.0)
    made = pl.transition(chain, chain.neutral, v, FREE, pl.Mode(("j1", "j10", "ball")))
    close(made.impulse_of("lock:ball"), made.impulse[:3], 0.0)
    close(made.impulse_of("lock:ball.wy"), made.impulse[1:2], 0.0)
    close(made.impulse_of("lock:j10"), made.impulse[4:], 0.0)
    close(made.impulse_of("lock:j1"), made.impulse[3:4], 0.0)
    with pytest.raises(pl.BadValue, match=r"no row is called 'lock:j2'; rows: lock:ball\.wx"):
        made.impulse_of("lock:j2")


def test_a_form_that_does_not_exist_is_refused() -> None:
    arm = robot("planar_3r")
    with pytest.raises(pl.BadValue, match="form"):
        pl.transition(arm, arm.neutral, [1, 1, 1], FREE, pl.Mode("joint_2"), form="projected")  # type: ignore[arg-type]


def test_nothing_that_is_given_is_changed() -> None:
    arm = robot("planar_3r")
    q, v = np.array([0.1, 0.2, 0.3]), np.array([1.0, 2.0, 3.0])
    made = pl.transition(arm, q, v, FREE, pl.Mode("joint_2"))
    assert q.tolist() == [0.1, 0.2, 0.3] and v.tolist() == [1.0, 2.0, 3.0]
    assert made.q.tolist() == q.tolist() and made.v_minus.tolist() == v.tolist()
    assert (made.before, made.after) == (FREE, pl.Mode("joint_2"))


@pytest.mark.parametrize("name", LOOPED)
def test_locks_partial_locks_and_unlocks_one_after_another_in_looped_robots(name: str) -> None:
    """A random walk through modes, each change against the dense system of all its rows."""
    rng = np.random.default_rng(31)
    for machine in (robot(name), regularized(name)):
        q = assembled(machine, 6, walk=1)
        mode, v = FREE, s.moving_in(machine, q, FREE, 6)
        for _ in range(4):
            after = s.any_mode(machine, rng) if mode == FREE or rng.random() < 0.7 else FREE
            made = pl.transition(machine, q, v, mode, after)
            s.assert_same_velocity(machine, q, made.v_plus, s.jump(machine, q, v, after)[0], v)
            assert not made.v_plus[s.locked_columns(machine, after)].any()
            # What the rows after the change exert, locks included, is the change of momentum.
            J = pl.EquationsOfMotion(machine, locks=after.locks).terms(0.0, q, v)[0]
            close(J.T @ made.impulse, made.momentum_after - made.momentum_before, 1e-9)
            mode, v = after, made.v_plus
            if np.abs(v).max() < 1e-3:
                mode, v = FREE, s.moving_in(machine, q, FREE, int(rng.integers(100)))
