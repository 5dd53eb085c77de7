"""What diagrams show, as numbers and names: lines over time, panels with one unit each.

Knows neither robots nor matplotlib, but for the one place where that is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...boundary.forwards import forward
from ...errors import BadValue
from .marks import Instant, shortened_to

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["MOST_LINES", "Line", "Panel", "drawn", "merged"]

Array = NDArray[np.float64]

MOST_LINES = 8
"""So many lines are told apart in one panel."""
_LONGEST = 44
"""Letters of the longest label of an instant."""
_NEAR = 3e-3
"""Part of the axis of time below which instants have one label."""


@dataclass(frozen=True, eq=False)
class Line:
    """A line over time.

    Args:
        name: for the legend; empty if it goes on with the line before, in its colour.
        t: times [s], shape (k,), not descending; one time twice is a jump.
        y: values, shape (k,); NaN where there is nothing to show.
        dotted: whether it is drawn in dots.
        passed: levels that it passes, and whether upwards: drawn, as is where it is beyond.
    """

    name: str
    t: Array
    y: Array
    dotted: bool = False
    passed: Sequence[tuple[float, bool]] = ()


@dataclass(frozen=True, eq=False)
class Panel:
    """A diagram over time; all its lines have one unit.

    Args:
        label: what is shown and its unit.
        lines: the lines.
        notes: what the legend says besides.
        logarithmic: whether sizes are shown on a logarithmic axis.
        level: a value that is marked across, and its name.
        zero: whether the axis contains zero.
    """

    label: str
    lines: Sequence[Line]
    notes: Sequence[str] = ()
    logarithmic: bool = False
    level: tuple[float, str] | None = None
    zero: bool = True


def drawn(
    title: str,
    columns: Sequence[Sequence[Panel]],
    span: tuple[float, float],
    events: Sequence[tuple[float, str]] = (),
) -> Figure:
    """Draw panels.

    Args:
        title: of the whole figure.
        columns: panels of each column, from the top down.
        span: ends of the axis of time [s].
        events: times [s] and names of what happened.

    Returns:
        A figure that no global state knows of: nothing opens, nothing has to be closed. A
        notebook shows it; ``savefig`` writes it.

    Raises:
        BadValue: there is nothing to draw, or matplotlib is not installed.
    """
    if not any(columns):
        raise BadValue(f"there is nothing to draw for '{title}'; name at least one joint")
    try:
        figure: Figure = forward(
            "show.plots.figure", "picture", title, columns, span, merged(events, span)
        )
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        raise BadValue("plots need matplotlib: pip install matplotlib") from None
    return figure


def merged(events: Sequence[tuple[float, str]], span: tuple[float, float]) -> list[Instant]:
    """Events as instants in order; of those that no eye can part, the first has all the names.

    Args:
        events: times [s] and names.
        span: ends of the axis of time [s].
    """
    near = _NEAR * (span[1] - span[0])
    groups: list[tuple[list[float], list[str]]] = []
    for t, name in sorted(events, key=lambda event: event[0]):
        if not groups or t - groups[-1][0][0] > near:
            groups.append(([], []))
        times, names = groups[-1]
        times += [t] * (t not in times)
        names += [name] * (name not in names)
    return [
        Instant(t, shortened_to(", ".join(names), _LONGEST) if k == 0 else "")
        for times, names in groups
        for k, t in enumerate(times)
    ]
