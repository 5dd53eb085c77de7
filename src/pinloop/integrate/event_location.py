"""Where functions of the state pass through zero in a step; no robot is known here.

Between its ends a step is known by its interpolant. A guard that compares a coordinate with a level
is a polynomial there. Of any other guard a polynomial is made from its values at Chebyshev's
points, on pieces that are halved until it follows closely. A polynomial passes through zero at most
once between two of its extrema: pairs of zeros are found however close together they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import scipy
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from ..boundary.marks import Array
from ..tolerances import (
    EVENT_FIT,
    GUARD_BAND,
    GUARD_ROUNDING,
    LAST_BITS,
    REAL_ROOT,
    ROOT_SHARE,
)
from .munthe_kaas import Step
from .polynomials import COARSE, FINE, Bernstein, value_powers
from .recording import Segment

E = TypeVar("E")
Node = tuple[float, float, float]
"""Part of a step, value of a guard there, and the error of that."""

TURN = 2.0
"""How far all coordinates together may go in a piece of a step [rad]; why is said in `loads`."""
_PIECES = 8
"""Most pieces to begin with."""
_HALVINGS = 64
"""So often pieces are halved in one step, for one guard, to follow it closely."""
_SHORTEST = 2.0**-12
"""Pieces that are shorter, as part of a step, are not halved."""
_DOUBT = 0.1
"""By what part of its change in a step a coordinate may miss its quintic, of a method of higher
order; of steps with `rtol` 1e-3 it was 0.03 at most."""


@dataclass(frozen=True)
class Coordinate:
    """A coordinate, or its speed, compared with a level: ``sign (x - level)``.

    Args:
        column: velocity coordinate, of a joint that is no part of a curved group.
        q_index: its coordinate in q; None for its speed.
        sign: see above.
        level: see above.
    """

    column: int
    q_index: int | None
    sign: float
    level: float

    def __call__(self, t: float, q: Array, v: Array) -> float:
        """Its value at a state."""
        x = v[self.column] if self.q_index is None else q[self.q_index]
        return float(self.sign * (x - self.level))


@dataclass(frozen=True, eq=False)
class Guard(Generic[E]):
    """A function of the state whose zeros are events.

    Args:
        event: what happens then; it is handed on as it is.
        value: function of t, q, v; of several numbers the largest counts.
        direction: +1 rising zeros only, -1 falling ones, 0 both.
        one_sided: whether it is yet to happen wherever it begins to be watched: a guard that starts
            beyond zero has just been there.
        slack: of a one-sided guard, how far beyond zero that may be; rounding of where it starts by
            default. Of one with no slack at all the event is no instant too early.
        accept: whether a zero that was found counts, a function of t, q, v.
        in_reach: whether there may be a zero in a step; looked at first.
        accuracy: what of each number is nothing, besides what is small against its size.
        enough: size that is zero where a step to it ends.
        kinked: whether polynomials do not follow it; then it is sampled.
    """

    event: E
    value: Callable[[float, Array, Array], float | Array]
    direction: int = 0
    one_sided: bool = False
    slack: float | None = None
    accept: Callable[[float, Array, Array], bool] | None = None
    in_reach: Callable[[Step], bool] | None = None
    accuracy: Callable[[], Array] | None = None
    enough: float = 0.0
    kinked: bool = False

    def at(self, t: float, q: Array, v: Array) -> float:
        """Its value at a state, the largest of several."""
        value = self.value(t, q, v)
        return float(value.max()) if isinstance(value, np.ndarray) else value


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
        curves: dict[int, _Curve] = {}
        for k, powers, hull in self._in_reach(step, sides, bands, sizes):
            curves[k] = _Polynomial(powers, hull)
        for k in self._others:
            test = self.guards[k].in_reach
            if test is None or test(step):
                curves[k] = _Function(self.guards[k], step)
        if not curves:
            return None, GuardMemory(sides, bands, sizes)
        first, scans = 1.0, {}
        counting: list[int] = []
        tie = GUARD_BAND * max(1.0, abs(step.t1)) / (step.t1 - step.t0)
        for k, curve in curves.items():
            end = min(1.0, first + tie) if counting else 1.0
            scan = _scan(self.guards[k], curve, step, (sides[k], bands[k]), end)
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
        return Crossing(_time(step, first), hits, frozenset(passed)), now

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


class _Scan(NamedTuple):
    """What a guard does in a step.

    Args:
        passages: parts of the step at which it passes through zero, and its side behind; the last
            one is that of an event, if there is one.
        counts: whether there is an event.
        left: from which part of the step on it is off the zero that it was at.
        side: its side there.
    """

    passages: list[tuple[float, float]]
    counts: bool
    left: float
    side: float


class _Curve(Protocol):
    """A guard along a step; ``size`` is how large it is."""

    size: float

    def value(self, part: float) -> float:
        """Its value at a part of the step."""
        ...

    def nodes(self, end: float) -> Iterator[Node]:
        """Parts of the step between which there is at most one zero, in order.

        As long as the error of a value cannot change its sign, the function need not be asked.
        """
        ...


def _scan(
    guard: Guard[E], curve: _Curve, step: Step, start: tuple[float, float], end: float
) -> _Scan:
    """Follow a guard until its event happens.

    Args:
        guard: the guard.
        curve: its values.
        step: the step.
        start: its side and its band at the start of the step.
        end: part of the step up to which it is followed.
    """
    (side, band), last = start, 0.0
    passages: list[tuple[float, float]] = []
    left, first_side = (0.0 if band < 0.0 else np.inf), 0.0
    for part, value, error in curve.nodes(end):
        if value * side <= error + LAST_BITS * curve.size or band >= 0.0:
            value = curve.value(part)
        here = 0.0 if abs(value) <= band else float(np.sign(value))
        if here == 0.0 and band < 0.0 and side and part == 1.0:
            # Exactly at zero where the step ends: does it cross, or only touch?
            beyond = float(np.sign(curve.value(1.001)))
            here = beyond if beyond * side < 0.0 else 0.0
        if here and not np.isfinite(left):
            left, band = part, -1.0
        first_side = first_side or here
        if here * side < 0.0:
            root = _root(curve, last, part, side, past=guard.slack == 0.0)
            passages.append((root, here))
            state = _time(step, root)
            if guard.direction in (0, int(here)) and (
                guard.accept is None or guard.accept(state, *step(state))
            ):
                return _Scan(passages, True, min(left, root), first_side)
        if value * (here or side) > 0.0:
            last = part
        side = here or side
    return _Scan(passages, False, left, first_side)


def _root(curve: _Curve, a: float, b: float, side: float, *, past: bool) -> float:
    """Zero of a guard between two parts of a step, by bisection and secants (Brent).

    Where the guard is steep it is not at zero an instant before; ``past`` is the instant behind.
    """
    # At the start of the bracket the guard may still be at the zero that it came from.
    if curve.value(a) * side <= 0.0:
        return a
    root: float = scipy.optimize.brentq(
        curve.value, a, b, xtol=LAST_BITS, rtol=ROOT_SHARE, maxiter=1000
    )
    beyond = LAST_BITS
    while past and root < b and curve.value(root) * side > 0.0:
        root, beyond = min(root + beyond, b), 2.0 * beyond
    return root


class _Polynomial:
    """A polynomial.

    Args:
        powers: its coefficients in falling powers.
        hull: those in Bernstein's basis; where they rise or fall, so does the polynomial.
    """

    def __init__(self, powers: list[float], hull: list[float]) -> None:
        self.size, self._powers = 0.0, powers
        self._monotone = hull in (sorted(hull), sorted(hull, reverse=True))

    def value(self, part: float) -> float:
        # Of so few numbers Python's sums are several times as fast as NumPy's.
        x = 0.0
        for c in self._powers:
            x = x * part + c
        return x

    def nodes(self, end: float) -> Iterator[Node]:
        if not self._monotone:
            slopes = np.arange(len(self._powers) - 1.0, 0.0, -1.0) * self._powers[:-1]
            for part in unit_roots(slopes):
                if part < end:
                    yield part, self.value(part), 0.0
        yield end, self.value(end), 0.0


class _Function(Generic[E]):
    """Any function of the state, or the largest of several."""

    def __init__(self, guard: Guard[E], step: Step) -> None:
        self.size, self._guard, self._step = 0.0, guard, step
        self._ways = np.abs(step.quintic).sum(axis=1)

    def value(self, part: float) -> float:
        t = _time(self._step, part)
        return self._guard.at(t, *self._step(t))

    def nodes(self, end: float) -> Iterator[Node]:
        turns = float(value_powers(end) @ self._ways) / TURN
        if self._guard.kinked:
            for part in np.linspace(0.0, end, 3 + int(4 * turns))[1:].tolist():
                yield part, self.value(part), 0.0
            return
        ends = np.linspace(0.0, end, 2 + min(int(turns), _PIECES)).tolist()
        waiting = [*zip(ends[-2::-1], ends[:0:-1], strict=True)]
        left = _HALVINGS
        while waiting:
            a, b = waiting.pop()
            nodes = self._piece(a, b, surely=left == 0 or b - a < _SHORTEST)
            if nodes is None:
                middle, left = 0.5 * (a + b), left - 1
                waiting += [(middle, b), (a, middle)]
            else:
                yield from nodes

    def _sampled(self, parts: Array) -> Array:
        """Values at parts of the step, shape (n, k)."""
        step, value = self._step, self._guard.value
        states = zip(parts.tolist(), *step.inside(parts), strict=True)
        rows = [value(_time(step, part), q, v) for part, q, v in states]
        return np.array(rows, dtype=float).reshape(len(parts), -1)

    def _piece(self, a: float, b: float, *, surely: bool) -> list[Node] | None:
        """Nodes of a piece; None if polynomials do not follow the function closely.

        Args:
            a: start of the piece.
            b: end of the piece.
            surely: whether it is taken as it is if they do not.
        """
        values = self._sampled(a + (b - a) * COARSE.points)
        for rule in (COARSE, FINE):
            if rule is FINE:
                coarse = values
                values = np.empty((len(rule.points), coarse.shape[1]))
                values[::2] = coarse
                values[1::2] = self._sampled(a + (b - a) * rule.points[1::2])
            finite = np.isfinite(values).all(axis=0)
            bounded = values[:, finite]
            if not bounded.size:
                return []
            shapes, missed = rule.coefficients @ bounded, rule.missed(bounded)
            size = np.abs(bounded).max(axis=0)
            self.size = max(self.size, float(size.max()))
            clear = np.abs(shapes[0]) > np.abs(shapes[1:]).sum(axis=0) + missed
            if clear.all() or (shapes[0, clear] > 0.0).any():
                return [(b, float(bounded[-1].max()), 0.0)]
            accuracy = self._guard.accuracy
            nothing = 0.0 if accuracy is None else accuracy()[finite]
            close = missed <= nothing + EVENT_FIT * size
            if (close | clear).all():
                return _between_extrema(a, b, shapes[:, ~clear], float(missed.max()))
        if not surely:
            return None
        parts = (a + (b - a) * FINE.points[1:]).tolist()
        return [(part, x, 0.0) for part, x in zip(parts, bounded[1:].max(axis=1), strict=True)]


def _between_extrema(a: float, b: float, shapes: Array, error: float) -> list[Node]:
    """The extrema of polynomials on a piece and its end, the largest of them there, and its error.

    Args:
        a: start of the piece.
        b: end of the piece.
        shapes: coefficients in Chebyshev's polynomials, shape (n, k).
        error: of the polynomials.
    """
    at = {1.0}
    for shape in shapes.T:
        slope = chebyshev.chebder(chebyshev.chebtrim(shape, LAST_BITS * np.abs(shape).max()))
        roots = chebyshev.chebroots(slope)
        at |= {x.real for x in roots.tolist() if abs(x.imag) < REAL_ROOT and abs(x.real) < 1.0}
    x = np.array(sorted(at))
    values = chebyshev.chebval(x, shapes).reshape(-1, len(x)).max(axis=0)
    parts = np.append(a + 0.5 * (b - a) * (x[:-1] + 1.0), b)
    return [(part, y, error) for part, y in zip(parts.tolist(), values.tolist(), strict=True)]


def _time(step: Step, part: float) -> float:
    """Time at a part of a step [s]."""
    return step.t1 if part == 1.0 else step.t0 + part * (step.t1 - step.t0)


def unit_roots(powers: NDArray[np.floating[Any]]) -> list[float]:
    """Real roots inside (0, 1), rising; highest power first."""
    roots = np.roots(powers)
    real = roots.real[np.abs(roots.imag) < REAL_ROOT]
    return sorted(float(root) for root in real if 0.0 < root < 1.0)
