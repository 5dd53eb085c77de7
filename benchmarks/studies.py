"""Stops and runs per second, what more cores bring, what a case costs, memory by number of cases.

Run with ``python -m benchmarks.studies`` from the root of the repository. Random poses and speeds
of the six-axis arm, category 0, defaults; every row with its numbers goes to the disk. Runs are
those of `pl.simulate_many`, half a second each, without friction.
"""

from __future__ import annotations

import os
import resource
import tempfile
import time
from itertools import product
from pathlib import Path

import joblib
import numpy as np

import pinloop as pl
from pinloop.safety.stopping.prepared_robot import tool_of
from pinloop.safety.studies.case_values import case_values
from pinloop.safety.studies.cases import Setup, tool_travel
from pinloop.safety.studies.study import make_setup

ROBOT, BRAKES = "urdf/six_axis_arm.urdf", "urdf/six_axis_arm.brakes.yaml"
_STOPS, _RUNS, _TURNS = 128, 512, 3
_COSTS = ("study", "drawing", "loads, ledger", "joints", "tool path", "keeping stops")


def main() -> None:
    """Print the tables."""
    robot = pl.load(ROBOT)
    with tempfile.TemporaryDirectory() as folder:
        _rates(robot, Path(folder))
        _costs(Path(folder))
        _memory(robot, Path(folder))


def _rates(robot: pl.Mechanism, folder: Path) -> None:
    """Stops of a study and runs of a batch per second, on one core and on all, least of turns."""
    cores, numbers = os.cpu_count() or 1, iter(range(10**6))
    rng = np.random.default_rng(0)
    v = rng.uniform(-1.0, 1.0, (_RUNS, robot.nv)) * robot.model.upperVelocityLimit

    def stops(jobs: int) -> None:
        results, sampling = folder / f"{next(numbers)}.csv", pl.safety.Sobol(_STOPS)
        pl.study(robot, BRAKES, sampling=sampling, results=results, jobs=jobs, search=False)

    def runs(jobs: int) -> None:
        pl.simulate_many(robot, robot.neutral, v, until=0.5, losses=False, jobs=jobs)

    print("                          1 job   all cores   speedup   load")
    for (title, work, count), backend in product(
        (("stops", stops, _STOPS), ("runs", runs, _RUNS)), ("threading", "loky")
    ):
        times = dict[int, list[float]]()
        with joblib.parallel_config(backend=backend):
            work(cores)  # let them start
            for _, jobs in product(range(_TURNS), sorted({1, cores})):
                start = time.perf_counter()
                work(jobs)
                times.setdefault(jobs, []).append(time.perf_counter() - start)
        alone, whole = min(times[1]), min(times[cores])
        kind = {"loky": "processes", "threading": "threads"}[backend]
        print(f"{title}/s, {kind:14s}{count / alone:10.0f}{count / whole:12.0f}", end="")
        print(f"{alone / whole:10.2f}{os.getloadavg()[0]:7.1f}")


def _costs(folder: Path) -> None:
    """What cases of a study take beside their stops, as parts of these; least of turns."""
    print("\nparts of a stop ", *_COSTS, "load", sep="  ")
    for name in ("six_axis_arm", "palletizer"):
        robot, brakes = pl.load(f"urdf/{name}.urdf"), f"urdf/{name}.brakes.yaml"
        setup, sampling = make_setup(robot, brakes, None), pl.safety.Sobol(_RUNS)
        turns = [_turn(setup, sampling, folder / f"{name}-{k}.csv") for k in range(_TURNS)]
        stops, *least = (min(each) for each in zip(*turns, strict=True))
        cells = [f"{x / stops:{len(head)}.2f}" for x, head in zip(least, _COSTS, strict=True)]
        print(f"{name:16s}", *cells, f"{os.getloadavg()[0]:4.1f}", sep="  ")


def _turn(setup: Setup, sampling: pl.safety.Sobol, results: Path) -> list[float]:
    """Processor time of the stops of a study, of all of it, and of its parts [s]."""
    cases, stops, times = case_values(setup, sampling, 0, _RUNS), list[pl.StopResult](), []
    robot, brakes, count = setup.robot, setup.brakes, _RUNS
    for work in (
        lambda: stops.extend(map(setup.stop, cases)),
        lambda: pl.study(robot, brakes, sampling=sampling, results=results, jobs=1, search=False),
        lambda: case_values(setup, sampling, 0, count),
        lambda: [stop.ledger for stop in stops],
        lambda: [stop.joints for stop in stops],
        lambda: [tool_travel(stop, tool_of(stop.robot)) for stop in stops],
        lambda: [setup.pack(*pair) for pair in zip(stops, cases, strict=True)],
    ):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return times


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
