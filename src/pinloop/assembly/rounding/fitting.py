r"""The least change of joint frames with which loops close at many configurations at once.

A linkage whose mobility hangs on special geometry (parallel, meeting axes, equal lengths) loses it
when its numbers are rounded: the loops are open by a little wherever it moves. Here the nearest
geometry is found that keeps them closed. With the placement ``X_j`` of every joint frame moved to
``X_j exp(delta_j)``, the residuals ``r_k`` of all loops at configurations ``q_k`` spread over the
motion are brought to zero together,

    r_k(q_k (+) dq_k, delta) = 0   for all k,      |delta| small,

by Levenberg-Marquardt steps damped by the residual itself: they converge quadratically although
neither the configurations nor the frames are determined (Yamashita and Fukushima 2001), and stay
close to the least change. No motion group is asked: the same serves planar and spherical loops and
Bennett's. Whether the change is small enough to be a rounding is for `exact` to say.

If the rows have rank ``m``, then ``m`` coordinates depend on the others. Only these move when loops
are closed: along the motion that the loops are meant to have, they could be closed as well, but far
away, and the geometry would stay as it is. Rows know the joints of their own loop alone, so that
all equations are sparse. Loops that share no joint know nothing of each other: clusters of loops
that can only be closed together are mechanisms of their own, so that long chains of loops cost no
more than their parts.

Numbers without unit: lengths are divided by the robot's characteristic length.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pinocchio as pin
import scipy

from ...boundary.marks import Array, Indices
from ...constraints.relative_motion import Placed
from ...linalg.dense import block_matrix, damped_least_squares
from ...model.description import GROUND, Description, Joint, Side
from ...model.graph import clusters
from ...model.mechanism import Mechanism, build
from ...tolerances import BEST_FIT, CLOSED, FITTED, FITTED_FINEST, LEAST_DAMPING, TINY
from ..search import Problem, jacobian_rank
from .rules import End, Rule, equations


@dataclass(frozen=True, eq=False)
class LoopGroup:
    """Loops of a robot that share joints, and the joints on them, fixed ones too."""

    robot: Mechanism
    loops: frozenset[str]
    joints: frozenset[str]

    @cached_property
    def couplings(self) -> tuple[str, ...]:
        """Couplings between joints of the group."""
        return tuple(c.name for c in self.robot.couplings if self.joints.issuperset(c.joints))

    def part(self, problem: Problem) -> tuple[Indices, Indices]:
        """Rows and columns that belong to the group in a problem of the whole robot."""
        rows = [problem.constraints.rows_of[name] for name in (*self.loops, *self.couplings)]
        columns = [self.robot.coordinates(n).v for n in self.robot.joints if n in self.joints]
        return _indices(rows), _indices(columns)

    def cluster(self) -> LoopCluster:
        """The group as a mechanism that stands on the body that carries all of it."""
        description = self.robot.description
        edges = [edge for edge in self.robot.tree.edges if edge.joint.name in self.joints]
        closing = [joint for joint in description.joints if joint.name in self.loops]
        ends = {end for joint in closing for end in (joint.parent, joint.child)}
        bodies = ends.union(*((edge.parent, edge.child) for edge in edges))
        roots = bodies.difference(edge.child for edge in edges)
        # A base that is welded to the ground stands for both.
        (root,) = roots - {GROUND} if description.base in roots else roots
        names = self.loops | self.joints
        part = replace(
            description,
            bodies=tuple(body for body in description.bodies if body.name in bodies),
            joints=tuple(
                replace(joint, cut=joint.name in self.loops)
                for joint in description.joints
                if joint.name in names
            ),
            base=None if root == GROUND else root,
            couplings=tuple(c for c in description.couplings if c.name in self.couplings),
            actuated=None,
            drives=(),
            frames=(),
            geometry=(),
            warnings=(),
        )
        return _cluster(self.robot, part)

    def configuration(self, cluster: LoopCluster, q: Array) -> Array:
        """The cluster's part of a configuration of the whole robot."""
        return q[_indices(self.robot.coordinates(name).q for name in cluster.robot.joints)]


def _indices(parts: Iterable[slice]) -> Indices:
    return np.asarray(np.r_[slice(0), *parts], dtype=np.intp)


