"""`simulate`: a robot, a start, forces, events, an end; what happens in between is in `run`.

Events are bound to the robot here: names and times are checked, guards that need it are made.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from ..boundary.arguments import as_seconds, public, require_kind
from ..boundary.marks import Array
from ..constraints.closure import Constraints
from ..constraints.rows import Row
from ..dynamics import Formulation
from ..dynamics.forces import Force, TorqueFunction
from ..dynamics.losses import losses_of_file
from ..errors import BadValue, PinloopError, UnknownName, printable
from ..integrate import EveryStep, Guard, MuntheKaas, Samples
from ..model.mechanism import Mechanism, blaming_links, require_robot
from ..tolerances import LEAVING
from .endstops import EndStopContacts
from .events import BoundEvent, CloseLoop, EndStops, Event, JointLimits, Report, Stop, Unlock
from .friction import DryFriction
from .initial_state import consistent_start
from .limits import JointEnd, ends_seen_from, joint_ends, limited_ends, require_within
from .modes import FREE, ModalSystem, Mode, RobotManifold
from .run import BoundEvents, Run, RunContacts
from .stabilization import Projection
from .trajectory import Trajectory

Limits = Literal["warn", "stop", "end stop"] | EndStops
"""What happens at the position limits of joints."""
_MOST_STEPS = 1e9
"""Fixed steps of a run: a day's work."""
_MOST_KEPT = 1e7
"""Fixed steps of a run that keeps all of them."""


@public
def simulate(
    robot: Mechanism,
    q: ArrayLike,
    v: ArrayLike | None = None,
    *,
    until: float | str,
    start: float = 0.0,
    tau: Callable[[float, Array, Array], ArrayLike] | None = None,
    forces: Sequence[Force] = (),
    rows: Sequence[Row] = (),
    events: Sequence[Event | JointLimits] = (),
    limits: Limits = "warn",
    mode: Mode | None = None,
    losses: bool = True,
    formulation: Formulation | None = None,
    method: MuntheKaas | None = None,
    stabilization: Projection | None = Projection(),  # noqa: B008 (frozen)
    regularization: bool = True,
    save_every: float | str | None = None,
    progress: bool = False,
) -> Trajectory:
    """Integrate the equations of motion of a robot.

    Args:
        robot: the mechanism.
        q: assembled configuration at the start, shape (nq,).
        v: velocity at the start that all rows allow, shape (nv,); at rest by default.
        until: end of the run [s], or a text with its unit, such as "800 ms".
        start: start of the run [s].
        tau: generalised force as a function of t, q, v.
        forces: what acts besides gravity.
        rows: constraint rows beyond loops and couplings.
        events: locks, loops that open or close, guards (`lock`, `when`, `stop_when`, ...).
        limits: what happens at the position limits of joints. "warn": the run reports which were
            passed (`Trajectory.warnings`); "stop": it ends where one is reached; "end stop" or an
            `EndStops`: joints hit them and rest on them.
        mode: joints locked and loops open at the start; none by default.
        losses: let the damping and dry friction of the robot's file act.
        formulation: how accelerations are computed; by default the fastest way that applies.
        method: integrator; Dormand-Prince 8(5,3) with tolerance 1e-8 by default.
        stabilization: projection to the constraint manifold; None to see the drift.
        regularization: remove redundant loop rows first.
        save_every: interval of the stored states [s]; both sides of every change of the mode and
            the last state are stored too. They are as accurate as steps; states between them are
            interpolated, and less so where the motion takes several steps. Every step by default.
        progress: show a progress bar.

    Returns:
        The trajectory, as far as it was computed if the run is interrupted with Ctrl-C.

    Raises:
        LoopNotClosed: ``q`` is not assembled; carries the nearest assembled configuration.
        BadValue: the start is beyond a limit that stops the run or the joint.
        InconsistentVelocity: the rows do not allow ``v``; carries the nearest velocity.
        SimulationFailed: the run could not continue; carries the trajectory so far.
    """
    require_robot(robot)
    require_kind(forces, Iterable, "forces", "give a list of forces, such as [pl.PD(...)]")
    until, save_every = as_seconds(until, "until"), as_seconds(save_every, "save_every")
    span = _span(start, until)
    _check_method(method, stabilization)
    _check_steps(method, span, save_every)
    acting = [*forces]
    if losses:
        acting += losses_of_file(robot)
    if tau is not None:
        acting.append(TorqueFunction(tau))
    system = ModalSystem(
        robot, rows=rows, forces=acting, formulation=formulation, regularization=regularization
    )
    mode = FREE if mode is None else mode
    if not isinstance(mode, Mode):
        raise BadValue(f"mode is {mode!r}; give pl.Mode(locks=('elbow',))")
    q0 = robot.checked_configuration(q).copy()
    mode = system.renewed(mode.without_friction, q0)
    v0 = np.zeros(robot.nv) if v is None else robot.checked_velocity(v).copy()
    with blaming_links(robot):
        nearby = system.near(mode, start, q0)
        q0, v0 = consistent_start(nearby, start, q0, v0)
    bound = bind_events(system, events, start, until)
    method = method or MuntheKaas()
    recording = (
        EveryStep(robot.nq, robot.nv)
        if save_every is None
        else Samples(robot.nq, robot.nv, RobotManifold(robot), (start, until), save_every)
    )
    stops, contacts = _at_limits(system, limits, (q0, v0))
    if stops:
        bound = replace(bound, guards=(*bound.guards, *stops))
    run = Run(system, method, stabilization, (start, until), bound, recording, contacts)
    with progress_bar(span, robot.name) if progress else nullcontext(lambda t: None) as report:
        return run.go(mode, q0, v0, report)


