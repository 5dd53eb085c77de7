"""Tables as CSV: files to rows of cells that know their line, and rows to files.

Knows no columns. Separators and decimal signs are those that spreadsheets of any country write.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ..errors import LoadError
from .files import read_bytes, replace_text_file

_LARGEST = 256 * 2**20
"""Bytes of a table."""
_MOST_CELLS = 20_000_000
"""Cells of a table; each takes some 60 bytes of memory."""

_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d*(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)
_SEPARATOR_LINE = re.compile(r'"?sep=.?"?', re.IGNORECASE)
"""What spreadsheets write above a table to say how it is separated."""
_SPECIAL = re.compile(r'[",;\t\r\n]|^[#\s]|\s$')
"""What makes a reader take a bare cell for several, for a comment, or for one without blanks."""


class TableRow(NamedTuple):
    """A row: its line in the file, counted from 1, and its cells without blanks around them."""

    line: int
    cells: list[str]


def read_table_rows(path: str | Path, kind: str) -> list[TableRow]:
    """Return the rows of a table that are not empty; a `LoadError` if it is none.

    ``kind`` is what it should be, for messages: "recording".
    """
    source = str(path)
    text = _text(read_bytes(path, kind, _LARGEST), source)
    rows, cells = [], 0
    for row in _rows(text, source):
        cells += len(row.cells)
        if cells > _MOST_CELLS:
            raise LoadError(
                f"has more than {_MOST_CELLS:.0e} cells; leave out columns, or thin the rows",
                source=source,
            )
        rows.append(row)
    return rows


def _text(data: bytes, source: str) -> str:
    """The text of a file: UTF-8 or UTF-16 with byte order mark, else Windows' Western encoding."""
    try:
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            text = data.decode("utf-16")
        else:
            try:
                text = data.decode("utf-8-sig")
            except UnicodeDecodeError:
                text = data.decode("cp1252")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise LoadError("is not a text; save the table as CSV in UTF-8", source=source)
    return text


def _rows(text: str, source: str) -> Iterator[TableRow]:
    """The rows that are not empty, cells stripped."""
    lines = io.StringIO(text)
    first = next(filter(_is_content, lines), "")
    while first.count('"') % 2 and (more := lines.readline()):
        first += more  # a name with a line break in it
    unquoted = re.sub(r'"[^"]*"', "", first)
    delimiter = next((mark for mark in ";\t" if mark in unquoted), ",")
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True, strict=True
    )
    try:
        for cells in reader:
            row = TableRow(reader.line_num, [cell.strip() for cell in cells])
            if any(row.cells) and not _SEPARATOR_LINE.fullmatch(delimiter.join(cells).strip()):
                yield row if delimiter == "," else _with_points(row)
    except csv.Error as error:
        raise LoadError(f"malformed CSV: {error}", source=source, line=reader.line_num) from None


def _is_content(line: str) -> bool:
    """Whether a line is neither empty nor a comment, nor says how cells are separated."""
    text = line.strip()
    return bool(text) and text[0] != "#" and not _SEPARATOR_LINE.fullmatch(text)


def _with_points(row: TableRow) -> TableRow:
    """Decimal commas turned into points, where commas do not separate columns."""
    cells = [c.replace(",", ".") if _DECIMAL_COMMA.fullmatch(c) else c for c in row.cells]
    return TableRow(row.line, cells)


def write_rows(
    path: str | Path, names: Iterable[str], rows: Iterable[Iterable[str | float]]
) -> Path:
    """Write a table as CSV; numbers keep their last digit, zeros have no sign."""
    with replace_text_file(path) as file:
        file.write(csv_line(names))
        file.writelines(map(csv_line, rows))
    return Path(path)


def csv_line(cells: Iterable[str | float]) -> str:
    """Cells as a line of a table; `csv.writer` leaves some bare that no reader takes as they are.

    Numbers keep their last digit, zeros have no sign.
    """
    return ",".join(map(_written, cells)) + "\n"


def _written(cell: str | float) -> str:
    if isinstance(cell, str):
        return '"' + cell.replace('"', '""') + '"' if _SPECIAL.search(cell) else cell
    if isinstance(cell, int):
        return str(cell)
    return repr(float(cell) + 0.0)  # adding zero takes the sign from a zero
