"""Butcher tableaux of the explicit methods.

Sources: Hairer, Norsett, Wanner, "Solving Ordinary Differential Equations I" (Euler, Heun, RK4);
Bogacki, Shampine 1989; Dormand, Prince 1980; Dormand, Prince 8(5,3) with the coefficients that
SciPy ships.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import DOP853, RK23, RK45

__all__ = ["TABLEAUX", "Tableau"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Tableau:
    """An explicit Runge-Kutta method.

    Args:
        name: name of the method.
        a: stage weights, shape (s, s), strictly lower triangular.
        b: weights of the step, shape (s,).
        errors: weights whose sums estimate the error, each shape (s,) or (s + 1,), the last entry
            then belonging to the derivative at the end; empty for fixed steps only.
        order: order of the step.
        error_order: order of the error estimate, for the step control.
    """

    name: str
    a: Array
    b: Array
    errors: tuple[Array, ...]
    order: int
    error_order: int

    @property
    def c(self) -> Array:
        """Times of the stages, as fractions of the step."""
        return np.asarray(self.a.sum(axis=1))

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


def _scipy(name: str, method: type[RK23] | type[RK45], order: int) -> Tableau:
    """Tableau of one of SciPy's embedded methods; its error weights include the last derivative."""
    a = np.zeros((method.n_stages, method.n_stages))
    a[:, : method.A.shape[1]] = method.A
    return Tableau(name, a, np.array(method.B), (np.array(method.E),), order, order - 1)


def _dop853() -> Tableau:
    errors = (np.array(DOP853.E5), np.array(DOP853.E3))
    return Tableau("dop853", np.array(DOP853.A), np.array(DOP853.B), errors, 8, 7)


TABLEAUX: dict[str, Tableau] = {
    tableau.name: tableau
    for tableau in (
        Tableau("euler", np.zeros((1, 1)), np.array([1.0]), (), 1, 0),
        Tableau("heun", _lower((1.0,)), np.array([0.5, 0.5]), (), 2, 0),
        Tableau(
            "rk4",
            _lower((0.5,), (0.0, 0.5), (0.0, 0.0, 1.0)),
            np.array([1.0, 2.0, 2.0, 1.0]) / 6,
            (),
            4,
            0,
        ),
        _scipy("bs32", RK23, 3),
        _scipy("dopri5", RK45, 5),
        _dop853(),
    )
}
"""The methods by name."""
