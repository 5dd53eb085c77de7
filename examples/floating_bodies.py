"""Two boxes on one ball joint, floating freely: no space is better (paper 2, section 5.3).

The double pendulum without ground and gravity, integrated with RK4 in absolute coordinates without
stabilization. Neither body moves in a group of motions, and so both spaces violate the joint and
lose energy alike: within an order of magnitude, which is asserted. What sets them apart is the
linear momentum: it is linear in the velocities of SO(3)xR3, which keeps it to machine precision,
and not in the twists of SE(3). The paper leaves the velocity of the pair open: the centre of mass
of the first box starts at rest. Masses follow from the density of the paper's heavy top; 1 s is our
choice.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import pinloop as pl
from common.spaces import (
    STEP,
    Array,
    Panel,
    Space,
    draw,
    free_run,
    print_table,
    start_program,
    thrown,
)

SIDES = np.array([0.2, 0.1, 0.05])
"""Of the boxes [m]."""
MASS = 2700.0 * float(np.prod(SIDES))
"""Aluminium [kg]."""
SPIN_1, SPIN_2 = np.array([0, 0, -10.0]), np.array([1.0, -1, 2 * np.pi])
"""Angular velocities at the start [rad/s]."""
HALF = np.array([0.1, 0, 0])


class Drift(NamedTuple):
    """How far a run leaves joint, energy and momenta over time."""

    t: Array
    opening: Array
    """How far the two points of the joint are apart [m]."""
    energy: Array
    """Gain of kinetic energy over that of the start."""
    linear: Array
    angular: Array
    """Momenta in the world, the angular one about the centre of mass."""


def mechanism() -> pl.Mechanism:
    """The pair in relative coordinates, stretched along x."""
    inertia = MASS / 12 * (np.sum(SIDES**2) * np.eye(3) - np.diag(SIDES**2))
    ball = {"name": "ball", "pair": "spherical", "parent": "one", "child": "two"}
    return pl.from_screws(
        {
            "name": "floating bodies",
            "gravity": [0, 0, 0],
            "bodies": [
                {"name": "one", "mass": MASS, "com": HALF, "inertia": inertia},
                {"name": "two", "mass": MASS, "com": 3 * HALF, "inertia": inertia},
            ],
            "joints": [
                {"name": "float", "pair": "free", "parent": "ground", "child": "one"},
                ball | {"point": 2 * HALF},
            ],
        }
    )


def start(robot: pl.Mechanism) -> Array:
    """Initial velocity in absolute coordinates: per body of the centre of mass, then angular."""
    second = np.cross(SPIN_1, HALF) + np.cross(SPIN_2, HALF)
    return robot.velocity({"one@ground": [0, 0, 0, *SPIN_1], "two@ground": [*second, *SPIN_2]})


def drift(space: Space, until: float, step: float = STEP) -> Drift:
    """Integrate in one configuration space, freely."""
    robot = mechanism().absolute(space)
    run = free_run(robot, start(robot), until, step)
    kinetic, momentum = run.energy().kinetic, run.momentum()
    energy = kinetic / kinetic[0] - 1
    return Drift(run.t, run.closure(), energy, momentum.linear, momentum.angular)


def main(until: float = 1.0, plot: str | None = None) -> dict[str, Drift]:
    """Compare the two spaces; returns their drifts."""
    both = drift("SE3", until), drift("SO3xR3", until)
    opening = [float(d.opening.max()) for d in both]
    energy = [float(np.abs(d.energy).max()) for d in both]
    linear, angular = (
        [float(np.abs(p - p[0]).max() / np.linalg.norm(p[0])) for p in momenta]
        for momenta in ([d.linear for d in both], [d.angular for d in both])
    )

    rows = (
        ("violation of the joint [m]", opening, "similar"),
        ("drift of the kinetic energy / energy", energy, "similar"),
        ("drift of the linear momentum, relative", linear, ""),
        ("drift of the angular momentum", angular, ""),
    )
    print_table("floating bodies", until, rows)

    assert min(opening) > 1e-13 and max(opening) < 10 * min(opening)
    assert max(energy) < 10 * min(energy)
    assert linear[1] < 1e-13 < 1e-3 * linear[0]
    assert max(angular) < 1e-8
    if plot:
        _plot(both, plot)
    return {"SE3": both[0], "SO3xR3": both[1]}


def _plot(both: tuple[Drift, Drift], path: str) -> None:
    """Figures 9 and 10 of the paper."""
    one, two = both
    opening = Panel(
        "Floating bodies: violation of the joint [pm]",
        (1e12 * one.opening, 1e12 * two.opening),
        logarithmic=False,
    )
    energy = Panel(
        "Drift of the kinetic energy, relative [10⁻¹²]",
        (1e12 * one.energy, 1e12 * two.energy),
        logarithmic=False,
    )
    draw(path, one.t, [opening, energy], (1, 2), (10, 4))


if __name__ == "__main__":
    start_program(
        main, "Floating bodies in two configuration spaces.", motion=thrown(mechanism, start)
    )
