"""The palletizing robot with its parallelogram linkages.

The column turns about z; everything above moves in its xz plane, with axes along +y. Points named
here are those of the column frame at q = 0; links keep that orientation at q = 0.
"""

from __future__ import annotations

import math

from robot_parts import (
    DEGREE,
    Joint,
    Link,
    LoopJoint,
    Robot,
    Vector,
    Y,
    beam,
    box,
    drum,
    hinge,
    pipe,
)

ARM = 0.95
"""Length of the upper arm, of the drive rod and of the rear levelling rod [m]."""
FOREARM = 1.05
"""Length of the forearm from elbow to wrist and of the front levelling rod [m]."""
CRANK = 0.30
"""Length of the elbow crank and of the rear lever of the forearm [m]."""
SHOULDER: Vector = (0.26, 0.0, 0.43)
REAR: Vector = (-0.24, 0.0, 0.07)
"""Side of the rear levelling parallelogram, on the column and on the elbow plate."""
FRONT: Vector = (0.12, 0.0, 0.16)
"""Side of the front levelling parallelogram, on the elbow plate and on the wrist bracket."""
LAYER = 0.17
"""Distance of the levelling linkage from the middle plane [m]."""


def _aside(point: Vector, y: float = LAYER) -> Vector:
    return (point[0], y, point[2])


_PALLETIZER = """
Four-axis palletizing robot for payloads of about 60 kg. 4 degrees of freedom; three loops, all
planar: of their 15 closure rows 6 are independent.

  base_yaw   turns the column about the vertical
  shoulder   leans the upper arm forward
  elbow      turns a crank beside the shoulder; crank, drive rod, rear lever of the forearm and
             upper arm are a parallelogram, so that the forearm turns with the crank and its
             motor stays on the column
  wrist      turns the flange about the vertical

Two more parallelograms keep the flange level: the rear one (column, levelling rod, triangular
plate at the elbow, upper arm) holds the plate parallel to the column, the front one (plate,
levelling rod, wrist bracket, forearm) holds the bracket parallel to the plate.

Dimensions, masses (843 kg with the base), torques, speeds, friction and reductions are ESTIMATES
for the class of an ABB IRB 460 or KUKA KR 40 PA, not data of a maker: shoulder axis 0.26 m in
front of the yaw axis and 0.75 m up, upper arm 0.95 m, forearm 1.05 m, reach about 2.4 m.
Inertias: each link's mass spread evenly over its drawn solids.

At q = 0 the upper arm is upright and the forearm level. A parallelogram is singular where it is
flat: the limit of forearm_hinge (forearm against upper arm) keeps the drive linkage away from
that, those of shoulder and elbow the levelling linkages. tool0 lies on the flange, z downward."""


def palletizer() -> Robot:
    """Four-axis palletizing robot whose wrist is kept level by parallelograms."""
    return Robot("palletizer", _PALLETIZER, _links(), _joints(), _loops())


def _links() -> list[Link]:
    """Links, with the estimated mass of each."""
    return [
        _base(),
        _column(),
        _upper_arm(),
        _forearm(),
        _bracket(),
        Link("flange", (drum(0.09, 0.06, (0, 0, -0.03), "z", "steel"),), mass=9.0),
        Link("tool0"),
        Link(
            "crank",
            (
                drum(0.10, 0.09, (0, 0, 0), "y", "blue"),
                beam((0, 0, 0), (-CRANK, 0, 0), (0.07, 0.12), "blue"),
                drum(0.06, 0.09, (-CRANK, 0, 0), "y", "blue"),
            ),
            mass=32.0,
        ),
        Link("drive_rod", (pipe((0, 0, 0), (0, 0, ARM), 0.032, "steel"),), mass=22.0),
        Link("rear_rod", (pipe((0, 0, 0), (0, 0, ARM), 0.020, "steel"),), mass=9.0),
        _elbow_plate(),
        Link("front_rod", (pipe((0, 0, 0), (FOREARM, 0, 0), 0.020, "steel"),), mass=10.0),
    ]


def _base() -> Link:
    solids = (
        box((0.80, 0.70, 0.05), (0, 0, 0.025), "graphite"),
        drum(0.30, 0.27, (0, 0, 0.185), "z", "graphite"),
        box((0.22, 0.40, 0.20), (-0.32, 0, 0.15), "graphite"),
    )
    return Link("base", solids, mass=225.0)


def _column() -> Link:
    x, _, z = SHOULDER
    lug = (x + REAR[0], LAYER + 0.02, z + REAR[2])
    cheeks = [box((0.44, 0.06, 0.44), (0.18, side * 0.25, 0.30), "orange") for side in (-1, 1)]
    motors = [drum(0.11, 0.22, (x, side * 0.39, z), "y", "graphite") for side in (-1, 1)]
    solids = (
        drum(0.31, 0.09, (0, 0, 0.045), "z", "orange"),
        *cheeks,
        box((0.10, 0.44, 0.20), (-0.09, 0, 0.17), "orange"),
        *motors,
        drum(0.10, 0.26, (-0.22, 0, 0.20), "z", "graphite"),
        beam((0.0, LAYER + 0.06, 0.40), (lug[0], LAYER + 0.06, lug[2]), (0.05, 0.10), "orange"),
        drum(0.028, 0.09, lug, "y", "steel"),
    )
    return Link("column", solids, mass=265.0)


