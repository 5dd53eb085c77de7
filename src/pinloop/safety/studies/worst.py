"""What is known of the worst cases of a study, as values, and the file that keeps a search."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from ...boundary.arguments import public
from ...boundary.files import may_replace, write_json
from ...errors import BadValue
from ..stopping import StopResult
from ..stopping.intervals import Interval
from .cases import Setup, Values
from .order_statistics import Sampled

FORMAT = "pinloop-study-search-1"


@public
@dataclass(frozen=True, eq=False)
class WorstCase:
    """The worst case found for a criterion, by a search or among the samples that it began with.

    Args:
        criterion: what is worst.
        column: the column of a study's rows that measures it.
        value: how bad it is, in the unit of the column.
        sampled: how bad the worst sample was.
        values: value of every variable, by name.
        stop: the stop, with everything.
        evaluations: stops made by the search for this criterion.
        interval: 95 % interval of this case, as brake data are uncertain; None if it has none.
    """

    criterion: str
    column: str
    value: float
    sampled: float
    values: Values
    stop: StopResult
    evaluations: int
    interval: Interval | None = None

    def __repr__(self) -> str:
        return f"<WorstCase of {self.criterion}: {self.column} = {self.value:.6g}>"


@public
@dataclass(frozen=True, eq=False)
class Searched:
    """What a search found.

    Args:
        cases: the worst case by criterion.
        samples: what the samples say of each.
        stops: stops that were made.
        outcomes: how many of them ended how.
        beyond: how far joints got beyond limits in them, at most [rad, m].
    """

    cases: Mapping[str, WorstCase] = field(default_factory=dict)
    samples: Mapping[str, Sampled] = field(default_factory=dict)
    stops: int = 0
    outcomes: Mapping[str, int] = field(default_factory=dict)
    beyond: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Headline:
    """The worst case of a criterion that is known.

    Args:
        value: how bad it is [SI].
        origin: what it comes from.
        values: value of every variable, by name.
        case: its number in the study; None if a search found it.
    """

    value: float
    origin: Literal["samples", "search"]
    values: Values
    case: int | None


@public
@dataclass(frozen=True, eq=False)
class CriterionResult:
    """What a study says by a criterion.

    Args:
        criterion: its name.
        column: the column of rows that measures it, with its unit.
        samples: what the samples say.
        searched: the worst case that the search knows; None where it did not search.
        headline: the worse of both.
    """

    criterion: str
    column: str
    samples: Sampled
    searched: WorstCase | None
    headline: Headline


# -- on the disk ----------------------------------------------------------------------------------


def search_file(results: Path) -> Path:
    """Where a search is kept beside the results of its study."""
    return results.with_name(results.name + ".search.json")


def write_search(path: Path, study: str, search: str, searched: Searched) -> None:
    """Keep what a search found. ``study``: digest of what the study depends on."""
    if not may_replace(path, FORMAT.encode()):
        raise BadValue(f"'{path}' exists, and pinloop did not write it; move it away")
    cases = {
        name: {item.name: getattr(case, item.name) for item in fields(case) if item.name != "stop"}
        | {"interval": interval_document(case.interval)}
        for name, case in searched.cases.items()
    }
    samples = {name: vars(sampled) for name, sampled in searched.samples.items()}
    rest = {"stops": searched.stops, "outcomes": searched.outcomes, "beyond": searched.beyond}
    document = {"format": FORMAT, "study": study, "search": search}
    write_json(path, {**document, "cases": cases, "samples": samples, **rest})


def interval_document(interval: Interval | None) -> dict[str, Any] | None:
    """An interval as JSON has it; ends without bound are null."""
    if interval is None:
        return None
    ends = {x: e if math.isfinite(e := getattr(interval, x)) else None for x in ("low", "high")}
    return {**vars(interval), **ends, "shares": dict(interval.shares)}


def _read_interval(document: dict[str, Any] | None) -> Interval | None:
    """An interval from that."""
    if document is None:
        return None
    low, high = (document[end] for end in ("low", "high"))
    ends = {"low": -math.inf if low is None else low, "high": math.inf if high is None else high}
    return Interval(**document | ends | {"shares": tuple(document["shares"].items())})


def read_search(path: Path, study: str, search: str, setup: Setup) -> Searched | None:
    """What such a search of this study found before; None if there is none that can be read."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if [document[key] for key in ("format", "study", "search")] != [FORMAT, study, search]:
            return None
        return Searched(
            {
                name: WorstCase(
                    **case | {"interval": _read_interval(case.get("interval"))},
                    stop=setup.stop(case["values"]),
                )
                for name, case in document["cases"].items()
            },
            {name: Sampled(**sampled) for name, sampled in document["samples"].items()},
            *(document[key] for key in ("stops", "outcomes", "beyond")),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
