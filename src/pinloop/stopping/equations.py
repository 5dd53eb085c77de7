"""Accelerations while it is settled which joints stick, which follow their drives, which slide."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..dynamics import EquationsOfMotion
from ..saddle import Saddle
from .drivetrain import Drivetrain
from .gauss import decide
from .phase import Phase, gear_contacts, pinned_bounds

__all__ = ["Solved", "StopEquations"]

Array = NDArray[np.float64]

_BRANCHES = 6
"""So often the direction of power through lossy gears is tried before all are decided together."""


@dataclass(frozen=True, eq=False)
class Solved:
    """Solution of the equations at one state.

    Args:
        a: acceleration, shape (nv,).
        torque: what brakes, friction and drives exert on the joints, shape (nv,).
        pinned: torque of what pins a coordinate, shape (nv,); losses act beside it.
        behind: torque that the gears of what moves let through, shape (nv,).
        loop_force: ``J' lam`` of the rows, shape (nv,).
    """

    a: Array
    torque: Array
    pinned: Array
    behind: Array
    loop_force: Array


class StopEquations:
    """The equations of motion of a stopping robot, phase by phase.

    Args:
        equations: equations of the robot with its loops, without forces.
        train: brakes, gears, friction, drives.
    """

    def __init__(self, equations: EquationsOfMotion, train: Drivetrain) -> None:
        self.equations, self.train = equations, train
        self.evaluations = 0
        self.excess = -np.inf  # largest since it was last reset: steps look at their own stages
        self._gain = np.ones(equations.robot.nv)

    def enter(self, phase: Phase) -> None:
        """Let a phase begin."""
        self.phase = phase
        self._free, self._held = np.flatnonzero(~phase.pinned), np.flatnonzero(phase.pinned)
        self._lossy = np.flatnonzero((self.train.lossy > 0) & ~phase.pinned)
        self._follows = bool(phase.follow.any())

    def acceleration(self, t: float, q: Array, v: Array) -> Array:
        """Acceleration, shape (nv,); notes how far what is pinned is from coming loose."""
        solved = self.solve(t, q, v)
        if len(self._held) and not self.phase.redundant:
            self.excess = max(self.excess, self._excess(t, v, solved))
        return solved.a

    def solve(self, t: float, q: Array, v: Array) -> Solved:
        """Acceleration and torques."""
        self.evaluations += 1
        train, phase = self.train, self.phase
        M, f, J, gamma, cap = self.equations.system(t, q, v)
        beside = train.joint_side(t, v, phase.sliding)
        before = train.motor_side(t, v, phase.sliding)
        before[self._held] = 0.0
        a = np.zeros(len(v))
        if self._follows:
            a[phase.follow] = phase.piece.a(t)[phase.follow]
        applied = f + beside
        if len(self._lossy):
            behind, loops = self._through_lossy_gears(M, applied, before, J, gamma, cap, a)
        else:
            loops = self._accelerate(M, applied + before, J, gamma, cap, a)
            behind = before
        pinned = np.zeros(len(v))
        held = self._held
        if len(held):
            pinned[held] = M[held] @ a - applied[held] - loops[held]
        return Solved(a, beside + behind + pinned, pinned, behind, loops)

    def bounds(self, t: float, v: Array) -> tuple[Array, Array]:
        """Least and largest torque of what pins a coordinate, shape (nv,)."""
        return pinned_bounds(self.train, self.phase, t, v)

    def coming_loose(self, t: float, q: Array, v: Array) -> float:
        """How far a pinned joint is beyond what pins it; negative while all are held [N m]."""
        if not len(self._held):
            return -np.inf
        return self._excess(t, v, self.solve(t, q, v), q)

    def loosest(self, t: float, q: Array, v: Array) -> dict[int, int]:
        """Coordinates about to come loose, with the direction in which they will go."""
        solved = self.solve(t, q, v)
        low, high = self.bounds(t, v)
        torque = self._balanced(t, q, v, solved) if self.phase.redundant else solved.pinned
        size = 1e-9 * (1.0 + np.abs(torque))
        return {
            int(i): -1 if torque[i] >= high[i] - size[i] else 1
            for i in self._held
            if torque[i] >= high[i] - size[i] or torque[i] <= low[i] + size[i]
        }

    def _excess(self, t: float, v: Array, solved: Solved, q: Array | None = None) -> float:
        low, high = self.bounds(t, v)
        torque = solved.pinned
        if self.phase.redundant and q is not None:
            torque = self._balanced(t, q, v, solved)
        held = self._held
        return float(np.maximum(low - torque, torque - high)[held].max())

    def _balanced(self, t: float, q: Array, v: Array, solved: Solved) -> Array:
        """Torques that are not unique, as evenly within their bounds as it goes (Chebyshev)."""
        from scipy.optimize import linprog  # slow to import, rarely needed

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
                (high - solved.pinned)[held][finite[0]],
                (solved.pinned - low)[held][finite[1]],
            ]
        )
        cost = np.zeros(moves.shape[1] + 1)
        cost[-1] = 1.0
        best = linprog(
            cost, np.column_stack([A, -np.ones(len(A))]), room, bounds=(None, None), method="highs"
        )
        torque = solved.pinned.copy()
        if best.status == 0:
            torque[held] += moves @ best.x[:-1]
        return torque

    def _through_lossy_gears(
        self, M: Array, applied: Array, before: Array,
        J: Array, gamma: Array, cap: int | None, a: Array,
    ) -> tuple[Array, Array]:  # fmt: skip
        """Accelerate with the torques that gears let through; fills ``a``.

        Returns:
            What arrives behind the gears, without the rotors of lossless ones; and ``J' lam``.
        """
        at, train, phase = self._lossy, self.train, self.phase
        inertia, direction = train.lossy[at], phase.sliding.direction[at]
        gain = self._gain[at]
        for _ in range(_BRANCHES):
            heavy, pushed = M.copy(), before.copy()
            heavy[at, at] += gain * inertia
            pushed[at] = gain * before[at]
            loops = self._accelerate(heavy, applied + pushed, J, gamma, cap, a)
            S = before[at] - inertia * a[at]
            found = train.gain_of(S, direction, at)
            if np.array_equal(found, gain) or np.all((found == gain) | (np.abs(S) < 1e-9)):
                self._gain[at] = gain
                pushed[at] = gain * S
                return pushed, loops
            gain = found
        return self._decided(M, applied, before, J, gamma, a)

    def _decided(
        self, M: Array, applied: Array, before: Array, J: Array, gamma: Array, a: Array
    ) -> tuple[Array, Array]:
        """The same by deciding the directions of power through all gears together."""
        lossy, free, held = self._lossy, self._free, self._held
        others = before.copy()
        others[lossy] = 0.0
        kinks = gear_contacts(self.train, lossy, before, self.phase.sliding.direction)
        made = decide(
            M[np.ix_(free, free)],
            (applied + others)[free] - M[np.ix_(free, held)] @ a[held],
            J[:, free],
            gamma + J[:, held] @ a[held],
            replace(kinks, columns=np.searchsorted(free, lossy)),
        )
        a[free] = made.a
        others[lossy] = made.torque
        return others, J.T @ made.multipliers

    def _accelerate(
        self, M: Array, f: Array, J: Array, gamma: Array, cap: int | None, a: Array
    ) -> Array:
        """Solve for the coordinates that are not pinned, fill ``a``, return ``J' lam``."""
        free, held = self._free, self._held
        if len(held) == 0:
            a[:], lam = Saddle(M, J, self.equations.rows.scale, max_rank=cap).solve(f, -gamma)
            return J.T @ lam
        if len(free) == 0:
            return np.zeros(len(a))
        given = a[held]
        rest = f[free] - M[np.ix_(free, held)] @ given
        part = Saddle(M[np.ix_(free, free)], J[:, free], self.equations.rows.scale, max_rank=cap)
        a[free], lam = part.solve(rest, -gamma - J[:, held] @ given)
        return J.T @ lam
