"""Equations of motion: the same accelerations in interchangeable formulations."""

from __future__ import annotations

from .equations import EquationsOfMotion, Motion
from .formulations import Augmented, Formulation, Projected, Voronets
from .inverse import christoffel, coriolis, inverse_dynamics

__all__ = [
    "Augmented",
    "EquationsOfMotion",
    "Formulation",
    "Motion",
    "Projected",
    "Voronets",
    "christoffel",
    "coriolis",
    "inverse_dynamics",
]
