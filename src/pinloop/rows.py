"""Constraint rows beyond loops: rolling, momentum, prescribed motion, and rows of the user's own.

Rows are frozen values that a user writes down; `RowSet` binds them to a robot together with its
loop rows and evaluates all of them in one pass: ``J v = b`` and ``J a + gamma = 0``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from .constraints import Constraints
from .errors import BadValue
from .mechanism import Mechanism

__all__ = [
    "AngularMomentum",
    "BoundRow",
    "NoSlip",
    "Pfaffian",
    "Prescribed",
    "Rolling",
    "Row",
    "RowSet",
]

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


@dataclass(frozen=True)
class NoSlip(Row):
    """The origin of a frame does not move along one of its own directions: a wheel or a blade.

    Args:
        frame: body or frame that carries the wheel.
        axis: direction in the frame along which its origin does not slip, e.g. the axle.
    """

    frame: str
    axis: tuple[float, float, float]

    def bind(self, robot: Mechanism) -> BoundRow:
        """Look the frame up."""
        axis = _unit(self.axis, f"axis of NoSlip('{self.frame}')")
        return _BoundNoSlip(robot, robot.frame_id(self.frame), axis, f"no slip of {self.frame}")


class _BoundNoSlip(BoundRow):
    holonomic = False
    angular = (False,)

    def __init__(self, robot: Mechanism, frame: int, axis: Array, label: str) -> None:
        self._model, self._frame, self._axis = robot.model, frame, axis
        self.labels = (label,)

    def terms(self, t: float, q: Array, v: Array, data: pin.Data) -> Terms:
        # The rate of a component of the body-frame velocity is the spatial acceleration.
        J = _frame_jacobian(self._model, data, self._frame, pin.LOCAL)
        drift = pin.getFrameAcceleration(self._model, data, self._frame, pin.LOCAL)
        return (
            (self._axis @ J[:3])[None, :],
            np.zeros(1),
            np.array([self._axis @ drift.linear]),
        )


@dataclass(frozen=True)
class Rolling(Row):
    """A ball or a thin wheel rolls on a plane without slipping: its contact point is at rest.

    Args:
        frame: body or frame at the centre of the ball or wheel.
        radius: radius [m].
        normal: normal of the plane in the world, pointing to the centre's side.
        axle: direction of the axle in the frame for a wheel; None for a ball.
    """

    frame: str
    radius: float
    normal: tuple[float, float, float] = (0.0, 0.0, 1.0)
    axle: tuple[float, float, float] | None = None

    def bind(self, robot: Mechanism) -> BoundRow:
        """Look the frame up."""
        if not isinstance(self.radius, Real) or not self.radius > 0:
            raise BadValue(
                f"Rolling('{self.frame}') has radius {self.radius} m; it must be a number > 0"
            )
        normal = _unit(self.normal, f"normal of Rolling('{self.frame}')")
        axle = None if self.axle is None else _unit(self.axle, f"axle of Rolling('{self.frame}')")
        return _BoundRolling(robot, self, robot.frame_id(self.frame), normal, axle)


class _BoundRolling(BoundRow):
    holonomic = False
    angular = (False, False, False)

    def __init__(
        self, robot: Mechanism, row: Rolling, frame: int, normal: Array, axle: Array | None
    ) -> None:
        self._model, self._frame = robot.model, frame
        self._normal, self._axle, self._radius = normal, axle, row.radius
        self.labels = tuple(f"rolling of {row.frame}: {axis}" for axis in "xyz")

    def terms(self, t: float, q: Array, v: Array, data: pin.Data) -> Terms:
        """``v_c + w x c = 0`` in world axes, with ``c`` from the centre to the contact point."""
        model, frame = self._model, self._frame
        J = _frame_jacobian(model, data, frame, pin.LOCAL_WORLD_ALIGNED)
        twist = pin.getFrameVelocity(model, data, frame, pin.LOCAL_WORLD_ALIGNED)
        drift = pin.getFrameClassicalAcceleration(model, data, frame, pin.LOCAL_WORLD_ALIGNED)
        arm, arm_rate = self._arm(data.oMf[frame].rotation, twist.angular)
        gamma = drift.linear + np.cross(drift.angular, arm) + np.cross(twist.angular, arm_rate)
        return J[:3] - pin.skew(arm) @ J[3:], np.zeros(3), gamma

    def _arm(self, rotation: Array, w: Array) -> tuple[Array, Array]:
        """Vector from the centre to the contact point, and its rate."""
        n = self._normal
        if self._axle is None:
            return -self._radius * n, np.zeros(3)
        axle = rotation @ self._axle
        axle_rate = np.cross(w, axle)
        up = n - (n @ axle) * axle
        up_rate = -(n @ axle_rate) * axle - (n @ axle) * axle_rate
        size = float(np.linalg.norm(up))
        if size < 1e-9:
            raise BadValue("a rolling wheel lies flat on the plane: its contact is not a point")
        direction = up / size
        turn = (up_rate - (direction @ up_rate) * direction) / size
        return -self._radius * direction, -self._radius * turn


@dataclass(frozen=True)
class AngularMomentum(Row):
    """The angular momentum about the centre of mass along an axis keeps its value.

    Only where nothing exerts a torque: the row then forces nothing and keeps an integrator honest.

    Args:
        axis: direction in the world.
        value: value [kg m^2/s]; that of the start by default.
    """

    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)
    value: float | None = None

    def bind(self, robot: Mechanism) -> BoundRow:
        """Allocate the momentum map."""
        return _BoundMomentum(robot, _unit(self.axis, "axis of AngularMomentum"), self.value)


class _BoundMomentum(BoundRow):
    holonomic = False
    angular = (True,)
    labels = ("angular momentum",)

    def __init__(self, robot: Mechanism, axis: Array, value: float | None) -> None:
        self._model, self._axis, self._value = robot.model, axis, value
        self._data = robot.model.createData()

    def begin(self, q: Array, v: Array) -> None:
        if self._value is None:
            self._value = float((self._map(q) @ v)[0])

    def terms(self, t: float, q: Array, v: Array, data: pin.Data) -> Terms:
        J = self._map(q)
        value = self._value if self._value is not None else float((J @ v)[0])
        # Not the time variation of the map: Pinocchio's forgets that the motion subspace of some
        # joints (universal, composite) moves.
        rest = np.zeros(len(v))
        drift = pin.computeCentroidalMomentumTimeVariation(self._model, self._data, q, v, rest)
        return J, np.array([value]), np.array([self._axis @ drift.angular])

    def _map(self, q: Array) -> Array:
        centroidal = pin.computeCentroidalMap(self._model, self._data, q)
        return np.atleast_2d(self._axis @ np.array(centroidal).reshape(6, -1)[3:])


@dataclass(frozen=True)
class Prescribed(Row):
    """A joint follows a given motion.

    Args:
        joint: joint with one degree of freedom.
        motion: function of time that returns position, velocity and acceleration [rad, m].
    """

    joint: str
    motion: Callable[[float], tuple[float, float, float]]

    def bind(self, robot: Mechanism) -> BoundRow:
        """Look the joint up."""
        at = robot.coordinates(self.joint)
        if (at.nq, at.nv) != (1, 1):
            raise BadValue(f"joint '{self.joint}' has {at.nv} degrees of freedom; prescribe one")
        return _BoundPrescribed(robot, self)


class _BoundPrescribed(BoundRow):
    holonomic = True
    moving = True

    def __init__(self, robot: Mechanism, row: Prescribed) -> None:
        at = robot.coordinates(row.joint)
        self._q, self._v, self._motion = at.q.start, at.v.start, row.motion
        self._J = np.eye(robot.nv)[at.v]
        self.labels = (f"prescribed {row.joint}",)
        self.angular = (not bool(robot.is_translation[at.v.start]),)

    def residual(self, t: float, q: Array, data: pin.Data) -> Array:
        return np.array([q[self._q] - self._at(t)[0]])

    def terms(self, t: float, q: Array, v: Array, data: pin.Data) -> Terms:
        _, rate, acceleration = self._at(t)
        return self._J, np.array([rate]), np.array([-acceleration])

    def _at(self, t: float) -> Array:
        """Position, velocity and acceleration at a time, checked."""
        return _result(self.labels[0], (3,), lambda: self._motion(t))


@dataclass(frozen=True)
class Pfaffian(Row):
    """Rows of the user's own: ``A(q) v = 0``.

    Args:
        name: name for messages and reactions.
        rows: function of q that returns ``A``, shape (k, nv).
        rate: function of q and v that returns ``dA/dt v``, shape (k,); by central differences along
            the motion if not given.
    """

    name: str
    rows: Callable[[Array], ArrayLike]
    rate: Callable[[Array, Array], ArrayLike] | None = None

    def bind(self, robot: Mechanism) -> BoundRow:
        """Evaluate the rows once to see their shape."""
        return _BoundPfaffian(robot, self)


class _BoundPfaffian(BoundRow):
    holonomic = False

    def __init__(self, robot: Mechanism, row: Pfaffian) -> None:
        self._model, self._row = robot.model, row
        given = _result(row.name, None, lambda: np.atleast_2d(row.rows(robot.neutral)))
        shape = given.shape
        if len(shape) != 2 or shape[1] != robot.nv:
            raise BadValue(
                f"rows '{row.name}' have shape {shape}; they need {robot.nv} columns, one per "
                "velocity"
            )
        self._shape = shape
        self.labels = tuple(f"{row.name}: {k + 1}" for k in range(shape[0]))
        self.angular = (True,) * shape[0]

    def matrix(self, q: Array) -> Array:
        """``A`` at a configuration."""
        return _result(self._row.name, self._shape, lambda: np.atleast_2d(self._row.rows(q)))

    def terms(self, t: float, q: Array, v: Array, data: pin.Data) -> Terms:
        A = self.matrix(q)
        given = self._row.rate
        if given is not None:
            gamma = _result(self._row.name, (len(A),), lambda: np.atleast_1d(given(q, v)))
        else:
            step = 1e-6 / max(1.0, float(np.abs(v).max(initial=0.0)))
            ahead, behind = (
                self.matrix(pin.integrate(self._model, q, s * v)) for s in (step, -step)
            )
            gamma = (ahead - behind) @ v / (2 * step)
        return A, np.zeros(len(A)), gamma


class RowSet:
    """All rows of a robot: its loops and couplings, then further rows.

    Args:
        robot: the mechanism; its regularization is respected.
        rows: further rows.

    Attributes:
        labels: one label per row.
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
        self.labels = self.loops.labels + sum((row.labels for row in self._extra), ())
        holonomic = [True] * len(self.loops)
        angular = list(self.loops.angular)
        for row in self._extra:
            holonomic += [row.holonomic] * len(row.labels)
            angular += row.angular
        self.holonomic = np.array(holonomic, dtype=bool)
        self.scale = np.where(np.array(angular, dtype=bool), 1.0, 1 / robot.length)

    def __len__(self) -> int:
        return len(self.labels)

    def begin(self, q: Array, v: Array) -> None:
        """Let rows take what they need from the state at which a run starts."""
        for row in self._extra:
            row.begin(q, v)

    def residual(self, t: float, q: Array, data: pin.Data) -> Array:
        """Position residual of all rows at the frame placements in ``data``."""
        parts = [self.loops.residual_at(data, q)]
        parts += [row.residual(t, q, data) for row in self._extra]
        return np.concatenate(parts)

    def terms(self, t: float, q: Array, v: Array, data: pin.Data) -> Terms:
        """``J``, ``b`` and ``gamma`` of all rows at the kinematics in ``data``."""
        J, gamma = self.loops.jacobian_at(data, q), self.loops.gamma_at(data, q, v)
        if not self._extra:
            return J, np.zeros(len(J)), gamma
        more = [row.terms(t, q, v, data) for row in self._extra]
        return (
            np.vstack([J, *(part[0] for part in more)]),
            np.concatenate([np.zeros(len(J)), *(part[1] for part in more)]),
            np.concatenate([gamma, *(part[2] for part in more)]),
        )


