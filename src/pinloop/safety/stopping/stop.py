"""`stop`: a robot, a state, brakes, a category; also with one brake missing, late or weak.

Drives that are to slow down on a path are asked beforehand how fast their torque allows it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...boundary.arguments import public, require_kind
from ...boundary.marks import Array
from ...dynamics import EquationsOfMotion
from ...errors import BadValue, PinloopError, PinloopWarning, StopFailed
from ...integrate import FINE, MuntheKaas, NoBranch, Step, StepFailed
from ...model.mechanism import Mechanism, blamed_links, blaming_links, require_robot
from ...simulation.initial_state import consistent_start
from ...simulation.limits import ends_seen_from, require_within
from ...simulation.modes import ModalSystem
from ...tolerances import PATH_DURATION, SAME
from ..brakes.brakes import Brakes
from ..brakes.laws import Ramp
from .history import StopHistory
from .phase import pinned_bounds
from .plan import Category, Plan, Trigger, as_category, make_plan
from .prepared_robot import Drivetrain, Payload, PreparedRobot, prepare_robot
from .result import Outcome, StopResult
from .simulation import Standstill, StopSimulation, Trial
from .stick_slip import check_holding
from .travel import all_stand_since

Measure = Callable[[StopResult], float]

_GOING_ON = Trigger()
_YIELDING = "drives cannot go on as they did: from the signal on they have drive_torque only"


@public
def stop(
    robot: Mechanism,
    q: ArrayLike | None = None,
    v: ArrayLike | None = None,
    *,
    brakes: Brakes | str | Path,
    category: int | str | Category = 0,
    payload: Payload | float | None = None,
    trigger: Trigger | None = None,
    gravity: ArrayLike | None = None,
    until: float = 10.0,
    method: MuntheKaas | None = None,
    standstill: Standstill = Standstill(),  # noqa: B008 (frozen)
    limits: Literal["warn", "end stop"] = "warn",
) -> StopResult:
    """Stop a moving robot: how far, how long, what its brakes and gears feel, whether it holds.

    The signal comes at t = 0. Until the command (sensor and controller) and until the torque of
    the motors is gone the robot goes on as it was. A planning aid, not a safety certificate.

    Args:
        robot: the mechanism.
        q: configuration at the signal, shape (nq,); from the trigger's motion by default.
        v: velocity at the signal, shape (nv,); from the trigger's motion by default.
        brakes: brakes, gears, friction and drives, or the file that describes them.
        category: 0, 1 or 2, the name of a safety function ("STO", "SS1-r", "SS2"), or with details
            e.g. `Category1(on_path=True, law=ConstantTime(0.3))`.
        payload: what the robot carries; a number is a point mass at its tool [kg].
        trigger: what the robot does when the signal comes, and the chain of signals.
        gravity: gravity in the robot's base [m/s^2], shape (3,); that of its file by default.
        until: limit of the time from the signal on [s]; reaching it is a failure.
        method: integrator; Dormand-Prince 8(5,3) with tolerance 1e-8 by default.
        standstill: what counts as standing still.
        limits: what happens at the position limits of joints with one axis. "warn": the result says
            which were passed; "end stop": joints hit them, with an impulse, and rest on them.

    Returns:
        The result; its ``outcome`` says whether the robot stopped and holds.

    Raises:
        BadValue: the start is beyond a limit that is an end stop.
        LoopNotClosed: ``q`` is not assembled.
        InconsistentVelocity: the loops do not allow ``v``.
        StopFailed: the stop could not be computed to its end; carries what there is.
    """
    require_robot(robot)
    brakes = brakes if isinstance(brakes, Brakes) else Brakes.from_yaml(brakes)
    machine = prepare_robot(robot, brakes, payload, gravity, limits)
    return stop_prepared(
        machine,
        _GOING_ON if trigger is None else trigger,
        as_category(category),
        q,
        v,
        until,
        method or MuntheKaas(),
        standstill,
    )


def stop_prepared(
    machine: PreparedRobot,
    trigger: Trigger,
    category: Category,
    q: ArrayLike | None,
    v: ArrayLike | None,
    until: float,
    method: MuntheKaas,
    standstill: Standstill,
) -> StopResult:
    """Stop a prepared robot; see `stop` for the arguments."""
    require_kind(until, Real, "until", "give a time in seconds")
    if not 0 < until < np.inf:
        raise BadValue(f"until is {until} s; it must be positive")
    with blaming_links(machine.robot):
        q0, v0 = _start(machine.robot, machine.equations, trigger, q, v)
        equations = machine.equations.around(0.0, q0)
        train = machine.train
        if category.law is not None:
            drives = train.brakes.motorized(machine.robot)
            train = Drivetrain(train.robot, train.brakes.with_law(category.law, drives))
        plan = make_plan(equations, train.brakes, trigger, category, q0, v0)
        limits: tuple[bool, ...] = False, True
        try:
            plan, notes = hold_on_path(equations, train, plan, method, q0, v0)
        except _OverdrivenError:
            limits, notes = (True,), [(0.0, _YIELDING)]
    ends = ends_seen_from(machine.ends, q0)
    require_within(machine.robot, ends, q0)
    for limited in limits:
        simulation = StopSimulation(
            equations, train, plan, method, standstill, ends=ends, limited=limited
        )
        simulation.log += notes
        reason = ""
        try:
            stands = simulation.go(q0, v0, until)
        except (StepFailed, PinloopError) as error:
            reason, stands = f"{error}{blamed_links(error, machine.robot)}", False
        if not (reason and simulation.overdriven):
            break
        notes = [*notes, (0.0, _YIELDING)]
    if simulation.last is None:
        raise PinloopError(reason)
    with blaming_links(machine.robot):
        result = _make_result(simulation, machine.system, stands)
    if reason:
        raise StopFailed(
            f"the stop of robot '{machine.robot.name}' could not be computed beyond "
            f"t = {simulation.last[0]:.6g} s: {reason}",
            result,
        )
    return result


def _make_result(simulation: StopSimulation, system: ModalSystem, stands: bool) -> StopResult:
    """The result of a simulation that has ended.

    ``stands``: whether all stand.
    """
    equations, last = simulation.equations, simulation.last
    assert last is not None
    held = check_holding(equations, simulation.phases[-1], *last[:2], stands=stands)
    outcome: Outcome = "stopped" if stands and held.all_held else "time-out"
    if not held.all_held:
        outcome = "does not hold"
    history = simulation.history(system, outcome)
    return StopResult(
        robot=history.robot,
        brakes=history.train.brakes,
        category=history.plan.category,
        chain=history.plan.chain,
        run=history.run,
        outcome=outcome,
        stopping_time=all_stand_since(history) if stands else last[0],
        reaction_time=_reaction_time(history),
        holding=held,
        events=history.run.events,
        history=history,
    )


def _reaction_time(history: StopHistory) -> float:
    """From the signal until the first brake or controlled deceleration acts [s]."""
    acting = history.train.has_brake
    if history.plan.category.controlled or not acting.any():
        return history.plan.chain.command
    begin, _ = history.brake_times.engagement(history.train)
    return float(begin[acting].min())


def _warn_of_floating(robot: Mechanism, equations: EquationsOfMotion, q: Array) -> None:
    """Say that nothing stops a robot that neither joints nor loops hold to the ground."""
    for name in robot.joints:
        at = robot.coordinates(name)
        if at.nv != 6 or robot.model.parents[at.index] != 0:
            continue
        rows = equations.terms(0.0, q, np.zeros(robot.nv))[0]
        if not np.abs(rows[:, at.v]).max(initial=0.0) > SAME:
            warnings.warn(
                f"joint '{name}' lets robot '{robot.name}' float: nothing stops it; load the robot "
                "without floating_base=True if it stands on the ground",
                PinloopWarning,
                stacklevel=5,
            )


def _start(
    robot: Mechanism,
    equations: EquationsOfMotion,
    trigger: Trigger,
    q: ArrayLike | None,
    v: ArrayLike | None,
) -> tuple[Array, Array]:
    """State at the signal, assembled."""
    if trigger.motion is not None:
        if q is not None or v is not None:
            raise BadValue("give either q and v or a trigger with a motion, not both")
        q0, v0 = trigger.motion.state(robot, trigger.at)
    else:
        if q is None or v is None:
            raise BadValue(
                "give q and v, or a trigger with a motion, e.g. pl.safety.Trigger(motion, 0.8)"
            )
        q0, v0 = robot.checked_configuration(q).copy(), robot.checked_velocity(v).copy()
    _warn_of_floating(robot, equations, q0)
    return consistent_start(equations, 0.0, q0, v0)


@public
def single_faults(
    robot: Mechanism,
    *state: Any,
    brakes: Brakes | str | Path,
    late: float = 0.1,
    weak: float = 0.5,
    **arguments: Any,
) -> dict[str, StopResult]:
    """The stops with every single fault of every brake, by what the fault is.

    Args:
        robot: the mechanism.
        state: configuration and velocity at the signal, as for `stop`.
        brakes: the brakes without fault, or their file.
        late: by how much a late brake comes later [s]; 0 leaves that fault out.
        weak: part of its torque that a weak brake has; 1 leaves that fault out.
        arguments: all else that `stop` takes.
    """
    sound = (brakes if isinstance(brakes, Brakes) else Brakes.from_yaml(brakes)).for_robot(robot)
    results: dict[str, StopResult] = {}
    for faulty in _faults(sound, late, weak):
        name = faulty.faults[-1]
        try:
            results[name] = stop(robot, *state, brakes=faulty, **arguments)
        except StopFailed as error:
            results[name] = error.result
    return results


@public
def worst_fault(results: Mapping[str, StopResult], measure: Measure | None = None) -> str:
    """The fault with the worst stop: one that does not end in a held robot, or the largest measure.

    Args:
        results: stops by fault, of `single_faults`.
        measure: what is bad about a stop; its stopping time by default.
    """
    if not results:
        raise BadValue("there are no faults: no joint has a brake")
    size = measure or (lambda result: result.stopping_time)
    return max(results, key=lambda name: (not results[name].holds, size(results[name])))


def _faults(sound: Brakes, late: float, weak: float) -> list[Brakes]:
    """Every single fault."""
    faulty = []
    for joint, brake in sound.joints.items():
        if brake.kind == "none":
            continue
        faulty.append(sound.missing(joint))
        if late > 0:
            faulty.append(sound.late(joint, late))
        if weak < 1 and brake.kind == "friction":
            faulty.append(sound.weak(joint, weak))
    return faulty


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
        _OverdrivenError: the loops do not let the drives go on until the command.
    """
    if plan.longest == 0.0 or not np.isfinite(train.limit[plan.reference.follows]).any():
        return plan, []
    try:
        return _Path(equations, train, plan, method, q, v).slowed()
    except (BadValue, _OverdrivenError):
        raise  # of what somebody gave, or before the path begins
    except (StepFailed, PinloopError) as error:
        # Loops may not be able to follow the path at all, however strong their drives are.
        return plan, [(plan.brake_times.command, f"the path could not be looked at: {error}")]


class _OverdrivenError(PinloopError):
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
        enough, little = 0.0, np.inf
        while enough == 0.0 or little - enough > 20 * PATH_DURATION * little:
            lack = self._lack(rate)
            if lack.torque <= 0.0:
                enough = rate
                if rate == asked:
                    return plan, []
                if lack.rate <= (1.0 + 10 * PATH_DURATION) * rate:
                    break
            else:
                little = rate
                if rate == slowest:
                    return self._too_slow()
            hopeless = enough == 0.0 and (lack.rate <= 0.0 or lack.rate >= rate)
            rate = (1.0 - 5 * PATH_DURATION) * lack.rate
            if not enough < rate < little:
                rate = 0.0 if hopeless else 0.5 * (enough + little)
            rate = max(rate, slowest)
        part = 100.0 * enough / asked
        text = f"deceleration on the path reduced to {part:.3g} % by the torque of the drives"
        return plan.on_path(1.0 / enough), [(command, text)]

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
            raise (_OverdrivenError(str(error)) if simulation.overdriven else error) from error
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
