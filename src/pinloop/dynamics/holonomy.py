"""Do velocity rows restrict positions too? The object of non-holonomy (paper 1, eq. 60)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from ..assembly.search import null_space
from ..boundary.arguments import public
from ..constraints.rows import Row, RowSet
from ..errors import BadValue
from ..model.mechanism import Mechanism
from ..tolerances import HOLONOMIC, SLOPE_STEP

__all__ = ["Holonomy", "holonomic"]

Array = NDArray[np.float64]


@public
@dataclass(frozen=True, eq=False)
class Holonomy:
    """The object of non-holonomy at a configuration.

    Args:
        tensor: ``A[k, i, j]``: what row k opens by moving around the small rectangle of the allowed
            motions i and j, shape (rows, dof, dof), antisymmetric in i and j.
        motions: the allowed motions, orthonormal columns, shape (nv, dof).
        labels: label of each row.
        integrable: whether the tensor vanishes: the rows then restrict positions, at least here.
    """

    tensor: Array
    motions: Array
    labels: tuple[str, ...]
    integrable: bool

    def __bool__(self) -> bool:
        return self.integrable


@public
def holonomic(
    robot: Mechanism, rows: Sequence[Row], q: ArrayLike, *, tolerance: float = HOLONOMIC
) -> Holonomy:
    """Evaluate the object of non-holonomy of a robot's loops and further rows.

    For velocity rows ``A(q) v = 0`` on a Lie group and allowed motions x, y (``A x = A y = 0``) it
    is ``(D_x A) y - (D_y A) x - A [x, y]``: derivatives along the motions, and the bracket of the
    group, which is what eq. 60 becomes where velocities are no coordinate rates.

    Args:
        robot: the mechanism.
        rows: rows beyond loops and couplings.
        q: assembled configuration, shape (nq,).
        tolerance: size up to which the tensor counts as zero, relative to that of its terms.
    """
    q = robot.checked_configuration(q)
    bound = RowSet(robot, rows)
    if len(bound) == 0:
        raise BadValue(f"robot '{robot.name}' has no rows whose holonomy could be asked for")
    J = _jacobian(bound, q)
    motions = null_space(J)
    size = max(1.0, float(np.abs(J).max()))
    slopes = [_slope(bound, q, motion) for motion in motions.T]
    dof = motions.shape[1]
    tensor = np.zeros((len(J), dof, dof))
    for i in range(dof):
        for j in range(i):
            x, y = motions[:, i], motions[:, j]
            opened = slopes[i] @ y - slopes[j] @ x - J @ group_bracket(robot, x, y)
            tensor[:, i, j], tensor[:, j, i] = opened, -opened
    integrable = bool(np.abs(tensor).max(initial=0.0) <= tolerance * size)
    return Holonomy(tensor, motions, bound.labels, integrable)


def _jacobian(rows: RowSet, q: Array) -> Array:
    """Scaled Jacobian of all rows at rest."""
    robot = rows.robot
    rest = np.zeros(robot.nv)
    with robot.workspace() as data:
        pin.forwardKinematics(robot.model, data, q, rest, rest)
        pin.computeJointJacobians(robot.model, data, q)
        pin.updateFramePlacements(robot.model, data)
        return np.asarray(rows.scale[:, None] * rows.terms(0.0, q, rest, data)[0])


def _slope(rows: RowSet, q: Array, motion: Array, step: float = SLOPE_STEP) -> Array:
    """Derivative of the Jacobian along a motion, by central differences on the manifold."""
    model = rows.robot.model
    ahead = _jacobian(rows, pin.integrate(model, q, step * motion))
    behind = _jacobian(rows, pin.integrate(model, q, -step * motion))
    return np.asarray((ahead - behind) / (2 * step))


def group_bracket(robot: Mechanism, x: Array, y: Array) -> Array:
    """Lie bracket of the configuration group of two velocities, joint by joint, shape (nv,).

    Zero on joints that are vector spaces; elsewhere the bracket of the pair's motion algebra, which
    is the cross product on SO(3) and the screw product on SE(3) and SE(2).
    """
    bracket = np.zeros(robot.nv)
    for edge in robot.tree.edges:
        joint = edge.joint
        at = robot.coordinates(joint.name) if joint.pair.dof else None
        if at is None or at.nq == at.nv or joint.coordinates == "circle":
            continue  # one coordinate per degree of freedom: velocities are plain numbers
        a, b = x[at.v], y[at.v]
        if joint.coordinates == "SO3xR3":
            bracket[at.v][3:] = np.cross(a[3:], b[3:])
        else:
            free = joint.pair.algebra
            twist = pin.Motion(free @ a).cross(pin.Motion(free @ b)).vector
            bracket[at.v] = free.T @ twist  # whose columns are orthonormal
    return bracket
