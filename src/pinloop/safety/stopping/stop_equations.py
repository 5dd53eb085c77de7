"""Accelerations while it is settled which joints stick, which follow their drives, which slide.

Their torques are a force on the trajectory, so that its energies and reactions are right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pinocchio as pin
import scipy

from ...boundary.marks import Array, Indices
from ...dynamics import EquationsOfMotion
from ...dynamics.forces import BoundForce, Force
from ...dynamics.kernel_tables import stop_dynamics
from ...dynamics.stick_slip import share_evenly, weight_of
from ...dynamics.stiffness import StiffMotion, fastest_decay
from ...integrate import NoBranch
from ...linalg.saddle import Saddle, solve_mass
from ...model.mechanism import Mechanism
from ...simulation.passages import Passage, State, open_passage
from ...tolerances import PIVOT_KEPT, RANK, TINY
from .drivetrain import Drivetrain
from .phase import Known, Phase, PhaseTables
from .prepared_robot import mount_robot

_NOTHING = 1e5
"""How many times its rounding what ends a phase need not be followed more closely."""


class Solved(NamedTuple):
    """Solution of the equations at one state.

    Args:
        a: acceleration, shape (nv,).
        joint_side: torque of what acts at the joints themselves, shape (nv,).
        gear_output: torque that the gears of what moves let through, shape (nv,).
        holding_torque: torque of what pins a coordinate, shape (nv,); losses act beside it.
    """

    a: Array
    joint_side: Array
    gear_output: Array
    holding_torque: Array

    @property
    def torque(self) -> Array:
        """What brakes, friction and drives exert on the joints, shape (nv,)."""
        return self.joint_side + self.gear_output + self.holding_torque


class StopEquations:
    """The equations of motion of a stopping robot, phase by phase.

    Args:
        equations: those of the robot, without forces.
        train: brakes, gears, friction, drives.
        known: tables of phases that have been entered, and of those that will be.
        passages: passages that have been opened, by time and velocity where they start.

    Attributes:
        weight: size of the weight of all bodies in the metric of the inverse of the mass matrix.
        tables: what follows from the phase that was entered last.
        known_tables: the same of all that have been entered.
        kernel: the kernel with the rows of the robot, if it can do these.
        in_kernel: the same if it solves the phase that was entered last.
        passage: the branch that is followed near a singular pose; None elsewhere.
        system: `EquationsOfMotion.system`, or that of the passage.
    """

    def __init__(
        self,
        equations: EquationsOfMotion,
        train: Drivetrain,
        known: dict[Phase, PhaseTables] | None = None,
        passages: dict[tuple[float, bytes], Passage] | None = None,
    ) -> None:
        self.equations, self.train = equations, train
        self._plain = equations.system_along_run()
        native = equations.wanted_engine == "native"
        self.kernel = stop_dynamics(equations.rows, equations.rank) if native else None
        self.passages = {} if passages is None else passages
        self._looked: dict[tuple[float, bytes, bytes], Passage | NoBranch] = {}
        self.follow(None)
        self.evaluations = 0
        self._seen: list[tuple[float, Array, Solved]] = []
        self._no_force = np.zeros(equations.robot.nv)
        self._has_losses = train.has_losses
        self.weight = weight_of(equations.robot.model)
        self._entered: Phase | None = None
        self.known_tables = {} if known is None else known
        self._start: tuple[Array, Solved] | None = None  # where the phase begins

    @property
    def phase(self) -> Phase:
        """The phase that was entered last."""
        assert self._entered is not None, "no phase was entered"
        return self._entered

    def follow(self, passage: Passage | None) -> None:
        """Follow a branch near a singular pose from now on, or the rows of the loops again."""
        self.passage = passage
        self.system = self._plain if passage is None else passage.system
        self._scale = self.equations.rows.scale if passage is None else None

    def leave_untold(self, t: float, q: Array, v: Array) -> None:
        """Follow the branch no longer if it does not tell how a state moves."""
        if self.passage is not None:
            try:
                self.passage.locate(t, q, v)
            except NoBranch:
                self.follow(None)

    def passage_from(self, start: State) -> Passage:
        """The passage that starts at a state."""
        t, q, v = start
        key = t, v.tobytes()
        if key not in self.passages:
            self.passages[key] = Passage(self.equations, t, q, v)
        return self.passages[key]

    def passage_of(self, t: float, q: Array, v: Array) -> Passage:
        """The branch of a state, see `open_passage`, which is looked for once."""
        state = t, q.tobytes(), v.tobytes()
        if state not in self._looked:
            try:
                passage = open_passage(self.equations, t, q, v)
                start = passage.start
                self.passages[start[0], start[2].tobytes()] = self._looked[state] = passage
            except NoBranch as why:
                self._looked[state] = why
        if isinstance(looked := self._looked[state], NoBranch):
            raise looked
        return looked

    def enter(self, phase: Phase, known: Known | None = None) -> None:
        """Let a phase begin, or go back to one that has been; ``known``: see `PhaseTables`."""
        if phase is self._entered:
            return
        self._entered, self._start = phase, None
        if phase not in self.known_tables:
            armature = self.equations.robot.model.armature
            self.known_tables[phase] = PhaseTables(self.train, phase, armature, known)
        at = self.tables = self.known_tables[phase]
        # Rows between what is pinned hold by themselves, and may leave torques open, as those of
        # fingers with a brake each. Others that do so depend on each other where nothing moves.
        looks = self.equations.rows.loops.coordinates
        self._held_rows = looks.dot(~phase.pinned).nonzero()[0].tolist()
        self._unique = len(self._held_rows) == len(looks)
        hard = phase.redundant and self._unique and len(looks) > 0
        self.in_kernel = None if hard or at.slide.fade is not None else self.kernel
        self._enter_kernel()

    def _enter_kernel(self) -> None:
        if self.in_kernel is not None:
            self.in_kernel.enter(self._held_rows, PIVOT_KEPT, 0, *self.tables.in_kernel)

    def lets_kernel_step(self, t: float, q: Array, v: Array) -> bool:
        """Whether the kernel takes the steps of the phase that was entered at a state.

        Where rows depend on each other it leaves out as many, if they may take over whatever holds
        what they touch: this never comes loose then.
        """
        if self.in_kernel is not None or self.kernel is None or self.tables.slide.fade is not None:
            return self.in_kernel is not None
        J, spare, untied = self.system(t, q, v)[2], 0, list[int]()
        for at, moves in self._redundant(J):
            spare += moves.shape[1]
            share = (np.linalg.qr(moves)[0] ** 2).sum(axis=1)
            if moves.shape[1] > len(at) or (np.abs(share - 0.5) < 0.5 - RANK).any():
                return False
            untied += at[share > 0.5].tolist()
        held, armature, torques, start, ends = self.tables.in_kernel
        ends = ends[~np.isin(ends[:, 0], 3 * len(v) + np.array(untied))]
        self.kernel.enter(self._held_rows, PIVOT_KEPT, spare, held, armature, torques, start, ends)
        return True

    def _redundant(self, J: Array) -> Iterator[tuple[Indices, Array]]:
        """What is pinned, in groups, and changes of its torques that cancel, shape (k, n)."""
        for rows in _separate((J != 0.0).tobytes(), len(J)):
            at = self.tables.held[(J[np.ix_(rows, self.tables.held)] != 0.0).any(axis=0)]
            _, values, V = np.linalg.svd(J[np.ix_(rows, self.tables.free)].T, full_matrices=True)
            rank = int(np.sum(values > RANK * np.abs(J[rows]).max(initial=TINY)))
            yield at, -(J[np.ix_(rows, at)].T @ V[rank:].T)

    def acceleration(self, t: float, q: Array, v: Array) -> Array:
        """Acceleration away from singular poses; it is kept in mind for `bound_violation`."""
        if self.passage is not None:
            self.follow(None)
        return self._accelerated(t, q, v)

    def acceleration_in(self, passage: Passage, t: float, q: Array, v: Array) -> Array:
        """The same on a branch near a singular pose; one that is told no further is left."""
        self.follow(passage)
        try:
            return self._accelerated(t, q, v)
        except NoBranch:
            self.follow(None)
            raise

    def settle(self, v: Array, solved: Solved) -> None:
        """Let the phase that was entered last go on with its noise, which is known by now.

        ``v``: velocity with which its motion begins. ``solved``: the solution there.
        """
        self.tables.settle()
        self._enter_kernel()
        self._start = v, solved

    def _accelerated(self, t: float, q: Array, v: Array) -> Array:
        start, self._start = self._start, None
        solved = start[1] if start and start[0] is v else self.solve(t, q, v)
        self._seen.append((t, v, solved))
        return solved.a

    def solution(self, a: Array) -> Solved | None:
        """What was solved for an acceleration since `forget`."""
        return next((solved for *_, solved in reversed(self._seen) if solved.a is a), None)

    def forget(self) -> None:
        """Let `bound_violation` look at what comes from now on: steps look at their own stages."""
        self._seen.clear()

    def bound_violation(self, between: float = 0.0) -> float:
        """How far the phase was beyond its end at all accelerations since `forget` [N m]."""
        if not self._seen or not self.tables.slack.size:
            return -np.inf
        t, v, solved = map(np.array, zip(*self._seen, strict=True))
        # Stages of a step that was far too long may be infinite, and say nothing.
        good = np.isfinite(v).all(axis=1) & np.isfinite(solved).all(axis=(1, 2))
        if not good.any():
            return -np.inf
        t, v, solved = t[good], v[good], solved[good]
        every = self.tables.violations(t[:, None], v, solved[:, 3], solved[:, 2])
        top = every.max(axis=0)
        bounded = np.isfinite(top)
        # Between states what grows evenly with time is between what it is there.
        uneven = (every - self.tables.growth(t[:, None]))[:, bounded]
        spread = uneven.max(axis=0) - uneven.min(axis=0)
        return float((top[bounded] + between * spread).max(initial=-np.inf))

    def solve_uniquely(self, t: float, q: Array, v: Array) -> tuple[Solved, Array] | None:
        """Solution and reactions of the rows by the kernel; None if other torques may hold, too."""
        if self.passage is not None or not self._unique:
            return None
        solved = self._solve_natively(t, q, v, self.tables.given(t))
        if solved is None:
            return None
        self.evaluations += 1
        assert self.kernel is not None
        return solved, np.array(self.kernel.multipliers)

    def _solve_natively(self, t: float, q: Array, v: Array, given: Array) -> Solved | None:
        """`solve` by the kernel, by all rows; None where it does not."""
        if self.in_kernel is None:
            return None
        solutions = np.empty((1, 4, len(v)))
        if self.in_kernel.solve_all(np.array([t]), q[None], v[None], given[None], solutions):
            return Solved(*solutions[0])
        return None

    def solve(self, t: float, q: Array, v: Array) -> Solved:
        """Acceleration and torques."""
        self.evaluations += 1
        at, given, passage, here = self.tables, self.tables.given(t), self.passage, None
        if passage is not None:
            here = passage.locate(t, q, v)
            q, v = here.q, here.v
        tell = here is None or here.is_regular  # the rows of the loops
        if tell and (solved := self._solve_natively(t, q, v, given)):
            return solved
        known = passage.system_at(t, here) if passage and here else self._plain(t, q, v)
        M, f, J, gamma, cap = known
        joint_side, before = at.slide.torques(t, q, v)
        a = given.copy()
        applied = f + joint_side
        gear_output, rotors = before, at.rotors
        if self._has_losses:
            gain = at.gain(before)
            gear_output = gain * before
            heavier = (gain * self.train.lossy)[rotors]
            M[rotors, rotors] += heavier
        loops = self._accelerate(M, applied + gear_output, J, gamma, cap, a)
        if rotors.size:
            gear_output[rotors] -= heavier * a[rotors]
        holding = self._no_force
        if at.held.size:
            holding = M @ a - applied
            if J.size:
                holding -= loops
            holding[at.free] = 0.0
        return Solved(a, joint_side, gear_output, holding)

    def solve_all(self, t: Array, q: Array, v: Array) -> Array:
        """The same at many states, shapes (k,), (k, nq) and (k, nv); shape (k, 4, nv)."""
        solutions, first, times = np.empty((len(t), 4, v.shape[1])), 0, t.tolist()
        if self.in_kernel is not None and self.passage is None:
            given = np.array([*map(self.tables.given, times)])
            first = self.in_kernel.solve_all(t, q, v, given, solutions)
            self.evaluations += first
        for k in range(first, len(times)):
            solutions[k] = self._solve_inside(times[k], q[k], v[k])
        return solutions

    def _solve_inside(self, t: float, q: Array, v: Array) -> Solved:
        """`solve` inside a step: its branch, known at its stages, may not be known there."""
        passage = self.passage
        try:
            return self.solve(t, q, v)
        except NoBranch:
            self.follow(None)
            return self.solve(t, q, v)
        finally:
            self.follow(passage)

    def passed(self, t: float, q: Array, v: Array) -> Array:
        """How far all that may end the phase is from doing so [N m]; positive once it should have.

        It ends when a joint that is pinned comes loose, or when the power in a gear turns round.
        """
        solved = self._solve_inside(t, q, v)
        torque, output = solved.holding_torque, solved.gear_output
        violations = self.tables.violations(t, v, torque, output)
        if self.phase.redundant and violations[: 2 * len(self.tables.held)].max() > 0.0:
            # Others may fit where these do not.
            torque = self._balanced(t, q, v, solved)
            violations = self.tables.violations(t, v, torque, output)
        return violations

    @property
    def bounded(self) -> bool:
        """Whether there is anything that ends the phase."""
        return bool(self.tables.slack.size)

    @property
    def accuracy(self) -> Array:
        """What of each of these is nothing [N m]; far more than its rounding."""
        return np.asarray(_NOTHING * self.tables.slack)

    def stiffest_damping(self, t: float, q: Array, v: Array) -> StiffMotion | None:
        """What brings the fastest motion of what is not pinned to rest; None without damping."""
        parts = self.train.dampings(self.phase.sliding)
        if not parts:
            return None
        M, _, J, _, _ = self.system(t, q, v)
        if self._scale is not None:
            J = self._scale[:, None] * J
        rows = np.vstack([J, np.eye(len(v))[self.tables.held]])
        return fastest_decay(self.equations.robot, self.train.with_rotors(M), rows, parts)

    def breaking_away(self, t: float, q: Array, v: Array) -> Array:
        """How far what is pinned is beyond its bounds [N m], shape (nv,): ahead or back as it goes.

        Zero where that is rounding.
        """
        solved = self.solve(t, q, v)
        low, high = self.tables.bounds(t, v)
        torque = self._balanced(t, q, v, solved) if self.phase.redundant else solved.holding_torque
        beyond = np.maximum(low - torque, 0.0) - np.maximum(torque - high, 0.0)
        return np.where(self.phase.pinned & (np.abs(beyond) > self.phase.noise), beyond, 0.0)

    def reversing_gears(self, t: float, q: Array, v: Array) -> dict[int, int]:
        """Coordinates in whose gear the power turns round, with the new sign of its torque."""
        if not len(self.tables.rotors):
            return {}
        sign, noise = self.phase.gear_power_sign, self.phase.noise
        reverse = -sign * self.solve(t, q, v).gear_output
        return {int(i): -int(sign[i]) for i in self.tables.rotors if reverse[i] > noise[i]}

    def _balanced(self, t: float, q: Array, v: Array, solved: Solved) -> Array:
        """Torques that are not unique, within their bounds if they can be.

        Those nearest to the middles of their bounds need no linear program, and mostly are.
        """
        J = self.system(t, q, v)[2]
        torque, (low, high) = solved.holding_torque.copy(), self.tables.bounds(t, v)
        for at, moves in self._redundant(J):
            if moves.size:
                ends = high[at] - torque[at], torque[at] - low[at]
                torque[at] += _shared(moves, *ends, self.phase.noise[at])
        return torque

    def _accelerate(
        self, M: Array, f: Array, J: Array, gamma: Array, cap: int | None, a: Array
    ) -> Array:
        """Solve for the coordinates that are not pinned, fill ``a``, return ``J' lam``."""
        free, held = self.tables.free, self.tables.held
        inertia, rest = (
            M.take(self.tables.free_free),
            f[free] - M.take(self.tables.free_held) @ a[held],
        )
        if not (J.size and free.size):
            a[free] = solve_mass(inertia, rest)
            return self._no_force
        part = Saddle(inertia, J[:, free], self._scale, max_rank=cap)
        a[free], lam = part.solve(rest, -gamma - J[:, held] @ a[held])
        return J.T @ lam


