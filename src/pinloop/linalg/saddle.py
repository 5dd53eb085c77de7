"""The one solver of the saddle problem, for rows of any rank (Gauss' principle).

Accelerations, projections of positions and velocities, and impulses are all

    minimise 0.5 (x - M^-1 f)' M (x - M^-1 f)   subject to   J x = b,

with ``M x = f + J' lam``. ``x`` is unique; ``lam`` is not where rows are redundant: the smallest
one is returned, and which of its entries are determined. Knows no robot.

``M`` may be singular, as that of an open chain with massless links at its end, if it is positive
definite for all motions that the rows allow: ``F'MF > 0`` for ``J F = 0``. Then ``M + w J'J`` is
positive definite for ``w > 0`` and takes the place of ``M``: on ``J x = b`` it adds the constant
``w b'b / 2`` to what is minimised, and ``w J x`` to ``lam``, which is taken off again.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..boundary.marks import Array
from ..errors import BadValue, NotFinite, PinloopError, SingularMass
from ..tolerances import LIGHT, RANK, ROW_NOISE, SINGULAR_MASS, WELL_CONDITIONED
from .dense import count_independent, lapack, orthonormal, solve_triangle


class Saddle:
    """Factorised saddle problem, for any number of right-hand sides.

    Args:
        M: mass matrix, shape (n, n), symmetric, positive definite where ``J x = 0``.
        J: rows, shape (m, n).
        scale: unit of each row's multiplier, shape (m,), so that the smallest multipliers do not
            depend on the unit of length; 1 by default.
        tolerance: singular values of ``L^-1 J'`` below this fraction of the largest one count as
            zero; more than rounding where rows come from a state off the manifold.
        max_rank: number of rows that can be independent at all, if that is known to be less.
        floor: singular values of ``L^-1 J'`` below which rows are rounding noise, if that is more
            than of rows of size one.

    Attributes:
        mass: ``M``, or what takes its place where it is singular, shape (n, n).

    Raises:
        SingularMass: ``M`` is not positive definite where ``J x = 0``.
        NotFinite: ``M`` has entries that are infinite or no numbers.
    """

    def __init__(
        self,
        M: Array,
        J: Array,
        scale: Array | None = None,
        *,
        tolerance: float = RANK,
        max_rank: int | None = None,
        floor: float = 0.0,
    ) -> None:
        self._tolerance = tolerance
        self._max_rank = len(J) if max_rank is None else max_rank
        self._scale = np.ones(len(J)) if scale is None else scale
        self._rows = self._scale[:, None] * J
        self.mass, self._L, self._weight = factor_mass(M, self._rows)
        M = self.mass
        self._Y = solve_triangle(self._L, self._rows.T)
        # Of a few numbers Python's min is several times as fast as NumPy's.
        lightest = min(1.0, *M.diagonal().tolist()) if len(M) else 1.0
        self._floor = max(floor, ROW_NOISE / math.sqrt(lightest))
        self._S: Array | None = None
        if self._Y.size and self._max_rank >= len(J):
            # For matrices of this size the method takes half as long as the operator.
            gram = self._Y.T.dot(self._Y)
            size = float(lapack().dlange("1", gram))
            factor, info = lapack().dpotrf(gram, lower=1)
            inverse = lapack().dpocon(factor, size, uplo="L")[0] if info == 0 else 0.0
            if inverse > max(WELL_CONDITIONED, tolerance**2) and inverse * size > self._floor**2:
                self._S = factor

    @property
    def rank(self) -> int:
        """Number of independent rows."""
        if self._S is not None:
            return int(self._Y.shape[1])
        return len(self._singular[1])

    @property
    def determined(self) -> NDArray[np.bool_]:
        """Per row, whether its multiplier is unique, shape (m,)."""
        rows = self._Y.shape[1]
        if self._S is not None:
            return np.ones(rows, dtype=bool)
        V = self._singular[2]
        # Zero where the row takes part in no dependency: the null space of Y is orthogonal to V.
        outside = 1.0 - np.sum(V**2, axis=0) if len(V) else np.ones(rows)
        return np.asarray(outside < RANK)

    @property
    def dependencies(self) -> Array:
        """Orthonormal combinations of the scaled rows that vanish, shape (m - rank, m).

        ``J x = b`` has solutions where they vanish for ``scale * b`` too.
        """
        if self._S is not None:
            return np.zeros((0, self._Y.shape[1]))
        V = self._singular[2]
        if len(V) == 0:
            return np.eye(self._Y.shape[1])
        return np.asarray(np.linalg.svd(V)[2][len(V) :])

    def gram(self) -> Array:
        """``J M^-1 J'`` of the scaled rows, shape (m, m)."""
        return np.asarray(self._Y.T @ self._Y)

    @property
    def largest(self) -> float:
        """Largest singular value of the rows in the metric of ``M``; zero without rows."""
        return float(np.linalg.norm(self._Y, 2)) if self._Y.size else 0.0

    def vanishing(self) -> tuple[Array, Array, Array]:
        """`dependencies` along singular vectors, their values, and ``x`` that they push to.

        The values are rounding noise on a manifold of constant rank. Where ``max_rank`` is less
        than the rank they say how far the combinations are from vanishing; ``M x = J' lam``.

        Returns:
            combinations, shape (k, m), values, shape (k,), and ``x``, shape (k, n).
        """
        combinations = self.dependencies
        pushed = combinations @ self._Y.T
        squares, turned = np.linalg.eigh(pushed @ pushed.T)
        values = np.sqrt(np.maximum(squares, 0.0))
        return (
            turned.T @ combinations,
            values,
            solve_triangle(self._L, (turned.T @ pushed).T, transposed=1).T,
        )

    def turning(self, value: float, forces: Array, rates: Array) -> Array:
        """How the independent combinations of rows turn towards a vanishing one.

        Of first order, as singular vectors turn: over the difference of the squares of values.

        Args:
            value: the singular value of the one that vanishes.
            forces: change of ``J' lam - M x`` at fixed ``lam`` and ``x``, those of the vanishing
                one, shape (n, k).
            rates: change of ``J x`` at fixed ``x``, shape (m, k).

        Returns:
            what each scaled row gains, per unit of what the vanishing one does, shape (m, k).
        """
        U, values, V = self._singular
        along = (U.T @ solve_triangle(self._L, forces)).T * values + (
            V @ (self._scale * rates.T).T
        ).T
        return np.asarray(V.T @ (along / (values**2 - value**2)).T)

    def solve(self, f: Array, b: Array) -> tuple[Array, Array]:
        """Solve ``M x = f + J' lam``, ``J x = b``; least squares in ``b`` if that is impossible.

        Args:
            f: forces, shape (n,), or one column each for several problems, shape (n, k).
            b: wanted row values, shape (m,) or (m, k).

        Returns:
            ``x`` and the smallest ``lam``, in the shapes of ``f`` and ``b``.
        """
        free = solve_triangle(self._L, f)
        if self._Y.shape[1] == 0:
            return solve_triangle(self._L, free, transposed=1), np.zeros(b.shape)
        missing = (self._scale * b.T).T
        missing -= self._Y.T.dot(free)
        if self._S is not None:
            lam: Array = lapack().dpotrs(self._S, missing, lower=1)[0]
            free += self._Y.dot(lam)
        else:
            U, values, V = self._singular
            weights = (V.dot(missing).T / values).T
            free += U.dot(weights)
            lam = V.T.dot((weights.T / values).T)
        x = solve_triangle(self._L, free, transposed=1)
        if self._weight:
            lam = lam - self._weight * (self._rows @ x)
        return x, (self._scale * lam.T).T

    def project(self, b: Array) -> Array:
        """Shortest ``x`` in the metric of ``M`` with ``J x = b``, shape (n,)."""
        return self.solve(np.zeros(len(self._L)), b)[0]

    def constraint_metric(self) -> Array:
        """``P = J' (J M^-1 J')^+ J``, shape (n, n) (paper 1, eq. 67)."""
        # Orthonormal columns that span the rows, in coordinates in which M is the identity.
        # By reflections: from the Cholesky factor they are so but for the condition squared.
        basis = self._singular[0] if self._S is None else orthonormal(self._Y[None])[0][0]
        root = self._L @ basis
        return np.asarray(root @ root.T)

    @cached_property
    def _singular(self) -> tuple[Array, Array, Array]:
        """Singular vectors and values of ``L^-1 J'``, without the vanishing ones."""
        if self._Y.size == 0:
            return np.zeros((len(self._L), 0)), np.zeros(0), np.zeros((0, self._Y.shape[1]))
        U, values, V, info = lapack().dgesdd(self._Y, full_matrices=0)
        if info != 0:
            raise BadValue("the rows have no singular values; some state or force is not finite")
        rank = count_independent(values.tolist(), self._max_rank, self._tolerance, self._floor)
        return U[:, :rank], values[:rank], V[:rank]


