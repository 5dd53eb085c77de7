"""Closed linkages out of a random generator, as screw tables; no test lives here.

All are assembled in the reference configuration, since a table says nothing else. Axes are often
parallel and often meet, so that loops have much in common.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

from pinloop.model.description import GROUND

from .linkages import bennett_axes, chain, goldberg
from .mechanisms import X, Z
from .screw_tables import Array, Table, table

Kind = tuple[str, Array, Array, float | None]
"""Pair, point, axis and pitch of a joint."""

DIMENSIONS = {
    "revolute": 1,
    "prismatic": 1,
    "helical": 1,
    "cylindrical": 2,
    "planar translation": 2,
    "spatial translation": 3,
    "planar": 3,
    "helical planar": 3,
    "spherical": 3,
    "Schoenflies": 4,
    "free": 6,
}
"""Groups of motions that `one_joint` knows, and their dimensions."""
LARGE = [name for name, dim in DIMENSIONS.items() if 1 < dim < 6]

PAIRS = (
    "revolute", "prismatic", "helical", "cylindrical", "spherical", "planar", "planar_translation",
    "spatial_translation", "schoenflies", "universal", "fixed",
)  # fmt: skip
"""Pairs of `any_joint`."""

PITCH = 0.3
"""Pitch of the helical groups [m/rad]."""

_QUARTERS = [np.roll(np.eye(3), k, axis=0) for k in range(3)]


def placement(rng: np.random.Generator, reach: float = 1.0) -> pin.SE3:
    """A random placement."""
    quaternion = rng.normal(size=4)
    turn = pin.Quaternion(quaternion / np.linalg.norm(quaternion)).toRotationMatrix()
    return pin.SE3(turn, rng.uniform(-reach, reach, 3))


def special(rng: np.random.Generator) -> pin.SE3:
    """A placement along the coordinate axes on a coarse grid, seldom any other one."""
    if rng.random() < 0.2:
        return placement(rng)
    point = rng.integers(-1, 2, 3) if rng.random() < 0.4 else np.zeros(3)
    return pin.SE3(_QUARTERS[rng.integers(3)], point.astype(float))


def one_joint(rng: np.random.Generator, group: str) -> Kind:
    """A joint with one degree of freedom inside a group, in the group's own frame (axis z)."""
    point, origin = rng.uniform(-1, 1, 3), np.zeros(3)
    angle = rng.uniform(0, 2 * np.pi)
    flat, direction = np.array([np.cos(angle), np.sin(angle), 0.0]), rng.normal(size=3)
    lead = float(rng.choice([-1, 1]) * rng.uniform(0.1, 0.6))
    choices: dict[str, list[Kind]] = {
        "revolute": [("revolute", origin, Z, None)],
        "prismatic": [("prismatic", origin, Z, None)],
        "helical": [("helical", origin, Z, PITCH)],
        "cylindrical": [
            ("revolute", origin, Z, None),
            ("prismatic", origin, Z, None),
            ("helical", origin, Z, lead),
        ],
        "planar translation": [("prismatic", origin, flat, None)],
        "spatial translation": [("prismatic", origin, direction, None)],
        "planar": [("revolute", point, Z, None), ("prismatic", origin, flat, None)],
        "helical planar": [("helical", point, Z, PITCH), ("prismatic", origin, flat, None)],
        "spherical": [("revolute", origin, direction, None)],
        "Schoenflies": [
            ("revolute", point, Z, None),
            ("prismatic", origin, direction, None),
            ("helical", point, Z, lead),
        ],
        "free": [
            ("revolute", point, direction, None),
            ("prismatic", origin, direction, None),
            ("helical", point, direction, lead),
        ],
    }
    kinds = choices[group]
    return kinds[rng.integers(len(kinds))]


def entry(name: str, ends: tuple[str, str], kind: Kind, frame: pin.SE3, cut: bool) -> Table:
    """Entry of a joint whose kind is given in ``frame``; a random end is its parent's."""
    pair, point, axis, pitch = kind
    found: dict[str, Any] = {"name": name, "pair": pair, "parent": ends[0], "child": ends[1]}
    if pair not in ("fixed", "spherical", "spatial_translation"):
        found["axis"] = frame.rotation @ axis
    if pair == "universal":
        found["axis2"] = frame.rotation @ X
    if pair in ("revolute", "helical", "cylindrical", "universal", "spherical"):
        found["point"] = frame.act(point)
    if pitch is not None:
        found["pitch"] = pitch
    return found | ({"cut": True} if cut else {})


def any_joint(rng: np.random.Generator) -> Kind:
    """A joint of any pair, at a point of the grid."""
    pair = str(rng.choice(PAIRS))
    return pair, special(rng).translation, Z, PITCH if pair == "helical" else None


def _ends(rng: np.random.Generator, a: str, b: str) -> tuple[str, str]:
    return (a, b) if rng.random() < 0.5 else (b, a)


def group_loop(seed: int, group: str, count: int) -> tuple[Table, pin.SE3]:
    """A single loop of ``count`` joints inside one group, a random one cut, and the group's frame.

    Two bodies are the ground and a platform; the loop runs over both.
    """
    rng = np.random.default_rng(seed)
    frame, cut = placement(rng), rng.integers(count)
    bodies = [GROUND, *(f"b{k}" for k in range(1, count)), GROUND]
    joints = [
        entry(f"j{k}", _ends(rng, bodies[k], bodies[k + 1]), one_joint(rng, group), frame, k == cut)
        for k in range(count)
    ]
    return table(f"{group} loop", *joints), frame


