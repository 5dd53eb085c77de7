"""`Follower`: where the other joints of a robot go when some joints move as recorded.

Positions by small steps, so that the loops stay on their assembly branch; velocities from the
linearised loops. What the recording is and where it comes from is in `recorded`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..assembly import assemble, consistent_velocity
from ..closing import TOLERANCE, Problem, limited_coordinates, nearby_assembly, null_space, search
from ..constraints import Constraints
from ..errors import InconsistentVelocity, LoopNotClosed
from ..mechanism import Mechanism

__all__ = ["STRIDE", "Follower"]

Array = NDArray[np.float64]

STRIDE = 0.1
"""How far a joint may move between two closures of the loops: radians, characteristic lengths."""

_OFF = 0.01
"""How far recorded joints that follow from others may be off: radians, characteristic lengths."""

_RATE_OFF = 0.1
"""The same for rates: part of the largest rate, or of one radian or length per second."""

_DEPENDENT = 1e-6
"""A joint follows from others if so little of its motion is left when they stand still."""


class Follower:
    """Closes the loops of a robot around recorded joints.

    All actuated recorded joints are held at their values, and passive ones that do not follow from
    them. Where these are more than the loops leave free, and numbers that were rounded contradict
    each other, only as many as are independent.

    Args:
        robot: a mechanism with loops or couplings.
        joints: the recorded joints, each with one degree of freedom.
        guess: configuration that picks the assembly branch, shape (nq,); neutral by default.
    """

    def __init__(
        self, robot: Mechanism, joints: tuple[str, ...], guess: ArrayLike | None = None
    ) -> None:
        self._robot = robot
        self._joints = joints
        self._columns = np.array([robot.coordinates(name).v.start for name in joints])
        self._problem = Problem(robot, Constraints(robot, full=True), (), {}, limits=True)
        self._scale = self._problem.column_scale[self._columns]
        self._home = assemble(robot, guess)
        # At a dead centre a joint does not move at first order and would pass for dependent.
        near = nearby_assembly(robot, self._home, np.random.default_rng(0))
        self._base = self._independent(self._home if near is None else near)
        self._held = tuple(n for n in joints if n in robot.actuated or n in self._base)

    def begin(self, values: Mapping[str, float], time: float) -> Array:
        """Configuration at the first sample, on the assembly branch of the guess.

        The recorded joints go there from the assembly nearest to the guess on a straight line.
        Where the loops do not let them, any assembly with the first sample is taken.

        Args:
            values: coordinates of the recorded joints [rad, m].
            time: time of the first sample [s], for messages.
        """
        robot, home = self._robot, self._home
        goal = robot.configuration(values, home)
        way = robot.difference(home, goal)
        count = int(np.ceil(np.abs(way / self._problem.column_scale).max(initial=0.0) / STRIDE))
        q: Array | None = home
        for k in range(1, count):
            q = None if q is None else self._closed(q, robot.integrate(home, k / count * way))
        q = None if q is None else self._closed(q, goal)
        return self._assembled(home, values, time) if q is None else q

    def next(self, q: Array, values: Mapping[str, float], time: float) -> Array:
        """Configuration a stride further on.

        Args:
            q: configuration before, shape (nq,).
            values: coordinates of the recorded joints [rad, m].
            time: when they are there [s], for messages.
        """
        goal = self._robot.configuration(values, q)
        found = self._closed(q, goal)
        if found is None:
            other = self._assembled(q, values, time)
            raise LoopNotClosed(
                f"robot '{self._robot.name}' cannot follow the recorded motion to t = {time:.6g} "
                "s without a jump to another assembly or beyond the limits of its passive "
                "joints; start from another one with guess=",
                q=other,
                residuals={},
            )
        change = self._robot.difference(found, goal)[self._columns]
        worst = int(np.argmax(np.abs(change / self._scale)))
        if abs(change[worst]) > _OFF * self._scale[worst]:
            name = self._joints[worst]
            raise LoopNotClosed(
                f"joint '{name}' is recorded at {values[name]:.6g} at t = {time:.6g} s, but the "
                f"loops of robot '{self._robot.name}' put it at "
                f"{values[name] - change[worst]:.6g} when the other recorded joints stand as "
                "recorded; correct its zero, sign or unit",
                q=found,
                residuals={name: float(abs(change[worst]))},
            )
        return found

    def velocity(self, q: Array, rates: Mapping[str, float], time: float) -> Array:
        """Velocity at ``q`` with the recorded rates, shape (nv,).

        Args:
            q: an assembled configuration, shape (nq,).
            rates: rates of the recorded joints [rad/s, m/s].
            time: when [s], for messages.
        """
        wanted = np.array([rates[name] for name in self._joints]) / self._scale
        try:
            v = consistent_velocity(self._robot, q, {name: rates[name] for name in self._held})
        except InconsistentVelocity:
            # More rates than the loops leave free: the nearest ones that they allow.
            free = null_space(self._problem.jacobian(q))
            parts, *_ = np.linalg.lstsq(free[self._columns], wanted, rcond=1e-10)
            v = self._problem.column_scale * (free @ parts)
        off = np.abs(v[self._columns] / self._scale - wanted)
        worst = int(np.argmax(off))
        if off[worst] > _RATE_OFF * max(1.0, float(np.abs(wanted).max())):
            name = self._joints[worst]
            raise InconsistentVelocity(
                f"the loops of robot '{self._robot.name}' do not allow the recorded rates at t = "
                f"{time:.6g} s: joint '{name}' should move at {rates[name]:.4g}, but "
                f"{v[self._columns[worst]]:.4g} is nearest; smooth the recording",
                v=v,
                residual=float(np.linalg.norm(off)),
            )
        return v

    def _closed(self, q: Array, goal: Array) -> Array | None:
        """The assembly near ``q`` whose recorded joints stand as in ``goal``; None if none is."""
        start = q.copy()
        for name in self._joints:
            at = self._robot.coordinates(name)
            start[at.q] = goal[at.q]
        for held in self._choices(q):
            found, error = search(replace(self._problem, held=held), start, seed=0, restarts=0)
            if error < TOLERANCE:
                return found
        return None

    def _assembled(self, q: Array, values: Mapping[str, float], time: float) -> Array:
        """Any assembly with the recorded values; an error that says what is in the way."""
        goal = self._robot.configuration(values, q)
        within = all(
            low <= goal[i] <= high
            for i, j, low, high in limited_coordinates(self._robot)
            if j in self._columns
        )
        problems = []
        for held in self._choices(q):
            fixed = {name: values[name] for name in held}
            try:
                return assemble(self._robot, goal, fixed, limits=within)
            except LoopNotClosed as error:
                problems.append(error)
        raise LoopNotClosed(
            f"the recorded motion cannot be had at t = {time:.6g} s: {problems[0]}",
            q=problems[0].q,
            residuals=problems[0].residuals,
            blocked_by=problems[0].blocked_by,
        )

    def _choices(self, q: Array) -> Iterator[tuple[str, ...]]:
        """Which joints to hold, starting from ``q``: all that should be, or as many as can be."""
        yield self._held
        if len(self._base) < len(self._held):
            fewer = self._independent(q)
            if len(fewer) == len(self._base):
                yield fewer

    def _independent(self, q: Array) -> tuple[str, ...]:
        """Recorded joints that move independently at ``q``, actuated ones first."""
        free = null_space(self._problem.jacobian(q))
        rest = dict(zip(self._joints, free[self._columns], strict=True))
        chosen: list[str] = []
        for actuated in (True, False):
            left = [n for n in self._joints if (n in self._robot.actuated) == actuated]
            while left:
                name = max(left, key=lambda n: float(np.linalg.norm(rest[n])))
                size = float(np.linalg.norm(rest[name]))
                if size < _DEPENDENT:
                    break
                left.remove(name)
                chosen.append(name)
                direction = rest[name] / size
                rest = {n: row - (row @ direction) * direction for n, row in rest.items()}
        return tuple(chosen)
