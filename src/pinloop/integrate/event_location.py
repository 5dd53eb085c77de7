"""What happens first in a step, of all that is watched; no robot is known here.

Of guards that are coordinates the control points of their polynomials tell most often that nothing
happens; the others are followed through the step, see `guards`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from ..boundary.marks import Array
from ..tolerances import GUARD_BAND, GUARD_ROUNDING
from .guards import (
    Coordinate,
    FunctionCurve,
    Guard,
    GuardCurve,
    PolynomialCurve,
    scan_guard,
    time_at,
)
from .munthe_kaas import Step
from .polynomials import Bernstein
from .recording import Segment

E = TypeVar("E")

_DOUBT = 0.1
"""By what part of its change in a step a coordinate may miss its quintic, of a method of higher
order; of steps with `rtol` 1e-3 it was 0.03 at most."""


class GuardMemory(NamedTuple):
    """What is remembered of guards from one step to the next, each of shape (k,).

    Args:
        sides: sign of each where it was last off zero; 0 where it has never been.
        bands: how far a guard whose event has just happened must get to be off zero, as roots have
            an error; -1 of those that are off it.
        sizes: how large each was in the last step, for what is rounding.
    """

    sides: Array
    bands: Array
    sizes: Array


class Crossing(NamedTuple, Generic[E]):
    """What happens first in a step.

    Args:
        t: when, on the dense output [s].
        guards: the guards whose events happen, one at least.
        passed: numbers of all guards that are at zero there, also those whose events do not count.
    """

    t: float
    guards: tuple[Guard[E], ...]
    passed: frozenset[int]


class Guards(Generic[E]):
    """The guards that are watched in a mode.

    Args:
        guards: the guards.
    """

    def __init__(self, guards: Sequence[Guard[E]]) -> None:
        self.guards = tuple(guards)
        values = [(k, guard.value) for k, guard in enumerate(self.guards)]
        simple = [
            (k, x.column, -1 if x.q_index is None else x.q_index, x.sign, x.level)
            for k, x in values
            if isinstance(x, Coordinate)
        ]
        self._others = [k for k, x in values if not isinstance(x, Coordinate)]
        self._remember = False in [guard.one_sided for guard in self.guards]
        table = np.array(simple, dtype=float).reshape(-1, 5).T
        self._simple, self._columns, indices = table[:3].astype(np.intp)
        self._signs, self._levels = table[3:]
        self._speeds, self._angles = indices < 0, indices >= 0
        self._indices = indices[self._angles]

    @property
    def unknown(self) -> GuardMemory:
        """What is remembered of guards that have never been looked at."""
        count = len(self.guards)
        return GuardMemory(np.zeros(count), np.full(count, -1.0), np.zeros(count))

    def look(
        self, t: float, q: Array, v: Array, before: tuple[Guards[E], GuardMemory]
    ) -> GuardMemory:
        """See on which sides of zero the guards are where they begin to be watched.

        Args:
            t: time [s].
            q: configuration, shape (nq,).
            v: velocity, shape (nv,).
            before: the guards that were watched until now, and what is remembered of them.
        """
        memory = sides, bands, sizes = self.unknown
        known: dict[int, int] = {}
        if self._remember:
            known = {id(guard): k for k, guard in enumerate(before[0].guards)}
        at = self._coordinates(q, v)
        for k, guard in enumerate(self.guards):
            value = at.get(k)
            if guard.one_sided:
                sides[k] = -guard.direction
                if guard.slack == 0.0:
                    continue
                beyond = guard.direction * (guard.at(t, q, v) if value is None else value)
                if guard.slack is not None:
                    bands[k] = guard.slack if abs(beyond) <= guard.slack else -1.0
                elif beyond >= 0.0:
                    bands[k] = 2.0 * beyond + GUARD_ROUNDING
                continue
            if (old := known.get(id(guard))) is not None:
                sides[k], bands[k], sizes[k] = (part[old] for part in before[1])
            value = guard.at(t, q, v) if value is None else value
            if value == 0.0:
                # The change has put it there, or the motion starts there: no zero to be found.
                bands[k] = max(bands[k], 0.0)
            if abs(value) > bands[k]:
                sides[k], bands[k] = np.sign(value), -1.0
        return memory

    def _coordinates(self, q: Array, v: Array) -> dict[int, float]:
        """Values of the guards that are coordinates, by their numbers."""
        if not len(self._simple):
            return {}
        x = v[self._columns]
        x[self._angles] = q[self._indices]
        values = self._signs * (x - self._levels)
        return dict(zip(self._simple.tolist(), values.tolist(), strict=True))

    def note(
        self, crossing: Crossing[E], memory: GuardMemory, t: float, q: Array, v: Array
    ) -> GuardMemory:
        """Remember how far from zero the guards are whose events are about to happen."""
        bands = memory.bands.copy()
        for k in crossing.passed:
            if not self.guards[k].one_sided:  # else it does not matter where it has been
                bands[k] = 10 * abs(self.guards[k].at(t, q, v)) + GUARD_BAND * memory.sizes[k]
        return memory._replace(bands=bands)

    def locate(self, step: Step, memory: GuardMemory) -> tuple[Crossing[E] | None, GuardMemory]:
        """What happens first in a step, and what is remembered there, or at its end."""
        if not self.guards:
            return None, memory
        sides, bands, sizes = (part.copy() for part in memory)
        curves: dict[int, GuardCurve[E]] = {}
        for k, powers, hull in self._in_reach(step, sides, bands, sizes):
            curves[k] = PolynomialCurve(powers, hull)
        for k in self._others:
            test = self.guards[k].in_reach
            if test is None or test(step):
                curves[k] = FunctionCurve(self.guards[k], step)
        if not curves:
            return None, GuardMemory(sides, bands, sizes)
        first, scans = 1.0, {}
        counting: list[int] = []
        tie = GUARD_BAND * max(1.0, abs(step.t1)) / (step.t1 - step.t0)
        for k, curve in curves.items():
            end = min(1.0, first + tie) if counting else 1.0
            scan = scan_guard(self.guards[k], curve, step, (sides[k], bands[k]), end)
            scans[k] = scan
            if scan.counts:
                counting.append(k)
                first = min(first, scan.passages[-1][0])
        last = min(1.0, first + tie) if counting else 1.0
        passed = set()
        for k, scan in scans.items():
            passages = [side for part, side in scan.passages if part <= last]
            if passages:
                passed.add(k)
                sides[k] = passages[-1]
            else:
                sides[k] = sides[k] or (scan.side if scan.left <= last else 0.0)
            if scan.left <= last:
                bands[k] = -1.0
            sizes[k] = max(sizes[k], curves[k].size)
        now = GuardMemory(sides, bands, sizes)
        if not counting:
            return None, now
        hits = tuple(self.guards[k] for k in counting if scans[k].passages[-1][0] <= last)
        return Crossing(time_at(step, first), hits, frozenset(passed)), now

    def clear(self, segment: Segment, memory: GuardMemory) -> tuple[int, GuardMemory]:
        """Number of the first steps in which nothing can happen, and what is remembered then.

        Of guards that are no coordinates that is not known.
        """
        if not self.guards or self._others:
            return 0 if self._others else len(segment), memory
        quintics, h = segment.quintics(self._columns)
        _, hull = self._polynomials(segment.q[:-1], h, quintics)
        sides, bands, sizes = (part.copy() for part in memory)
        here, least = self._simple, np.zeros(hull.shape[1:])
        least[0] = np.maximum(bands[here], 0.0)
        if segment.follows is not None:
            least += _DOUBT * np.ptp(hull, axis=0)
        off = ((sides[here] * hull).min(axis=0) > least).all(axis=1)
        if (count := len(off) if off.all() else int(off.argmin())) == 0:
            return 0, memory
        bands[here], sizes[here] = -1.0, np.abs(hull[:, count - 1]).max(axis=0)
        return count, GuardMemory(sides, bands, sizes)

    def _in_reach(
        self, step: Step, sides: Array, bands: Array, sizes: Array
    ) -> list[tuple[int, list[float], list[float]]]:
        """Coordinates that may come to their level in a step, and their polynomials.

        A polynomial stays between its coefficients in Bernstein's basis.
        """
        if not len(self._simple):
            return []
        here, doubt = self._simple, 0.0 if step.follows is None else _DOUBT
        q0, h = step.q0, step.t1 - step.t0
        p = step.quintic if step.follows else step.polynomial
        powers, hull = self._polynomials(q0, h, p[:, self._columns])
        sizes[here] = np.abs(hull).max(axis=0)
        least = np.maximum(bands[here], 0.0)
        if doubt:
            least += doubt * np.ptp(hull, axis=0)
        off = (sides[here] * hull).min(axis=0) > least
        bands[here[off]] = -1.0
        if off.all():
            return []
        if doubt:
            powers, hull = self._polynomials(q0, h, step.polynomial[:, self._columns])
        near = (~off).nonzero()[0]
        polynomials = powers[::-1, near].T.tolist(), hull[:, near].T.tolist()
        return [*zip(here[near].tolist(), *polynomials, strict=True)]

    def _polynomials(self, q0: Array, h: float | Array, p: Array) -> tuple[Array, Array]:
        """Coefficients of the coordinates above their levels, and their control points.

        Args:
            q0: configuration where a step starts, shape (nq,), or (k, nq) of several.
            h: its size [s], or (k, 1).
            p: coefficients of the coordinates of the guards, shape (d, n) or (d, k, n).
        """
        powers, basis = np.zeros((len(p) + 1, *p.shape[1:])), Bernstein.of(len(p))
        angles, speeds = self._angles, self._speeds
        powers[0][..., angles] = q0[..., self._indices]
        powers[1:][..., angles] = p[..., angles]
        powers[:-1][..., speeds] = (np.arange(1, len(p) + 1) * (p[..., speeds] / h).T).T
        powers[0] -= self._levels
        powers *= self._signs
        hull = basis.of_powers @ powers.reshape(len(powers), -1)
        return powers, hull.reshape(powers.shape)
