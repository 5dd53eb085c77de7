"""Velocities with which a motion goes on: what the rows ask of them to second order.

Where rows lose rank, branches of the motion cross. ``J v = b`` then also allows what lies between
the tangents of the branches, and a motion that starts so loses its speed in the first step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..dynamics import EquationsOfMotion
from ..linalg.saddle import Saddle
from ..tolerances import CONSISTENT, RANK, SAME

__all__ = ["Obstacle", "obstacle"]

Array = NDArray[np.float64]

_ITERATIONS = 50
_SLOWEST = 1e-2
"""Part of the speed below which the way to a tangent counts as the way to rest."""


@dataclass(frozen=True, eq=False)
class Obstacle:
    """Why no acceleration meets the rows.

    Args:
        row: label of the row that is missed most.
        residual: norm of what is left of ``J a + gamma``: rad/s^2, characteristic lengths per s^2.
        resting: whether the rows contradict each other also if nothing moves.
        v: a velocity nearby with which the motion goes on, shape (nv,); zeros if none was found.
    """

    row: str
    residual: float
    resting: bool
    v: Array

    def __str__(self) -> str:
        if self.resting:
            return (
                f"the rows contradict each other: no acceleration meets them all (row '{self.row}' "
                f"is missed, residual {self.residual:.3g})"
            )
        return (
            "the pose is singular, and the rows allow this velocity to first order only: no "
            f"acceleration meets row '{self.row}' with it (residual {self.residual:.3g})"
        )


def obstacle(
    equations: EquationsOfMotion, t: float, q: Array, v: Array, before: Array | None = None
) -> Obstacle | None:
    """Why no acceleration meets the rows at a state that obeys them; None if there is one.

    Args:
        equations: equations of motion.
        t: time [s].
        q: configuration, shape (nq,).
        v: velocity, shape (nv,).
        before: velocity before a jump to ``v``, which may be what rounding has left of it.
    """
    J, _, gamma = equations.terms(t, q, v)
    if len(J) == 0:
        return None
    rows, robot = equations.rows, equations.robot
    M = equations.mass(q)
    left = Saddle(M, J, rows.scale).dependencies  # the rank is that of the accelerations
    if len(left) == 0:
        return None
    unit = np.where(robot.is_translation, robot.length, 1.0)
    scaled = rows.scale[:, None] * J * unit
    missed = left.T @ (left @ (rows.scale * gamma))
    speed, size = float(np.linalg.norm(v / unit)), max(1.0, float(np.linalg.norm(scaled)))
    if before is not None:
        speed = max(speed, SAME * float(np.linalg.norm(before / unit)))
    terms = size * speed**2 + float(np.linalg.norm(rows.scale * gamma))
    allowed = CONSISTENT * terms
    residual = float(np.linalg.norm(missed))
    if residual <= allowed:
        return None

    def defect(u: Array) -> Array:
        return np.asarray(left @ (rows.scale * equations.terms(t, q, u)[2]))

    resting = bool(np.linalg.norm(defect(np.zeros(robot.nv))) > allowed)
    near = np.zeros(robot.nv)
    if not resting:
        # Velocities that the rows allow to first order, orthonormal in the kinetic metric.
        null = np.linalg.svd(scaled)[2][len(J) - len(left) :].T * unit[:, None]
        root = np.linalg.cholesky(null.T @ M @ null)
        near = _tangent(defect, np.linalg.solve(root, null.T).T, v, 1e-3 * allowed)
    return Obstacle(rows.labels[int(np.argmax(np.abs(missed)))], residual, resting, near)


def _tangent(defect: Callable[[Array], Array], null: Array, v: Array, allowed: float) -> Array:
    """A velocity near ``v`` on a tangent, by Newton's method; zeros if none is reached."""
    u = v.copy()
    if null.shape[1] == 0:
        return np.zeros(len(v))
    for _ in range(_ITERATIONS):
        left = defect(u)
        if np.linalg.norm(left) <= allowed:
            return u if np.linalg.norm(u) > _SLOWEST * np.linalg.norm(v) else np.zeros(len(v))
        # The defect is of second order in velocities: differences of any size are exact.
        slope = np.column_stack([(defect(u + w) - defect(u - w)) / 2 for w in null.T])
        u = u - null @ np.linalg.lstsq(slope, left, rcond=RANK)[0]
    return np.zeros(len(v))
