"""Speed that a projection takes: more than a step may err is no correction of its error.

Rows that nearly depend on each other ask for velocities that no force has made, and a prescribed
motion may jump. All is measured in the kinetic metric, so that joints of any kind compare.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..dynamics import EquationsOfMotion
from ..tolerances import SPEED_ROUNDING

__all__ = ["SpeedLoss", "VelocityShift", "speed_loss"]

Array = NDArray[np.float64]

_MOST = 100.0
"""So many errors of a controlled step may be projected away. Healthy runs need 1, those that pass
a bifurcation 10."""
_COARSE = 1e-3
"""Part of the speed that a projection may take after a fixed step that changes none."""


@dataclass(frozen=True, eq=False)
class VelocityShift:
    """What a projection has done to a velocity at the end of a step.

    Args:
        start: velocity at the start of the step, shape (nv,).
        before: velocity before the projection.
        after: velocity after it.
        tolerance: error that the step may have per coordinate; None where steps are fixed.
        slack: drift that the projection lets be, rad and characteristic lengths, also per second.
    """

    start: Array
    before: Array
    after: Array
    tolerance: Array | None
    slack: float = 0.0


@dataclass(frozen=True, eq=False)
class SpeedLoss:
    """A projection that takes more speed than a step may err.

    Args:
        row: label of the row that the velocity before misses most.
        residual: by how much: rad/s, characteristic lengths per s.
        share: part of the speed that would be taken, in the kinetic metric.
        energy: kinetic energy that would be lost [J]; negative if it would be made.
        kinetic: kinetic energy before [J].
        times: the shift over what is allowed.
    """

    row: str
    residual: float
    share: float
    energy: float
    kinetic: float
    times: float

    def __str__(self) -> str:
        what = "lose" if self.energy >= 0 else "gain"
        return (
            f"row '{self.row}' is missed by {self.residual:.2g}, and to meet it would turn "
            f"{self.share:.2g} of the speed and {what} {abs(self.energy):.3g} of "
            f"{self.kinetic:.3g} J, {self.times:.2g} times what a step may"
        )


def speed_loss(
    equations: EquationsOfMotion, t: float, q: Array, shift: VelocityShift
) -> SpeedLoss | None:
    """Why a projection of velocities is none of a step's error; None if it is.

    A controlled step may err by its tolerances. Of a fixed step no error is known, but a step that
    follows its motion errs by less than it changes the velocity.

    Args:
        equations: equations of motion.
        t: time of the velocities [s].
        q: configuration, shape (nq,).
        shift: the velocities.
    """
    M = equations.mass(q)

    def size(v: Array) -> float:
        return math.sqrt(max(float(v @ M @ v), 0.0))

    taken, speed = size(shift.after - shift.before), size(shift.before)
    robot = equations.robot
    error = shift.slack * np.where(robot.is_translation, robot.length, 1.0)
    if shift.tolerance is not None:
        error = error + shift.tolerance
    allowed = _MOST * math.sqrt(float(np.diagonal(M) @ error**2))
    if shift.tolerance is None:
        allowed = max(allowed, size(shift.before - shift.start), _COARSE * speed)
    if taken <= max(allowed, SPEED_ROUNDING * speed):
        return None
    J, b, _ = equations.terms(t, q, shift.before)
    missed = np.abs(equations.rows.scale * (J @ shift.before - b))
    worst = int(np.argmax(missed))
    kinetic = 0.5 * speed**2
    return SpeedLoss(
        equations.rows.labels[worst],
        float(missed[worst]),
        taken / speed if speed > 0.0 else math.inf,
        kinetic - 0.5 * size(shift.after) ** 2,
        kinetic,
        taken / allowed if allowed > 0.0 else math.inf,
    )
