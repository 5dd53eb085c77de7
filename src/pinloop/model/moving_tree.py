"""A tree in motion, and how velocities, accelerations and wrenches change with its state.

Twists and wrenches are in world axes at the world's origin, linear first. Coordinate i moves all
that it carries about its own twist ``J_i``; seen from there, what it is mounted on goes the other
way. With ``V_0``, ``A_0`` of the body on which its joint is mounted, ``V_1`` of the body behind the
joint, and ``p_i = -J_i x V_0``, on all that it carries

    dV/dq_i = J_i x V + p_i         dA/dq_i = J_i x (A - A_0) + p_i x (V - V_0)
    dV/dv_i = J_i                   dA/dv_i = J_i x (V - V_0) + V_1 x J_i

where the twists of a joint are constant in the body that it carries. Those of universal joints, of
Euler angles and of composites are not, which Pinocchio's derivatives do not know (they are wrong
there by as much as they are large). Such a joint is a product of joints for which it is so: as
these, with bodies without mass between them, it is written here. Its coordinates stay the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from ..boundary.marks import Array
from ..spatial.lie import apply, cross_matrices, motion_cross
from .workspace import WorkSpaces

_IDENTITY = pin.SE3.Identity()


class JointChain:
    """The model of a robot in simple joints, and places that can be moved.

    Args:
        model: model of the robot.
        movable: names of joints and frames whose placement, on the body that they belong to, can
            be moved: six coordinates each, of a free joint that stands still.

    Attributes:
        model: the model in simple joints.
        columns: velocity coordinate of the chain for each of the robot, shape (nv,).
        moved: the six velocity coordinates of each place that can be moved.
        before: whether coordinate i carries the joint of coordinate j, or moves it, at ``[i, j]``.
        frames: joint that carries each frame of the robot, and its place there.
        carrier: these joints alone.
        carried_by: whether coordinate i carries a joint's body, at ``[joint, i]``.
        behind: joint of each coordinate.
        mount: joint on whose body that is mounted.
    """

    def __init__(self, model: pin.Model, movable: Sequence[str] = ()) -> None:
        self.model = pin.Model()
        self.model.gravity = model.gravity
        self.moved: dict[str, Array] = {}
        joint_of, neutral = [0] * int(model.njoints), pin.neutral(model)
        self.frames = [(0, frame.placement) for frame in model.frames]
        columns: list[int] = []
        positions: list[int] = []
        for index in range(model.njoints):
            name, place = model.names[index], model.jointPlacements[index]
            parent = joint_of[model.parents[index]] if index else 0
            if name in movable:
                parent, place = self._add_movable(name, parent, place), _IDENTITY
            for part in simple_joints(model.joints[index], place, neutral) if index else ():
                parent = self.model.addJoint(parent, part.joint, part.place, "")
                joint = self.model.joints[parent]
                columns += range(joint.idx_v, joint.idx_v + joint.nv)
                positions += range(joint.idx_q, joint.idx_q + joint.nq)
            if index:
                self.model.appendBodyToJoint(parent, model.inertias[index], _IDENTITY)
            joint_of[index] = parent
            self._add_frames(model, index, parent, movable)
        self.columns, self._positions = np.array(columns, np.intp), np.array(positions, np.intp)
        self.model.armature[self.columns] = model.armature
        self.spaces = WorkSpaces()
        self._neutral = pin.neutral(self.model)
        self._find_paths()

    def _add_frames(self, model: pin.Model, index: int, joint: int, movable: Sequence[str]) -> None:
        """Put the frames of a joint where they are; at once, for joints must be depth first."""
        for number, frame in enumerate(model.frames):
            if frame.parentJoint == index:
                self.frames[number] = joint, frame.placement
                if frame.name in movable and frame.name not in self.moved:
                    place = self._add_movable(frame.name, joint, frame.placement)
                    self.frames[number] = place, _IDENTITY

    def _add_movable(self, name: str, parent: int, place: pin.SE3) -> int:
        """Add a free joint that stands still."""
        added: int = self.model.addJoint(parent, pin.JointModelFreeFlyer(), place, "")
        start = self.model.joints[added].idx_v
        self.moved[name] = np.arange(start, start + 6)
        return added

    def _find_paths(self) -> None:
        """Which coordinates carry which bodies, and where each coordinate's joint is mounted."""
        model = self.model
        self.carried_by = np.zeros((model.njoints, model.nv), dtype=bool)
        self.behind, self.mount = (np.zeros(model.nv, dtype=int) for _ in range(2))
        for index in range(1, model.njoints):
            joint, parent = model.joints[index], model.parents[index]
            own = slice(joint.idx_v, joint.idx_v + joint.nv)
            self.carried_by[index] = self.carried_by[parent]
            self.carried_by[index, own] = True
            self.behind[own], self.mount[own] = index, parent
        self.before = self.carried_by[self.behind].T
        self.carrier = np.array([joint for joint, _ in self.frames])

    def configuration(self, q: Array) -> Array:
        """Configuration of the chain for one of the robot."""
        if len(q) == self.model.nq:  # in the same order
            return q
        whole: Array = self._neutral.copy()
        whole[self._positions] = q
        return whole

    def velocity(self, v: Array) -> Array:
        """Velocity or acceleration of the chain for one of the robot."""
        if len(v) == self.model.nv:
            return v
        whole = np.zeros(self.model.nv)
        whole[self.columns] = v
        return whole


