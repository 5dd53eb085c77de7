"""What came out of the cases of a study: the columns that a report needs, and their quantities.

The file is read once, row by row. Kept are eight bytes per number of a case that stopped; of all
others how many there are of each sort.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ...boundary.marks import Array
from ...errors import printable
from ...safety.studies.cases import CLEARANCE, TOOL_PLACE, Setup, criteria, joint_columns
from ...safety.studies.journal import read_cells, unreadable
from ...safety.studies.study import Study
from ...safety.studies.summary import Beyond, Distribution, beyond_columns, distribution_of
from ...tables.number_format import decimals, number
from ...tolerances import LIMIT_PASSED
from ...units import column_unit, shown_unit

_EXAMPLES = 5
"""Numbers of cases that are given of each sort of failure."""
_SORTS = 40
"""Sorts of failures that are kept apart; whatever comes after them is one more."""
_PLACES = 400
"""Places of cases that did not stop which are kept for maps."""
_OTHER = "other reasons, which are in the results"
_WHY = {
    "does not hold": "it comes to rest, but brakes and friction do not hold it against gravity",
    "time-out": "it did not come to rest within the time computed",
}
_NUMBER = re.compile(r"(?<![\w'.])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


@dataclass
class Failure:
    """Cases that did not end with the robot at rest and held, alike but for numbers.

    The reason is in the words of the first one, ``alike`` if all have the same; cases are the
    first ones.
    """

    outcome: str
    reason: str
    count: int = 0
    cases: list[int] = field(default_factory=list)
    alike: bool = True

    @property
    def why(self) -> str:
        """The reason in words."""
        if self.reason:
            return self.reason if self.alike else f"{self.reason} (and alike, with other numbers)"
        return _WHY.get(self.outcome, "no reason was given")


@dataclass(frozen=True, eq=False)
class Results:
    """What came out of a study, column by column.

    Args:
        cases: numbers of the cases that stopped and are held, shape (k,).
        columns: numbers by column [SI], shape (k,).
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

    def column_of(self, name: str, measure: QuantityDistribution) -> Array:
        """A column for the cases of which a quantity is known, shape (k,)."""
        return self.columns[name][np.searchsorted(self.cases, measure.cases)]

    @cached_property
    def places(self) -> Array:
        """Places of the tool at the signal [m], shape (k, 3)."""
        return np.column_stack([self.columns[name] for name in TOOL_PLACE])


def results_of(study: Study) -> Results:
    """Read the results of a study."""
    columns = _needed(study.setup)
    at = {name: k for k, name in enumerate(study.names)}
    pick, place = (itemgetter(*(at[name] for name in names)) for names in (columns, TOOL_PLACE))
    numbers, outcomes = array("d"), Counter[str]()
    failures: dict[tuple[str, str], Failure] = {}
    lost: list[list[float]] = []
    try:
        for cells in read_cells(study.path, study.names, study.done):
            outcome = cells[at["outcome"]]
            outcomes[outcome] += 1
            if outcome == "stopped":
                numbers.extend(float(cell or "nan") for cell in pick(cells))
                continue
            _count(failures, outcome, cells[at["reason"]], int(cells[0]))
            if all(place(cells)) and len(lost) < _PLACES:
                lost.append([float(cell) for cell in place(cells)])
    except ValueError as error:  # a cell that is no number
        raise unreadable(study.path, error) from error
    table = np.array(numbers).reshape(-1, len(columns))
    return Results(
        table[:, 0].astype(np.int64),
        {name: np.ascontiguousarray(table[:, k]) for k, name in enumerate(columns)},
        outcomes,
        tuple(sorted(failures.values(), key=lambda failure: -failure.count)),
        np.array(lost).reshape(-1, 3),
    )


def _needed(setup: Setup) -> list[str]:
    """Columns that a report needs, the number of the case first."""
    names = ["case", *(v.column for v in setup.variables if v.varies), "stopping_time_s"]
    names += ["tool_travel_m", *TOOL_PLACE, "ledger_error"]
    names += [CLEARANCE] if setup.obstacles else []
    for name in setup.brakes.joints:
        of = joint_columns(setup.robot, name)
        wanted = ("excursion", "beyond_limit", "impulse", "peak_gear_torque")
        names += [of[attribute] for attribute in wanted]
    return names


