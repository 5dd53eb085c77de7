"""How far and how fast the bodies of a robot advance towards a person while it stops.

Lengths and speeds only; the terms of the standard are in `separation`.

**Every point of every body counts.** Bodies are convex pieces (`space.solids`). The advance of a
point since an instant, ``d (x(t) - x(0))`` in a direction ``d``, is linear in the point, and its
horizontal displacement is the norm of something linear: both are largest at a corner of the piece.

**Between samples too.** Within a leaf (`IntervalTree`) a point stays within ``A u (1 - u) / 2``
of its chord, if ``A`` bounds its acceleration by the leaf's parameter ``u``. So an advance that is
``f0`` and ``f1`` at the ends is at most ``f0 + c u + A u (1 - u) / 2`` with ``c = f1 - f0``, which
is largest at ``u = 1/2 + c / A``, cut off to [0, 1]. The result is never too small.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import coal
import numpy as np
import pinocchio as pin

from ...boundary.marks import Array
from ...errors import BadValue
from ...model.description import GROUND
from ...simulation.trajectory import Trajectory
from ...tolerances import NO_ADVANCE, SPOT, TINY
from ..space.clearance import Approach, clearance
from ..space.interval_tree import IntervalTree, limit_sag
from ..space.joint_motions import JointMotions, compute_joint_motions
from ..space.solids import Obstacle, Piece, RobotPieces, collect_pieces
from ..stopping import StopResult

_EVERY = 1e-3
"""Interval at which speeds are sampled [s]."""


class Largest(NamedTuple):
    """The largest advance or speed.

    ``value``: how far [m], or how fast [m/s]; never negative; ``body``: name of the body or frame
    that has it; empty if none moves towards the person.
    """

    value: float
    body: str


@dataclass(frozen=True, eq=False)
class Person:
    """Where a person is: in a direction, at a point, or anywhere around if neither is given.

    ``direction``: unit vector from the robot to the person, shape (3,); ``point``: position in the
    world [m], shape (3,).
    """

    direction: Array | None = None
    point: Array | None = None

    def __str__(self) -> str:
        if self.point is not None:
            return f"at ({', '.join(f'{x:g}' for x in self.point)}) m"
        if self.direction is not None:
            return f"in direction ({', '.join(f'{x:.4g}' for x in self.direction + 0.0)})"
        return "in any horizontal direction"


@dataclass(frozen=True, eq=False)
class Advance:
    """The motion of a stopping robot towards a person.

    ``reaction``: advance from the signal to the command; ``stopping``: advance from the command on;
    ``speed``: largest speed from the signal to the command. Towards a point it is that at which any
    body approaches it, each in its own direction, not only the nearest body.
    """

    reaction: Largest
    stopping: Largest
    speed: Largest


@dataclass(frozen=True, eq=False)
class Shapes:
    """The pieces of the bodies that move.

    ``pieces``: the pieces, and balls about frames; ``links``: where they come from; ``tolerance``:
    largest error of an advance, which is never too small [m]; half of it is for round shapes, see
    `excess`; ``frames``: radii of the balls [m] by name of the frame; ``thickness``: of bodies of a
    robot without shapes [m]; None for the default.
    """

    pieces: tuple[Piece, ...]
    links: RobotPieces
    tolerance: float
    frames: Mapping[str, float]
    thickness: float | None

    @property
    def excess(self) -> float:
        """How much polyhedra around round shapes may add to an advance [m]."""
        return 2 * max(piece.excess for piece in self.pieces)

    def largest(self, measure: Callable[[Piece], float]) -> Largest:
        """The first of the pieces with the largest measure."""
        most, body = 0.0, ""
        for piece in self.pieces:
            value = measure(piece)
            if value > max(most, NO_ADVANCE):
                most, body = value, piece.body
        return Largest(most, body)


def collect_shapes(
    run: Trajectory, tolerance: float, frames: Mapping[str, float], thickness: float | None
) -> Shapes:
    """The pieces whose advance counts; see `swept_volume` for the arguments."""
    # A polyhedron that stands out by e may advance up to 2 e farther than the shape in it.
    excess = tolerance / 4
    links = collect_pieces(run.robot, excess, thickness, frames)
    pieces = tuple(piece for piece in links.pieces if piece.joint and piece.body != GROUND)
    if not pieces:
        raise BadValue(f"robot '{run.robot.name}' has no body that moves")
    return Shapes(pieces, links, tolerance, frames, thickness)


def measure_advance(stop: StopResult, person: Person, shapes: Shapes) -> Advance:
    """The advance of a robot towards a person before the command, and after it.

    A `BadValue` if the robot reaches the person.
    """
    run = _with_state(stop.run, stop.chain.command)
    at = int(np.searchsorted(run.t, stop.chain.command, side="right")) - 1
    before, after = _part(run, 0, at), _part(run, at, len(run.t) - 1)
    if person.point is None:
        first, second = (_advance(part, shapes, person.direction) for part in (before, after))
        return Advance(first, second, _fastest(before, shapes, _along(person.direction, run)))
    starts = [_nearest(_part(run, k, k), shapes, person.point) for k in (0, at)]
    ends = [_nearest(part, shapes, person.point) for part in (before, after)]
    if min(end.at_least for end in ends) <= 0.0:
        raise BadValue(
            f"the robot reaches the person {person} before it is at rest; put the person "
            "farther away, or give a direction"
        )
    first, second = (
        Largest(max(0.0, start.distance - end.at_least), end.body)
        for start, end in zip(starts, ends, strict=True)
    )
    return Advance(first, second, _fastest(before, shapes, _closing(person.point)))


def _advance(run: Trajectory, shapes: Shapes, direction: Array | None) -> Largest:
    """Largest advance of any point of the robot from the start of a run to any later instant.

    ``direction``: unit vector towards the person, shape (3,); None for any horizontal direction.
    """
    leaves = IntervalTree(run, limit_sag(shapes.pieces, shapes.tolerance / 2))

    def most(piece: Piece) -> float:
        points = leaves.points(piece.joint, piece.points)
        advance = _towards(points - points[0], direction, run)
        A = leaves.from_ground[piece.joint].point_acceleration(piece.radius)
        return bound_advance(advance, A[:, None])

    return shapes.largest(most)


def fastest_before_command(stop: StopResult, shapes: Shapes) -> float:
    """Largest horizontal speed of any point of the robot from the signal to the command [m/s]."""
    run = _with_state(stop.run, stop.chain.command)
    at = int(np.searchsorted(run.t, stop.chain.command, side="right")) - 1
    before = _part(run, 0, at)
    return _fastest(before, shapes, _along(None, before)).value


Speeds = Callable[[JointMotions, Piece], Array]
"""Largest speed of a piece that matters, in each of many states, shape (n,) [m/s]."""


def _fastest(run: Trajectory, shapes: Shapes, speed: Speeds) -> Largest:
    """Largest speed of any piece of the robot, at stored states and every 1 ms."""
    count = int(np.ceil((run.t[-1] - run.t[0]) / _EVERY)) + 1
    between = run(np.linspace(run.t[0], run.t[-1], count))
    motions = compute_joint_motions(
        run.robot, np.vstack([run.q, between.q]), np.vstack([run.v, between.v])
    )
    return shapes.largest(lambda piece: float(speed(motions, piece).max()))


def _along(direction: Array | None, run: Trajectory) -> Speeds:
    """Speed of a piece's fastest point in a direction; see `_towards`."""

    def speed(motions: JointMotions, piece: Piece) -> Array:
        rates = motions.velocities(piece.joint, piece.points)
        return np.asarray(_towards(rates, direction, run).max(axis=1))

    return speed


