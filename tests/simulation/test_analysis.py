"""Tests of `pinloop.simulation.analysis`: wrenches in loop joints, balanced body by body."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.model.description import GROUND, Body, Description, Joint, constant
from pinloop.model.mechanism import build
from pinloop.model.pairs import make_pair
from pinloop.simulation.analysis import Reaction

from .. import linkages as ll
from .. import motion_by_hand as hand
from .. import screw_tables as tables
from ..screw_tables import Array
from ..states import carried, close, moving, robot

MASS, LENGTH, INERTIA = 2.0, 0.7, 0.05


def wrench(run: pl.Trajectory, loop: str, frame: str | None = None) -> Reaction:
    found = run.reactions(loop, frame) if frame else run.reactions(loop)
    assert isinstance(found, Reaction)
    return found


# -- a pendulum, its string cut ---------------------------------------------------------------


def pendulum(*, ground_first: bool) -> pl.Mechanism:
    """A free body with a hinge to the ground above it; it swings in the xz plane.

    Args:
        ground_first: the body is B of the hinge, else the ground.
    """
    bob = Body("bob", MASS, constant([0, 0, -LENGTH]), constant(INERTIA * np.eye(3)))
    unit = pin.SE3.Identity()
    axis = pin.SE3(np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]]), np.zeros(3))  # z along y
    ends = (GROUND, "bob") if ground_first else ("bob", GROUND)
    joints = (
        Joint("float", make_pair("free"), GROUND, "bob", unit, unit),
        Joint("pivot", make_pair("revolute"), *ends, axis, axis, cut=True),
    )
    return build(Description("pendulum", (bob,), joints))


def swinging(machine: pl.Mechanism, angle: float, rate: float, until: float) -> pl.Trajectory:
    """Run from an angle about y (which takes the bob from -z towards -x)."""
    q, turn = machine.neutral, pin.Quaternion(pin.exp3(np.array([0, angle, 0])))
    q[3:] = turn.coeffs()
    return pl.simulate(machine, q, np.array([0, 0, 0, 0, rate, 0.0]), until=until)


@pytest.mark.parametrize("ground_first", [True, False])
def test_tension_of_a_pendulum(ground_first: bool) -> None:
    """``m g cos + m l w^2`` along the string, ``m l (g sin / l + a)`` across, seen by the bob."""
    machine = pendulum(ground_first=ground_first)
    run = swinging(machine, 0.9, 2.0, 0.6)
    found = wrench(run, "pivot", "ground")
    assert found.frame == "ground" and found.determined.all()
    sign = 1.0 if ground_first else -1.0
    for k in range(len(run.t)):
        R = machine.placement(run.q[k], "bob").rotation
        angle = np.arctan2(R[0, 2], R[2, 2])
        rate = run.v[k][4]
        string = R @ [0, 0, 1]  # from the bob to the pivot
        across = R @ [1, 0, 0]
        moment = INERTIA + MASS * LENGTH**2
        bend = -MASS * 9.81 * LENGTH * np.sin(angle) / moment
        centre = LENGTH * (rate**2 * string - bend * across)  # acceleration of the centre of mass
        expected = MASS * (centre + np.array([0, 0, 9.81]))
        np.testing.assert_allclose(sign * found.force[k], expected, atol=1e-8)
        tension = MASS * (9.81 * np.cos(angle) + LENGTH * rate**2)
        assert sign * found.force[k] @ string == pytest.approx(tension, abs=1e-8)
    # An ideal hinge at the origin has no torque about it; none is needed about the others.
    np.testing.assert_allclose(found.torque, 0, atol=1e-8)


def test_hanging_weight_pulls_the_ground_down() -> None:
    run = swinging(pendulum(ground_first=True), 0.0, 0.0, 0.1)
    np.testing.assert_allclose(wrench(run, "pivot", "ground").force[-1], [0, 0, MASS * 9.81])
    run = swinging(pendulum(ground_first=False), 0.0, 0.0, 0.1)
    np.testing.assert_allclose(wrench(run, "pivot", "ground").force[-1], [0, 0, -MASS * 9.81])


def test_wrenches_in_other_frames() -> None:
    machine = pendulum(ground_first=True)
    run = swinging(machine, 0.5, -1.0, 0.3)
    ground, bob = wrench(run, "pivot", "ground"), wrench(run, "pivot", "bob")
    own, at_b = wrench(run, "pivot"), wrench(run, "pivot", "pivot/B")
    assert own.frame == "pivot/B" and bob.frame == "bob"
    np.testing.assert_array_equal(own.force, at_b.force)
    for k, q in enumerate(run.q):
        R = machine.placement(q, "bob").rotation
        np.testing.assert_allclose(R @ bob.force[k], ground.force[k], atol=1e-12)
        R = machine.placement(q, "pivot/B").rotation
        np.testing.assert_allclose(R @ own.force[k], ground.force[k], atol=1e-12)
    np.testing.assert_array_equal(ground.t, run.t)


def test_unknown_names() -> None:
    run = swinging(pendulum(ground_first=True), 0.1, 0.0, 0.01)
    with pytest.raises(pl.UnknownName, match=r"no loop joint 'pivott'.*did you mean 'pivot'"):
        run.reactions("pivott")
    with pytest.raises(pl.UnknownName, match="no body or frame 'moon'"):
        run.reactions("pivot", "moon")


# -- balance of every body --------------------------------------------------------------------


def net_load(run: pl.Trajectory, body: str, t: float) -> tuple[Array, Array]:
    """Force and torque about the origin that a body needs besides gravity, from its motion alone.

    Point masses and second differences of where they are: no equations of motion.
    """
    masses, points = tables.mass_points(body)

    def where(time: float) -> Array:
        T = run.robot.placement(run(time).q, body)
        return np.asarray(points @ T.rotation.T + T.translation)

    h = 2e-3
    x = [where(t + k * h) for k in range(-2, 3)]
    bend = (-x[0] + 16 * x[1] - 30 * x[2] + 16 * x[3] - x[4]) / (12 * h * h)
    loads = masses[:, None] * (bend - run.robot.gravity)
    return loads.sum(axis=0), np.cross(x[2], loads).sum(axis=0)


@pytest.mark.parametrize("name", ["four-bar", "slider-crank", "rssr", "double-cardan"])
@pytest.mark.parametrize("space", ["SE3", "SO3xR3"])
def test_wrenches_carry_every_body(name: str, space: Any) -> None:
    """With all joints cut: the wrenches of a body's joints are its mass times acceleration."""
    here = robot(name)
    machine = here.absolute(space)
    run = pl.simulate(machine, *carried(here, *moving(here, 1), machine), until=0.1)
    k = len(run.t) // 2
    found = {loop.name: wrench(run, loop.name, "ground") for loop in machine.loops}
    for body in machine.bodies:
        force, torque = net_load(run, body, float(run.t[k]))
        for loop in machine.loops:
            sign = (loop.body_b == body) - 1.0 * (loop.body_a == body)
            force = force - sign * found[loop.name].force[k]
            torque = torque - sign * found[loop.name].torque[k]
        size = np.abs(found[machine.loops[0].name].force[k]).max()
        np.testing.assert_allclose(force, 0, atol=1e-5 * max(1.0, size))
        np.testing.assert_allclose(torque, 0, atol=1e-5 * max(1.0, size))


