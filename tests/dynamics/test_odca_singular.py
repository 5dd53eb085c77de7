"""O-DCA where rows are nearly dependent: the same accelerations as a dense solution.

Oracle: the accelerations nearest to the free ones in the kinetic metric, by the singular values of
all rows at once in NumPy, as many as there are rows in general. How well they are determined falls
with the least singular value; so the tolerance is rounding over that.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import pinloop as pl

from .. import linkages as ll
from .. import mechanisms as m
from .. import screw_tables as tables
from ..screw_tables import Array, Table
from ..states import close, rank
from .odca_equations import every_block, odca

LEAN = 1.1
"""Angle of the cranks of the parallelograms in their reference configuration."""
FLAT: dict[str, Callable[[], Table]] = {
    "parallelogram": m.parallelogram,
    "three cranks": ll.triple_parallelogram,
    "spherical": lambda: m.spherical_four_bar(flat=True),
}
"""Mechanisms with a flat pose."""


def beside(machine: pl.Mechanism, name: str, distance: float) -> tuple[Array, Array]:
    """A state in motion with the crank at some distance from the flat pose."""
    if name == "spherical":
        q = pl.assemble(machine, {"crank": distance})
        v = np.linalg.svd(pl.Constraints(machine).jacobian(q))[2][-1]
        return q, 2.0 * v / np.abs(v).max()
    # The coupler does not turn, and on it the cranks turn back.
    back = "top" if name == "parallelogram" else "none"
    turn = np.array([-1.0 if joint == back else 1.0 for joint in machine.joints])
    q = (distance - LEAN) * turn
    assert np.abs(pl.Constraints(machine).residual(q)).max() < 1e-15
    return q, 2.0 * turn


def dense(equations: pl.EquationsOfMotion, q: Array, v: Array, rows: int) -> tuple[Array, float]:
    """Acceleration, and the least singular value over the largest."""
    M, f, J, gamma, _ = equations.system(0.0, q, v)
    L = np.linalg.cholesky(M)
    scale = equations.rows.scale
    U, values, V = np.linalg.svd(np.linalg.solve(L, (scale[:, None] * J).T), full_matrices=False)
    U, values, V = U[:, :rows], values[:rows], V[:rows]
    free = np.linalg.solve(L, f)
    free += U @ ((V @ (-scale * gamma)) / values - U.T @ free)
    return np.linalg.solve(L.T, free), float(values[-1] / values[0])


@pytest.mark.parametrize("name", FLAT)
@pytest.mark.parametrize("reduced", [False, True])
@every_block
def test_rows_count_as_long_as_they_are_more_than_rounding(
    name: str, reduced: bool, block: int
) -> None:
    machine = tables.build(FLAT[name]())
    machine = pl.regularize(machine) if reduced else machine
    equations = odca(machine, block=block)
    regular = beside(machine, name, 0.4)
    equations.acceleration(0.0, *regular)  # where the number of independent rows gets known
    rows = rank(equations.terms(0.0, *regular)[0])
    least = []
    for distance in 10.0 ** -np.arange(1, 8):
        q, v = beside(machine, name, float(distance))
        expected, value = dense(equations, q, v, rows)
        close(equations.acceleration(0.0, q, v), expected, 1e-13 / value)
        least.append(value)
    assert 1e-9 < min(least) < 1e-7


@every_block
def test_parallel_cranks_pass_the_flat_pose(block: int) -> None:
    machine = tables.build(m.parallelogram())
    q, v = beside(machine, "parallelogram", 0.3)
    v = -3.0 * v / v[machine.coordinates("left").v]
    run = pl.simulate(machine, q, v, until=0.3, formulation=pl.ODCA(block), losses=False)
    left = run.q[:, machine.coordinates("left").q.start] + LEAN
    assert left[0] > 0.2 and left[-1] < -0.2
    balance = run.energy()
    assert np.abs(balance.error).max() < 1e-6 * float(balance.kinetic.max())


def test_a_run_by_odca_tells_where_a_mechanism_branches() -> None:
    """The rank of the rows is known to whoever watches for branches, whatever the formulation."""
    machine = tables.build(m.spherical_four_bar(flat=True))
    equations = odca(machine)
    q, _ = beside(machine, "spherical", 0.3)
    assert equations.rank == rank(equations.terms(0.0, q, q)[0])
    # Of an open configuration it cannot be said which rows depend on each other on the manifold.
    opened = machine.integrate(q, np.full(machine.nv, 1e-3))
    assert equations.around(0.0, opened).rank is None
