"""Brake parameters from a table of stops: all its axes, until their brakes agree."""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ...boundary.arguments import public
from ...errors import BadValue, PinloopError, PinloopWarning
from ...model.mechanism import Mechanism
from ...tables.number_format import listed
from ...tables.report import Cell, KeyValues, Notes, Report, Reported, Table
from ..brakes.brakes import Brakes
from ..stopping import StopResult
from ..stopping.result_document import PLANNING_AID
from .axis_fit import FITTABLE, OF_LAW, SAME_STOP, AxisFit, Solution, ramp_sizes, stop_key
from .comparison import Comparison, FailedRow, compare
from .fitted_values import Fitted
from .published import Measured, StoppingTable

_ROUNDS = 8
"""How often all axes are fitted, at most."""


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
    scatters besides. Rows whose stops cannot be computed are left out; the comparison of the fit
    names them. The static torque of a brake keeps its ratio to the dynamic one.

    Args:
        robot: the mechanism.
        table: the stops.
        brakes: all parameters that are not fitted, and where the search starts.
        parameters: names of parameters of the brakes file that are fitted for each axis.
        arguments: all else that `stop` takes.

    Raises:
        BadValue: a parameter cannot be fitted, or an axis of the table has no brake.
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
    table, failed = _possible_rows(robot, table)
    names = _checked(table, brakes, parameters)
    brakes = _with_start(brakes, table, names)
    solved: dict[str, Solution] = {}
    known: dict[Hashable, StopResult] = {}
    lost: list[FailedRow] = []
    for _ in range(_ROUNDS):
        most = 0.0
        for joint in dict.fromkeys(row.joint for row in table.rows):
            rows = [row for row in table.rows if row.joint == joint and row.numbers]
            axis = AxisFit(robot, brakes, joint, rows, names, arguments, table.source, known)
            if joint in solved:
                # Have the brakes of the other axes changed its stops since it was fitted?
                moved = float(np.max(np.abs(axis.errors_with(brakes) - solved[joint].errors)))
                most = max(most, moved)
                if moved < SAME_STOP:
                    continue
            else:
                most = np.inf
                axis, unstopped = _startable(axis)
                lost += unstopped
                table = _without(table, [x.measured for x in unstopped])
            solved[joint] = axis.solve(anew=joint not in solved)
            brakes = solved[joint].brakes
        if most < SAME_STOP:
            break
    notes = [note for solution in solved.values() for note in solution.notes]
    if most >= SAME_STOP:
        notes.append(
            f"the brakes of the axes change each other's stops by {100 * most:.2g} % even after "
            f"{_ROUNDS} rounds: the fit is not settled"
        )
    notes += _band_notes(brakes, solved, names)
    # What was followed for long enough in the search is followed no further.
    made = {key: stop for key, stop in known.items() if stop.outcome != "time-out"}
    results = [
        made.get(stop_key(row, brakes)) or row.stop(robot, brakes, **arguments)
        for row in table.rows
    ]
    values = tuple(value for solution in solved.values() for value in solution.parameters)
    comparison = compare(results, table)
    comparison = replace(comparison, failed=(*failed, *lost))
    return Fit(brakes, values, comparison, tuple(notes))


def _possible_rows(robot: Mechanism, table: StoppingTable) -> tuple[StoppingTable, list[FailedRow]]:
    """The rows whose stops can begin, and those that cannot: no such joint, no such pose."""
    failed = []
    for row in table.rows:
        try:
            row.state(robot)
        except PinloopError as error:
            failed.append(FailedRow(row, str(error)))
    if len(failed) == len(table.rows):
        table.for_robot(robot)
        table.rows[0].state(robot)
    return _without(table, [x.measured for x in failed]), failed


def _without(table: StoppingTable, rows: Sequence[Measured]) -> StoppingTable:
    """A table without some rows."""
    return replace(table, rows=tuple(x for x in table.rows if not any(x is row for row in rows)))


def _startable(axis: AxisFit) -> tuple[AxisFit, list[FailedRow]]:
    """The axis with the rows in which it comes to rest at all, and the others."""
    try:
        axis.start()
    except BadValue:
        failed = []
        for row in axis.rows:
            try:
                replace(axis, rows=[row]).start()
            except BadValue as error:
                failed.append(FailedRow(row, str(error)))
        if len(failed) in (0, len(axis.rows)):
            raise
        rows = [row for row in axis.rows if not any(row is x.measured for x in failed)]
        return replace(axis, rows=rows), failed
    return axis, []


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
        joint = row.joint
        if joint not in brakes.joints:
            raise BadValue(f"the table has joint '{joint}', for which there is no brake to fit")
        brake = brakes.joints[joint]
        for name in names:
            if not brake.uses(name):
                what = f"a brake of kind {brake.kind}"
                if name in OF_LAW:
                    what = f"a drive that stops by the law {brake.law}"
                raise BadValue(f"joint '{joint}' has {what}: it has no {name} that could be fitted")
        if not any(other.numbers for other in table.rows if other.joint == joint):
            raise BadValue(f"the table has neither a time nor an angle for joint '{joint}'")
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
