"""Brakes fitted to recorded stops, together with the times of their signals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from ...boundary.arguments import public
from ...boundary.marks import Array
from ...errors import BadValue
from ...model.mechanism import Mechanism
from ...tables.report import Block, KeyValues, Notes, Report, Reported, Table
from ...tolerances import FIT_STEP, LEAST_TORQUE
from ..brakes.brakes import Brakes
from ..stopping.result_document import PLANNING_AID
from .axis_fit import AxisFit
from .comparison import failed_rows
from .fitted_values import Fitted, correlations
from .measured import Measured
from .published import FailedRow
from .traces import Approach, Overlay, StopTrace, StopTraces, align_each, overlay

_MOVES = 0.01
"""Speed from which on a joint counts as moving at the signal [rad/s, m/s]."""
_STEP = 1e-4
"""Step of the differences, in natural sizes of parameters."""
_UNSEEN, _PART = 1e-3, 0.02
"""Part of the largest change of the samples with which a combination of unknowns counts as unseen,
and part that an unknown has in it, from which on it takes part."""


@public
@dataclass(frozen=True, eq=False)
class TraceFit(Reported):
    """Brakes fitted to traces: print it, or let rich or a notebook show it.

    Args:
        brakes: the fitted brakes, with spreads and correlations.
        parameters: the parameters.
        overlays: traces over stops with the fitted brakes.
        signal_errors: standard errors of the times of signals [s]; zero of those that were given.
        noise: standard deviation of the residuals, as of coordinates [rad].
        warnings: what the traces do not identify.
        failed: traces that no computed stop suits; they were left out.
    """

    brakes: Brakes
    parameters: tuple[Fitted, ...]
    overlays: tuple[Overlay, ...]
    signal_errors: tuple[float, ...]
    noise: float
    warnings: tuple[str, ...] = ()
    failed: tuple[FailedRow, ...] = ()

    def __rich__(self) -> Report:
        return self.table()

    def table(self, facts: Iterable[tuple[str, str]] = ()) -> Report:
        """The fit for reading; ``facts`` are further lines above it: a name and what it is."""
        ends = [
            f"{x.interval[0]:.4g} to {x.interval[1]:.4g}" if x.identified else "not identified"
            for x in self.parameters
        ]
        rows = [
            (x.joint, x.parameter, f"{x.value:.5g}", interval, x.unit)
            for x, interval in zip(self.parameters, ends, strict=True)
        ]
        headings = ("<joint", "<parameter", "value", "<95 % interval", "<unit")
        blocks: list[Block] = [KeyValues.of("Fit", [("noise", f"{self.noise:.2g} rad"), *facts])]
        blocks.append(Table.of("Fitted parameters", headings, rows))
        signals = [
            (
                each.trace.motion.source or str(k),
                f"{each.signal:.5f}",
                f"{1.96e3 * error:.2g}",
                f"{each.rms.max():.2g}",
            )
            for k, (each, error) in enumerate(
                zip(self.overlays, self.signal_errors, strict=True), 1
            )
        ]
        columns = ("<trace", "signal [s]", "+- [ms]", "largest residual of a joint, rms [rad, m]")
        blocks.append(Table.of("Traces", columns, signals))
        blocks += [*failed_rows(self.failed), Notes.of("Warnings", self.warnings, "caution")]
        title = f"{self.overlays[0].stop.robot.name}: brakes fitted to traces"
        return Report.of(title, blocks, PLANNING_AID)

    def as_dict(self) -> dict[str, Any]:
        """Parameters and alignment, as JSON takes them; what is not known is None."""
        return {
            "parameters": [
                {name: getattr(x, name) for name in ("joint", "parameter", "value", "unit")}
                | {"interval": list(x.interval) if x.identified else None}
                for x in self.parameters
            ],
            "signals_s": [each.signal for each in self.overlays],
            "signal_errors_s": list(self.signal_errors),
            "noise": self.noise,
            "warnings": list(self.warnings),
            "failed": [asdict(row) for row in self.failed],
        }


@public
def fit_traces(
    robot: Mechanism,
    traces: StopTrace | Sequence[StopTrace] | StopTraces,
    brakes: Brakes,
    parameters: Sequence[str] = ("dynamic_torque",),
) -> TraceFit:
    """Fit parameters of brakes to measured motions of stops, and when their signals came.

    By least squares of all samples, from shortly before the signal to the end. Errors are those of
    independent noise; encoders and models also err alike from sample to sample, so that the
    residuals should be looked at (`Overlay.plot`). Of several traces those that no computed stop
    suits are left out, and are in ``failed``.

    Args:
        robot: the mechanism.
        traces: the measured stops.
        brakes: all parameters that are not fitted, and where the search starts.
        parameters: of the brakes file, for each joint that moves at the signal of some trace.
    """
    if not isinstance(traces, StopTraces):
        traces = StopTraces((traces,) if isinstance(traces, StopTrace) else tuple(traces))
    names = tuple([parameters] if isinstance(parameters, str) else parameters)
    if not traces.each or not names:
        raise BadValue("give at least one trace, and name a parameter to be fitted")
    aligned = align_each(robot, traces, brakes)
    return replace(_TraceProblem(robot, aligned.each, brakes, names).solve(), failed=aligned.failed)


@dataclass(frozen=True, eq=False)
class _TraceProblem:
    """The least squares of a fit; ``aligned``: where the search starts.

    Unknowns are parameters of joints in their natural sizes; of each trace the time of its signal,
    if nobody knows it, and the even motion before it: coordinates and rates.
    """

    robot: Mechanism
    aligned: Sequence[Overlay]
    brakes: Brakes
    names: tuple[str, ...]

    @cached_property
    def axes(self) -> list[AxisFit]:
        """The joints that move, with rows that tell the natural sizes of their parameters."""
        rows: dict[str, list[Measured]] = {}
        for each in self.aligned:
            for name, joint in each.stop.joints.items():
                speed = float(each.stop.run.v[0, self.robot.coordinates(name).v.start])
                if abs(speed) > _MOVES:
                    row = Measured(name, speed, max(joint.time, 1e-3), None)
                    rows.setdefault(name, []).append(row)
        if not rows:
            raise BadValue("no joint with a brake moves at the signal: nothing can be fitted")
        return [
            AxisFit(self.robot, self.brakes, name, own, self.names, {}, "measured motions")
            for name, own in rows.items()
        ]

    @cached_property
    def scale(self) -> Array:
        """Natural sizes of the parameters."""
        return np.concatenate([axis.scale for axis in self.axes])

    def brakes_with(self, x: Array) -> Brakes:
        """The brakes with other parameters."""
        brakes = self.brakes
        values = (x[: len(self.scale)] * self.scale).reshape(len(self.axes), -1)
        for axis, own in zip(self.axes, values, strict=True):
            brakes = replace(axis, brakes=brakes).with_values(own)
        return brakes

    @cached_property
    def _parts(self) -> list[tuple[int, bool, int]]:
        """Per trace where its unknowns begin, whether its signal is one, and how many joints."""
        parts, at = [], len(self.scale)
        for each in self.aligned:
            free, joints = each.trace.signal is None, len(each.trace.motion.joints)
            parts.append((at, free, joints))
            at += free + 2 * joints
        return parts

    def overlays(self, x: Array) -> list[Overlay]:
        """The traces over the stops of some unknowns."""
        brakes, laid = self.brakes_with(x), []
        for (at, free, n), first in zip(self._parts, self.aligned, strict=True):
            signal = float(x[at]) if free else first.signal
            places, rates = x[at + free :][: 2 * n].reshape(2, n)
            before = Approach(first.signal, places, rates)
            laid.append(overlay(self.robot, first.trace, brakes, signal, before))
        return laid

    def misses(self, x: Array) -> Array:
        """What is between traces and stops, sample by sample."""
        parts = []
        for each in self.overlays(x):
            names = each.trace.motion.joints
            columns = [self.robot.coordinates(name).v.start for name in names]
            size = np.where(self.robot.is_translation[columns], self.robot.length, 1.0)
            parts.append((each.residuals / size).ravel())
        return np.concatenate(parts)

    def solve(self) -> TraceFit:
        """Least squares, and what the residuals say of errors."""
        own = [getattr(self.brakes.joints[axis.joint], n) for axis in self.axes for n in self.names]
        start = [np.array(own, dtype=float) / self.scale]
        low = [np.zeros(len(own))]
        for (_, free, n), first in zip(self._parts, self.aligned, strict=True):
            before = first.trace.approach(first.signal)
            start += [np.array([first.signal] * free), before.places, before.rates]
            low.append(np.full(free + 2 * n, -np.inf))
        done = scipy.optimize.least_squares(
            self.misses, np.concatenate(start), self.slopes, bounds=(np.concatenate(low), np.inf),
            x_scale="jac", xtol=FIT_STEP, ftol=FIT_STEP, gtol=FIT_STEP, max_nfev=30,
        )  # fmt: skip
        x = np.asarray(done.x)
        spare = len(done.fun) - len(x)
        noise = math.sqrt(2.0 * float(done.cost) / spare)
        return self._judged(x, self._errors(self.slopes(x), noise), noise, spare)

    def _errors(self, J: Array, noise: float) -> Array:
        """Covariance of the unknowns; infinite for what takes part in a combination unseen."""
        size = np.maximum(np.linalg.norm(J, axis=0), LEAST_TORQUE)
        _, sizes, V = np.linalg.svd(J / size, full_matrices=False)
        blind = sizes < _UNSEEN * sizes[0]
        seen = V[~blind].T / sizes[~blind]
        covariance = noise**2 * (seen @ seen.T) / np.outer(size, size)
        lost = (np.abs(V[blind]) > _PART).any(axis=0)
        covariance[lost, lost] = np.inf
        return np.asarray(covariance, dtype=float)

    def slopes(self, x: Array) -> Array:
        """Derivatives of what is between, by differences."""
        here, columns = self.misses(x), []
        for step in _STEP * np.eye(len(x)):
            columns.append((self.misses(x + step) - here) / _STEP)
        return np.stack(columns, axis=1)

    def _judged(self, x: Array, covariance: Array, noise: float, spare: int) -> TraceFit:
        brakes, fitted, notes = self.brakes, list[Fitted](), []
        errors = np.sqrt(np.diag(covariance))
        size = len(self.names)
        for k, axis in enumerate(self.axes):
            at = slice(k * size, (k + 1) * size)
            values = x[at] * axis.scale
            rows = (r for r in self.brakes.assumptions(self.robot) if r.joint == axis.joint)
            units = {row.parameter: row.unit for row in rows}
            own = [
                Fitted(axis.joint, *numbers, units[numbers[0]], spare)
                for numbers in zip(
                    self.names, values.tolist(), (errors[at] * axis.scale).tolist(), strict=True
                )
            ]
            notes += [
                f"joint '{axis.joint}': the traces do not identify {each.parameter}; do not fit "
                "it, or say when the signal came (signal=)"
                for each in own
                if not each.identified
            ]
            fitted += own
            brakes = replace(axis, brakes=brakes).with_errors(values, own, covariance[at, at])
        count = len(self.scale)
        mine = [f"{x.parameter}:{x.joint}" for x in fitted]
        others = [x for x in brakes.correlations if not set(x.between) & set(mine)]
        pairs = correlations(fitted, covariance[:count, :count])
        brakes = replace(brakes, correlations=(*others, *pairs))
        signals = tuple(float(errors[at]) if free else 0.0 for at, free, _ in self._parts)
        return TraceFit(
            brakes, tuple(fitted), tuple(self.overlays(x)), signals, noise, tuple(notes)
        )
