"""From a run to lines over time: states between the stored ones, coordinates by unit.

Draws nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...dynamics import EquationsOfMotion
from ...model.mechanism import Mechanism
from ...simulation.analysis import EnergyBalance
from ...simulation.limits import LimitPassed
from ...simulation.modes import ModalSystem, Mode
from ...simulation.trajectory import joint_positions
from .panels import MOST_LINES, Line

__all__ = ["Coordinate", "Fine", "Run", "coordinates", "few", "fine", "lines_by_unit", "velocities"]

Array = NDArray[np.float64]

_POINTS = 900
"""Instants along a run: about the width of a picture in dots."""


class Run(Protocol):
    """What plots ask of a run; `Trajectory` says what each is."""

    @property
    def robot(self) -> Mechanism:
        """The mechanism."""

    @property
    def t(self) -> Array:
        """Times of the states."""

    @property
    def q(self) -> Array:
        """Configurations."""

    @property
    def v(self) -> Array:
        """Velocities."""

    @property
    def mode(self) -> NDArray[np.int64]:
        """Number of the mode of each state."""

    @property
    def modes(self) -> tuple[Mode, ...]:
        """The modes that occurred."""

    @property
    def system(self) -> ModalSystem:
        """Equations of motion by mode."""

    @property
    def limits_passed(self) -> tuple[LimitPassed, ...]:
        """Position limits that joints pass."""

    @property
    def events(self) -> tuple[tuple[float, str], ...]:
        """Times and names of what happened."""

    @property
    def equations(self) -> tuple[EquationsOfMotion, ...]:
        """Equations of motion at each state."""

    def __call__(self, t: ArrayLike) -> tuple[Any, Array, Array]:
        """States at times."""

    def energy(self) -> EnergyBalance:
        """Energies and work."""


class Fine(NamedTuple):
    """States of a run as close together as a picture shows them.

    The stored ones are among them, two at one time where there is a jump.
    """

    t: Array
    q: Array
    v: Array
    after: NDArray[np.intp]
    """The stored state that each follows on, or is."""


def fine(run: Run, points: int = _POINTS) -> Fine:
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


def few(states: Fine, most: int = 4 * _POINTS) -> Fine:
    """No more states than a picture shows, for what takes time; both sides of jumps stay."""
    kept = np.zeros(len(states.t), dtype=bool)
    kept[:: -(-len(kept) // most)] = kept[-1] = True
    jumps = np.flatnonzero(np.diff(states.t) <= 0.0)
    kept[jumps] = kept[jumps + 1] = True
    return Fine(states.t[kept], states.q[kept], states.v[kept], states.after[kept])


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


def _named(joint: str, units: Sequence[str], cells: Array) -> Iterator[Coordinate]:
    for k, (unit, values) in enumerate(zip(units, cells.T, strict=True)):
        yield Coordinate(joint, joint if len(units) == 1 else f"{joint}.{k}", unit, values)


def lines_by_unit(
    t: Array, found: Iterable[Coordinate], ranks: dict[str, tuple[bool, float]] | None
) -> dict[str, tuple[list[Line], list[str]]]:
    """Lines and notes per unit.

    Args:
        t: times [s], shape (k,).
        found: what to show.
        ranks: by label or joint, what comes first where there are too many for one panel: whether
            a drive moves it, and its largest speed. None: show all.
    """
    sorts: dict[str, list[Coordinate]] = {}
    for one in found:
        sorts.setdefault(one.unit, []).append(one)
    return {unit: _shown(t, ones, ranks) for unit, ones in sorts.items()}


def _shown(
    t: Array, ones: list[Coordinate], ranks: dict[str, tuple[bool, float]] | None
) -> tuple[list[Line], list[str]]:
    shown = ones
    if ranks is not None and len(ones) > MOST_LINES:
        order = sorted(ones, key=lambda one: ranks.get(one.label, ranks[one.joint]), reverse=True)
        chosen = {one.label for one in order[:MOST_LINES]}
        shown = [one for one in ones if one.label in chosen]
    left = len(ones) - len(shown)
    notes = [f"and {left} more"] if left else []
    return [Line(one.label, t, one.values) for one in shown], notes
