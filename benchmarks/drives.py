"""Time of one call of inverse dynamics for drives along a motion: typical, and the slowest percent.

Run with ``python -m benchmarks.drives`` from the root of the repository. Beside the time that
passes it gives the time of the processor, in which other programs do not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pinloop as pl

CALLS = 10_000
CASES = {
    "palletizer": ("palletizer", None, 1.0),
    "palletizer, half the torques it needs": ("palletizer", None, 0.5),
    "five-bar, four drives for two freedoms": ("fivebar", "all", 1.0),
    "five-bar, four drives, 0.8 of the torques": ("fivebar", "all", 0.8),
    "Stewart platform": ("stewart", None, 1.0),
}
"""Robot, whether all joints are driven, and limits over the largest torques without them."""


def measure(call: Callable[[int], object], count: int) -> NDArray[np.float64]:
    """Time that passes and time of the processor per call [us], shape (2, count)."""
    times = np.empty((2, count))
    for k in range(-200, count):
        cpu, start = time.thread_time(), time.perf_counter()
        call(k)
        end = time.perf_counter(), time.thread_time()
        if k >= 0:
            times[:, k] = end[0] - start, end[1] - cpu
    return 1e6 * times


def main() -> None:
    """Print the table."""
    print("| motion of | beyond limits | median [us] | 99 % [us] | processor: median | 99 % |")
    print("|---|--:|--:|--:|--:|--:|")
    for title, (name, joints, share) in CASES.items():
        robot = pl.load(f"urdf/{name}.urdf")
        run = pl.simulate(robot, pl.assemble(robot, {}), until=0.3)
        actuated = robot.joints if joints else robot.actuated
        # Twice the accelerations of a fall, which drives have to give.
        motion = run.q, np.sqrt(2.0) * run.v, 2.0 * run.a
        largest = np.abs(pl.DriveTorques(robot, actuated=actuated).along(*motion).torque).max(
            axis=0
        )
        limits = dict(zip(actuated, (share * largest + 1e-6).tolist(), strict=True))
        drives = pl.DriveTorques(robot, actuated=actuated, limits=limits)
        states = [*zip(*motion, strict=True)]
        times = measure(partial(_call, drives, states), CALLS)
        beyond = sum(not drives(*state).feasible for state in states) / len(states)
        (a, b), (c, d) = (np.percentile(x, (50, 99)) for x in times)
        print(f"| {title} | {beyond:.0%} | {a:.0f} | {b:.0f} | {c:.0f} | {d:.0f} |")


def _call(drives: pl.DriveTorques, states: list[Any], k: int) -> None:
    drives(*states[k % len(states)])


if __name__ == "__main__":
    main()
