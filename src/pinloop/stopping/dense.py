"""The steps of a course in which something moves, and what lies inside them, all at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..integrate import NODES, hermite, slope_powers, value_powers

if TYPE_CHECKING:
    from .course import Course

__all__ = ["Moving", "moving_steps"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Moving:
    """Steps in which something moves.

    Args:
        course: their course.
        steps: number of the state at which each starts, shape (k,).
        h: how long each takes [s], shape (k,).
        p: coefficients of the way in each, shape (5, k, nv); of joints that are no vector space
            only nearly right.
    """

    course: Course
    steps: NDArray[np.intp]
    h: Array
    p: Array

    @cached_property
    def nodes(self) -> tuple[Array, Array]:
        """States at Gauss' points of each step, as of `inside`."""
        return self.inside(NODES)

    def rates(self, parts: Array) -> Array:
        """Velocities at parts of each step, shape (k, g, nv), nearly right as ``p`` is."""
        return np.asarray(
            np.einsum("gp,pkn->kgn", slope_powers(parts), self.p) / self.h[:, None, None]
        )

    def inside(self, parts: Array) -> tuple[Array, Array]:
        """Configurations and velocities at parts of each step, shapes (k, g, nq), (k, g, nv)."""
        kept, robot = self.course.kept, self.course.robot
        if robot.nq == robot.nv:
            start = np.array([kept[k].q for k in self.steps]).reshape(-1, 1, robot.nq)
            way = np.einsum("gp,pkn->kgn", value_powers(parts), self.p)
            return start + way, self.rates(parts)
        states = [self.course.step(int(k)).inside(parts) for k in self.steps]
        q = np.array([q for q, _ in states]).reshape(len(states), len(parts), robot.nq)
        return q, np.array([v for _, v in states]).reshape(len(states), len(parts), robot.nv)


def moving_steps(course: Course) -> Moving:
    """The steps of a course that has ended in which something moves."""
    kept, nv = course.kept, course.robot.nv
    steps = [
        k
        for k in range(len(kept) - 1)
        if kept[k + 1].t > kept[k].t and (kept[k].v.any() or kept[k + 1].v.any())
    ]

    def stacked(values: list[Array]) -> Array:
        return np.array(values).reshape(len(steps), nv)

    length = np.array([kept[k + 1].t - kept[k].t for k in steps])
    h = length[:, None]
    p = hermite(
        stacked([course.psi[k] for k in steps]),
        h * stacked([kept[k].v for k in steps]), h * stacked([kept[k + 1].v for k in steps]),
        h * h * stacked([kept[k].a for k in steps]),
        h * h * stacked([kept[k + 1].a for k in steps]),
    )  # fmt: skip
    return Moving(course, np.array(steps, dtype=np.intp), length, p)
