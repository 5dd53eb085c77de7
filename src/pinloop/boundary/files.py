"""Files that users name: the one place that reads and writes them. Knows no format but JSON.

What is read is a regular file or a pipe, up to a size that the message names. What is written takes
its place as a whole: a full disk or an interruption leaves what was there before. Pipes and devices
are written to and never replaced.
"""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from secrets import token_hex
from typing import Any, BinaryIO, TextIO

from ..errors import BadValue, LoadError, PinloopError, shown, suggestion

_LARGEST = 2**24
"""Bytes of a file that people write."""
_PATIENCE = 60.0
"""How long a pipe may be silent [s]."""
_CHUNK = 2**20
_ALIKE = 0.8
"""How much alike the name of a file is to the one that was meant, as `difflib` counts it."""
_ENDS = 4096
"""Bytes of a file in which a mark is looked for, at each of its ends."""


def as_path(path: object, what: str = "path") -> Path:
    """Return a path as such; a `BadValue` if it is none."""
    if not isinstance(path, (str, Path)):
        raise BadValue(f"{what} is {shown(path)} ({type(path).__name__}); give the path of a file")
    return Path(path)


def as_target(path: object, what: str = "path") -> Path:
    """Return the path of a file to be written, which has a name; see `as_path`."""
    target = as_path(path, what)
    if not target.name:
        raise BadValue(f"{what} is '{target}', a folder; name a file in it")
    return target


