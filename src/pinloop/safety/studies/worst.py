"""The worst cases: from the worst samples of a study uphill, for each criterion by itself.

The worst case of time, of angle, of travel and of impulse are usually different cases. Found by
sampling and local search: sampled, not guaranteed.

The search is a pattern search (Hooke and Jeeves, J. ACM 8, 1961). Stops change abruptly where a
joint comes loose or another one locks last, and are worst mostly at ends of ranges: neither has a
gradient to follow. A pattern search needs none and reaches faces and corners of the space exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from ...boundary.arguments import public
from ...boundary.checks import require_kind
from ...errors import BadValue, UnknownName
from .cases import CLEARANCE, Setup, WorstCase, joint_columns
from .study import Study

__all__ = ["WorstCase", "criteria", "known_criteria", "uphill", "worst_case"]

Array = NDArray[np.float64]

_STEP, _SMALLEST = 0.25, 1e-3
"""First and last step of the search, as parts of the ranges."""


def criteria(setup: Setup) -> dict[str, str]:
    """Criteria and the columns that measure them. Clearances are bad if small, all else if large.

    Args:
        setup: what all cases of a study have in common.
    """
    found = {"time": "stopping_time_s", "travel": "tool_travel_m"}
    if setup.obstacles:
        found["clearance"] = CLEARANCE
    for name in setup.brakes.joints:
        of = joint_columns(setup.robot, name)
        found[f"angle:{name}"] = of["excursion"]
        found[f"impulse:{name}"] = of["impulse"]
        found[f"gear:{name}"] = of["peak_gear_torque"]
    return found


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

    From the worst samples each search goes uphill in the space, first to both ends of every range:
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
    climbs = Parallel(n_jobs=jobs)(
        delayed(_climb)(study.setup, study.values(case), known[name], evaluations)
        for name, case in tasks
    )
    found: dict[str, WorstCase] = {}
    for name, column in known.items():
        own = [climb for (of, _), climb in zip(tasks, climbs, strict=True) if of == name]
        size, values, _ = max(own, key=lambda climb: climb[0])
        found[name] = WorstCase(
            name,
            column,
            abs(size),
            float(abs(np.nanmax(sizes[name]))),
            values,
            study.setup.stop(values),
            sum(count for _, _, count in own),
        )
    return found


def known_criteria(setup: Setup, wanted: Sequence[str] | None) -> dict[str, str]:
    """The criteria that are wanted, and their columns.

    Args:
        setup: what all cases of a study have in common.
        wanted: criteria; None for all.
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


def _size(row: Mapping[str, float | str], column: str) -> float:
    """How bad a case is, larger is worse; not a number where it did not end in a held robot."""
    if row["outcome"] != "stopped":
        return np.nan
    value = float(row[column])
    return -value if column == CLEARANCE else value


def _samples(study: Study, known: Mapping[str, str]) -> dict[str, Array]:
    """Sizes of the samples per criterion."""
    found: dict[str, list[float]] = {name: [] for name in known}
    for row in study.rows():
        for name, column in known.items():
            found[name].append(_size(row, column))
    if not any(np.isfinite(sizes).any() for sizes in found.values()):
        raise BadValue("no case of the study stopped: there is none to start from")
    return {name: np.array(sizes) for name, sizes in found.items()}


def _matters(name: str, sizes: Array) -> bool:
    return name == "clearance" or float(np.nanmax(sizes)) > 0.0


def _worst_of(sizes: Array, count: int) -> list[int]:
    """The cases with the largest sizes."""
    usable = np.flatnonzero(np.isfinite(sizes))
    order = np.argsort(-sizes[usable], kind="stable")
    return [int(case) for case in usable[order[:count]]]


def _climb(
    setup: Setup, values: Mapping[str, float], column: str, evaluations: int
) -> tuple[float, dict[str, float], int]:
    """Uphill from one case; the size reached, its case, and the number of stops made."""
    moving = [one for one in setup.variables if one.varies]
    low = np.array([one.low for one in moving])
    span = np.array([one.high - one.low for one in moving])
    start = (np.array([values[one.name] for one in moving]) - low) / span

    def case(x: Array) -> dict[str, float]:
        if np.array_equal(x, start):
            return dict(values)  # to the last digit
        places = zip(moving, x.tolist(), strict=True)
        return {**values, **{one.name: one.at(share) for one, share in places}}

    def size(x: Array) -> float:
        found = _size(setup.row(0, case(x)), column)
        return -np.inf if np.isnan(found) else found

    best, x, count = uphill(size, start, evaluations)
    return best, case(x), count


def uphill(
    size: Callable[[Array], float], start: Array, evaluations: int
) -> tuple[float, Array, int]:
    """Go uphill from a point: first to both ends of every coordinate, then by smaller steps.

    Args:
        size: what is to become large; minus infinity where it is not allowed.
        start: where to begin, shape (d,).
        evaluations: how often the size may be asked for, at least once.

    Returns:
        The largest size found, where it is, and how often it was asked for.
    """
    climb = _Climb(size, np.clip(start, 0.0, 1.0), evaluations)
    for k in range(len(climb.x)):
        for end in (0.0, 1.0):
            climb.try_coordinate(k, end)
    step = _STEP
    while step >= _SMALLEST and climb.left > 0:
        before, old = climb.best, climb.x
        for k in range(len(climb.x)):
            if not climb.try_coordinate(k, climb.x[k] + step):
                climb.try_coordinate(k, climb.x[k] - step)
        if climb.best > before:
            climb.try_point(2.0 * climb.x - old)  # the same way again
        else:
            step /= 2.0
    return climb.best, climb.x, evaluations - climb.left


class _Climb:
    """The best point so far."""

    def __init__(self, size: Callable[[Array], float], x: Array, evaluations: int) -> None:
        self._size, self.x, self.left = size, x, evaluations - 1
        self.best = size(x)

    def try_coordinate(self, k: int, value: float) -> bool:
        """Change one coordinate if that is better."""
        x = self.x.copy()
        x[k] = value
        return self.try_point(x)

    def try_point(self, x: Array) -> bool:
        """Go to a point if it is better."""
        x = np.clip(x, 0.0, 1.0)
        if self.left < 1 or np.array_equal(x, self.x):
            return False
        self.left -= 1
        size = self._size(x)
        if size > self.best:
            self.best, self.x = size, x
            return True
        return False