@pytest.mark.parametrize("name", ["four-bar", "rssr", "delta", "stewart", "sarrus", "tip-on-plane"])
def test_wrenches_do_the_work_of_the_constraint_forces(name: str) -> None:
    """On any motion, allowed or not: ``J' lam . v`` is what wrenches do on opening joints."""
    machine = robot(name)
    run = pl.simulate(machine, *moving(machine, 2), until=0.01)
    equations = pl.EquationsOfMotion(machine)
    v = np.random.default_rng(3).normal(size=machine.nv)
    motion = run.equations[-1].motion(run.t[-1], run.q[-1], run.v[-1])
    total = 0.0
    for loop in machine.loops:
        found = wrench(run, loop.name)
        opening = equations.rows.loops.twist_jacobian(run.q[-1], loop) @ v
        total += float(np.r_[found.force[-1], found.torque[-1]] @ opening)
    assert total == pytest.approx(motion.constraint_force @ v, rel=1e-9, abs=1e-9)


def test_crank_of_a_four_bar_needs_the_torque_that_its_wrench_says() -> None:
    """The hinge of the crank held by inverse dynamics: forces of the rocker side by hand.

    Rocker alone: moments about its pivot give the force of the coupler across it.
    """
    machine = robot("four-bar")
    run = pl.simulate(machine, *moving(machine, 4), until=0.1)
    k = len(run.t) // 2
    found = wrench(run, "close", "ground")
    _, torque = net_load(run, "rocker", float(run.t[k]))
    pivot = np.array([1.0, 0.0, 0.0])
    force, _ = net_load(run, "rocker", float(run.t[k]))
    about_pivot = torque - np.cross(pivot, force)
    # B of the joint is the rocker; its own hinge at the pivot gives no moment about y.
    moment = found.torque[k] - np.cross(pivot, found.force[k])
    assert moment[1] == pytest.approx(about_pivot[1], abs=1e-5)
    assert abs(moment[1]) > 0.1


