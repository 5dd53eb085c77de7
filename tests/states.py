"""States in which robots may be, and oracles for their equations of motion; no test lives here.

The oracle of the saddle problem is one dense least-squares solution by NumPy, without Cholesky
factors or Schur complements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pinocchio as pin

import pinloop as pl
from pinloop.assembly.continuation import nearby_assembly
from pinloop.constraints.rows import Row
from pinloop.model.description import GROUND, Body, Coordinates, Description, Joint, constant
from pinloop.model.mechanism import build
from pinloop.model.pairs import make_pair

from . import linkages as ll
from . import mechanisms as m
from . import screw_tables as tables
from .screw_tables import Array, Table

URDF = Path(__file__).parents[1] / "urdf"
SHIPPED = tuple(sorted(file.stem for file in URDF.glob("*.urdf")))
SMALL: dict[str, Callable[[], Table]] = {
    table["name"].replace(" ", "-"): function
    for function in (
        m.four_bar, m.parallelogram, m.five_bar, m.slider_crank, m.spherical_four_bar, m.rssr,
        m.spinning_rods, m.bennett, m.sarrus, m.screw_jack, m.double_cardan, m.tip_on_plane,
        m.rod_pendulums, m.ball_loop, m.gear_pair, m.door, m.double_pendulum, m.every_pair,
        m.planar_3r, m.arm_6r, ll.planar_3rrr, ll.hoberman, ll.triple_parallelogram,
        ll.scotch_yoke, ll.oldham, ll.schoenflies_loop, ll.cardan, ll.goldberg,
        ll.floating_four_bar, ll.universal_delta,
    )
    for table in (function(),)
}  # fmt: skip
"""Small mechanisms by name, with redundant rows, quaternions, couplings, and without loops."""

OPEN = (
    "planar_3r", "six_axis_arm", "gear-pair", "double-pendulum", "every-pair", "planar-3R",
    "six-axis-arm",
)  # fmt: skip
LOOPED = [name for name in (*SHIPPED, *SMALL) if name not in OPEN]
"""Those with loops; that they are the ones is tested with `pl.transition`."""

Space = Literal["SE3", "SO3xR3", "auto"]
SPACES: tuple[Space, ...] = ("SE3", "SO3xR3", "auto")


@cache
def robot(name: str) -> pl.Mechanism:
    """A shipped robot or a small mechanism."""
    return pl.load(URDF / f"{name}.urdf") if name in SHIPPED else tables.build(SMALL[name]())


@cache
def regularized(name: str) -> pl.Mechanism:
    return pl.regularize(robot(name))


def rank(J: Array) -> int:
    values = np.linalg.svd(J, compute_uv=False)
    return int(np.sum(values > 1e-9 * max(values, default=0.0)))


def allowed(J: Array) -> Array:
    """Orthonormal columns of the velocities with ``J v = 0``."""
    if len(J) == 0:
        return np.eye(J.shape[1])
    return np.asarray(np.linalg.svd(J)[2][rank(J) :].T)


def assembled(robot: pl.Mechanism, seed: int, walk: int = 2) -> Array:
    """A configuration on the branch of the reference, some random steps away."""
    rng = np.random.default_rng(seed)
    q = robot.neutral
    for _ in range(walk):
        step = nearby_assembly(robot, q, rng)
        if step is not None:
            q = step
    return q


def moving(
    robot: pl.Mechanism, seed: int, rows: Sequence[Row] = (), speed: float = 2.0
) -> tuple[Array, Array]:
    """An assembled configuration and a velocity that all rows allow (rows with ``b = 0``)."""
    q = assembled(robot, seed)
    J = pl.EquationsOfMotion(robot, rows=rows).terms(0.0, q, np.zeros(robot.nv))[0]
    free = allowed(J)
    v = free @ np.random.default_rng(seed + 1).normal(size=free.shape[1])
    size = np.abs(v).max(initial=0.0)
    return q, (speed / size * v if size > 0 else v)


# -- oracles ----------------------------------------------------------------------------------


def dense(
    M: Array, J: Array, f: Array, b: Array, scale: Array | None = None
) -> tuple[Array, Array]:
    """``M x = f + J' lam``, ``J x = b`` by one dense system; the smallest ``lam / scale``.

    ``b`` is replaced by the closest value (in scaled rows) that the rows can take.
    """
    scale = np.ones(len(J)) if scale is None else scale
    # Light and heavy coordinates in units of their own, or rounding of the heavy ones decides.
    inertia = np.diagonal(M)
    unit = 1 / np.sqrt(np.where(inertia > 0, inertia, inertia.max(initial=0.0)))
    rows = scale[:, None] * J * unit
    reachable = rows @ np.linalg.lstsq(rows, scale * b, rcond=1e-10)[0] if len(J) else b
    n = len(M)
    saddle = np.block(
        [[M * np.outer(unit, unit), -rows.T], [rows, np.zeros((len(rows), len(rows)))]]
    )
    # x is unique, so the shortest solution has the shortest multipliers.
    solution = np.linalg.lstsq(saddle, np.r_[unit * f, reachable], rcond=1e-13)[0]
    return unit * solution[:n], scale * solution[n:]


def close(actual: Any, expected: Any, tolerance: float, size: float | None = None) -> None:
    """Assert that two arrays agree relative to the largest entry (at least 1)."""
    if size is None:
        size = max(1.0, float(np.abs(expected).max(initial=0.0)))
    assert np.shape(actual) == np.shape(expected)
    assert np.abs(np.asarray(actual) - expected).max(initial=0.0) <= tolerance * size


# -- the same state in other coordinates --------------------------------------------------------


def body_motion(
    robot: pl.Mechanism, q: Array, v: Array, a: Array | None = None
) -> dict[str, tuple[Any, Any, Any]]:
    """Placement, twist and spatial acceleration (both in the body) of every body."""
    model, data = robot.model, robot.model.createData()
    pin.forwardKinematics(model, data, q, v, np.zeros(robot.nv) if a is None else a)
    pin.updateFramePlacements(model, data)
    found = {}
    for name in robot.bodies:
        frame = model.getFrameId(name, pin.FrameType.BODY)
        found[name] = (
            data.oMf[frame].copy(),
            pin.getFrameVelocity(model, data, frame, pin.LOCAL),
            pin.getFrameAcceleration(model, data, frame, pin.LOCAL),
        )
    return found


def carried(robot: pl.Mechanism, q: Array, v: Array, there: pl.Mechanism) -> tuple[Array, Array]:
    """The state of all bodies in the absolute coordinates of ``there``."""
    bodies = body_motion(robot, q, v)
    other, rates = there.neutral, np.zeros(there.nv)
    for joint in there.joints:
        at = there.coordinates(joint)
        name = joint.removesuffix("@ground")
        placement, twist, _ = bodies[name]
        seat = there.model.frames[there.model.getFrameId(name, pin.FrameType.BODY)].placement
        carrier = there.model.jointPlacements[at.index].actInv(placement * seat.inverse())
        local = seat.act(twist)
        other[at.q] = pin.SE3ToXYZQUAT(carrier)
        rates[at.v] = local.vector
        if "Composite" in there.model.joints[at.index].shortname():
            rates[at.v.start : at.v.start + 3] = carrier.rotation @ local.linear
    return other, rates


# -- robots of one body -----------------------------------------------------------------------


def one_body(
    pair: str = "free",
    *,
    mass: float = 1.0,
    com: Sequence[float] = (0.0, 0.0, 0.0),
    inertia: Sequence[float] = (1.0, 1.0, 1.0),
    coordinates: Coordinates = "",
    gravity: Sequence[float] = (0.0, 0.0, -9.81),
) -> pl.Mechanism:
    """A body called "body" on a joint called "joint" at the origin; principal axes along x, y, z.

    Args:
        pair: pair between ground and body; its axis is z.
        mass: mass [kg].
        com: centre of mass in the body [m].
        inertia: principal moments about the centre of mass [kg m^2].
        coordinates: variant of the joint's coordinates.
        gravity: gravity [m/s^2].
    """
    body = Body("body", mass, constant(com), constant(np.diag(inertia)))
    unit = pin.SE3.Identity()
    joint = Joint("joint", make_pair(pair), GROUND, "body", unit, unit, coordinates=coordinates)
    return build(Description("one body", (body,), (joint,), gravity=constant(gravity)))
