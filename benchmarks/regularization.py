"""What regularization gains: time of one acceleration, and condition of ``J M^-1 J'``.

Run with ``python -m benchmarks.regularization`` from the root of the repository. Both columns solve
the same constrained acceleration; the full rows are singular and need a solver that finds ranks
(least squares by SVD), the reduced ones a Cholesky factorisation.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

import pinloop as pl
from pinloop.assembly.continuation import nearby_assembly

Array = NDArray[np.float64]

ROBOTS = ("spherical_fourbar", "prrr3", "palletizer")


def main() -> None:
    """Print the table."""
    print(f"{'robot':20s}{'rows':>10s}{'condition':>22s}{'us per acceleration':>24s}{'ratio':>8s}")
    for name in ROBOTS:
        robot = pl.load(f"urdf/{name}.urdf")
        reduced = pl.regularize(robot)
        q = nearby_assembly(robot, pl.assemble(robot), np.random.default_rng(1))
        assert q is not None
        full_rows, few_rows = pl.Constraints(robot), pl.Constraints(reduced)
        v = _motion(full_rows, q)
        slow, fast = (
            _acceleration(full_rows, q, v, _singular),
            _acceleration(few_rows, q, v, _regular),
        )
        assert np.allclose(slow(), fast(), rtol=1e-7, atol=1e-7)
        times = _time(slow), _time(fast)
        conditions = _condition(full_rows, q), _condition(few_rows, q)
        print(
            f"{name:20s}{len(full_rows):5d} ->{len(few_rows):2d}"
            f"{conditions[0]:12.1e} -> {conditions[1]:6.1e}"
            f"{1e6 * times[0]:13.0f} -> {1e6 * times[1]:5.0f}{times[0] / times[1]:9.2f}x"
        )


def _motion(rows: pl.Constraints, q: Array) -> Array:
    """A velocity that the loops allow."""
    v = np.random.default_rng(2).normal(size=rows.robot.nv)
    J = rows.jacobian(q)
    return np.asarray(v - np.linalg.pinv(J, rcond=1e-9) @ (J @ v))


def _condition(rows: pl.Constraints, q: Array) -> float:
    """Condition number of ``J M^-1 J'``."""
    J = rows.jacobian(q)
    return float(np.linalg.cond(J @ np.linalg.solve(_mass(rows.robot, q), J.T)))


def _mass(robot: pl.Mechanism, q: Array) -> Array:
    M = pin.crba(robot.model, robot.model.createData(), q)
    return np.asarray(np.triu(M) + np.triu(M, 1).T)


def _singular(A: Array, b: Array) -> Array:
    return np.asarray(np.linalg.lstsq(A, b, rcond=1e-10)[0])


def _regular(A: Array, b: Array) -> Array:
    return np.asarray(cho_solve(cho_factor(A), b))


def _acceleration(
    rows: pl.Constraints, q: Array, v: Array, solve: Callable[[Array, Array], Array]
) -> Callable[[], Array]:
    """Closure that computes ``a`` from ``M a + nle = J' lam``, ``J a + gamma = 0``."""
    robot, data = rows.robot, rows.robot.model.createData()

    def accelerate() -> Array:
        M = pin.crba(robot.model, data, q)
        factor = cho_factor(np.triu(M) + np.triu(M, 1).T)
        free = -cho_solve(factor, pin.nonLinearEffects(robot.model, data, q, v))
        J = rows.jacobian(q)
        turned = cho_solve(factor, J.T)
        lam = solve(J @ turned, -(rows.gamma(q, v) + J @ free))
        return np.asarray(free + turned @ lam)

    return accelerate


def _time(function: Callable[[], Array], repeats: int = 7, calls: int = 200) -> float:
    """Median over repeats of the mean time of a call [s]."""
    means = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(calls):
            function()
        means.append((time.perf_counter() - start) / calls)
    return statistics.median(means)


if __name__ == "__main__":
    main()
