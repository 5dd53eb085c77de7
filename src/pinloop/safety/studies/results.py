"""What came out of the cases of a study: columns of numbers, their quantities and distributions.

The file is read once, row by row. Kept are eight bytes per number of a case that stopped; of all
others how many there are of each sort.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import Literal, NamedTuple, cast

import numpy as np

from ...boundary.marks import Array, Integers
from ...errors import printable
from ...tables.number_format import decimals, number
from ...tolerances import LIMIT_PASSED
from ...units import column_unit, shown_unit
from .cases import CLEARANCE, TOOL_PLACE, Setup, joint_columns
from .criteria import criteria
from .journal import read_cells, unreadable
from .order_statistics import Sampled, describe_samples
from .space import drawn
from .study import Study

_EXAMPLES = 5
"""Numbers of cases that are given of each sort of failure."""
_SORTS = 40
"""Sorts of failures that are kept apart; whatever comes after them is one more."""
_PLACES = 400
"""Places of cases that did not stop which are kept for maps."""
_BEYOND = "beyond_limit"
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


@dataclass(frozen=True)
class Beyond:
    """A joint that gets beyond a limit of its position, where no end stop holds it.

    In how many cases, how far at most [rad, m], and in which case that was.
    """

    joint: str
    count: int
    worst: float
    case: int


@dataclass(frozen=True, eq=False)
class Results:
    """What came out of a study, column by column.

    Args:
        cases: numbers of the cases that stopped and are held, shape (k,).
        columns: numbers by column [SI], shape (k,).
        reasons: why cases failed and how many did, the most frequent first.
        failures: all cases that did not stop by sort, the most frequent first.
        beyond: joints that get beyond their limits in a case.
        lost: places of the tool at the signal of those that did not stop [m], shape (m, 3); the
            first ones, if there are many.
        drawn: whether the cases were drawn at random, so that they say something about others.
    """

    cases: Integers
    columns: Mapping[str, Array]
    outcomes: Mapping[str, int]
    reasons: Mapping[str, int]
    failures: tuple[Failure, ...]
    beyond: tuple[Beyond, ...]
    lost: Array
    drawn: bool = False

    @property
    def stopped(self) -> int:
        """Number of cases that ended with the robot at rest and held."""
        return len(self.cases)

    @property
    def not_stopped(self) -> int:
        """Number of all other cases."""
        return sum(self.outcomes.values()) - self.stopped

    def column_of(self, name: str, measure: QuantityDistribution) -> Array:
        """A column for the cases of which a quantity is known, shape (k,)."""
        return self.columns[name][np.searchsorted(self.cases, measure.cases)]

    @cached_property
    def places(self) -> Array:
        """Places of the tool at the signal [m], shape (k, 3)."""
        return np.column_stack([self.columns[name] for name in TOOL_PLACE])


def results_of(study: Study) -> Results:
    """Read the results of a study."""
    setup = study.setup
    columns = _needed(setup)
    at = {name: k for k, name in enumerate(study.names)}
    pick, place = (itemgetter(*(at[name] for name in names)) for names in (columns, TOOL_PLACE))
    limits = {name: at[joint_columns(setup.robot, name)[_BEYOND]] for name in setup.brakes.joints}
    numbers, outcomes, reasons = array("d"), Counter[str](), Counter[str]()
    failures: dict[tuple[str, str], Failure] = {}
    over: dict[str, list[tuple[float, int]]] = {name: [] for name in limits}
    lost: list[list[float]] = []
    try:
        for cells in read_cells(study.path, study.names, study.done):
            case, outcome, reason = int(cells[0]), cells[at["outcome"]], cells[at["reason"]]
            outcomes[outcome] += 1
            for name, k in limits.items():
                if (far := float(cells[k] or "nan")) > LIMIT_PASSED:
                    over[name].append((far, case))
            if outcome == "stopped":
                numbers.extend(float(cell or "nan") for cell in pick(cells))
                continue
            reasons.update([reason] if reason else [])
            _count(failures, outcome, reason, case)
            if all(place(cells)) and len(lost) < _PLACES:
                lost.append([float(cell) for cell in place(cells)])
    except ValueError as error:  # a cell that is no number
        raise unreadable(study.path, error) from error
    table = np.array(numbers).reshape(-1, len(columns))
    return Results(
        table[:, 0].astype(np.int64),
        {name: np.ascontiguousarray(table[:, k]) for k, name in enumerate(columns)},
        dict(outcomes),
        dict(reasons.most_common()),
        tuple(sorted(failures.values(), key=lambda failure: -failure.count)),
        tuple(Beyond(name, len(far), *max(far)) for name, far in over.items() if far),
        np.array(lost).reshape(-1, 3),
        drawn(study.sampling),
    )


def _needed(setup: Setup) -> list[str]:
    """Columns that a report needs, the number of the case first."""
    names = ["case", *(v.column for v in setup.variables if v.varies), "stopping_time_s"]
    names += ["tool_travel_m", *TOOL_PLACE, "ledger_error"]
    names += [CLEARANCE] if setup.obstacles else []
    for name in setup.brakes.joints:
        of = joint_columns(setup.robot, name)
        wanted = ("excursion", "impulse", "peak_gear_torque")
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


# -- quantities -----------------------------------------------------------------------------------

Kind = Literal[
    "time", "travel", "displacement", "clearance", "separation", "angle", "impulse", "gear"
]

_NAMES = {
    "time": "stopping time",
    "travel": "tool path",
    "displacement": "tool displacement",
    "clearance": "clearance",
    "separation": "separation distance",
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
    cases: Integers
    spread: Sampled

    @property
    def shown(self) -> Array:
        """Values in the unit shown."""
        return self.quantity.factor * self.values


def quantities(setup: Setup) -> list[Quantity]:
    """All that rows measure, in the order of `criteria`."""
    return [quantity_of(*each) for each in criteria(setup).items()]


def quantity_of(criterion: str, column: str) -> Quantity:
    """The quantity of a criterion and the column that measures it."""
    kind, _, of = criterion.partition(":")
    unit, factor = shown_unit(column_unit(column))
    travel = "angle of {}" if unit == "deg" else "travel of {}"
    name = _NAMES.get(kind, travel).format(printable(of))
    if kind == "displacement" and of:
        name += f" along {of}"
    return Quantity(criterion, cast(Kind, kind), of, column, name, unit, factor)


def quantity_distributions(results: Results, setup: Setup) -> Iterator[QuantityDistribution]:
    """Quantities of the cases that stopped, in the order of `criteria`."""
    for quantity in quantities(setup):
        values = np.abs(results.columns[quantity.column])
        finite = np.isfinite(values)
        values, cases = values[finite], results.cases[finite]
        if len(values):
            sign = -1.0 if quantity.column == CLEARANCE else 1.0
            spread = describe_samples(values, cases, sign, results.drawn)
            yield QuantityDistribution(quantity, values, cases, spread)
