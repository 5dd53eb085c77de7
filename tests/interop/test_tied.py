"""Tests of `pinloop.dynamics.pinocchio_solver`: Pinocchio's solver gives what the rows ask for,
or is not used.

The oracle is one dense least-squares solution with the rows of all loops, redundant ones too.
"""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.dynamics import equations as equations_module
from pinloop.dynamics.pinocchio_solver import ConstraintDynamics, HeldRows

from .. import screw_tables as tables
from ..screw_tables import Array
from ..states import LOOPED, SMALL, assembled, close, dense, moving, rank, regularized, robot

TIED = ["fourbar", "sevenbar", "palletizer", "delta", "stewart", "prrr3", "bricard", "four-bar",
        "five-bar", "slider-crank", "rssr", "bennett", "sarrus", "goldberg"]  # fmt: skip
NOT_TIED = {
    "gear-pair": "couplings are no loops",
    "screw-jack": "a screw restricts combinations of rows",
    "tip-on-plane": "a point on a plane of the other body is no frame with rows let go",
    "rod-pendulums": "a distance is no frame with rows let go",
}


PINOCCHIO = pl.Automatic("python")
"""The kernel, which `test_kernel` is about, can do more."""


def in_use(equations: pl.EquationsOfMotion) -> bool:
    return equations.solver == "constraintDynamics"


def oracle(machine: pl.Mechanism, q: Array, v: Array, tau: Array) -> Array:
    equations = pl.EquationsOfMotion(machine, formulation=pl.Augmented())
    M, f, J, gamma, _ = equations.system(0.0, q, v)
    return dense(M, J, f + tau, -gamma, equations.rows.scale)[0]


def pushed(machine: pl.Mechanism, tau: Array) -> pl.EquationsOfMotion:
    return pl.EquationsOfMotion(machine, forces=[pl.TorqueFunction(lambda t, q, v: tau)])


@pytest.mark.parametrize("reduced", [True, False])
@pytest.mark.parametrize("name", LOOPED)
def test_accelerations_are_those_of_the_rows(name: str, reduced: bool) -> None:
    machine = regularized(name) if reduced else robot(name)
    tau = np.random.default_rng(4).normal(size=machine.nv)
    equations = pushed(machine, tau)
    for seed in (1, 2):
        q, v = moving(robot(name), seed)
        close(equations.acceleration(0.0, q, v), oracle(machine, q, v, tau), 1e-8)


@pytest.mark.parametrize("name", TIED)
def test_the_solver_is_in_use(name: str) -> None:
    machine = regularized(name)
    q, v = moving(machine, 1)
    equations = pl.EquationsOfMotion(machine)
    equations.acceleration(0.0, q, v)
    assert in_use(equations)


@pytest.mark.parametrize("name", NOT_TIED)
def test_what_it_cannot_express_is_for_the_matrices(name: str) -> None:
    machine = robot(name)
    q, v = moving(machine, 1)
    equations = pl.EquationsOfMotion(machine, formulation=PINOCCHIO)
    equations.acceleration(0.0, q, v)
    assert not in_use(equations)


def test_further_rows_are_for_the_matrices() -> None:
    machine = robot("four-bar")
    row = pl.constraints.Pfaffian("none", lambda q: np.zeros((1, machine.nv)))
    equations = pl.EquationsOfMotion(machine, rows=[row])
    equations.acceleration(0.0, *moving(machine, 1))
    assert not in_use(equations)


def test_a_formulation_that_is_asked_for_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(equations_module, "constraint_dynamics", refuse)
    machine = robot("four-bar")
    q, v = moving(machine, 1)
    for formulation in (pl.Augmented(), pl.Projected(), pl.Voronets(), pl.ODCA()):
        pl.EquationsOfMotion(machine, formulation=formulation).acceleration(0.0, q, v)
    with pytest.raises(AssertionError):
        pl.EquationsOfMotion(machine).acceleration(0.0, q, v)


