"""What the drives follow while they have power: velocities over time, piece by piece.

Before the command the robot goes on as it was; in categories 1 and 2 it is then brought to rest,
each joint by its own ramp, or all on the path that they were on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Piece", "Reference", "constant", "on_path", "ramps"]

Array = NDArray[np.float64]
Signal = Callable[[float], Array]


@dataclass(frozen=True, eq=False)
class Piece:
    """A smooth piece of a reference.

    Args:
        start: when it begins [s].
        v: velocity over time, shape (nv,).
        a: its rate, shape (nv,).
        may_reverse: mask of the coordinates that may turn round in it, or start after a rest; False
            if none does.
    """

    start: float
    v: Signal
    a: Signal
    may_reverse: NDArray[np.bool_] | bool = False

    def rates(self, t: float | Array) -> Array:
        """Rate of the velocity at a time, shape (nv,), or at several of shape (k, 1), (k, nv)."""
        if not isinstance(t, np.ndarray):
            return self.a(t)
        return np.array([self.a(one) for one in t.ravel().tolist()])


@dataclass(frozen=True, eq=False)
class Reference:
    """A reference.

    Args:
        follows: mask of the velocity coordinates that have a drive, shape (nv,).
        pieces: its smooth pieces in order; the last one goes on for ever.
    """

    follows: NDArray[np.bool_]
    pieces: tuple[Piece, ...]

    def at(self, t: float) -> Piece:
        """The piece that holds from ``t`` on."""
        held = [piece for piece in self.pieces if piece.start <= t]
        return held[-1] if held else self.pieces[0]

    @property
    def starts(self) -> tuple[float, ...]:
        """Where pieces begin [s]."""
        return tuple(piece.start for piece in self.pieces)


def constant(start: float, v: Array) -> Piece:
    """Go on at the velocity ``v``."""
    rest = np.zeros_like(v)
    return Piece(start, lambda t: v, lambda t: rest)


def ramps(start: float, v: Array, times: Array) -> tuple[Piece, ...]:
    """Bring every joint to rest at a constant deceleration of its own.

    Args:
        start: when the ramps begin [s].
        v: velocity there, shape (nv,).
        times: how long each joint takes [s], shape (nv,); joints at rest are not looked at.
    """
    moving = v != 0.0
    ends = start + np.where(moving, times, 0.0)

    def piece(begin: float) -> Piece:
        running = moving & (ends > begin)
        a = np.where(running, -v / np.where(running, times, 1.0), 0.0)
        offset = np.where(running, v, 0.0)
        return Piece(begin, lambda t: offset + a * (t - start), lambda t: a)

    return tuple(piece(begin) for begin in sorted({start, *ends[moving].tolist()}))


def on_path(
    start: float,
    duration: float,
    slope: Signal,
    bend: Signal,
    may_reverse: NDArray[np.bool_] | bool = False,
) -> tuple[Piece, ...]:
    """Slow down along a path evenly: its parameter runs at 1 at first, at 0 at the end.

    Args:
        start: when the robot begins to slow down [s].
        duration: how long it takes [s].
        slope: first derivative of the path by its parameter, a function of the parameter.
        bend: second derivative.
        may_reverse: see `Piece`.
    """

    def parameter(t: float) -> tuple[float, float]:
        past = t - start
        return start + past - 0.5 * past**2 / duration, 1.0 - past / duration

    def v(t: float) -> Array:
        s, rate = parameter(t)
        return slope(s) * rate

    def a(t: float) -> Array:
        s, rate = parameter(t)
        return bend(s) * rate**2 - slope(s) / duration

    rest = 0.0 * slope(start)
    return Piece(start, v, a, may_reverse), constant(start + duration, rest)
