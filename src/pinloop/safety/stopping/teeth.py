"""What blocks joints in a stop, teeth and end stops, and the impact when they are hit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...boundary.marks import Array, Mask
from ...dynamics.stick_slip import Contacts, solve_stick_slip
from ...linalg.saddle import Saddle
from ...simulation.limits import JointEnd
from ...simulation.modes import Mode
from ...simulation.transitions import Transition
from ...tolerances import AT_LIMIT, AT_ONCE, SAME
from .drivetrain import Drivetrain
from .phase import Watched
from .stop_equations import StopEquations


class Teeth:
    """The teeth and end stops of a robot while it stops.

    Attributes:
        blocked: per coordinate the directions in which a tooth or an end stop blocks it: bit 1 up,
            bit 2 down.
    """

    def __init__(self, train: Drivetrain, ends: Sequence[JointEnd] = ()) -> None:
        self._train, self.ends = train, tuple(ends)
        self._struck = np.full(len(train.teeth), -np.inf)
        self._fallen = np.zeros(len(train.teeth), dtype=bool)
        self._tight = np.zeros(len(train.teeth), dtype=bool)
        self._gaps: dict[int, tuple[float, float]] = {}
        self.blocked = np.zeros(len(train.teeth), dtype=np.int64)

    def fall(self, due: Mask, q: Array, v: Array) -> bool:
        """Let pawls fall; says whether some without play have caught at once.

        ``due``: mask of the coordinates whose brake has been engaged.
        """
        falling = self._train.teeth & due & ~self._fallen
        self._fallen |= falling
        tight = falling & (self._train.pitch == 0.0)
        self._tight |= tight
        self.blocked[tight] = 3
        for column in np.flatnonzero(falling & ~tight):
            self._gaps[int(column)] = self._gap(int(column), q, v)
        return bool(tight.any())

    def touch(self, q: Array, v: Array, tiny: float) -> list[str]:
        """Let joints that start at an end stop lie on it; the names of those that run into it."""
        hit = []
        for end in self.ends:
            rate = end.sign * v[end.column]
            if end.beyond(q) >= -AT_LIMIT and rate >= -tiny:
                self.blocked[end.column] |= 1 if end.sign > 0 else 2
                if rate > tiny:
                    hit.append(_named(end))
        return hit

    def hit(self, joints: Sequence[Watched], t: float, q: Array) -> NDArray[np.int64]:
        """Joints have come to a tooth or an end stop, where others may be at theirs.

        Joints may throw each other against their stops ever faster, infinitely often in no time:
        those that are back at once end at rest.

        Returns:
            The directions in which joints are blocked during the impact; both for the latter.
        """
        for joint in joints:
            self.blocked[joint.column] |= 1 if joint.sign < 0 else 2
        for end in self.ends:
            if end.beyond(q) >= -AT_LIMIT:
                self.blocked[end.column] |= 1 if end.sign > 0 else 2
        back = (self.blocked > 0) & (t - self._struck < AT_ONCE)
        self._struck[[joint.column for joint in joints]] = t
        return np.where(back, 3, self.blocked)

    def leave(self, stuck: Mask) -> None:
        """Joints that are not stuck have left their tooth, if it has play."""
        if any(self.blocked.tolist()):
            self.blocked[~stuck & ~self._tight] = 0

    def watched(self, stuck: Mask) -> list[Watched]:
        """The teeth on both sides of every joint that may come to one, and the end stops."""
        watched = []
        for column, (lower, upper) in self._gaps.items():
            if not stuck[column]:
                name = f"{self._train.names[column]} hits a tooth"
                q_index = self._q_index(column)
                watched.append(Watched(column, q_index, 1.0, lower, name))
                watched.append(Watched(column, q_index, -1.0, upper, name))
        for end in self.ends:
            if not stuck[end.column]:
                sign = float(-end.sign)
                watched.append(Watched(end.column, end.cell, sign, end.level, _named(end)))
        return watched

    def _gap(self, column: int, q: Array, v: Array) -> tuple[float, float]:
        """The teeth between which a pawl falls; it stays between them."""
        pitch, offset = float(self._train.pitch[column]), float(self._train.tooth[column])
        place = (float(q[self._q_index(column)]) - offset) / pitch
        below = round(place) if abs(place - round(place)) < SAME else int(np.floor(place))
        if abs(place - round(place)) < SAME and v[column] < 0.0:
            below -= 1  # on top of a tooth it goes where it moves
        return offset + pitch * below, offset + pitch * (below + 1)

    def _q_index(self, column: int) -> int:
        """Place in q of a coordinate."""
        return int(self._train.robot.coordinates(self._train.names[column]).q.start)


def at_end_stop(ends: Sequence[JointEnd], column: int, q: Array) -> bool:
    """Whether a coordinate is at one of some end stops."""
    return any(end.column == column and end.beyond(q) >= -AT_LIMIT for end in ends)


def _named(end: JointEnd) -> str:
    return f"{end.joint} hits its {end.side} end stop"


def impact(
    equations: StopEquations,
    t: float,
    q: Array,
    v: Array,
    blocked: NDArray[np.int64],
    driven: NDArray[np.bool_],
    modes: tuple[Mode, Mode],
    events: tuple[str, ...],
) -> Transition:
    """Velocity after an impact.

    ``v``: velocity before, shape (nv,). ``blocked``: per coordinate the directions that are
    blocked: bit 1 up, bit 2 down. ``driven``: mask of the coordinates that drives without limit
    keep at their speed.
    """
    train, rows = equations.train, equations.equations.rows
    M, _, J, _, _ = equations.system(t, q, v)
    M = train.with_rotors(M)  # losses have no time to act
    at = np.flatnonzero((blocked > 0) | driven)
    held_speed, rest = np.where(driven, v, 0.0)[at], np.zeros(len(at))
    low = np.where((blocked[at] & 1 > 0) | driven[at], -np.inf, 0.0)
    high = np.where((blocked[at] & 2 > 0) | driven[at], np.inf, 0.0)
    decision = solve_stick_slip(
        M, M @ v, J, np.zeros(len(J)), Contacts(at, held_speed, low, high, rest, rest)
    )
    v_plus = decision.a
    dv = v_plus - v
    names = tuple(f"{'drive' if driven[column] else 'lock'}:{train.names[column]}" for column in at)
    pinned = Saddle(M, np.vstack([J, np.eye(len(v))[at]]))
    ranks = pinned.rank, pinned.rank
    return Transition(
        t,
        q.copy(),
        v.copy(),
        v_plus,
        *modes,
        (*rows.labels, *names),
        np.concatenate([decision.multipliers, decision.torque]),
        pinned.determined,
        {},
        {},
        0.5 * float(dv @ M @ dv),
        float(decision.torque @ held_speed),
        M @ v,
        M @ v_plus,
        ranks,
        ranks,
        events,
    )


def gear_impulse(train: Drivetrain, change: Transition, column: int, *, at_end: bool) -> float:
    """Impulse that the gear of a joint carries in an impact, behind it [N m s].

    With ``P`` the impulse of what blocks or drives a coordinate, its rotor of inertia ``I``
    (reflected) takes ``I dv``. Teeth and drives act at the motor's shaft: the link gets from them
    through the gear what the rotor does not take, ``P - I dv``. An end stop acts at the link, and
    stops the rotor through the gear: ``-I dv``.

    ``at_end``: whether it is an end stop that it hits, if it hits anything.
    """
    name = train.names[column]
    carried = -float(train.reflected[column] * (change.v_plus - change.v_minus)[column])
    if train.teeth[column] and not at_end and f"lock:{name}" in change.labels:
        carried += float(change.impulse_of(f"lock:{name}").sum())
    if f"drive:{name}" in change.labels:
        carried += float(change.impulse_of(f"drive:{name}").sum())
    return carried
