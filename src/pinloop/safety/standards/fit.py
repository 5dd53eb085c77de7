"""Brake parameters from a table of stops: all its axes, until their brakes agree."""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from ...boundary.arguments import public
from ...errors import BadValue, PinloopWarning
from ...model.mechanism import Mechanism
from ...tables.number_format import listed
from ...tables.report import Cell, KeyValues, Notes, Report, Reported, Table
from ..brakes.brakes import Brakes
from ..stopping import StopResult
from ..stopping.result_document import PLANNING_AID
from .axis_fit import FITTABLE, SAME_STOP, AxisFit, Solution, ramp_sizes, stop_key
from .comparison import Comparison, compare
from .fit_step import OF_LAW, model_step
from .fitted_values import Fitted
from .measured import Measured
from .published import StoppingTable

_ROUNDS = 8
"""How often all axes are fitted, at most."""
_STEPS = 12
"""How many steps all axes take at once, at most."""


@public
@dataclass(frozen=True)
class Fit(Reported):
    """Fitted brakes: print it, or let rich or a notebook show it.

    Args:
        brakes: the brakes with the fitted parameters.
        parameters: the parameters.
        comparison: stops with the fitted brakes beside the table.
        warnings: what the data does not identify.
    """

    brakes: Brakes
    parameters: tuple[Fitted, ...]
    comparison: Comparison
    warnings: tuple[str, ...]

    @property
    def exact(self) -> tuple[str, ...]:
        """Joints with as many numbers in the table as parameters: their fit proves nothing."""
        return tuple(
            dict.fromkeys(x.joint for x in self.parameters if x.identified and not x.spare)
        )

    def __rich__(self) -> Report:
        return self.table()

    def table(self, facts: Iterable[tuple[str, str]] = ()) -> Report:
        """The fit for reading; ``facts`` are further lines above it: a name and what it is."""
        source = self.comparison.source
        entries: list[tuple[str, str | Cell]] = [("fitted to", source)] if source else []
        entries += facts
        if self.exact:
            why = "as many numbers as parameters: fits exactly, proves nothing"
            entries.append(("proof", Cell(f"{listed(self.exact)}: {why}", "caution")))
        warned = Notes.of("Warnings", self.warnings, "caution")
        blocks = [KeyValues.of("Fit", entries), _grid(self.parameters), *self.comparison.blocks()]
        title = f"{self.comparison.robot or 'robot'}: brakes fitted to stops"
        return Report.of(title, [*blocks, warned], PLANNING_AID)

    def as_dict(self) -> dict[str, Any]:
        """Parameters, comparison and warnings, as JSON takes them; errors not known are None."""
        parameters = [
            asdict(parameter)
            | {
                "error": parameter.error if math.isfinite(parameter.error) else None,
                "interval": list(parameter.interval) if math.isfinite(parameter.error) else None,
                "identified": parameter.identified,
            }
            for parameter in self.parameters
        ]
        return {
            "parameters": parameters,
            "comparison": self.comparison.as_dict(),
            "exact": list(self.exact),
            "warnings": list(self.warnings),
        }


@public
def fit_brakes(
    robot: Mechanism,
    table: StoppingTable,
    brakes: Brakes,
    parameters: Sequence[str] = ("dynamic_torque",),
    **arguments: Any,
) -> Fit:
    """Fit parameters of brakes to published or measured stops.

    Each axis is fitted to its own rows, by the relative errors of times and angles; as the brakes
    of an axis may matter when another one stops, all are fitted again until nothing changes. Where
    the rows do not identify a parameter, or only a combination, a warning says so: such a value is
    one of many. Errors count by the rounding and the weight of rows, and by how much the table
    scatters besides. Rows that cannot be read, or whose stops cannot be computed, are left out and
    are in ``comparison.failed``. The static torque of a brake keeps its ratio to the dynamic one.

    Args:
        robot: the mechanism.
        table: the stops.
        brakes: all parameters that are not fitted, and where the search starts.
        parameters: names of parameters of the brakes file that are fitted for each axis.
        arguments: all else that `stop` takes.

    Raises:
        BadValue: a parameter cannot be fitted.
        PinloopError: no row of the table is left.
    """
    fit = fitted(robot, table, brakes, parameters, **arguments)
    for note in fit.warnings:
        warnings.warn(note, PinloopWarning, stacklevel=3)
    return fit


