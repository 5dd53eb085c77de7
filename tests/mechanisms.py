"""Small mechanisms as screw tables, and closed forms of some of them; no test lives here.

Axes and points are those of the assembled reference configuration. Planar mechanisms lie in the xz
plane and turn about -y, so that a positive angle takes x towards z and gravity acts in the plane.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin

import pinloop as pl
import pinloop.model.mechanism
from pinloop.model.description import GROUND

from .screw_tables import Array, Table, build, joint, table

X, Y, Z = np.eye(3)
TURN = -Y
"""Axis of planar mechanisms."""


def planar(angle: float, length: float = 1.0) -> Array:
    """Vector in the xz plane."""
    return length * np.array([np.cos(angle), 0.0, np.sin(angle)])


# -- planar loops and their closed forms ----------------------------------------------------

GROUND_BAR, CRANK, COUPLER, ROCKER = 1.0, 0.3, 0.9, 0.7
"""Bars of the four-bar [m]: the crank turns fully (Grashof)."""
START = 0.8
"""Crank angle of the four-bar and the slider-crank in their reference configuration [rad]."""


def four_bar_angles(crank: float, branch: int = 1) -> tuple[float, float]:
    """Angles of coupler and rocker against x, by the law of cosines.

    Args:
        crank: angle of the crank [rad].
        branch: +1 if coupler and rocker meet on the left of the line from crank end to rocker
            pivot, else -1.
    """
    tip, pivot = planar(crank, CRANK), GROUND_BAR * X
    away = pivot - tip
    diagonal = np.linalg.norm(away)
    direction = np.arctan2(away[2], away[0])
    cosine = (COUPLER**2 + diagonal**2 - ROCKER**2) / (2 * COUPLER * diagonal)
    coupler = direction + branch * np.arccos(cosine)
    meeting = tip + planar(coupler, COUPLER) - pivot
    return float(coupler), float(np.arctan2(meeting[2], meeting[0]))


def four_bar_q(crank: float, branch: int = 1) -> dict[str, float]:
    """Joint coordinates of `four_bar` when its crank stands at ``crank`` against x."""
    coupler0, rocker0 = four_bar_angles(START)
    coupler, rocker = four_bar_angles(crank, branch)
    return {
        "crank": crank - START,
        "elbow": (coupler - coupler0) - (crank - START),
        "rocker": rocker - rocker0,
    }


def four_bar(**more: Any) -> Table:
    coupler, _ = four_bar_angles(START)
    tip = planar(START, CRANK)
    return table(
        "four-bar",
        joint("crank", "revolute", GROUND, "crank", [0, 0, 0], TURN),
        joint("elbow", "revolute", "crank", "coupler", tip, TURN),
        joint("rocker", "revolute", GROUND, "rocker", GROUND_BAR * X, TURN),
        joint("close", "revolute", "coupler", "rocker", tip + planar(coupler, COUPLER), TURN,
              cut=True),
        **more,
    )  # fmt: skip


def stretched_four_bar(extra: float) -> pl.Mechanism:
    """`four_bar` with a coupler that is longer by ``extra`` [m], as it were badly measured."""
    description = build(four_bar()).description
    *rest, close = description.joints
    coupler, _ = four_bar_angles(START)
    at = pin.SE3(np.eye(3), planar(coupler, extra)) * close.frame_parent
    joints = (*rest, replace(close, frame_parent=at))
    return pinloop.model.mechanism.build(replace(description, joints=joints))


def parallelogram() -> Table:
    up = planar(1.1, 0.4)
    return table(
        "parallelogram",
        joint("left", "revolute", GROUND, "left", [0, 0, 0], TURN),
        joint("top", "revolute", "left", "coupler", up, TURN),
        joint("right", "revolute", GROUND, "right", X, TURN),
        joint("close", "revolute", "coupler", "right", X + up, TURN, cut=True),
    )


def five_bar() -> Table:
    left, right = planar(2.0, 0.5), X + planar(1.0, 0.5)
    return table(
        "five-bar",
        joint("m1", "revolute", GROUND, "l1", [0, 0, 0], TURN),
        joint("e1", "revolute", "l1", "l2", left, TURN),
        joint("m2", "revolute", GROUND, "r1", X, TURN),
        joint("e2", "revolute", "r1", "r2", right, TURN),
        joint("close", "revolute", "l2", "r2", [0.5, 0, 1.1], TURN, cut=True),
    )


SHAFT, ROD = 0.3, 0.8
"""Crank and connecting rod of the slider-crank [m]."""


def slider_crank_q(crank: float, branch: int = 1) -> dict[str, float]:
    """Joint coordinates of `slider_crank` when its crank stands at ``crank`` against x."""

    def rod_and_slide(angle: float, branch: int) -> tuple[float, float]:
        rod = np.arcsin(-SHAFT * np.sin(angle) / ROD)
        rod = rod if branch > 0 else np.pi - rod
        return rod, SHAFT * np.cos(angle) + ROD * np.cos(rod)

    (rod0, slide0), (rod, slide) = rod_and_slide(START, 1), rod_and_slide(crank, branch)
    return {"crank": crank - START, "rod": (rod - rod0) - (crank - START), "slide": slide - slide0}


def slider_crank(**more: Any) -> Table:
    tip = planar(START, SHAFT)
    pin_point = [tip[0] + np.sqrt(ROD**2 - tip[2] ** 2), 0.0, 0.0]
    return table(
        "slider-crank",
        joint("crank", "revolute", GROUND, "crank", [0, 0, 0], TURN),
        joint("rod", "revolute", "crank", "rod", tip, TURN),
        joint("slide", "prismatic", GROUND, "piston", pin_point, X),
        joint("close", "revolute", "rod", "piston", pin_point, TURN, cut=True),
        **more,
    )


# -- spatial loops --------------------------------------------------------------------------


def spherical_four_bar(flat: bool = False) -> Table:
    """Four revolute axes through one point.

    Args:
        flat: start at a change point, with all axes in one plane: arcs of 60 + 40 = 30 + 70 deg.
    """
    if flat:
        axes = [np.array([np.cos(a), np.sin(a), 0]) for a in np.radians([0, -40, -10, 60])]
    else:
        axes = [np.array(a, float) for a in ([0, 0, 1], [0.6, 0.1, 1], [0.9, 1.0, 0.8], [0, 1, 1])]
    return table(
        "flat spherical four-bar" if flat else "spherical four-bar",
        joint("crank", "revolute", GROUND, "crank", [0, 0, 0], axes[0]),
        joint("elbow", "revolute", "crank", "coupler", [0, 0, 0], axes[1]),
        joint("rocker", "revolute", GROUND, "rocker", [0, 0, 0], axes[3]),
        joint("close", "revolute", "coupler", "rocker", 0.5 * axes[2], axes[2], cut=True),
    )


def rssr(**more: Any) -> Table:
    return table(
        "rssr",
        joint("crank", "revolute", GROUND, "crank", [0, 0, 0], TURN),
        joint("ball", "spherical", "crank", "coupler", [0.1, 0.1, 0.25]),
        joint("rocker", "revolute", GROUND, "rocker", [1.0, 0.3, 0], [1, 0.2, 0]),
        joint("close", "spherical", "coupler", "rocker", [1.1, 0.5, 0.7], cut=True),
        **more,
    )


def spinning_rods() -> Table:
    """One crank drives two rockers through two rods with ball ends, which may spin."""
    return table(
        "spinning rods",
        joint("crank", "revolute", GROUND, "crank", [0, 0, 0], TURN),
        joint("ball1", "spherical", "crank", "rod1", [0.2, 0.1, 0.2]),
        joint("ball2", "spherical", "crank", "rod2", [0.2, -0.1, 0.2]),
        joint("rocker1", "revolute", GROUND, "rocker1", [1, 0.2, 0], [1, 0.2, 0]),
        joint("rocker2", "revolute", GROUND, "rocker2", [1, -0.3, 0], [1, -0.4, 0]),
        joint("close1", "spherical", "rod1", "rocker1", [1.1, 0.5, 0.7], cut=True),
        joint("close2", "spherical", "rod2", "rocker2", [1.2, -0.5, 0.6], cut=True),
        actuated=["crank"],
    )


def bennett() -> Table:
    """Bennett's linkage: four skew axes, opposite links alike, ``sin(alpha)/a = sin(beta)/b``."""
    alpha, beta, a, first = 0.6, 1.3, 0.5, 0.9
    b = a * np.sin(beta) / np.sin(alpha)
    second = 2 * np.arctan(
        np.sin((beta + alpha) / 2) / np.sin((beta - alpha) / 2) / np.tan(first / 2)
    )
    frames = [pin.SE3.Identity()]
    links = [(first, a, alpha), (second, b, beta), (-first, a, alpha), (-second, b, beta)]
    for theta, length, twist in links:
        turn = pin.SE3(pin.exp3(theta * Z), np.zeros(3))
        frames.append(frames[-1] * turn * pin.SE3(pin.exp3(twist * X), length * X))
    assert frames[-1].isIdentity(1e-12), "these are not the dimensions of Bennett's linkage"
    axes = [(frame.translation, frame.rotation[:, 2]) for frame in frames]
    return table(
        "bennett",
        joint("j1", "revolute", GROUND, "one", *axes[0]),
        joint("j2", "revolute", "one", "two", *axes[1]),
        joint("j3", "revolute", "two", "three", *axes[2]),
        joint("j4", "revolute", "three", GROUND, *axes[3], cut=True),
    )