class Elimination:
    """Coordinates whose values are known, taken out of ``M x = f + J' lam``, ``J x = b``.

        M_ff x_f = f_f - M_fk x_k + J_f' lam,      J_f x_f = b - J_k x_k

    Args:
        known: indices of the known coordinates, in order.
        size: number of all coordinates.

    Attributes:
        free: indices of the others.
    """

    def __init__(self, known: NDArray[np.intp], size: int) -> None:
        moving = np.ones(size, dtype=bool)
        moving[known] = False
        self.known, self.free = known, moving.nonzero()[0]
        self._size = size
        self._free_free = self.free[:, None] * size + self.free
        self._free_known = self.free[:, None] * size + known

    def reduce(
        self, M: Array, f: Array, J: Array, b: Array, values: Array | None = None
    ) -> tuple[Array, Array, Array, Array]:
        """The system of the free coordinates.

        Args:
            M: mass matrix, shape (n, n).
            f: forces, shape (n,).
            J: rows, shape (m, n).
            b: wanted row values, shape (m,).
            values: of the known coordinates; zeros if None.

        Returns:
            ``M_ff``, and what takes the place of ``f``, ``J`` and ``b``.
        """
        f = f.take(self.free)
        if values is not None:
            f -= M.take(self._free_known) @ values
            b = b - J.take(self.known, 1) @ values
        return M.take(self._free_free), f, J.take(self.free, 1), b

    def restore(self, x: Array, values: Array | None = None) -> Array:
        """All coordinates from the free ones and those that are known, shape (n,)."""
        whole = np.zeros(self._size)
        whole[self.free] = x
        if values is not None:
            whole[self.known] = values
        return whole


