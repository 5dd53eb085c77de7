"""Plots of runs, drawn by matplotlib, which is imported when the first one is drawn.

`charts` holds the numbers of each chart; `figure` draws them with matplotlib, `svg` for pages.
"""

from __future__ import annotations

from .charts import Line, Panel, draw_panels
from .runs import RunPlots

__all__ = ["Line", "Panel", "RunPlots", "draw_panels"]
