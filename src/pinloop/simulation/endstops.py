"""End stops of a run: joints hit the limits of their ranges, rest on them, are let go.

All end stops that joints are at are decided together, twice: velocities after an impact, then which
of them push. Both are Gauss' principle with one-sided rows (`stick_slip`): the first with momenta
for forces. Whoever steps asks at the instants that the events here find.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..boundary.marks import Array, Mask
from ..constraints.rows import Locked
from ..dynamics import EquationsOfMotion
from ..dynamics.stick_slip import Contacts, solve_stick_slip
from ..integrate import Guard
from ..linalg.saddle import Saddle
from ..tolerances import AT_LIMIT, HELD_SHARE, LOW_BOUNCE, NO_PULL, NO_SPEED
from .events import BoundEvent, Impact, Touch
from .friction import DryFriction
from .limits import JointEnd
from .modes import BoundRow, ModalSystem, Mode
from .transitions import Jump, Transition, ranks_of, recorded, warn_if_singular

_REBOUNDS = 100
"""So often end stops that are hit together may throw joints at each other before all is lost."""


@dataclass(frozen=True, eq=False)
class _Touched:
    """The coordinates that are at an end stop, and the directions in which these can push.

    Args:
        columns: velocity coordinates, k of them.
        up: mask of those at a lower end, shape (k,).
        down: mask of those at an upper end; where a range has no width, both.
    """

    columns: NDArray[np.intp]
    up: Mask
    down: Mask

    def contacts(self, which: Mask | None = None, held: Mask | bool = False) -> Contacts:
        """These end stops as contacts at rest.

        Args:
            which: mask of those that count; all by default.
            held: mask of those that hold both ways.
        """
        which = np.ones(len(self.columns), dtype=bool) if which is None else which
        low = np.where(self.down | held, -np.inf, 0.0)[which]
        high = np.where(self.up | held, np.inf, 0.0)[which]
        zeros = np.zeros(len(low))
        return Contacts(self.columns[which], zeros, low, high, zeros, zeros)

    def pushing(self, which: Mask) -> NDArray[np.int64]:
        """Directions in which some of these push, 0 for the others."""
        return np.where(which, np.where(self.up, 1, -1), 0).astype(np.int64)

    def inward(self, v: Array) -> Array:
        """Rates away from the end stops; nothing is, where a range has no width."""
        rate = v[self.columns]
        return np.where(self.up & self.down, -np.abs(rate), np.where(self.up, rate, -rate))


_Hit = tuple[NDArray[np.int64], float]
"""Directions in which end stops push in an impact, and its restitution."""


class RestingEnds(NamedTuple):
    """What is to be known of end stops on which joints rest, besides those that are rows.

    Args:
        implied: those that need no row because other rows do their work.
        noise: what of their pull is rounding [N m, N].
    """

    implied: frozenset[JointEnd]
    noise: float


NONE_TOUCHED = RestingEnds(frozenset(), 0.0)
"""No joint rests on an end stop."""


@dataclass(frozen=True, eq=False)
class Pull:
    """How much an end stop would have to pull [N m, N].

    Args:
        system: equations of motion by mode.
        mode: mode in which a joint rests on the end stop.
        label: label of its row.
        sign: 1 of an upper end, -1 of a lower one.
        noise: what of the pull is rounding.
    """

    system: ModalSystem
    mode: Mode
    label: str
    sign: int
    noise: float

    def __call__(self, t: float, q: Array, v: Array) -> float:
        """The pull, beyond what is rounding."""
        return self.sign * self.system.row_reaction(self.mode, self.label, t, q, v) - self.noise

    def bound_row(self, t: float, q: Array, v: Array) -> BoundRow:
        """Its row."""
        equations = self.system.equations(self.mode)
        return BoundRow(equations, equations.rows.labels.index(self.label), float(self.sign))


class EndStopContacts:
    """The end stops of a run."""

    def __init__(
        self,
        system: ModalSystem,
        ends: Sequence[JointEnd],
        restitution: float,
        friction: DryFriction | None = None,
    ) -> None:
        self._system, self._ends, self._restitution = system, tuple(ends), restitution
        self._friction = friction
        self._unit = np.where(system.robot.is_translation, system.robot.length, 1.0)
        self._hits = {
            end: end.guard(BoundEvent(end.name, Touch(end.name)), one_sided=True)
            for end in self._ends
        }

    def at(self, q: Array, mode: Mode) -> list[JointEnd]:
        """The end stops that coordinates are at which no lock holds.

        Args:
            q: configuration, shape (nq,).
            mode: the mode; joints that lie on end stops in it count as free.
        """
        mode = mode.without_contacts
        return [
            end
            for end in self._ends
            if end.beyond(q) >= -AT_LIMIT * self._unit[end.column]
            and not mode.holds(end.joint, end.axes)
        ]

    def hits(self, q: Array, mode: Mode) -> list[BoundEvent]:
        """The events of coming to the end stops that coordinates are at; see `at`."""
        return [self._hits[end].event for end in self.at(q, mode)]

    def guards(self, mode: Mode, resting: RestingEnds) -> list[Guard[BoundEvent]]:
        """Where coordinates come to end stops, and where these would have to pull."""
        hits = [
            guard
            for end, guard in self._hits.items()
            if not mode.holds(end.joint, end.axes) and end not in resting.implied
        ]
        held = [end for end in self._ends if _contact(end) in mode.locks]
        return hits + [self._release(end, mode, resting.noise) for end in held]

    def settle(
        self, t: float, q: Array, v: Array, before: Mode, wanted: Mode, events: tuple[str, ...]
    ) -> tuple[Transition | None, RestingEnds, tuple[Impact, ...]]:
        """Decide all end stops that joints are at; no transition if nothing changes.

        And what has hit them, one after the other.

        Args:
            t: time [s].
            q: configuration, shape (nq,).
            v: velocity before, shape (nv,).
            before: mode before.
            wanted: locks and loops from now on, without end stops.
            events: names of what else happens.
        """
        ends = self.at(q, wanted)
        touched = _touched(ends)
        base = self._system.equations(wanted)
        M, (J, b, _) = base.mass(q), base.terms(t, q, v)
        start, impacts = v, list[Impact]()
        if before.without_contacts != wanted:
            start = v + base.jump(t, q, v).a
            impacts.append(Impact(wanted, 0.0))
        still = NO_SPEED * max(1.0, float(np.abs(v).max(initial=0.0)))
        hit = touched.inward(start) < -still
        rows = M, J, b
        v_plus, push, hits = self._after_impact(base, wanted, (t, q, start), rows, touched, still)
        impacts += [Impact(_with_contacts(wanted, ends, touched, way), e) for way, e in hits]
        pushing, idle, noise = self._pushing(base, wanted, (t, q, v_plus), touched, still)
        after = _with_contacts(wanted, ends, touched, pushing)
        # What is as slow as rounding comes to rest by the jump of any lock.
        v_plus = v_plus + self._system.equations(after).jump(t, q, v_plus).a
        implied = frozenset(
            end for end in ends if idle[np.flatnonzero(touched.columns == end.column)[0]]
        )
        resting = RestingEnds(implied, noise)
        names = (*events, *_names(ends, touched, hit, before, after, implied))
        if after == before and not push.any() and np.array_equal(start, v):
            return None, resting, ()
        jump = _jump(base, M, (J, b), v, v_plus, (ends, touched, push))
        modes = before, after
        if before.without_contacts == wanted:  # what end stops add is independent wherever it is
            rank = Saddle(M, jump.J).rank
            ranks = 2 * ((rank, rank),)
            change = recorded(self._system, (t, q, v), jump, modes, ranks, names)
            return change, resting, tuple(impacts)
        ranks = ranks_of(self._system, modes, q)
        transition = recorded(self._system, (t, q, v), jump, modes, ranks, names)
        left = base.rows.scale * (J @ v_plus - b)
        warn_if_singular(self._system, transition, float(np.linalg.norm(left)))
        return transition, resting, tuple(impacts)

    def _after_impact(
        self,
        base: EquationsOfMotion,
        mode: Mode,
        state: tuple[float, Array, Array],
        rows: tuple[Array, Array, Array],
        touched: _Touched,
        still: float,
    ) -> tuple[Array, Array, list[_Hit]]:
        """Velocity after what is hit at a state, the impulses of the end stops, and what hit."""
        (t, q, v), (M, J, b), hits = state, rows, list[_Hit]()
        push, rate = np.zeros(len(touched.columns)), touched.inward(v)
        if (rate < 0.0).any():
            e = self._restitution if (rate < -still).any() else 0.0
            v, push, hits = _struck(M, v, J, b, touched, e)
        dead = np.zeros(len(push), dtype=bool)
        while (dying := self._dies_away(base, mode, (t, q, v), touched, still) & ~dead).any():
            dead |= dying
            caught = solve_stick_slip(M, M @ v, J, -b, touched.contacts(held=dead))
            v, push = caught.a, push + caught.torque
            hits.append((touched.pushing(caught.side == 0), 0.0))
        return v, push, hits

    def _dies_away(
        self,
        base: EquationsOfMotion,
        mode: Mode,
        state: tuple[float, Array, Array],
        touched: _Touched,
        still: float,
    ) -> Mask:
        """Which joints leave an end stop and are back at once: infinitely many hits in no time.

        They end at rest, which takes away what energy they have left. Also plastic hits of several
        end stops may follow on each other so, each of which throws a joint off the other.
        """
        rate = touched.inward(state[2])
        flying = rate > still
        a = touched.inward(self._accelerations(base, mode, state, touched, ~flying)[0])
        rise = np.full(len(rate), np.inf)
        np.divide(rate**2, -2.0 * a, out=rise, where=a < 0.0)
        return np.asarray(flying & (rise <= LOW_BOUNCE * self._unit[touched.columns]))

    def _pushing(
        self,
        base: EquationsOfMotion,
        mode: Mode,
        state: tuple[float, Array, Array],
        touched: _Touched,
        still: float,
    ) -> tuple[NDArray[np.int64], Mask, float]:
        """Directions in which end stops push that need a row, 0 for others; who needs none; noise.

        Of end stops that depend on each other, so many are left out that the rest is independent
        and still pushes (Carathéodory).
        """
        resting = touched.inward(state[2]) <= still
        _, torque, sticks = self._accelerations(base, mode, state, touched, resting)
        M, f, J, _, _ = base.system(*state)
        noise = NO_PULL * float(np.abs(f).max(initial=0.0)) + NO_SPEED
        at = np.flatnonzero(sticks)
        way = np.where(torque != 0.0, np.sign(torque), np.where(touched.up, 1.0, -1.0))
        needed = _independent(M, J, base.rows.scale, touched.columns[at], torque[at], way[at])
        pushing = np.zeros(len(resting), dtype=np.int64)
        pushing[at[needed]] = way[at[needed]].astype(np.int64)
        return pushing, sticks & (pushing == 0), noise

    def _accelerations(
        self,
        base: EquationsOfMotion,
        mode: Mode,
        state: tuple[float, Array, Array],
        touched: _Touched,
        resting: Mask,
    ) -> tuple[Array, Array, Mask]:
        """Accelerations with the end stops on which joints rest, what these push, and who stays."""
        contacts = touched.contacts(resting)
        torque, stays = np.zeros(len(resting)), np.zeros(len(resting), dtype=bool)
        if self._friction is not None:
            a, torque[resting], stays[resting] = self._friction.with_ends(mode, state, contacts)
            return a, torque, stays
        M, f, J, gamma, _ = base.system(*state)
        decision = solve_stick_slip(M, f, J, gamma, contacts)
        torque[resting], stays[resting] = decision.torque, decision.side == 0
        return decision.a, torque, stays

    def _release(self, end: JointEnd, mode: Mode, noise: float) -> Guard[BoundEvent]:
        """An end stop would have to pull."""
        contact = _contact(end)
        label = ".".join((contact.label, *contact.axes))
        name, pull = f"release from {end.name}", Pull(self._system, mode, label, end.sign, noise)
        return Guard(BoundEvent(name, Touch(name)), pull, 1, one_sided=True)


def _contact(end: JointEnd) -> Locked:
    """A coordinate that lies on an end stop, as a lock."""
    return Locked(end.joint, end.axes, end.side)


def _touched(ends: Sequence[JointEnd]) -> _Touched:
    columns = sorted({end.column for end in ends})
    lower, upper = ({end.column for end in ends if end.sign == sign} for sign in (-1, 1))
    return _Touched(
        np.array(columns, dtype=np.intp),
        np.array([column in lower for column in columns], dtype=bool),
        np.array([column in upper for column in columns], dtype=bool),
    )


def _struck(
    M: Array, v: Array, J: Array, b: Array, touched: _Touched, restitution: float
) -> tuple[Array, Array, list[_Hit]]:
    """Velocity after an impact, the impulses of the end stops, and what hit them in what order.

    With several, one that was leaving may be thrown back by another: then there is another impact
    at the same instant, each of which takes energy away; the last resort is a plastic one.
    """
    push, hits = np.zeros(len(touched.columns)), list[_Hit]()
    for rebound in range(_REBOUNDS + 1):
        e = restitution if rebound < _REBOUNDS else 0.0
        decision = solve_stick_slip(M, M @ v, J, -b, touched.contacts())
        before, after = v, decision.a + e * (decision.a - v)
        sticks = touched.columns[decision.side == 0]
        after[sticks] = -e * before[sticks]
        push += (1.0 + e) * decision.torque
        hits.append((touched.pushing(decision.side == 0), e))
        v = after
        if e == 0.0 or not (touched.inward(v) < 0.0).any():
            break
    return v, push, hits


def _independent(
    M: Array, J: Array, scale: Array, columns: NDArray[np.intp], torque: Array, way: Array
) -> NDArray[np.intp]:
    """Places of end stops that are independent of each other and of the rows, and still push."""
    saddle = Saddle(M, J, scale)
    units = np.eye(len(M))[columns]
    free = np.array([unit @ np.linalg.solve(M, unit) for unit in units])
    answers = [saddle.solve(unit, np.zeros(len(J)))[0][columns] for unit in units]
    size = way / np.sqrt(free)
    H = size[:, None] * np.array(answers).reshape(2 * [len(columns)]) * size
    x, left = np.abs(torque) * np.sqrt(free), np.arange(len(columns))
    while len(left):
        values, vectors = np.linalg.eigh(H[np.ix_(left, left)])
        if values[0] > HELD_SHARE:
            break
        without = vectors[:, 0]  # pushes that move nothing
        if without.max() < -without.min():
            without = -without
        room = np.full(len(left), np.inf)
        np.divide(x[left], without, out=room, where=without > 1e-3 * without.max())
        first = int(np.argmin(room))
        x[left] = np.maximum(x[left] - room[first] * without, 0.0)
        left = np.delete(left, first)
    return left


def _with_contacts(
    wanted: Mode, ends: Sequence[JointEnd], touched: _Touched, pushing: NDArray[np.int64]
) -> Mode:
    """A mode with the end stops that push."""
    way = dict(zip(touched.columns.tolist(), pushing.tolist(), strict=True))
    contacts = [_contact(end) for end in ends if way[end.column] == -end.sign]
    return replace(wanted, locks=(*wanted.locks, *contacts))


def _names(
    ends: Sequence[JointEnd],
    touched: _Touched,
    hit: Mask,
    before: Mode,
    after: Mode,
    implied: frozenset[JointEnd],
) -> list[str]:
    """What happens to joints at end stops: hits first, then those that are let go."""
    struck = set(touched.columns[hit].tolist())
    new = [
        end for end in ends if _contact(end) in after.locks and _contact(end) not in before.locks
    ]
    old = [end for end in ends if _contact(end) in before.locks]
    come = [end for end in ends if end.column in struck or (end in new and end not in old)]
    gone = [end for end in old if _contact(end) not in after.locks and end not in implied]
    return [end.name for end in come] + [f"release from {end.name}" for end in gone]


def _jump(
    base: EquationsOfMotion,
    M: Array,
    rows: tuple[Array, Array],
    v: Array,
    v_plus: Array,
    stops: tuple[Sequence[JointEnd], _Touched, Array],
) -> Jump:
    """The jump between two velocities: impulses of the rows besides those of the end stops."""
    (J, b), (ends, touched, push) = rows, stops
    dv = v_plus - v
    at = np.flatnonzero(push)
    names = {end.column: _contact(end) for end in ends}
    labels = tuple(
        ".".join((names[column].label, *names[column].axes))
        for column in touched.columns[at].tolist()
    )
    N = np.eye(len(M))[touched.columns[at]]
    _, impulse = Saddle(M, J, base.rows.scale).solve(N.T @ push[at], J @ dv)
    stacked = np.vstack([J, N])
    work = float(impulse @ b)
    gained = 0.5 * float((v + v_plus) @ M @ dv)
    return Jump(
        v_plus,
        (*base.rows.labels, *labels),
        stacked,
        np.concatenate([impulse, push[at]]),
        Saddle(M, stacked).determined,
        work - gained,
        work,
    )
