"""Sensitivities of a run: what came out of it by what went in, through everything that happened.

The maps of `retracing` go forward, as many columns at once as there are inputs, or backward, as
many rows as there are outcomes: the same numbers but for rounding.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from ..boundary.arguments import checked, public
from ..boundary.marks import Array
from ..dynamics.derivatives import joint_chain
from ..dynamics.parameters import Parameter
from ..errors import BadValue
from ..integrate import Carry, guard_slopes
from ..model.mechanism import Mechanism
from ..model.moving_tree import MovingTree
from ..tables.report import Notes, Report, Reported, Table
from .linearization import follow_rows, make_chart, name_columns, position_rows
from .modes import RobotManifold
from .retracing import Inputs, RetracedRun
from .trajectory import Trajectory


class _Reading(NamedTuple):
    """What an outcome is at some place of a run.

    Args:
        k: number of the stored state from which it is reached.
        beyond: map from there on; None if it is that state.
        value: its numbers.
        rows: their derivatives by ``(dt, dq, dv)``.
        parameters: their own derivatives by parameters and times of events.
    """

    k: int
    beyond: Carry | None
    value: Array
    rows: Array
    parameters: Array


@public
class Outcome(ABC):
    """Something that comes out of a run: one or several numbers."""

    @abstractmethod
    def labels(self, robot: Mechanism) -> tuple[tuple[str, str], ...]:
        """Name and unit of each number."""

    @abstractmethod
    def read(self, run: RetracedRun) -> _Reading:
        """Its value, and how that depends on a state of the run."""


@public
@checked
@dataclass(frozen=True)
class StateAt(Outcome):
    """Configuration and velocity, in tangent coordinates.

    Args:
        t: time [s]; the end of the run by default, also where an event decides when that is.
    """

    t: float | None = None

    def labels(self, robot: Mechanism) -> tuple[tuple[str, str], ...]:
        """Coordinates, then their rates, with " at ..." unless it is the end."""
        names, at = name_columns(robot, robot.joints)[1], _at(self.t)
        names += tuple(f"d {name}" for name in names)
        units = ["m" if linear else "rad" for linear in robot.is_translation]
        units += [f"{unit}/s" for unit in units]
        return tuple((f"{name}{at}", unit) for name, unit in zip(names, units, strict=True))

    def read(self, run: RetracedRun) -> _Reading:
        """The state itself."""
        k, beyond, (_, q, v) = _place(run, self.t)
        rows = np.eye(1 + 2 * len(v))[1:]
        value = np.concatenate(
            [RobotManifold(run.run.robot).difference(run.run.robot.neutral, q), v]
        )
        return _Reading(k, beyond, value, rows, np.zeros((len(rows), run.count)))


@public
@checked
@dataclass(frozen=True)
class PointAt(Outcome):
    """Where a point of a body is in the world.

    Args:
        frame: body or frame.
        point: in its axes [m].
        t: time [s]; the end of the run by default.
    """

    frame: str
    point: tuple[float, float, float] = (0.0, 0.0, 0.0)
    t: float | None = None

    def labels(self, robot: Mechanism) -> tuple[tuple[str, str], ...]:
        """Its coordinates."""
        return tuple((f"{self.frame}: {axis}{_at(self.t)}", "m") for axis in "xyz")

    def read(self, run: RetracedRun) -> _Reading:
        """By its Jacobian, which knows places that are moved, too."""
        k, beyond, (_, q, v) = _place(run, self.t)
        robot, parameters = run.run.robot, run.inputs.parameters
        chain = joint_chain(robot, tuple(name for x in parameters for name in x.places))
        tree = MovingTree(chain, q, v, np.zeros(len(v)))
        place, J = tree.point(robot.frame_id(self.frame), np.array(self.point))
        rows = np.zeros((3, 1 + 2 * len(v)))
        rows[:, 1 : 1 + len(v)] = J[:, chain.columns]
        own = [
            J[:, np.concatenate([chain.moved[name] for name in x.places])]
            if x.places
            else np.zeros((3, len(x.labels(robot))))
            for x in parameters
        ]
        return _Reading(k, beyond, place, rows, run.padded(np.hstack([np.zeros((3, 0)), *own])))


@public
@checked
@dataclass(frozen=True)
class EnergyAt(Outcome):
    """Kinetic energy, that of gravity, and what springs store.

    Args:
        t: time [s]; the end of the run by default.
    """

    t: float | None = None

    def labels(self, robot: Mechanism) -> tuple[tuple[str, str], ...]:
        """Its name."""
        return ((f"energy{_at(self.t)}", "J"),)

    def read(self, run: RetracedRun) -> _Reading:
        """By differences in the state."""
        k, beyond, (t, q, v) = _place(run, self.t)
        piece = run.piece(k)
        equations = piece.equations

        def energy(t: float, q: Array, v: Array) -> float:
            kinetic, potential, stored = equations.energies(t, q, v)
            return kinetic + potential + sum(stored.values())

        slopes = guard_slopes(RobotManifold(run.run.robot), energy, (t, q, v))
        rows = np.append(slopes.by_time, slopes.by_state)[None]
        own = [x.energy_slopes(equations, t, q, v) for x in piece.parameters]
        parameters = run.padded(np.concatenate([np.zeros(0), *own])[None])
        return _Reading(k, beyond, np.array([energy(t, q, v)]), rows, parameters)


@public
@checked
@dataclass(frozen=True)
class EventTime(Outcome):
    """When an event happens; of one at a given time also an input.

    Args:
        event: its name, as `Trajectory.events` and `Trajectory.slips` have it.
        number: which one, if there are several: 1 for the first.
    """

    event: str
    number: int = 1

    def labels(self, robot: Mechanism) -> tuple[tuple[str, str], ...]:
        """Its name."""
        times = "" if self.number == 1 else f" ({self.number})"
        return ((f"time of {self.event}{times}", "s"),)

    def read(self, run: RetracedRun) -> _Reading:
        """How much later the state is reached at which it happens."""
        happened = [*run.run.events, *run.run.slips]
        instants = run.run.happenings.instants if run.run.happenings else ()
        happened += [(x.t, name) for x in instants for name in x.names]
        times = sorted({t for t, name in happened if name == self.event})
        if not 1 <= self.number <= len(times):
            known = ", ".join(sorted({name for _, name in happened})) or "none"
            raise BadValue(
                f"event '{self.event}' happens {len(times)} times in this run, there is no "
                f"number {self.number}; events: {known}"
            )
        t = times[self.number - 1]
        k = int(np.searchsorted(run.run.t, t, side="left"))
        rows = np.eye(1, 1 + 2 * run.run.robot.nv)
        return _Reading(k, None, np.array([t]), rows, np.zeros((1, run.count)))


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
            something else happens; compare with `Trajectory.sequence`.
        warnings: what makes them doubtful, a sentence each: events that are about not to happen,
            or to happen.
    """

    matrix: Array
    values: Array
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    row_units: tuple[str, ...]
    column_units: tuple[str, ...]
    sequence: tuple[str, ...]
    warnings: tuple[str, ...]

    def of(self, row: str, column: str) -> float:
        """One derivative, by the names of outcome and input."""
        for name, known in ((row, self.rows), (column, self.columns)):
            if name not in known:
                raise BadValue(f"no '{name}' in this sensitivity; there are: {', '.join(known)}")
        return float(self.matrix[self.rows.index(row), self.columns.index(column)])

    def __rich__(self) -> Report:
        names = map(_with_unit, self.rows, self.row_units)
        lines = (
            [name, *(f"{x:.6g}" for x in line)]
            for name, line in zip(names, self.matrix.tolist(), strict=True)
        )
        headings = ["<by", *(name.replace(" | ", " ") for name in self.columns)]
        table = Table.of("derivatives", headings, lines)
        warnings = Notes.of("warnings", self.warnings, "caution")
        return Report.of("Sensitivities of a run", [table, warnings])


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
    links = retraced.links
    count = sum(len(reading.rows) for reading in readings)
    backward = order == "adjoint" or (order is None and count < len(labels))
    sweep = _backward if backward else _forward
    matrix = sweep(links, readings, start, by_input)
    outcomes = [label for outcome in of for label in outcome.labels(run.robot)]
    return Sensitivity(
        matrix,
        np.concatenate([reading.value for reading in readings]),
        tuple(name for name, _ in outcomes),
        tuple(name for name, _ in labels),
        tuple(unit for _, unit in outcomes),
        tuple(unit for _, unit in labels),
        run.sequence,
        (*dict.fromkeys(retraced.warnings), *retraced.near_misses()),
    )


