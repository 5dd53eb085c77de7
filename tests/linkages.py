"""More closed linkages as screw tables; no test lives here.

Like `mechanisms`: axes and points in the assembled reference configuration, planar linkages in the
xz plane.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import pinocchio as pin

from pinloop.model.description import GROUND

from .mechanisms import TURN, X, Y, Z, planar
from .screw_tables import Array, Table, joint, table

# -- planar ---------------------------------------------------------------------------------


def planar_3rrr() -> Table:
    """Three legs of three parallel hinges: the platform has all three freedoms of the plane."""
    entries = []
    for leg in range(3):
        angle = 2 * np.pi / 3 * leg + 0.2
        foot, tip = planar(angle, 1.0), planar(angle + 0.3, 0.3)
        knee = (foot + tip) / 2 + planar(angle + 1.3, 0.3)
        cut = {"cut": True} if leg else {}
        entries += [
            joint(f"a{leg}", "revolute", GROUND, f"low{leg}", foot, TURN),
            joint(f"b{leg}", "revolute", f"low{leg}", f"high{leg}", knee, TURN),
            joint(f"c{leg}", "revolute", f"high{leg}", "platform", tip, TURN, **cut),
        ]
    return table("planar 3-RRR", *entries)


def hoberman(count: int = 4) -> Table:
    """Ring of scissor pairs with angulated bars, which opens and shuts with one freedom.

    On the ray at angle ``k phi`` sit an outer and an inner hinge, at radii 1 and 0.5. Between two
    rays two bars cross at a hinge on the bisector: one from outer to inner hinge, one from inner to
    outer. A bar with equal arms and the kink ``pi - phi`` keeps its ends on the rays.
    """
    sector = 2 * np.pi / count
    middle = 0.75 / np.cos(sector / 2)
    entries = []
    for k in range(count):
        before = (k - 1) % count
        hinges = [
            (f"mid{k}", f"a{k}", f"b{k}", planar((k + 0.5) * sector, middle)),
            (f"out{k}", f"a{k}", f"b{before}", planar(k * sector, 1.0)),
            (f"in{k}", f"b{k}", f"a{before}", planar(k * sector, 0.5)),
        ]
        for name, *ends, point in hinges:
            ends = [GROUND if end == "a0" else end for end in ends]
            entries.append(joint(name, "revolute", *ends, point, TURN))
    return table(f"hoberman {count}", *entries)


LEAN, SIDE = 1.1, 0.5
"""Angle [rad] and length [m] of the cranks of `triple_parallelogram`."""


def triple_parallelogram(*, seen_from_crank: bool = True, in_line: bool = True) -> Table:
    """Three equal cranks carry one coupler (paper 5, figure 3).

    Args:
        seen_from_crank: frame B of the cut hinges is on the crank, else on the coupler.
        in_line: the three pivots lie on one line.
    """
    up = planar(LEAN, SIDE)
    pivots = [0 * X, X, 2 * X if in_line else X + planar(0.9, 0.6)]
    joints = []
    for k, pivot in enumerate(pivots):
        cut: Table = {"cut": True} if k else {}
        joints += [
            joint(f"low{k}", "revolute", GROUND, f"crank{k}", pivot, TURN),
            joint(f"top{k}", "revolute", "coupler", f"crank{k}", pivot + up, TURN, **cut),
        ]
    entries = table("triple parallelogram", *joints)
    return entries if seen_from_crank else turned_over(entries, "top1", "top2")


def windows(count: int, *, on_cart: bool = False) -> Table:
    """Parallelograms in a row, that share their upright bars; all bars are rods of 1 m and 1 kg.

    Where they lie flat, each of them can go on as a parallelogram or as an antiparallelogram.

    Args:
        count: number of parallelograms.
        on_cart: they stand on a cart of 2 kg that slides along x.
    """
    ground = "cart" if on_cart else GROUND
    joints = [joint("slide", "prismatic", GROUND, "cart", 0 * X, X)] if on_cart else []
    bodies = [{"name": "cart", "mass": 2.0, "com": X, "inertia": np.eye(3)}] if on_cart else []
    for k in range(count + 1):
        joints.append(joint(f"low{k}", "revolute", ground, f"bar{k}", k * X, TURN))
        bodies.append(rod(f"bar{k}", k * X, k * X + Z))
    for k in range(count):
        joints += [
            joint(f"left{k}", "revolute", f"bar{k}", f"top{k}", k * X + Z, TURN),
            joint(f"right{k}", "revolute", f"top{k}", f"bar{k + 1}", (k + 1) * X + Z, TURN,
                  cut=True),
        ]  # fmt: skip
        bodies.append(rod(f"top{k}", k * X + Z, (k + 1) * X + Z))
    return table(f"windows {count}", *joints) | {"bodies": bodies}


def rod(name: str, start: Array, end: Array) -> Table:
    """A thin rod of 1 kg."""
    along = end - start
    inertia = (along @ along * np.eye(3) - np.outer(along, along)) / 12 + 1e-9 * np.eye(3)
    return {"name": name, "mass": 1.0, "com": (start + end) / 2, "inertia": inertia}


def scotch_yoke() -> Table:
    tip = planar(0.7, 0.3)
    return table(
        "scotch yoke",
        joint("crank", "revolute", GROUND, "crank", [0, 0, 0], TURN),
        joint("pin", "revolute", "crank", "block", tip, TURN),
        joint("yoke", "prismatic", GROUND, "yoke", tip, X),
        joint("slot", "prismatic", "block", "yoke", tip, Z, cut=True),
    )


def oldham() -> Table:
    """Two parallel shafts joined by a cross that slides in both."""
    return table(
        "oldham",
        joint("drive", "revolute", GROUND, "drive", [0, 0, 0], Z),
        joint("driven", "revolute", GROUND, "driven", [0.1, 0, 0], Z),
        joint("tongue", "prismatic", "drive", "cross", [0, 0, 0], X),
        joint("groove", "prismatic", "cross", "driven", [0, 0, 0], Y, cut=True),
    )


def four_bar_with(pair: str) -> Table:
    """Planar four-bar whose last joint is another pair, its axis normal to the plane."""
    more: Table = {"axis2": X} if pair == "universal" else {}
    if pair not in ("spherical", "spatial_translation", "fixed"):
        more["axis"] = TURN
    if pair in ("revolute", "cylindrical", "spherical", "universal"):
        more["point"] = planar(0.9, 0.8)
    return table(
        f"four-bar with {pair}",
        joint("crank", "revolute", GROUND, "crank", [0, 0, 0], TURN),
        joint("elbow", "revolute", "crank", "coupler", planar(1.9, 0.4), TURN),
        joint("rocker", "revolute", GROUND, "rocker", X, TURN),
        joint("close", pair, "coupler", "rocker", cut=True, **more),
    )


def collinear_three_bar() -> Table:
    """Two bars as long together as the ground: it does not move, but for a first instant."""
    return table(
        "collinear three-bar",
        joint("left", "revolute", GROUND, "left", [0, 0, 0], TURN),
        joint("right", "revolute", GROUND, "right", X, TURN),
        joint("hold", "revolute", "left", "right", 0.4 * X, TURN, cut=True),
    )


# -- inside one group of motions ------------------------------------------------------------


def chain(name: str, *kinds: tuple[str, Any, Any, float | None]) -> Table:
    """A single loop from ground to ground; the last joint is cut.

    Args:
        name: name of the linkage.
        kinds: per joint its pair, point, axis and pitch.
    """
    bodies = [GROUND, *(f"b{k}" for k in range(1, len(kinds))), GROUND]
    entries = []
    for k, (pair, point, axis, pitch) in enumerate(kinds):
        more: Table = {} if pitch is None else {"pitch": pitch}
        if k == len(kinds) - 1:
            more["cut"] = True
        entries.append(joint(f"j{k}", pair, bodies[k], bodies[k + 1], point, axis, **more))
    return table(name, *entries)


def wedge() -> Table:
    return chain("wedge", *(("prismatic", [0, 0, 0], planar(a), None) for a in (0.0, 1.0, 2.2)))


def translator() -> Table:
    axes = [X, Y, Z, np.array([1.0, 2.0, -1.0])]
    return chain("translator", *(("prismatic", [0, 0, 0], axis, None) for axis in axes))


def screw_four_bar() -> Table:
    """Four parallel screws of one pitch."""
    points: list[list[float]] = [[0, 0, 0], [0.3, 0.1, 0], [0.4, 0.9, 0], [1.0, 0.2, 0]]
    return chain("screw four-bar", *(("helical", point, Z, 0.05) for point in points))


def differential_screw() -> Table:
    return chain(
        "differential screw",
        ("helical", [1, 2, 0], Z, 0.03),
        ("prismatic", [0, 0, 0], Z, None),
        ("helical", [1, 2, 0], Z, 0.05),
    )


def schoenflies_loop() -> Table:
    return chain(
        "schoenflies loop",
        ("revolute", [0, 0, 0], Z, None),
        ("revolute", [1, 0, 0], Z, None),
        ("prismatic", [0, 0, 0], np.array([0.2, 0.3, 1.0]), None),
        ("helical", [1, 1, 0], Z, 0.1),
        ("revolute", [0, 1, 0], Z, None),
    )


def plunger() -> Table:
    """A shaft and a slide in line, joined by a cylindrical pair that asks for nothing more."""
    return table(
        "plunger",
        joint("turn", "revolute", GROUND, "shaft", [0.2, 0, 0], Z),
        joint("slide", "prismatic", GROUND, "slide", [0.2, 0, 0], Z),
        joint("sleeve", "cylindrical", "shaft", "slide", [0.2, 0, 0.5], Z, cut=True),
    )


def spherical_five_bar() -> Table:
    axes = [[0, 0, 1], [0.6, 0.1, 1], [0.9, 1.0, 0.8], [0.2, 1, 0.7], [0, 1, -0.1]]
    return chain("spherical five-bar", *(("revolute", [1, 2, 3], np.array(a), None) for a in axes))


# -- spatial --------------------------------------------------------------------------------


def cardan(cut: str = "output") -> Table:
    """One universal joint between two shafts that meet in it."""
    bent = np.array([np.cos(0.6), 0.0, np.sin(0.6)])
    entries = table(
        "cardan",
        joint("input", "revolute", GROUND, "input", [-1, 0, 0], X),
        joint("cross", "universal", "input", "output", [0, 0, 0], Y, axis2=np.cross(bent, Y)),
        joint("output", "revolute", GROUND, "output", bent, bent),
    )
    return marked(entries, cut)


def bent_double_cardan() -> Table:
    """Two universal joints between two shafts that meet, the middle shaft symmetric to them."""
    into, out = planar(0.4), planar(-0.4)
    return table(
        "bent double cardan",
        joint("input", "revolute", GROUND, "input", [0, 0, 0], into),
        joint("u1", "universal", "input", "middle", [0, 0, 0], Y, axis2=Z),
        joint("output", "revolute", GROUND, "output", X, out),
        joint("u2", "universal", "middle", "output", X, Z, axis2=Y, cut=True),
    )


def prrr3(legs: str = "xyz") -> Table:
    """Legs of a slide and three hinges parallel to it, along the named axes (paper 5, figure 7).

    Further legs along an axis stand beside the first one.
    """
    entries = []
    for number, axis_name in enumerate(legs):
        before = legs[:number].count(axis_name)
        leg, turns = axis_name + "'" * before, "xyz".index(axis_name)
        axis, foot = np.roll(X, turns), np.roll([0.2 * before, -0.66, 0.0], turns)
        knee, tip = foot + np.roll([0, 0.3, 0.4], turns), foot + np.roll([0, 0.6, 0], turns)
        cut = {"cut": True} if number else {}
        entries += [
            joint(f"slide_{leg}", "prismatic", GROUND, f"carriage_{leg}", foot, axis),
            joint(f"hinge_{leg}1", "revolute", f"carriage_{leg}", f"lower_{leg}", foot, axis),
            joint(f"hinge_{leg}2", "revolute", f"lower_{leg}", f"upper_{leg}", knee, axis),
            joint(f"hinge_{leg}3", "revolute", f"upper_{leg}", "platform", tip, axis, **cut),
        ]
    return table(f"{len(legs)}-PRRR", *entries)


def universal_delta() -> Table:
    """Delta robot whose twelve rod ends are universal joints: the rods cannot spin."""
    entries = []
    for arm in range(3):
        azimuth = 2 * np.pi / 3 * arm
        out = np.array([np.cos(azimuth), np.sin(azimuth), 0.0])
        along = np.array([-out[1], out[0], 0.0])
        elbow = 0.2 * out + 0.35 * (np.cos(0.3) * out - np.sin(0.3) * Z)
        wrist = 0.06 * out - 0.75 * Z
        normal = np.cross(along, wrist - elbow)
        entries.append(joint(f"arm{arm}", "revolute", GROUND, f"arm{arm}", 0.2 * out, along))
        for side, offset in (("a", -0.05 * along), ("b", 0.05 * along)):
            rod = f"rod{arm}{side}"
            cut = {} if rod == "rod0a" else {"cut": True}
            top, tip = elbow + offset, wrist + offset
            entries += [
                joint(f"top_{rod}", "universal", f"arm{arm}", rod, top, along, axis2=normal),
                joint(f"tip_{rod}", "universal", rod, "platform", tip, normal, axis2=along, **cut),
            ]
    return table("universal delta", *entries)


def upu(count: int, *, upright: bool = False) -> Table:
    """Legs of universal joint, slide, universal joint with parallel axes: the platform shifts.

    With the outer axes ``upright`` it also turns about them.
    """
    entries = []
    for leg in range(count):
        azimuth = 2 * np.pi / count * leg + (0.1, 0.4, -0.2, 0.3)[leg]
        out = np.array([np.cos(azimuth), np.sin(azimuth), 0.0])
        along = Z if upright else np.array([-out[1], out[0], 0.0])
        foot, top = out, 0.5 * out + np.array([0.1, 0.05, 0.8])
        inner = np.cross(along, top - foot)
        cut = {"cut": True} if leg else {}
        entries += [
            joint(f"foot{leg}", "universal", GROUND, f"low{leg}", foot, along, axis2=inner),
            joint(f"slide{leg}", "prismatic", f"low{leg}", f"high{leg}", foot, top - foot),
            joint(f"top{leg}", "universal", f"high{leg}", "body", top, inner, axis2=along, **cut),
        ]
    return table(f"{count}-UPU", *entries)


def bennett_axes(a: float, alpha: float, b: float, beta: float, first: float) -> list[pin.SE3]:
    """Frames of the axes 0 to 3 of Bennett's linkage, seen from the link that joins 3 to 0."""
    half = np.tan(first / 2)
    second = 2 * np.arctan(np.sin((beta + alpha) / 2) / np.sin((beta - alpha) / 2) / half)
    frames = [pin.SE3.Identity()]
    for theta, length, twist in [(first, a, alpha), (second, b, beta), (-first, a, alpha)]:
        turn = pin.SE3(pin.exp3(theta * Z), np.zeros(3))
        frames.append(frames[-1] * turn * pin.SE3(pin.exp3(twist * X), length * X))
    return frames


