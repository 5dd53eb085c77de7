"""Parameters of brakes that were fitted: values, their errors and intervals, and correlations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import scipy

from ...boundary.marks import Array
from ..brakes.uncertainty import Correlation

SIGMAS = 1.959964
"""Standard deviations of the normal distribution to either end of a 95 % interval."""


@dataclass(frozen=True)
class Fitted:
    """A fitted parameter.

    Args:
        value: its value, in the unit of the brakes file.
        error: standard error, by how much the fit misses the table and by its rounding; infinite
            where the data does not identify it, nan where neither is known: where there are no more
            numbers than are needed to fit, and their rounding is not given.
        spare: how many numbers of the axis are more than are needed to fit.
        scattered: whether the table scatters by more than its rounding.
    """

    joint: str
    parameter: str
    value: float
    error: float
    unit: str = ""
    spare: int = 0
    scattered: bool = True

    @property
    def identified(self) -> bool:
        """Whether the data tells the value."""
        return not np.isinf(self.error)

    @property
    def half_width(self) -> float:
        """Half of the 95 % interval: by Student's distribution where the scatter is estimated."""
        if self.scattered and self.spare:
            return float(scipy.special.stdtrit(self.spare, 0.975)) * self.error
        return SIGMAS * self.error

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval; no parameter is below zero."""
        return max(self.value - self.half_width, 0.0), self.value + self.half_width


def correlations(fitted: Sequence[Fitted], covariance: Array) -> list[Correlation]:
    """How errors of fitted parameters go together, of those that have any."""
    known = [k for k, f in enumerate(fitted) if np.isfinite(f.error) and f.error > 0.0]
    names = [f"{f.parameter}:{f.joint}" for f in fitted]
    sizes = np.sqrt(np.diag(covariance))
    return [
        Correlation((names[i], names[k]), six_digits(covariance[i, k] / sizes[i] / sizes[k]))
        for i, k in combinations(known, 2)
    ]


def six_digits(value: float) -> float:
    """A number as it is reported: more digits would pretend to be known."""
    return float(f"{value:.6g}")
