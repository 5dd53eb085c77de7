"""Constraint rows of a mechanism: closures of loop joints, couplings, each row with a label.

At a state they give the residual, the Jacobian and the velocity-dependent part of the
acceleration (DESIGN: ``J a + gamma = 0``). Nothing here decides what to do about them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from ..boundary.arguments import flat_numbers, public
from ..boundary.marks import Array, Mask
from ..model.mechanism import Mechanism
from ..model.moving_tree import MovingTree
from ..model.pairs import Component, MotionGroup, Spherical
from ..model.tree import LoopJoint
from ..model.workspace import TreeKinematics
from .couplings import CouplingRow
from .relative_motion import Placed, loop_sides, world_jacobian
from .row_slopes import RowSlopes, frame_slopes, stacked

_WORLD = pin.ReferenceFrame.WORLD


@public
class Constraints:
    """All rows that the loops and couplings of a robot impose.

    Args:
        robot: the mechanism.
        full: take all rows of every pair, also those that regularization has removed.

    Attributes:
        rows_of: rows of each loop joint and coupling, by name.
        angular: per row, whether it measures angles only [rad] rather than lengths [m].
        constant: rows of the relative twist by loop joint, where they are the same everywhere.
        couplings: the couplings that have rows.
    """

    def __init__(self, robot: Mechanism, *, full: bool = False) -> None:
        self.robot = robot
        self._trees: list[TreeKinematics] = []
        self.rows_of: dict[str, slice] = {}
        angular: list[bool] = []
        report = None if full else robot.regularization
        self._select = {
            loop.name: np.eye(loop.pair.rows) if report is None else report.selection(loop.name)
            for loop in robot.loops
        }
        for loop in robot.loops:
            lengths = [k for k, is_angle in enumerate(loop.pair.row_is_angle) if not is_angle]
            rows = self._select[loop.name].tolist()
            self.rows_of[loop.name] = slice(len(angular), len(angular) + len(rows))
            angular += [not any(row[k] for k in lengths) for row in rows]
        self.constant = {
            loop.name: self._select[loop.name] @ loop.pair.selector(pin.SE3.Identity())
            for loop in robot.loops
            if loop.pair.is_group
        }
        self._points = {
            loop.name
            for loop in robot.loops
            if isinstance(loop.pair, Spherical)
            and np.array_equal(self._select[loop.name], np.eye(3))
        }
        self.couplings = tuple(
            coupling
            for coupling in robot.couplings
            if report is None or coupling.name in report.couplings
        )
        self._coupled = [CouplingRow(robot, coupling) for coupling in self.couplings]
        for row in self._coupled:
            self.rows_of[row.name] = slice(len(angular), len(angular) + 1)
            angular.append(row.angular)
        self.angular: tuple[bool, ...] = tuple(angular)

    def components(self, loop: LoopJoint) -> list[tuple[Component, Array]] | None:
        """What each row of a loop takes of its motion, see `Pair.components`.

        None if the pair does not say so, or a row combines components of several kinds.
        """
        own, rows = loop.pair.components, list[tuple[Component, Array]]()
        if len(own) < loop.pair.rows:
            return None
        components = np.array([component for _, component in own]).reshape(-1, 6)
        for weights in self._select[loop.name]:
            kinds = {own[k][0] for k in np.flatnonzero(weights)}
            if len(kinds) != 1:
                return None
            rows.append((kinds.pop(), weights @ components))
        return rows

    @contextmanager
    def kinematics(self, q: Array) -> Iterator[TreeKinematics]:
        """Placements and Jacobian at a configuration, in work space that nobody else is using.

        Couplings alone need neither.
        """
        try:
            tree = self._trees.pop()
        except IndexError:
            tree = TreeKinematics(self.robot.model)
        try:
            yield tree.update(q) if self.robot.loops else tree
        finally:
            self._trees.append(tree)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """One per row: ``"<loop>: v_x"`` or ``"<coupling>"``.

        A row that combines several of a pair's rows is numbered.
        """
        of_loops = [
            f"{loop.name}: {label}"
            for loop in self.robot.loops
            for label in _row_labels(self._select[loop.name], loop.pair.labels)
        ]
        return (*of_loops, *(coupling.name for coupling in self.couplings))

    @cached_property
    def _sides(self) -> Array:
        """Per row of a loop and coordinate 1 if it moves B alone, -1 if A alone, else 0."""
        loops = self.robot.loops
        sides = np.array([loop_sides(self.robot, loop) for loop in loops])
        sides = sides.reshape(len(loops), self.robot.nv)
        return np.repeat(sides, [len(self._select[loop.name]) for loop in loops], axis=0)

    @cached_property
    def coordinates(self) -> Mask:
        """Which velocity coordinates each row looks at, shape (rows, nv)."""
        looks = np.zeros((len(self), self.robot.nv), dtype=bool)
        looks[: len(self._sides)] = self._sides != 0.0
        for coupling in self.couplings:
            for joint in self.robot.tree_joints(coupling.joints):
                looks[self.rows_of[coupling.name], self.robot.coordinates(joint).v] = True
        return looks

    def __len__(self) -> int:
        return len(self.angular)

    def residual(self, q: ArrayLike) -> Array:
        """Closure residual, shape (rows,), m and rad; zero where every loop is closed."""
        q = self.robot.checked_configuration(q)
        with self.kinematics(q) as placed:
            return self.residual_at(placed, q)

    def jacobian(self, q: ArrayLike) -> Array:
        """Constraint Jacobian ``J``, shape (rows, nv), with ``d residual/dt = J v`` if closed."""
        q = self.robot.checked_configuration(q)
        with self.kinematics(q) as placed:
            return self.jacobian_at(placed, q)

    def gamma(self, q: ArrayLike, v: ArrayLike) -> Array:
        """Velocity-dependent part of the constraint acceleration ``J a + gamma``, shape (rows,)."""
        q, v = self.robot.checked_configuration(q), self.robot.checked_velocity(v)
        with self.robot.workspace() as data:
            pin.forwardKinematics(self.robot.model, data, q, v, np.zeros(self.robot.nv))
            pin.updateFramePlacements(self.robot.model, data)
            return self.gamma_at(data, q, v)

    def residual_at(self, data: Placed, q: Array) -> Array:
        """Residual at the frame placements that ``data`` holds."""
        residual, placed = np.empty(len(self)), data.oMf
        for loop in self.robot.loops:
            if loop.name in self._points:
                # B's origin seen from A, in the axes of B: what the pair makes of it, but at once.
                gap = placed[loop.frame_b].actInv(placed[loop.frame_a]).translation
                residual[self.rows_of[loop.name]] = -gap
                continue
            T, constant = _relative(data, loop), self.constant.get(loop.name)
            if constant is not None and isinstance(loop.pair, MotionGroup):
                rows = constant.dot(loop.pair.offset(T))
            else:
                rows = self._select[loop.name] @ loop.pair.residual(T)
            residual[self.rows_of[loop.name]] = rows
        for row in self._coupled:
            residual[self.rows_of[row.name]] = row.residual(data, q)
        return residual

    def jacobian_at(self, data: Placed, q: Array) -> Array:
        """Jacobian at the frame placements and joint Jacobians that ``data`` holds."""
        return self._jacobian(self.world_selectors(data), data, q)

    def gamma_at(self, data: pin.Data, q: Array, v: Array) -> Array:
        """``gamma`` at the placements, velocities and zero-acceleration drift in ``data``."""
        return self._gamma(self.world_selectors(data), data, q, v)

    def terms_at(self, data: pin.Data, q: Array, v: Array) -> tuple[Array, Array]:
        """Jacobian and ``gamma`` at the state that ``data`` holds."""
        selectors = self.world_selectors(data)
        return self._jacobian(selectors, data, q), self._gamma(selectors, data, q, v)

    def slopes(
        self, tree: MovingTree, q: Array, v: Array, a: Array, multipliers: Array
    ) -> RowSlopes:
        """Derivatives of all rows at a state, whose tree must be at the same one."""
        loops, parts = self.robot.loops, []
        if loops:
            selectors = [
                self.constant.get(loop.name, (loop.pair, self._select[loop.name])) for loop in loops
            ]
            frames = [(loop.frame_a, loop.frame_b) for loop in loops]
            lam = [multipliers[self.rows_of[loop.name]] for loop in loops]
            parts.append(frame_slopes(tree, frames, selectors, lam))
        if self._coupled:
            with self.robot.workspace() as data:
                pin.forwardKinematics(self.robot.model, data, q, v, np.zeros(len(v)))
                pin.computeJointJacobians(self.robot.model, data)
                pin.updateFramePlacements(self.robot.model, data)
                for row in self._coupled:
                    weight = float(multipliers[self.rows_of[row.name]][0])
                    parts.append(row.slopes(tree, data, (q, v, a), weight))
        return stacked(parts, len(tree.twists))

    def twist_jacobian(self, q: ArrayLike, loop: LoopJoint) -> Array:
        """Jacobian of the twist of B relative to A of a loop joint, expressed in B: (6, nv)."""
        with self.kinematics(self.robot.checked_configuration(q)) as at:
            to_b = at.oMf[loop.frame_b].toActionMatrixInverse()
            return np.asarray(to_b @ world_jacobian(at) * loop_sides(self.robot, loop))

    def wrench(self, data: Placed, loop: str, multipliers: Array) -> Array:
        """Wrench on body B of a loop joint, at and in frame B, force first, shape (6,)."""
        joint = self.robot.loop(loop)
        return np.asarray(self._selector(joint, data).T @ multipliers)

    def by_name(self, residual: Array) -> dict[str, float]:
        """Norm of the residual of each loop and coupling."""
        residual = flat_numbers(residual, "residual", len(self.labels))
        return {name: float(np.linalg.norm(residual[rows])) for name, rows in self.rows_of.items()}

    def _selector(self, loop: LoopJoint, data: Placed) -> Array:
        """Rows that take the relative twist to the residual rate, after regularization."""
        constant = self.constant.get(loop.name)
        if constant is not None:
            return constant
        return self._select[loop.name] @ loop.pair.selector(_relative(data, loop))

    def world_selectors(self, data: Placed) -> Array:
        """Rows that take relative twists in the world to the residual rates of all loops."""
        selectors, placements = np.empty((len(self._sides), 6)), data.oMf
        for loop in self.robot.loops:
            to_b = placements[loop.frame_b].toActionMatrixInverse()
            # For matrices of this size the method takes half as long as the operator.
            selectors[self.rows_of[loop.name]] = self._selector(loop, data).dot(to_b)
        return selectors

    def _jacobian(self, selectors: Array, data: Placed, q: Array) -> Array:
        """``S Ad(oMb^-1) (J_B - J_A)``, with the Jacobians of both sides in the world."""
        jacobian: Array = selectors.dot(world_jacobian(data))
        jacobian *= self._sides
        if not self._coupled:
            return jacobian
        return np.vstack([jacobian, *(row.jacobian(data, q) for row in self._coupled)])

    def _gamma(self, selectors: Array, data: pin.Data, q: Array, v: Array) -> Array:
        """Loops first, then couplings."""
        gamma = np.empty(len(self))
        for loop in self.robot.loops:
            rows = self.rows_of[loop.name]
            gamma[rows] = self._loop_gamma(loop, selectors[rows], data)
        for row in self._coupled:
            gamma[self.rows_of[row.name]] = row.gamma(data, q, v)
        return gamma

    def _loop_gamma(self, loop: LoopJoint, selectors: Array, data: pin.Data) -> Array:
        """``S Ad(oMb^-1) (A_B - A_A + V_B x V_A) + dS/dt V_rel``, twists in the world.

        The derivative of ``Ad(oMb^-1) (V_B - V_A)``: the bracket is that of ``oMb``. Spatial
        accelerations, not classical ones.
        """
        model, frame_a, frame_b = self.robot.model, loop.frame_a, loop.frame_b
        V_a = pin.getFrameVelocity(model, data, frame_a, _WORLD)
        V_b = pin.getFrameVelocity(model, data, frame_b, _WORLD)
        drift = pin.getFrameAcceleration(model, data, frame_b, _WORLD)
        drift -= pin.getFrameAcceleration(model, data, frame_a, _WORLD)
        drift += V_b.cross(V_a)
        gamma: Array = selectors.dot(drift.vector)
        if loop.name not in self.constant:
            V = data.oMf[frame_b].actInv(V_b - V_a)
            gamma += self._select[loop.name] @ loop.pair.bias(_relative(data, loop), V.vector)
        return gamma


def _relative(data: Placed, loop: LoopJoint) -> pin.SE3:
    """Placement of B in A at the state that the data holds."""
    return data.oMf[loop.frame_a].actInv(data.oMf[loop.frame_b])


def _row_labels(selection: Array, labels: tuple[str, ...]) -> list[str]:
    """Label of each selected row: the pair's own where it is one of its rows, else a number."""
    named = []
    for number, row in enumerate(selection, start=1):
        only = np.flatnonzero(row)
        whole = len(only) == 1 and row[only[0]] == 1.0
        named.append(labels[only[0]] if whole else f"row {number} of {len(selection)}")
    return named
