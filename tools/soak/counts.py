"""How many cases have been tried, when, by which version, and what came of it: docs/campaigns.md.

The counts are in docs/campaigns.json, one entry per run of a campaign; ``--record`` adds one.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import Any

from .. import pages
from .campaign import Tally
from .regressions import FOLDER

COUNTS = pages.DOCS / "campaigns.json"
PAGE = pages.DOCS / "campaigns.md"

Entry = dict[str, Any]


def record(name: str, tally: Tally, version: str, seed: int, first: int) -> None:
    """Add a run to the counts, and write the page."""
    entry: Entry = {
        "campaign": name, "date": time.strftime("%Y-%m-%d"), "version": version, "seed": seed,
        "first": first, "tried": tally.tried.total(), "found": dict(tally.found.most_common()),
    }  # fmt: skip
    COUNTS.write_text(
        "[\n" + ",\n".join(json.dumps(each) for each in [*entries(), entry]) + "\n]\n"
    )
    write_page()


def entries() -> list[Entry]:
    """All runs so far, in order."""
    runs: list[Entry] = json.loads(COUNTS.read_text())
    return runs


def write_page() -> None:
    """Write the tables of the page."""
    for name, table in tables().items():
        pages.put(PAGE, name, table)


def tables() -> dict[str, str]:
    """Tables of the page by their marks."""
    return {"sums": _sums(), "runs": _runs(), "regressions": _regressions()}


def _sums() -> str:
    tried, found, dates = Counter[str](), Counter[str](), dict[str, str]()
    for entry in entries():
        name = entry["campaign"]
        tried[name] += entry["tried"]
        found[name] += sum(entry["found"].values())
        dates[name] = entry["date"]
    head = ("campaign", "cases tried", "findings", "last run")
    rows = [(f"`{k}`", f"{n:,}", f"{found[k]:,}", dates[k]) for k, n in tried.items()]
    return pages.table(head, rows, "lrrl")


def _runs() -> str:
    head = ("campaign", "date", "version", "seed", "cases", "findings")
    rows = [
        (
            f"`{entry['campaign']}`",
            entry["date"],
            f"`{entry['version']}`",
            str(entry["seed"]),
            f"{entry['first']:,} to {entry['first'] + entry['tried'] - 1:,}",
            ", ".join(f"{kind} {count}" for kind, count in entry["found"].items()) or "none",
        )
        for entry in reversed(entries())
    ]
    return pages.table(head, rows, "lllrrl")


def _regressions() -> str:
    rows = []
    for path in sorted(FOLDER.glob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        rows.append((f"`{path.stem}`", document["cause"]))
    return pages.table(("file", "cause"), rows)
