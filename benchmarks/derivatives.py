"""What derivatives cost beside an acceleration, in the native kernel and in Python.

Run with ``python -m benchmarks.derivatives --write`` from the root of the repository. Times are the
least of many, of the processor.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from tests.states import moving
from tools.pages import DOCS, print_or_write, table

import pinloop as pl
from pinloop.dynamics.derivatives import derivatives_at
from pinloop.dynamics.native_derivatives import create_kernel, create_room

_REPEATED = 200
REDUNDANT = ("fourbar", "sevenbar", "prrr3", "palletizer")
"""Robots with rows that depend on others before they are regularized."""
HEAD = ("robot", "nv", "rows", "acceleration", "derivatives", "ratio", "called", "in Python")
ALIGN = "lrrrrrrr"


def least(count: int, *calls: Callable[[], object]) -> list[float]:
    """Least time of the processor that each call takes [us]; in turns, as a machine has moods."""
    times = np.full(len(calls), np.inf)
    for _ in range(_REPEATED):
        for k, call in enumerate(calls):
            start = time.process_time_ns()
            for _ in range(count):
                call()
            times[k] = min(times[k], time.process_time_ns() - start)
    return list(times / count / 1e3)


def cost(robot: pl.Mechanism) -> tuple[str, ...]:
    """A line of the table."""
    q, v = moving(robot, 3)
    native, python = (
        pl.EquationsOfMotion(robot, formulation=formulation).around(0.0, q)
        for formulation in (pl.Automatic(), pl.Augmented())
    )
    side = pl.EquationsOfMotion(robot).right_hand_side()
    assert side.solver is not None and side.held is not None
    rest, a = np.zeros(robot.nv), np.empty(robot.nv)
    accelerations = side.solver.kernel(side.held).dynamics
    held = create_kernel(native, 0.0, q)
    assert held is not None
    room = create_room(held.kernel)
    assert held.kernel.at(q, v, rest, room)
    one, all_ = least(
        50,
        lambda: accelerations.acceleration(q, v, rest, a),
        lambda: held.kernel.at(q, v, rest, room),
    )
    [called], [slow] = (
        least(4, lambda: derivatives_at(equations, 0.0, q, v, rest))  # noqa: B023
        for equations in (native, python)
    )
    times = (f"{one:.1f}", f"{all_:.1f}", f"{all_ / one:.1f}", f"{called:.0f}", f"{slow:.0f}")
    return robot.name, str(robot.nv), str(len(native.rows)), *times


def tables() -> Iterator[tuple[str, str]]:
    """The table, by the name of its marks."""
    files = sorted(Path("urdf").glob("*.urdf"))
    loaded = (pl.load(f"urdf/{name}.urdf") for name in REDUNDANT)
    yield "cost", table(HEAD, [cost(pl.regularize(pl.load(file))) for file in files], ALIGN)
    yield "cost of all rows", table(HEAD, [cost(robot) for robot in loaded], ALIGN)


if __name__ == "__main__":
    print_or_write(DOCS / "derivatives.md", tables(), __doc__)
