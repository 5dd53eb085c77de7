"""How pictures of examples look and how they are written: the same numbers give the same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pinloop.show.plots import PALETTE

__all__ = ["drawing"]

_DATES: dict[str, dict[str, Any]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
    ".pdf": {"CreationDate": None, "Producer": None, "Creator": None},
}
"""What a file would say of the day and of the program that wrote it."""


@contextmanager
def drawing(path: str, width: float, height: float) -> Iterator[Any]:
    """Yield an empty figure of matplotlib; write it when it has been drawn.

    Args:
        path: file to write; its ending says which kind.
        width: of the figure [inch].
        height: of the figure [inch].
    """
    try:
        import matplotlib
        from cycler import cycler
        from matplotlib.figure import Figure
    except ImportError:
        raise SystemExit("pictures need matplotlib: pip install 'pinloop[plot]'") from None
    style: Any = {
        "axes.prop_cycle": cycler(color=PALETTE),
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": "#e3e6ea",
        "legend.frameon": False,
        "svg.hashsalt": "pinloop",
    }
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        figure.savefig(path, dpi=150, metadata=_DATES.get(Path(path).suffix))
