"""What came out of a study, as tables and as JSON: outcomes, samples, search, worst cases.

The worst case of time, of angle, of travel and of impulse are usually different cases. Sampled and
searched, not guaranteed. How a table looks is in `tables`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ...boundary.files import json_values
from ...errors import printable
from ...tables.number_format import numbers, units_of
from ...tables.report import Block, Cell, Column, KeyValues, Mark, Notes, Report, Table
from ...units import column_unit, shown_unit
from ..stopping.result_document import PLANNING_AID
from .cases import Setup, manifest_of
from .headlines import criterion_results
from .order_statistics import prove
from .results import Beyond, QuantityDistribution, Results, quantity_distributions, quantity_of
from .study import Study
from .worst import CriterionResult, Searched, WorstCase, interval_document

SAMPLED = "Sampled, not guaranteed."
_REASONS = 5
"""Reasons of failures that are shown."""


def as_document(study: Study, results: Results) -> dict[str, Any]:
    """A summary as JSON has it."""
    return {
        "format": "pinloop-study-summary-1",
        "headline": summary_table(study, results).title.text,
        "disclaimer": PLANNING_AID,
        "remark": SAMPLED,
        "robot": study.setup.robot.name,
        "results": str(study.path),
        "cases": study.done,
        "size": study.size,
        "complete": study.complete,
        "outcomes": dict(results.outcomes),
        "reasons": dict(results.reasons),
        "distributions": {
            item.quantity.column: {
                "median": item.spread.median,
                "95_percent": item.spread.most,
                "worst_sampled": item.spread.worst,
                "case": item.spread.case,
            }
            for item in _distributions(study, results)
        },
        "criteria": {
            name: _criterion_document(study, item)
            for name, item in criterion_results(study, results).items()
        },
        "search": None if study.searched is None else _search_document(study.searched),
        "beyond_limits": {
            item.joint: {"cases": item.count, "worst_sampled": item.worst, "case": item.case}
            for item in results.beyond
        },
        "manifest": json_values(manifest_of(study.setup, study.sampling)),
    }


def _criterion_document(study: Study, result: CriterionResult) -> dict[str, Any]:
    """What samples, search and both together say by a criterion."""
    searched, headline = result.searched, result.headline
    return {
        "column": result.column,
        "headline": {**vars(headline), "values": dict(headline.values)},
        "samples": vars(result.samples),
        "proof": prove(result.samples, study.sampling) or None,
        "searched": None
        if searched is None
        else {
            "value": searched.value,
            "evaluations": searched.evaluations,
            "values": dict(searched.values),
        },
        "interval": None if searched is None else interval_document(searched.interval),
    }


def _search_document(searched: Searched) -> dict[str, Any]:
    return {
        "stops": searched.stops,
        "outcomes": dict(searched.outcomes),
        "beyond_limits": dict(searched.beyond),
    }


def worst_document(worst: Mapping[str, WorstCase]) -> dict[str, Any]:
    """Worst cases as JSON has them."""
    return {
        name: {
            "column": case.column,
            "value": case.value if math.isfinite(case.value) else None,
            "worst_sampled": case.sampled if math.isfinite(case.sampled) else None,
            "evaluations": case.evaluations,
            "values": dict(case.values),
            "interval": interval_document(case.interval),
        }
        for name, case in worst.items()
    }


# -- tables ---------------------------------------------------------------------------------------


def summary_table(study: Study, results: Results) -> Report:
    """The table of a study."""
    fine = study.complete and not results.not_stopped and not results.beyond
    mark: Mark = "good" if fine and not search_problems(study) else "bad"
    known = criterion_results(study, results)
    name = printable(study.setup.robot.name)
    title = f"{name}: {results.stopped} of {study.done} cases stopped and hold"
    if results.beyond:
        title += ", but some beyond limits of joints"
    if not study.complete:
        title += f"; {study.size - study.done} of {study.size} are still to be done"
    shown = list(results.reasons.items())[:_REASONS]
    more = len(results.reasons) - len(shown)
    reasons = [f"{count} x {reason}" for reason, count in shown]
    reasons += [f"{more} other reasons are in the results"] if more else []
    beyond = (beyond_text(study.setup, joint) for joint in results.beyond)
    blocks: list[Block] = [
        _facts(study, results),
        _grid(study, known),
        Notes.of("How worst", how_worst(study, known)),
        Notes.of("Beyond limits", beyond, "caution"),
        Notes.of("Met by the search", search_problems(study), "caution"),
        Notes.of("Failed cases", reasons, "caution"),
    ]
    first = study.setup.guesses.title(title, mark)
    return Report.of(first, blocks, f"{SAMPLED} {PLANNING_AID}")


def beyond_text(setup: Setup, beyond: Beyond) -> str:
    """What happens to a joint that gets beyond its limits, in one sentence."""
    units = units_of(setup.robot, beyond.joint)
    (far,) = numbers([units.factor * beyond.worst])
    return (
        f"joint '{printable(beyond.joint)}' gets beyond its limits in {beyond.count} of the cases, "
        f"by up to {far} {units.shown} in case {beyond.case}; no "
        "end stop holds it there"
    )


def search_problems(study: Study) -> list[str]:
    """What the search met that no sample had to have, in sentences."""
    searched, setup = study.searched, study.setup
    if searched is None:
        return []
    sentences = []
    bad = {k: n for k, n in searched.outcomes.items() if k not in ("stopped", "failed")}
    if bad:
        ends = ", ".join(f"{count} {outcome}" for outcome, count in bad.items())
        sentences.append(
            f"{sum(bad.values())} of the {searched.stops} stops of the search did not end with the "
            f"robot at rest and held: {ends}"
        )
    for joint, worst in searched.beyond.items():
        units = units_of(setup.robot, joint)
        (far,) = numbers([units.factor * worst])
        sentences.append(
            f"joint '{printable(joint)}' gets beyond its limits in the search, by up to {far} "
            f"{units.shown}"
        )
    near = searched.cases.get("clearance")
    if near is not None and near.value == 0.0:
        sentences.append("the robot touches an obstacle in a case that the search knows")
    return sentences


def _facts(study: Study, results: Results) -> KeyValues:
    setup = study.setup
    moving = [variable for variable in setup.variables if variable.varies]
    ended = sorted(results.outcomes.items(), key=lambda item: -item[1])
    entries: list[tuple[str, str | Cell]] = [
        ("cases", f"{study.done} of {study.size}, {study.sampling!r}"),
        *((name, Cell(str(count), "" if name == "stopped" else "bad")) for name, count in ended),
        ("category", str(setup.category.number)),
        ("brakes", setup.brakes.source or "given in Python"),
        ("varies", ", ".join(variable.name for variable in moving) or "nothing"),
        ("results", str(study.path)),
    ]
    return KeyValues.of("Study", entries)


def _distributions(study: Study, results: Results) -> list[QuantityDistribution]:
    """Of stopping time, tool path, clearance, and angle or travel per joint."""
    every = quantity_distributions(results, study.setup)
    return [item for item in every if item.quantity.kind not in ("impulse", "gear")]


def _grid(study: Study, known: Mapping[str, CriterionResult]) -> Table:
    """The worst that is known by every criterion and where it is from; what the samples say."""
    rows: list[tuple[str | Cell, ...]] = []
    for name, item in known.items():
        quantity, spread, worst = quantity_of(name, item.column), item.samples, item.headline
        if quantity.kind in _LOADS and item.searched is None:
            continue
        sizes = (worst.value, spread.worst, spread.most, spread.median)
        first, *others = numbers([quantity.factor * size for size in sizes])
        origin = "search" if worst.case is None else f"case {worst.case}"
        rows.append((quantity.label, Cell(first, "title"), origin, *others))
    headings = ("<", "worst", "<from", "worst sample", "95 %", "median")
    return Table.of("Over the cases that stopped and hold", headings, rows)


_LOADS = ("impulse", "gear")
"""Kinds of quantities that are shown if a search was asked for them."""


def how_worst(study: Study, known: Mapping[str, CriterionResult]) -> list[str]:
    """What samples prove, and how far the search went."""
    sentences = [prove(item.samples, study.sampling) for item in known.values()]
    searched = study.searched
    if searched is not None:
        sentences.append(
            f"the search from the worst samples and from corners made {searched.stops} stops"
        )
        bands = {name: case.interval for name, case in searched.cases.items()}
        parts = [
            f"{x} {band.text}, mostly by {band.shares[0][0]}" for x, band in bands.items() if band
        ]
        if parts:
            sentences.append(
                f"95 % intervals of the worst cases, as brake data vary: {'; '.join(parts)}"
            )
    elif study.complete and known:
        sentences.append("samples only: no search went on from them to worse cases")
    return [*dict.fromkeys(sentence for sentence in sentences if sentence)]


def worst_table(setup: Setup, worst: Mapping[str, WorstCase]) -> Report:
    """The table of worst cases, with the values of what varies."""
    rows = []
    for name, case in worst.items():
        unit, factor = shown_unit(column_unit(case.column))
        values = numbers((factor * case.value, factor * case.sampled))
        rows.append((f"{name} [{unit}]", *values, str(case.evaluations)))
    headings = ("<", "found", "worst sampled", "stops made")
    # Names of joints may hold what headings of `Table.of` mean something by.
    columns = (Column("", right=False), *(Column(printable(name)) for name in worst))
    places = []
    for variable in (variable for variable in setup.variables if variable.varies):
        unit = f" [{variable.unit}]" if variable.unit else ""
        values = [f"{case.values[variable.name]:.5g}" for case in worst.values()]
        places.append(tuple(map(Cell, (printable(f"{variable.name}{unit}"), *values))))
    where = Table("Where they are", columns, tuple(places))
    blocks = (Table.of("Worst cases", headings, rows), where)
    title = f"{setup.robot.name}: worst cases of {len(worst)} criteria"
    return Report.of(setup.guesses.title(title), blocks, f"{SAMPLED} {PLANNING_AID}")
