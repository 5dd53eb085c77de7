"""How the joints of a robot move: exactly in many states at once, within bounds on intervals.

Knows the joints that a robot's tree is made of, nothing of runs and shapes. No loop over states.

**In many states.** A joint is a chain of motions: about and along fixed axes one after another, or
in a plane, or by a quaternion. About an axis with the cross product matrix ``W`` the rotation is
``(I + W^2) + sin(x) W - cos(x) W^2`` (Rodrigues): of all states one product with three weights.
Velocities are derivatives of placements, by the product rule.

**What is bounded.** Between two stored states a `Trajectory` moves along ``q0 (+) psi(s)`` with a
polynomial ``psi`` in the algebra. A leaf is a part of such a step, with a parameter
``u`` from 0 to 1 that grows evenly with time; all rates are taken by ``u``, not by time, so that
nothing is ever divided by a short step. In Bernstein form a polynomial, and each of its
derivatives, lies in the hull of its control points, and norms are convex: the largest norm of
the control points bounds ``|psi|``, ``|psi'|`` and ``|psi''|`` on the leaf.

**One joint.** A joint that moves by ``exp(psi)``, ``psi = (r, f)`` in se(3), turns at
``w = dexp(f) f'`` and carries its origin along ``p = V(f) r``, ``V(f) = int_0^1 exp(x f) dx``.
From ``|dexp(f)| <= 1`` and ``|d/du dexp(f)| <= |f'| / 2``::

    |w| <= |f'|      |w'| <= |f''| + |f'|^2 / 2
    |p| <= |r|       |p'| <= |r'| + |f'| |r| / 2
    |p''| <= |r''| + |f'| |r'| + (|f''| + |f'|^2) |r| / 2

About a fixed axis ``w = f'``, and the square is left out. A joint that is a product of motions
(cylindrical, universal, ...) is taken as a chain of them.

**A chain.** A frame that moves at ``p', w`` in a frame that moves itself (speed ``v`` of its
origin, acceleration ``a``, angular velocity ``W`` and acceleration ``A``), and whose origin stays
within ``rho`` of that frame's origin, has at most::

    W + |w|,   A + |w'| + W |w|,   v + W rho + |p'|,   a + (A + W^2) rho + 2 W |p'| + |p''|

Seen the other way round, from the child, a joint has ``|p'| + |w| rho`` and
``|p''| + 2 |w| |p'| + (|w'| + |w|^2) rho`` instead of ``|p'|`` and ``|p''|``; so two bodies can be
bounded relative to each other, and what carries both does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from ...boundary.marks import Array, Integers
from ...model.mechanism import Mechanism
from ...model.moving_tree import simple_joints
from ...model.tree import coordinate_names
from ...model.workspace import remembered

# -- in many states ---------------------------------------------------------------------------

_STORED = {
    "JointModelRUBX": (0, 2),
    "JointModelRUBY": (0, 2),
    "JointModelRUBZ": (0, 2),
    "JointModelPlanar": (2, 2),
    "JointModelTranslation": (3, 0),
    "JointModelSpherical": (0, 4),
    "JointModelFreeFlyer": (3, 4),
}
"""Joints that do not move along one axis after another, by Pinocchio's name: how many translations
they have, and how many numbers of their turn follow in q: cosine and sine, or a quaternion."""
_CROSS = np.array([pin.skew(unit) for unit in np.eye(3)]).reshape(3, 9)
"""From a vector to the matrix of its cross product."""


@dataclass(frozen=True, eq=False)
class _Motion:
    """One motion of a joint, seen from the motion before.

    ``start_rotation``: rotation at zero, shape (3, 3); ``start_point``: origin at zero [m], shape
    (3,); ``slides``: its translations in q; ``directions``: direction of each of them, shape
    (number of them, 3); ``turns``: its angle in q, or cosine and sine, or a quaternion; nothing if
    it does not turn; ``turn``: rotation per weight (module docstring), shape (3, 9); not used of a
    quaternion; ``rates``: its velocities in v; ``twist``: twist of what it carries per velocity, in
    axes that it carries, shape (6, k).
    """

    start_rotation: Array
    start_point: Array
    slides: slice
    directions: Array
    turns: slice
    turn: Array
    rates: slice
    twist: Array

    def rotation(self, q: Array) -> Array:
        """Its rotation at configurations, shape (n, 3, 3), or (3, 3) if it does not turn."""
        x = q[:, self.turns]
        if x.shape[1] == 0:
            return self.start_rotation
        if x.shape[1] == 4:
            return np.asarray(self.start_rotation @ _rotate(x))
        weights = np.ones((len(q), 3))
        if x.shape[1] == 1:
            np.sin(x[:, 0], out=weights[:, 1])
            np.cos(x[:, 0], out=weights[:, 2])
        else:
            weights[:, 1], weights[:, 2] = x[:, 1], x[:, 0]
        return np.asarray((weights @ self.turn).reshape(-1, 3, 3))

    def origin(self, q: Array) -> Array:
        """Its origin at configurations [m], shape (n, 3), or (3,) if it stays."""
        if not len(self.directions):
            return self.start_point
        return np.asarray(self.start_point + q[:, self.slides] @ self.directions)


def compute_joint_poses(robot: Mechanism, q: Array) -> tuple[Array, Array]:
    """Placements in the world of Pinocchio's joints, the universe first, at many configurations.

    Rotations, shape (n, njoints, 3, 3), and origins [m], shape (n, njoints, 3); quaternions in the
    configurations, shape (n, nq), are of unit length.
    """
    R, p, *_ = _walk_tree(robot, q, None)
    return R, p


@dataclass(frozen=True, eq=False)
class JointMotions:
    """Placements of all joints in many states, and their rates; the universe comes first.

    ``rotations``: shape (n, njoints, 3, 3); ``origins``: in the world [m], shape (n, njoints, 3);
    ``turning``: rates of the rotations [1/s], shape (n, njoints, 3, 3); ``moving``: velocities of
    the origins [m/s], shape (n, njoints, 3).
    """

    rotations: Array
    origins: Array
    turning: Array
    moving: Array

    def velocities(self, joint: int, points: Array) -> Array:
        """Velocities in the world [m/s], (n, m, 3), of points in the joint's frame, (m, 3)."""
        turning, moving = self.turning[:, joint], self.moving[:, joint]
        return np.asarray(points @ np.swapaxes(turning, 1, 2) + moving[:, None])


