"""What charts show, as numbers and names: lines, shapes and labelled instants over an axis.

Two writers draw it: `figure` makes figures of matplotlib for notebooks and papers, `svg` the charts
of pages, which follow a replay, tell what is under the pointer and need no library. `runs` has the
charts of a run. Here nothing is known of robots, nor of matplotlib but where it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ...boundary.marks import Array
from ...boundary.values import forward
from ...errors import BadValue

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#7a5c00", "#3d9bd1", "#5b4fa0", "#222222")
"""Colours that people with any colour vision tell apart: Okabe and Ito (2008), darker for print."""
_DASHES = ("", "7 3", "2 3", "9 3 2 3")
"""Further lines repeat the colours with these dashes."""
MOST_LINES = 8
"""So many lines are told apart in one panel."""
_LONGEST = 44
"""Letters of the longest label of an instant."""
_NEAR = 3e-3
"""Part of the axis of time below which instants of a panel have one label."""
_MOST_ROWS = 6


@dataclass(frozen=True)
class Instant:
    """A vertical line at an instant; without a label if that is empty."""

    x: float
    label: str = ""


@dataclass(frozen=True, eq=False)
class Line:
    """A line.

    Args:
        name: for the legend; empty if it goes on with the line before, in its colour.
        x: shape (k,), not descending; one place twice is a jump.
        y: shape (k,); NaN where there is nothing to show.
        color: its colour; that of its place among the lines if it is empty, as for its dashes.
        passed: levels that it passes, and whether upwards: drawn, as is where it is beyond.
    """

    name: str
    x: Array
    y: Array
    color: str = ""
    dash: str = ""
    dotted: bool = False
    passed: Sequence[tuple[float, bool]] = ()


@dataclass(frozen=True, eq=False)
class Shape:
    """What a page shows below the lines.

    Args:
        kind: a bar between two values of each axis; a point, as a filled circle, a ring, a cross,
            or a hexagon with a corner up; or of many points the area within them, small dots, or
            their outline with its name.
        x: places on the common axis: two, one or many.
        y: places on the other axis, as many.
        name: what it is, for those who point at it.
        size: of a point its radius, of a bar the room to those beside it, in units of the picture;
            of a hexagon from its middle to its corners, in those of the axes.
    """

    kind: Literal["bar", "spot", "ring", "cross", "hexagon", "band", "dots", "outline"]
    x: Sequence[float] | Array
    y: Sequence[float] | Array
    color: str = ""
    name: str = ""
    size: float = 0.0

    @classmethod
    def in_row(cls, row: int, x: tuple[float, float], color: str, name: str) -> Shape:
        """A bar in a row of a chart that has rows."""
        return cls("bar", x, (row + 0.845, row + 0.155), color, name)

    @property
    def ends(self) -> tuple[float, float]:
        """Lowest and highest place."""
        room = self.size if self.kind == "hexagon" else 0.0
        y = np.asarray(self.y)
        return float(y.min(initial=np.inf)) - room, float(y.max(initial=-np.inf)) + room


@dataclass(frozen=True, eq=False)
class Chart:
    """A diagram over a common axis; all its lines have one unit.

    Args:
        y_label: what is shown and its unit.
        title: what it shows; its accessible name.
        x_label: name and unit of the common axis.
        span: ends of the common axis.
        zero: whether the other axis contains zero.
        notes: what the legend of a figure says besides.
        logarithmic: whether a figure shows sizes on a logarithmic axis.
        level: a value that a figure marks across, and its name.
        shapes: what a page shows below the lines.
        rows: names of rows, in the place of the other axis.
        y_span: ends of the other axis; by default they follow from what is shown.
        height: of the field in a page.
        half: whether it is one of several of half the width there.
        room: whether there is room between the lines and the ends of the axis.
        equal: whether a unit is as long on both axes; the height is what follows from it.
        follows: whether a cursor shows the time of a replay.
        whole: whether the other axis counts things, of which there are no halves.
    """

    y_label: str = ""
    lines: Sequence[Line] = ()
    _: KW_ONLY
    title: str = ""
    x_label: str = "time [s]"
    span: tuple[float, float] = (0.0, 1.0)
    instants: Sequence[Instant] = ()
    zero: bool = True
    notes: Sequence[str] = ()
    logarithmic: bool = False
    level: tuple[float, str] | None = None
    shapes: Sequence[Shape] = ()
    rows: Sequence[str] = ()
    y_span: tuple[float, float] | None = None
    height: float = 240.0
    half: bool = False
    room: bool = True
    equal: bool = False
    follows: bool = True
    whole: bool = False


def draw_charts(
    title: str,
    columns: Sequence[Sequence[Chart]],
    span: tuple[float, float],
    events: Sequence[tuple[float, str]] = (),
) -> Figure:
    """Draw charts over time with matplotlib, in columns from the top down.

    ``span``: ends of the axis of time [s]; ``events``: times [s] and names of what happened. No
    global state knows of the figure: nothing opens, nothing has to be closed. A notebook shows it;
    ``savefig`` writes it.
    """
    if not any(columns):
        raise BadValue(f"there is nothing to draw for '{title}'; name at least one joint")
    instants, near = (Instant(*event) for event in events), _NEAR * (span[1] - span[0])
    merged = list(merge_instants(instants, near, between=", ", most=_LONGEST))
    figure: Figure = by_matplotlib("draw", title, columns, span, merged)
    return figure


def by_matplotlib(function: str, *arguments: object, file: str = "figure") -> Any:
    """What a function of `figure` or `pdf` draws; a `BadValue` without matplotlib."""
    try:
        return forward(f"show.plots.{file}", function, *arguments)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        raise BadValue("plots need matplotlib: pip install matplotlib") from None


def styled(lines: Iterable[Line]) -> Iterator[tuple[Line, str, str]]:
    """Lines with their colours and dashes: their own, or those of their places among all."""
    number = -1
    for line in lines:
        number += bool(line.name)
        dashes = _DASHES[number // len(PALETTE) % len(_DASHES)]
        yield line, line.color or PALETTE[number % len(PALETTE)], line.dash or dashes


def thin_line(x: Array, y: Array, most: int) -> tuple[Array, Array]:
    """Points without those that no eye sees: of each strip its first, last and extreme ones.

    There are about as many as ``most``; x and y have shape (k,), y is NaN where there is nothing.
    """
    if len(x) <= most:
        return x, y
    chosen = set[int]()
    for strip in np.array_split(np.arange(len(x)), most // 4):
        here = y[strip]
        chosen |= {int(strip[0]), int(strip[-1])}
        if not np.all(np.isnan(here)):
            chosen |= {int(strip[np.nanargmin(here)]), int(strip[np.nanargmax(here)])}
    order = np.array(sorted(chosen))
    return x[order], y[order]


# -- labels of instants -------------------------------------------------------------------------


def merge_instants(
    instants: Iterable[Instant], near: float = 0.0, *, between: str = "; ", most: int | None = None
) -> Iterator[Instant]:
    """Instants in order; of those no farther apart than ``near`` the first has all the names.

    The names are joined by ``between``, and cut to ``most`` letters if that is given.
    """
    groups: list[list[Instant]] = []
    for instant in sorted(instants, key=lambda instant: instant.x):
        if not groups or instant.x - groups[-1][0].x > near:
            groups.append([])
        groups[-1].append(instant)
    for group in groups:
        label = between.join(dict.fromkeys(filter(None, (instant.label for instant in group))))
        for k, x in enumerate(dict.fromkeys(instant.x for instant in group)):
            yield Instant(x, "" if k else label if most is None else shorten(label, most))


def shorten(text: str, most: int) -> str:
    """A label of no more letters than ``most``; what is cut off is marked."""
    return text if len(text) <= most else f"{text[: most - 1]}\N{HORIZONTAL ELLIPSIS}"


def place_labels(
    instants: Sequence[Instant], scale: Callable[[float], float], width: float, letter: float
) -> dict[int, tuple[float, int]]:
    """Where the labels of instants begin, and in which row, so that none covers another.

    A label begins at its instant, or ends there where that has no room; its line rises to it
    through no other label. The others are left out. Given are begin and row by index of the
    instant; 0 is the highest row.

    ``scale``: from instants to places in the picture; ``width``: where it ends; ``letter``: width
    of a letter.
    """
    places: dict[int, tuple[float, int]] = {}
    taken: list[tuple[float, float, float, int]] = []
    ahead = {
        k: scale(instant.x) + 4 + letter * len(instant.label) <= width
        for k, instant in enumerate(instants)
        if instant.label
    }
    # Outer ones first: a line that rises higher then stands outside of the labels below its own.
    for k in sorted(ahead, key=lambda k: (ahead[k], instants[k].x * (1 if ahead[k] else -1))):
        x, room = scale(instants[k].x), letter * len(instants[k].label)
        sides = [x + 4, x - 4 - room]
        for begin, row in product(sides if ahead[k] else sides[::-1], range(_MOST_ROWS)):
            end = begin + room
            free = (begin >= 0.0 and end <= width) and all(
                (other != row or begin >= b + 6 or end <= a - 6)
                and not (other > row and a - 3 < x < b + 3)
                and not (other < row and begin - 3 < line < end + 3)
                for a, b, line, other in taken
            )
            if free:
                taken.append((begin, end, x, row))
                places[k] = begin, row
                break
    return places
