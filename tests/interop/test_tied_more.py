"""Tests of `pinloop.dynamics.pinocchio_solver` at its limits: sizes of robots, few coordinates,
open loops.

The oracle are the matrices of all rows, which `test_formulations` compares with dense ones.
"""

from __future__ import annotations

from threading import Thread
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.constraints.rows import RowSet
from pinloop.dynamics import pinocchio_solver as tied
from pinloop.dynamics.pinocchio_solver import ConstraintDynamics, HeldRows
from pinloop.model.workspace import WorkSpace

from .. import random_linkages
from .. import screw_tables as tables
from ..mechanisms import X, Z
from ..screw_tables import Array, Table
from ..states import SMALL, allowed, assembled, moving, robot


def resized(table: Table, length: float, mass: float) -> pl.Mechanism:
    """The same robot with other units of length and mass."""
    for body in table["bodies"]:
        body["mass"] *= mass
        body["com"] = length * np.asarray(body["com"])
        body["inertia"] = mass * length**2 * np.asarray(body["inertia"])
    return tables.build(tables.scaled(table, length))


def compare(
    machine: pl.Mechanism, seed: int, tolerance: float, by: pl.Automatic | None = None
) -> pl.EquationsOfMotion:
    """Compare accelerations, twice, with those of the matrices; returns the former."""
    unit = np.where(machine.is_translation, machine.length, 1.0)
    exact = pl.EquationsOfMotion(machine, formulation=pl.Augmented())
    equations = pl.EquationsOfMotion(machine, formulation=by)
    q = assembled(machine, seed)
    J = exact.terms(0.0, q, np.zeros(machine.nv))[0]
    free = allowed(exact.rows.scale[:, None] * J * unit)
    v = unit * (free @ np.random.default_rng(seed).normal(size=free.shape[1]))
    expected = exact.acceleration(0.0, q, v) / unit
    for _ in range(2):
        found = equations.acceleration(0.0, q, v) / unit
        size = max(1.0, float(np.abs(expected).max()))
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * size)
    return equations


@pytest.mark.parametrize("mass", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("length", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("name", ["four-bar", "bennett", "hoberman-4"])
def test_the_size_of_a_robot_does_not_matter(name: str, length: float, mass: float) -> None:
    machine = resized(SMALL[name](), length, mass)
    for one in (machine, pl.regularize(machine), machine.absolute()):
        few = len(one.loops) <= 10
        solver = "constraintDynamics" if few else "Augmented"
        assert compare(one, 3, 1e-8, pl.Automatic("python")).solver == solver
        compare(one, 3, 1e-8)


@pytest.mark.parametrize("seed", range(12))
def test_random_robots_with_rotors(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = random_linkages.parallel_mechanism(seed) if seed % 2 else random_linkages.graph(seed)
    machine = tables.build(table)
    machine.model.armature = rng.uniform(0.0, 1.0, machine.nv)
    compare(machine, seed, 1e-8)


def test_rows_that_restrict_nothing_are_for_the_matrices() -> None:
    """Two hinges on one axis: one coordinate, and five rows that say nothing of it."""
    machine = tables.build(
        tables.table(
            "twin hinges",
            tables.joint("a", "revolute", "ground", "door", (0, 0, 0), X),
            tables.joint("b", "revolute", "ground", "door", (1, 0, 0), X, cut=True),
        )
    )
    equations = compare(machine, 1, 1e-12)
    assert equations.solver == "Augmented"
    assert abs(equations.acceleration(0.0, machine.neutral, np.zeros(1))[0]) > 1e-3


def test_the_only_coordinate_may_be_held() -> None:
    machine = tables.build(
        tables.table(
            "jammed",
            tables.joint("a", "revolute", "ground", "door", (0, 0, 0), X),
            tables.joint("b", "revolute", "ground", "door", (0, 0, 0), Z, cut=True),
        )
    )
    compare(machine, 1, 1e-12)
    made = tied._loop_models(machine)
    assert made is not None and made.places.tolist() == [0, 1, 2, 3, 4]
    solver = ConstraintDynamics(RowSet(machine), 1, engine="python")
    space = WorkSpace(machine.model)
    held = solver.choose(machine.neutral, space.data)
    assert held is not None
    found, _ = solver.acceleration(space, held, machine.neutral, np.zeros(1), np.ones(1))
    assert found is not None and abs(found[0]) < 1e-12


def test_what_is_not_finite_is_for_the_matrices() -> None:
    machine = robot("four-bar")
    equations = pl.EquationsOfMotion(machine)
    q, v = moving(machine, 1)
    equations.acceleration(0.0, q, v)
    good = equations.acceleration(0.0, q, v)
    solver = equations._constraint_dynamics
    assert solver is not None
    assert solver.choose(np.full(machine.nq, np.nan), machine.model.createData()) is None
    np.testing.assert_array_equal(equations.acceleration(0.0, q, v), good)


@pytest.mark.parametrize("method", [pl.MuntheKaas("rk4", step=1e-2), pl.MuntheKaas()])
@pytest.mark.parametrize("seed", [1, 2])
def test_rows_change_between_steps_and_not_inside(
    seed: int, method: pl.MuntheKaas, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inside a step another choice is another motion, and energy jumps by that."""
    machine = robot("bennett")
    open_by: list[float] = []
    choose = ConstraintDynamics.choose

    def seen(self: ConstraintDynamics, q: Array, data: pin.Data) -> HeldRows | None:
        open_by.append(float(np.abs(pl.Constraints(machine).residual(q)).max()))
        return choose(self, q, data)

    monkeypatch.setattr(ConstraintDynamics, "choose", seen)
    q, v = moving(machine, seed)
    errors = [
        np.abs(
            pl.simulate(machine, q, v, until=3.0, method=method, formulation=one).energy().error
        ).max()
        for one in (None, pl.Augmented())
    ]
    assert len(open_by) > 2 and max(open_by) < 1e-9
    assert errors[0] < 5 * errors[1]


def test_runs_in_threads_are_those_alone() -> None:
    machine = robot("bennett")
    q, v = moving(machine, 1)
    found: dict[int, Any] = {}

    def run(k: int) -> pl.Trajectory:
        return pl.simulate(machine, q, (1.0 + 0.1 * k) * v, until=0.3)

    threads = [Thread(target=lambda k=k: found.update({k: run(k)})) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(2):
        alone = run(k)
        for name in ("t", "q", "v", "a"):
            np.testing.assert_array_equal(getattr(found[k], name), getattr(alone, name))
