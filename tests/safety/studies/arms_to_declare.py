"""Arms of a few numbers whose stops are declared, and their brakes; no test lives here."""

from __future__ import annotations

from typing import Any

import numpy as np

import pinloop as pl
from pinloop.safety.standards.extension import Extension, Finder
from pinloop.safety.standards.posture import Point

from ...screw_tables import Array, Table, joint
from ..stopping.robots_to_stop import Y, Z, made, solid

COMMAND, DELAY = 0.02, 0.03
CHAIN = pl.safety.Chain(sensor=0.005, controller=0.015, drive_off=DELAY)
"""Drives follow until the brakes come: constant speed, then the brake's torque."""
REACTION = COMMAND + DELAY
THIRDS = (0.33, 0.66, 1.0)


def brakes(**joints: float | dict[str, Any]) -> pl.Brakes:
    """Brakes that act at the joint, of some torque."""
    made = {}
    for name, given in joints.items():
        numbers = given if isinstance(given, dict) else {"dynamic_torque": given}
        made[name] = pl.safety.JointBrake(**({"side": "joint", "delay": DELAY} | numbers))
    return pl.Brakes(made, CHAIN)


def limits(low: float, high: float, velocity: float = 2.0) -> Table:
    return {"limits": {"lower": low, "upper": high, "velocity": velocity}}


def two_links(axis: Array = -Y, second: tuple[float, float] = (-2.5, 2.5)) -> pl.Mechanism:
    """Two links of 0.6 and 0.5 m, stretched along x at 0; the tool is a payload at the end."""
    return made(
        [solid("upper", 4.0, [0.3, 0, 0]), solid("lower", 3.0, [0.85, 0, 0])],
        [
            joint("j1", "revolute", "ground", "upper", [0, 0, 0], axis, **limits(-3, 3)),
            joint("j2", "revolute", "upper", "lower", [0.6, 0, 0], axis, **limits(*second)),
        ],
    )


def tip(**more: Any) -> pl.Payload:
    return pl.Payload(2.0, com=(1.1, 0, 0), frame="lower", **more)


def poses(arm: pl.Mechanism, axis: str, point: Point, shares: Any = THIRDS) -> Extension:
    return Finder(arm, arm.actuated, point).extension(axis, shares)


TIP = Point("lower", np.array([1.1, 0, 0]), -Z)


def arm_by_hand(q: Array) -> tuple[Array, Array]:
    """Places x, z of elbow and tip of the two links about -y: positive angles raise them."""
    first, both = q[0], q[0] + q[1]
    x = np.cumsum([0.6 * np.cos(first), 0.5 * np.cos(both)])
    return x, np.cumsum([0.6 * np.sin(first), 0.5 * np.sin(both)])


def three_links(axis: Array) -> pl.Mechanism:
    """Links of 0.6, 0.5 and 0.3 m, stretched along x at 0."""
    ends = np.cumsum([0, 0.6, 0.5, 0.3])
    names = ("ground", "a", "b", "c")
    ranges = ((-3, 3), (-2.5, 2.5), (-1.5, 2.0))
    return made(
        [solid(name, 2.0, [(ends[k] + ends[k + 1]) / 2, 0, 0]) for k, name in enumerate("abc")],
        [
            joint(f"j{k + 1}", "revolute", names[k], names[k + 1], [ends[k], 0, 0], axis,
                  **limits(*ranges[k]))
            for k in range(3)
        ],
    )  # fmt: skip
