"""Numbers of ``docs/regularization.md``: ranks, rows and motion groups of the worked examples.

Run with ``python -m tools.regularization --write`` from the root of the repository; without
``--write`` the tables are printed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import pinloop as pl
from pinloop.assembly.search import nearby_assembly

from .pages import DOCS, ROOT, print_or_write, table

__all__ = ["BLOCKS"]

Array = NDArray[np.float64]

PAGE = DOCS / "regularization.md"


def _robot(name: str) -> pl.Mechanism:
    return pl.load(ROOT / "urdf" / f"{name}.urdf")


def _rank(rows: pl.Constraints, q: Array) -> int:
    return int(np.linalg.matrix_rank(rows.jacobian(q), tol=1e-9))


def _elsewhere(robot: pl.Mechanism, seed: int = 0) -> Array:
    q = nearby_assembly(robot, pl.assemble(robot), np.random.default_rng(seed))
    assert q is not None
    return q


def fourbar_ranks() -> str:
    """Ranks of five and of two rows, in the flat configuration and beside it."""
    robot = _robot("spherical_fourbar")
    smaller = pl.regularize(robot)
    full, few = pl.Constraints(robot, full=True), pl.Constraints(smaller)
    rows = []
    for driven in (0.0, 0.2, 0.4, 0.6):
        q = pl.assemble(robot, {"joint_1": driven})
        where = "beside it" if driven else "flat"
        angles = ", ".join(f"{angle:.2f}" for angle in q)
        rows.append([where, angles, str(_rank(full, q)), str(_rank(few, q))])
    head = ["configuration", "q [rad]", "rank of all rows", "rank of the reduced ones"]
    return table(head, rows, "llrr")


def fourbar_rows() -> str:
    """The matrix U of the four-bar."""
    report = pl.regularize(_robot("spherical_fourbar")).regularization
    assert report is not None
    rows = [[f"{x:.6f}" for x in row + 0.0] for row in report.loops[0].selection]
    return table(["v_x", "v_y", "v_z", "w_x", "w_y"], rows, "rrrrr")


def prrr_chains() -> str:
    """Motion groups of the chains of the 3-PRRR, in the order of its loops."""
    report = pl.regularize(_robot("prrr3")).regularization
    assert report is not None
    rows = [
        [f"`{loop.loop}`", loop.algebra_a, loop.algebra_b, f"{loop.full_rows} → {loop.rows}"]
        for loop in report.loops
    ]
    return table(["loop", "chain to A", "chain to B", "rows"], rows, "lllr")


def prrr_rows() -> str:
    """Rows and redundant ones: none removed, loop by loop, in sequence."""
    robot = _robot("prrr3")
    rank = _rank(pl.Constraints(robot, full=True), _elsewhere(robot))
    names = [loop.name for loop in robot.loops]
    alone = 0
    for name in names:
        single = robot.without_loops([other for other in names if other != name])
        alone += len(pl.Constraints(pl.regularize(single)))
    counts = {
        "all": len(pl.Constraints(robot, full=True)),
        "each loop by itself": alone,
        "loops in sequence": len(pl.Constraints(pl.regularize(robot))),
    }
    rows = [[how, str(count), str(count - rank)] for how, count in counts.items()]
    return table(["rows", "number", "redundant"], rows, "lrr")


def robots() -> str:
    """Rows before and after, rank and mobility of every robot with loops."""
    rows = []
    for path in sorted((ROOT / "urdf").glob("*.urdf")):
        robot = pl.load(path)
        if not robot.loops:
            continue
        smaller, q = pl.regularize(robot), _elsewhere(robot)
        full, few = pl.Constraints(robot, full=True), pl.Constraints(smaller)
        rank = _rank(full, q)
        assert _rank(few, q) == rank
        rows.append([f"`{path.stem}`", str(len(robot.loops)), str(len(full)), str(len(few)),
                     str(rank), str(robot.nv - rank)])  # fmt: skip
    return table(["robot", "loops", "rows", "kept", "rank", "mobility"], rows, "lrrrrr")


BLOCKS = {
    "fourbar ranks": fourbar_ranks,
    "fourbar rows": fourbar_rows,
    "prrr chains": prrr_chains,
    "prrr rows": prrr_rows,
    "robots": robots,
}
"""Text between the marks of the page, by name."""


if __name__ == "__main__":
    print_or_write(PAGE, ((name, make()) for name, make in BLOCKS.items()), __doc__)
