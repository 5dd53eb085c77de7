"""What can be worst about a stop: criteria, their names, and how bad a case is by each of them.

Most are columns of the rows of a study. What rows do not have, such as how far the tool gets in a
direction, is measured on the stops themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...boundary.arguments import unit_vector
from ...boundary.marks import Array
from ...boundary.values import forward
from ...errors import BadValue, UnknownName
from ...integrate import FINE
from ...units import column_unit
from ..stopping import StopResult
from ..stopping.bands import Outcome, find_intervals
from ..stopping.intervals import Interval
from ..stopping.prepared_robot import tool_of
from .cases import CLEARANCE, Setup, joint_columns, stop_numbers

DISPLACEMENT, SEPARATION = "displacement", "separation"
_AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


@dataclass(frozen=True)
class Criterion:
    """Something that can be worst about a stop.

    Args:
        name: its name, such as "time" or "angle:joint_1".
        column: the column of rows that measures it, or what such a column would be called.
        outputs: outputs of `StopResult.sensitivity` whose weighted sum climbs with it; none if it
            has no derivatives.
        measure: measures it on a stop, where rows have no such column.
    """

    name: str
    column: str
    outputs: Mapping[str, float] = field(default_factory=dict)
    measure: Callable[[StopResult], float] | None = None

    @property
    def sign(self) -> float:
        """Clearances are bad if small, all others if large."""
        return -1.0 if self.column == CLEARANCE else 1.0

    def measured(self, stop: StopResult) -> float:
        """What a stop that ended at rest and held is by it."""
        return (
            float(stop_numbers(stop)[self.column]) if self.measure is None else self.measure(stop)
        )

    def interval(self, stop: StopResult) -> Interval | None:
        """Its 95 % interval for a stop, as brake data are uncertain; None if it has none."""
        if not self.outputs or not stop.holds:
            return None
        outcome = Outcome(self.name, column_unit(self.column), self.measured, self.outputs)
        return next(iter(find_intervals(stop, [outcome])), None)

    def size(self, row: Mapping[str, float | str], stop: StopResult | None = None) -> float:
        """How bad a case is, larger is worse; not a number where it does not end at rest and held.

        The stop is needed where rows do not measure it.
        """
        if row["outcome"] != "stopped":
            return math.nan
        if self.measure is None:
            return self.sign * float(row[self.column])
        assert stop is not None
        return self.sign * self.measure(stop)


def criteria(setup: Setup) -> dict[str, str]:
    """Criteria that rows measure, and their columns."""
    columns = {"time": "stopping_time_s", "travel": "tool_travel_m"}
    if setup.obstacles:
        columns["clearance"] = CLEARANCE
    for name in setup.brakes.joints:
        of = joint_columns(setup.robot, name)
        columns[f"angle:{name}"] = of["excursion"]
        columns[f"impulse:{name}"] = of["impulse"]
        columns[f"gear:{name}"] = of["peak_gear_torque"]
    return columns


def known_criteria(
    setup: Setup, wanted: str | Sequence[str] | None, person: Mapping[str, Any] | None = None
) -> dict[str, Criterion]:
    """The criteria that are wanted; all that rows measure if none are named.

    ``person``: where a person is and how they approach, for "separation"; see `separation`.
    """
    known = criteria(setup)
    if wanted is None:
        wanted = list(known)
    chosen = [wanted] if isinstance(wanted, str) else list(wanted)
    if not chosen:
        raise BadValue(f"no criterion is wanted; known: {', '.join(known)}")
    return {name: _criterion(setup, name, known, person or {}) for name in dict.fromkeys(chosen)}


def _criterion(
    setup: Setup, name: str, known: Mapping[str, str], person: Mapping[str, Any]
) -> Criterion:
    if name in known:
        kind, _, joint = name.partition(":")
        outputs = {"time": "stopping_time", "travel": "path", "angle": f"angle:{joint}"}
        return Criterion(name, known[name], {outputs[kind]: 1.0} if kind in outputs else {})
    if name == "clearance":
        raise BadValue("criterion 'clearance' needs obstacles; give them to the study")
    if name == SEPARATION:
        return forward("safety.standards.separation", "separation_criterion", person)
    kind, colon, words = name.partition(":")
    if kind == DISPLACEMENT:
        tool = Displacement(_direction(words) if colon else None)
        column = "_".join(["tool", DISPLACEMENT, *([words] if colon else []), "m"])
        return Criterion(name, column, {DISPLACEMENT: 1.0}, tool)
    every = [*known, DISPLACEMENT, f"{DISPLACEMENT}:x", SEPARATION]
    raise UnknownName("criterion", name, every)


def _direction(words: str) -> tuple[float, ...]:
    """A direction from "x", "-z" or "0,0.6,0.8"."""
    axis, sign = words.strip().removeprefix("-"), -1.0 if words.strip().startswith("-") else 1.0
    if axis in _AXES:
        return tuple(sign * x for x in _AXES[axis])
    try:
        numbers = [float(word) for word in words.split(",")]
    except ValueError:
        raise BadValue(
            f"direction '{words}' of criterion '{DISPLACEMENT}' is none; write x, -z or 0,0.6,0.8"
        ) from None
    return tuple(unit_vector(numbers, f"direction of criterion '{DISPLACEMENT}'").tolist())


@dataclass(frozen=True)
class Displacement:
    """How far the tool gets from where it was at the signal [m].

    ``direction``: unit vector in the world along which that counts; in any direction by default.
    """

    direction: tuple[float, ...] | None = None

    def __call__(self, stop: StopResult) -> float:
        """The farthest place, between stored states, too."""
        moving, robot, tool = stop.history.moving, stop.robot, tool_of(stop.robot)
        pieces = moving.pieces
        start = robot.placement(stop.run.q[0], tool).translation

        def far(q: Array) -> float:
            way = robot.placement(q, tool).translation - start
            return float(np.linalg.norm(way) if self.direction is None else way @ self.direction)

        farthest = max(0.0, *(far(q) for q in stop.run.q))
        states = zip(*moving.inside(pieces.rows, pieces.parts(FINE.points)), strict=True)
        inside = np.array([[far(q) for q in step] for step, _ in states])
        if len(inside):
            farthest = max(farthest, float(FINE.highest(inside[..., None])[1].max()))
        return farthest


class Records:
    """The worst cases so far, one after another; ``worst``: sizes of those before, by column."""

    def __init__(self, setup: Setup, worst: Mapping[str, float] | None = None) -> None:
        self._criteria = tuple(known_criteria(setup, None).values())
        self.worst = dict(worst or {})

    def takes(self, row: Mapping[str, float | str]) -> bool:
        """Whether a case is worse than all before it, or the first that ends in another way."""
        sizes = {str(row["outcome"]): 0.0}
        if row["outcome"] == "stopped":
            sizes = {criterion.column: criterion.size(row) for criterion in self._criteria}
        records = {
            column: size
            for column, size in sizes.items()
            if math.isfinite(size) and size > self.worst.get(column, -math.inf)
        }
        self.worst |= records
        return bool(records)
