"""Butcher tableaux.

Sources: Hairer, Norsett, Wanner, "Solving Ordinary Differential Equations I" (Euler, Heun, RK4);
Bogacki, Shampine 1989; Dormand, Prince 1980; Dormand, Prince 8(5,3) with the coefficients that
SciPy ships; Hairer, Wanner, "Solving Ordinary Differential Equations II", IV.5 and IV.8 (Radau).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import scipy
from numpy.typing import NDArray

from ..boundary.marks import Array
from ..errors import BadValue
from ..tolerances import SAME


@dataclass(frozen=True, eq=False)
class Tableau:
    """A Runge-Kutta method.

    Args:
        name: name of the method.
        a: stage weights, shape (s, s): strictly lower triangular, or of any kind if the last stage
            is the end of the step.
        b: weights of the step, shape (s,).
        errors: weights whose sums estimate the error, each shape (s,) or (s + 1,), the last entry
            then belonging to the derivative at the end; empty for fixed steps only. Those of an
            implicit method are one of shape (s,), the rest of which belongs to the start.
        order: order of the step.
        error_order: order of the error estimate, for the step control.

    Raises:
        BadValue: the coefficients are those of no such method.
    """

    name: str
    a: Array
    b: Array
    errors: tuple[Array, ...]
    order: int
    error_order: int

    def __post_init__(self) -> None:
        if self.a.shape != (self.stages, self.stages) or (self.implicit and not self._ends_at_end):
            raise BadValue(
                f"tableau '{self.name}': a has shape {self.a.shape}; it must be strictly lower "
                f"triangular and {self.stages} x {self.stages}, as b has {self.stages} weights, or "
                "have b as its last row and one error estimate"
            )
        if abs(float(self.b.sum()) - 1.0) > SAME:
            raise BadValue(f"tableau '{self.name}': the weights b add up to {self.b.sum():.6g}, "
                           "not to 1")  # fmt: skip
        for weights in self.errors:
            if weights.shape not in ((self.stages,), (self.stages + 1,)):
                raise BadValue(f"tableau '{self.name}': an error estimate has {weights.size} "
                               f"weights for {self.stages} stages")  # fmt: skip

    @cached_property
    def c(self) -> Array:
        """Times of the stages, as fractions of the step."""
        return np.asarray(self.a.sum(axis=1))

    @cached_property
    def error_weights(self) -> Array:
        """Weights of all error estimates, those of the end last, shape (k, s + 1)."""
        table = np.zeros((len(self.errors), self.stages + 1))
        for row, weights in zip(table, self.errors, strict=True):
            row[: len(weights)] = weights
        return table

    @cached_property
    def implicit(self) -> bool:
        """Whether stages depend on themselves or on later ones."""
        return bool(np.any(np.triu(self.a)))

    @property
    def _ends_at_end(self) -> bool:
        """Whether the last stage is the end, and the error is estimated once from the stages."""
        sizes = [weights.shape for weights in self.errors]
        return np.allclose(self.a[-1], self.b, 0.0, SAME) and sizes == [(self.stages,)]

    @cached_property
    def looks_ahead(self) -> bool:
        """Whether an error estimate needs the derivative at the end of the step."""
        return bool(np.any(self.error_weights[:, -1] != 0.0))

    def amplification(self, z: NDArray[np.complex128]) -> NDArray[np.complex128]:
        """By what a step multiplies ``y`` of ``y' = (z / h) y``: ``1 + z b' (I - z a)^-1 1``.

        Hairer, Wanner II, IV.3. Of an explicit method it is a polynomial, as ``a`` is nilpotent.
        """
        powers = np.ones(self.stages)
        if self.implicit:
            matrices = np.eye(self.stages) - z[:, None, None] * self.a
            stages = np.linalg.solve(matrices, powers[:, None])[..., 0]
            return np.asarray(1.0 + z * (stages @ self.b))
        growth = [1.0]
        for _ in range(self.stages):
            growth.append(float(self.b @ powers))
            powers = self.a @ powers
        return np.asarray(np.polynomial.polynomial.polyval(z, growth))

    @property
    def outruns_quintics(self) -> bool:
        """Whether a quintic, whose slope is of fifth order, is a worse dense output than it is."""
        return self.order > 5

    @property
    def stages(self) -> int:
        """Number of stages."""
        return len(self.b)


def _lower(*rows: tuple[float, ...]) -> Array:
    """Strictly lower triangular matrix from its rows below the first."""
    size = len(rows) + 1
    a = np.zeros((size, size))
    for index, row in enumerate(rows, start=1):
        a[index, : len(row)] = row
    return a


_EULER = Tableau("euler", np.zeros((1, 1)), np.array([1.0]), (), 1, 0)

_HEUN = Tableau("heun", _lower((1.0,)), np.array([0.5, 0.5]), (), 2, 0)

_RK4 = Tableau("rk4", _lower((1 / 2,), (0, 1 / 2), (0, 0, 1)), np.array([1, 2, 2, 1]) / 6, (), 4, 0)

_BS32 = Tableau(
    "bs32",
    _lower((1 / 2,), (0, 3 / 4)),
    np.array([2, 3, 4]) / 9,
    (np.array([-5 / 72, 1 / 12, 1 / 9, -1 / 8]),),
    3,
    2,
)

_DOPRI5 = Tableau(
    "dopri5",
    _lower(
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    ),
    np.array([35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84]),
    (np.array([-71 / 57600, 0, 71 / 16695, -71 / 1920, 17253 / 339200, -22 / 525, 1 / 40]),),
    5,
    4,
)


def _dop853() -> Tableau:
    """Dormand-Prince 8(5,3); its 80 coefficients are SciPy's, which is slow to import."""
    errors = (np.array(scipy.integrate.DOP853.E5), np.array(scipy.integrate.DOP853.E3))
    return Tableau(
        "dop853",
        np.array(scipy.integrate.DOP853.A),
        np.array(scipy.integrate.DOP853.B),
        errors,
        8,
        7,
    )


