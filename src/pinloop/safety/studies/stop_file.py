"""The file beside the results of a study with its stops: none that was made is computed again.

One record per stop: number of the case, length, checksum, and the pickled fields of its
`StopResult`. What a stop shares with all others of its `Setup` (robot, drive train, equations) is
referred to by a name. Reading makes dataclasses, named tuples and arrays of them, and calls
nothing else that a pickle may name.
"""

from __future__ import annotations

import io
import pickle
import struct
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

from ...boundary.files import may_replace
from ...errors import PinloopError
from ..brakes.joint_brake import FrozenTable
from ..stopping import StopResult

_FORMAT = b"pinloop-stops-1 "
_RECORD = struct.Struct("<QII")
"""Number of the case, length of the stop [bytes], its CRC-32."""
_MOST = 2**30
"""Size of the file up to which every stop is kept [bytes]; a stop of a six-axis arm takes 6000."""


class StopFile:
    """Stops of a study on the disk.

    ``results``: the CSV file of the study; ``study``: digest of what study it is; a file of another
    one holds no stop of it.
    """

    def __init__(self, results: Path, study: str) -> None:
        self.path = results.with_name(results.name + ".stops")
        self._head = _FORMAT + study.encode() + b"\n"

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
        """Prepare the file for `append`.

        Returns:
            Where to append: behind its last whole record, or 0 if there is none of this study.

        Raises:
            PinloopError: there is a file that pinloop did not write.
        """
        if not may_replace(self.path, _FORMAT):
            raise PinloopError(
                f"'{self.path}' exists and is no file of stops; name another results file"
            )
        end = 0
        for _, start, length, _ in self._scan():
            end = start + length
        return end

    def append(self, end: int, stops: Sequence[tuple[int, bytes]]) -> int:
        """Write packed stops with the numbers of their cases.

        ``end``: where the last ones end; what is behind is cut off.

        Returns:
            Where these end.
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
                    yield from _records(file, size)
        except (OSError, ValueError):  # the latter for names that no file can have
            return  # no stop can be had from it

    @staticmethod
    def has_room(end: int) -> bool:
        """Whether stops are kept that are not among the worst."""
        return end < _MOST


def _records(file: BinaryIO, size: int) -> Iterator[tuple[int, int, int, int]]:
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
        if package == "numpy" and name in _NUMPY:
            return value
        if package == "pinloop" and isinstance(value, type) and plain:
            return value
        raise pickle.UnpicklingError(f"{module}.{name} is no data")


def pack_stop(stop: StopResult, shared: Mapping[str, object]) -> bytes:
    """A stop as bytes; none if it holds something of the user's that cannot be pickled.

    ``shared``: what is referred to, by name.
    """
    names = {id(value): name for name, value in shared.items()}
    file = io.BytesIO()
    packer = pickle.Pickler(file, protocol=5)
    # Not a method: a packer that refers to itself lives on until the next collection.
    packer.persistent_id = lambda value: names.get(id(value))  # type: ignore[method-assign]
    try:
        packer.dump(stop)
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
