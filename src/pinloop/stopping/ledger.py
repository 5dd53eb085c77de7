"""Where the energy of a stop went, joint by joint: a sum that has to come out.

Kinetic and potential energy at the signal, and the work of the drives, against what brakes,
friction and gears turned into heat, what impacts destroyed, and what is left. The powers are
integrated over the dense output of the steps (Gauss, four points), not taken from differences of
energy: the closure error is a check of everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..integrate import NODES, WEIGHTS
from .course import Course, Kept
from .drivetrain import Sliding
from .equations import Solved

__all__ = ["Ledger", "Peaks", "energy_ledger", "peaks"]

Array = NDArray[np.float64]

_FINE = np.linspace(0.0, 1.0, 33)


@dataclass(frozen=True, eq=False)
class Ledger:
    """Energies in and out [J].

    Args:
        kinetic_before: at the signal, rotors included.
        kinetic_after: at the end.
        potential_drop: potential energy that was given off; negative if the robot was lifted.
        drive_work: work of the drives.
        dissipated: per sink and velocity coordinate what became heat, shape (nv,); sinks are
            "brake", "dry friction", "viscous friction", "short circuit", "gear losses".
        impacts: what impacts destroyed.
        small: an energy that is nothing for this robot.
    """

    kinetic_before: float
    kinetic_after: float
    potential_drop: float
    drive_work: float
    dissipated: dict[str, Array]
    impacts: float
    small: float = 1e-300

    @property
    def heat(self) -> float:
        """All that became heat in brakes, friction and gears."""
        return float(sum(values.sum() for values in self.dissipated.values()))

    @property
    def error(self) -> float:
        """What is missing: in minus out."""
        given = self.kinetic_before + self.potential_drop + self.drive_work
        return given - self.heat - self.impacts - self.kinetic_after

    @property
    def relative_error(self) -> float:
        """Size of the error over the energy at the signal, or over all that was turned over."""
        whole = max(
            self.kinetic_before,
            abs(self.potential_drop),
            self.heat,
            self.small,
        )
        base = self.kinetic_before if self.kinetic_before > 1e-9 * whole else whole
        base = max(base, self.small)
        return abs(self.error) / base


@dataclass(frozen=True, eq=False)
class Peaks:
    """Extremes over the stop, per velocity coordinate, shape (nv,).

    Args:
        speed: largest speed [rad/s, m/s].
        torque: largest torque of brake, friction, gear and drive together [N m, N].
        gear: largest torque that the gear carries, behind it [N m, N].
    """

    speed: Array
    torque: Array
    gear: Array


@dataclass(frozen=True, eq=False)
class _Nodes:
    """The instants at which powers are evaluated: steps, points of each step, coordinates."""

    steps: NDArray[np.intp]
    t: Array
    v: Array
    weights: Array
    sliding: Sliding

    def integral(self, power: Array) -> Array:
        """Integral over time of powers per coordinate, shape (nv,)."""
        return np.asarray((power * self.weights).sum(axis=(0, 1)))


def energy_ledger(course: Course) -> Ledger:
    """The ledger of a course."""
    train, nodes = course.train, _nodes(course)
    v, sliding = nodes.v, nodes.sliding
    way = sliding.direction * v
    brake = sliding.engaged(nodes.t) * (train.motor_brake[0] + train.joint_brake[0])
    heat = {
        "brake": nodes.integral(way * brake),
        "dry friction": nodes.integral(way * train.friction(v)),
        "viscous friction": nodes.integral(-train.viscous(v) * v),
        "short circuit": nodes.integral(-train.shorted(v, sliding) * v),
    }
    drive = nodes.integral(train.dragged(sliding) * v)
    gears, following = _behind_gears(course, nodes)
    heat["gear losses"] = nodes.integral(gears)
    first, last = course.kept[0], course.kept[-1]
    kinetic0, potential0 = energies_at(course, first.q, first.v)
    kinetic1, potential1 = energies_at(course, last.q, last.v)
    return Ledger(
        kinetic0,
        kinetic1,
        potential0 - potential1,
        float((drive + nodes.integral(following)).sum())
        + sum(transition.drive_work for transition in course.transitions),
        heat,
        sum(transition.energy_loss for transition in course.transitions),
        _small_energy(course),
    )


def peaks(course: Course) -> Peaks:
    """The extremes of a course: speeds on its dense output, torques at its states."""
    train = course.train
    speed = np.abs([kept.v for kept in course.kept]).max(axis=0)
    within = np.abs(course.moving.rates(_FINE)).max(axis=(0, 1), initial=0.0)
    speed = np.where(course.simple, np.maximum(speed, within), speed)
    solved = [_solved(course, kept) for kept in course.kept]
    a, beside, behind, pinned = (np.array(values) for values in zip(*solved, strict=True))
    torque = np.abs(beside + behind + pinned).max(axis=0)
    # The gear also turns the rotor of a gear without losses, which is in the mass matrix.
    # What the brake at the joint itself holds does not pass the gear.
    follow = np.array([phase.follow for phase in course.phases])[[one.phase for one in course.kept]]
    held = np.where((train.joint_brake[1] > 0) & ~follow, 0.0, pinned)
    carried = behind + held - (train.reflected - train.lossy) * a
    return Peaks(speed, torque, np.abs(carried).max(axis=0))


def _solved(course: Course, kept: Kept) -> Solved:
    """The solution of the equations at a stored state."""
    if kept.solved is not None:
        return kept.solved
    course.equations.enter(course.phases[kept.phase])
    return course.equations.solve(kept.t, kept.q, kept.v)


def _nodes(course: Course) -> _Nodes:
    """Points of quadrature in all steps in which something moves."""
    kept, moving = course.kept, course.moving
    # The state after a step is in the phase of the step; one at the start of a phase in the next.
    phases = [course.phases[kept[k].phase] for k in moving.steps]

    def stacked(values: list[Any]) -> Any:
        return np.array(values).reshape(len(phases), course.robot.nv)

    h = moving.h[:, None, None]
    v = moving.rates(NODES) if course.manifold.flat else moving.nodes[1]
    t = np.array([kept[k].t for k in moving.steps]).reshape(-1, 1, 1) + NODES[:, None] * h
    sliding = [phase.sliding for phase in phases]
    return _Nodes(
        moving.steps, t, v, WEIGHTS[:, None] * h,
        Sliding(
            stacked([one.direction for one in sliding])[:, None],
            stacked([one.pull for one in sliding])[:, None],
            np.array([one.start for one in sliding]).reshape(-1, 1, 1),
            stacked([one.ramp for one in sliding])[:, None],
            stacked([one.slope for one in sliding])[:, None],
            stacked([one.drives for one in sliding])[:, None],
            np.array([one.limited for one in sliding], dtype=bool).reshape(-1, 1, 1),
            np.array([one.shorted for one in sliding], dtype=bool).reshape(-1, 1, 1),
        ),
    )  # fmt: skip


def _behind_gears(course: Course, nodes: _Nodes) -> tuple[Array, Array]:
    """Powers lost in gears, and powers of drives that follow: these take the accelerations."""
    lost, following = np.zeros(nodes.v.shape), np.zeros(nodes.v.shape)
    train, equations = course.train, course.equations
    phases = [course.phases[course.kept[k].phase] for k in nodes.steps]
    rows = [k for k, one in enumerate(phases) if train.has_losses or one.follow.any()]
    if not rows:
        return lost, following
    q, v = (states[rows] for states in course.moving.nodes)
    solved = []
    for row, *states in zip(rows, q, v, strict=True):
        equations.enter(phases[row])
        times = nodes.t[row, :, 0].tolist()
        solved += [equations.solve(t, *one) for t, *one in zip(times, *states, strict=True)]
    a, behind, pinned = (
        np.array([getattr(one, name) for one in solved]).reshape(v.shape)
        for name in ("a", "behind", "pinned")
    )
    sliding, follow = nodes.sliding.at(rows), np.array([phases[k].follow for k in rows])[:, None]
    behind = behind + np.where(follow, pinned, 0.0)
    before = train.before_gear(behind, sliding.direction)
    drive = train.driven(nodes.t[rows], sliding, before, a) - train.shorted(v, sliding)
    lost[rows], following[rows] = (before - behind) * v, np.where(follow, drive * v, 0.0)
    return lost, following


def _small_energy(course: Course) -> float:
    """A billionth of what lifting the robot by its length takes [J]."""
    model = course.robot.model
    mass = sum(inertia.mass for inertia in model.inertias)
    return float(1e-9 * max(mass, 1e-9) * 9.81 * course.robot.length)


def energies_at(course: Course, q: Array, v: Array) -> tuple[float, float]:
    """Kinetic energy with all rotors, and potential energy [J]."""
    kinetic, potential, _ = course.equations.equations.energies(0.0, q, v)
    return kinetic + 0.5 * float(v @ (course.train.lossy * v)), potential
