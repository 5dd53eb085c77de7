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
Bennett's. Whether the change is small enough to be a rounding is for `rounding` to say.

Numbers without unit: lengths are divided by the robot's characteristic length.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from .alignment import Alignment, alignments_of, equations
from .closing import Problem
from .constraints import Constraints
from .description import GROUND, Joint, Side
from .mechanism import Mechanism, build

__all__ = ["Fit", "LoopCluster", "fit_frames", "loop_clusters", "walk"]

Array = NDArray[np.float64]

_CAUTION = 20.0
"""How many times the first residual a singular value must be to be told from rounding at once."""
_GAIN = 0.3
"""A step that leaves more than this part of the residual shows that smaller ones must be seen."""
_THRESHOLD = 1e-9
"""Singular values below this part of the largest one are rounding in any case."""
_DAMPING = 1e-9
"""Least damping of the configurations' steps."""
_CLOSED = 3e-15
"""Residual at which nothing is left to be gained."""
_DONE = 1e-12
"""Residual at which a fit that gains no more has succeeded."""
_ITERATIONS = 30
_SHARE = 0.15
"""Configurations whose rows are less independent than this part of the best are passed over."""
_REACH = 0.5
"""Largest part of a step from one configuration to the next: radians, characteristic lengths."""


@dataclass(frozen=True, eq=False)
class LoopCluster:
    """Loops that share joints, so that they can only be closed together.

    Args:
        robot: the whole tree with the loops of the cluster alone.
        joints: tree joints on these loops that move.
    """

    robot: Mechanism
    joints: tuple[str, ...]

    @cached_property
    def problem(self) -> Problem:
        """Closure of all rows, without limits."""
        return Problem(self.robot, Constraints(self.robot, full=True), (), {}, limits=False)

    @cached_property
    def rows(self) -> NDArray[np.intp]:
        """Rows of the cluster's loops, and of the couplings between its joints."""
        coupled = [c.name for c in self.robot.couplings if set(c.joints) <= set(self.joints)]
        names = [*(loop.name for loop in self.robot.loops), *coupled]
        parts = [self.problem.constraints.rows_of[name] for name in names]
        return np.concatenate([np.arange(part.start, part.stop) for part in parts])

    @cached_property
    def columns(self) -> NDArray[np.intp]:
        """Velocity coordinates of its joints."""
        parts = [self.robot.coordinates(name).v for name in self.joints]
        spans = [np.arange(part.start, part.stop, dtype=np.intp) for part in parts]
        return np.concatenate([np.zeros(0, dtype=np.intp), *spans])

    @cached_property
    def frames(self) -> tuple[tuple[str, Side], ...]:
        """Joint frames that shape its links: the outer one of tree joints, both of loop joints."""
        edges = {edge.joint.name: edge for edge in self.robot.tree.edges}
        sides: dict[int, Side] = {1: "frame_parent", -1: "frame_child"}
        outer = [(name, sides[edges[name].orientation]) for name in self.joints]
        return (
            *outer,
            *((loop.name, side) for loop in self.robot.loops for side in sides.values()),
        )

    def alignments(self, limit: float) -> list[Alignment]:
        """What the axes on each of its links are meant to obey."""
        other: dict[Side, Side] = {"frame_parent": "frame_child", "frame_child": "frame_parent"}
        inner = [(name, other[side]) for name, side in self.frames[: len(self.joints)]]
        return alignments_of(self.robot, [*inner, *self.frames], limit)

    def residual(self, q: Array) -> Array:
        """Residual of its rows, shape (rows,)."""
        return self.problem.residual(q)[self.rows]

    def jacobian(self, q: Array) -> Array:
        """Derivative of the residual by its coordinates, shape (rows, columns)."""
        return self.problem.jacobian(q)[np.ix_(self.rows, self.columns)]

    def stepped(self, q: Array, step: Array) -> Array:
        """``q`` with the cluster's coordinates moved by a scaled step."""
        whole = np.zeros(self.robot.nv)
        whole[self.columns] = step
        model = self.robot.model
        moved = pin.integrate(model, q, whole * self.problem.column_scale)
        return np.asarray(pin.normalize(model, moved))

    def frame_jacobian(self, q: Array) -> Array:
        """Derivative of the residual by the frames' shifts, shape (rows, 6 frames).

        A tree joint's frame carries all that hangs on the joint, a frame B its own loop's end; a
        frame A moves the other side. Exact where the loops are closed, as the Jacobian by ``q``.
        """
        robot, constraints = self.robot, self.problem.constraints
        data = robot.model.createData()
        pin.framesForwardKinematics(robot.model, data, q)
        selectors = constraints.world_selectors(data)
        joints = {joint.name: joint for joint in robot.description.joints}
        unit = np.array([robot.length] * 3 + [1.0] * 3)
        effects = np.zeros((len(constraints), 6 * len(self.frames)))
        for index, (name, side) in enumerate(self.frames):
            twists = _placement(robot, data, joints[name], side).toActionMatrix() * unit
            for loop in robot.loops:
                sign = float(name in loop.loop.chain_b) - float(name in loop.loop.chain_a)
                if name == loop.name:
                    sign = -1.0 if side == "frame_parent" else 1.0
                if sign:
                    rows = constraints.rows_of[loop.name]
                    effects[rows, 6 * index : 6 * index + 6] = sign * (selectors[rows] @ twists)
        scaled: Array = effects * self.problem.row_scale[:, None]
        return scaled[self.rows]

    def moved(self, shift: Array) -> LoopCluster:
        """The cluster with its frames moved by ``exp`` of their parts of the shift."""
        robot = self.robot
        changed = build(
            replace(robot.description, joints=self.moved_joints(shift)), kinematics_only=True
        )
        names = {loop.name for loop in robot.loops}
        loops = tuple(loop for loop in changed.loops if loop.name in names)
        return replace(self, robot=replace(changed, loops=loops, given_length=robot.length))

    def moved_joints(self, shift: Array) -> tuple[Joint, ...]:
        """All joints of the robot, those of the cluster with their frames moved."""
        joints = {joint.name: joint for joint in self.robot.description.joints}
        unit = np.array([self.robot.length] * 3 + [1.0] * 3)
        for (name, side), part in zip(self.frames, shift.reshape(-1, 6), strict=True):
            frame = getattr(joints[name], side) * pin.exp6(unit * part)
            joints[name] = replace(joints[name], **{side: frame})
        return tuple(joints.values())


