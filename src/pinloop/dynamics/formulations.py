"""What a formulation is, and three of ``M a = f + J' lam``, ``J a + gamma = 0``.

Formulations are interchangeable values. The three here see matrices only; what fills them is in
`equations`. Formulations that look at the robot itself have a package of their own. All give the
same accelerations, and the smallest reactions where these are not unique. What bodies do and joints
carry follows from both: by name in `BodyMotion`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ..boundary.arguments import public
from ..boundary.marks import Array
from ..constraints.closure import Constraints
from ..constraints.rows import RowSet
from ..errors import BadValue, SingularMass
from ..linalg.saddle import Saddle, factor_mass
from ..model.description import Body
from ..model.mechanism import Mechanism
from ..model.workspace import TreeKinematics
from ..tolerances import RANK
from .independence import dependent_coordinates

__all__ = [
    "Augmented",
    "Automatic",
    "BoundStateFormulation",
    "Formulation",
    "FurtherRows",
    "MatrixFormulation",
    "Projected",
    "StateFormulation",
    "Voronets",
]


class MatrixFormulation(ABC):
    """A formulation that works on mass matrix and rows of the whole robot."""

    @abstractmethod
    def solve(
        self, M: Array, J: Array, f: Array, gamma: Array, scale: Array, max_rank: int | None = None
    ) -> tuple[Array, Array]:
        """Accelerations, shape (n,), and reactions, shape (m,).

        Args:
            M: mass matrix, shape (n, n).
            J: rows, shape (m, n).
            f: forces, shape (n,).
            gamma: velocity-dependent part of the rows, shape (m,).
            scale: unit of each row's multiplier, shape (m,).
            max_rank: number of rows that can be independent at all, if that is less than m.
        """


@dataclass(frozen=True, eq=False)
class Motion:
    """Accelerations and reactions at one state.

    Args:
        a: acceleration, shape (nv,).
        multipliers: reaction per row [N m, N], shape (rows,); the smallest ones if not unique.
        determined: per row, whether its reaction is unique, shape (rows,).
        rank: number of independent rows.
        constraint_force: ``J' lam``, shape (nv,); always unique.
    """

    a: Array
    multipliers: Array
    determined: NDArray[np.bool_]
    rank: int
    constraint_force: Array


@public
def with_reactions(rows: RowSet, M: Array, f: Array, J: Array, a: Array, lam: Array) -> Motion:
    """A motion with the reactions of locks, from the equations of their coordinates.

    Args:
        rows: all rows of the robot.
        M: mass matrix, shape (nv, nv).
        f: forces, shape (nv,).
        J: all rows, shape (rows, nv).
        a: solution of ``M a = f + J' lam``, shape (nv,).
        lam: reactions of the rows that are not those of locks.
    """
    missing = M @ a - f - J[: len(lam)].T @ lam
    if not len(lam) and len(rows.locked) == len(rows.lock_columns):
        lam = missing[rows.lock_columns]  # one coordinate each
        return Motion(a, lam, np.ones(len(lam), dtype=bool), len(lam), J.T @ lam)
    saddle, scale = Saddle(M, J, rows.scale), rows.scale
    lam = np.append(lam, missing[rows.lock_columns])
    if saddle.rank < len(J):
        lam = scale * np.linalg.lstsq((scale[:, None] * J).T, J.T @ lam, rcond=RANK)[0]
    return Motion(a, lam, saddle.determined, saddle.rank, J.T @ lam)


@dataclass(frozen=True, eq=False)
class FurtherRows:
    """Rows beyond loops at a state: ``J x = values``.

    Args:
        J: shape (k, nv).
        values: shape (k,).
        index: place of each among all rows of the robot.
    """

    J: Array
    values: Array
    index: NDArray[np.intp]


class StateFormulation(ABC):
    """A formulation that works on the robot itself, without matrices of the whole robot."""

    @abstractmethod
    def bind(self, rows: RowSet, home: Array | None) -> BoundStateFormulation:
        """Return the formulation with work space for a robot.

        Args:
            rows: rows of the robot; it evaluates those of loops itself.
            home: configuration around which it is seen how many rows are independent, shape (nq,);
                None if that is not known.
        """


class BoundStateFormulation(ABC):
    """A state formulation of one robot, with work space: for one thread at a time."""

    @abstractmethod
    def solve(self, q: Array, v: Array, tau: Array, further: FurtherRows) -> tuple[Array, Array]:
        """Accelerations, shape (nv,), and reactions, shape (rows,), not always the smallest.

        Args:
            q: configuration, shape (nq,).
            v: velocity, shape (nv,).
            tau: applied generalised forces without gravity, shape (nv,).
            further: rows beyond loops, with accelerations as values.
        """

    @abstractmethod
    def position(self, q: Array, further: Callable[[Array], FurtherRows]) -> Array:
        """The configuration nearby in which all loops are closed, shape (nq,).

        Args:
            q: configuration, shape (nq,).
            further: rows beyond loops as a function of the configuration, with the corrections
                that they want as values.
        """

    @abstractmethod
    def velocity(self, q: Array, v: Array, further: FurtherRows) -> Array:
        """The velocity nearest in the kinetic metric that all joints and rows allow, (nv,).

        Args:
            q: configuration, shape (nq,).
            v: velocity, shape (nv,).
            further: rows beyond loops, with rates as values.
        """


Formulation = MatrixFormulation | StateFormulation
"""A way to eliminate the reactions."""


@public
@dataclass(frozen=True)
class Augmented(MatrixFormulation):
    """The index-1 system with all reactions (paper 4, eq. 5), by its Schur complement."""

    def solve(
        self, M: Array, J: Array, f: Array, gamma: Array, scale: Array, max_rank: int | None = None
    ) -> tuple[Array, Array]:
        """Solve for accelerations and reactions; see `MatrixFormulation`."""
        return Saddle(M, J, scale, max_rank=max_rank).solve(f, -gamma)


@public
@dataclass(frozen=True)
class Automatic(Augmented):
    """The fastest that applies: recursions for trees and loops of lower pairs, or `Augmented`.

    Args:
        engine: "native" lets the native kernel compute what it can, if it was built; "python" calls
            Pinocchio instead. Results differ only by rounding.
    """

    engine: Literal["native", "python"] = "native"

    def __post_init__(self) -> None:
        if self.engine not in ("native", "python"):
            raise BadValue(f"engine is {self.engine!r}; give 'native' or 'python'")


@public
@dataclass(frozen=True)
class Projected(MatrixFormulation):
    """The equations projected to the null space of the rows (paper 4, eq. 7).

    ``a = N M^-1 f - J^+ gamma`` with the M-weighted pseudoinverse ``J^+`` and ``N = I - J^+ J``:
    Gauss' principle of least constraint. No reactions are needed for the accelerations.
    """

    def solve(
        self, M: Array, J: Array, f: Array, gamma: Array, scale: Array, max_rank: int | None = None
    ) -> tuple[Array, Array]:
        """Solve for accelerations and reactions; see `MatrixFormulation`."""
        rows = scale[:, None] * J
        # In coordinates z = L' a the metric is the identity and J^+ an ordinary pseudoinverse.
        _, L, weight = factor_mass(M, rows)
        inverse = np.linalg.inv(L)
        plus = _pseudoinverse(rows @ inverse.T, max_rank)
        free = inverse @ f
        along = free - plus @ (rows @ (inverse.T @ free))
        a = inverse.T @ (along - plus @ (scale * gamma))
        lam = plus.T @ (L.T @ a - free)
        if weight:  # see `saddle`
            lam -= weight * (rows @ a)
        return a, scale * lam


@public
@dataclass(frozen=True)
class Voronets(MatrixFormulation):
    """Minimal velocities: the equations of Voronets (paper 1, eqs. 54-59; paper 4, eqs. 10-13).

    ``v = F u`` with the independent velocities ``u``, which optimal coordinate partitioning chooses
    at every state: those are the best ones there, and accelerations are a function of the state.
    """

    def solve(
        self, M: Array, J: Array, f: Array, gamma: Array, scale: Array, max_rank: int | None = None
    ) -> tuple[Array, Array]:
        """Solve for accelerations and reactions; see `MatrixFormulation`."""
        rows = scale[:, None] * J
        dependent, _ = dependent_coordinates(M, rows, max_rank=max_rank)
        independent = np.setdiff1d(np.arange(len(M)), dependent)
        # Rows that others contain on the manifold only are met in the least-squares sense off it.
        wanted = np.column_stack([rows[:, independent], scale * gamma])
        met = np.linalg.lstsq(rows[:, dependent], -wanted, rcond=None)[0]
        F, drift = np.zeros((len(M), len(independent))), np.zeros(len(M))
        F[independent, np.arange(len(independent))] = 1.0
        F[dependent], drift[dependent] = met[:, :-1], met[:, -1]
        du = _solve(F.T @ M @ F, F.T @ (f - M @ drift))
        a = F @ du + drift
        lam = np.linalg.lstsq(rows.T, M @ a - f, rcond=RANK)[0]
        return a, scale * lam


def _pseudoinverse(A: Array, max_rank: int | None) -> Array:
    """Pseudoinverse with at most ``max_rank`` singular values."""
    if A.size == 0:
        return np.zeros(A.T.shape)
    U, values, V = np.linalg.svd(A, full_matrices=False)
    rank = min(
        int(np.sum(values > RANK * values[0])), len(values) if max_rank is None else max_rank
    )
    return np.asarray((V[:rank].T / values[:rank]) @ U[:, :rank].T)


def _solve(A: Array, B: Array) -> Array:
    """``A^-1 B``, also for empty systems."""
    if A.size == 0:
        return np.zeros(B.shape)
    try:
        return np.asarray(np.linalg.solve(A, B))
    except np.linalg.LinAlgError:
        raise SingularMass("the mass matrix of the minimal velocities is singular") from None


@dataclass(frozen=True, eq=False)
class BodyMotion:
    """Motion of all bodies and wrenches in all joints at one state.

    Args:
        accelerations: spatial acceleration of each body, at and in its frame [m/s^2, rad/s^2].
        wrenches: what each joint, fixed ones and loop joints too, exerts on its child (body B of a
            loop joint), at and in the joint's frame on the child [N, N m]. Actuation, brakes and
            forces of the user act through the joints here, as their generalised forces.
    """

    accelerations: dict[str, pin.Motion]
    wrenches: dict[str, pin.Force]


def body_motion(
    robot: Mechanism, loops: Constraints, q: Array, v: Array, a: Array, multipliers: Array
) -> BodyMotion:
    """Motion of all bodies, and wrenches by Newton's and Euler's laws, from the tips to the ground.

    Args:
        robot: the mechanism.
        loops: rows of its loops.
        q: configuration, shape (nq,).
        v: velocity, shape (nv,).
        a: acceleration, shape (nv,).
        multipliers: reactions of these rows, and perhaps of others after them.
    """
    model, tree = robot.model, TreeKinematics(robot.model).update(q)
    described = {joint.name: joint for joint in robot.description.joints}
    frames = {body: model.frames[robot.frame_id(body)] for body in robot.bodies}
    twists, accelerations = _tree_motion(model, q, v, a)
    own = {
        body: frame.placement.actInv(accelerations[frame.parentJoint])
        for body, frame in frames.items()
    }

    def place(frame: pin.Frame) -> pin.SE3:
        return tree.oMi[frame.parentJoint] * frame.placement

    missing = {
        body.name: _needed(body, place(frame), frame.placement.actInv(twists[frame.parentJoint]),
                           own[body.name], model.gravity)
        for body in robot.description.bodies
        if (frame := frames.get(body.name)) is not None
    }  # fmt: skip

    def transmit(force: pin.Force, child: str, parent: str) -> None:
        for body, received in ((child, force), (parent, -force)):
            if body in missing:  # the ground needs nothing
                missing[body] = missing[body] - received

    on_child: dict[str, pin.Force] = {}
    for loop in robot.loops:
        wrench = loops.wrench(tree, loop.name, multipliers[loops.rows_of[loop.name]])
        force = place(model.frames[loop.frame_b]).act(pin.Force(wrench))
        on_child[loop.name] = force if described[loop.name].child == loop.body_b else -force
        transmit(force, loop.body_b, loop.body_a)
    # Children first: what a joint carries is what its child still lacks.
    for edge in reversed(robot.tree.edges):
        force = missing[edge.child]
        transmit(force, edge.child, edge.parent)
        on_child[edge.joint.name] = force if edge.orientation > 0 else -force
    wrenches = {
        name: (place(model.frames[robot.frame_id(joint.child)]) * joint.frame_child).actInv(
            on_child[name]
        )
        for name, joint in described.items()
        if name in on_child
    }
    return BodyMotion(own, wrenches)


def _needed(
    body: Body, placement: pin.SE3, twist: pin.Motion, acceleration: pin.Motion, gravity: pin.Motion
) -> pin.Force:
    """What a body needs from its joints, at and in the world frame; its motion is in its own."""
    inertia = pin.Inertia(body.mass, np.array(body.com), np.array(body.inertia))
    A = acceleration - placement.actInv(gravity)
    return placement.act(inertia * A + inertia.vxiv(twist))


def _tree_motion(
    model: pin.Model, q: Array, v: Array, a: Array
) -> tuple[list[pin.Motion], list[pin.Motion]]:
    """Twists and spatial accelerations of all joint frames.

    Without `pin.Data`, whose memory grows with the cube of the coordinates.
    """
    twists, accelerations = [pin.Motion.Zero()], [pin.Motion.Zero()]
    for k in range(1, model.njoints):
        joint, above = model.joints[k], int(model.parents[k])
        moving, at = joint.createData(), slice(joint.idx_v, joint.idx_v + joint.nv)
        joint.calc(moving, q, v)
        step, own = model.jointPlacements[k] * moving.M, np.reshape(moving.S, (6, -1)) @ a[at]
        twists.append(step.actInv(twists[above]) + moving.v)
        along = pin.Motion(own) + moving.c + twists[k].cross(moving.v)
        accelerations.append(step.actInv(accelerations[above]) + along)
    return twists, accelerations
