"""A robot as plain numbers that any simulator can be built from, and how far two results differ.

Read off the `pin.Model` of a `Mechanism`: one part per joint of the tree, one tie per loop joint,
and the springs and constant torques that a motion adds. Nothing here knows a simulator; losses are
left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

import pinloop as pl

Array = NDArray[np.float64]
Poses = tuple[Array, Array]
"""Positions of all parts, shape (n, 3), and rotations, shape (n, 3, 3), in the world."""

_AXES = {"X": (1.0, 0.0, 0.0), "Y": (0.0, 1.0, 0.0), "Z": (0.0, 0.0, 1.0)}


@dataclass(frozen=True, eq=False)
class Part:
    """A body and the joint that carries it.

    Args:
        parent: index of the part it hangs on, -1 for the ground.
        placement: placement of the joint on the parent.
        motions: ("hinge" or "slide", axis in the frame of the part) one after another; or "ball"
            or "free" alone, with an empty axis.
        inertia: spatial inertia in the frame of the part.
        pose: placement in the world at the start.
        twist: velocity in its own frame at the start.
    """

    parent: int
    placement: pin.SE3
    motions: tuple[tuple[str, tuple[float, ...]], ...]
    inertia: pin.Inertia
    pose: pin.SE3
    twist: pin.Motion


@dataclass(frozen=True, eq=False)
class Tie:
    """A loop joint between two parts, -1 for the ground.

    Args:
        a: part that carries frame A.
        b: part that carries frame B.
        frame_a: placement of A on its part.
        frame_b: placement of B on its part.
        pair: "revolute" about z of the frames, or "spherical".
        independent: as many independent rows as there are, of v_x, v_y, v_z, w_x, w_y, w_z in A.
    """

    a: int
    b: int
    frame_a: pin.SE3
    frame_b: pin.SE3
    pair: str
    independent: tuple[bool, ...]

    def points(self, length: float) -> tuple[float, ...]:
        """Places on the axis [m] whose points, held together, close the loop.

        Args:
            length: distance of two points [m].
        """
        one = self.pair == "spherical" or not any(self.independent[3:])
        return (0.0,) if one else (-0.5 * length, 0.5 * length)


@dataclass(frozen=True, eq=False)
class Line:
    """A straight spring between points of two parts, -1 for the ground.

    Args:
        a: part at one end.
        point_a: this end, in the frame of the part [m].
        b: part at the other end.
        point_b: this end, in the frame of the part [m].
        stiffness: [N/m].
        length: length without load [m].
    """

    a: int
    point_a: Array
    b: int
    point_b: Array
    stiffness: float
    length: float


Point = tuple[str, tuple[float, float, float]]
"""A body, and a point in its frame [m]."""


@dataclass(frozen=True)
class Loads:
    """What acts on a robot beside gravity.

    Args:
        springs: ends, stiffness [N/m] and length without load [m] of straight springs.
        torques: constant torques of joints [N m].
    """

    springs: tuple[tuple[Point, Point, float, float], ...] = ()
    torques: tuple[tuple[str, float], ...] = ()

    @property
    def forces(self) -> list[pl.forces.Force]:
        """All of them for pinloop."""
        springs = [pl.forces.Spring(*spring) for spring in self.springs]
        return [*springs, *(pl.forces.Torque(*torque) for torque in self.torques)]


UNLOADED = Loads()


@dataclass(frozen=True, eq=False)
class Scene:
    """Parts in the order of the tree, ties, gravity [m/s^2], the start, and what else acts.

    Args:
        parts: bodies with the joints that carry them.
        ties: loop joints.
        gravity: [m/s^2], shape (3,).
        q: configuration at the start, shape (nq,).
        v: velocity at the start, shape (nv,).
        lines: springs.
        torques: constant torque of each hinge [N m], shape (nv,).
    """

    parts: tuple[Part, ...]
    ties: tuple[Tie, ...]
    gravity: Array
    q: Array
    v: Array
    lines: tuple[Line, ...]
    torques: Array


def scene(
    robot: pl.Mechanism, q: Array, v: Array, path: Sequence[Array] = (), loads: Loads = UNLOADED
) -> Scene:
    """Everything about a robot that moves at the state ``q, v``.

    Args:
        robot: the mechanism.
        q: configuration, shape (nq,).
        v: velocity, shape (nv,).
        path: where it will pass: of rows that are independent at ``q``, take those that stay so.
        loads: what acts beside gravity.
    """
    model = robot.model
    data = model.createData()
    pin.forwardKinematics(model, data, q, v)
    parts = [
        Part(
            int(model.parents[k]) - 1, model.jointPlacements[k].copy(), _motions(model.joints[k]),
            model.inertias[k].copy(), data.oMi[k].copy(), data.v[k].copy(),
        )
        for k in range(1, model.njoints)
    ]  # fmt: skip
    kept = _independent(robot, [q, *path])
    ties = []
    for loop in robot.loops:
        a, b = model.frames[loop.frame_a], model.frames[loop.frame_b]
        ends = int(a.parentJoint) - 1, int(b.parentJoint) - 1
        places = a.placement.copy(), b.placement.copy()
        ties.append(Tie(*ends, *places, loop.pair.name, kept[loop.name]))
    torques = np.zeros(robot.nv)
    for joint, torque in loads.torques:
        torques[model.joints[model.getJointId(joint)].idx_v] = torque
    lines = tuple(
        Line(*_anchor(model, *a), *_anchor(model, *b), stiffness, length)
        for a, b, stiffness, length in loads.springs
    )
    return Scene(
        tuple(parts), tuple(ties), robot.gravity.copy(), q.copy(), v.copy(), lines, torques
    )


def _anchor(model: pin.Model, body: str, point: tuple[float, float, float]) -> tuple[int, Array]:
    """Number of the part that a body is, and a point of it in the frame of the part."""
    frame = model.frames[0 if body == "ground" else model.getFrameId(body)]
    return int(frame.parentJoint) - 1, np.asarray(frame.placement.act(np.array(point)))


def poses(robot: pl.Mechanism, q: Array) -> Poses:
    """Where all parts are at a configuration."""
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, q)
    placed = [data.oMi[k] for k in range(1, robot.model.njoints)]
    return np.array([one.translation for one in placed]), np.array([one.rotation for one in placed])


def apart(one: Poses, other: Poses, length: float) -> float:
    """How far poses differ: the largest shift over ``length``, or angle [rad], of a part.

    Args:
        one: positions and rotations.
        other: the same of the same parts.
        length: characteristic length [m].
    """
    shift = float(np.linalg.norm(one[0] - other[0], axis=1).max()) / length
    turn = np.einsum("nji,njk->nik", one[1], other[1])
    twice = [turn[:, 2, 1] - turn[:, 1, 2], turn[:, 0, 2] - turn[:, 2, 0]]
    twice.append(turn[:, 1, 0] - turn[:, 0, 1])
    sine, cosine = np.linalg.norm(twice, axis=0) / 2, (np.einsum("nii->n", turn) - 1) / 2
    worst = float(np.maximum(shift, np.arctan2(sine, cosine).max()))  # NaN if either is
    return worst if np.isfinite(worst) else np.inf


def _motions(joint: pin.JointModel) -> tuple[tuple[str, tuple[float, ...]], ...]:
    """What a joint of Pinocchio does, in simple motions."""
    name = joint.shortname().removeprefix("JointModel")
    if name in ("Spherical", "FreeFlyer"):
        return (("ball" if name == "Spherical" else "free", ()),)
    exact = joint.extract()
    if name == "Universal":
        return tuple(("hinge", tuple(map(float, axis))) for axis in (exact.axis1, exact.axis2))
    kind = "slide" if name.startswith("P") else "hinge"
    axis = tuple(map(float, exact.axis)) if name.endswith("Unaligned") else _AXES[name[-1]]
    return ((kind, axis),)


def _independent(robot: pl.Mechanism, path: Sequence[Array]) -> dict[str, tuple[bool, ...]]:
    """Rows of every loop joint that together are independent and imply all others."""
    if not robot.loops:
        return {}
    found = [_twist_rows(robot, q) for q in path]
    J = found[0]
    left, chosen = J.copy(), np.zeros(len(J), dtype=bool)
    for _ in range(np.linalg.matrix_rank(J, tol=1e-8 * np.linalg.norm(J, 2))):
        pick = int(np.argmax(np.linalg.norm(left, axis=1)))
        unit = left[pick] / np.linalg.norm(left[pick])
        chosen[pick] = True
        left -= np.outer(left @ unit, unit)
    if len(path) > 1:
        for k in range(len(robot.loops)):
            chosen = _best_along(found, chosen, slice(6 * k, 6 * k + 6))
    held = chosen.reshape(-1, 6)
    return {loop.name: tuple(map(bool, row)) for loop, row in zip(robot.loops, held, strict=True)}


def _best_along(found: list[Array], chosen: Array, loop: slice) -> Array:
    """Choice with as many rows of one loop whose smallest singular value stays largest."""
    best, largest = chosen, -1.0
    for rows in combinations(range(loop.start, loop.stop), int(chosen[loop].sum())):
        trial = chosen.copy()
        trial[loop] = False
        trial[list(rows)] = True
        least = min(float(np.linalg.svd(J[trial], compute_uv=False)[-1]) for J in found)
        if least > largest * (1 + 1e-9):
            best, largest = trial, least
    return best


def _twist_rows(robot: pl.Mechanism, q: Array) -> Array:
    """Relative twists of all loop joints in their frames A, six rows each, zeros where free."""
    rows, data = pl.Constraints(robot, full=True), robot.model.createData()
    pin.framesForwardKinematics(robot.model, data, q)
    found = []
    for loop in robot.loops:
        turn = data.oMf[loop.frame_a].rotation.T @ data.oMf[loop.frame_b].rotation
        J = np.kron(np.eye(2), turn) @ rows.twist_jacobian(q, loop)
        held = [name in loop.pair.labels for name in ("v_x", "v_y", "v_z", "w_x", "w_y", "w_z")]
        scale = np.repeat([1 / robot.length, 1.0], 3) * held
        found.append(scale[:, None] * J)
    return np.vstack(found)
