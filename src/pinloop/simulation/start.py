"""Is a start state one that the rows allow? Projects what nearly is, offers the nearest if not."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..assembly.assemble import assemble
from ..dynamics import EquationsOfMotion
from ..errors import InconsistentVelocity, LoopNotClosed
from ..linalg.saddle import Saddle
from ..tolerances import CLOSED, CONSISTENT, CONTRADICTION
from .stabilization import Projection, Projector
from .tangents import obstacle

__all__ = ["consistent_start"]

Array = NDArray[np.float64]

_CLOSED = 1e-3 * CLOSED
"""Residual of a start configuration that is left as it is, in the same units."""
_TURNED, _AMPLIFIED = 1e-3, 1e3
"""Part of the speed that is projected away silently, and how often the residual that may be."""


def consistent_start(
    equations: EquationsOfMotion, locked: NDArray[np.bool_], t: float, q: Array, v: Array
) -> tuple[Array, Array]:
    """The start state on the manifold; an error that offers it if the given one is far off.

    Args:
        equations: equations of motion of the mode at the start.
        locked: mask of the locked velocity coordinates.
        t: start [s].
        q: configuration, shape (nq,).
        v: velocity, shape (nv,).
    """
    q, J, b = _closed(equations, locked, t, q)
    if len(equations.rows) > len(equations.rows.loops):
        J, b, _ = equations.terms(t, q, v)  # some rows take what they keep from this velocity
    v = _allowed(equations, locked, v, q, J, b)
    _require_tangent(equations, t, q, v)
    return q, v


def _closed(
    equations: EquationsOfMotion, locked: NDArray[np.bool_], t: float, q: Array
) -> tuple[Array, Array, Array]:
    """The configuration on the manifold, and ``J`` and ``b`` of the rows there."""
    robot, rows = equations.robot, equations.rows
    J, b, residual = equations.closure(t, q)
    gap, full = residual[: len(rows.loops)], rows.whole
    if full is not rows.loops:
        gap = equations.residual_of(full, q)
    if np.linalg.norm(np.where(full.angular, 1.0, 1 / robot.length) * gap) > CONSISTENT:
        raise LoopNotClosed(
            f"robot '{robot.name}': the start configuration is not assembled (residual "
            f"{np.linalg.norm(gap):.3g}); start from pl.assemble(robot, q), which this error "
            "carries as .q",
            q=assemble(robot, q),
            residuals=full.by_name(gap),
        )
    off = float(np.linalg.norm((rows.scale * residual)[rows.holonomic]))
    if off <= _CLOSED:
        return q, J, b
    closed = Projection(tol=_CLOSED, coordinates="mass")
    near, _ = Projector(equations, closed, locked).position(t, q)
    if off > CONSISTENT:
        raise LoopNotClosed(
            f"robot '{robot.name}': the rows contradict the start configuration (residual "
            f"{off:.3g}); start where prescribed motions start",
            q=near,
            residuals=dict(zip(rows.labels, equations.residual(t, q), strict=True)),
        )
    return near, *equations.closure(t, near)[:2]


def _allowed(
    equations: EquationsOfMotion, locked: NDArray[np.bool_], v: Array, q: Array, J: Array, b: Array
) -> Array:
    """The velocity that rows with ``J v = b`` allow."""
    robot, rows = equations.robot, equations.rows

    def missed(v: Array) -> Array:
        return np.asarray(rows.scale * (J @ v - b))

    size = max(1.0, float(np.abs(v).max(initial=0.0)), float(np.abs(b).max(initial=0.0)))
    near = np.where(locked, 0.0, v)
    if np.linalg.norm(missed(near)) > _CLOSED * size:
        free = np.flatnonzero(~locked)
        shift = Saddle(equations.mass(q)[np.ix_(free, free)], J[:, free], rows.scale)
        near[free] += shift.project(b - J @ near)
    left, off = (float(np.linalg.norm(missed(one))) for one in (near, v))
    if left > CONTRADICTION * size:
        raise InconsistentVelocity(
            f"robot '{robot.name}': the rows contradict each other at the start: no velocity "
            "meets them all; take one out",
            v=near,
            residual=left,
        )
    if off > CONSISTENT * size:
        worst = rows.labels[int(np.argmax(np.abs(missed(v))))]
        raise InconsistentVelocity(
            f"robot '{robot.name}': the start velocity violates row '{worst}' (residual "
            f"{off:.3g}); use pl.consistent_velocity, or the nearest one, which this error "
            "carries as .v",
            v=near,
            residual=off,
        )
    unit = np.where(robot.is_translation, robot.length, 1.0)
    taken, speed = (float(np.linalg.norm(part / unit)) for part in (near - v, v))
    if taken > max(_TURNED * speed, _AMPLIFIED * off):
        worst = rows.labels[int(np.argmax(np.abs(missed(v))))]
        raise InconsistentVelocity(
            f"robot '{robot.name}': beside a singular pose the start velocity violates row "
            f"'{worst}' (residual {off:.3g}), and to meet it takes {taken / speed:.0%} of the "
            "speed; start from the singular pose itself, from a pose farther off, or with the "
            "nearest velocity, which this error carries as .v",
            v=near,
            residual=off,
        )
    return near


def _require_tangent(equations: EquationsOfMotion, t: float, q: Array, v: Array) -> None:
    """Raise if no acceleration meets the rows: the motion does not go on with this velocity."""
    found = obstacle(equations, t, q, v)
    if found is None:
        return
    if found.resting:
        advice = "take one out"
    elif found.v.any():
        advice = (
            "start with a velocity along one of the branches, such as the nearest one found, which "
            "this error carries as .v, or from another pose"
        )
    else:
        advice = "start at rest or from another pose"
    raise InconsistentVelocity(
        f"robot '{equations.robot.name}' at the start: {found}; {advice}",
        v=found.v,
        residual=found.residual,
    )
