"""Derivatives of accelerations and reactions by the native kernel, for robots that it knows.

It has the same formulas as `derivatives`, for loops of lower pairs, couplings and locks; what acts
besides and parameters are for that. Where rows contradict each other, or whether they depend on
each other is a matter of degree, it says nothing.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..boundary.marks import Array
from ..linalg.saddle import Saddle
from ..model.mechanism import Mechanism
from ..model.workspace import remembered
from ..tolerances import RANK, ROUNDED_ROWS
from .equations import EquationsOfMotion
from .kernel_tables import HAS_KERNEL, loop_tables
from .pinocchio_solver import choose_rows, standing

if HAS_KERNEL:
    from .._kernel import Derivatives as Kernel


class NativeSlopes(NamedTuple):
    """An acceleration and reactions, and their derivatives by positions, velocities and torques.

    Args:
        a: acceleration, shape (n,).
        reactions: of all rows, shape (rows,).
        a_by: derivatives of the acceleration, shape (n, 3 n).
        reactions_by: those of the reactions, NaN where they are not unique, shape (rows, 3 n).
        rate_q: of ``J v`` by positions, shape (rows, n).
        J: all rows, shape (rows, n).
    """

    a: Array
    reactions: Array
    a_by: Array
    reactions_by: Array
    rate_q: Array
    J: Array


class HeldKernel(NamedTuple):
    """A kernel and the order of the rows in it, of which the first ones hold the robot."""

    kernel: Kernel
    order: NDArray[np.intp]
    rank: int


def native_slopes(
    equations: EquationsOfMotion, t: float, q: Array, v: Array, tau: Array
) -> NativeSlopes | None:
    """The derivatives at a state; None if they are not for the kernel.

    Args:
        equations: equations of motion.
        t: time [s].
        q: configuration, shape (nq,).
        v: velocity, shape (nv,).
        tau: all that acts besides gravity, shape (nv,), whose own derivatives are not in it.
    """
    rows, robot = equations.rows, equations.robot
    only_loops = len(rows.loops) == rows.unlocked and len(rows.locked) == len(rows.lock_columns)
    if equations.wanted_engine == "python" or not only_loops or not robot.nv:
        return None
    idle = _idle_kernels(robot, tuple(rows.locked.tolist()), _rank(equations))
    try:
        held: HeldKernel | None = idle.pop()
    except IndexError:
        held = create_kernel(equations, t, q)
    if held is None:
        return None
    slopes = _evaluate(equations, held, q, v, tau)
    if slopes is None and held.rank < rows.unlocked:
        held = create_kernel(equations, t, q) or held
        slopes = _evaluate(equations, held, q, v, tau)
    idle.append(held)
    return slopes


def _rank(equations: EquationsOfMotion) -> int:
    """How many rows are independent where locked coordinates do not move."""
    if equations.max_rank is None:
        return equations.rows.unlocked
    return equations.max_rank - len(equations.rows.locked)


@remembered
def _idle_kernels(robot: Mechanism, locked: tuple[int, ...], rank: int) -> list[HeldKernel]:
    """Kernels that nobody is using; several threads may take and give them back."""
    return []


def create_kernel(equations: EquationsOfMotion, t: float, q: Array) -> HeldKernel | None:
    """A kernel with a choice of rows at a configuration; None if there is no good one."""
    rows, robot, rank = equations.rows, equations.robot, _rank(equations)
    tables = loop_tables(rows)
    if tables is None:
        return None
    order = np.arange(rows.unlocked)
    if rank < len(order):
        free = np.setdiff1d(np.arange(robot.nv), rows.locked)
        M, (J, _, _) = equations.mass(q), equations.terms(t, q, np.zeros(robot.nv))
        J = rows.scale[order, None] * J[np.ix_(order, free)]
        chosen = choose_rows(Saddle(M[np.ix_(free, free)], J).gram(), rank)
        if chosen is None:
            return None
        order = np.append(np.sort(chosen), np.setdiff1d(order, chosen))
    armature = standing(robot.model, rows.locked).armature
    return HeldKernel(
        Kernel(tables, order.tolist(), rank, rows.scale[order], armature), order, rank
    )


def create_room(kernel: Kernel) -> Array:
    """Where a kernel may write; at the start of a line of the cache, which saves it 5 %."""
    room = np.empty(kernel.size + 7)
    return room[-(room.ctypes.data // 8) % 8 :][: kernel.size]


def _evaluate(
    equations: EquationsOfMotion, held: HeldKernel, q: Array, v: Array, tau: Array
) -> NativeSlopes | None:
    """What a kernel writes, in the order of the rows."""
    rows, n = equations.rows, len(v)
    m, locks = rows.unlocked, len(rows.locked)
    room = create_room(held.kernel)
    if not held.kernel.at(q, v, tau, room):
        return None
    parts, end = list[Array](), len(room)
    for size in (n * m, n * m, m + locks, m + locks, n):  # `np.split` takes 5 us longer
        parts.append(room[end - size : end])
        end -= size
    J, rates, shared, reactions, a = parts
    slopes = room[:end].reshape(3 * n + held.rank, -1)[: 3 * n, : n + held.rank + locks]
    if ((shared[:m] > ROUNDED_ROWS) & (shared[:m] <= math.sqrt(RANK))).any():
        return None  # unique but for rounding or for being off the manifold
    by = slopes.T
    reactions_by, rate_q, J = by[n:], rates.reshape(m, n), J.reshape(m, n)
    if locks or held.rank < m:
        # Where each row is in the kernel; locks are there in the order of the coordinates.
        place = np.append(
            np.argsort(held.order), m + np.searchsorted(rows.locked, rows.lock_columns)
        )
        whole = np.full((m + locks, 3 * n), np.nan)
        whole[: held.rank], whole[m:] = reactions_by[: held.rank], reactions_by[held.rank :]
        whole[shared > np.append(np.full(m, math.sqrt(RANK)), np.full(locks, RANK))] = np.nan
        reactions, reactions_by = reactions[place], whole[place]
        still = np.zeros((locks, n))
        rate_q = np.vstack([rate_q[place[:m]], still])
        still[np.arange(locks), rows.lock_columns] = 1.0
        J = np.vstack([J[place[:m]], still])
    return NativeSlopes(a, reactions, by[:n], reactions_by, rate_q, J)