def goldberg(
    lengths: tuple[float, float] = (0.5, 0.7), turns: tuple[float, float] = (0.9, 1.6)
) -> Table:
    """Goldberg's five-bar: two linkages of Bennett with a link in common, which is then left out.

    They share axes 0 and 3; at axis 0 the links of both are welded together.
    """
    b, beta = 0.8, 1.2
    first, second = (
        bennett_axes(a, float(np.arcsin(a * np.sin(beta) / b)), b, beta, theta)
        for a, theta in zip(lengths, turns, strict=True)
    )
    axes = [first[3], first[2], first[1], second[1], second[2]]
    return chain(
        "goldberg", *(("revolute", axis.translation, axis.rotation[:, 2], None) for axis in axes)
    )


def floating_four_bar() -> Table:
    """A four-bar on a body that floats: its loop does not pass through the ground."""
    return table(
        "floating four-bar",
        joint("float", "free", GROUND, "base"),
        joint("crank", "revolute", "base", "crank", [0, 0, 0], TURN),
        joint("elbow", "revolute", "crank", "coupler", planar(1.9, 0.4), TURN),
        joint("rocker", "revolute", "base", "rocker", X, TURN),
        joint("close", "revolute", "coupler", "rocker", planar(0.9, 0.8), TURN, cut=True),
    )


