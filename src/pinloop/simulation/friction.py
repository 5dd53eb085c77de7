"""Dry friction of a run: which axes stick, which slide, and when that changes.

All axes at rest are decided together by Gauss' principle (`stick_slip`), wherever something happens
that may change it: a sliding axis comes to rest, the torque that an axis takes to stick leaves what
friction can give, velocities jump, locks and loops change. Friction does not depend on reactions:
accelerations are unique, and there is none of the paradoxes of friction at contacts (Painlevé).

That a decision agrees with the motion after it is proved where a stop decides (`decide_phase`); the
points 1 to 3 and 5 of it hold here as they stand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ..boundary.marks import Array, Mask
from ..dynamics import EquationsOfMotion
from ..dynamics.losses import FrictionAxis
from ..dynamics.stick_slip import (
    RELEASE,
    Contacts,
    Decision,
    giving_in,
    holding_noise,
    solve_stick_slip,
    weight_of,
)
from ..integrate import TURN, Coordinate, Guard, Step
from ..linalg.saddle import Saddle, factor_mass, solve_mass
from ..tolerances import HELD_SHARE, LAST_BITS, SIGNAL_SPEED
from .events import BoundEvent, Touch
from .modes import AxisFriction, BoundRow, ModalSystem, Mode, RobotManifold
from .stabilization import Projection, Projector

_NOTHING = 1e5
"""How many times its rounding the torque of what sticks need not be followed more closely."""


class Grip(NamedTuple):
    """What is to be known of the axes that stick, besides that they do.

    Args:
        noise: what of their torques is rounding [N m, N].
        redundant: whether their torques are not unique.
        since: when it was decided [s].
        refuted: axes that left rest at that very instant and came to rest at once.
    """

    noise: tuple[float, ...] = ()
    redundant: bool = False
    since: float = -np.inf
    refuted: frozenset[int] = frozenset()


NO_GRIP = Grip()
"""No axis has dry friction."""


@dataclass(frozen=True)
class Rest(Touch):
    """A sliding axis comes to rest.

    Args:
        axis: number of the axis.
    """

    axis: int = -1


@dataclass(frozen=True)
class Release(Touch):
    """An axis that sticks would take more than friction gives."""


@dataclass(frozen=True, eq=False)
class _Axes:
    """The axes at a state, and the equations in which each is a coordinate.

    An axis of a joint that closes a loop gets a coordinate without mass, whose rate is tied to its
    own by a row.

    Args:
        M: mass matrix, shape (n, n).
        f: forces without dry friction, shape (n,).
        J: rows, those that tie coordinates last, shape (m, n).
        gamma: velocity-dependent part of the rows, shape (m,).
        directions: gradient of the rate of each axis, shape (k, nv).
        columns: coordinate of each axis, shape (k,).
        rates: shape (k,).
        weight: see `weight_of`.
        moving: whether rows prescribe a motion.
    """

    M: Array
    f: Array
    J: Array
    gamma: Array
    directions: Array
    columns: NDArray[np.intp]
    rates: Array
    weight: float
    moving: bool

    def carried(self, rests: NDArray[np.intp]) -> list[int]:
        """Axes at rest that rows move, with the others at rest: these cannot be held."""
        (M, rows), carried = self.without_ties, []
        for k in rests.tolist():
            u = self.directions[k]
            left = u @ Saddle(M, rows).solve(u, np.zeros(len(rows)))[0]
            if left <= HELD_SHARE * (u @ solve_mass(M, u)):
                carried.append(k)
            else:
                rows = np.vstack([rows, u])
        return carried

    def solve(
        self, sliding: Array, contacts: Contacts, slack: float = 1.0
    ) -> tuple[Decision, Array]:
        """Who sticks with the torques of what slides; what of their torques is rounding."""
        f = self.f.copy()
        f[: self.directions.shape[1]] += sliding @ self.directions
        decision = solve_stick_slip(self.M, f, self.J, self.gamma, contacts, slack)
        bounds = np.zeros((2, len(f)))
        bounds[:, contacts.columns] = contacts.low, contacts.high
        M = factor_mass(self.M, self.J)[0]  # rows stand in for inertia that coordinates lack
        noise = holding_noise(M, f, self.J, bounds, decision.multipliers, self.weight)
        return decision, noise[self.columns]

    def depend(self, sticks: NDArray[np.intp]) -> bool:
        """Whether torques that hold some axes are not unique."""
        M, rows = self.without_ties
        whole = np.vstack([rows, self.directions[sticks]])
        return Saddle(M, whole).rank < Saddle(M, rows).rank + len(sticks)

    @property
    def without_ties(self) -> tuple[Array, Array]:
        """Mass matrix, shape (nv, nv), and rows of the robot itself."""
        nv = self.directions.shape[1]
        return self.M[:nv, :nv], self.J[: len(self.J) - int(np.sum(self.columns >= nv)), :nv]


class DryFriction:
    """The dry friction of a run.

    Args:
        system: equations of motion by mode; some axis has dry friction.
        v: velocity at the start, shape (nv,), by which it is judged what is no speed.
    """

    def __init__(self, system: ModalSystem, v: Array) -> None:
        self._system, self._axes = system, system.friction
        self._limit = np.array([axis.limit for axis in self._axes])
        self._loop = [axis for axis in self._axes if axis.column is None]
        self._weight = weight_of(system.robot.model)
        self._manifold = RobotManifold(system.robot)
        self._tiny = SIGNAL_SPEED * max(1.0, float(np.abs(v).max(initial=0.0)))
        names = [f"{axis.name} comes to rest" for axis in self._axes]
        self._rests = [BoundEvent(name, Rest(name, k)) for k, name in enumerate(names)]
        self._numbers = {axis.name: k for k, axis in enumerate(self._axes)}
        self._release = BoundEvent("breakaway", Release("breakaway"))

    def decide(
        self,
        state: tuple[float, Array, Array],
        mode: Mode,
        before: tuple[Mode, Grip],
        stopped: frozenset[int] = frozenset(),
        *,
        released: bool = False,
    ) -> tuple[Mode, Grip, Array]:
        """The mode with its friction, what is to be known of that, and the velocity in it.

        Args:
            state: time [s], configuration and velocity.
            mode: locks, end stops and loops from now on.
            before: mode before, and what was known of its friction.
            stopped: axes that have just come to rest.
            released: whether some axis that sticks has come loose.
        """
        t, q, v = state
        refuted = before[1].refuted | stopped if t == before[1].since else frozenset()
        seen = q, v
        if released and before[1].redundant and mode == before[0].without_friction:
            seen = self._closed(before[0], t, q, v)  # where it was found that something comes loose
        here = self._at(self._system.equations(mode), t, *seen)
        sign, rests, held = self._signs(mode, here.rates, stopped)
        at = rests.nonzero()[0]
        decision, noise = here.solve(-sign * self._limit, self._contacts(here, at))
        sign[at], torque = decision.side, np.zeros(len(sign))
        torque[at], back = decision.torque, list(refuted)
        sign[back] = 0
        v = v.copy()
        v[[k for k in here.columns[rests] if k < len(v)]] = 0.0
        while True:
            decided, sticks = self._rubbing(mode, here, sign, held)
            grip = Grip((), here.depend(sticks), t, refuted)
            if not grip.redundant and len(sticks):
                self._system.begin(decided, t, q, v)
                load = self._holding(decided, grip).torque(t, q, v)
                excess = np.zeros(len(sign))
                excess[sticks] = np.abs(load) - self._limit[sticks]
                noise[back] = np.maximum(noise, excess)[back]
                inside = self._limit[sticks] - np.sign(load) * torque[sticks]
                gone = giving_in(excess[sticks], inside, noise[sticks])
                sign[sticks[gone]] = -np.sign(load[gone])
                if gone.any():
                    continue
            return decided, grip._replace(noise=tuple(noise[sticks].tolist())), v

    def _rubbing(
        self, mode: Mode, here: _Axes, sign: NDArray[np.int64], held: Mask
    ) -> tuple[Mode, NDArray[np.intp]]:
        """The mode in which axes slide with their signs or stick, and the axes that stick."""
        fixed = held.copy()
        if here.moving:
            fixed[here.carried(((sign == 0) & ~held).nonzero()[0])] = True
        friction = tuple(
            AxisFriction(axis.joint, axis.axis, int(slides))
            for axis, slides, locked in zip(self._axes, sign, fixed, strict=True)
            if slides or not locked
        )
        return replace(mode, friction=friction), ((sign == 0) & ~fixed).nonzero()[0]

    def with_ends(
        self, mode: Mode, state: tuple[float, Array, Array], ends: Contacts
    ) -> tuple[Array, Array, Mask]:
        """Decide friction and end stops together.

        Args:
            mode: locks and loops, without end stops.
            state: time [s], configuration and velocity.
            ends: end stops on which joints rest.

        Returns:
            Acceleration, shape (nv,); what each end stop pushes beside friction; and which of them
            are needed to hold their joint.
        """
        t, q, v = state
        here = self._at(self._system.equations(mode), t, q, v)
        sign, rests, _ = self._signs(mode, here.rates, frozenset())
        own = self._contacts(here, np.flatnonzero(rests))
        place = {column: k for k, column in enumerate(own.columns.tolist())}
        low, high, limit = ends.low.copy(), ends.high.copy(), np.zeros(len(ends.low))
        for k, column in enumerate(ends.columns.tolist()):
            if column in place:
                limit[k] = own.high[place[column]]
        others = ~np.isin(own.columns, ends.columns)
        zeros = np.zeros(len(low) + int(others.sum()))
        both = Contacts(
            np.concatenate([ends.columns, own.columns[others]]),
            zeros,
            np.concatenate([low - limit, own.low[others]]),
            np.concatenate([high + limit, own.high[others]]),
            zeros,
            zeros,
        )
        decision, _ = here.solve(-sign * self._limit, both)
        torque, stays = decision.torque[: len(low)], decision.side[: len(low)] == 0
        push = torque - np.clip(torque, -limit, limit)
        return decision.a[: len(v)], push, stays & ((push != 0.0) | (limit == 0.0))

    # -- what is looked for -----------------------------------------------------------------

    def guards(self, mode: Mode, grip: Grip) -> list[Guard[BoundEvent]]:
        """Where sliding axes come to rest, and where those that stick come loose."""
        slides = {axis[:2]: axis.slides for axis in mode.friction}
        guards: list[Guard[BoundEvent]] = []
        small, slack = 1e-3 * self._tiny, self._tiny
        for event, axis in zip(self._rests, self._axes, strict=True):
            if mode.holds(axis.joint, axis.axes):
                continue
            sign = slides.get((axis.joint, axis.axis))
            if sign is None:  # rows hold it, which may come to move it
                rates = [self._rate(axis, way, 2.0 * self._tiny) for way in (1.0, -1.0)]
                guards += [Guard(self._release, rate, 1, one_sided=True) for rate in rates]
            elif sign:
                rate = self._rate(axis, float(sign))
                guards.append(Guard(event, rate, -1, one_sided=True, slack=slack, enough=small))
        if grip.noise:
            holding = self._holding(mode, grip)
            guards.append(
                Guard(
                    self._release,
                    holding,
                    1,
                    one_sided=True,
                    slack=0.0,
                    in_reach=holding.in_reach,
                    accuracy=lambda: _NOTHING * holding.slack,
                    enough=small,
                    kinked=grip.redundant,
                )
            )
        return guards

    def _rate(
        self, axis: FrictionAxis, sign: float, beyond: float = 0.0
    ) -> Callable[[float, Array, Array], float]:
        """Rate of an axis along a direction, beyond a level."""
        column = axis.column
        if column is not None and not self._manifold.curved[column]:
            return Coordinate(column, None, sign, sign * beyond)
        if column is not None:
            return lambda t, q, v: float(sign * v[column]) - beyond
        robot = self._system.robot

        def rate(t: float, q: Array, v: Array) -> float:
            with robot.workspace() as data:
                pin.computeJointJacobians(robot.model, data, q)
                pin.updateFramePlacements(robot.model, data)
                return float(sign * (axis.motion.jacobian(data)[axis.place] @ v)) - beyond

        return rate

    # -- the axes at a state ----------------------------------------------------------------

    def _at(self, equations: EquationsOfMotion, t: float, q: Array, v: Array) -> _Axes:
        """The axes at a state of equations without dry friction."""
        M, f, J, gamma, _ = equations.system(t, q, v)
        nv, n = len(v), len(v) + len(self._loop)
        last = iter(range(nv, n))
        columns = np.array([next(last) if a.column is None else a.column for a in self._axes])
        directions = np.eye(n)[columns][:, :nv]
        if self._loop:
            drift = np.zeros(n - nv)
            model = self._system.robot.model
            with self._system.robot.workspace() as data:
                pin.forwardKinematics(model, data, q, v, np.zeros(nv))
                pin.computeJointJacobians(model, data)
                pin.updateFramePlacements(model, data)
                for k, axis in enumerate(self._loop):
                    directions[columns == nv + k] = axis.motion.jacobian(data)[axis.place]
                    drift[k] = axis.motion.drift(data)[axis.place]
            tied = directions[columns >= nv]
            M = np.pad(M, (0, n - nv))
            f, gamma = np.append(f, np.zeros(n - nv)), np.append(gamma, drift)
            J = np.block([[J, np.zeros((len(J), n - nv))], [tied, -np.eye(n - nv)]])
        rates, moving = directions @ v, equations.rows.moving
        return _Axes(M, f, J, gamma, directions, columns, rates, self._weight, moving)

    def _signs(
        self, mode: Mode, rates: Array, stopped: frozenset[int]
    ) -> tuple[NDArray[np.int64], Mask, Mask]:
        """How each axis slides, which are at rest, and which are held by locks or end stops.

        Of what lies on an end stop friction helps that to push, as much as it can: so the reaction
        of the end stop is what is needed of it.
        """
        rests = np.abs(rates) <= self._tiny
        rests[list(stopped)] = True
        sign = np.where(rests, 0, np.sign(rates)).astype(np.int64)
        held = np.zeros(len(rates), dtype=bool)
        for k, axis in enumerate(self._axes):
            for lock in mode.locks:
                if lock.joint == axis.joint and (not lock.axes or axis.axis in ("", *lock.axes)):
                    held[k] = True
                    sign[k] = {"lower": -1, "upper": 1}.get(lock.at_limit, 0)
        return sign, rests & ~held, held

    def _contacts(self, here: _Axes, at: NDArray[np.intp]) -> Contacts:
        zeros = np.zeros(len(at))
        limit = self._limit[at]
        return Contacts(here.columns[at], zeros, -limit, limit, zeros, zeros)

    # -- what sticks ------------------------------------------------------------------------

    def _holding(self, mode: Mode, grip: Grip) -> _Holding:
        """The torques of what sticks in a mode."""
        limit = {axis.name: axis.limit for axis in self._axes}
        equations, slack = self._system.equations(mode), RELEASE * np.array(grip.noise)
        return _Holding(
            equations,
            [equations.rows.labels.index(f"friction:{name}") for name in mode.sticking],
            mode.sticking,
            np.array([limit[name] for name in mode.sticking]),
            slack,
            partial(self._fits, mode) if grip.redundant else None,
        )

    def _fits(self, mode: Mode, t: float, q: Array, v: Array) -> bool:
        """Whether some torques within their bounds hold all that sticks, but for rounding."""
        here = self._at(
            self._system.equations(mode.without_friction), t, *self._closed(mode, t, q, v)
        )
        slides = {axis[:2]: axis.slides for axis in mode.friction}
        sign = np.array([slides.get((axis.joint, axis.axis), 0) for axis in self._axes])
        contacts = self._contacts(here, self._sticking(mode))
        return not here.solve(-sign * self._limit, contacts, RELEASE)[0].side.any()

    def _closed(self, mode: Mode, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        """The state that rows allow: inside a step these seem to move what sticks a little."""
        rows, manifold = self._system.equations(mode), self._manifold.in_mode(mode)
        return Projector(rows, Projection(LAST_BITS), manifold).apply(t, q, v)[:2]

    def _sticking(self, mode: Mode) -> NDArray[np.intp]:
        return np.array([self._numbers[name] for name in mode.sticking], dtype=np.intp)


@dataclass(eq=False)
class _Holding:
    """The torques that hold what sticks in a mode.

    Args:
        equations: equations of motion in the mode.
        rows: which of their rows hold it.
        names: names of the axes.
        limit: what friction gives [N m, N].
        slack: how far beyond that they come loose.
        fits: whether other torques hold it where these do not; None where they are unique.
        end: where the last step ended, and how far each was there from coming loose.
    """

    equations: EquationsOfMotion
    rows: list[int]
    names: tuple[str, ...]
    limit: Array
    slack: Array
    fits: Callable[[float, Array, Array], bool] | None
    end: tuple[Array, Array] | None = None

    def torque(self, t: float, q: Array, v: Array) -> Array:
        """The smallest ones where they are not unique."""
        return self.equations.motion(t, q, v).multipliers[self.rows]

    def bound_row(self, t: float, q: Array, v: Array) -> BoundRow:
        """The row of what is nearest to coming loose."""
        torque = self.torque(t, q, v)
        k = int(np.argmax(np.abs(torque) - self.limit - self.slack))
        return BoundRow(self.equations, self.rows[k], float(np.sign(torque[k])), self.names[k])

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        """How far each is from coming loose; positive once it should have."""
        beyond = np.abs(self.torque(t, q, v)) - self.limit - self.slack
        if self.fits is None or beyond.max() <= 0.0:
            return np.asarray(beyond)
        # As large on both sides, or the step to where it jumps would seem to be better elsewhere.
        return np.full(len(beyond), (-1 if self.fits(t, q, v) else 1) * self.slack.max())

    def in_reach(self, step: Step) -> bool:
        """Whether something may come loose in a step, from what is seen at three places of it."""
        if float(np.abs(step.polynomial).sum()) > TURN:
            return True
        times = step.t0, 0.5 * (step.t0 + step.t1), step.t1
        known = [self.end[1]] if self.end is not None and self.end[0] is step.q0 else []
        values = np.array(known + [self(t, *step(t)) for t in times[len(known) :]])
        self.end = step.q1, values[-1]
        return bool((2.0 * values.max(axis=0) - values.min(axis=0)).max() > 0.0)