def _placement(robot: Mechanism, data: pin.Data, joint: Joint, side: Side) -> pin.SE3:
    """Placement in the world of one frame of a joint."""
    body, frame = joint.parent, joint.frame_parent
    if side == "frame_child":
        body, frame = joint.child, joint.frame_child
    return frame if body == GROUND else data.oMf[robot.frame_id(body)] * frame


def loop_clusters(robot: Mechanism) -> list[LoopCluster]:
    """The loops of a robot, those together that share joints or are coupled."""
    return [
        LoopCluster(
            replace(
                robot,
                loops=tuple(loop for loop in robot.loops if loop.name in cluster.names),
                given_length=robot.length,
            ),
            tuple(name for name in robot.joints if name in cluster.joints),
        )
        for cluster in robot.clusters
        if any(loop.name in cluster.names for loop in robot.loops)
    ]


def walk(
    cluster: LoopCluster, q: Array, rank: int, allowed: float, rng: np.random.Generator
) -> list[Array] | None:
    """Configurations along the motion that the loops have if their rows have the given rank.

    Each is a random motion away from the one before, closed along the ``rank`` directions in which
    the loops resist most. Those beside singular poses are left out.

    Args:
        cluster: the loops.
        q: a configuration at which they are nearly closed, shape (nq,).
        rank: rank that the rows would have without rounding.
        allowed: what the other directions may be left open by.
        rng: source of the motions.

    Returns:
        The configurations; None if the loops open by more than is allowed, so that the rank is
        not theirs.
    """
    unknown, redundant = 6 * len(cluster.frames), len(cluster.rows) - rank
    wanted = 1 if rank == len(cluster.columns) else max(6, -(-unknown // redundant) + 3)
    visited: list[tuple[float, Array]] = []
    heading = np.zeros(len(cluster.columns))
    for _ in range(2 * wanted if wanted > 1 else 1):
        closed = _close(cluster, q, rank)
        if closed is None:
            if not visited:
                return None
            q = visited[-1][1]  # the step led to a place that cannot be closed: try another one
        else:
            q, left, independence = closed
            if left > allowed:
                return None
            visited.append((independence, q))
        idle = np.linalg.svd(cluster.jacobian(q))[2][rank:]
        if len(idle):
            # Straight on rather than to and fro: the wider the motion, the more it tells.
            motion = (idle @ heading + 0.5 * rng.normal(size=len(idle))) @ idle
            heading = motion / np.linalg.norm(motion)
            motion *= rng.uniform(0.4, 1.0) * _REACH / np.abs(motion).max()
            q = cluster.stepped(q, motion)
    least = _SHARE * max(independence for independence, _ in visited)
    return [place for independence, place in visited if independence >= least][: wanted + 3]


def _close(cluster: LoopCluster, q: Array, rank: int) -> tuple[Array, float, float] | None:
    """Close the loops along their ``rank`` stiffest directions.

    Returns:
        The configuration, what the other directions are open by, and the least singular value of
        the stiff ones; None if they cannot be closed from here.
    """
    for _ in range(_ITERATIONS):
        residual, jacobian = cluster.residual(q), cluster.jacobian(q)
        U, values, V = np.linalg.svd(jacobian)
        seen = U.T @ residual
        error = float(np.linalg.norm(seen[:rank]))
        if error < _DONE:
            least = float(values[rank - 1]) if rank else 1.0
            return q, float(np.linalg.norm(seen[rank:])), least
        stiff = values[:rank]
        damping = min(error**2, 1e-2) * max(1.0, float(values[0]) ** 2)
        step = -V[:rank].T @ (stiff / (stiff**2 + damping) * seen[:rank])
        q = cluster.stepped(q, step * min(1.0, _REACH / np.abs(step).max(initial=1e-300)))
    return None


@dataclass(frozen=True, eq=False)
class Fit:
    """A change of frames with which loops close.

    Args:
        cluster: the loops with their frames moved.
        shift: what the frames were moved by, shape (frames, 6).
    """

    cluster: LoopCluster
    shift: Array

    @property
    def size(self) -> float:
        """The largest turn [rad] or shift [characteristic lengths] of a frame."""
        parts = self.shift.reshape(-1, 2, 3)
        return float(np.linalg.norm(parts, axis=2).max(initial=0.0))


def fit_frames(
    cluster: LoopCluster, places: list[Array], rank: int, limit: float, *, meeting: bool
) -> Fit | None:
    """Move the frames of a cluster by as little as closes its loops at all places.

    Args:
        cluster: the loops.
        places: configurations at which they are nearly closed, each of shape (nq,).
        rank: rank that the rows would have without rounding.
        limit: the largest change worth looking for.
        meeting: let axes on a link meet that nearly do, as parallel ones are made parallel.

    Returns:
        The fit; None if it would have to be larger, or if there is none.
    """
    shift, here, threshold = np.zeros(6 * len(cluster.frames)), cluster, 0.0
    alignments = [a for a in cluster.alignments(limit) if meeting or a.parallel]
    best: tuple[float, Fit] | None = None
    for _ in range(_ITERATIONS):
        rules = equations(here.robot, alignments, here.frames)
        terms = [(here.residual(q), here.jacobian(q), here.frame_jacobian(q)) for q in places]
        mean = np.mean([residual @ residual for residual, _, _ in terms])
        error = float(np.sqrt(mean + rules[1] @ rules[1]))
        fit = Fit(here, shift.reshape(-1, 6))
        if fit.size > 2 * limit:
            break
        threshold = threshold or _CAUTION * error
        if best is not None and error > _GAIN * best[0]:
            if best[0] < _DONE or threshold <= _THRESHOLD:
                break
            threshold = max(threshold / 10, _THRESHOLD)
        if best is None or error < best[0]:
            best = error, fit
        if error < _CLOSED:
            break
        change, steps = _step(terms, rules, rank, threshold, max(error, _DAMPING) ** 2)
        shift = shift + change
        here = cluster.moved(shift)
        places = [here.stepped(q, step) for q, step in zip(places, steps, strict=True)]
    if best is None or best[0] > _DONE or best[1].size > limit:
        return None
    return best[1]


def _step(
    terms: list[tuple[Array, Array, Array]],
    rules: tuple[Array, Array],
    rank: int,
    threshold: float,
    damping: float,
) -> tuple[Array, list[Array]]:
    """One Levenberg-Marquardt step of the frames, and Newton's of all configurations.

    What the ``rank`` stiff directions of ``J_k`` cannot reach is for the frames alone to mend. The
    soft ones could, too, by large motions, but then the geometry would stay as it is.
    """
    factors = [np.linalg.svd(J) for _, J, _ in terms]
    rows, rest = [rules[0]], [rules[1]]
    for (residual, _, G), (U, values, _) in zip(terms, factors, strict=True):
        weights = np.ones(len(U))
        weights[:rank] = np.sqrt(damping / (values[:rank] ** 2 + damping))
        rows.append(weights[:, None] * (U.T @ G))
        rest.append(weights * (U.T @ residual))
    U, values, V = np.linalg.svd(np.vstack(rows), full_matrices=False)
    seen = values > threshold * values[0]
    change: Array = -V[seen].T @ ((U[:, seen].T @ np.concatenate(rest)) / values[seen])
    steps = []
    for (residual, _, G), (U, values, V) in zip(terms, factors, strict=True):
        left = U[:, :rank].T @ (residual + G @ change)
        stiff = values[:rank]
        steps.append(-V[:rank].T @ (stiff / (stiff**2 + damping) * left))
    return change, steps
