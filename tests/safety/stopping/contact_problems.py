"""Contacts by hand and at random, and problems made of them; no test lives here."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pinloop.dynamics.stick_slip import Contacts

from ...screw_tables import Array
from .enumeration import Problem


def contacts(
    low: ArrayLike,
    high: ArrayLike,
    target: ArrayLike = 0.0,
    up: ArrayLike = 0.0,
    down: ArrayLike = 0.0,
    columns: ArrayLike | None = None,
) -> Contacts:
    """Contacts of the first coordinates; numbers stand for all of them."""
    low = np.atleast_1d(np.asarray(low, float))
    columns = np.arange(len(low)) if columns is None else columns
    parts = (np.array(np.broadcast_to(part, low.shape), float) for part in (high, up, down))
    high, up, down = parts
    target = np.array(np.broadcast_to(target, low.shape), float)
    return Contacts(np.asarray(columns, np.intp), target, low, high, up, down)


def friction(*bounds: float) -> Contacts:
    return contacts(-np.array(bounds), np.array(bounds))


def chosen(c: Contacts, order: NDArray[np.intp] | NDArray[np.bool_]) -> Contacts:
    """Some of the contacts, or all of them in another order."""
    return Contacts(
        c.columns[order], c.target[order], c.low[order], c.high[order],
        c.inertia_up[order], c.inertia_down[order],
    )  # fmt: skip


def random_mass(rng: np.random.Generator, n: int) -> Array:
    """Symmetric positive definite, with a condition number between 1 and 1e6."""
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    M = (Q * np.geomspace(1.0, 10 ** rng.uniform(0, 6), n)) @ Q.T * 10 ** rng.uniform(-3, 3)
    return np.asarray((M + M.T) / 2)


def random_matrix(rng: np.random.Generator, m: int, n: int, sparse: float = 0.0) -> Array:
    """Of full rank and condition number below 30; some rows have one or two entries only."""
    while True:
        A = rng.normal(size=(m, n))
        for row in np.flatnonzero(rng.random(m) < sparse):
            A[row] = np.bincount(rng.integers(0, n, 2), weights=rng.normal(size=2), minlength=n)
        if A.size == 0 or np.linalg.cond(A) < 30:
            return np.asarray(A)


def random_rows(rng: np.random.Generator, n: int) -> Array:
    """Up to five rows of rank below ``n``: some depend on others or fix a coordinate."""
    m = int(rng.integers(0, 6))
    rank = int(rng.integers(0, min(m, n - 1) + 1))
    basis = random_matrix(rng, rank, n, sparse=0.4)
    mixed = random_matrix(rng, m, rank) @ basis
    mixed[:rank] = basis if rng.random() < 0.5 else mixed[:rank]
    return np.asarray(mixed)


def random_contacts(rng: np.random.Generator, M: Array, a: Array, k: int) -> Contacts:
    """Laws of many kinds, such that acceleration ``a`` is possible for all of them."""
    columns = rng.permutation(len(a))[:k]
    size = np.sqrt(np.diagonal(M)[columns])
    at_target = rng.random(k) < 0.7
    away = np.where(at_target, 0.0, rng.normal(size=k))
    high = size * rng.uniform(0, 2, k)
    low = -high
    kind = rng.choice(8, k, p=(0.44, 0.2, 0.06, 0.06, 0.06, 0.06, 0.06, 0.06))
    low = np.where(kind == 1, high - size * rng.uniform(0, 2, k), low)
    low, high = np.where(kind == 2, high, low), np.where(kind == 3, low, high)  # a kink of inertia
    low, high = np.where(kind == 4, -0.0, low), np.where(kind == 4, 0.0, high)
    low = np.where((kind == 5) | (kind == 7), -np.inf, low)
    high = np.where((kind == 6) | (kind == 7), np.inf, high)
    # Beyond an infinite bound the contact cannot go: the target lies on the other side of a.
    away = np.where(kind == 5, np.abs(away), np.where(kind == 6, -np.abs(away), away))
    away = np.where(kind == 7, 0.0, away)
    rotor = np.where(rng.random((2, k)) < 0.4, rng.uniform(0, 3, (2, k)) * size**2, 0.0)
    return Contacts(columns, a[columns] + away, low, high, rotor[0], rotor[1])


def random_problem(seed: int, n: int, k: int) -> Problem:
    """At rest (``gamma`` and most targets zero) or not."""
    rng = np.random.default_rng(seed)
    M, J = random_mass(rng, n), random_rows(rng, n)
    a = rng.normal(size=n) * (rng.random() < 0.5)
    contacts = random_contacts(rng, M, a, k)
    f = M @ a + np.sqrt(np.diagonal(M)) * rng.normal(size=n) * 10 ** rng.uniform(-0.5, 0.7)
    return Problem(M, f, J, -J @ a, contacts)


def solved_problem(seed: int, n: int, k: int) -> tuple[Problem, Array, NDArray[np.int64]]:
    """A problem made from its answer: acceleration, and side of each contact.

    A third of the pinned torques lies exactly on a bound, so that the side is only just zero.
    """
    rng = np.random.default_rng(seed)
    M, J, a = random_mass(rng, n), random_rows(rng, n), rng.normal(size=n)
    c = random_contacts(rng, M, a, k)
    side = np.sign(rng.integers(-2, 3, k))
    side = np.where((side > 0) & np.isinf(c.low) | (side < 0) & np.isinf(c.high), 0, side)
    target = a[c.columns] - side * rng.uniform(0.01, 1, k)
    low = np.where(np.isfinite(c.low), c.low, np.minimum(c.high, 0) - 1)
    high = np.where(np.isfinite(c.high), c.high, np.maximum(c.low, 0) + 1)
    high = np.where(np.isfinite(high), high, 1.0)
    low = np.where(np.isfinite(low), low, -1.0)
    pinned = low + (high - low) * rng.choice((0.0, 1.0, 0.3, 0.5, 0.8, 0.9), k)
    ahead = a[c.columns] - target
    torque = np.where(side > 0, low - c.inertia_up * ahead, pinned)
    torque = np.where(side < 0, high - c.inertia_down * ahead, torque)
    f = M @ a - J.T @ rng.normal(size=len(J))
    np.subtract.at(f, c.columns, torque)
    contacts = replace(c, target=target)
    return Problem(M, f, J, -J @ a, contacts), a, side


def redundant(seed: int, n: int, freedom: int) -> Problem:
    """Friction at all coordinates of a mechanism at rest: more contacts than freedoms."""
    rng = np.random.default_rng(seed)
    M = random_mass(rng, n)
    J = random_matrix(rng, n, n - freedom) @ random_matrix(rng, n - freedom, n)
    size = np.sqrt(np.diagonal(M))
    high = size * rng.uniform(0.1, 1, n)
    low = np.where(rng.random(n) < 0.5, -high, -size * rng.uniform(0.1, 1, n))
    f = size * rng.normal(size=n) * rng.uniform(0.2, 1.2)
    return Problem(M, f, J, np.zeros(n), contacts(low, high))