def test_a_solver_that_leaves_something_out_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = tables.build(SMALL["four-bar"]())  # what was tried once is known
    right = ConstraintDynamics.acceleration
    monkeypatch.setattr(
        ConstraintDynamics,
        "acceleration",
        lambda self, space, held, q, v, tau: right(self, space, held, q, (1 + 1e-7) * v, tau),
    )
    q, v = moving(machine, 1)
    equations = pl.EquationsOfMotion(machine)
    close(equations.acceleration(0.0, q, v), oracle(machine, q, v, 0 * v), 1e-11)
    assert not in_use(equations)


def test_it_does_not_matter_what_was_asked_for_first() -> None:
    machine = robot("four-bar")
    q, v = moving(machine, 1)
    first, second = (pl.EquationsOfMotion(machine) for _ in range(2))
    opened = first.acceleration(0.0, q + 0.01, v)
    assert in_use(first)
    closed = second.acceleration(0.0, q, v)
    np.testing.assert_array_equal(first.acceleration(0.0, q, v), closed)
    np.testing.assert_array_equal(second.acceleration(0.0, q + 0.01, v), opened)


@pytest.mark.parametrize("name", ["goldberg", "bricard", "sarrus", "palletizer"])
def test_rows_are_chosen_again_where_they_get_bad(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a limit that every choice soon exceeds, no acceleration is another one."""
    from pinloop.dynamics import pinocchio_solver as tied

    count = 0
    choose = ConstraintDynamics.choose

    def counted(self: ConstraintDynamics, q: Array, data: pin.Data) -> HeldRows | None:
        nonlocal count
        count += 1
        return choose(self, q, data)

    machine = regularized(name)
    equations = pl.EquationsOfMotion(machine)
    equations.acceleration(0.0, *moving(robot(name), 9))
    monkeypatch.setattr(ConstraintDynamics, "choose", counted)
    monkeypatch.setattr(tied, "_BAD", 0.9)
    solver = equations._constraint_dynamics
    assert solver is not None
    home = solver.choose(assembled(robot(name), 9), machine.model.createData())
    monkeypatch.setattr(solver, "home", home)  # which the robot keeps
    along = equations.right_hand_side()
    for seed in range(8):
        q, v = moving(robot(name), seed, speed=3.0)
        for _ in range(2):  # by the rows of the state before, then by those of this one
            close(along(0.0, q, v), oracle(machine, q, v, 0 * v), 1e-8)
            along.advance(q)
    assert in_use(equations) and count > 2


def test_where_bars_lie_in_line_the_matrices_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = robot("parallelogram")
    equations = pl.EquationsOfMotion(machine)
    q, v = moving(machine, 1)
    equations.acceleration(0.0, q, v)
    solver = equations._constraint_dynamics
    assert solver is not None
    rows = pl.Constraints(machine)
    turn = 1.1 * np.array([1.0, -1.0, 1.0])  # the cranks start at 1.1 rad against the ground
    flat = next(q for q in (turn, -turn) if rank(rows.jacobian(q)) < 2)
    assert solver.choose(flat, machine.model.createData()) is None
    exact = pl.EquationsOfMotion(machine, formulation=pl.Augmented())
    along, rest = equations.right_hand_side(), np.zeros(machine.nv)
    used: list[bool] = []
    by_ties = ConstraintDynamics.acceleration

    def seen(self: ConstraintDynamics, *arguments: Any) -> Any:
        found = by_ties(self, *arguments)
        used.append(found[0] is not None)
        return found

    monkeypatch.setattr(ConstraintDynamics, "acceleration", seen)
    # At the flat pose the matrices decide, and back at a good one it is used again.
    for at, speed, there in ((q, v, True), (flat, rest, False), (q, v, True)):
        for _ in range(2):
            for side in (along, along.once):
                close(side(0.0, at, speed), exact.acceleration(0.0, at, speed), 1e-9)
            along.advance(at)
        assert used[-1] is there


def test_equations_with_it_can_be_pickled() -> None:
    machine = robot("four-bar")
    run = pl.simulate(machine, *moving(machine, 1), until=0.1)
    again = pickle.loads(pickle.dumps(run))
    q, v = assembled(machine, 3), np.zeros(machine.nv)
    ours, its = (one.system.equations(one.modes[0]) for one in (run, again))
    assert in_use(ours) and in_use(its)
    np.testing.assert_allclose(its.acceleration(0.0, q, v), ours.acceleration(0.0, q, v))
