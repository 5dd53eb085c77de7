"""3-PRRR translational manipulator: ten equations become seven (paper 5, 7.2, and past it).

Each loop alone keeps four equations, eight together: one is still redundant, because neither loop
knows of the other. Processed in sequence, the first loop restricts the platform to translations,
and the second loop then needs only three equations.
"""

import numpy as np

import pinloop as pl
from common.program import start_program
from common.ranks import draw_singular_values
from pinloop.assembly.continuation import nearby_assembly


def main(plot: str | None = None) -> None:
    """Compare no regularization, loop by loop, and all loops together."""
    robot = pl.load("urdf/prrr3.urdf")
    together = pl.regularize(robot).regularization
    assert together is not None
    print(together)

    alone = {loop.name: rows_alone(robot, loop.name) for loop in robot.loops}
    q = pl.assemble(robot)
    moved = nearby_assembly(robot, q, np.random.default_rng(0))
    assert moved is not None
    full = pl.Constraints(robot, full=True).jacobian(moved)
    rank = int(np.linalg.matrix_rank(full, tol=1e-9))

    print("\nconstraints                equations   redundant")
    for label, rows in (
        ("as they are", together.full_rows),
        ("each loop by itself (paper 5)", sum(alone.values())),
        ("loops in sequence", together.rows),
    ):
        print(f"{label:30s}{rows:6d}{rows - rank:12d}")
    assert (together.full_rows, sum(alone.values()), together.rows, rank) == (10, 8, 7, 7)
    assert together.mobility == 3
    if plot:
        less = pl.Constraints(pl.regularize(robot)).jacobian(moved)
        draw_singular_values(
            plot, "3-PRRR manipulator", {"all ten equations": [full], "seven equations": [less]}
        )


def rows_alone(robot: pl.Mechanism, loop: str) -> int:
    """Rows that one loop keeps if the others are opened."""
    others = [other.name for other in robot.loops if other.name != loop]
    single = pl.regularize(robot.without_loops(others)).regularization
    assert single is not None
    return single.rows


if __name__ == "__main__":
    start_program(main, "Rows of a 3-PRRR manipulator.")
