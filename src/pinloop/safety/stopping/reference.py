"""What the drives follow while they have power: velocities over time, piece by piece.

Before the command the robot goes on as it was; in categories 1 and 2 it is then brought to rest,
each joint by its own ramp, or all on the path that they were on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...boundary.marks import Array, Mask
from ...errors import BadValue
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

    def slowed(self, start: float, duration: float) -> EvenPiece:
        """The same path, on which the robot comes evenly to rest: from when, and how long [s]."""
        return EvenPiece(start, self.v(start), -self.v(start) / duration)


@dataclass(frozen=True, eq=False)
class RecordedPiece:
    """A recorded motion, as it is or slowed down evenly.

    Slowed down, the robot is at time ``t`` where it would have been at the parameter
    ``s = start + past - past^2 / (2 duration)`` of its path, with ``past = t - start``, and its
    velocity is ``ds/dt = 1 - past / duration`` times what it would have been.

    Args:
        start: when it begins [s].
        motion: the recording.
        signal: when the signal comes, in the time of the recording [s].
        joints: which of the recorded joints have a drive that follows, k of them.
        columns: their velocity coordinates, shape (k,).
        may_reverse: mask of the coordinates that may turn round in it, or start after a rest,
            shape (nv,).
        duration: how long it takes to slow down [s]; infinite: the motion goes on as recorded.
    """

    start: float
    motion: JointTrajectory
    signal: float
    joints: NDArray[np.intp]
    columns: NDArray[np.intp]
    may_reverse: Mask
    duration: float = np.inf

    def v(self, t: float) -> Array:
        """Velocity, shape (nv,)."""
        s, rate = self._parameter(t)
        return self._spread(self.motion.rates(self.signal + s)) * rate

    def a(self, t: float) -> Array:
        """Its rate, shape (nv,)."""
        s, rate = self._parameter(t)
        a = self._spread(self.motion.accelerations(self.signal + s)) * rate**2
        if np.isinf(self.duration):
            return a
        return np.asarray(a - self._spread(self.motion.rates(self.signal + s)) / self.duration)

    def slowed(self, start: float, duration: float) -> RecordedPiece:
        """The same path, on which the robot comes evenly to rest, if it is known for so long."""
        # Slowing down evenly the robot goes half as far on its path as at its speed.
        self.require_known(start + 0.5 * duration)
        return replace(self, start=start, duration=duration)

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

    def _parameter(self, t: float) -> tuple[float, float]:
        """Parameter of the path, and its rate."""
        past = t - self.start
        return self.start + past - 0.5 * past**2 / self.duration, 1.0 - past / self.duration

    def _spread(self, values: Array) -> Array:
        full = np.zeros(len(self.may_reverse))
        full[self.columns] = values[self.joints]
        return full


Piece = EvenPiece | RecordedPiece
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


def slow_joints(start: float, v: Array, times: Array) -> tuple[Piece, ...]:
    """Bring every joint to rest at a constant deceleration of its own.

    ``start``: when the ramps begin [s]. ``v``: velocity there, shape (nv,). ``times``: how long
    each joint takes [s], shape (nv,); joints at rest are not looked at.
    """
    moving = v != 0.0
    ends = start + np.where(moving, times, 0.0)

    def piece(begin: float) -> Piece:
        running = moving & (ends > begin)
        a = np.where(running, -v / np.where(running, times, 1.0), 0.0)
        return EvenPiece(begin, np.where(running, v, 0.0) + a * (begin - start), a)

    return tuple(piece(begin) for begin in sorted({start, *ends[moving].tolist()}))
