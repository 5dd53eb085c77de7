"""A second stop analysis: brute force where pinloop is clever; no test lives here.

Reactions come from one dense system by least squares, the integrator is SciPy's, and who sticks is
found by trying every combination (`enumeration`). Category 0, gears without losses, joints with one
degree of freedom or balls, and torques at rest that are unique.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from pinloop.dynamics.stick_slip import Contacts

from ...screw_tables import Array
from .enumeration import Problem, survivors
from .loops_by_hand import Friction, Machine, least

Guard = Callable[[float, Array], float]

_BLINK = 1e-12
"""Times closer to each other [s] are the same instant."""
_MOST = 1000
"""Events of a stop."""
_STILL = 1e-8
"""Speed that counts as none where a joint has just come to rest."""
_PAST = 1e-5
"""So far beyond what holds it [N m] a joint is let go, that there is no doubt about it."""


@dataclass(frozen=True, eq=False)
class State:
    """A state, and the direction of each coordinate: 0 if it sticks or has no dry friction."""

    t: float
    q: Array
    v: Array
    way: NDArray[np.int64]
    stuck: NDArray[np.bool_]


class Stop:
    """The course of a stop.

    Args:
        machine: the robot.
        friction: its brakes and friction.
        driven: coordinates that go on at constant speed until the power goes.
    """

    def __init__(self, machine: Machine, friction: Friction, driven: tuple[str, ...] = ()) -> None:
        self.machine, self.friction = machine, friction
        robot = machine.robot
        self.single = {
            robot.coordinates(name).v.start: name
            for name in robot.joints
            if robot.coordinates(name).nv == 1
        }
        self.driven = [robot.coordinates(name).v.start for name in driven]
        self.off = friction.chain.command + friction.chain.drive_off
        self.log: list[tuple[float, str]] = []

    def run(self, q: Array, v: Array, until: float) -> tuple[float, Array]:
        """Time and configuration at which all stand; fails if they do not.

        Args:
            q: configuration at the signal.
            v: velocity at the signal.
            until: limit of the time.
        """
        t, since = 0.0, None
        breaks = sorted({self.off, until, *self._breaks()})
        while t < until:
            assert len(self.log) < _MOST, "more happens than can be followed"
            self.window = t + _BLINK, until
            state = self._decided(t, q, v)
            end = next(instant for instant in breaks if instant > t + _BLINK)
            if t >= self.off and np.all(state.stuck[list(self._dry(until))]):
                assert np.abs(v[list(self.single)]).max() < _STILL
                since = t if since is None else since
                if not any(t + _BLINK < instant < until for instant in breaks):
                    return since, q
                t = end
                continue
            since = None
            self.window = t + _BLINK, end - _BLINK
            t, q, v = self._moved(state, end)
        raise AssertionError("it does not stop")

    # -- equations --------------------------------------------------------------------------

    def acceleration(self, t: float, q: Array, v: Array, state: State) -> Array:
        """Accelerations."""
        M, J, gamma = self.machine.mass(q), *self.machine.rows(q, v)
        force = self._force(t, q, v, state.way)
        pinned = np.flatnonzero(state.stuck)
        rows = np.vstack((J, np.eye(len(v))[pinned]))
        system = np.block([[M, rows.T], [rows, np.zeros((len(rows), len(rows)))]])
        wanted = np.concatenate((force, -gamma, np.zeros(len(pinned))))
        return np.asarray(np.linalg.lstsq(system, wanted, rcond=1e-11)[0][: len(v)])

    def margin(self, t: float, q: Array, v: Array, state: State) -> float:
        """The most by which all stuck joints can be held at once better than they must be [N m]."""
        held = np.flatnonzero(state.stuck).tolist()
        need = self.machine.mass(q) @ self.acceleration(t, q, v, state)
        N = self.machine.free(q)
        right = N.T @ (need - self._force(t, q, v, state.way))
        most = np.array([self._holds(t, i, {}) for i in held])
        U, values, V = np.linalg.svd(N[held].T)
        rank = int(np.sum(values > 1e-9))
        torque = V[:rank].T @ ((U.T @ right)[:rank] / values[:rank])
        if rank == len(held):
            return float(np.min(most - np.abs(torque)))
        Z, ones = V[rank:].T, np.ones((len(held), 1))
        sides = np.block([[Z, ones], [-Z, ones]])
        return -least(np.r_[np.zeros(Z.shape[1]), -1.0], sides, np.r_[most - torque, most + torque])

    def _force(self, t: float, q: Array, v: Array, way: NDArray[np.int64]) -> Array:
        """Everything but reactions and what holds stuck joints."""
        robot, moving, t = self.machine.robot, self.friction.moving, self._clock(t)
        force = -self.machine.bias(q, v)
        free = np.ones(len(v), dtype=bool)
        for i, name in self.single.items():
            force[i] += moving(name, t, v[i], 0.0, way[i], 0.0)
            free[i] = False
        force[free] -= (robot.model.damping * v)[free]
        return force

    def _clock(self, t: float) -> float:
        """The time within the stretch in which brakes do not jump."""
        return min(max(t, self.window[0]), self.window[1])

    def _dry(self, t: float) -> dict[int, str]:
        return {i: name for i, name in self.single.items() if self.friction.hold(name, t) > 0}

    def _breaks(self) -> list[float]:
        brakes, begin = self.friction.brakes.joints.values(), self.friction.chain.command
        return [begin + brake.delay + rise for brake in brakes for rise in (0.0, brake.rise)]

    # -- who sticks -------------------------------------------------------------------------

    def _decided(self, t: float, q: Array, v: Array) -> State:
        """Decide all joints at rest together; those that break away have what is left."""
        n = len(v)
        way, stuck = np.sign(v).astype(np.int64), np.zeros(n, dtype=bool)
        if t < self.off:
            stuck[self.driven] = True
            return State(t, q, v, way, stuck)
        at = np.array([i for i in self._dry(t + _BLINK) if v[i] == 0.0], dtype=np.intp)
        M, J, gamma = self.machine.mass(q), *self.machine.rows(q, v)
        force = self._force(t, q, v, way)
        none = np.zeros(len(at))
        broken: dict[int, int] = {}
        while True:
            most = np.array([self._holds(t, i, broken) for i in at])
            problem = Problem(M, force, J, gamma, Contacts(at, none, -most, most, none, none))
            found = survivors(problem)[0]
            new = {i: s for i, s in zip(at.tolist(), found.side, strict=True) if s}
            if set(new) <= set(broken):
                break
            broken |= new
        stuck[at] = True
        for i, side in new.items():
            way[i], stuck[i] = side, False
        return State(t, q, v, way, stuck)

    def _holds(self, t: float, i: int, broken: dict[int, int]) -> float:
        name, t = self.single[i], self._clock(t)
        if i in broken:
            return abs(self.friction.moving(name, t, 0.0, 0.0, 1.0, 0.0))
        return self.friction.hold(name, t)

    # -- time -------------------------------------------------------------------------------

    def _moved(self, state: State, end: float) -> tuple[float, Array, Array]:
        """Go on until something happens."""
        robot, n = self.machine.robot, len(state.q)
        watched = [i for i in self._dry(end) if state.way[i] and not state.stuck[i]]
        held = np.flatnonzero(state.stuck)

        def rate(t: float, y: Array) -> Array:
            q, v = y[:n], y[n:]
            return np.concatenate((_rate(self.machine, q, v), self.acceleration(t, q, v, state)))

        def stops(i: int) -> Guard:
            return _ending(lambda t, y: float(y[n + i] * state.way[i]))

        def loose(t: float, y: Array) -> float:
            return self.margin(t, y[:n], y[n:], state) + _PAST

        events = [stops(i) for i in watched]
        if len(held) and state.t >= self.off:
            events.append(_ending(loose))
        start = np.concatenate((state.q, state.v))
        made = solve_ivp(
            rate, (state.t, end), start, "DOP853", rtol=1e-10, atol=1e-11,
            events=events, max_step=0.02,
        )  # fmt: skip
        assert made.status >= 0, made.message
        t, y = float(made.t[-1]), made.y[:, -1]
        q, v = robot.integrate(y[:n] / _size(self.machine, y[:n]), 0 * y[n:]), y[n:].copy()
        v[held[np.abs(v[held]) < _STILL]] = 0.0
        for i in watched:
            if abs(v[i]) < _STILL:
                v[i] = 0.0
                self.log.append((t, self.single[i]))
        return t, q, v


def _ending(guard: Guard) -> Guard:
    guard.terminal, guard.direction = True, -1  # type: ignore[attr-defined]
    return guard


def _rate(machine: Machine, q: Array, v: Array) -> Array:
    """Rate of change of the coordinates; balls have quaternions (x, y, z, w)."""
    rates = np.zeros(len(q))
    for name in machine.robot.joints:
        at = machine.robot.coordinates(name)
        if at.nq == at.nv:
            rates[at.q] = v[at.v]
            continue
        assert (at.nq, at.nv) == (4, 3)
        x, w, turn = q[at.q][:3], q[at.q][3], v[at.v]
        rates[at.q] = 0.5 * np.append(w * turn + np.cross(x, turn), -x @ turn)
    return rates


def _size(machine: Machine, q: Array) -> Array:
    """Lengths of the quaternions, one elsewhere."""
    sizes = np.ones(len(q))
    for name in machine.robot.joints:
        at = machine.robot.coordinates(name)
        if at.nq != at.nv:
            sizes[at.q] = np.linalg.norm(q[at.q])
    return sizes
