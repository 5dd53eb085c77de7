"""A guard, and where it passes through zero in a step; no robot is known here.

Between its ends a step is known by its interpolant. A guard that compares a coordinate with a level
is a polynomial there. Of any other guard a polynomial is made from its values at Chebyshev's
points, on pieces that are halved until it follows closely. A polynomial passes through zero at most
once between two of its extrema: pairs of zeros are found however close together they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import scipy
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from ..boundary.marks import Array
from ..tolerances import EVENT_FIT, LAST_BITS, REAL_ROOT, ROOT_SHARE
from .munthe_kaas import Step
from .polynomials import COARSE, FINE, value_powers

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


class Scan(NamedTuple):
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


def scan_guard(
    guard: Guard[E], curve: GuardCurve[E], step: Step, start: tuple[float, float], end: float
) -> Scan:
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
            state = time_at(step, root)
            if guard.direction in (0, int(here)) and (
                guard.accept is None or guard.accept(state, *step(state))
            ):
                return Scan(passages, True, min(left, root), first_side)
        if value * (here or side) > 0.0:
            last = part
        side = here or side
    return Scan(passages, False, left, first_side)


def _root(curve: GuardCurve[E], a: float, b: float, side: float, *, past: bool) -> float:
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


class PolynomialCurve:
    """A guard along a step that is a polynomial; ``size`` is how large it is.

    Args:
        powers: its coefficients in falling powers.
        hull: those in Bernstein's basis; where they rise or fall, so does the polynomial.
    """

    def __init__(self, powers: list[float], hull: list[float]) -> None:
        self.size, self._powers = 0.0, powers
        self._monotone = hull in (sorted(hull), sorted(hull, reverse=True))

    def value(self, part: float) -> float:
        """Its value at a part of the step."""
        # Of so few numbers Python's sums are several times as fast as NumPy's.
        x = 0.0
        for c in self._powers:
            x = x * part + c
        return x

    def nodes(self, end: float) -> Iterator[Node]:
        """Parts of the step between which there is at most one zero, in order.

        As long as the error of a value cannot change its sign, the function need not be asked.
        """
        if not self._monotone:
            slopes = np.arange(len(self._powers) - 1.0, 0.0, -1.0) * self._powers[:-1]
            for part in unit_roots(slopes):
                if part < end:
                    yield part, self.value(part), 0.0
        yield end, self.value(end), 0.0


class FunctionCurve(Generic[E]):
    """A guard that is any function of the state, or the largest of several; see above."""

    def __init__(self, guard: Guard[E], step: Step) -> None:
        self.size, self._guard, self._step = 0.0, guard, step
        self._ways = np.abs(step.quintic).sum(axis=1)

    def value(self, part: float) -> float:
        """See `PolynomialCurve`."""
        t = time_at(self._step, part)
        return self._guard.at(t, *self._step(t))

    def nodes(self, end: float) -> Iterator[Node]:
        """See `PolynomialCurve`."""
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
        rows = [value(time_at(step, part), q, v) for part, q, v in states]
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


GuardCurve = PolynomialCurve | FunctionCurve[E]


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


def time_at(step: Step, part: float) -> float:
    """Time at a part of a step [s]."""
    return step.t1 if part == 1.0 else step.t0 + part * (step.t1 - step.t0)


def unit_roots(powers: NDArray[np.floating[Any]]) -> list[float]:
    """Real roots inside (0, 1), rising; highest power first."""
    roots = np.roots(powers)
    real = roots.real[np.abs(roots.imag) < REAL_ROOT]
    return sorted(float(root) for root in real if 0.0 < root < 1.0)