def sarrus() -> Table:
    """Two legs of three parallel hinges each, at right angles: the platform moves along z."""
    return table(
        "sarrus",
        joint("a1", "revolute", GROUND, "a_low", [0, 1, 0], X),
        joint("a2", "revolute", "a_low", "a_high", [0, 1.4, 0.3], X),
        joint("a3", "revolute", "a_high", "platform", [0, 1, 0.6], X),
        joint("b1", "revolute", GROUND, "b_low", [1, 0, 0], Y),
        joint("b2", "revolute", "b_low", "b_high", [1.4, 0, 0.3], Y),
        joint("b3", "revolute", "b_high", "platform", [1, 0, 0.6], Y, cut=True),
    )


PITCH = 0.02
"""Pitch of the screw jack [m/rad]."""


def screw_jack() -> Table:
    return table(
        "screw jack",
        joint("shaft", "revolute", GROUND, "shaft", [0.1, 0, 0], Z),
        joint("nut", "prismatic", GROUND, "nut", [0, 0, 0], Z),
        joint("thread", "helical", "shaft", "nut", [0.1, 0, 0], Z, pitch=PITCH, cut=True),
    )


BEND = 0.5
"""Angle between the shafts of the universal joints [rad]."""


def double_cardan() -> Table:
    """Parallel shafts along x and a middle shaft at the angle `BEND` to both, yokes in phase."""
    middle = planar(BEND)
    normal = np.cross(middle, Y)
    return table(
        "double cardan",
        joint("input", "revolute", GROUND, "input", [0, 0, 0], X),
        joint("u1", "universal", "input", "middle", [0, 0, 0], Y, axis2=normal),
        joint("output", "revolute", GROUND, "output", 0.6 * middle, X),
        joint("u2", "universal", "middle", "output", 0.6 * middle, normal, axis2=Y, cut=True),
    )


