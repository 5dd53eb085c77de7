"""Robots written as exporters write them: in frames of their own, with few digits; no test here."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin

import pinloop as pl
from pinloop.model.description import GROUND, constant
from pinloop.model.mechanism import build

from .linkages import bennett_axes, chain
from .mechanisms import X, Z
from .random_linkages import placement
from .screw_tables import Array, Table, joint, table

_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?(?![\w.])")


def digits(value: float, count: int) -> float:
    return float(f"{value:.{count}g}")


def table_with_digits(table: Table, rng: np.random.Generator, count: int) -> Table:
    """A screw table in another world frame, its joints with so many digits."""
    world = placement(rng)

    def axis(values: Array) -> list[float]:
        turned = world.rotation @ np.asarray(values, dtype=float)
        return [digits(x, count) for x in turned / np.linalg.norm(turned)]

    def point(values: Array) -> list[float]:
        return [digits(x, count) for x in world.act(np.asarray(values, dtype=float))]

    kinds = {"axis": axis, "axis2": axis, "point": point, "point2": point}
    joints = [
        joint | {key: kind(joint[key]) for key, kind in kinds.items() if joint.get(key) is not None}
        for joint in table["joints"]
    ]
    bodies = []
    for body in table["bodies"]:
        inertia = world.rotation @ np.asarray(body["inertia"], dtype=float) @ world.rotation.T
        com = world.act(np.asarray(body["com"], dtype=float)).tolist()
        bodies.append(body | {"com": com, "inertia": ((inertia + inertia.T) / 2).tolist()})
    return table | {"joints": joints, "bodies": bodies}


def in_other_frames(robot: pl.Mechanism, rng: np.random.Generator) -> pl.Mechanism:
    """The same robot, every link but the base in a frame of its own."""
    description = robot.description
    turns = {body.name: placement(rng, 0.3) for body in description.bodies}
    turns[GROUND] = turns[description.base or GROUND] = pin.SE3.Identity()
    bodies = []
    for body in description.bodies:
        turn = turns[body.name]
        inertia = turn.rotation.T @ body.inertia @ turn.rotation
        com = constant(turn.actInv(np.array(body.com)))
        bodies.append(replace(body, com=com, inertia=constant(inertia)))
    joints = tuple(
        replace(
            joint,
            frame_parent=turns[joint.parent].actInv(joint.frame_parent),
            frame_child=turns[joint.child].actInv(joint.frame_child),
        )
        for joint in description.joints
    )
    frames = tuple(
        replace(frame, placement=turns[frame.body].actInv(frame.placement))
        for frame in description.frames
    )
    changed = replace(description, bodies=tuple(bodies), joints=joints, frames=frames, geometry=())
    return build(changed, kinematics_only=True)


def saved_with_digits(robot: pl.Mechanism, path: Path, count: int) -> Path:
    """Save a robot and round every number in its files that has a point or an exponent."""
    urdf = robot.save(path)
    for file in (urdf, urdf.with_name(f"{urdf.stem}.loops.yaml")):
        text = _NUMBER.sub(
            lambda match: (
                repr(digits(float(match[0]), count))
                if any(sign in match[0] for sign in ".eE")
                else match[0]
            ),
            file.read_text(),
        )
        file.write_text(text)
    return urdf


def drawn_off(
    robot: pl.Mechanism, rng: np.random.Generator, shift: float, turn: float
) -> pl.Mechanism:
    """The robot with every joint frame misplaced by some ``shift`` [m] and ``turn`` [rad]."""
    size = np.array([shift] * 3 + [turn] * 3) / np.sqrt(3)
    joints = tuple(
        replace(joint, frame_parent=joint.frame_parent * pin.exp6(size * rng.normal(size=6)))
        for joint in robot.description.joints
    )
    return build(replace(robot.description, joints=joints), kinematics_only=True)


def bennett(rng: np.random.Generator) -> tuple[Table, int]:
    """A linkage of Bennett's with random dimensions, and its mobility."""
    alpha, beta = rng.uniform(0.3, 1.2), rng.uniform(1.3, 2.6)
    a, first = rng.uniform(0.2, 0.8), rng.uniform(0.4, 2.4)
    b = a * np.sin(beta) / np.sin(alpha)
    second = 2 * np.arctan(
        np.sin((beta + alpha) / 2) / np.sin((beta - alpha) / 2) / np.tan(first / 2)
    )
    frames = [pin.SE3.Identity()]
    for theta, length, twist in [(first, a, alpha), (second, b, beta), (-first, a, alpha)]:
        turn = pin.SE3(pin.exp3(theta * Z), np.zeros(3))
        frames.append(frames[-1] * turn * pin.SE3(pin.exp3(twist * X), length * X))
    axes = [("revolute", frame.translation, frame.rotation[:, 2], None) for frame in frames]
    return chain("bennett", *axes), 1


