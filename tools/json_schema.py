"""JSON schemas and Markdown tables of keys, from the dataclasses that files are read into."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from dataclasses import is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, is_typeddict

from pinloop.boundary.marks import BOUNDS, As, Check, Range, Short, parted
from pinloop.boundary.schema import keys_of

__all__ = ["json_schema_of", "key_table"]


def json_schema_of(kind: Any) -> dict[str, Any]:
    """The JSON schema of a file or document, from its dataclass or typed dictionary."""
    definitions: dict[str, Any] = {}
    schema = _table_schema(kind, definitions)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": kind.__name__}
    named = {"$defs": dict(sorted(definitions.items()))} if definitions else {}
    return head | schema | named


def _table_schema(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    properties = {}
    for name, key in keys_of(kind).items():
        schema = _schema(key.kind, definitions)
        if not is_typeddict(kind) and _is_plain(key.default):
            schema["default"] = list(key.default) if isinstance(key.default, tuple) else key.default
        properties[name] = schema | ({"description": key.meaning} if key.meaning else {})
    text, _, _ = inspect.cleandoc(kind.__doc__ or "").partition("\nArgs:\n")
    return {
        "type": "object",
        "description": " ".join(text.split()),
        "properties": properties,
        "required": [name for name, key in keys_of(kind).items() if key.required],
        "additionalProperties": False,
    }


def _is_plain(default: object) -> bool:
    """Whether JSON can have it."""
    if isinstance(default, float):
        return math.isfinite(default)
    return default is None or isinstance(default, bool | int | str | tuple | dict)


def _schema(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """The JSON schema of a value."""
    kind, marks = parted(kind)
    other = next((mark for mark in marks if isinstance(mark, As)), None)
    if other is None:
        schema = _bare_schema(kind, definitions)
    else:
        schema = dict(other.schema or _schema(other.kind, definitions))
    for mark in marks:
        if isinstance(mark, Check | Range):
            own = _WORDS_OF.get(str(schema.get("type")), ())
            schema |= {word: value for word, value in mark.schema.items() if word in own}
    for mark in marks:
        if isinstance(mark, Short):
            short = _schema(mark.kind, definitions)
            schema = {"anyOf": [*short.get("anyOf", [short]), schema]}
    return schema


_WORDS_OF = {
    "number": [bound.keyword for bound in BOUNDS.values()],
    "string": ["minLength", "pattern"],
    "array": ["minItems"],
    "object": ["minProperties"],
}
"""What JSON schema says of values of a type."""

_SIMPLE = {
    Path: "string",
    float: "number",
    int: "integer",
    bool: "boolean",
    str: "string",
    NoneType: "null",
}


def _bare_schema(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    origin, parts = get_origin(kind), get_args(kind)
    if kind in _SIMPLE:
        return {"type": _SIMPLE[kind]}
    if origin in (Union, UnionType):
        return {"anyOf": [_schema(part, definitions) for part in parts]}
    if origin is Literal:
        return {"const": parts[0]} if len(parts) == 1 else {"enum": list(parts)}
    if is_dataclass(kind) or is_typeddict(kind):
        name = kind.__name__
        if name not in definitions:
            definitions[name] = {}  # for tables that hold each other
            definitions[name] = _table_schema(kind, definitions)
        return {"$ref": f"#/$defs/{name}"}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": _schema(parts[1], definitions)}
    if origin in (tuple, list):
        if origin is list or parts[-1] is Ellipsis:
            return {"type": "array", "items": _schema(parts[0], definitions)}
        items = [_schema(part, definitions) for part in parts]
        size = {"minItems": len(items), "maxItems": len(items)}
        return {"type": "array", "prefixItems": items, **size}
    return {}


def key_table(kind: Any) -> str:
    """The keys of a table of a file as Markdown, as the documentation shows them."""
    rows = [("key", "needed", "what it is"), ("---",) * 3]
    for name, key in keys_of(kind).items():
        rows.append((f"`{name}`", "yes" if key.required else "", key.meaning))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows) + "\n"
