"""How a linkage moves with some joints, up to its second derivatives, and where that ends.

Its rows ``J v = 0`` make all velocities ``v = F w`` of the rates ``w`` of the joints, with the
least kinetic energy where something may spin freely. ``F' M F`` with the masses of the linkage
alone is what it reflects; derivatives of that are Christoffel symbols, polarised from the forces
that rates alone take. What users see of it is a `SerialTwin`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from ..assembly.continuation import LoopContinuation
from ..assembly.search import jacobian_rank, numerical_rank, outside_limits, velocity_mask
from ..boundary.marks import Array, Indices
from ..errors import BadValue
from ..linalg.box import Bounds
from ..linalg.saddle import from_upper
from ..model.mechanism import Mechanism
from ..model.without_linkage import Linkage
from ..model.workspace import create_data
from ..tolerances import SAME
from .joint_axes import JointAxes
from .twin_pose import TwinPose

_STEP, _FINEST, LEAP = 0.1, 1 / 16, 0.2
"""Steps in which joints are led [rad, lengths], parts of these down to which they are halved, and
how far what follows may be from its first order on the same branch [rad, m]."""


class Axes(NamedTuple):
    """Where joints with one coordinate each are in q and v."""

    names: tuple[str, ...]
    q: Indices
    v: Indices

    @classmethod
    def of(cls, robot: Mechanism, joints: Sequence[str]) -> Axes:
        """The axes of joints, which must have one coordinate each."""
        axes = JointAxes(robot, joints)
        for joint in axes.joints:
            if joint in {loop.name for loop in robot.loops}:
                raise BadValue(
                    f"joint '{joint}' closes a loop and has no coordinate; let another joint be "
                    "the cut: regularize(robot, cut=...)"
                )
            if not robot.coordinates(joint).nq == robot.coordinates(joint).nv == 1:
                raise BadValue(f"joint '{joint}' has several coordinates; describe it as hinges")
        places = [robot.coordinates(joint).q.start for joint in axes.joints]
        return cls(axes.joints, np.array(places, dtype=np.intp), axes.columns)


class _Motions(NamedTuple):
    """Motions of a linkage at an assembly.

    Args:
        F: velocities per rate of the joints, shape (nv, k).
        solve: what follows, scaled, per scaled residual of the rows.
        freedom: how much freer it is than at home.
    """

    F: Array
    solve: Array
    freedom: int


class LinkageMotion:
    """Motions of a linkage by the rates of some joints; all that it does not move stands still.

    Args:
        robot: the robot with its loops.
        names: joints that lead, motors, and joints that follow.
        linkage: what moves with them.
        home: an assembly that is no singular pose.
        margin: least regularity, see `TwinPose`.

    Attributes:
        joints: the joints that lead.
        motors: the motors.
    """

    def __init__(
        self,
        robot: Mechanism,
        names: Sequence[Sequence[str]],
        linkage: Linkage,
        home: Array,
        margin: float,
    ) -> None:
        self.joints, self.motors, self._followers = (Axes.of(robot, x) for x in names)
        self._robot, self._linkage, self._home, self._margin = robot, linkage, home, margin
        self._loops = LoopContinuation(robot, limits=False)
        self._problem, self._moved = self._loops.problem, linkage.in_model(robot.model)
        mask = velocity_mask(robot, linkage.depending)
        mask[self.joints.v] = False
        self._following = np.flatnonzero(mask)
        self._rank = jacobian_rank(self._problem.jacobian(home)[:, self._following])
        self._at_home = np.asarray(np.linalg.inv(self.motions(home).F[self.motors.v]))

    def lead(self, goal: Array, axes: Axes, start: Array | None = None) -> tuple[Array, float, str]:
        """Lead axes straight from an assembly, home by default, to a goal.

        Returns:
            The last configuration that will do, the part of the path at which it is, and what is
            wrong beyond; "" if nothing is.
        """
        q = self._home if start is None else start
        begin, model = q[axes.q], self._robot.model
        sizes = np.abs(goal - begin) / self._problem.column_scale[axes.v]
        steps = max(1, int(np.ceil(sizes.max(initial=0.0) / _STEP)))
        done, finest, motions = 0, _FINEST, self.motions(q)
        while done < steps:
            # What follows starts where it goes at first order.
            F = motions.F @ np.linalg.inv(motions.F[axes.v])
            there = begin + (done + 1) / steps * (goal - begin)
            ahead = np.array(pin.integrate(model, q, F @ (there - q[axes.q])))
            ahead[axes.q] = there
            near = self._loops.closed(ahead, axes.names)
            if near is None or np.abs(pin.difference(model, near, ahead)).max() > LEAP:
                problem = "the linkage does not reach that far"
            else:
                motions = self.motions(near)
                problem = self.problem(near, motions)
            if not problem:
                assert near is not None
                q, done = near, done + 1
            elif finest == 1.0:
                return q, done / steps, problem
            else:
                done, steps, finest = 2 * done, 2 * steps, 2 * finest
                motions = self.motions(q)
        return q, 1.0, ""

    def problem(self, q: Array, motions: _Motions) -> str:
        """What is wrong with an assembly, "" if nothing is."""
        outside = outside_limits(self._robot, q, self._linkage.depending)
        if outside:
            x = outside[0]
            return f"joint '{x.joint}' passes its limits, {x.low:.4g} to {x.high:.4g}"
        relative = motions.F[self.motors.v] @ self._at_home
        _, values, turns = np.linalg.svd(relative)
        names = [self.joints.names[int(np.abs(self._at_home @ turn).argmax())] for turn in turns]
        near = f"at home, less than the margin of {self._margin:g} (a singular pose is near)"
        if motions.freedom or self._margin * values[0] > 1.0:
            part = 0.0 if motions.freedom else 1.0 / values[0]
            return f"a turn of the motors moves joint '{names[0]}' by {part:.2g} of that {near}"
        least = values[-1] if np.linalg.det(relative) > 0.0 else 0.0
        if least < self._margin:
            return f"the motors hold joint '{names[-1]}' with {least:.2g} of their lever {near}"
        return ""

    def pose(self, q: Array, torques: Bounds, speeds: Bounds) -> TwinPose:
        """All that is known at an assembly, with the limits of the motors."""
        joints, motors, model = self.joints, self.motors, self._moved
        data, rest, k = create_data(model), np.zeros(self._robot.nv), len(joints.names)
        M = from_upper(pin.crba(model, data, q))
        motions = self.motions(q, M)
        F, gravity = motions.F, np.array(pin.rnea(model, data, q, rest, rest))

        def bending(rates: Array) -> Array:
            """Accelerations of the motors, and forces at the joints, that rates alone take."""
            v = F @ rates
            a = self._acceleration(q, v, motions)
            force = np.array(pin.rnea(model, data, q, v, a)) - gravity
            return np.concatenate([a[motors.v], F.T @ force])

        bent = np.zeros((2 * k, k, k))
        for i, unit in enumerate(np.eye(k)):
            bent[:, i, i] = bending(unit)
        for i, j in combinations(range(k), 2):
            both = bending(np.eye(k)[i] + np.eye(k)[j]) - bent[:, i, i] - bent[:, j, j]
            bent[:, i, j] = bent[:, j, i] = 0.5 * both
        christoffel = bent[k:]
        slopes = christoffel.transpose(0, 2, 1) + christoffel.transpose(2, 0, 1)
        values = np.linalg.svd(F[motors.v] @ self._at_home, compute_uv=False)
        return TwinPose(
            motors.names,
            q[joints.q],
            q[motors.q],
            q[self._followers.q],
            q,
            F[motors.v],
            bent[:k],
            float(min(values[-1], 1.0 / values[0])),
            F.T @ M @ F,
            slopes,
            -F.T @ gravity,
            torques,
            speeds,
        )

    def motions(self, q: Array, mass: Array | None = None) -> _Motions:
        """Motions at an assembly; what may spin does so with the least energy of ``mass``."""
        J, scale = self._problem.jacobian(q), self._problem.column_scale
        U, values, V = np.linalg.svd(J[:, self._following])
        rank = min(self._rank, numerical_rank(values))
        solve = V[:rank].T / values[:rank] @ U[:, :rank].T
        F, idle = np.zeros((len(scale), len(self.joints.v))), np.zeros((len(scale), len(V) - rank))
        F[self.joints.v] = np.diag(1.0 / scale[self.joints.v])
        F[self._following] = -solve @ J[:, self.joints.v] @ F[self.joints.v]
        idle[self._following] = V[rank:].T
        F, idle = scale[:, None] * F, scale[:, None] * idle
        if mass is not None:
            spin = np.linalg.pinv(idle.T @ mass @ idle, rcond=SAME, hermitian=True)
            F -= idle @ (spin @ (idle.T @ (mass @ F)))
        return _Motions(F, solve, self._rank - rank)

    def _acceleration(self, q: Array, v: Array, motions: _Motions) -> Array:
        """Acceleration at a velocity while the joints do not accelerate, shape (nv,)."""
        problem, a = self._problem, np.zeros(len(v))
        gamma = problem.row_scale * problem.constraints.gamma(q, v)
        a[self._following] = -motions.solve @ gamma
        return a * problem.column_scale