_KNOWN = {tableau.name: tableau for tableau in (_EULER, _HEUN, _RK4, _BS32, _DOPRI5)}


def collocation(c: Array, ends: Array) -> Array:
    """Weights of values at ``c`` for integrals from 0 to several ends, shape (ends, s).

    Exact for all powers below s: ``A V = C``, ``V_ij = c_i^(j-1)``, ``C_ij = ends_i^j / j``.
    """
    orders = np.arange(1, len(c) + 1)
    powers, integrals = c[:, None] ** (orders - 1), ends[:, None] ** orders / orders
    return np.asarray(np.linalg.solve(powers.T, integrals.T).T, dtype=np.float64)


def _radau(stages: int) -> Tableau:
    """Radau IIA: collocation in the zeros of ``P_(s-1) - P_s``, of which the end is one.

    The embedded method has the slope at the start as a further stage, with 1 over the real
    eigenvalue of ``A^-1`` as its weight, and is of order s.
    """
    zeros = np.polynomial.legendre.legroots([0.0] * (stages - 1) + [1.0, -1.0])
    c: Array = np.append(0.5 + 0.5 * np.sort(zeros)[:-1], 1.0)
    powers = c[:, None] ** np.arange(stages)
    a = collocation(c, c)
    rates = np.linalg.eigvals(a)
    at_start = float(rates[np.argmin(np.abs(rates.imag))].real)
    missed = np.asarray(-at_start * np.linalg.solve(powers.T, np.eye(stages)[0]), dtype=np.float64)
    name, order = f"radau{2 * stages - 1}", 2 * stages - 1
    return Tableau(name, a, a[-1].copy(), (missed,), order, stages)


_MADE: dict[str, Callable[[], Tableau]] = {
    "dop853": _dop853,
    "radau5": partial(_radau, 3),
    "radau9": partial(_radau, 5),
}

METHODS: tuple[str, ...] = (*_KNOWN, *_MADE)
"""Names of all methods."""


def get_tableau(name: str) -> Tableau:
    """The tableau of a method, by its name in `METHODS`."""
    if name not in _KNOWN and name in METHODS:
        _KNOWN[name] = _MADE[name]()
    return _KNOWN[name]
