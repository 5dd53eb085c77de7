"""A run between its stored states: which joint limits it passes, and a tree of short intervals.

No shapes and no distances here: dense output, configurations, placements of the joints, times.

**Steps.** Between two stored states a `Trajectory` moves along ``q0 (+) psi(s)`` with a polynomial
``psi`` in the algebra, ``s`` from 0 to 1 over a step: what lies between is exact.
Extrema of coordinates are roots of derivatives.

**Leaves.** Steps are halved until a criterion is met; what is left are the leaves. How motion
within a leaf is bounded is in `joint_motions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, Literal

import numpy as np
import pinocchio as pin

from ...boundary.arguments import public
from ...boundary.marks import Array, Integers, Mask
from ...errors import BadValue
from ...integrate import Bernstein, Step, hermite, unit_roots
from ...model.mechanism import Mechanism
from ...simulation.limits import LimitPassed, ends_seen_from, first_beyond, joint_ends
from ...simulation.modes import RobotManifold
from ...simulation.trajectory import Trajectory
from ...tolerances import BESIDE_STATE, LIMIT_PASSED, SHORT_STEP
from .joint_motions import FrameBounds, bound_factors, compute_joint_poses, joint_factors
from .solids import Piece

Kind = Literal["position", "velocity"]
Side = Literal["lower", "upper"]

# -- steps ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Steps:
    """The steps of a run that take time, as polynomials.

    ``number``: index of the stored state at which each starts, shape (k,); ``length``: how long
    each takes [s], shape (k,); ``run``: the run; ``basis``: what their control points are those of,
    d of them; ``psi``: control points of ``psi``, shape (k, d, nv); ``rates``: control points of
    its derivative by time, shape (k, d, nv); ``flat``: whether that is the velocity.
    """

    number: Integers
    length: Array
    run: Trajectory
    basis: Bernstein
    psi: Array
    rates: Array
    flat: bool

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The steps."""
        return _steps(self.run, self.number)


def checked_run(run: Any) -> Trajectory:
    """Return a run after checking that it is one."""
    if not isinstance(run, Trajectory):
        raise BadValue(
            f"{run!r} is no trajectory; give the result of pl.simulate, or .run of a stop"
        )
    return run


def expand_steps(run: Trajectory) -> Steps:
    """The dense output of a run as polynomials."""
    length = np.diff(run.t)
    number = np.flatnonzero(length > 0)
    length = length[number]
    h = length[:, None]
    flat = RobotManifold(run.robot).flat
    if flat and run.inner is None:
        (v0, v1), (a0, a1) = ((x[number], x[number + 1]) for x in (run.v, run.a))
        p = np.moveaxis(hermite(run.psi[number], h * v0, h * v1, h * h * a0, h * h * a1), 0, 1)
    else:
        degree = 5 if run.inner is None else 5 + run.inner.shape[1]
        p = np.array([step.polynomial for step in _steps(run, number)])
        p = p.reshape(len(number), degree, run.robot.nv)
    degree = p.shape[1]
    basis, slopes = Bernstein.of(degree), np.arange(1.0, degree + 1.0)[:, None] * p
    psi, rates = basis.of_powers[:, 1:] @ p, basis.of_powers[:, :-1] @ slopes / h[:, None]
    return Steps(number, length, run, basis, psi, rates, flat)


def _steps(run: Trajectory, number: Integers) -> tuple[Step, ...]:
    """The steps that start at some stored states."""
    manifold = RobotManifold(run.robot)
    return tuple(run.step(k, manifold) for k in number.tolist())


def integrate_each(robot: Mechanism, q: Array, psi: Array) -> Array:
    """Configurations ``q (+) psi``, shape (k, nq), with unit quaternions."""
    if robot.nq == robot.nv:
        return q + psi
    model = robot.model
    pairs = zip(q, psi, strict=True)
    ends = [pin.normalize(model, pin.integrate(model, *pair)) for pair in pairs]
    return np.array(ends).reshape(len(q), robot.nq)


