"""The file that a study writes its rows to while it runs: nothing done is lost or done twice.

Rows are lines of a CSV file, flushed to the disk in batches. What a kill leaves of a last line is
cut off on resume. A manifest beside it says what study it is: another one is not appended to.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import PinloopError

__all__ = ["Journal"]

Row = Mapping[str, float | str]


class Journal:
    """Rows of a study on the disk.

    Args:
        path: the CSV file.
        names: names of its columns, the first one the number of the case.
        manifest: what study it is; must be the same on resume.

    Attributes:
        done: number of cases that are on the disk: 0 to ``done - 1``, in order.
    """

    def __init__(self, path: Path, names: Sequence[str], manifest: Mapping[str, Any]) -> None:
        self.path, self.names = path, list(names)
        self.beside = path.with_name(path.name + ".manifest.json")
        self._manifest = json.loads(json.dumps(manifest))
        self.done = self._resume() if path.exists() else self._begin()

    def append(self, rows: Sequence[Row]) -> None:
        """Add rows; they are on the disk when this returns."""
        text = io.StringIO()
        writer = csv.DictWriter(text, self.names, restval="", lineterminator="\n")
        writer.writerows({name: _shown(value) for name, value in row.items()} for row in rows)
        size = self.path.stat().st_size
        try:
            with self.path.open("ab") as file:
                file.write(text.getvalue().encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            # Half a batch may be there: as much as was before is kept, so that resuming is clean.
            os.truncate(self.path, size)
            raise PinloopError(
                f"'{self.path}' cannot be written ({error.strerror}); {self.done} cases are "
                "in it: make room and start the same study again, and it goes on from there"
            ) from error
        self.done += len(rows)

    def rows(self) -> Iterator[dict[str, float | str]]:
        """The rows, one after the other, numbers as numbers."""
        with self.path.open(newline="") as file:
            for line in csv.DictReader(file):
                yield {name: _read(name, text) for name, text in line.items()}

    def _begin(self) -> int:
        """Start a file."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.beside.write_text(json.dumps(self._manifest, indent=2) + "\n", encoding="utf-8")
            text = io.StringIO()
            csv.writer(text, lineterminator="\n").writerow(self.names)
            self.path.write_text(text.getvalue(), encoding="utf-8")
        except OSError as error:
            raise PinloopError(f"'{self.path}' cannot be written: {error.strerror}") from error
        return 0

    def _resume(self) -> int:
        """Count what has been done; cut off what a kill left of a last line."""
        self._check_manifest()
        count = whole = 0
        try:
            with self.path.open("rb") as file:
                head = next(csv.reader([file.readline().decode("utf-8")]), [])
                if head != self.names:
                    raise ValueError("its columns are not those of this study")
                whole = file.tell()
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    cells = next(csv.reader([line.decode("utf-8")]), [])
                    if len(cells) != len(self.names) or int(cells[0]) != count:
                        raise ValueError(f"line {count + 2} is not case {count}")
                    count, whole = count + 1, whole + len(line)
                end = file.seek(0, os.SEEK_END)
        except (OSError, ValueError) as error:
            raise PinloopError(
                f"the results file '{self.path}' cannot be read ({error}); move it away to start "
                "anew"
            ) from error
        if whole < end:
            os.truncate(self.path, whole)
        return count

    def _check_manifest(self) -> None:
        try:
            before = json.loads(self.beside.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise PinloopError(
                f"'{self.path}' exists, but its manifest '{self.beside.name}' cannot be read "
                f"({error}); move the results away to start anew"
            ) from error
        for key in {*before, *self._manifest}:
            if before.get(key) != self._manifest.get(key):
                raise PinloopError(
                    f"'{self.path}' holds another study: its {key} is {_short(before.get(key))}, "
                    f"not {_short(self._manifest.get(key))}; give another file for the results"
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


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