@lru_cache(maxsize=64)
def _separate(pattern: bytes, count: int) -> tuple[Indices, ...]:
    """Rows in groups that have no coordinate in common, by which entries are not zero.

    What is shared in one group is nothing to the others, and mostly one number.
    """
    entries = np.frombuffer(pattern, dtype=bool).reshape(count, -1)
    groups = scipy.sparse.csgraph.connected_components(entries.astype(int) @ entries.T)[1]
    return tuple(np.flatnonzero(groups == group) for group in range(max(groups, default=-1) + 1))


def _shared(moves: Array, above: Array, below: Array, noise: Array) -> Array:
    """By how much torques that are not unique change, to be within their bounds if they can be.

    Args:
        moves: changes that cancel each other, shape (k, n).
        above: how far torques are from their upper bounds.
        below: how far they are from the lower ones.
        noise: their rounding error.
    """
    weight = 1.0 / np.maximum(above + below, noise)
    middle = np.zeros(len(weight))
    np.subtract(above, below, out=middle, where=weight > 0.0)
    change = moves @ np.linalg.lstsq(weight[:, None] * moves, weight * middle / 2.0)[0]
    if np.all(change <= above) and np.all(-change <= below):
        return np.asarray(change)
    finite = np.isfinite(above), np.isfinite(below)
    A = np.vstack([moves[finite[0]], -moves[finite[1]]])
    room = np.concatenate([above[finite[0]], below[finite[1]]])
    return np.asarray(moves @ share_evenly(A, room))


