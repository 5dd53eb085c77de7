"""Is a run as accurate as it was asked to be? What its energy balance and its projections say.

Every step may err by its tolerances, and each error is worth so much energy: momenta times errors
of velocities, forces times errors of positions. Their sum is what a healthy run may miss. And a
projection that takes more speed than a step may err is no correction of its error: rows that nearly
depend on each other ask for velocities that no force has made, and a prescribed motion may jump.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..boundary.marks import Array
from ..dynamics import EquationsOfMotion
from ..dynamics.stiffness import largest_at
from ..integrate import MuntheKaas
from ..model.mechanism import Mechanism
from ..tolerances import ENERGY_ROUNDING, SPEED_ROUNDING
from .analysis import Dense, EnergyBalance

_FIXED = 1e-2
"""Part of the energy turned over that runs with fixed steps may miss: their error is not known."""
_LEFT_OVER = 1e-2
"""Part of the largest speed that a fixed step may be wrong by, as far as that is known."""


@dataclass(frozen=True)
class Accuracy:
    """How accurately a run was computed.

    Args:
        method: integrator with its tolerances or step.
        steps: number of steps taken.
        drift: residual that projections let be: rad, characteristic lengths, also per second.
        switched: when steps began to be implicit, or explicit again, and what is stiff; empty if
            they did not.
        unresolved: what fixed steps are too long for; empty if they are not.
    """

    method: MuntheKaas
    steps: int
    drift: float = 0.0
    switched: str = ""
    unresolved: str = ""


@dataclass(frozen=True, eq=False)
class Course:
    """A run as its balance sees it; arrays as of a `Trajectory`."""

    robot: Mechanism
    equations: Sequence[EquationsOfMotion]
    t: Array
    q: Array
    v: Array
    a: Array
    dense: Dense
    accuracy: Accuracy


def unresolved_motion(robot: Mechanism, method: MuntheKaas, left_over: Array, v: Array) -> str:
    """What to say of motions that fixed steps are too long for; empty if they are not.

    Args:
        robot: the mechanism.
        method: integrator.
        left_over: by how much velocities are wrong after a step, shape (nv,).
        v: velocities of the run, shape (k, nv).
    """
    unit = np.where(robot.is_translation, robot.length, 1.0)
    left = left_over / unit
    if not left.any():
        return ""
    share = left.max() / np.max(np.abs(v) / unit, initial=left.max())
    if share <= _LEFT_OVER:
        return ""
    return (
        f"a step of {method.step:g} s is too long for a motion of joint "
        f"'{largest_at(robot, left)}': {share:.2g} of the largest speed is wrong "
        "after it; take a smaller step, or tolerances instead of one"
    )


def balance_warning(course: Course, balance: EnergyBalance) -> str:
    """What to say of a run that misses more energy than explained; empty if it does not."""
    missed = np.abs(balance.error)
    worst = int(np.argmax(missed))
    if not np.isfinite(missed[worst]):
        return "the energy balance is not finite: take smaller steps, or look for endless forces"
    explained = explained_error(course, balance)
    beyond = np.flatnonzero(missed > explained)
    if len(beyond) == 0:
        return ""
    if course.accuracy.method.step is not None:
        return (
            f"the energy balance is off by {missed[worst]:.3g} J, "
            f"{missed[worst] / turned_over(balance):.2g} of the energy turned over: take a "
            "smaller step, or a method with an error estimate"
        )
    return (
        f"the energy balance is off by {missed[worst]:.3g} J, "
        f"{missed[worst] / explained[worst]:.2g} times what the tolerances explain, from "
        f"t = {balance.t[beyond[0]]:.6g} s on: compare with tighter rtol and atol; look for nearly "
        "singular poses and forces that jump"
    )


def explained_error(course: Course, balance: EnergyBalance) -> Array:
    """Energy that a healthy run may miss at each state [J], shape (k,)."""
    steps, runs = course.accuracy.steps, max(int(np.count_nonzero(np.diff(course.t))), 1)
    explained = np.full(len(course.t), ENERGY_ROUNDING * steps * _size(balance))
    fixed = course.accuracy.method.step is not None
    if fixed:
        explained += _FIXED * turned_over(balance)
    else:
        # Of runs that keep samples the steps between are not known, but how many they are.
        explained += np.cumsum(_worth(course)) * (steps / runs)
    if set(balance.work) - {"impulses"} and (steps > runs or not fixed):
        explained += np.cumsum(_between(course))
    return explained


def _worth(course: Course) -> Array:
    """What the error of the step to each state is worth [J], shape (k,)."""
    worth = np.zeros(len(course.t))
    for k in range(1, len(course.t)):
        if course.t[k] == course.t[k - 1]:
            continue
        v = course.v[k]
        M, f, *_ = course.equations[k].system(float(course.t[k]), course.q[k], v)
        forces = np.abs(f) + np.abs(M @ course.a[k])
        worth[k] = step_worth(course.robot, course.accuracy, v, M @ v, forces)
    return worth


def step_worth(
    robot: Mechanism, accuracy: Accuracy, v: Array, momenta: Array, forces: Array
) -> float:
    """Energy that the error of one step with an error estimate is worth [J].

    The root mean square of the errors over their tolerances is at most one: by Cauchy's inequality
    they are worth at most ``sqrt(n) |p tol|``, with the momenta for errors of velocities and the
    sizes of all forces for errors of positions.
    """
    method, unit = accuracy.method, np.where(robot.is_translation, robot.length, 1.0)
    floor = (method.atol + accuracy.drift) * unit
    worth = np.linalg.norm(momenta * (method.rtol * np.abs(v) + floor))
    worth += np.linalg.norm(forces * (method.rtol * unit + floor))
    return float(np.sqrt(robot.nv) * worth)


def _between(course: Course) -> Array:
    """Error of the work done between each state and the one before [J], shape (k,).

    It is integrated along the interpolation, whose acceleration misses the equations of motion:
    its velocities are off by at most the interval times that.
    """
    error = np.zeros(len(course.t))
    for k in range(1, len(course.t)):
        h = float(course.t[k] - course.t[k - 1])
        if h == 0.0:
            continue
        t, eps, equations = float(course.t[k - 1]) + 0.5 * h, 1e-3 * h, course.equations[k]
        q, v = course.dense(t)
        slope = (course.dense(t + eps)[1] - course.dense(t - eps)[1]) / (2 * eps)
        missed = np.abs(equations.acceleration(t, q, v) - slope)
        M, f, *_ = equations.system(t, q, v)
        error[k] = 2 * h * h * (np.abs(f) + np.abs(M @ slope)) @ missed
    return error


def turned_over(balance: EnergyBalance) -> float:
    """Energy that a run moves from one place to another [J]."""
    changes = [balance.kinetic, balance.potential, *balance.stored.values(), *balance.work.values()]
    return float(sum(np.ptp(energy) for energy in changes))


def _size(balance: EnergyBalance) -> float:
    """Sum of the largest energies, of which rounding is a part."""
    parts = [balance.kinetic, balance.potential, *balance.stored.values(), *balance.work.values()]
    return float(sum(np.abs(energy).max() for energy in parts))


MOST_TAKEN = 100.0
"""So many errors of a controlled step may be projected away. Healthy runs need 1, those that pass
a bifurcation 10."""
COARSE_SPEED = 1e-3
"""Part of the speed that a projection may take after a fixed step that changes none."""


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
    equations: EquationsOfMotion,
    t: float,
    q: Array,
    v: tuple[Array, Array, Array],
    tolerance: Array | None,
    slack: float = 0.0,
) -> SpeedLoss | None:
    """Why a projection of velocities is none of a step's error; None if it is.

    A controlled step may err by its tolerances. Of a fixed step no error is known, but a step that
    follows its motion errs by less than it changes the velocity. Its velocities ``v`` are those at
    its start, before the projection at its end, and after it; the slack is what drift of rows that
    is let be makes of velocities: where a motion turns sharply as branches nearly meet, far more.
    """
    start, before, after = v
    M = equations.mass(q)

    def size(v: Array) -> float:
        return math.sqrt(max(float(v @ M @ v), 0.0))

    taken, speed = size(after - before), size(before)
    robot = equations.robot
    error = slack * np.where(robot.is_translation, robot.length, 1.0)
    if tolerance is not None:
        error = error + tolerance
    allowed = MOST_TAKEN * math.sqrt(float(np.diagonal(M) @ error**2))
    if tolerance is None:
        allowed = max(allowed, size(before - start), COARSE_SPEED * speed)
    if taken <= max(allowed, SPEED_ROUNDING * speed):
        return None
    J, b, _ = equations.terms(t, q, before)
    missed = np.abs(equations.rows.scale * (J @ before - b))
    worst = int(np.argmax(missed))
    kinetic = 0.5 * speed**2
    return SpeedLoss(
        equations.rows.labels[worst],
        float(missed[worst]),
        taken / speed if speed > 0.0 else math.inf,
        kinetic - 0.5 * size(after) ** 2,
        kinetic,
        taken / allowed if allowed > 0.0 else math.inf,
    )
