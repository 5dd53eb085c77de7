"""The page and the JSON file of a run; every number and every sentence comes from the results."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tools.pages import table

from .pictures import work_precision
from .wanted import (
    GROWTH,
    TARGET,
    Verdict,
    best_at_target,
    growth,
    order,
    series_of,
    time_at_target,
    verdicts,
)

__all__ = ["page", "write"]

Results = dict[str, Any]

INTRODUCTION = """# Performance

Measurements of `python -m benchmarks`, which writes this page, beside Pinocchio's own solver,
MuJoCo, Exudyn and a plain SciPy program; `pip install -e '.[bench]'` installs the peers.

Times are CPU times of one process on one core with one thread. Contestants take turns, so that
ratios are also meaningful on a busy machine. A time is a median; the percentage after it is the
interquartile range.
"""


def write(results: Results, folder: Path | None) -> str:
    """Write page, pictures and JSON file if there is a folder; returns the page.

    Args:
        results: what a run measured.
        folder: where to, e.g. the folder of the documentation.
    """
    text = page(results)
    if folder is not None:
        for entry in results.get("precision", []):
            work_precision(entry, folder / _picture(entry))
        (folder / "performance.md").write_text(text, encoding="utf-8")
        numbers = json.dumps(results, indent=1)
        (folder / "performance.json").write_text(numbers + "\n", encoding="utf-8")
    return text


def page(results: Results) -> str:
    """The page."""
    parts = [INTRODUCTION]
    if results["quick"]:
        parts.append("**A quick run: few repetitions, coarse settings only.**\n")
    parts += [_machine(results), _verdicts(verdicts(results))]
    if "right_hand_sides" in results:
        parts.append(_right_hand_sides(results["right_hand_sides"]))
    if results.get("precision"):
        parts.append(_precision(results))
    if "stops" in results:
        parts.append(_stops(results["stops"]))
    if "loading" in results:
        parts.append(_loading(results["loading"]))
    if "importing" in results:
        parts.append(_importing(results["importing"]))
    if "memory" in results:
        parts.append(_memory(results["memory"]))
    return "\n".join(parts)


def _picture(entry: Results) -> str:
    return f"performance_{entry['case']}.svg"


def _time(sample: Results | None) -> str:
    """A time with its unit and spread."""
    if sample is None:
        return "-"
    return f"{_seconds(sample['median'])} ({100 * sample['spread']:.0f} %)"


def _seconds(value: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def _machine(results: Results) -> str:
    rows = [[key, value] for key, value in {**results["machine"], **results["versions"]}.items()]
    lines = ["## Machine and versions\n", table(["", ""], rows)]
    for name in results["missing"]:
        lines.append(f"{name} was not installed: it is missing in the tables below.\n")
    return "\n".join(lines)


def _verdicts(found: list[Verdict]) -> str:
    if not found:
        return ""
    met = sum(one.met for one in found)
    rows = [
        [one.topic, one.what, one.wanted, one.measured, "yes" if one.met else "**no**"]
        for one in found
    ]
    head = ["", "quantity", "target", "measured", "met"]
    sentences = "\n".join(_sentences(found))
    return f"## Targets\n\n{met} of {len(found)} are met.\n\n{sentences}\n\n" + table(
        head, rows, "lllrl"
    )


def _sentences(found: list[Verdict]) -> Iterable[str]:
    """What is met and what is not, by topic."""
    for topic in dict.fromkeys(one.topic for one in found):
        ones = [one for one in found if one.topic == topic]
        missed = [f"{one.what} ({one.measured})" for one in ones if not one.met]
        start = f"- {topic[0].upper()}{topic[1:]}: {len(ones) - len(missed)} of {len(ones)} met"
        yield f"{start}; not met: {'; '.join(missed)}." if missed else f"{start}."


def _right_hand_sides(entries: list[Results]) -> str:
    rows = [
        [
            one["title"], str(one["nv"]), str(one["rows"]), _time(one["pinloop"]),
            f"`{one['peer']}`", str(one["peer_rows"]), _time(one["pinocchio"]),
            f"{one['ratio']:.1f}", f"{one['difference']:.0e}",
        ]
        for one in entries
    ]  # fmt: skip
    head = ["robot", "velocities", "equations", "pinloop", "Pinocchio", "its equations", "time",
            "ratio", "difference"]  # fmt: skip
    explained = (
        "Accelerations at one state in motion: `EquationsOfMotion.acceleration` on the regularized "
        "robot and the function of Pinocchio, both called from Python. Pinocchio closes loops by "
        "points: one for a ball joint or a planar loop, two for another hinge, with the fastest "
        "proximal setting that gives the accelerations of pinloop. The last column is the "
        "difference of the accelerations.\n"
    )
    return f"## Right-hand side\n\n{explained}\n" + table(head, rows, "lrrrlrrrr")


def _precision(results: Results) -> str:
    explained = (
        "Robots fall under gravity without losses. The error is the largest pose error of a body "
        "at the end, lengths relative to the characteristic length of the robot and angles in "
        "rad, against a run of pinloop with tolerance 1e-12. Times are those of the run alone: "
        "models of the peers are built before; `pl.simulate` is measured as a whole. MuJoCo's "
        "constraints are soft, as stiff as its integrator permits; their time constants in steps "
        "are given after its name. Exudyn gets independent constraints between rigid bodies. The "
        "baseline is `solve_ivp` on Pinocchio with Baumgarte's gains. The order is the slope of "
        "the error over the step.\n"
    )
    parts = [f"## Whole simulations: work against precision\n\n{explained}"]
    parts += [_case(entry) for entry in results["precision"]]
    return "\n".join(parts)


def _case(entry: Results) -> str:
    rows = []
    for (package, method), points in series_of(entry).items():
        spent = time_at_target(points)
        reached = [point["error"] for point in points if point["error"] is not None]
        failed = sum(bool(point["failed"]) for point in points)
        note = f"{failed} of {len(points)} runs failed" if failed else ""
        rows.append(
            [package, method, _seconds(spent) if spent else "not reached", _ratio(entry, spent),
             f"{min(reached):.0e}" if reached else "-", _order(package, method, points), note]
        )  # fmt: skip
    head = ["package", "method", f"time to {TARGET:g}", "over ours", "best error", "order", ""]
    return "\n".join(
        [
            f"### {entry['title']}\n",
            f"![Work against precision, {entry['title']}]({_picture(entry)})\n",
            f"{entry['until']:g} s. {_confirmed(entry)} {_models(entry)}\n",
            table(head, rows, "llrrrrl"),
        ]
    )


def _ratio(entry: Results, spent: float | None) -> str:
    own = best_at_target(entry).get("pinloop")
    return f"{spent / own[1]:.2g}" if spent and own else "-"


def _order(package: str, method: str, points: list[Results]) -> str:
    """Measured order of fixed steps; tolerances have none."""
    if package not in ("MuJoCo", "Exudyn") and method != "rk4":
        return ""
    slope = order(points)
    return f"{slope:.1f}" if slope == slope else "-"


def _confirmed(entry: Results) -> str:
    return (
        f"The reference is confirmed to {entry['confirmed']:.0e} by another run of pinloop with "
        f"{entry['confirmed_by']}."
    )


def _models(entry: Results) -> str:
    """How well the peers' models agree with ours."""
    if not entry["models"]:
        return ""
    items = ", ".join(f"{name} {value:.0e}" for name, value in entry["models"].items())
    return f"Relative differences of the models at the start: {items}."


