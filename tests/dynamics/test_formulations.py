"""Tests of the equations of motion and their formulations: one answer, the right one.

Oracles: the dense system solved by NumPy, Gauss' principle, the energy of point masses.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.constraints.rows import Row
from pinloop.dynamics import Formulation, MatrixFormulation
from pinloop.dynamics.forces import Force

from .. import mechanisms as m
from .. import motion_by_hand as hand
from .. import screw_tables as tables
from ..screw_tables import Array
from ..states import (
    SHIPPED,
    SMALL,
    SPACES,
    Space,
    allowed,
    assembled,
    body_motion,
    carried,
    close,
    dense,
    moving,
    one_body,
    rank,
    regularized,
    robot,
)  # fmt: skip

MATRIX: tuple[MatrixFormulation, ...] = (pl.Augmented(), pl.Projected(), pl.Voronets())
FORMULATIONS: tuple[Formulation, ...] = (*MATRIX, pl.ODCA())
every_robot = pytest.mark.parametrize("name", [*SHIPPED, *SMALL])


def push(machine: pl.Mechanism, seed: int = 9) -> Force:
    """Torques and forces that depend on everything."""
    rng = np.random.default_rng(seed)
    size, slope = rng.normal(size=machine.nv), rng.uniform(0, 0.2, machine.nv)
    return pl.TorqueFunction(lambda t, q, v: 5 * size * np.cos(t + q[0]) - slope * v)


def oracle(
    equations: pl.EquationsOfMotion, t: float, q: Array, v: Array
) -> tuple[Array, Array, Array, Array]:
    """Acceleration and smallest multipliers of the dense system, mass matrix and free forces."""
    machine = equations.robot
    rest, M = np.zeros(machine.nv), hand.mass_matrix(machine, q)
    bias = pin.rnea(machine.model, machine.model.createData(), q, v, rest)
    f = equations.force(t, q, v) - bias
    J, _, gamma = equations.terms(t, q, v)
    a, lam = dense(M, J, f, -gamma, equations.rows.scale)
    return a, lam, M, f


def assert_agreement(
    machine: pl.Mechanism, q: Array, v: Array, tolerance: float, rows: tuple[Row, ...] = ()
) -> None:
    """All formulations give what the oracle gives, and it obeys the rows."""
    equations = [
        pl.EquationsOfMotion(machine, rows=rows, forces=[push(machine)], formulation=formulation)
        for formulation in FORMULATIONS
    ]
    a, lam, _, _ = oracle(equations[0], 0.3, q, v)
    J, _, gamma = equations[0].terms(0.3, q, v)
    close(J @ a + gamma, np.zeros(len(J)), tolerance, max(1.0, np.abs(gamma).max(initial=0.0)))
    for one in equations:
        motion = one.motion(0.3, q, v)
        close(motion.a, a, tolerance)
        close(motion.multipliers, lam, tolerance)
        close(motion.constraint_force, J.T @ lam, tolerance)
        assert motion.rank == (rank(J) if len(J) else 0)
        np.testing.assert_array_equal(one.acceleration(0.3, q, v), motion.a)


@every_robot
@pytest.mark.parametrize("reduced", [False, True], ids=["all rows", "regularized"])
def test_formulations_agree_on_every_robot(name: str, reduced: bool) -> None:
    machine = regularized(name) if reduced else robot(name)
    for seed in (1, 2):
        assert_agreement(machine, *moving(robot(name), seed), 1e-9)


@every_robot
def test_regularization_changes_no_acceleration(name: str) -> None:
    q, v = moving(robot(name), 3)
    forces = [push(robot(name))]
    a = [
        pl.EquationsOfMotion(machine, forces=forces).acceleration(0.0, q, v)
        for machine in (robot(name), regularized(name))
    ]
    close(a[1], a[0], 1e-9)


@pytest.mark.parametrize("name", ["four-bar", "rssr", "bennett", "double-cardan", "stewart"])
@pytest.mark.parametrize("space", SPACES)
def test_bodies_accelerate_alike_in_all_coordinates(name: str, space: Space) -> None:
    machine = robot(name)
    q, v = moving(machine, 4)
    there = machine.absolute(space)
    other, rates = carried(machine, q, v, there)
    expected = body_motion(machine, q, v, pl.EquationsOfMotion(machine).acceleration(0.0, q, v))
    for formulation in FORMULATIONS:
        a = pl.EquationsOfMotion(there, formulation=formulation).acceleration(0.0, other, rates)
        actual = body_motion(there, other, rates, a)
        size = max(1.0, *(np.abs(motion[2].vector).max() for motion in expected.values()))
        for body, motion in expected.items():
            close(actual[body][2].vector, motion[2].vector, 1e-8, size)


ROWS: dict[str, tuple[str, tuple[Row, ...]]] = {
    "car": (
        "floating-four-bar",
        (
            pl.constraints.NoSlip("base", (0, 1, 0)),
            pl.constraints.Rolling("rocker", 0.3, axle=(0, 0.8, 0.6)),
        ),
    ),
    "momentum": ("floating-four-bar", (pl.constraints.AngularMomentum((0.1, 0.2, 1)),)),
    "said twice": (
        "rssr",
        (pl.constraints.NoSlip("coupler", (1, 1, 0)), pl.constraints.NoSlip("coupler", (2, 2, 0))),
    ),
    "own rows": (
        "spinning-rods",
        (pl.constraints.Pfaffian("mine", lambda q: [[1, 0, q[2]] + [0] * 6]),),
    ),
}


@pytest.mark.parametrize("case", ROWS)
def test_formulations_agree_with_further_rows(case: str) -> None:
    name, rows = ROWS[case]
    machine = robot(name)
    for seed in (5, 6, 7):
        q, v = moving(machine, seed, rows)
        assert np.abs(v).max() > 1.0
        assert_agreement(machine, q, v, 1e-9, rows)


def test_formulations_agree_with_a_prescribed_motion() -> None:
    machine = robot("five-bar")
    row = pl.constraints.Prescribed("m1", lambda t: (t * t, 2 * t, 2.0))
    for seed in (8, 9):
        q = assembled(machine, seed)
        v = pl.consistent_velocity(machine, q, {"m1": 0.6, "m2": 2.0})
        assert_agreement(machine, q, v, 1e-9, (row,))
        a = pl.EquationsOfMotion(machine, rows=[row]).acceleration(0.3, q, v)
        assert a[machine.coordinates("m1").v] == pytest.approx(2.0, rel=1e-12)


# -- singular configurations ----------------------------------------------------------------


def flat_velocities(machine: pl.Mechanism) -> list[Array]:
    """Velocities at a change point from which the linkage really moves.

    Where rows lose rank, a velocity needs ``w' gamma(v) = 0`` besides ``J v = 0`` for every w with
    ``w' J = 0``: the tangents of the branches that meet there.
    """
    rows, q = pl.Constraints(machine), machine.neutral
    J = rows.jacobian(q)
    free, (U, _, _) = allowed(J), np.linalg.svd(J)
    assert free.shape[1] == 2
    lost = U[:, rank(J) :]
    x, y = free.T
    xx, yy, both = (lost.T @ rows.gamma(q, v) for v in (x, y, x + y))
    found = []
    row = int(np.argmax(np.abs(xx)))  # gamma is a quadratic form: solve it on v = s x + y
    coefficients = [xx[row], both[row] - xx[row] - yy[row], yy[row]]
    for s in np.roots(coefficients):
        v = 3.0 * (s * x + y) / np.linalg.norm(s * x + y)
        assert abs(s.imag) < 1e-12
        np.testing.assert_allclose(lost.T @ rows.gamma(q, v.real), 0, atol=1e-9)
        found.append(v.real)
    return found


def folded() -> tuple[pl.Mechanism, Array, Array]:
    """Parallelogram with all bars in line, on its way through as a parallelogram."""
    machine = tables.build(m.parallelogram())
    q = machine.configuration({"left": -1.1, "top": 1.1, "right": -1.1})
    return machine, q, np.array([3.0, -3.0, 3.0])


def singular_states() -> dict[str, tuple[pl.Mechanism, Array, Array]]:
    flat = tables.build(m.spherical_four_bar(flat=True))
    shipped = robot("spherical_fourbar")
    slider = tables.build(m.slider_crank())
    stretched = slider.configuration(m.slider_crank_q(0.0))
    states = {
        "folded parallelogram": folded(),
        "stretched crank": (
            slider, stretched, pl.consistent_velocity(slider, stretched, {"crank": 4.0})
        ),
    }  # fmt: skip
    for name, machine in (("flat four-bar", flat), ("shipped flat four-bar", shipped)):
        for k, v in enumerate(flat_velocities(machine)):
            states[f"{name}, branch {k + 1}"] = (machine, machine.neutral, v)
    return states


SINGULAR = singular_states()


@pytest.mark.parametrize("case", SINGULAR)
@pytest.mark.parametrize("reduced", [False, True], ids=["all rows", "regularized"])
def test_formulations_agree_where_rows_lose_rank(case: str, reduced: bool) -> None:
    machine, q, v = SINGULAR[case]
    if case != "stretched crank":  # that one only loses the choice of the slide as input
        assert rank(pl.Constraints(machine).jacobian(q)) == 1
    machine = pl.regularize(machine) if reduced else machine
    assert_agreement(machine, q, v, 1e-6)


@pytest.mark.parametrize("distance", [1e-1, 1e-3, 1e-5])
def test_formulations_agree_close_to_a_singularity(distance: float) -> None:
    machine, q, v = folded()
    q = machine.integrate(q, distance / 3.0 * v)
    a = [
        pl.EquationsOfMotion(machine, formulation=formulation).acceleration(0.0, q, v)
        for formulation in FORMULATIONS
    ]
    close(a[1], a[0], 1e-14 / distance + 1e-9)
    close(a[2], a[0], 1e-14 / distance + 1e-9)
    close(a[3], a[0], 1e-14 / distance + 1e-9)


# -- principles -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["delta", "bricard", "prrr3", "rssr", "hoberman-4", "palletizer"])
@pytest.mark.parametrize("formulation", FORMULATIONS, ids=str)
def test_gauss_no_other_allowed_acceleration_has_less_constraint(
    name: str, formulation: Formulation
) -> None:
    machine = robot(name)
    q, v = moving(machine, 10)
    equations = pl.EquationsOfMotion(machine, forces=[push(machine)], formulation=formulation)
    _, _, M, f = oracle(equations, 0.0, q, v)
    J, _, gamma = equations.terms(0.0, q, v)
    a, free = equations.acceleration(0.0, q, v), np.linalg.solve(M, f)

    def constraint(a: Array) -> float:
        return float(0.5 * (a - free) @ M @ (a - free))

    close(J @ a + gamma, np.zeros(len(J)), 1e-9, max(1.0, np.abs(gamma).max()))
    rng, motions = np.random.default_rng(11), allowed(J)
    least = constraint(a)
    for size in (1e-2, 1.0, 100.0):
        other = size * motions @ rng.normal(size=motions.shape[1])
        assert constraint(a + other) > least
        # The increase is the energy of the difference alone: the slope vanishes at a.
        grown = 0.5 * float(other @ M @ other)
        assert constraint(a + other) - least == pytest.approx(grown, rel=1e-5, abs=1e-9 * least)


@every_robot
def test_constraint_forces_have_no_power(name: str) -> None:
    machine = robot(name)
    q, v = moving(machine, 12)
    motion = pl.EquationsOfMotion(machine, forces=[push(machine)]).motion(0.0, q, v)
    force = motion.constraint_force
    size = max(1.0, float(np.abs(force) @ np.abs(v)))
    assert abs(force @ v) < 1e-9 * size


@pytest.mark.parametrize("name", [*SMALL])
def test_energy_of_the_point_masses_stays(name: str) -> None:
    """d(T + U)/dt = 0 along the accelerations, with energies from masses and placements alone."""
    machine = robot(name)
    q, v = moving(machine, 13)
    a = pl.EquationsOfMotion(machine).acceleration(0.0, q, v)

    def energy(t: float) -> float:
        here = machine.integrate(q, t * v)
        return hand.kinetic_energy(machine, here, v + t * a) + hand.potential_energy(machine, here)

    scale = max(1.0, hand.kinetic_energy(machine, q, v), float(np.abs(a).max()))
    assert abs(hand.slope(energy, 1e-3)) < 1e-6 * scale


def test_energies_and_mass_matrix_are_those_of_the_point_masses() -> None:
    machine = robot("every-pair")
    rng = np.random.default_rng(14)
    q, v = hand.random_q(machine, rng), rng.normal(size=machine.nv)
    equations = pl.EquationsOfMotion(machine)
    kinetic, potential, stored = equations.energies(0.0, q, v)
    assert kinetic == pytest.approx(hand.kinetic_energy(machine, q, v), rel=1e-8)
    assert stored == {}
    # Only differences matter: a body welded to the ground has potential energy by hand.
    lifted = machine.integrate(q, 0.3 * v)
    rise = hand.potential_energy(machine, lifted) - hand.potential_energy(machine, q)
    assert abs(rise) > 1.0
    assert equations.energies(0.0, lifted, v)[1] - potential == pytest.approx(rise, rel=1e-10)
    M = equations.mass(q)
    np.testing.assert_array_equal(M, M.T)
    assert 0.5 * v @ M @ v == pytest.approx(kinetic, rel=1e-12)


# -- the choice of independent velocities ---------------------------------------------------


def bead_on_a_circle() -> pl.Mechanism:
    """A body on two slides at the end of a rod: neither slide can lead all the way round."""
    return tables.build(
        tables.table(
            "bead",
            tables.joint("x", "prismatic", "ground", "cart", [0, 0, 0], m.X),
            tables.joint("z", "prismatic", "cart", "bead", [0, 0, 0], m.Z),
            tables.joint("rod", "rod", "ground", "bead", [0, 0, 1], point2=[0, 0, 0], cut=True),
        )
    )


def around_the_circle() -> tuple[pl.Mechanism, list[tuple[Array, Array]]]:
    machine = bead_on_a_circle()
    near = 10.0 ** np.arange(-2.0, -12.5, -0.5)  # of the bottom, where x cannot depend on z
    angles = np.r_[0.5 * np.pi, near, 0.0, np.linspace(0.1, 6.5, 60)]
    states = [
        (np.array([np.sin(s), 1 - np.cos(s)]), 2 * np.array([np.cos(s), np.sin(s)])) for s in angles
    ]
    return machine, states


def through_both_folds() -> tuple[pl.Mechanism, list[tuple[Array, Array]]]:
    """A parallelogram through both configurations in which all its bars are in line."""
    machine = robot("parallelogram")
    states = []
    for angle in np.linspace(-3.0, 3.0, 61):
        q = machine.configuration({"left": angle, "top": -angle, "right": angle})
        states.append((q, 2.0 * np.array([1.0, -1.0, 1.0])))
    return machine, states


@pytest.mark.parametrize("path", [around_the_circle, through_both_folds])
def test_voronets_keeps_working_where_its_choice_must_change(path: Any) -> None:
    machine, states = path()
    kept = pl.EquationsOfMotion(machine, formulation=pl.Voronets())
    fresh = pl.EquationsOfMotion(machine)
    for q, v in states:
        np.testing.assert_allclose(pl.Constraints(machine).residual(q), 0, atol=1e-12)
        close(kept.acceleration(0.0, q, v), fresh.acceleration(0.0, q, v), 1e-9)


def test_voronets_through_full_turns_of_the_four_bar() -> None:
    machine = robot("four-bar")
    v = pl.consistent_velocity(machine, machine.neutral, {"crank": 12.0})
    runs = [
        pl.simulate(machine, machine.neutral, v, until=1.5, formulation=formulation)
        for formulation in FORMULATIONS
    ]
    assert runs[0].q[-1][0] > 2 * np.pi
    for run in runs[1:]:
        np.testing.assert_allclose(run.q[-1], runs[0].q[-1], atol=1e-6)


def test_choices_are_not_shared_between_equations() -> None:
    """A formulation is a value: bound twice, it keeps two choices."""
    formulation = pl.Voronets()
    one = pl.EquationsOfMotion(robot("four-bar"), formulation=formulation)
    two = pl.EquationsOfMotion(robot("delta"), formulation=formulation)
    states = {equations: moving(equations.robot, 15) for equations in (one, two)}
    before = {equations: equations.acceleration(0.0, *states[equations]) for equations in states}
    for equations in (one, two):
        again = equations.acceleration(0.0, *states[equations])
        np.testing.assert_array_equal(again, before[equations])


# -- what cannot be solved ------------------------------------------------------------------


@pytest.mark.parametrize("formulation", MATRIX, ids=str)
def test_something_without_mass_is_refused(formulation: MatrixFormulation) -> None:
    M, J = np.diag([1.0, 0.0]), np.array([[1.0, 0.0]])
    with pytest.raises(pl.SingularMass):
        formulation.solve(M, J, np.ones(2), np.zeros(1), np.ones(1))


@pytest.mark.parametrize("formulation", FORMULATIONS, ids=str)
def test_without_rows_it_is_newtons_law(formulation: Formulation) -> None:
    body = one_body(mass=2.0, inertia=(0.1, 0.2, 0.25))
    w = np.array([1.0, -2.0, 0.5])
    motion = pl.EquationsOfMotion(body, formulation=formulation).motion(
        0.0, body.neutral, np.r_[0.0, 0.0, 0.0, w]
    )
    euler = np.array([(0.2 - 0.25) * w[1] * w[2] / 0.1, (0.25 - 0.1) * w[2] * w[0] / 0.2,
                      (0.1 - 0.2) * w[0] * w[1] / 0.25])  # fmt: skip
    np.testing.assert_allclose(motion.a, np.r_[0.0, 0.0, -9.81, euler], rtol=1e-12, atol=1e-12)
    assert motion.multipliers.shape == motion.determined.shape == (0,) and motion.rank == 0
