"""Spherical double pendulum: which joints a configuration space keeps (paper 2, section 5.2).

Two boxes on spherical joints, the first to the ground, thrown hard in the field of gravity and
integrated with RK4 in absolute coordinates without stabilization. On SE(3) the joint to the ground
holds to machine precision, because the first body's motions form a group; the joint between two
moving bodies is violated in both spaces, and more than the one to the ground. Energies drift alike.
Asserted: just that, within an order of magnitude for "alike". The paper finds SE(3) generally
better; here that is so at joint 1, while at joint 2 SO(3)xR3 has the smaller error constant.
Masses follow from the density of the paper's heavy top; 1 s is our choice.
"""

from __future__ import annotations

import numpy as np

import pinloop as pl
from common.spaces import (
    STEP,
    Array,
    JointDrift,
    Space,
    draw,
    free_run,
    joint_drift,
    joint_panels,
    print_table,
    start_program,
    thrown,
)

SIDES = np.array([0.2, 0.1, 0.05])
"""Of the boxes [m]."""
MASS = 2700.0 * float(np.prod(SIDES))
"""Aluminium [kg]."""
SPIN_1, SPIN_2 = np.array([10.0, 0, 0]), np.pi * np.array([10.0, 10, 20])
"""Angular velocities at the start [rad/s]."""
HALF = np.array([0.1, 0, 0])


def mechanism() -> pl.Mechanism:
    """The pendulum in relative coordinates, stretched along x."""
    inertia = MASS / 12 * (np.sum(SIDES**2) * np.eye(3) - np.diag(SIDES**2))
    ball = {"pair": "spherical"}
    return pl.from_screws(
        {
            "name": "spherical double pendulum",
            "bodies": [
                {"name": "one", "mass": MASS, "com": HALF, "inertia": inertia},
                {"name": "two", "mass": MASS, "com": 3 * HALF, "inertia": inertia},
            ],
            "joints": [
                ball | {"name": "joint_1", "parent": "ground", "child": "one", "point": 0 * HALF},
                ball | {"name": "joint_2", "parent": "one", "child": "two", "point": 2 * HALF},
            ],
        }
    )


def start(robot: pl.Mechanism) -> Array:
    """Initial velocity in absolute coordinates: per body of the centre of mass, then angular."""
    first = np.cross(SPIN_1, HALF)
    second = 2 * first + np.cross(SPIN_2, HALF)
    return robot.velocity({"one@ground": [*first, *SPIN_1], "two@ground": [*second, *SPIN_2]})


def drift(space: Space, until: float, step: float = STEP) -> JointDrift:
    """Integrate in one configuration space, freely."""
    robot = mechanism().absolute(space)
    return joint_drift(free_run(robot, start(robot), until, step))


def main(until: float = 1.0, plot: str | None = None) -> dict[str, JointDrift]:
    """Compare the two spaces; returns their drifts."""
    both = drift("SE3", until), drift("SO3xR3", until)
    one, two = ([float(d.opening[f"joint_{k}"].max()) for d in both] for k in (1, 2))
    energy = [float(np.abs(d.energy).max()) for d in both]

    rows = (
        ("violation of joint 1 [m]", one, "SE(3) better"),
        ("violation of joint 2 [m]", two, "larger than that of joint 1"),
        ("drift of energy / kinetic energy", energy, "comparable"),
    )
    print_table("double pendulum", until, rows)

    assert one[0] < 1e-13 and one[1] > 1e6 * one[0]
    assert all(second > first for first, second in zip(one, two, strict=True))
    assert min(two) > 1e-7 and max(two) < 10 * min(two)
    assert max(energy) < 10 * min(energy)
    if plot:  # figures 5 to 7 of the paper
        draw(plot, both[0].t, joint_panels(*both), (1, 3), (12, 4))
    return {"SE3": both[0], "SO3xR3": both[1]}


if __name__ == "__main__":
    start_program(
        main, "Double pendulum in two configuration spaces.", motion=thrown(mechanism, start)
    )
