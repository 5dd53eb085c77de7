"""Physics of impulses: Newton's law on single bodies, absolute coordinates, singular changes."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

import pinloop as pl

from .. import mechanisms as m
from .. import motion_by_hand as hand
from .. import screw_tables as tables
from .. import switching as s
from ..screw_tables import Array, Table, described, joint, table
from ..states import allowed, assembled, body_motion, carried, close, regularized, robot
from ..switching import FREE

TURN, X, Z = m.TURN, m.X, m.Z


def momentum(machine: pl.Mechanism, name: str, q: Array, v: Array) -> Array:
    """Linear and angular momentum of a body about the world's origin, in world axes.

    From the mass, centre and inertia in the body's frame; no spatial algebra.
    """
    body = described(name)
    placement, twist, _ = body_motion(machine, q, v)[name]
    R, p = placement.rotation, placement.translation
    w = R @ twist.angular
    centre = R @ body.com
    velocity = R @ twist.linear + np.cross(w, centre)
    linear = body.mass * velocity
    angular = R @ body.inertia @ R.T @ w + np.cross(p + centre, linear)
    return np.concatenate([linear, angular])


def in_world(machine: pl.Mechanism, q: Array, loop: str, wrench: Array) -> Array:
    """A wrench at and in frame B of a loop joint as force and torque about the world's origin."""
    frame = machine.placement(q, f"{loop}/B")
    force = frame.rotation @ wrench[:3]
    torque = frame.rotation @ wrench[3:] + np.cross(frame.translation, force)
    return np.concatenate([force, torque])


# -- Newton and Euler, body by body -------------------------------------------------------------


@pytest.mark.parametrize("pair", ["fixed", "revolute", "spherical", "cylindrical", "planar", "rod"])
def test_two_floating_bodies_dock_and_exchange_what_the_joint_carries(pair: str) -> None:
    where: list[Any] = [[0.3, 0.2, -0.1]]
    if pair not in ("fixed", "spherical", "rod"):
        where.append([0.2, 1.0, 0.4])
    more = {"point2": [0.6, 0.5, 0.3]} if pair == "rod" else {}
    space = tables.build(
        table(
            "docking",
            joint("left", "free", "ground", "one", [0, 0, 0]),
            joint("right", "free", "ground", "two", [0, 0, 0]),
            joint("dock", pair, "one", "two", *where, cut=True, **more),
        )
    )
    open_, rng = pl.Mode(opened="dock"), np.random.default_rng(3)
    for seed in range(3):
        q, v = assembled(space, seed), rng.normal(size=12)
        made = pl.transition(space, q, v, open_, FREE)
        given = in_world(space, q, "dock", made.wrenches["dock"])
        assert np.abs(given).max() > 0.02
        for body, sign in (("one", -1), ("two", 1)):
            change = momentum(space, body, q, made.v_plus) - momentum(space, body, q, v)
            close(change, sign * given, 1e-12, 5.0)


def test_what_a_hinged_body_gets_from_its_loop_joint_turns_it() -> None:
    # Two pendulums on parallel hinges are pinned together: about its own hinge each body feels
    # nothing but the pin.
    machine = tables.build(
        table(
            "pinned",
            joint("left", "revolute", "ground", "one", [0, 0, 0], TURN),
            joint("arm", "revolute", "one", "far", m.planar(0.5, 0.6), TURN),
            joint("right", "revolute", "ground", "two", X, TURN),
            joint("pin", "revolute", "far", "two", [0.9, 0, 0.7], TURN, cut=True),
        )
    )
    q, v = machine.neutral, np.array([1.0, -0.5, 2.0])
    made = pl.transition(machine, q, v, pl.Mode(opened="pin"), FREE)
    given = in_world(machine, q, "pin", made.wrenches["pin"])
    for bodies, at, sign in ((("two",), X, 1), (("one", "far"), np.zeros(3), -1)):
        change = sum(
            (momentum(machine, b, q, made.v_plus) - momentum(machine, b, q, v) for b in bodies),
            np.zeros(6),
        )
        about = (change - sign * given)[3:] - np.cross(at, (change - sign * given)[:3])
        assert about @ TURN == pytest.approx(0.0, abs=1e-13)
    assert np.abs(given[:3]).max() > 0.1


