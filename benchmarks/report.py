"""The page and the JSON file of a run; every number and every sentence comes from the results."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tools.pages import table

from .comparison import (
    TARGET,
    best_at_target,
    best_peer,
    default_calls,
    growth,
    order,
    series_of,
    time_at_target,
)
from .contestants import PACKAGES
from .pictures import work_precision

__all__ = ["page", "write"]

Results = dict[str, Any]
WANTED = 3.0
"""So many times as fast as the best peer a run should be."""

INTRODUCTION = """# Performance

Measurements of `python -m benchmarks`, which writes this page, beside Pinocchio's own solvers,
MuJoCo, Exudyn, Drake and a plain SciPy program; `pip install -e '.[bench]'` installs the peers.

Times are CPU times of one process on one core with one thread. Contestants take turns, so that
ratios are also meaningful on a busy machine. A time is the least of all turns, which other work on
the machine changes the least; the percentage after it is the interquartile range over the median.
All are called from Python.
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


def renew(results: Results, folder: Path) -> str:
    """Put what was measured now into page and JSON file, and leave all else; returns the sections.

    Args:
        results: of whole sections: losses, stops, loading, importing, memory.
        folder: where page and file are.
    """
    page, file = folder / "performance.md", folder / "performance.json"
    old, text, parts = json.loads(file.read_text("utf-8")), page.read_text("utf-8"), []
    for key, section in _SECTIONS.items():
        if key in results:
            old[key] = results[key]
            parts.append(section(results[key]))
            title = parts[-1].partition("\n")[0]
            text = re.sub(
                rf"{title}\n.*?(?=\n## |\Z)",
                lambda _, part=parts[-1]: part,  # type: ignore[misc]
                text,
                flags=re.S,
            )
    page.write_text(text, encoding="utf-8")
    file.write_text(json.dumps(old, indent=1) + "\n", encoding="utf-8")
    return "\n".join(parts)


def page(results: Results) -> str:
    """The page."""
    parts = [INTRODUCTION]
    if results["quick"]:
        parts.append("**A quick run: few repetitions, coarse settings only.**\n")
    parts.append(_machine(results))
    if results.get("precision"):
        parts.append(_summary(results["precision"]))
        parts.append(_parts(results["precision"]))
    if "right_hand_sides" in results:
        parts.append(_right_hand_sides(results["right_hand_sides"]))
    if results.get("precision"):
        parts.append(_precision(results))
    parts += [section(results[key]) for key, section in _SECTIONS.items() if key in results]
    return "\n".join(parts)


def _picture(entry: Results) -> str:
    return f"performance_{entry['case']}.svg"


def _time(sample: Results | None) -> str:
    """A time with its unit and spread."""
    if sample is None:
        return "-"
    return f"{_seconds(sample['least'])} ({100 * sample['spread']:.0f} %)"


def _seconds(value: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def _machine(results: Results) -> str:
    rows = [[key, value] for key, value in {**results["machine"], **results["versions"]}.items()]
    lines = ["## Machine and versions\n", table(["", ""], rows)]
    load, cores = (float(results["machine"].get(x, 0)) for x in ("load at the start", "cores"))
    if load > cores:
        lines.append("More programs than cores were running: ratios hold, times are too long.\n")
    for name in results["missing"]:
        lines.append(f"{name} was not installed: it is missing in the tables below.\n")
    return "\n".join(lines)


def _summary(entries: list[Results]) -> str:
    """Who is how fast: at the best settings, and as they come."""
    best_rows, default_rows = [], []
    for entry in entries:
        best, peer = best_at_target(entry), best_peer(entry)
        own = best.get("pinloop")
        ratio = f"{peer[1] / own[1]:.2g} ({peer[0]})" if own and peer else "-"
        best_rows.append([entry["title"], *(_cell(best.get(name)) for name in PACKAGES), ratio])
        calls = default_calls(entry)
        default_rows.append([entry["title"], *(_default(calls.get(name)) for name in PACKAGES)])
    columns = "l" + "r" * len(PACKAGES)
    return "\n".join(
        [
            f"## Time to an error of {TARGET:g}\n",
            "The fastest setting of each that gets there; the last column is the best peer's time "
            "over that of pinloop.\n",
            table(["", *PACKAGES, "best peer over ours"], best_rows, columns + "r"),
            "And what a call without any setting takes, with the error that it leaves:\n",
            table(["", *PACKAGES], default_rows, columns),
        ]
    )


def _parts(entries: list[Results]) -> str:
    """Where our time goes, and what would be left if runs were set up in no time."""
    rows, short = [], []
    for entry in entries:
        parts, peer, own = entry["parts"], best_peer(entry), best_at_target(entry).get("pinloop")
        whole, step = parts["whole"]["least"], parts["step"]["least"]
        rest = max(whole - step, 1e-9)
        if peer and own and peer[1] < WANTED * own[1]:
            short.append(f"{entry['title']} ({peer[1] / own[1]:.2g}, {step / whole:.0%} set-up)")
        limit = f"{peer[1] / rest:.2g}" if peer else "-"
        rows.append(
            [entry["title"], f"{parts['tolerance']:.0e}", parts["engine"], _seconds(whole),
             _seconds(step), str(parts["steps"]), str(parts["evaluations"]),
             _seconds(rest / max(parts["evaluations"], 1)), limit]
        )  # fmt: skip
    head = ["", "tolerance", "engine", "whole", "set-up and one step", "steps", "evaluations",
            "per evaluation", "limit"]  # fmt: skip
    return (
        f"Where the time of pinloop goes, with dop853 at its coarsest tolerance that leaves less "
        f"than {TARGET:g}: a run of a single step is what setting up takes. The rest is steps, "
        "with projections, here per evaluation of the accelerations. The limit is the best peer's "
        "time over that of the steps alone: what the ratio above would be if nothing had to be set "
        f"up. Less than {WANTED:g} times as fast as the best peer: "
        f"{', '.join(short) or 'none'}.\n\n" + table(head, rows, "lrlrrrrrr")
    )


def _cell(best: tuple[str, float] | None) -> str:
    return _seconds(best[1]) if best else "-"


def _default(point: Results | None) -> str:
    """Time and error of a default call."""
    if point is None:
        return "-"
    if point["failed"] or point["error"] is None:
        return "fails"
    return f"{_seconds(point['time']['least'])}, {point['error']:.0e}"


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
        "Accelerations at one state in motion, as a run asks for them: "
        "`EquationsOfMotion.right_hand_side` on the regularized robot, and the faster of "
        "Pinocchio's solvers. Those close loops by points: one for a ball "
        "joint or a planar loop, two for another hinge, with the fastest proximal setting that "
        "gives the accelerations of pinloop. The last column is the difference of the "
        "accelerations.\n"
    )
    return f"## Right-hand side\n\n{explained}\n" + table(head, rows, "lrrrlrrrr")


