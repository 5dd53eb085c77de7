"""A report as a value: facts, tables and notes under a title; how it looks as text and as a page.

Knows neither robots nor stops. Text and terminal share one layout; where the width does not
suffice, a table is cut into several below each other, and each repeats the first column. Frames of
a terminal come from `show.terminal`.

HTML comes from templates: one look, texts escaped once, nothing fetched when opened. Templates and
assets lie in the folders of the rooms that fill them in, and are named from the package on:
``show/scene/templates/run.html``. Pages extend ``tables/templates/page.html``.
"""

from __future__ import annotations

import re
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import lazy_loader
from rich.cells import cell_len, chop_cells

from ..boundary.arguments import public
from ..boundary.csv import write_rows
from ..boundary.values import forward
from ..errors import BadValue, PinloopError, printable

jinja2 = lazy_loader.load("jinja2")

Mark = Literal["", "title", "heading", "good", "bad", "caution"]
"""What a piece of text is, for colours."""

Span = tuple[str, Mark]
Line = list[Span]

_PACKAGE = Path(__file__).parents[1]
_GAP = 2
"""Blanks between two columns."""
_PROSE = 80
"""Width at which sentences are wrapped where no width is asked for."""
_WIDEST_PROSE = 100
_JOINED = "\N{NO-BREAK SPACE}"
_UNIT = re.compile(r"(?<=\d) (?:%|deg|rad|mm|ms|kg|m|s|J|N m|N)(?![\w%])")
"""A unit behind its number, from which it is not parted."""
_NARROW = 20
"""Long names are cut into lines of this width at least, if that keeps a table whole."""


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

    @property
    def name(self) -> str:
        """Heading with that over it."""
        return " ".join(filter(None, (self.group, self.heading)))

    @property
    def heading_under(self) -> str:
        """Heading below that over its run: its own, or the unit."""
        return f"[{self.unit}]" if self.unit and not self.group else self.heading


@dataclass(frozen=True)
class Table:
    """A table; its first column names the rows."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @classmethod
    def of(cls, title: str, headings: Sequence[str], rows: Iterable[Iterable[str | Cell]]) -> Table:
        """A table of texts, from which control characters are taken.

        Args:
            title: what it is about.
            headings: what the columns hold, with the unit, and ahead of it the heading over
                several: "energy lost [J]", "time | reaction [ms]"; that of a column to be aligned
                to the left begins with "<".
            rows: texts, or cells.
        """
        columns = []
        for text in headings:
            group, _, name = text.removeprefix("<").rpartition(" | ")
            heading, _, unit = name.removesuffix("]").partition(" [")
            columns.append(Column(heading, unit, group, right=not text.startswith("<")))
        cells = (tuple(map(_as_cell, row)) for row in rows)
        return cls(printable(title), tuple(columns), tuple(cells))

    def runs(self) -> list[list[int]]:
        """Columns under a common heading, or one column each, without the first."""
        numbered = list(enumerate(self.columns))[1:]
        groups = groupby(numbered, key=lambda item: item[1].group or item[0])
        return [[k for k, _ in items] for _, items in groups]

    def heading_over(self, run: Sequence[int]) -> str:
        """Heading over a run of columns."""
        column = self.columns[run[0]]
        if column.group:
            return f"{column.group} [{column.unit}]" if column.unit else column.group
        return column.heading if column.unit else ""


@dataclass(frozen=True)
class KeyValues:
    """Names and what they are, a line each."""

    title: str
    entries: tuple[tuple[str, Cell], ...]

    @classmethod
    def of(cls, title: str, entries: Iterable[tuple[str, str | Cell]]) -> KeyValues:
        """Texts or cells, from which control characters are taken."""
        return cls(title, tuple((printable(name), _as_cell(text)) for name, text in entries))


@dataclass(frozen=True)
class Notes:
    """Sentences."""

    title: str
    items: tuple[str, ...]
    mark: Mark = ""

    @classmethod
    def of(cls, title: str, items: Iterable[str], mark: Mark = "") -> Notes:
        """Sentences, from which control characters are taken."""
        return cls(title, tuple(map(printable, items)), mark)


Block = KeyValues | Table | Notes


def _says(block: Block) -> bool:
    """Whether there is anything in a block."""
    if isinstance(block, Table):
        return bool(block.rows)
    return bool(block.entries if isinstance(block, KeyValues) else block.items)


def _as_cell(text: str | Cell) -> Cell:
    cell = text if isinstance(text, Cell) else Cell(text)
    return Cell(printable(cell.text), cell.mark)


Section: TypeAlias = Callable[[Any], Block]
"""A part of a report of one's own: what it says of a result."""


