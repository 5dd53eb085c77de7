"""Runge-Kutta methods of Munthe-Kaas on the configuration group; knows no robot."""

from __future__ import annotations

from .chebyshev import COARSE, FINE, Interpolation
from .munthe_kaas import Attempt, Manifold, MuntheKaas, Stages, Step, StepControl
from .quintic import NODES, WEIGHTS, hermite, slope_powers, value_powers
from .tableaux import METHODS, Tableau, get_tableau

__all__ = [
    "COARSE",
    "FINE",
    "METHODS",
    "NODES",
    "WEIGHTS",
    "Attempt",
    "Interpolation",
    "Manifold",
    "MuntheKaas",
    "Stages",
    "Step",
    "StepControl",
    "Tableau",
    "get_tableau",
    "hermite",
    "slope_powers",
    "value_powers",
]
