"""Laws by which drives bring a joint to rest in a controlled stop: a speed that falls to zero.

A law is one frozen class: the numbers of a drive that it takes, and the ramp that follows from
them, from a speed and from an acceleration. It knows no robot and no other joint; what drives make
of a ramp is in `stopping`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated, ClassVar, Literal

import numpy as np
import scipy

from ...boundary.arguments import checked, public
from ...boundary.marks import Array, Positive, Range
from ...errors import BadValue
from ...tolerances import TIME_SUM

LawName = Literal[
    "constant-deceleration", "constant-time", "jerk-limited", "first-order", "drive-torque"
]
"""Names of the laws in files and on the command line."""
Share = Annotated[float, Range(above=0, most=1)]
_SETTLED = 5.0
"""Time constants after which a first-order law is at rest where its ramp_time is not given."""


@dataclass(frozen=True, eq=False)
class Segment:
    """A smooth part of a ramp.

    From its start on it is

        v(t) = speed + rate t + jerk t^2 / 2 + decay (exp(-t / constant) - 1).

    Args:
        start: when it begins, from the start of the ramp on [s].
        speed: speed there; here and below a number, or one per coordinate.
        rate: its rate, without the decay.
        jerk: rate of that.
        decay: what falls exponentially.
        constant: how fast [s].
    """

    start: float
    speed: float | Array
    rate: float | Array = 0.0
    jerk: float | Array = 0.0
    decay: float | Array = 0.0
    constant: float | Array = 1.0

    def v(self, t: float) -> float | Array:
        """Speed."""
        v = self.speed + (self.rate + 0.5 * self.jerk * t) * t
        return v + self.decay * np.expm1(-t / self.constant)

    def a(self, t: float) -> float | Array:
        """Its rate."""
        return self.rate + self.jerk * t - self.decay / self.constant * np.exp(-t / self.constant)

    def way(self, t: float) -> float | Array:
        """How far it has come."""
        way = (self.speed + (0.5 * self.rate + self.jerk * t / 6.0) * t) * t
        return way - self.decay * (self.constant * np.expm1(-t / self.constant) + t)

    def later(self, start: float) -> Segment:
        """The same, told from a later start on."""
        t = start - self.start
        return replace(
            self,
            start=start,
            speed=self.v(t),
            rate=self.rate + self.jerk * t,
            decay=self.decay * np.exp(-t / self.constant),
        )

    def times(self, factor: float | Array) -> Segment:
        """The same with all speeds times a factor, or times one per coordinate."""
        parts = {name: factor * getattr(self, name) for name in ("speed", "rate", "jerk", "decay")}
        return replace(self, **parts)


@dataclass(frozen=True, eq=False)
class Ramp:
    """A speed that falls to zero.

    Args:
        segments: its smooth parts, in order, the first from 0 on; none if it is at rest at once.
        end: when it is at rest [s].
    """

    segments: tuple[Segment, ...] = ()
    end: float = 0.0

    def at(self, t: float) -> Segment | None:
        """The segment that holds from a time on; None from the end on."""
        if t >= self.end:
            return None
        return [segment for segment in self.segments if segment.start <= t][-1]

    def v(self, t: float) -> float:
        """Speed at a time."""
        segment = self.at(t)
        return 0.0 if segment is None else float(segment.v(t - segment.start))

    def a(self, t: float) -> float:
        """Its rate; at the end the last one."""
        segment = self.at(t) or self.segments[-1]
        return float(segment.a(t - segment.start))

    def way(self, t: float) -> float:
        """How far it has come at a time."""
        way, ends = 0.0, [*(segment.start for segment in self.segments[1:]), self.end]
        for segment, end in zip(self.segments, ends, strict=False):
            if t > segment.start:
                way += float(segment.way(min(t, end) - segment.start))
        return way

    @property
    def whole(self) -> float:
        """How far it comes."""
        return self.way(self.end)

    def when(self, way: float) -> float:
        """When it has come so far, if it goes one way and at least as far [s]."""
        return float(
            scipy.optimize.brentq(lambda t: self.way(t) - way, 0.0, self.end, xtol=TIME_SUM)
        )

    def stretched(self, end: float) -> Ramp:
        """The same speeds over another time."""
        part = end / self.end
        segments = (
            replace(
                segment,
                start=part * segment.start,
                rate=segment.rate / part,
                jerk=segment.jerk / part**2,
                constant=part * segment.constant,
            )
            for segment in self.segments
        )
        return Ramp(tuple(segments), end)


@public
@dataclass(frozen=True)
class StopLaw:
    """How drives bring a joint to rest, as a frozen dataclass.

    Fields are numbers of a drive that are the same for all joints; None: those of the brakes file.
    """

    name: ClassVar[str]
    """Its name in files and on the command line."""
    title: ClassVar[str]
    """What it does, in tables."""
    needs: ClassVar[tuple[str, ...]]
    """The numbers in the brakes file without which it says nothing."""
    takes: ClassVar[tuple[str, ...]] = ()
    """Further numbers that it takes into account."""
    per_speed: ClassVar[tuple[str, ...]] = ("deceleration", "jerk")
    """Those of all numbers that are measured in units of speed."""
    on_path: ClassVar[bool] = True
    """Whether it can slow down all joints together on their path."""

    def ramp(self, v: float, a: float, numbers: Mapping[str, float]) -> Ramp:
        """The ramp from a speed and an acceleration on.

        ``numbers``: the numbers of the drive by name.
        """
        raise NotImplementedError

    @property
    def numbers(self) -> tuple[str, ...]:
        """All numbers of a drive that it looks at."""
        return (*self.needs, *self.takes)

    @property
    def own(self) -> dict[str, float]:
        """The numbers that it gives to all joints."""
        pairs = ((x.name, getattr(self, x.name)) for x in fields(self))
        return {name: value for name, value in pairs if value is not None}

    def together(self, joints: Iterable[tuple[float, Mapping[str, float]]]) -> Ramp:
        """The ramp from 1 to 0 of the speed on a path that is within the numbers of all joints.

        ``joints``: speed and numbers of each joint that moves.
        """
        shared: dict[str, float] = {}
        for v, numbers in joints:
            for name, number in numbers.items():
                slow: Callable[[float, float], float] = max
                if name in self.per_speed:
                    number, slow = number / abs(v), min
                shared[name] = slow(shared.get(name, number), number)
        return self.ramp(1.0, 0.0, shared)


@public
@checked
@dataclass(frozen=True)
class ConstantDeceleration(StopLaw):
    """At one deceleration from any speed: the time grows with the speed, the angle with its square.

    Args:
        deceleration: [rad/s^2, m/s^2].
    """

    deceleration: Positive | None = None
    name = "constant-deceleration"
    title = "at constant deceleration"
    needs = ("deceleration",)

    def ramp(self, v: float, a: float, numbers: Mapping[str, float]) -> Ramp:
        """See `StopLaw`."""
        return _straight(v, abs(v) / numbers["deceleration"])


@public
@checked
@dataclass(frozen=True)
class ConstantTime(StopLaw):
    """In one time from any speed, evenly: the angle grows with the speed.

    Args:
        ramp_time: [s].
    """

    ramp_time: Positive | None = None
    name = "constant-time"
    title = "in constant time"
    needs = ("ramp_time",)

    def ramp(self, v: float, a: float, numbers: Mapping[str, float]) -> Ramp:
        """See `StopLaw`."""
        return _straight(v, numbers["ramp_time"])


@public
@checked
@dataclass(frozen=True)
class FirstOrder(StopLaw):
    """Exponentially, to rest in one time from any speed, and faster at first than at last.

    With the time constant T and the ramp time R ``v = v0 (e^(-t/T) - e^(-R/T)) / (1 - e^(-R/T))``.

    Args:
        time_constant: [s].
        ramp_time: when it is at rest [s]; after five time constants if nobody gives it.
    """

    time_constant: Positive | None = None
    ramp_time: Positive | None = None
    name = "first-order"
    title = "exponentially"
    needs = ("time_constant",)
    takes = ("ramp_time",)

    def ramp(self, v: float, a: float, numbers: Mapping[str, float]) -> Ramp:
        """See `StopLaw`."""
        if v == 0.0:
            return Ramp()
        constant = numbers["time_constant"]
        end = numbers.get("ramp_time", _SETTLED * constant)
        decay = v / -np.expm1(-end / constant)
        return Ramp((Segment(0.0, v, decay=float(decay), constant=constant),), end)


@public
@checked
@dataclass(frozen=True)
class JerkLimited(StopLaw):
    """As fast as a deceleration and a jerk allow, from the acceleration at the command on.

    The acceleration has no jumps (S-curve).

    Args:
        deceleration: largest one [rad/s^2, m/s^2].
        jerk: largest rate of the acceleration [rad/s^3, m/s^3].
    """

    deceleration: Positive | None = None
    jerk: Positive | None = None
    name = "jerk-limited"
    title = "with limited jerk"
    needs = ("deceleration", "jerk")

    def ramp(self, v: float, a: float, numbers: Mapping[str, float]) -> Ramp:
        """See `StopLaw`."""
        most, jerk = numbers["deceleration"], numbers["jerk"]
        # Where it gets if the acceleration goes to zero at once decides on the direction.
        side = float(np.sign(v + 0.5 * a * abs(a) / jerk)) or float(-np.sign(a))
        if side == 0.0:
            return Ramp()
        v, a = side * v, side * a
        peak = float(np.sqrt(max(jerk * v + 0.5 * a**2, 0.0)))
        peak = min(peak, most)
        first = -jerk if a > -peak else jerk  # until the acceleration is -peak
        lost = 0.5 * (a**2 - peak**2) / first + 0.5 * peak**2 / jerk
        held = (v - lost) / peak if peak else 0.0
        return _curve(side, v, a, ((abs(a + peak) / jerk, first), (held, 0.0), (peak / jerk, jerk)))


@public
@checked
@dataclass(frozen=True)
class DriveTorque(StopLaw):
    """With a share of the torque of each drive, until its joint is at rest: no ramp is followed.

    Load and gravity tell how long that takes. Each joint stops by itself.

    Args:
        torque_share: of ``drive_torque``.
    """

    torque_share: Share | None = None
    name = "drive-torque"
    title = "with a share of the torque of the drives"
    needs = ("drive_torque", "torque_share")
    on_path = False

    def ramp(self, v: float, a: float, numbers: Mapping[str, float]) -> Ramp:
        """See `StopLaw`."""
        return Ramp()


LAWS: Mapping[str, StopLaw] = {
    law.name: law
    for law in (ConstantDeceleration(), ConstantTime(), JerkLimited(), FirstOrder(), DriveTorque())
}
"""The laws by name."""


def law_by_name(name: str) -> StopLaw:
    """The law of this name, with the numbers of the brakes file."""
    if name not in LAWS:
        raise BadValue(
            f"'{name}' is no law of a controlled stop; there are {', '.join(LAWS)}, with numbers "
            "behind a colon: 'constant-time:ramp_time=0.3'"
        )
    return LAWS[name]


def _straight(v: float, time: float) -> Ramp:
    """Evenly to rest."""
    return Ramp((Segment(0.0, v, -v / time),), time) if v else Ramp()


def _curve(side: float, v: float, a: float, parts: Iterable[tuple[float, float]]) -> Ramp:
    """A ramp of parts with a jerk each.

    ``side``: what all are multiplied by. ``v``, ``a``: speed and acceleration at its start.
    ``parts``: duration and jerk of each.
    """
    segments, start = [], 0.0
    for duration, jerk in parts:
        if duration > TIME_SUM:
            segment = Segment(start, v, a, jerk)
            segments.append(segment.times(side))
            v, a = float(segment.v(duration)), a + jerk * duration
            start += duration
    return Ramp(tuple(segments), start)