def difference_each(robot: Mechanism, q: Array, other: Array) -> Array:
    """Tangent vectors from configurations to others, ``q (+) psi = other``, shape (k, nv)."""
    if robot.nq == robot.nv:
        return other - q
    pairs = zip(q, other, strict=True)
    psi = [pin.difference(robot.model, *pair) for pair in pairs]
    return np.array(psi).reshape(len(q), robot.nv)


# -- limits ----------------------------------------------------------------------------------


@public
def joint_limits(run: Trajectory, *, tolerance: float = LIMIT_PASSED) -> tuple[LimitPassed, ...]:
    """Return the position and velocity limits of tree joints that a run passes, in order of time.

    Coordinates of joints with a quaternion, and velocities of all curved joints, are interpolated
    at even instants of each step; the others are exact.

    Args:
        run: the run.
        tolerance: limits that are passed by less are not reported: a joint may rest on its end
            stop [rad, m, rad/s, m/s].
    """
    run = checked_run(run)
    if not isinstance(tolerance, Real) or not 0 <= float(tolerance) < np.inf:
        raise BadValue(f"tolerance is {tolerance!r}; it must be a number >= 0")
    steps = expand_steps(run)
    motions = {
        "position": (run.q, _positions(run, steps)),
        "velocity": (run.v, _velocities(run, steps)),
    }
    farthest = {
        (kind, sign): np.vstack([sign * stored, *(sign * control)]).max(axis=0)
        for kind, (stored, control) in motions.items()
        for sign in (1.0, -1.0)
    }
    passages = []
    seen = {
        (end.cell, end.side): end.level for end in ends_seen_from(joint_ends(run.robot), run.q[0])
    }
    for joint, coordinate, index, kind, side, limit in _limits(run):
        stored, control = motions[kind]
        sign = 1.0 if side == "upper" else -1.0
        level = seen.get((index, side), limit) if kind == "position" else limit
        if farthest[kind, sign][index] - sign * level <= tolerance:
            continue
        over = sign * (stored[:, index] - level), sign * (control[:, :, index] - level)
        passed = _passed(run.t, steps, *over, float(tolerance))
        if passed is not None:
            passages.append(LimitPassed(joint, coordinate, kind, side, limit, *passed))
    return tuple(sorted(passages, key=lambda passed: passed.t))


def _limits(run: Trajectory) -> Iterator[tuple[str, int, int, Kind, Side, float]]:
    """All finite limits: joint, coordinate, its place in q or v, kind, side, value."""
    model = run.robot.model
    limits: tuple[tuple[Kind, Side, Array], ...] = (
        ("position", "lower", model.lowerPositionLimit),
        ("position", "upper", model.upperPositionLimit),
        ("velocity", "lower", model.lowerVelocityLimit),
        ("velocity", "upper", model.upperVelocityLimit),
    )
    for joint in run.robot.joints:
        at = run.robot.coordinates(joint)
        for kind, side, values in limits:
            places = at.q if kind == "position" else at.v
            for coordinate, index in enumerate(range(places.start, places.stop)):
                if np.isfinite(values[index]):
                    yield joint, coordinate, index, kind, side, float(values[index])


def _positions(run: Trajectory, steps: Steps) -> Array:
    """Control points of all coordinates on each step, shape (k, d, nq)."""
    if steps.flat and run.robot.nq == run.robot.nv:
        return np.asarray(run.q[steps.number, None] + steps.psi)
    basis = steps.basis
    values = np.zeros((len(steps.number), len(basis.even), run.robot.nq))
    for k, (here, step) in enumerate(zip(steps.number, steps.steps, strict=True)):
        values[k, 0], values[k, -1] = run.q[here], run.q[here + 1]
        values[k, 1:-1], _ = step.inside(basis.even[1:-1])
    return np.asarray(basis.control @ values)


def _velocities(run: Trajectory, steps: Steps) -> Array:
    """Control points of all velocities on each step, shape (k, d, nv)."""
    v0, v1 = run.v[steps.number, None], run.v[steps.number + 1, None]
    even = steps.basis.even
    straight = v0 + even[:, None] * (v1 - v0)
    long = (steps.length > SHORT_STEP)[:, None, None]
    if steps.flat:
        return np.where(long, steps.rates, straight)
    for k, step in enumerate(steps.steps):
        if long[k]:
            straight[k, 1:-1] = step.inside(even[1:-1])[1]
    return np.asarray(steps.basis.control @ straight)


