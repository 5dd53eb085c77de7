"""Back to the constraint manifold after a step: no gains, nothing to tune (paper 1, section 5.3).

Position first, then velocity, each only when its residual exceeds the tolerance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .dynamics import EquationsOfMotion
from .errors import BadValue
from .manifold import RobotManifold
from .partition import dependent_coordinates
from .saddle import RANK, Saddle

__all__ = ["Projection", "Projector"]

Array = NDArray[np.float64]

_ITERATIONS = 25
_REACHABLE = 1e-8
"""Residual at which rows count as not to be met: rad, characteristic lengths; for velocities per
unit of the largest one."""
_BIFURCATION = (
    "rows that depend on each other elsewhere do not here: this is where the mechanism branches; "
    "start from a state that does not pass it, or regularize the loops"
)


@dataclass(frozen=True)
class Projection:
    """Projective stabilization.

    Args:
        tol: residual above which a state is projected: rad, and characteristic lengths.
        coordinates: what moves. "optimal": the dependent coordinates of optimal partitioning, own
            sets for positions and velocities; "mass": all of them, by the smallest shift in the
            kinetic metric; or names of the joints that shall be corrected.
    """

    tol: float = 1e-11
    coordinates: Literal["optimal", "mass"] | Sequence[str] = "optimal"

    def __post_init__(self) -> None:
        if not self.tol > 0:
            raise BadValue(f"tol is {self.tol}; it must be positive")
        if isinstance(self.coordinates, str) and self.coordinates not in ("optimal", "mass"):
            raise BadValue(
                f"coordinates is '{self.coordinates}'; give 'optimal', 'mass' or a list of joints"
            )


class Projector:
    """A projection for the rows of certain equations.

    Args:
        equations: equations of motion with their rows.
        projection: what to correct, and when.
        locked: mask of the velocity coordinates that must not be touched, shape (nv,).
        manifold: configuration group, which may hold joints; that of the robot by default.
    """

    def __init__(
        self,
        equations: EquationsOfMotion,
        projection: Projection,
        locked: NDArray[np.bool_] | None = None,
        manifold: RobotManifold | None = None,
    ) -> None:
        self._equations, self._projection = equations, projection
        none = np.zeros(equations.robot.nv, dtype=bool)
        self._free = np.flatnonzero(~(none if locked is None else locked))
        self._rows = equations.rows
        self._manifold = manifold or RobotManifold(equations.robot)
        chosen = projection.coordinates
        self._fixed_set: NDArray[np.intp] | None = None
        if not isinstance(chosen, str):
            at = [equations.robot.coordinates(joint).v for joint in chosen]
            columns = [k for part in at for k in range(part.start, part.stop)]
            self._fixed_set = np.array(columns, dtype=np.intp)

    def apply(self, t: float, q: Array, v: Array) -> tuple[Array, Array, bool]:
        """Project a state if it is off the manifold; says whether it was moved."""
        q, moved = self.position(t, q)
        v, turned = self.velocity(t, q, v)
        return q, v, moved or turned

    def position(self, t: float, q: Array) -> tuple[Array, bool]:
        """Configuration on the manifold, by Newton's method along the chosen coordinates."""
        holonomic = self._rows.holonomic
        if not holonomic.any():
            return q, False
        scale = self._rows.scale[holonomic]
        residual = scale * self._equations.residual(t, q)[holonomic]
        error = float(np.linalg.norm(residual))
        moved = False
        rest = np.zeros(self._equations.robot.nv)
        while error > self._projection.tol and not moved:
            for _ in range(_ITERATIONS):
                J = scale[:, None] * self._equations.terms(t, q, rest)[0][holonomic]
                step = self._correction(self._equations.mass(q), J, -residual, error)
                trial = self._manifold.normalize(self._manifold.integrate(q, step))
                new = scale * self._equations.residual(t, trial)[holonomic]
                if not np.linalg.norm(new) < error:
                    break
                q, residual, error = trial, new, float(np.linalg.norm(new))
                if error < 1e-3 * self._projection.tol:
                    break
            moved = True
        if not np.isfinite(error) or (moved and error > 10 * max(self._projection.tol, _REACHABLE)):
            raise BadValue(
                f"the rows cannot be closed at t = {t:.6g} s: a residual of {error:.1e} is left; "
                + self._advice()
            )
        return q, moved

    def velocity(self, t: float, q: Array, v: Array) -> tuple[Array, bool]:
        """Velocity that all rows allow."""
        if len(self._rows) == 0:
            return v, False
        before = v
        J, b, _ = self._equations.terms(t, q, v)
        J, rest = self._rows.scale[:, None] * J, self._rows.scale * (J @ v - b)
        if float(np.linalg.norm(rest)) <= self._projection.tol:
            return v, False
        # Beside a bifurcation a dependent row is small, but not zero: it would take the speed away.
        cap = self._equations.max_rank
        v = v + self._correction(self._equations.mass(q), J, -rest, 0.0, cap)
        left = float(np.linalg.norm(rest + J @ (v - before)))
        # Even past singularities only rounding is left. More is left of a run that has strayed from
        # its branch there: it must stop before the rows take its speed away.
        if not left <= _REACHABLE * max(1.0, float(np.abs(v).max())):
            raise BadValue(
                f"no velocity meets the rows at t = {t:.6g} s: a residual of {left:.1e} is left; "
                + (self._advice() if cap is None else _BIFURCATION)
            )
        return v, True

    def _advice(self) -> str:
        """What to do when the rows cannot be met."""
        if self._fixed_set is None:
            return "they contradict each other"
        return (
            f"the coordinates {list(self._projection.coordinates)} are too few; name as many as "
            "there are independent rows"
        )

    def _correction(
        self, M: Array, J: Array, b: Array, error: float, max_rank: int | None = None
    ) -> Array:
        """Shift with ``J shift = b`` that leaves locked coordinates alone.

        Rows that depend on each other on the manifold gain rank off it, by as much as the
        position error: taken for independent, they would send the robot far away.
        """
        tolerance = min(max(RANK, 10 * error), 1e-2)
        free = self._free
        shift = np.zeros(J.shape[1])
        M, rows = M[np.ix_(free, free)], J[:, free]
        if self._projection.coordinates == "mass":
            saddle = Saddle(M, rows, tolerance=tolerance, max_rank=max_rank)
            shift[free] = saddle.project(b)
            return shift
        columns = self._fixed_set
        if columns is None:
            columns = free[dependent_coordinates(M, rows, tolerance, max_rank)[0]]
        shift[columns] = np.linalg.lstsq(J[:, columns], b, rcond=tolerance)[0]
        return shift
