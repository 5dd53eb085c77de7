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

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ...boundary.marks import Array
from ...integrate import FINE
from ...model.mechanism import Mechanism
from ...simulation.accuracy import Accuracy, step_worth
from ...simulation.stabilization import Projection
from ...tolerances import LEAST_MASS, NO_ENERGY, PEAK, WORK
from .drivetrain import Drivetrain, Sliding
from .history import Pieces, StopHistory
from .stop_equations import Solved, StopEquations

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


SINKS = ("brake", "dry friction", "viscous friction", "short circuit", "gear losses")


def measure_loads(history: StopHistory, equations: StopEquations) -> Loads:
    """The loads in a stop."""
    nv, simple = history.robot.nv, history.train.single
    moving = history.moving
    pieces = moving.pieces
    follower = _Follower(history, equations)
    peaks = follower.peaks_of_states()
    small = small_energy(history.robot)
    floor = np.repeat([history.tiny, small, small], nv)
    work, whole = np.zeros((len(SINKS) + 1) * nv), 0.0
    for halving in range(_HALVINGS + 1):
        if not pieces.rows.size:
            break
        sizes, powers = follower.follow(pieces)
        # Speeds of joints in space mean nothing per coordinate.
        sizes[..., :nv] *= simple
        times = (moving.h[pieces.rows] * pieces.width)[:, None]
        whole = whole or max(float((times * (FINE.weights @ np.abs(powers))).sum()), small)
        largest, missed = np.abs(sizes).max(axis=1), FINE.missed(sizes)
        peaks = np.maximum(peaks, largest.max(axis=0))
        # No polynomial is larger than all its coefficients together: few have peaks.
        higher = np.abs(FINE.coefficients @ sizes).sum(axis=1) > peaks
        largest[higher] = FINE.largest(sizes.swapaxes(1, 2)[higher][..., None])[:, 0]
        resolved = missed <= PEAK * np.maximum(peaks, largest) + floor
        done = (resolved | (largest + missed <= peaks + floor)).all(axis=1)
        done &= (times * FINE.missed(powers)).max(axis=1) <= WORK * whole
        done |= halving == _HALVINGS
        peaks = np.maximum(peaks, largest[done].max(axis=0, initial=0.0))
        work += (times * (FINE.weights @ powers))[done].sum(axis=0)
        pieces = pieces.without(done).halves()
    speed, torque, gear = peaks.reshape(3, nv)
    *heat, drive = work.reshape(len(SINKS) + 1, nv)
    return Loads(speed, torque, gear, dict(zip(SINKS, heat, strict=True)), drive)


def small_energy(robot: Mechanism) -> float:
    """A billionth of what lifting a robot by its length takes [J]."""
    mass = pin.computeTotalMass(robot.model)
    return float(NO_ENERGY * max(mass, LEAST_MASS) * 9.81 * robot.length)


