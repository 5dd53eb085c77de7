"""What is stored of a motion: every step, or states at equal intervals; memory grows by that alone.

How a motion goes is not known here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..boundary.marks import Array
from ..errors import BadValue
from ..tolerances import SAME
from .munthe_kaas import ConfigurationGroup, Manifold, RightHandSide, Step
from .polynomials import INNER, hermite

Inside = Callable[[float], tuple[Array, Array, Array]]
"""Configuration, velocity and acceleration at a time inside a step."""

_MOST = 1e7
"""States of a run: some 5 GB."""


class States(NamedTuple):
    """States over time, and the steps in the algebra between them, shape (k - 1, nv).

    Args:
        t: times [s].
        q: configurations.
        v: velocities.
        a: accelerations.
        psi: the steps.
        mode: numbers of the modes.
        inner: `Step.bends` of all steps, shape (k - 1, 3, nv): NaN where they can be computed
            later, infinite where a quintic is good enough; None if that is so everywhere.
    """

    t: Array
    q: Array
    v: Array
    a: Array
    psi: Array
    mode: NDArray[np.int64]
    inner: Array | None = None


class Recorded(NamedTuple):
    """A state of a motion, and what led there.

    Args:
        t: time [s].
        q: configuration, shape (nq,).
        v: velocity, shape (nv,).
        a: acceleration, shape (nv,).
        mode: number of the mode that the state is in.
        psi: the step in the algebra that leads there, shape (nv,); None at the start and after a
            change of the mode, where no step does.
        inside: what lies in that step; None where there is none.
        inner: `Step.bends` of that step, NaN if they can be computed later; None where a quintic is
            good enough.
        a0: acceleration that this step starts with; it is that of the state before from then on.
    """

    t: float
    q: Array
    v: Array
    a: Array
    mode: int
    psi: Array | None = None
    inside: Inside | None = None
    inner: Array | None = None
    a0: Array | None = None


@dataclass(frozen=True, eq=False)
class Segment:
    """Steps, each from where the one before ended.

    Args:
        manifold: the group.
        t: times of their ends, the start first [s], shape (k + 1,).
        q: configurations, shape (k + 1, nq).
        v: velocities, shape (k + 1, nv).
        a: accelerations, shape (k + 1, nv).
        psi: the steps in the algebra, shape (k, nv).
        before: velocities at their ends before these were projected, shape (k, nv).
        notes: after each the size of the next step [s], the error over its tolerance, and the
            regularity of the constraints, now and at its best, shape (k, 4).
        counts: evaluations and rejected steps of each, and whether the constraints may be met by
            other means after it, shape (k, 3).
        follows: right-hand side, see `Step`.
        inner: `Step.bends` of each, shape (k, 3, nv), if they are known.
        events: what happens at their end; None if nobody has looked what happens in them.
    """

    manifold: Manifold
    t: Array
    q: Array
    v: Array
    a: Array
    psi: Array
    before: Array
    notes: Array
    counts: NDArray[np.int64]
    follows: RightHandSide | None = None
    inner: Array | None = None
    events: tuple[Any, ...] | None = None

    def __len__(self) -> int:
        return len(self.psi)

    def part(self, first: int, last: int) -> Segment:
        """The steps from one to another, which is not among them."""
        ends = {name: getattr(self, name)[first : last + 1] for name in "tqva"}
        names = "psi", "before", "notes", "counts", *(["inner"] if self.inner is not None else [])
        steps = {name: getattr(self, name)[first:last] for name in names}
        events = self.events if self.events is None or last == len(self) else ()
        return replace(self, **ends, **steps, events=events)

    def step(self, k: int) -> Step:
        """One of the steps."""
        t0, t1 = self.t[k : k + 2].tolist()
        (q0, q1), (v0, v1), (a0, a1) = ((x[k], x[k + 1]) for x in (self.q, self.v, self.a))
        inner = None if self.inner is None else self.inner[k]
        return Step(self.manifold, t0, t1, q0, v0, a0, self.psi[k], q1, v1, a1, self.follows, inner)

    def quintics(self, columns: NDArray[np.intp]) -> tuple[Array, Array]:
        """`Step.quintic` of coordinates that are no part of a curved group, and sizes of steps.

        Shapes (5, k, columns) and (k, 1).
        """
        h, v, a = np.diff(self.t)[:, None], self.v[:, columns], self.a[:, columns]
        rates, bends = (h * v[:-1], h * v[1:]), (h * h * a[:-1], h * h * a[1:])
        return hermite(self.psi[:, columns], *rates, *bends), h


class EveryStep:
    """Stores the ends of all steps.

    In arrays that grow in place, by a sixteenth: no second copy of them ever exists.

    Args:
        nq: number of configuration coordinates.
        nv: number of velocity coordinates.

    Attributes:
        count: number of the states.
        q: configurations, shape (at least count, nq).
    """

    def __init__(self, nq: int, nv: int) -> None:
        self.count = 0
        self._t = np.empty(0)
        self.q = np.empty((0, nq))
        self._v, self._a, self._psi = (np.empty((0, nv)) for _ in range(3))
        self._mode = np.empty(0, dtype=np.int64)
        self._inner: Array | None = None  # until a step needs it

    @property
    def last(self) -> float | None:
        """Time of the last state [s]; None before the first."""
        return float(self._t[self.count - 1]) if self.count else None

    def add(self, state: Recorded) -> None:
        """Take the next state."""
        n, (t, q, v, a, mode, psi, _, inner, a0) = self.count, state
        if n == len(self._t):
            self._resize(n + n // 16 + 16)
        self._t[n], self.q[n], self._v[n], self._a[n], self._mode[n] = t, q, v, a, mode
        if n:
            self._psi[n - 1] = 0.0 if psi is None else psi
            if a0 is not None:
                self._a[n - 1] = a0
            if self._inner is None and inner is not None:
                self._inner = np.full((len(self._t), len(INNER), len(v)), np.inf)
            if self._inner is not None:
                self._inner[n - 1] = np.inf if inner is None else inner
        self.count = n + 1  # last, so that Ctrl-C leaves no half of a state

    def extend(self, segment: Segment, mode: int) -> None:
        """Take the ends of steps that lead on from the last state."""
        n, end = self.count, self.count + len(segment)
        if end > len(self._t):
            self._resize(end + n // 16 + 16)
        self._t[n:end], self.q[n:end], self._v[n:end] = segment.t[1:], segment.q[1:], segment.v[1:]
        self._a[n:end], self._mode[n:end] = segment.a[1:], mode
        self._psi[n - 1 : end - 1] = segment.psi
        inner = segment.inner
        if inner is None:
            unknown = np.inf if segment.follows is None else np.nan
            inner = np.full_like(segment.psi[:, None], unknown)
        if self._inner is None and not np.isinf(inner).any():
            self._inner = np.full((len(self._t), len(INNER), self._v.shape[1]), np.inf)
        if self._inner is not None:
            self._inner[n - 1 : end - 1] = inner
        self.count = end

    def states(self) -> States:
        """All that is kept; nothing can be added any more, as there is no room left."""
        self._resize(self.count)
        for array in (self._psi, self._inner):
            if array is not None:
                array.resize((max(self.count - 1, 0), *array.shape[1:]), refcheck=False)
        return States(self._t, self.q, self._v, self._a, self._psi, self._mode, self._inner)

    def _resize(self, count: int) -> None:
        """Room for so many states. `numpy.ndarray.resize` moves memory, nobody else has views."""
        if count > _MOST:
            raise BadValue(f"the run has more than {_MOST:g} states; keep fewer (save_every)")
        # Times last: their number is the room that is there, also after Ctrl-C.
        for array in (self._inner, self.q, self._v, self._a, self._psi, self._mode, self._t):
            if array is not None:
                array.resize((count, *array.shape[1:]), refcheck=False)


class Samples:
    """Stores states at ``t_k = t0 + k every``, both sides of every change, and the last state.

    Args:
        nq: number of configuration coordinates.
        nv: number of velocity coordinates.
        manifold: group of the configurations.
        span: start and end of the run [s].
        every: interval [s].
    """

    def __init__(
        self,
        nq: int,
        nv: int,
        manifold: ConfigurationGroup,
        span: tuple[float, float],
        every: float,
    ) -> None:
        start, end = span
        if not 0 < every < np.inf:
            raise BadValue(f"save_every is {every} s; it must be positive")
        if end < np.inf and end - start > _MOST * every:
            raise BadValue(
                f"save_every is {every} s, which gives {(end - start) / every:.3g} states until "
                f"{end:g} s; at most {_MOST:g} are kept"
            )
        self._table, self._manifold = EveryStep(nq, nv), manifold
        self._start, self._every = start, every
        self._number = 1  # of the next sample; the start is kept anyhow
        self._fixed = -np.inf  # time of the last state that is no sample
        self._latest: Recorded | None = None
        # Whether more can be computed later of all steps since the last sample, and before that.
        self._later = self._last_later = True

    def add(self, state: Recorded) -> None:
        """Take the next state; errors of ``inside`` pass through."""
        if state.inside is None:
            self._fix()
        # Before the samples: should one of them fail, the last state is kept nevertheless.
        self._latest = state
        later = state.inner is not None and bool(np.isnan(state.inner).all())
        self._later &= later
        if state.inside is None:
            self._fix()
            self._later = True
            return
        while (time := self._start + self._number * self._every) <= state.t:
            self._number += 1
            if time > self._fixed + SAME * self._every:
                there = state[1:4] if time == state.t else state.inside(time)
                self._append(time, *there, state.mode)
                self._later = later

    @property
    def last(self) -> float | None:
        """Time of the last state [s]; None before the first."""
        return self._table.last if self._latest is None else self._latest.t

    def states(self) -> States:
        """All that is kept; nothing can be added any more."""
        self._fix()
        return self._table.states()

    def _fix(self) -> None:
        """Keep the latest state whatever its time, instead of a sample beside it."""
        if self._latest is None:
            return
        t, last = self._latest.t, self._table.last
        if last is not None and last > self._fixed and last >= t - SAME * self._every:
            self._table.count -= 1
            self._later &= self._last_later
        self._append(*self._latest[:5])
        self._latest, self._fixed = None, t

    def _append(self, t: float, q: Array, v: Array, a: Array, mode: int) -> None:
        table = self._table
        psi = self._manifold.difference(table.q[table.count - 1], q) if table.count else None
        inner = np.full((len(INNER), len(v)), np.nan) if self._later and psi is not None else None
        self._last_later = self._later
        table.add(Recorded(t, q, v, a, mode, psi, inner=inner))


Recording = EveryStep | Samples
"""What stores the states of a motion."""
