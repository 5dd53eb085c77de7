"""Runge-Kutta methods of Munthe-Kaas on the configuration group; knows no robot."""

from __future__ import annotations

from .munthe_kaas import Attempt, Manifold, MuntheKaas, Step, StepControl, hermite
from .tableaux import METHODS, Tableau, get_tableau

__all__ = [
    "METHODS",
    "Attempt",
    "Manifold",
    "MuntheKaas",
    "Step",
    "StepControl",
    "Tableau",
    "get_tableau",
    "hermite",
]