def compute_joint_motions(robot: Mechanism, q: Array, v: Array) -> JointMotions:
    """Placements of all joints in many states, shapes (n, nq) and (n, nv), and their rates."""
    return JointMotions(*_walk_tree(robot, q, v))


def _walk_tree(robot: Mechanism, q: Array, v: Array | None) -> tuple[Array, ...]:
    """What `JointMotions` holds; without rates if no velocities are given."""
    parents = robot.model.parents
    kinds = 1 if v is None else 2
    size = kinds, len(parents), len(q), 3
    Rs, ps = np.zeros((*size, 3)), np.zeros(size)
    Rs[0, 0] = np.eye(3)
    for joint, motions in enumerate(_motions(robot), start=1):
        R, p = Rs[:, parents[joint]], ps[:, parents[joint]]
        for motion in motions:
            p, R = p + (R @ motion.origin(q)[..., None])[..., 0], R @ motion.rotation(q)
            if v is not None:
                # The twist is given in axes that the motion carries: those after it has turned.
                rates = v[:, motion.rates] @ motion.twist.T
                p[1] += (R[0] @ rates[:, :3, None])[..., 0]
                R[1] += R[0] @ (rates[:, 3:] @ _CROSS).reshape(-1, 3, 3)
        Rs[:, joint], ps[:, joint] = R, p
    pairs = zip(np.moveaxis(Rs, 2, 1), np.moveaxis(ps, 2, 1), strict=True)
    return tuple(values for pair in pairs for values in pair)


