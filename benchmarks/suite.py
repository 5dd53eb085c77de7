"""The command: runs what is asked for, prints and writes it."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .contestants import missing
from .measure import machine, one_core, versions
from .others import importing, loading, losses, memory, stops
from .precision import Effort, precision
from .report import renew, write
from .righthand import right_hand_sides
from .robots import MOTIONS, RIGHT_HAND_SIDES

DOCS = Path(__file__).parents[1] / "docs"
PARTS = ("rhs", "precision", "losses", "stops", "loading", "import", "memory")


def main(arguments: list[str] | None = None) -> None:
    """Parse, measure, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    names = sorted({*MOTIONS, *RIGHT_HAND_SIDES})
    parser.add_argument("--quick", action="store_true", help="few repetitions and settings")
    parser.add_argument("--case", action="append", choices=names, help="only this robot")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this part")
    parser.add_argument("--output", type=Path, default=None, help="folder, docs by default")
    parser.add_argument("--scaling", action="store_true", help="odca_scaling too")
    parser.add_argument("--report", action="store_true", help="only write the page anew")
    parser.add_argument("--renew", action="store_true", help="only the sections of the parts")
    given = parser.parse_args(arguments)
    output = given.output or DOCS
    partial = bool(given.quick or given.case or given.part)
    if partial and not (given.report or given.renew) and given.output is None:
        print("part of the suite: nothing is written (give --output FOLDER)", file=sys.stderr)
    if given.report:
        results = json.loads((output / "performance.json").read_text(encoding="utf-8"))
    else:
        results = measured(given.case or names, given.part or list(PARTS), quick=given.quick)
    if given.renew:
        print(renew(results, output))
    elif given.report or given.output is not None or not partial:
        output.mkdir(parents=True, exist_ok=True)
        print(write(results, output))
    else:
        print(write(results, None))
    if given.scaling:
        figure = str(output / "odca_scaling.svg")
        command = [sys.executable, "-m", "benchmarks.odca_scaling", "--plot", figure]
        subprocess.run(command, check=True)


def measured(cases: list[str], parts: list[str], *, quick: bool) -> dict[str, Any]:
    """All numbers of a run.

    Args:
        cases: names of robots.
        parts: which of `PARTS`.
        quick: measure little.
    """
    rounds = 2 if quick else 25
    core = one_core()
    results: dict[str, Any] = {
        "machine": machine() | {"pinned to core": "none" if core is None else str(core)},
        "versions": versions(),
        "missing": missing(),
        "quick": quick,
    }
    for name in results["missing"]:
        _say(f"{name} is not installed: left out (pip install {name})")
    looped = [name for name in RIGHT_HAND_SIDES if name in cases]
    moving = [name for name in MOTIONS if name in cases]
    effort = Effort(rounds=1, longest=0.05, points=5) if quick else Effort()
    work: dict[str, tuple[str, Callable[[], Any]]] = {
        "rhs": ("right_hand_sides", lambda: right_hand_sides(looped, rounds)),
        "precision": ("precision", lambda: precision(moving, effort)),
        "losses": ("losses", lambda: losses(2 if quick else 5)),
        "stops": ("stops", lambda: stops(2 if quick else 64)),
        "loading": ("loading", lambda: loading(rounds)),
        "import": ("importing", lambda: importing(1 if quick else 9)),
        "memory": ("memory", lambda: memory(2.0 if quick else 16.0)),
    }
    for part in parts:
        key, measure = work[part]
        _say(f"measuring: {part}")
        results[key] = measure()
    return results


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
