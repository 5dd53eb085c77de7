"""From a run to lines over time: states between the stored ones, coordinates by unit.

Draws nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...model.mechanism import Mechanism
from ...simulation.trajectory import Trajectory, joint_positions
from .charts import MOST_LINES, Line

__all__ = [
    "Coordinate",
    "Fine",
    "coordinates",
    "lines_by_unit",
    "sample_states",
    "thin_states",
    "velocities",
]

Array = NDArray[np.float64]

_POINTS = 900
"""Instants along a run: about the width of a picture in dots."""


class Fine(NamedTuple):
    """States of a run as close together as a picture shows them.

    The stored ones are among them, two at one time where there is a jump.
    """

    t: Array
    q: Array
    v: Array
    after: NDArray[np.intp]
    """The stored state that each follows on, or is."""


def sample_states(run: Trajectory, points: int = _POINTS) -> Fine:
    """States of a run: the stored ones, and so many others that curves are smooth.

    Args:
        run: the run.
        points: so many equal parts of the run have a state each, at least.
    """
    t, part = run.t, (run.t[-1] - run.t[0]) / points
    steps = np.diff(t)
    extra = np.ceil(steps / part).astype(int) - 1 if part > 0 else np.zeros(len(steps), dtype=int)
    extra = np.append(np.maximum(extra, 0), 0)
    after = np.repeat(np.arange(len(t)), extra + 1)
    place = np.arange(len(after)) - np.repeat(np.cumsum(extra + 1) - extra - 1, extra + 1)
    step = np.append(steps, 0.0)[after]
    times = t[after] + step * place / (extra[after] + 1)
    q, v, inner = run.q[after].copy(), run.v[after].copy(), place > 0
    if inner.any():
        _, q[inner], v[inner] = run(times[inner])
    return Fine(times, q, v, after)


def thin_states(states: Fine, most: int = 4 * _POINTS) -> Fine:
    """No more states than a picture shows, for what takes time; both sides of jumps stay."""
    chosen = np.zeros(len(states.t), dtype=bool)
    chosen[:: -(-len(chosen) // most)] = chosen[-1] = True
    jumps = np.flatnonzero(np.diff(states.t) <= 0.0)
    chosen[jumps] = chosen[jumps + 1] = True
    return Fine(states.t[chosen], states.q[chosen], states.v[chosen], states.after[chosen])


class Coordinate(NamedTuple):
    """A coordinate or velocity of a joint over time."""

    joint: str
    label: str
    """As in the columns of `Trajectory.columns`: joint, and number where it has several."""
    unit: str
    values: Array


def coordinates(robot: Mechanism, joint: str, states: Fine) -> list[Coordinate]:
    """Coordinates of a joint [rad, m], components of a quaternion [-].

    What is stored as cosine and sine is shown as an angle, over more than a turn if it made one.
    """
    units, values = joint_positions(robot, joint, states.q)
    return list(_named(joint, [unit or "-" for unit in units], values))


def velocities(robot: Mechanism, joint: str, states: Fine) -> list[Coordinate]:
    """Velocities of a joint [rad/s, m/s]."""
    at = robot.coordinates(joint)
    units = ["m/s" if linear else "rad/s" for linear in robot.is_translation[at.v]]
    return list(_named(joint, units, states.v[:, at.v]))


def _named(joint: str, units: Sequence[str], columns: Array) -> Iterator[Coordinate]:
    for k, (unit, values) in enumerate(zip(units, columns.T, strict=True)):
        yield Coordinate(joint, joint if len(units) == 1 else f"{joint}.{k}", unit, values)


def lines_by_unit(
    t: Array, shown: Iterable[Coordinate], ranks: dict[str, tuple[bool, float]] | None
) -> dict[str, tuple[list[Line], list[str]]]:
    """Lines and notes per unit.

    Args:
        t: times [s], shape (k,).
        shown: what to show.
        ranks: by label or joint, what comes first where there are too many for one panel: whether
            a drive moves it, and its largest speed. None: show all.
    """
    by_unit: dict[str, list[Coordinate]] = {}
    for coordinate in shown:
        by_unit.setdefault(coordinate.unit, []).append(coordinate)
    return {unit: _first_lines(t, alike, ranks) for unit, alike in by_unit.items()}


def _first_lines(
    t: Array, alike: list[Coordinate], ranks: dict[str, tuple[bool, float]] | None
) -> tuple[list[Line], list[str]]:
    chosen = {coordinate.label for coordinate in alike}
    if ranks is not None and len(alike) > MOST_LINES:
        order = sorted(alike, key=lambda c: ranks.get(c.label, ranks[c.joint]), reverse=True)
        chosen = {coordinate.label for coordinate in order[:MOST_LINES]}
    lines = [Line(c.label, t, c.values) for c in alike if c.label in chosen]
    left = len(alike) - len(lines)
    return lines, [f"and {left} more"] if left else []