def _forward(
    links: Sequence[Carry], readings: Sequence[_Reading], start: Array, by_input: Array
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
    links: Sequence[Carry], readings: Sequence[_Reading], start: Array, by_input: Array
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
    rates = make_chart(piece.equations, t, q, v, slopes)
    held, scale = position_rows(free), free.rows.scale[:, None]
    count, m = len(positions.positions), run.count
    opened = np.hstack([np.zeros((len(closed.J), count)), run.padded(closed.closure_dp)])
    J, opened = (scale * closed.J)[held], (scale * opened)[held]
    F = follow_rows(J, positions.positions, np.eye(count, count + m), -opened)
    turned = slopes.violation_dq @ F
    turned[:, count:] += run.padded(slopes.violation_dp)
    size, own = len(rates.rates), piece.equations.rows.scale[:, None]
    V = follow_rows(own * slopes.J, rates.rates, np.zeros((size, count + m)), -own * turned)
    U = follow_rows(own * slopes.J, rates.rates, np.eye(size), np.zeros((len(slopes.J), size)))
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
    by_input = np.eye(m, count + size + m, count + size)
    return labels, np.hstack([of_state, of_parameters])[:, chosen], by_input[:, chosen]


def _place(
    run: RetracedRun, t: float | None
) -> tuple[int, Carry | None, tuple[float, Array, Array]]:
    """The stored state at or before a time, the map from there on, and the state then."""
    times = run.run.t
    if t is None:
        return len(times) - 1, None, run.state(len(times) - 1)
    if not times[0] <= t <= times[-1]:
        raise BadValue(
            f"time {t:.9g} s is outside the run, which goes from {times[0]:.6g} to "
            f"{times[-1]:.6g} s"
        )
    k = int(np.searchsorted(times, t, side="right")) - 1
    if times[k] == t:
        return k, None, run.state(k)
    return (k, *run.beyond(k, t))


def _at(t: float | None) -> str:
    return "" if t is None else f" at {t:g} s"


def _with_unit(name: str, unit: str) -> str:
    return f"{name} [{unit}]" if unit else name
