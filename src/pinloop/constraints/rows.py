"""Constraint rows: what a row beyond loops must be able to say, and all rows of a robot together.

Rows are frozen values that a user writes down; `RowSet` binds them to a robot together with its
loop rows and evaluates all of them in one pass: ``J v = b`` and ``J a + gamma = 0``. The kinds of
rows are in `row_kinds`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal, NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ..boundary.arguments import public
from ..boundary.marks import Array
from ..errors import BadValue
from ..linalg.dense import slopes
from ..model.mechanism import Mechanism
from ..model.moving_tree import MovingTree
from ..model.tree import coordinate_names
from ..model.workspace import remembered
from .closure import Constraints
from .relative_motion import JointMotion
from .row_slopes import RowSlopes, stacked

Terms = tuple[Array, Array, Array]
"""``J``, shape (k, nv); ``b`` and ``gamma``, shape (k,): ``J v = b`` and ``J a + gamma = 0``."""


Elsewhere = Callable[[str, Array], Mechanism]
"""The robot with a joint or a frame that a twist in its own axes has moved, shape (6,)."""


class InertiaSlopes(NamedTuple):
    """Derivatives of k rows by numbers of an inertia.

    Args:
        J: of the rows, shape (k, nv, numbers).
        acceleration: of ``J a + gamma``, shape (k, numbers).
    """

    J: Array
    acceleration: Array


class Row(ABC):
    """A constraint that a user asks for."""

    @abstractmethod
    def bind(self, robot: Mechanism) -> BoundRow:
        """Return the row with work space for a robot; checks names."""


class BoundRow(ABC):
    """A row of a certain robot, with work space of its own."""

    labels: tuple[str, ...]
    """One label per row."""
    holonomic: bool
    """Whether the row restricts positions."""
    angular: tuple[bool, ...]
    """Per row, whether it measures angles [rad] rather than lengths [m]."""

    moving: bool = False
    """Whether the row does work: its ``b`` is not zero."""
    begins: bool = False
    """Whether its ``b`` is what the state has at which a run starts."""

    def begin(self, q: Array, v: Array) -> None:
        """Take what the row needs from the state at which a run starts; by default nothing."""
        return

    def residual(self, t: float, q: Array, data: pin.Data) -> Array:
        """Position residual; zeros for rows that restrict velocities only."""
        return np.zeros(len(self.labels))

    @abstractmethod
    def terms(self, t: float, q: Array, v: Array, data: pin.Data) -> Terms:
        """``J``, ``b`` and ``gamma`` at the kinematics that ``data`` holds."""

    def slopes(self, tree: MovingTree, multipliers: Array) -> RowSlopes | None:
        """Derivatives at the state of a tree; None if the row leaves them to differences."""
        return None

    def inertia_slopes(
        self, state: tuple[Array, Array, Array], joint: int, inertia: Array
    ) -> InertiaSlopes | None:
        """Derivatives by numbers of an inertia at q, v and a; None if it depends on none.

        Args:
            state: q, v and a.
            joint: index of the joint that carries it, in the robot's model.
            inertia: derivatives of its dynamic parameters, shape (10, numbers).
        """
        return None


@public
@dataclass(frozen=True)
class Locked:
    """A locked joint.

    Args:
        joint: name of the joint.
        axes: names of the locked degrees of freedom ("vx", "wz", ...); all of them if empty.
        at_limit: the end of its range that holds the joint and can only push, "lower" or "upper";
            empty for a lock that holds both ways.
        by_friction: whether dry friction holds it, which is no lock to whoever looks on.
    """

    joint: str
    axes: tuple[str, ...] = ()
    at_limit: Literal["", "lower", "upper"] = ""
    by_friction: bool = False

    def __post_init__(self) -> None:
        axes = (self.axes,) if isinstance(self.axes, str) else tuple(self.axes)
        if not isinstance(self.joint, str) or not all(isinstance(axis, str) for axis in axes):
            raise BadValue(f"a lock needs the name of a joint, not {self.joint!r} {axes}")
        object.__setattr__(self, "axes", axes)

    @property
    def label(self) -> str:
        """Name of the lock among the reactions."""
        return f"{'friction' if self.by_friction else 'lock'}:{self.joint}"


def locked_columns(robot: Mechanism, lock: Locked) -> list[int]:
    """Velocity coordinates that a lock holds; none if its joint closes a loop.

    Raises:
        BadValue: the joint has no such degree of freedom, or no coordinate at all.
    """
    if any(lock.joint == loop.name for loop in robot.loops):
        _locked_axes(_held_motion(robot, lock).axes, lock)
        return []
    at = robot.coordinates(lock.joint).v
    if not lock.axes:
        return list(range(at.start, at.stop))
    places = _locked_axes(coordinate_names(robot.tree, lock.joint), lock)
    return [at.start + place for place in places]


def _held_motion(robot: Mechanism, lock: Locked) -> JointMotion:
    """What a lock holds of: axes, or all of a joint without any."""
    return JointMotion(robot, lock.joint, whole=not lock.axes)


def _locked_axes(axes: tuple[str, ...], lock: Locked) -> list[int]:
    """Which axes of its joint a lock holds."""
    for axis in lock.axes:
        if axis not in axes:
            raise BadValue(
                f"joint '{lock.joint}' has no degree of freedom '{axis}'; it has {', '.join(axes)}"
            )
    return [axes.index(axis) for axis in lock.axes or axes]


def _lock_labels(robot: Mechanism, lock: Locked) -> tuple[str, ...]:
    """One label per locked axis; it is named where the joint has several."""
    axes = _held_motion(robot, lock).axes
    if len(axes) == 1 and not lock.axes:
        return (lock.label,)
    return tuple(f"{lock.label}.{axis}" for axis in lock.axes or axes)


class _LockedLoop(BoundRow):
    """A lock of a joint that closes a loop: its frames do not move along these axes."""

    holonomic = False

    def __init__(self, robot: Mechanism, lock: Locked) -> None:
        self._motion = _held_motion(robot, lock)
        self._places = _locked_axes(self._motion.axes, lock)
        self.labels = _lock_labels(robot, lock)
        self.angular = tuple((~self._motion.is_translation[self._places]).tolist())

    def terms(self, t: float, q: Array, v: Array, data: pin.Data) -> Terms:
        J, drift = self._motion.jacobian(data), self._motion.drift(data)
        return J[self._places], np.zeros(len(self._places)), drift[self._places]

    def slopes(self, tree: MovingTree, multipliers: Array) -> RowSlopes | None:
        return self._motion.slopes(tree, multipliers, self._places)


@remembered
def _constraints(robot: Mechanism, full: bool = False) -> Constraints:
    return Constraints(robot, full=full)


class RowSet:
    """All rows of a robot: its loops and couplings, then further rows, last those of locks.

    A lock is a row for who asks what may move and what holds it. Who moves the robot leaves its
    coordinates out instead, and with them the rows from `unlocked` on; a locked joint that closes a
    loop has none, and its rows are further ones.

    Args:
        robot: the mechanism; its regularization is respected.
        rows: further rows.
        locks: locked joints.

    Attributes:
        unlocked: number of rows without those of locks.
        lock_columns: velocity coordinate of each row of a lock.
        locked: velocity coordinates that stand still, in order.
        holonomic: mask of the rows that restrict positions.
        moving: whether some row prescribes a motion, so that it does work.
        beginning: mask of the rows whose ``b`` is what the start of a run has.
        scale: unit of each multiplier, so that forces and torques compare: 1 for angular rows, one
            over the robot's length for linear ones.
    """

    def __init__(
        self, robot: Mechanism, rows: Sequence[Row] = (), locks: Sequence[Locked] = ()
    ) -> None:
        self.robot = robot
        self.loops = _constraints(robot)
        bound = [row.bind(robot) for row in rows]
        loops = {loop.name for loop in robot.loops}
        bound += [_LockedLoop(robot, lock) for lock in locks if lock.joint in loops]
        self._given, self._extra = tuple(rows), tuple(bound)
        held = [lock for lock in locks if lock.joint not in loops]
        self.moving = any(row.moving for row in self._extra)
        holonomic, begins = [True] * len(self.loops), [False] * len(self.loops)
        angular = list(self.loops.angular)
        for row in self._extra:
            holonomic += [row.holonomic] * len(row.labels)
            begins += [row.begins] * len(row.labels)
            angular += row.angular
        self.unlocked, self.locks = len(holonomic), tuple(locks)
        columns = [column for lock in held for column in locked_columns(robot, lock)]
        self.lock_columns = np.array(columns, dtype=np.intp)
        self.locked = np.array(sorted(set(columns)), dtype=np.intp)
        self._only_loops = not self._extra and not columns
        self._lock_J, self._lock_rates = np.eye(robot.nv)[self.lock_columns], np.zeros(len(columns))
        # Positions follow exactly, because a locked velocity is exactly zero.
        holonomic += [False] * len(columns)
        angular += (~robot.is_translation[self.lock_columns]).tolist()
        self.holonomic = np.array(holonomic, dtype=bool)
        self.beginning = np.array(begins + [False] * len(columns), dtype=bool)
        self.scale = np.where(np.array(angular, dtype=bool), 1.0, 1 / robot.length)

    @cached_property
    def whole(self) -> Constraints:
        """All rows of loops and couplings; ``loops`` itself if regularization removed none."""
        report = self.robot.regularization
        reduced = report is not None and report.rows < report.full_rows
        return _constraints(self.robot, True) if reduced else self.loops

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """One per row."""
        held = (lock for lock in self.locks if locked_columns(self.robot, lock))
        parts = [row.labels for row in self._extra]
        parts += [_lock_labels(self.robot, lock) for lock in held]
        return sum(parts, self.loops.labels)

    def __len__(self) -> int:
        return len(self.holonomic)

    def begin(self, q: Array, v: Array) -> None:
        """Let rows take what they need from the state at which a run starts."""
        for row in self._extra:
            row.begin(q, v)

    def residual(self, t: float, q: Array, data: pin.Data) -> Array:
        """Position residual of all rows at the frame placements in ``data``."""
        if self._only_loops:
            return self.loops.residual_at(data, q)
        parts = [self.loops.residual_at(data, q)]
        parts += [row.residual(t, q, data) for row in self._extra]
        return np.concatenate([*parts, self._lock_rates])

    def closure(self, t: float, q: Array, data: pin.Data) -> tuple[Array, Array, Array]:
        """``J``, ``b`` and the residual of all rows at the kinematics at rest in ``data``."""
        residual = self.residual(t, q, data)
        if self._only_loops:
            return self.loops.jacobian_at(data, q), np.zeros(len(residual)), residual
        J, b, _ = self.terms(t, q, np.zeros(self.robot.nv), data)
        return J, b, residual

    def terms(self, t: float, q: Array, v: Array, data: pin.Data, *, locks: bool = True) -> Terms:
        """``J``, ``b`` and ``gamma`` of all rows at the kinematics in ``data``."""
        J, gamma = self.loops.terms_at(data, q, v)
        more = [row.terms(t, q, v, data) for row in self._extra]
        if locks and len(self.lock_columns):
            more.append((self._lock_J, self._lock_rates, self._lock_rates))
        if not more:
            return J, np.zeros(len(J)), gamma
        return (
            np.vstack([J, *(part[0] for part in more)]),
            np.concatenate([np.zeros(len(J)), *(part[1] for part in more)]),
            np.concatenate([gamma, *(part[2] for part in more)]),
        )

    def slopes(
        self,
        tree: MovingTree,
        state: tuple[float, Array, Array, Array],
        multipliers: Array,
        elsewhere: Elsewhere | None = None,
    ) -> RowSlopes:
        """Derivatives of all rows but those of locks at a state.

        Args:
            tree: the robot at the state.
            state: time, configuration, velocity, acceleration.
            multipliers: of these rows, shape (unlocked,).
            elsewhere: the robot with joints in other places, if the tree has such.
        """
        _, q, v, a = state
        at = len(self.loops)
        parts = [self.loops.slopes(tree, q, v, a, multipliers[:at])]
        for k, row in enumerate(self._extra):
            lam = multipliers[at : at + len(row.labels)]
            at += len(row.labels)
            own = row.slopes(tree, lam)
            parts.append(own or self._differences(k, tree, state, lam, elsewhere))
        return stacked(parts, len(tree.twists))

    def inertia_slopes(
        self, state: tuple[Array, Array, Array], joint: int, inertia: Array
    ) -> InertiaSlopes:
        """Derivatives of all rows but those of locks; see `BoundRow.inertia_slopes`."""
        none = np.zeros((self.unlocked, len(state[1]) + 1, inertia.shape[1]))
        whole, at = InertiaSlopes(none[:, 1:], none[:, 0]), len(self.loops)
        for row in self._extra:
            rows = slice(at, at := at + len(row.labels))
            own = row.inertia_slopes(state, joint, inertia) if joint else None  # 0 is the ground
            if own is not None:
                whole.J[rows], whole.acceleration[rows] = own
        return whole

    def _differences(
        self,
        number: int,
        tree: MovingTree,
        state: tuple[float, Array, Array, Array],
        multipliers: Array,
        elsewhere: Elsewhere | None,
    ) -> RowSlopes:
        """Derivatives of a further row that does not know its own."""
        (t, q, v, a), here, chain = state, self._extra[number], tree.chain
        k, m, n = len(here.labels), len(v), len(tree.twists)

        def values(
            q: Array, v: Array, robot: Mechanism = self.robot, row: BoundRow = here
        ) -> Array:
            with robot.workspace() as data:
                pin.forwardKinematics(robot.model, data, q, v, np.zeros(m))
                pin.computeJointJacobians(robot.model, data)
                pin.updateFramePlacements(robot.model, data)
                J, _, gamma = row.terms(t, q, v, data)
            return np.concatenate([J @ v, J @ a + gamma, J.T @ multipliers, J.ravel()])

        def by_place(name: str, twist: Array) -> Array:
            assert elsewhere is not None
            robot = elsewhere(name, twist)
            return values(q, v, robot, self._given[number].bind(robot))

        blocks, force = np.zeros((4, k, n)), np.zeros((n, n))
        blocks[0][:, chain.columns] = values(q, v)[-k * m :].reshape(k, -1)
        blocks[3][:, chain.columns] = slopes(lambda dv: values(q, v + dv), m).T[k : 2 * k]
        model = self.robot.model
        moves: list[tuple[NDArray[np.intp], Callable[[Array], Array]]]
        moves = [(chain.columns, lambda dq: values(pin.integrate(model, q, dq), v))]
        moves += [
            (place.astype(np.intp), partial(by_place, name)) for name, place in chain.moved.items()
        ]
        for columns, moved in moves:
            own = slopes(moved, len(columns)).T
            blocks[1:3][..., columns] = own[:k], own[k : 2 * k]
            force[np.ix_(chain.columns, columns)] = own[2 * k : 2 * k + m]
        return RowSlopes(blocks[0], blocks[1], blocks[2], blocks[3], force)