def loop_groups(robot: Mechanism) -> list[LoopGroup]:
    """The loops of a robot, those together that share joints that move."""
    chains = {loop.name: (*loop.loop.chain_a, *loop.loop.chain_b) for loop in robot.loops}
    moving = frozenset(robot.joints)
    groups = clusters({name: moving.intersection(chain) for name, chain in chains.items()})
    return [
        LoopGroup(
            robot,
            frozenset(group.names),
            frozenset(joint for name in group.names for joint in chains[name]),
        )
        for group in groups
    ]


def rigid_loops(problem: Problem, q: Array) -> list[str]:
    """Loops that are closed at a configuration and leave their joints no motion there."""
    residual, jacobian, rigid = problem.residual(q), problem.jacobian(q), set[str]()
    for group in loop_groups(problem.robot):
        rows, columns = group.part(problem)
        is_closed = float(np.linalg.norm(residual[rows])) < CLOSED
        if is_closed and 0 < len(columns) == jacobian_rank(jacobian[np.ix_(rows, columns)]):
            rigid |= group.loops
    return [loop.name for loop in problem.robot.loops if loop.name in rigid]


@dataclass(frozen=True, eq=False)
class LoopCluster:
    """A mechanism that is one group of loops, with all of their rows.

    Numbers without unit: lengths are divided by the characteristic length of the robot that the
    loops are part of.
    """

    robot: Mechanism

    @cached_property
    def problem(self) -> Problem:
        """Closure of all rows, without limits."""
        return Problem.closure(self.robot)

    @cached_property
    def frames(self) -> tuple[End, ...]:
        """Joint frames that shape its links: the outer one of tree joints, both of loop joints."""
        edges = {edge.joint.name: edge for edge in self.robot.tree.edges}
        sides: dict[int, Side] = {1: "frame_parent", -1: "frame_child"}
        outer = [(name, sides[edges[name].orientation]) for name in self.robot.joints]
        return (
            *outer,
            *((loop.name, side) for loop in self.robot.loops for side in sides.values()),
        )

    @cached_property
    def ends(self) -> tuple[End, ...]:
        """Both frames of all joints that move."""
        other: dict[Side, Side] = {"frame_parent": "frame_child", "frame_child": "frame_parent"}
        inner = [(name, other[side]) for name, side in self.frames[: len(self.robot.joints)]]
        return (*inner, *self.frames)

    def residual(self, q: Array) -> Array:
        """Residual of all rows, shape (rows,)."""
        return self.problem.residual(q)

    def jacobian(self, q: Array) -> Array:
        """Derivative of the residual by the coordinates, shape (rows, nv)."""
        return self.problem.jacobian(q)

    def stepped(self, q: Array, step: Array) -> Array:
        """``q`` moved by a scaled step."""
        model = self.robot.model
        moved = pin.integrate(model, q, step * self.problem.column_scale)
        return np.asarray(pin.normalize(model, moved))

    def frame_blocks(self, q: Array, first: int = 0) -> list[tuple[int, int, Array]]:
        """Derivative of the residual by the frames' shifts, as blocks of (rows, 6 frames).

        A tree joint's frame carries all that hangs on the joint, a frame B its own loop's end; a
        frame A moves the other side. Exact where the loops are closed, as the Jacobian by ``q``.
        """
        robot, constraints = self.robot, self.problem.constraints
        unit, blocks = np.array([robot.length] * 3 + [1.0] * 3), []
        with constraints.kinematics(q) as placed:
            selectors = constraints.world_selectors(placed)
            selectors *= self.problem.row_scale[: len(selectors), None]
            for index, end in enumerate(self.frames):
                twists = self._placement(placed, end).toActionMatrix() * unit
                for rows, sign in self._carried[end]:
                    block = sign * (selectors[rows] @ twists)
                    blocks.append((first + rows.start, 6 * index, block))
        return blocks

    def _placement(self, placed: Placed, end: End) -> pin.SE3:
        """Placement in the world of one frame of a joint."""
        joint, side = self._joints[end[0]], end[1]
        body = joint.parent if side == "frame_parent" else joint.child
        frame: pin.SE3 = getattr(joint, side)
        return frame if body == GROUND else placed.oMf[self.robot.frame_id(body)] * frame

    @cached_property
    def _joints(self) -> dict[str, Joint]:
        return {joint.name: joint for joint in self.robot.description.joints}

    @cached_property
    def _carried(self) -> dict[End, list[tuple[slice, float]]]:
        """Rows of the loops that a shift of each joint frame moves, and the sign of that."""
        carried: dict[End, list[tuple[slice, float]]] = {end: [] for end in self.frames}
        outer = dict(self.frames[: len(self.robot.joints)])
        for loop in self.robot.loops:
            rows = self.problem.constraints.rows_of[loop.name]
            carried[loop.name, "frame_parent"].append((rows, -1.0))
            carried[loop.name, "frame_child"].append((rows, 1.0))
            for name in {*loop.loop.chain_a, *loop.loop.chain_b}:
                sign = float(name in loop.loop.chain_b) - float(name in loop.loop.chain_a)
                if sign and name in outer:
                    carried[name, outer[name]].append((rows, sign))
        return carried

    def moved(self, shift: Array) -> LoopCluster:
        """The cluster with its frames moved by ``exp`` of their parts of the shift."""
        robot, joints = self.robot, dict(self._joints)
        unit = np.array([robot.length] * 3 + [1.0] * 3)
        for (name, side), part in zip(self.frames, shift.reshape(-1, 6), strict=True):
            frame = getattr(joints[name], side) * pin.exp6(unit * part)
            joints[name] = replace(joints[name], **{side: frame})
        return _cluster(robot, replace(robot.description, joints=tuple(joints.values())))


