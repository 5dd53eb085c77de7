"""`ODCA`, and what it is bound to a robot: all four sweeps at a state.

Every row is expressed where it costs least: loop rows as joints, locks as rotors that cannot be
moved, any other row as a border.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ...boundary.arguments import public
from ...constraints.rows import RowSet
from ...errors import BadValue
from ...spatial.batched import apply
from ...tolerances import ASSEMBLED
from ..formulations import BoundStateFormulation, FurtherRows, StateFormulation
from ..pinocchio_solver import standing
from .blocks import Blocks
from .handles import Handles, units
from .joints import CutJoints, LoopJoints
from .problem import Answer, Coordinates, Load, Problem

__all__ = ["ODCA", "ArticulatedSolver"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

_ITERATIONS = 20
_NONE = np.zeros(0, dtype=np.intp)
_NEIGHBOURS, _REACH = 4, 0.05
"""Configurations at which ranks are looked at, and how far away [rad, m]."""


class ArticulatedSolver(BoundStateFormulation):
    """The four sweeps for one robot.

    Args:
        rows: all rows of the robot.
        block: coordinates of a block.
        home: configuration around which ranks are taken, shape (nq,); None if there is none.
    """

    def __init__(self, rows: RowSet, block: int, home: Array | None = None) -> None:
        robot = rows.robot
        model = standing(robot.model, rows.locked)
        self._robot, self._rows, self._home = robot, rows.unlocked, home
        self._locked = rows.locked
        self.loop_rows = [rows.loops.rows_of[loop.name] for loop in robot.loops]
        self.blocks = Blocks(model, block)
        self.cuts = CutJoints(self.blocks, np.array(model.armature))
        self.loops = LoopJoints(robot, self.blocks)
        units(robot, self.blocks, self.cuts, self.loops)
        self.handles = Handles(self.blocks, self.cuts, self.loops)
        self.coordinates = Coordinates(self.blocks, self.cuts, robot.nv)
        # Without limits, which are not known yet.
        self.handles.sweeps.caps = self._ranks_around_home()

    def _update(self, q: Array, v: Array) -> None:
        """First two sweeps, and the handle equations of all pieces."""
        self.blocks.update(q, v)
        self.cuts.update()
        self.loops.update()
        self.handles.update()

    # -- accelerations ------------------------------------------------------------------------

    def solve(self, q: Array, v: Array, tau: Array, further: FurtherRows) -> tuple[Array, Array]:
        """Acceleration, shape (nv,), and a multiplier per row, not the smallest where not unique.

        Args:
            q: configuration, shape (nq,).
            v: velocity, shape (nv,).
            tau: applied generalised forces without gravity, shape (nv,).
            further: rows beyond loops.
        """
        answer = self._accelerate(q, v, tau, further)
        lam = np.zeros(self._rows)
        reactions = answer.x[self.handles.of_cuts :] * self.loops.scale
        for part, first in zip(self.loop_rows, self.loops.first, strict=False):
            lam[part] = reactions[first : first + part.stop - part.start]
        lam[further.index] = answer.multipliers
        answer.a[self._locked] = 0.0
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
        answer = self._accelerate(q, v, tau, further)
        split = self.handles.of_cuts
        x_cuts = answer.x[:split].reshape(len(self.cuts.D), self.cuts.width)
        F_cuts = apply(self.cuts.D, x_cuts) + self.cuts.wrenches(answer.torques)
        x_loops = np.zeros((len(self.loops.D), self.loops.D.shape[2]))
        for k, (first, last) in enumerate(pairwise(self.loops.first)):
            x_loops[k, : last - first] = answer.x[split + first : split + last]
        F_loops = apply(self.loops.D, x_loops)
        return *self.blocks.bodies_and_joints(
            answer.alpha, F_cuts, self.loops.on_bodies(answer.x[split:])
        ), F_loops

    def _accelerate(self, q: Array, v: Array, tau: Array, further: FurtherRows) -> Answer:
        self._update(q, v)
        apart = self.blocks.bias
        if self.blocks.cuts:
            apart = apart + self.blocks.below_biases()
        forces, targets = self.blocks.inertial_forces(), self.handles.targets()
        load = Load(forces, tau, apart, targets, further.values)
        return self._problem(further).solve(load)

    def _ranks_around_home(self) -> dict[int, Indices]:
        """The largest ranks of inner matrices at the home and beside it; none without a home.

        Rows that depend on each other on the manifold only (Bennett, Bricard) gain rank off it,
        inside the stages of a step, by as much as the loops are open there.
        """
        sweeps, rest = self.handles.sweeps, np.zeros(self._robot.nv)
        ranks: dict[int, Indices] = {}
        if self._home is None or not len(self.loops.D):
            return ranks
        for q in (self._home, *self._neighbours(self._home)):
            self._update(q, rest)
            if not self._is_closed():
                continue
            for key, rank in sweeps.ranks.items():
                ranks[key] = np.maximum(ranks.get(key, 0), rank)
            if all(np.all(rank == sweeps.whole[key]) for key, rank in ranks.items()):
                break
        return ranks

    def _neighbours(self, q: Array) -> Iterator[Array]:
        """Configurations around one, which may be singular itself, with loops closed if it goes."""
        rng, nv = np.random.default_rng(0), self._robot.nv
        none = FurtherRows(np.zeros((0, nv)), np.zeros(0), _NONE)
        for _ in range(_NEIGHBOURS):
            step = self.velocity(q, rng.normal(size=nv), none)
            step *= _REACH / max(float(np.abs(step).max(initial=0.0)), _REACH)
            near = pin.integrate(self._robot.model, q, step)
            yield self.position(near, lambda _: none)

    def _is_closed(self) -> bool:
        residual = self.loops.residual() / self.loops.scale
        return bool(np.linalg.norm(residual) <= ASSEMBLED * max(1.0, self._robot.length))

    # -- velocities and positions -------------------------------------------------------------

    def velocity(self, q: Array, v: Array, further: FurtherRows) -> Array:
        """The velocity nearest in the kinetic metric that all joints and rows allow, (nv,).

        Args:
            q: configuration, shape (nq,).
            v: velocity, shape (nv,); that of locked coordinates counts as zero.
            further: rows beyond loops, with their rates as values.
        """
        v = v.copy()
        v[self._locked] = 0.0
        self._update(q, v)
        problem, of_loops = self._problem(further), slice(self.handles.of_cuts, None)
        nothing = problem.zero()
        nothing.target[of_loops] = -self.handles.measure(self.blocks.velocity())[of_loops]
        load = replace(nothing, values=further.values - further.J @ v)
        return np.asarray(v + self._shift(problem, load))

    def position(self, q: Array, further: Callable[[Array], FurtherRows]) -> Array:
        """The configuration nearby in which all loops are closed, by Newton's method, (nq,)."""
        rest = np.zeros(self._robot.nv)
        best, error, trial = q, np.inf, q
        for _ in range(_ITERATIONS):
            rows = further(trial)
            self.blocks.update(trial, rest)
            residual = self.loops.residual()
            gap = np.append(residual / self.loops.scale, rows.values)
            new = float(np.linalg.norm(gap))
            if not new < 0.5 * error:
                return trial if new < error else best
            best, error = trial, new
            self._update(trial, rest)
            problem = self._problem(rows)
            target = np.concatenate([np.zeros(self.handles.of_cuts), -residual])
            load = replace(problem.zero(), target=target, values=rows.values)
            trial = pin.integrate(self._robot.model, best, self._shift(problem, load))
        return best

    def _problem(self, further: FurtherRows) -> Problem:
        return Problem(self.handles, self.coordinates, further.J)

    def _shift(self, problem: Problem, load: Load) -> Array:
        shift = problem.solve(load).a
        shift[self._locked] = 0.0
        return shift


