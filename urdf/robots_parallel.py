"""Parallel robots: delta, 3-PRRR, Stewart-Gough platform."""

from __future__ import annotations

import math

from robot_parts import (
    Joint,
    Limit,
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


def _around(azimuth: float, point: Vector) -> Vector:
    """Point turned about z by an azimuth [deg]."""
    c, s = math.cos(azimuth * DEGREE), math.sin(azimuth * DEGREE)
    return (c * point[0] - s * point[1], s * point[0] + c * point[1], point[2])


def delta() -> Robot:
    """Delta robot with two ball-ended rods per arm."""
    height, radius, width, spread = 1.2, 0.2, 0.05, 0.056
    elbow, rod = (0.336, 0.0, -0.098), 0.8
    lean = math.atan2(0.6, 0.8)
    sides = (("a", -1.0), ("b", 1.0))
    links, joints, loops = [_delta_frame(height)], list[Joint](), list[LoopJoint]()
    # The frame of the platform is where the first rod carries it, at this corner.
    corner: Vector = (spread, -width, 0.0)
    for arm in (1, 2, 3):
        azimuth = 120.0 * (arm - 1)
        foot = _around(azimuth, (radius, 0.0, height))
        yaw = (0.0, 0.0, azimuth * DEGREE)
        reach = (-50 * DEGREE, 70 * DEGREE)
        shoulder = hinge(f"arm_{arm}", "base", f"upper_{arm}", foot, Y, reach, 12.0, 90.0, yaw)
        links.append(Link(f"upper_{arm}", _delta_arm(elbow, width), mass=1.4))
        joints.append(shoulder.driven(33.0, damping=0.15, friction=0.8))
        for side, sign in sides:
            name = f"rod_{arm}{side}"
            at: Vector = (elbow[0], sign * width, elbow[2])
            links.append(Link(name, _delta_rod(rod), mass=0.16))
            joints.append(
                Joint(f"elbow_{arm}{side}", "spherical", f"upper_{arm}", name, at, (0, lean, 0))
            )
            if name == "rod_1a":
                continue
            x, y, _ = _around(azimuth, (spread, sign * width, 0.0))
            on_platform: Vector = (x - corner[0], y - corner[1], 0.0)
            loops.append(
                LoopJoint(
                    f"ball_{arm}{side}", "spherical", name, (0, 0, -rod), "platform", on_platform
                )
            )
    links += [Link("platform", _delta_platform(corner, spread, width), mass=0.75), Link("tool0")]
    joints += [
        Joint("ball_1a", "spherical", "rod_1a", "platform", (0, 0, -rod), (0, -lean, 0)),
        Joint(
            "platform_tool0", "fixed", "platform", "tool0", (-spread, width, -0.03), (math.pi, 0, 0)
        ),
    ]
    about = """
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
    return Robot("delta", about, links, joints, loops)


def _delta_frame(height: float) -> Link:
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


def _delta_arm(elbow: Vector, width: float) -> tuple[Solid, ...]:
    left, right = (elbow[0], -width, elbow[2]), (elbow[0], width, elbow[2])
    return (
        drum(0.035, 0.10, ORIGIN, "y", "orange"),
        pipe(ORIGIN, elbow, 0.022, "orange"),
        pipe(left, right, 0.010, "orange"),
        ball(0.014, left, "steel"),
        ball(0.014, right, "steel"),
    )


def _delta_rod(length: float) -> tuple[Solid, ...]:
    return (
        pipe(ORIGIN, (0, 0, -length), 0.007, "blue"),
        ball(0.012, ORIGIN, "steel"),
        ball(0.012, (0, 0, -length), "steel"),
    )


def _delta_platform(corner: Vector, spread: float, width: float) -> tuple[Solid, ...]:
    solids = [drum(0.055, 0.02, (-corner[0], -corner[1], -0.02), "z", "green")]
    for azimuth in (0.0, 120.0, 240.0):
        ends = [_around(azimuth, (spread, side * width, 0.0)) for side in (-1.0, 1.0)]
        left, right = ((x - corner[0], y - corner[1], 0.0) for x, y, _ in ends)
        solids.append(pipe(left, right, 0.009, "green"))
    return tuple(solids)


def prrr3() -> Robot:
    """Three orthogonal legs, each a slide and three hinges parallel to it (paper 5, figure 7)."""
    cx, cy, cz = 0.0, 0.0, 0.9
    side = 0.06
    links, joints, loops = [_prrr_frame(cz)], list[Joint](), list[LoopJoint]()
    for leg, name in enumerate(("x", "y", "z")):
        axis, color = _cycle(X, leg), ("orange", "blue", "amber")[leg]
        rail, tip = _cycle((0.0, -0.66, 0.0), leg), _cycle((0.0, -side, 0.0), leg)
        lower, upper = _cycle((0.0, 0.3, 0.4), leg), _cycle((0.0, 0.3, -0.4), leg)
        slide = Joint(
            f"slide_{name}",
            "prismatic",
            "base",
            f"carriage_{name}",
            (cx + rail[0], cy + rail[1], cz + rail[2]),
            axis=axis,
            limit=Limit(-0.25, 0.25, 1.5, 1500.0),
        )
        links += [
            Link(f"carriage_{name}", (box(_cycle((0.14, 0.07, 0.07), leg), ORIGIN, "steel"),), 3.5),
            Link(f"lower_{name}", _prrr_bar(lower, axis, color), 1.6),
            Link(f"upper_{name}", _prrr_bar(upper, axis, color), 1.4),
        ]
        # A screw of 20 mm per turn: 2 pi / 0.02 rad of the motor per metre.
        joints += [
            slide.driven(2 * math.pi / 0.02, damping=40.0, friction=25.0),
            hinge(f"hinge_{name}1", f"carriage_{name}", f"lower_{name}", ORIGIN, axis),
            hinge(f"hinge_{name}2", f"lower_{name}", f"upper_{name}", lower, axis),
        ]
        if leg == 0:
            # The platform's frame is in this hinge, half a side away from its centre.
            joints.append(hinge("hinge_x3", "upper_x", "platform", upper, axis))
        else:
            on_platform: Vector = (tip[0], tip[1] + side, tip[2])
            loops.append(
                LoopJoint(
                    f"hinge_{name}3",
                    "revolute",
                    f"upper_{name}",
                    upper,
                    "platform",
                    on_platform,
                    axis,
                )
            )
    links += [Link("platform", (box((0.12, 0.12, 0.12), (0, side, 0), "green"),), 2.2)]
    links += [Link("tool0")]
    joints += [Joint("platform_tool0", "fixed", "platform", "tool0", (0, side, 0))]
    about = """
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
    return Robot("prrr3", about, links, joints, loops)


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
    posts += [box((0.06, 0.06, height - 0.73), (0, y, (height - 0.73) / 2), "graphite")
              for y in (-0.4, 0.4)]
    posts += [box((0.06, 0.06, height - 0.4), (-0.73, 0, (height - 0.4) / 2), "graphite")]
    plate = box((1.4, 1.4, 0.03), (-0.25, -0.2, 0.015), "graphite")
    return Link("base", (plate, *rails, *posts), mass=120.0)


def stewart() -> Robot:
    """Stewart-Gough platform 6-UPS."""
    base_radius, platform_radius, leg = 0.6, 0.4, 0.9
    base_height, spread, between = 0.1, 8.0, 44 * DEGREE
    span = math.hypot(
        base_radius - platform_radius * math.cos(between), platform_radius * math.sin(between)
    )
    rise = math.sqrt(leg**2 - span**2)
    links, joints, loops = [_stewart_base(base_radius, base_height, spread)], list[Joint](), list[LoopJoint]()
    for i in range(6):
        # Feet in pairs around 0, 120, 240 deg, platform joints in pairs around 60, 180, 300 deg.
        sign = -1.0 if i % 2 == 0 else 1.0
        middle = 120.0 * (i // 2)
        foot = _around(middle + sign * spread, (base_radius, 0.0, base_height))
        top = _around(middle + sign * (60.0 - spread), (platform_radius, 0.0, 0.0))
        along = (top[0] - foot[0], top[1] - foot[1])
        pose = (0.0, math.atan2(span, rise), math.atan2(along[1], along[0]))
        n = i + 1
        links += [
            Link(f"cylinder_{n}", _stewart_cylinder(), mass=6.5),
            Link(f"piston_{n}", _stewart_piston(), mass=2.5),
        ]
        swivel = Joint(
            f"swivel_{n}", "universal", "base", f"cylinder_{n}", foot, pose, axis=Y, axis2=X
        )
        slide = Joint(
            f"leg_{n}",
            "prismatic",
            f"cylinder_{n}",
            f"piston_{n}",
            (0, 0, 0.3),
            axis=Z,
            limit=Limit(-0.15, 0.15, 0.8, 4000.0),
        )
        joints += [swivel, slide.driven(2 * math.pi / 0.01, damping=150.0, friction=80.0)]
        loops.append(
            LoopJoint(f"ball_{n}", "spherical", f"piston_{n}", (0, 0, 0.6), "platform", top)
        )
    links += [Link("platform", _stewart_platform(platform_radius, spread), mass=24.0), Link("tool0")]
    joints += [
        Joint("platform_pose", "floating", "base", "platform", (0, 0, base_height + rise)),
        Joint("platform_tool0", "fixed", "platform", "tool0", (0, 0, 0.06)),
    ]
    about = """
Stewart-Gough platform 6-UPS: six legs, each a universal joint at the base, a driven slide and a
ball joint at the platform. 6 degrees of freedom. In the tree the platform floats freely; six ball
joints close the loops with 18 closure rows, all independent.

Dimensions are ours, in the size of a small motion platform (estimate): feet on a radius of 0.6 m,
platform joints on 0.4 m, in pairs 16 deg apart; legs 0.9 m at q = 0, stroke 0.15 m either way.
Masses, forces, speeds, friction and the screws of 10 mm per turn are estimates.

At q = 0 the platform is level, its joints in the plane of its frame. Leg frames have z along the
leg; a universal joint turns first about the horizontal y axis, then about x. tool0 is on top."""
    return Robot("stewart", about, links, joints, loops)


def _stewart_base(radius: float, height: float, spread: float) -> Link:
    solids: list[Solid] = [drum(radius + 0.08, 0.05, (0, 0, 0.025), "z", "graphite")]
    for middle in (0.0, 120.0, 240.0):
        for turn in (middle - spread, middle + spread):
            x, y, _ = _around(turn, (radius, 0.0, 0.0))
            solids.append(pipe((x, y, 0.05), (x, y, height), 0.035, "graphite"))
    return Link("base", tuple(solids), mass=90.0)


def _stewart_cylinder() -> tuple[Solid, ...]:
    return (ball(0.04, ORIGIN, "steel"), pipe(ORIGIN, (0, 0, 0.56), 0.034, "orange"))


def _stewart_piston() -> tuple[Solid, ...]:
    return (pipe(ORIGIN, (0, 0, 0.6), 0.018, "steel"), ball(0.03, (0, 0, 0.6), "steel"))


def _stewart_platform(radius: float, spread: float) -> tuple[Solid, ...]:
    solids: list[Solid] = [drum(radius - 0.03, 0.03, (0, 0, 0.045), "z", "green")]
    for middle in (60.0, 180.0, 300.0):
        for turn in (middle - spread, middle + spread):
            x, y, _ = _around(turn, (radius, 0.0, 0.0))
            inner = _around(turn, (radius - 0.08, 0.0, 0.04))
            solids.append(beam((x, y, 0.0), inner, (0.05, 0.03), "green"))
    return tuple(solids)
