"""Where events happen inside a step: sides of guards, roots on dense output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy
from numpy.typing import NDArray

from ..constraints.closure import Constraints
from ..errors import BadValue, PinloopError
from ..integrate import Step
from ..model.mechanism import Mechanism
from ..tolerances import GUARD_BAND, GUARD_ROUNDING, LAST_BITS, LEAVING, ROOT_SHARE, SAME
from .events import Action, BoundEvent, CloseLoop, Event, JointLimits, Lock, Report, Stop, Unlock
from .limits import JointEnd, joint_ends, unit_roots
from .modes import ModalSystem, Mode

__all__ = ["Watcher", "bind_events", "limited_ends", "refined_root", "stop_at"]

Array = NDArray[np.float64]

_PARTS = np.arange(1, 9) / 8
"""Parts of a step at which guards are looked at, so that pairs of zeros are not missed."""
_SAFELY = 1.0 + SAME


def bind_events(
    system: ModalSystem, events: Sequence[Event | JointLimits], start: float, until: float
) -> list[BoundEvent]:
    """Bind events to a robot: check names and times, add the guards that need the robot."""
    if isinstance(events, (Event, JointLimits)):
        events = [events]
    bound: list[BoundEvent] = []
    for event in events:
        if isinstance(event, JointLimits):
            ends = limited_ends(joint_ends(system.robot), system.robot, event.joints)
            bound += [_reach(end, Report(end.name)) for end in ends]
        elif isinstance(event, Event):
            bound.append(_bind(system, event, start, until))
        else:
            raise BadValue(f"{event!r} is no event; use pl.lock, pl.when, pl.stop_when, ...")
    return bound


def _bind(system: ModalSystem, event: Event, start: float, until: float) -> BoundEvent:
    action = event.action
    if isinstance(action, Lock):
        system.check(action.apply(Mode()))
    elif isinstance(action, Unlock):
        system.check(Mode(action.joint))
    elif isinstance(action, CloseLoop):
        system.check(Mode(opened=frozenset({action.loop})))
    else:
        system.check(action.apply(Mode()))
    bound = BoundEvent(
        event.label, action, event.guard, event.at, event.direction, _always, _whatever
    )
    if event.at is not None:
        if not start <= event.at <= until:
            raise BadValue(
                f"event '{event.label}' is at t = {event.at} s, outside the run from {start} to "
                f"{until} s"
            )
        return bound
    if event.guard is None:
        if not isinstance(action, CloseLoop):
            raise BadValue(f"event '{event.label}' has neither a time (at=) nor a guard (pl.when)")
        return _meeting(system, action, bound)
    return bound


def _always(mode: Mode) -> bool:
    return True


def _whatever(t: float, q: Array, v: Array) -> bool:
    return True


def _meeting(system: ModalSystem, action: CloseLoop, bound: BoundEvent) -> BoundEvent:
    """Close a loop where its frames are nearest: the residual stops shrinking there."""
    rows = Constraints(system.robot, full=True)
    part = rows.rows_of[action.loop]

    def approach(t: float, q: Array, v: Array) -> float:
        return float(rows.residual(q)[part] @ (rows.jacobian(q)[part] @ v))

    def near(t: float, q: Array, v: Array) -> bool:
        return float(np.linalg.norm(rows.residual(q)[part])) <= action.tolerance

    return replace(
        bound,
        guard=approach,
        direction=1,
        active=lambda mode: action.loop in mode.opened,
        accept=near,
    )


def limited_ends(
    ends: Sequence[JointEnd], robot: Mechanism, joints: tuple[str, ...] | None
) -> list[JointEnd]:
    """The ends of the ranges of some joints, each of which must have one."""
    for name in joints or ():
        robot.coordinates(name)
        if not any(end.joint == name for end in ends):
            raise BadValue(f"joint '{name}' has no position limits that could be watched")
    return [end for end in ends if joints is None or end.joint in joints]


def stop_at(system: ModalSystem, end: JointEnd) -> BoundEvent:
    """End the run where a coordinate comes to its limit, or is there and on the way out."""

    def leaving(t: float, q: Array, v: Array) -> bool:
        rate = end.sign * v[end.column]
        if end.beyond(q) < -LEAVING or rate < -LEAVING:
            return False
        if rate > LEAVING:
            return True
        a = system.equations(system.current).acceleration(t, q, v)
        return bool(end.sign * a[end.column] > LEAVING)

    return replace(_reach(end, Stop(end.name)), at_once=leaving)


def _reach(end: JointEnd, action: Action) -> BoundEvent:
    """A coordinate comes to an end of its range from inside."""
    return BoundEvent(
        end.name,
        action,
        lambda t, q, v: end.beyond(q),
        None,
        1,
        lambda mode: not mode.holds(end.joint, end.axes),
        _whatever,
        crossing=(end.cell, end.column, end.level),
    )


class Watcher:
    """Keeps on which side of zero every guard is, and finds the next event in a step.

    Args:
        events: the events of the run.
        start: start of the run [s].
    """

    def __init__(self, events: list[BoundEvent], start: float) -> None:
        self._timed = sorted(
            (event for event in events if event.at is not None), key=lambda event: event.at or 0.0
        )
        self._guarded = [event for event in events if event.guard is not None]
        self._sides = np.zeros(len(self._guarded))
        # Roots have an error. Until it has left this band, a guard whose event has just happened
        # counts as being at zero; negative: it is nowhere near one.
        self._band = np.full(len(self._guarded), -1.0)
        # How large it was in the last step, for what is rounding.
        self._size = np.zeros(len(self._guarded))
        self._crossed: set[int] = set()
        self._done = 0
        self._start = start
        self._active: list[int] = []
        plain = [(k, *event.crossing) for k, event in enumerate(self._guarded) if event.crossing]
        self._plain, self._at_q, self._at_v = (
            np.array([entry[place] for entry in plain], dtype=np.intp) for place in range(3)
        )
        self._limits = np.array([entry[3] for entry in plain])

    def note(self, happening: list[BoundEvent], t: float, q: Array, v: Array) -> None:
        """Remember how far from zero the guards are whose events are about to happen."""
        for k, event in enumerate(self._guarded):
            if k in self._crossed or any(event is other for other in happening):
                self._band[k] = 10 * abs(_value(event, t, q, v)) + GUARD_BAND * self._size[k]

    def look(self, mode: Mode, t: float, q: Array, v: Array) -> None:
        """See on which side the guards are at the start of a run or after a change."""
        self._active = [k for k, event in enumerate(self._guarded) if event.active(mode)]
        for k, event in enumerate(self._guarded):
            if k not in self._active:
                self._sides[k], self._band[k] = 0.0, -1.0
                continue
            value = _value(event, t, q, v)
            if event.one_sided:
                beyond = event.direction * value
                self._sides[k] = -event.direction
                self._band[k] = 2 * beyond + GUARD_ROUNDING if beyond >= 0.0 else -1.0
                continue
            if value == 0.0:
                # The change has put it there, or the run starts there: no zero to be found.
                self._band[k] = max(self._band[k], 0.0)
            self._sides[k] = self._side(k, value) or self._sides[k]

    def at_once(self, mode: Mode, t: float, q: Array, v: Array) -> list[BoundEvent]:
        """Events that have happened already where they start to be watched."""
        return [
            event
            for event in self._guarded
            if event.at_once is not None and event.active(mode) and event.at_once(t, q, v)
        ]

    def next_time(self) -> float:
        """Time of the next event at a time."""
        return float(self._timed[self._done].at or 0.0) if self._done < len(self._timed) else np.inf

    def due(self, t: float) -> list[BoundEvent]:
        """Events at a time whose time has come; each is returned once."""
        due = []
        while self._done < len(self._timed) and (self._timed[self._done].at or 0.0) <= t:
            due.append(self._timed[self._done])
            self._done += 1
        return due

    def first_root(
        self, t0: float, t1: float, dense: Step
    ) -> tuple[float, list[BoundEvent]] | None:
        """The first zero of a guard in a step, with all events that happen there."""
        self._size[:] = 0.0
        self._crossed = set()
        active = self._within_reach(dense)
        if not active:
            return None
        last, turns = t0, self._turns(active, dense)
        for part, q, v in zip(_PARTS, *dense.inside(_PARTS), strict=True):
            t = t1 if part == 1.0 else t0 + (t1 - t0) * float(part)
            values = {k: _value(self._guarded[k], t, q, v) for k in active}
            sides = {k: self._side(k, values[k]) for k in active}
            for k in active:
                self._size[k] = max(self._size[k], abs(values[k]))
            roots: dict[int, tuple[float, float]] = {}
            for k in active:
                span = self._between(k, last, t, sides[k], turns.get(k, ()), dense)
                if span is not None:
                    roots[k] = span
                elif t == t1 and values[k] == 0.0 and self._band[k] < 0 and self._sides[k]:
                    # Exactly at zero where the step ends: does it cross, or only touch?
                    beyond = t1 + 1e-3 * (t1 - t0)
                    side = float(np.sign(_value(self._guarded[k], beyond, *dense(beyond))))
                    if side * self._sides[k] < 0:
                        roots[k] = t1, side
            counting = [k for k, span in roots.items() if self._counts(k, *span, dense)]
            if counting:
                first = min(roots[k][0] for k in counting)
                near = first + GUARD_BAND * max(1.0, abs(first))
                self._crossed = {k for k, (root, _) in roots.items() if root <= near}
                for k in self._crossed:
                    self._sides[k] = roots[k][1]
                return first, [self._guarded[k] for k in counting if roots[k][0] <= near]
            for k in active:
                self._sides[k] = sides[k] or self._sides[k]
            last = t
        return None

    def _between(
        self, k: int, last: float, t: float, side: float, turns: Sequence[float], dense: Step
    ) -> tuple[float, float] | None:
        """Zero of a guard between two samples, and the side behind it; it may turn round there."""
        event, before = self._guarded[k], self._sides[k]
        for turn in turns:
            if last < turn < t:
                value = _value(event, turn, *dense(turn))
                there = self._side(k, value)
                if there * before < 0:
                    return _root(event, last, turn, before, dense), there
                if value * before > 0 and side * before < 0:
                    last = turn
        if side * before < 0:
            return _root(event, last, t, before, dense), side
        return None

    def _turns(self, active: list[int], step: Step) -> dict[int, list[float]]:
        """Times at which coordinates turn round whose limits are in reach."""
        times = {}
        for k in active:
            if (crossing := self._guarded[k].crossing) is not None:
                slopes = np.arange(5, 0, -1) * step.polynomial[::-1, crossing[1]]
                parts = unit_roots(slopes)
                times[k] = [step.t0 + part * (step.t1 - step.t0) for part in parts]
        return times

    def _within_reach(self, step: Step) -> list[int]:
        """Guards that may change their sign in a step.

        A coordinate moves by at most the sum of the coefficients of its polynomial, whose argument
        is at most 1.
        """
        if len(self._plain) == 0 or not self._active:
            return self._active
        gap = np.abs(step.q0[self._at_q] - self._limits)
        reach = np.abs(step.polynomial[:, self._at_v]).sum(axis=0)
        self._size[self._plain] = gap + reach
        safe = (gap > _SAFELY * reach) & (self._sides[self._plain] != 0.0)
        far = set(self._plain[safe].tolist())
        return [k for k in self._active if k not in far]

    def _side(self, k: int, value: float) -> float:
        """Sign of a guard, zero as long as it has not left the zero it was last at."""
        if abs(value) <= self._band[k]:
            return 0.0
        if value != 0.0:
            self._band[k] = -1.0
        return float(np.sign(value))

    def _counts(self, k: int, root: float, side: float, dense: Step) -> bool:
        """Whether a zero goes in the right direction, and is wanted."""
        event = self._guarded[k]
        return event.direction in (0, int(side)) and event.accept(root, *dense(root))


def refined_root(
    event: BoundEvent, t: float, state: tuple[Array, Array], dense: Step, step: float
) -> tuple[float, float]:
    """A better root than that of the dense output, from the state that a step to it really gives.

    Returns the root, and how far from zero the guard is at the given state.

    Args:
        event: the event with its guard.
        t: root on the dense output [s].
        state: configuration and velocity that the method gives at ``t``.
        dense: state inside the step, for the slope of the guard.
        step: length of the step [s].
    """
    value = _value(event, t, *state)
    gap = 1e-4 * step
    slope = (_value(event, t + gap, *dense(t + gap)) - _value(event, t - gap, *dense(t - gap))) / (
        2 * gap
    )
    return (t if slope == 0.0 else t - value / slope), abs(value)


def _value(event: BoundEvent, t: float, q: Array, v: Array) -> float:
    """Value of a guard, which must be a finite number."""
    assert event.guard is not None
    try:
        # Copies: a guard must not be able to move the robot.
        value = float(event.guard(t, q.copy(), v.copy()))
    except PinloopError:
        raise
    except Exception as error:
        raise BadValue(
            f"the guard of event '{event.label}' must return a number for t, q, v, but raised "
            f"{type(error).__name__}: {error}"
        ) from error
    if not np.isfinite(value):
        raise BadValue(f"the guard of event '{event.label}' is {value} at t = {t:.6g} s")
    return value


def _root(event: BoundEvent, t0: float, t1: float, side0: float, dense: Step) -> float:
    """Zero of a guard between two times, by bisection and secants (Brent)."""

    def value(t: float) -> float:
        return _value(event, t, *dense(t))

    # At the start of the bracket the guard may still be at the zero it came from.
    if value(t0) * side0 <= 0:
        return t0
    return float(
        scipy.optimize.brentq(
            value, t0, t1, xtol=LAST_BITS * max(1.0, abs(t1)), rtol=ROOT_SHARE, maxiter=1000
        )
    )
