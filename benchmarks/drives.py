"""Time of one call of inverse dynamics for drives along a motion: typical, and the slowest percent.

Run with ``python -m benchmarks.drives`` from the root of the repository. Beside the time that
passes it gives the time of the processor, in which other programs do not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

import pinloop as pl

CALLS = 10_000
CASES: Mapping[str, tuple[str, Mapping[str, float], tuple[str, ...] | None]] = {
    "palletizer": ("palletizer", {}, None),
    "palletizer, beyond its limits": ("palletizer", {"shoulder": 300.0, "elbow": 200.0}, None),
    "five-bar": ("fivebar", {}, None),
    "five-bar, four drives for two freedoms": ("fivebar", {}, ("all",)),
    "Stewart platform": ("stewart", {}, None),
}


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
    print("| motion of | median [us] | 99 % are below [us] | processor: median | 99 % |")
    print("|---|--:|--:|--:|--:|")
    for title, (name, limits, joints) in CASES.items():
        robot = pl.load(f"urdf/{name}.urdf")
        q = pl.assemble(robot, {})
        run = pl.simulate(robot, q, until=0.3)
        actuated = robot.joints if joints else None
        drives = pl.DriveTorques(robot, actuated=actuated, limits=limits)
        states = [*zip(run.q, run.v, run.a, strict=True)]
        times = measure(lambda k, d=drives, s=states: d(*s[k % len(s)]), CALLS)  # type: ignore[misc]
        (a, b), (c, d) = (np.percentile(x, (50, 99)) for x in times)
        print(f"| {title} | {a:.0f} | {b:.0f} | {c:.0f} | {d:.0f} |")


if __name__ == "__main__":
    main()
