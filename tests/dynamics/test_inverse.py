"""Tests of inverse dynamics, Christoffel symbols and the Coriolis matrix."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.model.description import Coordinates

from .. import mechanisms as m
from .. import motion_by_hand as hand
from ..screw_tables import Array
from ..states import allowed, close, moving, one_body, robot


def planned(machine: pl.Mechanism, seed: int) -> tuple[Array, Array, Array]:
    """A state and an acceleration that the rows allow."""
    q, v = moving(machine, seed)
    J, _, gamma = pl.EquationsOfMotion(machine).terms(0.0, q, v)
    free = allowed(J)
    a = free @ np.random.default_rng(seed).normal(size=free.shape[1])
    return q, v, a + (np.linalg.lstsq(J, -gamma, rcond=1e-9)[0] if len(J) else 0.0)


def fed_back(
    machine: pl.Mechanism, q: Array, v: Array, joints: tuple[str, ...], tau: Array
) -> Array:
    """Acceleration under torques at the named joints."""
    total, used = np.zeros(machine.nv), 0
    for name in joints:
        at = machine.coordinates(name)
        total[at.v] = tau[used : used + at.nv]
        used += at.nv
    assert used == len(tau)
    force = pl.TorqueFunction(lambda t, q, v: total)
    return pl.EquationsOfMotion(machine, forces=[force]).acceleration(0.0, q, v)


def spin(machine: pl.Mechanism, q: Array) -> Array:
    """A motion in which all drives stand still."""
    motions = allowed(pl.Constraints(machine).jacobian(q))
    columns = [machine.coordinates(joint).v.start for joint in machine.actuated]
    return np.asarray(motions @ allowed(motions[columns])[:, 0])


CASES: dict[str, tuple[str, tuple[str, ...] | None]] = {
    "tree": ("six_axis_arm", None),
    "four-bar by its crank": ("fourbar", None),
    "four-bar by its rocker": ("four-bar", ("rocker",)),
    "palletizer": ("palletizer", None),
    "slides": ("prrr3", None),
    "stewart": ("stewart", None),
    "universal delta": ("universal-delta", None),
    "ball joint": ("double-pendulum", ("upper", "lower")),
    "four-bar by all joints": ("four-bar", ("crank", "elbow", "rocker")),
    "redundant five-bar": ("five-bar", ("m1", "m2", "e1")),
    "redundant planar": ("planar-3-RRR", ("a0", "a1", "a2", "b0", "b1")),
    "gears": ("gear-pair", ("pinion",)),
    "floating": ("floating-four-bar", ("float", "crank")),
}


@pytest.mark.parametrize("case", CASES)
def test_torques_fed_back_give_the_acceleration(case: str) -> None:
    name, joints = CASES[case]
    machine = robot(name)
    for seed in (1, 2):
        q, v, a = planned(machine, seed)
        tau = pl.inverse_dynamics(machine, q, v, a, actuated=joints)
        used = machine.actuated if joints is None else joints
        close(fed_back(machine, q, v, used, tau), a, 1e-8)


def test_delta_with_its_arms_and_the_spin_of_its_rods_driven() -> None:
    """Redundantly: all joints of the shipped delta, three freedoms and six idle spins."""
    machine = robot("delta")
    q, v, a = planned(machine, 3)
    tau = pl.inverse_dynamics(machine, q, v, a, actuated=machine.joints)
    assert len(tau) == machine.nv > 9
    close(fed_back(machine, q, v, machine.joints, tau), a, 1e-8)


@pytest.mark.parametrize(
    "case", ["four-bar by all joints", "redundant five-bar", "redundant planar"]
)
def test_with_too_many_motors_the_smallest_torques(case: str) -> None:
    name, joints = CASES[case]
    assert joints is not None
    machine = robot(name)
    q, v, a = planned(machine, 4)
    tau = pl.inverse_dynamics(machine, q, v, a, actuated=joints)
    motions = allowed(pl.Constraints(machine).jacobian(q))
    columns = [machine.coordinates(joint).v.start for joint in joints]
    # Torques that cancel each other: they do no work on any allowed motion.
    idle = allowed(motions[columns].T)
    assert idle.shape[1] == len(joints) - motions.shape[1] > 0
    assert np.abs(idle.T @ tau).max() < 1e-8 * np.abs(tau).max()
    for other in idle.T:
        close(fed_back(machine, q, v, joints, tau + 5 * other), a, 1e-8)


def test_tree_agrees_with_newton_euler() -> None:
    machine = robot("six_axis_arm")
    q, v, a = planned(machine, 5)
    expected = pin.rnea(machine.model, machine.model.createData(), q, v, a)
    np.testing.assert_allclose(pl.inverse_dynamics(machine, q, v, a), expected, rtol=1e-9)


def test_statics_of_a_parallelogram_by_virtual_work() -> None:
    """At rest the crank's torque is the rate of the potential energy of all point masses."""
    machine = robot("parallelogram")
    rest = np.zeros(3)
    (tau,) = pl.inverse_dynamics(machine, machine.neutral, rest, rest, actuated=["left"])
    motion = np.array([1.0, -1.0, 1.0])
    expected = hand.rate(
        machine, machine.neutral, motion, lambda q: hand.potential_energy(machine, q)
    )
    assert tau == pytest.approx(expected, rel=1e-8)


