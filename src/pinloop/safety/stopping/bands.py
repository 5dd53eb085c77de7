"""Finding between what a stop is likely to be, as its brake data are uncertain.

Let ``t`` be deviations of the uncertain numbers in their standard deviations, with correlations R,
and ``g`` the derivatives of an outcome by them. To first order the outcome has the variance
``g' R g``, to which number i gives ``g_i (R g)_i``; and of all deviations as likely as z standard
deviations, it is largest at ``t = z R g / sqrt(g' R g)`` and smallest opposite to that. Only these
two places come from the derivatives: stops are made there, as guesses may be off by factors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import scipy.special

from ...boundary.arguments import public
from ...boundary.marks import Array
from ...errors import BadValue, PinloopError
from ..brakes.uncertainty import ParameterDistribution
from .differentiation import measure_outcome
from .intervals import Interval, StopBands
from .result import StopResult
from .uncertain_brakes import UncertainBrakes

_USUAL = {
    "dynamic_torque": -1.0, "brake_torque": -1.0, "delay": 0.2, "rise": 0.1, "rotor_inertia": 0.3,
    "deceleration": -1.0, "ramp_time": 1.0, "time_constant": 1.0,
}  # fmt: skip
"""Derivatives of logarithms, taken for those that a stop does not have: weak, late, heavy is
longer."""
_SHORT = 1e-3
"""Smaller outcomes, in SI units, have no interval."""
_ALIKE = 0.98
"""Cosine of directions from which on the stops at the ends of one serve for the other: an interval
becomes narrower by as much at most."""


def band_stop(
    result: StopResult, of: Iterable[str] | None = None, level: float = 0.95
) -> StopBands:
    """Intervals of outcomes of a stop; see `StopResult.bands`."""
    if not 0.0 < level < 1.0:
        raise BadValue(f"the level of intervals is {level}; it is a part of all stops, 0 to 1")
    name = result.robot.name
    if result.outcome != "stopped":
        return StopBands((), level, name)
    names = default_outputs(result) if of is None else [of] if isinstance(of, str) else [*of]
    return StopBands(
        find_intervals(result, [_outcome(result, x) for x in names], level), level, name
    )


class Outcome(NamedTuple):
    """What may come out of a stop.

    Args:
        name: its name.
        unit: its unit.
        measure: measures it on a stop.
        outputs: outputs of `StopResult.sensitivity` whose weighted sum changes about like it.
    """

    name: str
    unit: str
    measure: Callable[[StopResult], float]
    outputs: Mapping[str, float]


def find_intervals(
    result: StopResult, outcomes: Sequence[Outcome], level: float = 0.95
) -> tuple[Interval, ...]:
    """Intervals of what came out of a stop that ended at rest and held, of those that have one."""
    uncertain = UncertainBrakes(result)
    if not uncertain.distributions:
        return ()
    bands = _Bands(uncertain, outcomes, math.sqrt(2.0) * float(scipy.special.erfinv(level)))
    return tuple(x for k in range(len(outcomes)) if (x := bands.interval(k)))


def _outcome(result: StopResult, name: str) -> Outcome:
    """An output of `StopResult.sensitivity`."""
    return Outcome(name, measure_outcome(result, name)[1], partial(_measured, name), {name: 1.0})


def _measured(name: str, stop: StopResult) -> float:
    return measure_outcome(stop, name)[0]


def default_outputs(result: StopResult) -> list[str]:
    """Stopping time, path of the tool, and times and angles of joints that move."""
    moving = (name for name, joint in result.joints.items() if abs(joint.angle) >= _SHORT)
    return ["stopping_time", "path", *(f"{x}:{name}" for name in moving for x in ("time", "angle"))]


@public
def sample_stop(result: StopResult, of: Sequence[str], count: int = 100, *, seed: int = 0) -> Array:
    """Outcomes of a stop with brake data drawn from their distributions: a check of its intervals.

    Args:
        result: the stop.
        of: names of outcomes, as of `StopResult.sensitivity`.
        count: how many stops are made.
        seed: of the random numbers.

    Returns:
        Shape (count, len(of)); infinite where the robot does not come to rest and hold.
    """
    uncertain = UncertainBrakes(result)
    draws = np.random.default_rng(seed).standard_normal((count, len(uncertain.distributions)))
    draws = draws @ _root(uncertain.correlations).T
    rows = np.full((count, len(of)), np.inf)
    for row, draw in zip(rows, draws, strict=True):
        pairs = zip(uncertain.distributions, draw.tolist(), strict=True)
        stop = uncertain.stop_at(np.array([each.deviations_of(x) for each, x in pairs]))
        if stop is not None:
            row[:] = [measure_outcome(stop, name)[0] for name in of]
    return rows


def _root(matrix: Array) -> Array:
    """A factor L of ``L L'``, also of a singular matrix."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


