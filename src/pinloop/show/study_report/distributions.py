"""How times, paths and torques are distributed, and what they depend on.

How much a varied quantity explains by itself is the correlation ratio over bins, corrected for what
chance alone would explain (Kelley 1935, epsilon squared): ``1 - (within / (n - k)) / (total / (n -
1))`` with n cases in k bins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import printable
from ...safety.studies.space import Variable
from ...tables.markup import Markup, element, joined
from ...tables.number_format import decimals, number
from ...tolerances import ALL_EQUAL
from ...units import shown_unit
from ..plots.chart_shapes import Band, Bars, Dots
from ..plots.charts import Instant, Line
from ..plots.svg import Plot, area_key, legend, line_key
from ..stop_report.sections import figure, section
from .results import VARIED, Measures, QuantityDistribution, Results

__all__ = [
    "Binned",
    "binned",
    "case_link",
    "distributions_section",
    "histogram",
    "histogram_plot",
    "influence_section",
    "share_explained",
]

Array = NDArray[np.float64]

_HALF = 440.0
_COLOR = "#3d7fb8"
_SMALL = ("angle", "impulse", "gear")
_MOST_JOINTS = 12
"""So many joints have a histogram each; of more, the farthest ones do."""


def distributions_section(measures: Measures, links: Mapping[int, str]) -> Markup:
    """All distributions.

    Args:
        measures: quantities by criterion.
        links: by number of the case, where in the page it is replayed.
    """
    if not measures:
        text = "No case ended with the robot at rest and held: there is nothing to distribute."
        return section("Distributions", "distributions", element("p", text))
    whole = [measure for measure in measures.values() if measure.quantity.kind not in _SMALL]
    pictures = [
        element(
            "div",
            figure(histogram_plot(measure), titled=True),
            _shares(measure),
            class_="multiples",
        )
        for measure in whole
    ]
    return section(
        "Distributions",
        "distributions",
        element(
            "p",
            "Of the cases that ended with the robot at rest and held; the others are "
            "counted by themselves. The largest value is marked, of clearances the smallest. "
            "Point at a bar to read it.",
            class_="remark",
        ),
        *pictures,
        _joints(measures.values()),
        element("h3", "In numbers"),
        _table(measures.values(), links),
    )


def histogram(values: Array) -> tuple[Array, NDArray[np.int64]]:
    """Edges and counts of even bins from the smallest value to the largest one.

    As many as Rice's rule says, 2 n^(1/3), but 6 to 40; a single one if all values are the same.

    Args:
        values: shape (n,) with n > 0.
    """
    low, high = float(values.min()), float(values.max())
    if high - low <= ALL_EQUAL * max(abs(low), abs(high)):
        room = 0.05 * abs(low) or 0.5
        return np.array([low - room, high + room]), np.array([len(values)])
    bins = int(min(40, max(6, np.ceil(2.0 * len(values) ** (1 / 3)))))
    counts, edges = np.histogram(values, bins=bins)
    return edges, counts.astype(np.int64)


def histogram_plot(measure: QuantityDistribution, height: float = 170.0) -> Plot:
    """The histogram of a quantity, with median, 95 % and the worst case marked."""
    edges, counts = histogram(measure.shown)
    quantity, spread = measure.quantity, measure.spread
    marks = [
        Instant(quantity.factor * spread.median, f"median {quantity.bare(spread.median)}"),
        Instant(quantity.factor * spread.most, f"95 % {quantity.bare(spread.most)}"),
        Instant(
            quantity.factor * spread.worst,
            f"worst {quantity.bare(spread.worst)}: case {spread.case}",
        ),
    ]
    if spread.worst == spread.median:
        marks = marks[2:]
    return Plot(
        _capital(quantity.name),
        quantity.label,
        "cases",
        [],
        (float(edges[0]), float(edges[-1])),
        marks,
        width=_HALF,
        height=height,
        shapes=[Bars(edges, counts.astype(float), quantity.unit, _COLOR)],
        follows=False,
        whole=True,
    )


def _shares(measure: QuantityDistribution) -> Markup:
    """Which share of the cases stays within a value."""
    quantity = measure.quantity
    ordered = np.sort(measure.shown)
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
        f"{_capital(quantity.name)}, cumulative",
        quantity.label,
        "share of the cases [%]",
        [Line(quantity.name, x, y, _COLOR)],
        (low, high),
        [Instant(quantity.factor * measure.spread.most)] if low < high else [],
        width=_HALF,
        height=170.0,
        room=False,
        follows=False,
    )
    return figure(plot, titled=True)


def _joints(measures: Iterable[QuantityDistribution]) -> Markup:
    """How far the joints go, in small histograms."""
    angles = [measure for measure in measures if measure.quantity.kind == "angle"]
    if not angles:
        return Markup("")
    remark = Markup("")
    if len(angles) > _MOST_JOINTS:
        order = sorted(angles, key=lambda measure: -measure.spread.worst * measure.quantity.factor)
        farthest = {measure.quantity.joint for measure in order[:_MOST_JOINTS]}
        text = f"The {_MOST_JOINTS} of {len(angles)} joints that go farthest; all are in the table."
        remark = element("p", text, class_="remark")
        angles = [measure for measure in angles if measure.quantity.joint in farthest]
    pictures = (figure(histogram_plot(measure, 120.0), titled=True) for measure in angles)
    return joined(
        element("h3", "How far the joints go"),
        remark,
        element("div", *pictures, class_="multiples"),
    )


def _table(measures: Iterable[QuantityDistribution], links: Mapping[int, str]) -> Markup:
    """Median, 95 % and worst of everything, with the case of the worst."""
    heads = ("", "median", "95 % of the cases", "worst", "in case")
    head = element(
        "tr",
        *(
            element("th", text, scope="col", class_="right" if k else None)
            for k, text in enumerate(heads)
        ),
    )
    rows = [element("tr", *_row(measure, links)) for measure in measures]
    caption = element("caption", "Distributions in numbers", class_="unseen")
    table = element(
        "table", caption, element("thead", head), element("tbody", *rows), class_="numbers"
    )
    return element(
        "div",
        table,
        class_="wide",
        tabindex="0",
        role="region",
        aria_label="Distributions in numbers",
    )


def _row(measure: QuantityDistribution, links: Mapping[int, str]) -> Iterator[Markup]:
    quantity, spread = measure.quantity, measure.spread
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


_FEWEST, _PER_VARIABLE = 24, 10
"""Fewer cases say nothing about what depends on what: at all, and per quantity that varies."""
_SIGMAS = 3.0
_SEEN = 0.005
"""Smaller shares are not worth a word."""
_PER_BIN, _MOST_BINS = 8, 24
_DOTS = 400
"""So many cases are shown one by one."""
_TELLING, _PLOTS = 0.03, 4
"""Least share of the variance that is worth a plot, and how many plots there are per result."""
_JOINTS = 6
"""Columns of joints in the table of shares."""
_MEDIAN, _WORST = "#1d4f80", "#c0272d"
_EXPLAINED = (
    "How much of the variance of a result (column) a varied quantity (row) explains by itself, all "
    "others varying as well: 100 % if the result depends on nothing else. What is missing to 100 % "
    "in a column is due to several quantities together. Empty: no more than chance would explain."
)


@dataclass(frozen=True, eq=False)
class Binned:
    """A result against a varied quantity, in bins of it; bins without cases are left out.

    Args:
        x: mean of the quantity, shape (k,).
        low: 5 % of the cases are below, shape (k,).
        median: shape (k,).
        high: 95 % of the cases are below, shape (k,).
        least: smallest value, shape (k,).
        most: largest value, shape (k,).
    """

    x: Array
    low: Array
    median: Array
    high: Array
    least: Array
    most: Array


def _bins(x: Array) -> NDArray[np.int64]:
    """Number of the bin of each value: one per value if there are few, else even ones.

    Args:
        x: shape (n,).
    """
    values, numbers = np.unique(x, return_inverse=True)
    if len(values) <= _MOST_BINS and len(x) >= 2 * len(values):
        return numbers.astype(np.int64)
    count = int(min(_MOST_BINS, max(2, len(x) // _PER_BIN)))
    low, high = values[0], values[-1]
    even = np.floor(count * (x - low) / (high - low)).clip(0, count - 1)
    return np.asarray(even, dtype=np.int64)


def binned(x: Array, y: Array) -> Binned:
    """Sum up a result in bins of a quantity, shapes (n,)."""
    bins = _bins(x)
    rows = []
    for bin_number in np.unique(bins):
        here = bins == bin_number
        part = y[here]
        low, median, high = np.quantile(part, (0.05, 0.5, 0.95))
        rows.append((x[here].mean(), low, median, high, part.min(), part.max()))
    return Binned(*np.array(rows).T)


def share_explained(x: Array, y: Array) -> float:
    """Share of the variance of y that x explains by itself, 0 to 1; shapes (n,).

    Zero if chance alone would explain as much, as far as three standard deviations go.
    """
    total = float(np.sum((y - y.mean()) ** 2))
    if total <= 0.0 or x.min() == x.max():
        return 0.0
    bins = _bins(x)
    _, own = np.unique(bins, return_inverse=True)
    counts = np.bincount(own)
    if len(y) <= len(counts):
        return 0.0
    means = np.bincount(own, weights=y) / counts
    within = float(np.sum((y - means[own]) ** 2))
    share = 1.0 - within / (len(y) - len(counts)) / (total / (len(y) - 1))
    # Of independent quantities the share scatters about zero by sqrt(2 (k - 1)) / n.
    chance = _SIGMAS * np.sqrt(2.0 * (len(counts) - 1)) / len(y)
    return min(share, 1.0) if share > chance else 0.0


def influence_section(
    results: Results, measures: Measures, variables: Sequence[Variable]
) -> Markup:
    """What depends on what.

    Args:
        results: what came out.
        measures: quantities by criterion.
        variables: all variables.
    """
    moving = [variable for variable in variables if variable.varies]
    if not measures or not moving:
        return Markup("")
    if results.stopped < max(_FEWEST, _PER_VARIABLE * len(moving)):
        text = (
            "There are too few cases to tell which of the quantities that varied the results "
            f"depend on: {results.stopped} that stopped, {len(moving)} quantities."
        )
        return section("What it depends on", "influence", element("p", text))
    shown = _shown(measures)
    columns = {variable.name: results.columns[variable.column] for variable in moving}
    shares = {
        measure.quantity.criterion: {
            variable.name: share_explained(
                _of_cases(results, columns[variable.name], measure), measure.values
            )
            for variable in moving
        }
        for measure in shown
    }
    return section(
        "What it depends on",
        "influence",
        element("p", _EXPLAINED, class_="remark"),
        _share_table(shown, moving, shares),
        *(
            _plots(results, measure, moving, shares[measure.quantity.criterion])
            for measure in shown
            if measure.quantity.kind in ("time", "travel", "clearance")
        ),
    )


def _shown(measures: Measures) -> list[QuantityDistribution]:
    """Results of the whole robot, and the joints that go farthest."""
    whole = [measure for measure in measures.values() if not measure.quantity.joint]
    angles = [measure for measure in measures.values() if measure.quantity.kind == "angle"]
    far = sorted(angles, key=lambda measure: -measure.quantity.factor * measure.spread.worst)[
        :_JOINTS
    ]
    return whole + [measure for measure in angles if measure in far]


def _of_cases(results: Results, column: Array, measure: QuantityDistribution) -> Array:
    """A column for the cases that a result is known of."""
    if len(measure.cases) == len(results.cases):
        return column
    return column[np.searchsorted(results.cases, measure.cases)]


def _share_table(
    shown: Sequence[QuantityDistribution],
    moving: Sequence[Variable],
    shares: Mapping[str, Mapping[str, float]],
) -> Markup:
    """Shares of the variance, darker where they are larger; what matters nowhere is left out."""
    telling = [
        variable for variable in moving if any(of[variable.name] >= _SEEN for of in shares.values())
    ]
    if not telling:
        return element("p", "No varied quantity by itself explains more than chance would.")
    head = element(
        "tr",
        element("th", "share of the variance [%]", scope="col"),
        *(element("th", measure.quantity.name, scope="col", class_="right") for measure in shown),
    )
    rows = [
        element(
            "tr",
            element("th", _in_words(variable), scope="row"),
            *(_share(shares[measure.quantity.criterion][variable.name]) for measure in shown),
        )
        for variable in telling
    ]
    title = "Shares of the variance"
    caption = element("caption", title, class_="unseen")
    table = element(
        "table", caption, element("thead", head), element("tbody", *rows), class_="heat"
    )
    region = element("div", table, class_="wide", tabindex="0", role="region", aria_label=title)
    rest = [_in_words(variable) for variable in moving if variable not in telling]
    text = f"With no such influence: {', '.join(rest)}." if rest else ""
    return joined(region, element("p", text, class_="remark") if rest else "")


def _share(share: float) -> Markup:
    if share < _SEEN:
        return element("td", "", class_="right")
    style = f"background:rgba(226,105,42,{0.08 + 0.72 * share:.3f})"
    return element("td", f"{100 * share:.0f}", class_="right", style=style)


def _plots(
    results: Results,
    measure: QuantityDistribution,
    moving: Sequence[Variable],
    shares: Mapping[str, float],
) -> Markup:
    """A result against the quantities that explain most of it."""
    order = sorted(moving, key=lambda variable: -shares[variable.name])
    chosen = [variable for variable in order if shares[variable.name] >= _TELLING][:_PLOTS]
    if not chosen:
        return Markup("")
    heading = measure.quantity.name[:1].upper() + measure.quantity.name[1:]
    pictures = (
        figure(
            _plot(_of_cases(results, results.columns[variable.column], measure), measure, variable),
            titled=True,
            legend=False,
        )
        for variable in chosen
    )
    return joined(
        element("h3", f"{heading}, against what it depends on most"),
        _legend(),
        element("div", *pictures, class_="multiples"),
    )


def _plot(column: Array, measure: QuantityDistribution, variable: Variable) -> Plot:
    unit, factor = shown_unit(variable.unit)
    x, y = factor * column, measure.shown
    bins = binned(x, y)
    nearest = measure.quantity.kind == "clearance"
    curves = [
        Line("median", bins.x, bins.median, _MEDIAN),
        Line("worst", bins.x, bins.least if nearest else bins.most, _WORST, "5 3"),
    ]
    below: list[Band | Dots] = [Band(bins.x, bins.low, bins.high, _MEDIAN)]
    if len(x) <= _DOTS:
        below.append(Dots(x, y, "#5f6b7a"))
    name = _in_words(variable)
    return Plot(
        name[:1].upper() + name[1:],
        f"{name} [{unit}]" if unit else name,
        measure.quantity.label,
        curves,
        (float(x.min()), float(x.max())),
        width=440.0,
        height=170.0,
        shapes=below,
        follows=False,
    )


def _legend() -> Markup:
    """What lines and areas are, once for all plots."""
    return legend(
        [
            ("median", line_key(_MEDIAN)),
            ("worst", line_key(_WORST, "5 3")),
            ("9 of 10 cases", area_key(_MEDIAN, fill_opacity=0.2)),
        ]
    )


def _in_words(variable: Variable) -> str:
    """Name of a variable: "speed of joint_1"."""
    word = VARIED[variable.kind]
    return f"{word} of {printable(variable.joint)}" if variable.joint else word
