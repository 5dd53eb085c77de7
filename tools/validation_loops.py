"""What the programs of ``examples/`` say about papers 4 and 5: locks, and rows of loops.

The papers' numbers are those of the programs and of ``tests/papers/``; those that only count
something stand here, once.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np

import pinloop as pl
from pinloop.assembly.continuation import nearby_assembly

from .pages import ROOT
from .validation_lines import NO_NUMBER, Line, claim, equal

__all__ = ["arm", "fourbar", "palm", "pendulum", "prrr"]


# -- paper 4 --------------------------------------------------------------------------------


def pendulum(module: ModuleType) -> Iterator[Line]:
    """Section 6."""
    stories = module.main()
    for name, time in module.LOCKS:
        naive, kept = (module.jumps(stories[kind], time) for kind in ("naive", "consistent"))
        yield claim(
            f"planar 3R, lock of {name}: momenta of the others, velocity set to zero",
            "not conserved",
            f"jump by {naive[0]:.0%}",
            naive[0] > 1e-2,
        )
        yield claim(
            f"planar 3R, lock of {name}: the same, momentum kept",
            "continuous",
            f"jump by {kept[0]:.0e}",
            kept[0] < 1e-12,
        )
        yield claim(
            f"planar 3R, lock of {name}: energy [J]", "jumps down", f"{kept[1]:.2f}", kept[1] < 0
        )
    story = stories["consistent"]
    loss = [module.jumps(story, time)[1] for _, time in module.LOCKS]
    change = float(story.energy[-1] - story.energy[0] - sum(loss))
    yield claim(
        "planar 3R: energy apart from the locks [J]", "preserved", f"{abs(change):.0e}",
        abs(change) < 1e-6,
    )  # fmt: skip
    robot = pl.load(module.ROBOT)
    yield claim(
        "planar 3R: conditions 22, 32 and 37",
        "identical results",
        f"differ by {_forms_apart(robot, module):.0e}",
        _forms_apart(robot, module) < 1e-12,
    )


def _forms_apart(robot: pl.Mechanism, module: ModuleType) -> float:
    """Largest difference of the velocities after the second lock, relative."""
    (first, _), (second, _) = module.LOCKS
    old, new = (
        pl.Mode((pl.simulation.Locked(first),)),
        pl.Mode((pl.simulation.Locked(first), pl.simulation.Locked(second))),
    )
    q, v = np.array([0.8, 0.4, -0.3]), np.array([1.0, 0.0, -2.0])
    forms = (pl.Augmented(), pl.Projected(), pl.Voronets())
    made = [pl.transition(robot, q, v, old, new, form).v_plus for form in forms]
    return float(max(np.abs(one - made[0]).max() for one in made) / np.abs(made[0]).max())


def arm(module: ModuleType) -> Iterator[Line]:
    """Section 7."""
    apart = module.main()
    yield equal("industrial arm: gear ratio", 100, int(module.GEAR))
    for name, distance in apart.items():
        yield claim(
            f"industrial arm, {name}: where it comes to a halt",
            "different",
            f"{1e3 * distance:.0f} mm apart",
            distance > 0.01,
        )


def palm(module: ModuleType) -> Iterator[Line]:
    """The application that section 8 names."""
    run = module.main()
    freedoms = [run.robot.nv - change.rank_after[0] for change in run.transitions]
    yield claim(
        "spherical five-bar: degrees of freedom after each lock",
        NO_NUMBER,
        " and ".join(map(str, freedoms)),
        freedoms == [1, 0],
    )
    yield claim(
        "spherical five-bar: loop closed through both locks [m]",
        NO_NUMBER,
        f"{run.closure().max():.0e}",
        bool(run.closure().max() < 1e-10),
    )


# -- paper 5 --------------------------------------------------------------------------------


def fourbar(module: ModuleType) -> Iterator[Line]:
    """Section 7.1: the linkage that the printed Jacobian describes, and the flat one shipped."""
    from tests.papers import test_paper5 as paper

    module.main()
    robot = pl.from_screws(paper.four_bar())
    report = pl.regularize(robot).regularization
    assert report is not None
    yield equal("spherical four-bar: equations of the cut hinge", paper.PAPERS_U.shape[1],
                report.full_rows)  # fmt: skip
    yield equal("spherical four-bar: sufficient equations", paper.PAPERS_U.shape[0], report.rows)
    ranks = [np.linalg.matrix_rank(paper.papers_jacobian(*q), tol=1e-9)
             for q in np.random.default_rng(0).uniform(-3, 3, (20, 2))]  # fmt: skip
    ours = [_rank(robot, nearby_assembly(robot, pl.assemble(robot), np.random.default_rng(k)))
            for k in range(5)]  # fmt: skip
    yield equal("spherical four-bar: rank, regular", int(max(ranks)), max(ours))
    yield claim(
        "spherical four-bar: all entries of H at 20 configurations",
        "printed",
        f"differ by {_jacobians_apart(paper, robot):.0e}",
        _jacobians_apart(paper, robot) < 1e-12,
    )
    rows = report.selection("J3")[:, paper.PAPERS_ORDER]
    gap = float(np.abs(rows.T @ rows - paper.PAPERS_U.T @ paper.PAPERS_U).max())
    yield claim(
        "spherical four-bar: space of the combinations U",
        "6 digits",
        f"differs by {gap:.0e}",
        gap < 3e-6,
    )
    yield equal("spherical four-bar, flat: equations that one configuration suggests", 1,
                _rank(*_flat()))  # fmt: skip
    flat = pl.regularize(_flat()[0]).regularization
    assert flat is not None
    yield equal("spherical four-bar, flat: sufficient equations", 2, flat.rows)


def _flat() -> tuple[pl.Mechanism, Any]:
    robot = pl.load(ROOT / "urdf" / "spherical_fourbar.urdf")
    return robot, robot.neutral


def _rank(robot: pl.Mechanism, q: Any) -> int:
    return int(np.linalg.matrix_rank(pl.Constraints(robot, full=True).jacobian(q), tol=1e-9))


def _jacobians_apart(paper: ModuleType, robot: pl.Mechanism) -> float:
    """Largest difference of an entry of the printed Jacobian from ours."""
    worst = 0.0
    for q1, q2 in np.random.default_rng(1).uniform(-3, 3, (20, 2)):
        q = robot.configuration({"J1": q1, "J2": q2, "J4": 0.0})
        ours = paper.papers_rows(-pl.Constraints(robot).jacobian(q), robot)
        x_axis = robot.placement(robot.neutral, "J3/B").rotation[:, 0]
        ours = paper.turned(np.arctan2(x_axis[1], x_axis[0])) @ ours
        worst = max(worst, float(np.abs(ours - paper.papers_jacobian(q1, q2)).max()))
    return worst


def prrr(module: ModuleType) -> Iterator[Line]:
    """Section 7.2."""
    module.main()
    robot = pl.load(ROOT / "urdf" / "prrr3.urdf")
    together = pl.regularize(robot).regularization
    assert together is not None
    rank = _rank(robot, nearby_assembly(robot, pl.assemble(robot), np.random.default_rng(0)))
    alone = [module.rows_alone(robot, loop.name) for loop in robot.loops]
    yield equal("3-PRRR: joint variables of the tree", 10, robot.nv)
    yield equal("3-PRRR: equations of the two cut hinges", 10, together.full_rows)
    yield equal("3-PRRR: redundant equations among them", 3, together.full_rows - rank)
    yield equal("3-PRRR: equations of each loop alone", 4, max(alone))
    yield equal("3-PRRR: degrees of freedom of each loop alone, of 7 variables", 3, 7 - max(alone))
    yield equal("3-PRRR: equations, loop by loop", 8, sum(alone))
    yield equal("3-PRRR: redundant ones among these", 1, sum(alone) - rank)
    yield Line("3-PRRR: equations, loops in sequence", "left open", together.rows, "goes further")
    yield Line("3-PRRR: redundant ones among these", "left open", together.rows - rank,
               "goes further")  # fmt: skip
