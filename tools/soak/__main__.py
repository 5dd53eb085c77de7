"""``python -m tools.soak CAMPAIGN --minutes N --seed S``: try random cases, print what is wrong."""

from __future__ import annotations

import argparse
import subprocess
import sys

from ..pages import ROOT
from .campaign import Campaign, Case, Tally, draw, run
from .counts import record
from .derivatives import DERIVATIVES
from .files import FILES
from .kernel import KERNEL
from .locks import LOCKS
from .mechanisms import MECHANISMS
from .promises import LOADS, LONG_RUNS
from .regressions import TIMED, keep
from .stops import STOPS

CAMPAIGNS: dict[str, Campaign] = {
    "files": FILES,
    "mechanisms": MECHANISMS,
    "locks": LOCKS,
    "stops": STOPS,
    "kernel": KERNEL,
    "derivatives": DERIVATIVES,
    "loads": LOADS,
    "long_runs": LONG_RUNS,
}
SHORT = [name for name in CAMPAIGNS if name not in ("loads", "long_runs")]
"""Those that are run if none is named; a case of the others takes minutes."""
MOST = 3
"""Findings of a kind that are made smaller and written down."""


def main() -> int:
    """Run campaigns one after another; the exit code says whether anything but slow was found."""
    parser = argparse.ArgumentParser(prog="python -m tools.soak", description=__doc__)
    parser.add_argument("campaign", nargs="*", choices=[*CAMPAIGNS, []], help="the short ones")
    parser.add_argument("--minutes", type=float, default=2.0, help="time for all of them together")
    parser.add_argument("--seed", type=int, default=0, help="seed of all cases")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--record", action="store_true", help="add the counts to docs/campaigns.md")
    given = parser.parse_args()
    names, clean = given.campaign or SHORT, True
    for name in names:
        print(f"{name}:", flush=True)
        tally = _run(name, given.seed, given.minutes / len(names), given.first)
        print(tally, flush=True)
        if given.record:
            record(name, tally, _version(), given.seed, given.first)
        clean &= not set(tally.found) - set(TIMED)  # how long it takes, the machine decides, too
    return 0 if clean else 1


def _run(name: str, seed: int, minutes: float, first: int) -> Tally:
    campaign, tally = CAMPAIGNS[name], Tally()
    for number, case in run(campaign, seed, minutes, first):
        tally.add(case)
        for finding in case.findings:
            print(f"{seed} {number} {case.name}: {finding.kind}: {finding.text}", flush=True)
        if case.findings and tally.found[case.findings[0].kind] <= MOST:
            _write_down(name, seed, number, case)
    return tally


def _write_down(name: str, seed: int, number: int, case: Case) -> None:
    """Make it smaller and keep it for the tests."""
    try:
        data = draw(CAMPAIGNS[name], seed, number)
    except Exception as error:  # nothing is there that could be kept
        print(f"not drawn: {error}", flush=True)
        return
    path = keep(name, CAMPAIGNS[name], data, case, f"{_version()}, seed {seed}, case {number}")
    print(f"written into {path.relative_to(ROOT)}", flush=True)


def _version() -> str:
    """Commit of the checkout."""
    command = ["git", "describe", "--always", "--dirty", "--tags"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return result.stdout.strip() or "unknown"


if __name__ == "__main__":
    sys.exit(main())
