"""Redundancy that no motion group explains, found from Jacobians on one assembly branch.

What is found here is not proven: it holds where it was sampled, is checked at fresh
configurations, and has to be watched by the closure residual of the full rows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .closing import nearby_assembly, numerical_rank, scaled_jacobian
from .constraints import Constraints
from .mechanism import Mechanism
from .reduction import Regularization

__all__ = ["drop_sampled"]

Array = NDArray[np.float64]

_CHECKED = 1e-9
"""Closure residual [m, rad] up to which a configuration closed without a row keeps that row."""


def drop_sampled(robot: Mechanism, q: Array, samples: int, seed: int) -> Mechanism:
    """Drop the rows of a regularized robot that are constant combinations of the others.

    A constant left null vector of all sampled Jacobians says that some row follows from the rest;
    pivoting picks the rows that go. Nothing is dropped if the check at fresh configurations fails.

    Args:
        robot: a regularized mechanism.
        q: an assembled configuration, shape (nq,).
        samples: number of configurations to sample, and of fresh ones to check.
        seed: seed of the random motions.
    """
    from scipy.linalg import qr  # not needed to load a robot, and slow to import

    report = robot.regularization
    assert report is not None
    rng = np.random.default_rng(seed)
    rows = Constraints(robot)
    visited = _walk(robot, q, samples, rng)
    stacked = np.hstack([scaled_jacobian(robot, rows, place) for place in (q, *visited)])
    follows = _left_null(stacked)
    # Without configurations to move to, everything looks constant.
    if len(visited) < samples or follows.shape[1] == 0:
        return replace(robot, regularization=replace(report, sampled_rows=0, residual=0.0))
    _, _, pivots = qr(follows.T, mode="economic", pivoting=True)
    gone = {rows.labels[k] for k in pivots[: follows.shape[1]]}
    smaller = replace(robot, regularization=_without(robot, report, rows, gone))
    residual = _check(smaller, visited[-1], samples, rng)
    if residual > _CHECKED:
        return replace(robot, regularization=replace(report, sampled_rows=0, residual=residual))
    found = smaller.regularization
    assert found is not None
    return replace(robot, regularization=replace(found, residual=residual))


def _walk(
    robot: Mechanism, q: Array, steps: int, rng: np.random.Generator, *, full: bool = True
) -> list[Array]:
    """Configurations reached from ``q`` by random motions on its branch."""
    found: list[Array] = []
    for _ in range(steps):
        moved = nearby_assembly(robot, q, rng, full=full)
        if moved is None:
            break
        q = moved
        found.append(q)
    return found


def _left_null(stacked: Array) -> Array:
    """Orthonormal columns ``y`` with ``y' J = 0`` for every sampled Jacobian."""
    if stacked.size == 0:
        return np.zeros((len(stacked), 0))
    directions, values, _ = np.linalg.svd(stacked, full_matrices=True)
    return np.asarray(directions[:, numerical_rank(values) :])


def _without(
    robot: Mechanism, report: Regularization, rows: Constraints, gone: set[str]
) -> Regularization:
    """The report without the rows of the given labels."""
    loops = []
    for loop in report.loops:
        labels = rows.labels[rows.rows_of[loop.loop]]
        kept = [k for k, label in enumerate(labels) if label not in gone]
        loops.append(replace(loop, selection=loop.selection[kept]))
    couplings = tuple(name for name in report.couplings if name not in gone)
    left = report.rows - len(gone)
    return replace(
        report,
        loops=tuple(loops),
        couplings=couplings,
        rows=left,
        mobility=robot.nv - left,
        sampled_rows=len(gone),
    )


def _check(robot: Mechanism, q: Array, samples: int, rng: np.random.Generator) -> float:
    """Largest residual of the full rows where only the reduced ones were closed."""
    full = Constraints(robot, full=True)
    fresh = _walk(robot, q, samples, rng, full=False)
    return max((float(np.linalg.norm(full.residual(place))) for place in fresh), default=np.inf)