def _cluster(robot: Mechanism, part: Description) -> LoopCluster:
    """A part of a robot as a mechanism, with the same characteristic length."""
    return LoopCluster(replace(build(part, kinematics_only=True), given_length=robot.length))


_CAUTION = 20.0
"""How many times the first residual a singular value must be to be told from rounding at once."""
_GAIN = 0.3
"""A step that leaves more than this part of the residual shows that smaller ones must be seen."""
_ITERATIONS = 60
_PATIENCE = 2
"""How many more steps may lead astray than lead on."""
_REACH = 0.3
"""Largest part of a step from one configuration to the next: radians, characteristic lengths."""


@dataclass(frozen=True, eq=False)
class Place:
    """A configuration at which loops are nearly closed.

    ``dependent``: velocity coordinates that follow from the others. ``opening``: what is left open.
    """

    q: Array
    dependent: Indices
    opening: float


def walk(
    cluster: LoopCluster, q: Array, rank: int, allowed: float, count: int
) -> list[Place] | None:
    """Configurations along the motion that the loops have if their rows have the given rank.

    Each is a random motion away from the one before, always the same ones; the first is closed from
    ``q``. There are ``count`` if the loops move at all, and None if they open by more than is
    ``allowed`` wherever they go, so that the rank is not theirs.
    """
    rng, wanted = np.random.default_rng(0), 1 if rank == cluster.robot.nv else count
    heading, reach, places = np.zeros(cluster.robot.nv), _REACH, list[Place]()
    for attempt in range(2 * wanted):
        place = close(cluster, q, rank)
        if place is not None and place.opening <= allowed:
            places.append(place)
            reach = min(2 * reach, _REACH)
            if len(places) == wanted:
                break
        elif attempt > 2 * len(places) + _PATIENCE or not places:
            return None
        else:  # a dead end, or a singular pose with another branch behind it
            reach /= 2
        # Straight on rather than to and fro: a wide motion tells more.
        motions = _motions(cluster.jacobian(places[-1].q), places[-1].dependent)
        heading = heading + 0.5 * rng.normal(size=len(heading))
        heading = motions @ np.linalg.lstsq(motions, heading, rcond=None)[0]
        heading = heading / max(float(np.linalg.norm(heading)), TINY)
        step = rng.uniform(0.4, 1.0) * reach * heading / np.abs(heading).max(initial=TINY)
        q = cluster.stepped(places[-1].q, step)
    return places


def close(cluster: LoopCluster, q: Array, rank: int) -> Place | None:
    """Close the loops by ``rank`` coordinates, those in which they resist most; None if in vain."""
    error = float(np.linalg.norm(cluster.residual(q)))
    _, pivots = scipy.linalg.qr(cluster.jacobian(q), mode="r", pivoting=True)
    dependent = np.sort(pivots[:rank]).astype(np.intp)
    for _ in range(_ITERATIONS):
        residual, jacobian = cluster.residual(q), cluster.jacobian(q)[:, dependent]
        damping = min(error**2, 1e-2) * max(1.0, float(np.square(jacobian).sum(0).max(initial=0)))
        change = damped_least_squares(jacobian, -residual, damping)
        error = float(np.linalg.norm(jacobian @ change))
        if error < FITTED:
            return Place(q, dependent, float(np.linalg.norm(residual)))
        step = np.zeros(cluster.robot.nv)
        step[dependent] = change * min(1.0, _REACH / np.abs(change).max())
        q = cluster.stepped(q, step)
    return None