def goldberg(rng: np.random.Generator) -> tuple[Table, int]:
    """Goldberg's five-bar of two random linkages of Bennett with a link in common."""
    b, beta = rng.uniform(0.7, 1.0), rng.uniform(0.8, 1.4)
    parts = [
        bennett_axes(a, float(np.arcsin(a * np.sin(beta) / b)), b, beta, theta)
        for a, theta in zip(rng.uniform(0.35, 0.65, 2), rng.uniform(0.6, 2.0, 2), strict=True)
    ]
    (first, second) = parts
    axes = [first[3], first[2], first[1], second[1], second[2]]
    return chain(
        "goldberg", *(("revolute", axis.translation, axis.rotation[:, 2], None) for axis in axes)
    ), 1


def sarrus(rng: np.random.Generator) -> tuple[Table, int]:
    """Two legs of three parallel hinges each, the planes at a random angle."""
    joints = []
    for leg, angle in enumerate((0.0, rng.uniform(0.4, 2.7))):
        turn = pin.exp3(angle * Z)
        points = [[0, 1, 0], [0, 1 + rng.uniform(0.2, 0.5), 0.3], [0, 1, rng.uniform(0.4, 0.7)]]
        bodies = [GROUND, f"low{leg}", f"high{leg}", "platform"]
        joints += [
            joint(
                f"l{leg}j{k}", "revolute", bodies[k], bodies[k + 1], turn @ points[k], turn @ X,
                **({"cut": True} if leg and k == 2 else {}),
            )
            for k in range(3)
        ]  # fmt: skip
    return table("sarrus", *joints), 1


def planar_loop(rng: np.random.Generator) -> tuple[Table, int]:
    """A planar loop of four to nine joints, some of them slides."""
    count, z = int(rng.integers(4, 10)), np.array([0.0, 0.0, 1.0])
    kinds: list[tuple[str, Array, Array, None]] = []
    for _ in range(count):
        angle = rng.uniform(0, 2 * np.pi)
        flat = np.array([np.cos(angle), np.sin(angle), 0.0])
        slide = rng.random() < 0.15 and sum(kind == "prismatic" for kind, *_ in kinds) < 2
        point = rng.uniform(-1, 1, 3)
        kinds.append(("prismatic", point, flat, None) if slide else ("revolute", point, z, None))
    return chain("planar loop", *kinds), count - 3


def spherical_loop(rng: np.random.Generator) -> tuple[Table, int]:
    """A loop of four to eight hinges whose axes meet."""
    count, centre = int(rng.integers(4, 9)), rng.uniform(-1, 1, 3)
    directions = rng.normal(size=(count, 3))
    places = centre + rng.uniform(-0.5, 0.5, (count, 1)) * directions
    axes = [("revolute", *line, None) for line in zip(places, directions, strict=True)]
    return chain("spherical loop", *axes), count - 3


def parallelograms(rng: np.random.Generator) -> tuple[Table, int]:
    """Parallelograms one on the other, each on the coupler of the one before."""
    joints, body, base, count = [], GROUND, np.zeros(3), int(rng.integers(1, 6))
    for k in range(count):
        along = np.array([rng.uniform(0.2, 0.5), rng.uniform(-0.2, 0.2), 0.0])
        up = np.array([rng.uniform(-0.3, 0.3), rng.uniform(0.2, 0.5), 0.0])
        for side, foot in (("a", base), ("b", base + along)):
            more = {"cut": True} if side == "b" else {}
            joints += [
                joint(f"{side}{k}", "revolute", body, f"{side}bar{k}", foot, Z),
                joint(f"{side}top{k}", "revolute", f"{side}bar{k}", f"p{k}", foot + up, Z, **more),
            ]
        body, base = f"p{k}", base + up + rng.uniform(-0.1, 0.1, 3) * [1, 1, 0]
    return table("parallelograms", *joints), count


OVERCONSTRAINED = (bennett, goldberg, sarrus, planar_loop, spherical_loop, parallelograms)
"""Random overconstrained linkages, each with the mobility that it has by its construction."""


def random_linkage(seed: int) -> tuple[Table, int]:
    """One of them."""
    rng = np.random.default_rng(seed)
    return OVERCONSTRAINED[seed % len(OVERCONSTRAINED)](rng)


def moved_frame(robot: pl.Mechanism, name: str, shift: Array) -> pl.Mechanism:
    """The robot with frame B of one joint moved by a twist in its own axes [m, rad]."""
    joints = tuple(
        replace(entry, frame_child=entry.frame_child * pin.exp6(shift))
        if entry.name == name
        else entry
        for entry in robot.description.joints
    )
    return build(replace(robot.description, joints=joints), kinematics_only=True)