def _stops(entry: Results) -> str:
    return (
        "## Stops\n\n"
        f"A study of {entry['count']} random poses and speeds of the six-axis arm, category 0, "
        f"defaults, with everything that is written: {_time(entry['time'])} per stop, "
        f"{entry['per_second']:.0f} stops per second and core.\n"
    )


def _loading(entries: list[Results]) -> str:
    rows = [
        [one["robot"], _time(one["pinloop"]), _time(one["pinocchio"]), f"{one['ratio']:.1f}",
         _seconds(one["regularize"])]
        for one in entries
    ]  # fmt: skip
    head = ["robot", "`pl.load`", "`pin.buildModelFromUrdf`", "ratio", "`pl.regularize`"]
    return (
        "## Loading\n\nPinocchio reads the tree only; pinloop also reads and checks loops, drives "
        "and shapes.\n\n" + table(head, rows, "lrrrr")
    )


def _importing(entry: Results) -> str:
    own = entry["pinloop"]["median"]
    rows = [[name, _time(one), f"{one['median'] / own:.2f}"] for name, one in entry.items()]
    return "## Import\n\nCPU time of a fresh process, without that of Python itself.\n\n" + table(
        ["package", "time", "over pinloop"], rows, "lrr"
    )


def _memory(entry: Results) -> str:
    rows = [[name, f"{value:.0f} MB"] for name, value in entry["peaks"].items()]
    lines = [
        "## Memory\n\nPeak of a fresh process:\n",
        table(["task", "peak"], rows, "lr"),
        "Growth with simulated time (four-bar, 200 steps per second), of the peak during the run "
        "and of the arrays that are saved:\n",
        table(["states kept", "peak", "saved", "ratio"], list(_growths(entry)), "lrrr"),
        f"The target is a ratio of at most {GROWTH:g}.\n",
    ]
    return "\n".join(lines)


def _growths(entry: Results) -> Iterable[list[str]]:
    for name, rows in entry["growth"].items():
        peak, saved = growth(rows)
        yield [name, f"{peak / 1e3:.1f} kB/s", f"{saved / 1e3:.1f} kB/s", f"{peak / saved:.1f}"]
