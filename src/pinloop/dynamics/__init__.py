"""Equations of motion in interchangeable formulations, at one instant; nothing here steps."""

from __future__ import annotations

from .equations import BodyMotion, EquationsOfMotion, Motion
from .formulations import Augmented, Formulation, MatrixFormulation, Projected, Voronets
from .inverse import christoffel, coriolis, inverse_dynamics
from .odca import ODCA

__all__ = [
    "ODCA",
    "Augmented",
    "BodyMotion",
    "EquationsOfMotion",
    "Formulation",
    "MatrixFormulation",
    "Motion",
    "Projected",
    "Voronets",
    "christoffel",
    "coriolis",
    "inverse_dynamics",
]
