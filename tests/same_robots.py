"""Whether two robots are the same mechanism, in whatever coordinates; no test lives here.

Bodies are known by their names: a state of the one is carried to the other by their placements, and
what the robots say is compared as forms in the velocities of the first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin

import pinloop as pl
from pinloop.io.writers.outline import Outline
from pinloop.model.mechanism import build
from pinloop.model.pairs import make_pair

from . import screw_tables
from .random_linkages import graph, parallel_mechanism
from .screw_tables import Array


def check_same(
    robot: pl.Mechanism, other: pl.Mechanism, *, q: Array | None = None, tol: float = 1e-10
) -> None:
    """Same masses, weights, and rows of loops and couplings, closed or not; sizes are of 1."""
    if q is None:
        step = np.random.default_rng(len(robot.name)).uniform(-0.6, 0.6, robot.nv)
        q = robot.integrate(robot.neutral, step)
    assert other.nv == robot.nv and {*other.bodies} >= {*robot.bodies}
    there, X = carried(robot, q, other)
    for body in robot.bodies:
        one, two = robot.placement(q, body), other.placement(there, body)
        assert np.abs(one.homogeneous - two.homogeneous).max() < tol, body
    for this, that in (
        (_mass(robot, q), X.T @ _mass(other, there) @ X),
        (_weight(robot, q), X.T @ _weight(other, there)),
    ):
        np.testing.assert_allclose(this, that, rtol=0, atol=tol * (1 + np.abs(this).max()))
    ours, theirs = pl.Constraints(robot, full=True), pl.Constraints(other, full=True)
    assert sorted(map(len_of, ours.rows_of.values())) == sorted(
        map(len_of, theirs.rows_of.values())
    )
    J, K = ours.jacobian(q), theirs.jacobian(there) @ X
    r, s = ours.residual(q), theirs.residual(there)
    for name, rows in ours.rows_of.items():
        others = theirs.rows_of[name] if name in theirs.rows_of else _like(J[rows], K, theirs)
        form, other_form = _forms(J[rows], r[rows]), _forms(K[others], s[others])
        if _parent(robot, name) != _parent(other, name):
            assert np.abs(r[rows]).max() < tol  # told from its other end it is the same if closed
        np.testing.assert_allclose(form, other_form, rtol=0, atol=10 * tol)


def _forms(J: Array, r: Array) -> Array:
    """What rows and their residuals are, in whatever axes the rows are resolved."""
    both = np.column_stack([J, r])
    return np.asarray(both.T @ both) / (np.sum(J * J) if len(J) == 1 else 1.0)


def _parent(robot: pl.Mechanism, loop: str) -> str:
    """Body with frame A of a loop, the base for the ground; "" for couplings."""
    body = next((x.body_a for x in robot.loops if x.name == loop), "")
    bodies = {branch.body.name: branch for branch in Outline(robot, "").branches}
    while body in bodies and bodies[body].kind == "fixed":
        body = bodies[body].parent
    return body


def carried(robot: pl.Mechanism, q: Array, other: pl.Mechanism) -> tuple[Array, Array]:
    """A configuration in the coordinates of another robot, and what takes velocities there.

    Axes have the same names and values; balls and free joints have frames of their own.
    """
    there, X = other.neutral.copy(), np.zeros((other.nv, robot.nv))
    here, others = Outline(robot, ""), Outline(other, "")
    theirs = {branch.name: branch for branch in others.branches}
    floating = {branch.body.name: branch for branch in others.branches if branch.kind == "free"}
    for branch in here.branches:
        if not branch.axes:
            continue
        at = robot.coordinates(branch.name)
        if branch.kind in ("ball", "free"):
            that = theirs.get(branch.name) or floating[branch.body.name]
            to = other.coordinates(that.name)
            a, c = (o.placements[x.body.name] for o, x in ((here, branch), (others, that)))
            if branch.kind == "ball":
                a, c = branch.placement, that.placement
                turn = pin.Quaternion(q[at.q]).matrix()
                M = pin.SE3(turn, np.zeros(3))
            else:
                M = pin.XYZQUATToSE3(q[at.q])
            shift = that.mount.actInv(branch.mount)
            moved = (c * that.mount).actInv(a * branch.mount) * M * shift.inverse()
            values = pin.SE3ToXYZQUAT(moved)
            action = shift.toActionMatrix()
            ball = branch.kind == "ball"
            there[to.q] = values[3:] if ball else values
            X[to.v, at.v] = action[3:, 3:] if ball else action
            continue
        if branch.name in other.joints:
            to = other.coordinates(branch.name)
            there[to.q], X[to.v, at.v] = q[at.q], np.eye(at.nv)
            continue
        values = q[at.q].tolist()
        turned = np.eye(len(branch.axes))
        if len(values) == len(branch.axes) + 1:  # the last angle by its cosine and sine
            c, s = values[-2:]
            values = [*values[:-2], float(np.arctan2(s, c))]
            if len(values) == 3:  # velocities in a plane are in the axes of the body
                turned[:2, :2] = [[c, -s], [s, c]]
        for k, (axis, value) in enumerate(zip(branch.axes, values, strict=True)):
            to = other.coordinates(axis.name)
            there[to.q] = to.part(value)
            X[to.v, at.v] = turned[k]
    return there, X


def len_of(rows: slice) -> int:
    return int(rows.stop - rows.start)


def _like(J: Array, K: Array, rows: Any) -> slice:
    """The rows of a coupling that has another name."""
    fits = {
        name: abs(np.sum(J * K[part])) / np.linalg.norm(J) / np.linalg.norm(K[part])
        for name, part in rows.rows_of.items()
        if len_of(part) == 1
    }
    best: slice = rows.rows_of[max(fits, key=lambda name: fits[name])]
    return best


def _mass(robot: pl.Mechanism, q: Array) -> Array:
    return pl.EquationsOfMotion(robot).mass(q)


def _weight(robot: pl.Mechanism, q: Array) -> Array:
    return np.asarray(pin.computeGeneralizedGravity(robot.model, robot.model.createData(), q))


def numbers_of(robot: pl.Mechanism, without: tuple[str, ...] = ()) -> dict[str, dict[str, float]]:
    """Limits and losses of all axes by name."""
    axes = [axis for branch in Outline(robot, "").branches for axis in branch.axes]
    return {
        axis.name: {k: v for k, v in (axis.limits | axis.losses).items() if k not in without}
        for axis in axes
    }


def random_robot(
    seed: int, loops: tuple[str, ...], tree: dict[str, str], without: tuple[str, ...] = ()
) -> pl.Mechanism:
    """A random mechanism, with other pairs where a format does not have them.

    Args:
        seed: number of the mechanism.
        loops: pairs of which loops are closed.
        tree: pairs to be replaced in the tree.
        without: limits and losses that its joints have not.
    """
    rng = np.random.default_rng(seed)
    table = parallel_mechanism(seed) if seed % 3 == 0 else graph(seed)
    description = screw_tables.build(table).description
    cuts = {loop.name for loop in screw_tables.build(table).loops}
    joints = []
    for joint in description.joints:
        name = joint.pair.name
        if joint.name in cuts:
            name = name if name in loops else str(rng.choice(loops))
            joint = replace(joint, cut=True)
        elif name in tree:
            name = tree[name]
        if name != joint.pair.name:
            parameters = {"pitch": 0.1} if name == "helical" else {}
            joint = replace(joint, pair=make_pair(name, **parameters))
        elif joint.pair.dof == 1 and joint.name not in cuts:
            low, high, *others = rng.uniform(0.5, 3.0, 6)
            keys = ("effort", "damping", "friction", "armature")
            values: dict[str, Any] = {key: (x,) for key, x in zip(keys, others, strict=True)}
            values |= {"lower": (-low,), "upper": (high,), "velocity": (1.0,)}
            kept = {key: value for key, value in values.items() if key not in without}
            joint = replace(joint, **kept)
        joints.append(joint)
    return build(replace(description, joints=tuple(joints), name=f"random {seed}"))
