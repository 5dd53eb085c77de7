"""What may come out of a run: values at a place of it, and how they depend on the state there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..boundary.arguments import checked, public
from ..boundary.marks import Array
from ..dynamics.derivatives import joint_chain
from ..errors import BadValue
from ..integrate import Carry, guard_slopes
from ..model.mechanism import Mechanism
from ..model.moving_tree import MovingTree
from .linearization import name_columns
from .modes import RobotManifold
from .retracing import RetracedRun


class Reading(NamedTuple):
    """What something is at some place of a run.

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
    def read(self, run: RetracedRun) -> Reading:
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

    def read(self, run: RetracedRun) -> Reading:
        """The state itself."""
        k, beyond, (_, q, v) = _place(run, self.t)
        rows = np.eye(1 + 2 * len(v))[1:]
        value = np.concatenate(
            [RobotManifold(run.run.robot).difference(run.run.robot.neutral, q), v]
        )
        return Reading(k, beyond, value, rows, np.zeros((len(rows), run.count)))


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

    def read(self, run: RetracedRun) -> Reading:
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
        return Reading(k, beyond, place, rows, run.padded(np.hstack([np.zeros((3, 0)), *own])))


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

    def read(self, run: RetracedRun) -> Reading:
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
        return Reading(k, beyond, np.array([energy(t, q, v)]), rows, parameters)


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

    def read(self, run: RetracedRun) -> Reading:
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
        return Reading(k, None, np.array([t]), rows, np.zeros((1, run.count)))


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