def parallel_mechanism(seed: int) -> Table:
    """Two to four legs to a platform, each in a group of its own, some with a larger pair."""
    rng = np.random.default_rng(seed)
    home = placement(rng)
    joints = []
    for leg in range(rng.integers(2, 5)):
        group, frame = str(rng.choice(LARGE)), home * special(rng)
        count = int(rng.integers(2, 6))
        cut = int(rng.integers(count)) if leg else -1
        other = int(rng.integers(count)) if rng.random() < 0.5 else -1
        bodies = [GROUND, *(f"l{leg}b{k}" for k in range(1, count)), "platform"]
        for k in range(count):
            kind = any_joint(rng) if k == other else one_joint(rng, group)
            place = home * special(rng) if k == other and rng.random() < 0.5 else frame
            ends = _ends(rng, bodies[k], bodies[k + 1])
            joints.append(entry(f"l{leg}j{k}", ends, kind, place, k == cut))
    return table("parallel mechanism", *joints)


def graph(seed: int) -> Table:
    """Bodies joined in any way by any pairs: loops share bodies and may miss the ground."""
    rng = np.random.default_rng(seed)
    home = placement(rng)
    bodies = [GROUND, *(f"b{k}" for k in range(rng.integers(2, 6)))]
    joints = []

    def join(name: str, a: str, b: str, cut: bool) -> None:
        kind = any_joint(rng)
        if rng.random() < 0.4 or (name == "t0" and kind[0] == "fixed"):
            kind = ("revolute", *kind[1:3], None)
        joints.append(entry(name, _ends(rng, a, b), kind, home * special(rng), cut))

    for k, body in enumerate(bodies[1:]):
        join(f"t{k}", bodies[rng.integers(k + 1)], body, False)
    for k in range(rng.integers(1, 4)):
        a, b = rng.choice(len(bodies), 2, replace=False)
        join(f"c{k}", bodies[a], bodies[b], True)
    return table("graph", *joints)


def overconstrained(seed: int, kind: str) -> Table:
    """A random linkage that moves though its rows leave no motion in general.

    "bennett": four skew hinges; "goldberg": five of them out of two of Bennett's; "bricard": six,
    of which the last three are the first ones turned by pi about a line (line-symmetric).
    """
    rng = np.random.default_rng(seed)
    turns = rng.uniform(0.5, 1.4, 2)
    if kind == "goldberg":
        return goldberg((rng.uniform(0.3, 0.5), rng.uniform(0.55, 0.75)), (turns[0], 2 - turns[1]))
    if kind == "bennett":
        alpha, beta, a = rng.uniform(0.4, 0.8), rng.uniform(1.0, 1.5), rng.uniform(0.3, 0.8)
        frames = bennett_axes(a, alpha, a * np.sin(beta) / np.sin(alpha), beta, turns[0])
        axes = [(frame.translation, frame.rotation[:, 2]) for frame in frames]
    else:
        home = placement(rng)
        half = home * pin.SE3(pin.exp3(np.pi * Z), np.zeros(3)) * home.inverse()
        axes = [(rng.uniform(-1, 1, 3), rng.normal(size=3)) for _ in range(3)]
        axes += [(half.act(point), half.rotation @ axis) for point, axis in axes]
    return chain(kind, *(("revolute", point, axis, None) for point, axis in axes))


def near_singular(seed: int) -> Table:
    """A planar four-bar that nearly folds flat, or does, in some pose or in its reference.

    Two of its bars are together as long as the others, but for a millionth to a tenth.
    """
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(0.2, 1.0, 2)
    excess = float(rng.choice([0.0, *(10.0 ** -rng.integers(1, 7, 2))]))
    # A parallelogram or kite, or any four-bar of which ground and crank are the longest in a line.
    c, ground = ((a, b) if rng.random() < 0.5 else (b, a)) if rng.random() < 0.4 else (
        rng.uniform(0.1, 0.9) * (a + b), 0.0)  # fmt: skip
    ground = ground or a + b - c
    ground = max(0.05, ground + excess * rng.choice([-1.0, 1.0]))
    angle = float(rng.choice([rng.uniform(0.2, 2.9), 10.0 ** -rng.uniform(1, 4)]))
    while True:
        tip = a * np.array([np.cos(angle), np.sin(angle), 0.0])
        away = ground * X - tip
        distance = float(np.linalg.norm(away))
        along = (distance**2 + b**2 - c**2) / (2 * distance)
        if abs(along) < b:
            break
        angle = float(rng.uniform(-np.pi, np.pi))
    side = np.cross(Z, away) / distance * rng.choice([-1.0, 1.0])
    knee = tip + along * away / distance + np.sqrt(b**2 - along**2) * side
    frame = placement(rng)
    points = (np.zeros(3), tip, knee, ground * X)
    axis = frame.rotation @ Z
    return chain("near singular", *(("revolute", frame.act(p), axis, None) for p in points))