@public
@dataclass(frozen=True)
class ODCA(StateFormulation):
    """Orthogonal-complement divide and conquer (paper 3).

    Bodies are joined to pieces and pieces to larger ones, each known only by how its open joints
    answer forces, until one piece is left; then down again for all forces and accelerations. The
    work grows linearly with the number of bodies of chains, trees, and loops coupled along a chain.
    No mass matrix and no Jacobian of more than a block of bodies is formed.

    Locks take a column out of their joint's motion map. Couplings, prescribed motions and other
    rows beyond loops are bordered, which costs one more pass over the robot for each: many of them
    on a large robot are for `Augmented`.

    Args:
        block: neighbouring bodies enter as one piece, in joint coordinates, as long as their joints
            have no more coordinates than this; a small robot is one piece, of which only the loop
            joints are left to eliminate. With 1 every body is a piece of its own, as in the paper:
            most accurate, as no mass matrix is left, and several times slower.
    """

    block: int = 64

    def __post_init__(self) -> None:
        if not isinstance(self.block, int) or self.block < 1:
            raise BadValue(f"block={self.block!r} of pl.ODCA must be a whole number, at least 1")

    def bind(self, rows: RowSet, home: Array | None) -> BoundStateFormulation:
        """Return the formulation with work space for a robot."""
        return ArticulatedSolver(rows, self.block, home)
