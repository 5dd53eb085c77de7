"""Single spatial loops: spherical four-bar, Bricard six-bar, three-bar with ball joints."""

from __future__ import annotations

import math
from itertools import pairwise

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
    X,
    Y,
    Z,
    ball,
    beam,
    box,
    drum,
    hinge,
    pipe,
)

_SPHERICAL_FOURBAR = """
Spherical four-bar linkage: four revolute axes through one point, the origin. 1 degree of freedom;
of the 5 closure rows at most 2 are independent.

Source: A. Mueller, geometric constraint regularization for multibody system models (paper 5),
section 7.1 and figure 6: joint frames at unit distance from the centre, joint 3 is the cut joint,
and the flattened configuration is the reference configuration. It is singular: at q = 0 all four
axes lie in one plane, only 1 closure row is independent, and two branches of motion cross.
The figure itself is not available: the azimuths of the axes at q = 0, 0, 70, 155 and 265 deg, are
our choice. Links are arcs of aluminium rod, 40 mm thick, drawn as chords.

Joint frames have x outward, along the axis."""


def spherical_fourbar() -> Robot:
    """Four revolute axes through one point, flat at q = 0 (paper 5, section 7.1)."""
    azimuth = (0.0, 70.0, 155.0, 265.0)
    links = [
        Link(
            "base",
            (*_arc(265.0, 360.0, None, "graphite"), ball(0.05, ORIGIN, "graphite", density=0.0)),
        ),
        Link("link_1", (*_arc(0.0, 70.0, 0.0, "orange"), _axle())),
        Link("link_2", (*_arc(70.0, 155.0, 70.0, "blue"), _axle())),
        Link("link_3", (*_arc(265.0, 155.0, 265.0, "green"), _axle())),
    ]
    joints = [
        _radial_hinge("joint_1", "base", "link_1", azimuth[0], None, effort=200.0).driven(1.0),
        _radial_hinge("joint_2", "link_1", "link_2", azimuth[1], azimuth[0]),
        _radial_hinge("joint_4", "base", "link_3", azimuth[3], None),
    ]
    xyz1, rpy1 = _radial_frame(azimuth[2], azimuth[1])
    xyz2, rpy2 = _radial_frame(azimuth[2], azimuth[3])
    loops = [LoopJoint("joint_3", "revolute", "link_2", xyz1, "link_3", xyz2, X, rpy1, rpy2)]
    return Robot("spherical_fourbar", _SPHERICAL_FOURBAR, links, joints, loops)


def _radial_frame(azimuth: float, seen_from: float | None) -> tuple[Vector, Vector]:
    """Joint frame at an azimuth [deg], in the joint frame at another one or in the base."""
    turn = (azimuth - (seen_from or 0.0)) * DEGREE
    shift = 0.0 if seen_from is None else 1.0
    return (math.cos(turn) - shift, math.sin(turn), 0.0), (0.0, 0.0, turn)


def _radial_hinge(
    name: str, parent: str, child: str, azimuth: float, parent_at: float | None, effort: float = 0.0
) -> Joint:
    xyz, rpy = _radial_frame(azimuth, parent_at)
    return hinge(name, parent, child, xyz, X, effort=effort, rpy=rpy)


def _arc(start: float, stop: float, seen_from: float | None, color: str) -> tuple[Solid, ...]:
    """Chords of the unit circle between two azimuths [deg], in the frame of `_radial_frame`."""
    count = max(1, round(abs(stop - start) / 18))
    azimuths = (start + (stop - start) * i / count for i in range(count + 1))
    points = [_radial_frame(azimuth, seen_from)[0] for azimuth in azimuths]
    return tuple(pipe(a, b, 0.02, color, ALUMINIUM) for a, b in pairwise(points))


def _axle() -> Solid:
    return drum(0.03, 0.12, ORIGIN, "x", "steel", ALUMINIUM)


_BRICARD = """
Bricard linkage, threefold symmetric: six bars of 0.4 m, neighbouring axes at right angles, twists
+90 and -90 deg in turn, no offsets. Six bodies and six hinges should not move at all; this loop
has 1 degree of freedom because of its special proportions: of the 5 closure rows 4 are
independent, though nothing in the open chains tells so.

Source: R. Bricard, Lecons de cinematique, 1927: the trihedral six-bar, here with equal bars, which
is the linkage of the kaleidocycle. Paper 5 (figure 2b) shows a Bricard six-bar as an example of
geometric redundancy. Size, bars (aluminium, 24 mm) and motor are our own.

At q = 0 the bars run along six edges of a cube, its skew hexagon. The joints turn in two groups,
q1 = q3 = q5 and q2 = q4; with u = q1 + 90 deg and w = q2 + 90 deg,
cos u + cos w + cos u cos w = 0. The linkage turns endlessly through itself, while each joint goes
back and forth between -210 and 30 deg. The limits of joint_1 lie just inside these ends, where a
motor in that joint could not drive."""


