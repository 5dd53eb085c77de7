"""Sensitivities of a run: what came out of it by what went in, through everything that happened.

The maps of `retracing` go forward, as many columns at once as there are inputs, or backward, as
many rows as there are outcomes: the same numbers but for rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ..boundary.arguments import place_of, public
from ..boundary.marks import Array
from ..dynamics.parameters import Parameter
from ..errors import BadValue
from ..integrate import Carry
from ..tables.report import Notes, Report, Reported, Table
from .linearization import follow_rows, make_chart, position_rows
from .outcomes import EventTime, Outcome, Reading
from .retracing import Inputs, RetracedRun
from .sequence_range import InputRange, find_margins, input_ranges, without_rounding
from .trajectory import Trajectory


@public
@dataclass(frozen=True)
class InitialState:
    """The state in which a run starts, in independent coordinates: positions, then rates.

    The others follow so that loops stay closed. Axes that dry friction holds at the start stay at
    rest.
    """


@public
@dataclass(frozen=True, eq=False)
class Sensitivity(Reported):
    """Derivatives of what comes out of a run by what goes in.

    Args:
        matrix: shape (rows, columns).
        values: what came out, shape (rows,).
        rows: name of each outcome.
        columns: name of each input.
        row_units: unit of each outcome.
        column_units: unit of each input, empty if it is not known.
        sequence: what happened in the run, in order: derivatives say nothing of runs in which
            something else happens; see `replay`.
        ranges: how far each input may change alone with the same sequence, to first order.
        warnings: what makes them doubtful, a sentence each: events that are about not to happen,
            or to happen.
        outcomes: what the rows are of.
    """

    matrix: Array
    values: Array
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    row_units: tuple[str, ...]
    column_units: tuple[str, ...]
    sequence: tuple[str, ...]
    ranges: tuple[InputRange, ...]
    warnings: tuple[str, ...]
    outcomes: tuple[Outcome, ...]

    def of(self, row: str, column: str) -> float:
        """One derivative, by the names of outcome and input."""
        place = place_of(row, self.rows, "outcome of a sensitivity")
        return float(self.matrix[place, self._place_of(column)])

    def range_of(self, column: str) -> InputRange:
        """How far an input may change with the same sequence of events, to first order."""
        return self.ranges[self._place_of(column)]

    def _place_of(self, column: str) -> int:
        return place_of(column, self.columns, "input of a sensitivity")

    def replay(self, simulate: Callable[[float], Trajectory], column: str, change: float) -> Replay:
        """Compute the run again with an input changed: what comes out, and does the same happen?

        Args:
            simulate: gives the run in which the input is larger by a number.
            column: name of the input.
            change: the number.
        """
        by = self.matrix[:, self._place_of(column)]
        run = simulate(change)
        if not isinstance(run, Trajectory):
            raise BadValue(f"simulate gives {run!r}; it must give what pl.simulate returns")
        retraced = RetracedRun(run, Inputs((), ()))
        values = np.concatenate([_value(outcome, retraced) for outcome in self.outcomes])
        return Replay(
            column, change, values, self.values + by * change, (values - self.values) / change, by,
            self.sequence, run.sequence,
        )  # fmt: skip

    def __rich__(self) -> Report:
        names = map(_with_unit, self.rows, self.row_units)
        lines = (
            [name, *(f"{x:.6g}" for x in line)]
            for name, line in zip(names, without_rounding(self.matrix).tolist(), strict=True)
        )
        headings = ["<by", *(name.replace(" | ", " ") for name in self.columns)]
        table = Table.of("derivatives", headings, lines)
        ranges = Table.of(
            "changes of one input with the same sequence of events, to first order",
            ("<input", "down to", "up to", "<beyond"),
            [
                (
                    name,
                    f"{of.lower:.3g}",
                    f"{of.upper:.3g}",
                    "; ".join(filter(None, dict.fromkeys((of.below, of.above)))),
                )
                for name, of in zip(self.columns, self.ranges, strict=True)
            ],
        )
        warnings = Notes.of("warnings", self.warnings, "caution")
        return Report.of("Sensitivities of a run", [table, ranges, warnings])


@public
@dataclass(frozen=True, eq=False)
class Replay(Reported):
    """A run with one of its inputs changed, beside what its sensitivity has told before.

    Args:
        column: name of the input.
        change: by how much it was changed.
        values: what came out; NaN for times of events that did not happen.
        predicted: what derivatives had told.
        differences: change of what came out over that of the input.
        derivatives: what these come to with small changes, if the same happens.
        expected: what happened before, in order.
        sequence: what happened now.
    """

    column: str
    change: float
    values: Array
    predicted: Array
    differences: Array
    derivatives: Array
    expected: tuple[str, ...]
    sequence: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Whether the same happened in the same order: only then differences tell derivatives."""
        return self.sequence == self.expected

    @property
    def note(self) -> str:
        """What happened otherwise; empty if nothing did."""
        if self.same:
            return ""
        first = next(
            (
                k
                for k, (before, now) in enumerate(zip(self.expected, self.sequence, strict=False))
                if before != now
            ),
            min(len(self.expected), len(self.sequence)),
        )
        before, now = (
            f"'{names[first]}'" if first < len(names) else "nothing"
            for names in (self.expected, self.sequence)
        )
        return (
            f"with {self.change:+.6g} of '{self.column}' another sequence of events: event "
            f"{first + 1} is {now}, was {before}; differences across that are no derivatives"
        )

    def __rich__(self) -> Report:
        numbers = np.array([self.values, self.predicted, self.differences, self.derivatives]).T
        rows = [tuple(f"{x:.6g}" for x in row) for row in numbers.tolist()]
        table = Table.of("outcomes", ("value", "predicted", "difference", "derivative"), rows)
        notes = Notes.of("warnings", [self.note] if self.note else [], "caution")
        return Report.of(f"{self.change:+.6g} of {self.column}", [table, notes])


