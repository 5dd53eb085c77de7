"""Motions, velocities and energies written down by hand, for the tests of the tree; no test here.

Exponentials come from SciPy's matrix exponential, velocities from finite differences, energies
from the point masses that the bodies of `tables` are made of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pinocchio as pin
from scipy.linalg import expm

import pinloop as pl
from pinloop import Mechanism

from .screw_tables import Array, mass_points

STEP = 2e-4
"""Step of the differences of fourth order: truncation and rounding are both near 1e-12."""


def skew(w: Array) -> Array:
    return np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])


def screw_motion(axis: str, angle: float, shift: float = 0.0) -> Array:
    """Homogeneous matrix of a turn about and a shift along a coordinate axis."""
    unit = np.eye(3)["xyz".index(axis)]
    twist = np.zeros((4, 4))
    twist[:3, :3], twist[:3, 3] = angle * skew(unit), shift * unit
    return np.asarray(expm(twist))


def from_quaternion(quaternion: Array) -> Array:
    """Rotation of a quaternion (x, y, z, w), by Rodrigues' formula in Euler parameters."""
    e, e0 = quaternion[:3], quaternion[3]
    return np.asarray(np.eye(3) + 2 * e0 * skew(e) + 2 * skew(e) @ skew(e))


def pair_motion(pair: str, q: Array, pitch: float = 0.0, coordinates: str = "") -> Array:
    """Homogeneous matrix ``N(q)`` of frame B in frame A; coordinates as Pinocchio stores them."""
    N = np.eye(4)
    if pair == "revolute":
        angle = np.arctan2(q[1], q[0]) if coordinates == "circle" else q[0]
        return screw_motion("z", angle)
    if pair in ("prismatic", "helical"):
        shift, turn = (q[0], 0.0) if pair == "prismatic" else (pitch * q[0], q[0])
        return screw_motion("z", turn, shift)
    if pair == "cylindrical":
        return screw_motion("z", q[1], q[0])
    if pair == "universal":
        return screw_motion("z", q[0]) @ screw_motion("x", q[1])
    if pair == "spherical" and coordinates == "zyx":
        return screw_motion("z", q[0]) @ screw_motion("y", q[1]) @ screw_motion("x", q[2])
    if pair in ("planar", "schoenflies"):
        angle = np.arctan2(q[3], q[2]) if pair == "planar" else q[3]
        N = screw_motion("z", angle)
    if pair in ("spherical", "free"):
        N[:3, :3] = from_quaternion(q[-4:])
    shifts = {"planar": 2, "planar_translation": 2, "spherical": 0, "fixed": 0}.get(pair, 3)
    N[:shifts, 3] = q[:shifts]
    return N


TURNING = ("spherical", "free")
"""Pairs with a quaternion: walked backwards, they have the coordinates of A in B."""


def backwards(pair: str, q: Array, pitch: float = 0.0, coordinates: str = "") -> Array:
    """Matrix of A in B of a pair that is walked from B to A, with the coordinates it has then.

    Coordinates keep their sign and are met in reverse order on the way from B to A.
    """
    if pair in TURNING and coordinates != "zyx":
        return pair_motion(pair, q, pitch, coordinates)
    if coordinates != "circle":
        q = q[::-1]
    if pair == "planar":
        q = np.array([q[0], q[1], np.cos(q[2]), np.sin(q[2])])
    return np.asarray(np.linalg.inv(pair_motion(pair, q, pitch, coordinates)))


def random_se3(rng: np.random.Generator, reach: float = 1.0) -> Any:
    quaternion = rng.normal(size=4)
    R = from_quaternion(quaternion / np.linalg.norm(quaternion))
    return pin.SE3(R, rng.uniform(-reach, reach, 3))


def random_q(robot: Mechanism, rng: np.random.Generator, spread: float = 2.0) -> Array:
    return robot.integrate(robot.neutral, rng.uniform(-spread, spread, robot.nv))


def placements(robot: Mechanism, q: Array) -> dict[str, Array]:
    """Homogeneous matrix of every body."""
    return {name: robot.placement(q, name).homogeneous for name in robot.bodies}


def slope(function: Callable[[float], Any], step: float = STEP) -> Any:
    """Derivative at zero, by central differences of fourth order."""
    near, far = function(step) - function(-step), function(2 * step) - function(-2 * step)
    return (8 * near - far) / (12 * step)


def rate(robot: Mechanism, q: Array, v: Array, function: Callable[[Array], Any]) -> Any:
    """Derivative of a function of the configuration along ``v``."""
    return slope(lambda t: function(robot.integrate(q, t * v)))


def points_in_world(robot: Mechanism, q: Array) -> Array:
    """Positions of all point masses of bodies made of `mass_points`."""
    stacked = []
    for name, T in placements(robot, q).items():
        stacked.append(mass_points(name)[1] @ T[:3, :3].T + T[:3, 3])
    return np.vstack(stacked)


def point_masses(robot: Mechanism) -> Array:
    return np.concatenate([mass_points(name)[0] for name in robot.bodies])


def kinetic_energy(robot: Mechanism, q: Array, v: Array) -> float:
    """Half the sum of mass times speed squared over the point masses."""
    velocities = rate(robot, q, v, lambda q: points_in_world(robot, q))
    return float(0.5 * point_masses(robot) @ (velocities**2).sum(axis=1))


def potential_energy(robot: Mechanism, q: Array) -> float:
    return -float(point_masses(robot) @ points_in_world(robot, q) @ robot.gravity)


def mass_matrix(robot: Mechanism, q: Array) -> Array:
    data = robot.model.createData()
    upper = np.triu(pin.crba(robot.model, data, q))
    return np.asarray(upper + np.triu(upper, 1).T)


def angles(robot: Mechanism, values: Mapping[str, float]) -> Array:
    """Configuration of one-axis joints by name; every joint must be named."""
    assert set(values) == set(robot.joints)
    return np.array([values[name] for name in robot.joints])


def at(robot: Mechanism, q: Array, joint: str) -> float:
    """Coordinate of a one-axis joint."""
    (value,) = q[robot.coordinates(joint).q]
    return float(value)


def is_closed(robot: Mechanism, q: Array) -> bool:
    return bool(np.linalg.norm(pl.Constraints(robot).residual(q)) < 1e-9)
