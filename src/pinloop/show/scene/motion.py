"""What happens in a run when: frames of a replay, locks, open loops."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ...errors import BadValue
from ...simulation.modes import Mode
from ...simulation.trajectory import Trajectory

__all__ = [
    "checked_times",
    "frame_times",
    "mode_spans",
    "modes_at",
    "opened_spans",
    "standing_spans",
    "states_at",
]

Array = NDArray[np.float64]
Spans = tuple[tuple[float, float], ...]

_RATE, _FEWEST, _MOST = 60.0, 40, 2400
"""Frames per second of motion, and how many there are at least and at most."""


def frame_times(
    run: Trajectory, until: float = np.inf, *, rate: float = _RATE, most: int = _MOST
) -> Array:
    """Times of the frames of a run [s]: even ones, and those at which its mode changes.

    Args:
        run: the motion.
        until: end of what is shown [s].
        rate: frames per second of motion.
        most: how many even frames there are at most.
    """
    start, end = float(run.t[0]), max(min(float(run.t[-1]), until), float(run.t[0]))
    count = int(np.clip(np.ceil(rate * (end - start)), min(_FEWEST, most), most))
    changes = run.t[1:][np.diff(run.mode) != 0]
    changes = changes[changes < end][:: 1 + len(changes) // most]
    return np.union1d(np.linspace(start, end, count + 1), changes)


def checked_times(run: Trajectory, times: Iterable[float], what: str) -> tuple[float, ...]:
    """Times in s, after a check that they are within the run."""
    start, end = float(run.t[0]), float(run.t[-1])
    values = []
    for time in times:
        try:
            value = float(time)
        except (TypeError, ValueError):
            raise BadValue(f"the time of {what} is {time!r}; give seconds") from None
        if not start <= value <= end:
            raise BadValue(
                f"{what} at {value:.6g} s is outside the run, which goes from {start:.6g} to "
                f"{end:.6g} s"
            )
        values.append(value)
    return tuple(values)


def states_at(run: Trajectory, t: Array) -> NDArray[np.int64]:
    """Number of the last stored state at or before each time, shape (k,)."""
    return np.searchsorted(run.t, t, side="right") - 1


def modes_at(run: Trajectory, t: Array) -> NDArray[np.int64]:
    """Number of the mode at each time: where it changes, that which begins, shape (k,)."""
    return np.asarray(run.mode[states_at(run, t)], dtype=np.int64)


def standing_spans(run: Trajectory) -> dict[str, Spans]:
    """Per joint that is locked as a whole at some time the spans in which it is, in s."""
    locked = (tuple(lock.joint for lock in mode.locks if not lock.axes) for mode in run.modes)
    spans = _spans(run, tuple(locked))
    return {name: spans[name] for name in run.robot.joints if name in spans}


def opened_spans(run: Trajectory) -> dict[str, Spans]:
    """Per loop joint that is open at some time the spans in which it is, in s."""
    spans = _spans(run, tuple(tuple(mode.opened) for mode in run.modes))
    return {loop.name: spans[loop.name] for loop in run.robot.loops if loop.name in spans}


def _spans(run: Trajectory, names: tuple[tuple[str, ...], ...]) -> dict[str, Spans]:
    """Spans of time in which what is named per mode holds."""
    by_name: dict[str, list[tuple[float, float]]] = {}
    ends = np.append(run.t[1:], run.t[-1])
    for number, start, end in zip(run.mode, run.t, ends, strict=True):
        for name in names[number]:
            spans = by_name.setdefault(name, [])
            if spans and spans[-1][1] == start:
                spans[-1] = (spans[-1][0], float(end))
            else:
                spans.append((float(start), float(end)))
    # A joint that sticks for no time at all, because others decide otherwise, does not stand.
    last = float(run.t[-1])
    lasting = {
        name: tuple((a, b) for a, b in spans if b > a or a == last)
        for name, spans in by_name.items()
    }
    return {name: spans for name, spans in lasting.items() if spans}


def mode_spans(run: Trajectory) -> list[tuple[float, str]]:
    """When each mode begins [s], and in words what is locked and open in it."""
    numbers = modes_at(run, run.t)
    starts = np.flatnonzero(np.append([True], np.diff(numbers) != 0))
    spans: list[tuple[float, str]] = []
    for k in starts:
        words = _in_words(run.modes[numbers[k]])
        # Modes that differ in the rows that hold the loops are one to whoever looks on.
        if not spans or words != spans[-1][1]:
            spans.append((float(run.t[k]), words))
    return spans


def _in_words(mode: Mode) -> str:
    locks = [
        f"{lock.joint} ({', '.join(lock.axes)})" if lock.axes else lock.joint for lock in mode.locks
    ]
    parts = [f"locked: {', '.join(locks)}"] if locks else []
    if mode.opened:
        parts.append(f"open: {', '.join(sorted(mode.opened))}")
    return "; ".join(parts) or "nothing locked"
