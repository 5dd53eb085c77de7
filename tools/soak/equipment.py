"""What holds a random mechanism besides its loops, acts on it, and what it is differentiated by.

Everything that derivatives know: locks, couplings, prescribed motions, rows without positions,
pairs of points, forces, and parameters of all kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from tests.screw_tables import Array, Table, joint

import pinloop as pl
from pinloop import constraints, forces, parameters
from pinloop.constraints.relative_motion import JointMotion
from pinloop.constraints.rows import Locked, Row
from pinloop.dynamics.forces import Force
from pinloop.model.description import GROUND, Body, Coupling
from pinloop.model.mechanism import build

OFTEN = 0.5
"""How often something is there that may be."""
POINT_PAIRS = ("point_on_line", "point_on_plane", "rod")


@dataclass(frozen=True, eq=False)
class Equipment:
    """Locks, rows, forces and parameters, and of which kinds they are."""

    locks: tuple[Locked, ...] = ()
    rows: tuple[Row, ...] = ()
    forces: tuple[Force, ...] = ()
    parameters: tuple[parameters.Parameter, ...] = ()
    kinds: tuple[str, ...] = ()


def tie_points(rng: np.random.Generator, table: Table) -> Table:
    """A table with a pair of points more between two of its bodies."""
    bodies = [GROUND, *(body["name"] for body in table["bodies"])]
    a, b = rng.choice(bodies, 2, replace=False)
    pair, point, along = str(rng.choice(POINT_PAIRS)), rng.uniform(-1, 1, 3), rng.normal(size=3)
    more = {"point2": point + along} if pair == "rod" else {"axis": along}
    tied = joint("tied", pair, str(a), str(b), point, cut=True, **more)
    return table | {"joints": [*table["joints"], tied]}


def couple(rng: np.random.Generator, robot: pl.Mechanism) -> pl.Mechanism:
    """A robot two of whose joints are tied by polynomials, by gears half of the time."""
    free = [name for name, _ in _single_axes(robot, tree_only=True)]
    if len(free) < 2:
        return robot
    pair = tuple(rng.choice(free, 2, replace=False).tolist())
    bend = rng.normal(size=(2, 2)) * (0.4 if rng.random() < OFTEN else 0.0)
    ratios = ((0.0, ratio, *own) for ratio, own in zip((1.0, -0.7), bend.tolist(), strict=True))
    return build(replace(robot.description, couplings=(Coupling("cam", pair, tuple(ratios)),)))


def draw_equipment(rng: np.random.Generator, robot: pl.Mechanism, mobility: int) -> Equipment:
    """Some of everything; rows as long as something can still move."""
    locks, rows, kinds = list[Locked](), list[Row](), list[str]()
    candidates = list(_holding(rng, robot))
    for k in rng.permutation(len(candidates)).tolist():
        kind, count, make = candidates[k]
        if count < mobility and rng.random() < OFTEN:
            mobility -= count
            kinds.append(kind)
            value = make()
            (locks if isinstance(value, Locked) else rows).append(value)
    acting = list[Force]()
    choices = list(_acting(rng, robot))
    for k in rng.permutation(len(choices))[: rng.integers(4)].tolist():
        kind, make_force = choices[k]
        acting.append(make_force())
        kinds.append(kind)
    inputs = list(_inputs(rng, robot, acting))
    chosen = [inputs[k] for k in rng.permutation(len(inputs))[:2].tolist()]
    kinds += [kind for kind, _ in chosen]
    own = tuple(parameter for _, parameter in chosen)
    return Equipment(tuple(locks), tuple(rows), tuple(acting), own, tuple(kinds))


def _single_axes(robot: pl.Mechanism, *, tree_only: bool = False) -> Iterator[tuple[str, bool]]:
    """Joints with one axis, and whether they close a loop."""
    for name in robot.joints:
        if robot.coordinates(name).nv == 1 and robot.coordinates(name).nq == 1:
            yield name, False
    for loop in () if tree_only else robot.loops:
        if loop.pair.name in ("revolute", "prismatic", "helical"):
            yield loop.name, True


Holding = tuple[str, int, Callable[[], Row | Locked]]


def _holding(rng: np.random.Generator, robot: pl.Mechanism) -> Iterator[Holding]:
    """Kinds, numbers of rows and how to make what holds."""
    body = str(rng.choice(robot.bodies))
    x = [float(number) for number in rng.normal(size=12)]
    for closes, where in ((False, "joint"), (True, "loop")):
        if names := [name for name, own in _single_axes(robot) if own == closes]:
            name, other = (str(each) for each in rng.choice(names, 2))
            yield f"lock of a {where}", 1, partial(Locked, name)
            motion = _Motion(x[0], x[1], x[2])
            yield f"prescribed {where}", 1, partial(constraints.Prescribed, other, motion)
    ball = [name for name in robot.joints if robot.coordinates(name).nv > 1]
    if ball:
        name = str(rng.choice(ball))
        axis = str(rng.choice(JointMotion(robot, name).axes))
        yield "lock of an axis", 1, lambda: Locked(name, (axis,))
    yield "no slip", 1, lambda: constraints.NoSlip(body, (x[3], x[4], x[5]))
    yield "momentum", 1, lambda: constraints.AngularMomentum((x[3], x[4], x[5]), x[9])
    axle = None if rng.random() < OFTEN else (x[6], x[7], x[8])
    yield "rolling", 3, lambda: constraints.Rolling(body, 0.3, (x[3], x[4], x[5]), axle)
    a = rng.normal(size=(1, robot.nv))
    yield "one's own row", 1, lambda: constraints.Pfaffian(
        "own", lambda q: a * (2.0 + np.cos(q[0])), lambda q, v: -a @ v * np.sin(q[0]) * _rate(q, v)
    ) if robot.model.nqs[1] == robot.model.nvs[1] == 1 else constraints.Pfaffian(
        "own", lambda q: a, lambda q, v: np.zeros(1)
    )  # fmt: skip


def _rate(q: Array, v: Array) -> float:
    """Of the first coordinate, where its joint has no other."""
    return float(v[0])


@dataclass(frozen=True)
class _Motion:
    """A motion that passes a place at a rate and with an acceleration."""

    place: float
    rate: float
    acceleration: float

    def __call__(self, t: float) -> tuple[float, float, float]:
        return self.place, self.rate, self.acceleration


def _acting(
    rng: np.random.Generator, robot: pl.Mechanism
) -> Iterator[tuple[str, Callable[[], Force]]]:
    """Kinds of forces and how to make them."""
    bodies = list(robot.bodies)
    a, b = (str(name) for name in rng.choice(bodies, 2))
    x, own = rng.uniform(0.5, 2.0, 4).tolist(), rng.normal(size=(3, 3))
    p, r, f = (tuple(map(float, each)) for each in own)
    for closes, where in ((False, "joint"), (True, "loop")):
        names = [name for name, each in _single_axes(robot) if each == closes]
        if not names:
            continue
        name = str(rng.choice(names))
        yield f"spring of a {where}", partial(forces.JointSpring, name, x[0], x[1])
        yield f"torque of a {where}", partial(forces.Torque, name, x[2])
        yield f"PD of a {where}", partial(forces.PD, name, x[0], x[1], x[2], x[3])
        yield f"damping of a {where}", partial(forces.JointDamping, {name: x[3]})
        yield f"friction of a {where}", partial(forces.JointFriction, 1.5, {name: x[2]})
    yield "spring", lambda: forces.Spring((a, p), (b, r), x[0], x[1])
    yield "damper", lambda: forces.Damper((a, p), (b, r), x[2])
    yield "force", lambda: forces.PointForce((a, p), f)
    yield "force of a frame", lambda: forces.PointForce((b, r), f, local=True)
    yield "function", lambda: forces.TorqueFunction(_pull)


def _pull(t: float, q: Array, v: Array) -> Array:
    return np.asarray(np.sin(v) + 0.1 * v * np.cos(q[0]))


_NUMBERS = {"JointSpring": ("stiffness", "rest"), "PD": ("stiffness", "damping"),
            "Spring": ("stiffness", "length"), "Damper": ("damping",)}  # fmt: skip


def _inputs(
    rng: np.random.Generator, robot: pl.Mechanism, acting: list[Force]
) -> Iterator[tuple[str, Any]]:
    """Parameters of all kinds."""
    body, joint_name = str(rng.choice(robot.bodies)), str(rng.choice(robot.joints))
    x, y, z = rng.uniform(-0.5, 0.5, 3).tolist()
    yield "by an inertia", parameters.BodyInertia(body)
    yield "by a payload", parameters.PointMass(body, (x, y, z))
    yield "by an armature", parameters.Armature(joint_name)
    yield "by a place", parameters.Placement(joint_name)
    for loop in robot.loops[:1]:
        yield "by a loop's place", parameters.Placement(f"{loop.name}/{rng.choice(['A', 'B'])}")
    for force in acting:
        for name in _NUMBERS.get(type(force).__name__, ()):
            yield "by a number of a force", parameters.ForceParameter(force, name)
        for name in getattr(force, "coefficients", None) or ():
            yield "by a loss", parameters.ForceParameter(force, "coefficients", name)


ROTOR = 0.1
"""Armature of joints that are differentiated by it [kg m^2, kg]."""


def fit_rotors(robot: pl.Mechanism, equipment: Equipment) -> pl.Mechanism:
    """The robot with rotors where they are differentiated by: less than nothing is refused."""
    own = [p for p in equipment.parameters if isinstance(p, parameters.Armature)]
    rotors = [(p, np.full(len(p.labels(robot)), ROTOR)) for p in own]
    return parameters.with_parameters(robot, rotors)[0]


def with_change(
    robot: pl.Mechanism, acting: tuple[Force, ...], parameter: parameters.Parameter, change: Array
) -> tuple[pl.Mechanism, tuple[Force, ...]]:
    """The robot and what acts on it with other values of a parameter."""
    if isinstance(parameter, parameters.PointMass):
        # With another body, as payloads of less than nothing are refused.
        body = _body(robot, parameter.frame)
        masses = body.mass, float(change[0])
        mass = sum(masses)
        com = (masses[0] * np.array(body.com) + masses[1] * np.array(parameter.point)) / mass
        apart = np.array(body.com) - np.array(parameter.point)
        between = np.prod(masses) / mass * (apart @ apart * np.eye(3) - np.outer(apart, apart))
        moments = np.array(body.inertia) + between
        values = np.array([mass, *com, *moments[_MOMENTS]])
        return parameters.with_parameters(
            robot, [(parameters.BodyInertia(parameter.frame), values)], acting
        )
    values = change
    if isinstance(parameter, parameters.BodyInertia):
        body = _body(robot, parameter.body)
        values = change + np.array([body.mass, *body.com, *np.array(body.inertia)[_MOMENTS]])
    elif isinstance(parameter, parameters.ForceParameter):
        values = change + parameter.value
    elif isinstance(parameter, parameters.Armature):
        values = change + ROTOR
    return parameters.with_parameters(robot, [(parameter, values)], acting)


_MOMENTS = (0, 0, 1, 0, 1, 2), (0, 1, 1, 2, 2, 2)
"""Rows and columns of the moments of a body, in the order in which they are parameters."""


def _body(robot: pl.Mechanism, name: str) -> Body:
    return next(body for body in robot.description.bodies if body.name == name)
