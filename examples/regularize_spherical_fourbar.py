"""Spherical four-bar: five equations become two in a singular pose (paper 5, 7.1).

The reference configuration is flattened, where the Jacobian has rank 1 and elimination by rank
would keep one equation too few. The motion algebra of the open chains does not see the singularity.
"""

import numpy as np

import pinloop as pl
from common.program import start_program
from common.ranks import draw_singular_values
from pinloop.assembly.continuation import nearby_assembly


def main(plot: str | None = None) -> None:
    """Regularize, print what is left, and check it all over the motion."""
    robot = pl.load("urdf/spherical_fourbar.urdf")
    reduced = pl.regularize(robot)
    report = reduced.regularization
    assert report is not None
    print(report)
    print("\nU (equations of the cut joint: v_x v_y v_z w_x w_y):")
    print(np.array2string(report.loops[0].selection, precision=6, suppress_small=True))

    full, rows = pl.Constraints(robot, full=True), pl.Constraints(reduced)
    rng = np.random.default_rng(0)
    q = pl.assemble(robot)
    print("\nconfiguration                       rank of all 5     rank of 2  ")
    worst = 0.0
    jacobians: dict[str, list[np.ndarray]] = {"all five equations": [], "two equations": []}
    for step in range(8):
        ranks = [int(np.linalg.matrix_rank(c.jacobian(q), tol=1e-9)) for c in (full, rows)]
        note = "  flattened, singular" if step == 0 else ""
        print(f"{np.array2string(q, precision=3):36s}{ranks[0]:8d}{ranks[1]:17d}{note}")
        assert ranks[0] == ranks[1] == (1 if step == 0 else 2)
        worst = max(worst, _kernel_gap(full.jacobian(q), rows.jacobian(q)))
        for ones, kept in zip(jacobians.values(), (full, rows), strict=True):
            ones.append(kept.jacobian(q))
        moved = nearby_assembly(robot, q, rng)
        assert moved is not None
        q = moved
    print(f"\nmotions that two equations allow violate the five by {worst:.1e} at most")
    assert report.full_rows == 5 and report.rows == 2
    assert worst < 1e-9
    if plot:
        draw_singular_values(
            plot, "Spherical four-bar, flattened and in seven other configurations", jacobians
        )


def _kernel_gap(full: np.ndarray, rows: np.ndarray) -> float:
    """Largest violation of the full rows by a unit motion that the reduced rows allow."""
    _, values, directions = np.linalg.svd(rows)
    kernel = directions[int(np.sum(values > 1e-9)) :].T
    return float(np.abs(full @ kernel).max(initial=0.0))


if __name__ == "__main__":
    start_program(main, "Rows of a spherical four-bar.")