def test_other_forces_and_rows_are_accounted_for() -> None:
    machine = robot("five-bar")
    q, v, a = planned(machine, 6)
    bare = pl.inverse_dynamics(machine, q, v, a, actuated=["m1", "m2"])
    damped = pl.inverse_dynamics(
        machine, q, v, a, actuated=["m1", "m2"], forces=[pl.forces.JointDamping({"m1": 2.0})]
    )
    np.testing.assert_allclose(damped - bare, [2.0 * v[0], 0.0], atol=1e-9)
    # A row takes one freedom, and then one motor is enough.
    at = machine.coordinates("m2").v.start

    def motion(t: float) -> tuple[float, float, float]:
        return 0.0, float(v[at]), float(a[at])

    row = pl.constraints.Prescribed("m2", motion)
    (alone,) = pl.inverse_dynamics(machine, q, v, a, actuated=["m1"], rows=[row])
    equations = pl.EquationsOfMotion(machine, rows=[row], forces=[pl.Torque("m1", float(alone))])
    close(equations.acceleration(0.0, q, v), a, 1e-8)


def test_refusals() -> None:
    delta, bar = robot("delta"), robot("five-bar")
    q, v, a = planned(delta, 7)
    a += 1e4 * spin(delta, q)
    with pytest.raises(pl.BadValue, match=r"9 degrees of freedom.*'arm_1'.*name more joints"):
        pl.inverse_dynamics(delta, q, v, a)
    q, v, a = planned(bar, 7)
    with pytest.raises(pl.BadValue, match="2 degrees of freedom here"):
        pl.inverse_dynamics(bar, q, v, a, actuated=["m1"])
    with pytest.raises(pl.BadValue, match="do not determine"):
        pl.inverse_dynamics(bar, q, v, a, actuated=[])
    nudge = np.array([0.1, 0.0, 0.0, 0.0])
    with pytest.raises(pl.InconsistentVelocity, match="do not allow this velocity"):
        pl.inverse_dynamics(bar, q, v + nudge, a)
    with pytest.raises(pl.InconsistentVelocity, match="do not allow this acceleration") as caught:
        pl.inverse_dynamics(bar, q, v, a + nudge)
    assert caught.value.residual > 1e-3
    with pytest.raises(pl.UnknownName, match="did you mean 'm1'"):
        pl.inverse_dynamics(bar, q, v, a, actuated=["m11"])
    with pytest.raises(pl.BadValue, match="4 numbers, not 3"):
        pl.inverse_dynamics(bar, q, v, np.zeros(3))


# -- Christoffel symbols --------------------------------------------------------------------

ONE_AXIS = ["six_axis_arm", "prrr3", "bricard", "planar-3R", "screw-jack", "gear-pair", "door"]
"""Robots whose velocities are coordinate rates."""


def from_mass_matrix(machine: pl.Mechanism, q: Array) -> Array:
    """``(dM_ac/dq_b + dM_ab/dq_c - dM_bc/dq_a) / 2`` (paper 1, eq. 46)."""
    slopes = np.array(
        [hand.rate(machine, q, unit, lambda q: hand.mass_matrix(machine, q))
         for unit in np.eye(machine.nv)]
    )  # fmt: skip
    b_ac = np.einsum("bac->abc", slopes)
    return np.asarray(0.5 * (b_ac + np.einsum("cab->abc", slopes) - slopes))


@pytest.mark.parametrize("name", ONE_AXIS)
def test_christoffel_symbols_are_derivatives_of_the_mass_matrix(name: str) -> None:
    machine = robot(name)
    q = hand.random_q(machine, np.random.default_rng(8), 1.0)
    close(pl.dynamics.christoffel(machine, q), from_mass_matrix(machine, q), 1e-9)


