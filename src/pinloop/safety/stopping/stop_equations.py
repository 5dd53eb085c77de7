"""Accelerations while it is settled which joints stick, which follow their drives, which slide.

Their torques are a force on the trajectory, so that its energies and reactions are right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pinocchio as pin
import scipy
from numpy.typing import NDArray

from ...dynamics import EquationsOfMotion
from ...dynamics.forces import BoundForce, Force
from ...dynamics.stiffness import StiffDamping, fastest_decay
from ...errors import PinloopError
from ...linalg.saddle import Saddle, solve_mass
from ...model.mechanism import Mechanism
from .drivetrain import Drivetrain
from .phase import RELEASE, Phase, pinned_bounds

__all__ = ["Solved", "StopEquations", "StopTorque"]

Array = NDArray[np.float64]

_ROUNDING = 1e-7
"""Torque in a gear that is no power in the wrong direction yet [N m]."""


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
        equations: equations of the robot with its loops, without forces.
        train: brakes, gears, friction, drives.
    """

    def __init__(self, equations: EquationsOfMotion, train: Drivetrain) -> None:
        self.equations, self.train = equations, train
        self.evaluations = 0
        self._seen: list[tuple[float, Array, Solved]] = []
        self._no_force = np.zeros(equations.robot.nv)
        self._entered: Phase | None = None
        self.last: Solved | None = None  # what was solved for the latest acceleration

    @property
    def phase(self) -> Phase:
        """The phase that was entered last."""
        assert self._entered is not None, "no phase was entered"
        return self._entered

    def enter(self, phase: Phase) -> None:
        """Let a phase begin, or go back to one that has been."""
        if phase is self._entered:
            return
        self._entered = phase
        pinned = phase.pinned
        self._free, self._held = (~pinned).nonzero()[0], pinned.nonzero()[0]
        self._rotors = phase.gear_power_sign.nonzero()[0]
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
        """Acceleration, shape (nv,); it is kept in mind for `bound_violation`."""
        solved = self.last = self.solve(t, q, v)
        self._seen.append((t, v, solved))
        return solved.a

    def forget(self) -> None:
        """Let `bound_violation` look at what comes from now on: steps look at their own stages."""
        self._seen.clear()

    def bound_violation(self, between: float = 0.0) -> float:
        """How far the phase was beyond its end at all accelerations since `forget` [N m].

        Args:
            between: how much farther it may have been between them, as a part of what lies between
                the least and the largest value.
        """
        if not self._seen:
            return -np.inf
        t, v, solved = zip(*self._seen, strict=True)
        passed: list[Array] = []
        if len(self._held):
            torque = np.array([one.holding_torque for one in solved])
            # Bounds that are linear in time do not ask for speeds.
            speeds = v[0] if self._linear else np.array(v)
            passed.append(self._out_of_bounds(np.array(t)[:, None], speeds, torque))
        if len(self._rotors):
            passed.append(self._turned(np.array([one.gear_output for one in solved])) - _ROUNDING)
        if not passed:
            return -np.inf
        every = np.concatenate(passed, axis=1)
        every = every[:, np.isfinite(every.max(axis=0))]  # what is bounded
        top = every.max(axis=0)
        return float((top + between * (top - every.min(axis=0))).max(initial=-np.inf))

    def solve(self, t: float, q: Array, v: Array) -> Solved:
        """Acceleration and torques."""
        self.evaluations += 1
        phase = self.phase
        M, f, J, gamma, cap = self.equations.system(t, q, v)
        joint_side, before = self._slide.torques(t, v)
        a = np.zeros(len(v))
        if self._follows:
            a[phase.follow] = phase.piece.a(t)[phase.follow]
        applied = f + joint_side
        gear_output, rotors = before, self._rotors
        if self.train.has_losses:
            gain = self._gain(before)
            gear_output = gain * before
            heavier = (gain * self.train.lossy)[rotors]
            M[rotors, rotors] += heavier
        loops = self._accelerate(M, applied + gear_output, J, gamma, cap, a)
        if len(rotors):
            gear_output[rotors] -= heavier * a[rotors]
        holding = self._no_force
        if len(self._held):
            holding = M @ a - applied
            if len(J):
                holding -= loops
            holding[self._free] = 0.0
        return Solved(a, joint_side, gear_output, holding)

    def bounds(self, t: float | Array, v: Array) -> tuple[Array, Array]:
        """Least and largest torque of what pins a coordinate, shape (nv,).

        Args:
            t: time [s], or several of shape (k, 1).
            v: velocity, shape (nv,), or (k, nv).
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

    def beyond(self, t: float, q: Array, v: Array) -> float:
        """How far the phase is from its end [N m]; positive once it should have ended.

        It ends when a joint that is pinned comes loose, or when the power in a gear turns round.
        """
        return float(self.passed(t, q, v).max(initial=-np.inf))

    def passed(self, t: float, q: Array, v: Array) -> Array:
        """How far each of the things that end the phase is from doing so [N m], see `beyond`."""
        solved = self.solve(t, q, v)
        parts = [np.zeros(0)]
        if len(self._held):
            over = self._out_of_bounds(t, v, solved.holding_torque)
            if self.phase.redundant and over.max() > 0.0:  # others may fit where these do not
                over = self._out_of_bounds(t, v, self._balanced(t, q, v, solved))
            parts.append(over)
        if len(self._rotors):
            parts.append(self._turned(solved.gear_output) - _ROUNDING)
        return np.concatenate(parts)

    def stiffest_damping(self, t: float, q: Array, v: Array) -> StiffDamping | None:
        """What brings the fastest motion of what is not pinned to rest; None without damping."""
        parts = self.train.dampings(self.phase.sliding)
        if not parts:
            return None
        M, _, J, _, _ = self.equations.system(t, q, v)
        rows = np.vstack([self.equations.rows.scale[:, None] * J, np.eye(len(v))[self._held]])
        M = M + np.diag(self.train.lossy)
        return fastest_decay(self.equations.robot, M, rows, parts)

    def breaking_away(self, t: float, q: Array, v: Array) -> dict[int, int]:
        """Pinned coordinates beyond their bounds, with the direction in which they will go."""
        solved = self.solve(t, q, v)
        low, high = self.bounds(t, v)
        torque = self._balanced(t, q, v, solved) if self.phase.redundant else solved.holding_torque
        noise = self.phase.noise
        falls, rises = torque - high > noise, low - torque > noise
        return {int(i): -1 if falls[i] else 1 for i in self._held if falls[i] or rises[i]}

    def reversing_gears(self, t: float, q: Array, v: Array) -> dict[int, int]:
        """Coordinates in whose gear the power turns round, with the new sign of its torque."""
        if not len(self._rotors):
            return {}
        over = self._turned(self.solve(t, q, v).gear_output)
        return {
            int(i): -int(self.phase.gear_power_sign[i])
            for i, value in zip(self._rotors, over, strict=True)
            if value >= -1e-6
        }

    def _out_of_bounds(self, t: float | Array, v: Array, torque: Array) -> Array:
        """How far torques of what is pinned are beyond their bounds, at one instant or several.

        Those beyond the lower ones first, then those beyond the upper ones.
        """
        low, high = self.bounds(t, v)
        noise = RELEASE * self.phase.noise
        both = low - noise - torque, torque - high - noise
        return np.concatenate([one[..., self._held] for one in both], axis=-1)

    def _turned(self, gear_output: Array) -> Array:
        """How far the torque behind gears has passed zero, per gear that turns a rotor [N m]."""
        return np.asarray(-(self.phase.gear_power_sign * gear_output)[..., self._rotors])

    def _gain(self, before: Array) -> Array:
        """Torque behind the gears over that before them."""
        power = self.phase.gear_power_sign
        sign = np.where(power != 0.0, power, np.sign(before))
        return self.train.gain(sign, self.phase.sliding.direction)

    def _balanced(self, t: float, q: Array, v: Array, solved: Solved) -> Array:
        """Torques that are not unique, as evenly within their bounds as it goes (Chebyshev)."""
        J = self.equations.terms(t, q, v)[0]
        low, high = self.bounds(t, v)
        held = self._held
        _, values, V = np.linalg.svd(J[:, self._free].T, full_matrices=True)
        rank = int(np.sum(values > 1e-9 * values.max(initial=1e-300)))
        moves = -(J[:, held].T @ V[rank:].T)
        finite = [np.isfinite(high[held]), np.isfinite(low[held])]
        A = np.vstack([moves[finite[0]], -moves[finite[1]]])
        room = np.concatenate(
            [
                (high - solved.holding_torque)[held][finite[0]],
                (solved.holding_torque - low)[held][finite[1]],
            ]
        )
        # Unknown: the free part of the multipliers, and the largest excess, which is minimised; as
        # small as it likes it may not get, where teeth take any torque.
        least = -1.0 - float(np.abs(room).max(initial=0.0))
        best = scipy.optimize.linprog(
            np.eye(moves.shape[1] + 1)[-1],
            np.column_stack([A, -np.ones(len(A))]),
            room,
            bounds=[(None, None)] * moves.shape[1] + [(least, None)],
            method="highs",
        )
        if best.x is None:
            raise PinloopError(f"the torques that hold the joints cannot be shared: {best.message}")
        torque = solved.holding_torque.copy()
        torque[held] += moves @ best.x[:-1]
        return torque

    def _accelerate(
        self, M: Array, f: Array, J: Array, gamma: Array, cap: int | None, a: Array
    ) -> Array:
        """Solve for the coordinates that are not pinned, fill ``a``, return ``J' lam``."""
        free, held = self._free, self._held
        if len(J) == 0:
            if len(held) == 0:
                a[:] = solve_mass(M, f)
            elif len(free):
                rest = f[free]
                if self._follows:  # what is stuck has no acceleration
                    rest -= M.take(self._free_held) @ a[held]
                a[free] = solve_mass(M.take(self._free_free), rest)
            return self._no_force
        if len(held) == 0:
            a[:], lam = Saddle(M, J, self.equations.rows.scale, max_rank=cap).solve(f, -gamma)
            return J.T @ lam
        if len(free) == 0:
            return self._no_force
        given = a[held]
        rest = f[free] - M.take(self._free_held) @ given
        part = Saddle(M.take(self._free_free), J[:, free], self.equations.rows.scale, max_rank=cap)
        a[free], lam = part.solve(rest, -gamma - J[:, held] @ given)
        return J.T @ lam


@dataclass(frozen=True, eq=False)
class StopTorque(Force):
    """What brakes, friction, gears and drives exert on the joints in one phase of a stop.

    What holds the joints that stick is left out: on the trajectory these are locked, and the
    reaction of the lock is that torque.

    Args:
        equations: the equations of the stop.
        phase: the phase.
    """

    equations: StopEquations
    phase: Phase

    def bind(self, robot: Mechanism) -> BoundForce:
        """The force on the robot of the trajectory, whose mass matrix has all rotors."""
        return _BoundStopTorque(self)


class _BoundStopTorque(BoundForce):
    def __init__(self, given: StopTorque) -> None:
        self.name, self._given = "brakes, friction, drives", given

    def torque(self, t: float, q: Array, v: Array, data: pin.Data) -> Array:
        equations, phase = self._given.equations, self._given.phase
        equations.enter(phase)
        solved = equations.solve(t, q, v)
        # In the stop, rotors behind gears with losses are torques; in a trajectory they are masses.
        torque = solved.torque + equations.train.lossy * solved.a
        torque[phase.stuck] = 0.0
        return torque
