"""`stop`: a robot, a state, brakes, a category; also with one brake missing, late or weak."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from numbers import Real
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ...boundary.arguments import public, require_kind
from ...boundary.marks import Array
from ...dynamics import EquationsOfMotion
from ...errors import BadValue, PinloopError, PinloopWarning, StopFailed
from ...integrate import MuntheKaas, StepFailed
from ...model.mechanism import Mechanism, blamed_links, blaming_links, require_robot
from ...model.workspace import remembered
from ...simulation.initial_state import consistent_start
from ...simulation.limits import ends_seen_from, require_within
from ...simulation.modes import ModalSystem
from ...tolerances import SAME
from ..brakes.brakes import Brakes
from .categories import Category, as_category
from .drivetrain import Drivetrain
from .history import StopHistory
from .holding import check_holding
from .on_path import OverdrivenError, hold_on_path
from .plan import Trigger, make_plan
from .prepared_robot import Payload, PreparedRobot, prepare_robot
from .result import Outcome, StopResult
from .simulation import StopSimulation
from .standstill import Standstill
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
        equations, q0, v0 = _start(machine.robot, machine.equations, trigger, q, v)
        train = machine.train
        if category.law is not None:
            drives = train.brakes.motorized(machine.robot)
            train = Drivetrain(train.robot, train.brakes.with_law(category.law, drives))
        plan = make_plan(equations, train.brakes, trigger, category, q0, v0)
        limits: tuple[bool, ...] = False, True
        try:
            plan, notes = hold_on_path(equations, train, plan, method, q0, v0)
        except OverdrivenError:
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
    for name in _floating(robot):
        at = robot.coordinates(name)
        rows = equations.terms(0.0, q, np.zeros(robot.nv))[0]
        if not np.abs(rows[:, at.v]).max(initial=0.0) > SAME:
            warnings.warn(
                f"joint '{name}' lets robot '{robot.name}' float: nothing stops it; load the robot "
                "without floating_base=True if it stands on the ground",
                PinloopWarning,
                stacklevel=5,
            )


@remembered
def _floating(robot: Mechanism) -> tuple[str, ...]:
    """Joints that let bodies float."""
    joints = {name: robot.coordinates(name) for name in robot.joints}
    return tuple(
        name for name, at in joints.items() if at.nv == 6 and robot.model.parents[at.index] == 0
    )


def _start(
    robot: Mechanism,
    equations: EquationsOfMotion,
    trigger: Trigger,
    q: ArrayLike | None,
    v: ArrayLike | None,
) -> tuple[EquationsOfMotion, Array, Array]:
    """State at the signal, assembled, and the equations around it."""
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
    nearby = equations.around(0.0, q0)
    q0, v0 = consistent_start(nearby, 0.0, q0, v0)
    return nearby.around(0.0, q0), q0, v0


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
