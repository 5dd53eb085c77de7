"""Has pinloop become slower? Counts and ratios against committed bounds, in well under a minute.

Run with ``python -m benchmarks.check`` from the root of the repository; ``--write`` takes what is
found now as the new bounds. Counts of calls decide: they do not depend on the machine, and a
margin of a tenth is left for other versions of Python and NumPy. Ratios of times to Pinocchio's
solver may double, so that a busy machine does not fail.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from .counts import all_counts
from .righthand import right_hand_sides
from .robots import RIGHT_HAND_SIDES

__all__ = ["BOUNDS", "excesses", "main", "measured"]

BOUNDS = Path(__file__).with_name("bounds.json")
COUNT_MARGIN, RATIO_MARGIN = 1.1, 2.0
LOOSE = 0.8
"""Counts below this part of their bound deserve a new bound."""

Numbers = dict[str, dict[str, float]]


def main(arguments: list[str] | None = None) -> None:
    """Compare or write; exits with 1 if something is over its bound."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.check", description=__doc__)
    parser.add_argument("--write", action="store_true", help="take these numbers as bounds")
    write = parser.parse_args(arguments).write
    found = measured()
    if write:
        BOUNDS.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        print(f"wrote {BOUNDS}")
        return
    bounds: Numbers = json.loads(BOUNDS.read_text(encoding="utf-8"))
    for line in _table(found, bounds):
        print(line)
    wrong = excesses(found, bounds)
    for line in wrong:
        print(f"slower: {line}")
    if wrong:
        raise SystemExit(1)


def measured() -> Numbers:
    """Counts, and ratios of right-hand sides to Pinocchio."""
    ratios = {
        f"right-hand side over Pinocchio, {one['robot']}": round(float(one["ratio"]), 2)
        for one in right_hand_sides(list(RIGHT_HAND_SIDES), 9)
    }
    return {"counts": {name: float(n) for name, n in all_counts().items()}, "ratios": ratios}


def excesses(found: Numbers, bounds: Numbers) -> list[str]:
    """What is over its bound or has none, and bounds that nothing was measured for."""
    wrong = []
    for kind, margin in (("counts", COUNT_MARGIN), ("ratios", RATIO_MARGIN)):
        for name in sorted({*found[kind], *bounds[kind]}):
            if name not in bounds[kind] or name not in found[kind]:
                side = "bound" if name not in bounds[kind] else "measurement"
                wrong.append(f"{name} has no {side}; run python -m benchmarks.check --write")
            elif found[kind][name] > margin * bounds[kind][name]:
                wrong.append(
                    f"{name}: {found[kind][name]:g}, bound {bounds[kind][name]:g} x {margin:g}"
                )
    return wrong


def _table(found: Numbers, bounds: Numbers) -> list[str]:
    lines = []
    for kind in ("counts", "ratios"):
        for name, value in found[kind].items():
            bound = bounds[kind].get(name)
            note = ""
            if kind == "counts" and bound is not None and value < LOOSE * bound:
                note = "   less than before: write new bounds"
            lines.append(f"{name:50s}{value:10g}   bound {bound or 0:g}{note}")
    return lines


if __name__ == "__main__":
    main()