@pytest.mark.parametrize("name", [*ONE_AXIS, "every-pair", "floating-four-bar", "stewart"])
def test_christoffel_symbols_are_symmetric_and_give_the_velocity_forces(name: str) -> None:
    machine = robot(name)
    rng = np.random.default_rng(9)
    q, v = hand.random_q(machine, rng, 1.0), rng.normal(size=machine.nv)
    gamma = pl.dynamics.christoffel(machine, q)
    np.testing.assert_array_equal(gamma, np.swapaxes(gamma, 1, 2))
    data, rest = machine.model.createData(), np.zeros(machine.nv)
    forces = pin.rnea(machine.model, data, q, v, rest) - pin.rnea(
        machine.model, data, q, rest, rest
    )
    close(gamma @ v @ v, forces, 1e-10)


def test_christoffel_symbols_of_the_double_pendulum_by_hand() -> None:
    """Two bars in the plane: only ``-m2 l1 c2 sin(q2)`` appears (every textbook)."""
    machine = robot("planar-3R")
    q = np.array([0.4, 1.1, 0.0])
    gamma = pl.dynamics.christoffel(machine, q)
    masses, points = hand.point_masses(machine)[8:], hand.points_in_world(machine, q)[8:]
    joint2 = m.planar(0.4, 0.5)
    moment = masses @ np.cross(joint2, points - joint2)[:, 1]  # d/dq2 of m2 l1 (r . l1)
    assert gamma[0, 0, 1] == pytest.approx(moment, rel=1e-9)
    assert gamma[1, 0, 0] == pytest.approx(-moment, rel=1e-9)
    assert gamma[0, 0, 0] == pytest.approx(0.0, abs=1e-12)


# -- the Coriolis matrix --------------------------------------------------------------------

BODIES: tuple[tuple[str, Coordinates], ...] = (
    ("free", ""), ("free", "SO3xR3"), ("spherical", ""), ("spherical", "zyx"), ("planar", ""),
    ("universal", ""), ("schoenflies", ""), ("cylindrical", ""), ("spatial_translation", ""),
)  # fmt: skip


def coriolis_errors(machine: pl.Mechanism, seed: int) -> tuple[float, float]:
    """How far ``dM/dt - 2 C`` is from skew, and ``C v`` from the velocity forces; relative."""
    rng = np.random.default_rng(seed)
    q, v = hand.random_q(machine, rng, 1.0), rng.normal(size=machine.nv)
    C = pl.dynamics.coriolis(machine, q, v)
    rate = hand.rate(machine, q, v, lambda q: hand.mass_matrix(machine, q))
    data, rest = machine.model.createData(), np.zeros(machine.nv)
    forces = pin.rnea(machine.model, data, q, v, rest) - pin.rnea(
        machine.model, data, q, rest, rest
    )
    skew = rate - 2 * C
    size = max(1.0, float(np.abs(rate).max()))
    return (
        float(np.abs(skew + skew.T).max()) / size,
        float(np.abs(C @ v - forces).max()) / max(1.0, float(np.abs(forces).max())),
    )


@pytest.mark.parametrize(("pair", "coordinates"), BODIES, ids=lambda x: str(x))
def test_coriolis_matrix_of_a_body_on_each_pair(pair: str, coordinates: Coordinates) -> None:
    body = one_body(pair, com=(0.1, -0.2, 0.3), inertia=(0.2, 0.3, 0.4), coordinates=coordinates)
    assert max(coriolis_errors(body, 10)) < 1e-9


@pytest.mark.parametrize(
    "name", [*ONE_AXIS, "delta", "floating-four-bar", "double-pendulum", "stewart", "every-pair"]
)
def test_coriolis_matrix_of_robots(name: str) -> None:
    assert max(coriolis_errors(robot(name), 11)) < 1e-9


@pytest.mark.parametrize("name", ["six_axis_arm", "planar-3R", "prrr3"])
def test_where_velocities_are_rates_it_is_made_of_christoffel_symbols(name: str) -> None:
    machine = robot(name)
    rng = np.random.default_rng(12)
    q, v = hand.random_q(machine, rng, 1.0), rng.normal(size=machine.nv)
    close(
        pl.dynamics.coriolis(machine, q, v) @ v, pl.dynamics.christoffel(machine, q) @ v @ v, 1e-10
    )


@pytest.mark.parametrize("t", [float("nan"), float("inf"), -float("inf")])
def test_a_time_that_is_none_is_refused(t: float) -> None:
    arm = robot("planar_3r")
    with pytest.raises(pl.BadValue, match=r"^t "):
        pl.inverse_dynamics(arm, arm.neutral, np.zeros(3), np.zeros(3), t=t)
