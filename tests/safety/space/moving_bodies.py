"""Robots made of simple shapes, their motions, and points of their shapes; no test lives here.

Nothing here uses hulls: points are drawn from the shapes themselves and carried by Pinocchio.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

import pinloop as pl
import pinloop.model.mechanism
from pinloop.model.description import GROUND, Body, Description, Geometry, Joint, Shape, constant
from pinloop.model.mechanism import Mechanism
from pinloop.model.pairs import align_z, make_pair
from pinloop.safety.space.solids import Obstacle

from ...screw_tables import Array

NO_GRAVITY = constant(np.zeros(3))
INERTIA = constant(np.diag([0.02, 0.03, 0.04]))

LENGTH, THICK, SPEED = 0.8, 0.03, 6.0
X_AXIS = (1.0, 0, 0)


def at(x: float, y: float, z: float, axis: Any = (0, 0, 1)) -> pin.SE3:
    """Placement whose z axis is ``axis``."""
    return pin.SE3(align_z(np.array(axis, float)), np.array([x, y, z]))


def shape(
    body: str, kind: Any, size: Any, placement: pin.SE3, role: Any = "collision", **more: Any
) -> Geometry:
    name = f"{body} {kind} {more.pop('name', '')}"
    return Geometry(name, body, role, Shape(kind, tuple(size), more.pop("path", None)), placement)


def chain(
    *pairs: str,
    length: float = 0.5,
    axis: Any = (0, 0, 1),
    geometry: tuple[Geometry, ...] = (),
    limits: dict[str, Any] | None = None,
) -> Mechanism:
    """Bodies "a", "b", ... on joints "j1", "j2", ... in line along x; no gravity.

    Args:
        pairs: pair of each joint.
        length: distance of the joints [m].
        axis: axis of all joints.
        geometry: shapes.
        limits: further arguments of all joints.
    """
    names = [chr(ord("a") + k) for k in range(len(pairs))]
    bodies = tuple(Body(name, 1.0, constant((length / 2, 0, 0)), INERTIA) for name in names)
    joints = []
    for k, pair in enumerate(pairs):
        near = at(length if k else 0.0, 0, 0, axis)
        ends = names[k - 1] if k else GROUND, names[k]
        made = make_pair(pair)
        joints.append(Joint(f"j{k + 1}", made, *ends, near, at(0, 0, 0, axis), **(limits or {})))
    description = Description("chain", bodies, tuple(joints), geometry=geometry, gravity=NO_GRAVITY)
    return pinloop.model.mechanism.build(description)


def dressed(robot: Mechanism, geometry: tuple[Geometry, ...]) -> Mechanism:
    """The same robot with other shapes."""
    return pinloop.model.mechanism.build(replace(robot.description, geometry=geometry))


def wedge_file(folder: Path) -> Path:
    """An STL file of a prism over an L: not convex."""
    import trimesh

    outline = np.array([[0, 0], [0.3, 0], [0.3, 0.1], [0.1, 0.1], [0.1, 0.2], [0, 0.2]])
    solid = trimesh.creation.extrude_triangulation(
        outline, np.array([[0, 1, 3], [1, 2, 3], [0, 3, 5], [3, 4, 5]]), height=0.15
    )
    path = folder / "wedge.stl"
    solid.export(str(path))
    return path


def wardrobe(robot: Mechanism, folder: Path, seed: int) -> Mechanism:
    """The robot with a shape of another kind on each body, anywhere."""
    rng = np.random.default_rng(seed)
    sizes: dict[str, Any] = {
        "box": lambda: rng.uniform(0.05, 0.5, 3),
        "sphere": lambda: rng.uniform(0.02, 0.2, 1),
        "cylinder": lambda: rng.uniform(0.05, 0.4, 2),
        "capsule": lambda: rng.uniform(0.05, 0.3, 2),
        "ellipsoid": lambda: rng.uniform(0.02, 0.3, 3),
        "mesh": lambda: rng.uniform(0.3, 1.5, 3) * (-1, 1, 1),
    }
    path, made = wedge_file(folder), []
    for k, body in enumerate(robot.bodies):
        kind = list(sizes)[k % len(sizes)]
        placement = pin.SE3(pin.exp3(rng.normal(size=3)), rng.uniform(-0.2, 0.2, 3))
        file = path if kind == "mesh" else None
        made.append(shape(body, kind, sizes[kind](), placement, path=file))
    return dressed(robot, tuple(made))


def points_of(shape: Shape, rng: np.random.Generator, count: int) -> Array:
    """Random points of a shape in its own frame, half of them on its surface or edges."""
    if shape.kind == "mesh":
        triangles = _triangles(str(shape.path))
        corners = triangles[rng.integers(len(triangles), size=count)]
        weights = rng.dirichlet(np.full(3, 0.3), count)
        inner = np.einsum("ij,ijk->ik", weights, corners)
        return np.asarray(inner * np.array(shape.size))
    if shape.kind == "box":
        cube = rng.uniform(-1, 1, (count, 3))
        cube[: count // 2] = np.sign(cube[: count // 2])
        return np.asarray(cube * np.array(shape.size) / 2)
    ball = rng.normal(size=(count, 3))
    ball /= np.linalg.norm(ball, axis=1)[:, None]
    ball[count // 2 :] *= rng.uniform(0, 1, (count - count // 2, 1))
    if shape.kind in ("sphere", "ellipsoid"):
        return np.asarray(ball * np.array(shape.size))
    radius, length = shape.size
    if shape.kind == "capsule":
        return radius * ball + np.outer(rng.choice([-0.5, 0.5], count), [0, 0, length])
    ring = ball[:, :2] / np.linalg.norm(ball[:, :2], axis=1)[:, None]
    return np.column_stack([radius * ring, rng.choice([-0.5, 0.5], count) * length])


@cache
def _triangles(path: str) -> Array:
    """Corners of the triangles of a mesh file, shape (n, 3, 3)."""
    import trimesh

    return np.asarray(trimesh.load_mesh(path).triangles)


def places(run: pl.Trajectory, times: Array, rng: np.random.Generator, each: int = 50) -> Array:
    """Where points of the shapes are at some times, in the world."""
    robot = run.robot
    bodies = {geometry.body for geometry in robot.geometry if geometry.role == "collision"}
    worn = [
        geometry
        for geometry in robot.geometry
        if geometry.body != GROUND
        and geometry.role == ("collision" if geometry.body in bodies else "visual")
    ]
    data, found = robot.model.createData(), []
    for t in times:
        pin.forwardKinematics(robot.model, data, run(t).q)
        pin.updateFramePlacements(robot.model, data)
        for _ in range(max(1, each // len(worn))):
            for geometry in worn:
                points = points_of(geometry.shape, rng, 2)
                placement = data.oMf[robot.frame_id(geometry.body)] * geometry.placement
                found.append(points @ placement.rotation.T + placement.translation)
    return np.vstack(found)


def fling(
    robot: Mechanism, seed: int, until: float = 0.5, speed: float = 4.0, **more: Any
) -> pl.Trajectory:
    """A run from a random assembled state, slowed down by viscous drag."""
    from ...states import moving

    q, v = moving(robot, seed, speed=speed)
    drag = more.pop("drag", 1.0)
    return pl.simulate(
        robot, q, v, until=until, losses=False, tau=lambda t, q, v: -drag * v, **more
    )


# -- rods that swing past a ball ---------------------------------------------------------------


def rod(body: str, length: float = LENGTH) -> Geometry:
    """Capsule along x from the origin of the body."""
    return shape(body, "capsule", (THICK, length), at(length / 2, 0, 0, X_AXIS))


def swing(angle: float = 2.5, speed: float = SPEED) -> pl.Trajectory:
    """A rod turns about z at constant speed, from the x axis: hardly any state is stored."""
    return pl.simulate(chain("revolute", geometry=(rod("a"),)), [0.0], [speed], until=angle / speed)


def ball(distance: float, radius: float = 0.05, angle: float = 1.1) -> Obstacle:
    centre = distance * np.array([np.cos(angle), np.sin(angle), 0])
    return Obstacle.sphere("ball", radius, centre)