def _closing(point: Array) -> Speeds:
    """How fast a piece approaches a point: the speed of its nearest point towards that one.

    For a convex piece with nearest point x the distance ``|p - x|`` falls at ``v(x)`` times the
    unit vector from x to p: x is unique, and moving it on the piece has no effect at first order.
    """
    spot, at = coal.Sphere(SPOT), coal.Transform3s(np.eye(3), point)
    request, result = coal.DistanceRequest(), coal.DistanceResult()

    def nearest(placement: tuple[Array, Array], piece: Piece) -> Array:
        result.clear()
        coal.distance(piece.solid, coal.Transform3s(*placement), spot, at, request, result)
        return np.array(result.getNearestPoint1())

    def speed(motions: JointMotions, piece: Piece) -> Array:
        R, p = motions.rotations[:, piece.joint], motions.origins[:, piece.joint]
        placements = R @ piece.placement.rotation, p + R @ piece.placement.translation
        points = np.array([nearest(place, piece) for place in zip(*placements, strict=True)])
        arms = np.einsum("nji,nj->ni", R, points - p)  # in the frame of the joint
        dR, dp = motions.turning[:, piece.joint], motions.moving[:, piece.joint]
        rates, towards = dp + np.einsum("nij,nj->ni", dR, arms), point - points
        return np.asarray((rates * towards).sum(axis=1) / np.linalg.norm(towards, axis=1))

    return speed


