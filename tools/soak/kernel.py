"""Random mechanisms: the native kernel and Python give the same accelerations and the same runs.

Linkages come from the generators of the tests: trees, loops of all pairs, and those that move
though their rows forbid it.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from tests import screw_tables
from tests.states import moving

import pinloop as pl

from .campaign import Campaign, Case, Data, Finding
from .tables import draw_linkage, simplify_linkage

SAME = 1e-10
"""Relative difference of accelerations, and of states at the end of a run."""
UNTIL = 0.02
"""End of a run [s]."""
FINE = pl.MuntheKaas("dop853", rtol=1e-12, atol=1e-13)
"""What a run is compared with where the engines take other steps."""
PYTHON = pl.Automatic("python")


def compare_engines(data: Data) -> Case:
    """Let both engines go on from a state on the manifold, and one beside it."""
    seed, kind = data["seed"], data["kind"]
    machine, rng = screw_tables.build(data["table"]), np.random.default_rng(seed)
    if machine.nv == 0:
        return Case("immovable")
    q, v = moving(machine, seed % 1000)
    engines = [
        pl.EquationsOfMotion(machine, formulation=pl.Automatic(engine))
        for engine in ("native", "python")
    ]
    native, python = engines
    if native.engine != "native":
        return Case(f"{kind} in Python")
    beside = pin.integrate(machine.model, q, 1e-3 * rng.normal(size=machine.nv))
    states = [("acceleration", q, v)]
    if native.solver == python.solver:  # else other rows are held there, which is another motion
        states.append(("acceleration beside", beside, v + 1e-3 * rng.normal(size=machine.nv)))
    found = []
    for name, *state in states:
        a, b = (equations.acceleration(0.0, *state) for equations in engines)
        if (error := _difference(a, b)) > SAME:
            found.append(Finding(name, f"{error:.1e}"))
    try:
        ends = [
            pl.simulate(machine, q, v, until=UNTIL, formulation=pl.Automatic(engine))
            for engine in ("native", "python")
        ]
        if _apart(*ends) > SAME:
            # Estimates of errors near rounding, or other rows beside the manifold, make other
            # steps: then the kernel's must not be worse.
            exact = pl.simulate(machine, q, v, until=UNTIL, method=FINE, formulation=PYTHON)
            error, allowed = (_apart(run, exact) for run in ends)
            if error > max(SAME, allowed):
                found.append(Finding("run", f"{error:.1e}, not {allowed:.1e}"))
    except (pl.InconsistentVelocity, pl.SimulationFailed):
        return Case(f"{kind}, no run", tuple(found))
    return Case(kind, tuple(found))


def _apart(run: pl.Trajectory, other: pl.Trajectory) -> float:
    """Difference of the states at the ends of two runs."""
    return max(_difference(getattr(run, name)[-1], getattr(other, name)[-1]) for name in "qv")


def _difference(a: screw_tables.Array, b: screw_tables.Array) -> float:
    return float(np.abs(a - b).max() / max(1.0, np.abs(b).max()))


KERNEL = Campaign(draw_linkage, compare_engines, simplify_linkage)
