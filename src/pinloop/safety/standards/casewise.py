"""A distance over the cases of a study: which cases count, and what each of them asks for.

A distance is a function of one stop: terms of different cases are not added up. What a row of a
study does not tell (how far bodies come towards a person) is computed again from its case, which
takes about as long as the study itself. What the distances are is in `separation` and `minimum`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from joblib import Parallel, delayed, effective_n_jobs

from ...errors import BadValue
from ..stopping import StopResult
from ..studies.cases import Setup
from ..studies.study import Study

__all__ = ["Standing", "measured", "standing_cases"]

T = TypeVar("T")

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


def measured(
    study: Study, cases: Sequence[int], measure: Callable[[StopResult], T], jobs: int
) -> tuple[T, ...]:
    """What each of some cases asks for, in parallel; the stops are made again.

    Args:
        study: the study.
        cases: numbers of the cases.
        measure: what is wanted of a stop.
        jobs: number of processes; -1 for all cores.

    Raises:
        BadValue: ``jobs`` is no number of processes, or a stop cannot be measured.
    """
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs == 0:
        raise BadValue(f"jobs is {jobs!r}; give a number of processes, or -1 for all cores")
    size = -(-len(cases) // (_TASKS * max(1, effective_n_jobs(jobs))))
    found = Parallel(n_jobs=jobs)(
        delayed(_batch)(study.setup, [(case, study.values(case)) for case in part], measure)
        for part in (cases[k : k + size] for k in range(0, len(cases), size))
    )
    return tuple(value for values in found for value in values)


def _batch(
    setup: Setup,
    cases: Sequence[tuple[int, Mapping[str, float]]],
    measure: Callable[[StopResult], T],
) -> list[T]:
    """What a worker computes; a mistake is told with its case."""
    found = []
    for case, values in cases:
        try:
            found.append(measure(setup.stop(values)))
        except BadValue as error:
            raise BadValue(f"case {case} of the study: {error}") from None
    return found
