"""Back to the constraint manifold after a step: no gains, nothing to tune (paper 1, section 5.3).

Position first, then velocity, each only when its residual exceeds the tolerance.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..assembly.continuation import nearby_assembly
from ..boundary.arguments import checked, public
from ..boundary.marks import Array, Positive
from ..dynamics import EquationsOfMotion
from ..dynamics.independence import dependent_coordinates
from ..errors import BadValue
from ..linalg.dense import lapack, norm
from ..linalg.saddle import Saddle
from ..tolerances import CONTRADICTION, DRIFT, GRAM_NOISE, RANK, Regularity
from .modes import RobotManifold

Level = Literal["position", "velocity"]
"""What is corrected."""
_Chosen = NDArray[np.intp] | slice
_Closure = tuple[Array, Array, Array]
"""``J``, ``b`` and the residual of all rows, in units that compare."""

_ITERATIONS = 25
_AROUND = 4
"""Configurations around a singular one from which it is known what regular is."""
CURVED = 1e-3
"""Part of a position error that rows besides the chosen ones may be left off: they are curved."""
_STEEPEST = 1.0
"""How fast the least pivot of rows changes at most, over the largest, per rad and robot length: at
600 states of ten robots it was 0.72."""
_BIFURCATION = (
    "rows that depend on each other elsewhere do not here: this is where the mechanism branches; "
    "start from a state that does not pass it, or regularize the loops"
)


@public
@checked
@dataclass(frozen=True)
class Projection:
    """Projective stabilization.

    Args:
        tol: residual above which a state is projected: rad, and characteristic lengths.
        coordinates: what moves. "optimal": the dependent coordinates of optimal partitioning, which
            are kept until they get clearly worse, own sets for positions and velocities where
            their rows differ; "mass": all of them, by the smallest shift in the kinetic metric; or
            names of the joints that shall be corrected.
    """

    tol: Positive = DRIFT
    coordinates: Literal["optimal", "mass"] | Sequence[str] = "optimal"

    def __post_init__(self) -> None:
        if isinstance(self.coordinates, str) and self.coordinates not in ("optimal", "mass"):
            raise BadValue(
                f"coordinates is '{self.coordinates}'; give 'optimal', 'mass' or a list of joints"
            )


class _Block(NamedTuple):
    """Rows and the coordinates that meet them, as many as there are rows.

    Args:
        rows: indices of rows that contain the others.
        columns: indices of the dependent coordinates.
        share: one over the norms of the rows and of the inverse of the block of these, where it was
            chosen: small where other coordinates would do with smaller shifts.
        left: what was left of all rows there: where that has grown, shares are to have grown, too.
    """

    rows: _Chosen
    columns: NDArray[np.intp]
    share: float
    left: float


_NO_BLOCK = _Block(np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp), 0.0, 1.0)


class Projector:
    """A projection for the rows of certain equations.

    Args:
        equations: equations of motion with their rows; what they lock is left alone.
        projection: what to correct, and when.
        manifold: configuration group, which may hold joints; that of the robot by default.

    Attributes:
        regularity: how independent the rows are at the last state that was seen: 1 where they are
            as independent as they ever were, 0 where the mechanism branches.
    """

    def __init__(
        self,
        equations: EquationsOfMotion,
        projection: Projection,
        manifold: RobotManifold | None = None,
    ) -> None:
        self._equations, self._projection = equations, projection
        self._rows = equations.rows
        self._manifold = manifold or RobotManifold(equations.robot)
        robot = equations.robot
        # Columns are per unit of each coordinate, rows in units of their multipliers.
        self._unit = np.where(robot.is_translation, robot.length, 1.0)
        self._scale = self._rows.scale[: self._rows.unlocked]
        self._units = np.outer(self._scale, self._unit)
        self._metric = np.outer(self._unit, self._unit)
        self._known: list[Array] = []  # rows at configurations that tell what regular is
        self._best = self._most = 0.0  # least pivot at best, and whatever was locked
        holonomic = self._rows.holonomic[: self._rows.unlocked]
        self._holonomic = None if holonomic.all() else np.flatnonzero(holonomic)
        locked = np.zeros(robot.nv, dtype=bool)
        locked[self._rows.locked] = True
        self.lock(locked)
        chosen = projection.coordinates
        self._fixed_set: NDArray[np.intp] | None = None
        if not isinstance(chosen, str):
            at = [equations.robot.coordinates(joint).v for joint in chosen]
            columns = [k for part in at for k in range(part.start, part.stop)]
            self._fixed_set = np.array(columns, dtype=np.intp)

    def lock(self, locked: NDArray[np.bool_]) -> None:
        """Leave other coordinates alone from now on; with these the rows may branch elsewhere.

        Args:
            locked: mask of the velocity coordinates that must not be touched, shape (nv,).
        """
        self._free = (~locked).nonzero()[0]
        self._independent, self._most = 0, max(self._most, self._best)
        self.regularity, self._best = 1.0, 0.0
        for J in self._known:
            self._look(J)
        # Positions and velocities have dependent coordinates of their own if their rows differ.
        self._blocks: dict[str, _Block] = {}

    def apply(self, t: float, q: Array, v: Array) -> tuple[Array, Array, bool]:
        """Project a state if it is off the manifold; says whether it was moved."""
        if len(self._scale) == 0:
            return q, v, False
        here = self._closure(t, q)
        q, here, moved = self._closed(t, q, here)
        v, turned = self._allowed(t, q, v, here)
        return q, v, moved or turned

    @property
    def chooses(self) -> bool:
        """Whether the coordinates that move are chosen, and kept until they get worse."""
        return self._projection.coordinates == "optimal"

    @property
    def tol(self) -> float:
        """See `Projection`."""
        return self._projection.tol

    @property
    def _left(self) -> float:
        """What is left of the rows where they lose rank: their least pivot over the largest."""
        return self.regularity * self._best or 1.0

    @property
    def steepest(self) -> float:
        """How fast the regularity changes at most, over the size of a motion in units."""
        return _STEEPEST / self._best if self._best > 0.0 else 0.0

    @property
    def known(self) -> tuple[list[int], list[int], float, float, int, float, float]:
        """The block; rank of the rows, regularity, least pivot at best.

        Rows and columns are empty if no block is kept for all rows.
        """
        rows, columns, *worth = self._blocks.get("all", _NO_BLOCK)
        numbers = np.arange(len(self._scale))[rows].tolist()
        parts = self._independent, self.regularity, self._best
        return numbers, columns.tolist(), *worth, *parts

    def remember(
        self, regularity: float, best: float, block: tuple[list[int], list[int], float, float]
    ) -> None:
        """Take over what others have found out at the last state, and the block that they keep."""
        self.regularity, self._best = regularity, best
        rows, columns, *worth = block
        if columns:
            chosen = slice(None) if len(rows) == len(self._scale) else np.array(rows)
            self._blocks["all"] = _Block(chosen, np.array(columns), *worth)

    def position(self, t: float, q: Array) -> tuple[Array, bool]:
        """Configuration on the manifold, by Newton's method along the chosen coordinates."""
        if len(self._scale) == 0:
            return q, False
        q, _, moved = self._closed(t, q, self._closure(t, q))
        return q, moved

    def velocity(self, t: float, q: Array, v: Array) -> tuple[Array, bool]:
        """Velocity that all rows allow."""
        if len(self._scale) == 0:
            return v, False
        return self._allowed(t, q, v, self._closure(t, q))

    def _closure(self, t: float, q: Array) -> _Closure:
        """Rows at a configuration, in units that compare."""
        (J, b, residual), scale = self._equations.closure(t, q), self._scale
        if len(scale) < len(J):
            J, b, residual = J[: len(scale)], b[: len(scale)], residual[: len(scale)]
        return J * self._units, b * scale, residual * scale

    def begin(self, t: float, q: Array) -> None:
        """Look at the configuration where a run starts, and around it if that may be singular."""
        if len(self._scale) == 0:
            return
        J = self._equations.closure_at_start(t, q)[0]
        self._known = [J[: len(self._scale)] * self._units]
        self._look(self._known[0])
        if self._best < Regularity.NEAR**2 and not self._rows.moving:
            rng = np.random.default_rng(0)
            for _ in range(_AROUND):
                beside = nearby_assembly(self._equations.robot, q, rng, reach=0.1)
                if beside is not None:
                    self._known.append(self._closure(t, beside)[0])
            for J in self._known[::-1]:
                self._look(J)

    def choose(self, t: float, q: Array) -> None:
        """Choose dependent coordinates, so that a step has them."""
        if len(self._scale) and self._holonomic is None and self.chooses:
            self._chosen("all", q, self._closure(t, q)[0], RANK, None)

    def look(self, t: float, q: Array) -> None:
        """Find out how independent the rows are at a configuration."""
        if len(self._rows):
            self._look(self._closure(t, q)[0])

    def regularity_at(self, t: float, q: Array) -> float:
        """How independent the rows are at a configuration that the motion only passes."""
        known = self.regularity, self._independent, self._best
        self.look(t, q)
        passed = self.regularity
        self.regularity, self._independent, self._best = known
        return passed

    def regularity_unlocked(self, t: float, q: Array) -> float:
        """The same where nothing is locked: what that is may make the rows depend by itself."""
        unlocked = copy(self)
        unlocked.lock(np.zeros(len(self._unit), dtype=bool))
        unlocked._best = max(unlocked._best, unlocked._most)
        unlocked.look(t, q)
        return unlocked.regularity

    def _look(self, J: Array) -> None:
        """Find out how independent the rows are, by the pivots of ``J J'``.

        Off the manifold dependent rows gain rank: where the rank on it is not known, nothing is
        found out.
        """
        rank = self._equations.rank
        if rank is None:
            return
        rank -= len(self._rows.locked)
        free = J[:, self._free]
        factor, _, count, _ = lapack().dpstrf(free.dot(free.T), lower=1)
        # Roots of those of J J'; of a few numbers Python is faster than NumPy.
        pivots = factor.diagonal()[:count].tolist()
        if free.shape != J.shape:  # what is locked may leave fewer independent
            noise = GRAM_NOISE * max(pivots, default=0.0) ** 2
            rank = min(rank, sum(pivot**2 > noise for pivot in pivots))
        if rank > self._independent:
            self._independent, self._best = rank, 0.0
        rank = self._independent
        if rank == 0:
            return
        least = pivots[rank - 1] / pivots[0] if rank <= count else 0.0
        self._best = max(self._best, least)
        self.regularity = least / self._best if self._best > 0.0 else 1.0

    def _closed(self, t: float, q: Array, here: _Closure) -> tuple[Array, _Closure, bool]:
        """Configuration on the manifold, the rows there, and whether it was moved.

        Where two branches cross, ``x y = 0``, a residual ``r`` makes of them two that do not,
        ``x y = r``: a run would follow its own round the corner. So there the least one counts.
        """
        self._look(here[0])
        tol = self._projection.tol
        allowed = tol
        if self.regularity < Regularity.NEAR:
            allowed = 1e-3 * tol
        left = 1e-2 * allowed
        J, residual = self._of_positions(here)
        error = norm(residual)
        if error <= allowed:
            return q, here, False
        for _ in range(_ITERATIONS):
            step = self._unit * self._correction(q, J, -residual, "position", error)
            trial = self._manifold.normalize(self._manifold.integrate(q, step))
            there = self._closure(t, trial)
            new_J, new_residual = self._of_positions(there)
            new = norm(new_residual)
            if not new < error:
                break
            q, here, J, residual, error = trial, there, new_J, new_residual, new
            # Rows that others contain on the manifold only move with what is left of the position.
            if error < left or (error < 0.3 * allowed and self._holds_all("position")):
                break
        if not error <= 10 * max(tol, CONTRADICTION):
            raise BadValue(
                f"the rows cannot be closed at t = {t:.6g} s: a residual of {error:.1e} is left; "
                + self._advice()
            )
        return q, here, True

    def _holds_all(self, level: Level) -> bool:
        """Whether the coordinates that are chosen meet all rows, none of which follows."""
        block = self._blocks.get("all" if self._holonomic is None else level)
        return block is not None and isinstance(block.rows, slice)

    def _of_positions(self, here: _Closure) -> tuple[Array, Array]:
        """Jacobian and residual of the rows that restrict positions."""
        J, _, residual = here
        if self._holonomic is None:
            return J, residual
        return J[self._holonomic], residual[self._holonomic]

    def _allowed(self, t: float, q: Array, v: Array, here: _Closure) -> tuple[Array, bool]:
        """Velocity that all rows allow, and whether that is another one."""
        J, b, _ = here
        rest = J @ (v / self._unit) - b
        if norm(rest) <= self._projection.tol:
            return v, False
        # Beside a bifurcation a dependent row is small, but not zero: it would take the speed away.
        cap = self._equations.max_rank
        if cap is not None:
            cap -= len(self._rows.locked)
        shift = self._correction(q, J, -rest, "velocity", 0.0, cap)
        v = v + self._unit * shift
        left = norm(rest + J @ shift)
        # Even past singularities only rounding is left. More is left of a run that has strayed from
        # its branch there: it must stop before the rows take its speed away.
        if not left <= CONTRADICTION * max(1.0, float(np.abs(v).max())):
            raise BadValue(
                f"no velocity meets the rows at t = {t:.6g} s: a residual of {left:.1e} is left; "
                + (_BIFURCATION if self.regularity < Regularity.NEAR else self._advice())
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

    def moves(self, t: float, q: Array, level: Level) -> NDArray[np.intp] | None:
        """Coordinates that a correction moves here; None if all do, by the shortest shift."""
        if self._fixed_set is not None or not self.chooses:
            return self._fixed_set
        here = self._closure(t, q)
        J = self._of_positions(here)[0] if level == "position" else here[0]
        self._correction(q, J, np.zeros(len(J)), level, 0.0)
        block = self._blocks.get("all" if self._holonomic is None else level, _NO_BLOCK)
        return block.columns

    def _correction(
        self, q: Array, J: Array, b: Array, level: Level, error: float, max_rank: int | None = None
    ) -> Array:
        """Shift with ``J shift = b``, in units, that leaves locked coordinates alone.

        Rows that depend on each other on the manifold gain rank off it, by as much as the
        position error: taken for independent, they would send the robot far away.
        """
        shift = np.zeros(J.shape[1])
        kept = "all" if self._holonomic is None else level
        slack = self._projection.tol + CURVED * error
        block = self._blocks.get(kept)
        if block is not None and (solution := self._met(block, J, b, slack)) is not None:
            shift[block.columns] = solution
            return shift
        tolerance = min(max(RANK, 10 * error), 1e-2)
        free, columns = self._free, self._fixed_set
        if columns is None:
            if self._projection.coordinates == "mass":
                M, rows = self._moving(q, J)
                shift[free] = Saddle(M, rows, tolerance=tolerance, max_rank=max_rank).project(b)
                return shift
            columns, block = self._chosen(kept, q, J, tolerance, max_rank)
            if block is not None and (solution := self._met(block, J, b, slack)) is not None:
                shift[columns] = solution
                return shift
        shift[columns] = np.linalg.lstsq(J[:, columns], b, rcond=tolerance)[0]
        return shift

    def _moving(self, q: Array, J: Array) -> tuple[Array, Array]:
        """Mass matrix and rows of what may move, in units."""
        M, free = self._equations.mass(q) * self._metric, self._free
        if len(free) < J.shape[1]:
            return M[np.ix_(free, free)], J[:, free]
        return M, J

    def _chosen(
        self, level: str, q: Array, J: Array, tolerance: float, max_rank: int | None
    ) -> tuple[NDArray[np.intp], _Block | None]:
        """Dependent coordinates, and what is kept of them."""
        columns = dependent_coordinates(*self._moving(q, J), tolerance, max_rank)[0]
        columns = self._free[columns]
        return columns, self._remembered(level, J, columns)

    def _remembered(self, level: str, J: Array, columns: NDArray[np.intp]) -> _Block | None:
        """Keep a choice of dependent coordinates, with as many rows that contain the others."""
        self._blocks.pop(level, None)
        if len(columns) == 0:
            return None
        pivots = lapack().dgeqp3(J[:, columns].T)[1] - 1
        # All of them as a slice, which copies nothing.
        rows = slice(None) if len(columns) == len(J) else pivots[: len(columns)]
        block = _Block(rows, columns, _factored(J, rows, columns)[2], self._left)
        self._blocks[level] = block
        return block

    def _met(self, block: _Block, J: Array, b: Array, slack: float) -> Array | None:
        """Shifts of dependent coordinates that meet the rows; None if others may be better now.

        Rows that the block does not contain must come out with it, but for ``slack``. If they do
        not, the rows contradict each other.
        """
        lu, pivots, share = _factored(J, block.rows, block.columns)
        grown = max(1.0, self._left / block.left)
        if share < max(Regularity.WORSE * block.share * grown, Regularity.WORST):
            return None
        solution = lapack().dgetrs(lu, pivots, b[block.rows])[0]
        if len(b) > len(solution) and norm(J[:, block.columns] @ solution - b) > slack:
            return None
        return np.asarray(solution)


def _factored(J: Array, rows: _Chosen, columns: NDArray[np.intp]) -> tuple[Array, Array, float]:
    """Factors of a block of the rows, and its share of them.

    An estimate of the inverse (LAPACK's dgecon) jumps by half: rounding would decide when other
    coordinates are chosen.
    """
    whole = J[rows]
    lu, pivots, info = lapack().dgetrf(whole[:, columns])
    if info != 0:
        return lu, pivots, 0.0
    inverse = lapack().dgetri(lu, pivots)[0]
    size = lapack().dlange("I", whole.T)  # of the transpose, which LAPACK need not copy
    return lu, pivots, 1 / (size * lapack().dlange("1", inverse))
