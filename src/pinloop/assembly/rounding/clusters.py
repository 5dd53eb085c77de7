"""Loops that can only be closed together, each cluster of them as a small mechanism of its own.

Loops that share no joint know nothing of each other: what they are meant to be is decided cluster
by cluster, so that long chains of loops cost no more than their parts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ...constraints.closure import Constraints
from ...model.description import GROUND, Joint, Side
from ...model.graph import clusters
from ...model.mechanism import Mechanism, build
from ...tolerances import CLOSED
from ..search import Problem, jacobian_rank
from .rules import End

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LoopGroup:
    """Loops of a robot that share joints with each other and with no other loop.

    Args:
        robot: the whole robot.
        loops: names of the loop joints.
        joints: names of the tree joints on the loops, fixed ones too.
    """

    robot: Mechanism
    loops: frozenset[str]
    joints: frozenset[str]

    @cached_property
    def couplings(self) -> tuple[str, ...]:
        """Couplings between joints of the group."""
        return tuple(c.name for c in self.robot.couplings if self.joints.issuperset(c.joints))

    def part(self, problem: Problem) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
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
        built = build(part, kinematics_only=True)
        return LoopCluster(replace(built, given_length=self.robot.length))

    def configuration(self, cluster: LoopCluster, q: Array) -> Array:
        """The cluster's part of a configuration of the whole robot."""
        parts = [q[self.robot.coordinates(name).q] for name in cluster.robot.joints]
        return np.concatenate([np.zeros(0), *parts])


def _indices(parts: list[slice]) -> NDArray[np.intp]:
    spans = [np.arange(part.start, part.stop, dtype=np.intp) for part in parts]
    return np.concatenate([np.zeros(0, dtype=np.intp), *spans])


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
    """Loops that are closed at a configuration and leave their joints no motion there.

    Args:
        problem: closure of all rows of a robot.
        q: the configuration, shape (nq,).
    """
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

    Args:
        robot: the mechanism.
    """

    robot: Mechanism

    @cached_property
    def problem(self) -> Problem:
        """Closure of all rows, without limits."""
        return Problem(self.robot, Constraints(self.robot, full=True), (), {}, limits=False)

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

        Args:
            q: the configuration, shape (nq,).
            first: row of the first residual.
        """
        robot, constraints = self.robot, self.problem.constraints
        unit, blocks = np.array([robot.length] * 3 + [1.0] * 3), []
        with robot.workspace() as data:
            pin.framesForwardKinematics(robot.model, data, q)
            selectors = constraints.world_selectors(data)
            selectors *= self.problem.row_scale[: len(selectors), None]
            for index, end in enumerate(self.frames):
                twists = self._placement(data, end).toActionMatrix() * unit
                for rows, sign in self._carried[end]:
                    block = sign * (selectors[rows] @ twists)
                    blocks.append((first + rows.start, 6 * index, block))
        return blocks

    def _placement(self, data: pin.Data, end: End) -> pin.SE3:
        """Placement in the world of one frame of a joint."""
        joint, side = self._joints[end[0]], end[1]
        body = joint.parent if side == "frame_parent" else joint.child
        frame: pin.SE3 = getattr(joint, side)
        return frame if body == GROUND else data.oMf[self.robot.frame_id(body)] * frame

    @cached_property
    def _joints(self) -> dict[str, Joint]:
        return {joint.name: joint for joint in self.robot.description.joints}

    @cached_property
    def _carried(self) -> dict[End, list[tuple[slice, float]]]:
        """Rows of the loops that a shift of each joint frame moves, and the sign of that."""
        carried: dict[End, list[tuple[slice, float]]] = {end: [] for end in self.frames}
        loops_of: dict[str, list[tuple[slice, float]]] = {}
        for loop in self.robot.loops:
            rows = self.problem.constraints.rows_of[loop.name]
            carried[loop.name, "frame_parent"].append((rows, -1.0))
            carried[loop.name, "frame_child"].append((rows, 1.0))
            for name in {*loop.loop.chain_a, *loop.loop.chain_b}:
                sign = float(name in loop.loop.chain_b) - float(name in loop.loop.chain_a)
                if sign:
                    loops_of.setdefault(name, []).append((rows, sign))
        for name, side in self.frames[: len(self.robot.joints)]:
            carried[name, side] += loops_of.get(name, [])
        return carried

    def moved(self, shift: Array) -> LoopCluster:
        """The cluster with its frames moved by ``exp`` of their parts of the shift."""
        robot, joints = self.robot, dict(self._joints)
        unit = np.array([robot.length] * 3 + [1.0] * 3)
        for (name, side), part in zip(self.frames, shift.reshape(-1, 6), strict=True):
            frame = getattr(joints[name], side) * pin.exp6(unit * part)
            joints[name] = replace(joints[name], **{side: frame})
        changed = replace(robot.description, joints=tuple(joints.values()))
        built = build(changed, kinematics_only=True)
        return LoopCluster(replace(built, given_length=robot.length))
