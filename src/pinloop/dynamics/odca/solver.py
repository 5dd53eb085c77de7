"""O-DCA bound to a robot: all four sweeps at a state, rows sorted into joints and borders.

Every row is expressed where it costs least: loop rows as joints, a row on one coordinate (locks,
prescribed motions) as a column of that joint's complement, any other row as a border.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ...mechanism import Mechanism
from ..formulations import BoundStateFormulation, FurtherRows
from .bodies import Bodies
from .joints import TreeJoints
from .kinematics import Kinematics
from .loops import LoopJoints
from .problem import Answer, Load, Problem
from .spatial import apply_transposed

__all__ = ["ArticulatedSolver"]

Array = NDArray[np.float64]

_CLOSED = 1e-9
"""Residual up to which a configuration counts as assembled (lengths over the robot's length)."""
_ITERATIONS = 20
_NEIGHBOURS, _REACH = 4, 0.05
"""Configurations at which ranks are looked at, and how far away [rad, m]."""


class ArticulatedSolver(BoundStateFormulation):
    """The four sweeps for one robot.

    Args:
        robot: the mechanism.
        loop_rows: which rows belong to each loop.
        rows: number of all rows.
    """

    def __init__(self, robot: Mechanism, loop_rows: Sequence[slice], rows: int) -> None:
        model = robot.model
        self._robot, self._rows = robot, rows
        self.loop_rows = loop_rows
        further = rows - sum(part.stop - part.start for part in self.loop_rows)
        self._armature = np.array(model.armature)
        self.kinematics = Kinematics(model)
        dofs = [columns.stop - columns.start for columns in self.kinematics.columns]
        width = max([6 - dof for dof in dofs] + [part.stop - part.start for part in self.loop_rows],
                    default=1)  # fmt: skip
        if further or np.any(self._armature > 0):
            width = 6
        width = max(width, 1)
        self.joints = TreeJoints(self.kinematics, self._armature, width)
        self.loops = LoopJoints(robot, self.kinematics, width)
        self.bodies = Bodies(model, self.kinematics, self.joints, self.loops, robot.length)
        gravity = np.array(model.gravity.vector)
        self._ground = -gravity
        self._capped = False
        self._scale_columns()

    def _scale_columns(self) -> None:
        """Give each column of ``D`` a unit in which its two bodies alone answer with one.

        Then eigenvalues of inner matrices have no unit, and noise in them is rounding.
        """
        n, nv = self.kinematics.n, self._robot.nv
        self.joints.hold(tuple(range(nv)) if self.joints.D.shape[2] == 6 else (), force=True)
        self._update(self._robot.neutral, np.zeros(nv))
        own = self.bodies.own_response()
        own[own <= 0] = 1.0
        scale = 1.0 / np.sqrt(own)
        self.joints.scale = scale[:n]
        self.loops.rescale(scale[n:])
        self.joints.hold((), force=True)

    def _update(self, q: Array, v: Array) -> None:
        """First two sweeps, and the handle equations of all pieces."""
        self.kinematics.update(q, v)
        self.joints.update()
        self.loops.update()
        self.bodies.update()

    # -- accelerations ------------------------------------------------------------------------

    def solve(self, q: Array, v: Array, tau: Array, further: FurtherRows) -> tuple[Array, Array]:
        """Acceleration, shape (nv,), and a multiplier per row, not the smallest where not unique.

        Args:
            q: configuration, shape (nq,).
            v: velocity, shape (nv,).
            tau: applied generalised forces without gravity, shape (nv,).
            further: rows beyond loops.
        """
        answer, held, border = self._accelerate(q, v, tau, further)
        lam = np.zeros(self._rows)
        for k, part in enumerate(self.loop_rows):
            count = part.stop - part.start
            lam[part] = (answer.x[self.kinematics.n + k] * self.loops.scale[k])[:count]
        lam[further.index[border]] = answer.multipliers
        if len(held):
            lam[further.index[held]] = self._held_multipliers(answer, further.J[held])
        return answer.a, lam

    def bodies_and_joints(
        self, q: Array, v: Array, tau: Array, further: FurtherRows
    ) -> tuple[Array, Array, Array]:
        """Accelerations of all bodies and wrenches in all joints.

        Returns:
            spatial acceleration of each body, at and in its joint frame, shape (n, 6); wrench of
            each tree joint on its body, at and in the joint frame, shape (n, 6); wrench of each
            loop joint on its body B, at and in its frame B, shape (loops, 6).
        """
        answer, _, _ = self._accelerate(q, v, tau, further)
        n, kin = self.kinematics.n, self.kinematics
        A = answer.A[:-1].copy()
        A[:, :3] -= apply_transposed(kin.world_R[:-1], np.broadcast_to(self._ground[:3], (n, 3)))
        tree = (self.joints.D @ answer.x[:n, :, None])[:, :, 0]
        tree += self.joints.wrenches(answer.torques)
        return A, tree, (self.loops.D @ answer.x[n:, :, None])[:, :, 0]

    def _accelerate(
        self, q: Array, v: Array, tau: Array, further: FurtherRows
    ) -> tuple[Answer, NDArray[np.intp], NDArray[np.intp]]:
        held, border, values = self._sort(further)
        self._update(q, v)
        self._cap(q, v)
        problem = Problem(self.bodies, self.joints, further.J[border])
        load = Load(
            self.bodies.inertial_wrenches(), tau, self.kinematics.bias, self.loops.gamma,
            self._ground, values, further.values[border],
        )  # fmt: skip
        self._problem = problem
        return problem.solve(load), held, border

    def _held_multipliers(self, answer: Answer, J: Array) -> Array:
        columns = list(self.joints.held)
        torques = self._problem.held_torques(answer, self._armature)
        by_column = dict(zip(columns, torques, strict=True))
        at = np.argmax(np.abs(J), axis=1)
        return np.array([by_column[int(c)] / row[c] for c, row in zip(at, J, strict=True)])

    def _sort(self, further: FurtherRows) -> tuple[NDArray[np.intp], NDArray[np.intp], Array]:
        """Rows that hold one coordinate each, the others, and the values of held coordinates."""
        alone = np.count_nonzero(further.J, axis=1) == 1
        coordinate = np.argmax(np.abs(further.J), axis=1) if len(further.J) else np.zeros(0, int)
        seen: dict[int, int] = {}
        for k in np.flatnonzero(alone):
            seen.setdefault(int(coordinate[k]), int(k))
        columns = tuple(sorted(seen))
        held = np.array([seen[c] for c in columns], dtype=np.intp)
        self.joints.hold(columns)
        values = np.array([further.values[k] / further.J[k, coordinate[k]] for k in held])
        rest = np.setdiff1d(np.arange(len(further.J)), held)
        return held, rest.astype(np.intp), values

    def _cap(self, q: Array, v: Array) -> None:
        """Remember, from the first assembled state on, which ranks inner matrices have at most.

        Rows that depend on each other on the manifold only (Bennett, Bricard) gain rank off it,
        inside the stages of a step, by as much as the loops are open there.
        """
        sweeps = self.bodies.sweeps
        if self._capped or not self._is_closed():
            return
        self._capped = True
        ranks = {key: found.copy() for key, found in sweeps.ranks.items()}
        whole = {key: sweeps.tree.groups[key].inner_joints.shape[1] * sweeps.width for key in ranks}
        if all(np.all(found == whole[key]) for key, found in ranks.items()):
            sweeps.caps = ranks
            return
        held = self.joints.held
        for near in self._around(q):
            self.joints.hold(held)
            self._update(near, v)
            if self._is_closed():
                for key, found in sweeps.ranks.items():
                    np.maximum(ranks[key], found, out=ranks[key])
        sweeps.caps = ranks
        self.joints.hold(held)
        self._update(q, v)

    def _around(self, q: Array) -> list[Array]:
        """Configurations around one, which may be singular itself, with loops closed if it goes."""
        rng, nv = np.random.default_rng(0), self._robot.nv
        none = FurtherRows(np.zeros((0, nv)), np.zeros(0), np.zeros(0, dtype=np.intp))
        found = []
        for _ in range(_NEIGHBOURS):
            step = self.velocity(q, rng.normal(size=nv), none)
            step *= _REACH / max(float(np.abs(step).max(initial=0.0)), _REACH)
            near = pin.integrate(self._robot.model, q, step)
            found.append(self.position(near, lambda _: none))
        return found

    def _is_closed(self) -> bool:
        residual = self.loops.residual() / self.loops.scale
        return bool(np.linalg.norm(residual) <= _CLOSED * max(1.0, self._robot.length))

    # -- velocities and positions -------------------------------------------------------------

    def velocity(self, q: Array, v: Array, further: FurtherRows) -> Array:
        """The velocity nearest in the kinetic metric that all joints and rows allow, (nv,).

        Args:
            q: configuration, shape (nq,).
            v: velocity, shape (nv,).
            further: rows beyond loops, with their rates as values.
        """
        _, border, values = self._sort(further)
        self._update(q, v)
        self._cap(q, v)
        problem = Problem(self.bodies, self.joints, further.J[border])
        load = replace(
            problem.zero(),
            loops=self.bodies.across_loops(self.kinematics.V),
            held=values - v[list(self.joints.held)],
            values=further.values[border] - further.J[border] @ v,
        )
        return np.asarray(v + problem.solve(load).a)

    def position(self, q: Array, further: Callable[[Array], FurtherRows]) -> Array:
        """The configuration nearby in which all loops are closed, by Newton's method, (nq,)."""
        rest = np.zeros(self._robot.nv)
        best, error, trial = q, np.inf, q
        for _ in range(_ITERATIONS):
            rows = further(trial)
            self.kinematics.update(trial, rest)
            residual = self.loops.residual()
            gap = np.append((residual / self.loops.scale).ravel(), rows.values)
            new = float(np.linalg.norm(gap))
            if not new < 0.5 * error:
                return trial if new < error else best
            best, error = trial, new
            _, border, values = self._sort(rows)
            self._update(trial, rest)
            self._cap(trial, rest)
            problem = Problem(self.bodies, self.joints, rows.J[border])
            load = replace(problem.zero(), loops=residual, held=values, values=rows.values[border])
            trial = pin.integrate(self._robot.model, best, problem.solve(load).a)
        return best
