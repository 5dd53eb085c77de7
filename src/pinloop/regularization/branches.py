"""On which assembly branch a configuration is: signs that change only through a singularity.

The joints without drives follow from those with drives through the loops. Where that system is
square, the sign of its determinant is the same all along a branch: only a singularity leads from a
configuration to one with another sign.
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from ..constraints.closure import Constraints
from ..model.mechanism import Mechanism
from ..tolerances import Regularity
from .regularize import regularize

__all__ = ["branch_signs"]

Array = NDArray[np.float64]


def branch_signs(robot: Mechanism, q: ArrayLike) -> dict[str, int] | None:
    """Signs of an assembled configuration: 1, -1, or 0 at a singularity.

    One sign per group of loops that can only be closed together, so that one group that flips is
    seen whatever the others do.

    Args:
        robot: the mechanism.
        q: an assembled configuration, shape (nq,).

    Returns:
        Per group, named by its loops and couplings, its sign; empty without loops; None where the
        rows are not as many as the coordinates without drives, so that there is no determinant.
    """
    # Slow to import.

    q = robot.checked_configuration(q)
    reduced = robot if robot.regularization is not None else regularize(robot)
    rows = Constraints(reduced)
    driven = np.zeros(robot.nv, dtype=bool)
    for joint in robot.actuated:
        if joint in robot.joints:
            driven[robot.coordinates(joint).v] = True
    passive = np.flatnonzero(~driven)
    if len(rows) == 0:
        return {}
    if len(rows) != len(passive):
        return None
    weights = np.where(rows.robot.is_translation, 1.0, robot.length)
    J = (rows.jacobian(q) * weights)[:, passive]
    pattern = _pattern(reduced, rows)[:, passive]
    matched = scipy.sparse.csgraph.maximum_bipartite_matching(
        scipy.sparse.csr_array(pattern), perm_type="column"
    )
    if np.any(matched < 0):
        return None
    owner = np.empty(len(rows), dtype=object)
    for name, part in rows.rows_of.items():
        owner[part] = name
    # Rows whose unknowns need each other belong together (Dulmage, Mendelsohn).
    _, group = scipy.sparse.csgraph.connected_components(
        pattern[:, matched].astype(np.int8), connection="strong"
    )
    signs: dict[str, int] = {}
    for number in dict.fromkeys(group):
        here = np.flatnonzero(group == number)
        names = "+".join(dict.fromkeys(owner[here]))
        block = J[np.ix_(here, np.sort(matched[here]))]
        signs[names] = signs.get(names, 1) * _sign(block)
    return signs


def _pattern(robot: Mechanism, rows: Constraints) -> NDArray[np.bool_]:
    """Which coordinates each row can depend on at all, whatever the configuration."""
    pattern = np.zeros((len(rows), robot.nv), dtype=bool)
    chains = {loop.name: (*loop.loop.chain_a, *loop.loop.chain_b) for loop in robot.loops}
    chains |= {coupling.name: coupling.joints for coupling in robot.couplings}
    for name, part in rows.rows_of.items():
        for joint in chains[name]:
            if joint in robot.joints:
                pattern[part, robot.coordinates(joint).v] = True
    return pattern


def _sign(block: Array) -> int:
    values = np.linalg.svd(block, compute_uv=False)
    if values[-1] <= Regularity.SINGULAR * values[0]:
        return 0
    return int(np.linalg.slogdet(block)[0])
