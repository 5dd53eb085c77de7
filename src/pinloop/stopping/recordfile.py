"""Tables of recorded joint motion (CSV) as people's machines write them.

Text to names and numbers in SI units, each complaint with file, line and column. Knows no robot.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..errors import BadValue, LoadError, UnknownName

__all__ = ["RecordTable", "read_table"]

Array = NDArray[np.float64]

_TIME_NAMES = {"t", "time", "timestamp"}
_TIME_UNITS = {"s": 1.0, "sec": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9}
_UNITS = {
    "rad": ("rad", 1.0),
    "mrad": ("rad", 1e-3),
    "deg": ("rad", np.pi / 180),
    "°": ("rad", np.pi / 180),
    "m": ("m", 1.0),
    "cm": ("m", 1e-2),
    "mm": ("m", 1e-3),
}
_BRACKETS = re.compile(r"(?P<name>.*?)\s*(?:\[(?P<square>[^\]]*)\]|\((?P<round>[^)]*)\))")
_ENDING = re.compile(r"(?P<name>.+)_(?P<unit>[a-z]+)")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, eq=False)
class RecordTable:
    """What a file says.

    Args:
        joints: names of the joints.
        t: times [s], shape (k,).
        values: coordinates [rad, m], shape (k, len(joints)).
        units: per joint "rad", "m", or "" where the file does not say.
    """

    joints: tuple[str, ...]
    t: Array
    values: Array
    units: tuple[str, ...]


@dataclass(frozen=True)
class _Column:
    """A column that is read: its place, what it is called, its factor to SI."""

    index: int
    title: str
    name: str
    unit: str
    factor: float

    def __str__(self) -> str:
        return f"column {self.index + 1} ('{self.title}')"


@dataclass(frozen=True)
class _Row:
    line: int
    cells: list[str]


def read_table(path: str | Path, joints: Sequence[str] | None = None) -> RecordTable:
    """Read a table of times and joint coordinates.

    Args:
        path: the file.
        joints: joints to take; every column but the time by default.

    Raises:
        LoadError: names the file, the line and the column.
    """
    source = str(path)
    rows = list(_rows(_text(path), source))
    header, samples = _header(rows, source)
    width = len(header.cells)
    while width and not header.cells[width - 1] and not any(
        any(row.cells[width - 1 :]) for row in samples
    ):
        width -= 1  # every line ends with a separator
    time, columns = _columns(header, width, joints, source)
    if len(samples) < 2:
        raise LoadError(
            f"{len(samples)} samples; a motion needs at least 2 (better 4)",
            source=source, line=header.line,
        )  # fmt: skip
    numbers = np.array([_sample(row, width, (time, *columns), source) for row in samples])
    late = np.flatnonzero(np.diff(numbers[:, 0]) <= 0)
    if late.size:
        k = int(late[0])
        raise LoadError(
            f"{time}: time {samples[k + 1].cells[time.index]} is not after "
            f"{samples[k].cells[time.index]} in line {samples[k].line}; times must increase",
            source=source, line=samples[k + 1].line,
        )  # fmt: skip
    names, units = (tuple(getattr(c, key) for c in columns) for key in ("name", "unit"))
    return RecordTable(names, numbers[:, 0], numbers[:, 1:], units)


def _text(path: str | Path) -> str:
    """The text of a file: UTF-8 or UTF-16 with byte order mark, else Windows' Western encoding."""
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise LoadError(f"cannot be read: {error}", source=str(path)) from None
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
        raise LoadError("is not a text; save the recording as CSV in UTF-8", source=str(path))
    return text


def _rows(text: str, source: str) -> Iterator[_Row]:
    """The rows that are not empty, cells stripped."""
    lines = [line for line in text.splitlines() if line.strip()]
    first = next((line for line in lines if not _is_separator_line(line)), "")
    unquoted = re.sub(r'"[^"]*"', "", first)
    delimiter = next((mark for mark in ";\t" if mark in unquoted), ",")
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True, strict=True
    )
    try:
        for cells in reader:
            stripped = [cell.strip() for cell in cells]
            # A comma that does not separate is a decimal point.
            if delimiter != ",":
                stripped = [_with_point(cell) for cell in stripped]
            if any(stripped) and not _is_separator_line(delimiter.join(cells)):
                yield _Row(reader.line_num, stripped)
    except csv.Error as error:
        raise LoadError(f"malformed CSV: {error}", source=source, line=reader.line_num) from None
...
