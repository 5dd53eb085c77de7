"""A distance over the cases of a study: which cases count, and what each of them asks for.

A distance is a function of one stop: terms of different cases are not added up. What a row of a
study does not tell (how far bodies come towards a person) is computed again from its case, which
takes about as long as the study itself. What the distances are is in `separation` and `minimum`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from joblib import Parallel, delayed, effective_n_jobs

from ...errors import BadValue
from ..stopping import StopResult
from ..studies.cases import Setup
from ..studies.study import Study

__all__ = ["Standing", "measure_cases", "standing_cases"]


class Distance(Protocol):
    """A distance that a stop asks for."""

    @property
    def distance(self) -> float:
        """The distance [m]."""
        ...

    @property
    def simple(self) -> float:
        """The same by its simple form [m]."""
        ...


D = TypeVar("D", bound=Distance)

_TASKS = 4
"""Tasks per worker: cases take different times."""


@dataclass(frozen=True)
class Standing:
    """The cases of a study in which the robot stands at the end and is held.

    Args:
        times: stopping time [s] by number of the case, in rising order of the numbers.
        notes: what was left out, one sentence each.
    """

    times: Mapping[int, float]
    notes: tuple[str, ...]

    @property
    def cases(self) -> tuple[int, ...]:
        """Numbers of the cases."""
        return tuple(self.times)


def standing_cases(study: Study) -> Standing:
    """Return the cases that count for a distance.

    Args:
        study: the study; cases that could not be computed are left out, and a note says so.

    Raises:
        BadValue: in some case the robot does not come to rest and hold, or no case was computed.
    """
    times: dict[int, float] = {}
    failed: dict[int, str] = {}
    loose: dict[int, str] = {}
    for row in study.rows():
        case, outcome = int(row["case"]), str(row["outcome"])
        if outcome == "stopped":
            times[case] = float(row["stopping_time_s"])
        elif outcome == "failed":
            failed[case] = str(row["reason"])
        else:
            loose[case] = outcome
    name = study.setup.robot.name
    if loose:
        case, outcome = next(iter(loose.items()))
        others = f" (and {len(loose) - 1} others do not stop either)" if len(loose) > 1 else ""
        raise BadValue(
            f"case {case} of the study of robot '{name}' ends as '{outcome}'{others}: no distance "
            "protects from a robot that does not come to rest and hold; give it stronger brakes, "
            "or make a study of states from which it stops"
        )
    if not times:
        raise BadValue(
            f"no case of the study of robot '{name}' could be computed: there is no distance"
        )
    notes = [
        f"sampled, not guaranteed: the largest of {len(times)} cases; one that was not looked at "
        "may ask for more"
    ]
    if not study.complete:
        notes.append(f"the study is not finished: {study.done} of {study.size} cases are done")
    if failed:
        case, reason = next(iter(failed.items()))
        notes.append(
            f"{len(failed)} of {study.done} cases could not be computed and are left out, first "
            f"case {case}: {reason}"
        )
    return Standing(times, tuple(notes))


def measure_cases(
    study: Study, cases: Sequence[int], measure: Callable[[StopResult], D], jobs: int
) -> tuple[list[tuple[float, float]], D]:
    """What each of some cases asks for, in parallel; the stops are made again, once.

    Args:
        study: the study.
        cases: numbers of the cases.
        measure: what a stop asks for.
        jobs: number of processes; -1 for all cores.

    Returns:
        Each distance and its simple form [m], in the order of the cases; and the first of those
        with the largest distance, with everything.

    Raises:
        BadValue: ``jobs`` is no number of processes, or a stop cannot be measured.
    """
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs == 0:
        raise BadValue(f"jobs is {jobs!r}; give a number of processes, or -1 for all cores")
    size = -(-len(cases) // (_TASKS * max(1, effective_n_jobs(jobs))))
    batches = Parallel(n_jobs=jobs)(
        delayed(_batch)(study.setup, [(case, study.values(case)) for case in part], measure)
        for part in (cases[k : k + size] for k in range(0, len(cases), size))
    )
    pairs = [pair for pairs, _ in batches for pair in pairs]
    return pairs, max((largest for _, largest in batches), key=lambda each: each.distance)


def _batch(
    setup: Setup,
    cases: Sequence[tuple[int, Mapping[str, float]]],
    measure: Callable[[StopResult], D],
) -> tuple[list[tuple[float, float]], D]:
    """What a worker computes; a mistake is told with its case."""
    pairs, largest = [], None
    for case, values in cases:
        try:
            distance = measure(setup.stop(values))
        except BadValue as error:
            raise BadValue(f"case {case} of the study: {error}") from None
        pairs.append((distance.distance, distance.simple))
        if largest is None or distance.distance > largest.distance:
            largest = distance
    assert largest is not None, "a batch has at least one case"
    return pairs, largest
