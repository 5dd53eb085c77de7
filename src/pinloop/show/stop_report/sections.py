"""What pages of reports are made of: sections, cards, figures, events, provenance of numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from ...safety.brakes.brakes import Assumption, Brakes
from ...safety.brakes.joint_brake import CHAIN_PARAMETERS, JOINT_PARAMETERS, quantity
from ...safety.stopping.joint_stop import JointStop
from ...safety.stopping.point_stop import PointStop
from ...safety.stopping.result import StopResult
from ...tables.markup import Content, Markup, element, joined
from ...tables.number_format import decimals, listed, milliseconds, number, units_of
from ...tables.page import asset, style
from ...tables.report import Block
from ...tables.report_html import block_html, framed_table
from ..plots.svg import Plot, area_key, legend
from .instants import Clock, happenings

__all__ = [
    "area_legend",
    "assumptions_section",
    "badge",
    "card",
    "cards",
    "chain_table",
    "event_table",
    "figure",
    "made_at",
    "notes_of",
    "own_sections",
    "parameter_tables",
    "provenance_counts",
    "report_style",
    "section",
]


def made_at() -> Markup:
    """When the page was made: now."""
    return element("p", f"made {datetime.now(UTC):%Y-%m-%d %H:%M} UTC", class_="made")


def section(title: str, name: str, *content: Content) -> Markup:
    """A part of the page with a heading."""
    return element("section", element("h2", title), joined(*content), id=name, class_="part")


def own_sections(blocks: Iterable[Block]) -> Iterator[Markup]:
    """Parts of the page that a user has written."""
    for index, block in enumerate(blocks, start=1):
        yield section(block.title, f"own-{index}", block_html(block, titled=False))


def figure(plot: Plot, *, titled: bool = False, legend: bool = True) -> Markup:
    """A plot with its name and legend.

    Args:
        plot: the plot.
        titled: whether it is one of several of half the width.
        legend: whether the curves are named.
    """
    name = element("span", plot.title, class_="title")
    return element(
        "figure",
        element("figcaption", name, plot.legend() if legend else ""),
        plot.svg(),
        class_="half" if titled else None,
    )


def area_legend(colors: Mapping[str, str]) -> Markup:
    """A legend of coloured areas: colours by name."""
    return legend((name, area_key(color)) for name, color in colors.items())


def assumptions_section(
    assumptions: Sequence[Assumption], brakes: Brakes, more: Iterable[str] = ()
) -> Markup:
    """Every number with its provenance.

    Args:
        assumptions: the numbers.
        brakes: whose remarks are told.
        more: further sentences.
    """
    notes = notes_of(brakes)
    remarks = []
    if notes:
        remarks.append(element("h3", "Remarks in the brakes file"))
        remarks.append(element("ul", *(element("li", note) for note in notes)))
    return section(
        "What it rests on",
        "assumptions",
        element(
            "p",
            "Every number of the signal chain and of the brakes, gears, friction and "
            "drives, with a letter for where it comes from:",
        ),
        provenance_counts(assumptions),
        chain_table(assumptions),
        *parameter_tables(assumptions),
        *(element("p", sentence) for sentence in more),
        *remarks,
    )


def report_style() -> str:
    """Rules for the pages of reports."""
    return style() + asset(__package__, "report.css")


_OUTCOMES = {
    "stopped": ("good", "STOPPED", "and holds"),
    "does not hold": ("bad", "DOES NOT HOLD", ""),
    "time-out": ("bad", "NOT STOPPED", "within the time computed"),
}


def badge(result: StopResult) -> Markup:
    """What became of the stop, for all to see."""
    mark, word, more = _OUTCOMES[result.outcome]
    beyond = {passed.joint: None for passed in result.joint_limits() if passed.kind == "position"}
    if mark == "good" and beyond:
        mark, more = "warn", f"{more}, but beyond the limits of {listed(list(beyond))}"
    icon = "\N{CHECK MARK}" if mark == "good" else "\N{WARNING SIGN}\N{VARIATION SELECTOR-15}"
    return element(
        "p",
        element("span", icon, aria_hidden="true"),
        " ",
        element("strong", word),
        f" {more}" if more else "",
        class_=f"badge {mark}",
    )


def cards(result: StopResult) -> Markup:
    """The numbers that count."""
    return element("div", *_cards(result), class_="cards")


def _cards(result: StopResult) -> Iterator[Markup]:
    reaction = min(result.reaction_time, result.stopping_time)
    braking = result.stopping_time - reaction
    moving = any(joint.state == "moving" for joint in result.joints.values())
    name = "time computed" if moving else "time to standstill"
    yield card(
        "stopping time" if result.outcome == "stopped" else name,
        *_parted(milliseconds(result.stopping_time)),
        f"{milliseconds(reaction)} reaction + {milliseconds(braking)} braking",
    )
    yield _tool(result.point())
    joints = list(result.joints.values())
    if joints:
        yield _worst(result, joints)
    known = [joint for joint in joints if joint.gear_use is not None]
    if known:
        gear = max(known, key=lambda joint: joint.gear_use or 0.0)
        use = number(100 * (gear.gear_use or 0.0), 0)
        unit = units_of(result.robot, gear.name).torque
        yield card(
            "highest gear utilisation",
            use,
            "%",
            f"{gear.name}: {_four(gear.peak_gear_torque)} of {_four(gear.gear_limit)} {unit}",
            "bad" if (gear.gear_use or 0.0) > 1 else "",
        )
    loaded = [joint for joint in joints if joint.load]
    if loaded and result.outcome != "time-out":
        weakest = min(loaded, key=lambda joint: joint.margin)
        yield _holding(result, weakest)


def _tool(point: PointStop) -> Markup:
    ways = [1e3 * way for way in (point.length, point.reaction_length, point.braking_length)]
    places = decimals(ways, most=3)
    length, reaction, braking = (number(way, places) for way in ways)
    speed = 1e3 * point.peak_speed
    peak = number(speed, decimals([speed], most=3))
    return card(
        f"tool path ({point.frame})",
        length,
        "mm",
        f"{reaction} mm reaction + {braking} mm braking; peak speed {peak} mm/s",
    )


def _worst(result: StopResult, joints: list[JointStop]) -> Markup:
    """The joint that moves farthest, and the one that stands last."""
    turning = [j for j in joints if units_of(result.robot, j.name).shown == "deg"]
    sort = turning or joints
    worst = max(sort, key=lambda joint: abs(joint.angle))
    last = max(joints, key=lambda joint: joint.time)
    units = units_of(result.robot, worst.name)
    value = units.factor * worst.angle
    text = f"{worst.name} moves farthest"
    moving = [joint.name for joint in joints if joint.state == "moving"]
    if moving:
        text += f"; still in motion: {listed(moving)}"
    elif last is worst:
        text += f" and comes to rest last, after {milliseconds(last.time)}"
    else:
        text += f"; {last.name} comes to rest last, after {milliseconds(last.time)}"
    return card("worst joint", number(value, decimals([value], most=3)), units.shown, text)


def _holding(result: StopResult, joint: JointStop) -> Markup:
    """The joint with the least reserve against gravity."""
    unit = units_of(result.robot, joint.name).torque
    hold = "a tooth" if joint.hold == float("inf") else f"{_four(joint.hold)} {unit}"
    ample = joint.margin > 1000.0
    return card(
        "smallest holding margin",
        ">1000" if ample else number(joint.margin, 2),
        "\N{MULTIPLICATION SIGN} load",
        f"{joint.name}: held by {hold}, load {_four(abs(joint.load))} {unit}",
        "bad" if joint.margin < 1 else "",
    )


def _four(value: float | None) -> str:
    """A number with four digits."""
    return "-" if value is None else number(value, decimals([value]))


def _parted(text: str) -> tuple[str, str]:
    value, unit = text.split(" ")
    return value, unit


def _kept_together(text: str) -> Markup:
    """A text whose numbers stay with their units at the end of a line."""
    units = r"(?<=\d) (ms|mm/s|mm|N m|N|s)\b"
    return Markup(re.sub(units, lambda match: match[0].replace(" ", "&nbsp;"), joined(text)))


def card(name: str, value: str, unit: str, more: str, mark: str = "") -> Markup:
    """A number that counts.

    Args:
        name: what it is.
        value: the number.
        unit: its unit.
        more: a line below it.
        mark: what it is for colours: "good", "bad", or neither.
    """
    return element(
        "div",
        element("h2", name),
        element("p", element("strong", value), " ", unit, class_=f"value {mark}".strip()),
        element("p", _kept_together(more), class_="more"),
        class_="card",
    )


_ABREAST = 6
"""So many joints stand beside each other in a table of parameters."""

SOURCES = {
    "measured": ("M", "measured"),
    "datasheet": ("D", "from a data sheet"),
    "robot": ("R", "from the robot's file"),
    "assumed": ("A", "assumed"),
    "default": ("\N{EN DASH}", "not given: default taken"),
}
"""Letter and words for where a number comes from."""


def event_table(result: StopResult, clock: Clock) -> Markup:
    """Everything that happened."""
    rows = (
        element(
            "tr",
            element("td", f"{clock.factor * event.t:.{clock.places}f}", class_="right"),
            element("td", event.what),
            element("td", ", ".join(event.joints) or "robot"),
        )
        for event in happenings(result)
    )
    head = element(
        "thead",
        element(
            "tr",
            element("th", f"t [{clock.unit}]", scope="col", class_="right"),
            element("th", "what", scope="col"),
            element("th", "who", scope="col"),
        ),
    )
    title = "Events in order of time"
    return framed_table(title, "events", head, element("tbody", *rows), titled=False)


# -- provenance ---------------------------------------------------------------------------------


def provenance_counts(rows: Iterable[Assumption]) -> Markup:
    """How many numbers come from where, with the letters that stand for it."""
    counts = Counter(_source(row) for row in rows)
    return element(
        "ul",
        *(
            element("li", _letter(source), " ", element("strong", str(counts[source])), f" {words}")
            for source, (_, words) in SOURCES.items()
        ),
        class_="sources",
    )


def chain_table(assumptions: Iterable[Assumption]) -> Markup:
    """The signal chain, with provenance."""
    rows = []
    for row in assumptions:
        if row.joint:
            continue
        value, unit = quantity(row.value, row.unit, CHAIN_PARAMETERS[row.parameter])
        rows.append(
            element(
                "tr",
                element("th", _heading(row.parameter, unit), scope="row"),
                element("td", value, " ", _letter(_source(row)), class_="right"),
            )
        )
    return framed_table("Signal chain", "parameters", element("tbody", *rows))


def parameter_tables(assumptions: Iterable[Assumption]) -> list[Markup]:
    """Parameters of brakes, gears, friction and drives, joints beside each other."""
    table = {(row.parameter, row.joint): row for row in assumptions if row.joint}
    joints = list(dict.fromkeys(joint for _, joint in table))
    tables = []
    for first in range(0, len(joints), _ABREAST):
        some = joints[first : first + _ABREAST]
        title = "Brakes, gears, friction and drives"
        title += "" if len(joints) <= _ABREAST else f": {some[0]} to {some[-1]}"
        tables.append(_parameters(title, some, table))
    return tables


def notes_of(brakes: Brakes) -> list[str]:
    """What the brakes file remarks about numbers."""
    notes = [f"{name}: {note}" for name, note in brakes.chain.notes.items()]
    for joint, brake in brakes.joints.items():
        notes += [f"{joint}, {name}: {note}" for name, note in brake.notes.items()]
    return notes


def _parameters(
    title: str, joints: Sequence[str], table: dict[tuple[str, str], Assumption]
) -> Markup:
    rows = []
    for parameter in JOINT_PARAMETERS:
        quantities = {
            joint: quantity(row.value, row.unit, JOINT_PARAMETERS[parameter])
            for joint in joints
            if (row := table.get((parameter, joint))) is not None
        }
        if not quantities:
            continue
        units = {unit for _, unit in quantities.values()} - {""}
        common = units.pop() if len(units) == 1 else ""
        cells = []
        for joint in joints:
            if joint not in quantities:
                cells.append(element("td", "", class_="right"))
                continue
            value, unit = quantities[joint]
            text = value if unit == common or not unit else f"{value} {unit}"
            source = _letter(_source(table[parameter, joint]))
            cells.append(element("td", text, " ", source, class_="right"))
        rows.append(element("tr", element("th", _heading(parameter, common), scope="row"), *cells))
    head = element(
        "thead",
        element(
            "tr",
            element("th", "parameter", scope="col"),
            *(element("th", joint, scope="col", class_="right") for joint in joints),
        ),
    )
    return framed_table(title, "parameters", head, element("tbody", *rows))


def _source(row: Assumption) -> str:
    return row.source if row.given or row.source != "assumed" else "default"


def _letter(source: str) -> Markup:
    letter, words = SOURCES[source]
    return element("abbr", letter, title=words, class_=f"source {source}")


def _heading(parameter: str, unit: str) -> Markup:
    name = parameter.replace("_", " ")
    return joined(name, element("span", f" [{unit}]")) if unit else joined(name)
