"""Linkages in the vertical xz plane: four-bar, seven-bar, five-bar.

Frames are parallel to the world at q = 0 and all axes point along -y, so that angles count
counterclockwise in the view with x to the right and z up.
"""

from __future__ import annotations

import math

from robot_parts import (
    ALUMINIUM,
    DEGREE,
    ORIGIN,
    Joint,
    Link,
    LoopJoint,
    Robot,
    Solid,
    Vector,
    beam,
    box,
    drum,
    hinge,
)

AXIS: Vector = (0.0, -1.0, 0.0)


def _unit_bar(name: str, end: Vector, color: str, layer: float = 0.0) -> Link:
    """Bar of paper 3: 1 m, 1 kg, 1 kg m^2, centre of mass halfway; drawn in a layer of its own."""
    x, _, z = end
    bar = beam((0, layer, 0), (x, layer, z), (0.03, 0.05), color, density=0.0)
    pin = drum(0.022, 0.16, ORIGIN, "y", "steel", density=0.0)
    return Link(name, (bar, pin), mass=1.0, com=(x / 2, 0.0, z / 2), inertia=(1.0, 1.0, 1.0))


def _ground(span: float) -> Link:
    """Fixed bar behind the linkage."""
    rail = beam((-0.15, 0.11, 0), (span + 0.15, 0.11, 0), (0.05, 0.08), "graphite")
    pins = [drum(0.03, 0.06, (x, 0.09, 0), "y", "graphite") for x in (0.0, span)]
    return Link("base", (rail, *pins), mass=10.0)


_FOURBAR = """
Planar four-bar linkage under gravity. 1 degree of freedom, one loop: of its 5 closure rows 2 are
independent.

Source: R. Mukherjee, K. Anderson, orthogonal complement based divide-and-conquer algorithm
(paper 3), figure 3 and section 4: every body has L = 1 m, m = 1 kg and an inertia of 1 kg m^2
normal to the plane, taken about its centre; the other two moments do not matter and are set
equal. The distance of the ground pivots is not printed: 0.44 m is our choice. The ground is then
the shortest bar (0.44 + 1 < 1 + 1): a double crank, which turns all the way round and has no
singular configuration.

At q = 0 the crank lies along x and is about to fall; coupler and rocker hang from it and from
the second pivot. Bars are drawn in layers, their mechanics lies in the plane y = 0."""


def fourbar() -> Robot:
    """Single loop of three bars and the ground (paper 3, figure 3)."""
    links = [
        _ground(0.44),
        _unit_bar("crank", (1, 0, 0), "orange"),
        _unit_bar("coupler", (-0.28, 0, -0.96), "blue", 0.04),
        _unit_bar("rocker", (0.28, 0, -0.96), "green", -0.04),
    ]
    joints = [
        hinge("joint_1", "base", "crank", ORIGIN, AXIS, effort=60.0).driven(1.0),
        hinge("joint_2", "crank", "coupler", (1, 0, 0), AXIS),
        hinge("joint_3", "base", "rocker", (0.44, 0, 0), AXIS),
    ]
    tip = (0.28, 0.0, -0.96)
    loops = [
        LoopJoint("joint_4", "revolute", "coupler", (-0.28, 0, -0.96), "rocker", tip, axis=AXIS)
    ]
    return Robot("fourbar", _FOURBAR, links, joints, loops)


_SEVENBAR = """
Planar seven-bar linkage with two coupled loops under gravity. 2 degrees of freedom: of its 10
closure rows 4 are independent.

Source: R. Mukherjee, K. Anderson, orthogonal complement based divide-and-conquer algorithm
(paper 3), figure 4 and section 4: bars 1, 2, 3 and the ground form the upper loop, bars 4, 5, 6
and the shared bar 2 the lower one. Every body has L = 1 m, m = 1 kg and an inertia of 1 kg m^2
normal to the plane, taken about its centre; the other two moments do not matter and are set
equal. The distance of the ground pivots is not printed: 1.56 m is our choice, and so is the
hinging of bars 4 and 6 at the two ends of bar 2.

At q = 0 the upper loop is a symmetric trapezoid, the lower one a rhombus that leans to the right:
released there, it swings. Bars are drawn in layers, their mechanics lies in the plane y = 0."""