class SimpleJoint(NamedTuple):
    """A joint whose twists are constant in what it carries.

    Args:
        joint: Pinocchio's joint.
        place: its placement in what carries it.
        twists: of what it carries, at and in that, shape (6, nv).
    """

    joint: Any
    place: pin.SE3
    twists: Array


def simple_joints(joint: Any, place: pin.SE3, neutral: Array) -> Iterator[SimpleJoint]:
    """A joint of a model as a product of simple ones, one after another.

    Args:
        joint: the joint.
        place: its placement in what carries it.
        neutral: neutral configuration of the model, shape (nq,).
    """
    kind = joint.shortname()
    if kind == "JointModelComposite":
        whole = joint.extract()
        for part, local in zip(whole.joints, whole.jointPlacements, strict=True):
            yield from simple_joints(part, place * local, neutral)
            place = _IDENTITY
        return
    at_rest = joint.createData()
    joint.calc(at_rest, neutral)
    twists = np.array(at_rest.S).reshape(6, -1)
    if kind in ("JointModelUniversal", "JointModelSphericalZYX"):
        for twist in twists.T:
            axis = pin.JointModelRevoluteUnaligned(twist[3:])
            yield SimpleJoint(axis, place, twist[:, None])
            place = _IDENTITY
    else:
        yield SimpleJoint(joint, place, twists)


class RelativeSlopes(NamedTuple):
    """How frames B move relative to frames A, in the axes of B, and how that changes.

    Twists have shape (pairs, 6), their derivatives by the coordinates of a chain (pairs, n, 6).

    Args:
        T: placement of each B in its A.
        V: velocity; its derivatives by velocities are ``motion``.
        A: what the selector of a pair takes to accelerations of its rows, ``dV/dt``.
        motion: displacement of B relative to A.
        V_q: derivatives of the velocity by positions.
        A_q: those of the acceleration.
        A_v: its derivatives by velocities.
    """

    T: list[pin.SE3]
    V: Array
    A: Array
    motion: Array
    V_q: Array
    A_q: Array
    A_v: Array


def load_slopes(chain: JointChain, q: Array, v: Array, a: Array) -> tuple[Array, Array]:
    """Derivatives of ``M a + nle`` by positions and velocities, shape (n, n) each."""
    state = chain.configuration(q), chain.velocity(v), chain.velocity(a)
    with chain.spaces.lend(chain.model) as data:
        pin.computeRNEADerivatives(chain.model, data, *state)
        return np.array(data.dtau_dq), np.array(data.dtau_dv)


