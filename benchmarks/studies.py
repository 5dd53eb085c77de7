"""Stops per second and core in a study, what more cores bring, memory against the number of cases.

Run with ``python -m benchmarks.studies`` from the root of the repository. Random poses and speeds
of the six-axis arm, category 0, defaults; every row with its numbers goes to the disk.
"""

from __future__ import annotations

import os
import resource
import tempfile
import time
from pathlib import Path

import joblib

import pinloop as pl

ROBOT, BRAKES = "urdf/six_axis_arm.urdf", "urdf/six_axis_arm.brakes.yaml"


def main() -> None:
    """Print the tables."""
    robot = pl.load(ROBOT)
    with tempfile.TemporaryDirectory() as folder:
        _rates(robot, Path(folder))
        _memory(robot, Path(folder))


def _rates(robot: pl.Mechanism, folder: Path) -> None:
    """Stops per second, by one process, by threads and by processes on all cores."""
    count, cores = 256, os.cpu_count() or 1
    pl.study(
        robot,
        BRAKES,
        sampling=pl.safety.Sobol(16),
        results=folder / "warm.csv",
        jobs=1,
        search=False,
    )
    alone = 0.0
    print("jobs                stops/s   stops/s and CPU second   speedup")
    for backend, jobs in [
        ("loky", 1),
        *([("threading", cores), ("loky", cores)] if cores > 1 else []),
    ]:
        results, sampling = folder / f"{backend}{jobs}.csv", pl.safety.Sobol(count)
        with joblib.parallel_config(backend=backend):
            if jobs > 1:  # let them start
                warm = folder / f"w{backend}.csv"
                pl.study(
                    robot,
                    BRAKES,
                    sampling=pl.safety.Sobol(64),
                    results=warm,
                    jobs=jobs,
                    search=False,
                )
            start, used = time.perf_counter(), time.process_time()
            pl.study(robot, BRAKES, sampling=sampling, results=results, jobs=jobs, search=False)
        rate = count / (time.perf_counter() - start)
        alone = alone or rate
        own = f"{count / (time.process_time() - used):22.0f}" if jobs == 1 else ""
        kind = {"loky": "processes", "threading": "threads"}[backend]
        print(f"{jobs:4d} {kind:12s}{rate:10.0f}{own:>25s}{rate / alone:10.2f}")


def _memory(robot: pl.Mechanism, folder: Path) -> None:
    """Largest memory of this process after more and more cases."""
    print("\ncases     largest memory [MB]")
    for count in (128, 512, 2048):
        results = folder / f"memory-{count}.csv"
        pl.study(
            robot, BRAKES, sampling=pl.safety.Random(count), results=results, jobs=1, search=False
        )
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{count:5d}{peak:20.0f}")


if __name__ == "__main__":
    main()