# -- what is unique ---------------------------------------------------------------------------

UNIQUE = {
    "rssr": {"close": True},
    "delta": {},
    "four-bar": {"close": False},
    "sarrus": {"b3": False},
    "bennett": {"j4": False},
    "screw-jack": {"thread": False},
    "spherical-four-bar": {"close": False},
    "tip-on-plane": {"touch": True},
}


@pytest.mark.parametrize("name", UNIQUE)
@pytest.mark.parametrize("regularization", [False, True])
def test_unique_reactions_are_marked_whatever_rows_are_used(
    name: str, regularization: bool
) -> None:
    machine = robot(name)
    run = pl.simulate(
        machine, *moving(machine, 5), until=0.01, losses=False, regularization=regularization
    )
    for loop in machine.loops:
        expected = UNIQUE[name].get(loop.name, True)
        assert wrench(run, loop.name).determined.tolist() == [expected] * len(run.t)


def test_only_what_the_plane_leaves_open_is_unknown() -> None:
    """Rows of the planar four-bar: forces in the plane are unique, all others are not."""
    machine = robot("four-bar")
    motion = pl.EquationsOfMotion(machine).motion(0.0, *moving(machine, 6))
    unique = {
        label.split(": ")[1]
        for label, determined in zip(pl.Constraints(machine).labels, motion.determined, strict=True)
        if determined
    }
    assert unique == {"v_x", "v_y"}  # of the joint frame, whose z is the hinge's axis


def test_a_ball_joint_that_closes_a_plane_knows_its_plane_only() -> None:
    machine = tables.build(ll.four_bar_with("spherical"))
    run = pl.simulate(machine, *moving(machine, 7), until=0.02)
    assert not wrench(run, "close").determined.any()
    force = wrench(run, "close", "ground").force
    planar = pl.simulate(
        tables.build(ll.four_bar_with("revolute")), *moving(machine, 7), until=0.02
    )
    other = wrench(planar, "close", "ground").force
    np.testing.assert_allclose(force[-1][[0, 2]], other[-1][[0, 2]], rtol=1e-6)
    np.testing.assert_allclose(force[:, 1], 0, atol=1e-9)  # the smallest possible


def test_determined_reactions_do_not_depend_on_rows_or_formulation() -> None:
    machine = robot("rssr")
    q, v = moving(machine, 8)
    found = [
        wrench(pl.simulate(machine, q, v, until=0.01, formulation=formulation), "close")
        for formulation in (pl.Augmented(), pl.Projected(), pl.Voronets())
    ]
    for one in found[1:]:
        close(one.force[0], found[0].force[0], 1e-9)
    assert hand.is_closed(machine, q)


@pytest.mark.parametrize("before", [True, False])
def test_energy_of_a_jump_is_counted_where_it_happened(before: bool) -> None:
    """Two changes of the mode at one instant, of which one has the jump."""
    fourbar = robot("fourbar")
    q = pl.assemble(fourbar, {"joint_1": 1.0})
    v = pl.consistent_velocity(fourbar, q, {"joint_1": 3.0})
    run = pl.simulate(fourbar, q, v, until=0.2, events=[pl.lock("joint_1", at=0.1)])
    after = int(np.flatnonzero(np.diff(run.mode))[0]) + 1
    twice = after - 1 if before else after
    # A mode that holds what its neighbour holds, for no time: before the jump, or behind it.
    mode = np.insert(run.mode, twice if not before else after, 2)
    split = replace(
        run,
        mode=mode,
        modes=(*run.modes, run.modes[run.mode[twice]]),
        t=np.insert(run.t, twice, run.t[twice]),
        psi=np.insert(run.psi, after - 1, 0.0, axis=0),
        inner=None,
        **{key: np.insert(getattr(run, key), twice, getattr(run, key)[twice], axis=0)
           for key in ("q", "v", "a")},
    )  # fmt: skip
    lost = run.transitions[0].energy_loss
    assert lost > 1.0
    np.testing.assert_allclose(split.energy().error, 0.0, atol=1e-6 * lost)
