"""Munthe-Kaas methods on configuration groups, as functions of time; no robot is known here."""

from __future__ import annotations

from .decay import Decay, attempt_with_decay
from .munthe_kaas import Attempt, Manifold, MuntheKaas, Stages, Step, StepControl
from .polynomials import (
    COARSE,
    FINE,
    NODES,
    WEIGHTS,
    Interpolation,
    hermite,
    slope_powers,
    value_powers,
)
from .tableaux import METHODS, Tableau, get_tableau

__all__ = [
    "COARSE",
    "FINE",
    "METHODS",
    "NODES",
    "WEIGHTS",
    "Attempt",
    "Decay",
    "Interpolation",
    "Manifold",
    "MuntheKaas",
    "Stages",
    "Step",
    "StepControl",
    "Tableau",
    "attempt_with_decay",
    "get_tableau",
    "hermite",
    "slope_powers",
    "value_powers",
]
