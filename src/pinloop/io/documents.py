"""Files that ask for something (studies, scenarios): what documents their keys.

Knows no robot. What a certain file may say is told by its own model of `Entry`s; documents that are
written share `closed` and the JSON schema with them.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field, TypeAdapter, WithJsonSchema, with_config

from ..boundary.yaml import Number
from .entries import Entry

__all__ = ["NotNegative", "Positive", "closed", "key_table", "schema_of"]

closed = with_config(ConfigDict(extra="forbid"))
"""Decorates a typed dictionary that has the keys it names, and no others."""

# Behind the checks of a `Number`, pydantic no longer finds the words of JSON schema.
NotNegative: Any = Annotated[Number, Field(ge=0), WithJsonSchema({"type": "number", "minimum": 0})]
Positive: Any = Annotated[
    Number, Field(gt=0), WithJsonSchema({"type": "number", "exclusiveMinimum": 0})
]


def schema_of(form: Any) -> dict[str, Any]:
    """Return the JSON schema of a file or document, from its model or typed dictionary."""
    schema = TypeAdapter(form).json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def key_table(entry: type[Entry]) -> str:
    """Return the keys of a table of a file as Markdown, as the documentation shows them."""
    rows = [("key", "needed", "what it is"), ("---",) * 3]
    for name, field in entry.model_fields.items():
        needed = "yes" if field.is_required() else ""
        rows.append((f"`{name}`", needed, str(field.description)))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows) + "\n"
