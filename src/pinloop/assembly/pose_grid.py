"""Grids of poses with closed loops, over which results are tabled and drawn."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import ArrayLike

from ..boundary.arguments import flat_numbers, public
from ..boundary.marks import Array
from ..errors import BadValue
from ..model.mechanism import Mechanism, require_robot
from .assemble import assemble
from .continuation import LoopContinuation
from .search import outside_limits

_LEAP, _FINEST = 0.5, 1 / 16
"""A joint that moves farther in a step has left its branch [rad, characteristic lengths]; parts of
the way between neighbours down to which steps are halved."""

Place = tuple[int, ...]


@public
def reachable_poses(
    robot: Mechanism, values: Mapping[str, ArrayLike], start: ArrayLike | None = None
) -> Array:
    """Configurations with closed loops on a grid of joint coordinates, within all limits.

    From the point of the grid nearest to the start on, loops are followed from neighbour to
    neighbour, on one assembly branch; what cannot be reached like this is left out.

    Args:
        robot: the mechanism.
        values: per joint with one coordinate the values of the grid [rad, m], ascending. Other
            actuated joints stay as in the start.
        start: closed configuration, shape (nq,); assembled by default.

    Returns:
        Configurations, shape (n, nq), in the order of the grid, the last joint changing first.
    """
    require_robot(robot)
    grids = [flat_numbers(numbers, f"'{name}'") for name, numbers in values.items()]
    for name in values:
        if robot.coordinates(name).nq != 1:
            raise BadValue(f"joint '{name}' has several coordinates; grids are of joints with one")
    q = assemble(robot, start)
    at = [robot.coordinates(name).q.start for name in values]
    first = tuple(int(np.abs(grid - x).argmin()) for grid, x in zip(grids, q[at], strict=True))
    loops, held = LoopContinuation(robot, limits=True), tuple(values)
    held += tuple(name for name in robot.actuated if name not in held)

    def follow(q: Array, place: Place) -> Array | None:
        begin = q[at]
        end = np.array([grid[k] for grid, k in zip(grids, place, strict=True)])

        def lead(q: Array, part: float) -> Array:
            q[at] = begin + part * (end - begin)
            return q

        q, part = loops.follow(
            q, lead, lambda q: (held, tuple(values)), 1, leap=_LEAP, finest=_FINEST
        )
        return q if part == 1.0 and not outside_limits(robot, q, robot.joints) else None

    reached: dict[Place, Array] = {}
    waiting = deque([(first, q)])
    while waiting:
        place, near = waiting.popleft()
        if place in reached or (pose := follow(near, place)) is None:
            continue
        reached[place] = pose
        waiting += ((beside, pose) for beside in _neighbours(place, grids) if beside not in reached)
    return np.array([reached[place] for place in sorted(reached)]).reshape(-1, robot.nq)


def _neighbours(place: Place, grids: list[Array]) -> Iterator[Place]:
    for axis, grid in enumerate(grids):
        for step in (-1, 1):
            if 0 <= place[axis] + step < len(grid):
                yield (*place[:axis], place[axis] + step, *place[axis + 1 :])
