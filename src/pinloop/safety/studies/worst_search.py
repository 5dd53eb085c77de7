"""The search of a study for cases that are worse than its samples.

It starts from the worst samples and from corners of the space: ends of speeds, payload, bands and
delays in combinations of Sobol's sequence, half of them at poses in which the robot is extended.
From there `local_search` goes on. Each stop counts for all criteria that rows measure, and not only
for that by which it is searched. Sampled and searched, not guaranteed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from typing import Any, NamedTuple

import numpy as np
from joblib import delayed

from ...boundary.arguments import public
from ...boundary.marks import Array
from ...errors import BadValue, PinloopError
from ...tolerances import LIMIT_PASSED, SAME
from ..stopping import StopResult
from .cases import Row, Setup, Values, joint_columns
from .corners import Samples, UnitCube, corner_cases
from .criteria import DISPLACEMENT, SEPARATION, Criterion, known_criteria
from .local_search import LocalSearch, share_budget
from .order_statistics import Sampled, describe_samples
from .space import Variable, drawn
from .workers import start_workers
from .worst import Searched, WorstCase


@public
@dataclass(frozen=True)
class Search:
    """How a study searches for cases that are worse than its samples.

    Args:
        criteria: what to search by, see `worst_case`; by default time, travel of the tool,
            clearance where there are obstacles, angle of every joint, and where a person is given
            separation, and displacement of the tool in their direction, if that is given.
        evaluations: stops per criterion; derivatives of one count as two.
        starts: of the worst cases known so far, how many it starts from, per criterion.
        corners: cases at ends of ranges that are looked at first.
        person: where a person is and how they approach: arguments of `separation`.
    """

    criteria: tuple[str, ...] | None = None
    evaluations: int = 64
    starts: int = 3
    corners: int = 32
    person: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        for what, least in (("evaluations", 1), ("starts", 1), ("corners", 0)):
            count = getattr(self, what)
            if isinstance(count, bool) or not isinstance(count, int) or count < least:
                raise BadValue(f"{what} is {count!r}; give a number of at least {least}")

    def chosen(self, setup: Setup) -> dict[str, Criterion]:
        """The criteria to search by."""
        names = self.criteria
        if names is None:
            every = known_criteria(setup, None)
            names = tuple(name for name in every if name.partition(":")[0] not in _LOADS)
            if self.person is not None:
                towards = self.person.get("direction")
                words = () if towards is None else (",".join(map(str, towards)),)
                names += (SEPARATION, *(f"{DISPLACEMENT}:{word}" for word in words))
        return known_criteria(setup, names, self.person)


_LOADS = ("impulse", "gear")
"""Loads of gears, which are searched for only when they are asked for."""


Report = Callable[[int], None]


def search_worst(
    samples: Samples,
    chosen: Mapping[str, Criterion],
    search: Search,
    jobs: int,
    report: Report | None = None,
    known: Mapping[str, Array] | None = None,
) -> Searched:
    """Search the worst case of each criterion. Those by which no sample has a size are left out.

    Args:
        samples: the study whose samples are the starts.
        chosen: the criteria by name.
        search: how to search.
        jobs: number of processes.
        report: takes the number of stops made so far.
        known: sizes of all samples by criterion, shape (n,), where they are known.
    """
    setup = samples.setup
    known = _sizes(samples, chosen, jobs) if known is None else known
    if not any(np.isfinite(sizes).any() for sizes in known.values()):
        raise BadValue("no case of the study stopped: there is none to start from")
    known = {name: sizes for name, sizes in known.items() if np.isfinite(sizes).any()}
    corners = list(corner_cases(samples, search.corners))
    size = 1 + len(corners) // 8
    tally, pool = _Tally(setup, chosen), []
    with start_workers(jobs, return_as="generator") as parallel:
        parts = (corners[k : k + size] for k in range(0, len(corners), size))
        for part, sizes in parallel(delayed(_try_cases)(setup, chosen, own) for own in parts):
            tally.add(part)
            pool += sizes
            if report is not None:
                report(tally.stops)
        tasks = [
            delayed(_climb)(
                setup,
                chosen,
                name,
                _starts(samples, name, sizes, pool, search.starts),
                search.evaluations,
            )
            for name, sizes in known.items()
        ]
        counts = {}
        for name, part in zip(known, parallel(tasks), strict=True):
            tally.add(part)
            counts[name] = part.stops
            if report is not None:
                report(tally.stops)
        cases, described = _best_cases(samples, chosen, known, tally, counts)
        intervals = parallel(
            delayed(chosen[name].interval)(case.stop) for name, case in cases.items()
        )
        pairs = zip(cases.items(), intervals, strict=True)
        cases = {name: replace(case, interval=interval) for (name, case), interval in pairs}
    return Searched(cases, described, tally.stops, dict(tally.outcomes), dict(tally.beyond))


def _best_cases(
    samples: Samples,
    chosen: Mapping[str, Criterion],
    known: Mapping[str, Array],
    tally: _Tally,
    counts: Mapping[str, int],
) -> tuple[dict[str, WorstCase], dict[str, Sampled]]:
    """The worst case by each criterion, and what the samples say; ``counts``: stops made for it."""
    setup, cases, described = samples.setup, dict[str, WorstCase](), dict[str, Sampled]()
    for name, sizes in known.items():
        criterion, finite = chosen[name], np.flatnonzero(np.isfinite(sizes))
        of_samples = describe_samples(
            criterion.sign * sizes[finite], finite, criterion.sign, drawn(samples.sampling)
        )
        described[name] = of_samples
        best, values = tally.best.get(name, (-math.inf, {}))
        sampled = criterion.sign * of_samples.worst
        if best <= sampled + SAME * abs(sampled):
            best, values = sampled, samples.values(of_samples.case)
        cases[name] = WorstCase(
            name,
            criterion.column,
            abs(best),
            abs(of_samples.worst),
            values,
            setup.stop(values),
            counts[name],
        )
    return cases, described


def _sizes(samples: Samples, chosen: Mapping[str, Criterion], jobs: int) -> dict[str, Array]:
    """Sizes of all samples by criterion, shape (n,); NaN where they did not stop."""
    of_rows = [criterion for criterion in chosen.values() if criterion.measure is None]
    rows = [
        (str(row["outcome"]), [criterion.size(row) for criterion in of_rows])
        for row in samples.rows()
    ]
    table = np.array([sizes for _, sizes in rows]).reshape(len(rows), len(of_rows))
    sizes = {criterion.name: table[:, k] for k, criterion in enumerate(of_rows)}
    stopped = [case for case, (outcome, _) in enumerate(rows) if outcome == "stopped"]
    measured = [criterion for criterion in chosen.values() if criterion.measure is not None]
    if measured:
        part = max(1, len(stopped) // 16)
        parts = (stopped[k : k + part] for k in range(0, len(stopped), part))
        tasks = (delayed(_measure)(samples, measured, own) for own in parts)
        found = [each for own in start_workers(jobs)(tasks) for each in own]
        for k, criterion in enumerate(measured):
            column = np.full(len(rows), np.nan)
            column[stopped] = [each[k] for each in found]
            sizes[criterion.name] = column
    return {name: sizes[name] for name in chosen}


def _measure(
    samples: Samples, measured: Sequence[Criterion], cases: Sequence[int]
) -> list[list[float]]:
    """Sizes of cases by criteria that rows do not measure; what a worker computes."""
    sizes = []
    for case in cases:
        stop = samples.replay(case)
        sizes.append([criterion.size({"outcome": stop.outcome}, stop) for criterion in measured])
    return sizes


class _Start(NamedTuple):
    """A case to start from: its size and its values."""

    size: float
    values: Values


def _starts(
    samples: Samples,
    name: str,
    sizes: Array,
    corners: Sequence[tuple[Values, Mapping[str, float]]],
    count: int,
) -> list[_Start]:
    """The worst samples and the worst corners by turns, the worst of all first."""
    usable = np.flatnonzero(np.isfinite(sizes))
    order = usable[np.argsort(-sizes[usable], kind="stable")][:count].tolist()
    of_samples = [_Start(float(sizes[case]), samples.values(case)) for case in order]
    of_corners = [_Start(own[name], values) for values, own in corners if name in own]
    of_corners.sort(key=lambda start: -start.size)
    pairs = [of_samples, of_corners]
    pairs.sort(key=lambda starts: -starts[0].size if starts else math.inf)
    turns = (start for both in zip_longest(*pairs) for start in both if start is not None)
    return list(islice(turns, count))


# -- from a start on ------------------------------------------------------------------------------


class _Tally:
    """What the stops of a search were like, and the worst of them by every criterion.

    Attributes:
        best: sizes and values by criterion.
    """

    def __init__(self, setup: Setup, chosen: Mapping[str, Criterion]) -> None:
        self._chosen = chosen
        self._limits = {
            name: joint_columns(setup.robot, name)["beyond_limit"] for name in setup.brakes.joints
        }
        self.best: dict[str, tuple[float, Values]] = {}
        self.outcomes = Counter[str]()
        self.beyond: dict[str, float] = {}

    @property
    def stops(self) -> int:
        """How many stops there were."""
        return sum(self.outcomes.values())

    def count(
        self, row: Row, stop: StopResult | None, values: Values, wanted: str | None = None
    ) -> dict[str, float]:
        """Count a stop; its sizes by all criteria that rows measure, and by what is wanted.

        By all others, too, if nothing is.
        """
        self.outcomes[str(row["outcome"])] += 1
        if row["outcome"] != "stopped":
            return {}
        sizes = {
            name: criterion.size(row, stop)
            for name, criterion in self._chosen.items()
            if criterion.measure is None or wanted in (None, name)
        }
        for name, size in sizes.items():
            if size > self.best.get(name, (-math.inf,))[0]:
                self.best[name] = size, values
        for joint, column in self._limits.items():
            if (far := float(row[column])) > max(self.beyond.get(joint, 0.0), LIMIT_PASSED):
                self.beyond[joint] = far
        return sizes

    def add(self, other: _Tally) -> None:
        """Add another one."""
        self.outcomes += other.outcomes
        for name, best in other.best.items():
            if best[0] > self.best.get(name, (-math.inf,))[0]:
                self.best[name] = best
        for joint, far in other.beyond.items():
            self.beyond[joint] = max(far, self.beyond.get(joint, 0.0))


def _try_cases(
    setup: Setup, chosen: Mapping[str, Criterion], cases: Sequence[Values]
) -> tuple[_Tally, list[tuple[Values, dict[str, float]]]]:
    """Stops of some cases with their sizes by criterion; what a worker computes."""
    tally = _Tally(setup, chosen)
    return tally, [(values, tally.count(*setup.evaluate(0, values), values)) for values in cases]


def _climb(
    setup: Setup,
    chosen: Mapping[str, Criterion],
    name: str,
    starts: Sequence[_Start],
    evaluations: int,
) -> _Tally:
    """Search by a criterion from some cases on; what a worker computes.

    Where it has derivatives, a search without them goes along, from the second start. Few stops are
    for few searches: each should get to try the ends of all ranges.
    """
    tally, criterion = _Tally(setup, chosen), chosen[name]
    searches = [_search_from(setup, criterion, start, tally) for start in starts]
    if criterion.outputs:
        plain = starts[min(1, len(starts) - 1)]
        searches.append(_search_from(setup, criterion, plain, tally, sloping=False))
    few = max(2, evaluations // max(1, 3 * len(searches[0].x)))
    share_budget(searches[:few], evaluations)
    return tally


def _search_from(
    setup: Setup, criterion: Criterion, start: _Start, tally: _Tally, *, sloping: bool = True
) -> LocalSearch:
    """A search by a criterion from a case on, whose stops are counted."""
    moving = [variable for variable in setup.variables if variable.varies]
    scaling = UnitCube(moving, start.values)
    latest: list[tuple[bytes, StopResult | None]] = []

    def size(x: Array) -> float:
        values = scaling.values(x)
        row, stop = setup.evaluate(0, values)
        value = tally.count(row, stop, values, criterion.name).get(criterion.name, math.nan)
        latest[:] = [(x.tobytes(), stop)] if value >= search.best else latest
        return -math.inf if math.isnan(value) else value

    def slope(x: Array) -> Array | None:
        stop = next((own for key, own in latest if key == x.tobytes()), None)
        return size_slopes(setup, criterion, stop or setup.stop(scaling.values(x)), moving)

    at_once = np.array([variable.kind not in ("pose", "instant") for variable in moving])
    slopes = slope if sloping and criterion.outputs else None
    search = LocalSearch(size, scaling.start, start.size, slopes, at_once)
    return search


def size_slopes(
    setup: Setup, criterion: Criterion, stop: StopResult, variables: Sequence[Variable]
) -> Array | None:
    """Derivatives of how bad a stop is by what varies, in parts of the ranges; None without any."""
    if stop.outcome != "stopped":
        return None
    counts = [
        variable.kind != "band" or stop.brakes.joints[variable.joint].uses("band")
        for variable in variables
    ]
    chosen = [v.name.replace(".", ":", 1) for v, use in zip(variables, counts, strict=True) if use]
    try:
        found = stop.sensitivity(list(criterion.outputs), chosen)
    except PinloopError:
        return None
    # Of angles, which have a sign, the size counts.
    weights = np.where(found.output_values < 0.0, -1.0, 1.0) * list(criterion.outputs.values())
    slopes = np.zeros(len(variables))
    slopes[counts] = weights @ np.nan_to_num(found.matrix)
    return np.asarray(slopes * [variable.high - variable.low for variable in variables])
