"""Parameters as the equations of a mode have them: dry friction is a torque, places may go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..boundary.marks import Array
from ..dynamics import EquationsOfMotion
from ..dynamics.forces import JointFriction
from ..dynamics.losses import AxisTorques, FrictionAxis, friction_axes
from ..dynamics.parameters import ForceParameter, Parameter
from ..model.mechanism import Mechanism
from .modes import Mode


def in_mode(parameters: Sequence[Parameter], mode: Mode) -> tuple[Parameter, ...]:
    """The parameters as the equations of a mode have them.

    Dry friction is a torque there, and frames of loops that are open are nowhere.
    """
    frames = {f"{loop}/{end}" for loop in mode.opened for end in "AB"}

    def own(x: Parameter) -> Parameter:
        if frames.intersection(x.places):
            return _Nothing(x)
        if isinstance(x, ForceParameter) and isinstance(x.force, JointFriction):
            return x if x.force.speed is not None else _SlidingFriction(x.joint, mode)
        return x

    return tuple(map(own, parameters))


def friction_slopes(parameters: Sequence[Parameter], robot: Mechanism, axis: str) -> Array:
    """Derivatives of the dry friction of an axis by all parameters of a mode."""
    slopes = [np.zeros(0)]
    for x in parameters:
        names = [own.name for own in x.axes(robot)] if isinstance(x, _SlidingFriction) else []
        slopes.append(np.full(len(x.labels(robot)), float(axis in names)))
    return np.concatenate(slopes)


@dataclass(frozen=True)
class _Nothing(Parameter):
    """A parameter on which nothing depends in a mode.

    Args:
        of: the parameter.
    """

    of: Parameter

    def labels(self, robot: Mechanism) -> tuple[str, ...]:
        """Its own."""
        return self.of.labels(robot)

    def energy_slopes(self, equations: EquationsOfMotion, t: float, q: Array, v: Array) -> Array:
        """None."""
        return np.zeros(len(self.labels(equations.robot)))


@dataclass(frozen=True)
class StartValues(Parameter):
    """What rows keep is what the start of a run has, which hangs on inputs as the start does.

    Args:
        count: number of these rows.
    """

    count: int

    def labels(self, robot: Mechanism) -> tuple[str, ...]:
        """Their numbers; no user sees them."""
        return tuple(f"start value {k + 1}" for k in range(self.count))

    def value_slopes(self, equations: EquationsOfMotion) -> Array:
        """One each."""
        rows = equations.rows
        return np.asarray(np.eye(rows.unlocked)[:, rows.beginning[: rows.unlocked]])

    def energy_slopes(self, equations: EquationsOfMotion, t: float, q: Array, v: Array) -> Array:
        """None."""
        return np.zeros(self.count)


@dataclass(frozen=True)
class _SlidingFriction(Parameter):
    """Dry friction of a joint, as its axes feel it where they slide.

    Args:
        joint: name of the joint.
        mode: which axes slide, and which way.
    """

    joint: str
    mode: Mode

    def labels(self, robot: Mechanism) -> tuple[str, ...]:
        """What it is."""
        return (f"friction of {self.joint}",)

    def loads(self, equations: EquationsOfMotion, t: float, q: Array, v: Array, a: Array) -> Array:
        """Those of friction of 1 N or 1 N m on what slides."""
        robot, slides = equations.robot, {axis.name: axis.slides for axis in self.mode.friction}
        axes = self.axes(robot)
        torques = tuple(float(slides.get(axis.name, 0)) for axis in axes)
        sliding = EquationsOfMotion(robot, forces=[AxisTorques(axes, torques)])
        return sliding.force(t, q, v)[:, None]

    def energy_slopes(self, equations: EquationsOfMotion, t: float, q: Array, v: Array) -> Array:
        """It stores none."""
        return np.zeros(1)

    def axes(self, robot: Mechanism) -> tuple[FrictionAxis, ...]:
        """The axes of the joint, with a friction of one."""
        return friction_axes(robot, [JointFriction(coefficients={self.joint: 1.0})])
