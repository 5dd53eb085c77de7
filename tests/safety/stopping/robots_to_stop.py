"""Robots of a few numbers and their brakes, for the tests of `stop`; no test lives here.

Inertias of one joint are chosen so that mass matrices can be written down by hand. The random arms
are drawn so that what their brakes are asked to do differs in every one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

import pinloop as pl
from pinloop.model.description import GROUND
from pinloop.safety.brakes.joint_brake import Kind

from ...screw_tables import Array, Table, joint
from ...states import URDF
from ...states import robot as loaded

G = 9.81
UP = np.pi / 2
"""Slope of a rail that goes straight up [rad]."""
LATE = pl.safety.Chain(sensor=0.02, controller=0.03, drive_off=0.05)
"""A chain with a time in every place [s]."""
X, Y, Z = np.eye(3)


def solid(name: str, mass: float, com: ArrayLike = (0, 0, 0), inertia: float = 0.1) -> Table:
    """A body that turns equally hard about all axes through its centre of mass."""
    return {"name": name, "mass": mass, "com": com, "inertia": inertia * np.eye(3)}


def made(bodies: list[Table], joints: list[Table], **more: Any) -> pl.Mechanism:
    return pl.from_screws({"bodies": bodies, "joints": joints} | more)


# -- one joint ------------------------------------------------------------------------------------


def wheel(inertia: float = 2.0) -> pl.Mechanism:
    """A wheel on a vertical axis through its centre [kg m^2]."""
    where = ([0, 0, 0], Z)
    return made(
        [solid("wheel", 1.0, inertia=inertia)], [joint("axis", "revolute", GROUND, "wheel", *where)]
    )


def slider(mass: float = 2.0, slope: float = 0.0) -> pl.Mechanism:
    """A carriage on a rail that rises with a slope [rad]."""
    rail = [np.cos(slope), 0, np.sin(slope)]
    return made(
        [solid("carriage", mass)], [joint("axis", "prismatic", GROUND, "carriage", [0, 0, 0], rail)]
    )


def pendulum(mass: float = 2.0, length: float = 0.5, inertia: float = 0.6) -> pl.Mechanism:
    """A beam that lies along x at angle 0; positive angles raise it.

    Args:
        mass: [kg].
        length: from the axis to the centre of mass [m].
        inertia: about the axis, more than mass times length squared [kg m^2].
    """
    beam = solid("beam", mass, [length, 0, 0], inertia - mass * length**2)
    return made([beam], [joint("axis", "revolute", GROUND, "beam", [0, 0, 0], -Y)])


# -- several joints -------------------------------------------------------------------------------


def carriages(*masses: float) -> pl.Mechanism:
    """Carriages a, b, ... beside each other on rails along x."""
    names = "abcdef"[: len(masses)]
    return made(
        [solid(f"body_{n}", mass) for n, mass in zip(names, masses, strict=True)],
        [joint(n, "prismatic", GROUND, f"body_{n}", [0, i, 0], X) for i, n in enumerate(names)],
    )


def train(*masses: float, axis: Array = X) -> pl.Mechanism:
    """Carriages a, b, ... each on the one before, all along one axis.

    The mass matrix holds in row i, column j the mass of everything from the later of both on.
    """
    names = "abcdef"[: len(masses)]
    before = [GROUND, *(f"body_{n}" for n in names)]
    return made(
        [solid(f"body_{n}", mass) for n, mass in zip(names, masses, strict=True)],
        [
            joint(n, "prismatic", parent, f"body_{n}", [0, 0, 0], axis)
            for n, parent in zip(names, before, strict=False)
        ],
    )


def lift_with_beam(lift: float, mass: float, length: float, inertia: float) -> pl.Mechanism:
    """A lift and on it the beam of `pendulum`."""
    bodies = [solid("lift", lift), solid("beam", mass, [length, 0, 0], inertia - mass * length**2)]
    joints = [
        joint("lift", "prismatic", GROUND, "lift", [0, 0, 0], Z),
        joint("beam", "revolute", "lift", "beam", [0, 0, 0], -Y),
    ]
    return made(bodies, joints)


def chain_table(points: Any, axes: Any, bodies: list[Table], **more: Any) -> Table:
    """Revolute joints j1, j2, ... one after another."""
    before = [GROUND, *(entry["name"] for entry in bodies)]
    joints = [
        joint(f"j{i + 1}", "revolute", before[i], before[i + 1], point, axis)
        for i, (point, axis) in enumerate(zip(np.asarray(points), np.asarray(axes), strict=True))
    ]
    return {"bodies": bodies, "joints": joints} | more


def two_links(lengths: tuple[float, float] = (0.6, 0.5), **more: Any) -> pl.Mechanism:
    """A planar arm of two even rods of 4 and 3 kg about -y, stretched along x."""
    first, second = lengths
    rods = [
        solid("upper", 4.0, [first / 2, 0, 0], 4.0 * first**2 / 12),
        solid("lower", 3.0, [first + second / 2, 0, 0], 3.0 * second**2 / 12),
    ]
    return pl.from_screws(chain_table([[0, 0, 0], [first, 0, 0]], [-Y, -Y], rods, **more))


def arm_table(rng: np.random.Generator, n: int) -> Table:
    """An arm of ``n`` revolute joints whose axes point anywhere."""
    points = np.cumsum(rng.uniform(-0.1, 0.4, (n + 1, 3)), axis=0)
    axes = rng.normal(size=(n, 3))
    bodies = []
    for i in range(n):
        extent = rng.uniform(0.1, 0.4, 3)
        mass = rng.uniform(2, 12) / (1 + i)
        box = mass / 12 * (np.sum(extent**2) - extent**2)
        entry = solid(f"link_{i + 1}", mass, (points[i] + points[i + 1]) / 2)
        bodies.append(entry | {"inertia": np.diag(box)})
    return chain_table(points[:n], axes, bodies) | {"gravity": -G * Z}


def moved(table: Table, R: Array, shift: ArrayLike = (0, 0, 0), scale: float = 1.0) -> Table:
    """The arm rotated or mirrored, shifted, and with all lengths scaled; densities stay those of
    the masses. A mirrored joint turns the other way round, so that its angles stay what they are.

    Args:
        table: the arm.
        R: orthogonal matrix, shape (3, 3).
        shift: [m], shape (3,).
        scale: of lengths and gravity: loads are ``scale**2`` times as large.
    """
    turn = np.linalg.det(R)

    def place(point: ArrayLike) -> Array:
        return np.asarray(scale * R @ np.asarray(point, float) + shift)

    bodies = [
        body | {"com": place(body["com"]), "inertia": scale**2 * R @ body["inertia"] @ R.T}
        for body in table["bodies"]
    ]
    joints = [
        one | {"point": place(one["point"]), "axis": turn * R @ one["axis"]}
        for one in table["joints"]
    ]
    return table | {"bodies": bodies, "joints": joints, "gravity": scale * R @ table["gravity"]}


# -- stops -----------------------------------------------------------------------------------------


def stop(robot: pl.Mechanism, v: ArrayLike, by: pl.Brakes, **more: Any) -> pl.StopResult:
    """Stop a robot, from its neutral configuration if nothing else is said."""
    return pl.stop(robot, more.pop("q", robot.neutral), np.atleast_1d(v), brakes=by, **more)


def arm_stop(**more: Any) -> pl.StopResult:
    """A stop of the six-axis arm, from its neutral configuration."""
    robot = loaded("six_axis_arm")
    v = 0.4 * np.array([1, 1, -1, 1, 0, 1])
    return pl.stop(robot, robot.neutral, v, brakes=URDF / "six_axis_arm.brakes.yaml", **more)


def stands(
    result: pl.StopResult, angle: float, time: float, joint: str = "axis"
) -> pl.safety.JointStop:
    """Assert where and when a joint came to rest, and that the energies close."""
    one = result.joints[joint]
    assert one.state == "held"
    np.testing.assert_allclose(one.angle, angle, rtol=2e-7, atol=2e-9)
    np.testing.assert_allclose(one.time, time, rtol=2e-7, atol=2e-9)
    assert result.ledger.relative_error < 1e-7
    return one


# -- brakes ---------------------------------------------------------------------------------------


def on_axis(chain: pl.safety.Chain | None = None, /, **numbers: Any) -> pl.Brakes:
    """Brakes of a robot with one joint; they act at the joint if nothing else is said."""
    return pl.Brakes(
        {"axis": pl.safety.JointBrake(**({"side": "joint"} | numbers))}, chain or pl.safety.Chain()
    )


def brakes(chain: pl.safety.Chain | None = None, /, **joints: dict[str, Any]) -> pl.Brakes:
    """Brakes that act at the joint if nothing else is said."""
    made = {
        name: pl.safety.JointBrake(**({"side": "joint"} | given)) for name, given in joints.items()
    }
    return pl.Brakes(made, chain or pl.safety.Chain())


def random_brake(
    rng: np.random.Generator, torque: float, *, teeth: bool = False
) -> pl.safety.JointBrake:
    """A brake of about some torque at the joint, with gear, friction, times and band."""
    ratio = float(rng.choice([1.0, 30.0, 100.0]))
    dynamic = torque * rng.uniform(0.5, 1.5) / ratio
    coulomb = torque * rng.uniform(0, 0.1)
    return pl.safety.JointBrake(
        kind="tooth" if teeth else "friction",
        side="motor",
        gear_ratio=ratio,
        efficiency=float(rng.choice([1.0, rng.uniform(0.6, 0.95)])),
        rotor_inertia=rng.uniform(0, 0.3) / ratio**2,
        dynamic_torque=dynamic,
        static_torque=dynamic * rng.uniform(1.0, 1.4),
        tolerance=0.3,
        band=rng.uniform(-1, 1),
        delay=rng.uniform(0, 0.06),
        rise=float(rng.choice([0.0, rng.uniform(0, 0.05)])),
        coulomb=coulomb,
        breakaway=coulomb * rng.uniform(1.0, 1.5),
        stribeck_speed=rng.uniform(0.02, 0.2),
        viscous=float(rng.choice([0.0, torque * rng.uniform(0, 0.1)])),
        short_circuit=float(rng.choice([0.0, torque * rng.uniform(0, 0.2)])) / ratio**2,
        pitch=float(rng.choice([0.0, 0.1])) if teeth else 0.0,
    )


class Drawn(NamedTuple):
    """An arm and how it is stopped."""

    robot: pl.Mechanism
    q: Array
    v: Array
    by: pl.Brakes
    table: Table


def drawn_stop(seed: int, *, teeth: float = 0.0) -> Drawn:
    """A random arm, configuration, velocity, and brakes from much too strong to too weak.

    Args:
        seed: of everything.
        teeth: part of the joints that have a tooth brake.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    table = arm_table(rng, n)
    arm = pl.from_screws(table)
    model, data = arm.model, arm.model.createData()
    poses = rng.uniform(-np.pi, np.pi, (20, n))
    loads = [np.abs(pin.computeGeneralizedGravity(model, data, q)) for q in poses]
    inertias = [np.diag(pin.crba(model, data, q)) for q in poses]
    least, most = rng.choice([[2.0, 3.0], [0.5, 2.0], [0.3, 1.0]])
    torques = np.max(loads, axis=0) * rng.uniform(least, most, n)
    torques += np.max(inertias, axis=0) * rng.uniform(1, 20, n)
    chain = pl.safety.Chain(controller=0.01, drive_off=rng.uniform(0, 0.03))
    entries = {
        name: random_brake(rng, torque, teeth=bool(teeth) and rng.random() < teeth)
        for name, torque in zip(arm.joints, torques, strict=True)
    }
    v = rng.uniform(-3, 3, n) * (rng.random(n) < 0.85)
    return Drawn(arm, rng.uniform(-np.pi, np.pi, n), v, pl.Brakes(entries, chain), table)


