"""What a study found: outcomes, distributions of times and distances, and its worst cases.

The worst case of time, of angle, of travel and of impulse are usually different cases. Found by
sampling and local search: sampled, not guaranteed. How a table looks is in `tables`.

The search is a pattern search (Hooke and Jeeves, J. ACM 8, 1961). Stops change abruptly where a
joint comes loose or another one locks last, and are worst mostly at ends of ranges: neither has a
gradient to follow. A pattern search needs none and reaches faces and corners of the space exactly.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from ...boundary.arguments import public, require_kind
from ...boundary.files import json_values
from ...boundary.marks import Array
from ...errors import BadValue, printable
from ...tables.number_format import numbers, units_of
from ...tables.report import Block, Cell, Column, KeyValues, Mark, Notes, Report, Table
from ...tolerances import LIMIT_PASSED
from ...units import column_unit, shown_unit
from ..stopping.result import PLANNING_AID
from .cases import (
    CLEARANCE,
    Setup,
    WorstCase,
    joint_columns,
    known_criteria,
    manifest_of,
    size_of,
)
from .study import Study

SAMPLED = "Sampled, not guaranteed."
_REASONS = 5
"""Reasons of failures that are shown."""


@dataclass(frozen=True)
class Distribution:
    """How a number is distributed over the cases that stopped and are held, in SI units.

    ``column``: its column; ``median``: half of the cases are better; ``most``: 95 % of the cases
    are better; ``worst``: the worst one; of clearances the smallest; ``case``: number of that case.
    """

    column: str
    median: float
    most: float
    worst: float
    case: int


@dataclass(frozen=True)
class Beyond:
    """A joint that gets beyond a limit of its position, where no end stop holds it.

    ``joint``: its name; ``count``: number of such cases; ``worst``: how far at most [rad, m];
    ``case``: number of that case.
    """

    joint: str
    count: int
    worst: float
    case: int


@dataclass(frozen=True)
class Summary:
    """A study in a few numbers.

    ``outcomes``: how many cases ended how; ``reasons``: why cases failed and how many did, the most
    frequent first; ``distributions``: of time, tool path, clearance, and angle or travel per joint;
    ``beyond``: joints that get beyond their limits in a case.
    """

    outcomes: Mapping[str, int]
    reasons: Mapping[str, int]
    distributions: tuple[Distribution, ...]
    beyond: tuple[Beyond, ...] = ()

    @property
    def stopped(self) -> int:
        """Number of cases that ended with the robot at rest and held."""
        return self.outcomes.get("stopped", 0)

    @property
    def not_stopped(self) -> int:
        """Number of all other cases."""
        return sum(self.outcomes.values()) - self.stopped


def summarised(study: Study) -> Summary:
    """Sum up a study."""
    columns = _columns(study.setup)
    outcomes, reasons = Counter[str](), Counter[str]()
    cases: list[int] = []
    numbers: list[list[float]] = []
    over: dict[str, list[tuple[float, int]]] = {}
    limits = beyond_columns(study.setup)
    for row in study.rows():
        for name, column in limits.items():
            if isinstance(far := row[column], float) and far > LIMIT_PASSED:
                over.setdefault(name, []).append((far, int(row["case"])))
        outcome = str(row["outcome"])
        outcomes[outcome] += 1
        if outcome == "stopped":
            cases.append(int(row["case"]))
            numbers.append([abs(float(row[name])) for name in columns])
        elif row["reason"]:
            reasons[str(row["reason"])] += 1
    table = np.array(numbers).reshape(len(cases), len(columns))
    distributions = tuple(
        distribution_of(name, values, np.array(cases))
        for name, values in zip(columns, table.T if cases else (), strict=False)
    )
    beyond = tuple(Beyond(name, len(over[name]), *max(over[name])) for name in over)
    return Summary(dict(outcomes), dict(reasons.most_common()), distributions, beyond)


def beyond_columns(setup: Setup) -> dict[str, str]:
    """Columns of how far joints get beyond their limits, by joint."""
    return {name: joint_columns(setup.robot, name)["beyond_limit"] for name in setup.brakes.joints}


def distribution_of(column: str, values: Array, cases: NDArray[np.int64]) -> Distribution:
    """How a number is distributed.

    ``values``: what is in it, shape (k,) with k > 0; ``cases``: numbers of the cases, shape (k,).
    """
    sign = -1.0 if column == CLEARANCE else 1.0
    worst = int(np.argmax(sign * values))
    median, most = (sign * float(np.quantile(sign * values, part)) for part in (0.5, 0.95))
    return Distribution(column, median, most, float(values[worst]), int(cases[worst]))


def _columns(setup: Setup) -> list[str]:
    """What is summed up."""
    names = ["stopping_time_s", "tool_travel_m", *([CLEARANCE] if setup.obstacles else [])]
    return names + [joint_columns(setup.robot, name)["excursion"] for name in setup.brakes.joints]


def as_document(study: Study, summary: Summary) -> dict[str, Any]:
    """A summary as JSON has it."""
    return {
        "format": "pinloop-study-summary-1",
        "disclaimer": PLANNING_AID,
        "remark": SAMPLED,
        "robot": study.setup.robot.name,
        "results": str(study.path),
        "cases": study.done,
        "size": study.size,
        "complete": study.complete,
        "outcomes": dict(summary.outcomes),
        "reasons": dict(summary.reasons),
        "distributions": {
            item.column: {
                "median": item.median,
                "95_percent": item.most,
                "worst_sampled": item.worst,
                "case": item.case,
            }
            for item in summary.distributions
        },
        "beyond_limits": {
            item.joint: {"cases": item.count, "worst_sampled": item.worst, "case": item.case}
            for item in summary.beyond
        },
        "manifest": json_values(manifest_of(study.setup, study.sampling)),
    }


def worst_document(worst: Mapping[str, WorstCase]) -> dict[str, Any]:
    """Worst cases as JSON has them."""
    return {
        name: {
            "column": case.column,
            "value": case.value if math.isfinite(case.value) else None,
            "worst_sampled": case.sampled if math.isfinite(case.sampled) else None,
            "evaluations": case.evaluations,
            "values": dict(case.values),
        }
        for name, case in worst.items()
    }


# -- worst cases ---------------------------------------------------------------------------------

_STEP, _SMALLEST = 0.25, 1e-3
"""First and last step of the search, as parts of the ranges."""


@public
def worst_case(
    study: Study,
    wanted: Sequence[str] | None = None,
    *,
    starts: int = 3,
    evaluations: int = 200,
    jobs: int = -1,
) -> dict[str, WorstCase]:
    """Search the worst cases of a study's space.

    From the worst samples each search goes on in the space, first to both ends of every range:
    a weaker brake is not always worse. Cases that do not end with the robot at rest and held
    are another finding, and left out here.

    Args:
        study: the study whose samples are the starts.
        wanted: criteria, of `criteria`; all that are not zero everywhere by default.
        starts: number of samples to start from, per criterion.
        evaluations: stops per start.
        jobs: number of processes; all cores by default.

    Returns:
        Per criterion the worst case.
    """
    require_kind(study, Study, "study", "give what pl.study(...) returned")
    for what, count in (("starts", starts), ("evaluations", evaluations)):
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise BadValue(f"{what} is {count!r}; give a number of at least 1")
    known = known_criteria(study.setup, wanted)
    sizes = _samples(study, known)
    if wanted is None:
        zero = {name for name in known if name != "clearance" and np.nanmax(sizes[name]) <= 0.0}
        known = {name: column for name, column in known.items() if name not in zero}
    tasks = [(name, case) for name in known for case in _worst_of(sizes[name], starts)]
    searches = Parallel(n_jobs=jobs)(
        delayed(_search_from)(study.setup, study.values(case), known[name], evaluations)
        for name, case in tasks
    )
    cases: dict[str, WorstCase] = {}
    for name, column in known.items():
        own = [search for (of, _), search in zip(tasks, searches, strict=True) if of == name]
        size, values, packed, _ = max(own, key=lambda search: search[0])
        cases[name] = WorstCase(
            name,
            column,
            abs(size),
            float(abs(np.nanmax(sizes[name]))),
            values,
            study.setup.unpack(packed, values) or study.setup.stop(values),
            sum(count for *_, count in own),
        )
    return cases


def _samples(study: Study, known: Mapping[str, str]) -> dict[str, Array]:
    """Sizes of the samples per criterion."""
    columns = known.values()
    sizes = np.array([[size_of(row, column) for column in columns] for row in study.rows()])
    if not np.isfinite(sizes).any():
        raise BadValue("no case of the study stopped: there is none to start from")
    return dict(zip(known, sizes.T, strict=True))


def _worst_of(sizes: Array, count: int) -> list[int]:
    """The cases with the largest sizes."""
    usable = np.flatnonzero(np.isfinite(sizes))
    order = np.argsort(-sizes[usable], kind="stable")
    return [int(case) for case in usable[order[:count]]]


def _search_from(
    setup: Setup, values: Mapping[str, float], column: str, evaluations: int
) -> tuple[float, dict[str, float], bytes, int]:
    """Search from one case on: the size reached, its case and stop, the number of stops made."""
    moving = [variable for variable in setup.variables if variable.varies]
    low = np.array([variable.low for variable in moving])
    span = np.array([variable.high - variable.low for variable in moving])
    start = (np.array([values[variable.name] for variable in moving]) - low) / span

    def case(x: Array) -> dict[str, float]:
        if np.array_equal(x, start):
            return dict(values)  # to the last digit
        places = zip(moving, x.tolist(), strict=True)
        return {**values, **{variable.name: variable.at(share) for variable, share in places}}

    def size(x: Array) -> float:
        values = case(x)
        row, stop = setup.evaluate(0, values)
        value = size_of(row, column)
        value = -np.inf if np.isnan(value) else value
        if stop is not None and value > max(stops, default=-np.inf):
            stops.clear()
            stops[value] = setup.pack(stop, values)
        return value

    stops: dict[float, bytes] = {}
    best, x, count = pattern_search(size, start, evaluations)
    return best, case(x), stops.get(best, b""), count


def pattern_search(
    size: Callable[[Array], float], start: Array, evaluations: int
) -> tuple[float, Array, int]:
    """Search from a point: first to both ends of every coordinate, then by smaller steps.

    ``size``: what is to become large; minus infinity where it is not allowed; ``start``: where to
    begin, shape (d,); ``evaluations``: how often the size may be asked for, at least once. It gives
    the largest size found, where it is, and how often it was asked for.
    """
    x, left = np.clip(start, 0.0, 1.0), evaluations - 1
    best = size(x)

    def go(there: Array) -> bool:
        """Go to a point if it is better."""
        nonlocal x, best, left
        there = np.clip(there, 0.0, 1.0)
        if left < 1 or np.array_equal(there, x):
            return False
        left -= 1
        better = (value := size(there)) > best
        if better:
            best, x = value, there
        return better

    def changed(k: int, value: float) -> Array:
        return np.where(np.arange(len(x)) == k, value, x)

    for k, end in product(range(len(x)), (0.0, 1.0)):
        go(changed(k, end))
    step = _STEP
    while step >= _SMALLEST and left > 0:
        before, old = best, x
        for k in range(len(x)):
            if not go(changed(k, x[k] + step)):
                go(changed(k, x[k] - step))
        if best > before:
            go(2.0 * x - old)  # on in the same direction
        else:
            step /= 2.0
    return best, x, evaluations - left


# -- tables ---------------------------------------------------------------------------------------


def summary_table(study: Study, summary: Summary) -> Report:
    """The table of a study."""
    fine = study.complete and not summary.not_stopped and not summary.beyond
    mark: Mark = "good" if fine else "bad"
    name = printable(study.setup.robot.name)
    title = f"{name}: {summary.stopped} of {study.done} cases stopped and hold"
    if summary.beyond:
        title += ", but some beyond limits of joints"
    if not study.complete:
        title += f"; {study.size - study.done} of {study.size} are still to be done"
    shown = list(summary.reasons.items())[:_REASONS]
    more = len(summary.reasons) - len(shown)
    reasons = [f"{count} x {reason}" for reason, count in shown]
    reasons += [f"{more} other reasons are in the results"] if more else []
    beyond = (beyond_text(study.setup, joint) for joint in summary.beyond)
    blocks: list[Block] = [
        _facts(study, summary),
        _distributions(summary),
        Notes.of("Beyond limits", beyond, "caution"),
        Notes.of("Failed cases", reasons, "caution"),
    ]
    return Report.of(Cell(title, mark), blocks, f"{SAMPLED} {PLANNING_AID}")


def beyond_text(setup: Setup, beyond: Beyond) -> str:
    """What happens to a joint that gets beyond its limits, in one sentence."""
    units = units_of(setup.robot, beyond.joint)
    (far,) = numbers([units.factor * beyond.worst])
    return (
        f"joint '{printable(beyond.joint)}' gets beyond its limits in {beyond.count} of the cases, "
        f"by up to {far} {units.shown} in case {beyond.case}; no "
        "end stop holds it there"
    )


def _facts(study: Study, summary: Summary) -> KeyValues:
    setup = study.setup
    moving = [variable for variable in setup.variables if variable.varies]
    ended = sorted(summary.outcomes.items(), key=lambda item: -item[1])
    entries: list[tuple[str, str | Cell]] = [
        ("cases", f"{study.done} of {study.size}, {study.sampling!r}"),
        *((name, Cell(str(count), "" if name == "stopped" else "bad")) for name, count in ended),
        ("category", str(setup.category.number)),
        ("brakes", setup.brakes.source or "given in Python"),
        ("varies", ", ".join(variable.name for variable in moving) or "nothing"),
        ("results", str(study.path)),
    ]
    return KeyValues.of("Study", entries)


_OF_ROBOT = {
    "stopping_time_s": "stopping time",
    "tool_travel_m": "tool path",
    CLEARANCE: "clearance",
}


def _named(column: str) -> tuple[str, str, float]:
    """What a column is, its unit in tables, and the factor from SI."""
    unit = column_unit(column)
    name, _, _ = column.rpartition("_excursion_")
    of_joint = f"{'angle' if unit == 'rad' else 'travel'} of {name}"
    return (_OF_ROBOT.get(column, of_joint), *shown_unit(unit))


def _distributions(summary: Summary) -> Table:
    rows = []
    for spread in summary.distributions:
        what, unit, factor = _named(spread.column)
        values = (factor * value for value in (spread.median, spread.most, spread.worst))
        rows.append((f"{what} [{unit}]", *numbers(values), str(spread.case)))
    title = "Distribution over the cases that stopped and hold"
    return Table.of(title, ("<", "median", "95 %", "worst sampled", "case"), rows)


def worst_table(setup: Setup, worst: Mapping[str, WorstCase]) -> Report:
    """The table of worst cases, with the values of what varies.

    ``setup``: what all cases have in common.
    """
    rows, places = [], []
    for name, case in worst.items():
        unit, factor = shown_unit(column_unit(case.column))
        values = numbers((factor * case.value, factor * case.sampled))
        rows.append((f"{name} [{unit}]", *values, str(case.evaluations)))
    for variable in (variable for variable in setup.variables if variable.varies):
        unit = f" [{variable.unit}]" if variable.unit else ""
        values = [f"{case.values[variable.name]:.5g}" for case in worst.values()]
        places.append(tuple(map(Cell, (printable(f"{variable.name}{unit}"), *values))))
    headings = ("<", "found", "worst sampled", "stops made")
    columns = (Column("", right=False), *(Column(printable(name)) for name in worst))
    title = Cell(f"{printable(setup.robot.name)}: worst cases of {len(worst)} criteria", "title")
    results = Table.of("Worst cases", headings, rows)
    where = Table("Where they are", columns, tuple(places))
    return Report(title, (results, where), f"{SAMPLED} {PLANNING_AID}")
