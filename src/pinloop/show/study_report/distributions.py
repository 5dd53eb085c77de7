"""How times, ways and torques are distributed: histograms, shares of the cases, a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from ...tables.markup import Markup, element, joined
from ...tables.number_format import decimals, number
from ..plots.charts import Instant, Line
from ..plots.shapes import Bars
from ..plots.svg import Plot
from ..stop_report.parts import figure, section
from .quantities import Told

__all__ = ["case_link", "distributions_section", "histogram", "histogram_plot"]

Array = NDArray[np.float64]

_HALF = 440.0
_COLOR = "#3d7fb8"
_SMALL = ("angle", "impulse", "gear")
_MOST_JOINTS = 12
"""So many joints have a histogram each; of more, the farthest ones do."""


def distributions_section(told: Mapping[str, Told], links: Mapping[int, str]) -> Markup:
    """All distributions.

    Args:
        told: quantities by criterion.
        links: by number of the case, where in the page it is replayed.
    """
    if not told:
        text = "No case ended with the robot at rest and held: there is nothing to distribute."
        return section("Distributions", "distributions", element("p", text))
    whole = [one for one in told.values() if one.quantity.kind not in _SMALL]
    pictures = [
        element("div", figure(histogram_plot(one), titled=True), _shares(one), class_="multiples")
        for one in whole
    ]
    return section(
        "Distributions", "distributions",
        element(
            "p", "Of the cases that ended with the robot at rest and held; the others are "
            "counted by themselves. The largest value is marked, of clearances the smallest. "
            "Point at a bar to read it.", class_="remark",
        ),
        *pictures,
        _joints(told.values()),
        element("h3", "In numbers"),
        _table(told.values(), links),
    )  # fmt: skip


def histogram(values: Array) -> tuple[Array, NDArray[np.int64]]:
    """Edges and counts of even bins from the smallest value to the largest one.

    As many as Rice's rule says, 2 n^(1/3), but 6 to 40; a single one if all values are the same.

    Args:
        values: shape (n,) with n > 0.
    """
    low, high = float(values.min()), float(values.max())
    if high - low <= 1e-12 * max(abs(low), abs(high)):
        room = 0.05 * abs(low) or 0.5
        return np.array([low - room, high + room]), np.array([len(values)])
    bins = int(min(40, max(6, np.ceil(2.0 * len(values) ** (1 / 3)))))
    counts, edges = np.histogram(values, bins=bins)
    return edges, counts.astype(np.int64)


def histogram_plot(one: Told, height: float = 170.0) -> Plot:
    """The histogram of a quantity, with median, 95 % and the worst case marked."""
    edges, counts = histogram(one.shown)
    quantity, spread = one.quantity, one.spread
    marks = [
        Instant(quantity.factor * spread.median, f"median {quantity.bare(spread.median)}"),
        Instant(quantity.factor * spread.most, f"95 % {quantity.bare(spread.most)}"),
        Instant(quantity.factor * spread.worst,
                f"worst {quantity.bare(spread.worst)}: case {spread.case}"),
    ]  # fmt: skip
    if spread.worst == spread.median:
        marks = marks[2:]
    return Plot(
        _capital(quantity.name), quantity.label, "cases", [], (float(edges[0]), float(edges[-1])),
        marks, width=_HALF, height=height,
        shapes=[Bars(edges, counts.astype(float), quantity.unit, _COLOR)], follows=False,
        whole=True,
    )  # fmt: skip


def _shares(one: Told) -> Markup:
    """Which share of the cases stays within a value."""
    quantity = one.quantity
    ordered = np.sort(one.shown)
    share = 100.0 * np.arange(1, len(ordered) + 1) / len(ordered)
    if len(ordered) > 400:  # what a picture can show
        chosen = np.unique(np.linspace(0, len(ordered) - 1, 400).round().astype(int))
        ordered, share = ordered[chosen], share[chosen]
    x = np.repeat(ordered, 2)
    y = np.concatenate([[0.0], np.repeat(share, 2)[:-1]])
    low, high = float(x[0]), float(x[-1])
    if high <= low:
        low, high = low - (0.05 * abs(low) or 0.5), high + (0.05 * abs(high) or 0.5)
    plot = Plot(
        f"{_capital(quantity.name)}, cumulative", quantity.label, "share of the cases [%]",
        [Line(quantity.name, x, y, _COLOR)], (low, high),
        [Instant(quantity.factor * one.spread.most)] if low < high else [],
        width=_HALF, height=170.0, room=False, follows=False,
    )  # fmt: skip
    return figure(plot, titled=True)


def _joints(told: Iterable[Told]) -> Markup:
    """How far the joints go, in small histograms."""
    found = [one for one in told if one.quantity.kind == "angle"]
    if not found:
        return Markup("")
    said = Markup("")
    if len(found) > _MOST_JOINTS:
        order = sorted(found, key=lambda one: -one.spread.worst * one.quantity.factor)
        kept = {one.quantity.joint for one in order[:_MOST_JOINTS]}
        text = f"The {_MOST_JOINTS} of {len(found)} joints that go farthest; all are in the table."
        said = element("p", text, class_="remark")
        found = [one for one in found if one.quantity.joint in kept]
    pictures = (figure(histogram_plot(one, 120.0), titled=True) for one in found)
    return joined(
        element("h3", "How far the joints go"), said, element("div", *pictures, class_="multiples")
    )


def _table(told: Iterable[Told], links: Mapping[int, str]) -> Markup:
    """Median, 95 % and worst of everything, with the case of the worst."""
    heads = ("", "median", "95 % of the cases", "worst", "in case")
    head = element("tr", *(element("th", text, scope="col", class_="right" if k else None)
                           for k, text in enumerate(heads)))  # fmt: skip
    rows = [element("tr", *_row(one, links)) for one in told]
    caption = element("caption", "Distributions in numbers", class_="unseen")
    table = element(
        "table", caption, element("thead", head), element("tbody", *rows), class_="numbers"
    )
    return element(
        "div", table, class_="wide", tabindex="0", role="region",
        aria_label="Distributions in numbers",
    )  # fmt: skip


def _row(one: Told, links: Mapping[int, str]) -> Iterator[Markup]:
    quantity, spread = one.quantity, one.spread
    unit = element("span", f" [{quantity.unit}]")
    yield element("th", quantity.name, unit, scope="row")
    shown = [quantity.factor * value for value in (spread.median, spread.most, spread.worst)]
    places = decimals(shown, most=3)
    for k, value in enumerate(shown):
        text = number(value, places)
        yield element("td", element("strong", text) if k == 2 else text, class_="right")
    yield element("td", case_link(spread.case, links), class_="right")


def case_link(case: int, links: Mapping[int, str]) -> Markup:
    """The number of a case, as a link if it is replayed in the page."""
    if case not in links:
        return joined(str(case))
    return element("a", str(case), href=f"#{links[case]}")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
