"""Tests of `pinloop.simulation.stabilization`: back to the manifold, the short way, as long as
it runs.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq, minimize

import pinloop as pl
from pinloop.constraints.rows import Row
from pinloop.simulation.stabilization import Projector

from .. import mechanisms as m
from .. import motion_by_hand as hand
from .. import screw_tables as tables
from ..screw_tables import Array
from ..states import close, moving, one_body, rank, robot

WAYS: dict[str, Any] = {"optimal": pl.Projection(), "mass": pl.Projection(coordinates="mass")}
every_way = pytest.mark.parametrize("way", WAYS)
MACHINES = ["four-bar", "sevenbar", "rssr", "double-cardan", "delta", "bennett", "gear-pair",
            "rod-pendulums", "stewart", "spherical_threebar"]  # fmt: skip
every_machine = pytest.mark.parametrize("name", MACHINES)


def projector(
    machine: pl.Mechanism, projection: pl.Projection, rows: tuple[Row, ...] = ()
) -> Projector:
    return Projector(pl.EquationsOfMotion(machine, rows=rows), projection)


def off(machine: pl.Mechanism, seed: int, size: float) -> tuple[Array, Array, Array]:
    """An assembled configuration, one beside it, and a velocity for there that rows forbid."""
    rng = np.random.default_rng(seed)
    q, v = moving(machine, seed)
    unit = np.where(machine.is_translation, machine.length, 1.0)
    return q, machine.integrate(q, size * unit * rng.normal(size=machine.nv)), v + size * unit


# -- long runs ------------------------------------------------------------------------------


def driven(name: str) -> tuple[pl.Mechanism, Array]:
    machine = robot(name)
    start = {"four-bar": {"crank": 6.0}, "sevenbar": {}}[name]
    return machine, pl.consistent_velocity(machine, machine.neutral, start)


LONG: dict[str, tuple[str, Any]] = {
    "four-bar, optimal": ("four-bar", pl.Projection()),
    "four-bar, mass": ("four-bar", pl.Projection(coordinates="mass")),
    "four-bar, named": ("four-bar", pl.Projection(coordinates=["elbow", "rocker"])),
    "seven-bar, optimal": ("sevenbar", pl.Projection()),
    "seven-bar, mass": ("sevenbar", pl.Projection(coordinates="mass")),
}


@pytest.mark.parametrize("case", LONG)
def test_loops_stay_closed_for_twenty_seconds(case: str) -> None:
    name, projection = LONG[case]
    machine, v = driven(name)
    run = pl.simulate(machine, machine.neutral, v, until=20.0, stabilization=projection)
    assert run.message == "done" and run.closure().max() < 1e-10
    rows = pl.Constraints(machine)
    rates = [
        np.abs(rows.jacobian(q) @ v).max() for q, v in zip(run.q[::10], run.v[::10], strict=True)
    ]
    assert max(rates) < 1e-9


@pytest.mark.parametrize(("method", "least"), [("dopri5", 1e-10), ("dop853", 1e-11)])
@pytest.mark.parametrize("name", ["four-bar", "sevenbar"])
def test_without_it_the_loops_open_more_and_more(name: str, method: str, least: float) -> None:
    machine, v = driven(name)
    run = pl.simulate(
        machine, machine.neutral, v, until=8.0, stabilization=None, method=pl.MuntheKaas(method)
    )
    gaps = run.closure()
    ends = [gaps[run.t <= t].max() for t in (2.0, 4.0, 8.0)]
    assert least < ends[0] < ends[1] < ends[2] < 1e-3
    assert ends[2] > 4 * ends[0]


# -- one projection -------------------------------------------------------------------------


@every_machine
@every_way
def test_projected_states_obey_all_rows(name: str, way: str) -> None:
    machine = robot(name)
    project = projector(machine, WAYS[way])
    rows = pl.Constraints(machine)
    for seed in (1, 2):
        _, q, v = off(machine, seed, 1e-2)
        assert np.abs(rows.residual(q)).max() > 1e-5
        q_new, v_new, moved = project.apply(0.0, q, v)
        assert moved
        assert np.abs(rows.residual(q_new)).max() < 1e-11
        assert np.abs(rows.jacobian(q_new) @ v_new).max() < 1e-10
        machine.checked_configuration(q_new)
        again = project.apply(0.0, q_new, v_new)
        assert not again[2]
        assert again[0].tobytes() == q_new.tobytes() and again[1].tobytes() == v_new.tobytes()


def test_nothing_moves_below_the_tolerance() -> None:
    machine = robot("four-bar")
    q, v = moving(machine, 3)
    q[0] += 1e-7
    v[1] += 1e-7
    before = q.copy(), v.copy()
    loose = projector(machine, pl.Projection(tol=1e-5))
    assert not loose.apply(0.0, q, v)[2]
    tight = projector(machine, pl.Projection(tol=1e-9))
    assert tight.position(0.0, q)[1] and tight.velocity(0.0, q, v)[1]
    np.testing.assert_array_equal(before, (q, v))  # inputs stay as they are


def shortest(machine: pl.Mechanism, q: Array, root: Array) -> Array:
    """Least ``|z|`` whose step ``root^-1 z`` closes the loops, by sequential quadratic programs."""
    rows = pl.Constraints(machine)

    def residual(z: Array) -> Array:
        return rows.residual(machine.integrate(q, np.linalg.solve(root, z)))

    # Only as many rows as there are independent ones, or the minimiser gets lost.
    U = np.linalg.svd(rows.jacobian(q))[0][:, : rank(rows.jacobian(machine.neutral))]
    minimise: Any = minimize
    found = minimise(
        lambda z: 0.5 * z @ z,
        np.zeros(machine.nv),
        jac=lambda z: z,
        constraints={"type": "eq", "fun": lambda z: U.T @ residual(z)},
        method="SLSQP",
        options={"ftol": 1e-16, "maxiter": 200},
    ).x
    assert np.abs(residual(found)).max() < 1e-8
    return np.asarray(found)


@pytest.mark.parametrize("name", ["four-bar", "rssr", "rod-pendulums", "double-cardan"])
def test_mass_projection_is_the_shortest_way_in_the_kinetic_metric(name: str) -> None:
    """Against a constrained minimisation; the metric may be taken at either end: second order."""
    machine = robot(name)
    gaps = []
    for size in (2e-2, 1e-2):
        _, q, _ = off(machine, 4, size)
        root = np.linalg.cholesky(hand.mass_matrix(machine, q)).T.astype(float)
        expected = shortest(machine, q, root)
        moved, _ = projector(machine, WAYS["mass"]).position(0.0, q)
        gaps.append(np.linalg.norm(root @ machine.difference(q, moved) - expected))
        assert gaps[-1] < 2 * size * np.linalg.norm(expected)
    assert gaps[1] < 0.4 * gaps[0]


@pytest.mark.parametrize("name", ["bennett", "bricard", "prrr3"])
def test_rows_that_depend_on_each_other_on_the_manifold_only_do_not_lead_astray(name: str) -> None:
    """The shortest way back is no longer than that to where the robot came from."""
    machine = robot(name)
    for seed in range(4):
        for size in (1e-6, 1e-4):
            q, near, _ = off(machine, seed, size)
            moved, _ = projector(machine, WAYS["mass"]).position(0.0, near)
            root = np.linalg.cholesky(hand.mass_matrix(machine, q)).T
            back, way = (np.linalg.norm(root @ machine.difference(near, end)) for end in (q, moved))
            assert way < 1.1 * back


@every_machine
def test_mass_projection_of_velocities_is_orthogonal(name: str) -> None:
    """The change is what the constraint impulses of a shock would do: ``M (v' - v) = J' p``."""
    machine = robot(name)
    q, v = moving(machine, 5)
    v = v + np.random.default_rng(5).normal(size=machine.nv)
    project = projector(machine, WAYS["mass"])
    new, moved = project.velocity(0.0, q, v)
    J, M = pl.Constraints(machine).jacobian(q), hand.mass_matrix(machine, q)
    momentum = M @ (new - v)
    impulse = np.linalg.lstsq(J.T, momentum, rcond=1e-9)[0]
    close(J.T @ impulse, momentum, 1e-9)
    assert moved and new @ M @ new < v @ M @ v  # a projection takes energy away


@every_way
def test_beside_a_bifurcation_the_least_residual_counts(way: str) -> None:
    """A parallelogram nearly in line: a residual far below the tolerance is much of a way there."""
    machine = pl.regularize(robot("parallelogram"))
    q, v = moving(machine, 4, speed=8.0)
    equations = pl.EquationsOfMotion(machine)
    residual = equations.residual
    equations.acceleration(0.0, q, v)  # as runs do: how many rows are independent
    project = Projector(equations, WAYS[way])
    slip = np.array([1e-12, 0.0, 0.0])
    assert not project.position(0.0, q + slip)[1] and project.regularity == 1.0
    along = np.sign(v)  # all cranks stay parallel
    rows = pl.Constraints(machine)

    def minor(s: float) -> float:
        return float(np.linalg.det(rows.jacobian(q + s * along)[:, :2]))

    flat = q + float(brentq(minor, 0.8, 1.2, xtol=1e-14)) * along
    for distance, least, most in ((1e-2, 1e-3, 0.1), (1e-4, 1e-5, 1e-3), (0.0, 0.0, 1e-7)):
        near = flat + distance * along
        moved, _ = project.position(0.0, near)
        assert least <= project.regularity < most
        np.testing.assert_allclose(moved, near, atol=1e-11)
    near = flat + 1e-2 * along + slip
    assert np.abs(residual(0.0, near)).max() < 1e-11
    moved, turned = project.position(0.0, near)
    assert turned and np.abs(residual(0.0, moved)).max() < 1e-15


def test_rows_that_never_are_more_independent_are_regular() -> None:
    """Five metres of one row are as good as a micrometre of the other."""
    arm = one_body("planar")
    x, y, _ = np.eye(3)
    rows = (
        pl.constraints.Pfaffian("along", lambda q: x[None]),
        pl.constraints.Pfaffian("askew", lambda q: x + 1e-6 * y),
    )
    equations = pl.EquationsOfMotion(arm, rows=rows)
    equations.acceleration(0.0, arm.neutral, np.array([0.0, 0.0, 1.0]))
    project = Projector(equations, WAYS["mass"])
    for _ in range(2):
        project.velocity(0.0, arm.neutral, np.ones(3))
        assert project.regularity == 1.0


# -- which coordinates move -----------------------------------------------------------------


def bead(angle: float, masses: tuple[float, float]) -> tuple[pl.Mechanism, Array]:
    """A point on two slides at the end of a rod of one metre, at an angle against straight down."""
    cart, ball = masses
    entries = tables.table(
        "bead",
        tables.joint("x", "prismatic", "ground", "cart", [0, 0, 0], m.X),
        tables.joint("z", "prismatic", "cart", "bead", [0, 0, 0], m.Z),
        tables.joint("rod", "rod", "ground", "bead", [0, 0, 1], point2=[0, 0, 0], cut=True),
    )
    for body, mass in zip(entries["bodies"], (cart, ball), strict=True):
        body["mass"] = mass
    return tables.build(entries), np.array([np.sin(angle), 1 - np.cos(angle)])


@pytest.mark.parametrize(
    ("angle", "masses", "expected"),
    [(0.2, (1e-3, 1.0), "z"), (1.4, (1e-3, 1.0), "x"), (0.9, (8.0, 1.0), "z")],
)
def test_the_best_coordinate_is_moved(
    angle: float, masses: tuple[float, float], expected: str
) -> None:
    """It has the largest ``J_i^2 / M_ii``: where the rod points, or where less mass moves."""
    machine, q = bead(angle, masses)
    start = q + np.array([1e-3, 2e-3])
    moved, _ = projector(machine, pl.Projection()).position(0.0, start)
    shift = moved - start
    other = 1 - "xz".index(expected)
    assert shift[other] == 0.0 and shift[1 - other] != 0.0
    M = np.diag(hand.mass_matrix(machine, q))
    costs = []
    for joint in ("x", "z"):
        there, _ = projector(machine, pl.Projection(coordinates=[joint])).position(0.0, start)
        costs.append(float(M @ (there - start) ** 2))
    assert float(M @ shift**2) == pytest.approx(min(costs), rel=1e-9)


@pytest.mark.parametrize("name", ["four-bar", "sevenbar", "rssr", "stewart", "prrr3"])
def test_only_dependent_coordinates_move(name: str) -> None:
    machine = robot(name)
    _, q, v = off(machine, 6, 1e-3)
    equations = pl.EquationsOfMotion(machine)
    M, J = equations.mass(q), equations.terms(0.0, q, v)[0]
    dependent = set(pl.dynamics.dependent_coordinates(M, equations.rows.scale[:, None] * J)[0])
    # All rows that are independent here count: of an open configuration the rank is not taken.
    project = Projector(equations.around(0.0, q), pl.Projection())
    moved, _ = project.velocity(0.0, q, v)
    changed = set(np.flatnonzero(moved != v))
    assert changed == dependent
    independent = sorted(set(range(machine.nv)) - dependent)
    there, _ = projector(machine, pl.Projection()).position(0.0, q)
    shift = machine.difference(q, there)
    # Turns about two axes of a ball joint one after the other turn a little about the third.
    assert np.abs(shift[independent]).max(initial=0.0) < max(1e-12, 0.1 * np.abs(shift).max() ** 2)
    assert np.abs(shift).max() > 1e-5


def test_optimal_choice_against_all_others() -> None:
    """On the four-bar the kinetic length of the shift, for every possible pair of joints."""
    machine = robot("four-bar")
    for seed in range(6, 12):
        _, q, _ = off(machine, seed, 1e-3)
        M = hand.mass_matrix(machine, q)

        def cost(projection: pl.Projection, q: Array = q, M: Array = M) -> float:
            moved, _ = projector(machine, projection).position(0.0, q)
            shift = machine.difference(q, moved)
            return float(np.sqrt(shift @ M @ shift))

        all_pairs = [
            cost(pl.Projection(coordinates=pair)) for pair in combinations(machine.joints, 2)
        ]
        shortest = cost(pl.Projection(coordinates="mass"))
        best = cost(pl.Projection())
        assert any(best == pytest.approx(one, rel=1e-9) for one in all_pairs)
        assert shortest <= best * (1 + 1e-3)
        # Greedy is at most 2! off in volume, and so is the length of the way it takes.
        assert best <= 2 * min(all_pairs)


def test_positions_and_velocities_have_their_own_sets() -> None:
    """A blade restricts velocities only: it may not move the position."""
    machine = robot("floating-four-bar")
    rows = (pl.constraints.NoSlip("base", (0, 1, 0)),)
    q, v = moving(machine, 7)
    v = v + 0.1
    project = projector(machine, pl.Projection(), rows)
    same, moved = project.position(0.0, q)
    assert not moved and same.tobytes() == q.tobytes()
    new, turned = project.velocity(0.0, q, v)
    J = pl.EquationsOfMotion(machine, rows=rows).terms(0.0, q, v)[0]
    assert turned and np.abs(J @ new).max() < 1e-12
    assert np.count_nonzero(new != v) == rank(J) == rank(J[:-1]) + 1
    slipping, _ = projector(machine, pl.Projection()).velocity(0.0, q, v)
    assert np.count_nonzero(slipping != v) == rank(J[:-1])


def test_named_coordinates_alone_are_moved() -> None:
    machine = robot("four-bar")
    _, q, v = off(machine, 8, 1e-3)
    for pair in (("crank", "elbow"), ("elbow", "rocker"), ("crank", "rocker")):
        project = projector(machine, pl.Projection(coordinates=pair))
        q_new, v_new, _ = project.apply(0.0, q, v)
        (kept,) = set(machine.joints) - set(pair)
        at = machine.coordinates(kept).v
        assert q_new[at] == q[at] and v_new[at] == v[at]
        assert np.abs(pl.Constraints(machine).residual(q_new)).max() < 1e-11


def test_named_coordinates_that_cannot_close_the_loops_are_an_error() -> None:
    machine, v = driven("four-bar")
    with pytest.raises(pl.SimulationFailed, match=r"\['rocker'\] are too few"):
        pl.simulate(
            machine, machine.neutral, v, until=3.0, method=pl.MuntheKaas("rk4", step=0.01),
            stabilization=pl.Projection(coordinates=["rocker"]),
        )  # fmt: skip


# -- moving rows ----------------------------------------------------------------------------


@every_way
def test_prescribed_motions_are_followed_exactly(way: str) -> None:
    machine = robot("five-bar")

    def swing(t: float) -> tuple[float, float, float]:
        return 0.4 * np.sin(3 * t), 1.2 * np.cos(3 * t), -3.6 * np.sin(3 * t)

    v = pl.consistent_velocity(machine, machine.neutral, {"m1": 1.2, "m2": 0.5})
    run = pl.simulate(
        machine, machine.neutral, v, until=2.0, rows=[pl.constraints.Prescribed("m1", swing)],
        stabilization=WAYS[way],
    )  # fmt: skip
    at = machine.coordinates("m1").q.start
    np.testing.assert_allclose(run.q[:, at], 0.4 * np.sin(3 * run.t), atol=1e-10)
    np.testing.assert_allclose(run.v[:, at], 1.2 * np.cos(3 * run.t), atol=1e-9)
    assert run.closure().max() < 1e-10


@pytest.mark.parametrize("regularization", [False, True])
@every_way
def test_rows_that_come_to_contradict_each_other_stop_the_run(
    way: str, regularization: bool
) -> None:
    """Crank and rocker are tied by the loop: one cannot go while the other is held."""
    machine = robot("four-bar")
    rows = [
        pl.constraints.Prescribed("crank", lambda t: (t**3, 3 * t * t, 6 * t)),
        pl.constraints.Prescribed("rocker", lambda t: (0.0, 0.0, 0.0)),
    ]
    with pytest.raises(pl.SimulationFailed, match=r"contradict|cannot be met|cannot close"):
        pl.simulate(
            machine, machine.neutral, until=1.0, rows=rows, regularization=regularization,
            stabilization=WAYS[way],
        )  # fmt: skip


@every_way
@pytest.mark.parametrize(("gap", "met"), [(2e-9, True), (2e-7, False), (2e-3, False)])
def test_rates_that_contradict_each_other_are_met_half_way_or_refused(
    way: str, gap: float, met: bool
) -> None:
    """One joint with two rates: the best velocity misses each by half of their difference."""
    arm = one_body("revolute")
    (name,) = arm.joints
    slow = pl.constraints.Prescribed(name, lambda t: (0.0, 1.0, 0.0))
    fast = pl.constraints.Prescribed(name, lambda t: (0.0, 1.0 + gap, 0.0))
    project = projector(arm, WAYS[way], (slow, fast))
    if met:
        v, moved = project.velocity(0.0, arm.neutral, np.zeros(1))
        assert moved and v[0] == pytest.approx(1.0 + gap / 2, rel=0, abs=1e-12)
        return
    left = f"a residual of {gap / np.sqrt(2):.1e} is left; they contradict each other"
    with pytest.raises(pl.BadValue, match=left):
        project.velocity(0.0, arm.neutral, np.zeros(1))


# -- what cannot be -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tol": 0.0}, "tol is 0"),
        ({"tol": -1e-9}, "tol is -1e-09"),
        ({"tol": float("nan")}, "tol is nan"),
        ({"coordinates": "best"}, "coordinates is 'best'; give 'optimal', 'mass' or a list"),
    ],
)
def test_projections_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(pl.BadValue, match=message):
        pl.Projection(**options)


def test_unknown_joints_are_named() -> None:
    with pytest.raises(pl.UnknownName, match="did you mean 'crank'"):
        pl.simulate(
            robot("four-bar"), robot("four-bar").neutral, until=0.1,
            stabilization=pl.Projection(coordinates=["cranck"]),
        )  # fmt: skip
