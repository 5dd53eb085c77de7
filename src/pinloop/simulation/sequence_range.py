"""How far inputs of a run may change with the same events in the same order, to first order.

What must not become zero is known: times between events, and guards where they are nearest to
zero. How both change with the inputs follows from the maps of the run. A guard that is passed at a
rate ``r`` while that falls, ``g = r t - c t^2 / 2``, has its top at ``r^2 / 2 c``: by so much it
may fall before its event does not happen any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ..boundary.arguments import public
from ..boundary.marks import Array
from ..errors import BadValue
from ..integrate import Guard, Step
from ..tolerances import GUARD_ZERO, ROW_NOISE, SHALLOW
from .events import BoundEvent
from .outcomes import Reading
from .retracing import RetracedRun, State

_BESIDE = 4
"""Into so many parts steps are cut to see how near guards come to zero."""


@public
@dataclass(frozen=True)
class InputRange:
    """How much less and more of an input leaves the sequence of events as it is, to first order.

    Args:
        lower: the change down to which it does, negative or zero; infinite if nothing is near.
        upper: the change up to which it does.
        below: what is else beyond the former; empty if nothing is known.
        above: what is else beyond the latter.
    """

    lower: float
    upper: float
    below: str
    above: str


class Margin(NamedTuple):
    """Something that must not become zero.

    Args:
        what: what is else then.
        value: its value.
        readings: what of it changes with the run, each with its sign.
    """

    what: str
    value: float
    readings: tuple[tuple[float, Reading], ...]


class Approach(NamedTuple):
    """Where a guard is nearest to zero.

    Args:
        guard: the guard.
        value: its value there.
        first: the state at which its piece of the run begins.
        k: the stored state at or before.
        state: where it is.
        where: at the "start" or "end" of the piece, or "inside".
    """

    guard: Guard[BoundEvent]
    value: float
    first: int
    k: int
    state: State
    where: str


def find_margins(run: RetracedRun) -> tuple[list[Margin], list[str]]:
    """All margins of a run, and a sentence for each guard that nearly comes to zero."""
    margins, near = [*_gaps(run), *_tops(run)], []
    for approach, size in _approaches(run):
        label, t = approach.guard.event.label, approach.state[0]
        if approach.where == "inside" and abs(approach.value) < SHALLOW * size:
            near.append(f"'{label}' nearly happens at t = {t:.6g} s: a little more, and it does")
        try:
            reading = _reading(run, approach)
        except BadValue:
            continue  # its reaction is not unique
        what = f"'{label}' happens at t = {t:.6g} s"
        margins.append(Margin(what, approach.value, ((1.0, reading),)))
    return margins, near


def input_ranges(margins: Sequence[Margin], slopes: Array) -> tuple[InputRange, ...]:
    """The range of each input.

    ``slopes``: derivatives of each margin by the inputs, shape (margins, inputs).
    """
    return tuple(_range(margins, column) for column in without_rounding(slopes).T)


def without_rounding(rows: Array) -> Array:
    """Rows without the entries that are rounding beside their largest."""
    sizes = np.abs(np.nan_to_num(rows, posinf=0.0, neginf=0.0))
    return np.where(sizes <= ROW_NOISE * sizes.max(axis=1, initial=0.0)[:, None], 0.0, rows)


def _range(margins: Sequence[Margin], slopes: Array) -> InputRange:
    lower, upper, below, above = -np.inf, np.inf, "", ""
    for margin, rate in zip(margins, slopes.tolist(), strict=True):
        if rate == 0.0 or not np.isfinite(rate):
            continue
        change = -margin.value / rate
        if lower < change <= 0.0:
            lower, below = change, margin.what
        if 0.0 <= change < upper:
            upper, above = change, margin.what
    return InputRange(lower, upper, below, above)


def _instants(run: RetracedRun) -> dict[float, tuple[str, ...]]:
    """Names of what happens, by time."""
    names: dict[float, tuple[str, ...]] = {}
    for instant in run.happenings.instants:
        names[instant.t] = (*names.get(instant.t, ()), *instant.names)
    return dict(sorted(names.items()))


def _gaps(run: RetracedRun) -> Iterator[Margin]:
    """Times between events, before the first and after the last one."""
    t, names = run.run.t, _instants(run)
    places = [(0, "the start")]
    places += [
        (int(np.searchsorted(t, time)), f"'{', '.join(dict.fromkeys(of))}'")
        for time, of in names.items()
    ]
    if float(t[-1]) not in names:
        places.append((len(t) - 1, "the end of the run"))
    for (k0, before), (k1, after) in pairwise(places):
        if (gap := float(t[k1] - t[k0])) > 0.0:
            later = (1.0, _later(run, k1)), (-1.0, _later(run, k0))
            yield Margin(f"{before} and {after} come together", gap, later)


def _later(run: RetracedRun, k: int) -> Reading:
    """By how much later a state is reached."""
    rows = np.eye(1, 1 + 2 * run.run.robot.nv)
    return Reading(k, None, run.run.t[k : k + 1], rows, np.zeros((1, run.count)))


def _tops(run: RetracedRun) -> Iterator[Margin]:
    """How far guards that are passed would go on."""
    for instant in run.happenings.instants:
        k = int(np.searchsorted(run.run.t, instant.t))
        if instant.timed or not instant.guards or k == 0:
            continue
        step = run.step(k - 1)
        end = run.state(k)
        guard = min(instant.guards, key=lambda guard: abs(guard.at(*end)))
        rate, bend = _passing(guard, step)
        if rate * bend < 0.0:
            top = -0.5 * rate**2 / bend
            what = f"'{guard.event.label}' does not happen at t = {instant.t:.6g} s"
            yield Margin(what, top, ((-rate, _later(run, k)),))


def _passing(guard: Guard[BoundEvent], step: Step) -> tuple[float, float]:
    """Rate of a guard at the end of a step, and the rate of that."""
    h = (step.t1 - step.t0) / _BESIDE
    times = [step.t1 - k * h for k in range(3)]
    now, before, earlier = (guard.at(t, *step(t)) for t in times)
    bend = (now - 2.0 * before + earlier) / h**2
    return (now - before) / h + 0.5 * h * bend, bend


def _reading(run: RetracedRun, approach: Approach) -> Reading:
    """How a guard changes where it is nearest to zero."""
    piece, t = run.piece(approach.first), approach.state[0]
    slopes = run.guard_slopes(piece, approach.guard, approach.state)
    rows = np.append(slopes.by_time, slopes.by_state)[None]
    beyond = None if t == run.run.t[approach.k] else run.beyond(approach.k, t)[0]
    return Reading(approach.k, beyond, np.array([approach.value]), rows, slopes.by_parameters[None])


def _approaches(run: RetracedRun) -> Iterator[tuple[Approach, float]]:
    """Where guards are nearest to zero without passing it, and how large they become."""
    t, names = run.run.t, _instants(run)
    starts = [0, *(np.flatnonzero(np.diff(t) == 0.0) + 1).tolist()]
    for (first, after), (_, guards) in zip(
        pairwise([*starts, len(t)]), run.happenings.watched, strict=True
    ):
        places, states = [first], [run.state(first)]
        for k in range(first, after - 1):
            step = run.step(k)
            times = np.linspace(step.t0, step.t1, _BESIDE + 1)[1:-1].tolist()
            states += [*((time, *step(time)) for time in times), run.state(k + 1)]
            places += [*(k for _ in times), k + 1]
        own = {*names.get(float(t[first]), ()), *names.get(float(t[after - 1]), ())}
        for guard in guards.guards:
            values = np.array([guard.at(*state) for state in states])
            sizes = np.abs(values)
            for i in _nearest(values, guard.direction):
                where = {0: "start", len(states) - 1: "end"}.get(i, "inside")
                # Own events of a piece are at zero at its ends, within a step.
                beside = min(i, len(states) - 1 - i) <= _BESIDE
                if sizes[i] <= GUARD_ZERO * sizes.max() or (beside and guard.event.label in own):
                    continue
                if guard.accept is None or guard.accept(*states[i]):
                    found = Approach(guard, float(values[i]), first, places[i], states[i], where)
                    yield found, float(sizes.max())


def _nearest(values: Array, direction: int) -> list[int]:
    """Where a guard is nearest to zero, and would pass it in its direction beyond."""
    sizes, last = np.abs(values), len(values) - 1
    places = [i for i in range(1, last) if sizes[i - 1] > sizes[i] < sizes[i + 1]]
    if last > 0 and sizes[0] < sizes[1] and direction * values[0] >= 0.0:
        places.insert(0, 0)
    if last > 0 and sizes[last] < sizes[last - 1] and direction * values[last] <= 0.0:
        places.append(last)
    return places
