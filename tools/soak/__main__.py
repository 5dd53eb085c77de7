"""``python -m tools.soak CAMPAIGN --minutes N --seed S``: try random cases, print what is wrong."""

from __future__ import annotations

import argparse
import sys

from .campaign import Campaign, run
from .derivatives import compare_derivatives
from .kernel import compare_engines
from .stops import try_stop

CAMPAIGNS: dict[str, Campaign] = {
    "stops": try_stop,
    "kernel": compare_engines,
    "derivatives": compare_derivatives,
}


def main() -> int:
    """Run campaigns one after another; the exit code says whether anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tools.soak", description=__doc__)
    parser.add_argument("campaign", nargs="*", choices=[*CAMPAIGNS, []], help="all by default")
    parser.add_argument("--minutes", type=float, default=2.0, help="time for all of them together")
    parser.add_argument("--seed", type=int, default=0, help="seed of all cases")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    given = parser.parse_args()
    names, clean = given.campaign or list(CAMPAIGNS), True
    for name in names:
        print(f"{name}:", flush=True)
        for line in run(CAMPAIGNS[name], given.seed, given.minutes / len(names), given.first):
            print(line, flush=True)
        clean &= line.endswith("nothing found")
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
