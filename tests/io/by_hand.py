"""Small robots put together by hand, for the tests of the readers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from pinloop.model.description import GROUND, Body, Description, Joint, NamedFrame, constant
from pinloop.model.pairs import MotionGroup, Pair, Universal, make_pair

Array = NDArray[np.float64]

QUARTER_Z = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
"""Quarter turn about z: x becomes y."""
QUARTER_X = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
"""Quarter turn about x: y becomes z."""


def at(*xyz: float) -> pin.SE3:
    """Placement without rotation."""
    return pin.SE3(np.eye(3), np.array(xyz))


def bar(name: str, length: float = 1.0) -> Body:
    """Slender bar along x from its origin, 1 kg, 1 cm thick."""
    thin, across = 1e-4, length**2 / 12
    return Body(name, 1.0, constant((length / 2, 0, 0)), constant(np.diag([thin, across, across])))


def revolute(name: str, parent: str, child: str, x: float = 0.0, **values: Any) -> Joint:
    """Revolute about z at ``x`` along the parent, and at the origin of the child."""
    ends = (make_pair("revolute"), parent, child, at(x, 0, 0), at(0, 0, 0))
    return replace(Joint(name, *ends, cut=False), **values)


def open_chain() -> Description:
    """Base, crank of 1 m, coupler of 2 m, rocker of 1 m in a row, and a tool on the rocker.

    Three joints called shoulder, elbow, wrist; the frame "tool" is at the end of the rocker,
    turned by a quarter about z.
    """
    return Description(
        name="chain",
        bodies=(Body("base"), bar("crank"), bar("coupler", 2.0), bar("rocker")),
        joints=(
            revolute("shoulder", "base", "crank"),
            revolute("elbow", "crank", "coupler", 1.0),
            revolute("wrist", "coupler", "rocker", 2.0),
        ),
        base="base",
        frames=(NamedFrame("tool", "rocker", pin.SE3(QUARTER_Z, np.array([1.0, 0.0, 0.0]))),),
        source="chain.urdf",
    )


def joint_named(description: Description, name: str) -> Joint:
    """The joint with that name."""
    return next(joint for joint in description.joints if joint.name == name)


def free_twists(pair: Pair) -> Array:
    """Twists of a pair that can carry a body, in the order of its coordinates, shape (6, dof)."""
    assert isinstance(pair, MotionGroup | Universal)
    return pair.free


def placed(joint: Joint, motion: pin.SE3) -> pin.SE3:
    """Placement of the child in the parent when B is at ``motion`` in A."""
    return joint.frame_parent * motion * joint.frame_child.inverse()


def about(axis: str, angle: float) -> pin.SE3:
    """Rotation about a coordinate axis, from its matrix."""
    c, s = np.cos(angle), np.sin(angle)
    rows = {
        "x": [[1, 0, 0], [0, c, -s], [0, s, c]],
        "y": [[c, 0, s], [0, 1, 0], [-s, 0, c]],
        "z": [[c, -s, 0], [s, c, 0], [0, 0, 1]],
    }[axis]
    return pin.SE3(np.array(rows, dtype=float), np.zeros(3))


__all__ = [
    "GROUND",
    "QUARTER_X",
    "QUARTER_Z",
    "about",
    "at",
    "bar",
    "joint_named",
    "open_chain",
    "placed",
    "revolute",
]