class MovingTree:
    """A chain at positions, velocities and accelerations of its robot.

    Attributes:
        chain: the chain.
        twists: of all coordinates, shape (n, 6).
        velocity: of all coordinates, shape (n,).
    """

    def __init__(self, chain: JointChain, q: Array, v: Array, a: Array) -> None:
        self.chain = chain
        self.velocity = chain.velocity(v)
        self._state = chain.configuration(q), self.velocity, chain.velocity(a)
        with chain.spaces.lend(chain.model) as data:
            pin.forwardKinematics(chain.model, data, *self._state)
            pin.computeJointJacobians(chain.model, data)
            self.twists = np.array(data.J).reshape(6, -1).T
            self._placed = [placement.copy() for placement in data.oMi]
            twists = [oMi.act(V).vector for oMi, V in zip(self._placed, data.v, strict=True)]
            twists += [oMi.act(A).vector for oMi, A in zip(self._placed, data.a, strict=True)]
        self._V, self._A = np.array(twists).reshape(2, -1, 6)
        self._V[0], self._A[0] = 0.0, 0.0  # gravity is no acceleration
        self._cross = cross_matrices(self.twists)
        self._flat_cross = self._cross.reshape(-1, 6)
        V_mount, A_mount = self._V[chain.mount], self._A[chain.mount]
        self._p = -apply(self._cross, V_mount)
        self._A_mounted = apply(self._cross, A_mount) + motion_cross(self._p, V_mount)
        self._V_behind = motion_cross(self._V[chain.behind], self.twists)

    def load_slopes(self) -> tuple[Array, Array]:
        """Derivatives of ``M a + nle`` by positions and velocities, shape (n, n) each."""
        return load_slopes(self.chain, *self._state)

    def placement(self, frame: int) -> pin.SE3:
        """Of a frame in the world."""
        joint, place = self.chain.frames[frame]
        return self._placed[joint] * place

    def moves(self, frame: int) -> Array:
        """Per coordinate 1 if it carries a frame, else 0, shape (n,)."""
        return np.asarray(self.chain.carried_by[self.chain.frames[frame][0]].astype(float))

    def relative(self, frames: Sequence[tuple[int, int]]) -> RelativeSlopes:
        """Motion of frames B relative to frames A, and its derivatives.

        ``A = A_B - A_A + V_B x V_A`` is the derivative of ``V_B - V_A`` in the axes of B, which
        turn about ``J_i`` where coordinate i carries B.
        """
        # At once for all frames A and B: these are many small matrices.
        k = len(frames)
        both = self._of_bodies(np.array(frames, dtype=int).reshape(-1, 2).T.ravel())
        V_a, A_a, V_aq, A_aq, A_av, J_a, _, by_a = (part[:k] for part in both)
        V_b, A_b, V_bq, A_bq, A_bv, J_b, on_b, by_b = (part[k:] for part in both)
        V = V_b - V_a
        A = A_b - A_a - (by_b.transpose(0, 2, 1) @ V_a[:, :, None])[:, :, 0]
        turned = self._about_each(np.concatenate([V, A]))
        V_q = V_bq - V_aq - on_b * turned[:k]
        A_q = A_bq - A_aq + V_bq @ by_a - V_aq @ by_b - on_b * turned[k:]
        A_v = A_bv - A_av + J_b @ by_a - J_a @ by_b
        places = [(self.placement(i), self.placement(j)) for i, j in frames]
        to_b = np.array([at_b.toActionMatrixInverse().T for _, at_b in places]).reshape(-1, 6, 6)
        return RelativeSlopes(
            [at_a.actInv(at_b) for at_a, at_b in places],
            (V[:, None] @ to_b)[:, 0],
            (A[:, None] @ to_b)[:, 0],
            *(part @ to_b for part in (J_b - J_a, V_q, A_q, A_v)),
        )

    def _of_bodies(self, frames: Array) -> tuple[Array, ...]:
        """Velocity and acceleration of what carries frames; derivatives; twists; what moves it.

        And what multiplies rows ``W`` from the right to give ``W x V``.
        """
        joints = self.chain.carrier[frames]
        V, A = self._V[joints], self._A[joints]
        held, cross = self.chain.carried_by[joints][:, :, None], -cross_matrices(V)
        from_right = cross.transpose(0, 2, 1)
        turned = self._about_each(np.concatenate([V, A]))
        V_q = turned[: len(V)] + self._p
        A_q = turned[len(V) :] + self._p @ from_right - self._A_mounted
        A_v = V_q + self._V_behind
        return V, A, held * V_q, held * A_q, held * A_v, held * self.twists, held, from_right

    def _about_each(self, V: Array) -> Array:
        """``J_i x V`` for some twists, shape (twists, n, 6)."""
        turned = self._flat_cross @ V.T
        return np.asarray(turned.reshape(-1, 6, len(V)).transpose(2, 0, 1))

    def wrench_slope(self, frames: Sequence[tuple[int, int]], wrenches: Sequence[Array]) -> Array:
        """Derivatives of the generalised forces of wrenches on B, and the opposite ones on A.

        Each keeps still in its B, in which it is given. At ``[j, i]`` the derivative of force j by
        coordinate i: the twist of j turns about that of i before it, the wrench with B.
        """
        slope = np.zeros((len(self.twists), len(self.twists)))
        for (a, b), wrench in zip(frames, wrenches, strict=True):
            on_b = self.moves(b)
            turned = self._turned(self.placement(b).toActionMatrixInverse().T @ wrench)
            share = (on_b - self.moves(a))[:, None] * (self.chain.before.T - on_b)
            slope += share * (self.twists @ turned.T)
        return slope

    def _turned(self, wrench: Array) -> Array:
        """``(J_i x .)' W``: what it costs a twist to turn about each, shape (n, 6)."""
        return np.asarray(wrench @ self._cross)

    def point(self, frame: int, offset: Array) -> tuple[Array, Array]:
        """A point of a frame in the world, shape (3,), and its Jacobian, shape (3, n)."""
        place = self.placement(frame) * offset
        linear, angular = self.twists[:, :3], self.twists[:, 3:]
        motion = self.moves(frame)[:, None] * (linear + np.cross(angular, place))
        return np.asarray(place), np.asarray(motion.T)

    def point_force_slope(self, frame: int, offset: Array, force: Array) -> Array:
        """Derivatives of the generalised forces of a force on a point, at ``[j, i]``.

        The force keeps still in the world.
        """
        place, motion = self.point(frame, offset)
        turned = self._turned(np.concatenate([force, np.cross(place, force)]))
        held = self.moves(frame)[:, None]
        arm = self.twists[:, 3:] @ np.cross(motion.T, force).T
        return np.asarray(held * (self.chain.before.T * (self.twists @ turned.T) + arm))
