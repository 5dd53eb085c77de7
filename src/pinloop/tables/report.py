"""A sheet of results: facts, tables and notes, as plain text and for rich; see `pages` for others.

Knows neither robots nor stops. Text and terminal share one layout; where the width does not
suffice, a table is cut into several below each other, and each repeats the first column.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from rich import box
from rich.panel import Panel
from rich.text import Text

from ..boundary.forwards import forward

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

__all__ = [
    "Block",
    "Cell",
    "Column",
    "KeyValues",
    "Mark",
    "Notes",
    "Report",
    "Table",
    "column_runs",
    "heading_over",
    "heading_under",
]

Mark = Literal["", "title", "heading", "good", "bad", "caution"]
"""What a piece of text is, for colours."""

Span = tuple[str, Mark]
Line = list[Span]

_GAP = 2
"""Blanks between two columns."""
_PROSE = 80
"""Width at which sentences are wrapped where no width is asked for."""
_WIDEST_PROSE = 100
_NARROW = 20
"""Long names are cut into lines of this width at least, if that keeps a table whole."""
_FRAME = 4
"""What the frame of a block takes from the width of a terminal."""
_STYLES = {
    "title": "bold",
    "heading": "cyan",
    "good": "bold green",
    "bad": "bold red",
    "caution": "yellow",
}


class Cell(NamedTuple):
    """A text and what it is."""

    text: str
    mark: Mark = ""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Args:
        heading: what it holds.
        unit: unit of its numbers.
        group: heading over several columns beside each other, which share their unit.
        right: whether it is aligned to the right, as numbers are.
    """

    heading: str
    unit: str = ""
    group: str = ""
    right: bool = True


