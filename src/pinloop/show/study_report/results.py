"""The columns of a study's results that a report needs, read once and row by row.

Kept are eight bytes per number of a case that stopped; of all others how many there are of each
sort. Nothing here knows how it is shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from ...safety.studies.cases import CLEARANCE, TOOL_PLACE, Setup, joint_columns
from ...safety.studies.journal import read_cells, unreadable
from ...safety.studies.study import Study
from ...safety.studies.summary import Beyond, beyond_columns
from ...tolerances import LIMIT_PASSED

__all__ = ["Failure", "Results", "joints_beyond", "results_of"]

Array = NDArray[np.float64]

_BLOCK = 4096
"""Rows that are turned into numbers together."""
_EXAMPLES = 5
"""Numbers of cases that are told of each sort of failure."""
_SORTS = 40
"""Sorts of failures that are told apart; whatever comes after them is one more."""
_PLACES = 400
"""Places of cases that did not stop which are kept for maps."""
_OTHER = "other reasons, which are in the results"
_NUMBER = re.compile(r"(?<![\w'.])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


@dataclass
class Failure:
    """Cases that did not end with the robot at rest and held, alike but for numbers.

    Args:
        outcome: how they ended.
        reason: why, in the words of the first one.
        count: how many there are.
        cases: numbers of the first ones.
        alike: whether all of them have the same words.
    """

    outcome: str
    reason: str
    count: int = 0
    cases: list[int] = field(default_factory=list)
    alike: bool = True


@dataclass(frozen=True, eq=False)
class Results:
    """What came out of a study, column by column.

    Args:
        cases: numbers of the cases that stopped and are held, shape (k,).
        columns: numbers by column [SI], shape (k,).
        outcomes: how many cases ended how.
        failures: all other cases by sort, the most frequent first.
        lost: places of the tool at the signal of those that did not stop [m], shape (m, 3); the
            first ones, if there are many.
    """

    cases: NDArray[np.int64]
    columns: Mapping[str, Array]
    outcomes: Mapping[str, int]
    failures: tuple[Failure, ...]
    lost: Array

    @property
    def stopped(self) -> int:
        """Number of cases that ended with the robot at rest and held."""
        return len(self.cases)

    @cached_property
    def places(self) -> Array:
        """Places of the tool at the signal [m], shape (k, 3)."""
        return np.column_stack([self.columns[name] for name in TOOL_PLACE])


def results_of(study: Study) -> Results:
    """Read the results of a study.

    Args:
        study: the study.
    """
    kept = _kept(study.setup)
    reader = _Reader(study.names, kept)
    rows = read_cells(study.path, study.names, study.done)
    try:
        blocks = list(reader.blocks(rows))
    except ValueError as error:  # a cell that is no number
        raise unreadable(study.path, error) from error
    table = np.concatenate(blocks) if blocks else np.zeros((0, len(kept)))
    return Results(
        table[:, 0].astype(np.int64),
        {name: np.ascontiguousarray(table[:, k]) for k, name in enumerate(kept)},
        reader.outcomes,
        tuple(sorted(reader.failures.values(), key=lambda one: -one.count)),
        np.array(reader.lost).reshape(-1, 3),
    )


def joints_beyond(study: Study, results: Results) -> list[Beyond]:
    """Joints that get beyond their limits in a case that stopped."""
    found = []
    for name, column in beyond_columns(study.setup).items():
        far = results.columns[column]
        if count := int(np.sum(far > LIMIT_PASSED)):
            worst = int(np.argmax(far))
            found.append(Beyond(name, count, float(far[worst]), int(results.cases[worst])))
    return found


def _kept(setup: Setup) -> list[str]:
    """Columns that a report needs, the number of the case first."""
    found = ["case", *(one.column for one in setup.variables if one.varies), "stopping_time_s"]
    found += ["tool_travel_m", *TOOL_PLACE, "ledger_error"]
    found += [CLEARANCE] if setup.obstacles else []
    for name in setup.brakes.joints:
        of = joint_columns(setup.robot, name)
        found += [of[one] for one in ("excursion", "beyond_limit", "impulse", "peak_gear_torque")]
    return found


class _Reader:
    """Turns rows into numbers, and counts what did not stop."""

    def __init__(self, names: Sequence[str], kept: Sequence[str]) -> None:
        at = {name: k for k, name in enumerate(names)}
        self._outcome, self._reason = at["outcome"], at["reason"]
        self._pick = itemgetter(*(at[name] for name in kept))
        self._place = itemgetter(*(at[name] for name in TOOL_PLACE))
        self.outcomes: dict[str, int] = {}
        self.failures: dict[tuple[str, str], Failure] = {}
        self.lost: list[list[float]] = []

    def blocks(self, rows: Iterator[list[str]]) -> Iterator[Array]:
        """Numbers of the cases that stopped, block by block.

        Args:
            rows: all rows, as they are written.
        """
        while block := list(islice(rows, _BLOCK)):
            stopped = []
            for cells in block:
                outcome = cells[self._outcome]
                self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
                if outcome == "stopped":
                    stopped.append([float(cell or "nan") for cell in self._pick(cells)])
                else:
                    self._failed(outcome, cells)
            if stopped:
                yield np.array(stopped, dtype=np.float64)

    def _failed(self, outcome: str, cells: list[str]) -> None:
        reason = cells[self._reason]
        key = outcome, _NUMBER.sub("#", reason)
        if key not in self.failures and len(self.failures) >= _SORTS:
            key, reason = ("failed", _OTHER), _OTHER
        sort = self.failures.setdefault(key, Failure(outcome, reason))
        sort.count += 1
        sort.alike &= reason == sort.reason
        if len(sort.cases) < _EXAMPLES:
            sort.cases.append(int(cells[0]))
        place = self._place(cells)
        if all(place) and len(self.lost) < _PLACES:
            self.lost.append([float(cell) for cell in place])
