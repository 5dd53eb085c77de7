"""Lower pairs written down by hand, for the tests of `pinloop.model.pairs`; no test lives here.

Motions are products of elementary rotations and shifts, free twists follow from their order, and
whether a placement is assembled is decided on its matrix entries. Nothing is taken from the code
under test but the constructor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from numpy.typing import NDArray

from pinloop.model.pairs import MotionGroup, Pair, make_pair

Array = NDArray[np.float64]

TWIST = ("v_x", "v_y", "v_z", "w_x", "w_y", "w_z")
EYE = np.eye(3)

# Paper 1, table 2: twist components that a pair whose motions form a group takes away.
BLOCKED = {
    "fixed": "v_x v_y v_z w_x w_y w_z",
    "revolute": "v_x v_y v_z w_x w_y",
    "prismatic": "v_x v_y w_x w_y w_z",
    "helical": "v_x v_y v_z w_x w_y",
    "cylindrical": "v_x v_y w_x w_y",
    "spherical": "v_x v_y v_z",
    "planar": "v_z w_x w_y",
    "planar_translation": "v_z w_x w_y w_z",
    "spatial_translation": "w_x w_y w_z",
    "schoenflies": "w_x w_y",
    "free": "",
}
ROWS = {name: len(blocked.split()) for name, blocked in BLOCKED.items()}
ROWS |= {"universal": 4, "point_on_line": 2, "point_on_plane": 1, "rod": 1}

# How the pair moves: shifts along axes of A, then rotations about the axes that come in turn.
SHIFTS = dict.fromkeys(ROWS, "") | {
    "prismatic": "z",
    "cylindrical": "z",
    "planar": "xy",
    "planar_translation": "xy",
    "spatial_translation": "xyz",
    "schoenflies": "xyz",
    "free": "xyz",
    "point_on_line": "z",
    "point_on_plane": "xy",
}
TURNS = dict.fromkeys(ROWS, "zxz") | {
    **dict.fromkeys(("fixed", "prismatic", "planar_translation", "spatial_translation"), ""),
    **dict.fromkeys(("revolute", "helical", "cylindrical", "planar", "schoenflies"), "z"),
    "universal": "zx",
}
# Where arctan2 and the logarithm change branch, and next to it.
SPECIAL_ANGLES = (0.0, np.pi, -np.pi, np.pi - 1e-9, -np.pi + 1e-9, 3 * np.pi, np.pi / 2)


@dataclass(frozen=True)
class Case:
    """A pair by name with the number that it needs, if any: pitch [m/rad] or length [m]."""

    name: str
    value: float = 0.0

    def __str__(self) -> str:
        return f"{self.name}{self.value or ''}"

    @property
    def pair(self) -> Pair:
        if self.name == "helical":
            return make_pair("helical", pitch=self.value)
        return make_pair("rod", length=self.value) if self.name == "rod" else make_pair(self.name)

    @property
    def group(self) -> MotionGroup:
        pair = self.pair
        assert isinstance(pair, MotionGroup)
        return pair


NEEDS_VALUE = {"helical": (0.02, -0.3, 1e-4, 2.5, 0.0), "rod": (0.05, 1.0, 3.0)}
CASES = [Case(name, value) for name in ROWS for value in NEEDS_VALUE.get(name, (0.0,))]
GROUPS = [case for case in CASES if case.name in BLOCKED]
OTHERS = [case for case in CASES if case.name not in BLOCKED]

every_case = pytest.mark.parametrize("case", CASES, ids=str)
every_group = pytest.mark.parametrize("case", GROUPS, ids=str)
every_other = pytest.mark.parametrize("case", OTHERS, ids=str)


def turn(axis: str, angle: float) -> Array:
    """Elementary rotation about a coordinate axis."""
    c, s = np.cos(angle), np.sin(angle)
    if axis == "x":
        return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
    if axis == "y":
        return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def assembled(case: Case, u: Array) -> Any:
    """Compose the motions of the pair: ``u`` holds three shifts [m] and three angles [rad]."""
    rotation = EYE
    for axis, angle in zip(TURNS[case.name], u[3:], strict=False):
        rotation = rotation @ turn(axis, angle)
    shift = sum((u[i] * EYE[i] for i in range(3) if "xyz"[i] in SHIFTS[case.name]), np.zeros(3))
    if case.name == "helical":
        shift = np.array([0.0, 0.0, case.value * u[3]])
    elif case.name == "rod":
        shift = turn("z", u[0]) @ turn("x", u[1]) @ np.array([0.0, 0.0, case.value])
    return pin.SE3(rotation, shift)


def free_twists(case: Case, T: Any) -> Array:
    """Twists of B in B that keep ``T`` assembled, as columns."""
    R = T.rotation
    linear = [R.T @ EYE["xyz".index(axis)] for axis in SHIFTS[case.name]]
    if case.name == "rod":
        linear = list(np.linalg.svd((R.T @ T.translation)[None])[2][1:])
    angular = {"": [], "z": [EYE[2]], "zx": [R.T @ EYE[2], EYE[0]], "zxz": list(EYE)}
    columns = [np.r_[v, np.zeros(3)] for v in linear]
    columns += [np.r_[np.zeros(3), w] for w in angular[TURNS[case.name]]]
    if case.name == "helical":
        columns = [np.array([0.0, 0.0, case.value, 0.0, 0.0, 1.0])]
    return np.array(columns).reshape(-1, 6).T


def defect(case: Case, T: Any) -> float:
    """How far the entries of ``T`` are from those of an assembled placement; 0 in the set."""
    R, p = T.rotation, T.translation
    off = {
        "": float(np.linalg.norm(R - EYE)),
        "z": float(np.linalg.norm(R[:, 2] - EYE[2])),
        "zx": float(np.linalg.norm(R - turn("z", np.arctan2(R[1, 0], R[0, 0]))
                                   @ turn("x", np.arctan2(R[2, 1], R[2, 2])))),
        "zxz": 0.0,
    }[TURNS[case.name]]  # fmt: skip
    if case.name == "rod":
        return float(abs(np.sqrt(p @ p) - case.value))
    if case.name == "helical":
        h = case.value
        thread = abs(h) * np.linalg.norm(R - turn("z", p[2] / h)) if h else abs(p[2])
        return float(np.linalg.norm([off, p[0], p[1], thread]))
    away = [p[i] for i in range(3) if "xyz"[i] not in SHIFTS[case.name]]
    return float(np.linalg.norm([off, *away]))


def members(case: Case, count: int, seed: int = 1) -> Iterator[Any]:
    """Assembled placements: several turns, and angles at and next to half turns."""
    rng = np.random.default_rng(seed)
    for k in range(count):
        u = np.r_[rng.uniform(-2, 2, 3), rng.uniform(-20, 20, 3)]
        if k % 2:
            u[3:] = rng.choice(SPECIAL_ANGLES, 3)
        yield assembled(case, u)


def anywhere(count: int, seed: int = 2) -> Iterator[Any]:
    """Placements with no regard to any pair, all rotation angles up to pi."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        axis = rng.normal(size=3)
        rotation = pin.exp3(rng.uniform(0, np.pi) * axis / np.linalg.norm(axis))
        yield pin.SE3(rotation, rng.uniform(-2, 2, 3))


def slope(function: Callable[[float], Array]) -> Array:
    """Derivative at zero by central differences."""
    step = 3e-6
    return np.asarray((function(step) - function(-step)) / (2 * step))


def rate_along(function: Callable[[Any], Array], T: Any, V: Array) -> Array:
    """Derivative of a function of the placement while B moves with the body twist ``V``."""
    return slope(lambda t: function(T * pin.exp6(t * V)))


def assert_close(actual: Array, expected: Array, tolerance: float) -> None:
    scale = 1.0 + float(np.linalg.norm(expected))
    assert float(np.linalg.norm(np.asarray(actual) - expected)) < tolerance * scale
