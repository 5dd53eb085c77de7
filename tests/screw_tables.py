"""Screw tables of a few lines: bodies of point masses, joints, limits; no test lives here."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

import pinloop as pl
from pinloop.model.description import GROUND, Body, constant

Array = NDArray[np.float64]
Table = dict[str, Any]


def mass_points(name: str) -> tuple[Array, Array]:
    """Masses [kg] and positions [m] of eight points that stand for the body called ``name``."""
    rng = np.random.default_rng(crc32(name.encode()))
    return rng.uniform(0.05, 0.3, 8), rng.uniform(-0.4, 0.6, (8, 3))


def body(name: str) -> Table:
    """Entry of the body made of `mass_points`."""
    masses, points = mass_points(name)
    com = masses @ points / masses.sum()
    inertia = sum(
        m * (r @ r * np.eye(3) - np.outer(r, r)) for m, r in zip(masses, points - com, strict=True)
    )
    return {"name": name, "mass": masses.sum(), "com": com, "inertia": inertia}


def described(name: str) -> Body:
    """The same body for a description of its own."""
    entry = body(name)
    return Body(name, float(entry["mass"]), constant(entry["com"]), constant(entry["inertia"]))


def joint(name: str, pair: str, parent: str, child: str, *where: Any, **more: Any) -> Table:
    """Entry of a joint; ``where`` is its point and its axis, as far as it has them."""
    entry = {"name": name, "pair": pair, "parent": parent, "child": child} | more
    return entry | dict(zip(("point", "axis"), where, strict=False))


def table(name: str, *joints: Table, **more: Any) -> Table:
    """Table of all joints; the bodies are made of `mass_points`."""
    names = dict.fromkeys(
        end for entry in joints for end in (entry["parent"], entry["child"]) if end != GROUND
    )
    bodies = [body(end) for end in names]
    return {"name": name, "bodies": bodies, "joints": list(joints)} | more


def build(entries: Table) -> pl.Mechanism:
    return pl.from_screws(entries)


def limited(entries: Table, **ranges: tuple[float, float]) -> pl.Mechanism:
    """Build a table with position limits (lower, upper) at the named joints."""
    for entry in entries["joints"]:
        if entry["name"] in ranges:
            lower, upper = ranges[entry["name"]]
            entry["limits"] = {"lower": lower, "upper": upper}
    return build(entries)


def scaled(entries: Table, scale: float) -> Table:
    """The table with all points of its joints moved away from the origin by a factor."""
    for entry in entries["joints"]:
        entry["point"] = scale * np.asarray(entry["point"], float)
    return entries