def at_joint(brakes: pl.Brakes, **changes: Any) -> pl.Brakes:
    """The same with other numbers at every joint."""
    return replace(brakes, joints={n: replace(b, **changes) for n, b in brakes.joints.items()})


class Wild(NamedTuple):
    """A stop with everything that may go wrong."""

    robot: pl.Mechanism
    q: Array
    v: Array
    by: pl.Brakes
    payload: pl.Payload | None
    category: int | pl.Category0 | pl.Category1 | pl.Category2


def wild_stop(seed: int) -> Wild:
    """A random arm or the six-axis arm, with payload, teeth, faults, and brakes in their bands."""
    rng = np.random.default_rng(seed + 10_000)
    if rng.random() < 0.4:
        arm = loaded("six_axis_arm")
        q, v = rng.uniform(-1.5, 1.5, 6), rng.uniform(-3, 3, 6)
        by = pl.Brakes.from_yaml(URDF / "six_axis_arm.brakes.yaml")
        by = by.at_band({name: rng.uniform(-1, 1) for name in by.joints})
        if rng.random() < 0.5:
            by = at_joint(by, efficiency=float(rng.uniform(0.6, 1.0)))
        tool = "tool0"
    else:
        arm, q, v, by, _ = drawn_stop(seed, teeth=float(rng.choice([0.0, 0.0, 0.4])))
        tool = arm.bodies[-1]
    names = list(by.joints)
    for name, fault in zip(names, rng.integers(0, 12, len(names)), strict=True):
        if by.joints[name].kind != "none":
            by = by.missing(name) if fault == 0 else by
            by = by.late(name, float(rng.uniform(0, 0.1))) if fault == 1 else by
        if by.joints[name].kind == "friction":
            by = by.weak(name, float(rng.uniform(0.1, 1))) if fault == 2 else by
    payload = None
    if rng.random() < 0.5:
        size = rng.uniform(0.02, 0.1, 3)
        inertia = np.diag(size.sum() - size)
        payload = pl.Payload(rng.uniform(0.1, 8), tuple(rng.uniform(-0.2, 0.2, 3)), inertia, tool)
    category: int | pl.Category1 = 0
    if rng.random() < 0.25:
        by = at_joint(by, deceleration=float(rng.uniform(3, 30)))
        category = pl.Category1(time_limit=rng.uniform(0.05, 0.3)) if rng.random() < 0.5 else 1
    return Wild(arm, q, v, by, payload, category)