def bricard() -> Robot:
    """Threefold-symmetric Bricard six-bar, as the skew hexagon of a cube's edges at q = 0."""
    side: float = 0.4
    root: Vector = (0.0, 0.0, 0.6)
    directions: list[Vector] = [X, Y, Z, (-1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, -1.0)]
    # Bar i runs along directions[i]; the joint at its end has axes[i].
    axes: list[Vector] = [Z, X, (0.0, -1.0, 0.0), Z, X, Y]
    spans = [_along(ORIGIN, direction, side) for direction in directions]
    colors = ("graphite", "orange", "blue", "green", "amber", "sky")
    names = ["base", *(f"link_{i}" for i in range(1, 6))]
    links = [
        Link(
            "base",
            (
                *_hinged_bar(root, _along(root, X, side), axes[5], axes[0], "graphite"),
                pipe((side / 2, 0, 0), (side / 2, 0, root[2]), 0.02, "graphite", ALUMINIUM),
                drum(0.2, 0.03, (side / 2, 0, 0.015), "z", "graphite", ALUMINIUM),
            ),
        )
    ]
    joints: list[Joint] = []
    for i in range(1, 6):
        bar = _hinged_bar(ORIGIN, spans[i], axes[i - 1], axes[i], colors[i])
        links.append(Link(names[i], bar))
        at = _along(root, X, side) if i == 1 else spans[i - 1]
        reach = (-3.6, 0.5) if i == 1 else (-4.0, 1.0)
        effort = 30.0 if i == 1 else 0.0
        joint = hinge(f"joint_{i}", names[i - 1], names[i], at, axes[i - 1], reach, 20.0, effort)
        joints.append(joint.driven(20.0) if i == 1 else joint)
    loops = [LoopJoint("joint_6", "revolute", "link_5", spans[5], "base", root, axes[5])]
    return Robot("bricard", _BRICARD, links, joints, loops)


def _along(start: Vector, direction: Vector, distance: float) -> Vector:
    """Point at a distance from ``start``."""
    x, y, z = (a + distance * d for a, d in zip(start, direction, strict=True))
    return (x, y, z)


def _hinged_bar(
    start: Vector, end: Vector, first: Vector, second: Vector, color: str
) -> tuple[Solid, ...]:
    """Bar with a hub about the joint axis at either end."""
    hubs = (
        pipe(_along(point, axis, -0.035), _along(point, axis, 0.035), 0.018, color, ALUMINIUM)
        for point, axis in ((start, first), (end, second))
    )
    return (pipe(start, end, 0.012, color, ALUMINIUM), *hubs)


_SPHERICAL_THREEBAR = """
Closed three-bar loop with ball joints: two flat boxes and the ground form a triangle. 3 degrees of
freedom: the triangle swings about the line through the two ground joints, and each box may spin
about the line through its own two joints (idle). All 3 closure rows are independent.

Source: A. Mueller, Z. Terze, choice of configuration space for Lie group integration of
constrained multibody systems (paper 2), section 5.4, with the boxes of section 5.2:
0.2 x 0.1 x 0.05 m, aluminium, 2.7 kg. The distance of the ground joints is not printed: 0.24 m is
our choice.

At q = 0 the triangle lies flat in the horizontal plane, its apex at (0.12, 0.16, 0): released
there, it swings down. The x axis of a box runs from its first joint to its second."""


def spherical_threebar() -> Robot:
    """Two boxes and the ground in a triangle of ball joints (paper 2, section 5.4)."""
    apex = math.atan2(0.16, 0.12)
    bar = box((0.2, 0.1, 0.05), (0.1, 0, 0), "orange", density=ALUMINIUM)
    other = box((0.2, 0.1, 0.05), (0.1, 0, 0), "blue", density=ALUMINIUM)
    joints_drawn = tuple(ball(0.03, (x, 0, 0), "steel", density=0.0) for x in (0.0, 0.2))
    ground = (
        beam((-0.05, -0.06, 0), (0.29, -0.06, 0), (0.06, 0.05), "graphite"),
        ball(0.03, ORIGIN, "graphite"),
        ball(0.03, (0.24, 0, 0), "graphite"),
    )
    links = [
        Link("base", ground, mass=5.0),
        Link("bar_1", (bar, *joints_drawn)),
        Link("bar_2", (other, joints_drawn[0])),
    ]
    joints = [
        Joint("ball_1", "spherical", "base", "bar_1", ORIGIN, (0, 0, apex)),
        Joint("ball_2", "spherical", "bar_1", "bar_2", (0.2, 0, 0), (0, 0, -2 * apex)),
    ]
    loops = [LoopJoint("ball_3", "spherical", "bar_2", (0.2, 0, 0), "base", (0.24, 0, 0))]
    return Robot("spherical_threebar", _SPHERICAL_THREEBAR, links, joints, loops)
