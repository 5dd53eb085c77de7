"""What campaigns have found, made as small as it gets, as files that the tests try again for ever.

A file is JSON: the campaign, what was wrong and when, the cause in one line (written by whoever
mends it; the tests ask for it), and the case.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..pages import ROOT
from .campaign import Campaign, Case, Data, Finding, judge_apart

__all__ = ["FOLDER", "TIMED", "keep", "shrink"]

FOLDER = ROOT / "tests" / "regressions"
TIMED = ("slow",)
"""Findings that depend on the machine and what else it does."""


def shrink(
    data: Data,
    simplify: Callable[[Data], Iterator[Data]],
    fails: Callable[[Data], bool],
    seconds: float,
) -> Data:
    """The simplest case that still fails, as far as it is found in so many seconds."""
    end = time.monotonic() + seconds
    while True:
        for simpler in simplify(data):
            if time.monotonic() > end:
                return data
            if fails(simpler):
                data = simpler
                break
        else:
            return data


def keep(
    name: str, campaign: Campaign, data: Data, case: Case, origin: str, seconds: float = 60.0
) -> Path:
    """Shrink a case and write it into a file.

    Args:
        name: of the campaign.
        campaign: how it is judged.
        data: the case.
        case: what was wrong with it.
        origin: version, seed and number.
        seconds: how long simpler ones are tried.
    """
    kind = _kind(case.findings[0])

    def fails(simpler: Data) -> bool:
        return kind in map(_kind, judge_apart(campaign, simpler).findings)

    small = shrink(data, campaign.simplify, fails, seconds)
    said = next(iter(judge_apart(campaign, small).findings or case.findings))
    document: dict[str, Any] = {
        "campaign": name, "cause": "", "finding": f"{said.kind}: {said.text}", "origin": origin,
        "case": small,
    }  # fmt: skip
    digest = sha256(json.dumps(small, sort_keys=True).encode()).hexdigest()[:8]
    path = FOLDER / f"{name}-{said.kind.replace(' ', '_')}-{digest}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def _kind(finding: Finding) -> str:
    """What is the same about two findings: of crashes the exception, too."""
    return finding.text.partition(":")[0] if finding.kind == "crash" else finding.kind
