"""The page of a report: its sections in order, in one file that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ...safety.stopping.assumptions import PLANNING_AID
from ...safety.stopping.export import as_document
from ...safety.stopping.result import StopResult
from ...safety.stopping.stop_table import stop_table
from ...tables.markup import Content, Markup, element
from ...tables.page import asset, document
from ...tables.report import Block, KeyValues, Section, Table, section_blocks
from ...tables.report_html import key_values_html, table_html
from ..plots.chart_shapes import Stack, lanes, stacks
from ..scene.html import policy
from .instants import Clock, clock_of, instants
from .joint_curves import Curves, curves_of, energy_stacks, heat_stacks, joint_lanes
from .sections import (
    area_legend,
    assumptions_section,
    badge,
    cards,
    event_table,
    figure,
    made_at,
    own_sections,
    report_style,
    section,
)
from .stop_replay import Motion, motion_of

__all__ = ["page_of"]


def page_of(
    result: StopResult,
    *,
    swept: bool = False,
    facts: Iterable[tuple[str, str]] = (),
    sections: Iterable[Section] = (),
    stamp: bool = False,
) -> str:
    """The text of a report, see `write_report`."""
    clock = clock_of(result)
    motion = motion_of(result, swept=swept)
    title = f"{result.robot.name}: stop of category {result.category.number}"
    own = section_blocks(result, sections)
    return document(
        title,
        motion.player.style + report_style(),
        _header(result, stamp=stamp),
        element(
            "main", *_sections(result, clock, motion, facts, own), data_per_second=clock.factor
        ),
        _footer(result),
        Markup(motion.player.scripts),
        element("script", Markup(asset(__package__, "report.js"))),
        policy=policy(),
    )


def _header(result: StopResult, *, stamp: bool) -> Markup:
    return element(
        "header",
        element("p", f"Stop analysis, category {result.category.number}", class_="kind"),
        element("h1", result.robot.name),
        badge(result),
        element("p", PLANNING_AID, class_="planning"),
        made_at() if stamp else Markup(""),
    )


def _sections(
    result: StopResult,
    clock: Clock,
    motion: Motion,
    facts: Iterable[tuple[str, str]],
    own: Sequence[Block],
) -> Iterator[Markup]:
    """The sections of the page; what tables say is what the table of the stop says."""
    report = stop_table(result, facts)
    grids = [block for block in report.blocks if isinstance(block, Table)]
    alone = {grid.title: grid for grid in grids if grid.title in ("Tool", "Energy")}
    curves = curves_of(result, clock)
    yield cards(result)
    if result.warnings:
        items = (element("li", warning) for warning in result.warnings)
        yield section("Warnings", "warnings", element("ul", *items))
    yield section("Replay", "replay", Markup(motion.player.markup), motion.remarks)
    stated = (key_values_html(block) for block in report.blocks if isinstance(block, KeyValues))
    yield section("What was stopped", "setting", *stated)
    yield section(
        "Joints",
        "joints",
        *(table_html(grid) for grid in grids if grid.title not in alone),
        _lanes(result, clock),
    )
    yield section(
        "Tool",
        "tool",
        *(table_html(grid, titled=False) for grid in _of(alone, "Tool")),
        figure(curves.tool),
    )
    yield from _plots(curves)
    yield section(
        "Energy",
        "energy",
        *(table_html(grid, titled=False) for grid in _of(alone, "Energy")),
        _bars("Where the energy came from, and where it went", energy_stacks(result)),
        _bars("Heat, joint by joint", heat_stacks(result)),
        figure(curves.energy),
        figure(curves.power),
    )
    yield section("Events", "events", event_table(result, clock))
    yield from own_sections(own)
    yield assumptions_section(result.assumptions, result.brakes)


def _of(grids: dict[str, Table], title: str) -> list[Table]:
    return [grids[title]] if title in grids else []


def _plots(curves: Curves) -> Iterator[Markup]:
    """Positions and velocities; torques joint by joint."""
    yield section(
        "Motion", "motion", *(figure(plot) for plot in (*curves.positions, *curves.velocities))
    )
    if curves.torques:
        several = (figure(plot, titled=True) for plot in curves.torques)
        yield section(
            "Torques at the joints",
            "torques",
            element(
                "p",
                "At the joint, gear included; of brake and drive before the losses of the gear. "
                "Of a joint at rest, what holds it is split in proportion to what each could "
                "hold.",
                class_="remark",
            ),
            element("div", *several, class_="multiples"),
        )


def _bars(title: str, bars: list[Stack]) -> Markup:
    """Stacked bars with a legend."""
    parts = {part.name: part.color for bar in bars for part in bar.parts}
    if not parts:
        return Markup("")
    return element(
        "figure",
        element("figcaption", element("span", title, class_="title"), area_legend(parts)),
        stacks(title, "energy [J]", bars),
    )


def _lanes(result: StopResult, clock: Clock) -> Markup:
    """What each joint does when."""
    rows, span = joint_lanes(result, clock)
    if not rows:
        return Markup("")
    colors = {stretch.name: stretch.color for lane in rows for stretch in lane.spans}
    order = [name for name in ("reaction", "braking", "at rest") if name in colors]
    title = "Joints: reaction, braking, at rest"
    label = f"time since the signal [{clock.unit}]"
    return element(
        "figure",
        element(
            "figcaption",
            element("span", title, class_="title"),
            area_legend({name: colors[name] for name in order}),
        ),
        lanes(title, label, rows, span, instants(result, clock)),
    )


def _footer(result: StopResult) -> Markup:
    """Versions and digests, by which the computation can be done again."""
    document = as_document(result)
    versions = ", ".join(f"{name} {version}" for name, version in document["versions"].items())
    lines: list[Content] = [f"Computed with {versions}."]
    for name in ("robot", "brakes"):
        record = document["robot"] if name == "robot" else document["brakes"]
        if record["sha256"] is not None:
            lines.append(f"{name}: {record['file']}, SHA-256 {record['sha256']}")
    lines.append(PLANNING_AID)
    return element("footer", *(element("p", line) for line in lines))