def fitted(
    robot: Mechanism,
    table: StoppingTable,
    brakes: Brakes,
    parameters: Sequence[str] = ("dynamic_torque",),
    **arguments: Any,
) -> Fit:
    """As `fit_brakes`, but what the data does not tell is in the result only."""
    table = table.possible(robot, brakes)
    names = _checked(table, brakes, parameters)
    search = _Search(robot, table, _with_start(brakes, table, names), names, arguments)
    notes = search.run()
    table, brakes = search.table, search.brakes
    notes += [
        f"joint '{joint}': the table has neither a time nor an angle to fit its brake to"
        for joint in dict.fromkeys(row.joint for row in table.rows)
        if joint not in search.solved
    ]
    notes += _band_notes(brakes, search.solved, names)
    # What was followed for long enough in the search is followed no further.
    made = {key: stop for key, stop in search.known.items() if stop.outcome != "time-out"}
    results = [
        made.get(stop_key(row, brakes)) or row.attempt(robot, brakes, **arguments)
        for row in table.rows
    ]
    values = tuple(value for solution in search.solved.values() for value in solution.parameters)
    return Fit(brakes, values, compare(results, table), tuple(notes))


@dataclass
class _Search:
    """The fit of all axes, at once, then in turn; rows in which one does not stop are left out."""

    robot: Mechanism
    table: StoppingTable
    brakes: Brakes
    names: tuple[str, ...]
    arguments: Mapping[str, Any]
    solved: dict[str, Solution] = field(default_factory=dict)
    known: dict[Hashable, StopResult] = field(default_factory=dict)

    def run(self) -> list[str]:
        """Fit until the brakes of the axes agree; say what the data does not tell."""
        if len(_axes(self.table)) > 1:
            self._fit_together()
        for _ in range(_ROUNDS):
            moved = [self._fit_axis(joint, rows) for joint, rows in _axes(self.table)]
            if max(moved) < SAME_STOP:
                break
        if not self.solved:
            raise self.table.failed[-1].error
        notes = [note for solution in self.solved.values() for note in solution.notes]
        if max(moved) >= SAME_STOP:
            notes.append(
                f"the brakes of the axes change each other's stops by {100 * max(moved):.2g} % "
                f"even after {_ROUNDS} rounds: the fit is not settled"
            )
        return notes

    def _fit_together(self) -> None:
        """Take steps of all axes at once, as long as these bring the stops nearer the table."""
        brakes, least = self.brakes, math.inf
        for _ in range(_STEPS):
            axes = [self._axis(brakes, joint, rows) for joint, rows in _axes(self.table)]
            errors = np.concatenate([axis.errors_with(brakes) for axis in axes])
            cost = float(np.sum(errors**2))
            parts = [axis.slopes(brakes, axes) for axis in axes] if cost < least else []
            slopes = [part for part in parts if part is not None]
            if len(slopes) < len(axes):
                break
            self.brakes, least = brakes, cost
            x = np.concatenate([axis.own for axis in axes])
            scale = np.concatenate([axis.scale for axis in axes])
            place, weights = (x, errors, np.vstack(slopes)), np.ones(len(errors))
            there = model_step((self.names, scale), place, weights) * scale
            for axis, values in zip(axes, there.reshape(len(axes), -1), strict=True):
                brakes = replace(axis, brakes=brakes).with_values(values)

    def _axis(self, brakes: Brakes, joint: str, rows: Sequence[Measured]) -> AxisFit:
        return AxisFit(
            self.robot, brakes, joint, rows, self.names, self.arguments, self.table.source,
            self.known,
        )  # fmt: skip

    def _fit_axis(self, joint: str, rows: Sequence[Measured]) -> float:
        """Fit an axis, if the brakes of others have changed its stops; say by how much they have.

        Infinite if it is fitted for the first time, 0 if it does not come to rest in any row.
        """
        axis = self._axis(self.brakes, joint, rows)
        moved, before = math.inf, self.solved.get(joint)
        if before is not None:
            moved = float(np.max(np.abs(axis.errors_with(self.brakes) - before.errors)))
            if moved < SAME_STOP:
                return moved
        else:
            unstopped = _unstopped(axis)
            self.table = self.table.without(unstopped)
            rows = [row for row in rows if not any(row is x for x, _ in unstopped)]
            if not rows:
                return 0.0
            axis = replace(axis, rows=rows)
        self.solved[joint] = axis.solve(anew=before is None)
        self.brakes = self.solved[joint].brakes
        return moved


