"""The robots that are measured and the states they start from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import pinloop as pl

from .scene import UNLOADED, Loads

Array = NDArray[np.float64]

URDF = Path(__file__).parents[1] / "urdf"


@dataclass(frozen=True)
class Motion:
    """A robot that is let go.

    Args:
        title: name in tables.
        robot: the mechanism.
        push: velocities of joints at the start [rad/s, m/s]; the others are at rest.
        until: end of the run [s].
        loads: what acts beside gravity.
    """

    title: str
    robot: Callable[[], pl.Mechanism]
    push: tuple[tuple[str, tuple[float, ...]], ...]
    until: float
    loads: Loads = UNLOADED

    def start(self) -> tuple[pl.Mechanism, Array, Array]:
        """The regularized robot, an assembled configuration and a velocity."""
        robot = pl.regularize(self.robot())
        q = pl.assemble(robot, {})
        v = pl.consistent_velocity(robot, q, dict(self.push))
        return robot, q, v


def from_file(name: str) -> Callable[[], pl.Mechanism]:
    """A robot of the repository."""
    return cache(lambda: pl.load(URDF / f"{name}.urdf"))


def heavy_top() -> pl.Mechanism:
    """A box that spins on a ball joint under gravity; its numbers are those of paper 2, 5.1."""
    inertia, centre = np.diag([0.36, 0.306, 0.09]), [0.5, 0.0, 0.0]
    body = {"name": "top", "mass": 21.6, "com": centre, "inertia": inertia}
    pivot = {"name": "pivot", "pair": "spherical", "parent": "ground", "child": "top"}
    return pl.from_screws(
        {
            "name": "heavy_top",
            "gravity": [0, 0, -9.81],
            "bodies": [body],
            "joints": [pivot | {"point": [0, 0, 0]}],
        }
    )


def hinge(name: str, parent: str, child: str, point: Array) -> dict[str, object]:
    """A hinge of a planar robot, for a table of screws."""
    place = [*map(float, point), 0.0]
    ends = {"parent": parent, "child": child}
    return {"name": name, "pair": "revolute", **ends, "point": place, "axis": [0, 0, 1]}


BARS, LINKS = 20, 40


def open_chain() -> pl.Mechanism:
    """Forty slender bars of 0.1 m and 0.1 kg, one after another, that hang on one end."""
    length, mass = 0.1, 0.1
    bodies = [
        {"name": f"bar{k}", "mass": mass, "com": [(k + 0.5) * length, 0.0, 0.0],
         "inertia": np.diag([mass * length**2 / 12] * 3)}
        for k in range(LINKS)
    ]  # fmt: skip
    parents = ["ground", *(f"bar{k}" for k in range(LINKS - 1))]
    joints = [
        hinge(f"j{k}", at, f"bar{k}", np.array([k * length, 0.0])) for k, at in enumerate(parents)
    ]
    table = {"name": "open_chain", "gravity": [0, -9.81, 0], "bodies": bodies, "joints": joints}
    return pl.from_screws(table)


def closed_chain() -> pl.Mechanism:
    """Twenty slender bars of 0.1 m and 0.1 kg, one after another between two points 1 m apart.

    They start on an arc of a circle below both points.
    """
    length, mass, span = 0.1, 0.1, 1.0
    # Bars of equal length on a circle of radius R see equal angles 2 w: R sin(w) = length / 2.
    low, high = 1e-6, np.pi / BARS
    for _ in range(60):  # the chord of all of them is the span
        w = 0.5 * (low + high)
        low, high = (w, high) if np.sin(BARS * w) / np.sin(w) > span / length else (low, w)
    angles = -BARS * w + 2 * w * np.arange(BARS + 1)
    nodes = 0.5 * length / np.sin(w) * np.column_stack([np.sin(angles), -np.cos(angles)])
    middles, last = 0.5 * (nodes[1:] + nodes[:-1]), f"bar{BARS - 1}"
    bodies = [
        {"name": f"bar{k}", "mass": mass, "com": [*map(float, middle), 0.0],
         "inertia": np.diag([mass * length**2 / 12] * 3)}
        for k, middle in enumerate(middles)
    ]  # fmt: skip
    parents = ["ground", *(f"bar{k}" for k in range(BARS - 1))]
    joints = [hinge(f"j{k}", at, f"bar{k}", nodes[k]) for k, at in enumerate(parents)]
    joints.append(hinge("end", last, "ground", nodes[-1]))
    table = {"name": "closed_chain", "gravity": [0, -9.81, 0], "bodies": bodies, "joints": joints}
    return pl.from_screws(table)


_A, _B, _C = np.array([[-0.06934, -0.00227], [-0.03635, 0.03273], [0.014, 0.072]])
"""Points of Andrews' squeezer on the ground [m]."""
_BETA, _GAMMA, _PHI, _DELTA, _EPSILON = (
    -0.0617138900142764496, 0.455279819163070380, 0.222668390165885884, 0.487364979543842550,
    1.23054744454982119,
)  # fmt: skip
"""Its angles at the start [rad]; theta is 0, and omega is -phi."""