def tip_on_plane() -> Table:
    """Two links with ball joints; the tip of the second one stays on a slanted plane."""
    return table(
        "tip on plane",
        joint("shoulder", "spherical", GROUND, "upper", [0, 0, 1]),
        joint("elbow", "universal", "upper", "lower", [0.4, 0, 0.8], Y, axis2=X),
        joint("touch", "point_on_plane", GROUND, "lower", [0.7, 0.1, 0.1], [0.1, 0.2, 1],
              cut=True),
    )  # fmt: skip


def rod_pendulums() -> Table:
    """Two pendulums whose middles are a fixed distance apart."""
    return table(
        "rod pendulums",
        joint("left", "revolute", GROUND, "left", [0, 0, 1], Y),
        joint("right", "spherical", GROUND, "right", [0.6, 0.2, 1]),
        joint("tie", "rod", "left", "right", [0, 0, 0.5], point2=[0.7, 0.2, 0.4], cut=True),
    )


def ball_loop() -> Table:
    """A chain of two bodies on ball joints whose end slides on a line: a pendulum in a loop."""
    return table(
        "ball loop",
        joint("top", "spherical", GROUND, "upper", [0, 0, 1]),
        joint("middle", "spherical", "upper", "lower", [0.3, 0, 0.6]),
        joint("bottom", "point_on_line", GROUND, "lower", [0.5, 0.2, 0.2], [1, 0.5, -0.2],
              cut=True),
    )  # fmt: skip


