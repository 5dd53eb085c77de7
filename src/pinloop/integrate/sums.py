"""Steps whose accelerations are computed in one call: what a method asks for, as sums.

On a vector space all stages of an explicit step, and all points at which its dense output looks for
second derivatives, are sums of vectors that are known before and of the accelerations so far. Who
can evaluate many accelerations at once is given the weights of these sums; see `Attempt` and `Step`
for what they mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from ..boundary.marks import Array
from .munthe_kaas import Attempt
from .polynomials import INNER, hermite, refined, slope_powers, value_powers
from .tableaux import Tableau

Follow = Callable[[float, float, Array, Array, Array], Sequence[Array] | None]
"""Evaluates accelerations along a step: a function of its start, its size, the configuration there,
of sums and of the vectors that they are of, the basis. Each row of the sums has the part of the
step, the row of the basis that gets ``h^2 a``, and weights of the basis that give the path from the
start, and ``h v``. Returns the accelerations; None if one of them cannot be computed."""

INSIDE = 4
"""Accelerations that second derivatives inside a step take."""


class _Stages(NamedTuple):
    """A tableau: the basis is ``h v``, ``h^2 a`` at the start, and ``h^2 a`` of each stage.

    Args:
        sums: of the stages behind the first, and of the end if an error estimate asks for it.
        end: weights of path and ``h v`` at the end, and of the errors of both, shape (2 + 2 k, m).
    """

    sums: Array
    end: Array


def try_step(
    follow: Follow, tableau: Tableau, t: float, h: float, state: tuple[Array, Array, Array]
) -> Attempt | None:
    """One step of an explicit method with error estimates, see `MuntheKaas.attempt`."""
    (q, v, a), stages = state, _stages(tableau)
    basis = np.zeros((tableau.stages + 2, len(v)))
    basis[0], basis[1] = h * v, h * h * a
    accelerations = follow(t, h, q, stages.sums, basis)
    if accelerations is None:
        return None
    psi, rate, *errors = stages.end.dot(basis)
    a1 = accelerations[-1] if tableau.looks_ahead else None
    pairs = np.array(errors).reshape(-1, 2, len(v))
    pairs[:, 1] /= h
    return Attempt(psi, q + psi, rate / h, a1, pairs)


@cache
def _stages(tableau: Tableau) -> _Stages:
    count, m = tableau.stages, tableau.stages + 2
    # Weights of the velocities at the stages, and of the paths, which are sums of these.
    rates = np.zeros((count + 1, m))
    rates[:, 0] = 1.0
    rates[:count, 1 : m - 1], rates[count, 1 : m - 1] = tableau.a, tableau.b
    paths = np.vstack([tableau.a, tableau.b]) @ rates[:count]
    nodes, places = np.append(tableau.c, 1.0), np.arange(1.0, m)
    table = np.column_stack([nodes, places, paths, rates])
    accelerations = np.eye(m)[1:]
    errors = [part for row in tableau.error_weights for part in (row @ rates, row @ accelerations)]
    last = count + 1 if tableau.looks_ahead else count
    return _Stages(table[1:last], np.array([paths[count], rates[count], *errors]))


def end_step(
    follow: Follow,
    span: tuple[float, float],
    state: tuple[Array, Array, Array],
    end: tuple[Array, Array],
    *,
    inside: bool,
) -> tuple[Array, Array | None] | None:
    """Acceleration at the end of a step, and second derivatives inside it, see `Step.bends`.

    Args:
        follow: evaluates accelerations.
        span: start and size of the step [s].
        state: at its start.
        end: path to its end, and the velocity there.
        inside: whether these are asked for.
    """
    (t, h), (q, v, a), (psi, v1) = span, state, end
    sums = _inside() if inside else _inside()[:1]
    basis = np.array([psi, h * v, h * v1, h * h * a, *np.zeros((4, len(v)))])
    accelerations = follow(t, h, q, sums, basis)
    if accelerations is None:
        return None
    return accelerations[0], basis[5:] / (h * h) if inside else None


@cache
def _inside() -> Array:
    """Sums for the end of a step and for `Step.bends`, whose order this is."""
    ends, bends = np.eye(8)[:5], np.eye(8)[5:]
    quintic = hermite(*ends)
    middle, whole = refined(quintic, INNER[1:2], bends[1:2]), refined(quintic, INNER, bends)
    before, half, behind = INNER.tolist()
    points = (half, 6, quintic), (before, 5, middle), (behind, 7, middle), (half, 6, whole)
    rows = [np.concatenate([[1.0, 4.0], np.eye(8)[0], np.eye(8)[2]])]
    for part, place, p in points:
        powers = value_powers(part, len(p)), slope_powers(part, len(p))
        rows.append(np.concatenate([[part, place], *(x @ p for x in powers)]))
    return np.array(rows)