def controlled_stop(seed: int) -> tuple[Wild, pl.safety.Trigger | None]:
    """A stop of any category, drives perhaps too weak, from even or recorded motion."""
    rng = np.random.default_rng(seed + 77)
    wild = wild_stop(seed) if rng.random() < 0.5 else Wild(*drawn_stop(seed)[:4], None, 0)
    entries = {}
    for name, b in wild.by.joints.items():
        limit = None
        if rng.random() < 0.6:
            limit = (b.dynamic_torque or 1.0) * rng.uniform(0.2, 2)
        kind: Kind = "friction" if b.kind == "tooth" else b.kind
        slower = rng.uniform(2, 30)
        entries[name] = replace(b, kind=kind, drive_torque=limit, deceleration=slower)
    on_path = bool(rng.random() < 0.4)
    limit = rng.uniform(0.02, 0.5) if rng.random() < 0.6 else None
    categories = (pl.Category0(), pl.Category1(on_path, limit), pl.Category2(on_path))
    by, category = replace(wild.by, joints=entries), categories[rng.integers(3)]
    trigger = None
    if rng.random() < 0.4:
        t = np.linspace(0, 9, 181)[:, None]
        waves = 0.5 * np.sin(3 * t + rng.uniform(0, 6, len(wild.q)))
        motion = pl.safety.JointTrajectory(wild.robot.joints, t[:, 0], wild.q + wild.v * t + waves)
        trigger = pl.safety.Trigger(motion, at=rng.uniform(0, 0.3), controller=rng.uniform(0, 0.05))
    return wild._replace(by=by, category=category), trigger