def _passed(
    t: Array, steps: Steps, stored: Array, control: Array, tolerance: float
) -> tuple[float, float, float] | None:
    """When a limit is passed first, by how much at most, and when that is.

    ``t``: stored times [s]; ``stored``: how far the coordinate is beyond the limit at the stored
    times, shape (len(t),); ``control``: control points of that on each step, shape (k, d);
    ``tolerance``: passing it by less does not count.
    """
    most = int(np.argmax(stored))
    by, worst, first = float(stored[most]), float(t[most]), np.inf
    # A polynomial lies in the hull of its control points: most steps need no closer look.
    highest = control.max(axis=1)
    for k in np.flatnonzero(highest > tolerance):
        start, length = float(t[steps.number[k]]), float(steps.length[k])
        if highest[k] <= by and start >= first:
            continue
        powers = (steps.basis.powers @ control[k])[::-1]
        for s in unit_roots(np.polyder(powers)):
            if (value := float(np.polyval(powers, s))) > by:
                by, worst = value, start + s * length
        if start < first and (part := first_beyond(powers, tolerance)) is not None:
            first = min(first, start + part * length)
    return (min(first, worst), by, worst) if by > tolerance else None


# -- leaves ---------------------------------------------------------------------------------

_MOST_LEAVES = 100_000


Criterion = Callable[[list[FrameBounds]], Mask]
"""Whether each leaf is short enough, given bounds on the frames of all joints, shape (n,)."""


def limit_sag(pieces: Iterable[Piece], most: float) -> Criterion:
    """The criterion that no point of a piece is farther than ``most`` [m] from its chord.

    With an acceleration of at most ``A``, by the leaf's parameter, that distance is ``A / 8``.
    """
    joints = [(piece.joint, piece.radius) for piece in pieces]

    def fine(bounds: list[FrameBounds]) -> Mask:
        good = np.ones(len(bounds[0].velocity), dtype=bool)
        for joint, radius in joints:
            good &= bounds[joint].point_acceleration(radius) / 8 <= most
        return good

    return fine


