"""The worst cases: from the worst samples of a study on, for each criterion by itself.

The worst case of time, of angle, of travel and of impulse are usually different cases. Found by
sampling and local search: sampled, not guaranteed.

The search is a pattern search (Hooke and Jeeves, J. ACM 8, 1961). Stops change abruptly where a
joint comes loose or another one locks last, and are worst mostly at ends of ranges: neither has a
gradient to follow. A pattern search needs none and reaches faces and corners of the space exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from ...boundary.arguments import public, require_kind
from ...errors import BadValue, UnknownName
from .cases import Setup, WorstCase, criteria, size_of
from .study import Study

Array = NDArray[np.float64]

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
        known = {name: column for name, column in known.items() if _matters(name, sizes[name])}
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


def known_criteria(setup: Setup, wanted: Sequence[str] | None) -> dict[str, str]:
    """The criteria that are wanted, and their columns.

    ``setup``: what all cases of a study have in common; ``wanted``: criteria; None for all.
    """
    known = criteria(setup)
    if wanted is None:
        return known
    chosen = [wanted] if isinstance(wanted, str) else list(wanted)
    if not chosen:
        raise BadValue(f"no criterion is wanted; known: {', '.join(known)}")
    for name in chosen:
        if name == "clearance" and not setup.obstacles:
            raise BadValue("criterion 'clearance' needs obstacles; give them to the study")
        if name not in known:
            raise UnknownName("criterion", name, known, setup.robot.name)
    return {name: known[name] for name in dict.fromkeys(chosen)}


def _samples(study: Study, known: Mapping[str, str]) -> dict[str, Array]:
    """Sizes of the samples per criterion."""
    samples: dict[str, list[float]] = {name: [] for name in known}
    for row in study.rows():
        for name, column in known.items():
            samples[name].append(size_of(row, column))
    if not any(np.isfinite(sizes).any() for sizes in samples.values()):
        raise BadValue("no case of the study stopped: there is none to start from")
    return {name: np.array(sizes) for name, sizes in samples.items()}


def _matters(name: str, sizes: Array) -> bool:
    return name == "clearance" or float(np.nanmax(sizes)) > 0.0


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
    begin, shape (d,); ``evaluations``: how often the size may be asked for, at least once.

    Returns:
        The largest size found, where it is, and how often it was asked for.
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
