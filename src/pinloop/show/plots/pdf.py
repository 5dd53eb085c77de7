"""Reports as PDF, set on pages of A4 with matplotlib; what a report says is in `tables.report`.

The same report gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath

from ...boundary.files import replace_file
from ...tables.report import Cell, KeyValues, Mark, Notes, Report, Table

_PAGE, _MARGIN = (595.0, 842.0), 50.0
"""Width and height of a page, and its margins [points]."""
_TITLE, _HEADING, _TEXT, _SMALL = 15.0, 10.0, 8.0, 6.5
"""Sizes of letters [points]."""
_LEADING, _GAP = 1.35, 9.0
"""Distance of lines in sizes, and of columns in points."""
_LEAST = 5.0
"""Letters of wide tables are made smaller, down to this [points]."""
_WIDEST = 0.62
"""Part of the width that a column of texts may take before its texts are wrapped."""
_GREY, _BAND = "#5a6472", "#f2f4f7"
_COLORS: dict[Mark, str] = {"good": "#1b7f4b", "bad": "#b3261e", "caution": "#8a5a00"}
_MEASURE = TextToPath()


def _width(text: str, size: float, *, bold: bool = False) -> float:
    """Width of a text [points]."""
    font = FontProperties(size=size, weight="bold" if bold else "normal")
    return float(_MEASURE.get_text_width_height_descent(text, font, ismath=False)[0])


def _wrapped(text: str, room: float, size: float, *, bold: bool = False) -> list[str]:
    """A text in lines that fit; a word that is too long stands out."""
    lines, line = [], ""
    for word in text.split(" "):
        longer = f"{line} {word}".strip()
        if line and _width(longer, size, bold=bold) > room:
            lines.append(line)
            longer = word
        line = longer
    return [*lines, line]


@dataclass
class _Pages:
    """Pages that are being filled from the top.

    Args:
        figures: the pages.
        y: where the next line begins, from the bottom [points].
    """

    figures: list[Figure] = field(default_factory=list)
    y: float = 0.0

    @property
    def room(self) -> float:
        """Width of the text [points]."""
        return _PAGE[0] - 2 * _MARGIN

    def turn(self) -> None:
        """Begin a page."""
        self.figures.append(Figure(figsize=(_PAGE[0] / 72.0, _PAGE[1] / 72.0)))
        self.y = _PAGE[1] - _MARGIN

    def need(self, height: float) -> bool:
        """Turn the page if so much does not fit on it; whether it was turned."""
        full = not self.figures or self.y - height < 1.3 * _MARGIN
        if full:
            self.turn()
        return full

    def write(
        self, x: float, text: str, size: float, *, bold: bool = False, color: str = "black",
        right: bool = False, page: int = -1, y: float | None = None,
    ) -> None:  # fmt: skip
        """Write a text from ``x``, or up to it, on the line at ``y`` [points]."""
        self.figures[page].text(
            x / _PAGE[0],
            (self.y - size if y is None else y) / _PAGE[1],
            text,
            size=size,
            weight="bold" if bold else "normal",
            color=color,
            ha="right" if right else "left",
            va="baseline",
            parse_math=False,
        )

    def band(self, height: float, color: str, width: float) -> None:
        """Shade a strip below the top of the line."""
        from_left, bottom = _MARGIN / _PAGE[0], (self.y - height) / _PAGE[1]
        axes = self.figures[-1].add_axes((from_left, bottom, width / _PAGE[0], height / _PAGE[1]))
        axes.set_facecolor(color)
        axes.set(xticks=[], yticks=[])
        for spine in axes.spines.values():
            spine.set_visible(False)
        axes.set_zorder(-1)

    def paragraph(self, text: str, size: float, *, x: float = 0.0, color: str = "black") -> None:
        """Write a text in as many lines as it needs, ``x`` from the margin [points]."""
        for line in _wrapped(text, self.room - x, size):
            self.need(_LEADING * size)
            self.write(_MARGIN + x, line, size, color=color)
            self.y -= _LEADING * size

    def heading(self, text: str, height: float) -> None:
        """Write the heading of a block of which so much is to stand below it on the page."""
        self.need(2.4 * _HEADING + height)
        self.y -= 0.9 * _HEADING
        self.write(_MARGIN, text, _HEADING, bold=True)
        self.y -= 1.6 * _HEADING


def write_pdf(report: Report, path: str | Path) -> Path:
    """Write a report as PDF, and return its path."""
    pages = _Pages()
    pages.turn()
    color = _COLORS.get(report.title.mark, "black")
    for line in _wrapped(report.title.text, pages.room, _TITLE, bold=True):
        pages.write(_MARGIN, line, _TITLE, bold=True, color=color)
        pages.y -= _LEADING * _TITLE
    for block in report.blocks:
        if isinstance(block, Table):
            for part in _parts(block, pages.room):
                _set_table(pages, part)
        elif isinstance(block, KeyValues):
            _set_entries(pages, block)
        else:
            _set_notes(pages, block)
    for k, line in enumerate(reversed(_wrapped(report.closing, 0.8 * pages.room, _SMALL))):
        for page in range(len(pages.figures)):
            y = 0.5 * _MARGIN + k * _LEADING * _SMALL
            pages.write(_MARGIN, line, _SMALL, color=_GREY, page=page, y=y)
    for page in range(len(pages.figures)):
        number = f"{page + 1} / {len(pages.figures)}"
        right = _PAGE[0] - _MARGIN
        pages.write(right, number, _SMALL, color=_GREY, right=True, page=page, y=0.5 * _MARGIN)
    dates = {"CreationDate": None, "Producer": None, "Creator": None, "Title": report.title.text}
    with replace_file(path) as file, PdfPages(file, metadata=dates) as book:
        for figure in pages.figures:
            book.savefig(figure)
    return Path(path)


def _set_entries(pages: _Pages, block: KeyValues) -> None:
    """Names on the left, what they are beside them."""
    pages.heading(block.title, 3 * _LEADING * _TEXT)
    left = max(_width(name, _TEXT) for name, _ in block.entries) + _GAP
    for name, cell in block.entries:
        pages.need(_LEADING * _TEXT)
        pages.write(_MARGIN, name, _TEXT, color=_GREY)
        pages.paragraph(cell.text, _TEXT, x=left, color=_COLORS.get(cell.mark, "black"))


def _set_notes(pages: _Pages, block: Notes) -> None:
    pages.heading(block.title, 3 * _LEADING * _TEXT)
    for item in block.items:
        pages.need(_LEADING * _TEXT)
        pages.write(_MARGIN, "\N{EN DASH}", _TEXT, color=_COLORS.get(block.mark, _GREY))
        pages.paragraph(item.replace("\N{NO-BREAK SPACE}", " "), _TEXT, x=_GAP)
        pages.y -= 0.2 * _TEXT


# -- tables ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Layout:
    """Where the columns of a table are.

    Args:
        size: of its letters [points].
        widths: of its columns [points].
    """

    table: Table
    size: float
    widths: tuple[float, ...]

    def spans(self) -> Iterator[tuple[float, float]]:
        """Left and right end of each column, from the margin [points]."""
        x = 0.0
        for width in self.widths:
            yield x, x + width
            x += width + _GAP

    @property
    def width(self) -> float:
        """Right end of the last column [points]."""
        return sum(self.widths) + _GAP * (len(self.widths) - 1)

    def lines(self, row: Sequence[Cell]) -> list[list[str]]:
        """The lines of each cell of a row."""
        return [
            _wrapped(cell.text, width + 0.1, self.size)
            for cell, width in zip(row, self.widths, strict=True)
        ]


def _laid_out(table: Table, room: float) -> _Layout:
    """Columns as wide as their texts; smaller letters where that is too wide for the page."""
    size = _TEXT
    while True:
        widths = []
        for k, column in enumerate(table.columns):
            texts = [row[k].text for row in table.rows]
            widest = max(_width(text, size) for text in [*texts, column.heading_under])
            widths.append(widest if column.right else min(widest, _WIDEST * room))
        for run in table.runs():
            over = _width(table.heading_over(run), size)
            widths[run[0]] += max(0.0, over - sum(widths[k] for k in run) - _GAP * (len(run) - 1))
        layout = _Layout(table, size, tuple(widths))
        if layout.width <= room or size <= _LEAST:
            return layout
        size -= 0.5


def _parts(table: Table, room: float) -> Iterator[_Layout]:
    """A table, cut into several with the same first column where it is too wide."""
    layout, runs = _laid_out(table, room), table.runs()
    if len(runs) < 2 or layout.width <= room:
        yield layout
        return
    for half in (runs[: len(runs) // 2], runs[len(runs) // 2 :]):
        chosen = [0, *(k for run in half for k in run)]
        rows = tuple(tuple(row[k] for k in chosen) for row in table.rows)
        yield from _parts(Table(table.title, tuple(table.columns[k] for k in chosen), rows), room)


def _set_table(pages: _Pages, layout: _Layout) -> None:
    """Headings, again on each page, and rows, every other one shaded."""
    table = layout.table
    step = _LEADING * layout.size
    pages.heading(table.title, 5 * step)
    _set_headings(pages, layout)
    for number, row in enumerate(table.rows):
        cells = layout.lines(row)
        height = step * max(map(len, cells))
        if pages.need(height):
            _set_headings(pages, layout)
        if number % 2:
            pages.band(height, _BAND, layout.width)
        top = pages.y
        for k, ((left, right), lines) in enumerate(zip(layout.spans(), cells, strict=True)):
            aligned, color = table.columns[k].right, _COLORS.get(row[k].mark, "black")
            x = _MARGIN + (right if aligned else left)
            for n, line in enumerate(lines):
                y = top - layout.size - n * step
                bold = row[k].mark == "title"
                pages.write(x, line, layout.size, right=aligned, color=color, bold=bold, y=y)
        pages.y = top - height
    pages.y -= 0.4 * step


def _set_headings(pages: _Pages, layout: _Layout) -> None:
    """Two lines: what runs of columns have in common, and what each has."""
    table, size, spans = layout.table, layout.size, [*layout.spans()]
    step = _LEADING * size
    for run in table.runs():
        over, right = table.heading_over(run), table.columns[run[0]].right
        x = spans[run[-1]][1] if right else spans[run[0]][0]
        pages.write(_MARGIN + x, over, size, color=_GREY, right=right)
    pages.y -= step
    for column, (left, right_end) in zip(table.columns, spans, strict=True):
        x = right_end if column.right else left
        under = column.heading_under
        pages.write(_MARGIN + x, under, size, color=_GREY, right=column.right)
    pages.y -= step
    pages.band(0.6, "#c3c9d1", layout.width)
    pages.y -= 0.3 * step
