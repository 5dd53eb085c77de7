"""How fast drives can slow down on a path with the torque that they have: asked before the stop."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from ...boundary.marks import Array
from ...dynamics import EquationsOfMotion
from ...errors import BadValue, PinloopError
from ...integrate import FINE, MuntheKaas, NoBranch, Step, StepFailed
from ...tolerances import PATH_DURATION, SAME
from ..brakes.laws import Ramp
from .drivetrain import Drivetrain
from .phase import pinned_bounds
from .plan import Plan
from .simulation import StopSimulation, Trial
from .standstill import Standstill

_LONGEST = 64.0
"""How many times longer than asked is tried."""
_STEPS = 16
"""Steps in which the path is looked at, at the least."""
_MUCH = 0.9
"""A place of the path where drives have enough torque at less than this share of a rate says enough
about that rate."""
_SECANTS = 3
"""Steps to the rate with which the drives have enough torque at one place; but for viscous friction
the first one would do."""

_CREEP, _CREEPS = 0.95, 3
"""Rates that places tell creep if so many are more than this share of the one before."""


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
        OverdrivenError: the loops do not let the drives go on until the command.
    """
    if plan.longest == 0.0 or not np.isfinite(train.limit[plan.reference.follows]).any():
        return plan, []
    try:
        return _Path(equations, train, plan, method, q, v).slowed()
    except (BadValue, OverdrivenError):
        raise  # of what somebody gave, or before the path begins
    except (StepFailed, PinloopError) as error:
        # Loops may not be able to follow the path at all, however strong their drives are.
        return plan, [(plan.brake_times.command, f"the path could not be looked at: {error}")]