def _motions(jacobian: Array, dependent: Indices) -> Array:
    """What the independent coordinates move, one by one, shape (nv, independent)."""
    free = np.setdiff1d(np.arange(jacobian.shape[1]), dependent)
    motions = np.zeros((jacobian.shape[1], len(free)))
    motions[free, np.arange(len(free))] = 1.0
    motions[dependent] = damped_least_squares(jacobian[:, dependent], -jacobian[:, free], 0.0)
    return motions


@dataclass(frozen=True, eq=False)
class Fit:
    """A change of frames with which loops close: a cluster whose frames were moved by a shift."""

    cluster: LoopCluster
    shift: Array

    @property
    def size(self) -> float:
        """The largest turn [rad] or shift [characteristic lengths] of a frame."""
        return float(np.linalg.norm(self.shift.reshape(-1, 2, 3), axis=2).max(initial=0.0))


def fit_frames(
    cluster: LoopCluster,
    places: Sequence[Place],
    limit: float,
    rules: Sequence[Rule],
    home: Array | None = None,
) -> Fit | None:
    """Move the frames of a cluster by as little as closes its loops at all places.

    The axes on its links are to obey rules besides, and a configuration ``home``, if any, is to be
    closed as it is. None if the change would be larger than the limit, or if there is none.
    """
    shift, here, threshold = np.zeros(6 * len(cluster.frames)), cluster, 0.0
    at = [place.q for place in places]
    best: tuple[float, Fit] | None = None
    for _ in range(_ITERATIONS):
        matrix, missing = _equations(here, at, places, rules, home)
        error = _size(missing, len(at), len(here.problem.constraints))
        fit = Fit(here, shift.reshape(-1, 6))
        if fit.size > 2 * limit:
            break
        threshold = threshold or _CAUTION * error
        if best is not None and error > _GAIN * best[0]:
            if best[0] < FITTED or threshold <= FITTED_FINEST:
                break
            threshold = max(threshold / 10, FITTED_FINEST)
        if best is None or error < best[0]:
            best = error, fit
        if error < BEST_FIT * np.sqrt(len(missing)):  # rounding adds up
            break
        damping = np.full(matrix.shape[1], max(error, LEAST_DAMPING) ** 2)
        damping[: len(shift)] = threshold**2 * max(1, len(at))
        step = damped_least_squares(matrix, -missing, damping)
        shift = shift + step[: len(shift)]
        here = cluster.moved(shift)
        for k, change in enumerate(step[len(shift) :].reshape(len(at), -1) if at else ()):
            whole = np.zeros(cluster.robot.nv)
            whole[places[k].dependent] = change
            motions = _motions(cluster.jacobian(at[k]), places[k].dependent)
            whole -= motions @ np.linalg.lstsq(motions, whole, rcond=None)[0]
            at[k] = here.stepped(at[k], whole)
    if best is None or best[0] > FITTED or best[1].size > limit:
        return None
    return best[1]


def _equations(
    cluster: LoopCluster,
    at: Sequence[Array],
    places: Sequence[Place],
    rules: Sequence[Rule],
    home: Array | None,
) -> tuple[Any, Array]:
    """All that is to vanish, and its derivative by the frames and the dependent coordinates."""
    blocks, missing = equations(cluster.robot, rules, cluster.frames)
    column = 6 * len(cluster.frames)
    for number, q in enumerate(at if home is None else [home, *at], start=home is None):
        blocks += cluster.frame_blocks(q, len(missing))
        if number > 0:
            dependent = places[number - 1].dependent
            blocks.append((len(missing), column, cluster.jacobian(q)[:, dependent]))
            column += len(dependent)
        missing = np.concatenate([missing, cluster.residual(q)])
    return block_matrix((len(missing), column), blocks), missing


def _size(missing: Array, places: int, rows: int) -> float:
    """Root of the sum of squares, where places count by their mean."""
    squares = np.square(missing)
    spread = float(squares[len(missing) - places * rows :].sum())
    return float(np.sqrt(squares.sum() - spread + spread / max(places, 1)))
