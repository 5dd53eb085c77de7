"""From motion to forces: inverse dynamics with loops, Christoffel symbols, Coriolis matrix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from ..assembly.search import null_space
from ..boundary.arguments import public
from ..constraints.rows import Row
from ..errors import BadValue, InconsistentVelocity
from ..linalg.saddle import from_upper
from ..model.mechanism import Mechanism
from ..regularization.sampled_redundancy import renew_rows
from ..tolerances import CONSISTENT, LEAST_SQUARES, RANK
from .equations import EquationsOfMotion
from .forces import Force
from .holonomy import group_bracket

__all__ = ["christoffel", "coriolis", "inverse_dynamics"]

Array = NDArray[np.float64]


@public
def inverse_dynamics(
    robot: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    *,
    actuated: Sequence[str] | None = None,
    rows: Sequence[Row] = (),
    forces: Sequence[Force] = (),
    t: float = 0.0,
) -> Array:
    """Torques of the actuated joints that make a robot with loops move as given.

    With an orthogonal complement ``F`` of the rows (``J F = 0``) the reactions drop out:
    ``F' S' tau = F' (M a + nle - f)`` (paper 4, eqs. 8-9). With more actuators than degrees of
    freedom the smallest torques are returned.

    Args:
        robot: the mechanism.
        q: assembled configuration, shape (nq,).
        v: velocity that the rows allow, shape (nv,).
        a: acceleration that the rows allow, shape (nv,).
        actuated: names of the actuated joints; those of the robot by default.
        rows: constraint rows beyond loops and couplings.
        forces: what acts on the robot besides gravity and actuators.
        t: time for forces and rows that depend on it [s].

    Returns:
        Torque or force per degree of freedom of the actuated joints, in their order [N m, N].

    Raises:
        BadValue: the actuated joints do not determine the motion.
        InconsistentVelocity: the rows do not allow this velocity or acceleration.
    """
    q, v = robot.checked_configuration(q), robot.checked_velocity(v)
    a = robot.checked_velocity(a)
    equations = EquationsOfMotion(renew_rows(robot, q), rows=rows, forces=forces)
    J, b, gamma = equations.terms(t, q, v)
    scale = equations.rows.scale
    for label, rest in (("velocity", J @ v - b), ("acceleration", J @ a + gamma)):
        size = max(1.0, float(np.abs(v).max(initial=0.0)) ** 2, float(np.abs(a).max(initial=0.0)))
        left = float(np.linalg.norm(scale * rest))
        if left > CONSISTENT * size:
            raise InconsistentVelocity(
                f"robot '{robot.name}': the rows do not allow this {label}; they are violated by "
                f"{left:.3g}",
                v=v,
                residual=left,
            )
    names = robot.actuated if actuated is None else tuple(actuated)
    columns = [k for name in names for k in _columns(robot, name)]
    F = null_space(scale[:, None] * J)
    with robot.workspace() as data:
        load = np.array(pin.rnea(robot.model, data, q, v, a))
    load -= equations.force(t, q, v)
    reach = F.T[:, columns]
    if np.linalg.matrix_rank(reach, tol=RANK) < F.shape[1]:
        raise BadValue(
            f"robot '{robot.name}' has {F.shape[1]} degrees of freedom here, which the actuated "
            f"joints {', '.join(map(repr, names))} do not determine; name more joints in actuated="
        )
    return np.asarray(np.linalg.lstsq(reach, F.T @ load, rcond=LEAST_SQUARES)[0])


def _columns(robot: Mechanism, joint: str) -> range:
    at = robot.coordinates(joint)
    return range(at.v.start, at.v.stop)


@public
def christoffel(robot: Mechanism, q: ArrayLike) -> Array:
    """Christoffel symbols of the first kind of the tree, shape (nv, nv, nv).

    ``Gamma[a, b, c] v_b v_c`` is the Coriolis and centrifugal force along coordinate a (paper 1,
    eqs. 46-48); symmetric in b and c. Exact: read off the quadratic form that the recursive
    Newton-Euler algorithm evaluates. Of joints with quaternions it is the symmetric part.
    """
    q = robot.checked_configuration(q)
    n = robot.nv
    rest = np.zeros(n)
    unit = np.eye(n)

    def torque(v: Array) -> Array:
        with robot.workspace() as data:
            return np.array(pin.rnea(robot.model, data, q, v, rest))

    weight = torque(rest)

    def form(v: Array) -> Array:
        return torque(v) - weight

    single = [form(unit[b]) for b in range(n)]
    gamma = np.zeros((n, n, n))
    for b in range(n):
        gamma[:, b, b] = single[b]
        for c in range(b):
            mixed = 0.5 * (form(unit[b] + unit[c]) - single[b] - single[c])
            gamma[:, b, c] = gamma[:, c, b] = mixed
    return gamma


@public
def coriolis(robot: Mechanism, q: ArrayLike, v: ArrayLike) -> Array:
    """Coriolis matrix ``C`` of the tree, shape (nv, nv), with ``dM/dt - 2 C`` skew.

    ``C v`` is the Coriolis and centrifugal force. ``C = (dM/dt + K) / 2`` with the skew matrix
    ``K_ab = (D_b p)_a - (D_a p)_b + 2 p.[e_a, e_b]``, ``p = M v``: derivatives along the joints'
    motions, and the bracket of the configuration group where velocities are no coordinate rates.
    (Pinocchio's own matrix leaves out terms of joints whose motion subspace moves.)
    """
    q, v = robot.checked_configuration(q), robot.checked_velocity(v)
    momentum = _mass(robot, q) @ v
    slopes = [_mass_slope(robot, q, unit) for unit in np.eye(robot.nv)]
    D = np.array([slope @ v for slope in slopes])  # D[a, b] = (D_a p)_b
    brackets = np.array(
        [
            [momentum @ group_bracket(robot, x, y) for y in np.eye(robot.nv)]
            for x in np.eye(robot.nv)
        ]
    ).reshape(robot.nv, robot.nv)
    rate = np.einsum("a,abc->bc", v, np.array(slopes).reshape(robot.nv, robot.nv, robot.nv))
    return np.asarray(0.5 * (rate + D.T - D) + brackets)


def _mass(robot: Mechanism, q: Array) -> Array:
    """Mass matrix of the tree."""
    with robot.workspace() as data:
        return from_upper(pin.crba(robot.model, data, q))


def _mass_slope(robot: Mechanism, q: Array, motion: Array, step: float = 2e-3) -> Array:
    """Derivative of the mass matrix along a motion, by central differences of fourth order."""

    def mass(s: float) -> Array:
        return _mass(robot, pin.integrate(robot.model, q, s * step * motion))

    return (8 * (mass(1) - mass(-1)) - (mass(2) - mass(-2))) / (12 * step)
