"""Accelerations while it is settled which joints stick, which follow their drives, which slide.

Their torques are a force on the trajectory, so that its energies and reactions are right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from ...boundary.marks import Array
from ...dynamics import EquationsOfMotion
from ...dynamics.forces import BoundForce, Force
from ...dynamics.stick_slip import RELEASE, share_evenly, weight_of
from ...dynamics.stiffness import StiffMotion, fastest_decay, way_out
from ...integrate import MuntheKaas, StepFailed
from ...linalg.saddle import Saddle, solve_mass
from ...model.mechanism import Mechanism
from ...simulation.initial_state import meeting
from ...simulation.passages import Passage, State
from ...tables.number_format import listed
from ...tolerances import RANK, TINY
from .phase import Phase, pinned_bounds
from .prepared_robot import Drivetrain, mount_robot

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

    Attributes:
        weight: size of the weight of all bodies in the metric of the inverse of the mass matrix.
        passage: the branch that is followed near a singular pose; None elsewhere.
        system: `EquationsOfMotion.system`, or that of the passage.
    """

    def __init__(self, equations: EquationsOfMotion, train: Drivetrain) -> None:
        self.equations, self.train = equations, train
        self._plain = equations.system_along_run()
        self._passages: dict[tuple[float, bytes], Passage] = {}
        self.follow(None)
        self.evaluations = 0
        self._seen: list[tuple[float, Array, Solved]] = []
        self._no_force = np.zeros(equations.robot.nv)
        self._has_losses = train.has_losses
        self.weight = weight_of(equations.robot.model)
        self._entered: Phase | None = None

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

    def passage_from(self, start: State) -> Passage:
        """The passage that starts at a state."""
        t, q, v = start
        key = t, v.tobytes()
        if key not in self._passages:
            self._passages[key] = Passage(self.equations, t, q, v)
        return self._passages[key]

    def enter(self, phase: Phase) -> None:
        """Let a phase begin, or go back to one that has been."""
        if phase is self._entered:
            return
        self._entered = phase
        pinned = phase.pinned
        self._free, self._held = (~pinned).nonzero()[0], pinned.nonzero()[0]
        self._rotors = phase.gear_power_sign.nonzero()[0]
        columns = np.concatenate([self._held, self._held, self._rotors])
        self._slack = RELEASE * phase.noise[columns]
        self._follows = bool(phase.follow.any())
        self._slide = self.train.sliding_torques(phase.sliding)
        for part in (self._slide.rest, self._slide.rate, self._slide.viscous):
            if part is not None:
                part[1, self._held] = 0.0  # what pins a coordinate acts instead, whatever it takes
        # What holds grows with its brake, and so linearly in time; not so if drives follow, or a
        # drive pulls against a brake through a gear with losses.
        saturated = self.train.has_losses and bool(
            (phase.sliding.saturated_drive_sign[self._held] != 0.0).any()
        )
        self._linear = not self._follows and not saturated
        self._limits: tuple[Array, Array, Array | None, Array | None] | None = None
        n = len(pinned)
        self._free_free = self._free[:, None] * n + self._free
        self._free_held = self._free[:, None] * n + self._held

    def acceleration(self, t: float, q: Array, v: Array) -> Array:
        """Acceleration away from singular poses; it is kept in mind for `bound_violation`."""
        if self.passage is not None:
            self.follow(None)
        return self._accelerated(t, q, v)

    def acceleration_in(self, passage: Passage, t: float, q: Array, v: Array) -> Array:
        """The same on a branch near a singular pose."""
        self.follow(passage)
        return self._accelerated(t, q, v)

    def _accelerated(self, t: float, q: Array, v: Array) -> Array:
        solved = self.solve(t, q, v)
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
        if not self._seen or not self._slack.size:
            return -np.inf
        t, v, solved = zip(*self._seen, strict=True)
        _, _, output, torque = (np.array(values) for values in zip(*solved, strict=True))
        # Bounds that are linear in time do not ask for speeds.
        speeds = v[0] if self._linear else np.array(v)
        every = self._violations(np.array(t)[:, None], speeds, torque, output)
        top = every.max(axis=0)
        bounded = np.isfinite(top)
        top = top[bounded]
        spread = top - every.min(axis=0)[bounded]
        return float((top + between * spread).max(initial=-np.inf))

    def solve(self, t: float, q: Array, v: Array) -> Solved:
        """Acceleration and torques."""
        self.evaluations += 1
        M, f, J, gamma, cap = self.system(t, q, v)
        joint_side, before = self._slide.torques(t, v)
        a = self._no_force.copy()
        if self._follows:
            a[self.phase.follow] = self.phase.piece.a(t)[self.phase.follow]
        applied = f + joint_side
        gear_output, rotors = before, self._rotors
        if self._has_losses:
            gain = self._gain(before)
            gear_output = gain * before
            heavier = (gain * self.train.lossy)[rotors]
            M[rotors, rotors] += heavier
        loops = self._accelerate(M, applied + gear_output, J, gamma, cap, a)
        if rotors.size:
            gear_output[rotors] -= heavier * a[rotors]
        holding = self._no_force
        if self._held.size:
            holding = M @ a - applied
            if J.size:
                holding -= loops
            holding[self._free] = 0.0
        return Solved(a, joint_side, gear_output, holding)

    def bounds(self, t: float | Array, v: Array) -> tuple[Array, Array]:
        """Least and largest torque of what pins a coordinate, shape (nv,).

        ``t``: time [s], or several of shape (k, 1). ``v``: velocity, shape (nv,), or (k, nv).
        """
        if not self._linear:
            return pinned_bounds(self.train, self.phase, t, v)
        if self._limits is None:
            self._limits = self._limits_over_time()
        low, high, low_rate, high_rate = self._limits
        if low_rate is None or high_rate is None:
            return low, high
        later = t - self._slide.start
        return low + low_rate * later, high + high_rate * later

    def _limits_over_time(self) -> tuple[Array, Array, Array | None, Array | None]:
        """Bounds at the start of the phase, and their rates; None if they stay."""
        start, rest = self._slide.start, self._no_force
        now = pinned_bounds(self.train, self.phase, start, rest)
        if not self.phase.sliding.slope[self._held].any():
            return *now, None, None
        second = pinned_bounds(self.train, self.phase, start + 1.0, rest)
        low_rate, high_rate = (
            np.subtract(then, first, out=np.zeros_like(first), where=np.isfinite(first))
            for first, then in zip(now, second, strict=True)
        )
        return *now, low_rate, high_rate

    def passed(self, t: float, q: Array, v: Array) -> Array:
        """How far all that may end the phase is from doing so [N m]; positive once it should have.

        It ends when a joint that is pinned comes loose, or when the power in a gear turns round.
        """
        solved = self.solve(t, q, v)
        torque, output = solved.holding_torque, solved.gear_output
        violations = self._violations(t, v, torque, output)
        if self.phase.redundant and violations[: 2 * len(self._held)].max() > 0.0:
            # Others may fit where these do not.
            torque = self._balanced(t, q, v, solved)
            violations = self._violations(t, v, torque, output)
        return violations

    @property
    def bounded(self) -> bool:
        """Whether there is anything that ends the phase."""
        return bool(self._slack.size)

    @property
    def accuracy(self) -> Array:
        """What of each of these is nothing [N m]; far more than its rounding."""
        return np.asarray(_NOTHING * self._slack)

    def stiffest_damping(self, t: float, q: Array, v: Array) -> StiffMotion | None:
        """What brings the fastest motion of what is not pinned to rest; None without damping."""
        parts = self.train.dampings(self.phase.sliding)
        if not parts:
            return None
        M, _, J, _, _ = self.system(t, q, v)
        if self._scale is not None:
            J = self._scale[:, None] * J
        rows = np.vstack([J, np.eye(len(v))[self._held]])
        return fastest_decay(self.equations.robot, M + np.diag(self.train.lossy), rows, parts)

    def breaking_away(self, t: float, q: Array, v: Array) -> Array:
        """How far what is pinned is beyond its bounds [N m], shape (nv,): ahead or back as it goes.

        Zero where that is rounding.
        """
        solved = self.solve(t, q, v)
        low, high = self.bounds(t, v)
        torque = self._balanced(t, q, v, solved) if self.phase.redundant else solved.holding_torque
        beyond = np.maximum(low - torque, 0.0) - np.maximum(torque - high, 0.0)
        return np.where(self.phase.pinned & (np.abs(beyond) > self.phase.noise), beyond, 0.0)

    def reversing_gears(self, t: float, q: Array, v: Array) -> dict[int, int]:
        """Coordinates in whose gear the power turns round, with the new sign of its torque."""
        if not len(self._rotors):
            return {}
        sign, noise = self.phase.gear_power_sign, self.phase.noise
        reverse = -sign * self.solve(t, q, v).gear_output
        return {int(i): -int(sign[i]) for i in self._rotors if reverse[i] > noise[i]}

    def _violations(self, t: float | Array, v: Array, torque: Array, output: Array) -> Array:
        """How far torques are beyond what ends the phase, at one instant or several [N m].

        Those of what is pinned beyond their lower bounds, then those beyond their upper ones, then
        those behind gears that turn a rotor beyond zero.
        """
        low, high = self.bounds(t, v)
        held, sign = self._held, self.phase.gear_power_sign
        parts = [(low - torque)[..., held], (torque - high)[..., held]]
        parts.append((-sign * output)[..., self._rotors])
        return np.asarray(np.concatenate(parts, axis=-1) - self._slack)

    def _gain(self, before: Array) -> Array:
        """Torque behind the gears over that before them."""
        power = self.phase.gear_power_sign
        sign = np.where(power != 0.0, power, np.sign(before))
        return self.train.gain(sign, self.phase.sliding.direction)

    def _balanced(self, t: float, q: Array, v: Array, solved: Solved) -> Array:
        """Torques that are not unique, within their bounds if they can be.

        Those nearest to the middles of their bounds need no linear program, and mostly are.
        """
        J = self.system(t, q, v)[2]
        held, torque = self._held, solved.holding_torque.copy()
        low, high = (bounds[held] for bounds in self.bounds(t, v))
        _, values, V = np.linalg.svd(J[:, self._free].T, full_matrices=True)
        rank = int(np.sum(values > RANK * values.max(initial=TINY)))
        moves = -(J[:, held].T @ V[rank:].T)
        above, below = high - torque[held], torque[held] - low
        weight = 1.0 / np.maximum(high - low, self.phase.noise[held])
        middle = np.zeros(len(held))
        np.subtract(above, below, out=middle, where=weight > 0.0)
        change = moves @ np.linalg.lstsq(weight[:, None] * moves, weight * middle / 2.0)[0]
        if not (np.all(change <= above) and np.all(-change <= below)):
            finite = np.isfinite(above), np.isfinite(below)
            A = np.vstack([moves[finite[0]], -moves[finite[1]]])
            room = np.concatenate([above[finite[0]], below[finite[1]]])
            change = moves @ share_evenly(A, room)
        torque[held] += change
        return torque

    def _accelerate(
        self, M: Array, f: Array, J: Array, gamma: Array, cap: int | None, a: Array
    ) -> Array:
        """Solve for the coordinates that are not pinned, fill ``a``, return ``J' lam``."""
        free, held = self._free, self._held
        if not J.size:
            if not held.size:
                a[:] = solve_mass(M, f)
            elif free.size:
                rest = f[free]
                if self._follows:  # what is stuck has no acceleration
                    rest -= M.take(self._free_held) @ a[held]
                a[free] = solve_mass(M.take(self._free_free), rest)
            return self._no_force
        if not held.size:
            a[:], lam = Saddle(M, J, self._scale, max_rank=cap).solve(f, -gamma)
            return J.T @ lam
        if not free.size:
            return self._no_force
        given = a[held]
        rest = f[free] - M.take(self._free_held) @ given
        part = Saddle(M.take(self._free_free), J[:, free], self._scale, max_rank=cap)
        a[free], lam = part.solve(rest, -gamma - J[:, held] @ given)
        return J.T @ lam


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


