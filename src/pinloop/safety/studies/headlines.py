"""What a study says by every criterion: its samples, what a search found, and the worse of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...boundary.arguments import public, require_kind
from .criteria import known_criteria
from .order_statistics import Sampled
from .results import Results, quantity_distributions, results_of
from .study import Study
from .worst import CriterionResult, Headline, WorstCase
from .worst_search import Search, search_worst


def criterion_results(study: Study, results: Results | None = None) -> dict[str, CriterionResult]:
    """What a study says by every criterion of which it has numbers; see `Study.result`."""
    known = results_of(study) if results is None else results
    samples = {
        item.quantity.criterion: (item.quantity.column, item.spread)
        for item in quantity_distributions(known, study.setup)
    }
    searched = study.searched
    if searched is not None:
        samples |= {
            name: (case.column, searched.samples[name]) for name, case in searched.cases.items()
        }
    return {
        name: _result(study, name, column, spread) for name, (column, spread) in samples.items()
    }


def _result(study: Study, name: str, column: str, samples: Sampled) -> CriterionResult:
    case = None if study.searched is None else study.searched.cases.get(name)
    if case is not None and case.value != samples.worst:
        headline = Headline(case.value, "search", case.values, None)
    else:
        values = study.values(samples.case)
        headline = Headline(samples.worst, "samples", values, samples.case)
    return CriterionResult(name, column, samples, case, headline)


@public
def worst_case(
    study: Study,
    criterion: str | Sequence[str] | None = None,
    *,
    starts: int = 3,
    evaluations: int = 400,
    corners: int = 64,
    person: Mapping[str, Any] | None = None,
    jobs: int = -1,
) -> dict[str, WorstCase]:
    """Search the worst cases of a study's space, for longer than `study` does.

    From the worst samples and from corners of the space the search goes uphill along derivatives of
    the stops, and on by steps of all variables to either side: a weaker brake is not always worse.
    Cases that do not end with the robot at rest and held are another finding, and left out here.

    Args:
        study: the study whose samples are the starts.
        criterion: what to search by: "time", "travel" (length of the tool's path),
            "displacement" (how far the tool gets from where it was), "displacement:x",
            "displacement:0,0.6,0.8" (how far along a direction of the world), "clearance",
            "separation", "angle:JOINT", "impulse:JOINT", "gear:JOINT"; several of them, or all
            that rows measure and that are not zero everywhere.
        starts: of the worst cases known, how many it starts from, per criterion.
        evaluations: stops per criterion; derivatives of one count as two.
        corners: cases at ends of ranges that are looked at first.
        person: for "separation", where a person is and how they approach: arguments of
            `separation`.
        jobs: number of processes; all cores by default.

    Returns:
        Per criterion the worst case, never better than the worst sample.
    """
    require_kind(study, Study, "study", "give what pl.study(...) returned")
    search = Search((), evaluations, starts, corners)
    chosen = known_criteria(study.setup, criterion, person)
    found = dict(search_worst(study, chosen, search, jobs).cases)
    if criterion is None:
        zero = {name for name, case in found.items() if name != "clearance" and not case.value}
        found = {name: case for name, case in found.items() if name not in zero}
    return found
