"""Tests of `pinloop.simulation.initial_state`: velocities that rows allow to first order only start
no run.

The oracle is a four-bar that lies flat along x, signed lengths ``a + b = g + d``. Its bars turn at
rates with ``a wa + b wb = d wd`` (z, first order), and go on where ``a wa^2 + b wb^2 = d wd^2``
(x, second order): two tangents.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import pinloop as pl
from pinloop.model.description import GROUND
from pinloop.simulation.initial_state import obstacle

from .. import mechanisms as m
from .. import screw_tables as tables
from ..linkages import triple_parallelogram
from ..mechanisms import TURN, X
from ..screw_tables import Array, Table, joint, table
from ..states import SHIPPED, SMALL, allowed, assembled, carried, rank, regularized, robot

FORMULATIONS: tuple[Any, ...] = (
    None, pl.Augmented(), pl.Projected(), pl.Voronets(), pl.ODCA(),
)  # fmt: skip
every_formulation = pytest.mark.parametrize(
    "formulation", FORMULATIONS, ids=lambda f: type(f).__name__
)
Bars = tuple[float, float, float]


def flat(bars: Bars, *, on_cart: bool = False) -> pl.Mechanism:
    """A four-bar in its flat pose, perhaps on a cart along x; bars may point backwards."""
    a, b, d = bars
    ground = "cart" if on_cart else GROUND
    slide = [joint("slide", "prismatic", GROUND, "cart", 0 * X, X)] if on_cart else []
    return tables.build(
        table(
            "flat four-bar",
            *slide,
            joint("left", "revolute", ground, "crank", 0 * X, TURN),
            joint("top", "revolute", "crank", "coupler", a * X, TURN),
            joint("right", "revolute", ground, "rocker", (a + b - d) * X, TURN),
            joint("close", "revolute", "coupler", "rocker", (a + b) * X, TURN, cut=True),
        )
    )


def rates(bars: Bars, crank: float, rocker: float) -> Array:
    """Joint rates from those of crank and rocker."""
    a, b, d = bars
    return np.array([crank, (d * rocker - a * crank) / b - crank, rocker])


def second_order(bars: Bars, v: Array) -> float:
    a, b, d = bars
    return float(a * v[0] ** 2 + b * (v[0] + v[1]) ** 2 - d * v[2] ** 2)


def discriminant(bars: Bars) -> float:
    """Positive where the tangents are real."""
    a, b, d = bars
    return a * b * d * (a + b - d)


def tangents(bars: Bars) -> Array:
    """Rates of the rocker per rate of the crank, on both branches."""
    a, b, d = bars
    return np.asarray(np.roots([d * d / b - d, -2 * a * d / b, a + a * a / b]).real)


def random_bars(seed: int) -> Bars:
    """Bars with two real tangents."""
    rng = np.random.default_rng(seed)
    while True:
        a, b, d = rng.uniform(0.3, 1.0, 3) * rng.choice([-1, 1], 3)
        if discriminant((a, b, d)) > 1e-2:
            return a, b, d


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("reduced", [False, True])
def test_the_residual_is_that_of_the_second_order(seed: int, reduced: bool) -> None:
    bars = random_bars(seed)
    machine = pl.regularize(flat(bars)) if reduced else flat(bars)
    equations = pl.EquationsOfMotion(machine)
    v = rates(bars, *np.random.default_rng(seed).normal(size=2))
    found = obstacle(equations, 0.0, machine.neutral, v)
    assert found is not None and not found.resting
    want = abs(second_order(bars, v)) / machine.length
    assert found.residual == pytest.approx(want, rel=1e-9)
    # Rates scale it by their square.
    fast = obstacle(equations, 0.0, machine.neutral, 100 * v)
    assert fast is not None and fast.residual == pytest.approx(1e4 * want, rel=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_velocities_along_a_branch_go_on(seed: int) -> None:
    bars = random_bars(seed)
    machine = flat(bars)
    equations = pl.EquationsOfMotion(machine)
    middle = tangents(bars).mean()
    for rocker in tangents(bars):
        for speed in (1e-3, 1.0, -100.0):
            v = rates(bars, speed, speed * float(rocker))
            assert obstacle(equations, 0.0, machine.neutral, v) is None
            beside = rates(bars, speed, speed * float(0.99 * rocker + 0.01 * middle))
            assert obstacle(equations, 0.0, machine.neutral, beside) is not None
    assert obstacle(equations, 0.0, machine.neutral, np.zeros(3)) is None


@every_formulation
def test_a_run_with_such_a_velocity_is_refused_and_offered_one_that_goes_on(
    formulation: Any,
) -> None:
    bars = (0.6, 0.5, 0.4)
    machine = flat(bars)
    near = float(tangents(bars)[0])
    v = rates(bars, 2.0, 2.0 * near + 0.2)
    with pytest.raises(
        pl.InconsistentVelocity,
        match=r"'flat four-bar' at the start: the pose is singular.*first order only.*row 'close: "
        r".*residual \d\.\d+\); start with a velocity along one of the branches",
    ) as caught:
        pl.simulate(machine, machine.neutral, v, until=0.1, formulation=formulation)
    error = caught.value
    assert error.residual == pytest.approx(abs(second_order(bars, v)) / machine.length, rel=1e-9)
    assert second_order(bars, error.v) == pytest.approx(0.0, abs=1e-8)
    assert error.v[2] / error.v[0] == pytest.approx(near, rel=1e-6)
    assert np.abs(error.v - v).max() < 0.2
    run = pl.simulate(machine, machine.neutral, error.v, until=0.1, formulation=formulation)
    assert np.abs(run.energy().error).max() < 1e-6 * run.energy().kinetic.max()


def cranks_along_the_ground(entries: Table) -> tuple[pl.Mechanism, Array]:
    """Parallel cranks, which lean as they are built, laid flat: nothing else moves the coupler."""
    machine = tables.build(entries)
    rows = pl.Constraints(machine)
    for lean, top in product((1.1, -1.1), (1, -1)):
        turns = {name: top * lean if name.startswith("top") else lean for name in machine.joints}
        q = machine.configuration(turns)
        closed = float(np.abs(rows.residual(q)).max()) < 1e-9
        if closed and rank(rows.jacobian(q)) < machine.nv - 1:
            return machine, q
    raise AssertionError


def flat_spherical() -> tuple[pl.Mechanism, Array]:
    machine = tables.build(m.spherical_four_bar(flat=True))
    return machine, machine.neutral


FLAT = {
    "parallelogram": lambda: cranks_along_the_ground(m.parallelogram()),
    "three cranks": lambda: cranks_along_the_ground(triple_parallelogram()),
    "spherical four-bar": flat_spherical,
}


@every_formulation
@pytest.mark.parametrize("space", [None, "SE3", "SO3xR3"])
@pytest.mark.parametrize("name", FLAT)
def test_such_a_start_is_refused_in_all_coordinates(
    name: str, space: Any, formulation: Any
) -> None:
    machine, q = FLAT[name]()
    free = allowed(pl.Constraints(machine).jacobian(q))
    v = free @ np.random.default_rng(1).normal(size=free.shape[1])
    if space is not None:
        there = machine.absolute(space)
        q, v = carried(machine, q, v, there)
        machine = there
    for regularization in (False, True):
        with pytest.raises(pl.InconsistentVelocity, match="first order only") as caught:
            pl.simulate(
                machine, q, v, until=0.1, formulation=formulation, regularization=regularization
            )
        # By the equations: no acceleration meets the rows, and this is how much is left at least.
        equations = pl.EquationsOfMotion(pl.regularize(machine) if regularization else machine)
        J, _, gamma = equations.terms(0.0, q, v)
        J, gamma = equations.rows.scale[:, None] * J, equations.rows.scale * gamma
        unit = np.where(machine.is_translation, machine.length, 1.0)
        left = gamma - J @ (unit * np.linalg.lstsq(J * unit, gamma, rcond=1e-9)[0])
        assert caught.value.residual == pytest.approx(float(np.linalg.norm(left)), rel=1e-6)
        assert caught.value.residual > 1e-2


def test_where_no_velocity_goes_on_the_way_out_is_to_rest() -> None:
    """A triangle of bars that is stretched flat: it is rigid, whatever first order says."""
    bars = next(
        (a, b, d)
        for a, b, d in np.random.default_rng(0).uniform(0.2, 1, (100, 3)) * [1, 1, -1]
        if discriminant((a, b, d)) < 0
    )
    machine = flat(bars)
    with pytest.raises(pl.InconsistentVelocity, match="start at rest or from another pose") as no:
        pl.simulate(machine, machine.neutral, rates(bars, 1.0, 0.3), until=0.1)
    assert not no.value.v.any()


def test_where_prescribed_motions_leave_no_choice_there_is_no_other_velocity() -> None:
    bars = (0.6, 0.5, 0.4)
    machine = flat(bars)
    rows = [
        pl.constraints.Prescribed("left", lambda t: (t, 1.0, 0.0)),
        pl.constraints.Prescribed("right", lambda t: (0.3 * t, 0.3, 0.0)),
    ]
    with pytest.raises(pl.InconsistentVelocity, match=r"first order only.*at rest") as caught:
        pl.simulate(machine, machine.neutral, rates(bars, 1.0, 0.3), until=0.1, rows=rows)
    assert not caught.value.v.any()


@pytest.mark.parametrize("name", [*SHIPPED, *SMALL])
def test_no_robot_is_refused_in_a_regular_pose(name: str) -> None:
    """Rows that others contain are no obstacle, slow or fast, regularized or not."""
    for machine in (robot(name), regularized(name)) if robot(name).loops else (robot(name),):
        equations = pl.EquationsOfMotion(machine)
        for seed in (1, 2):
            q = assembled(machine, seed)
            free = allowed(equations.terms(0.0, q, np.zeros(machine.nv))[0])
            v = free @ np.random.default_rng(seed).normal(size=free.shape[1])
            for speed in (1e-2, 1e2):
                assert obstacle(equations, 0.0, q, speed * v) is None


def test_a_spherical_linkage_against_the_gap_that_a_velocity_leaves() -> None:
    """The best second-order motion closes the loop up to ``h^2 / 2`` times the residual."""
    machine = tables.build(m.spherical_four_bar(flat=True))
    equations = pl.EquationsOfMotion(machine)
    free = allowed(equations.terms(0.0, machine.neutral, np.zeros(3))[0])
    v = free @ np.array([0.7, -0.4])
    found = obstacle(equations, 0.0, machine.neutral, v)
    assert found is not None
    h = 1e-3
    rows = equations.rows

    def gap(a: Array) -> Array:
        q = machine.integrate(machine.neutral, h * v + h * h / 2 * a)
        return np.asarray(rows.scale * equations.residual(0.0, q) / (h * h / 2))

    slope = np.column_stack([(gap(e) - gap(-e)) / 2 for e in np.eye(3)])
    best = gap(np.asarray(-np.linalg.lstsq(slope, gap(np.zeros(3)), rcond=1e-2)[0], float))
    assert np.linalg.norm(best) == pytest.approx(found.residual, rel=1e-2)


def test_what_is_in_drift_is_not_taken_for_an_obstacle() -> None:
    """Redundant rows off the manifold miss each other, but are not dependent there either."""
    machine = robot("bennett")
    equations = pl.EquationsOfMotion(machine)
    q = assembled(machine, 3)
    v = allowed(equations.terms(0.0, q, np.zeros(machine.nv))[0])[:, 0]
    off = np.random.default_rng(3).normal(size=machine.nv)
    for size in (1e-12, 1e-10, 1e-8, 1e-6):
        assert obstacle(equations, 0.0, machine.integrate(q, size * off), v + size * off) is None


def test_accelerations_that_contradict_each_other_are_refused() -> None:
    """Crank and rocker are tied: both motions begin at rest, but only one is to speed up."""
    machine = robot("four-bar")
    rows = [
        pl.constraints.Prescribed("crank", lambda t: (t * t, 2 * t, 2.0)),
        pl.constraints.Prescribed("rocker", lambda t: (0.0, 0.0, 0.0)),
    ]
    with pytest.raises(pl.InconsistentVelocity, match=r"contradict each other.*take one out"):
        pl.simulate(machine, machine.neutral, until=1.0, rows=rows)


@pytest.mark.parametrize("distance", [1e-8, 4e-8])
def test_no_speed_is_taken_silently_beside_a_singular_pose(distance: float) -> None:
    """A velocity of the other branch, so near the crossing that its residual is tolerated."""
    bars = (0.6, 0.5, 0.4)
    machine = flat(bars)
    first, second = (float(rate) for rate in tangents(bars))
    beside = pl.assemble(
        machine, distance * rates(bars, 1.0, first), fixed={"left": distance}, limits=False
    )
    v = rates(bars, 1.0, second)
    assert np.abs(pl.Constraints(machine).jacobian(beside) @ v).max() < 1e-6
    with pytest.raises(pl.InconsistentVelocity, match=r"beside a singular pose.*% of the speed"):
        pl.simulate(machine, beside, v, until=0.1)
