"""How many rows are independent, which coordinates depend on the others, and where that ends.

Optimal coordinate partitioning (paper 1, 5.3.2); ranks of rows in general, which they need not have
where one looks; masses that vanish, and states that are not finite.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..assembly.continuation import nearby_assembly
from ..boundary.arguments import public
from ..boundary.marks import Array
from ..errors import BadValue, NotFinite
from ..linalg.dense import lapack
from ..linalg.saddle import Saddle
from ..model.mechanism import Mechanism
from ..model.workspace import remembered
from ..tolerances import LAST_BITS, RANK, THIN_BODY

INFINITE = 1e100
"""Coordinate or velocity that no robot has, of which products overflow."""

_MAY_BE_SINGULAR = ("JointModelComposite", "JointModelSphericalZYX")
"""Joints at which a mass matrix can become singular."""
_NEARBY = 4
"""Configurations beside an assembled one at which ranks are taken."""


@public
def relative_projections(M: Array, J: Array) -> Array:
    """Relative projection of each coordinate direction on the constraint space (paper 1, eq. 67).

    ``P_ii / M_ii`` with ``P = J' (J M^-1 J')^+ J``: 1 for a direction that the rows fix altogether,
    0 for one that they leave free; one minus it is the projection on the tangent space (eq. 68).

    Args:
        M: mass matrix, shape (n, n).
        J: rows, shape (m, n).

    Returns:
        Shape (n,), in [0, 1].
    """
    saddle = Saddle(*_matrices(M, J))
    return np.asarray(np.diagonal(saddle.constraint_metric()) / np.diagonal(saddle.mass))


@public
def dependent_coordinates(
    M: Array, J: Array, tolerance: float = RANK, max_rank: int | None = None
) -> tuple[NDArray[np.intp], Array]:
    """Coordinates that are best expressed by the others: as many as there are independent rows.

    The largest relative projections one by one may give a singular set; so the largest *remaining*
    one is taken, after the directions already chosen have been taken out (pivoted Cholesky of the
    scaled ``P``).

    Args:
        M: mass matrix, shape (n, n).
        J: rows, shape (m, n).
        tolerance: fraction of the largest singular value below which rows count as dependent.
        max_rank: number of rows that can be independent at all, if that is known to be less.

    Returns:
        Indices of the dependent coordinates, shape (rank,), best first, and what was left of the
        projection of each when it was chosen.
    """
    saddle = Saddle(*_matrices(M, J), tolerance=tolerance, max_rank=max_rank)
    if saddle.rank == 0:
        return np.zeros(0, dtype=np.intp), np.zeros(0)
    size = np.sqrt(np.diagonal(saddle.mass))
    factor, order, rank, _ = lapack().dpstrf(
        saddle.constraint_metric() / np.outer(size, size), tol=LAST_BITS, lower=1
    )
    rank = min(int(rank), saddle.rank)
    return order[:rank].astype(np.intp) - 1, np.diagonal(factor)[:rank] ** 2


def _matrices(M: Array, J: Array) -> tuple[Array, Array]:
    """Both, if their shapes fit."""
    if M.ndim != 2 or J.ndim != 2 or not len(M) == M.shape[1] == J.shape[1]:
        raise BadValue(f"M has shape {M.shape} and J {J.shape}; they need (n, n) and (m, n)")
    return np.asarray(M, dtype=float), np.asarray(J, dtype=float)


def general_rank(
    robot: Mechanism,
    q: Array,
    J: Array,
    scale: Array,
    mass: Callable[[Array], Array],
    jacobian: Callable[[Array], Array],
) -> int:
    """Number of rows that are independent in general, though they may not be where one looks.

    ``scale`` takes the unit of each of the rows ``J`` at the assembled configuration ``q`` away;
    ``mass`` and ``jacobian`` give the mass matrix and the rows at another one.
    """
    rank = Saddle(mass(q), J, scale).rank
    if rank == len(J):
        return rank
    rng = np.random.default_rng(0)
    for _ in range(_NEARBY):
        near = nearby_assembly(robot, q, rng, reach=0.05)
        if near is not None:
            rank = max(rank, Saddle(mass(near), jacobian(near), scale).rank)
    return rank


@remembered
def has_regular_mass(robot: Mechanism) -> bool:
    """Whether the mass matrix is positive definite everywhere, because every body is.

    If it is not sure, the matrix itself has to be factorised, which finds out.
    """
    if any(joint.shortname() in _MAY_BE_SINGULAR for joint in robot.model.joints):
        return False
    bodies = list(robot.model.inertias)[1:]
    least = [np.linalg.eigvalsh(body.inertia)[[0, -1]] for body in bodies]
    return all(body.mass > 0.0 for body in bodies) and all(
        low > THIN_BODY * high for low, high in least
    )


def explained(error: Exception, t: float, q: Array, v: Array) -> Exception:
    """What is wrong: of a state that became infinite everything else is a consequence."""
    size = float(max(np.abs(q).max(initial=0.0), np.abs(v).max(initial=0.0)))
    if size < INFINITE:  # not if it is NaN
        return error
    return infinite_state(t)


def infinite_state(t: float) -> NotFinite:
    """The error of a state that is not finite."""
    return NotFinite(f"the state became infinite at t = {t:.6g} s, or no number")
