"""Charts of runs and stops: `charts` holds their numbers, `figure` and `svg` draw them.

matplotlib is imported when the first figure is drawn.
"""

from __future__ import annotations

from .charts import Chart, Line, draw_charts
from .runs import RunPlots

__all__ = ["Chart", "Line", "RunPlots", "draw_charts"]
