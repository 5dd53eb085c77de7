"""Parallel robots: delta, 3-PRRR, Stewart-Gough platform."""

from __future__ import annotations

import math

from robot_parts import (
    DEGREE,
    ORIGIN,
    Joint,
    Limit,
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


def _around(azimuth: float, point: Vector) -> Vector:
    """Point turned about z by an azimuth [deg]."""
    c, s = math.cos(azimuth * DEGREE), math.sin(azimuth * DEGREE)
    return (c * point[0] - s * point[1], s * point[0] + c * point[1], point[2])


_DELTA = """
Delta robot: three driven arms, each carrying the platform by two rods with a ball joint at either
end. 9 degrees of freedom: 3 translations of the platform, and 6 idle ones, since every rod may
spin about itself. Five loops with 15 closure rows, all independent (the sixth ball joint at the
platform, ball_1a, is in the tree).

Dimensions are ours, in the size of a small packaging robot (estimate): arms 0.35 m, rods 0.8 m,
motors 0.2 m and platform joints 0.056 m from the axis, rods of a pair 0.1 m apart. Masses
(carbon fibre arms and rods, aluminium platform), torques, speeds, friction and the reduction of 33
are estimates.

At q = 0 the arms point 16 deg downward and the platform is centred 0.738 m below the motors. The
frame of the platform sits in ball_1a, that of a rod in its upper ball, z along the rod. tool0 is
in the centre of the platform, z downward."""


HEIGHT = 1.2
"""Height of the delta's motors above the floor [m]."""
ROD = 0.8
"""Length of the delta's rods between the centres of their balls [m]."""
ELBOW: Vector = (0.336, 0.0, -0.098)
"""Middle of the two upper balls in the frame of an arm [m]."""
HALF_PAIR = 0.05
"""Half the distance of the two rods of an arm [m]."""
SPREAD = 0.056
"""Distance of the ball joints of the platform from its centre, along the arm [m]."""


def delta() -> Robot:
    """Delta robot with two ball-ended rods per arm."""
    links, joints, loops = [_delta_frame()], list[Joint](), list[LoopJoint]()
    for arm in (1, 2, 3):
        leg_links, leg_joints, leg_loops = _delta_leg(arm)
        links += leg_links
        joints += leg_joints
        loops += leg_loops
    links += [Link("platform", _delta_platform(), mass=0.75), Link("tool0")]
    # The platform's frame is in the lower ball of the first rod.
    centre: Vector = (-SPREAD, HALF_PAIR, -0.03)
    joints += [
        Joint("ball_1a", "spherical", "rod_1a", "platform", (0, 0, -ROD), (0, -_LEAN, 0)),
        Joint("platform_tool0", "fixed", "platform", "tool0", centre, (math.pi, 0, 0)),
    ]
    return Robot("delta", _DELTA, links, joints, loops)


_LEAN = math.atan2(0.6, 0.8)
"""Angle of the delta's rods against the vertical at q = 0 [rad]."""


def _delta_leg(arm: int) -> tuple[list[Link], list[Joint], list[LoopJoint]]:
    """Arm with its motor and its two rods, down to the platform."""
    azimuth = 120.0 * (arm - 1)
    foot = _around(azimuth, (0.2, 0.0, HEIGHT))
    upper, yaw = f"upper_{arm}", (0.0, 0.0, azimuth * DEGREE)
    reach = (-50 * DEGREE, 70 * DEGREE)
    shoulder = hinge(f"arm_{arm}", "base", upper, foot, Y, reach, 12.0, 90.0, yaw)
    links = [Link(upper, _delta_arm(), mass=1.4)]
    joints = [shoulder.driven(33.0, damping=0.15, friction=0.8)]
    loops = []
    for side, y in (("a", -HALF_PAIR), ("b", HALF_PAIR)):
        rod, at = f"rod_{arm}{side}", (ELBOW[0], y, ELBOW[2])
        links.append(Link(rod, _delta_rod(), mass=0.16))
        joints.append(Joint(f"elbow_{arm}{side}", "spherical", upper, rod, at, (0, _LEAN, 0)))
        if rod != "rod_1a":
            corner = _delta_corner(azimuth, y)
            name = f"ball_{arm}{side}"
            loops.append(LoopJoint(name, "spherical", rod, (0, 0, -ROD), "platform", corner))
    return links, joints, loops


def _delta_corner(azimuth: float, y: float) -> Vector:
    """Ball joint of the platform, in the platform's frame."""
    point = _around(azimuth, (SPREAD, y, 0.0))
    return (point[0] - SPREAD, point[1] + HALF_PAIR, 0.0)


def _delta_frame() -> Link:
    height = HEIGHT
    plate = drum(0.26, 0.03, (0, 0, height + 0.09), "z", "graphite")
    solids: list[Solid] = [plate]
    for azimuth in (0.0, 120.0, 240.0):
        motor = _around(azimuth, (0.2, 0.09, height))
        tangent = _around(azimuth, (0.2, 0.16, height))
        solids.append(pipe(motor, tangent, 0.045, "graphite"))
        foot = _around(azimuth + 60.0, (0.72, 0.0, 0.0))
        top = _around(azimuth + 60.0, (0.72, 0.0, height + 0.09))
        solids.append(pipe(foot, top, 0.025, "graphite"))
        solids.append(beam(top, (0.0, 0.0, height + 0.09), (0.05, 0.04), "graphite"))
    return Link("base", tuple(solids), mass=60.0)


def _delta_arm() -> tuple[Solid, ...]:
    left, right = (ELBOW[0], -HALF_PAIR, ELBOW[2]), (ELBOW[0], HALF_PAIR, ELBOW[2])
    return (
        drum(0.035, 0.10, ORIGIN, "y", "orange"),
        pipe(ORIGIN, ELBOW, 0.022, "orange"),
        pipe(left, right, 0.010, "orange"),
        ball(0.014, left, "steel"),
        ball(0.014, right, "steel"),
    )


def _delta_rod() -> tuple[Solid, ...]:
    return (
        pipe(ORIGIN, (0, 0, -ROD), 0.007, "blue"),
        ball(0.012, ORIGIN, "steel"),
        ball(0.012, (0, 0, -ROD), "steel"),
    )


def _delta_platform() -> tuple[Solid, ...]:
    bars = (
        pipe(_delta_corner(azimuth, -HALF_PAIR), _delta_corner(azimuth, HALF_PAIR), 0.009, "green")
        for azimuth in (0.0, 120.0, 240.0)
    )
    return (drum(0.055, 0.02, (-SPREAD, HALF_PAIR, -0.02), "z", "green"), *bars)


_PRRR3 = """
3-PRRR parallel manipulator: three legs at right angles, each a driven slide and three hinges
parallel to its rail. The platform only translates: 3 degrees of freedom, and each slide moves it
along its own axis. Two loops; of their 10 closure rows 7 are independent, while each loop by
itself would keep 4.

Source: A. Mueller, geometric constraint regularization for multibody system models (paper 5),
section 7.2 and figure 7; the machine is due to X. Kong, C. Gosselin and to H. S. Kim, L.-W. Tsai
(2002). Tree and cuts as in that figure: 10 joints in the tree, one hinge cut in each of two legs.
Dimensions are ours: links of 0.5 m, strokes of 0.25 m either way. Masses, forces, speeds,
friction and the screws of 20 mm per turn are estimates.

At q = 0 the slides are in mid-stroke, the legs bent and the platform centred 0.9 m up. The
platform's frame is in hinge_x3, tool0 in its centre. Links keep world orientation at q = 0."""


SIDE = 0.06
"""Half the side of the platform cube [m]; the third hinge of each leg is on one of its faces."""


def prrr3() -> Robot:
    """Three orthogonal legs, each a slide and three hinges parallel to it (paper 5, figure 7)."""
    links, joints, loops = [_prrr_frame(0.9)], list[Joint](), list[LoopJoint]()
    for leg, name in enumerate(("x", "y", "z")):
        leg_links, leg_joints = _prrr_leg(leg, name)
        links += leg_links
        joints += leg_joints
        axis, tip = _cycle(X, leg), _cycle((0.0, 0.3, -0.4), leg)
        if leg == 0:
            # The platform's frame is in this hinge, half a side away from its centre.
            joints.append(hinge("hinge_x3", "upper_x", "platform", tip, axis))
        else:
            x, y, z = _cycle((0.0, -SIDE, 0.0), leg)
            at: Vector = (x, y + SIDE, z)
            hinge_name, upper = f"hinge_{name}3", f"upper_{name}"
            loops.append(LoopJoint(hinge_name, "revolute", upper, tip, "platform", at, axis))
    links.append(Link("platform", (box((0.12, 0.12, 0.12), (0, SIDE, 0), "green"),), mass=2.2))
    links.append(Link("tool0"))
    joints.append(Joint("platform_tool0", "fixed", "platform", "tool0", (0, SIDE, 0)))
    return Robot("prrr3", _PRRR3, links, joints, loops)


def _prrr_leg(leg: int, name: str) -> tuple[list[Link], list[Joint]]:
    """Slide, lower and upper bar of a leg; the second is the first with its axes exchanged."""
    axis, color = _cycle(X, leg), ("orange", "blue", "amber")[leg]
    x, y, z = _cycle((0.0, -0.6 - SIDE, 0.0), leg)
    knee, tip = _cycle((0.0, 0.3, 0.4), leg), _cycle((0.0, 0.3, -0.4), leg)
    carriage, lower, upper = f"carriage_{name}", f"lower_{name}", f"upper_{name}"
    limit = Limit(-0.25, 0.25, 1.5, 1500.0)
    slide = Joint(
        f"slide_{name}", "prismatic", "base", carriage, (x, y, z + 0.9), axis=axis, limit=limit
    )
    links = [
        Link(carriage, (box(_cycle((0.14, 0.07, 0.07), leg), ORIGIN, "steel"),), mass=3.5),
        Link(lower, _prrr_bar(knee, axis, color), mass=1.6),
        Link(upper, _prrr_bar(tip, axis, color), mass=1.4),
    ]
    joints = [
        # A screw of 20 mm per turn: 2 pi / 0.02 rad of the motor per metre.
        slide.driven(2 * math.pi / 0.02, damping=40.0, friction=25.0),
        hinge(f"hinge_{name}1", carriage, lower, ORIGIN, axis),
        hinge(f"hinge_{name}2", lower, upper, knee, axis),
    ]
    return links, joints


def _cycle(vector: Vector, times: int) -> Vector:
    """Move components from x to y, y to z, z to x so many times."""
    for _ in range(times):
        vector = (vector[2], vector[0], vector[1])
    return vector


def _prrr_bar(end: Vector, axis: Vector, color: str) -> tuple[Solid, ...]:
    """Bar from the joint to ``end`` with a hub about the axis at each end."""

    def hub(at: Vector) -> Solid:
        a, b = (
            (at[0] + s * axis[0], at[1] + s * axis[1], at[2] + s * axis[2]) for s in (-0.04, 0.04)
        )
        return pipe(a, b, 0.028, color)

    return (pipe(ORIGIN, end, 0.020, color), hub(ORIGIN), hub(end))


def _prrr_frame(height: float) -> Link:
    """Floor plate, three rails and the posts that carry them."""
    rails = []
    for leg in range(3):
        x, y, z = _cycle((0.0, -0.73, 0.0), leg)
        rails.append(box(_cycle((0.95, 0.06, 0.10), leg), (x, y, z + height), "graphite"))
    posts = [box((0.06, 0.06, height), (x, -0.73, height / 2), "graphite") for x in (-0.4, 0.4)]
    posts += [
        box((0.06, 0.06, height - 0.73), (0, y, (height - 0.73) / 2), "graphite")
        for y in (-0.4, 0.4)
    ]
    posts += [box((0.06, 0.06, height - 0.4), (-0.73, 0, (height - 0.4) / 2), "graphite")]
    plate = box((1.4, 1.4, 0.03), (-0.25, -0.2, 0.015), "graphite")
    return Link("base", (plate, *rails, *posts), mass=120.0)


_STEWART = """
Stewart-Gough platform 6-UPS: six legs, each a universal joint at the base, a driven slide and a
ball joint at the platform. 6 degrees of freedom. In the tree the platform floats freely; six ball
joints close the loops with 18 closure rows, all independent.

Dimensions are ours, in the size of a small motion platform (estimate): feet on a radius of 0.6 m,
platform joints on 0.4 m, in pairs 16 deg apart; legs 0.9 m at q = 0, stroke 0.15 m either way.
Masses, forces, speeds, friction and the screws of 10 mm per turn are estimates.

At q = 0 the platform is level, its joints in the plane of its frame. Leg frames have z along the
leg; a universal joint turns first about the horizontal y axis, then about x. tool0 is on top."""


FEET = 0.6
"""Radius of the Stewart platform's universal joints [m]."""
TOPS = 0.4
"""Radius of its ball joints [m]."""
PAIR = 8.0
"""Half the angle between the two joints of a pair [deg]."""
FLOOR = 0.1
"""Height of the universal joints [m]."""
SPAN = math.hypot(
    FEET - TOPS * math.cos((60.0 - 2 * PAIR) * DEGREE), TOPS * math.sin((60.0 - 2 * PAIR) * DEGREE)
)
"""Horizontal distance between the ends of a leg at q = 0 [m]."""
RISE = math.sqrt(0.9**2 - SPAN**2)
"""Vertical distance between the ends of a leg of 0.9 m at q = 0 [m]."""


def stewart() -> Robot:
    """Stewart-Gough platform 6-UPS."""
    links, joints, loops = [_stewart_base()], list[Joint](), list[LoopJoint]()
    for number in range(1, 7):
        leg_links, leg_joints, loop = _stewart_leg(number)
        links += leg_links
        joints += leg_joints
        loops.append(loop)
    links += [Link("platform", _stewart_platform(), mass=24.0), Link("tool0")]
    joints += [
        Joint("platform_pose", "floating", "base", "platform", (0, 0, FLOOR + RISE)),
        Joint("platform_tool0", "fixed", "platform", "tool0", (0, 0, 0.06)),
    ]
    return Robot("stewart", _STEWART, links, joints, loops)


def _stewart_leg(number: int) -> tuple[list[Link], list[Joint], LoopJoint]:
    """Leg from its universal joint to its ball joint.

    Feet come in pairs around 0, 120, 240 deg, ball joints in pairs around 60, 180, 300 deg.
    """
    side = -1.0 if number % 2 else 1.0
    centre = 120.0 * ((number - 1) // 2)
    foot = _around(centre + side * PAIR, (FEET, 0.0, FLOOR))
    top = _around(centre + side * (60.0 - PAIR), (TOPS, 0.0, 0.0))
    heading = math.atan2(top[1] - foot[1], top[0] - foot[0])
    pose = (0.0, math.atan2(SPAN, RISE), heading)
    cylinder, piston = f"cylinder_{number}", f"piston_{number}"
    limit = Limit(-0.15, 0.15, 0.8, 4000.0)
    slide = Joint(f"leg_{number}", "prismatic", cylinder, piston, (0, 0, 0.3), axis=Z, limit=limit)
    links = [
        Link(cylinder, _stewart_cylinder(), mass=6.5),
        Link(piston, _stewart_piston(), mass=2.5),
    ]
    joints = [
        Joint(f"swivel_{number}", "universal", "base", cylinder, foot, pose, axis=Y, axis2=X),
        slide.driven(2 * math.pi / 0.01, damping=150.0, friction=80.0),
    ]
    loop = LoopJoint(f"ball_{number}", "spherical", piston, (0, 0, 0.6), "platform", top)
    return links, joints, loop


def _stewart_base() -> Link:
    solids: list[Solid] = [drum(FEET + 0.08, 0.05, (0, 0, 0.025), "z", "graphite")]
    for centre in (0.0, 120.0, 240.0):
        for azimuth in (centre - PAIR, centre + PAIR):
            x, y, _ = _around(azimuth, (FEET, 0.0, 0.0))
            solids.append(pipe((x, y, 0.05), (x, y, FLOOR), 0.035, "graphite"))
    return Link("base", tuple(solids), mass=90.0)


def _stewart_cylinder() -> tuple[Solid, ...]:
    return (ball(0.04, ORIGIN, "steel"), pipe(ORIGIN, (0, 0, 0.56), 0.034, "orange"))


def _stewart_piston() -> tuple[Solid, ...]:
    return (pipe(ORIGIN, (0, 0, 0.6), 0.018, "steel"), ball(0.03, (0, 0, 0.6), "steel"))


def _stewart_platform() -> tuple[Solid, ...]:
    solids: list[Solid] = [drum(TOPS - 0.03, 0.03, (0, 0, 0.045), "z", "green")]
    for centre in (60.0, 180.0, 300.0):
        for azimuth in (centre - PAIR, centre + PAIR):
            outer = _around(azimuth, (TOPS, 0.0, 0.0))
            inner = _around(azimuth, (TOPS - 0.08, 0.0, 0.04))
            solids.append(beam(outer, inner, (0.05, 0.03), "green"))
    return tuple(solids)
