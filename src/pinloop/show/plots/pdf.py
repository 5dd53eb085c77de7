"""Reports as PDF: the lines that `tables.report` lays out, on pages of A4, in colours.

Letters of one width keep columns in place. The same report gives the same bytes.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure
from rich.cells import cell_len

from ...boundary.files import replace_file
from ...tables.report import Line, Mark, Report, Table, block_lines, wrapped

_PAGE, _MARGIN = (595.0, 842.0), 50.0
"""Width and height of a page, and its margins [points]."""
_TITLE, _TEXT = 12.0, 7.0
"""Sizes of letters [points]."""
_LETTER, _LEADING = 0.6021, 1.4
"""Width of a letter of DejaVu Sans Mono, and distance of lines, in sizes."""
_COLORS: dict[Mark, str] = {
    "heading": "#5a6472",
    "good": "#1b7f4b",
    "bad": "#b3261e",
    "caution": "#8a5a00",
}


def columns_of(size: float) -> int:
    """How many letters of a size fit into a line."""
    return int((_PAGE[0] - 2 * _MARGIN) / (_LETTER * size))


class _Pages:
    """Pages that are filled from the top; ``heads`` are written again where the page is turned."""

    def __init__(self) -> None:
        self.figures: list[Figure] = []
        self.heads: list[Line] = []
        self._y = 0.0
        self._turn()

    def _turn(self) -> None:
        self.figures.append(Figure(figsize=(_PAGE[0] / 72.0, _PAGE[1] / 72.0)))
        self._y = _PAGE[1] - _MARGIN

    def need(self, lines: int) -> None:
        """Turn the page if so many lines do not fit on it."""
        if self._y - lines * _LEADING * _TEXT < 1.3 * _MARGIN:
            self._turn()
            for line in self.heads:
                self.write(line)

    def write(self, line: Line, size: float = _TEXT) -> None:
        """Write a line below the last one."""
        self._y -= _LEADING * size
        at = 0
        for text, mark in line:
            if text.strip():
                put(self.figures[-1], (_MARGIN + at * _LETTER * size, self._y), text, mark, size)
            at += cell_len(text)


def put(
    page: Figure, place: tuple[float, float], text: str, mark: Mark = "", size: float = _TEXT
) -> None:
    """Write a text on a page, from a place on [points]."""
    page.text(
        place[0] / _PAGE[0],
        place[1] / _PAGE[1],
        text,
        size=size,
        family="DejaVu Sans Mono",
        weight="bold" if mark == "title" else "normal",
        color=_COLORS.get(mark, "black"),
        va="baseline",
        parse_math=False,
    )


def write_pdf(report: Report, path: str | Path) -> Path:
    """Write a report as PDF, and return its path."""
    pages = _Pages()
    for text in wrapped(report.title.text, columns_of(_TITLE)):
        pages.write([(text, report.title.mark or "title")], _TITLE)
    for block in report.blocks:
        lines = block_lines(block, columns_of(_TEXT))
        pages.heads = []
        pages.need(6)
        pages.write([])
        pages.write([(block.title, "title")])
        begins = True
        for line in lines:
            for part in fold(line):
                pages.need(1)
                pages.write(part)
            head = isinstance(block, Table) and bool(line) and all(m == "heading" for _, m in line)
            pages.heads = [*([] if begins else pages.heads), line] if head else pages.heads
            begins = not head
    _close(pages.figures, report.closing)
    dates = {"CreationDate": None, "Producer": None, "Creator": None, "Title": report.title.text}
    with replace_file(path) as file, PdfPages(file, metadata=dates) as book:
        for figure in pages.figures:
            book.savefig(figure)
    return Path(path)


def fold(line: Line) -> Iterator[Line]:
    """The lines that a line takes whose last text is too long for the page."""
    *before, (text, mark) = line or [("", "")]
    at, width = sum(cell_len(part) for part, _ in before), columns_of(_TEXT)
    first, *rest = textwrap.wrap(text, max(16, width - at), drop_whitespace=True) or [""]
    if at + cell_len(text.rstrip()) <= width:
        first, rest = text, []
    yield [*before, (first, mark)]
    yield from ([(" " * at, ""), (part, mark)] for part in rest)


def _close(pages: list[Figure], closing: str) -> None:
    """Write what stands at the foot of each page, and its number."""
    lines = wrapped(closing, columns_of(_TEXT) - 10)
    for number, page in enumerate(pages, 1):
        for k, text in enumerate(reversed(lines)):
            put(page, (_MARGIN, 0.5 * _MARGIN + k * _LEADING * _TEXT), text, "heading")
        text = f"{number} / {len(pages)}"
        right = _PAGE[0] - _MARGIN - _LETTER * _TEXT * len(text)
        put(page, (right, 0.5 * _MARGIN), text, "heading")