@remembered
def _motions(robot: Mechanism) -> tuple[tuple[_Motion, ...], ...]:
    """The motions of all joints; kept, because the same robot comes again and again."""
    model = robot.model
    rest = pin.neutral(model)
    joints = list(zip(model.joints, model.jointPlacements, strict=True))[1:]
    return tuple(tuple(_split_joint(joint, placement, rest)) for joint, placement in joints)


def _split_joint(joint: pin.JointModel, placement: pin.SE3, rest: Array) -> Iterator[_Motion]:
    """The motions of a joint, from its parent on.

    ``rest``: neutral configuration of the robot, shape (nq,).
    """
    q, v = joint.idx_q, joint.idx_v
    for part, place, twist in simple_joints(joint, placement, rest):
        name, turn = part.shortname(), q
        slides, turns = int(twist[:3].any()), int(twist[3:].any())
        if name in _STORED:
            slides, turns = _STORED[name]
            turn = q + slides
        R, W = np.array(place.rotation), pin.skew(twist[3:, -1])
        yield _Motion(
            start_rotation=R,
            start_point=np.array(place.translation),
            slides=slice(q, q + slides),
            directions=twist[:3].T[:slides] @ R.T,
            turns=slice(turn, turn + turns),
            turn=np.array([R + R @ W @ W, R @ W, -R @ W @ W]).reshape(3, 9),
            rates=slice(v, v + part.nv),
            twist=twist,
        )
        q, v = q + part.nq, v + part.nv


def _rotate(x: Array) -> Array:
    """Rotations of unit quaternions stored as x, y, z, w: ``I + 2 w [u] + 2 [u]^2``, (n, 3, 3)."""
    cross = (x[:, :3] @ _CROSS).reshape(-1, 3, 3)
    return np.asarray(np.eye(3) + 2.0 * (x[:, 3, None, None] * cross + cross @ cross))


# -- bounds -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class JointFactor:
    """A factor of a joint's motion: all of it, or one motion of a product.

    ``joint``: index of the joint in the model; ``columns``: its velocity coordinates; ``lengths``:
    its configuration coordinates that are translations; ``slide``: metres per unit of each velocity
    coordinate, shape (m,); ``turn``: radians per unit of each velocity coordinate, shape (m,);
    ``offset``: distance of the joint from the origin of its parent [m]; 0 but for the first factor.
    """

    joint: int
    columns: Integers
    lengths: Integers
    slide: Array
    turn: Array
    offset: float


@dataclass(frozen=True, eq=False)
class JointFactors:
    """The factors of all joints, m of them, and arrays with which all are bounded at once."""

    factors: tuple[JointFactor, ...]
    nq: int
    nv: int

    @cached_property
    def gains(self) -> tuple[Array, Array, Array]:
        """Squares of metres, and of radians, per unit of velocity coordinates, shape (nv, m).

        And of metres per unit of configuration coordinates, shape (nq, m).
        """
        count = len(self.factors)
        slides, turns, starts = (np.zeros((n, count)) for n in (self.nv, self.nv, self.nq))
        for k, factor in enumerate(self.factors):
            slides[factor.columns, k] = factor.slide**2
            turns[factor.columns, k] = factor.turn**2
            starts[factor.lengths, k] = factor.slide[factor.slide > 0] ** 2
        return slides, turns, starts

    @cached_property
    def offset(self) -> Array:
        """Distance of each from the origin of its parent [m], shape (m,)."""
        return np.array([factor.offset for factor in self.factors])


