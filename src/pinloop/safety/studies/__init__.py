"""Many stops: studies, worst cases, tables as vendors print them, separation, comparison, fit."""

from __future__ import annotations

from .annexb import AnnexB, annex_b
from .compare import Comparison, compare
from .fit import Fit, fit_brakes
from .minimum import MinimumDistance, minimum_distance
from .published import Measured, StoppingTable
from .sampling import Corners, Grid, Random, Sobol
from .separation import Separation, separation
from .space import Space
from .study import Study, study
from .worst import WorstCase, worst_case

__all__ = [
    "AnnexB",
    "Comparison",
    "Corners",
    "Fit",
    "Grid",
    "Measured",
    "MinimumDistance",
    "Random",
    "Separation",
    "Sobol",
    "Space",
    "StoppingTable",
    "Study",
    "WorstCase",
    "annex_b",
    "compare",
    "fit_brakes",
    "minimum_distance",
    "separation",
    "study",
    "worst_case",
]
