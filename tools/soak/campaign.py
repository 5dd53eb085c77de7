"""What all campaigns share: cases by number until time is up, findings as lines, counts.

Case ``k`` of a seed is the same whenever and wherever it is tried. A case is plain data, as JSON
has it, so that what is found can be made smaller and kept as a file. Cases are judged in a child
process: one that hangs, eats memory or crashes the interpreter is a finding like any other.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from .children import ChildDiedError, Limits, limit_next, run_in_child

Data = dict[str, Any]
"""A case as JSON has it."""


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


def leave_as_it_is(_: Data) -> Iterator[Data]:
    """No simpler cases."""
    return iter(())


@dataclass(frozen=True)
class Campaign:
    """How cases are drawn and judged.

    Args:
        draw: a case by chance.
        judge: tries it, and says what must not be.
        simplify: simpler cases, the simplest first, of which some may fail in the same way.
        limits: what the process may take for one case.
    """

    draw: Callable[[np.random.Generator], Data]
    judge: Callable[[Data], Case]
    simplify: Callable[[Data], Iterator[Data]] = leave_as_it_is
    limits: Limits = field(default_factory=Limits)


@dataclass
class Tally:
    """What a campaign has tried and found.

    Args:
        tried: cases by name.
        parts: what cases had, by kind.
        found: findings by kind.
    """

    tried: Counter[str] = field(default_factory=Counter)
    parts: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)

    def add(self, case: Case) -> None:
        """Count a case."""
        self.tried[case.name] += 1
        self.parts.update(set(case.kinds))
        self.found.update(finding.kind for finding in case.findings)

    def __str__(self) -> str:
        lines = []
        if self.parts:
            lines.append(f"with {', '.join(f'{k} {n}' for k, n in sorted(self.parts.items()))}")
        names = ", ".join(f"{name} {count}" for name, count in sorted(self.tried.items()))
        found = ", ".join(f"{kind} {n}" for kind, n in self.found.most_common())
        lines.append(f"{self.tried.total()} cases ({names}): {found or 'nothing found'}")
        return "\n".join(lines)


def judge_safely(campaign: Campaign, data: Data) -> Case:
    """Judge a case; whatever leaves the package is a finding, too."""
    try:
        return campaign.judge(data)
    except Exception as error:
        return _crash(error)


def judge_apart(campaign: Campaign, data: Data) -> Case:
    """Judge a case in a process of its own, which may die of it."""
    try:
        cases: list[Case] = [
            *run_in_child(lambda: iter([judge_safely(campaign, data)]), campaign.limits)
        ]
    except ChildDiedError as death:
        return Case("case", (Finding("died", str(death)),))
    return cases[0]


def run(
    campaign: Campaign, seed: int, minutes: float, first: int = 0
) -> Iterator[tuple[int, Case]]:
    """Try cases until time is up; yields them with their numbers.

    Args:
        campaign: draws and judges cases.
        seed: seed of all cases.
        minutes: how long; at least one case is tried.
        first: number of the first case.
    """
    end, number = time.monotonic() + 60.0 * minutes, first
    while number == first or time.monotonic() < end:
        try:
            for case in run_in_child(partial(_cases, campaign, seed, number, end), campaign.limits):
                yield number, case
                number += 1
            return
        except ChildDiedError as death:
            yield number, Case("case", (Finding("died", str(death)),))
            number += 1


def _cases(campaign: Campaign, seed: int, first: int, end: float) -> Iterator[Case]:
    number = first
    while number == first or time.monotonic() < end:
        limit_next(campaign.limits)
        try:
            data = draw(campaign, seed, number)
        except Exception as error:
            yield _crash(error)
        else:
            yield judge_safely(campaign, data)
        number += 1


def draw(campaign: Campaign, seed: int, number: int) -> Data:
    """Case ``number`` of a seed."""
    return campaign.draw(np.random.default_rng([seed, number]))


def _crash(error: Exception) -> Case:
    text = (f"{type(error).__name__}: {error}".splitlines() or [""])[0]
    frames, trace = [], error.__traceback__
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    code = frames[-1].tb_frame.f_code if frames else None
    place = f" ({code.co_filename.rpartition('/')[2]}, {code.co_name})" if code else ""
    return Case("case", (Finding("crash", text[:300] + place),))
