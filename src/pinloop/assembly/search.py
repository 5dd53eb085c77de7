"""The search for closed configurations: damped Gauss-Newton on the configuration manifold.

Numbers without unit: lengths are divided by the robot's characteristic length. What the caller
asked for and what to tell him is in `assembly`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from ..boundary.marks import Array, Indices, Mask
from ..constraints.closure import Constraints
from ..linalg.box import least_distance
from ..model.mechanism import Mechanism
from ..tolerances import (
    AT_LIMIT,
    CLOSED,
    GRAM_RANK,
    IDLE_WEIGHT,
    LAST_BITS,
    SCALED_NOISE,
    SCALED_RANK,
)
from ..units import degrees_hint

_TALL = 10
"""Rows per column from which on a step is solved in columns, which leaves no zero an exact one."""
_ITERATIONS = 80
_COARSE = 1e-3
"""Part of a limit beyond which few digits are no excuse."""


@dataclass(frozen=True)
class Problem:
    """Closure and targets as one residual without unit: lengths over ``robot.length``."""

    robot: Mechanism
    constraints: Constraints
    held: tuple[str, ...] = ()
    targets: dict[str, pin.SE3] = field(default_factory=dict)
    limits: bool = False

    @staticmethod
    def closure(robot: Mechanism, *, full: bool = True, **options: Any) -> Problem:
        """Closure by all rows of the pairs, or by those that regularization has left."""
        return Problem(robot, Constraints(robot, full=full), **options)

    @cached_property
    def column_scale(self) -> Array:
        """Velocity per unit of scaled velocity: the characteristic length for linear ones."""
        return np.where(self.robot.is_translation, self.robot.length, 1.0)

    @cached_property
    def row_scale(self) -> Array:
        """Factor of each closure row: one over the length for linear ones."""
        return np.where(self.constraints.angular, 1.0, 1 / self.robot.length)

    @cached_property
    def still(self) -> Mask:
        """Mask of the velocity coordinates of joints that are held."""
        return velocity_mask(self.robot, self.held)

    @cached_property
    def ends(self) -> tuple[Indices, Indices, Array, Array]:
        """Places in q and in v, lower and upper limits of the coordinates that have limits."""
        limited = limited_coordinates(self.robot) if self.limits else []
        i, j, low, high = zip(*limited, strict=True) if limited else ((), (), (), ())
        places = np.array(i, dtype=np.intp), np.array(j, dtype=np.intp)
        return *places, np.array(low, dtype=float), np.array(high, dtype=float)

    def residual(self, q: Array) -> Array:
        """Scaled closure residuals, then ``log6`` of each target's error."""
        parts = [self.row_scale * self.constraints.residual(q)]
        for name, pose in self.targets.items():
            error = pin.log6(pose.actInv(self.robot.placement(q, name))).vector
            parts.append(self._unit(error))
        return np.concatenate(parts)

    def jacobian(self, q: Array) -> Array:
        """Derivative of the residual with respect to the scaled velocity."""
        parts = [self.row_scale[:, None] * self.constraints.jacobian(q)]
        model = self.robot.model
        for name, pose in self.targets.items():
            frame = self.robot.frame_id(name)
            with self.robot.workspace() as data:
                jacobian = pin.computeFrameJacobian(model, data, q, frame, pin.LOCAL)
                jacobian = np.array(jacobian).reshape(6, -1)
            error = pose.actInv(self.robot.placement(q, name))
            parts.append(self._unit(pin.Jlog6(error) @ jacobian))
        return np.vstack(parts) * self.column_scale

    def _unit(self, rows: Array) -> Array:
        rows = rows.copy()
        rows[:3] /= self.robot.length
        return rows


def velocity_mask(robot: Mechanism, joints: tuple[str, ...]) -> Mask:
    """Mask of the velocity coordinates of the named joints."""
    mask = np.zeros(robot.nv, dtype=bool)
    for name in joints:
        mask[robot.coordinates(name).v] = True
    return mask


def search(
    problem: Problem, start: Array, seed: int, restarts: int, enough: float = CLOSED
) -> tuple[Array, float]:
    """Best configuration from the start and, if need be, from random ones around it.

    It ends where the residual is small ``enough``, or after so many restarts.
    """
    rng = np.random.default_rng(seed)
    best, least = descend(problem, _clamped(problem, start))
    for attempt in range(restarts):
        if least < enough:
            break
        spread = min(np.pi, 0.2 * (attempt + 1))
        q, error = descend(problem, _scattered(problem, start, spread, rng))
        if error < least:
            best, least = q, error
    return best, least


