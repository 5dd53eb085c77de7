"""The files that a study writes while it runs: nothing done is lost or done twice.

Rows are lines of a CSV file, flushed to the disk in batches. Each ends in a checksum (CRC-32) of
what stands before it in the line, so that no changed value is taken for a result. What a kill
leaves of a last line is cut off on resume. A manifest beside it has everything that the numbers
depend on, as plain data: the file of another study is not appended to.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import coal
import numpy as np
import pinocchio as pin
import scipy

from ...boundary.csv import csv_line
from ...boundary.files import may_replace, read_text
from ...boundary.json import json_text, json_values, write_json
from ...errors import PinloopError
from ...model.mechanism import Mechanism
from ...version import __version__
from ..space.solids import Obstacle
from .cases import Setup
from .space import Sampling
from .stop_file import StopFile

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
        self.path, self.names = path, list(names)
        self.beside = path.with_name(path.name + ".manifest.json")
        self._manifest = json_values(manifest)
        self._stops = StopFile(path, digest_of(manifest))
        self._end, self._stops_end = 0, self._stops.begin()
        self.done = self._resume() if os.path.exists(path) else self._begin()

    @property
    def has_room(self) -> bool:
        """Whether all stops are kept, not only the worst."""
        return self._stops.has_room(self._stops_end)

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
            self._end = self.path.write_bytes(_line([*self.names, _CHECKSUM]))
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
            first = _line([*self.names, _CHECKSUM])
            if len(head) < len(first) and first.startswith(head):
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
            before = json.loads(read_text(self.beside, "manifest"))
        except ValueError as error:
            raise PinloopError(
                f"'{self.path}' exists, but its manifest '{self.beside.name}' cannot be read "
                f"({error}); move the results away to start anew"
            ) from error
        before = _with_present_names(before, self._manifest) if isinstance(before, dict) else {}
        for key in dict.fromkeys([*self._manifest, *before]):
            if before.get(key) != self._manifest.get(key):
                raise PinloopError(
                    f"'{self.path}' holds another study: its {key} is "
                    f"{_short(*_apart(before.get(key), self._manifest.get(key)))}; give another "
                    "file for the results"
                )


def read_rows(path: Path, names: Sequence[str], count: int) -> Iterator[dict[str, float | str]]:
    """The first rows of a results file with these columns, one by one, numbers as numbers."""
    try:
        for cells in read_cells(path, names, count):
            row = zip(names, cells, strict=True)
            yield {name: _read(name, text) for name, text in row}
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

    Raises:
        ValueError: the file is not as it was written.
    """
    with path.open("rb") as file:
        head = io.StringIO(_read_head(file).decode(), newline="")
        titles = next(csv.reader(head), [])
        if titles == list(names):
            raise ValueError("its rows have no checksums, as an earlier version wrote them")
        if len(titles) != len(names) + 1 or not all(map(_is_called, titles, [*names, _CHECKSUM])):
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


# -- names of columns in files of earlier versions ----------------------------------------------

_FORMER = (
    (re.compile(r"(?s)(.+)_(pose|speed|delay|band)(_(?:rad|m)(?:_per_s)?|_s|)"), r"\2_\1\3"),
    (re.compile(r"(?s)(.+)_N_m_s"), r"\1_Nms"),
    (re.compile(r"(?s)(.+)_N_m"), r"\1_Nm"),
    (re.compile(r"(?s)(.+)_N_s"), r"\1_Ns"),
    (re.compile("kinetic_energy_J"), "energy_J"),
)


def _is_called(title: str, name: str) -> bool:
    """Whether a column has a name, or what that was in earlier versions."""
    former = (
        pattern.sub(form, name) for pattern, form in _FORMER if pattern.fullmatch(name) is not None
    )
    return title == name or title == next(former, name)


