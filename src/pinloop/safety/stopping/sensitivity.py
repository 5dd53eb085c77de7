"""Derivatives of a stop as a value, and their table: what the stop depends on, largest first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...boundary.arguments import public
from ...boundary.marks import Array
from ...errors import UnknownName
from ...tables.number_format import numbers
from ...tables.report import Block, Notes, Report, Reported, Table
from ...units import shown_unit

_NOTHING = 1e-3
"""Part of the largest change that is not worth a line."""


@public
@dataclass(frozen=True, eq=False)
class StopSensitivity(Reported):
    """Derivatives of what came out of a stop by what went in.

    Args:
        outputs: names of what came out.
        output_units: their units.
        output_values: what they were, shape (m,).
        inputs: names of what went in.
        input_units: their units; empty for what is counted in parts.
        input_values: what they were, shape (k,).
        matrix: derivatives, shape (m, k); NaN where there is none.
        warnings: where the sequence of events is about to change, and what has no derivative.
        robot: name of the robot.
    """

    outputs: tuple[str, ...]
    output_units: tuple[str, ...]
    output_values: Array
    inputs: tuple[str, ...]
    input_units: tuple[str, ...]
    input_values: Array
    matrix: Array
    warnings: tuple[str, ...]
    robot: str = ""

    def __getitem__(self, names: tuple[str, str]) -> float:
        """The derivative of an output by an input, such as ``["path", "payload"]``."""
        output, of = names
        for name, known, what in ((output, self.outputs, "output"), (of, self.inputs, "input")):
            if name not in known:
                raise UnknownName(f"{what} of a sensitivity", name, known)
        return float(self.matrix[self.outputs.index(output), self.inputs.index(of)])

    def per_percent(self) -> Array:
        """Changes of the outputs with one percent more of each input, shape (m, k)."""
        return np.asarray(0.01 * self.matrix * np.abs(self.input_values))

    def __rich__(self) -> Report:
        return self.table()

    def table(self) -> Report:
        """The changes per percent for reading, one table per output, largest first."""
        title = f"{self.robot or 'stop'}: what the stop depends on"
        return Report.of(title, [*self.blocks()])

    def blocks(self) -> list[Block]:
        """The parts of the table."""
        return [*map(self.block, self.outputs), Notes.of("Sensitivities", self.warnings, "caution")]

    def block(self, output: str, most: int | None = None) -> Table:
        """Changes of an output with one percent of each input, largest first.

        ``most``: how many at most.
        """
        row = self.outputs.index(output)
        unit, factor = shown_unit(self.output_units[row])
        changes = factor * self.per_percent()[row]
        order = np.argsort(-np.abs(np.nan_to_num(changes)), kind="stable")
        least = _NOTHING * np.abs(np.nan_to_num(changes)).max(initial=0.0)
        shown = [k for k in order.tolist() if abs(changes[k]) > least][:most]
        values = numbers([changes[k] for k in shown])
        rows = [(self.inputs[k], self._value(k), x) for k, x in zip(shown, values, strict=True)]
        heading = f"{unit} per 1 % more".strip()
        return Table.of(f"What it depends on: {output}", ("<input", "value", heading), rows)

    def _value(self, k: int) -> str:
        if not self.input_units[k]:
            return "-" if self.input_values[k] == 1.0 else f"{self.input_values[k]:.4g}"
        unit, factor = shown_unit(self.input_units[k])
        return f"{factor * self.input_values[k]:.4g} {unit}"
