"""The files that a study writes while it runs: nothing done is lost or done twice.

**Rows** are lines of a CSV file, flushed to the disk in batches. Each ends in a checksum (CRC-32)
of what stands before it in the line, so that no changed value is taken for a result. What a kill
leaves of a last line is cut off on resume. A manifest beside it has everything that the numbers
depend on, as plain data: the file of another study is not appended to.

**Stops.** The file of stops has one record per stop: number of the case, length, checksum, and the
pickled fields of its `StopResult`. What a stop shares with all others of its `Setup` (robot, drive
train, equations) is referred to by a name. Reading makes dataclasses, named tuples and arrays of
them, and calls nothing else that a pickle may name.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import pickle
import struct
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from ...boundary.csv import csv_line
from ...boundary.files import json_text, json_values, may_replace, read_bytes, write_json
from ...errors import PinloopError
from ..brakes.joint_brake import FrozenTable
from ..stopping import StopResult

Row = Mapping[str, float | str]

_CHECKSUM = "checksum"
"""Last column of the file; not one of the study's."""


class Journal:
    """Rows of a study on the disk.

    ``path``: the CSV file; ``names``: names of its columns, the first one the number of the case;
    ``manifest``: what study it is; must be the same on resume.

    Attributes:
        done: number of cases that are on the disk: 0 to ``done - 1``, in order.
    """

    def __init__(self, path: Path, names: Sequence[str], manifest: Mapping[str, Any]) -> None:
        if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
            raise PinloopError(f"'{path}' is no file; results are read again, so they need one")
        self.path, self.names = path, list(names)
        self._first = csv_line([*self.names, _CHECKSUM]).encode()
        self.beside = path.with_name(path.name + ".manifest.json")
        self._manifest = json_values(manifest)
        self._stops = StopFile(path, digest_of(manifest))
        self._end, self._stops_end = 0, self._stops.begin()
        self.done = self._resume() if os.path.exists(path) else self._begin()

    @property
    def has_room(self) -> bool:
        """Whether all stops are kept, not only the worst."""
        return self._stops_end < _MOST

    def append(self, rows: Sequence[Row], stops: Sequence[tuple[int, bytes]] = ()) -> None:
        """Add rows; they are on the disk when this returns.

        ``stops``: packed stops of some of these cases, with their numbers.
        """
        data = b"".join(
            _sealed([_shown(row[name]) if name in row else "" for name in self.names])
            for row in rows
        )
        try:
            with self.path.open("r+b") as file:
                if file.seek(0, os.SEEK_END) != self._end:
                    raise PinloopError(
                        f"'{self.path}' has been changed while the study was running; does the "
                        "same study run twice? Run it once, it goes on from what is in the file"
                    )
                if stops:
                    self._stops_end = self._stops.append(self._stops_end, stops)
                try:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                except OSError:
                    # Part of it may be there: what was before is kept, so that resuming is clean.
                    os.ftruncate(file.fileno(), self._end)
                    raise
        except OSError as error:
            raise PinloopError(
                f"'{error.filename or self.path}' cannot be written ({error.strerror}); "
                f"{self.done} cases are done: make room and start the same study again, and it "
                "goes on from there"
            ) from error
        self._end += len(data)
        self.done += len(rows)

    def recount(self) -> None:
        """Count again what is on the disk, after an interruption at any point."""
        self.done = self._resume()

    def _begin(self) -> int:
        """Start a file."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if not may_replace(self.beside, json_text(next(iter(self._manifest))).encode()):
                raise PinloopError(
                    f"'{self.beside}' exists and is no manifest of a study; give another file for "
                    "the results"
                )
            write_json(self.beside, self._manifest, finite=False)
            self._end = self.path.write_bytes(self._first)
        except OSError as error:
            raise PinloopError(f"'{self.path}' cannot be written: {error.strerror}") from error
        return 0

    def _resume(self) -> int:
        """Count what has been done; cut off what a kill left of a last line."""
        self._check_manifest()
        count = 0
        try:
            with self.path.open("rb") as file:
                head = _read_head(file)
            if len(head) < len(self._first) and self._first.startswith(head):
                return self._begin()  # killed before its first line was written
            self._end = len(head)
            for line, _ in _records(self.path, self.names):
                count, self._end = count + 1, self._end + len(line)
            if self._end < self.path.stat().st_size:
                os.truncate(self.path, self._end)
        except PinloopError:
            raise
        except (OSError, ValueError, csv.Error) as error:
            raise unreadable(self.path, error) from error
        return count

    def _check_manifest(self) -> None:
        try:
            before = json.loads(read_bytes(self.beside, "manifest"))
        except ValueError as error:
            raise PinloopError(
                f"'{self.path}' exists, but its manifest '{self.beside.name}' cannot be read "
                f"({error}); move the results away to start anew"
            ) from error
        before = before if isinstance(before, dict) else {}
        for key in dict.fromkeys([*self._manifest, *before]):
            if before.get(key) != self._manifest.get(key):
                what = _difference(before.get(key), self._manifest.get(key))
                raise PinloopError(
                    f"'{self.path}' holds another study: its {key} is {what}; give another file "
                    "for the results"
                )


def read_rows(path: Path, names: Sequence[str], count: int) -> Iterator[dict[str, float | str]]:
    """The first rows of a results file with these columns, one by one, numbers as numbers."""
    try:
        for cells in read_cells(path, names, count):
            texts = dict(zip(names, cells, strict=True))
            yield {
                name: text if name in ("outcome", "reason") else float(text or "nan")
                for name, text in texts.items()
            }
    except ValueError as error:
        raise unreadable(path, error) from error


def read_cells(path: Path, names: Sequence[str], count: int) -> Iterator[list[str]]:
    """The first rows of a results file with these columns, one by one, as they are written."""
    read = 0
    try:
        for _, cells in islice(_records(path, names), count):
            yield cells
            read += 1
        if read < count:
            raise ValueError(f"it has {read} rows, not {count}")
    except (OSError, ValueError, csv.Error) as error:
        raise unreadable(path, error) from error


def _records(path: Path, names: Sequence[str]) -> Iterator[tuple[bytes, list[str]]]:
    """The whole lines of a results file behind its first, with their cells, checked.

    A `ValueError` if the file is not as it was written.
    """
    with path.open("rb") as file:
        head = io.StringIO(_read_head(file).decode(), newline="")
        if next(csv.reader(head), []) != [*names, _CHECKSUM]:
            raise ValueError("its columns are not those of this study")
        for count, line in enumerate(file):
            if not line.endswith(b"\n"):
                return
            text, _, seal = line[:-1].rpartition(b",")
            if seal != _seal(text):
                raise ValueError(
                    f"line {count + 2} was changed: it does not agree with its checksum"
                )
            cells = next(csv.reader([text.decode()]), [])
            if len(cells) != len(names) or int(cells[0]) != count:
                raise ValueError(f"line {count + 2} is not case {count}")
            yield line, cells


def _read_head(file: BinaryIO) -> bytes:
    """The names of columns, which have line breaks in them where names of joints do."""
    head = file.readline()
    while head.count(b'"') % 2 and (more := file.readline()):
        head += more
    return head


def _sealed(cells: Sequence[str]) -> bytes:
    """Cells as a line of the file, with its checksum."""
    text = csv_line(cells).encode()[:-1]
    return text + b"," + _seal(text) + b"\n"


def _seal(text: bytes) -> bytes:
    """The checksum of a line; any change of up to 32 bits in a row gives another one."""
    return f"{zlib.crc32(text):08x}".encode()


def unreadable(path: Path, error: Exception) -> PinloopError:
    """What to say of a results file that cannot be read."""
    return PinloopError(
        f"the results file '{path}' cannot be read ({error}); move it away to start anew"
    )


def _shown(value: float | str) -> str:
    """A cell; numbers keep their last digit."""
    if isinstance(value, str):
        return value
    return (
        str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))
    )


def _difference(before: object, now: object) -> str:
    """Two values, cut where they are long; of lists of the same length where they differ first."""
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        before, now = next((a, b) for a, b in zip(before, now, strict=True) if a != b)
    texts = (json_text(value, indent=None, finite=False) for value in (before, now))
    return ", not ".join(text if len(text) <= 60 else text[:57] + "..." for text in texts)


def digest_of(manifest: Mapping[str, Any]) -> str:
    """The digest by which files beside the results know their study."""
    return digest(json_text(json_values(manifest)))


def digest(*parts: Any) -> str:
    """The digest of plain values."""
    return hashlib.sha256("\n".join(map(repr, parts)).encode()).hexdigest()


# -- stops ---------------------------------------------------------------------------------------

_STOPS = b"pinloop-stops-1 "
_RECORD = struct.Struct("<QII")
"""Number of the case, length of the stop [bytes], its CRC-32."""
_MOST = 2**22
"""Size of the file up to which every stop is kept [bytes]: 700 stops of a six-axis arm. Packing one
takes a fifth of the time that the stop takes, and of most nobody asks again."""


class StopFile:
    """Stops of a study on the disk.

    ``results``: the CSV file of the study; ``study``: digest of what study it is; a file of another
    one holds no stop of it.
    """

    def __init__(self, results: Path, study: str) -> None:
        self.path = results.with_name(results.name + ".stops")
        self._head = _STOPS + study.encode() + b"\n"

    @cached_property
    def places(self) -> dict[int, tuple[int, int, int]]:
        """Begin and length in the file, and checksum, by number of the case."""
        return {case: place for case, *place in self._scan()}  # type: ignore[misc]

    def read(self, case: int) -> bytes | None:
        """The packed stop of a case; None if the file does not have it as it was written."""
        if case not in self.places:
            return None
        start, length, check = self.places[case]
        with self.path.open("rb") as file:
            file.seek(start)
            data = file.read(length)
        return data if zlib.crc32(data) == check else None

    def begin(self) -> int:
        """Prepare the file for `append`; a `PinloopError` if pinloop did not write what is there.

        It says where to append: behind the last whole record, or at 0 if there is none of this
        study.
        """
        if not may_replace(self.path, _STOPS):
            raise PinloopError(
                f"'{self.path}' exists and is no file of stops; name another results file"
            )
        return max((start + length for _, start, length, _ in self._scan()), default=0)

    def append(self, end: int, stops: Sequence[tuple[int, bytes]]) -> int:
        """Write packed stops with the numbers of their cases; say where they end.

        ``end``: where the last ones end; what is behind is cut off.
        """
        records = [_RECORD.pack(case, len(x), zlib.crc32(x)) + x for case, x in stops]
        with self.path.open("r+b" if end else "wb") as file:
            file.seek(end)
            file.truncate()
            file.write(b"".join(records if end else [self._head, *records]))
            return file.tell()

    def _scan(self) -> Iterator[tuple[int, int, int, int]]:
        """Case, begin, length and checksum of each whole record."""
        try:
            with self.path.open("rb") as file:
                size = file.seek(0, io.SEEK_END)
                file.seek(0)
                if file.read(len(self._head)) == self._head:
                    yield from _stops_in(file, size)
        except (OSError, ValueError):  # the latter for names that no file can have
            return  # no stop can be had from it


def _stops_in(file: BinaryIO, size: int) -> Iterator[tuple[int, int, int, int]]:
    while len(record := file.read(_RECORD.size)) == _RECORD.size:
        case, length, check = _RECORD.unpack(record)
        start = file.tell()
        if start + length > size:
            return
        yield case, start, length, check
        file.seek(length, io.SEEK_CUR)


# -- stops as bytes -------------------------------------------------------------------------------

_NUMPY = {"_frombuffer", "_reconstruct", "dtype", "ndarray", "scalar"}
"""What pickles of arrays and of their numbers name."""


class _Packer(pickle.Pickler):
    def __init__(self, file: BinaryIO, shared: Mapping[str, object]) -> None:
        super().__init__(file, protocol=5)
        self._names = {id(value): name for name, value in shared.items()}
        # Asked for far fewer values than `persistent_id` is, which earlier versions had.
        self.dispatch_table = dict.fromkeys(map(type, shared.values()), self._reduced)

    def _reduced(self, value: object) -> Any:
        name = self._names.get(id(value))
        return value.__reduce_ex__(5) if name is None else (_shared, (name,))


def _shared(name: str) -> object:
    """Stands for what is referred to by name."""
    raise KeyError(name)


class _Unpacker(pickle.Unpickler):
    def __init__(self, file: BinaryIO, shared: Mapping[str, object]) -> None:
        super().__init__(file)
        self._shared = shared

    def persistent_load(self, name: str) -> object:
        return self._shared[name]

    def find_class(self, module: str, name: str) -> Any:
        # Nothing is imported, and no function is called but those that make arrays.
        value, package = getattr(sys.modules.get(module), name, None), module.split(".")[0]
        plain = is_dataclass(value) or hasattr(value, "_fields") or value is FrozenTable
        if value is _shared:
            return self.persistent_load
        if package == "numpy" and name in _NUMPY:
            return value
        if package == "pinloop" and isinstance(value, type) and plain:
            return value
        raise pickle.UnpicklingError(f"{module}.{name} is no data")


def pack_stop(stop: StopResult, shared: Mapping[str, object]) -> bytes:
    """A stop as bytes; none if it holds something of the user's that cannot be pickled.

    ``shared``: what is referred to, by name.
    """
    file = io.BytesIO()
    try:
        _Packer(file, shared).dump(stop)
    except (pickle.PicklingError, TypeError, AttributeError):
        return b""
    return zlib.compress(file.getvalue(), 1)


def unpack_stop(data: bytes, shared: Mapping[str, object]) -> StopResult | None:
    """A stop from its bytes; None if they name what is no data, such as a class of the user's.

    ``data``: as of `pack_stop`; ``shared``: what they refer to, by name.
    """
    try:
        stop = _Unpacker(io.BytesIO(zlib.decompress(data)), shared).load()
    except (pickle.UnpicklingError, KeyError, ValueError, TypeError, AttributeError, zlib.error):
        return None
    return stop if isinstance(stop, StopResult) else None
