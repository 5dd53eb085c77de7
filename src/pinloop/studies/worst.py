"""The worst cases: from the best samples of a study uphill, for each criterion by itself.

The worst case of time, of angle, of travel and of impulse are usually different cases. Found by
sampling and local search: sampled, not guaranteed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import BadValue, UnknownName
from ..stopping import StopResult
from .cases import Setup, units
from .study import Study

__all__ = ["WorstCase", "criteria", "worst_case"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class WorstCase:
    """The worst case found for a criterion.

    Args:
        criterion: what is worst.
        column: the column of a study's rows that measures it.
        value: how bad it is, in the unit of the column.
        sampled: how bad the worst sample was.
        values: value of every variable, by name.
        stop: the stop, with everything.
        evaluations: stops made by the search.
    """

    criterion: str
    column: str
    value: float
    sampled: float
    values: Mapping[str, float]
    stop: StopResult
    evaluations: int


def criteria(setup: Setup) -> dict[str, str]:
    """Criteria and the columns that measure them."""
    found = {"time": "stopping_time_s", "travel": "tool_travel_m"}
    for name in setup.brakes.joints:
        angle, torque = units(setup.robot, name)
        found[f"angle:{name}"] = f"{name}_excursion_{angle}"
        found[f"impulse:{name}"] = f"{name}_impulse_{torque}s"
        found[f"gear:{name}"] = f"{name}_peak_gear_torque_{torque}"
    return found


def worst_case(
    study: Study,
    wanted: Sequence[str] | None = None,
    *,
    starts: int = 3,
    evaluations: int = 200,
    jobs: int = -1,
) -> dict[str, WorstCase]:
    """Search the worst cases of a study's space.

    From the worst samples each search goes uphill in the space (Nelder and Mead's method within
    its bounds), and tries both ends of every brake's band at the end.

    Args:
        study: the study whose samples are the starts.
        wanted: criteria, of `criteria`; all that are not zero everywhere by default.
        starts: number of samples to start from, per criterion.
        evaluations: stops per start.
        jobs: number of processes; all cores by default.

    Returns:
        Per criterion the worst case.
    """
    from joblib import Parallel, delayed

    known = criteria(study.setup)
    for name in wanted or ():
        if name not in known:
            raise UnknownName("criterion", name, known, study.setup.robot.name)
    samples = _samples(study, list(known.values()))
    chosen = [name for name in known if wanted is None or name in wanted]
    if wanted is None:
        chosen = [name for name in chosen if np.nanmax(samples[known[name]], initial=0.0) > 0.0]
    tasks = [
        (name, int(case))
        for name in chosen
        for case in _worst_of(samples[known[name]], starts, name)
    ]
    found = Parallel(n_jobs=jobs)(
        delayed(_climb)(study.setup, study.values(case), known[name], evaluations)
        for name, case in tasks
    )
    best: dict[str, WorstCase] = {}
    for (name, case), (value, values, count) in zip(tasks, found, strict=True):
        before = best.get(name)
        if before is None or value > before.value:
            sampled = float(samples[known[name]][case])
            if before is not None:
                sampled = max(sampled, before.sampled)
            stop = study.setup.stop(values)
            best[name] = WorstCase(name, known[name], value, sampled, values, stop, count)
    return best


def _samples(study: Study, names: Sequence[str]) -> dict[str, Array]:
    """Sizes in some columns, not a number where a case failed or never ended."""
    found: dict[str, list[float]] = {name: [] for name in names}
    for row in study.rows():
        usable = row["outcome"] == "stopped"
        for name in names:
            found[name].append(abs(float(row[name])) if usable else np.nan)
    return {name: np.array(values) for name, values in found.items()}


def _worst_of(sizes: Array, count: int, name: str) -> NDArray[np.intp]:
    """The cases with the largest sizes."""
    usable = np.flatnonzero(np.isfinite(sizes))
    if len(usable) == 0:
        raise BadValue(f"no case of the study stopped: there is no start for criterion '{name}'")
    order = np.argsort(-sizes[usable], kind="stable")
    return np.asarray(usable[order[:count]])


def _climb(
    setup: Setup, values: Mapping[str, float], column: str, evaluations: int
) -> tuple[float, dict[str, float], int]:
    """Uphill from one case; the size reached, its case, and the number of stops made."""
    from scipy.optimize import minimize

    moving = [one for one in setup.variables if one.high > one.low]
    low, span = (
        np.array([one.low for one in moving]),
        np.array([one.high - one.low for one in moving]),
    )
    count = 0

    def case(x: Array) -> dict[str, float]:
        places = low + np.clip(x, 0.0, 1.0) * span
        return {**values, **{one.name: float(p) for one, p in zip(moving, places, strict=True)}}

    def size(x: Array) -> float:
        nonlocal count
        count += 1
        row = setup.row(0, case(x))
        # A stop that fails, or a robot that is not held, is another finding, not a worse size.
        return -abs(float(row[column])) if row["outcome"] == "stopped" else 0.0

    x = (np.array([values[one.name] for one in moving]) - low) / span
    if len(moving):
        options: Any = {"maxfev": evaluations, "xatol": 1e-3, "fatol": 1e-9}
        bounds = [(0.0, 1.0)] * len(moving)
        done = minimize(size, x, method="Nelder-Mead", bounds=bounds, options=options)
        x = np.asarray(done.x) if done.fun <= size(x) else x
    best = size(x)
    for k, one in enumerate(moving):
        for end in (0.0, 1.0):  # a weaker brake is not always worse
            trial = x.copy()
            trial[k] = end
            if one.kind in ("band", "delay") and (value := size(trial)) < best:
                x, best = trial, value
    return -best, case(x), count
