"""Positions and velocities by O-DCA's first sweeps, and runs with all four.

Oracles: residuals, dense projections, energies, the augmented system.
"""

from __future__ import annotations

import numpy as np
import pytest

import pinloop as pl
from pinloop.constraints.rows import Row
from pinloop.simulation.modes import ModalSystem

from .. import mechanisms as m
from .. import motion_by_hand as hand
from .. import screw_tables as tables
from ..screw_tables import Array
from ..states import SHIPPED, SMALL, assembled, close, dense, moving, robot
from .odca_equations import every_block, odca

# -- positions and velocities ---------------------------------------------------------------


def off(machine: pl.Mechanism, seed: int, size: float = 1e-3) -> tuple[Array, Array]:
    """A state near the manifold, but not on it."""
    q, v = moving(machine, seed)
    rng = np.random.default_rng(seed)
    return machine.integrate(q, size * rng.normal(size=machine.nv)), v + size * rng.normal(
        size=machine.nv
    )


@pytest.mark.parametrize("name", [*SHIPPED, *SMALL])
def test_first_sweeps_close_the_loops(name: str) -> None:
    machine = robot(name)
    equations = odca(machine)
    # Ranks are known from an assembled state on, as in a run.
    equations.acceleration(0.0, *moving(machine, 1))
    q, v = equations.closed(0.0, *off(machine, 1))
    residual = equations.residual(0.0, q)
    close(residual, np.zeros(len(residual)), 1e-13)
    J, b, _ = equations.terms(0.0, q, v)
    close(J @ v, b, 1e-11)


@pytest.mark.parametrize(
    "name", ["five-bar", "rssr", "planar-3-RRR", "floating-four-bar", "gear-pair"]
)
@every_block
def test_velocity_sweep_is_the_projection_in_the_kinetic_metric(name: str, block: int) -> None:
    machine = robot(name)
    equations = odca(machine, block=block)
    q, _ = moving(machine, 2)
    equations.acceleration(0.0, q, np.zeros(machine.nv))
    wanted = np.random.default_rng(3).normal(size=machine.nv)
    _, v = equations.closed(0.0, q, wanted)
    J, b, _ = equations.terms(0.0, q, v)
    M = hand.mass_matrix(machine, q)
    nearest = wanted + dense(M, J, np.zeros(len(M)), b - J @ wanted)[0]
    assert np.abs(nearest - wanted).max() > 1e-3
    close(v, nearest, 1e-9)


@every_block
def test_first_sweeps_respect_locks_couplings_and_prescribed_motions(block: int) -> None:
    machine = robot("five-bar")
    row: Row = pl.constraints.Prescribed("m1", lambda t: (0.1 + 2 * t, 2.0, 0.0))
    equations = odca(machine, block=block, rows=[row])
    q = pl.assemble(machine, {"m1": 0.1})
    v = pl.consistent_velocity(machine, q, {"m1": 2.0, "m2": -1.0})
    equations.acceleration(0.0, q, v)
    q, v = equations.closed(0.01, q, v + 1e-3)
    assert q[machine.coordinates("m1").q] == pytest.approx(0.12, abs=1e-13)
    assert v[machine.coordinates("m1").v] == pytest.approx(2.0, abs=1e-12)
    close(equations.residual(0.01, q), np.zeros(len(equations.rows)), 1e-12)

    locked = ModalSystem(machine, formulation=pl.ODCA(block)).equations(pl.Mode(["m2"]))
    start = machine.integrate(assembled(machine, 4), np.full(machine.nv, 1e-3))
    q, v = locked.closed(0.0, start, np.ones(machine.nv))
    at = machine.coordinates("m2")
    assert q[at.q] == pytest.approx(start[at.q], abs=1e-12)
    assert v[at.v] == pytest.approx(0.0, abs=1e-12)
    close(pl.Constraints(machine).residual(q), np.zeros(len(pl.Constraints(machine))), 1e-13)


# -- runs -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["five-bar", "bennett", "floating-four-bar"])
def test_runs_keep_the_energy(name: str) -> None:
    machine = robot(name)
    q, v = moving(machine, 6)
    run = pl.simulate(machine, q, v, until=0.5, formulation=pl.ODCA(), losses=False)
    balance = run.energy()
    assert np.abs(balance.kinetic - balance.kinetic[0]).max() > 1e-2
    assert np.abs(balance.error).max() < 1e-6 * max(1.0, float(balance.kinetic.max()))


def test_run_with_a_lock_is_that_of_the_augmented_system() -> None:
    machine = robot("five-bar")
    q = assembled(machine, 2)
    v = pl.consistent_velocity(machine, q, {"m1": 1.0, "m2": -0.5})
    runs = [
        pl.simulate(machine, q, v, until=0.6, events=[pl.lock("m1", at=0.3)], formulation=one)
        for one in (pl.ODCA(), pl.Augmented())
    ]
    np.testing.assert_allclose(runs[0].q[-1], runs[1].q[-1], atol=1e-7)
    assert runs[0].v[-1][machine.coordinates("m1").v] == 0.0


@every_block
def test_paradoxical_linkage_does_not_kick_off_its_manifold(block: int) -> None:
    """Bennett's rows gain rank inside a step; the rank of the assembled linkage is kept."""
    machine = tables.build(m.bennett())
    q, v = moving(machine, 7)
    equations = odca(machine, block=block)
    calm = equations.acceleration(0.0, q, v)
    beside = machine.integrate(q, 1e-5 * np.random.default_rng(8).normal(size=machine.nv))
    a = equations.acceleration(0.0, beside, v)
    assert np.abs(a - calm).max() < 1e-2 * max(1.0, float(np.abs(calm).max()))
