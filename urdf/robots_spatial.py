"""Single spatial loops: spherical four-bar, Bricard six-bar, three-bar with ball joints."""

from __future__ import annotations

import math

from robot_parts import (
    ALUMINIUM,
    Joint,
    Link,
    LoopJoint,
    Robot,
    Solid,
    Vector,
    ball,
    beam,
    box,
    drum,
    hinge,
    pipe,
)

DEGREE = math.pi / 180
X: Vector = (1.0, 0.0, 0.0)
Y: Vector = (0.0, 1.0, 0.0)
Z: Vector = (0.0, 0.0, 1.0)
ORIGIN: Vector = (0.0, 0.0, 0.0)


def spherical_fourbar() -> Robot:
    """Four revolute axes through one point, flat at q = 0 (paper 5, section 7.1)."""
    azimuth = (0.0, 70.0, 155.0, 265.0)
    links = [
        Link("base", (*_arc(265.0, 360.0, 0.0, "graphite"), ball(0.05, ORIGIN, "graphite"))),
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
    about = """
Spherical four-bar linkage: four revolute axes through one point, the origin. 1 degree of freedom;
of the 5 closure rows at most 2 are independent.

Source: A. Mueller, geometric constraint regularization for multibody system models (paper 5),
section 7.1 and figure 6: joint frames at unit distance from the centre, joint 3 is the cut joint,
and the flattened configuration is the reference configuration. It is singular: at q = 0 all four
axes lie in one plane, only 1 closure row is independent, and two branches of motion cross.
The figure itself is not available: the azimuths of the axes at q = 0, 0, 70, 155 and 265 deg, are
our choice. Links are arcs of aluminium rod, 40 mm thick, drawn as chords.

Joint frames have x outward, along the axis."""
    return Robot("spherical_fourbar", about, links, joints, loops)


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


def _arc(start: float, stop: float, frame: float, color: str) -> tuple[Solid, ...]:
    """Chords of the unit circle between two azimuths [deg], in the joint frame at ``frame``.

    The base (``frame`` 0) has its own frame in the centre if ``stop`` is 360.
    """
    count = max(1, round(abs(stop - start) / 18))
    shift = 0.0 if stop == 360.0 else 1.0
    points: list[Vector] = []
    for i in range(count + 1):
        angle = (start + (stop - start) * i / count - frame) * DEGREE
        points.append((math.cos(angle) - shift, math.sin(angle), 0.0))
    chords = zip(points[:-1], points[1:], strict=True)
    return tuple(pipe(a, b, 0.02, color, ALUMINIUM) for a, b in chords)


def _axle() -> Solid:
    return drum(0.03, 0.12, ORIGIN, "x", "steel", ALUMINIUM)


def bricard() -> Robot:
    """Threefold-symmetric Bricard six-bar, as the skew hexagon of a cube's edges at q = 0."""
    side, height = 0.4, 0.6
    # Edge along which each body runs, and the axis of the joint at its end.
    edges: list[Vector] = [X, Y, Z, (-1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, -1.0)]
    axes: list[Vector] = [Z, X, (0.0, -1.0, 0.0), Z, X, Y]
    ends: list[Vector] = [(side * e[0], side * e[1], side * e[2]) for e in edges]
    colors = ("graphite", "orange", "blue", "green", "amber", "sky")
    links, joints = [], []
    for i in range(6):
        start: Vector = (0.0, 0.0, height) if i == 0 else ORIGIN
        end: Vector = (ends[0][0], ends[0][1], height) if i == 0 else ends[i]
        solids = [pipe(start, end, 0.012, colors[i], ALUMINIUM)]
        for point, axis in ((start, axes[i - 1]), (end, axes[i])):
            solids.append(_hinge_pin(point, axis, colors[i]))
        if i == 0:
            solids.append(pipe((side / 2, 0, 0), (side / 2, 0, height), 0.02, "graphite"))
            solids.append(drum(0.2, 0.03, (side / 2, 0, 0.015), "z", "graphite"))
        links.append(Link("base" if i == 0 else f"link_{i}", tuple(solids), 8.0 if i == 0 else None))
        if i == 0:
            continue
        parent = "base" if i == 1 else f"link_{i - 1}"
        at: Vector = (side, 0.0, height) if i == 1 else ends[i - 1]
        joint = hinge(f"joint_{i}", parent, f"link_{i}", at, axes[i - 1])
        joints.append(joint)
    joints[0] = hinge(
        "joint_1", "base", "link_1", joints[0].xyz, Z, (-3.6, 0.5), effort=30.0
    ).driven(20.0)
    loops = [LoopJoint("joint_6", "revolute", "link_5", ends[5], "base", (0, 0, height), axis=Y)]
    about = """
Bricard linkage, threefold symmetric: six bars of 0.4 m, neighbouring axes at right angles, twists
+90 and -90 deg in turn, no offsets. Six bodies and six hinges should not move at all; this loop
has 1 degree of freedom because of its special proportions: of the 5 closure rows 4 are
independent, in every regular configuration, though the chains themselves do not show it.

Source: R. Bricard's mobile octahedral loops (1897, 1927), in the threefold-symmetric form with
perpendicular axes, the linkage of the kaleidocycle; paper 5 (figure 2b) shows a Bricard six-bar
as an example of geometric redundancy. Size, bars (aluminium, 24 mm) and motor are our own.

At q = 0 the bars run along six edges of a cube, its skew hexagon. The joints turn in two groups: with
u = 90 deg + q1 = 90 deg + q3 = 90 deg + q5 and w = 90 deg + q2 = 90 deg + q4,
cos u + cos w + cos u cos w = 0. The linkage turns endlessly through itself, while each joint goes
back and forth from -210 to 30 deg; joint_1 stops just short of its ends, where it cannot drive."""
    return Robot("bricard", about, links, joints, loops)


def _hinge_pin(point: Vector, axis: Vector, color: str) -> Solid:
    """Short cylinder about a joint axis."""
    half = 0.035
    start = (point[0] - half * axis[0], point[1] - half * axis[1], point[2] - half * axis[2])
    end = (point[0] + half * axis[0], point[1] + half * axis[1], point[2] + half * axis[2])
    return pipe(start, end, 0.018, color, ALUMINIUM)


def spherical_threebar() -> Robot:
    """Two boxes and the ground in a triangle of ball joints (paper 2, section 5.4)."""
    apex = math.atan2(0.16, 0.12)
    bar = box((0.2, 0.1, 0.05), (0.1, 0, 0), "orange", density=ALUMINIUM)
    other = box((0.2, 0.1, 0.05), (0.1, 0, 0), "blue", density=ALUMINIUM)
    joints_drawn = tuple(
        ball(0.03, (x, 0, 0), "steel", density=0.0) for x in (0.0, 0.2)
    )
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
    about = """
Closed three-bar loop with ball joints: two flat boxes and the ground form a triangle. 3 degrees of
freedom: the triangle swings about the line through the two ground joints, and each box may spin
about the line through its own two joints (idle). All 3 closure rows are independent.

Source: A. Mueller, Z. Terze, choice of configuration space for Lie group integration of
constrained multibody systems (paper 2), section 5.4, with the boxes of section 5.2:
0.2 x 0.1 x 0.05 m, aluminium, 2.7 kg. The distance of the ground joints is not printed: 0.24 m is
our choice.

At q = 0 the triangle lies flat in the horizontal plane, its apex at (0.12, 0.16, 0): released
there, it swings down. The x axis of a box runs from its first joint to its second."""
    return Robot("spherical_threebar", about, links, joints, loops)
