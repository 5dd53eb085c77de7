"""A block of bodies that hang together, in joint coordinates, by Pinocchio: a leaf of the assembly.

The first body of a block is its frame: everything in it is at and in that. A block that hangs on
another one is free, with the twist of its first body as its first six coordinates; a block on the
ground stays there. The memory of a `pin.Data` grows with the cube of the coordinates: that of a
block is small, and blocks of the same structure share one. Locked coordinates are none of a
block's: what moves is taken out of the matrices and vectors that Pinocchio makes of all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from ...boundary.marks import Array, Indices, Mask
from ...errors import SingularMass
from ...linalg.dense import cholesky, solve, solve_triangle
from ...linalg.saddle import from_upper
from ...model.workspace import create_data
from ...tolerances import THIN_MASS

_STEADY = ("FreeFlyer", "Spherical", "Planar", "Translation")
"""Joints with several axes whose motion map is constant in the joint frame."""
_NOTHING = np.finfo(float).tiny


@dataclass(eq=False)
class Shared:
    """Work space of Pinocchio, and the block whose placements and twists are in it."""

    data: pin.Data
    owner: Block | None = None


class Block:
    """Some bodies of a robot.

    Args:
        model: of the robot.
        bodies: their indices, parents first.
        free: the first of them hangs on a body of another block; else all hang on the ground.
        still: which coordinates of the robot are locked, shape (nv,).
        shared: work space by the structure of blocks.

    Attributes:
        bodies: indices of the bodies.
        free: whether the block is free.
        size: number of coordinates that move.
        own: places of coordinates that are the robot's, shape (k,).
        own_v: places of these among the robot's, shape (k,).
        supports: per body 1 for coordinates that move it, 0 for the others, shape (size,).
        U: generalised forces of the handles, shape (size, columns).
        loans: motions without inertia that were given a unit of it, shape (size,). Whoever solves
            must take its effect out again.
    """

    def __init__(
        self,
        model: pin.Model,
        bodies: Sequence[int],
        free: bool,
        still: Mask,
        shared: dict[object, Shared],
    ) -> None:
        self.bodies, self.free = list(bodies), free
        self._model = pin.Model()
        self._ids: dict[int, int] = {}
        for k in bodies:
            self._add(model, k, free and k == bodies[0])
        if not free:
            self._model.gravity = model.gravity
        self._find_coordinates(model, still)
        self.supports = {k: self._support(joint) for k, joint in self._ids.items()}
        structure = self._structure()
        if structure not in shared:
            shared[structure] = Shared(create_data(self._model))
        self._shared = shared[structure]
        self._data = self._shared.data
        # Pinocchio shows a matrix with one column as a vector.
        self._shown = [J.reshape(6, -1, order="F") for J in (self._data.J, self._data.dJ)]
        self._J = np.zeros((6, self.size), order="F")
        self._own_bias, self._ones = np.zeros((6, self.size)), np.ones(self.size)
        self.U = np.zeros((self.size, 0))
        self.loans: list[Array] = []

    def _find_coordinates(self, model: pin.Model, still: Mask) -> None:
        """Places of coordinates, and which joints and bodies need care."""
        joints = [model.joints[k + 1] for k in (self.bodies[1:] if self.free else self.bodies)]
        columns = _ranges([(joint.idx_v, joint.nv) for joint in joints])
        self._own_q = _ranges([(joint.idx_q, joint.nq) for joint in joints])
        first, n = 6 if self.free else 0, int(self._model.nv)
        self._model.armature[first:] = np.array(model.armature)[columns]
        moves = np.append(np.ones(first, dtype=bool), ~still[columns])
        places = np.flatnonzero(moves)
        self.size = len(places)
        self._moves: slice | Indices = slice(None) if self.size == n else places
        self._free_free = places[:, None] * n + places
        self.own, self.own_v = np.arange(first, self.size), columns[moves[first:]]
        self._own: slice | Indices = slice(first, None) if self.size == n else places[first:]
        self._own_in_q = slice(7 if self.free else 0, None)
        self._q, self._v = pin.neutral(self._model), np.zeros(n)
        own = [(number, self._model.joints[number]) for number in self._ids.values()]
        # What changes their motion map is put down to the first of their axes that moves.
        self._unsteady = [
            (number, int(moves[: at.start].sum()))
            for number, joint in own
            if is_unsteady(joint) and moves[at := slice(joint.idx_v, joint.idx_v + joint.nv)].any()
        ]
        inertias = [np.linalg.eigvalsh(model.inertias[k + 1].matrix()) for k in self.bodies]
        solid = all(values[0] > THIN_MASS**2 * values[-1] for values in inertias)
        # Axes of a joint that fall together take inertia from coordinates too.
        self._sure = solid and all(joint.nv == 1 for joint in joints)

    def _add(self, model: pin.Model, body: int, free: bool) -> None:
        joint, seat = model.joints[body + 1], model.jointPlacements[body + 1]
        if free:
            joint, seat = pin.JointModelFreeFlyer(), pin.SE3.Identity()
        parent = self._ids.get(int(model.parents[body + 1]) - 1, 0)
        self._ids[body] = self._model.addJoint(parent, joint, seat, str(body))
        inertia = model.inertias[body + 1]
        self._model.appendBodyToJoint(self._ids[body], inertia, pin.SE3.Identity())

    def _structure(self) -> object:
        """What blocks must have in common to share a `pin.Data`: tree, kinds of joints and axes."""
        q, v, kinds = pin.neutral(self._model), np.zeros(self._model.nv), []
        for number in range(1, self._model.njoints):
            joint = self._model.joints[number]
            if "Composite" in joint.shortname():
                return object()
            moving = joint.createData()
            joint.calc(moving, q, v)
            axes = np.array(moving.S).tobytes()
            kinds.append((joint.shortname(), int(self._model.parents[number]), axes))
        return tuple(kinds)

    def _support(self, joint: int) -> Array:
        mask = np.zeros(self._model.nv)
        while joint:
            at = self._model.joints[joint]
            mask[at.idx_v : at.idx_v + at.nv] = 1.0
            joint = int(self._model.parents[joint])
        return mask[self._moves]

    # -- motion -------------------------------------------------------------------------------

    def move(self, q: Array, v: Array, base: Array | None) -> None:
        """Placements, twists, Jacobians and their rates.

        Args:
            q: configuration of the robot, shape (nq,).
            v: velocity of the robot, shape (nv,).
            base: twist of a free block, shape (6,).
        """
        self._q[self._own_in_q], self._v[self._own] = q[self._own_q], v[self.own_v]
        if base is not None:
            self._v[:6] = base
        self._compute()
        J, rates = self._shown
        if self.size == len(self._v):
            self._J[:], self._own_bias = J, rates * self._v
        else:
            self._J = J.T.take(self._moves, 0).T
            self._own_bias = (rates * self._v).T.take(self._moves, 0).T
        for joint, place in self._unsteady:
            # Pinocchio takes motion maps for constant in the joint frame here.
            change = self._data.oMi[joint].act(self._data.joints[joint].c)
            self._own_bias[:, place] += change.vector

    def _compute(self) -> None:
        self._shared.owner = self
        pin.computeJointJacobiansTimeVariation(self._model, self._data, self._q, self._v)

    @property
    def velocity(self) -> Array:
        """Velocity of the coordinates, shape (size,)."""
        return self._v[self._moves]

    def placement(self, body: int) -> pin.SE3:
        """Placement of a body."""
        if self._shared.owner is not self:
            self._compute()
        return self._data.oMi[self._ids[body]]

    def body_twist(self, body: int) -> pin.Motion:
        """Twist of a body, at and in it."""
        if self._shared.owner is not self:
            self._compute()
        return self._data.v[self._ids[body]]

    def twists(self, supports: Array) -> Array:
        """Twists of bodies, given by what moves them, shape (k, 6)."""
        return np.asarray(supports @ (self._J * self.velocity).T)

    def twist(self, support: Array, alpha: Array) -> Array:
        """Twist, or part of the acceleration, that coordinates give to a body, shape (6,)."""
        return np.asarray(self._J @ (support * alpha))

    def bias(self, support: Array) -> Array:
        """Acceleration of a body without accelerations of the coordinates, shape (6,)."""
        return np.asarray(self._own_bias @ support)

    def push(self, support: Array, wrench: Array) -> Array:
        """Generalised force of a wrench on a body, shape (size,)."""
        return np.asarray(support * (wrench @ self._J))

    def biases(self, wrenches: Array, signs: Array) -> Array:
        """What handles measure without accelerations of the coordinates, shape (columns,)."""
        return np.asarray(self._ones @ ((self._own_bias.T @ wrenches.T) * signs))

    # -- handle equations ---------------------------------------------------------------------

    def assemble(self, wrenches: Array, signs: Array, root: Array) -> None:
        """Handle equations from the wrenches of a unit of each measure number.

        Args:
            wrenches: shape (columns, 6).
            signs: coordinates on which each of them acts, and with which sign, (size, columns).
            root: filled in, ``R'^-1 U`` with the factor of the mass matrix ``M = R'R``, shape
                (size, columns).
        """
        self.U = (self._J.T @ wrenches.T) * signs
        self._shared.owner = None
        M = pin.crba(self._model, self._data, self._q)
        # In column-major order, as LAPACK wants it.
        self._factorize(M if self.size == len(M) else M.T.take(self._free_free).T)
        root[:] = solve_triangle(self._factor, self.U, lower=0, transposed=1)

    def _factorize(self, M: Array) -> None:
        """Factor of the mass matrix, with inertia on loan where it has none."""
        self.loans = []
        self._factor, exists = cholesky(M)
        pivots = np.diagonal(self._factor)
        if exists and (self._sure or np.all(pivots**2 > THIN_MASS * np.diagonal(M))):
            return
        whole = from_upper(M)
        diagonal = np.maximum(np.diagonal(whole), 0.0)
        if not np.all(np.isfinite(whole)):
            raise SingularMass("the mass matrix is not finite")
        # A coordinate without inertia borrows that of the others.
        unit = 1.0 / np.sqrt(np.where(diagonal > _NOTHING, diagonal, diagonal.max(initial=1e-3)))
        values, V = np.linalg.eigh(unit[:, None] * whole * unit)
        for k in np.flatnonzero(values < THIN_MASS):
            direction = V[:, k] / unit
            whole += np.outer(direction, direction)
            self.loans.append(direction)
        self._factor, exists = cholesky(whole)
        if not exists:
            raise SingularMass("the mass matrix is not positive definite")

    # -- forces and motion --------------------------------------------------------------------

    def inertial_forces(self, gravity: Array) -> Array:
        """Generalised forces of gravity and of the motion, shape (size,).

        Args:
            gravity: acceleration of gravity, shape (3,); the block's own if it is on the ground.
        """
        if self.free:
            self._model.gravity.linear = gravity
        forces = -np.asarray(pin.nonLinearEffects(self._model, self._data, self._q, self._v))
        return forces[self._moves]

    def respond(self, forces: Array) -> Array:
        """Acceleration of the coordinates due to forces on them, shape (size,)."""
        return solve(self._factor, forces)

    def respond_to_root(self, w: Array) -> Array:
        """Acceleration of the coordinates due to ``R'^-1`` times forces, shape (size,)."""
        return solve_triangle(self._factor, w, lower=0)


def is_unsteady(joint: pin.JointModel) -> bool:
    """Whether the motion map of a joint changes with the configuration, in the joint frame."""
    name = joint.shortname().removeprefix("JointModel")
    return "Composite" in name or (joint.nv != 1 and name not in _STEADY)


def _ranges(parts: Sequence[tuple[int, int]]) -> Indices:
    return joined([np.arange(start, start + count) for start, count in parts])


def joined(parts: Sequence[Indices]) -> Indices:
    """Indices one after the other, also of no parts."""
    return np.concatenate([np.zeros(0, dtype=np.intp), *parts])