def factor_mass(M: Array, rows: Array) -> tuple[Array, Array, float]:
    """Cholesky factor of a mass matrix, or of what takes its place where that is singular.

    Args:
        M: mass matrix, shape (n, n).
        rows: what restricts the motion, shape (m, n).

    Returns:
        ``M + w rows' rows``, its lower factor, and ``w``, which is 0 if ``M`` is regular.

    Raises:
        SingularMass: it is singular for motions that the rows allow.
    """
    if M.size == 0:
        return M, M, 0.0
    L, light = _factored(M)
    if light is None:
        return M, L, 0.0
    least = _least_eigenvalue(M)
    square = rows.T @ rows
    size = float(np.trace(square))
    weight = float(np.trace(M)) / size if size > 0 else 0.0
    whole = M + weight * square
    # Of bodies that are light but not massless both will do: what is better conditioned is better.
    if weight > 0 and _least_eigenvalue(whole) > max(least, SINGULAR_MASS):
        return whole, lapack().dpotrf(whole, lower=1, clean=1)[0], weight
    if least > SINGULAR_MASS:
        return M, L, 0.0
    raise mass_error(M, light + 1)


def _factored(M: Array) -> tuple[Array, int | None]:
    """Lower Cholesky factor, and the first coordinate with hardly any inertia of its own."""
    L, info = lapack().dpotrf(M, lower=1, clean=1)
    if info != 0:
        return L, abs(int(info)) - 1
    own, whole = L.diagonal().tolist(), M.diagonal().tolist()
    for number, (root, inertia) in enumerate(zip(own, whole, strict=True)):
        if not root * root > LIGHT * inertia:
            return L, number
    return L, None


def _least_eigenvalue(M: Array) -> float:
    """Of ``M`` with ones on its diagonal; -inf if it is not finite or has a negative diagonal."""
    inertia = M.diagonal()
    if not np.all(np.isfinite(M)) or inertia.min() < 0:
        return -np.inf
    size = np.sqrt(np.where(inertia > 0, inertia, 1.0))
    return float(np.linalg.eigvalsh(M / np.outer(size, size))[0])


def solve_mass(M: Array, f: Array) -> Array:
    """``M^-1 f`` for a symmetric positive definite matrix.

    Raises:
        SingularMass: ``M`` is not positive definite.
        NotFinite: ``M`` has entries that are infinite or no numbers.
    """
    if f.size == 0:
        return np.zeros(f.shape)
    _, x, info = lapack().dposv(M, f, lower=1)
    if info != 0:
        raise mass_error(M, info)
    return np.asarray(x)


def mass_error(M: Array, info: int = 0) -> PinloopError:
    """Why a mass matrix has no Cholesky factor; ``info`` is LAPACK's, 0 if it is not known."""
    if not np.isfinite(M).all():
        return NotFinite(
            "the mass matrix is not finite, as the configuration is not; the motion is too fast "
            "or too stiff for the step, or the start is no state"
        )
    where = f" (coordinate {info - 1})" if info > 0 else ""
    return SingularMass(
        f"the mass matrix is not positive definite{where}; some body moves without mass or inertia"
    )


def from_upper(M: Array) -> Array:
    """The symmetric matrix of which only the upper triangle is written, as by `pin.crba`."""
    return np.asarray(np.triu(M) + np.triu(M, 1).T)
