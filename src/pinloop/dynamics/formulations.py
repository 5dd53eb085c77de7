"""What a formulation is, and three of ``M a = f + J' lam``, ``J a + gamma = 0``.

Formulations are interchangeable values. The three here see matrices only; what fills them is in
`equations`. Formulations that look at the robot itself have a package of their own. All give the
same accelerations, and the smallest reactions where these are not unique.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..arguments import public
from ..errors import SingularMass
from ..partition import dependent_coordinates
from ..rows import RowSet
from ..saddle import RANK, Saddle, factor_mass

__all__ = [
    "Augmented",
    "BoundFormulation",
    "BoundStateFormulation",
    "Formulation",
    "FurtherRows",
    "MatrixFormulation",
    "Projected",
    "StateFormulation",
    "Voronets",
]

Array = NDArray[np.float64]


class MatrixFormulation(ABC):
    """A formulation that works on mass matrix and rows of the whole robot."""

    @abstractmethod
    def bind(self, scale: Array) -> BoundFormulation:
        """Return the formulation with work space.

        Args:
            scale: unit of each row's multiplier, shape (m,).
        """


class BoundFormulation(ABC):
    """A formulation that may remember choices from one evaluation to the next."""

    @abstractmethod
    def solve(
        self, M: Array, J: Array, f: Array, gamma: Array, max_rank: int | None = None
    ) -> tuple[Array, Array]:
        """Accelerations, shape (n,), and reactions, shape (m,).

        Args:
            M: mass matrix, shape (n, n).
            J: rows, shape (m, n).
            f: forces, shape (n,).
            gamma: velocity-dependent part of the rows, shape (m,).
            max_rank: number of rows that can be independent at all, if that is less than m.
        """


@dataclass(frozen=True, eq=False)
class FurtherRows:
    """Rows beyond loops at a state: ``J x = values``.

    Args:
        J: shape (k, nv).
        values: shape (k,).
        index: place of each among all rows of the robot.
    """

    J: Array
    values: Array
    index: NDArray[np.intp]


class StateFormulation(ABC):
    """A formulation that works on the robot itself, without matrices of the whole robot."""

    @abstractmethod
    def bind(self, rows: RowSet) -> BoundStateFormulation:
        """Return the formulation with work space for a robot.

        Args:
            rows: rows of the robot; it evaluates those of loops itself.
        """


class BoundStateFormulation(ABC):
    """A state formulation of one robot."""

    @abstractmethod
    def solve(self, q: Array, v: Array, tau: Array, further: FurtherRows) -> tuple[Array, Array]:
        """Accelerations, shape (nv,), and reactions, shape (rows,), not always the smallest.

        Args:
            q: configuration, shape (nq,).
            v: velocity, shape (nv,).
            tau: applied generalised forces without gravity, shape (nv,).
            further: rows beyond loops, with accelerations as values.
        """

    @abstractmethod
    def bodies_and_joints(
        self, q: Array, v: Array, tau: Array, further: FurtherRows
    ) -> tuple[Array, Array, Array]:
        """Accelerations of all bodies and wrenches in all joints, without fixed joints.

        Returns:
            spatial acceleration of each body that moves in the model, at and in its joint frame,
            shape (n, 6); wrench of each of their joints on it, likewise; wrench of each loop joint
            on its body B, at and in its frame B, shape (loops, 6).
        """

    @abstractmethod
    def position(self, q: Array, further: Callable[[Array], FurtherRows]) -> Array:
        """The configuration nearby in which all loops are closed, shape (nq,).

        Args:
            q: configuration, shape (nq,).
            further: rows beyond loops as a function of the configuration, with the corrections
                that they want as values.
        """

    @abstractmethod
    def velocity(self, q: Array, v: Array, further: FurtherRows) -> Array:
        """The velocity nearest in the kinetic metric that all joints and rows allow, (nv,).

        Args:
            q: configuration, shape (nq,).
            v: velocity, shape (nv,).
            further: rows beyond loops, with rates as values.
        """


Formulation = MatrixFormulation | StateFormulation
"""A way to eliminate the reactions."""


@public
@dataclass(frozen=True)
class Augmented(MatrixFormulation):
    """The index-1 system with all reactions (paper 4, eq. 5), by its Schur complement."""

    def bind(self, scale: Array) -> BoundFormulation:
        """Return the formulation with work space."""
        return _BoundAugmented(scale)


class _BoundAugmented(BoundFormulation):
    def __init__(self, scale: Array) -> None:
        self._scale = scale

    def solve(
        self, M: Array, J: Array, f: Array, gamma: Array, max_rank: int | None = None
    ) -> tuple[Array, Array]:
        return Saddle(M, J, self._scale, max_rank=max_rank).solve(f, -gamma)


@public
@dataclass(frozen=True)
class Projected(MatrixFormulation):
    """The equations projected to the null space of the rows (paper 4, eq. 7).

    ``a = N M^-1 f - J^+ gamma`` with the M-weighted pseudoinverse ``J^+`` and ``N = I - J^+ J``:
    Gauss' principle of least constraint. No reactions are needed for the accelerations.
    """

    def bind(self, scale: Array) -> BoundFormulation:
        """Return the formulation with work space."""
        return _BoundProjected(scale)


class _BoundProjected(BoundFormulation):
    def __init__(self, scale: Array) -> None:
        self._scale = scale

    def solve(
        self, M: Array, J: Array, f: Array, gamma: Array, max_rank: int | None = None
    ) -> tuple[Array, Array]:
        rows = self._scale[:, None] * J
        # In coordinates z = L' a the metric is the identity and J^+ an ordinary pseudoinverse.
        _, L, weight = factor_mass(M, rows)
        inverse = np.linalg.inv(L)
        plus = _pseudoinverse(rows @ inverse.T, max_rank)
        free = inverse @ f
        along = free - plus @ (rows @ (inverse.T @ free))
        a = inverse.T @ (along - plus @ (self._scale * gamma))
        lam = plus.T @ (L.T @ a - free)
        if weight:  # see `saddle`
            lam -= weight * (rows @ a)
        return a, self._scale * lam


@public
@dataclass(frozen=True)
class Voronets(MatrixFormulation):
    """Minimal velocities: the equations of Voronets (paper 1, eqs. 54-59; paper 4, eqs. 10-13).

    ``v = F u`` with the independent velocities ``u``; they come from optimal coordinate
    partitioning and are chosen again when they get bad.

    Args:
        condition: condition number of the dependent columns, and size of ``F`` in the kinetic
            metric, above which to choose again.
    """

    condition: float = 1e2

    def bind(self, scale: Array) -> BoundFormulation:
        """Return the formulation with work space."""
        return _BoundVoronets(scale, self.condition)


class _BoundVoronets(BoundFormulation):
    def __init__(self, scale: Array, condition: float) -> None:
        self._scale, self._condition = scale, condition
        self._dependent = np.zeros(0, dtype=np.intp)
        self._rows = np.zeros(0, dtype=np.intp)
        self._chosen = False

    def solve(
        self, M: Array, J: Array, f: Array, gamma: Array, max_rank: int | None = None
    ) -> tuple[Array, Array]:
        rows = self._scale[:, None] * J
        size = np.sqrt(np.diagonal(M))
        if not size.all():  # coordinates that move no mass: see `saddle`
            size = np.sqrt(np.diagonal(factor_mass(M, rows)[0]))
        F = self._complement(rows, size, max_rank)
        if F is None:
            self._choose(M, rows, max_rank)
            F = self._complement(rows, size, max_rank)
        if F is None:  # dependent columns are bad whatever is chosen: close to a singularity
            F = self._complement(rows, size, max_rank, forced=True)
        assert F is not None
        drift = np.zeros(len(M))
        block = rows[np.ix_(self._rows, self._dependent)]
        drift[self._dependent] = -_solve(block, (self._scale * gamma)[self._rows])
        du = _solve(F.T @ M @ F, F.T @ (f - M @ drift))
        a = F @ du + drift
        lam = np.linalg.lstsq(rows.T, M @ a - f, rcond=1e-9)[0]
        return a, self._scale * lam

    def _complement(
        self, rows: Array, size: Array, max_rank: int | None, *, forced: bool = False
    ) -> Array | None:
        """``F`` with ``J F = 0``; None if the present choice is not good here.

        Args:
            rows: the rows.
            size: size of each velocity coordinate in the kinetic metric.
            max_rank: number of rows that can be independent at all.
            forced: take the present choice as it is.
        """
        n = rows.shape[1]
        if not self._chosen:
            return None
        block = rows[np.ix_(self._rows, self._dependent)]
        if not forced and len(block) and np.linalg.cond(block) > self._condition:
            return None
        independent = np.setdiff1d(np.arange(n), self._dependent)
        F = np.zeros((n, len(independent)))
        F[independent, np.arange(len(independent))] = 1.0
        F[self._dependent] = -_solve(block, rows[np.ix_(self._rows, independent)])
        if forced:
            return F
        # Dependent velocities that are large against the independent ones: choose others.
        gain = np.abs(F) * size[:, None] / size[independent]
        # Rows that were dependent where the choice was made may have become independent.
        scale = float(np.abs(rows).max(initial=1e-300)) * float(np.abs(F).max(initial=1.0))
        full = len(self._rows) == (len(rows) if max_rank is None else max_rank)
        missed = not full and np.abs(rows @ F).max(initial=0.0) > 1e-8 * scale
        return None if missed or gain.max(initial=0.0) > self._condition else F

    def _choose(self, M: Array, rows: Array, max_rank: int | None) -> None:
        """Choose dependent velocities, and as many independent rows."""
        from scipy.linalg import qr  # not needed to load a robot, and slow to import

        self._dependent, _ = dependent_coordinates(M, rows, max_rank=max_rank)
        columns = rows[:, self._dependent]
        if columns.size == 0:
            self._rows = np.zeros(0, dtype=np.intp)
        else:
            pivots = qr(columns.T, mode="r", pivoting=True)[1]
            self._rows = np.sort(pivots[: len(self._dependent)])
        self._chosen = True


def _pseudoinverse(A: Array, max_rank: int | None) -> Array:
    """Pseudoinverse with at most ``max_rank`` singular values."""
    if A.size == 0:
        return np.zeros(A.T.shape)
    U, values, V = np.linalg.svd(A, full_matrices=False)
    rank = min(
        int(np.sum(values > RANK * values[0])), len(values) if max_rank is None else max_rank
    )
    return np.asarray((V[:rank].T / values[:rank]) @ U[:, :rank].T)


def _solve(A: Array, B: Array) -> Array:
    """``A^-1 B``, also for empty systems."""
    if A.size == 0:
        return np.zeros(B.shape)
    try:
        return np.asarray(np.linalg.solve(A, B))
    except np.linalg.LinAlgError:
        raise SingularMass("the mass matrix of the minimal velocities is singular") from None
