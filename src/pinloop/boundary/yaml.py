"""YAML text to plain data that knows its lines; whatever is wrong is one `LoadError` with its line.

Knows no robot. `schema` makes values of the data.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import yaml

from ..errors import LoadError, shown

_MAP = "tag:yaml.org,2002:map"
_SEQUENCE = "tag:yaml.org,2002:seq"
_MERGE = "tag:yaml.org,2002:merge"

_TEXT = "tag:yaml.org,2002:str"

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's parser where PyYAML has it: several times as fast."""

_LONGEST = 16 * 2**20
"""Characters of a document."""

_MOST_VALUES = 300_000
"""Values of a document, with every alias written out; the largest robots have some 50,000."""

_DEEPEST = 100
"""Levels of tables and lists in each other."""


class YamlMap(dict[Any, Any]):
    """A mapping that knows the line of each key in the file, counted from 1."""

    lines: dict[Any, int]


class YamlList(list[Any]):
    """A list that knows the line of each item in the file, counted from 1."""

    lines: list[int]


def read_yaml(text: str | bytes, source: str, kind: str = "file") -> object:
    """Parse one YAML document of plain data (what `yaml.safe_load` accepts, no custom tags).

    It gives scalars, `YamlMap` and `YamlList`; None for an empty document. Bytes are in UTF-8 or
    UTF-16. A `LoadError` that names the ``source`` says that it is not YAML, has a key given twice
    or a list inside itself, or is too deep or large; ``kind`` is what it should be.
    """
    if isinstance(text, bytes):
        text = _decoded(text, source)
    if len(text) > _LONGEST:
        raise LoadError(f"has more than {_LONGEST >> 20} million characters", source=source)
    if text[:256].lstrip().startswith("<"):
        raise LoadError(f"is XML where a {kind} in YAML is expected", source=source)
    try:
        return _Builder(_Loader(text), source).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else mark.line + 1
        reason = " ".join(part for part in (error.context, error.problem) if part)
        raise LoadError(f"malformed YAML: {reason}", source=source, line=line) from None
    except yaml.YAMLError as error:
        # Characters that YAML does not allow.
        reason = " ".join(str(error).split())
        raise LoadError(f"malformed YAML: {reason}", source=source) from None
    except (UnicodeError, OverflowError) as error:
        # Escapes of characters that do not exist.
        raise LoadError(f"malformed YAML: {error}", source=source) from None


