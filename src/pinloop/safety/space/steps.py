"""The dense output of a run as polynomials: what lies between two stored states, exactly.

No bounds here and no geometry. A `Trajectory` moves along ``q0 (+) psi(s)`` with a polynomial
``psi`` of fifth order in the algebra, ``s`` from 0 to 1 over a step.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from ...errors import BadValue
from ...integrate import Step, hermite, slope_powers, value_powers
from ...model.mechanism import Mechanism
from ...simulation.stepping import RobotManifold
from ...simulation.trajectory import Trajectory

__all__ = [
    "BINOMIALS",
    "CONTROL",
    "EVEN",
    "Steps",
    "bernstein",
    "checked_run",
    "differences",
    "moved",
    "steps_of",
]

Array = NDArray[np.float64]

EVEN = np.linspace(0.0, 1.0, 6)
"""Six even instants of a step."""
BINOMIALS = np.array([[float(comb(i, j)) for j in range(6)] for i in range(6)])
"""Binomial coefficients up to the fifth row, zero beyond the diagonal."""


def bernstein(u: ArrayLike) -> Array:
    """Values at ``u`` of the six Bernstein polynomials of fifth order, shape (..., 6)."""
    x = np.asarray(u, dtype=float)[..., None]
    k = np.arange(6)
    return np.asarray(BINOMIALS[5] * x**k * (1 - x) ** (5 - k))


CONTROL = np.linalg.inv(bernstein(EVEN))
"""From values at six even instants to control points."""
WAYS, SPEEDS = CONTROL @ value_powers(EVEN), CONTROL @ slope_powers(EVEN)
"""From coefficients of a quintic to control points of its values, and of its derivatives."""


@dataclass(frozen=True, eq=False)
class Steps:
    """The steps of a run that take time, as polynomials.

    Args:
        number: index of the stored state at which each starts, shape (k,).
        length: how long each takes [s], shape (k,).
        run: the run.
        psi: control points of ``psi``, shape (k, 6, nv).
        rates: control points of its derivative by time, shape (k, 6, nv).
        flat: whether that is the velocity.
    """

    number: NDArray[np.int64]
    length: Array
    run: Trajectory
    psi: Array
    rates: Array
    flat: bool

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The steps, each from 0 to its length."""
        return _steps(self.run, self.number, self.length)


def checked_run(run: Any) -> Trajectory:
    """Return a run after checking that it is one."""
    if not isinstance(run, Trajectory):
        raise BadValue(
            f"{run!r} is no trajectory; give the result of pl.simulate, or .run of a stop"
        )
    return run


def steps_of(run: Trajectory) -> Steps:
    """The dense output of a run as polynomials."""
    length = np.diff(run.t)
    number = np.flatnonzero(length > 0)
    length = length[number]
    psi, h = run.psi[number], length[:, None]
    flat = RobotManifold(run.robot).flat
    if flat:
        (v0, v1), (a0, a1) = ((x[number], x[number + 1]) for x in (run.v, run.a))
        p = np.moveaxis(hermite(psi, h * v0, h * v1, h * h * a0, h * h * a1), 0, 1)
    else:
        steps = _steps(run, number, length)
        p = np.array([step.polynomial for step in steps]).reshape(len(steps), 5, run.robot.nv)
    return Steps(number, length, run, WAYS @ p, SPEEDS @ p / h[:, None], flat)


def _steps(run: Trajectory, number: NDArray[np.int64], length: Array) -> tuple[Step, ...]:
    """The steps that start at some stored states, each from 0 to its length."""
    manifold = RobotManifold(run.robot)
    (q0, q1), (v0, v1), (a0, a1) = ((x[number], x[number + 1]) for x in (run.q, run.v, run.a))
    return tuple(
        Step(manifold, 0.0, *one)
        for one in zip(length.tolist(), q0, v0, a0, run.psi[number], q1, v1, a1, strict=True)
    )


def moved(robot: Mechanism, q: Array, psi: Array) -> Array:
    """Configurations ``q (+) psi``, quaternions of unit length.

    Args:
        robot: the robot.
        q: configurations, shape (k, nq).
        psi: shape (k, nv).
    """
    if robot.nq == robot.nv:
        return q + psi
    model = robot.model
    places = [pin.normalize(model, pin.integrate(model, *one)) for one in zip(q, psi, strict=True)]
    return np.array(places).reshape(len(q), robot.nq)


def differences(robot: Mechanism, q: Array, other: Array) -> Array:
    """What leads from configurations to others, ``q (+) psi = other``, shape (k, nv).

    Args:
        robot: the robot.
        q: configurations, shape (k, nq).
        other: the others, shape (k, nq).
    """
    if robot.nq == robot.nv:
        return other - q
    ways = [pin.difference(robot.model, *one) for one in zip(q, other, strict=True)]
    return np.array(ways).reshape(len(q), robot.nv)
