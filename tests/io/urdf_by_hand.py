"""URDF texts put together by hand, and motions from Rodrigues' formula, to test loading with."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'
"""One kilogram with the inertia of a ball."""


def words(values: ArrayLike) -> str:
    """Numbers as an attribute writes them, to the last bit."""
    return " ".join(repr(float(value)) for value in np.atleast_1d(np.asarray(values)))


def inertial(
    mass: float, tensor: Array, xyz: ArrayLike = (0, 0, 0), rpy: ArrayLike = (0, 0, 0)
) -> str:
    """Mass, and inertia about the centre ``xyz`` in axes turned by ``rpy``."""
    cells = {f"i{a}{b}": tensor["xyz".index(a), "xyz".index(b)] for a, b in
             ("xx", "xy", "xz", "yy", "yz", "zz")}  # fmt: skip
    values = " ".join(f'{key}="{words(cell)}"' for key, cell in cells.items())
    return (
        f'<inertial><origin xyz="{words(xyz)}" rpy="{words(rpy)}"/>'
        f'<mass value="{words(mass)}"/><inertia {values}/></inertial>'
    )


def link(name: str, inside: str = INERTIAL) -> str:
    return f'<link name="{name}">{inside}</link>\n'


def joint(
    name: str,
    parent: str,
    child: str,
    kind: str = "continuous",
    *,
    xyz: ArrayLike = (0, 0, 0),
    rpy: ArrayLike = (0, 0, 0),
    axis: ArrayLike | None = None,
    inside: str = "",
    attributes: str = "",
) -> str:
    direction = "" if axis is None else f'<axis xyz="{words(axis)}"/>'
    return (
        f'<joint name="{name}" type="{kind}" {attributes}>'
        f'<origin xyz="{words(xyz)}" rpy="{words(rpy)}"/>'
        f'<parent link="{parent}"/><child link="{child}"/>{direction}{inside}</joint>\n'
    )


def robot(*parts: str, name: str = "robot") -> str:
    """Lines: ``<robot>`` is the first, ``parts`` begin in the second."""
    return f'<robot name="{name}">\n{"".join(parts)}</robot>\n'


def two_joints(inside: str = "", extra: str = "", kind: str = "continuous") -> str:
    """Joints j (base to p, about x) and k (p to q, about z, with ``inside``) in lines 5 and 6."""
    parts = link("base", ""), link("p"), link("q"), joint("j", "base", "p", kind)
    return robot(*parts, joint("k", "p", "q", axis=(0, 0, 1), inside=inside), extra)


def pair_of_arms(extra: str = "") -> str:
    """Two arms of two links on one base, with skew axes; ``extra`` elements at the end.

    Joints a1 (base to p), a2 (p to q), b1 (base to r), b2 (r to s).
    """
    return robot(
        link("base", ""),
        *(link(name) for name in "pqrs"),
        joint("a1", "base", "p", xyz=(0.1, 0, 0), axis=(0, 0, 1)),
        joint("a2", "p", "q", xyz=(0.5, 0, 0.1), rpy=(0.3, -0.2, 0.5), axis=(0, 1, 0)),
        joint("b1", "base", "r", xyz=(0, 0.4, 0), rpy=(0, 0.4, 0), axis=(1, 0, 0)),
        joint("b2", "r", "s", xyz=(0.3, 0.2, 0), rpy=(0.1, 0, 0.7), axis=(1, 2, -1)),
        extra,
    )


def two_bodies(extra: str = "") -> str:
    """Two bodies p and q that float freely, and ``extra`` elements."""
    return robot(
        link("base", ""),
        link("p"),
        link("q"),
        joint("float_p", "base", "p", "floating"),
        joint("float_q", "base", "q", "floating"),
        extra,
    )


def rotation(axis: ArrayLike, angle: float) -> Array:
    """Rodrigues' formula."""
    x, y, z = np.asarray(axis, dtype=float) / np.linalg.norm(axis)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.asarray(np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross)


def turn(axis: ArrayLike, angle: float) -> pin.SE3:
    return pin.SE3(rotation(axis, angle), np.zeros(3))


def shift(*xyz: float) -> pin.SE3:
    return pin.SE3(np.eye(3), np.array(xyz, dtype=float))


def pose(xyz: ArrayLike, rpy: ArrayLike) -> pin.SE3:
    """Position and fixed-axis roll, pitch, yaw: ``Rz(yaw) Ry(pitch) Rx(roll)``."""
    roll, pitch, yaw = np.asarray(rpy, dtype=float)
    R = rotation((0, 0, 1), yaw) @ rotation((0, 1, 0), pitch) @ rotation((1, 0, 0), roll)
    return pin.SE3(R, np.asarray(xyz, dtype=float))


def random_placement(rng: np.random.Generator) -> pin.SE3:
    return pin.SE3(rotation(rng.normal(size=3), rng.uniform(0, 3)), rng.normal(size=3))


def place(bodies: Iterable[pin.SE3]) -> Array:
    """Coordinates of free joints that put bodies at the given placements."""
    return np.concatenate([pin.SE3ToXYZQUAT(body) for body in bodies])


__all__ = [
    "INERTIAL",
    "Array",
    "inertial",
    "joint",
    "link",
    "pair_of_arms",
    "place",
    "pose",
    "random_placement",
    "robot",
    "rotation",
    "shift",
    "turn",
    "two_bodies",
    "two_joints",
    "words",
]