def test_the_impulse_of_a_lock_turns_what_it_carries() -> None:
    # About the axis of the locked joint the outer body feels the lock and nothing else.
    arm = robot("double-pendulum")
    q, v = assembled(arm, 3), np.random.default_rng(4).normal(size=6)
    made = pl.transition(arm, q, v, FREE, pl.Mode(pl.simulation.Locked("lower", ("wy",))))
    change = momentum(arm, "lower", q, made.v_plus) - momentum(arm, "lower", q, v)
    seat = arm.model.frames[arm.frame_id("lower")]
    placement, _, _ = body_motion(arm, q, v)["lower"]
    pivot = placement * seat.placement.inverse()
    torque = change[3:] - np.cross(pivot.translation, change[:3])
    given = pivot.rotation.T @ torque
    close(given, np.r_[0.0, made.impulse_of("lock:lower.wy"), 0.0], 1e-13)
    assert abs(given[1]) > 0.01


# -- the same in absolute coordinates -------------------------------------------------------------


def with_weld(entries: Table, body: str, base: str) -> pl.Mechanism:
    """A robot with a weld between two bodies, which stands for a lock of the joint between them."""
    entries["joints"].append(joint("weld", "fixed", base, body, [0, 0, 0], cut=True))
    return tables.build(entries)


@pytest.mark.parametrize("space", ["SE3", "SO3xR3", "auto"])
@pytest.mark.parametrize("kind", ["tree", "loop", "ball"])
def test_absolute_coordinates_give_the_same_motion_after_a_lock(
    space: Literal["SE3", "SO3xR3", "auto"], kind: str
) -> None:
    make, held, ends = {
        "tree": (m.planar_3r, "j2", ("b", "a")),
        "loop": (m.five_bar, "m1", ("l1", "ground")),
        "ball": (m.rssr, "ball", ("coupler", "crank")),
    }[kind]
    plain, relative = tables.build(make()), with_weld(make(), *ends)
    absolute, welded = relative.absolute(space), pl.Mode(opened="weld")
    q = relative.neutral  # where the weld is closed
    v = s.moving_in(relative, q, welded, 6)
    there, rates = carried(relative, q, v, absolute)
    after = pl.transition(relative, q, v, welded, FREE)
    other = pl.transition(absolute, there, rates, welded, FREE)
    locked = pl.transition(plain, q, v, FREE, pl.Mode(held))
    close(after.v_plus, locked.v_plus, 1e-12, 2.0)
    assert np.abs(locked.v_plus - v).max() > 0.01
    wanted, found = (
        body_motion(relative, q, after.v_plus), body_motion(absolute, there, other.v_plus)
    )  # fmt: skip
    for body, (placement, twist, _) in wanted.items():
        close(found[body][0].homogeneous, placement.homogeneous, 1e-12)
        close(found[body][1].vector, twist.vector, 1e-11, 2.0)
    assert other.energy_loss == pytest.approx(after.energy_loss, rel=1e-10)
    assert after.energy_loss == pytest.approx(locked.energy_loss, rel=1e-10)


# -- singular changes -----------------------------------------------------------------------------


def singular(
    machine: pl.Mechanism, q: Array, v: Array, before: pl.Mode, after: pl.Mode
) -> pl.simulation.Transition:
    """A change that must be reported as singular and solved as well as can be, in all forms."""
    made = []
    for form in (pl.Augmented(), pl.Projected(), pl.Voronets()):
        with pytest.warns(pl.PinloopWarning, match=r"is singular \(ranks"):
            made.append(pl.transition(machine, q, v, before, after, form))
    want = s.jump(machine, q, v, after)[0]
    for one in made:
        assert not one.regular
        s.assert_same_velocity(machine, q, one.v_plus, want, v)
    return made[0]


