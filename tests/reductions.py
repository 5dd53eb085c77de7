"""How a reduction of loop rows is judged: by ranks and kernels where the loops are closed.

No test lives here. Singular values are NumPy's; what is compared are the full and the reduced rows
of one robot, both without unit.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import pinloop as pl
from pinloop.assembly.continuation import nearby_assembly
from pinloop.assembly.search import Problem

from .screw_tables import Array

SMALL = 1e-8
"""Singular values of a Jacobian without unit below this are zero."""


def jacobians(robot: pl.Mechanism, q: Array) -> tuple[Array, Array]:
    """All rows and the reduced rows of a regularized robot, without unit."""
    full, reduced = (Problem.closure(robot, full=full).jacobian(q) for full in (True, False))
    return full, reduced


def rank(jacobian: Array) -> int:
    """Number of singular values that are not zero."""
    return 0 if jacobian.size == 0 else int(np.linalg.matrix_rank(jacobian, tol=SMALL))


def lost(robot: pl.Mechanism, q: Array) -> float:
    """How much motion that the reduced rows allow the full ones forbid, 0 if nothing is lost."""
    full, reduced = jacobians(robot, q)
    _, values, directions = np.linalg.svd(np.vstack([reduced, np.zeros((1, robot.nv))]))
    allowed = directions[int(np.sum(values > SMALL)) :]
    return float(np.abs(full @ allowed.T).max(initial=0.0))


def configurations(
    robot: pl.Mechanism, rng: np.random.Generator, walk: int, restarts: int
) -> Iterator[Array]:
    """The reference, others on its branch, and others from random guesses; all assembled."""
    q = pl.assemble(robot, limits=False)
    yield q
    for _ in range(walk):
        step = nearby_assembly(robot, q, rng)
        if step is not None:
            q = step
            yield q
    for _ in range(restarts):
        spread = np.where(robot.is_translation, 0.5 * robot.length, 2.0)
        guess = robot.integrate(robot.neutral, rng.uniform(-1, 1, robot.nv) * spread)
        try:
            yield pl.assemble(robot, guess, limits=False, seed=int(rng.integers(1000)))
        except pl.LoopNotClosed:
            continue
