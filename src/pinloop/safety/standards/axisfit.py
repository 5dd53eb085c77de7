"""The fit of one axis: bounded least squares in natural units, and what the data cannot tell.

An unknown is a parameter over its natural size: the size at which it alone would make a stop like
those of the table. So a sensitivity of 1 means that the parameter counts, and one of 0.01 that the
data would hardly change without it, whatever its unit. Knows one joint and its rows; that axes
influence each other is for `fit` to see to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from ...errors import BadValue, StopFailed
from ...model.mechanism import Mechanism
from ...tolerances import FIT_COST, FIT_SLOPE, FIT_STEP, LEAST_TORQUE
from ..brakes.brakes import Brakes, Source
from ..stopping import StopResult
from .published import Measured

__all__ = ["FITTABLE", "AxisFit", "Fitted", "Solution"]

Array = NDArray[np.float64]

FITTABLE = ("dynamic_torque", "short_circuit", "viscous", "coulomb", "delay", "rise")
"""Parameters of the brakes file that can be fitted."""

_BLIND = 1e-2
"""Change of the data, as a part of it, for a change of a natural size, that counts as none."""
_PART = 0.02
"""Part that a parameter has in a combination, from which on it takes part in it."""
_STEP = 1e-4
"""Step of the differences, in natural units."""
_MISFIT = 0.02
"""Misfit that is worth a warning: more than the rounding of published numbers."""
_TORQUES = ("dynamic_torque", "coulomb")
_SHARES = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Torques to start from, in natural units, beside that of the brakes, which may be nothing."""
_PATIENCE = 10.0
"""How much longer than measured a stop may take in the search."""


@dataclass(frozen=True)
class Fitted:
    """A fitted parameter.

    Args:
        joint: name of the joint.
        parameter: name of the parameter.
        value: its value, in the unit of the brakes file.
        error: standard error, by how much the fit misses the table; infinite where the data does
            not identify it, nan where there are no more numbers than are needed to fit.
        unit: unit of both.
    """

    joint: str
    parameter: str
    value: float
    error: float
    unit: str = ""

    @property
    def identified(self) -> bool:
        """Whether the data tells the value."""
        return not np.isinf(self.error)


