"""What was wanted of the speed, and whether the numbers of a run meet it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = [
    "LOOPED", "SERIAL", "STOPS", "TARGET", "Verdict", "best_at_target", "growth", "order",
    "series_of", "time_at_target", "verdicts",
]  # fmt: skip

LOOPED, SERIAL = 4.0, 3.0
"""Right-hand side over that of Pinocchio, at most: with loops, and without."""
TARGET = 1e-6
"""Error of the end state at which simulators are compared."""
STOPS = 100.0
"""Stops per second and core, at least."""
GROWTH = 1.25
"""Growth of memory over that of the saved arrays, at most."""

Results = dict[str, Any]


@dataclass(frozen=True)
class Verdict:
    """One thing that was wanted.

    Args:
        topic: what it belongs to.
        what: the quantity.
        wanted: as a text.
        measured: as a text.
        met: whether it is.
    """

    topic: str
    what: str
    wanted: str
    measured: str
    met: bool


def verdicts(results: Results) -> list[Verdict]:
    """Everything that was wanted and could be measured in this run."""
    return [
        *_right_hand_sides(results.get("right_hand_sides", [])),
        *_simulations(results.get("precision", [])),
        *_stops(results.get("stops")),
        *_memory(results.get("memory")),
    ]


def _right_hand_sides(entries: list[Results]) -> list[Verdict]:
    found = []
    for one in entries:
        most = SERIAL if one["peer"] == "aba" else LOOPED
        what = f"{one['title']} over `pin.{one['peer']}`"
        measured = f"{one['ratio']:.1f}x"
        found.append(
            Verdict("right-hand side", what, f"at most {most:g}x", measured, one["ratio"] <= most)
        )
    return found


def _simulations(entries: list[Results]) -> list[Verdict]:
    """Ours against every peer that reaches the target."""
    found = []
    for entry in entries:
        best = best_at_target(entry)
        own = best.get("pinloop")
        for package, reached in best.items():
            if package == "pinloop" or reached is None:
                continue
            topic, what = (
                f"time to an error of {TARGET:g}",
                f"{entry['title']}, {package} over ours",
            )
            if own is None:
                found.append(Verdict(topic, what, "more than 1x", "ours does not get there", False))
                continue
            ratio = reached[1] / own[1]
            found.append(Verdict(topic, what, "more than 1x", f"{ratio:.2g}x", ratio > 1.0))
    return found


def _stops(entry: Results | None) -> list[Verdict]:
    if entry is None:
        return []
    rate = entry["per_second"]
    wanted = f"at least {STOPS:g}"
    what = "stops per second and core"
    return [Verdict("stops", what, wanted, f"{rate:.0f}", rate >= STOPS)]


def _memory(entry: Results | None) -> list[Verdict]:
    if entry is None:
        return []
    found = []
    for name, rows in entry["growth"].items():
        peak, saved = growth(rows)
        what = f"growth over that of what is saved, {name}"
        wanted = f"at most {GROWTH:g}x"
        found.append(
            Verdict("memory", what, wanted, f"{peak / saved:.1f}x", peak / saved <= GROWTH)
        )
    return found


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
        error, spent = max(point["error"], 1e-17), point["time"]["median"]
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
