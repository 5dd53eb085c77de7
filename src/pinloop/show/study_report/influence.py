"""What results depend on: which share of their variance each varied quantity explains by itself.

The share is the correlation ratio over bins, corrected for what chance alone would explain (Kelley
1935, epsilon squared): ``1 - (within / (n - k)) / (total / (n - 1))`` with n cases in k bins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import printable
from ...safety.studies.space import Variable
from ...tables.markup import Markup, element, joined
from ...units import shown_unit
from ..plots.charts import Line
from ..plots.shapes import Band, Dots
from ..plots.svg import Plot, area_key, legend, line_key
from ..stop_report.parts import figure, section
from .quantities import VARIED, Told
from .results import Results

__all__ = ["Binned", "binned", "influence_section", "share_explained"]

Array = NDArray[np.float64]

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
    values, found = np.unique(x, return_inverse=True)
    if len(values) <= _MOST_BINS and len(x) >= 2 * len(values):
        return found.astype(np.int64)
    count = int(min(_MOST_BINS, max(2, len(x) // _PER_BIN)))
    low, high = values[0], values[-1]
    even = np.floor(count * (x - low) / (high - low)).clip(0, count - 1)
    return np.asarray(even, dtype=np.int64)


def binned(x: Array, y: Array) -> Binned:
    """Sum up a result in bins of a quantity, shapes (n,)."""
    bins = _bins(x)
    rows = []
    for number in np.unique(bins):
        here = bins == number
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
    results: Results, told: Mapping[str, Told], variables: Sequence[Variable]
) -> Markup:
    """What depends on what.

    Args:
        results: what came out.
        told: quantities by criterion.
        variables: all variables.
    """
    moving = [one for one in variables if one.varies]
    if not told or not moving:
        return Markup("")
    if results.stopped < max(_FEWEST, _PER_VARIABLE * len(moving)):
        text = (
            "There are too few cases to tell which of the quantities that varied the results "
            f"depend on: {results.stopped} that stopped, {len(moving)} quantities."
        )
        return section("What it depends on", "influence", element("p", text))
    shown = _shown(told)
    columns = {one.name: results.columns[one.column] for one in moving}
    shares = {
        one.quantity.criterion: {
            variable.name: share_explained(
                _of_cases(results, columns[variable.name], one), one.values
            )
            for variable in moving
        }
        for one in shown
    }
    return section(
        "What it depends on", "influence",
        element("p", _EXPLAINED, class_="remark"),
        _table(shown, moving, shares),
        *(_plots(results, one, moving, shares[one.quantity.criterion])
          for one in shown if one.quantity.kind in ("time", "travel", "clearance")),
    )  # fmt: skip


def _shown(told: Mapping[str, Told]) -> list[Told]:
    """Results of the whole robot, and the joints that go farthest."""
    whole = [one for one in told.values() if not one.quantity.joint]
    angles = [one for one in told.values() if one.quantity.kind == "angle"]
    far = sorted(angles, key=lambda one: -one.quantity.factor * one.spread.worst)[:_JOINTS]
    return whole + [one for one in angles if one in far]


def _of_cases(results: Results, column: Array, one: Told) -> Array:
    """A column for the cases that a result is known of."""
    if len(one.cases) == len(results.cases):
        return column
    return column[np.searchsorted(results.cases, one.cases)]


def _table(
    shown: Sequence[Told], moving: Sequence[Variable], shares: Mapping[str, Mapping[str, float]]
) -> Markup:
    """Shares of the variance, darker where they are larger; what matters nowhere is left out."""
    telling = [one for one in moving if any(of[one.name] >= _SEEN for of in shares.values())]
    if not telling:
        return element("p", "No varied quantity by itself explains more than chance would.")
    head = element(
        "tr", element("th", "share of the variance [%]", scope="col"),
        *(element("th", one.quantity.name, scope="col", class_="right") for one in shown),
    )  # fmt: skip
    rows = [
        element(
            "tr",
            element("th", _in_words(variable), scope="row"),
            *(_share(shares[one.quantity.criterion][variable.name]) for one in shown),
        )
        for variable in telling
    ]
    title = "Shares of the variance"
    caption = element("caption", title, class_="unseen")
    table = element("table", caption, element("thead", head), element("tbody", *rows),
                    class_="heat")  # fmt: skip
    region = element("div", table, class_="wide", tabindex="0", role="region", aria_label=title)
    rest = [_in_words(one) for one in moving if one not in telling]
    text = f"With no such influence: {', '.join(rest)}." if rest else ""
    return joined(region, element("p", text, class_="remark") if rest else "")


def _share(share: float) -> Markup:
    if share < _SEEN:
        return element("td", "", class_="right")
    style = f"background:rgba(226,105,42,{0.08 + 0.72 * share:.3f})"
    return element("td", f"{100 * share:.0f}", class_="right", style=style)


def _plots(
    results: Results, one: Told, moving: Sequence[Variable], shares: Mapping[str, float]
) -> Markup:
    """A result against the quantities that explain most of it."""
    order = sorted(moving, key=lambda variable: -shares[variable.name])
    chosen = [variable for variable in order if shares[variable.name] >= _TELLING][:_PLOTS]
    if not chosen:
        return Markup("")
    heading = one.quantity.name[:1].upper() + one.quantity.name[1:]
    pictures = (
        figure(_plot(_of_cases(results, results.columns[variable.column], one), one, variable),
               titled=True, legend=False)
        for variable in chosen
    )  # fmt: skip
    return joined(
        element("h3", f"{heading}, against what it depends on most"),
        _legend(),
        element("div", *pictures, class_="multiples"),
    )


def _plot(column: Array, one: Told, variable: Variable) -> Plot:
    unit, factor = shown_unit(variable.unit)
    x, y = factor * column, one.shown
    found = binned(x, y)
    nearest = one.quantity.kind == "clearance"
    curves = [
        Line("median", found.x, found.median, _MEDIAN),
        Line("worst", found.x, found.least if nearest else found.most, _WORST, "5 3"),
    ]
    below: list[Band | Dots] = [Band(found.x, found.low, found.high, _MEDIAN)]
    if len(x) <= _DOTS:
        below.append(Dots(x, y, "#5f6b7a"))
    name = _in_words(variable)
    return Plot(
        name[:1].upper() + name[1:], f"{name} [{unit}]" if unit else name, one.quantity.label,
        curves, (float(x.min()), float(x.max())), width=440.0, height=170.0, shapes=below,
        follows=False,
    )  # fmt: skip


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
