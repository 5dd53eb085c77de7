"""Whether a run misses more of its energy than the way it was computed explains.

Every step may err by its tolerances, and each error is worth so much energy: momenta times errors
of velocities, forces times errors of positions. Their sum is what a healthy run may miss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..dynamics import EquationsOfMotion
from ..integrate import MuntheKaas
from ..model.mechanism import Mechanism
from ..tolerances import ENERGY_ROUNDING
from .analysis import Dense, EnergyBalance

__all__ = ["Accuracy", "Course", "balance_warning", "explained_error", "step_worth", "turned_over"]

Array = NDArray[np.float64]

_FIXED = 1e-2
"""Part of the energy turned over that runs with fixed steps may miss: their error is not known."""


@dataclass(frozen=True)
class Accuracy:
    """How accurately a run was computed.

    Args:
        method: integrator with its tolerances or step.
        steps: number of steps taken.
        drift: residual that projections let be: rad, characteristic lengths, also per second.
    """

    method: MuntheKaas
    steps: int
    drift: float = 0.0


@dataclass(frozen=True, eq=False)
class Course:
    """A run as its balance sees it.

    Args:
        robot: the mechanism.
        equations: equations of motion that hold at each state.
        t: times, shape (k,).
        q: configurations, shape (k, nq).
        v: velocities, shape (k, nv).
        a: accelerations, shape (k, nv).
        dense: state inside a step as a function of time.
        accuracy: how the run was computed.
    """

    robot: Mechanism
    equations: Sequence[EquationsOfMotion]
    t: Array
    q: Array
    v: Array
    a: Array
    dense: Dense
    accuracy: Accuracy


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
    forces for errors of positions.

    Args:
        robot: the mechanism.
        accuracy: method and drift.
        v: velocity after the step, shape (nv,).
        momenta: ``M v``, shape (nv,).
        forces: sizes of all forces that act, shape (nv,).
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


def _defect(equations: EquationsOfMotion, dense: Dense, t: float, h: float) -> Array:
    """By how much the interpolation inside a step misses the acceleration.

    The work of forces is integrated along it: its velocities are off by about ``h`` times that.
    """
    eps = 1e-3 * h
    slope = (dense(t + eps)[1] - dense(t - eps)[1]) / (2 * eps)
    return np.asarray(equations.acceleration(t, *dense(t)) - slope)