@pytest.mark.parametrize("reduced", [False, True])
def test_a_loop_that_closes_flat_is_singular(reduced: bool) -> None:
    flat = tables.build(m.spherical_four_bar(flat=True))
    machine = pl.regularize(flat) if reduced else flat
    v = np.array([1.0, 0.4, 0.2])
    made = singular(machine, machine.neutral, v, pl.Mode(opened="close"), FREE)
    # All axes in one plane: only the turning rates about them are tied, by one row.
    assert (made.rank_before, made.rank_after) == ((0, 0), (1, 2))
    axes = np.array([[np.cos(a), np.sin(a)] for a in np.radians([0, -40, -10, 60])])
    tip = axes[0] * made.v_plus[0] + axes[1] * made.v_plus[1] - axes[3] * made.v_plus[2]
    assert tip[0] * axes[2][1] - tip[1] * axes[2][0] == pytest.approx(0.0, abs=1e-13)


@pytest.mark.parametrize("reduced", [False, True])
def test_a_rocker_locked_where_the_crank_is_stretched_does_not_stop_it(reduced: bool) -> None:
    bar = regularized("four-bar") if reduced else robot("four-bar")
    # Crank and coupler in line: the rocker stands still for an instant, whatever the crank does.
    reach = m.CRANK + m.COUPLER
    angle = np.arccos((reach**2 + m.GROUND_BAR**2 - m.ROCKER**2) / (2 * reach * m.GROUND_BAR))
    q = pl.assemble(bar, bar.configuration(m.four_bar_q(float(angle))))
    v = s.moving_in(bar, q, FREE, 1)
    assert abs(v[bar.coordinates("rocker").v][0]) < 1e-6
    made = singular(bar, q, v, FREE, pl.Mode("rocker"))
    assert made.rank_before == (2, 2) and made.rank_after == (2, 3)
    close(made.v_plus, v, 1e-6, 2.0)
    stopped = pl.transition(bar, q, v, FREE, pl.Mode("crank"))
    assert stopped.regular and not np.abs(stopped.v_plus).max() > 1e-12


def test_a_stretched_arm_whose_tip_is_caught_is_singular() -> None:
    # Both links along x: a catch along x at the tip finds nothing to push against.
    arm = tables.build(
        table(
            "caught arm",
            joint("j1", "revolute", "ground", "a", [0, 0, 0], Z),
            joint("j2", "revolute", "a", "b", X, Z),
            joint("catch", "point_on_plane", "ground", "b", 2 * X, X, cut=True),
        )
    )
    made = singular(arm, arm.neutral, np.array([1.0, -3.0]), pl.Mode(opened="catch"), FREE)
    assert made.rank_after == (0, 1)
    close(made.v_plus, np.array([1.0, -3.0]), 1e-14)


def test_a_singular_change_in_a_run_warns_and_goes_on_along_a_branch_only() -> None:
    """The velocity after the impulse need not be the tangent of any motion of the closed loop."""
    flat = tables.build(m.spherical_four_bar(flat=True))
    with pytest.warns(pl.PinloopWarning, match="is singular"):
        made = pl.transition(flat, flat.neutral, [1.0, 0.4, 0.2], pl.Mode(opened="close"), FREE)
    with pytest.raises(pl.InconsistentVelocity, match="first order only") as caught:
        pl.simulate(flat, flat.neutral, made.v_plus, until=1e-3)
    for v, goes_on in ((made.v_plus, False), (caught.value.v, True)):
        with pytest.warns(pl.PinloopWarning, match="at t = 0 s.* is singular"):
            try:
                run = pl.simulate(
                    flat, flat.neutral, v, until=1e-3, mode=pl.Mode(opened="close"),
                    events=[pl.close_loop("close", at=0.0)], stabilization=None,
                    method=pl.MuntheKaas("rk4", step=1e-3),
                )  # fmt: skip
            except pl.SimulationFailed as failure:
                assert not goes_on and "after 'close close' the pose is singular" in str(failure)
                run = failure.trajectory
        assert not run.transitions[0].regular and (run.message == "done") == goes_on


def test_free_momentum_is_kept_through_a_change_of_several_loops() -> None:
    machine = regularized("planar-3-RRR")
    loops = pl.Mode(opened=[loop.name for loop in machine.loops])
    q = assembled(machine, 2)
    v = np.random.default_rng(5).normal(size=machine.nv)
    made = pl.transition(machine, q, v, loops, FREE)
    free = allowed(s.mode_rows(machine, FREE, q)[0])
    assert free.shape[1] == 3
    close(free.T @ hand.mass_matrix(machine, q) @ (made.v_plus - v), np.zeros(3), 1e-12)