def _value(outcome: Outcome, run: RetracedRun) -> Array:
    """What comes out of another run; unknown if it has no such event."""
    try:
        return outcome.read(run).value
    except BadValue:
        return np.full(len(outcome.labels(run.run.robot)), np.nan)


def run_sensitivity(
    run: Trajectory,
    of: Sequence[Outcome],
    to: Sequence[Parameter | InitialState | EventTime],
    order: Literal["forward", "adjoint"] | None,
) -> Sensitivity:
    """See `Trajectory.sensitivity`."""
    for what, given, kinds, example in (
        ("of", of, Outcome, "pl.simulation.PointAt('tool0')"),
        ("to", to, (Parameter, InitialState, EventTime), "pl.simulation.InitialState()"),
    ):
        if not isinstance(given, Sequence) or isinstance(given, str) or not given:
            raise BadValue(f"{what} is {given!r}; give a list such as [{example}]")
        for value in given:
            if not isinstance(value, kinds):
                raise BadValue(f"{what} has {value!r} in it; give e.g. {example}")
    if order not in (None, "forward", "adjoint"):
        raise BadValue(f"order is {order!r}; give 'forward', 'adjoint' or None")
    parameters = tuple(x for x in to if isinstance(x, Parameter))
    events = tuple(x.event for x in to if isinstance(x, EventTime))
    retraced = RetracedRun(run, Inputs(parameters, events))
    labels, start, by_input = _inputs(retraced, to)
    readings = [outcome.read(retraced) for outcome in of]
    links, count = retraced.links, sum(len(reading.rows) for reading in readings)
    margins, near = find_margins(retraced)
    parts = [reading for margin in margins for _, reading in margin.readings]
    backward = order == "adjoint" or (order is None and count < len(labels))
    sweep = _backward if backward else _forward
    matrix = sweep(links, [*readings, *parts], start, by_input)
    signs = [(row, sign) for row, margin in enumerate(margins) for sign, _ in margin.readings]
    slopes = np.zeros((len(margins), len(labels)))
    for (row, sign), own in zip(signs, matrix[count:], strict=True):
        slopes[row] += sign * own
    outcomes = [label for outcome in of for label in outcome.labels(run.robot)]
    return Sensitivity(
        matrix[:count],
        np.concatenate([reading.value for reading in readings]),
        tuple(name for name, _ in outcomes),
        tuple(name for name, _ in labels),
        tuple(unit for _, unit in outcomes),
        tuple(unit for _, unit in labels),
        run.sequence,
        input_ranges(margins, slopes),
        (*dict.fromkeys(retraced.warnings), *near),
        tuple(of),
    )


def _forward(
    links: Sequence[Carry], readings: Sequence[Reading], start: Array, by_input: Array
) -> Array:
    """The matrix from its columns: changes of the start and the parameters, carried on."""
    parts: dict[int, Array] = {}
    changes = start
    for k in range(len(links) + 1):
        for number, reading in enumerate(readings):
            if reading.k == k:
                there = changes
                if reading.beyond is not None:
                    there = reading.beyond.forward(changes, by_input)
                parts[number] = reading.rows @ there + reading.parameters @ by_input
        if k < len(links):
            changes = links[k].forward(changes, by_input)
    return np.vstack([parts[number] for number in range(len(readings))])


