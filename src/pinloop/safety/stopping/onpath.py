"""How fast a robot can slow down on its path: as asked, or as the torque of its drives allows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import scipy
from numpy.typing import NDArray

from ...dynamics import EquationsOfMotion
from ...errors import BadValue, PinloopError
from ...integrate import FINE, MuntheKaas
from ...simulation.stepping import StepFailed
from .drivetrain import Drivetrain
from .phase import pinned_bounds
from .plan import Plan
from .simulation import Standstill, StopSimulation

__all__ = ["hold_on_path"]

Array = NDArray[np.float64]

_LONGEST = 64.0
"""How many times longer than asked is tried."""
_ACCURACY = 1e-7
"""To what part of itself the duration is found."""
_FIRST = 1 / 32, 1.0
"""Parts of its time in which a path is looked at: most that ask too much do so early."""
_STEPS = 16
"""Steps in which the path is looked at, at the least."""


def hold_on_path(
    equations: EquationsOfMotion,
    train: Drivetrain,
    plan: Plan,
    method: MuntheKaas,
    q: Array,
    v: Array,
) -> tuple[Plan, list[tuple[float, str]]]:
    """A plan that the drives can follow, and a note if it is slower than asked.

    The path is the same however long it takes, so the torques that it needs are known beforehand:
    the shortest duration whose torques the drives have is found by root finding. If not even the
    longest has, the plan stays as it was: the drives give what they have, and leave the path.
    What cannot be looked at for another reason (loops that cannot follow the path) stays as well.

    Args:
        equations: equations of the robot.
        train: brakes, gears, friction, drives.
        plan: the plan; of any other kind than a stop on the path it is returned as it is.
        method: integrator.
        q: configuration at the signal, shape (nq,).
        v: velocity at the signal, shape (nv,).

    Raises:
        BadValue: a recorded motion ends before the drives have brought the robot to rest on it.
    """
    slower = plan.slower
    if slower is None or not np.isfinite(train.limit[plan.reference.follows]).any():
        return plan, []
    try:
        return _slowed(equations, train, plan, slower, method, q, v)
    except BadValue:
        raise  # what somebody gave, not what drives or loops can do
    except (StepFailed, PinloopError) as error:
        # Loops may not be able to follow the path at all, however strong their drives are.
        return plan, [(plan.brake_times.command, f"the path could not be looked at: {error}")]


def _slowed(
    equations: EquationsOfMotion,
    train: Drivetrain,
    plan: Plan,
    slower: Callable[[float], Plan],
    method: MuntheKaas,
    q: Array,
    v: Array,
) -> tuple[Plan, list[tuple[float, str]]]:
    """The plan with the shortest duration whose torques the drives have; see `hold_on_path`."""

    def lacking(duration: float, part: float = 1.0) -> float:
        return _lacking_torque(equations, train, slower(duration), method, q, v, part)

    def lacks(duration: float) -> bool:
        return any(lacking(duration, part) > 0.0 for part in _FIRST)

    if not lacks(plan.duration):
        return plan, []
    command, long, fits = plan.brake_times.command, plan.duration, False
    while not fits:
        if long >= plan.longest:
            raise BadValue(
                f"the recorded motion ends too early: even with the deceleration on the path "
                f"reduced to {100.0 * plan.duration / long:.3g} %, which is as long as it is known "
                "for, the drives lack torque; let the signal come earlier, record longer, or "
                "take stronger drives"
            )
        short, long = long, min(2.0 * long, plan.longest)
        if long > _LONGEST * plan.duration:
            return plan, [(command, "the drives cannot hold the path, however slowly")]
        fits = not lacks(long)
    enough = float(scipy.optimize.brentq(lacking, short, long, rtol=_ACCURACY)) * (
        1.0 + 10 * _ACCURACY
    )
    enough = min(enough, plan.longest)
    part = 100.0 * plan.duration / enough
    return slower(enough), [
        (command, f"deceleration on the path reduced to {part:.3g} % by the torque of the drives")
    ]


def _lacking_torque(
    equations: EquationsOfMotion,
    train: Drivetrain,
    plan: Plan,
    method: MuntheKaas,
    q: Array,
    v: Array,
    part: float,
) -> float:
    """By how much the torques on the path pass those of the drives; negative if they do not.

    Looked at is the first part of the time that it takes.
    """
    end = plan.brake_times.command + part * plan.duration
    longest = plan.duration / _STEPS
    course = StopSimulation(
        equations, train, plan, method, Standstill(), limited=False, longest=longest
    )
    course.go(q, v, end)
    worst = -np.inf
    for k, state in enumerate(course.kept):
        phase = course.phases[state.phase]
        if state.t < plan.brake_times.command or not phase.follow.any():
            continue
        course.equations.enter(phase)
        limited = replace(phase, sliding=replace(phase.sliding, limited=True))
        over = []
        for t, q_t, v_t in _in_step(course, k):
            torque = course.equations.solve(t, q_t, v_t).holding_torque
            low, high = pinned_bounds(train, limited, t, v_t)
            over.append(np.concatenate([low - torque, torque - high])[np.tile(phase.follow, 2)])
        values = np.array(over)
        values = values[:, np.isfinite(values).all(axis=0)]
        tops = FINE.highest(values)[1] if len(over) > 1 else values
        worst = max(worst, float(tops.max(initial=-np.inf)))
    return worst


def _in_step(course: StopSimulation, k: int) -> list[tuple[float, Array, Array]]:
    """State k, or states from it to the next at the points of an interpolation."""
    one = course.kept[k]
    if k + 1 == len(course.kept) or course.kept[k + 1].t == one.t:
        return [(one.t, one.q, one.v)]
    step = course.step(k)
    return [(t, *step(t)) for t in (step.t0 + (step.t1 - step.t0) * FINE.points).tolist()]
