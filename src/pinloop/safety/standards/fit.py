"""Brake parameters from a table of stops: all its axes, until their brakes agree."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...boundary.arguments import public
from ...errors import BadValue, PinloopWarning, printable
from ...model.mechanism import Mechanism
from ...tables.report import Block, Cell, Column, KeyValues, Notes, Report, Table
from ..brakes.brakes import Brakes
from ..stopping.assumptions import PLANNING_AID
from .axisfit import FITTABLE, AxisFit, Fitted, Solution
from .comparison import Comparison, compare
from .published import StoppingTable

__all__ = ["Fit", "Fitted", "fit_brakes", "fitted"]

_ROUNDS = 8
"""How often all axes are fitted, at most."""
_SAME = 1e-4
"""Change of a computed number, as a part of it, that counts as none."""


@public
@dataclass(frozen=True)
class Fit:
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

    def __str__(self) -> str:
        return str(self.table())

    def table(self, facts: Iterable[tuple[str, str]] = ()) -> Report:
        """The fit for reading.

        Args:
            facts: further lines above it: a name and what it is.
        """
        source = self.comparison.source
        entries = [("fitted to", source), *facts] if source else list(facts)
        cells = tuple((name, Cell(printable(text))) for name, text in entries)
        blocks: list[Block] = [KeyValues("Fit", cells)] if cells else []
        blocks += [_grid(self.parameters), *self.comparison.blocks()]
        if self.warnings:
            blocks.append(Notes("Warnings", tuple(map(printable, self.warnings)), "caution"))
        title = Cell(printable(f"{self.comparison.robot or 'robot'}: brakes fitted to stops"))
        return Report(title, tuple(blocks), PLANNING_AID)

    def as_dict(self) -> dict[str, Any]:
        """Parameters, comparison and warnings, as JSON takes them; errors not known are None."""
        parameters = [
            {
                "joint": parameter.joint,
                "parameter": parameter.parameter,
                "value": parameter.value,
                "unit": parameter.unit,
                "error": parameter.error if math.isfinite(parameter.error) else None,
                "identified": parameter.identified,
            }
            for parameter in self.parameters
        ]
        return {
            "parameters": parameters,
            "comparison": self.comparison.as_dict(),
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
    one of many. The static torque of a brake keeps its ratio to the dynamic one.

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
    names = _checked(table.for_robot(robot), brakes, parameters)
    solved: dict[str, Solution] = {}
    for _ in range(_ROUNDS):
        most = 0.0
        for joint in dict.fromkeys(row.joint for row in table.rows):
            rows = [row for row in table.rows if row.joint == joint and row.numbers]
            axis = AxisFit(robot, brakes, joint, rows, names, arguments, table.source)
            if joint in solved:
                # Have the brakes of the other axes changed its stops since it was fitted?
                moved = float(np.max(np.abs(axis.errors_with(brakes) - solved[joint].errors)))
                most = max(most, moved)
                if moved < _SAME:
                    continue
            else:
                most = np.inf
            solved[joint] = axis.solve(anew=joint not in solved)
            brakes = solved[joint].brakes
        if most < _SAME:
            break
    notes = [note for solution in solved.values() for note in solution.notes]
    if most >= _SAME:
        notes.append(
            f"the brakes of the axes change each other's stops by {100 * most:.2g} % even after "
            f"{_ROUNDS} rounds: the fit is not settled"
        )
    notes += _band_notes(brakes, solved, names)
    results = table.stops(robot, brakes, **arguments)
    identified = tuple(
        parameter for solution in solved.values() for parameter in solution.parameters
    )
    return Fit(brakes, identified, compare(results, table), tuple(notes))


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
                raise BadValue(
                    f"joint '{joint}' has a brake of kind {brake.kind}: it has no "
                    f"{name} that could be fitted"
                )
        given = [row for row in table.rows if row.joint == joint]
        if not any(row.numbers for row in given):
            raise BadValue(f"the table has neither a time nor an angle for joint '{joint}'")
    return names


def _grid(parameters: Sequence[Fitted]) -> Table:
    """The parameters for reading."""
    columns = (
        Column("joint", right=False),
        Column("parameter", right=False),
        Column("value"),
        Column("standard error"),
        Column("unit", right=False),
    )
    rows = [
        (
            Cell(printable(parameter.joint)),
            Cell(parameter.parameter),
            Cell(f"{parameter.value:.4g}"),
            _error_cell(parameter),
            Cell(parameter.unit),
        )
        for parameter in parameters
    ]
    return Table("Fitted parameters", columns, tuple(rows))


def _error_cell(parameter: Fitted) -> Cell:
    if not parameter.identified:
        return Cell("not identified", "caution")
    return Cell("not known" if math.isnan(parameter.error) else f"{parameter.error:.2g}")
