"""O-DCA: the orthogonal-complement divide-and-conquer algorithm (paper 3)."""

from __future__ import annotations

from .solver import ArticulatedSolver, FurtherRows

__all__ = ["ArticulatedSolver", "FurtherRows"]
