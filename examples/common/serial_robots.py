"""Robots whose motors move joints through loops: an ankle, a knee, a wrist, a gripper.

With closed forms of what their motors do. Sizes are those of a small humanoid; masses are guesses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pinloop as pl

__all__ = ["ankle", "ankle_motors", "gripper", "knee", "knee_motor", "wrist"]

Array = NDArray[np.float64]
Point = Sequence[float]

CRANK, HEIGHTS, BACK, SIDES = 0.04, (0.26, 0.16), -0.02, (0.035, -0.035)
"""Ankle: length of the cranks, places of their pivots in the shank, left and right [m]."""
HEEL = -0.06
"""Ankle: how far behind it the rods hold the foot [m]."""
KNEE_CRANK, KNEE_PIVOT, KNEE_LEVER = 0.05, (-0.01, 0.3), (-0.045, 0.02)
"""Knee: crank, its pivot in the thigh, and where the rod holds the shank, along x and z [m]."""
BEVEL = 2.0
"""Wrist: turns of a motor per turn of the wrist while the other motor turns along."""


def _bar(name: str, start: Point, end: Point, mass: float) -> dict[str, Any]:
    """A slender body between two points."""
    middle, span = np.add(start, end) / 2, np.subtract(end, start)
    inertia = mass / 12 * (span @ span * np.eye(3) - np.outer(span, span)) + 1e-7 * np.eye(3)
    return {"name": name, "mass": mass, "com": middle, "inertia": inertia}


def _block(name: str, mass: float, com: Point, moments: Point) -> dict[str, Any]:
    """A body with the moments of inertia along the axes."""
    return {"name": name, "mass": mass, "com": com, "inertia": np.diag(moments)}


def _hinge(
    name: str, ends: str, point: Point, axis: Point, *, cut: bool = False, **limits: Any
) -> dict[str, Any]:
    """A hinge between the two bodies that are named."""
    parent, child = ends.split()
    joint = {"name": name, "pair": "revolute", "parent": parent, "child": child, "cut": cut}
    return joint | {"point": point, "axis": axis} | ({"limits": limits} if limits else {})


def _ball(name: str, ends: str, point: Point, *, cut: bool = False) -> dict[str, Any]:
    parent, child = ends.split()
    joint = {"name": name, "pair": "spherical", "parent": parent, "child": child, "cut": cut}
    return joint | {"point": point}


def ankle(gravity: float = 9.81) -> pl.Mechanism:
    """Two cranks in the shank, two rods with ball joints, an ankle of two hinges."""
    bodies = [
        _block("cross", 0.05, (0, 0, 0), (1e-5, 1e-5, 1e-5)),
        _block("foot", 0.8, (0.05, 0, -0.05), (0.001, 0.004, 0.0045)),
    ]
    joints = [
        _hinge("pitch", "ground cross", (0, 0, 0), (0, 1, 0), lower=-0.9, upper=0.6),
        _hinge("roll", "cross foot", (0, 0, 0), (1, 0, 0), lower=-0.4, upper=0.4),
    ]
    efforts, speeds = (40.0, 30.0), (12.0, 11.0)
    for k, side in enumerate(("left", "right")):
        pivot = (BACK, SIDES[k], HEIGHTS[k])
        crank, heel = (BACK - CRANK, SIDES[k], HEIGHTS[k]), (HEEL, SIDES[k], 0.0)
        bodies += [_bar(f"{side}_crank", pivot, crank, 0.1), _bar(f"{side}_rod", crank, heel, 0.08)]
        limits: dict[str, Any] = {"lower": -1.5, "upper": 1.5, "effort": efforts[k]}
        limits["velocity"] = speeds[k]
        joints += [
            _hinge(f"{side}_motor", f"ground {side}_crank", pivot, (0, 1, 0), **limits),
            _ball(f"{side}_knee", f"{side}_crank {side}_rod", crank),
            _ball(f"{side}_heel", f"{side}_rod foot", heel, cut=True),
        ]
    table = {"name": "ankle", "gravity": (0, 0, -gravity), "bodies": bodies, "joints": joints}
    return pl.from_screws(table | {"actuated": ["left_motor", "right_motor"]})


def _crank_angle(seen: Array, crank: float, rod: float) -> float:
    """Angle of a crank about y, pointing to -x at zero, whose rod ends at ``seen`` from the pivot.

    Its end is at ``c = r (-cos t, 0, sin t)``, and ``|s - c| = l`` is ``2 s.c = s.s + r^2 - l^2``:
    the cosine of t less the angle at which s is seen.
    """
    along, up = -2 * crank * seen[0], 2 * crank * seen[2]
    cosine = (seen @ seen + crank**2 - rod**2) / np.hypot(along, up)
    return float(np.arctan2(up, along) + np.arccos(cosine))


def ankle_motors(pitch: float, roll: float) -> Array:
    """Angles of both motors of `ankle` [rad]."""
    (cp, sp), (cr, sr) = ((np.cos(x), np.sin(x)) for x in (pitch, roll))
    turn = np.array([[cp, sp * sr, sp * cr], [0, cr, -sr], [-sp, cp * sr, cp * cr]])
    angles = []
    for side, height in zip(SIDES, HEIGHTS, strict=True):
        pivot, heel = np.array([BACK, side, height]), np.array([HEEL, side, 0.0])
        rod = float(np.linalg.norm(heel - pivot - [-CRANK, 0, 0]))
        angles.append(_crank_angle(turn @ heel - pivot, CRANK, rod))
    return np.array(angles)


def knee(highest: float = 0.9) -> pl.Mechanism:
    """A four-bar: a crank in the thigh pulls the shank by a rod."""
    (px, pz), (lx, lz) = KNEE_PIVOT, KNEE_LEVER
    pivot, crank, lever = (px, 0.0, pz), (px - KNEE_CRANK, 0.0, pz), (lx, 0.0, lz)
    limits: dict[str, Any] = {"lower": -2.5, "upper": 2.5, "effort": 60.0, "velocity": 15.0}
    table = {
        "name": "knee",
        "bodies": [
            _block("shank", 2.0, (0, 0, -0.15), (0.02, 0.02, 0.002)),
            _bar("crank", pivot, crank, 0.2),
            _bar("rod", crank, lever, 0.15),
        ],
        "joints": [
            _hinge("bend", "ground shank", (0, 0, 0), (0, 1, 0), lower=-0.3, upper=highest),
            _hinge("motor", "ground crank", pivot, (0, 1, 0), **limits),
            _hinge("crank_rod", "crank rod", crank, (0, 1, 0)),
            _hinge("rod_shank", "rod shank", lever, (0, 1, 0), cut=True),
        ],
        "actuated": ["motor"],
    }
    return pl.from_screws(table)


def knee_motor(bend: float) -> float:
    """Angle of the motor of `knee` [rad]."""
    (px, pz), (lx, lz) = KNEE_PIVOT, KNEE_LEVER
    pivot, lever = np.array([px, 0.0, pz]), np.array([lx, 0.0, lz])
    rod = float(np.linalg.norm(lever - pivot - [-KNEE_CRANK, 0, 0]))
    c, s = np.cos(bend), np.sin(bend)
    turned = np.array([c * lx + s * lz, 0.0, -s * lx + c * lz])
    return _crank_angle(turned - pivot, KNEE_CRANK, rod)


def wrist() -> pl.Mechanism:
    """Two motors on a bevel differential: together they bend the wrist, against each other turn."""
    limits: dict[str, Any] = {"lower": -4.0, "upper": 4.0, "effort": 3.0, "velocity": 20.0}
    motors = ("left_motor", "right_motor")
    table: dict[str, Any] = {
        "name": "wrist",
        "bodies": [
            _block("fork", 0.1, (0, 0, 0), (1e-4, 1e-4, 1e-4)),
            _block("hand", 0.4, (0.08, 0, 0), (3e-4, 6e-4, 6e-4)),
            *(_block(f"{name}_rotor", 0.1, (-0.1, 0, 0), (2e-5, 3e-5, 2e-5)) for name in motors),
        ],
        "joints": [
            _hinge("bend", "ground fork", (0, 0, 0), (0, 1, 0), lower=-1.0, upper=1.0),
            _hinge("turn", "fork hand", (0, 0, 0), (1, 0, 0), lower=-0.8, upper=0.8),
            *(_hinge(x, f"ground {x}_rotor", (-0.1, 0, 0), (0, 1, 0), **limits) for x in motors),
        ],
        "couplings": [
            {"name": f"{motor}_gear", "polynomials": {motor: [0, 1]} | rest}
            for motor, rest in zip(
                motors,
                (
                    {"bend": [0, -BEVEL], "turn": [0, -BEVEL]},
                    {"bend": [0, -BEVEL], "turn": [0, BEVEL]},
                ),
                strict=True,
            )
        ],
        "actuated": list(motors),
    }
    return pl.from_screws(table)


def gripper(*, parallel: bool = True) -> pl.Mechanism:
    """Two fingers of four bars and a gear between them, one motor in the left knuckle.

    Parallel bars keep the tips upright: their joints follow exactly. Others do it nearly.
    """
    bodies: list[dict[str, Any]] = []
    joints: list[dict[str, Any]] = []
    limits: dict[str, Any] = {"lower": -0.1, "upper": 0.7, "effort": 5.0, "velocity": 3.0}
    for side, sign in (("left", 1.0), ("right", -1.0)):
        root, tip = (0.03 * sign, 0, 0), (0.05 * sign, 0, 0.05)
        low, high = (0.01 * sign, 0, 0.01), (0.03 * sign, 0, 0.06 if parallel else 0.058)
        bodies += [
            _bar(f"{side}_bar", root, tip, 0.05),
            _bar(f"{side}_finger", tip, (0.04 * sign, 0, 0.1), 0.06),
            _bar(f"{side}_rod", low, high, 0.03),
        ]
        axis = (0, sign, 0)
        joints += [
            _hinge(f"{side}_knuckle", f"ground {side}_bar", root, axis, **limits),
            _hinge(f"{side}_tip", f"{side}_bar {side}_finger", tip, axis),
            _hinge(f"{side}_root", f"ground {side}_rod", low, axis),
            _hinge(f"{side}_end", f"{side}_rod {side}_finger", high, axis, cut=True),
        ]
    gear = {"name": "gear", "joint": "right_knuckle", "source": "left_knuckle", "ratio": 1.0}
    table = {"name": "gripper", "bodies": bodies, "joints": joints, "couplings": [gear]}
    return pl.from_screws(table | {"actuated": ["left_knuckle"]})