def gear_pair() -> Table:
    return table(
        "gear pair",
        joint("pinion", "revolute", GROUND, "pinion", [0, 0, 0], Z),
        joint("wheel", "revolute", GROUND, "wheel", [0.5, 0, 0], Z),
        couplings=[{"name": "mesh", "joint": "wheel", "source": "pinion", "ratio": -0.25,
                    "offset": 0.3}],
    )  # fmt: skip


def door() -> Table:
    """One body on two hinges in line: a single coordinate, five rows, none of them needed."""
    return table(
        "door",
        joint("low", "revolute", GROUND, "leaf", [1, 0, 0], Z),
        joint("high", "revolute", GROUND, "leaf", [1, 0, 2], Z, cut=True),
    )


# -- trees ----------------------------------------------------------------------------------


def double_pendulum() -> Table:
    return table(
        "double pendulum",
        joint("upper", "spherical", GROUND, "upper", [0, 0, 1]),
        joint("lower", "spherical", "upper", "lower", [0.2, 0.1, 0.5]),
    )


TREE_PAIRS = (
    "fixed", "revolute", "prismatic", "helical", "cylindrical", "universal", "spherical", "planar",
    "planar_translation", "spatial_translation", "schoenflies", "free",
)  # fmt: skip
"""Every pair that can carry a body."""


def every_pair(reverse: bool = False) -> Table:
    """One chain with a joint of every pair, along skew axes.

    Args:
        reverse: describe every joint from the far body to the near one.
    """
    rng, joints, near = np.random.default_rng(7), [], GROUND
    for pair in TREE_PAIRS:
        far, axis = f"after_{pair}", rng.normal(size=3)
        more: Table = {"pitch": 0.07} if pair == "helical" else {}
        if pair == "universal":
            more["axis2"] = np.cross(axis, rng.normal(size=3))
        where = [rng.uniform(-1, 1, 3)]
        if pair not in ("fixed", "free", "spherical", "spatial_translation"):
            where.append(axis)
        ends = (far, near) if reverse else (near, far)
        joints.append(joint(pair, pair, *ends, *where, **more))
        near = far
    return table("every pair", *joints)


def planar_3r() -> Table:
    return table(
        "planar 3R",
        joint("j1", "revolute", GROUND, "a", [0, 0, 0], TURN),
        joint("j2", "revolute", "a", "b", [0.5, 0, 0], TURN),
        joint("j3", "revolute", "b", "c", [0.9, 0, 0], TURN),
    )


def arm_6r() -> Table:
    return table(
        "six-axis arm",
        joint("j1", "revolute", GROUND, "b1", [0, 0, 0], Z),
        joint("j2", "revolute", "b1", "b2", [0.1, 0, 0.4], Y),
        joint("j3", "revolute", "b2", "b3", [0.1, 0, 0.9], Y),
        joint("j4", "revolute", "b3", "b4", [0.3, 0, 1.0], X),
        joint("j5", "revolute", "b4", "b5", [0.6, 0, 1.0], Y),
        joint("j6", "revolute", "b5", "b6", [0.7, 0, 1.0], X),
    )
