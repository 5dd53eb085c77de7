"""Random mechanisms through it all: diagnose, regularize, every formulation, a second of motion.

Planar, spherical and spatial loops, parallel legs, symmetric linkages, those that move though
their rows forbid it, those that nearly fold flat, and those whose numbers have few digits. The
oracles are singular values and one dense least-squares solution by NumPy.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator

import numpy as np
from tests import linkages, random_linkages, rounded, screw_tables
from tests import motion_by_hand as hand
from tests.reductions import configurations, jacobians, lost, rank
from tests.screw_tables import Array, Table
from tests.states import dense, moving

import pinloop as pl
from pinloop.dynamics import Formulation

from .campaign import Campaign, Case, Data, Finding
from .tables import plain, simplify_table, with_numbers

SAME = 1e-8
"""Difference of accelerations in the kinetic metric over the size of what drives them."""
LOST = 1e-6
"""Rate of all rows along what reduced ones allow."""
BALANCE = 1e-6
"""Part of the energy turned over that may be missing after a run."""
LITTLE = 1e-3
"""Energy below which nothing moves [J]."""
CLOSED = 1e-9
"""Residual of all loops in a run [m, rad]."""
UNTIL = 1.0
"""End of a run [s]."""
SECONDS = 20.0
"""Time of the processor that all of it may take [s]."""
NEAR = 1e-5, 1e-11
"""Singular values over the largest: between these rounding decides on the rank."""
FORMULATIONS: tuple[Formulation, ...] = (
    pl.Automatic("native"), pl.Automatic("python"), pl.Augmented(), pl.Projected(), pl.Voronets(),
    pl.ODCA(),
)  # fmt: skip

Drawn = tuple[Table, int | None]


def _loop(groups: tuple[str, ...], least: int, most: int) -> Callable[[int], Drawn]:
    """Draws loops in one of some groups."""

    def drawn(seed: int) -> Drawn:
        rng = np.random.default_rng(seed)
        count = int(rng.integers(least, most + 1))
        return random_linkages.group_loop(seed, str(rng.choice(groups)), count)[0], None

    return drawn


def _symmetric(seed: int) -> Drawn:
    rng = np.random.default_rng(seed)
    kind = int(rng.integers(4))
    if kind == 0:
        return linkages.hoberman(int(rng.integers(3, 7))), 1
    if kind == 1:
        return random_linkages.overconstrained(seed, "bricard"), None
    if kind == 2:
        lines = {"seen_from_crank": bool(rng.integers(2)), "in_line": bool(rng.integers(2))}
        return linkages.triple_parallelogram(**lines), 1
    return linkages.planar_3rrr(), 3


def _few_digits(seed: int) -> Drawn:
    rng = np.random.default_rng(seed)
    table, mobility = rounded.random_linkage(seed)
    count = int(rng.integers(3, 8))
    table = plain(rounded.table_with_digits(table, rng, count))
    return with_numbers(table, lambda x: rounded.digits(x, count)), mobility


def _known(seed: int) -> Drawn:
    return rounded.random_linkage(seed)


KINDS: dict[str, Callable[[int], Drawn]] = {
    "planar": _loop(("planar",), 4, 8),
    "spherical": _loop(("spherical",), 4, 7),
    "spatial": _loop(("free", "Schoenflies", "cylindrical", "helical planar"), 5, 9),
    "symmetric": _symmetric,
    "legs": lambda seed: (random_linkages.parallel_mechanism(seed), None),
    "graph": lambda seed: (random_linkages.graph(seed), None),
    "overconstrained": _known,
    "near singular": lambda seed: (random_linkages.near_singular(seed), 1),
    "rounded": _few_digits,
}


def draw_mechanism(rng: np.random.Generator) -> Data:
    """A mechanism of some kind, and the mobility that it has by construction, if known."""
    kind, seed = str(rng.choice([*KINDS])), int(rng.integers(2**31))
    table, mobility = KINDS[kind](seed)
    return {"kind": kind, "seed": seed, "table": plain(table), "mobility": mobility}


def simplify_mechanism(data: Data) -> Iterator[Data]:
    """With simpler tables, whose mobility nobody knows."""
    for table in simplify_table(data["table"]):
        yield data | {"table": table, "mobility": None}


def try_mechanism(data: Data) -> Case:
    """All of it, one after the other."""
    begin, kind = time.process_time(), data["kind"]
    findings = list[Finding]()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", pl.PinloopWarning)
        robot = screw_tables.build(data["table"])
        findings += _diagnosed(robot, data["mobility"])
        reduced = pl.regularize(robot)
        findings += _reduced(reduced, data["seed"])
        if robot.nv:
            q, v = moving(reduced, data["seed"] % 1000)
            sure = is_sure(robot, q)
            if sure:
                findings += _accelerated(robot, q, v)
                findings += _accelerated(reduced, q, v)
            findings += _run(reduced, q, v)
    seconds = time.process_time() - begin
    if seconds > SECONDS:
        findings.append(Finding("slow", f"{seconds:.1f} s of the processor"))
    return Case(kind, tuple(findings), ("sure",) if robot.nv and sure else ())


def _diagnosed(robot: pl.Mechanism, mobility: int | None) -> Iterator[Finding]:
    report = pl.diagnose(robot)
    if not report.assembled:
        yield Finding("not assembled", f"open by {report.closure_error:.1e}")
    elif mobility is not None and report.mobility != mobility:
        yield Finding("mobility", f"{report.mobility}, not {mobility}")


def _reduced(reduced: pl.Mechanism, seed: int) -> Iterator[Finding]:
    """No row is missing on the branch, and elsewhere."""
    for q in configurations(reduced, np.random.default_rng(seed), 3, 1):
        full, less = jacobians(reduced, q)
        if (gone := lost(reduced, q)) > LOST:
            yield Finding(
                "row lost", f"all rows at rate {gone:.1e}, ranks {rank(full)} {rank(less)}"
            )
        elif rank(full) != rank(less):
            yield Finding("rank", f"{rank(less)}, not {rank(full)}")


def is_sure(robot: pl.Mechanism, q: Array) -> bool:
    """Whether the rank of all rows is beyond doubt."""
    J = pl.Constraints(robot, full=True).jacobian(q)
    values = np.linalg.svd(J, compute_uv=False) if J.size else np.ones(1)
    part = values / max(float(values.max(initial=0.0)), 1e-300)
    return not bool(np.any((part < NEAR[0]) & (part > NEAR[1])))


def _accelerated(robot: pl.Mechanism, q: Array, v: Array) -> Iterator[Finding]:
    """Every formulation against one dense solution."""
    equations = pl.EquationsOfMotion(robot)
    M, f, J, gamma, _ = equations.system(0.0, q, v)
    exact, _ = dense(M, J, f, -gamma, equations.rows.scale)
    free = np.linalg.solve(M, f)
    size = max(1.0, float(np.sqrt(free @ M @ free)), float(np.sqrt(exact @ M @ exact)))
    for formulation in FORMULATIONS:
        a = pl.EquationsOfMotion(robot, formulation=formulation).acceleration(0.0, q, v)
        error = float(np.sqrt((a - exact) @ hand.mass_matrix(robot, q) @ (a - exact))) / size
        if not error <= SAME:
            yield Finding("acceleration", f"{formulation}: {error:.1e}")


def _run(robot: pl.Mechanism, q: Array, v: Array) -> Iterator[Finding]:
    """A second of motion."""
    try:
        run = pl.simulate(robot, q, v, until=UNTIL)
    except pl.PinloopError as failure:
        yield Finding("run failed", f"{type(failure).__name__}: {failure}".splitlines()[0][:200])
        return
    energy = run.energy()
    over = float(np.ptp(energy.kinetic) + np.ptp(energy.potential) + energy.kinetic.max())
    error = float(np.abs(energy.error).max()) / max(over, LITTLE)
    if not error <= BALANCE:
        yield Finding("energy", f"{error:.1e} of {over:.2g} J")
    rows = pl.Constraints(robot, full=True)
    residual = max(float(np.abs(rows.residual(q)).max(initial=0.0)) for q in run.q)
    if not residual <= CLOSED:
        yield Finding("open", f"{residual:.1e} m, rad")


MECHANISMS = Campaign(draw_mechanism, try_mechanism, simplify_mechanism)
