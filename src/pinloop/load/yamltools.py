"""YAML text to plain data that knows its lines, and plain data to checked models.

Knows no robot. Every reader of YAML or of tables gets its data through `read_yaml` and `validated`,
which turn whatever is wrong into one `LoadError` with file, line, key and value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from reprlib import Repr
from typing import Annotated, Any, TypeVar, get_args

import numpy as np
import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from ..errors import LoadError

__all__ = [
    "Direction",
    "Name",
    "Number",
    "Vector3",
    "YamlList",
    "YamlMap",
    "line_of",
    "read_yaml",
    "validated",
]

Model = TypeVar("Model", bound=BaseModel)

_MAP = "tag:yaml.org,2002:map"
_SEQUENCE = "tag:yaml.org,2002:seq"
_MERGE = "tag:yaml.org,2002:merge"

_MOST_VALUES = 1_000_000
"""Aliases can make a short text mean an endless one: no robot has more values than this."""

_LARGEST = 1e30
"""No length, mass or inertia is larger; products of a few such numbers stay finite."""

_WORDS = {
    "model_type": "a table of keys and values",
    "dict_type": "a table of keys and values",
    "list_type": "a list",
    "tuple_type": "a list",
    "string_type": "a text (quotes make one)",
    "string_too_short": "a text that is not empty",
    "invalid_key": "a text as key (quotes make one)",
    "float_parsing": "a number",
    "float_type": "a number",
}


class YamlMap(dict[Any, Any]):
    """A mapping that knows the line of each key.

    Attributes:
        lines: line of the file per key, counted from 1.
    """

    lines: dict[Any, int]


class YamlList(list[Any]):
    """A list that knows the line of each item.

    Attributes:
        lines: line of the file per item, counted from 1.
    """

    lines: list[int]


def read_yaml(text: str | bytes, source: str) -> object:
    """Parse one YAML document of plain data (what `yaml.safe_load` accepts, no custom tags).

    Args:
        text: the document, bytes in UTF-8 or UTF-16; an empty one gives None.
        source: file name or kind of input, for messages.

    Returns:
        Scalars, `YamlMap` and `YamlList`.

    Raises:
        LoadError: not YAML, a key given twice, a list inside itself, or too deep or large.
    """
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        return None if node is None else _Builder(loader, source).build(node)[0]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else mark.line + 1
        reason = " ".join(part for part in (error.context, error.problem) if part)
        raise LoadError(f"malformed YAML: {reason}", source=source, line=line) from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # Characters that YAML does not allow, and escapes of characters that do not exist.
        reason = " ".join(str(error).split())
        raise LoadError(f"malformed YAML: {reason}", source=source) from None
    except RecursionError:
        raise LoadError("malformed YAML: nested too deeply to be read", source=source) from None


class _Builder:
    """Turns the nodes of one document into data; shared nodes are built once."""

    def __init__(self, loader: yaml.SafeLoader, source: str) -> None:
        self._loader = loader
        self._source = source
        self._built: dict[int, tuple[object, int]] = {}
        self._open: set[int] = set()

    def build(self, node: yaml.Node) -> tuple[object, int]:
        """Value of a node and how many values it holds with every alias written out."""
        key = id(node)
        if key in self._built:
            return self._built[key]
        if key in self._open:
            raise self._error(node, "a value contains itself through its alias")
        self._open.add(key)
        value: object
        if isinstance(node, yaml.ScalarNode):
            value, size = self._scalar(node), 1
        elif isinstance(node, yaml.MappingNode) and node.tag == _MAP:
            value, size = self._mapping(node)
        elif isinstance(node, yaml.SequenceNode) and node.tag == _SEQUENCE:
            value, size = self._sequence(node)
        else:
            raise self._error(node, f"the tag '{node.tag}' is not supported; leave it out")
        if size > _MOST_VALUES:
            raise self._error(node, f"aliases expand to more than {_MOST_VALUES} values")
        self._open.discard(key)
        self._built[key] = value, size
        return value, size

    def _error(self, node: yaml.Node, problem: str) -> LoadError:
        return LoadError(problem, source=self._source, line=node.start_mark.line + 1)

    def _scalar(self, node: yaml.Node) -> Any:
        try:
            value = self._loader.construct_object(node)
            if isinstance(value, str):
                value.encode()
        except (ValueError, LookupError, AttributeError, TypeError, ArithmeticError):
            # What the constructors of YAML's scalars raise on a text that is no such scalar.
            kind = node.tag.rsplit(":", 1)[-1]
            raise self._error(node, f"{_shown(node.value)} is no valid {kind}") from None
        return value

    def _sequence(self, node: yaml.SequenceNode) -> tuple[YamlList, int]:
        items, size = YamlList(), 1
        items.lines = []
        for child in node.value:
            value, count = self.build(child)
            items.append(value)
            items.lines.append(child.start_mark.line + 1)
            size += count
        return items, size

    def _mapping(self, node: yaml.MappingNode) -> tuple[YamlMap, int]:
        table, size = YamlMap(), 1
        table.lines = {}
        merged: list[YamlMap] = []
        for key_node, value_node in node.value:
            value, count = self.build(value_node)
            size += count
            if key_node.tag == _MERGE:
                merged += self._merged(value_node, value)
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                raise self._error(key_node, "a key must be a single word, not a list or table")
            key = self._scalar(key_node)
            if key in table:
                problem = f"key '{key}' is given twice, first in line {table.lines[key]}"
                raise self._error(key_node, problem)
            table[key] = value
            table.lines[key] = key_node.start_mark.line + 1
        for other in merged:
            for key, value in other.items():
                if key not in table:
                    table[key] = value
                    table.lines[key] = other.lines[key]
        return table, size

    def _merged(self, node: yaml.Node, value: object) -> list[YamlMap]:
        """What the merge key ``<<`` adds: one mapping or a list of them, the first one wins."""
        candidates = list(value) if isinstance(value, YamlList) else [value]
        tables = [table for table in candidates if isinstance(table, YamlMap)]
        if len(tables) < len(candidates):
            raise self._error(node, "the merge key '<<' needs a table or a list of tables")
        return tables


def validated(model: type[Model], data: object, source: str) -> Model:
    """Check ``data`` against a model.

    Args:
        model: the pydantic model.
        data: what `read_yaml` returned, or dicts and lists of the caller; NumPy arrays and
            numbers are welcome.
        source: file name or kind of input, for messages.

    Raises:
        LoadError: names the first key that does not fit, its value and what is expected.
    """
    try:
        return model.model_validate(_plain(data))
    except ValidationError as error:
        # A misspelt key is also a missing one: the misspelling is the better explanation.
        problems = sorted(
            error.errors(include_url=False),
            key=lambda problem: problem["type"] != "extra_forbidden",
        )
        text = _sentence(model, data, problems[0])
        if len(problems) > 1:
            text += f" (and {len(problems) - 1} more)"
        line = line_of(data, problems[0]["loc"])
        raise LoadError(text, source=source, line=line) from None
    except RecursionError:
        raise LoadError("the data are nested too deeply", source=source) from None


def line_of(data: object, path: Sequence[int | str]) -> int | None:
    """Line of the deepest value on ``path`` that `read_yaml` has placed, or None.

    Args:
        data: what `read_yaml` returned.
        path: keys and indices from the root.
    """
    line: int | None = None
    here: Any = data
    for step in path:
        if _has(here, step):
            lines: Any = here.lines if isinstance(here, YamlMap | YamlList) else {}
            # Callers may have put in values of their own, which have no line.
            line = lines[step] if _has(lines, step) else line
            here = here[step]
    return line


def _plain(data: object) -> object:
    """The same data without NumPy."""
    if isinstance(data, Mapping):
        return {key: _plain(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_plain(value) for value in data]
    if isinstance(data, np.ndarray | np.generic):
        return data.tolist()
    return data


def _shown(value: object) -> str:
    short = Repr()
    short.maxstring = short.maxother = 60
    short.maxlist = short.maxdict = 4
    return short.repr(value)


def _sentence(model: type[BaseModel], data: object, problem: ErrorDetails) -> str:
    """One sentence for one problem that pydantic found."""
    kind, path = problem["type"], problem["loc"]
    if kind == "missing" and isinstance(path[-1], int):
        # The list ends before the item that is missing; its input is the list.
        where = _path(data, path[:-1], missing=False)
        return f"{where} is {_shown(problem['input'])}: it has too few items"
    where = _path(data, path, missing=kind == "missing")
    if kind == "missing":
        field = _fields_at(model, path[:-1]).get(str(path[-1]))
        meaning = field.description if field is not None else None
        return f"{where} is missing" + (f": {meaning}" if meaning else "")
    if kind == "extra_forbidden":
        known = list(_fields_at(model, path[:-1]))
        close = get_close_matches(str(path[-1]), known, n=1)
        hint = f"did you mean '{close[0]}'?" if close else f"known keys: {', '.join(known)}"
        return f"{where} is not a known key; {hint}"
    context = problem.get("ctx", {})
    if kind == "value_error":
        expected = str(context["error"])
        if isinstance(problem["input"], dict):
            return f"{where}: {expected}"
    elif kind in ("too_long", "too_short"):
        expected = f"{context['actual_length']} items where "
        expected += f"{context.get('max_length', context.get('min_length'))} are needed"
    else:
        message = problem["msg"].removeprefix("Input should be ")
        if kind.startswith(("greater", "less")):
            message = f"a number {message}"
        expected = f"expected {_WORDS.get(kind, message)}"
    return f"{where} is {_shown(problem['input'])}: {expected}"


def _path(data: object, path: Sequence[int | str], *, missing: bool) -> str:
    """``("loops", 2, "pair")`` as ``loops[2].pair``, without what is not in the data."""
    text = ""
    here: Any = data
    for depth, step in enumerate(path):
        if _has(here, step):
            here = here[step]
        elif not (missing and depth == len(path) - 1):
            # Steps that pydantic adds to tell variants and keys apart.
            continue
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.removeprefix(".") or "the document"


def _has(data: Any, step: int | str) -> bool:
    """Whether ``data[step]`` exists."""
    if isinstance(data, Mapping):
        return step in data
    listed = isinstance(data, list | tuple) or (isinstance(data, np.ndarray) and data.ndim > 0)
    return listed and isinstance(step, int) and step < len(data)


def _fields_at(model: type[BaseModel], path: Sequence[int | str]) -> dict[str, FieldInfo]:
    """Fields of the model that checks the value at ``path``."""
    fields = model.model_fields
    for step in path:
        if isinstance(step, str) and step in fields:
            inner = _model_in(fields[step].annotation)
            fields = inner.model_fields if inner is not None else {}
    return fields


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model inside of lists, optionals and the like."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    models = (_model_in(argument) for argument in get_args(annotation))
    return next((model for model in models if model is not None), None)


def _number(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("expected a number, not yes or no")
    if isinstance(value, int) and abs(value) > _LARGEST:
        raise ValueError(f"expected a number of at most {_LARGEST:g}")
    return value


def _reasonable(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("expected a finite number")
    if abs(value) > _LARGEST:
        raise ValueError(f"expected a number of at most {_LARGEST:g}")
    return value


def _nonzero(vector: tuple[float, float, float]) -> tuple[float, float, float]:
    if math.hypot(*vector) < 1e-9:
        raise ValueError("a zero vector has no direction")
    return vector


Number = Annotated[float, BeforeValidator(_number), AfterValidator(_reasonable)]
"""A finite number; texts such as ``1e-3``, which YAML 1.1 takes for words, are numbers too."""

Vector3 = tuple[Number, Number, Number]
"""Three finite numbers."""

Direction = Annotated[Vector3, AfterValidator(_nonzero)]
"""Three finite numbers that do not vanish together; of any length."""

Name = Annotated[str, Field(min_length=1)]
"""A text that is not empty."""
