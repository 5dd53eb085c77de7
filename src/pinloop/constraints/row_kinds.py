"""Kinds of rows beyond loops: rolling, momentum, prescribed motion, and rows of the user's own.

Each is a frozen value that a user writes down, and with it the same row bound to a robot.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from ..boundary.arguments import checked, public, unit_vector
from ..boundary.marks import Array
from ..errors import BadValue
from ..model.mechanism import Mechanism
from ..model.moving_tree import MovingTree
from ..tolerances import DIFFERENCE_STEP, NO_DIRECTION
from .relative_motion import JointMotion
from .row_slopes import RowSlopes, frame_slopes
from .rows import BoundRow, InertiaSlopes, Row, Terms

_UNIVERSE = 0
"""The frame of the world."""
_INERTIAS = np.array(
    [pin.bodyRegressor(pin.Motion.Zero(), pin.Motion(unit)) for unit in np.eye(6)]
).transpose(1, 0, 2)
"""Spatial inertias of bodies that have one dynamic parameter each, at ``[:, :, parameter]``."""


@public
@checked
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
        axis = unit_vector(self.axis, f"axis of NoSlip('{self.frame}')")
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
        return ((self._axis @ J[:3])[None, :], np.zeros(1), np.array([self._axis @ drift.linear]))

    def slopes(self, tree: MovingTree, multipliers: Array) -> RowSlopes | None:
        selector = np.append(self._axis, np.zeros(3))[None]
        return frame_slopes(tree, [(_UNIVERSE, self._frame)], [selector], [multipliers])


@public
@checked
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
        what = f"Rolling('{self.frame}')"
        if not isinstance(self.radius, Real) or not self.radius > 0:
            raise BadValue(f"{what} has radius {self.radius} m; it must be a number > 0")
        normal = unit_vector(self.normal, f"normal of {what}")
        axle = None if self.axle is None else unit_vector(self.axle, f"axle of {what}")
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
        if size < NO_DIRECTION:
            raise BadValue("a rolling wheel lies flat on the plane: its contact is not a point")
        direction = up / size
        turn = (up_rate - (direction @ up_rate) * direction) / size
        return -self._radius * direction, -self._radius * turn


@public
@checked
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
        return _BoundMomentum(robot, unit_vector(self.axis, "axis of AngularMomentum"), self.value)


class _BoundMomentum(BoundRow):
    holonomic = False
    angular = (True,)
    labels = ("angular momentum",)

    def __init__(self, robot: Mechanism, axis: Array, value: float | None) -> None:
        self._robot, self._axis, self._value = robot, axis, value
        self.begins = value is None

    def begin(self, q: Array, v: Array) -> None:
        if self._value is None:
            self._value = float((self._map(q) @ v)[0])

    def terms(self, t: float, q: Array, v: Array, data: pin.Data) -> Terms:
        J = self._map(q)
        value = self._value if self._value is not None else float((J @ v)[0])
        # Not the time variation of the map: Pinocchio's forgets that the motion subspace of some
        # joints (universal, composite) moves.
        model, rest = self._robot.model, np.zeros(len(v))
        with self._robot.workspace() as own:
            drift = pin.computeCentroidalMomentumTimeVariation(model, own, q, v, rest)
            return J, np.array([value]), np.array([self._axis @ drift.angular])

    def inertia_slopes(
        self, state: tuple[Array, Array, Array], joint: int, inertia: Array
    ) -> InertiaSlopes:
        """What the body has along the turn ``w`` about the axis through the centre of mass ``c``.

        That is ``w . I V``, and ``w . (I A + V x I V)`` of its rate; less what ``c`` moves by,
        ``axis . (dc x p)`` with the momentum ``p`` of all bodies, and with its rate.
        """
        (model, axis), (q, v, a) = (self._robot.model, self._axis), state
        with self._robot.workspace() as data:
            rate = pin.computeCentroidalMomentumTimeVariation(model, data, q, v, a).linear
            pushes = np.array(pin.computeCentroidalMap(model, data, q)).reshape(6, -1)[:3]
            c, mass = np.array(data.com[0]), data.mass[0]
            pin.forwardKinematics(model, data, q, v, a)
            placed, V, A = data.oMi[joint], data.v[joint], data.a[joint]
            J = pin.computeJointJacobian(model, data, q, joint).reshape(6, -1)
            turn = placed.actInv(pin.Motion(np.cross(c, axis), axis)).vector
            force = pin.bodyRegressor(V, A) @ inertia
        moments = placed.rotation @ inertia[1:4]
        moved = moments + np.outer(placed.translation - c, inertia[0])
        bent = np.cross(axis, moved.T / mass)
        by_rows = J.T @ np.tensordot(turn, _INERTIAS, 1) @ inertia - (bent @ pushes).T
        return InertiaSlopes(by_rows[None], (turn @ force - bent @ rate)[None])

    def _map(self, q: Array) -> Array:
        with self._robot.workspace() as data:
            centroidal = pin.computeCentroidalMap(self._robot.model, data, q)
            return np.atleast_2d(self._axis @ np.array(centroidal).reshape(6, -1)[3:])


@public
@checked
@dataclass(frozen=True)
class Prescribed(Row):
    """A joint follows a given motion.

    Args:
        joint: the joint.
        motion: function of time that returns position, velocity and acceleration [rad, m].
        axis: axis that moves so, where the joint has several; it must have a coordinate.
    """

    joint: str
    motion: Callable[[float], tuple[float, float, float]]
    axis: str = ""

    def bind(self, robot: Mechanism) -> BoundRow:
        """Look the joint up."""
        return _BoundPrescribed(robot, self)


class _BoundPrescribed(BoundRow):
    holonomic = True
    moving = True

    def __init__(self, robot: Mechanism, row: Prescribed) -> None:
        self._axis, self._motion = JointMotion(robot, row.joint), row.motion
        self._place = self._axis.axis(row.axis, "Prescribed", measured=True)
        self.labels = (f"prescribed {row.joint}{row.axis and '.'}{row.axis}",)
        self.angular = (not self._axis.is_translation[self._place],)

    def residual(self, t: float, q: Array, data: pin.Data) -> Array:
        wanted = float(self._at(t)[0])
        return np.array([self._axis.position(q, data, wanted, self._place) - wanted])

    def terms(self, t: float, q: Array, v: Array, data: pin.Data) -> Terms:
        _, rate, acceleration = self._at(t)
        one = slice(self._place, self._place + 1)
        J, drift = self._axis.jacobian(data)[one], self._axis.drift(data)[one]
        return J, np.array([rate]), drift - acceleration

    def slopes(self, tree: MovingTree, multipliers: Array) -> RowSlopes | None:
        return self._axis.slopes(tree, multipliers, [self._place])

    def _at(self, t: float) -> Array:
        """Position, velocity and acceleration at a time, checked."""
        return _result(self.labels[0], (3,), lambda: self._motion(t))


@public
@checked
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
            step = DIFFERENCE_STEP / max(1.0, float(np.abs(v).max(initial=0.0)))
            ahead, behind = (
                self.matrix(pin.integrate(self._model, q, s * v)) for s in (step, -step)
            )
            gamma = (ahead - behind) @ v / (2 * step)
        return A, np.zeros(len(A)), gamma


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


def _frame_jacobian(
    model: pin.Model, data: pin.Data, frame: int, axes: pin.ReferenceFrame
) -> Array:
    """Jacobian of a frame; Pinocchio drops the axis of length one if nv = 1."""
    return np.asarray(pin.getFrameJacobian(model, data, frame, axes)).reshape(6, -1)
