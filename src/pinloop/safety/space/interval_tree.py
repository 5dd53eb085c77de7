"""A run cut into leaves short enough for a purpose, with bounds that hold within each of them.

No shapes and no distances here: configurations, placements of the joints, times. How motion within
a leaf is bounded stands in `motionbounds`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ...errors import BadValue
from ...simulation.trajectory import Trajectory
from ...tolerances import BESIDE_STATE
from .joint_motions import Bounds, joint_parts, link_bounds
from .poses import joint_poses
from .steps import BINOMIALS, EVEN, bernstein, differences, moved, steps_of

__all__ = ["Leaves"]

Array = NDArray[np.float64]

_MOST = 100_000
"""More leaves than this are not made."""
_LEFT = np.array([[BINOMIALS[i, j] / 2**i for j in range(6)] for i in range(6)])
"""From the control points of a leaf to those of its first half."""
_RIGHT = _LEFT[::-1, ::-1]


class Leaves:
    """A run cut into leaves; node ``i`` is where leaf ``i`` starts, the last one the end.

    Args:
        run: the run.
        fine: tells of each leaf whether it is short enough, given the bounds on the frames of all
            joints, seen from the ground.

    Attributes:
        count: number of leaves n.
        times: start and end of each leaf [s], shape (n, 2).
        rotations: of the joints at the nodes, shape (n + 1, njoints, 3, 3).
        origins: of the joints at the nodes [m], shape (n + 1, njoints, 3).
        from_ground: bounds on the frame of every joint, the universe first.
    """

    def __init__(self, run: Trajectory, fine: Callable[[list[Bounds]], NDArray[np.bool_]]) -> None:
        self.robot = run.robot
        self._model = run.robot.model
        self._parts = joint_parts(run.robot)
        self._of_joint: dict[int, list[int]] = {}
        for number, part in enumerate(self._parts.parts):
            self._of_joint.setdefault(part.joint, []).append(number)
        base, control, times = _whole_steps(run)
        while True:
            self._base, self._control, self.times = base, control, times
            self._links = link_bounds(self._parts, base, control)
            self.from_ground = self._from_ground()
            coarse = ~fine(self.from_ground)
            if not np.any(coarse):
                break
            if len(base) + np.count_nonzero(coarse) > _MOST:
                raise BadValue(
                    f"the tolerance is too small for this motion: it would take more than {_MOST} "
                    "pieces of time; give a larger one"
                )
            base, control, times = _halved(base, control, times, coarse)
        self.count = len(self._base)
        nodes = np.vstack([moved(self.robot, self._base, self._control[:, 0]), run.q[-1]])
        self.rotations, self.origins = joint_poses(self.robot, nodes)

    def _from_ground(self) -> list[Bounds]:
        zero = np.zeros(len(self._base))
        found = [Bounds(zero, zero, zero, zero)]
        for joint in range(1, self._model.njoints):
            bounds = found[self._model.parents[joint]]
            for number in self._of_joint[joint]:
                bounds = bounds.then(self._links[number])
            found.append(bounds)
        return found

    def relative(self, joint: int, seen_from: int) -> Bounds:
        """Bounds on the frame of a joint as seen from the frame of another."""
        if seen_from == 0:
            return self.from_ground[joint]
        up, down = self._ancestors(seen_from), self._ancestors(joint)
        shared = set(up) & set(down)
        zero = np.zeros(self.count)
        bounds = Bounds(zero, zero, zero, zero)
        for here in up:
            if here not in shared:
                for number in reversed(self._of_joint[here]):
                    bounds = bounds.then(self._links[number].backwards())
        for here in reversed(down):
            if here not in shared:
                for number in self._of_joint[here]:
                    bounds = bounds.then(self._links[number])
        return bounds

    def points(
        self,
        joint: int,
        points: Array,
        seen_from: int = 0,
        nodes: slice | NDArray[np.int64] = slice(None),
    ) -> Array:
        """Where points on a joint are at the nodes.

        Args:
            joint: the joint that carries them.
            points: the points in its frame [m], shape (m, 3).
            seen_from: joint in whose frame they are wanted; 0 for the world.
            nodes: the nodes that are wanted; all by default.

        Returns:
            Points [m], shape (n + 1, m, 3) if all nodes are wanted.
        """
        R, p = self.rotations[nodes, joint], self.origins[nodes, joint]
        if seen_from:
            R0 = np.swapaxes(self.rotations[nodes, seen_from], 1, 2)
            R, p = R0 @ R, np.einsum("nij,nj->ni", R0, p - self.origins[nodes, seen_from])
        return np.asarray(points @ np.swapaxes(R, 1, 2) + p[:, None])

    def configuration(self, leaf: int, u: float) -> Array:
        """Configuration inside a leaf, ``u`` from 0 to 1."""
        psi = bernstein(u) @ self._control[leaf]
        q = pin.integrate(self._model, self._base[leaf], psi)
        return np.asarray(pin.normalize(self._model, q))

    def time(self, leaf: int, u: float) -> float:
        """Instant inside a leaf [s]."""
        start, end = self.times[leaf]
        return float(end if u == 1.0 else start + u * (end - start))

    def _ancestors(self, joint: int) -> list[int]:
        """A joint and those that carry it, up to the ground, which is left out."""
        found = []
        while joint:
            found.append(joint)
            joint = self._model.parents[joint]
        return found


def _whole_steps(run: Trajectory) -> tuple[Array, Array, Array]:
    """Per leaf its base configuration, control points and times: every step, and every gap."""
    robot, steps = run.robot, steps_of(run)
    ends = run.q[:-1].copy()
    ends[steps.number] = moved(robot, ends[steps.number], run.psi[steps.number])
    gap = differences(robot, ends, run.q[1:])
    apart = np.flatnonzero(np.any(np.abs(gap) > BESIDE_STATE, axis=1))
    order = np.argsort(np.concatenate([2 * steps.number, 2 * apart + 1]))
    if not len(order):  # a run that ended where it started
        return run.q[:1], np.zeros((1, 6, robot.nv)), run.t[None, [0, -1]]
    base = np.vstack([run.q[steps.number], ends[apart]])
    control = np.vstack([steps.psi, EVEN[:, None] * gap[apart, None]])
    first = np.concatenate([steps.number, apart + 1])
    last = np.concatenate([steps.number + 1, apart + 1])
    return base[order], control[order], np.column_stack([run.t[first], run.t[last]])[order]


def _halved(
    base: Array, control: Array, times: Array, which: NDArray[np.bool_]
) -> tuple[Array, Array, Array]:
    """The leaves with some of them cut into halves."""
    twice = np.repeat(np.arange(len(base)), np.where(which, 2, 1))
    second = np.zeros(len(twice), dtype=bool)
    second[1:] = twice[1:] == twice[:-1]
    first = which[twice] & ~second
    base, control, times = base[twice], control[twice].copy(), times[twice].copy()
    control[first], control[second] = _LEFT @ control[first], _RIGHT @ control[second]
    middle = times.mean(axis=1)
    times[first, 1], times[second, 0] = middle[first], middle[second]
    return base, control, times