def read_bytes(path: str | Path, kind: str = "file", largest: int = _LARGEST) -> bytes:
    """Return the content of a file or pipe of at most so many bytes; a `LoadError` says why not.

    ``kind`` is what it should be, for messages: "study file".
    """
    source = str(as_path(path))

    def refuse(problem: str) -> LoadError:
        return LoadError(problem, source=source)

    descriptor = None
    try:
        # A pipe that nobody writes to would never be open.
        descriptor = os.open(source, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise refuse(f"is a folder; name the {kind} in it")
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            raise refuse(f"is a device; a {kind} is a file or a pipe")
        chunks: list[bytes] = []
        size = 0
        while size <= largest:
            if stat.S_ISFIFO(mode) and not select.select([descriptor], [], [], _PATIENCE)[0]:
                raise refuse(f"is a pipe into which nothing was written for {_PATIENCE:g} s")
            chunk = os.read(descriptor, _CHUNK)
            if not chunk:
                return b"".join(chunks)
            chunks.append(chunk)
            size += len(chunk)
    except PinloopError:
        raise
    except FileNotFoundError:
        raise refuse(no_such_file(path)) from None
    except (OSError, ValueError) as error:
        raise refuse(f"cannot be read: {_reason(error)}") from None
    finally:
        if descriptor is not None:
            os.close(descriptor)
    raise refuse(f"is larger than {largest >> 20} MiB; this is no {kind}")


def no_such_file(path: str | Path) -> str:
    """Say that a file is not there, and which one beside it may be meant."""
    try:
        names = os.listdir(Path(path).parent)
    except OSError:
        names = []
    return "no such file" + suggestion(Path(path).name, names, _ALIKE)


@contextmanager
def replace_file(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file to be written; it takes its place when all has been written.

    A link stays one; pipes and devices are written to directly. Where it cannot be written, which
    is a `BadValue`, what was there before is still there.
    """
    given = as_path(path)
    try:
        target = Path(os.path.realpath(given))
        if target.is_dir():
            raise BadValue(f"{given} is a folder; name a file in it")
        if target.exists() and not target.is_file():
            with target.open("wb") as file:
                yield file
            return
        partial = target.with_name(f".pinloop-{token_hex(8)}")
        try:
            with partial.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                shutil.copymode(target, partial)
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
    except PinloopError:
        raise
    except (OSError, ValueError) as error:
        raise not_written(given, error) from None


@contextmanager
def replace_text_file(path: str | Path) -> Iterator[TextIO]:
    """Open a text file to be written, in UTF-8, line ends as given; see `replace_file`."""
    with replace_file(path) as file:
        text = TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        yield text
        text.flush()
        text.detach()


def write_file(path: str | Path, write: Callable[[BinaryIO], object]) -> Path:
    """Write a file by a function that fills it, and return its path; see `replace_file`."""
    with replace_file(path) as file:
        write(file)
    return Path(path)


def write_text(path: str | Path, text: str) -> Path:
    """Write a text file and return its path; see `replace_file`."""
    return write_file(path, lambda file: file.write(text.encode()))


def json_text(
    document: object, *, indent: int | None = 2, ascii_only: bool = True, finite: bool = True
) -> str:
    """A document as text, with so many blanks per level; None for one line.

    ``ascii_only`` escapes other letters, for terminals and scripts in pages; ``finite`` refuses
    infinities and NaN, which only Python reads back.
    """
    return json.dumps(document, indent=indent, allow_nan=not finite, ensure_ascii=ascii_only)


def json_values(document: object) -> Any:
    """A document as JSON gives it back: tuples are lists, keys are texts; infinities stay."""
    return json.loads(json_text(document, finite=False))


def write_json(path: str | Path, document: object, *, finite: bool = True) -> Path:
    """Write a document to a file, in UTF-8; see `json_text`."""
    return write_text(path, json_text(document, ascii_only=False, finite=finite) + "\n")


def check_target(path: Path, taken: Iterable[Path], label: str = "", *, force: bool = True) -> None:
    """Refuse before anything is computed what could not be written, or would destroy something.

    ``taken`` are files that are read, or written otherwise; ``label`` is how the path was named,
    for messages: "--csv stop.csv". Pipes and devices take what comes.
    """
    label = label or str(path)
    if path.is_dir():
        raise BadValue(f"'{label}' is a folder; name a file in it")
    if path.exists() and not path.is_file():
        return
    if not path.parent.is_dir():
        raise not_written(path, FileNotFoundError())
    # What is written is written beside, and then takes its place.
    if not all(os.access(place, os.W_OK) for place in (path.parent, path) if place.exists()):
        raise BadValue(f"'{label}' cannot be written: permission denied")
    if os.path.realpath(path) in map(os.path.realpath, taken):
        raise BadValue(f"'{label}' is a file that is used already; name another")
    if path.exists() and not force:
        raise BadValue(f"{path} exists; add --force to overwrite it, or name another with -o")


def may_replace(path: Path, mark: bytes | re.Pattern[bytes]) -> bool:
    """Whether a file is not there, is empty, or was written by pinloop, as a mark in it tells.

    Args:
        path: the file; pipes and devices are written to, not replaced.
        mark: what stands in the head or at the end of such files of pinloop.
    """
    if not os.path.isfile(path):
        return True
    try:
        with path.open("rb") as file:
            head = file.read(_ENDS)
            file.seek(max(0, path.stat().st_size - _ENDS))
            tail = file.read()
            if isinstance(mark, bytes):
                mark = re.compile(re.escape(mark))
            return not head or any(map(mark.search, (head, tail)))
    except OSError as error:
        raise not_written(path, error) from None


def not_written(path: str | Path, error: Exception) -> BadValue:
    """Say why a file was not written, and what helps."""
    reason = _reason(error)
    if isinstance(error, FileNotFoundError) and not Path(path).parent.is_dir():
        reason = f"there is no folder '{Path(path).parent}'; make it first"
    return BadValue(f"{path} cannot be written: {reason}")


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error)).lower()


def data_frame(columns: Mapping[str, Any]) -> Any:
    """Columns as a `pandas.DataFrame`, which needs the extra ``pandas``."""
    try:
        return import_module("pandas").DataFrame(columns)
    except ImportError:
        raise BadValue("a data frame needs pandas: pip install pandas") from None


def require_pyarrow(way_out: str) -> tuple[Any, Any]:
    """The modules ``pyarrow`` and ``pyarrow.parquet``, which only Parquet files need."""
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise BadValue(f"Parquet needs pyarrow: pip install pyarrow, {way_out}") from None