def approach(problem: Problem, q: Array, joints: tuple[str, ...], goal: Array) -> Array:
    """The closed configuration at which some joints are nearest to where they are in ``goal``.

    Least squares in radians and characteristic lengths, by Gauss-Newton steps in the null space of
    the loops, from the closed configuration ``q`` on: each is closed again, stays within the
    limits, and brings the joints nearer.
    """
    wanted = velocity_mask(problem.robot, joints)

    def gap(q: Array) -> Array:
        difference = pin.difference(problem.robot.model, q, goal) / problem.column_scale
        return np.asarray(difference[wanted])

    for _ in range(_ITERATIONS):
        miss = gap(q)
        step, gain = _nearer(problem, q, wanted, miss)
        if np.max(np.abs(step), initial=0.0) < SCALED_NOISE * problem.robot.length:
            break
        size = 1.0
        while size > 1e-4:
            trial, error = descend(problem, _moved(problem, q, size * step))
            closer = np.sum(gap(trial) ** 2) < np.sum(miss**2) - 1e-4 * size * gain
            if error < CLOSED and closer:
                break
            size /= 2
        else:
            break
        q = trial
    return q


def _nearer(problem: Problem, q: Array, wanted: Mask, miss: Array) -> tuple[Array, float]:
    """The step along the loops' motions that best makes up for what the wanted ones miss.

    And the part of the squared miss that it takes away at first order.
    """
    basis = null_space(problem.jacobian(q)[:, ~problem.still])
    motions = np.zeros((problem.robot.nv, basis.shape[1]))
    motions[~problem.still] = basis
    i, j, low, high = problem.ends
    room = np.concatenate([q[i] - low, high - q[i]]) / np.tile(problem.column_scale[j], 2)
    bounded = np.isfinite(room) & ~np.tile(problem.still[j], 2)
    inward = np.vstack([motions[j], -motions[j]])[bounded]
    amounts = _least_squares_within(
        np.vstack([motions[wanted], IDLE_WEIGHT * np.eye(basis.shape[1])]),
        np.concatenate([miss, np.zeros(basis.shape[1])]),
        inward,
        -np.maximum(room[bounded], 0.0),
    )
    step = motions @ amounts
    return step * problem.column_scale, float(miss @ step[wanted])


def _least_squares_within(A: Array, b: Array, G: Array, h: Array) -> Array:
    """Minimise ``|A x - b|`` subject to ``G x >= h``, with ``h <= 0`` and A of full column rank.

    As a least-distance problem, in the coordinates in which A is orthonormal.
    """
    Q, R = np.linalg.qr(A)
    free = Q.T @ b
    G = np.linalg.solve(R.T, G.T).T
    shortest, _ = least_distance(G, h - G @ free)
    # What rounding takes for impossible is zero, which is allowed.
    return np.asarray(
        np.linalg.solve(R, np.zeros(len(free)) if shortest is None else free + shortest)
    )


def _scattered(problem: Problem, q: Array, spread: float, rng: np.random.Generator) -> Array:
    """A random configuration around ``q``; held joints stay."""
    step = rng.uniform(-spread, spread, problem.robot.nv) * problem.column_scale
    step[problem.still] = 0.0
    return _moved(problem, q, step)


def descend(problem: Problem, q: Array) -> tuple[Array, float]:
    """Damped Gauss-Newton from ``q`` until nothing is gained."""
    residual = problem.residual(q)
    error = float(np.linalg.norm(residual))
    for _ in range(_ITERATIONS):
        if error < LAST_BITS:
            break
        step, size = _step(problem, q, residual, error), 1.0
        while size > 1e-4:
            trial = _moved(problem, q, size * step)
            rest = problem.residual(trial)
            if np.linalg.norm(rest) < (1 - 1e-3 * size) * error:
                q, residual, error = trial, rest, float(np.linalg.norm(rest))
                break
            size /= 2
        else:
            break
    return q, error


def _moved(problem: Problem, q: Array, step: Array) -> Array:
    """``q`` moved by a step and normalised; held coordinates stay to the last bit."""
    model = problem.robot.model
    moved = pin.normalize(model, pin.integrate(model, q, step))
    for name in problem.held:
        at = problem.robot.coordinates(name)
        moved[at.q] = q[at.q]
    return _clamped(problem, moved)


def _step(problem: Problem, q: Array, residual: Array, error: float) -> Array:
    """Step of least change that reduces the linearised residual, within the joint limits.

    Damping by the squared residual keeps the quadratic convergence also where rows are redundant
    (the rank of J drops on the manifold only). A coordinate that would leave its limits is taken
    out and the step computed again.
    """
    jacobian = problem.jacobian(q)
    free = ~problem.still
    while free.any():
        J = jacobian[:, free]
        damping = min(error**2, 1e-2) * max(1.0, np.sum(J**2) / len(J))
        step = np.zeros(problem.robot.nv)
        if len(J) <= _TALL * J.shape[1]:
            gram = J @ J.T + damping * np.eye(len(J))
            step[free] = J.T @ np.linalg.lstsq(gram, -residual, rcond=GRAM_RANK)[0]
        else:
            # J' (J J' + d)^-1 = (J' J + d)^-1 J', of which the smaller one is solved.
            gram = J.T @ J + damping * np.eye(J.shape[1])
            step[free] = np.linalg.lstsq(gram, -J.T @ residual, rcond=GRAM_RANK)[0]
        step *= problem.column_scale
        blocked = _leaving(problem, q, step) & free
        if not blocked.any():
            return step
        free &= ~blocked
    return np.zeros(problem.robot.nv)


