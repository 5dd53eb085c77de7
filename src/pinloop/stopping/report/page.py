"""The page of a report: its sections in order, in one file that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.resources import files
from typing import TYPE_CHECKING

from ..export import as_document
from ..remarks import PLANNING_AID
from ..sheet import Facts, Grid
from ..tables import stop_table
from .bars import Stack, lanes, stacks
from .curves import Curves, curves_of, energy_stacks, heat_stacks, joint_lanes
from .headline import badge, cards
from .instants import Clock, clock_of, instants
from .markup import Content, Markup, element, joined
from .motion import Motion, motion_of
from .plots import Plot
from .tables import (
    chain_table,
    event_table,
    facts_table,
    grid_table,
    notes_of,
    parameter_tables,
    provenance_counts,
)

if TYPE_CHECKING:
    from ..result import StopResult

__all__ = ["page_of"]

_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data:"
)
"""What the browser lets the page do: nothing that needs a network. The viewer compiles."""


def page_of(
    result: StopResult,
    *,
    swept: bool = False,
    facts: Iterable[tuple[str, str]] = (),
    stamp: bool = False,
) -> str:
    """The text of a report, see `write_report`."""
    clock = clock_of(result)
    motion = motion_of(result, swept=swept)
    title = f"{result.robot.name}: stop of category {result.category.number}"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", f"{title} - pinloop"),
        element("link", rel="icon", href="data:,"),
        element("style", Markup(_asset("report.css") + motion.player.style)),
    )
    body = element(
        "body",
        _header(result, stamp=stamp),
        element("main", *_sections(result, clock, motion, facts), data_per_second=clock.factor),
        _footer(result),
        Markup(motion.player.scripts),
        element("script", Markup(_asset("report.js"))),
    )
    return f'<!DOCTYPE html>\n<html lang="en">\n{head}\n{body}\n</html>\n'


def _header(result: StopResult, *, stamp: bool) -> Markup:
    made = Markup("")
    if stamp:
        from datetime import UTC, datetime

        made = element("p", f"made {datetime.now(UTC):%Y-%m-%d %H:%M} UTC", class_="made")
    return element(
        "header",
        element("p", f"Stop analysis, category {result.category.number}", class_="kind"),
        element("h1", result.robot.name),
        badge(result),
        element("p", PLANNING_AID, class_="planning"),
        made,
    )


def _sections(
    result: StopResult, clock: Clock, motion: Motion, facts: Iterable[tuple[str, str]]
) -> Iterator[Markup]:
    """The sections of the page; what tables say is what the table of the stop says."""
    sheet = stop_table(result, facts)
    grids = [block for block in sheet.blocks if isinstance(block, Grid)]
    alone = {grid.title: grid for grid in grids if grid.title in ("Tool", "Energy")}
    curves = curves_of(result, clock)
    yield cards(result)
    if result.warnings:
        items = (element("li", warning) for warning in result.warnings)
        yield _section("Warnings", "warnings", element("ul", *items))
    yield _section("Replay", "replay", Markup(motion.player.markup), motion.remarks)
    stated = (facts_table(block) for block in sheet.blocks if isinstance(block, Facts))
    yield _section("What was stopped", "setting", *stated)
    yield _section(
        "Joints", "joints",
        *(grid_table(grid) for grid in grids if grid.title not in alone),
        _lanes(result, clock),
    )  # fmt: skip
    yield _section(
        "Tool",
        "tool",
        *(grid_table(grid, titled=False) for grid in _of(alone, "Tool")),
        _figure(curves.tool),
    )
    yield from _plots(curves)
    yield _section(
        "Energy", "energy",
        *(grid_table(grid, titled=False) for grid in _of(alone, "Energy")),
        _bars("Where the energy came from, and where it went", energy_stacks(result)),
        _bars("Heat, joint by joint", heat_stacks(result)),
        _figure(curves.energy),
        _figure(curves.power),
    )  # fmt: skip
    yield _section("Events", "events", event_table(result, clock))
    yield _assumptions(result)


def _of(grids: dict[str, Grid], title: str) -> list[Grid]:
    return [grids[title]] if title in grids else []


def _plots(curves: Curves) -> Iterator[Markup]:
    """Positions and velocities; torques joint by joint."""
    yield _section(
        "Motion", "motion", *(_figure(plot) for plot in (*curves.positions, *curves.velocities))
    )
    if curves.torques:
        several = (_figure(plot, titled=True) for plot in curves.torques)
        yield _section(
            "Torques at the joints", "torques",
            element(
                "p",
                "At the joint, gear included; of brake and drive before the losses of the gear. "
                "Of a joint that stands, what holds it is split in proportion to what each could "
                "hold.",
                class_="remark",
            ),
            element("div", *several, class_="multiples"),
        )  # fmt: skip


def _figure(plot: Plot, *, titled: bool = False) -> Markup:
    """A plot with its name and legend."""
    name = element("span", plot.title, class_="title")
    return element(
        "figure",
        element("figcaption", name, plot.legend()),
        plot.svg(),
        class_="half" if titled else None,
    )


def _bars(title: str, bars: list[Stack]) -> Markup:
    """Stacked bars with a legend."""
    parts = {part.name: part.color for bar in bars for part in bar.parts}
    if not parts:
        return Markup("")
    return element(
        "figure",
        element("figcaption", element("span", title, class_="title"), _keys(parts)),
        stacks(title, "energy [J]", bars),
    )


def _lanes(result: StopResult, clock: Clock) -> Markup:
    """What each joint does when."""
    rows, span = joint_lanes(result, clock)
    if not rows:
        return Markup("")
    keys = {one.name: one.color for lane in rows for one in lane.spans}
    order = [name for name in ("reaction", "braking", "stands") if name in keys]
    title = "Who moves, who is braked, who stands"
    label = f"time since the signal [{clock.unit}]"
    return element(
        "figure",
        element(
            "figcaption",
            element("span", title, class_="title"),
            _keys({name: keys[name] for name in order}),
        ),
        lanes(title, label, rows, span, instants(result, clock)),
    )


def _keys(colors: dict[str, str]) -> Markup:
    """A legend of coloured areas."""
    items = []
    for name, color in colors.items():
        area = element("rect", width=14, height=14, rx=2, fill=color)
        key = element("svg", area, viewBox="0 0 14 14", width=14, height=14, aria_hidden="true")
        items.append(element("li", key, " ", name))
    return element("ul", *items, class_="legend")


def _assumptions(result: StopResult) -> Markup:
    """Every number with its provenance."""
    notes = notes_of(result)
    remarks = []
    if notes:
        remarks.append(element("h3", "Remarks in the brakes file"))
        remarks.append(element("ul", *(element("li", note) for note in notes)))
    return _section(
        "What it rests on", "assumptions",
        element("p", "Every number of the signal chain and of the brakes, gears, friction and "
                "drives, with a letter for where it comes from:"),
        provenance_counts(result.assumptions),
        chain_table(result),
        *parameter_tables(result),
        *remarks,
    )  # fmt: skip


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


def _section(title: str, name: str, *content: Content) -> Markup:
    return element("section", element("h2", title), joined(*content), id=name, class_="part")


def _asset(name: str) -> str:
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")
