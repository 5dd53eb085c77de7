"""What frozen values share: what of them is copied, and methods that hand them to a room above."""

from __future__ import annotations

from dataclasses import fields
from importlib import import_module
from typing import Any


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


def forward(room: str, function: str, *arguments: Any, **options: Any) -> Any:
    """Call a function of a room that is named relative to the package.

    Args:
        room: the module, such as "rounding".
        function: its public function.
        arguments: what to call it with.
        options: likewise, by name.
    """
    return getattr(import_module(f"pinloop.{room}"), function)(*arguments, **options)