def _nearest(run: Trajectory, shapes: Shapes, point: Array) -> Approach:
    """How near any body of a robot comes during a run to a point in the world [m], shape (3,)."""
    obstacle, tolerance = Obstacle.sphere("person", SPOT, point), shapes.tolerance / 2
    frames, thickness = shapes.frames, shapes.thickness
    approaches = clearance(run, obstacle, tolerance=tolerance, frames=frames, thickness=thickness)
    return approaches["person"]


def _with_state(run: Trajectory, t: float) -> Trajectory:
    """The run with a stored state at ``t`` [s], inserted where there is none."""
    k = int(np.searchsorted(run.t, t, side="right")) - 1
    if k == len(run.t) - 1 or run.t[k] == t:
        return run
    _, q, v = run(t)
    steps = [pin.difference(run.robot.model, *pair) for pair in ((run.q[k], q), (q, run.q[k + 1]))]
    inner = run.inner
    if inner is not None:  # of the two new steps it is computed when it is asked for
        inner = np.concatenate([inner[:k], np.full((2, *inner.shape[1:]), np.nan), inner[k + 1 :]])
    return replace(
        run,
        t=np.insert(run.t, k + 1, t),
        q=np.insert(run.q, k + 1, q, axis=0),
        v=np.insert(run.v, k + 1, v, axis=0),
        a=np.insert(run.a, k + 1, run.equations[k].acceleration(t, q, v), axis=0),
        psi=np.vstack([run.psi[:k], steps, run.psi[k + 1 :]]),
        inner=inner,
        mode=np.insert(run.mode, k + 1, run.mode[k]),
    )


def _part(run: Trajectory, first: int, last: int) -> Trajectory:
    """A run from one stored state to another."""
    states: dict[str, Any] = {
        name: getattr(run, name)[first : last + 1] for name in ("t", "q", "v", "a", "mode")
    }
    inner = None if run.inner is None else run.inner[first:last]
    return replace(run, **states, psi=run.psi[first:last], inner=inner, transitions=(), events=())


def _towards(vectors: Array, direction: Array | None, run: Trajectory) -> Array:
    """Part of vectors in a direction, or the length of their horizontal part; last axis x, y, z."""
    if direction is not None:
        return np.asarray(vectors @ direction)
    gravity = np.asarray(run.robot.gravity)
    size = float(np.linalg.norm(gravity))
    if size > 0.0:  # without gravity nothing is horizontal: any direction counts
        vectors = vectors - (vectors @ (gravity / size))[..., None] * (gravity / size)
    return np.asarray(np.linalg.norm(vectors, axis=-1))


def bound_advance(advance: Array, A: Array) -> float:
    """Bound on the advance within leaves (module docstring).

    ``advance``: advance at the nodes [m], shape (n + 1, m); ``A``: bound on the acceleration in
    each leaf [m], shape (n, 1).
    """
    start, rise = advance[:-1], np.diff(advance, axis=0)
    u = np.clip(0.5 + rise / np.maximum(A, TINY), 0.0, 1.0)
    within = start + rise * u + A * u * (1 - u) / 2
    return float(max(advance.max(), within.max(initial=0.0)))