class _Follower:
    """Evaluates speeds, torques and powers inside the steps of a stop."""

    def __init__(self, history: StopHistory, equations: StopEquations) -> None:
        self._history, self._equations = history, equations
        self._at_states = self._solve_states()
        steps, mode = history.moving.steps, history.run.mode
        # The state after a step is in the phase of the step; one at the start of a phase in the
        # next.
        self._ends = (
            (0.0, steps, mode[steps] >= 0),
            (1.0, steps + 1, mode[steps + 1] == mode[steps]),
        )
        # Steps in one phase, on one branch.
        numbers: dict[tuple[int, int], int] = {}
        keys = [(mode[k], id(history.branch(k, inside=True))) for k in steps.tolist()]
        self._group = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.intp)
        self._sliding = _stack_sliding([phase.sliding for phase in history.phases]).at(mode[steps])
        self._follow = np.array([phase.follow for phase in history.phases])[mode[steps]]

    def _solve_states(self) -> Array:
        """Solutions of the equations at the stored states, shape (k, 4, nv)."""
        history, run = self._history, self._history.run
        keys = [(mode, id(history.branches[k])) for k, mode in enumerate(run.mode.tolist())]
        first, solutions = 0, []
        for last in range(1, len(keys) + 1):
            if last == len(keys) or keys[last] != keys[first]:
                history.enter(self._equations, first)
                part = slice(first, last)
                solutions.append(self._equations.solve_all(run.t[part], run.q[part], run.v[part]))
                first = last
        return np.concatenate(solutions)

    def peaks_of_states(self) -> Array:
        """Largest speeds, torques and torques of gears at the states, shape (3 nv,)."""
        history = self._history
        follow = np.array([phase.follow for phase in history.phases])[history.run.mode]
        solved = Solved(*self._at_states.swapaxes(0, 1))
        sizes = np.concatenate([history.run.v, *_torques(history.train, solved, follow)], axis=1)
        return np.asarray(np.abs(sizes).max(axis=0))

    def follow(self, pieces: Pieces) -> tuple[Array, Array]:
        """What happens at the points of the fine rule.

        Returns:
            Speeds, torques and torques of the gears, shape (k, g, 3 nv), and powers by sink, those
            of the drives last, shape (k, g, 6 nv).
        """
        train, rows, moving = self._history.train, pieces.rows, self._history.moving
        parts = pieces.parts(FINE.points)
        t = moving.start[rows, None] + parts * moving.h[rows, None]
        q, v = moving.inside(rows, parts)
        solutions = self._solve(rows, parts, t, q, v)
        solved = Solved(*np.moveaxis(solutions, -2, 0))
        sliding, follow, t = self._sliding.at(rows), self._follow[rows, None], t[..., None]
        torque, gear = _torques(train, solved, follow)
        powers = sink_torques(train, sliding, follow, (t, q, v), solved) * v
        return np.concatenate([v, torque, gear], axis=-1), np.concatenate([*powers], axis=-1)

    def _solve(self, rows: NDArray[np.intp], parts: Array, t: Array, q: Array, v: Array) -> Array:
        """Solutions of the equations at states inside steps, shape (k, g, 4, nv)."""
        steps, new = self._history.moving.steps, np.ones(parts.shape, dtype=bool)
        solutions = np.empty((*parts.shape, *self._at_states.shape[1:]))
        for part, ends, same in self._ends:
            piece, point = ((parts == part) & same[rows, None]).nonzero()
            solutions[piece, point] = self._at_states[ends[rows[piece]]]
            new[piece, point] = False
        for group in np.unique(self._group[rows]).tolist():
            at = new & (self._group[rows] == group)[:, None]
            first = int(steps[np.argmax(self._group == group)])
            self._history.enter(self._equations, first, inside=True)
            solutions[at] = self._equations.solve_all(t[at], q[at], v[at])
        return solutions


def sink_torques(
    train: Drivetrain,
    sliding: Sliding,
    follow: NDArray[np.bool_],
    at: tuple[float | Array, Array, Array],
    solved: Solved,
) -> Array:
    """Torques against the motion by sink, those of the drives last, shape (6, ..., nv).

    Args:
        train: brakes, gears, friction, drives.
        sliding: what slides, in which direction.
        follow: mask of the coordinates that follow their drives.
        at: time [s], configuration, shape (..., nq), and velocity, shape (..., nv).
        solved: solutions of the equations there.
    """
    v, (joint, motor) = at[2], train.sliding_brake(*at, sliding, follow)
    gear_output = solved.gear_output + np.where(follow, solved.holding_torque, 0.0)
    before = train.before_gear(gear_output, sliding.direction)
    shorted, dragged = train.shorted(v, sliding), train.dragged(sliding)
    drive = np.where(follow, train.driven(motor, sliding, before, solved.a) - shorted, dragged)
    torques = [
        sliding.direction * (joint + motor),
        sliding.direction * train.friction(v),
        -train.viscous(v),
        -shorted,
        before - gear_output,
        drive,
    ]
    return np.array([np.broadcast_to(torque, v.shape) for torque in torques])


