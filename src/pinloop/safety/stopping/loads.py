"""What joints and gears feel in a stop, and where its energy goes, between the states as well.

Along the dense output of each step torques and powers are functions of time, by the equations of
the phase. They are followed by polynomials, on pieces so short that nothing of note is missed:
peaks are extrema of these, energies integrals.

A bound of what is missed: inertia, gravity and the terms of motion are trigonometric polynomials of
the second order in each angle. On a piece in which the angles of all joints together turn by
``w``, interpolation of order n is off by at most ``2 (w/2)^(n+1) / (n+1)!`` of the largest value
that these terms can have (Bernstein's inequality): 6e-6 for n = 8 and w = 2 rad, with which it
begins. Loops, rates of their own and losses come on top; for them pieces are halved until the last
coefficients are small.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...integrate import COARSE, FINE, Interpolation
from .drivetrain import Drivetrain, Sliding
from .moving_steps import Moving, Pieces, moving_steps
from .simulation import StopSimulation, StoredState
from .stop_equations import Solved

__all__ = ["Loads", "loads_of", "small_energy"]

Array = NDArray[np.float64]

_PEAK = 1e-6
"""Part of a peak that the last coefficients may be."""
_WORK = 2e-8
"""Part of all energy turned over that the last coefficients of a power may be in a piece."""
_HALVINGS = 24
"""How often a piece is halved, at most: around kinks and jumps it would never end."""


@dataclass(frozen=True, eq=False)
class Loads:
    """Extremes and integrals over a stop, per velocity coordinate, shape (nv,).

    Args:
        speed: largest speed [rad/s, m/s].
        torque: largest torque of brake, friction, gear and drive together [N m, N].
        gear: largest torque that the gear carries, behind it [N m, N].
        heat: what became heat [J], by sink: "brake", "dry friction", "viscous friction",
            "short circuit", "gear losses".
        drive: work of the drives [J].
    """

    speed: Array
    torque: Array
    gear: Array
    heat: dict[str, Array]
    drive: Array


_SINKS = ("brake", "dry friction", "viscous friction", "short circuit", "gear losses")


def loads_of(course: StopSimulation) -> Loads:
    """The loads of a course that has ended."""
    nv, simple = course.robot.nv, course.train.single
    moving = moving_steps(course)
    pieces = moving.pieces
    follower = _Follower(course, moving)
    peaks = follower.peaks_of_states()
    small = small_energy(course)
    floor = np.repeat([course.tiny, small, small], nv)
    work, whole = np.zeros((len(_SINKS) + 1) * nv), 0.0
    for halving in range(_HALVINGS + 1):
        for rule in (COARSE, FINE):
            if len(pieces.rows) == 0:
                break
            sizes, powers = follower.follow(pieces, rule)
            # Speeds of joints in space mean nothing per coordinate.
            sizes[..., :nv] *= simple
            times = (moving.h[pieces.rows] * pieces.width)[:, None]
            whole = whole or max(float((times * (rule.weights @ np.abs(powers))).sum()), small)
            largest, missed = rule.largest(sizes), rule.missed(sizes)
            peaks = np.maximum(peaks, np.abs(sizes).max(axis=(0, 1)))
            resolved = missed <= _PEAK * np.maximum(peaks, largest) + floor
            done = (resolved | (largest + missed <= peaks + floor)).all(axis=1)
            done &= (times * rule.missed(powers)).max(axis=1) <= _WORK * whole
            if halving == _HALVINGS and rule is FINE:
                done[:] = True
            peaks = np.maximum(peaks, largest[done].max(axis=0, initial=0.0))
            work += (times * (rule.weights @ powers))[done].sum(axis=0)
            pieces = pieces.without(done)
        pieces = pieces.halves()
    speed, torque, gear = peaks.reshape(3, nv)
    *heat, drive = work.reshape(-1, nv)
    return Loads(speed, torque, gear, dict(zip(_SINKS, heat, strict=True)), drive)


def small_energy(course: StopSimulation) -> float:
    """A billionth of what lifting the robot by its length takes [J]."""
    model = course.robot.model
    mass = sum(inertia.mass for inertia in model.inertias)
    return float(1e-9 * max(mass, 1e-9) * 9.81 * course.robot.length)


class _Follower:
    """Evaluates speeds, torques and powers inside the steps of a course.

    Args:
        course: the course, which has ended.
        moving: its steps in which something moves.
    """

    def __init__(self, course: StopSimulation, moving: Moving) -> None:
        self._course, self._moving = course, moving
        self._solved: dict[tuple[int, float], Solved] = {}
        steps = moving.steps.tolist()
        # The state after a step is in the phase of the step; one at the start of a phase in the
        # next.
        self._phases = [course.phases[course.kept[k].phase] for k in steps]
        for row, k in enumerate(steps):
            for part, kept in ((0.0, course.kept[k]), (1.0, course.kept[k + 1])):
                if kept.solved is not None and kept.phase == course.kept[k].phase:
                    self._solved[row, part] = kept.solved
        self._starts = np.array([course.kept[k].t for k in steps])
        self._sliding = _stacked([phase.sliding for phase in self._phases])
        self._follow = np.array([phase.follow for phase in self._phases])

    def peaks_of_states(self) -> Array:
        """Largest speeds, torques and torques of gears at the states, shape (3 nv,)."""
        course = self._course
        follow = np.array([course.phases[kept.phase].follow for kept in course.kept])
        solved = [self._at_state(kept) for kept in course.kept]
        v = np.array([kept.v for kept in course.kept])
        sizes = np.concatenate([v, *_torques(course.train, solved, follow)], axis=1)
        return np.asarray(np.abs(sizes).max(axis=0))

    def follow(self, pieces: Pieces, rule: Interpolation) -> tuple[Array, Array]:
        """What happens at the points of a rule.

        Args:
            pieces: k pieces of steps.
            rule: a rule with g points.

        Returns:
            Speeds, torques and torques of the gears, shape (k, g, 3 nv), and powers by sink, those
            of the drives last, shape (k, g, 6 nv).
        """
        train, rows = self._course.train, pieces.rows
        parts = pieces.parts(rule.points)
        t = self._starts[rows, None] + parts * self._moving.h[rows, None]
        q, v = self._moving.inside(rows, parts)
        solved = self._solve(rows, parts, t, q, v)
        sliding, follow, t = self._sliding.at(rows), self._follow[rows, None], t[..., None]
        torques = _torques(
            train, solved, follow.repeat(len(rule.points), axis=1).reshape(-1, v.shape[-1])
        )
        torque, gear = (values.reshape(v.shape) for values in torques)
        a, gear_output, holding = (
            np.array([getattr(one, name) for one in solved]).reshape(v.shape)
            for name in ("a", "gear_output", "holding_torque")
        )
        gear_output = gear_output + np.where(follow, holding, 0.0)
        before = train.before_gear(gear_output, sliding.direction)
        shorted, dragged = train.shorted(v, sliding), train.dragged(sliding)
        drive = np.where(follow, train.driven(t, sliding, before, a) - shorted, dragged)
        brake = sliding.engaged(t) * (train.motor_brake[0] + train.joint_brake[0])
        taken = [
            sliding.direction * brake,
            sliding.direction * train.friction(v),
            -train.viscous(v),
            -shorted,
            before - gear_output,
            drive,
        ]
        powers = np.concatenate([one * v for one in taken], axis=-1)
        return np.concatenate([v, torque, gear], axis=-1), powers

    def _solve(
        self, rows: NDArray[np.intp], parts: Array, t: Array, q: Array, v: Array
    ) -> list[Solved]:
        """Solutions of the equations at states inside steps, in the order of these."""
        equations, found = self._course.equations, []
        for at, row in enumerate(rows.tolist()):
            equations.enter(self._phases[row])
            for k, part in enumerate(parts[at].tolist()):
                if (row, part) not in self._solved:
                    state = float(t[at, k]), q[at, k], v[at, k]
                    self._solved[row, part] = equations.solve(*state)
                found.append(self._solved[row, part])
        return found

    def _at_state(self, kept: StoredState) -> Solved:
        """The solution of the equations at a stored state."""
        if kept.solved is not None:
            return kept.solved
        equations = self._course.equations
        equations.enter(self._course.phases[kept.phase])
        return equations.solve(kept.t, kept.q, kept.v)


def _torques(
    train: Drivetrain, solved: list[Solved], follow: NDArray[np.bool_]
) -> tuple[Array, Array]:
    """Torques of all that acts at the joints, and those that the gears carry, shapes (k, nv).

    Args:
        train: brakes, gears, friction, drives.
        solved: solutions of the equations, k of them.
        follow: masks of the coordinates that follow their drives, shape (k, nv).
    """
    a, joint_side, gear_output, holding = (np.array(values) for values in zip(*solved, strict=True))
    # The gear also turns the rotor of a gear without losses, which is in the mass matrix.
    # What the brake at the joint itself holds does not pass the gear.
    held = np.where((train.joint_brake[1] > 0) & ~follow, 0.0, holding)
    return joint_side + gear_output + holding, gear_output + held - (
        train.reflected - train.lossy
    ) * a


def _stacked(sliding: list[Sliding]) -> Sliding:
    """What stays the same in many phases, one after another along the first axis, (k, 1, nv)."""

    def stacked(values: list[Any]) -> Any:
        array = np.array(values)
        return array.reshape(len(values), 1, array.size // max(len(values), 1))

    return Sliding(
        *(stacked([getattr(one, field.name) for one in sliding]) for field in fields(Sliding))
    )
