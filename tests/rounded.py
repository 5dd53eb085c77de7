"""Robots written as exporters write them: in frames of their own, with few digits; no test here."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin

import pinloop as pl
from pinloop.description import GROUND, constant
from pinloop.mechanism import build

from .random_linkages import placement
from .tables import Array, Table

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
