"""What the numbers of a run say: orders, times at an error, and who is fastest."""

from __future__ import annotations

from typing import Any

import numpy as np

from .contestants import DEFAULT

TARGET = 1e-6
"""Error of the end state at which simulators are compared."""

Results = dict[str, Any]


def growth(rows: list[list[float]]) -> tuple[float, float]:
    """Growth of the peak and of what is saved per simulated second [B/s].

    Args:
        rows: simulated time [s], peak [B], saved arrays [B].
    """
    t, peak, saved = np.array(rows, dtype=float).T
    return float(np.polyfit(t, peak, 1)[0]), float(np.polyfit(t, saved, 1)[0])


def time_at_target(points: list[Results], target: float = TARGET) -> float | None:
    """Time at which a series from coarse to fine passes an error [s].

    Between two settings by a straight line in logarithmic scales; None if it does not get there.
    """
    before: tuple[float, float] | None = None
    for point in points:
        if point["error"] is None or point["time"] is None:
            before = None
            continue
        error, spent = max(point["error"], 1e-17), point["time"]["least"]
        if error <= target:
            if before is None:
                return float(spent)
            part = np.log(before[0] / target) / np.log(before[0] / error)
            return float(np.exp(np.log(before[1]) + part * np.log(spent / before[1])))
        before = error, spent
    return None


def order(points: list[Results]) -> float:
    """Order of a series of fixed steps: slope of the error over the step, NaN for a point alone.

    Errors near that of the reference and those of runs that are far off do not count.
    """
    used = [p for p in points if p["error"] is not None and 1e-10 < p["error"] < 1e-2]
    if len(used) < 2:
        return float("nan")
    steps, errors = np.log([p["setting"] for p in used]), np.log([p["error"] for p in used])
    return float(np.polyfit(steps, errors, 1)[0])


def series_of(entry: Results) -> dict[tuple[str, str], list[Results]]:
    """Points of a case by package and method, in their order."""
    found: dict[tuple[str, str], list[Results]] = {}
    for point in entry["points"]:
        found.setdefault((point["package"], point["method"]), []).append(point)
    return found


def best_at_target(entry: Results) -> dict[str, tuple[str, float] | None]:
    """Per package its fastest method at the target and the time [s]; None if none gets there."""
    best: dict[str, tuple[str, float] | None] = {}
    for (package, method), points in series_of(entry).items():
        spent = time_at_target(points)
        so_far = best.setdefault(package, None)
        if spent is not None and (so_far is None or spent < so_far[1]):
            best[package] = method, spent
    return best


def default_calls(entry: Results) -> dict[str, Results]:
    """Per package the point of its default call."""
    return {point["package"]: point for point in entry["points"] if point["method"] == DEFAULT}


def best_peer(entry: Results) -> tuple[str, float] | None:
    """The fastest package at the target but for pinloop, and its time [s]."""
    found = [
        (best[1], package)
        for package, best in best_at_target(entry).items()
        if package != "pinloop" and best is not None
    ]
    return min(found)[::-1] if found else None
