"""What accelerations and reactions can be differentiated by, besides the state and the torques.

A parameter is a value that a user writes down. Inertias enter the equations linearly, those of
forces through the forces alone; where a joint sits is a coordinate like others, of a free joint
that stands still there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pinocchio as pin

from ..boundary.arguments import checked, public
from ..boundary.marks import Array
from ..errors import BadValue
from ..linalg.dense import slope, slopes
from ..model.mechanism import Mechanism
from ..tolerances import SLOPE_STEP
from .equations import EquationsOfMotion
from .forces import Force

__all__ = ["Armature", "BodyInertia", "ForceParameter", "Parameter", "Placement", "PointMass"]

_MOMENTS = (("xx", 0, 0), ("xy", 0, 1), ("yy", 1, 1), ("xz", 0, 2), ("yz", 1, 2), ("zz", 2, 2))


@public
class Parameter(ABC):
    """One or several numbers on which the motion of a robot depends."""

    @abstractmethod
    def labels(self, robot: Mechanism) -> tuple[str, ...]:
        """A name for each number."""

    @property
    def places(self) -> tuple[str, ...]:
        """Joints and frames that the numbers move; then `loads` is not asked."""
        return ()

    def loads(self, equations: EquationsOfMotion, t: float, q: Array, v: Array, a: Array) -> Array:
        """Derivatives of ``M a + nle - tau`` at fixed ``a``, shape (nv, numbers)."""
        return np.zeros((equations.robot.nv, 0))


@public
@checked
@dataclass(frozen=True)
class BodyInertia(Parameter):
    """Mass, centre of mass and moments of inertia of a body, as its file has them.

    Ten numbers: the mass [kg], the centre of mass in the body's frame [m], the moments about it
    [kg m^2].

    Args:
        body: name of the body.
    """

    body: str

    def labels(self, robot: Mechanism) -> tuple[str, ...]:
        """What each number is."""
        moments = (f"inertia {name}" for name, *_ in _MOMENTS)
        names = ("mass", "com x", "com y", "com z", *moments)
        return tuple(f"{self.body}: {name}" for name in names)

    def loads(self, equations: EquationsOfMotion, t: float, q: Array, v: Array, a: Array) -> Array:
        """By the regressor of the body that the joint carries."""
        robot = equations.robot
        body = next((b for b in robot.description.bodies if b.name == self.body), None)
        if body is None:
            raise BadValue(f"robot '{robot.name}' has no body '{self.body}'")
        moments = [np.array(body.inertia)[i, k] for _, i, k in _MOMENTS]
        given = np.array([body.mass, *body.com, *moments])

        def loads(x: Array) -> Array:
            return _inertia_loads(robot, self.body, _inertia(x), (q, v, a))

        return slopes(lambda change: loads(given + change), 10).T


@public
@checked
@dataclass(frozen=True)
class PointMass(Parameter):
    """Mass of a small payload [kg], one more than there may be already.

    Args:
        frame: body or frame that carries it.
        point: where it is in the frame [m].
    """

    frame: str
    point: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def labels(self, robot: Mechanism) -> tuple[str, ...]:
        """What it is."""
        return (f"point mass on {self.frame}",)

    def loads(self, equations: EquationsOfMotion, t: float, q: Array, v: Array, a: Array) -> Array:
        """Those of one kilogram."""
        one = _inertia(np.array([1.0, *self.point, *np.zeros(6)]))
        return _inertia_loads(equations.robot, self.frame, one, (q, v, a))[:, None]


@public
@checked
@dataclass(frozen=True)
class Armature(Parameter):
    """Inertia of a rotor as its joint feels it [kg m^2, kg], one per axis.

    Args:
        joint: name of the joint.
    """

    joint: str

    def labels(self, robot: Mechanism) -> tuple[str, ...]:
        """What it is."""
        return tuple(f"armature of {self.joint}" for _ in range(robot.coordinates(self.joint).nv))

    def loads(self, equations: EquationsOfMotion, t: float, q: Array, v: Array, a: Array) -> Array:
        """The accelerations of the joint."""
        at = equations.robot.coordinates(self.joint).v
        return np.diag(a)[:, at]


@public
@checked
@dataclass(frozen=True)
class ForceParameter(Parameter):
    """A number of a force that acts on the robot: stiffness, damping, rest length, friction ...

    Args:
        force: the force, one of those that act.
        name: name of its parameter.
        joint: joint whose coefficient is meant, if the parameter has one for each.
    """

    force: Force
    name: str
    joint: str = ""

    def labels(self, robot: Mechanism) -> tuple[str, ...]:
        """What it is."""
        where = f" of {self.joint}" if self.joint else ""
        return (f"{type(self.force).__name__}.{self.name}{where}",)

    def loads(self, equations: EquationsOfMotion, t: float, q: Array, v: Array, a: Array) -> Array:
        """Of the force alone, by differences in the number."""
        value = self._number(getattr(self.force, self.name, None))
        step = SLOPE_STEP * max(abs(value), 1.0)

        def torque(change: float) -> Array:
            number: Any = value + change
            if self.joint:
                number = {**getattr(self.force, self.name), self.joint: number}
            changed = replace(self.force, **{self.name: number})  # type: ignore[type-var]
            return EquationsOfMotion(equations.robot, forces=[changed]).force(t, q, v)

        return -slope(torque, step)[:, None]

    def _number(self, given: Any) -> float:
        """The present value."""
        number = given.get(self.joint) if self.joint and isinstance(given, dict) else given
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise BadValue(
                f"{self.name} of {self.force!r} is no number; name one of its numbers, and for "
                "coefficients of joints the joint"
            )
        return float(number)


@public
@checked
@dataclass(frozen=True)
class Placement(Parameter):
    """Where a joint or a frame sits: six numbers, moved and turned in its own axes [m, rad].

    A joint of the tree moves with all that it carries. Of a joint that closes a loop there are two
    places, its frames ``<joint>/A`` and ``<joint>/B``.

    Args:
        name: joint or frame.
    """

    name: str

    def labels(self, robot: Mechanism) -> tuple[str, ...]:
        """What each number is."""
        return tuple(f"{self.name}: {axis}" for axis in ("x", "y", "z", "rx", "ry", "rz"))

    @property
    def places(self) -> tuple[str, ...]:
        """The joint or frame."""
        return (self.name,)


def _inertia(x: Array) -> pin.Inertia:
    """From mass, centre of mass and moments about it, which need not be possible."""
    inertia = pin.Inertia.Zero()
    inertia.mass, inertia.lever = float(x[0]), x[1:4]
    (xx, xy, yy, xz, yz, zz) = x[4:]
    inertia.inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return inertia


def _inertia_loads(
    robot: Mechanism, frame: str, inertia: pin.Inertia, state: tuple[Array, Array, Array]
) -> Array:
    """``M a + nle`` of an inertia on a frame, shape (nv,)."""
    at = robot.model.frames[robot.frame_id(frame)]
    if at.parentJoint == 0:
        return np.zeros(robot.nv)
    with robot.workspace() as data:
        regressor = np.array(pin.computeJointTorqueRegressor(robot.model, data, *state))
    own = regressor.reshape(robot.nv, -1)[:, 10 * (at.parentJoint - 1) :][:, :10]
    return np.asarray(own @ at.placement.act(inertia).toDynamicParameters())
