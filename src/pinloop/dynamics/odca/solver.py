"""`ODCA`, and what it is bound to a robot: all four sweeps at a state.

Every row is expressed where it costs least: loop rows as joints, a row on one coordinate (locks,
prescribed motions) as a column of that joint's complement, any other row as a border.
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
        further = self._rows - sum(part.stop - part.start for part in self.loop_rows)
        self._armature = np.array(model.armature)
        self.blocks = Blocks(model, block)
        self.cuts = CutJoints(self.blocks, self._armature, further + len(self._locked) > 0)
        self.loops = LoopJoints(robot, self.blocks)
        units(robot, self.blocks, self.cuts, self.loops)
        self.handles = Handles(self.blocks, self.cuts, self.loops)
        self.coordinates = Coordinates(self.blocks, self.cuts, robot.nv)
        self._caps: dict[tuple[int, ...], dict[int, Indices]] = {}

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
        answer, forces, held, border = self._accelerate(q, v, tau, further)
        lam = np.zeros(self._rows)
        reactions = answer.x[self.handles.of_cuts :] * self.loops.scale
        for part, first in zip(self.loop_rows, self.loops.first, strict=False):
            lam[part] = reactions[first : first + part.stop - part.start]
        lam[further.index[border]] = answer.multipliers
        if len(held):
            lam[further.index[held]] = self._held_multipliers(answer, forces, further.J[held])
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
        answer, _, _, _ = self._accelerate(q, v, tau, further)
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

    def _accelerate(
        self, q: Array, v: Array, tau: Array, further: FurtherRows
    ) -> tuple[Answer, Array, Indices, Indices]:
        """The answer, forces on the blocks, and which rows hold and which are bordered."""
        held, border, values = self._sort(further)
        self._update(q, v)
        problem = Problem(self.handles, self.coordinates, further.J[border])
        apart = self.blocks.bias
        if self.blocks.cuts:
            apart = apart + self.blocks.below_biases()
        load = Load(
            self.blocks.inertial_forces(),
            tau,
            apart,
            self.handles.targets(),
            values,
            further.values[border],
        )
        answer = problem.solve(load)
        # All forces are asked for only where something is held.
        forces = problem.forces(load, answer) if len(held) else load.forces
        return answer, forces, held, border

    def _held_multipliers(self, answer: Answer, forces: Array, J: Array) -> Array:
        columns = list(self.coordinates.held)
        rotors = self._armature[columns] * answer.a[columns]
        torques = self.coordinates.holding(forces, answer.alpha, answer.x, rotors)
        by_column = dict(zip(columns, torques, strict=True))
        at = np.argmax(np.abs(J), axis=1)
        return np.array([by_column[int(c)] / row[c] for c, row in zip(at, J, strict=True)])

    def _sort(self, further: FurtherRows) -> tuple[Indices, Indices, Array]:
        """Rows that hold one coordinate each, the others, and the values of held coordinates."""
        if len(further.J) == 0:
            self._hold(())
            return _NONE, _NONE, further.values
        alone = np.count_nonzero(further.J, axis=1) == 1
        coordinate = np.argmax(np.abs(further.J), axis=1)
        seen: dict[int, int] = {}
        for k in np.flatnonzero(alone):
            seen.setdefault(int(coordinate[k]), int(k))
        columns = tuple(sorted(seen))
        held = np.array([seen[c] for c in columns], dtype=np.intp)
        self._hold(columns)
        values = np.array([further.values[k] / further.J[k, coordinate[k]] for k in held])
        rest = np.setdiff1d(np.arange(len(further.J)), held)
        return held, rest.astype(np.intp), values

    def _hold(self, columns: tuple[int, ...]) -> None:
        """Hold coordinates, and no others; inner matrices have at most the ranks around the home.

        Rows that depend on each other on the manifold only (Bennett, Bricard) gain rank off it,
        inside the stages of a step, by as much as the loops are open there.
        """
        if columns not in self._caps:
            self._caps[columns] = {}  # without limits, which are not known yet
            self._caps[columns] = self._ranks_around_home(columns)
        self.handles.sweeps.caps = self._caps[columns]
        self.coordinates.hold(columns)

    def _ranks_around_home(self, columns: tuple[int, ...]) -> dict[int, Indices]:
        """The largest ranks of inner matrices at the home and beside it; none without a home."""
        sweeps, rest = self.handles.sweeps, np.zeros(self._robot.nv)
        ranks: dict[int, Indices] = {}
        if self._home is None or not len(self.loops.D):
            return ranks
        for q in (self._home, *self._neighbours(self._home)):
            self._hold(columns)
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
            v: velocity, shape (nv,).
            further: rows beyond loops, with their rates as values.
        """
        _, border, values = self._sort(further)
        self._update(q, v)
        problem = Problem(self.handles, self.coordinates, further.J[border])
        nothing = problem.zero()
        target = nothing.target
        target[self.handles.of_cuts :] = -self.handles.measure(self.blocks.velocity())[
            self.handles.of_cuts :
        ]
        load = replace(
            nothing,
            target=target,
            held=values - v[list(self.coordinates.held)],
            values=further.values[border] - further.J[border] @ v,
        )
        return np.asarray(v + problem.solve(load).a)

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
            _, border, values = self._sort(rows)
            self._update(trial, rest)
            problem = Problem(self.handles, self.coordinates, rows.J[border])
            target = np.concatenate([np.zeros(self.handles.of_cuts), -residual])
            load = replace(problem.zero(), target=target, held=values, values=rows.values[border])
            trial = pin.integrate(self._robot.model, best, problem.solve(load).a)
        return best


@public
@dataclass(frozen=True)
class ODCA(StateFormulation):
    """Orthogonal-complement divide and conquer (paper 3).

    Bodies are joined to pieces and pieces to larger ones, each known only by how its open joints
    answer forces, until one piece is left; then down again for all forces and accelerations. The
    work grows linearly with the number of bodies of chains, trees, and loops coupled along a chain.
    No mass matrix and no Jacobian of more than a block of bodies is formed.

    Rows on one coordinate (locks, prescribed motions) take a column out of that joint's motion map.
    Couplings and other rows that tie coordinates of several joints are bordered, which costs one
    more pass over the robot for each: many of them on a large robot are for `Augmented`.

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
