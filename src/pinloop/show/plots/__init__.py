"""Plots of runs, drawn by matplotlib, which is imported when the first one is drawn.

`runs` says what is drawn of a run, `panels` holds the numbers of each diagram, `picture` draws
them, `marks` has colours and labels for whoever draws.
"""

from __future__ import annotations

from .panels import Line, Panel, drawn
from .runs import RunPlots

__all__ = ["Line", "Panel", "RunPlots", "drawn"]