def screw_trap() -> Table:
    """A nut on a thread, held by a rod and kept from turning: closed at 0 and after a whole turn.

    With pitch p, radius 1 and the rod from the angle 0 to the angle ``a`` at height ``-pi p``, the
    squared length ``2 - 2 cos(t + a) + (p t - pi p)^2`` of the rod is the same at t = 0 and 2 pi
    if the thread turns freely; with ``sin a = -pi p^2`` its slope is zero at 2 pi, not at 0.
    """
    pitch = 0.2
    angle = np.arcsin(-np.pi * pitch**2)
    top = np.array([np.cos(angle), np.sin(angle), -np.pi * pitch])
    return table(
        "screw trap",
        joint("thread", "helical", GROUND, "nut", [0, 0, 0], Z, pitch=pitch),
        joint("foot", "spherical", GROUND, "rod", X),
        joint("top", "spherical", "rod", "nut", top, cut=True),
        joint("guide", "spatial_translation", GROUND, "nut", cut=True),
    )


# -- changed tables -------------------------------------------------------------------------


def changed(entries: Table, *names: str, **values: object) -> Table:
    """The table with some entries of the named joints (all, if none is named) set anew."""
    entries = deepcopy(entries)
    for entry in entries["joints"]:
        if not names or entry["name"] in names:
            entry.update(values)
    return entries


def marked(entries: Table, *cut: str) -> Table:
    """The table with other joints cut."""
    return changed(changed(entries, cut=False), *cut, cut=True)


def turned_over(entries: Table, *names: str) -> Table:
    """The table with parent and child of the named joints exchanged (pairs that allow it)."""
    entries = deepcopy(entries)
    for entry in entries["joints"]:
        if entry["name"] in names:
            entry["parent"], entry["child"] = entry["child"], entry["parent"]
    return entries


def moved(entries: Table, placement: pin.SE3, size: float = 1.0) -> Table:
    """The table grown by ``size`` about the origin, then moved."""
    entries = deepcopy(entries)
    for entry in entries["joints"]:
        for key in ("point", "point2"):
            if key in entry:
                entry[key] = placement.act(size * np.asarray(entry[key], float))
        for key in ("axis", "axis2"):
            if key in entry:
                entry[key] = placement.rotation @ np.asarray(entry[key], float)
        if "pitch" in entry:
            entry["pitch"] *= size
    return entries


def together(name: str, *tables: Table) -> Table:
    """One table of several, which may share bodies."""
    joints = [entry for entries in tables for entry in entries["joints"]]
    return table(name, *deepcopy(joints))