def _decoded(text: bytes, source: str) -> str:
    """Text of a YAML file: UTF-16 with a byte order mark, else UTF-8."""
    utf16 = text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return text.decode("utf-16" if utf16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise LoadError(f"is not UTF-8 text (byte {error.start})", source=source) from None


class _Builder:
    """Turns the events of one document into data. Not its nodes: libyaml's grow on the C stack."""

    def __init__(self, loader: Any, source: str) -> None:
        self._loader = loader
        self._source = source
        self._anchors: dict[str, tuple[object, int] | None] = {}
        self._count = 0

    def document(self) -> object:
        """The one document of the text."""
        loader = self._loader
        loader.get_event()  # start of the stream
        if loader.check_event(yaml.StreamEndEvent):
            return None
        loader.get_event()  # start of the document
        value, _ = self._value(loader.get_event(), 0)
        loader.get_event()  # end of the document
        if not loader.check_event(yaml.StreamEndEvent):
            raise self._error(loader.get_event(), "holds several documents; leave one")
        return value

    def _value(self, event: Any, depth: int) -> tuple[object, int]:
        """A value, and how many values it holds with every alias written out."""
        if isinstance(event, yaml.AliasEvent):
            return self._aliased(event)
        self._count += 1
        if self._count > _MOST_VALUES:
            raise self._error(event, f"there are more than {_MOST_VALUES} values")
        if depth > _DEEPEST:
            raise self._error(event, f"nested too deeply to be read: more than {_DEEPEST} levels")
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        value: object
        if isinstance(event, yaml.ScalarEvent):
            value, size = self._scalar(event), 1
        elif isinstance(event, yaml.MappingStartEvent) and event.tag in (None, "!", _MAP):
            value, size = self._mapping(depth)
        elif isinstance(event, yaml.SequenceStartEvent) and event.tag in (None, "!", _SEQUENCE):
            value, size = self._sequence(depth)
        else:
            raise self._error(event, f"the tag '{event.tag}' is not supported; leave it out")
        if size > _MOST_VALUES:
            raise self._error(event, f"aliases expand to more than {_MOST_VALUES} values")
        if event.anchor is not None:
            self._anchors[event.anchor] = value, size
        return value, size

    def _aliased(self, event: Any) -> tuple[object, int]:
        """The value that an alias stands for; it is built once."""
        if event.anchor not in self._anchors:
            raise self._error(event, f"the alias '*{event.anchor}' has no anchor before it")
        value = self._anchors[event.anchor]
        if value is None:
            raise self._error(event, "a value contains itself through its alias")
        return value

    def _error(self, event: Any, problem: str) -> LoadError:
        return LoadError(problem, source=self._source, line=_line(event))

    def _tag(self, event: Any) -> str:
        if event.tag not in (None, "!"):
            return str(event.tag)
        return str(self._loader.resolve(yaml.ScalarNode, event.value, event.implicit))

    def _scalar(self, event: Any) -> Any:
        tag = self._tag(event)
        try:
            if tag == _TEXT:
                event.value.encode()
                return event.value
            node = yaml.ScalarNode(tag, event.value, event.start_mark, event.end_mark)
            return self._loader.construct_object(node)
        except (ValueError, LookupError, AttributeError, TypeError, ArithmeticError):
            # What the constructors of YAML's scalars raise on a text that is no such scalar.
            kind = tag.rsplit(":", 1)[-1]
            raise self._error(event, f"{shown(event.value)} is no valid {kind}") from None

    def _sequence(self, depth: int) -> tuple[YamlList, int]:
        items, size = YamlList(), 1
        items.lines = []
        while not isinstance(event := self._loader.get_event(), yaml.SequenceEndEvent):
            value, count = self._value(event, depth + 1)
            items.append(value)
            items.lines.append(_line(event))
            size += count
        return items, size

    def _mapping(self, depth: int) -> tuple[YamlMap, int]:
        table, size = YamlMap(), 1
        table.lines = {}
        merged: list[YamlMap] = []
        while not isinstance(event := self._loader.get_event(), yaml.MappingEndEvent):
            merges = isinstance(event, yaml.ScalarEvent) and self._tag(event) == _MERGE
            key = None if merges else self._key(event, depth)
            value_event = self._loader.get_event()
            value, count = self._value(value_event, depth + 1)
            size += count
            if merges:
                merged += self._merged(value_event, value)
                continue
            if key in table:
                problem = f"key '{key}' is given twice, first in line {table.lines[key]}"
                raise self._error(event, problem)
            table[key] = value
            table.lines[key] = _line(event)
        for other in merged:
            for key, value in other.items():
                if key not in table:
                    table[key] = value
                    table.lines[key] = other.lines[key]
        return table, size

    def _key(self, event: Any, depth: int) -> Any:
        if isinstance(event, yaml.ScalarEvent | yaml.AliasEvent):
            key, _ = self._value(event, depth + 1)
            if not isinstance(key, YamlMap | YamlList):
                return key
        raise self._error(event, "a key must be a single word, not a list or table")

    def _merged(self, event: Any, value: object) -> list[YamlMap]:
        """What the merge key ``<<`` adds: one mapping or a list of them, the first one wins."""
        candidates = list(value) if isinstance(value, YamlList) else [value]
        tables = [table for table in candidates if isinstance(table, YamlMap)]
        if len(tables) < len(candidates):
            raise self._error(event, "the merge key '<<' needs a table or a list of tables")
        return tables


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def line_of(data: object, path: Sequence[int | str]) -> int | None:
    """Line of the deepest value on a path of keys and indices that `read_yaml` placed, or None."""
    line: int | None = None
    here: Any = data
    for step in path:
        if has_item(here, step):
            lines: Any = here.lines if isinstance(here, YamlMap | YamlList) else {}
            # Callers may have put in values of their own, which have no line.
            line = lines[step] if has_item(lines, step) else line
            here = here[step]
    return line


def has_item(data: Any, step: int | str) -> bool:
    """Whether ``data[step]`` exists, of tables, lists and arrays."""
    if isinstance(data, Mapping):
        return step in data
    listed = isinstance(data, list | tuple) or (isinstance(data, np.ndarray) and data.ndim > 0)
    return listed and isinstance(step, int) and step < len(data)
