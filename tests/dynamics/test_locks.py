"""Tests of locked coordinates in the equations of motion: they are not there, and cost nothing.

Oracle: the dense system of all loops and unit rows of the locked coordinates, solved by NumPy.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from benchmarks.counts import calls

import pinloop as pl
from pinloop.dynamics import Formulation

from .. import motion_by_hand as hand
from .. import switching as s
from ..screw_tables import Array
from ..states import SHIPPED, SMALL, assembled, close, dense, regularized, robot
from .odca_equations import push

FORMULATIONS: tuple[Formulation | None, ...] = (
    None, pl.Augmented(), pl.Projected(), pl.Voronets(), pl.ODCA(), pl.ODCA(1)
)  # fmt: skip
every_robot = pytest.mark.parametrize("name", [*SHIPPED, *SMALL])


def dense_motion(machine: pl.Mechanism, mode: pl.Mode, q: Array, v: Array) -> tuple[Array, Array]:
    """Acceleration under the forces of `push`, and all that rows of loops and locks exert."""
    J, scale = s.mode_rows(machine, mode, q)
    loops = pl.Constraints(machine, full=True)
    gamma = np.zeros(len(J))
    gamma[: len(loops)] = loops.gamma(q, v)
    data = machine.model.createData()
    f = pl.EquationsOfMotion(machine, forces=[push(machine)]).force(0.2, q, v)
    f = f - pin.rnea(machine.model, data, q, v, np.zeros(machine.nv))
    a, lam = dense(hand.mass_matrix(machine, q), J, f, -gamma, scale)
    return a, J.T @ lam


@every_robot
@pytest.mark.parametrize("reduced", [False, True], ids=["all rows", "regularized"])
def test_every_formulation_leaves_locked_coordinates_out(name: str, reduced: bool) -> None:
    machine, rng = regularized(name) if reduced else robot(name), np.random.default_rng(21)
    for seed in (3, 4):
        q, mode = assembled(machine, seed, walk=1), s.any_mode(machine, rng)
        v, columns = s.moving_in(machine, q, mode, seed), s.locked_columns(machine, mode)
        a, force = dense_motion(machine, mode, q, v)
        for formulation in FORMULATIONS:
            equations = pl.EquationsOfMotion(
                machine, locks=mode.locks, forces=[push(machine)], formulation=formulation
            )
            motion = equations.motion(0.2, q, v)
            for found in (motion.a, equations.acceleration(0.2, q, v)):
                close(found, a, 1e-9)
                assert not found[columns].any()
            close(motion.constraint_force, force, 1e-9)
            J = equations.terms(0.2, q, v)[0]
            close(J.T @ motion.multipliers, force, 1e-9)


@pytest.mark.parametrize("formulation", FORMULATIONS[:4])
@pytest.mark.parametrize("name", ["planar_3r", "delta", "fivebar", "rssr", "palletizer"])
def test_a_lock_costs_no_python(name: str, formulation: Formulation | None) -> None:
    machine = regularized(name)
    q, joint = assembled(machine, 1, walk=1), machine.joints[0]
    v = s.moving_in(machine, q, pl.Mode(joint), 2)
    free, held = (
        pl.EquationsOfMotion(machine, locks=locks, formulation=formulation)
        for locks in ((), (joint,))
    )
    assert held.around(0.0, q).solver == held.solver == free.solver
    if formulation is None:
        assert free.solver in ("aba", "constraintDynamics")
    sides = [equations.right_hand_side() for equations in (free, held)]
    counts = [calls(lambda side=side: side(0.0, q, v)) for side in sides]  # type: ignore[misc]
    # Of matrices the rows of the free coordinates are taken out.
    assert counts[1] <= counts[0] + (formulation is not None)


def test_locks_are_named_or_given_with_their_axes() -> None:
    pendulum = robot("double-pendulum")
    lock = pl.simulation.Locked("lower", ("wy",))
    equations = pl.EquationsOfMotion(pendulum, locks=["upper", lock])
    assert equations.rows.labels[-4:] == (
        "lock:upper.wx", "lock:upper.wy", "lock:upper.wz", "lock:lower.wy"
    )  # fmt: skip
    assert equations.rank == 4
    for bad in (3, "low", pl.simulation.Locked("lower", ("vx",))):
        with pytest.raises((pl.BadValue, pl.UnknownName)):
            pl.EquationsOfMotion(pendulum, locks=[bad])  # type: ignore[list-item]
    with pytest.raises(pl.BadValue, match="locks"):
        pl.EquationsOfMotion(pendulum, locks="lower")


def test_rows_that_gain_rank_off_the_manifold_do_not_kick_a_robot_with_a_lock() -> None:
    """Rows that depend on each other where loops are closed, a little open as inside a step."""
    machine, rng = robot("universal-delta"), np.random.default_rng(5)
    mode = pl.Mode(machine.joints[-1])
    q = assembled(machine, 2, walk=1)
    v = s.moving_in(machine, q, mode, 4)
    open_by = machine.integrate(q, 1e-6 * rng.normal(size=machine.nv))
    for formulation in FORMULATIONS:
        equations = pl.EquationsOfMotion(machine, locks=mode.locks, formulation=formulation)
        a, other = (equations.acceleration(0.0, place, v) for place in (q, open_by))
        close(other, a, 1e-3)