def section_blocks(result: object, sections: Iterable[Section]) -> tuple[Block, ...]:
    """What sections of one's own say of a result."""
    blocks: list[Block] = []
    for section in sections:
        name = getattr(section, "__name__", repr(section))
        try:
            block = section(result)
        except PinloopError:
            raise
        except Exception as error:
            text = f"the report section '{name}' raised {type(error).__name__}: {error}"
            raise BadValue(text) from error
        if not isinstance(block, Block):
            raise BadValue(
                f"the report section '{name}' returned {type(block).__name__}; it must return a "
                "KeyValues, Table or Notes of pinloop.tables.report"
            )
        blocks.append(block)
    return tuple(blocks)


class Reported(ABC):
    """What has a report for reading, as which it prints, in rich and in notebooks too."""

    @abstractmethod
    def __rich__(self) -> Report:
        """The report."""

    def __str__(self) -> str:
        return str(self.__rich__())

    def _repr_html_(self) -> str:
        return self.__rich__()._repr_html_()


@public
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

    @classmethod
    def of(cls, title: str | Cell, blocks: Iterable[Block], closing: str = "") -> Report:
        """The blocks that say anything, under a title from which control characters are taken."""
        return cls(_as_cell(title), tuple(block for block in blocks if _says(block)), closing)

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
            lines = ("".join(text for text, _ in line) for line in block_lines(block, room))
            parts.append("\n".join([block.title, *(f"  {line}".rstrip() for line in lines)]))
        if self.closing:
            parts.append("\n".join(wrapped(self.closing, width)))
        return "\n\n".join(parts)

    def __rich__(self) -> Any:
        return forward("show.terminal", "Framed", self)

    def _repr_html_(self) -> str:
        return render("tables/templates/notebook.html", report=self)

    def to_html(self) -> str:
        """A page of its own, which needs no other file and no network."""
        return render("tables/templates/report.html", report=self)

    def to_pdf(self, path: str | Path) -> Path:
        """Write pages of A4; needs matplotlib."""
        return forward("show.plots", "by_matplotlib", "write_pdf", self, path, file="pdf")

    def to_markdown(self) -> str:
        """Tables as GitHub reads them; a heading over several columns is in each."""
        return render("tables/templates/report.md", report=self)

    def to_csv(self, path: str | Path) -> Path:
        """Write what the tables say as CSV, a row per cell: table, row, column, unit, value.

        Numbers are rounded as they are shown; results have exports of their own that are not.
        """
        return write_rows(path, ["table", "row", "column", "unit", "value"], self._cells())

    def _cells(self) -> Iterator[list[str]]:
        for block in self.blocks:
            if isinstance(block, KeyValues):
                yield from ([block.title, name, "", "", cell.text] for name, cell in block.entries)
            elif isinstance(block, Notes):
                yield from ([block.title, "", "", "", item] for item in block.items)
            else:
                for name, *cells in block.rows:
                    for column, cell in zip(block.columns[1:], cells, strict=True):
                        yield [block.title, name.text, column.name, column.unit, cell.text]


# -- text ---------------------------------------------------------------------------------------


def block_lines(block: Block, width: int | None) -> list[Line]:
    """A block without its title, line by line."""
    if isinstance(block, Table):
        return _table_lines(block, width)
    if isinstance(block, Notes):
        texts: list[tuple[str, str, Mark]] = [("-", item, block.mark) for item in block.items]
    else:
        texts = [(label, *cell) for label, cell in block.entries]
    column = max((cell_len(label) for label, *_ in texts), default=0)
    gap: Mark = "" if isinstance(block, Notes) else "heading"
    room = " " * (1 if isinstance(block, Notes) else _GAP)
    return [
        [(_padded("" if k else label, column) + room, gap), (part, mark)]
        for label, text, mark in texts
        for k, part in enumerate(wrapped(text, width, column + len(room)))
    ]


def wrapped(text: str, width: int | None, indent: int = 0) -> list[str]:
    """A sentence in lines; words with hyphens stay whole, and what `join_units` joins.

    Words that are too long, such as paths, are torn on a terminal only.
    """
    room = _PROSE - _GAP if width is None else min(width, _WIDEST_PROSE)
    lines = textwrap.wrap(
        join_units(text),
        max(16, room - indent),
        break_on_hyphens=False,
        break_long_words=width is not None,
    )
    return [line.replace(_JOINED, " ") for line in lines] or [""]


