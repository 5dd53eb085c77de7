"""Runge-Kutta methods of Munthe-Kaas on the configuration group; knows no robot."""

from __future__ import annotations

from .munthe_kaas import Attempt, Manifold, MuntheKaas, Step, StepControl
from .tableaux import TABLEAUX, Tableau

__all__ = ["TABLEAUX", "Attempt", "Manifold", "MuntheKaas", "Step", "StepControl", "Tableau"]
