"""Many stops: studies, worst cases, tables as vendors print them, separation, comparison, fit."""

from __future__ import annotations

from .compare import Comparison, compare
from .fit import Fit, fit_brakes
from .published import Measured, StoppingTable
from .sampling import Corners, Grid, Random, Sobol
from .space import Space
from .study import Study, study
from .worst import WorstCase, worst_case

__all__ = [
    "Comparison",
    "Corners",
    "Fit",
    "Grid",
    "Measured",
    "Random",
    "Sobol",
    "Space",
    "StoppingTable",
    "Study",
    "WorstCase",
    "compare",
    "fit_brakes",
    "study",
    "worst_case",
]
