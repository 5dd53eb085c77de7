"""Constraint rows: what a row beyond loops must be able to say, and all rows of a robot together.

Rows are frozen values that a user writes down; `RowSet` binds them to a robot together with its
loop rows and evaluates all of them in one pass: ``J v = b`` and ``J a + gamma = 0``. The kinds of
rows are in `row_kinds`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ..model.mechanism import Mechanism
from .closure import Constraints

__all__ = ["BoundRow", "Row", "RowSet", "Terms"]

Array = NDArray[np.float64]
Terms = tuple[Array, Array, Array]
"""``J``, shape (k, nv); ``b`` and ``gamma``, shape (k,): ``J v = b`` and ``J a + gamma = 0``."""


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

    def begin(self, q: Array, v: Array) -> None:
        """Take what the row needs from the state at which a run starts; by default nothing."""
        return

    def residual(self, t: float, q: Array, data: pin.Data) -> Array:
        """Position residual; zeros for rows that restrict velocities only."""
        return np.zeros(len(self.labels))

    @abstractmethod
    def terms(self, t: float, q: Array, v: Array, data: pin.Data) -> Terms:
        """``J``, ``b`` and ``gamma`` at the kinematics that ``data`` holds."""


class RowSet:
    """All rows of a robot: its loops and couplings, then further rows.

    Args:
        robot: the mechanism; its regularization is respected.
        rows: further rows.

    Attributes:
        holonomic: mask of the rows that restrict positions.
        moving: whether some row prescribes a motion, so that it does work.
        scale: unit of each multiplier, so that forces and torques compare: 1 for angular rows, one
            over the robot's length for linear ones.
    """

    def __init__(self, robot: Mechanism, rows: Sequence[Row] = ()) -> None:
        self.robot = robot
        self.loops = Constraints(robot)
        self._extra = tuple(row.bind(robot) for row in rows)
        self.moving = any(row.moving for row in self._extra)
        holonomic = [True] * len(self.loops)
        angular = list(self.loops.angular)
        for row in self._extra:
            holonomic += [row.holonomic] * len(row.labels)
            angular += row.angular
        self.holonomic = np.array(holonomic, dtype=bool)
        self.scale = np.where(np.array(angular, dtype=bool), 1.0, 1 / robot.length)

    @cached_property
    def whole(self) -> Constraints:
        """All rows of loops and couplings; ``loops`` itself if regularization removed none."""
        report = self.robot.regularization
        reduced = report is not None and report.rows < report.full_rows
        return Constraints(self.robot, full=True) if reduced else self.loops

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """One per row."""
        return self.loops.labels + sum((row.labels for row in self._extra), ())

    def __len__(self) -> int:
        return len(self.holonomic)

    def begin(self, q: Array, v: Array) -> None:
        """Let rows take what they need from the state at which a run starts."""
        for row in self._extra:
            row.begin(q, v)

    def residual(self, t: float, q: Array, data: pin.Data) -> Array:
        """Position residual of all rows at the frame placements in ``data``."""
        if not self._extra:
            return self.loops.residual_at(data, q)
        parts = [self.loops.residual_at(data, q)]
        parts += [row.residual(t, q, data) for row in self._extra]
        return np.concatenate(parts)

    def closure(self, t: float, q: Array, data: pin.Data) -> tuple[Array, Array, Array]:
        """``J``, ``b`` and the residual of all rows at the kinematics at rest in ``data``."""
        residual = self.residual(t, q, data)
        if not self._extra:
            return self.loops.jacobian_at(data, q), np.zeros(len(residual)), residual
        J, b, _ = self.terms(t, q, np.zeros(self.robot.nv), data)
        return J, b, residual

    def terms(self, t: float, q: Array, v: Array, data: pin.Data) -> Terms:
        """``J``, ``b`` and ``gamma`` of all rows at the kinematics in ``data``."""
        J, gamma = self.loops.terms_at(data, q, v)
        if not self._extra:
            return J, np.zeros(len(J)), gamma
        more = [row.terms(t, q, v, data) for row in self._extra]
        return (
            np.vstack([J, *(part[0] for part in more)]),
            np.concatenate([np.zeros(len(J)), *(part[1] for part in more)]),
            np.concatenate([gamma, *(part[2] for part in more)]),
        )
