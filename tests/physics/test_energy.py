"""Closed forms and balances: periods, orbits, precession, energy and momentum."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from numpy.polynomial.legendre import leggauss
from scipy.special import ellipk, ellipkinc

import pinloop as pl
from pinloop.dynamics.forces import Force

from .. import linkages as ll
from .. import mechanisms as m
from .. import motion_by_hand as hand
from .. import screw_tables as tables
from ..screw_tables import Array
from ..states import carried, moving, one_body, robot

G = 9.81


def tight(tolerance: float = 1e-10) -> pl.MuntheKaas:
    return pl.MuntheKaas("dopri5", rtol=tolerance, atol=tolerance)


# -- one degree of freedom --------------------------------------------------------------------


def physical_pendulum() -> tuple[pl.Mechanism, float]:
    """A body on a hinge along z with gravity along x, and its ``w^2 = m g l / I``."""
    body = one_body(
        "revolute", mass=2.0, com=(0.3, 0, 0), inertia=(0.1, 0.2, 0.05), gravity=(G, 0, 0)
    )
    return body, 2.0 * G * 0.3 / (0.05 + 2.0 * 0.3**2)


@pytest.mark.parametrize("amplitude", [0.1, 1.5, 3.0])
def test_period_of_a_pendulum_is_an_elliptic_integral(amplitude: float) -> None:
    body, square = physical_pendulum()
    quarter = float(ellipk(np.sin(amplitude / 2) ** 2)) / np.sqrt(square)
    run = pl.simulate(body, [amplitude], until=4 * quarter, method=tight())
    np.testing.assert_allclose(run([quarter, 3 * quarter]).q[:, 0], 0, atol=1e-6)
    assert run(2 * quarter).q[0] == pytest.approx(-amplitude, abs=1e-7)
    assert run.q[-1][0] == pytest.approx(amplitude, abs=1e-7)
    top = 2 * np.sin(amplitude / 2) * np.sqrt(square)
    assert run(quarter).v[0] == pytest.approx(-top, rel=1e-7)


def test_pendulum_between_its_ends_is_an_amplitude_of_jacobi() -> None:
    """``t = F(asin(sin(q/2) / sin(q0/2)), k) / w`` on the way down."""
    body, square = physical_pendulum()
    run = pl.simulate(body, [2.0], until=0.5, method=tight())
    k = np.sin(1.0)
    for t, q in zip(run.t[1:], run.q[1:, 0], strict=True):
        phi = np.arcsin(np.clip(np.sin(q / 2) / k, -1, 1))
        assert (ellipk(k * k) - ellipkinc(phi, k * k)) / np.sqrt(square) == pytest.approx(
            t, abs=1e-7
        )


def cart(*forces: Force, x: float, v: float, until: float) -> pl.Trajectory:
    """A body of 2 kg on a slide along z, without gravity."""
    body = one_body("prismatic", mass=2.0, gravity=(0, 0, 0))
    return pl.simulate(body, [x], [v], until=until, forces=list(forces), method=tight())


def test_mass_on_a_spring() -> None:
    w = np.sqrt(50.0 / 2.0)
    run = cart(pl.forces.JointSpring("joint", 50.0, 0.3), x=0.5, v=1.0, until=3.0)
    expected = 0.3 + 0.2 * np.cos(w * run.t) + 1.0 / w * np.sin(w * run.t)
    np.testing.assert_allclose(run.q[:, 0], expected, atol=1e-8)
    balance = run.energy()
    assert list(balance.stored) == ["spring joint"] and not balance.work
    np.testing.assert_allclose(balance.total, balance.total[0], rtol=1e-8)


@pytest.mark.parametrize("damping", [1.0, 20.0, 60.0], ids=["weak", "critical", "strong"])
def test_damped_oscillator(damping: float) -> None:
    run = cart(
        pl.forces.JointSpring("joint", 50.0),
        pl.forces.JointDamping({"joint": damping}),
        x=0.5,
        v=1.0,
        until=2.0,
    )
    # x = exp(A t) x0 with the matrix of the linear system, by its eigenvalues.
    A = np.array([[0.0, 1.0], [-25.0, -damping / 2.0 * (1 + 1e-9)]])
    values, vectors = np.linalg.eig(A)
    start = np.linalg.solve(vectors, np.array([0.5, 1.0]))
    expected = (vectors @ (start[:, None] * np.exp(np.outer(values, run.t)))).real
    np.testing.assert_allclose(run.q[:, 0], expected[0], atol=1e-7)
    np.testing.assert_allclose(run.v[:, 0], expected[1], atol=1e-6)
    balance = run.energy()
    assert np.all(np.diff(balance.work["joint damping"]) < 0)
    assert np.abs(balance.error).max() < 1e-8


def test_driven_mass_and_the_work_of_its_drive() -> None:
    run = cart(pl.Torque("joint", lambda t: 3 * np.cos(4 * t)), x=0.0, v=0.0, until=2.0)
    np.testing.assert_allclose(run.q[:, 0], 3 / 2 / 16 * (1 - np.cos(4 * run.t)), atol=1e-9)
    work = 0.5 * 2.0 * (3 / 2 / 4 * np.sin(4 * run.t)) ** 2
    np.testing.assert_allclose(run.energy().work["torque joint"], work, atol=1e-9)


# -- free bodies and orbits -------------------------------------------------------------------


@pytest.mark.parametrize("coordinates", ["", "SO3xR3"])
def test_thrown_body_turns_about_its_centre_which_falls(coordinates: Any) -> None:
    com = np.array([0.2, -0.1, 0.3])
    body = one_body(mass=2.0, com=com.tolist(), inertia=(0.1, 0.2, 0.25), coordinates=coordinates)
    spin, speed = np.array([3.0, 1.0, -2.0]), np.array([1.0, 0.5, 4.0])
    run = pl.simulate(body, body.neutral, np.r_[speed, spin], until=1.0, method=tight())
    start = speed + np.cross(spin, com)
    centres = np.array([T.act(com) for T in run.placement("body")])
    t = run.t[:, None]
    np.testing.assert_allclose(centres, com + start * t + 0.5 * t**2 * [0, 0, -G], atol=1e-7)
    momenta = run.momentum()
    np.testing.assert_allclose(momenta.angular, np.tile(momenta.angular[0], (len(t), 1)), atol=1e-7)
    np.testing.assert_allclose(momenta.linear, 2.0 * (start + t * [0, 0, -G]), atol=1e-8)


def test_planet() -> None:
    """An ellipse with a = 1, e = 0.6 about a mass with mu = 1 closes after 2 pi."""
    planet = one_body("spatial_translation", mass=3.0, gravity=(0, 0, 0))

    def pull(t: float, q: Array, v: Array) -> Array:
        return np.asarray(-3.0 * q / np.linalg.norm(q) ** 3)

    e = 0.6
    run = pl.simulate(
        planet, [1 - e, 0, 0], [0, np.sqrt((1 + e) / (1 - e)), 0], until=2 * np.pi, tau=pull,
        method=tight(),
    )  # fmt: skip
    np.testing.assert_allclose(run.q[-1], [1 - e, 0, 0], atol=1e-7)
    np.testing.assert_allclose(run(np.pi).q, [-1 - e, 0, 0], atol=1e-7)
    # Kepler's equation in between.
    for eccentric in (0.5, 1.7, 4.0):
        where = [np.cos(eccentric) - e, np.sqrt(1 - e * e) * np.sin(eccentric), 0]
        np.testing.assert_allclose(run(eccentric - e * np.sin(eccentric)).q, where, atol=1e-7)


def test_body_on_a_spring_to_a_point_goes_round_an_ellipse() -> None:
    body = one_body(mass=2.0, gravity=(0, 0, 0))
    q = body.neutral
    q[:3] = 1.0, 0.0, 0.2
    spring = pl.forces.Spring("ground", "body", 18.0)
    v = np.array([0.0, 0.9, -0.3, 0, 0, 0])
    run = pl.simulate(body, q, v, until=2.5, forces=[spring], method=tight())
    t = run.t[:, None]
    expected = np.cos(3 * t) * np.array([1.0, 0.0, 0.2]) + np.sin(3 * t) / 3 * v[:3]
    np.testing.assert_allclose(run.q[:, :3], expected, atol=1e-8)


# -- the heavy top ----------------------------------------------------------------------------


def steady_top() -> tuple[pl.Mechanism, Array, Array, float, float]:
    """A symmetric top that precesses at rate W under the angle a: body, state, a and W.

    With moments A across and C along the axis, about the pivot, and spin w along the axis:
    ``A W^2 cos a - C w W + m g l = 0``.
    """
    mass, arm, across, along = 1.5, 0.4, 0.02, 0.03
    A, lean, rate = across + mass * arm**2, 0.7, 2.5
    spin = (A * rate**2 * np.cos(lean) + mass * G * arm) / (along * rate)
    top = one_body("spherical", mass=mass, com=(0, 0, arm), inertia=(across, across, along))
    R = pin.exp3(np.array([0, lean, 0]))
    q = pin.Quaternion(R).coeffs()
    e = R[:, 2]
    across_axis = rate * (np.array([0, 0, 1.0]) - np.cos(lean) * e)
    return top, q, R.T @ (spin * e + across_axis), lean, rate


@pytest.mark.parametrize("space", [None, "SE3", "SO3xR3"])
def test_steady_precession(space: Any) -> None:
    top, q, v, lean, rate = steady_top()
    machine = top
    if space is not None:
        machine = top.absolute(space)
        q, v = carried(top, q, v, machine)
    run = pl.simulate(machine, q, v, until=np.pi / rate, method=tight(1e-9))
    for t, T in zip(run.t, run.placement("body"), strict=True):
        axis = [
            np.sin(lean) * np.cos(rate * t), np.sin(lean) * np.sin(rate * t), np.cos(lean)
        ]  # fmt: skip
        np.testing.assert_allclose(T.rotation[:, 2], axis, atol=2e-6)


# -- a loop against a quadrature --------------------------------------------------------------


def test_four_bar_under_gravity_against_a_quadrature() -> None:
    """One freedom: ``t`` is the integral of ``sqrt(m / 2 (E - U))``, from geometry and masses."""
    machine = robot("four-bar")

    def place(crank: float) -> Array:
        return hand.angles(machine, m.four_bar_q(crank))

    def inertia_and_potential(crank: float) -> tuple[float, float]:
        slope = hand.slope(lambda s: place(crank + s), 1e-3)
        q = place(crank)
        # Rocker angles jump by a turn where arctan2 does; slopes would see it.
        assert np.abs(slope).max() < 10
        return 2 * hand.kinetic_energy(machine, q, slope), hand.potential_energy(machine, q)

    start, rate = m.START, 12.0
    heavy, height = inertia_and_potential(start)
    energy = 0.5 * heavy * rate**2 + height
    ends, nodes, weights = np.linspace(start, start + 5.5, 12), *leggauss(12)
    times = [0.0]
    for low, high in pairwise(ends):
        half = 0.5 * (high - low)
        total = 0.0
        for node, weight in zip(nodes, weights, strict=True):
            heavy, height = inertia_and_potential(low + half * (1 + node))
            total += weight * half * np.sqrt(heavy / (2 * (energy - height)))
        times.append(times[-1] + total)
    v = pl.consistent_velocity(machine, machine.neutral, {"crank": rate})
    run = pl.simulate(machine, machine.neutral, v, until=times[-1], method=tight())
    np.testing.assert_allclose(run(np.array(times)).q[:, 0], ends - start, atol=2e-7)


# -- balances ---------------------------------------------------------------------------------


def swing(t: float) -> tuple[float, float, float]:
    """From rest and back."""
    return 0.3 * (1 - np.cos(3 * t)), 0.9 * np.sin(3 * t), 2.7 * np.cos(3 * t)


BUSY: dict[str, tuple[str, Sequence[Force], Sequence[Any]]] = {
    "five-bar": (
        "five-bar",
        [
            pl.forces.JointSpring("e1", 3.0),
            pl.forces.JointSpring("e1", 2.0, 0.4),
            pl.forces.JointDamping({"m1": 0.3, "e2": 0.2}),
            pl.PD("m2", 5.0, 0.5, np.cos, 0.1),
            pl.forces.Spring("l1", "r2", 4.0, 0.2),
            pl.forces.Damper("l2", "ground", 0.5),
            pl.Torque("m1", lambda t: np.sin(5 * t)),
            pl.Torque("m1", 0.3),
        ],
        [],
    ),
    "prescribed": (
        "five-bar",
        [pl.forces.JointDamping({"m2": 0.3})],
        [pl.constraints.Prescribed("m1", swing)],
    ),
    "friction": ("fivebar", [pl.forces.JointDamping(), pl.forces.JointFriction(0.2)], []),
    "space": (
        "spinning-rods",
        [
            pl.forces.PointForce("rod1", lambda t: [np.sin(t), 1.0, t]),
            pl.forces.JointDamping({"ball1": 0.05}),
            pl.forces.PointForce("rocker2", [0.3, 0.2, -0.1], local=True),
            pl.TorqueFunction(lambda t, q, v: -0.1 * v**3),
            pl.forces.Spring("rod1", "rod2", 3.0, 0.1),
        ],
        [],
    ),
    "blade": (
        "floating-four-bar",
        [pl.Torque("crank", 2.0)],
        [pl.constraints.NoSlip("base", (0, 1, 0))],
    ),
}


@pytest.mark.parametrize("case", BUSY)
def test_energy_balance_closes_and_better_with_a_tighter_tolerance(case: str) -> None:
    name, forces, rows = BUSY[case]
    machine = robot(name)
    q, v = moving(
        machine, 1, [row for row in rows if not isinstance(row, pl.constraints.Prescribed)]
    )
    if case == "prescribed":
        q, v = machine.neutral, np.zeros(machine.nv)
    missing = []
    for tolerance in (1e-5, 1e-8):
        run = pl.simulate(
            machine, q, v, until=1.0, forces=forces, rows=rows, losses=False,
            method=pl.MuntheKaas(rtol=tolerance, atol=tolerance),
        )  # fmt: skip
        balance = run.energy()
        moved = max(*(np.abs(line).max() for line in balance.work.values()), balance.kinetic.max())
        missing.append(np.abs(balance.error).max())
        assert balance.error[0] == 0.0
        assert len(balance.work) == sum(not _stores(machine, f) for f in forces) + (
            case == "prescribed"
        )
    assert moved > 0.05
    assert missing[1] < 1e-5 * moved
    assert missing[1] < 0.05 * missing[0]


def _stores(machine: pl.Mechanism, force: Force) -> bool:
    return force.bind(machine).conservative


def test_work_lines_by_hand() -> None:
    machine = robot("four-bar")
    v = pl.consistent_velocity(machine, machine.neutral, {"crank": 8.0})
    run = pl.simulate(
        machine, machine.neutral, v, until=0.5,
        forces=[pl.Torque("crank", 2.0), pl.Torque("rocker", -1.0)],
    )  # fmt: skip
    work = run.energy().work
    np.testing.assert_allclose(work["torque crank"], 2.0 * run.q[:, 0], atol=1e-7)
    np.testing.assert_allclose(work["torque rocker"], -run.q[:, 2], atol=1e-7)


def test_prescribed_motion_does_the_work_that_is_done() -> None:
    """A mass lifted by a prescribed slide, from rest to rest: ``m g h``."""
    body = one_body("prismatic", mass=2.0)
    row = pl.constraints.Prescribed("joint", swing)
    run = pl.simulate(body, [0.0], until=np.pi / 3, rows=[row])
    assert run.q[-1][0] == pytest.approx(0.6, abs=1e-9)
    work = run.energy().work["prescribed motion"]
    np.testing.assert_allclose(work, 2 * G * run.q[:, 0] + run.v[:, 0] ** 2, atol=1e-7)
    push = run.equations[0].motion(0.0, run.q[0], run.v[0]).multipliers
    assert push == pytest.approx([2.0 * (G + 2.7)])


# -- momentum ---------------------------------------------------------------------------------


def weightless(name: str) -> tuple[pl.Mechanism, Array, Array]:
    """A mechanism that floats, without gravity."""
    machine = pl.from_screws(_floating(name) | {"gravity": [0.0, 0.0, 0.0]})
    q, v = moving(machine, 2)
    return machine, q, v


def _floating(name: str) -> Any:
    if name == "four-bar":
        return ll.floating_four_bar()
    float_joint = tables.joint("float", "free", "ground", "base")
    entries = m.rssr()
    joints = [float_joint]
    for entry in entries["joints"]:
        ends = {key: "base" for key in ("parent", "child") if entry[key] == "ground"}
        joints.append(entry | ends)
    return tables.table("floating rssr", *joints)


@pytest.mark.parametrize("name", ["four-bar", "rssr"])
@pytest.mark.parametrize("forces", [False, True], ids=["free", "inner forces"])
def test_floating_loops_keep_their_momentum(name: str, forces: bool) -> None:
    machine, q, v = weightless(name)
    inner: list[Force] = []
    if forces:
        inner = [
            pl.Torque("crank", 3.0),
            pl.forces.JointDamping({"rocker": 0.3}),
            pl.forces.Spring("base", "coupler", 20.0, 0.1),
            pl.forces.Damper("rocker", "crank", 2.0),
        ]
    run = pl.simulate(machine, q, v, until=1.0, forces=inner, method=tight(1e-9))
    found = run.momentum()
    size = np.abs(found.linear[0]).max() + np.abs(found.angular[0]).max()
    assert size > 1.0
    np.testing.assert_allclose(found.linear - found.linear[0], 0, atol=1e-6 * size)
    np.testing.assert_allclose(found.angular - found.angular[0], 0, atol=1e-6 * size)
    assert np.abs(run.v[-1] - run.v[0]).max() > 0.1  # something happens inside
    assert np.abs(run.energy().error).max() < 1e-6


def test_gravity_changes_the_momentum_as_it_must() -> None:
    machine = robot("floating-four-bar")
    q, v = moving(machine, 3)
    run = pl.simulate(machine, q, v, until=0.6, method=tight(1e-9))
    found = run.momentum()
    pull = hand.point_masses(machine).sum() * np.array([0, 0, -G])
    np.testing.assert_allclose(found.linear, found.linear[0] + run.t[:, None] * pull, atol=1e-5)
    np.testing.assert_allclose(found.angular - found.angular[0], 0, atol=1e-5)


def test_momentum_rows_force_nothing_and_keep_the_momentum() -> None:
    machine, q, v = weightless("rssr")
    row = pl.constraints.AngularMomentum((0.2, -1.0, 0.5))
    coarse = pl.MuntheKaas("rk4", step=0.02)
    bare = pl.simulate(machine, q, v, until=1.0, method=coarse)
    run = pl.simulate(machine, q, v, until=1.0, method=coarse, rows=[row])
    axis = np.array([0.2, -1.0, 0.5]) / np.linalg.norm([0.2, -1.0, 0.5])
    kept, lost = (np.ptp(found.momentum().angular @ axis) for found in (run, bare))
    assert kept < 1e-10 and lost > 100 * kept
    multiplier = run.equations[0].motion(0.0, run.q[0], run.v[0]).multipliers[-1]
    assert abs(multiplier) < 1e-9
    ends = [
        pl.simulate(machine, q, v, until=0.5, method=tight(), rows=rows).q[-1]
        for rows in ([], [row])
    ]
    np.testing.assert_allclose(machine.difference(*ends), 0, atol=1e-7)


def test_a_free_robot_that_swings_its_arm_turns_the_other_way() -> None:
    """From rest the momentum is zero for ever, so the base turns by the ratio of the moments."""
    entries = tables.table(
        "cat",
        tables.joint("float", "free", "ground", "base"),
        tables.joint("wheel", "revolute", "base", "wheel", [0, 0, 0], [0, 0, 1]),
        gravity=[0, 0, 0],
    )
    for body, moment in zip(entries["bodies"], (3.0, 1.0), strict=True):
        body["com"], body["inertia"] = [0, 0, 0], np.diag([moment, moment, moment])
    machine = tables.build(entries)
    run = pl.simulate(machine, machine.neutral, until=1.0, forces=[pl.Torque("wheel", 0.6)])
    turned = pin.log3(run.placement("base")[-1].rotation)
    # Relative angle: torque over the reduced moment; the base takes a quarter of it, backwards.
    relative = 0.5 * 0.6 * (1 / 3 + 1 / 1)
    assert run.q[-1][-1] == pytest.approx(relative, rel=1e-7)
    np.testing.assert_allclose(turned, [0, 0, -relative / 4], atol=1e-7)