def _with_present_names(before: dict[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest with its variables called as they are today."""
    variables, present = before.get("variables"), now.get("variables")
    if not isinstance(variables, list) or not isinstance(present, list):
        return before
    pairs = zip(variables, present, strict=False)
    renamed = [[to[0], *of[1:]] if _is_called(str(of[0]), to[0]) else of for of, to in pairs]
    return before | {"variables": renamed + variables[len(present) :]}


def _line(cells: Sequence[str]) -> bytes:
    """Cells as a line of the file."""
    return csv_line(cells).encode()


def _sealed(cells: Sequence[str]) -> bytes:
    """Cells as a line of the file, with its checksum."""
    text = _line(cells)[:-1]
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


def _read(name: str, text: str) -> float | str:
    if name in ("outcome", "reason"):
        return text
    return float(text) if text else float("nan")


def _apart(before: object, now: object) -> tuple[object, object]:
    """Where two lists of the same length differ first; else all of both."""
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        return next((a, b) for a, b in zip(before, now, strict=True) if a != b)
    return before, now


def _short(before: object, now: object) -> str:
    """Both values, cut where they are long."""
    texts = (json_text(value, indent=None, finite=False) for value in (before, now))
    return ", not ".join(text if len(text) <= 60 else text[:57] + "..." for text in texts)


# -- what makes a study the same study ------------------------------------------------------------


def manifest_of(setup: Setup, sampling: Sampling) -> dict[str, Any]:
    """The manifest of a study: versions, digests, ranges, seed."""
    return {
        "pinloop": __version__,
        "pinocchio": pin.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "robot": setup.robot.name,
        "robot_sha256": _robot(setup.robot),
        "brakes_sha256": _digest(setup.brakes.joints, setup.brakes.chain),
        "variables": [[item.column, item.low, item.high] for item in setup.variables],
        "sampling": repr(sampling),
        "category": repr(setup.category),
        "payload": _payload(setup),
        "gravity": setup.gravity,
        "trigger": repr(setup.trigger),
        "motion_sha256": _motion(setup),
        "until": setup.until,
        "method": repr(setup.method),
        "standstill": repr(setup.standstill),
        "obstacles": {item.name: _obstacle(item) for item in setup.obstacles},
    }


def digest_of(manifest: Mapping[str, Any]) -> str:
    """The digest by which files beside the results know their study."""
    return _digest(json_text(json_values(manifest)))


def _digest(*parts: Any) -> str:
    return hashlib.sha256("\n".join(map(repr, parts)).encode()).hexdigest()


def _robot(robot: Mechanism) -> str:
    """Kinematics, masses, limits, and what closes loops."""
    return _digest(
        robot.model.saveToString(),
        [(loop.name, loop.pair, loop.body_a, loop.body_b) for loop in robot.loops],
        robot.couplings,
        robot.actuated,
        [(frame.name, np.array(frame.placement).tolist()) for frame in robot.model.frames],
    )


def _payload(setup: Setup) -> list[Any] | None:
    load = setup.payload
    if load is None:
        return None
    inertia = None if load.inertia is None else np.asarray(load.inertia, dtype=float).tolist()
    return [float(load.mass), np.asarray(load.com, dtype=float).tolist(), inertia, load.frame]


def _motion(setup: Setup) -> str | None:
    motion = setup.space.motion
    if motion is None:
        return None
    return _digest(motion.joints, motion.t.tolist(), motion.values.tolist())


def _obstacle(obstacle: Obstacle) -> str:
    """Shape and place."""
    solid = obstacle.solid
    if isinstance(solid, coal.Box):
        shape = solid.halfSide.tolist()
    elif isinstance(solid, coal.Sphere):
        shape = solid.radius
    elif isinstance(solid, coal.BVHModelBase):
        triangles = (solid.tri_indices(k) for k in range(solid.num_tris))
        # A triangle of coal can be indexed, but its iteration does not end properly.
        corners = [[triangle[k] for k in range(3)] for triangle in triangles]
        shape = [np.asarray(solid.vertices()).tolist(), corners]
    else:
        shape = np.asarray(solid.points()).tolist()
    return _digest(type(solid).__name__, shape, np.array(obstacle.placement).tolist())