def join_units(text: str) -> str:
    """A sentence with no-break spaces between numbers and their units."""
    return _UNIT.sub(lambda match: match[0].replace(" ", _JOINED), text)


def _table_lines(table: Table, width: int | None) -> list[Line]:
    """A table, cut into several where it is too wide."""
    widths = [_column_width(table, k) for k in range(len(table.columns))]
    for run in table.runs():
        widths[run[0]] += max(0, cell_len(table.heading_over(run)) - _run_width(run, widths))
    if width is not None and len(_cut(table, widths, width)) > 1:
        spare = width - sum(widths[1:]) - _GAP * (len(widths) - 1)
        widths[0] = min(widths[0], spare if spare >= _NARROW else max(12, width // 2))
    lines: list[Line] = []
    for runs in _cut(table, widths, width):
        if lines:
            lines.append([])
        lines += _part_lines(table, runs, widths)
    return lines


def _column_width(table: Table, k: int) -> int:
    column = table.columns[k]
    unit = f"[{column.unit}]" if column.unit and not column.group else ""
    texts = [column.heading, unit, *(row[k].text for row in table.rows)]
    return max(cell_len(text) for text in texts)


def _run_width(run: Sequence[int], widths: list[int]) -> int:
    return sum(widths[k] for k in run) + _GAP * (len(run) - 1)


def _cut(table: Table, widths: list[int], width: int | None) -> list[list[list[int]]]:
    """The runs of columns of each table that fits into a width."""
    runs = table.runs()
    if width is not None:
        runs = [part for run in runs for part in _torn(table, run, widths, width)]
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


def _torn(table: Table, run: list[int], widths: list[int], width: int) -> list[list[int]]:
    """A run of columns, column by column if it is too wide by itself."""
    if len(run) == 1 or widths[0] + _GAP + _run_width(run, widths) <= width:
        return [run]
    for k in run:
        widths[k] = max(widths[k], cell_len(table.heading_over(run)))
    return [[k] for k in run]


def _part_lines(table: Table, runs: list[list[int]], widths: list[int]) -> list[Line]:
    """One table: headings, then rows."""
    gap, columns = " " * _GAP, table.columns
    sides = ["<>"[column.right] for column in columns]
    upper, lower = " " * widths[0], _padded(columns[0].heading, widths[0])
    for run in runs:
        align = "^" if columns[run[0]].group else sides[run[0]]
        upper += gap + _padded(table.heading_over(run), _run_width(run, widths), align)
        for k in run:
            lower += gap + _padded(columns[k].heading_under, widths[k], sides[k])
    headings = [text for text in (upper.rstrip(), lower.rstrip()) if text]
    lines: list[Line] = [[(text, "heading")] for text in headings]
    for row in table.rows:
        first, *rest = chop_cells(row[0].text, widths[0]) or [""]
        line: Line = [(_padded(first, widths[0]), row[0].mark)]
        for k in (k for run in runs for k in run):
            text = _padded(row[k].text, widths[k], sides[k])
            line += [(gap, ""), (text, row[k].mark)]
        lines += [line, *([(part, row[0].mark)] for part in rest)]
    return lines


def _padded(text: str, width: int, align: str = "<") -> str:
    spare = width - cell_len(text)
    left = {"<": 0, ">": spare, "^": (spare + 1) // 2}[align]
    return " " * left + text + " " * (spare - left)


# -- pages and markup -----------------------------------------------------------------------------


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()

    def __html__(self) -> str:
        """The text for templates, which escape whatever has none."""
        return self


def render(template: str, **values: Any) -> Markup:
    """Fill in a template, named from the package on, by values.

    In markup, texts are escaped and shown without control characters; `Markup` is taken as it is.
    """
    return Markup(_environment().get_template(template).render(values))


def asset(name: str) -> Markup:
    """The text of a file, named from the package on."""
    return Markup((_PACKAGE / name).read_text(encoding="utf-8"))


@cache
def _environment() -> Any:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_PACKAGE),
        autoescape=lambda name: name is not None and name.endswith(".html"),
        finalize=_shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False}
    environment.globals["asset"] = asset
    environment.filters["markdown"] = _markdown
    environment.filters["g"] = lambda value: f"{value:g}"
    return environment


def _shown(value: Any) -> Any:
    """A text without control characters; no-break spaces stay."""
    if type(value) is not str:
        return value
    return _JOINED.join(map(printable, value.split(_JOINED)))


def _markdown(text: str) -> Markup:
    """Text in which Markdown sees nothing of its own."""
    return Markup(re.sub(r"([\\`*_|<>#\[\]])", r"\\\1", text))