def _upper_arm() -> Link:
    cheeks = [
        beam((0, side * 0.11, 0), (0, side * 0.11, ARM), (0.05, 0.17), "orange") for side in (-1, 1)
    ]
    solids = (
        *cheeks,
        *(drum(0.13, 0.05, (0, side * 0.11, 0), "y", "orange") for side in (-1, 1)),
        *(drum(0.105, 0.05, (0, side * 0.11, ARM), "y", "orange") for side in (-1, 1)),
        box((0.10, 0.17, 0.30), (0.03, 0, 0.48), "orange"),
        drum(0.05, 0.30, (0, 0, ARM), "y", "steel"),
    )
    return Link("upper_arm", solids, mass=120.0)


def _forearm() -> Link:
    solids = (
        drum(0.10, 0.13, (0, 0, 0), "y", "amber"),
        beam((-CRANK, 0, 0), (0.35, 0, 0), (0.12, 0.16), "amber"),
        beam((0.35, 0, 0), (FOREARM, 0, 0), (0.11, 0.12), "amber"),
        drum(0.055, 0.13, (-CRANK, 0, 0), "y", "steel"),
        drum(0.075, 0.12, (FOREARM, 0, 0), "y", "amber"),
    )
    return Link("forearm", solids, mass=92.0)


def _bracket() -> Link:
    tip = (FRONT[0], LAYER - 0.01, FRONT[2])
    cheeks = [
        beam((0, side * 0.085, 0), (0.20, side * 0.085, -0.06), (0.03, 0.13), "blue")
        for side in (-1, 1)
    ]
    solids = (
        *cheeks,
        drum(0.04, 0.24, (0, 0, 0), "y", "steel"),
        drum(0.085, 0.14, (0.20, 0, -0.09), "z", "blue"),
        drum(0.070, 0.18, (0.20, 0, 0.07), "z", "graphite"),
        beam((0, LAYER - 0.045, 0), (tip[0], LAYER - 0.045, tip[2]), (0.03, 0.06), "blue"),
        drum(0.024, 0.07, tip, "y", "steel"),
    )
    return Link("wrist_bracket", solids, mass=45.0)


def _elbow_plate() -> Link:
    """Triangle from the elbow to the ends of both levelling rods."""
    sides = (((0, 0, 0), REAR), ((0, 0, 0), FRONT), (REAR, FRONT))
    solids = (
        *(beam(start, end, (0.025, 0.06), "green") for start, end in sides),
        *(drum(0.03, 0.06, point, "y", "steel") for point in ((0.0, 0.0, 0.0), REAR, FRONT)),
    )
    return Link("elbow_plate", solids, mass=14.0)


def _joints() -> list[Joint]:
    """The tree: the motors, then the hinges of the arm and of the rods."""
    wrist: Vector = (FOREARM, 0, 0)
    elbow: Vector = (0, 0, ARM)
    rear: Vector = (SHOULDER[0] + REAR[0], LAYER, SHOULDER[2] + REAR[2])
    crank_tip: Vector = (-CRANK, 0, 0)
    rows: list[tuple[str, str, str, Vector, Vector, tuple[float, float], float, float]] = [
        # name, parent, child, position, axis, range [deg], velocity [deg/s], effort [N m]
        ("base_yaw", "base", "column", (0, 0, 0.32), (0, 0, 1), (-165, 165), 145, 5500),
        ("shoulder", "column", "upper_arm", SHOULDER, Y, (-40, 80), 110, 7000),
        ("elbow", "column", "crank", SHOULDER, Y, (-20, 80), 120, 5500),
        ("wrist", "wrist_bracket", "flange", (0.20, 0, -0.16), (0, 0, -1), (-300, 300), 400, 450),
        ("forearm_hinge", "upper_arm", "forearm", elbow, Y, (-75, 75), 250, 0),
        ("bracket_hinge", "forearm", "wrist_bracket", wrist, Y, (-85, 30), 250, 0),
        ("drive_rod_hinge", "crank", "drive_rod", crank_tip, Y, (-75, 75), 250, 0),
        ("rear_rod_hinge", "column", "rear_rod", rear, Y, (-45, 85), 250, 0),
        ("plate_hinge", "upper_arm", "elbow_plate", _aside(elbow), Y, (-85, 45), 250, 0),
        ("front_rod_hinge", "elbow_plate", "front_rod", FRONT, Y, (-25, 85), 250, 0),
    ]
    # Reduction, damping and dry friction of the four motors.
    motors = {
        "base_yaw": (160.0, 60.0, 90.0),
        "shoulder": (180.0, 80.0, 110.0),
        "elbow": (170.0, 70.0, 90.0),
        "wrist": (75.0, 2.5, 6.0),
    }
    joints = []
    for name, parent, child, xyz, axis, reach, speed, effort in rows:
        limits = (reach[0] * DEGREE, reach[1] * DEGREE)
        joint = hinge(name, parent, child, xyz, axis, limits, speed * DEGREE, effort)
        joints.append(joint.driven(*motors[name]) if name in motors else joint)
    tool = Joint("flange_tool0", "fixed", "flange", "tool0", (0, 0, -0.06), (math.pi, 0, 0))
    return [*joints, tool]


def _loops() -> list[LoopJoint]:
    """One hinge per parallelogram."""
    up: Vector = (0, 0, ARM)
    lever: Vector = (-CRANK, 0, 0)
    rod_tip: Vector = (FOREARM, 0, 0)
    return [
        LoopJoint("drive_loop", "revolute", "drive_rod", up, "forearm", lever, axis=Y),
        LoopJoint("rear_level_loop", "revolute", "rear_rod", up, "elbow_plate", REAR, axis=Y),
        LoopJoint(
            "front_level_loop",
            "revolute",
            "front_rod",
            rod_tip,
            "wrist_bracket",
            _aside(FRONT),
            axis=Y,
        ),
    ]