class OverdrivenError(PinloopError):
    """Drives go on before the command as loops do not allow it, whatever torque they have."""


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
        """The plan with the shortest duration whose torques the drives have.

        Where a drive lacks torque on the path it is known at which rate it has enough just there,
        for torques at one place depend on the rate alone. The slowest of these is the answer.
        """
        plan, command = self.plan, self.plan.brake_times.command
        asked = rate = 1.0 / plan.duration
        slowest = max(asked / _LONGEST, 1.0 / plan.longest)
        enough, little, crept, told = 0.0, np.inf, 0, True
        while enough == 0.0 or little - enough > 20 * PATH_DURATION * little:
            lack, width = self._lack(rate), little - enough
            if lack.torque <= 0.0:
                enough = rate
                if rate == asked:
                    return plan, []
                if told and lack.rate <= (1.0 + 10 * PATH_DURATION) * rate:
                    break
            else:
                little = rate
                if rate == slowest:
                    return self._too_slow()
            # Where the place moves with the rate, one place tells little of the next.
            if enough and (not told or little - enough > 0.5 * width):
                enough = self._between(enough, little)
                break
            hopeless = enough == 0.0 and (lack.rate <= 0.0 or lack.rate >= rate)
            crept = crept + 1 if lack.rate > _CREEP * rate else 0
            rate = (1.0 - 5 * PATH_DURATION) * lack.rate
            told = enough < rate < little and crept < _CREEPS
            if not told:
                rate = slowest if hopeless else 0.5 * (enough + little)
            rate = max(rate, slowest)
        part = 100.0 * enough / asked
        text = f"deceleration on the path reduced to {part:.3g} % by the torque of the drives"
        return plan.on_path(1.0 / enough), [(command, text)]

    def _between(self, enough: float, little: float) -> float:
        """The largest rate with which drives have enough torque, between two, by Brent's method."""
        tolerance, most = 10 * PATH_DURATION * little, enough

        def lack(rate: float) -> float:
            nonlocal most
            torque = self._lack(rate).torque
            if torque <= 0.0:
                most = max(most, rate)
            return torque

        root = brentq(lack, enough, little, xtol=tolerance)
        if root - most > tolerance:
            lack(root - tolerance)
        return most

    def _too_slow(self) -> tuple[Plan, list[tuple[float, str]]]:
        """What is to be done where no duration is long enough."""
        plan = self.plan
        if plan.longest > _LONGEST * plan.duration:
            text = "the drives cannot hold the path, however slowly"
            return plan, [(plan.brake_times.command, text)]
        raise BadValue(
            f"the recorded motion ends too early: even with the deceleration on the path "
            f"reduced to {100.0 * plan.duration / plan.longest:.3g} %, which is as long as it is "
            "known for, the drives lack torque; let the signal come earlier, record longer, or "
            "take stronger drives"
        )

    @cached_property
    def _begun(self) -> tuple[Array, Array]:
        """Configuration and velocity at the command, the same however long it takes from there."""
        if (until := self.plan.brake_times.command) == 0.0:
            return self.q, self.v
        simulation = self._simulation(self.plan, Trial(np.inf, lambda step: False))
        try:
            simulation.go(self.q, self.v, until)
        except (StepFailed, PinloopError) as error:
            raise (OverdrivenError(str(error)) if simulation.overdriven else error) from error
        assert simulation.last is not None
        return simulation.last[1:]

    def _ramp(self, rate: float) -> Ramp:
        """The speed on the path with a rate."""
        return self.plan.lasting(min(1.0 / rate, self.plan.longest))

    def _simulation(self, plan: Plan, trial: Trial) -> StopSimulation:
        rest = self.method, Standstill()
        return StopSimulation(self.equations, self.train, plan, *rest, trial=trial)

    def _lack(self, rate: float) -> _Lack:
        """Where torques on the path pass those of the drives by most, or are nearest to them.

        Looked at until they pass them by much. ``rate``: one over how long it takes [1/s].
        """
        plan, worst = self.plan.on_path(self._ramp(rate).end), _Lack(-np.inf, np.nan)
        command = plan.brake_times.command

        def look(step: Step) -> bool:
            nonlocal worst
            place = _lacking_in_step(simulation, step)
            if place is not None and place[0] > worst.torque:
                worst = _Lack(place[0], self._enough(simulation, rate, step, place))
            return worst.torque > 0.0 and not _MUCH * rate < worst.rate < rate

        simulation = self._simulation(plan, Trial(plan.duration / _STEPS, look))
        simulation.go(*self._begun, command + plan.duration, start=command)
        return worst

    def _enough(
        self, simulation: StopSimulation, rate: float, step: Step, place: tuple[float, float, int]
    ) -> float:
        """Rate at which drives would have just the torque that they need at a place of the path.

        ``place``: what they lack there at another rate, when that is, and which bound it is.
        """
        lacking, t, bound = place
        equations, phase, plan = simulation.equations, simulation.phase, self.plan
        command, least = plan.brake_times.command, 1.0 / plan.longest
        past, (q, v), ramp = t - command, step(t), self._ramp(rate)
        along, pace = ramp.way(past), ramp.v(past)
        # Without the slowing down; at the end of the path no speed is left, but a deceleration.
        divisor, part = (pace, v) if pace > SAME else (ramp.a(past), step.a1)
        if abs(divisor) <= SAME:
            return np.nan
        speeds = part / divisor

        def lack(other: float) -> float:
            """At the same place, where all go on with the share of their speeds that is left."""
            slower = self._ramp(other)
            since = slower.when(along)
            piece = plan.on_path(1.0 / other).reference.at(command + since)
            equations.enter(replace(phase, piece=piece))
            return float(_beyond(simulation, command + since, q, slower.v(since) * speeds)[bound])

        known = rate, lacking
        other = max(0.5 * rate, least) if lacking > 0.0 else 1.05 * rate
        try:
            for _ in range(_SECANTS):
                if other in (rate, known[0]) or not (
                    other >= least and self._ramp(other).whole > along
                ):
                    break
                value = lack(other)
                slope = (value - known[1]) / (other - known[0])
                known, other = (other, value), other - value / slope if slope else np.nan
        except NoBranch:
            return np.nan
        finally:
            equations.enter(phase)
        return other


class _Lack(NamedTuple):
    """How much torque drives lack on a path, negative if they do not, and where they had enough.

    Args:
        torque: the most that they lack [N m, N].
        rate: at which they would lack nothing just there [1/s]; NaN if that is not known.
    """

    torque: float
    rate: float


def _beyond(simulation: StopSimulation, t: float, q: Array, v: Array) -> Array:
    """By how much torques pass the lower and the upper bounds of drives, shape (2 nv,)."""
    phase = simulation.equations.phase
    limited = replace(phase, sliding=replace(phase.sliding, limited=True))
    torque = simulation.equations.solve(t, q, v).holding_torque
    low, high = pinned_bounds(simulation.train, limited, t, v)
    beyond = np.concatenate([low - torque, torque - high])
    return np.where(np.tile(phase.follow, 2), beyond, -np.inf)


def _lacking_in_step(simulation: StopSimulation, step: Step) -> tuple[float, float, int] | None:
    """By how much torques in a step pass those of the drives, when, and which bound of `_beyond`.

    None if nothing follows its drive, or no drive has a bound.
    """
    times = step.t0 + (step.t1 - step.t0) * FINE.points
    values = np.array([_beyond(simulation, t, *step(t)) for t in times.tolist()])
    bounded = np.flatnonzero(np.isfinite(values).all(axis=0))
    if not bounded.size:
        return None
    parts, highest = FINE.highest(values[:, bounded])
    k = int(np.argmax(highest))
    return float(highest[k]), float(step.t0 + parts[k] * (step.t1 - step.t0)), int(bounded[k])
