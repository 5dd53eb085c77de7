"""Times, counts and memory: how anything is measured here, and on what machine.

Contestants take turns, so that whatever else the machine does hits all alike; a time is the CPU
time of this process on one core and one thread, which is the wall time when nothing else runs.
"""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

__all__ = ["Sample", "installed", "interleaved", "machine", "one_core", "peak_memory", "versions"]

PACKAGES = ("pin", "numpy", "scipy", "mujoco", "exudyn", "drake")


@dataclass(frozen=True)
class Sample:
    """Times of one contestant.

    Args:
        least: what else the machine does changes it the least [s].
        median: [s].
        spread: distance of the quartiles over the median.
        count: number of measurements.
    """

    least: float
    median: float
    spread: float
    count: int

    @classmethod
    def of(cls, times: list[float]) -> Sample:
        """From single times [s]."""
        middle = statistics.median(times)
        if len(times) < 2:
            return cls(middle, middle, 0.0, len(times))
        low, _, high = statistics.quantiles(times, n=4, method="inclusive")
        return cls(min(times), middle, (high - low) / middle if middle > 0 else 0.0, len(times))


def interleaved(
    contestants: Mapping[str, Callable[[], object]], rounds: int, batch: float, *, longest: float
) -> dict[str, Sample]:
    """Time contestants in turns.

    Args:
        contestants: what to call, by name.
        rounds: how often each has its turn.
        batch: how long a turn lasts at least [s].
        longest: total time after which a contestant has had enough turns, but at least two [s].

    Returns:
        Times of one call.
    """
    calls = {name: _calls(call, batch) for name, call in contestants.items()}
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(rounds):
        for name, call in contestants.items():
            if turn >= 2 and calls[name] * sum(times[name]) > longest:
                continue
            begin = time.process_time()
            for _ in range(calls[name]):
                call()
            times[name].append((time.process_time() - begin) / calls[name])
    return {name: Sample.of(found) for name, found in times.items()}


def _calls(call: Callable[[], object], batch: float) -> int:
    """How many calls fill a turn; also warms up."""
    call()
    begin, count = time.process_time(), 0
    while count < 3 and time.process_time() - begin < max(batch, 1e-3):
        call()
        count += 1
    return max(1, round(batch * count / max(time.process_time() - begin, 1e-9)))


def one_core() -> int | None:
    """Keep this process and its children on one core; returns which, None where that cannot be."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return core


def installed(package: str) -> bool:
    """Whether a package is there, without importing it."""
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def machine() -> dict[str, str]:
    """What the numbers were measured on."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count() or 1),
        "system": f"{platform.system()} {platform.machine()}",
        "load at the start": f"{load:.1f}",
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def versions() -> dict[str, str]:
    """Versions of everything that takes part; "not installed" for peers that are missing."""
    import pinloop as pl

    found = {"python": platform.python_version(), "pinloop": pl.__version__}
    for package in PACKAGES:
        found[package] = version(package) if installed(package) else "not installed"
    return found


def peak_memory() -> float:
    """Largest memory of this process so far [MB]."""
    status = Path("/proc/self/status")
    if status.is_file():  # unlike that of getrusage, it starts anew with the program
        for line in status.read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return float(line.split()[1]) / 1024
    import resource

    unit = 1024**2 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