def check_settings(robot: Mechanism, *, until: float, start: float = 0.0, **settings: Any) -> None:
    """Refuse what no run of a robot can have, see `simulate`, wherever it starts."""
    known = inspect.signature(simulate).parameters
    if unknown := settings.keys() - known.keys():
        raise UnknownName("setting of a run", min(unknown), known)
    span, method = _span(start, until), settings.get("method")
    _check_method(method, settings.get("stabilization"))
    _check_steps(method, span, settings.get("save_every"))
    forces = settings.get("forces", ())
    require_kind(forces, Iterable, "forces", "give a list of forces, such as [pl.PD(...)]")
    for force in forces:
        require_kind(force, Force, "a force", "write for example pl.Torque('elbow', 5.0)")
        force.bind(robot)
    bind_events(ModalSystem(robot), settings.get("events", ()), start, until)
    _check_limits(settings.get("limits", "warn"))


def _check_method(method: object, stabilization: object) -> None:
    for what, value, kind, better in (
        ("method", method, MuntheKaas, "MuntheKaas('rk4', step=1e-3)"),
        ("stabilization", stabilization, Projection, "Projection(coordinates='mass')"),
    ):
        require_kind(value, (kind, type(None)), what, f"write e.g. pl.{better}")


def _check_steps(method: MuntheKaas | None, span: float, save_every: float | None) -> None:
    """Refuse fixed steps that would never come to an end, or fill the memory."""
    most = _MOST_KEPT if save_every is None else _MOST_STEPS
    if method is not None and method.step is not None and span > most * method.step:
        raise BadValue(
            f"a step of {method.step:g} s makes {span / method.step:.3g} steps; at most "
            f"{_MOST_STEPS:g} are computed, {_MOST_KEPT:g} without save_every"
        )


def _check_limits(limits: Limits) -> None:
    if limits not in ("warn", "stop", "end stop") and not isinstance(limits, EndStops):
        raise BadValue(
            f"limits is {limits!r}; "
            "give 'warn', 'stop', 'end stop' or pl.simulation.EndStops(restitution=0.3)"
        )


def _at_limits(
    system: ModalSystem, limits: Limits, start: tuple[Array, Array]
) -> tuple[list[Guard[BoundEvent]], RunContacts]:
    """Guards that end a run at limits; end stops, checked at the start, and friction."""
    q, v = start
    friction = DryFriction(system, v) if system.friction else None
    if limits == "warn":
        return [], RunContacts(None, friction)
    _check_limits(limits)
    stops = EndStops() if limits == "end stop" else limits
    robot = system.robot
    ends: Sequence[JointEnd] = ends_seen_from(joint_ends(robot), q)
    if isinstance(stops, EndStops):
        ends = limited_ends(ends, robot, stops.joints)
    require_within(robot, ends, q)
    if isinstance(stops, EndStops):
        e = float(stops.restitution)
        stopping = EndStopContacts(system, ends, e, friction) if ends else None
        return [], RunContacts(stopping, friction)
    return [_stop_at(system, end) for end in ends], RunContacts(None, friction)


def bind_events(
    system: ModalSystem, events: Sequence[Event | JointLimits], start: float, until: float
) -> BoundEvents:
    """Bind events to a robot: check names and times, add the guards that need the robot."""
    timed: list[BoundEvent] = []
    guards: list[Guard[BoundEvent]] = []
    for event in [events] if isinstance(events, (Event, JointLimits)) else events:
        if isinstance(event, JointLimits):
            ends = limited_ends(joint_ends(system.robot), system.robot, event.joints)
            guards += [end.guard(_reach(end, Report(end.name))) for end in ends]
            continue
        if not isinstance(event, Event):
            raise BadValue(f"{event!r} is no event; use pl.lock, pl.when, pl.stop_when, ...")
        _check_action(system, event)
        bound = BoundEvent(event.label, event.action)
        if event.at is not None:
            if not start <= event.at <= until:
                raise BadValue(
                    f"event '{event.label}' is at t = {event.at} s, outside the run from {start} "
                    f"to {until} s"
                )
            timed.append(replace(bound, at=event.at))
        elif event.guard is not None:
            guards.append(Guard(bound, _checked(event), event.direction))
        elif isinstance(event.action, CloseLoop):
            guards.append(_meeting(system, event.action, bound))
        else:
            raise BadValue(f"event '{event.label}' has neither a time (at=) nor a guard (pl.when)")
    return BoundEvents(tuple(sorted(timed, key=lambda event: event.at)), tuple(guards))


