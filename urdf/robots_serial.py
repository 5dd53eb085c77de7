"""Open chains: the planar pendulum and the six-axis arm. No loops here."""

from __future__ import annotations

import math

from robot_parts import (
    ALUMINIUM,
    DEGREE,
    Joint,
    Link,
    Robot,
    Vector,
    Y,
    ball,
    beam,
    box,
    drum,
    hinge,
    pipe,
)

_PLANAR_3R = """
Planar 3R pendulum: three bars on parallel horizontal axes, swinging under gravity.
3 degrees of freedom, no loop.

Source: A. Mueller, forward dynamics of variable topology mechanisms: the case of constraint
activation (paper 4), section 6: solid aluminium bars of 1 m, rectangular cross-section. The
numbers of the cross-section are not known to us: 0.05 m (along the axes) x 0.10 m is an estimate.
With 2700 kg/m^3 a bar has 13.5 kg and 1.13625 kg m^2 about its centre, parallel to the axes.

At q = 0 the bars lie stretched along x; positive angles turn them down (axes along +y). tool0 is
the free end of the third bar. The drives are direct (reduction 1): free in the experiment, there
to brake and lock; their torques and speeds are estimates."""


def planar_3r() -> Robot:
    """Three aluminium bars in a vertical plane (paper 4, section 6)."""
    names = ("bar_1", "bar_2", "bar_3")
    cheeks = (box((0.08, 0.02, 0.18), (0, y, 0.05), "graphite") for y in (-0.045, 0.045))
    links = [Link("base", (box((0.2, 0.3, 0.06), (0, 0, 0.17), "graphite"), *cheeks), mass=20.0)]
    joints: list[Joint] = []
    for i, (name, color) in enumerate(zip(names, ("orange", "blue", "green"), strict=True)):
        bar = box((1.0, 0.05, 0.1), (0.5, 0, 0), color, density=ALUMINIUM)
        pin = drum(0.025, 0.1, (0, 0, 0), "y", "steel", density=0.0)
        links.append(Link(name, (bar, pin)))
        effort = (1200.0, 600.0, 150.0)[i]
        joint = hinge(
            f"joint_{i + 1}",
            "base" if i == 0 else names[i - 1],
            name,
            (0, 0, 0) if i == 0 else (1, 0, 0),
            Y,
            velocity=20.0,
            effort=effort,
        )
        joints.append(joint.driven(1.0))
    links.append(Link("tool0"))
    joints.append(Joint("bar_3_tool0", "fixed", "bar_3", "tool0", (1, 0, 0)))
    return Robot("planar_3r", _PLANAR_3R, links, joints)


_SIX_AXIS_ARM = """
Six-axis industrial arm in the size of a Staubli RX130L. 6 degrees of freedom, no loop.

Source: A. Mueller, forward dynamics of variable topology mechanisms: the case of constraint
activation (paper 4), section 7, simulates that robot, whose motors turn 100 times per turn of a
joint (used here); it does not print the identified parameters. Everything else is an ESTIMATE in
that size, not data of the maker: reach 1.66 m from the shoulder axis to the flange, made of upper
arm 0.625 m, forearm 0.925 m and flange 0.110 m; height of the shoulder 0.55 m; joint ranges,
speeds and torques; friction; masses (224 kg with the base); inertias (each link's mass spread
evenly over its drawn solids).

At q = 0 the upper arm stands upright, the forearm points along x and the flange down: a regular
configuration. tool0 lies on the flange, z outward. Positive joint_2 and joint_3 lean forward
and down."""


def six_axis_arm() -> Robot:
    """Six-axis industrial arm in the size of a Staubli RX130L (paper 4, section 7)."""
    return Robot("six_axis_arm", _SIX_AXIS_ARM, _arm_links(), _arm_joints())


def _arm_links() -> list[Link]:
    """Links of the arm with their estimated masses."""
    return [
        Link(
            "base",
            (
                drum(0.23, 0.06, (0, 0, 0.03), "z", "graphite"),
                drum(0.17, 0.26, (0, 0, 0.19), "z", "graphite"),
            ),
            mass=62.0,
        ),
        Link(
            "turret",
            (
                drum(0.16, 0.12, (0, 0, -0.17), "z", "orange"),
                box((0.24, 0.24, 0.16), (0, 0, -0.05), "orange"),
                drum(0.13, 0.30, (0, 0, 0), "y", "graphite"),
            ),
            mass=64.0,
        ),
        Link(
            "upper_arm",
            (
                drum(0.12, 0.14, (0, 0.20, 0), "y", "orange"),
                beam((0, 0.20, 0), (0, 0.20, 0.625), (0.12, 0.18), "orange"),
                drum(0.10, 0.14, (0, 0.20, 0.625), "y", "orange"),
            ),
            mass=46.0,
        ),
        Link(
            "elbow_housing",
            (
                drum(0.10, 0.22, (0, 0.02, 0), "y", "graphite"),
                pipe((-0.10, 0, 0), (0.22, 0, 0), 0.09, "amber"),
            ),
            mass=30.0,
        ),
        Link(
            "forearm",
            (
                pipe((-0.70, 0, 0), (-0.35, 0, 0), 0.075, "orange"),
                pipe((-0.35, 0, 0), (-0.03, 0, 0), 0.056, "orange"),
                drum(0.045, 0.13, (0, 0, 0), "y", "orange"),
            ),
            mass=18.0,
        ),
        Link(
            "wrist",
            (ball(0.048, (0, 0, 0), "blue"), pipe((0, 0, 0), (0, 0, -0.085), 0.038, "blue")),
            mass=3.6,
        ),
        Link("flange", (drum(0.035, 0.025, (0, 0, -0.0125), "z", "steel"),), mass=0.6),
        Link("tool0"),
    ]


def _arm_joints() -> list[Joint]:
    """Joints of the arm; axes 4, 5 and 6 meet in the centre of the wrist."""
    x: Vector = (1, 0, 0)
    down: Vector = (0, 0, -1)
    rows: list[tuple[str, str, Vector, Vector, tuple[float, float], float, float]] = [
        # parent, child, position, axis, range [deg], velocity [deg/s], effort [N m]
        ("base", "turret", (0, 0, 0.55), (0, 0, 1), (-160, 160), 200, 1500),
        ("turret", "upper_arm", (0, 0, 0), Y, (-137, 137), 180, 2200),
        ("upper_arm", "elbow_housing", (0, 0, 0.625), Y, (-230, 50), 220, 1000),
        ("elbow_housing", "forearm", (0.925, 0, 0), x, (-270, 270), 380, 150),
        ("forearm", "wrist", (0, 0, 0), Y, (-195, 30), 320, 90),
        ("wrist", "flange", (0, 0, -0.085), down, (-270, 270), 550, 35),
    ]
    losses = [(30, 40), (35, 45), (18, 22), (3, 5), (2, 3), (0.6, 1.2)]
    joints = []
    for i, (parent, child, xyz, axis, reach, speed, effort) in enumerate(rows):
        low, high = reach[0] * DEGREE, reach[1] * DEGREE
        name = f"joint_{i + 1}"
        joint = hinge(name, parent, child, xyz, axis, (low, high), speed * DEGREE, effort)
        joints.append(joint.driven(100.0, *losses[i]))
    tool = Joint("flange_tool0", "fixed", "flange", "tool0", (0, 0, -0.025), (math.pi, 0, 0))
    return [*joints, tool]
