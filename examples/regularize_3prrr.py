"""3-PRRR translational manipulator: ten rows become seven (paper 5, 7.2, and past it).

Each loop alone keeps four rows, eight together: one is still redundant, because neither loop knows
of the other. Processed in sequence, the first loop ties the platform to pure translations, and the
second loop then needs three rows only.
"""

import numpy as np

import pinloop as pl
from pinloop.closing import nearby_assembly


def main() -> None:
    """Compare no regularization, loop by loop, and all loops together."""
    robot = pl.load("urdf/prrr3.urdf")
    together = pl.regularize(robot).regularization
    assert together is not None
    print(together)

    alone = {loop.name: _alone(robot, loop.name) for loop in robot.loops}
    q = pl.assemble(robot)
    moved = nearby_assembly(robot, q, np.random.default_rng(0))
    assert moved is not None
    rank = int(np.linalg.matrix_rank(pl.Constraints(robot, full=True).jacobian(moved), tol=1e-9))

    print("\nconstraints                     rows   redundant")
    for label, rows in (
        ("as they are", together.full_rows),
        ("each loop by itself (paper 5)", sum(alone.values())),
        ("loops in sequence", together.rows),
    ):
        print(f"{label:30s}{rows:6d}{rows - rank:12d}")
    assert (together.full_rows, sum(alone.values()), together.rows, rank) == (10, 8, 7, 7)
    assert together.mobility == 3


def _alone(robot: pl.Mechanism, loop: str) -> int:
    """Rows that one loop keeps if the others are opened."""
    others = [other.name for other in robot.loops if other.name != loop]
    single = pl.regularize(robot.without_loops(others)).regularization
    assert single is not None
    return single.rows


if __name__ == "__main__":
    main()