INSTANT, CHATTER = 1e-3, 200
"""A time [s], and so many changes within it that are chatter."""
_BESIDE = 0.1
"""Regularity of the rows below which a stop that cannot go on has come to a singular pose."""

_AT_SINGULAR_POSE = ("speed taken", "bifurcation")
"""Reasons for which steps fail there."""


def chatter_message(recent: Sequence[tuple[float, str]]) -> str:
    """What to say of changes that come one upon the other; those without a name changed nothing."""
    names = ", ".join(dict.fromkeys(name for _, name in recent[-10:] if name))
    text = f"{len(recent)} changes within a millisecond" + (f" ({names})" if names else "")
    if all(name for _, name in recent):
        return text
    return (
        f"{text}: what it takes to hold the joints jumps from one instant to the next, as it does "
        "where loops come into a singular configuration, behind which the motion is not "
        "determined; look whether joints are beyond their limits there"
    )


def explained(
    failure: StepFailed,
    equations: StopEquations,
    method: MuntheKaas,
    regular: float,
    last: tuple[float, Array, Array] | None,
) -> StepFailed:
    """A failure with its cause, where that is known.

    ``last``: time, configuration and velocity of the last state; None if there is none yet.
    """
    small = failure.reason == "step too small"
    if failure.reason in _AT_SINGULAR_POSE or (small and regular < _BESIDE):
        return _at_singular_pose(failure, equations)
    if last is None:
        return failure
    damping = equations.stiffest_damping(*last)
    if damping is None or damping.time_constant > INSTANT / CHATTER:
        return failure
    tried = method.when_stiff == "switch"
    return StepFailed(f"{failure}. {damping}; {way_out(method, tried=tried)}", failure.reason)


def _at_singular_pose(failure: StepFailed, equations: StopEquations) -> StepFailed:
    """The rows lose rank for what is neither held nor driven."""
    phase, names = equations.phase, equations.train.names
    moved = [names[k] for k in phase.follow.nonzero()[0].tolist()]
    held = [names[k] for k in phase.stuck.nonzero()[0].tolist()]
    parts = [f"while drives move {listed(moved)}"] if moved else []
    parts += [f"while {listed(held)} {'rests' if len(held) == 1 else 'rest'}"] if held else []
    where = " ".join(["the loops come into a singular configuration", " and ".join(parts)])
    why = f" ({failure})" if failure.reason in _AT_SINGULAR_POSE else ""
    if failure.q is not None:
        why = f" ({failure}; {meeting(equations.equations, 0.0, failure.q)})"
    drives = "give their drive_torque, and " if moved and not phase.sliding.limited else ""
    return StepFailed(
        f"{where.rstrip()}, behind which the motion is not determined{why}; {drives}look whether "
        "joints are beyond their limits there",
        "singular configuration",
    )