def _check_action(system: ModalSystem, event: Event) -> None:
    """Refuse what the robot does not have."""
    action = event.action
    if isinstance(action, Unlock):
        system.check(Mode(action.joint))
    elif isinstance(action, CloseLoop):
        system.check(Mode(opened=frozenset({action.loop})))
    else:
        system.check(action.apply(Mode()))


def _checked(event: Event) -> Callable[[float, Array, Array], float]:
    """The guard of a user, which must give a finite number."""
    guard = event.guard
    assert guard is not None

    def value(t: float, q: Array, v: Array) -> float:
        try:
            # Copies: a guard must not be able to move the robot.
            number = float(guard(t, q.copy(), v.copy()))
        except PinloopError:
            raise
        except Exception as error:
            raise BadValue(
                f"the guard of event '{event.label}' must return a number for t, q, v, but raised "
                f"{type(error).__name__}: {error}"
            ) from error
        if not np.isfinite(number):
            raise BadValue(f"the guard of event '{event.label}' is {number} at t = {t:.6g} s")
        return number

    return value


class _Approach:
    """How fast the frames of a loop come nearer: how its residual and its rate agree."""

    def __init__(self, robot: Mechanism, loop: str) -> None:
        self._rows, self._loop = Constraints(robot, full=True), loop
        self._part = self._rows.rows_of[loop]

    def gap(self, q: Array) -> Array:
        """The residual of the loop."""
        return self._rows.residual(q)[self._part]

    def __call__(self, t: float, q: Array, v: Array) -> float:
        """Negative while they come nearer."""
        return float(self.gap(q) @ (self._rows.jacobian(q)[self._part] @ v))

    def of_robot(self, robot: Mechanism) -> _Approach:
        """The same of a robot whose frames are elsewhere."""
        return _Approach(robot, self._loop)


def _meeting(system: ModalSystem, action: CloseLoop, bound: BoundEvent) -> Guard[BoundEvent]:
    """Close a loop where its frames are nearest: the residual stops shrinking there."""
    approach = _Approach(system.robot, action.loop)

    def near(t: float, q: Array, v: Array) -> bool:
        return float(np.linalg.norm(approach.gap(q))) <= action.tolerance

    bound = replace(bound, active=lambda mode: action.loop in mode.opened)
    return Guard(bound, approach, 1, accept=near)


def _stop_at(system: ModalSystem, end: JointEnd) -> Guard[BoundEvent]:
    """End the run where a coordinate comes to its limit, or is there and on the way out."""

    def leaving(mode: Mode, t: float, q: Array, v: Array) -> bool:
        rate = end.sign * v[end.column]
        if end.beyond(q) < -LEAVING or rate < -LEAVING:
            return False
        if rate > LEAVING:
            return True
        a = system.equations(mode).acceleration(t, q, v)
        return bool(end.sign * a[end.column] > LEAVING)

    return end.guard(replace(_reach(end, Stop(end.name)), at_once=leaving))


def _reach(end: JointEnd, action: Report | Stop) -> BoundEvent:
    """A coordinate comes to an end of its range from inside."""
    return BoundEvent(end.name, action, active=lambda mode: not mode.holds(end.joint, end.axes))


def _span(start: float, until: float) -> float:
    """Length of the run, after checking its ends."""
    for name, value in (("start", start), ("until", until)):
        if not isinstance(value, Real) or isinstance(value, bool):
            raise BadValue(f"{name} is {value!r}; it must be a time in seconds")
    start, until = float(start), float(until)
    if not (np.isfinite(start) and np.isfinite(until) and until > start):
        raise BadValue(f"until is {until} s and start is {start} s; the end must come after")
    return float(until - start)


@contextmanager
def progress_bar(span: float, name: str) -> Iterator[Callable[[float], None]]:
    """Show a bar on standard error; yields the function that takes the simulated time [s]."""
    with _bar("{task.completed:.3f} / {task.total:.3f} s") as bar:
        task = bar.add_task(escape(printable(name)), total=span)
        yield lambda t: bar.update(task, completed=t)


@contextmanager
def case_bar(done: int, size: int, name: str) -> Iterator[Callable[[int], None]]:
    """Show finished cases, their rate and the time left on standard error.

    Yields the function that takes the number of finished cases.
    """
    with _bar("{task.completed:.0f} / {task.total:.0f} stops", "{task.fields[rate]}") as bar:
        task = bar.add_task(escape(printable(name)), total=size, completed=done, rate="")

        def report(count: int) -> None:
            elapsed = bar.tasks[0].elapsed or 0.0
            rate = (count - done) / elapsed if elapsed > 0 else 0.0
            bar.update(task, completed=count, rate=f"{rate:.0f} per s")

        yield report


def _bar(*texts: str) -> Progress:
    columns = TextColumn("{task.description}"), BarColumn(), *map(TextColumn, texts)
    return Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True))
