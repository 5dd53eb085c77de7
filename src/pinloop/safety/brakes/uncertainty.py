"""What numbers of brakes may be beside what they are: distributions, and how errors go together.

Knows no robot and no stop: which numbers of a stop have one is in `stopping.uncertain_brakes`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import scipy.special

from ...boundary.arguments import checked, public
from ...boundary.marks import Array, Name, Range
from ...errors import BadValue, UnknownName, printable
from ...tolerances import SAME

_END = math.sqrt(3.0)
"""Ends of an even distribution, in its standard deviations."""


@public
@dataclass(frozen=True)
class ParameterDistribution:
    """What a number of the brakes, or several by the same part, may be.

    Args:
        parameter: its name in the brakes file; "brake_torque" for both torques of a brake.
        joints: whose it is; empty for a time of the chain.
        kind: of the number, or of its logarithm ("lognormal"), or even between two ends.
        nominal: the number with which the stop was computed; 1 for a factor of numbers.
        center: mean, of a lognormal distribution median.
        spread: standard deviation, of a lognormal distribution that of the logarithm.
        source: why it is not known: "guess", "spread", "tolerance" or "wear".
        relative: whether it is a factor of the numbers of its joints.
    """

    parameter: str
    joints: tuple[str, ...]
    kind: Literal["normal", "lognormal", "uniform"]
    nominal: float
    center: float
    spread: float
    source: str
    relative: bool = True

    def __str__(self) -> str:
        of = f" of {printable(self.joints[0])}" if len(self.joints) == 1 else ""
        return f"{self.parameter}{of} ({self.source})"

    @property
    def rate(self) -> float:
        """By how much it changes with one standard deviation, near the center."""
        return self.spread * (self.center if self.kind == "lognormal" else 1.0)

    def value_at(self, deviations: float) -> float:
        """The number so many standard deviations from its center; never below zero."""
        if self.kind == "lognormal":
            return self.center * math.exp(self.spread * deviations)
        if self.kind == "uniform":
            deviations = min(max(deviations, -_END), _END)
        return max(self.center + self.spread * deviations, 0.0)

    def deviations_of(self, normal: float) -> float:
        """Deviations of a draw, from one of the standard normal distribution."""
        if self.kind != "uniform":
            return normal
        return _END * (2.0 * float(scipy.special.ndtr(normal)) - 1.0)


@public
@checked
@dataclass(frozen=True)
class Correlation:
    """How the errors of two numbers whose spread is given go together.

    Args:
        between: the numbers, such as ``("dynamic_torque:joint_1", "delay:joint_1")``; those of the
            chain without a joint.
        coefficient: below zero one is too small where the other is too large.
    """

    between: tuple[Name, Name]
    coefficient: Annotated[float, Range(least=-1.0, most=1.0)]


def correlation_matrix(names: Sequence[str], pairs: Iterable[Correlation]) -> Array:
    """Correlations of numbers, shape (k, k).

    Raises:
        UnknownName: a correlation is of a number that is not among these.
        BadValue: they contradict each other.
    """
    matrix = np.eye(len(names))
    for pair in pairs:
        for name in pair.between:
            if name not in names:
                raise UnknownName("number with a spread", name, names)
        i, j = (names.index(name) for name in pair.between)
        if i == j:
            raise BadValue(f"a correlation is of {pair.between[0]} with itself; take it out")
        matrix[i, j] = matrix[j, i] = pair.coefficient
    if np.linalg.eigvalsh(matrix).min(initial=1.0) < -SAME:
        raise BadValue(
            "the correlations of the brakes contradict each other: no numbers vary like that; "
            "correct their coefficients"
        )
    return matrix
