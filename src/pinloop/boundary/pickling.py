"""What of a value is pickled and copied: what it was made from, not what was derived from it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

__all__ = ["construct_again", "stored_fields"]


def stored_fields(value: Any) -> dict[str, Any]:
    """The fields of a dataclass, without what it has cached, for use as ``__getstate__``.

    So reading a frozen value changes neither its pickle nor its copies.
    """
    return {field.name: getattr(value, field.name) for field in fields(value)}


def construct_again(value: Any) -> tuple[type[Any], tuple[Any, ...]]:
    """Let a copy of a dataclass be constructed from its fields, for use as ``__reduce__``.

    So what its class does to its fields is done to those of the copy: pickles forget, for example,
    that an array cannot be written to.
    """
    return type(value), tuple(getattr(value, field.name) for field in fields(value) if field.init)
