"""Modes and changes of the mode by brute force, for the tests of locking; no test lives here.

Rows of a mode are written down from the constraints of the loops that are closed and from unit rows
of the locked coordinates, without `pinloop.simulation.modes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pinocchio as pin

import pinloop as pl
from pinloop.model.description import GROUND
from pinloop.model.mechanism import build
from pinloop.model.tree import coordinate_names

from . import motion_by_hand as hand
from . import screw_tables as tables
from .screw_tables import Array, Table, joint
from .states import allowed, one_body, rank

Y, Z = np.eye(3)[1:]
G = 9.81
FREE = pl.Mode()


def mode_rows(robot: pl.Mechanism, mode: pl.Mode, q: Array) -> tuple[Array, Array]:
    """Rows that a mode puts on the velocities (all of them), and the unit of each row."""
    closed = robot.without_loops(mode.opened)
    loops = pl.Constraints(closed, full=True)
    J = loops.jacobian(q)
    scale = np.where(np.array(loops.angular, dtype=bool), 1.0, 1 / robot.length)
    columns = locked_columns(robot, mode)
    units = np.where(robot.is_translation[columns], 1 / robot.length, 1.0)
    return np.vstack([J, np.eye(robot.nv)[columns]]), np.r_[scale, units]


def locked_columns(robot: pl.Mechanism, mode: pl.Mode) -> list[int]:
    """Coordinates that the locks of a mode hold, lock after lock."""
    columns = []
    for lock in mode.locks:
        at, names = robot.coordinates(lock.joint).v, coordinate_names(robot.tree, lock.joint)
        columns += [at.start + names.index(axis) for axis in lock.axes or names]
    return columns


def jump(robot: pl.Mechanism, q: Array, v: Array, after: pl.Mode) -> tuple[Array, Array]:
    """Velocity after a change and the smallest impulses, by least squares.

    Gauss: of all velocities that the mode allows, the nearest one in the kinetic metric.
    """
    J, scale = mode_rows(robot, after, q)
    M = hand.mass_matrix(robot, q)
    root = np.linalg.cholesky(M).T
    F = allowed(scale[:, None] * J)
    v_plus = F @ np.linalg.lstsq(root @ F, root @ v, rcond=None)[0]
    impulse = np.linalg.lstsq((scale[:, None] * J).T, M @ (v_plus - v), rcond=1e-9)[0]
    return v_plus, scale * impulse


def assert_same_velocity(
    robot: pl.Mechanism, q: Array, got: Array, want: Array, size: Array
) -> None:
    """Two velocities agree to 1e-12 in the kinetic metric, relative to a third one."""
    M = hand.mass_matrix(robot, q)
    assert (got - want) @ M @ (got - want) <= 1e-24 * max(1e-6, float(size @ M @ size))


def moving_in(robot: pl.Mechanism, q: Array, mode: pl.Mode, seed: int, speed: float = 2.0) -> Array:
    """A velocity that a mode allows."""
    free = allowed(mode_rows(robot, mode, q)[0])
    v = free @ np.random.default_rng(seed).normal(size=free.shape[1])
    size = float(np.abs(v).max(initial=0.0))
    return np.asarray(speed / size * v) if size > 1e-9 else np.zeros(robot.nv)


def determined(J: Array) -> list[bool]:
    """Per row, whether taking it out lowers the rank: only then is its impulse unique."""
    return [rank(np.delete(J, k, axis=0)) < rank(J) for k in range(len(J))]


def some_locks(robot: pl.Mechanism, rng: np.random.Generator, most: int = 3) -> tuple[str, ...]:
    """Up to ``most`` joints, at least one."""
    count = int(rng.integers(1, min(most, len(robot.joints)) + 1))
    return tuple(str(name) for name in rng.choice(robot.joints, count, replace=False))


def any_mode(robot: pl.Mechanism, rng: np.random.Generator, most: int = 3) -> pl.Mode:
    """Up to ``most`` joints locked, of those with several axes often only some."""
    locks = []
    for name in some_locks(robot, rng, most):
        names = coordinate_names(robot.tree, name)
        some = tuple(axis for axis in names if rng.random() < 0.5)
        locks.append(pl.simulation.Locked(name, some if 0 < len(some) < len(names) else ()))
    return pl.Mode(locks)


def kinetic(robot: pl.Mechanism, q: Array, v: Array) -> float:
    return float(pin.computeKineticEnergy(robot.model, robot.model.createData(), q, v))


# -- robots with closed forms -----------------------------------------------------------------


def hanging(mass: float = 2.0, arm: float = 0.5, inertia: float = 0.1) -> pl.Mechanism:
    """A pendulum about z; gravity along -y, so at zero it lies along x and falls to negative q."""
    return one_body(
        "revolute", mass=mass, com=(arm, 0, 0), inertia=(inertia,) * 3, gravity=(0, -G, 0)
    )


def falling() -> pl.Mechanism:
    """One kilogram on a vertical slide: free fall."""
    return one_body("prismatic")


def between(robot: pl.Mechanism, lower: float, upper: float) -> pl.Mechanism:
    """A robot of `one_body` with position limits."""
    (only,) = robot.description.joints
    limited = replace(only, lower=(lower,), upper=(upper,))
    return build(replace(robot.description, joints=(limited,)))


def round_body(name: str, mass: float, inertia: float, com: Sequence[float]) -> Table:
    """A body with the same moment of inertia about every axis."""
    return {"name": name, "mass": mass, "com": list(com), "inertia": inertia * np.eye(3)}


LINKS = ((2.0, 0.4, 0.30, 0.05), (1.5, 0.5, 0.20, 0.03))
"""Mass [kg], length [m], distance of the centre of mass [m] and inertia [kg m^2] of two links."""


def two_links(gravity: float = G) -> pl.Mechanism:
    """Planar 2R arm about z, stretched along x at zero; gravity along -y."""
    (m1, l1, c1, i1), (m2, _, c2, i2) = LINKS
    return tables.build(
        {
            "name": "two links",
            "gravity": [0, -gravity, 0],
            "bodies": [round_body("one", m1, i1, [c1, 0, 0]),
                       round_body("two", m2, i2, [l1 + c2, 0, 0])],
            "joints": [joint("j1", "revolute", GROUND, "one", [0, 0, 0], Z),
                       joint("j2", "revolute", "one", "two", [l1, 0, 0], Z)],
        }
    )  # fmt: skip


def couple(pair: str, cut: str, *, gravity: float = 0.0, offset: float = 0.0) -> pl.Mechanism:
    """Two bodies, 2 and 3 kg, on joints "a" and "b" of the same axis (z), that may couple.

    The coupling closes where both coordinates are equal.

    Args:
        pair: pair of "a" and "b".
        cut: pair of the coupling, a point (1, 0, 0) or an axis z there.
        gravity: gravity along -y [m/s^2].
        offset: distance of the centres of mass from the axis [m].
    """
    place: Table = {} if cut == "fixed" else {"axis": Z}
    entries = {
        "name": "couple",
        "gravity": [0, -gravity, 0],
        "bodies": [round_body("left", 2.0, 0.1, [offset, 0, 0]),
                   round_body("right", 3.0, 0.2, [offset, 0, 0])],
        "joints": [joint("a", pair, GROUND, "left", [0, 0, 0], Z),
                   joint("b", pair, GROUND, "right", [0, 0, 0], Z),
                   joint("coupling", cut, "left", "right", [1, 0, 0], cut=True, **place)],
    }  # fmt: skip
    return tables.build(entries)
