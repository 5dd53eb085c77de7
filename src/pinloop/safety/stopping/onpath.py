"""How fast a robot can slow down on its path: as asked, or as the torque of its drives allows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from ...dynamics import EquationsOfMotion
from ...errors import BadValue, PinloopError
from ...integrate import FINE, MuntheKaas, Step, StepFailed
from ...tolerances import PATH_DURATION
from .drivetrain import Drivetrain
from .phase import pinned_bounds
from .plan import Plan
from .simulation import Standstill, StopSimulation, Trial

__all__ = ["hold_on_path"]

Array = NDArray[np.float64]

_LONGEST = 64.0
"""How many times longer than asked is tried."""
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

    ``plan``: the plan; of any other kind than a stop on the path it is returned as it is. ``q``:
    configuration at the signal, shape (nq,). ``v``: velocity at the signal, shape (nv,).

    Raises:
        BadValue: a recorded motion ends before the drives have brought the robot to rest on it.
    """
    if plan.longest == 0.0 or not np.isfinite(train.limit[plan.reference.follows]).any():
        return plan, []
    try:
        return _Path(equations, train, plan, method, q, v).slowed()
    except BadValue:
        raise  # what somebody gave, not what drives or loops can do
    except (StepFailed, PinloopError) as error:
        # Loops may not be able to follow the path at all, however strong their drives are.
        return plan, [(plan.brake_times.command, f"the path could not be looked at: {error}")]


@dataclass(frozen=True, eq=False)
class _Path:
    """A stop on the path; see `hold_on_path` for the arguments."""

    equations: EquationsOfMotion
    train: Drivetrain
    plan: Plan
    method: MuntheKaas
    q: Array
    v: Array

    def slowed(self) -> tuple[Plan, list[tuple[float, str]]]:
        """The plan with the shortest duration whose torques the drives have."""
        plan = self.plan
        if not self._lacks(plan.duration):
            return plan, []
        command, long, fits = plan.brake_times.command, plan.duration, False
        while not fits:
            if long >= plan.longest:
                raise BadValue(
                    f"the recorded motion ends too early: even with the deceleration on the path "
                    f"reduced to {100.0 * plan.duration / long:.3g} %, which is as long as it is "
                    "known for, the drives lack torque; let the signal come earlier, record "
                    "longer, or take stronger drives"
                )
            short, long = long, min(2.0 * long, plan.longest)
            if long > _LONGEST * plan.duration:
                return plan, [(command, "the drives cannot hold the path, however slowly")]
            fits = not self._lacks(long)
        root = float(scipy.optimize.brentq(self._lacking_torque, short, long, rtol=PATH_DURATION))
        enough = min(root * (1.0 + 10 * PATH_DURATION), plan.longest)
        part = 100.0 * plan.duration / enough
        text = f"deceleration on the path reduced to {part:.3g} % by the torque of the drives"
        return plan.on_path(enough), [(command, text)]

    def _lacks(self, duration: float) -> bool:
        """Whether the drives lack torque; nothing is looked at after they do."""
        return self._lacking_torque(duration, whole=False) > 0.0

    def _lacking_torque(self, duration: float, whole: bool = True) -> float:
        """By how much the torques on the path pass those of the drives; negative if they do not.

        ``duration``: how long it takes [s]. ``whole``: look at all of it; else only until the
        drives lack torque.
        """
        plan, worst = self.plan.on_path(duration), -np.inf
        command = plan.brake_times.command

        def look(step: Step) -> bool:
            nonlocal worst
            if step.t0 >= command:
                worst = max(worst, _lacking_in_step(simulation, step))
            return worst > 0.0 and not whole

        simulation = StopSimulation(
            self.equations,
            self.train,
            plan,
            self.method,
            Standstill(),
            trial=Trial(duration / _STEPS, look),
        )
        simulation.go(self.q, self.v, command + duration)
        return float(worst)


def _lacking_in_step(simulation: StopSimulation, step: Step) -> float:
    """By how much torques in a step pass those of the drives, see `_Path._lacking_torque`."""
    phase = simulation.phase
    if not phase.follow.any():
        return -np.inf
    limited = replace(phase, sliding=replace(phase.sliding, limited=True))
    beyond = []
    for t in (step.t0 + (step.t1 - step.t0) * FINE.points).tolist():
        q, v = step(t)
        torque = simulation.equations.solve(t, q, v).holding_torque
        low, high = pinned_bounds(simulation.train, limited, t, v)
        beyond.append(np.concatenate([low - torque, torque - high])[np.tile(phase.follow, 2)])
    values = np.array(beyond)
    values = values[:, np.isfinite(values).all(axis=0)]
    return float(FINE.highest(values)[1].max(initial=-np.inf))