def _precision(results: Results) -> str:
    explained = (
        "Robots fall under gravity without losses; the squeezer is driven, with its spring. The "
        "error is the largest pose error of a body at the end, lengths relative to the "
        "characteristic length of the robot and angles in rad, against a run of pinloop with "
        "tolerance 1e-12. Times are those of the run alone: models of the peers are built before; "
        "`pl.simulate` is measured as a whole. MuJoCo's constraints are soft, as stiff as its "
        "integrator permits; their time constants in steps are given after its name; its solver "
        "has a tolerance of 1e-10. Exudyn gets independent constraints, in a plane where the robot "
        "moves in one. Drake closes loops in its discrete solver only; CENIC has the robot without "
        "loops. The baseline is `solve_ivp` on the faster of Pinocchio's solvers, with gains of "
        "Baumgarte. The order is the slope of the error over the step.\n"
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
    if len(points) < 2 or (package in ("pinloop", "SciPy + Pinocchio") and method != "rk4"):
        return ""
    if method == "CENIC":
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


def _losses(entries: list[Results]) -> str:
    rows = [
        [one["title"], label, str(one[label]["steps"]), str(one[label]["evaluations"]),
         _time(one[label]["time"])]
        for one in entries
        for label in ("without", "with")
    ]  # fmt: skip
    return (
        f"## Losses\n\nDefault calls over {entries[0]['until']:g} s of fall, without and with the "
        "damping and the dry friction of the robot's file.\n\n"
        + table(["robot", "losses", "steps", "evaluations", "time"], rows, "llrrr")
    )


def _stops(entry: Results) -> str:
    single = entry["single"]
    rows = [
        [part, *(f"{1e6 * one['parts'][part]:.0f}" for one in single)]
        for part in single[0]["parts"]
    ]
    whole = "all of it, not timed part by part, without loads"
    rows.append([whole, *(f"{1e6 * one['time']:.0f}" for one in single)])
    rates = " and ".join(f"{1 / one['time']:.0f} of the {one['robot']}" for one in single)
    return (
        "## Stops\n\n"
        f"A study of {entry['count']} random poses and speeds of the six-axis arm, category 0, "
        f"defaults, with everything that is written: {_time(entry['time'])} per stop, "
        f"{entry['per_second']:.0f} stops per second and core.\n\n"
        f"`pl.stop` alone, per second and core: {rates}, at a load of {single[0]['load']:.1f} of "
        "the machine. A stop has "
        + " and ".join(
            f"{one['phases']:.1f} phases and {one['evaluations']:.0f} accelerations"
            for one in single
        )
        + " on average. Where the time goes, in µs per stop:\n\n"
        + table(["part", *(one["robot"] for one in single)], rows, "lrr")
        + "\nThe kernel computes accelerations, all of a step in one call. What is left is Python: "
        "a phase begins with a decision about all joints, and most have one step, and another one "
        "to the event that ends it. Accelerations alone would be "
        + " and ".join(f"{1 / one['parts']['accelerations']:.0f}" for one in single)
        + " stops per second. They are also all that goes on in several threads at once, which is "
        "why studies share their cases between processes.\n"
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
    own = entry["pinloop"]["least"]
    rows = [[name, _time(one), f"{one['least'] / own:.2f}"] for name, one in entry.items()]
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
    ]
    return "\n".join(lines)


def _growths(entry: Results) -> Iterable[list[str]]:
    for name, rows in entry["growth"].items():
        peak, saved = growth(rows)
        yield [name, f"{peak / 1e3:.1f} kB/s", f"{saved / 1e3:.1f} kB/s", f"{peak / saved:.1f}"]


_SECTIONS: dict[str, Callable[[Any], str]] = {
    "losses": _losses,
    "stops": _stops,
    "loading": _loading,
    "importing": _importing,
    "memory": _memory,
}
