"""The report of a study: one HTML file with distributions, maps, worst cases and their replays.

Its size does not depend on the number of cases: pictures show bins, and only the worst cases are
replayed. Nothing is fetched when it is opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from ...boundary.files import as_path, may_replace, write_text
from ...errors import BadValue
from ...safety.stopping.assumptions import PLANNING_AID, assumptions_with
from ...safety.stopping.prepared_robot import tool_of
from ...safety.studies.cases import WorstCase
from ...safety.studies.study import Study
from ...safety.studies.summary import SAMPLED
from ...tables.page import render
from ...tables.report import Section, section_blocks
from ..plots.svg import figure, legend
from ..scene.commands import viewer_script
from ..stop_report.sections import provenance_of, time_stamp
from .distributions import KEYS, angle_charts, influence_of, table_rows, whole_charts
from .maps import maps_of
from .overview import (
    MOST_LIVE,
    badge,
    cards,
    choose_cases,
    facts,
    ranges,
    shown_cases,
    warnings,
)
from .report_manifest import FORMAT, Manifest, manifest_document, manifest_text
from .results import quantity_distributions, results_of

__all__ = ["write_report"]


def write_report(
    study: Study,
    path: str | Path,
    *,
    worst: Iterable[str] | Mapping[str, WorstCase] | None = None,
    sections: Iterable[Section] = (),
    stamp: bool = False,
) -> Path:
    """Write the report of a study as one HTML file that any browser shows without a network.

    What it was made from is in the page and in a file beside it, ``<path>.manifest.json``; its form
    is that of docs/schemas/study-manifest.schema.json. The same study gives the same bytes, unless
    it is stamped.

    Args:
        study: the study.
        path: file to write.
        worst: criteria whose worst samples are replayed, see `worst.criteria`, or worst cases that
            were found by `worst_case`; by default those that matter most.
        sections: further parts of one's own.
        stamp: say when it was written.

    Returns:
        The path of the file.

    Raises:
        UnknownName: a criterion that the study does not have.
        BadValue: a file cannot be written.
    """
    target = as_path(path)
    beside = target.with_name(f"{target.name}.manifest.json")
    if not may_replace(beside, FORMAT.encode()):
        raise BadValue(f"'{beside}' exists, and pinloop did not write it; name another report")
    manifest = manifest_document(study)
    text = _page_of(study, manifest, worst, sections, stamp)
    write_text(target, text)
    write_text(beside, manifest_text(manifest))
    return target


def _page_of(
    study: Study,
    manifest: Manifest,
    worst: Iterable[str] | Mapping[str, WorstCase] | None,
    sections: Iterable[Section],
    stamp: bool,
) -> str:
    """The text of a report, see `write_report`."""
    own, setup, results = section_blocks(study, sections), study.setup, results_of(study)
    measures = quantity_distributions(results, setup)
    cases = choose_cases(study, results, measures, worst)
    shared: dict[str, int] = {}
    numbers = list(cards(study, results, measures))
    chain = setup.trigger.chain(setup.brakes.chain)
    bands = any(v.kind in ("band", "delay") and v.varies for v in setup.variables)
    middle = "Bands and delays of brakes varied, see above; the numbers are those in the middle "
    return render(
        "show/study_report/templates/study.html",
        robot=setup.robot.name,
        stops="1 stop" if study.done == 1 else f"{study.done} stops",
        category=setup.category.number,
        sentence=f"{SAMPLED} {PLANNING_AID}",
        stamp=time_stamp(stamp),
        badge=badge(study, results),
        cards=numbers,
        across=4 if len(numbers) % 3 == 1 or len(numbers) == 8 else 3,
        links={case.number: case.key for case in cases if case.number is not None},
        warnings=warnings(study, results, measures, [case.stop for case in cases]),
        failures=results.failures,
        cases=list(shown_cases(study, cases, shared)),
        shared=shared,
        most_live=MOST_LIVE,
        maps=maps_of(results, measures, setup.obstacles, tool_of(setup.robot)),
        measures=measures,
        whole=list(whole_charts(measures)),
        angles=angle_charts(measures),
        numbers=list(table_rows(measures)),
        influences=influence_of(results, measures, setup.variables),
        influence_legend=legend(KEYS),
        figure=figure,
        own=own,
        ranges=ranges(setup),
        facts=facts(study),
        provenance=provenance_of(assumptions_with(setup.brakes, setup.robot, chain), setup.brakes),
        more=[f"{middle}of the bands."] if bands else [],
        manifest=manifest,
        viewer=viewer_script(),
    )