def _torques(train: Drivetrain, solved: Solved, follow: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Torques of all that acts at the joints, and those that the gears carry, shapes (..., nv).

    ``solved``: solutions of the equations, of arrays of shape (..., nv). ``follow``: masks of the
    coordinates that follow their drives, shape (..., nv).
    """
    # The gear also turns the rotor of a gear without losses, which is in the mass matrix.
    # What the brake at the joint itself holds does not pass the gear.
    held = np.where((train.joint_brake[1] > 0) & ~follow, 0.0, solved.holding_torque)
    gear = solved.gear_output + held - (train.reflected - train.lossy) * solved.a
    return solved.torque, gear


def _stack_sliding(sliding: list[Sliding]) -> Sliding:
    """What stays the same in many phases, one after another along the first axis, (k, 1, nv)."""
    count = len(sliding)
    every = [np.array([getattr(x, field.name) for x in sliding]) for field in fields(Sliding)]
    return Sliding(*(x.reshape(count, 1, x.size // max(count, 1)) for x in every))


CLOSURE = 1e-4
"""Part of the energy turned over that stops may miss, whatever the error of their steps is."""
_NOTHING = 1e3
"""So many small energies are nothing to speak of where hardly anything moves."""


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
        exchanged: largest kinetic energy on the way; change of potential energy if that is larger.
        small: an energy that is nothing for this robot.
    """

    kinetic_before: float
    kinetic_after: float
    potential_drop: float
    drive_work: float
    dissipated: dict[str, Array]
    impacts: float
    exchanged: float
    small: float

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
    def turned_over(self) -> float:
        """The largest of the energies: what falls or swings has more on the way than before."""
        return max(self.exchanged, self.heat, abs(self.drive_work), self.impacts, self.small)

    @property
    def relative_error(self) -> float:
        """Size of the error over the energy turned over."""
        return abs(self.error) / self.turned_over


def energy_ledger(history: StopHistory, equations: StopEquations, loads: Loads) -> Ledger:
    """The ledger of a stop and of its loads."""
    run = history.run
    kinetic, potential = energies_along(equations, run.q, run.v)
    return Ledger(
        float(kinetic[0]),
        float(kinetic[-1]),
        float(potential[0] - potential[-1]),
        float(loads.drive.sum()) + sum(change.drive_work for change in run.transitions),
        loads.heat,
        sum(change.energy_loss for change in run.transitions),
        max(float(kinetic.max()), float(np.ptp(potential))),
        small_energy(history.robot),
    )


def energies_along(equations: StopEquations, q: Array, v: Array) -> tuple[Array, Array]:
    """Kinetic energies with all rotors, and potential energies, at some states [J], shape (k,)."""
    robot = equations.equations.robot
    with robot.workspace() as data:
        potential = [pin.computePotentialEnergy(robot.model, data, x) for x in q]
        masses = np.array([pin.crba(robot.model, data, x) for x in q])  # their upper triangles
    upper = np.triu(np.ones(masses.shape[1:])) - 0.5 * np.eye(robot.nv)
    kinetic = np.einsum("ki,kij,kj->k", v, upper * masses, v)
    return kinetic + 0.5 * v**2 @ equations.train.lossy, np.array(potential)


def explained_error(history: StopHistory, ledger: Ledger) -> float:
    """Energy that a healthy stop may miss [J]: what the tolerances of its steps are worth.

    At most a share of the energy turned over: beside singular poses forces have no bound, nor has
    what errors of the state are worth there. Of fixed steps no error is known.
    """
    run, least = history.run, _NOTHING * ledger.small
    if history.method.step is not None:
        return max(CLOSURE * ledger.turned_over, least)
    accuracy = Accuracy(history.method, len(run.t), Projection().tol)
    lossy, system = history.train.lossy, history.equations().equations.system
    worth = 0.0
    for t, q, v, a in zip(run.t[1:], run.q[1:], run.v[1:], run.a[1:], strict=True):
        if not (v.any() or a.any()):
            continue
        M, f, *_ = system(float(t), q, v)
        inertia = M @ a + lossy * a
        # Brakes, drives and loops make the difference between what acts and what accelerates.
        forces = np.abs(f) + np.abs(inertia) + np.abs(inertia - f)
        worth += step_worth(history.robot, accuracy, v, M @ v + lossy * v, forces)
    return max(min(worth, CLOSURE * ledger.turned_over), least)