def sevenbar() -> Robot:
    """Two coupled loops that share bar 2 (paper 3, figure 4)."""
    left, right = (0.28, 0.0, -0.96), (0.28, 0.0, 0.96)
    lower, raised = (0.6, 0.0, -0.8), (-0.6, 0.0, 0.8)
    level: Vector = (1.0, 0.0, 0.0)
    links = [
        _ground(1.56),
        _unit_bar("bar_1", left, "orange"),
        _unit_bar("bar_2", level, "amber", 0.04),
        _unit_bar("bar_3", right, "orange"),
        _unit_bar("bar_4", lower, "blue", -0.04),
        _unit_bar("bar_5", level, "sky"),
        _unit_bar("bar_6", raised, "blue", -0.04),
    ]
    joints = [
        hinge("joint_1", "base", "bar_1", ORIGIN, AXIS, effort=150.0).driven(1.0),
        hinge("joint_2", "bar_1", "bar_2", left, AXIS),
        hinge("joint_3", "bar_2", "bar_3", level, AXIS),
        hinge("joint_4", "bar_2", "bar_4", ORIGIN, AXIS, effort=60.0).driven(1.0),
        hinge("joint_5", "bar_4", "bar_5", lower, AXIS),
        hinge("joint_6", "bar_5", "bar_6", level, AXIS),
    ]
    loops = [
        LoopJoint("upper_loop", "revolute", "bar_3", right, "base", (1.56, 0, 0), axis=AXIS),
        LoopJoint("lower_loop", "revolute", "bar_6", raised, "bar_2", level, axis=AXIS),
    ]
    return Robot("sevenbar", _SEVENBAR, links, joints, loops)


_FIVEBAR = """
Planar five-bar robot in a vertical plane, hanging from a portal. 2 degrees of freedom, both base
joints driven; one loop: of its 5 closure rows 2 are independent.

Dimensions are our own: pivots 0.4 m apart and 1 m above the floor, cranks 0.25 m, rods 0.45 m.
Within the limits of the two drives every pair of angles can be assembled and is regular.
Masses follow from aluminium bars and hubs; torques, speeds, friction and the reduction of 50 are
estimates.

At q = 0 the robot is symmetric, with its tool point 0.6 m below the pivots. tool0 points down."""


def fivebar() -> Robot:
    """Two driven cranks that carry one tool point."""
    links = [
        Link(
            "base",
            (
                box((0.70, 0.06, 0.10), (0, 0.10, 1.0), "graphite"),
                box((0.06, 0.06, 1.0), (-0.35, 0.16, 0.5), "graphite"),
                box((0.06, 0.06, 1.0), (0.35, 0.16, 0.5), "graphite"),
                drum(0.05, 0.14, (-0.2, 0.12, 1.0), "y", "graphite"),
                drum(0.05, 0.14, (0.2, 0.12, 1.0), "y", "graphite"),
            ),
            mass=35.0,
        )
    ]
    joints: list[Joint] = []
    for side, sign, crank_color, rod_color in (
        ("left", -1.0, "orange", "steel"),
        ("right", 1.0, "blue", "steel"),
    ):
        elbow = (sign * 0.07, 0.0, -0.24)
        tip = (-sign * 0.27, 0.0, -0.36)
        layer = -0.03 if sign < 0 else 0.0
        links += [
            Link(f"crank_{side}", _bar_with_hub(elbow, 0.03, 0.03, crank_color)),
            Link(f"rod_{side}", _bar_with_hub(tip, layer, 0.018, rod_color)),
        ]
        reach = (-60 * DEGREE, 45 * DEGREE) if sign < 0 else (-45 * DEGREE, 60 * DEGREE)
        pivot = (sign * 0.2, 0.0, 1.0)
        base = f"base_{side}"
        crank = hinge(base, "base", f"crank_{side}", pivot, AXIS, reach, 8.0, 30.0)
        joints += [
            crank.driven(50.0, damping=0.2, friction=0.3),
            hinge(f"elbow_{side}", f"crank_{side}", f"rod_{side}", elbow, AXIS),
        ]
    tip_left, tip_right = (0.27, 0.0, -0.36), (-0.27, 0.0, -0.36)
    loops = [LoopJoint("tip", "revolute", "rod_left", tip_left, "rod_right", tip_right, axis=AXIS)]
    links.append(Link("tool0"))
    joints.append(Joint("rod_left_tool0", "fixed", "rod_left", "tool0", tip_left, (math.pi, 0, 0)))
    return Robot("fivebar", _FIVEBAR, links, joints, loops)


def _bar_with_hub(end: Vector, layer: float, half_width: float, color: str) -> tuple[Solid, ...]:
    """Aluminium bar from the joint to ``end``, with hubs; ``layer`` is its place along y."""
    x, _, z = end
    bar = beam((0, layer, 0), (x, layer, z), (0.02, 2 * half_width), color, ALUMINIUM)
    hubs = (
        drum(1.2 * half_width, 0.026, (a, layer, b), "y", color, ALUMINIUM)
        for a, b in ((0.0, 0.0), (x, z))
    )
    return (bar, *hubs)
