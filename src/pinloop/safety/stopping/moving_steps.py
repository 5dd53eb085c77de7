"""The steps of a course in which something moves, and what lies inside them, all at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...integrate import Step, hermite, slope_powers, value_powers
from .crossing import TURN
from .simulation import StopSimulation

__all__ = ["Moving", "Pieces", "moving_steps"]

Array = NDArray[np.float64]


class Pieces(NamedTuple):
    """Pieces of steps.

    Args:
        rows: the step of each, by its place among those that move, shape (k,).
        start: where each begins, as part of the step, shape (k,).
        width: how long it is, as part of the step, shape (k,).
    """

    rows: NDArray[np.intp]
    start: Array
    width: Array

    def parts(self, points: Array) -> Array:
        """Parts of the steps at points of all pieces, from 0 to 1, shape (k, g)."""
        return self.start[:, None] + self.width[:, None] * points

    def without(self, some: NDArray[np.bool_]) -> Pieces:
        """All but some."""
        return Pieces(self.rows[~some], self.start[~some], self.width[~some])

    def halves(self) -> Pieces:
        """All of them, halved."""
        half = 0.5 * self.width
        starts = np.concatenate([self.start, self.start + half])
        return Pieces(np.tile(self.rows, 2), starts, np.tile(half, 2))


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

    course: StopSimulation
    steps: NDArray[np.intp]
    h: Array
    p: Array

    @cached_property
    def pieces(self) -> Pieces:
        """The steps, cut so short that all joints together turn by little in each piece."""
        ways = np.abs(self.p).sum(axis=0)  # a bound, to and fro
        turning = ways[:, ~self.course.robot.is_translation].sum(axis=1)
        counts = np.maximum(np.ceil(turning / TURN), 1.0).astype(np.intp)
        rows = np.repeat(np.arange(len(counts)), counts)
        place = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        return Pieces(rows, place / counts[rows], 1.0 / counts[rows])

    def inside(self, rows: NDArray[np.intp], parts: Array) -> tuple[Array, Array]:
        """Configurations and velocities inside some of the steps.

        Args:
            rows: the steps, by their place in ``steps``, shape (m,).
            parts: the parts of each, from 0 to 1, shape (m, g).

        Returns:
            Shapes (m, g, nq) and (m, g, nv).
        """
        robot = self.course.robot
        if robot.nq == robot.nv:
            start = np.array([self.course.kept[k].q for k in self.steps[rows]])
            p = self.p[:, rows]
            q = start.reshape(-1, 1, robot.nq) + np.einsum("kgp,pkn->kgn", value_powers(parts), p)
            rates = np.einsum("kgp,pkn->kgn", slope_powers(parts), p)
            return q, np.asarray(rates / self.h[rows, None, None])
        states = [
            self._dense[row].inside(some) for row, some in zip(rows.tolist(), parts, strict=True)
        ]
        q = np.array([q for q, _ in states]).reshape(*parts.shape, robot.nq)
        return q, np.array([v for _, v in states]).reshape(*parts.shape, robot.nv)

    @cached_property
    def _dense(self) -> list[Step]:
        """The steps, with what they know of curved joints."""
        return [self.course.step(int(k)) for k in self.steps]


def moving_steps(course: StopSimulation) -> Moving:
    """The steps of a course that has ended in which something moves."""
    kept, nv = course.kept, course.robot.nv
    steps = [
        k
        for k in range(len(kept) - 1)
        if kept[k + 1].t > kept[k].t
        and (kept[k].v.any() or kept[k + 1].v.any() or course.psi[k].any())
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