@remembered
def joint_factors(robot: Mechanism) -> JointFactors:
    """The factors of all joints, in the order of the model; kept for the next run of the robot."""
    edges = {edge.joint.name: edge.joint for edge in robot.tree.edges}
    factors = []
    for name in robot.joints:
        at, joint = robot.coordinates(name), edges[name]
        slides = np.array([label[0] == "v" for label in coordinate_names(robot.tree, name)])
        columns = np.arange(at.v.start, at.v.stop)
        whole = at.nq != at.nv and joint.coordinates != "SO3xR3"
        if whole:
            groups = [np.arange(at.nv)]
        elif joint.coordinates == "SO3xR3":
            groups = [np.arange(3), np.arange(3, 6)]
        else:  # translations side by side commute, turns about two axes do not
            cuts = [k for k in range(1, at.nv) if not (slides[k] and slides[k - 1])]
            groups = np.split(np.arange(at.nv), cuts)
        offset = float(np.linalg.norm(robot.model.jointPlacements[at.index].translation))
        pitch = abs(joint.pair.advance)
        for group in groups:
            slide = np.where(slides[group], 1.0, pitch)
            lengths = at.q.start + group[slide > 0]
            turn = np.where(slides[group], 0.0, 1.0)
            factors.append(JointFactor(at.index, columns[group], lengths, slide, turn, offset))
            offset = 0.0
    return JointFactors(tuple(factors), robot.nq, robot.nv)


@dataclass(frozen=True, eq=False)
class FrameBounds:
    """Bounds on the motion of a frame, per leaf and by its parameter.

    ``angular_velocity``: W of the docstring above [rad]; ``angular_acceleration``: A [rad];
    ``velocity``: v, of the origin [m]; ``acceleration``: a, of the origin [m].
    """

    angular_velocity: Array
    angular_acceleration: Array
    velocity: Array
    acceleration: Array

    def point_acceleration(self, radius: float) -> Array:
        """Bound on the acceleration of points at most ``radius`` from the origin [m]."""
        return np.asarray(
            self.acceleration + (self.angular_acceleration + self.angular_velocity**2) * radius
        )

    def point_velocity(self, radius: float) -> Array:
        """Bound on the speed of points at most ``radius`` from the origin [m]."""
        return np.asarray(self.velocity + self.angular_velocity * radius)

    def then(self, factor: FactorBounds) -> FrameBounds:
        """Bounds on the next frame of a chain."""
        W, A = self.angular_velocity, self.angular_acceleration
        return FrameBounds(
            W + factor.w,
            A + factor.dw + W * factor.w,
            self.velocity + W * factor.rho + factor.p,
            self.acceleration + (A + W**2) * factor.rho + 2 * W * factor.p + factor.dp,
        )


class FactorBounds(NamedTuple):
    """Bounds on one factor of a joint's motion: w, w', p', p'', rho of the docstring above."""

    w: Array
    dw: Array
    p: Array
    dp: Array
    rho: Array

    def backwards(self) -> FactorBounds:
        """The same motion as the child sees it."""
        p = self.p + self.w * self.rho
        dp = self.dp + 2 * self.w * self.p + (self.dw + self.w**2) * self.rho
        return FactorBounds(self.w, self.dw, p, dp, self.rho)


def bound_factors(factors: JointFactors, base: Array, control: Array) -> list[FactorBounds]:
    """Bounds on every factor on every leaf (module docstring, "One joint").

    ``base``: configuration that each leaf starts from, shape (n, nq); ``control``: control points
    of its ``psi``, shape (n, degree + 1, nv).
    """
    slides, turns, starts = factors.gains

    def largest(points: Array, gain: Array) -> Array:
        leaves, count, nv = points.shape
        squares = (points * points).reshape(leaves * count, nv) @ gain
        return np.asarray(np.sqrt(squares.reshape(leaves, count, gain.shape[1]).max(axis=1)))

    degree = control.shape[1] - 1
    first = degree * np.diff(control, axis=1)
    second = (degree - 1) * np.diff(first, axis=1)
    r, dr, ddr = (largest(points, slides) for points in (control, first, second))
    w, dw = largest(first, turns), largest(second, turns)
    rho = factors.offset + np.sqrt((base * base) @ starts) + r
    both = slides.any(axis=0) & turns.any(axis=0)
    dr, ddr = dr + both * (w * r / 2), ddr + both * (w * dr + (dw + w**2) * r / 2)
    dw = dw + (np.count_nonzero(turns, axis=0) > 1) * (w**2 / 2)
    rows = (np.ascontiguousarray(values.T) for values in (w, dw, dr, ddr, rho))
    return [FactorBounds(*bounds) for bounds in zip(*rows, strict=True)]
