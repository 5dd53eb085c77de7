"""The page of the report of a study: its sections in order, in one file that needs nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...safety.stopping.assumptions import PLANNING_AID, assumptions_with
from ...safety.stopping.prepared_robot import tool_of
from ...safety.studies.cases import WorstCase
from ...safety.studies.study import Study
from ...safety.studies.summary import SAMPLED
from ...tables.markup import Content, Markup, element
from ...tables.page import asset, document
from ...tables.report import Block, Section, section_blocks
from ..scene.html import policy
from ..stop_report.sections import assumptions_section, made_at, own_sections, report_style, section
from .distributions import distributions_section, influence_section
from .maps import map_section
from .overview import badge, cards, failures_section, setting_section, warnings_section
from .replayed import Replayed, Replays, chosen, replays_section
from .results import Measures, Results, quantity_distributions, results_of

__all__ = ["page_of"]


def page_of(
    study: Study,
    manifest: str,
    *,
    worst: Iterable[str] | Mapping[str, WorstCase] | None = None,
    sections: Iterable[Section] = (),
    stamp: bool = False,
) -> str:
    """The text of a report, see `write_report`.

    Args:
        study: the study.
        manifest: the text of its manifest.
        worst: which cases are replayed.
        sections: further parts of one's own.
        stamp: say when it was written.
    """
    own = section_blocks(study, sections)
    results = results_of(study)
    measures = quantity_distributions(results, study.setup)
    cases = chosen(study, results, measures, worst)
    replays = replays_section(cases, study)
    player = replays.player
    stops = "1 stop" if study.done == 1 else f"{study.done} stops"
    return document(
        f"{study.setup.robot.name}: study of {stops}",
        (player.style if player else "") + report_style() + asset(__package__, "study.css"),
        _header(study, results, stops, stamp=stamp),
        element("main", *_sections(study, results, measures, cases, replays, own)),
        _footer(json.loads(manifest)),
        element(
            "script",
            Markup(manifest.replace("<", "\\u003c")),
            type="application/json",
            id="manifest",
        ),
        Markup(player.scripts if player else ""),
        element("script", Markup(asset(__package__, "study.js"))) if player else Markup(""),
        policy=policy(),
    )


def _header(study: Study, results: Results, stops: str, *, stamp: bool) -> Markup:
    number = study.setup.category.number
    return element(
        "header",
        element("p", f"Study of {stops} of category {number}", class_="kind"),
        element("h1", study.setup.robot.name),
        badge(study, results),
        element("p", f"{SAMPLED} {PLANNING_AID}", class_="planning"),
        made_at() if stamp else Markup(""),
    )


def _sections(
    study: Study,
    results: Results,
    measures: Measures,
    cases: list[Replayed],
    replays: Replays,
    own: Sequence[Block],
) -> Iterator[Markup]:
    """The sections of the page."""
    setup = study.setup
    links = {int(case.key[5:]): case.key for case in cases if case.key.startswith("case-")}
    yield cards(study, results, measures, links)
    yield warnings_section(study, results, measures, cases)
    yield failures_section(results, links)
    yield replays.markup
    yield map_section(results, measures, setup.obstacles, tool_of(setup.robot))
    yield distributions_section(measures, links)
    yield influence_section(results, measures, setup.variables)
    yield from own_sections(own)
    yield setting_section(study)
    chain = setup.trigger.chain(setup.brakes.chain)
    varied = [
        variable
        for variable in setup.variables
        if variable.kind in ("band", "delay") and variable.varies
    ]
    more = (
        [
            "Bands and delays of brakes varied, see above; the numbers are those in the middle "
            "of the bands."
        ]
        if varied
        else []
    )
    assumptions = assumptions_with(setup.brakes, setup.robot, chain)
    yield assumptions_section(assumptions, setup.brakes, more)
    yield section(
        "How to repeat it",
        "repeat",
        element(
            "p",
            "The manifest is in this page (element ",
            element("code", "manifest"),
            ") and in the file beside it: versions, digests of the files, all numbers of the "
            "brakes, ranges, seed and integrator. The same study gives the same rows to the last "
            "digit; a case depends on its number only.",
        ),
    )


def _footer(manifest: Mapping[str, Any]) -> Markup:
    """Versions and digests, by which the study can be done again."""
    versions = ", ".join(f"{name} {version}" for name, version in manifest["versions"].items())
    lines: list[Content] = [f"Computed with {versions}."]
    for name in ("robot", "brakes", "results"):
        record = manifest[name]
        if record["sha256"] is not None:
            lines.append(f"{name}: {record['file']}, SHA-256 {record['sha256']}")
    lines.append(f"{SAMPLED} {PLANNING_AID}")
    return element("footer", *(element("p", line) for line in lines))
