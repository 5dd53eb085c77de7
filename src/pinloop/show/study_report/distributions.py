"""How times, paths and torques are distributed, and what they depend on.

How much a varied quantity explains by itself is the correlation ratio over bins, corrected for what
chance alone would explain (Kelley 1935, epsilon squared): ``1 - (within / (n - k)) / (total / (n -
1))`` with n cases in k bins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ...boundary.marks import Array, Integers
from ...errors import printable
from ...safety.studies.cases import CLEARANCE, Setup
from ...safety.studies.results import QuantityDistribution, Results, quantity_distributions
from ...safety.studies.space import Variable
from ...safety.studies.worst import Searched
from ...tables.number_format import decimals, number
from ...tolerances import ALL_EQUAL
from ...units import shown_unit
from ..plots import Chart, Instant, Line, Shape
from ..plots.svg import Key

_SHAPE: dict[str, Any] = {"height": 170.0, "half": True, "follows": False}
_SMALL = 120.0
"""Height of a chart of a single joint."""
_COLOR = "#3d7fb8"
_MOST_JOINTS = 12
"""So many joints have a histogram each; of more, the farthest ones do."""
_STEPS = 400
"""Steps of a cumulative share that a picture can show."""
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
_MEDIAN, _WORST, _DASH = "#1d4f80", "#c0272d", "5 3"
KEYS = (
    Key("median", _MEDIAN),
    Key("worst", _WORST, _DASH),
    Key("9 of 10 cases", _MEDIAN, area=True, opacity=0.2),
)
"""What lines and areas of the charts of influences are."""
VARIED = {
    "pose": "position",
    "speed": "speed",
    "delay": "later brake",
    "band": "band",
    "payload": "payload",
    "instant": "instant of the signal",
}
"""What the kinds of variables are called."""

Measures = Mapping[str, QuantityDistribution]
"""Distributions of quantities by criterion."""


def measures_of(results: Results, setup: Setup) -> Measures:
    """Quantities of the cases that stopped, but those that are zero everywhere."""
    return {
        measure.quantity.criterion: measure
        for measure in quantity_distributions(results, setup)
        if measure.quantity.column == CLEARANCE or measure.values.max() > 0.0
    }


def capital(text: str) -> str:
    """A name as a heading."""
    return text[:1].upper() + text[1:]


# -- distributions --------------------------------------------------------------------------------


def whole_charts(measures: Measures) -> Iterator[list[Chart]]:
    """Histogram and cumulative share of each quantity of the whole robot."""
    for measure in measures.values():
        if measure.quantity.kind in ("time", "travel", "clearance"):
            yield [_histogram_chart(measure), _share_chart(measure)]


class Angles(NamedTuple):
    """How far the joints go, in small histograms, and what is said of those left out."""

    charts: list[Chart]
    left_out: str = ""


def angle_charts(measures: Measures) -> Angles:
    """Histograms of the joints that go farthest."""
    angles = [measure for measure in measures.values() if measure.quantity.kind == "angle"]
    shown = _farthest(angles, _MOST_JOINTS)
    charts = [_histogram_chart(measure, _SMALL) for measure in shown]
    if len(shown) == len(angles):
        return Angles(charts)
    text = f"The {len(shown)} of {len(angles)} joints that go farthest; all are in the table."
    return Angles(charts, text)


def _farthest(angles: Sequence[QuantityDistribution], most: int) -> list[QuantityDistribution]:
    """The joints that go farthest, in their order."""
    order = sorted(angles, key=lambda measure: -measure.quantity.factor * measure.spread.worst)
    return [measure for measure in angles if measure in order[:most]]


class TableRow(NamedTuple):
    """A quantity in numbers: median, 95 %, the worst sample and its case, what a search found."""

    name: str
    unit: str
    numbers: list[str]
    worst: str
    case: int
    found: str


def table_rows(measures: Measures, searched: Searched | None) -> Iterator[TableRow]:
    """Median, 95 %, worst sample and what the search found, of everything."""
    for name, measure in measures.items():
        quantity, spread = measure.quantity, measure.spread
        case = None if searched is None else searched.cases.get(name)
        values = (spread.median, spread.most, spread.worst, *([] if case is None else [case.value]))
        shown = [quantity.factor * value for value in values]
        places = decimals(shown, most=3)
        *texts, worst = (number(value, places) for value in shown[:3])
        found = "" if case is None else number(shown[-1], places)
        yield TableRow(quantity.name, quantity.unit, texts, worst, spread.case, found)


def histogram(values: Array) -> tuple[Array, Integers]:
    """Edges and counts of even bins from the smallest value to the largest one.

    As many as Rice's rule says, 2 n^(1/3), but 6 to 40; a single one if all values are the same.
    """
    low, high = float(values.min()), float(values.max())
    if high - low <= ALL_EQUAL * max(abs(low), abs(high)):
        room = 0.05 * abs(low) or 0.5
        return np.array([low - room, high + room]), np.array([len(values)])
    bins = int(min(40, max(6, np.ceil(2.0 * len(values) ** (1 / 3)))))
    counts, edges = np.histogram(values, bins=bins)
    return edges, counts.astype(np.int64)


def _histogram_chart(measure: QuantityDistribution, height: float = _SHAPE["height"]) -> Chart:
    """The histogram of a quantity, with median, 95 % and the worst case marked."""
    edges, counts = histogram(measure.shown)
    quantity, spread = measure.quantity, measure.spread
    values = {"median": spread.median, "95 %": spread.most}
    marks = [
        Instant(quantity.factor * value, f"{name} {quantity.bare(value)}")
        for name, value in values.items()
        if spread.worst != spread.median
    ]
    worst = f"worst {quantity.bare(spread.worst)}: case {spread.case}"
    bars = [
        Shape(
            "bar",
            (low, high),
            (0.0, float(count)),
            _COLOR,
            f"{low:.4g} to {high:.4g} {quantity.unit}: {count} case{'s' if count != 1 else ''}",
            size=1.0,
        )
        for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True)
        if count
    ]
    return Chart(
        "cases",
        title=capital(quantity.name),
        x_label=quantity.label,
        span=(float(edges[0]), float(edges[-1])),
        instants=[*marks, Instant(quantity.factor * spread.worst, worst)],
        shapes=bars,
        whole=True,
        **_SHAPE | {"height": height},
    )


def _share_chart(measure: QuantityDistribution) -> Chart:
    """Which share of the cases stays within a value."""
    quantity = measure.quantity
    ordered = np.sort(measure.shown)
    steps = min(len(ordered), _STEPS)
    chosen = np.linspace(0, len(ordered) - 1, steps).round().astype(int)
    share = 100.0 * (chosen + 1) / len(ordered)
    x = np.repeat(ordered[chosen], 2)
    y = np.concatenate([[0.0], np.repeat(share, 2)[:-1]])
    low, high = float(x[0]), float(x[-1])
    if high <= low:
        low, high = low - (0.05 * abs(low) or 0.5), high + (0.05 * abs(high) or 0.5)
    return Chart(
        "share of the cases [%]",
        [Line(quantity.name, x, y, _COLOR)],
        title=f"{capital(quantity.name)}, cumulative",
        x_label=quantity.label,
        span=(low, high),
        instants=[Instant(quantity.factor * measure.spread.most)],
        room=False,
        **_SHAPE,
    )


# -- influences -----------------------------------------------------------------------------------


class Binned(NamedTuple):
    """A result against a varied quantity, in bins of it; bins without cases are left out.

    Per bin the mean of the quantity; 5 %, median, 95 %, least and most of the result, shapes (k,).
    """

    x: Array
    low: Array
    median: Array
    high: Array
    least: Array
    most: Array


def _bins(x: Array) -> Integers:
    """Number of the bin of each value: one per value if there are few, else even ones."""
    values, numbers = np.unique(x, return_inverse=True)
    if len(values) <= _MOST_BINS and len(x) >= 2 * len(values):
        return numbers.astype(np.int64)
    count = int(min(_MOST_BINS, max(2, len(x) // _PER_BIN)))
    low, high = values[0], values[-1]
    even = np.floor(count * (x - low) / (high - low)).clip(0, count - 1)
    return np.asarray(even, dtype=np.int64)


def bin_result(x: Array, y: Array) -> Binned:
    """Sum up a result in bins of a quantity, shapes (n,)."""
    bins = _bins(x)
    rows = []
    for here in (bins == k for k in np.unique(bins)):
        spread = np.quantile(y[here], (0.05, 0.5, 0.95))
        rows.append((x[here].mean(), *spread, y[here].min(), y[here].max()))
    return Binned(*np.array(rows).T)


def share_explained(x: Array, y: Array) -> float:
    """Share of the variance of y that x explains by itself, 0 to 1; shapes (n,).

    Zero if chance alone would explain as much, as far as three standard deviations go.
    """
    total = float(np.sum((y - y.mean()) ** 2))
    if total <= 0.0 or x.min() == x.max():
        return 0.0
    _, own = np.unique(_bins(x), return_inverse=True)
    counts = np.bincount(own)
    if len(y) <= len(counts):
        return 0.0
    means = np.bincount(own, weights=y) / counts
    within = float(np.sum((y - means[own]) ** 2))
    share = 1.0 - within / (len(y) - len(counts)) / (total / (len(y) - 1))
    # Of independent quantities the share scatters about zero by sqrt(2 (k - 1)) / n.
    chance = _SIGMAS * np.sqrt(2.0 * (len(counts) - 1)) / len(y)
    return min(share, 1.0) if share > chance else 0.0


@dataclass(frozen=True)
class Influence:
    """What depends on what, or why nothing can be said.

    Shares of the variance are per varied quantity, of each result, 0 where not worth a word;
    ``without`` names the quantities that matter nowhere; charts are per result.
    """

    too_few: str = ""
    results: Sequence[str] = ()
    shares: Sequence[tuple[str, list[float]]] = ()
    without: Sequence[str] = ()
    charts: Sequence[tuple[str, list[Chart]]] = field(default=())


def influence_of(
    results: Results, measures: Measures, variables: Sequence[Variable]
) -> Influence | None:
    """What depends on what; None if nothing varied or nothing came out."""
    moving = [variable for variable in variables if variable.varies]
    if not measures or not moving:
        return None
    if results.stopped < max(_FEWEST, _PER_VARIABLE * len(moving)):
        return Influence(
            "There are too few cases to tell which of the quantities that varied the results "
            f"depend on: {results.stopped} that stopped, {len(moving)} quantities."
        )
    whole = [measure for measure in measures.values() if not measure.quantity.joint]
    angles = [measure for measure in measures.values() if measure.quantity.kind == "angle"]
    shown = whole + _farthest(angles, _JOINTS)
    shares = {
        variable.name: [
            share_explained(results.column_of(variable.column, measure), measure.values)
            for measure in shown
        ]
        for variable in moving
    }
    telling = [v for v in moving if max(shares[v.name]) >= _SEEN]
    charts = []
    for k, measure in enumerate(shown):
        if measure.quantity.kind in ("time", "travel", "clearance"):
            order = sorted(moving, key=lambda v, k=k: -shares[v.name][k])  # type: ignore[misc]
            most = [v for v in order if shares[v.name][k] >= _TELLING][:_PLOTS]
            pictures = [_influence_chart(results, measure, variable) for variable in most]
            charts += [(capital(measure.quantity.name), pictures)] if pictures else []
    return Influence(
        results=[measure.quantity.name for measure in shown],
        shares=[
            (_in_words(v), [share if share >= _SEEN else 0.0 for share in shares[v.name]])
            for v in telling
        ],
        without=[_in_words(variable) for variable in moving if variable not in telling],
        charts=charts,
    )


def _influence_chart(results: Results, measure: QuantityDistribution, variable: Variable) -> Chart:
    """A result against a quantity that explains much of it."""
    unit, factor = shown_unit(variable.unit)
    x, y = factor * results.column_of(variable.column, measure), measure.shown
    bins = bin_result(x, y)
    worst = bins.least if measure.quantity.kind == "clearance" else bins.most
    ends = np.concatenate([bins.x, bins.x[::-1]])
    below = [Shape("band", ends, np.concatenate([bins.high, bins.low[::-1]]), _MEDIAN)]
    if len(x) <= _DOTS:
        below.append(Shape("dots", x, y, "#5f6b7a"))
    name = _in_words(variable)
    return Chart(
        measure.quantity.label,
        [Line("median", bins.x, bins.median, _MEDIAN), Line("worst", bins.x, worst, _WORST, _DASH)],
        title=capital(name),
        x_label=f"{name} [{unit}]" if unit else name,
        span=(float(x.min()), float(x.max())),
        shapes=below,
        **_SHAPE,
    )


def _in_words(variable: Variable) -> str:
    """Name of a variable: "speed of joint_1"."""
    word = VARIED[variable.kind]
    return f"{word} of {printable(variable.joint)}" if variable.joint else word
