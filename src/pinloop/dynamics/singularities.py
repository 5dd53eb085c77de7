"""Where equations of motion degenerate: rows that depend on each other, masses, infinite states."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ..assembly.search import nearby_assembly
from ..errors import NotFinite
from ..linalg.saddle import Saddle
from ..model.mechanism import Mechanism
from ..tolerances import THIN_BODY

__all__ = ["INFINITE", "explained", "general_rank", "has_regular_mass", "infinite_state"]

Array = NDArray[np.float64]

INFINITE = 1e100
"""Coordinate or velocity that no robot has, of which products overflow."""

_MAY_BE_SINGULAR = ("JointModelComposite", "JointModelSphericalZYX")
"""Joints at which a mass matrix can become singular."""
_NEARBY = 4
"""Configurations beside an assembled one at which ranks are taken."""


def general_rank(
    robot: Mechanism,
    q: Array,
    J: Array,
    scale: Array,
    mass: Callable[[Array], Array],
    jacobian: Callable[[Array], Array],
) -> int:
    """Number of rows that are independent in general, though they may not be where one looks.

    Args:
        robot: the mechanism.
        q: an assembled configuration, which may be singular, shape (nq,).
        J: the rows there, shape (rows, nv).
        scale: factor of each row that takes its unit away, shape (rows,).
        mass: mass matrix at a configuration.
        jacobian: the rows at another configuration.
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


def has_regular_mass(model: pin.Model) -> bool:
    """Whether the mass matrix is positive definite everywhere, because every body is.

    If it is not sure, the matrix itself has to be factorised, which finds out.
    """
    if any(joint.shortname() in _MAY_BE_SINGULAR for joint in model.joints):
        return False
    bodies = list(model.inertias)[1:]
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
