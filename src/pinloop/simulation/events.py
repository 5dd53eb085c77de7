"""Events: what to look for during a run, and what then. Frozen values; nothing here steps.

An event is an action with the instant at which it happens: a time, or a guard, a function of the
state whose zero is looked for. Events never touch Pinocchio.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

import numpy as np

from .. import integrate
from ..boundary.arguments import as_seconds, checked, public
from ..boundary.marks import Array, Range
from ..constraints.rows import Locked
from ..errors import BadValue
from .modes import Mode
from .stabilization import Projection

Guard = Callable[[float, Array, Array], float]


class Action(ABC):
    """What an event does to the mode."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Name for messages."""

    def apply(self, mode: Mode) -> Mode:
        """Mode afterwards, by default the same; `BadValue` if the mode does not allow it."""
        return mode


@dataclass(frozen=True)
class Lock(Action):
    """Lock a joint where it is."""

    joint: str
    axes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name for messages."""
        return f"lock {self.joint}"

    def apply(self, mode: Mode) -> Mode:
        """Add the lock."""
        if mode.lock_of(self.joint) is not None:
            raise BadValue(f"joint '{self.joint}' is locked already; unlock it first")
        return replace(mode, locks=(*mode.locks, Locked(self.joint, self.axes)))


@dataclass(frozen=True)
class Unlock(Action):
    """Release a locked joint."""

    joint: str

    @property
    def name(self) -> str:
        """Name for messages."""
        return f"unlock {self.joint}"

    def apply(self, mode: Mode) -> Mode:
        """Take the lock out."""
        held = mode.lock_of(self.joint)
        if held is None:
            raise BadValue(f"joint '{self.joint}' is not locked; there is nothing to unlock")
        others = tuple(lock for lock in mode.locks if lock is not held)
        return replace(mode, locks=others)


@dataclass(frozen=True)
class OpenLoop(Action):
    """Open a loop joint: it lets go."""

    loop: str

    @property
    def name(self) -> str:
        """Name for messages."""
        return f"open {self.loop}"

    def apply(self, mode: Mode) -> Mode:
        """Take the loop out."""
        if self.loop in mode.opened:
            raise BadValue(f"loop '{self.loop}' is open already")
        return replace(mode, opened=mode.opened | {self.loop}, rows=())


@dataclass(frozen=True)
class CloseLoop(Action):
    """Close an open loop joint whose frames have met.

    Args:
        loop: name of the loop joint.
        tolerance: residual up to which its frames count as met, m and rad.
    """

    loop: str
    tolerance: float = 1e-4

    def __post_init__(self) -> None:
        if not self.tolerance > 0:
            raise BadValue(f"the tolerance of a closing loop is {self.tolerance}; it must be > 0")

    @property
    def name(self) -> str:
        """Name for messages."""
        return f"close {self.loop}"

    def apply(self, mode: Mode) -> Mode:
        """Put the loop back."""
        if self.loop not in mode.opened:
            raise BadValue(f"loop '{self.loop}' is closed already")
        return replace(mode, opened=mode.opened - {self.loop})


@dataclass(frozen=True)
class Stop(Action):
    """End the run."""

    name: str = "stop"


@dataclass(frozen=True)
class Touch(Action):
    """Let a joint come to an end stop, or leave it: what then is decided with all others."""

    name: str = "touch"


@dataclass(frozen=True)
class Report(Action):
    """Only remember that it happened."""

    name: str = "report"


@public
@checked
@dataclass(frozen=True)
class Event:
    """An action and the instant at which it happens.

    Made by `lock`, `unlock`, `open_loop`, `close_loop`, `when`, `stop_when`.

    Args:
        action: what happens.
        at: time [s]; None if a guard decides.
        guard: function of t, q, v whose zero is looked for; None if a time decides.
        direction: +1 rising zeros only, -1 falling ones, 0 both.
        name: name for messages.
    """

    action: Action
    at: float | None = None
    guard: Guard | None = None
    direction: int = 0
    name: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.action, Action):
            raise BadValue(
                f"the action of an event is {self.action!r}; use pl.simulation.lock, ..."
            )

    @property
    def label(self) -> str:
        """Name for messages."""
        return self.name or self.action.name


@public
def lock(joint: str, at: float | str | None = None, *, axes: Sequence[str] = ()) -> Event:
    """Lock a joint, or some of its degrees of freedom, at a time or as the action of `when`.

    Args:
        joint: name of the joint.
        at: time [s], or a text with its unit, such as "400 ms".
        axes: names of the degrees of freedom ("vx", "wz", ...); all by default.
    """
    held = Locked(joint, tuple(axes) if not isinstance(axes, str) else (axes,))
    return Event(Lock(held.joint, held.axes), as_seconds(at, "at"))


@public
def unlock(joint: str, at: float | str | None = None) -> Event:
    """Release a locked joint at a time, or as the action of `when`."""
    return Event(Unlock(joint), as_seconds(at, "at"))


@public
def open_loop(loop: str, at: float | str | None = None) -> Event:
    """Open a loop joint at a time, or as the action of `when`."""
    return Event(OpenLoop(loop), as_seconds(at, "at"))


@public
def close_loop(loop: str, at: float | str | None = None, *, tolerance: float = 1e-4) -> Event:
    """Close an open loop joint: when its frames meet, or at a time at which they must have met.

    Args:
        loop: name of the loop joint.
        at: time [s]; by default when the frames are nearest to each other, within the tolerance.
        tolerance: residual up to which the frames count as met, m and rad.
    """
    return Event(CloseLoop(loop, tolerance), as_seconds(at, "at"))


@public
def when(guard: Guard, action: Event, direction: int = 0, *, name: str = "") -> Event:
    """Do something when a function of the state passes through zero.

    Zeros are found however close together they are, if the guard is smooth in the state: in each
    step it is followed by polynomials, whose extrema are known. Of a guard with jumps or kinks
    two zeros within a small part of a step may be missed; ``largest=`` of the method prevents that.

    Args:
        guard: function of t, q, v.
        action: what then, e.g. ``pl.lock("elbow")``.
        direction: +1 rising zeros only, -1 falling ones, 0 both.
        name: name for messages.
    """
    if not callable(guard):
        raise BadValue(f"the guard of an event is {guard!r}; it must be a function of t, q, v")
    if direction not in (-1, 0, 1):
        raise BadValue(f"the direction of an event is {direction}; it must be -1, 0 or 1")
    if not isinstance(action, Event):
        raise BadValue(f"the action of an event is {action!r}; give e.g. pl.lock('elbow')")
    if action.at is not None or action.guard is not None:
        raise BadValue(
            f"the action '{action.label}' of an event has an instant of its own; leave its time or "
            "guard out"
        )
    return Event(action.action, None, guard, direction, name)


@public
def stop_when(guard: Guard, direction: int = 0, *, name: str = "stop") -> Event:
    """End the run when a function of the state passes through zero."""
    return when(guard, Event(Stop(name)), direction, name=name)


@public
@dataclass(frozen=True)
class JointLimits:
    """Report as an event whenever a joint comes to a position limit.

    Args:
        joints: names of the joints; all limited ones by default.
    """

    joints: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.joints, str):
            object.__setattr__(self, "joints", (self.joints,))


@public
@checked
@dataclass(frozen=True)
class EndStops:
    """Position limits are end stops: joints hit them, rest on them, are pushed by them only.

    All end stops that are hit at one instant are decided together, by Newton's law in Moreau's
    form: with ``p`` the velocity after a plastic impact, that after is ``p + e (p - v)``. With one
    coefficient for all of them kinetic energy never rises. Bounces that would not rise by 1e-10
    (rad, characteristic lengths) any more end at rest.

    Args:
        restitution: coefficient ``e`` of restitution, from 0, plastic, to 1, elastic.
        joints: names of the joints whose limits are end stops; all limited ones by default.
    """

    restitution: Annotated[float, Range(least=0, most=1)] = 0.0
    joints: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.joints, str):
            object.__setattr__(self, "joints", (self.joints,))


@dataclass(frozen=True, eq=False)
class BoundEvent:
    """An event as a run looks for it.

    Args:
        label: name for messages.
        action: what happens.
        at: time [s] of an event at a time; that of no other comes.
        active: whether its guard is looked at in a mode.
        at_once: whether it has happened already where its guard begins to be looked at; a function
            of the mode and of t, q, v.
    """

    label: str
    action: Action
    at: float = np.inf
    active: Callable[[Mode], bool] = lambda mode: True
    at_once: Callable[[Mode, float, Array, Array], bool] | None = None


class Impact(NamedTuple):
    """Joints hit end stops: ``v+ = p + e (p - v-)``, ``p`` the velocity that holds them there.

    Args:
        mode: locks and loops, with the end stops that push.
        restitution: ``e``.
    """

    mode: Mode
    restitution: float


@dataclass(frozen=True, eq=False)
class Instant:
    """Something that happened in a run.

    Args:
        t: when [s].
        names: names of the events.
        timed: names of those that happen at a time.
        guards: the guards that decide when; none if a time does.
        impacts: what hits end stops, one after the other.
        begins: whether another mode or velocity begins, so that the run has two states there.
    """

    t: float
    names: tuple[str, ...]
    timed: tuple[str, ...]
    guards: tuple[integrate.Guard[BoundEvent], ...]
    impacts: tuple[Impact, ...]
    begins: bool


@dataclass(frozen=True, eq=False)
class Happenings:
    """All that happened in a run, and what it is made of besides its states.

    Args:
        stabilization: how states were projected; None if they were not.
        instants: what happened, in order.
        watched: guards that were looked at, each from an instant on [s].
    """

    stabilization: Projection | None
    instants: tuple[Instant, ...]
    watched: tuple[tuple[float, integrate.Guards[BoundEvent]], ...]
