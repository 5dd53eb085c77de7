"""Tables of a report: the blocks of a report, events, and every number with its provenance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ...safety.brakes.joint_brake import CHAIN_PARAMETERS, JOINT_PARAMETERS, quantity
from ...tables.html import framed_table
from ...tables.markup import Markup, element, joined
from .instants import Clock, happenings

if TYPE_CHECKING:
    from ...safety.brakes.brakes import Assumption, Brakes
    from ...safety.stopping.result import StopResult

__all__ = [
    "chain_table",
    "event_table",
    "notes_of",
    "parameter_tables",
    "provenance_counts",
]

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
            element("td", f"{clock.factor * one.t:.{clock.places}f}", class_="right"),
            element("td", one.what),
            element("td", ", ".join(one.joints) or "robot"),
        )
        for one in happenings(result)
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
    found = []
    for first in range(0, len(joints), _ABREAST):
        some = joints[first : first + _ABREAST]
        title = "Brakes, gears, friction and drives"
        title += "" if len(joints) <= _ABREAST else f": {some[0]} to {some[-1]}"
        found.append(_parameters(title, some, table))
    return found


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
        said = {
            joint: quantity(row.value, row.unit, JOINT_PARAMETERS[parameter])
            for joint in joints
            if (row := table.get((parameter, joint))) is not None
        }
        if not said:
            continue
        units = {unit for _, unit in said.values()} - {""}
        common = units.pop() if len(units) == 1 else ""
        cells = []
        for joint in joints:
            if joint not in said:
                cells.append(element("td", "", class_="right"))
                continue
            value, unit = said[joint]
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
