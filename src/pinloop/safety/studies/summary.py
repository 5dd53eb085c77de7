"""What a study found: outcomes, distributions of times and distances, and its worst cases.

The worst case of time, of angle, of travel and of impulse are usually different cases. Found by
sampling and local search: sampled, not guaranteed. How a table looks is in `tables`.

The search is a pattern search (Hooke and Jeeves, J. ACM 8, 1961), which needs no derivatives and
reaches faces and corners of the space exactly. Where stops have derivatives these tell it what to
try first: they know nothing of what lies behind the next change of the sequence of events, and
there are none of clearances and impulses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from ...boundary.arguments import public, require_kind
from ...boundary.files import json_values
from ...boundary.marks import Array
from ...errors import BadValue, PinloopError, printable
from ...tables.number_format import numbers, units_of
from ...tables.report import Block, Cell, Column, KeyValues, Mark, Notes, Report, Table
from ...units import column_unit, shown_unit
from ..stopping.result import StopResult
from ..stopping.result_document import PLANNING_AID
from .cases import Setup, WorstCase, criteria, known_criteria, manifest_of, size_of
from .results import Beyond, QuantityDistribution, Results, quantity_distributions
from .space import Variable
from .study import Study

SAMPLED = "Sampled, not guaranteed."
_REASONS = 5
"""Reasons of failures that are shown."""


def as_document(study: Study, results: Results) -> dict[str, Any]:
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
        "outcomes": dict(results.outcomes),
        "reasons": dict(results.reasons),
        "distributions": {
            item.quantity.column: {
                "median": item.spread.median,
                "95_percent": item.spread.most,
                "worst_sampled": item.spread.worst,
                "case": item.spread.case,
            }
            for item in _distributions(study, results)
        },
        "beyond_limits": {
            item.joint: {"cases": item.count, "worst_sampled": item.worst, "case": item.case}
            for item in results.beyond
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
_OF_SLOPES = 2
"""What the derivatives of a stop cost, in stops."""
_COUNTS = 0.05
"""Part of the largest slope from which a coordinate goes along with the others."""


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

    From the worst samples each search goes on in the space, to both ends of every range: a weaker
    brake is not always worse. Derivatives of the stops tell what to try first. Cases that do not
    end with the robot at rest and held are another finding, and left out here.

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

    sizes: dict[bytes, float] = {}
    worst: list[tuple[StopResult, bytes]] = []

    def size(x: Array) -> float:
        if (key := x.tobytes()) not in sizes:
            values = case(x)
            row, stop = setup.evaluate(0, values)
            value = size_of(row, column)
            value = -np.inf if np.isnan(value) else value
            if stop is not None and value > max(sizes.values(), default=-np.inf):
                # Packed while the robot of the case is at hand, which both share.
                worst[:] = [(stop, setup.pack(stop, values))]
            sizes[key] = value
        return sizes[key]

    def slope(x: Array) -> Array | None:
        return size_slopes(setup, column, worst[0][0], moving) if worst else None

    at_once = np.array([variable.kind != "pose" for variable in moving])
    best, x, _ = pattern_search(size, start, evaluations, slope, at_once)
    return best, case(x), worst[0][1] if worst else b"", len(sizes)


def size_slopes(
    setup: Setup, column: str, stop: StopResult, variables: Sequence[Variable]
) -> Array | None:
    """Derivatives of how bad a stop is by what varies, in parts of the ranges; None without any.

    ``column``: what is bad about it, see `criteria`.
    """
    names = {of: name for name, of in criteria(setup).items()}
    kind, _, joint = names[column].partition(":")
    outputs = {"time": "stopping_time", "travel": "path", "angle": f"angle:{joint}"}
    if kind not in outputs or stop.outcome != "stopped":
        return None
    counts = [
        variable.kind != "band" or stop.brakes.joints[variable.joint].uses("band")
        for variable in variables
    ]
    chosen = [v.name.replace(".", ":", 1) for v, use in zip(variables, counts, strict=True) if use]
    try:
        found = stop.sensitivity([outputs[kind]], chosen)
    except PinloopError:
        return None
    slopes = np.zeros(len(variables))
    slopes[counts] = np.nan_to_num(found.matrix[0])
    sign = np.sign(found.output_values[0]) if kind == "angle" else 1.0
    return np.asarray(sign * slopes * [variable.high - variable.low for variable in variables])


def pattern_search(
    size: Callable[[Array], float],
    start: Array,
    evaluations: int,
    slope: Callable[[Array], Array | None] | None = None,
    at_once: NDArray[np.bool_] | None = None,
) -> tuple[float, Array, int]:
    """Search from a point: first to both ends of every coordinate, then by smaller steps.

    Slopes tell which coordinates and which ends to try first, and that all may go at once. They say
    nothing of what lies behind the next change of the sequence of events: what they speak against
    is tried, too, unless the other end was better.

    Args:
        size: what is to become large; minus infinity where it is not allowed.
        start: where to begin, shape (d,).
        evaluations: how often the size may be asked for, at least once; slopes count as several.
        slope: derivatives at the point with the largest size so far; None where there are none.
        at_once: mask of coordinates whose ends are tried together first, shape (d,).

    Returns:
        The largest size found, where it is, and how often it was asked for, slopes included.
    """
    search = _PatternSearch(size, np.clip(start, 0.0, 1.0), evaluations, slope)
    if at_once is not None and (uphill := search.uphill()).any():
        ends = np.where(uphill > 0.0, 1.0, np.where(uphill < 0.0, 0.0, search.x))
        search.go(np.where(at_once, ends, search.x))
    search.try_ends()
    step = _STEP
    while step >= _SMALLEST and search.left > 0:
        if not search.poll(step):
            step /= 2.0
    return search.best, search.x, evaluations - search.left


class _PatternSearch:
    """A search that goes on as long as it gets better; see `pattern_search`."""

    def __init__(
        self,
        size: Callable[[Array], float],
        x: Array,
        evaluations: int,
        slope: Callable[[Array], Array | None] | None,
    ) -> None:
        self._size, self._slope, self.x, self.best = size, slope, x, size(x)
        self.left, self._uphill = evaluations - 1, np.zeros(len(x))
        self._at: Array | None = None  # where that is

    def uphill(self) -> Array:
        """Slopes at the best point; zero where they are not known, or too dear."""
        if self._slope is None or self._at is self.x:
            return self._uphill
        self._uphill, self._at = np.zeros(len(self.x)), self.x
        if self.left > _OF_SLOPES and (slopes := self._slope(self.x)) is not None:
            self._uphill = slopes
            self.left -= _OF_SLOPES
        return self._uphill

    def go(self, there: Array) -> bool:
        """Go to a point if it is better."""
        there = np.clip(there, 0.0, 1.0)
        if self.left < 1 or np.array_equal(there, self.x):
            return False
        self.left -= 1
        better = (value := self._size(there)) > self.best
        if better:
            self.best, self.x = value, there
        return better

    def _changed(self, k: int, value: float) -> Array:
        return np.where(np.arange(len(self.x)) == k, value, self.x)

    def try_ends(self) -> None:
        """Try both ends of every coordinate, those that promise most first."""
        uphill = self.uphill().copy()
        gains = np.maximum(uphill * (1.0 - self.x), -uphill * self.x)
        for k in np.argsort(-gains, kind="stable").tolist():
            for end in (1.0, 0.0) if uphill[k] > 0.0 else (0.0, 1.0):
                if self.go(self._changed(k, end)) and uphill[k] != 0.0:
                    break

    def poll(self, step: float) -> bool:
        """Try a step to either side along every coordinate; says whether that was better."""
        before, old, uphill = self.best, self.x, self.uphill().copy()
        if uphill.any():
            counts = np.abs(uphill) > _COUNTS * np.abs(uphill).max()
            self.go(self.x + step * np.sign(uphill) * counts)
        for k in np.argsort(-np.abs(uphill), kind="stable").tolist():
            own = -step if uphill[k] < 0.0 else step
            if not self.go(self._changed(k, self.x[k] + own)):
                self.go(self._changed(k, self.x[k] - own))
        if self.best > before:
            self.go(2.0 * self.x - old)  # on in the same direction
        return self.best > before


# -- tables ---------------------------------------------------------------------------------------


def summary_table(study: Study, results: Results) -> Report:
    """The table of a study."""
    fine = study.complete and not results.not_stopped and not results.beyond
    mark: Mark = "good" if fine else "bad"
    name = printable(study.setup.robot.name)
    title = f"{name}: {results.stopped} of {study.done} cases stopped and hold"
    if results.beyond:
        title += ", but some beyond limits of joints"
    if not study.complete:
        title += f"; {study.size - study.done} of {study.size} are still to be done"
    shown = list(results.reasons.items())[:_REASONS]
    more = len(results.reasons) - len(shown)
    reasons = [f"{count} x {reason}" for reason, count in shown]
    reasons += [f"{more} other reasons are in the results"] if more else []
    beyond = (beyond_text(study.setup, joint) for joint in results.beyond)
    blocks: list[Block] = [
        _facts(study, results),
        _grid(study, results),
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


def _facts(study: Study, results: Results) -> KeyValues:
    setup = study.setup
    moving = [variable for variable in setup.variables if variable.varies]
    ended = sorted(results.outcomes.items(), key=lambda item: -item[1])
    entries: list[tuple[str, str | Cell]] = [
        ("cases", f"{study.done} of {study.size}, {study.sampling!r}"),
        *((name, Cell(str(count), "" if name == "stopped" else "bad")) for name, count in ended),
        ("category", str(setup.category.number)),
        ("brakes", setup.brakes.source or "given in Python"),
        ("varies", ", ".join(variable.name for variable in moving) or "nothing"),
        ("results", str(study.path)),
    ]
    return KeyValues.of("Study", entries)


def _distributions(study: Study, results: Results) -> list[QuantityDistribution]:
    """Of stopping time, tool path, clearance, and angle or travel per joint."""
    every = quantity_distributions(results, study.setup)
    return [item for item in every if item.quantity.kind not in ("impulse", "gear")]


def _grid(study: Study, results: Results) -> Table:
    rows = []
    for item in _distributions(study, results):
        quantity, spread = item.quantity, item.spread
        values = (quantity.factor * x for x in (spread.median, spread.most, spread.worst))
        rows.append((quantity.label, *numbers(values), str(spread.case)))
    title = "Distribution over the cases that stopped and hold"
    return Table.of(title, ("<", "median", "95 %", "worst sampled", "case"), rows)


def worst_table(setup: Setup, worst: Mapping[str, WorstCase]) -> Report:
    """The table of worst cases, with the values of what varies."""
    rows = []
    for name, case in worst.items():
        unit, factor = shown_unit(column_unit(case.column))
        values = numbers((factor * case.value, factor * case.sampled))
        rows.append((f"{name} [{unit}]", *values, str(case.evaluations)))
    headings = ("<", "found", "worst sampled", "stops made")
    # Names of joints may hold what headings of `Table.of` mean something by.
    columns = (Column("", right=False), *(Column(printable(name)) for name in worst))
    places = []
    for variable in (variable for variable in setup.variables if variable.varies):
        unit = f" [{variable.unit}]" if variable.unit else ""
        values = [f"{case.values[variable.name]:.5g}" for case in worst.values()]
        places.append(tuple(map(Cell, (printable(f"{variable.name}{unit}"), *values))))
    where = Table("Where they are", columns, tuple(places))
    blocks = (Table.of("Worst cases", headings, rows), where)
    title = f"{setup.robot.name}: worst cases of {len(worst)} criteria"
    return Report.of(title, blocks, f"{SAMPLED} {PLANNING_AID}")
