"""How a pair moves when it carries a body of the spanning tree: Pinocchio's joints are made here.

A joint that is walked against its own direction keeps the sign of its coordinates: the inverse of
``exp(Z1 q1) exp(Z2 q2)`` is ``exp(-Z2 q2) exp(-Z1 q1)``, so several coordinates come in reverse
order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pinocchio as pin

from ...boundary.marks import Array

Built: TypeAlias = tuple[Any, Array]
"""A joint of Pinocchio, and the rotation from the pair frame to the joint frame."""
Builder: TypeAlias = Callable[[float, Array, bool], Built]


@dataclass(frozen=True)
class TreeJoint:
    """The coordinates of a pair, and Pinocchio's joint for it.

    Args:
        labels: names of the velocities, "v" or "w" and an axis of the pair frame.
        build: creates the joint from the advance of the pair [m/rad], its axes in the body that the
            joint carries, shape (3, 3), and whether the tree walks it from A to B.
        keeps_order: whether the coordinates are the same if the tree walks the joint backwards.
        native: Pinocchio's joint for all of it; also how a `pin.Model` shows such a joint.
    """

    labels: tuple[str, ...]
    build: Builder
    keeps_order: bool = False
    native: Callable[[], Any] | None = None


def axis_joint(kind: str) -> TreeJoint:
    """One motion about or along z, in the axes of the carried body as in Pinocchio's URDF reader.

    Args:
        kind: "R" turn, "P" slide, or "H" screw, whose pair has an advance.
    """
    aligned, unaligned = _ONE_AXIS[kind]

    def build(pitch: float, child: Array, forward: bool) -> Built:
        axis = (1.0 if forward else -1.0) * child[:, 2]
        values = (pitch,) if kind == "H" else ()
        for unit, joint in zip(np.eye(3), aligned, strict=True):
            if np.array_equal(axis, unit):
                return joint(*values), child
        return unaligned(axis, *values), child

    return TreeJoint(("vz",) if kind == "P" else ("wz",), build)


_ONE_AXIS: dict[str, tuple[tuple[Any, ...], Any]] = {
    "R": ((pin.JointModelRX, pin.JointModelRY, pin.JointModelRZ), pin.JointModelRevoluteUnaligned),
    "P": ((pin.JointModelPX, pin.JointModelPY, pin.JointModelPZ), pin.JointModelPrismaticUnaligned),
    "H": ((pin.JointModelHX, pin.JointModelHY, pin.JointModelHZ), pin.JointModelHelicalUnaligned),
}
"""Pinocchio's joints about or along x, y and z, and along any axis."""


def _build_circle(pitch: float, child: Array, forward: bool) -> Built:
    """A turn by its cosine and sine; that about any axis cannot be made from Python: turn to z."""
    axis = (1.0 if forward else -1.0) * child[:, 2]
    circles = (pin.JointModelRUBX, pin.JointModelRUBY, pin.JointModelRUBZ)
    for unit, circle in zip(np.eye(3), circles, strict=True):
        if np.array_equal(axis, unit):
            return circle(), child
    return pin.JointModelRUBZ(), np.eye(3) if forward else np.diag([1.0, -1.0, -1.0])


def product_joint(*motions: str, native: Callable[[], Any] | None = None) -> TreeJoint:
    """One motion after the other, each about or along an axis of the pair frame.

    Args:
        *motions: "R" turn or "P" slide and the axis: ``"Px", "Rz"`` is a pin in a slot along x.
        native: Pinocchio's joint for all of them in this order, if it has one.
    """

    def build(pitch: float, child: Array, forward: bool) -> Built:
        if not forward:
            return composite(_single(motion, -1.0) for motion in reversed(motions)), np.eye(3)
        return native() if native else composite(_single(m, 1.0) for m in motions), np.eye(3)

    labels = tuple({"P": "v", "R": "w"}[motion[0]] + motion[1] for motion in motions)
    return TreeJoint(labels, build, native=native)


def _single(motion: str, sign: float) -> Any:
    """A motion, or the inverse one, as a joint of Pinocchio."""
    number = "xyz".index(motion[1])
    aligned, unaligned = _ONE_AXIS[motion[0]]
    return aligned[number]() if sign > 0 else unaligned(sign * np.eye(3)[number])


def composite(parts: Iterable[Any]) -> Any:
    """Pinocchio's joint that does one motion after the other."""
    joint = pin.JointModelComposite()
    for part in parts:
        joint.addJoint(part)
    return joint


def body_joint(labels: str, native: Callable[[], Any]) -> TreeJoint:
    """Coordinates with a quaternion: velocities are of the carried body, however it is met."""

    def build(pitch: float, child: Array, forward: bool) -> Built:
        return native(), np.eye(3)

    return TreeJoint(tuple(labels.split()), build, keeps_order=True, native=native)


def _build_universal(pitch: float, child: Array, forward: bool) -> Built:
    """Turns about z of A and x of B in the axes of the carried body; backwards the inverse ones."""
    if forward:
        return pin.JointModelUniversal(child[:, 2], child[:, 0]), child
    return product_joint("Rz", "Rx").build(pitch, child, forward)


CIRCLE = TreeJoint(("wz",), _build_circle)
UNIVERSAL = TreeJoint(("wz", "wx"), _build_universal)