def _backward(
    links: Sequence[Carry], readings: Sequence[Reading], start: Array, by_input: Array
) -> Array:
    """The matrix from its rows: weights of the outcomes, carried back."""
    count = sum(len(reading.rows) for reading in readings)
    weights = np.zeros((count, len(start)))
    gradient = np.zeros((count, len(by_input)))
    for k in range(len(links), -1, -1):
        if k < len(links):
            weights, gradient = links[k].backward(weights, gradient)
        first = 0
        for reading in readings:
            rows, first = slice(first, first + len(reading.rows)), first + len(reading.rows)
            if reading.k != k:
                continue
            here, own = reading.rows, reading.parameters
            if reading.beyond is not None:
                here, own = reading.beyond.backward(here, own)
            weights[rows] += here
            gradient[rows] += own
    return np.asarray(weights @ start + gradient @ by_input)


def _inputs(
    run: RetracedRun, to: Sequence[Parameter | InitialState | EventTime]
) -> tuple[list[tuple[str, str]], Array, Array]:
    """Names and units of the columns; changes of the start, and of parameters and times of events.

    Shapes (1 + 2 nv, columns) and (parameters, columns).
    """
    robot, (t, q, v) = run.run.robot, run.state(0)
    piece, n = run.piece(0), run.run.robot.nv
    free = run.run.system.equations(piece.mode.without_friction)
    slopes = run.derivatives(piece, (t, q, v))
    closed = run.derivatives(replace(piece, equations=free), (t, q, v))
    positions = make_chart(free, t, q, v, closed)
    begins = piece.equations.rows.beginning  # which allow any start
    rates = make_chart(piece.equations, t, q, v, slopes, ~begins)
    held, scale = position_rows(free), free.rows.scale[:, None]
    count, m = len(positions.positions), run.count
    opened = np.hstack([np.zeros((len(closed.J), count)), run.padded(closed.closure_dp)])
    J, opened = (scale * closed.J)[held], (scale * opened)[held]
    F = follow_rows(J, positions.positions, np.eye(count, count + m), -opened)
    turned = slopes.violation_dq @ F
    turned[:, count:] += run.padded(slopes.violation_dp)
    size, own = len(rates.rates), piece.equations.rows.scale[~begins, None]
    J = own * slopes.J[~begins]
    V = follow_rows(J, rates.rates, np.zeros((size, count + m)), -own * turned[~begins])
    U = follow_rows(J, rates.rates, np.eye(size), np.zeros((len(J), size)))
    of_state = np.zeros((1 + 2 * n, count + size))
    of_state[1 : 1 + n, :count], of_state[1 + n :] = F[:, :count], np.hstack([V[:, :count], U])
    of_parameters = np.vstack([np.zeros((1, m)), F[:, count:], V[:, count:]])
    linear = robot.is_translation
    names = [*positions.names[:count], *rates.names[len(rates.positions) :]]
    units = ["m" if linear[k] else "rad" for k in positions.positions]
    units += ["m/s" if linear[k] else "rad/s" for k in rates.rates]
    own_labels = [(f"initial {name}", unit) for name, unit in zip(names, units, strict=True)]
    labels, chosen = list[tuple[str, str]](), list[int]()
    used, events = count + size, count + size + m - len(run.inputs.events)
    for given in to:
        if isinstance(given, InitialState):
            labels, chosen = labels + own_labels, [*chosen, *range(count + size)]
        elif isinstance(given, EventTime):
            labels, chosen, events = [*labels, *given.labels(robot)], [*chosen, events], events + 1
        else:
            labels += zip(given.labels(robot), given.units(robot), strict=True)
            first, used = used, used + len(given.labels(robot))
            chosen += range(first, used)
    start = np.hstack([of_state, of_parameters])
    by_input = np.eye(m, count + size + m, count + size)
    first = m - len(run.inputs.events) - run.begins
    kept = slopes.J @ start[1 + n :] + np.insert(turned, [count] * size, 0.0, 1)
    by_input[first : first + run.begins] += kept[begins]
    return labels, start[:, chosen], by_input[:, chosen]


def _with_unit(name: str, unit: str) -> str:
    return f"{name} [{unit}]" if unit else name
