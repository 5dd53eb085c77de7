"""From motion to forces, and what moves with what: inverse dynamics, Coriolis matrix, holonomy.

Inverse dynamics with loops, Christoffel symbols (paper 1, eqs. 46-48), the bracket of the
configuration group, and the object of non-holonomy (eq. 60): do velocity rows restrict positions?
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from ..assembly.search import null_space
from ..boundary.arguments import public
from ..boundary.marks import Array
from ..constraints.row_slopes import RowSlopes
from ..constraints.rows import Row, RowSet
from ..errors import BadValue
from ..model.mechanism import Mechanism
from ..model.moving_tree import MovingTree, load_slopes
from ..tolerances import HOLONOMIC
from .derivatives import joint_chain
from .drives import DriveTorques
from .equations import EquationsOfMotion
from .forces import Force


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

    With more actuators than degrees of freedom the smallest torques are returned. For many states,
    limits, weights and losses see `DriveTorques`.

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
        BadValue: the actuated joints do not determine the motion, and it needs more.
        InconsistentVelocity: the rows do not allow this velocity or acceleration.
    """
    drives = DriveTorques(robot, actuated=actuated, rows=rows, forces=forces, losses=False)
    return drives.unlimited(q, v, a, t)


@public
def christoffel(robot: Mechanism, q: ArrayLike) -> Array:
    """Christoffel symbols of the first kind of the tree, shape (nv, nv, nv).

    ``Gamma[a, b, c] v_b v_c`` is the Coriolis and centrifugal force along coordinate a (paper 1,
    eqs. 46-48); symmetric in b and c: half its derivative at unit velocities. Of joints with
    quaternions it is the symmetric part.
    """
    q, rest = robot.checked_configuration(q), np.zeros(robot.nv)
    slopes = [load_slopes(joint_chain(robot), q, unit, rest)[1] for unit in np.eye(robot.nv)]
    gamma = 0.5 * np.array(slopes).reshape(3 * (robot.nv,)).transpose(1, 0, 2)
    return np.asarray(0.5 * (gamma + gamma.transpose(0, 2, 1)))  # alike to the last bit


@public
def coriolis(robot: Mechanism, q: ArrayLike, v: ArrayLike) -> Array:
    """Coriolis matrix ``C`` of the tree, shape (nv, nv), with ``dM/dt - 2 C`` skew.

    ``C v`` is the Coriolis and centrifugal force. Where velocities are coordinate rates, ``C`` is
    half its derivative by ``v``; else the bracket of the configuration group belongs to it:
    ``2 C_ab = d(C v)_a/dv_b + p.[e_a, e_b] - (M e_b).[e_a, v]`` with ``p = M v``. (Pinocchio's own
    matrix leaves out terms of joints whose motion subspace moves.)
    """
    q, v = robot.checked_configuration(q), robot.checked_velocity(v)
    units, M = np.eye(robot.nv), EquationsOfMotion(robot).mass(q)
    twice = load_slopes(joint_chain(robot), q, v, np.zeros(robot.nv))[1]
    p = M @ v
    for a, x in enumerate(units):
        twice[a] += [p @ group_bracket(robot, x, y) for y in units]
        twice[a] -= M @ group_bracket(robot, x, v)
    return 0.5 * twice


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
    bound, rest = RowSet(robot, rows), np.zeros(robot.nv)
    if len(bound) == 0:
        raise BadValue(f"robot '{robot.name}' has no rows whose holonomy could be asked for")

    def slopes(v: Array) -> RowSlopes:
        tree = MovingTree(joint_chain(robot), q, v, rest)
        return bound.slopes(tree, (0.0, q, v, rest), np.zeros(len(bound)))

    columns, scale = joint_chain(robot).columns, bound.scale[:, None]
    J = scale * slopes(rest).J[:, columns]
    motions, size = null_space(J), max(1.0, float(np.abs(J).max()))
    along = [scale * slopes(motion).rate_q[:, columns] for motion in motions.T]
    dof = motions.shape[1]
    tensor = np.zeros((len(J), dof, dof))
    for i in range(dof):
        for j in range(i):
            x, y = motions[:, i], motions[:, j]
            opened = along[j] @ x - along[i] @ y - J @ group_bracket(robot, x, y)
            tensor[:, i, j], tensor[:, j, i] = opened, -opened
    integrable = bool(np.abs(tensor).max(initial=0.0) <= tolerance * size)
    return Holonomy(tensor, motions, bound.labels, integrable)


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
