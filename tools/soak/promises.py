"""Promises over a long time: memory stays flat, loops stay closed and energy stays.

A case takes seconds to minutes: these campaigns are run by name.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pinocchio as pin
from tests.states import URDF, robot

import pinloop as pl

from .campaign import Campaign, Case, Data, Finding
from .children import Limits

COUNT = 10_000
"""How often something is done."""
GROWTH = 10.0
"""Memory by which all of it may grow after its first tenth [MB]."""
SECONDS = 1e4
"""Length of a run [s]."""
CLOSED, BALANCE = 1e-9, 1e-4
"""Residual of the loops [m, rad]; part of the energy turned over that may be missing."""
STATES = 5000
"""How many states of a run are looked at."""
ROBOTS = ("fourbar", "palletizer", "six_axis_arm", "delta", "sevenbar")


def draw_repetition(rng: np.random.Generator) -> Data:
    """Something that is done again and again."""
    what, name = str(rng.choice([*WORK])), str(rng.choice(ROBOTS))
    return {"what": what, "robot": name, "count": COUNT}


def repeat(data: Data) -> Case:
    """Do it, and watch the memory."""
    work = WORK[data["what"]](data["robot"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pl.PinloopWarning)
        for _ in range(data["count"] // 10):
            work()
        gc.collect()
        before = memory()
        for _ in range(data["count"] - data["count"] // 10):
            work()
    gc.collect()
    growth = memory() - before
    findings = [Finding("memory", f"grows by {growth:.1f} MB")] if growth > GROWTH else []
    return Case(f"{data['what']} {data['robot']}", tuple(findings))


def memory() -> float:
    """What this process has in memory now [MB]."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def _load(name: str) -> Callable[[], object]:
    return partial(pl.load, URDF / f"{name}.urdf")


def _run(name: str) -> Callable[[], object]:
    machine = robot(name)
    return partial(pl.simulate, machine, pl.assemble(machine), until=0.01)


def _stop(name: str) -> Callable[[], object]:
    machine = robot(name)
    q, brakes = pl.assemble(machine), pl.Brakes.template(machine)
    motors = machine.actuated
    v = pl.consistent_velocity(machine, q, {motors[0]: 0.2})
    return partial(pl.stop, machine, q, v, brakes=brakes)


WORK = {"load": _load, "run": _run, "stop": _stop}


def draw_long_run(rng: np.random.Generator) -> Data:
    """A four-bar that turns for hours."""
    speed = float(rng.uniform(2.0, 8.0)) * float(rng.choice([-1.0, 1.0]))
    return {"robot": "fourbar", "speed": speed, "until": SECONDS}


def run_long(data: Data) -> Case:
    """Follow it."""
    machine = robot(data["robot"])
    q = pl.assemble(machine)
    v = pl.consistent_velocity(machine, q, {machine.actuated[0]: data["speed"]})
    run = pl.simulate(machine, q, v, until=data["until"], losses=False)
    return Case(data["robot"], tuple(_judge(machine, run)))


def _judge(machine: pl.Mechanism, run: pl.Trajectory) -> Iterator[Finding]:
    rows, model, data = (
        pl.Constraints(machine, full=True),
        machine.model,
        machine.model.createData(),
    )
    some = range(0, len(run.t), max(1, len(run.t) // STATES))
    residual = max(float(np.abs(rows.residual(run.q[k])).max()) for k in some)
    if not residual <= CLOSED:
        yield Finding("open", f"{residual:.1e} m, rad")
    kinetic = np.array([pin.computeKineticEnergy(model, data, run.q[k], run.v[k]) for k in some])
    total = kinetic + [pin.computePotentialEnergy(model, data, run.q[k]) for k in some]
    error = float(np.abs(total - total[0]).max() / np.ptp(kinetic))
    if not error <= BALANCE:
        yield Finding("energy", f"{error:.1e} of what is turned over")


LOADS = Campaign(draw_repetition, repeat, limits=Limits(seconds=3600))
LONG_RUNS = Campaign(draw_long_run, run_long, limits=Limits(seconds=3600))
