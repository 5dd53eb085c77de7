"""Brake parameters from a table of stops: least squares, and a word where the data cannot tell."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import BadValue, PinloopError, PinloopWarning
from ..mechanism import Mechanism
from ..stopping import Brakes
from ..stopping.brakes import Source
from .compare import Comparison, compare
from .published import Measured, StoppingTable

__all__ = ["Fit", "Fitted", "fit_brakes"]

Array = NDArray[np.float64]

_FITTABLE = ("dynamic_torque", "short_circuit", "viscous", "coulomb", "delay", "rise")
_BLIND = 1e-2
"""Relative sensitivity of the data to a combination of parameters that counts as none."""
_START = {"short_circuit": 1e-3, "viscous": 1.0, "coulomb": 1.0, "delay": 0.02, "rise": 0.02}
"""Where the search starts if the brakes say zero; on the motor side for short circuits."""


@dataclass(frozen=True)
class Fitted:
    """A fitted parameter.

    Args:
        joint: name of the joint.
        parameter: name of the parameter.
        value: its value, in the unit of the brakes file.
        error: standard error; infinite where the data does not identify it.
    """

    joint: str
    parameter: str
    value: float
    error: float


@dataclass(frozen=True)
class Fit:
    """Fitted brakes.

    Args:
        brakes: the brakes with the fitted parameters.
        parameters: the parameters.
        comparison: the fitted brakes beside the table.
        warnings: what the data does not identify.
    """

    brakes: Brakes
    parameters: tuple[Fitted, ...]
    comparison: Comparison
    warnings: tuple[str, ...]


def fit_brakes(
    robot: Mechanism,
    table: StoppingTable,
    brakes: Brakes,
    parameters: Sequence[str] = ("dynamic_torque",),
    **arguments: Any,
) -> Fit:
    """Fit parameters of brakes to published or measured stops, axis by axis.

    Each axis is fitted to its own rows, by relative errors of times and angles. Where the rows do
    not identify a parameter, or only a combination, the fit says so: such a value is one of many.

    Args:
        robot: the mechanism.
        table: the stops.
        brakes: all parameters that are not fitted, and where the search starts.
        parameters: names of parameters of the brakes file that are fitted for each axis.
        arguments: all else that `stop` takes.
    """
    for name in parameters:
        if name not in _FITTABLE:
            raise BadValue(f"'{name}' cannot be fitted; {', '.join(_FITTABLE)} can")
    found: list[Fitted] = []
    said: list[str] = []
    for joint in dict.fromkeys(row.joint for row in table.rows):
        if joint not in brakes.joints:
            raise BadValue(f"the table has joint '{joint}', for which there is no brake to fit")
        rows = [row for row in table.rows if row.joint == joint]
        problem = _Axis(robot, brakes, joint, rows, tuple(parameters), arguments)
        brakes, fitted, notes = problem.fitted()
        found += fitted
        said += notes
    for note in said:
        warnings.warn(note, PinloopWarning, stacklevel=2)
    comparison = compare(table.stops(robot, brakes, **arguments), table)
    return Fit(brakes, tuple(found), comparison, tuple(said))


class _Axis:
    """The fit of one axis; unknowns are the logarithms of its parameters."""

    def __init__(
        self,
        robot: Mechanism,
        brakes: Brakes,
        joint: str,
        rows: list[Measured],
        names: tuple[str, ...],
        arguments: dict[str, Any],
    ) -> None:
        self.robot, self.brakes, self.joint = robot, brakes, joint
        self.rows, self.names, self.arguments = rows, names, arguments
        self.data = sum((row.time is not None) + (row.angle is not None) for row in rows)
        if self.data == 0:
            raise BadValue(f"the table has neither a time nor an angle for joint '{joint}'")

    def fitted(self) -> tuple[Brakes, list[Fitted], list[str]]:
        """The brakes with the fitted parameters, these, and what the data does not identify."""
        from scipy.optimize import least_squares

        brake = self.brakes.joints[self.joint]
        start = [float(getattr(brake, name)) or _START.get(name, 1.0) for name in self.names]
        done = least_squares(self._residuals, np.log(start), diff_step=[1e-4] * len(start))
        values, sensitivity = np.exp(done.x), np.asarray(done.jac)
        _, sizes, V = np.linalg.svd(sensitivity, full_matrices=True)
        sizes = np.concatenate([sizes, np.zeros(len(self.names) - len(sizes))])
        blind = sizes < _BLIND * max(1.0, float(sizes[0]))
        spread = float(np.sqrt(2 * done.cost / max(1, self.data - len(self.names))))
        fitted, notes = [], []
        for k, name in enumerate(self.names):
            # A parameter that takes part in a combination that the data does not see is unknown.
            unknown = bool(np.any(np.abs(V[blind][:, k]) > 0.1))
            with np.errstate(divide="ignore"):
                error = spread * float(np.sqrt(np.sum((V[~blind][:, k] / sizes[~blind]) ** 2)))
            fitted.append(
                Fitted(self.joint, name, float(values[k]),
                       np.inf if unknown else float(values[k]) * error)
            )  # fmt: skip
        for combination in V[blind]:
            parts = [n for n, c in zip(self.names, combination, strict=True) if abs(c) > 0.1]
            notes.append(
                f"joint '{self.joint}': {len(self.rows)} stops with {self.data} numbers do not "
                f"identify {' and '.join(parts)}: other values fit as well; fix all but one of "
                "them, or measure other speeds, poses or payloads"
            )
        if spread > 0.02:
            notes.append(
                f"joint '{self.joint}': the fit misses the table by {100 * spread:.2g} % (root "
                f"mean square): {', '.join(self.names)} alone cannot explain it"
            )
        return self._with(values), fitted, notes

    def _with(self, values: Array) -> Brakes:
        """The brakes with other parameters of this axis; static torque in proportion."""
        brake = self.brakes.joints[self.joint]
        changes: dict[str, Any] = dict(zip(self.names, map(float, values), strict=True))
        torque = changes.get("dynamic_torque")
        if torque is not None and brake.static_torque is not None and brake.dynamic_torque:
            changes["static_torque"] = brake.static_torque * torque / brake.dynamic_torque
        if "coulomb" in changes and brake.breakaway is not None:
            changes["breakaway"] = max(brake.breakaway, changes["coulomb"])
        fitted: dict[str, Source] = dict.fromkeys(changes, "measured")
        sources = {**brake.sources, **fitted}
        notes = {**brake.notes, **dict.fromkeys(self.names, "fitted to a table of stops")}
        joints = {
            **self.brakes.joints,
            self.joint: replace(brake, **changes, sources=sources, notes=notes),
        }
        return replace(self.brakes, joints=joints)

    def _residuals(self, logs: Array) -> Array:
        """Relative errors of times and angles."""
        brakes = self._with(np.exp(logs))
        found: list[float] = []
        for row in self.rows:
            try:
                joint = row.stop(self.robot, brakes, **self.arguments).joints[self.joint]
            except PinloopError as error:
                raise PinloopError(
                    f"a stop of joint '{self.joint}' could not be computed in the fit: {error}"
                ) from error
            if row.time is not None:
                found.append(joint.time / row.time - 1.0)
            if row.angle is not None:
                found.append(abs(joint.angle) / row.angle - 1.0)
        return np.array(found)
