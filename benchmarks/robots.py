"""The robots that are measured and the states they start from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import pinloop as pl

Array = NDArray[np.float64]

URDF = Path(__file__).parents[1] / "urdf"


@dataclass(frozen=True)
class Motion:
    """A robot that is let go under gravity.

    Args:
        title: name in tables.
        robot: the mechanism.
        push: velocities of joints at the start [rad/s, m/s]; the others are at rest.
        until: end of the run [s].
    """

    title: str
    robot: Callable[[], pl.Mechanism]
    push: tuple[tuple[str, tuple[float, ...]], ...]
    until: float

    def start(self) -> tuple[pl.Mechanism, Array, Array]:
        """The regularized robot, an assembled configuration and a velocity."""
        robot = pl.regularize(self.robot())
        q = pl.assemble(robot, {})
        v = np.zeros(robot.nv)
        for joint, rate in self.push:
            v += robot.velocity({joint: rate})
        return robot, q, v


def from_file(name: str) -> Callable[[], pl.Mechanism]:
    """A robot of the repository."""
    return cache(lambda: pl.load(URDF / f"{name}.urdf"))


def heavy_top() -> pl.Mechanism:
    """A box that spins on a ball joint under gravity; its numbers are those of paper 2, 5.1."""
    inertia, centre = np.diag([0.36, 0.306, 0.09]), [0.5, 0.0, 0.0]
    body = {"name": "top", "mass": 21.6, "com": centre, "inertia": inertia}
    pivot = {"name": "pivot", "pair": "spherical", "parent": "ground", "child": "top"}
    return pl.from_screws(
        {
            "name": "heavy_top",
            "gravity": [0, 0, -9.81],
            "bodies": [body],
            "joints": [pivot | {"point": [0, 0, 0]}],
        }
    )


MOTIONS = {
    "fourbar": Motion("four-bar", from_file("fourbar"), (), 5.0),
    "sevenbar": Motion("seven-bar", from_file("sevenbar"), (), 3.0),
    "stewart": Motion("Stewart platform", from_file("stewart"), (), 0.5),
    "bricard": Motion("Bricard", from_file("bricard"), (), 2.0),
    "heavy_top": Motion(
        "heavy top", heavy_top, (("pivot", (0.0, 20.0 * np.pi, 10.0 * np.pi)),), 0.5
    ),
}
"""Whole simulations."""

RIGHT_HAND_SIDES = {
    "six_axis_arm": "six-axis arm",
    "fourbar": "four-bar",
    "palletizer": "palletizer",
    "delta": "delta",
    "stewart": "Stewart platform",
    "prrr3": "3-PRRR",
    "bricard": "Bricard",
}
"""Robots whose right-hand side is measured, with their titles."""
