"""Brake parameters of one axis from its rows of a table: bounded least squares in natural units.

An unknown is a parameter over its natural size: the size at which it alone would make a stop like
those of the table. So a sensitivity of 1 means that the parameter counts, and one of 0.01 that the
data would hardly change without it.

Stops are dear, and each tells its own derivatives: a step is the least squares of a model. Only
where a step ends are stops made, none twice.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy

from ...boundary.marks import Array, Mask
from ...errors import BadValue, PinloopError, StopFailed
from ...model.mechanism import Mechanism
from ...tolerances import FIT_DIGITS, LEAST_TORQUE, SAME
from ..brakes.brakes import Brakes
from ..brakes.joint_brake import JOINT_PARAMETERS, Source
from ..stopping import StopResult
from .fit_step import OF_LAW, TORQUES, model_step
from .fitted_values import SIGMAS, Fitted, correlations, six_digits
from .measured import Measured

FITTABLE = ("dynamic_torque", "short_circuit", "viscous", "coulomb", "delay", "rise", *OF_LAW)
"""Parameters of the brakes file that can be fitted."""

_BLIND = 1e-2
"""Change of the data, as a part of it, for a change of a natural size, that counts as none."""
_PART = 0.02
"""Part that a parameter has in a combination, from which on it takes part in it."""
_STEP = 1e-4
"""Step of the differences, in natural units."""
_STEPS, _NARROWEST = 40, 1e-3
"""Steps of the search at most, and part of its widest at which it gives up."""
_MISFIT = 0.02
"""Misfit that is worth a warning: more than the rounding of published numbers."""
_SHARES = (1.0, 2.0, 4.0, 8.0, 0.5)
"""Torques to start from, in natural units, beside that of the brakes, which may be nothing."""
SAME_STOP = 1e-4
"""Change of a computed number, as a part of it, that counts as none."""
_ROUNDS, _SETTLED = 5, 0.01
"""How often the scatter of a table is found, at most, and change of weights that ends that."""
_PATIENCE = 10.0
"""How much longer than measured a stop may take in the search."""


class Solution(NamedTuple):
    """The fit of one axis; ``errors`` are logarithms of computed over measured numbers."""

    brakes: Brakes
    parameters: tuple[Fitted, ...]
    errors: Array
    notes: tuple[str, ...]


class _Place(NamedTuple):
    """Where a search has come to: parameters in natural units, errors, and their derivatives."""

    x: Array
    errors: Array
    slopes: Array


@dataclass(frozen=True, eq=False)
class AxisFit:
    """The fit of some parameters of the brake of a joint.

    ``brakes``: where the search starts; ``known``: the stops that have been made.
    """

    robot: Mechanism
    brakes: Brakes
    joint: str
    rows: Sequence[Measured]
    names: tuple[str, ...]
    arguments: Mapping[str, Any]
    source: str = ""
    known: dict[Hashable, StopResult] = field(default_factory=dict, repr=False)

    def solve(self, *, anew: bool = True) -> Solution:
        """Fit; from several torques if anew, not only from those of the brakes.

        Errors count by their standard deviations. These are known once the scatter of the table is,
        which follows from the errors of a fit: two or three rounds settle it.
        """
        x = self.start(anew=anew)
        place = _Place(x, self.errors(x), self.sensitivity(x))
        if anew:
            self._require_seen(place.slopes)
        spread = self.deviations(1.0 / FIT_DIGITS)  # as if there were no rounding
        for _ in range(_ROUNDS):
            place = self._descend(place, spread.min() / spread)
            scatter = self.scatter(place.errors, self._seen(place.slopes))
            settled = spread / spread.min()
            spread = self.deviations(FIT_DIGITS if np.isnan(scatter) else scatter)
            if np.isnan(scatter) or np.allclose(spread / spread.min(), settled, rtol=_SETTLED):
                break
        return self._judged(place, scatter)

    def deviations(self, scatter: float) -> Array:
        """Standard deviations of errors: of the scatter, by weights of rows, and of rounding."""
        own = [np.full(row.numbers, scatter / np.sqrt(row.weight)) for row in self.rows]
        rounded = np.concatenate([row.rounded for row in self.rows])
        return np.asarray(np.maximum(np.hypot(np.concatenate(own), rounded), FIT_DIGITS))

    def scatter(self, errors: Array, seen: int) -> float:
        """Standard deviation of errors beside rounding: that with which they are as expected.

        Zero where rounding explains them; nan where a fit of so many parameters leaves no errors.
        """
        spare = self.count - seen
        if spare <= 0:
            return np.nan

        def excess(scatter: float) -> float:
            return float(np.sum((errors / self.deviations(scatter)) ** 2)) - spare

        most = max(
            float(np.linalg.norm(errors)) * np.sqrt(max(r.weight for r in self.rows)), FIT_DIGITS
        )
        if excess(0.0) <= 0.0:
            return 0.0
        return float(scipy.optimize.brentq(excess, 0.0, 2.0 * most, xtol=FIT_DIGITS))

    def _descend(self, place: _Place, weights: Array) -> _Place:
        """The least squares of weighted errors, from a place on."""
        (x, errors, slopes), width = place, 1.0
        for _ in range(_STEPS):
            there = model_step((self.names, self.scale), _Place(x, errors, slopes), weights, width)
            if (there == x).all():
                break
            missed, cost = self.errors(there), np.sum((weights * errors) ** 2)
            if np.all(np.isfinite(missed)) and np.sum((weights * missed) ** 2) < cost:
                x, errors, width = there, missed, min(1.0, 2.0 * width)
                slopes = self.sensitivity(x)
            elif width > _NARROWEST:
                width /= 4.0
            else:
                break
        return _Place(x, errors, slopes)

    @property
    def own(self) -> Array:
        """The parameters of the brakes in natural units."""
        brake = self.brakes.joints[self.joint]
        return np.array([float(getattr(brake, name)) for name in self.names]) / self.scale

    def errors(self, x: Array) -> Array:
        """Logarithms of computed over measured numbers; infinite if the axis does not stop."""
        return self.errors_with(self.with_values(x * self.scale))

    def errors_with(self, brakes: Brakes) -> Array:
        """The same, with any brakes."""
        errors: list[Array] = []
        for row in self.rows:
            try:
                errors.append(row.errors(self._stop(row, brakes)))
            except StopFailed:
                errors.append(np.array([np.inf]))
        together = np.concatenate(errors)
        # A stop that fails is no number of the table; the size of what is returned must stay.
        return together if np.all(np.isfinite(together)) else np.full(self.count, np.inf)

    def sensitivity(self, x: Array) -> Array:
        """Derivatives of the errors, shape (count, len(names)); where stops have none, by steps."""
        slopes = self.slopes(self.with_values(x * self.scale), [self])
        return self.differences(x) if slopes is None else slopes

    def slopes(self, brakes: Brakes, axes: Sequence[AxisFit]) -> Array | None:
        """Derivatives of the errors by parameters of some axes; None where stops have none."""
        inputs, factors = list[str](), list[float]()
        for axis in axes:
            brake = brakes.joints[axis.joint]
            for name, size in zip(axis.names, axis.scale.tolist(), strict=True):
                # The static torque keeps its ratio to the dynamic one.
                both = name == "dynamic_torque" and brake.static_torque and brake.dynamic_torque
                inputs.append(f"{'brake_torque' if both else name}:{axis.joint}")
                factors.append(size / brake.dynamic_torque if both else size)
        parts = []
        for row in self.rows:
            of = f":{self.joint}"
            wanted = [name + (of if name in ("time", "angle") else "") for name in row.given]
            try:
                found = self._stop(row, brakes).sensitivity(wanted, inputs)
            except PinloopError:
                return None
            parts.append(found.matrix / found.output_values[:, None] * factors)
        slopes = np.vstack(parts)
        return slopes if np.all(np.isfinite(slopes)) else None

    def differences(self, x: Array) -> Array:
        """The same by differences to one side."""
        here, columns = self.errors(x), []
        for k, step in enumerate(_STEP * np.eye(len(x))):
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

    @property
    def count(self) -> int:
        """How many numbers the rows have."""
        return sum(row.numbers for row in self.rows)

    @cached_property
    def scale(self) -> Array:
        """Natural sizes of the parameters, in the units of the brakes file.

        The torque that alone would take the time t of a stop is ``2 E / (v t)``.
        """
        sizes = np.array([self._sizes(row) for row in self.rows])
        return np.asarray(np.exp(np.mean(np.log(sizes), axis=0)))

    def _sizes(self, row: Measured) -> list[float]:
        speed, time = abs(row.speed), row.likely_time
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
            "drive_torque": torque / ratio,
            **ramp_sizes(row),
        }
        return [sizes[name] for name in self.names]

    def _stop(self, row: Measured, brakes: Brakes) -> StopResult:
        """A stop, not followed for much longer than it should take."""
        until = min(self.arguments.get("until", np.inf), _PATIENCE * row.likely_time)
        key = stop_key(row, brakes)
        if key not in self.known:
            self.known[key] = row.stop(self.robot, brakes, **{**self.arguments, "until": until})
        return self.known[key]

    def _require_seen(self, slopes: Array) -> None:
        """Refuse parameters that no stop of the table depends on."""
        numbers = {row.number for row in self.rows}
        for name, column in zip(self.names, slopes.T, strict=True):
            # Beside rounding no stop depends on it at all; but a limit of a ramp that a stop
            # does not reach where the search starts may count later.
            ramps = name in OF_LAW and "torque" not in name and numbers != {0}
            if ramps or np.abs(column).max() > SAME:
                continue
            why = "the drive follows its ramp, and has the torque for it"
            if numbers == {0}:
                why = "in category 0 the power is cut at once"
                if name not in OF_LAW:
                    why = "its brake acts before the power goes, or after it has come to rest"
            elif name not in OF_LAW:
                why = "the drive brings it to rest before brakes come and power goes"
            raise BadValue(
                f"no stop of joint '{self.joint}' in the table depends on its {name}: {why}; leave "
                f"it out, or fit what these stops show"
            )

    def with_values(self, values: Array, identified: Mapping[str, bool] | None = None) -> Brakes:
        """The brakes with other parameters of this axis; static torque in proportion."""
        brake = self.brakes.joints[self.joint]
        # Without the rounding of natural units, so that the same values are the same stops.
        plain = [float(f"{value:.12g}") for value in values]
        changes: dict[str, Any] = dict(zip(self.names, plain, strict=True))
        of = f"fitted to {self.source or 'a table of stops'}"
        sources: dict[str, Source] = {}
        notes = {}
        for name in self.names:
            known = identified is None or identified[name]
            sources[name] = "fitted" if known else "guess"
            notes[name] = of if known else f"{of}, which does not identify it"
        torque = changes.get("dynamic_torque")
        if torque is not None and brake.static_torque is not None:
            ratio = brake.static_torque / brake.dynamic_torque if brake.dynamic_torque else 1.0
            changes["static_torque"] = ratio * torque
            sources["static_torque"] = "guess"
            notes["static_torque"] = f"{ratio:.4g} times dynamic_torque, as before the fit"
        if brake.breakaway is not None and changes.get("coulomb", 0.0) > brake.breakaway:
            changes["breakaway"] = changes["coulomb"]
            sources["breakaway"] = "guess"
            notes["breakaway"] = "as coulomb, which the fit has raised above it"
        fitted = replace(
            brake, **changes, sources={**brake.sources, **sources}, notes={**brake.notes, **notes}
        )
        return replace(self.brakes, joints={**self.brakes.joints, self.joint: fitted})

    def start(self, *, anew: bool = True) -> Array:
        """The best of some places to start from, in natural units."""
        own = self.own
        torques = [k for k, name in enumerate(self.names) if name in TORQUES]
        shares = _SHARES if anew and torques else ()
        places = [own, *(np.where(np.arange(len(own)) == torques[0], x, own) for x in shares)]
        for place in places:
            if np.all(np.isfinite(self.errors(place))):
                return place
        raise BadValue(
            f"the brakes from which the fit starts do not bring joint '{self.joint}' to rest in "
            "every stop of the table; start from stronger ones, or fit dynamic_torque too"
        )

    def _seen(self, slopes: Array) -> int:
        """How many combinations of parameters the data tells."""
        return int(np.sum(~self._blind(slopes)[0]))

    def _blind(self, slopes: Array) -> tuple[Mask, Array]:
        """Which combinations of parameters are next to invisible, and all of them, a row each."""
        _, sizes, V = np.linalg.svd(slopes, full_matrices=True)
        visible = np.concatenate([sizes, np.zeros(len(self.names) - len(sizes))])
        visible /= np.sqrt(self.count)
        return visible < _BLIND * max(1.0, float(visible[0])), V

    def covariance(self, slopes: Array, scatter: float) -> Array:
        """Covariance of the parameters in natural units, as far as the data tells them.

        With derivatives J and variances W of the errors it is the inverse of ``J' W^-1 J``, between
        combinations that are not blind.
        """
        blind, V = self._blind(slopes)
        spread = self.deviations(0.0 if np.isnan(scatter) else scatter)
        if np.isnan(scatter) and np.any(spread <= FIT_DIGITS):
            return np.full((len(self.names),) * 2, np.nan)
        inverse = np.linalg.pinv((slopes / spread[:, None]) @ V[~blind].T)
        return np.asarray(V[~blind].T @ inverse @ inverse.T @ V[~blind])

    def _judged(self, place: _Place, scatter: float) -> Solution:
        """Standard errors, and what the data does not tell."""
        x, errors, slopes = place
        values = np.array([six_digits(value) for value in x * self.scale])
        blind, V = self._blind(slopes)
        covariance = self.covariance(slopes, scatter)
        rows = (row for row in self.brakes.assumptions(self.robot) if row.joint == self.joint)
        units, fitted = {row.parameter: row.unit for row in rows}, []
        for k, name in enumerate(self.names):
            error = float(np.sqrt(covariance[k, k])) * float(self.scale[k])
            # What takes part in a combination that the data does not see is unknown.
            unknown = bool(np.any(np.abs(V[blind, k]) > _PART))
            error = np.inf if unknown else error
            spare = self.count - self._seen(slopes)
            own = Fitted(self.joint, name, float(values[k]), error, units[name], spare, scatter > 0)
            fitted.append(own)
        notes = [self._blind_note(direction) for direction in V[blind]]
        notes += [
            f"joint '{self.joint}': {f.parameter} is fitted to zero, its lower bound: the table "
            "shows none of it, or less than none"
            for f in fitted
            if f.value == 0.0 and f.identified
        ]
        miss = float(np.sqrt(np.mean(errors**2)))
        if miss > _MISFIT and scatter > 0.0:
            notes.append(
                f"joint '{self.joint}': the fit misses the table by {100 * miss:.2g} % (root mean "
                f"square); {', '.join(self.names)} alone cannot explain it"
            )
        brakes = self.with_errors(values, fitted, covariance)
        return Solution(brakes, tuple(fitted), errors, tuple(notes))

    def with_errors(self, values: Array, fitted: Sequence[Fitted], covariance: Array) -> Brakes:
        """The fitted brakes, with spreads whose 95 % are those of the fit, and correlations."""
        brakes = self.with_values(values, {f.parameter: f.identified for f in fitted})
        known = [k for k, f in enumerate(fitted) if np.isfinite(f.error) and f.error > 0.0]
        brake, names = brakes.joints[self.joint], [f"{f.parameter}:{self.joint}" for f in fitted]
        spreads = {n: x for n, x in brake.spreads.items() if n not in self.names}
        spreads |= {self.names[k]: fitted[k].half_width / SIGMAS for k in known}
        others = [x for x in brakes.correlations if not set(x.between) & set(names)]
        joints = {**brakes.joints, self.joint: replace(brake, spreads=spreads)}
        pairs = correlations(fitted, covariance)
        return replace(brakes, joints=joints, correlations=(*others, *pairs))

    def _blind_note(self, direction: Array) -> str:
        names = [n for n, c in zip(self.names, direction, strict=True) if abs(c) > _PART]
        stops = "1 stop" if len(self.rows) == 1 else f"{len(self.rows)} stops"
        numbers = "1 number" if self.count == 1 else f"{self.count} numbers"
        remedy = "do not fit it" if len(names) == 1 else "fix one of them"
        return (
            f"joint '{self.joint}': {stops} with {numbers} do not identify {' and '.join(names)}: "
            f"other values fit as well; {remedy}, or measure at other speeds, poses or payloads"
        )


def ramp_sizes(row: Measured) -> dict[str, float]:
    """Numbers of laws with which a joint would stop in about the time of a row."""
    speed, time = abs(row.speed), row.likely_time
    return {
        "deceleration": speed / time,
        "ramp_time": time,
        "jerk": 4.0 * speed / time**2,
        "time_constant": 0.5 * time,
        "torque_share": 1.0,
    }


def stop_key(row: Measured, brakes: Brakes) -> Hashable:
    """What tells the stop of a row of a table with some brakes from others, but for rounding."""
    numbers = [
        getattr(brake, name) for brake in brakes.joints.values() for name in JOINT_PARAMETERS
    ]
    return id(row), *(f"{x:.12g}" if isinstance(x, float) else x for x in numbers)
