"""Units of the columns of ``D``: those in which the two bodies of a joint alone answer with one.

Then eigenvalues of inner matrices have no unit, and noise in them is rounding.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...model.mechanism import Mechanism
from ...spatial.batched import adjoint
from ...tolerances import THIN_BODY
from .blocks import Blocks
from .cuts import CutJoints
from .loop_joints import LoopJoints

__all__ = ["units"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


def units(robot: Mechanism, blocks: Blocks, cuts: CutJoints, loops: LoopJoints) -> None:
    """Set the units of all joints."""
    model = robot.model
    inverse = _inverse_inertias(
        np.array([inertia.matrix() for inertia in model.inertias[1:]]).reshape(-1, 6, 6),
        robot.length,
    )
    seats = np.array([model.jointPlacements[k + 1].homogeneous for k in blocks.cuts])
    seats = seats.reshape(-1, 4, 4)
    here = np.broadcast_to(np.eye(4), seats.shape)
    cuts.hold(tuple(cuts.place) if cuts.width == 6 else ())
    own = _response(inverse, blocks.cuts, here, cuts.D)
    own += _response(inverse, blocks.below, seats, cuts.D)
    cuts.hold(())
    cuts.rescale(_unit(own))
    own = _response(inverse, loops.body_b, loops.seat_b, loops.D)
    own += _response(inverse, loops.body_a, loops.seat_a, loops.D)
    loops.rescale(loops.flat(_unit(own)))


def _response(inverse: Array, bodies: Sequence[int] | Indices, seats: Array, D: Array) -> Array:
    """What single bodies answer to each column of ``D``, shape (n, width)."""
    at = np.asarray(bodies, dtype=np.intp)
    W = adjoint(seats).transpose(0, 2, 1) @ D
    found = np.sum(W * (inverse[at] @ W), axis=1)
    found[at < 0] = 0.0
    return np.asarray(found)


def _unit(own: Array) -> Array:
    return np.asarray(1.0 / np.sqrt(np.where(own > 0, own, 1.0)))


def _inverse_inertias(inertia: Array, length: float) -> Array:
    """Inverse inertias, of bodies that have some in every direction."""
    if len(inertia) == 0:
        return np.zeros((1, 6, 6))
    unit = np.repeat([length, 1.0], 3)
    values, vectors = np.linalg.eigh(unit[:, None] * inertia * unit)
    typical = float(np.mean(values[:, -1]))
    size = np.maximum(values[:, -1:], 1e-3 * typical)
    values = np.where(values < THIN_BODY * size, size, values)
    vectors = vectors * unit[:, None]
    return np.asarray((vectors / values[:, None, :]) @ vectors.transpose(0, 2, 1))