class IntervalTree:
    """A run cut into leaves; node ``i`` is where leaf ``i`` starts, the last one the end.

    ``run``: the run; ``fine``: whether each leaf is short enough, given the bounds on the frames of
    all joints, seen from the ground.

    Attributes:
        count: number of leaves n.
        times: start and end of each leaf [s], shape (n, 2).
        rotations: of the joints at the nodes, shape (n + 1, njoints, 3, 3).
        origins: of the joints at the nodes [m], shape (n + 1, njoints, 3).
        from_ground: bounds on the frame of every joint, the universe first.
    """

    def __init__(self, run: Trajectory, fine: Criterion) -> None:
        self.robot = run.robot
        self._model = run.robot.model
        self._factors = joint_factors(run.robot)
        self._of_joint: dict[int, list[int]] = {}
        for number, factor in enumerate(self._factors.factors):
            self._of_joint.setdefault(factor.joint, []).append(number)
        base, control, times = _whole_steps(run)
        while True:
            self._base, self._control, self.times = base, control, times
            self._bounds = bound_factors(self._factors, base, control)
            self.from_ground = self._from_ground()
            coarse = ~fine(self.from_ground)
            if not np.any(coarse):
                break
            if len(base) + np.count_nonzero(coarse) > _MOST_LEAVES:
                raise BadValue(
                    f"the tolerance is too small for this motion: it takes more than "
                    f"{_MOST_LEAVES} intervals of time; give a larger one"
                )
            base, control, times = _halved(base, control, times, coarse)
        self.count = len(self._base)
        nodes = np.vstack([integrate_each(self.robot, self._base, self._control[:, 0]), run.q[-1]])
        self.rotations, self.origins = compute_joint_poses(self.robot, nodes)

    def _from_ground(self) -> list[FrameBounds]:
        zero = np.zeros(len(self._base))
        frames = [FrameBounds(zero, zero, zero, zero)]
        for joint in range(1, self._model.njoints):
            bounds = frames[self._model.parents[joint]]
            for number in self._of_joint[joint]:
                bounds = bounds.then(self._bounds[number])
            frames.append(bounds)
        return frames

    def relative(self, joint: int, seen_from: int) -> FrameBounds:
        """Bounds on the frame of a joint as seen from the frame of another."""
        if seen_from == 0:
            return self.from_ground[joint]
        up, down = self._ancestors(seen_from), self._ancestors(joint)
        shared = set(up) & set(down)
        zero = np.zeros(self.count)
        bounds = FrameBounds(zero, zero, zero, zero)
        for here in up:
            if here not in shared:
                for number in reversed(self._of_joint[here]):
                    bounds = bounds.then(self._bounds[number].backwards())
        for here in reversed(down):
            if here not in shared:
                for number in self._of_joint[here]:
                    bounds = bounds.then(self._bounds[number])
        return bounds

    def points(
        self, joint: int, points: Array, seen_from: int = 0, nodes: slice | Integers = slice(None)
    ) -> Array:
        """Positions of points on a joint at the nodes [m], shape (n + 1, m, 3) for all nodes.

        ``points``: the points in its frame [m], shape (m, 3); ``seen_from``: joint in whose frame
        they are given; 0 for the world; ``nodes``: which nodes; all by default.
        """
        R, p = self.rotations[nodes, joint], self.origins[nodes, joint]
        if seen_from:
            R0 = np.swapaxes(self.rotations[nodes, seen_from], 1, 2)
            R, p = R0 @ R, np.einsum("nij,nj->ni", R0, p - self.origins[nodes, seen_from])
        return np.asarray(points @ np.swapaxes(R, 1, 2) + p[:, None])

    def configuration(self, leaf: int, u: float) -> Array:
        """Configuration inside a leaf, ``u`` from 0 to 1."""
        control = self._control[leaf]
        psi = Bernstein.of(len(control) - 1).at(u) @ control
        q = pin.integrate(self._model, self._base[leaf], psi)
        return np.asarray(pin.normalize(self._model, q))

    def time(self, leaf: int, u: float) -> float:
        """Instant inside a leaf [s]."""
        start, end = self.times[leaf]
        return float(end if u == 1.0 else start + u * (end - start))

    def _ancestors(self, joint: int) -> list[int]:
        """A joint and those that carry it, up to the ground, which is left out."""
        chain = []
        while joint:
            chain.append(joint)
            joint = self._model.parents[joint]
        return chain


def _whole_steps(run: Trajectory) -> tuple[Array, Array, Array]:
    """Per leaf its base configuration, control points and times: every step, and every gap."""
    robot, steps = run.robot, expand_steps(run)
    ends = run.q[:-1].copy()
    ends[steps.number] = integrate_each(robot, ends[steps.number], run.psi[steps.number])
    gap = difference_each(robot, ends, run.q[1:])
    apart = np.flatnonzero(np.any(np.abs(gap) > BESIDE_STATE, axis=1))
    order = np.argsort(np.concatenate([2 * steps.number, 2 * apart + 1]))
    if not len(order):  # a run that ended where it started
        return run.q[:1], np.zeros((1, len(steps.basis.even), robot.nv)), run.t[None, [0, -1]]
    base = np.vstack([run.q[steps.number], ends[apart]])
    control = np.vstack([steps.psi, steps.basis.even[:, None] * gap[apart, None]])
    first = np.concatenate([steps.number, apart + 1])
    last = np.concatenate([steps.number + 1, apart + 1])
    return base[order], control[order], np.column_stack([run.t[first], run.t[last]])[order]


def _halved(base: Array, control: Array, times: Array, which: Mask) -> tuple[Array, Array, Array]:
    """The leaves with some of them cut into halves."""
    twice = np.repeat(np.arange(len(base)), np.where(which, 2, 1))
    second = np.zeros(len(twice), dtype=bool)
    second[1:] = twice[1:] == twice[:-1]
    first = which[twice] & ~second
    base, control, times = base[twice], control[twice].copy(), times[twice].copy()
    basis = Bernstein.of(control.shape[1] - 1)
    control[first], control[second] = basis.left @ control[first], basis.right @ control[second]
    middle = times.mean(axis=1)
    times[first, 1], times[second, 0] = middle[first], middle[second]
    return base, control, times