def _result(name: str, shape: tuple[int, ...] | None, call: Callable[[], ArrayLike]) -> Array:
    """What a function of the user's returns, checked for kind, shape and finite numbers."""
    try:
        values = np.asarray(call(), dtype=float)
    except Exception as error:
        raise BadValue(f"row '{name}' raised {type(error).__name__}: {error}") from error
    if shape is not None and values.shape != shape:
        raise BadValue(f"row '{name}' gave shape {values.shape}; it must be {shape}")
    if not np.all(np.isfinite(values)):
        raise BadValue(f"row '{name}' gave {values}, which is not finite")
    return values


def _unit(vector: ArrayLike, what: str) -> Array:
    """``vector`` normalised."""
    try:
        values = np.asarray(vector, dtype=float)
    except (TypeError, ValueError):
        raise BadValue(f"{what} is {vector!r}; it must be a direction of 3 numbers") from None
    size = float(np.linalg.norm(values))
    if values.shape != (3,) or not np.isfinite(size) or size < 1e-12:
        raise BadValue(f"{what} is {vector!r}; it must be a direction of 3 numbers")
    return values / size


def _frame_jacobian(
    model: pin.Model, data: pin.Data, frame: int, axes: pin.ReferenceFrame
) -> Array:
    """Jacobian of a frame; Pinocchio drops the axis of length one if nv = 1."""
    return np.asarray(pin.getFrameJacobian(model, data, frame, axes)).reshape(6, -1)