def limited_coordinates(robot: Mechanism) -> list[tuple[int, int, float, float]]:
    """Indices in q and v and limits of the coordinates that have position limits."""
    lower, upper = robot.model.lowerPositionLimit, robot.model.upperPositionLimit
    limited = []
    for name in robot.joints:
        at = robot.coordinates(name)
        if at.nq != at.nv:
            continue
        for k in range(at.nq):
            i, j = at.q.start + k, at.v.start + k
            if lower[i] > -np.inf or upper[i] < np.inf:
                limited.append((i, j, float(lower[i]), float(upper[i])))
    return limited


def limit_slack(limit: float) -> float:
    """How far beyond a limit a coordinate may be that is meant to be at it [rad, m].

    Half of the last digit that the limit has in its file: 1.57 may stand for a quarter turn.
    """
    digits = repr(float(limit))
    places = digits.partition(".")[2]
    digit = 0.5 * 10.0 ** -len(places) if "e" not in digits else 0.0
    return max(AT_LIMIT, min(digit, _COARSE * abs(limit)))


def is_outside(value: float, low: float, high: float) -> bool:
    """Whether a coordinate is outside its limits, in the digits that the limits have."""
    return value < low - limit_slack(low) or value > high + limit_slack(high)


def is_at_limit(value: Array, low: Array, high: Array) -> Mask:
    """Whether coordinates are at a limit: the number itself, where the search stops them."""
    return np.asarray((value < low + AT_LIMIT) | (value > high - AT_LIMIT))


class OutsideLimits(NamedTuple):
    """A coordinate outside its limits [rad, m], and what to write if it was meant in degrees."""

    joint: str
    value: float
    low: float
    high: float
    hint: str


def outside_limits(robot: Mechanism, q: Array, joints: Iterable[str]) -> list[OutsideLimits]:
    """The coordinates of some joints that are outside their limits."""
    parts = {name: robot.coordinates(name).q for name in joints}
    owners = {i: name for name, part in parts.items() for i in range(part.start, part.stop)}
    outside = []
    for i, j, low, high in limited_coordinates(robot):
        if i in owners and is_outside(value := float(q[i]), low, high):
            hint = "" if robot.is_translation[j] else degrees_hint(value, low, high)
            outside.append(OutsideLimits(owners[i], value, low, high, hint))
    return outside


def _leaving(problem: Problem, q: Array, step: Array) -> Mask:
    """Mask of the coordinates at a limit that the step would push further out."""
    i, j, low, high = problem.ends
    mask = np.zeros(problem.robot.nv, dtype=bool)
    mask[j] = ((q[i] <= low) & (step[j] < 0)) | ((q[i] >= high) & (step[j] > 0))
    return mask


def _clamped(problem: Problem, q: Array) -> Array:
    """``q`` with every free coordinate moved into its limits."""
    i, j, low, high = problem.ends
    q = np.array(q)
    q[i] = np.where(problem.still[j], q[i], np.minimum(np.maximum(q[i], low), high))
    return q


def numerical_rank(values: Array) -> int:
    """Rank from the singular values of a scaled Jacobian.

    Relative to the largest one, but rows that are all idle leave rounding noise only: what is
    smaller than `SCALED_NOISE` of one radian per radian is zero in any case.
    """
    if values.size == 0:
        return 0
    return int(np.sum(values > max(SCALED_RANK * float(values[0]), SCALED_NOISE)))


def singular_values(matrix: Array) -> Array:
    """Singular values, the largest first; none of an empty matrix."""
    return np.asarray(np.linalg.svd(matrix, compute_uv=False)) if matrix.size else np.zeros(0)


def jacobian_rank(jacobian: Array) -> int:
    """Numerical rank of a scaled Jacobian."""
    return numerical_rank(singular_values(jacobian))


def null_space(jacobian: Array) -> Array:
    """Orthonormal columns that a scaled Jacobian annihilates, shape (nv, dim)."""
    if jacobian.size == 0:
        return np.eye(jacobian.shape[1])
    # Of a tall matrix the smaller factors suffice; the larger are quadratic in its rows.
    wide = jacobian.shape[0] < jacobian.shape[1]
    _, values, directions = np.linalg.svd(jacobian, full_matrices=wide)
    return np.asarray(directions[numerical_rank(values) :].T)