@dataclass(frozen=True)
class Table:
    """A table; its first column names the rows."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class KeyValues:
    """Names and what they are, a line each."""

    title: str
    entries: tuple[tuple[str, Cell], ...]


@dataclass(frozen=True)
class Notes:
    """Sentences."""

    title: str
    items: tuple[str, ...]
    mark: Mark = ""


Block = KeyValues | Table | Notes


@dataclass(frozen=True)
class Report:
    """Blocks under a title. `print` it, give it to rich, or let a notebook show it.

    Args:
        title: what it is about.
        blocks: its parts.
        closing: a sentence below all of them.
    """

    title: Cell
    blocks: tuple[Block, ...]
    closing: str = ""

    def __str__(self) -> str:
        return self.text()

    def text(self, width: int | None = None) -> str:
        """Plain text.

        Args:
            width: columns of text to be kept to, as far as it can be; without it tables are as
                wide as they are.
        """
        parts = [self.title.text]
        room = None if width is None else width - _GAP
        for block in self.blocks:
            lines = ["".join(text for text, _ in line).rstrip() for line in _lines(block, room)]
            parts.append("\n".join([block.title, *(f"  {line}".rstrip() for line in lines)]))
        if self.closing:
            parts.append("\n".join(_wrapped(self.closing, width)))
        return "\n\n".join(parts)

    def __rich__(self) -> _Framed:
        return _Framed(self)

    def _repr_html_(self) -> str:
        html: str = forward("tables.html", "page_of", self)
        return html


# -- text and terminal --------------------------------------------------------------------------


@dataclass(frozen=True)
class _Framed:
    """A sheet as rich shows it: each block in a frame, all frames of one width."""

    report: Report

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:

        room = max(20, options.max_width - _FRAME)
        bodies = [_lines(block, room) for block in self.report.blocks]
        widest = max((_length(line) for lines in bodies for line in lines), default=0)
        widest = max([widest, *(_cells(block.title) + 2 for block in self.report.blocks)])
        yield Text(self.report.title.text, style=_STYLES.get(self.report.title.mark, "bold"))
        for block, lines in zip(self.report.blocks, bodies, strict=True):
            body = Text("\n", no_wrap=False).join(_styled(line) for line in lines)
            yield Panel(
                body,
                box=box.ROUNDED,
                title=Text(block.title, style="bold"),
                title_align="left",
                border_style="dim",
                width=min(widest, room) + _FRAME,
            )
        if self.report.closing:
            sentence = "\n".join(_wrapped(self.report.closing, min(widest, room)))
            yield Text(sentence, style=_STYLES["caution"])


def _styled(line: Line) -> Any:

    return Text.assemble(*((text, _STYLES.get(mark, "")) for text, mark in line))


def _lines(block: Block, width: int | None) -> list[Line]:
    """A block without its title, line by line."""
    if isinstance(block, Table):
        return _grid_lines(block, width)
    if isinstance(block, KeyValues):
        return _facts_lines(block, width)
    return _notes_lines(block, width)


def _facts_lines(block: KeyValues, width: int | None) -> list[Line]:
    column = max((_cells(label) for label, _ in block.entries), default=0)
    lines: list[Line] = []
    for label, cell in block.entries:
        name = label
        for part in _wrapped(cell.text, width, column + _GAP):
            lines.append([(_padded(name, column) + " " * _GAP, "heading"), (part, cell.mark)])
            name = ""
    return lines


def _notes_lines(block: Notes, width: int | None) -> list[Line]:
    return [
        [("- " if k == 0 else "  ", ""), (part, block.mark)]
        for item in block.items
        for k, part in enumerate(_wrapped(item, width, 2))
    ]


def _wrapped(text: str, width: int | None, indent: int = 0) -> list[str]:
    """A sentence in lines; words with hyphens stay whole, and what no-break spaces join.

    Words that are too long, such as paths, are torn on a terminal only.
    """
    room = _PROSE - _GAP if width is None else min(width, _WIDEST_PROSE)
    lines = textwrap.wrap(
        text,
        max(16, room - indent),
        break_on_hyphens=False,
        break_long_words=width is not None,
    )
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines] or [""]


def _grid_lines(grid: Table, width: int | None) -> list[Line]:
    """A table, cut into several where it is too wide."""
    widths = [_column_width(grid, k) for k in range(len(grid.columns))]
    for run in column_runs(grid):
        widths[run[0]] += max(0, _cells(heading_over(grid, run)) - _run_width(run, widths))
    if width is not None and len(_cut(grid, widths, width)) > 1:
        spare = width - sum(widths[1:]) - _GAP * (len(widths) - 1)
        widths[0] = min(widths[0], spare if spare >= _NARROW else max(12, width // 2))
    lines: list[Line] = []
    for runs in _cut(grid, widths, width):
        if lines:
            lines.append([])
        lines += _part_lines(grid, runs, widths)
    return lines


def _column_width(grid: Table, k: int) -> int:
    column = grid.columns[k]
    unit = f"[{column.unit}]" if column.unit and not column.group else ""
    texts = [column.heading, unit, *(row[k].text for row in grid.rows)]
    return max(_cells(text) for text in texts)


def column_runs(grid: Table) -> list[list[int]]:
    """Columns under a common heading, or one column each, without the first."""
    numbered = list(enumerate(grid.columns))[1:]
    keys = groupby(numbered, key=lambda item: item[1].group or item[0])
    return [[k for k, _ in items] for _, items in keys]


def _run_width(run: Sequence[int], widths: list[int]) -> int:
    return sum(widths[k] for k in run) + _GAP * (len(run) - 1)


def heading_over(grid: Table, run: Sequence[int]) -> str:
    """Heading over a run of columns."""
    column = grid.columns[run[0]]
    if column.group:
        return f"{column.group} [{column.unit}]" if column.unit else column.group
    return column.heading if column.unit else ""


def heading_under(column: Column) -> str:
    """Heading of a column below that over its run: its own, or the unit."""
    return f"[{column.unit}]" if column.unit and not column.group else column.heading


def _cut(grid: Table, widths: list[int], width: int | None) -> list[list[list[int]]]:
    """The runs of columns of each table that fits into a width."""
    runs = column_runs(grid)
    if width is not None:
        runs = [part for run in runs for part in _torn(grid, run, widths, width)]
    parts: list[list[list[int]]] = [[]]
    used = widths[0]
    for run in runs:
        takes = _GAP + _run_width(run, widths)
        if width is not None and parts[-1] and used + takes > width:
            parts.append([])
            used = widths[0]
        parts[-1].append(run)
        used += takes
    return parts


def _torn(grid: Table, run: list[int], widths: list[int], width: int) -> list[list[int]]:
    """A run of columns, column by column if it is too wide by itself."""
    if len(run) == 1 or widths[0] + _GAP + _run_width(run, widths) <= width:
        return [run]
    for k in run:
        widths[k] = max(widths[k], _cells(heading_over(grid, run)))
    return [[k] for k in run]


def _part_lines(grid: Table, runs: list[list[int]], widths: list[int]) -> list[Line]:
    """One table: headings, then rows."""
    gap = " " * _GAP
    upper, lower = " " * widths[0], _padded(grid.columns[0].heading, widths[0])
    for run in runs:
        over, lone = heading_over(grid, run), not grid.columns[run[0]].group
        upper += gap + (
            _aligned(grid, run[0], over, widths)
            if lone
            else _centred(over, _run_width(run, widths))
        )
        for k in run:
            column = grid.columns[k]
            lower += gap + _aligned(grid, k, heading_under(column), widths)
    headings = [text for text in (upper.rstrip(), lower.rstrip()) if text]
    lines: list[Line] = [[(text, "heading")] for text in headings]
    shown = [k for run in runs for k in run]
    for row in grid.rows:
        first, *rest = _folded(row[0].text, widths[0])
        line: Line = [(_padded(first, widths[0]), row[0].mark)]
        for k in shown:
            line += [(gap, ""), (_aligned(grid, k, row[k].text, widths), row[k].mark)]
        lines += [line, *([(part, row[0].mark)] for part in rest)]
    return lines


def _aligned(grid: Table, k: int, text: str, widths: list[int]) -> str:
    fill = " " * (widths[k] - _cells(text))
    return fill + text if grid.columns[k].right else text + fill


def _centred(text: str, width: int) -> str:
    left = (width - _cells(text) + 1) // 2
    return _padded(" " * left + text, width)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _cells(text))


def _folded(text: str, width: int) -> list[str]:
    """A text in pieces that are no wider than a column."""
    pieces = [""]
    for letter in text:
        if pieces[-1] and _cells(pieces[-1] + letter) > width:
            pieces.append("")
        pieces[-1] += letter
    return pieces


def _length(line: Line) -> int:
    return sum(_cells(text) for text, _ in line)


def _cells(text: str) -> int:
    """Columns of a terminal that a text takes."""
    return sum(
        0 if unicodedata.combining(letter) else 1 + (unicodedata.east_asian_width(letter) in "WF")
        for letter in text
    )
