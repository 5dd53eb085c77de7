"""Closed loops along a motion: some joints are led, the others follow on one branch of assemblies.

Sliders of the viewer, recorded motions and searches over poses move robots by it; what is led, and
what to say where it cannot go on, is theirs. What samples a branch moves at random.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np
import pinocchio as pin

from ..boundary.marks import Array
from ..model.mechanism import Mechanism
from ..model.workspace import remembered
from ..tolerances import CLOSED
from .search import Problem, descend, null_space, search, velocity_mask

_REACHES = (0.5, 0.1, 0.02)
"""Lengths of random motions, radians and characteristic lengths."""
_HOMES = 4
"""Restarts of the search for an assembly, and further ones beside it."""


class LoopContinuation:
    """The assemblies of a robot that follow continuously from one another.

    Args:
        limits: whether the joints that follow stay within their limits.

    Attributes:
        problem: all loops with no joint held, for residuals and derivatives.
    """

    def __init__(self, robot: Mechanism, *, limits: bool) -> None:
        self.problem = Problem.closure(robot, limits=limits)

    @property
    def is_free(self) -> bool:
        """Whether there is nothing to close."""
        return len(self.problem.constraints.labels) == 0

    def is_closed(self, q: Array) -> bool:
        """Whether all loops are closed at a configuration."""
        return float(np.linalg.norm(self.problem.residual(q))) < CLOSED

    def closed(self, q: Array, held: tuple[str, ...], limits: bool | None = None) -> Array | None:
        """The assembly near a configuration, None if there is none.

        Args:
            q: where to begin, shape (nq,).
            held: joints that stay exactly as in ``q``.
            limits: instead of those of the continuation.
        """
        if self.is_free:
            return q
        within = self.problem.limits if limits is None else limits
        q, error = search(replace(self.problem, held=held, limits=within), q, seed=0, restarts=0)
        return q if error < CLOSED else None

    def follow(
        self,
        q: Array,
        lead: Callable[[Array, float], Array],
        held: Callable[[Array], Iterable[tuple[str, ...]]],
        count: int,
        *,
        limits: bool | None = None,
        leap: float = math.inf,
        finest: float = 1.0,
    ) -> tuple[Array, float]:
        """Go along a path as far as the loops stay closed.

        Args:
            q: an assembly, shape (nq,).
            lead: puts the joints that are led into a configuration, at a part of the path, 0 to 1.
            held: sets of joints that may be exactly where they are led, around a configuration,
                the best first; the others of the path give way.
            count: number of steps.
            limits: instead of those of the continuation.
            leap: a coordinate that moves farther in a step has changed to another branch [rad,
                characteristic lengths].
            finest: where the loops do not close, steps are halved down to this part of a step.

        Returns:
            The last assembly, and the part of the path at which it is.
        """
        done, steps = 0, count
        while done < steps:
            led = lead(q.copy(), (done + 1) / steps)
            attempts = (self.closed(led, joints, limits) for joints in held(q))
            following = next((near for near in attempts if near is not None), None)
            if following is not None and self._distance(q, following) < leap:
                q, done = following, done + 1
            elif steps * finest >= count:
                break
            else:
                done, steps = 2 * done, 2 * steps
        return q, done / steps

    def _distance(self, q: Array, following: Array) -> float:
        """Largest move of a coordinate [rad, characteristic lengths]."""
        change = pin.difference(self.problem.robot.model, q, following) / self.problem.column_scale
        return float(np.abs(change).max(initial=0.0))


@remembered
def assembled_home(robot: Mechanism) -> Array | None:
    """The assembled configuration next to the neutral one, shape (nq,); None if none is found."""
    problem = Problem.closure(robot)
    home, error = search(problem, robot.neutral, seed=0, restarts=_HOMES)
    return home if error < CLOSED else None


def assembled_homes(robot: Mechanism) -> Iterator[Array]:
    """Assembled configurations that a robot finds by itself."""
    home = assembled_home(robot)
    if home is None:
        return
    yield home
    rng = np.random.default_rng(0)
    for _ in range(_HOMES):
        near = nearby_assembly(robot, home, rng)
        if near is not None:
            yield near


def nearby_assembly(
    robot: Mechanism,
    q: Array,
    rng: np.random.Generator,
    *,
    full: bool = True,
    held: tuple[str, ...] = (),
    reach: float = 0.5,
) -> Array | None:
    """Another assembled configuration on the branch of ``q``, or None if none was found.

    A random motion that the loops allow at first order, up to ``reach`` (radians and characteristic
    lengths), then closed again: by all rows if ``full``, also those that regularization has
    removed. Joints that are ``held`` stay where they are.
    """
    problem = Problem.closure(robot, full=full, held=held)
    lock = np.eye(robot.nv)[velocity_mask(robot, held)]
    null = null_space(np.vstack([problem.jacobian(q), lock])).T
    if len(null) == 0:
        return None
    # Projected, so that it is the same whatever basis of the motions a processor's kernels find.
    motion = null.T @ (null @ rng.normal(size=robot.nv))
    motion *= rng.uniform(0.2 * reach, reach) / max(np.abs(motion))
    start = pin.integrate(robot.model, q, motion * problem.column_scale)
    closed, error = descend(problem, start)
    return closed if error < CLOSED else None


def walk_branch(robot: Mechanism, q: Array, rng: np.random.Generator, count: int) -> list[Array]:
    """``q`` and up to so many others on its branch, each a random motion away from the last."""
    places = [q]
    for _ in range(count):
        moved = moved_away(robot, places[-1], rng)
        if moved is not None:
            places.append(moved)
    return places


def moved_away(
    robot: Mechanism,
    q: Array,
    rng: np.random.Generator,
    *,
    full: bool = True,
    accept: Callable[[Array], bool] | None = None,
) -> Array | None:
    """A configuration a random motion away, the shorter the harder it is to close; or None.

    It is one that will do, if ``accept`` is given; if none does, the one nearest to ``q``. What
    ``full`` means is said at `nearby_assembly`.
    """
    moved = None
    for reach in _REACHES:
        closed = nearby_assembly(robot, q, rng, full=full, reach=reach)
        moved = moved if closed is None else closed
        if closed is not None and (accept is None or accept(closed)):
            break
    return moved
