"""Many stops: cases, sampling, running, worst cases; how one stops is not known here."""

from __future__ import annotations

from .cases import WorstCase
from .space import Corners, Grid, Random, Sobol, Space
from .study import Study, study
from .summary import worst_case

__all__ = [
    "Corners",
    "Grid",
    "Random",
    "Sobol",
    "Space",
    "Study",
    "WorstCase",
    "study",
    "worst_case",
]
