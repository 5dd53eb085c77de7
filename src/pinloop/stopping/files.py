"""Writing files as a whole: what is there is either the old or the new content, never a half."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import TextIO

from ..checks import not_written
from ..errors import BadValue

__all__ = ["written_whole"]


@contextmanager
def written_whole(path: str | Path) -> Iterator[TextIO]:
    """Open a text file to be written; it takes its place when all has been written.

    Args:
        path: the file. A link stays one; pipes and devices are written to directly.

    Raises:
        BadValue: it cannot be written; what was there before is still there.
    """
    try:
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise BadValue(f"{path} is a folder; name a file in it")
        direct = target.exists() and not target.is_file()
        partial = target if direct else target.with_name(f".pinloop-{token_hex(8)}")
        try:
            with partial.open("w", encoding="utf-8", newline="") as file:
                yield file
                file.flush()
                if not direct:
                    os.fsync(file.fileno())
            if not direct:
                if target.exists():
                    shutil.copymode(target, partial)
                partial.replace(target)
        finally:
            if not direct:
                partial.unlink(missing_ok=True)
    except (OSError, ValueError, TypeError) as error:
        raise not_written(path, error) from None