def squeezer() -> pl.Mechanism:
    """Andrews' squeezer: seven bodies, three loops through one point.

    Names and numbers as in the Test Set for Initial Value Problem Solvers (Mazzia, Magherini,
    2008, problem "Andrews' squeezing mechanism").
    """
    points = _squeezer_points()
    O, F, E, H, G = (points[name] for name in "OFEHG")  # noqa: E741
    masses = (0.04325, 0.00365, 0.02373, 0.00706, 0.07050, 0.00706, 0.05498)
    inertias = (2.194e-6, 4.410e-7, 5.255e-6, 5.667e-7, 1.169e-5, 5.667e-7, 1.912e-5)
    bodies = [
        {"name": f"K{k + 1}", "mass": mass, "com": [*map(float, points[f"K{k + 1}"]), 0.0],
         "inertia": np.diag([inertia] * 3)}
        for k, (mass, inertia) in enumerate(zip(masses, inertias, strict=True))
    ]  # fmt: skip
    joints = [
        hinge("O", "ground", "K1", O), hinge("F", "K1", "K2", F), hinge("B", "ground", "K3", _B),
        hinge("A5", "ground", "K5", _A), hinge("H", "K5", "K4", H),
        hinge("A7", "ground", "K7", _A), hinge("G", "K7", "K6", G),
        *(hinge(f"E{k}", "K2", f"K{k}", E) for k in (3, 4, 6)),
    ]  # fmt: skip
    table = {"name": "squeezer", "gravity": [0, 0, 0], "bodies": bodies, "joints": joints}
    return pl.from_screws(table)


def _squeezer_points() -> dict[str, Array]:
    """Joints, end of the spring, and centres of mass K1 ... K7 at the start [m], shape (2,)."""

    def along(angle: float, x: float, y: float = 0.0) -> Array:
        c, s = np.cos(angle), np.sin(angle)
        return np.array([c * x - s * y, s * x + c * y])

    F = along(_BETA, 7e-3)
    H, G = _A + along(_DELTA, 4e-2), _A + along(_EPSILON, 0.0, -4e-2)
    return {
        "O": np.zeros(2), "F": F, "E": F - along(_BETA, 28e-3), "H": H, "G": G,
        "D": _B + along(_GAMMA, 2e-2, -18e-3),
        "K1": along(_BETA, 92e-5),
        "K2": F - along(_BETA, 115e-4),
        "K3": _B + along(_GAMMA, 1043e-5, -1874e-5),
        "K4": H + along(_PHI + _DELTA, 0.0, -(2e-2 - 1421e-5)),
        "K5": _A + along(_DELTA, 2308e-5, 916e-5),
        "K6": G + along(_EPSILON - _PHI, 2e-2 - 1421e-5),
        "K7": _A + along(_EPSILON, -449e-5, -1228e-5),
    }  # fmt: skip


SQUEEZED = Loads(
    springs=((("K3", (*_squeezer_points()["D"], 0.0)), ("ground", (*_C, 0.0)), 4530.0, 0.07785),),
    torques=(("O", 0.033),),
)
"""Its spring and its motor."""

MOTIONS = {
    "fourbar": Motion("four-bar", from_file("fourbar"), (), 5.0),
    "sevenbar": Motion("seven-bar", from_file("sevenbar"), (), 3.0),
    "stewart": Motion("Stewart platform", from_file("stewart"), (), 0.5),
    "bricard": Motion("Bricard", from_file("bricard"), (), 2.0),
    "heavy_top": Motion(
        "heavy top", heavy_top, (("pivot", (0.0, 20.0 * np.pi, 10.0 * np.pi)),), 0.5
    ),
    "closed_chain": Motion("closed chain of 20 bars", closed_chain, (("j0", (1.0,)),), 1.0),
    "squeezer": Motion("Andrews' squeezer", squeezer, (), 0.03, SQUEEZED),
}
"""Whole simulations."""

RIGHT_HAND_SIDES: dict[str, tuple[str, Callable[[], pl.Mechanism]]] = {
    "six_axis_arm": ("six-axis arm", from_file("six_axis_arm")),
    "open_chain": ("open chain of 40 bars", open_chain),
    "fourbar": ("four-bar", from_file("fourbar")),
    "sevenbar": ("seven-bar", from_file("sevenbar")),
    "palletizer": ("palletizer", from_file("palletizer")),
    "delta": ("delta", from_file("delta")),
    "stewart": ("Stewart platform", from_file("stewart")),
    "prrr3": ("3-PRRR", from_file("prrr3")),
    "bricard": ("Bricard", from_file("bricard")),
    "closed_chain": ("closed chain of 20 bars", closed_chain),
}
"""Robots whose right-hand side is measured, with their titles."""
