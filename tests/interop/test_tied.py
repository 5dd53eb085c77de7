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
from pinloop.dynamics.pinocchio_solver import HeldRows, TiedLoops

from .. import screw_tables as tables
from ..screw_tables import Array
from ..states import SHIPPED, SMALL, assembled, close, dense, moving, rank, regularized, robot

LOOPED = [name for name in (*SHIPPED, *SMALL) if robot(name).loops]
TIED = ["fourbar", "sevenbar", "palletizer", "delta", "stewart", "prrr3", "bricard", "four-bar",
        "five-bar", "slider-crank", "rssr", "bennett", "sarrus", "goldberg"]  # fmt: skip
NOT_TIED = {
    "gear-pair": "couplings are no loops",
    "screw-jack": "a screw restricts combinations of rows",
    "tip-on-plane": "a point on a plane of the other body is no frame with rows let go",
    "rod-pendulums": "a distance is no frame with rows let go",
}


def in_use(equations: pl.EquationsOfMotion) -> bool:
    return equations._tied is not None


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
    equations = pl.EquationsOfMotion(machine)
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

    monkeypatch.setattr(TiedLoops, "of", refuse)
    machine = robot("four-bar")
    q, v = moving(machine, 1)
    for formulation in (pl.Augmented(), pl.Projected(), pl.Voronets(), pl.ODCA()):
        pl.EquationsOfMotion(machine, formulation=formulation).acceleration(0.0, q, v)
    with pytest.raises(AssertionError):
        pl.EquationsOfMotion(machine).acceleration(0.0, q, v)


def test_a_solver_that_leaves_something_out_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = tables.build(SMALL["four-bar"]())  # what was tried once is known
    right = TiedLoops.acceleration
    monkeypatch.setattr(
        TiedLoops,
        "acceleration",
        lambda self, space, held, q, v, tau: right(self, space, held, q, (1 + 1e-7) * v, tau),
    )
    q, v = moving(machine, 1)
    equations = pl.EquationsOfMotion(machine)
    close(equations.acceleration(0.0, q, v), oracle(machine, q, v, 0 * v), 1e-11)
    assert not in_use(equations)


def test_it_is_decided_at_a_state_where_loops_are_closed() -> None:
    machine = robot("four-bar")
    q, v = moving(machine, 1)
    equations = pl.EquationsOfMotion(machine)
    equations.acceleration(0.0, q + 0.01, v)
    assert not in_use(equations)
    equations.acceleration(0.0, q, v)
    assert in_use(equations)


@pytest.mark.parametrize("name", ["goldberg", "bricard", "sarrus", "palletizer"])
def test_rows_are_chosen_again_where_they_get_bad(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a limit that every choice soon exceeds, no acceleration is another one."""
    from pinloop.dynamics import pinocchio_solver as tied

    count = 0
    choose = TiedLoops.choose

    def counted(self: TiedLoops, q: Array, data: pin.Data) -> HeldRows | None:
        nonlocal count
        count += 1
        return choose(self, q, data)

    machine = regularized(name)
    equations = pl.EquationsOfMotion(machine)
    equations.acceleration(0.0, *moving(robot(name), 9))
    monkeypatch.setattr(TiedLoops, "choose", counted)
    monkeypatch.setattr(tied, "_BAD", 0.9)
    assert equations._tied is not None
    data = machine.model.createData()
    equations._tied.home = equations._tied.choose(assembled(robot(name), 9), data)
    along = equations.right_hand_side()
    for seed in range(8):
        q, v = moving(robot(name), seed, speed=3.0)
        close(along(0.0, q, v), oracle(machine, q, v, 0 * v), 1e-8)
    assert in_use(equations) and count > 2


def test_where_bars_lie_in_line_the_matrices_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = robot("parallelogram")
    equations = pl.EquationsOfMotion(machine)
    q, v = moving(machine, 1)
    equations.acceleration(0.0, q, v)
    assert equations._tied is not None
    rows = pl.Constraints(machine)
    turn = 1.1 * np.array([1.0, -1.0, 1.0])  # the cranks start at 1.1 rad against the ground
    flat = next(q for q in (turn, -turn) if rank(rows.jacobian(q)) < 2)
    assert equations._tied.choose(flat, machine.model.createData()) is None
    exact = pl.EquationsOfMotion(machine, formulation=pl.Augmented())
    along, rest = equations.right_hand_side(), np.zeros(machine.nv)
    used: list[bool] = []
    by_ties = TiedLoops.acceleration

    def seen(self: TiedLoops, *arguments: Any) -> Any:
        found = by_ties(self, *arguments)
        used.append(found[0] is not None)
        return found

    monkeypatch.setattr(TiedLoops, "acceleration", seen)
    # At the flat pose the matrices decide, and back at a good one it is used again.
    for at, speed, there in ((q, v, True), (flat, rest, False), (q, v, True)):
        close(along(0.0, at, speed), exact.acceleration(0.0, at, speed), 1e-9)
        assert used[-1] is there


def test_equations_with_it_can_be_pickled() -> None:
    machine = robot("four-bar")
    run = pl.simulate(machine, *moving(machine, 1), until=0.1)
    again = pickle.loads(pickle.dumps(run))
    q, v = assembled(machine, 3), np.zeros(machine.nv)
    ours, its = (one.system.equations(one.modes[0]) for one in (run, again))
    assert in_use(ours) and in_use(its)
    np.testing.assert_allclose(its.acceleration(0.0, q, v), ours.acceleration(0.0, q, v))