def _axes(table: StoppingTable) -> list[tuple[str, list[Measured]]]:
    """The axes that have numbers to be fitted to, and their rows that give these."""
    rows: dict[str, list[Measured]] = {}
    for row in table.rows:
        if row.numbers:
            rows.setdefault(row.joint, []).append(row)
    return [*rows.items()]


def _unstopped(axis: AxisFit) -> list[tuple[Measured, str]]:
    """The rows in which the axis does not come to rest, and why; all if it does only one by one."""
    try:
        axis.start()
    except BadValue as together:
        failures = []
        for row in axis.rows:
            try:
                replace(axis, rows=[row]).start()
            except BadValue as error:
                failures.append((row, str(error)))
        return failures or [(row, str(together)) for row in axis.rows]
    return []


def _with_start(brakes: Brakes, table: StoppingTable, names: Sequence[str]) -> Brakes:
    """The brakes with a number to start from where they have none of a law."""
    joints = dict(brakes.joints)
    for row in table.rows:
        absent = [name for name in names if getattr(joints[row.joint], name) is None]
        if row.numbers and absent:
            sizes = ramp_sizes(row)
            if "drive_torque" in absent:
                raise BadValue(
                    f"joint '{row.joint}' has no drive_torque from which the fit could start; give "
                    "one in the brakes"
                )
            start: dict[str, Any] = {name: sizes[name] for name in absent}
            joints[row.joint] = replace(joints[row.joint], **start)
    return replace(brakes, joints=joints)


def _band_notes(brakes: Brakes, joints: Iterable[str], names: Sequence[str]) -> list[str]:
    """Brakes that were fitted at another place in their tolerance band than its middle."""
    return [
        f"joint '{joint}': its brake was fitted at {brake.band:+g} in its tolerance band; the "
        f"torque that brakes is {1.0 + brake.band * brake.tolerance:.4g} times the one that is "
        "fitted"
        for joint in joints
        for brake in [brakes.joints[joint]]
        if "dynamic_torque" in names and brake.band * brake.tolerance != 0.0
    ]


def _checked(table: StoppingTable, brakes: Brakes, parameters: Sequence[str]) -> tuple[str, ...]:
    """The names of the parameters, if all axes have them."""
    names = tuple(dict.fromkeys([parameters] if isinstance(parameters, str) else parameters))
    if not names:
        raise BadValue(f"name a parameter to be fitted: {', '.join(FITTABLE)}")
    for name in names:
        if name not in FITTABLE:
            raise BadValue(f"'{name}' cannot be fitted; {', '.join(FITTABLE)} can")
    for row in table.rows:
        joint, brake = row.joint, brakes.joints[row.joint]
        for name in names:
            if not brake.uses(name):
                what = f"a brake of kind {brake.kind}"
                if name in OF_LAW:
                    what = f"a drive that stops by the law {brake.law}"
                raise BadValue(f"joint '{joint}' has {what}: it has no {name} that could be fitted")
    if not _axes(table):
        raise BadValue("the table has neither a time nor an angle: nothing can be fitted")
    return names


def _grid(parameters: Sequence[Fitted]) -> Table:
    """The parameters for reading."""
    rows = []
    for fitted in parameters:
        low, high = (f"{end:.4g}" for end in fitted.interval)
        error, interval = f"{fitted.error:.2g}", f"{low} to {high}"
        caution: tuple[str | Cell, str | Cell] = error, interval
        if not math.isfinite(fitted.error):
            unknown = "not known" if fitted.identified else "not identified"
            caution = (Cell(unknown, "" if fitted.identified else "caution"), "-")
        rows.append((fitted.joint, fitted.parameter, f"{fitted.value:.4g}", *caution, fitted.unit))
    headings = ("<joint", "<parameter", "value", "standard error", "<95 % interval", "<unit")
    return Table.of("Fitted parameters", headings, rows)