@dataclass(frozen=True)
class Solution:
    """The fit of one axis.

    Args:
        brakes: the brakes with its parameters.
        parameters: the parameters.
        errors: logarithms of computed over measured numbers, row by row.
        notes: what the data does not tell.
    """

    brakes: Brakes
    parameters: tuple[Fitted, ...]
    errors: Array
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class AxisFit:
    """The fit of the parameters ``names`` of the brake of ``joint`` to ``rows``.

    Args:
        robot: the mechanism.
        brakes: everything that is not fitted, and where the search starts.
        joint: the axis.
        rows: its stops.
        names: parameters of the brakes file.
        arguments: all else that `stop` takes.
        source: where the rows come from.
    """

    robot: Mechanism
    brakes: Brakes
    joint: str
    rows: Sequence[Measured]
    names: tuple[str, ...]
    arguments: Mapping[str, Any]
    source: str = ""

    def solve(self, *, anew: bool = True) -> Solution:
        """Fit.

        Args:
            anew: try several torques to start from, not only those of the brakes.
        """
        start = self._start(anew=anew)
        # "dogbox" puts what is at its bound exactly there.
        done = scipy.optimize.least_squares(
            self.errors,
            start,
            self.sensitivity,
            bounds=(0.0, np.inf),
            method="dogbox",
            ftol=FIT_COST,
            xtol=FIT_STEP,
            gtol=FIT_SLOPE,
            max_nfev=40,
        )
        return self._judged(np.asarray(done.x), np.asarray(done.fun), np.asarray(done.jac))

    # -- the problem --------------------------------------------------------------------------

    def errors(self, x: Array) -> Array:
        """Logarithms of computed over measured numbers; infinite if the axis does not stop."""
        return self.errors_with(self._with(x * self.scale))

    def errors_with(self, brakes: Brakes) -> Array:
        """The same, with any brakes."""
        errors: list[Array] = []
        for row in self.rows:
            try:
                errors.append(_errors(row, self._stop(row, brakes)))
            except StopFailed:
                errors.append(np.array([np.inf]))
        together = np.concatenate(errors)
        # A stop that fails is no number of the table; the size of what is returned must stay.
        return together if np.all(np.isfinite(together)) else np.full(self.count, np.inf)

    @property
    def count(self) -> int:
        """How many numbers the rows have."""
        return sum(row.numbers for row in self.rows)

    def sensitivity(self, x: Array) -> Array:
        """Derivatives of the errors, shape (count, len(names)), by differences to one side."""
        here, columns = self.errors(x), []
        for k in range(len(x)):
            step = np.zeros_like(x)
            step[k] = _STEP
            there = self.errors(x + step)
            if not np.all(np.isfinite(there)):  # more of it, a delay, would not stop the axis
                step[k] = -min(_STEP, x[k])
                there = self.errors(x + step) if step[k] else there
            if not np.all(np.isfinite(there)):
                raise BadValue(
                    f"the fit of {self.names[k]} of joint '{self.joint}' has come to the edge of "
                    "what brings it to rest in every stop of the table: is the table that of this "
                    "robot and payload? Else leave that parameter out"
                )
            columns.append((there - here) / step[k])
        return np.stack(columns, axis=1)

    @cached_property
    def scale(self) -> Array:
        """Natural sizes of the parameters, in the units of the brakes file.

        Kinetic energy E, speed v and time t of a stop make a torque ``2 E / (v t)``: the one that
        alone would take this time.
        """
        sizes = np.array([self._sizes(row) for row in self.rows])
        return np.asarray(np.exp(np.mean(np.log(sizes), axis=0)))

    def _sizes(self, row: Measured) -> list[float]:
        speed, time = abs(row.speed), _time(row)
        brake = self.brakes.joints[self.joint]
        try:
            result = self._stop(row, self.brakes)
        except StopFailed as error:
            result = error.result
        torque = max(2.0 * result.ledger.kinetic_before / (speed * time), LEAST_TORQUE)
        ratio = brake.gear_ratio
        sizes = {
            "dynamic_torque": torque / (ratio if brake.side == "motor" else 1.0),
            "coulomb": torque,
            "viscous": torque / speed,
            "short_circuit": torque / speed / ratio**2,
            "delay": time,
            "rise": time,
        }
        return [sizes[name] for name in self.names]

    def _stop(self, row: Measured, brakes: Brakes) -> StopResult:
        """A stop, not followed for much longer than it should take."""
        until = min(self.arguments.get("until", np.inf), _PATIENCE * _time(row))
        return row.stop(self.robot, brakes, **{**self.arguments, "until": until})

    def _with(self, values: Array, identified: Mapping[str, bool] | None = None) -> Brakes:
        """The brakes with other parameters of this axis; static torque in proportion."""
        brake = self.brakes.joints[self.joint]
        changes: dict[str, Any] = dict(zip(self.names, map(float, values), strict=True))
        of = f"fitted to {self.source or 'a table of stops'}"
        sources: dict[str, Source] = {}
        notes = {}
        for name in self.names:
            known = identified is None or identified[name]
            sources[name] = "measured" if known else "assumed"
            notes[name] = of if known else f"{of}, which does not identify it"
        torque = changes.get("dynamic_torque")
        if torque is not None and brake.static_torque is not None:
            ratio = brake.static_torque / brake.dynamic_torque if brake.dynamic_torque else 1.0
            changes["static_torque"] = ratio * torque
            sources["static_torque"] = "assumed"
            notes["static_torque"] = f"{ratio:.4g} times dynamic_torque, as before the fit"
        if brake.breakaway is not None and changes.get("coulomb", 0.0) > brake.breakaway:
            changes["breakaway"] = changes["coulomb"]
            sources["breakaway"] = "assumed"
            notes["breakaway"] = "as coulomb, which the fit has raised above it"
        fitted = replace(
            brake, **changes, sources={**brake.sources, **sources}, notes={**brake.notes, **notes}
        )
        return replace(self.brakes, joints={**self.brakes.joints, self.joint: fitted})

    # -- start and end ------------------------------------------------------------------------

    def _start(self, *, anew: bool) -> Array:
        """The best of some places to start from, in natural units."""
        brake = self.brakes.joints[self.joint]
        own = np.array([float(getattr(brake, name)) for name in self.names]) / self.scale
        places = [own]
        torques = [k for k, name in enumerate(self.names) if name in _TORQUES]
        if anew and torques:
            at = torques[0]
            for share in _SHARES:
                place = own.copy()
                place[at] = share
                places.append(place)
        misses = [float(np.sum(self.errors(place) ** 2)) for place in places]
        best = int(np.argmin(misses))
        if not np.isfinite(misses[best]):
            raise BadValue(
                f"the brakes from which the fit starts do not bring joint '{self.joint}' to rest "
                "in every stop of the table; start from stronger ones, or fit dynamic_torque too"
            )
        return places[best]

    def _judged(self, x: Array, errors: Array, sensitivity: Array) -> Solution:
        """Standard errors, and what the data does not tell.

        With the singular values s and directions V of the sensitivity per number, directions whose
        s is next to nothing are blind; in the others the covariance is ``spread^2 V s^-2 V'``.
        """
        n, values = len(self.names), np.array([_rounded(value) for value in x * self.scale])
        _, sizes, V = np.linalg.svd(sensitivity, full_matrices=True)
        sizes = np.concatenate([sizes, np.zeros(n - len(sizes))])
        visible = sizes / np.sqrt(self.count)
        blind = visible < _BLIND * max(1.0, float(visible[0]))
        spare = self.count - int(np.sum(~blind))
        spread = float(np.sqrt(np.sum(errors**2) / spare)) if spare else np.nan
        fitted = []
        for k, name in enumerate(self.names):
            error = spread * float(np.linalg.norm(V[~blind, k] / sizes[~blind])) * self.scale[k]
            # What takes part in a combination that the data does not see is unknown.
            unknown = bool(np.any(np.abs(V[blind, k]) > _PART))
            fitted.append(
                Fitted(
                    self.joint,
                    name,
                    float(values[k]),
                    np.inf if unknown else float(error),
                    self._unit(name),
                )
            )
        notes = [self._blind_note(direction) for direction in V[blind]]
        notes += [self._zero_note(f) for f in fitted if f.value == 0.0 and f.identified]
        miss = float(np.sqrt(np.mean(errors**2)))
        if miss > _MISFIT:
            notes.append(
                f"joint '{self.joint}': the fit misses the table by {100 * miss:.2g} % (root mean "
                f"square); {', '.join(self.names)} alone cannot explain it"
            )
        brakes = self._with(values, {f.parameter: f.identified for f in fitted})
        return Solution(brakes, tuple(fitted), errors, tuple(notes))

    def _unit(self, name: str) -> str:
        rows = self.brakes.assumptions(self.robot)
        return next(row.unit for row in rows if (row.joint, row.parameter) == (self.joint, name))

    def _blind_note(self, direction: Array) -> str:
        names = [n for n, c in zip(self.names, direction, strict=True) if abs(c) > _PART]
        stops = "1 stop" if len(self.rows) == 1 else f"{len(self.rows)} stops"
        numbers = "1 number" if self.count == 1 else f"{self.count} numbers"
        remedy = "do not fit it" if len(names) == 1 else "fix one of them"
        return (
            f"joint '{self.joint}': {stops} with {numbers} do not identify {' and '.join(names)}: "
            f"other values fit as well; {remedy}, or measure at other speeds, poses or payloads"
        )

    def _zero_note(self, parameter: Fitted) -> str:
        return (
            f"joint '{self.joint}': {parameter.parameter} is fitted to zero, its lower bound: the "
            "table shows none of it, or less than none"
        )


def _rounded(value: float) -> float:
    """Six digits: more would pretend to be known."""
    return float(f"{value:.6g}")


def _time(row: Measured) -> float:
    """Time that a stop takes, about, if the row does not tell it."""
    if row.time is not None:
        return row.time
    assert row.angle is not None, "a row without numbers is not fitted"
    return 2.0 * row.angle / abs(row.speed)


def _errors(row: Measured, result: StopResult) -> Array:
    """Logarithms of computed over measured numbers of a row; infinite if the axis moves on."""
    joint = result.joints[row.joint]
    pairs = [(joint.time, row.time), (abs(joint.angle), row.angle)]
    ratios = [computed / given for computed, given in pairs if given is not None]
    if joint.state == "moving" or min(ratios, default=1.0) <= 0.0:
        return np.full(len(ratios), np.inf)
    return np.log(ratios)