def _count(failures: dict[tuple[str, str], Failure], outcome: str, reason: str, case: int) -> None:
    """Add a case to its sort of failures."""
    key = outcome, _NUMBER.sub("#", reason)
    if key not in failures and len(failures) >= _SORTS:
        key, reason = ("failed", _OTHER), _OTHER
    sort = failures.setdefault(key, Failure(outcome, reason))
    sort.count += 1
    sort.alike &= reason == sort.reason
    if len(sort.cases) < _EXAMPLES:
        sort.cases.append(case)


def joints_beyond(study: Study, results: Results) -> list[Beyond]:
    """Joints that get beyond their limits in a case that stopped."""
    joints = []
    for name, column in beyond_columns(study.setup).items():
        far = results.columns[column]
        if count := int(np.sum(far > LIMIT_PASSED)):
            worst = int(np.argmax(far))
            joints.append(Beyond(name, count, float(far[worst]), int(results.cases[worst])))
    return joints


# -- quantities -----------------------------------------------------------------------------------

Kind = Literal["time", "travel", "clearance", "angle", "impulse", "gear"]

VARIED = {
    "pose": "position",
    "speed": "speed",
    "delay": "later brake",
    "band": "band",
    "payload": "payload",
    "instant": "instant of the signal",
}
"""What the kinds of variables are called."""
_NAMES = {
    "time": "stopping time",
    "travel": "tool path",
    "clearance": "clearance",
    "impulse": "impulse at {}",
    "gear": "gear torque of {}",
}
_SUPERLATIVES = {"time": "longest", "travel": "longest", "clearance": "smallest", "gear": "highest"}


class Quantity(NamedTuple):
    """A number that every case has.

    Args:
        criterion: its name as a criterion of worst cases.
        joint: the joint that it belongs to, or empty.
        factor: from SI to that.
    """

    criterion: str
    kind: Kind
    joint: str
    column: str
    name: str
    unit: str
    factor: float

    @property
    def label(self) -> str:
        """Name and unit."""
        return f"{self.name} [{self.unit}]"

    @property
    def superlative(self) -> str:
        """What is said of the worst one."""
        return f"{_SUPERLATIVES.get(self.kind, 'largest')} {self.name}"

    def text(self, value: float) -> str:
        """A value [SI] with four digits and its unit."""
        return f"{self.bare(value)} {self.unit}"

    def bare(self, value: float) -> str:
        """A value [SI] with four digits in the unit shown."""
        shown = self.factor * value
        return number(shown, decimals([shown], most=3))


@dataclass(frozen=True, eq=False)
class QuantityDistribution:
    """A quantity over the cases that stopped and are held: values [SI] and their cases, (k,)."""

    quantity: Quantity
    values: Array
    cases: NDArray[np.int64]
    spread: Distribution

    @property
    def shown(self) -> Array:
        """Values in the unit shown."""
        return self.quantity.factor * self.values


Measures = Mapping[str, QuantityDistribution]
"""Distributions of quantities by criterion."""


def quantities(setup: Setup) -> list[Quantity]:
    """All of them, in the order of `criteria`."""
    entries = []
    for criterion, column in criteria(setup).items():
        kind, _, joint = criterion.partition(":")
        unit, factor = shown_unit(column_unit(column))
        travel = "angle of {}" if unit == "deg" else "travel of {}"
        name = _NAMES.get(kind, travel).format(printable(joint))
        entries.append(Quantity(criterion, cast(Kind, kind), joint, column, name, unit, factor))
    return entries


def quantity_distributions(results: Results, setup: Setup) -> Measures:
    """Quantities of the cases that stopped, by criterion, but those that are zero everywhere."""
    measures = {}
    for quantity in quantities(setup):
        values = np.abs(results.columns[quantity.column])
        finite = np.isfinite(values)
        values, cases = values[finite], results.cases[finite]
        if len(values) and (quantity.column == CLEARANCE or values.max() > 0.0):
            spread = distribution_of(quantity.column, values, cases)
            measures[quantity.criterion] = QuantityDistribution(quantity, values, cases, spread)
    return measures


def capital(text: str) -> str:
    """A name as a heading."""
    return text[:1].upper() + text[1:]
