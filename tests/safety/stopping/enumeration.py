"""Dry friction by brute force: every combination of sides is tried; no test lives here.

Each contact is pinned (0), moves ahead of its target (+1) or falls behind it (-1). A combination
turns the problem into linear equations, solved here by the singular values of one dense system, or
in fractions; it survives if all inequalities hold. Where the torques of pinned contacts are not
unique, a linear program decides whether some of them fit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from pinloop.dynamics.stick_slip import Contacts, Decision, solve_stick_slip

from ...screw_tables import Array

_RANK = 1e-11
"""Singular values below this fraction of the largest one count as zero."""
_SLACK = 1e-9
"""Violation of a condition that counts as rounding, relative to the largest term."""


@dataclass(frozen=True, eq=False)
class Problem:
    """What `solve_stick_slip` takes."""

    M: Array
    f: Array
    J: Array
    gamma: Array
    contacts: Contacts

    def solve(self) -> Decision:
        return solve_stick_slip(self.M, self.f, self.J, self.gamma, self.contacts)

    def with_rotors(self, inertia: Array) -> Problem:
        """The problem with these inertias behind the contacts, in both directions."""
        of = replace(self.contacts, inertia_up=inertia, inertia_down=inertia)
        return replace(self, contacts=of)


class Survivor(NamedTuple):
    """A combination of sides that satisfies every equation and inequality."""

    side: tuple[int, ...]
    a: Array
    torque: Array
    by_program: bool
    """Whether the linear program had to find the torques."""


def survivors(problem: Problem) -> list[Survivor]:
    """All combinations that fit; more than one if some contact is at a corner of its law."""
    p, unit = _normalised(problem)
    n, m, k = len(p.f), len(p.J), len(p.contacts.columns)
    sides = _sides(p.contacts)
    systems, wanted = _systems(p, sides)
    U, values, V = np.linalg.svd(systems)
    kept = values > _RANK * values[:, :1]
    weights = np.where(kept, (U.mT @ wanted[:, :, None])[:, :, 0] / np.where(kept, values, 1), 0)
    solutions = (V.mT @ weights[:, :, None])[:, :, 0]
    residuals = (systems @ solutions[:, :, None])[:, :, 0] - wanted
    found = []
    for i, side in enumerate(sides):
        a, torque = solutions[i, :n], solutions[i, n + m :]
        sizes = np.abs(solutions[i]).max(initial=0.0) + np.abs(wanted[i]).max(initial=0.0)
        ahead = side * (a[p.contacts.columns] - p.contacts.target)
        if np.abs(residuals[i]).max(initial=0.0) > _SLACK * sizes:
            continue
        if np.any(ahead < -_SLACK * np.abs(a).max(initial=0.0)):
            continue
        homogeneous = V[i][~kept[i]][:, n + m :].T
        fitting, by_program = _fitting(p.contacts, side == 0, torque, homogeneous, sizes)
        if fitting is not None:
            back = fitting / unit[p.contacts.columns]
            found.append(Survivor(tuple(int(s) for s in side), unit * a, back, by_program))
    assert k or len(found) == 1
    return found


def exact_survivors(
    problem: Problem,
) -> dict[tuple[int, ...], tuple[list[Fraction], list[Fraction]]]:
    """Accelerations and torques of all combinations that fit, without any rounding.

    For problems in which pinned contacts and rows never depend on each other.
    """
    p, found = problem, {}
    n, m, c = len(p.f), len(p.J), p.contacts
    for side in _sides(c):
        systems, wanted = _systems(p, side[None])
        x = _eliminated(systems[0], wanted[0])
        a, torque = x[:n], x[n + m :]
        if all(
            low <= tau <= high if s == 0 else s * (a[column] - Fraction(float(w))) >= 0
            for s, tau, column, w, low, high in zip(
                side, torque, c.columns, c.target, c.low, c.high, strict=True
            )
        ):
            found[tuple(int(s) for s in side)] = (a, torque)
    return found


def _sides(contacts: Contacts) -> NDArray[np.int64]:
    """All combinations, without those in which a contact would move against an infinite bound."""
    choices = [
        [0, *([1] if np.isfinite(low) else []), *([-1] if np.isfinite(high) else [])]
        for low, high in zip(contacts.low, contacts.high, strict=True)
    ]
    return np.array(list(product(*choices)), dtype=np.int64)


def _systems(p: Problem, sides: NDArray[np.int64]) -> tuple[Array, Array]:
    """Equations of each combination for ``(a, lam, tau)``: motion, rows, one law per contact."""
    n, m, c = len(p.f), len(p.J), p.contacts
    k = len(c.columns)
    E = np.eye(n)[c.columns]
    motion = np.hstack((p.M, -p.J.T, -E.T))
    rows = np.hstack((p.J, np.zeros((m, m + k))))
    inertia = np.where(sides > 0, c.inertia_up, c.inertia_down)
    pinned = sides == 0
    onto_a = np.where(pinned, 1.0, inertia)[:, :, None] * E
    onto_tau = np.where(pinned, 0.0, 1.0)[:, :, None] * np.eye(k)
    laws = np.concatenate((onto_a, np.zeros((len(sides), k, m)), onto_tau), axis=2)
    bound = np.where(sides > 0, c.low, np.where(pinned, 0.0, c.high))
    values = np.where(pinned, c.target, bound + inertia * c.target)
    both = np.broadcast_to(np.vstack((motion, rows)), (len(sides), n + m, n + m + k))
    right = np.broadcast_to(np.r_[p.f, -p.gamma], (len(sides), n + m))
    return np.concatenate((both, laws), axis=1), np.concatenate((right, values), axis=1)


def _normalised(p: Problem) -> tuple[Problem, Array]:
    """The problem in units that make the diagonal of M one, and those units."""
    unit = 1 / np.sqrt(np.diagonal(p.M))
    J = p.J * unit
    lengths = np.linalg.norm(J, axis=1)
    lengths = np.where(lengths > 1e-12 * lengths.max(initial=0.0), lengths, 1.0)  # not rounding
    c, own = p.contacts, unit[p.contacts.columns]
    contacts = Contacts(
        c.columns, c.target / own, c.low * own, c.high * own,
        c.inertia_up * own**2, c.inertia_down * own**2,
    )  # fmt: skip
    M = unit[:, None] * p.M * unit
    return Problem(M, p.f * unit, J / lengths[:, None], p.gamma / lengths, contacts), unit


def _fitting(
    contacts: Contacts, pinned: NDArray[np.bool_], torque: Array, homogeneous: Array, size: float
) -> tuple[Array | None, bool]:
    """Torques within the bounds of the pinned contacts, and whether the program found them."""
    low = np.where(pinned, contacts.low, -np.inf)
    high = np.where(pinned, contacts.high, np.inf)
    slack = _SLACK * max(np.abs(torque).max(initial=0.0), size)
    if np.all(torque >= low - slack) and np.all(torque <= high + slack):
        return torque, False
    homogeneous = homogeneous[:, np.abs(homogeneous).max(axis=0, initial=0.0) > 1e-8]
    if homogeneous.shape[1] == 0:
        return None, False
    # The smallest t with low - t <= torque + homogeneous y <= high + t.
    up, down = np.isfinite(high), np.isfinite(low)
    ones = np.ones((int(up.sum() + down.sum()), 1))
    program = linprog(
        np.r_[np.zeros(homogeneous.shape[1]), 1.0],
        A_ub=np.hstack((np.vstack((homogeneous[up], -homogeneous[down])), -ones)),
        b_ub=np.r_[(high - torque)[up], (torque - low)[down]] / size,
        bounds=[(None, None)] * homogeneous.shape[1] + [(0, None)],
        options={"primal_feasibility_tolerance": 1e-10},
    )
    assert program.status == 0, program.message
    best = np.asarray(program.x)
    if best[-1] > _SLACK:
        return None, True
    return torque + homogeneous @ (size * best[:-1]), True


def _eliminated(system: Array, wanted: Array) -> list[Fraction]:
    """The only solution of a square system, by Gauss and Jordan."""
    rows = [
        [Fraction(float(x)) for x in (*row, right)]
        for row, right in zip(system, wanted, strict=True)
    ]
    for i in range(len(rows)):
        pivot = next(j for j in range(i, len(rows)) if rows[j][i] != 0)
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for j, row in enumerate(rows):
            if j != i and row[i] != 0:
                rows[j] = [x - row[i] * y for x, y in zip(row, rows[i], strict=True)]
    return [row[-1] for row in rows]


# -- what any answer must fulfil -------------------------------------------------------------------


def distance(problem: Problem, a: Array, b: Array) -> float:
    """Distance of accelerations in the metric of M, relative to what acts."""
    root = np.linalg.cholesky(problem.M)
    size = float(np.linalg.norm(root.T @ a) + np.linalg.norm(np.linalg.solve(root, problem.f)))
    return float(np.linalg.norm(root.T @ (a - b))) / max(size, 1e-300)


def fulfils(problem: Problem, decision: Decision, tolerance: float = 1e-9) -> None:
    """Assert every equation and inequality of the interface."""
    M, f, J, c = problem.M, problem.f, problem.J, problem.contacts
    a, torque, side = decision.a, decision.torque, decision.side
    assert a.shape == f.shape and decision.multipliers.shape == problem.gamma.shape
    assert torque.shape == side.shape == c.columns.shape
    assert np.issubdtype(side.dtype, np.integer)
    unit = 1 / np.sqrt(np.diagonal(M))
    own = unit[c.columns]
    force = np.bincount(c.columns, weights=torque, minlength=len(f))
    terms = (M @ a, f, J.T @ decision.multipliers, force)
    size = float(sum(np.abs(unit * term).max() for term in terms))
    assert np.abs(unit * (terms[0] - sum(terms[1:]))).max() <= tolerance * size
    rates = np.abs(J) @ (np.abs(a) + unit * size)
    residual = np.abs(J @ a + problem.gamma).max(initial=0.0)
    assert residual <= tolerance * rates.max(initial=0.0)
    ahead = a[c.columns] - c.target
    assert not ahead[side == 0].any()  # what stands does not creep
    assert np.all((side * ahead)[side != 0] > 0)
    expected = np.where(side > 0, c.low - c.inertia_up * ahead, c.high - c.inertia_down * ahead)
    slack = tolerance * size / own
    sliding = side != 0
    assert np.all(np.abs(torque - expected)[sliding] <= slack[sliding])
    assert np.all((c.low - slack <= torque)[~sliding] & (torque <= c.high + slack)[~sliding])
