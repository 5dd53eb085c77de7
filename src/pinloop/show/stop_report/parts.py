"""What pages of reports are made of: the document around it, sections, figures, provenance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ...safety.brakes.brakes import Assumption
from ...tables.markup import Content, Markup, element, joined
from ...tables.page import asset, style
from ..plots.svg import Plot, area_key, legend
from .tables import chain_table, notes_of, parameter_tables, provenance_counts

if TYPE_CHECKING:
    from ...safety.brakes.brakes import Brakes

__all__ = ["area_legend", "assumptions_section", "figure", "made_at", "report_style", "section"]


def made_at() -> Markup:
    """When the page was made: now."""
    return element("p", f"made {datetime.now(UTC):%Y-%m-%d %H:%M} UTC", class_="made")


def section(title: str, name: str, *content: Content) -> Markup:
    """A part of the page with a heading."""
    return element("section", element("h2", title), joined(*content), id=name, class_="part")


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
        "What it rests on", "assumptions",
        element("p", "Every number of the signal chain and of the brakes, gears, friction and "
                "drives, with a letter for where it comes from:"),
        provenance_counts(assumptions),
        chain_table(assumptions),
        *parameter_tables(assumptions),
        *(element("p", sentence) for sentence in more),
        *remarks,
    )  # fmt: skip


def report_style() -> str:
    """Rules for the pages of reports."""
    return style() + asset(__package__, "report.css")
