"""Locking a moving joint in pinloop and in its peers, against the exact velocity after the lock.

Run with ``python -m benchmarks.locking_comparison`` from the root of the repository; packages that
are not installed are skipped. ``--write`` puts the table into ``docs/locking.md``, which derives the
exact value and says what each package does; it needs all of them.

Planar 2R of two uniform rods (1 kg, 1 m), elbow at 90 degrees, both joints at 1 rad/s, no gravity;
joint 2 locks. Every simulator takes steps of 1 ms for half a second.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import pinloop as pl

Array = NDArray[np.float64]

MASS, LENGTH, ELBOW = 1.0, 1.0, np.pi / 2
INERTIA = MASS * LENGTH**2 / 12
STEP, STEPS = 1e-3, 500
EXACT = 1.2
PAGE = Path(__file__).parents[1] / "docs" / "locking.md"
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"


class Case(NamedTuple):
    """A way to lock the joint."""

    package: str
    how: str
    run: Callable[[], Array]
    """Rows of velocity 1, velocity 2 and turn of joint 2 after each step."""


class Found(NamedTuple):
    """What one of them did."""

    package: str
    how: str
    first: tuple[float, float]
    end: float
    rest: float | None
    turn: float


CASES: list[Case] = []


def main() -> None:
    """Print the table; write it into the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the table into docs/locking.md")
    write = parser.parse_args().write
    found, missing = measure(cases())
    print(table(found))
    for package in missing:
        print(f"{package} is not installed: skipped (pip install {package})")
    if write and missing:
        raise SystemExit(f"{PAGE.name} is left as it is: not everything could be measured")
    if write:
        put(found)


def cases() -> Iterator[Case]:
    """All of them, in the order of the table."""
    yield Case("pinloop", "`pl.lock`, an event", pinloop_lock)
    yield Case("pinloop", "velocity set to zero by hand", pinloop_zeroing)
    yield Case("drake", "`Joint.Lock`", partial(drake, weld=False))
    yield Case("drake", "weld constraint activated", partial(drake, weld=True))
    yield Case("mujoco", "`eq_active`, joint equality, defaults", partial(mujoco, ""))
    stiff = f'solref="{2 * STEP} 1" solimp="0.9999 0.9999 0.001"'
    yield Case("mujoco", "`eq_active`, as stiff as stable", partial(mujoco, stiff))
    yield Case("exudyn", "`activeConnector`, generalized alpha", partial(exudyn, False))
    yield Case("exudyn", "`activeConnector`, trapezoidal, index 2", partial(exudyn, True))


def measure(all_cases: Iterator[Case]) -> tuple[list[Found], list[str]]:
    """Run what can be run; also returns the packages that are missing."""
    found: list[Found] = []
    missing: dict[str, None] = {}
    for case in all_cases:
        try:
            rows = case.run()
        except ModuleNotFoundError:
            missing[case.package] = None
            continue
        late = np.flatnonzero(np.abs(rows[:, 1]) > 0.01)
        still = len(late) == 0 or late[-1] < len(rows) - 1
        rest = STEP * (late[-1] + 2 if len(late) else 0) if still else None
        turn = float(np.abs(rows[:, 2]).max())
        first = float(rows[0, 0]), float(rows[0, 1])
        found.append(Found(case.package, case.how, first, float(rows[-1, 0]), rest, turn))
    return found, list(missing)
