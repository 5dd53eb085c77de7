"""How nearly constraints lose rank on the way of a step, and not only where it ends.

The regularity of constraints is, but for its sign, a smooth function of the configuration that is
zero where branches meet. A step may begin and end far from such a pose and yet lead across. Its
error estimate may not show that: near the pose accelerations say more of how far stages are off the
manifold than of the motion, and few stages are that near.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np

from ..boundary.marks import Array
from ..tolerances import Regularity
from .munthe_kaas import Manifold, Step
from .recording import Segment

_PLACES = (0.0, 0.02, 0.5, 0.98, 1.0)
"""Parts of a step where one looks: the first two tell if it falls, the last two if it rises."""
_GOLDEN, _CUTS = 0.5 * (math.sqrt(5.0) - 1.0), 10
"""What is left after each look closer, and how often one looks: to 0.8 %."""


class Regular(Protocol):
    """Who knows how independent constraints are."""

    @property
    def regularity(self) -> float:
        """How independent they are where the last state was projected: from 0 to 1, see `Flow`."""

    @property
    def steepest(self) -> float:
        """How fast that changes at most, per size of a motion; zero if it is not known."""

    def regularity_at(self, t: float, q: Array) -> float:
        """The same at a configuration that the motion only passes."""


def leads_to_loss(
    rows: Regular,
    manifold: Manifold,
    state: tuple[float, Array, Array],
    scale: Array,
    share: float,
) -> bool:
    """Whether constraints lose rank near a state on the way on which it moves, ahead or behind.

    Beside such a pose regularity is as large as the distance from there, but for a factor: it
    changes by all of itself on the way there. Where it hardly changes, the motion stays beside such
    poses, as while what leads there is held: then rows and error estimates tell all, as they do
    elsewhere. At rest the way is not known.

    Args:
        rows: who knows how independent constraints are.
        manifold: group of the configurations.
        state: time, configuration and velocity.
        scale: size of one unit of each velocity coordinate, shape (nv,).
        share: of itself by which it changes per rad and robot length where it is near.
    """
    t, q, v = state
    speed, regular = float(np.linalg.norm(v / scale)), rows.regularity_at(t, q)
    if speed == 0.0 or regular < Regularity.LOST:
        return True
    times = Regularity.LOOK / speed, -Regularity.LOOK / speed
    ahead, behind = (rows.regularity_at(t + x, manifold.integrate(q, x * v)) for x in times)
    return abs(ahead - behind) > 2.0 * Regularity.LOOK * share * regular


def least_regularity(
    rows: Regular, step: Step, ends: tuple[float, float], steepest: float, scale: Array
) -> float:
    """How regular constraints are where a step comes nearest to losing rank: inside, or at its end.

    Args:
        rows: who knows how independent constraints are.
        step: the step.
        ends: regularity at its start, which counts for the step before, and at its end.
        steepest: how fast it changes at most, as was known at the start.
        scale: size of one unit of each velocity coordinate, shape (nv,).
    """
    before, behind = ends

    def size(psi: Array) -> float:
        psi = psi / scale
        return math.sqrt(psi.dot(psi))

    if before + behind > steepest * size(step.psi):
        return behind
    if steepest:  # others may have turned out to be more regular
        before *= rows.steepest / steepest
    path = _path(step)

    def look(part: float) -> float:
        t, q = step.t0 + part * (step.t1 - step.t0), step.manifold.integrate(step.q0, path(part))
        return rows.regularity_at(t, q)

    middle, halfway = look(0.5), path(0.5)
    half = max(size(halfway), size(step.psi - halfway))
    if min(before, behind) + middle > rows.steepest * half > 0.0:
        return behind
    values = [before, look(_PLACES[1]), middle, look(_PLACES[3]), behind]
    least = min(values)
    for k in range(1, len(values) - 1):
        if values[k] < min(values[k - 1], values[k + 1]):
            least = min(least, _least_between(look, _PLACES[k - 1], _PLACES[k + 1]))
    return least if least < min(before, behind) else behind


def _path(step: Step) -> Callable[[float], Array]:
    """Algebra coordinates inside a step: the cubic of its ends, which asks for no accelerations."""
    h, psi = step.t1 - step.t0, step.psi
    leaving, arriving = h * step.v0, h * step.v1
    if not step.manifold.flat:
        arriving = step.manifold.dexp_inv(step.q0, psi, arriving)

    def path(part: float) -> Array:
        rest = 1.0 - part
        turn = rest * leaving - part * arriving
        return part * (part * (1.0 + 2.0 * rest) * psi + rest * turn)

    return path


def _least_between(look: Callable[[float], float], low: float, high: float) -> float:
    """The least value between two parts of a step where it falls first and rises then."""
    left, right = (look(low + share * (high - low)) for share in (1.0 - _GOLDEN, _GOLDEN))
    for _ in range(_CUTS):
        if left < right:
            high, right = low + _GOLDEN * (high - low), left
            left = look(high - _GOLDEN * (high - low))
        else:
            low, left = high - _GOLDEN * (high - low), right
            right = look(low + _GOLDEN * (high - low))
    return min(left, right)


def first_near(
    rows: Regular, segment: Segment, before: float, steepest: float, scale: Array, near: float
) -> int | None:
    """The first of many steps on whose way constraints are less regular than that; None if none.

    Args:
        rows: who knows how independent constraints are.
        segment: the steps.
        before: regularity at their start.
        steepest: how fast it changes at most, as was known there.
        scale: size of one unit of each velocity coordinate, shape (nv,).
        near: regularity that is asked for.
    """
    most = rows.steepest
    if not most:
        return None
    best = segment.notes[:, 3]
    ends = np.concatenate([[before], segment.notes[:, 2] * best / best[-1]])
    sizes = np.sqrt(((segment.psi / scale) ** 2).sum(axis=1))
    changes = most * sizes
    changes[0] = steepest * sizes[0]
    for k in (ends[:-1] + ends[1:] <= changes).nonzero()[0].tolist():
        pair, known = (float(ends[k]), float(ends[k + 1])), most if k else steepest
        if least_regularity(rows, segment.step(k), pair, known, scale) < near:
            return int(k)
    return None
