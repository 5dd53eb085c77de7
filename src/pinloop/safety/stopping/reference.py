"""What the drives follow while they have power: velocities over time, piece by piece.

Before the command the robot goes on as it was; in categories 1 and 2 it is then brought to rest,
each joint by its own ramp, or all on the path that they were on. Ramps come from `brakes.laws`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...boundary.marks import Array, Mask
from ...errors import BadValue
from ..brakes.laws import Ramp, Segment
from .recorded import JointTrajectory


@dataclass(frozen=True, eq=False)
class EvenPiece:
    """Velocities that change evenly, or stay.

    Args:
        start: when it begins [s].
        speeds: velocity there, shape (nv,).
        rates: its rate, shape (nv,); None: it stays.
    """

    start: float
    speeds: Array
    rates: Array | None = None

    @property
    def may_reverse(self) -> Mask:
        """Mask of the coordinates that may turn round in it, or start after a rest: none."""
        return np.zeros(len(self.speeds), dtype=bool)

    def v(self, t: float) -> Array:
        """Velocity, shape (nv,)."""
        if self.rates is None:
            return self.speeds
        return self.speeds + self.rates * (t - self.start)

    def a(self, t: float) -> Array:
        """Its rate, shape (nv,)."""
        return 0.0 * self.speeds if self.rates is None else self.rates

    def slowed(self, start: float, ramp: Ramp) -> tuple[Piece, ...]:
        """The same path, on which the robot comes to rest: from when on [s], and how."""
        v = self.v(start)
        return tuple(moving(start, segment.times(v)) for segment in ramp.segments)


@dataclass(frozen=True, eq=False)
class CurvedPiece:
    """Velocities that change as a segment of a ramp.

    Args:
        start: when it begins [s].
        segment: their courses, arrays of shape (nv,).
        may_reverse: mask of the coordinates that may turn round in it, or start after a rest,
            shape (nv,).
    """

    start: float
    segment: Segment
    may_reverse: Mask

    def v(self, t: float) -> Array:
        """Velocity, shape (nv,)."""
        return np.asarray(self.segment.v(t - self.start))

    def a(self, t: float) -> Array:
        """Its rate, shape (nv,)."""
        return np.asarray(self.segment.a(t - self.start))


@dataclass(frozen=True, eq=False)
class RecordedPiece:
    """A recorded motion, as it is or slowed down.

    Slowed down, the robot is at time ``t`` where it would have been at the parameter
    ``s = done + way(t - start)`` of its path, and its velocity is ``ds/dt``, the speed of a segment
    of a ramp from 1 to 0, times what it would have been.

    Args:
        start: when it begins [s].
        motion: the recording.
        signal: when the signal comes, in the time of the recording [s].
        joints: which of the recorded joints have a drive that follows, k of them.
        columns: their velocity coordinates, shape (k,).
        may_reverse: mask of the coordinates that may turn round in it, or start after a rest,
            shape (nv,).
        pace: how it slows down; None: the motion goes on as recorded.
        done: where it is on its path when it begins to, as time since the signal [s].
    """

    start: float
    motion: JointTrajectory
    signal: float
    joints: NDArray[np.intp]
    columns: NDArray[np.intp]
    may_reverse: Mask
    pace: Segment | None = None
    done: float = 0.0

    def v(self, t: float) -> Array:
        """Velocity, shape (nv,)."""
        s, rate, _ = self._parameter(t)
        return self._spread(self.motion.rates(self.signal + s)) * rate

    def a(self, t: float) -> Array:
        """Its rate, shape (nv,)."""
        s, rate, change = self._parameter(t)
        a = self._spread(self.motion.accelerations(self.signal + s)) * rate**2
        if change == 0.0:
            return a
        return np.asarray(a + self._spread(self.motion.rates(self.signal + s)) * change)

    def slowed(self, start: float, ramp: Ramp) -> tuple[Piece, ...]:
        """The same path, on which the robot comes to rest, if it is known for so long."""
        self.require_known(start + ramp.whole)
        return tuple(
            replace(self, start=start + x.start, pace=x, done=start + ramp.way(x.start))
            for x in ramp.segments
        )

    def require_known(self, until: float) -> None:
        """Check that the motion is recorded for as long as the robot follows it.

        ``until``: time since the signal [s].
        """
        if self.signal + until > self.motion.end:
            raise BadValue(
                f"the motion ends at {self.motion.end:.6g} s, but a signal at {self.signal:.6g} s "
                f"needs it until {self.signal + until:.6g} s; let the signal come earlier, or "
                "record longer"
            )

    def _parameter(self, t: float) -> tuple[float, float, float]:
        """Parameter of the path, its rate, and the rate of that."""
        if self.pace is None:
            return t, 1.0, 0.0
        past = t - self.start
        values = self.pace.way(past), self.pace.v(past), self.pace.a(past)
        way, rate, change = map(float, values)
        return self.done + way, rate, change

    def _spread(self, values: Array) -> Array:
        full = np.zeros(len(self.may_reverse))
        full[self.columns] = values[self.joints]
        return full


Piece = EvenPiece | CurvedPiece | RecordedPiece
"""A smooth piece of a reference."""


@dataclass(frozen=True, eq=False)
class Reference:
    """A reference.

    Args:
        follows: mask of the velocity coordinates that have a drive, shape (nv,).
        pieces: its smooth pieces in order; the last one goes on for ever.
    """

    follows: Mask
    pieces: tuple[Piece, ...]

    def at(self, t: float) -> Piece:
        """The piece that holds from ``t`` on."""
        begun = [piece for piece in self.pieces if piece.start <= t]
        return begun[-1] if begun else self.pieces[0]

    @property
    def starts(self) -> tuple[float, ...]:
        """Where pieces begin [s]."""
        return tuple(piece.start for piece in self.pieces)

    def stops_by(self, *pieces: Piece) -> Reference:
        """The reference with other pieces after its first."""
        return replace(self, pieces=(self.pieces[0], *pieces))


def rates_at(piece: Piece, t: float | Array) -> Array:
    """Rate of a reference at a time, shape (nv,), or at several of shape (k, 1), then (k, nv)."""
    if not isinstance(t, np.ndarray):
        return piece.a(t)
    return np.array([piece.a(time) for time in t.ravel().tolist()])


def moving(start: float, segment: Segment, may_reverse: Mask | None = None) -> Piece:
    """The piece with the courses of a segment, whose numbers have the shape (nv,).

    ``may_reverse``: mask of the coordinates that may turn round in it; none by default.
    """
    v = np.asarray(segment.speed)
    start += segment.start
    if may_reverse is None and not (np.any(segment.jerk) or np.any(segment.decay)):
        return EvenPiece(start, v, np.asarray(segment.rate))
    never = np.zeros(len(v), dtype=bool)
    return CurvedPiece(start, segment, never if may_reverse is None else may_reverse)


def slow_joints(start: float, ramps: Mapping[int, Ramp], nv: int) -> tuple[Piece, ...]:
    """Bring every joint to rest by its own ramp.

    ``start``: when the ramps begin [s]. ``ramps``: by velocity coordinate; others are at rest.
    ``nv``: number of velocity coordinates.
    """
    begins = {0.0, *(ramp.end for ramp in ramps.values())}
    begins |= {segment.start for ramp in ramps.values() for segment in ramp.segments}
    names = "speed", "rate", "jerk", "decay", "constant"
    reverses = np.zeros(nv, dtype=bool)
    for column, ramp in ramps.items():
        ends = [*(segment.v(0.0) for segment in ramp.segments), 0.0]
        reverses[column] = min(ends) < 0.0 < max(ends)
    pieces = []
    for begin in sorted(begins):
        values = dict(zip(names, np.zeros((5, nv)), strict=True))
        values["constant"] += 1.0
        for column, ramp in ramps.items():
            if (segment := ramp.at(begin)) is not None:
                own = segment.later(begin) if begin > segment.start else segment
                for name in names:
                    values[name][column] = getattr(own, name)
        segment = Segment(begin, **values)
        pieces.append(moving(start, segment, reverses if reverses.any() else None))
    return tuple(pieces)


def ramp_ends(reference: Reference) -> Array:
    """When the drive of each coordinate has come to rest on its ramp [s], NaN where it has none."""
    ends = np.full(len(reference.follows), np.nan)
    for piece, after in zip(reference.pieces[1:-1], reference.pieces[2:], strict=True):
        t = after.start
        done = (piece.v(0.5 * (piece.start + t)) != 0.0) & ~(after.v(t) != 0.0)
        done &= after.a(t) == 0.0
        ends[done] = t
    return ends
