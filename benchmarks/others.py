"""What else costs: losses, stops per second, loading, importing, memory.

Whatever must start anew (imports, peaks of memory) runs in a process of its own, several times,
in turns.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pinocchio as pin

import pinloop as pl

from .measure import Sample, interleaved
from .robots import URDF
from .stop_parts import stop_times

__all__ = ["importing", "loading", "losses", "memory", "stops"]

LOADED = ("fourbar", "six_axis_arm", "palletizer", "prrr3")
"""Robots that Pinocchio can read: its URDF knows no ball joints."""

_IMPORTS = {"pinloop": "import pinloop", "Pinocchio": "import pinocchio", "NumPy": "import numpy"}

_PEAKS = {
    "import pinocchio": "import pinocchio",
    "import pinloop": "import pinloop",
    "load and regularize the palletizer": (
        "import pinloop as pl; pl.regularize(pl.load(URDF + '/palletizer.urdf'))"
    ),
    "one stop of the six-axis arm": (
        "import pinloop as pl; robot = pl.load(URDF + '/six_axis_arm.urdf');"
        "pl.stop(robot, robot.neutral, 0.3 * robot.model.upperVelocityLimit,"
        " brakes=URDF + '/six_axis_arm.brakes.yaml')"
    ),
}

_GROWTH = """
import gc, json, sys, tracemalloc
import numpy as np
import pinloop as pl
every = None if sys.argv[1] == "steps" else float(sys.argv[1])
robot = pl.regularize(pl.load(URDF + "/fourbar.urdf"))
q = pl.assemble(robot, {})
method = pl.MuntheKaas("rk4", step=5e-3)
def run(until):
    return pl.simulate(robot, q, until=until, losses=False, method=method, save_every=every)
run(0.5)
tracemalloc.start()
found = []
for until in map(float, sys.argv[2:]):
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    done = run(until)
    peak = tracemalloc.get_traced_memory()[1] - before
    parts = (done.t, done.q, done.v, done.a, done.psi, done.mode)
    saved = sum(part.nbytes for part in parts)
    del done, parts
    found.append([until, peak, saved])
print(json.dumps(found))
"""


LOSSY = {"six_axis_arm": "six-axis arm", "palletizer": "palletizer"}
"""Robots whose files have damping and dry friction, with their titles."""


def losses(rounds: int, until: float = 1.0) -> list[dict[str, Any]]:
    """Robots that fall for a second, default call, with and without the losses of their files."""
    found = []
    for name, title in LOSSY.items():
        robot = pl.regularize(pl.load(URDF / f"{name}.urdf"))
        fall = partial(pl.simulate, robot, pl.assemble(robot, {}), until=until)
        runs = {"without": partial(fall, losses=False), "with": partial(fall, losses=True)}
        times = interleaved(runs, rounds, 2e-3, longest=10.0)
        entry: dict[str, Any] = {"robot": name, "title": title, "until": until}
        for label, call in runs.items():
            run = call()
            counts = {"steps": len(run.psi), "evaluations": run.evaluations}
            entry[label] = counts | {"time": asdict(times[label])}
        found.append(entry)
    return found


def stops(count: int) -> dict[str, Any]:
    """Stops per second of CPU time on one core: in a study of random cases, and alone."""
    robot, brakes = pl.load(URDF / "six_axis_arm.urdf"), URDF / "six_axis_arm.brakes.yaml"
    with tempfile.TemporaryDirectory() as folder:
        pl.study(
            robot,
            brakes,
            sampling=pl.safety.Sobol(4),
            results=Path(folder) / "w.csv",
            jobs=1,
            search=False,
        )
        times = []
        for turn in range(3):
            begin = time.process_time()
            results = Path(folder) / f"{turn}.csv"
            pl.study(
                robot,
                brakes,
                sampling=pl.safety.Sobol(count),
                results=results,
                jobs=1,
                search=False,
            )
            times.append((time.process_time() - begin) / count)
    sample = Sample.of(times)
    rates = {"count": count, "time": asdict(sample), "per_second": 1 / sample.least}
    return rates | {"single": stop_times(count)}


def loading(rounds: int) -> list[dict[str, Any]]:
    """Time to load a robot, beside Pinocchio's reader of URDF, which ignores loops."""
    found = []
    for name in LOADED:
        path = str(URDF / f"{name}.urdf")
        times = interleaved(
            {
                "pinloop": lambda path=path: pl.load(path),  # type: ignore[misc]
                "pinocchio": lambda path=path: pin.buildModelFromUrdf(path),  # type: ignore[misc]
            },
            rounds,
            2e-3,
            longest=10.0,
        )
        regularized = pl.load(path)
        begin = time.process_time()
        pl.regularize(regularized)
        found.append(
            {
                "robot": name,
                "pinloop": asdict(times["pinloop"]),
                "pinocchio": asdict(times["pinocchio"]),
                "ratio": times["pinloop"].least / times["pinocchio"].least,
                "regularize": time.process_time() - begin,
            }
        )
    return found


def importing(rounds: int) -> dict[str, Any]:
    """CPU time of a process that only imports, without that of one that does nothing."""
    times: dict[str, list[float]] = {name: [] for name in ("nothing", *_IMPORTS)}
    for _ in range(rounds):
        for name in times:
            times[name].append(_child_time(_IMPORTS.get(name, "pass")))
    empty = Sample.of(times.pop("nothing")).least
    return {name: asdict(Sample.of([one - empty for one in all_])) for name, all_ in times.items()}


def memory(longest: float) -> dict[str, Any]:
    """Peaks of memory by task [MB], and how memory grows with simulated time [B].

    Args:
        longest: longest simulated time [s].
    """
    show = "\nfrom benchmarks.measure import peak_memory; print(peak_memory())"
    peaks = {name: float(_child(code + show)) for name, code in _PEAKS.items()}
    spans = [f"{longest * part:g}" for part in (0.25, 0.5, 1.0)]
    growth = {
        name: json.loads(_child(_GROWTH, every, *spans))
        for name, every in (("every step", "steps"), ("save_every = 0.1 s", "0.1"))
    }
    return {"peaks": peaks, "growth": growth}


def _child(code: str, *arguments: str) -> str:
    """What a program prints."""
    start = f"URDF = {str(URDF)!r}\n"
    command = [sys.executable, "-c", start + code, *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=_environment(), cwd=URDF.parent
    )
    return done.stdout.strip()


def _child_time(code: str) -> float:
    """CPU time of a process [s]."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, env=_environment(), cwd=URDF.parent)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)


def _environment() -> dict[str, str]:
    """This environment, with the paths of this process."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
