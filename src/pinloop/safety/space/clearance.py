"""How near a moving robot comes to obstacles and to itself, and when it touches first.

Distances are coal's, on a `pin.GeometryModel`; nothing here knows how two shapes are compared.

**Nothing between samples is missed.** As seen from a body B (or from the ground), a point of a
body A travels at most ``chord + A / 2`` in a leaf (see `interval_tree`), where the chord joins its
positions at the ends of the leaf and ``A`` bounds its acceleration: its velocity differs by no more
than ``A / 2`` from its mean. Added up over the leaves this is the *travel*, and the distance of the
two bodies changes by no more than the travel does. Both searches use nothing else of a function
than ``|f(x) - f(y)| <= |x - y|``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from heapq import heappop, heappush
from itertools import combinations
from typing import Any

import numpy as np
import pinocchio as pin

from ...boundary.arguments import public
from ...boundary.marks import Array
from ...errors import BadValue, UnknownName
from ...model.workspace import create_data
from ...simulation.trajectory import Trajectory
from ...tolerances import DISTANCE_ERROR, SLACK, TOUCH
from .interval_tree import IntervalTree, checked_run, limit_sag
from .solids import Obstacle, Piece, checked_obstacles, collect_pieces, require_length


@dataclass(frozen=True, eq=False)
class Approach:
    """How near a body came to an obstacle or to another body.

    Args:
        body: name of the body.
        other: name of the obstacle or of the other body.
        distance: smallest distance found [m]; 0 if they touch.
        at_least: lower bound on their distance at every instant [m].
        t: instant of that distance, or of the first touch [s].
        point: the point of the body nearest to the other at that instant, in the world [m].
        other_point: the point of the other nearest to the body [m].
    """

    body: str
    other: str
    distance: float
    at_least: float
    t: float
    point: Array
    other_point: Array

    def __repr__(self) -> str:
        pair = f"'{self.body}' and '{self.other}'"
        if self.touches:
            return f"<Approach: {pair} touch at t = {self.t:.6g} s>"
        return f"<Approach: {pair} {1000 * self.distance:.1f} mm apart at t = {self.t:.6g} s>"

    @property
    def touches(self) -> bool:
        """Whether the two touch."""
        return self.distance == 0.0


@dataclass(frozen=True, eq=False)
class SelfCollisions:
    """How near the bodies of a robot came to each other.

    Args:
        approaches: approach of each pair of bodies that was compared, the nearest first.
        excluded: why a pair of bodies was not compared.
    """

    approaches: tuple[Approach, ...]
    excluded: dict[tuple[str, str], str]

    @property
    def touching(self) -> tuple[Approach, ...]:
        """The pairs that touch, the earliest first."""
        touching = [approach for approach in self.approaches if approach.touches]
        return tuple(sorted(touching, key=lambda approach: approach.t))


@public
def clearance(
    run: Trajectory,
    obstacles: Obstacle | Iterable[Obstacle],
    *,
    tolerance: float = 0.001,
    ignore: Iterable[str] = (),
    frames: Mapping[str, float] | None = None,
    thickness: float | None = None,
) -> dict[str, Approach]:
    """Return how near the robot comes to each obstacle during a run.

    Bodies are made of their collision shapes, or of the visual ones where there are no others;
    meshes of the robot count as their convex hulls, meshes of obstacles as they are. Bodies welded
    to the ground do not move and are left out.

    Args:
        run: the run.
        obstacles: the obstacles.
        tolerance: largest error of the smallest distance, which is never too small [m].
        ignore: names of bodies to leave out.
        frames: further points that count (tool points, corners of a payload): radius of a ball
            about each [m] by name of the frame.
        thickness: of a robot without shapes: how thick its bodies are about their frames [m]; a
            fiftieth of its characteristic length by default.

    Returns:
        By name of the obstacle, the approach of the body that comes nearest, or touches first.

    Raises:
        BadValue: an argument is impossible, or a mesh cannot be read.
        UnknownName: the robot has no such body.
    """
    run, things = checked_run(run), checked_obstacles(obstacles)
    left_out = {ignore} if isinstance(ignore, str) else set(ignore)
    for name in left_out:
        if name not in run.robot.bodies:
            raise UnknownName("body", name, run.robot.bodies, run.robot.name)
    scene = _Scene(run, require_length("tolerance", tolerance), thickness, things, frames or {})
    moving = [
        number
        for number, piece in enumerate(scene.pieces)
        if piece.joint and piece.body not in left_out
    ]
    if not moving:
        raise BadValue(f"robot '{run.robot.name}' has no body that moves and is not ignored")
    approaches = {}
    for place, obstacle in enumerate(things, start=len(scene.pieces)):
        approaches[obstacle.name] = scene.approach([(number, place) for number in moving])
    return approaches


@public
def self_collisions(
    run: Trajectory, *, tolerance: float = 0.001, thickness: float | None = None
) -> SelfCollisions:
    """Return how near the bodies of the robot come to each other during a run.

    Left out are pairs that a joint joins, in the tree or closing a loop, that are welded to each
    other, or that overlap at the start: shapes of neighbours often do. Shapes of the ground count
    as a body.

    Args:
        run: the run.
        tolerance: largest error of the smallest distance, which is never too small [m].
        thickness: of a robot without shapes: how thick its bodies are about their frames [m].

    Raises:
        BadValue: an argument is impossible, or a mesh cannot be had.
    """
    run = checked_run(run)
    scene = _Scene(run, require_length("tolerance", tolerance), thickness, [], {})
    of_body: dict[str, list[int]] = {}
    for number, piece in enumerate(scene.pieces):
        of_body.setdefault(piece.body, []).append(number)
    joined = {frozenset((joint.parent, joint.child)) for joint in run.robot.description.joints}
    approaches, excluded = [], {}
    for a, b in combinations(of_body, 2):
        pairs = [(i, j) for i in of_body[a] for j in of_body[b]]
        if scene.pieces[pairs[0][0]].joint == scene.pieces[pairs[0][1]].joint:
            excluded[a, b] = "they are welded to each other"
        elif frozenset((a, b)) in joined:
            excluded[a, b] = "a joint joins them"
        elif any(scene.at_start(pair) <= TOUCH for pair in pairs):
            excluded[a, b] = "they overlap at the start"
        else:
            approaches.append(scene.approach(pairs))
    approaches.sort(key=lambda approach: (approach.distance, approach.t))
    return SelfCollisions(tuple(approaches), excluded)


# -- pairs ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Travel:
    """Bound on the travel of the points of one piece as seen from another, over the leaves.

    ``leaves``: the motion; ``passed``: travel at the nodes [m], not falling, shape (n + 1,).
    """

    leaves: IntervalTree
    passed: Array

    @property
    def length(self) -> float:
        """The whole travel [m]."""
        return float(self.passed[-1])

    def locate(self, travel: float) -> tuple[int, float]:
        """The leaf in which so much has been travelled, and the part of it that is over."""
        leaf = int(np.searchsorted(self.passed, travel, side="right")) - 1
        leaf = min(max(leaf, 0), self.leaves.count - 1)
        start, end = self.passed[leaf], self.passed[leaf + 1]
        part = (travel - start) / (end - start) if end > start else 0.0
        return leaf, float(min(max(part, 0.0), 1.0))

    def time(self, travel: float) -> float:
        """Instant at which so much has been travelled [s]."""
        return self.leaves.time(*self.locate(travel))

    def until(self, t: float) -> float:
        """Travel up to an instant [m]."""
        times = self.leaves.times
        leaf = min(int(np.searchsorted(times[:, 1], t)), self.leaves.count - 1)
        start, end = times[leaf]
        part = (t - start) / (end - start) if end > start else 1.0
        return float(self.passed[leaf] + part * (self.passed[leaf + 1] - self.passed[leaf]))


class _Scene:
    """The moving pieces of a robot, and obstacles, as coal compares them.

    The distance that is found lies above the smallest one by no more than the tolerance [m].
    """

    def __init__(
        self,
        run: Trajectory,
        tolerance: float,
        thickness: float | None,
        obstacles: list[Obstacle],
        frames: Mapping[str, float],
    ) -> None:
        self.pieces = collect_pieces(run.robot, tolerance, thickness, frames).pieces
        self._tolerance, self._obstacles = tolerance, obstacles
        self._names = [*(x.body for x in self.pieces), *(x.name for x in obstacles)]
        self._joints = [*(x.joint for x in self.pieces), *(0 for _ in obstacles)]
        self._leaves = IntervalTree(run, limit_sag(self.pieces, tolerance))
        self._model, self._data = run.robot.model, create_data(run.robot.model)
        self._shapes, self._number = _geometry_model(self.pieces, tuple(obstacles))
        self._shapes_data = pin.GeometryData(self._shapes)
        self._placed: tuple[int, float] | None = None

    def at_start(self, pair: tuple[int, int]) -> float:
        """Distance of a pair at the start [m], negative inside each other."""
        obstacle = pair[1] - len(self.pieces)
        distance = float(self._compare(pair, 0, 0.0).min_distance)
        if obstacle >= 0:
            piece = self.pieces[pair[0]]
            middle = self._data.oMi[piece.joint].act(piece.points.mean(axis=0))
            if self._obstacles[obstacle].surrounds(middle):
                return min(distance, 0.0)
        return distance

    def approach(self, pairs: list[tuple[int, int]]) -> Approach:
        """Of these pairs the one that touches first, or else comes nearest."""
        starts = {pair: self.at_start(pair) for pair in pairs}
        best, bound, where = np.inf, np.inf, (pairs[0], 0, 0.0)
        touch = np.inf
        for pair in sorted(pairs, key=lambda pair: starts[pair]):
            travel = self._travel(pair)

            def distance(x: float, pair: tuple[int, int] = pair, travel: _Travel = travel) -> float:
                if x == 0.0:
                    return starts[pair]
                return float(self._compare(pair, *travel.locate(x)).min_distance)

            if touch == np.inf:
                minimum = find_minimum(distance, travel.length, self._tolerance, best)
                bound = min(bound, minimum.bound)
                if minimum.value < best:
                    best, where = minimum.value, (pair, *travel.locate(minimum.at))
                if minimum.value > TOUCH:
                    continue
                limit = minimum.at
            else:
                limit = travel.until(touch)
            first = find_contact(distance, limit)
            if first is not None and travel.time(first) < touch:
                touch, where = travel.time(first), (pair, *travel.locate(first))
        return self._describe(*where, 0.0 if best <= TOUCH else best, bound)

    def _describe(
        self, pair: tuple[int, int], leaf: int, u: float, distance: float, bound: float
    ) -> Approach:
        result = self._compare(pair, leaf, u)
        return Approach(
            self._names[pair[0]],
            self._names[pair[1]],
            distance,
            max(0.0, min(bound, distance) - DISTANCE_ERROR - SLACK),
            self._leaves.time(leaf, u),
            np.array(result.getNearestPoint1()),
            np.array(result.getNearestPoint2()),
        )

    def _compare(self, pair: tuple[int, int], leaf: int, u: float) -> Any:
        """Distance and nearest points of a pair inside a leaf, by coal."""
        if self._placed != (leaf, u):  # many pairs are compared at the start
            q, data = self._leaves.configuration(leaf, u), self._shapes_data
            pin.updateGeometryPlacements(self._model, self._data, self._shapes, data, q)
            self._placed = leaf, u
        return pin.computeDistance(self._shapes, self._shapes_data, self._number[pair])

    def _travel(self, pair: tuple[int, int]) -> _Travel:
        """Bound on the travel of the first of a pair as seen from the second."""
        piece, seen_from = self.pieces[pair[0]], self._joints[pair[1]]
        seen = self._leaves.relative(piece.joint, seen_from)
        moved = np.diff(self._leaves.points(piece.joint, piece.points, seen_from), axis=0)
        chord = np.sqrt(np.max(np.sum(moved * moved, axis=2), axis=1))
        travel = np.minimum(
            chord + seen.point_acceleration(piece.radius) / 2, seen.point_velocity(piece.radius)
        )
        return _Travel(self._leaves, np.concatenate([[0.0], np.cumsum(travel)]))


@lru_cache(maxsize=4)
def _geometry_model(
    pieces: tuple[Piece, ...], obstacles: tuple[Obstacle, ...]
) -> tuple[pin.GeometryModel, dict[tuple[int, int], int]]:
    """Pieces and obstacles, in this order, and numbers of the pairs that can move to each other.

    Kept for the next run of the same robot among the same obstacles.
    """
    shapes = pin.GeometryModel()
    for number, piece in enumerate(pieces):
        name = f"{number}:{piece.body}"
        shape = pin.GeometryObject(name, piece.joint, piece.placement, piece.solid)
        shapes.addGeometryObject(shape)
    for obstacle in obstacles:
        name = f"obstacle:{obstacle.name}"
        shapes.addGeometryObject(pin.GeometryObject(name, 0, obstacle.placement, obstacle.solid))
    joints = [piece.joint for piece in pieces] + [0] * len(obstacles)
    every = combinations(range(len(joints)), 2)
    pairs = [(i, j) for i, j in every if joints[i] != joints[j]]
    for pair in pairs:
        shapes.addCollisionPair(pin.CollisionPair(*pair))
    return shapes, {pair: number for number, pair in enumerate(pairs)}


# -- searches ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Minimum:
    """The least value of a function.

    ``at``: where it was found; ``value``: what was found; ``bound``: the function is nowhere below
    this.
    """

    at: float
    value: float
    bound: float


def find_minimum(
    f: Callable[[float], float], length: float, tolerance: float, enough: float = float("inf")
) -> Minimum:
    """Minimum value of ``f`` on [0, length] (Piyavskii and Shubert).

    Between two samples ``f`` is at least ``(f(a) + f(b) - (b - a)) / 2``, and could be so small
    only at one place, which is where it is sampled next; the lowest such place comes first.
    ``tolerance``: how far the value found may lie above the least one; ``enough``: what lies above
    this is of no interest, nor is how far, nor is it below `TOUCH`.
    """
    ends = [(x, f(x)) for x in dict.fromkeys((0.0, length))]
    at, value = min(ends, key=lambda sample: sample[1])
    (a, fa), (b, fb) = ends[0], ends[-1]
    waiting = [((fa + fb - (b - a)) / 2, a, fa, b, fb)]
    while value > TOUCH:
        bound, a, fa, b, fb = waiting[0]
        goal = min(value, enough)
        # A value near zero has to be told from zero.
        if bound >= goal - max(min(tolerance, goal / 2), DISTANCE_ERROR):
            return Minimum(at, value, min(bound, value))
        heappop(waiting)
        x = min(max((a + b + fa - fb) / 2, a), b)
        fx = f(x)
        if fx < value:
            at, value = x, fx
        heappush(waiting, ((fa + fx - (x - a)) / 2, a, fa, x, fx))
        heappush(waiting, ((fx + fb - (b - x)) / 2, x, fx, b, fb))
    return Minimum(at, value, 0.0)


def find_contact(f: Callable[[float], float], length: float) -> float | None:
    """First place on [0, length] where ``f`` is no more than `TOUCH`, or None (advancement).

    From a place where ``f`` is ``d`` its next zero is at least ``d`` away.
    """
    x = 0.0
    while True:
        value = f(x)
        if value <= TOUCH:
            return x
        if x >= length:
            return None
        x = min(x + max(value - DISTANCE_ERROR, DISTANCE_ERROR), length)
