"""`Follower`: where the other joints of a robot go when some joints move as recorded.

Positions by small steps, so that the loops stay on their assembly branch; velocities from the
linearised loops. What the recording is and where it comes from is in `recorded`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import ArrayLike

from ...assembly.assemble import assemble, consistent_velocity
from ...assembly.continuation import LoopContinuation, nearby_assembly
from ...assembly.search import null_space, outside_limits
from ...boundary.marks import Array
from ...errors import InconsistentVelocity, LoopNotClosed
from ...model.mechanism import Mechanism
from ...tolerances import FOLLOWS

STRIDE = 0.1
"""How far a joint may move between two closures of the loops: radians, characteristic lengths."""

_OFF = 0.01
"""How far recorded joints that follow from others may be off: radians, characteristic lengths."""

_RATE_OFF = 0.1
"""The same for rates: part of the largest rate, or of one radian or length per second."""


class Follower:
    """Closes the loops of a robot around recorded joints.

    As many recorded joints as are independent are held at their values, actuated ones first. If
    more are recorded, the others follow and must agree within rounding; where they do not, because
    a held joint is near a dead centre, the joints that move most are held instead.

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
        self._loops = LoopContinuation(robot, limits=True)
        self._problem = self._loops.problem
        self._scale = self._problem.column_scale[self._columns]
        self._home = assemble(robot, guess)
        # At a dead centre a joint does not move at first order and would pass for dependent.
        near = nearby_assembly(robot, self._home, np.random.default_rng(0))
        place = self._home if near is None else near
        actuated = [name for name in joints if name in robot.actuated]
        passive = [name for name in joints if name not in robot.actuated]
        self._held = self._independent(place, actuated, passive)

    def begin(self, values: Mapping[str, float], time: float) -> Array:
        """Configuration at the first sample, on the assembly branch of the guess.

        The recorded joints go there from the assembly nearest to the guess on a straight line.
        Where the loops do not let them, any assembly with the first sample is taken.

        ``values``: coordinates of the recorded joints [rad, m]. ``time``: time of the first sample
        [s], for messages.
        """
        robot, home = self._robot, self._home
        goal = robot.configuration(values, home)
        travel = robot.difference(home, goal)
        count = int(np.ceil(np.abs(travel / self._problem.column_scale).max(initial=0.0) / STRIDE))

        def lead(q: Array, part: float) -> Array:
            return self._led(q, goal if part == 1.0 else robot.integrate(home, part * travel))

        q, part = self._loops.follow(home, lead, self._choices, max(1, count))
        return q if part == 1.0 else self._assembled(home, values, time)

    def next(self, q: Array, values: Mapping[str, float], time: float) -> Array:
        """Configuration a stride further on.

        ``q``: configuration before, shape (nq,). ``values``: coordinates of the recorded joints
        [rad, m]. ``time``: when they are there [s], for messages.
        """
        goal = self._robot.configuration(values, q)
        problem: LoopNotClosed | None = None
        for held in self._choices(q):
            closed = self._loops.closed(self._led(q, goal), held)
            if closed is None:
                continue
            change = self._robot.difference(closed, goal)[self._columns]
            worst = int(np.argmax(np.abs(change / self._scale)))
            if abs(change[worst]) <= _OFF * self._scale[worst]:
                return closed
            problem = problem or self._disagrees(closed, values, time, worst, float(change[worst]))
        if problem is not None:
            raise problem
        other = self._assembled(q, values, time)
        raise LoopNotClosed(
            f"robot '{self._robot.name}' cannot follow the recorded motion to t = {time:.6g} s "
            "without a jump to another assembly or beyond the limits of its passive joints; "
            "start from another one with guess=",
            q=other,
            residuals={},
        )

    def _disagrees(
        self, q: Array, values: Mapping[str, float], time: float, worst: int, change: float
    ) -> LoopNotClosed:
        name = self._joints[worst]
        return LoopNotClosed(
            f"joint '{name}' is recorded at {values[name]:.6g} at t = {time:.6g} s, but the loops "
            f"of robot '{self._robot.name}' put it at {values[name] - change:.6g} when "
            "the other recorded joints stand as recorded; correct its zero, sign or unit",
            q=q,
            residuals={name: abs(change)},
        )

    def velocity(self, q: Array, rates: Mapping[str, float], time: float) -> Array:
        """Velocity at ``q`` with the recorded rates, shape (nv,).

        ``q``: an assembled configuration, shape (nq,). ``rates``: rates of the recorded joints
        [rad/s, m/s]. ``time``: when [s], for messages.
        """
        wanted = np.array([rates[name] for name in self._joints]) / self._scale
        problem = ""
        for held in self._choices(q):
            try:
                v = consistent_velocity(self._robot, q, {name: rates[name] for name in held})
            except InconsistentVelocity as error:
                problem, nearest, left = problem or str(error), error.v, error.residual
                continue
            off = np.abs(v[self._columns] / self._scale - wanted)
            worst = int(np.argmax(off))
            if off[worst] <= _RATE_OFF * max(1.0, float(np.abs(wanted).max())):
                return v
            nearest, left = v, float(np.linalg.norm(off))
            name = self._joints[worst]
            problem = problem or (
                f"joint '{name}' should move at {rates[name]:.4g}, but the loops of robot "
                f"'{self._robot.name}' make it move at {v[self._columns[worst]]:.4g}; smooth the "
                "recording, or correct the sign or unit of the joint"
            )
        raise InconsistentVelocity(
            f"the recorded rates cannot be had at t = {time:.6g} s: {problem}",
            v=nearest,
            residual=left,
        )

    def _led(self, q: Array, goal: Array) -> Array:
        """A configuration with the recorded joints as in ``goal``."""
        led = q.copy()
        for name in self._joints:
            at = self._robot.coordinates(name)
            led[at.q] = goal[at.q]
        return led

    def _assembled(self, q: Array, values: Mapping[str, float], time: float) -> Array:
        """Any assembly with the recorded values; an error that says what is in the way."""
        goal = self._robot.configuration(values, q)
        within = not outside_limits(self._robot, goal, self._joints)
        fixed = {name: values[name] for name in self._held}
        try:
            return assemble(self._robot, goal, fixed, limits=within)
        except LoopNotClosed as error:
            raise LoopNotClosed(
                f"the recorded motion cannot be had at t = {time:.6g} s: {error}",
                q=error.q,
                residuals=error.residuals,
                blocked_by=error.blocked_by,
            ) from None

    def _choices(self, q: Array) -> Iterator[tuple[str, ...]]:
        """Which joints to hold around ``q``: the usual ones, then those that move most there."""
        yield self._held
        if len(self._joints) > len(self._held):
            others = self._independent(q, list(self._joints))
            if len(others) == len(self._held) and set(others) != set(self._held):
                yield others

    def _independent(self, q: Array, *groups: list[str]) -> tuple[str, ...]:
        """Joints that move independently at ``q``, from the first group as many as there are."""
        free = null_space(self._problem.jacobian(q))
        rest = dict(zip(self._joints, free[self._columns], strict=True))
        chosen: list[str] = []
        for group in groups:
            left = list(group)
            while left:
                name = max(left, key=lambda n: float(np.linalg.norm(rest[n])))
                size = float(np.linalg.norm(rest[name]))
                if size < FOLLOWS:
                    break
                left.remove(name)
                chosen.append(name)
                direction = rest[name] / size
                rest = {n: row - (row @ direction) * direction for n, row in rest.items()}
        return tuple(chosen)
