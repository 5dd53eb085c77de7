"""Numbers of ``docs/regularization.md``: ranks, equations and motion groups of the worked examples.

Run with ``python -m tools.regularization --write`` from the root of the repository; without
``--write`` the tables are printed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import pinloop as pl
from pinloop.assembly.continuation import nearby_assembly

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
    """Ranks of all and of the reduced equations, in the flat configuration and near it."""
    robot = _robot("spherical_fourbar")
    smaller = pl.regularize(robot)
    full, few = pl.Constraints(robot, full=True), pl.Constraints(smaller)
    rows = []
    for driven in (0.0, 0.2, 0.4, 0.6):
        q = pl.assemble(robot, {"joint_1": driven})
        where = "near it" if driven else "flat"
        angles = ", ".join(f"{angle:.2f}" for angle in q)
        rows.append([where, angles, str(_rank(full, q)), str(_rank(few, q))])
    head = ["configuration", "q [rad]", "rank of all equations", "rank of the reduced ones"]
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
    return table(["loop", "chain to A", "chain to B", "equations"], rows, "lllr")


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
    return table(["equations", "number", "redundant"], rows, "lrr")


KINDS = {
    "bricard": "six hinges that should not move, but do",
    "delta": "three arms, three pairs of rods with ball joints; 6 internal degrees of freedom",
    "fivebar": "planar robot with two drives on a portal",
    "fourbar": "planar four-bar linkage",
    "palletizer": "four-axis palletizing robot with three parallelograms",
    "planar_3r": "open chain of three bars",
    "prrr3": "3-PRRR translational manipulator",
    "sevenbar": "planar linkage with two coupled loops",
    "six_axis_arm": "industrial arm, open",
    "spherical_fourbar": "four axes through one point, in a singular configuration",
    "spherical_threebar": "triangle of boxes on ball joints",
    "stewart": "platform on six legs",
}
"""What the robots of `urdf/` are."""


def robots() -> str:
    """Equations before and after, rank and mobility of every robot."""
    lines = []
    for path in sorted((ROOT / "urdf").glob("*.urdf")):
        robot = pl.load(path)
        reduced, q = pl.regularize(robot), _elsewhere(robot)
        full, few = pl.Constraints(robot, full=True), pl.Constraints(reduced)
        rank = _rank(full, q) if len(full) else 0
        assert rank == (_rank(few, q) if len(few) else 0)
        numbers = (len(robot.loops), len(full), len(few), rank, robot.nv - rank)
        lines.append([f"`{path.stem}`", KINDS[path.stem], *map(str, numbers)])
    head = ["robot", "what it is", "loops", "equations", "kept", "rank", "mobility"]
    return table(head, lines, "llrrrrr")


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
