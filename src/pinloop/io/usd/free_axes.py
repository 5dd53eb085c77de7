"""What reader and writer of USD share: the library, and the axes that pairs leave free."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np

from ...errors import BadValue

_SLIDES, _TURNS = ("transX", "transY", "transZ"), ("rotX", "rotY", "rotZ")

FREE_AXES = {
    "fixed": frozenset[str](),
    "revolute": frozenset(["rotZ"]),
    "prismatic": frozenset(["transZ"]),
    "cylindrical": frozenset(["transZ", "rotZ"]),
    "planar_translation": frozenset(["transX", "transY"]),
    "planar": frozenset(["transX", "transY", "rotZ"]),
    "spatial_translation": frozenset(_SLIDES),
    "schoenflies": frozenset([*_SLIDES, "rotZ"]),
    "spherical": frozenset(_TURNS),
    "universal": frozenset(["rotX", "rotZ"]),
    "free": frozenset([*_SLIDES, *_TURNS]),
}
"""Axes of a joint of USD that are not locked, by pair."""

UNIVERSAL = np.array([[0.0, 0.0, 1.0], [0.0, -1.0, 0.0], [1.0, 0.0, 0.0]])
"""From frames of a universal pair, first z then x, to those of USD, which turn about x first."""


def load_usd() -> Any:
    """The modules of usd-core; a `BadValue` says how to get it."""
    try:
        names = ("Gf", "Sdf", "Tf", "Usd", "UsdGeom", "UsdPhysics")
        return SimpleNamespace(**{name: import_module(f"pxr.{name}") for name in names})
    except ImportError:
        raise BadValue("USD needs usd-core: pip install 'pinloop[usd]'") from None
