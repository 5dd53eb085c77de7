"""JSON out: the only place that turns documents into text. Knows no document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .files import write_text

__all__ = ["json_text", "json_values", "write_json"]


def json_text(
    document: object,
    *,
    indent: int | None = 2,
    ascii_only: bool = True,
    finite: bool = True,
) -> str:
    """A document as text.

    Args:
        document: what JSON knows: dictionaries, lists, texts, numbers.
        indent: blanks per level; None for one line.
        ascii_only: whether other letters are escaped, for terminals and scripts in pages.
        finite: whether infinities and NaN are refused, which only Python reads back.
    """
    return json.dumps(document, indent=indent, allow_nan=not finite, ensure_ascii=ascii_only)


def json_values(document: object) -> Any:
    """A document as JSON gives it back: tuples are lists, keys are texts; infinities stay."""
    return json.loads(json_text(document, finite=False))


def write_json(path: str | Path, document: object, *, finite: bool = True) -> Path:
    """Write a document to a file, in UTF-8; see `json_text`.

    Raises:
        BadValue: the file cannot be written.
    """
    return write_text(path, json_text(document, ascii_only=False, finite=finite) + "\n")
