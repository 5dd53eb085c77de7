"""What came out of the cases of a study, with names and units as people read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...errors import printable
from ...safety.studies.cases import CLEARANCE, Setup
from ...safety.studies.summary import Distribution, distribution_of
from ...safety.studies.worst import criteria
from ...tables.number_format import decimals, number
from ...units import column_unit, shown_unit
from .results import Results

__all__ = ["VARIED", "Quantity", "Told", "quantities", "told"]

Array = NDArray[np.float64]
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


@dataclass(frozen=True)
class Quantity:
    """A number that every case has.

    Args:
        criterion: its name as a criterion of worst cases.
        kind: what it is.
        joint: the joint that it belongs to, or empty.
        column: its column.
        name: what it is called.
        unit: in which it is shown.
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
        word = {"time": "longest", "travel": "longest", "clearance": "smallest", "impulse":
                "largest", "gear": "highest", "angle": "largest"}[self.kind]  # fmt: skip
        return f"{word} {self.name}"

    def text(self, value: float) -> str:
        """A value [SI] with four digits and its unit."""
        return f"{self.bare(value)} {self.unit}"

    def bare(self, value: float) -> str:
        """A value [SI] with four digits in the unit shown."""
        shown = self.factor * value
        return number(shown, decimals([shown], most=3))


@dataclass(frozen=True, eq=False)
class Told:
    """A quantity over the cases that stopped and are held.

    Args:
        quantity: what it is.
        values: per case [SI], shape (k,).
        cases: the number of each case, shape (k,).
        spread: how it is distributed.
    """

    quantity: Quantity
    values: Array
    cases: NDArray[np.int64]
    spread: Distribution

    @property
    def shown(self) -> Array:
        """Values in the unit shown."""
        return self.quantity.factor * self.values


def quantities(setup: Setup) -> list[Quantity]:
    """All of them, in the order of `worst.criteria`.

    Args:
        setup: what all cases have in common.
    """
    found = []
    for criterion, column in criteria(setup).items():
        kind, _, joint = criterion.partition(":")
        unit, factor = shown_unit(column_unit(column))
        way = "angle of {}" if unit == "deg" else "travel of {}"
        name = _NAMES.get(kind, way).format(printable(joint))
        found.append(Quantity(criterion, kind, joint, column, name, unit, factor))  # type: ignore[arg-type]
    return found


def told(results: Results, setup: Setup) -> Mapping[str, Told]:
    """Quantities of the cases that stopped, by criterion; those that are zero everywhere left out.

    Args:
        results: what came out.
        setup: what all cases have in common.
    """
    found = {}
    for one in quantities(setup):
        values = np.abs(results.columns[one.column])
        finite = np.isfinite(values)
        values, cases = values[finite], results.cases[finite]
        if len(values) and (one.column == CLEARANCE or values.max() > 0.0):
            spread = distribution_of(one.column, values, cases)
            found[one.criterion] = Told(one, values, cases, spread)
    return found
