"""Derivatives of a stop as a value, and their table: what the stop depends on, largest first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...boundary.arguments import place_of, public
from ...boundary.marks import Array
from ...tables.number_format import numbers
from ...tables.report import Block, Notes, Report, Reported, Table
from ...units import shown_unit

_NOTHING = 1e-3
"""Part of the largest change that is not worth a line, and half of the last digit of a table."""


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
        row = place_of(names[0], self.outputs, "output of a sensitivity")
        return float(self.matrix[row, place_of(names[1], self.inputs, "input of a sensitivity")])

    def per_percent(self) -> Array:
        """Changes of the outputs with one percent more of each input, shape (m, k)."""
        return np.asarray(0.01 * self.matrix * np.abs(self.input_values))

    def __rich__(self) -> Report:
        return self.table()

    def table(self, most: int | None = None) -> Report:
        """The changes per percent for reading, one table per output, largest first.

        ``most``: how many inputs at most.
        """
        title = f"{self.robot or 'stop'}: what the stop depends on"
        every = [self.block(output, most=most) for output in self.outputs]
        blocks: list[Block] = [block for block in every if block.rows]
        return Report.of(title, [*blocks, Notes.of("Sensitivities", self.warnings, "caution")])

    def block(self, output: str, *others: str, most: int | None = None) -> Table:
        """Changes of outputs with one percent more of each input; those of the first sort them.

        ``most``: how many inputs at most.
        """
        names = (output, *others)
        places = [place_of(name, self.outputs, "output of a sensitivity") for name in names]
        units = [shown_unit(self.output_units[place]) for place in places]
        changes = self.per_percent()[places] * np.array([[factor] for _, factor in units])
        sizes = np.abs(np.nan_to_num(changes[0]))
        least = _NOTHING * max(sizes.max(initial=0.0), 0.5)
        shown = [k for k in np.argsort(-sizes, kind="stable").tolist() if sizes[k] > least][:most]
        columns = [numbers(row[shown].tolist()) for row in changes]
        rows = [
            (self.inputs[k], self._value(k), *values)
            for k, *values in zip(shown, *columns, strict=True)
        ]
        headings = [f"{name} [{unit}]" for name, (unit, _) in zip(names, units, strict=True)]
        title = f"What it depends on: {output}, per 1 % more of each input"
        return Table.of(title, ("<input", "value", *headings), rows)

    def _value(self, k: int) -> str:
        if not self.input_units[k]:
            return "-" if self.input_values[k] == 1.0 else f"{self.input_values[k]:.4g}"
        unit, factor = shown_unit(self.input_units[k])
        return f"{factor * self.input_values[k]:.4g} {unit}"