@dataclass(frozen=True, eq=False)
class _Bands:
    """The intervals of some outcomes, ``z`` standard deviations to either side."""

    uncertain: UncertainBrakes
    outcomes: Sequence[Outcome]
    z: float
    ends: list[tuple[Array, list[StopResult | None]]] = field(default_factory=list)

    @cached_property
    def _slopes(self) -> Array:
        """Derivatives of the outcomes by deviations, shape (outcomes, k)."""
        weights = [[x.outputs.get(name, 0.0) for name in self._outputs] for x in self.outcomes]
        return np.asarray(np.array(weights) @ self._output_slopes)

    @cached_property
    def _outputs(self) -> list[str]:
        return list(dict.fromkeys(name for outcome in self.outcomes for name in outcome.outputs))

    @cached_property
    def _output_slopes(self) -> Array:
        """The same of outputs of `StopResult.sensitivity`."""
        uncertain, stop = self.uncertain, self.uncertain.result
        inputs = [uncertain.inputs(each) for each in uncertain.distributions]
        rates = np.array([each.rate for each in uncertain.distributions])
        every = list(dict.fromkeys(name for some in inputs for name in some))
        try:
            found = stop.sensitivity(self._outputs, every)
        except PinloopError:
            return self._usual
        columns = []
        for each, names in zip(uncertain.distributions, inputs, strict=True):
            at = [found.inputs.index(name) for name in names]
            by = found.input_values[at] if each.relative else np.ones(len(at))
            columns.append(found.matrix[:, at] @ by)
        slopes = np.stack(columns, axis=1) * rates
        return np.where(np.isfinite(slopes), slopes, self._usual)

    @cached_property
    def _usual(self) -> Array:
        """The same of stops as they usually are."""
        each = self.uncertain.distributions
        rates = [
            _USUAL.get(x.parameter, 0.0) * x.rate / (x.nominal or 1.0) / self._alike(x)
            for x in each
        ]
        values = [measure_outcome(self.uncertain.result, name)[0] for name in self._outputs]
        return np.outer(values, rates)

    def _alike(self, distribution: ParameterDistribution) -> int:
        """How many joints have such a distribution: each makes its part of what all would."""
        of = distribution.parameter, distribution.source
        every = self.uncertain.distributions
        return sum((other.parameter, other.source) == of for other in every)

    def interval(self, k: int) -> Interval | None:
        """The interval of an outcome; None if it has none."""
        uncertain, R = self.uncertain, self.uncertain.correlations
        name, unit, measure, _ = self.outcomes[k]
        value = measure(uncertain.result)
        slopes = self._slopes[k]
        parts = slopes * (R @ slopes)
        if abs(value) < _SHORT or not parts.sum() > 0.0:
            return None
        ends = [self._at_end(measure, stop, value) for stop in self._ends(slopes)]
        order = np.argsort(-np.abs(parts), kind="stable").tolist()
        shares = tuple(
            (str(uncertain.distributions[i]), float(parts[i] / parts.sum())) for i in order
        )
        return Interval(name, unit, value, min(*ends, value), max(*ends, value), shares)

    @staticmethod
    def _at_end(
        measure: Callable[[StopResult], float], stop: StopResult | None, value: float
    ) -> float:
        """The outcome at an end, where the robot may not be held, or may reach a person."""
        try:
            return math.copysign(math.inf, value) if stop is None else measure(stop)
        except PinloopError:
            return math.copysign(math.inf, value)

    def _ends(self, slopes: Array) -> list[StopResult | None]:
        """The stops at both ends of the interval of an outcome, or of one that is alike."""
        latent = _root(self.uncertain.correlations).T @ slopes
        latent /= np.linalg.norm(latent)
        for other, ends in self.ends:
            if abs(other @ latent) >= _ALIKE:
                return ends
        place = self.z * _root(self.uncertain.correlations) @ latent
        ends = [self.uncertain.stop_at(sign * place) for sign in (-1.0, 1.0)]
        self.ends.append((latent, ends))
        return ends
