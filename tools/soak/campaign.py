"""What all campaigns share: cases by number until time is up, findings as lines, a summary.

Case ``k`` of a seed is the same whenever and wherever it is tried.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Finding:
    """Something that must not be.

    Args:
        kind: in a word or two, the same for all of its kind.
        text: what exactly, in one line.
    """

    kind: str
    text: str


@dataclass(frozen=True)
class Case:
    """A case that was tried.

    Args:
        name: of what it is a case, e.g. a robot.
        findings: what must not be; empty if all is well.
        kinds: of what it had some, to see what was tried how often.
    """

    name: str
    findings: tuple[Finding, ...] = ()
    kinds: tuple[str, ...] = ()


Campaign = Callable[[np.random.Generator], Case]


def run(campaign: Campaign, seed: int, minutes: float, first: int = 0) -> Iterator[str]:
    """Try cases until time is up; yields a line per finding, then the summary.

    Args:
        campaign: draws and tries one case.
        seed: seed of all cases.
        minutes: how long; at least one case is tried.
        first: number of the first case.
    """
    tried: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    parts: Counter[str] = Counter()
    end, number = time.monotonic() + 60.0 * minutes, first
    while not tried or time.monotonic() < end:
        try:
            case = campaign(np.random.default_rng([seed, number]))
        except Exception as error:  # whatever leaves the package is a finding, too
            text = f"{type(error).__name__}: {error}".splitlines()[0]
            case = Case("case", (Finding("crash", text),))
        tried[case.name] += 1
        parts.update(set(case.kinds))
        for finding in case.findings:
            kinds[finding.kind] += 1
            yield f"{seed} {number} {case.name}: {finding.kind}: {finding.text}"
        number += 1
    if parts:
        yield f"with {', '.join(f'{name} {count}' for name, count in sorted(parts.items()))}"
    by_name = ", ".join(f"{name} {count}" for name, count in sorted(tried.items()))
    found = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common()) or "nothing found"
    yield f"{tried.total()} cases ({by_name}): {found}"
