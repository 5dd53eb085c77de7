"""Which coordinates depend on the others: optimal coordinate partitioning (paper 1, 5.3.2).

Matrices in, indices out; knows no robot.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..boundary.arguments import public
from ..linalg.dense import lapack
from ..linalg.saddle import Saddle
from ..tolerances import LAST_BITS, RANK

__all__ = ["dependent_coordinates", "relative_projections"]

Array = NDArray[np.float64]


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
    saddle = Saddle(M, J)
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
    saddle = Saddle(M, J, tolerance=tolerance, max_rank=max_rank)
    if saddle.rank == 0:
        return np.zeros(0, dtype=np.intp), np.zeros(0)
    size = np.sqrt(np.diagonal(saddle.mass))
    factor, order, rank, _ = lapack().dpstrf(
        saddle.constraint_metric() / np.outer(size, size), tol=LAST_BITS, lower=1
    )
    rank = min(int(rank), saddle.rank)
    return order[:rank].astype(np.intp) - 1, np.diagonal(factor)[:rank] ** 2