@dataclass(frozen=True, eq=False)
class StopTorque(Force):
    """What brakes, friction, gears and drives exert on the joints in one phase of a stop.

    What holds the joints that stick is left out: on the trajectory these are locked, and the
    reaction of the lock is that torque.
    """

    train: Drivetrain
    phase: Phase

    def bind(self, robot: Mechanism) -> BoundForce:
        """The force on the robot of the trajectory, whose mass matrix has all rotors."""
        return _BoundStopTorque(self, robot)


class _BoundStopTorque(BoundForce):
    def __init__(self, given: StopTorque, robot: Mechanism) -> None:
        self.name, self._given, self._robot = "brakes, friction, drives", given, robot
        train = given.train
        # In the stop, rotors behind gears with losses are torques; in a trajectory they are masses.
        robot = mount_robot(robot, train.reflected - train.lossy, None, None)
        self._equations = StopEquations(EquationsOfMotion(robot), train)
        self._equations.enter(given.phase)

    def __reduce__(self) -> tuple[type[_BoundStopTorque], tuple[StopTorque, Mechanism]]:
        return _BoundStopTorque, (self._given, self._robot)

    def torque(self, t: float, q: Array, v: Array, data: pin.Data) -> Array:
        solved = self._equations.solve(t, q, v)
        torque = solved.torque + self._given.train.lossy * solved.a
        torque[self._given.phase.stuck] = 0.0
        return torque
